import type { WorkEvents } from '../activities/work-events.ts';
import { AwaitedCalls } from './awaited-calls.ts';
import { awaitedDeliveries } from './awaited-delivery.ts';
import { awaitedPayouts } from './awaited-payout.ts';
import { AwaitedResults } from './awaited-results.ts';
import type { AwaitedResultsDeps } from './awaited-results.ts';
import { backgroundWork } from './background.ts';
import type { BackgroundDeps } from './background.ts';
import { workflowRecords } from './describe.ts';
import type { SharedResult } from './shared-results.ts';
import { Starter } from './start.ts';
import type { StartDeps } from './start.ts';

/** How long a step of background work waits at most while requests wait for workflows, ms. Under steady requests ten holds a second still run. */
const MOST_WAIT_MS = 100;

export type WorkflowStarterDeps = StartDeps & AwaitedResultsDeps & Omit<BackgroundDeps, 'starter'>;

/** Implements `WorkflowStarter`: starts workflows on Temporal and passes their results to the requests that wait for them. */
export function createWorkflowStarter(deps: WorkflowStarterDeps) {
  const starter = new Starter(deps);
  const results = new AwaitedResults(deps);
  const awaited = new AwaitedCalls();
  const parts = { starter, results, awaited, logger: deps.logger };
  const background = backgroundWork({ ...deps, starter });
  return {
    ...awaitedDeliveries(parts),
    ...awaitedPayouts(parts),
    ...background,
    ...workflowRecords(starter),
    /** Whether Temporal responds right now. */
    isReachable: () => starter.isReachable,
    /** Resolves when no request of this process waits for a workflow, and after 100 ms in any case. */
    waitForAwaited: async () => await awaited.waitUntilNone(MOST_WAIT_MS),
    /** Passes a result to the requests that wait for it here. Returns whether there was one. */
    receiveResult: (result: SharedResult) => results.receive(result),
    workEvents: {
      onOutcome: (deliveryId, outcome) => results.report({ deliveryId, outcome }),
      onSettled: (payoutRequestId) => results.report({ payoutRequestId }),
      onCommissions: (commissions) => background.startHolds(commissions),
      onBindings: (bindings, appId) => {
        for (const bindingId of bindings) background.healBinding(bindingId, appId);
      },
    } satisfies WorkEvents,
  };
}

export type TemporalWorkflowStarter = ReturnType<typeof createWorkflowStarter>;
