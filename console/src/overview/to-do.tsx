import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { useOpenAlerts } from '../alerts/queries.ts';
import { textOf } from '../alerts/words.ts';
import type { Alert } from '../alerts/words.ts';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { atLeast, formatAgo, formatCount, formatCountOf, formatMoney } from '../format.ts';
import { usePermission } from '../session.ts';
import { useEndpoints } from '../webhooks/queries.ts';
import { stateText } from '../webhooks/words.ts';
import type { Endpoint } from '../webhooks/words.ts';
import { CAUSES } from '../words.ts';

/** How often the causes, the deliveries and the endpoints are read again while the page is shown, ms. */
const TO_DO_MS = 60_000;
/** A delivery without an outcome for this long needs somebody, ms. */
const STUCK_AFTER_MS = 10 * 60_000;

interface Task {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  readonly to: string;
}

const paymentsIn = (count: number, isLowerBound: boolean) =>
  count === 1 && !isLowerBound ? '1 payment' : `${atLeast(formatCount(count), isLowerBound)} payments`;

function payTask({ payableCents, payees }: Schemas['AppOverview']['due']): Task | null {
  if (payableCents === 0) return null;
  return {
    title: `${formatMoney(payableCents)} due`,
    text: 'The hold period is over.',
    action: `Pay ${formatMoney(payableCents)} to ${formatCountOf(payees, 'creator')}`,
    to: 'payouts',
  };
}

/** Causes of sales that came through no creator: nothing is broken. */
const ORGANIC: readonly string[] = ['user_not_attributed', 'outside_attribution_window'];

/** Names the payments of the last 30 days that earn once their cause is removed, and the most frequent cause. */
function causeTask(causes: readonly Schemas['UnattributedCause'][]): Task | null {
  const healing = causes
    .filter(({ heals, likelyCause }) => heals === 'when_fixed' && !ORGANIC.includes(likelyCause))
    // What a person has settled by a manual attribution is not to do.
    .map(({ settledCount, ...cause }) => ({ ...cause, count: cause.count - settledCount }))
    .filter(({ count: open }) => open > 0)
    .toSorted((a, b) => b.count - a.count);
  const [first] = healing;
  if (first === undefined) return null;
  const count = healing.reduce((sum, cause) => sum + cause.count, 0);
  const others = healing.length - 1;
  const isLowerBound = healing.some(({ truncated }) => truncated);
  return {
    title: `${paymentsIn(count, isLowerBound)} earned nothing, and still can`,
    text:
      others === 0
        ? `${CAUSES[first.likelyCause]}.`
        : `${CAUSES[first.likelyCause]} (${atLeast(formatCount(first.count), first.truncated)}), and ${formatCountOf(others, 'other cause')}.`,
    action: 'See the causes',
    to: 'unattributed',
  };
}

