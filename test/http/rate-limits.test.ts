import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { newToken } from '../../src/db/sessions.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { clickCaller, createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import type { RateLimitSettings } from '../../src/http/rate-limits.ts';
import { newAccount, newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';
import { headOf, openConnection, received } from '../support/raw-http.ts';

/** So many counters that no two callers of a test share one by chance. */
const limitsOf = (settings: RateLimitSettings) => createRateLimits(settings, 2 ** 32);

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi({
    rateLimits: limitsOf({ ...NO_RATE_LIMITS, account: 20, sdk: 3, clicks: 4 }),
  });
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
  const limits = limitsOf({ ...NO_RATE_LIMITS, clicks: 4 });
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

describe('the limit per address', () => {
  let limited: TestApi;
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

  beforeAll(async () => {
    const rateLimits = limitsOf({ ...NO_RATE_LIMITS, address: 3 });
    limited = await startTestApi({ rateLimits, trustProxy: 1 });
  });
  afterAll(async () => {
    await limited.close();
  });

  // @promise address-limit
  test('an address has one limit over all routes that need no account key, and it counts before a body is read', async () => {
    const address = from('203.0.113.1');
    const broken = { ...address, body: '{ this is no JSON' };
    expect((await limited.call('POST', '/clicks', broken)).status).toBe(400);
    expect((await limited.call('GET', '/l/acme/spring', address)).status).toBe(404);
    expect((await limited.call('GET', '/nowhere', address)).status).toBe(404);
    const refused = await limited.call('POST', '/clicks', broken);
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    expect(refused.headers.get('ratelimit')).toMatch(/^"address";r=0;t=\d+$/);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    for (const [method, path] of [
      ['POST', '/sdk/install'],
      ['POST', '/sdk/identify'],
      ['GET', '/docs'],
      ['GET', '/openapi.json'],
      ['GET', '/nowhere'],
    ] as const) {
      const { status } = await limited.call(method, path, {
        ...address,
        ...(method === 'POST' ? { body: {} } : {}),
      });
      expect({ path, status }).toEqual({ path, status: 429 });
    }
    expect((await limited.call('GET', '/docs', from('203.0.113.2'))).status).toBe(200);
  });

  // @promise address-limit
  test.each(['/console', '/console/', '/console/access', '/console/assets/missing.js'])(
    'the console counts too: %s is refused over the limit',
    async (path) => {
      const statusOf = async (address: string) => (await limited.call('GET', path, from(address))).status;
      const address = `203.0.113.${50 + path.length}`;
      const statuses = [];
      for (let call = 0; call < 4; call += 1) statuses.push(await statusOf(address));
      expect(statuses.map((status) => status === 429)).toEqual([false, false, false, true]);
      expect(await statusOf(`203.0.113.${100 + path.length}`)).not.toBe(429);
    },
  );

  // @promise address-limit
  test('a visitor over the limit of the address is redirected, and the click is not counted', async () => {
    const own = await newApp(limited, undefined, { linkSubdomain: 'crowded' });
    const { slug } = await newLink(limited, own, await newAffiliate(limited, own));
    const visit = async () => await followLink(limited.url, `/l/crowded/${slug}`, from('203.0.113.4'));
    const visits = [];
    for (let nth = 0; nth < 4; nth += 1) visits.push(await visit());
    expect(visits.map(({ status }) => status)).toEqual([302, 302, 302, 302]);
    expect(visits.map(({ claimToken }) => claimToken !== null)).toEqual([true, true, true, false]);
  });

  // @promise address-limit
  test('the addresses of one IPv6 /64 share a limit, and another /64 has its own', async () => {
    const statusOf = async (address: string) => (await limited.call('GET', '/docs', from(address))).status;
    const statuses = [];
    for (let host = 1; host <= 4; host += 1) statuses.push(await statusOf(`2001:db8:0:1::${host}`));
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect(await statusOf('2001:db8:0:2::1')).toBe(200);
  });

  // @promise address-limit
  test('the address that a proxy adds behind a thousand other headers counts', async () => {
    const many = Array.from({ length: 1_500 }, (_, nth) => [`a${nth}`, '']);
    const statusOf = async (address: string) => {
      const headers = { ...Object.fromEntries(many), connection: 'close', 'x-forwarded-for': address };
      const response = await received(await openConnection(limited.url, headOf('GET', '/docs', headers)));
      return response.slice(0, 'HTTP/1.1 200'.length);
    };
    const statuses = [];
    for (let nth = 0; nth < 6; nth += 1) statuses.push(await statusOf(`203.0.113.${200 + (nth % 2)}`));
    expect(statuses).toEqual(Array.from({ length: 6 }, () => 'HTTP/1.1 200'));
    expect(await statusOf('203.0.113.200')).toBe('HTTP/1.1 429');
  });

  test('calls with an account key, webhooks and health checks do not count', async () => {
    const address = from('203.0.113.3');
    const own = await newApp(limited);
    for (let call = 0; call < 5; call += 1) {
      expect((await limited.call('GET', '/apps', { ...address, key: own.key })).status).toBe(200);
      expect((await limited.call('GET', '/healthz', address)).status).toBe(200);
      const webhook = await limited.call('POST', `/webhooks/stripe/${own.appId}`, { ...address, body: {} });
      expect(webhook.status).toBe(401);
    }
    expect((await limited.call('GET', '/docs', address)).status).toBe(200);
  });
});

// @promise identify-address-limit
test('an address can bind a limited number of user ids of an app a minute, whichever devices it invents', async () => {
  const rateLimits = limitsOf({ ...NO_RATE_LIMITS, identify: 3 });
  const open = await startTestApi({ rateLimits, trustProxy: 1 });
  const identify = async (own: TestApp, nth: number, address = '203.0.113.1') => {
    const body = { deviceId: `device-${nth}`, customerUserId: `${nth}`, identifiedAt: open.clock.now };
    const headers = { 'x-forwarded-for': address };
    return (await open.call('POST', '/sdk/identify', { key: own.sdkKey, headers, body })).status;
  };
  const [own, other] = [await newApp(open), await newApp(open)];
  const statuses = [];
  for (let nth = 1; nth <= 4; nth += 1) statuses.push(await identify(own, nth));
  expect(statuses).toEqual([404, 404, 404, 429]);
  expect(await identify(own, 5, '203.0.113.2')).toBe(404);
  expect(await identify(other, 6)).toBe(404);
  await open.close();
});

describe('refused webhooks', () => {
  let guarded: TestApi;
  const send = async (own: TestApp, token: string, address: string) =>
    await guarded.call('POST', `/webhooks/adapty/${own.appId}`, {
      body: {},
      headers: { authorization: token, 'x-forwarded-for': address },
    });
  const setUp = async () => {
    const own = await newApp(guarded);
    const { body } = await guarded.call<{ secret: string }>(
      'PUT',
      `/apps/${own.appId}/webhooks/adapty/secret`,
      {
        key: own.key,
        body: {},
      },
    );
    return { own, secret: body.secret };
  };

  beforeAll(async () => {
    const rateLimits = limitsOf({ ...NO_RATE_LIMITS, refusals: 3 });
    guarded = await startTestApi({ rateLimits, trustProxy: 1 });
  });
  afterAll(async () => {
    await guarded.close();
  });

  // @promise refusals-limit
  test('an address that is refused too often gets a 429 for that app without a check, and others are checked', async () => {
    const [{ own, secret }, other] = [await setUp(), await setUp()];
    for (let nth = 0; nth < 3; nth += 1)
      expect((await send(own, `guess ${nth}`, '203.0.113.1')).status).toBe(401);
    const refused = await send(own, 'guess', '203.0.113.1');
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await send(own, secret, '203.0.113.1')).status).toBe(429);
    expect((await send(own, secret, '203.0.113.2')).status).toBe(200);
    expect((await send(other.own, other.secret, '203.0.113.1')).status).toBe(200);
  });

  // @promise refusals-limit
  test('an address that has delivered before is checked however often it is refused', async () => {
    const { own, secret } = await setUp();
    expect((await send(own, secret, '203.0.113.3')).status).toBe(200);
    for (let nth = 0; nth < 6; nth += 1) expect((await send(own, 'guess', '203.0.113.3')).status).toBe(401);
    expect((await send(own, secret, '203.0.113.3')).status).toBe(200);
  });
});

