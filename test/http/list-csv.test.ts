import { expect, test } from '@jest/globals';
import * as z from 'zod';
import { CSV_BYTES, CSV_ROWS, csvOfList } from '../../src/http/list-csv.ts';
import type { PageOfRows } from '../../src/http/list-csv.ts';

const list = z.object({
  items: z.array(z.object({ id: z.number(), url: z.string() })),
  nextCursor: z.string().nullable(),
});

/** Reads pages of a list of `total` rows, which have `length` characters each. The cursor is the number of the next row. */
const pagesOf =
  (total: number, length: number) =>
  async (limit: number, cursor = '0'): Promise<PageOfRows> => {
    const from = Number(cursor);
    const count = Math.min(limit, total - from);
    const items = Array.from({ length: count }, (_, nth) => ({ id: from + nth, url: 'x'.repeat(length) }));
    return await Promise.resolve({ items, nextCursor: from + count < total ? String(from + count) : null });
  };

/** Returns the parts of a list: each one begins at the cursor of the one before. */
async function partsOf(total: number, length: number): Promise<readonly string[]> {
  const parts: string[] = [];
  for (let cursor: string | undefined; ;) {
    const { headers, body } = await csvOfList(list, 'links', cursor, pagesOf(total, length));
    parts.push(String(body));
    cursor = (headers as Record<string, string>)['X-Next-Cursor'];
    if (cursor === undefined) return parts;
  }
}

const idsOf = (parts: readonly string[]) =>
  parts.flatMap((part) => part.trimEnd().split('\r\n').slice(1)).map((line) => Number(line.split(',')[0]));

// @promise account-files-limited
test('a list of long rows as CSV ends after about 8 MiB, and its cursor leads to the rows that follow', async () => {
  const parts = await partsOf(4_000, 6_000);
  expect(parts).toHaveLength(3);
  for (const part of parts) expect(part.length).toBeLessThan(CSV_BYTES * 1.05);
  for (const part of parts.slice(0, -1)) expect(part.length).toBeGreaterThan(CSV_BYTES * 0.95);
  expect(idsOf(parts)).toEqual(Array.from({ length: 4_000 }, (_, nth) => nth));
});

test('a list of short rows as CSV has 10,000 of them, and its cursor leads to the rows that follow', async () => {
  const parts = await partsOf(CSV_ROWS + 5, 10);
  expect(parts.map((part) => part.trimEnd().split('\r\n').length - 1)).toEqual([CSV_ROWS, 5]);
  expect(idsOf(parts)).toEqual(Array.from({ length: CSV_ROWS + 5 }, (_, nth) => nth));
});

// @promise account-files-limited
test('the event loop has a turn after each 200 rows of a list as CSV', async () => {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await csvOfList(list, 'links', undefined, pagesOf(CSV_ROWS, 10));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(CSV_ROWS / 200 - 1);
});

test('every instant of a row is ISO 8601, also `asOf`', async () => {
  const runs = z.object({
    items: z.array(z.object({ createdAt: z.number(), asOf: z.number(), cents: z.number() })),
    nextCursor: z.string().nullable(),
  });
  const at = Date.UTC(2026, 10, 30, 12);
  const { body } = await csvOfList(runs, 'payout-runs', undefined, async () =>
    Promise.resolve({ items: [{ createdAt: at, asOf: at, cents: at }], nextCursor: null }),
  );
  expect(String(body)).toContain(`2026-11-30T12:00:00.000Z,2026-11-30T12:00:00.000Z,${at}`);
});
