import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql, Statements } from '../../src/db/sql.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { countWaiting, untilWaiting } from '../support/waiting.ts';
import { eventually } from '../support/eventually.ts';

let database: TestDatabase;
let proxy: CuttableProxy;
/** Through the proxy. */
let sql: Sql;
let operator: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startProxy(database.url);
  sql = connect({ url: proxy.url, max: 4, applicationName: 'victim', patienceMs: 20_000 });
  operator = new pg.Client(database.url);
  await operator.connect();
  await operator.query('create table notes (id int primary key, text text not null)');
});
beforeEach(async () => {
  proxy.restore();
  await operator.query('truncate notes');
});
afterAll(async () => {
  await operator.end();
  await sql.close();
  await proxy.close();
  await database.drop();
});

const note = async (tx: Statements, id: number, text = '') =>
  await tx`insert into notes (id, text) values (${id}, ${text})`;
const noted = async () => {
  const { rows } = await operator.query<{ id: number }>('select id from notes order by id');
  return rows.map(({ id }) => id);
};
/** Ends the connection of a transaction on the side of the server, and waits until it has gone. */
async function killConnection(tx: Statements): Promise<void> {
  const { pid } = await tx.one<{ pid: number }>`select pg_backend_pid() as pid`;
  await operator.query('select pg_terminate_backend($1)', [pid]);
  await eventually('the session has ended', async () => {
    const { rowCount } = await operator.query('select from pg_stat_activity where pid = $1', [pid]);
    return rowCount === 0;
  });
}

