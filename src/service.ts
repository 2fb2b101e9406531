import type { RequestListener } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NativeConnectionOptions, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createActivities } from '../activities/index.ts';
import { TemporalConnection } from '../temporal/connection.ts';
import { awaitedQueue } from '../temporal/names.ts';
import { startRelay } from '../temporal/relay.ts';
import type { Relay } from '../temporal/relay.ts';
import type { ScheduledWorkflow } from '../temporal/schedules.ts';
import { installSdkMetrics } from '../temporal/sdk-runtime.ts';
import { listenToResults, sendResult } from '../temporal/shared-results.ts';
import type { Tracing } from '../temporal/tracing.ts';
import { TemporalWorkflowStarter } from '../temporal/workflow-starter.ts';
import type { Config } from './config/config.ts';
import { SecretUnreadable } from './config/secret-box.ts';
import type { SecretBox } from './config/secret-box.ts';
import { tlsAdvice } from './config/database-url.ts';
import { StartupError } from './config/startup-error.ts';
import { createAddressHasher } from './commands/address-hasher.ts';
import { findInstallationId } from './db/installation.ts';
import { Inbox } from './commands/inbox.ts';
import { createRefusalCounter } from './commands/refusal-counter.ts';
import type { RefusalCounter } from './commands/refusal-counter.ts';
import type { SharedHostApps } from './commands/shared-associations.ts';
import { recordRefusedRequests } from './db/deliveries.ts';
import { prepareErasureKey } from './db/erased-identifiers.ts';
import { migrate } from './db/migrate.ts';
import { connect, DatabaseUnavailable } from './db/sql.ts';
import type { Sql } from './db/sql.ts';
import { ENDPOINT_CONNECTIONS } from './db/webhook-endpoints.ts';
import { withRollback } from './db/with-rollback.ts';
import { DEFAULT_LIMITS } from './domain/evaluate-payment.ts';
import type { EvaluationLimits } from './domain/evaluate-payment.ts';
import type { WebhookTargets } from './domain/outgoing-webhooks.ts';
import { DEFAULT_RETENTION } from './domain/retention.ts';
import type { RetentionSettings } from './domain/retention.ts';
import { startHousekeeping, startStatistics } from './housekeeping.ts';
import { serverLimits, startHttpServer } from './http-server.ts';
import type { HttpServer } from './http-server.ts';
import { createApp } from './http/app.ts';
import type { ReadinessCheck } from './http/deps.ts';
import { createIntake, NO_ADMISSION_LIMITS } from './http/admission.ts';
import type { AdmissionSettings } from './http/admission.ts';
import { createBodyBudget } from './http/body-budget.ts';
import { createKnownSenders } from './http/known-senders.ts';
import { createRateLimits } from './http/rate-limits.ts';
import type { RateLimitSettings } from './http/rate-limits.ts';
import { localAddressOf } from './lib/listen.ts';
import { freePort } from './embedded/processes.ts';
import { createMetrics, serveMetrics } from './metrics.ts';
import type { Metrics, MetricsServer } from './metrics.ts';
import { createReadiness } from './readiness.ts';
import { startRollupFoldLoop } from './rollup-fold-loop.ts';
import { createSecretsCheck } from './secrets-check.ts';

