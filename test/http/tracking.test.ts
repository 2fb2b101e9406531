import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;
let affiliateId: string;
let slug: string;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  ({ slug } = await newLink(api, app, affiliateId, { slug: 'Spring_Sale' }));
});
afterAll(async () => {
  await api.close();
});

interface Recorded {
  clickId: string;
  affiliateId: string;
  destinationUrl: string;
}
interface Attributed {
  attributionId: string;
  affiliateId: string;
  matchMethod: string;
}

const click = (fields: object = {}) =>
  api.call<Recorded>('POST', '/clicks', {
    body: { customerAppId: app.appId, slug, claimToken: randomUUID(), ...fields },
  });

const install = (fields: object, key = app.sdkKey) =>
  api.call<Attributed>('POST', '/sdk/install', { key, body: { firstOpenAt: api.clock.now, ...fields } });

const identify = (deviceId: string, customerUserId: string, key = app.sdkKey, fields: object = {}) =>
  api.call<{ attributionId: string }>('POST', '/sdk/identify', {
    key,
    body: { deviceId, customerUserId, identifiedAt: api.clock.now, ...fields },
  });
const identified = (deviceId: string, user: string) =>
  identify(deviceId, user, app.sdkKey, { acceptUnattributed: true });

async function clicksOf(linkSlug: string): Promise<number> {
  const { clicks } = await api.sql.one<{ clicks: number }>`
    select coalesce(sum(r.clicks), 0)::bigint as clicks from links l
      left join rollup_totals r on r.scope = 'link' and r.scope_id = l.id
     where l.app_id = ${app.appId} and l.slug = ${linkSlug}`;
  return clicks;
}

describe('POST /clicks', () => {
  // @promise click-recorded, click-fields, post-clicks, clicks-need-no-key, typeid-prefix
  test('a click returns its id, the affiliate and the destination, for a slug in any case', async () => {
    const { status, body } = await click({
      slug: 'SPRING_sale',
      ipHash: 'h',
      userAgent: 'Safari',
      clickedAt: Date.UTC(2001, 0, 1),
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      clickId: expect.stringMatching(/^clk_/),
      affiliateId,
      destinationUrl: 'https://example.com/get',
    });
  });

  // @promise user-agent-length
  test('the first 512 characters of a user agent are stored', async () => {
    const userAgent = `Safari ${'x'.repeat(7_000)}`;
    const { status, body } = await click({ userAgent });
    expect(status).toBe(200);
    const rows = await api.sql`select user_agent from clicks where id = ${body.clickId}`;
    expect(rows).toEqual([{ userAgent: userAgent.slice(0, 512) }]);
  });

  // @promise click-repeat
  test('a repeated claim token returns the same click and counts once, also simultaneously and with another slug', async () => {
    const other = await newLink(api, app, affiliateId);
    const before = await clicksOf(slug);
    const claimToken = randomUUID();
    const responses = await Promise.all(Array.from({ length: 20 }, () => click({ claimToken })));
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
    expect(new Set(responses.map((response) => response.body.clickId)).size).toBe(1);
    const again = await click({ claimToken, slug: other.slug });
    expect(again.body.clickId).toBe(responses[0]?.body.clickId);
    expect(await clicksOf(slug)).toBe(before + 1);
  });

  // @promise bot-not-counted
  test('a click by a bot is not counted, and one without a user agent is', async () => {
    const before = await clicksOf(slug);
    expect((await click({ userAgent: 'Mozilla/5.0 (compatible; Googlebot/2.1)' })).status).toBe(200);
    expect(await clicksOf(slug)).toBe(before);
    await click();
    expect(await clicksOf(slug)).toBe(before + 1);
  });

  // @promise token-unique-per-app
  test('a claim token in two apps is two clicks', async () => {
    const other = await newApp(api);
    const theirs = await newLink(api, other, await newAffiliate(api, other));
    const claimToken = randomUUID();
    const [own, foreign] = [
      await click({ claimToken }),
      await click({ claimToken, customerAppId: other.appId, slug: theirs.slug }),
    ];
    expect(own.body.affiliateId).toBe(affiliateId);
    expect(foreign.status).toBe(200);
    expect(foreign.body.clickId).not.toBe(own.body.clickId);
  });

  // @promise click-required-fields
  test('unknown fields of a click are ignored', async () => {
    expect((await click({ somethingNew: { a: 1 } })).status).toBe(200);
  });

  // @promise click-unknown-404
  test.each([
    ['an unknown slug', { slug: 'nobody' }],
    ['a slug with a space', { slug: 'a b' }],
    ['an unknown app', { customerAppId: 'app_01h455vb4pex5vsknk084sn02q' }],
    ['a malformed app id', { customerAppId: 'x' }],
  ])('a click with %s is a 404', async (_, fields) => {
    expect((await click(fields)).status).toBe(404);
  });

  // @promise epoch-milliseconds, instant-in-body, click-required-fields, errors-of-400
  test.each([
    ['no slug', { slug: undefined }],
    ['no claim token', { claimToken: undefined }],
    ['a claim token that is not a UUID', { claimToken: 'x' }],
    ['a fraction of a millisecond', { clickedAt: 1.5 }],
    ['an instant out of range', { clickedAt: 1e300 }],
    ['NUL in a string', { userAgent: 'a\u0000b' }],
    ['NUL in an unknown field', { deep: [{ er: '\u0000' }] }],
    ['a lone surrogate', { ipHash: '\ud800' }],
  ])('a click with %s is a 400 that names the field', async (_, fields) => {
    const { status, body } = await click(fields);
    expect(status).toBe(400);
    expect(body).toMatchObject({
      code: 'invalid_request',
      errors: expect.arrayContaining([expect.objectContaining({ path: expect.any(String) })]),
    });
  });
});

