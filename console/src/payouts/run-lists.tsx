import { Anchor, Group, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link } from 'react-router';
import { api, AS_CSV, read, readCsv } from '../api/client.ts';
import { formatCount, formatMoney } from '../format.ts';
import { Nothing, Section } from '../lists.tsx';
import { ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { ListEnd, ListView, useList } from '../parts/list.tsx';
import { CsvDownload } from './csv-download.tsx';
import { PAYOUT_KEYS } from './keys.ts';
import { useUnpaid } from './runs.ts';
import { MoneyTag } from '../parts/money-state.tsx';
import { UNPAID, whyNotPaid } from './words.ts';
import type { Run, RunItem } from './words.ts';

interface ListProps {
  readonly appId: string;
  readonly run: Run;
}

/** The name of a creator, which leads to the creator's page. */
function Creator({
  appId,
  row: { affiliateId, affiliateName },
}: {
  readonly appId: string;
  readonly row: Pick<RunItem, 'affiliateId' | 'affiliateName'>;
}) {
  return (
    <Anchor component={Link} to={`/apps/${appId}/creators/${affiliateId}`} size="sm" fw={500}>
      {affiliateName}
    </Anchor>
  );
}

/** Who was not paid by a settled run, and why. Nothing if everybody was. */
export function NotPaidByRun({ appId, run }: ListProps) {
  const unpaid = useUnpaid(appId, run);
  if (unpaid.error !== null) return <ErrorBox error={unpaid.error} retry={() => void unpaid.refetch()} />;
  if (unpaid.data === undefined || run.paidCount === run.itemCount) return null;
  const more = run.itemCount - run.paidCount - unpaid.data.length;
  return (
    <Section
      id="not-paid"
      title="Not paid"
      hint={
        run.kind === 'resend'
          ? 'A payout that is still marked as come back is in the next draft that sends returned money again.'
          : 'Nobody loses anything: what is still due is in a later draft, once its reason is gone.'
      }
    >
      <div className="surface">
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Creator</th>
              <th scope="col">Why</th>
              <th scope="col" className="number">
                Amount
              </th>
            </tr>
          </thead>
          <tbody>
            {unpaid.data.map((row) => (
              <tr key={row.id}>
                <td>
                  <Creator appId={appId} row={row} />
                </td>
                <td>{row.why}</td>
                <td className="number lead" data-name="Amount">
                  {formatMoney(row.expectedCents)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && (
        <ListEnd>And {formatCount(more)} more. The list of creators below has all of them.</ListEnd>
      )}
    </Section>
  );
}

function Outcome({ outcome }: Pick<RunItem, 'outcome'>) {
  switch (outcome) {
    case null:
      return null;
    case 'waiting':
      return <Tag tone="wait">Waiting</Tag>;
    case 'paid':
      return <Tag tone="good">Booked</Tag>;
    case 'resent':
      return <Tag tone="good">In new files</Tag>;
    default:
      return (
        <>
          <Tag tone="bad">{outcome === 'not_returned' ? 'Not sent' : 'Not paid'}</Tag>
          <Text size="xs" mt={2}>
            {UNPAID[outcome]}
          </Text>
        </>
      );
  }
}

/** The payout of an item, with its CSV. Nothing for an item that was not paid. */
function PayoutOf({
  appId,
  item: { payoutId, affiliateName },
}: {
  readonly appId: string;
  readonly item: RunItem;
}) {
  if (payoutId === null) return null;
  return (
    <Group gap="sm" justify="flex-end" wrap="nowrap">
      <Anchor
        component={Link}
        to={`/apps/${appId}/payouts/${payoutId}`}
        size="sm"
        aria-label={`Open the payout to ${affiliateName}`}
      >
        Open
      </Anchor>
      <CsvDownload appId={appId} payoutId={payoutId} creator={affiliateName} />
    </Group>
  );
}

/** The creators whom a run pays, and what became of each. */
export function RunItems({ appId, run }: ListProps) {
  const client = useQueryClient();
  const runId = run.id;
  const path = { appId, runId };
  const list = useList(
    PAYOUT_KEYS.runItems(appId, runId),
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/payout-runs/{runId}/items', {
          params: { path, query: { limit: 25, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id },
  );
  // The outcomes of the rows change with the progress of the run.
  const progress = [run.status, run.settledCount, run.stoppedAt].join(' ');
  const shown = useRef(progress);
  useEffect(() => {
    if (shown.current === progress) return;
    shown.current = progress;
    void client.invalidateQueries({ queryKey: PAYOUT_KEYS.runItems(appId, runId) });
  }, [client, appId, runId, progress]);
  const isApproved = run.approvedAt !== null;
  return (
    <Section
      id="creators"
      title={run.status === 'draft' ? 'Who is paid' : 'Creators'}
      hint={
        run.kind === 'pay'
          ? 'The largest amount first. What creators earned after the draft waits for the next run.'
          : 'Payouts whose money came back, the largest first. They stay paid: this run sends the money again.'
      }
      aside={
        run.itemCount > 0 && (
          <CsvButton
            name={`${runId}-creators`}
            readPart={async (cursor) =>
              await readCsv(
                api.GET('/apps/{appId}/payout-runs/{runId}/items', {
                  params: { path, query: cursor },
                  ...AS_CSV,
                }),
              )
            }
          />
        )
      }
    >
      <ListView
        list={list}
        what="creators"
        nothing={
          <Nothing title="Nobody is paid">
            No creator in this run has money due. The reasons are below.
          </Nothing>
        }
      >
        {(rows) => (
          <table className={isApproved ? 'rows centred' : 'rows'}>
            <thead>
              <tr>
                <th scope="col">Creator</th>
                <th scope="col" className="number">
                  Amount
                </th>
                {isApproved && (
                  <>
                    <th scope="col">Outcome</th>
                    <th scope="col">Money</th>
                    <th scope="col">
                      <span className="spoken">Payout</span>
                    </th>
                  </>
                )}
              </tr>
            </thead>
            <tbody>
              {rows.map((item) => (
                <tr key={item.id}>
                  <td>
                    <Creator appId={appId} row={item} />
                  </td>
                  <td className="number lead" data-name="Amount">
                    {formatMoney(item.expectedCents)}
                  </td>
                  {isApproved && (
                    <>
                      <td>
                        <Outcome outcome={item.outcome} />
                      </td>
                      <td>{item.transferState !== null && <MoneyTag said={item.transferState} />}</td>
                      <td style={{ whiteSpace: 'nowrap' }}>
                        <PayoutOf appId={appId} item={item} />
                      </td>
                    </>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </Section>
  );
}

/** The creators with unpaid commissions whom a run leaves out, and why. */
export function LeftOut({ appId, run }: ListProps) {
  const path = { appId, runId: run.id };
  const list = useList(
    PAYOUT_KEYS.runExclusions(appId, run.id),
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/payout-runs/{runId}/excluded', {
          params: { path, query: { limit: 25, ...cursor } },
        }),
      ),
    { idOf: ({ affiliateId }) => affiliateId },
  );
  return (
    <Section
      id="left-out"
      title="Left out"
      hint={
        run.kind === 'pay'
          ? 'Creators with unpaid commissions whom the run does not pay, as of its draft.'
          : 'Creators to whom the money is not sent again, as of the draft.'
      }
      aside={
        list.rows.length > 0 && (
          <CsvButton
            name={`${run.id}-left-out`}
            readPart={async (cursor) =>
              await readCsv(
                api.GET('/apps/{appId}/payout-runs/{runId}/excluded', {
                  params: { path, query: cursor },
                  ...AS_CSV,
                }),
              )
            }
          />
        )
      }
    >
      <ListView
        list={list}
        what="creators who are left out"
        nothing={
          <Nothing title="Nobody is left out">
            {run.kind === 'pay'
              ? 'Everybody with unpaid commissions is in the run.'
              : 'All money that came back is in the run.'}
          </Nothing>
        }
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Creator</th>
                <th scope="col">Why</th>
                <th scope="col" className="number">
                  Held
                </th>
                <th scope="col" className="number">
                  Balance
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.affiliateId}>
                  <td>
                    <Creator appId={appId} row={row} />
                  </td>
                  <td>{whyNotPaid(row, run.minimumCents)}</td>
                  <td className="number" data-name="Held">
                    {formatMoney(row.heldCents)}
                  </td>
                  <td className="number lead" data-name="Balance">
                    {formatMoney(row.balanceCents)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </Section>
  );
}