describe('calls without a valid key or session', () => {
  let guarded: TestApi;
  let nextSite = 1;
  const newSite = () => `198.51.100.${(nextSite += 1)}`;
  const statusOf = async (
    address: string,
    { key = null, path = '/apps', cookie }: { key?: string | null; path?: string; cookie?: string } = {},
  ) => {
    const headers = {
      'x-forwarded-for': address,
      ...(cookie === undefined ? {} : { cookie, 'sec-fetch-site': 'same-origin' }),
    };
    const post = path.startsWith('/sdk') || path.startsWith('/webhooks');
    const { status } = await guarded.call(post ? 'POST' : 'GET', path, {
      key,
      headers,
      ...(post ? { body: {} } : {}),
    });
    return status;
  };
  const madeUpKey = () => `tri_sk_live_${randomBytes(32).toString('base64url').replaceAll(/[-_]/g, 'x')}`;

  beforeAll(async () => {
    const rateLimits = limitsOf({ ...NO_RATE_LIMITS, failures: 3, refusals: 3 });
    guarded = await startTestApi({ rateLimits, trustProxy: 1 });
  });
  afterAll(async () => {
    await guarded.close();
  });

  // @promise failures-limit
  test('of fifty calls with made-up keys at the same time, as many are looked up as the limit allows', async () => {
    const address = newSite();
    const statuses = await Promise.all(
      Array.from({ length: 50 }, async () => await statusOf(address, { key: madeUpKey() })),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(3);
    expect(statuses.filter((status) => status === 429)).toHaveLength(47);
  });

  // @promise failures-limit
  test.each([
    ['a made-up account key', '/apps', () => ({ key: madeUpKey() })],
    ['no key', '/apps', () => ({})],
    ['a key in no format', '/apps', () => ({ key: 'nonsense' })],
    ['a made-up SDK key', '/sdk/identify', () => ({ key: `pk_live_${madeUpKey().slice(12)}` })],
    ['a made-up session', '/sessions', () => ({ cookie: `__Host-tributary=${newToken()}` })],
    [
      'a made-up session of a creator',
      '/creator/sessions',
      () => ({ cookie: `__Host-tributary-creator=${newToken()}` }),
    ],
    [
      'a made-up session of the operator',
      '/operator/state',
      () => ({ cookie: `__Host-tributary-operator=${newToken()}` }),
    ],
  ])('calls with %s get a 429 over the limit of their address', async (_, path, credential) => {
    const address = newSite();
    const statuses = [];
    for (let nth = 0; nth < 4; nth += 1) statuses.push(await statusOf(address, { path, ...credential() }));
    expect(statuses).toEqual([401, 401, 401, 429]);
    expect(await statusOf(newSite(), { path, ...credential() })).toBe(401);
  });

  // @promise failures-limit
  test('a key that was accepted before is not locked out by wrong keys from its address, and a new one waits', async () => {
    const [{ key: known }, { key: unseen }] = [await newAccount(guarded), await newAccount(guarded)];
    const address = newSite();
    for (let call = 0; call < 5; call += 1) expect(await statusOf(address, { key: known })).toBe(200);
    for (let call = 0; call < 4; call += 1) await statusOf(address, { key: madeUpKey() });
    expect(await statusOf(address, { key: known })).toBe(200);
    expect(await statusOf(address, { key: unseen })).toBe(429);
    expect(await statusOf(newSite(), { key: unseen })).toBe(200);
    expect(await statusOf(address, { key: unseen })).toBe(200);
  });

  // @promise failures-limit
  test('the first calls with a valid key do not count, however many arrive together; those with one wrong key do', async () => {
    const { key } = await newAccount(guarded);
    const together = async (sent: string) => {
      const address = newSite();
      return await Promise.all(
        Array.from({ length: 30 }, async () => await statusOf(address, { key: sent })),
      );
    };
    expect(new Set(await together(key))).toEqual(new Set([200]));
    const wrong = await together(madeUpKey());
    expect(wrong.filter((status) => status === 401)).toHaveLength(3);
    expect(wrong.filter((status) => status === 429)).toHaveLength(27);
  });

  // @promise failures-limit
  test('a key in daily use is not locked out a day after its first call', async () => {
    const { key } = await newAccount(guarded);
    const address = newSite();
    const startedAt = guarded.clock.now;
    for (const hours of [0, 20, 40]) {
      guarded.clock.now = startedAt + hours * HOUR_MS;
      if (hours === 40) for (let call = 0; call < 4; call += 1) await statusOf(address, { key: madeUpKey() });
      expect(await statusOf(address, { key })).toBe(200);
    }
    guarded.clock.now = startedAt;
  });

  // @promise failures-limit
  test('a key that has ended counts again, from its second call on', async () => {
    const { key, accountId } = await newAccount(guarded);
    const address = newSite();
    expect(await statusOf(address, { key })).toBe(200);
    await guarded.sql`update account_keys set revoked_at = ${new Date(guarded.clock.now - 1)} where account_id = ${accountId}`;
    const statuses = [];
    for (let call = 0; call < 5; call += 1) statuses.push(await statusOf(address, { key }));
    expect(statuses).toEqual([401, 401, 401, 401, 429]);
  });

  test('the networks of one IPv6 /56 share the limit', async () => {
    const statuses = [];
    for (let nth = 1; nth <= 4; nth += 1)
      statuses.push(await statusOf(`2001:db8:0:${nth}::1`, { key: madeUpKey() }));
    expect(statuses).toEqual([401, 401, 401, 429]);
    expect(await statusOf('2001:db8:0:100::1', { key: madeUpKey() })).toBe(401);
  });

  // @promise refusals-limit
  test('webhooks of made-up apps share a limit per address, and those of a known app are received', async () => {
    const own = await newApp(guarded);
    const { body } = await guarded.call<{ secret: string }>(
      'PUT',
      `/apps/${own.appId}/webhooks/adapty/secret`,
      {
        key: own.key,
        body: {},
      },
    );
    const deliver = async (address: string) => {
      const headers = { authorization: body.secret, 'x-forwarded-for': address };
      return (await guarded.call('POST', `/webhooks/adapty/${own.appId}`, { body: {}, headers })).status;
    };
    const [address, neighbour] = [newSite(), newSite()];
    const madeUp = async (from: string) => await statusOf(from, { path: `/webhooks/stripe/${newId('app')}` });
    expect(await deliver(neighbour)).toBe(200);
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => await madeUp(address)));
    expect(statuses.filter((status) => status === 401)).toHaveLength(3);
    expect(statuses.filter((status) => status === 429)).toHaveLength(17);
    expect(await deliver(address)).toBe(200);
    expect(await madeUp(newSite())).toBe(401);
  });
});

