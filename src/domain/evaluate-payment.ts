import { convertToUsdCents } from './exchange-rate.ts';
import type { ExchangeRate } from './exchange-rate.ts';
import { maturesAt } from './hold.ts';
import { commissionCents, share } from './money.ts';
import type {
  AdjustmentId,
  AffiliateId,
  BindingId,
  CommissionId,
  EventId,
  LinkId,
  PaymentId,
} from './ids.ts';
import type { AdjustmentFact, Environment } from './events.ts';
import type { AffiliateStatus, MatchMethod } from './attribution.ts';
import { DAY_MS } from './time.ts';

/** Why a paid event earned no commission (docs/contract.md, "Unattributed"). */
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
  | 'processing'
  | 'test_key_only';

/** Causes that a later binding can fix. Every other cause was a decision, and decisions are not retroactive. */
const IDENTITY_CAUSES: ReadonlySet<LikelyCause | null> = new Set([
  'missing_user_id',
  'anonymous_user_id',
  'user_never_identified',
  'user_id_mismatch',
  'user_not_attributed',
  'outside_attribution_window',
  'test_key_only',
]);

/** A reversal follows a refund or dispute. A correction takes back an earning of a payment that earned twice. */
export const COMMISSION_KINDS = ['earning', 'reversal', 'correction'] as const;
export type CommissionKind = (typeof COMMISSION_KINDS)[number];

export interface BindingSnapshot {
  readonly bindingId: BindingId;
  readonly boundAt: number;
  readonly touchedAt: number;
  readonly matchMethod: MatchMethod;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly affiliateStatus: AffiliateStatus;
  /** Null when the affiliate inherits the app's rate. */
  readonly affiliateRateBps: number | null;
}

export interface UserCandidate {
  readonly customerUserId: string;
  /** Whether a device has reported this user. */
  readonly identified: boolean;
  /** Whether a device has reported an id that differs only in case, surrounding spaces or a prefix of this id. */
  readonly nearlyIdentified: boolean;
  /** Whether devices have reported this user, but only with a test key, which binds nobody. */
  readonly identifiedInTest: boolean;
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
  /** The part that the payment's ledger already contains, in minor units of its currency. */
  readonly bookedMinor: number;
}

export interface EarningSnapshot {
  readonly commissionId: CommissionId;
  readonly amountCents: number;
}

/** The rate that a payment was converted at, with its source. Later imports do not change it. */
export interface FrozenRate extends ExchangeRate {
  readonly source: string;
}

/** A payment with all known facts, read in one statement that begins after the newest fact was committed. */
export interface PaymentSnapshot {
  readonly environment: Environment;
  readonly currency: string;
  readonly amountMinor: number;
  readonly usdCents: number | null;
  readonly occurredAt: number;
  /** When the delivery that first reported the payment was received. */
  readonly receivedAt: number;
  readonly onlyAnonymousUser: boolean;
  readonly evaluatedAt: number | null;
  readonly likelyCause: LikelyCause | null;
  readonly baseCents: number | null;
  /** The binding that the payment was attributed through. Once set, it never changes. */
  readonly bindingId: BindingId | null;
  readonly reversedCents: number;
  /** The part of the earning that a correction took back. */
  readonly correctedCents: number;
  /** Sum of the revenue entries in the ledger. Null when there are none. */
  readonly revenueCents: number | null;
  readonly earning: EarningSnapshot | null;
  /** Whether the same payment was attributed under another reference (docs/money.md, "One payment"). */
  readonly countedElsewhere: boolean;
  /** The row of the same payment that counts, if this one was attributed under another reference, too. */
  readonly duplicateOf: { readonly paymentId: PaymentId; readonly commissionId: CommissionId | null } | null;
  readonly candidates: readonly UserCandidate[];
  readonly adjustments: readonly AdjustmentSnapshot[];
  readonly app: {
    readonly commissionRateBps: number;
    readonly attributionWindowDays: number;
    readonly holdPeriodDays: number;
  };
  /** The rate of the payment's currency on the payment's day, otherwise the latest of the seven days before. */
  readonly referenceRate: FrozenRate | null;
  readonly now: number;
}

export interface EarningEntry {
  readonly binding: BindingSnapshot;
  readonly customerUserId: string;
  readonly rateBps: number;
  /** Where the rate comes from: the affiliate's own setting, or the app's. */
  readonly rateSource: 'affiliate' | 'app';
  readonly amountCents: number;
  readonly dueAt: number;
}

