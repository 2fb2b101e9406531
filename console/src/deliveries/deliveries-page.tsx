import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, rangeFilter } from '../parts/filter-kinds.ts';
import { oneOf, RANGE_FILTERS, useFilters, useRange } from '../parts/filters.ts';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { ProviderHealth } from './health.tsx';
import { Reprocess } from './reprocess.tsx';
import { DELIVERY_STATUSES, PROVIDERS } from '../words.ts';

type Delivery = Schemas['Delivery'];
type Status = Delivery['processingStatus'];

const KINDS = [
  choiceFilter('source', 'Provider', PROVIDERS),
  choiceFilter('status', 'Outcome', DELIVERY_STATUSES),
  rangeFilter(),
];

const TONES: Readonly<Record<Status, 'good' | 'bad' | 'wait' | 'plain'>> = {
  received: 'wait',
  processing: 'wait',
  processed: 'good',
  duplicate: 'plain',
  ignored: 'plain',
  failed: 'bad',
  rejected: 'bad',
};

const columnsOf = (appId: string): readonly Column<Delivery>[] => [
  {
    name: 'Received',
    cell: (row) => <span title={formatInstant(row.receivedAt)}>{formatAgo(row.receivedAt)}</span>,
  },
  {
    name: 'Provider',
    isAbout: true,
    cell: (row) => (
      <>
        <span>{PROVIDERS[row.source]}</span> {row.selfTest && <span className="quiet">Self-test</span>}
      </>
    ),
  },
  {
    name: 'Outcome',
    isLead: true,
    cell: (row) => <Tag tone={TONES[row.processingStatus]}>{DELIVERY_STATUSES[row.processingStatus]}</Tag>,
  },
  {
    name: 'Event or problem',
    share: 40,
    isAbout: true,
    cell: (row) => (
      <>
        {row.eventId !== null && row.eventCount > 0 && (
          <Link to={`/apps/${appId}/events/${row.eventId}`} data-opens-row>
            {row.sourceEventId ?? row.eventId}
          </Link>
        )}
        {row.lastError !== null && <span className="wrapped"> {row.lastError}</span>}
        {row.processingStatus === 'rejected' && (
          <>
            {' '}
            <Link to={`/apps/${appId}/setup?provider=${row.source}`}>Check the secret</Link>
          </>
        )}
      </>
    ),
  },
  {
    name: 'Workflow',
    kind: 'actions',
    cell: (row) =>
      row.workflowUrl !== null && (
        <a href={row.workflowUrl} target="_blank" rel="noreferrer">
          Temporal
        </a>
      ),
  },
];

function Deliveries({ appId }: { readonly appId: string }) {
  const filters = useFilters('status', 'source', ...RANGE_FILTERS);
  const runFilter = useFilters('run');
  const range = useRange(filters);
  const [openedAt] = useState(() => Date.now());
  const processingStatus = oneOf(Object.keys(DELIVERY_STATUSES) as Status[], filters.get('status'));
  const source = oneOf(Object.keys(PROVIDERS) as Delivery['source'][], filters.get('source'));
  const query = {
    ...range,
    ...given({ processingStatus, source }),
  };
  const columns = columnsOf(appId);
  const list = useList(
    ['deliveries', appId, query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/diagnostics/webhooks', {
          params: { path: { appId }, query: { ...query, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id, isLive: true },
  );
  return (
    <>
      <ProviderHealth appId={appId} filters={filters} />
      <FilterBar
        filters={filters}
        kinds={KINDS}
        aside={
          <>
            <ViewsButton list="deliveries" appId={appId} filters={filters} />
            <ColumnsButton table="deliveries" columns={columns} />
            <Reprocess appId={appId} selection={query} openedAt={openedAt} filters={runFilter} />
          </>
        }
      />
      <ListView
        list={list}
        what="deliveries"
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
        nothingYet={
          <>
            A delivery appears here within seconds of a webhook of your billing provider.{' '}
            <Link to={`/apps/${appId}/setup`}>Set the webhook up</Link>
          </>
        }
      >
        {(rows) => <DataTable name="deliveries" columns={columns} rows={rows} idOf={({ id }) => id} />}
      </ListView>
    </>
  );
}

export default function DeliveriesPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      {canRead ? (
        <Deliveries key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="the deliveries" />
      )}
    </>
  );
}
