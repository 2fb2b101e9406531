import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import pino from 'pino';
import type { Activities } from '../../activities/index.ts';
import { evaluateAndApply, newBindings } from '../../activities/evaluate.ts';
import { createHealActivities } from '../../activities/heal.ts';
import { applyEvaluation } from '../../src/db/evaluations.ts';
import { loadPayments } from '../../src/db/payments.ts';
import type { StoredPayment } from '../../src/db/payments.ts';
import { importRates } from '../../src/db/rates.ts';
import { instant } from '../../src/db/sql.ts';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { AppId, BindingId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { takesEffect } from '../support/policies.ts';
import { runOn } from '../support/postgres-admin.ts';
import { takeCodesFromTheBeginning } from '../support/codes.ts';
import {
  bodyOf,
  fakeSecret,
  PROOFS,
  stripeInvoicePaid,
  stripePaymentIntent,
  stripeRefund,
  stripeSubscription,
  withFields,
} from '../support/provider-fixtures.ts';

// Payments that wait for their user, evaluated by the real activities. The tests run the pages of the workflows themselves.

let api: TestApi;
let activities: Activities;
let app: TestApp;
let affiliateId: string;
const toHeal: BindingId[] = [];
/** The payments of a page of the workflow that evaluates marked ones. */
const CONVERTED_AT_ONCE = 50;
const secret = fakeSecret('stripe') ?? '';

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi({ onBinding: (id) => void toHeal.push(id) }));
  api.clock.now = Date.now();
});
/** Creates the app of the following calls. */
async function startApp(): Promise<void> {
  app = await newApp(api, undefined, { commissionRateBps: 2000 });
  affiliateId = await newAffiliate(api, app);
  const body = { environment: 'production', secret };
  await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, { key: app.key, body });
}

beforeEach(startApp);
afterAll(async () => {
  await api.close();
});

async function deliver(body: Buffer): Promise<void> {
  const headers = PROOFS.stripe(body, secret);
  const path = `/webhooks/stripe/${app.appId}`;
  expect((await api.call('POST', path, { body: body.toString(), headers })).status).toBe(200);
}

/** Attributes a new user to the affiliate five days ago. Returns the user id. */
async function newUser(): Promise<string> {
  const userId = `user-${randomUUID()}`;
  const at = Date.now() - 5 * DAY_MS;
  const install = { deviceId: userId, affiliateCode: affiliateId, firstOpenAt: at, codeEnteredAt: at };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
  await identify(userId);
  return userId;
}

async function identify(userId: string): Promise<void> {
  const body = { deviceId: userId, customerUserId: userId, identifiedAt: Date.now() };
  await api.call('POST', '/sdk/identify', { key: app.sdkKey, body });
}

/** Number of copied payments so far: their ids have a number each. */
let copies = 0;

/**
 * Delivers an invoice of 10 dollars without a user, and copies it: `count` payments of one subscription that wait for
 * its user. The copies are older than the user's click, except the last 50.
 */
async function waitingInvoices(subscriptionId: string, count: number): Promise<void> {
  const occurredAt = Date.now() - DAY_MS;
  const names = { subscriptionId, userId: null };
  await deliver(bodyOf(stripeInvoicePaid({ ...names, amount: 1_000, occurredAt })));
  const templates = api.sql.fragment`
    template as (
      select p.id as payment_id, p.event_id, e.delivery_id
        from payments p join events e on e.id = p.event_id where p.app_id = ${app.appId} and p.id > 'pmt_01'
    ), copies as (
      select n, '_0' || lpad((${copies}::int + n)::text, 25, '0') as suffix,
             case when n < ${count - 50}::int then ${instant(Date.now() - 20 * DAY_MS)}::timestamptz
                  else ${instant(occurredAt)}::timestamptz end as at
        from generate_series(1, ${count - 1}::int) n
    )`;
  await api.sql`
    with ${templates}, copied as (
      insert into deliveries
      select (jsonb_populate_record(o, jsonb_build_object('id', 'del' || c.suffix, 'event_id', 'evt' || c.suffix))).*
        from template t join deliveries o on o.id = t.delivery_id, copies c
    )
    insert into events
    select (jsonb_populate_record(o, jsonb_build_object('id', 'evt' || c.suffix, 'delivery_id', 'del' || c.suffix,
             'source_event_id', 'copy-' || c.n, 'payment_ref', 'copy-' || c.n, 'occurred_at', c.at))).*
      from template t join events o on o.id = t.event_id, copies c`;
  await api.sql`
    with ${templates}, copied as (
      insert into payments
      select (jsonb_populate_record(o, jsonb_build_object('id', 'pmt' || c.suffix, 'event_id', 'evt' || c.suffix,
               'ref', 'copy-' || c.n, 'occurred_at', c.at))).*
        from template t join payments o on o.id = t.payment_id, copies c
    )
    insert into payment_user_keys
    select (jsonb_populate_record(o, jsonb_build_object('payment_id', 'pmt' || c.suffix))).*
      from template t join payment_user_keys o on o.payment_id = t.payment_id, copies c`;
  copies += count;
}

