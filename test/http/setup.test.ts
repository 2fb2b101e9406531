import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import { DEFAULT_LIMIT } from '../../src/http/pagination.ts';
import { newAccount, newAffiliate, newApp, newLink, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';
import { insertEarning } from '../support/ledger.ts';
import { fakeSecret } from '../support/provider-fixtures.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api, undefined, { name: 'Söme App!' });
});
afterAll(async () => {
  await api.close();
});

const DEFAULTS = {
  commissionRateBps: 2000,
  attributionWindowDays: 30,
  holdPeriodDays: 30,
  deferredWindowMinutes: 60,
  identityVerification: false,
  destinationSchemes: null,
  stripeAccounts: [],
  iosAppIds: [],
  androidApps: [],
};

const FINGERPRINT = Array.from({ length: 32 }, () => 'A1').join(':');

const installs = async (key: string): Promise<number> =>
  (
    await api.call('POST', '/sdk/install', {
      key,
      body: { deviceId: 'd', firstOpenAt: api.clock.now, deferred: true },
    })
  ).status;

describe('apps', () => {
  // @promise app-limit
  test('an account has no more apps than its limit, also when they are created at the same time, and keeps those it has', async () => {
    const { accountId, key } = await newAccount(api);
    await api.sql`update accounts set app_limit = 3 where id = ${accountId}`;
    const create = async (headers: Record<string, string> = {}) =>
      await api.call('POST', '/apps', { key, headers, body: { name: 'One of many' } });
    const again = { 'idempotency-key': randomUUID() };
    const first = await create(again);
    const others = await Promise.all(Array.from({ length: 8 }, async () => await create()));
    expect(others.filter(({ status }) => status === 201)).toHaveLength(2);
    for (const refused of others.filter(({ status }) => status !== 201)) {
      expect(refused).toMatchObject({ status: 409, body: { code: 'too_many_apps' } });
    }
    expect(await create(again)).toMatchObject({ status: 201, body: first.body });
    await api.sql`update accounts set app_limit = 1 where id = ${accountId}`;
    expect((await api.call('GET', '/apps', { key })).body).toHaveLength(3);
    expect(
      (
        await api.call('PATCH', `/apps/${(first.body as { id: string }).id}/settings`, {
          key,
          body: { name: 'New' },
        })
      ).status,
    ).toBe(200);
    const other = await newAccount(api);
    expect((await api.call('POST', '/apps', { key: other.key, body: { name: 'Other' } })).status).toBe(201);
  });

  // @promise get-settings
  test('GET settings returns the fields that PATCH takes, and PATCH accepts them', async () => {
    const settings = {
      name: 'Other',
      commissionRateBps: 1,
      attributionWindowDays: 2,
      holdPeriodDays: 3,
      deferredWindowMinutes: 4,
      linkSubdomain: `other-${randomUUID().slice(0, 8)}`,
      identityVerification: true,
      destinationSchemes: ['myapp'],
      stripeAccounts: ['acct_1'],
      iosAppIds: ['ABCDE12345.com.example.app'],
      androidApps: [{ packageName: 'com.example.app', sha256CertFingerprints: [FINGERPRINT] }],
    };
    const own = await newApp(api);
    const path = `/apps/${own.appId}/settings`;
    await api.call('POST', `/apps/${own.appId}/identity-secret/rotate`, { key: own.key, body: {} });
    await api.call('PATCH', path, { key: own.key, body: settings });
    const { status, body } = await api.call('GET', path, { key: own.key });
    expect(status).toBe(200);
    expect(body).toEqual(settings);
    const patched = await api.call('PATCH', path, { key: own.key, body });
    expect(patched).toMatchObject({ status: 200, body: { id: own.appId, ...body } });
  });

  // @promise app-settings, post-apps, get-app, app-fields-and-defaults, new-app
  test('a new app has the given settings, and defaults for the others', async () => {
    const { status, body } = await api.call('GET', `/apps/${app.appId}`, { key: app.key });
    expect(status).toBe(200);
    expect(body).toEqual({
      id: app.appId,
      name: 'Söme App!',
      ...DEFAULTS,
      linkSubdomain: expect.stringMatching(/^some-app-[0-9a-f]{6}$/),
    });
    const created = await api.call('POST', '/apps', {
      key: app.key,
      body: { name: 'B', holdPeriodDays: 0, commissionRateBps: 0 },
    });
    expect(created.body).toMatchObject({ ...DEFAULTS, holdPeriodDays: 0, commissionRateBps: 0 });
  });

  // @promise account-owns-apps, app-id-and-name, get-apps
  test("the list has only the account's apps", async () => {
    const account = await newAccount(api);
    expect((await api.call('GET', '/apps', { key: account.key })).body).toEqual([]);
    const one = await newApp(api, account, { name: 'One' });
    expect((await api.call('GET', '/apps', { key: account.key })).body).toEqual([
      { id: one.appId, name: 'One' },
    ]);
  });

  // @promise apps-paged
  test('with a limit, the list of apps is one page, and a header has the cursor of the next', async () => {
    const account = await newAccount(api);
    const names = ['One', 'Two', 'Three', 'Four', 'Five'];
    for (const name of names) await newApp(api, account, { name });
    const pages: unknown[] = [];
    let query = '?limit=2';
    for (let page = 1; page <= 3; page += 1) {
      const { status, body, headers } = await api.call<{ name: string }[]>('GET', `/apps${query}`, {
        key: account.key,
      });
      expect(status).toBe(200);
      pages.push(body.map(({ name }) => name));
      const cursor = headers.get('x-next-cursor');
      expect(cursor === null).toBe(page === 3);
      query = `?limit=2&cursor=${cursor}`;
    }
    expect(pages).toEqual([['One', 'Two'], ['Three', 'Four'], ['Five']]);
    // More than a page has by default.
    for (let more = names.length; more <= DEFAULT_LIMIT; more += 1) await newApp(api, account);
    const all = await api.call<unknown[]>('GET', '/apps', { key: account.key });
    expect([all.body.length, all.headers.get('x-next-cursor')]).toEqual([DEFAULT_LIMIT + 1, null]);
    expect((await api.call('GET', '/apps?limit=0', { key: account.key })).status).toBe(400);
    expect(await api.call('GET', '/apps?cursor=x', { key: account.key })).toMatchObject({
      status: 400,
      body: { code: 'invalid_cursor' },
    });
  });

  // @promise patch-app-settings, settings-patch
  test('a patch changes only the given settings', async () => {
    const before = await api.call('GET', `/apps/${app.appId}`, { key: app.key });
    const patched = await api.call('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body: { commissionRateBps: 1, deferredWindowMinutes: 0 },
    });
    expect(patched.status).toBe(200);
    expect(patched.body).toEqual({ ...before.body, commissionRateBps: 1, deferredWindowMinutes: 0 });
    expect((await api.call('GET', `/apps/${app.appId}`, { key: app.key })).body).toEqual(patched.body);
  });

  // @promise setting-out-of-range
  test.each([
    ['commissionRateBps', 10_001],
    ['commissionRateBps', -1],
    ['commissionRateBps', 0.5],
    ['commissionRateBps', null],
    ['attributionWindowDays', 0],
    ['attributionWindowDays', 366],
    ['holdPeriodDays', 366],
    ['deferredWindowMinutes', 1441],
    ['linkSubdomain', 'Upper'],
    ['linkSubdomain', '-a'],
    ['linkSubdomain', 'login'],
    ['destinationSchemes', ['intent']],
    ['iosAppIds', ['com.example.app']],
    ['iosAppIds', ['ABCDE12345']],
    ['iosAppIds', ['abcde12345.com.example.app']],
    ['iosAppIds', Array.from({ length: 11 }, (_, index) => `ABCDE12345.app${index}`)],
    ['androidApps', [{ packageName: 'app', sha256CertFingerprints: [FINGERPRINT] }]],
    ['androidApps', [{ packageName: 'com.example.app', sha256CertFingerprints: [] }]],
    ['androidApps', [{ packageName: 'com.example.app', sha256CertFingerprints: [FINGERPRINT.slice(3)] }]],
    ['androidApps', [{ packageName: 'com.example.app' }]],
    ['androidApps', null],
    ['stripeAccounts', null],
    ['stripeAccounts', 'acct_Fake01'],
    ['stripeAccounts', ['cus_Fake01']],
    ['stripeAccounts', ['acct_']],
    ['stripeAccounts', ['acct_Fake01 ']],
    ['stripeAccounts', [`acct_${'x'.repeat(65)}`]],
    ['stripeAccounts', Array.from({ length: 101 }, (_, index) => `acct_${index}`)],
    ['identityVerification', 'yes'],
    ['name', '  '],
    ['id', 'app_x'],
  ])('the setting %s: %p is a 400', async (field, value) => {
    const response = await api.call('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body: { [field]: value },
    });
    expect(response).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  // @promise setting-range-ends
  test.each([
    { commissionRateBps: 0, attributionWindowDays: 1, holdPeriodDays: 0, deferredWindowMinutes: 0 },
    {
      commissionRateBps: 10_000,
      attributionWindowDays: 365,
      holdPeriodDays: 365,
      deferredWindowMinutes: 1440,
    },
    { linkSubdomain: `a${'-'.repeat(61)}b`, name: 'x'.repeat(200) },
    { stripeAccounts: ['acct_1', `acct_${'x'.repeat(64)}`] },
    { stripeAccounts: Array.from({ length: 100 }, (_, index) => `acct_${index}`) },
    { stripeAccounts: [] },
    { iosAppIds: ['ABCDE12345.a', 'ABCDE12345.com.example.app-2'] },
    { androidApps: [{ packageName: 'a.b', sha256CertFingerprints: [FINGERPRINT, FINGERPRINT] }] },
    { iosAppIds: [], androidApps: [] },
  ])('the ends of each range are accepted: %j', async (settings) => {
    const own = await newApp(api);
    const path = `/apps/${own.appId}/settings`;
    const { status, body } = await api.call('PATCH', path, { key: own.key, body: settings });
    expect(status).toBe(200);
    expect(body).toMatchObject(settings);
  });

  // @promise subdomain-unique
  test('a subdomain of any other app is a 409', async () => {
    const linkSubdomain = `taken-${randomUUID().slice(0, 8)}`;
    await newApp(api, undefined, { linkSubdomain });
    const created = await api.call('POST', '/apps', { key: app.key, body: { name: 'x', linkSubdomain } });
    expect(created).toMatchObject({ status: 409, body: { code: 'subdomain_taken' } });
    const patched = await api.call('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body: { linkSubdomain },
    });
    expect(patched.status).toBe(409);
  });
});

