import { dueAtOf } from './due-date.ts';
import { commissionCents } from './money.ts';
import { chooseComponents, chooseProduct, earnByPolicy, earnByRule, policyThatCounts } from './policy.ts';
import type { AssignedPolicy, PolicyEarning, PolicySale } from './policy.ts';
import { baseOf } from './payment-base.ts';
import { DAY_MS } from './time.ts';
import { areCodesOf, chooseUser, mayAttribute, payersOf, withoutStoredPlaceholders } from './payers.ts';
import type { LikelyCause } from './likely-causes.ts';
import type {
  BindingSnapshot,
  EarningTerms,
  KeyToBind,
  PaymentSnapshot,
  UserCandidate,
} from './payment-snapshot.ts';
import { applyAdjustments } from './apply-adjustments.ts';
import { correctDuplicate } from './correct-duplicate.ts';
import { DEFAULT_LIMITS } from './evaluation.ts';
import type { RevenueEntry, EvaluationLimits, Evaluation } from './evaluation.ts';

/**
 * Compares the ledger of a payment with what it should contain, and returns the difference. Pure: the caller appends
 * the difference if the payment still has the version that was read, and otherwise evaluates again.
 *
 * - The rate, the hold period and the affiliate's status are the current ones. Once a commission is written they are
 *   fixed.
 * - The reversed amount is `round(commission × refunded so far / paid)`, refunds and disputes together, never more than
 *   the commission. A reversal has the due date of its earning, so that both net in the same payout.
 * - If the payment was attributed under two references, all that is left under the one that does not count is taken back.
 * - A row that replaces an attributed part takes over its binding and, if the part earned, its rate.
 */
export function evaluatePayment(
  stored: PaymentSnapshot,
  limits: EvaluationLimits = DEFAULT_LIMITS,
): Evaluation {
  const payment = withoutStoredPlaceholders(stored);
  const isAttributed = payment.bindingId !== null;
  const nothing: Evaluation = {
    likelyCause: null,
    customerUserId: null,
    baseCents: payment.baseCents,
    fx: null,
    binding: null,
    decidedBindingId: null,
    boundBy: null,
    furtherKeys: [],
    waitsForUser: false,
    numbered: null,
    earning: null,
    reversals: [],
    correction: null,
    revenue: [],
    booked: [],
    unconverted: [],
    converted: [],
  };
  if (payment.environment === 'sandbox') return nothing;
  if (payment.duplicateOf !== null) return { ...nothing, ...correctDuplicate(payment) };
  if (!isAttributed && payment.countedElsewhere) return nothing;

  const { inherited } = payment;
  const isSettled = isAttributed || inherited !== null;
  const decided = isSettled ? undefined : decidedUser(payment);
  const isDecided = isSettled || decided !== undefined;
  const user = decided ?? chooseUser(payment);
  const userId = user?.customerUserId ?? null;
  const code = isDecided ? null : ownerByCode(payment);
  if (code === 'ambiguous') return { ...nothing, customerUserId: userId, likelyCause: 'ambiguous_code' };
  const key = code?.key ?? null;
  if (key !== null && mayBeNamed(payment, limits)) {
    const likelyCause = identityCause(payment, user);
    return { ...nothing, customerUserId: userId, likelyCause, waitsForUser: true };
  }
  const customerUserId = inherited?.customerUserId ?? key?.userKey ?? userId;
  const binding = isAttributed ? null : (inherited?.binding ?? user?.binding ?? code?.binding ?? null);
  if (!isDecided && (binding === null || !mayAttribute(payment, binding))) {
    return { ...nothing, customerUserId, likelyCause: identityCause(payment, user) };
  }
  const base = baseOf(payment, limits);
  if ('missing' in base) {
    return {
      ...nothing,
      customerUserId,
      likelyCause: base.missing,
      // What is bound meanwhile changes nothing for this payment, nor for the user whom its code binds.
      decidedBindingId: inherited === null ? (binding?.bindingId ?? null) : null,
      boundBy: code,
      furtherKeys: code === null ? [] : furtherKeysOf(payment, binding, customerUserId),
    };
  }

  const numbered = binding === null ? null : numberOf(payment, binding);
  const { likelyCause, earning } =
    binding === null || customerUserId === null
      ? { likelyCause: payment.likelyCause, earning: null }
      : earn(payment, base.cents, { customerUserId, binding, numbered });
  const earnedCents = payment.earning?.amountCents ?? earning?.amountCents ?? 0;
  const firstRevenue = revenueOf(payment, base.cents);
  const revenueCents = payment.revenueCents ?? firstRevenue[0]?.amountCents ?? 0;
  const policyBaseCents = payment.earning?.policyBaseCents ?? earning?.policy?.baseCents ?? null;
  const adjusted = applyAdjustments(payment, base.cents, {
    earnedCents,
    refundedCents: base.cents - revenueCents,
    policyBaseCents,
  });
  return {
    likelyCause,
    customerUserId,
    baseCents: base.cents,
    fx: base.fx,
    binding,
    decidedBindingId: null,
    boundBy: code,
    furtherKeys: inherited === null ? furtherKeysOf(payment, binding, customerUserId) : [],
    waitsForUser: false,
    numbered,
    earning,
    reversals: adjusted.reversals,
    correction: null,
    revenue: [...firstRevenue, ...adjusted.revenue],
    booked: adjusted.booked,
    unconverted: adjusted.unconverted,
    converted: adjusted.converted,
  };
}

