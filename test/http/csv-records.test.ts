import { describe, expect, test } from '@jest/globals';
import { CsvUnreadable, readCsvRecords, readInTurns } from '../../src/http/csv-records.ts';

/** Counts the turns of the event loop that others have while something runs. */
async function turnsDuring<T>(
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const next = () => {
    turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  const result = await run();
  isOver = true;
  return { result, turns };
}

const refusal = async (text: string) =>
  await readCsvRecords(text).then(
    () => null,
    (error: unknown) => (error instanceof CsvUnreadable ? error.message : error),
  );

describe('the CSV of a report', () => {
  // @promise run-results-cost
  test.each([
    ['a header of 500,000 columns', `Status${',a'.repeat(499_000)}`, /more than 200 columns/],
    ['rows of 500,000 cells', `Status\n${`${',x'.repeat(198)}\n`.repeat(2_500)}`, /more than 250000 cells/],
  ])('is refused before any of it is read: %s', async (_, text, message) => {
    const { result, turns } = await turnsDuring(async () => await refusal(text));
    expect(result).toMatch(message);
    expect(turns).toBe(0);
  });

  test('may have as many columns as the service reads, and delimiters in the names of columns', async () => {
    const names = Array.from(
      { length: 200 },
      (__, n) => `"Amount, ${n}"`.slice(0, n < 190 ? 20 : 2) + (n < 190 ? '' : `${n}"`),
    );
    const { header, records } = await readCsvRecords(`${names.join(',')}\n1,2`);
    expect(header).toHaveLength(200);
    expect(records).toEqual([['1', '2']]);
    expect(await refusal(`a\n${','.repeat(200)}`)).toMatch(/more than 200 columns/);
  });

  // @promise run-results-cost
  test('is read in turns, between which others go on', async () => {
    const text = `Status,id,x,y\n${'Completed,1234567890123456,a,b\n'.repeat(25_000)}`;
    const first = await turnsDuring(async () => await readCsvRecords(text));
    expect(first.result.records).toHaveLength(25_000);
    expect(first.turns).toBeGreaterThanOrEqual(20);
    const parts: number[] = [];
    const second = await turnsDuring(
      async () => await readInTurns(first.result.records, (part) => parts.push(part.length)),
    );
    expect(parts.reduce((all, count) => all + count, 0)).toBe(25_000);
    expect(Math.max(...parts)).toBeLessThanOrEqual(1_000);
    expect(second.turns).toBeGreaterThanOrEqual(20);
  });
});
