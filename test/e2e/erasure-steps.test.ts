import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { runAdmin } from '../../src/cli/admin.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { findPseudonyms, pseudonymize } from '../../src/db/erased-identifiers.ts';
import { eraseUser, findOpenErasure, finishErasure } from '../../src/db/erasures.ts';
import { eraseDeliveries, searchDeliveries } from '../../src/db/erasure-deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { requestReprocessing } from '../../src/db/reprocess.ts';
import { raiseOutcome } from '../../src/db/reprocess-deliveries.ts';
import type { Sql, Statements } from '../../src/db/sql.ts';
import type { AppId, DeliveryId, ErasureId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { providers } from '../../src/providers/index.ts';
import { newAffiliate, newApp, TEST_KEY } from '../support/api.ts';
import { REVENUECAT_TOKEN, startErasing } from '../support/erasing.ts';
import type { Erasing } from '../support/erasing.ts';
import { PERSONAL_COLUMNS } from '../support/personal-columns.ts';
import type { Treatment } from '../support/personal-columns.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  eventOf,
  revenuecatEvent,
  revenuecatTransfer,
  stripeInvoicePaid,
  stripeSubscription,
} from '../support/provider-fixtures.ts';
import { rounds } from '../support/rounds.ts';
import { findInTables } from '../support/search-everywhere.ts';
import { untilWaiting } from '../support/waiting.ts';

let erasing: Erasing;

beforeAll(async () => {
  erasing = await startErasing();
});
afterAll(async () => {
  await erasing?.api.close();
});

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
    forManyRows: (ms?: number) => wrapped(sql.forManyRows(ms), around),
    transaction: async <T>(work: (tx: Statements) => Promise<T>) =>
      await around(async () => await sql.transaction(work)),
  }) as unknown as Sql;
}

