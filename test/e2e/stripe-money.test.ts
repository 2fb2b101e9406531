import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Activities } from '../../activities/index.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import {
  bodyOf,
  fakeSecret,
  fixture,
  PROOFS,
  stripeCharge,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeRefund,
  stripeSubscription,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { requestRun, runReprocess } from '../support/reprocess.ts';

// Stripe's events through the parser and the evaluation, to the cent, in every order of arrival. Everything but Temporal is
// real: the activities of a delivery run during its request.

let api: TestApi;
let activities: Activities;

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi());
});
afterAll(async () => {
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
  readonly deliver: (event: (sale: Sale) => Payload) => Promise<{ readonly commissionId: string | null }>;
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
  const install = { deviceId, affiliateCode, firstOpenAt: START - DAY_MS };
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

const kept: Books = { earned: 2_000, reversed: 0, revenue: 10_000 };
const takenBack: Books = { earned: 2_000, reversed: 2_000, revenue: 0 };

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

describe('connected accounts', () => {
  const connected: Event = (sale) => ({ ...invoice(sale), account: 'acct_FakeSeller01' });
  const connectedRefund: Event = (sale) => ({ ...refund(5_000, 2)(sale), account: 'acct_FakeSeller01' });
  const list = async ({ app }: Shop, stripeAccounts: readonly string[]) => {
    const change = { key: app.key, body: { stripeAccounts } };
    expect((await api.call('PATCH', `/apps/${app.appId}/settings`, change)).status).toBe(200);
  };
  const half: Books = { earned: 2_000, reversed: 1_000, revenue: 5_000 };
  const nothing: Books = { earned: 0, reversed: 0, revenue: 0 };

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

  // @promise stripe-accounts-reprocessed
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
