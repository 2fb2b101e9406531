import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '../../src/config/logger.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { destroyExpiredAddressKeys } from '../../src/db/address-keys.ts';
import { connect } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { createAddressHasher } from '../../src/commands/address-hasher.ts';
import { newAffiliate, newApp, newLink, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';

const BROWSER = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let api: TestApi;
let app: TestApp;
let affiliateId: string;
let link: { id: string; slug: string };
const logged: string[] = [];

beforeAll(async () => {
  const destination = new Writable({
    write(chunk: Buffer, _, done) {
      logged.push(chunk.toString('utf8'));
      done();
    },
  });
  api = await startTestApi({ logger: createLogger('trace', destination), trustProxy: 1 });
  app = await newApp(api, undefined, { linkSubdomain: 'acme' });
  affiliateId = await newAffiliate(api, app);
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  link = await newLink(api, app, affiliateId, {
    slug: `Slug-${randomUUID()}`,
    destinationUrl: 'https://example.com/get?a=1#top',
  });
});

const open = (path: string, options: { method?: string; headers?: Record<string, string> } = {}) =>
  followLink(api.url, path, {
    ...options,
    headers: { 'user-agent': BROWSER, 'x-forwarded-for': '203.0.113.1', ...options.headers },
  });

const clicksOf = (linkId: string) => api.sql<{
  id: string;
  claimToken: string;
  ipHash: string | null;
  userAgent: string | null;
  isBot: boolean;
  clickedAt: number;
  hash: string | null;
}>`
  select c.id, c.claim_token, c.ip_hash, c.user_agent, c.is_bot,
         c.clicked_at, encode(d.address_hash, 'hex') as hash
    from clicks c left join deferred_clicks d on d.click_id = c.id where c.link_id = ${linkId} order by c.id`;

async function countedClicks(linkId: string): Promise<number> {
  const { clicks } = await api.sql.one<{ clicks: number }>`
    select coalesce(sum(clicks), 0)::bigint as clicks from rollup_totals
     where scope = 'link' and scope_id = ${linkId}`;
  return clicks;
}

const patch = (path: string, body: object) =>
  api.call('PATCH', `/apps/${app.appId}/${path}`, { key: app.key, body });

describe('a former subdomain', () => {
  const rename = (of: TestApp, linkSubdomain: string) =>
    api.call('PATCH', `/apps/${of.appId}/settings`, { key: of.key, body: { linkSubdomain } });
  const unique = (name: string) => `${name}-${randomUUID().slice(0, 8)}`;

  // @promise subdomain-kept
  test('a link goes on redirecting under each former subdomain of its app', async () => {
    const [first, second, third] = [unique('first'), unique('second'), unique('third')];
    const own = await newApp(api, undefined, { linkSubdomain: first });
    const { slug } = await newLink(api, own, await newAffiliate(api, own), {
      destinationUrl: 'https://own.example/',
    });
    for (const name of [second, third]) expect((await rename(own, name)).status).toBe(200);
    for (const name of [first, second, third]) {
      const { status, location } = await open(`/l/${name}/${slug}`);
      expect(status).toBe(302);
      expect(location).toMatch(/^https:\/\/own\.example\//);
    }
    expect((await rename(own, first)).body).toMatchObject({ linkSubdomain: first });
  });

  // @promise subdomain-kept
  test('no other app can take a former subdomain, by the API or by SQL', async () => {
    const former = unique('former');
    const own = await newApp(api, undefined, { linkSubdomain: former });
    await rename(own, unique('current'));
    const other = await newApp(api);
    const taken = { status: 409, body: { code: 'subdomain_taken' } };
    expect(await rename(other, former)).toMatchObject(taken);
    const created = await api.call('POST', '/apps', {
      key: other.key,
      body: { name: 'x', linkSubdomain: former },
    });
    expect(created).toMatchObject(taken);
    await expect(
      api.sql`update apps set link_subdomain = ${former} where id = ${other.appId}`,
    ).rejects.toMatchObject({ constraint_name: 'link_subdomains_pkey' });
    await expect(api.sql`delete from link_subdomains where subdomain = ${former}`).rejects.toThrow(
      'cannot be changed or deleted',
    );
    await expect(
      api.sql`update link_subdomains set app_id = ${other.appId} where subdomain = ${former}`,
    ).rejects.toThrow('cannot be changed or deleted');
  });

  test('of apps that take one subdomain at the same time, one gets it', async () => {
    const apps = await Promise.all(Array.from({ length: 4 }, () => newApp(api)));
    const contested = unique('contested');
    const statuses = await Promise.all(apps.map(async (each) => (await rename(each, contested)).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(3);
  });

  // @promise subdomain-limit
  test('an app holds at most 20 subdomains', async () => {
    const own = await newApp(api);
    for (let held = 2; held <= 20; held += 1) await rename(own, unique('held'));
    const refused = await rename(own, unique('held'));
    expect(refused).toMatchObject({ status: 409, body: { code: 'too_many_subdomains' } });
  });
});

describe('a link', () => {
  // @promise get-redirect, redirect-parameters
  test('a link redirects with a new claim token and records the click under it', async () => {
    const { status, headers, location, claimToken, via } = await open(`/l/acme/${link.slug}`);
    expect(status).toBe(302);
    expect(claimToken).toMatch(UUID);
    expect(via).toBe(link.slug);
    expect(location).toBe(`https://example.com/get?a=1&claim_token=${claimToken}&via=${link.slug}#top`);
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'strict-origin-when-cross-origin',
    });
    expect(await clicksOf(link.id)).toEqual([
      {
        id: expect.stringMatching(/^clk_/),
        claimToken,
        ipHash: null,
        userAgent: BROWSER,
        isBot: false,
        clickedAt: api.clock.now,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    expect(await countedClicks(link.id)).toBe(1);
  });

  test('each visit counts and gets another token', async () => {
    const visits = await Promise.all(Array.from({ length: 20 }, () => open(`/l/acme/${link.slug}`)));
    expect(new Set(visits.map((each) => each.claimToken)).size).toBe(20);
    expect(await clicksOf(link.id)).toHaveLength(20);
    expect(await countedClicks(link.id)).toBe(20);
  });

  test('the token of a redirect attributes an install', async () => {
    const { claimToken } = await open(`/l/acme/${link.slug}`);
    const body = { deviceId: randomUUID(), claimToken, firstOpenAt: api.clock.now };
    const installed = await api.call('POST', '/sdk/install', { key: app.sdkKey, body });
    expect(installed).toMatchObject({ status: 200, body: { affiliateId, matchMethod: 'claim_token' } });
    expect((await clicksOf(link.id))[0]?.hash).toBeNull();
  });

  test('a link is found in any case, and `via` has the original case', async () => {
    const { status, via } = await open(`/l/ACME/${link.slug.toUpperCase()}`);
    expect(status).toBe(302);
    expect(via).toBe(link.slug);
  });

  test('a link to the Play Store passes token and slug inside the referrer', async () => {
    await patch(`links/${link.id}`, {
      destinationUrl: 'https://play.google.com/store/apps/details?id=com.example',
    });
    const { location } = await open(`/l/acme/${link.slug}`);
    const referrer = new URLSearchParams(new URL(location ?? '').searchParams.get('referrer') ?? '');
    expect(referrer.get('via')).toBe(link.slug);
    expect(await clicksOf(link.id)).toMatchObject([{ claimToken: referrer.get('claim_token') }]);
  });

  // @promise platform-destinations
  test('a link with destinations for iOS and Android leads each visitor to its own, and all others to the common one', async () => {
    const [ios, android] = [
      'https://ios.example/',
      'https://play.google.com/store/apps/details?id=com.example',
    ];
    const from = async (userAgent: string, method = 'GET') => {
      const { location } = await open(`/l/acme/${link.slug}`, {
        method,
        headers: { 'user-agent': userAgent },
      });
      return new URL(location ?? '');
    };
    const ANDROID =
      'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36';
    const IPAD =
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15';
    await patch(`links/${link.id}`, { destinations: { ios, android } });
    const [phone, tablet, head] = [await from(BROWSER), await from(IPAD), await from(ANDROID, 'HEAD')];
    expect([phone.origin, tablet.origin, head.origin]).toEqual([
      'https://ios.example',
      'https://example.com',
      'https://play.google.com',
    ]);
    for (const unknown of ['', 'curl/8.0', `${ANDROID} (compatible; Googlebot/2.1)`]) {
      expect((await from(unknown)).origin).toBe('https://example.com');
    }
    const store = await from(ANDROID);
    const referrer = new URLSearchParams(store.searchParams.get('referrer') ?? '');
    expect(store.searchParams.get('id')).toBe('com.example');
    expect(referrer.get('via')).toBe(link.slug);
    expect((await clicksOf(link.id)).at(-1)).toMatchObject({ claimToken: referrer.get('claim_token') });

    await patch(`links/${link.id}`, { destinations: { ios: null }, active: false });
    expect((await from(BROWSER)).href).toBe('https://example.com/get?a=1#top');
    expect((await from(ANDROID)).href).toBe(android);
  });

  test("a link redirects to an app's own scheme and to a non-ASCII address", async () => {
    await patch(`links/${link.id}`, { destinationUrl: 'myapp:größe' });
    expect((await open(`/l/acme/${link.slug}`)).location).toMatch(/^myapp:gr%C3%B6%C3%9Fe\?claim_token=/);
  });

  // @promise link-activated-again, redirect-inactive-link
  test('an inactive link redirects without a token and records nothing', async () => {
    await patch(`links/${link.id}`, { active: false });
    const { status, location } = await open(`/l/acme/${link.slug}`);
    expect(status).toBe(302);
    expect(location).toBe('https://example.com/get?a=1#top');
    expect(await clicksOf(link.id)).toEqual([]);
    await patch(`links/${link.id}`, { active: true });
    expect((await open(`/l/acme/${link.slug}`)).claimToken).toMatch(UUID);
  });

  test('a link of a removed affiliate redirects without a token, and one of a paused affiliate records the click', async () => {
    const someone = await newAffiliate(api, app);
    const theirs = await newLink(api, app, someone);
    await patch(`affiliates/${someone}`, { status: 'paused' });
    expect((await open(`/l/acme/${theirs.slug}`)).claimToken).toMatch(UUID);
    expect(await clicksOf(theirs.id)).toHaveLength(1);
    await patch(`affiliates/${someone}`, { status: 'removed' });
    const { status, location } = await open(`/l/acme/${theirs.slug}`);
    expect({ status, location }).toEqual({ status: 302, location: 'https://example.com/get' });
    expect(await clicksOf(theirs.id)).toHaveLength(1);
    const head = await open(`/l/acme/${theirs.slug}`, { method: 'HEAD' });
    expect(head.location).toBe('https://example.com/get');
  });
});

describe('visitors', () => {
  // @promise head-not-counted
  test('HEAD returns the headers of GET and records nothing', async () => {
    const got = await open(`/l/acme/${link.slug}`);
    const heads = await Promise.all(
      Array.from({ length: 5 }, () => open(`/l/acme/${link.slug}`, { method: 'HEAD' })),
    );
    for (const { status, headers, text, location, claimToken } of heads) {
      expect(status).toBe(302);
      expect(text).toBe('');
      expect(Object.keys(headers).toSorted()).toEqual(Object.keys(got.headers).toSorted());
      expect(claimToken).toMatch(UUID);
      expect(location?.replace(claimToken ?? '', '')).toBe(got.location?.replace(got.claimToken ?? '', ''));
    }
    expect(await clicksOf(link.id)).toHaveLength(1);
    expect(await countedClicks(link.id)).toBe(1);
    await patch(`links/${link.id}`, { active: false });
    expect((await open(`/l/acme/${link.slug}`, { method: 'HEAD' })).location).toBe(
      'https://example.com/get?a=1#top',
    );
    expect((await open('/l/acme/nobody', { method: 'HEAD' })).status).toBe(404);
  });

  // @promise bot-stored
  test('a click of a bot is stored without an address hash and not counted', async () => {
    const { claimToken } = await open(`/l/acme/${link.slug}`, {
      headers: { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' },
    });
    expect(await clicksOf(link.id)).toMatchObject([{ claimToken, isBot: true, hash: null }]);
    expect(await countedClicks(link.id)).toBe(0);
  });

  test('a long user agent is truncated, and an unusual or missing one is accepted', async () => {
    const long = BROWSER.padEnd(9_000, 'x');
    const odd = '\u00e9\u00ff "\'; drop';
    await open(`/l/acme/${link.slug}`, { headers: { 'user-agent': long } });
    await open(`/l/acme/${link.slug}`, { headers: { 'user-agent': odd } });
    await followLink(api.url, `/l/acme/${link.slug}`);
    const userAgents = (await clicksOf(link.id)).map((click) => click.userAgent);
    expect(userAgents).toEqual([long.slice(0, 512), odd, null]);
  });
});

describe('unknown links', () => {
  test.each([
    ['an unknown slug', '/l/acme/nobody'],
    ['a slug with a space', '/l/acme/a%20b'],
    ['a slug of one character', '/l/acme/a'],
    ['a slug with NUL', '/l/acme/ab%00'],
    ['a lone surrogate', '/l/acme/ab%ED%A0%80'],
    ['a broken escape', '/l/acme/ab%'],
    ['a slash inside', '/l/acme/ab%2Fcd'],
    ['a long slug', `/l/acme/${'a'.repeat(5_000)}`],
    ['an unknown subdomain', '/l/nobody/SLUG'],
    ['a malformed subdomain', '/l/a_b/SLUG'],
    ['NUL in the subdomain', '/l/acme%00/SLUG'],
    ['a slug on a host without an app', '/l/SLUG'],
    ['an empty path', '/l/'],
  ])('%s is the usual 404', async (_, path) => {
    const { status, headers, text } = await open(path.replace('SLUG', link.slug));
    expect(status).toBe(404);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(JSON.parse(text)).toMatchObject({ code: 'not_found' });
    expect(headers.get('location')).toBeNull();
    expect(await clicksOf(link.id)).toEqual([]);
  });

  test('another method on a link is a 405', async () => {
    const { status, headers } = await open(`/l/acme/${link.slug}`, { method: 'POST' });
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
  });

  test("an app's subdomain does not find another app's link", async () => {
    const other = await newApp(api);
    const theirs = await newLink(api, other, await newAffiliate(api, other));
    expect((await open(`/l/acme/${theirs.slug}`)).status).toBe(404);
  });
});

// @promise get-redirect-on-host, redirect-on-host
describe("the link subdomain's host", () => {
  test.each([
    ['acme.links.example', 302],
    ['ACME.links.example:8080', 302],
    ['acme.links.example.', 302],
    ['acme.localhost:3000', 302],
    ['other.links.example', 404],
    ['links.acme.example', 404],
    ['acme', 404],
    ['api.example.test', 404],
    ['127.0.0.1:3000', 404],
    ['[::1]:3000', 404],
    ['a%00b.example', 404],
  ])('a link on the host %s is a %d', async (host, status) => {
    const response = await open(`/l/${link.slug}`, { headers: { host } });
    expect(response.status).toBe(status);
    expect(await clicksOf(link.id)).toHaveLength(status === 302 ? 1 : 0);
  });

  test("the service's own host identifies no app, even if an app has its first label as subdomain", async () => {
    const other = await newApp(api);
    // The name is reserved: an app can only have it from a time when the list was shorter.
    await api.sql`update apps set link_subdomain = 'api' where id = ${other.appId}`;
    const theirs = await newLink(api, other, await newAffiliate(api, other));
    expect((await open(`/l/${theirs.slug}`, { headers: { host: 'api.example.test' } })).status).toBe(404);
    expect((await open(`/l/${theirs.slug}`, { headers: { host: 'api.links.example' } })).status).toBe(302);
  });

  // @promise host-header
  test('no forwarded host counts, with a trusted proxy and without one', async () => {
    const headers = { host: 'inner.example', 'x-forwarded-host': 'acme.links.example' };
    const direct = await startTestApi({ sql: api.sql, trustProxy: 0 });
    for (const { url } of [api, direct]) {
      expect((await followLink(url, `/l/${link.slug}`, { headers })).status).toBe(404);
      const own = { headers: { host: 'acme.links.example', 'x-forwarded-host': 'inner.example' } };
      expect((await followLink(url, `/l/${link.slug}`, own)).status).toBe(302);
    }
    await direct.close();
  });
});

describe("the client's address", () => {
  const hashFrom = async (addresses: string, from: TestApi = api) => {
    const created = await newLink(api, app, affiliateId);
    const headers = { 'user-agent': BROWSER, 'x-forwarded-for': addresses };
    expect((await followLink(from.url, `/l/acme/${created.slug}`, { headers })).status).toBe(302);
    return (await clicksOf(created.id))[0]?.hash ?? null;
  };

  test('an IPv4 address counts as a whole, and an IPv6 address by its first 64 bits', async () => {
    const v4 = await hashFrom('203.0.113.5');
    expect(v4).toMatch(/^[0-9a-f]{64}$/);
    expect(await hashFrom('::ffff:203.0.113.5')).toBe(v4);
    expect(await hashFrom('203.0.113.6')).not.toBe(v4);
    const v6 = await hashFrom('2001:db8:1:2::1');
    expect(await hashFrom('2001:db8:1:2:ffff::9')).toBe(v6);
    expect(await hashFrom('2001:db8:1:3::1')).not.toBe(v6);
    expect(new Set([v4, v6]).size).toBe(2);
  });

  // @promise trusted-proxies
  test('the client address is the one from trusted proxies, not one that the client added', async () => {
    const options = { sql: api.sql, now: () => api.clock.now };
    const behindTwo = await startTestApi({ ...options, trustProxy: 2 });
    const inTheOpen = await startTestApi({ ...options, trustProxy: 0 });
    const own = await hashFrom('203.0.113.5');
    expect(await hashFrom('198.51.100.1, 203.0.113.5')).toBe(own);
    expect(await hashFrom('203.0.113.5, 198.51.100.1')).not.toBe(own);
    expect(await hashFrom('198.51.100.1, 203.0.113.5, 198.51.100.2', behindTwo)).toBe(own);
    expect(await hashFrom('203.0.113.5, 198.51.100.1, 198.51.100.2', behindTwo)).not.toBe(own);
    const socket = await hashFrom('127.0.0.1');
    // An untrusted proxy: all clients would share its address.
    expect(await hashFrom('203.0.113.5', inTheOpen)).toBeNull();
    expect(await hashFrom('', inTheOpen)).toBe(socket);
    await behindTwo.close();
    await inTheOpen.close();
  });

  test.each([['unknown'], ['999.1.1.1'], ['example.com'], ["'; drop table"]])(
    'the invalid address %s leaves the click without a hash',
    async (address) => {
      expect(await hashFrom(address)).toBeNull();
    },
  );

  test('a click has no hash while deferred matches are off', async () => {
    const off = await newApp(api, undefined, { linkSubdomain: 'off', deferredWindowMinutes: 0 });
    const theirs = await newLink(api, off, await newAffiliate(api, off));
    expect((await open(`/l/off/${theirs.slug}`)).claimToken).toMatch(UUID);
    expect(await clicksOf(theirs.id)).toMatchObject([{ hash: null }]);
  });

  test('hashes of one address differ between two apps', async () => {
    const other = await newApp(api, undefined, { linkSubdomain: 'second' });
    const theirs = await newLink(api, other, await newAffiliate(api, other));
    await open(`/l/second/${theirs.slug}`, { headers: { 'x-forwarded-for': '203.0.113.5' } });
    const [click] = await clicksOf(theirs.id);
    expect(click?.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(click?.hash).not.toBe(await hashFrom('203.0.113.5'));
  });

  // @promise address-hashed, hash-key-daily
  test('an address is hashed with another key each day, and is in no row and no log line', async () => {
    logged.length = 0;
    const first = await hashFrom('203.0.113.77');
    expect(await hashFrom('203.0.113.77')).toBe(first);
    api.clock.now += DAY_MS;
    const second = await hashFrom('203.0.113.77');
    expect(second).toMatch(/^[0-9a-f]{64}$/);
    expect(second).not.toBe(first);
    await api.call('POST', '/sdk/install', {
      key: app.sdkKey,
      headers: { 'x-forwarded-for': '203.0.113.77' },
      body: { deviceId: randomUUID(), firstOpenAt: api.clock.now, deferred: true },
    });
    expect(logged.length).toBeGreaterThan(0);
    expect(logged.join('')).not.toContain('203.0.113');
    const { rows } = await api.sql.one<{ rows: string }>`
      select (select string_agg(c::text, ' ') from clicks c) || (select string_agg(d::text, ' ') from deferred_clicks d)
             || (select string_agg(k::text, ' ') from address_keys k)
             || (select string_agg(a::text, ' ') from attributions a) as rows`;
    expect(rows).toContain(app.appId);
    expect(rows).not.toContain('203.0.113');
  });
});

describe('the address key of a day', () => {
  const APP = 'app_01h455vb4pex5vsknk084sn02q' as AppId;
  const quiet = createLogger('silent');
  const hasher = (key = TEST_KEY, sql = api.sql, logger = quiet) =>
    createAddressHasher({ sql, secretBox: createSecretBox([key]), logger });
  /** A day without clicks. */
  let day = Date.UTC(2030, 0, 1);
  beforeEach(() => {
    day += 10 * DAY_MS;
  });

  test('all processes use one key per day, whichever creates it', async () => {
    const pools = Array.from({ length: 4 }, () => connect({ url: api.database.url, max: 4 }));
    const hashes = await Promise.all(
      pools.flatMap((sql) => {
        const own = hasher(TEST_KEY, sql);
        return Array.from({ length: 10 }, () => own.hashOfClick(APP, '203.0.113.5', day));
      }),
    );
    expect(new Set(hashes.map((hash) => hash?.toString('hex'))).size).toBe(1);
    expect(hashes[0]).toHaveLength(32);
    expect(await api.sql`select from address_keys where day_starts_at = ${new Date(day)}`).toHaveLength(1);
    await Promise.all(pools.map((sql) => sql.close()));
  });

  test('a key is used to the last millisecond of its day, and an install uses the keys of both days of its window', async () => {
    const own = hasher();
    const last = await own.hashOfClick(APP, '203.0.113.5', day + DAY_MS - 1);
    const next = await own.hashOfClick(APP, '203.0.113.5', day + DAY_MS);
    expect(await own.hashOfClick(APP, '203.0.113.5', day)).toEqual(last);
    expect(await hasher().hashesOfInstall(APP, '203.0.113.5', day + DAY_MS, 1)).toEqual([last, next]);
    expect(await hasher().hashesOfInstall(APP, '203.0.113.5', day + 2 * DAY_MS, 1440)).toEqual([next]);
    expect(await hasher().hashesOfInstall(APP, 'unknown', day + DAY_MS, 1440)).toEqual([]);
  });

  test("a key is encrypted and can't be decrypted as the key of another day", async () => {
    await hasher().hashOfClick(APP, '203.0.113.5', day);
    await api.sql`
      insert into address_keys (day_starts_at, ciphertext, encryption_key_id)
      select ${new Date(day + DAY_MS)}, ciphertext, encryption_key_id from address_keys where day_starts_at = ${new Date(day)}`;
    expect(await hasher().hashOfClick(APP, '203.0.113.5', day + DAY_MS)).toBeNull();
  });

  test("a key that can't be read is logged, and links still redirect", async () => {
    const lines: string[] = [];
    const sink = new Writable({
      write(chunk: Buffer, _, done) {
        lines.push(chunk.toString('utf8'));
        done();
      },
    });
    api.clock.now = day;
    await open(`/l/acme/${link.slug}`);
    const unreadable = hasher(Buffer.alloc(32, 1), api.sql, createLogger('info', sink));
    const other = await startTestApi({ sql: api.sql, now: () => day, addressHasher: unreadable });
    const created = await newLink(api, app, affiliateId);
    for (let n = 0; n < 3; n += 1) {
      expect((await followLink(other.url, `/l/acme/${created.slug}`)).claimToken).toMatch(UUID);
    }
    expect(await clicksOf(created.id)).toMatchObject([{ hash: null }, { hash: null }, { hash: null }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('key');
    await other.close();
  });

  // @promise hash-key-destroyed
  test.each([
    ['of an hour', 60],
    ['of a day', 1440],
  ])(
    'a key and its hashes are deleted when the longest window %s has passed since the last click',
    async (_, minutes) => {
      const alone = await startTestApi({ trustProxy: 1 });
      const shop = await newApp(alone, undefined, { linkSubdomain: 'shop', deferredWindowMinutes: minutes });
      await newApp(alone, undefined, { deferredWindowMinutes: 0 });
      const { slug } = await newLink(alone, shop, await newAffiliate(alone, shop));
      alone.clock.now = day + DAY_MS - 1;
      await followLink(alone.url, `/l/shop/${slug}`, { headers: { 'x-forwarded-for': '203.0.113.5' } });
      const end = day + DAY_MS + minutes * MINUTE_MS;
      const left = async () => ({
        keys: (await alone.sql`select from address_keys`).length,
        hashes: (await alone.sql`select from deferred_clicks`).length,
      });

      expect(await destroyExpiredAddressKeys(alone.sql, end - 1)).toEqual({ keys: 0, hashes: 0 });
      expect(await left()).toEqual({ keys: 1, hashes: 1 });
      const both = await Promise.all([
        destroyExpiredAddressKeys(alone.sql, end),
        destroyExpiredAddressKeys(alone.sql, end),
      ]);
      expect(both.reduce((sum, { keys }) => sum + keys, 0)).toBe(1);
      expect(both.reduce((sum, { hashes }) => sum + hashes, 0)).toBe(1);
      expect(await left()).toEqual({ keys: 0, hashes: 0 });
      expect(await alone.sql`select from clicks`).toHaveLength(1);
      await alone.close();
    },
  );

  test('a key is deleted with any number of hashes', async () => {
    const alone = await startTestApi();
    const shop = await newApp(alone);
    const { id } = await newLink(alone, shop, await newAffiliate(alone, shop));
    await alone.sql`
      with numbered as (
        insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
        select 'clk_' || lpad(n::text, 26, '0'), l.app_id, l.affiliate_id, l.id, gen_random_uuid(), false,
               ${new Date(day)}::timestamptz + n * interval '1 millisecond'
          from links l cross join generate_series(1, 12000) n where l.id = ${id}
        returning id, app_id, link_id, clicked_at
      )
      insert into deferred_clicks select id, app_id, link_id, sha256('x'), clicked_at from numbered`;
    const { hashes } = await destroyExpiredAddressKeys(alone.sql, day + 60 * MINUTE_MS + 11_500);
    expect(hashes).toBe(11_499);
    expect(await alone.sql`select from deferred_clicks`).toHaveLength(501);
    await alone.close();
  });
});
