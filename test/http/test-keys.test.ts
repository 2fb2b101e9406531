import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { removeExpired } from '../../src/db/retention.ts';
import { DEFAULT_RETENTION } from '../../src/domain/retention.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';

const BROWSER = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1';

interface Answer {
  readonly code?: string;
  readonly attributionId: string | null;
  readonly affiliateId: string | null;
  readonly matchMethod: string | null;
  readonly touch?: string;
}

let api: TestApi;
let app: TestApp;
let testKey: string;
let affiliateId: string;
let slug: string;

const rotate = (body: object, owner: TestApp = app) =>
  api.call<{ sdkKey: string; previousKeyExpiresAt: number | null }>(
    'POST',
    `/apps/${owner.appId}/sdk-key/rotate`,
    { key: owner.key, body },
  );

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  ({ slug } = await newLink(api, app, affiliateId));
  testKey = (await rotate({ kind: 'test' })).body.sdkKey;
});
afterAll(async () => {
  await api.close();
});

const install = (deviceId: string, touch: object, key = testKey) =>
  api.call<Answer>('POST', '/sdk/install', {
    key,
    body: { deviceId, firstOpenAt: api.clock.now, acceptUnattributed: true, ...touch },
  });
const identify = (deviceId: string, customerUserId: string, fields: object = {}, key = testKey) =>
  api.call<Answer>('POST', '/sdk/identify', {
    key,
    body: { deviceId, customerUserId, identifiedAt: api.clock.now, acceptUnattributed: true, ...fields },
  });
async function click(): Promise<string> {
  const headers = { 'user-agent': BROWSER };
  const { claimToken } = await followLink(api.url, `/l/${app.linkSubdomain}/${slug}`, { headers });
  return claimToken ?? '';
}
const overview = async () =>
  (await api.call<{ funnel: object }>('GET', `/apps/${app.appId}/overview`, { key: app.key })).body.funnel;

