/**
 * Compares what a provider's export states about one payment with what is stored about it. The identity of a payment and
 * of a refund is the provider's own id, never a guess by time and amount.
 */
import type { PaymentFact } from './events.ts';
import { CAUSE_EXPLANATIONS } from './likely-causes.ts';
import { FINDING_KINDS, NOTHING, factsOf, WHAT_TO_DO } from './reconcile-findings.ts';
import type {
  ExportedGroup,
  RecordedPayment,
  RecordedGroup,
  Finding,
  ComparisonScope,
} from './reconcile-findings.ts';
import { compareRefunds } from './reconcile-refunds.ts';

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
    ...compareOutOfBand(exported, recorded),
    ...(scope.hasRefunds ? compareRefunds(exported, recorded, scope) : []),
  ];
  return findings.toSorted((a, b) => FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind));
}

function comparePayment(exported: ExportedGroup, recorded: RecordedGroup): Finding[] {
  if (exported.payment === null) return [];
  const { fact, at, line, userIds, refusal } = exported.payment;
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
  const wrong = wrongAmount(fact, payment, outOfBand(exported, recorded, payment.currency));
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

/**
 * Returns the part of a stored payment that was received outside the provider, as far as the export does not have it: some
 * exports state it as a part of the payment, others state only what the provider received.
 */
function outOfBand(exported: ExportedGroup, { adjustments }: RecordedGroup, currency: string): number {
  const isListed = exported.adjustments.some(({ fact }) => fact.kind === 'out_of_band');
  if (isListed) return 0;
  return adjustments
    .filter((a) => a.kind === 'out_of_band' && a.state === 'applied' && a.currency === currency)
    .reduce((sum, a) => sum + a.amountMinor, 0);
}

/** Returns the parts of a payment that the export has as received outside the provider and that no webhook has reported. */
function compareOutOfBand(exported: ExportedGroup, recorded: RecordedGroup): Finding[] {
  return exported.adjustments
    .filter(({ fact }) => fact.kind === 'out_of_band')
    .filter(({ fact }) => !recorded.adjustments.some((a) => a.ref === fact.ref))
    .map((row) => ({
      ...factsOf(row, recorded),
      kind: 'missing_refund',
      exportedMinor: row.fact.amountMinor,
      detail: 'No webhook has reported that a part of this payment was received outside the provider.',
      feedBack: row.refusal ?? 'yes',
    }));
}

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