async function books() {
  return await api.sql.one<{ earnings: number; cents: number; unevaluated: number; marked: number }>`
    select count(*) filter (where earned_cents > 0)::int as earnings, sum(earned_cents)::bigint as cents,
           count(*) filter (where likely_cause = 'missing_user_id')::int as unevaluated,
           count(*) filter (where recheck_since is not null)::int as marked
      from payments where app_id = ${app.appId}`;
}

/** Runs the pages of the workflow that the relay starts for marked payments. Returns how many payments it evaluated. */
async function convert(): Promise<number> {
  let evaluated = 0;
  let after: string | null = null;
  do {
    const page = await activities.convertPage(after);
    evaluated += page.evaluated;
    after = page.next;
  } while (after !== null);
  return evaluated;
}

/** Runs the pages of the workflow that heals a user. Returns whether the user is healed. */
async function heal(userId: string, healing: Pick<Activities, 'healPage'> = activities): Promise<boolean> {
  const { id } = await api.sql.one<{
    id: string;
  }>`select id from bindings where customer_user_id = ${userId}`;
  let after: string | null = null;
  do after = await healing.healPage(id, after);
  while (after !== null);
  const row = await api.sql.one<{ isHealed: boolean }>`
    select healed_at is not null as is_healed from bindings where id = ${id}`;
  return row.isHealed;
}

const subscriptionOf = (subscriptionId: string, userId: string) =>
  bodyOf(stripeSubscription({ subscriptionId, customerId: `cus_${subscriptionId}`, userId }));

/** Makes the evaluation of a payment fail while `work` runs. */
async function whileFailing(paymentIds: readonly string[], work: () => Promise<void>): Promise<void> {
  await runOn(
    api.database.url,
    `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'broken for the test'; end $$;
     create trigger test_breaks before insert on commissions for each row
       when (new.payment_id in (${paymentIds.map((id) => `'${id}'`).join(', ')})) execute function test_breaks();`,
  );
  try {
    await work();
  } finally {
    await runOn(api.database.url, 'drop trigger test_breaks on commissions; drop function test_breaks');
  }
}

/**
 * Stores what the delivery of a subscription stores, and runs `work` before its commit: the mark of the link does not see
 * what `work` stores, and `work` does not see the link.
 */
async function whileLinking(
  subscriptionId: string,
  userId: string,
  work: () => Promise<void>,
): Promise<void> {
  const committing = new pg.Client({ connectionString: api.database.url });
  await committing.connect();
  try {
    await committing.query('begin');
    await committing.query(
      `insert into user_links (app_id, environment, source, user_key, customer_user_id)
       values ($1, 'production', 'stripe', $2, $3)`,
      [app.appId, subscriptionId, userId],
    );
    await work();
    await committing.query('commit');
  } finally {
    await committing.end();
  }
}

async function earlyPayments(count: number): Promise<string[]> {
  const rows = await api.sql<{ id: string }>`
    select id from payments where app_id = ${app.appId} and occurred_at > now() - interval '2 days' order by id limit ${count}`;
  return rows.map((row) => row.id);
}

