import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { atLeast, formatAgo, formatCount, formatInstant } from '../format.ts';
import { ErrorBox, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import type { Filters } from '../parts/filters.tsx';

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

function HealthRow({
  row,
  now,
  filters,
}: {
  readonly row: Health;
  readonly now: number;
  readonly filters: Filters;
}) {
  const { tone, text: state } = stateOf(row, now);
  const count = (of: Health['lowerBounds'][number]) =>
    atLeast(formatCount(row[of]), row.lowerBounds.includes(of));
  const statusButton = (status: string, number: number, text: string) =>
    number === 0 ? (
      text
    ) : (
      <Button
        variant="default"
        size="compact-xs"
        aria-label={`Show ${text} ${status} of ${row.title}`}
        onClick={() => filters.set({ status, source: row.provider, range: '24h', from: '', to: '' })}
      >
        {text}
      </Button>
    );
  return (
    <tr>
      <td>
        <Text size="sm" fw={600}>
          {row.title}
        </Text>
        {!row.configured && (
          <Text size="xs" className="quiet">
            No secret is set
          </Text>
        )}
      </td>
      <td>
        <Tag tone={tone}>{state}</Tag>
      </td>
      <td data-name="Last accepted">
        <Ago at={row.lastAcceptedAt} />
      </td>
      <td className="number" data-name="Accepted, 24 h">
        {count('accepted')}
      </td>
      <td className="number" data-name="Failed, 24 h">
        {statusButton('failed', row.failed, count('failed'))}
      </td>
      <td className="number" data-name="Refused, 24 h">
        {statusButton('rejected', row.refused, formatCount(row.refused))}
      </td>
      <td data-name="Oldest without an outcome">
        {row.oldestUnfinishedAt === null ? (
          <span className="quiet">none</span>
        ) : (
          <>
            <Ago at={row.oldestUnfinishedAt} />
            <Text size="xs" className="quiet">
              {count('unfinished')} in progress
            </Text>
          </>
        )}
      </td>
    </tr>
  );
}

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
  const now = summary.dataUpdatedAt;
  return (
    <div className="surface" style={{ marginBottom: 24 }}>
      <table className="rows">
        <caption className="spoken">How well the webhooks of each provider arrive</caption>
        <thead>
          <tr>
            <th scope="col">Provider</th>
            <th scope="col">State</th>
            <th scope="col">Last accepted</th>
            <th scope="col" className="number">
              Accepted, 24 h
            </th>
            <th scope="col" className="number">
              Failed, 24 h
            </th>
            <th scope="col" className="number">
              Refused, 24 h
            </th>
            <th scope="col">Oldest without an outcome</th>
          </tr>
        </thead>
        <tbody>
          {used.map((row) => (
            <HealthRow key={row.provider} row={row} now={now} filters={filters} />
          ))}
        </tbody>
      </table>
    </div>
  );
}
