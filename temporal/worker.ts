import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { ActivityInboundCallsInterceptor, WorkerOptions, WorkflowBundle } from '@temporalio/worker';
import type { Activities } from '../activities/index.ts';
import { ISOLATE } from './isolate.ts';
import { backgroundQueue, messageQueue } from './names.ts';
import type { Tracing } from './tracing.ts';

export interface WorkerSettings {
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** The task queue of awaited work. Background work has one of its own. */
  readonly taskQueue: string;
  readonly workflowBundle: WorkflowBundle;
  readonly activities: Activities;
  /** Null or missing when no traces are sent. */
  readonly tracing?: Tracing | null | undefined;
  /** Awaited before each activity of background work. */
  readonly beforeBackground?: () => Promise<void>;
  /** How long a shutdown waits for activities before it cancels them; 10 s by default. */
  readonly shutdownGraceMs?: number;
}

const SHUTDOWN_GRACE_MS = 10_000;
/** How much later than the grace time a worker is given up on, ms. */
const SHUTDOWN_FORCE_MS = 5_000;

/**
 * Ends an activity for its worker as soon as it is cancelled, as after the grace time of a shutdown. Its statement in
 * flight may still commit. Every activity is safe to run again, and another worker does that.
 */
const endWhenCancelled: ActivityInboundCallsInterceptor = {
  execute: async (input, next) => await Promise.race([next(input), Context.current().cancelled]),
};

/** The pause between heartbeats. The SDK sends one of them every `HEARTBEAT_SENT_MS`. A shorter activity has none. */
const HEARTBEAT_MS = 1_000;
const HEARTBEAT_SENT_MS = 2_000;

/** Sends heartbeats while an activity runs that is expected to. Their answer tells whether the activity is cancelled. */
const sendHeartbeats: ActivityInboundCallsInterceptor = {
  execute: async (input, next) => {
    const context = Context.current();
    if (context.info.heartbeatTimeoutMs === undefined) return await next(input);
    const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS).unref();
    try {
      return await next(input);
    } finally {
      clearInterval(timer);
    }
  },
};

/** Workflow tasks, and activities, of background work that run at once in a process. */
export const BACKGROUND_CONCURRENCY = 2;

/** Limits of the work that someone waits for. */
const AWAITED: Partial<WorkerOptions> = {
  // A task for the worker that knows its workflow goes to any other one after this: that worker may have been killed.
  stickyQueueScheduleToStartTimeout: '2s',
  maxCachedWorkflows: 500,
  maxConcurrentLocalActivityExecutions: 64,
  maxConcurrentActivityTaskExecutions: 64,
};

/** Limits of background work: it leaves most of the processor and of the connection pool (20) to awaited work. */
const BACKGROUND: Partial<WorkerOptions> = {
  maxCachedWorkflows: 50,
  maxConcurrentWorkflowTaskExecutions: BACKGROUND_CONCURRENCY,
  // A local activity matures a commission. While 3,000 are due, an export takes 1.6 times as long with one at a time, and 2.5 times with two.
  maxConcurrentLocalActivityExecutions: 1,
  maxConcurrentActivityTaskExecutions: BACKGROUND_CONCURRENCY,
};

/**
 * Limits of messages to endpoints. An attempt waits for somebody else's server and costs little else. Each endpoint has a few of
 * them at once (`activities/webhook.ts`), so that a slow one does not take all.
 */
const MESSAGES: Partial<WorkerOptions> = {
  maxCachedWorkflows: 100,
  maxConcurrentWorkflowTaskExecutions: 2,
  maxConcurrentLocalActivityExecutions: 1,
  maxConcurrentActivityTaskExecutions: 40,
};

const FAILURE_POLL_MS = 500;
const forever = new Promise<never>(() => {});

/**
 * Resolves when a worker has failed, as after the namespace was missing at the end of an outage. The SDK's own promise of a
 * failed worker stays pending when the worker waits for tasks of another kind.
 */
async function whenOneFails(workers: readonly Worker[], signal: AbortSignal): Promise<void> {
  while (!workers.some((worker) => worker.getState() === 'FAILED')) {
    await sleep(FAILURE_POLL_MS, undefined, { signal });
  }
}

/** The workers of a process. */
export interface Workers {
  /** Resolves after a shutdown. Throws when a worker fails; the others are then shut down, within 15 s. */
  readonly run: () => Promise<void>;
  /** Lets the workers finish their tasks. */
  readonly shutdown: () => void;
}

/**
 * Creates the workers of the three task queues. Each knows all workflows and activities, so only the start of a workflow
 * decides its queue. Almost every task is the first one of a short workflow, hence the polling ratio and the small cache
 * (docs/temporal.md has the figures).
 */
export async function createWorkers({
  connection,
  namespace,
  taskQueue,
  workflowBundle,
  activities,
  tracing = null,
  beforeBackground = async () => {},
  shutdownGraceMs = SHUTDOWN_GRACE_MS,
}: WorkerSettings): Promise<Workers> {
  const wait: ActivityInboundCallsInterceptor = {
    execute: async (input, next) => {
      await beforeBackground();
      return await next(input);
    },
  };
  const create = async (
    queue: string,
    limits: Partial<WorkerOptions>,
    interceptors: readonly ActivityInboundCallsInterceptor[] = [],
  ) =>
    await Worker.create({
      connection,
      namespace,
      taskQueue: queue,
      workflowBundle,
      activities,
      nonStickyToStickyPollRatio: 0.8,
      interceptors: {
        activity: [
          ...(tracing?.activityInterceptors ?? []),
          ...[sendHeartbeats, endWhenCancelled, ...interceptors].map((inbound) => () => ({ inbound })),
        ],
      },
      ...(tracing === null ? {} : { sinks: tracing.sinks }),
      maxHeartbeatThrottleInterval: HEARTBEAT_SENT_MS,
      shutdownGraceTime: shutdownGraceMs,
      shutdownForceTime: shutdownGraceMs + SHUTDOWN_FORCE_MS,
      ...ISOLATE,
      ...limits,
    });
  const workers = await Promise.all([
    create(taskQueue, AWAITED),
    create(backgroundQueue(taskQueue), BACKGROUND, [wait]),
    create(messageQueue(taskQueue), MESSAGES, [wait]),
  ]);
  const shutdown = () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const run = async () => {
    const ended = Promise.allSettled(
      workers.map(async (worker) => {
        try {
          await worker.run();
        } finally {
          shutdown();
        }
      }),
    );
    const watching = new AbortController();
    const afterFailure = async (): Promise<undefined> => {
      await whenOneFails(workers, watching.signal);
      shutdown();
      await sleep(shutdownGraceMs + SHUTDOWN_FORCE_MS, undefined, { signal: watching.signal });
    };
    const ends = await Promise.race([ended, afterFailure().catch(() => forever)]);
    watching.abort();
    const failed = ends?.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    if (ends === undefined) throw new Error('a worker failed and did not end');
  };
  return { run, shutdown };
}
