import { continueAsNew, proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { EraseActivities } from '../activities/erase.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';

export interface EraseInput {
  readonly erasureId: string;
}

const briefly = proxyActivities<EraseActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<EraseActivities>(UNTIL_DONE);

const ERASE_PAGE = { name: 'erasePage', does: 'search the stored webhooks for an erased person' };

/**
 * Completes the erasure of a person, whose rows were erased by the request: searches all deliveries of the app page by page,
 * and once more when everything that was being written meanwhile has ended. The database holds the progress.
 *
 * @startedBy the relay, on the request of a founder or operator
 */
export async function erase(input: EraseInput): Promise<{ pages: number }> {
  const fallback = new Fallback();
  let pages = 0;
  for (;;) {
    const { done, waitMs } = await fallback.run(
      ERASE_PAGE,
      () => briefly.erasePage(input.erasureId),
      () => untilDone.erasePage(input.erasureId),
    );
    pages += 1;
    if (done) return { pages };
    if (waitMs > 0) await sleep(waitMs);
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof erase>(input);
  }
}
