import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { Evaluation, EvaluationLimits } from '../src/domain/evaluate-payment.ts';
import type { Logger } from 'pino';
import type { PaymentId, ReprocessRunId } from '../src/domain/ids.ts';
import { applyEvaluation } from '../src/db/evaluations.ts';
import type { AppliedEvaluation, EvaluatedDelivery, NewCommission } from '../src/db/evaluations.ts';
import { loadPayments, markForRecheck } from '../src/db/payments.ts';
import type { StoredPayment } from '../src/db/payments.ts';
import { isConnectionFailure } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import { throwIfCancelled } from './cancellation.ts';

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
  delivery: EvaluatedDelivery | null,
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

export interface EvaluateEachDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly limits?: EvaluationLimits | undefined;
  readonly onCommissions: (commissions: readonly NewCommission[]) => void;
}

/**
 * Evaluates waiting payments, one after the other. One that fails is logged and marked, so that the relay has it
 * evaluated again, and does not stop the others. A lost connection stops all of them.
 */
export async function evaluateEach(
  { sql, logger, limits, onCommissions }: EvaluateEachDeps,
  paymentIds: readonly PaymentId[],
): Promise<{ readonly evaluated: number; readonly failed: number; readonly commissions: number }> {
  let [evaluated, failed, commissions] = [0, 0, 0];
  const loaded = new Map<PaymentId, StoredPayment>();
  try {
    for (const payment of paymentIds.length === 0 ? [] : await loadPayments(sql, { paymentIds })) {
      loaded.set(payment.paymentId, payment);
    }
  } catch (error) {
    // One of them cannot be read: each is read alone.
    if (isConnectionFailure(error)) throw error;
  }
  for (const paymentId of paymentIds) {
    throwIfCancelled();
    try {
      const payment = loaded.get(paymentId) ?? (await loadPayments(sql, { paymentIds: [paymentId] }))[0];
      if (payment === undefined) continue;
      const applied = await evaluateAndApply(sql, payment, null, { limits });
      onCommissions(applied.commissions);
      commissions += applied.commissions.length;
      evaluated += 1;
    } catch (error) {
      if (isConnectionFailure(error)) throw error;
      failed += 1;
      logger.error({
        paymentId,
        err: error,
        msg: 'a waiting payment could not be evaluated; it is evaluated again later',
      });
      await markForRecheck(sql, paymentId);
    }
  }
  return { evaluated, failed, commissions };
}
