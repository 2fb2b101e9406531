import { evaluatePayment } from '../domain/evaluate-payment.ts';
import type { Evaluation, EvaluationLimits } from '../domain/evaluation.ts';
import type { PaymentId, ReprocessRunId } from '../domain/ids.ts';
import { applyEvaluation } from './evaluations.ts';
import type { AppliedEvaluation, EvaluatedDelivery } from './evaluations.ts';
import { loadPayments } from './payments.ts';
import type { Statements } from './sql.ts';

/** What was appended to a payment, and the evaluation that it follows from. */
export interface EvaluatedPayment extends AppliedEvaluation {
  readonly evaluation: Evaluation;
}

export interface EvaluationOptions {
  /** The defaults of the domain if absent. */
  readonly limits?: EvaluationLimits | undefined;
  readonly delivery?: EvaluatedDelivery | null;
  /** The reprocess run that the new rows belong to. */
  readonly reprocessRunId?: ReprocessRunId | null;
}

/**
 * Reads a payment, evaluates it and appends the difference, as part of a transaction. Null if the payment has changed in between, or is
 * unknown: call it again. An import of rates at the same time does not find a refund that waits for its rate (`unconverted`): the caller
 * evaluates the payment again after the commit, or commits nothing.
 */
export async function evaluateWithin(
  tx: Statements,
  paymentId: PaymentId,
  { limits, delivery = null, reprocessRunId = null }: EvaluationOptions,
): Promise<EvaluatedPayment | null> {
  const [payment] = await loadPayments(tx, { rowId: paymentId });
  if (payment === undefined) return null;
  const evaluation = evaluatePayment(payment, limits);
  const applied = await applyEvaluation(tx, payment, evaluation, delivery, reprocessRunId);
  return applied && { ...applied, evaluation };
}
