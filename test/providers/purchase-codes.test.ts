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
