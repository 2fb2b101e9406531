import { createHmac, randomUUID } from 'node:crypto';
import type { PurchaseCode } from '../../domain/purchase-codes.ts';
import { DAY_MS } from '../../domain/time.ts';
import { approximateLocalPrice, SAMPLE_TIME, storeTransactionId, toSeconds } from '../shared/sample.ts';
import type { Payload, ProviderSample } from '../shared/sample.ts';
import { splitSignedToken } from '../shared/signed-token.ts';
import { tokenHeaders } from '../shared/static-token.ts';
import { SIGNATURES } from './signatures.ts';

export interface RevenuecatOverrides {
  readonly type?: string;
  readonly eventId?: string;
  readonly userId?: string;
  readonly originalUserId?: string;
  readonly aliases?: readonly string[];
  /** Dollars, e.g. 9.99; negative for a refund, null when unknown to RevenueCat. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; by default the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  /** The number of the period that was paid, from 1; null for a purchase that does not renew. */
  readonly renewalNumber?: number | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  readonly periodType?: string;
  /** Epoch ms of the event, and by default of the purchase. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Fields to add to the event or to replace; undefined removes a field. */
  readonly extra?: Payload;
}

/** Builds a RevenueCat event; by default a first purchase of 9.99 USD in the App Store. */
export function revenuecatEvent(overrides: RevenuecatOverrides = {}): Payload {
  const occurredAt = overrides.occurredAt ?? SAMPLE_TIME;
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
      expiration_at_ms: occurredAt + 30 * DAY_MS,
      id: overrides.eventId ?? randomUUID().toUpperCase(),
      is_family_share: false,
      offer_code: null,
      original_app_user_id: overrides.originalUserId ?? userId,
      original_transaction_id: originalTransactionId,
      period_type: overrides.periodType ?? 'NORMAL',
      presented_offering_id: 'spring_paywall',
      price: usd,
      price_in_purchased_currency:
        overrides.localPrice === undefined ? approximateLocalPrice(usd, currency) : overrides.localPrice,
      product_id: overrides.productId ?? 'lantern.plus.monthly',
      purchased_at_ms: overrides.purchasedAt ?? occurredAt,
      renewal_number: overrides.renewalNumber === undefined ? 1 : overrides.renewalNumber,
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

/** Where an event states a code: an attribute of the subscriber, or the offer of a store. */
function fieldsOf({ namespace, value }: PurchaseCode): Payload {
  const attribute = namespace === 'attribute' ? 'tributary_code' : '$campaign';
  return namespace === 'attribute' || namespace === 'campaign'
    ? { subscriber_attributes: { [attribute]: { value } } }
    : { store: namespace === 'play_store' ? 'PLAY_STORE' : 'APP_STORE', offer_code: value };
}

export const revenuecatSample: ProviderSample = {
  sandboxPurchase: ({ id, userId, occurredAt, cents, code }) => ({
    sourceEventId: id,
    payload: revenuecatEvent({
      eventId: id,
      transactionId: id,
      userId,
      occurredAt,
      usd: cents / 100,
      environment: 'SANDBOX',
      ...(code && { extra: fieldsOf(code) }),
    }),
  }),
  sign: (body, secret, at) => {
    const { token, signingSecret } = splitSignedToken(secret);
    const headers = tokenHeaders(body, token);
    if (signingSecret === null) return headers;
    const [{ header }] = SIGNATURES;
    const time = String(toSeconds(at));
    const signature = createHmac('sha256', signingSecret).update(`${time}.`).update(body).digest('hex');
    return { ...headers, [header]: `t=${time},v1=${signature}` };
  },
};