describe('payments that wait for the user of a subscription', () => {
  // @promise waiting-payments-all
  test('an event that names their user has all of them evaluated, also when the first 80 of 130 may not earn', async () => {
    const [userId, subscriptionId] = [await newUser(), `sub_${randomUUID()}`];
    await waitingInvoices(subscriptionId, 130);
    await deliver(subscriptionOf(subscriptionId, userId));
    await convert();
    expect(await books()).toEqual({ earnings: 51, cents: 51 * 200, unevaluated: 0, marked: 0 });
    await deliver(subscriptionOf(subscriptionId, userId));
    expect(await convert()).toBe(0);
  });

  test('are all evaluated by the heal of their user, in their order, although a page has time for a few', async () => {
    const userId = `user-${randomUUID()}`;
    const occurredAt = Date.now() - DAY_MS;
    for (let n = 0; n < 7; n += 1)
      await deliver(bodyOf(stripeInvoicePaid({ userId, amount: 1_000, occurredAt })));
    const at = Date.now() - 5 * DAY_MS;
    const install = { deviceId: userId, affiliateCode: affiliateId, firstOpenAt: at, codeEnteredAt: at };
    expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
    await identify(userId);
    const earned: number[] = [];
    const hurried = createHealActivities({
      sql: api.sql,
      logger: pino({ level: 'silent' }),
      onCommissions: () => {},
      onBindings: () => {},
      healPageMs: 0,
    });
    const healPage = async (id: string, after: string | null) => {
      const next = await hurried.healPage(id, after);
      earned.push((await books()).earnings);
      return next;
    };
    expect(await heal(userId, { healPage })).toBe(true);
    expect(earned).toEqual([3, 6, 7]);
  });

  // @promise waiting-payments-all
  test('an event that names a user who is not attributed yet leaves none for the heal to miss', async () => {
    const [userId, subscriptionId] = [`user-${randomUUID()}`, `sub_${randomUUID()}`];
    await waitingInvoices(subscriptionId, 110);
    await deliver(subscriptionOf(subscriptionId, userId));
    await convert();
    expect(await books()).toEqual({ earnings: 0, cents: 0, unevaluated: 0, marked: 0 });
    const openedAt = Date.now() - 5 * DAY_MS;
    const code = { affiliateCode: affiliateId, codeEnteredAt: openedAt };
    const install = { deviceId: userId, ...code, firstOpenAt: openedAt };
    await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
    await identify(userId);
    expect(await heal(userId)).toBe(true);
    expect(await books()).toMatchObject({ earnings: 51, cents: 51 * 200 });
  });

  // @promise waiting-payments-all
  test('a payment that is stored and evaluated while the link to its user is being committed earns', async () => {
    const [userId, subscriptionId] = [await newUser(), `sub_${randomUUID()}`];
    await whileLinking(subscriptionId, userId, async () => {
      await waitingInvoices(subscriptionId, 1);
    });
    expect(await books()).toMatchObject({ earnings: 0, marked: 0 });
    await deliver(subscriptionOf(subscriptionId, userId));
    expect(await books()).toMatchObject({ earnings: 1, cents: 200 });
  });

  // @promise waiting-payments-all
  test('an older payment that receives its key while the link to its user is being committed earns, however late the link is read', async () => {
    const [userId, subscriptionId, invoiceId] = [
      await newUser(),
      `sub_${randomUUID()}`,
      `in_${randomUUID()}`,
    ];
    const invoice = { invoiceId, userId: null, amount: 1_000, occurredAt: Date.now() - DAY_MS };
    await deliver(bodyOf(stripeInvoicePaid({ ...invoice, subscriptionId: `sub_${randomUUID()}` })));
    // The payment is a day old when its second event names the key.
    await api.sql`update payments set evaluated_at = now() - interval '1 day' where app_id = ${app.appId}`;
    await whileLinking(subscriptionId, userId, async () => {
      await deliver(bodyOf(stripeInvoicePaid({ ...invoice, subscriptionId })));
    });
    // The process that stored the link died before it read the payments of the key.
    await api.sql`update user_links set linked_at = linked_at - interval '1 hour' where app_id = ${app.appId}`;
    await api.sql`update payment_user_keys set added_at = added_at - interval '1 hour' where app_id = ${app.appId}`;
    expect(await books()).toMatchObject({ earnings: 0, marked: 0 });
    await deliver(subscriptionOf(subscriptionId, userId));
    expect(await books()).toMatchObject({ earnings: 1, cents: 200 });
  });

  // @promise fair-between-apps
  test('one that is marked for another evaluation does not wait for the hundreds of another app that were marked before', async () => {
    const mark = async (at: number) =>
      await api.sql`update payments set recheck_since = ${instant(at)} where app_id = ${app.appId}`;
    await waitingInvoices(`sub_${randomUUID()}`, 200);
    await mark(Date.now() - 2_000);
    const noisy = app;
    await startApp();
    await waitingInvoices(`sub_${randomUUID()}`, 1);
    await mark(Date.now() - 1_000);
    expect((await activities.convertPage(null)).next).not.toBeNull();
    expect(await books()).toMatchObject({ marked: 0 });
    app = noisy;
    expect((await books()).marked).toBe(200 - (CONVERTED_AT_ONCE - 1));
    await convert();
    expect(await books()).toMatchObject({ marked: 0 });
  });

  // @promise waiting-payments-failing
  test('one whose evaluation fails does not fail the delivery, and is evaluated once the failure is gone', async () => {
    const [userId, subscriptionId] = [await newUser(), `sub_${randomUUID()}`];
    await waitingInvoices(subscriptionId, 60);
    const failing = await earlyPayments(1);
    await whileFailing(failing, async () => {
      await deliver(subscriptionOf(subscriptionId, userId));
      const { open } = await api.sql.one<{ open: number }>`
        select count(*)::int as open from deliveries where app_id = ${app.appId} and completed_at is null`;
      expect(open).toBe(0);
      await convert();
    });
    expect(await books()).toMatchObject({ earnings: 50, marked: 1 });
    expect(await convert()).toBe(1);
    expect(await books()).toMatchObject({ earnings: 51, marked: 0 });
  });

  // @promise waiting-payments-failing
  test('one whose evaluation fails does not stop the heal of its user, and is evaluated once the failure is gone', async () => {
    const [userId, subscriptionId] = [`user-${randomUUID()}`, `sub_${randomUUID()}`];
    await waitingInvoices(subscriptionId, 110);
    await deliver(subscriptionOf(subscriptionId, userId));
    await convert();
    const openedAt = Date.now() - 5 * DAY_MS;
    const code = { affiliateCode: affiliateId, codeEnteredAt: openedAt };
    const install = { deviceId: userId, ...code, firstOpenAt: openedAt };
    await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
    await identify(userId);
    const failing = await earlyPayments(1);
    await whileFailing(failing, async () => {
      expect(await heal(userId)).toBe(true);
      expect(await books()).toMatchObject({ earnings: 50, marked: 1 });
      await convert();
    });
    expect(await convert()).toBe(1);
    expect(await books()).toMatchObject({ earnings: 51, cents: 51 * 200, marked: 0 });
  });
});

