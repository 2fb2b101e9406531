import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatAgo, formatCount, formatInstant, formatMoney } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import type { Filters } from '../parts/filters.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { usePermission } from '../session.ts';
import { DELIVERY_STATUSES, PROVIDERS } from '../words.ts';

type Run = Schemas['ReprocessRun'];
type Plan = Schemas['ReprocessPlan'];
type NewRun = Schemas['NewReprocessRun'];

/** What of the page's filters chooses the deliveries of a dry run. */
export interface Selection {
  readonly from?: number;
  readonly to?: number;
  readonly source?: Schemas['Delivery']['source'];
  readonly processingStatus?: Schemas['Delivery']['processingStatus'];
}

const POLL_MS = 1_000;
const DEFAULT_DAYS = 30;
const DAY_MS = 86_400_000;

const OUTCOMES = ['processed', 'duplicate', 'ignored', 'failed'] as const;

const RUN_STATES: Readonly<
  Record<Run['status'], readonly [tone: 'good' | 'bad' | 'wait' | 'plain', text: string]>
> = {
  waiting: ['wait', 'Waiting'],
  running: ['wait', 'In progress'],
  cancelling: ['wait', 'Stopping'],
  finished: ['good', 'Finished'],
  cancelled: ['plain', 'Cancelled'],
};

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
function RunView({
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
function useRequest(appId: string, onShow: (id: string) => void) {
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

function EarlierRuns({ appId, onShow }: { readonly appId: string; readonly onShow: (id: string) => void }) {
  const runs = useQuery({
    queryKey: ['reprocess-runs', appId],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/reprocess-runs', { params: { path: { appId }, query: { limit: 5 } } }),
      ),
  });
  if (runs.error !== null) return <ErrorBox error={runs.error} retry={() => void runs.refetch()} />;
  if (runs.data === undefined || runs.data.items.length === 0) return null;
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        Earlier runs
      </Text>
      {runs.data.items.map((run) => (
        <Group key={run.id} gap="xs">
          <Button variant="default" size="compact-xs" onClick={() => onShow(run.id)}>
            {run.dryRun ? 'Dry run' : 'Run'} of {formatInstant(run.createdAt)}
          </Button>
          <Tag tone={RUN_STATES[run.status][0]}>{RUN_STATES[run.status][1]}</Tag>
        </Group>
      ))}
    </Stack>
  );
}

function NewDryRun({
  appId,
  selection,
  openedAt,
  onShow,
  onClose,
}: {
  readonly appId: string;
  readonly selection: Selection;
  readonly openedAt: number;
  readonly onShow: (id: string) => void;
  readonly onClose: () => void;
}) {
  const request = useRequest(appId, onShow);
  const mayStart = usePermission('setup');
  const { source, processingStatus, to } = selection;
  const from = selection.from ?? openedAt - DEFAULT_DAYS * DAY_MS;
  const outcome = OUTCOMES.find((known) => known === processingStatus);
  const isPossible = processingStatus === undefined || outcome !== undefined;
  const what: ReactNode = isPossible ? (
    <>
      {outcome === undefined
        ? 'All deliveries'
        : `Deliveries with the outcome “${DELIVERY_STATUSES[outcome]}”`}
      {source === undefined ? '' : ` of ${PROVIDERS[source]}`}, received from {formatInstant(from)}
      {to === undefined ? ' until now' : ` until ${formatInstant(to)}`}. Change the filters of the page to
      choose others.
    </>
  ) : (
    <>
      Deliveries with the outcome “{processingStatus === undefined ? '' : DELIVERY_STATUSES[processingStatus]}
      ” cannot be processed again: they are in progress or were never accepted. Choose another outcome in the
      filters.
    </>
  );
  return (
    <Stack gap="md">
      <Text size="sm">
        The current version of the service reads what your providers sent once more. A dry run shows what is
        missing in the books and changes nothing. You then decide whether it is added; nothing that is stored
        is edited.
      </Text>
      <Text size="sm">{what}</Text>
      {!mayStart && (
        <Text size="sm" className="quiet">
          Your key lacks the permission “setup”.
        </Text>
      )}
      {request.error !== null && <ErrorBox error={request.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          data-autofocus
          disabled={!isPossible || !mayStart}
          loading={request.isPending}
          onClick={() =>
            request.mutate({
              from,
              ...(to === undefined ? {} : { to }),
              ...(source === undefined ? {} : { source }),
              ...(outcome === undefined ? {} : { processingStatus: outcome }),
            })
          }
        >
          Start a dry run
        </Button>
      </Group>
      <EarlierRuns appId={appId} onShow={onShow} />
    </Stack>
  );
}

/** The button that processes the deliveries of the filters again, and its dialog. The run that is shown is in the address. */
export function Reprocess({
  appId,
  selection,
  openedAt,
  filters,
}: {
  readonly appId: string;
  readonly selection: Selection;
  readonly openedAt: number;
  readonly filters: Filters;
}) {
  const mayStart = usePermission('setup');
  const shown = filters.get('run');
  const show = (id: string | null) => filters.set({ run: id ?? 'new' });
  const close = () => filters.set({ run: '' });
  return (
    <>
      <Stack gap={2}>
        <Button variant="default" size="xs" disabled={!mayStart} onClick={() => show(null)}>
          Process again …
        </Button>
        {!mayStart && (
          <Text size="xs" className="quiet">
            Your key lacks the permission “setup”.
          </Text>
        )}
      </Stack>
      <Dialog isOpen={shown !== undefined} onClose={close} title="Process deliveries again" size="lg">
        {shown === undefined ? null : shown === 'new' ? (
          <NewDryRun appId={appId} selection={selection} openedAt={openedAt} onShow={show} onClose={close} />
        ) : (
          <RunView key={shown} appId={appId} id={shown} onShow={show} onClose={close} />
        )}
      </Dialog>
    </>
  );
}
