import * as z from 'zod';
import type { EventKind, NormalizedEvent, PaymentFact } from '../../domain/events.ts';
import { codesOf, codesOfSubscription, namespaceOfStore } from '../../domain/purchase-codes.ts';
import type { StatedCode } from '../../domain/purchase-codes.ts';
import type { ParseResult } from '../provider.ts';
import { done, failed, ignored, normalizedEvent, readEnvironment } from '../shared/normalized-event.ts';
import { decimalAmount, statedComponent, toMinor, withComponents } from '../shared/payment-components.ts';
import * as read from '../shared/read-body.ts';
import type { Read } from '../shared/read-body.ts';
import * as money from '../shared/store-money.ts';
import type { StorePrice, StoreTransaction } from '../shared/store-money.ts';
import { isSetupCheck } from './setup-check.ts';

/** The fields of an event. Adapty may omit empty fields, so only the type is required. */
const bodySchema = z.object({
  event_type: read.id,
  event_datetime: read.optionalTimeText,
  customer_user_id: read.optionalId,
  profile_id: read.optionalId,
  event_properties: read.part({
    profile_event_id: read.optionalId,
    transaction_id: read.optionalId,
    original_transaction_id: read.optionalId,
    store: read.optionalText,
    event_datetime: read.optionalTimeText,
    purchase_date: read.optionalTimeText,
    environment: read.optionalText,
    vendor_product_id: read.optionalId,
    cancellation_reason: read.optionalText,
    promotional_offer_id: read.optionalText,
  }),
});
type Body = z.infer<typeof bodySchema>;

const priceSchema = z
  .object({ price_usd: money.price, price_local: money.price, currency: money.priceCurrency })
  .transform((stated): StorePrice => ({
    usd: stated.price_usd,
    local: stated.price_local,
    currency: stated.currency,
    fields: { usd: 'event_properties.price_usd', local: 'event_properties.price_local' },
  }));

/** The tax, and what is left after the store's fee, in dollars and in the currency of the purchase. Reads any object. */
const componentsSchema = z.object({
  proceeds_usd: decimalAmount,
  proceeds_local: decimalAmount,
  tax_amount_usd: decimalAmount,
  tax_amount_local: decimalAmount,
});

/** Adds the tax and the store's fee to a payment. The proceeds still contain the tax, so the fee is the difference to the price. */
function addComponents(
  payment: PaymentFact,
  price: StorePrice,
  fields: z.infer<typeof componentsSchema>,
): PaymentFact {
  const { currency, amountMinor } = payment;
  const isLocal = currency !== 'USD' || price.usd == null;
  const tax = toMinor(isLocal ? fields.tax_amount_local : fields.tax_amount_usd, currency);
  const proceeds = toMinor(isLocal ? fields.proceeds_local : fields.proceeds_usd, currency);
  const storeFee = proceeds === null ? null : amountMinor - proceeds;
  return withComponents(payment, { tax: statedComponent(tax), storeFee: statedComponent(storeFee) });
}

const transactionSchema = z
  .object({ transaction_id: money.transactionId, store: money.storeName })
  .transform(({ transaction_id: ref, store }): StoreTransaction => ({ store, ref }));

/** Event types by their default names. A founder may rename any of them in Adapty. */
const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['subscription_started', 'purchase'],
  // The older name of subscription_started.
  ['subscription_initial_purchase', 'purchase'],
  ['non_subscription_purchase', 'purchase'],
  ['subscription_renewed', 'renewal'],
  // Never money: an option in Adapty fills its price with that of the later subscription.
  ['trial_started', 'trial_started'],
  ['trial_converted', 'trial_converted'],
  ['subscription_refunded', 'refund'],
  ['non_subscription_purchase_refunded', 'refund'],
  ['subscription_renewal_cancelled', 'cancellation'],
  ['trial_renewal_cancelled', 'cancellation'],
  ['subscription_renewal_reactivated', 'other'],
  ['trial_renewal_reactivated', 'other'],
  ['subscription_expired', 'expiration'],
  ['trial_expired', 'expiration'],
]);

const PAID_TYPES: ReadonlySet<string> = new Set([
  'subscription_started',
  'subscription_initial_purchase',
  'non_subscription_purchase',
  'subscription_renewed',
  'trial_converted',
]);

/** Types that report a state or a failed charge. The prices in them are not payments. */
const STATE_TYPES: ReadonlySet<string> = new Set([
  'access_level_updated',
  'trial_active',
  'subscription_active',
  'subscription_paused',
  'subscription_deferred',
  'billing_issue_detected',
  'entered_grace_period',
]);

/** Products of access that was granted in Adapty. No one paid for it. */
const GRANTED_PRODUCTS: ReadonlySet<string> = new Set([
  'adapty_server_side_product',
  'adapty_dashboard_product',
  'adapty_promotion',
]);

