import { describe, expect, test } from '@jest/globals';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import type { ParseResult } from '../../src/providers/provider.ts';
import { revenuecat } from '../../src/providers/revenuecat/index.ts';
import {
  bodyOf,
  eventOf,
  fixture,
  fixtureNames,
  revenuecatEvent,
  revenuecatRefund,
  revenuecatTransfer,
  usd,
  paidInStore,
  readsAs,
  STORE_REFUND,
  STORE_START,
  storeTime,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import type { RevenuecatOverrides } from '../support/provider-fixtures.ts';

function sourceEventId(nth: number): string {
  return `FA4E0000-0000-4000-8000-0000000000${String(nth).padStart(2, '0')}`;
}

/** Returns the expected event of a fixture, by its number. */
const reads = (nth: number, kind: NormalizedEvent['kind'], rest?: Partial<NormalizedEvent>) =>
  readsAs(sourceEventId(nth), nth, kind, rest);

const ANONYMOUS = ['$RCAnonymousID:00fa4e00fa4e00fa4e00fa4e00fa4e01'];

const EVENTS: Readonly<Record<string, NormalizedEvent>> = {
  initial_purchase: reads(1, 'purchase', { ...paidInStore(1, usd(1149)), anonymousUserIds: ANONYMOUS }),
  initial_purchase_eur: reads(
    2,
    'purchase',
    paidInStore(2, { currency: 'EUR', amountMinor: 1099, usdCents: 1235 }),
  ),
  renewal: reads(3, 'renewal', paidInStore(3, usd(1149))),
  renewal_kwd: reads(4, 'renewal', {
    ...paidInStore(
      4,
      { currency: 'KWD', amountMinor: 2495, usdCents: 813 },
      { store: 'play_store', ref: 'GPA.7777-7777-7777-77701..3' },
    ),
    productId: 'lantern.plus:monthly',
  }),
  trial_started: reads(5, 'trial_started', { userKeys: ['app_store:70000000000105'] }),
  trial_converted: reads(
    6,
    'trial_converted',
    paidInStore(6, { currency: 'JPY', amountMinor: 2980, usdCents: 2003 }),
  ),
  non_renewing_purchase: reads(7, 'purchase', { ...paidInStore(7, usd(402)), productId: 'lantern.oil.50' }),
  non_renewing_purchase_promotional: reads(8, 'purchase', { productId: 'rc_promo_lantern_plus_monthly' }),
  family_share: reads(9, 'purchase'),
  price_unknown: reads(10, 'renewal', { priceUnknown: true, userKeys: ['app_store:70000000000110'] }),
  cancellation_unsubscribe: reads(11, 'cancellation', { anonymousUserIds: ANONYMOUS }),
  refund: reads(12, 'refund', {
    occurredAt: storeTime(12),
    adjustment: { ...STORE_REFUND, ...usd(1149), ref: sourceEventId(12), paymentRef: '70000000000101' },
  }),
  refund_partial: reads(13, 'refund', {
    occurredAt: storeTime(13),
    adjustment: {
      ...STORE_REFUND,
      currency: 'EUR',
      amountMinor: 366,
      usdCents: 412,
      ref: sourceEventId(13),
      paymentRef: '70000000000102',
    },
  }),
  refund_amount_unknown: reads(14, 'refund', { priceUnknown: true }),
  refund_reversed: reads(15, 'refund_reversed', {
    occurredAt: storeTime(15),
    adjustment: {
      ...STORE_REFUND,
      ...usd(1149),
      state: 'reversed',
      reversesAll: true,
      ref: sourceEventId(15),
      paymentRef: '70000000000101',
    },
  }),
  expiration: reads(16, 'expiration'),
  product_change: reads(17, 'product_change'),
  uncancellation: reads(18, 'other'),
  billing_issue: reads(19, 'other'),
  only_anonymous: reads(21, 'purchase', {
    ...paidInStore(21, usd(1149)),
    userIds: [],
    onlyAnonymousUserIds: true,
    anonymousUserIds: ANONYMOUS,
  }),
  sandbox_purchase: reads(22, 'purchase', { ...paidInStore(22, usd(1149)), environment: 'sandbox' }),
  test: reads(23, 'test', {
    environment: 'sandbox',
    productId: 'lantern_test_product',
    userIds: ['test-button-user'],
  }),
  transfer: reads(24, 'transfer', {
    occurredAt: storeTime(24),
    productId: null,
    userIds: [],
    transfer: { from: ['user-hazel'], to: ['user-rowan'] },
  }),
};

const IGNORED: Readonly<Record<string, ParseResult>> = {
  invoice_issuance: {
    outcome: 'ignored',
    reason: 'events of type INVOICE_ISSUANCE do not affect commissions',
    event: reads(20, 'other'),
  },
};

function parse(overrides: RevenuecatOverrides): ParseResult {
  return revenuecat.parse(bodyOf(revenuecatEvent(overrides)));
}

describe('reading a body', () => {
  test('every fixture of the provider has an expectation', () => {
    expect([...Object.keys(EVENTS), ...Object.keys(IGNORED)].toSorted()).toEqual(fixtureNames('revenuecat'));
  });

  // @promise revenuecat-events
  test.each(Object.entries(EVENTS))('the fixture %s is read as expected', (name, event) => {
    expect(withoutComponents(revenuecat.parse(fixture('revenuecat', name)))).toEqual({
      outcome: 'event',
      event,
    });
  });

  test.each(Object.entries(IGNORED))(
    'the fixture %s is ignored with a reason and its event',
    (name, result) => {
      expect(revenuecat.parse(fixture('revenuecat', name))).toEqual(result);
    },
  );

  test('an event of an unknown type is ignored and keeps its user', () => {
    const result = parse({ type: 'BRAND_NEW_THING', extra: { flavour: { odd: [1, null] } } });
    expect(result).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('BRAND_NEW_THING'),
      event: { kind: 'other', userIds: ['user-hazel'], payment: null, adjustment: null },
    });
  });

  test('an event of an unknown type without id or time is ignored, not failed', () => {
    const body = bodyOf({ event: { type: 'x' } });
    expect(revenuecat.parse(body)).toMatchObject({ outcome: 'ignored', event: null });
  });

  test('an event type that is free text is not quoted in the reason', () => {
    const result = parse({ type: 'hazel@example.com bought 3' });
    expect(JSON.stringify({ ...result, event: null })).not.toContain('hazel');
  });

  test('new fields and new values of known fields do not change the event', () => {
    const known = { eventId: 'E-1', transactionId: 'T-1' };
    const plain = eventOf(parse(known));
    const odd = eventOf(
      parse({ ...known, periodType: 'LUNAR', extra: { surprise: [{}], renewal_number: 'x' } }),
    );
    expect(odd).toEqual(plain);
  });

  describe('a purchase in the store STRIPE', () => {
    const stripe = { store: 'STRIPE', transactionId: 'sub_FakeLantern01' };

    // @promise revenuecat-stripe-reference
    test('the renewals of a subscription are separate payments although their transaction id is the same', () => {
      const first = eventOf(parse({ ...stripe, renewalNumber: 1 }));
      const renewal = eventOf(parse({ ...stripe, type: 'RENEWAL', renewalNumber: 2 }));
      expect(first.payment).toMatchObject({ store: 'stripe', ref: 'sub_FakeLantern01:1' });
      expect(renewal.payment).toMatchObject({ store: 'stripe', ref: 'sub_FakeLantern01:2' });
    });

    // @promise revenuecat-stripe-reference
    test.each<[string, RevenuecatOverrides]>([
      ['a refund', { type: 'CANCELLATION', usd: -9.99 }],
      ['a reversal of a refund', { type: 'REFUND_REVERSED', usd: 9.99 }],
    ])('%s names the period that was paid', (_, overrides) => {
      const event = eventOf(parse({ ...stripe, ...overrides, renewalNumber: 2 }));
      expect(event.adjustment).toMatchObject({ store: 'stripe', paymentRef: 'sub_FakeLantern01:2' });
    });

    // @promise revenuecat-stripe-reference
    test.each<[string, RevenuecatOverrides]>([
      ['a purchase', {}],
      ['a renewal', { type: 'RENEWAL' }],
      ['a refund', { type: 'CANCELLATION', usd: -9.99 }],
      ['a reversal of a refund', { type: 'REFUND_REVERSED', usd: 9.99 }],
    ])('%s without a renewal number fails with a reason, whatever the number is instead', (_, overrides) => {
      for (const renewalNumber of [undefined, null, 'two', 1.5, -1]) {
        const result = parse({ ...stripe, ...overrides, extra: { renewal_number: renewalNumber } });
        expect(result).toEqual({
          outcome: 'failed',
          reason:
            'event.renewal_number is missing or not a whole number, which tells the payments of a Stripe subscription apart',
        });
      }
    });

    test('a purchase that does not renew has no renewal number and is known by its transaction id', () => {
      const once = { ...stripe, renewalNumber: null, extra: { expiration_at_ms: null } };
      const paid = eventOf(parse({ ...once, type: 'NON_RENEWING_PURCHASE' }));
      const refunded = eventOf(parse({ ...once, type: 'CANCELLATION', usd: -9.99 }));
      expect(paid.payment).toMatchObject({ ref: 'sub_FakeLantern01' });
      expect(refunded.adjustment).toMatchObject({ paymentRef: 'sub_FakeLantern01' });
    });

    test('a one-off purchase is known by its transaction id, whatever its expiration is', () => {
      const once = { ...stripe, type: 'NON_RENEWING_PURCHASE', renewalNumber: null };
      for (const expiration of [undefined, STORE_START]) {
        const paid = eventOf(parse({ ...once, extra: { expiration_at_ms: expiration } }));
        expect(paid.payment).toMatchObject({ ref: 'sub_FakeLantern01' });
      }
    });

    test('a renewal number may be zero', () => {
      expect(eventOf(parse({ ...stripe, renewalNumber: 0 })).payment).toMatchObject({
        ref: 'sub_FakeLantern01:0',
      });
    });

    test('a transaction id that is too long with its renewal number fails', () => {
      const result = parse({ ...stripe, transactionId: 'x'.repeat(255) });
      expect(result).toMatchObject({
        outcome: 'failed',
        reason: expect.stringContaining('transaction_id'),
      });
    });

    test('in every other store the transaction id alone is the reference', () => {
      const event = eventOf(parse({ ...stripe, store: 'RC_BILLING', renewalNumber: 2 }));
      expect(event.payment).toMatchObject({ ref: 'sub_FakeLantern01' });
    });
  });

  test.each<[string, RevenuecatOverrides]>([
    ['a first purchase', {}],
    ['a one-off purchase', { type: 'NON_RENEWING_PURCHASE' }],
    ['a renewal', { type: 'RENEWAL' }],
  ])('%s without a price has an unknown price, not a price of zero', (_, overrides) => {
    expect(eventOf(parse({ ...overrides, usd: null }))).toMatchObject({ payment: null, priceUnknown: true });
    expect(eventOf(parse({ ...overrides, usd: null, localPrice: 5, currency: 'EUR' }))).toMatchObject({
      payment: { currency: 'EUR', amountMinor: 500, usdCents: null },
      priceUnknown: false,
    });
    expect(eventOf(parse({ ...overrides, usd: 0 }))).toMatchObject({ payment: null, priceUnknown: false });
    expect(eventOf(parse({ ...overrides, localPrice: null, extra: { price: undefined } })).priceUnknown).toBe(
      true,
    );
  });

  test.each<[string, RevenuecatOverrides]>([
    ['at a price', {}],
    ['without a price', { usd: null }],
  ])('a purchase %s without a kind of period is read as in a normal period', (_, overrides) => {
    const known = { eventId: 'E-1', transactionId: 'T-1', ...overrides };
    for (const periodType of [null, undefined]) {
      expect(parse({ ...known, extra: { period_type: periodType } })).toEqual(
        parse({ ...known, periodType: 'NORMAL' }),
      );
    }
  });

  test('a trial without a price is free', () => {
    expect(eventOf(parse({ periodType: 'TRIAL', usd: null }))).toMatchObject({
      kind: 'trial_started',
      payment: null,
      priceUnknown: false,
    });
  });

  test.each<[string, RevenuecatOverrides, NormalizedEvent['kind']]>([
    ['a first purchase at a price', { periodType: 'TRIAL', usd: 0.99 }, 'purchase'],
    ['a first purchase that is no trial', { usd: 0 }, 'purchase'],
    ['a free one-off purchase', { type: 'NON_RENEWING_PURCHASE', periodType: 'TRIAL', usd: 0 }, 'purchase'],
    ['a free renewal', { type: 'RENEWAL', periodType: 'TRIAL', usd: 0 }, 'renewal'],
    [
      'a renewal that ends a trial',
      { type: 'RENEWAL', extra: { is_trial_conversion: true } },
      'trial_converted',
    ],
    ['a free first purchase in a trial', { periodType: 'trial', usd: 0 }, 'trial_started'],
  ])('%s has the expected kind', (_, overrides, kind) => {
    expect(eventOf(parse(overrides)).kind).toBe(kind);
  });

  test.each<[string, RevenuecatOverrides]>([
    ['granted for a time', { periodType: 'PROMOTIONAL' }],
    ['granted in the dashboard', { store: 'PROMOTIONAL' }],
    ['shared by a relative', { extra: { is_family_share: true } }],
  ])('access that was %s is not a payment, whatever price is stated', (_, overrides) => {
    const nothing = { payment: null, adjustment: null, priceUnknown: false };
    expect(eventOf(parse({ ...overrides, usd: 9.99 }))).toMatchObject({ kind: 'purchase', ...nothing });
    expect(eventOf(parse({ ...overrides, usd: null }))).toMatchObject(nothing);
    expect(eventOf(parse({ ...overrides, type: 'REFUND', usd: -9.99 }))).toMatchObject(nothing);
    expect(eventOf(parse({ ...overrides, type: 'REFUND_REVERSED', usd: 9.99 }))).toMatchObject({
      kind: 'refund_reversed',
      ...nothing,
    });
  });

  test('a purchase without a purchase time counts from the time of its event', () => {
    const event = eventOf(parse({ occurredAt: STORE_START, extra: { purchased_at_ms: null } }));
    expect(event.occurredAt).toBe(STORE_START);
  });

  test.each(['EXPIRATION', 'PRODUCT_CHANGE', 'UNCANCELLATION', 'BILLING_ISSUE', 'TEST'])(
    'an event of type %s is read whatever its price is',
    (type) => {
      expect(parse({ type, extra: { price: 'none' } }).outcome).toBe('event');
    },
  );

  test('a test event with a negative price moves no money', () => {
    expect(eventOf(parse({ type: 'TEST', usd: -3.5 }))).toMatchObject({ kind: 'test', adjustment: null });
  });

  test('an event of an unknown type is ignored even if its price cannot be read', () => {
    expect(parse({ type: 'BRAND_NEW_THING', extra: { price: 'none' } })).toMatchObject({
      outcome: 'ignored',
      event: { kind: 'other' },
    });
  });

  test('the price in USD is used where the local price is missing', () => {
    const expected = usd(812);
    expect(eventOf(parse({ usd: 8.12, currency: 'EUR', localPrice: null })).payment).toMatchObject(expected);
    expect(eventOf(parse({ usd: 8.12, currency: null })).payment).toMatchObject(expected);
    expect(eventOf(parse({ usd: 8.12, currency: 'dollars' })).payment).toMatchObject(expected);
  });

  test.each(['APP_STORE', 'MAC_APP_STORE', 'PLAY_STORE', 'STRIPE', 'MARS_STORE'])(
    'the store %s is read in lower case',
    (store) => {
      expect(eventOf(parse({ store })).payment?.store).toBe(store.toLowerCase());
    },
  );

  test.each<[string, RevenuecatOverrides, NormalizedEvent['environment']]>([
    ['PRODUCTION', { environment: 'PRODUCTION' }, 'production'],
    ['SANDBOX', { environment: 'SANDBOX' }, 'sandbox'],
    ['a test store', { store: 'TEST_STORE' }, 'sandbox'],
    ['an environment with another name', { environment: 'STAGING' }, 'sandbox'],
    ['no environment', { environment: null }, null],
  ])('%s is read as the right environment', (_, overrides, environment) => {
    expect(eventOf(parse(overrides)).environment).toBe(environment);
  });

  test('user ids are listed in order of preference, without repeats and ids of the SDK', () => {
    const anonymous = '$RCAnonymousID:00fa4e';
    const overrides = { userId: anonymous, originalUserId: 'first', aliases: ['second', 'first', anonymous] };
    expect(eventOf(parse(overrides))).toMatchObject({
      userIds: ['first', 'second'],
      anonymousUserIds: [anonymous],
    });
    expect(eventOf(parse({ ...overrides, userId: 'now' })).userIds).toEqual(['now', 'first', 'second']);
  });

  test('a body without any user id is not anonymous', () => {
    const extra = { app_user_id: null, original_app_user_id: '', aliases: null };
    expect(eventOf(parse({ extra }))).toMatchObject({ userIds: [], onlyAnonymousUserIds: false });
  });
});

