import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import type { Activities } from '../../activities/index.ts';
import { createErasureActivities } from '../../activities/erasure.ts';
import { runAdmin } from '../../src/cli/admin.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { pseudonymize } from '../../src/db/erased-identifiers.ts';
import { eraseDeliveries, eraseUser, findOpenErasure, finishErasure } from '../../src/db/erasures.ts';
import type { Erasure } from '../../src/db/erasures.ts';
import { newId } from '../../src/db/new-id.ts';
import { raiseOutcome, requestReprocessing } from '../../src/db/reprocess.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, DeliveryId, ErasureId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { providers } from '../../src/providers/index.ts';
import { newAffiliate, newApp, newLink, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { PERSONAL_COLUMNS } from '../support/personal-columns.ts';
import type { Treatment } from '../support/personal-columns.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  eventOf,
  revenuecatEvent,
  revenuecatRefund,
  stripeInvoicePaid,
} from '../support/provider-fixtures.ts';
import { rounds } from '../support/rounds.ts';
import { findInTables } from '../support/search-everywhere.ts';

const TOKEN = 'Bearer a-long-token-of-revenuecat';
const secretBox = createSecretBox([TEST_KEY]);
let api: TestApi;
let processing: Activities;
let app: TestApp;
let slug: string;
let affiliateId: string;

beforeAll(async () => {
  ({ api, activities: processing } = await startProcessingApi());
  api.clock.now = Date.now();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  ({ slug } = await newLink(api, app, affiliateId));
  await api.call('PUT', `/apps/${app.appId}/webhooks/revenuecat/secret`, {
    key: app.key,
    body: { secret: TOKEN },
  });
});
afterAll(async () => {
  await api.close();
});

/** Reports a new person's click, install and user id. Returns the texts that identify the person. */
async function newPerson() {
  const person = {
    userId: `user-${randomUUID()}`,
    deviceId: `device-${randomUUID()}`,
    claimToken: randomUUID(),
  };
  const { userId, deviceId, claimToken } = person;
  const at = api.clock.now - 10 * DAY_MS;
  await api.call('POST', '/clicks', { body: { customerAppId: app.appId, slug, claimToken, clickedAt: at } });
  const installed = await api.call('POST', '/sdk/install', {
    key: app.sdkKey,
    body: { deviceId, claimToken, firstOpenAt: at + 1 },
  });
  expect([installed.status, (await identify(deviceId, userId)).status]).toEqual([200, 200]);
  return person;
}

async function identify(deviceId: string, customerUserId: string) {
  return await api.call('POST', '/sdk/identify', {
    key: app.sdkKey,
    body: { deviceId, customerUserId, identifiedAt: api.clock.now - DAY_MS },
  });
}

const deliver = async (payload: Parameters<typeof bodyOf>[0]) =>
  await api.call<{ commissionId?: string | null }>('POST', `/webhooks/revenuecat/${app.appId}`, {
    body: bodyOf(payload),
    headers: { authorization: TOKEN },
  });

const purchase = async (userId: string, transactionId: string, usd = 10) =>
  await deliver(revenuecatEvent({ userId, usd, transactionId, occurredAt: api.clock.now - 5 * DAY_MS }));

const refund = async (userId: string, transactionId: string, usd = 10) =>
  await deliver(revenuecatRefund({ userId, usd, transactionId, occurredAt: api.clock.now - DAY_MS }));

const request = (customerUserId: string) => ({
  appId: app.appId as AppId,
  customerUserId,
  keyId: null,
});

const activities = (sql: Sql, settleMs = 0) =>
  createErasureActivities({
    sql,
    secretBox,
    logger: pino({ level: 'silent' }),
    deleteHistory: async () => 'absent',
    settleMs,
  });

/** Runs the pages of an erasure until it is complete, and the evaluations that it has marked. */
async function complete({ id }: Pick<Erasure, 'id'>, sql = api.sql): Promise<void> {
  for (let page = 0; page < 100; page += 1) {
    if (!(await activities(sql).erasePage(id)).done) continue;
    for (let next: string | null = null; ;) {
      ({ next } = await processing.convertPage(next));
      if (next === null) return;
    }
  }
  throw new Error('the erasure did not end');
}

