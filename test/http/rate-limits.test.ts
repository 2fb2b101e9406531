import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createRateLimits } from '../../src/http/rate-limits.ts';
import { newAccount, newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi({ rateLimits: createRateLimits({ account: 20, sdk: 3, clicks: 4 }) });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

// @promise limit-429
test('responses to an account key state what remains, a 429 has Retry-After, and other keys are not affected', async () => {
  const { key } = await newAccount(api);
  const responses = [];
  for (let call = 0; call < 21; call += 1) responses.push(await api.call('GET', '/apps', { key }));
  expect(responses.map(({ status }) => status)).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
  expect(responses[0]?.headers.get('ratelimit-policy')).toBe('"account";q=20;w=60');
  expect(responses[0]?.headers.get('ratelimit')).toMatch(/^"account";r=19;t=(60|59)$/);
  const refused = responses.at(-1);
  expect(refused).toMatchObject({ body: { code: 'rate_limited' } });
  expect(refused?.headers.get('ratelimit')).toMatch(/^"account";r=0;t=\d+$/);
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await api.call('GET', '/apps', { key: app.key })).status).toBe(200);
});

// @promise limit-scopes
test('install and identify share one limit per device, and another device has its own', async () => {
  const install = (deviceId: string) =>
    api.call('POST', '/sdk/install', {
      key: app.sdkKey,
      body: { deviceId, affiliateCode: 'nobody', firstOpenAt: api.clock.now },
    });
  expect([(await install('one')).status, (await install('one')).status]).toEqual([404, 404]);
  const identify = { deviceId: 'one', customerUserId: 'user', identifiedAt: api.clock.now };
  const identified = () => api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify });
  expect((await identified()).status).toBe(404);
  expect((await identified()).status).toBe(429);
  expect((await install('two')).status).toBe(404);
});

// @promise limit-scopes
test('clicks are limited per app and address hash, or per address without a hash', async () => {
  const limits = createRateLimits({ account: 0, sdk: 0, clicks: 4 });
  const open = await startTestApi({ rateLimits: limits, trustProxy: 1 });
  const makeShop = async () => {
    const shop = await newApp(open);
    const { slug } = await newLink(open, shop, await newAffiliate(open, shop));
    return { customerAppId: shop.appId, slug };
  };
  const [own, other] = [await makeShop(), await makeShop()];
  const click = async (shop: object, from: string, ipHash?: string) => {
    const body = { ...shop, claimToken: randomUUID(), ipHash };
    const headers = { 'x-forwarded-for': from };
    return (await open.call('POST', '/clicks', { body, headers })).status;
  };
  const five = async (...args: Parameters<typeof click>) => {
    const statuses = [];
    for (let call = 0; call < 5; call += 1) statuses.push(await click(...args));
    return statuses;
  };
  const limited = [200, 200, 200, 200, 429];
  expect(await five(own, '203.0.113.1', 'hash-one')).toEqual(limited);
  expect(await click(own, '203.0.113.2', 'hash-one')).toBe(429);
  expect(await five(own, '203.0.113.1', 'hash-two')).toEqual(limited);
  expect(await five(other, '203.0.113.1', 'hash-one')).toEqual(limited);
  expect(await five(own, '203.0.113.1')).toEqual(limited);
  expect(await five(own, '203.0.113.2')).toEqual(limited);
  await open.close();
});

test('an address that is sent as a hash does not use up the limit of that address', async () => {
  const own = await newApp(api, undefined, { linkSubdomain: 'visited' });
  const { slug } = await newLink(api, own, await newAffiliate(api, own));
  for (const ipHash of ['127.0.0.1', '::ffff:127.0.0.1']) {
    for (let call = 0; call < 5; call += 1) {
      await api.call('POST', '/clicks', {
        body: { customerAppId: own.appId, slug, claimToken: randomUUID(), ipHash },
      });
    }
  }
  const { claimToken } = await followLink(api.url, `/l/visited/${slug}`);
  expect(claimToken).not.toBeNull();
});

test('a call over the limit changes nothing', async () => {
  const { key, accountId } = await newAccount(api);
  for (let call = 0; call < 20; call += 1) await api.call('GET', '/apps', { key });
  expect((await api.call('POST', '/apps', { key, body: { name: 'Too many' } })).status).toBe(429);
  expect(await api.sql`select 1 from apps where account_id = ${accountId}`).toEqual([]);
});

// @promise webhooks-unlimited
test('webhooks and health checks are not limited', async () => {
  for (let call = 0; call < 30; call += 1) {
    const response = await api.call('POST', `/webhooks/stripe/${app.appId}`, { body: {} });
    expect(response.status).toBe(401);
    expect(response.headers.get('ratelimit')).toBeNull();
  }
  expect((await api.call('GET', '/healthz')).status).toBe(200);
});
