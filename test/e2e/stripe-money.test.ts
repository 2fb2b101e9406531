import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { evaluateAndApply } from '../../activities/evaluate.ts';
import { LEDGER_CHECKS, runLedgerCheck } from '../../src/db/ledger-checks/index.ts';
import { newId } from '../../src/db/new-id.ts';
import { findPaymentsToRecheck, loadPayments } from '../../src/db/payments.ts';
import type { AppId, BindingId, PaymentId } from '../../src/domain/ids.ts';
import pg from 'pg';
import { pino } from 'pino';
import { evaluateEach } from '../../activities/evaluate.ts';
import { findRateGaps } from '../../src/db/installation-state.ts';
import { importRates } from '../../src/db/rates.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Activities } from '../../activities/index.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import {
  bodyOf,
  fakeSecret,
  fixture,
  PROOFS,
  stripeCharge,
  stripeCheckoutSession,
  stripeCreditNote,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeRefund,
  stripeSubscription,
  withFields,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { requestRun, runReprocess } from '../support/reprocess.ts';
import { cases } from '../support/rounds.ts';
import { untilWaiting } from '../support/waiting.ts';

// Stripe's events through the parser and the evaluation, to the cent, in every order of arrival. Everything but Temporal is
// real: the activities of a delivery run during its request.

let api: TestApi;
let activities: Activities;

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi());
});
afterAll(async () => {
  await expectConsistentLedger(api.sql);
  await api.close();
});

const START = Date.UTC(2026, 4, 1);
const at = (day: number) => START + day * DAY_MS;

/** The ids of one sale, unique per app. */
interface Sale {
  readonly userId: string;
  readonly invoiceId: string;
  readonly intentId: string;
  readonly chargeId: string;
  readonly subscriptionId: string;
}

interface Books {
  readonly earned: number;
  readonly reversed: number;
  readonly revenue: number;
}

/** A new app with a rate of 20 % and an attributed user who makes the sale. */
interface Shop {
  readonly app: TestApp;
  readonly sale: Sale;
  /** Delivers an event and returns the response. */
  readonly deliver: (
    event: (sale: Sale) => Payload,
  ) => Promise<{ readonly commissionId: string | null; readonly eventId?: string }>;
  /** Returns the sums of the app's ledger in cents. */
  readonly books: () => Promise<Books>;
}

async function newShop(): Promise<Shop> {
  const name = randomUUID().slice(0, 8);
  const sale: Sale = {
    userId: `user-${name}`,
    invoiceId: `in_${name}`,
    intentId: `pi_${name}`,
    chargeId: `ch_${name}`,
    subscriptionId: `sub_${name}`,
  };
  const app = await newApp(api, undefined, { commissionRateBps: 2000 });
  const secret = fakeSecret('stripe') ?? '';
  const webhook = { environment: 'production', secret };
  await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, { key: app.key, body: webhook });
  const affiliateCode = await newAffiliate(api, app);
  const deviceId = sale.userId;
  const install = { deviceId, affiliateCode, firstOpenAt: START - DAY_MS, codeEnteredAt: START - DAY_MS };
  await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
  const identify = { deviceId, customerUserId: sale.userId, identifiedAt: START - DAY_MS };
  await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify });
  // The users were bound before these deliveries.
  api.clock.now = Date.now() + 1;
  return {
    app,
    sale,
    deliver: async (event) => {
      const body = bodyOf(event(sale));
      const response = await api.call<{ commissionId: string | null }>(
        'POST',
        `/webhooks/stripe/${app.appId}`,
        {
          body: body.toString(),
          headers: PROOFS.stripe(body, secret),
        },
      );
      expect(response.status).toBe(200);
      return response.body;
    },
    books: async () =>
      await api.sql.one<Books>`
      select coalesce(sum(p.earned_cents), 0)::bigint as earned, coalesce(sum(p.reversed_cents), 0)::bigint as reversed,
             (select coalesce(sum(v.amount_cents), 0)::bigint from revenue_entries v where v.app_id = ${app.appId}) as revenue
        from payments p where p.app_id = ${app.appId}`,
  };
}

/** Delivers the events to a new shop. Returns its books. */
async function booksAfter(events: readonly ((sale: Sale) => Payload)[]): Promise<Books> {
  const shop = await newShop();
  for (const event of events) await shop.deliver(event);
  return await shop.books();
}

/** Attributes a user to a new creator after the events of the shop, and has the waiting payments evaluated. Returns the creator. */
async function bindLater({ app }: Shop, customerUserId: string): Promise<string> {
  const { appId, sdkKey: key } = app;
  const affiliateCode = await newAffiliate(api, app);
  // The window of a late identify is counted on the real clock.
  await api.sql`update apps set attribution_window_days = 365 where id = ${appId}`;
  const install = {
    deviceId: customerUserId,
    affiliateCode,
    firstOpenAt: START - DAY_MS,
    codeEnteredAt: START - DAY_MS,
  };
  await api.call('POST', '/sdk/install', { key, body: install });
  const identify = { deviceId: customerUserId, customerUserId, identifiedAt: START };
  await api.call('POST', '/sdk/identify', { key, body: identify });
  const [binding] = await api.sql<{ id: BindingId; healedAt: number | null }>`
    select id, healed_at from bindings where app_id = ${appId} and customer_user_id = ${customerUserId}`;
  if (binding?.healedAt === null) await activities.healPage(binding.id, null);
  return affiliateCode;
}

/** Erases the user of the shop. */
async function eraseUserOf({ app: { appId, key }, sale: { userId } }: Shop): Promise<void> {
  expect((await api.call('DELETE', `/apps/${appId}/users/${userId}`, { key })).status).toBe(200);
}

/** Returns kind and cause of what the app's founder sees as unattributed. */
async function unattributedOf({ app }: Shop): Promise<readonly { kind: string; likelyCause: string }[]> {
  type Items = { readonly items: readonly { kind: string; likelyCause: string }[] };
  const path = `/apps/${app.appId}/diagnostics/unattributed`;
  const { items } = (await api.call<Items>('GET', path, { key: app.key })).body;
  return items.map(({ kind, likelyCause }) => ({ kind, likelyCause }));
}

/** What the operator's page lists of a currency without a rate. */
const gapsOf = async (currency: string) =>
  (await findRateGaps(api.sql)).filter((gap) => gap.currency === currency);

/** Imports a rate of the day of the sales: so many units for a dollar. Has the payments evaluated that it marks. */
async function importRate(currency: string, units: string): Promise<void> {
  const day = new Date(at(0)).toISOString().slice(0, 10);
  await importRates(api.sql, { source: 'operator', rates: [{ currency, day, units, worthUsd: '1' }] });
  for (const { id } of await findPaymentsToRecheck(api.sql, { limit: 10 })) {
    const logger = pino({ level: 'silent' });
    await evaluateEach({ sql: api.sql, logger, onCommissions: () => {}, onBindings: () => {} }, [id]);
  }
}

/** Returns every order of the items. */
function orders<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, index) => orders(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));
}

type Event = (sale: Sale) => Payload;

/** Expects the same books after the events in every order; of four events, in every fourth order. */
async function expectInAnyOrder(events: readonly Event[], books: Books): Promise<void> {
  const step = events.length < 4 ? 1 : 4;
  for (const order of orders(events).filter((_, index) => index % step === 0)) {
    expect(await booksAfter(order)).toEqual(books);
  }
}

