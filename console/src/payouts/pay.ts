import { api, Problem } from '../api/client.ts';
import { closeAttempt, openAttempt } from './attempts.ts';
import type { Attempt, Scope } from './attempts.ts';

export interface PaidPayout {
  readonly payoutId: string;
  readonly csv: Blob;
  /** What was paid: less than what is due if more than one payout takes is due. */
  readonly totalCents: number;
  /** Whether earnings remain due that this payout had no room for. */
  readonly moreDue: boolean;
}

export type Outcome =
  /** The payout of `attempt`. */
  | { readonly kind: 'paid'; readonly attempt: Attempt; readonly payout: PaidPayout }
  /** Nothing was sent: an earlier payment of another total to this creator waits for its answer. */
  | { readonly kind: 'other_waits'; readonly attempt: Attempt }
  /** The service has stated that nothing was paid. */
  | { readonly kind: 'not_paid'; readonly error: Problem }
  /** Nothing was paid, and another payment would be refused at present, too. A new request may pay later. */
  | { readonly kind: 'refused'; readonly error: Problem }
  /** The session may not pay at present. An earlier request of the attempt may have paid. */
  | { readonly kind: 'not_raised' }
  /** No answer, or none that says whether it paid. The same request can be sent again. */
  | { readonly kind: 'unknown'; readonly error: Problem };

/** Codes of answers that close the request permanently: it has not paid and never will. */
const NOT_PAID = new Set([
  'another_approver_needed',
  'total_changed',
  'payout_not_settled',
  'payouts_stopped',
  'payouts_blocked',
  'not_found',
]);

/** Codes and statuses of answers that every payment would get at present. */
const REFUSED_CODES = new Set(['payout_not_settled', 'payouts_stopped']);
const REFUSED_STATUSES = new Set([401, 403, 429]);

/** Returns the outcome of a request that has paid nothing. */
const notPaid = (error: Problem): Outcome =>
  REFUSED_CODES.has(error.code) || REFUSED_STATUSES.has(error.status)
    ? { kind: 'refused', error }
    : { kind: 'not_paid', error };

/**
 * Pays what is due to a creator: the total of the row, or nothing. An attempt that waits for its answer is sent again
 * instead, with its own key, so however often this runs, one attempt pays at most once. Sends nothing if that attempt has
 * another total, because the founder has not confirmed it.
 */
export async function pay(
  scope: Scope,
  row: Pick<Attempt, 'affiliateId' | 'affiliateName' | 'count' | 'expectedTotalCents'>,
): Promise<Outcome> {
  const { attempt, isNew } = openAttempt(scope, row);
  if (attempt.expectedTotalCents !== row.expectedTotalCents) return { kind: 'other_waits', attempt };
  const close = () => closeAttempt(scope, attempt);
  const answer = await api
    .POST('/apps/{appId}/affiliates/{affiliateId}/payouts/export', {
      params: {
        path: { appId: scope.appId, affiliateId: attempt.affiliateId },
        header: { 'Idempotency-Key': attempt.idempotencyKey },
      },
      body: { expectedTotalCents: attempt.expectedTotalCents },
      parseAs: 'blob',
    })
    // No response, or one that ended in the middle.
    .catch(() => null);
  if (answer === null) return { kind: 'unknown', error: new Problem(0, {}) };
  const { data, error, response } = answer;
  if (data !== undefined) {
    close();
    const payoutId = response.headers.get('X-Payout-Id');
    const totalCents = response.headers.get('X-Payout-Total-Cents');
    return payoutId === null
      ? { kind: 'not_paid', error: new Problem(200, { detail: 'Nothing is due. Nothing was paid.' }) }
      : {
          kind: 'paid',
          attempt,
          payout: {
            payoutId,
            csv: data,
            // An older process of the service, during an update, does not say it.
            totalCents: totalCents === null ? attempt.expectedTotalCents : Number(totalCents),
            moreDue: response.headers.get('X-Payout-More-Due') === 'true',
          },
        };
  }
  const problem = new Problem(response.status, typeof error === 'object' ? error : {});
  if (NOT_PAID.has(problem.code)) {
    close();
    return notPaid(problem);
  }
  // Only the first request of an attempt is known to have paid nothing when it is refused.
  if (isNew && problem.isRefusal) close();
  if (problem.code === 'session_not_raised') return { kind: 'not_raised' };
  return isNew && problem.isRefusal ? notPaid(problem) : { kind: 'unknown', error: problem };
}
