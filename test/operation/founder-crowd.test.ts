import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { sendRequest } from '../support/http-client.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { untilWaiting } from '../support/waiting.ts';

let service: TestService;
let [noisy, quiet]: Founder[] = [];
/** A session that holds a lock which reads of groups, and nothing else, wait for. */
let holder: pg.Client;

beforeAll(async () => {
  service = await startTestService({ settings: { poolSize: 10, maxConnections: 4_000 } });
  noisy = await setUpFounder(service);
  quiet = await setUpFounder(service);
  holder = new pg.Client(service.database.url);
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await service.close();
});

// @promise founder-crowd
test.each([
  ['some', 60],
  ['so many that no more of them may wait', 700],
])(
  'one account sends slow reads, %s: webhooks of others earn at once and the process stays ready',
  async (_, count) => {
    const user = await quiet!.customer();
    await holder.query('begin');
    await holder.query('lock table affiliate_groups in access exclusive mode');
    let refused = 0;
    const reads = Array.from({ length: count }, async () => {
      const response = await noisy!.call('GET', `/apps/${noisy!.app.id}/groups`);
      if (response.status === 503) refused += 1;
      return response;
    });
    if (count <= 500) await untilWaiting(service.sql, 2);
    else await eventually('one is refused', async () => await Promise.resolve(refused > 0));
    const begin = performance.now();
    const { body } = await quiet!.purchase(user, 10);
    expect(body.commissionId).toMatch(/^com_/);
    expect(await sendRequest(service.url, 'GET', '/readyz', { key: null })).toMatchObject({ status: 200 });
    // Without a share, both wait until the reads are given up.
    expect(performance.now() - begin).toBeLessThan(3_500);
    await holder.query('rollback');
    const statuses = new Set((await Promise.all(reads)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  },
);

// @promise founder-crowd
test('calls of one account that wait for a lock leave the other accounts connections', async () => {
  await holder.query('begin');
  await holder.query(`select pg_advisory_xact_lock(hashtextextended('payout of ' || $1::text, 0))`, [
    noisy!.affiliateId,
  ]);
  const path = `/apps/${noisy!.app.id}/affiliates/${noisy!.affiliateId}/payee`;
  const body = { method: 'paypal', recipient: { email: 'money@example.org' } };
  const changes = Array.from({ length: 10 }, async () => await noisy!.call('PUT', path, { body }));
  await untilWaiting(service.sql);
  const begin = performance.now();
  const statuses = [];
  for (let call = 0; call < 3; call += 1)
    statuses.push((await quiet!.call('GET', `/apps/${quiet!.app.id}/groups`)).status);
  expect(statuses).toEqual([200, 200, 200]);
  expect(performance.now() - begin).toBeLessThan(3_500);
  await holder.query('rollback');
  // The first one appends a version, and the others find it.
  expect(new Set((await Promise.all(changes)).map(({ status }) => status))).toEqual(new Set([200]));
});
