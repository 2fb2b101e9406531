import { describe, expect, test } from '@jest/globals';
import { providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import {
  adaptyEvent,
  bodyOf,
  eventOf,
  paddleTransaction,
  revenuecatEvent,
  stripeCheckoutSession,
  stripeEvent,
  stripeInvoicePaid,
  superwallEvent,
  withFields,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';

const codesOf = (provider: ProviderName, body: Payload) =>
  eventOf(providers[provider].parse(bodyOf(body))).codes.map(({ store, namespace, value }) => [
    store,
    namespace,
    value,
  ]);

describe('the codes of a purchase', () => {
  // @promise code-providers
  test.each<[string, ProviderName, Payload, unknown[]]>([
    [
      'an offer code at RevenueCat',
      'revenuecat',
      revenuecatEvent({ usd: 10, extra: { offer_code: 'SPRING20' } }),
      [['app_store', 'app_store', 'SPRING20']],
    ],
    [
      'an offer code of Google Play',
      'revenuecat',
      revenuecatEvent({ usd: 10, extra: { store: 'PLAY_STORE', offer_code: 'SPRING20' } }),
      [['play_store', 'play_store', 'SPRING20']],
    ],
    [
      'attributes of the subscriber',
      'revenuecat',
      revenuecatEvent({
        usd: 10,
        extra: {
          subscriber_attributes: {
            tributary_code: { value: 'ada' },
            $campaign: { value: 'spring' },
            $email: { value: 'x@example.com' },
          },
        },
      }),
      [
        ['app_store', 'attribute', 'ada'],
        ['app_store', 'campaign', 'spring'],
      ],
    ],
    [
      'an attribute that is an address',
      'revenuecat',
      revenuecatEvent({
        usd: 10,
        extra: { subscriber_attributes: { tributary_code: { value: 'a@example.com' } } },
      }),
      [],
    ],
    [
      'an attribute that is no text',
      'revenuecat',
      revenuecatEvent({
        usd: 10,
        extra: { subscriber_attributes: { tributary_code: { value: { a: 1 } } }, offer_code: 5 },
      }),
      [],
    ],
    [
      'attributes that are a list',
      'revenuecat',
      revenuecatEvent({ usd: 10, extra: { subscriber_attributes: [] } }),
      [],
    ],
    [
      'a very long code',
      'revenuecat',
      revenuecatEvent({ usd: 10, extra: { offer_code: 'x'.repeat(65) } }),
      [],
    ],
    [
      'an offer code at Superwall',
      'superwall',
      withFields(superwallEvent({}), ['data'], { offerCode: 'SPRING20' }),
      [['app_store', 'app_store', 'SPRING20']],
    ],
    [
      'an offer at Adapty',
      'adapty',
      withFields(adaptyEvent({}), ['event_properties'], { promotional_offer_id: 'spring' }),
      [['app_store', 'app_store', 'spring']],
    ],
    [
      'a discount of Paddle',
      'paddle',
      withFields(paddleTransaction({}), ['data'], { discount_id: 'dsc_01h' }),
      [['paddle', 'paddle', 'dsc_01h']],
    ],
    [
      'a promotion code of a Checkout session',
      'stripe',
      withFields(stripeCheckoutSession({}), ['data', 'object'], {
        discounts: [
          { coupon: 'co', promotion_code: 'promo_1' },
          { promotion_code: { id: 'promo_2' } },
          { promotion_code: null },
        ],
      }),
      [
        ['stripe', 'stripe', 'promo_1'],
        ['stripe', 'stripe', 'promo_2'],
      ],
    ],
    [
      'the discounts of an invoice by id',
      'stripe',
      withFields(stripeInvoicePaid({}), ['data', 'object'], { discounts: ['di_1'] }),
      [],
    ],
    [
      'the expanded discounts of an invoice',
      'stripe',
      withFields(stripeInvoicePaid({}), ['data', 'object'], {
        discounts: [{ id: 'di_1', promotion_code: 'promo_1' }],
      }),
      [['stripe', 'stripe', 'promo_1']],
    ],
  ])('%s', (_, provider, body, codes) => {
    expect(codesOf(provider, body)).toEqual(codes);
  });
});

const subscriptionCodesOf = (provider: ProviderName, body: Payload) => {
  const result = providers[provider].parse(bodyOf(body));
  if (result.outcome === 'failed') throw new Error(result.reason);
  return result.event?.subscriptionCodes;
};
const USED_AT = Date.UTC(2026, 2, 5, 10);
const used = (namespace: string, value: string, userKey = 'app_store:first-1') => [
  { userKey, usedAt: USED_AT, namespace, value },
];
const ofStripe = used('stripe', 'promo_1', 'first-1');
const begun = { originalTransactionId: 'first-1', transactionId: 'first-1', usd: 0, occurredAt: USED_AT };
const discounts = [{ promotion_code: 'promo_1' }];
const session = (extra: Payload) =>
  withFields(
    stripeCheckoutSession({ mode: 'subscription', subscriptionId: 'first-1', occurredAt: USED_AT }),
    ['data', 'object'],
    { discounts, ...extra },
  );
const discount = (extra: Payload) =>
  stripeEvent(
    'customer.discount.created',
    { promotion_code: 'promo_1', subscription: 'first-1', start: USED_AT / 1_000, ...extra },
    { occurredAt: USED_AT + 5_000 },
  );

describe('the codes of a subscription that begins without a payment', () => {
  test.each<[string, ProviderName, Payload, unknown[]]>([
    [
      'a trial at RevenueCat',
      'revenuecat',
      revenuecatEvent({ ...begun, extra: { offer_code: 'SPRING20', period_type: 'TRIAL' } }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a free period at RevenueCat',
      'revenuecat',
      revenuecatEvent({ ...begun, extra: { offer_code: 'SPRING20', period_type: 'INTRO' } }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a gift at RevenueCat, which nobody will pay for',
      'revenuecat',
      revenuecatEvent({ ...begun, extra: { offer_code: 'SPRING20', is_family_share: true } }),
      [],
    ],
    [
      'a trial at RevenueCat without the transaction of its subscription',
      'revenuecat',
      revenuecatEvent({ ...begun, originalTransactionId: null, extra: { offer_code: 'SPRING20' } }),
      [],
    ],
    [
      'a price that RevenueCat does not know, which no payment states',
      'revenuecat',
      revenuecatEvent({ ...begun, usd: null, extra: { offer_code: 'SPRING20' } }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a trial at Superwall',
      'superwall',
      superwallEvent({ ...begun, periodType: 'TRIAL', extra: { offerCode: 'SPRING20' } }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a price that Superwall does not know',
      'superwall',
      superwallEvent({ ...begun, usd: null, extra: { offerCode: 'SPRING20' } }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a price that Adapty does not know',
      'adapty',
      adaptyEvent({ ...begun, usd: null, extra: { promotional_offer_id: 'spring' } }),
      used('app_store', 'spring'),
    ],
    [
      'a trial at Adapty',
      'adapty',
      adaptyEvent({ ...begun, type: 'trial_started', extra: { promotional_offer_id: 'spring' } }),
      used('app_store', 'spring'),
    ],
    [
      'a trial that Superwall reports later, from the time of its purchase',
      'superwall',
      superwallEvent({
        ...begun,
        occurredAt: USED_AT + 5_000,
        purchasedAt: USED_AT,
        periodType: 'TRIAL',
        extra: { offerCode: 'SPRING20' },
      }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a trial at Superwall without the time of its purchase, from the time of its event',
      'superwall',
      superwallEvent({
        ...begun,
        periodType: 'TRIAL',
        extra: { offerCode: 'SPRING20', purchasedAt: undefined },
      }),
      used('app_store', 'SPRING20'),
    ],
    [
      'a trial at Superwall without a store, which has no codes',
      'superwall',
      superwallEvent({ ...begun, periodType: 'TRIAL', extra: { offerCode: 'SPRING20', store: null } }),
      [],
    ],
    [
      'a trial that Adapty reports later, from the time of its purchase',
      'adapty',
      adaptyEvent({
        ...begun,
        type: 'trial_started',
        occurredAt: USED_AT + 5_000,
        purchasedAt: USED_AT,
        extra: { promotional_offer_id: 'spring' },
      }),
      used('app_store', 'spring'),
    ],
    [
      'a trial at Adapty without the time of its purchase, from the time of its event',
      'adapty',
      adaptyEvent({
        ...begun,
        type: 'trial_started',
        extra: { promotional_offer_id: 'spring', purchase_date: undefined },
      }),
      used('app_store', 'spring'),
    ],
    [
      'a trial at Adapty without a store, which has no codes',
      'adapty',
      adaptyEvent({
        ...begun,
        type: 'trial_started',
        extra: { promotional_offer_id: 'spring', store: null },
      }),
      [],
    ],
    [
      'a free period at Adapty',
      'adapty',
      adaptyEvent({ ...begun, extra: { promotional_offer_id: 'spring' } }),
      used('app_store', 'spring'),
    ],
    [
      'access that was granted in Adapty',
      'adapty',
      adaptyEvent({
        ...begun,
        type: 'trial_started',
        productId: 'adapty_promotion',
        extra: { promotional_offer_id: 'spring' },
      }),
      [],
    ],
    [
      'a session of Stripe that requires no payment',
      'stripe',
      session({ payment_status: 'no_payment_required' }),
      ofStripe,
    ],
    ['a session of Stripe with a full discount', 'stripe', session({ amount_total: 0 }), ofStripe],
    ['a paid session of Stripe, whose payment has the code', 'stripe', session({}), []],
    ['a discount of a subscription at Stripe', 'stripe', discount({}), ofStripe],
    [
      'a discount of a customer at Stripe, who may be a company',
      'stripe',
      discount({ subscription: null }),
      [],
    ],
    [
      'a family member at Superwall, whose event may have the transaction of the organizer',
      'superwall',
      superwallEvent({
        ...begun,
        periodType: 'TRIAL',
        extra: { offerCode: 'SPRING20', isFamilyShare: true },
      }),
      [],
    ],
    [
      'a placeholder in place of the transaction',
      'revenuecat',
      revenuecatEvent({ ...begun, originalTransactionId: 'null', extra: { offer_code: 'SPRING20' } }),
      [],
    ],
    [
      'an invoice of zero at Stripe with expanded discounts',
      'stripe',
      withFields(
        stripeInvoicePaid({ subscriptionId: 'first-1', amount: 0, occurredAt: USED_AT }),
        ['data', 'object'],
        { discounts, status_transitions: { paid_at: USED_AT / 1_000 } },
      ),
      ofStripe,
    ],
    [
      'an invoice of zero at Stripe that its event reports later, from the time of its payment',
      'stripe',
      withFields(
        stripeInvoicePaid({ subscriptionId: 'first-1', amount: 0, occurredAt: USED_AT + 5_000 }),
        ['data', 'object'],
        { discounts, status_transitions: { paid_at: USED_AT / 1_000 } },
      ),
      ofStripe,
    ],
    [
      'an invoice of zero at Stripe without the time of its payment, from the time of its event',
      'stripe',
      withFields(
        stripeInvoicePaid({ subscriptionId: 'first-1', amount: 0, occurredAt: USED_AT }),
        ['data', 'object'],
        { discounts, status_transitions: null },
      ),
      ofStripe,
    ],
    ['a discount without a code', 'stripe', discount({ promotion_code: null }), []],
    [
      'a trial at Paddle',
      'paddle',
      withFields(paddleTransaction({ subscriptionId: 'first-1', amount: 0, occurredAt: USED_AT }), ['data'], {
        discount_id: 'dsc_01h',
        billed_at: new Date(USED_AT).toISOString(),
        payments: [],
      }),
      used('paddle', 'dsc_01h', 'first-1'),
    ],
  ])('%s', (_, provider, body, codes) => {
    expect(subscriptionCodesOf(provider, body)).toEqual(codes);
  });
});

describe('a promotion code of Stripe', () => {
  const refsOf = (body: Payload) =>
    eventOf(providers.stripe.parse(bodyOf(body))).codes.map(({ value, paymentRef }) => ({
      value,
      paymentRef,
    }));

  test.each([
    ['the invoice that it made', { invoice: 'in_1', payment_intent: 'pi_1' }, 'in_1'],
    ['its payment intent without an invoice', { invoice: null, payment_intent: 'pi_1' }, 'pi_1'],
    ['the session itself without both', { invoice: null, payment_intent: null }, 'cs_1'],
  ])('counts for the payment of its session, which is %s', (_, fields, paymentRef) => {
    const paid = withFields(stripeCheckoutSession({ sessionId: 'cs_1' }), ['data', 'object'], {
      discounts,
      ...fields,
    });
    expect(eventOf(providers.stripe.parse(bodyOf(paid))).payment?.ref).toBe(paymentRef);
    expect(refsOf(paid)).toEqual([{ value: 'promo_1', paymentRef }]);
  });

  test('counts for the first invoice of a subscription, if the session names it', () => {
    expect(refsOf(session({ invoice: 'in_1' }))).toEqual([{ value: 'promo_1', paymentRef: 'in_1' }]);
    expect(refsOf(session({ invoice: null }))).toEqual([]);
  });

  test('of a discount moves no money, and the reason says for what it counts', () => {
    expect(providers.stripe.parse(bodyOf(discount({})))).toMatchObject({
      outcome: 'ignored',
      reason: 'a discount moves no money; its promotion code counts for the payments of its subscription',
      event: { payment: null, userKeys: ['first-1'] },
    });
    for (const none of [{ subscription: null }, { promotion_code: null }]) {
      expect(providers.stripe.parse(bodyOf(discount(none)))).toMatchObject({
        outcome: 'ignored',
        reason:
          'events of type customer.discount.created without a promotion code of a subscription do not affect commissions',
        event: { subscriptionCodes: [] },
      });
    }
  });
});