export interface ReversalEntry {
  readonly adjustmentId: AdjustmentId;
  readonly eventId: EventId;
  readonly occurredAt: number;
  /** Negative for a refund or dispute, positive when one is undone. */
  readonly amountCents: number;
  readonly baseCents: number;
}

export interface RevenueEntry {
  readonly adjustmentId: AdjustmentId | null;
  readonly amountCents: number;
  readonly occurredAt: number;
}

/** What the operator configures for evaluations. */
export interface EvaluationLimits {
  /** The largest payment that earns, US cents. A larger one is read as an unknown price. */
  readonly maxPaymentCents: number;
}

/** A payment of up to a million dollars earns unless the operator configures another limit. */
export const DEFAULT_LIMITS: EvaluationLimits = { maxPaymentCents: 100_000_000 };

/** Takes back what is left of an earning. */
export interface CorrectionEntry {
  /** Always negative. */
  readonly amountCents: number;
  readonly baseCents: number;
}

/** What has to be appended to bring the ledger up to date. */
export interface Evaluation {
  readonly likelyCause: LikelyCause | null;
  readonly customerUserId: string | null;
  readonly baseCents: number | null;
  /** The rate at which this evaluation converted the base. Null when it converted nothing. */
  readonly fx: FrozenRate | null;
  readonly binding: BindingSnapshot | null;
  readonly earning: EarningEntry | null;
  readonly reversals: readonly ReversalEntry[];
  readonly correction: CorrectionEntry | null;
  readonly revenue: readonly RevenueEntry[];
  /** Adjustments, with the part that the ledger contains after this evaluation. */
  readonly booked: readonly { readonly adjustmentId: AdjustmentId; readonly bookedMinor: number }[];
}

/**
 * Compares the ledger of a payment with what it should contain, and returns the difference. Pure: the caller appends
 * the difference if the payment still has the version that was read, and otherwise evaluates again.
 *
 * - The rate, the hold period and the affiliate's status are the current ones. Once a commission is written they are
 *   fixed.
 * - The reversed amount is `round(commission × refunded so far / paid)`, refunds and disputes together, never more than
 *   the commission. A reversal has the due date of its earning, so that both net in the same payout.
 * - If the payment was attributed under two references, all that is left under the second one is taken back.
 */
export function evaluatePayment(
  payment: PaymentSnapshot,
  limits: EvaluationLimits = DEFAULT_LIMITS,
): Evaluation {
  const isAttributed = payment.bindingId !== null;
  const nothing: Evaluation = {
    likelyCause: null,
    customerUserId: null,
    baseCents: payment.baseCents,
    fx: null,
    binding: null,
    earning: null,
    reversals: [],
    correction: null,
    revenue: [],
    booked: [],
  };
  if (payment.environment === 'sandbox') return nothing;
  if (payment.duplicateOf !== null) return { ...nothing, ...takeBack(payment) };
  if (!isAttributed && payment.countedElsewhere) return nothing;

  const user = chooseUser(payment);
  const customerUserId = user?.customerUserId ?? null;
  const binding = isAttributed ? null : (user?.binding ?? null);
  if (!isAttributed && (binding === null || !mayAttribute(payment, binding))) {
    return { ...nothing, customerUserId, likelyCause: identityCause(payment, user) };
  }
  const base = baseOf(payment, limits);
  if ('missing' in base) return { ...nothing, customerUserId, likelyCause: base.missing };

  const { likelyCause, earning } =
    binding === null || customerUserId === null
      ? { likelyCause: payment.likelyCause, earning: null }
      : earn(payment, base.cents, customerUserId, binding);
  const earnedCents = payment.earning?.amountCents ?? earning?.amountCents ?? 0;
  const firstRevenue = revenueOf(payment, base.cents);
  const revenueCents = payment.revenueCents ?? firstRevenue[0]?.amountCents ?? 0;
  const adjusted = applyAdjustments(payment, base.cents, earnedCents, base.cents - revenueCents);
  return {
    likelyCause,
    customerUserId,
    baseCents: base.cents,
    fx: base.fx,
    binding,
    earning,
    reversals: adjusted.reversals,
    correction: null,
    revenue: [...firstRevenue, ...adjusted.revenue],
    booked: adjusted.booked,
  };
}

/**
 * Returns the candidate that decides: the first whose binding may attribute the payment, else the first with a binding,
 * else the first that was identified, else the first that was nearly identified, else the first that only a test key reported,
 * else the first.
 */
