import type { Evaluation } from '../../src/domain/evaluation.ts';
import type {
  AdjustmentSnapshot,
  BindingSnapshot,
  PaymentSnapshot,
  UserCandidate,
} from '../../src/domain/payment-snapshot.ts';
import type {
  AdjustmentId,
  AffiliateId,
  AttributionId,
  BindingId,
  CommissionId,
  EventId,
} from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';

/** When payments are evaluated. */
export const NOW = 1_790_000_000_000;

/** Through a click ten days ago. */
export const binding: BindingSnapshot = {
  bindingId: 'bnd_1' as BindingId,
  boundAt: NOW,
  touchedAt: NOW - 10 * DAY_MS,
  matchMethod: 'claim_token',
  affiliateId: 'aff_1' as AffiliateId,
  linkId: null,
  affiliateStatus: 'active',
  affiliateRateBps: null,
  policy: null,
  saidAt: null,
  reassignedTo: null,
  attributionId: 'att_1' as AttributionId,
};

/** Ten dollars that a user of that creator paid yesterday, as it is first evaluated. */
export const payment: PaymentSnapshot = {
  environment: 'production',
  currency: 'USD',
  amountMinor: 1_000,
  usdCents: 1_000,
  occurredAt: NOW - DAY_MS,
  receivedAt: NOW - 1,
  onlyAnonymousUser: false,
  store: 'app_store',
  source: 'revenuecat',
  productId: 'pro_monthly',
  components: [],
  codeOwners: [],
  keysToBind: [],
  evaluatedAt: null,
  likelyCause: 'processing',
  baseCents: null,
  bindingId: null,
  decidedBindingId: null,
  reversedCents: 0,
  correctedCents: 0,
  revenueCents: null,
  earning: null,
  countedElsewhere: false,
  duplicateOf: null,
  inherited: null,
  candidates: [candidate('user-1', { identified: true, binding })],
  adjustments: [],
  app: { commissionRateBps: 2_000, attributionWindowDays: 30, holdPeriodDays: 30 },
  referenceRate: null,
  now: NOW,
};

/** A refund of three dollars. */
export function adjustment(n: number, over: Partial<AdjustmentSnapshot> = {}): AdjustmentSnapshot {
  return {
    adjustmentId: `adj_${n}` as AdjustmentId,
    eventId: `evt_${n}` as EventId,
    ref: `re_${n}`,
    paymentRef: 'pi_1',
    isTotal: false,
    madeAt: null,
    statedAt: NOW + n,
    referenceRate: null,
    kind: 'refund',
    state: 'applied',
    reversesAll: false,
    currency: 'USD',
    amountMinor: 300,
    usdCents: 300,
    occurredAt: NOW + n,
    bookedMinor: 0,
    ...over,
  };
}

/** The payment after an evaluation was applied. */
export function after(before: PaymentSnapshot, evaluation: Evaluation): PaymentSnapshot {
  const reversed = evaluation.reversals.reduce((sum, r) => sum - r.amountCents, before.reversedCents);
  const revenue = evaluation.revenue.reduce((sum, r) => sum + r.amountCents, before.revenueCents ?? 0);
  return {
    ...before,
    evaluatedAt: before.evaluatedAt ?? before.now,
    likelyCause: evaluation.likelyCause,
    baseCents: evaluation.baseCents,
    bindingId: before.bindingId ?? evaluation.binding?.bindingId ?? null,
    decidedBindingId: before.decidedBindingId ?? evaluation.decidedBindingId,
    reversedCents: reversed,
    revenueCents: before.revenueCents === null && evaluation.revenue.length === 0 ? null : revenue,
    earning:
      before.earning ??
      (evaluation.earning === null
        ? null
        : {
            commissionId: 'com_1' as CommissionId,
            amountCents: evaluation.earning.amountCents,
            policyBaseCents: evaluation.earning.policy?.baseCents ?? null,
          }),
    adjustments: before.adjustments.map((a) => ({
      ...a,
      bookedMinor:
        evaluation.booked.find((b) => b.adjustmentId === a.adjustmentId)?.bookedMinor ?? a.bookedMinor,
    })),
  };
}

/** A candidate as read from the database, with only the given properties. */
export function candidate(customerUserId: string, over: Partial<UserCandidate> = {}) {
  return {
    customerUserId,
    via: 'event' as const,
    identified: false,
    nearlyIdentified: false,
    identifiedInTest: false,
    givenToNobodyAt: null,
    binding: null,
    ...over,
  };
}

/** The evaluation of a payment that earns nothing. */
export const NOTHING: Evaluation = {
  likelyCause: null,
  customerUserId: null,
  baseCents: null,
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
