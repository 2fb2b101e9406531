import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;
let slug: string;

beforeAll(async () => {
  api = await startTestApi({ trustProxy: 1 });
});
beforeEach(async () => {
  app = await newApp(api);
  ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
});
afterAll(async () => {
  await api.close();
});

const identify = (deviceId: string, customerUserId: string, fields: object = {}, address = '203.0.113.1') =>
  api.call<{ code?: string; attributionId?: string }>('POST', '/sdk/identify', {
    key: app.sdkKey,
    headers: { 'x-forwarded-for': address },
    body: { deviceId, customerUserId, identifiedAt: api.clock.now, ...fields },
  });

async function attributedDevice(): Promise<string> {
  const deviceId = randomUUID();
  const body = { deviceId, affiliateCode: slug, firstOpenAt: api.clock.now };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body })).status).toBe(200);
  return deviceId;
}

async function stored(deviceId: string): Promise<{ identities: number; bindings: number }> {
  return await api.sql.one`
    select (select count(*) from identities where app_id = ${app.appId} and device_id = ${deviceId}) as identities,
           (select count(*) from bindings b join attributions a on a.id = b.attribution_id
             where a.app_id = ${app.appId} and a.device_id = ${deviceId}) as bindings`;
}

test('a user id that is not UTF-8 is a 400: read as text, two users could become one', async () => {
  const deviceId = await attributedDevice();
  const text = JSON.stringify({ deviceId, customerUserId: 'josé', identifiedAt: api.clock.now });
  const answer = await api.call('POST', '/sdk/identify', {
    key: app.sdkKey,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(text, 'latin1'),
  });
  expect(answer).toMatchObject({ status: 400, body: { detail: 'The body is not UTF-8.' } });
  expect(await stored(deviceId)).toEqual({ identities: 0, bindings: 0 });
});

describe('users per device', () => {
  const TOO_MANY = { status: 409, body: { code: 'too_many_users' } };

  // @promise users-per-device
  test('an eleventh user of a device is a 409, and the first ten keep their responses', async () => {
    const deviceId = await attributedDevice();
    const users = Array.from({ length: 10 }, () => randomUUID());
    for (const user of users) expect((await identify(deviceId, user)).status).toBe(200);
    expect(await identify(deviceId, randomUUID())).toMatchObject(TOO_MANY);
    for (const user of users) expect((await identify(deviceId, user)).status).toBe(200);
    expect(await stored(deviceId)).toEqual({ identities: 10, bindings: 10 });
    expect((await identify(await attributedDevice(), randomUUID())).status).toBe(200);
  });

  test('of thirty users that a device reports at the same time, ten are bound', async () => {
    const deviceId = await attributedDevice();
    const responses = await Promise.all(Array.from({ length: 30 }, () => identify(deviceId, randomUUID())));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(responses.filter(({ body }) => body.code === 'too_many_users')).toHaveLength(20);
    expect(await stored(deviceId)).toEqual({ identities: 10, bindings: 10 });
  });

  test('a device without an attribution has at most ten users, whom its install binds', async () => {
    const deviceId = randomUUID();
    for (let index = 0; index < 10; index += 1) {
      expect((await identify(deviceId, randomUUID())).status).toBe(404);
    }
    expect(await identify(deviceId, randomUUID())).toMatchObject(TOO_MANY);
    const body = { deviceId, affiliateCode: slug, firstOpenAt: api.clock.now };
    await api.call('POST', '/sdk/install', { key: app.sdkKey, body });
    expect(await stored(deviceId)).toEqual({ identities: 10, bindings: 10 });
  });

  test('the database refuses an eleventh user of a device', async () => {
    const deviceId = randomUUID();
    const add = (position: number) => api.sql`
      insert into identities (app_id, device_id, customer_user_id, identified_at, position)
      values (${app.appId}, ${deviceId}, ${randomUUID()}, now(), ${position})`;
    await add(10);
    await expect(add(10)).rejects.toMatchObject({ constraint_name: 'identities_one_position' });
    await expect(add(11)).rejects.toMatchObject({ constraint_name: 'at_most_10_users_of_a_device' });
  });
});

