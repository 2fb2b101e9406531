import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from 'react-router';
import { api, given, AS_CSV, read, readCsv } from '../api/client.ts';
import { formatMoney } from '../format.ts';
import { NoPermission } from '../parts.tsx';
import { ColumnsButton } from '../parts/columns-button.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter, creatorFilter, linkFilter, rangeFilter, textFilter } from '../parts/filter-kinds.ts';
import { oneOf, RANGE_FILTERS, useFilters, useRange } from '../parts/filters.ts';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { PROVIDERS } from '../words.ts';
import { commissionColumns, CommissionTable, KINDS, useCommissions } from './commission-table.tsx';
import type { CommissionQuery } from './commission-table.tsx';
import { COMMISSION_STATUSES } from '../parts/money-state.tsx';

const kindsOf = (appId: string) => [
  choiceFilter('status', 'Status', COMMISSION_STATUSES),
  choiceFilter('kind', 'Kind', KINDS),
  choiceFilter('source', 'Provider', PROVIDERS),
  creatorFilter(appId),
  linkFilter(appId),
  textFilter('user', 'User', 'The whole user id'),
  textFilter('payout', 'Payout', 'pay_…'),
  rangeFilter('Dated'),
];

const keysOf = <K extends string>(texts: Readonly<Record<K, string>>) => Object.keys(texts) as K[];

/** Shows the sum of what is listed. */
function Sum({ appId, query }: { readonly appId: string; readonly query: CommissionQuery }) {
  const totals = useQuery({
    queryKey: ['commission-totals', appId, query],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/commissions/totals', { params: { path: { appId }, query } })),
  });
  const cents = totals.data?.totalCents;
  return (
    <Text size="sm" className="quiet" mb="xs" mih={20}>
      {cents === null &&
        'There are too many rows to add up. Filter by creator or user, or choose a shorter time.'}
      {typeof cents === 'number' && (
        <>
          Sum: <b>{formatMoney(cents)}</b>
          {query.kind === undefined &&
            (query.from === undefined && query.to === undefined
              ? ', net of reversals'
              : ', net of the reversals of this time')}
        </>
      )}
    </Text>
  );
}

function Commissions({ appId }: { readonly appId: string }) {
  const filters = useFilters(
    'status',
    'kind',
    'source',
    'creator',
    'link',
    'user',
    'payout',
    ...RANGE_FILTERS,
  );
  const range = useRange(filters);
  const status = oneOf(keysOf(COMMISSION_STATUSES), filters.get('status'));
  const kind = oneOf(keysOf(KINDS), filters.get('kind'));
  const source = oneOf(keysOf(PROVIDERS), filters.get('source'));
  const [affiliateId, linkId, customerUserId, payoutId] = [
    filters.get('creator'),
    filters.get('link'),
    filters.get('user'),
    filters.get('payout'),
  ];
  const query: CommissionQuery = {
    ...range,
    ...given({ status, kind, source, affiliateId, linkId, customerUserId, payoutId }),
  };
  const list = useCommissions(appId, query);
  return (
    <>
      <FilterBar
        filters={filters}
        kinds={kindsOf(appId)}
        aside={
          <>
            <ViewsButton list="commissions" appId={appId} filters={filters} />
            <ColumnsButton table="commissions" columns={commissionColumns(appId)} />
            <CsvButton
              name="commissions"
              readPart={async (cursor) =>
                await readCsv(
                  api.GET('/apps/{appId}/commissions', {
                    params: { path: { appId }, query: { ...query, ...cursor } },
                    ...AS_CSV,
                  }),
                )
              }
            />
          </>
        }
      />
      <Sum appId={appId} query={query} />
      <CommissionTable
        appId={appId}
        list={list}
        query={query}
        hasCreator
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
      />
    </>
  );
}

export default function CommissionsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      {canRead ? (
        <Commissions key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="commissions" />
      )}
    </>
  );
}