describe('a test key', () => {
  // @promise test-key-rotation
  test('an app has no test key until one is created, and it is rotated independently of the live key', async () => {
    const own = await newApp(api);
    const device = { affiliateCode: slug };
    const first = await rotate({ kind: 'test' }, own);
    expect(first.body).toEqual({
      sdkKey: expect.stringMatching(/^pk_test_[0-9A-Za-z]{49}$/),
      previousKeyExpiresAt: null,
    });
    const second = await rotate({ kind: 'test', graceSeconds: 0 }, own);
    expect(second.body.previousKeyExpiresAt).toBe(api.clock.now);
    const statusOf = async (key: string) => (await install(randomUUID(), device, key)).status;
    expect([
      await statusOf(first.body.sdkKey),
      await statusOf(second.body.sdkKey),
      await statusOf(own.sdkKey),
    ]).toEqual([401, 200, 200]);
    await rotate({ graceSeconds: 0 }, own);
    expect([await statusOf(own.sdkKey), await statusOf(second.body.sdkKey)]).toEqual([401, 200]);
  });

  // @promise test-key-works
  test('a test key attributes by token, code and address, and keeps the first attribution, as a live key does', async () => {
    const [byCode, byToken, byAddress] = [randomUUID(), randomUUID(), randomUUID()];
    const won = { status: 200, body: { affiliateId, touch: 'won' } };
    expect(await install(byCode, { affiliateCode: slug })).toMatchObject(won);
    expect(await install(byToken, { claimToken: await click() })).toMatchObject(won);
    await click();
    expect(await install(byAddress, { deferred: true })).toMatchObject({
      status: 200,
      body: { matchMethod: 'deferred', touch: 'won' },
    });
    const other = await newLink(api, app, await newAffiliate(api, app));
    const again = await install(byCode, { affiliateCode: other.slug });
    expect(again.body).toMatchObject({ affiliateId, touch: 'existing' });
    expect((await install(byCode, { affiliateCode: 'nobody' })).body).toMatchObject({ touch: 'unknown' });
    expect(await install(randomUUID(), { affiliateCode: 'nobody', acceptUnattributed: false })).toMatchObject(
      {
        status: 404,
        body: { code: 'no_attributable_click' },
      },
    );
  });

  // @promise test-key-works
  test('a test key identifies up to ten users of a device, and knows a user on a new device', async () => {
    const [device, other, user] = [randomUUID(), randomUUID(), randomUUID()];
    expect((await identify(device, user)).body).toEqual({
      attributionId: null,
      affiliateId: null,
      customerUserId: user,
    });
    expect((await identify(device, user, { acceptUnattributed: false })).status).toBe(404);
    const { attributionId } = (await install(device, { affiliateCode: slug })).body;
    const bound = { attributionId, affiliateId, customerUserId: user };
    expect((await identify(device, user)).body).toEqual(bound);
    expect((await identify(other, user)).body).toMatchObject({ attributionId: null, affiliateId: null });
    expect((await identify(device, user, { acceptUnattributed: false })).body).toEqual({
      attributionId,
      customerUserId: user,
    });
    const responses = await Promise.all(Array.from({ length: 14 }, () => identify(device, randomUUID())));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(9);
    expect(responses.find(({ status }) => status !== 200)).toMatchObject({
      status: 409,
      body: { code: 'too_many_users' },
    });
  });

  test('a test key needs the signature of a user id where the app requires it', async () => {
    const own = await newApp(api);
    const { sdkKey } = (await rotate({ kind: 'test' }, own)).body;
    const path = `/apps/${own.appId}`;
    const secret = await api.call<{ secret: string }>('POST', `${path}/identity-secret/rotate`, {
      key: own.key,
      body: {},
    });
    await api.call('PATCH', `${path}/settings`, { key: own.key, body: { identityVerification: true } });
    const signature = createHmac('sha256', secret.body.secret).update('u').digest('hex');
    expect((await identify('d', 'u', {}, sdkKey)).body).toMatchObject({ code: 'signature_required' });
    expect((await identify('d', 'u', { signature: 'x' }, sdkKey)).body).toMatchObject({
      code: 'invalid_signature',
    });
    expect((await identify('d', 'u', { signature }, sdkKey)).status).toBe(200);
  });

  // @promise test-key-counts-nothing
  test('what a test key reports appears in no sum, takes no click, and leaves device and user new to a live key', async () => {
    const before = await overview();
    const [device, user, claimToken] = [randomUUID(), randomUUID(), await click()];
    const second = await newLink(api, app, await newAffiliate(api, app));
    expect((await install(device, { affiliateCode: second.slug })).body.touch).toBe('won');
    await install(randomUUID(), { claimToken });
    await identify(device, user);
    expect(await overview()).toEqual({ ...before, clicks: (before as { clicks: number }).clicks + 1 });
    const rows = await api.sql.one`
      select (select count(*) from attributions where app_id = ${app.appId}) as attributions,
             (select count(*) from identities where app_id = ${app.appId}) as identities,
             (select count(*) from bindings where app_id = ${app.appId}) as bindings,
             (select count(*) from clicks where app_id = ${app.appId} and claimed_by_device is not null) as claimed`;
    expect(rows).toEqual({ attributions: 0, identities: 0, bindings: 0, claimed: 0 });

    // The live key redeems the same click on the same device, and wins.
    const live = await install(device, { claimToken }, app.sdkKey);
    expect(live.body).toMatchObject({ affiliateId, matchMethod: 'claim_token', touch: 'won' });
    const { attributionId } = live.body;
    expect((await identify(device, user, {}, app.sdkKey)).body).toMatchObject({ attributionId, affiliateId });
    expect((await identify(device, user)).body.attributionId).not.toBe(attributionId);
  });

  // @promise test-key-never-earns
  test('the schema accepts no binding to a test attribution, so no payment and no commission can follow from one', async () => {
    const { attributionId } = (await install(randomUUID(), { affiliateCode: slug })).body;
    await expect(
      api.sql`insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
              values (${newId('binding')}, ${app.appId}, 'u', ${attributionId}, now())`,
    ).rejects.toMatchObject({ constraint_name: 'bindings_app_id_attribution_id_fkey' });
  });

  // @promise test-key-diagnosis
  test('the diagnostic of user ids lists the users of test keys apart from all others', async () => {
    const own = await newApp(api);
    const read = async () =>
      (await api.call('GET', `/apps/${own.appId}/diagnostics/identity`, { key: own.key })).body;
    const empty = await read();
    expect(empty).not.toHaveProperty('testUsers');
    const { sdkKey } = (await rotate({ kind: 'test' }, own)).body;
    await identify('device-1', 'user-1', {}, sdkKey);
    expect(await read()).toEqual({
      ...empty,
      testUsers: [
        {
          customerUserId: 'user-1',
          deviceId: 'device-1',
          affiliateId: null,
          billed: false,
          reportedAt: expect.any(Number),
        },
      ],
    });
  });

  test('what a test key reported is deleted after the time for user ids', async () => {
    const own = await newApp(api);
    const { slug: code } = await newLink(api, own, await newAffiliate(api, own));
    const { sdkKey } = (await rotate({ kind: 'test' }, own)).body;
    for (const device of ['old', 'new']) {
      await install(device, { affiliateCode: code }, sdkKey);
      await identify(device, 'u', {}, sdkKey);
    }
    const old = new Date(Date.now() - 91 * DAY_MS);
    await api.sql`update test_attributions set created_at = ${old} where app_id = ${own.appId} and device_id = 'old'`;
    await api.sql`update test_identities set created_at = ${old} where app_id = ${own.appId} and device_id = 'old'`;
    const page = { now: Date.now(), limit: 100, after: '' };
    expect(await removeExpired(api.sql, 'identities', DEFAULT_RETENTION, page)).toEqual({
      removed: 2,
      next: null,
    });
    expect(
      await api.sql`
        select device_id from test_attributions where app_id = ${own.appId}
        union all select device_id from test_identities where app_id = ${own.appId}`,
    ).toEqual([{ deviceId: 'new' }, { deviceId: 'new' }]);
  });
});
