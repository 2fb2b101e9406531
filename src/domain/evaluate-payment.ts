import { convertToUsdCents } from './exchange-rate.ts';
import type { ExchangeRate } from './exchange-rate.ts';
import { maturesAt } from './hold.ts';
import { commissionCents, share } from './money.ts';
import type { AdjustmentId, AffiliateId, BindingId, CommissionId, EventId, LinkId } from './ids.ts';
import type { AdjustmentFact, Environment } from './events.ts';
import type { AffiliateStatus, MatchMethod } from './attribution.ts';
import { DAY_MS } from './time.ts';

/** Why a paid event earned nothing (docs/contract.md, "Unattributed"). */
export type LikelyCause =
  | 'missing_user_id'
  | 'anonymous_user_id'
  | 'user_never_identified'
  | 'user_id_mismatch'
  | 'user_not_attributed'
  | 'outside_attribution_window'
  | 'affiliate_paused'
  | 'affiliate_removed'
  | 'rate_zero'
  | 'missing_exchange_rate'
  | 'price_unknown'
  | 'processing';

/** Causes that a later binding can cure. Every other cause was a decision, and decisions are not retroactive. */
const IDENTITY_CAUSES: ReadonlySet<LikelyCause | null> = new Set([
  'missing_user_id',
  'anonymous_user_id',
  'user_never_identified',
  'user_id_mismatch',
  'user_not_attributed',
  'outside_attribution_window',
]);

export interface BindingSnapshot {
  readonly bindingId: BindingId;
  readonly boundAt: number;
  readonly touchedAt: number;
  readonly matchMethod: MatchMethod;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly affiliateStatus: AffiliateStatus;
  /** Null: the affiliate inherits the app's rate. */
  readonly affiliateRateBps: number | null;
}

export interface UserCandidate {
  readonly customerUserId: string;
  /** Whether any device ever told of this user. */
  readonly identified: boolean;
  /** Whether a device told of an id that differs only in case, in spaces around it, or by a prefix that this one has. */
  readonly nearlyIdentified: boolean;
  readonly binding: BindingSnapshot | null;
}

export interface AdjustmentSnapshot {
  readonly adjustmentId: AdjustmentId;
  readonly kind: AdjustmentFact['kind'];
  readonly state: 'applied' | 'reversed';
  readonly reversesAll: boolean;
  readonly currency: string;
  readonly amountMinor: number;
  readonly usdCents: number | null;
  readonly occurredAt: number;
  readonly eventId: EventId;
  /** What the ledger already holds of it, in minor units of the payment's currency. */
  readonly bookedMinor: number;
}

export interface EarningSnapshot {
  readonly commissionId: CommissionId;
  readonly amountCents: number;
}

/** The rate that a payment was converted at, and where it comes from: it stays, whatever is imported later. */
export interface FrozenRate extends ExchangeRate {
  readonly source: string;
}

/** A payment with everything that is known about it, read in one statement after the newest fact was committed. */
export interface PaymentSnapshot {
  readonly environment: Environment;
  readonly currency: string;
  readonly amountMinor: number;
  readonly usdCents: number | null;
  readonly occurredAt: number;
  /** When the delivery came that told of it first. */
  readonly receivedAt: number;
  readonly onlyAnonymousUser: boolean;
  readonly evaluatedAt: number | null;
  readonly likelyCause: LikelyCause | null;
  readonly baseCents: number | null;
  /** The binding that the payment was attributed through; it never changes afterwards. */
  readonly bindingId: BindingId | null;
  readonly reversedCents: number;
  /** Net of the revenue entries already written; null when there are none. */
  readonly revenueCents: number | null;
  readonly earning: EarningSnapshot | null;
  /** Whether the same payment was attributed under another of its names (docs/money.md, "One payment"). */
  readonly countedElsewhere: boolean;
  readonly candidates: readonly UserCandidate[];
  readonly adjustments: readonly AdjustmentSnapshot[];
  readonly app: {
    readonly commissionRateBps: number;
    readonly attributionWindowDays: number;
    readonly holdPeriodDays: number;
  };
  /** The rate of the payment's currency on the day of the payment, or the latest of the seven days before. */
  readonly referenceRate: FrozenRate | null;
  readonly now: number;
}

export interface EarningEntry {
  readonly binding: BindingSnapshot;
  readonly customerUserId: string;
  readonly rateBps: number;
  /** Whose rate it is: the affiliate's own, or the app's. */
  readonly rateSource: 'affiliate' | 'app';
  readonly amountCents: number;
  readonly dueAt: number;
}

export interface ReversalEntry {
  readonly adjustmentId: AdjustmentId;
  readonly eventId: EventId;
  readonly occurredAt: number;
  /** Signed: negative takes back, positive gives again. */
  readonly amountCents: number;
  readonly baseCents: number;
}