/** Returns an `sql` that passes each statement to `around`. */
function wrapped(sql: Sql, around: <T>(run: () => Promise<T>) => Promise<T>): Sql {
  const wrap =
    <T>(send: (strings: TemplateStringsArray, ...values: readonly unknown[]) => Promise<T>) =>
    async (strings: TemplateStringsArray, ...values: readonly unknown[]) =>
      await around(async () => await send(strings, ...values));
  return Object.assign(wrap(sql), {
    ...sql,
    maybe: wrap(async (strings, ...values) => await sql.maybe(strings, ...values)),
    one: wrap(async (strings, ...values) => await sql.one(strings, ...values)),
    within: (ms: number) => wrapped(sql.within(ms), around),
  }) as unknown as Sql;
}

async function totalOf(pseudonym: string): Promise<number> {
  const { cents } = await api.sql.one<{ cents: number }>`
    select coalesce(sum(amount_cents), 0)::bigint as cents from commissions where customer_user_id = ${pseudonym}`;
  return cents;
}

async function expectErased(texts: readonly string[]): Promise<void> {
  expect(await findInTables(api.sql, texts)).toEqual([]);
  await expectConsistentLedger(api.sql);
  expect(await findRollupDifferences(api.sql)).toEqual([]);
}

describe('the steps of an erasure', () => {
  // @promise erased-twice
  test('every statement may be sent twice, and the counts state each row once', async () => {
    const person = await newPerson();
    await purchase(person.userId, `tx-${randomUUID()}`);
    const twice = wrapped(api.sql, async (run) => {
      await run();
      return await run();
    });
    const erasure = await eraseUser({ sql: twice, secretBox }, request(person.userId));
    await complete(erasure, twice);
    const after = await eraseUser({ sql: api.sql, secretBox }, request(person.userId));
    expect(after).toMatchObject({ id: erasure.id, pseudonym: erasure.pseudonym });
    expect(after.counts).toMatchObject({
      bindings: 1,
      commissions: 1,
      events: 1,
      devices: 1,
      clicks: 1,
      bodies: 1,
    });
    await expectErased(Object.values(person));
  });

  // @promise erased-twice
  test('an erasure that dies before any of its statements is completed by the next request or page', async () => {
    const texts: string[] = [];
    for (let last = 0; last < 40; last += rounds(3, 1)) {
      const person = await newPerson();
      await purchase(person.userId, `tx-${randomUUID()}`);
      let sent = 0;
      const dying = wrapped(api.sql, async (run) => {
        sent += 1;
        if (sent > last) throw new Error('the process died');
        return await run();
      });
      const isWhole = await eraseUser({ sql: dying, secretBox }, request(person.userId))
        .then(async (erasure) => await complete(erasure, dying))
        .then(
          () => true,
          () => false,
        );
      const erasure = await eraseUser({ sql: api.sql, secretBox }, request(person.userId));
      await complete(erasure);
      texts.push(...Object.values(person));
      expect(await totalOf(erasure.pseudonym)).toBe(200);
      if (isWhole) break;
    }
    await expectErased(texts);
  });

  // @promise erased-beside-others
  test('purchases, refunds, identifies and exports beside an erasure leave no trace and the right money', async () => {
    const texts: string[] = [];
    for (let round = 0; round < rounds(4, 60); round += 1) {
      const person = await newPerson();
      const { userId, deviceId } = person;
      const [before, refunded] = [`tx-${randomUUID()}`, `tx-${randomUUID()}`];
      await purchase(userId, before);
      await purchase(userId, refunded, 30);
      const late = Array.from({ length: 4 }, () => `tx-${randomUUID()}`);
      const [erasure] = await Promise.all([
        eraseUser({ sql: api.sql, secretBox }, request(userId)),
        ...late.map(async (transactionId) => await purchase(userId, transactionId)),
        refund(userId, refunded, 30),
        identify(deviceId, userId),
        identify(`device-${randomUUID()}`, userId),
        api.call('POST', `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`, { key: app.key }),
      ]);
      await complete(erasure);
      texts.push(userId, person.claimToken, deviceId);
      expect(await totalOf(erasure.pseudonym)).toBe(200 + 4 * 200);
    }
    await expectErased(texts);
  });

  test('a body that names an erased person is encrypted until its delivery has its outcome', async () => {
    const stuck = await startProcessingApi({ processDelivery: async () => null });
    try {
      const other = await newApp(stuck.api);
      await stuck.api.call('PUT', `/apps/${other.appId}/webhooks/revenuecat/secret`, {
        key: other.key,
        body: { secret: TOKEN },
      });
      const [userId, early] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
      const send = async (user: string) =>
        await stuck.api.call('POST', `/webhooks/revenuecat/${other.appId}`, {
          body: bodyOf(revenuecatEvent({ userId: user, usd: 10 })),
          headers: { authorization: TOKEN },
        });
      await send(early);
      const { id: stored } = await stuck.api.sql.one<{ id: string }>`select id from deliveries`;
      await eraseUser(
        { sql: stuck.api.sql, secretBox },
        { appId: other.appId as AppId, customerUserId: early, keyId: null },
      );
      await stuck.activities.processDelivery(stored);
      expect(await findInTables(stuck.api.sql, [early])).toEqual([]);
      const erased = await eraseUser(
        { sql: stuck.api.sql, secretBox },
        { appId: other.appId as AppId, customerUserId: userId, keyId: null },
      );
      await send(userId);
      expect(await findInTables(stuck.api.sql, [userId])).toEqual([]);
      const { id } = await stuck.api.sql.one<{ id: string }>`
        select d.id from deliveries d join delivery_bodies b on b.delivery_id = d.id where b.encryption_key_id is not null`;
      await stuck.activities.processDelivery(id);
      const after = await stuck.api.sql.one`
        select d.processing_status, e.customer_user_id, exists (select from delivery_bodies b where b.delivery_id = d.id) as has_body
          from deliveries d join events e on e.delivery_id = d.id where d.id = ${id}`;
      expect(after).toEqual({
        processingStatus: 'processed',
        customerUserId: erased.pseudonym,
        hasBody: false,
      });
      // A run after the outcome, whose response was lost, finds the outcome without the body.
      expect(await stuck.activities.processDelivery(id)).toMatchObject({ status: 'done' });
    } finally {
      await stuck.api.close();
    }
  });

  // @promise erased-beside-others
  test('a key that another user owns is never marked as that of an erased person', async () => {
    const [userId, other] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    const appId = app.appId as AppId;
    const [subscriptionId, customerId] = [`sub_${randomUUID()}`, `cus_${randomUUID()}`];
    await api.sql`
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      values (${appId}, 'production', 'stripe', ${customerId}, ${userId}), (${appId}, 'production', 'stripe', ${subscriptionId}, ${other})`;
    await eraseUser({ sql: api.sql, secretBox }, request(userId));
    const event = eventOf(
      providers.stripe.parse(bodyOf(stripeInvoicePaid({ userId: null, subscriptionId, customerId }))),
    );
    for (const userIds of [[], [userId]]) {
      const invoice = { ...event, userIds, userKeys: [subscriptionId, customerId] };
      const stored = await pseudonymize(api.sql, secretBox, { appId, source: 'stripe', event: invoice });
      expect(stored.userKeys).toEqual([subscriptionId, expect.stringMatching(/^erased:/)]);
    }
  });

  test('a delivery of an erased person that cannot be read keeps its encrypted body until it is repaired', async () => {
    const userId = `user-${randomUUID()}`;
    await eraseUser({ sql: api.sql, secretBox }, request(userId));
    await deliver({ event: { app_user_id: userId } });
    const bodies = async () =>
      await api.sql<{ id: DeliveryId; processingStatus: string }>`
        select d.id, d.processing_status from deliveries d join delivery_bodies b on b.delivery_id = d.id
         where b.encryption_key_id is not null`;
    const [failed, ...others] = await bodies();
    expect([failed?.processingStatus, others]).toEqual(['failed', []]);
    if (failed === undefined) return;
    await raiseOutcome(api.sql, failed.id, { status: 'processed', reason: null }, null);
    expect(await bodies()).toEqual([]);
  });

  test('the search ends although deliveries were received between two milliseconds', async () => {
    const person = await newPerson();
    await purchase(person.userId, `tx-${randomUUID()}`);
    await api.sql`update deliveries set received_at = date_trunc('milliseconds', received_at) + interval '500 microseconds'`;
    await complete(await eraseUser({ sql: api.sql, secretBox }, request(person.userId)));
    expect(await findInTables(api.sql, Object.values(person))).toEqual([]);
  });

  // @promise erased-late-keys
  test('a step of an erasure whose search has begun again neither moves the new search on nor completes it', async () => {
    const { id } = await eraseUser({ sql: api.sql, secretBox }, request(`user-${randomUUID()}`));
    const deps = { sql: api.sql, secretBox };
    const former = await findOpenErasure(deps, id);
    if (former === undefined) throw new Error('the erasure is not open');
    await complete({ id });
    await eraseUser(deps, request(former.subject.customerUserId ?? ''));
    const { deliveryId, at } = await api.sql.one<{ deliveryId: DeliveryId; at: number }>`
      select id as delivery_id, epoch_ms(received_at) as at from deliveries limit 1`;
    const position = { at, id: deliveryId };
    await eraseDeliveries(deps, former, { done: [], waiting: [], histories: 0, position });
    await finishErasure(api.sql, former);
    expect(await findOpenErasure(deps, id)).toMatchObject({
      scannedAt: null,
      byHash: true,
      subject: former.subject,
    });
    await complete({ id });
  });

  test('names in the plans of reprocess runs become those of the pseudonym with the search, not with the request', async () => {
    const { userId } = await newPerson();
    await purchase(userId, `tx-${randomUUID()}`);
    const id = newId('reprocessRun');
    const all = { dryRun: true, deliveryId: null, from: null, to: null };
    await requestReprocessing(api.sql, { id, appId: app.appId as AppId, ...all });
    const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
    const names = async () => await api.sql`select name from reprocess_names where reprocess_run_id = ${id}`;
    await api.sql`
      with planned as (
        insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
        select d.app_id, ${id}, d.id, d.received_at, '[{}]', true
          from deliveries d join events e on e.delivery_id = d.id where e.customer_user_id = ${userId}
        returning delivery_id
      )
      insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
      select ${id}, delivery_id, ${sha256(`user ${userId}`)}, true from planned`;
    const erasure = await eraseUser({ sql: api.sql, secretBox }, request(userId));
    expect(await names()).toEqual([{ name: sha256(`user ${userId}`) }]);
    await complete(erasure);
    expect(await names()).toEqual([{ name: sha256(`user ${erasure.pseudonym}`) }]);
    const { counts } = await eraseUser({ sql: api.sql, secretBox }, request(userId));
    expect(counts.reprocessNames).toBe(1);
  });

  test('one run of the activity searches page after page until it has to wait', async () => {
    const userId = `user-${randomUUID()}`;
    await purchase(userId, `tx-${randomUUID()}`);
    const { id } = await eraseUser({ sql: api.sql, secretBox }, request(userId));
    expect(await activities(api.sql, MINUTE_MS).erasePage(id)).toEqual({ done: false, waitMs: MINUTE_MS });
  });

  test('a user whose id is the reference of an erased payment is identified, and can be erased', async () => {
    const person = await newPerson();
    const ref = `tx-${randomUUID()}`;
    await purchase(person.userId, ref);
    const first = await eraseUser({ sql: api.sql, secretBox }, request(person.userId));
    expect(await identify(`device-${randomUUID()}`, ref)).toMatchObject({ status: 404 });
    const { known } = await api.sql.one`
      select exists (select from identities where customer_user_id = ${ref}) as known`;
    expect(known).toBe(true);
    const second = await eraseUser({ sql: api.sql, secretBox }, request(ref));
    expect(second.id).not.toBe(first.id);
  });

  test('the command line erases a user, and its report states what was done and what is kept', async () => {
    const person = await newPerson();
    const admin = async (...args: string[]) => {
      let out = '';
      const { url } = api.database;
      const status = await runAdmin(args, {
        openDatabase: async () => ({ url, ownerUrl: url, close: async () => {} }),
        secretsKeys: { read: async () => [TEST_KEY], require: async () => {} },
        findService: async () => null,
        stdout: (text) => void (out += text),
        stderr: () => {},
      });
      return { status, out };
    };
    const erased = await admin('erase-user', '--app', app.appId, '--user', person.userId, '--json');
    const { erasureId, ...report } = JSON.parse(erased.out) as { erasureId: ErasureId };
    expect(report).toMatchObject({ status: 'in_progress', erased: { bindings: 1 } });
    await complete({ id: erasureId });
    const { status, out } = await admin('erasure-report', erasureId);
    expect([status, out]).toEqual([0, expect.stringContaining(`${erasureId}: complete`)]);
    expect(out).toContain('A later refund must find its payment');
    expect((await admin('erase-user', '--app', 'app_x', '--user', 'somebody')).status).toBe(1);
    expect(await findInTables(api.sql, Object.values(person))).toEqual([]);
  });

  // @promise erased-only-pseudonym
  test('a commission and a binding accept a pseudonym of their app for the user id, and no other edit', async () => {
    const person = await newPerson();
    await purchase(person.userId, `tx-${randomUUID()}`);
    const { pseudonym } = await eraseUser({ sql: api.sql, secretBox }, request(`user-${randomUUID()}`));
    const edits = [
      async () =>
        await api.sql`update commissions set customer_user_id = 'somebody' where customer_user_id = ${person.userId}`,
      async () =>
        await api.sql`update commissions set customer_user_id = ${pseudonym}, amount_cents = amount_cents + 1 where customer_user_id = ${person.userId}`,
      async () =>
        await api.sql`update bindings set customer_user_id = 'somebody' where customer_user_id = ${person.userId}`,
      async () =>
        await api.sql`update bindings set customer_user_id = ${pseudonym}, healed_at = null, attribution_id = (select min(id) from attributions)
               where customer_user_id = ${person.userId}`,
      async () => await api.sql`delete from erased_identifiers`,
      async () => await api.sql`delete from erasures`,
    ];
    for (const edit of edits) await expect(edit()).rejects.toMatchObject({ code: '23000' });
  });
});

