import { createHmac } from 'node:crypto';
import { newProviderId, SAMPLE_TIME, toSeconds } from '../shared/sample.ts';
import type { Payload, ProviderSample } from '../shared/sample.ts';
import { SIMULATED_EVENT_PREFIX } from './parse.ts';

export interface PaddleEventOverrides {
  readonly eventId?: string;
  readonly type?: string;
  /** Epoch ms. */
  readonly occurredAt?: number;
  /** Whether the event comes from Paddle's simulator. */
  readonly simulated?: boolean;
  /** Fields to add to `data` or to replace; undefined removes a field. */
  readonly extra?: Payload;
}

/** Paddle writes microseconds. */
export function paddleTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '123Z');
}

/** Builds the event around a Paddle entity. */
export function paddleEvent(type: string, data: Payload, overrides: PaddleEventOverrides = {}): Payload {
  const prefix = overrides.simulated === true ? 'ntfsim' : '';
  return {
    event_id: overrides.eventId ?? newProviderId(`${prefix}evt`),
    event_type: overrides.type ?? type,
    occurred_at: paddleTime(overrides.occurredAt ?? SAMPLE_TIME),
    notification_id: newProviderId(prefix === '' ? 'ntf' : 'ntfsimntf'),
    data: { ...data, ...overrides.extra },
  };
}

interface PaddleTotals {
  readonly total: number;
  readonly tax: number;
  readonly credit?: number;
  readonly currency: string;
}

/** Builds totals with a fee of 5 percent for Paddle. */
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
  /** The part of the amount that the customer's credit paid. */
  readonly credit?: number;
  readonly currency?: string;
  readonly origin?: string;
  readonly subscriptionId?: string | null;
  readonly customerId?: string;
  readonly productId?: string;
  /** What Paddle pays out; by default the same amount in USD, null while unknown. */
  readonly payout?: { readonly amount: number; readonly currency: string } | null;
}

/** Builds `transaction.completed`; by default for the first month of a subscription at 12.00 USD. */
export function paddleTransaction(overrides: PaddleTransactionOverrides = {}): Payload {
  const { amount = 1200, tax = 0, credit = 0, currency = 'USD', userId = 'user-hazel' } = overrides;
  const { payout = { amount, currency: 'USD' }, subscriptionId = newProviderId('sub') } = overrides;
  const { occurredAt = SAMPLE_TIME, productId = 'pro_LanternPlus' } = overrides;
  const totals = paddleTotals({ total: amount, tax, credit, currency });
  const itemTotals = {
    subtotal: String(amount - tax),
    discount: '0',
    tax: String(tax),
    total: String(amount),
  };
  const transaction = {
    id: overrides.transactionId ?? newProviderId('txn'),
    status: 'completed',
    customer_id: overrides.customerId ?? newProviderId('ctm'),
    address_id: newProviderId('add'),
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
          id: newProviderId('txnitm'),
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

/** Returns the `Paddle-Signature` header for a body sent at `atSeconds`. */
export function signPaddle(body: Uint8Array | string, secret: string, atSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${atSeconds}:`).update(body).digest('hex');
  return `ts=${atSeconds};h1=${mac}`;
}

export const paddleSample: ProviderSample = {
  // Only events of Paddle's simulator are marked as sandbox events, by their id.
  sandboxPurchase({ id, userId, occurredAt, cents: amount, code }) {
    const sourceEventId = `${SIMULATED_EVENT_PREFIX}${id}`;
    const payload = paddleTransaction({
      eventId: sourceEventId,
      transactionId: id,
      userId,
      occurredAt,
      amount,
      ...(code && { extra: { discount_id: code.value } }),
    });
    return { sourceEventId, payload };
  },
  sign: (body, secret, at) => ({ 'paddle-signature': signPaddle(body, secret, toSeconds(at)) }),
};
