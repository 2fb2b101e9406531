import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import type { ReadinessCheck } from '../../src/http/deps.ts';
import { createReadiness } from '../../src/readiness.ts';
import { createKeyGate, createSecretsCheck } from '../../src/secrets-check.ts';
import { unusableDatabase } from '../../src/unusable-database.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runOn } from '../support/postgres-admin.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

const logger = pino({ level: 'silent' });

/** Returns the readiness of a new process. */
function startProcess(acceptsLostKeys = false) {
  const { sql } = database;
  const checkSecrets = createSecretsCheck({ sql, secretBox: createSecretBox([Buffer.alloc(32, 9)]), logger });
  const readiness = createReadiness({
    sql,
    connection: { problem: null, setUpProblem: null },
    checkSecrets,
    checkClock: async () => await Promise.resolve(null),
    logger,
    acceptsLostKeys,
  });
  return { checkSecrets, readiness };
}

const failedOf = (checks: readonly ReadinessCheck[]) => checks.filter(({ ok, optional }) => !ok && !optional);

// @promise environment-faults
test('a database that refuses the question for stored secrets leaves a process that has checked its key ready, and the check says what is wrong', async () => {
  const { checkSecrets, readiness } = startProcess();
  await checkSecrets();
  const now = performance.now.bind(performance);
  await runOn(database.url, 'alter table webhook_secrets rename to lost');
  try {
    performance.now = () => now() + HOUR_MS;
    const checks = await readiness();
    expect(failedOf(checks)).toEqual([]);
    expect(checks.find(({ ok }) => !ok)).toMatchObject({
      name: 'database_statements',
      detail: expect.stringContaining('run the migrations'),
    });
    expect(checks.find(({ name }) => name === 'secrets')).toMatchObject({ ok: true });
  } finally {
    performance.now = now;
    await runOn(database.url, 'alter table lost rename to webhook_secrets');
  }
});

// @promise lost-key-reported
test('a process that never could check its key is not ready until the database says which keys are needed', async () => {
  const [refused, accepting] = [startProcess(), startProcess(true)];
  await runOn(database.url, 'alter table webhook_secrets rename to lost');
  try {
    expect(failedOf(await refused.readiness())).toEqual([
      {
        name: 'secrets',
        ok: false,
        optional: false,
        detail: expect.stringMatching(/never checked whether SECRETS_KEY opens.*run the migrations/),
      },
    ]);
    expect(failedOf(await accepting.readiness())).toEqual([]);
  } finally {
    await runOn(database.url, 'alter table lost rename to webhook_secrets');
  }
  await eventually('it is ready', async () => failedOf(await refused.readiness()).length === 0);
});

describe('a database whose statements take three seconds', () => {
  let proxy: CuttableProxy;
  let sql: Sql;
  let clockProblem: string | null = null;
  /** How often the first question of a check was asked. */
  let checks = 0;
  let readiness: () => Promise<ReadinessCheck[]>;

  beforeAll(async () => {
    proxy = await startProxy(database.url);
    sql = connect({
      url: proxy.url,
      max: 4,
      statementTimeoutMs: 4_000,
      patienceMs: 4_000,
      onStatement: ({ text }) => {
        if (text.includes('pg_is_in_recovery')) checks += 1;
      },
    });
    // Each asks the database every time, as at the end of their pauses.
    readiness = createReadiness({
      sql,
      connection: { problem: null, setUpProblem: null },
      checkSecrets: async () => (await sql.one<{ problem: null }>`select null as problem`).problem,
      checkClock: async () => {
        await sql`select clock_timestamp()`;
        return clockProblem;
      },
      logger,
    });
    await eventually('all connections are open', async () => {
      await Promise.all(Array.from({ length: 4 }, async () => await sql`select pg_sleep(0.05)`));
      return proxy.accepted() === 4;
    });
  });
  afterAll(async () => {
    await sql.close();
    await proxy.close();
  });
  const named = (list: readonly ReadinessCheck[], name: string) => list.find((check) => check.name === name);

  // @promise slow-database-ready
  test('leaves a process ready within 5 s, with the last results of what it does not answer in time', async () => {
    clockProblem = 'wrong';
    expect(named(await readiness(), 'clock')).toMatchObject({ detail: 'wrong' });
    await sleep(300);
    /** Returns how long a check takes, ms. */
    const takes = async () => {
      proxy.delay(1_500);
      const begin = performance.now();
      const list = await readiness();
      const tookMs = performance.now() - begin;
      proxy.restore();
      await eventually('the late answers have arrived', async () => sql.usage().busy === 0);
      expect(failedOf(list)).toEqual([]);
      expect(named(list, 'database')).toMatchObject({ ok: true });
      expect(['secrets', 'payouts', 'clock'].map((name) => named(list, name)?.ok)).toEqual([
        true,
        true,
        false,
      ]);
      return tookMs;
    };
    let tookMs = await takes();
    // A busy moment of the machine is over by then.
    if (tookMs >= 5_000) tookMs = await takes();
    expect(tookMs).toBeGreaterThan(2_900);
    expect(tookMs).toBeLessThan(5_000);
  });

  // @promise slow-database-ready
  test('gets one check for all who ask while it runs and just after it', async () => {
    await sleep(300);
    proxy.delay(1_500);
    checks = 0;
    const lists = await Promise.all(
      Array.from({ length: 20 }, async (_, turn) => {
        await sleep(turn * 100);
        return await readiness();
      }),
    );
    await readiness();
    proxy.restore();
    expect(checks).toBe(1);
    expect(lists.map((list) => named(list, 'database')?.ok)).toEqual(lists.map(() => true));
    await eventually('the late answers have arrived', async () => sql.usage().busy === 0);
  });

  test('lists no clock that agreed before, because a time in the future is then refused permanently', async () => {
    clockProblem = null;
    await sleep(300);
    expect(named(await readiness(), 'clock')).toMatchObject({ ok: true });
    await sleep(300);
    proxy.delay(1_500);
    const list = await readiness();
    proxy.restore();
    expect(named(list, 'clock')).toBeUndefined();
    expect(failedOf(list)).toEqual([]);
  });
});