describe('POST /sdk/install', () => {
  // @promise install-attributed, post-install, clicked-at-default, first-attribution-stays
  // @promise match-method
  test('a claim token attributes the install, and a repeated call returns the same attribution', async () => {
    const claimToken = randomUUID();
    await click({ claimToken });
    const deviceId = randomUUID();
    const first = await install({ deviceId, claimToken: claimToken.toUpperCase() });
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      attributionId: expect.stringMatching(/^att_/),
      affiliateId,
      matchMethod: 'claim_token',
    });
    expect((await install({ deviceId, claimToken })).body).toEqual(first.body);
    expect((await install({ deviceId, deferred: true })).body).toEqual(first.body);
  });

  // @promise code-form, match-method
  test.each([
    ['a slug in another case', () => 'sPRING_sALE'],
    ['an affiliate id', () => affiliateId],
    ['a code with spaces around it', () => ` ${slug} `],
  ])('%s attributes as a code', async (_, code) => {
    const { status, body } = await install({ deviceId: randomUUID(), affiliateCode: code() });
    expect(status).toBe(200);
    expect(body).toMatchObject({ affiliateId, matchMethod: 'code' });
  });

  // @promise unknown-token-falls-back
  test('an unknown token falls back to the code', async () => {
    const fields = { deviceId: randomUUID(), claimToken: randomUUID(), affiliateCode: slug };
    expect((await install(fields)).body).toMatchObject({ affiliateId, matchMethod: 'code' });
  });

  // @promise install-without-click, token-first-device
  test('a token belongs to the first of several devices that redeem it', async () => {
    const claimToken = randomUUID();
    await click({ claimToken });
    const responses = await Promise.all(
      Array.from({ length: 12 }, () => install({ deviceId: randomUUID(), claimToken })),
    );
    expect(responses.map((response) => response.status).toSorted((a, b) => a - b)).toEqual([
      200,
      ...Array.from({ length: 11 }, () => 404),
    ]);
    expect(responses.find((response) => response.status === 404)?.body).toMatchObject({
      code: 'no_attributable_click',
    });
  });

  // @promise losing-touches-recorded
  test('of simultaneous touches one wins, all calls return it, and the others are recorded as losing', async () => {
    const deviceId = randomUUID();
    const touches = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const someone = await newAffiliate(api, app);
        const link = await newLink(api, app, someone);
        const claimToken = randomUUID();
        await click({ slug: link.slug, claimToken });
        return { claimToken };
      }),
    );
    const responses = await Promise.all(touches.map((touch) => install({ deviceId, ...touch })));
    expect(new Set(responses.map((response) => JSON.stringify(response.body))).size).toBe(1);
    const { lost } = await api.sql.one<{ lost: number }>`
      select count(*) as lost from losing_touches where device_id = ${deviceId}`;
    expect(lost).toBe(7);
    const { claimed } = await api.sql.one<{ claimed: number }>`
      select count(*) as claimed from clicks where claimed_by_device = ${deviceId}`;
    expect(claimed).toBe(8);
  });

  // @promise touch-of-own-app
  test("an install with another app's token or code is a 404", async () => {
    const other = await newApp(api);
    const claimToken = randomUUID();
    await click({ claimToken });
    for (const touch of [{ claimToken }, { affiliateCode: slug }, { affiliateCode: affiliateId }]) {
      expect((await install({ deviceId: randomUUID(), ...touch }, other.sdkKey)).status).toBe(404);
    }
  });

  // @promise install-needs-token-or-code, error-404-no-click, no-touch-400
  test('an install without a touch is a 400, and a 404 with `deferred`', async () => {
    expect((await install({ deviceId: 'd' })).status).toBe(400);
    expect((await install({ deviceId: 'd', deferred: false })).status).toBe(400);
    const deferred = await install({ deviceId: 'd', deferred: true });
    expect(deferred.status).toBe(404);
    expect(deferred.body).toMatchObject({ code: 'no_attributable_click' });
  });

  // @promise device-id-form
  test.each([['1'], ['x'.repeat(200)], [' ñ 🙂 ']])('%p is a valid device id', async (deviceId) => {
    expect((await install({ deviceId, affiliateCode: slug })).status).toBe(200);
  });

  // @promise device-id-form
  test.each([
    ['an empty device id', { deviceId: '' }],
    ['a long device id', { deviceId: 'x'.repeat(201) }],
    ['a control character', { deviceId: 'a\nb' }],
    ['a first open as a string', { firstOpenAt: '1' }],
  ])('an install with %s is a 400', async (_, fields) => {
    expect((await install({ deviceId: 'd', affiliateCode: slug, ...fields })).status).toBe(400);
  });
});

