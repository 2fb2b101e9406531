import type { Evaluation } from './evaluation.ts';
import { share } from './money.ts';
import type { PaymentSnapshot } from './payment-snapshot.ts';

/**
 * Returns what is left of the earning and the revenue of a duplicate, as opposite entries. Refunds and disputes count
 * for the row that stays. The entries have the time of the payment, so that they correct the day that counted it twice.
 */
export function correctDuplicate(
  payment: PaymentSnapshot,
): Pick<Evaluation, 'likelyCause' | 'correction' | 'revenue'> {
  const { likelyCause, occurredAt, earning } = payment;
  const revenueCents = payment.revenueCents ?? 0;
  const leftCents = (earning?.amountCents ?? 0) - payment.reversedCents - payment.correctedCents;
  const leftBaseCents =
    earning?.policyBaseCents == null
      ? revenueCents
      : leftOfPolicyBase(payment, earning.policyBaseCents, revenueCents);
  return {
    likelyCause,
    correction: leftCents > 0 ? { amountCents: -leftCents, baseCents: 0 - leftBaseCents } : null,
    revenue: revenueCents === 0 ? [] : [{ adjustmentId: null, amountCents: -revenueCents, occurredAt }],
  };
}

/**
 * Returns the part of a policy's base that is left, US cents: that of the revenue which refunds and disputes have left. They may be booked
 * at the row that stays by now.
 */
function leftOfPolicyBase(payment: PaymentSnapshot, policyBaseCents: number, revenueCents: number): number {
  const baseCents = payment.baseCents ?? 0;
  return policyBaseCents - share(policyBaseCents, baseCents - revenueCents, baseCents);
}
