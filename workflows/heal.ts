import { proxyActivities } from '@temporalio/workflow';
import type { HealingActivities } from '../activities/healing.ts';
import { UNTIL_DONE } from './options.ts';
import type { HealInput } from '../src/domain/workflow-contracts.ts';

const { healPage } = proxyActivities<HealingActivities>(UNTIL_DONE);

/** Re-evaluates, page by page, the payments that a user made before the service knew the user's affiliate. */
export async function heal({ bindingId }: HealInput): Promise<{ pages: number }> {
  let after: string | null = null;
  let pages = 0;
  do {
    after = await healPage(bindingId, after);
    pages += 1;
  } while (after !== null);
  return { pages };
}