/** Says what is wrong with the webhooks of a provider. Null if nothing is. */
function faultsOf({
  title,
  failed,
  refused,
  oldestUnfinishedAt,
  lowerBounds,
}: Schemas['ProviderHealth']): string | null {
  const isStuck = oldestUnfinishedAt !== null && Date.now() - oldestUnfinishedAt > STUCK_AFTER_MS;
  const parts = [
    failed > 0
      ? `${atLeast(formatCount(failed), lowerBounds.includes('failed'))} failed in the last 24 hours`
      : null,
    refused > 0 ? `${formatCount(refused)} refused in the last 24 hours` : null,
    failed === 0 && refused === 0 && isStuck
      ? `the oldest unfinished one arrived ${formatAgo(oldestUnfinishedAt)}`
      : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : `${title}: ${parts.join(', ')}.`;
}

function deliveryTask(providers: readonly Schemas['ProviderHealth'][]): Task | null {
  const bad = providers.flatMap((provider) => {
    const faults = faultsOf(provider);
    return faults === null ? [] : [{ title: provider.title, faults }];
  });
  if (bad.length === 0) return null;
  return {
    title: `Webhooks of ${bad.map(({ title }) => title).join(', ')} need attention`,
    text: bad.map(({ faults }) => faults).join(' '),
    action: 'See the deliveries',
    to: 'deliveries',
  };
}

/** Names an endpoint of outgoing webhooks that fails, or that the service deactivated. */
function endpointTask(endpoints: readonly Endpoint[]): Task | null {
  const bad = endpoints.filter(({ active, failingSince, deactivatedReason }) =>
    active ? failingSince !== null : deactivatedReason !== 'by_request',
  );
  const [first] = bad;
  if (first === undefined) return null;
  const others = bad.length - 1;
  return {
    title:
      others > 0
        ? `${formatCount(bad.length)} endpoints of your webhooks need attention`
        : `An endpoint of your webhooks ${first.active ? 'fails' : 'was deactivated'}`,
    text: `${first.url}: ${stateText(first)}${others > 0 ? ` And ${formatCountOf(others, 'other')}.` : ''}`,
    action: 'See the endpoints',
    to: 'webhooks',
  };
}

/** The rules whose cause no other card names. */
const OF_ALERTS: readonly Alert['rule'][] = [
  'ledger_violated',
  'provider_silent',
  'draft_waiting',
  'run_stalled',
  'many_refunds',
];

/** Names the open alerts that no other card names. */
function alertTask(alerts: readonly Alert[]): Task | null {
  const open = alerts.filter(({ rule }) => OF_ALERTS.includes(rule));
  const [first] = open;
  if (first === undefined) return null;
  const { title, found } = textOf(first);
  const others = open.length - 1;
  return {
    title,
    text: others > 0 ? `${found} And ${formatCountOf(others, 'other alert')}.` : found,
    action: 'See the alerts',
    to: 'alerts',
  };
}

/** Reads what there may be to do, besides payouts. `isPending` until the first answers: cards that come later move the page. */
export function useToDo(appId: string, enabled: boolean) {
  const path = { path: { appId } };
  const causes = useQuery({
    queryKey: ['unattributed-summary', appId, {}],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/diagnostics/unattributed/summary', { params: path })),
    enabled,
    refetchInterval: TO_DO_MS,
  });
  const health = useQuery({
    queryKey: ['deliveries-summary', appId],
    queryFn: async () => await read(api.GET('/apps/{appId}/diagnostics/webhooks/summary', { params: path })),
    enabled,
    refetchInterval: TO_DO_MS,
  });
  const alerts = useOpenAlerts(appId, enabled);
  const canSetUp = usePermission('setup');
  const endpoints = useEndpoints(appId, enabled && canSetUp, TO_DO_MS);
  return {
    // Without the permission the endpoints are not read.
    isPending: causes.isPending || health.isPending || alerts.isPending || (canSetUp && endpoints.isPending),
    causes: causes.data?.causes ?? [],
    providers: health.data?.providers ?? [],
    endpoints: endpoints.data?.items ?? [],
    alerts: alerts.data?.items ?? [],
    error: causes.error ?? health.error ?? alerts.error ?? endpoints.error,
  };
}

/** Lines with what to do. Nothing where there is nothing to do. */
export function ToDo({
  appId,
  due,
  found: { causes, providers, endpoints, alerts, error },
}: {
  readonly appId: string;
  readonly due: Schemas['AppOverview']['due'];
  readonly found: ReturnType<typeof useToDo>;
}) {
  const tasks = [
    alertTask(alerts),
    payTask(due),
    causeTask(causes),
    deliveryTask(providers),
    endpointTask(endpoints),
  ].filter((task) => task !== null);
  if (tasks.length === 0 && error === null) return null;
  return (
    <section aria-labelledby="to-do">
      <h2 id="to-do" className="spoken">
        To do
      </h2>
      {error !== null && (
        <Text size="sm" role="alert" mb="sm">
          What there is to do could not be read: {error.message}
        </Text>
      )}
      <ul className="surface needs">
        {tasks.map((task) => (
          <li key={task.to}>
            <div>
              <b>{task.title}</b> <span className="quiet">{task.text}</span>
            </div>
            <Button component={Link} to={`/apps/${appId}/${task.to}`} variant="default" size="compact-sm">
              {task.action}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