export interface RevenueEntry {
  readonly adjustmentId: AdjustmentId | null;
  readonly amountCents: number;
  readonly occurredAt: number;
}

/** What has to be appended so that the ledger says what it should. */
export interface Evaluation {
  readonly likelyCause: LikelyCause | null;
  readonly customerUserId: string | null;
  readonly baseCents: number | null;
  /** What the base was converted at by this evaluation; null when nothing was converted now. */
  readonly fx: FrozenRate | null;
  readonly binding: BindingSnapshot | null;
  readonly earning: EarningEntry | null;
  readonly reversals: readonly ReversalEntry[];
  readonly revenue: readonly RevenueEntry[];
  /** Adjustments with the part that the ledger holds from now on. */
  readonly booked: readonly { readonly adjustmentId: AdjustmentId; readonly bookedMinor: number }[];
}

/** The USD amount that a commission is calculated from, or why there is none. */
type Base = { readonly cents: number; readonly fx: FrozenRate | null } | { readonly missing: LikelyCause };

function baseOf(payment: PaymentSnapshot): Base {
  if (payment.baseCents !== null) return { cents: payment.baseCents, fx: null };
  if (payment.usdCents !== null) return { cents: payment.usdCents, fx: null };
  if (payment.currency === 'USD') return { cents: payment.amountMinor, fx: null };
  const fx = payment.referenceRate;
  if (fx === null) return { missing: 'missing_exchange_rate' };
  const cents = convertToUsdCents(payment.amountMinor, payment.currency, fx);
  return cents === null ? { missing: 'price_unknown' } : { cents, fx };
}

/**
 * The candidate that decides: the first whose attribution may earn, else the first with one, else the first that was
 * ever identified, else the first that nearly was, else the first.
 */
function chooseUser(payment: PaymentSnapshot): UserCandidate | undefined {
  const { candidates } = payment;
  return (
    candidates.find((c) => c.binding !== null && mayAttribute(payment, c.binding)) ??
    candidates.find((c) => c.binding !== null) ??
    candidates.find((c) => c.identified) ??
    candidates.find((c) => c.nearlyIdentified) ??
    candidates[0]
  );
}

/**
 * Whether a payment may be attributed through a binding. A first look takes any binding, whatever its date; so does a
 * later one where the binding was there before the payment's delivery came, for a first look should have seen it. Any
 * other later look (late identify heals) asks that the payment came after the winning touch and is not older than the
 * window.
 */
function mayAttribute(payment: PaymentSnapshot, binding: BindingSnapshot): boolean {
  // Before the first look a payment has no cause.
  const firstLook = !IDENTITY_CAUSES.has(payment.likelyCause);
  if (firstLook || binding.boundAt < payment.receivedAt) return true;
  return (
    payment.occurredAt >= binding.touchedAt &&
    payment.now - payment.occurredAt <= payment.app.attributionWindowDays * DAY_MS
  );
}

function identityCause(payment: PaymentSnapshot, user: UserCandidate | undefined): LikelyCause {
  if (user === undefined) return payment.onlyAnonymousUser ? 'anonymous_user_id' : 'missing_user_id';
  if (user.binding !== null) return 'outside_attribution_window';
  if (user.identified) return 'user_not_attributed';
  return user.nearlyIdentified ? 'user_id_mismatch' : 'user_never_identified';
}

interface Change {
  readonly adjustmentId: AdjustmentId;
  readonly fromMinor: number;
  readonly toMinor: number;
  readonly eventId: EventId;
  readonly occurredAt: number;
}

/** An adjustment's amount in minor units of the payment's currency; null when the two can't be compared. */
function inPaymentCurrency(payment: PaymentSnapshot, adjustment: AdjustmentSnapshot): number | null {
  if (adjustment.currency === payment.currency) return adjustment.amountMinor;
  if (adjustment.usdCents === null || payment.usdCents === null) return null;
  return share(payment.amountMinor, adjustment.usdCents, payment.usdCents);
}

/** What the adjustments ask to be booked or unbooked, in the order in which it happened. */
function adjustmentChanges(payment: PaymentSnapshot): Change[] {
  const { adjustments } = payment;
  const undoings = adjustments
    .filter((a) => a.reversesAll && a.state === 'reversed')
    .toSorted((a, b) => a.occurredAt - b.occurredAt);
  const changes: Change[] = [];
  for (const adjustment of adjustments) {
    if (adjustment.reversesAll) continue;
    const undoneBy = undoings.find(
      (u) => u.kind === adjustment.kind && u.occurredAt >= adjustment.occurredAt,
    );
    const applies = adjustment.state === 'applied' && undoneBy === undefined;
    const wanted = applies ? inPaymentCurrency(payment, adjustment) : 0;
    if (wanted === null || wanted === adjustment.bookedMinor) continue;
    const { eventId, occurredAt } = undoneBy ?? adjustment;
    changes.push({
      adjustmentId: adjustment.adjustmentId,
      fromMinor: adjustment.bookedMinor,
      toMinor: wanted,
      eventId,
      occurredAt,
    });
  }
  return changes.toSorted(
    (a, b) => a.occurredAt - b.occurredAt || (a.adjustmentId < b.adjustmentId ? -1 : 1),
  );
}

