import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { analyzeGrownTables } from '../../src/db/statistics.ts';
import { ID_PREFIXES } from '../../src/domain/ids.ts';
import type { IdKind } from '../../src/domain/ids.ts';
import { newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  signStripe,
  stripeCheckoutSession,
  stripeInvoicePaid,
  stripeRefund,
} from '../support/provider-fixtures.ts';
import { isLong } from '../support/rounds.ts';

/** `TEST_ROWS=1000000` grows the tables to as many rows, which takes minutes. */
const MOST_ROWS = Number(process.env['TEST_ROWS'] ?? (isLong ? 100_000 : 1_000));
/** The numbers of rows per table at which the work is measured. */
const SIZES = [1_000, 10_000, 100_000, 1_000_000].filter((size) => size <= MOST_ROWS);
/** The rows and index entries that one round of work may read. It reads the same number in a database of any size. */
const MOST_READ = 1_200;
/** After five executions Postgres may choose a plan without looking at the parameters, and keep it. */
const ROUNDS_ON_EMPTY_TABLES = 6;
const STRIPE_SECRET = 'whsec_test_growing';

const id = (kind: IdKind, number: string) => `'${ID_PREFIXES[kind]}_1' || lpad((${number})::text, 25, '0')`;

/** Rows `from` to `to` of each table that grows with use, all of one app. */
const growth = (appId: string, from: number, to: number): string[] => {
  const n = `generate_series(${from}, ${to}) n`;
  return [
    `insert into affiliates (id, app_id, name) select ${id('affiliate', 'n')}, '${appId}', 'Creator ' || n from ${n}`,
    `insert into links (id, app_id, affiliate_id, slug, destination_url)
     select ${id('link', 'n')}, '${appId}', ${id('affiliate', 'n')}, 's-' || n, 'https://example.com' from ${n}`,
    `insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
     select ${id('click', 'n')}, '${appId}', ${id('affiliate', 'n')}, ${id('link', 'n')}, md5(n::text)::uuid, false, now() from ${n}`,
    `insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at)
     select ${id('attribution', 'n')}, '${appId}', 'd-' || n, ${id('affiliate', 'n')}, ${id('link', 'n')}, ${id('click', 'n')},
            'claim_token', now(), now() from ${n}`,
    `insert into identities (app_id, device_id, customer_user_id, position, identified_at)
     select '${appId}', 'd-' || n, 'u-' || n, 1, now() from ${n}`,
    `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
     select ${id('binding', 'n')}, '${appId}', 'u-' || n, ${id('attribution', 'n')}, now() from ${n}`,
    // Every delivery has just been received.
    `insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256, event_id)
     select ${id('delivery', 'n')}, '${appId}', 'stripe', now(), true, 'received', (select min(id) from webhook_secrets),
            sha256('x'), ${id('event', 'n')} from ${n}`,
    `insert into delivery_bodies (delivery_id, body) select ${id('delivery', 'n')}, 'x' from ${n}`,
    `insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                         customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
     select ${id('event', 'n')}, '${appId}', ${id('delivery', 'n')}, 'stripe', 'e-' || n, 'purchase', 'production', now(), now(),
            'u-' || n, 'stripe', 'r-' || n, 'USD', 1000, 1000, 'processing' from ${n}`,
    `insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at,
                           only_anonymous_user, binding_id, earned_cents, recheck_since)
     select ${id('payment', 'n')}, '${appId}', 'production', 'stripe', 'r-' || n, ${id('event', 'n')}, 'USD', 1000, now(), false,
            ${id('binding', 'n')}, 200, now() from ${n}`,
    `insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
     select '${appId}', 'u-' || n, ${id('payment', 'n')}, 'production', 0 from ${n}`,
    `insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
     select '${appId}', 'stripe', 'k-' || n, ${id('payment', 'n')}, 'production', 0 from ${n}`,
    `insert into user_links (app_id, environment, source, user_key, customer_user_id)
     select '${appId}', 'production', 'stripe', 'k-' || n, 'u-' || n from ${n}`,
    `insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
     select '${appId}', 'production', 'stripe', 'a-' || n, 'r-' || n from ${n}`,
    `insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                              amount_minor, occurred_at, stated_at, event_id)
     select ${id('adjustment', 'n')}, '${appId}', 'production', 'stripe', 'adj-' || n, 'r-' || n, 'refund', 'applied', 1, false,
            'USD', 1000, now(), now(), ${id('event', 'n')} from ${n}`,
    `insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps, base_cents,
                              amount_cents, source, customer_user_id, match_method, occurred_at, due_at)
     select ${id('commission', 'n')}, '${appId}', ${id('affiliate', 'n')}, ${id('link', 'n')}, ${id('event', 'n')},
            ${id('payment', 'n')}, ${id('binding', 'n')}, 'earning', 2000, 1000, 200, 'stripe', 'u-' || n, 'claim_token', now(), now()
       from ${n}`,
    `insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
     select ${id('payment', 'n')}, 1, '${appId}', ${id('affiliate', 'n')}, ${id('link', 'n')}, 1000, now() from ${n}`,
  ];
};

