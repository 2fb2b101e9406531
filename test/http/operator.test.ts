import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { pino } from 'pino';
import { runLedgerPart } from '../../src/db/ledger-runs.ts';
import { newId } from '../../src/db/new-id.ts';
import { createOperatorLink, deleteExpiredOperatorSessions } from '../../src/db/operator-sessions.ts';
import { newToken } from '../../src/db/sessions.ts';
import { OPERATOR_SESSION_MS, SIGN_IN_LINK_MS } from '../../src/domain/sessions.ts';
import { newAccount, newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';
import { cookieOf, OPERATOR_COOKIE, OWN_PAGE, signInOperator } from '../support/sessions.ts';

let api: TestApi;
/** A time that only advances, ms, and how far each reading moves it. */
let elapsed = 0;
let tickMs = 0;
/** The log, warnings and errors. */
const logged: string[] = [];

beforeAll(async () => {
  api = await startTestApi({
    now: () => api.clock.now,
    elapsed: () => (elapsed += tickMs),
    logger: pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) }),
    readiness: async () => [
      { name: 'database', ok: true, detail: null, optional: false },
      {
        name: 'secrets',
        ok: false,
        detail: 'SECRETS_KEY lacks the key 1f0c of 3 webhook secrets',
        optional: true,
      },
    ],
    temporalUi: { url: 'https://temporal.example.test', namespace: 'default' },
    pendingStep: async () => ({ step: 'writeCommission', attempt: 7 }),
  });
});
afterAll(async () => {
  await api.close();
});

const spend = async (token: string) =>
  await api.call('POST', '/operator/session', { body: { token }, headers: OWN_PAGE });

// @promise get-operator-session, post-operator-session, post-operator-session-end
test('a link of the operator signs one browser in, with a cookie of its own, until it signs out', async () => {
  const token = await createOperatorLink(api.sql, api.clock.now);
  const answers = await Promise.all([spend(token), spend(token)]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]));
  const signedIn = answers.find(({ status }) => status === 200);
  const setCookie = signedIn?.headers.get('set-cookie') ?? '';
  expect(setCookie).toMatch(
    /^__Host-tributary-operator=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  );
  const headers = { ...OWN_PAGE, cookie: cookieOf(signedIn?.headers ?? new Headers()) };
  const current = async () => (await api.call('GET', '/operator/session', { headers })).body['session'];
  expect(await current()).toEqual(signedIn?.body);
  expect((await api.call('GET', '/operator/state', { headers })).status).toBe(200);
  const ended = await api.call('POST', '/operator/session/end', { headers });
  expect(ended.headers.get('set-cookie')).toMatch(new RegExp(`^${OPERATOR_COOKIE}=; .*Max-Age=0`));
  expect(await current()).toBeNull();
  expect((await api.call('GET', '/operator/state', { headers })).status).toBe(401);
});

// @promise operator-session-expiry
test('the session of the operator ends after 12 hours and a link after 15 minutes, and both are then deleted', async () => {
  const late = await createOperatorLink(api.sql, api.clock.now - SIGN_IN_LINK_MS);
  for (const token of [late, newToken(), 'x']) {
    expect(await spend(token)).toMatchObject({ status: 401, body: { code: 'invalid_sign_in_link' } });
  }
  const headers = await signInOperator(api);
  const status = async () => (await api.call('GET', '/operator/accounts', { headers })).status;
  api.clock.now += OPERATOR_SESSION_MS - 1;
  expect(await status()).toBe(200);
  api.clock.now += 1;
  expect(await status()).toBe(401);
  await deleteExpiredOperatorSessions(api.sql, api.clock.now);
  expect(
    await api.sql.one`select (select count(*) from operator_sessions) as sessions,
                             (select count(*) from operator_sign_in_links) as links`,
  ).toEqual({ sessions: 0, links: 0 });
});

test('a page of another origin cannot sign a browser in as the operator', async () => {
  const token = await createOperatorLink(api.sql, api.clock.now);
  const response = await api.call('POST', '/operator/session', {
    body: { token },
    headers: { 'sec-fetch-site': 'cross-site' },
  });
  expect(response).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
  expect((await spend(token)).status).toBe(200);
});

