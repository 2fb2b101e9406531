import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { Evaluation, EvaluationLimits } from '../src/domain/evaluate-payment.ts';
import type { DeliveryId, EventId, ReprocessRunId } from '../src/domain/ids.ts';
import { applyEvaluation, loadPayments } from '../src/db/payments.ts';
import type { AppliedEvaluation, StoredPayment } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';

/** A concurrent evaluation of the payment costs one more attempt. More than this in a row means a bug. */
const MAX_ATTEMPTS = 50;

/** What was appended to a payment, and the evaluation that it follows from. */
export interface EvaluatedPayment extends AppliedEvaluation {
  readonly evaluation: Evaluation;
}

export interface EvaluationOptions {
  /** The defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  /** The reprocess run that the new rows belong to. */
  readonly reprocessRunId?: ReprocessRunId | null;
}

/**
 * Evaluates one payment and appends the difference to the ledger. When a concurrent evaluation came between, it
 * evaluates again, so that some evaluation sees the fact that was committed last (docs/money.md, "Facts first").
 */
export async function evaluateAndApply(
  sql: Sql,
  payment: StoredPayment,
  delivery: { deliveryId: DeliveryId; eventId: EventId; sourceEventId: string } | null,
  { limits, reprocessRunId = null }: EvaluationOptions = {},
): Promise<EvaluatedPayment> {
  let snapshot: StoredPayment | undefined = payment;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && snapshot !== undefined; attempt += 1) {
    const evaluation = evaluatePayment(snapshot, limits);
    const applied = await applyEvaluation(sql, snapshot, evaluation, delivery, reprocessRunId);
    if (applied !== null) return { ...applied, evaluation };
    [snapshot] = await loadPayments(sql, { paymentIds: [payment.paymentId] });
  }
  throw new Error(`payment ${payment.paymentId} changed during ${MAX_ATTEMPTS} evaluations in a row`);
}
