import { createHash } from 'node:crypto';
import { number, string } from '@json2csv/formatters';
import { Parser } from '@json2csv/plainjs';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { findPayout, storeCsvHash, listPayoutItems } from './ledger.ts';
import type { PayoutItem, StoredPayout } from './ledger.ts';
import type { Sql } from './sql.ts';

export interface PayoutCsv {
  readonly payoutId: PayoutId | null;
  /** RFC 4180, CRLF after every line, UTF-8. */
  readonly bytes: Buffer;
  readonly sha256: Buffer;
}

/** The columns of the specification, in its order. */
const COLUMNS = [
  'payout_id',
  'affiliate_id',
  'affiliate_name',
  'commission_id',
  'amount_usd_cents',
  'amount_usd',
  'currency',
  'event_id',
  'occurred_at',
] as const;

const EOL = '\r\n';

/** Prefixes text that a spreadsheet would run as a formula with an apostrophe, so that it is shown as text. */
export function neutralizeFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

/** Formats cents as dollars with two decimals: -5 is `-0.05`. */
export function formatUsd(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, '0');
  return `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

const quoted = string();

/** Quotes text as RFC 4180 requires, including a lone carriage return. */
function quoteWhereNeeded(text: string): string {
  return /[",\r\n]/.test(text) ? quoted(text) : text;
}

const parser = new Parser({
  fields: [...COLUMNS],
  header: false,
  eol: EOL,
  formatters: { number: number(), string: quoteWhereNeeded },
});

function render(payout: StoredPayout | null, items: readonly PayoutItem[]): Buffer {
  const rows = items.map((item) => ({
    payout_id: payout?.id ?? '',
    affiliate_id: payout?.affiliateId ?? '',
    affiliate_name: neutralizeFormula(payout?.affiliateName ?? ''),
    commission_id: item.commissionId,
    amount_usd_cents: item.amountCents,
    amount_usd: formatUsd(item.amountCents),
    currency: 'USD',
    event_id: item.eventId,
    occurred_at: item.occurredAt,
  }));
  const body = rows.length === 0 ? '' : parser.parse(rows) + EOL;
  return Buffer.from(COLUMNS.join(',') + EOL + body, 'utf8');
}

function withHash(payoutId: PayoutId | null, bytes: Buffer): PayoutCsv {
  return { payoutId, bytes, sha256: createHash('sha256').update(bytes).digest() };
}

/** The CSV of an export with nothing due: the header line only. */
export const EMPTY_PAYOUT_CSV: PayoutCsv = withHash(null, render(null, []));

async function renderStored(sql: Sql, payout: StoredPayout): Promise<PayoutCsv> {
  return withHash(payout.id, render(payout, await listPayoutItems(sql, payout.id)));
}

/**
 * Builds the CSV of a stored payout, always with the same bytes. Returns undefined for a payout of another app. Throws
 * when the bytes do not have the stored hash.
 */
export async function buildPayoutCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<PayoutCsv | undefined> {
  const payout = await findPayout(sql, appId, payoutId);
  if (payout === undefined) return undefined;
  const csv = await renderStored(sql, payout);
  if (payout.csvSha256 !== null && !csv.sha256.equals(payout.csvSha256)) {
    throw new Error(`the CSV of payout ${payout.id} does not have the hash that was stored when it was paid`);
  }
  return csv;
}

/**
 * Whether a payout's CSV still has the stored hash. A payout younger than `minutes` may have none yet: its workflow is
 * about to store it.
 */
export async function csvMatchesHash(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
  minutes: number,
): Promise<boolean> {
  const payout = await findPayout(sql, appId, payoutId);
  if (payout === undefined) return true;
  if (payout.csvSha256 === null) return Date.now() - payout.createdAt < minutes * 60_000;
  return (await renderStored(sql, payout)).sha256.equals(payout.csvSha256);
}

/** Builds the CSV of a new payout and stores its hash. A second run stores the same. */
export async function storePayoutCsvHash(sql: Sql, appId: AppId, payoutId: PayoutId): Promise<void> {
  const csv = await buildPayoutCsv(sql, appId, payoutId);
  if (csv !== undefined) await storeCsvHash(sql, payoutId, csv.sha256);
}
