import { MAX_PAYOUT_CENTS } from './payout.ts';
import type { PayeeExclusion, PayeeMethod } from './payee.ts';
import type { AffiliateId, AppId, PayoutId, PayoutRunId } from './ids.ts';
import { DAY_MS } from './time.ts';

/** The ids with which the workflow of a payout run is started. */
export interface PayoutRunKeys {
  readonly runId: PayoutRunId;
  readonly appId: AppId;
}

/** `pay`: it pays what is due. `resend`: it sends the money of payouts again that came back. */
export const PAYOUT_RUN_KINDS = ['pay', 'resend'] as const;
export type PayoutRunKind = (typeof PAYOUT_RUN_KINDS)[number];

/** The methods that have a file each. `other`: also creators without a payee. */
export const PAYOUT_FILE_METHODS = ['paypal', 'wise', 'other'] as const;
export type PayoutFileMethod = (typeof PAYOUT_FILE_METHODS)[number];

/** Where the money of a creator goes. */
export interface Payable {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly isBlocked: boolean;
  /** The latest version of the payee. Null for a creator who never had one. */
  readonly payee: { readonly version: number; readonly method: PayeeMethod } | null;
  /** Why the creator can't be paid to that payee. */
  readonly payeeExclusion: PayeeExclusion | null;
}

/** A creator with unpaid commissions. */
export interface UnpaidCreator extends Payable {
  /** The net of what is due, in US cents. */
  readonly dueCents: number;
  /** The net of what is in the hold period, in US cents. */
  readonly heldCents: number;
  /** Whether more is due than one payout has room for. */
  readonly exceedsPayout: boolean;
}

/** A payout whose money came back and was not sent again. */
export interface ReturnedPayout extends Payable {
  readonly payoutId: PayoutId;
  readonly totalCents: number;
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
  /** The payout that is sent again. Null in a run that pays what is due. */
  readonly payoutId: PayoutId | null;
}

/** What a run pays. */
export interface PayoutRunTerms {
  /** Creators to whom less is due are left out. */
  readonly minimumCents: number;
  /** Whether creators without a payee are paid, too. */
  readonly includesWithoutPayee: boolean;
}

/** What a run is drafted with. */
export interface PayoutRunOrder extends PayoutRunTerms {
  readonly kind: PayoutRunKind;
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
    items.push({ ...recipientOf(creator), expectedCents: dueCents, payoutId: null });
    totalCents += dueCents;
  }
  return { items, exclusions, totalCents };
}

function recipientOf({ affiliateId, affiliateName, payee }: Payable) {
  const method: PayoutFileMethod = payee === null || payee.method === 'none' ? 'other' : payee.method;
  return { affiliateId, affiliateName, method, payeeVersion: payee?.version ?? null };
}

/**
 * Divides payouts whose money came back into those that a run sends again, and the creators who can't be paid now, each with the sum of
 * theirs.
 */
export function draftResend(
  payouts: readonly ReturnedPayout[],
  terms: Pick<PayoutRunTerms, 'includesWithoutPayee'>,
): PayoutRunDraft {
  const items: DraftedItem[] = [];
  const excluded = new Map<AffiliateId, Exclusion>();
  let totalCents = 0;
  for (const payout of payouts.toSorted(byTotal)) {
    const { affiliateId, affiliateName, payoutId } = payout;
    const hasRoom = totalCents + payout.totalCents <= MAX_PAYOUT_CENTS;
    const reason = reasonNotToSend(payout, terms) ?? (hasRoom ? null : 'too_many_commissions');
    if (reason === null) {
      items.push({ ...recipientOf(payout), expectedCents: payout.totalCents, payoutId });
      totalCents += payout.totalCents;
    } else {
      const balanceCents = (excluded.get(affiliateId)?.balanceCents ?? 0) + payout.totalCents;
      excluded.set(affiliateId, { affiliateId, affiliateName, reason, balanceCents, heldCents: 0 });
    }
  }
  return { items, exclusions: [...excluded.values()].toSorted(byBalance), totalCents };
}

function byBalance(a: Exclusion, b: Exclusion): number {
  return b.balanceCents - a.balanceCents || (a.affiliateId < b.affiliateId ? -1 : 1);
}

