import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import type { Filters } from '../parts/filters.ts';
import { ErrorBox } from '../parts.tsx';
import { usePermission } from '../session.ts';
import { DELIVERY_STATUSES, PROVIDERS, RUN_STATES } from '../words.ts';
import { RunView, useRequest } from './reprocess-run.tsx';

/** What of the page's filters chooses the deliveries of a dry run. */
export interface Selection {
  readonly from?: number;
  readonly to?: number;
  readonly source?: Schemas['Delivery']['source'];
  readonly processingStatus?: Schemas['Delivery']['processingStatus'];
}

const DEFAULT_DAYS = 30;
const DAY_MS = 86_400_000;

const OUTCOMES = ['processed', 'duplicate', 'ignored', 'failed'] as const;

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
        The current version of the service reads the stored webhooks again. A dry run shows what is missing in
        the ledger and changes nothing. You then decide whether it is added; nothing that is stored is edited.
      </Text>
      <Text size="sm">{what}</Text>
      {!mayStart && (
        <Text size="sm" className="quiet">
          It needs the permission “setup”, which you do not have.
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
            It needs the permission “setup”, which you do not have.
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
