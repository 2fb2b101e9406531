import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import {
  createCreatorLink,
  deleteExpiredCreatorSessions,
  revokeCreatorAccess,
  spendCreatorLink,
} from '../../src/db/creator-sessions.ts';
import { newToken } from '../../src/db/sessions.ts';
import type { AffiliateId, AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { closeGate } from '../support/gate.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';
import { cookieOf, creatorLink, OWN_PAGE, signIn, signInCreator } from '../support/sessions.ts';
import { untilWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;
let creator: string;

/** The texts of the statements that were sent. */
let sent: string[] = [];

beforeAll(async () => {
  api = await startTestApi({}, { onStatement: ({ text }) => void sent.push(text) });
  app = await newApp(api, undefined, { name: 'Lantern', commissionRateBps: 2500, holdPeriodDays: 20 });
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  creator = await newAffiliate(api, app, { name: 'Ada' });
});

type Sent = Readonly<Record<string, string>>;

const spend = async (token: string, headers: Sent = OWN_PAGE) =>
  await api.call('POST', '/creator/session', { body: { token }, headers });

const statusOf = async (headers: Sent, path = '/creator') =>
  (await api.call('GET', path, { headers })).status;

const get = async <T>(headers: Sent, path: string) => {
  const { status, body, text } = await api.call<T>('GET', path, { headers });
  expect({ status, text }).toMatchObject({ status: 200 });
  return body;
};

const scope = () => ({ appId: app.appId as AppId, affiliateId: creator as AffiliateId });

/** Runs `work` at a later time. */
async function later<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { now } = api.clock;
  api.clock.now = now + ms;
  try {
    return await work();
  } finally {
    api.clock.now = now;
  }
}

describe('the sign-in link of a creator', () => {
  // @promise post-creator-sign-in-links, post-creator-session, session-cookie
  test('a founder creates it, and it signs the creator in with a cookie that is out of reach for scripts', async () => {
    const path = `/apps/${app.appId}/affiliates/${creator}/sign-in-links`;
    const { status, body } = await api.call<{ url: string; expiresAt: number }>('POST', path, {
      key: app.key,
    });
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        url: expect.stringMatching(/^https:\/\/api\.example\.test\/console\/creator\/#token=[\w-]{43}$/),
        expiresAt: api.clock.now + 7 * DAY_MS,
        uses: 5,
      },
    });
    const signedIn = await spend(body.url.split('=')[1] ?? '');
    expect(signedIn).toMatchObject({ status: 200, body: { name: 'Ada' } });
    expect(signedIn.headers.get('set-cookie')).toMatch(
      /^__Host-tributary-creator=[\w-]{43}; Path=\/; Max-Age=31536000; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(await statusOf({ ...OWN_PAGE, cookie: cookieOf(signedIn.headers) })).toBe(200);
  });

  // @promise creator-link-five-uses
  test('it works five times, also for eight callers at the same time', async () => {
    const token = await creatorLink(api, app, creator);
    const answers = await Promise.all(Array.from({ length: 8 }, async () => await spend(token)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200, 200, 200, 200, 200, 401, 401, 401,
    ]);
    const again = await spend(token);
    expect(again).toMatchObject({ status: 401, body: { code: 'invalid_sign_in_link' } });
    expect(again.headers.get('set-cookie')).toBeNull();
  });

  test('a statement whose answer was lost is sent again and uses the link once', async () => {
    const link = newToken();
    await createCreatorLink(api.sql, scope(), link, api.clock.now);
    const made = { token: newToken(), userAgent: null, now: api.clock.now };
    const [first, again] = [
      await spendCreatorLink(api.sql, link, made),
      await spendCreatorLink(api.sql, link, made),
    ];
    expect(again).toEqual(first);
    const { usesLeft } = await api.sql.one<{ usesLeft: number }>`
      select uses_left from creator_sign_in_links where affiliate_id = ${creator}`;
    expect({ isSignedIn: first !== undefined, usesLeft }).toEqual({ isSignedIn: true, usesLeft: 4 });
  });

  // @promise creator-link-five-uses
  test('it ends after seven days', async () => {
    const token = await creatorLink(api, app, creator);
    expect((await later(7 * DAY_MS - 1, () => spend(token))).status).toBe(200);
    expect((await later(7 * DAY_MS, () => spend(token))).status).toBe(401);
  });

  // @promise creator-revoke, post-creator-sign-in-links-revoke
  test('revoking ends the links and sessions of that creator, and no others', async () => {
    const [token, other] = [await creatorLink(api, app, creator), await newAffiliate(api, app)];
    const session = await signInCreator(api, app, creator);
    const ofOther = await signInCreator(api, app, other);
    const path = `/apps/${app.appId}/affiliates/${creator}/sign-in-links/revoke`;
    const revoked = await api.call('POST', path, { key: app.key });
    // The link of the session has uses left.
    expect(revoked).toMatchObject({ status: 200, body: { revokedLinks: 2, endedSessions: 1 } });
    expect(await spend(token)).toMatchObject({ status: 401, body: { code: 'invalid_sign_in_link' } });
    expect([await statusOf(session), await statusOf(ofOther)]).toEqual([401, 200]);
    const again = await api.call('POST', path, { key: app.key });
    expect(again.body).toEqual({ revokedLinks: 0, endedSessions: 0 });
    expect(await statusOf(await signInCreator(api, app, creator))).toBe(200);
  });

  // @promise creator-revoke
  test('revoking waits for a link that is being spent, and ends its session', async () => {
    const token = newToken();
    await createCreatorLink(api.sql, scope(), token, api.clock.now);
    // The call that uses the link locks its row until the session is stored.
    const gate = await closeGate(api.database.url, 'creator_sessions');
    try {
      const spending = spend(token);
      await untilWaiting(api.sql);
      const revoking = revokeCreatorAccess(api.sql, scope(), api.clock.now);
      await untilWaiting(api.sql, 2);
      await gate.open();
      const [{ headers }, revoked] = await Promise.all([spending, revoking]);
      expect({ revoked, status: await statusOf({ ...OWN_PAGE, cookie: cookieOf(headers) }) }).toEqual({
        revoked: { revokedLinks: 1, endedSessions: 1 },
        status: 401,
      });
    } finally {
      await gate.remove();
    }
  });

  test('a repeat with the same idempotency key returns the same link', async () => {
    const path = `/apps/${app.appId}/affiliates/${creator}/sign-in-links`;
    const send = async () =>
      await api.call<{ url: string }>('POST', path, {
        key: app.key,
        headers: { 'idempotency-key': 'invite' },
      });
    const [first, second] = [await send(), await send()];
    expect(second.body).toEqual(first.body);
    const { count } = await api.sql.one<{ count: number }>`
      select count(*)::int as count from creator_sign_in_links where affiliate_id = ${creator}`;
    expect(count).toBe(1);
  });

  test('a page of another site signs nobody in, and an address has ten attempts a minute', async () => {
    const token = await creatorLink(api, app, creator);
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }])
      expect(await spend(token, headers)).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
    const limited = await startTestApi({ rateLimits: createRateLimits({ ...NO_RATE_LIMITS, signIn: 10 }) });
    const statuses = [];
    for (let nth = 0; nth < 11; nth += 1)
      statuses.push((await limited.call('POST', '/creator/session', { body: { token: 'x' } })).status);
    await limited.close();
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
  });

  test('tokens are stored as hashes only, and expired rows are deleted', async () => {
    const token = await creatorLink(api, app, creator);
    const { headers } = await spend(token);
    const session = cookieOf(headers).split('=')[1] ?? '';
    const rows = await api.sql<{ text: string }>`
      select s::text as text from creator_sessions s union all select l::text from creator_sign_in_links l`;
    const stored = rows.map(({ text }) => text).join('\n');
    for (const secret of [token, session, Buffer.from(session, 'base64url').toString('hex')])
      expect(stored).not.toContain(secret);
    const count = async () =>
      await api.sql.one<{ sessions: number; links: number }>`
        select (select count(*) from creator_sessions)::int as sessions,
               (select count(*) from creator_sign_in_links)::int as links`;
    await deleteExpiredCreatorSessions(api.sql, api.clock.now + 30 * DAY_MS);
    expect(await count()).toMatchObject({ links: 0 });
    expect((await count()).sessions).toBeGreaterThan(0);
    await deleteExpiredCreatorSessions(api.sql, api.clock.now + 400 * DAY_MS);
    expect(await count()).toEqual({ links: 0, sessions: 0 });
  });
});

