import {
  condition,
  continueAsNew,
  defineSignal,
  proxyLocalActivities,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { PayoutActivities } from '../activities/payout.ts';
import { Fallback } from './fallback.ts';
import { SETTLED_FAST, UNTIL_DONE_SOON } from './options.ts';
import { PAYOUT_REQUESTED } from '../src/domain/signals.ts';

export interface PayoutInput {
  readonly affiliateId: string;
  /** The requests that wait, and how many were settled: only in a run that continues another. */
  readonly waiting?: readonly string[];
  readonly settled?: number;
}

const fast = proxyLocalActivities<PayoutActivities>(SETTLED_FAST);
const untilDone = proxyActivities<PayoutActivities>(UNTIL_DONE_SOON);

const SETTLE_PAYOUT_REQUEST = { name: 'settlePayoutRequest', does: 'settle a request for an export' };

export const payoutRequested = defineSignal<[string]>(PAYOUT_REQUESTED);

/**
 * Settles the payout requests of one affiliate, one after the other. It receives only the ids of requests that an
 * authorised call has written. The row of the request decides whether something is paid.
 *
 * @startedBy an export or a payout run, with a signal
 */
export async function payout(input: PayoutInput): Promise<{ settled: number }> {
  const waiting: string[] = [...(input.waiting ?? [])];
  let settled = input.settled ?? 0;
  const fallback = new Fallback();
  setHandler(payoutRequested, (requestId) => {
    waiting.push(requestId);
  });
  await condition(() => waiting.length > 0);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const requestId = next;
    await fallback.run(
      SETTLE_PAYOUT_REQUEST,
      () => fast.settlePayoutRequest(requestId),
      () => untilDone.settlePayoutRequest(requestId),
    );
    settled += 1;
    fallback.report(
      `Requests for an export of the affiliate: ${settled} settled, ${waiting.length} waiting.`,
    );
    if (waiting.length > 0 && workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof payout>({ affiliateId: input.affiliateId, waiting, settled });
    }
  }
  return { settled };
}
