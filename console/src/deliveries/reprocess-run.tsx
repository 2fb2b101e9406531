import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { formatAgo, formatCount, formatInstant, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { usePermission } from '../session.ts';
import { DELIVERY_STATUSES, PROVIDERS, RUN_STATES } from '../words.ts';

type Run = Schemas['ReprocessRun'];
type Plan = Schemas['ReprocessPlan'];
type NewRun = Schemas['NewReprocessRun'];

const POLL_MS = 1_000;

const PLAN_STATES: Readonly<
  Record<Plan['outcome'], readonly [tone: 'good' | 'bad' | 'wait' | 'plain', text: string]>
> = {
  would_append: ['wait', 'Would be added'],
  open: ['wait', 'Not yet added'],
  appended: ['good', 'Added'],
  refused: ['bad', 'Not added'],
  kept: ['plain', 'Stays as it is'],
};

const isOver = ({ status }: Run) => status === 'finished' || status === 'cancelled';

/** Says which deliveries a run reads. */
function describeRun({ deliveryId, from, to, source, processingStatus }: Run): string {
  if (deliveryId !== null) return `The delivery ${deliveryId}`;
  const parts = [
    processingStatus === null ? 'All deliveries' : `${DELIVERY_STATUSES[processingStatus]} deliveries`,
    source === null ? '' : `of ${PROVIDERS[source]}`,
    from === null ? '' : `from ${formatInstant(from)}`,
    to === null ? '' : `until ${formatInstant(to)}`,
  ];
  return parts.filter((part) => part !== '').join(' ');
}

/** Says what a run without a difference means, instead of an empty list and sums of $0.00. */
function NothingDiffers({ run }: { readonly run: Run }) {
  if (run.status === 'cancelled')
    return <Text size="sm">The run was stopped. None of the deliveries read by then differs.</Text>;
  const reason =
    run.deliveries === 0
      ? 'There are no such deliveries.'
      : 'What is stored is what the current version of the service reads in these deliveries.';
  return (
    <Text size="sm">
      <strong>{run.dryRun ? 'Nothing would change.' : 'Nothing was changed.'}</strong> {reason}
    </Text>
  );
}

function MoneyOf({ run }: { readonly run: Run }) {
  if (run.commissionCents === null || run.revenueCents === null) return null;
  if (run.commissionCents === 0 && run.revenueCents === 0)
    return <Text size="sm">{run.dryRun ? 'No money would be added.' : 'No money was added.'}</Text>;
  return (
    <Text size="sm">
      <strong>{formatMoney(run.commissionCents)}</strong> of commissions and{' '}
      <strong>{formatMoney(run.revenueCents)}</strong> of revenue{' '}
      {run.dryRun ? 'would be added.' : 'were added.'}
    </Text>
  );
}

function ChangeText({ change }: { readonly change: Plan['changes'][number] }) {
  return (
    <Text size="sm">
      {change.what}
      {change.amountCents !== null && <strong> {formatMoney(change.amountCents)}</strong>}
      {change.today !== null && <>: {change.today}</>}
      {change.stored !== null && (
        <span className="quiet">
          {' '}
          ({change.appended ? 'stored' : 'stays'}: {change.stored})
        </span>
      )}
    </Text>
  );
}

function Changes({ appId, run }: { readonly appId: string; readonly run: Run }) {
  const list = useList(
    ['reprocess-changes', appId, run.id, run.status, run.applied],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/reprocess-runs/{reprocessRunId}/changes', {
          params: { path: { appId, reprocessRunId: run.id }, query: { limit: 20, ...cursor } },
        }),
      ),
    { idOf: ({ deliveryId }) => deliveryId },
  );
  return (
    <ListView list={list} what="differences" nothing={null}>
      {(rows) => (
        <table className="rows">
          <caption className="spoken">What differs, by delivery</caption>
          <thead>
            <tr>
              <th scope="col">Received</th>
              <th scope="col">Result</th>
              <th scope="col">Changes</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const [tone, text] = PLAN_STATES[row.outcome];
              return (
                <tr key={row.deliveryId}>
                  <td>
                    <Text size="sm" title={formatInstant(row.receivedAt)}>
                      {formatAgo(row.receivedAt)}
                    </Text>
                    <Text size="xs" className="quiet">
                      {PROVIDERS[row.source]}
                    </Text>
                  </td>
                  <td>
                    <Tag tone={tone}>{text}</Tag>
                  </td>
                  <td>
                    {row.refusal !== null && <Text size="sm">{row.refusal}</Text>}
                    {row.changes.map((change, index) => (
                      <ChangeText key={index} change={change} />
                    ))}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </ListView>
  );
}

/** A run: its progress, then what it found, and what can be done next. */
export function RunView({
  appId,
  id,
  onShow,
  onClose,
}: {
  readonly appId: string;
  readonly id: string;
  /** Shows another run; null for none. */
  readonly onShow: (id: string | null) => void;
  readonly onClose: () => void;
}) {
  const path = { appId, reprocessRunId: id };
  const run = useQuery({
    queryKey: ['reprocess-run', appId, id],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/reprocess-runs/{reprocessRunId}', { params: { path } })),
    refetchInterval: ({ state }) => (state.data !== undefined && isOver(state.data) ? false : POLL_MS),
  });
  const mayApply = usePermission('setup');
  const apply = useRequest(appId, onShow);
  const cancel = useChange(
    async () =>
      await read(api.POST('/apps/{appId}/reprocess-runs/{reprocessRunId}/cancel', { params: { path } })),
    ['reprocess-run', appId, id],
  );
  if (run.data === undefined) {
    return run.error === null ? (
      <Waiting what="the run" />
    ) : (
      <ErrorBox error={run.error} retry={() => void run.refetch()} />
    );
  }
  const { data } = run;
  const [tone, text] = RUN_STATES[data.status];
  return (
    <Stack gap="md">
      <Group gap="xs">
        <Text fw={600}>{data.dryRun ? 'Dry run' : 'Run'}</Text>
        <Tag tone={tone}>{text}</Tag>
        {data.workflowUrl !== null && (
          <Text size="xs">
            <a href={data.workflowUrl} target="_blank" rel="noreferrer">
              Temporal
            </a>
          </Text>
        )}
      </Group>
      <Text size="sm" className="quiet">
        {describeRun(data)}. Requested {formatInstant(data.createdAt)}.
      </Text>
      {!isOver(data) && (
        <Progress
          value={data.deliveries === 0 ? 0 : (data.seen / data.deliveries) * 100}
          aria-label="Progress of the run"
        />
      )}
      <Text size="sm" role="status">
        {formatCount(data.seen)} of {formatCount(data.deliveries)} deliveries read,{' '}
        {formatCount(data.changed)} differ{data.dryRun ? '' : `, ${formatCount(data.applied)} added to`}.
      </Text>
      {data.lastError !== null && <ErrorBox error={new Error(`${data.lastError} It is tried again.`)} />}
      {data.changed > 0 && (isOver(data) || data.dryRun) && <MoneyOf run={data} />}
      {isOver(data) &&
        (data.changed === 0 ? <NothingDiffers run={data} /> : <Changes appId={appId} run={data} />)}
      {apply.error !== null && <ErrorBox error={apply.error} />}
      {cancel.error !== null && <ErrorBox error={cancel.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
        {!isOver(data) && mayApply && (
          <Button
            variant="default"
            loading={cancel.isPending || data.status === 'cancelling'}
            onClick={() => cancel.mutate(undefined)}
          >
            Stop the run
          </Button>
        )}
        {isOver(data) && (
          <Button variant="default" onClick={() => onShow(null)}>
            New dry run
          </Button>
        )}
        {data.isApplicable && mayApply && (
          <Button loading={apply.isPending} onClick={() => apply.mutate({ apply: data.id })}>
            Add what it shows
          </Button>
        )}
      </Group>
    </Stack>
  );
}

/** Requests a run and shows it. */
export function useRequest(appId: string, onShow: (id: string) => void) {
  return useChange(
    async (body: NewRun) => {
      const made = await read(
        api.POST('/apps/{appId}/reprocess-runs', { params: { path: { appId } }, body }),
      );
      onShow(made.id);
    },
    ['reprocess-runs', appId],
    // A dry run that is applied cannot be applied again.
    ['reprocess-run', appId],
  );
}