describe("a creator's session", () => {
  // @promise creator-session-expiry
  test('it ends after ninety days without a call, and after a year in any case', async () => {
    const headers = await signInCreator(api, app, creator);
    expect(await later(90 * DAY_MS, () => statusOf(headers))).toBe(401);
    for (let day = 80; day < 365; day += 80)
      expect(await later(day * DAY_MS, () => statusOf(headers))).toBe(200);
    expect(await later(365 * DAY_MS - 1, () => statusOf(headers))).toBe(200);
    expect(await later(365 * DAY_MS, () => statusOf(headers))).toBe(401);
  });

  // @promise get-creator-session, post-creator-session-end
  test('GET /creator/session tells it without an error, and signing out ends it', async () => {
    const headers = await signInCreator(api, app, creator);
    expect((await api.call('GET', '/creator/session')).body).toEqual({ session: null });
    expect((await api.call('GET', '/creator/session', { headers })).body).toMatchObject({
      session: { affiliateId: creator, name: 'Ada' },
    });
    const foreign = { ...headers, 'sec-fetch-site': 'same-site' };
    expect(await statusOf(foreign, '/creator/session')).toBe(403);
    const out = await api.call('POST', '/creator/session/end', { headers });
    expect(out.headers.get('set-cookie')).toMatch(/^__Host-tributary-creator=; Path=\/; Max-Age=0; HttpOnly/);
    expect(await statusOf(headers)).toBe(401);
    expect((await api.call('GET', '/creator/session', { headers })).body).toEqual({ session: null });
  });

  // @promise get-creator-sessions, post-creator-sessions-id-end, post-creator-sessions-end-all
  test('the creator sees and ends the own sessions', async () => {
    const [own, second, third] = [
      await signInCreator(api, app, creator),
      await signInCreator(api, app, creator),
      await signInCreator(api, app, creator),
    ];
    const { sessions } = await get<{ sessions: { id: string; isCurrent: boolean }[] }>(
      own,
      '/creator/sessions',
    );
    expect(sessions.map(({ isCurrent }) => isCurrent)).toEqual([false, false, true]);
    const end = `/creator/sessions/${sessions[0]?.id ?? ''}/end`;
    expect((await api.call('POST', end, { headers: own })).status).toBe(200);
    expect([await statusOf(third), await statusOf(second)]).toEqual([401, 200]);
    const rest = await api.call('POST', '/creator/sessions/end-all', { headers: own });
    expect(rest.body).toEqual({ ended: 1 });
    expect([await statusOf(own), await statusOf(second)]).toEqual([200, 401]);
  });

  test('another sign-in of the browser replaces it, and a session of the account stays', async () => {
    const founder = await signIn(api, app.key);
    const first = await signInCreator(api, app, creator);
    const both = { ...OWN_PAGE, cookie: `${founder.cookie}; ${first.cookie}` };
    const { headers } = await spend(await creatorLink(api, app, creator), both);
    expect([await statusOf(first), await statusOf({ ...OWN_PAGE, cookie: cookieOf(headers) })]).toEqual([
      401, 200,
    ]);
    expect(await statusOf(both, '/apps')).toBe(200);
  });
});