function chooseUser(payment: PaymentSnapshot): UserCandidate | undefined {
  const { candidates } = payment;
  return (
    candidates.find((c) => c.binding !== null && mayAttribute(payment, c.binding)) ??
    candidates.find((c) => c.binding !== null) ??
    candidates.find((c) => c.identified) ??
    candidates.find((c) => c.nearlyIdentified) ??
    candidates.find((c) => c.identifiedInTest) ??
    candidates[0]
  );
}

/**
 * Whether a payment may be attributed through a binding. A first evaluation accepts any binding, whatever its date. So
 * does a later one if the binding existed before the payment's delivery was received, since a first evaluation would
 * have accepted it. Any other later evaluation (late identify heals) requires that the payment is not older than the
 * winning touch, nor older than the attribution window.
 */
function mayAttribute(payment: PaymentSnapshot, binding: BindingSnapshot): boolean {
  // Before its first evaluation a payment has no cause.
  const isFirst = !IDENTITY_CAUSES.has(payment.likelyCause);
  if (isFirst || binding.boundAt < payment.receivedAt) return true;
  return (
    payment.occurredAt >= binding.touchedAt &&
    payment.now - payment.occurredAt <= payment.app.attributionWindowDays * DAY_MS
  );
}

function identityCause(payment: PaymentSnapshot, user: UserCandidate | undefined): LikelyCause {
  if (user === undefined) return payment.onlyAnonymousUser ? 'anonymous_user_id' : 'missing_user_id';
  if (user.binding !== null) return 'outside_attribution_window';
  if (user.identified) return 'user_not_attributed';
  if (user.nearlyIdentified) return 'user_id_mismatch';
  return user.identifiedInTest ? 'test_key_only' : 'user_never_identified';
}

/**
 * Returns what is left of the earning and the revenue of a duplicate, as opposite entries. Refunds and disputes count
 * for the row that stays. The entries have the time of the payment, so that they correct the day that counted it twice.
 */
function takeBack(payment: PaymentSnapshot): Pick<Evaluation, 'likelyCause' | 'correction' | 'revenue'> {
  const { likelyCause, occurredAt } = payment;
  const revenueCents = payment.revenueCents ?? 0;
  const leftCents = (payment.earning?.amountCents ?? 0) - payment.reversedCents - payment.correctedCents;
  return {
    likelyCause,
    correction: leftCents > 0 ? { amountCents: -leftCents, baseCents: 0 - revenueCents } : null,
    revenue: revenueCents === 0 ? [] : [{ adjustmentId: null, amountCents: -revenueCents, occurredAt }],
  };
}

/** The amount in US cents that a commission is calculated from, or why there is none. */
type Base = { readonly cents: number; readonly fx: FrozenRate | null } | { readonly missing: LikelyCause };

function baseOf(payment: PaymentSnapshot, { maxPaymentCents }: EvaluationLimits): Base {
  if (payment.baseCents !== null) return { cents: payment.baseCents, fx: null };
  const base = statedBase(payment) ?? convertedBase(payment);
  return 'cents' in base && base.cents > maxPaymentCents ? { missing: 'price_unknown' } : base;
}

/** Returns the amount in USD as the provider states it, or null. */
function statedBase({ usdCents, currency, amountMinor }: PaymentSnapshot): Base | null {
  if (usdCents !== null) return { cents: usdCents, fx: null };
  return currency === 'USD' ? { cents: amountMinor, fx: null } : null;
}

function convertedBase({ referenceRate: fx, amountMinor, currency }: PaymentSnapshot): Base {
  if (fx === null) return { missing: 'missing_exchange_rate' };
  const cents = convertToUsdCents(amountMinor, currency, fx);
  return cents === null ? { missing: 'price_unknown' } : { cents, fx };
}

/** Returns the earning of a payment that is attributed through `binding`, or why it earns nothing. */
function earn(
  payment: PaymentSnapshot,
  baseCents: number,
  customerUserId: string,
  binding: BindingSnapshot,
): Pick<Evaluation, 'likelyCause' | 'earning'> {
  const rateBps = binding.affiliateRateBps ?? payment.app.commissionRateBps;
  const amountCents = commissionCents(baseCents, rateBps);
  if (binding.affiliateStatus === 'removed') return { likelyCause: 'affiliate_removed', earning: null };
  if (binding.affiliateStatus === 'paused') return { likelyCause: 'affiliate_paused', earning: null };
  if (amountCents === 0) return { likelyCause: 'rate_zero', earning: null };
  const dueAt = maturesAt(payment.occurredAt, payment.app.holdPeriodDays);
  const rateSource = binding.affiliateRateBps === null ? 'app' : 'affiliate';
  return { likelyCause: null, earning: { binding, customerUserId, rateBps, rateSource, amountCents, dueAt } };
}

