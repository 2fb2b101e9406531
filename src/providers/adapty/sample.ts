import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../domain/time.ts';
import { approximateLocalPrice, SAMPLE_TIME, storeTransactionId } from '../shared/sample.ts';
import type { Payload, ProviderSample } from '../shared/sample.ts';
import { tokenHeaders } from '../shared/static-token.ts';

export interface AdaptyOverrides {
  readonly type?: string;
  readonly eventId?: string | null;
  readonly userId?: string | null;
  /** Dollars, e.g. 9.99; null when unknown to Adapty. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; by default the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  /** Epoch ms of the event, and by default of the purchase. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Fields to add to `event_properties` or to replace; undefined removes a field. */
  readonly extra?: Payload;
}

/** Adapty writes microseconds and an offset without a colon. */
function adaptyTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000+0000');
}

/** Builds an Adapty event; by default the first period of a subscription for 9.99 USD in the App Store. */
export function adaptyEvent(overrides: AdaptyOverrides = {}): Payload {
  const { usd = 9.99, currency = 'USD', userId = 'user-hazel', occurredAt = SAMPLE_TIME } = overrides;
  const { transactionId = storeTransactionId(), environment = 'Production' } = overrides;
  const { originalTransactionId = transactionId, eventId = randomUUID() } = overrides;
  const local =
    overrides.localPrice === undefined ? approximateLocalPrice(usd, currency) : overrides.localPrice;
  const profileId = '7a0c5e10-0000-4000-8000-00000fa4e000';
  const purchasedAt = overrides.purchasedAt ?? occurredAt;
  return {
    profile_id: profileId,
    customer_user_id: userId,
    idfv: '00000000-0000-0000-0000-000000000000',
    profile_install_datetime: adaptyTime(SAMPLE_TIME - DAY_MS),
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
      subscription_expires_at: adaptyTime(purchasedAt + 30 * DAY_MS),
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

export const adaptySample: ProviderSample = {
  sandboxPurchase: ({ id, userId, occurredAt, cents, code }) => ({
    sourceEventId: id,
    payload: adaptyEvent({
      eventId: id,
      transactionId: id,
      userId,
      occurredAt,
      usd: cents / 100,
      environment: 'Sandbox',
      ...(code && { store: code.namespace, extra: { promotional_offer_id: code.value } }),
    }),
  }),
  sign: tokenHeaders,
};
