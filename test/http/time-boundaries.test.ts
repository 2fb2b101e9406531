import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CLOCK_TOLERANCE_MS } from '../../src/domain/attribution.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink } from '../support/api.ts';
import type { TestApp } from '../support/api.ts';
import { startClockedApi } from '../support/clocked-api.ts';
import type { ClockedApi } from '../support/clocked-api.ts';
import { bodyOf, revenuecatEvent } from '../support/provider-fixtures.ts';

// Every time-based rule is tested at its boundary and one millisecond beside it, with all clocks set.
let api: ClockedApi;
let app: TestApp;
let affiliateId: string;
let slug: string;
let token: string;

beforeAll(async () => {
  api = await startClockedApi();
});
afterAll(async () => {
  await api.close();
});

const putSecret = async (body: object = {}) =>
  (
    await api.call<{ secret: string; previousSecretExpiresAt: number }>(
      'PUT',
      `/apps/${app.appId}/webhooks/revenuecat/secret`,
      { key: app.key, body },
    )
  ).body;

beforeEach(async () => {
  await api.setClock(api.clock.now + 100 * DAY_MS);
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  ({ slug } = await newLink(api, app, affiliateId));
  token = (await putSecret()).secret;
});

const click = (fields: object = {}) =>
  api.call('POST', '/clicks', {
    body: { customerAppId: app.appId, slug, claimToken: randomUUID(), ...fields },
  });

interface Installed {
  readonly attributionId: string;
  readonly affiliateId: string;
  readonly matchMethod: string;
}
const install = (fields: object, key = app.sdkKey) =>
  api.call<Installed>('POST', '/sdk/install', {
    key,
    body: { deviceId: randomUUID(), firstOpenAt: api.clock.now, ...fields },
  });

const identify = async (deviceId: string, customerUserId: string, identifiedAt = api.clock.now) => {
  const body = { deviceId, customerUserId, identifiedAt };
  const response = await api.call('POST', '/sdk/identify', { key: app.sdkKey, body });
  await api.settled();
  return response;
};

/** Records a click at that time. Returns its claim token. */
async function clicked(clickedAt: number, of = slug): Promise<string> {
  const claimToken = randomUUID();
  expect((await click({ claimToken, clickedAt, slug: of })).status).toBe(200);
  return claimToken;
}

/** Attributes a device to the affiliate at that time. Returns the device id. */
async function deviceSince(touchedAt: number): Promise<string> {
  const deviceId = randomUUID();
  const claimToken = await clicked(touchedAt);
  expect((await install({ deviceId, claimToken, firstOpenAt: touchedAt })).status).toBe(200);
  return deviceId;
}

/** Pays ten dollars, of which the affiliate earns two. */
const pay = (userId: string, occurredAt: number, authorization = token) =>
  api.call<{ eventId: string; commissionId: string | null }>('POST', `/webhooks/revenuecat/${app.appId}`, {
    headers: { authorization, 'content-type': 'application/json' },
    body: bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt })).toString(),
  });

const causes = async () =>
  (
    await api.call<{ items: { likelyCause: string }[] }>(
      'GET',
      `/apps/${app.appId}/diagnostics/unattributed`,
      { key: app.key },
    )
  ).body.items.map(({ likelyCause }) => likelyCause);

const commissions = async () =>
  (
    await api.call<{ items: { amountCents: number; dueAt: number; status: string; id: string }[] }>(
      'GET',
      `/apps/${app.appId}/commissions`,
      { key: app.key },
    )
  ).body.items;

const settings = (body: object) => api.call('PATCH', `/apps/${app.appId}/settings`, { key: app.key, body });

describe('tolerance for reported instants', () => {
  // @promise clock-tolerance
  test.each([
    ['clickedAt', 0, 200],
    ['clickedAt', 1, 400],
    ['firstOpenAt', 0, 200],
    ['firstOpenAt', 1, 400],
    ['codeEnteredAt', 0, 200],
    ['codeEnteredAt', 1, 400],
    ['identifiedAt', 0, 200],
    ['identifiedAt', 1, 400],
  ])('%s that is five minutes and %d ms ahead is a %d', async (field, more, status) => {
    const at = api.clock.now + CLOCK_TOLERANCE_MS + more;
    const calls: Record<string, () => Promise<{ status: number; body: object }>> = {
      clickedAt: () => click({ clickedAt: at }),
      firstOpenAt: () => install({ affiliateCode: slug, firstOpenAt: at }),
      codeEnteredAt: () => install({ affiliateCode: slug, codeEnteredAt: at }),
      identifiedAt: async () => identify(await deviceSince(api.clock.now), randomUUID(), at),
    };
    const response = await calls[field]?.();
    expect(response?.status).toBe(status);
    if (status === 400) expect(response?.body).toMatchObject({ errors: [{ path: field }] });
  });
});

