import * as z from 'zod';
import type { EventKind, PaymentFact } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import { aliases, done, ignored, object, originalAmount, STORE } from './envelope.ts';
import type { Details, Envelope } from './envelope.ts';
import { amount, list, pricedShape, productOf, ref } from './objects.ts';

const metadata = read.userMetadata;

const subscriptionDetails = read.part({ subscription: ref, metadata });

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

export function readInvoicePaid(envelope: Envelope): ParseResult {
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

export function readSession(envelope: Envelope): ParseResult {
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
export function readInvoicePayment(envelope: Envelope): ParseResult {
  const paid = object(envelope, invoicePaymentSchema);
  if (!paid.ok) return failed(paid.reason);
  const { invoice, payment } = paid.value;
  return done(envelope, 'other', {
    paymentAliases: aliases(invoice, payment.payment_intent, payment.charge),
  });
}

/** The same money as an invoice or a checkout session. Its ids are kept: a refund or a dispute may name only them. */
export function readCharge(envelope: Envelope, reason: string): ParseResult {
  const charge = object(envelope, chargeSchema);
  if (!charge.ok) return ignored(envelope, reason);
  const { id, invoice, payment_intent: intent } = charge.value;
  return ignored(envelope, reason, {
    userIds: read.distinct([charge.value.metadata.app_user_id]),
    paymentAliases: invoice === null ? aliases(intent, id) : aliases(invoice, intent, id),
  });
}

export function readPaymentIntent(envelope: Envelope, reason: string): ParseResult {
  const intent = object(envelope, paymentIntentSchema);
  if (!intent.ok) return ignored(envelope, reason);
  const { id, invoice, latest_charge: charge } = intent.value;
  return ignored(envelope, reason, {
    userIds: read.distinct([intent.value.metadata.app_user_id]),
    paymentAliases: invoice === null ? aliases(id, charge) : aliases(invoice, id, charge),
  });
}
