import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import * as z from 'zod';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { findLatestCode, findTestedCode, listCodesInUse } from '../../src/db/code-arrivals.ts';
import { newId } from '../../src/db/new-id.ts';
import { eraseUser } from '../../src/db/erasures.ts';
import { findPayeesAt, reencryptPayees } from '../../src/db/payees.ts';
import { findWaitingPayments } from '../../src/db/payments.ts';
import { numberEarlierPayments } from '../../src/db/policy-snapshot.ts';
import { readAffiliateTotals } from '../../src/db/overviews.ts';
import { importRates } from '../../src/db/rates.ts';
import { listReprocessedCommissions, requestReprocessing } from '../../src/db/reprocess.ts';
import { listReprocessChanges } from '../../src/db/reprocess-changes.ts';
import {
  findDependencies,
  findNextDeliveries,
  findPlannedDeliveries,
} from '../../src/db/reprocess-deliveries.ts';
import type { ReprocessedDelivery } from '../../src/db/reprocess-deliveries.ts';
import {
  findCurrenciesInUse,
  findMoneyLeft,
  findRealDeliveries,
  findSelfTestEvents,
  readAppActivity,
} from '../../src/db/self-tests.ts';
import { INDEX_PLANS } from '../../src/db/driver.ts';
import { connect } from '../../src/db/sql.ts';
import type { SentStatement } from '../../src/db/driver.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AccountId, AffiliateId, AppId, MemberId, BindingId, IdKind } from '../../src/domain/ids.ts';
import { mailMemberLink, mailSignInLinks } from '../../src/db/member-links.ts';
import { findSession } from '../../src/db/sessions.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { loadAlertInputs } from '../../src/db/alert-facts.ts';
import { findOpenAlerts } from '../../src/db/alerts.ts';
import { claimEmails } from '../../src/db/email-claims.ts';
import { claimWebhookMessages } from '../../src/db/webhook-attempts.ts';
import { listWebhookStates } from '../../src/db/webhook-secrets.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routes } from '../../src/http/routes.ts';
import { startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { signInManager, signInMember } from '../support/members.ts';
import { signIn, signInCreator, signInOperator } from '../support/sessions.ts';
import { BIG, createBigDatabase, LARGE_TABLES, OTHER_TABLES } from '../support/big-database.ts';
import type { TestDatabase } from '../support/database.ts';
import { findPlanFaults } from '../support/query-plans.ts';
import type { KnownPlans } from '../support/query-plans.ts';

let database: TestDatabase;
let client: pg.Client;
let api: TestApi;
let sql: Sql;
let appId: string;
let accountId: string;
let key: string;
let sent: SentStatement[] = [];

beforeAll(async () => {
  database = await createBigDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  for (const [name, value] of Object.entries(INDEX_PLANS)) await client.query(`set ${name} = ${value}`);
  sql = connect({ url: database.url, max: 4, onStatement: (statement) => void sent.push(statement) });
  api = await startTestApi({ sql });
  const app = await sql.one<{ id: string; accountId: AccountId }>`
    select id, account_id from apps order by id limit 1`;
  appId = app.id;
  accountId = app.accountId;
  key = (await createAccountKey(sql, app.accountId, PERMISSIONS)).key;
  await insertReprocessRuns();
}, 300_000);
afterAll(async () => {
  await api.close();
  await sql.close();
  await client.end();
  await database.drop();
});

/** Inserts reprocess runs of the big app. The first and the last one have plans for 10,000 deliveries each. */
async function insertReprocessRuns(): Promise<void> {
  const statements = [
    'set session_replication_role = replica',
    `insert into reprocess_runs (id, app_id, dry_run, from_at, to_at, deliveries, created_at, finished_at)
     select 'rpr_0' || lpad(n::text, 25, '0'), $1, true, '-infinity', now(), 10000, now() - n * interval '1 minute', now()
       from generate_series(1, 5000) n`,
    `insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
     select d.app_id, r.id, d.id, d.received_at, '[{"what":"status","stored":"failed","today":"processed","action":"append"}]', true
       from (select min(id) as id from reprocess_runs union all select max(id) from reprocess_runs) r,
            (select * from deliveries where app_id = $1 order by id limit 10000) d`,
    'set session_replication_role = origin',
    'analyze reprocess_runs',
    'analyze reprocess_changes',
  ];
  for (const statement of statements) await client.query(statement, statement.includes('$1') ? [appId] : []);
}

/** The table with ids of a kind. A kind that no path contains needs none. */
const TABLES: Partial<Record<IdKind, string>> = {
  affiliate: 'affiliates',
  link: 'links',
  commission: 'commissions',
  entry: 'entries',
  code: 'codes',
  group: 'affiliate_groups',
  policy: 'policies',
  payout: 'payouts',
  payoutRun: 'payout_runs',
  event: 'events',
  delivery: 'deliveries',
  erasure: 'erasures',
  webhookEndpoint: 'webhook_endpoints',
  webhookMessage: 'webhook_messages',
  reprocessRun: 'reprocess_runs',
};

/** The first and the last id of a kind in the big app. The first affiliate has two fifths of all rows. */
async function idsOf(kind: IdKind): Promise<string[]> {
  const table = TABLES[kind];
  if (table === undefined) throw new Error(`say in which table ids of a ${kind} are`);
  const { rows } = await client.query<{ id: string }>(
    `(select id from ${table} where app_id = $1 order by id limit 1)
     union all (select id from ${table} where app_id = $1 order by id desc limit 1)`,
    [appId],
  );
  return rows.map((row) => row.id);
}

/** A key that has made half of all changes, and one that has made few. */
async function keysOfAudit(): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    '(select key_id as id from audit_rows order by key_id limit 1) union all (select key_id from audit_rows order by key_id desc limit 1)',
  );
  return rows.map(({ id }) => id);
}