/** An invoice of 100.00 USD in the shape from before API version 2025-03-31, which names its charge. */
const invoice: Event = ({ userId, invoiceId, intentId, chargeId, subscriptionId }) =>
  stripeInvoicePaid({
    userId,
    invoiceId,
    subscriptionId,
    amount: 10_000,
    occurredAt: at(0),
    legacy: { chargeId, paymentIntentId: intentId },
  });

const dispute =
  (type: string, status: string, day: number): Event =>
  ({ intentId, chargeId, invoiceId }) =>
    stripeDispute({
      type: `charge.dispute.${type}`,
      status,
      id: `du_${invoiceId}`,
      amount: 10_000,
      paymentIntentId: intentId,
      chargeId,
      occurredAt: at(day),
    });

const refund =
  (amount: number, day: number, over: object = {}): Event =>
  ({ intentId, chargeId, invoiceId }) =>
    stripeRefund({
      amount,
      id: `re_${invoiceId}_${day}`,
      paymentIntentId: intentId,
      chargeId,
      occurredAt: at(day),
      ...over,
    });

/** The event of a refund or dispute, with its amount in another currency. */
const inCurrency =
  (currency: string, amount: number, event: Event): Event =>
  (sale) => {
    const body = event(sale);
    const { object } = body['data'] as { object: Payload };
    return { ...body, data: { object: { ...object, currency, amount } } };
  };

const WITHOUT_RATE = { kind: 'chargeback', likelyCause: 'missing_exchange_rate' };

const kept: Books = { earned: 2_000, reversed: 0, revenue: 10_000 };
const takenBack: Books = { earned: 2_000, reversed: 2_000, revenue: 0 };
const nothing: Books = { earned: 0, reversed: 0, revenue: 0 };

describe('disputes', () => {
  const opened = dispute('created', 'needs_response', 1);
  const lost = dispute('closed', 'lost', 20);

  // @promise dispute-latest-terminal
  test('a dispute that is won after it was lost is given back, in any order of arrival', async () => {
    await expectInAnyOrder([invoice, opened, lost, dispute('closed', 'won', 40)], kept);
    await expectInAnyOrder([invoice, lost, dispute('funds_reinstated', 'won', 40)], kept);
  });

  // @promise dispute-latest-terminal
  test('a dispute that is lost after it was won takes the commission back, in any order of arrival', async () => {
    await expectInAnyOrder([invoice, dispute('closed', 'won', 10), lost], takenBack);
    await expectInAnyOrder(
      [invoice, dispute('funds_reinstated', 'won', 10), dispute('funds_withdrawn', 'under_review', 20)],
      takenBack,
    );
  });

  // @promise dispute-latest-terminal
  test('a dispute whose result changes and returns ends with the latest result, in any order of arrival', async () => {
    const [withdrawn, reinstated] = ['funds_withdrawn', 'funds_reinstated'];
    const again = [
      dispute(withdrawn, 'needs_response', 1),
      dispute(reinstated, 'won', 20),
      dispute(withdrawn, 'lost', 40),
    ];
    for (const order of orders(again)) expect(await booksAfter([invoice, ...order])).toEqual(takenBack);
  });

  // @promise dispute-ends-by-status
  test('a lost dispute stays lost when Stripe returns what was refunded before, in any order of arrival', async () => {
    const returned = dispute('funds_reinstated', 'lost', 21);
    for (const order of orders([refund(4_000, 0), lost, returned])) {
      expect(await booksAfter([invoice, opened, ...order])).toEqual(takenBack);
    }
  });

  // The statuses that a dispute passes through, and whether its money is gone at the end.
  const histories: readonly (readonly [statuses: readonly string[], isGone: boolean])[] = [
    [['needs_response'], true],
    [['needs_response', 'under_review'], true],
    [['needs_response', 'under_review', 'won'], false],
    [['needs_response', 'lost'], true],
    [
      ['needs_response', 'under_review', 'lost', 'appeal_needs_response', 'appeal_under_review', 'won'],
      false,
    ],
    [['needs_response', 'lost', 'appeal_under_review'], true],
    [['needs_response', 'lost', 'appeal_under_review', 'lost'], true],
    [['needs_response', 'won', 'under_review'], true],
    [['needs_response', 'won', 'under_review', 'won'], false],
    [['warning_needs_response', 'warning_under_review', 'warning_closed'], false],
    [['warning_needs_response', 'needs_response', 'lost'], true],
    [['warning_needs_response', 'needs_response', 'won'], false],
    [['prevented'], false],
    [['needs_response', 'prevented'], false],
  ];
  const NAMES = ['created', 'updated', 'funds_withdrawn', 'funds_reinstated', 'closed'];

  // @promise dispute-ends-by-status
  test('a dispute ends as its last status says, whatever its events are called, in any order, with events repeated or missing', async () => {
    const { deliver, sale: first, app } = await newShop();
    const anyStory = fc.record({
      history: fc.constantFrom(...histories),
      isRefundedBefore: fc.boolean(),
      // Which events report the statuses, by their names. The last status is reported by one at least.
      names: fc.array(fc.subarray(NAMES), { minLength: 6, maxLength: 6 }),
      last: fc.constantFrom(...NAMES),
      order: fc.infiniteStream(fc.nat()),
    });
    let number = 0;
    await fc.assert(
      fc.asyncProperty(
        anyStory,
        async ({ history: [statuses, isGone], isRefundedBefore, names, last, order }) => {
          number += 1;
          const suffix = `${first.invoiceId}_${number}`;
          const sale: Sale = {
            ...first,
            invoiceId: `in_${suffix}`,
            intentId: `pi_${suffix}`,
            chargeId: `ch_${suffix}`,
            subscriptionId: `sub_${suffix}`,
          };
          const reports = statuses.flatMap((status, k) => {
            const own = new Set([...(names[k] ?? []), ...(k === statuses.length - 1 ? [last] : [])]);
            return [...own].map((name) => dispute(name, status, 1 + k)(sale));
          });
          const events = [
            invoice(sale),
            ...(isRefundedBefore ? [refund(4_000, 0)(sale)] : []),
            ...reports,
            ...reports.slice(0, 1),
          ];
          const keys = order[Symbol.iterator]();
          const shuffled = events
            .map((event) => ({ event, key: keys.next().value }))
            .toSorted((a, b) => a.key - b.key);
          for (const { event } of shuffled) await deliver(() => event);
          const { reversed } = await api.sql.one<{ reversed: number }>`
          select reversed_cents::bigint as reversed from payments where app_id = ${app.appId} and ref = ${sale.invoiceId}`;
          expect(reversed).toBe(isGone ? 2_000 : isRefundedBefore ? 800 : 0);
        },
      ),
      cases(15, 150),
    );
  });

  // @promise refund-converted
  test('a dispute in another currency is listed without a rate, and converted when one is imported', async () => {
    const shop = await newShop();
    await shop.deliver(invoice);
    await shop.deliver(inCurrency('sek', 50_000, opened));
    expect(await shop.books()).toEqual(kept);
    expect(await unattributedOf(shop)).toEqual([WITHOUT_RATE]);
    const day = new Date(at(0)).toISOString().slice(0, 10);
    const gap = { payments: 0, adjustments: 1, firstDay: day, lastDay: day, latestRateDay: null };
    expect(await gapsOf('SEK')).toEqual([{ currency: 'SEK', ...gap }]);
    await importRate('SEK', '10');
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 1_000, revenue: 5_000 });
    expect(await unattributedOf(shop)).toEqual([]);
    expect(await gapsOf('SEK')).toEqual([]);
  });

  // @promise refund-converted
  test('what an invoice received outside Stripe in another currency is listed without a rate, and converted when one is imported', async () => {
    const shop = await newShop();
    await shop.deliver(invoice);
    await shop.deliver(({ invoiceId }) =>
      stripeInvoicePaymentPaid({
        invoiceId,
        paymentRecordId: 'pr_1',
        amount: 50_000,
        currency: 'zar',
        occurredAt: at(0),
      }),
    );
    expect(await shop.books()).toEqual(kept);
    expect(await gapsOf('ZAR')).toMatchObject([{ currency: 'ZAR', payments: 0, adjustments: 1 }]);
    await importRate('ZAR', '10');
    expect(await shop.books()).toMatchObject({ reversed: 1_000, revenue: 5_000 });
    expect(await gapsOf('ZAR')).toEqual([]);
  });

  // @promise refund-converted
  test('a dispute in another currency counts with its latest amount, in any order of arrival', async () => {
    await importRate('DKK', '10');
    const updated = inCurrency('dkk', 50_000, dispute('updated', 'under_review', 2));
    const half: Books = { earned: 2_000, reversed: 1_000, revenue: 5_000 };
    await expectInAnyOrder([invoice, inCurrency('dkk', 20_000, opened), updated], half);
  });

  // @promise refund-converted
  test('a converted dispute keeps its value when another rate is imported and its status changes', async () => {
    await importRate('HUF', '100');
    const shop = await newShop();
    await shop.deliver(invoice);
    await shop.deliver(inCurrency('huf', 500_000, opened));
    await importRate('HUF', '50');
    await shop.deliver(inCurrency('huf', 500_000, dispute('updated', 'under_review', 2)));
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 1_000, revenue: 5_000 });
  });

  // @promise refund-converted
  test('a dispute is converted at a rate that is imported during its evaluation', async () => {
    const shop = await newShop();
    const appId = shop.app.appId as AppId;
    await shop.deliver(invoice);
    await shop.deliver(inCurrency('ron', 50_000, opened));
    // The import does not find the dispute: its first evaluation has read the payment and written nothing yet.
    await api.sql`update events set likely_cause = null where app_id = ${appId}`;
    const refs = [shop.sale.invoiceId];
    const [early] = await loadPayments(api.sql, { appId, environment: 'production', store: 'stripe', refs });
    await importRate('RON', '10');
    await evaluateAndApply(api.sql, early!, null);
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 1_000, revenue: 5_000 });
    expect(await unattributedOf(shop)).toEqual([]);
  });

  // @promise refund-converted
  test('a dispute is converted at a rate whose file is being stored while it is evaluated', async () => {
    const shop = await newShop();
    await shop.deliver(invoice);
    const blocker = new pg.Client(api.database.url);
    await blocker.connect();
    await blocker.query('begin');
    const day = new Date(at(0)).toISOString().slice(0, 10);
    await blocker.query(
      `insert into exchange_rates (currency, day, units, worth_usd, source) values ('MXN', $1, 20, 1, 'operator')`,
      [day],
    );
    const imported = importRate('MXN', '10');
    // The import has read what waits, and now waits for the row of its rate.
    await untilWaiting(api.sql);
    await shop.deliver(inCurrency('mxn', 50_000, opened));
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 0, revenue: 10_000 });
    await blocker.query('rollback');
    await blocker.end();
    await imported;
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 1_000, revenue: 5_000 });
    expect(await unattributedOf(shop)).toEqual([]);
  });

  // @promise refund-converted
  test('of a dispute that waits for a rate only the latest state is listed, and none once it is won', async () => {
    const shop = await newShop();
    await shop.deliver(invoice);
    await shop.deliver(inCurrency('czk', 50_000, opened));
    await shop.deliver(inCurrency('czk', 60_000, dispute('updated', 'under_review', 2)));
    expect(await unattributedOf(shop)).toEqual([WITHOUT_RATE]);
    await shop.deliver(inCurrency('czk', 60_000, dispute('closed', 'won', 3)));
    expect(await unattributedOf(shop)).toEqual([]);
  });

  test('a dispute that was prevented takes nothing back beside its refund', async () => {
    const half: Books = { earned: 2_000, reversed: 1_000, revenue: 5_000 };
    await expectInAnyOrder([invoice, refund(5_000, 2), dispute('created', 'prevented', 1)], half);
    await expectInAnyOrder([invoice, refund(5_000, 2), opened, dispute('closed', 'prevented', 3)], half);
  });

  test('an inquiry takes nothing back', async () => {
    await expectInAnyOrder(
      [invoice, dispute('created', 'warning_needs_response', 1), dispute('closed', 'warning_closed', 30)],
      kept,
    );
  });

  test('a repeated report of a refund does not change its time', async () => {
    const updated = refund(5_000, 2, { type: 'refund.updated', occurredAt: at(9) });
    await expectInAnyOrder([invoice, refund(5_000, 2), updated], {
      earned: 2_000,
      reversed: 1_000,
      revenue: 5_000,
    });
  });
});

