import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createAccountKey, revokeAccountKey, rotateAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { createSignInLink, deleteExpiredSessions } from '../../src/db/sessions.ts';
import type { AccountId, KeyId } from '../../src/domain/ids.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newAccount, newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { runOn } from '../support/postgres-admin.ts';
import { cookieOf, OWN_PAGE, signIn } from '../support/sessions.ts';

const MINUTE_MS = 60_000;

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

type Headers_ = Readonly<Record<string, string>>;

const statusOf = async (headers: Headers_, path = '/apps') =>
  (await api.call('GET', path, { headers })).status;

const spend = async (token: string, extra: object = {}) =>
  await api.call<{ account: { id: string; name: string }; permissions: string[]; code?: string }>(
    'POST',
    '/session',
    { body: { token, ...extra }, headers: OWN_PAGE },
  );

const newLink = async (accountId: AccountId | null, validMs = 15 * MINUTE_MS) =>
  await createSignInLink(api.sql, accountId, { now: api.clock.now, validMs });

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

describe('signing in with a key', () => {
  // @promise post-session, session-cookie
  test('the cookie is out of reach for scripts, other sites and http', async () => {
    const { status, headers, body, text } = await api.call('POST', '/session', {
      body: { key: app.key },
      headers: { ...OWN_PAGE, 'user-agent': 'A browser' },
    });
    expect(status).toBe(200);
    expect(headers.get('set-cookie')).toMatch(
      /^__Host-tributary=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(body).toMatchObject({
      account: { id: app.accountId },
      permissions: PERMISSIONS,
      raisedUntil: null,
    });
    expect(text).not.toContain(cookieOf(headers).split('=')[1]);
  });

  test('without https, the cookie has a plain name, and only that one counts', async () => {
    const plain = await startTestApi({ publicUrl: 'http://10.0.0.5:3000' });
    const { key } = await newAccount(plain);
    const { headers } = await plain.call('POST', '/session', { body: { key }, headers: OWN_PAGE });
    expect(headers.get('set-cookie')).toMatch(/^tributary=[\w-]{43}; .*SameSite=Strict$/);
    const cookie = cookieOf(headers);
    const get = async (sent: Headers_) => (await plain.call('GET', '/apps', { headers: sent })).status;
    // Over http in a network, browsers send no Sec-Fetch-Site, and no Origin with a GET.
    const statuses = [
      await get({ cookie, 'tributary-console': '1' }),
      await get({ cookie }),
      await get({ cookie: `__Host-${cookie}`, ...OWN_PAGE }),
    ];
    // Before the expectation: a server that stays open keeps the run from ending.
    await plain.close();
    expect(statuses).toEqual([200, 403, 401]);
  });

  // @promise get-session
  test('GET /session tells the session of the browser, and whether there is an account', async () => {
    const headers = await signIn(api, app.key);
    const own = await api.call('GET', '/session', { headers });
    expect(own.body).toMatchObject({ hasAccounts: true, session: { account: { id: app.accountId } } });
    expect((await api.call('GET', '/session')).body).toEqual({
      hasAccounts: true,
      session: null,
      takesPasskeys: true,
    });
    const foreign = await api.call('GET', '/session', {
      headers: { ...headers, 'sec-fetch-site': 'same-site' },
    });
    expect(foreign).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
  });

  test.each([
    ['an unknown key', { key: 'tri_sk_live_x' }, 401],
    ['an SDK key', { key: 'pk_live_x' }, 401],
    ['a key and a token', { key: 'x', token: 'y' }, 400],
    ['nothing', {}, 400],
  ])('%s signs nobody in', async (_, body, status) => {
    const response = await api.call('POST', '/session', { body, headers: OWN_PAGE });
    expect({ status: response.status, cookie: response.headers.get('set-cookie') }).toEqual({
      status,
      cookie: null,
    });
  });

  test('a page of another site signs nobody in', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
    ]) {
      const response = await api.call('POST', '/session', { body: { key: app.key }, headers });
      expect(response).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
      expect(response.headers.get('set-cookie')).toBeNull();
    }
  });

  // @promise sign-in-limit
  test('an address has ten attempts a minute', async () => {
    const limited = await startTestApi({ rateLimits: createRateLimits({ ...NO_RATE_LIMITS, signIn: 10 }) });
    const { key } = await newAccount(limited);
    const statuses = [];
    for (let nth = 0; nth < 11; nth += 1) {
      const response = await limited.call('POST', '/session', { body: { key: `tri_sk_live_${nth}` } });
      statuses.push(response.status);
    }
    const { status: ofValid } = await limited.call('POST', '/session', { body: { key } });
    await limited.close();
    expect([statuses, ofValid]).toEqual([[...Array.from({ length: 10 }, () => 401), 429], 429]);
  });
});