/** Sample values of query parameters. Any other parameter must be a fixed list of values, which are all used. */
const VALUES: Readonly<Record<string, () => Promise<string[]>>> = {
  affiliateId: () => idsOf('affiliate'),
  linkId: () => idsOf('link'),
  payoutId: () => idsOf('payout'),
  groupId: () => idsOf('group'),
  // Forty days before the last event. Payouts and commissions of the time since are read.
  asOf: async () => [String(Date.UTC(2026, 4, 6)), String(Date.UTC(2026, 5, 15))],
  // All rows are of Stripe.
  source: async () => ['stripe', 'paddle'],
  email: async () => ['Creator-1@example.com', 'nobody@example.com'],
  externalId: async () => ['creator-1', 'nobody'],
  customerUserId: async () => ['stranger-1000', 'nobody'],
  // Of the fixed lists, which are long: one with many rows, and one with none.
  likelyCause: async () => ['user_never_identified', 'rate_zero'],
  'listEvents kind': async () => ['purchase', 'chargeback'],
  'listEvents outcome': async () => ['earned', 'waiting'],
  'listEvents source': async () => ['paddle'],
  'listWebhookMessages type': async () => ['commission.created', 'delivery.stuck'],
  // An active one with many messages, and one that was deleted.
  endpointId: async () => [(await idsOf('webhookEndpoint'))[0] ?? '', `whe_1${'0'.repeat(25)}`],
  'listEvents affiliateId': async () => (await idsOf('affiliate')).slice(0, 1),
  q: async () => ['creator', '%', 'nobody', '1'],
  tag: async () => ['nobody'],
  'listAudit appId': async () => [appId],
  'listAudit actorKind': async () => ['creator'],
  'listAudit keyId': async () => keysOfAudit(),
  'listAudit action': async () => ['ended'],
  'listAudit objectKind': async () => ['erasure'],
  'listAudit objectId': async () => [appId, 'nobody'],
  timezone: async () => ['America/New_York'],
};

/** A month and nearly two years, which end five days before the last event. */
const PERIODS = [30, 700].map((days) => {
  const to = Date.UTC(2026, 5, 10);
  return { from: String(to - days * DAY_MS), to: String(to) };
});

/** The values that a test gives each filter of a route: for `from` a period, for any other filter one parameter. */
async function choicesOf(route: Route, names: readonly string[]): Promise<Record<string, string>[][]> {
  const { properties = {} } = z.toJSONSchema(route.query ?? z.object({}), {
    io: 'input',
    unrepresentable: 'any',
  }) as { properties?: Record<string, { enum?: string[] }> };
  const choices: Record<string, string>[][] = [];
  for (const name of names) {
    if (name === 'from') {
      choices.push(PERIODS);
      continue;
    }
    const values =
      (await (VALUES[`${route.operationId} ${name}`] ?? VALUES[name])?.()) ?? properties[name]?.enum;
    if (values === undefined) throw new Error(`say what ${name} of ${route.path} may be`);
    choices.push(values.map((value) => ({ [name]: value })));
  }
  return choices;
}

/**
 * Returns a covering choice of a route's queries, each with the longest page: no filter, every value of every filter
 * alone, every pair of values of two filters, and all filters together until every value has occurred. An index that a
 * filter or a pair of filters needs is missed by some of them. All combinations would be thousands of requests.
 */
