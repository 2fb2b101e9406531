import * as z from 'zod';
import type {
  AdjustmentFact,
  Environment,
  EventKind,
  NormalizedEvent,
  OriginalAmount,
  PaymentFact,
} from '../domain/events.ts';
import { decimalToMinor, minorDecimals } from '../domain/money.ts';
import type { ParseResult, Provider } from './provider.ts';
import * as read from './read-body.ts';
import type { Read } from './read-body.ts';
import { secureCompare } from './secure-compare.ts';

/** Ids that RevenueCat's SDK made up for somebody the app had not named. */
const ANONYMOUS = '$RCAnonymousID:';

/** What every event has. New types and values appear without notice, so only a broken form fails. */
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

/** What an event that may speak of money has besides. A price of null is unknown, which is not zero. */
const amountsSchema = z.object({
  price: z.number().nullish(),
  price_in_purchased_currency: z.number().nullish(),
  /** Only says what the amount was in; a code that cannot be read leaves the USD price. */
  currency: read.currencyCode.nullish().catch(null),
});
type Amounts = z.infer<typeof amountsSchema>;

const paidSchema = z.object({
  transaction_id: read.id,
  store: read.id,
  purchased_at_ms: read.epochMs.nullish(),
});

const refundedSchema = paidSchema.omit({ purchased_at_ms: true });

/** Types with a meaning of their own here. Any other type is kept and marked as ignored. */
const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['INITIAL_PURCHASE', 'purchase'],
  ['NON_RENEWING_PURCHASE', 'purchase'],
  ['RENEWAL', 'renewal'],
  ['CANCELLATION', 'cancellation'],
  ['REFUND', 'refund'],
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

/** Types whose meaning hangs on the price: if it cannot be read, neither can the event. */
const MONEY_TYPES: ReadonlySet<string> = new Set([
  ...PAID_TYPES,
  'CANCELLATION',
  'REFUND',
  'REFUND_REVERSED',
]);

function environmentOf(event: Base): Environment | null {
  if (event.store?.toUpperCase() === 'TEST_STORE') return 'sandbox';
  if (event.environment === null) return null;
  // A named environment that is not production must not earn.
  return event.environment.toUpperCase() === 'PRODUCTION' ? 'production' : 'sandbox';
}

function isNamed(userId: string | null): userId is string {
  return userId !== null && !userId.startsWith(ANONYMOUS);
}

function eventOf(event: Base, kind: EventKind): NormalizedEvent {
  const candidates = read.distinct([event.app_user_id, event.original_app_user_id, ...event.aliases]);
  const userIds = candidates.filter((candidate) => isNamed(candidate));
  return {
    sourceEventId: event.id,
    kind,
    environment: environmentOf(event),
    occurredAt: event.event_timestamp_ms,
    productId: event.product_id,
    userIds,
    onlyAnonymousUserIds: candidates.length > 0 && userIds.length === 0,
    userKeys: [],
    payment: null,
    adjustment: null,
    paymentAliases: [],
    userLinks: [],
    transfer: null,
    priceUnknown: false,
  };
}

/** Granted by the founder or shared by a family member: nobody paid for this access. */
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
 * Money going back has no type of its own. The sign of the price also shows refunds given from a dashboard or by Play
 * Store, which state other reasons than CUSTOMER_SUPPORT.
 */
function isRefund(event: Base, amounts: Amounts): boolean {
  if (event.type === 'REFUND_REVERSED') return false;
  if (event.type === 'REFUND') return true;
  if (event.type === 'CANCELLATION' && event.cancel_reason?.toUpperCase() === 'CUSTOMER_SUPPORT') return true;
  return (amounts.price ?? amounts.price_in_purchased_currency ?? 0) < 0;
}

/**
 * The amount without its sign, in the currency of the purchase where that is stated, else in USD. `price` is in USD
 * whatever `currency` says. Null when no amount above zero is stated.
 */
function amountOf(amounts: Amounts): Read<OriginalAmount | null> {
  const { price, price_in_purchased_currency: localPrice, currency } = amounts;
  const usd = price == null ? 0 : decimalToMinor(Math.abs(price), 2);
  const local =
    localPrice == null || currency == null
      ? 0
      : decimalToMinor(Math.abs(localPrice), minorDecimals(currency));
  if (usd === null) return { ok: false, reason: 'event.price is too large to be an amount of money' };
  if (local === null) {
    return { ok: false, reason: 'event.price_in_purchased_currency is too large to be an amount of money' };
  }
  const usdCents = usd > 0 ? usd : null;
  if (currency != null && currency !== 'USD' && local > 0) {
    return { ok: true, value: { currency, amountMinor: local, usdCents } };
  }
  const cents = usdCents ?? (currency === 'USD' && local > 0 ? local : null);
  return {
    ok: true,
    value: cents === null ? null : { currency: 'USD', amountMinor: cents, usdCents: cents },
  };
}

function failed(reason: string): ParseResult {
  return { outcome: 'failed', reason };
}

function done(event: NormalizedEvent): ParseResult {
  return { outcome: 'event', event };
}

