import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ProviderName } from '../../src/providers/index.ts';
import { openExport } from '../../src/reconcile/export-file.ts';
import type { NumberedRow } from '../../src/reconcile/numbered-row.ts';
import { adaptyRows, csvOf, revenuecatRows, stripeRows } from '../support/provider-exports.ts';

let folder: string;
let files = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'export-file-test-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function save(content: string | Buffer): Promise<string> {
  files += 1;
  const path = join(folder, String(files));
  await writeFile(path, content);
  return path;
}

/** Reads all rows of a file with this content. */
async function read(content: string | Buffer, provider: ProviderName = 'adapty') {
  const { format, rows } = await openExport(await save(content), provider);
  const all: NumberedRow[] = [];
  for await (const row of rows) all.push(row);
  return { title: format.title, rows: all };
}

/** Returns the error of a file, without its path. */
async function problem(content: string | Buffer, provider: ProviderName = 'adapty'): Promise<string> {
  const error = await read(content, provider).then(
    () => new Error('no error'),
    (reason: unknown) => reason as Error,
  );
  return `${error.name}: ${error.message}`.replace(/\/\S*\/\d+/, 'FILE');
}

const sale = { userId: 'user-1', cents: 1_999, ref: '4711', occurredAt: 1_772_443_800_000, refundedAt: null };
const rows = adaptyRows([sale, { ...sale, ref: '4712' }]);
const csv = csvOf(rows);

