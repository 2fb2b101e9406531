import { setTimeout as sleep } from 'node:timers/promises';
import type { TemporalConnection } from '../temporal/connection.ts';
import type { Relay } from '../temporal/relay.ts';
import { installSdkMetrics } from '../temporal/sdk-runtime.ts';
import { createClockCheck } from './clock-check.ts';
import { createRefusalCounter } from './commands/refusal-counter.ts';
import { startApi } from './compose/api.ts';
import type { Api } from './compose/api.ts';
import { openDatabase, STATEMENT_TIMEOUT_MS } from './compose/database.ts';
import { startLoops } from './compose/loops.ts';
import type { ServiceSettings } from './compose/settings.ts';
import { startTemporalWork } from './compose/temporal.ts';
import { SecretUnreadable } from './config/secret-box.ts';
import { StartupError } from './config/startup-error.ts';
import { settingsProblem } from './db/connection-settings.ts';
import { recordRefusedRequests } from './db/deliveries.ts';
import { DUTIES } from './db/duties.ts';
import { faultOf } from './db/errors.ts';
import type { Sql } from './db/sql.ts';
import { freePort } from './embedded/processes.ts';
import type { ReadinessCheck } from './http/deps.ts';
import { createMetrics, serveMetrics } from './metrics.ts';
import type { MetricsServer } from './metrics.ts';
import { createReadiness } from './readiness.ts';
import { createGuardedBox, createKeyGate, createSecretsCheck, prepareKeys } from './secrets-check.ts';
import { unusableDatabase } from './unusable-database.ts';

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
   * Resolves once Temporal was reached, set up and served by the worker, unless that waits for encryption keys. Throws `StartupError`
   * after `timeoutMs`.
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

/** Starts the service on a database and a Temporal server that run already. Stops what it started when it fails. */
export async function startService(given: ServiceSettings): Promise<Service> {
  const { logger } = given;
  const database = await openDatabase(given);
  const { sql, taskQueue } = database;
  const checkSecrets = createSecretsCheck({ sql, secretBox: given.secretBox, logger });
  const keyGate = createKeyGate(checkSecrets, given.secretBox.acceptsLostKeys);
  const settings = { ...given, secretBox: createGuardedBox(given.secretBox, keyGate) };
  const { secretBox } = settings;
  const sdkMetricsAddress =
    settings.metricsPort === undefined ? null : await installSdkMetrics(logger, freePort);
  const metrics =
    settings.metricsPort === undefined
      ? null
      : createMetrics({
          sql,
          readiness: async () => await readiness(),
          sdkMetricsAddress,
          duties: DUTIES.filter((duty) => duty !== 'rates' || (settings.ratesUrl ?? null) !== null),
        });
  const preparedKey = prepareKeys(sql, given.secretBox).catch((error: unknown) => {
    if (!(error instanceof SecretUnreadable)) throw error;
  });
  const temporal = startTemporalWork(settings, database, {
    metrics,
    // In an empty database, the process that stores the first secret decides which key is needed. The check comes after that.
    workerWaitsFor: async () => {
      await preparedKey;
      return await keyGate.check();
    },
  });
  const { connection, relay, workflows, webhookCache } = temporal;
  const loops = startLoops({ sql, secretBox }, relay, logger);
  const checkClock = createClockCheck({ sql, logger, now: Date.now });
  const readiness = createReadiness({
    sql,
    connection,
    checkSecrets,
    checkClock,
    logger,
    acceptsLostKeys: secretBox.acceptsLostKeys,
  });

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
      const before = performance.now();
      await work();
      took[name] = Math.round(performance.now() - before);
    };
    await timed('requestsMs', () => api?.server.stop(settings.lingerMs));
    await refusals.flush();
    await metricsServer?.stop();
    await timed('loopsMs', loops.stop);
    await temporal.stop(timed);
    await sql.close();
    logger.info({ ...took, msg: 'stopped in order' });
  };
  try {
    await preparedKey;
    const settingsLost = await settingsProblem(sql, STATEMENT_TIMEOUT_MS);
    if (settingsLost !== null) logger.error({ msg: settingsLost });
    // Logs at the start what SECRETS_KEY lacks.
    await checkSecrets();
    await keyGate.check();
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
        database,
        workflows,
        webhookCache,
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
    if (faultOf(error) === null || error instanceof StartupError) throw error;
    throw unusableDatabase(settings.databaseUrl, error);
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

/** Waits until Temporal was reached, set up and served once. */
async function waitUntilReady(connection: TemporalConnection, timeoutMs: number): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  while (!connection.wasReady) {
    if (performance.now() > giveUpAt) {
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
  const giveUpAt = performance.now() + timeoutMs;
  while (!connection.wasReady && performance.now() < giveUpAt) {
    if (signal?.aborted === true) throw new StartupError('Stopped before the service was ready.');
    if (connection.refusal !== null) throw new StartupError(connection.refusal);
    if (connection.wasTried && connection.problem !== null) return;
    await sleep(READY_POLL_MS);
  }
}