describe('a payment of a user whom a code has bound', () => {
  // One second for all invoices: a payment of before the one with the code earns nothing, and Stripe states whole seconds.
  const paidAt = Date.now() - DAY_MS;

  /** Delivers an invoice of 10 dollars of a user, and perhaps a refund of it in crowns. */
  async function buy(name: string, userId: string, { code = false, crowns = 0 } = {}): Promise<void> {
    const id = `${name}_${userId}`;
    const [paymentIntentId, chargeId] = [`pi_${id}`, `ch_${id}`];
    const invoice = stripeInvoicePaid({
      userId,
      invoiceId: `in_${id}`,
      subscriptionId: `sub_${id}`,
      customerId: `cus_${userId}`,
      amount: 1_000,
      occurredAt: paidAt,
      legacy: { chargeId, paymentIntentId },
    });
    const discounts = code ? [{ promotion_code: 'promo_spring' }] : [];
    await deliver(bodyOf(withFields(invoice, ['data', 'object'], { discounts })));
    if (crowns > 0) {
      const refund = stripeRefund({ paymentIntentId, chargeId, amount: crowns, occurredAt: Date.now() });
      await deliver(bodyOf(withFields(refund, ['data', 'object'], { currency: 'nok' })));
    }
  }

  /** Reads a payment as an evaluation does. */
  async function read(name: string, userId: string): Promise<StoredPayment> {
    const [payment] = await loadPayments(api.sql, {
      appId: app.appId as AppId,
      environment: 'production',
      store: 'stripe',
      refs: [`in_${name}_${userId}`],
    });
    return payment!;
  }

  const boundKeys = async () =>
    await api.sql<{ id: string; name: string }>`
      select id, split_part(customer_user_id, '_', 2) as name from bindings
       where app_id = ${app.appId} and key_source is not null order by name`;

  const send = async <T = unknown>(method: 'POST' | 'PUT' | 'PATCH', path: string, body: object) => {
    const sent = await api.call<T>(method, `/apps/${app.appId}${path}`, { key: app.key, body });
    expect(sent.status).toBeLessThan(300);
    return sent.body;
  };

  beforeEach(async () => {
    await send('PATCH', '/settings', { purchaseCodes: 'when_unattributed' });
    await takeCodesFromTheBeginning(api.sql, app.appId);
    const code = { namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' };
    await send('POST', `/affiliates/${affiliateId}/codes`, code);
    await api.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update codes set created_at = 'epoch' where app_id = ${app.appId}`;
    });
  });

  test('whose number another payment has just taken binds no key until it is evaluated again', async () => {
    const { id: policyId } = await send<{ id: string }>('POST', '/policies', { name: 'Test policy' });
    await send('POST', `/policies/${policyId}/versions`, { base: 'gross', rules: [{ percentBps: 1_000 }] });
    await send('PUT', '/policy-assignment', { policyId });
    await takesEffect(api.sql, { id: app.appId }, Date.now() - 100 * DAY_MS);
    const userId = randomUUID();
    for (const name of ['b', 'c']) await buy(name, userId);
    await buy('a', userId, { code: true });
    const [second, third] = [await read('b', userId), await read('c', userId)];
    await evaluateAndApply(api.sql, second, null);
    expect((await boundKeys()).map(({ name }) => name)).toEqual(['a', 'b']);

    const evaluation = evaluatePayment(third);
    expect(evaluation).toMatchObject({ numbered: { number: 2 }, furtherKeys: [{}] });
    expect(await applyEvaluation(api.sql, third, evaluation, null)).toBeNull();
    expect((await boundKeys()).map(({ name }) => name)).toEqual(['a', 'b']);
    // The next one binds the key, and has it healed.
    const bound = newBindings(await evaluateAndApply(api.sql, third, null));
    expect(await boundKeys()).toMatchObject([{ name: 'a' }, { name: 'b' }, { name: 'c', id: bound[0] }]);
  });

  test('gives another user whom it names to the creator, whether that event comes before the key is bound or after', async () => {
    for (const isBefore of [true, false]) {
      const [userId, colleague] = [randomUUID(), randomUUID()];
      const [id, occurredAt] = [`b_${userId}`, paidAt];
      // Of an endpoint with an earlier API version: it names the invoice, and no subscription.
      const intent = withFields(
        stripePaymentIntent({ userId: colleague, paymentIntentId: `pi_${id}`, amount: 1_000, occurredAt }),
        ['data', 'object'],
        { invoice: `in_${id}` },
      );
      await buy('b', userId);
      if (isBefore) await deliver(bodyOf(intent));
      await buy('a', userId, { code: true });
      while (toHeal.length > 0) await activities.healPage(toHeal.shift() ?? '', null);
      if (!isBefore) await deliver(bodyOf(intent));
      const bound = await api.sql`
        select id from bindings where app_id = ${app.appId} and customer_user_id = ${colleague}`;
      expect(bound).toHaveLength(1);
    }
  });

  test('that is evaluated again because of a new rate still has its keys healed', async () => {
    const userId = randomUUID();
    await buy('b', userId, { crowns: 5_000 });
    await buy('a', userId, { code: true });
    const waiting = await read('b', userId);
    const day = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
    await importRates(api.sql, {
      source: 'operator',
      rates: [{ currency: 'NOK', day, units: '10', worthUsd: '1' }],
    });
    const applied = await evaluateAndApply(api.sql, waiting, null);
    // The second evaluation books the refund of 5 dollars.
    expect(applied.commissions).toHaveLength(2);
    expect(await boundKeys()).toMatchObject([{ name: 'a' }, { name: 'b', id: newBindings(applied)[0] }]);
  });
});

describe('a payment that waits for the rate of its currency', () => {
  const at = Date.now() - 3 * DAY_MS;
  const day = new Date(at).toISOString().slice(0, 10);
  let rivalId: string;

  beforeEach(async () => {
    await api.call('PATCH', `/apps/${app.appId}/settings`, {
      key: app.key,
      body: { purchaseCodes: 'when_unattributed' },
    });
    await takeCodesFromTheBeginning(api.sql, app.appId);
    rivalId = await newAffiliate(api, app);
  });

  async function healAll(): Promise<void> {
    while (toHeal.length > 0) await activities.healPage(toHeal.shift() ?? '', null);
  }

  /** Attributes the user to a creator, by a code that was entered so many days ago. */
  async function touch(userId: string, creator: string, days: number): Promise<void> {
    const enteredAt = Date.now() - days * DAY_MS;
    const install = {
      deviceId: userId,
      affiliateCode: creator,
      firstOpenAt: enteredAt,
      codeEnteredAt: enteredAt,
    };
    await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
    await identify(userId);
    await healAll();
  }

  /** Imports the rate of a currency, and has what waited for it evaluated. Returns what each creator has. */
  async function earnedWith(currency: string): Promise<unknown> {
    await importRates(api.sql, { source: 'operator', rates: [{ currency, day, units: '1', worthUsd: '1' }] });
    let after: string | null = null;
    do after = (await activities.convertPage(after)).next;
    while (after !== null);
    return await api.sql`
      select affiliate_id, sum(amount_cents)::int as cents from commissions
       where app_id = ${app.appId} group by affiliate_id`;
  }

  test.each(['USD', 'SEK'])(
    'in %s earns for the code that it came with, though the user clicks a link of another creator first',
    async (currency) => {
      const code = { namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' };
      await api.call('POST', `/apps/${app.appId}/affiliates/${affiliateId}/codes`, {
        key: app.key,
        body: code,
      });
      await api.sql.transaction(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`update codes set created_at = 'epoch' where app_id = ${app.appId}`;
      });
      const userId = randomUUID();
      const ids = { invoiceId: `in_${userId}`, subscriptionId: `sub_${userId}`, customerId: `cus_${userId}` };
      const invoice = stripeInvoicePaid({ userId, ...ids, amount: 10_000, occurredAt: at });
      const discounts = [{ promotion_code: 'promo_spring' }];
      await deliver(
        bodyOf(withFields(invoice, ['data', 'object'], { discounts, currency: currency.toLowerCase() })),
      );
      await healAll();
      await touch(userId, rivalId, 1);
      expect(await earnedWith(currency)).toEqual([{ affiliateId, cents: 2_000 }]);
    },
  );

  test.each(['USD', 'CHF'])(
    'in %s that is dated ahead earns for whom its user belonged to when it was received, though a founder gives the user away before its date',
    async (currency) => {
      const userId = randomUUID();
      await touch(userId, affiliateId, 5);
      // Longer ago than clocks may differ.
      api.clock.now = Date.now() - 3 * MINUTE_MS;
      const invoice = stripeInvoicePaid({ userId, amount: 10_000, occurredAt: Date.now() + 8 * HOUR_MS });
      await deliver(bodyOf(withFields(invoice, ['data', 'object'], { currency: currency.toLowerCase() })));
      api.clock.now = Date.now();
      const { status } = await api.call('POST', `/apps/${app.appId}/manual-attributions`, {
        key: app.key,
        body: { customerUserId: userId, affiliateId: rivalId, reason: 'A test' },
      });
      expect(status).toBe(201);
      expect(await earnedWith(currency)).toEqual([{ affiliateId, cents: 2_000 }]);
    },
  );

  test.each(['USD', 'DKK'])(
    'in %s earns for the user of its subscription, though a later event names another one',
    async (currency) => {
      const [userId, rival] = [randomUUID(), randomUUID()];
      await touch(userId, affiliateId, 5);
      await touch(rival, rivalId, 1);
      const ids = { subscriptionId: `sub_${userId}`, customerId: `cus_${userId}` };
      await deliver(bodyOf(stripeSubscription({ ...ids, userId, occurredAt: at })));
      const paymentIntentId = `pi_${userId}`;
      const legacy = { paymentIntentId, chargeId: `ch_${userId}` };
      const invoice = stripeInvoicePaid({
        userId: null,
        ...ids,
        invoiceId: `in_${userId}`,
        amount: 10_000,
        occurredAt: at,
        legacy,
      });
      await deliver(bodyOf(withFields(invoice, ['data', 'object'], { currency: currency.toLowerCase() })));
      const intent = stripePaymentIntent({ userId: rival, paymentIntentId, amount: 10_000, occurredAt: at });
      const named = { invoice: `in_${userId}`, currency: currency.toLowerCase() };
      await deliver(bodyOf(withFields(intent, ['data', 'object'], named)));
      await healAll();
      expect(await earnedWith(currency)).toEqual([{ affiliateId, cents: 2_000 }]);
    },
  );
});

test('the ledger is consistent after all of this', async () => {
  await expectConsistentLedger(api.sql);
});
