import { createHash } from 'node:crypto';
import { Parser } from '@json2csv/plainjs';
import type { AppId, PayoutId } from '../domain/ids.ts';
import {
  COLUMNS,
  EOL,
  formatUsd,
  neutralizeFormula,
  quoteWhereNeeded,
  readPayoutCsv,
  recordsOf,
} from './payout-csv.ts';
import type { PayoutCsv } from './payout-csv.ts';
import type { Sql } from './sql.ts';

const EXTENDED_COLUMNS = [...COLUMNS, 'affiliate_email', 'occurred_at_iso'];

const parser = new Parser({
  fields: EXTENDED_COLUMNS,
  header: true,
  eol: EOL,
  formatters: {
    header: (name) => name,
    string: quoteWhereNeeded,
  },
});

const amount = (cents: number) => ({
  amount_usd_cents: String(cents),
  amount_usd: formatUsd(cents),
  currency: 'USD',
});

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
  const stored = await readPayoutCsv(sql, appId, payoutId);
  if (stored === undefined) return undefined;
  const { email } = await sql.one<{ email: string | null }>`
    select a.email from payouts p join affiliates a on a.id = p.affiliate_id where p.id = ${payoutId}`;
  const affiliateEmail = neutralizeFormula(email ?? '');
  const blank = Object.fromEntries(EXTENDED_COLUMNS.map((name) => [name, '']));
  const rows: Record<string, string>[] = [];
  let totalCents = 0;
  for (const record of recordsOf(stored.bytes.toString('utf8'))) {
    const cents = Number(record['amount_usd_cents']);
    totalCents += cents;
    const occurredAtIso = new Date(Number(record['occurred_at'])).toISOString();
    const added = { affiliate_email: affiliateEmail, occurred_at_iso: occurredAtIso };
    // A stored CSV may have fewer columns.
    rows.push({ ...blank, ...record, ...amount(cents), ...added });
  }
  rows.push({ ...blank, payout_id: payoutId, commission_id: 'total', ...amount(totalCents) });
  const bytes = Buffer.from(parser.parse(rows) + EOL);
  return { payoutId, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
