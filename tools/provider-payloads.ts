/**
 * Builds the events of billing providers other than purchases: refunds, disputes, transfers, subscriptions. For the tests
 * and the demo. Purchases and signatures are in the samples of src/providers, which the self-test uses too.
 */
import { randomUUID } from 'node:crypto';
import { adaptyEvent } from '../src/providers/adapty/sample.ts';
import type { AdaptyOverrides } from '../src/providers/adapty/sample.ts';
import { paddleEvent, paddleTime, paddleTotals } from '../src/providers/paddle/sample.ts';
import type { PaddleEventOverrides } from '../src/providers/paddle/sample.ts';
import { revenuecatEvent } from '../src/providers/revenuecat/sample.ts';
import type { RevenuecatOverrides } from '../src/providers/revenuecat/sample.ts';
import { newProviderId, SAMPLE_TIME, toSeconds } from '../src/providers/shared/sample.ts';
import type { Payload } from '../src/providers/shared/sample.ts';
import { stripeEvent } from '../src/providers/stripe/sample.ts';
import type { StripeEventOverrides } from '../src/providers/stripe/sample.ts';
import { superwallEvent } from '../src/providers/superwall/sample.ts';
import type { SuperwallOverrides } from '../src/providers/superwall/sample.ts';

export * from '../src/providers/adapty/sample.ts';
export * from '../src/providers/paddle/sample.ts';
export * from '../src/providers/revenuecat/sample.ts';
export * from '../src/providers/shared/sample.ts';
export * from '../src/providers/stripe/sample.ts';
export * from '../src/providers/superwall/sample.ts';

/** Builds a RevenueCat refund: a cancellation with a negative price. `usd` is the refunded amount, above zero. */
export function revenuecatRefund(
  overrides: RevenuecatOverrides & { readonly usd?: number | null } = {},
): Payload {
  const { usd = 9.99, localPrice, extra } = overrides;
  return revenuecatEvent({
    ...overrides,
    type: overrides.type ?? 'CANCELLATION',
    usd: usd === null ? null : -usd,
    ...(localPrice == null ? {} : { localPrice: -localPrice }),
    extra: { cancel_reason: 'CUSTOMER_SUPPORT', ...extra },
  });
}

export interface RevenuecatTransferOverrides {
  readonly eventId?: string;
  readonly from?: readonly string[];
  readonly to?: readonly string[];
  readonly environment?: string;
  readonly occurredAt?: number;
}

/** Builds a RevenueCat transfer of purchases from one user to another. */
export function revenuecatTransfer(overrides: RevenuecatTransferOverrides = {}): Payload {
  return {
    api_version: '1.0',
    event: {
      app_id: 'app_lanternnotes',
      environment: overrides.environment ?? 'PRODUCTION',
      event_timestamp_ms: overrides.occurredAt ?? SAMPLE_TIME,
      id: overrides.eventId ?? randomUUID().toUpperCase(),
      store: 'APP_STORE',
      subscriber_attributes: {},
      transferred_from: overrides.from ?? ['user-hazel'],
      transferred_to: overrides.to ?? ['user-rowan'],
      type: 'TRANSFER',
    },
  };
}

export interface StripeSessionOverrides extends StripeEventOverrides {
  readonly userId?: string | null;
  readonly sessionId?: string;
  readonly mode?: 'payment' | 'subscription' | 'setup';
  readonly paymentStatus?: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly customerId?: string | null;
  readonly subscriptionId?: string | null;
  readonly invoiceId?: string | null;
  readonly paymentIntentId?: string | null;
}

/** Builds `checkout.session.completed`; by default a one-off payment of 60.00 USD. */
export function stripeCheckoutSession(overrides: StripeSessionOverrides = {}): Payload {
  const { mode = 'payment', amount = 6000, userId = 'user-hazel' } = overrides;
  const { invoiceId = null, customerId = newProviderId('cus') } = overrides;
  const { subscriptionId = mode === 'subscription' ? newProviderId('sub') : null } = overrides;
  const { paymentIntentId = mode === 'payment' ? newProviderId('pi') : null } = overrides;
  const session = {
    id: overrides.sessionId ?? newProviderId('cs_live'),
    object: 'checkout.session',
    amount_subtotal: amount,
    amount_total: amount,
    cancel_url: 'https://example.com/back',
    client_reference_id: userId,
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME) - 40,
    currency: overrides.currency ?? 'usd',
    customer: customerId,
    customer_details: { email: 'hazel@example.com', name: null },
    invoice: invoiceId,
    metadata: {},
    mode,
    payment_intent: paymentIntentId,
    payment_method_types: ['card'],
    payment_status: overrides.paymentStatus ?? 'paid',
    status: 'complete',
    subscription: subscriptionId,
    success_url: 'https://example.com/thanks',
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
  };
  return stripeEvent('checkout.session.completed', session, overrides);
}

