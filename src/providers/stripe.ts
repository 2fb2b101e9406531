import * as z from 'zod';
import type {
  AdjustmentFact,
  Environment,
  EventKind,
  NormalizedEvent,
  OriginalAmount,
  PaymentAliasFact,
  PaymentFact,
} from '../domain/events.ts';
import * as normalized from './normalized.ts';
import { failed, normalizedEvent } from './normalized.ts';
import type { ParseResult, Provider } from './provider.ts';
import * as read from './read-body.ts';
import type { Read } from './read-body.ts';
import { timestampedHmacTime, verifyTimestampedHmac } from './timestamped-hmac.ts';
import type { TimestampedHmacScheme } from './timestamped-hmac.ts';

const STORE = 'stripe';

const SIGNATURE: TimestampedHmacScheme = {
  header: 'stripe-signature',
  separator: ',',
  timeKey: 't',
  signatureKey: 'v1',
  joint: '.',
  toleranceMs: 300_000,
  clockStepMs: 1000,
};

const envelopeSchema = z.object({
  id: read.id,
  type: read.id,
  created: read.epochSeconds,
  livemode: read.anything,
  data: z.object({ object: z.record(z.string(), z.unknown()), previous_attributes: read.anything }),
});
type Envelope = z.infer<typeof envelopeSchema>;

/** A reference to another object: its id, or the object itself where the sender expanded it. */
const ref = read.anything.transform((value) => {
  const target: unknown = typeof value === 'object' && value !== null && 'id' in value ? value.id : value;
  return read.optionalId.parse(target);
});

/** A list object. */
function list<T>(item: z.ZodType<T>) {
  return read.part({ data: read.items(item) });
}

const metadata = read.userMetadata;

const subscriptionDetails = read.part({ subscription: ref, metadata });

/** Where a product's id may stand: `pricing` since API version 2025-03-31, `price` and `plan` before. */
const pricedShape = {
  pricing: read.part({ price_details: read.part({ price: ref, product: ref }) }),
  price: read.part({ id: read.optionalId, product: ref }),
  plan: read.part({ id: read.optionalId, product: ref }),
};
type Priced = z.infer<z.ZodObject<typeof pricedShape>>;

/** Minor units as Stripe states them: whole and never negative. */
const amount = z.custom<number>(
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  'a whole amount of zero or more',
);

const invoiceSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount_paid: amount,
  paid_out_of_band: read.flag,
  billing_reason: read.optionalText,
  customer: ref,
  subscription: ref,
  charge: ref,
  payment_intent: ref,
  metadata,
  parent: read.part({ subscription_details: subscriptionDetails }),
  subscription_details: subscriptionDetails,
  status_transitions: read.part({ paid_at: read.optionalEpochSeconds }),
  lines: list(
    read.part({
      ...pricedShape,
      description: read.optionalText,
      metadata,
      subscription: ref,
      parent: read.part({ subscription_item_details: read.part({ subscription: ref }) }),
    }),
  ),
});
type Invoice = z.infer<typeof invoiceSchema>;

const sessionSchema = z.object({
  id: read.id,
  mode: read.optionalText,
  payment_status: read.optionalText,
  client_reference_id: read.optionalId,
  metadata,
  customer: ref,
  subscription: ref,
  invoice: ref,
  payment_intent: ref,
});
type Session = z.infer<typeof sessionSchema>;

const sessionAmountSchema = z.object({ currency: read.currencyCode, amount_total: amount });

const invoicePaymentSchema = z.object({
  invoice: ref.refine((value) => value !== null, 'an invoice id'),
  payment: read.part({ payment_intent: ref, charge: ref }),
});

const chargeSchema = z.object({
  id: read.id,
  invoice: ref,
  payment_intent: ref,
  metadata,
});

const paymentIntentSchema = z.object({
  id: read.id,
  invoice: ref,
  latest_charge: ref,
  metadata,
});

/** Refunds and disputes: money that names the payment it came from. */
const moneyBackSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount,
  status: read.optionalText,
  payment_intent: ref,
  charge: ref,
});
type MoneyBack = z.infer<typeof moneyBackSchema>;