describe('the attribution window', () => {
  // @promise window-to-the-millisecond, outside-window-404
  test.each([
    [1, 0, 200],
    [1, 1, 404],
    [30, 0, 200],
    [30, 1, 404],
    [365, 0, 200],
    [365, 1, 404],
  ])(
    'a first open %d days and %d ms after the click is a %d for a window of those days',
    async (attributionWindowDays, more, status) => {
      await settings({ attributionWindowDays });
      const clickedAt = api.clock.now - 400 * DAY_MS;
      const claimToken = await clicked(clickedAt);
      const firstOpenAt = clickedAt + attributionWindowDays * DAY_MS + more;
      expect((await install({ claimToken, firstOpenAt })).status).toBe(status);
      // A code's touch is its entry, so a code is never too old.
      expect((await install({ affiliateCode: slug, firstOpenAt })).body).toMatchObject({
        matchMethod: 'code',
      });
    },
  );
});

describe('an install with a token and a code', () => {
  const WINDOW_MS = 30 * DAY_MS;
  // @promise token-window-stored
  test.each<[string, number, (claimToken: string, tokensAffiliate: string) => Promise<unknown>, string]>([
    ['whose click is exactly as old as the window', WINDOW_MS, async () => {}, 'claim_token'],
    ['whose click is a millisecond older', WINDOW_MS + 1, async () => {}, 'code'],
    ['that another device has redeemed', 0, (claimToken) => install({ claimToken }), 'code'],
    [
      'of a paused affiliate',
      0,
      (_, id) =>
        api.call('PATCH', `/apps/${app.appId}/affiliates/${id}`, {
          key: app.key,
          body: { status: 'paused' },
        }),
      'claim_token',
    ],
    [
      'of a removed affiliate',
      0,
      (_, id) =>
        api.call('PATCH', `/apps/${app.appId}/affiliates/${id}`, {
          key: app.key,
          body: { status: 'removed' },
        }),
      'code',
    ],
  ])(
    'an install with a code and a token %s is attributed by the right one',
    async (_, age, before, matchMethod) => {
      const other = await newAffiliate(api, app);
      const claimToken = await clicked(api.clock.now - age, (await newLink(api, app, other)).slug);
      await before(claimToken, other);
      expect(await install({ claimToken, affiliateCode: slug })).toMatchObject({
        status: 200,
        body: { matchMethod, affiliateId: matchMethod === 'code' ? affiliateId : other },
      });
    },
  );
});

describe('inactive links and affiliates', () => {
  const patch = (path: string, body: object) =>
    api.call('PATCH', `/apps/${app.appId}/${path}`, { key: app.key, body });
  // @promise click-inactive-link
  test.each([
    ['a paused affiliate', 'affiliates', { status: 'paused' }, [200, 200, 200, 200]],
    ['a removed affiliate', 'affiliates', { status: 'removed' }, [404, 404, 404, 404]],
    ['an inactive link', 'links', { active: false }, [404, 200, 404, 200]],
  ])(
    '%s refuses what it must of a click, an old token, the slug and the affiliate id',
    async (_, of, body, expected) => {
      const inactive = await newAffiliate(api, app);
      const link = await newLink(api, app, inactive);
      const claimToken = await clicked(api.clock.now, link.slug);
      await patch(`${of}/${of === 'links' ? link.id : inactive}`, body);
      const responses = [
        await click({ slug: link.slug }),
        await install({ claimToken }),
        await install({ affiliateCode: link.slug }),
        await install({ affiliateCode: inactive }),
      ];
      expect(responses.map(({ status }) => status)).toEqual(expected);
    },
  );
});