async function queriesOf(route: Route): Promise<Record<string, string>[]> {
  const names = route.query instanceof z.ZodObject ? Object.keys(route.query.shape) : [];
  const page: Record<string, string> = names.includes('limit') ? { limit: '100' } : {};
  const filters = await choicesOf(
    route,
    names.filter((name) => name !== 'limit' && name !== 'cursor' && name !== 'to'),
  );
  const pairs = filters.flatMap((one, index) =>
    filters
      .slice(index + 1)
      .flatMap((other) => one.flatMap((value) => other.map((paired) => ({ ...value, ...paired })))),
  );
  const longest = Math.max(0, ...filters.map((values) => values.length));
  const together = filters.length < 3 ? [] : Array.from({ length: longest }, (_, turn) => turn);
  return [
    {},
    ...filters.flat(),
    ...pairs,
    ...together.map(
      (turn) =>
        Object.assign({}, ...filters.map((values) => values[turn % values.length])) as Record<string, string>,
    ),
  ].map((query) => ({ ...page, ...query }));
}

interface Caller {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The creator of the session, or in the path of a founder. */
  readonly affiliateId?: string;
}

/** Creators of the big app: the first and the last one, or where payouts are read, one that was paid. */
async function creatorsOf(route: Route): Promise<string[]> {
  if (!Object.values(route.ids).includes('payout')) return await idsOf('affiliate');
  const { rows } = await client.query<{ id: string }>(
    'select affiliate_id as id from payouts where app_id = $1 order by id limit 1',
    [appId],
  );
  return rows.map((row) => row.id);
}

/** The first and the last payout of a creator. */
async function payoutsOf(affiliateId: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `(select id from payouts where app_id = $1 and affiliate_id = $2 order by id limit 1)
     union all (select id from payouts where app_id = $1 and affiliate_id = $2 order by id desc limit 1)`,
    [appId, affiliateId],
  );
  return rows.map((row) => row.id);
}

/** The paths of a route in the big app. Payouts of a creator are asked for with that creator. */
async function pathsOf(route: Route, { affiliateId }: Caller): Promise<string[]> {
  let paths = [
    route.path.replace(':appId', appId).replace(':accountId', accountId).replace(':provider', 'stripe'),
  ];
  for (const [name, kind] of Object.entries(route.ids)) {
    if (kind === 'account') continue;
    const isOfCreator = affiliateId !== undefined && (kind === 'payout' || kind === 'affiliate');
    const ids = !isOfCreator
      ? await idsOf(kind)
      : kind === 'payout'
        ? await payoutsOf(affiliateId)
        : [affiliateId];
    paths = paths.flatMap((path) => ids.map((id) => path.replace(`:${name}`, id)));
  }
  return paths;
}

/** Number of rows in a response: the longest of its lists, or the lines of a file. */
function rowsIn(body: unknown, text: string): number {
  if (typeof body !== 'object' || body === null) return text.split('\n').length;
  const lists = Array.isArray(body) ? [body] : Object.values(body).filter((value) => Array.isArray(value));
  return lists.reduce((sum, list) => sum + list.length, 0);
}

interface Read {
  readonly request: string;
  readonly status: number;
  readonly returned: number;
  readonly statements: readonly SentStatement[];
}

async function read(
  path: string,
  query: Record<string, string>,
  caller: Caller,
): Promise<Read & { nextCursor: unknown }> {
  const { affiliateId: _, ...rest } = caller;
  sent = [];
  const request = `${path}?${new URLSearchParams(query).toString()}`;
  const { status, body, text } = await api.call<{ nextCursor?: unknown } | null>('GET', request, rest);
  return { request, status, returned: rowsIn(body, text), statements: sent, nextCursor: body?.nextCursor };
}

const needsManager = ({ path }: Route) => path.includes('/members');
const needsMember = ({ path }: Route) => path.includes('/passkeys');

async function signInFirstMember() {
  const manager = await signInManager({ ...api, sql }, { accountId });
  const { id } = await sql.one<{ id: string }>`
    select id from members where account_id = ${accountId} and removed_at is null order by id limit 1`;
  return await signInMember({ ...api, sql }, { accountId, id }, manager);
}

/** The statements that a route sends for every filter and sort order, and for the second page of each. */
async function readsOf(route: Route): Promise<Read[]> {
  const reads: Read[] = [];
  const callers: Caller[] = [
    route.auth === 'operator'
      ? { headers: await signInOperator({ ...api, sql }) }
      : route.auth === 'session'
        ? {
            headers: await (needsManager(route)
              ? signInManager({ ...api, sql }, { accountId })
              : needsMember(route)
                ? signInFirstMember()
                : signIn(api, key)),
          }
        : { key },
  ];
  if (route.auth === 'creator' || 'affiliateId' in route.ids) {
    callers.pop();
    for (const id of await creatorsOf(route)) {
      const caller =
        route.auth === 'creator' ? { headers: await signInCreator(api, { appId, key }, id) } : { key };
      callers.push({ affiliateId: id, ...caller });
    }
  }
  for (const caller of callers) {
    for (const path of await pathsOf(route, caller)) {
      for (const query of await queriesOf(route)) {
        const first = await read(path, query, caller);
        reads.push(first);
        if (typeof first.nextCursor === 'string')
          reads.push(await read(path, { ...query, cursor: first.nextCursor }, caller));
      }
    }
  }
  return reads;
}

