import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatDate, formatMoney } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { ErrorBox, PageHead } from '../parts.tsx';
import { MoneyTag } from '../parts/money-state.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { api } from './api.ts';
import { usePayoutCsv } from './payout-csv.ts';
import { KEYS } from './queries.ts';

/** Says where the money of a payout is, and since when. */
export function PayoutMoney({
  payout: { money },
}: {
  readonly payout: Pick<Schemas['CreatorPayout'], 'money'>;
}) {
  return (
    <>
      <MoneyTag said={money?.state ?? null} /> {money !== undefined && formatDate(money.statedAt)}
    </>
  );
}

export function PayoutsPage() {
  const payouts = useList(
    KEYS.payouts,
    async (cursor) => await read(api.GET('/creator/payouts', { params: { query: cursor } })),
  );
  const save = usePayoutCsv();
  return (
    <>
      <PageHead title="Payouts">
        What was booked for you, whether it was sent, and a statement for each payout.
      </PageHead>
      {save.error !== null && <ErrorBox error={save.error} />}
      <ListView
        list={payouts}
        what="your payouts"
        nothing={<Nothing title="No payout yet">A payout contains what is due when it is made.</Nothing>}
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Date</th>
                <th scope="col" className="number">
                  Rows
                </th>
                <th scope="col" className="number">
                  Amount
                </th>
                <th scope="col">Money</th>
                <th scope="col">
                  <span className="spoken">Files</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>{formatDate(row.createdAt)}</td>
                  <td className="number" data-name="Rows">
                    {formatCount(row.itemCount)}
                  </td>
                  <td className="number lead" data-name="Amount">
                    {formatMoney(row.totalCents)}
                  </td>
                  <td>
                    <PayoutMoney payout={row} />
                  </td>
                  <td className="files">
                    <Anchor
                      component={Link}
                      to={`/payouts/${row.id}`}
                      size="sm"
                      aria-label={`Statement of ${formatDate(row.createdAt)}`}
                    >
                      Statement
                    </Anchor>{' '}
                    <Anchor
                      component="button"
                      type="button"
                      size="sm"
                      disabled={save.isPending}
                      onClick={() => save.mutate(row.id)}
                      aria-label={`CSV of ${formatDate(row.createdAt)}`}
                    >
                      CSV
                    </Anchor>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </>
  );
}
