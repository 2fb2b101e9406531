/**
 * Compares what a provider's export states about one payment with what is stored about it. The identity of a payment and
 * of a refund is the provider's own id, never a guess by time and amount.
 */
import type { AdjustmentFact, OriginalAmount, PaymentFact } from './events.ts';
import type { LikelyCause } from './evaluate-payment.ts';
import type { EventId } from './ids.ts';
import { CAUSE_EXPLANATIONS } from './likely-causes.ts';
import { share } from './money.ts';

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

const NOTHING = {
  line: null,
  refundRef: null,
  customerUserId: null,
  exportedMinor: null,
  recordedMinor: null,
  eventId: null,
  cause: null,
  feedBack: null,
} as const;

/** Returns the finding for a row that can't be read. */
export function unreadableRow(line: number, reason: string): Finding {
  return {
    ...NOTHING,
    kind: 'unreadable',
    at: null,
    line,
    store: null,
    paymentRef: null,
    currency: null,
    detail: reason,
  };
}

/** Returns the finding for a stored payment that the export does not have. */
export function paymentNotInExport(payment: RecordedPayment): Finding {
  return {
    ...NOTHING,
    kind: 'payment_not_in_export',
    at: payment.occurredAt,
    store: payment.store,
    paymentRef: payment.ref,
    customerUserId: payment.customerUserId,
    currency: payment.currency,
    recordedMinor: payment.amountMinor,
    eventId: payment.eventId,
    detail: 'A webhook reported this payment, and the export does not have it.',
  };
}

/** Compares one payment and its refunds. Returns the findings in the order of `FINDING_KINDS`. */
export function compareGroup(
  exported: ExportedGroup,
  recorded: RecordedGroup,
  scope: ComparisonScope,
): readonly Finding[] {
  const findings = [
    ...comparePayment(exported, recorded),
    ...(scope.hasRefunds ? compareRefunds(exported, recorded, scope) : []),
  ];
  return findings.toSorted((a, b) => FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind));
}

function comparePayment({ payment: exported }: ExportedGroup, recorded: RecordedGroup): Finding[] {
  if (exported === null) return [];
  const { fact, at, line, userIds, refusal } = exported;
  const common = {
    ...NOTHING,
    at,
    line,
    store: fact.store,
    paymentRef: fact.ref,
    currency: fact.currency,
    exportedMinor: fact.amountMinor,
  };
  const { payment } = recorded;
  if (payment === null) {
    return [
      {
        ...common,
        kind: 'missing_payment',
        customerUserId: userIds[0] ?? null,
        detail: 'No webhook has reported this payment.',
        feedBack: refusal ?? 'yes',
      },
    ];
  }
  const stored = {
    ...common,
    customerUserId: payment.customerUserId,
    recordedMinor: payment.amountMinor,
    eventId: payment.eventId,
  };
  const wrong = wrongAmount(fact, payment, outOfBand(recorded));
  const findings: Finding[] = [];
  if (wrong !== null) findings.push({ ...stored, kind: 'wrong_amount', detail: wrong });
  if (payment.earnedCents === 0 && payment.likelyCause !== null) {
    const { likelyCause } = payment;
    findings.push({
      ...stored,
      kind: 'earned_nothing',
      cause: likelyCause,
      detail: CAUSE_EXPLANATIONS[likelyCause],
    });
  }
  return findings;
}

/** Returns the part of a payment that was received outside the provider, which no export of the provider has. */
function outOfBand({ payment, adjustments }: RecordedGroup): number {
  return adjustments
    .filter((a) => a.kind === 'out_of_band' && a.state === 'applied' && a.currency === payment?.currency)
    .reduce((sum, a) => sum + a.amountMinor, 0);
}

const WHAT_TO_DO =
  'Stored amounts are never edited: find out which of the two is right, with the explanation of the event.';

/** Returns how the amounts differ, as a sentence, or null. The service's own rounding was applied to both. */
function wrongAmount(fact: PaymentFact, payment: RecordedPayment, outside: number): string | null {
  if (fact.currency !== payment.currency) {
    if (fact.usdCents !== null && fact.usdCents === payment.usdCents) return null;
    return `The export states the payment in ${fact.currency}, the webhook stated it in ${payment.currency}. ${WHAT_TO_DO}`;
  }
  const expected = payment.amountMinor - outside;
  if (fact.amountMinor !== expected) {
    return `The amounts differ by ${Math.abs(fact.amountMinor - expected)} minor units. ${WHAT_TO_DO}`;
  }
  if (fact.usdCents !== null && payment.usdCents !== null && fact.usdCents !== payment.usdCents) {
    return `The values in US dollars differ: ${fact.usdCents} cents in the export, ${payment.usdCents} in the webhook. ${WHAT_TO_DO}`;
  }
  return null;
}

