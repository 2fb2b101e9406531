import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createDeliveryActivities } from '../../activities/delivery.ts';
import { WebhookCache } from '../../src/commands/webhook-cache.ts';
import type { HoldSlot } from '../../src/commands/deps.ts';
import { receiveWebhook } from '../../src/commands/receive-webhook.ts';
import { createLogger } from '../../src/config/logger.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { DeliveryOutcome } from '../../src/domain/delivery.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { migrate } from '../../src/db/migrate.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import { putWebhookSecret, secretContext } from '../../src/db/webhook-secrets.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { postmasterOf, processorTimeMs } from './processor-time.ts';
import { ratio, report } from './report.ts';
import { insertApp } from './insert-app.ts';
import { insertPolicy } from './insert-policy.ts';
import { median } from './support.ts';
import { NO_CALLBACKS } from '../no-callbacks.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../provider-payloads.ts';
import { IDLE_WORKFLOWS } from '../../test/support/idle-workflows.ts';

/**
 * `npm run bench -- delivery-sql`: the database's part of a delivery that earns, without HTTP and Temporal, next to the same
 * rows inserted by one hand-written statement into tables with the same indexes, without foreign keys and triggers. Then the same of an
 * app with a policy.
 */
const DELIVERIES = Number(process.env['BENCH_DELIVERIES'] ?? 100);
// Many short rounds: the machine's own speed changes by a third within a minute, and neighbours share it.
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 80);
const IN_FLIGHT = Number(process.env['BENCH_IN_FLIGHT'] ?? 4);
const USERS = 200;
const PROVIDER = 'stripe';

/** The tables that one delivery which earns adds a row to. */
const TABLES = [
  'deliveries',
  'delivery_bodies',
  'events',
  'payments',
  'payment_users',
  'commissions',
  'revenue_entries',
];

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
let server = await startEmbeddedPostgres({ dataDir, durable: true });
const admin = new pg.Client(server.ownerUrl);
await admin.connect();
await admin.query(`alter system set shared_preload_libraries = 'pg_stat_statements'`);
await admin.query(`alter system set pg_stat_statements.track_planning = on`);
await admin.query(`alter system set max_wal_size = '4GB'`);
await admin.end();
await server.stop();
server = await startEmbeddedPostgres({ dataDir, durable: true });
const postmaster = postmasterOf(dataDir);

await migrate(server.ownerUrl, () => {});
const sql = connect({ url: server.url, max: IN_FLIGHT });
const client = new pg.Client(server.ownerUrl);
await client.connect();
await client.query('create extension pg_stat_statements');

const secretBox = createSecretBox([randomBytes(32)]);
const stripeSecret = `whsec_bench_${randomBytes(8).toString('hex')}`;
const { id: accountId } = await createAccount(sql, 'Bench');
const users = Array.from({ length: USERS }, (_, n) => `user-${n}`);

/** Inserts an app with a creator whom all users are bound to. Returns its ids. */
async function insertCreator(subdomain: string) {
  const appId = await insertApp(client, accountId, subdomain);
  const [secretId, affiliateId, linkId] = [newId('secret'), newId('affiliate'), newId('link')];
  await putWebhookSecret(
    sql,
    { appId, provider: PROVIDER, at: Date.now(), previousEndsAt: Date.now(), keyIds: secretBox.keyIds },
    () => ({
      environment: 'production',
      signed: null,
      ...secretBox.encrypt(stripeSecret, secretContext(appId, PROVIDER)),
    }),
  );
  await client.query(`insert into affiliates (id, app_id, name) values ($1, $2, 'Creator')`, [
    affiliateId,
    appId,
  ]);
  await client.query(
    `insert into links (id, app_id, affiliate_id, slug, destination_url) values ($1, $2, $3, 'bench', 'https://example.com')`,
    [linkId, appId, affiliateId],
  );
  for (const user of users) {
    const attributionId = newId('attribution');
    await client.query(
      `insert into attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at)
       values ($1, $2, $3, $4, $5, 'code', now(), now())`,
      [attributionId, appId, `device of ${user}`, affiliateId, linkId],
    );
    await client.query(
      `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, healed_at)
       values ($1, $2, $3, $4, now(), now())`,
      [newId('binding'), appId, user, attributionId],
    );
  }
  return { appId, secretId, affiliateId, linkId };
}