test('a caller whose counter collides without the key of the process does not use up the limit of an address', async () => {
  const slotWithoutKey = (caller: string) =>
    createHash('sha256').update(caller).digest().readUInt32BE(0) % 2 ** 17;
  const visitor = clickCaller(app.appId, '203.0.113.9');
  const wanted = slotWithoutKey(visitor);
  let nth = 0;
  while (slotWithoutKey(clickCaller(app.appId, '', `h${nth}`)) !== wanted) nth += 1;
  const limits = createRateLimits({ ...NO_RATE_LIMITS, clicks: 2 });
  for (let call = 0; call < 3; call += 1) limits.count('clicks', clickCaller(app.appId, '', `h${nth}`));
  expect(limits.count('clicks', visitor)).toMatchObject({ isAllowed: true, remaining: 1 });
});

// @promise durations-by-the-process
test('a clock that is set back an hour makes no window of a limit longer', async () => {
  const limits = limitsOf({ ...NO_RATE_LIMITS, clicks: 1 });
  const { now } = Date;
  try {
    Date.now = () => now() + HOUR_MS;
    limits.count('clicks', 'caller');
  } finally {
    Date.now = now;
  }
  const [refused, peeked] = [limits.count('clicks', 'caller'), limits.peek('clicks', 'caller')];
  expect([refused, peeked]).toEqual([
    { isAllowed: false, count: 2, limit: 1, remaining: 0, resetSeconds: expect.any(Number) },
    refused,
  ]);
  expect(refused?.resetSeconds).toBeLessThanOrEqual(60);
});

