import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
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
  service = await startTestService({ settings: { poolSize: 10 } });
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
test('however many slow reads one account sends, webhooks of others earn at once and the process stays ready', async () => {
  const user = await quiet!.customer();
  await holder.query('begin');
  await holder.query('lock table affiliate_groups in access exclusive mode');
  const reads = Array.from(
    { length: 60 },
    async () => await noisy!.call('GET', `/apps/${noisy!.app.id}/groups`),
  );
  await untilWaiting(service.sql, 2);
  const begin = performance.now();
  const { body } = await quiet!.purchase(user, 10);
  expect(body.commissionId).toMatch(/^com_/);
  expect(await sendRequest(service.url, 'GET', '/readyz', { key: null })).toMatchObject({ status: 200 });
  // Without a share, both wait until the reads are given up.
  expect(performance.now() - begin).toBeLessThan(3_500);
  await holder.query('rollback');
  const statuses = new Set((await Promise.all(reads)).map(({ status }) => status));
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
});
