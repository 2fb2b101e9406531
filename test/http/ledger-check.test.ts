import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { checkLedger, LedgerCheckTooLong } from '../../src/db/ledger-checks/index.ts';
import { connect } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { MINUTE_MS } from '../../src/domain/time.ts';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { untilWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;
/** A time that only advances, ms, and how far each reading moves it. */
let elapsed = 0;
let tickMs = 0;
let now = Date.UTC(2026, 5, 15, 12);
/** How far each reading of the clock sets it back, ms. */
let backMs = 0;

beforeAll(async () => {
  api = await startTestApi({ now: () => (now -= backMs), elapsed: () => (elapsed += tickMs) });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const check = (owner = app) =>
  api.call<{ ok: boolean; checks: unknown[]; detail?: string }>(
    'GET',
    `/apps/${owner.appId}/diagnostics/ledger`,
    { key: owner.key },
  );

/** Locks a table against reads while `work` runs. */
async function whileLocked<T>(table: string, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client(api.database.url);
  await client.connect();
  try {
    await client.query(`begin; lock table ${table} in access exclusive mode`);
    return await work();
  } finally {
    await client.query('rollback');
    await client.end();
  }
}

describe('GET diagnostics/ledger', () => {
  // @promise ledger-check-rules
  test('the check returns each rule as a sentence, also for an app without commissions', async () => {
    const { status, body } = await check();
    expect(status).toBe(200);
    expect(body).toEqual({ ok: true, checkedAt: now, checks: expect.any(Array) });
    for (const one of body.checks) {
      expect(one).toEqual({
        name: expect.stringMatching(/^[a-z_]+$/),
        ok: true,
        description: expect.stringMatching(/^[A-Z].*\.$/),
        violations: 0,
        examples: [],
      });
    }
  });

  test('an account runs one check at a time and a process two, and another one is a 503 with Retry-After', async () => {
    const [others, thirds] = [await newApp(api), await newApp(api)];
    const { running } = await whileLocked('payouts', async () => {
      const first = check();
      await untilWaiting(api.sql);
      const again = await check(await newApp(api, app));
      expect(again).toMatchObject({ status: 503, body: { code: 'unavailable' } });
      expect(again.headers.get('retry-after')).toBe('10');
      const second = check(others);
      await untilWaiting(api.sql, 2);
      expect((await check(thirds)).status).toBe(503);
      return { running: [first, second] };
    });
    for (const response of await Promise.all(running)) expect(response.status).toBe(200);
    expect((await check()).status).toBe(200);
  });

  test.each([
    ['', 0],
    [', also while the clock of the process is set back', MINUTE_MS],
  ])('a check that takes too long ends with a 503 that names the command line%s', async (_, back) => {
    [tickMs, backMs] = [3_000, back];
    const { status, body, headers } = await check();
    [tickMs, backMs] = [0, 0];
    expect({ status, detail: body.detail }).toEqual({
      status: 503,
      detail: expect.stringContaining('command line'),
    });
    expect(headers.get('retry-after')).toBe('3600');
    expect((await check()).status).toBe(200);
  });

  test('a check is not repeated when a statement reaches its time limit', async () => {
    const sent: string[] = [];
    const impatient = connect({
      onStatement: ({ text }) => void sent.push(text),
      url: api.database.url,
      max: 1,
      patienceMs: 1_000,
      // Postgres ends the statement. A process that is busy for a while still waits for that.
      settings: { statement_timeout: 2_000 },
    });
    await whileLocked('payouts', async () => {
      await expect(checkLedger(impatient, [app.appId as AppId])).rejects.toThrow(LedgerCheckTooLong);
    });
    expect(sent.filter((text) => text.includes('payouts'))).toHaveLength(1);
    await impatient.close();
  });
});
