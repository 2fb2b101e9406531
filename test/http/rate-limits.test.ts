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
test('an account key is told how much remains, and over the limit when to come back; other keys are not affected', async () => {
  const { key } = await newAccount(api);
  const answers = [];
  for (let call = 0; call < 21; call += 1) answers.push(await api.call('GET', '/apps', { key }));
  expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
  expect(answers[0]?.headers.get('ratelimit-policy')).toBe('"account";q=20;w=60');
  expect(answers[0]?.headers.get('ratelimit')).toMatch(/^"account";r=19;t=(60|59)$/);
  const refused = answers.at(-1);
  expect(refused).toMatchObject({ body: { code: 'rate_limited' } });
  expect(refused?.headers.get('ratelimit')).toMatch(/^"account";r=0;t=\d+$/);
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await api.call('GET', '/apps', { key: app.key })).status).toBe(200);
});

// @promise limit-scopes
test('a device is limited over install and identify together; another device of the app is not', async () => {
  const install = (deviceId: string) =>
    api.call('POST', '/sdk/install', {
      key: app.sdkKey,
      body: { deviceId, affiliateCode: 'nobody', firstOpenAt: 1 },
    });
  expect([(await install('one')).status, (await install('one')).status]).toEqual([404, 404]);
  const identify = { deviceId: 'one', customerUserId: 'user', identifiedAt: 1 };
  const identified = () => api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify });
  expect((await identified()).status).toBe(404);
  expect((await identified()).status).toBe(429);
  expect((await install('two')).status).toBe(404);
});

// @promise limit-scopes
test('clicks are limited per app and address hash, else per address', async () => {
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

test("nobody uses up another visitor's clicks by sending the visitor's address as a hash", async () => {
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

test('a refused call is refused before it changes anything', async () => {
  const { key, accountId } = await newAccount(api);
  for (let call = 0; call < 20; call += 1) await api.call('GET', '/apps', { key });
  expect((await api.call('POST', '/apps', { key, body: { name: 'Too many' } })).status).toBe(429);
  expect(await api.sql`select 1 from apps where account_id = ${accountId}`).toEqual([]);
});

// @promise webhooks-unlimited
test('webhooks and health are not limited', async () => {
  for (let call = 0; call < 30; call += 1) {
    const answer = await api.call('POST', `/webhooks/stripe/${app.appId}`, { body: {} });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('ratelimit')).toBeNull();
  }
  expect((await api.call('GET', '/healthz')).status).toBe(200);
});
