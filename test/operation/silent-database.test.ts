import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql, SqlOptions } from '../../src/db/sql.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { shortestTime } from '../support/shortest-time.ts';

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
    /** Returns how long a statement takes on a pool with three connections that have gone silent, ms. */
    const takes = async () => {
      await Promise.all([sql`select 1`, sql`select 1`, sql`select 1`]);
      proxy.silence();
      proxy.restore();
      const begin = performance.now();
      expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
      return performance.now() - begin;
    };
    // One lost connection is enough to distrust the idle ones: three in turn would take three times the limit.
    let took = await takes();
    // A busy moment of the machine is over by then.
    if (took >= 1_700) took = await takes();
    expect(took).toBeLessThan(1_700);
  });

  // @promise starvation
  test('a silent database keeps its idle connections until it answers again, and loses those with a statement', async () => {
    open({ max: 12, patienceMs: 500 });
    // A login of a busy machine may take longer than the limits.
    await eventually('more than five connections are open', async () => {
      await Promise.all(Array.from({ length: 12 }, () => outcomeOf(sql`select pg_sleep(0.05)`)));
      return proxy.accepted() === 12;
    });
    proxy.silence();
    const outcomes = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => outcomeOf(sql`select ${n}`)));
    expect(outcomes).toEqual(outcomes.map(() => expect.any(DatabaseUnavailable)));
    await eventually('those with a statement are closed', async () => proxy.silenced() === 6);
    // Longer than an idle connection may take to answer while others are heard.
    await sleep(4_500);
    expect(proxy.silenced()).toBe(6);
    proxy.restore();
    await eventually('the database answers', async () => (await outcomeOf(sql`select 1`)) === 'done');
    // The silent ones never answer, and the database is heard on a new one.
    await eventually('the lost ones are closed', async () => proxy.silenced() === 0);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  test('statements beyond the bound of the queue fail at once, and the others are run', async () => {
    open({ max: 1, maxWaiting: 2, statementTimeoutMs: 5_000 });
    const took = await shortestTime(3_000, async () => {
      const outcomes: string[] = [];
      const run = async (name: string) => {
        const outcome = await outcomeOf(sql`select pg_sleep(0.05)`);
        outcomes.push(`${name} ${outcome instanceof DatabaseUnavailable ? 'refused' : String(outcome)}`);
      };
      await Promise.all(['first', 'second', 'third', 'fourth'].map(run));
      expect(outcomes).toEqual(['fourth refused', 'first done', 'second done', 'third done']);
    });
    expect(took).toBeLessThan(3_000);
  });

  test('a statement that was sent once says so', async () => {
    open({ max: 1, patienceMs: 0, statementTimeoutMs: 10_000 });
    await sql`select 1`;
    proxy.cut();
    expect(String(await outcomeOf(sql`select 1`))).toContain('the database did not respond in 1 attempt');
    expect(String(await outcomeOf(sql`select 1`))).not.toContain('1 attempts');
  });

  test('a longer time limit holds for its statement only', async () => {
    open({ max: 1, patienceMs: 100 });
    expect(await outcomeOf(sql.forManyRows(20_000)`select pg_sleep(0.3)`)).toBe('done');
    expect(await outcomeOf(sql`select pg_sleep(0.3)`)).toBeInstanceOf(DatabaseUnavailable);
  });

  // @promise starvation
  test('a process whose own event loop was held up keeps its connections', async () => {
    open({ max: 2 });
    const pid = async () => (await sql.one<{ pid: number }>`select pg_backend_pid() as pid`).pid;
    const before = await pid();
    const running = sql`select pg_sleep(0.02)`;
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    const endsAt = performance.now() + 800;
    while (performance.now() < endsAt);
    expect(await running).toHaveLength(1);
    expect(await pid()).toBe(before);
  });

  // @promise starvation
  test('a database whose answers take seconds keeps its connections and gets no logins on top', async () => {
    open({ max: 8, statementTimeoutMs: 10_000, patienceMs: 10_000 });
    const pids = async () =>
      new Set(
        await Promise.all(
          Array.from({ length: 8 }, async () => {
            const { pid } = await sql.one<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.05)`;
            return pid;
          }),
        ),
      );
    // A connection that logs in early may run two of the statements.
    let before = new Set<number>();
    await eventually('eight connections are open', async () => (before = await pids()).size === 8);
    // A login takes several round trips, so no probe is answered within seconds.
    proxy.delay(1_700);
    const slow = await sql.one<{ pid: number }>`select pg_backend_pid() as pid`;
    expect(before.has(slow.pid)).toBe(true);
    proxy.restore();
    // All eight are still there, although seven were idle meanwhile.
    await eventually('all connections are kept', async () => (await pids()).size === 8);
    expect(await pids()).toEqual(before);
  });

  test('at most four connections log in at one time', async () => {
    open({ max: 12, statementTimeoutMs: 5_000 });
    proxy.delay(20);
    const all = Promise.all(Array.from({ length: 12 }, () => sql`select 1`));
    await eventually('connections are opened', async () => proxy.accepted() > 0);
    expect(proxy.accepted()).toBeLessThanOrEqual(4);
    await all;
  });
});
