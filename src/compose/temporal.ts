import { createActivities } from '../../activities/index.ts';
import { TemporalConnection } from '../../temporal/connection.ts';
import { startRelay } from '../../temporal/relay.ts';
import type { Relay } from '../../temporal/relay.ts';
import { schedulesFor } from '../../temporal/schedules.ts';
import type { ScheduledWorkflow } from '../../temporal/schedules.ts';
import { listenToResults, sendResult } from '../../temporal/shared-results.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import type { TemporalWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { WebhookCache } from '../commands/webhook-cache.ts';
import { withRollback } from '../db/with-rollback.ts';
import { DEFAULT_LIMITS } from '../domain/evaluation.ts';
import type { Metrics } from '../metrics.ts';
import type { Database } from './database.ts';
import type { ServiceSettings } from './settings.ts';

export interface TemporalWork {
  readonly connection: TemporalConnection;
  readonly workflows: TemporalWorkflowStarter;
  readonly webhookCache: WebhookCache;
  readonly relay: Relay;
  /** Ends the starts in flight, then the worker and its connection. `timed` runs each of them. */
  readonly stop: (timed: (name: string, work: () => Promise<void>) => Promise<void>) => Promise<void>;
}

export interface TemporalWorkDeps {
  readonly metrics: Metrics | null;
  /** Returns why the worker must not take work yet, or null. */
  readonly workerWaitsFor: () => Promise<string | null>;
}

/**
 * Starts what connects the process with Temporal: the starts of workflows, the relay that repeats them, the results of other
 * processes, and the worker with its activities.
 */
export function startTemporalWork(
  settings: ServiceSettings,
  { sql, intakeSql, taskQueue }: Database,
  { metrics, workerWaitsFor }: TemporalWorkDeps,
): TemporalWork {
  const { temporal, databaseUrl, role, secretBox, logger, setUpPauseMs, tracing, ratesUrl = null } = settings;
  const hasWorker = role !== 'api';
  const webhookCache = new WebhookCache();
  const connection = new TemporalConnection({
    ...temporal,
    taskQueue,
    schedules: schedulesOf(settings),
    ...(setUpPauseMs === undefined ? {} : { setUpPauseMs }),
    logger,
    tracing,
  });
  const results = listenToResults(databaseUrl);
  const workflows = createWorkflowStarter({
    client: () => connection.client,
    taskQueue,
    hasWorker,
    shortestHoldMs: settings.shortestHoldMs,
    sendResult: (result) => sendResult(sql, result),
    isListening: results.isListening,
    known: () => connection.knownSearchAttributes,
    logger,
  });
  const relay = startRelay({ sql, workflows, logger, ...settings.relay });
  const inBackground = (round: Promise<void>): void => {
    round.catch((error: unknown) =>
      logger.warn({
        err: error,
        msg: 'open work was not started at once; the relay starts it within a minute',
      }),
    );
  };
  results.passTo({
    onResult: (result) => void workflows.receiveResult(result),
    onRecover: () => {
      connection.setUpNow();
      inBackground(relay.hurry());
    },
  });
  const activities = () =>
    createActivities({
      ...workflows.workEvents,
      sql,
      intakeSql,
      secretBox,
      logger,
      limits: {
        maxPaymentCents: settings.maxPaymentCents ?? DEFAULT_LIMITS.maxPaymentCents,
        keyGraceMs: settings.keyGraceMs ?? DEFAULT_LIMITS.keyGraceMs,
      },
      retention: settings.retention,
      ratesUrl,
      withRollback: (work) => withRollback(databaseUrl, work),
      canMark: () => connection.canMark(),
      settlePayout: (request, waitMs) => workflows.settlePayout(request, waitMs),
      deleteHistory: (workflowId) => workflows.deleteHistory(workflowId),
      settleMs: settings.erasureSettleMs,
      takeStored: (deliveryId) => webhookCache.take(deliveryId),
      observe: metrics?.observeDelivery,
      webhookTargets: settings.webhookTargets,
      webhookRetryMs: settings.webhookRetryMs,
      publicUrl: settings.publicUrl?.replace(/\/$/, '') ?? null,
      observeWebhook: metrics?.observeWebhook,
      mail: settings.mail,
      emailRetryMs: settings.emailRetryMs,
      observeEmail: metrics?.observeEmail,
    });
  connection.start({
    worker: hasWorker
      ? {
          bundle: settings.workflowBundle,
          activities,
          beforeBackground: () => workflows.waitForAwaited(),
          waitsFor: workerWaitsFor,
        }
      : null,
    onNewServer: () => inBackground(relay.recover()),
  });
  return {
    connection,
    workflows,
    webhookCache,
    relay,
    stop: async (timed) => {
      await timed('startsMs', () => workflows.drain());
      await timed('workersMs', () => connection.stop());
      await results.stop();
    },
  };
}

function schedulesOf({
  withSchedule = true,
  ratesUrl = null,
}: ServiceSettings): readonly ScheduledWorkflow[] {
  return withSchedule ? schedulesFor({ ratesUrl }) : [];
}