// @promise get-operator-accounts, post-founder-sign-in-link
test('the operator lists all accounts and makes a link that signs a founder in to one of them', async () => {
  const accounts = [await newAccount(api), await newAccount(api)];
  const { accountId } = await newApp(api);
  const headers = await signInOperator(api);
  const listed: { id: string; apps: number; lastSignInAt: number | null }[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const path: string = `/operator/accounts?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const { body } = await api.call<{ items: typeof listed; nextCursor: string | null }>('GET', path, {
      headers,
    });
    listed.push(...body.items);
    cursor = body.nextCursor;
  }
  expect(new Set(listed.map(({ id }) => id))).toEqual(
    new Set([accountId, ...accounts.map((account) => account.accountId)]),
  );
  expect(listed.find(({ id }) => id === accountId)).toMatchObject({ apps: 1, lastSignInAt: null });
  const made = await api.call<{ url: string; expiresAt: number }>(
    'POST',
    `/operator/accounts/${accountId}/sign-in-links`,
    { headers },
  );
  expect(made).toMatchObject({ status: 201, body: { expiresAt: api.clock.now + SIGN_IN_LINK_MS } });
  const [, token = ''] = made.body.url.split('#token=');
  const signedIn = await api.call('POST', '/session', { body: { token }, headers: OWN_PAGE });
  expect(signedIn).toMatchObject({ status: 200, body: { account: { id: accountId } } });
});

// @promise get-operator-state
test('the state has the causes of what is missing, the backlog and the currencies that payments wait for', async () => {
  const app = await newApp(api);
  const at = (day: string) => new Date(`${day}T10:00:00Z`);
  await api.sql`insert into exchange_rates (currency, day, units, worth_usd, source) values ('TRY', '2026-05-01', 1, 0.02, 'operator')`;
  await insertWaiting(app.appId, [
    ['TRY', at('2026-05-10')],
    ['TRY', at('2026-05-12')],
    ['ARS', at('2026-05-11')],
  ]);
  const headers = await signInOperator(api);
  expect((await api.call('GET', '/operator/state', { headers })).body).toMatchObject({
    checkedAt: api.clock.now,
    readiness: [
      { name: 'database', ok: true },
      { name: 'secrets', ok: false, detail: expect.stringContaining('1f0c') },
    ],
    backlog: { stuckDeliveries: 0 },
    rateGaps: [
      {
        currency: 'ARS',
        payments: 1,
        refundsAndDisputes: 0,
        firstDay: '2026-05-11',
        lastDay: '2026-05-11',
        latestRateDay: null,
      },
      {
        currency: 'TRY',
        payments: 2,
        refundsAndDisputes: 0,
        firstDay: '2026-05-10',
        lastDay: '2026-05-12',
        latestRateDay: '2026-05-01',
      },
    ],
  });
});

test('the state names the version of the process, and the migrations that only a newer version knows', async () => {
  const headers = await signInOperator(api);
  const state = async () =>
    (await api.call<{ version: string; newerMigrations: string[] }>('GET', '/operator/state', { headers }))
      .body;
  expect(await state()).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    newerMigrations: [],
  });
  await runOn(
    api.database.url,
    `insert into migrations (name, run_on) values ('9998_later', now()), ('9999_latest', now())`,
  );
  expect((await state()).newerMigrations).toEqual(['9998_later', '9999_latest']);
  await runOn(api.database.url, `delete from migrations where name like '999%'`);
  expect((await state()).newerMigrations).toEqual([]);
});

/** Inserts payments without a rate, beside the rules that a real event follows. */
async function insertWaiting(appId: string, payments: readonly (readonly [string, Date])[]): Promise<void> {
  for (const [index, [currency, at]] of payments.entries()) {
    await insertDelivery(appId, `waiting-${index}`);
    await api.sql`
      with event as (
        insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at, store,
                            payment_ref, currency, amount_minor, likely_cause)
        select d.event_id, d.app_id, d.id, d.provider, ${`waiting-${index}`}, 'purchase', 'production', ${at}, d.received_at, 'stripe',
               ${`ref-${index}`}, ${currency}, 100, 'missing_exchange_rate'
          from deliveries d where d.app_id = ${appId} and d.source_event_id = ${`waiting-${index}`}
        returning *
      )
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at, only_anonymous_user,
                            evaluated_at, likely_cause)
      select 'pmt' || substr(id, 4), app_id, environment, store, payment_ref, id, currency, amount_minor, occurred_at, false, now(),
             likely_cause
        from event`;
  }
}

/** Inserts an accepted delivery; without `sourceEventId` one that is stuck. */
async function insertDelivery(appId: string, sourceEventId: string | null): Promise<void> {
  await api.sql`
    with made as (
      insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
      values (${newId('secret')}, ${appId}, 'stripe', 'production', '\\x00', '00000000', 1)
      on conflict do nothing returning id
    ), secret as (
      select id from made union select id from webhook_secrets where app_id = ${appId}
    )
    insert into deliveries (id, app_id, provider, received_at, processing_status, signature_valid, secret_id, body_sha256, proof,
                            event_id, source_event_id, completed_at, last_error)
    select ${newId('delivery')}, ${appId}, 'stripe', now() - interval '1 hour',
           case when ${sourceEventId}::text is null then 'processing' else 'processed' end, true, id, sha256('x'), '{}', ${newId('event')},
           ${sourceEventId}, case when ${sourceEventId}::text is not null then now() end,
           case when ${sourceEventId}::text is null then 'permission denied for table commissions' end
      from secret`;
}

// @promise get-stuck-deliveries
test('a stuck delivery has its step and attempt from Temporal, its cause, and a link to the Temporal UI', async () => {
  const app = await newApp(api);
  await insertDelivery(app.appId, null);
  const headers = await signInOperator(api);
  const { body } = await api.call<{ deliveries: { id: string }[] }>('GET', '/operator/stuck-deliveries', {
    headers,
  });
  const [delivery] = body.deliveries;
  expect(body.deliveries).toEqual([
    {
      id: expect.stringMatching(/^del_/),
      accountId: app.accountId,
      appId: app.appId,
      source: 'stripe',
      receivedAt: expect.any(Number),
      cause: 'permission denied for table commissions',
      step: 'writeCommission',
      attempt: 7,
      workflowId: `delivery:${delivery?.id}`,
      workflowUrl: `https://temporal.example.test/namespaces/default/workflows/delivery%3A${delivery?.id}`,
    },
  ]);
});

