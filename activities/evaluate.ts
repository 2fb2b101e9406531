import { evaluatePayment } from '../src/domain/evaluate-payment.ts';
import type { Evaluation, EvaluationLimits } from '../src/domain/evaluation.ts';
import type { Logger } from 'pino';
import type { BindingId, PaymentId } from '../src/domain/ids.ts';
import { applyEvaluation, wasReadTooEarly } from '../src/db/evaluations.ts';
import { evaluateWithin } from '../src/db/evaluate-within.ts';
import type { EvaluatedPayment, EvaluationOptions } from '../src/db/evaluate-within.ts';
import type { EvaluatedDelivery } from '../src/db/evaluations.ts';
import { loadPayments, markForRecheck } from '../src/db/payments.ts';
import { lockSubject, numberEarlierPayments } from '../src/db/policy-snapshot.ts';
import type { StoredPayment } from '../src/db/payments.ts';
import { isEnvironmentFault, isStatementTooLarge } from '../src/db/errors.ts';
import type { Sql, Statements } from '../src/db/sql.ts';
import { throwIfCancelled } from './cancellation.ts';
import type { WorkEvents } from './work-events.ts';

/** A concurrent evaluation of the payment costs one more attempt. More than this in a row means a bug. */
const MAX_ATTEMPTS = 50;
/** From this attempt on, the evaluation of a payment that gets a number waits for those of the customer's other payments. */
const WAITS_FROM_ATTEMPT = 3;

/**
 * Evaluates one payment and appends the difference to the ledger. When a concurrent evaluation came between, it
 * evaluates again, so that some evaluation sees the fact that was committed last (docs/money.md, "Facts first").
 */
export async function evaluateAndApply(
  sql: Sql,
  payment: StoredPayment,
  delivery: EvaluatedDelivery | null,
  options: Omit<EvaluationOptions, 'delivery'> = {},
): Promise<EvaluatedPayment> {
  const { limits, reprocessRunId = null } = options;
  const apply = async (read: StoredPayment, evaluation: Evaluation) => {
    const applied = await applyEvaluation(sql, read, evaluation, delivery, reprocessRunId);
    return applied && { ...applied, evaluation };
  };
  /** Evaluates and applies while no other payment of the customer takes a number. */
  const applyAlone = async (subjectId: BindingId) => {
    const work = async (tx: Statements) => {
      await lockSubject(tx, subjectId);
      return await evaluateWithin(tx, payment.paymentId, { limits, delivery, reprocessRunId });
    };
    return await (sql.isTransaction ? work(sql) : sql.transaction(work));
  };
  let snapshot: StoredPayment | undefined = payment;
  let isNumbered = false;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && snapshot !== undefined; attempt += 1) {
    const evaluation = evaluatePayment(snapshot, limits);
    const subject = evaluation.binding?.policy ?? null;
    // What an earlier version attributed through a name that was erased since is not found: it stays without a number.
    if (subject?.hasUnnumbered === true && !isNumbered) {
      await numberEarlierPayments(sql, subject.subjectId);
      isNumbered = true;
    } else {
      const applied = await (
        subject === null || attempt < WAITS_FROM_ATTEMPT
          ? apply(snapshot, evaluation)
          : applyAlone(subject.subjectId)
      ).catch(noneIfReadTooEarly);
      if (applied !== null) return await withNewRates(sql, snapshot, applied, options);
    }
    [snapshot] = await loadPayments(sql, { rowId: payment.paymentId });
  }
  throw new Error(`payment ${payment.paymentId} changed during ${MAX_ATTEMPTS} evaluations in a row`);
}

/** Returns null, so that the payment is read again, if it was read too early. Throws any other error. */
function noneIfReadTooEarly(error: unknown): null {
  if (wasReadTooEarly(error)) return null;
  throw error;
}

/**
 * Evaluates a payment again if a rate that its refunds wait for was imported meanwhile. An import finds refunds that wait; it has
 * not found one whose evaluation was not committed.
 */
async function withNewRates(
  sql: Sql,
  { paymentId }: StoredPayment,
  evaluated: EvaluatedPayment,
  options: EvaluationOptions,
): Promise<EvaluatedPayment> {
  const { unconverted } = evaluated.evaluation;
  if (unconverted.length === 0) return evaluated;
  const [payment] = await loadPayments(sql, { rowId: paymentId });
  if (payment === undefined) return evaluated;
  const { converted } = evaluatePayment(payment, options.limits);
  if (!unconverted.some((eventId) => converted.includes(eventId))) return evaluated;
  const again = await evaluateAndApply(sql, payment, null, options);
  const { boundBy, furtherKeys } = evaluated.evaluation;
  return {
    ...again,
    // The payment is attributed, so only the first evaluation has bound somebody.
    evaluation: { ...again.evaluation, boundBy, furtherKeys },
    delivery: evaluated.delivery,
    commissions: [...evaluated.commissions, ...again.commissions],
  };
}

