import * as z from 'zod';
import type { EventKind, NormalizedEvent } from '../../domain/events.ts';
import {
  done,
  environmentNamed,
  failed,
  ignored,
  normalizedEvent,
  usersAmong,
} from '../shared/normalized-event.ts';
import type { ParseResult } from '../provider.ts';
import * as read from '../shared/read-body.ts';
import * as money from '../shared/store-money.ts';
import type { StorePrice, StoreTransaction } from '../shared/store-money.ts';

/** Ids that Superwall's SDK made up for somebody the app had not named. */
const ANONYMOUS = '$SuperwallAlias:';

/** But for id and name, which tell the format, anything may be missing. */
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

/** Other names with a meaning of their own here. Any that is in neither is kept and marked as ignored. */
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
    environment: environmentNamed(data.environment),
    occurredAt,
    productId: data.productId,
    ...usersAmong([data.originalAppUserId, data.userAttributes.app_user_id], ANONYMOUS),
  });
}

function paidKind(data: Data, price: StorePrice): EventKind {
  if (data.name === 'renewal') return data.isTrialConversion ? 'trial_converted' : 'renewal';
  const isFreeTrial = data.periodType?.toUpperCase() === 'TRIAL' && (price.usd ?? 0) === 0;
  return data.name === 'initial_purchase' && isFreeTrial ? 'trial_started' : 'purchase';
}

function readPaid(data: Data, toldAt: number, raw: unknown, price: StorePrice): ParseResult {
  const kind = paidKind(data, price);
  // The organizer of a family paid; its members' events tell of the same access once more.
  if (kind === 'trial_started' || data.isFamilyShare) return done(eventOf(data, toldAt, kind));
  const paid = money.storePayment(price, read.readAs(transactionSchema, raw, 'data'));
  if (!paid.ok) return failed(paid.reason);
  const occurredAt = paid.value.payment === null ? null : data.purchasedAt;
  return done({ ...eventOf(data, occurredAt ?? toldAt, kind), ...paid.value });
}

function readRefund(data: Data, toldAt: number, raw: unknown, price: StorePrice): ParseResult {
  const refund = eventOf(data, toldAt, 'refund');
  if (data.isFamilyShare) return done(refund);
  const refunded = money.storeRefund(price, read.readAs(transactionSchema, raw, 'data'), data.id);
  return refunded.ok ? done({ ...refund, ...refunded.value }) : failed(refunded.reason);
}

/** The sign of the price comes before the name: no name stands for refunds. */
function readData(data: Data, toldAt: number, raw: unknown): ParseResult {
  const price = read.readAs(priceSchema, raw, 'data');
  if (price.ok && money.isBelowZero(price.value)) return readRefund(data, toldAt, raw, price.value);
  if (PAID_NAMES.has(data.name)) {
    return price.ok ? readPaid(data, toldAt, raw, price.value) : failed(price.reason);
  }
  const kind = KINDS.get(data.name);
  if (kind === undefined) {
    const reason = `events named ${read.typeName(data.name)} carry nothing that counts here`;
    return ignored(reason, eventOf(data, toldAt, 'other'));
  }
  // A cancellation may be a refund: only its price tells.
  return price.ok || kind === 'test' ? done(eventOf(data, toldAt, kind)) : failed(price.reason);
}

export function parse(bytes: Buffer): ParseResult {
  const json = read.readJsonObject(bytes);
  if (!json.ok) return failed(json.reason);
  const raw = json.value['data'];
  const data = read.readAs(dataSchema, raw);
  if (!data.ok) {
    return failed(
      "the body is not in Superwall's legacy format (it has no data.id and data.name): webhooks made in the dashboard use another one, so make one through Superwall's API, where format superwall is the default",
    );
  }
  const toldAt = data.value.ts ?? read.optionalEpochMs.parse(json.value['timestamp']);
  if (toldAt === null) return failed('data.ts and timestamp are missing or not a time in milliseconds');
  return readData(data.value, toldAt, raw);
}