describe('the steps of an erasure', () => {
  // @promise erased-twice
  test('every statement may be sent twice, and the counts state each row once', async () => {
    const person = await erasing.newPerson();
    await erasing.purchase(person.userId, `tx-${randomUUID()}`);
    const twice = wrapped(erasing.sql, async (run) => {
      await run();
      return await run();
    });
    const erasure = await eraseUser(
      { sql: twice, secretBox: erasing.secretBox },
      erasing.request(person.userId),
    );
    await erasing.complete(erasure, twice);
    const after = await erasing.open(person.userId);
    expect(after).toMatchObject({ id: erasure.id, pseudonym: erasure.pseudonym });
    expect(after.counts).toMatchObject({
      bindings: 1,
      commissions: 1,
      events: 1,
      devices: 1,
      clicks: 1,
      bodies: 1,
    });
    await erasing.expectErased(Object.values(person));
  });

  // @promise erased-twice
  test('an erasure that dies before any of its statements is completed by the next request or page', async () => {
    const texts: string[] = [];
    for (let last = 0; last < 40; last += rounds(3, 1)) {
      const person = await erasing.newPerson();
      await erasing.purchase(person.userId, `tx-${randomUUID()}`);
      let sent = 0;
      const dying = wrapped(erasing.sql, async (run) => {
        sent += 1;
        if (sent > last) throw new Error('the process died');
        return await run();
      });
      const isWhole = await eraseUser(
        { sql: dying, secretBox: erasing.secretBox },
        erasing.request(person.userId),
      )
        .then(async (erasure) => await erasing.complete(erasure, dying))
        .then(
          () => true,
          () => false,
        );
      const erasure = await erasing.open(person.userId);
      await erasing.complete(erasure);
      texts.push(...Object.values(person));
      expect(await erasing.totalOf(erasure.pseudonym)).toBe(200);
      if (isWhole) break;
    }
    await erasing.expectErased(texts);
  });

  // @promise erased-beside-others
  test('purchases, refunds, identifies and exports beside an erasure leave no trace and the right money', async () => {
    const texts: string[] = [];
    for (let round = 0; round < rounds(4, 20); round += 1) {
      const person = await erasing.newPerson();
      const { userId, deviceId } = person;
      const [before, refunded] = [`tx-${randomUUID()}`, `tx-${randomUUID()}`];
      await erasing.purchase(userId, before);
      await erasing.purchase(userId, refunded, 30);
      const late = Array.from({ length: 4 }, () => `tx-${randomUUID()}`);
      const [erasure] = await Promise.all([
        erasing.open(userId),
        ...late.map(async (transactionId) => await erasing.purchase(userId, transactionId)),
        erasing.refund(userId, refunded, 30),
        erasing.identify(deviceId, userId),
        erasing.identify(`device-${randomUUID()}`, userId),
        erasing.api.call(
          'POST',
          `/apps/${erasing.app.appId}/affiliates/${erasing.affiliateId}/payouts/export`,
          { key: erasing.app.key },
        ),
      ]);
      await erasing.complete(erasure);
      texts.push(userId, person.claimToken, deviceId);
      expect(await erasing.totalOf(erasure.pseudonym)).toBe(200 + 4 * 200);
    }
    await erasing.expectErased(texts);
  });

  /** Erases a user while the payments of the app are held, and runs `work` when the identifiers are marked and the rows wait. */
  const eraseAround = async (userId: string, work: () => Promise<unknown>) => {
    const holder = new pg.Client(erasing.api.database.url);
    await holder.connect();
    try {
      await holder.query('begin');
      await holder.query('select from payments where app_id = $1 for no key update', [erasing.appId]);
      const opening = erasing.open(userId);
      await untilWaiting(erasing.sql);
      await work();
      await holder.query('commit');
      const erasure = await opening;
      await erasing.complete(erasure);
      return erasure;
    } finally {
      await holder.end();
    }
  };
  const earnedBy = async (affiliateId: string) => {
    const { cents } = await erasing.sql.one<{ cents: number }>`
      select coalesce(sum(amount_cents), 0)::float8 as cents from commissions where affiliate_id = ${affiliateId}`;
    return cents;
  };
  /** Reports a user of a new creator. */
  const userOfAnother = async () => {
    const affiliateId = await newAffiliate(erasing.api, erasing.app);
    const [deviceId, userId] = [`device-${randomUUID()}`, `user-${randomUUID()}`];
    const at = erasing.api.clock.now - 10 * DAY_MS;
    const install = { deviceId, affiliateCode: affiliateId, firstOpenAt: at, codeEnteredAt: at };
    await erasing.api.call('POST', '/sdk/install', { key: erasing.app.sdkKey, body: install });
    expect((await erasing.identify(deviceId, userId)).status).toBe(200);
    return { affiliateId, userId };
  };

  // @promise erased-beside-others
  test('a user who is bound anew beside the erasure goes on to earn for the creator from before', async () => {
    const [person, other] = [await erasing.newPerson(), await userOfAnother()];
    await erasing.purchase(person.userId);
    const erasure = await eraseAround(
      person.userId,
      async () => await erasing.revenuecat(revenuecatTransfer({ from: [other.userId], to: [person.userId] })),
    );
    await erasing.purchase(person.userId);
    expect([await erasing.totalOf(erasure.pseudonym), await earnedBy(other.affiliateId)]).toEqual([400, 0]);
    await erasing.expectErased(Object.values(person));
  });

  // @promise erased-beside-others
  test('a subscription that is tied to another user beside the erasure of its user stays with that one', async () => {
    const [person, other] = [await erasing.newPerson(), await userOfAnother()];
    const names = { subscriptionId: `sub_${randomUUID()}`, customerId: `cus_${randomUUID()}` };
    const at = { occurredAt: erasing.paidAt };
    await erasing.stripe(stripeSubscription({ ...names, ...at, userId: person.userId }));
    const pay = async () => await erasing.stripe(stripeInvoicePaid({ ...names, ...at, userId: null }));
    await pay();
    const before = await earnedBy(erasing.affiliateId);
    await eraseAround(
      person.userId,
      async () =>
        await erasing.stripe(
          stripeSubscription({
            ...names,
            type: 'customer.subscription.updated',
            userId: other.userId,
            occurredAt: erasing.paidAt + MINUTE_MS,
          }),
        ),
    );
    await pay();
    expect((await earnedBy(erasing.affiliateId)) - before).toBeGreaterThan(0);
    expect(await earnedBy(other.affiliateId)).toBe(0);
    await erasing.expectErased([...Object.values(person), ...Object.values(names)]);
  });

  // @promise erased-beside-others
  test('a user and a key that a payment names again beside the erasure keep their rank among those of the payment', async () => {
    const person = await erasing.newPerson();
    const names = { subscriptionId: `sub_${randomUUID()}`, customerId: `cus_${randomUUID()}` };
    await erasing.stripe(stripeInvoicePaid({ ...names, userId: person.userId, occurredAt: erasing.paidAt }));
    const ranks = async () =>
      await erasing.sql`
        select 'user' as of, position from payment_users y join payments p on p.id = y.payment_id where p.ref = ${ref} union all
        select 'key', position from payment_user_keys y join payments p on p.id = y.payment_id where p.ref = ${ref} order by 1, 2`;
    const { ref } = await erasing.sql.one<{ ref: string }>`
      select p.ref from payments p join payment_users u on u.payment_id = p.id where u.customer_user_id = ${person.userId}`;
    const before = await ranks();
    await eraseAround(person.userId, async () => {
      const known = await findPseudonyms(erasing.sql, erasing.secretBox, erasing.appId, {
        users: [person.userId],
        keys: Object.values(names),
      });
      await erasing.sql`
        insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
        select app_id, ${known.users.get(person.userId) ?? ''}, payment_id, environment, position + 7 from payment_users
         where customer_user_id = ${person.userId}`;
      await erasing.sql`
        insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
        select app_id, source, k.replacement, payment_id, environment, position + 7
          from payment_user_keys y
          join jsonb_to_recordset(${erasing.sql.json([...known.keys].map(([word, replacement]) => ({ word, replacement })))})
               k (word text, replacement text) on k.word = y.user_key`;
    });
    expect(before).toHaveLength(3);
    expect(await ranks()).toEqual(before);
  });

  test('a body that names an erased person is encrypted until its delivery has its outcome', async () => {
    const stuck = await startProcessingApi({ awaitDelivery: async () => null });
    try {
      const other = await newApp(stuck.api);
      await stuck.api.call('PUT', `/apps/${other.appId}/webhooks/revenuecat/secret`, {
        key: other.key,
        body: { secret: REVENUECAT_TOKEN },
      });
      const [userId, early] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
      const send = async (user: string) =>
        await stuck.api.call('POST', `/webhooks/revenuecat/${other.appId}`, {
          body: bodyOf(revenuecatEvent({ userId: user, usd: 10 })),
          headers: { authorization: REVENUECAT_TOKEN },
        });
      await send(early);
      const { id: stored } = await stuck.api.sql.one<{ id: string }>`select id from deliveries`;
      await eraseUser(
        { sql: stuck.api.sql, secretBox: erasing.secretBox },
        { appId: other.appId as AppId, customerUserId: early, keyId: null },
      );
      await stuck.activities.processDelivery(stored);
      expect(await findInTables(stuck.api.sql, [early])).toEqual([]);
      const erased = await eraseUser(
        { sql: stuck.api.sql, secretBox: erasing.secretBox },
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
    const appId = erasing.appId;
    const [subscriptionId, customerId] = [`sub_${randomUUID()}`, `cus_${randomUUID()}`];
    await erasing.sql`
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      values (${appId}, 'production', 'stripe', ${customerId}, ${userId}), (${appId}, 'production', 'stripe', ${subscriptionId}, ${other})`;
    await erasing.open(userId);
    const event = eventOf(
      providers.stripe.parse(bodyOf(stripeInvoicePaid({ userId: null, subscriptionId, customerId }))),
    );
    for (const userIds of [[], [userId]]) {
      const invoice = { ...event, userIds, userKeys: [subscriptionId, customerId] };
      const stored = await pseudonymize(erasing.sql, erasing.secretBox, {
        appId,
        source: 'stripe',
        event: invoice,
      });
      expect(stored.userKeys).toEqual([subscriptionId, expect.stringMatching(/^erased:/)]);
    }
  });

  test('a delivery of an erased person that cannot be read keeps its encrypted body until it is repaired', async () => {
    const userId = `user-${randomUUID()}`;
    await erasing.open(userId);
    await erasing.revenuecat({ event: { app_user_id: userId } });
    const bodies = async () =>
      await erasing.sql<{ id: DeliveryId; processingStatus: string }>`
        select d.id, d.processing_status from deliveries d join delivery_bodies b on b.delivery_id = d.id
         where b.encryption_key_id is not null`;
    const [failed, ...others] = await bodies();
    expect([failed?.processingStatus, others]).toEqual(['failed', []]);
    if (failed === undefined) return;
    await raiseOutcome(erasing.sql, failed.id, { status: 'processed', reason: null }, null);
    expect(await bodies()).toEqual([]);
  });

  test('a page of the search ends after 8 MiB of webhooks, and the search finds what comes after it', async () => {
    const person = await erasing.newPerson('用户');
    const padding = 'x'.repeat(900_000);
    const count = 12;
    for (let n = 0; n < count; n += 1) {
      const extra = { subscriber_attributes: { note: { updated_at_ms: 1, value: padding } } };
      const payload = { userId: person.userId, usd: 10, occurredAt: erasing.paidAt, extra };
      expect((await erasing.revenuecat(revenuecatEvent(payload))).status).toBe(200);
    }
    const { id } = await erasing.open(person.userId);
    const open = await findOpenErasure(erasing.deps, id);
    const search = { refs: [], parts: [''], limit: 500, overlapMs: 0 };
    const page = open && (await searchDeliveries(erasing.deps, open, search));
    expect(page?.deliveries).toHaveLength(Math.ceil((8 * 2 ** 20) / 900_000));
    expect(page?.lastId).toBe(page?.deliveries.at(-1)?.deliveryId);
    await erasing.complete({ id });
    expect(await findInTables(erasing.sql, Object.values(person))).toEqual([]);
  });

  test('the search ends although deliveries were received between two milliseconds', async () => {
    const person = await erasing.newPerson();
    await erasing.purchase(person.userId, `tx-${randomUUID()}`);
    await erasing.sql`update deliveries set received_at = date_trunc('milliseconds', received_at) + interval '500 microseconds'`;
    await erasing.complete(await erasing.open(person.userId));
    expect(await findInTables(erasing.sql, Object.values(person))).toEqual([]);
  });

  // @promise erased-late-keys
  test('a step of an erasure whose search has begun again neither moves the new search on nor completes it', async () => {
    const { id } = await erasing.open(`user-${randomUUID()}`);
    const { deps } = erasing;
    const former = await findOpenErasure(deps, id);
    if (former === undefined) throw new Error('the erasure is not open');
    await erasing.complete({ id });
    await erasing.open(former.subject.customerUserId ?? '');
    const { deliveryId, at } = await erasing.sql.one<{ deliveryId: DeliveryId; at: number }>`
      select id as delivery_id, epoch_ms(received_at) as at from deliveries limit 1`;
    const position = { at, id: deliveryId };
    await eraseDeliveries(deps, former, { done: [], waiting: [], histories: 0, position });
    await finishErasure(erasing.sql, former);
    expect(await findOpenErasure(deps, id)).toMatchObject({
      scannedAt: null,
      byHash: true,
      subject: former.subject,
    });
    await erasing.complete({ id });
  });

  test('names in the plans of reprocess runs become those of the pseudonym with the search, not with the request', async () => {
    const { userId } = await erasing.newPerson();
    await erasing.purchase(userId, `tx-${randomUUID()}`);
    const id = newId('reprocessRun');
    const all = { dryRun: true, deliveryId: null, from: null, to: null };
    await requestReprocessing(erasing.sql, { id, appId: erasing.appId, ...all });
    const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
    const names = async () =>
      await erasing.sql`select name from reprocess_names where reprocess_run_id = ${id}`;
    await erasing.sql`
      with planned as (
        insert into reprocess_changes (app_id, reprocess_run_id, delivery_id, received_at, changes, appends)
        select d.app_id, ${id}, d.id, d.received_at, '[{}]', true
          from deliveries d join events e on e.delivery_id = d.id where e.customer_user_id = ${userId}
        returning delivery_id
      )
      insert into reprocess_names (reprocess_run_id, delivery_id, name, provides)
      select ${id}, delivery_id, ${sha256(`user ${userId}`)}, true from planned`;
    const erasure = await erasing.open(userId);
    expect(await names()).toEqual([{ name: sha256(`user ${userId}`) }]);
    await erasing.complete(erasure);
    expect(await names()).toEqual([{ name: sha256(`user ${erasure.pseudonym}`) }]);
    const { counts } = await erasing.open(userId);
    expect(counts.reprocessNames).toBe(1);
  });

  test('one run of the activity searches page after page until it has to wait', async () => {
    const userId = `user-${randomUUID()}`;
    await erasing.purchase(userId, `tx-${randomUUID()}`);
    const { id } = await erasing.open(userId);
    expect(await erasing.activities(erasing.sql, MINUTE_MS).erasePage(id)).toEqual({
      done: false,
      waitMs: MINUTE_MS,
    });
  });

  test('a device with a later touch that lost keeps nothing of its person', async () => {
    const person = await erasing.newPerson();
    const affiliateCode = await newAffiliate(erasing.api, erasing.app);
    const install = { deviceId: person.deviceId, affiliateCode, firstOpenAt: erasing.api.clock.now - 1 };
    await erasing.api.call('POST', '/sdk/install', { key: erasing.app.sdkKey, body: install });
    const touches = await erasing.sql`select from losing_touches where device_id = ${person.deviceId}`;
    expect(touches).toHaveLength(1);
    await erasing.erase(person.userId);
    expect((await erasing.open(person.userId)).counts).toMatchObject({ devices: 2 });
    await erasing.expectErased(Object.values(person));
  });

  test('a user whose id is the reference of an erased payment is identified, and can be erased', async () => {
    const person = await erasing.newPerson();
    const ref = `tx-${randomUUID()}`;
    await erasing.purchase(person.userId, ref);
    const first = await erasing.open(person.userId);
    expect(await erasing.identify(`device-${randomUUID()}`, ref)).toMatchObject({ status: 404 });
    const { known } = await erasing.sql.one`
      select exists (select from identities where customer_user_id = ${ref}) as known`;
    expect(known).toBe(true);
    const second = await erasing.open(ref);
    expect(second.id).not.toBe(first.id);
  });

  test('the command line erases a user, and its report states what was done and what is kept', async () => {
    const person = await erasing.newPerson();
    const admin = async (...args: string[]) => {
      let out = '';
      const { url } = erasing.api.database;
      const status = await runAdmin(args, {
        openDatabase: async () => ({ url, ownerUrl: url, close: async () => {} }),
        secretsKeys: { read: async () => [TEST_KEY], require: async () => {} },
        findService: async () => null,
        stdout: (text) => void (out += text),
        stderr: () => {},
      });
      return { status, out };
    };
    const erased = await admin('erase-user', '--app', erasing.app.appId, '--user', person.userId, '--json');
    const { erasureId, ...report } = JSON.parse(erased.out) as { erasureId: ErasureId };
    expect(report).toMatchObject({ status: 'in_progress', erased: { bindings: 1 } });
    await erasing.complete({ id: erasureId });
    const { status, out } = await admin('erasure-report', erasureId);
    expect([status, out]).toEqual([0, expect.stringContaining(`${erasureId}: complete`)]);
    expect(out).toContain('A later refund must find its payment');
    expect((await admin('erase-user', '--app', 'app_x', '--user', 'somebody')).status).toBe(1);
    expect(await findInTables(erasing.sql, Object.values(person))).toEqual([]);
  });

  // @promise erased-only-pseudonym
  test('a commission and a binding accept a pseudonym of their app for the user id, and no other edit', async () => {
    const person = await erasing.newPerson();
    await erasing.purchase(person.userId, `tx-${randomUUID()}`);
    const { pseudonym } = await erasing.open(`user-${randomUUID()}`);
    const edits = [
      async () =>
        await erasing.sql`update commissions set customer_user_id = 'somebody' where customer_user_id = ${person.userId}`,
      async () =>
        await erasing.sql`update commissions set customer_user_id = ${pseudonym}, amount_cents = amount_cents + 1 where customer_user_id = ${person.userId}`,
      async () =>
        await erasing.sql`update bindings set customer_user_id = 'somebody' where customer_user_id = ${person.userId}`,
      async () =>
        await erasing.sql`update bindings set customer_user_id = ${pseudonym}, healed_at = null, attribution_id = (select min(id) from attributions)
               where customer_user_id = ${person.userId}`,
      async () => await erasing.sql`delete from erased_identifiers`,
      async () => await erasing.sql`delete from erasures`,
    ];
    for (const edit of edits) await expect(edit()).rejects.toMatchObject({ code: '23000' });
  });
});

describe('the inventory of personal data', () => {
  // @promise personal-columns
  test('every column that can hold text or bytes is classified, and the page about erasure names what is about users', async () => {
    const columns = await erasing.sql<{ name: string }>`
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