/** Routes that read all rows of an app, or of all apps. They have a time limit instead, and few run at a time. */
const READS_EVERYTHING = new Set(['checkLedger', 'checkAllLedgers']);

const readRoutes = routes
  .filter(
    ({ method, auth, operationId }) =>
      method === 'GET' &&
      ['account', 'session', 'creator', 'operator'].includes(auth) &&
      !READS_EVERYTHING.has(operationId),
  )
  .map((route) => [route.path, route] as const);

test('the big database has the stated number of rows', async () => {
  const { rows } = await client.query<Record<string, string>>(
    `select (select count(*) from clicks) as clicks, (select count(*) from commissions) as commissions,
            (select count(*) from affiliates) as affiliates, (select count(*) from links) as links,
            (select count(*) from attributions) as attributions, (select count(*) from bindings) as bindings,
            (select count(*) from events) as events`,
  );
  expect(rows[0]).toEqual(
    Object.fromEntries(Object.entries(BIG).map(([name, count]) => [name, String(count)])),
  );
});

test('every table that grows has rows in the big database', async () => {
  const { rows } = await client.query<{ name: string; rows: number }>(
    `select relname as name, reltuples::int as rows from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'migrations' and relname !~ '^story_'`,
  );
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...LARGE_TABLES, ...OTHER_TABLES].toSorted());
  const large = new Set<string>(LARGE_TABLES);
  expect(rows.filter((one) => large.has(one.name) && one.rows <= 0)).toEqual([]);
});

/** Returns the faults in the plans of one read, without duplicates. */
async function faultsOf({ statements, returned }: Read, known?: KnownPlans): Promise<string[]> {
  const faults: string[] = [];
  for (const statement of statements) {
    faults.push(...(await findPlanFaults(client, statement, LARGE_TABLES, returned, known)));
  }
  return [...new Set(faults)];
}

describe.each(readRoutes)('GET %s', (_, route) => {
  test('the route reads no more rows than its response needs, for every filter, sort order and page', async () => {
    const reads = await readsOf(route);
    const faults: string[] = [];
    const known: KnownPlans = new Map();
    for (const one of reads) {
      // A time series with too many points is a 400. At least one read must succeed.
      if (![200, 400].includes(one.status)) faults.push(`${one.request} is a ${one.status}`);
      faults.push(...(await faultsOf(one, known)).map((fault) => `${one.request}: ${fault}`));
    }
    expect(faults).toEqual([]);
    expect(reads.some(({ status, statements }) => status === 200 && statements.length > 0)).toBe(true);
  }, 120_000);
});

test('the self-test reads no more rows than its result needs', async () => {
  const { source, sourceEventId } = await sql.one<{ source: string; sourceEventId: string }>`
    select source, source_event_id from events where app_id = ${appId} order by id limit 1`;
  const id = appId as AppId;
  sent = [];
  await findSelfTestEvents(sql, id, source, sourceEventId);
  await findMoneyLeft(sql, id, source, [sourceEventId]);
  await findRealDeliveries(sql, id, source);
  await readAppActivity(sql, id, Date.UTC(2026, 5, 10) - 30 * DAY_MS);
  await findCurrenciesInUse(sql, id);
  await listCodesInUse(sql, id);
  await findLatestCode(sql, id);
  await findTestedCode(sql, { appId: id, provider: source, sourceEventId });
  expect(sent).toHaveLength(8);
  expect(await faultsOf({ request: '', status: 200, returned: 20, statements: sent })).toEqual([]);
});

test('a link for a member is mailed without a look at the other members, and what a session is asks for one', async () => {
  const secretBox = createSecretBox([TEST_KEY]);
  sent = [];
  for (const address of ['MEMBER-1@example.com', 'nobody@example.com'])
    await mailSignInLinks({ sql, secretBox }, address, Date.now());
  const [member] = await sql<{
    id: MemberId;
    accountId: AccountId;
  }>`select id, account_id from members limit 1`;
  if (member === undefined) throw new Error('there is no member');
  sent.pop();
  const options = { kind: 'member_invitation', now: Date.now() } as const;
  await mailMemberLink({ sql, secretBox }, member.accountId, member.id, options);
  await findSession(sql, 'x'.repeat(43), Date.now());
  expect(sent).toHaveLength(6);
  expect(await faultsOf({ request: '', status: 200, returned: 1, statements: sent })).toEqual([]);
});

