import { Link, useParams } from 'react-router';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { NoPermission } from '../parts.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, creatorFilter, rangeFilter, textFilter } from '../parts/filter-kinds.ts';
import { oneOf, RANGE_FILTERS, useFilters, useRange } from '../parts/filters.ts';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { EVENT_KINDS, OUTCOMES, PROVIDERS } from '../words.ts';
import { Amount, Outcome, Why } from './outcome.tsx';

type Event = Schemas['Event'];

const ENVIRONMENTS = { production: 'Production', sandbox: 'Sandbox' } as const;

const USER = textFilter('user', 'User id', 'User id, exactly as reported');
const kindsOf = (appId: string) => [
  choiceFilter('outcome', 'Outcome', OUTCOMES),
  choiceFilter('kind', 'Kind', EVENT_KINDS),
  choiceFilter('source', 'Provider', PROVIDERS),
  choiceFilter('environment', 'Environment', ENVIRONMENTS),
  creatorFilter(appId),
  rangeFilter(),
];

const columnsOf = (appId: string): readonly Column<Event>[] => [
  {
    name: 'Received',
    cell: (row) => <span title={formatInstant(row.receivedAt)}>{formatAgo(row.receivedAt)}</span>,
  },
  { name: 'Provider', dropsAt: 2, isOffPhone: true, cell: (row) => PROVIDERS[row.source] },
  {
    name: 'Event',
    share: 24,
    isAbout: true,
    cell: (row) => (
      <>
        <Link to={`/apps/${appId}/events/${row.eventId}`}>{EVENT_KINDS[row.kind]}</Link>{' '}
        {row.productId !== null && <span className="quiet">{row.productId}</span>}
      </>
    ),
  },
  {
    name: 'User',
    share: 16,
    dropsAt: 1,
    isOffPhone: true,
    cell: (row) => row.customerUserId ?? <span className="quiet">none</span>,
  },
  { name: 'Amount', kind: 'number', isLead: true, cell: (row) => <Amount event={row} /> },
  { name: 'Outcome', cell: (row) => <Outcome event={row} /> },
  { name: 'For or why', share: 36, dropsAt: 1, cell: (row) => <Why event={row} appId={appId} /> },
];

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
  const columns = columnsOf(appId);
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
      <FilterBar
        filters={filters}
        lead={USER}
        kinds={kindsOf(appId)}
        aside={
          <>
            <ViewsButton list="events" appId={appId} filters={filters} />
            <ColumnsButton table="events" columns={columns} />
          </>
        }
      />
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
        {(rows) => <DataTable name="events" columns={columns} rows={rows} idOf={({ eventId }) => eventId} />}
      </ListView>
    </>
  );
}

export default function EventsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      {canRead ? <Events key={appId} appId={appId} /> : <NoPermission permission="read" what="the events" />}
    </>
  );
}
