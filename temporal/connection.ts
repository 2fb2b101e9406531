import { setTimeout as sleep } from 'node:timers/promises';
import { Client, isGrpcServiceError } from '@temporalio/client';
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime } from '@temporalio/worker';
import type { NativeConnectionOptions, Worker, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Activities } from '../activities/index.ts';
import { ensureSchedules } from './schedules.ts';
import type { ScheduleId } from './schedules.ts';
import { ensureSearchAttributes } from './search-attributes.ts';
import { createWorker } from './worker.ts';

const CONNECT_PAUSE_MS = 1_000;
const HEALTH_PAUSE_MS = 2_000;
const HEALTH_DEADLINE_MS = 2_000;
const SETUP_PAUSE_MS = 60_000;
const RETENTION_SECONDS = 7 * 24 * 60 * 60;

export interface TemporalConnectionSettings {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Null in a process that only serves the API. */
  readonly worker: {
    readonly bundle: () => Promise<WorkflowBundle>;
    readonly activities: () => Activities;
  } | null;
  /** None in tests that share one server. */
  readonly schedules: readonly ScheduleId[];
  /** How often search attributes and schedules are made sure of, also after the server was wiped. */
  readonly setUpPauseMs?: number;
  readonly logger: Logger;
}

/** A process's tie to Temporal: it connects, sets up what is missing, runs the worker, and notices when the server is gone. */
export interface TemporalConnection {
  /** Null while the server does not answer: callers keep their work for the relay instead of waiting. */
  readonly client: () => Client | null;
  /** What is missing, in words; null when all is well. */
  readonly missing: () => string | null;
  /** Whether the server was reached, set up and served by the worker at least once. */
  readonly wasReady: () => boolean;
  /** Ends the worker after its tasks, then the connection. */
  readonly stop: () => Promise<void>;
}

let runtimeInstalled = false;

/** The SDK's own signal handling off (the service drains in its own order) and its log lines through pino. */
function installRuntime(logger: Logger): void {
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
    },
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      // Of what the SDK knows besides, only what names the work and the reason: the rest is of its own making.
      const { error, workflowId, activityType, attempt } = (meta ?? {}) as Record<string, unknown>;
      logger[level === 'ERROR' ? 'error' : 'warn']({
        err: error,
        workflowId,
        activityType,
        attempt,
        msg: `temporal sdk: ${message}`,
      });
    }),
  });
}

/** gRPC: not found. */
const NOT_FOUND: unknown = 5;

/** Registers the namespace where there is none. A server that does not let us look is taken to have it (Temporal Cloud). */
async function ensureNamespace(connection: NativeConnection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) return;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
    });
  }
}

/** Ties the process to Temporal in the background; the service serves and keeps deliveries meanwhile. */
export function connectTemporal(settings: TemporalConnectionSettings): TemporalConnection {
  const { namespace, taskQueue, logger, setUpPauseMs = SETUP_PAUSE_MS } = settings;
  installRuntime(logger);
  const stopping = new AbortController();
  let connection: NativeConnection | undefined;
  let client: Client | null = null;
  let worker: Worker | undefined;
  let workerDone: Promise<void> = Promise.resolve();
  let healthy = false;
  let wasReady = false;
  let problem: string | null = 'Temporal: not connected yet';

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {});

  async function setUp(): Promise<void> {
    if (connection === undefined || client === null) return;
    const temporal = client;
    await ensureSearchAttributes(connection, namespace, (line) => logger.warn({ msg: line }));
    await temporal.withDeadline(Date.now() + 10_000, () =>
      ensureSchedules(temporal, taskQueue, settings.schedules),
    );
  }

  async function runWorker(): Promise<void> {
    if (settings.worker === null || connection === undefined) return;
    const workflowBundle = await settings.worker.bundle();
    worker = await createWorker({
      connection,
      namespace,
      taskQueue,
      workflowBundle,
      activities: settings.worker.activities(),
    });
    workerDone = worker.run().catch((error: unknown) => {
      worker = undefined;
      problem = 'Temporal: the worker stopped, it is being started again';
      logger.error({ err: error, msg: 'the worker stopped' });
    });
  }

  async function connect(): Promise<void> {
    connection ??= await NativeConnection.connect(settings.connection);
    await ensureNamespace(connection, namespace);
    client = new Client({ connection, namespace });
    await setUp();
    if (worker === undefined) await runWorker();
    healthy = true;
    wasReady = true;
    problem = null;
    logger.info({ namespace, taskQueue, worker: settings.worker !== null, msg: 'connected to Temporal' });
  }

  async function watch(): Promise<void> {
    let setUpAt = Date.now();
    let lastSaid: string | null = null;
    while (!stopping.signal.aborted) {
      if (client === null || (settings.worker !== null && worker === undefined)) {
        try {
          await connect();
          setUpAt = Date.now();
        } catch (error) {
          problem = `Temporal can't be reached at ${settings.connection.address ?? 'the default address'}: check TEMPORAL_ADDRESS`;
          const reason = error instanceof Error ? error.message : String(error);
          if (problem !== lastSaid) logger.warn({ reason, msg: `${problem}; trying again every second` });
          lastSaid = problem;
          await pause(CONNECT_PAUSE_MS);
        }
        continue;
      }
      await pause(HEALTH_PAUSE_MS);
      if (stopping.signal.aborted) return;
      const { connection: link } = client;
      try {
        await link.withDeadline(Date.now() + HEALTH_DEADLINE_MS, () =>
          link.workflowService.getSystemInfo({}),
        );
        const cameBack = !healthy;
        healthy = true;
        problem = null;
        if (cameBack || Date.now() - setUpAt > setUpPauseMs) {
          await ensureNamespace(connection as NativeConnection, namespace);
          await setUp();
          setUpAt = Date.now();
        }
        wasReady = true;
      } catch (error) {
        if (healthy)
          logger.warn({ err: error, msg: 'Temporal is gone; deliveries are kept until it is back' });
        healthy = false;
        problem = 'Temporal: the server does not answer';
      }
    }
  }

  const watching = watch();

  return {
    client: () => (healthy ? client : null),
    missing: () => problem,
    wasReady: () => wasReady,
    stop: async () => {
      stopping.abort();
      await watching;
      if (worker !== undefined) {
        worker.shutdown();
        await workerDone;
      }
      await connection?.close();
    },
  };
}