test('the payees of a page of creators are read without their other versions, and without those of other creators', async () => {
  const { rows } = await client.query<{ id: string }>(
    '(select id from affiliates where app_id = $1 order by id limit 1) union all (select id from affiliates where app_id = $1 order by id desc limit 99)',
    [appId],
  );
  const ids = rows.map(({ id }) => id as AffiliateId);
  sent = [];
  const found = await findPayeesAt(sql, appId as AppId, ids, Date.UTC(2026, 6, 1));
  expect(found.size).toBe(100);
  expect(sent).toHaveLength(1);
  expect(await faultsOf({ request: '', status: 200, returned: 100, statements: sent })).toEqual([]);
});

// @promise alert-bounded
test('an evaluation of alerts reads a few rows per app and provider, and a bounded number of a silent provider', async () => {
  const { rows: apps } = await client.query<{ id: AppId }>('select id from apps order by id');
  const { rows: last } = await client.query<{ at: string }>(
    `select epoch_ms(max(received_at))::text as at from deliveries
      where app_id = $1 and provider = 'stripe' and signature_valid and not is_self_test`,
    [appId],
  );
  // Refunds of a year, of which 28 days count.
  await client.query(
    `insert into refund_days (app_id, day, refunded_cents)
     select a.id, ((to_timestamp($1::float8 / 1000) at time zone 'UTC')::date - n), 1000 from apps a cross join generate_series(-364, 400) n`,
    [Number(last[0]?.at) + DAY_MS],
  );
  sent = [];
  const ids = apps.map(({ id }) => id);
  await findOpenAlerts(sql, ids);
  const inputs = await loadAlertInputs(sql, ids, {
    providers: ['stripe', 'paddle'],
    now: Number(last[0]?.at) + DAY_MS,
    hasAlert: () => false,
  });
  const accepted = inputs.get(appId as AppId)?.providers.map(({ rhythm }) => rhythm?.accepted ?? 0);
  expect(accepted).toEqual([expect.any(Number), 0]);
  expect(accepted?.[0]).toBeGreaterThan(1_000);
  expect(inputs.get(appId as AppId)?.refunds).toMatchObject({
    weekPayments: expect.any(Number),
    monthRefundedCents: 28_000,
  });
  // Six, and one for each silent provider.
  const silent = [...inputs.values()].flatMap(({ providers }) =>
    providers.filter(({ rhythm }) => rhythm !== null),
  );
  expect(sent).toHaveLength(6 + silent.length);
  expect(await faultsOf({ request: '', status: 200, returned: 10, statements: sent })).toEqual([]);
});

test('payees are encrypted again a page at a time', async () => {
  // As every round of the housekeeping of a service with a former key.
  const secretBox = createSecretBox([Buffer.alloc(32, 1), Buffer.alloc(32, 2)]);
  await client.query('set session_replication_role = replica');
  await client.query(
    'update payees set encryption_key_id = $1 where app_id = $2 and affiliate_id = (select min(affiliate_id::text) from payees) and version <= 100',
    [secretBox.keyIds[1], appId],
  );
  await client.query('set session_replication_role = origin');
  sent = [];
  await reencryptPayees({ sql, secretBox }, { limit: 40 });
  expect(sent).toHaveLength(4);
  expect(await faultsOf({ request: '', status: 200, returned: 40, statements: sent })).toEqual([]);
});

// @promise latest-real-delivery
test('the latest delivery of a provider is found without reading those that were fed back after it', async () => {
  await client.query('set session_replication_role = replica');
  try {
    const { rows } = await client.query<{ id: string; provider: string; proof: object }>(
      `with latest as (
         select * from deliveries where app_id = $1 and signature_valid and provider = 'stripe' order by received_at desc limit 20000
       )
       update deliveries d set proof = '{"kind":"reconciliation"}' from latest where d.id = latest.id
       returning d.id, latest.proof`,
      [appId],
    );
    expect(rows).toHaveLength(20_000);
    await client.query('vacuum analyze deliveries');
    sent = [];
    await findRealDeliveries(sql, appId as AppId, 'stripe');
    await listWebhookStates(sql, appId as AppId, ['stripe']);
    expect(sent).toHaveLength(2);
    expect(await faultsOf({ request: '', status: 200, returned: 1, statements: sent })).toEqual([]);
    await client.query(
      'update deliveries d set proof = r.proof from jsonb_to_recordset($1) r (id text, proof jsonb) where d.id = r.id',
      [JSON.stringify(rows)],
    );
  } finally {
    await client.query('set session_replication_role = origin');
    await client.query('vacuum analyze deliveries');
  }
});

