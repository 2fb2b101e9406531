import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createRetentionActivities } from '../../activities/retention.ts';
import { readBacklog } from '../../src/db/backlog.ts';
import { claimUnfinishedDeliveries } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { HOUR_MS } from '../../src/domain/time.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  await api.call('PUT', `/apps/${app.appId}/webhooks/revenuecat/secret`, {
    key: app.key,
    body: { secret: 'a-secret-of-thirty-two-characters', environment: 'production' },
  });
});
afterAll(async () => {
  await api.close();
});

// @promise database-clock
test.each([
  ['ahead', HOUR_MS],
  ['behind', -HOUR_MS],
])(
  'a delivery that a process with a clock an hour %s accepted has its turn and its age by the clock of the database',
  async (_, error) => {
    await api.sql`delete from delivery_bodies`;
    await api.sql`delete from deliveries`;
    api.clock.now = Date.now() + error;
    const { status } = await api.call('POST', `/webhooks/revenuecat/${app.appId}`, {
      body: { event: { id: `event-${_}`, type: 'TEST' } },
      headers: { authorization: 'a-secret-of-thirty-two-characters' },
    });
    expect(status).toBe(200);
    const { oldestUnfinishedSeconds, unfinishedDeliveries } = await readBacklog(api.sql);
    expect(unfinishedDeliveries).toBe(1);
    expect(oldestUnfinishedSeconds).toBeGreaterThanOrEqual(0);
    expect(oldestUnfinishedSeconds).toBeLessThan(60);
    // Not an hour late. With a clock behind, the relay may start it once more, which changes nothing.
    if (error > 0) expect(await claimUnfinishedDeliveries(api.sql, 60_000, 10)).toEqual([]);
    expect(await claimUnfinishedDeliveries(api.sql, 0, 10)).toHaveLength(1);
  },
);

test('a request of a payout run, which is valid for an hour, is late only once it has expired', async () => {
  const affiliateId = await newAffiliate(api, app);
  const insert = async (age: string, valid: string) =>
    await api.sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, created_at, expires_at)
      select ${newId('payoutRequest')}, ${app.appId}, ${affiliateId}, account_id, id, now() - ${age}::interval,
             now() - ${age}::interval + ${valid}::interval
        from account_keys where account_id = ${app.accountId} limit 1`;
  const oldest = async () => Math.floor((await readBacklog(api.sql)).oldestPayoutRequestSeconds / 60);
  await insert('30 minutes', '1 hour');
  expect(await oldest()).toBe(0);
  await insert('2 minutes', '20 seconds');
  expect(await oldest()).toBe(2);
  await insert('61 minutes', '1 hour');
  expect(await oldest()).toBe(61);
});

// @promise database-clock
test('a worker whose clock is years ahead removes nothing early', async () => {
  const activities = createRetentionActivities({ sql: api.sql, logger: pino({ level: 'silent' }) });
  const id = newId('delivery');
  await api.sql`
    insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, body_sha256, event_id, refused_hour,
                            refused_count, last_error, completed_at)
    values (${id}, ${app.appId}, 'stripe', now(), false, 'rejected', sha256(''), ${newId('event')},
            date_trunc('hour', now(), 'UTC'), 1, 'x', now())`;
  const real = Date.now;
  Date.now = () => real() + 5 * 365 * 24 * HOUR_MS;
  try {
    expect(await activities.removeExpired('refused_counters', '')).toEqual({ removed: 0, next: null });
  } finally {
    Date.now = real;
  }
  expect(await api.sql`select 1 from deliveries where id = ${id}`).toHaveLength(1);
});
