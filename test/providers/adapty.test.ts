import { describe, expect, test } from '@jest/globals';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import { adapty } from '../../src/providers/adapty/index.ts';
import type { ParseResult } from '../../src/providers/provider.ts';
import {
  adaptyEvent,
  adaptyRefund,
  bodyOf,
  eventOf,
  fixture,
  fixtureNames,
  usd,
  paidInStore,
  readsAs,
  STORE_REFUND,
  STORE_START,
  storeTime,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import type { AdaptyOverrides } from '../support/provider-fixtures.ts';

function sourceEventId(nth: number): string {
  return `ada00000-0000-4000-8000-0000000000${String(nth).padStart(2, '0')}`;
}

/** Returns the expected event of a fixture, by its number. */
const reads = (nth: number, kind: NormalizedEvent['kind'], rest?: Partial<NormalizedEvent>) =>
  readsAs(sourceEventId(nth), nth, kind, {
    anonymousUserIds: ['7a0c5e10-0000-4000-8000-00000fa4e000'],
    ...rest,
  });

const EVENTS: Readonly<Record<string, NormalizedEvent>> = {
  subscription_started: reads(1, 'purchase', paidInStore(1, usd(1149))),
  subscription_started_eur: reads(
    2,
    'purchase',
    paidInStore(2, { currency: 'EUR', amountMinor: 1099, usdCents: 1235 }),
  ),
  subscription_renewed: reads(3, 'renewal', paidInStore(3, usd(1149), { subscription: '70000000000101' })),
  subscription_renewed_kwd: reads(
    4,
    'renewal',
    paidInStore(
      4,
      { currency: 'KWD', amountMinor: 2495, usdCents: 813 },
      { store: 'play_store', ref: 'GPA.7777-7777-7777-77702..3' },
    ),
  ),
  trial_started: reads(5, 'trial_started', { userKeys: ['app_store:70000000000105'] }),
  trial_converted: reads(
    6,
    'trial_converted',
    paidInStore(6, { currency: 'JPY', amountMinor: 2980, usdCents: 2003 }),
  ),
  non_subscription_purchase: reads(7, 'purchase', {
    ...paidInStore(7, usd(402)),
    productId: 'lantern.oil.50',
  }),
  subscription_started_granted: reads(8, 'purchase', { productId: 'adapty_promotion' }),
  subscription_started_zero: reads(9, 'purchase', { userKeys: ['play_store:70000000000109'] }),
  price_unknown: reads(10, 'renewal', { priceUnknown: true, userKeys: ['app_store:70000000000110'] }),
  subscription_renewal_cancelled: reads(11, 'cancellation'),
  subscription_refunded: reads(12, 'refund', {
    occurredAt: storeTime(12),
    adjustment: { ...STORE_REFUND, ...usd(1149), ref: sourceEventId(12), paymentRef: '70000000000101' },
  }),
  subscription_refunded_negative: reads(13, 'refund', {
    occurredAt: storeTime(13),
    adjustment: {
      ...STORE_REFUND,
      currency: 'EUR',
      amountMinor: 1099,
      usdCents: 1235,
      ref: sourceEventId(13),
      paymentRef: '70000000000102',
    },
  }),
  subscription_refunded_upgraded: reads(14, 'refund', { priceUnknown: true }),
  subscription_refunded_amount_unknown: reads(15, 'refund', { priceUnknown: true }),
  non_subscription_purchase_refunded: reads(16, 'refund', {
    occurredAt: storeTime(16),
    productId: 'lantern.oil.50',
    adjustment: { ...STORE_REFUND, ...usd(402), ref: sourceEventId(16), paymentRef: '70000000000107' },
  }),
  subscription_expired: reads(17, 'expiration'),
  subscription_renewal_reactivated: reads(18, 'other'),
  sandbox_purchase: reads(22, 'purchase', { ...paidInStore(22, usd(1149)), environment: 'sandbox' }),
  no_user: reads(23, 'purchase', { ...paidInStore(23, usd(1149)), userIds: [] }),
  no_event_id: reads(24, 'purchase', {
    ...paidInStore(24, usd(1149)),
    sourceEventId: '70000000000124:subscription_started',
  }),
  subscription_initial_purchase: reads(25, 'purchase', paidInStore(25, usd(1149))),
};

const IGNORED: Readonly<Record<string, readonly [string, NormalizedEvent | null]>> = {
  access_level_updated: ['report a state', reads(19, 'other')],
  subscription_active: ['report a state', reads(20, 'other')],
  renamed: ['lantern_paid is unknown; if it was renamed in Adapty', reads(21, 'other')],
  setup_check: ['test of the webhook setup', null],
  setup_check_older: ['test of the webhook setup', null],
};

function parse(overrides: AdaptyOverrides): ParseResult {
  return adapty.parse(bodyOf(adaptyEvent(overrides)));
}

describe('reading a body', () => {
  test('every fixture of the provider has an expectation', () => {
    expect([...Object.keys(EVENTS), ...Object.keys(IGNORED)].toSorted()).toEqual(fixtureNames('adapty'));
  });

  // @promise adapty-events
  test.each(Object.entries(EVENTS))('the fixture %s is read as expected', (name, event) => {
    expect(withoutComponents(adapty.parse(fixture('adapty', name)))).toEqual({ outcome: 'event', event });
  });

  test.each(Object.entries(IGNORED))(
    'the fixture %s is ignored with a reason and its event',
    (name, [reason, event]) => {
      const result = adapty.parse(fixture('adapty', name));
      expect(result).toEqual({ outcome: 'ignored', reason: expect.stringContaining(reason), event });
    },
  );

  test.each([
    ['trial_renewal_cancelled', 'cancellation'],
    ['trial_renewal_reactivated', 'other'],
    ['trial_expired', 'expiration'],
  ])('an event of type %s moves no money even with a price', (type, kind) => {
    expect(eventOf(parse({ type, usd: 11.49 }))).toMatchObject({ kind, payment: null, priceUnknown: false });
  });

  test.each([
    'trial_active',
    'subscription_paused',
    'subscription_deferred',
    'billing_issue_detected',
    'entered_grace_period',
  ])('an event of type %s is ignored even with a price', (type) => {
    expect(parse({ type, usd: 11.49 })).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('report a state'),
      event: { payment: null },
    });
  });

  test.each(['adapty_server_side_product', 'adapty_dashboard_product', 'adapty_promotion'])(
    'access granted as %s is neither a payment nor a refund',
    (productId) => {
      const nothing = { payment: null, adjustment: null, priceUnknown: false };
      expect(eventOf(parse({ productId, type: 'subscription_renewed' }))).toMatchObject(nothing);
      expect(eventOf(adapty.parse(bodyOf(adaptyRefund({ productId }))))).toMatchObject(nothing);
    },
  );

  test.each(['subscription_started', 'trial_converted', 'non_subscription_purchase'])(
    '%s without a price has an unknown price, not a price of zero',
    (type) => {
      expect(eventOf(parse({ type, usd: null }))).toMatchObject({ payment: null, priceUnknown: true });
      expect(eventOf(parse({ type, localPrice: null, extra: { price_usd: undefined } })).priceUnknown).toBe(
        true,
      );
      expect(eventOf(parse({ type, usd: 0 }))).toMatchObject({ payment: null, priceUnknown: false });
    },
  );

  test('a purchase with a negative price is not a payment and has an unknown price', () => {
    expect(eventOf(parse({ usd: -9.99 }))).toMatchObject({ payment: null, priceUnknown: true });
  });

  // @promise proceeds-not-base
  test('the amount is the price, never the total of a profile, the list price or the proceeds', () => {
    const extra = {
      original_price_usd: 100,
      proceeds_usd: 1,
      net_revenue_usd: 1,
      profile_total_revenue_usd: 999,
    };
    expect(eventOf(parse({ usd: 11.49, extra })).payment).toMatchObject(usd(1149));
  });

  test('the price in USD is used where the local price is missing', () => {
    expect(eventOf(parse({ usd: 8.12, currency: 'EUR', localPrice: null })).payment).toMatchObject(usd(812));
    expect(eventOf(parse({ usd: 8.12, currency: 'euros' })).payment).toMatchObject(usd(812));
  });

  test.each<[string, string | null, NormalizedEvent['environment']]>([
    ['Production', 'Production', 'production'],
    ['Sandbox', 'Sandbox', 'sandbox'],
    ['an environment with another name', 'Xcode', 'sandbox'],
    ['no environment', null, null],
  ])('%s is read as the right environment', (_, environment, expected) => {
    expect(eventOf(parse({ environment })).environment).toBe(expected);
  });

  test('a user of a profile that shares the access is not the buyer', () => {
    const body = adaptyEvent({ userId: null });
    expect(JSON.stringify(body)).toContain('user-of-a-relative');
    expect(eventOf(adapty.parse(bodyOf(body)))).toMatchObject({ userIds: [], onlyAnonymousUserIds: false });
  });

  test('a time is read with or without a colon in its offset, with any fraction and in any zone', () => {
    const noon = Date.UTC(2026, 2, 2, 12);
    for (const [text, ms] of [
      ['2026-03-02T12:00:00.181999+0000', noon + 181],
      ['2026-03-02T12:00:00+0000', noon],
      ['2026-03-02T14:00:00.5+02:00', noon + 500],
      ['2026-03-02T12:00:00Z', noon],
    ] as const) {
      const extra = { purchase_date: text };
      expect(eventOf(parse({ extra })).occurredAt).toBe(ms);
    }
  });

  test('an event without a profile names no anonymous customer', () => {
    const body = { ...adaptyEvent({}), profile_id: undefined };
    expect(eventOf(adapty.parse(bodyOf(body))).anonymousUserIds).toEqual([]);
  });

  test('the tax is in the currency that is counted', () => {
    const taxes = { tax_amount_usd: 1, tax_amount_local: 2 };
    const taxOf = (overrides: Parameters<typeof adaptyEvent>[0]) =>
      eventOf(adapty.parse(bodyOf(adaptyEvent({ ...overrides, extra: taxes })))).payment?.components?.tax;
    expect(taxOf({ currency: 'EUR' })).toEqual({ minor: 200 });
    expect(taxOf({ currency: 'EUR', localPrice: null })).toEqual({ minor: 100 });
    expect(taxOf({ currency: 'USD' })).toEqual({ minor: 100 });
    expect(taxOf({ currency: 'USD', usd: null, localPrice: 9.99 })).toEqual({ minor: 200 });
  });

  test('a purchase without a product counts', () => {
    expect(eventOf(parse({ usd: 8.12, extra: { vendor_product_id: undefined } }))).toMatchObject({
      productId: null,
      payment: usd(812),
    });
  });

  test('a purchase without a purchase time counts from the time of its event', () => {
    const eventAt = STORE_START + 7;
    expect(eventOf(parse({ occurredAt: eventAt, extra: { purchase_date: null } })).occurredAt).toBe(eventAt);
    expect(eventOf(parse({ occurredAt: eventAt, extra: { purchase_date: 'soon' } })).occurredAt).toBe(
      eventAt,
    );
  });

  test('the time of an event may be in its properties only', () => {
    const { event_datetime: _, ...rest } = adaptyEvent({
      type: 'subscription_expired',
      occurredAt: STORE_START,
    });
    expect(eventOf(adapty.parse(bodyOf(rest))).occurredAt).toBe(STORE_START);
  });

  test('new fields and new values of known fields do not change the event', () => {
    const known = { eventId: 'E-1', transactionId: 'T-1' };
    const plain = eventOf(parse(known));
    const odd = eventOf(parse({ ...known, extra: { surprise: [{}], cancellation_reason: 'boredom' } }));
    expect(odd).toEqual(plain);
  });
});