describe('rotation of the SDK key', () => {
  // @promise rotate-sdk-key, sdk-key-grace, sdk-key-rotation
  test('both SDK keys work until the grace period ends, then only the new one', async () => {
    const own = await newApp(api);
    const { status, body } = await api.call<{ sdkKey: string; previousKeyExpiresAt: number }>(
      'POST',
      `/apps/${own.appId}/sdk-key/rotate`,
      { key: own.key },
    );
    expect(status).toBe(200);
    expect(body.previousKeyExpiresAt).toBe(api.clock.now + DAY_MS);
    expect([await installs(own.sdkKey), await installs(body.sdkKey)]).toEqual([404, 404]);
    api.clock.now += DAY_MS;
    expect([await installs(own.sdkKey), await installs(body.sdkKey)]).toEqual([401, 404]);
  });

  // @promise sdk-key-grace
  test('without a grace period every older SDK key ends immediately', async () => {
    const own = await newApp(api);
    const rotate = (graceSeconds: number) =>
      api.call<{ sdkKey: string }>('POST', `/apps/${own.appId}/sdk-key/rotate`, {
        key: own.key,
        body: { graceSeconds },
      });
    const second = await rotate(3600);
    const third = await rotate(0);
    expect(await Promise.all([own.sdkKey, second.body.sdkKey, third.body.sdkKey].map(installs))).toEqual([
      401, 401, 404,
    ]);
  });

  // @promise key-hash-stored
  test('only the hash and the visible part of a key are stored', async () => {
    const own = await newApp(api);
    const rows = await api.sql<{ row: string; isItsHash: boolean }>`
      select k::text as row, key_sha256 = ${createHash('sha256').update(own.sdkKey).digest()}::bytea as is_its_hash
        from sdk_keys k where app_id = ${own.appId}
      union all
      select k::text, key_sha256 = ${createHash('sha256').update(own.key).digest()}::bytea
        from account_keys k where account_id = ${own.accountId}`;
    expect(rows).toHaveLength(2);
    for (const { row, isItsHash } of rows) {
      expect(isItsHash).toBe(true);
      for (const key of [own.sdkKey, own.key]) expect(row).not.toContain(key.slice(-20));
    }
  });

  test('simultaneous rotations leave one current key', async () => {
    const own = await newApp(api);
    const responses = await Promise.all(
      Array.from({ length: 8 }, () =>
        api.call('POST', `/apps/${own.appId}/sdk-key/rotate`, { key: own.key, body: { graceSeconds: 60 } }),
      ),
    );
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
    const { current } = await api.sql.one<{ current: number }>`
      select count(*) as current from sdk_keys where app_id = ${own.appId} and expires_at is null`;
    expect(current).toBe(1);
  });
});

