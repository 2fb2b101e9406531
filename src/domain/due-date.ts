import { DAY_MS } from './time.ts';

/**
 * Returns the due date of a commission, epoch ms: the payment's own date plus the app's hold period, days. A commission
 * may be paid out from then on. Reversals take the due date of their earning, so that both net in the same payout.
 */
export function dueAtOf(paymentOccurredAt: number, holdPeriodDays: number): number {
  return paymentOccurredAt + holdPeriodDays * DAY_MS;
}