/**
 * Apps with one row in each table. The average app then has a few rows, and reading all rows of an app seems almost as cheap as a
 * look-up by all columns of an index.
 */
const smallApps = (like: TestApp, count: number): string[] => {
  const n = `generate_series(1, ${count}) n`;
  // Numbers that the rows of the large app do not reach.
  const row = (kind: IdKind) => id(kind, '5000000 + n');
  const app = row('app');
  return [
    `insert into apps select (jsonb_populate_record(a, jsonb_build_object('id', ${app}, 'link_subdomain', 'small-' || n))).*
       from apps a, ${n} where a.id = '${like.appId}'`,
    `insert into link_subdomains (subdomain, app_id, position) select 'small-' || n, ${app}, 1 from ${n}`,
    `insert into affiliates (id, app_id, name) select ${row('affiliate')}, ${app}, 'Creator' from ${n}`,
    `insert into links (id, app_id, affiliate_id, slug, destination_url)
     select ${row('link')}, ${app}, ${row('affiliate')}, 'growing', 'https://example.com' from ${n}`,
    `insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
     select ${row('click')}, ${app}, ${row('affiliate')}, ${row('link')}, md5('small' || n)::uuid, false, now() from ${n}`,
    `insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at)
     select ${row('attribution')}, ${app}, 'd', ${row('affiliate')}, ${row('link')}, ${row('click')}, 'claim_token', now(), now() from ${n}`,
    `insert into identities (app_id, device_id, customer_user_id, position, identified_at) select ${app}, 'd', 'u', 1, now() from ${n}`,
    `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, healed_at)
     select ${row('binding')}, ${app}, 'u', ${row('attribution')}, now(), now() from ${n}`,
  ];
};

/** Returns the rows and index entries that were read in each table since the database was created. */
async function readsOf(api: TestApi): Promise<Map<string, number>> {
  await api.sql`select pg_stat_force_next_flush()`;
  const rows = await api.sql<{ name: string; rows: number }>`
    select relname as name, seq_tup_read as rows from pg_stat_user_tables
    union all
    select indexrelname, idx_tup_read from pg_stat_user_indexes`;
  return new Map(rows.map(({ name, rows: read }) => [name, read]));
}

/** Sends the work of the request path through the only connection: a click, an install, a user, purchases, a refund. */
async function work(api: TestApi, app: TestApp, slug: string): Promise<void> {
  const [claimToken, deviceId, customerUserId] = [randomUUID(), randomUUID(), randomUUID()];
  const send = async (path: string, body: object, key: string | null = app.sdkKey) => {
    const response = await api.call('POST', path, { key, body });
    expect(response.status).toBe(200);
  };
  const deliver = async (payload: Parameters<typeof bodyOf>[0]) => {
    const body = bodyOf(payload);
    const headers = { 'stripe-signature': signStripe(body, STRIPE_SECRET, Math.floor(api.clock.now / 1000)) };
    const response = await api.call<{ commissionId: string | null }>(
      'POST',
      `/webhooks/stripe/${app.appId}`,
      { key: null, body, headers },
    );
    expect(response.status).toBe(200);
    return response.body.commissionId;
  };
  await send('/clicks', { customerAppId: app.appId, slug, claimToken }, null);
  expect((await api.call('GET', `/l/${app.linkSubdomain}/${slug}`)).status).toBe(302);
  await send('/sdk/install', { deviceId, claimToken, firstOpenAt: api.clock.now });
  await send('/sdk/identify', { deviceId, customerUserId, identifiedAt: api.clock.now });
  const invoiceId = `in_${randomUUID()}`;
  const sale = { userId: customerUserId, occurredAt: api.clock.now };
  expect(await deliver(stripeInvoicePaid({ ...sale, invoiceId }))).toMatch(/^com_/);
  const paymentIntentId = `pi_${randomUUID()}`;
  expect(await deliver(stripeCheckoutSession({ ...sale, paymentIntentId }))).toMatch(/^com_/);
  expect(await deliver(stripeRefund({ paymentIntentId, occurredAt: api.clock.now }))).toMatch(/^com_/);
  expect(await deliver(stripeInvoicePaid({ ...sale, userId: `unknown-${randomUUID()}` }))).toBeNull();
}