export interface ServiceSettings {
  readonly role: Config['role'];
  readonly host: string;
  readonly port: number;
  /** Base address in URLs; built from host and port when null. */
  readonly publicUrl: string | null;
  /** Base address of the Temporal UI; no links to workflows without it. */
  readonly temporalUiUrl?: string | null;
  readonly trustProxy: number;
  readonly rateLimits: RateLimitSettings;
  /** The most connections to the API at one time; a default that is enough for tests if it is missing. */
  readonly maxConnections?: number;
  /** Metrics are off when it is missing. */
  readonly metricsPort?: number | undefined;
  /** The address on which the metrics listen; the loopback address by default. */
  readonly metricsHost?: string;
  readonly databaseUrl: string;
  /** Address with the role that owns the schema, for migrations only; `databaseUrl` by default. */
  readonly migrationsDatabaseUrl?: string | undefined;
  readonly temporal: {
    readonly connection: NativeConnectionOptions;
    readonly namespace: string;
  };
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  readonly workflowBundle: () => Promise<WorkflowBundle>;
  /** False in tests, which share a Temporal server and run the sweep themselves. True by default. */
  readonly withSchedule?: boolean;
  /** How often missing Schedules and search attributes are restored; a minute by default. */
  readonly setUpPauseMs?: number;
  /** Address that exchange rates are fetched from once a day; null when none are fetched. */
  readonly ratesUrl?: string | null;
  /** The largest payment that earns, US cents; a million dollars by default. */
  readonly maxPaymentCents?: number;
  /** After how many days data is removed; `DEFAULT_RETENTION` by default. */
  readonly retention?: RetentionSettings;
  /** Commissions that are due sooner than this have no hold timer; two minutes by default, Infinity for no timers. */
  readonly shortestHoldMs?: number;
  readonly relay?: { readonly overdueMs: number; readonly pauseMs: number };
  /** How long the second search of an erasure waits; a minute by default. */
  readonly erasureSettleMs?: number;
  /** Which addresses endpoints of outgoing webhooks may have; only public ones by default. */
  readonly webhookTargets?: WebhookTargets;
  /** The waits between the attempts at a message, ms; ten attempts within three days by default. */
  readonly webhookRetryMs?: readonly number[];
  /** How long a stopping API still accepts new requests; 400 ms by default. */
  readonly lingerMs?: number;
  /** Maximum number of open database connections; 20 by default. */
  readonly poolSize?: number;
  /** Null or missing when no traces are sent. */
  readonly tracing?: Tracing | null;
  /** Calls that are worked on at one time; no limit by default. */
  readonly admission?: AdmissionSettings;
  /** The mobile apps that open links of a host that all apps share; `all` by default. */
  readonly sharedHostApps?: SharedHostApps;
}

export interface Service {
  /** Base address of the API; null in a worker. */
  readonly url: string | null;
  /** Address at which this machine reaches the API, without any proxy in front of it; null in a worker. */
  readonly ownUrl: string | null;
  /** Address of the Prometheus metrics; null when they are off. */
  readonly metricsUrl: string | null;
  readonly sql: Sql;
  readonly relay: Relay;
  /** The task queue of awaited work; its name has the installation's id. */
  readonly taskQueue: string;
  readonly ready: () => Promise<readonly ReadinessCheck[]>;
  /** Whether Temporal is available right now. */
  readonly isTemporalReady: () => boolean;
  /**
   * Resolves once Temporal was reached, set up and served by the worker. Throws `StartupError` after `timeoutMs`.
   */
  readonly whenReady: (timeoutMs: number) => Promise<void>;
  /**
   * Resolves once Temporal was available, or the first attempt to reach it has failed: the service then stores webhooks
   * and processes them later. Waits at most `timeoutMs`. Throws `StartupError` when the server refuses the configuration
   * or the signal is aborted.
   */
  readonly whenStarted: (timeoutMs: number, signal?: AbortSignal) => Promise<void>;
  /** Ends in an order that loses nothing: requests, then background work, then connections. */
  readonly stop: () => Promise<void>;
}

const READY_POLL_MS = 20;
const POOL_SIZE = 20;
/** The part of the connections that webhooks, clicks, the SDK and the processing of deliveries get together. */
const INTAKE_SHARE = 0.7;
/**
 * Time limit of a statement and of waiting for the database, ms. A provider gives up after 5 s, and a response that says
 * so is better than none. Statements whose work grows with the data have a longer limit (`Sql.within`).
 */
const STATEMENT_TIMEOUT_MS = 4_000;

