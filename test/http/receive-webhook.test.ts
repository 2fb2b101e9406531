import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { MINUTE_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { fakeSecret, PROOFS } from '../support/provider-fixtures.ts';

const BODY = '{"no": "provider sends this"}';
const [KEY_ID] = createSecretBox([TEST_KEY]).keyIds;

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
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
  const answer = await api.call<{ secret?: string }>('PUT', `/apps/${app.appId}/webhooks/${name}/secret`, {
    key: app.key,
    body: { environment: 'production', ...(secret === null ? {} : { secret }) },
  });
  expect(answer.status).toBe(200);
  return answer.body.secret ?? secret ?? '';
}

async function post(name: ProviderName, headers: Record<string, string>, body = BODY) {
  return await api.call('POST', `/webhooks/${name}/${app.appId}`, { body, headers });
}

async function reasonsOfRefusals(): Promise<string[]> {
  const rows = await api.sql<{ reason: string }>`
    select last_error as reason from deliveries
     where app_id = ${app.appId} and not signature_valid order by received_at`;
  return rows.map(({ reason }) => reason);
}

describe.each(['superwall', 'stripe', 'paddle'] as const)('%s, signed well at another time', (name) => {
  // @promise signature-time
  test.each([
    ['long ago', -60 * MINUTE_MS, '3600 s before'],
    ['in a moment to come', 60 * MINUTE_MS, '3600 s after'],
  ])(
    '%s: it is refused where it is too far away, and the reason names the clock',
    async (_title, off, told) => {
      const secret = await setUp(name);
      const signedAt = Math.floor(Date.now() / 1000) * 1000;
      const proof = PROOFS[name](Buffer.from(BODY), secret, signedAt);
      api.clock.now = signedAt - off;
      const { status } = await post(name, proof);
      // Stripe and Paddle sign for the future, too.
      const isRefused = off < 0 || name === 'superwall';
      expect(status).toBe(isRefused ? 401 : 200);
      expect(await reasonsOfRefusals()).toEqual(
        isRefused
          ? [`the signature is correct, but was made ${told} this server's time: synchronize its clock`]
          : [],
      );
    },
  );

  test('with another secret, or over another body: the reason does not name the clock', async () => {
    const secret = await setUp(name);
    const signedAt = Math.floor(Date.now() / 1000) * 1000;
    api.clock.now = signedAt + 60 * MINUTE_MS;
    const proof = PROOFS[name](Buffer.from(BODY), secret, signedAt);
    expect((await post(name, proof, '{"no": "other"}')).status).toBe(401);
    expect(await reasonsOfRefusals()).toEqual(['the signature or token does not match']);
  });
});

describe.each(PROVIDER_NAMES)('%s, with a secret whose key is gone from SECRETS_KEY', (name) => {
  const loseKey = async () => {
    await api.sql`update webhook_secrets set encryption_key_id = 'gone' where app_id = ${app.appId}`;
  };

  // @promise lost-key-resend
  test('is asked to send again, for it may be right; what nobody can prove is never answered 500', async () => {
    const secret = await setUp(name);
    await loseKey();
    for (const headers of [PROOFS[name](Buffer.from(BODY), secret, Date.now()), {}]) {
      const answer = await post(name, headers);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60']);
    }
    expect(await reasonsOfRefusals()).toEqual([]);
  });

  test('is accepted by another secret in its grace, whichever of the two is lost', async () => {
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

  test('is accepted by the secret that was set anew, which ends the lost one at once', async () => {
    await setUp(name);
    await loseKey();
    const secret = await setUp(name);
    expect((await post(name, {})).status).toBe(401);
    expect((await post(name, PROOFS[name](Buffer.from(BODY), secret, Date.now()))).status).toBe(200);
  });
});