describe('refunds on an endpoint with an API version before 2024-10-28', () => {
  const apiVersion = '2024-06-20';
  const refunded =
    (total: number, day: number, over: object = {}): Event =>
    ({ chargeId, intentId, invoiceId }) =>
      stripeCharge({
        type: 'charge.refunded',
        chargeId,
        paymentIntentId: intentId,
        invoiceId,
        amount: 10_000,
        amountRefunded: total,
        occurredAt: at(day),
        apiVersion,
        ...over,
      });

  // @promise stripe-refund-totals
  test('the latest running total of a charge takes back its share once, in any order of arrival', async () => {
    const books: Books = { earned: 2_000, reversed: 1_400, revenue: 3_000 };
    await expectInAnyOrder([invoice, refunded(3_000, 1), refunded(7_000, 2)], books);
    await expectInAnyOrder([invoice, refunded(3_000, 1), refunded(7_000, 1)], books);
  });

  // @promise stripe-refund-totals
  test('a running total that falls and rises again takes back the latest total, in any order of arrival', async () => {
    const books: Books = { earned: 2_000, reversed: 1_400, revenue: 3_000 };
    for (const order of orders([refunded(7_000, 1), refunded(3_000, 2), refunded(7_000, 3)])) {
      expect(await booksAfter([invoice, ...order])).toEqual(books);
    }
  });

  // @promise stripe-refund-totals
  test('an update of a refund does not count its money beside the running total', async () => {
    const updated = refund(7_000, 3, { type: 'charge.refund.updated', apiVersion });
    await expectInAnyOrder([invoice, refunded(7_000, 2), updated], {
      earned: 2_000,
      reversed: 1_400,
      revenue: 3_000,
    });
  });

  test('newer endpoints count the refunds and not the running total', async () => {
    const newer = { apiVersion: '2024-10-28.acacia' };
    await expectInAnyOrder([invoice, refunded(3_000, 1, newer), refund(3_000, 1, newer)], {
      earned: 2_000,
      reversed: 600,
      revenue: 7_000,
    });
  });
});

