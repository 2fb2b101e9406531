import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSharedAssociations } from '../../src/commands/shared-associations.ts';
import { listAssociations } from '../../src/db/link-associations.ts';
import { androidAssociation, appleAssociation } from '../../src/domain/link-associations.ts';
import { NO_ADMISSION_LIMITS } from '../../src/http/admission.ts';
import { createIntake } from '../../src/http/intake.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAccount, newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { followLink } from '../support/http-client.ts';

const APPLE = '/.well-known/apple-app-site-association';
const ANDROID = '/.well-known/assetlinks.json';
const FINGERPRINT = Array.from({ length: 32 }, () => 'A1').join(':');
const OPEN_LINKS = 'delegate_permission/common.handle_all_urls';

let api: TestApi;
let app: TestApp;
/** A time that only advances, ms. */
let elapsed = 0;

const mobileApps = (name: string) => ({
  iosAppIds: [`ABCDE12345.com.example.${name}`],
  androidApps: [{ packageName: `com.example.${name}`, sha256CertFingerprints: [FINGERPRINT.toLowerCase()] }],
});
const fetchFile = (path: string, host = 'api.example.test') => api.call('GET', path, { headers: { host } });
const wait = () => {
  elapsed += MINUTE_MS;
};

beforeAll(async () => {
  api = await startTestApi({ elapsed: () => elapsed });
  app = await newApp(api, undefined, { linkSubdomain: 'lantern', ...mobileApps('lantern') });
});
afterAll(async () => {
  await api.close();
});

