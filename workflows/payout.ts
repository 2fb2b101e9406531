import {
  condition,
  defineSignal,
  proxyLocalActivities,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import { UNTIL_DONE } from './options.ts';
import { PAYOUT_REQUESTED } from '../src/domain/workflow-contracts.ts';
import type { PayoutInput } from '../src/domain/workflow-contracts.ts';

const quick = proxyLocalActivities<LedgerActivities>({
  startToCloseTimeout: '20s',
  scheduleToCloseTimeout: '25s',
  retry: { maximumAttempts: 2, initialInterval: '50ms' },
});
const patient = proxyActivities<LedgerActivities>(UNTIL_DONE);

export const payoutRequested = defineSignal<[string]>(PAYOUT_REQUESTED);

/**
 * Settles the payout requests of one affiliate, one after the other. It learns nothing but the ids of requests that an
 * authorised call has written; what is paid, and whether, is decided by one SQL statement on the request's row.
 */
export async function payout(_input: PayoutInput): Promise<{ settled: number }> {
  const waiting: string[] = [];
  let settled = 0;
  setHandler(payoutRequested, (requestId) => {
    waiting.push(requestId);
  });
  await condition(() => waiting.length > 0);
  for (let requestId = waiting.shift(); requestId !== undefined; requestId = waiting.shift()) {
    try {
      await quick.settlePayoutRequest(requestId);
    } catch {
      await patient.settlePayoutRequest(requestId);
    }
    settled += 1;
  }
  return { settled };
}
