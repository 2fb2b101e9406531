import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CLOCK_TOLERANCE_MS } from '../../src/domain/attribution.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink } from '../support/api.ts';
import type { TestApp } from '../support/api.ts';
import { startClockedApi } from '../support/clocked-api.ts';
import type { ClockedApi } from '../support/clocked-api.ts';
import { bodyOf, revenuecatEvent } from '../support/provider-fixtures.ts';

/** Every rule with a time is asked at its edge and one millisecond beside it, with the clocks of all set to that. */
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
  const answer = await api.call('POST', '/sdk/identify', { key: app.sdkKey, body });
  await api.settled();
  return answer;
};

/** A click at that moment, and the token that claims it. */
async function clicked(clickedAt: number, of = slug): Promise<string> {
  const claimToken = randomUUID();
  expect((await click({ claimToken, clickedAt, slug: of })).status).toBe(200);
  return claimToken;
}

/** A device of the affiliate since that moment. */
async function deviceSince(touchedAt: number): Promise<string> {
  const deviceId = randomUUID();
  const claimToken = await clicked(touchedAt);
  expect((await install({ deviceId, claimToken, firstOpenAt: touchedAt })).status).toBe(200);
  return deviceId;
}

/** Ten dollars, which are two for the affiliate. */
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

describe('an instant that a caller reports may be five minutes ahead', () => {
  // @promise clock-tolerance
  test.each([
    ['clickedAt', 0, 200],
    ['clickedAt', 1, 400],
    ['firstOpenAt', 0, 200],
    ['firstOpenAt', 1, 400],
    ['identifiedAt', 0, 200],
    ['identifiedAt', 1, 400],
  ])('%s, and %d ms more: %d', async (field, more, status) => {
    const at = api.clock.now + CLOCK_TOLERANCE_MS + more;
    const calls: Record<string, () => Promise<{ status: number; body: object }>> = {
      clickedAt: () => click({ clickedAt: at }),
      firstOpenAt: () => install({ affiliateCode: slug, firstOpenAt: at }),
      identifiedAt: async () => identify(await deviceSince(api.clock.now), randomUUID(), at),
    };
    const answer = await calls[field]?.();
    expect(answer?.status).toBe(status);
    if (status === 400) expect(answer?.body).toMatchObject({ errors: [{ path: field }] });
  });
});

describe('the attribution window, from the click to the first open', () => {
  // @promise window-to-the-millisecond, outside-window-404
  test.each([
    [1, 0, 200],
    [1, 1, 404],
    [30, 0, 200],
    [30, 1, 404],
    [365, 0, 200],
    [365, 1, 404],
  ])('of %d days, and %d ms more: %d', async (attributionWindowDays, more, status) => {
    await settings({ attributionWindowDays });
    const clickedAt = api.clock.now - 400 * DAY_MS;
    const claimToken = await clicked(clickedAt);
    const firstOpenAt = clickedAt + attributionWindowDays * DAY_MS + more;
    expect((await install({ claimToken, firstOpenAt })).status).toBe(status);
    // A code's touch is the install itself, so no code is ever too old.
    expect((await install({ affiliateCode: slug, firstOpenAt })).body).toMatchObject({ matchMethod: 'code' });
  });
});

describe('of a token and a code the token decides, and the code is the fallback', () => {
  const WINDOW_MS = 30 * DAY_MS;
  // @promise token-window-stored
  test.each<[string, number, (claimToken: string, tokensAffiliate: string) => Promise<unknown>, string]>([
    ['whose click is exactly as old as the window', WINDOW_MS, async () => {}, 'claim_token'],
    ['whose click is a millisecond older', WINDOW_MS + 1, async () => {}, 'code'],
    ['that another device has redeemed', 0, (claimToken) => install({ claimToken }), 'code'],
    [
      'of a creator who is paused',
      0,
      (_, id) =>
        api.call('PATCH', `/apps/${app.appId}/affiliates/${id}`, {
          key: app.key,
          body: { status: 'paused' },
        }),
      'claim_token',
    ],
    [
      'of a creator who was removed',
      0,
      (_, id) =>
        api.call('PATCH', `/apps/${app.appId}/affiliates/${id}`, {
          key: app.key,
          body: { status: 'removed' },
        }),
      'code',
    ],
  ])('a token %s', async (_, age, before, matchMethod) => {
    const other = await newAffiliate(api, app);
    const claimToken = await clicked(api.clock.now - age, (await newLink(api, app, other)).slug);
    await before(claimToken, other);
    expect(await install({ claimToken, affiliateCode: slug })).toMatchObject({
      status: 200,
      body: { matchMethod, affiliateId: matchMethod === 'code' ? affiliateId : other },
    });
  });
});