describe('the inventory of personal data', () => {
  // @promise personal-columns
  test('every column that can hold text or bytes is classified, and the page about erasure names what is about users', async () => {
    const columns = await api.sql<{ name: string }>`
      select c.table_name || '.' || c.column_name as name
        from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
       where c.table_schema = current_schema() and t.table_type = 'BASE TABLE' and t.table_name <> 'migrations'
         and c.udt_name in ('text', 'varchar', 'bytea', 'json', 'jsonb', 'uuid', '_text', 'inet', 'xml', 'hstore')
         and (c.domain_name is null or (c.domain_name !~ '_id$' and c.domain_name not in ('environment', 'provider')))
       order by 1`;
    const classified = Object.entries(PERSONAL_COLUMNS).flatMap(([table, treatments]) =>
      Object.entries(treatments).flatMap(([treatment, names]) =>
        names.split(' ').map((name) => ({ name: `${table}.${name}`, treatment: treatment as Treatment })),
      ),
    );
    expect(classified.map(({ name }) => name).toSorted()).toEqual(columns.map(({ name }) => name).toSorted());
    const page = await readFile(path.join(projectRoot, 'docs/erasure.md'), 'utf8');
    const unnamed = classified.filter(
      ({ name, treatment }) => treatment !== 'none' && !page.includes(`\`${name}\``),
    );
    expect(unnamed).toEqual([]);
  });
});
