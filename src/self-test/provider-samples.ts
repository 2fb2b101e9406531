/**
 * Purchases as the billing providers send them, with made-up values, and the proofs that go with them. The self-test
 * posts them; the tests and the demo build on them. Every id that is not given is new, so two bodies never collide by
 * accident.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { ProviderName } from '../providers/provider.ts';

/** A JSON object on its way out. */
export type Payload = Readonly<Record<string, unknown>>;

/** The bytes of a body, as a provider would put them on the wire. */
export function bodyOf(payload: Payload): Buffer {
  return Buffer.from(JSON.stringify(payload));
}

/** A new id in the manner of Stripe, Paddle and Svix. */
export function made(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** A new transaction id in the App Store's manner. */
function storeTransactionId(): string {
  return `9${randomUUID().replaceAll(/\D/g, '').padEnd(14, '7').slice(0, 14)}`;
}

export function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** 2026-03-02T09:30:00Z, when nothing else is said. */
export const A_MONDAY = 1_772_443_800_000;

const APPROXIMATE_USD_RATES: Readonly<Record<string, number>> = { USD: 1, EUR: 1.1, JPY: 0.0067, KWD: 3.25 };

export interface RevenuecatOverrides {
  readonly type?: string;
  readonly eventId?: string;
  readonly userId?: string;
  readonly originalUserId?: string;
  readonly aliases?: readonly string[];
  /** Dollars, e.g. 9.99; below zero for a refund, null when RevenueCat does not know. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; without it the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  readonly periodType?: string;
  /** Epoch ms of the event, and of the purchase unless that is given. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Anything else in the event, or in place of what was built; undefined removes a field. */
  readonly extra?: Payload;
}

function rough(usd: number | null, currency: string | null): number | null {
  const rate = APPROXIMATE_USD_RATES[currency ?? 'USD'] ?? 1;
  return usd === null ? null : Math.round((usd / rate) * 100) / 100;
}

/** One RevenueCat event; a first purchase of 9.99 USD in the App Store unless told otherwise. */
export function revenuecatEvent(overrides: RevenuecatOverrides = {}): Payload {
  const occurredAt = overrides.occurredAt ?? A_MONDAY;
  const { usd = 9.99, currency = 'USD', userId = 'user-hazel', aliases = [userId] } = overrides;
  const { transactionId = storeTransactionId() } = overrides;
  const { environment = 'PRODUCTION', originalTransactionId = transactionId } = overrides;
  return {
    api_version: '1.0',
    event: {
      aliases,
      app_id: 'app_lanternnotes',
      app_user_id: userId,
      commission_percentage: 0.15,
      country_code: 'US',
      currency,
      entitlement_id: null,
      entitlement_ids: ['lantern_plus'],
      environment,
      event_timestamp_ms: occurredAt,
      expiration_at_ms: occurredAt + 30 * 86_400_000,
      id: overrides.eventId ?? randomUUID().toUpperCase(),
      is_family_share: false,
      offer_code: null,
      original_app_user_id: overrides.originalUserId ?? userId,
      original_transaction_id: originalTransactionId,
      period_type: overrides.periodType ?? 'NORMAL',
      presented_offering_id: 'spring_paywall',
      price: usd,
      price_in_purchased_currency:
        overrides.localPrice === undefined ? rough(usd, currency) : overrides.localPrice,
      product_id: overrides.productId ?? 'lantern.plus.monthly',
      purchased_at_ms: overrides.purchasedAt ?? occurredAt,
      store: overrides.store ?? 'APP_STORE',
      subscriber_attributes: {
        $email: { updated_at_ms: occurredAt - 60_000, value: 'hazel@example.com' },
      },
      takehome_percentage: 0.85,
      tax_percentage: 0,
      transaction_id: transactionId,
      type: overrides.type ?? 'INITIAL_PURCHASE',
      ...overrides.extra,
    },
  };
}

export interface StripeEventOverrides {
  readonly eventId?: string;
  readonly type?: string;
  /** Epoch ms; Stripe states whole seconds. */
  readonly occurredAt?: number;
  /** `sandbox` is Stripe's test mode. */
  readonly environment?: 'production' | 'sandbox';
  readonly previousAttributes?: Payload;
  /** Anything else in the object, or in place of what was built; undefined removes a field. */
  readonly extra?: Payload;
}

/** The envelope around any Stripe object. */
export function stripeEvent(type: string, object: Payload, overrides: StripeEventOverrides = {}): Payload {
  const livemode = overrides.environment !== 'sandbox';
  const { previousAttributes } = overrides;
  return {
    id: overrides.eventId ?? made('evt'),
    object: 'event',
    api_version: '2025-03-31.basil',
    created: seconds(overrides.occurredAt ?? A_MONDAY),
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

/** `invoice.paid` for the first month of a subscription, 12.00 USD, unless told otherwise. */
export function stripeInvoicePaid(overrides: StripeInvoiceOverrides = {}): Payload {
  const { amount = 1200, currency = 'usd', userId = 'user-hazel', legacy } = overrides;
  const at = seconds(overrides.occurredAt ?? A_MONDAY);
  const context: InvoiceContext = {
    id: overrides.invoiceId ?? made('in'),
    amount,
    currency,
    subscription: overrides.subscriptionId ?? made('sub'),
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
    customer: overrides.customerId ?? made('cus'),
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

/** The `Stripe-Signature` header for a body sent at `atSeconds`. */
export function signStripe(body: Uint8Array | string, secret: string, atSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${atSeconds}.`).update(body).digest('hex');
  return `t=${atSeconds},v1=${mac}`;
}

export interface AdaptyOverrides {
  readonly type?: string;
  readonly eventId?: string | null;
  readonly userId?: string | null;
  /** Dollars, e.g. 9.99; null when Adapty does not know. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; without it the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  /** Epoch ms of the event, and of the purchase unless that is given. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Anything else in `event_properties`, or in place of what was built; undefined removes a field. */
  readonly extra?: Payload;
}

/** Adapty writes microseconds and an offset without a colon. */
function adaptyTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000+0000');
}

/** One Adapty event; the first period of a subscription for 9.99 USD in the App Store unless told otherwise. */
export function adaptyEvent(overrides: AdaptyOverrides = {}): Payload {
  const { usd = 9.99, currency = 'USD', userId = 'user-hazel', occurredAt = A_MONDAY } = overrides;
  const { transactionId = storeTransactionId(), environment = 'Production' } = overrides;
  const { originalTransactionId = transactionId, eventId = randomUUID() } = overrides;
  const local = overrides.localPrice === undefined ? rough(usd, currency) : overrides.localPrice;
  const profileId = '7a0c5e10-0000-4000-8000-00000fa4e000';
  const purchasedAt = overrides.purchasedAt ?? occurredAt;
  return {
    profile_id: profileId,
    customer_user_id: userId,
    idfv: '00000000-0000-0000-0000-000000000000',
    profile_install_datetime: adaptyTime(A_MONDAY - 86_400_000),
    user_agent: 'LanternNotes/4.1 (iPhone; iOS 26.1) Darwin/25.0',
    email: 'hazel@example.com',
    event_type: overrides.type ?? 'subscription_started',
    event_datetime: adaptyTime(occurredAt),
    event_properties: {
      store: overrides.store ?? 'app_store',
      currency,
      price_usd: usd,
      price_local: local,
      original_price_usd: usd,
      original_price_local: local,
      proceeds_usd: usd === null ? null : usd * 0.85,
      proceeds_local: local === null ? null : local * 0.85,
      tax_amount_usd: 0,
      tax_amount_local: 0,
      profile_id: profileId,
      profile_event_id: eventId,
      profile_total_revenue_usd: 4321.5,
      environment,
      vendor_product_id: overrides.productId ?? 'lantern.plus.monthly',
      transaction_id: transactionId,
      original_transaction_id: originalTransactionId,
      event_datetime: adaptyTime(occurredAt),
      purchase_date: adaptyTime(purchasedAt),
      original_purchase_date: adaptyTime(purchasedAt),
      subscription_expires_at: adaptyTime(purchasedAt + 30 * 86_400_000),
      consecutive_payments: 1,
      paywall_name: 'spring_paywall',
      profile_country: 'US',
      store_country: 'US',
      profile_has_access_level: true,
      rate_after_first_year: false,
      ...overrides.extra,
    },
    event_api_version: 1,
    profiles_sharing_access_level: [{ profile_id: profileId, customer_user_id: 'user-of-a-relative' }],
  };
}

export interface SuperwallOverrides {
  readonly type?: string;
  readonly eventId?: string;
  readonly userId?: string | null;
  /** Dollars, e.g. 9.99; below zero for a refund, null when Superwall does not know. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; without it the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  readonly periodType?: string;
  /** Epoch ms of the event, and of the purchase unless that is given. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Anything else in `data`, or in place of what was built; undefined removes a field. */
  readonly extra?: Payload;
}

/** One Superwall event in the legacy format; a first purchase of 9.99 USD in the App Store unless told otherwise. */
export function superwallEvent(overrides: SuperwallOverrides = {}): Payload {
  const { type = 'initial_purchase', usd = 9.99, currency = 'USD', userId = 'user-hazel' } = overrides;
  const { transactionId = storeTransactionId(), environment = 'PRODUCTION' } = overrides;
  const { originalTransactionId = transactionId } = overrides;
  const occurredAt = overrides.occurredAt ?? A_MONDAY;
  const purchasedAt = overrides.purchasedAt ?? occurredAt;
  return {
    object: 'event',
    type,
    projectId: 4711,
    applicationId: 3,
    timestamp: occurredAt + 1500,
    data: {
      id: overrides.eventId ?? `${randomUUID()}:${type}`,
      name: type,
      bundleId: 'com.example.lanternnotes',
      cancelReason: null,
      commissionPercentage: 0.15,
      countryCode: 'US',
      currencyCode: currency,
      environment,
      exchangeRate: 1,
      expirationAt: purchasedAt + 30 * 86_400_000,
      isFamilyShare: false,
      isSmallBusiness: true,
      isTrialConversion: false,
      newProductId: null,
      offerCode: null,
      originalAppUserId: userId,
      originalTransactionId,
      periodType: overrides.periodType ?? 'NORMAL',
      price: usd,
      priceInPurchasedCurrency:
        overrides.localPrice === undefined ? rough(usd, currency) : overrides.localPrice,
      proceeds: usd === null ? null : usd * 0.85,
      productId: overrides.productId ?? 'lantern.plus.monthly',
      purchasedAt,
      store: overrides.store ?? 'APP_STORE',
      takehomePercentage: 0.85,
      taxPercentage: 0,
      transactionId,
      ts: occurredAt,
      ...overrides.extra,
    },
  };
}

/** Svix's headers for a body sent at `atSeconds`; without an id, of a new message. */
export function signSvix(
  body: Uint8Array | string,
  secret: string,
  atSeconds: number,
  messageId: string = made('msg'),
): Readonly<Record<`svix-${'id' | 'timestamp' | 'signature'}`, string>> {
  const mac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${messageId}.${atSeconds}.`)
    .update(body)
    .digest('base64');
  return { 'svix-id': messageId, 'svix-timestamp': String(atSeconds), 'svix-signature': `v1,${mac}` };
}

export interface PaddleEventOverrides {
  readonly eventId?: string;
  readonly type?: string;
  /** Epoch ms. */
  readonly occurredAt?: number;
  /** An event of Paddle's simulator. */
  readonly simulated?: boolean;
  /** Anything else in `data`, or in place of what was built; undefined removes a field. */
  readonly extra?: Payload;
}

/** Paddle writes microseconds. */
export function paddleTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '123Z');
}

/** The envelope around any Paddle entity. */
export function paddleEvent(type: string, data: Payload, overrides: PaddleEventOverrides = {}): Payload {
  const prefix = overrides.simulated === true ? 'ntfsim' : '';
  return {
    event_id: overrides.eventId ?? made(`${prefix}evt`),
    event_type: overrides.type ?? type,
    occurred_at: paddleTime(overrides.occurredAt ?? A_MONDAY),
    notification_id: made(prefix === '' ? 'ntf' : 'ntfsimntf'),
    data: { ...data, ...overrides.extra },
  };
}

interface PaddleTotals {
  readonly total: number;
  readonly tax: number;
  readonly credit?: number;
  readonly currency: string;
}

/** Paddle keeps a twentieth. */
export function paddleTotals({ total, tax, credit = 0, currency }: PaddleTotals): Payload {
  const fee = Math.round(total / 20);
  return {
    subtotal: String(total - tax),
    discount: '0',
    tax: String(tax),
    total: String(total),
    credit: String(credit),
    credit_to_balance: '0',
    balance: '0',
    grand_total: String(total - credit),
    grand_total_tax: String(tax),
    fee: String(fee),
    earnings: String(total - tax - fee),
    currency_code: currency,
  };
}

export interface PaddleTransactionOverrides extends PaddleEventOverrides {
  readonly userId?: string | null;
  readonly transactionId?: string;
  /** Minor units of `currency`, tax included. */
  readonly amount?: number;
  readonly tax?: number;
  /** What of the amount the customer's credit paid. */
  readonly credit?: number;
  readonly currency?: string;
  readonly origin?: string;
  readonly subscriptionId?: string | null;
  readonly customerId?: string;
  readonly productId?: string;
  /** What Paddle pays out, if not the same amount in USD; null as long as that is not known. */
  readonly payout?: { readonly amount: number; readonly currency: string } | null;
}

/** `transaction.completed` for the first month of a subscription, 12.00 USD, unless told otherwise. */
export function paddleTransaction(overrides: PaddleTransactionOverrides = {}): Payload {
  const { amount = 1200, tax = 0, credit = 0, currency = 'USD', userId = 'user-hazel' } = overrides;
  const { payout = { amount, currency: 'USD' }, subscriptionId = made('sub') } = overrides;
  const { occurredAt = A_MONDAY, productId = 'pro_LanternPlus' } = overrides;
  const totals = paddleTotals({ total: amount, tax, credit, currency });
  const itemTotals = {
    subtotal: String(amount - tax),
    discount: '0',
    tax: String(tax),
    total: String(amount),
  };
  const transaction = {
    id: overrides.transactionId ?? made('txn'),
    status: 'completed',
    customer_id: overrides.customerId ?? made('ctm'),
    address_id: made('add'),
    business_id: null,
    custom_data: userId === null ? null : { app_user_id: userId },
    currency_code: currency,
    origin: overrides.origin ?? 'web',
    subscription_id: subscriptionId,
    invoice_number: '4711-10023',
    collection_mode: 'automatic',
    discount_id: null,
    items: [
      {
        price: {
          id: 'pri_LanternMonthly',
          product_id: productId,
          type: 'standard',
          name: 'Monthly',
          description: 'Lantern Plus, monthly',
          status: 'active',
          tax_mode: 'account_setting',
          billing_cycle: { interval: 'month', frequency: 1 },
          trial_period: null,
          unit_price: { amount: String(amount), currency_code: currency },
          unit_price_overrides: [],
          quantity: { minimum: 1, maximum: 1 },
          custom_data: null,
        },
        quantity: 1,
      },
    ],
    details: {
      totals,
      payout_totals:
        payout === null
          ? null
          : {
              ...paddleTotals({ total: payout.amount, tax: 0, currency: payout.currency }),
              exchange_rate: '1',
            },
      tax_rates_used: [{ tax_rate: '0', totals: itemTotals }],
      line_items: [
        {
          id: made('txnitm'),
          price_id: 'pri_LanternMonthly',
          quantity: 1,
          tax_rate: '0',
          unit_totals: itemTotals,
          totals: itemTotals,
          product: { id: productId, name: 'Lantern Plus', status: 'active', tax_category: 'standard' },
        },
      ],
    },
    payments: [
      {
        payment_attempt_id: '5fa4e000-0000-4000-8000-000000000001',
        amount: String(amount - credit),
        status: 'captured',
        error_code: null,
        method_details: { type: 'card' },
        created_at: paddleTime(occurredAt - 2000),
        captured_at: paddleTime(occurredAt - 1000),
      },
    ],
    billed_at: paddleTime(occurredAt - 1000),
    created_at: paddleTime(occurredAt - 60_000),
    updated_at: paddleTime(occurredAt),
  };
  return paddleEvent('transaction.completed', transaction, overrides);
}

/** The `Paddle-Signature` header for a body sent at `atSeconds`. */
export function signPaddle(body: Uint8Array | string, secret: string, atSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${atSeconds}:`).update(body).digest('hex');
  return `ts=${atSeconds};h1=${mac}`;
}

/** The headers by which each provider proves a body that it sends at that moment (epoch ms), now unless told otherwise. */
export const PROOFS: Readonly<
  Record<ProviderName, (body: Buffer, secret: string, at?: number) => Readonly<Record<string, string>>>
> = {
  revenuecat: (_, secret) => ({ authorization: secret }),
  adapty: (_, secret) => ({ authorization: secret }),
  superwall: (body, secret, at = Date.now()) => ({ ...signSvix(body, secret, seconds(at)) }),
  stripe: (body, secret, at = Date.now()) => ({ 'stripe-signature': signStripe(body, secret, seconds(at)) }),
  paddle: (body, secret, at = Date.now()) => ({ 'paddle-signature': signPaddle(body, secret, seconds(at)) }),
};
