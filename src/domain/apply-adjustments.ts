import { convertToUsdCents } from './exchange-rate.ts';
import { share } from './money.ts';
import type { AdjustmentId, EventId } from './ids.ts';
import type { AdjustmentSnapshot, PaymentSnapshot } from './payment-snapshot.ts';
import type { ReversalEntry, RevenueEntry, BookedAdjustment, Evaluation } from './evaluation.ts';

/** What the ledger of a payment has, US cents. */
interface BookedSums {
  readonly earnedCents: number;
  /** The part of the payment's base that is not in its revenue entries. */
  readonly refundedCents: number;
  /** The base of an earning by a policy. Null for another one, whose base is that of the payment. */
  readonly policyBaseCents: number | null;
}

/**
 * Books the payment's refunds and disputes. Returns the reversals of the commission and the revenue entries that each
 * adds.
 */
export function applyAdjustments(
  payment: PaymentSnapshot,
  baseCents: number,
  { earnedCents, refundedCents, policyBaseCents }: BookedSums,
): Pick<Evaluation, 'reversals' | 'revenue' | 'booked' | 'unconverted' | 'converted'> {
  const reversals: ReversalEntry[] = [];
  const revenue: RevenueEntry[] = [];
  const booked: BookedAdjustment[] = [];
  const refundedOf = (cents: number, minor: number) => share(cents, minor, payment.amountMinor);
  let bookedMinor = payment.adjustments.reduce((sum, a) => sum + a.bookedMinor, 0);
  let reversed = payment.reversedCents;
  let refunded = refundedCents;
  const { changes, unconverted, converted } = adjustmentChanges(payment, baseCents);
  for (const { adjustmentId, eventId, occurredAt, fromMinor, toMinor, stated } of changes) {
    const beforeMinor = bookedMinor;
    bookedMinor += toMinor - fromMinor;
    booked.push({ adjustmentId, bookedMinor: toMinor, ...stated });
    const shouldReverse = refundedOf(earnedCents, bookedMinor);
    const shouldRefund = refundedOf(baseCents, bookedMinor);
    const amountCents = reversed - shouldReverse;
    const revenueCents = refunded - shouldRefund;
    if (amountCents !== 0) {
      const changedBaseCents =
        policyBaseCents === null
          ? revenueCents
          : refundedOf(policyBaseCents, beforeMinor) - refundedOf(policyBaseCents, bookedMinor);
      reversals.push({ adjustmentId, eventId, occurredAt, amountCents, baseCents: changedBaseCents });
    }
    if (revenueCents !== 0) revenue.push({ adjustmentId, amountCents: revenueCents, occurredAt });
    reversed = shouldReverse;
    refunded = shouldRefund;
  }
  return { reversals, revenue, booked, unconverted, converted };
}

interface AdjustmentChange {
  readonly adjustmentId: AdjustmentId;
  readonly fromMinor: number;
  readonly toMinor: number;
  readonly eventId: EventId;
  readonly occurredAt: number;
  readonly stated: Pick<BookedAdjustment, 'eventId' | 'convertedCents'>;
}

/** Whether a running total of a charge contains a refund: it was made before the total was stated. */
function containsRefund(total: AdjustmentSnapshot, refund: AdjustmentSnapshot): boolean {
  return (
    total.isTotal &&
    !refund.isTotal &&
    refund.kind === 'refund' &&
    refund.madeAt !== null &&
    refund.madeAt <= total.statedAt &&
    (refund.paymentRef === total.paymentRef || refund.paymentRef === total.ref)
  );
}

/** Orders adjustments by their times, and those of one millisecond by their ids: the database reads them in any order. */
function inOrder(
  a: Pick<AdjustmentSnapshot, 'adjustmentId' | 'occurredAt'>,
  b: Pick<AdjustmentSnapshot, 'adjustmentId' | 'occurredAt'>,
): number {
  return a.occurredAt - b.occurredAt || (a.adjustmentId < b.adjustmentId ? -1 : 1);
}

/** Returns the refunds that a running total contains and that were given back since it was stated, the latest last. */
function givenBackSince(
  total: AdjustmentSnapshot,
  adjustments: readonly AdjustmentSnapshot[],
): readonly AdjustmentSnapshot[] {
  return adjustments
    .filter(
      (a) =>
        a.state === 'reversed' &&
        a.currency === total.currency &&
        a.occurredAt > total.statedAt &&
        containsRefund(total, a),
    )
    .toSorted(inOrder);
}

