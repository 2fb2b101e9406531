import { describe, expect, test } from '@jest/globals';
import * as money from '../../src/providers/shared/store-money.ts';
import type { StorePrice } from '../../src/providers/shared/store-money.ts';

const TRANSACTION = { ok: true, value: { store: 'app_store', ref: 'T-1' } } as const;
const NO_TRANSACTION = { ok: false, reason: 'transaction_id is missing' } as const;
const fields = { usd: 'event.price', local: 'event.local' };

function stated(over: Partial<StorePrice> = {}): StorePrice {
  return { usd: 9.99, local: null, currency: null, fields, ...over };
}

describe('the amount of a price', () => {
  test.each<[string, Partial<StorePrice>, object | null]>([
    ['USD alone', {}, { currency: 'USD', amountMinor: 999, usdCents: 999 }],
    [
      'the currency of the purchase, with its USD value',
      { local: 8.99, currency: 'EUR' },
      { currency: 'EUR', amountMinor: 899, usdCents: 999 },
    ],
    [
      'a currency without decimals',
      { local: 1500, currency: 'JPY' },
      { currency: 'JPY', amountMinor: 1500, usdCents: 999 },
    ],
    [
      'the currency of the purchase alone',
      { usd: null, local: 8.99, currency: 'EUR' },
      { currency: 'EUR', amountMinor: 899, usdCents: null },
    ],
    [
      'a USD price of zero beside one in another currency',
      { usd: 0, local: 8.99, currency: 'EUR' },
      { currency: 'EUR', amountMinor: 899, usdCents: null },
    ],
    ['USD twice', { local: 9.98, currency: 'USD' }, { currency: 'USD', amountMinor: 999, usdCents: 999 }],
    [
      'USD as the currency of the purchase alone',
      { usd: undefined, local: 9.98, currency: 'USD' },
      { currency: 'USD', amountMinor: 998, usdCents: 998 },
    ],
    [
      'USD where the price in another currency is left out',
      { local: undefined, currency: 'EUR' },
      { currency: 'USD', amountMinor: 999, usdCents: 999 },
    ],
    ['below zero', { usd: -9.99 }, { currency: 'USD', amountMinor: 999, usdCents: 999 }],
    [
      'below zero in another currency',
      { usd: -9.99, local: -8.99, currency: 'EUR' },
      { currency: 'EUR', amountMinor: 899, usdCents: 999 },
    ],
    [
      'another currency whose own price is zero',
      { local: 0, currency: 'EUR' },
      { currency: 'USD', amountMinor: 999, usdCents: 999 },
    ],
    ['a price without its currency', { usd: null, local: 8.99 }, null],
    ['a currency without its price', { usd: null, currency: 'USD' }, null],
    ['zero', { usd: 0, local: 0, currency: 'USD' }, null],
    ['less than half a cent', { usd: 0.004 }, null],
    ['nothing', { usd: null }, null],
  ])('the price case "%s" is read as the expected amount', (_, over, value) => {
    expect(money.storeAmount(stated(over))).toEqual({ ok: true, value });
  });

  test('an amount beyond the safe integers fails with the name of its field', () => {
    expect(money.storeAmount(stated({ usd: 1e20 }))).toEqual({
      ok: false,
      reason: 'event.price is too large to be an amount of money',
    });
    expect(money.storeAmount(stated({ local: 1e20, currency: 'EUR' }))).toEqual({
      ok: false,
      reason: 'event.local is too large to be an amount of money',
    });
  });
});

test.each([
  [-0.01, null, true],
  [0, -1, true],
  [null, -1, true],
  [undefined, undefined, false],
  [0, 0, false],
  [1, -1, false],
])('the price of %p USD and %p in the local currency is negative: %p', (usd, local, expected) => {
  expect(money.isNegative({ usd, local })).toBe(expected);
});