function readPaid(event: Base, raw: unknown, amounts: Amounts): ParseResult {
  const free = isGift(event) || amounts.price === 0 || (isTrial(event) && amounts.price == null);
  const kind = paidKind(event, free);
  if (free) return done(eventOf(event, kind));
  if (amounts.price == null) return done({ ...eventOf(event, kind), priceUnknown: true });
  const amount = amountOf(amounts);
  if (!amount.ok) return failed(amount.reason);
  // Less than half a cent.
  if (amount.value?.usdCents == null) return done(eventOf(event, kind));
  const paid = read.readAs(paidSchema, raw, 'event');
  if (!paid.ok) return failed(paid.reason);
  const payment: PaymentFact = {
    store: paid.value.store.toLowerCase(),
    ref: paid.value.transaction_id,
    ...amount.value,
  };
  return done({
    ...eventOf(event, kind),
    occurredAt: paid.value.purchased_at_ms ?? event.event_timestamp_ms,
    payment,
  });
}

function paidKind(event: Base, free: boolean): EventKind {
  if (event.type === 'RENEWAL') return event.is_trial_conversion ? 'trial_converted' : 'renewal';
  return event.type === 'INITIAL_PURCHASE' && isTrial(event) && free ? 'trial_started' : 'purchase';
}

/**
 * A refund without an amount (CUSTOMER_SUPPORT with a price of zero or null) takes nothing back by itself: it may be
 * a part or the whole, and a guess would be a money row. It is marked as of unknown price, so that somebody looks.
 */
function readRefund(event: Base, raw: unknown, amounts: Amounts): ParseResult {
  const refund = eventOf(event, 'refund');
  if (isGift(event)) return done(refund);
  const amount = amountOf(amounts);
  if (!amount.ok) return failed(amount.reason);
  if (amount.value === null) return done({ ...refund, priceUnknown: !isTrial(event) });
  const refunded = read.readAs(refundedSchema, raw, 'event');
  if (!refunded.ok) return failed(refunded.reason);
  const adjustment: AdjustmentFact = {
    kind: 'refund',
    store: refunded.value.store.toLowerCase(),
    // Refunds have no id of their own here.
    ref: event.id,
    paymentRef: refunded.value.transaction_id,
    state: 'applied',
    rank: 1,
    ...amount.value,
  };
  return done({ ...refund, adjustment });
}

/**
 * A reversal names only the transaction and undoes whatever refunds it had, so it counts without an amount as well
 * (which then reads as zero).
 */
function readRefundReversal(event: Base, raw: unknown, amounts: Amounts): ParseResult {
  const reversal = eventOf(event, 'refund_reversed');
  if (isGift(event)) return done(reversal);
  const amount = amountOf(amounts);
  if (!amount.ok) return failed(amount.reason);
  const reversed = read.readAs(refundedSchema, raw, 'event');
  if (!reversed.ok) return failed(reversed.reason);
  const adjustment: AdjustmentFact = {
    kind: 'refund',
    store: reversed.value.store.toLowerCase(),
    ref: event.id,
    paymentRef: reversed.value.transaction_id,
    state: 'reversed',
    rank: 1,
    reversesAll: true,
    ...(amount.value ?? { currency: amounts.currency ?? 'USD', amountMinor: 0, usdCents: 0 }),
  };
  return done({ ...reversal, adjustment });
}

function readTransfer(event: Base): ParseResult {
  const from = read.distinct(event.transferred_from).filter((userId) => isNamed(userId));
  const to = read.distinct(event.transferred_to).filter((userId) => isNamed(userId));
  return done({ ...eventOf(event, 'transfer'), transfer: { from, to } });
}

function readMoney(event: Base, raw: unknown, kind: EventKind): ParseResult {
  const amounts = read.readAs(amountsSchema, raw, 'event');
  if (!amounts.ok) {
    return MONEY_TYPES.has(event.type) ? failed(amounts.reason) : done(eventOf(event, kind));
  }
  if (isRefund(event, amounts.value)) return readRefund(event, raw, amounts.value);
  if (PAID_TYPES.has(event.type)) return readPaid(event, raw, amounts.value);
  if (kind === 'refund_reversed') return readRefundReversal(event, raw, amounts.value);
  return done(eventOf(event, kind));
}

function parse(body: Buffer): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const raw = json.value['event'];
  const type = read.readAs(z.object({ type: read.id }), raw, 'event');
  if (!type.ok) return failed(type.reason);
  const kind = KINDS.get(type.value.type);
  const base = read.readAs(baseSchema, raw, 'event');
  const ignored = `events of type ${read.typeName(type.value.type)} carry nothing that counts here`;
  if (!base.ok) {
    return kind === undefined ? { outcome: 'ignored', reason: ignored, event: null } : failed(base.reason);
  }
  const event = base.value;
  if (kind === 'transfer') return readTransfer(event);
  if (kind === 'test') return done(eventOf(event, kind));
  const result = readMoney(event, raw, kind ?? 'other');
  // A type nobody has heard of yet still counts when it shows money going back.
  if (kind !== undefined || result.outcome !== 'event' || result.event.kind === 'refund') return result;
  return { outcome: 'ignored', reason: ignored, event: result.event };
}

/** RevenueCat: a static `Authorization` value, USD prices as decimal numbers, one event per body. */
export const revenuecat: Provider = {
  name: 'revenuecat',
  scheme: 'static_token',
  proofHeaders: ['authorization'],
  setupHint:
    'In RevenueCat open Integrations, Webhooks, add a webhook with this URL and put the secret, exactly as shown, into the Authorization header value.',
  verify(request, secret) {
    const header = request.headers['authorization'];
    return typeof header === 'string' && secret.trim() !== '' && secureCompare(header, secret);
  },
  parse,
};
