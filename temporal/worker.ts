import { NativeConnection, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import type { Activities } from '../activities/index.ts';

export interface WorkerSettings {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly workflowBundle: WorkflowBundle;
  readonly activities: Activities;
}

/**
 * Creates the worker of all workflows. Almost every task is the first one of a short workflow, hence the polling ratio
 * and the small cache (docs/temporal.md has the figures).
 */
export async function createWorker({
  connection,
  namespace,
  taskQueue,
  workflowBundle,
  activities,
}: WorkerSettings): Promise<Worker> {
  return await Worker.create({
    connection,
    namespace,
    taskQueue,
    workflowBundle,
    activities,
    maxCachedWorkflows: 500,
    nonStickyToStickyPollRatio: 0.8,
    maxConcurrentLocalActivityExecutions: 64,
    maxConcurrentActivityTaskExecutions: 64,
    shutdownGraceTime: '10s',
  });
}
