import { createHash } from 'node:crypto';
import { Parser } from '@json2csv/plainjs';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { NEW_ADDRESS_MS } from '../domain/payee-code.ts';
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

const EXTENDED_COLUMNS = [...COLUMNS, 'affiliate_email', 'occurred_at_iso', 'affiliate_email_problem'];

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
  const stored = await readPayoutCsv(sql, appId, payoutId);
  if (stored === undefined) return undefined;
  const { email, problem } = await readShownEmail(sql, payoutId);
  const affiliateEmail = neutralizeFormula(email ?? '');
  const blank = Object.fromEntries(EXTENDED_COLUMNS.map((name) => [name, '']));
  const rows: Record<string, string>[] = [];
  let totalCents = 0;
  for (const record of recordsOf(stored.bytes.toString('utf8'))) {
    const cents = Number(record['amount_usd_cents']);
    totalCents += cents;
    const occurredAtIso = new Date(Number(record['occurred_at'])).toISOString();
    const added = {
      affiliate_email: affiliateEmail,
      occurred_at_iso: occurredAtIso,
      affiliate_email_problem: problem ?? '',
    };
    // A stored CSV may have fewer columns.
    rows.push({ ...blank, ...record, ...amount(cents), ...added });
  }
  rows.push({ ...blank, payout_id: payoutId, commission_id: 'total', ...amount(totalCents) });
  const bytes = Buffer.from(parser.parse(rows) + EOL);
  return { payoutId, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
