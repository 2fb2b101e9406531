import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createActivities } from '../../activities/index.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { SecretBox } from '../../src/config/secret-box.ts';
import { encryptBody } from '../../src/db/deliveries.ts';
import { prepareErasureKey } from '../../src/db/erased-identifiers.ts';
import { rotateIdentitySecret } from '../../src/db/identity-secrets.ts';
import { newId } from '../../src/db/new-id.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import type { AppId, DeliveryId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { bodyOf, fakeSecret, PAYLOADS, PROOFS } from '../support/provider-fixtures.ts';
import { requestRun, runReprocess } from '../support/reprocess.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';

const kept = Buffer.alloc(32, 5);
/** The box of a process that lacks a key which another one may have. */
const lacking = createSecretBox([kept]);
/** The box of a process whose operator says that the key is lost. */
const accepting = createSecretBox([kept], { acceptsLostKeys: true });

/** A process that has the key which is lost later. */
let api: TestApi;
/** A process on the same database, after the key was lost. */
let after: TestApi;
let app: TestApp;
let receiver: WebhookReceiver;

beforeAll(async () => {
  api = await startTestApi({ webhookTargets: 'any' });
  after = await startTestApi({
    sql: api.sql,
    creatorSql: api.sql,
    secretBox: accepting,
    webhookTargets: 'any',
  });
  // A service has started with both keys.
  await prepareErasureKey(api.sql, createSecretBox([kept, TEST_KEY]));
});
beforeEach(async () => {
  api.clock.now = Date.now();
  after.clock.now = Date.now();
  app = await newApp(api, undefined, { commissionRateBps: 2_500 });
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
});
afterAll(async () => {
  await after.close();
  await api.close();
});

const activitiesOf = (secretBox: SecretBox) =>
  createActivities({
    // A part of the pool remembers no key of another process.
    sql: api.sql.share(4),
    secretBox,
    logger: pino({ level: 'silent' }),
    ...NO_CALLBACKS,
    ratesUrl: null,
    webhookTargets: 'any',
    withRollback: (work) => withRollback(api.database.url, work),
  });

/** Calls a process as the founder does. */
async function ok<T>(at: TestApi, method: string, path: string, body?: object): Promise<T> {
  const response = await at.call<T>(method, `/apps/${app.appId}${path}`, {
    key: app.key,
    ...(body === undefined ? {} : { body }),
  });
  expect([path, response.status]).toEqual([path, expect.any(Number)]);
  expect(response.status).toBeLessThan(300);
  return response.body;
}

/** Reports the install of a device that a creator brought. */
async function attributedDevice(): Promise<string> {
  const deviceId = randomUUID();
  const body = { deviceId, affiliateCode: await newAffiliate(api, app), firstOpenAt: Date.now() - HOUR_MS };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body })).status).toBe(200);
  return deviceId;
}

