import * as z from 'zod';
import type {
  AdjustmentFact,
  EventKind,
  OriginalAmount,
  PaymentFact,
  UserLinkFact,
} from '../../domain/events.ts';
import { codesOf, codesOfSubscription } from '../../domain/purchase-codes.ts';
import type { PurchaseCodeFact, StatedCode } from '../../domain/purchase-codes.ts';
import { isPlaceholder } from '../../domain/user-ids.ts';
import type { ParseResult } from '../provider.ts';
import { failed } from '../shared/normalized-event.ts';
import { toIsoMinorUnits } from '../shared/minor-units.ts';
import { paidShare, statedComponent, withComponents } from '../shared/payment-components.ts';
import * as read from '../shared/read-body.ts';
import { aliasesOf, done, ignored, originalAmount, readObject, STORE } from './envelope.ts';
import type { Details, Envelope } from './envelope.ts';
import { STRIPE_MINOR_UNITS } from './currencies.ts';
import { amount, invoiceLine, list, optionalAmount, productOfInvoice, ref, sumOfTaxes } from './objects.ts';

const metadata = read.userMetadata;

/** An invoice names the ids of its discounts, which lead to no code, unless they are expanded. */
const discounts = read.items(read.part({ promotion_code: ref }));

const subscriptionDetails = read.part({ subscription: ref, metadata });

const invoiceSchema = z.object({
  currency: read.currencyCode,
  id: read.id,
  amount_paid: amount,
  total: optionalAmount,
  // Since API version 2025-03-31, before it, and the oldest form.
  total_taxes: sumOfTaxes,
  total_tax_amounts: sumOfTaxes,
  tax: optionalAmount,
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
  discounts,
  payments: list(read.part({ payment: read.part({ payment_intent: ref, charge: ref }) })),
  lines: list(invoiceLine),
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
  amount_total: read.anything,
  discounts,
});
type Session = z.infer<typeof sessionSchema>;

const discountSchema = z.object({
  promotion_code: ref,
  subscription: ref,
  start: read.optionalEpochSeconds,
});

const sessionAmountSchema = z.object({
  currency: read.currencyCode,
  amount_total: amount,
  total_details: read.part({ amount_tax: optionalAmount }),
});

const invoicePaymentSchema = z.object({
  invoice: ref.refine((value): value is string => value !== null, 'an invoice id'),
  payment: read.part({ type: read.optionalText, payment_intent: ref, charge: ref }),
});

const outOfBandSchema = z.object({ id: read.id, currency: read.currencyCode, amount_paid: amount });

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
  customer: ref,
  metadata,
});

const receivedSchema = z.object({ currency: read.currencyCode, amount_received: amount });

/** Returns the kind of a paid invoice. It does not show that a renewal ended a trial. */
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
 * Returns the kind of an invoice of zero. The first invoice of a subscription starts a trial only where a line says so in
 * Stripe's words; else it may be fully discounted or paid by credit.
 */
function freeInvoiceKind(invoice: Invoice): EventKind {
  const kind = invoiceKind(invoice);
  if (kind !== 'purchase') return kind;
  const trial = invoice.lines.data.some((line) => /^(free )?trial\b/i.test(line.description ?? ''));
  return invoice.billing_reason === 'subscription_create' && trial ? 'trial_started' : 'other';
}

/** Returns a payment; null where nothing was paid. */
function paymentOf(paymentRef: string, paid: OriginalAmount): PaymentFact | null {
  return paid.amountMinor > 0 ? { store: STORE, ref: paymentRef, ...paid } : null;
}

/** Adds the tax to a payment, in proportion if only a part of the total was paid. Stripe's fee is in none of its webhooks. */
function withTax(
  payment: PaymentFact | null,
  tax: number | null,
  total: { readonly paid: number; readonly total: number | null },
): PaymentFact | null {
  if (payment === null) return null;
  const part = paidShare(tax, total);
  const minor = part === null ? null : toIsoMinorUnits(part, payment.currency, STRIPE_MINOR_UNITS);
  return withComponents(payment, { tax: statedComponent(minor), storeFee: null });
}