describe('webhook secrets', () => {
  const put = (provider: string, body: object, owner = app) =>
    api.call<{ secret?: string; previousSecretExpiresAt: number | null }>(
      'PUT',
      `/apps/${owner.appId}/webhooks/${provider}/secret`,
      { key: owner.key, body },
    );

  test.each([
    ['superwall', 'whsec_not base64!'],
    ['superwall', 'whsec_********'],
    ['stripe', 'sk_live_plainly_fake'],
    ['stripe', 'wh_sec_plainly_fake'],
    ['paddle', 'pdl_live_apikey_plainly_fake'],
  ])("a text that can't be a secret of %s is refused: %s", async (provider, secret) => {
    const { status, body } = await put(provider, { secret, environment: 'production' });
    expect(status).toBe(400);
    expect(body).toMatchObject({ errors: [{ path: 'secret' }] });
  });

  // @promise put-webhook-secret, secret-generated, secret-environment-default
  test('a token is generated and returned once if none is given', async () => {
    const own = await newApp(api);
    const { status, body } = await put('revenuecat', {}, own);
    expect(status).toBe(200);
    expect(body).toEqual({
      provider: 'revenuecat',
      url: `https://api.example.test/webhooks/revenuecat/${own.appId}`,
      secret: expect.stringMatching(/^[\w-]{43}$/),
      setupHint: expect.stringContaining('Authorization'),
      previousSecretExpiresAt: null,
    });
    const seen = await api.call('GET', `/apps/${own.appId}/webhooks`, { key: own.key });
    expect(seen.text).not.toContain(body.secret);
    expect(seen.body).toMatchObject({
      items: expect.arrayContaining([
        expect.objectContaining({
          provider: 'revenuecat',
          configured: true,
          environment: 'production',
          lastDelivery: null,
        }),
        expect.objectContaining({ provider: 'stripe', configured: false, environment: null }),
      ]),
    });
  });

  // @promise get-webhooks, secret-never-returned, webhooks-never-show-secret
  test('every provider can be set up and has a setup hint', async () => {
    const own = await newApp(api);
    for (const provider of PROVIDER_NAMES) {
      const isGenerated = providers[provider].scheme === 'static_token';
      const secret = fakeSecret(provider);
      const given = { environment: 'production', ...(secret === null ? {} : { secret }) };
      const { status, body } = await put(provider, given, own);
      expect(status).toBe(200);
      expect(typeof body.secret).toBe(isGenerated ? 'string' : 'undefined');
    }
    const { body } = await api.call<{ items: object[] }>('GET', `/apps/${own.appId}/webhooks`, {
      key: own.key,
    });
    expect(body.items).toEqual(
      PROVIDER_NAMES.map((provider) =>
        expect.objectContaining({
          provider,
          url: `https://api.example.test/webhooks/${provider}/${own.appId}`,
          configured: true,
          setupHint: expect.stringContaining('this URL'),
        }),
      ),
    );
  });

  // @promise webhooks-last-delivery
  test('the settings have the latest delivery of each provider, also a refused one', async () => {
    const own = await newApp(api);
    await api.call('POST', `/webhooks/stripe/${own.appId}`, { body: {} });
    const { body } = await api.call<{ items: { provider: string; lastDelivery: object | null }[] }>(
      'GET',
      `/apps/${own.appId}/webhooks`,
      { key: own.key },
    );
    const shown = body.items.filter(({ lastDelivery }) => lastDelivery !== null);
    expect(shown).toMatchObject([
      {
        provider: 'stripe',
        configured: false,
        lastDelivery: { receivedAt: api.clock.now, signatureValid: false, processingStatus: 'rejected' },
      },
    ]);
  });

  // @promise secret-never-returned, secret-encrypted
  test('a given secret is stored encrypted and never returned', async () => {
    const own = await newApp(api);
    const { body } = await put('stripe', { secret: 'whsec_0123456789abcdef' }, own);
    expect(body).not.toHaveProperty('secret');
    const { ciphertext, keyId } = await api.sql.one<{ ciphertext: Uint8Array; keyId: string }>`
      select ciphertext, encryption_key_id as key_id from webhook_secrets where app_id = ${own.appId}`;
    expect(Buffer.from(ciphertext).includes('whsec')).toBe(false);
    const box = createSecretBox([TEST_KEY]);
    expect(box.decrypt(Buffer.from(ciphertext), keyId, `${own.appId}:stripe`)).toBe('whsec_0123456789abcdef');
  });

  // @promise secret-grace
  test('the previous secret ends with its grace period, and simultaneous calls leave one current secret', async () => {
    const own = await newApp(api);
    await put('revenuecat', {}, own);
    expect((await put('revenuecat', { graceSeconds: 10 }, own)).body.previousSecretExpiresAt).toBe(
      api.clock.now + 10_000,
    );
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => put('revenuecat', { graceSeconds: 0 }, own)),
    );
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
    const { current, all } = await api.sql.one<{ current: number; all: number }>`
      select count(*) filter (where expires_at is null) as current, count(*) as all
        from webhook_secrets where app_id = ${own.appId}`;
    expect({ current, all }).toEqual({ current: 1, all: 10 });
  });

  /** Returns the valid secrets of an app's provider, oldest first. */
  const liveSecrets = async (appId: string, provider: string) =>
    (
      await api.sql<{ id: string }>`
        select id from webhook_secrets
         where app_id = ${appId} and provider = ${provider}
           and (expires_at is null or expires_at > ${new Date(api.clock.now)})
         order by created_at, id`
    ).map(({ id }) => id);

  // @promise live-secrets-limit
  test('a fourth live webhook secret ends the oldest, of that provider only', async () => {
    const own = await newApp(api);
    await put('stripe', { secret: fakeSecret('stripe') }, own);
    for (let nth = 0; nth < 3; nth += 1) expect((await put('revenuecat', {}, own)).status).toBe(200);
    const three = await liveSecrets(own.appId, 'revenuecat');
    expect(three).toHaveLength(3);
    expect((await put('revenuecat', {}, own)).body.previousSecretExpiresAt).toBe(api.clock.now + DAY_MS);
    const after = await liveSecrets(own.appId, 'revenuecat');
    expect(after).toEqual([...three.slice(1), expect.any(String)]);
    expect(await liveSecrets(own.appId, 'stripe')).toHaveLength(1);
  });

  // @promise live-secrets-limit
  test('simultaneous calls leave at most three live webhook secrets', async () => {
    const own = await newApp(api);
    const responses = await Promise.all(Array.from({ length: 8 }, () => put('adapty', {}, own)));
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    expect(await liveSecrets(own.appId, 'adapty')).toHaveLength(3);
  });

  // @promise live-secrets-limit
  test('the database stores no fourth live webhook secret, and one without a slot verifies nothing', async () => {
    const own = await newApp(api);
    for (let nth = 0; nth < 3; nth += 1) await put('adapty', {}, own);
    /** Copies the oldest live secret with other values. */
    const copy = async (values: object) =>
      await api.sql`
        insert into webhook_secrets
        select copied.*
          from (select * from webhook_secrets where app_id = ${own.appId} order by created_at, id limit 1) s,
               jsonb_populate_record(s::webhook_secrets, ${api.sql.json({ id: newId('secret'), ...values })}) copied`;
    await expect(copy({})).rejects.toThrow('webhook_secrets_live_slot');
    await expect(copy({ live_slot: 4 })).rejects.toThrow('live_slot_check');
    await expect(copy({ live_slot: null, expires_at: null })).rejects.toThrow('current_secret_has_slot');
    const { body } = await put('adapty', { graceSeconds: 0 }, own);
    const accepted = async () => {
      const headers = { authorization: body.secret ?? '' };
      return (await api.call('POST', `/webhooks/adapty/${own.appId}`, { body: '{}', headers })).status;
    };
    expect(await accepted()).toBe(200);
    await api.sql`
      update webhook_secrets set live_slot = null, expires_at = 'infinity' where app_id = ${own.appId}`;
    expect(await accepted()).toBe(401);
  });

  // @promise secret-strength
  test.each([
    ['revenuecat', 'a'.repeat(8) + 'bcdefghijklmno', 'a1b2c3d4e5f6a1b2c3d4e5f6'],
    ['adapty', 'password-of-the-webhook', 'Bearer a1b2c3d4e5f6a1b2c'],
    ['revenuecat', 'a'.repeat(40), 'Basic dHJpYnV0YXJ5OnBhc3M='],
    ['stripe', 'whsec_abcdefghi', 'whsec_abcdefghij'],
    ['paddle', 'pdl_ntfset_abcdefghi', 'pdl_ntfset_abcdefghij'],
    ['stripe', 'whsec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'whsec_abcdefghijklmnopqrstuvwxyzabcdef'],
    ['superwall', 'whsec_AA', `whsec_${Buffer.from('0123456789abcdef').toString('base64')}`],
    [
      'superwall',
      `whsec_${Buffer.alloc(32).toString('base64')}`,
      `whsec_${Buffer.from('0123456789abcdefghijklmn').toString('base64')}`,
    ],
  ])('for %s the weak secret %s is refused, and %s is accepted', async (provider, weak, strong) => {
    const own = await newApp(api);
    const refused = await put(provider, { secret: weak, environment: 'production' }, own);
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'secret' }] } });
    expect((await put(provider, { secret: strong, environment: 'production' }, own)).status).toBe(200);
  });

  // @promise paddle-environment-required
  test.each(PROVIDER_NAMES)(
    'a webhook secret of %s without an environment is refused if the webhooks do not state it',
    async (provider) => {
      const secret = fakeSecret(provider);
      const { status } = await put(provider, secret === null ? {} : { secret }, await newApp(api));
      expect(status).toBe(providers[provider].environmentFrom === 'secret' ? 400 : 200);
    },
  );

  test.each([
    ['an unknown provider', 'paypal', {}, 404],
    ['a missing secret that the provider generates', 'stripe', {}, 400],
    ['a missing secret that Svix generates', 'superwall', {}, 400],
    ['a short secret', 'revenuecat', { secret: 'abc' }, 400],
    ['a secret that is invalid in a header', 'revenuecat', { secret: 'abcdefgh\nij' }, 400],
    ['an unknown environment', 'revenuecat', { environment: 'test' }, 400],
    ['a negative grace period', 'revenuecat', { graceSeconds: -1 }, 400],
    ['an unknown field', 'revenuecat', { sceret: 'abcdefghij' }, 400],
  ])('a webhook secret with %s is refused', async (_, provider, body, status) => {
    expect((await put(provider, body)).status).toBe(status);
  });
});