describe('a session', () => {
  // @promise session-own-origin
  test.each<[string, string, Headers_, boolean]>([
    ['its own page', 'POST', { 'sec-fetch-site': 'same-origin' }, true],
    [
      'another port of the same host',
      'POST',
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9' },
      false,
    ],
    ['another site', 'POST', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, false],
    ['an address typed by a person', 'GET', { 'sec-fetch-site': 'none' }, true],
    ['no page', 'POST', { 'sec-fetch-site': 'none' }, false],
    [
      'its own page, in a browser without Sec-Fetch-Site',
      'POST',
      { origin: 'https://api.example.test' },
      true,
    ],
    ['the same host over http', 'POST', { origin: 'http://api.example.test' }, false],
    ['a page without an origin', 'POST', { origin: 'null' }, false],
    ['no page, without Sec-Fetch-Site', 'POST', {}, false],
  ])('a call from %s (%s %j) is allowed: %s', async (_, method, headers, isAllowed) => {
    const { cookie } = await signIn(api, app.key);
    const body = method === 'POST' ? { body: { name: 'x' } } : {};
    const response = await api.call(method, '/apps', { ...body, headers: { cookie, ...headers } });
    expect(response.status).toBe(isAllowed ? (method === 'POST' ? 201 : 200) : 403);
    if (!isAllowed) expect(response.body['code']).toBe('cross_origin');
  });

  // @promise session-own-origin
  test('a page over http of the same host and port is another origin for a service with https', async () => {
    const { cookie } = await signIn(api, app.key);
    // The browser sends the host and the port that the request itself has.
    const { status, body } = await api.call('POST', '/apps', {
      headers: { cookie, origin: new URL(api.url).origin },
      body: { name: 'x' },
    });
    expect({ status, code: (body as { code?: string }).code }).toEqual({ status: 403, code: 'cross_origin' });
  });

  // @promise session-not-beside-key
  test('the cookie does not count beside an Authorization header, and not under /sdk', async () => {
    const headers = await signIn(api, app.key);
    for (const authorization of ['Bearer x', 'Basic eDp5', `Bearer ${app.sdkKey}`]) {
      expect(await statusOf({ ...headers, authorization })).toBe(401);
    }
    const other = await newAccount(api, ['write']);
    expect(await statusOf({ ...headers, authorization: `Bearer ${other.key}` })).toBe(403);
    const body = { deviceId: 'd', firstOpenAt: api.clock.now, affiliateCode: 'x' };
    const sdk = await api.call('POST', '/sdk/install', { headers, body });
    expect(sdk).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
  });

  // @promise session-ends-with-key
  test('revoking its key, or its end after a rotation, ends it', async () => {
    const { id: keyId, key } = await createAccountKey(api.sql, app.accountId, ['read']);
    const headers = await signIn(api, key);
    const rotated = await createAccountKey(api.sql, app.accountId, ['read']);
    const ofRotated = await signIn(api, rotated.key);
    await rotateAccountKey(api.sql, rotated.id, api.clock.now, api.clock.now + MINUTE_MS);
    expect([await statusOf(headers), await statusOf(ofRotated)]).toEqual([200, 200]);
    await revokeAccountKey(api.sql, keyId);
    expect(await statusOf(headers)).toBe(401);
    expect(await later(MINUTE_MS, () => statusOf(ofRotated))).toBe(401);
  });

  // @promise session-permissions-of-key
  test('it has the permissions that its key has at each call', async () => {
    const { id, key } = await createAccountKey(api.sql, app.accountId, ['read', 'setup']);
    const headers = await signIn(api, key);
    const create = async () => (await api.call('POST', '/apps', { headers, body: { name: 'x' } })).status;
    expect(await create()).toBe(201);
    await api.sql`update account_keys set permissions = '{read}' where id = ${id}`;
    expect(await create()).toBe(403);
  });

  // @promise session-expiry
  test('it ends after seven days without a call, and after thirty days in any case', async () => {
    const headers = await signIn(api, app.key);
    expect(await later(7 * DAY_MS, () => statusOf(headers))).toBe(401);
    for (let day = 6; day < 30; day += 6) {
      expect(await later(day * DAY_MS, () => statusOf(headers))).toBe(200);
    }
    expect(await later(30 * DAY_MS - 1, () => statusOf(headers))).toBe(200);
    expect(await later(30 * DAY_MS, () => statusOf(headers))).toBe(401);
  });

  // @promise post-session-end
  test('signing out ends it and removes the cookie; another sign-in of the browser replaces it', async () => {
    const first = await signIn(api, app.key);
    const { headers } = await api.call('POST', '/session', { body: { key: app.key }, headers: first });
    const second = { ...OWN_PAGE, cookie: cookieOf(headers) };
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
    const out = await api.call('POST', '/session/end', { headers: second });
    expect(out.headers.get('set-cookie')).toMatch(/^__Host-tributary=; Path=\/; Max-Age=0; HttpOnly/);
    expect(await statusOf(second)).toBe(401);
  });

  // @promise get-sessions, post-sessions-id-end, post-sessions-end-all
  test('a key with setup sees and ends all sessions of the account, another one its own', async () => {
    const { accountId, key } = await newAccount(api);
    const owner = await signIn(api, key);
    const reader = await signIn(api, (await createAccountKey(api.sql, accountId, ['read'])).key);
    const list = async (headers: Headers_) =>
      (await api.call<{ sessions: { id: string; isCurrent: boolean }[] }>('GET', '/sessions', { headers }))
        .body.sessions;
    const all = await list(owner);
    expect(all.map(({ isCurrent }) => isCurrent)).toEqual([false, true]);
    expect((await list(reader)).map(({ id }) => id)).toEqual([all[0]?.id]);
    const endOf = async (headers: Headers_, id = '') =>
      (await api.call('POST', `/sessions/${id}/end`, { headers })).status;
    expect(await endOf(reader, all[1]?.id)).toBe(404);
    expect(await endOf(owner, all[0]?.id)).toBe(200);
    expect(await statusOf(reader)).toBe(401);
    const others = [await signIn(api, key), await signIn(api, key)];
    const ended = await api.call('POST', '/sessions/end-all', { headers: owner });
    expect(ended.body).toEqual({ ended: 2 });
    expect([await statusOf(owner), ...(await Promise.all(others.map((one) => statusOf(one))))]).toEqual([
      200, 401, 401,
    ]);
  });

  test('the token and the key are stored as hashes only, and expired rows are deleted', async () => {
    const { cookie } = await signIn(api, app.key);
    const token = cookie.split('=')[1] ?? '';
    const link = await newLink(app.accountId);
    const rows = await api.sql<{ text: string }>`
      select s::text as text from sessions s union all select l::text from sign_in_links l`;
    const stored = rows.map(({ text }) => text).join('\n');
    for (const secret of [token, link, Buffer.from(token).toString('hex')])
      expect(stored).not.toContain(secret);
    const count = async () =>
      await api.sql.one<{ sessions: number; links: number }>`
        select (select count(*) from sessions)::int as sessions, (select count(*) from sign_in_links)::int as links`;
    await deleteExpiredSessions(api.sql, api.clock.now + 15 * MINUTE_MS);
    expect(await count()).toMatchObject({ links: 0 });
    expect((await count()).sessions).toBeGreaterThan(0);
    await deleteExpiredSessions(api.sql, api.clock.now + 31 * DAY_MS);
    expect(await count()).toEqual({ links: 0, sessions: 0 });
  });
});

