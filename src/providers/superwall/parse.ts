import * as z from 'zod';
import type { EventKind, NormalizedEvent } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import {
  appUserIds,
  done,
  failed,
  ignored,
  normalizedEvent,
  readEnvironment,
} from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import * as money from '../shared/store-money.ts';
import type { StorePrice, StoreTransaction } from '../shared/store-money.ts';

/** The prefix of ids that Superwall's SDK generates before the app names the user. */
const ANONYMOUS_PREFIX = '$SuperwallAlias:';

/** The fields of an event. Only id and name, which identify the format, are required. */
const dataSchema = z.object({
  id: read.id,
  name: read.id,
  ts: read.optionalEpochMs,
  purchasedAt: read.optionalEpochMs,
  environment: read.optionalText,
  periodType: read.optionalText,
  isTrialConversion: read.flag,
  isFamilyShare: read.flag,
  productId: read.optionalId,
  originalAppUserId: read.optionalId,
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
  .object({ transactionId: read.id, store: money.storeName })
  .transform(({ transactionId: ref, store }): StoreTransaction => ({ store, ref }));

const PAID_NAMES: ReadonlySet<string> = new Set(['initial_purchase', 'non_renewing_purchase', 'renewal']);

/** The other known names. An event with any other name is stored as ignored. */
const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['cancellation', 'cancellation'],
  ['expiration', 'expiration'],
  ['product_change', 'product_change'],
  ['test', 'test'],
  ['uncancellation', 'other'],
  ['billing_issue', 'other'],
  ['subscription_paused', 'other'],
]);

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
  const isFreeTrial = data.periodType?.toUpperCase() === 'TRIAL' && (price.usd ?? 0) === 0;
  return data.name === 'initial_purchase' && isFreeTrial ? 'trial_started' : 'purchase';
}

function readPaid(data: Data, eventAt: number, raw: unknown, price: StorePrice): ParseResult {
  const kind = paidKind(data, price);
  // The organizer of the family paid; the members' events report the same access again.
  if (kind === 'trial_started' || data.isFamilyShare) return done(eventOf(data, eventAt, kind));
  const paid = money.storePayment(price, read.readAs(transactionSchema, raw, 'data'));
  if (!paid.ok) return failed(paid.reason);
  const occurredAt = paid.value.payment === null ? null : data.purchasedAt;
  return done({ ...eventOf(data, occurredAt ?? eventAt, kind), ...paid.value });
}

function readRefund(data: Data, eventAt: number, raw: unknown, price: StorePrice): ParseResult {
  const refund = eventOf(data, eventAt, 'refund');
  if (data.isFamilyShare) return done(refund);
  const refunded = money.storeRefund(price, read.readAs(transactionSchema, raw, 'data'), data.id);
  return refunded.ok ? done({ ...refund, ...refunded.value }) : failed(refunded.reason);
}

/** Checks the sign of the price before the name, since no name means a refund. */
function readData(data: Data, eventAt: number, raw: unknown): ParseResult {
  const price = read.readAs(priceSchema, raw, 'data');
  if (price.ok && money.isNegative(price.value)) return readRefund(data, eventAt, raw, price.value);
  if (PAID_NAMES.has(data.name)) {
    return price.ok ? readPaid(data, eventAt, raw, price.value) : failed(price.reason);
  }
  const kind = KINDS.get(data.name);
  if (kind === undefined) {
    const reason = `events named ${read.typeName(data.name)} do not affect commissions`;
    return ignored(reason, eventOf(data, eventAt, 'other'));
  }
  // A cancellation may be a refund, which only its price shows.
  return price.ok || kind === 'test' ? done(eventOf(data, eventAt, kind)) : failed(price.reason);
}

export function parse(bytes: Buffer): ParseResult {
  const json = read.readJsonObject(bytes);
  if (!json.ok) return failed(json.reason);
  const raw = json.value['data'];
  const data = read.readAs(dataSchema, raw);
  if (!data.ok) {
    return failed(
      "the body has no data.id and data.name, so it is not in Superwall's legacy format; webhooks created in the dashboard use another format, so create one with Superwall's API, where the format superwall is the default",
    );
  }
  const eventAt = data.value.ts ?? read.optionalEpochMs.parse(json.value['timestamp']);
  if (eventAt === null) return failed('data.ts and timestamp are missing or not a time in milliseconds');
  return readData(data.value, eventAt, raw);
}