const itemsShape = { items: list(read.part({ ...pricedShape, quantity: read.anything })) };

const subscriptionSchema = z.object({
  ...itemsShape,
  id: read.id,
  status: read.optionalText,
  customer: ref,
  metadata,
  cancel_at: read.anything,
  cancel_at_period_end: read.flag,
});
type Subscription = z.infer<typeof subscriptionSchema>;

type Details = Partial<Omit<NormalizedEvent, 'sourceEventId' | 'kind' | 'environment'>>;

function environmentOf(envelope: Envelope): Environment | null {
  if (envelope.livemode === true) return 'production';
  return envelope.livemode === false ? 'sandbox' : null;
}

function eventOf(envelope: Envelope, kind: EventKind, details: Details = {}): NormalizedEvent {
  return normalizedEvent({
    sourceEventId: envelope.id,
    kind,
    environment: environmentOf(envelope),
    occurredAt: envelope.created,
    ...details,
  });
}

function done(envelope: Envelope, kind: EventKind, details: Details = {}): ParseResult {
  return normalized.done(eventOf(envelope, kind, details));
}

function ignored(envelope: Envelope, reason: string, details: Details = {}): ParseResult {
  return normalized.ignored(reason, eventOf(envelope, 'other', details));
}

/** Stripe states no USD value: only an amount that is in USD already has one. */
function originalAmount(currency: string, amountMinor: number): OriginalAmount {
  return { currency, amountMinor, usdCents: currency === 'USD' ? amountMinor : null };
}

function aliases(
  paymentRef: string | null,
  ...names: readonly (string | null)[]
): readonly PaymentAliasFact[] {
  if (paymentRef === null) return [];
  return read
    .distinct(names)
    .filter((aliasRef) => aliasRef !== paymentRef)
    .map((aliasRef) => ({ store: STORE, aliasRef, paymentRef }));
}

function productOf(priced: readonly Priced[]): string | null {
  for (const { pricing, price, plan } of priced) {
    const product = pricing.price_details.product ?? price.product ?? plan.product;
    if (product !== null) return product;
  }
  return null;
}

function object<T>(envelope: Envelope, schema: z.ZodType<T>): Read<T> {
  return read.readAs(schema, envelope.data.object, 'data.object');
}

/** Whatever bills a subscription again is a renewal; that it ended a trial is not visible in the invoice. */
function invoiceKind(invoice: Invoice): EventKind {
  switch (invoice.billing_reason) {
    case 'subscription_cycle':
      return 'renewal';
    case 'subscription_update':
    case 'subscription_threshold':
      return 'product_change';
    default:
      return 'purchase';
  }
}

/**
 * The kind of an invoice without money. The first one of a subscription is a trial's only where a line says so in the
 * words Stripe uses; it may as well be a full discount or paid by credit.
 */
function freeInvoiceKind(invoice: Invoice): EventKind {
  const kind = invoiceKind(invoice);
  if (kind !== 'purchase') return kind;
  const trial = invoice.lines.data.some((line) => /^(free )?trial\b/i.test(line.description ?? ''));
  return invoice.billing_reason === 'subscription_create' && trial ? 'trial_started' : 'other';
}