// @promise first-reported-wins
test('the first reported touch stays even if a later one has an older click, which is recorded as losing', async () => {
  const deviceId = randomUUID();
  const other = await newAffiliate(api, app);
  const older = await clicked(api.clock.now - DAY_MS, (await newLink(api, app, other)).slug);
  const newer = await clicked(api.clock.now);
  const first = await install({ deviceId, claimToken: newer });
  expect(first.body).toMatchObject({ affiliateId });
  expect((await install({ deviceId, claimToken: older })).body).toEqual(first.body);
  expect(
    await api.sql`select affiliate_id, touched_at from losing_touches where device_id = ${deviceId}`,
  ).toEqual([{ affiliateId: other, touchedAt: api.clock.now - DAY_MS }]);
  // The losing token is redeemed as well, so no other device gets it.
  expect((await install({ claimToken: older })).status).toBe(404);
});

// @promise code-touch-is-its-entry
test('a losing code that is reported again is recorded once', async () => {
  const deviceId = await deviceSince(api.clock.now);
  const { slug: losing } = await newLink(api, app, await newAffiliate(api, app));
  for (const codeEnteredAt of [undefined, null, api.clock.now - DAY_MS]) {
    await api.setClock(api.clock.now + 1_000);
    expect((await install({ deviceId, affiliateCode: losing, codeEnteredAt })).status).toBe(200);
  }
  expect(await api.sql`select touched_at from losing_touches where device_id = ${deviceId}`).toHaveLength(1);
});

describe('healing by a late identify', () => {
  // @promise heal-reach-to-the-millisecond
  test.each([
    ['exactly as old as the window of 1 day', 1, 0, []],
    ['a millisecond older than the window of 1 day', 1, 1, ['outside_attribution_window']],
    ['exactly as old as the window of 30 days', 30, 0, []],
    ['a millisecond older than the window of 30 days', 30, 1, ['outside_attribution_window']],
  ])(
    'a late identify heals a payment only inside the window: %s',
    async (_, attributionWindowDays, more, expected) => {
      await settings({ attributionWindowDays });
      const user = randomUUID();
      const paidAt = api.clock.now;
      const deviceId = await deviceSince(paidAt - 60 * DAY_MS);
      expect((await pay(user, paidAt)).body.commissionId).toBeNull();
      expect(await causes()).toEqual(['user_never_identified']);
      await api.setClock(paidAt + attributionWindowDays * DAY_MS + more);
      expect((await identify(deviceId, user)).status).toBe(200);
      expect(await causes()).toEqual(expected);
      expect(await commissions()).toHaveLength(expected.length === 0 ? 1 : 0);
    },
  );

  // @promise heal-reach-to-the-millisecond
  test.each([
    ['a click', 'at the touch', 0, []],
    ['a click', 'a millisecond before the touch', -1, ['outside_attribution_window']],
    ['a code', 'at its entry', 0, []],
    ['a code', 'a millisecond before its entry', -1, ['outside_attribution_window']],
  ])('a late identify heals a payment only after %s: %s', async (by, _, offset, expected) => {
    const [user, deviceId] = [randomUUID(), randomUUID()];
    const touchedAt = api.clock.now - DAY_MS;
    const touch =
      by === 'a click'
        ? { claimToken: await clicked(touchedAt), firstOpenAt: touchedAt }
        : { affiliateCode: slug, codeEnteredAt: touchedAt, firstOpenAt: touchedAt - 20 * DAY_MS };
    expect((await install({ deviceId, ...touch })).status).toBe(200);
    await pay(user, touchedAt + offset);
    await identify(deviceId, user);
    expect(await causes()).toEqual(expected);
  });

  test('a renewal that the provider dates ahead, as the App Store does by hours, is not healed by a click after its report', async () => {
    const user = randomUUID();
    const reportedAt = api.clock.now;
    await pay(user, reportedAt + 8 * HOUR_MS);
    await api.setClock(reportedAt + HOUR_MS);
    await identify(await deviceSince(api.clock.now), user);
    expect(await causes()).toEqual(['outside_attribution_window']);
    expect(await commissions()).toEqual([]);
  });

  // @promise code-touch-is-its-entry
  test.each([
    ['is not attributed by', -5 * DAY_MS, ['outside_attribution_window']],
    ['at the time of the request is attributed by', 0, []],
  ])('a purchase %s a code without a time that arrives later', async (_title, offset, expected) => {
    const [user, deviceId] = [randomUUID(), randomUUID()];
    await identify(deviceId, user);
    await pay(user, api.clock.now + offset);
    const firstOpenAt = api.clock.now - 20 * DAY_MS;
    const entered = { deviceId, affiliateCode: slug, firstOpenAt };
    expect((await install(entered)).status).toBe(200);
    await api.settled();
    expect(await causes()).toEqual(expected);
  });

  // @promise heal-reach-to-the-millisecond
  test.each([
    ['at the time of the install request', 0, []],
    ['a millisecond before', -1, ['outside_attribution_window']],
  ])(
    'with a device clock ahead, a late identify heals a payment only since the install: %s',
    async (_, offset, expected) => {
      const [user, deviceId] = [randomUUID(), randomUUID()];
      const reportedAt = api.clock.now;
      const ahead = reportedAt + CLOCK_TOLERANCE_MS;
      await install({ deviceId, affiliateCode: slug, firstOpenAt: ahead, codeEnteredAt: ahead });
      await pay(user, reportedAt + offset);
      await identify(deviceId, user);
      expect(await causes()).toEqual(expected);
    },
  );
});