function compareRefunds(exported: ExportedGroup, recorded: RecordedGroup, scope: ComparisonScope): Finding[] {
  const adjustments = recorded.adjustments.filter((a) => a.kind !== 'out_of_band');
  const stored = { ...recorded, adjustments };
  if (!scope.hasRefundIds) return compareTotals(exported, stored, scope);
  const isRunningTotal = adjustments.some((a) => exported.refs.includes(a.ref));
  if (!isRunningTotal) return compareById(exported, stored, scope);
  const refused = exported.adjustments.map((one) => ({ ...one, refusal: RUNNING_TOTAL }));
  return compareTotals({ ...exported, adjustments: refused }, stored, scope);
}

const RUNNING_TOTAL =
  'The webhook endpoint reports the running total of a charge instead of single refunds, so a refund of the export could count twice. Have the provider send the webhook again.';

/** Returns the latest state of each refund: a later row, or a higher rank, replaces an earlier one. */
function latestStates(adjustments: readonly Exported<AdjustmentFact>[]): readonly Exported<AdjustmentFact>[] {
  const latest = new Map<string, Exported<AdjustmentFact>>();
  for (const one of adjustments) {
    const other = latest.get(one.fact.ref);
    const isLater =
      other === undefined ||
      one.fact.rank > other.fact.rank ||
      (one.fact.rank === other.fact.rank && one.at >= other.at);
    if (isLater) latest.set(one.fact.ref, one);
  }
  return [...latest.values()];
}

/** Whether a refund takes back less than its payment, as far as the two can be compared. */
function isPartial(fact: AdjustmentFact, exported: ExportedGroup, recorded: RecordedGroup): boolean {
  if (fact.kind !== 'refund' || fact.state !== 'applied') return false;
  const payment = recorded.payment ?? exported.payment?.fact ?? null;
  const amount = payment === null ? null : inCurrencyOf(payment, fact);
  return payment === null || amount === null || amount < payment.amountMinor;
}

/** Returns the refunds that took money back and still do. */
function stillApplied(adjustments: readonly RecordedAdjustment[]): readonly RecordedAdjustment[] {
  const undoings = adjustments.filter((a) => a.reversesAll && a.state === 'reversed');
  return adjustments.filter(
    (a) =>
      a.state === 'applied' &&
      !undoings.some((undoing) => undoing.kind === a.kind && undoing.occurredAt >= a.occurredAt),
  );
}

function compareById(exported: ExportedGroup, recorded: RecordedGroup, scope: ComparisonScope): Finding[] {
  const findings: Finding[] = [];
  const inExport = latestStates(exported.adjustments);
  const applied = stillApplied(recorded.adjustments);
  for (const { fact, at, line, userIds, refusal: ownRefusal } of inExport) {
    const refusal = ownRefusal ?? (isPartial(fact, exported, recorded) ? scope.partialRefusal : null);
    const common = {
      ...NOTHING,
      at,
      line,
      store: fact.store,
      paymentRef: fact.paymentRef,
      refundRef: fact.ref,
      customerUserId: userIds[0] ?? recorded.payment?.customerUserId ?? null,
      currency: fact.currency,
      exportedMinor: fact.state === 'applied' ? fact.amountMinor : 0,
    };
    const stored = recorded.adjustments.find((a) => a.ref === fact.ref);
    const isApplied = applied.some((a) => a.ref === fact.ref);
    const what = fact.kind === 'refund' ? 'refund' : 'dispute';
    const eventId = stored?.eventId ?? null;
    const recordedMinor = stored === undefined ? null : isApplied ? stored.amountMinor : 0;
    if (fact.reversesAll === true) {
      if (stored !== undefined) continue;
      const detail = `No webhook has reported that this ${what} was undone.`;
      findings.push({
        ...common,
        exportedMinor: null,
        kind: 'missing_refund',
        detail,
        feedBack: refusal ?? 'yes',
      });
    } else if (stored === undefined) {
      if (fact.state === 'reversed') continue;
      const detail = `No webhook has reported this ${what}.`;
      findings.push({ ...common, kind: 'missing_refund', detail, feedBack: refusal ?? 'yes' });
    } else if (fact.state === 'reversed' && isApplied) {
      const detail = `The export says that the money of this ${what} came back, and no webhook has reported that.`;
      const feedBack = refusal ?? 'yes';
      findings.push({ ...common, kind: 'missing_refund', recordedMinor, eventId, detail, feedBack });
    } else if (fact.state === 'applied' && !isApplied) {
      const isUndone = inExport.some((a) => a.fact.reversesAll === true && a.fact.kind === fact.kind);
      if (isUndone) continue;
      const detail = `The export says that this ${what} took money back, the webhooks say that the money came back. ${WHAT_TO_DO}`;
      findings.push({ ...common, kind: 'wrong_refund', recordedMinor, eventId, detail });
    } else if (isApplied && (stored.currency !== fact.currency || stored.amountMinor !== fact.amountMinor)) {
      const detail = `The amount of this ${what} differs. ${WHAT_TO_DO}`;
      findings.push({ ...common, kind: 'wrong_refund', recordedMinor, eventId, detail });
    }
  }
  for (const stored of applied) {
    if (inExport.some(({ fact }) => fact.ref === stored.ref)) continue;
    if (stored.occurredAt < scope.from || stored.occurredAt > scope.to) continue;
    findings.push(refundNotInExport(exported, recorded, stored, stored.amountMinor));
  }
  return findings;
}