describe('an endpoint whose API version is raised beyond 2024-10-28', () => {
  const old = { apiVersion: '2024-06-20' };
  const newer = { apiVersion: '2025-03-31.basil' };
  const total =
    (amount: number, day: number): Event =>
    ({ chargeId, intentId, invoiceId }) =>
      stripeCharge({
        type: 'charge.refunded',
        chargeId,
        paymentIntentId: intentId,
        invoiceId,
        amount: 10_000,
        amountRefunded: amount,
        occurredAt: at(day),
        ...old,
      });
  /** An event of a refund that was made on one day, on a later day. */
  const update = (
    amount: number,
    madeOn: number,
    day: number,
    status = 'succeeded',
    over: object = newer,
  ): Event =>
    refund(amount, day, {
      type: status === 'succeeded' ? 'refund.updated' : 'refund.failed',
      status,
      extra: { id: `re_made_${madeOn}`, created: at(madeOn) / 1000 },
      ...over,
    });
  const refundedOf = (amount: number): Books => ({
    earned: 2_000,
    reversed: amount / 5,
    revenue: 10_000 - amount,
  });

  // @promise stripe-version-raised
  test('a refund that a running total contains counts once when it is reported on its own later, in any order of arrival', async () => {
    await expectInAnyOrder([invoice, total(4_000, 1), update(4_000, 1, 5)], refundedOf(4_000));
    const events = [
      total(1_000, 1),
      total(4_000, 2),
      update(1_000, 1, 5),
      update(3_000, 2, 5),
      update(2_000, 6, 6),
    ];
    const some = orders(events).filter((_, index) => index % 29 === 0);
    for (const order of some) expect(await booksAfter([invoice, ...order])).toEqual(refundedOf(6_000));
  });

  // @promise stripe-version-raised
  test('a refund that fails after a running total contained it is given back, in any order of arrival', async () => {
    const failed = update(3_000, 2, 7, 'failed');
    const reportedByOld = update(3_000, 2, 7, 'failed', { ...old, type: 'charge.refund.updated' });
    for (const events of [
      [total(1_000, 1), total(4_000, 2), failed],
      [total(4_000, 2), reportedByOld],
      // A refund that was made later is not in the total.
      [total(1_000, 1), failed],
    ]) {
      expect(await booksAfter([invoice, ...events])).toEqual(refundedOf(1_000));
      expect(await booksAfter([...events.toReversed(), invoice])).toEqual(refundedOf(1_000));
    }
  });

  test('the refunds of another charge of the invoice are not in a running total', async () => {
    const other = update(3_000, 1, 5, 'succeeded', {
      ...newer,
      paymentIntentId: 'pi_second',
      chargeId: 'ch_second',
    });
    const tie: Event = ({ invoiceId }) =>
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId: 'pi_second', amount: 5_000, occurredAt: at(0) });
    expect(await booksAfter([invoice, tie, total(4_000, 2), other])).toEqual(refundedOf(7_000));
  });
});

describe('two endpoints beside each other while the API version is raised', () => {
  const [old, newer] = [{ apiVersion: '2024-06-20' }, { apiVersion: '2025-03-31.basil' }];
  // Stripe sends an event to both endpoints under one id, each time in the form of the endpoint's version.
  const total =
    (over: object): Event =>
    ({ chargeId, intentId, invoiceId }) =>
      stripeCharge({
        type: 'charge.refunded',
        eventId: `evt_total_${invoiceId}`,
        chargeId,
        paymentIntentId: intentId,
        invoiceId,
        amount: 10_000,
        amountRefunded: 3_000,
        occurredAt: at(1),
        ...over,
      });
  // @promise stripe-version-raised
  test('a refund counts once, whichever form of its events arrives first', async () => {
    for (const order of orders([0, 1, 2, 3])) {
      const update = { type: 'refund.updated', eventId: `evt_refund_${randomUUID()}` };
      const [ofOld, ofNewer] = [old, newer].map((version) => refund(3_000, 1, { ...update, ...version }));
      const events = [total(old), total(newer), ofOld, ofNewer];
      expect(await booksAfter([invoice, ...order.flatMap((n) => events[n] ?? [])])).toEqual({
        earned: 2_000,
        reversed: 600,
        revenue: 7_000,
      });
    }
  });
});

describe('credit notes', () => {
  const note =
    (type: string, status: string, day: number, amount: number | null = 4_000): Event =>
    ({ invoiceId }) =>
      stripeCreditNote({
        type: `credit_note.${type}`,
        status,
        id: `cn_${invoiceId}`,
        invoiceId,
        outOfBandAmount: amount,
        occurredAt: at(day),
      });
  const credited: Books = { earned: 2_000, reversed: 800, revenue: 6_000 };

  // @promise stripe-credit-notes
  test('what a credit note returns outside Stripe takes back its share, and a voided one gives it back, in any order', async () => {
    await expectInAnyOrder([invoice, note('created', 'issued', 1), note('updated', 'issued', 2)], credited);
    await expectInAnyOrder([invoice, note('created', 'issued', 1), note('voided', 'void', 2)], kept);
    const both: Books = { earned: 2_000, reversed: 1_400, revenue: 3_000 };
    await expectInAnyOrder([invoice, note('created', 'issued', 1), refund(3_000, 2)], both);
  });

  test('a credit note that returns nothing outside Stripe takes nothing back', async () => {
    expect(
      await booksAfter([invoice, note('created', 'issued', 1, null), note('updated', 'issued', 2, 0)]),
    ).toEqual(kept);
  });
});

describe('invoices that were paid outside Stripe, since API version 2025-03-31', () => {
  const basilInvoice: Event = ({ userId, invoiceId, subscriptionId }) =>
    stripeInvoicePaid({ userId, invoiceId, subscriptionId, amount: 10_000, occurredAt: at(0) });
  const outside =
    (amount: number, id: string): Event =>
    ({ invoiceId }) =>
      stripeInvoicePaymentPaid({
        id: `inpay_${invoiceId}_${id}`,
        invoiceId,
        paymentRecordId: `pr_${invoiceId}`,
        amount,
        occurredAt: at(0),
      });
  const throughStripe: Event = ({ invoiceId, intentId }) =>
    stripeInvoicePaymentPaid({ invoiceId, paymentIntentId: intentId, amount: 6_000, occurredAt: at(0) });

  // @promise stripe-out-of-band
  test('an invoice that was paid outside Stripe keeps no commission, in any order of arrival', async () => {
    await expectInAnyOrder([basilInvoice, outside(10_000, 'a')], takenBack);
  });

  // @promise stripe-out-of-band, stripe-credit-notes
  test('what was paid outside Stripe and is returned by a credit note is taken back once, in any order of arrival', async () => {
    const returned: Event = ({ invoiceId }) =>
      stripeCreditNote({
        type: 'credit_note.created',
        status: 'issued',
        id: `cn_${invoiceId}`,
        invoiceId,
        outOfBandAmount: 4_000,
        occurredAt: at(1),
      });
    await expectInAnyOrder([basilInvoice, outside(4_000, 'a'), throughStripe, returned], {
      earned: 2_000,
      reversed: 800,
      revenue: 6_000,
    });
  });

  // @promise stripe-out-of-band
  test('the part of an invoice that was paid through Stripe earns, and its refund takes back its share', async () => {
    await expectInAnyOrder([basilInvoice, outside(4_000, 'a'), throughStripe], {
      earned: 2_000,
      reversed: 800,
      revenue: 6_000,
    });
    await expectInAnyOrder([basilInvoice, outside(4_000, 'a'), throughStripe, refund(3_000, 3)], {
      earned: 2_000,
      reversed: 1_400,
      revenue: 3_000,
    });
  });

  test('two payments outside Stripe of one invoice both count, and each once', async () => {
    await expectInAnyOrder([outside(1_000, 'a'), basilInvoice, outside(2_000, 'b'), outside(2_000, 'b')], {
      earned: 2_000,
      reversed: 600,
      revenue: 7_000,
    });
  });

  test('an invoice without a report of a payment outside Stripe earns in full', async () => {
    await expectInAnyOrder([basilInvoice], kept);
  });
});