describe('refunds and reversals', () => {
  test('an event of any type with a negative price is a refund', () => {
    for (const type of ['CANCELLATION', 'RENEWAL', 'EXPIRATION', 'REFUND', 'BRAND_NEW_THING']) {
      const event = eventOf(parse({ type, usd: -3.5, transactionId: 'T-9', eventId: 'E-9' }));
      expect(event).toMatchObject({
        kind: 'refund',
        payment: null,
        adjustment: { ...STORE_REFUND, ...usd(350), ref: 'E-9', paymentRef: 'T-9' },
      });
    }
  });

  // @promise revenuecat-refund-time
  test('a refund counts from the time of its event, not of the purchase', () => {
    const body = bodyOf(revenuecatRefund({ occurredAt: storeTime(9), purchasedAt: STORE_START }));
    expect(eventOf(revenuecat.parse(body)).occurredAt).toBe(storeTime(9));
  });

  test('a refund without a USD price is stated in the currency of the purchase', () => {
    const body = bodyOf(revenuecatRefund({ usd: null, currency: 'EUR', localPrice: 4.5 }));
    expect(eventOf(revenuecat.parse(body)).adjustment).toMatchObject({
      currency: 'EUR',
      amountMinor: 450,
      usdCents: null,
    });
  });

  test('disabling auto-renewal takes no money back', () => {
    const event = eventOf(parse({ type: 'CANCELLATION', usd: 0, extra: { cancel_reason: 'UNSUBSCRIBE' } }));
    expect(event).toMatchObject({ kind: 'cancellation', adjustment: null, priceUnknown: false });
  });

  test('a refund of a trial or of shared access takes no money back and has no unknown price', () => {
    const cancelled = { type: 'CANCELLATION', usd: 0, extra: { cancel_reason: 'CUSTOMER_SUPPORT' } };
    const nothing = { kind: 'refund', adjustment: null, priceUnknown: false };
    expect(eventOf(parse({ ...cancelled, periodType: 'TRIAL' }))).toMatchObject(nothing);
    const shared = { ...cancelled, usd: -9.99, extra: { is_family_share: true } };
    expect(eventOf(parse(shared))).toMatchObject(nothing);
  });

  test('a refund takes back its stated amount, whatever its sign', () => {
    for (const price of [3.5, -3.5]) {
      expect(eventOf(parse({ type: 'REFUND', usd: price })).adjustment).toMatchObject(usd(350));
      const extra = { cancel_reason: 'customer_support' };
      expect(eventOf(parse({ type: 'CANCELLATION', usd: price, extra })).adjustment).toMatchObject(usd(350));
    }
  });

  test('the reason CUSTOMER_SUPPORT makes only a cancellation a refund', () => {
    const extra = { cancel_reason: 'CUSTOMER_SUPPORT' };
    expect(eventOf(parse({ type: 'EXPIRATION', usd: 3.5, extra }))).toMatchObject({
      kind: 'expiration',
      adjustment: null,
    });
  });

  test('a refund reversal with a negative price is not a refund', () => {
    const event = eventOf(parse({ type: 'REFUND_REVERSED', usd: -3.5 }));
    expect(event).toMatchObject({ kind: 'refund_reversed', adjustment: { state: 'reversed', ...usd(350) } });
  });

  test('a refund reversal without an amount keeps a stated currency', () => {
    const adjustmentOf = (overrides: RevenuecatOverrides) =>
      eventOf(parse({ type: 'REFUND_REVERSED', usd: null, ...overrides })).adjustment;
    expect(adjustmentOf({ currency: 'EUR' })).toMatchObject({ currency: 'EUR', amountMinor: 0, usdCents: 0 });
    expect(adjustmentOf({ currency: null })).toMatchObject({ currency: 'USD', amountMinor: 0, usdCents: 0 });
  });

  test('a transfer leaves out ids of the SDK', () => {
    const ids = ['$RCAnonymousID:1', 'user-hazel'];
    const result = revenuecat.parse(bodyOf(revenuecatTransfer({ from: ids, to: ids.toReversed() })));
    expect(eventOf(result).transfer).toEqual({ from: ['user-hazel'], to: ['user-hazel'] });
  });

  test('a transfer without lists of users is read', () => {
    const result = revenuecat.parse(bodyOf(revenuecatTransfer({ from: [], to: [] })));
    expect(eventOf(result).transfer).toEqual({ from: [], to: [] });
  });

  test('a refund reversal without an amount undoes the refunds of its transaction', () => {
    const event = eventOf(parse({ type: 'REFUND_REVERSED', usd: null, transactionId: 'T-5' }));
    expect(event.adjustment).toMatchObject({
      state: 'reversed',
      reversesAll: true,
      paymentRef: 'T-5',
      amountMinor: 0,
    });
  });
});

