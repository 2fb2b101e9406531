import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createPayoutActivities } from '../../activities/payout.ts';
import type { PayoutRequestId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, openRequest } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;
const settled: PayoutRequestId[] = [];

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const request = async (affiliateId: string, validForMs = 20_000) =>
  await openRequest(api, app, affiliateId, validForMs);

// @promise export-recovers-from-overload
test('an export does not wait behind the exports of its creator that were given up', async () => {
  const affiliateId = await newAffiliate(api, app);
  const other = await newAffiliate(api, app);
  const at = Date.now() - 40 * DAY_MS;
  await insertEarning(api, app, { affiliateId, amountCents: 500, occurredAt: at, dueAt: at });
  const ledger = createPayoutActivities({
    sql: api.sql,
    logger: pino({ level: 'silent' }),
    onSettled: (id) => void settled.push(id),
  });
  const givenUp = await request(affiliateId);
  await api.sql`update payout_requests set status = 'closed', settled_at = now() where id = ${givenUp}`;
  const expired = await request(affiliateId, -1);
  const [first, second, ofOther] = [
    await request(affiliateId),
    await request(affiliateId),
    await request(other),
  ];

  expect(await ledger.settlePayoutRequest(givenUp)).toBe('closed');
  const rows = await api.sql<{ id: PayoutRequestId; status: string }>`
    select id, status from payout_requests where app_id = ${app.appId}`;
  expect(Object.fromEntries(rows.map(({ id, status }) => [id, status]))).toEqual({
    [givenUp]: 'closed',
    [expired]: 'open',
    [second]: 'paid',
    [first]: 'empty',
    [ofOther]: 'open',
  });
  expect(settled).toEqual([givenUp, second, first]);
  // The signals of both arrive later and change nothing.
  expect(await ledger.settlePayoutRequest(second)).toBe('paid');
});

test('what became of a request changes in no statement', async () => {
  const affiliateId = await newAffiliate(api, app);
  const closed = await request(affiliateId);
  await api.sql`update payout_requests set status = 'closed', settled_at = now() where id = ${closed}`;
  const paying = api.sql`update payout_requests set status = 'empty', net_cents = 0 where id = ${closed}`;
  await expect(paying).rejects.toThrow('payout_requests');
  const [row] = await api.sql`select status, net_cents from payout_requests where id = ${closed}`;
  expect(row).toEqual({ status: 'closed', netCents: null });
});