function readInvoicePaid(envelope: Envelope): ParseResult {
  const parsed = object(envelope, invoiceSchema);
  if (!parsed.ok) return failed(parsed.reason);
  const invoice = parsed.value;
  const lines = invoice.lines.data;
  const [subscription = null] = read.distinct([
    invoice.parent.subscription_details.subscription,
    invoice.subscription,
    ...lines.flatMap((line) => [line.parent.subscription_item_details.subscription, line.subscription]),
  ]);
  // Money received elsewhere never passed through Stripe: nothing to convert, refund or dispute here.
  const paid = invoice.paid_out_of_band ? 0 : invoice.amount_paid;
  const payment: PaymentFact = { store: STORE, ref: invoice.id, ...originalAmount(invoice.currency, paid) };
  return done(envelope, paid > 0 ? invoiceKind(invoice) : freeInvoiceKind(invoice), {
    occurredAt: invoice.status_transitions.paid_at ?? envelope.created,
    productId: productOf(lines),
    userIds: read.distinct([
      invoice.parent.subscription_details.metadata.app_user_id,
      invoice.subscription_details.metadata.app_user_id,
      ...lines.map((line) => line.metadata.app_user_id),
      invoice.metadata.app_user_id,
    ]),
    userKeys: read.distinct([subscription, invoice.customer]),
    payment: paid > 0 ? payment : null,
    // Only bodies of API versions before 2025-03-31 name them; later ones send invoice_payment.paid.
    paymentAliases: aliases(invoice.id, invoice.payment_intent, invoice.charge),
  });
}

function readSession(envelope: Envelope): ParseResult {
  const session = object(envelope, sessionSchema);
  if (!session.ok) return failed(session.reason);
  switch (session.value.mode) {
    case 'subscription':
      return readSubscriptionSession(envelope, session.value);
    case 'payment':
      return readPaymentSession(envelope, session.value);
    default:
      return ignored(envelope, 'a checkout session of this mode takes no money');
  }
}

function sessionUserIds(session: Session): readonly string[] {
  return read.distinct([session.client_reference_id, session.metadata.app_user_id]);
}

/** The first invoice carries the money of a subscription; the session tells whose subscription it is. */
function readSubscriptionSession(envelope: Envelope, session: Session): ParseResult {
  const userIds = sessionUserIds(session);
  const [customerUserId] = userIds;
  const userKeys = read.distinct([session.subscription, session.customer]);
  return done(envelope, 'other', {
    userIds,
    userKeys,
    userLinks: customerUserId === undefined ? [] : userKeys.map((key) => ({ key, customerUserId })),
  });
}

function readPaymentSession(envelope: Envelope, session: Session): ParseResult {
  const details: Details = {
    userIds: sessionUserIds(session),
    userKeys: read.distinct([session.customer]),
    paymentAliases: aliases(session.invoice, session.payment_intent),
  };
  if (session.payment_status === 'no_payment_required') return done(envelope, 'other', details);
  if (session.payment_status !== 'paid') {
    return ignored(
      envelope,
      'the checkout session is not paid yet: its payment comes as an event of its own',
      details,
    );
  }
  const paid = object(envelope, sessionAmountSchema);
  if (!paid.ok) return failed(paid.reason);
  if (paid.value.amount_total === 0) return done(envelope, 'other', details);
  const payment: PaymentFact = {
    store: STORE,
    ref: session.invoice ?? session.payment_intent ?? session.id,
    ...originalAmount(paid.value.currency, paid.value.amount_total),
  };
  return done(envelope, 'purchase', { ...details, payment });
}

/** Since API version 2025-03-31 the only body that says which payment intent paid which invoice. */
function readInvoicePayment(envelope: Envelope): ParseResult {
  const paid = object(envelope, invoicePaymentSchema);
  if (!paid.ok) return failed(paid.reason);
  const { invoice, payment } = paid.value;
  return done(envelope, 'other', {
    paymentAliases: aliases(invoice, payment.payment_intent, payment.charge),
  });
}

/** The same money as an invoice or a checkout session. Its ids are kept: a refund or a dispute may name only them. */
function readCharge(envelope: Envelope, reason: string): ParseResult {
  const charge = object(envelope, chargeSchema);
  if (!charge.ok) return ignored(envelope, reason);
  const { id, invoice, payment_intent: intent } = charge.value;
  return ignored(envelope, reason, {
    userIds: read.distinct([charge.value.metadata.app_user_id]),
    paymentAliases: invoice === null ? aliases(intent, id) : aliases(invoice, intent, id),
  });
}

function readPaymentIntent(envelope: Envelope, reason: string): ParseResult {
  const intent = object(envelope, paymentIntentSchema);
  if (!intent.ok) return ignored(envelope, reason);
  const { id, invoice, latest_charge: charge } = intent.value;
  return ignored(envelope, reason, {
    userIds: read.distinct([intent.value.metadata.app_user_id]),
    paymentAliases: invoice === null ? aliases(id, charge) : aliases(invoice, id, charge),
  });
}

