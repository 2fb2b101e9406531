import { createHmac, randomUUID } from 'node:crypto';
import { DAY_MS } from '../../domain/time.ts';
import {
  approximateLocalPrice,
  newProviderId,
  SAMPLE_TIME,
  storeTransactionId,
  toSeconds,
} from '../shared/sample.ts';
import type { Payload, ProviderSample } from '../shared/sample.ts';

export interface SuperwallOverrides {
  readonly type?: string;
  readonly eventId?: string;
  readonly userId?: string | null;
  /** Dollars, e.g. 9.99; negative for a refund, null when unknown to Superwall. */
  readonly usd?: number | null;
  readonly currency?: string | null;
  /** In `currency`; by default the dollars at a rough rate. */
  readonly localPrice?: number | null;
  readonly transactionId?: string | null;
  readonly originalTransactionId?: string | null;
  readonly productId?: string;
  readonly store?: string;
  readonly environment?: string | null;
  readonly periodType?: string;
  /** Epoch ms of the event, and by default of the purchase. */
  readonly occurredAt?: number;
  readonly purchasedAt?: number;
  /** Fields to add to `data` or to replace; undefined removes a field. */
  readonly extra?: Payload;
}

/** Builds a Superwall event in the legacy format; by default a first purchase of 9.99 USD in the App Store. */
export function superwallEvent(overrides: SuperwallOverrides = {}): Payload {
  const { type = 'initial_purchase', usd = 9.99, currency = 'USD', userId = 'user-hazel' } = overrides;
  const { transactionId = storeTransactionId(), environment = 'PRODUCTION' } = overrides;
  const { originalTransactionId = transactionId } = overrides;
  const occurredAt = overrides.occurredAt ?? SAMPLE_TIME;
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
      expirationAt: purchasedAt + 30 * DAY_MS,
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
        overrides.localPrice === undefined ? approximateLocalPrice(usd, currency) : overrides.localPrice,
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

/** Returns Svix's headers for a body sent at `atSeconds`; by default with a new message id. */
export function signSvix(
  body: Uint8Array | string,
  secret: string,
  atSeconds: number,
  messageId: string = newProviderId('msg'),
): Readonly<Record<`svix-${'id' | 'timestamp' | 'signature'}`, string>> {
  const mac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${messageId}.${atSeconds}.`)
    .update(body)
    .digest('base64');
  return { 'svix-id': messageId, 'svix-timestamp': String(atSeconds), 'svix-signature': `v1,${mac}` };
}

export const superwallSample: ProviderSample = {
  sandboxPurchase: ({ id, userId, occurredAt, cents, code }) => ({
    sourceEventId: id,
    payload: superwallEvent({
      eventId: id,
      transactionId: id,
      userId,
      occurredAt,
      usd: cents / 100,
      environment: 'SANDBOX',
      ...(code && { store: code.namespace.toUpperCase(), extra: { offerCode: code.value } }),
    }),
  }),
  sign: (body, secret, at) => signSvix(body, secret, toSeconds(at)),
};