// @promise get-all-reprocess-runs
test('the operator sees the reprocess runs of all apps, without their money and keys', async () => {
  const apps = [await newApp(api), await newApp(api)];
  for (const { appId, key } of apps) {
    const path = `/apps/${appId}/reprocess-runs`;
    expect((await api.call('POST', path, { key, body: { from: api.clock.now - 1000 } })).status).toBe(201);
  }
  await api.sql`
    update reprocess_runs set relayed_at = now(), finished_at = now(), commission_cents = 400, revenue_cents = 2000
     where app_id = ${apps[1]?.appId ?? ''}`;
  const headers = await signInOperator(api);
  const { body } = await api.call<{ items: { id: string; appId: string }[] }>(
    'GET',
    '/operator/reprocess-runs',
    { headers },
  );
  expect(body.items.map(({ appId }) => appId)).toEqual(apps.map(({ appId }) => appId).toReversed());
  expect(body.items[0]).toEqual({
    appId: apps[1]?.appId,
    id: expect.stringMatching(/^rpr_/),
    dryRun: true,
    requestedBy: 'api',
    status: 'finished',
    deliveries: 0,
    seen: 0,
    changed: 0,
    applied: 0,
    lastError: null,
    createdAt: expect.any(Number),
    finishedAt: expect.any(Number),
    workflowUrl: `https://temporal.example.test/namespaces/default/workflows/reprocess%3A${body.items[0]?.id}`,
  });
});

