import * as z from 'zod';
import type { AdjustmentFact, Environment, EventKind, NormalizedEvent } from '../../domain/events.ts';
import { codesOf, codesOfSubscription, namespaceOfStore } from '../../domain/purchase-codes.ts';
import type { StatedCode } from '../../domain/purchase-codes.ts';
import type { ParseResult } from '../provider.ts';
import {
  appUserIds,
  done,
  failed,
  ignored,
  normalizedEvent,
  readEnvironment,
} from '../shared/normalized-event.ts';
import { estimatedComponent, shareOfPrice, withComponents } from '../shared/payment-components.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import * as money from '../shared/store-money.ts';
import type { StorePrice, StoreTransaction } from '../shared/store-money.ts';

/** The prefix of ids that RevenueCat's SDK generates before the app names the user. */
const ANONYMOUS_PREFIX = '$RCAnonymousID:';

/** The fields of every event. New types and values appear without notice, so only a malformed event fails. */
const baseSchema = z.object({
  type: read.id,
  id: read.id,
  event_timestamp_ms: read.epochMs,
  environment: read.optionalText,
  store: read.optionalText,
  period_type: read.optionalText,
  cancel_reason: read.optionalText,
  product_id: read.optionalId,
  app_user_id: read.optionalId,
  original_app_user_id: read.optionalId,
  aliases: read.ids,
  transferred_from: read.ids,
  transferred_to: read.ids,
  is_trial_conversion: read.flag,
  is_family_share: read.flag,
});
type Base = z.infer<typeof baseSchema>;

/** The additional fields of an event that may state money. */
const amountsSchema = z
  .object({
    price: money.price,
    price_in_purchased_currency: money.price,
    currency: money.priceCurrency,
  })
  .transform((stated): StorePrice => ({
    usd: stated.price,
    local: stated.price_in_purchased_currency,
    currency: stated.currency,
    fields: { usd: 'event.price', local: 'event.price_in_purchased_currency' },
  }));

const transactionSchema = z
  .object({ transaction_id: money.transactionId, store: money.storeName })
  .transform(({ transaction_id: ref, store }): StoreTransaction => ({ store, ref }));

/** RevenueCat's name of the store whose transaction ids are the same for all periods of a subscription. */
const STRIPE = 'stripe';

/** The fields that tell the periods of a subscription in Stripe apart. */
const periodSchema = z.object({
  renewal_number: z.custom<number>(
    (value) => Number.isSafeInteger(value) && Number(value) >= 0,
    'a whole number, which tells the payments of a Stripe subscription apart',
  ),
});

/** The expiration of a purchase that does not renew is null. A missing one shows nothing. */
const oneOffSchema = z.union([
  z.object({ type: z.literal('NON_RENEWING_PURCHASE'), renewal_number: z.null().optional() }),
  z.object({ expiration_at_ms: z.null(), renewal_number: z.null().optional() }),
]);

/** RevenueCat estimates both. `commission_percentage` is the share of the store. Reads any object, as the two schemas below do. */
const componentsSchema = z
  .object({ tax_percentage: shareOfPrice, commission_percentage: shareOfPrice })
  .transform((shares) => ({
    tax: estimatedComponent(shares.tax_percentage),
    storeFee: estimatedComponent(shares.commission_percentage),
  }));

const attributeText = read.part({ value: read.optionalText });

/** Attributes of the subscriber, which the app or a measurement tool sets, and the offer code of the store. */
const codesSchema = z
  .object({
    store: read.optionalText,
    subscriber_attributes: read.part({ tributary_code: attributeText, $campaign: attributeText }),
    offer_code: read.optionalText,
  })
  .transform(({ store, subscriber_attributes: attributes, offer_code: offerCode }): readonly StatedCode[] => [
    { namespace: namespaceOfStore(store?.toLowerCase() ?? null), value: offerCode },
    { namespace: 'attribute', value: attributes.tributary_code.value },
    { namespace: 'campaign', value: attributes.$campaign.value },
  ]);

/** The transaction that began the subscription, which all its payments name, and when the customer bought. */
const subscriptionSchema = z
  .object({
    store: read.optionalText,
    original_transaction_id: read.optionalId,
    purchased_at_ms: read.optionalEpochMs,
  })
  .transform(({ store, original_transaction_id: id, purchased_at_ms: boughtAt }) => ({
    key: money.subscriptionKey(store, id),
    boughtAt,
  }));

