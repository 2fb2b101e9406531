import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import { api, read, serviceUrl } from '../api/client.ts';
import { formatCount, formatDate, formatMoney } from '../format.ts';
import { ListSurface, Nothing, useList } from '../lists.tsx';
import { PageHead } from '../parts.tsx';
import { KEYS } from './queries.ts';

/** Returns the address of the CSV of a payout. */
export const csvUrl = (id: string): string => new URL(`creator/payouts/${id}/csv`, serviceUrl).href;

export function PayoutsPage() {
  const payouts = useList(
    KEYS.payouts,
    async (cursor) =>
      await read(api.GET('/creator/payouts', { params: { query: cursor === undefined ? {} : { cursor } } })),
  );
  return (
    <>
      <PageHead title="Payouts">What was paid to you, with a statement for each payout.</PageHead>
      <ListSurface
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
                  <td className="number" data-name="Amount">
                    {formatMoney(row.totalCents)}
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
                      href={csvUrl(row.id)}
                      size="sm"
                      download
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
      </ListSurface>
    </>
  );
}
