import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { ReplayActivities } from '../activities/replays.ts';
import { UNTIL_DONE } from './options.ts';
import type { ReplayInput, ReplayProgress } from './types.ts';

const { replayPage } = proxyActivities<ReplayActivities>(UNTIL_DONE);

/**
 * Runs stored deliveries again, page by page. How far it is stands in the database, so that a new run goes on where the
 * last one was.
 */
export async function replay(input: ReplayInput): Promise<ReplayProgress> {
  for (;;) {
    const progress = await replayPage(input.replayId);
    const { seen, deliveries, changed, applied, done } = progress;
    setCurrentDetails(
      `${seen} of ${deliveries} deliveries looked at, ${changed} differ, ${applied} applied.`,
    );
    if (done) return progress;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof replay>(input);
  }
}