const purchaseTimeSchema = z.object({ purchased_at_ms: read.epochMs.nullish() });

/** The known types besides those of payments and refunds. */
const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['CANCELLATION', 'cancellation'],
  ['REFUND_REVERSED', 'refund_reversed'],
  ['EXPIRATION', 'expiration'],
  // An immediate change also sends a RENEWAL, which carries the money.
  ['PRODUCT_CHANGE', 'product_change'],
  ['TRANSFER', 'transfer'],
  ['TEST', 'test'],
  ['UNCANCELLATION', 'other'],
  ['BILLING_ISSUE', 'other'],
]);

const PAID_TYPES: ReadonlySet<string> = new Set(['INITIAL_PURCHASE', 'NON_RENEWING_PURCHASE', 'RENEWAL']);

/** Types whose meaning depends on the price: if the price cannot be read, the event fails. */
const MONEY_TYPES: ReadonlySet<string> = new Set([
  ...PAID_TYPES,
  'CANCELLATION',
  'REFUND',
  'REFUND_REVERSED',
]);

/** Returns whether the type is known. An event of any other type is stored as ignored. */
function isKnown(type: string): boolean {
  return MONEY_TYPES.has(type) || KINDS.has(type);
}

function environmentOf(event: Base): Environment | null {
  return event.store?.toUpperCase() === 'TEST_STORE' ? 'sandbox' : readEnvironment(event.environment);
}

function eventOf(event: Base, kind: EventKind): NormalizedEvent {
  return normalizedEvent({
    sourceEventId: event.id,
    kind,
    environment: environmentOf(event),
    occurredAt: event.event_timestamp_ms,
    productId: event.product_id,
    ...appUserIds([event.app_user_id, event.original_app_user_id, ...event.aliases], ANONYMOUS_PREFIX),
  });
}

/** Returns whether the access was granted by the founder or shared by a family member, so that no one paid for it. */
function isGift(event: Base): boolean {
  return (
    event.is_family_share ||
    event.period_type?.toUpperCase() === 'PROMOTIONAL' ||
    event.store?.toUpperCase() === 'PROMOTIONAL'
  );
}

function isTrial(event: Base): boolean {
  return event.period_type?.toUpperCase() === 'TRIAL';
}

/**
 * Returns whether the event is a refund. Most refunds have no type of their own. A negative price also shows those that
 * were made in a dashboard or by Play Store, whose reason is not CUSTOMER_SUPPORT.
 */
function isRefund(event: Base, price: StorePrice): boolean {
  if (event.type === 'REFUND_REVERSED') return false;
  if (event.type === 'REFUND') return true;
  if (event.type === 'CANCELLATION' && event.cancel_reason?.toUpperCase() === 'CUSTOMER_SUPPORT') return true;
  return money.isNegative(price);
}

/**
 * Returns the purchase that the event names. All periods of a Stripe subscription have one transaction id, so there the
 * renewal number is part of the reference. Without it the event fails: it would look like the first payment.
 */
function transactionOf(raw: unknown): Read<StoreTransaction> {
  const transaction = read.readAs(transactionSchema, raw, 'event');
  if (!transaction.ok || transaction.value.store !== STRIPE) return transaction;
  if (oneOffSchema.safeParse(raw).success) return transaction;
  const period = read.readAs(periodSchema, raw, 'event');
  if (!period.ok) return period;
  const { store, ref } = transaction.value;
  const withPeriod = read.optionalId.parse(`${ref}:${period.value.renewal_number}`);
  return withPeriod === null
    ? { ok: false, reason: 'event.transaction_id is too long to be an id' }
    : { ok: true, value: { store, ref: withPeriod } };
}