describe('signed user ids', () => {
  const settings = (body: object) =>
    api.call<{ identityVerification?: boolean; code?: string }>('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body,
    });
  const rotate = async (body: object = {}, headers: Record<string, string> = {}) => {
    const path = `/apps/${app.appId}/identity-secret/rotate`;
    const response = await api.call<{ secret: string; previousSecretExpiresAt: number | null }>(
      'POST',
      path,
      {
        key: app.key,
        headers,
        body,
      },
    );
    expect(response.status).toBe(200);
    return response.body;
  };
  const read = async () =>
    (
      await api.call<{ secret: string | null; previousSecretExpiresAt: number | null }>(
        'GET',
        `/apps/${app.appId}/identity-secret`,
        { key: app.key },
      )
    ).body;
  const sign = (secret: string, user: string) => createHmac('sha256', secret).update(user).digest('hex');
  const FORGED = { status: 403, body: { code: 'invalid_signature' } };

  // @promise identity-verification
  test('an app that verifies user ids accepts only those that its server signed', async () => {
    const { secret } = await rotate();
    expect((await settings({ identityVerification: true })).body).toMatchObject({
      identityVerification: true,
    });
    const deviceId = await attributedDevice();
    const user = 'Zoë 🙂 4711';
    const missing = await identify(deviceId, user);
    expect(missing).toMatchObject({ status: 401, body: { code: 'signature_required' } });
    expect(missing.headers.get('www-authenticate')).toBe('Bearer');
    for (const signature of [
      '',
      'x',
      sign(secret, 'another'),
      sign(`${secret}x`, user),
      sign(secret, user).slice(2),
    ]) {
      expect(await identify(deviceId, user, { signature })).toMatchObject(FORGED);
    }
    expect(await stored(deviceId)).toEqual({ identities: 0, bindings: 0 });
    for (const signature of [sign(secret, user), sign(secret, user).toUpperCase()]) {
      expect((await identify(deviceId, user, { signature })).status).toBe(200);
    }
    expect(await stored(deviceId)).toEqual({ identities: 1, bindings: 1 });
  });

  test('verification is off by default, and a signature is then ignored', async () => {
    expect((await settings({})).body).toMatchObject({ identityVerification: false });
    expect((await identify(await attributedDevice(), randomUUID(), { signature: 'x' })).status).toBe(200);
  });

  // @promise identity-secret, get-identity-secret, rotate-identity-secret
  test('the secret can be read again, and the previous one is valid until its grace period ends', async () => {
    expect(await read()).toEqual({ secret: null, previousSecretExpiresAt: null });
    const first = await rotate();
    expect(first.previousSecretExpiresAt).toBeNull();
    await settings({ identityVerification: true });
    const second = await rotate({ graceSeconds: 3600 });
    const endsAt = api.clock.now + 3_600_000;
    expect(second.previousSecretExpiresAt).toBe(endsAt);
    expect(await read()).toEqual({ secret: second.secret, previousSecretExpiresAt: endsAt });
    const [deviceId, user] = [await attributedDevice(), randomUUID()];
    const statusOf = async ({ secret }: { secret: string }) =>
      (await identify(deviceId, user, { signature: sign(secret, user) })).status;
    expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200]);
    api.clock.now = endsAt;
    expect([await statusOf(first), await statusOf(second)]).toEqual([403, 200]);
    const third = await rotate({ graceSeconds: 0 });
    expect([await statusOf(second), await statusOf(third)]).toEqual([403, 200]);
    await rotate();
    await rotate();
    expect(await statusOf(third)).toBe(403);
    api.clock.now -= DAY_MS;
  });

  test('the secret is encrypted in the database, and a repeated rotation returns the same one', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const first = await rotate({}, headers);
    expect(await rotate({}, headers)).toEqual(first);
    expect(await read()).toMatchObject({ secret: first.secret, previousSecretExpiresAt: null });
    expect(Buffer.from(first.secret, 'base64url')).toHaveLength(32);
    const { row } = await api.sql.one<{ row: string }>`
      select string_agg(s::text, '') as row from identity_secrets s where app_id = ${app.appId}`;
    expect(row).not.toContain(first.secret);
    expect(row).not.toContain(Buffer.from(first.secret).toString('hex'));
  });

  // @promise identity-verification
  test('verification cannot be turned on without a secret', async () => {
    const refused = { status: 409, body: { code: 'identity_secret_missing' } };
    expect(await settings({ identityVerification: true })).toMatchObject(refused);
    expect((await settings({})).body).toMatchObject({ identityVerification: false });
    const created = await api.call('POST', '/apps', {
      key: app.key,
      body: { name: 'x', identityVerification: true },
    });
    expect(created).toMatchObject(refused);
  });

  test("a signature with another app's secret is a 403", async () => {
    const other = await newApp(api);
    const path = `/apps/${other.appId}/identity-secret/rotate`;
    const { body } = await api.call<{ secret: string }>('POST', path, { key: other.key });
    await rotate();
    await settings({ identityVerification: true });
    const user = randomUUID();
    const signature = sign(body.secret, user);
    expect(await identify(await attributedDevice(), user, { signature })).toMatchObject(FORGED);
  });
});

// @promise get-identify-diagnostic
test('the diagnostic names the devices and addresses that reported several users, most users first', async () => {
  const [busy, quiet] = [randomUUID(), randomUUID()];
  for (let index = 0; index < 4; index += 1) await identify(busy, `busy-${index}`, {}, '203.0.113.7');
  for (let index = 0; index < 2; index += 1) await identify(quiet, `quiet-${index}`, {}, '203.0.113.8');
  await identify(randomUUID(), 'third device', {}, '203.0.113.8');
  await identify(randomUUID(), 'alone', {}, '203.0.113.9');
  const { status, body } = await api.call('GET', `/apps/${app.appId}/diagnostics/identify`, { key: app.key });
  expect(status).toBe(200);
  const [firstAt, lastAt] = [expect.any(Number), expect.any(Number)];
  expect(body).toEqual({
    examined: 8,
    truncated: false,
    devices: [
      { deviceId: busy, users: 4, firstAt, lastAt },
      { deviceId: quiet, users: 2, firstAt, lastAt },
    ],
    addresses: [
      { addressHash: expect.stringMatching(/^[0-9a-f]{16}$/), users: 4, devices: 1, firstAt, lastAt },
      { addressHash: expect.stringMatching(/^[0-9a-f]{16}$/), users: 3, devices: 2, firstAt, lastAt },
    ],
  });
  expect(JSON.stringify(body)).not.toContain('203.0.113');
});