test('the overview of a creator does not read what is overdue for the other creators of the app', async () => {
  const [first = '', last = ''] = await idsOf('affiliate');
  await client.query('begin');
  try {
    await client.query('set local session_replication_role = replica');
    await client.query(
      `update commissions set status = 'pending', matured_at = null, paid_at = null, payout_id = null
        where affiliate_id = $1 and status <> 'pending'`,
      [first],
    );
    await client.query('analyze commissions');
    sent = [];
    expect(await readAffiliateTotals(sql, appId as AppId, last as AffiliateId, Date.now())).toBeDefined();
    expect(await faultsOf({ request: '', status: 200, returned: 1, statements: sent })).toEqual([]);
  } finally {
    await client.query('rollback');
    // The indexes still contain the rows of the transaction.
    await client.query('vacuum commissions');
  }
});

test('a reprocess run reads only a page of deliveries and their dependencies, whatever its progress', async () => {
  const id = newId('reprocessRun');
  const none = { deliveryId: null, from: null, to: null };
  expect(await requestReprocessing(sql, { id, appId: appId as AppId, dryRun: true, ...none })).toBe(id);
  await sql`
    with found as (
      insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
      select app_id, ${id}, id, received_at, '[{}]', true from deliveries
       where app_id = ${appId} and signature_valid and completed_at is not null order by received_at, id limit 20000
      returning received_at, delivery_id
    ), numbered as (
      select f.*, row_number() over (order by received_at, delivery_id) as n from found f
    ), named as (
      insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
      select ${id}, delivery_id, unnest(array['event ' || n, 'pair ' || n / 2]), true from numbered
    )
    update reprocess_runs r set seen = 19990, last_received_at = f.received_at, last_delivery_id = f.delivery_id
      from numbered f where f.n = 19990 and r.id = ${id}`;
  await client.query('analyze reprocess_changes');
  await client.query('analyze reprocess_names');
  const middle = await sql.one<ReprocessedDelivery>`
    select c.delivery_id, c.received_at
      from reprocess_names n join reprocess_changes c using (reprocess_run_id, delivery_id)
     where n.reprocess_run_id = ${id} and n.name = 'event 10001'`;
  const ofRange = { id, deliveryId: null, provider: null, processingStatus: null, appliesRunId: null };
  sent = [];
  expect(await findNextDeliveries(sql, ofRange, 20)).toHaveLength(20);
  expect(await findPlannedDeliveries(sql, id)).toHaveLength(10);
  // Its own name leads to a delivery that both depend on, and that one to the earlier delivery.
  expect(await findDependencies(sql, id, middle, ['event 10001'], 50)).toHaveLength(1);
  expect(await listReprocessChanges(sql, id, middle, 20)).toHaveLength(20);
  expect(await listReprocessedCommissions(sql, id, null, 20)).toEqual([]);
  expect(sent).toHaveLength(5);
  expect(await faultsOf({ request: '', status: 200, returned: 20, statements: sent })).toEqual([]);
});

test('a page of the payments that wait for a user reads no more rows than a page, wherever it begins', async () => {
  const [id, user] = [appId as AppId, 'waiting-user'];
  await client.query('set session_replication_role = replica');
  await client.query(
    `with found as (
       select e.*, 'pmt' || substr(e.id, 4) as payment_id from events e
        where e.app_id = $1 and e.likely_cause is not null order by e.id limit 10000
     ), waiting as (
       insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at,
                             only_anonymous_user, evaluated_at, likely_cause)
       select payment_id, app_id, environment, store, payment_ref, id, currency, amount_minor, occurred_at, false,
              occurred_at, likely_cause
         from found on conflict do nothing
     ), links as (
       insert into user_links (app_id, environment, source, user_key, customer_user_id)
       values ($1, 'production', 'stripe', 'waiting-key', $2)
     ), keys as (
       insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
       select app_id, 'stripe', 'waiting-key', payment_id, environment, 0 from found
     )
     insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
     select app_id, $2, payment_id, environment, 0 from found`,
    [appId, user],
  );
  await client.query('set session_replication_role = origin');
  for (const table of ['payments', 'payment_users', 'payment_user_keys', 'user_links']) {
    await client.query(`analyze ${table}`);
  }
  sent = [];
  const first = await findWaitingPayments(sql, id, user, null, 50);
  const second = await findWaitingPayments(sql, id, user, first.at(-1) ?? null, 50);
  expect([first.length, new Set([...first, ...second]).size]).toEqual([50, 100]);
  expect(await faultsOf({ request: '', status: 200, returned: 50, statements: sent })).toEqual([]);
});

test("the numbering of a customer's earlier payments reads the rows of this customer only", async () => {
  const { subjectId } = await sql.one<{ subjectId: BindingId }>`
    select subject_id from payment_numbers where app_id = ${appId} order by number desc, subject_id limit 1`;
  const removeNumbers = async () => {
    await client.query('set session_replication_role = replica');
    const removed = await client.query('delete from payment_numbers where subject_id = $1', [subjectId]);
    await client.query('set session_replication_role = origin');
    return removed.rowCount;
  };
  await removeNumbers();
  sent = [];
  await numberEarlierPayments(sql, subjectId);
  expect(sent).toHaveLength(1);
  expect(await removeNumbers()).toBeGreaterThan(0);
  expect(await faultsOf({ request: '', status: 200, returned: 20, statements: sent })).toEqual([]);
});

