import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from 'react-router';
import { api, given, AS_CSV, read, readCsv } from '../api/client.ts';
import { formatMoney } from '../format.ts';
import { NoPermission, PageHead } from '../parts.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
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
import { SearchFilter } from '../parts/search-filter.tsx';
import { usePermission } from '../session.ts';
import { PROVIDERS } from '../words.ts';
import { CommissionTable, KINDS, useCommissions } from './commission-table.tsx';
import type { CommissionQuery } from './commission-table.tsx';
import { COMMISSION_STATUSES } from '../parts/money-state.tsx';

const keysOf = <K extends string>(texts: Readonly<Record<K, string>>) => Object.keys(texts) as K[];

/** Shows the sum of what is listed. Stored sums exist by creator, link and time only. */
function Sum({ appId, query }: { readonly appId: string; readonly query: CommissionQuery }) {
  const { status, kind, source, payoutId, ...summed } = query;
  const hasSum = status === undefined && kind === undefined && source === undefined && payoutId === undefined;
  const totals = useQuery({
    queryKey: ['commission-totals', appId, summed],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/commissions/totals', { params: { path: { appId }, query: summed } })),
    enabled: hasSum,
  });
  return (
    <Text size="sm" className="quiet">
      {hasSum
        ? totals.data !== undefined && (
            <>
              Sum: <b>{formatMoney(totals.data.totalCents)}</b>, net of reversals
            </>
          )
        : 'The sum is shown for the filters creator, link and time.'}
    </Text>
  );
}

function Commissions({ appId }: { readonly appId: string }) {
  const filters = useFilters('status', 'kind', 'source', 'creator', 'link', 'payout', ...RANGE_FILTERS);
  const range = useRange(filters);
  const status = oneOf(keysOf(COMMISSION_STATUSES), filters.get('status'));
  const kind = oneOf(keysOf(KINDS), filters.get('kind'));
  const source = oneOf(keysOf(PROVIDERS), filters.get('source'));
  const [affiliateId, linkId, payoutId] = [
    filters.get('creator'),
    filters.get('link'),
    filters.get('payout'),
  ];
  const query: CommissionQuery = {
    ...range,
    ...given({ status, kind, source, affiliateId, linkId, payoutId }),
  };
  const list = useCommissions(appId, query);
  return (
    <>
      <FilterBar filters={filters}>
        <SelectFilter filters={filters} name="status" label="Status" options={COMMISSION_STATUSES} />
        <SelectFilter filters={filters} name="kind" label="Kind" options={KINDS} />
        <SelectFilter filters={filters} name="source" label="Provider" options={PROVIDERS} />
        <SearchFilter appId={appId} filters={filters} kind="creator" />
        <SearchFilter appId={appId} filters={filters} kind="link" />
        <TextFilter filters={filters} name="payout" label="Payout" placeholder="pay_…" />
        <RangeFilter filters={filters} label="Purchased" />
      </FilterBar>
      <Group justify="space-between" mb="xs" gap="sm">
        <Sum appId={appId} query={query} />
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
      </Group>
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
      <PageHead title="Commissions">
        The ledger: what creators earned, and what refunds took back. Rows are only added, never edited.
      </PageHead>
      {canRead ? (
        <Commissions key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="commissions" />
      )}
    </>
  );
}