describe('the files that associate links with mobile apps', () => {
  // @promise get-apple-association, get-asset-links, link-associations
  test("an app's link host names its mobile apps, for links with the slug as `via`", async () => {
    const apple = await fetchFile(APPLE, 'lantern.links.example');
    expect({ status: apple.status, body: apple.body }).toEqual({
      status: 200,
      body: {
        applinks: {
          details: [
            {
              appIDs: ['ABCDE12345.com.example.lantern'],
              components: [{ '/': '/l/*', '?': { via: '?*' } }],
            },
          ],
        },
      },
    });
    const android = await fetchFile(ANDROID, 'lantern.links.example');
    expect({ status: android.status, body: android.body }).toEqual({
      status: 200,
      body: [
        {
          relation: [OPEN_LINKS],
          target: {
            namespace: 'android_app',
            package_name: 'com.example.lantern',
            sha256_cert_fingerprints: [FINGERPRINT],
          },
          relation_extensions: {
            [OPEN_LINKS]: {
              dynamic_app_link_components: [
                { '/': '/l/*', '?': { via: '?*' } },
                { '/': '*', exclude: true },
              ],
            },
          },
        },
      ],
    });
    for (const { headers } of [apple, android]) {
      expect(headers.get('content-type')).toBe('application/json');
      expect(headers.get('cache-control')).toBe('public, max-age=60');
      expect(headers.get('vary')).toBe('Host');
    }
  });

  // @promise host-header
  test('only the Host header chooses the app, whatever other headers of a proxy name', async () => {
    const behind = await startTestApi({ sql: api.sql, trustProxy: 1 });
    try {
      const headers = {
        host: 'api.example.test',
        'x-forwarded-host': 'lantern.links.example',
        forwarded: 'host=lantern.links.example',
        'x-host': 'lantern.links.example',
        'x-original-host': 'lantern.links.example',
      };
      const shared = await behind.call('GET', APPLE, { headers: { host: headers.host } });
      expect((await behind.call('GET', APPLE, { headers })).text).toBe(shared.text);
      const own = await behind.call('GET', APPLE, {
        headers: { host: 'lantern.links.example', 'x-forwarded-host': 'nobody.links.example' },
      });
      expect(own.text).toContain('"/l/*"');
    } finally {
      await behind.close();
    }
  });

  // @promise link-associations
  test('any other host names the mobile apps of all apps, each for its own links under every subdomain that it held', async () => {
    const other = await newApp(api, undefined, { linkSubdomain: 'harbour', ...mobileApps('harbour') });
    await newApp(api);
    await api.call('PATCH', `/apps/${other.appId}/settings`, {
      key: other.key,
      body: { linkSubdomain: 'port' },
    });
    wait();
    for (const host of ['api.example.test', '127.0.0.1', 'nobody.links.example']) {
      const { body } = await fetchFile(APPLE, host);
      expect(body).toEqual({
        applinks: {
          details: [
            expect.objectContaining({ components: [expect.objectContaining({ '/': '/l/lantern/*' })] }),
            {
              appIDs: ['ABCDE12345.com.example.harbour'],
              components: ['/l/harbour/*', '/l/port/*'].map((path) => ({ '/': path, '?': { via: '?*' } })),
            },
          ],
        },
      });
    }
    expect((await fetchFile(APPLE, 'harbour.links.example')).text).not.toContain('lantern');
    expect((await fetchFile(ANDROID)).body).toHaveLength(2);
  });

  // @promise link-associations
  test('a host without mobile apps is a 404, and a change appears within a minute', async () => {
    const own = await newApp(api, undefined, { linkSubdomain: 'bare' });
    for (const path of [APPLE, ANDROID]) {
      expect((await fetchFile(path, 'bare.links.example')).status).toBe(404);
    }
    await fetchFile(APPLE);
    const settings = `/apps/${own.appId}/settings`;
    const body = { iosAppIds: ['ABCDE12345.com.example.late'] };
    expect(await api.call('PATCH', settings, { key: own.key, body })).toMatchObject({ status: 200, body });
    expect((await fetchFile(APPLE, 'bare.links.example')).text).toContain('com.example.late');
    expect((await fetchFile(ANDROID, 'bare.links.example')).status).toBe(404);
    expect((await fetchFile(APPLE)).text).not.toContain('com.example.late');
    wait();
    expect((await fetchFile(APPLE)).text).toContain('com.example.late');
  });

  test('however many requests arrive, the apps of a shared host are read once a minute, by their index', async () => {
    let reads = 0;
    let isBroken = true;
    const counting = new Proxy(api.sql, {
      apply: (sql, self, given) => {
        reads += 1;
        if (isBroken) throw new Error('The database is unavailable.');
        return Reflect.apply(sql, self, given) as unknown;
      },
    });
    let now = 0;
    const read = async (at: number) => {
      now = at;
      return await shared();
    };
    const shared = createSharedAssociations(counting, 'all', () => now);
    await expect(read(0)).rejects.toThrow('unavailable');
    isBroken = false;
    const files = await Promise.all(Array.from({ length: 50 }, () => read(MINUTE_MS - 1)));
    expect(new Set(files.map(({ apple }) => apple?.includes('lantern')))).toEqual(new Set([true]));
    await read(2 * MINUTE_MS - 2);
    expect(reads).toBe(2);
    await read(2 * MINUTE_MS - 1);
    expect(reads).toBe(3);
    const plan = await api.sql`
      explain select from apps a
               where a.account_id = 'acct_1' and (cardinality(a.ios_app_ids) > 0 or a.android_apps <> '[]')
               order by a.created_at, a.id limit 20`;
    expect(JSON.stringify(plan)).toContain('apps_with_mobile_apps_of_account');
  });

  test('a new app is in the files of a shared host after a minute, also if the clock of the process is set back', async () => {
    wait();
    expect((await fetchFile(APPLE)).text).not.toContain('com.example.corrected');
    await newApp(api, undefined, mobileApps('corrected'));
    api.clock.now -= HOUR_MS;
    wait();
    const { text } = await fetchFile(APPLE);
    api.clock.now += HOUR_MS;
    expect(text).toContain('com.example.corrected');
  });

  // @promise shared-host-apps
  test('the operator limits shared hosts to iOS apps or to none, and the subdomain of an app names both', async () => {
    const named = async (apps?: 'all' | 'ios' | 'off') => {
      const intake = createIntake(api.sql, NO_ADMISSION_LIMITS, apps);
      const { apple, android } = await intake.sharedAssociations();
      return [apple?.includes('com.example.lantern'), android?.includes('com.example.lantern')];
    };
    expect(await named()).toEqual([true, true]);
    expect(await named('all')).toEqual([true, true]);
    expect(await named('ios')).toEqual([true, undefined]);
    expect(await named('off')).toEqual([undefined, undefined]);
    const own = await startTestApi({
      intake: createIntake(api.sql, NO_ADMISSION_LIMITS, 'off'),
      sql: api.sql,
    });
    try {
      for (const file of [APPLE, ANDROID]) {
        const status = async (host: string) => (await own.call('GET', file, { headers: { host } })).status;
        expect(await status('api.example.test')).toBe(404);
        expect(await status('lantern.links.example')).toBe(200);
      }
    } finally {
      await own.close();
    }
  });

  test('a file stays below the 128 KiB that Apple reads, and the first apps are in it', () => {
    const links = Array.from({ length: 2_000 }, (_, index) => ({
      iosAppIds: [`ABCDE12345.com.example.app${index}`],
      androidApps: [{ packageName: `com.example.app${index}`, sha256CertFingerprints: [FINGERPRINT] }],
      paths: [`/l/app-${index}/*`],
    }));
    for (const file of [appleAssociation(links), androidAssociation(links)]) {
      expect(Buffer.byteLength(file ?? '')).toBeLessThanOrEqual(128 * 1024);
      expect(Buffer.byteLength(file ?? '')).toBeGreaterThan(127 * 1024);
      expect(JSON.parse(file ?? '')).toBeDefined();
      expect(file).toContain('com.example.app0"');
    }
    expect([appleAssociation([]), androidAssociation([])]).toEqual([null, null]);
  });

  test('no app is looked at after the first that does not fit', () => {
    let looked = 0;
    const large = Array.from({ length: 100 }, (_, index) => `ABCDE12345.com.example.app${index}`);
    function* links() {
      for (;;) {
        looked += 1;
        yield { iosAppIds: large, androidApps: [], paths: ['/l/app/*'] };
      }
    }
    expect(appleAssociation(links())).not.toBeNull();
    expect(looked).toBeLessThan(60);
  });

  test('an account has at most 20 of the apps that share a host, and an app at most 4 KiB', async () => {
    const account = await newAccount(api);
    const settings = { iosAppIds: ['ABCDE12345.com.example.many'] };
    const apps: TestApp[] = [];
    for (let index = 0; index < 22; index += 1) apps.push(await newApp(api, account, settings));
    const large = await newApp(api, undefined, {
      androidApps: Array.from({ length: 10 }, (_, index) => ({
        packageName: `com.example.app${index}`,
        sha256CertFingerprints: Array.from({ length: 5 }, (__, nth) => FINGERPRINT.replace(/^../, `A${nth}`)),
      })),
    });
    const listed = (await listAssociations(api.sql, 500)).flatMap(({ subdomains }) => subdomains);
    expect(apps.map(({ linkSubdomain }) => listed.includes(linkSubdomain)).filter(Boolean)).toHaveLength(20);
    expect(listed).toContain(apps[0]?.linkSubdomain);
    expect(listed).not.toContain(large.linkSubdomain);
    // However many apps an account has, the apps of later ones are named.
    await api.sql`update accounts set app_limit = 3000 where id = ${account.accountId}`;
    await api.sql`
      insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                        deferred_window_minutes, link_subdomain, ios_app_ids)
      select 'app_0000000000000000000000' || lpad(n::text, 4, '0'), ${account.accountId}, 'Many', 0, 1, 1, 1, 'many-' || n,
             array['ABCDE12345.com.example.many']
        from generate_series(1, 2100) n`;
    const later = await newApp(api, undefined, settings);
    expect((await listAssociations(api.sql, 500)).flatMap(({ subdomains }) => subdomains)).toContain(
      later.linkSubdomain,
    );
  });
});

