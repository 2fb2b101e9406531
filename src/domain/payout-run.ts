import { MAX_PAYOUT_CENTS } from './payout.ts';
import type { PayeeExclusion, PayeeMethod } from './payee.ts';
import type { AffiliateId, AppId, PayoutRunId } from './ids.ts';
import { DAY_MS } from './time.ts';

/** The ids with which the workflow of a payout run is started. */
export interface PayoutRunKeys {
  readonly runId: PayoutRunId;
  readonly appId: AppId;
}

/** The methods that have a file each. `other`: also creators without a payee. */
export const PAYOUT_FILE_METHODS = ['paypal', 'wise', 'other'] as const;
export type PayoutFileMethod = (typeof PAYOUT_FILE_METHODS)[number];

/** A creator with unpaid commissions. */
export interface UnpaidCreator {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  /** The net of what is due, in US cents. */
  readonly dueCents: number;
  /** The net of what is in the hold period, in US cents. */
  readonly heldCents: number;
  /** Whether more is due than one payout has room for. */
  readonly exceedsPayout: boolean;
  readonly isBlocked: boolean;
  /** The latest version of the payee. Null for a creator who never had one. */
  readonly payee: { readonly version: number; readonly method: PayeeMethod } | null;
  /** Why the creator can't be paid to that payee. */
  readonly payeeExclusion: PayeeExclusion | null;
}

/**
 * Why a payout run leaves out a creator. `payouts_blocked`: a founder has blocked the payouts. `payee_changed`: a new payee waits until it
 * counts. `no_payee`: there is none. `below_minimum`: less is due than the run
 * pays. `too_many_commissions`: more is due than one payout has room for. `negative_balance`: reversals and deductions take back more than
 * is due. `reversed`: they take back exactly that. `held`: all is in the hold period.
 */
export const EXCLUSION_REASONS = [
  'payouts_blocked',
  'payee_changed',
  'no_payee',
  'below_minimum',
  'too_many_commissions',
  'negative_balance',
  'reversed',
  'held',
] as const;
export type ExclusionReason = (typeof EXCLUSION_REASONS)[number];

export interface DraftedItem {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  /** Positive. */
  readonly expectedCents: number;
  readonly method: PayoutFileMethod;
  /** Null for a creator who never had a payee. */
  readonly payeeVersion: number | null;
}

/** What a run pays. */
export interface PayoutRunTerms {
  /** Creators to whom less is due are left out. */
  readonly minimumCents: number;
  /** Whether creators without a payee are paid, too. */
  readonly includesWithoutPayee: boolean;
}

export interface Exclusion {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly reason: ExclusionReason;
  readonly balanceCents: number;
  readonly heldCents: number;
}

export interface PayoutRunDraft {
  /** The largest amount first. */
  readonly items: readonly DraftedItem[];
  /** Those to whom most is due first. */
  readonly exclusions: readonly Exclusion[];
  readonly totalCents: number;
}

/** How long a draft can be approved, ms. */
export const DRAFT_VALID_MS = 7 * DAY_MS;

/** Divides the creators with unpaid commissions into those whom a run pays, each in full, and those whom it leaves out. */
export function draftPayoutRun(creators: readonly UnpaidCreator[], terms: PayoutRunTerms): PayoutRunDraft {
  const items: DraftedItem[] = [];
  const exclusions: Exclusion[] = [];
  let totalCents = 0;
  for (const creator of creators.toSorted(byDue)) {
    const { affiliateId, affiliateName, dueCents, heldCents } = creator;
    const hasRoom = totalCents + dueCents <= MAX_PAYOUT_CENTS;
    const reason = reasonToExclude(creator, terms) ?? (hasRoom ? null : 'too_many_commissions');
    if (reason !== null) {
      exclusions.push({ affiliateId, affiliateName, reason, balanceCents: dueCents, heldCents });
      continue;
    }
    const { method } = creator.payee ?? { method: 'none' };
    items.push({
      affiliateId,
      affiliateName,
      expectedCents: dueCents,
      method: method === 'none' ? 'other' : method,
      payeeVersion: creator.payee?.version ?? null,
    });
    totalCents += dueCents;
  }
  return { items, exclusions, totalCents };
}

function byDue(a: UnpaidCreator, b: UnpaidCreator): number {
  if (a.dueCents !== b.dueCents) return b.dueCents - a.dueCents;
  return a.affiliateId < b.affiliateId ? -1 : 1;
}

function reasonToExclude(
  { dueCents, heldCents, isBlocked, exceedsPayout, payeeExclusion }: UnpaidCreator,
  { minimumCents, includesWithoutPayee }: PayoutRunTerms,
): ExclusionReason | null {
  if (isBlocked) return 'payouts_blocked';
  if (dueCents < 0) return 'negative_balance';
  if (dueCents === 0) return heldCents === 0 ? 'reversed' : 'held';
  if (exceedsPayout) return 'too_many_commissions';
  if (dueCents < minimumCents) return 'below_minimum';
  return payeeExclusion === 'no_payee' && includesWithoutPayee ? null : payeeExclusion;
}

/** Where a run is. `expired`: a draft that nobody approved in time. */
export const PAYOUT_RUN_STATUSES = ['draft', 'approved', 'settled', 'cancelled', 'expired'] as const;
export type PayoutRunStatus = (typeof PAYOUT_RUN_STATUSES)[number];

/**
 * Why an approval is refused: `total_changed`, the caller expects another total than that of the draft; `not_possible`, the run has
 * ended, or pays nobody. Null: it is approved, or was before with the same total.
 */
export function refuseApproval(
  run: { readonly status: PayoutRunStatus; readonly totalCents: number; readonly itemCount: number },
  expectedTotalCents: number,
): 'total_changed' | 'not_possible' | null {
  if (run.status === 'expired' || run.status === 'cancelled' || run.itemCount === 0) return 'not_possible';
  return run.totalCents === expectedTotalCents ? null : 'total_changed';
}
