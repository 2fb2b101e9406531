import { createHash } from 'node:crypto';
import { csvLine } from '../domain/csv-cells.ts';
import type { PayoutId } from '../domain/ids.ts';
import type { CreatorScope } from './creator-sessions.ts';
import { formatUsd, readCompressedCsv } from './payout-csv.ts';
import type { PayoutCsv } from './payout-csv.ts';
import { readRows } from './read-payout-csv.ts';
import type { PayoutListRow } from './payout-lists.ts';
import type { Sql } from './sql.ts';

/** A payout of a creator. The name is the one at the time of the payout. */
export type CreatorPayout = Pick<
  PayoutListRow,
  'id' | 'affiliateName' | 'itemCount' | 'totalCents' | 'createdAt'
>;

/** Returns a payout of a creator. Undefined for an unknown payout and for one of another creator. */
export async function findCreatorPayout(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  payoutId: PayoutId,
): Promise<CreatorPayout | undefined> {
  return await sql.maybe<CreatorPayout>`
    select id, affiliate_name, item_count, total_cents, created_at
      from payouts where id = ${payoutId} and app_id = ${appId} and affiliate_id = ${affiliateId}`;
}

/** What a payout consists of. */
export interface StatementSums {
  readonly earnedCents: number;
  readonly earnedCount: number;
  /** Zero or less. */
  readonly takenBackCents: number;
  readonly takenBackCount: number;
  /** The first and the last purchase, refund or dispute. */
  readonly from: number;
  readonly to: number;
}

/** The sums of the payouts that were last asked for. What a payout consists of never changes. */
const recentSums = new Map<PayoutId, StatementSums>();
const RECENT_SUMS = 1_000;

/** Returns the sums of a payout, from its items, which state what was paid. Reads each item once, at most 50,000. */
export async function readStatementSums(
  sql: Sql,
  { appId }: CreatorScope,
  payoutId: PayoutId,
): Promise<StatementSums> {
  const recent = recentSums.get(payoutId);
  if (recent !== undefined) return recent;
  const sums = await sql.one<StatementSums>`
    select coalesce(sum(i.amount_cents) filter (where i.amount_cents >= 0), 0)::bigint as earned_cents,
           count(*) filter (where i.amount_cents >= 0) as earned_count,
           coalesce(sum(i.amount_cents) filter (where i.amount_cents < 0), 0)::bigint as taken_back_cents,
           count(*) filter (where i.amount_cents < 0) as taken_back_count,
           min(c.occurred_at) as from, max(c.occurred_at) as to
      from payout_items i join commissions c on c.id = i.commission_id
     where i.payout_id = ${payoutId} and i.app_id = ${appId}`;
  recentSums.set(payoutId, sums);
  for (const oldest of recentSums.keys()) {
    if (recentSums.size <= RECENT_SUMS) break;
    recentSums.delete(oldest);
  }
  return sums;
}

const COLUMNS = ['payout_id', 'commission_id', 'occurred_at', 'amount_usd', 'currency'];

/** Returns the statement of a payout as CSV: its lines without ids of events, and a last line with the total. */
export async function readStatementCsv(
  sql: Sql,
  { appId }: CreatorScope,
  { id, totalCents }: CreatorPayout,
): Promise<PayoutCsv> {
  const parts = [Buffer.from(csvLine(COLUMNS))];
  const stored = await readCompressedCsv(sql, appId, id);
  if (stored !== undefined) {
    const columns = ['commission_id', 'occurred_at', 'amount_usd_cents'];
    for await (const rows of readRows(id, stored, columns)) {
      const lines = rows.map(([commissionId = '', occurredAt, cents]) =>
        csvLine([
          id,
          commissionId,
          new Date(Number(occurredAt)).toISOString(),
          formatUsd(Number(cents)),
          'USD',
        ]),
      );
      parts.push(Buffer.from(lines.join('')));
    }
  }
  parts.push(Buffer.from(csvLine([id, 'total', '', formatUsd(totalCents), 'USD'])));
  const bytes = Buffer.concat(parts);
  return { payoutId: id, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