describe('affiliates', () => {
  const patch = (id: string, body: object, owner = app) =>
    api.call('PATCH', `/apps/${owner.appId}/affiliates/${id}`, { key: owner.key, body });

  // @promise affiliate-fields, post-affiliates, patch-affiliate, new-affiliate
  test('affiliates are created as active and updated field by field, and null clears a field', async () => {
    const created = await api.call<{ id: string }>('POST', `/apps/${app.appId}/affiliates`, {
      key: app.key,
      body: { name: ' Ann ', email: 'ann@example.com', defaultCommissionRateBps: 2500 },
    });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^aff_/),
      name: 'Ann',
      email: 'ann@example.com',
      status: 'active',
      defaultCommissionRateBps: 2500,
      externalId: null,
      createdAt: expect.any(Number),
    });
    const paused = await patch(created.body.id, { status: 'paused' });
    expect(paused.body).toEqual({ ...created.body, status: 'paused' });
    const cleared = await patch(created.body.id, {
      email: null,
      defaultCommissionRateBps: null,
      name: 'Bea',
    });
    expect(cleared.body).toEqual({
      ...created.body,
      name: 'Bea',
      status: 'paused',
      email: null,
      defaultCommissionRateBps: null,
    });
  });

  // @promise unknown-field-400
  test.each([
    ['no name', { name: '' }],
    ['a name on two lines', { name: 'a\nb' }],
    ['a name that is written backwards', { name: 'Ada\u202eLovelace' }],
    ['an invalid e-mail address', { name: 'x', email: 'x' }],
    ['a rate over 100 %', { name: 'x', defaultCommissionRateBps: 10_001 }],
    ['an unknown field', { name: 'x', rate: 1 }],
  ])('an affiliate with %s is a 400', async (_, body) => {
    expect((await api.call('POST', `/apps/${app.appId}/affiliates`, { key: app.key, body })).status).toBe(
      400,
    );
  });

  // @promise external-id-changed
  test('an externalId can be set, kept, moved to another affiliate and removed later', async () => {
    const own = await newApp(api);
    const [one, two] = [await newAffiliate(api, own), await newAffiliate(api, own)];
    expect((await patch(one, { externalId: 'crm-1' }, own)).body).toMatchObject({
      id: one,
      externalId: 'crm-1',
    });
    expect((await patch(one, { externalId: 'crm-1', name: 'Ann' }, own)).body).toMatchObject({ name: 'Ann' });
    expect((await patch(one, { name: 'Bea' }, own)).body).toMatchObject({ externalId: 'crm-1' });
    expect(await patch(two, { externalId: 'crm-1', name: 'Cid' }, own)).toMatchObject({
      status: 409,
      body: {
        code: 'external_id_taken',
        existingId: one,
        detail: expect.stringContaining('Nothing was changed'),
      },
    });
    expect((await patch(two, {}, own)).body).toMatchObject({ name: 'Creator', externalId: null });
    expect((await patch('aff_x', { externalId: 'crm-1' }, own)).status).toBe(404);
    expect((await patch(one, { externalId: null }, own)).body).toMatchObject({ externalId: null });
    expect((await patch(two, { externalId: 'crm-1' }, own)).body).toMatchObject({ externalId: 'crm-1' });
    expect((await patch(two, { externalId: '' }, own)).status).toBe(400);
  });

  // @promise external-id-changed
  test('of affiliates that get one externalId at the same time exactly one has it', async () => {
    const own = await newApp(api);
    const ids = await Promise.all(Array.from({ length: 6 }, () => newAffiliate(api, own)));
    const responses = await Promise.all(ids.map((id) => patch(id, { externalId: 'crm-1' }, own)));
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200, 409, 409, 409, 409, 409,
    ]);
  });

  test("another app's affiliate is a 404 and stays unchanged", async () => {
    const other = await newApp(api);
    const id = await newAffiliate(api, other);
    expect((await patch(id, { name: 'mine' })).status).toBe(404);
    expect((await patch('aff_x', { name: 'mine' })).status).toBe(404);
    expect((await patch(id, { status: 'gone' })).status).toBe(400);
    expect((await patch(id, {}, other)).body).toMatchObject({ name: 'Creator' });
  });
});

