import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { ReprocessActivities } from '../activities/reprocess.ts';
import { UNTIL_DONE } from './options.ts';
import type { ReprocessInput, ReprocessProgress } from '../src/domain/workflow-contracts.ts';

const { reprocessPage } = proxyActivities<ReprocessActivities>(UNTIL_DONE);

/**
 * Runs stored deliveries again, page by page. How far it is stands in the database, so that a new run goes on where the
 * last one was.
 */
export async function reprocess(input: ReprocessInput): Promise<ReprocessProgress> {
  for (;;) {
    const progress = await reprocessPage(input.reprocessRunId);
    const { seen, deliveries, changed, applied, done } = progress;
    setCurrentDetails(
      `${seen} of ${deliveries} deliveries looked at, ${changed} differ, ${applied} applied.`,
    );
    if (done) return progress;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof reprocess>(input);
  }
}
