import { HOUR_MS } from '../../domain/time.ts';
import type { TimestampedHmacScheme } from '../shared/timestamped-hmac.ts';

/**
 * Longer than the two and a half hours in which RevenueCat repeats a webhook: it is not certain that it signs each attempt anew, and
 * an old webhook that somebody sends again is a duplicate.
 */
const TOLERANCE_MS = 3 * HOUR_MS;

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
    toleranceMs: TOLERANCE_MS,
    clockStepMs: 1000,
  }),
) as [TimestampedHmacScheme, TimestampedHmacScheme];
