import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { connect, DatabaseUnavailable } from '../../src/db/sql.ts';
import type { Sql, SqlOptions } from '../../src/db/sql.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

let database: TestDatabase;
let proxy: CuttableProxy;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startProxy(database.url);
});
afterEach(async () => {
  proxy.restore();
  await sql.close();
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

const open = (options: Partial<SqlOptions>) => {
  sql = connect({ url: proxy.url, statementTimeoutMs: 100, patienceMs: 5_000, ...options });
};
const outcomeOf = async (work: Promise<unknown>) =>
  await work.then(
    () => 'done',
    (error: unknown) => error,
  );

describe('a database that does not respond', () => {
  test('a statement on a connection that has gone silent is sent again on a new connection', async () => {
    open({ max: 3 });
    await Promise.all([sql`select 1`, sql`select 1`, sql`select 1`]);
    proxy.silence();
    proxy.restore();
    // One lost connection is enough to distrust the idle ones: three in turn would take three times the limit.
    const begin = performance.now();
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
    expect(performance.now() - begin).toBeLessThan(1_700);
  });

  test('connections of a silent database are closed instead of being kept', async () => {
    open({ max: 3, patienceMs: 500 });
    await sql`select 1`;
    proxy.silence();
    const outcomes = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => outcomeOf(sql`select ${n}`)));
    expect(outcomes).toEqual(outcomes.map(() => expect.any(DatabaseUnavailable)));
    // At most the probe remains.
    await eventually('the connections are closed', async () => proxy.accepted() <= 1);
  });

  test('statements beyond the bound of the queue fail at once, and the others are run', async () => {
    open({ max: 1, maxWaiting: 2, statementTimeoutMs: 5_000 });
    const [begin, outcomes] = [performance.now(), [] as string[]];
    const run = async (name: string) => {
      const outcome = await outcomeOf(sql`select pg_sleep(0.05)`);
      outcomes.push(`${name} ${outcome instanceof DatabaseUnavailable ? 'refused' : String(outcome)}`);
    };
    await Promise.all(['first', 'second', 'third', 'fourth'].map(run));
    expect(outcomes).toEqual(['fourth refused', 'first done', 'second done', 'third done']);
    expect(performance.now() - begin).toBeLessThan(3_000);
  });

  test('a statement that was sent once says so', async () => {
    open({ max: 1, patienceMs: 0 });
    await sql`select 1`;
    proxy.cut();
    expect(String(await outcomeOf(sql`select 1`))).toContain('the database did not respond in 1 attempt');
    expect(String(await outcomeOf(sql`select 1`))).not.toContain('1 attempts');
  });

  test('a longer time limit holds for its statement only', async () => {
    open({ max: 1, patienceMs: 100 });
    expect(await outcomeOf(sql.within(2_000)`select pg_sleep(0.3)`)).toBe('done');
    expect(await outcomeOf(sql`select pg_sleep(0.3)`)).toBeInstanceOf(DatabaseUnavailable);
  });
});