/** Returns the bindings that the code of a purchase has made, if any. */
export function newBindings({
  evaluation: { boundBy, furtherKeys },
}: EvaluatedPayment): readonly BindingId[] {
  return [...(boundBy === null ? [] : [boundBy.binding]), ...furtherKeys].map(({ bindingId }) => bindingId);
}

export interface EvaluateEachDeps extends Pick<WorkEvents, 'onCommissions' | 'onBindings'> {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly limits?: EvaluationLimits | undefined;
}

/** Whether a fault of the environment is one of all payments. A statement that needs too much is that of one. */
const isFaultOfAll = (error: unknown): boolean => isEnvironmentFault(error) && !isStatementTooLarge(error);

/**
 * Evaluates waiting payments with all their rows, one after the other: each with whom a code has bound for those before it. One that
 * fails is logged and marked, so that the relay has it evaluated again, and does not stop the others, also if it needs more time than a
 * statement has. A lost connection stops all of them.
 */
export async function evaluateEach(
  { sql, logger, limits, onCommissions, onBindings }: EvaluateEachDeps,
  paymentIds: readonly PaymentId[],
): Promise<{
  readonly evaluated: number;
  readonly failed: number;
  readonly commissions: number;
  /** Whether a code has bound somebody, so that what was read before may be out of date. */
  readonly hasBound: boolean;
}> {
  let [evaluated, failed, commissions, hasBound] = [0, 0, 0, false];
  /** Calls `work` for a payment; returns undefined if it fails. */
  const attempt = async <T>(paymentId: PaymentId, work: () => Promise<T>): Promise<T | undefined> => {
    throwIfCancelled();
    try {
      return await work();
    } catch (error) {
      if (isFaultOfAll(error)) throw error;
      failed += 1;
      logger.error({
        paymentId,
        err: error,
        msg: 'a waiting payment could not be evaluated; it is evaluated again later',
      });
      await markForRecheck(sql, paymentId);
      return undefined;
    }
  };
  const evaluate = async (payment: StoredPayment) => {
    const applied = await attempt(
      payment.paymentId,
      async () => await evaluateAndApply(sql, payment, null, { limits }),
    );
    if (applied === undefined) return;
    onCommissions(applied.commissions);
    const bound = newBindings(applied);
    onBindings(bound, payment.appId);
    hasBound ||= bound.length > 0;
    commissions += applied.commissions.length;
    evaluated += 1;
  };
  let loaded: StoredPayment[] | undefined;
  try {
    loaded = paymentIds.length === 0 ? [] : await loadPayments(sql, { paymentIds });
  } catch (error) {
    // One of them cannot be read: each is read alone.
    if (isFaultOfAll(error)) throw error;
  }
  for (const payment of loaded ?? []) {
    const { paymentId } = payment;
    const rows = hasBound
      ? await attempt(paymentId, async () => await loadPayments(sql, { rowId: paymentId }))
      : [payment];
    for (const row of rows ?? []) await evaluate(row);
  }
  if (loaded !== undefined) return { evaluated, failed, commissions, hasBound };
  for (const paymentId of paymentIds) {
    const rows = await attempt(paymentId, async () => await loadPayments(sql, { paymentIds: [paymentId] }));
    for (const payment of rows ?? []) await evaluate(payment);
  }
  return { evaluated, failed, commissions, hasBound };
}

/** A page begins no further payments after this, ms: it is done before its time is over, also if each takes as long as a statement may. */
const PAGE_MS = 15_000;
/** Payments that are read and evaluated together. */
const AT_A_TIME = 3;

/** Evaluates payments of a page in their order, a few at a time, until the time of a page is over: the first `done` of them, at least one. */
export async function evaluateInTime(
  deps: EvaluateEachDeps,
  paymentIds: readonly PaymentId[],
  pageMs: number = PAGE_MS,
): Promise<{
  readonly evaluated: number;
  readonly failed: number;
  readonly commissions: number;
  readonly done: number;
}> {
  const endsAt = performance.now() + pageMs;
  let [evaluated, failed, commissions, done] = [0, 0, 0, 0];
  while (done < paymentIds.length && (done === 0 || performance.now() < endsAt)) {
    const some = paymentIds.slice(done, done + AT_A_TIME);
    const result = await evaluateEach(deps, some);
    evaluated += result.evaluated;
    failed += result.failed;
    commissions += result.commissions;
    done += some.length;
  }
  return { evaluated, failed, commissions, done };
}
