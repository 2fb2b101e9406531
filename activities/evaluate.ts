import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { Evaluation } from '../src/domain/evaluate-payment.ts';
import type { DeliveryId, EventId, ReprocessRunId } from '../src/domain/ids.ts';
import { applyEvaluation, loadPayments } from '../src/db/payments.ts';
import type { AppliedEvaluation, StoredPayment } from '../src/db/payments.ts';
import type { Sql } from '../src/db/sql.ts';

/** Two evaluations that meet cost one of them another look. More than this in a row is no meeting but a fault. */
const MAX_LOOKS = 50;

/** What was appended to a payment, and the evaluation that asked for it. */
export interface EvaluatedPayment extends AppliedEvaluation {
  readonly evaluation: Evaluation;
}

/**
 * Evaluates one payment and appends the difference. When another evaluation came between, it looks again: whichever
 * fact was committed last is seen by somebody (docs/money.md, "Facts first").
 */
export async function evaluateAndApply(
  sql: Sql,
  payment: StoredPayment,
  delivery: { deliveryId: DeliveryId; eventId: EventId; sourceEventId: string } | null,
  reprocessRunId: ReprocessRunId | null = null,
): Promise<EvaluatedPayment> {
  let snapshot: StoredPayment | undefined = payment;
  for (let look = 1; look <= MAX_LOOKS && snapshot !== undefined; look += 1) {
    const evaluation = evaluatePayment(snapshot);
    const applied = await applyEvaluation(sql, snapshot, evaluation, delivery, reprocessRunId);
    if (applied !== null) return { ...applied, evaluation };
    [snapshot] = await loadPayments(sql, { paymentIds: [payment.paymentId] });
  }
  throw new Error(`payment ${payment.paymentId} changed under ${MAX_LOOKS} evaluations in a row`);
}