describe('links', () => {
  const create = (body: object, owner = app) =>
    api.call<{ id: string; slug: string; url: string }>('POST', `/apps/${owner.appId}/links`, {
      key: owner.key,
      body,
    });
  const destinationUrl = 'https://example.com/a?b=c';

  // @promise link-fields, link-active-toggle, post-links, patch-link, slug-not-renamed
  // @promise slug-in-patch-400
  test('links get a generated slug if none is given, and can be updated except for the slug', async () => {
    const affiliateId = await newAffiliate(api, app);
    const { body: settings } = await api.call('GET', `/apps/${app.appId}`, { key: app.key });
    const { linkSubdomain } = settings as { linkSubdomain: string };
    const created = await create({ affiliateId, destinationUrl, campaign: 'May' });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^lnk_/),
      slug: expect.stringMatching(/^[a-z0-9]{8}$/),
      externalId: null,
      url: `https://api.example.test/l/${linkSubdomain}/${created.body.slug}`,
      directUrl: `https://api.example.test/l/${linkSubdomain}/${created.body.slug}?via=${created.body.slug}`,
      destinationUrl,
      destinations: { ios: null, android: null },
      campaign: 'May',
      active: true,
      affiliateId,
      createdAt: expect.any(Number),
    });
    const path = `/apps/${app.appId}/links/${created.body.id}`;
    const changed = await api.call('PATCH', path, { key: app.key, body: { active: false, campaign: null } });
    expect(changed.body).toEqual({ ...created.body, active: false, campaign: null });
    const visited = await followLink(api.url, new URL(created.body.url).pathname);
    expect(visited).toMatchObject({ status: 302, location: destinationUrl });
    expect((await api.call('PATCH', path, { key: app.key, body: { slug: 'other' } })).status).toBe(400);
  });

  // @promise platform-destinations
  test('a link has destinations for iOS and Android, each of which can be set, kept and removed', async () => {
    const affiliateId = await newAffiliate(api, app);
    const [ios, android] = ['https://apps.apple.com/app/id1', 'market://details?id=com.example'];
    const created = await create({ affiliateId, destinationUrl, destinations: { ios } });
    expect(created).toMatchObject({ status: 201, body: { destinations: { ios, android: null } } });
    const path = `/apps/${app.appId}/links/${created.body.id}`;
    const change = async (body: object) => (await api.call('PATCH', path, { key: app.key, body })).body;
    expect(await change({ destinations: { android } })).toMatchObject({ destinations: { ios, android } });
    expect(await change({ active: true })).toMatchObject({ destinations: { ios, android } });
    expect(await change({ destinations: { ios: null } })).toMatchObject({
      destinationUrl,
      destinations: { ios: null, android },
    });
    expect(await change({ destinations: null })).toMatchObject({
      destinations: { ios: null, android: null },
    });
    const rows = [
      { affiliateId, destinationUrl, destinations: { ios, android } },
      { affiliateId, destinationUrl, destinations: null },
    ];
    const bulk = await api.call('POST', `/apps/${app.appId}/links/bulk`, { key: app.key, body: { rows } });
    expect(bulk.body).toMatchObject({
      created: [{ destinations: { ios, android } }, { destinations: { ios: null, android: null } }],
    });
  });

  // @promise platform-destinations
  test.each([
    [{ ios: 'javascript:alert(1)' }, 'destinations.ios'],
    [{ android: 'intent://x' }, 'destinations.android'],
    [{ web: 'https://example.com' }, 'destinations.web'],
    [{ ios: '' }, 'destinations.ios'],
  ])('the destinations %j are a 400 that names the field', async (destinations, path) => {
    const affiliateId = await newAffiliate(api, app);
    const { status, body } = await create({ affiliateId, destinationUrl, destinations });
    expect({ status, body }).toMatchObject({ status: 400, body: { errors: [{ path }] } });
  });

  // @promise slug-unique, error-409-slug, slug-case-insensitive
  test('a slug that exists in the app in any case is a 409, and another app may use it', async () => {
    const affiliateId = await newAffiliate(api, app);
    const slug = `Sale-${randomUUID().slice(0, 8)}`;
    expect((await create({ affiliateId, destinationUrl, slug })).status).toBe(201);
    const again = await create({ affiliateId, destinationUrl, slug: slug.toUpperCase() });
    expect(again).toMatchObject({ status: 409, body: { code: 'slug_taken' } });
    const other = await newApp(api);
    expect(
      (await create({ affiliateId: await newAffiliate(api, other), destinationUrl, slug }, other)).status,
    ).toBe(201);
  });

  // @promise order-404-409
  test('an unknown affiliate is a 404 even if the slug is taken', async () => {
    const { slug } = await newLink(api, app, await newAffiliate(api, app));
    const foreign = await newAffiliate(api, await newApp(api));
    expect((await create({ affiliateId: foreign, destinationUrl, slug })).status).toBe(404);
  });

  // @promise slug-taken
  test('simultaneous calls with one slug create one link', async () => {
    const affiliateId = await newAffiliate(api, app);
    const slug = `race-${randomUUID().slice(0, 8)}`;
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => create({ affiliateId, destinationUrl, slug })),
    );
    expect(responses.filter((response) => response.status === 201)).toHaveLength(1);
    expect(responses.filter((response) => response.status === 409)).toHaveLength(7);
  });

  test("another app's affiliate and link are a 404", async () => {
    const other = await newApp(api);
    const affiliateId = await newAffiliate(api, other);
    const { id } = await newLink(api, other, affiliateId);
    expect((await create({ affiliateId, destinationUrl })).status).toBe(404);
    expect((await create({ affiliateId: 'x', destinationUrl })).status).toBe(404);
    expect(
      (await api.call('PATCH', `/apps/${app.appId}/links/${id}`, { key: app.key, body: {} })).status,
    ).toBe(404);
  });

  // @promise destination-form
  test.each([
    ['javascript:alert(1)'],
    ['JaVaScRiPt:alert(1)'],
    ['java\tscript:alert(1)'],
    [' javascript:alert(1)'],
    ['data:text/html,x'],
    ['file:///etc/passwd'],
    ['/relative'],
    ['https://'],
    ['https://exa mple.com'],
    [`https://example.com/${'x'.repeat(2048)}`],
  ])('%p is not a valid destination', async (url) => {
    const affiliateId = await newAffiliate(api, app);
    expect((await create({ affiliateId, destinationUrl: url })).status).toBe(400);
  });

  // @promise destination-form
  test.each([['myapp://open?x=1'], ['http://example.com'], ['market://details?id=com.example']])(
    '%p is a valid destination',
    async (url) => {
      const affiliateId = await newAffiliate(api, app);
      expect((await create({ affiliateId, destinationUrl: url })).status).toBe(201);
    },
  );

  // @promise destination-schemes
  test('an app that declares its schemes accepts no link to another scheme', async () => {
    const own = await newApp(api, undefined, { destinationSchemes: ['myapp'] });
    const affiliateId = await newAffiliate(api, own);
    const undeclared = { affiliateId, destinationUrl: 'other://open' };
    const refused = await create(undeclared, own);
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'destinationUrl' }] } });
    const made = await create({ affiliateId, destinationUrl: 'myapp://open' }, own);
    expect(made.status).toBe(201);
    const linkPath = `/apps/${own.appId}/links/${made.body.id}`;
    const patched = await api.call('PATCH', linkPath, {
      key: own.key,
      body: { destinationUrl: 'other://open' },
    });
    expect(patched).toMatchObject({ status: 400, body: { errors: [{ path: 'destinationUrl' }] } });
    const destinations = { android: 'other://open', ios: 'myapp://open' };
    const byPlatform = { status: 400, body: { errors: [{ path: 'destinations.android' }] } };
    expect(await create({ affiliateId, destinationUrl, destinations }, own)).toMatchObject(byPlatform);
    expect(await api.call('PATCH', linkPath, { key: own.key, body: { destinations } })).toMatchObject(
      byPlatform,
    );
    const bulk = await api.call('POST', `/apps/${own.appId}/links/bulk`, {
      key: own.key,
      body: { rows: [undeclared, { affiliateId, destinationUrl: 'https://example.com' }] },
    });
    expect(bulk).toMatchObject({ status: 200, body: { failed: [{ index: 0, code: 'undeclared_scheme' }] } });
    const path = `/apps/${own.appId}/settings`;
    const open = await api.call('PATCH', path, { key: own.key, body: { destinationSchemes: null } });
    expect(open.body).toMatchObject({ destinationSchemes: null });
    expect((await create(undeclared, own)).status).toBe(201);
  });

  // @promise slug-form
  test.each([['ab'], ['-_'], ['x'.repeat(64)]])('%p is a valid slug', async (slug) => {
    const own = await newApp(api);
    const created = await create({ affiliateId: await newAffiliate(api, own), destinationUrl, slug }, own);
    expect(created).toMatchObject({ status: 201, body: { slug } });
  });

  // @promise slug-form
  test.each([['x'], ['a b'], ['ä1'], ['x'.repeat(65)], ['a/b']])('%p is not a valid slug', async (slug) => {
    const affiliateId = await newAffiliate(api, app);
    expect((await create({ affiliateId, destinationUrl, slug })).status).toBe(400);
  });
});