/**
 * Returns the creator whose code binds the user, who belongs to nobody yet: no user whom the payment leads to has a binding, not even
 * one that does not attribute it, or that a founder ended. Where the payment leads to no user, or only to one of a customer, which may
 * be a company with many, the code binds a key of the payment. `ambiguous`: the payment came with codes of several creators. Null: no code.
 */
function ownerByCode(payment: PaymentSnapshot): Evaluation['boundBy'] | 'ambiguous' {
  const [owner] = payment.codeOwners;
  const isFree =
    payment.candidates.every(
      ({ binding, givenToNobodyAt }) => binding === null && givenToNobodyAt === null,
    ) && payment.keysToBind.every(({ users }) => users.length === 0);
  const [payer] = payersOf(payment);
  const isKey = payer === undefined || payer.via === 'customer_key';
  const [key = null] = isKey ? payment.keysToBind : [];
  if (owner === undefined || !isFree || (isKey && key === null)) return null;
  if (!areCodesOf(payment, owner.binding.affiliateId)) return 'ambiguous';
  return mayAttribute(payment, owner.binding) ? { ...owner, key } : null;
}

/**
 * Returns the keys of a payment that become keys of its customer, whom a code has bound, now or before. A subscription then stays with the
 * creator whose code brought it, also under another anonymous id, and before the sign-in. A key of somebody else is none of them. `bound` is
 * whom the code binds: a user, who may have the id that a provider made for the customer, or a key.
 */
function furtherKeysOf(
  { keysToBind }: PaymentSnapshot,
  binding: BindingSnapshot | null,
  bound: string | null,
): readonly KeyToBind[] {
  if (binding?.matchMethod !== 'purchase_code') return [];
  return keysToBind.filter(
    (one) =>
      !one.isPayment &&
      one.userKey !== bound &&
      one.users.every(({ attributionId }) => attributionId === binding.attributionId),
  );
}

/** Whether another event may still name the user of a payment that has just been made and reported. */
function mayBeNamed(
  { now, receivedAt, occurredAt }: PaymentSnapshot,
  { keyGraceMs }: EvaluationLimits,
): boolean {
  return now - receivedAt < keyGraceMs && now - occurredAt < DAY_MS;
}

/** Returns the candidate who was decided on while the amount was unknown, unless a founder has given that one to nobody. */
const decidedUser = ({ candidates, decidedBindingId }: PaymentSnapshot): UserCandidate | undefined =>
  candidates.find(({ binding }) => binding !== null && binding.bindingId === decidedBindingId);

function identityCause(payment: PaymentSnapshot, user: UserCandidate | undefined): LikelyCause {
  if (user === undefined) {
    // Only bound keys that do not attribute the payment are candidates and no payers.
    if (payment.candidates.length > 0) return 'outside_attribution_window';
    return payment.onlyAnonymousUser ? 'anonymous_user_id' : 'missing_user_id';
  }
  if (user.binding !== null) return 'outside_attribution_window';
  if (user.identified) return 'user_not_attributed';
  if (user.nearlyIdentified) return 'user_id_mismatch';
  return user.identifiedInTest ? 'test_key_only' : 'user_never_identified';
}

/**
 * Returns the number of a payment among those of its customer, in an app with policies: that of the part that it replaces, else the
 * next one. It is taken whether the payment earns or not.
 */