export interface StripeInvoicePaymentOverrides extends StripeEventOverrides {
  readonly id?: string;
  /** Builds a payment outside Stripe, which names no payment intent. */
  readonly paymentRecordId?: string;
  readonly invoiceId?: string;
  readonly paymentIntentId?: string;
  readonly amount?: number;
  readonly currency?: string;
}

/** Builds `invoice_payment.paid`, which names the payment intent that paid an invoice. */
export function stripeInvoicePaymentPaid(overrides: StripeInvoicePaymentOverrides = {}): Payload {
  const { amount = 1200 } = overrides;
  const at = toSeconds(overrides.occurredAt ?? SAMPLE_TIME);
  const invoicePayment = {
    id: overrides.id ?? newProviderId('inpay'),
    object: 'invoice_payment',
    amount_paid: amount,
    amount_requested: amount,
    created: at,
    currency: overrides.currency ?? 'usd',
    invoice: overrides.invoiceId ?? newProviderId('in'),
    is_default: true,
    payment:
      overrides.paymentRecordId === undefined
        ? { payment_intent: overrides.paymentIntentId ?? newProviderId('pi'), type: 'payment_intent' }
        : { payment_record: overrides.paymentRecordId, type: 'payment_record' },
    status: 'paid',
    status_transitions: { canceled_at: null, paid_at: at },
  };
  return stripeEvent('invoice_payment.paid', invoicePayment, overrides);
}

export interface StripeChargeOverrides extends StripeEventOverrides {
  readonly chargeId?: string;
  readonly paymentIntentId?: string | null;
  /** Only before API version 2025-03-31. */
  readonly invoiceId?: string;
  readonly amount?: number;
  readonly amountRefunded?: number;
  readonly currency?: string;
}

/** Builds `charge.succeeded`, or with another `type` any other event of a charge. */
export function stripeCharge(overrides: StripeChargeOverrides = {}): Payload {
  const { amount = 1200, amountRefunded = 0, invoiceId, paymentIntentId = newProviderId('pi') } = overrides;
  const charge = {
    id: overrides.chargeId ?? newProviderId('ch'),
    object: 'charge',
    amount,
    amount_captured: amount,
    amount_refunded: amountRefunded,
    captured: true,
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME),
    currency: overrides.currency ?? 'usd',
    metadata: {},
    paid: true,
    payment_intent: paymentIntentId,
    refunded: amountRefunded === amount,
    status: 'succeeded',
    ...(invoiceId === undefined ? {} : { invoice: invoiceId }),
  };
  return stripeEvent('charge.succeeded', charge, overrides);
}

export interface StripePaymentIntentOverrides extends StripeEventOverrides {
  readonly userId?: string | null;
  readonly paymentIntentId?: string;
  readonly chargeId?: string;
  readonly amount?: number;
  readonly currency?: string;
}

/** Builds `payment_intent.succeeded`; by default of the Payment Element, without an invoice or a session, at 25.00 USD. */
export function stripePaymentIntent(overrides: StripePaymentIntentOverrides = {}): Payload {
  const { userId = 'user-hazel', amount = 2500 } = overrides;
  const intent = {
    id: overrides.paymentIntentId ?? newProviderId('pi'),
    object: 'payment_intent',
    amount,
    amount_received: amount,
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME),
    currency: overrides.currency ?? 'usd',
    customer: null,
    latest_charge: overrides.chargeId ?? newProviderId('ch'),
    metadata: userId === null ? {} : { app_user_id: userId },
    status: 'succeeded',
  };
  return stripeEvent('payment_intent.succeeded', intent, overrides);
}

export interface StripeRefundOverrides extends StripeEventOverrides {
  /** The event's type; by default that of the first event. */
  readonly type?: string;
  /** The id of the refund or the dispute. */
  readonly id?: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly status?: string;
  readonly paymentIntentId?: string | null;
  readonly chargeId?: string | null;
}

/** Builds `refund.created`, or with another `type` and `status` a later event of the refund. */
export function stripeRefund(overrides: StripeRefundOverrides = {}): Payload {
  const { paymentIntentId = newProviderId('pi'), chargeId = newProviderId('ch') } = overrides;
  const refund = {
    id: overrides.id ?? newProviderId('re'),
    object: 'refund',
    amount: overrides.amount ?? 1200,
    charge: chargeId,
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME),
    currency: overrides.currency ?? 'usd',
    metadata: {},
    payment_intent: paymentIntentId,
    reason: 'requested_by_customer',
    status: overrides.status ?? 'succeeded',
  };
  return stripeEvent('refund.created', refund, overrides);
}