/** Starts the service on a database and a Temporal server that run already. Stops what it started when it fails. */
export async function startService(settings: ServiceSettings): Promise<Service> {
  const { logger, secretBox } = settings;
  const sql = await openDatabase(settings);
  const taskQueue = await findTaskQueue(sql, settings.databaseUrl);
  const intakeSql = sql.share(Math.max(1, Math.floor((settings.poolSize ?? POOL_SIZE) * INTAKE_SHARE)));
  const sdkMetricsAddress =
    settings.metricsPort === undefined ? null : await installSdkMetrics(logger, freePort);
  const metrics =
    settings.metricsPort === undefined
      ? null
      : createMetrics({ sql, readiness: async () => await readiness(), sdkMetricsAddress });
  const background = startBackground(settings, { sql, intakeSql, metrics }, taskQueue);
  const { connection, relay } = background;
  const checkSecrets = createSecretsCheck({ sql, secretBox, logger });
  const readiness = createReadiness({ sql, connection, checkSecrets, logger });

  const refusals = createRefusalCounter({
    logger,
    record: async (rows) => await recordRefusedRequests(sql, rows),
  });
  let isStopping = false;
  let api: Api | null = null;
  let metricsServer: MetricsServer | null = null;
  const stop = async (): Promise<void> => {
    isStopping = true;
    const took: Record<string, number> = {};
    const timed = async (name: string, work: () => Promise<void> | undefined): Promise<void> => {
      const before = Date.now();
      await work();
      took[name] = Date.now() - before;
    };
    await timed('requestsMs', () => api?.server.stop(settings.lingerMs));
    await refusals.flush();
    await metricsServer?.stop();
    await background.stop(timed);
    await sql.close();
    logger.info({ ...took, msg: 'stopped in order' });
  };
  try {
    await prepareErasureKey(sql, secretBox).catch((error: unknown) => {
      if (!(error instanceof SecretUnreadable)) throw error;
    });
    // Logs at the start what SECRETS_KEY lacks.
    await checkSecrets();
    if (metrics !== null) {
      metricsServer = await serveMetrics(
        metrics,
        settings.metricsHost ?? '127.0.0.1',
        settings.metricsPort ?? 0,
      );
      logger.info({ url: metricsServer.url, msg: 'serving metrics' });
    }
    if (settings.role !== 'worker') {
      api = await startApi(settings, {
        sql,
        intakeSql,
        workflows: background.workflows,
        inbox: background.inbox,
        refusals,
        readiness: async () =>
          isStopping
            ? [{ name: 'service', ok: false, detail: 'the service is stopping', optional: false }]
            : await readiness(),
        metrics,
      });
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: api?.url ?? null,
    ownUrl: api?.ownUrl ?? null,
    metricsUrl: metricsServer?.url ?? null,
    sql,
    relay,
    taskQueue,
    ready: readiness,
    isTemporalReady: () => connection.problem === null,
    whenReady: (timeoutMs) => waitUntilReady(connection, timeoutMs),
    whenStarted: (timeoutMs, signal) => waitUntilStarted(connection, timeoutMs, signal),
    stop,
  };
}

/** Runs the migrations and opens the pool. Throws `StartupError` when the database can't be used. */
async function openDatabase({
  databaseUrl,
  migrationsDatabaseUrl = databaseUrl,
  poolSize,
  logger,
}: ServiceSettings): Promise<Sql> {
  try {
    await migrate(migrationsDatabaseUrl, (line) => logger.info({ msg: `migrations: ${line}` }));
  } catch (error) {
    throw unusableDatabase(migrationsDatabaseUrl, error);
  }
  return connect({
    url: databaseUrl,
    max: poolSize ?? POOL_SIZE,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    patienceMs: STATEMENT_TIMEOUT_MS,
    onRetry: (error) =>
      logger.warn({ err: error, msg: 'a database connection failed; the statement is sent again' }),
  });
}

/** Returns the task queue of this installation. Closes the pool and throws `StartupError` when the database fails. */
async function findTaskQueue(sql: Sql, databaseUrl: string): Promise<string> {
  try {
    return awaitedQueue(await findInstallationId(sql));
  } catch (error) {
    await sql.close();
    throw unusableDatabase(
      databaseUrl,
      error instanceof DatabaseUnavailable ? (error.cause ?? error) : error,
    );
  }
}

/** The error of a database that can't be used, in one sentence without its password. */
function unusableDatabase(databaseUrl: string, error: unknown): StartupError {
  const { host, pathname } = new URL(databaseUrl);
  const reason =
    error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error);
  const advice = tlsAdvice(databaseUrl, error);
  return new StartupError(
    `Postgres at ${host}${pathname} can't be used (${reason})${advice === null ? ': check DATABASE_URL, or unset it to use the built-in Postgres.' : `. ${advice}`}`,
  );
}