/** Returns the event's id, or where Adapty omits it, one made from the transaction and the type. Null if there is no transaction either. */
function sourceEventIdOf({ event_type: type, event_properties: properties }: Body): string | null {
  const { profile_event_id: id, transaction_id: transaction } = properties;
  if (id !== null || !money.transactionId.safeParse(transaction).success) return id;
  return read.optionalId.parse(`${transaction}:${type}`);
}

function eventOf(body: Body, kind: EventKind): Read<NormalizedEvent> {
  const { event_properties: properties, customer_user_id: user, profile_id: profile } = body;
  const sourceEventId = sourceEventIdOf(body);
  if (sourceEventId === null) {
    return {
      ok: false,
      reason: 'event_properties has neither profile_event_id nor transaction_id, so the event has no id',
    };
  }
  const occurredAt = body.event_datetime ?? properties.event_datetime;
  if (occurredAt === null) {
    return { ok: false, reason: 'event_datetime is missing or not a time with its time zone' };
  }
  return {
    ok: true,
    value: normalizedEvent({
      sourceEventId,
      kind,
      environment: readEnvironment(properties.environment),
      occurredAt,
      productId: properties.vendor_product_id,
      // The profiles that share the access level have user ids too, but did not pay.
      userIds: user === null ? [] : [user],
      anonymousUserIds: profile === null ? [] : [profile],
    }),
  };
}

/** Returns the event of a purchase without its money. All payments of a subscription name the transaction that began it. */
function purchaseOf({ event_properties: stated }: Body, event: NormalizedEvent): NormalizedEvent {
  return { ...event, userKeys: read.distinct([keyOf(stated)]) };
}

/** Returns the codes of a subscription that began without a payment. */
function codesOfTrial({ event_properties: stated }: Body, { occurredAt }: NormalizedEvent) {
  const usedAt = stated.purchase_date ?? occurredAt;
  return codesOfSubscription(keyOf(stated), usedAt, codesIn(stated));
}

function keyOf({ store, original_transaction_id: id }: Body['event_properties']): string | null {
  return money.subscriptionKey(store, id);
}

function codesIn({ store, promotional_offer_id: offer }: Body['event_properties']): readonly StatedCode[] {
  return [{ namespace: namespaceOfStore(store?.toLowerCase() ?? null), value: offer }];
}

/** A payment counts from the time of the purchase, a refund from the time of its event. */
function readMoney(body: Body, raw: unknown, event: NormalizedEvent): ParseResult {
  const { purchase_date: purchasedAt, cancellation_reason: reason } = body.event_properties;
  const price = read.readAs(priceSchema, raw, 'event_properties');
  if (!price.ok) return failed(price.reason);
  const transaction = read.readAs(transactionSchema, raw, 'event_properties');
  if (event.kind !== 'refund') {
    const paid = money.storePayment(price.value, transaction);
    if (!paid.ok) return failed(paid.reason);
    const purchase = purchaseOf(body, event);
    // Also of an unknown price: the payments that follow come without the code.
    if (paid.value.payment === null)
      return done({ ...purchase, ...paid.value, subscriptionCodes: codesOfTrial(body, event) });
    const payment = addComponents(paid.value.payment, price.value, componentsSchema.parse(raw));
    return done({
      ...purchase,
      ...paid.value,
      payment,
      codes: codesOf(payment, codesIn(body.event_properties)),
      occurredAt: purchasedAt ?? event.occurredAt,
    });
  }
  // An upgrade in the App Store refunds only the unused part, but the event states the full price.
  if (reason === 'upgraded') return done({ ...event, priceUnknown: true });
  const refunded = money.storeRefund(price.value, transaction, event.sourceEventId);
  return refunded.ok ? done({ ...event, ...refunded.value }) : failed(refunded.reason);
}

export function parse(bytes: Buffer): ParseResult {
  const json = read.readJsonObject(bytes);
  if (!json.ok) return failed(json.reason);
  if (isSetupCheck(json.value)) return ignored('a test of the webhook setup contains no event');
  const body = read.readAs(bodySchema, json.value);
  if (!body.ok) return failed(body.reason);
  const { event_type: type, event_properties: properties } = body.value;
  const kind = KINDS.get(type);
  const event = eventOf(body.value, kind ?? 'other');
  if (kind === undefined) {
    const reason = STATE_TYPES.has(type)
      ? `events of type ${type} report a state; the payment arrives as a separate event`
      : `the event type ${read.typeName(type)} is unknown; if it was renamed in Adapty, restore its default name there`;
    return ignored(reason, event.ok ? event.value : null);
  }
  if (!event.ok) return failed(event.reason);
  const isGrant = GRANTED_PRODUCTS.has(properties.vendor_product_id ?? '');
  if (kind === 'trial_started' && !isGrant) {
    const trial = purchaseOf(body.value, event.value);
    return done({ ...trial, subscriptionCodes: codesOfTrial(body.value, event.value) });
  }
  if (isGrant || (kind !== 'refund' && !PAID_TYPES.has(type))) return done(event.value);
  return readMoney(body.value, json.value['event_properties'], event.value);
}