describe('users', () => {
  const ofNobody: Event = ({ invoiceId, subscriptionId }) =>
    stripeInvoicePaid({ userId: null, invoiceId, subscriptionId, amount: 10_000, occurredAt: at(0) });
  const named: Event = ({ userId, subscriptionId }) =>
    stripeSubscription({
      type: 'customer.subscription.updated',
      status: 'active',
      userId,
      subscriptionId,
      occurredAt: at(1),
      previousAttributes: { metadata: {} },
    });

  // @promise stripe-subscription-names-user
  test('a user who is named on the subscription later earns for its first invoice, in any order', async () => {
    await expectInAnyOrder([ofNobody, named], kept);
  });

  // A customer of Stripe may be a company. The user of the shop opened its first subscription; a member has one, too.
  const customerId = 'cus_Company';
  const company: Event = ({ userId, subscriptionId }) =>
    stripeCheckoutSession({ mode: 'subscription', userId, subscriptionId, customerId, occurredAt: at(0) });
  const ofMember = ({ invoiceId, subscriptionId }: Sale) => ({
    userId: `member-${invoiceId}`,
    subscriptionId: `${subscriptionId}-of-member`,
    customerId,
    amount: 10_000,
    occurredAt: at(1),
  });
  const memberInvoice: Event = (sale) => stripeInvoicePaid({ ...ofMember(sale), invoiceId: sale.invoiceId });
  const anonymousInvoice: Event = (sale) =>
    stripeInvoicePaid({ ...ofMember(sale), invoiceId: sale.invoiceId, userId: null });
  const memberSession: Event = (sale) =>
    stripeCheckoutSession({ ...ofMember(sale), subscriptionId: null, invoiceId: sale.invoiceId });
  const memberSubscription: Event = (sale) =>
    stripeSubscription({ ...ofMember(sale), type: 'customer.subscription.updated', status: 'active' });

  // @promise keys-beside-users
  test('a customer key leads to nobody where an event of the payment names a user, in any order', async () => {
    await expectInAnyOrder([company, memberInvoice], nothing);
    for (const order of orders([company, memberSession, anonymousInvoice])) {
      // An invoice that arrives before the event that names its user has earned through its key. That stays.
      const isLate = order.indexOf(memberSession) === 2;
      expect(await booksAfter(order)).toEqual(isLate ? kept : nothing);
    }
  });

  // @promise keys-beside-users
  test('once the user who opened a company is erased, members without a creator still earn for nobody', async () => {
    const shop = await newShop();
    const memberOpens: Event = (sale) => stripeCheckoutSession({ ...ofMember(sale), mode: 'subscription' });
    for (const event of [company, memberOpens, anonymousInvoice]) await shop.deliver(event);
    expect(await shop.books()).toEqual(nothing);
    await eraseUserOf(shop);
    await activities.convertPage(null);
    expect(await shop.books()).toEqual(nothing);
    await shop.deliver((sale) => anonymousInvoice({ ...sale, invoiceId: `${sale.invoiceId}_next` }));
    expect(await shop.books()).toEqual(nothing);
    // A payment of the company alone goes on to be the user's.
    await shop.deliver((sale) =>
      stripeCheckoutSession({
        userId: null,
        paymentIntentId: sale.intentId,
        customerId,
        amount: 10_000,
        occurredAt: at(1),
      }),
    );
    expect(await shop.books()).toEqual(kept);
  });

  // Before API version 2025-03-31 a payment intent and a charge state their invoice.
  const intentOf = (sale: Sale, userId: string) =>
    stripePaymentIntent({
      userId,
      paymentIntentId: sale.intentId,
      chargeId: sale.chargeId,
      amount: 10_000,
      occurredAt: at(1),
      extra: { invoice: sale.invoiceId },
    });
  const chargeOf = ({ invoiceId, intentId, chargeId }: Sale, userId: string) =>
    stripeCharge({
      chargeId,
      paymentIntentId: intentId,
      amount: 10_000,
      occurredAt: at(1),
      extra: { invoice: invoiceId, metadata: { app_user_id: userId } },
    });
  const NAMING = [
    ['payment intent', intentOf],
    ['charge', chargeOf],
  ] as const;

  // @promise keys-beside-users
  test.each(NAMING)(
    'a user whom the %s of an invoice names counts before the key of a customer, in any order',
    async (_, event) => {
      const names: Event = (sale) => event(sale, ofMember(sale).userId);
      for (const order of orders([company, names, anonymousInvoice])) {
        // As above: an invoice that has earned through its key keeps what it earned.
        const isLate = order.indexOf(names) === 2;
        expect(await booksAfter(order)).toEqual(isLate ? kept : nothing);
      }
    },
  );

  // @promise keys-beside-users
  test.each(NAMING)('a user whom only the %s of an invoice names earns, in any order', async (_, event) => {
    await expectInAnyOrder([(sale) => event(sale, sale.userId), anonymousInvoice], kept);
  });

  // @promise keys-beside-users
  test.each(NAMING)(
    'a user whom only the %s of an invoice names earns once an install reports the user',
    async (_, event) => {
      for (const isFirst of [true, false]) {
        const shop = await newShop();
        const events: Event[] = [(sale) => event(sale, ofMember(sale).userId), anonymousInvoice];
        for (const one of isFirst ? events : events.toReversed()) await shop.deliver(one);
        expect(await shop.books()).toEqual(nothing);
        const affiliateCode = await bindLater(shop, ofMember(shop.sale).userId);
        const rows =
          await api.sql`select affiliate_id, amount_cents from commissions where app_id = ${shop.app.appId}`;
        expect(rows).toEqual([{ affiliateId: affiliateCode, amountCents: 2_000 }]);
      }
    },
  );

  // @promise keys-beside-users
  test.each(NAMING)(
    'an erased user whom only the %s of an invoice names goes on to earn, in any order',
    async (_, event) => {
      const next: readonly Event[] = [(sale) => event(sale, sale.userId), anonymousInvoice];
      for (const order of orders(next)) {
        const shop = await newShop();
        for (const one of next) await shop.deliver(one);
        expect(await shop.books()).toEqual(kept);
        await eraseUserOf(shop);
        for (const one of order) {
          await shop.deliver(({ userId, subscriptionId, ...ids }) =>
            one({
              userId,
              subscriptionId,
              invoiceId: `${ids.invoiceId}_next`,
              intentId: `${ids.intentId}_next`,
              chargeId: `${ids.chargeId}_next`,
            }),
          );
        }
        expect(await shop.books()).toEqual({ earned: 4_000, reversed: 0, revenue: 20_000 });
      }
    },
  );

  test('a user whom only the payment intent of an invoice names can be erased', async () => {
    const shop = await newShop();
    await shop.deliver((sale) => intentOf(sale, sale.userId));
    await shop.deliver(anonymousInvoice);
    expect(await shop.books()).toEqual(kept);
    const { appId } = shop.app;
    await eraseUserOf(shop);
    const rows = await api.sql`
      select customer_user_id from commissions where app_id = ${appId}
      union all select customer_user_id from events where app_id = ${appId} and payment_ref is not null
      union all select customer_user_id from payment_users where app_id = ${appId}
      union all select customer_user_id from user_links where app_id = ${appId}`;
    expect(JSON.stringify(rows)).not.toContain(shop.sale.userId);
    await shop.deliver((sale) =>
      stripeRefund({ paymentIntentId: sale.intentId, chargeId: null, amount: 5_000, occurredAt: at(2) }),
    );
    expect(await shop.books()).toEqual({ earned: 2_000, reversed: 1_000, revenue: 5_000 });
  });

  // @promise keys-beside-users
  test('a subscription leads to its own user, whomever its customer leads to', async () => {
    for (const order of orders([company, memberSubscription, anonymousInvoice])) {
      const isLate = order.indexOf(memberSubscription) === 2;
      expect(await booksAfter(order)).toEqual(isLate ? kept : nothing);
    }
  });

  // @promise placeholders-are-anonymous
  test('an invoice of a placeholder earns nothing, even if an earlier version has bound it', async () => {
    const shop = await newShop();
    const { appId } = shop.app;
    await shop.deliver(({ invoiceId }) =>
      stripeInvoicePaid({ userId: 'undefined', invoiceId, amount: 10_000, occurredAt: at(0) }),
    );
    await api.sql`
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
      select ${newId('binding')}, app_id, 'undefined', id, now() from attributions where app_id = ${appId}`;
    await api.sql`
      insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
      select app_id, 'undefined', id, environment, 0 from payments where app_id = ${appId}`;
    const [payment] = await api.sql<{ id: PaymentId }>`
      update payments set recheck_since = now() where app_id = ${appId} returning id`;
    await activities.convertPage(null);
    expect(await shop.books()).toEqual(nothing);
    expect(
      await api.sql`select likely_cause, recheck_since from payments where id = ${payment?.id ?? ''}`,
    ).toEqual([{ likelyCause: 'anonymous_user_id', recheckSince: null }]);
  });

  // @promise placeholders-are-anonymous
  test('a placeholder leads to nobody beside the key of a subscription, in any order', async () => {
    await expectInAnyOrder(
      [
        ({ invoiceId, subscriptionId }) =>
          stripeInvoicePaid({
            userId: 'guest',
            invoiceId,
            subscriptionId,
            amount: 10_000,
            occurredAt: at(0),
          }),
        named,
      ],
      kept,
    );
  });

  // @promise placeholders-are-anonymous
  test('a subscription of a checkout leads to the user in the metadata beside a placeholder as the reference, in any order', async () => {
    const checkout: Event = ({ userId, subscriptionId }) =>
      withFields(
        stripeCheckoutSession({
          mode: 'subscription',
          userId: 'undefined',
          subscriptionId,
          occurredAt: at(0),
        }),
        ['data', 'object'],
        { metadata: { app_user_id: userId } },
      );
    await expectInAnyOrder([checkout, ofNobody], kept);
  });

  // @promise keys-beside-users
  test('a customer key leads to its user where nothing else names one', async () => {
    await expectInAnyOrder([company, anonymousInvoice], kept);
  });

  // @promise keys-beside-users
  test('a named user whose install is reported later earns for the creator of that install', async () => {
    const shop = await newShop();
    await shop.deliver(company);
    await shop.deliver(memberInvoice);
    const affiliateCode = await bindLater(shop, ofMember(shop.sale).userId);
    const rows =
      await api.sql`select affiliate_id, amount_cents from commissions where app_id = ${shop.app.appId}`;
    expect(rows).toEqual([{ affiliateId: affiliateCode, amountCents: 2_000 }]);
  });
});

