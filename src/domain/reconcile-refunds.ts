import type { AdjustmentFact, OriginalAmount } from './events.ts';
import { share } from './money.ts';
import { NOTHING, factsOf, WHAT_TO_DO } from './reconcile-findings.ts';
import type {
  Exported,
  ExportedGroup,
  RecordedAdjustment,
  RecordedGroup,
  Finding,
  ComparisonScope,
} from './reconcile-findings.ts';

export function compareRefunds(
  all: ExportedGroup,
  recorded: RecordedGroup,
  scope: ComparisonScope,
): Finding[] {
  const adjustments = recorded.adjustments.filter(
    (a) => a.kind !== 'out_of_band' && a.kind !== 'credit_note',
  );
  const stored = { ...recorded, adjustments };
  const exported = {
    ...all,
    adjustments: all.adjustments.filter(({ fact }) => fact.kind !== 'out_of_band'),
  };
  if (!scope.hasRefundIds) return compareTotals(exported, stored, scope);
  const isRunningTotal = adjustments.some((a) => exported.refs.includes(a.ref));
  if (!isRunningTotal) return compareById(exported, stored, scope);
  const refused = exported.adjustments.map((one) => ({ ...one, refusal: RUNNING_TOTAL }));
  return compareTotals({ ...exported, adjustments: refused }, stored, scope);
}

const RUNNING_TOTAL =
  'The webhook endpoint reports the running total of a charge instead of single refunds, so a refund of the export could count twice. Have the provider send the webhook again.';

/**
 * Whether money that came back is only a part of what was taken, in the currency of both. A lost dispute returns what was
 * refunded before, so a balance that states only movements does not show it as won.
 */
function isPartOf(back: AdjustmentFact, taken: OriginalAmount): boolean {
  return (
    back.kind === 'chargeback' &&
    back.state === 'reversed' &&
    back.currency === taken.currency &&
    back.amountMinor < taken.amountMinor
  );
}

/** Returns the latest state of each refund: a later row, or a higher rank, replaces an earlier one. */
function latestStates(adjustments: readonly Exported<AdjustmentFact>[]): readonly Exported<AdjustmentFact>[] {
  const latest = new Map<string, Exported<AdjustmentFact>>();
  for (const one of adjustments) {
    const other = latest.get(one.fact.ref);
    if (other !== undefined && (isPartOf(one.fact, other.fact) || isPartOf(other.fact, one.fact))) {
      latest.set(one.fact.ref, one.fact.state === 'applied' ? one : other);
      continue;
    }
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
  if (payment === null) return true;
  const amount = inCurrencyOf(payment, fact);
  return amount === null || amount < payment.amountMinor;
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
  for (const row of inExport) {
    const { fact, refusal: ownRefusal } = row;
    const refusal = ownRefusal ?? (isPartial(fact, exported, recorded) ? scope.partialRefusal : null);
    const common = {
      ...factsOf(row, recorded),
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
      if (isPartOf(fact, stored)) continue;
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

/**
 * Compares the refunds of a payment whose provider gives them no ids: what is refunded of the payment in all. An export that does not state how
 * much knows less than a webhook: the refund of an App Store upgrade is a part of the price.
 */
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
  if (!scope.hasRefundAmounts && last !== undefined && latest !== undefined) return [];
  if (last === undefined) {
    if (latest === undefined || latest.occurredAt < scope.from || latest.occurredAt > scope.to) return [];
    return [refundNotInExport(exported, recorded, latest, recordedMinor ?? latest.amountMinor)];
  }
  const isFull = exportedMinor === payment.amountMinor;
  const refusal = last.refusal ?? (isFull ? null : PARTIAL_REFUND);
  const finding = missingRefund(recorded, last, exportedMinor, refusal);
  if (latest === undefined) return [finding];
  const common = { ...finding, recordedMinor, eventId: latest.eventId };
  return isFull && exportedMinor > (recordedMinor ?? 0)
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