describe('what brings a device when it is no longer active', () => {
  const patch = (path: string, body: object) =>
    api.call('PATCH', `/apps/${app.appId}/${path}`, { key: app.key, body });
  // @promise click-inactive-link
  test.each([
    ['a paused affiliate', 'affiliates', { status: 'paused' }, [200, 200, 200, 200]],
    ['a removed affiliate', 'affiliates', { status: 'removed' }, [404, 404, 404, 404]],
    ['a link that is off', 'links', { active: false }, [404, 200, 404, 200]],
  ])('%s: a click, an old token, the slug, the affiliate id', async (_, of, body, expected) => {
    const someone = await newAffiliate(api, app);
    const link = await newLink(api, app, someone);
    const claimToken = await clicked(api.clock.now, link.slug);
    await patch(`${of}/${of === 'links' ? link.id : someone}`, body);
    const answers = [
      await click({ slug: link.slug }),
      await install({ claimToken }),
      await install({ affiliateCode: link.slug }),
      await install({ affiliateCode: someone }),
    ];
    expect(answers.map(({ status }) => status)).toEqual(expected);
  });
});

// @promise first-reported-wins
test('the first touch that is told stays, also when the click of a later one is older; the later one is kept as lost', async () => {
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
  // The token that lost is redeemed all the same: no other device gets it.
  expect((await install({ claimToken: older })).status).toBe(404);
});

describe('a late identify heals', () => {
  // @promise heal-reach-to-the-millisecond
  test.each([
    ['exactly as old as the window of 1 day', 1, 0, []],
    ['a millisecond older than the window of 1 day', 1, 1, ['outside_attribution_window']],
    ['exactly as old as the window of 30 days', 30, 0, []],
    ['a millisecond older than the window of 30 days', 30, 1, ['outside_attribution_window']],
  ])('a payment %s', async (_, attributionWindowDays, more, expected) => {
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
  });

  // @promise heal-reach-to-the-millisecond
  test.each([
    ['a click', 'at the touch', 0, []],
    ['a click', 'a millisecond before the touch', -1, ['outside_attribution_window']],
    ['a code', 'at the first open', 0, []],
    ['a code', 'a millisecond before the first open', -1, ['outside_attribution_window']],
  ])('what was paid after %s: %s', async (by, _, offset, expected) => {
    const [user, deviceId] = [randomUUID(), randomUUID()];
    const touchedAt = api.clock.now - DAY_MS;
    const touch = by === 'a click' ? { claimToken: await clicked(touchedAt) } : { affiliateCode: slug };
    expect((await install({ deviceId, ...touch, firstOpenAt: touchedAt })).status).toBe(200);
    await pay(user, touchedAt + offset);
    await identify(deviceId, user);
    expect(await causes()).toEqual(expected);
  });

  // @promise heal-reach-to-the-millisecond
  test.each([
    ['when the install was told', 0, []],
    ['a millisecond before', -1, ['outside_attribution_window']],
  ])('by a phone whose clock is ahead, what was paid %s', async (_, offset, expected) => {
    const [user, deviceId] = [randomUUID(), randomUUID()];
    const toldAt = api.clock.now;
    await install({ deviceId, affiliateCode: slug, firstOpenAt: toldAt + CLOCK_TOLERANCE_MS });
    await pay(user, toldAt + offset);
    await identify(deviceId, user);
    expect(await causes()).toEqual(expected);
  });
});

describe('a commission is due at the end of its hold period, and not a millisecond before', () => {
  interface Preview {
    readonly rows: readonly object[];
  }
  const looks: readonly [string, (id: string) => Promise<unknown>, unknown, unknown][] = [
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
        await api.ledger.sweepOverdue();
        return (await commissions()).map(({ status }) => status);
      },
      ['pending'],
      ['matured'],
    ],
    ['the hold timer', (id) => api.ledger.matureCommission(id), 'unchanged', 'matured'],
  ];
  // @promise due-to-the-millisecond
  test.each(looks)('for %s', async (_, look, before, then) => {
    await settings({ holdPeriodDays: 14 });
    const user = randomUUID();
    const paidAt = api.clock.now;
    await identify(await deviceSince(paidAt - DAY_MS), user);
    const { commissionId } = (await pay(user, paidAt)).body;
    const dueAt = paidAt + 14 * DAY_MS;
    expect(await commissions()).toMatchObject([{ id: commissionId, dueAt, status: 'pending' }]);
    await api.setClock(dueAt - 1);
    expect(await look(commissionId ?? '')).toEqual(before);
    await api.setClock(dueAt);
    expect(await look(commissionId ?? '')).toEqual(then);
  });
});

describe('what was rotated is good for its grace period, and ends with it', () => {
  // @promise rotation-last-millisecond
  test.each([
    ['a millisecond before the end', -1, 200, 404],
    ['at the end', 0, 401, 401],
  ])('a rotated secret and a rotated SDK key, %s', async (_, offset, ofSecret, ofKey) => {
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