describe('a transaction', () => {
  test('it returns what its work returns, and all of its statements take effect together', async () => {
    const result = await sql.transaction(async (tx) => {
      await note(tx, 1);
      expect(await noted()).toEqual([]);
      await note(tx, 2);
      return 'done';
    });
    expect(result).toBe('done');
    expect(await noted()).toEqual([1, 2]);
  });

  test('an error in its work rolls it back, and its connection goes on', async () => {
    const one = connect({ url: database.url, max: 1 });
    const failing = one.transaction(async (tx) => {
      await note(tx, 1);
      throw new TypeError('as planned');
    });
    await expect(failing).rejects.toThrow(new TypeError('as planned'));
    const { pid } = await one.one<{ pid: number }>`select pg_backend_pid() as pid`;
    await expect(one.transaction(async (tx) => await tx`select 1 / 0`)).rejects.toThrow('division by zero');
    expect(await one.one`select pg_backend_pid() as pid`).toEqual({ pid });
    expect(await noted()).toEqual([]);
    await one.close();
  });

  test('a statement that fails and is caught fails the transaction, instead of committing nothing in silence', async () => {
    const failing = sql.transaction(async (tx) => {
      await note(tx, 1);
      await tx`select 1 / 0`.catch(() => {});
    });
    await expect(failing).rejects.toThrow('went on after one of its statements had failed');
    expect(await noted()).toEqual([]);
  });

  test('a connection that is lost between two statements makes all of it run again, and nothing runs outside of it', async () => {
    const attempts: number[] = [];
    await sql.transaction(async (tx) => {
      const attempt = attempts.push(attempts.length);
      await note(tx, 10 * attempt);
      if (attempt === 1) await killConnection(tx);
      await note(tx, 10 * attempt + 1);
    });
    expect(attempts).toHaveLength(2);
    expect(await noted()).toEqual([20, 21]);
  });

  test('a connection that is lost before the commit makes all of it run again', async () => {
    let attempt = 0;
    await sql.transaction(async (tx) => {
      attempt += 1;
      await note(tx, attempt);
      if (attempt === 1) await killConnection(tx);
    });
    expect(await noted()).toEqual([2]);
  });

  // The driver reports a reset before the end of the connection, and would wait for ever for what is sent in between.
  test.each([
    [
      'transaction',
      async (on: Sql, work: (tx: Statements) => Promise<unknown>) => await on.transaction(work),
    ],
    [
      'large statement',
      async (on: Sql, work: (tx: Statements) => Promise<unknown>) => await work(on.forManyRows(30_000)),
    ],
  ])('a connection that is reset while a %s waits makes it run again at once', async (_kind, run) => {
    const one = connect({ url: proxy.url, max: 1, statementTimeoutMs: 20_000, patienceMs: 20_000 });
    const direct = connect({ url: database.url, max: 1 });
    let ms = 0;
    // A statement that the connection has prepared.
    const sleeping = async () => await run(one, async (tx) => await tx`select pg_sleep(${ms / 1_000})`);
    await sleeping();
    ms = 10_000;
    const slow = sleeping();
    await eventually('it waits', async () => {
      const { n } = await direct.one<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
         where datname = current_database() and wait_event = 'PgSleep'`;
      return n === 1;
    });
    ms = 0;
    proxy.reset();
    expect(await slow).toHaveLength(1);
    await direct`
      select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and wait_event = 'PgSleep'`;
    await Promise.all([one.close(), direct.close()]);
  });

  test('it runs again after a commit whose answer was lost, and finds what it has written', async () => {
    await operator.query(`
      create function wait_at_commit() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock(7);
        return null;
      end $$;
      create constraint trigger notes_wait after insert on notes deferrable initially deferred
        for each row execute function wait_at_commit();
      select pg_advisory_lock(7)`);
    try {
      const found: number[] = [];
      const noting = sql.transaction(async (tx) => {
        const rows = await tx`select from notes where id = 1`;
        found.push(rows.length);
        if (rows.length === 0) await note(tx, 1);
      });
      const direct = connect({ url: database.url, max: 1 });
      await untilWaiting(direct);
      proxy.cut();
      await operator.query('select pg_advisory_unlock(7)');
      await eventually('the commit has ended', async () => (await noted()).length === 1);
      expect(await countWaiting(direct)).toBe(0);
      await direct.close();
      proxy.restore();
      await noting;
      expect(found).toEqual([0, 1]);
      expect(await noted()).toEqual([1]);
    } finally {
      await operator.query('select pg_advisory_unlock_all(); drop trigger notes_wait on notes');
    }
  });

  test('of two transactions that wait for each other, Postgres ends one, and it runs again', async () => {
    await operator.query(`insert into notes values (1, ''), (2, '')`);
    let ready = 0;
    let attempts = 0;
    const change = async (order: readonly number[]) =>
      await sql.transaction(async (tx) => {
        attempts += 1;
        for (const [n, id] of order.entries()) {
          await tx`update notes set text = text || 'x' where id = ${id}`;
          if (n > 0) continue;
          ready += 1;
          await eventually('both hold a row', async () => await Promise.resolve(ready >= 2));
        }
      });
    await Promise.all([change([1, 2]), change([2, 1])]);
    expect(attempts).toBe(3);
    const { rows } = await operator.query<{ text: string }>('select text from notes');
    expect(rows.map(({ text }) => text)).toEqual(['xx', 'xx']);
  });

  test('two statements at once, and a statement after its end, are errors of the program', async () => {
    const both = sql.transaction(async (tx) => await Promise.all([note(tx, 1), note(tx, 2)]));
    await expect(both).rejects.toThrow('one statement at a time');
    const left = await sql.transaction(async (tx) => {
      await note(tx, 3);
      return { tx };
    });
    await expect(left.tx`select 1`).rejects.toThrow('has ended');
    expect(await noted()).toEqual([3]);
  });

  test('its limits and the choice of plans end with it', async () => {
    const one = connect({ url: database.url, max: 1, statementTimeoutMs: 2_000 });
    const settings = async (on: Statements) =>
      await on.one`select current_setting('statement_timeout') as "timeout", current_setting('enable_seqscan') as "scans",
                          current_setting('idle_in_transaction_session_timeout') as "idle"`;
    const before = await settings(one);
    expect(await one.forManyRows(30_000).transaction(settings)).toEqual({
      timeout: '30s',
      scans: 'on',
      idle: '10s',
    });
    expect(await settings(one)).toEqual(before);
    expect(before).toEqual({ timeout: '2s', scans: 'off', idle: '0' });
    await one.close();
  });

  test('a database that stays away makes it fail as unavailable', async () => {
    const impatient = connect({ url: proxy.url, max: 1, patienceMs: 300 });
    proxy.cut();
    await expect(impatient.transaction(async (tx) => await note(tx, 1))).rejects.toThrow(DatabaseUnavailable);
    proxy.restore();
    await impatient.close();
  });

  test('its statements name who makes the changes', async () => {
    const actor = { kind: 'operator' } as const;
    const found = await sql
      .actingAs(actor as never)
      .transaction(async (tx) => await Promise.resolve(tx.actor));
    expect(found).toBe(JSON.stringify(actor));
  });
});