describe('what a creator sees', () => {
  const HELD_MS = 5 * DAY_MS;

  /** Writes a paid, a due and a held earning, the last with a refund. */
  async function earn() {
    const at = api.clock.now - 30 * DAY_MS;
    const link = await newLink(api, app, creator);
    const row = { affiliateId: creator, linkId: link.id };
    const paid = await insertEarning(api, app, {
      ...row,
      amountCents: 700,
      occurredAt: at,
      dueAt: at + DAY_MS,
      matured: true,
    });
    await insertReversal(api, paid, { amountCents: 200, occurredAt: at + 1 });
    await payOut(api, app, creator);
    await insertEarning(api, app, {
      ...row,
      amountCents: 300,
      occurredAt: at + 2,
      dueAt: at + DAY_MS,
      matured: true,
    });
    const dueAt = api.clock.now + HELD_MS;
    const held = await insertEarning(api, app, { ...row, amountCents: 1000, occurredAt: at + 3, dueAt });
    const refund = await insertReversal(api, held, { amountCents: 400, occurredAt: at + 4 });
    const last = await insertEarning(api, app, {
      ...row,
      amountCents: 50,
      occurredAt: at + 5,
      dueAt: dueAt + DAY_MS,
    });
    return { link, paid, held, refund, last, dueAt };
  }

  // @promise get-creator
  test('the rules are those of the app, with the own rate', async () => {
    const headers = await signInCreator(api, app, creator);
    const rules = { rateBps: 2500, holdDays: 20, refunds: expect.stringContaining('taken back') };
    expect(await get(headers, '/creator')).toMatchObject({
      name: 'Ada',
      status: 'active',
      appName: 'Lantern',
      rules,
    });
    await api.call('PATCH', `/apps/${app.appId}/affiliates/${creator}`, {
      key: app.key,
      body: { defaultCommissionRateBps: 4000, status: 'paused' },
    });
    expect(await get(headers, '/creator')).toMatchObject({ status: 'paused', rules: { rateBps: 4000 } });
  });

  // @promise creator-codes
  test('the creator sees the own codes that work, while codes count', async () => {
    const headers = await signInCreator(api, app, creator);
    const other = await newAffiliate(api, app);
    const add = async (affiliateId: string, value: string) =>
      await api.call<{ id: string }>('POST', `/apps/${app.appId}/affiliates/${affiliateId}/codes`, {
        key: app.key,
        body: { namespace: 'app_store', value },
      });
    await add(creator, 'SPRING20');
    await add(other, 'OTHER');
    const old = await add(creator, 'OLD');
    await api.call('POST', `/apps/${app.appId}/codes/${old.body.id}/deactivate`, { key: app.key, body: {} });
    expect(await get(headers, '/creator')).not.toHaveProperty('codes');
    await api.call('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body: { purchaseCodes: 'when_unattributed' },
    });
    expect(await get(headers, '/creator')).toMatchObject({
      codes: [{ namespace: 'app_store', value: 'SPRING20' }],
    });
  });

  // @promise creator-brand-color
  test('the creator sees the colour of the app, which a founder sets and removes', async () => {
    const own = await newApp(api);
    const headers = await signInCreator(api, own, await newAffiliate(api, own));
    const set = async (brandColor: string | null) =>
      await api.call('PATCH', `/apps/${own.appId}/settings`, { key: own.key, body: { brandColor } });
    expect(await get(headers, '/creator')).not.toHaveProperty('brandColor');
    for (const wrong of ['', 'red', '#0b728', '#0b72855', '#0b728g', ' #0b7285', '#0b7285\n'])
      expect(await set(wrong)).toMatchObject({ status: 400, body: { errors: [{ path: 'brandColor' }] } });
    expect(await set('#0B7285')).toMatchObject({ status: 200, body: { brandColor: '#0b7285' } });
    expect(await get(headers, '/creator')).toMatchObject({ brandColor: '#0b7285' });
    expect((await set(null)).body).not.toHaveProperty('brandColor');
    expect(await get(headers, '/creator')).not.toHaveProperty('brandColor');
    const made = await api.call('POST', '/apps', {
      key: own.key,
      body: { name: 'Branded', brandColor: '#ffD400' },
    });
    expect(made).toMatchObject({ status: 201, body: { brandColor: '#ffd400' } });
  });

  // @promise get-creator-overview
  test('the overview has what is held, due and paid, and when the held part becomes due', async () => {
    const { dueAt } = await earn();
    const headers = await signInCreator(api, app, creator);
    expect(await get(headers, '/creator/overview')).toMatchObject({
      earnings: { pending: 650, matured: 300, paid: 500, lifetime: 1450 },
      nextDueAt: dueAt,
      nextDueCents: 600,
      heldUntil: dueAt + DAY_MS,
      carriedBalanceCents: 0,
    });
    const empty = await signInCreator(api, app, await newAffiliate(api, app));
    expect(await get(empty, '/creator/overview')).toMatchObject({
      earnings: { lifetime: 0 },
      nextDueAt: null,
      nextDueCents: null,
      heldUntil: null,
    });
  });

  // @promise creator-next-run
  test('the next run of the payout schedule has its date, what it would pay, and why it leaves the creator out, and is absent without one and under review', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const headers = await signInCreator(api, own, affiliateId);
    const nextRun = async () =>
      (await get<{ nextRun?: { date: string; exclusionReason?: string } }>(headers, '/creator/overview'))
        .nextRun;
    expect(await nextRun()).toBeUndefined();
    const day = new Date(api.clock.now).getUTCDate() > 14 ? 1 : 28;
    const schedule = async (withoutPayee: 'exclude' | 'include') => {
      const payoutSchedule = { day, timezone: 'Pacific/Kiritimati', minimumCents: 1_000, withoutPayee };
      const settings = { key: own.key, body: { payoutSchedule } };
      expect((await api.call('PATCH', `/apps/${own.appId}/settings`, settings)).status).toBe(200);
    };
    await schedule('exclude');
    const date = (await nextRun())?.date ?? '';
    expect(date).toMatch(day === 1 ? /^\d{4}-\d\d-01$/ : /^\d{4}-\d\d-28$/);
    const withoutPayee = { date, estimatedCents: 0, minimumCents: 1_000, exclusionReason: 'no_payee' };
    expect(await nextRun()).toEqual(withoutPayee);
    await schedule('include');
    expect(await nextRun()).toEqual({ date, estimatedCents: 0, minimumCents: 1_000 });
    // The day begins there 14 hours before it does in UTC.
    const begin = Date.parse(`${date}T00:00:00+14:00`);
    const occurredAt = api.clock.now - 90 * DAY_MS;
    for (const [amountCents, dueAt, matured] of [
      [300, occurredAt + DAY_MS, true],
      [20, begin, false],
      [1, begin + 1, false],
    ] as const)
      await insertEarning(api, own, { affiliateId, amountCents, occurredAt, dueAt, matured });
    expect(await nextRun()).toEqual({ date, estimatedCents: 320, minimumCents: 1_000 });
    // A creator with a new payee is left out by either kind, until it counts.
    const payee = { key: own.key, body: { method: 'paypal', recipient: { email: 'creator@example.com' } } };
    const path = `/apps/${own.appId}/affiliates/${affiliateId}/payee`;
    expect((await api.call('PUT', path, payee)).status).toBe(200);
    for (const [countsFrom, reason] of [
      [begin + 1, { exclusionReason: 'payee_changed' }],
      [begin, {}],
    ] as const) {
      await runOn(
        api.database.url,
        `alter table payees disable trigger payees_guard;
         update payees set set_at = to_timestamp(${countsFrom / 1_000}) - interval '1 day', counts_from = to_timestamp(${countsFrom / 1_000});
         alter table payees enable trigger payees_guard`,
      );
      expect(await nextRun()).toEqual({ date, estimatedCents: 320, minimumCents: 1_000, ...reason });
    }
    const body = { state: 'blocked', reason: 'Refunds of May' };
    const blocks = `/apps/${own.appId}/affiliates/${affiliateId}/payout-blocks`;
    expect((await api.call('POST', blocks, { key: own.key, body })).status).toBe(201);
    expect(await nextRun()).toBeUndefined();
  });

  test('the next run is next month on the day of the schedule once the run of this month is over', async () => {
    const own = await newApp(api);
    const headers = await signInCreator(api, own, await newAffiliate(api, own));
    const nextRun = async () =>
      (await get<{ nextRun?: { date: string } }>(headers, '/creator/overview')).nextRun?.date;
    const today = new Date(api.clock.now).toISOString().slice(0, 10);
    const payoutSchedule = { day: Number(today.slice(-2)), timezone: 'UTC', minimumCents: 0 };
    const settings = { key: own.key, body: { payoutSchedule } };
    expect((await api.call('PATCH', `/apps/${own.appId}/settings`, settings)).status).toBe(200);
    expect(await nextRun()).toBe(today);
    await api.sql`
      insert into payout_schedule_months (app_id, month) values (${own.appId}, ${today.slice(0, 7)})`;
    const date = (await nextRun()) ?? '';
    expect(date.slice(-2)).toBe(today.slice(-2));
    expect(Date.parse(date) - Date.parse(today)).toBeGreaterThanOrEqual(28 * DAY_MS);
  });

  test('the next run is left out where Postgres does not know the time zone, which is an old name that Node has', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const headers = await signInCreator(api, own, affiliateId);
    const { now } = api.clock;
    await insertEarning(api, own, {
      affiliateId,
      amountCents: 100,
      occurredAt: now - DAY_MS,
      dueAt: now + DAY_MS,
    });
    for (const [timezone, isKnown] of [
      ['America/Los_Angeles', true],
      ['US/Pacific-New', false],
    ] as const) {
      const body = { payoutSchedule: { day: 1, timezone, minimumCents: 0 } };
      const path = `/apps/${own.appId}/settings`;
      expect((await api.call('PATCH', path, { key: own.key, body })).status).toBe(200);
      const overview = await get<{ nextRun?: object }>(headers, '/creator/overview');
      expect(overview.nextRun !== undefined).toBe(isKnown);
    }
  });

  // @promise get-creator-timeseries, get-creator-links
  test('the time series and the links are the own ones, without revenue and campaigns', async () => {
    const { link } = await earn();
    await newLink(api, app, await newAffiliate(api, app), { slug: 'foreign' });
    const headers = await signInCreator(api, app, creator);
    const { points } = await get<{ points: Record<string, number>[] }>(
      headers,
      '/creator/timeseries?interval=month',
    );
    expect(points.reduce((sum, point) => sum + (point['commissionCents'] ?? 0), 0)).toBe(1450);
    expect(Object.keys(points[0] ?? {})).not.toContain('revenueCents');
    const { items } = await get<{ items: object[] }>(headers, '/creator/links');
    expect(items).toMatchObject([
      { id: link.id, url: expect.stringContaining(`/l/${app.linkSubdomain}/`), clicks: 0, earnedCents: 1450 },
    ]);
    expect(Object.keys(items[0] ?? {})).not.toContain('campaign');
  });

  // @promise get-creator-commissions
  test('the commissions have amount, status, due date and reason, and no id of a user or an event', async () => {
    const { held, refund } = await earn();
    const headers = await signInCreator(api, app, creator);
    const path = '/creator/commissions?status=pending';
    const { items } = await get<{ items: { id: string }[] }>(headers, path);
    expect(items).toMatchObject([
      { amountCents: 50 },
      {
        id: refund,
        kind: 'reversal',
        reversesCommissionId: held,
        amountCents: -400,
        reason: 'The purchase was refunded or disputed.',
      },
      {
        id: held,
        amountCents: 1000,
        status: 'pending',
        reason: 'A purchase of a user who entered your link code.',
      },
    ]);
    for (const item of items)
      for (const name of ['eventId', 'customerUserId', 'baseCents', 'affiliateId'])
        expect(item).not.toHaveProperty(name);
  });

  // @promise creator-sees-own
  test("the rows of another creator's payout are not even examined: short pages would show that it exists", async () => {
    await earn();
    const other = await signInCreator(api, app, await newAffiliate(api, app));
    const { id } = await api.sql.one<{ id: string }>`select id from payouts where affiliate_id = ${creator}`;
    const examinesItems = async (headers: Sent) => {
      sent = [];
      await get(headers, `/creator/commissions?payoutId=${id}`);
      return sent.some((text) => text.includes('payout_items'));
    };
    expect(await examinesItems(other)).toBe(false);
    expect(await examinesItems(await signInCreator(api, app, creator))).toBe(true);
  });

  // @promise get-creator-commission-totals, get-creator-commissions
  test('a range has a sum, and its rows as CSV without ids of users and events', async () => {
    const { paid } = await earn();
    const headers = await signInCreator(api, app, creator);
    const at = api.clock.now - 30 * DAY_MS;
    const range = `from=${at}&to=${at + 3}`;
    expect(await get(headers, `/creator/commissions/totals?${range}`)).toEqual({
      from: at,
      to: at + 3,
      totalCents: 700 - 200 + 300,
    });
    const path = `/creator/commissions?${range}`;
    const { text } = await api.call('GET', path, { headers: { ...headers, accept: 'text/csv' } });
    const [names = '', ...lines] = text.trimEnd().split('\r\n');
    const column = (name: string) => lines.map((line) => line.split(',')[names.split(',').indexOf(name)]);
    expect(column('amountCents')).toEqual(['300', '-200', '700']);
    expect(column('id').at(-1)).toBe(paid);
    expect(text).not.toMatch(/evt_|aff_|customer/);
  });

  // @promise get-creator-payouts, get-creator-statement, get-creator-csv
  test('a payout has a statement and a CSV with the sums that were paid', async () => {
    await earn();
    const headers = await signInCreator(api, app, creator);
    const { items } = await get<{ items: { id: string }[] }>(headers, '/creator/payouts');
    expect(items).toMatchObject([{ totalCents: 500, itemCount: 2 }]);
    const id = items[0]?.id ?? '';
    expect(await get(headers, `/creator/payouts/${id}/statement`)).toMatchObject({
      id,
      creatorName: 'Ada',
      appName: 'Lantern',
      totalCents: 500,
      earnedCents: 700,
      earnedCount: 1,
      takenBackCents: -200,
      takenBackCount: 1,
    });
    // Where the money is, as the founder states it.
    interface Stated {
      readonly money?: { readonly state: string };
    }
    interface Rows {
      readonly items: readonly Stated[];
    }
    const state = async (next: string) => {
      await api.call('POST', `/apps/${app.appId}/payouts/${id}/transfers`, {
        key: app.key,
        body: { state: next },
      });
      const list = await get<{ items: { money?: { state: string } }[] }>(headers, '/creator/payouts');
      const { money } = await get<{ money?: { state: string } }>(headers, `/creator/payouts/${id}/statement`);
      expect(list.items[0]?.money).toEqual(money);
      // Each row of the payout says the same, to the creator and to the founder.
      const own = await get<Rows>(headers, `/creator/commissions?payoutId=${id}`);
      const founders = await api.call<Rows>('GET', `/apps/${app.appId}/commissions?payoutId=${id}`, {
        key: app.key,
      });
      for (const rows of [own.items, founders.body.items])
        expect(rows.map((row) => row.money)).toEqual([money, money]);
      const { recentCommissions } = (
        await api.call<{ recentCommissions: (Stated & { readonly payoutId: string | null })[] }>(
          'GET',
          `/apps/${app.appId}/overview`,
          { key: app.key },
        )
      ).body;
      expect(recentCommissions.map((row) => row.money)).toEqual(
        recentCommissions.map(({ payoutId }) => (payoutId === id ? money : undefined)),
      );
      return money?.state;
    };
    expect(items[0]).not.toHaveProperty('money');
    expect(await state('sent')).toBe('sent');
    expect(await state('returned')).toBe('returned');
    expect(await state('return_withdrawn')).toBe('sent');
    expect(await state('withdrawn')).toBeUndefined();
    const csv = await api.call('GET', `/creator/payouts/${id}/csv`, { headers });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const lines = csv.text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('payout_id,commission_id,occurred_at,amount_usd,currency');
    expect(lines.slice(1).map((line) => line.split(',')[3])).toEqual(['7.00', '-2.00', '5.00']);
    expect(csv.text).not.toContain('evt_');
  });

  const PAGE = [
    '',
    '/overview',
    '/timeseries?interval=month',
    '/links',
    '/commissions',
    '/commissions?status=paid&limit=1',
    '/commissions/totals',
    '/payouts',
  ];
  const seenAs = (affiliateId: string) => `/apps/${app.appId}/affiliates/${affiliateId}/creator`;
  const payoutOf = async (affiliateId: string) =>
    (await api.sql.one<{ id: string }>`select id from payouts where affiliate_id = ${affiliateId}`).id;

  // @promise see-creator, see-creator-overview, see-creator-timeseries, see-creator-links, see-creator-commissions
  // @promise see-creator-commission-totals, see-creator-payouts, see-creator-statement, see-creator-csv, see-as-creator
  test('a founder with `read` gets the same bytes as the creator, with a key and with a session', async () => {
    await earn();
    const { key } = await createAccountKey(api.sql, app.accountId, ['read']);
    const own = await signInCreator(api, app, creator);
    const payout = `/payouts/${await payoutOf(creator)}`;
    for (const path of [...PAGE, `${payout}/statement`, `${payout}/csv`]) {
      for (const accept of ['application/json', 'text/csv']) {
        const read = async (at: string, headers: Sent) => {
          const answer = await api.call('GET', at + path, { headers: { ...headers, accept } });
          return [answer.status, answer.headers.get('content-type'), answer.text];
        };
        const seen = await read('/creator', own);
        expect(seen[0]).toBe(200);
        for (const founder of [await signIn(api, key), { authorization: `Bearer ${key}` }])
          expect(await read(seenAs(creator), founder)).toEqual(seen);
      }
    }
  });

  test('a founder sees as a creator neither the payout of another creator nor a creator of another app', async () => {
    await earn();
    const key = { key: app.key };
    const other = await newAffiliate(api, app, { name: 'Grace' });
    const id = await payoutOf(creator);
    for (const part of ['statement', 'csv'])
      expect((await api.call('GET', `${seenAs(other)}/payouts/${id}/${part}`, key)).status).toBe(404);
    const rows = await api.call('GET', `${seenAs(other)}/commissions?payoutId=${id}`, key);
    expect(rows.body).toEqual({ items: [], nextCursor: null });
    const elsewhere = await newApp(api, app);
    for (const path of PAGE) {
      const at = `/apps/${elsewhere.appId}/affiliates/${creator}/creator${path}`;
      expect((await api.call('GET', at, key)).status).toBe(404);
    }
  });

  // @promise see-as-creator
  test('seeing as a creator stores nothing, is in no list of sessions, and has no way to change anything', async () => {
    await earn();
    const other = await newAffiliate(api, app, { name: 'Grace' });
    const [own, founder] = [await signInCreator(api, app, creator), await signIn(api, app.key)];
    // In a browser that has both, each address counts only its own session.
    const both = { ...OWN_PAGE, cookie: `${own.cookie}; ${founder.cookie}` };
    const stored = async () =>
      await api.sql`
        select (select json_agg(s) from creator_sessions s) as sessions, (select json_agg(l) from creator_sign_in_links l) as links,
               (select count(*) from audit_rows) as changes`;
    const before = await stored();
    const payout = `${seenAs(creator)}/payouts/${await payoutOf(creator)}`;
    const pages = [...PAGE.map((path) => seenAs(other) + path), `${payout}/statement`, `${payout}/csv`];
    await later(DAY_MS, async () => {
      for (const path of pages) {
        const { status, headers } = await api.call('GET', path, { headers: both });
        expect([status, headers.get('set-cookie')]).toEqual([200, null]);
      }
      for (const path of ['', '/session', '/session/end', '/sessions', '/sessions/end-all'])
        for (const method of ['POST', 'PATCH', 'DELETE'])
          expect([404, 405]).toContain(
            (await api.call(method, seenAs(other) + path, { headers: both })).status,
          );
      expect(await stored()).toEqual(before);
    });
    expect(await get(both, seenAs(other))).toMatchObject({ name: 'Grace' });
    expect(await get(both, '/creator')).toMatchObject({ name: 'Ada' });
    const { sessions } = await get<{ sessions: object[] }>(own, '/creator/sessions');
    expect(sessions).toMatchObject([{ isCurrent: true }]);
  });

  // @promise see-as-creator
  test('seeing as a creator ends with the session of the founder, and when its key is revoked', async () => {
    const { id: keyId, key } = await createAccountKey(api.sql, app.accountId, ['read']);
    const [first, second] = [await signIn(api, key), await signIn(api, key)];
    expect(await statusOf(first, seenAs(creator))).toBe(200);
    await api.call('POST', '/session/end', { headers: first });
    expect([await statusOf(first, seenAs(creator)), await statusOf(second, seenAs(creator))]).toEqual([
      401, 200,
    ]);
    await api.sql`update account_keys set revoked_at = ${new Date(api.clock.now)} where id = ${keyId}`;
    expect(await statusOf(second, seenAs(creator))).toBe(401);
  });
});
