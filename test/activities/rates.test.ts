import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createRatesActivities } from '../../activities/rates.ts';
import { tryListen } from '../../src/embedded/processes.ts';
import type { Sql } from '../../src/db/sql.ts';

test('a failed fetch of exchange rates logs one line without a stack, and the SDK logs nothing', async () => {
  const port = await tryListen(0);
  const lines: string[] = [];
  const rates = createRatesActivities({
    sql: (() => {
      throw new Error('not called');
    }) as unknown as Sql,
    logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    ratesUrl: `http://127.0.0.1:${port}/rates?token=private`,
  });
  const sentence = `127.0.0.1:${port} cannot be reached (ECONNREFUSED).`;
  // The SDK does not log failures of this category, and retries them as usual.
  await expect(rates.fetchRates()).rejects.toMatchObject({
    message: sentence,
    type: 'RatesUnavailable',
    nonRetryable: false,
    category: 'BENIGN',
  });
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({
      level: 40,
      msg: `exchange rates not fetched: ${sentence} Sales in US dollars need none.`,
    }),
  ]);
  expect(lines.join('')).not.toMatch(/stack|private/);
});
