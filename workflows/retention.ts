import { isCancellation, patched, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { RetentionActivities, RetentionPage } from '../activities/retention.ts';
import { RETENTION_KINDS } from '../src/domain/retention.ts';
import { UNTIL_NEXT_RUN } from './options.ts';

const { removeExpired } = proxyActivities<RetentionActivities>(UNTIL_NEXT_RUN);

/** Pages of one kind in one run. The next run goes on where this one ends. */
const PAGES = 50;

/**
 * Removes data whose time is over. A kind that fails does not stop the others.
 *
 * @startedBy its Schedule, every hour
 */
export async function retention(): Promise<{ removed: number }> {
  let removed = 0;
  let failure: unknown = null;
  for (const kind of RETENTION_KINDS) {
    if (kind === 'webhook_messages' && !patched('webhook-messages')) continue;
    if (kind === 'emails' && !patched('emails')) continue;
    try {
      let after: string | null = '';
      for (let page = 0; page < PAGES && after !== null; page += 1) {
        const done: RetentionPage = await removeExpired(kind, after);
        removed += done.removed;
        setCurrentDetails(`Rows of expired data that were removed: ${removed}. The last kind was ${kind}.`);
        after = done.next;
      }
    } catch (error) {
      if (isCancellation(error)) throw error;
      failure = error;
    }
  }
  if (failure !== null) throw failure;
  return { removed };
}