describe('the hold period', () => {
  interface Preview {
    readonly rows: readonly object[];
  }
  const views: readonly [string, (id: string) => Promise<unknown>, unknown, unknown][] = [
    [
      'the preview',
      async () =>
        (await api.call<Preview>('GET', `/apps/${app.appId}/payouts/preview`, { key: app.key })).body.rows
          .length,
      0,
      1,
    ],
    [
      'an export',
      async () => {
        const path = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
        const { text } = await api.call('POST', path, { key: app.key });
        return text.trimEnd().split('\r\n').length - 1;
      },
      0,
      1,
    ],
    [
      'the sweep',
      async () => {
        await api.maturing.sweepPage();
        return (await commissions()).map(({ status }) => status);
      },
      ['pending'],
      ['matured'],
    ],
    ['the hold timer', (id) => api.maturing.matureCommission(id), 'unchanged', 'matured'],
  ];
  // @promise due-to-the-millisecond
  test.each(views)(
    '%s treats a commission as due at the end of its hold period and not a millisecond before',
    async (_, view, before, then) => {
      await settings({ holdPeriodDays: 14 });
      const user = randomUUID();
      const paidAt = api.clock.now;
      await identify(await deviceSince(paidAt - DAY_MS), user);
      const { commissionId } = (await pay(user, paidAt)).body;
      const dueAt = paidAt + 14 * DAY_MS;
      expect(await commissions()).toMatchObject([{ id: commissionId, dueAt, status: 'pending' }]);
      await api.setClock(dueAt - 1);
      expect(await view(commissionId ?? '')).toEqual(before);
      await api.setClock(dueAt);
      expect(await view(commissionId ?? '')).toEqual(then);
    },
  );
});

describe('the grace period', () => {
  // @promise rotation-last-millisecond
  test.each([
    ['are valid a millisecond before the end of the grace period', -1, 200, 404],
    ['are invalid at the end of the grace period', 0, 401, 401],
  ])('a rotated secret and a rotated SDK key %s', async (_, offset, ofSecret, ofKey) => {
    const before = { token, sdkKey: app.sdkKey };
    const { secret, previousSecretExpiresAt } = await putSecret({ graceSeconds: 10 });
    const { body } = await api.call<{ sdkKey: string; previousKeyExpiresAt: number }>(
      'POST',
      `/apps/${app.appId}/sdk-key/rotate`,
      { key: app.key, body: { graceSeconds: 10 } },
    );
    expect(body.previousKeyExpiresAt).toBe(previousSecretExpiresAt);
    await api.setClock(previousSecretExpiresAt + offset);
    const statuses = async (authorization: string, sdkKey: string) => [
      (await pay(randomUUID(), api.clock.now, authorization)).status,
      (await install({ claimToken: randomUUID() }, sdkKey)).status,
    ];
    expect(await statuses(before.token, before.sdkKey)).toEqual([ofSecret, ofKey]);
    expect(await statuses(secret, body.sdkKey)).toEqual([200, 404]);
  });
});
