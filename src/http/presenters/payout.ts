import type { PayoutListRow, PreviewRow } from '../../db/payout-lists.ts';

/** A payout in a list. */
export function presentPayout(row: PayoutListRow) {
  const { id, affiliateId, affiliateName, itemCount, totalCents, createdAt, csvSha256 } = row;
  return {
    id,
    affiliateId,
    affiliateName,
    itemCount,
    totalCents,
    currency: 'USD' as const,
    createdAt,
    csvSha256,
  };
}

/** What an export would pay at that moment. */
export function presentPreview(asOf: number, rows: readonly PreviewRow[]) {
  return {
    asOf: new Date(asOf).toISOString(),
    rows: rows.map(({ affiliateId, affiliateName, count, totalCents }) => ({
      affiliateId,
      affiliateName,
      count,
      totalCents,
    })),
    totalCents: rows.reduce((sum, row) => sum + row.totalCents, 0),
  };
}
