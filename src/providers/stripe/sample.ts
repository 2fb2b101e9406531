import { createHmac } from 'node:crypto';
import { newProviderId, SAMPLE_TIME, toSeconds } from '../shared/sample.ts';
import type { Payload, ProviderSample } from '../shared/sample.ts';

export interface StripeEventOverrides {
  readonly eventId?: string;
  readonly type?: string;
  /** Epoch ms; Stripe states whole seconds. */
  readonly occurredAt?: number;
  /** The API version of the endpoint. */
  readonly apiVersion?: string;
  /** `sandbox` is Stripe's test mode. */
  readonly environment?: 'production' | 'sandbox';
  readonly previousAttributes?: Payload;
  /** Fields to add to the object or to replace; undefined removes a field. */
  readonly extra?: Payload;
}

/** Builds the event around a Stripe object. */
export function stripeEvent(type: string, object: Payload, overrides: StripeEventOverrides = {}): Payload {
  const livemode = overrides.environment !== 'sandbox';
  const { previousAttributes } = overrides;
  return {
    id: overrides.eventId ?? newProviderId('evt'),
    object: 'event',
    api_version: overrides.apiVersion ?? '2025-03-31.basil',
    created: toSeconds(overrides.occurredAt ?? SAMPLE_TIME),
    data: {
      object: { ...object, livemode, ...overrides.extra },
      ...(previousAttributes === undefined ? {} : { previous_attributes: previousAttributes }),
    },
    livemode,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type: overrides.type ?? type,
  };
}

export interface StripeInvoiceOverrides extends StripeEventOverrides {
  readonly userId?: string | null;
  readonly invoiceId?: string;
  /** Minor units of `currency`. */
  readonly amount?: number;
  /** As Stripe writes it, in lower case. */
  readonly currency?: string;
  readonly billingReason?: string;
  readonly subscriptionId?: string;
  readonly customerId?: string;
  readonly productId?: string;
  readonly lineDescription?: string;
  /** Builds the shape from before API version 2025-03-31, which names the charge and the payment intent. */
  readonly legacy?: { readonly chargeId: string; readonly paymentIntentId: string };
}

interface InvoiceContext {
  readonly id: string;
  readonly amount: number;
  readonly currency: string;
  readonly subscription: string;
  readonly metadata: Payload;
  readonly productId: string;
  readonly description: string;
  readonly at: number;
}

function invoiceLine(context: InvoiceContext, legacy: boolean): Payload {
  const { subscription, amount, productId } = context;
  const shape = legacy
    ? { price: { id: 'price_LanternMonthly', product: productId }, subscription, proration: false }
    : {
        parent: {
          subscription_item_details: { proration: false, subscription, subscription_item: 'si_Lantern01' },
          type: 'subscription_item_details',
        },
        pricing: {
          price_details: { price: 'price_LanternMonthly', product: productId },
          type: 'price_details',
          unit_amount_decimal: String(amount),
        },
      };
  return {
    id: `il_${context.id}`,
    object: 'line_item',
    amount,
    currency: context.currency,
    description: context.description,
    invoice: context.id,
    metadata: context.metadata,
    period: { end: context.at + 30 * 86_400, start: context.at },
    quantity: 1,
    ...shape,
  };
}

/** Builds `invoice.paid`; by default for the first month of a subscription at 12.00 USD. */
export function stripeInvoicePaid(overrides: StripeInvoiceOverrides = {}): Payload {
  const { amount = 1200, currency = 'usd', userId = 'user-hazel', legacy } = overrides;
  const at = toSeconds(overrides.occurredAt ?? SAMPLE_TIME);
  const context: InvoiceContext = {
    id: overrides.invoiceId ?? newProviderId('in'),
    amount,
    currency,
    subscription: overrides.subscriptionId ?? newProviderId('sub'),
    metadata: userId === null ? {} : { app_user_id: userId },
    productId: overrides.productId ?? 'prod_LanternPlus',
    description: overrides.lineDescription ?? '1 × Lantern Plus (per month)',
    at,
  };
  const details = { metadata: context.metadata, subscription: context.subscription };
  const shape =
    legacy === undefined
      ? { parent: { quote_details: null, subscription_details: details, type: 'subscription_details' } }
      : {
          charge: legacy.chargeId,
          paid: true,
          paid_out_of_band: false,
          payment_intent: legacy.paymentIntentId,
          subscription: context.subscription,
          subscription_details: { metadata: context.metadata },
        };
  const invoice = {
    id: context.id,
    object: 'invoice',
    amount_due: amount,
    amount_paid: amount,
    amount_remaining: 0,
    billing_reason: overrides.billingReason ?? 'subscription_create',
    collection_method: 'charge_automatically',
    created: at,
    currency,
    customer: overrides.customerId ?? newProviderId('cus'),
    customer_email: 'hazel@example.com',
    lines: {
      object: 'list',
      data: [invoiceLine(context, legacy !== undefined)],
      has_more: false,
      total_count: 1,
      url: `/v1/invoices/${context.id}/lines`,
    },
    metadata: {},
    number: 'LANTERN-0001',
    status: 'paid',
    status_transitions: { finalized_at: at, marked_uncollectible_at: null, paid_at: at, voided_at: null },
    subtotal: amount,
    total: amount,
    ...shape,
  };
  return stripeEvent('invoice.paid', invoice, overrides);
}

/** Returns the `Stripe-Signature` header for a body sent at `atSeconds`. */
export function signStripe(body: Uint8Array | string, secret: string, atSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${atSeconds}.`).update(body).digest('hex');
  return `t=${atSeconds},v1=${mac}`;
}

export const stripeSample: ProviderSample = {
  sandboxPurchase: ({ id, userId, occurredAt, cents: amount, code }) => ({
    sourceEventId: id,
    payload: stripeInvoicePaid({
      eventId: id,
      invoiceId: id,
      userId,
      occurredAt,
      amount,
      environment: 'sandbox',
      ...(code && { extra: { discounts: [{ id: newProviderId('di'), promotion_code: code.value }] } }),
    }),
  }),
  sign: (body, secret, at) => ({ 'stripe-signature': signStripe(body, secret, toSeconds(at)) }),
};