function refundNotInExport(
  exported: ExportedGroup,
  { payment }: RecordedGroup,
  stored: RecordedAdjustment,
  recordedMinor: number,
): Finding {
  return {
    ...NOTHING,
    kind: 'refund_not_in_export',
    at: stored.occurredAt,
    line: exported.payment?.line ?? null,
    store: payment?.store ?? exported.payment?.fact.store ?? null,
    paymentRef: exported.payment?.fact.ref ?? payment?.ref ?? null,
    refundRef: stored.ref,
    customerUserId: payment?.customerUserId ?? null,
    currency: stored.currency,
    recordedMinor,
    eventId: stored.eventId,
    detail: 'A webhook reported this refund or dispute, and the export does not have it.',
  };
}

/** Returns an amount in minor units of the payment's currency, or null where the two cannot be compared. */
function inCurrencyOf(payment: OriginalAmount, amount: OriginalAmount): number | null {
  if (amount.currency === payment.currency) return amount.amountMinor;
  return amount.usdCents === null || payment.usdCents === null
    ? null
    : share(payment.amountMinor, amount.usdCents, payment.usdCents);
}

/** Returns what is refunded of a payment in all, at most the payment. Null where an amount cannot be compared. */
function totalOf(payment: OriginalAmount, refunds: readonly OriginalAmount[]): number | null {
  const parts = refunds.map((refund) => inCurrencyOf(payment, refund));
  if (parts.includes(null)) return null;
  const sum = parts.reduce<number>((total, part) => total + (part ?? 0), 0);
  return Math.min(sum, payment.amountMinor);
}

const PARTIAL_REFUND =
  'The export has no id for this refund, and it is partial: it could count twice when its webhook arrives later. Have the provider send the webhook again.';

/** Compares the refunds of a payment whose provider gives them no ids: what is refunded of the payment in all. */
function compareTotals(exported: ExportedGroup, recorded: RecordedGroup, scope: ComparisonScope): Finding[] {
  const inExport = latestStates(exported.adjustments).filter(({ fact }) => fact.state === 'applied');
  const stored = stillApplied(recorded.adjustments);
  const payment = exported.payment?.fact ?? recorded.payment;
  const [last] = inExport.toReversed();
  if (payment === null) {
    // Without its payment a refund is compared by its presence: amounts have nothing to be compared with.
    if (last === undefined || stored.length > 0) return [];
    return [missingRefund(recorded, last, null, 'The export does not have the payment of this refund.')];
  }
  const exportedMinor = totalOf(
    payment,
    inExport.map(({ fact }) => fact),
  );
  const recordedMinor = totalOf(payment, stored);
  if (exportedMinor === recordedMinor && exportedMinor !== null) return [];
  const [latest] = stored.toReversed();
  if (last === undefined) {
    if (latest === undefined || latest.occurredAt < scope.from || latest.occurredAt > scope.to) return [];
    return [refundNotInExport(exported, recorded, latest, recordedMinor ?? latest.amountMinor)];
  }
  const isFull = exportedMinor === payment.amountMinor;
  const refusal = last.refusal ?? (isFull ? null : PARTIAL_REFUND);
  if (stored.length === 0) return [missingRefund(recorded, last, exportedMinor, refusal)];
  const finding = missingRefund(recorded, last, exportedMinor, refusal);
  const common = { ...finding, recordedMinor, eventId: latest?.eventId ?? null };
  return (exportedMinor ?? 0) > (recordedMinor ?? 0) && isFull
    ? [{ ...common, detail: 'The webhooks have reported only a part of this refund.' }]
    : [
        {
          ...common,
          kind: 'wrong_refund',
          detail: `What was refunded of this payment differs. ${WHAT_TO_DO}`,
          feedBack: null,
        },
      ];
}

function missingRefund(
  { payment }: RecordedGroup,
  { fact, at, line, userIds }: Exported<AdjustmentFact>,
  exportedMinor: number | null,
  refusal: string | null,
): Finding {
  return {
    ...NOTHING,
    kind: 'missing_refund',
    at,
    line,
    store: fact.store,
    paymentRef: fact.paymentRef,
    customerUserId: userIds[0] ?? payment?.customerUserId ?? null,
    currency: fact.currency,
    exportedMinor: exportedMinor ?? fact.amountMinor,
    detail: 'No webhook has reported this refund.',
    feedBack: refusal ?? 'yes',
  };
}
