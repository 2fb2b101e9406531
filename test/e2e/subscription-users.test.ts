import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import type { BindingId } from '../../src/domain/ids.ts';
import type { Activities } from '../../activities/index.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  fakeSecret,
  paddleSubscription,
  paddleTransaction,
  PROOFS,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';

// A subscription at Paddle that leads to one user, and payments of it that name another one: a company that pays for its members.

let api: TestApi;
let activities: Activities;
let app: TestApp;
let buyer: string;
let secret: string;
let creator: string;

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi());
});
beforeEach(async () => {
  api.clock.now = Date.now();
  app = await newApp(api, undefined, { commissionRateBps: 2000 });
  secret = fakeSecret('paddle') ?? '';
  await api.call('PUT', `/apps/${app.appId}/webhooks/paddle/secret`, {
    key: app.key,
    body: { environment: 'production', secret },
  });
  buyer = `buyer-${randomUUID()}`;
  creator = await bring(buyer);
  // The user was bound before the deliveries.
  api.clock.now = Date.now() + 1;
});
afterAll(async () => {
  await expectConsistentLedger(api.sql);
  await api.close();
});

/** Has a new creator bring a user, and the user's payments evaluated again. Returns the creator. */
async function bring(customerUserId: string): Promise<string> {
  const affiliateCode = await newAffiliate(api, app);
  const [deviceId, at] = [customerUserId, Date.now() - 2 * DAY_MS];
  const key = app.sdkKey;
  await api.call('POST', '/sdk/install', {
    key,
    body: { deviceId, affiliateCode, firstOpenAt: at, codeEnteredAt: at },
  });
  const identify = { key, body: { deviceId, customerUserId, identifiedAt: at } };
  expect((await api.call('POST', '/sdk/identify', identify)).status).toBe(200);
  const [binding] = await api.sql<{ id: BindingId; healedAt: number | null }>`
    select id, healed_at from bindings where app_id = ${app.appId} and customer_user_id = ${customerUserId}`;
  if (binding?.healedAt === null) await activities.healPage(binding.id, null);
  return affiliateCode;
}

async function deliver(payload: Payload): Promise<void> {
  const body = bodyOf(payload);
  const response = await api.call('POST', `/webhooks/paddle/${app.appId}`, {
    body: body.toString(),
    headers: PROOFS.paddle(body, secret),
  });
  expect(response.status).toBe(200);
}

const earned = async () =>
  await api.sql<{ affiliateId: string; amountCents: number }>`
    select affiliate_id, amount_cents from commissions where app_id = ${app.appId} order by id`;

const dayAgo = () => Date.now() - DAY_MS;
const subscription = (subscriptionId: string) =>
  paddleSubscription({ subscriptionId, userId: buyer, occurredAt: dayAgo() });
const payment = (subscriptionId: string, userId: string | null) =>
  paddleTransaction({ subscriptionId, userId, amount: 10_000, occurredAt: dayAgo() });

// @promise keys-beside-users
test('a payment that names a user without a creator earns nothing, whomever its subscription leads to, in any order', async () => {
  for (const isFirst of [true, false]) {
    const id = `sub_${randomUUID()}`;
    const events = [subscription(id), payment(id, `organic-${randomUUID()}`)];
    for (const event of isFirst ? events : events.toReversed()) await deliver(event);
  }
  expect(await earned()).toEqual([]);
});

// @promise keys-beside-users
test('a payment that names a user whose install is reported later earns for the creator of that install', async () => {
  const [id, member] = [`sub_${randomUUID()}`, `member-${randomUUID()}`];
  await deliver(subscription(id));
  await deliver(payment(id, member));
  expect(await earned()).toEqual([]);
  const second = await bring(member);
  expect(await earned()).toEqual([{ affiliateId: second, amountCents: 2_000 }]);
});

// @promise keys-beside-users
test('a payment that names nobody earns for the user of its subscription', async () => {
  const id = `sub_${randomUUID()}`;
  await deliver(subscription(id));
  await deliver(payment(id, null));
  expect(await earned()).toEqual([{ affiliateId: creator, amountCents: 2_000 }]);
});
