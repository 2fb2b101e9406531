/** @jest-environment <rootDir>/test/jest/isolated.js */
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createBodyBudget } from '../../src/http/body-budget.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { HashThread } from '../../src/providers/hashing.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { checkProof } from '../../src/providers/proof.ts';
import type { WebhookProof } from '../../src/providers/proof.ts';
import { newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';
import { fakeSecret, PROOFS } from '../support/provider-fixtures.ts';

const BODY = '{"no": "provider sends this"}';
const [KEY_ID] = createSecretBox([TEST_KEY]).keyIds;

let api: TestApi;
let app: TestApp;

/** What happened to the memory of large bodies, in order. */
const memory: string[] = [];
/** How long the outcome of each delivery was waited for, ms. */
const waits: number[] = [];

beforeAll(async () => {
  const budget = createBodyBudget();
  api = await startTestApi({
    workflows: {
      ...IDLE_WORKFLOWS,
      awaitDelivery: async (_, waitMs) => {
        waits.push(waitMs);
        return null;
      },
    },
    bodyBudget: {
      open: (address) => {
        const { reserve, free } = budget.open(address);
        return {
          reserve: (bytes) => {
            memory.push('reserved');
            reserve(bytes);
          },
          free: () => {
            memory.push('freed');
            free();
          },
        };
      },
    },
  });
});
beforeEach(async () => {
  app = await newApp(api);
  api.clock.now = Date.now();
});
afterAll(async () => {
  await api.close();
});

async function setUp(name: ProviderName): Promise<string> {
  const secret = fakeSecret(name);
  const response = await api.call<{ secret?: string }>('PUT', `/apps/${app.appId}/webhooks/${name}/secret`, {
    key: app.key,
    body: { environment: 'production', ...(secret === null ? {} : { secret }) },
  });
  expect(response.status).toBe(200);
  return response.body.secret ?? secret ?? '';
}

async function post(name: ProviderName, headers: Record<string, string>, body = BODY) {
  return await api.call('POST', `/webhooks/${name}/${app.appId}`, { body, headers });
}

async function reasonsOfRefusals(): Promise<string[]> {
  await api.flushRefusals();
  const rows = await api.sql<{ reason: string }>`
    select last_error as reason from deliveries
     where app_id = ${app.appId} and not signature_valid order by received_at`;
  return rows.map(({ reason }) => reason);
}

/** Sends a correctly signed webhook. `ageMs` is how long before the server time it was signed. */
async function postSigned(name: ProviderName, ageMs: number, body = BODY) {
  const secret = await setUp(name);
  const signedAt = Math.floor(Date.now() / 1000) * 1000;
  api.clock.now = signedAt + ageMs;
  const response = await post(name, PROOFS[name](Buffer.from(BODY), secret, signedAt), body);
  return { status: response.status, reasons: await reasonsOfRefusals() };
}

/** Returns the expected result for a correct signature with a wrong time. `difference` is that to the server time. */
const refusedFor = (difference: string) => ({
  status: 401,
  reasons: [`the signature is correct, but was made ${difference} this server's time: synchronize its clock`],
});

const SIGNING = PROVIDER_NAMES.filter((name) => providers[name].scheme === 'hmac');

describe.each(SIGNING)('%s: a correct signature with another time', (name) => {
  // @promise signature-time
  test('a signature from an hour before the server time is refused, and the reason names the clock', async () => {
    expect(await postSigned(name, 60 * MINUTE_MS)).toEqual(refusedFor('3600 s before'));
  });

  test('the reason does not name the clock for another secret or another body', async () => {
    expect(await postSigned(name, 60 * MINUTE_MS, '{"no": "other"}')).toEqual({
      status: 401,
      reasons: ['the signature or token does not match'],
    });
  });
});

const MIB = 1024 * 1024;

describe('a webhook of 1 MiB', () => {
  const large = 'x'.repeat(MIB);

  // @promise large-body-off-loop
  test.each(SIGNING)(
    '%s: three secrets are compared with a forged body in a thread of its own',
    async (name) => {
      for (let nth = 0; nth < 3; nth += 1) await setUp(name);
      const headers = PROOFS[name](Buffer.from(BODY), fakeSecret(name) ?? '', Date.now());
      const hashed = jest.spyOn(HashThread.prototype, 'run');
      expect((await post(name, headers)).status).toBe(401);
      expect(hashed).toHaveBeenCalledTimes(0);
      expect((await post(name, headers, large)).status).toBe(401);
      // One HMAC for each secret, and the hash that is stored with the refusal.
      expect(hashed).toHaveBeenCalledTimes(4);
      hashed.mockRestore();
    },
  );

  test.each(SIGNING)('%s: a signed body is accepted, and refused after one changed byte', async (name) => {
    const secret = await setUp(name);
    const headers = PROOFS[name](Buffer.from(large), secret, Date.now());
    expect((await post(name, headers, `${large.slice(1)}y`)).status).toBe(401);
    expect((await post(name, headers, large)).status).toBe(200);
  });

  // @promise large-bodies-bounded
  test('the memory of a body stays reserved until its signature is verified', async () => {
    const secret = await setUp('stripe');
    const hashed = jest.spyOn(HashThread.prototype, 'run').mockImplementation(async ({ key }) => {
      if (key !== null) memory.push('compared');
      return Buffer.alloc(32);
    });
    memory.length = 0;
    await post('stripe', PROOFS.stripe(Buffer.from(large), secret, Date.now()), large);
    // The memory grows with the body.
    const steps = memory.filter((step, at) => step !== memory[at - 1]);
    expect(steps).toEqual(['reserved', 'compared', 'freed']);
    hashed.mockRestore();
  });
});

// @promise durations-by-the-process
test('a clock that is set back an hour during a webhook makes it wait for its outcome no longer than before', async () => {
  const secret = await setUp('adapty');
  // The time of receipt.
  api.clock.now = Date.now() + HOUR_MS;
  const { status } = await post('adapty', PROOFS.adapty(Buffer.from(BODY), secret, api.clock.now));
  expect(status).toBe(200);
  expect(waits.at(-1)).toBeLessThanOrEqual(2_500);
});

// @promise signature-time
test('a signature of Superwall from an hour after the server time is refused, and the reason names the clock', async () => {
  expect(await postSigned('superwall', -60 * MINUTE_MS)).toEqual(refusedFor('3600 s after'));
});

test.each(['stripe', 'paddle'] as const)(
  'a signature of %s from an hour after the server time is accepted, as by its own library',
  async (name) => {
    expect(await postSigned(name, -60 * MINUTE_MS)).toEqual({ status: 200, reasons: [] });
  },
);

describe.each(PROVIDER_NAMES)('%s: a secret whose encryption key is missing', (name) => {
  const loseKey = async () => {
    await api.sql`update webhook_secrets set encryption_key_id = 'gone' where app_id = ${app.appId}`;
  };

  // @promise lost-key-resend
  test('a webhook that no other secret verifies is a 503, and never a 500', async () => {
    const secret = await setUp(name);
    await loseKey();
    for (const headers of [PROOFS[name](Buffer.from(BODY), secret, Date.now()), {}]) {
      const response = await post(name, headers);
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60']);
    }
    expect(await reasonsOfRefusals()).toEqual([]);
  });

  test("a webhook is accepted by another valid secret, whichever of the two can't be decrypted", async () => {
    const before = await setUp(name);
    const now = await setUp(name);
    const proved = (secret: string) => PROOFS[name](Buffer.from(BODY), secret, Date.now());
    for (const [isNewer, readable] of [[true, before] as const, [false, now] as const]) {
      await api.sql`
        update webhook_secrets
           set encryption_key_id = case when (expires_at is null) = ${isNewer}::boolean then 'gone' else ${KEY_ID} end
         where app_id = ${app.appId}`;
      expect((await post(name, proved(readable))).status).toBe(200);
      expect((await post(name, {})).status).toBe(503);
    }
  });

  test('a webhook is accepted by the current secret although the stored text of the one before is damaged', async () => {
    await setUp(name);
    const now = await setUp(name);
    await api.sql`
      update webhook_secrets set ciphertext = set_byte(ciphertext, 0, 255 - get_byte(ciphertext, 0))
       where app_id = ${app.appId} and expires_at is not null`;
    expect((await post(name, PROOFS[name](Buffer.from(BODY), now, Date.now()))).status).toBe(200);
    expect((await post(name, {})).status).toBe(503);
  });

  test("a webhook is accepted by a new secret, which ends the one that can't be decrypted immediately", async () => {
    await setUp(name);
    await loseKey();
    const secret = await setUp(name);
    expect((await post(name, {})).status).toBe(401);
    expect((await post(name, PROOFS[name](Buffer.from(BODY), secret, Date.now()))).status).toBe(200);
  });
});

test('a body with more values than an event has is not compared with erased users, and stored encrypted beside them', async () => {
  const name = 'adapty';
  const secret = await setUp(name);
  const headers = PROOFS[name](Buffer.from(BODY), secret, Date.now());
  const isEncrypted = async (values: number) => {
    const { status } = await post(name, headers, `{"a":[${'1,'.repeat(values)}1]}`);
    expect(status).toBe(200);
    const { keyId } = await api.sql.one<{ keyId: string | null }>`
      select b.encryption_key_id as key_id from deliveries d join delivery_bodies b on b.delivery_id = d.id
       where d.app_id = ${app.appId} order by d.id desc limit 1`;
    return keyId !== null;
  };
  expect(await isEncrypted(20_000)).toBe(false);
  const erased = await api.call('DELETE', `/apps/${app.appId}/users/user-1`, { key: app.key });
  expect(erased.status).toBeLessThan(300);
  expect(await isEncrypted(20_000)).toBe(true);
  expect(await isEncrypted(10)).toBe(false);
});

describe('a RevenueCat webhook under a signing secret', () => {
  const SIGNING_SECRET = 'rc_signing_only_for_tests_8d21';
  const put = async (body: object) =>
    await api.call<{ secret?: string; signed?: true }>(
      'PUT',
      `/apps/${app.appId}/webhooks/revenuecat/secret`,
      {
        key: app.key,
        body,
      },
    );
  const sign = (secret: string, at: number) =>
    providers.revenuecat.sample.sign(Buffer.from(BODY), secret, at);
  const HEADER = 'x-revenuecat-webhook-signature';

  async function setUpSigned(): Promise<{ token: string; both: string }> {
    const token = (await put({})).body.secret ?? '';
    const response = await put({ signingSecret: SIGNING_SECRET, graceSeconds: 0 });
    // The token stays, so it is not shown again.
    expect(response).toMatchObject({ status: 200, body: { signed: true } });
    expect(response.body).not.toHaveProperty('secret');
    return { token, both: `${token}\n${SIGNING_SECRET}` };
  }

  // @promise revenuecat-signature
  test('it needs both the token and a signature of this time and body', async () => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    api.clock.now = now;
    const { token, both } = await setUpSigned();
    const signed = sign(both, now);
    const { authorization = '', [HEADER]: signature = '' } = signed;
    expect((await post('revenuecat', signed)).status).toBe(200);
    const refused: readonly Record<string, string>[] = [
      { authorization },
      { [HEADER]: signature },
      { ...signed, authorization: `${token}x` },
      sign(`${token}\nanother_signing_secret_5c2`, now),
      { ...signed, [HEADER]: signature.replace('v1=', 'v0=') },
      sign(both, now - 3 * HOUR_MS - 1_000),
    ];
    for (const headers of refused) expect((await post('revenuecat', headers)).status).toBe(401);
    expect((await post('revenuecat', signed, '{"no": "other"}')).status).toBe(401);
    expect(await reasonsOfRefusals()).toContainEqual(refusedFor('10801 s before').reasons[0]);
  });

  test.each([
    ['no signature', undefined, 'the signature is missing: no header x-revenuecat-webhook-signature'],
    ['another one', `v1=${'0'.repeat(64)}`, 'not made with the signing secret'],
  ])('the reason of a refusal with the right token and %s says so', async (_, v1, reason) => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    api.clock.now = now;
    const { token } = await setUpSigned();
    const signature: Record<string, string> = v1 === undefined ? {} : { [HEADER]: `t=${now / 1000},${v1}` };
    expect((await post('revenuecat', { authorization: token, ...signature })).status).toBe(401);
    expect(await reasonsOfRefusals()).toEqual([expect.stringContaining(reason)]);
  });

  // @promise revenuecat-signature
  test('one of several signatures is enough, and its header has either of two names', async () => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    api.clock.now = now;
    const { both } = await setUpSigned();
    const { authorization = '', [HEADER]: signature = '' } = sign(both, now);
    const rotating = signature.replace(',', `,v1=${'0'.repeat(64)},`);
    expect((await post('revenuecat', { authorization, [HEADER]: rotating })).status).toBe(200);
    expect((await post('revenuecat', { authorization, 'x-revenuecat-signature': signature })).status).toBe(
      200,
    );
  });

  // @promise revenuecat-signature
  test('the stored delivery is proved again by the hash of its token and its signature, and never has the token', async () => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    api.clock.now = now;
    const { token, both } = await setUpSigned();
    expect((await post('revenuecat', sign(both, now))).status).toBe(200);
    const { proof } = await api.sql.one<{ proof: WebhookProof }>`
      select proof from deliveries where app_id = ${app.appId} and signature_valid`;
    expect(proof).toMatchObject({ kind: 'token_hash', headers: { [HEADER]: expect.any(String) } });
    expect(JSON.stringify(proof)).not.toContain(token);
    const box = createSecretBox([TEST_KEY]);
    const check = async (body: string, secret: string) =>
      await checkProof(
        providers.revenuecat,
        proof,
        { body: Buffer.from(body), receivedAt: now },
        secret,
        box,
      );
    expect(await check(BODY, both)).toBe(true);
    expect(await check('{"no": "other"}', both)).toBe(false);
    expect(await check(BODY, `${token}x\n${SIGNING_SECRET}`)).toBe(false);
    expect(await check(BODY, `${token}\nanother_signing_secret_5c2`)).toBe(false);
  });

  test('a new token keeps the signing secret, and null removes it', async () => {
    await setUpSigned();
    const rotated = await put({});
    expect(rotated.body).toMatchObject({ secret: expect.stringMatching(/^[\w-]{43}$/), signed: true });
    const settings = async () =>
      (
        await api.call<{ items: { provider: string; signed?: true }[] }>(
          'GET',
          `/apps/${app.appId}/webhooks`,
          {
            key: app.key,
          },
        )
      ).body.items.find(({ provider }) => provider === 'revenuecat');
    expect(await settings()).toMatchObject({ signed: true });
    const removed = await put({ signingSecret: null, graceSeconds: 0 });
    expect(removed.body).not.toHaveProperty('signed');
    expect(removed.body).not.toHaveProperty('secret');
    expect(await settings()).not.toHaveProperty('signed');
    expect((await post('revenuecat', { authorization: rotated.body.secret ?? '' })).status).toBe(200);
  });

  test('of two calls at once, neither loses what the other has set', async () => {
    await put({});
    const calls = await Promise.all([put({}), put({ signingSecret: SIGNING_SECRET }), put({})]);
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 200]);
    const last = await put({});
    expect(last.body).toMatchObject({ signed: true });
    const tokens = calls.flatMap(({ body }) => body.secret ?? []);
    expect(tokens).toHaveLength(2);
  });

  test('what cannot be decrypted cannot stay: both secrets must be sent', async () => {
    await setUpSigned();
    await api.sql`update webhook_secrets set ciphertext = '\\x00' where app_id = ${app.appId} and expires_at is null`;
    const rotated = await put({});
    expect(rotated).toMatchObject({ status: 400, body: { errors: [{ path: 'signingSecret' }] } });
    const kept = await put({ signingSecret: SIGNING_SECRET });
    expect(kept).toMatchObject({ status: 400, body: { errors: [{ path: 'secret' }] } });
    expect((await put({ secret: 'a'.repeat(20) + 'bcdefgh12', signingSecret: SIGNING_SECRET })).status).toBe(
      200,
    );
  });

  test('a weak signing secret is refused, and one for a provider that has none', async () => {
    const other = await api.call('PUT', `/apps/${app.appId}/webhooks/adapty/secret`, {
      key: app.key,
      body: { signingSecret: null },
    });
    for (const { status, body } of [await put({ signingSecret: 'short' }), other]) {
      expect(status).toBe(400);
      expect(body).toMatchObject({ errors: [{ path: 'signingSecret' }] });
    }
  });
});
