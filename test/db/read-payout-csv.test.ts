import { createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Parser } from '@json2csv/plainjs';
import { expect, test } from '@jest/globals';
import type { PayoutId } from '../../src/domain/ids.ts';
import { COLUMNS, recordsOf } from '../../src/db/payout-csv.ts';
import { quoteWhereNeeded } from '../../src/domain/csv-cells.ts';
import { readRows } from '../../src/db/read-payout-csv.ts';

const PAYOUT = 'pay_x' as PayoutId;

const stored = (text: string) => ({
  gzip: gzipSync(text),
  sha256: createHash('sha256').update(text).digest(),
});

/** Returns a CSV of payouts of creators with these names, as an export renders it. */
function csvOf(names: readonly string[]): string {
  const rows = names.map((name, nth) => ({
    payout_id: PAYOUT,
    affiliate_id: 'aff_x',
    affiliate_name: name,
    commission_id: `com_${randomBytes(13).toString('hex')}`,
    amount_usd_cents: String(nth),
    amount_usd: (nth / 100).toFixed(2),
    currency: 'USD',
    event_id: nth % 3 === 0 ? '' : `evt_${randomBytes(13).toString('hex')}`,
    occurred_at: String(1_700_000_000_000 + nth),
  }));
  const formatters = { header: (name: string) => name, string: quoteWhereNeeded };
  return `${new Parser({ fields: [...COLUMNS], eol: '\r\n', formatters }).parse(rows)}\r\n`;
}

async function rowsOf(text: string, columns: readonly string[] = COLUMNS): Promise<(readonly string[])[]> {
  const rows: (readonly string[])[] = [];
  for await (const part of readRows(PAYOUT, stored(text), columns)) rows.push(...part);
  return rows;
}

// @promise payout-csv-turns
test('the event loop has a turn at least every 1,000 lines of a payout CSV that is read', async () => {
  const text = csvOf(Array.from({ length: 20_000 }, () => 'Creator'));
  let most = 0;
  let sinceTurn = 0;
  let isReading = true;
  const takeTurns = () => {
    sinceTurn = 0;
    if (isReading) setImmediate(takeTurns);
  };
  takeTurns();
  let count = 0;
  for await (const part of readRows(PAYOUT, stored(text), ['commission_id'])) {
    count += part.length;
    sinceTurn += part.length;
    most = Math.max(most, sinceTurn);
  }
  isReading = false;
  expect(count).toBe(20_000);
  expect(most).toBeLessThan(1_000);
});

test('the rows of a payout CSV are those that its text has, whatever is in its cells', async () => {
  const names = [
    'Ada',
    'a,b',
    '"',
    '""',
    '"a"',
    'a"b,"c',
    'a\nb',
    'a\r\nb\r\n',
    '\r',
    ',',
    '\n',
    'é',
    '😀',
    '',
    ' "x" ',
  ];
  const long = Array.from(
    { length: 3_000 },
    (_, nth) => `${names[nth % names.length]}${'😀é'.repeat(nth % 7)}`,
  );
  for (const text of [csvOf(names), csvOf(long), csvOf([])]) {
    const expected = [...recordsOf(text)].map((record) => COLUMNS.map((name) => record[name]));
    expect(await rowsOf(text)).toEqual(expected);
  }
});

test('a column that a payout CSV lacks is empty, in whatever order its columns are', async () => {
  expect(await rowsOf('b,a\na1,"b,2"\r\n,\r\n', ['a', 'c', 'b'])).toEqual([
    ['b,2', '', 'a1'],
    ['', '', ''],
  ]);
});

test('a payout CSV whose bytes do not have their hash throws after its last row, and so does one that is cut', async () => {
  const text = csvOf(['Ada', 'Ben']);
  const read = async (csv: { readonly gzip: Buffer; readonly sha256: Buffer }) => {
    for await (const part of readRows(PAYOUT, csv, COLUMNS)) void part;
  };
  const { gzip, sha256 } = stored(text);
  await expect(read({ gzip: gzipSync(text.replace('Ada', 'Eve')), sha256 })).rejects.toThrow('its hash');
  await expect(read({ gzip: gzip.subarray(0, -9), sha256 })).rejects.toThrow('its hash');
  await expect(read({ gzip: Buffer.from('x'), sha256 })).rejects.toThrow('its hash');
});