const { appId, secretId, affiliateId, linkId } = await insertCreator('bench');
const withPolicy = await insertCreator('policy');
await insertPolicy(client, withPolicy.appId);
const bindingIds = new Map(
  (
    await sql<{ id: string; customerUserId: string }>`
      select id, customer_user_id from bindings where app_id = ${appId}`
  ).map((row) => [row.customerUserId, row.id]),
);
await client.query('create schema plain');
await client.query('grant usage on schema plain to public');
for (const table of TABLES) {
  await client.query(
    `create table plain.${table} (like public.${table} including defaults including indexes)`,
  );
  await client.query(`grant insert on plain.${table} to public`);
}

/** A side of the comparison: processes one purchase of a user. */
type Side = (user: string) => Promise<void>;

const webhookCache = new WebhookCache();
const activities = createDeliveryActivities({
  sql,
  secretBox,
  logger: createLogger('fatal'),
  ...NO_CALLBACKS,
  takeStored: (deliveryId) => webhookCache.take(deliveryId),
});
const deps = {
  sql,
  secretBox,
  webhookCache,
  refusals: { count: () => {}, flush: async () => {} },
  admit: async <T>(work: (holdSlot: HoldSlot) => Promise<T>) => await work(() => {}),
  runInDeliverySlot: async (_waitMs: number, work: (holdSlot: HoldSlot) => Promise<DeliveryOutcome | null>) =>
    await work(() => {}),
  workflows: {
    ...IDLE_WORKFLOWS,
    awaitDelivery: async ({ deliveryId }: { readonly deliveryId: string }) =>
      await activities.processDelivery(deliveryId),
  },
};

const serviceFor =
  (ofApp: string): Side =>
  async (user) => {
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_999, occurredAt: Date.now() }));
    const headers = { 'stripe-signature': signStripe(body, stripeSecret, Math.floor(Date.now() / 1000)) };
    const result = await receiveWebhook(deps, PROVIDER, ofApp, {
      headers,
      receivedAt: Date.now(),
      readBody: async () => body,
    });
    if (result.kind !== 'done' || result.commissionId === null)
      throw new Error(`no commission: ${result.kind}`);
  };

const handWritten: Side = async (user) => {
  const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_999, occurredAt: Date.now() }));
  const [deliveryId, eventId, paymentId] = [newId('delivery'), newId('event'), newId('payment')];
  const proof = {
    scheme: 'signed',
    signature: signStripe(body, stripeSecret, Math.floor(Date.now() / 1000)),
  };
  await sql`
    with delivery as (
      insert into plain.deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof,
                                    body_sha256, event_id, source_event_id, event_count, completed_at)
      values (${deliveryId}, ${appId}, ${PROVIDER}, now(), true, 'processed', ${secretId}, ${sql.json(proof)},
              sha256(${body}), ${eventId}, ${eventId}, 1, now())
    ), stored_body as (
      insert into plain.delivery_bodies (delivery_id, body) values (${deliveryId}, ${body})
    ), event as (
      insert into plain.events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                                product_id, customer_user_id, store, payment_ref, currency, amount_minor, amount_cents)
      values (${eventId}, ${appId}, ${deliveryId}, ${PROVIDER}, ${eventId}, 'purchase', 'production', now(), now(),
              'product', ${user}, 'stripe', ${paymentId}, 'USD', 1999, 1999)
    ), payment as (
      insert into plain.payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                                  only_anonymous_user, evaluated_at, base_cents, binding_id, earned_cents)
      values (${paymentId}, ${appId}, 'production', 'stripe', ${paymentId}, ${eventId}, 'USD', 1999, 1999, now(),
              false, now(), 1999, ${bindingIds.get(user) ?? null}, 400)
    ), paying_user as (
      insert into plain.payment_users (app_id, customer_user_id, payment_id, environment, position)
      values (${appId}, ${user}, ${paymentId}, 'production', 0)
    ), commission as (
      insert into plain.commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps,
                                     rate_source, base_cents, amount_cents, source, customer_user_id, match_method,
                                     occurred_at, due_at)
      values (${newId('commission')}, ${appId}, ${affiliateId}, ${linkId}, ${eventId}, ${paymentId},
              ${bindingIds.get(user) ?? null}, 'earning', 2000, 'app', 1999, 400, ${PROVIDER}, ${user}, 'code', now(),
              now() + interval '30 days')
    )
    insert into plain.revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
    values (${paymentId}, 1, ${appId}, ${affiliateId}, ${linkId}, 1999, now())`;
};

interface Figures {
  readonly cpuMs: number;
  readonly walBytes: number;
  readonly p50Ms: number;
}