interface LedgerPart {
  readonly checks: readonly {
    readonly name: string;
    readonly apps: number;
    readonly violations: number;
    readonly rows: readonly { readonly accountId: string; readonly appId: string; readonly id: string }[];
    readonly unfinished: readonly string[];
  }[];
  readonly done: number;
  readonly total: number;
  readonly nextCursor: string | null;
}

/** Runs parts of a check of all apps until its end. Each part has time for a few checks. */
async function checkAllLedgers(headers: Record<string, string>): Promise<LedgerPart[]> {
  const parts: LedgerPart[] = [];
  tickMs = 400;
  try {
    for (let cursor: string | null = ''; cursor !== null;) {
      const path: string = `/operator/ledger-check${cursor === '' ? '' : `?cursor=${cursor}`}`;
      const response = await api.call<LedgerPart>('GET', path, { headers });
      expect(response.status).toBe(200);
      parts.push(response.body);
      expect(response.text).not.toMatch(/too (low|high)|cents/);
      cursor = response.body.nextCursor;
    }
  } finally {
    tickMs = 0;
  }
  return parts;
}

/** Returns the ids of rows that break a rule, and in how many apps it was checked. */
function ruleOf(parts: readonly LedgerPart[], name: string) {
  const found = parts.flatMap(({ checks }) => checks.filter((check) => check.name === name));
  return {
    apps: found.reduce((sum, { apps }) => sum + apps, 0),
    violations: found.reduce((sum, { violations }) => sum + violations, 0),
    rows: found.flatMap(({ rows }) => rows),
  };
}

// @promise get-operator-ledger-check, operator-sees-no-customers
test('a check of all ledgers goes on part by part, and names the rows that break a rule without their values', async () => {
  const headers = await signInOperator(api);
  const app = await newApp(api);
  const { accountId, appId } = app;
  const at = api.clock.now;
  const affiliateId = await newAffiliate(api, app);
  const id = await insertEarning(api, app, { affiliateId, amountCents: 500, occurredAt: at, dueAt: at });
  await runOn(
    api.database.url,
    `set session_replication_role = replica;
     update commissions set amount_cents = 777 where id = '${id}';
     update rollups set clicks = clicks + 888 where app_id = '${appId}' and scope = 'affiliate' and bucket_at = '-infinity'`,
  );
  const parts = await checkAllLedgers(headers);
  const rowsOf = (name: string) => ruleOf(parts, name).rows;
  expect(rowsOf('earnings_are_rate_of_base')).toEqual([{ accountId, appId, id }]);
  expect(rowsOf('paid_once')).toEqual([]);
  // Each id once, however many sums of it differ.
  const scopes = [affiliateId, appId].map((scopeId) => ({ accountId, appId, id: scopeId }));
  expect(rowsOf('rollups_equal_facts')).toEqual(scopes);

  const { apps } = await api.sql.one<{ apps: number }>`select count(*) as apps from apps`;
  expect(ruleOf(parts, 'earnings_are_rate_of_base')).toMatchObject({ apps, violations: 1 });
  expect(parts.length).toBeGreaterThan(3);
  const done = parts.map((part) => part.done);
  expect(done).toEqual(done.toSorted((a, b) => a - b));
  const names = new Set(parts.flatMap(({ checks }) => checks.map(({ name }) => name)));
  expect(parts.at(-1)).toMatchObject({ done: names.size * apps, total: names.size * apps });
});

test('a check that cannot examine an app in time names the app, and the run goes on with the next one', async () => {
  const headers = await signInOperator(api);
  const apps = await api.sql<{ id: string }>`select id from apps order by id limit 2`;
  tickMs = 25_000;
  const first = await api.call<LedgerPart>('GET', '/operator/ledger-check', { headers });
  const cursor = `cursor=${first.body.nextCursor}`;
  const second = await api.call<LedgerPart>('GET', `/operator/ledger-check?${cursor}`, { headers });
  tickMs = 0;
  expect([first, second].map(({ body: { checks, done } }) => ({ checks, done }))).toEqual(
    apps.map(({ id }, index) => ({
      checks: [
        {
          name: 'rollups_equal_facts',
          description: expect.any(String),
          apps: 0,
          violations: 0,
          rows: [],
          unfinished: [id],
        },
      ],
      done: index + 1,
    })),
  );
});