describe('the setup check', () => {
  test('the response echoes the text of the older setup check and of no other body', () => {
    const responseTo = (body: object) => adapty.setupCheck?.responseTo(bodyOf({ ...body }));
    expect(adapty.setupCheck?.responseField).toBe('adapty_check_response');
    expect(responseTo({ adapty_check: 'lantern' })).toBe('lantern');
    expect(responseTo({ adapty_check: 'x'.repeat(1000) })).toBe('x'.repeat(1000));
    expect(responseTo({})).toBeNull();
    expect(responseTo({ adapty_check: 7 })).toBeNull();
    expect(responseTo({ adapty_check: 'x'.repeat(1001) })).toBeNull();
    expect(responseTo({ ...adaptyEvent(), adapty_check: 'lantern' })).toBeNull();
    expect(adapty.setupCheck?.responseTo(Buffer.from('{"adapty_check"'))).toBeNull();
  });
});

describe('malformed bodies', () => {
  const personal = 'hazel@example.com';
  test.each<[string, Buffer, string]>([
    ['no bytes', Buffer.alloc(0), 'not JSON'],
    ['half a body', Buffer.from(`{"customer_user_id":"${personal}"`), 'not JSON'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
    ['a list', Buffer.from('[]'), 'not a JSON object'],
    ['an object without a type', bodyOf({ customer_user_id: personal }), 'event_type is missing'],
    ['an event without properties', bodyOf({ ...adaptyEvent(), event_properties: null }), 'profile_event_id'],
    [
      'an event without any id',
      bodyOf(adaptyEvent({ eventId: null, transactionId: null })),
      'neither profile_event_id nor transaction_id',
    ],
    [
      'an event without a time',
      bodyOf({ ...adaptyEvent({ extra: { event_datetime: null } }), event_datetime: null }),
      'event_datetime',
    ],
    [
      'a time without its zone',
      bodyOf({
        ...adaptyEvent({ extra: { event_datetime: undefined } }),
        event_datetime: '2026-03-02T12:00:00.000000',
      }),
      'event_datetime',
    ],
    [
      'a price that is a text',
      bodyOf(adaptyEvent({ extra: { price_usd: personal } })),
      'event_properties.price_usd',
    ],
    ['a price too large for an amount', bodyOf(adaptyEvent({ usd: 1e20 })), 'price_usd is too large'],
    [
      'a price too large for an amount in the currency of the purchase',
      bodyOf(adaptyEvent({ currency: 'EUR', localPrice: 1e20 })),
      'event_properties.price_local is too large',
    ],
    ['a refund too large for an amount', bodyOf(adaptyRefund({ usd: 1e20 })), 'price_usd is too large'],
    ['a payment without a reference', bodyOf(adaptyEvent({ transactionId: null })), 'transaction_id'],
    [
      'a payment with a placeholder as its reference',
      bodyOf(adaptyEvent({ transactionId: 'null' })),
      'event_properties.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'a refund with a placeholder as its reference',
      bodyOf(adaptyRefund({ transactionId: '0' })),
      'event_properties.transaction_id is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'an event whose only id is a placeholder as its reference',
      bodyOf(adaptyEvent({ type: 'trial_started', eventId: null, transactionId: 'null' })),
      'neither profile_event_id nor transaction_id',
    ],
    ['a payment without a store', bodyOf(adaptyEvent({ extra: { store: null } })), 'event_properties.store'],
    ['a refund without a reference', bodyOf(adaptyRefund({ transactionId: null })), 'transaction_id'],
  ])('%s fails with a reason that names the problem and no personal data', (_, body, reason) => {
    const result = adapty.parse(body);
    expect(result).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(reason) });
    expect(JSON.stringify(result)).not.toContain(personal);
  });

  test('an event type that is free text is not quoted in the reason', () => {
    const result = parse({ type: 'hazel@example.com bought 3' });
    expect(JSON.stringify({ ...result, event: null })).not.toContain('hazel');
  });

  test('an event of an unknown type without id or time is ignored, not failed', () => {
    expect(adapty.parse(bodyOf({ event_type: 'x' }))).toMatchObject({ outcome: 'ignored', event: null });
  });
});
