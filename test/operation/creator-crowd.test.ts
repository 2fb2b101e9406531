import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { sendRequest } from '../support/http-client.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { signInCreator } from '../support/sessions.ts';
import { untilWaiting } from '../support/waiting.ts';

let service: TestService;
let founder: Founder;
/** A session that holds a lock which reads of payees, and nothing else, wait for. */
let holder: pg.Client;

beforeAll(async () => {
  service = await startTestService({ settings: { poolSize: 10 } });
  founder = await setUpFounder(service);
  holder = new pg.Client(service.database.url);
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await service.close();
});

// @promise creator-crowd
test('however many slow calls a creator sends, webhooks earn at once, and calls of founders and health checks go on', async () => {
  const user = await founder.customer();
  const { app, key, affiliateId } = founder;
  const headers = await signInCreator(
    { call: async (method, path, options) => await founder.call(method, path, { key: null, ...options }) },
    { appId: app.id, key },
    affiliateId,
  );
  await holder.query('begin');
  await holder.query('lock table payees in access exclusive mode');
  let refused = 0;
  const reads = Array.from({ length: 100 }, async () => {
    const response = await founder.call('GET', '/creator', { headers, key: null });
    if (response.status === 503) refused += 1;
    return response;
  });
  await untilWaiting(service.sql);
  const begin = performance.now();
  const { body } = await founder.purchase(user, 10);
  expect(body.commissionId).toMatch(/^com_/);
  expect((await founder.call('GET', `/apps/${app.id}/groups`)).status).toBe(200);
  expect(await sendRequest(service.url, 'GET', '/readyz', { key: null })).toMatchObject({ status: 200 });
  // Without a share, all three wait until the reads are given up.
  expect(performance.now() - begin).toBeLessThan(3_500);
  await eventually(
    'those beyond the slots of the queue are refused',
    async () => await Promise.resolve(refused >= 34),
  );
  await holder.query('rollback');
  const statuses = new Set((await Promise.all(reads)).map(({ status }) => status));
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
});
