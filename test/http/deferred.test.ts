import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { destroyExpiredAddressKeys } from '../../src/db/address-keys.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';

let api: TestApi;
let app: TestApp;
let ann: string;
let bob: string;
let annsLink: { id: string; slug: string };
let bobsLink: { id: string; slug: string };
/** Each test has an address without clicks. */
let address: string;

beforeAll(async () => {
  api = await startTestApi({ trustProxy: 1 });
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  api.clock.now += 3 * DAY_MS;
  app = await newApp(api, undefined, { linkSubdomain: `s${randomInt(2 ** 40)}` });
  ann = await newAffiliate(api, app);
  bob = await newAffiliate(api, app);
  annsLink = await newLink(api, app, ann);
  bobsLink = await newLink(api, app, bob);
  address = `203.0.113.${randomInt(256)}`;
});

interface Installed {
  attributionId: string;
  affiliateId: string;
  matchMethod: string;
  code: string;
}

const subdomain = async () =>
  (await api.call<{ linkSubdomain: string }>('GET', `/apps/${app.appId}`, { key: app.key })).body
    .linkSubdomain;

/** Clicks through the redirect. Returns the claim token. */
async function click(
  slug = annsLink.slug,
  from = address,
  headers: Record<string, string> = {},
): Promise<string> {
  const { claimToken } = await followLink(api.url, `/l/${await subdomain()}/${slug}`, {
    headers: { 'x-forwarded-for': from, 'user-agent': 'Mozilla/5.0 (iPhone) Safari/604.1', ...headers },
  });
  if (claimToken === null) throw new Error('the link gave no token');
  return claimToken;
}

const install = (fields: object = {}, from = address, key = app.sdkKey) =>
  api.call<Installed>('POST', '/sdk/install', {
    key,
    headers: { 'x-forwarded-for': from },
    body: { deviceId: randomUUID(), firstOpenAt: api.clock.now, deferred: true, ...fields },
  });

const settings = (body: object) => api.call('PATCH', `/apps/${app.appId}/settings`, { key: app.key, body });

const claimed = () => api.sql<{ claimToken: string; device: string }>`
  select claim_token, claimed_by_device as device from clicks
   where app_id = ${app.appId} and claimed_by_device is not null`;

const NONE = { status: 404, body: { code: 'no_attributable_click' } };

describe('a deferred match', () => {
  // @promise deferred-by-address-hash, match-method-deferred
  test('a deferred match claims the newest click of the address, and the decision is stored', async () => {
    await click();
    api.clock.now += 1_000;
    const newest = await click();
    const clickedAt = api.clock.now;
    api.clock.now += 1_000;
    const deviceId = randomUUID();
    const first = await install({ deviceId });
    expect(first).toMatchObject({ status: 200, body: { affiliateId: ann, matchMethod: 'deferred' } });
    expect(await claimed()).toEqual([{ claimToken: newest, device: deviceId }]);
    const stored = await api.sql`
      select t.id, t.match_method, t.touched_at, t.first_open_at, t.link_id, c.claim_token
        from attributions t join clicks c on c.id = t.click_id where t.device_id = ${deviceId}`;
    expect(stored).toEqual([
      {
        id: first.body.attributionId,
        matchMethod: 'deferred',
        touchedAt: clickedAt,
        firstOpenAt: api.clock.now,
        linkId: annsLink.id,
        claimToken: newest,
      },
    ]);
  });

  test('a repeated install returns the same attribution and claims no second click', async () => {
    await click();
    await click();
    const deviceId = randomUUID();
    const first = await install({ deviceId });
    expect((await install({ deviceId })).body).toEqual(first.body);
    expect((await install({ deviceId, deferred: true }, '198.51.100.1')).body).toEqual(first.body);
    expect(await claimed()).toHaveLength(1);
    expect((await install()).status).toBe(200);
    expect(await install()).toMatchObject(NONE);
  });

  test('a deferred match binds the user that was identified before the install', async () => {
    await click();
    const [deviceId, customerUserId] = [randomUUID(), randomUUID()];
    const body = { deviceId, customerUserId, identifiedAt: api.clock.now };
    expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body })).status).toBe(404);
    const { attributionId } = (await install({ deviceId })).body;
    expect(
      await api.sql`select attribution_id from bindings where customer_user_id = ${customerUserId}`,
    ).toEqual([{ attributionId }]);
  });

  // @promise deferred-ipv6-network
  test('an IPv6 address matches by its network', async () => {
    await click(annsLink.slug, '2001:db8:1:2::a');
    expect(await install({}, '2001:db8:1:3::a')).toMatchObject(NONE);
    expect((await install({}, '2001:db8:1:2:9::b')).status).toBe(200);
  });

  test('a later token of the same device is recorded as a losing touch', async () => {
    await click();
    const deviceId = randomUUID();
    const first = await install({ deviceId });
    const claimToken = await click(bobsLink.slug);
    expect((await install({ deviceId, claimToken })).body).toEqual(first.body);
    expect(
      await api.sql`select affiliate_id, match_method from losing_touches where device_id = ${deviceId}`,
    ).toEqual([{ affiliateId: bob, matchMethod: 'claim_token' }]);
  });
});