test('a window ends a minute after its first call, and a call that is taken back is none of the next window', async () => {
  const limits = limitsOf({ ...NO_RATE_LIMITS, clicks: 2, sdk: 1 });
  const now = performance.now.bind(performance);
  try {
    limits.count('clicks', 'caller');
    limits.count('sdk', 'caller');
    performance.now = () => now() + 59_000;
    expect(limits.count('clicks', 'caller')).toMatchObject({ count: 2, isAllowed: true });
    expect(limits.count('clicks', 'caller')).toMatchObject({ count: 3, isAllowed: false });
    limits.count('clicks', 'another');
    performance.now = () => now() + 60_001;
    expect(limits.peek('clicks', 'caller')).toBeNull();
    limits.uncount('clicks', 'caller');
    expect(limits.count('clicks', 'caller')).toMatchObject({ count: 1, resetSeconds: 60 });
    expect(limits.peek('clicks', 'another')).toMatchObject({ count: 1 });
    expect(limits.peek('sdk', 'caller')).toBeNull();
  } finally {
    performance.now = now;
  }
});

// @promise run-results-cost
test('an account reads so many reports of payment services a minute, with whatever key', async () => {
  const limited = await startTestApi({ rateLimits: limitsOf({ ...NO_RATE_LIMITS, reports: 2 }) });
  const founder = await newApp(limited);
  const path = `/apps/${founder.appId}/payout-runs/${newId('payoutRun')}/results`;
  const body = { csv: 'Status\nSent', expected: { sentCount: 0, returnedCount: 0 } };
  const other = await newApp(limited, founder, { name: 'Other' });
  const statuses = [];
  for (const [to, sent] of [
    [path, body],
    [`${path}/preview`, { csv: body.csv }],
    [`${path}/preview`, { csv: body.csv }],
    [path.replace(founder.appId, other.appId), body],
  ] as const)
    statuses.push((await limited.call('POST', to, { key: founder.key, body: sent })).status);
  const stranger = await newApp(limited);
  const own = path.replace(founder.appId, stranger.appId);
  statuses.push((await limited.call('POST', own, { key: stranger.key, body })).status);
  await limited.close();
  expect(statuses).toEqual([404, 404, 429, 429, 404]);
});