export function readInvoicePaid(envelope: Envelope): ParseResult {
  const parsed = readObject(envelope, invoiceSchema);
  if (!parsed.ok) return failed(parsed.reason);
  const invoice = parsed.value;
  const lines = invoice.lines.data;
  const [subscription = null] = read.distinct([
    invoice.parent.subscription_details.subscription,
    invoice.subscription,
    ...lines.flatMap((line) => [line.parent.subscription_item_details.subscription, line.subscription]),
  ]);
  // Money received outside Stripe cannot be refunded or disputed through Stripe, so it does not count. Since API version
  // 2025-03-31 only invoice_payment.paid states it.
  const paid = originalAmount(invoice.currency, invoice.paid_out_of_band ? 0 : invoice.amount_paid);
  if (!paid.ok) return failed(paid.reason);
  const tax = invoice.total_taxes ?? invoice.total_tax_amounts ?? invoice.tax;
  const payment = withTax(paymentOf(invoice.id, paid.value), tax, {
    paid: invoice.amount_paid,
    total: invoice.total,
  });
  return done(envelope, payment === null ? freeInvoiceKind(invoice) : invoiceKind(invoice), {
    occurredAt: invoice.status_transitions.paid_at ?? envelope.created,
    productId: productOfInvoice(lines),
    userIds: read.distinct([
      invoice.parent.subscription_details.metadata.app_user_id,
      invoice.subscription_details.metadata.app_user_id,
      ...lines.map((line) => line.metadata.app_user_id),
      invoice.metadata.app_user_id,
    ]),
    userKeys: read.distinct([subscription, invoice.customer]),
    payment,
    ...(payment === null
      ? {
          subscriptionCodes: codesOfSubscription(
            subscription,
            invoice.status_transitions.paid_at ?? envelope.created,
            promotionCodes(invoice.discounts),
          ),
        }
      : { codes: codesOfDiscounts(invoice.id, invoice.discounts) }),
    // Only API versions before 2025-03-31 name these. Later ones send invoice_payment.paid, and exports list the payments.
    paymentAliases: aliasesOf(
      invoice.id,
      invoice.payment_intent,
      invoice.charge,
      ...invoice.payments.data.flatMap((part) => [part.payment.payment_intent, part.payment.charge]),
    ),
  });
}

export function readSession(envelope: Envelope): ParseResult {
  const session = readObject(envelope, sessionSchema);
  if (!session.ok) return failed(session.reason);
  switch (session.value.mode) {
    case 'subscription':
      return readSubscriptionSession(envelope, session.value);
    case 'payment':
      return readPaymentSession(envelope, session.value);
    default:
      return ignored(envelope, 'a checkout session of this mode takes no payment');
  }
}

/** Stripe states the ids of promotion codes (`promo_…`), not what the customer entered. */
const promotionCodes = (given: Session['discounts']): readonly StatedCode[] =>
  given.map(({ promotion_code: value }) => ({ namespace: 'stripe', value }));

/** Returns the promotion codes of a payment. */
function codesOfDiscounts(
  paymentRef: string | null,
  given: Session['discounts'],
): readonly PurchaseCodeFact[] {
  return paymentRef === null ? [] : codesOf({ store: STORE, ref: paymentRef }, promotionCodes(given));
}

function sessionUserIds(session: Session): readonly string[] {
  return read.distinct([session.client_reference_id, session.metadata.app_user_id]);
}

/** Reads the session of a subscription, which names the user. The first invoice states the payment. */
function readSubscriptionSession(envelope: Envelope, session: Session): ParseResult {
  const userIds = sessionUserIds(session);
  // A link ties a key to one user, so one that is none must not take its place.
  const customerUserId = userIds.find((userId) => !isPlaceholder(userId));
  const userKeys = read.distinct([session.subscription, session.customer]);
  return done(envelope, 'other', {
    userIds,
    userKeys,
    userLinks: customerUserId === undefined ? [] : userKeys.map((key) => ({ key, customerUserId })),
    // A trial, or a full discount: the payments that follow come without the code.
    ...(session.payment_status === 'no_payment_required' || session.amount_total === 0
      ? {
          subscriptionCodes: codesOfSubscription(
            session.subscription,
            envelope.created,
            promotionCodes(session.discounts),
          ),
        }
      : { codes: codesOfDiscounts(session.invoice, session.discounts) }),
  });
}

/**
 * Reads the promotion code of a subscription. Invoices name only ids of their discounts. A discount of a customer is none of one
 * subscription: the customer may be a company with many users.
 */
export function readDiscount(envelope: Envelope): ParseResult {
  const discount = readObject(envelope, discountSchema);
  if (!discount.ok) return failed(discount.reason);
  const { subscription, start } = discount.value;
  const codes = promotionCodes([discount.value]);
  const subscriptionCodes = codesOfSubscription(subscription, start ?? envelope.created, codes);
  const reason = 'a discount moves no money; its promotion code counts for the payments of its subscription';
  return subscriptionCodes.length === 0
    ? ignored(
        envelope,
        `events of type ${envelope.type} without a promotion code of a subscription do not affect commissions`,
      )
    : ignored(envelope, reason, { userKeys: read.distinct([subscription]), subscriptionCodes });
}

function readPaymentSession(envelope: Envelope, session: Session): ParseResult {
  const details: Details = {
    userIds: sessionUserIds(session),
    userKeys: read.distinct([session.customer]),
    paymentAliases: aliasesOf(session.invoice, session.payment_intent),
    codes: codesOfDiscounts(session.invoice ?? session.payment_intent ?? session.id, session.discounts),
  };
  if (session.payment_status === 'no_payment_required') return done(envelope, 'other', details);
  if (session.payment_status !== 'paid') {
    return ignored(
      envelope,
      'the checkout session is not paid yet; the payment arrives as a separate event',
      details,
    );
  }
  const total = readObject(envelope, sessionAmountSchema);
  if (!total.ok) return failed(total.reason);
  const paid = originalAmount(total.value.currency, total.value.amount_total);
  if (!paid.ok) return failed(paid.reason);
  const { amount_total: whole, total_details: parts } = total.value;
  const payment = withTax(
    paymentOf(session.invoice ?? session.payment_intent ?? session.id, paid.value),
    parts.amount_tax,
    { paid: whole, total: whole },
  );
  return done(envelope, payment === null ? 'other' : 'purchase', { ...details, payment });
}

