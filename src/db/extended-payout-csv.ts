import { createHash } from 'node:crypto';
import type { AppId, PayoutId } from '../domain/ids.ts';
import {
  COLUMNS,
  EOL,
  formatUsd,
  neutralizeFormula,
  quoteWhereNeeded,
  readCompressedCsv,
} from './payout-csv.ts';
import type { PayoutCsv } from './payout-csv.ts';
import { readRows } from './payout-csv-rows.ts';
import type { Sql } from './sql.ts';

const EXTENDED_COLUMNS = [...COLUMNS, 'affiliate_email', 'occurred_at_iso'];
/** Where the cents of a line are; the amount and the currency follow. */
const CENTS = COLUMNS.indexOf('amount_usd_cents');
const OCCURRED_AT = COLUMNS.indexOf('occurred_at');

const lineOf = (cells: readonly string[]) => cells.map(quoteWhereNeeded).join(',') + EOL;

/** Returns the cells with the amount of a line in its three columns. */
const withAmount = (cells: readonly string[], cents: number) =>
  cells.toSpliced(CENTS, 3, String(cents), formatUsd(cents), 'USD');

/**
 * Returns the CSV of a payout with two more columns, the affiliate's current e-mail address and the time of the purchase
 * in ISO 8601, and a last line with the total, whose `commission_id` is `total`. The other cells are those of the stored
 * CSV. Undefined for a payout of another app.
 */
export async function readExtendedPayoutCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<PayoutCsv | undefined> {
  const stored = await readCompressedCsv(sql, appId, payoutId);
  if (stored === undefined) return undefined;
  const { email } = await sql.one<{ email: string | null }>`
    select a.email from payouts p join affiliates a on a.id = p.affiliate_id where p.id = ${payoutId}`;
  const affiliateEmail = neutralizeFormula(email ?? '');
  const parts = [Buffer.from(lineOf(EXTENDED_COLUMNS))];
  let totalCents = 0;
  // A stored CSV may have fewer columns: their cells are empty.
  for await (const rows of readRows(payoutId, stored, COLUMNS)) {
    const lines = rows.map((cells) => {
      const cents = Number(cells[CENTS]);
      totalCents += cents;
      const occurredAtIso = new Date(Number(cells[OCCURRED_AT])).toISOString();
      return lineOf([...withAmount(cells, cents), affiliateEmail, occurredAtIso]);
    });
    parts.push(Buffer.from(lines.join('')));
  }
  const total = EXTENDED_COLUMNS.map((name) =>
    name === 'payout_id' ? payoutId : name === 'commission_id' ? 'total' : '',
  );
  parts.push(Buffer.from(lineOf(withAmount(total, totalCents))));
  const bytes = Buffer.concat(parts);
  return { payoutId, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