// @promise get-setup
test('the set-up has the state of each provider, link and sale, and no key or secret', async () => {
  const owner = await newApp(api);
  const setup = async () => (await api.call('GET', `/apps/${owner.appId}/setup`, { key: owner.key })).body;
  const before = await setup();
  expect(before).toMatchObject({
    hasAffiliate: false,
    hasActiveLink: false,
    clicks: 0,
    installs: 0,
    identified: 0,
    firstSaleAt: null,
  });
  const put = await api.call('PUT', `/apps/${owner.appId}/webhooks/revenuecat/secret`, {
    key: owner.key,
    body: {},
  });
  const affiliateId = await newAffiliate(api, owner);
  await newLink(api, owner, affiliateId);
  const occurredAt = api.clock.now - DAY_MS;
  await insertEarning(api, owner, { affiliateId, amountCents: 500, occurredAt, dueAt: api.clock.now });
  const after = await setup();
  expect(after).toMatchObject({ hasAffiliate: true, hasActiveLink: true, firstSaleAt: occurredAt });
  expect(after['providers']).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ provider: 'revenuecat', configured: true, generatesSecret: false }),
      expect.objectContaining({ provider: 'stripe', configured: false, generatesSecret: true }),
      expect.objectContaining({ provider: 'paddle', needsEnvironment: true }),
    ]),
  );
  const text = JSON.stringify(after);
  for (const secret of [owner.sdkKey, owner.key, String(put.body['secret'])])
    expect(text).not.toContain(secret);
});