test('an account fills a part of the files that all share, however long its names and many its subdomains are', async () => {
  const own = await startTestApi();
  const greedy = await newAccount(own);
  for (let nth = 0; nth < 20; nth += 1) {
    const { appId } = await newApp(own, greedy, {
      iosAppIds: Array.from({ length: 2 }, (_, id) => `ABCDE12345.${`${'x'.repeat(99)}.`.repeat(9)}a${id}`),
      androidApps: Array.from({ length: 10 }, (_, id) => ({
        packageName: `com.example.app${id}`,
        sha256CertFingerprints: [FINGERPRINT],
      })),
    });
    await own.sql`
      insert into link_subdomains (subdomain, app_id, position)
      select 'former-' || ${nth}::integer || '-' || n || '-' || repeat('x', 30), ${appId}, n from generate_series(2, 20) n`;
  }
  const later = await newApp(own, undefined, mobileApps('later'));
  const files = await Promise.all(
    [APPLE, ANDROID].map(
      async (path) => await own.call('GET', path, { headers: { host: 'api.example.test' } }),
    ),
  );
  await own.close();
  expect(files.map(({ text }) => text.includes(`/l/${later.linkSubdomain}/*`))).toEqual([true, true]);
  for (const { text } of files) expect(text.length).toBeLessThan(20_000);
}, 30_000);

// @promise direct-link
test('a direct link that the service does see redirects and counts like any other', async () => {
  const affiliateId = await newAffiliate(api, app);
  const slug = `direct-${randomUUID().slice(0, 8)}`;
  const link = (await newLink(api, app, affiliateId, { slug })) as unknown as { directUrl: string };
  const { pathname, search } = new URL(link.directUrl);
  const { status, via, claimToken } = await followLink(api.url, pathname + search);
  expect({ status, via }).toEqual({ status: 302, via: slug });
  expect(claimToken).not.toBeNull();
  // What the app reports when the system opened it with the same address, and no click was recorded.
  const install = await api.call('POST', '/sdk/install', {
    key: app.sdkKey,
    body: {
      deviceId: randomUUID(),
      affiliateCode: new URLSearchParams(search).get('via'),
      firstOpenAt: api.clock.now,
    },
  });
  expect(install).toMatchObject({ status: 200, body: { affiliateId, matchMethod: 'code' } });
});