function readMoneyBack(envelope: Envelope): Read<MoneyBack & { readonly paymentRef: string }> {
  const back = object(envelope, moneyBackSchema);
  if (!back.ok) return back;
  const paymentRef = back.value.payment_intent ?? back.value.charge;
  if (paymentRef === null) {
    return { ok: false, reason: 'data.object names neither a payment_intent nor a charge' };
  }
  return { ok: true, value: { ...back.value, paymentRef } };
}

function adjustmentOf(
  back: MoneyBack & { readonly paymentRef: string },
  state: Pick<AdjustmentFact, 'kind' | 'state' | 'rank'>,
): AdjustmentFact {
  return {
    ...state,
    store: STORE,
    ref: back.id,
    paymentRef: back.paymentRef,
    ...originalAmount(back.currency, back.amount),
  };
}

/** One refund keeps its id through all its events; its status says whether the money left. */
function readRefund(envelope: Envelope): ParseResult {
  const refund = readMoneyBack(envelope);
  if (!refund.ok) return failed(refund.reason);
  switch (refund.value.status) {
    case 'succeeded': {
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'applied', rank: 1 });
      return done(envelope, 'refund', { adjustment });
    }
    case 'failed':
    case 'canceled': {
      const adjustment = adjustmentOf(refund.value, { kind: 'refund', state: 'reversed', rank: 2 });
      return done(envelope, 'refund_reversed', { adjustment });
    }
    default:
      return ignored(envelope, 'the refund is not done yet: another event tells how it ends');
  }
}

/** How far each event of a dispute decides: money moving outranks its opening, its end outranks both. */
function disputeState(type: string, status: string | null): Pick<AdjustmentFact, 'state' | 'rank'> | null {
  switch (type) {
    case 'charge.dispute.created':
      return status?.startsWith('warning_') === true ? null : { state: 'applied', rank: 1 };
    case 'charge.dispute.funds_withdrawn':
      return { state: 'applied', rank: 1 };
    case 'charge.dispute.funds_reinstated':
      return { state: 'reversed', rank: 2 };
    case 'charge.dispute.closed':
      if (status === 'won') return { state: 'reversed', rank: 3 };
      return status === 'lost' ? { state: 'applied', rank: 3 } : null;
    default:
      return null;
  }
}

function readDispute(envelope: Envelope): ParseResult {
  const dispute = readMoneyBack(envelope);
  if (!dispute.ok) return failed(dispute.reason);
  const state = disputeState(envelope.type, dispute.value.status);
  if (state === null) return ignored(envelope, 'the dispute moves no money');
  const adjustment = adjustmentOf(dispute.value, { kind: 'chargeback', ...state });
  return done(envelope, state.state === 'applied' ? 'chargeback' : 'chargeback_reversed', { adjustment });
}

/** What a subscription is made of, to compare: its periods move with every renewal and do not count. */
function composition(items: z.infer<typeof subscriptionSchema>['items']): string | null {
  const parts = items.data.map(({ price, plan, quantity }) =>
    JSON.stringify([price.id ?? plan.id, quantity]),
  );
  const known =
    items.data.length > 0 && items.data.every(({ price, plan }) => (price.id ?? plan.id) !== null);
  return known ? parts.toSorted().join() : null;
}

const previousSchema = read.part({
  ...itemsShape,
  cancel_at: read.anything,
  cancel_at_period_end: read.anything,
});

function subscriptionChange(envelope: Envelope, subscription: Subscription): EventKind | null {
  const previous = previousSchema.parse(envelope.data.previous_attributes);
  const endsWithPeriod = previous.cancel_at_period_end === false && subscription.cancel_at_period_end;
  const endsAt = previous.cancel_at === null && typeof subscription.cancel_at === 'number';
  if (endsWithPeriod || endsAt) return 'cancellation';
  const before = composition(previous.items);
  const after = composition(subscription.items);
  return before !== null && after !== null && before !== after ? 'product_change' : null;
}