describe('payment intents', () => {
  const intent: Event = ({ userId, intentId, chargeId }) =>
    stripePaymentIntent({ userId, paymentIntentId: intentId, chargeId, amount: 10_000, occurredAt: at(0) });
  const charge: Event = ({ chargeId, intentId }) =>
    stripeCharge({ chargeId, paymentIntentId: intentId, amount: 10_000, occurredAt: at(0) });
  const session: Event = ({ userId, intentId }) =>
    stripeCheckoutSession({ userId, paymentIntentId: intentId, amount: 10_000, occurredAt: at(0) });
  const half: Books = { earned: 2_000, reversed: 1_000, revenue: 5_000 };

  // @promise stripe-payment-intents
  test('a payment intent that names its user earns once, and its refund takes back its share, in any order', async () => {
    await expectInAnyOrder([intent, charge, refund(5_000, 2)], half);
    const byCharge = refund(5_000, 2, { paymentIntentId: null });
    await expectInAnyOrder([intent, charge, byCharge], half);
  });

  // @promise stripe-payment-intents
  test('a checkout session and its payment intent earn once, in any order', async () => {
    await expectInAnyOrder([intent, charge, session], kept);
  });

  // @promise stripe-payment-intents
  test('an invoice and its payment intent that names the user earn once, once an event has tied them together', async () => {
    const paid: Event = ({ userId, invoiceId, subscriptionId }) =>
      stripeInvoicePaid({ userId, invoiceId, subscriptionId, amount: 10_000, occurredAt: at(0) });
    const tie: Event = ({ invoiceId, intentId }) =>
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId: intentId, amount: 10_000, occurredAt: at(0) });
    for (const order of [
      [tie, intent, paid],
      [tie, paid, intent],
      [intent, tie, paid],
      [paid, tie, intent],
    ]) {
      expect(await booksAfter(order)).toEqual(kept);
    }
  });
});

