import { continueAsNew, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { HealActivities } from '../activities/heal.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';

export interface HealInput {
  readonly bindingId: string;
  /** Where the next page begins, and how many pages were done: only in a run that continues another. */
  readonly after?: string;
  readonly pages?: number;
}

const briefly = proxyActivities<HealActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<HealActivities>(UNTIL_DONE);

const HEAL_PAGE = { name: 'healPage', does: "evaluate the user's earlier payments" };

/**
 * Re-evaluates, page by page, the payments that a user made before the service knew the user's affiliate.
 *
 * @startedBy identify, install, a transfer; the relay
 */
export async function heal({ bindingId, after, pages = 0 }: HealInput): Promise<{ pages: number }> {
  const fallback = new Fallback();
  let from: string | null = after ?? null;
  let done = pages;
  for (;;) {
    const page: string | null = from;
    from = await fallback.run(
      HEAL_PAGE,
      () => briefly.healPage(bindingId, page),
      () => untilDone.healPage(bindingId, page),
    );
    done += 1;
    fallback.report(`Pages of the user's earlier payments that were evaluated: ${done}.`);
    if (from === null) return { pages: done };
    if (workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof heal>({ bindingId, after: from, pages: done });
    }
  }
}