interface Background {
  readonly connection: TemporalConnection;
  readonly workflows: TemporalWorkflowStarter;
  readonly inbox: Inbox;
  readonly relay: Relay;
  /** Ends the loops, then the starts in flight, then the worker and its connection. `timed` runs each of them. */
  readonly stop: (timed: (name: string, work: () => Promise<void>) => Promise<void>) => Promise<void>;
}

/**
 * Starts everything that works without a request: the Temporal connection with its worker, the relay, the fold loop of
 * roll-ups, housekeeping.
 */
function startBackground(
  settings: ServiceSettings,
  {
    sql,
    intakeSql,
    metrics,
  }: {
    readonly sql: Sql;
    readonly intakeSql: Sql;
    readonly metrics: Metrics | null;
  },
  taskQueue: string,
): Background {
  const { temporal, role, secretBox, logger, workflowBundle, setUpPauseMs, ratesUrl = null } = settings;
  const hasWorker = role !== 'api';
  const limits: EvaluationLimits =
    settings.maxPaymentCents === undefined ? DEFAULT_LIMITS : { maxPaymentCents: settings.maxPaymentCents };
  const inbox = new Inbox();
  const inBackground = (round: Promise<void>): void => {
    round.catch((error: unknown) =>
      logger.warn({
        err: error,
        msg: 'open work was not started at once; the relay starts it within a minute',
      }),
    );
  };
  const activities = () =>
    createActivities({
      sql,
      intakeSql,
      secretBox,
      logger,
      limits,
      retention: settings.retention,
      ratesUrl,
      withRollback: (work) => withRollback(settings.databaseUrl, work),
      canMark: () => connection.canMark(),
      deleteHistory: (workflowId) => workflows.deleteHistory(workflowId),
      settleMs: settings.erasureSettleMs,
      takeStored: (deliveryId) => inbox.take(deliveryId),
      onOutcome: (deliveryId, outcome) => workflows.reportOutcome(deliveryId, outcome),
      onSettled: (requestId) => workflows.reportSettled(requestId),
      observe: metrics?.observeDelivery,
      webhookTargets: settings.webhookTargets,
      webhookRetryMs: settings.webhookRetryMs,
      observeWebhook: metrics?.observeWebhook,
      onCommissions: (commissions) => workflows.startHolds(commissions),
      onBindings: (bindings, appId) =>
        bindings.forEach((bindingId) => workflows.healBinding(bindingId, appId)),
    });
  const connection = new TemporalConnection({
    ...temporal,
    taskQueue,
    schedules: schedulesOf(settings),
    ...(setUpPauseMs === undefined ? {} : { setUpPauseMs }),
    logger,
    onNewServer: () => inBackground(relay.recover()),
    tracing: settings.tracing,
    worker: hasWorker
      ? { bundle: workflowBundle, activities, beforeBackground: () => workflows.letAwaitedGoFirst() }
      : null,
  });
  const workflows = new TemporalWorkflowStarter({
    client: () => connection.client,
    taskQueue,
    hasWorker,
    shortestHoldMs: settings.shortestHoldMs,
    sendResult: (result) => sendResult(sql, result),
    isListening: () => results.isListening(),
    known: () => connection.knownSearchAttributes,
    logger,
  });
  const results = listenToResults(
    settings.databaseUrl,
    (result) => void workflows.receiveResult(result),
    () => {
      connection.setUpNow();
      inBackground(relay.hurry());
    },
  );
  const relay = startRelay({ sql, workflows, logger, ...settings.relay });
  const foldLoop = startRollupFoldLoop(sql, logger);
  const housekeeping = startHousekeeping(sql, logger);
  const statistics = startStatistics(sql, logger);
  return {
    connection,
    workflows,
    inbox,
    relay,
    stop: async (timed) => {
      await timed('loopsMs', async () => {
        await relay.stop();
        await foldLoop.stop();
        await housekeeping.stop();
        await statistics.stop();
      });
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
  if (!withSchedule) return [];
  return ratesUrl === null ? ['sweep', 'retention'] : ['sweep', 'retention', 'rates'];
}

interface Api {
  readonly url: string;
  readonly ownUrl: string;
  readonly server: HttpServer;
}

interface ApiDeps {
  readonly sql: Sql;
  /** The part of the pool for calls without an account key. */
  readonly intakeSql: Sql;
  readonly workflows: TemporalWorkflowStarter;
  readonly inbox: Inbox;
  readonly refusals: RefusalCounter;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  readonly metrics: Metrics | null;
}

/** Serves the API. */
async function startApi(settings: ServiceSettings, deps: ApiDeps): Promise<Api> {
  const { host, role, secretBox, logger } = settings;
  const { sql, intakeSql, workflows, inbox, refusals, readiness, metrics } = deps;
  const urlsOf = (listeningUrl: string) => ({
    url: settings.publicUrl ?? listeningUrl,
    ownUrl: localAddressOf(host, Number(new URL(listeningUrl).port || 80)),
  });
  const createHandler = (listeningUrl: string): RequestListener => {
    const { url, ownUrl } = urlsOf(listeningUrl);
    const app = createApp({
      sql,
      endpointSql: sql.share(ENDPOINT_CONNECTIONS),
      logger,
      now: Date.now,
      publicUrl: url.replace(/\/$/, ''),
      ownUrl,
      temporalUi:
        settings.temporalUiUrl == null
          ? null
          : { url: settings.temporalUiUrl, namespace: settings.temporal.namespace },
      trustProxy: settings.trustProxy,
      secretBox,
      rateLimits: createRateLimits(settings.rateLimits),
      bodyBudget: createBodyBudget(),
      knownSenders: createKnownSenders(),
      refusals,
      idempotencyDays: (settings.retention ?? DEFAULT_RETENTION).idempotency_keys,
      intake: createIntake(intakeSql, settings.admission ?? NO_ADMISSION_LIMITS, settings.sharedHostApps),
      addressHasher: createAddressHasher({ sql, secretBox, logger }),
      workflows,
      inbox,
      ...(settings.webhookTargets === undefined ? {} : { webhookTargets: settings.webhookTargets }),
      readiness,
      pendingStep: async (workflowId) => await workflows.pendingStep(workflowId),
      ...(metrics === null
        ? {}
        : { observeRequest: metrics.observeRequest, observeExport: metrics.observeExport }),
    });
    const handle = app.callback();
    return (request, response) => void handle(request, response);
  };
  const limits = serverLimits(settings.trustProxy, settings.maxConnections);
  const server = await startHttpServer(host, settings.port, createHandler, limits);
  logger.info({ url: server.url, role, msg: 'listening' });
  return { ...urlsOf(server.url), server };
}

/** Waits until Temporal was reached, set up and served once. */
async function waitUntilReady(connection: TemporalConnection, timeoutMs: number): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs;
  while (!connection.wasReady) {
    if (Date.now() > giveUpAt) {
      throw new StartupError(`${connection.problem ?? 'Temporal: not ready'} after ${timeoutMs / 1000} s.`);
    }
    await sleep(READY_POLL_MS);
  }
}

/** Waits until Temporal was reached, set up and served once, or could not be reached. */
async function waitUntilStarted(
  connection: TemporalConnection,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs;
  while (!connection.wasReady && Date.now() < giveUpAt) {
    if (signal?.aborted === true) throw new StartupError('Stopped before the service was ready.');
    if (connection.refusal !== null) throw new StartupError(connection.refusal);
    if (connection.wasTried && connection.problem !== null) return;
    await sleep(READY_POLL_MS);
  }
}