/**
 * Compares what the ledger should say of a payment with what it says, and answers the difference. Pure: the caller
 * appends it on the condition that the payment's version is still the one that was read, and evaluates again if not.
 *
 * - The rate, the hold period and the affiliate's status are those of now, and stay fixed once a commission is written.
 * - Reversed so far is `round(commission × refunded so far / paid)`, refunds and disputes together, never more than the
 *   commission; a reversal has the earning's due date, so that it nets in the same payout.
 */
export function evaluatePayment(payment: PaymentSnapshot): Evaluation {
  const nothing: Evaluation = {
    likelyCause: null,
    customerUserId: null,
    baseCents: payment.baseCents,
    fx: null,
    binding: null,
    earning: null,
    reversals: [],
    revenue: [],
    booked: [],
  };
  if (payment.environment === 'sandbox') return nothing;
  if (payment.bindingId === null && payment.countedElsewhere) return nothing;

  const user = chooseUser(payment);
  const customerUserId = user?.customerUserId ?? null;
  const alreadyAttributed = payment.bindingId !== null;
  const unattributed = (likelyCause: LikelyCause): Evaluation => ({
    ...nothing,
    likelyCause,
    customerUserId,
  });

  const binding = alreadyAttributed ? null : (user?.binding ?? null);
  if (!alreadyAttributed && (binding === null || !mayAttribute(payment, binding))) {
    return unattributed(identityCause(payment, user));
  }
  const base = baseOf(payment);
  if ('missing' in base) return unattributed(base.missing);

  let likelyCause = payment.likelyCause;
  let earning: EarningEntry | null = null;
  if (binding !== null && user !== undefined) {
    const rateBps = binding.affiliateRateBps ?? payment.app.commissionRateBps;
    const amountCents = commissionCents(base.cents, rateBps);
    likelyCause =
      binding.affiliateStatus === 'removed'
        ? 'affiliate_removed'
        : binding.affiliateStatus === 'paused'
          ? 'affiliate_paused'
          : amountCents === 0
            ? 'rate_zero'
            : null;
    if (likelyCause === null) {
      const dueAt = maturesAt(payment.occurredAt, payment.app.holdPeriodDays);
      const rateSource = binding.affiliateRateBps === null ? 'app' : 'affiliate';
      earning = { binding, customerUserId: user.customerUserId, rateBps, rateSource, amountCents, dueAt };
    }
  }

  const earnedCents = payment.earning?.amountCents ?? earning?.amountCents ?? 0;
  const revenue: RevenueEntry[] = [];
  let netRevenueCents = payment.revenueCents;
  if (netRevenueCents === null && base.cents > 0) {
    revenue.push({ adjustmentId: null, amountCents: base.cents, occurredAt: payment.occurredAt });
    netRevenueCents = base.cents;
  }

  const reversals: ReversalEntry[] = [];
  const booked: { adjustmentId: AdjustmentId; bookedMinor: number }[] = [];
  let bookedMinor = payment.adjustments.reduce((sum, a) => sum + a.bookedMinor, 0);
  let reversedCents = payment.reversedCents;
  let refundedCents = base.cents - (netRevenueCents ?? 0);
  for (const change of adjustmentChanges(payment)) {
    bookedMinor += change.toMinor - change.fromMinor;
    booked.push({ adjustmentId: change.adjustmentId, bookedMinor: change.toMinor });
    const { adjustmentId, eventId, occurredAt } = change;
    const shouldReverse = share(earnedCents, bookedMinor, payment.amountMinor);
    const shouldRefund = share(base.cents, bookedMinor, payment.amountMinor);
    const reversalCents = reversedCents - shouldReverse;
    const revenueCents = refundedCents - shouldRefund;
    if (reversalCents !== 0)
      reversals.push({
        adjustmentId,
        eventId,
        occurredAt,
        amountCents: reversalCents,
        baseCents: revenueCents,
      });
    if (revenueCents !== 0) revenue.push({ adjustmentId, amountCents: revenueCents, occurredAt });
    reversedCents = shouldReverse;
    refundedCents = shouldRefund;
  }
  return {
    likelyCause,
    customerUserId,
    baseCents: base.cents,
    fx: base.fx,
    binding,
    earning,
    reversals,
    revenue,
    booked,
  };
}