function byTotal(a: ReturnedPayout, b: ReturnedPayout): number {
  return b.totalCents - a.totalCents || (a.payoutId < b.payoutId ? -1 : 1);
}

function byDue(a: UnpaidCreator, b: UnpaidCreator): number {
  if (a.dueCents !== b.dueCents) return b.dueCents - a.dueCents;
  return a.affiliateId < b.affiliateId ? -1 : 1;
}

function reasonToExclude(creator: UnpaidCreator, terms: PayoutRunTerms): ExclusionReason | null {
  const { dueCents, heldCents, isBlocked, exceedsPayout } = creator;
  if (isBlocked) return 'payouts_blocked';
  if (dueCents < 0) return 'negative_balance';
  if (dueCents === 0) return heldCents === 0 ? 'reversed' : 'held';
  if (exceedsPayout) return 'too_many_commissions';
  if (dueCents < terms.minimumCents) return 'below_minimum';
  return reasonNotToSend(creator, terms);
}

/** Why nothing can be sent to a creator. */
function reasonNotToSend(
  { isBlocked, payeeExclusion }: Payable,
  { includesWithoutPayee }: Pick<PayoutRunTerms, 'includesWithoutPayee'>,
): 'payouts_blocked' | PayeeExclusion | null {
  return isBlocked ? 'payouts_blocked' : exclusionByPayee(payeeExclusion, includesWithoutPayee);
}

/** Returns why a run leaves a creator out because of the payee. A run that also pays creators without one leaves out those whose new one waits. */
export function exclusionByPayee(
  excludedAs: PayeeExclusion | null,
  includesWithoutPayee: boolean,
): PayeeExclusion | null {
  return excludedAs === 'no_payee' && includesWithoutPayee ? null : excludedAs;
}

/** What became of an item of a resend run: its money is in a file, or why it is not. */
export const RESEND_RESULTS = ['resent', 'not_returned', 'blocked', 'payee_changed'] as const;
export type ResendResult = (typeof RESEND_RESULTS)[number];

/**
 * Decides whether an item of an approved resend run is sent again: the latest statement about its payout is still that the money came back,
 * no run has sent it again since, and its creator can be paid as the draft says.
 */
export function decideResend(item: {
  readonly isReturned: boolean;
  readonly isBlocked: boolean;
  readonly payeeVersion: number | null;
  readonly latestPayeeVersion: number | null;
}): ResendResult {
  if (!item.isReturned) return 'not_returned';
  if (item.isBlocked) return 'blocked';
  return item.payeeVersion === item.latestPayeeVersion ? 'resent' : 'payee_changed';
}

/** Where a run is. `expired`: a draft that nobody approved in time. */
export const PAYOUT_RUN_STATUSES = ['draft', 'approved', 'settled', 'cancelled', 'expired'] as const;
export type PayoutRunStatus = (typeof PAYOUT_RUN_STATUSES)[number];

/** Who may approve the runs of an app: any key that may pay, or another one than the keys that drafted the run and set its payees. */
export const PAYOUT_APPROVALS = ['any_key', 'another_key'] as const;
export type PayoutApproval = (typeof PAYOUT_APPROVALS)[number];

export type ApprovalRefusal = 'total_changed' | 'not_possible' | 'another_approver_needed';

/**
 * Why an approval is refused: `total_changed`, the caller expects another total than that of the draft; `not_possible`, the run has
 * ended, or pays nobody; `another_approver_needed`, the app wants another key. Null: it is approved, or was before with the same total.
 */
export function refuseApproval(
  run: { readonly status: PayoutRunStatus; readonly totalCents: number; readonly itemCount: number },
  expectedTotalCents: number,
  approver: {
    readonly payoutApproval: PayoutApproval;
    /** Whether the key has drafted the run, or has set a payee to whom it pays. */
    readonly hasPart: boolean;
  },
): ApprovalRefusal | null {
  if (run.status === 'expired' || run.status === 'cancelled' || run.itemCount === 0) return 'not_possible';
  if (run.totalCents !== expectedTotalCents) return 'total_changed';
  const needsAnother = approver.payoutApproval === 'another_key' && approver.hasPart;
  return run.status === 'draft' && needsAnother ? 'another_approver_needed' : null;
}
