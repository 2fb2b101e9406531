/**
 * Money as RevenueCat, Adapty and Superwall tell it: the purchase of a store, whose price is stated as a decimal number
 * of US dollars and once more in the currency of the purchase.
 */
import * as z from 'zod';
import type { NormalizedEvent, OriginalAmount } from '../../domain/events.ts';
import { decimalToMinor, minorDecimals } from '../../domain/money.ts';
import * as read from './read-body.ts';
import type { Read } from './read-body.ts';

/** A price as stated. Null or undefined is unknown, which is not zero. */
export interface StorePrice {
  readonly usd: number | null | undefined;
  readonly local: number | null | undefined;
  readonly currency: string | null | undefined;
  /** Where `usd` and `local` stand in the body, for the reason of a failure. */
  readonly fields: { readonly usd: string; readonly local: string };
}

/** Which purchase of which store. */
export interface StoreTransaction {
  readonly store: string;
  readonly ref: string;
}

/** A decimal price, below zero where money goes back. */
export const price = z.number().nullish();

/** The currency of a price. It only says what the amount was in: a code that can't be read leaves the USD price. */
export const priceCurrency = read.currencyCode.nullish().catch(null);

/** A store's name. In lower case all providers name one store alike, so that its purchase pays once. */
export const storeName = read.id.transform((name) => name.toLowerCase());

/** Whether money goes back, whatever the event is called. */
export function isBelowZero({ usd, local }: Pick<StorePrice, 'usd' | 'local'>): boolean {
  return (usd ?? local ?? 0) < 0;
}

/**
 * The amount without its sign, in the currency of the purchase where that is stated, else in USD. `usd` is in USD
 * whatever `currency` says. Null when no amount above zero is stated.
 */
export function storeAmount({ usd, local, currency, fields }: StorePrice): Read<OriginalAmount | null> {
  const usdMinor = usd == null ? 0 : decimalToMinor(Math.abs(usd), 2);
  const localMinor =
    local == null || currency == null ? 0 : decimalToMinor(Math.abs(local), minorDecimals(currency));
  if (usdMinor === null) return { ok: false, reason: `${fields.usd} is too large to be an amount of money` };
  if (localMinor === null) {
    return { ok: false, reason: `${fields.local} is too large to be an amount of money` };
  }
  const usdCents = usdMinor > 0 ? usdMinor : null;
  if (currency != null && currency !== 'USD' && localMinor > 0) {
    return { ok: true, value: { currency, amountMinor: localMinor, usdCents } };
  }
  // What the purchase states above zero is in USD here.
  const cents = usdCents ?? (localMinor > 0 ? localMinor : null);
  return {
    ok: true,
    value: cents === null ? null : { currency: 'USD', amountMinor: cents, usdCents: cents },
  };
}

/**
 * What a customer paid. A price of zero, or of less than half a cent, is no payment. An unknown one, or one below zero
 * where money should have come in, is no payment either, but is marked. `transaction` matters only where there is money.
 */
export function storePayment(
  stated: StorePrice,
  transaction: Read<StoreTransaction>,
): Read<Pick<NormalizedEvent, 'payment' | 'priceUnknown'>> {
  if (stated.usd == null || stated.usd < 0) return { ok: true, value: { payment: null, priceUnknown: true } };
  const amount = storeAmount(stated);
  if (!amount.ok) return amount;
  if (amount.value?.usdCents == null) return { ok: true, value: { payment: null, priceUnknown: false } };
  if (!transaction.ok) return transaction;
  return { ok: true, value: { payment: { ...transaction.value, ...amount.value }, priceUnknown: false } };
}

/**
 * What went back to a customer, keyed by the event that told of it: refunds of a store have no id of their own. A
 * refund without an amount takes nothing back by itself: it may be a part or the whole, and a guess would be a money
 * row. It is marked as of unknown price, so that somebody looks.
 */
export function storeRefund(
  stated: StorePrice,
  transaction: Read<StoreTransaction>,
  sourceEventId: string,
): Read<Pick<NormalizedEvent, 'adjustment' | 'priceUnknown'>> {
  const amount = storeAmount(stated);
  if (!amount.ok) return amount;
  if (amount.value === null) return { ok: true, value: { adjustment: null, priceUnknown: true } };
  if (!transaction.ok) return transaction;
  const { store, ref: paymentRef } = transaction.value;
  return {
    ok: true,
    value: {
      adjustment: {
        kind: 'refund',
        store,
        ref: sourceEventId,
        paymentRef,
        state: 'applied',
        rank: 1,
        ...amount.value,
      },
      priceUnknown: false,
    },
  };
}