describe('invoices that were paid in parts', () => {
  const money = { occurredAt: at(0), currency: 'usd' };
  const partIds = ({ intentId, chargeId }: Sale, n: number) => ({
    paymentIntentId: `${intentId}-${n}`,
    chargeId: `${chargeId}-${n}`,
  });
  const part =
    (n: number, amount: number, over: object = {}): Event =>
    (sale) =>
      stripePaymentIntent({ userId: sale.userId, ...partIds(sale, n), amount, ...money, ...over });
  const tie =
    (n: number, amount: number): Event =>
    (sale) =>
      stripeInvoicePaymentPaid({
        id: `inpay_${sale.invoiceId}_${n}`,
        invoiceId: sale.invoiceId,
        paymentIntentId: partIds(sale, n).paymentIntentId,
        amount,
        ...money,
      });
  const whole =
    (over: object = {}): Event =>
    ({ userId, invoiceId, subscriptionId }) =>
      stripeInvoicePaid({ userId, invoiceId, subscriptionId, amount: 10_000, ...money, ...over });
  const partRefund: Event = (sale) =>
    stripeRefund({ id: `re_${sale.invoiceId}`, ...partIds(sale, 2), amount: 2_500, occurredAt: at(2) });

  const CHECKED: ReadonlySet<string> = new Set([
    'payments_earn_on_the_whole',
    'one_earning_per_payment',
    'corrections_have_their_cause',
    'earnings_fit_their_payment',
    'revenue_is_base_minus_refunds',
  ]);

  interface Sums {
    readonly net: number;
    readonly revenue: number;
  }

  /** Delivers the events, and returns what is left of the earnings and the revenue. The checks of duplicates may find nothing. */
  async function sumsAfter(events: readonly Event[], shop?: Shop): Promise<Sums> {
    const { app, deliver } = shop ?? (await newShop());
    for (const event of events) await deliver(event);
    for (const check of LEDGER_CHECKS.filter(({ name }) => CHECKED.has(name))) {
      const found = await runLedgerCheck(api.sql, check, app.appId as AppId, () => false);
      expect([check.name, ...found.examples]).toEqual([check.name]);
    }
    return await api.sql.one<Sums>`
      select coalesce(sum(c.amount_cents), 0)::bigint as net,
             (select coalesce(sum(v.amount_cents), 0)::bigint from revenue_entries v where v.app_id = ${app.appId}) as revenue
        from commissions c where c.app_id = ${app.appId}`;
  }

  const twoParts = [part(1, 4_000), part(2, 6_000), tie(1, 4_000), tie(2, 6_000)];
  const stories: readonly (readonly [string, readonly Event[], Sums])[] = [
    ['two parts', [...twoParts, whole()], { net: 2_000, revenue: 10_000 }],
    [
      'two parts that alone name the user',
      [...twoParts, whole({ userId: null })],
      { net: 2_000, revenue: 10_000 },
    ],
    [
      'a part that does not name the user',
      [part(1, 4_000), tie(1, 4_000), tie(2, 6_000), whole()],
      { net: 2_000, revenue: 10_000 },
    ],
    ['two parts and a refund of one', [...twoParts, whole(), partRefund], { net: 1_500, revenue: 7_500 }],
  ];

  // @promise one-invoice-one-earning
  test.each(stories)(
    '%s earn once, on what was paid in all, in any order of arrival',
    async (_title, events, sums) => {
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray([...events], { minLength: events.length }), async (order) => {
          expect(await sumsAfter(order)).toEqual(sums);
        }),
        cases(6, 40),
      );
    },
  );

  // @promise one-invoice-one-earning
  test.each([[[0, 1, 2]], [[2, 0, 1]]])(
    'an invoice of three parts that were paid before it earns on all of them, with the parts in the order %j',
    async (order) => {
      const shop = await newShop();
      const both = order.map((n) => [part(n, (n + 2) * 1_000), tie(n, (n + 2) * 1_000)]);
      await sumsAfter(both.flat(), shop);
      expect(await sumsAfter([whole({ amount: 9_000 })], shop)).toEqual({ net: 1_800, revenue: 9_000 });
    },
  );

  // @promise one-invoice-one-earning
  test('each part of an invoice that is not paid in full earns by itself, and keeps its own refund, in any order', async () => {
    // The second part is 6,000, and 2,500 of it are refunded.
    const parts: readonly Event[] = [...twoParts, part(3, 500), tie(3, 500), partRefund];
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...parts], { minLength: parts.length }), async (order) => {
        const shop = await newShop();
        expect(await sumsAfter(order, shop)).toEqual({ net: 1_600, revenue: 8_000 });
        const refunded = await api.sql`
          select p.amount_minor, p.earned_cents, p.reversed_cents from payments p
           where p.app_id = ${shop.app.appId} order by p.amount_minor desc`;
        expect(refunded).toEqual([
          { amountMinor: 6_000, earnedCents: 1_200, reversedCents: 500 },
          { amountMinor: 4_000, earnedCents: 800, reversedCents: 0 },
          { amountMinor: 500, earnedCents: 100, reversedCents: 0 },
        ]);
        expect(await sumsAfter([whole({ amount: 10_500 })], shop)).toEqual({ net: 1_600, revenue: 8_000 });
      }),
      cases(6, 40),
    );
  });

  test('a part that an earlier version corrected beside another one stays corrected until the invoice is reported', async () => {
    const shop = await newShop();
    const { appId } = shop.app;
    await sumsAfter(twoParts, shop);
    await api.sql`
      update payments set recheck_since = now(), version = version + 1,
             duplicate_of = (select id from payments where app_id = ${appId} and amount_minor = 4000)
       where app_id = ${appId} and amount_minor = 6000`;
    await activities.convertPage(null);
    expect(await sumsAfter([], shop)).toEqual({ net: 800, revenue: 4_000 });
    expect(await sumsAfter([partRefund], shop)).toEqual({ net: 300, revenue: 1_500 });
    expect(await sumsAfter([whole()], shop)).toEqual({ net: 1_500, revenue: 7_500 });
  });

  // @promise one-invoice-one-earning
  test('a part that earned before its creator was paused keeps its terms in the earning of the invoice', async () => {
    const shop = await newShop();
    const { appId, key } = shop.app;
    await sumsAfter([part(1, 4_000), tie(1, 4_000)], shop);
    const { items } = (
      await api.call<{ items: { id: string }[] }>('GET', `/apps/${appId}/affiliates`, { key })
    ).body;
    await api.call('PATCH', `/apps/${appId}/affiliates/${items[0]?.id}`, { key, body: { status: 'paused' } });
    expect(await sumsAfter([whole()], shop)).toEqual({ net: 2_000, revenue: 10_000 });
  });

  // @promise one-invoice-one-earning
  test('a user who is identified after both parts and the invoice earns once, on the invoice', async () => {
    const shop = await newShop();
    const late = { userId: `late-${shop.sale.invoiceId}` };
    const events = [
      part(1, 4_000, late),
      part(2, 6_000, late),
      tie(1, 4_000),
      tie(2, 6_000),
      whole({ userId: null }),
    ];
    expect(await sumsAfter(events, shop)).toEqual({ net: 0, revenue: 0 });
    await bindLater(shop, late.userId);
    expect(await sumsAfter([], shop)).toEqual({ net: 2_000, revenue: 10_000 });
  });

  test('a part that changed during its evaluation is read again alone', async () => {
    const shop = await newShop();
    await sumsAfter([...twoParts, whole()], shop);
    const [, stale] = await loadPayments(api.sql, {
      appId: shop.app.appId as AppId,
      environment: 'production',
      store: 'stripe',
      refs: [shop.sale.invoiceId],
    });
    const counts: number[] = [];
    const counting = (async (...args: Parameters<typeof api.sql>) => {
      const found = await api.sql(...args);
      counts.push(found.length);
      return found;
    }) as unknown as typeof api.sql;
    await evaluateAndApply(
      Object.assign(counting, api.sql),
      { ...stale!, version: stale!.version - 1 },
      null,
    );
    expect(counts).toEqual([1]);
  });

  test('an invoice whose user is not known is listed once, also after its part', async () => {
    const stranger = { userId: `stranger-${randomUUID()}` };
    for (const order of orders([part(1, 4_000, stranger), tie(1, 4_000), whole(stranger)])) {
      const shop = await newShop();
      for (const event of order) await shop.deliver(event);
      expect(await unattributedOf(shop)).toEqual([
        { kind: 'purchase', likelyCause: 'user_never_identified' },
      ]);
    }
  });

  // @promise refund-converted
  test('a dispute of an invoice with a part waits for the rate of its currency', async () => {
    const shop = await newShop();
    await sumsAfter([part(1, 4_000), tie(1, 4_000), whole()], shop);
    const ofPart: Event = (sale) =>
      stripeDispute({ id: `du_${sale.invoiceId}`, ...partIds(sale, 1), amount: 4_000, occurredAt: at(1) });
    expect(await sumsAfter([inCurrency('nok', 50_000, ofPart)], shop)).toEqual({
      net: 2_000,
      revenue: 10_000,
    });
    expect(await unattributedOf(shop)).toEqual([WITHOUT_RATE]);
    await importRate('NOK', '10');
    expect(await sumsAfter([], shop)).toEqual({ net: 1_000, revenue: 5_000 });
    expect(await unattributedOf(shop)).toEqual([]);
  });

  // @promise one-invoice-one-earning
  test('the relay corrects a part of an invoice that a process evaluated before it died', async () => {
    const shop = await newShop();
    const appId = shop.app.appId as AppId;
    await sumsAfter([part(1, 4_000), tie(1, 4_000)], shop);
    // The facts of the invoice are committed, with the event of another delivery.
    const { eventId } = await shop.deliver(({ subscriptionId }) =>
      stripeSubscription({ subscriptionId, ...money }),
    );
    await api.sql`
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at, only_anonymous_user)
      values (${newId('payment')}, ${appId}, 'production', 'stripe', ${shop.sale.invoiceId}, ${eventId ?? ''}, 'USD', 10000, 10000, date_trunc('second', now()), false)`;
    const refs = [shop.sale.invoiceId];
    const [invoiceRow] = await loadPayments(api.sql, {
      appId,
      environment: 'production',
      store: 'stripe',
      refs,
    });
    expect(invoiceRow?.amountMinor).toBe(10_000);
    await evaluateAndApply(api.sql, invoiceRow!, null);
    await activities.convertPage(null);
    expect(await sumsAfter([], shop)).toEqual({ net: 2_000, revenue: 10_000 });
  });
});

