import {
  CancellationScope,
  continueAsNew,
  isCancellation,
  proxyActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { ReprocessActivities, ReprocessProgress } from '../activities/reprocess.ts';
import { Fallback } from './fallback.ts';
import { FIRST_ATTEMPTS, UNTIL_DONE } from './options.ts';

export interface ReprocessInput {
  readonly reprocessRunId: string;
}

const briefly = proxyActivities<ReprocessActivities>(FIRST_ATTEMPTS);
const untilDone = proxyActivities<ReprocessActivities>(UNTIL_DONE);

const REPROCESS_PAGE = { name: 'reprocessPage', does: 'reprocess stored deliveries' };

/**
 * Reprocesses stored deliveries, page by page. The database holds the progress, so that a new workflow continues where
 * the last one ended. When the workflow is cancelled, so is the run: it applies the plans of its current page and ends.
 *
 * @startedBy the relay, on the operator's request
 */
export async function reprocess(input: ReprocessInput): Promise<ReprocessProgress> {
  try {
    return await reprocessPages(input);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(async () => {
      await untilDone.cancelReprocess(input.reprocessRunId);
      await reprocessPages(input);
    });
    throw error;
  }
}

async function reprocessPages(input: ReprocessInput): Promise<ReprocessProgress> {
  const fallback = new Fallback();
  for (;;) {
    const progress = await fallback.run(
      REPROCESS_PAGE,
      () => briefly.reprocessPage(input.reprocessRunId),
      () => untilDone.reprocessPage(input.reprocessRunId),
    );
    const { seen, deliveries, changed, applied, done } = progress;
    fallback.report(
      `${seen} of ${deliveries} deliveries reprocessed, ${changed} differ, ${applied} applied.`,
    );
    if (done) return progress;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof reprocess>(input);
  }
}