test('a check that begins late in a part has as much time as the first one', async () => {
  const part = { partMs: 5_000, checkMs: 20_000 };
  // The part begins; the first check begins and has time; the second one; the part is full.
  const times = [0, 0, 0, 4_000, 4_000, 23_000, 23_000];
  const { checks } = await runLedgerPart(api.sql, null, {
    ...part,
    elapsed: () => times.shift() ?? Infinity,
  });
  expect(checks).toMatchObject([{ apps: 2, unfinished: [] }]);
  expect(times).toEqual([]);
});

/** Makes the search for duplicate payments fail in an app while `work` runs. */
async function whileFailing<T>(appId: string, code: string, work: () => Promise<T>): Promise<T> {
  const { text } = await api.sql.one<{ text: string }>`
    select pg_get_functiondef('same_payment'::regproc) as text`;
  await runOn(
    api.database.url,
    `create or replace function same_payment(of_app app_id, of_environment environment, of_store text, refs text[])
     returns setof payments language plpgsql as $$
     begin
       if of_app = '${appId}' then raise 'the test failed it' using errcode = '${code}'; end if;
     end $$`,
  );
  try {
    return await work();
  } finally {
    await runOn(api.database.url, text);
  }
}

test('an app whose check needs too much disk or memory is named, and any other error is logged with rule and app', async () => {
  const headers = await signInOperator(api);
  const app = await newApp(api);
  const affiliateId = await newAffiliate(api, app);
  const at = api.clock.now;
  await insertEarning(api, app, { affiliateId, amountCents: 500, occurredAt: at, dueAt: at });
  // Only the duplicates of a payment with several references are searched for.
  await api.sql`
    insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
    select app_id, environment, store, 'other-' || ref, ref from payments where app_id = ${app.appId}`;
  // The limit of temporary files; a full disk and too little memory are of the same kind.
  const parts = await whileFailing(app.appId, '53400', async () => await checkAllLedgers(headers));
  const rules = parts.flatMap(({ checks }) => checks);
  const cut = rules.filter(({ unfinished }) => unfinished.length > 0);
  expect(cut).toMatchObject([{ name: 'one_earning_per_payment', unfinished: [app.appId] }]);
  expect(rules.some(({ name }) => name === 'no_row_of_another_app')).toBe(true);

  // Too many connections say nothing about the app.
  const failed = await whileFailing(app.appId, '53300', async () => {
    return await api.call('GET', '/operator/ledger-check', { headers });
  });
  expect(failed).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect(logged.at(-1)).toContain(`the check one_earning_per_payment of ${app.appId} failed`);
});

test('a process runs one part of the operator at a time, and another one is a 503 with Retry-After', async () => {
  const headers = await signInOperator(api);
  const check = async () => await api.call('GET', '/operator/ledger-check', { headers });
  const client = new pg.Client(api.database.url);
  await client.connect();
  try {
    await client.query('begin; lock table payouts in access exclusive mode');
    const both = [check(), check()];
    const refused = await Promise.race(both);
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(refused.headers.get('retry-after')).toBe('10');
    await client.query('rollback');
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  } finally {
    await client.end();
  }
  expect((await check()).status).toBe(200);
});

test('a cursor that is damaged or of another list is a 400', async () => {
  const headers = await signInOperator(api);
  const accounts = await api.call<{ nextCursor: string }>('GET', '/operator/accounts?limit=1', { headers });
  for (const cursor of ['x', accounts.body.nextCursor]) {
    const response = await api.call('GET', `/operator/ledger-check?cursor=${cursor}`, { headers });
    expect(response).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  }
});