describe('a delivery', () => {
  const statusOf = async (id: DeliveryId) =>
    await api.sql.one<{ status: string; reason: string | null; earned: boolean }>`
      select d.processing_status as status, d.last_error as reason,
             exists (select from payments p join commissions c on c.payment_id = p.id where p.event_id = d.event_id) as earned
        from deliveries d where d.id = ${id}`;

  /** Sets the secret, or has one generated. */
  const setSecret = async (at: TestApi, name: ProviderName, secret?: string) =>
    (
      await ok<{ secret?: string }>(at, 'PUT', `/webhooks/${name}/secret`, {
        environment: 'production',
        secret,
      })
    ).secret ?? '';

  /** Posts a purchase of a new user of a creator, and returns its delivery, which was not processed yet. */
  async function receive(at: TestApi, name: ProviderName, secret: string): Promise<DeliveryId> {
    const [deviceId, userId] = [await attributedDevice(), randomUUID()];
    const identify = { deviceId, customerUserId: userId, identifiedAt: Date.now() };
    expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
    // The webhook arrives after the user was bound.
    at.clock.now = Date.now() + 1;
    const sale = { userId, cents: 1_000, ref: randomUUID(), occurredAt: Date.now() };
    const payload = bodyOf(PAYLOADS[name].purchase(sale, false));
    const response = await at.call<{ eventId: string }>('POST', `/webhooks/${name}/${app.appId}`, {
      headers: PROOFS[name](payload, secret),
      body: payload,
    });
    expect(response.status).toBeLessThan(300);
    return (
      await api.sql.one<{
        id: DeliveryId;
      }>`select id from deliveries where event_id = ${response.body.eventId}`
    ).id;
  }

  // @promise lost-key-ends
  test('whose webhook secret is lost fails, says what to do, and earns once the same secret was set again and it is reprocessed', async () => {
    const secret = fakeSecret('stripe') ?? '';
    await setSecret(api, 'stripe', secret);
    const id = await receive(api, 'stripe', secret);
    await expect(activitiesOf(lacking).processDelivery(id)).rejects.toThrow('SECRETS_KEY lacks the key');
    expect(await statusOf(id)).toMatchObject({ status: 'received' });

    const { processDelivery, ...rest } = activitiesOf(accepting);
    expect(await processDelivery(id)).toMatchObject({ status: 'done', commissionId: null });
    expect(await statusOf(id)).toEqual({
      status: 'failed',
      reason: expect.stringContaining('set the same secret again and reprocess the delivery'),
      earned: false,
    });
    await setSecret(after, 'stripe', `${secret}0`);
    const other = await runReprocess(api.sql, rest, await requestRun(api.sql, app.appId));
    expect(other.found).toMatchObject([
      { changes: [{ what: 'refused', today: expect.stringContaining('same secret') }] },
    ]);
    expect(await statusOf(id)).toMatchObject({ status: 'failed' });
    await setSecret(after, 'stripe', secret);
    // By a process whose operator accepts no lost keys any more.
    const { processDelivery: _, ...later } = activitiesOf(lacking);
    await runReprocess(api.sql, later, await requestRun(api.sql, app.appId));
    expect(await statusOf(id)).toMatchObject({ status: 'processed', earned: true });
  });

  // @promise lost-key-ends
  test('whose token was hashed with a lost key fails, and earns when the provider sends the event again with another token', async () => {
    const id = await receive(api, 'revenuecat', await setSecret(api, 'revenuecat'));
    const { processDelivery } = activitiesOf(accepting);
    const token = await setSecret(after, 'revenuecat');
    await processDelivery(id);
    expect(await statusOf(id)).toMatchObject({
      status: 'failed',
      reason: expect.stringMatching(
        /set the webhook secret again, and have the provider send the event again$/,
      ),
    });
    const next = await receive(after, 'revenuecat', token);
    await processDelivery(next);
    expect(await statusOf(next)).toMatchObject({ status: 'processed', earned: true });
  });

  // @promise lost-key-ends
  test('whose body is encrypted with a lost key fails, and waits while only a process lacks the key', async () => {
    const secret = fakeSecret('stripe') ?? '';
    await setSecret(after, 'stripe', secret);
    const id = await receive(after, 'stripe', secret);
    const { body } = await api.sql.one<{ body: Uint8Array }>`
      select body from delivery_bodies where delivery_id = ${id}`;
    await encryptBody(api.sql, createSecretBox([TEST_KEY]), { id, body });
    await expect(activitiesOf(lacking).processDelivery(id)).rejects.toThrow('SECRETS_KEY lacks the key');
    await activitiesOf(accepting).processDelivery(id);
    expect(await statusOf(id)).toMatchObject({
      status: 'failed',
      reason: expect.stringContaining('have the provider send the event again'),
    });
  });
});

