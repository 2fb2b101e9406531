import { createHash } from 'node:crypto';
import { Parser } from '@json2csv/plainjs';
import type { AppId, CommissionId, PayoutId } from '../domain/ids.ts';
import type { CreatorScope } from './creator-sessions.ts';
import { EOL, formatUsd, quoteWhereNeeded, readPayoutCsv, recordsOf } from './payout-csv.ts';
import type { PayoutCsv } from './payout-csv.ts';
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

interface Line {
  readonly commissionId: CommissionId;
  readonly cents: number;
  readonly occurredAt: number;
}

/** Returns the lines of a payout's stored CSV, which states what was paid. */
async function linesOf(sql: Sql, appId: AppId, payoutId: PayoutId): Promise<Line[]> {
  const stored = await readPayoutCsv(sql, appId, payoutId);
  return [...recordsOf(stored?.bytes.toString('utf8') ?? '')].map((record) => ({
    commissionId: record['commission_id'] as CommissionId,
    cents: Number(record['amount_usd_cents']),
    occurredAt: Number(record['occurred_at']),
  }));
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

/** Returns the sums of a payout, from its stored CSV, so that they are those that were paid. */
export async function readStatementSums(
  sql: Sql,
  { appId }: CreatorScope,
  payoutId: PayoutId,
): Promise<StatementSums> {
  const sums = { earnedCents: 0, earnedCount: 0, takenBackCents: 0, takenBackCount: 0 };
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { cents, occurredAt } of await linesOf(sql, appId, payoutId)) {
    const name = cents < 0 ? 'takenBack' : 'earned';
    sums[`${name}Cents`] += cents;
    sums[`${name}Count`] += 1;
    from = Math.min(from, occurredAt);
    to = Math.max(to, occurredAt);
  }
  return { ...sums, from: Math.min(from, to), to };
}

const COLUMNS = ['payout_id', 'commission_id', 'occurred_at', 'amount_usd', 'currency'];

const parser = new Parser({
  fields: COLUMNS,
  header: true,
  eol: EOL,
  formatters: { header: (name) => name, string: quoteWhereNeeded },
});

/** Returns the statement of a payout as CSV: its lines without ids of events, and a last line with the total. */
export async function readStatementCsv(
  sql: Sql,
  { appId }: CreatorScope,
  { id, totalCents }: CreatorPayout,
): Promise<PayoutCsv> {
  const rows = (await linesOf(sql, appId, id)).map(({ commissionId, cents, occurredAt }) => ({
    payout_id: id as string,
    commission_id: commissionId as string,
    occurred_at: new Date(occurredAt).toISOString(),
    amount_usd: formatUsd(cents),
    currency: 'USD',
  }));
  rows.push({
    payout_id: id,
    commission_id: 'total',
    occurred_at: '',
    amount_usd: formatUsd(totalCents),
    currency: 'USD',
  });
  const bytes = Buffer.from(parser.parse(rows) + EOL);
  return { payoutId: id, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