// @promise keys-beside-users
test('the order of the keys of a payment does not depend on the order of its events', async () => {
  const full: Event = (sale) =>
    withFields(invoice({ ...sale, userId: 'null' }), ['data', 'object'], { customer: 'cus_1' });
  const bare: Event = (sale) =>
    withFields(full(sale), ['data', 'object'], {
      subscription: null,
      subscription_details: null,
      lines: { data: [] },
    });
  const positionsAfter = async (...events: readonly Event[]) => {
    const shop = await newShop();
    for (const event of events) await shop.deliver(event);
    const rows = await api.sql<{ userKey: string; position: number }>`
      select user_key, position from payment_user_keys where app_id = ${shop.app.appId} order by user_key`;
    return rows.map(({ userKey, position }) => [userKey.replace(shop.sale.subscriptionId, 'sub'), position]);
  };
  // The event with most keys decides.
  for (const order of [[bare, full], [full, bare], [full]])
    expect(await positionsAfter(...order)).toEqual([
      ['cus_1', 1],
      ['sub', 0],
    ]);
});

describe('connected accounts', () => {
  const connected: Event = (sale) => ({ ...invoice(sale), account: 'acct_FakeSeller01' });
  const connectedRefund: Event = (sale) => ({ ...refund(5_000, 2)(sale), account: 'acct_FakeSeller01' });
  const list = async ({ app }: Shop, stripeAccounts: readonly string[]) => {
    const change = { key: app.key, body: { stripeAccounts } };
    expect((await api.call('PATCH', `/apps/${app.appId}/settings`, change)).status).toBe(200);
  };
  const half: Books = { earned: 2_000, reversed: 1_000, revenue: 5_000 };

  // @promise stripe-connected-accounts, stripe-listed-accounts
  test('an invoice of a connected account earns only if the app lists the account', async () => {
    const shop = await newShop();
    await list(shop, ['acct_FakeOther01']);
    expect(await shop.deliver(connected)).toMatchObject({ commissionId: null });
    const diagnosed = await api.call('GET', `/apps/${shop.app.appId}/diagnostics/webhooks`, {
      key: shop.app.key,
    });
    expect(diagnosed.body).toMatchObject({
      items: [{ processingStatus: 'ignored', lastError: expect.stringContaining('setting stripeAccounts') }],
    });
    expect(await shop.books()).toEqual(nothing);
    const other = await newShop();
    await list(other, ['acct_FakeOther01', 'acct_FakeSeller01']);
    expect(await other.deliver(connected)).toMatchObject({ commissionId: expect.any(String) });
    await other.deliver(connectedRefund);
    expect(await other.books()).toEqual(half);
  });

  // @promise stripe-delisted-refunds
  test('refunds and disputes of a stored payment count after its account was taken off the list, and new payments do not', async () => {
    const ofAccount =
      (event: Event): Event =>
      (sale) => ({ ...event(sale), account: 'acct_FakeSeller01' });
    const shop = await newShop();
    await list(shop, ['acct_FakeSeller01']);
    const basil: Event = ({ userId, invoiceId, subscriptionId }) =>
      stripeInvoicePaid({ userId, invoiceId, subscriptionId, amount: 10_000, occurredAt: at(0) });
    await shop.deliver(ofAccount(basil));
    await list(shop, []);
    await shop.deliver(ofAccount(refund(5_000, 2)));
    expect(await shop.books()).toEqual(kept);
    // Only now an event ties the payment intent of the refund to the invoice.
    await shop.deliver(
      ofAccount(({ invoiceId, intentId }) =>
        stripeInvoicePaymentPaid({ invoiceId, paymentIntentId: intentId, amount: 10_000, occurredAt: at(0) }),
      ),
    );
    expect(await shop.books()).toEqual(half);
    expect(await shop.deliver(ofAccount(dispute('created', 'needs_response', 3)))).toMatchObject({
      commissionId: expect.any(String),
    });
    expect(await shop.books()).toEqual(takenBack);
    await shop.deliver(ofAccount(dispute('closed', 'won', 9)));
    await shop.deliver(
      ofAccount(({ invoiceId }) =>
        refund(2_000, 4)({ ...shop.sale, invoiceId, intentId: 'pi_other', chargeId: 'ch_other' }),
      ),
    );
    await shop.deliver(ofAccount((sale) => basil({ ...sale, invoiceId: `${sale.invoiceId}_2` })));
    expect(await shop.books()).toEqual(half);
    const diagnosed = await api.call<{ items: { processingStatus: string; lastError: string | null }[] }>(
      'GET',
      `/apps/${shop.app.appId}/diagnostics/webhooks`,
      { key: shop.app.key },
    );
    const statuses = diagnosed.body.items.map(({ processingStatus }) => processingStatus).toReversed();
    expect(statuses).toEqual([
      'processed',
      'ignored',
      'ignored',
      'processed',
      'processed',
      'ignored',
      'ignored',
    ]);
  });

  // @promise stripe-accounts-reprocessed, reprocess-fills-kind
  test('a reprocess counts the stored events of an account that was listed later, and keeps them when it no longer is', async () => {
    const shop = await newShop();
    const reprocess = async () =>
      await runReprocess(api.sql, activities, await requestRun(api.sql, shop.app.appId));
    await shop.deliver(connected);
    await shop.deliver(connectedRefund);
    expect(await reprocess()).toMatchObject({ applied: 0 });
    await list(shop, ['acct_FakeSeller01']);
    expect(await shop.books()).toEqual(nothing);
    expect(await reprocess()).toMatchObject({ applied: 2 });
    expect(await shop.books()).toEqual(half);
    // A policy finds the product and the tax of an event by its kind.
    expect(
      await api.sql`select kind, product_id from events where app_id = ${shop.app.appId} order by received_at, id`,
    ).toEqual([
      { kind: 'purchase', productId: 'prod_LanternPlus' },
      { kind: 'refund', productId: null },
    ]);
    expect(await reprocess()).toMatchObject({ applied: 0 });
    await list(shop, []);
    expect(await reprocess()).toMatchObject({ applied: 0 });
    expect(await shop.books()).toEqual(half);
  });
});

describe('API versions', () => {
  /** Returns the events of a fixture, each with the user of the sale. */
  const sample = (version: string): Event[] => {
    const events = JSON.parse(fixture('stripe-versions', version).toString()) as readonly Payload[];
    return events.map(
      (event) =>
        ({ userId }) =>
          JSON.parse(JSON.stringify(event).replaceAll('user-hazel', userId)) as Payload,
    );
  };

  // 49.99 USD at 20 % is 10.00 USD. 12.50 USD are refunded in two parts, and a dispute is won.
  const books: Books = { earned: 1_000, reversed: 250, revenue: 3_749 };
  // @promise stripe-api-versions
  test.each<[string, Books]>([
    ['2022-11-15', books],
    ['2024-06-20', books],
    ['2025-03-31.basil', books],
    // 10.00 USD of this invoice were paid outside Stripe.
    ['2026-10-28.endive', { earned: 1_000, reversed: 450, revenue: 2_749 }],
  ])(
    'an invoice, its refunds and its dispute on API version %s are booked to the cent',
    async (version, expected) => {
      const events = sample(version);
      expect(await booksAfter(events)).toEqual(expected);
      expect(await booksAfter(events.toReversed())).toEqual(expected);
    },
  );
});