describe('a message', () => {
  interface Message {
    readonly id: string;
    readonly status: string;
    readonly lastProblem: string | null;
  }
  const newEndpoint = async (at: TestApi) =>
    await ok<{ id: string; secret: string }>(at, 'POST', '/webhook-endpoints', {
      url: receiver.url,
      eventTypes: ['payout.created'],
    });
  const read = async (id: string) => await ok<Message>(api, 'GET', `/webhook-messages/${id}`);

  // @promise lost-key-ends, send-webhook-message-again
  test('whose secret is lost fails without an attempt, says what to do, and is delivered after a rotation', async () => {
    const endpoint = await newEndpoint(api);
    const { id } = await ok<Message>(api, 'POST', `/webhook-endpoints/${endpoint.id}/test`);
    await expect(activitiesOf(lacking).sendMessage(id)).rejects.toThrow('SECRETS_KEY lacks the key');
    const activities = activitiesOf(accepting);
    expect(await activities.sendMessage(id)).toMatchObject({ state: 'failed', attempts: 0 });
    expect(await read(id)).toMatchObject({
      status: 'failed',
      lastProblem: expect.stringContaining('Rotate the secret, then send the message again'),
    });
    const rotated = await ok<{ secret: string; previousSecretExpiresAt: number | null }>(
      after,
      'POST',
      `/webhook-endpoints/${endpoint.id}/rotate-secret`,
      {},
    );
    expect(rotated.previousSecretExpiresAt).toBeNull();
    receiver.secret = rotated.secret;
    await ok(after, 'POST', `/webhook-messages/${id}/send-again`);
    expect(await activities.sendMessage(id)).toMatchObject({ state: 'delivered' });
    expect(receiver.received).toMatchObject([{ isSigned: true, signatures: 1 }]);
  });

  test('whose previous secret is lost is signed with the current one', async () => {
    const endpoint = await newEndpoint(api);
    const current = await newEndpoint(after);
    // As if the second rotation had been one of a process that still had the key.
    await api.sql`
      update webhook_endpoints e set previous_ciphertext = o.ciphertext, previous_encryption_key_id = o.encryption_key_id,
             previous_expires_at = now() + interval '1 day'
        from webhook_endpoints o where e.id = ${current.id} and o.id = ${endpoint.id}`;
    receiver.secret = current.secret;
    const { id } = await ok<Message>(after, 'POST', `/webhook-endpoints/${current.id}/test`);
    await expect(activitiesOf(lacking).sendMessage(id)).rejects.toThrow('SECRETS_KEY lacks the key');
    expect(await activitiesOf(accepting).sendMessage(id)).toMatchObject({ state: 'delivered' });
    expect(receiver.received).toMatchObject([{ isSigned: true, signatures: 1 }]);
  });

  // @promise lost-key-ends
  test('for Slack whose URL is lost fails and says that the URL has to be set again', async () => {
    await ok(api, 'PUT', '/slack-url', { url: receiver.url });
    const { id } = await ok<Message>(api, 'POST', '/slack-url/test');
    expect(await activitiesOf(accepting).sendMessage(id)).toMatchObject({
      state: 'failed',
      problem: expect.stringContaining('Set it again'),
    });
    expect(receiver.received).toEqual([]);
  });
});

// @promise lost-key-ends
test('a rotation ends a lost identity secret at once, and one that only another process can read after its grace period', async () => {
  interface Rotated {
    readonly secret: string;
    readonly previousSecretExpiresAt: number | null;
  }
  const rotate = async (at: TestApi) => await ok<Rotated>(at, 'POST', '/identity-secret/rotate', {});
  await rotate(api);
  expect((await rotate(api)).previousSecretExpiresAt).not.toBeNull();
  await ok(api, 'PATCH', '/settings', { identityVerification: true });
  const { secret, previousSecretExpiresAt } = await rotate(after);
  expect(previousSecretExpiresAt).toBeNull();
  const another = {
    id: newId('secret'),
    appId: (await newApp(api)).appId as AppId,
    ...createSecretBox([TEST_KEY]).encrypt('a secret', 'another app'),
    previousEndsAt: Date.now() + DAY_MS,
  };
  await rotateIdentitySecret(api.sql, another, lacking);
  const next = { ...another, id: newId('secret') };
  expect(await rotateIdentitySecret(api.sql, next, lacking)).toBe(another.previousEndsAt);
  const deviceId = await attributedDevice();
  const identify = async (at: TestApi, signature: string) => {
    const body = { deviceId, customerUserId: 'user', identifiedAt: Date.now(), signature };
    return (await at.call('POST', '/sdk/identify', { key: app.sdkKey, body })).status;
  };
  const signature = createHmac('sha256', secret).update('user').digest('hex');
  expect([await identify(after, signature), await identify(after, 'x')]).toEqual([200, 403]);
});