describe('no deferred match', () => {
  // @promise deferred-candidates, deferred-none
  test('a click from another address, in another app, or without `deferred` is not matched', async () => {
    await click();
    expect(await install({}, '198.51.100.1')).toMatchObject(NONE);
    expect(await install({}, 'unknown')).toMatchObject(NONE);
    const other = await newApp(api);
    expect(await install({}, address, other.sdkKey)).toMatchObject(NONE);
    expect((await install({ deferred: false })).status).toBe(400);
    expect((await install({ deferred: null })).status).toBe(400);
    expect(await claimed()).toEqual([]);
  });

  test('an address that only the client states is not matched', async () => {
    await click();
    expect(await install({}, `${address}, 198.51.100.1`)).toMatchObject(NONE);
    const direct = await startTestApi({ sql: api.sql, now: () => api.clock.now, trustProxy: 0 });
    const sent = await direct.call('POST', '/sdk/install', {
      key: app.sdkKey,
      headers: { 'x-forwarded-for': address, 'x-real-ip': address, forwarded: `for=${address}` },
      body: { deviceId: randomUUID(), firstOpenAt: api.clock.now, deferred: true },
    });
    expect(sent).toMatchObject(NONE);
    await direct.close();
    expect((await install({}, `198.51.100.1, ${address}`)).status).toBe(200);
  });

  // @promise deferred-by-address-hash
  test('a click of POST /clicks is not matched, whatever its `ipHash`', async () => {
    await click(bobsLink.slug, '198.51.100.1');
    const [row] = await api.sql<{ hash: string }>`
      select encode(address_hash, 'hex') as hash from deferred_clicks where app_id = ${app.appId}`;
    for (const ipHash of [row?.hash, address]) {
      const body = { customerAppId: app.appId, slug: annsLink.slug, claimToken: randomUUID(), ipHash };
      const headers = { 'x-forwarded-for': address };
      expect((await api.call('POST', '/clicks', { headers, body })).status).toBe(200);
    }
    expect(await install()).toMatchObject(NONE);
    expect((await install({}, '198.51.100.1')).body).toMatchObject({ affiliateId: bob });
  });

  test('a click by a bot, by HEAD, or on an inactive link is not matched', async () => {
    await click(annsLink.slug, address, { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' });
    await followLink(api.url, `/l/${await subdomain()}/${annsLink.slug}`, {
      method: 'HEAD',
      headers: { 'x-forwarded-for': address },
    });
    const turn = (active: boolean) =>
      api.call('PATCH', `/apps/${app.appId}/links/${annsLink.id}`, { key: app.key, body: { active } });
    await turn(false);
    await followLink(api.url, `/l/${await subdomain()}/${annsLink.slug}`, {
      headers: { 'x-forwarded-for': address },
    });
    await turn(true);
    expect(await install()).toMatchObject(NONE);
  });

  // @promise deferred-candidates
  test('a click is not matched after its link is switched off or its affiliate removed', async () => {
    await click();
    await click(bobsLink.slug);
    const turn = (active: boolean) =>
      api.call('PATCH', `/apps/${app.appId}/links/${annsLink.id}`, { key: app.key, body: { active } });
    const become = (status: string) =>
      api.call('PATCH', `/apps/${app.appId}/affiliates/${bob}`, { key: app.key, body: { status } });
    await turn(false);
    await become('removed');
    expect(await install()).toMatchObject(NONE);
    await become('paused');
    expect((await install()).body).toMatchObject({ affiliateId: bob, matchMethod: 'deferred' });
    await turn(true);
    expect((await install()).body).toMatchObject({ affiliateId: ann, matchMethod: 'deferred' });
  });

  // @promise deferred-candidates
  test('a click that its token has claimed is not matched', async () => {
    const claimToken = await click();
    expect((await install({ claimToken })).body).toMatchObject({ matchMethod: 'claim_token' });
    expect(await install()).toMatchObject(NONE);
  });

  // @promise deferred-off
  test('no click is matched while deferred matches are off, not even an earlier one', async () => {
    await click();
    await settings({ deferredWindowMinutes: 0 });
    expect(await install()).toMatchObject(NONE);
    await click();
    await settings({ deferredWindowMinutes: 60 });
    expect((await install()).status).toBe(200);
    expect(await install()).toMatchObject(NONE);
  });
});

describe('the deferred window', () => {
  test.each([
    ['one minute', 1],
    ['an hour', 60],
    ['a day', 1440],
  ])(
    'a deferred window of %s includes both ends, to the millisecond, also across midnight',
    async (_, minutes) => {
      await settings({ deferredWindowMinutes: minutes });
      const midnight = Math.ceil(api.clock.now / DAY_MS) * DAY_MS;
      api.clock.now = midnight - 1;
      await click();
      api.clock.now += minutes * MINUTE_MS + 1;
      expect(await install()).toMatchObject(NONE);
      api.clock.now -= 1;
      await destroyExpiredAddressKeys(api.sql, api.clock.now);
      expect((await install()).body).toMatchObject({ affiliateId: ann, matchMethod: 'deferred' });
    },
  );

  test('the deferred window ends at the request, not at the reported first open', async () => {
    await click();
    api.clock.now += 61 * MINUTE_MS;
    expect(await install({ firstOpenAt: api.clock.now - 60 * MINUTE_MS })).toMatchObject(NONE);
    await click();
    expect((await install({ firstOpenAt: Date.UTC(2001, 0, 1) })).status).toBe(200);
  });

  test('the deferred window is the current one of the app', async () => {
    await click();
    api.clock.now += 90 * MINUTE_MS;
    expect(await install()).toMatchObject(NONE);
    await settings({ deferredWindowMinutes: 90 });
    expect((await install()).status).toBe(200);
  });

  test('a longer deferred window does not bring back destroyed hashes', async () => {
    await click();
    await destroyExpiredAddressKeys(api.sql, api.clock.now + 2 * DAY_MS);
    expect(await install()).toMatchObject(NONE);
  });
});

describe('clicks of two affiliates', () => {
  // @promise deferred-ambiguous
  test('clicks of two affiliates are a 409 and none is claimed, until one is outside the window', async () => {
    await click();
    api.clock.now += 1;
    await click(bobsLink.slug);
    const deviceId = randomUUID();
    const responses = await Promise.all([install({ deviceId }), install(), install()]);
    for (const response of responses)
      expect(response).toMatchObject({ status: 409, body: { code: 'ambiguous_match' } });
    expect(await claimed()).toEqual([]);
    expect(await api.sql`select from attributions where app_id = ${app.appId}`).toEqual([]);
    api.clock.now += 60 * MINUTE_MS;
    expect((await install({ deviceId })).body).toMatchObject({ affiliateId: bob, matchMethod: 'deferred' });
  });

  test('a token or a code decides between clicks of two affiliates', async () => {
    await click();
    const claimToken = await click(bobsLink.slug);
    expect((await install({ claimToken })).body).toMatchObject({
      affiliateId: bob,
      matchMethod: 'claim_token',
    });
    await click(bobsLink.slug);
    expect((await install({ affiliateCode: annsLink.slug })).body).toMatchObject({
      affiliateId: ann,
      matchMethod: 'code',
    });
    expect((await install()).status).toBe(409);
  });

  test('clicks of two affiliates on two days are ambiguous, too', async () => {
    await settings({ deferredWindowMinutes: 1440 });
    api.clock.now = Math.ceil(api.clock.now / DAY_MS) * DAY_MS - 1;
    await click();
    api.clock.now += 1;
    await click(bobsLink.slug);
    expect((await install()).status).toBe(409);
  });
});

describe('a token or a code with a deferred match', () => {
  test('a deferred match is the last resort if the token or code attributes nothing', async () => {
    await click();
    const [claimToken, affiliateCode] = [randomUUID(), 'nobody'];
    expect(await install({ claimToken, deferred: false })).toMatchObject(NONE);
    expect(await install({ claimToken, affiliateCode, deferred: undefined })).toMatchObject(NONE);
    expect((await install({ claimToken, affiliateCode })).body).toMatchObject({
      affiliateId: ann,
      matchMethod: 'deferred',
    });
    expect(await install({ claimToken })).toMatchObject(NONE);
  });

  test('a token or code that attributes the install claims no click of the address', async () => {
    await click();
    expect((await install({ affiliateCode: bobsLink.slug })).body).toMatchObject({ affiliateId: bob });
    expect((await install()).body).toMatchObject({ affiliateId: ann });
  });
});

describe('simultaneous installs', () => {
  const many = <T>(count: number, run: (n: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, n) => run(n)));

  test('simultaneous installs from one address claim one click each until none is left', async () => {
    await many(12, () => click());
    const responses = await many(20, () => install());
    const statuses = responses.map((response) => response.status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([...Array<number>(12).fill(200), ...Array<number>(8).fill(404)]);
    const clicks = await claimed();
    expect(clicks).toHaveLength(12);
    expect(new Set(clicks.map(({ device }) => device)).size).toBe(12);
  });

  test('simultaneous installs claim one click each if every click is on another link', async () => {
    const links = await many(30, () => newLink(api, app, ann));
    for (const { slug } of links) await click(slug);
    const responses = await many(40, () => install());
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(30);
    expect(responses.filter(({ status }) => status === 404)).toHaveLength(10);
    expect(await claimed()).toHaveLength(30);
  });

  test('an install that loses the last click of the window claims none from before it', async () => {
    for (let round = 0; round < 15; round += 1) {
      const from = `198.51.100.${round}`;
      await click(annsLink.slug, from);
      api.clock.now += 61 * MINUTE_MS;
      await click(annsLink.slug, from);
      const responses = await many(3, () => install({}, from));
      expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404, 404]);
    }
  });

  test('simultaneous calls of one device create one attribution and claim one click', async () => {
    await many(5, () => click());
    const deviceId = randomUUID();
    const responses = await many(20, () => install({ deviceId }));
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(responses[0]).toMatchObject({ status: 200, body: { matchMethod: 'deferred' } });
    expect(await claimed()).toHaveLength(1);
  });

  test('a token and a deferred match never claim the same click, whichever is first', async () => {
    for (let round = 0; round < 15; round += 1) {
      const claimToken = await click();
      const responses = await Promise.all([
        install({ claimToken, deferred: false }),
        install(),
        install(),
        install({ claimToken, deferred: false }),
      ]);
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(responses.filter(({ status }) => status === 404)).toHaveLength(3);
    }
  });

  test('simultaneous calls of one device with its token and by its address create one attribution', async () => {
    for (let round = 0; round < 15; round += 1) {
      const from = `198.51.100.${round}`;
      const claimToken = await click(annsLink.slug, from);
      await click(annsLink.slug, from);
      const deviceId = randomUUID();
      const responses = await Promise.all([
        install({ deviceId, claimToken }, from),
        install({ deviceId }, from),
      ]);
      expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
      expect(responses[0]?.status).toBe(200);
    }
  });
});