/**
 * Reads which payment intent paid which invoice. Since API version 2025-03-31 only this body states it. Money that a payment
 * record reports was received outside Stripe, and the invoice's paid amount includes it since then, so it reduces the base.
 */
export function readInvoicePayment(envelope: Envelope): ParseResult {
  const paid = readObject(envelope, invoicePaymentSchema);
  if (!paid.ok) return failed(paid.reason);
  const { invoice, payment } = paid.value;
  if (payment.type === 'payment_record') return readOutOfBand(envelope, invoice);
  return done(envelope, 'other', {
    paymentAliases: aliasesOf(invoice, payment.payment_intent, payment.charge),
  });
}

function readOutOfBand(envelope: Envelope, invoice: string): ParseResult {
  const paid = readObject(envelope, outOfBandSchema);
  if (!paid.ok) return failed(paid.reason);
  const money = originalAmount(paid.value.currency, paid.value.amount_paid);
  if (!money.ok) return failed(money.reason);
  const adjustment: AdjustmentFact = {
    kind: 'out_of_band',
    store: STORE,
    ref: paid.value.id,
    paymentRef: invoice,
    state: 'applied',
    rank: 1,
    ...money.value,
  };
  return done(envelope, 'other', { adjustment });
}

/**
 * Returns the users whom the payment intent or the charge of an invoice names. They are users of the invoice, which an event of its own
 * reports, before or after this one: so they are stored with its id.
 */
function usersOfInvoice(invoice: string | null, userIds: readonly string[]): readonly UserLinkFact[] {
  return invoice === null ? [] : userIds.map((customerUserId) => ({ key: invoice, customerUserId }));
}

/** Returns the users and aliases that the charge of an event names. Empty when it cannot be read. */
export function chargeNames(envelope: Envelope): Pick<Details, 'userIds' | 'userLinks' | 'paymentAliases'> {
  const charge = readObject(envelope, chargeSchema);
  if (!charge.ok) return {};
  const { id, invoice, payment_intent: intent, metadata: custom } = charge.value;
  const userIds = read.distinct([custom.app_user_id]);
  return {
    userIds,
    userLinks: usersOfInvoice(invoice, userIds),
    paymentAliases: invoice === null ? aliasesOf(intent, id) : aliasesOf(invoice, intent, id),
  };
}

/** Reads the ids of a charge: a refund or dispute may name only these. Its money arrives as an invoice or session. */
export function readCharge(envelope: Envelope, reason: string): ParseResult {
  return ignored(envelope, reason, chargeNames(envelope));
}

/** Reads the ids of a charge that succeeded. The money is counted where its payment is. */
export function readSucceededCharge(envelope: Envelope): ParseResult {
  return readCharge(
    envelope,
    'the money of a charge arrives as an invoice, a checkout session or a payment intent, which is counted instead',
  );
}

const NO_USER =
  'the payment intent names no user in metadata.app_user_id, so only an invoice or a checkout session can count its money';

/**
 * Reads a payment intent. The payment of an invoice arrives as the invoice. Any other one counts if it names the app's user,
 * under the reference that its checkout session has, if there is one. A payment intent of an invoice names its invoice only
 * before API version 2025-03-31; aliases from other events tie the two together later.
 */
export function readPaymentIntent(envelope: Envelope): ParseResult {
  const parsed = readObject(envelope, paymentIntentSchema);
  if (!parsed.ok) return ignored(envelope, NO_USER);
  const { id, invoice, latest_charge: charge, customer, metadata: custom } = parsed.value;
  const userIds = read.distinct([custom.app_user_id]);
  if (invoice !== null) {
    return ignored(envelope, 'the payment intent belongs to an invoice, which is counted instead', {
      userIds,
      userLinks: usersOfInvoice(invoice, userIds),
      paymentAliases: aliasesOf(invoice, id, charge),
    });
  }
  const paymentAliases = aliasesOf(id, charge);
  if (userIds.length === 0) return ignored(envelope, NO_USER, { paymentAliases });
  const received = readObject(envelope, receivedSchema);
  if (!received.ok) return failed(received.reason);
  const paid = originalAmount(received.value.currency, received.value.amount_received);
  if (!paid.ok) return failed(paid.reason);
  const payment = paymentOf(id, paid.value);
  return done(envelope, payment === null ? 'other' : 'purchase', {
    userIds,
    userKeys: read.distinct([customer]),
    payment,
    paymentAliases,
  });
}