/** Returns the first revenue entry of a payment. Empty when the ledger has it, or when the payment is worth nothing. */
function revenueOf(payment: PaymentSnapshot, baseCents: number): RevenueEntry[] {
  if (payment.revenueCents !== null || baseCents <= 0) return [];
  return [{ adjustmentId: null, amountCents: baseCents, occurredAt: payment.occurredAt }];
}

/**
 * Books the payment's refunds and disputes. Returns the reversals of the commission and the revenue entries that each
 * adds. `refundedCents` is the part of `baseCents` that is not in the revenue entries of the ledger.
 */
function applyAdjustments(
  payment: PaymentSnapshot,
  baseCents: number,
  earnedCents: number,
  refundedCents: number,
): Pick<Evaluation, 'reversals' | 'revenue' | 'booked'> {
  const reversals: ReversalEntry[] = [];
  const revenue: RevenueEntry[] = [];
  const booked: Evaluation['booked'][number][] = [];
  let bookedMinor = payment.adjustments.reduce((sum, a) => sum + a.bookedMinor, 0);
  let reversed = payment.reversedCents;
  let refunded = refundedCents;
  for (const { adjustmentId, eventId, occurredAt, fromMinor, toMinor } of adjustmentChanges(
    payment,
    baseCents,
  )) {
    bookedMinor += toMinor - fromMinor;
    booked.push({ adjustmentId, bookedMinor: toMinor });
    const shouldReverse = share(earnedCents, bookedMinor, payment.amountMinor);
    const shouldRefund = share(baseCents, bookedMinor, payment.amountMinor);
    const amountCents = reversed - shouldReverse;
    const revenueCents = refunded - shouldRefund;
    if (amountCents !== 0) {
      reversals.push({ adjustmentId, eventId, occurredAt, amountCents, baseCents: revenueCents });
    }
    if (revenueCents !== 0) revenue.push({ adjustmentId, amountCents: revenueCents, occurredAt });
    reversed = shouldReverse;
    refunded = shouldRefund;
  }
  return { reversals, revenue, booked };
}

interface AdjustmentChange {
  readonly adjustmentId: AdjustmentId;
  readonly fromMinor: number;
  readonly toMinor: number;
  readonly eventId: EventId;
  readonly occurredAt: number;
}

/** Returns what the adjustments book or unbook, in the order in which it happened. */
function adjustmentChanges(payment: PaymentSnapshot, baseCents: number): AdjustmentChange[] {
  const { adjustments } = payment;
  const undoings = adjustments
    .filter((a) => a.reversesAll && a.state === 'reversed')
    .toSorted((a, b) => a.occurredAt - b.occurredAt);
  const changes: AdjustmentChange[] = [];
  for (const adjustment of adjustments) {
    if (adjustment.reversesAll) continue;
    const undoneBy = undoings.find(
      (u) => u.kind === adjustment.kind && u.occurredAt >= adjustment.occurredAt,
    );
    const applies = adjustment.state === 'applied' && undoneBy === undefined;
    const toMinor = applies ? inPaymentCurrency(payment, baseCents, adjustment) : 0;
    if (toMinor === null || toMinor === adjustment.bookedMinor) continue;
    const { adjustmentId, bookedMinor: fromMinor } = adjustment;
    const { eventId, occurredAt } = undoneBy ?? adjustment;
    changes.push({ adjustmentId, fromMinor, toMinor, eventId, occurredAt });
  }
  return changes.toSorted(
    (a, b) => a.occurredAt - b.occurredAt || (a.adjustmentId < b.adjustmentId ? -1 : 1),
  );
}

/**
 * Returns an adjustment's amount in minor units of the payment's currency. Amounts in different currencies are compared in
 * USD: the payment with the value that its provider states, else with its converted base. Null when the adjustment has no
 * USD value.
 */
function inPaymentCurrency(
  payment: PaymentSnapshot,
  baseCents: number,
  adjustment: AdjustmentSnapshot,
): number | null {
  if (adjustment.currency === payment.currency) return adjustment.amountMinor;
  const usdCents = adjustment.usdCents ?? (adjustment.currency === 'USD' ? adjustment.amountMinor : null);
  return usdCents === null ? null : share(payment.amountMinor, usdCents, payment.usdCents ?? baseCents);
}
