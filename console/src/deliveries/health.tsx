import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { atLeast, formatAgo, formatCount, formatInstant } from '../format.ts';
import { ErrorBox, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import type { Filters } from '../parts/filters.ts';

type Health = Schemas['ProviderHealth'];

const HEALTH_MS = 15_000;
/** A delivery takes seconds. */
const LATE_MS = 5 * 60_000;

function Ago({ at }: { readonly at: number | null }) {
  if (at === null) return <span className="quiet">never</span>;
  return <span title={formatInstant(at)}>{formatAgo(at)}</span>;
}

function stateOf({ failed, refused, unfinished, oldestUnfinishedAt, lastAcceptedAt }: Health, now: number) {
  if (unfinished > 0 && oldestUnfinishedAt !== null && now - oldestUnfinishedAt > LATE_MS)
    return { tone: 'bad', text: 'Stuck' } as const;
  if (failed > 0) return { tone: 'bad', text: 'Some failed' } as const;
  if (refused > 0) return { tone: 'bad', text: 'Some refused' } as const;
  return lastAcceptedAt === null
    ? ({ tone: 'wait', text: 'Waiting' } as const)
    : ({ tone: 'good', text: 'Works' } as const);
}

const countOf = (row: Health, of: Health['lowerBounds'][number]): string =>
  atLeast(formatCount(row[of]), row.lowerBounds.includes(of));

/** A count that shows its deliveries in the list below. */
function StatusCount({
  row,
  status,
  text,
  filters,
}: {
  readonly row: Health;
  readonly status: 'failed' | 'rejected';
  readonly text: string;
  readonly filters: Filters;
}) {
  return (
    <Button
      variant="default"
      size="compact-xs"
      aria-label={`Show ${text} ${status} of ${row.title}`}
      onClick={() => filters.set({ status, source: row.provider, range: '24h', from: '', to: '' })}
    >
      {text}
    </Button>
  );
}

const columnsOf = (now: number, filters: Filters): readonly Column<Health>[] => [
  {
    name: 'Provider',
    cell: (row) => (
      <>
        <span>{row.title}</span> {!row.configured && <span className="quiet">No secret is set</span>}
      </>
    ),
  },
  {
    name: 'State',
    isLead: true,
    cell: (row) => {
      const { tone, text } = stateOf(row, now);
      return <Tag tone={tone}>{text}</Tag>;
    },
  },
  {
    name: 'Last accepted',
    share: 16,
    dropsAt: 1,
    isNamed: true,
    cell: (row) => <Ago at={row.lastAcceptedAt} />,
  },
  { name: 'Accepted, 24 h', kind: 'number', cell: (row) => countOf(row, 'accepted') },
  {
    name: 'Failed, 24 h',
    kind: 'number',
    cell: (row) =>
      row.failed === 0 ? (
        '0'
      ) : (
        <StatusCount row={row} status="failed" text={countOf(row, 'failed')} filters={filters} />
      ),
  },
  {
    name: 'Refused, 24 h',
    kind: 'number',
    cell: (row) =>
      row.refused === 0 ? (
        '0'
      ) : (
        <StatusCount row={row} status="rejected" text={formatCount(row.refused)} filters={filters} />
      ),
  },
  {
    name: 'Oldest without an outcome',
    share: 24,
    dropsAt: 1,
    isNamed: true,
    cell: (row) =>
      row.oldestUnfinishedAt === null ? (
        <span className="quiet">none</span>
      ) : (
        <>
          <Ago at={row.oldestUnfinishedAt} />{' '}
          <span className="quiet">{countOf(row, 'unfinished')} in progress</span>
        </>
      ),
  },
];

/** How well the webhooks of each provider arrive that is set up or has sent something. */
export function ProviderHealth({ appId, filters }: { readonly appId: string; readonly filters: Filters }) {
  const summary = useQuery({
    queryKey: ['deliveries-summary', appId],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/diagnostics/webhooks/summary', { params: { path: { appId } } })),
    refetchInterval: HEALTH_MS,
  });
  if (summary.data === undefined) {
    return summary.error === null ? (
      <Waiting what="the state of the webhooks" />
    ) : (
      <ErrorBox error={summary.error} retry={() => void summary.refetch()} />
    );
  }
  const used = summary.data.providers.filter(
    (row) => row.configured || row.lastAcceptedAt !== null || row.lastRefusedAt !== null,
  );
  if (used.length === 0) return null;
  return (
    <div className="surface" style={{ marginBottom: 24 }}>
      <DataTable
        caption="How well the webhooks of each provider arrive"
        columns={columnsOf(summary.dataUpdatedAt, filters)}
        rows={used}
        idOf={({ provider }) => provider}
      />
    </div>
  );
}
