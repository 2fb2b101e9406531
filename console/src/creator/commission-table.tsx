import { Badge, Text } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import { earnedWords } from '../commissions/earned.tsx';
import { formatDate, formatMoney, formatRate } from '../format.ts';
import { stateOfCommission } from '../parts/money-state.tsx';

type Commission = Schemas['CreatorCommission'];

/** Returns when the status changes, or changed. */
function dateOf({ status, dueAt, paidAt, money }: Commission): string {
  const since = money?.statedAt ?? paidAt;
  if (status === 'paid') return since === null ? '' : `on ${formatDate(since)}`;
  return status === 'pending' ? `until ${formatDate(dueAt)}` : `since ${formatDate(dueAt)}`;
}

/** Returns what an earning was computed from. */
function shareOf({ rateBps, computedFrom }: Commission): string {
  if (computedFrom === undefined) return `Your share was ${formatRate(rateBps)}`;
  const { base = 'gross', baseEstimated = false, baseCents = 0, flatCents } = computedFrom;
  const policy = { base, baseEstimated, ...(flatCents === undefined ? {} : { flatCents }) };
  return earnedWords({ rateBps, baseCents, policy });
}

export function CommissionTable({ rows }: { readonly rows: readonly Commission[] }) {
  return (
    <>
      <table className="rows">
        <thead>
          <tr>
            <th scope="col">Date</th>
            <th scope="col">Why</th>
            <th scope="col">Status</th>
            <th scope="col" className="number">
              Amount
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <td style={{ whiteSpace: 'nowrap' }}>{formatDate(row.occurredAt)}</td>
              <td>
                {row.reason}
                {row.kind === 'earning' && (
                  <Text size="xs" className="quiet">
                    {shareOf(row)}
                  </Text>
                )}
              </td>
              <td>
                <Badge variant="default" size="sm" radius="sm" tt="none" fw={500}>
                  {stateOfCommission(row)}
                </Badge>{' '}
                <Text component="span" size="sm" className="quiet">
                  {dateOf(row)}
                </Text>
              </td>
              <td className="number lead">{formatMoney(row.amountCents)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.some(({ computedFrom }) => computedFrom?.baseEstimated === true) && (
        <Text size="xs" className="quiet" p="sm">
          Estimated: the exact tax or store fee of a purchase was not known, so a usual share was taken off.
          The commission stays as it is.
        </Text>
      )}
    </>
  );
}