test('an import of rates reads the refunds that wait for one, and none of those that do not', async () => {
  await client.query('begin');
  try {
    await client.query('set local session_replication_role = replica');
    // Refunds in another currency of payments that earned nothing keep no value, but do not wait. Four of the currency do, and many of another one.
    await client.query(
      `with found as (
         select e.*, row_number() over (order by e.id) as n from events e
          where e.app_id = $1 and e.environment = 'production' order by e.id limit 20000
       ), waiting as (
         update events e set kind = case f.n % 3 when 0 then 'refund' when 1 then 'chargeback' else 'other' end,
                             likely_cause = 'missing_exchange_rate', currency = case when f.n <= 4 then 'ISK' else 'HUF' end
           from found f where e.id = f.id and f.n <= 5000
       )
       insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                                amount_minor, occurred_at, stated_at, event_id)
       select 'adj_1' || lpad(n::text, 25, '0'), app_id, 'production', 'stripe', 'waiting-' || n, payment_ref, 'refund', 'applied', 1,
              false, case when n between 5 and 5000 then 'HUF' else 'ISK' end, 1000, occurred_at, occurred_at, id
         from found`,
      [appId],
    );
    await client.query('analyze events');
    await client.query('analyze adjustments');
    sent = [];
    const rate = { currency: 'ISK', day: '2026-01-15', units: '1', worthUsd: '0.1' };
    await importRates(sql, { source: 'operator', rates: [rate] });
    const statements = sent.filter(({ text }) => text.includes('exchange_rates'));
    expect(statements).toHaveLength(1);
    const marked = async () =>
      (await client.query('select from payments where recheck_since is not null')).rowCount ?? 0;
    const before = await marked();
    expect(await faultsOf({ request: '', status: 200, returned: 10, statements })).toEqual([]);
    // A statement with a longer limit may read whole tables.
    for (const plan of ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'])
      await client.query(`set local ${plan} = on`);
    expect(await faultsOf({ request: '', status: 200, returned: 10, statements })).toEqual([]);
    expect((await marked()) - before).toBe(4);
  } finally {
    await client.query('rollback');
    await client.query('vacuum analyze events');
    await client.query('vacuum analyze adjustments');
  }
});

// @promise webhooks-out-fair
test('a claim of messages reads a few for each endpoint, whatever waits and whatever was sent', async () => {
  sent = [];
  const claim = { claimMs: 30_000, limit: 50, after: null };
  expect(await claimWebhookMessages(sql, claim)).toEqual({
    messages: [],
    lastAccountId: null,
    hasMore: false,
  });
  await client.query('begin');
  try {
    await client.query('set local session_replication_role = replica');
    const { rowCount } = await client.query(
      `update webhook_messages
          set status = 'pending', completed_at = null, next_attempt_at = created_at,
              relay_at = case when substr(id, 29, 1) < '2' then now() + interval '1 day' else created_at end
        where id in (select id from webhook_messages where app_id = $1 order by id limit 20000)`,
      [appId],
    );
    expect(rowCount).toBe(20_000);
    await client.query('analyze webhook_messages');
    expect(await faultsOf({ request: '', status: 200, returned: 50, statements: sent })).toEqual([]);
  } finally {
    await client.query('rollback');
    await client.query('vacuum analyze webhook_messages');
  }
});

// @promise email-shares
test('a claim of mails reads a few for each app and the members of each account, whatever waits and whatever was sent', async () => {
  // What the routes above have written.
  await claimEmails(sql, 30_000, 50);
  sent = [];
  expect(await claimEmails(sql, 30_000, 50)).toEqual({ emails: [], hasMore: false });
  await client.query('begin');
  try {
    await client.query('set local session_replication_role = replica');
    for (const [column, owner, least] of [
      ['app_id', appId, 10_000],
      ['account_id', accountId, 9_999],
    ] as const) {
      const { rowCount } = await client.query(
        `update emails
            set status = 'queued', ended_at = null, attempts = 1,
                next_attempt_at = case when n % 2 = 0 then now() + interval '30 minutes' else now() - interval '10 seconds' end,
                relay_at = case n % 4 when 0 then now() + interval '31 minutes' when 2 then now() - interval '1 second'
                                      when 1 then now() + interval '50 seconds' else now() - interval '1 minute' end
           from (select id as email_id, row_number() over (order by id) as n from emails where ${column} = $1 limit 10000) e
          where id = email_id`,
        [owner],
      );
      expect(rowCount).toBeGreaterThanOrEqual(least);
    }
    await client.query('analyze emails');
    expect(await faultsOf({ request: '', status: 200, returned: 50, statements: sent })).toEqual([]);
  } finally {
    await client.query('rollback');
    await client.query('vacuum analyze emails');
  }
});

// @promise erased-quickly
test('the request of an erasure reads the rows of its person only, also beside the plans of reprocess runs', async () => {
  const { user } = await sql.one<{ user: string }>`
    select customer_user_id as user from bindings where app_id = ${appId} order by id limit 1`;
  const deps = { sql, secretBox: createSecretBox([TEST_KEY]) };
  sent = [];
  const { counts } = await eraseUser(deps, { appId: appId as AppId, customerUserId: user, keyId: null });
  expect(counts).toMatchObject({ bindings: 1 });
  const statements = sent.filter(({ text }) => /^\s*(with|select|insert|update)/.test(text));
  expect(statements.length).toBeGreaterThan(5);
  const { n } = await sql.one<{ n: number }>`select count(*)::int as n from reprocess_names`;
  expect(n).toBeGreaterThan(10_000);
  const faults: string[] = [];
  for (const statement of statements) {
    await client.query('begin');
    faults.push(...(await faultsOf({ request: '', status: 200, returned: 20, statements: [statement] })));
    await client.query('rollback');
    await client.query('vacuum erasures');
  }
  // The row of the erasure counts what the other parts of its statement have read.
  expect(faults.filter((fault) => !fault.includes('erasures_pkey'))).toEqual([]);
});

describe('the check of query plans', () => {
  test.each([
    ['affiliates_by_name', '/affiliates', { sort: 'name' }],
    ['rollups_top_earners_by_status', '/affiliates', { sort: 'earnings', status: 'removed' }],
    ['links_by_created', '/links', {}],
    ['links_by_affiliate_active', '/links', { affiliateId: 'first', active: 'false' }],
    ['commissions_by_occurred', '/commissions', {}],
    ['commissions_by_affiliate', '/commissions', { affiliateId: 'first' }],
    ['commissions_by_link', '/commissions', { linkId: 'link' }],
    ['commissions_by_kind', '/commissions', { kind: 'correction' }],
    ['commissions_by_user', '/commissions', { customerUserId: 'nobody' }],
    ['codes_by_value', '/search', { q: 'nobody' }],
    ['events_by_payment_ref', '/search', { q: 'nobody' }],
    ['commissions_matured_since', '/payouts/preview', { asOf: '2026-06-01' }],
    ['commissions_paid_since', '/payouts/preview', { asOf: '2026-06-01' }],
    ['payout_items_payout_id_position_key', '/commissions', { payoutId: 'payout' }],
    ['affiliates_by_email', '/affiliates', { email: 'nobody@example.com' }],
    ['deliveries_by_status', '/diagnostics/webhooks', { processingStatus: 'failed' }],
    ['commissions_by_affiliate_status', '/commissions', { affiliateId: 'first', status: 'paid' }],
    ['rollups_top_links', '/overview', {}],
    ['rollups_top_links_of_affiliate', '/affiliates/last/overview', {}],
    ['rollup_blocks_by_time', '/leaders', { from: '2023-01-01', to: '2023-01-31' }],
    ['affiliates_external_id', '/affiliates', { externalId: 'nobody' }],
    ['events_by_received', '/events', {}],
    ['events_by_user', '/events', { customerUserId: 'nobody' }],
    ['events_unattributed', '/diagnostics/unattributed', {}],
    ['events_by_cause', '/diagnostics/unattributed', { likelyCause: 'rate_zero' }],
    ['events_unattributed_by_user', '/diagnostics/unattributed', { customerUserId: 'guest' }],
    ['identities_by_user', '/diagnostics/identity', {}],
    ['deliveries_by_received', '/diagnostics/webhooks', {}],
    ['deliveries_latest_real', '/webhooks', {}],
  ])(
    'the check of query plans reports the missing index %s',
    async (index, path, query: Record<string, string>) => {
      const [first = '', last = ''] = await idsOf('affiliate');
      const [link = ''] = await idsOf('link');
      const [payout = ''] = await idsOf('payout');
      const ids: Record<string, string> = { first, last, link, payout };
      const named = (text: string) =>
        text.replace(/\b(first|last)\b|^(link|payout)$/, (name) => ids[name] ?? name);
      const one = await read(
        `/apps/${appId}${named(path)}`,
        Object.fromEntries(Object.entries(query).map(([name, value]) => [name, named(value)])),
        { key },
      );
      expect([one.status, await faultsOf(one)]).toEqual([200, []]);
      await client.query('begin');
      try {
        await client.query('update pg_index set indisvalid = false where indexrelid = $1::regclass', [index]);
        expect(await faultsOf(one)).not.toEqual([]);
      } finally {
        await client.query('rollback');
      }
    },
  );
});