// @promise get-setup-codes
test('the set-up states which codes have come with a purchase, what to do for the others, and which codes nobody has', async () => {
  const owner = await newApp(api);
  const { key, appId } = owner;
  const setup = async () => (await api.call('GET', `/apps/${appId}/setup`, { key })).body;
  const affiliateId = await newAffiliate(api, owner);
  const register = async (body: object) =>
    (await api.call('POST', `/apps/${appId}/affiliates/${affiliateId}/codes`, { key, body })).body['id'];
  const arrive = async (
    namespace: string,
    value: string,
    { at, ref = randomUUID() }: { at: number; ref?: string },
  ) =>
    await api.sql`
      insert into payment_codes (app_id, environment, store, payment_ref, namespace, value, created_at)
      values (${appId}, 'sandbox', 'app_store', ${ref}, ${namespace}, ${value}, ${new Date(at)})`;
  const ada = await register({ namespace: 'attribute', value: 'ADA' });
  const spring = await register({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_1' });
  expect(await setup()).not.toHaveProperty('purchaseCodes');
  await api.call('PATCH', `/apps/${appId}/settings`, { key, body: { purchaseCodes: 'when_unattributed' } });
  await api.call('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, { key, body: {} });

  const before = (await setup())['purchaseCodes'];
  const code = { affiliateId, affiliateName: expect.any(String), externalId: null, lastArrival: null };
  expect(before).toEqual({
    namespaces: [
      {
        namespace: 'stripe',
        codes: [{ ...code, id: spring, value: 'SPRING20', externalId: 'promo_1' }],
        fix: 'No connected provider states such codes. Connect Stripe.',
      },
      {
        namespace: 'attribute',
        codes: [{ ...code, id: ada, value: 'ADA' }],
        fix: expect.stringContaining('tributary_code'),
      },
    ],
    unregistered: [],
  });

  const at = api.clock.now;
  await arrive('attribute', 'ada', { at: at - DAY_MS });
  await arrive('attribute', 'ada', { at });
  await arrive('attribute', 'ada', { at: at + 1, ref: 'tributary_self_test_1' });
  // Ids are compared exactly.
  await arrive('stripe', 'PROMO_1', { at });
  expect((await setup())['purchaseCodes']).toMatchObject({
    namespaces: [{ codes: [{ lastArrival: null }] }, {}],
  });
  await arrive('app_store', 'SPRING25', { at: at - 2 });
  await arrive('app_store', 'Spring25', { at: at - 1 });
  await arrive('campaign', 'meta-1', { at });
  const deactivated = await register({ namespace: 'play_store', value: 'OLD' });
  await api.call('POST', `/apps/${appId}/codes/${String(deactivated)}/deactivate`, { key });
  await arrive('play_store', 'OLD', { at });
  // A subscription that began for free.
  await api.sql`
    insert into subscription_codes (app_id, environment, source, user_key, namespace, value, used_at, created_at)
    select ${appId}, 'production', 'paddle', 'sub_' || n, namespace, value, ${new Date(at)}, ${new Date(at - 3)}
      from (values (1, 'stripe', 'promo_1'), (2, 'attribute', 'ADA'), (3, 'app_store', 'FREE')) x (n, namespace, value)`;
  const sandbox = (time: number) => ({ at: time, environment: 'sandbox' });
  expect((await setup())['purchaseCodes']).toMatchObject({
    namespaces: [
      { namespace: 'stripe', codes: [{ lastArrival: { at: at - 3, environment: 'production' } }], fix: null },
      { namespace: 'attribute', codes: [{ lastArrival: sandbox(at) }], fix: null },
    ],
    unregistered: [
      { namespace: 'stripe', value: 'PROMO_1', lastArrival: sandbox(at) },
      { namespace: 'app_store', value: 'Spring25', lastArrival: sandbox(at - 1) },
      { namespace: 'app_store', value: 'FREE', lastArrival: { at: at - 3, environment: 'production' } },
    ],
  });
});
