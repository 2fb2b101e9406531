import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { pino } from 'pino';
import { createRefusalCounter } from '../../src/commands/refusal-counter.ts';
import type { RefusedRequests } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';

const logger = pino({ level: 'silent' });

describe('the counter of refused webhooks', () => {
  const APP = newId('app');

  function refusal(nth: number, appId = APP, receivedAt = 0) {
    const bodySha256 = Buffer.alloc(32);
    bodySha256.writeUInt32BE(nth);
    return { appId, provider: 'stripe', receivedAt, bodySha256, reason: 'no' };
  }

  /** Creates a counter whose writes are kept in memory. */
  function counter(fails: () => boolean = () => false) {
    const writes: (readonly RefusedRequests[])[] = [];
    const made = createRefusalCounter({
      logger,
      record: async (rows) => {
        if (fails()) throw new Error('the database is unavailable');
        writes.push(rows);
        return [];
      },
    });
    const counted = () => writes.flat().reduce((sum, { count }) => sum + count, 0);
    return { ...made, writes, counted };
  }

  // @promise refusals-in-memory
  test('a flood of one app is written in one statement of a few rows, and every request is counted', async () => {
    const { count, flush, writes, counted } = counter();
    for (let nth = 0; nth < 10_000; nth += 1) count(refusal(nth));
    await flush();
    expect(writes).toHaveLength(1);
    expect(writes[0]?.length).toBeLessThan(50);
    expect(counted()).toBe(10_000);
  });

  test('the requests of two hours are counted apart', async () => {
    const { count, flush, writes } = counter();
    for (const at of [0, HOUR_MS - 1, HOUR_MS]) count(refusal(1, APP, at));
    await flush();
    expect(writes[0]?.map((row) => [row.receivedAt, row.count])).toEqual([
      [HOUR_MS - 1, 2],
      [HOUR_MS, 1],
    ]);
  });

  // @promise refusals-in-memory
  test('a failed write is repeated with the next one, and nothing is counted twice', async () => {
    let isAway = true;
    const { count, flush, counted } = counter(() => isAway);
    for (let nth = 0; nth < 100; nth += 1) count(refusal(nth));
    await flush();
    count(refusal(1));
    isAway = false;
    await flush();
    await flush();
    expect(counted()).toBe(101);
  });

  // @promise refusals-in-memory
  test('the memory is bounded, however many apps and bodies there are', async () => {
    const { count, flush, writes } = counter(() => false);
    for (let app = 0; app < 3_000; app += 1) {
      const appId = newId('app');
      for (let nth = 0; nth < 40; nth += 1) count(refusal(nth, appId));
    }
    await flush();
    expect(writes.flat().length).toBeLessThan(20_000);
  });
});

describe('a flood of refused webhooks', () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startTestApi();
  });
  afterAll(async () => {
    await api.close();
  });

  // @promise refusals-in-memory
  test('refused webhooks do not wait for the row that counts them, and the list shows them at once', async () => {
    const app = await newApp(api);
    const forge = async () =>
      await api.call('POST', `/webhooks/stripe/${app.appId}`, { body: { forged: true } });
    const list = async () =>
      await api.call<{ items: object[] }>('GET', `/apps/${app.appId}/diagnostics/webhooks`, { key: app.key });
    await forge();
    expect((await list()).body.items).toMatchObject([
      { signatureValid: false, processingStatus: 'rejected' },
    ]);

    const locker = new Client({ connectionString: api.database.url });
    locker.on('error', () => {});
    await locker.connect();
    await locker.query('begin');
    await locker.query('select from deliveries where app_id = $1 for update', [app.appId]);
    const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await forge()).status));
    expect(new Set(statuses)).toEqual(new Set([401]));
    await locker.query('rollback');
    await locker.end();
    await list();
    const { refusedCount } = await api.sql.one<{ refusedCount: number }>`
      select refused_count from deliveries where app_id = ${app.appId}`;
    expect(refusedCount).toBe(41);
  });
});