/** Returns the position of the WAL, bytes. */
const wal = async () =>
  Number(
    (await client.query<{ lsn: string }>(`select pg_current_wal_insert_lsn() - '0/0' as lsn`)).rows[0]?.lsn,
  );

/** Runs deliveries, and returns what one of them costs. */
async function measure(side: Side, count: number): Promise<Figures> {
  const times: number[] = [];
  const [walBefore, cpuBefore] = [await wal(), processorTimeMs(postmaster)];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      const user = users[next % users.length] ?? '';
      const sent = performance.now();
      await side(user);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const [cpuAfter, walAfter] = [processorTimeMs(postmaster), await wal()];
  return {
    cpuMs: (cpuAfter - cpuBefore) / count,
    walBytes: (walAfter - walBefore) / count,
    p50Ms: median(times),
  };
}

const sides = {
  'one hand-written statement': handWritten,
  'the service': serviceFor(appId),
  'an app with a policy': serviceFor(withPolicy.appId),
};
const rounds: Record<string, Figures[]> = {};
for (const side of Object.values(sides)) await measure(side, Math.min(300, DELIVERIES));
await client.query('vacuum analyze');
await client.query('select pg_stat_statements_reset()');
for (let round = 0; round < ROUNDS; round += 1) {
  // What a side leaves to the server's background processes is not always charged to the same neighbour.
  const inOrder = round % 2 === 0 ? Object.entries(sides) : Object.entries(sides).toReversed();
  for (const [name, side] of inOrder) (rounds[name] ??= []).push(await measure(side, DELIVERIES));
}
const medianOf = (name: string, figure: keyof Figures) =>
  median((rounds[name] ?? []).map((one) => one[figure]));
for (const name of Object.keys(sides)) {
  process.stdout.write(
    `${name.padEnd(28)} Postgres CPU ${medianOf(name, 'cpuMs').toFixed(2)} ms, WAL ${medianOf(name, 'walBytes').toFixed(0)} bytes, ` +
      `p50 ${medianOf(name, 'p50Ms').toFixed(2)} ms per delivery, ${IN_FLIGHT} in flight\n`,
  );
}
/** Returns the median ratio of two sides in neighbouring rounds. */
const ratioOf = (name: string, other: string) =>
  median((rounds[name] ?? []).map((one, index) => one.cpuMs / (rounds[other]?.[index]?.cpuMs ?? Number.NaN)));
const measured = (name: string, other: string) =>
  `${medianOf(name, 'cpuMs').toFixed(1)} ms against ${medianOf(other, 'cpuMs').toFixed(1)} ms: ${ratio(ratioOf(name, other))}`;
report({
  path: 'the database part of an earning delivery, processor time of Postgres',
  comparedWith: 'one hand-written statement',
  measured: `${measured('the service', 'one hand-written statement')}; ${(medianOf('the service', 'walBytes') / 1000).toFixed(1)} kB of WAL`,
  target: 'at most 3.4 ms and 13 kB',
  isReached: medianOf('the service', 'cpuMs') <= 3.4 && medianOf('the service', 'walBytes') <= 13_000,
});
report({
  path: 'the same in an app with a policy',
  comparedWith: 'an app without policies',
  measured: measured('an app with a policy', 'the service'),
  target: 'at most 1.1, and 4 ms',
  isReached:
    ratioOf('an app with a policy', 'the service') <= 1.1 && medianOf('an app with a policy', 'cpuMs') <= 4,
});

const { rows } = await client.query<{
  statement: string;
  calls: string;
  exec: string;
  plan: string;
  wal: string;
}>(
  `select left(regexp_replace(query, '\\s+', ' ', 'g'), 60) as statement, calls::float / $1 as calls, total_exec_time / calls as exec,
          total_plan_time / calls as plan, wal_bytes / calls as wal
     from pg_stat_statements where query not like '%plain.%' and calls >= $1 / 100 order by total_exec_time desc limit 12`,
  [ROUNDS * DELIVERIES * 2],
);
process.stdout.write(
  'calls  exec ms  plan ms  WAL bytes  statement (calls per delivery to the two apps, then figures of one call)\n',
);
for (const row of rows) {
  process.stdout.write(
    `${Number(row.calls).toFixed(2).padStart(5)} ${Number(row.exec).toFixed(3).padStart(8)} ${Number(row.plan).toFixed(3).padStart(8)} ${Number(row.wal).toFixed(0).padStart(10)}  ${row.statement.trim()}\n`,
  );
}
await client.end();
await sql.close();
await server.stop();
await rm(dataDir, { recursive: true, force: true });
