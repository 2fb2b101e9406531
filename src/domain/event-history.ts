import type { AttributableKey } from './attributable-key.ts';
import type { AttributionMethod, MatchMethod } from './attribution.ts';
import type { Environment, EventKind, PaymentComponent } from './events.ts';
import type {
  AffiliateId,
  AttributionId,
  ClickId,
  CommissionId,
  DeliveryId,
  EventId,
  LinkId,
  PayoutId,
} from './ids.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { CommissionKind } from './payment-snapshot.ts';
import type { PolicyInputs, ShownPolicy } from './policy.ts';
import type { PurchaseCode } from './purchase-codes.ts';

/** The delivery that reported the event. Every event has one. */
export interface ExplainedDelivery {
  readonly deliveryId: DeliveryId;
  readonly provider: string;
  readonly receivedAt: number;
  readonly processingStatus: string;
  readonly lastError: string | null;
  /** Whether the operator made it from an export of the provider. */
  readonly isReconciled: boolean;
  readonly secretSetAt: number | null;
  readonly secretEnvironment: Environment | null;
  readonly bodySha256: string;
  readonly bodyBytes: number | null;
}

/** The event as it was read. There is none when the body could not be read, or when the delivery is a duplicate. */
export interface ExplainedEvent {
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly environment: Environment;
  readonly occurredAt: number;
  readonly productId: string | null;
  readonly store: string | null;
  readonly paymentRef: string | null;
  readonly currency: string | null;
  readonly amountMinor: number | null;
  readonly tax: PaymentComponent | null;
  readonly storeFee: PaymentComponent | null;
  readonly amountCents: number | null;
  readonly fxUnits: string | null;
  readonly fxWorthUsd: string | null;
  readonly fxSource: string | null;
  readonly customerUserId: string | null;
  readonly likelyCause: LikelyCause | null;
}

/** A touch that came after the device had its attribution. */
export interface LostTouch {
  readonly affiliateId: AffiliateId;
  readonly matchMethod: MatchMethod;
  readonly touchedAt: number;
}

/** A user whom the payment's events name. */
export interface ExplainedUser {
  readonly customerUserId: string;
  /** The provider whose key the id is, which stands for a user. Absent for a user. */
  readonly keySource?: string;
  readonly identified: boolean;
  /** Identified users whose ids differ only in spelling. Empty for a user who was identified. */
  readonly similarUserIds: readonly string[];
  readonly attribution: null | {
    readonly attributionId: AttributionId;
    readonly decided: boolean;
    readonly affiliateId: AffiliateId;
    readonly affiliateName: string;
    readonly linkId: LinkId | null;
    readonly clickId: ClickId | null;
    readonly matchMethod: AttributionMethod;
    readonly touchedAt: number;
    readonly firstOpenAt: number;
    readonly boundAt: number;
    readonly lostTouches: readonly LostTouch[];
  };
  /** The attribution of the user's device by a test key. It never decides. */
  readonly testAttribution: null | {
    readonly attributionId: AttributionId;
    readonly affiliateId: AffiliateId;
    readonly affiliateName: string;
    readonly linkId: LinkId | null;
    readonly matchMethod: MatchMethod;
    readonly touchedAt: number;
  };
}

/** Whether a code of a payment was in force when the customer used it, or why it did not count. `off`: no code attributes anything in the app. */
export const CODE_STATES = [
  'in_force',
  'unregistered',
  'registered_later',
  'deactivated',
  'creator_removed',
  'user_attributed',
  'off',
] as const;

/** A code that the payment came with, and whose it is. */
export interface ExplainedCode extends PurchaseCode {
  readonly state: (typeof CODE_STATES)[number];
  /** Null for a code that nobody has registered. */
  readonly affiliateId: AffiliateId | null;
  readonly affiliateName: string | null;
}

/** The payment that the event reports, also when another event reported it first. */
export interface ExplainedPayment {
  readonly firstEventId: EventId;
  readonly occurredAt: number;
  /** The app's current setting. */
  readonly attributionWindowDays: number;
  readonly likelyCause: LikelyCause | null;
  readonly isAttributed: boolean;
  readonly countedElsewhere: boolean;
  readonly users: readonly ExplainedUser[];
  readonly codes: readonly ExplainedCode[];
  /** Null if a user is known, or nothing stands for one. */
  readonly attributableKey: AttributableKey | null;
}

export interface ExplainedCommission {
  readonly commissionId: CommissionId;
  readonly eventId: EventId;
  readonly kind: CommissionKind;
  readonly status: string;
  readonly rateBps: number;
  readonly rateSource: 'affiliate' | 'app' | 'policy' | null;
  /** Absent for another rate. */
  readonly policy?: ShownPolicy;
  /** What the policy of an earning was assigned to when the customer paid. Absent for another row. */
  readonly policyScope?: 'affiliate' | 'group' | 'app';
  /** What an earning by a policy was computed from. Absent for another row. */
  readonly policyInputs?: PolicyInputs;
  readonly baseCents: number;
  readonly amountCents: number;
  readonly occurredAt: number;
  readonly dueAt: number;
  /** Null until a payout contains it. */
  readonly payoutId: PayoutId | null;
}

/** Everything that is stored about one event. */
export interface EventHistory {
  readonly eventId: EventId;
  readonly delivery: ExplainedDelivery;
  readonly event: ExplainedEvent | null;
  /** For a duplicate: the event that reported it first. */
  readonly duplicateOf: EventId | null;
  readonly payment: ExplainedPayment | null;
  /** All commissions of the payment, in the order in which they were written. */
  readonly commissions: readonly ExplainedCommission[];
}