test('an address with clicks on very many links is ambiguous, and the response is fast', async () => {
  await api.sql`
    insert into links (id, app_id, affiliate_id, slug, destination_url)
    select 'lnk_' || lpad(n::text, 21, '0') || substr(md5(${app.appId}), 1, 5), ${app.appId}, ${ann}, 'many-' || n, 'https://example.com'
      from generate_series(1, 101) n`;
  await click();
  const [row] = await api.sql<{ hash: Uint8Array }>`
    select address_hash as hash from deferred_clicks where app_id = ${app.appId}`;
  const addManyClicks = (count: number) => api.sql`
    with created as (
      insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
      select 'clk_' || substr(id, 5), app_id, affiliate_id, id, gen_random_uuid(), false, ${new Date(api.clock.now)}
        from links where app_id = ${app.appId} and slug like 'many-%' order by id limit ${count}
      on conflict do nothing returning id, app_id, link_id, clicked_at)
    insert into deferred_clicks select id, app_id, link_id, ${Buffer.from(row?.hash ?? [])}::bytea, clicked_at from created`;
  await addManyClicks(99);
  expect((await install()).status).toBe(200);
  await click();
  await addManyClicks(101);
  expect((await install()).status).toBe(409);
});

test('after these tests every roll-up equals the facts, and no hash of a claimed click is left', async () => {
  expect(await findRollupDifferences(api.sql)).toEqual([]);
  const waiting = await api.sql`
    select from deferred_clicks d join clicks c on c.id = d.click_id where c.claimed_by_device is not null or c.is_bot`;
  expect(waiting).toEqual([]);
});
