import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import { number } from '@json2csv/formatters';
import { Parser } from '@json2csv/plainjs';
import { EOL, neutralizeFormula, quoteWhereNeeded } from '../domain/csv-cells.ts';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { formatMinor } from '../domain/money.ts';
import { findPayout, listPayoutItems, storeCsv } from './stored-payouts.ts';
import type { PayoutItem, StoredPayout } from './stored-payouts.ts';
import { databaseClock } from './clock.ts';
import type { Sql } from './sql.ts';

export interface PayoutCsv {
  readonly payoutId: PayoutId | null;
  /** RFC 4180, CRLF after every line, UTF-8. */
  readonly bytes: Buffer;
  readonly sha256: Buffer;
}

/** The columns of the specification, in its order. */
export const COLUMNS = [
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

/** Formats cents as dollars with two decimals: -5 is `-0.05`. */
export function formatUsd(cents: number): string {
  return formatMinor(cents, 'USD');
}

const parser = new Parser({
  fields: [...COLUMNS],
  header: false,
  eol: EOL,
  formatters: { number: number(), string: quoteWhereNeeded },
});

const HEADER = Buffer.from(COLUMNS.join(',') + EOL);

function renderRows(payout: StoredPayout, items: readonly PayoutItem[]): Buffer {
  const rows = items.map((item) => ({
    payout_id: payout.id,
    affiliate_id: payout.affiliateId,
    affiliate_name: neutralizeFormula(payout.affiliateName),
    commission_id: item.commissionId,
    amount_usd_cents: item.amountCents,
    amount_usd: formatUsd(item.amountCents),
    currency: 'USD',
    event_id: item.eventId,
    occurred_at: item.occurredAt,
  }));
  return Buffer.from(parser.parse(rows) + EOL, 'utf8');
}

/** The CSV of an export with nothing due: the header line only. */
export const EMPTY_PAYOUT_CSV: PayoutCsv = {
  payoutId: null,
  bytes: HEADER,
  sha256: createHash('sha256').update(HEADER).digest(),
};

/** Renders the CSV of a payout, compressed with gzip. Holds one page of its items in memory. */
async function compress(sql: Sql, payout: StoredPayout): Promise<{ gzip: Buffer; sha256: Buffer }> {
  const hash = createHash('sha256');
  async function* parts(): AsyncGenerator<Buffer> {
    hash.update(HEADER);
    yield HEADER;
    for await (const items of listPayoutItems(sql, payout.id)) {
      const rows = renderRows(payout, items);
      hash.update(rows);
      yield rows;
    }
  }
  const compressor = createGzip();
  const [gzip] = await Promise.all([buffer(compressor), pipeline(parts(), compressor)]);
  return { gzip, sha256: hash.digest() };
}

const decompress = promisify(gunzip);

/** Returns the stored CSV of a payout, or null if its bytes do not have the stored hash. */
async function openCsv(csv: CompressedCsv): Promise<Buffer | null> {
  const bytes = await decompress(csv.gzip).catch(() => null);
  if (bytes === null || !createHash('sha256').update(bytes).digest().equals(csv.sha256)) return null;
  return bytes;
}

/**
 * Stores the CSV of a new payout unless it is stored. It is rendered once: later requests return the stored bytes,
 * however a later version formats a CSV. Returns the payout; undefined for a payout of another app.
 */
export async function storePayoutCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<StoredPayout | undefined> {
  const payout = await findPayout(sql, appId, payoutId);
  if (payout === undefined || payout.csvGzip !== null) return payout;
  await storeCsv(sql, payoutId, await compress(sql, payout));
  return await findPayout(sql, appId, payoutId);
}

/** The error of a stored CSV whose bytes do not have the stored hash. */
export function changedCsv(payoutId: PayoutId): Error {
  return new Error(`the stored CSV of payout ${payoutId} does not have its hash: the row was changed`);
}

/** A CSV as it is stored: compressed with gzip, and the hash of its bytes. */
export interface CompressedCsv {
  readonly gzip: Uint8Array;
  readonly sha256: Uint8Array;
}

/**
 * Returns the stored CSV of a payout as it is stored, and stores it first if the process that paid died before it did. Undefined for
 * a payout of another app. `readRows` reads it.
 */
export async function readCompressedCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<CompressedCsv | undefined> {
  const payout = await storePayoutCsv(sql, appId, payoutId);
  if (payout === undefined) return undefined;
  const { csvGzip: gzip, csvSha256: sha256 } = payout;
  if (gzip === null || sha256 === null) throw changedCsv(payoutId);
  return { gzip, sha256 };
}

/** Returns the stored CSV of a payout as `readCompressedCsv` does, unpacked. Throws when the bytes do not have the stored hash. */
export async function readPayoutCsv(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<PayoutCsv | undefined> {
  const stored = await readCompressedCsv(sql, appId, payoutId);
  if (stored === undefined) return undefined;
  const bytes = await openCsv(stored);
  if (bytes === null) throw changedCsv(payoutId);
  return { payoutId, bytes, sha256: Buffer.from(stored.sha256) };
}

/** Returns the cells of a line of a CSV without its line end. */
export function cellsOf(line: string): string[] {
  if (!line.includes('"')) return line.split(',');
  return Array.from(line.matchAll(/(?<=^|,)("(?:[^"]|"")*"|[^,]*)(?=,|$)/g), ([cell]) =>
    cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell,
  );
}

/** Yields the cells of each line of a CSV. A last line without a line end is none. */
export function* linesOf(csv: string): Generator<readonly string[]> {
  let cells: string[] = [];
  for (const [, cell = '', end] of csv.matchAll(/("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n)/g)) {
    cells.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === ',') continue;
    yield cells;
    cells = [];
  }
}

/** Yields the records of a CSV as objects, by the names in its first line. */
export function* recordsOf(csv: string): Generator<Readonly<Record<string, string>>> {
  let names: readonly string[] | null = null;
  for (const cells of linesOf(csv)) {
    if (names === null) names = cells;
    else yield Object.fromEntries(names.map((name, column) => [name, cells[column] ?? '']));
  }
}

/** Versions may neutralize formulas at different places. */
const withoutApostrophes = (text: string | undefined) => text?.replaceAll("'", '');

/**
 * Whether the stored CSV of a payout has its hash and states the items of the payout, in whatever format it was stored.
 * A payout younger than `minutes` may have none yet: its workflow is about to store it.
 */
export async function csvMatchesPayout(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
  minutes: number,
): Promise<boolean> {
  const payout = await findPayout(sql, appId, payoutId);
  if (payout === undefined) return true;
  const { csvGzip: gzip, csvSha256: sha256 } = payout;
  if (gzip === null || sha256 === null)
    return (await databaseClock(sql)) - payout.createdAt < minutes * 60_000;
  const bytes = await openCsv({ gzip, sha256 });
  if (bytes === null) return false;
  const records = recordsOf(bytes.toString('utf8'));
  for await (const items of listPayoutItems(sql, payoutId)) {
    for (const { commissionId, amountCents, eventId, occurredAt } of items) {
      const { value } = records.next();
      const record: Readonly<Record<string, string>> = value ?? {};
      const isSame =
        record['payout_id'] === payoutId &&
        record['affiliate_id'] === payout.affiliateId &&
        withoutApostrophes(record['affiliate_name']) === withoutApostrophes(payout.affiliateName) &&
        record['commission_id'] === commissionId &&
        record['amount_usd_cents'] === String(amountCents) &&
        record['event_id'] === (eventId ?? '') &&
        record['occurred_at'] === String(occurredAt);
      if (!isSame) return false;
    }
  }
  return records.next().done === true;
}
