import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import { newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  paddleTransaction,
  signPaddle,
  signStripe,
  stripeInvoicePaid,
} from '../support/provider-fixtures.ts';

let api: TestApi;
let app: TestApp;
let sent: string[] = [];

beforeAll(async () => {
  ({ api } = await startProcessingApi({ sqlOptions: { onStatement: ({ text }) => void sent.push(text) } }));
});
beforeEach(async () => {
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

/** Sets a secret. Like another process, this tells nothing to what the process remembers. */
async function put(provider: string, body: object): Promise<void> {
  const { status } = await api.call('PUT', `/apps/${app.appId}/webhooks/${provider}/secret`, {
    key: app.key,
    body,
  });
  expect(status).toBe(200);
}

async function stripe(secret: string, userId: string = randomUUID()): Promise<number> {
  const body = bodyOf(stripeInvoicePaid({ userId, occurredAt: api.clock.now }));
  const headers = { 'stripe-signature': signStripe(body, secret, Math.floor(api.clock.now / 1000)) };
  return (await api.call('POST', `/webhooks/stripe/${app.appId}`, { key: null, body, headers })).status;
}

async function paddle(secret: string): Promise<number> {
  const body = bodyOf(paddleTransaction({ occurredAt: api.clock.now }));
  const headers = { 'paddle-signature': signPaddle(body, secret, Math.floor(api.clock.now / 1000)) };
  return (await api.call('POST', `/webhooks/paddle/${app.appId}`, { key: null, body, headers })).status;
}

// @promise revoked-secret-at-once
test('a webhook under a secret that another process has revoked is refused, and one under its new secret accepted', async () => {
  const [first, second] = [`whsec_first_${randomUUID()}`, `whsec_second_${randomUUID()}`];
  await put('stripe', { secret: first });
  expect([await stripe(first), await stripe(first)]).toEqual([200, 200]);
  await put('stripe', { secret: second, graceSeconds: 0 });
  expect([await stripe(first), await stripe(second), await stripe(first)]).toEqual([401, 200, 401]);
  const { deliveries } = await api.sql.one<{ deliveries: number }>`
    select count(*)::int as deliveries from deliveries where app_id = ${app.appId} and signature_valid`;
  expect(deliveries).toBe(3);
});

test('a webhook under a previous secret is refused after its grace period, although no secret was set meanwhile', async () => {
  const [first, second] = [`whsec_first_${randomUUID()}`, `whsec_second_${randomUUID()}`];
  await put('stripe', { secret: first });
  await put('stripe', { secret: second, graceSeconds: 3_600 });
  expect([await stripe(first), await stripe(second)]).toEqual([200, 200]);
  const { now } = api.clock;
  try {
    api.clock.now = now + DAY_MS;
    expect([await stripe(first), await stripe(second)]).toEqual([401, 200]);
  } finally {
    api.clock.now = now;
  }
});

test('a secret that another process sets again for the sandbox makes the next webhook a sandbox event', async () => {
  const secret = `pdl_ntfset_${randomUUID()}`;
  await put('paddle', { secret, environment: 'production' });
  expect(await paddle(secret)).toBe(200);
  await put('paddle', { secret, environment: 'sandbox' });
  expect(await paddle(secret)).toBe(200);
  const events = await api.sql<{ environment: string }>`
    select environment from events where app_id = ${app.appId} order by id`;
  expect(events.map(({ environment }) => environment)).toEqual(['production', 'sandbox']);
});

test('a delivery of a new payment takes four statements', async () => {
  const secret = `whsec_few_${randomUUID()}`;
  await put('stripe', { secret });
  await stripe(secret);
  sent = [];
  expect(await stripe(secret)).toBe(200);
  // The refused requests of other tests are counted meanwhile.
  const own = sent.filter((text) => !text.includes('refused'));
  const tables = own.map(
    (text) => /(?:insert into|update|^ {6}from) (deliveries|events|payments)/m.exec(text)?.[1],
  );
  expect(tables).toEqual(['deliveries', 'events', 'payments', 'payments']);
});
