import { continueAsNew, proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { PayoutRunActivities } from '../activities/payout-run.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE_SOON } from './options.ts';

export interface PayoutRunInput {
  readonly runId: string;
}

const briefly = proxyActivities<PayoutRunActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<PayoutRunActivities>(UNTIL_DONE_SOON);

const SETTLE_PAGE = { name: 'settlePayoutRunPage', does: 'pay the creators of a payout run' };

/** The pause before the requests of a page that were not settled in time are passed on again. */
const PAUSE = '1s';

/**
 * Pays the creators of an approved payout run, page by page, each through the creator's payout workflow. The database holds the progress,
 * so that a new workflow continues where the last one ended.
 *
 * @startedBy the relay, on a founder's approval
 */
export async function payoutRun(input: PayoutRunInput): Promise<{ items: number }> {
  const fallback = new Fallback();
  let before = -1;
  for (;;) {
    const { settled, items, done } = await fallback.run(
      SETTLE_PAGE,
      () => briefly.settlePayoutRunPage(input.runId),
      () => untilDone.settlePayoutRunPage(input.runId),
    );
    fallback.report(`Creators of the payout run: ${settled} of ${items} settled.`);
    if (done) return { items };
    if (settled === before) await sleep(PAUSE);
    before = settled;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof payoutRun>(input);
  }
}
