import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { untilWaiting } from '../support/waiting.ts';

const WAITING = 10;

let database: TestDatabase;
let sql: Sql;
let holder: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase({ max: 6, maxWaiting: WAITING });
  ({ sql } = database);
  holder = new pg.Client(database.url);
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await database.drop();
});

/** Locks the table of accounts while `work` runs. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  await holder.query('begin; lock table accounts in access exclusive mode');
  try {
    await work();
  } finally {
    await holder.query('rollback');
  }
}

const read = async (from: Sql) => await from`select count(*) from accounts`;

// @promise founder-crowd
test('a part of the pool in which no more statements may wait refuses its own, and none of the others', async () => {
  const [full, other] = [sql.share(2), sql.share(2)];
  let sent: Promise<unknown>[] = [];
  await whileLocked(async () => {
    sent = Array.from({ length: 2 + WAITING }, async () => await read(full));
    await untilWaiting(sql, 2);
    await expect(read(full)).rejects.toThrow(DatabaseUnavailable);
    expect(await other`select 1 as one`).toEqual([{ one: 1 }]);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });
  await Promise.all(sent);
});

test('a part of a part takes its connections from it, and no more than its own number', async () => {
  const outer = sql.share(2);
  const inner = outer.share(1);
  let sent: Promise<unknown>[] = [];
  await whileLocked(async () => {
    sent = Array.from({ length: 3 }, async () => await read(inner));
    await untilWaiting(sql, 1);
    expect(await outer`select 1 as one`).toEqual([{ one: 1 }]);
    sent.push(read(outer));
    await untilWaiting(sql, 2);
    let isEarly = true;
    sent.push(
      inner`select 1`,
      outer`select 1`.then(() => expect(isEarly).toBe(false)),
    );
    expect(await sql`select pg_sleep(0.2)::text as done`).toEqual([{ done: '' }]);
    expect(sql.usage()).toMatchObject({ waiting: 4 });
    isEarly = false;
  });
  await Promise.all(sent);
});