describe('POST /sdk/identify', () => {
  async function attributed(): Promise<{ deviceId: string; attributionId: string }> {
    const deviceId = randomUUID();
    const { body } = await install({ deviceId, affiliateCode: slug });
    return { deviceId, attributionId: body.attributionId };
  }

  // @promise install-attributed, attribution-fields, post-identify, identify-repeat
  test('identify binds a user to the attribution of the device once', async () => {
    const { deviceId, attributionId } = await attributed();
    const user = randomUUID();
    const responses = await Promise.all(Array.from({ length: 10 }, () => identify(deviceId, user)));
    for (const response of responses) {
      expect(response).toMatchObject({ status: 200, body: { attributionId, customerUserId: user } });
    }
    const { bound } = await api.sql.one<{ bound: number }>`
      select count(*) as bound from bindings where customer_user_id = ${user} and healed_at is not null`;
    expect(bound).toBe(1);
    expect(api.healed).toEqual([]);
  });

  // @promise placeholder-identify-400
  test.each(['undefined', ' NULL ', 'guest', '00000000-0000-0000-0000-000000000000', 'gue\u200bst'])(
    'an identify with the placeholder %j is a 400 and stores nothing',
    async (placeholder) => {
      const { deviceId } = await attributed();
      expect(await identify(deviceId, placeholder)).toMatchObject({
        status: 400,
        body: { code: 'placeholder_user_id' },
      });
      expect(await api.sql`select from identities where device_id = ${deviceId}`).toEqual([]);
      expect(await api.sql`select from bindings where customer_user_id = ${placeholder}`).toEqual([]);
    },
  );

  // @promise user-first-attribution
  test('several users can share a device, and a user stays with the first attribution', async () => {
    const [one, two] = [await attributed(), await attributed()];
    const [ann, bob] = [randomUUID(), randomUUID()];
    expect((await identify(one.deviceId, ann)).body.attributionId).toBe(one.attributionId);
    expect((await identify(one.deviceId, bob)).body.attributionId).toBe(one.attributionId);
    // The answer is about the device. The user stays with the first one.
    expect((await identify(two.deviceId, ann)).body.attributionId).toBe(two.attributionId);
    expect(await api.sql`select attribution_id from bindings where customer_user_id = ${ann}`).toEqual([
      { attributionId: one.attributionId },
    ]);
  });

  // @promise identify-about-the-device
  test('an identify answers the same for a new user, a user of another device and an erased user', async () => {
    const [own, other] = [await attributed(), await attributed()];
    const bare = randomUUID();
    const [fresh, foreign, erased] = [randomUUID(), randomUUID(), randomUUID()];
    await identify(other.deviceId, foreign);
    const path = `/apps/${app.appId}/users/${erased}`;
    expect((await api.call('DELETE', path, { key: app.key })).status).toBe(200);
    for (const user of [foreign, erased, fresh]) {
      expect((await identified(own.deviceId, user)).body).toEqual({
        attributionId: own.attributionId,
        affiliateId,
        customerUserId: user,
      });
      expect((await identify(own.deviceId, user)).body).toEqual({
        attributionId: own.attributionId,
        customerUserId: user,
      });
      expect((await identified(bare, user)).body).toEqual({
        attributionId: null,
        affiliateId: null,
        customerUserId: user,
      });
      expect((await identify(bare, user)).body).toMatchObject({ code: 'no_attribution' });
    }
  });

  // @promise identify-before-install
  test('identify without an attribution is a 404, and the later install binds the user', async () => {
    const [deviceId, user] = [randomUUID(), randomUUID()];
    expect(await identify(deviceId, user)).toMatchObject({ status: 404, body: { code: 'no_attribution' } });
    const { body } = await install({ deviceId, affiliateCode: slug });
    const bound = await api.sql.one`select attribution_id from bindings where customer_user_id = ${user}`;
    expect(bound).toEqual({ attributionId: body.attributionId });
  });

  test('a simultaneous install and identify always bind the user', async () => {
    const users = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const [deviceId, user] = [randomUUID(), randomUUID()];
        await Promise.all([identify(deviceId, user), install({ deviceId, affiliateCode: slug })]);
        return user;
      }),
    );
    const { bound } = await api.sql.one<{ bound: number }>`
      select count(*) as bound from bindings where customer_user_id = any(${users}::text[])`;
    expect(bound).toBe(40);
  });

  test('a user id that does not fit an index is a 400', async () => {
    expect((await identify('d', '😀'.repeat(256))).status).toBe(404);
    expect((await identify('d', '😀'.repeat(500))).status).toBe(400);
    expect((await identify('d', '')).status).toBe(400);
  });
});

