import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { rounds } from '../support/rounds.ts';

let database: TestDatabase;
let sql: Sql;
let killer: pg.Client;
const escaped: unknown[] = [];
/** Ends the callers also where the test ran out of time: without a connection each would fail at once, for ever. */
let isOver = false;
const note = (error: unknown) => {
  escaped.push(error);
};

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect({ url: database.url, max: 8, applicationName: 'victim', patienceMs: 20_000 });
  killer = new pg.Client(database.url);
  await killer.connect();
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
});
afterAll(async () => {
  isOver = true;
  process.off('uncaughtException', note);
  process.off('unhandledRejection', note);
  await killer.end();
  await sql.close();
  await database.drop();
});

const KILLS = rounds(400, 3_000);
const CALLERS = 16;
/** How many rounds of a caller are complete at least. */
const LEAST_DONE = 100;
/** Longer than any statement here takes, including retries. */
const HANG_MS = 25_000;

async function withinTime<T>(work: Promise<T>): Promise<T | 'hung'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'hung'>((resolve) => {
    timer = setTimeout(() => resolve('hung'), HANG_MS);
  });
  const result = await Promise.race([work, late]);
  clearTimeout(timer);
  return result;
}

describe('statements and transactions while connections are killed under load', () => {
  test('killed connections cause no wrong row, no hang, no uncaught error, no double write and no half of a transaction', async () => {
    await sql`create table counted (id bigint primary key, value text not null)`;
    await sql`create table halves (id bigint not null, half int not null, primary key (id, half))`;
    let killed = 0;
    let done = 0;
    let unavailable = 0;
    const wrong: unknown[] = [];
    const hung: number[] = [];

    // On a busy machine the kills are fast and the callers slow.
    const enough = () => isOver || (killed >= KILLS && done > LEAST_DONE);
    const kill = async () => {
      while (!enough()) {
        const { rowCount } = await killer.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'victim' and datname = current_database() order by random() limit 1`,
        );
        killed += rowCount ?? 0;
        await sleep(2);
      }
    };
    const call = async (caller: number) => {
      for (let n = 0; !enough(); n += 1) {
        const id = caller * 10_000_000 + n;
        try {
          const write = await withinTime(
            sql.one<{ id: number }>`
              insert into counted (id, value) values (${id}, ${`v${id}`})
              on conflict (id) do update set value = excluded.value returning id`,
          );
          const read = await withinTime(
            sql.one<{ id: number; value: string }>`select id, value from counted where id = ${id}`,
          );
          const none = await withinTime(sql.maybe`select id from counted where id = ${-id - 1}`);
          const pair = await withinTime(
            sql.transaction(async (tx) => {
              for (const half of [1, 2])
                await tx`insert into halves (id, half) values (${id}, ${half}) on conflict do nothing`;
              return await tx.one<{
                halves: number;
              }>`select count(*)::int as halves from halves where id = ${id}`;
            }),
          );
          if (write === 'hung' || read === 'hung' || none === 'hung' || pair === 'hung') hung.push(id);
          else if (write.id !== id || read.value !== `v${id}` || none !== undefined || pair.halves !== 2)
            wrong.push({ id, write, read, none, pair });
          done += 1;
        } catch (error) {
          if (!(error instanceof DatabaseUnavailable)) throw error;
          unavailable += 1;
        }
      }
    };
    await Promise.all([kill(), ...Array.from({ length: CALLERS }, (_, caller) => call(caller))]);

    expect({ wrong, hung, escaped }).toEqual({ wrong: [], hung: [], escaped: [] });
    expect(killed).toBeGreaterThanOrEqual(KILLS);
    expect(done).toBeGreaterThan(LEAST_DONE);
    const { n } = await sql.one<{
      n: number;
    }>`select count(*)::int as n from counted where value = 'v' || id`;
    expect(n).toBeGreaterThanOrEqual(done);
    const torn = await sql`select id from halves group by id having count(*) <> 2`;
    expect(torn).toEqual([]);
    const pairs = await sql.one<{ n: number }>`select count(distinct id)::int as n from halves`;
    expect(pairs.n).toBeGreaterThanOrEqual(done);
    process.stderr.write(
      `connection kills: ${killed} killed, ${done} rounds done, ${unavailable} given up\n`,
    );
  }, 120_000);
});