function readSubscription(envelope: Envelope): ParseResult {
  const subscription = object(envelope, subscriptionSchema);
  if (!subscription.ok) return failed(subscription.reason);
  const { id, customer, status, items, metadata: custom } = subscription.value;
  const details: Details = {
    productId: productOf(items.data),
    userIds: read.distinct([custom.app_user_id]),
    userKeys: read.distinct([id, customer]),
  };
  if (envelope.type === 'customer.subscription.deleted') return done(envelope, 'cancellation', details);
  if (envelope.type === 'customer.subscription.created') {
    if (status === 'trialing') return done(envelope, 'trial_started', details);
    return ignored(envelope, 'a new subscription without a trial: its invoice counts', details);
  }
  const kind = subscriptionChange(envelope, subscription.value);
  if (kind === null)
    return ignored(envelope, 'nothing that counts here changed in the subscription', details);
  return done(envelope, kind, details);
}

const SAME_MONEY = 'the same money comes as an invoice or a checkout session, which is counted instead';

/**
 * One type, one reader. Of the two families that tell of refunds only `refund.*` is read: it has one id, amount and
 * status per refund, where `charge.refunded` states a running total. Reading both would take the same money back twice.
 */
function readType(envelope: Envelope): ParseResult {
  switch (envelope.type) {
    case 'invoice.paid':
      return readInvoicePaid(envelope);
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return readSession(envelope);
    case 'invoice_payment.paid':
      return readInvoicePayment(envelope);
    case 'invoice.payment_succeeded':
      return ignored(envelope, 'the same invoice comes as invoice.paid, which is counted instead');
    case 'charge.succeeded':
      return readCharge(envelope, SAME_MONEY);
    case 'payment_intent.succeeded':
      return readPaymentIntent(envelope, SAME_MONEY);
    case 'charge.refunded':
      return readCharge(
        envelope,
        'each refund comes as refund.created or refund.updated, which is counted instead',
      );
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
    case 'charge.refund.updated':
      return readRefund(envelope);
    case 'charge.dispute.created':
    case 'charge.dispute.funds_withdrawn':
    case 'charge.dispute.funds_reinstated':
    case 'charge.dispute.closed':
      return readDispute(envelope);
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return readSubscription(envelope);
    default:
      return ignored(
        envelope,
        `events of type ${read.typeName(envelope.type)} carry nothing that counts here`,
      );
  }
}

function parse(body: Buffer): ParseResult {
  const json = read.readJsonObject(body);
  if (!json.ok) return failed(json.reason);
  const format = json.value['object'];
  if (typeof format === 'string' && format.startsWith('v2.')) {
    return normalized.ignored('a thin event carries no data: the endpoint must send snapshot events');
  }
  const envelope = read.readAs(envelopeSchema, json.value);
  return envelope.ok ? readType(envelope.value) : failed(envelope.reason);
}

/** Stripe: a signature over time and raw body, amounts in minor units of any currency, many events per payment. */
export const stripe: Provider = {
  name: 'stripe',
  scheme: 'hmac',
  proofHeaders: [SIGNATURE.header],
  setupHint:
    'In Stripe open Developers, Webhooks, add an endpoint with this URL for the events invoice.paid, invoice_payment.paid, checkout.session.completed, checkout.session.async_payment_succeeded, customer.subscription.*, charge.succeeded, refund.* and charge.dispute.*, set client_reference_id and subscription_data.metadata.app_user_id in Checkout, and copy its signing secret (whsec_…) here.',
  secretFault: (secret) =>
    /^whsec_./.test(secret)
      ? null
      : 'Is no signing secret of a webhook: those of Stripe begin with whsec_. An API key (sk_…) does not belong here.',
  verify: (request, secret) => verifyTimestampedHmac(request, secret, SIGNATURE),
  signedAt: (request) => timestampedHmacTime(request, SIGNATURE),
  parse,
};