describe('answers to SDKs (`acceptUnattributed`)', () => {
  const NONE = { attributionId: null, affiliateId: null, matchMethod: null, touch: 'unknown' };
  const installed = (fields: object) => install({ deviceId: 'd', acceptUnattributed: true, ...fields });

  // @promise sdk-unattributed
  test.each([
    ['an unknown code', { affiliateCode: 'nobody' }],
    ['an unknown token', { claimToken: randomUUID() }],
    ['a deferred match without a click', { deferred: true }],
  ])('an install with %s is a 200 with nulls', async (_, fields) => {
    expect(await installed({ deviceId: randomUUID(), ...fields })).toMatchObject({ status: 200, body: NONE });
  });

  // @promise sdk-touch
  test('the answer says whether the touch won, came second, or is unknown', async () => {
    const deviceId = randomUUID();
    const other = await newLink(api, app, await newAffiliate(api, app));
    const first = await installed({ deviceId, affiliateCode: slug });
    const attribution = { attributionId: first.body.attributionId, affiliateId, matchMethod: 'code' };
    expect(first.body).toEqual({ ...attribution, touch: 'won' });
    expect((await installed({ deviceId, affiliateCode: slug })).body).toEqual(first.body);
    const second = await installed({ deviceId, affiliateCode: other.slug });
    expect(second.body).toEqual({ ...attribution, touch: 'existing' });
    const unknown = await installed({ deviceId, affiliateCode: 'nobody' });
    expect(unknown.body).toEqual({ ...attribution, touch: 'unknown' });
  });

  // @promise sdk-touch
  test('a deferred match wins, and a device that has another attribution keeps it', async () => {
    const deviceId = randomUUID();
    const redirected = await api.call('GET', `/l/${app.linkSubdomain}/${slug}`, {
      headers: { 'user-agent': 'Mozilla/5.0 Firefox/140.0' },
    });
    expect(redirected.status).toBe(302);
    const won = await installed({ deviceId, deferred: true });
    expect(won.body).toMatchObject({ affiliateId, matchMethod: 'deferred', touch: 'won' });
    expect((await installed({ deviceId, deferred: true })).body).toEqual(won.body);
    const typed = randomUUID();
    await installed({ deviceId: typed, affiliateCode: slug });
    expect((await installed({ deviceId: typed, deferred: true })).body).toMatchObject({
      matchMethod: 'code',
      touch: 'existing',
    });
  });

  // @promise sdk-identify-affiliate
  test('identify answers with the affiliate of the device', async () => {
    const [known, fresh, user] = [randomUUID(), randomUUID(), randomUUID()];
    expect(await identified(known, user)).toMatchObject({
      status: 200,
      body: { attributionId: null, customerUserId: user, affiliateId: null },
    });
    const { body } = await installed({ deviceId: known, affiliateCode: slug });
    const bound = { attributionId: body.attributionId, customerUserId: user, affiliateId };
    expect((await identified(known, user)).body).toEqual(bound);
    expect((await identified(fresh, user)).body).toMatchObject({ attributionId: null, affiliateId: null });
    expect((await identify(fresh, user)).status).toBe(404);
  });

  // @promise sdk-version
  test('the SDK and its version are recorded on the attribution, and any other text is not', async () => {
    const sdkOf = async (sdk: unknown) => {
      const deviceId = randomUUID();
      expect((await installed({ deviceId, affiliateCode: slug, sdk })).status).toBe(200);
      return (
        await api.sql.one<{ sdk: string | null }>`
        select sdk from attributions where device_id = ${deviceId}`
      ).sdk;
    };
    expect(await sdkOf('web/0.1.0')).toBe('web/0.1.0');
    for (const other of ['web', `web/${'1'.repeat(60)}`, 'Web/1', 7, null])
      expect(await sdkOf(other)).toBeNull();
  });
});

