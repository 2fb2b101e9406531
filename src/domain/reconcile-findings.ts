import type { AdjustmentFact, OriginalAmount, PaymentFact } from './events.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { EventId } from './ids.ts';

/** The id of every event that was made from an export begins with this. No provider's id does. */
export const RECONCILED_EVENT_PREFIX = 'reconciliation:';

/** A fact of an export, with its line in the file. */
export interface Exported<Fact> {
  readonly fact: Fact;
  /** Business time, epoch ms. */
  readonly at: number;
  readonly line: number;
  readonly userIds: readonly string[];
  /** Why no event may be made from the export, as a sentence; null if one may. */
  readonly refusal: string | null;
}

/** What an export states about one payment. A file of refunds has no payment. */
export interface ExportedGroup {
  /** All names of the payment at the provider. */
  readonly refs: readonly string[];
  readonly payment: Exported<PaymentFact> | null;
  readonly adjustments: readonly Exported<AdjustmentFact>[];
}

/** A stored refund or dispute. */
export interface RecordedAdjustment extends OriginalAmount {
  readonly ref: string;
  readonly kind: AdjustmentFact['kind'];
  readonly state: AdjustmentFact['state'];
  readonly reversesAll: boolean;
  readonly occurredAt: number;
  readonly eventId: EventId;
}

/** A stored payment. */
export interface RecordedPayment extends PaymentFact {
  readonly occurredAt: number;
  readonly eventId: EventId;
  readonly customerUserId: string | null;
  readonly isAttributed: boolean;
  readonly earnedCents: number;
  readonly likelyCause: LikelyCause | null;
}

/** What is stored about one payment, under all of its references. */
export interface RecordedGroup {
  readonly payment: RecordedPayment | null;
  readonly adjustments: readonly RecordedAdjustment[];
}

/** The kinds of findings, in the order of reports. All but `earned_nothing` are differences. */
export const FINDING_KINDS = [
  'missing_payment',
  'missing_refund',
  'wrong_amount',
  'wrong_refund',
  'payment_not_in_export',
  'refund_not_in_export',
  'unreadable',
  'earned_nothing',
] as const;

export type FindingKind = (typeof FINDING_KINDS)[number];

/** One result of a comparison. */
export interface Finding {
  readonly kind: FindingKind;
  /** Epoch ms. Null where the row can't be read. */
  readonly at: number | null;
  /** The line in the file, from 1. Null for what the export does not have. */
  readonly line: number | null;
  readonly store: string | null;
  readonly paymentRef: string | null;
  readonly refundRef: string | null;
  readonly customerUserId: string | null;
  readonly currency: string | null;
  /** Minor units of `currency`. Null where that side has none. */
  readonly exportedMinor: number | null;
  readonly recordedMinor: number | null;
  readonly eventId: EventId | null;
  readonly cause: LikelyCause | null;
  readonly detail: string;
  /** What `--feed-back` does: `yes` adds the event; otherwise why not. Null where there is nothing to add. */
  readonly feedBack: string | null;
}

/** What is compared. */
export interface ComparisonScope {
  /** Whether the provider's refunds have ids of their own. Otherwise totals are compared. */
  readonly hasRefundIds: boolean;
  /** Whether the export states how much is refunded. Otherwise it only says that a payment is refunded. */
  readonly hasRefundAmounts: boolean;
  /** Whether the export has refunds at all. */
  readonly hasRefunds: boolean;
  /** Why no refund of a part of a payment may be made of the export, as a sentence; null if one may. */
  readonly partialRefusal: string | null;
  /** The range of the export, epoch ms, both ends included. Refunds outside of it are not expected in the export. */
  readonly from: number;
  readonly to: number;
}

/** Whether a finding is a difference between the export and what is stored. */
export function isDifference({ kind }: Pick<Finding, 'kind'>): boolean {
  return kind !== 'earned_nothing';
}

export const NOTHING = {
  line: null,
  refundRef: null,
  customerUserId: null,
  exportedMinor: null,
  recordedMinor: null,
  eventId: null,
  cause: null,
  feedBack: null,
} as const;

/** Returns what every finding states about a refund or dispute of the export. */
export function factsOf({ fact, at, line, userIds }: Exported<AdjustmentFact>, recorded: RecordedGroup) {
  const { store, paymentRef, ref: refundRef, currency } = fact;
  const customerUserId = userIds[0] ?? recorded.payment?.customerUserId ?? null;
  return { ...NOTHING, at, line, store, paymentRef, refundRef, customerUserId, currency };
}

export const WHAT_TO_DO =
  'Stored amounts are never edited: find out which of the two is right, with the explanation of the event.';
