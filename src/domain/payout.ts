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
  /** All reversals and corrections that are due. Their sum is zero or less. */
  readonly deductions: Due;
  /** The oldest due earnings that fit one payout, by their number (`limit`) and their sum (`MAX_PAYOUT_CENTS`). */
  readonly earnings: Due;
  /** Whether more earnings are due than those. */
  readonly isMoreDue: boolean;
}

/** The oldest due earnings that together outweigh the deductions, and whether more are due. */
export interface OutweighingEarnings {
  readonly earnings: Due;
  readonly isMoreDue: boolean;
}

/** The result of a payout request. */
export interface PayoutDecision {
  /**
   * `paid`: the payout contains all deductions and the oldest `earnings`. `empty`: nothing is paid, because the net is zero or less
   * and is carried forward. `total_changed`: nothing is paid, because the caller expected another total.
   */
  readonly status: 'paid' | 'empty' | 'total_changed';
  /** How many of the oldest due earnings the payout contains. If nothing is paid, how many of them are marked matured. */
  readonly earnings: number;
  /** What is paid, or carried forward; with `total_changed`, all that is due, in cents. At most `MAX_PAYOUT_CENTS` on either side of zero. */
  readonly netCents: number;
  /** Whether earnings remain due that the payout has no room for. */
  readonly isMoreDue: boolean;
}

/** A payout contains at most this many earnings. The next export pays the rest. */
export const PAYOUT_EARNINGS_LIMIT = 50_000;

/** The largest amount that a column of type `cents` takes, and that a number represents exactly. */
export const MAX_PAYOUT_CENTS = Number.MAX_SAFE_INTEGER;

/**
 * Whether the earnings that fit one payout do not outweigh the deductions although more are due. The payout then contains as many
 * earnings as it needs (`OutweighingEarnings`), so that deductions can never keep a creator from being paid.
 */
export function needsMoreEarnings({ deductions, earnings, isMoreDue }: DueCommissions): boolean {
  return isMoreDue && netOf(deductions, earnings) <= 0n;
}

/**
 * Decides what an export pays. `outweighing` is null unless `needsMoreEarnings`. `allEarningsCents` is the sum of all due earnings, null
 * if the caller expects no total: an expected total is compared with everything that is due, as in the preview, and with zero if that is
 * less than zero.
 */
export function decidePayout(
  due: DueCommissions,
  outweighing: OutweighingEarnings | null,
  expected: {
    readonly totalCents: number;
    readonly allEarningsCents: bigint;
    /** What was taken back since, of what is paid: zero or less. Only of a payout run. */
    readonly takenBackCents: bigint;
  } | null,
): PayoutDecision {
  const { earnings, isMoreDue } = outweighing ?? due;
  const net = netOf(due.deductions, earnings);
  if (expected !== null) {
    const owed = due.deductions.cents + expected.allEarningsCents + expected.takenBackCents;
    if (BigInt(expected.totalCents) !== (owed > 0n ? owed : 0n)) {
      return { status: 'total_changed', earnings: due.earnings.count, netCents: bounded(owed), isMoreDue };
    }
  }
  if (net <= 0n) return { status: 'empty', earnings: due.earnings.count, netCents: bounded(net), isMoreDue };
  return { status: 'paid', earnings: earnings.count, netCents: bounded(net), isMoreDue };
}

const netOf = (deductions: Due, earnings: Due): bigint => deductions.cents + earnings.cents;

function bounded(cents: bigint): number {
  const most = BigInt(MAX_PAYOUT_CENTS);
  if (cents > most) return MAX_PAYOUT_CENTS;
  return Number(cents < -most ? -most : cents);
}
