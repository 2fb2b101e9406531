import { Stack, Text } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import { atLeast, formatCount, formatDuration, formatInstant } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { Headline } from './headline.tsx';
import { useInstallationState } from './queries.ts';
import { NotCurrent, NotYet, Section } from './section.tsx';

type InstallationState = Schemas['InstallationState'];

/** Counts of the service end here. */
const MOST = 10_000;
/** The service counts waiting payments of a currency up to this number. */
const MOST_WAITING = 1_000;

const counted = (number: number, most: number) => atLeast(formatCount(number), number >= most);

/** Names that people know, by those of the service. */
const CHECKS: Readonly<Record<string, string>> = {
  database: 'Database',
  secrets: 'Encryption keys',
  database_statements: 'Statements of the database',
  clock: 'Clock',
  payouts: 'Payouts',
  temporal: 'Temporal',
  temporal_set_up: 'Set-up of Temporal',
  service: 'Service',
};

function Readiness({ checks }: { readonly checks: InstallationState['readiness'] }) {
  return (
    <Section title="Readiness">
      <div className="surface">
        <table className="rows">
          <caption className="spoken">What the service depends on</caption>
          <thead>
            <tr>
              <th scope="col">Part</th>
              <th scope="col">State</th>
              <th scope="col">What is missing</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ name, ok, optional, detail }) => (
              <tr key={name}>
                <td>{CHECKS[name] ?? name}</td>
                <td>
                  <Tag tone={ok ? 'good' : optional ? 'wait' : 'bad'}>
                    {ok ? 'Available' : optional ? 'Degraded' : 'Not available'}
                  </Tag>
                </td>
                <td>{detail ?? <span className="quiet">nothing</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Backlog({ backlog }: { readonly backlog: InstallationState['backlog'] }) {
  const rows = [
    ['Deliveries without an outcome', backlog.unfinishedDeliveries, backlog.oldestUnfinishedSeconds],
    ['Commissions that are overdue', backlog.overdueCommissions, backlog.oldestOverdueSeconds],
    ['Payout exports in progress', backlog.openPayoutRequests, backlog.oldestPayoutRequestSeconds],
    ['Users whose payments wait for an evaluation', backlog.unhealedBindings, backlog.oldestUnhealedSeconds],
    ['Webhooks to endpoints that are due', backlog.dueWebhooks, backlog.oldestDueWebhookSeconds],
  ] as const;
  return (
    <Section title="Backlog">
      <div className="surface">
        <table className="rows">
          <caption className="spoken">Work that is not done yet</caption>
          <thead>
            <tr>
              <th scope="col">Work</th>
              <th scope="col" className="number">
                Waiting
              </th>
              <th scope="col">Oldest</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, number, oldest]) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="number" data-name="Waiting">
                  {counted(number, MOST)}
                </td>
                <td data-name="Oldest">
                  {number === 0 ? <span className="quiet">none</span> : formatDuration(oldest)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function RateGaps({ gaps }: { readonly gaps: InstallationState['rateGaps'] }) {
  return (
    <Section title="Exchange rates">
      {gaps.length === 0 ? (
        <Text size="sm" className="quiet">
          Nothing waits for an exchange rate.
        </Text>
      ) : (
        <div className="surface">
          <table className="rows">
            <caption className="spoken">Currencies of which a rate is missing</caption>
            <thead>
              <tr>
                <th scope="col">Currency</th>
                <th scope="col" className="number">
                  Payments
                </th>
                <th scope="col" className="number">
                  Refunds and disputes
                </th>
                <th scope="col">Days</th>
                <th scope="col">Latest rate</th>
              </tr>
            </thead>
            <tbody>
              {gaps.map((gap) => (
                <tr key={gap.currency}>
                  <td>{gap.currency}</td>
                  <td className="number" data-name="Payments">
                    {counted(gap.payments, MOST_WAITING)}
                  </td>
                  <td className="number" data-name="Refunds and disputes">
                    {counted(gap.refundsAndDisputes, MOST_WAITING)}
                  </td>
                  <td data-name="Days">
                    {gap.firstDay === gap.lastDay ? gap.firstDay : `${gap.firstDay} to ${gap.lastDay}`}
                  </td>
                  <td data-name="Latest rate">{gap.latestRateDay ?? <span className="quiet">none</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

export function State() {
  const state = useInstallationState();
  if (state.data === undefined)
    return (
      <>
        <Headline state={state} />
        <NotYet query={state} what="the state of the installation" />
      </>
    );
  const { version, newerMigrations } = state.data;
  return (
    <>
      <Stack gap="sm">
        <Headline state={state} />
        <NotCurrent query={state} />
        {newerMigrations.length > 0 && (
          <Text size="sm" className="surface service-state" role="status" mb={0}>
            A newer version than {version} has upgraded the database ({newerMigrations.at(-1)}), and this
            process still runs {version}. Replace all processes with the newer version.
          </Text>
        )}
        <Text size="sm" className="quiet">
          Checked {formatInstant(state.data.checkedAt)}. Version {version}.
        </Text>
      </Stack>
      <Readiness checks={state.data.readiness} />
      <Backlog backlog={state.data.backlog} />
      <RateGaps gaps={state.data.rateGaps} />
    </>
  );
}
