import { Badge, Text } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import { formatDate, formatMoney } from '../format.ts';

type Commission = Schemas['CreatorCommission'];

const STATUSES: Readonly<Record<Commission['status'], string>> = {
  pending: 'Held',
  matured: 'Due',
  paid: 'Paid',
};

/** Returns when the status changes, or changed. */
function dateOf({ status, dueAt, paidAt }: Commission): string {
  if (status === 'paid') return paidAt === null ? '' : `on ${formatDate(paidAt)}`;
  return status === 'pending' ? `until ${formatDate(dueAt)}` : `since ${formatDate(dueAt)}`;
}

export function CommissionTable({ rows }: { readonly rows: readonly Commission[] }) {
  return (
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
              {/* Without a percentage, it is a fixed amount. */}
              {row.kind === 'earning' && row.rateBps > 0 && (
                <Text size="xs" className="quiet">
                  Your share was {row.rateBps / 100} %
                </Text>
              )}
            </td>
            <td>
              <Badge variant="default" size="sm" radius="sm" tt="none" fw={500}>
                {STATUSES[row.status]}
              </Badge>{' '}
              <Text component="span" size="sm" className="quiet">
                {dateOf(row)}
              </Text>
            </td>
            <td className="number">{formatMoney(row.amountCents)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
