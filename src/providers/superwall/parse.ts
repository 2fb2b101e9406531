import * as z from 'zod';
import type { EventKind, NormalizedEvent } from '../../domain/events.ts';
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
import * as money from '../shared/store-money.ts';
import type { StorePrice, StoreTransaction } from '../shared/store-money.ts';
import { findFacts } from './facts.ts';

/** The prefix of ids that Superwall's SDK generates before the app names the user. */
const ANONYMOUS_PREFIX = '$SuperwallAlias:';

/** The fields of an event. Only id and name, which identify the format, are required: facts that were found have them. */
const dataSchema = z.object({
  id: read.id,
  name: read.id,
  ts: read.optionalEpochMs,
  purchasedAt: read.optionalEpochMs,
  environment: read.optionalText,
  periodType: read.optionalText,
  isTrialConversion: read.flag,
  productId: read.optionalId,
  originalAppUserId: read.optionalId,
  originalTransactionId: read.optionalId,
  store: read.optionalText,
  isFamilyShare: read.flag,
  userAttributes: read.userMetadata,
});
type Data = z.infer<typeof dataSchema>;

const priceSchema = z
  .object({ price: money.price, priceInPurchasedCurrency: money.price, currencyCode: money.priceCurrency })
  .transform((stated): StorePrice => ({
    usd: stated.price,
    local: stated.priceInPurchasedCurrency,
    currency: stated.currencyCode,
    fields: { usd: 'data.price', local: 'data.priceInPurchasedCurrency' },
  }));

const transactionSchema = z
  .object({ transactionId: money.transactionId, store: money.storeName })
  .transform(({ transactionId: ref, store }): StoreTransaction => ({ store, ref }));

/** Shares of the price. `proceeds` is after both, so it says nothing about either. Reads any object, as the next schema does. */
const componentsSchema = z
  .object({ taxPercentage: shareOfPrice, commissionPercentage: shareOfPrice })
  .transform((shares) => ({
    tax: estimatedComponent(shares.taxPercentage),
    storeFee: estimatedComponent(shares.commissionPercentage),
  }));

const codesSchema = z
  .object({ store: read.optionalText, offerCode: read.optionalText })
  .transform(({ store, offerCode }): readonly StatedCode[] => [
    { namespace: namespaceOfStore(store?.toLowerCase() ?? null), value: offerCode },
  ]);

/** The names of events that are expected to state a price: without one, their price is unknown. */
const PAID_NAMES: ReadonlySet<string> = new Set(['initial_purchase', 'non_renewing_purchase', 'renewal']);

/** The other known names. An event with any other name and no price is stored as ignored. */
const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['cancellation', 'cancellation'],
  ['expiration', 'expiration'],
  ['product_change', 'product_change'],
  ['uncancellation', 'other'],
  ['billing_issue', 'other'],
  ['subscription_paused', 'other'],
]);

/** States what to do about a body of an unknown form. */
const NO_FACTS =
  "the body has no data.id and data.name with the facts of Superwall's legacy format. Of the format V2 (webhooks of the dashboard) this version reads only bodies with these facts in event, data.event or at the top. Create the webhook with Superwall's API, whose default is the legacy format. The delivery is kept: a version that reads it can reprocess it (tributary deliveries reprocess).";

function eventOf(data: Data, occurredAt: number, kind: EventKind): NormalizedEvent {
  return normalizedEvent({
    sourceEventId: data.id,
    kind,
    environment: readEnvironment(data.environment),
    occurredAt,
    productId: data.productId,
    ...appUserIds([data.originalAppUserId, data.userAttributes.app_user_id], ANONYMOUS_PREFIX),
  });
}

function paidKind(data: Data, price: StorePrice): EventKind {
  if (data.name === 'renewal') return data.isTrialConversion ? 'trial_converted' : 'renewal';
  if (data.name === 'product_change') return 'product_change';
  const isFreeTrial = data.periodType?.toUpperCase() === 'TRIAL' && (price.usd ?? 0) === 0;
  return data.name === 'initial_purchase' && isFreeTrial ? 'trial_started' : 'purchase';
}

function readPaid(data: Data, eventAt: number, raw: unknown, price: StorePrice): ParseResult {
  const kind = paidKind(data, price);
  // A family member's event, whose price is zero, may have the organizer's transaction and code. With a price it is the organizer's.
  const isOfMember = data.isFamilyShare && !money.isPositive(price);
  const key = isOfMember ? null : money.subscriptionKey(data.store, data.originalTransactionId);
  const codes = codesSchema.parse(raw);
  const event = { ...eventOf(data, eventAt, kind), userKeys: read.distinct([key]) };
  const subscriptionCodes = codesOfSubscription(key, data.purchasedAt ?? eventAt, codes);
  if (kind === 'trial_started') return done({ ...event, subscriptionCodes });
  const paid = money.storePayment(price, read.readAs(transactionSchema, raw, 'data'));
  if (!paid.ok) return failed(paid.reason);
  // Also of an unknown price: the payments that follow come without the code.
  if (paid.value.payment === null) return done({ ...event, ...paid.value, subscriptionCodes });
  const payment = withComponents(paid.value.payment, componentsSchema.parse(raw));
  return done({
    ...event,
    ...paid.value,
    occurredAt: data.purchasedAt ?? eventAt,
    payment,
    codes: codesOf(payment, codes),
  });
}

function readRefund(data: Data, eventAt: number, raw: unknown, price: StorePrice): ParseResult {
  const refund = eventOf(data, eventAt, 'refund');
  const refunded = money.storeRefund(price, read.readAs(transactionSchema, raw, 'data'), data.id);
  return refunded.ok ? done({ ...refund, ...refunded.value }) : failed(refunded.reason);
}

/**
 * Decides by the price, not by the name or by isFamilyShare: Superwall documents that the prices of all events add up to the
 * revenue after refunds. A family member's event has a price of zero; the organizer's has the price that was paid.
 */
function readData(data: Data, eventAt: number, raw: unknown): ParseResult {
  if (data.name === 'test') return done(eventOf(data, eventAt, 'test'));
  const price = read.readAs(priceSchema, raw, 'data');
  if (!price.ok) return failed(price.reason);
  if (money.isNegative(price.value)) return readRefund(data, eventAt, raw, price.value);
  if (PAID_NAMES.has(data.name) || money.isPositive(price.value)) {
    return readPaid(data, eventAt, raw, price.value);
  }
  const kind = KINDS.get(data.name);
  if (kind !== undefined) return done(eventOf(data, eventAt, kind));
  const reason = `events named ${read.typeName(data.name)} without a price do not affect commissions`;
  return ignored(reason, eventOf(data, eventAt, 'other'));
}

export function parse(bytes: Buffer): ParseResult {
  const json = read.readJsonObject(bytes);
  if (!json.ok) return failed(json.reason);
  const raw = findFacts(json.value);
  if (raw === null) return failed(NO_FACTS);
  const data = dataSchema.parse(raw);
  const eventAt = data.ts ?? read.optionalEpochMs.parse(json.value['timestamp']);
  if (eventAt === null) return failed('data.ts and timestamp are missing or not a time in milliseconds');
  return readData(data, eventAt, raw);
}