describe('a sign-in link', () => {
  // @promise sign-in-link-once
  test('it works once, also for two callers at the same time', async () => {
    const token = await newLink(app.accountId);
    const answers = await Promise.all([spend(token), spend(token), spend(token)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401]);
    const again = await spend(token);
    expect(again).toMatchObject({ status: 401, body: { code: 'invalid_sign_in_link' } });
    expect(again.headers.get('set-cookie')).toBeNull();
  });

  test('it signs in also if the session that it replaces cannot be ended', async () => {
    const former = await signIn(api, app.key);
    const token = await newLink(app.accountId);
    await runOn(
      api.database.url,
      `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'broken for the test'; end $$;
       create trigger test_breaks before update of ended_at on sessions for each row execute function test_breaks()`,
    );
    try {
      const { status, headers } = await api.call('POST', '/session', { body: { token }, headers: former });
      expect(status).toBe(200);
      expect(await statusOf({ ...OWN_PAGE, cookie: cookieOf(headers) })).toBe(200);
    } finally {
      await runOn(api.database.url, 'drop trigger test_breaks on sessions; drop function test_breaks()');
    }
  });

  test('it ends after its time, and with its key', async () => {
    const [late, revoked] = [await newLink(app.accountId), await newLink(app.accountId)];
    expect((await later(15 * MINUTE_MS, () => spend(late))).status).toBe(401);
    await api.sql`update account_keys set revoked_at = now() where account_id = ${app.accountId} and is_console`;
    expect((await spend(revoked)).status).toBe(401);
    expect((await spend(await newLink(app.accountId))).status).toBe(200);
  });

  test('opening it spends nothing: only the POST of a button does', async () => {
    const token = await newLink(app.accountId);
    await api.call('GET', '/session', { headers: OWN_PAGE });
    expect((await spend(token)).body).toMatchObject({ account: { id: app.accountId } });
  });

  // @promise first-link-creates-account
  test('the first link of an installation creates the account', async () => {
    const token = await newLink(null);
    const { status, body, headers } = await spend(token, { accountName: '  Lantern Ltd ' });
    expect({ status, ...body }).toMatchObject({
      status: 200,
      account: { name: 'Lantern Ltd' },
      permissions: PERMISSIONS,
    });
    const cookie = { ...OWN_PAGE, cookie: cookieOf(headers) };
    expect((await api.call('POST', '/apps', { headers: cookie, body: { name: 'x' } })).status).toBe(201);
    expect((await spend(token)).status).toBe(401);
    const keys = await api.sql`select from account_keys where account_id = ${body.account.id}`;
    expect(keys.length).toBe(1);
  });

  test('all links of an account use one key', async () => {
    const { id } = await createAccount(api.sql, 'Links');
    await Promise.all([newLink(id), newLink(id), newLink(id)]);
    const rows = await api.sql<{ isConsole: boolean }>`
      select is_console from account_keys where account_id = ${id}`;
    expect(rows).toEqual([{ isConsole: true }]);
  });
});

