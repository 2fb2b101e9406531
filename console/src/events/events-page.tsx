import { Text } from '@mantine/core';
import { Link, useParams } from 'react-router';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { NoPermission, PageHead } from '../parts.tsx';
import {
  FilterBar,
  oneOf,
  RANGE_FILTERS,
  RangeFilter,
  SelectFilter,
  TextFilter,
  useFilters,
  useRange,
} from '../parts/filters.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { SearchFilter } from '../parts/search-filter.tsx';
import { usePermission } from '../session.ts';
import { EVENT_KINDS, OUTCOMES, PROVIDERS } from '../words.ts';
import { Amount, Outcome } from './outcome.tsx';

type Event = Schemas['Event'];

const ENVIRONMENTS = { production: 'Production', sandbox: 'Sandbox' } as const;

function EventRow({ row, appId }: { readonly row: Event; readonly appId: string }) {
  return (
    <tr>
      <td>
        <Text size="sm" title={formatInstant(row.receivedAt)}>
          {formatAgo(row.receivedAt)}
        </Text>
        <Text size="xs" className="quiet">
          {PROVIDERS[row.source]}
        </Text>
      </td>
      <td>
        <Link to={`/apps/${appId}/events/${row.eventId}`}>{EVENT_KINDS[row.kind]}</Link>
        {row.productId !== null && (
          <Text size="xs" className="quiet">
            {row.productId}
          </Text>
        )}
      </td>
      <td>{row.customerUserId ?? <span className="quiet">none</span>}</td>
      <td className="number lead">
        <Amount event={row} />
      </td>
      <td>
        <Outcome event={row} appId={appId} />
      </td>
    </tr>
  );
}

function Events({ appId }: { readonly appId: string }) {
  const filters = useFilters('kind', 'source', 'environment', 'outcome', 'user', 'creator', ...RANGE_FILTERS);
  const range = useRange(filters);
  const kind = oneOf(Object.keys(EVENT_KINDS) as Event['kind'][], filters.get('kind'));
  const source = oneOf(Object.keys(PROVIDERS) as Event['source'][], filters.get('source'));
  const environment = oneOf(['production', 'sandbox'], filters.get('environment'));
  const outcome = oneOf(Object.keys(OUTCOMES) as Event['outcome'][], filters.get('outcome'));
  const [customerUserId, affiliateId] = [filters.get('user'), filters.get('creator')];
  const query = {
    ...range,
    ...given({ kind, source, environment, outcome, customerUserId, affiliateId }),
  };
  const list = useList(
    ['events', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/events', { params: { path: { appId }, query: { ...query, ...cursor } } }),
      ),
    { idOf: ({ eventId }) => eventId, isLive: true },
  );
  return (
    <>
      <FilterBar filters={filters}>
        <SelectFilter filters={filters} name="outcome" label="Outcome" options={OUTCOMES} />
        <SelectFilter filters={filters} name="kind" label="Kind" options={EVENT_KINDS} />
        <SelectFilter filters={filters} name="source" label="Provider" options={PROVIDERS} />
        <SelectFilter filters={filters} name="environment" label="Environment" options={ENVIRONMENTS} />
        <TextFilter filters={filters} name="user" label="User id" placeholder="exactly as reported" />
        <SearchFilter appId={appId} filters={filters} kind="creator" />
        <RangeFilter filters={filters} />
      </FilterBar>
      <ListView
        list={list}
        what="events"
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
        nothingYet={
          <>
            An event appears here within seconds of a webhook of your billing provider.{' '}
            <Link to={`/apps/${appId}/setup`}>Set the webhook up</Link>
          </>
        }
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Received</th>
                <th scope="col">Event</th>
                <th scope="col">User</th>
                <th scope="col" className="number">
                  Amount
                </th>
                <th scope="col">Outcome</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <EventRow key={row.eventId} row={row} appId={appId} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </>
  );
}

export default function EventsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <PageHead title="Events">What your billing providers reported, and what it earned.</PageHead>
      {canRead ? <Events key={appId} appId={appId} /> : <NoPermission permission="read" what="the events" />}
    </>
  );
}