test('a check is sent before all statements that wait for a connection', async () => {
  const sent: string[] = [];
  const sql = connect({ url: database.url, max: 1, onStatement: ({ text }) => sent.push(text) });
  try {
    const readiness = createReadiness({
      sql,
      connection: { problem: null, setUpProblem: null },
      checkSecrets: async () => await Promise.resolve(null),
      checkClock: async () => await Promise.resolve(null),
      logger,
    });
    const others = Array.from({ length: 20 }, async () => await sql`select pg_sleep(0.02)`);
    await Promise.all([...others, readiness()]);
    // The first of the others has the only connection when the check begins.
    expect(sent[1]).toContain('pg_is_in_recovery');
  } finally {
    await sql.close();
  }
});

test('a question that is urgent asks a database that refuses connections no longer than it says', async () => {
  const server = await startProxy(database.url);
  await server.close();
  const sql = connect({ url: server.url, max: 1 });
  try {
    await expect(sql.urgent(0)`select 1`).rejects.toThrow(/did not respond in 1 attempt$/);
    await expect(sql.urgent(100)`select 1`).rejects.toThrow(/did not respond in \d attempts$/);
  } finally {
    await sql.close();
  }
});

// @promise missing-key-waits
test('a process takes no work before it has had all keys once, and then always', async () => {
  let answer: () => string | null = () => {
    throw new Error('the database does not say');
  };
  const check = async () => await Promise.resolve().then(answer);
  const gate = createKeyGate(check, false);
  expect(await gate.check()).toMatch(/never checked/);
  answer = () => 'a key is missing';
  expect(await gate.check()).toBe('a key is missing');
  expect(gate.isOpen()).toBe(false);
  expect(await createKeyGate(check, true).check()).toBeNull();
  answer = () => null;
  expect(await gate.check()).toBeNull();
  answer = () => 'a key is missing';
  expect(await gate.check()).toBeNull();
  expect(gate.isOpen()).toBe(true);
});

test('a clock that is set does not change when the database is asked for stored secrets', async () => {
  let asked = 0;
  const sql = Object.assign(
    async () => {
      asked += 1;
      return await Promise.resolve([]);
    },
    { fragment: () => null },
  ) as unknown as Sql;
  const secretBox = createSecretBox([Buffer.alloc(32, 9)]);
  const check = createSecretsCheck({ sql, secretBox, logger: pino({ level: 'silent' }) });
  const { now } = Date;
  try {
    await check();
    Date.now = () => now() + HOUR_MS;
    await check();
  } finally {
    Date.now = now;
  }
  expect(asked).toBe(1);
});

/** Returns the message of a start whose statement failed. Postgres cancels a statement after `limitMs`, if there is a limit. */
async function messageOf(
  url: string,
  run: (sql: Sql) => Promise<unknown>,
  limitMs: number | null = null,
): Promise<string> {
  const settings = limitMs === null ? {} : { statement_timeout: limitMs };
  const sql = connect({ url, max: 1, patienceMs: 100, settings });
  try {
    await run(sql);
    return '';
  } catch (error) {
    return unusableDatabase(url, error).message;
  } finally {
    await sql.close();
  }
}

describe('a start that fails at a database says what to do', () => {
  test('about one that is too slow, whose DATABASE_URL is right', async () => {
    const message = await messageOf(database.url, async (sql) => await sql`select pg_sleep(5)`, 20);
    expect(message).toMatch(
      /can't be used \(.+\): it responds too slowly for the service\. Look at its load/,
    );
    expect(message).not.toContain('DATABASE_URL');
  });

  test('about one with a fault of its own, whose DATABASE_URL is right', async () => {
    const message = await messageOf(database.url, async (sql) => await sql`select 1 from no_such_table`);
    expect(message).toMatch(/run the migrations/);
    expect(message).not.toContain('DATABASE_URL');
  });

  test.each([
    ['another database', (url: URL) => (url.pathname = '/no_such_database')],
    ['another port', (url: URL) => (url.port = '1')],
  ])('about %s, which DATABASE_URL names', async (_, change) => {
    const url = new URL(database.url);
    change(url);
    expect(await messageOf(url.toString(), async (sql) => await sql`select 1`)).toMatch(
      /: check DATABASE_URL, or unset it to use the built-in Postgres\.$/,
    );
  });
});