describe('a file of an export', () => {
  // @promise reconcile-file-forms
  test.each([
    ['with CRLF', csv],
    ['with LF', csvOf(rows, '\n')],
    ['with a byte order mark', `\uFEFF${csv}`],
    ['that is packed', gzipSync(csv)],
    ['that is packed in two parts', Buffer.concat([gzipSync(csv.slice(0, 100)), gzipSync(csv.slice(100))])],
    ['with quotes around every cell', csvOf(rows).replaceAll(/(^|,)([^",\r\n]*)(?=,|\r)/gm, '$1"$2"')],
  ])('%s has the same rows, and cells keep line ends and commas', async (_, content) => {
    const { title, rows: found } = await read(content);
    expect(title).toBe('events of the Amazon S3 or Google Cloud Storage integration');
    expect(found.map(({ values }) => values)).toEqual([
      expect.objectContaining({ transaction_id: '4711', revenue_usd: '19.99', customer_user_id: 'user-1' }),
      expect.objectContaining({ transaction_id: '4712' }),
    ]);
    // Columns that are not read are not kept.
    expect(found[0]?.values).not.toHaveProperty('paywall_name');
  });

  test.each([
    ['semicolons', ';'],
    ['tabs', '\t'],
  ])('CSV may be separated by %s', async (_, delimiter) => {
    const simple = adaptyRows([sale]).map(({ paywall_name: _paywall, ...row }) => row);
    const { rows: found } = await read(csvOf(simple).replaceAll(',', delimiter));
    expect(found[0]?.values).toMatchObject({ transaction_id: '4711', store: 'app_store' });
  });

  test('the line of a row is its line in the file', async () => {
    const { rows: found } = await read(csvOf(revenuecatRows([sale, sale])), 'revenuecat');
    // Each row has a cell with a line end.
    expect(found.map(({ line }) => line)).toEqual([3, 5]);
  });

  test('characters of several bytes are read across the parts of a file', async () => {
    const long = csvOf(
      adaptyRows(Array.from({ length: 2_000 }, (_, n) => ({ ...sale, userId: `üser-€-${n}` }))),
    );
    const { rows: found } = await read(long);
    expect(found).toHaveLength(2_000);
    expect(found.at(-1)?.values['customer_user_id']).toBe('üser-€-1999');
  });
});

const entity = { id: 'txn_1', status: 'completed', currency_code: 'USD', details: {} };

describe('a JSON list', () => {
  test.each([
    ['a page of the API', JSON.stringify({ data: [entity, entity], meta: {} })],
    ['a page of the API over several lines', JSON.stringify({ data: [entity, entity], meta: {} }, null, 2)],
    ['an array', JSON.stringify([entity, entity])],
    ['one object on each line', `${JSON.stringify(entity)}\n\n${JSON.stringify(entity)}`],
    [
      'one page on each line',
      `${JSON.stringify({ data: [entity], has_more: true })}\r\n${JSON.stringify({ data: [entity], has_more: false })}\r\n`,
    ],
    ['a blank line in front', `\n${JSON.stringify({ data: [entity, entity] }, null, 2)}`],
  ])('of the form %s has the same objects', async (_, content) => {
    const { title, rows: found } = await read(content, 'paddle');
    expect(title).toBe('list of transactions');
    expect(found).toEqual([
      { line: 1, values: entity },
      { line: 2, values: entity },
    ]);
  });
});

describe('a file that cannot be compared', () => {
  const stripe = csvOf(stripeRows([sale]));

  // @promise reconcile-wrong-file
  test.each<[string, string | Buffer, ProviderName, string]>([
    ['of another provider', stripe, 'revenuecat', 'It looks like an export of Stripe: use --provider stripe'],
    [
      'without some columns',
      csv.replace('revenue_usd', 'turnover'),
      'adapty',
      'lacks the columns revenue_usd.',
    ],
    [
      'of an older version',
      csvOf(revenuecatRows([sale])).replaceAll('purchase_price', 'x'),
      'revenuecat',
      'version 4 or newer" of RevenueCat: it lacks the columns purchase_price_in_usd, purchase_price_in_purchased_currency',
    ],
    [
      'of JSON where CSV is needed',
      JSON.stringify([entity]),
      'adapty',
      'only CSV can be compared. It looks like a list of Paddle: use --provider paddle',
    ],
    [
      'of CSV where JSON is needed',
      'id,status\r\ntxn_1,completed\r\n',
      'paddle',
      'only JSON can be compared: list of transactions or list of adjustments',
    ],
    [
      'of another list',
      JSON.stringify({ data: [{ id: 'cus_1', object: 'customer' }] }),
      'stripe',
      'none of the JSON lists of Stripe',
    ],
    [
      'of two kinds of objects',
      `${JSON.stringify(entity)}\n{"id":"adj_1"}`,
      'paddle',
      'Object 2 of FILE does not belong to the list of transactions',
    ],
    ['that is empty', '', 'adapty', 'FILE is empty'],
    ['of blanks', ' \n', 'adapty', 'FILE is empty'],
    ['that is a spreadsheet', Buffer.from('PK\u0003\u0004'), 'adapty', 'ZIP archive or a spreadsheet'],
    ['in UTF-16', Buffer.from(`\uFEFF${csv}`, 'utf16le'), 'adapty', 'UTF-16'],
    ['in Latin-1', Buffer.concat([Buffer.from(csv), Buffer.from([0xfc])]), 'adapty', 'not UTF-8'],
    ['that is packed and cut off', gzipSync(csv).subarray(0, -20), 'adapty', 'damaged or incomplete gzip'],
    ['that is cut off in a row', csv.slice(0, -60), 'adapty', 'another number of cells at line 4'],
    [
      'that is cut off in a quoted cell',
      csv.slice(0, csv.lastIndexOf('Spring') + 3),
      'adapty',
      'not valid CSV',
    ],
    [
      'with a quote that is never closed',
      `${csv.slice(0, csv.lastIndexOf('Spring'))}${'x'.repeat(1_100_000)}`,
      'adapty',
      'not valid CSV at line',
    ],
    [
      'that ends with a page that is not the last one',
      JSON.stringify({ data: [entity], meta: { pagination: { has_more: true } } }),
      'paddle',
      'ends with a page that is not the last one',
    ],
    [
      'of pages of which the last one is missing',
      JSON.stringify([
        { data: [entity], has_more: false },
        { data: [entity], has_more: true },
      ]),
      'paddle',
      'ends with a page that is not the last one',
    ],
    [
      'of several values over several lines',
      `${JSON.stringify({ data: [entity] }, null, 2)}\n${JSON.stringify({ data: [entity] }, null, 2)}`,
      'paddle',
      'has several values over several lines',
    ],
    ['of broken JSON', `${JSON.stringify(entity)}\n{`, 'paddle', 'not valid JSON'],
    ['of broken JSON in between', `${JSON.stringify(entity)}\n{\n{}\n`, 'paddle', 'not valid JSON at line 2'],
  ])('a file %s is refused with what to do', async (_, content, provider, words) => {
    expect(await problem(content, provider)).toContain('ExportFileError: ');
    expect(await problem(content, provider)).toContain(words);
  });

  test('a file that does not exist is refused', async () => {
    await expect(openExport(join(folder, 'none'), 'stripe')).rejects.toThrow("can't be read (ENOENT)");
    await expect(openExport(folder, 'stripe')).rejects.toThrow("can't be read (EISDIR)");
  });
});
