import type { AffiliateId, AppId, PayoutRequestId } from './ids.ts';

/** The ids with which the workflow of a payout request is started and found. */
export interface PayoutRequestKeys {
  readonly id: PayoutRequestId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
}

/** How many due commissions there are, and their sum in cents. A sum may exceed what a number represents exactly. */
export interface Due {
  readonly count: number;
  readonly cents: bigint;
}

/** What is due to a creator when an export is settled. */
export interface DueCommissions {
  /** All due commissions below zero: reversals, corrections and deductions. Their sum is zero or less. */
  readonly debits: Due;
  /** The oldest due commissions above zero, which are earnings and bonuses, as far as one payout takes them (`limit`, `MAX_PAYOUT_CENTS`). */
  readonly credits: Due;
  /** Whether more credits are due than those. */
  readonly isMoreDue: boolean;
}

/** The oldest due credits that together outweigh the debits, and whether more are due. */
export interface OutweighingCredits {
  readonly credits: Due;
  readonly isMoreDue: boolean;
}

/** The result of a payout request. */
export interface PayoutDecision {
  /**
   * `paid`: the payout contains all debits and the oldest `credits`. `empty`: nothing is paid, because the net is zero or less
   * and is carried forward. `total_changed`: nothing is paid, because the caller expected another total.
   */
  readonly status: 'paid' | 'empty' | 'total_changed';
  /** How many of the oldest due credits the payout contains. If nothing is paid, how many of them are marked matured. */
  readonly credits: number;
  /** What is paid, or carried forward; with `total_changed`, all that is due, in cents. At most `MAX_PAYOUT_CENTS` on either side of zero. */
  readonly netCents: number;
  /** Whether credits remain due that the payout has no room for. */
  readonly isMoreDue: boolean;
}

/** A payout contains at most this many credits. The next export pays the rest. */
export const PAYOUT_CREDITS_LIMIT = 50_000;

/** The largest amount that a column of type `cents` takes, and that a number represents exactly. */
export const MAX_PAYOUT_CENTS = Number.MAX_SAFE_INTEGER;

/**
 * Whether the credits that fit one payout do not outweigh the debits although more are due. The payout then contains as many
 * credits as it needs (`OutweighingCredits`), so that debits can never keep a creator from being paid.
 */
export function needsMoreCredits({ debits, credits, isMoreDue }: DueCommissions): boolean {
  return isMoreDue && netOf(debits, credits) <= 0n;
}

/**
 * Decides what an export pays. `outweighing` is null unless `needsMoreCredits`. `allCreditsCents` is the sum of all due credits, null
 * if the caller expects no total: an expected total is compared with everything that is due, as in the preview, and with zero if that is
 * less than zero.
 */
export function decidePayout(
  due: DueCommissions,
  outweighing: OutweighingCredits | null,
  expected: {
    readonly totalCents: number;
    readonly allCreditsCents: bigint;
    /** What was taken back since, of what is paid: zero or less. Only of a payout run. */
    readonly takenBackCents: bigint;
  } | null,
): PayoutDecision {
  const { credits, isMoreDue } = outweighing ?? due;
  const net = netOf(due.debits, credits);
  if (expected !== null) {
    const owed = due.debits.cents + expected.allCreditsCents + expected.takenBackCents;
    if (BigInt(expected.totalCents) !== (owed > 0n ? owed : 0n)) {
      return { status: 'total_changed', credits: due.credits.count, netCents: bounded(owed), isMoreDue };
    }
  }
  if (net <= 0n) return { status: 'empty', credits: due.credits.count, netCents: bounded(net), isMoreDue };
  return { status: 'paid', credits: credits.count, netCents: bounded(net), isMoreDue };
}

const netOf = (debits: Due, credits: Due): bigint => debits.cents + credits.cents;

function bounded(cents: bigint): number {
  const most = BigInt(MAX_PAYOUT_CENTS);
  if (cents > most) return MAX_PAYOUT_CENTS;
  return Number(cents < -most ? -most : cents);
}
