import { evaluateWithin } from '../db/evaluate-within.ts';
import type { EvaluatedPayment } from '../db/evaluate-within.ts';
import { identifierHasher } from '../db/erased-identifiers.ts';
import {
  findCreatorOfUser,
  findManualAttribution,
  holdBinding,
  recordManualAttribution,
} from '../db/manual-attributions.ts';
import type { ManualAttribution, NewManualAttribution, Refusal } from '../db/manual-attributions.ts';
import { wasReadTooEarly } from '../db/evaluations.ts';
import type { HeldCommission } from '../db/maturing.ts';
import { findWaitingPayments, loadPayments } from '../db/payments.ts';
import type { Statements } from '../db/sql.ts';
import { evaluatePayment } from '../domain/evaluate-payment.ts';
import type { Evaluation, EvaluationLimits } from '../domain/evaluation.ts';
import type { AffiliateId, BindingId, PaymentId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';
import { healBinding } from './heal-binding.ts';

/** A user with more waiting payments is no person, and would keep the request too long. */
export const MOST_WAITING_PAYMENTS = 200;
/** How often a payment that others change meanwhile is read again. */
const ATTEMPTS = 10;
/** How often the request runs again because somebody else has just bound the user, or a payment was read too early. */
const RACES = 3;

export interface AttributionByHand extends Omit<NewManualAttribution, 'userHash'> {
  /** What earlier payments should earn, US cents. Null without `from`. */
  readonly expectedCents: number | null;
  readonly limits: EvaluationLimits;
}

/** What earlier payments earn by an attribution. */
type Earlier = Pick<ManualAttribution, 'payments' | 'earnedCents'>;

export type AttributionByHandResult =
  | { readonly kind: 'attributed'; readonly attribution: ManualAttribution }
  | ({
      readonly kind: 'previewed';
      /** To whom later payments belong now. Null: nobody. */
      readonly current: { readonly affiliateId: AffiliateId; readonly affiliateName: string } | null;
    } & Earlier)
  | { readonly kind: 'unknown_affiliate' | 'too_many_payments' | 'payments_wait_for_rate' | Refusal }
  | ({ readonly kind: 'total_changed' } & Earlier);

/** Ends a transaction that must leave nothing. */
class RolledBack extends Error {
  readonly result: AttributionByHandResult;
  constructor(result: AttributionByHandResult) {
    super(`nothing was written: ${result.kind}`);
    this.result = result;
  }
}

interface Written {
  readonly result: AttributionByHandResult;
  readonly commissions: readonly HeldCommission[];
}

/**
 * Attributes a user to a creator because a founder says so, and evaluates the user's payments since `from`, in one transaction: either
 * exactly what was expected is booked, or nothing. With `isPreview`, everything is rolled back.
 */
export async function attributeByHand(
  deps: Pick<CommandDeps, 'sql' | 'secretBox' | 'workflows'>,
  request: AttributionByHand,
  { isPreview }: { readonly isPreview: boolean },
): Promise<AttributionByHandResult> {
  const { appId, customerUserId } = request;
  const userHash = (await identifierHasher(deps.sql, deps.secretBox))(appId, customerUserId);
  const attempt = async (): Promise<Written> =>
    await deps.sql
      .transaction(async (tx) => await write(tx, { ...request, userHash }, isPreview))
      .catch((error: unknown) => {
        if (error instanceof RolledBack) return { result: error.result, commissions: [] };
        if (wasReadTooEarly(error)) return { result: { kind: 'lost_race' }, commissions: [] };
        throw error;
      });
  let written = await attempt();
  for (let race = 1; race < RACES && written.result.kind === 'lost_race'; race += 1)
    written = await attempt();
  const { result, commissions } = written;
  if (result.kind === 'attributed') {
    deps.workflows.startHolds(commissions);
    // Payments that arrived meanwhile, and those of users who got transferred purchases.
    if (!result.attribution.reassigns) await healBinding(deps, request.bindingId, appId);
  }
  return result;
}

async function write(
  tx: Statements,
  request: AttributionByHand & Pick<NewManualAttribution, 'userHash'>,
  isPreview: boolean,
): Promise<Written> {
  const { id, appId, customerUserId, from, expectedCents } = request;
  const stored = await findManualAttribution(tx, appId, id);
  if (stored !== undefined) return { result: { kind: 'attributed', attribution: stored }, commissions: [] };
  const current = isPreview ? ((await findCreatorOfUser(tx, appId, customerUserId)) ?? null) : null;
  const held = await holdBinding(tx, request);
  if (held === undefined) throw new RolledBack({ kind: 'unknown_affiliate' });
  if (typeof held === 'string') throw new RolledBack({ kind: held });
  const evaluated = from === null ? [] : await evaluateWaiting(tx, request, held.bindingId);
  const earlier = sumOf(evaluated);
  if (isPreview) throw new RolledBack({ kind: 'previewed', current, ...earlier });
  if (expectedCents !== null && expectedCents !== earlier.earnedCents)
    throw new RolledBack({ kind: 'total_changed', ...earlier });
  const attribution = await recordManualAttribution(tx, request, held, earlier);
  if (attribution === undefined) throw new Error(`the manual attribution ${id} is not there`);
  return {
    result: { kind: 'attributed', attribution },
    commissions: evaluated.flatMap(({ commissions }) => commissions),
  };
}

/**
 * Evaluates the waiting payments that are attributed through the binding. Others of the user are those of somebody else, or from before
 * the attribution: they stay as they are.
 */
async function evaluateWaiting(
  tx: Statements,
  { appId, customerUserId, limits }: AttributionByHand,
  bindingId: BindingId,
): Promise<readonly EvaluatedPayment[]> {
  const waiting = await findWaitingPayments(tx, appId, customerUserId, null, MOST_WAITING_PAYMENTS + 1);
  if (waiting.length > MOST_WAITING_PAYMENTS) throw new RolledBack({ kind: 'too_many_payments' });
  if (waiting.length === 0) return [];
  const evaluated: EvaluatedPayment[] = [];
  for (const { paymentId } of await loadPayments(tx, { paymentIds: waiting })) {
    const [payment] = await loadPayments(tx, { rowId: paymentId });
    if (payment === undefined || !isThrough(evaluatePayment(payment, limits), bindingId)) continue;
    evaluated.push(await evaluateOne(tx, paymentId, limits));
  }
  if (evaluated.some(({ evaluation }) => waitsForRate(evaluation)))
    throw new RolledBack({ kind: 'payments_wait_for_rate' });
  return evaluated;
}

/**
 * Whether a payment, or a refund or dispute of it, waits for a rate, so that it would earn more or less later than anybody was shown. What
 * waits is not committed: an import of rates that runs at the same time would not find it.
 */
const waitsForRate = ({ likelyCause, unconverted }: Evaluation): boolean =>
  likelyCause === 'missing_exchange_rate' || unconverted.length > 0;

/** Whether a payment is attributed through a binding, also if its amount is not known yet. */
const isThrough = ({ binding, decidedBindingId }: Evaluation, bindingId: BindingId): boolean =>
  binding?.bindingId === bindingId || decidedBindingId === bindingId;

async function evaluateOne(
  tx: Statements,
  paymentId: PaymentId,
  limits: EvaluationLimits,
): Promise<EvaluatedPayment> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const evaluated = await evaluateWithin(tx, paymentId, { limits });
    if (evaluated !== null) return evaluated;
  }
  throw new Error(`payment ${paymentId} changed during ${ATTEMPTS} evaluations in a row`);
}

function sumOf(evaluated: readonly EvaluatedPayment[]): Earlier {
  const earned = evaluated.map(({ evaluation: { earning, reversals, correction } }) =>
    [earning, correction, ...reversals].reduce((sum, row) => sum + (row?.amountCents ?? 0), 0),
  );
  return {
    payments: evaluated.filter(({ evaluation }) => evaluation.earning !== null).length,
    earnedCents: earned.reduce((sum, cents) => sum + cents, 0),
  };
}