describe('paying with a session', () => {
  const raise = async (headers: Headers_, key: string) =>
    await api.call('POST', '/session/raise', { headers, body: { key } });

  // @promise post-session-raise, session-pays-when-raised
  test('it needs a key with payout, on which the payout is booked, for fifteen minutes', async () => {
    const payer = await createAccountKey(api.sql, app.accountId, ['payout']);
    const headers = await signIn(api, app.key);
    const path = `/apps/${app.appId}/payouts/pay_01kbf2z4x8e0rvq1n3m5t7w9yc/csv`;
    expect(await api.call('GET', path, { headers })).toMatchObject({
      status: 403,
      body: { code: 'session_not_raised' },
    });
    expect(await raise(headers, payer.key)).toMatchObject({ status: 200, body: { raisedKeyId: payer.id } });
    expect(await statusOf(headers, path)).toBe(404);
    // No workflow runs here, so the request is closed without a payout.
    const affiliateId = await newAffiliate(api, app);
    const pay = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
    expect((await api.call('POST', pay, { headers, body: {} })).status).toBe(503);
    expect(await api.sql`select key_id from payout_requests where affiliate_id = ${affiliateId}`).toEqual([
      { keyId: payer.id },
    ]);
    expect(await later(15 * MINUTE_MS, () => statusOf(headers, path))).toBe(403);
    await revokeAccountKey(api.sql, payer.id);
    expect(await statusOf(headers, path)).toBe(403);
  });

  test("a key without payout, another account's key and an unknown key raise nothing", async () => {
    const headers = await signIn(api, app.key);
    const keys = [
      (await createAccountKey(api.sql, app.accountId, ['read', 'write', 'setup'])).key,
      (await newAccount(api)).key,
      'x',
    ];
    for (const key of keys) {
      expect(await raise(headers, key)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    }
  });
});

// @promise session-pays-when-raised
test.each([
  ['expires', { expired: true }],
  ['loses the permission', { expired: false }],
])(
  'a session stops paying when the key that raised it %s, and that key raises none',
  async (_, { expired }) => {
    const { id, key } = await createAccountKey(api.sql, app.accountId, ['payout']);
    const headers = await signIn(api, app.key);
    const raise = async () => (await api.call('POST', '/session/raise', { headers, body: { key } })).status;
    const path = `/apps/${app.appId}/payouts/pay_01kbf2z4x8e0rvq1n3m5t7w9yc/csv`;
    expect([await raise(), await statusOf(headers, path)]).toEqual([200, 404]);
    await (expired
      ? api.sql`update account_keys set expires_at = ${new Date(api.clock.now)} where id = ${id}`
      : api.sql`update account_keys set permissions = '{read}' where id = ${id}`);
    expect([await statusOf(headers, path), await raise()]).toEqual([403, 403]);
  },
);

describe('keys in a session', () => {
  interface Created {
    readonly id: KeyId;
    readonly key: string;
    readonly code?: string;
  }
  const keysOf = (accountId: string) => `/accounts/${accountId}/keys`;

  // @promise get-accounts-accountid-keys, post-accounts-accountid-keys
  test('a new key has its label and permissions, and its text is returned once', async () => {
    const { accountId, key } = await newAccount(api);
    const headers = await signIn(api, key);
    const body = { label: 'Ann', permissions: ['read', 'read'] };
    const created = await api.call<Created>('POST', keysOf(accountId), { headers, body });
    expect(created).toMatchObject({ status: 201, body: { label: 'Ann', permissions: ['read'] } });
    expect((await api.call('GET', '/apps', { key: created.body.key })).status).toBe(200);
    const list = await api.call('GET', keysOf(accountId), { headers });
    expect(list.body['keys']).toMatchObject([
      { lastUsedAt: api.clock.now, isForSignInLinks: false },
      { id: created.body.id, label: 'Ann', lastUsedAt: api.clock.now },
    ]);
    expect(list.text).not.toContain(created.body.key);
  });

  // @promise get-accounts-accountid-keys
  test('of an account that has made thousands of keys, the list has the newest valid ones and the newest that have ended', async () => {
    const { accountId, key } = await newAccount(api);
    const headers = await signIn(api, key);
    await api.sql`
      insert into account_keys (id, account_id, key_sha256, display, permissions, created_at, expires_at, revoked_at)
      select 'key_' || substr(new_audit_id(), 5), ${accountId}, sha256(convert_to(${accountId} || n, 'UTF8')), n::text, '{read}',
             now() + n * interval '1 second', case when n % 2 = 0 then '2026-01-01'::timestamptz end, case when n % 4 = 0 then now() end
        from generate_series(1, 3000) n`;
    const { body } = await api.call<{
      keys: readonly { display: string; expiresAt: number | null; revokedAt: number | null }[];
    }>('GET', keysOf(accountId), { headers });
    const isValid = (one: (typeof body.keys)[number]) => one.expiresAt === null && one.revokedAt === null;
    const newest = (rows: typeof body.keys) => [rows.length, rows[0]?.display, rows.at(-1)?.display];
    expect(newest(body.keys.filter(isValid))).toEqual([1_000, '1001', '2999']);
    expect(newest(body.keys.filter((one) => !isValid(one)))).toEqual([100, '2802', '3000']);
  });

  // @promise key-within-session
  test('a session gives no permission that it lacks, neither to a new key nor by a rotation', async () => {
    const { accountId, key: ownerKey } = await newAccount(api);
    const { key } = await createAccountKey(api.sql, accountId, ['read', 'setup']);
    const headers = await signIn(api, key);
    const body = { label: 'x', permissions: ['read', 'write'] };
    expect(await api.call('POST', keysOf(accountId), { headers, body })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    });
    const owner = await api.sql.one<{ id: string }>`
      select id from account_keys where account_id = ${accountId} order by created_at limit 1`;
    const rotate = `${keysOf(accountId)}/${owner.id}/rotate`;
    expect((await api.call('POST', rotate, { headers, body: {} })).status).toBe(403);
    expect((await api.call('GET', '/apps', { key: ownerKey })).status).toBe(200);
  });

  // @promise payout-key-after-sign-in
  test('a key with payout is created soon after the sign-in, or in a session that may pay', async () => {
    const { accountId, key } = await newAccount(api);
    const headers = await signIn(api, key);
    const create = async () =>
      await api.call<Created>('POST', keysOf(accountId), {
        headers,
        body: { label: 'x', permissions: ['payout'] },
      });
    expect((await create()).status).toBe(201);
    await later(16 * MINUTE_MS, async () => {
      expect(await create()).toMatchObject({ status: 403, body: { code: 'session_not_raised' } });
      await api.call('POST', '/session/raise', { headers, body: { key } });
      expect((await create()).status).toBe(201);
    });
  });

  // @promise post-accounts-accountid-keys-keyid-rotate, post-accounts-accountid-keys-keyid-revoke
  test('a rotated key has the same label and permissions; a revoked one ends at once', async () => {
    const { accountId, key } = await newAccount(api);
    const headers = await signIn(api, key);
    const body = { label: 'Job', permissions: ['read'] };
    const first = (await api.call<Created>('POST', keysOf(accountId), { headers, body })).body;
    const at = (id: string, verb: string) => `${keysOf(accountId)}/${id}/${verb}`;
    const rotated = await api.call<Created>('POST', at(first.id, 'rotate'), {
      headers,
      body: { graceSeconds: 60 },
    });
    expect(rotated).toMatchObject({
      status: 200,
      body: { label: 'Job', permissions: ['read'], previousKeyExpiresAt: api.clock.now + MINUTE_MS },
    });
    const works = async (text: string) => (await api.call('GET', '/apps', { key: text })).status === 200;
    expect([await works(first.key), await works(rotated.body.key)]).toEqual([true, true]);
    expect(await later(MINUTE_MS, () => works(first.key))).toBe(false);
    const revoked = await api.call('POST', at(rotated.body.id, 'revoke'), { headers });
    expect(revoked).toMatchObject({ status: 200, body: { revokedAt: expect.any(Number) } });
    expect(await works(rotated.body.key)).toBe(false);
    expect(await api.call('POST', at(rotated.body.id, 'rotate'), { headers, body: {} })).toMatchObject({
      status: 409,
      body: { code: 'key_not_rotatable' },
    });
  });
});
