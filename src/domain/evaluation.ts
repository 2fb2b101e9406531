import { MINUTE_MS } from './time.ts';
import type { AdjustmentId, BindingId, EventId, PaymentId } from './ids.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { BindingSnapshot, CodeOwner, FrozenRate, EarningTerms, KeyToBind } from './payment-snapshot.ts';
import type { PaymentNumber } from './payment-rows.ts';
import type { PolicyEarning } from './policy.ts';

export interface EarningEntry extends EarningTerms {
  readonly binding: BindingSnapshot;
  readonly customerUserId: string;
  readonly amountCents: number;
  readonly dueAt: number;
  /** What it was computed from. Null for an earning of another rate. */
  readonly policy: PolicyEarning | null;
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
  /**
   * How long after a payment was received a code binds no key in place of a user, ms: another event of the same moment may name the
   * user, in any order.
   */
  readonly keyGraceMs: number;
}

/** A payment of up to a million dollars earns unless the operator configures another limit. */
export const DEFAULT_LIMITS: EvaluationLimits = { maxPaymentCents: 100_000_000, keyGraceMs: MINUTE_MS };

/** Takes back what is left of an earning. */
export interface CorrectionEntry {
  /** Always negative. */
  readonly amountCents: number;
  readonly baseCents: number;
}

export interface BookedAdjustment {
  readonly adjustmentId: AdjustmentId;
  readonly bookedMinor: number;
  /** The event that states the adjustment. */
  readonly eventId: EventId;
  /** Its value at the reference rate. Null if it was not converted. */
  readonly convertedCents: number | null;
}

/** What has to be appended to bring the ledger up to date. */
export interface Evaluation {
  readonly likelyCause: LikelyCause | null;
  readonly customerUserId: string | null;
  readonly baseCents: number | null;
  /** The rate at which this evaluation converted the base. Null when it converted nothing. */
  readonly fx: FrozenRate | null;
  readonly binding: BindingSnapshot | null;
  /** The binding through which the payment will be attributed when its amount in USD is known. Null if it is known, or nobody has it. */
  readonly decidedBindingId: BindingId | null;
  /** The code that binds the user, who is then new, or a key in place of one. Null if the user is bound, or stays unbound. */
  readonly boundBy: (CodeOwner & { readonly key: KeyToBind | null }) | null;
  /** The further keys of a person whom a code has bound: they belong to the same creator from now on. */
  readonly furtherKeys: readonly KeyToBind[];
  /** Whether the payment is evaluated again soon: until then an event may name its user, whom its code would bind. */
  readonly waitsForUser: boolean;
  /** The number that the payment gets among those of its customer. Null if it gets none. */
  readonly numbered: (PaymentNumber & { readonly countsAs: PaymentId | null }) | null;
  readonly earning: EarningEntry | null;
  readonly reversals: readonly ReversalEntry[];
  readonly correction: CorrectionEntry | null;
  readonly revenue: readonly RevenueEntry[];
  /** Adjustments, with the part that the ledger contains after this evaluation. */
  readonly booked: readonly BookedAdjustment[];
  /** The events of refunds and disputes that wait for the rate of their currency. */
  readonly unconverted: readonly EventId[];
  /** The events of refunds and disputes in another currency that do not wait. */
  readonly converted: readonly EventId[];
}
