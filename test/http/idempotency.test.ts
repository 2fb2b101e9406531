import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { removeExpired } from '../../src/db/retention.ts';
import { DEFAULT_RETENTION } from '../../src/domain/retention.ts';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql, Statements } from '../../src/db/sql.ts';
import type { PayoutRunId } from '../../src/domain/ids.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { routes } from '../../src/http/routes.ts';
import { newAccount, newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { closeGate } from '../support/gate.ts';
import { setOldAddress } from '../support/payee-codes.ts';
import { requestOf } from '../support/route-requests.ts';
import { signIn } from '../support/sessions.ts';
import { settleRun } from '../support/settle-run.ts';
import { newTenant } from '../support/tenant.ts';
import type { Tenant } from '../support/tenant.ts';
import { untilWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi({ sendsMail: true });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const post = (path: string, body: unknown, idempotencyKey: string, key = app.key) =>
  api.call<Record<string, string>>('POST', path, {
    key,
    body,
    headers: { 'idempotency-key': idempotencyKey },
  });

const affiliatesPath = () => `/apps/${app.appId}/affiliates`;
const countAffiliates = async (owner = app) =>
  (await api.sql.one<{ n: number }>`select count(*)::int as n from affiliates where app_id = ${owner.appId}`)
    .n;

describe('a repeated call', () => {
  // @promise idempotency-24-h
  test('a repeated call returns the stored status and body, does nothing else, and is marked as replayed', async () => {
    const key = randomUUID();
    const before = await countAffiliates();
    const first = await post(affiliatesPath(), { name: 'Ann' }, key);
    const second = await post(affiliatesPath(), { name: 'Ann' }, key);
    expect(first.status).toBe(201);
    expect(second).toMatchObject({ status: 201, text: first.text });
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(await countAffiliates()).toBe(before + 1);
  });

  test('a repeated call is a 503 while SECRETS_KEY lacks the key of the stored response', async () => {
    const key = randomUUID();
    const before = await countAffiliates();
    expect((await post(affiliatesPath(), { name: 'Ann' }, key)).status).toBe(201);
    await api.sql`update idempotency_keys set response_key_id = 'gone', seed_key_id = 'gone' where idempotency_key = ${key}`;
    const again = await post(affiliatesPath(), { name: 'Ann' }, key);
    expect([again.status, again.headers.get('retry-after')]).toEqual([503, '60']);
    expect(await countAffiliates()).toBe(before + 1);
  });

  // @promise stored-response-encrypted
  test.each([
    ['a new app', () => '/apps', { name: 'Another app' }],
    ['a rotated SDK key', () => `/apps/${app.appId}/sdk-key/rotate`, {}],
    [
      'affiliates in bulk',
      () => `/apps/${app.appId}/affiliates/bulk`,
      { rows: [{ name: 'A' }, { name: 'B' }] },
    ],
  ])(
    'a repeat for %s returns the same keys, which are stored only encrypted or hashed',
    async (_name, path, body) => {
      const key = randomUUID();
      const first = await post(path(), body, key);
      expect(first.status).toBeLessThan(300);
      expect((await post(path(), body, key)).text).toBe(first.text);
      const stored = await api.sql.one<{ text: string }>`
      select encode(response, 'escape') || encode(seed, 'escape') as text from idempotency_keys where idempotency_key = ${key}`;
      expect(stored.text).not.toContain(first.body['sdkKey'] ?? 'created');
    },
  );

  test('a 409 is stored as well', async () => {
    const affiliateId = await newAffiliate(api, app);
    const body = { affiliateId, destinationUrl: 'https://example.com', slug: 'idem' };
    await api.call('POST', `/apps/${app.appId}/links`, { key: app.key, body });
    const key = randomUUID();
    const first = await post(`/apps/${app.appId}/links`, body, key);
    expect(first).toMatchObject({ status: 409, body: { code: 'slug_taken' } });
    await api.sql`update links set active = active where false`;
    const second = await post(`/apps/${app.appId}/links`, body, key);
    expect(second).toMatchObject({ status: 409, text: first.text });
    expect(second.headers.get('content-type')).toBe('application/problem+json');
  });

  // @promise idempotency-refusals
  test('a malformed request does not use the key, so the corrected one runs', async () => {
    const key = randomUUID();
    expect((await post(affiliatesPath(), { name: '' }, key)).status).toBe(400);
    expect((await post(affiliatesPath(), { name: 'Corrected' }, key)).status).toBe(201);
  });

  // @promise idempotency-refusals
  test('a 403 of a session that may not pay does not use the key, so the same request runs once the session may', async () => {
    const path = `/apps/${app.appId}/policies`;
    const policy = await api.call<{ id: string }>('POST', path, { key: app.key, body: { name: 'Standard' } });
    const session = await signIn(api, app.key);
    const key = randomUUID();
    const body = { base: 'gross', rules: [{ flatCents: 500, aboveBase: true }] };
    const publish = async () =>
      await api.call('POST', `${path}/${policy.body.id}/versions`, {
        headers: { ...session, 'idempotency-key': key },
        body,
      });
    const rows = async () => await api.sql`select from idempotency_keys where idempotency_key = ${key}`;
    expect(await publish()).toMatchObject({ status: 403, body: { code: 'session_not_raised' } });
    expect(await rows()).toEqual([]);
    await api.call('POST', '/session/raise', { headers: session, body: { key: app.key } });
    const published = await publish();
    expect(published).toMatchObject({ status: 201, body: { version: 1 } });
    expect(await publish()).toMatchObject({ status: 201, text: published.text });
    expect(await rows()).toHaveLength(1);
  });
});

/** The export keeps its request, and each download is noted. */
const NOT_KEEPING = ['exportPayout', 'downloadPayoutRunFile'];

/** Drafts a run that pays somebody, and returns its approval. */
async function approvalIn({ appId, key }: Tenant): Promise<{ readonly path: string; readonly body: object }> {
  const path = `/apps/${appId}/payout-runs`;
  const drafted = await post(path, { withoutPayee: 'include' }, randomUUID(), key);
  const { id, totalCents } = JSON.parse(drafted.text) as { id: string; totalCents: number };
  return { path: `${path}/${id}/approve`, body: { expectedTotalCents: totalCents } };
}

/** Pays a run, and returns the request of a route about it. */
async function requestOfSettled(
  tenant: Tenant,
  path: string,
): Promise<{ readonly path: string; readonly body: object }> {
  const approval = await approvalIn(tenant);
  const { text } = await post(approval.path, approval.body, randomUUID(), tenant.key);
  const { id } = JSON.parse(text) as { id: PayoutRunId };
  await settleRun(api.sql, id);
  const of = (name: string) => ({ path: `/apps/${tenant.appId}/payout-runs/${id}/${name}` });
  const csv = 'Key,Status\nnone,Sent';
  if (path.endsWith('/transfers')) return { ...of('transfers'), body: { state: 'sent' } };
  return path.endsWith('/preview')
    ? { ...of('results/preview'), body: { csv } }
    : { ...of('results'), body: { csv, expected: { sentCount: 0, returnedCount: 0 } } };
}

/** Routes about a settled run. */
const OF_SETTLED = ['addPayoutRunTransfers', 'previewPayoutRunResults', 'addPayoutRunResults'];

describe('every POST with an account key', () => {
  const posts = routes.filter(({ method, auth }) => method === 'POST' && auth === 'account');
  const keeping = posts.filter(({ operationId }) => !NOT_KEEPING.includes(operationId));
  let owner: Tenant;
  beforeAll(async () => {
    owner = await newTenant(api, 'owner');
    await setOldAddress(api.sql, owner.ids.affiliate, 'creator@example.com');
  });

  // @promise idempotency-key
  test('every POST with an account key stores its responses, or is the export, or a download that is counted', () => {
    expect(posts).toHaveLength(keeping.length + NOT_KEEPING.length);
  });

  // @promise idempotency-key
  test.each(keeping.map((route) => [route.path, route] as const))(
    'POST %s honours the idempotency key',
    async (_path, route) => {
      const asked = requestOf(route, ({ kind }) => owner.ids[kind]);
      const isOfSettled = OF_SETTLED.includes(route.operationId);
      // A run pays once what is due.
      const tenant = isOfSettled ? await newTenant(api, route.operationId) : owner;
      const { path, body } = isOfSettled
        ? await requestOfSettled(tenant, route.path)
        : route.operationId === 'approvePayoutRun'
          ? await approvalIn(owner)
          : asked;
      const key = randomUUID();
      const first = await post(path, body, key, tenant.key);
      expect(first.status).toBeLessThan(300);
      const second = await post(path, body, key, tenant.key);
      expect(second).toMatchObject({ status: first.status, text: first.text });
      expect(second.headers.get('idempotency-replayed')).toBe('true');
    },
  );
});

describe('the same key for another request', () => {
  // @promise idempotency-conflict
  test('the same key with another body, path or app is a 409 and creates nothing', async () => {
    const key = randomUUID();
    const other = await newApp(api, app);
    await post(affiliatesPath(), { name: 'Ann' }, key);
    for (const [path, body] of [
      [affiliatesPath(), { name: 'Bob' }],
      [`/apps/${other.appId}/affiliates`, { name: 'Ann' }],
      [`/apps/${app.appId}/sdk-key/rotate`, {}],
    ] as const) {
      expect(await post(path, body, key)).toMatchObject({
        status: 409,
        body: { code: 'idempotency_key_reused' },
      });
    }
    expect(await countAffiliates(other)).toBe(0);
  });

  // @promise idempotency-per-account
  test('two accounts can use the same key', async () => {
    const key = randomUUID();
    const other = await newApp(api, await newAccount(api));
    await post(affiliatesPath(), { name: 'Ann' }, key);
    expect((await post(`/apps/${other.appId}/affiliates`, { name: 'Bob' }, key, other.key)).status).toBe(201);
  });

  test('a key of an export is a 409 for another call, and the reverse', async () => {
    const affiliateId = await newAffiliate(api, app);
    const exportPath = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
    const ofExport = randomUUID();
    await api.sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, idempotency_key, status, settled_at, expires_at)
      select 'req_01kbf2z4x8e0rvq1n3m5t7w9yc', ${app.appId}, ${affiliateId}, ${app.accountId}, id, ${ofExport}, 'empty', now(), now()
        from account_keys where account_id = ${app.accountId} limit 1`;
    expect(await post(affiliatesPath(), { name: 'Ann' }, ofExport)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_reused' },
    });
    const ofCreate = randomUUID();
    await post(affiliatesPath(), { name: 'Ann' }, ofCreate);
    expect(await post(exportPath, {}, ofCreate)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_reused' },
    });
  });

  test.each([['with space'], ['x'.repeat(256)], ['ä']])('the malformed key %s is a 400', async (key) => {
    expect((await post(affiliatesPath(), { name: 'Ann' }, Buffer.from(key).toString('latin1'))).status).toBe(
      400,
    );
  });
});

test('of simultaneous calls with one key one runs, and the others get its response or a 409', async () => {
  const key = randomUUID();
  const before = await countAffiliates();
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => post(affiliatesPath(), { name: 'Once' }, key)),
  );
  expect(await countAffiliates()).toBe(before + 1);
  const created = responses.filter(({ status }) => status === 201);
  expect(new Set(created.map(({ text }) => text)).size).toBe(1);
  for (const response of responses.filter(({ status }) => status !== 201)) {
    expect(response).toMatchObject({ status: 409, body: { code: 'idempotency_key_in_use' } });
    expect(response.headers.get('retry-after')).toBe('1');
  }
  expect((await post(affiliatesPath(), { name: 'Once' }, key)).text).toBe(created[0]?.text);
});

describe('an interrupted call', () => {
  /** Returns a database connection that fails right after the statement that `after` matches. */
  function failingAfter(sql: Sql, after: RegExp): { sql: Sql; failed: () => number } {
    let failures = 0;
    const isCut = (strings: TemplateStringsArray) => after.test(strings.join('?'));
    const cut = (strings: TemplateStringsArray) => {
      if (isCut(strings)) end();
    };
    const end = () => {
      failures += 1;
      throw new TypeError('the process was cut off');
    };
    const failing = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const rows = await sql(strings, ...values);
      cut(strings);
      return rows;
    }) as unknown as Sql;
    const one = async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const row = await sql.one(strings, ...values);
      cut(strings);
      return row;
    };
    const transaction = async <T>(work: (tx: Statements) => Promise<T>) => {
      let endsHere = false;
      const result = await sql.transaction(async (tx) => {
        const watched = async (strings: TemplateStringsArray, ...values: unknown[]) => {
          endsHere ||= isCut(strings);
          return await tx(strings, ...values);
        };
        return await work(Object.assign(watched, tx));
      });
      if (endsHere) end();
      return result;
    };
    const own = { one, transaction, actingAs: () => cutSql, share: () => cutSql };
    const cutSql: Sql = Object.assign(failing, sql, own);
    return { sql: cutSql, failed: () => failures };
  }

  test.each([
    ['after it created an affiliate', /insert into affiliates/, 'affiliates', { name: 'Cut' }],
    ['after it created a link', /insert into links/, 'links', null],
    [
      'before its response was stored',
      /update idempotency_keys set response/,
      'affiliates',
      { name: 'Stored' },
    ],
    ['after it rotated a key', /insert into sdk_keys/, 'sdk-key/rotate', {}],
  ])('a call that is interrupted %s runs again with the same result', async (_name, after, what, given) => {
    const connection = connect({ url: api.database.url });
    const { sql, failed } = failingAfter(connection, after);
    const own = await newApp(api);
    const body = given ?? {
      affiliateId: await newAffiliate(api, own),
      destinationUrl: 'https://example.com',
    };
    const cut = await startTestApi({ sql });
    const request = {
      method: 'POST',
      headers: {
        authorization: `Bearer ${own.key}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify(body),
    };
    const path = `/apps/${own.appId}/${what}`;
    expect((await fetch(cut.url + path, request)).status).toBe(500);
    expect(failed()).toBe(1);
    const counts = async () =>
      await api.sql.one`
        select (select count(*)::int from affiliates where app_id = ${own.appId}) as affiliates,
               (select count(*)::int from links where app_id = ${own.appId}) as links,
               (select count(*)::int from sdk_keys where app_id = ${own.appId}) as keys`;
    const before = await counts();
    // A process that died can't release its key, so the key is free when the claim expires.
    await api.sql`update idempotency_keys set claimed_until = now() where claimed_until > now()`;
    const again = await fetch(api.url + path, request);
    expect(again.status).toBeLessThan(300);
    expect(await counts()).toEqual(before);
    const { id, sdkKey } = (await again.json()) as { id?: string; sdkKey?: string };
    if (sdkKey !== undefined) {
      const device = { deviceId: 'd', affiliateCode: 'nobody', firstOpenAt: api.clock.now };
      expect((await api.call('POST', '/sdk/install', { key: sdkKey, body: device })).status).toBe(404);
    } else {
      expect(
        await api.sql`select id from affiliates where id = ${id ?? ''} union all select id from links where id = ${id ?? ''}`,
      ).toHaveLength(1);
    }
    await connection.close();
    await cut.close();
  });

  test.each([
    ['apps', () => '/apps', { name: 'Slow', linkSubdomain: 'slow' }],
    ['affiliates', () => affiliatesPath(), { name: 'Slow' }],
    ['affiliates', () => `${affiliatesPath()}/bulk`, { rows: [{ name: 'Slow' }, { name: 'Slower' }] }],
    ['links', () => `/apps/${app.appId}/links`, { slug: 'slow' }],
    ['links', () => `/apps/${app.appId}/links/bulk`, [{ slug: 'slow-1' }, { slug: 'slow-2' }]],
    ['sdk_keys', () => `/apps/${app.appId}/sdk-key/rotate`, {}],
  ])(
    'a call that still writes to %s after another one took over returns the same response',
    async (table, path, given) => {
      const link = { affiliateId: await newAffiliate(api, app), destinationUrl: 'https://example.com' };
      const body = Array.isArray(given)
        ? { rows: given.map((row) => ({ ...link, ...row })) }
        : table === 'links'
          ? { ...link, ...given }
          : given;
      const gate = await closeGate(api.database.url, table);
      const key = randomUUID();
      const slow = post(path(), body, key);
      await untilWaiting(api.sql);
      await api.sql`update idempotency_keys set claimed_until = now() where idempotency_key = ${key}`;
      const other = post(path(), body, key);
      await untilWaiting(api.sql, 2);
      await gate.open();
      const [first, second] = await Promise.all([slow, other]);
      await gate.remove();
      expect(first.status).toBeLessThan(300);
      expect(first.body['failed'] ?? []).toEqual([]);
      expect(second).toMatchObject({ status: first.status, text: first.text });
      expect((await post(path(), body, key)).text).toBe(first.text);
    },
  );

  test('a repeat of an interrupted rotation gives the old key its whole grace period', async () => {
    const connection = connect({ url: api.database.url });
    let isAway = true;
    const unlessAway: Sql['transaction'] = async (work) => {
      if (isAway) throw new DatabaseUnavailable('the database is unavailable');
      return await connection.transaction(work);
    };
    const open = (async (strings: TemplateStringsArray, ...values: unknown[]) =>
      await connection(strings, ...values)) as unknown as Sql;
    const sql: Sql = Object.assign(open, connection, { transaction: unlessAway, actingAs: () => sql });
    const cut = await startTestApi({ sql, now: () => api.clock.now });
    const own = await newApp(api);
    const rotate = async () =>
      await cut.call<Record<string, string>>('POST', `/apps/${own.appId}/sdk-key/rotate`, {
        key: own.key,
        body: { graceSeconds: 3_600 },
        headers: { 'idempotency-key': 'rotate-once' },
      });
    expect((await rotate()).status).toBe(503);
    isAway = false;
    api.clock.now += 7_200_000;
    const { status, body } = await rotate();
    expect({ status, endsAt: body['previousKeyExpiresAt'] }).toEqual({
      status: 200,
      endsAt: api.clock.now + HOUR_MS,
    });
    const device = { deviceId: 'd', affiliateCode: 'nobody', firstOpenAt: api.clock.now };
    expect((await api.call('POST', '/sdk/install', { key: own.sdkKey, body: device })).status).toBe(404);
    api.clock.now += 3_600_001;
    expect((await api.call('POST', '/sdk/install', { key: own.sdkKey, body: device })).status).toBe(401);
    await connection.close();
    await cut.close();
  });

  test.each(['identity_secrets', 'webhook_endpoints'])(
    'a repeat of an interrupted rotation in %s, after another rotation, changes nothing and returns what the first one did',
    async (table) => {
      const connection = connect({ url: api.database.url });
      const { sql } = failingAfter(connection, /insert into identity_secrets|set secret_id = /);
      const cut = await startTestApi({ sql });
      const own = await newApp(api);
      const base = `/apps/${own.appId}`;
      const endpoint = await post(
        `${base}/webhook-endpoints`,
        { url: 'https://example.com/in', eventTypes: ['payout.created'] },
        randomUUID(),
        own.key,
      );
      const path =
        table === 'identity_secrets'
          ? `${base}/identity-secret/rotate`
          : `${base}/webhook-endpoints/${endpoint.body['id']}/rotate-secret`;
      const stored = async () =>
        await api.sql`
          select secret_id, previous_expires_at from identity_secrets where app_id = ${own.appId} and ${table}::text = 'identity_secrets'
           union all
          select secret_id, previous_expires_at from webhook_endpoints where app_id = ${own.appId} and ${table}::text = 'webhook_endpoints'`;
      const key = randomUUID();
      const rotate = async (at: TestApi, idempotencyKey: string) => {
        const response = await fetch(at.url + path, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${own.key}`,
            'content-type': 'application/json',
            'idempotency-key': idempotencyKey,
          },
          body: JSON.stringify({ graceSeconds: 0 }),
        });
        return { status: response.status, body: (await response.json()) as Readonly<Record<string, string>> };
      };
      expect((await rotate(cut, key)).status).toBe(500);
      await api.sql`update idempotency_keys set claimed_until = now() where claimed_until > now()`;
      const newer = await rotate(api, randomUUID());
      const before = await stored();
      const again = await rotate(api, key);
      expect([newer.status, again.status]).toEqual([200, 200]);
      expect(again.body['secret']).not.toBe(newer.body['secret']);
      expect(await stored()).toEqual(before);
      await connection.close();
      await cut.close();
    },
  );

  test('a call that never releases its key is taken over only when its claim expires', async () => {
    const key = randomUUID();
    await post(affiliatesPath(), { name: 'Slow' }, key);
    await api.sql`update idempotency_keys set response = null, response_key_id = null where idempotency_key = ${key}`;
    expect(await post(affiliatesPath(), { name: 'Slow' }, key)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_in_use' },
    });
    await api.sql`update idempotency_keys set claimed_until = now() where idempotency_key = ${key}`;
    expect((await post(affiliatesPath(), { name: 'Slow' }, key)).status).toBe(201);
  });
});

// @promise idempotency-24-h
test('a key is free again after a day, and its row is deleted', async () => {
  const key = randomUUID();
  await post(affiliatesPath(), { name: 'Ann' }, key);
  const { hours } = await api.sql.one<{ hours: number }>`
    select (extract(epoch from expires_at - now()) / 3600)::float8 as hours from idempotency_keys where idempotency_key = ${key}`;
  expect(hours).toBeCloseTo(24, 1);
  await api.sql`update idempotency_keys set expires_at = now() where idempotency_key = ${key}`;
  const second = await post(affiliatesPath(), { name: 'Bob' }, key);
  expect(second).toMatchObject({ status: 201, body: { name: 'Bob' } });
  // While another call claims the key, no call gets the response of the day before.
  await api.sql`update idempotency_keys set expires_at = now() where idempotency_key = ${key}`;
  const other = new pg.Client(api.database.url);
  await other.connect();
  await other.query('begin');
  await other.query(
    `update idempotency_keys
        set response = null, response_key_id = null, claimed_until = now() + interval '1 minute',
            expires_at = now() + interval '1 day'
      where idempotency_key = $1`,
    [key],
  );
  const third = post(affiliatesPath(), { name: 'Bob' }, key);
  await untilWaiting(api.sql);
  await other.query('commit');
  await other.end();
  expect((await third).body['code']).toBe('idempotency_key_in_use');
  // An hour ago: the removal compares with whole milliseconds, so `now()` could still be in its future.
  await api.sql`update idempotency_keys set expires_at = now() - interval '1 hour' where idempotency_key = ${key}`;
  const batch = { now: Date.now(), limit: 100, after: '' };
  const remove = () => removeExpired(api.sql, 'idempotency_keys', DEFAULT_RETENTION, batch);
  expect(await remove()).toEqual({ removed: 1, next: null });
  expect(await remove()).toEqual({ removed: 0, next: null });
});
