import type { TimestampedHmacScheme } from '../shared/timestamped-hmac.ts';

/**
 * The signature of RevenueCat's webhooks, `t=<seconds>,v1=<hex>`, under each of the two names that its header has in public
 * receivers and guides. Neither could be verified (docs/providers/revenuecat.md).
 */
export const SIGNATURES = ['x-revenuecat-webhook-signature', 'x-revenuecat-signature'].map(
  (header): TimestampedHmacScheme => ({
    header,
    separator: ',',
    timeKey: 't',
    signatureKey: 'v1',
    joint: '.',
    toleranceMs: 300_000,
    clockStepMs: 1000,
  }),
) as [TimestampedHmacScheme, TimestampedHmacScheme];