describe('a store payment', () => {
  test('a payment has the amount and the purchase', () => {
    expect(money.storePayment(stated(), TRANSACTION)).toEqual({
      ok: true,
      value: {
        payment: { store: 'app_store', ref: 'T-1', currency: 'USD', amountMinor: 999, usdCents: 999 },
        priceUnknown: false,
      },
    });
  });

  test.each<[string, Partial<StorePrice>, boolean]>([
    ['an unknown price', { usd: null, local: 8.99, currency: null }, true],
    [
      'an unknown price beside one of zero in another currency',
      { usd: null, local: 0, currency: 'EUR' },
      true,
    ],
    ['a price that is not stated', { usd: undefined }, true],
    ['a price below zero', { usd: -0.01 }, true],
    ['a price of zero', { usd: 0 }, false],
    ['a price of zero USD beside one in another currency', { usd: 0, local: 8.99, currency: 'EUR' }, false],
    ['a price of less than half a cent', { usd: 0.004 }, false],
    [
      'a USD price of less than half a cent beside one in another currency',
      { usd: 0.004, local: 8.99, currency: 'EUR' },
      false,
    ],
  ])('%s is not a payment and needs no purchase', (_, over, priceUnknown) => {
    const value = { payment: null, priceUnknown };
    expect(money.storePayment(stated(over), NO_TRANSACTION)).toEqual({ ok: true, value });
  });

  // @promise local-price-converted
  test('a price that is known only in the currency of the purchase is a payment without a USD value', () => {
    expect(money.storePayment(stated({ usd: null, local: 8.99, currency: 'EUR' }), TRANSACTION)).toEqual({
      ok: true,
      value: {
        payment: { store: 'app_store', ref: 'T-1', currency: 'EUR', amountMinor: 899, usdCents: null },
        priceUnknown: false,
      },
    });
  });

  test('a payment fails without its purchase, or with an amount too large', () => {
    expect(money.storePayment(stated(), NO_TRANSACTION)).toEqual(NO_TRANSACTION);
    expect(money.storePayment(stated({ usd: 1e20 }), TRANSACTION)).toMatchObject({ ok: false });
  });
});

describe('a store refund', () => {
  test('a refund names the purchase and has the id of its event', () => {
    expect(money.storeRefund(stated({ usd: -9.99 }), TRANSACTION, 'E-1')).toEqual({
      ok: true,
      value: {
        adjustment: {
          kind: 'refund',
          store: 'app_store',
          ref: 'E-1',
          paymentRef: 'T-1',
          state: 'applied',
          rank: 1,
          currency: 'USD',
          amountMinor: 999,
          usdCents: 999,
        },
        priceUnknown: false,
      },
    });
  });

  test('a refund without an amount takes no money back and is marked, with or without its purchase', () => {
    const value = { adjustment: null, priceUnknown: true };
    expect(money.storeRefund(stated({ usd: null }), NO_TRANSACTION, 'E-1')).toEqual({ ok: true, value });
    expect(money.storeRefund(stated({ usd: 0 }), TRANSACTION, 'E-1')).toEqual({ ok: true, value });
  });

  test('a refund fails without its purchase, or with an amount too large', () => {
    expect(money.storeRefund(stated({ usd: -1 }), NO_TRANSACTION, 'E-1')).toEqual(NO_TRANSACTION);
    expect(money.storeRefund(stated({ usd: -1e20 }), TRANSACTION, 'E-1')).toMatchObject({ ok: false });
  });
});

test('a store is read in lower case, and an invalid currency as none', () => {
  expect(money.storeName.parse('PLAY_STORE')).toBe('play_store');
  expect(money.priceCurrency.parse('eur')).toBe('EUR');
  for (const value of ['euros', 7, null]) expect(money.priceCurrency.parse(value)).toBeNull();
  expect(money.priceCurrency.parse(undefined)).toBeUndefined();
  expect(money.price.safeParse('9.99').success).toBe(false);
  expect(money.price.parse(null)).toBeNull();
});
