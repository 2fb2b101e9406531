import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createClickRecorder } from '../../src/commands/click-recorder.ts';
import type { ClickRecorder } from '../../src/commands/click-recorder.ts';
import type { ClickFact } from '../../src/db/clicks.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { runOn } from '../support/postgres-admin.ts';
import { newTenant } from '../support/rollup-tenant.ts';
import { rounds } from '../support/rounds.ts';

let database: TestDatabase;
let sql: Sql;
let record: ClickRecorder;
let appId: ClickFact['appId'];
let slugs: string[];
let statements = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect({ url: database.url, max: 4, onStatement: () => void (statements += 1) });
  record = createClickRecorder(sql);
  const tenant = await newTenant(sql, 2, 2);
  appId = tenant.appId;
  slugs = tenant.links.map((id) => id.slice(-20));
  await runOn(
    database.url,
    `create function test_refuses() returns trigger language plpgsql as $$
       begin if new.ip_hash = 'refused' then raise exception 'refused'; end if; return new; end $$;
     create trigger test_refuses before insert on clicks for each row execute function test_refuses();`,
  );
});
beforeEach(() => {
  statements = 0;
});
afterAll(async () => {
  await sql.close();
  await database.drop();
});

const click = (fields: Partial<ClickFact> = {}): ClickFact => ({
  appId,
  slug: slugs[0] ?? '',
  claimToken: randomUUID(),
  ipHash: null,
  userAgent: null,
  isBot: false,
  clickedAt: Date.UTC(2026, 2, 1),
  addressHash: null,
  ...fields,
});

async function storedOf(clicks: readonly ClickFact[]): Promise<{ id: string; claimToken: string }[]> {
  return await database.sql`
    select id, claim_token from clicks where claim_token = any(${clicks.map(({ claimToken }) => claimToken)}::text[]::uuid[])`;
}

test('clicks that arrive together share statements, and each gets its own click and link', async () => {
  const clicks = Array.from({ length: 250 }, (_, n) => click({ slug: (slugs[n % 4] ?? '').toUpperCase() }));
  const recorded = await Promise.all(clicks.map(record));
  expect(statements).toBeLessThan(10);
  expect(new Set(recorded.map((one) => one?.affiliateId)).size).toBe(2);
  const ids = new Map((await storedOf(clicks)).map(({ id, claimToken }) => [claimToken, id]));
  expect(recorded.map((one) => one?.clickId)).toEqual(clicks.map(({ claimToken }) => ids.get(claimToken)));
  expect(await findRollupDifferences(database.sql)).toEqual([]);
});

test('one token in many clicks that arrive together is one click, also beside links that do not exist', async () => {
  const same = click();
  const clicks = [click({ slug: 'unknown' }), same, same, { ...same, slug: 'unknown' }, click(), same];
  const [unknown, ...found] = await Promise.all(clicks.map(record));
  expect(unknown).toBeUndefined();
  const [first, second, third, other, last] = found.map((one) => one?.clickId);
  expect([second, third, last]).toEqual([first, first, first]);
  expect(other).not.toBe(first);
  expect(await storedOf(clicks)).toHaveLength(2);
});

test('a click that Postgres refuses fails alone', async () => {
  const clicks = Array.from({ length: 20 }, (_, n) => click({ ipHash: n === 7 ? 'refused' : 'fine' }));
  const outcomes = await Promise.allSettled(clicks.map(record));
  expect(outcomes.map(({ status }) => status === 'rejected')).toEqual(clicks.map((_, n) => n === 7));
  expect(await storedOf(clicks)).toHaveLength(19);
});

test('a user agent that was cut off within a character is recorded', async () => {
  const one = click({ userAgent: '😀'.slice(0, 1) });
  expect(await record(one)).toMatchObject({ clickId: expect.stringMatching(/^clk_/) });
  expect(await storedOf([one])).toHaveLength(1);
});

test('every click that was answered is stored, whatever connections die', async () => {
  const clicks = Array.from({ length: rounds(600, 20_000) }, () => click());
  const answered: ClickFact[] = [];
  let next = 0;
  const caller = async () => {
    for (let one = clicks[next]; one !== undefined; one = clicks[next]) {
      next += 1;
      const recorded = await record(one).catch(() => undefined);
      if (recorded !== undefined) answered.push(one);
      if (next % 40 === 0)
        await database.sql`
          select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid() and state = 'active' limit 1`;
    }
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  const stored = new Set((await storedOf(answered)).map(({ claimToken }) => claimToken));
  expect(answered.filter(({ claimToken }) => !stored.has(claimToken))).toEqual([]);
  expect(answered.length).toBeGreaterThan(clicks.length / 2);
});