function readPaid(event: Base, raw: unknown, price: StorePrice): ParseResult {
  const free = isGift(event) || price.usd === 0 || (isTrial(event) && price.usd == null);
  const { key, boughtAt } = subscriptionSchema.parse(raw);
  const codes = codesSchema.parse(raw);
  const purchase = eventOf(event, paidKind(event, free));
  if (isGift(event)) return done(purchase);
  const paidEvent = { ...purchase, userKeys: read.distinct([key]) };
  const usedAt = boughtAt ?? event.event_timestamp_ms;
  const subscriptionCodes = codesOfSubscription(key, usedAt, codes);
  if (free) return done({ ...paidEvent, subscriptionCodes });
  const paid = money.storePayment(price, transactionOf(raw));
  if (!paid.ok) return failed(paid.reason);
  // Also of an unknown price: the payments that follow come without the code.
  if (paid.value.payment === null) return done({ ...paidEvent, ...paid.value, subscriptionCodes });
  const time = read.readAs(purchaseTimeSchema, raw, 'event');
  if (!time.ok) return failed(time.reason);
  const occurredAt = time.value.purchased_at_ms ?? event.event_timestamp_ms;
  const payment = withComponents(paid.value.payment, componentsSchema.parse(raw));
  return done({
    ...paidEvent,
    ...paid.value,
    payment,
    codes: codesOf(payment, codes),
    occurredAt,
  });
}

function paidKind(event: Base, free: boolean): EventKind {
  if (event.type === 'RENEWAL') return event.is_trial_conversion ? 'trial_converted' : 'renewal';
  return event.type === 'INITIAL_PURCHASE' && isTrial(event) && free ? 'trial_started' : 'purchase';
}

function readRefund(event: Base, raw: unknown, price: StorePrice): ParseResult {
  const refund = eventOf(event, 'refund');
  if (isGift(event)) return done(refund);
  const refunded = money.storeRefund(price, transactionOf(raw), event.id);
  if (!refunded.ok) return failed(refunded.reason);
  const priceUnknown = refunded.value.priceUnknown && !isTrial(event);
  return done({ ...refund, ...refunded.value, priceUnknown });
}

/**
 * Reads the reversal of a refund. It names only the transaction and undoes all of its refunds, so it counts even without
 * an amount, which is zero then.
 */
function readRefundReversal(event: Base, raw: unknown, price: StorePrice): ParseResult {
  const reversal = eventOf(event, 'refund_reversed');
  if (isGift(event)) return done(reversal);
  const amount = money.storeAmount(price);
  if (!amount.ok) return failed(amount.reason);
  const reversed = transactionOf(raw);
  if (!reversed.ok) return failed(reversed.reason);
  const adjustment: AdjustmentFact = {
    kind: 'refund',
    store: reversed.value.store,
    ref: event.id,
    paymentRef: reversed.value.ref,
    state: 'reversed',
    rank: 1,
    reversesAll: true,
    ...(amount.value ?? { currency: price.currency ?? 'USD', amountMinor: 0, usdCents: 0 }),
  };
  return done({ ...reversal, adjustment });
}

function readTransfer(event: Base): ParseResult {
  // The ids of a transfer belong to two customers, so its anonymous ids tie nothing together.
  const { userIds: from } = appUserIds(event.transferred_from, ANONYMOUS_PREFIX);
  const { userIds: to } = appUserIds(event.transferred_to, ANONYMOUS_PREFIX);
  return done({ ...eventOf(event, 'transfer'), transfer: { from, to } });
}

function readMoney(event: Base, raw: unknown, kind: EventKind): ParseResult {
  const price = read.readAs(amountsSchema, raw, 'event');
  if (!price.ok) {
    return MONEY_TYPES.has(event.type) ? failed(price.reason) : done(eventOf(event, kind));
  }
  if (isRefund(event, price.value)) return readRefund(event, raw, price.value);
  if (PAID_TYPES.has(event.type)) return readPaid(event, raw, price.value);
  if (kind === 'refund_reversed') return readRefundReversal(event, raw, price.value);
  return done(eventOf(event, kind));
}

export function parse(body: Buffer): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const raw = json.value['event'];
  const type = read.readAs(z.object({ type: read.id }), raw, 'event');
  if (!type.ok) return failed(type.reason);
  const kind = KINDS.get(type.value.type);
  const base = read.readAs(baseSchema, raw, 'event');
  const unknown = `events of type ${read.typeName(type.value.type)} do not affect commissions`;
  if (!base.ok) return isKnown(type.value.type) ? failed(base.reason) : ignored(unknown);
  const event = base.value;
  if (kind === 'transfer') return readTransfer(event);
  if (kind === 'test') return done(eventOf(event, kind));
  const result = readMoney(event, raw, kind ?? 'other');
  // An unknown type still counts when its price shows a refund.
  if (isKnown(event.type) || result.outcome !== 'event' || result.event.kind === 'refund') return result;
  return ignored(unknown, result.event);
}