export interface StripeCreditNoteOverrides extends StripeEventOverrides {
  readonly id?: string;
  readonly invoiceId?: string;
  /** What was credited outside Stripe; null where nothing was. */
  readonly outOfBandAmount?: number | null;
  readonly currency?: string;
  readonly status?: string;
}

/** Builds `credit_note.created`, or with another `type` and `status` a later event of the credit note. */
export function stripeCreditNote(overrides: StripeCreditNoteOverrides = {}): Payload {
  const { outOfBandAmount = 1200 } = overrides;
  const at = toSeconds(overrides.occurredAt ?? SAMPLE_TIME);
  const creditNote = {
    id: overrides.id ?? newProviderId('cn'),
    object: 'credit_note',
    amount: outOfBandAmount ?? 1200,
    created: at,
    currency: overrides.currency ?? 'usd',
    invoice: overrides.invoiceId ?? newProviderId('in'),
    metadata: {},
    number: 'LANTERN-0001-CN-01',
    out_of_band_amount: outOfBandAmount,
    post_payment_amount: outOfBandAmount ?? 1200,
    pre_payment_amount: 0,
    reason: 'product_unsatisfactory',
    refunds: [],
    status: overrides.status ?? 'issued',
    type: 'post_payment',
    voided_at: null,
  };
  return stripeEvent('credit_note.created', creditNote, overrides);
}

/** Builds `charge.dispute.created`, or with another `type` and `status` a later event of the dispute. */
export function stripeDispute(overrides: StripeRefundOverrides = {}): Payload {
  const { paymentIntentId = newProviderId('pi'), chargeId = newProviderId('ch') } = overrides;
  const dispute = {
    id: overrides.id ?? newProviderId('du'),
    object: 'dispute',
    amount: overrides.amount ?? 1200,
    balance_transactions: [],
    charge: chargeId,
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME),
    currency: overrides.currency ?? 'usd',
    evidence_details: { due_by: null, has_evidence: false, past_due: false, submission_count: 0 },
    is_charge_refundable: false,
    metadata: {},
    payment_intent: paymentIntentId,
    reason: 'general',
    status: overrides.status ?? 'needs_response',
  };
  return stripeEvent(overrides.type ?? 'charge.dispute.created', dispute, overrides);
}

export interface StripeSubscriptionOverrides extends StripeEventOverrides {
  readonly userId?: string | null;
  readonly subscriptionId?: string;
  readonly customerId?: string;
  readonly priceId?: string;
  readonly productId?: string;
  readonly status?: string;
  readonly cancelAtPeriodEnd?: boolean;
  readonly cancelAt?: number | null;
}

/** Builds `customer.subscription.created` with a trial, or with another `type` a later event of the subscription. */
export function stripeSubscription(overrides: StripeSubscriptionOverrides = {}): Payload {
  const { userId = 'user-hazel', priceId = 'price_LanternMonthly' } = overrides;
  const { productId = 'prod_LanternPlus', cancelAt = null } = overrides;
  const at = toSeconds(overrides.occurredAt ?? SAMPLE_TIME);
  const subscription = {
    id: overrides.subscriptionId ?? newProviderId('sub'),
    object: 'subscription',
    cancel_at: cancelAt === null ? null : toSeconds(cancelAt),
    cancel_at_period_end: overrides.cancelAtPeriodEnd ?? false,
    created: at,
    currency: 'usd',
    customer: overrides.customerId ?? newProviderId('cus'),
    items: {
      object: 'list',
      data: [
        {
          id: 'si_Lantern01',
          object: 'subscription_item',
          current_period_end: at + 30 * 86_400,
          current_period_start: at,
          price: { id: priceId, object: 'price', product: productId, type: 'recurring' },
          quantity: 1,
        },
      ],
      has_more: false,
      total_count: 1,
    },
    metadata: userId === null ? {} : { app_user_id: userId },
    status: overrides.status ?? 'trialing',
  };
  return stripeEvent('customer.subscription.created', subscription, overrides);
}

/** Builds an Adapty refund of a subscription. Its price is the refunded amount, above zero. */
export function adaptyRefund(overrides: AdaptyOverrides = {}): Payload {
  const { type = 'subscription_refunded', extra } = overrides;
  return adaptyEvent({ ...overrides, type, extra: { cancellation_reason: 'refund', ...extra } });
}

/** Builds a Superwall refund, whose price is negative. `usd` is the refunded amount, above zero. */
export function superwallRefund(overrides: SuperwallOverrides = {}): Payload {
  const { type = 'cancellation', usd = 9.99, localPrice, extra } = overrides;
  return superwallEvent({
    ...overrides,
    type,
    usd: usd === null ? null : -usd,
    ...(localPrice == null ? {} : { localPrice: -localPrice }),
    extra: { cancelReason: 'CUSTOMER_SUPPORT', ...extra },
  });
}

