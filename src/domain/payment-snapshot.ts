import type { ExchangeRate } from './exchange-rate.ts';
import type {
  AdjustmentId,
  AffiliateId,
  AttributionId,
  BindingId,
  CodeId,
  CommissionId,
  EventId,
  LinkId,
  PolicyVersionId,
} from './ids.ts';
import type { AdjustmentFact, Environment } from './events.ts';
import type { AffiliateStatus, AttributionMethod } from './attribution.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { PolicyContext, PolicyTerms, StatedComponents } from './policy.ts';
import type { RowStanding } from './payment-rows.ts';

/** A reversal follows a refund or dispute. A correction takes back an earning of a payment that earned twice. */
export const COMMISSION_KINDS = ['earning', 'reversal', 'correction'] as const;

export type CommissionKind = (typeof COMMISSION_KINDS)[number];

export interface BindingSnapshot {
  readonly bindingId: BindingId;
  readonly boundAt: number;
  readonly touchedAt: number;
  readonly matchMethod: AttributionMethod;
  /** When a founder said so, which may be later than the instant from which on it counts (`touchedAt`). Null: nobody did. */
  readonly saidAt: number | null;
  /** A person whom a code has bound, with all keys, has one. */
  readonly attributionId: AttributionId;
  /** The attribution, if the user was given to another creator before the payment. Null: that of the binding. */
  readonly reassignedTo: AttributionId | null;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly affiliateStatus: AffiliateStatus;
  /** Null when the affiliate inherits the app's rate. */
  readonly affiliateRateBps: number | null;
  /** Null in an app without policies. */
  readonly policy: PolicyContext | null;
}

/**
 * How a payment leads to a user: a code bound one of the payment's keys, which then stands for a user; an event of the payment names the
 * user; or another event ties one of the payment's keys at the provider to the user. A subscription is closer to the payer than a
 * customer, which may be a company with many users.
 */
export const CANDIDATE_SOURCES = ['bound_key', 'event', 'key', 'customer_key'] as const;

export type CandidateSource = (typeof CANDIDATE_SOURCES)[number];

/**
 * A regular expression for the keys of customers: Stripe's and Paddle's, and what stands for one that was erased. Every other key is of a
 * subscription.
 */
export const CUSTOMER_KEY = '^((cus|ctm)_|erased:customer:)';

export interface UserCandidate {
  readonly customerUserId: string;
  /** The closest way in which the payment leads to this user. */
  readonly via: CandidateSource;
  /** Whether a device has reported this user. */
  readonly identified: boolean;
  /** Whether a device has reported an id that differs only in case, surrounding spaces or a prefix of this id. */
  readonly nearlyIdentified: boolean;
  /** Whether devices have reported this user, but only with a test key, which binds nobody. */
  readonly identifiedInTest: boolean;
  readonly binding: BindingSnapshot | null;
  /** When a founder said that the user, or the key, belongs to nobody. Null if none did, or gave it to somebody later. */
  readonly givenToNobodyAt: number | null;
}

/** A key of a payment that nobody has: an anonymous customer or a subscription at a provider. */
export interface KeyToBind {
  readonly userKey: string;
  readonly source: string;
  /** Whether it is the reference of a payment that has no key. */
  readonly isPayment: boolean;
  /** Those whom events name with it and who have a binding, with the attribution of the first binding of their person. */
  readonly users: readonly {
    readonly customerUserId: string;
    readonly attributionId: AttributionId;
  }[];
  /** The new id of the binding that a code would make. */
  readonly bindingId: BindingId;
}

/** A creator whose code a payment came with, or whose code its subscription began with. */
export interface CodeOwner {
  readonly codeId: CodeId;
  /** The binding that the code would make. Its id is new. */
  readonly binding: BindingSnapshot;
}

export interface AdjustmentSnapshot {
  readonly adjustmentId: AdjustmentId;
  readonly ref: string;
  /** The reference of the payment that the refund or dispute names. */
  readonly paymentRef: string;
  readonly kind: AdjustmentFact['kind'];
  readonly state: 'applied' | 'reversed';
  readonly reversesAll: boolean;
  /** Whether it is the running total of a charge. */
  readonly isTotal: boolean;
  /** When the refund was made. Null where the provider does not state it. */
  readonly madeAt: number | null;
  /** When its state was last stated. */
  readonly statedAt: number;
  /** The rate of its currency on the payment's day, if it is another one and the provider states no USD value. */
  readonly referenceRate: FrozenRate | null;
  readonly currency: string;
  readonly amountMinor: number;
  /** As the provider states it, or as it was converted when the payment booked it. */
  readonly usdCents: number | null;
  readonly occurredAt: number;
  readonly eventId: EventId;
  /** The part that the payment's ledger already contains, in minor units of its currency. */
  readonly bookedMinor: number;
}

export interface EarningSnapshot {
  readonly commissionId: CommissionId;
  readonly amountCents: number;
  /** The base of a policy, US cents. Null for an earning of another rate, whose base is that of the payment. */
  readonly policyBaseCents: number | null;
}

/** The rate that a payment was converted at, with its source. Later imports do not change it. */
export interface FrozenRate extends ExchangeRate {
  readonly source: string;
}

/** The rate of an earning, and whether it is the affiliate's own setting, the app's, or that of a policy. */
export interface EarningTerms {
  readonly rateBps: number;
  readonly rateSource: 'affiliate' | 'app' | 'policy';
  /** The rule of a policy. Null for another rate. */
  readonly rule: {
    readonly versionId: PolicyVersionId;
    readonly terms: PolicyTerms;
    readonly index: number;
  } | null;
}

/** A payment with all known facts, read in one statement that begins after the newest fact was committed. */
export interface PaymentSnapshot extends Omit<RowStanding, 'isPart'> {
  readonly environment: Environment;
  readonly currency: string;
  readonly amountMinor: number;
  readonly usdCents: number | null;
  readonly occurredAt: number;
  /** When the delivery that first reported the payment was received. */
  readonly receivedAt: number;
  readonly onlyAnonymousUser: boolean;
  readonly store: string;
  readonly source: string;
  readonly productId: string | null;
  /** What the events of the payment state about its components. Empty in an app without policies. */
  readonly components: readonly StatedComponents[];
  readonly evaluatedAt: number | null;
  readonly likelyCause: LikelyCause | null;
  readonly baseCents: number | null;
  /** The binding that the payment was attributed through. Once set, it never changes. */
  readonly bindingId: BindingId | null;
  /** The binding that was decided on while the amount in USD was unknown. Once set, it never changes. */
  readonly decidedBindingId: BindingId | null;
  readonly reversedCents: number;
  /** The part of the earning that a correction took back. */
  readonly correctedCents: number;
  /** Sum of the revenue entries in the ledger. Null when there are none. */
  readonly revenueCents: number | null;
  readonly earning: EarningSnapshot | null;
  /** In the order in which they decide: those of the own row first, then by their place in the event (`paymentColumns` in src/db). */
  readonly candidates: readonly UserCandidate[];
  /** The creators whose codes the payment came with. Empty in an app whose codes attribute nothing. */
  readonly codeOwners: readonly CodeOwner[];
  /** What a code binds of the customer beside the user, or in place of one. The first is the closest. Empty if codes attribute nothing. */
  readonly keysToBind: readonly KeyToBind[];
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
