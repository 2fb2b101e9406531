import { createHash } from 'node:crypto';
import { csvLine, neutralizeFormula } from '../domain/csv-cells.ts';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { NEW_ADDRESS_MS } from '../domain/payee-code.ts';
import { COLUMNS, formatUsd, readCompressedCsv } from './payout-csv.ts';
import type { PayoutCsv } from './payout-csv.ts';
import { readRows } from './read-payout-csv.ts';
import type { Sql } from './sql.ts';

const EXTENDED_COLUMNS = [...COLUMNS, 'affiliate_email', 'occurred_at_iso', 'affiliate_email_problem'];
/** Where the cents of a line are; the amount and the currency follow. */
const CENTS = COLUMNS.indexOf('amount_usd_cents');
const OCCURRED_AT = COLUMNS.indexOf('occurred_at');

/** Returns the cells with the amount of a line in its three columns. */
const withAmount = (cells: readonly string[], cents: number) =>
  cells.toSpliced(CENTS, 3, String(cents), formatUsd(cents), 'USD');

/**
 * Returns the address of the creator of a payout, and why it is not shown. Somebody may send the money to what this file says, so an address is
 * shown if a caller who may pay has set or confirmed it, or if the creator was added with it seven days ago: `not_confirmed` and `new`
 * otherwise.
 */
async function readShownEmail(
  sql: Sql,
  payoutId: PayoutId,
): Promise<{ readonly email: string | null; readonly problem: 'not_confirmed' | 'new' | null }> {
  return await sql.one`
    select case when p.problem is null then a.email end as email, p.problem
      from payouts y join affiliates a on a.id = y.affiliate_id
     cross join lateral (
       select case when a.email is null or a.email_confirmed then null
                   when a.email_confirmed is false then 'not_confirmed'
                   when a.email_set_at > now() - ${NEW_ADDRESS_MS} * interval '1 millisecond' then 'new' end as problem) p
     where y.id = ${payoutId}`;
}

/**
 * Returns the CSV of a payout with three more columns, the affiliate's current e-mail address, the time of the purchase in ISO 8601 and why
 * there is no address, and a last line with the total, whose `commission_id` is `total`. The other cells are those of the stored
 * CSV. Undefined for a payout of another app.
 */
export async function readExtendedPayoutCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<PayoutCsv | undefined> {
  const stored = await readCompressedCsv(sql, appId, payoutId);
  if (stored === undefined) return undefined;
  const { email, problem } = await readShownEmail(sql, payoutId);
  const affiliateEmail = neutralizeFormula(email ?? '');
  const parts = [Buffer.from(csvLine(EXTENDED_COLUMNS))];
  let totalCents = 0;
  // A stored CSV may have fewer columns: their cells are empty.
  for await (const rows of readRows(payoutId, stored, COLUMNS)) {
    const lines = rows.map((cells) => {
      const cents = Number(cells[CENTS]);
      totalCents += cents;
      const occurredAtIso = new Date(Number(cells[OCCURRED_AT])).toISOString();
      return csvLine([...withAmount(cells, cents), affiliateEmail, occurredAtIso, problem ?? '']);
    });
    parts.push(Buffer.from(lines.join('')));
  }
  const total = EXTENDED_COLUMNS.map((name) =>
    name === 'payout_id' ? payoutId : name === 'commission_id' ? 'total' : '',
  );
  parts.push(Buffer.from(csvLine(withAmount(total, totalCents))));
  const bytes = Buffer.concat(parts);
  return { payoutId, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