/** Where a body in the format V2 may have its facts. */
export const SUPERWALL_V2_PLACES = ['top', 'event', 'data.event'] as const;

/**
 * Returns an event of the legacy format as one in the format V2, as far as it is documented: the same facts beside the state, the
 * aliases and the attributes of the subscriber. The names around the facts are made up.
 */
export function asSuperwallV2(
  { data, ...envelope }: Payload,
  place: (typeof SUPERWALL_V2_PLACES)[number] = 'data.event',
  attributes: Payload = { plan: 'plus' },
): Payload {
  const facts = data as Payload;
  const subscriber = {
    aliases: ['$SuperwallAlias:00FA4E00-0000-4000-8000-000000000001'],
    subscriptions: [{ id: 'sub-1', store: 'APP_STORE', price: 9.99, status: 'active' }],
    attributes,
  };
  const places = {
    top: { ...envelope, ...facts, subscriber },
    event: { ...envelope, event: facts, subscriber },
    'data.event': { ...envelope, data: { event: facts, subscriber } },
  };
  return places[place];
}

export interface PaddleAdjustmentOverrides extends PaddleEventOverrides {
  readonly adjustmentId?: string;
  readonly transactionId?: string;
  /** `refund`, `chargeback`, `chargeback_reverse`, … */
  readonly action?: string;
  readonly status?: string;
  /** Minor units of `currency`, above zero for refunds too. */
  readonly amount?: number;
  readonly currency?: string;
  readonly payout?: { readonly amount: number; readonly currency: string } | null;
}

/** Builds `adjustment.created`; by default an approved refund of 12.00 USD. */
export function paddleAdjustment(overrides: PaddleAdjustmentOverrides = {}): Payload {
  const { amount = 1200, currency = 'USD', action = 'refund', occurredAt = SAMPLE_TIME } = overrides;
  const { payout = { amount, currency: 'USD' } } = overrides;
  const adjustment = {
    id: overrides.adjustmentId ?? newProviderId('adj'),
    action,
    type: 'partial',
    transaction_id: overrides.transactionId ?? newProviderId('txn'),
    subscription_id: newProviderId('sub'),
    customer_id: newProviderId('ctm'),
    reason: 'not needed any more',
    credit_applied_to_balance: null,
    currency_code: currency,
    status: overrides.status ?? 'approved',
    items: [
      {
        id: newProviderId('adjitm'),
        item_id: newProviderId('txnitm'),
        type: 'partial',
        amount: String(amount),
      },
    ],
    totals: paddleTotals({ total: amount, tax: 0, currency }),
    payout_totals:
      payout === null
        ? null
        : {
            ...paddleTotals({ total: payout.amount, tax: 0, currency: payout.currency }),
            // Paddle's own fee for a dispute, which is not part of the price.
            chargeback_fee: { amount: action === 'chargeback' ? '1500' : '0', original: null },
          },
    created_at: paddleTime(occurredAt - 60_000),
    updated_at: paddleTime(occurredAt),
  };
  return paddleEvent('adjustment.created', adjustment, overrides);
}

export interface PaddleSubscriptionOverrides extends PaddleEventOverrides {
  readonly userId?: string | null;
  readonly subscriptionId?: string;
  readonly productId?: string;
  readonly status?: string;
  /** Epoch ms of the scheduled cancellation, if there is one. */
  readonly cancelAt?: number | null;
}

/** Builds `subscription.trialing`, or with another `type` and `status` a later event of the subscription. */
export function paddleSubscription(overrides: PaddleSubscriptionOverrides = {}): Payload {
  const { userId = 'user-hazel', cancelAt = null, occurredAt = SAMPLE_TIME } = overrides;
  const subscription = {
    id: overrides.subscriptionId ?? newProviderId('sub'),
    transaction_id: newProviderId('txn'),
    status: overrides.status ?? 'trialing',
    customer_id: newProviderId('ctm'),
    custom_data: userId === null ? null : { app_user_id: userId },
    currency_code: 'USD',
    items: [
      {
        price: { id: 'pri_LanternMonthly', product_id: overrides.productId ?? 'pro_LanternPlus' },
        status: 'active',
        quantity: 1,
        recurring: true,
      },
    ],
    billing_cycle: { interval: 'month', frequency: 1 },
    collection_mode: 'automatic',
    canceled_at: null,
    scheduled_change:
      cancelAt === null ? null : { action: 'cancel', effective_at: paddleTime(cancelAt), resume_at: null },
    started_at: paddleTime(occurredAt),
    created_at: paddleTime(occurredAt),
    updated_at: paddleTime(occurredAt),
  };
  return paddleEvent('subscription.trialing', subscription, overrides);
}
