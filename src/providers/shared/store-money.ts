/**
 * Money as RevenueCat, Adapty and Superwall report it: a purchase in a store, whose price is a decimal number of US
 * dollars and, in a second field, of the currency of the purchase.
 */
import * as z from 'zod';
import type { NormalizedEvent, OriginalAmount } from '../../domain/events.ts';
import { decimalToMinor, minorDecimals } from '../../domain/money.ts';
import { isPlaceholder } from '../../domain/user-ids.ts';
import * as read from './read-body.ts';
import type { Read } from './read-body.ts';

/** A price as the body states it. Null or undefined means unknown, which is not zero. */
export interface StorePrice {
  readonly usd: number | null | undefined;
  readonly local: number | null | undefined;
  readonly currency: string | null | undefined;
  /** The names of the fields of `usd` and `local`, for the reason of a failure. */
  readonly fields: { readonly usd: string; readonly local: string };
}

/**
 * The id of a purchase in its store. A text that stands for a missing id is none: purchases of strangers would be reports of one payment,
 * and a refund of one would take back the commission of another.
 */
export const transactionId = read.id.refine(
  (text) => !isPlaceholder(text),
  'an id: "null", "0" and the like stand for a missing one',
);

/** One purchase in one store. */
export interface StoreTransaction {
  readonly store: string;
  readonly ref: string;
}

/**
 * Returns the key of the subscription of a store that a purchase belongs to: the transaction that began it. All providers name
 * it alike. Null without one, and with a store whose name is no id.
 */
export function subscriptionKey(store: string | null, originalTransactionId: string | null): string | null {
  if (store === null || originalTransactionId === null || isPlaceholder(originalTransactionId)) return null;
  return read.id.safeParse(`${store.toLowerCase()}:${originalTransactionId}`).data ?? null;
}

/** A decimal price. Negative where money is refunded. */
export const price = z.number().nullish();

/** The currency of `local`. A code that cannot be read is null, which leaves the price in USD. */
export const priceCurrency = read.currencyCode.nullish().catch(null);

/** A store's name in lower case. All providers use the same name for a store then, so that a purchase earns once. */
export const storeName = read.id.transform((name) => name.toLowerCase());

/**
 * Returns whether the price is negative, which means a refund under any event name. The local price decides where the USD
 * price is zero or unknown.
 */
export function isNegative({ usd, local }: Pick<StorePrice, 'usd' | 'local'>): boolean {
  return (usd ?? 0) < 0 || ((usd ?? 0) === 0 && (local ?? 0) < 0);
}

/** Returns whether the price is positive. A USD price of zero decides, whatever the local price is. */
export function isPositive({ usd, local, currency }: StorePrice): boolean {
  return usd == null ? currency != null && (local ?? 0) > 0 : usd > 0;
}

/**
 * Returns the amount without its sign, in the currency of the purchase where that is stated, else in USD. `usd` is always
 * in USD, whatever `currency` is. Null where no amount above zero is stated.
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
  // An amount above zero is in USD here.
  const cents = usdCents ?? (localMinor > 0 ? localMinor : null);
  return {
    ok: true,
    value: cents === null ? null : { currency: 'USD', amountMinor: cents, usdCents: cents },
  };
}

/**
 * Returns what a customer paid. A price of zero, or of less than half a cent, is no payment. Neither is an unknown price,
 * or a negative one where a payment is expected, but these are marked as unknown. A price that is known only in the currency
 * of the purchase has no USD value: the evaluation converts it. `transaction` is read only where there is money.
 */
export function storePayment(
  stated: StorePrice,
  transaction: Read<StoreTransaction>,
): Read<Pick<NormalizedEvent, 'payment' | 'priceUnknown'>> {
  if (!isPositive(stated)) {
    return { ok: true, value: { payment: null, priceUnknown: stated.usd == null || stated.usd < 0 } };
  }
  const amount = storeAmount(stated);
  if (!amount.ok) return amount;
  // A USD price of less than half a cent is no payment, whatever its local price is.
  if (amount.value === null || (stated.usd != null && amount.value.usdCents === null)) {
    return { ok: true, value: { payment: null, priceUnknown: false } };
  }
  if (!transaction.ok) return transaction;
  return { ok: true, value: { payment: { ...transaction.value, ...amount.value }, priceUnknown: false } };
}

/**
 * Returns what was refunded to a customer. Store refunds have no id, so the id of the event that reports the refund is
 * the key. A refund without an amount takes nothing back: it may be partial or full, and a guess would become a money
 * row. It is marked as of unknown price, so that the founder can check it.
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