test('calls of many devices of two apps that arrive together each get their own answer', async () => {
  const other = await newApp(api);
  const sides = await Promise.all(
    [app, other].map(async (one) => {
      const affiliates = [await newAffiliate(api, one), await newAffiliate(api, one)];
      // Both apps have the same slugs.
      for (const [n, id] of affiliates.entries()) await newLink(api, one, id, { slug: `together-${n}` });
      return { one, affiliates };
    }),
  );
  const callers = Array.from({ length: 80 }, (_, n) => {
    const { one, affiliates } = sides[n % 2] ?? { one: app, affiliates: [] };
    const index = Math.floor(n / 2) % 2;
    const device = { deviceId: `together-${n}`, claimToken: randomUUID(), user: `together-${n}` };
    return { ...device, one, index, affiliateId: affiliates[index] ?? '', byCode: n % 5 === 0 };
  });

  const clicks = await Promise.all(
    callers.map(({ one, index, claimToken }) =>
      click({ customerAppId: one.appId, slug: `together-${index}`, claimToken }),
    ),
  );
  expect(clicks.map(({ body }) => body.affiliateId)).toEqual(callers.map((caller) => caller.affiliateId));
  const visits = await Promise.all(
    callers.map(({ one, index }) => api.call('GET', `/l/${one.linkSubdomain}/TOGETHER-${index}`)),
  );
  expect(visits.map(({ status }) => status)).toEqual(callers.map(() => 302));
  expect(new Set(visits.map(({ headers }) => headers.get('location'))).size).toBe(callers.length);

  const installs = await Promise.all([
    ...callers.map(({ one, index, deviceId, claimToken, byCode }) =>
      install(
        byCode ? { deviceId, affiliateCode: `together-${index}` } : { deviceId, claimToken },
        one.sdkKey,
      ),
    ),
    install({ deviceId: 'together-none', affiliateCode: 'together-9' }),
    install({ deviceId: 'together-none', affiliateCode: 'together-0' }, `${app.sdkKey.slice(0, -4)}none`),
  ]);
  expect(installs.slice(-2).map(({ status }) => status)).toEqual([404, 401]);
  expect(installs.slice(0, -2).map(({ body }) => [body.affiliateId, body.matchMethod])).toEqual(
    callers.map((caller) => [caller.affiliateId, caller.byCode ? 'code' : 'claim_token']),
  );

  const users = await Promise.all([
    ...callers.map(({ one, deviceId, user }) => identify(deviceId, user, one.sdkKey)),
    identify('together-none', 'together-none'),
  ]);
  expect(users.map(({ status }) => status)).toEqual([...callers.map(() => 200), 404]);
  expect(users.slice(0, -1).map(({ body }) => body.attributionId)).toEqual(
    installs.slice(0, -2).map(({ body }) => body.attributionId),
  );
});

describe('callers', () => {
  // @promise install-invalid-key, error-401-install, account-key-under-sdk
  test.each([['/sdk/install'], ['/sdk/identify']])(
    '%s with a missing, malformed or account key is a 401',
    async (path) => {
      for (const key of [undefined, 'x', `${app.sdkKey.slice(0, -1)}!`, app.key]) {
        const response = await api.call('POST', path, { body: {}, ...(key === undefined ? {} : { key }) });
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toBe('Bearer');
      }
    },
  );

  // @promise cors
  test.each([['/clicks'], ['/sdk/install']])('%s allows any origin, also for errors', async (path) => {
    const preflight = await api.call('OPTIONS', path, {
      headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    const refused = await api.call('POST', path, { body: {}, headers: { origin: 'https://shop.example' } });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.headers.get('access-control-allow-origin')).toBe('*');
    expect(refused.headers.get('access-control-allow-credentials')).toBeNull();
    const exposed = (refused.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(',');
    expect(exposed).toEqual(expect.arrayContaining(['date', 'retry-after', 'x-request-id']));
  });
});