/** Returns the tables of which one round of work reads more than it may, with the number of rows. */
async function readTooMuch(api: TestApi, app: TestApp, slug: string): Promise<string[]> {
  const before = await readsOf(api);
  await work(api, app, slug);
  const after = await readsOf(api);
  const read = [...after].map(([table, rows]) => ({ table, rows: rows - (before.get(table) ?? 0) }));
  const total = read.reduce((sum, { rows }) => sum + rows, 0);
  if (total <= MOST_READ) return [];
  return read
    .filter(({ rows }) => rows > MOST_READ / 20)
    .toSorted((a, b) => b.rows - a.rows)
    .map(({ table, rows }) => `${table}: ${rows} rows`);
}

/** Empty tables without and with statistics. */
const BEGINNINGS: readonly (readonly [string, readonly string[]])[] = [
  ['without statistics', []],
  ['with the statistics of empty tables', ['vacuum analyze']],
];

describe.each(isLong ? BEGINNINGS : BEGINNINGS.slice(1))('a connection that began %s', (_, preparation) => {
  // @promise plans-at-any-size
  test('a request reads as few rows when the tables have grown as when they were empty', async () => {
    const { api } = await startProcessingApi({ sqlOptions: { max: 1 } });
    const admin = new pg.Client(api.database.url);
    await admin.connect();
    try {
      // Nothing but the plans protects the request path here.
      await admin.query(`
        do $$ declare t regclass; begin
          for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
            execute format('alter table %s set (autovacuum_enabled = off)', t);
          end loop;
        end $$`);
      for (const statement of preparation) await admin.query(statement);
      const app = await newApp(api);
      await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, {
        key: app.key,
        body: { secret: STRIPE_SECRET },
      });
      const { body: creator } = await api.call('POST', `/apps/${app.appId}/affiliates`, {
        key: app.key,
        body: { name: 'Creator' },
      });
      const slug = 'growing';
      await api.call('POST', `/apps/${app.appId}/links`, {
        key: app.key,
        body: { affiliateId: creator['id'], slug, destinationUrl: 'https://example.com' },
      });
      for (let round = 0; round < ROUNDS_ON_EMPTY_TABLES; round += 1) await work(api, app, slug);
      await admin.query('set session_replication_role = replica');
      let size = 0;
      for (const next of SIZES) {
        for (const statement of growth(app.appId, size + 1, next)) await admin.query(statement);
        size = next;
        // Statistics of a session arrive within a second. The service does the rest every 5 s.
        await admin.query('select pg_stat_force_next_flush()');
        await analyzeGrownTables(api.sql);
        expect({ size, tooMuch: await readTooMuch(api, app, slug) }).toEqual({ size, tooMuch: [] });
      }
      await admin.query('analyze');
      await work(api, app, slug);
      expect(await readTooMuch(api, app, slug)).toEqual([]);
      for (const statement of smallApps(app, size * 0.3)) await admin.query(statement);
      await admin.query('analyze');
      await work(api, app, slug);
      expect({ smallApps: true, tooMuch: await readTooMuch(api, app, slug) }).toEqual({
        smallApps: true,
        tooMuch: [],
      });
    } finally {
      await admin.end();
      await api.close();
    }
  }, 1_800_000);
});