describe('malformed bodies', () => {
  const personal = 'hazel@example.com';
  test.each<[string, Buffer, string]>([
    ['no bytes', Buffer.alloc(0), 'not JSON'],
    ['half a body', Buffer.from(`{"event":{"app_user_id":"${personal}"`), 'not JSON'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
    ['a list', Buffer.from('[]'), 'not a JSON object'],
    ['null', Buffer.from('null'), 'not a JSON object'],
    ['a text', Buffer.from('"event"'), 'not a JSON object'],
    ['an object without an event', bodyOf({ user: personal }), 'event is missing'],
    ['an event that is a text', bodyOf({ event: personal }), 'event is missing or not an object'],
    ['an event without a type', bodyOf({ event: { id: personal } }), 'event.type'],
    ['an event without an id', bodyOf(revenuecatEvent({ extra: { id: undefined } })), 'event.id'],
    [
      'a refund without an id',
      bodyOf(revenuecatRefund({ extra: { id: undefined }, type: 'REFUND' })),
      'event.id',
    ],
    [
      'money going back under a new name that names no transaction',
      bodyOf(revenuecatRefund({ type: 'BRAND_NEW_THING', extra: { transaction_id: undefined } })),
      'event.transaction_id',
    ],
    ['an id that cannot be stored', bodyOf(revenuecatEvent({ eventId: 'a\u0000b' })), 'event.id'],
    ['an id beyond all measure', bodyOf(revenuecatEvent({ eventId: 'x'.repeat(256) })), 'event.id'],
    ['a time in the wrong unit', bodyOf(revenuecatEvent({ occurredAt: 1e18 })), 'event.event_timestamp_ms'],
    ['a price that is a text', bodyOf(revenuecatEvent({ extra: { price: personal } })), 'event.price'],
    ['a price too large for an amount', bodyOf(revenuecatEvent({ usd: 1e20 })), 'event.price'],
    ...['CANCELLATION', 'REFUND', 'REFUND_REVERSED', 'RENEWAL', 'NON_RENEWING_PURCHASE'].map(
      (type): [string, Buffer, string] => [
        `a ${type} whose price is a text`,
        bodyOf(revenuecatEvent({ type, extra: { price: personal } })),
        'event.price',
      ],
    ),
    [
      'a price too large for an amount in the currency of the purchase',
      bodyOf(revenuecatEvent({ currency: 'EUR', localPrice: 1e20 })),
      'event.price_in_purchased_currency is too large',
    ],
    [
      'a purchase in the wrong unit of time',
      bodyOf(revenuecatEvent({ purchasedAt: 1e18 })),
      'event.purchased_at_ms',
    ],
    ['a refund too large for an amount', bodyOf(revenuecatRefund({ usd: 1e20 })), 'event.price is too large'],
    [
      'a refund reversal beyond all measure',
      bodyOf(revenuecatEvent({ type: 'REFUND_REVERSED', usd: 1e20 })),
      'event.price is too large',
    ],
    [
      'a refund reversal without a reference',
      bodyOf(revenuecatEvent({ type: 'REFUND_REVERSED', transactionId: null })),
      'event.transaction_id',
    ],
    [
      'a payment without a reference',
      bodyOf(revenuecatEvent({ transactionId: null })),
      'event.transaction_id',
    ],
    [
      'a payment with a placeholder as its reference',
      bodyOf(revenuecatEvent({ transactionId: 'null' })),
      'event.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'a payment of a period in Stripe with a placeholder as its reference',
      bodyOf(revenuecatEvent({ store: 'STRIPE', transactionId: ' Undefined', extra: { renewal_number: 3 } })),
      'event.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'a refund with a placeholder as its reference',
      bodyOf(revenuecatRefund({ transactionId: '0' })),
      'event.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'a refund reversal with a placeholder as its reference',
      bodyOf(revenuecatEvent({ type: 'REFUND_REVERSED', transactionId: 'null' })),
      'event.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    ['a payment without a store', bodyOf(revenuecatEvent({ extra: { store: 7 } })), 'event.store'],
    [
      'a refund without a reference',
      bodyOf(revenuecatRefund({ transactionId: null })),
      'event.transaction_id',
    ],
  ])('%s fails with a reason that names the problem and no personal data', (_, body, reason) => {
    const result = revenuecat.parse(body);
    expect(result).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(reason) });
    expect(JSON.stringify(result)).not.toContain(personal);
  });
});
