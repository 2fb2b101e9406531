/** Writes providers' exports as their documentation describes them, from sales. */
import type { ProviderName } from '../../src/providers/index.ts';
import {
  adaptyRefund,
  PAYLOADS,
  paddleAdjustment,
  paddleTransaction,
  revenuecatRefund,
  stripeRefund,
  superwallRefund,
} from './provider-fixtures.ts';
import type { Payload, Sale } from './provider-fixtures.ts';

/** A sale as an export lists it. */
export interface ListedSale extends Sale {
  /** When the whole amount was refunded, epoch ms; null if it was not. */
  readonly refundedAt: number | null;
}

type Cells = Readonly<Record<string, string | null>>;

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Returns CSV with the columns of the first row. */
export function csvOf(rows: readonly Cells[], eol = '\r\n'): string {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column] ?? ''))];
  return lines.map((cells) => cells.map(quoted).join(',') + eol).join('');
}

const dollars = (cents: number): string => `${cents < 0 ? '-' : ''}${(Math.abs(cents) / 100).toFixed(2)}`;
const spaced = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

/** Rows of RevenueCat's scheduled data export: one for each transaction, in UTC. */
export function revenuecatRows(sales: readonly ListedSale[]): readonly Cells[] {
  return sales.map(({ userId, cents, ref, occurredAt, refundedAt }) => ({
    rc_original_app_user_id: '$RCAnonymousID:87c6049c58069238dce29853916d624c',
    rc_last_seen_app_user_id_alias: userId,
    country: 'US',
    product_identifier: 'lantern.plus.monthly',
    start_time: spaced(occurredAt),
    end_time: spaced(occurredAt + 30 * 86_400_000),
    store: 'app_store',
    is_auto_renewable: 'true',
    is_trial_period: 'false',
    is_in_intro_offer_period: 'false',
    is_sandbox: 'false',
    price_in_usd: refundedAt === null ? dollars(cents) : '0',
    purchase_price_in_usd: dollars(cents),
    takehome_percentage: '0.85',
    store_transaction_id: ref,
    original_store_transaction_id: ref,
    refunded_at: refundedAt === null ? '' : spaced(refundedAt),
    purchased_currency: 'USD',
    price_in_purchased_currency: refundedAt === null ? dollars(cents) : '0',
    purchase_price_in_purchased_currency: dollars(cents),
    renewal_number: '1',
    is_trial_conversion: 'false',
    ownership_type: 'PURCHASED',
    custom_subscriber_attributes: '{"note": "two\nlines, and a comma"}',
  }));
}

/** Rows of Adapty's Amazon S3 export: one for each event. */
export function adaptyRows(sales: readonly ListedSale[]): readonly Cells[] {
  return sales.flatMap(({ userId, cents, ref, occurredAt, refundedAt }) => {
    const row = (type: string, at: number, reason: string) => ({
      profile_id: '7a0c5e10-0000-4000-8000-00000fa4e000',
      event_type: type,
      event_datetime: new Date(at).toISOString().replace('Z', '000+0000'),
      transaction_id: ref,
      original_transaction_id: ref,
      subscription_expires_at: '',
      environment: 'Production',
      revenue_usd: dollars(cents),
      proceeds_usd: dollars(cents * 0.85),
      revenue_local: dollars(cents),
      currency: 'USD',
      customer_user_id: userId,
      store: 'app_store',
      product_id: 'lantern.plus.monthly',
      paywall_name: 'Spring,\n"2026"',
      cancellation_reason: reason,
    });
    return [
      row('subscription_started', occurredAt, ''),
      ...(refundedAt === null ? [] : [row('subscription_refunded', refundedAt, 'refund')]),
    ];
  });
}

/** Rows of a query of Superwall's revenue events, as ClickHouse writes CSV with names. */
export function superwallRows(sales: readonly ListedSale[]): readonly Cells[] {
  const micros = (at: number) => `${new Date(at).toISOString().slice(0, 23).replace('T', ' ')}000`;
  return sales.flatMap(({ userId, cents, ref, occurredAt, refundedAt }) => {
    const row = (name: string, at: number, amount: number) => ({
      id: `${ref}:${name}`,
      name,
      ts: micros(at),
      purchasedAt: micros(occurredAt),
      transactionId: ref,
      store: 'APP_STORE',
      price: dollars(amount),
      priceInPurchasedCurrency: dollars(amount),
      currencyCode: 'USD',
      productId: 'lantern.plus.monthly',
      environment: 'PRODUCTION',
      periodType: 'NORMAL',
      isTrialConversion: '0',
      appUserId: userId,
      source: 'integration',
      cancelReason: String.raw`\N`,
    });
    return [
      row('initial_purchase', occurredAt, cents),
      ...(refundedAt === null ? [] : [row('cancellation', refundedAt, -cents)]),
    ];
  });
}

