import { continueAsNew, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { HealingActivities } from '../activities/healing.ts';
import { Fallback } from './fallback.ts';
import { THREE_ATTEMPTS, UNTIL_DONE } from './options.ts';
import type { HealInput } from '../src/domain/workflow-contracts.ts';

const briefly = proxyActivities<HealingActivities>(THREE_ATTEMPTS);
const untilDone = proxyActivities<HealingActivities>(UNTIL_DONE);

/** Re-evaluates, page by page, the payments that a user made before the service knew the user's affiliate. */
export async function heal({ bindingId, after, pages = 0 }: HealInput): Promise<{ pages: number }> {
  const fallback = new Fallback();
  let from: string | null = after ?? null;
  let done = pages;
  for (;;) {
    const page: string | null = from;
    from = await fallback.run(
      'healPage',
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