/**
 * Returns how much of each credit note returns what was paid outside Stripe, in minor units: that part of the payment has earned nothing, so
 * it is not taken back again. What was paid outside comes back first, to the earliest note.
 */
function returnedOutside(adjustments: readonly AdjustmentSnapshot[]): ReadonlyMap<AdjustmentId, number> {
  const applied = adjustments.filter(({ state }) => state === 'applied');
  const left = new Map<string, number>();
  for (const { kind, currency, amountMinor } of applied)
    if (kind === 'out_of_band') left.set(currency, (left.get(currency) ?? 0) + amountMinor);
  const returned = new Map<AdjustmentId, number>();
  for (const { kind, adjustmentId, currency, amountMinor } of applied.toSorted(inOrder)) {
    if (kind !== 'credit_note') continue;
    const part = Math.min(amountMinor, left.get(currency) ?? 0);
    left.set(currency, (left.get(currency) ?? 0) - part);
    returned.set(adjustmentId, part);
  }
  return returned;
}

/** Returns what the adjustments book or unbook, in the order in which it happened, and which cannot be converted yet. */
function adjustmentChanges(
  payment: PaymentSnapshot,
  baseCents: number,
): { readonly changes: readonly AdjustmentChange[] } & Pick<Evaluation, 'unconverted' | 'converted'> {
  const { adjustments } = payment;
  const undoings = adjustments.filter((a) => a.reversesAll && a.state === 'reversed').toSorted(inOrder);
  const outside = returnedOutside(adjustments);
  const changes: AdjustmentChange[] = [];
  const unconverted: EventId[] = [];
  const converted: EventId[] = [];
  for (const adjustment of adjustments) {
    if (adjustment.reversesAll) continue;
    const undoneBy = undoings.find(
      (u) => u.kind === adjustment.kind && u.occurredAt >= adjustment.occurredAt,
    );
    const isContained = adjustments.some((total) => containsRefund(total, adjustment));
    const applies = adjustment.state === 'applied' && undoneBy === undefined && !isContained;
    const givenBack = givenBackSince(adjustment, adjustments);
    const ownMinor = adjustment.amountMinor - (outside.get(adjustment.adjustmentId) ?? 0);
    const amountMinor = givenBack.reduce((rest, a) => rest - a.amountMinor, ownMinor);
    const counted = { ...adjustment, amountMinor: Math.max(0, amountMinor) };
    const toMinor = applies ? inPaymentCurrency(payment, baseCents, counted) : 0;
    if (toMinor === null) unconverted.push(adjustment.eventId);
    else if (adjustment.currency !== payment.currency) converted.push(adjustment.eventId);
    if (toMinor === null || toMinor === adjustment.bookedMinor) continue;
    const { adjustmentId, bookedMinor: fromMinor } = adjustment;
    // Failures can arrive in another order than they happened: the one of this amount is the new one, otherwise the latest.
    const newlyGiven = givenBack.findLast((a) => a.amountMinor === fromMinor - toMinor) ?? givenBack.at(-1);
    const { eventId, occurredAt } = undoneBy ?? newlyGiven ?? adjustment;
    const stated = {
      eventId: adjustment.eventId,
      convertedCents: applies && adjustment.usdCents === null ? convertedAdjustment(counted) : null,
    };
    changes.push({ adjustmentId, fromMinor, toMinor, eventId, occurredAt, stated });
  }
  return { changes: changes.toSorted(inOrder), unconverted, converted };
}

/** Returns the USD value of an adjustment at the reference rate. Null without a rate. */
function convertedAdjustment({ referenceRate, amountMinor, currency }: AdjustmentSnapshot): number | null {
  return referenceRate === null ? null : convertToUsdCents(amountMinor, currency, referenceRate);
}

/**
 * Returns an adjustment's amount in minor units of the payment's currency. Amounts in different currencies are compared in
 * USD: the payment with the value that its provider states, else with its converted base, and the adjustment with the value that
 * its provider states, else at the reference rate, which is stored with it when it is booked. Null when the adjustment has no USD
 * value.
 */
function inPaymentCurrency(
  payment: PaymentSnapshot,
  baseCents: number,
  adjustment: AdjustmentSnapshot,
): number | null {
  if (adjustment.currency === payment.currency) return adjustment.amountMinor;
  const usdCents =
    adjustment.usdCents ??
    (adjustment.currency === 'USD' ? adjustment.amountMinor : convertedAdjustment(adjustment));
  return usdCents === null ? null : share(payment.amountMinor, usdCents, payment.usdCents ?? baseCents);
}
