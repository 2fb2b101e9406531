import { useState } from 'react';
import { Link } from 'react-router';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatInstant, formatMoney } from '../format.ts';
import { DataTable } from '../parts/data-table.tsx';
import type { Column } from '../parts/data-table.tsx';
import type { Filters } from '../parts/filters.ts';
import { ListView, useList } from '../parts/list.tsx';
import { MoneyTag } from '../parts/money-state.tsx';
import { BulkBar, useSelection } from '../parts/selection.tsx';
import { MarkDialog, PayoutsBulk } from './bulk.tsx';
import { PAYOUT_KEYS } from './keys.ts';
import { keyName } from './words.ts';

/** Names who paid: the label of the key, or its first and last characters. */
export const payerOf = ({ createdBy }: Pick<Schemas['Payout'], 'createdBy'>): string =>
  createdBy === null ? 'Recorded from its CSV' : keyName(createdBy);

const historyColumnsOf = (
  appId: string,
  hasCreator: boolean,
): readonly (Column<Schemas['Payout']> | false)[] => [
  {
    name: 'When',
    cell: (row) => <Link to={`/apps/${appId}/payouts/${row.id}`}>{formatInstant(row.createdAt)}</Link>,
  },
  hasCreator && { name: 'Creator', share: 28, cell: (row) => <bdi>{row.affiliateName}</bdi> },
  {
    name: 'By',
    share: 22,
    dropsAt: 1,
    cell: (row) => <span className="quiet">{payerOf(row)}</span>,
  },
  { name: 'Money', cell: (row) => <MoneyTag said={row.money?.state ?? null} /> },
  { name: 'Rows', kind: 'number', isOffPhone: true, cell: (row) => formatCount(row.itemCount) },
  { name: 'Total', kind: 'number', isLead: true, cell: (row) => formatMoney(row.totalCents) },
];

const idOf = ({ id }: Schemas['Payout']) => id;

/** The payouts of an app or of a creator, the latest first. Those of an app can be selected. */
export function PayoutHistory({
  appId,
  affiliateId,
  filters,
}: {
  readonly appId: string;
  readonly affiliateId?: string | undefined;
  /** Given where `affiliateId` is a filter: the rows name their creator. */
  readonly filters?: Filters;
}) {
  const isOfApp = filters !== undefined;
  const selection = useSelection<Schemas['Payout']>(
    ({ affiliateName, createdAt }) => `the payout to ${affiliateName} of ${formatInstant(createdAt)}`,
  );
  const [marking, setMarking] = useState<readonly Schemas['Payout'][] | null>(null);
  const list = useList(
    PAYOUT_KEYS.list(appId, affiliateId),
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/payouts', {
          params: {
            path: { appId },
            query: { limit: 25, ...cursor, ...given({ affiliateId }) },
          },
        }),
      ),
    { idOf },
  );
  return (
    <>
      <ListView
        list={list}
        what="payouts"
        isFiltered={isOfApp && !filters.isEmpty}
        onClearFilters={() => filters?.clear()}
        nothingYet="What you pay is listed here, with its CSV."
      >
        {(rows) => (
          <>
            <DataTable
              columns={historyColumnsOf(appId, isOfApp)}
              rows={rows}
              idOf={idOf}
              {...(isOfApp ? { selection } : {})}
            />
            <BulkBar rows={rows} idOf={idOf} selection={selection}>
              {(selected) => (
                <PayoutsBulk appId={appId} selected={selected} onMark={() => setMarking(selected)} />
              )}
            </BulkBar>
          </>
        )}
      </ListView>
      <MarkDialog
        appId={appId}
        payouts={marking}
        onDone={(done) => selection.set(done.map(idOf), false)}
        onClose={() => setMarking(null)}
      />
    </>
  );
}