/** Rows of Stripe's itemized balance report: one for each movement, in UTC. */
export function stripeRows(sales: readonly ListedSale[]): readonly Cells[] {
  return sales.flatMap(({ userId, cents, ref, occurredAt, refundedAt }) => {
    const row = (category: string, source: string, at: number, amount: number) => ({
      balance_transaction_id: `txn_${source}`,
      created_utc: spaced(at),
      currency: 'usd',
      gross: dollars(amount),
      fee: '0.59',
      net: dollars(amount - 59),
      reporting_category: category,
      source_id: source,
      description: 'Subscription update,\n"Lantern Plus"',
      customer_facing_amount: dollars(cents),
      customer_facing_currency: 'usd',
      customer_id: `cus_${ref}`,
      charge_id: `ch_${ref}`,
      payment_intent_id: `pi_${ref}`,
      invoice_id: `in_${ref}`,
      subscription_id: `sub_${ref}`,
      payment_method_type: 'card',
      'payment_metadata[app_user_id]': userId,
    });
    return [
      row('charge', `ch_${ref}`, occurredAt, cents),
      ...(refundedAt === null ? [] : [row('refund', `re_${ref}`, refundedAt, -cents)]),
    ];
  });
}

const objectOf = (event: Payload) => (event['data'] as { readonly object: Payload }).object;

/** The invoices of Stripe's API, one on each line. */
export function stripeInvoices(sales: readonly ListedSale[]): string {
  return sales.map((sale) => `${JSON.stringify(objectOf(purchaseOf('stripe', sale)))}\n`).join('');
}

/** A page of the refunds of Stripe's API. */
export function stripeRefunds(sales: readonly ListedSale[]): string {
  const data = sales.flatMap((sale) =>
    sale.refundedAt === null ? [] : [objectOf(refundOf('stripe', sale, sale.refundedAt))],
  );
  return JSON.stringify({ object: 'list', data, has_more: false }, null, 2);
}

/** The transactions of Paddle's API, one on each line. */
export function paddleTransactions(sales: readonly ListedSale[]): string {
  const entities = sales.map(
    ({ userId, cents: amount, ref, occurredAt }) =>
      paddleTransaction({ userId, amount, occurredAt, transactionId: `txn_${ref}` })['data'],
  );
  return entities.map((entity) => `${JSON.stringify(entity)}\n`).join('');
}

/** A page of the adjustments of Paddle's API. */
export function paddleAdjustments(sales: readonly ListedSale[]): string {
  const data = sales.flatMap((sale) =>
    sale.refundedAt === null ? [] : [refundOf('paddle', sale, sale.refundedAt)['data']],
  );
  return JSON.stringify({ data, meta: { request_id: 'x', pagination: { has_more: false } } }, null, 2);
}

/** The webhook that reports the refund of a whole sale, with the ids that the exports have. */
export function refundOf(provider: ProviderName, sale: Sale, at: number): Payload {
  const { cents, ref, userId } = sale;
  const store = { userId, transactionId: ref, usd: cents / 100, occurredAt: at };
  switch (provider) {
    case 'revenuecat':
      return revenuecatRefund(store);
    case 'adapty':
      return adaptyRefund(store);
    case 'superwall':
      return superwallRefund({ ...store, purchasedAt: sale.occurredAt });
    case 'stripe':
      return stripeRefund({
        id: `re_${ref}`,
        amount: cents,
        paymentIntentId: `pi_${ref}`,
        chargeId: `ch_${ref}`,
        occurredAt: at,
      });
    case 'paddle':
      return paddleAdjustment({
        adjustmentId: `adj_${ref}`,
        amount: cents,
        transactionId: `txn_${ref}`,
        occurredAt: at,
      });
  }
}

/** The webhook that reports a sale. */
export function purchaseOf(provider: ProviderName, sale: Sale): Payload {
  return PAYLOADS[provider].purchase(sale, false);
}