function numberOf(payment: PaymentSnapshot, { policy }: BindingSnapshot): Evaluation['numbered'] {
  if (payment.inherited?.numbered != null) return payment.inherited.numbered;
  if (policy === null) return null;
  const { subjectId, payments, firstPaidAt } = policy;
  return { subjectId, number: payments + 1, firstPaidAt: firstPaidAt ?? payment.occurredAt, countsAs: null };
}

/** How a payment was attributed. */
interface Attributed extends Pick<Evaluation, 'numbered'> {
  readonly customerUserId: string;
  readonly binding: BindingSnapshot;
}

/** Returns the earning of a payment that is attributed through a binding, or why it earns nothing. */
function earn(
  payment: PaymentSnapshot,
  baseCents: number,
  { customerUserId, binding, numbered }: Attributed,
): Pick<Evaluation, 'likelyCause' | 'earning'> {
  // A part has earned while its affiliate was active, and a later change is not retroactive.
  const inherited = payment.inherited?.terms ?? null;
  const earned = earnedOn(payment, baseCents, { binding, numbered });
  if (inherited === null) {
    if (binding.affiliateStatus === 'removed') return { likelyCause: 'affiliate_removed', earning: null };
    if (binding.affiliateStatus === 'paused') return { likelyCause: 'affiliate_paused', earning: null };
  }
  if (earned === null) return { likelyCause: 'no_policy_rule', earning: null };
  if (earned.amountCents === 0) return { likelyCause: 'rate_zero', earning: null };
  const dueAt = dueAtOf(payment.occurredAt, payment.app.holdPeriodDays);
  return { likelyCause: null, earning: { binding, customerUserId, dueAt, ...earned } };
}

type Earned = EarningTerms & { readonly amountCents: number; readonly policy: PolicyEarning | null };

/** Returns what a payment earns, and on which terms: those of the part that it replaces, else those in effect. Null: no rule applies. */
function earnedOn(
  payment: PaymentSnapshot,
  baseCents: number,
  { binding, numbered }: Pick<Attributed, 'binding' | 'numbered'>,
): Earned | null {
  const inherited = payment.inherited?.terms ?? null;
  const sale = numbered === null ? null : saleOf(payment, baseCents, numbered);
  if (sale !== null && inherited?.rule != null) {
    const { terms, index } = inherited.rule;
    return byPolicy(inherited.rule, earnByRule(terms, index, sale));
  }
  const assigned =
    inherited === null ? policyThatCounts(binding.policy?.assigned ?? null, binding.affiliateRateBps) : null;
  if (sale !== null && assigned !== null) {
    const policy = earnByPolicy(assigned.terms, sale);
    return policy && byPolicy(assigned, policy);
  }
  const { rateBps, rateSource } = inherited ?? currentTerms(payment, binding);
  return { rateBps, rateSource, rule: null, amountCents: commissionCents(baseCents, rateBps), policy: null };
}

function byPolicy(
  { versionId, terms }: Pick<AssignedPolicy, 'versionId' | 'terms'>,
  policy: PolicyEarning,
): Earned {
  const { rateBps, amountCents, ruleIndex: index } = policy;
  return { rateBps, rateSource: 'policy', rule: { versionId, terms, index }, amountCents, policy };
}

function saleOf(
  { amountMinor, components, source, store, productId, occurredAt }: PaymentSnapshot,
  grossCents: number,
  { number, firstPaidAt }: NonNullable<Evaluation['numbered']>,
): PolicySale {
  return {
    grossCents,
    paidMinor: amountMinor,
    components: chooseComponents(components, source),
    store,
    productId: chooseProduct(components, source) ?? productId,
    paymentNumber: number,
    firstPaidAt,
    occurredAt,
  };
}

function currentTerms(
  payment: PaymentSnapshot,
  binding: BindingSnapshot,
): Pick<EarningTerms, 'rateBps' | 'rateSource'> {
  return binding.affiliateRateBps === null
    ? { rateBps: payment.app.commissionRateBps, rateSource: 'app' }
    : { rateBps: binding.affiliateRateBps, rateSource: 'affiliate' };
}

/** Returns the first revenue entry of a payment. Empty when the ledger has it, or when the payment is worth nothing. */
function revenueOf(payment: PaymentSnapshot, baseCents: number): RevenueEntry[] {
  if (payment.revenueCents !== null || baseCents <= 0) return [];
  return [{ adjustmentId: null, amountCents: baseCents, occurredAt: payment.occurredAt }];
}
