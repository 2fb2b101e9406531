import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NativeConnectionOptions, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createActivities } from '../activities/index.ts';
import { createWorkflowStarter } from '../temporal/workflow-starter.ts';
import { connectTemporal } from '../temporal/connection.ts';
import { startRelay } from '../temporal/relay.ts';
import type { Relay } from '../temporal/relay.ts';
import type { SecretBox } from './config/secret-box.ts';
import { withRollback } from './db/with-rollback.ts';
import { countSecretsByKey } from './db/webhook-secrets.ts';
import { connect } from './db/sql.ts';
import type { Sql } from './db/sql.ts';
import { migrate } from './db/migrate.ts';
import { StartupError } from './embedded/startup-error.ts';
import { createAddressHasher } from './http/address-hasher.ts';
import { createApp } from './http/app.ts';
import { startHousekeeping } from './housekeeping.ts';
import { answerClientErrors } from './http/client-error.ts';
import type { ReadinessCheck } from './http/deps.ts';
import { listen, localAddressOf } from './listen.ts';
import { createMetrics, serveMetrics } from './metrics.ts';
import type { Metrics, MetricsServer } from './metrics.ts';
import { createRateLimits } from './http/rate-limits.ts';
import type { RateLimitSettings } from './http/rate-limits.ts';

export type Role = 'all' | 'api' | 'worker';

export interface ServiceSettings {
  readonly role: Role;
  readonly host: string;
  readonly port: number;
  /** Shown in URLs; from host and port when null. */
  readonly publicUrl: string | null;
  readonly trustProxy: number;
  readonly rateLimits: RateLimitSettings;
  /** No metrics when it is missing. */
  readonly metricsPort?: number | undefined;
  readonly databaseUrl: string;
  readonly temporal: {
    readonly connection: NativeConnectionOptions;
    readonly namespace: string;
    readonly taskQueue: string;
  };
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  readonly workflowBundle: () => Promise<WorkflowBundle>;
  /** Tests share a Temporal server: they run the sweep themselves. */
  readonly withSchedule?: boolean;
  /** How often the Schedules are made sure of; a minute unless tests say otherwise. */
  readonly setUpPauseMs?: number;
  /** Where exchange rates are fetched from once a day; null for nowhere. */
  readonly ratesUrl?: string | null;
  readonly relay?: { readonly overdueMs: number; readonly pauseMs: number };
  /** Open database connections at most. */
  readonly poolSize?: number;
}

export interface Service {
  /** Base address of the API; null in a worker. */
  readonly url: string | null;
  /** Where the API is reached from this machine, past whatever stands in front of it; null in a worker. */
  readonly ownUrl: string | null;
  /** Where Prometheus reads; null when that is off. */
  readonly metricsUrl: string | null;
  readonly sql: Sql;
  readonly relay: Relay | null;
  readonly ready: () => Promise<readonly ReadinessCheck[]>;
  /** Answers when everything that the role needs was there once, or throws after `timeoutMs`. */
  readonly whenReady: (timeoutMs: number, signal?: AbortSignal) => Promise<void>;
  /** Ends in order and loses nothing: requests, then work, then connections. */
  readonly stop: () => Promise<void>;
}

/** After readiness is off, new requests are still taken for this long: some are on their way already. */
const LINGER_MS = 400;
const DRAIN_CHECK_MS = 100;
const DRAIN_LIMIT_MS = 10_000;
const SECRETS_CHECK_MS = 30_000;

async function checkDatabase(sql: Sql): Promise<ReadinessCheck> {
  try {
    await sql`select 1 as ok`;
    return { name: 'database', ok: true, detail: null, optional: false };
  } catch {
    return { name: 'database', ok: false, detail: 'Postgres does not answer', optional: false };
  }
}

/** A database that can't be reached, in one sentence without its password. */
function unreachable(databaseUrl: string, error: unknown): StartupError {
  const { host, pathname } = new URL(databaseUrl);
  const reason =
    error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error);
  return new StartupError(
    `Postgres at ${host}${pathname} can't be used (${reason}): check DATABASE_URL, or leave it unset for the built-in one.`,
  );
}

/** Starts the whole service against a database and a Temporal server that somebody else runs. */
export async function startService(settings: ServiceSettings): Promise<Service> {
  const { logger, role, temporal, ratesUrl = null } = settings;
  try {
    await migrate(settings.databaseUrl, (line) => logger.info({ msg: `migrations: ${line}` }));
  } catch (error) {
    throw unreachable(settings.databaseUrl, error);
  }
  const sql = connect({
    url: settings.databaseUrl,
    max: settings.poolSize ?? 20,
    onRetry: (error) =>
      logger.warn({ err: error, msg: 'a database connection failed, the statement is sent again' }),
  });

  const servesWork = role !== 'api';
  const link = connectTemporal({
    connection: temporal.connection,
    namespace: temporal.namespace,
    taskQueue: temporal.taskQueue,
    schedules: settings.withSchedule === false ? [] : ratesUrl === null ? ['sweep'] : ['sweep', 'rates'],
    ...(settings.setUpPauseMs === undefined ? {} : { setUpPauseMs: settings.setUpPauseMs }),
    logger,
    worker: servesWork
      ? {
          bundle: settings.workflowBundle,
          activities: () =>
            createActivities({
              sql,
              withRollback: (scene) => withRollback(settings.databaseUrl, scene),
              secretBox: settings.secretBox,
              logger,
              ratesUrl,
              ...work,
            }),
        }
      : null,
  });
  const work = createWorkflowStarter({
    client: link.client,
    taskQueue: temporal.taskQueue,
    eager: servesWork,
    logger,
  });
  const relay = startRelay({ sql, work, logger, ...settings.relay });
  const housekeeping = startHousekeeping(sql, logger);

  /** What SECRETS_KEY lacks, in one sentence; null when it lacks nothing. Looked at again after a while. */
  let secretsFault: { readonly at: number; readonly text: string | null } | null = null;
  const checkSecrets = async (): Promise<string | null> => {
    if (secretsFault !== null && Date.now() - secretsFault.at < SECRETS_CHECK_MS) return secretsFault.text;
    const { keyIds } = settings.secretBox;
    const lost = (await countSecretsByKey(sql)).filter((key) => !keyIds.includes(key.encryptionKeyId));
    const keys = lost.map((key) => `the key ${key.encryptionKeyId} of ${key.secrets} webhook secrets`);
    const text =
      keys.length === 0
        ? null
        : `SECRETS_KEY lacks ${keys.join(', ')}: put it back, or set those secrets anew`;
    if (text !== null && secretsFault?.text !== text) logger.error({ msg: text });
    secretsFault = { at: Date.now(), text };
    return text;
  };
  await checkSecrets();

  const readiness = async (): Promise<ReadinessCheck[]> => {
    const missing = link.missing();
    const database = await checkDatabase(sql);
    const lacks = database.ok ? await checkSecrets() : null;
    return [
      ...(lacks === null ? [] : [{ name: 'secrets', ok: false, detail: lacks, optional: true }]),
      database,
      { name: 'temporal', ok: missing === null, detail: missing, optional: link.wasReady() },
    ];
  };

  const endBackground = async (): Promise<void> => {
    await relay.stop();
    await housekeeping.stop();
    await work.drain();
    await link.stop();
    await sql.close();
  };

  let stopping = false;
  const server = createServer();
  let url: string | null = null;
  let ownUrl: string | null = null;
  let metrics: Metrics | null = null;
  let metricsServer: MetricsServer | null = null;
  try {
    if (settings.metricsPort !== undefined) {
      metrics = createMetrics({ sql, readiness });
      metricsServer = await serveMetrics(metrics, settings.host, settings.metricsPort);
      logger.info({ url: metricsServer.url, msg: 'metrics' });
    }
    if (role !== 'worker') url = await listen(server, settings.host, settings.port, 'PORT');
  } catch (error) {
    await metricsServer?.stop();
    await endBackground();
    throw error;
  }
  if (url !== null) {
    logger.info({ url, role, msg: 'listening' });
    ownUrl = localAddressOf(settings.host, Number(url.slice(url.lastIndexOf(':') + 1)));
    url = settings.publicUrl ?? url;
    const app = createApp({
      sql,
      logger,
      now: Date.now,
      publicUrl: url.replace(/\/$/, ''),
      ownUrl,
      trustProxy: settings.trustProxy,
      secretBox: settings.secretBox,
      rateLimits: createRateLimits(settings.rateLimits),
      addressHasher: createAddressHasher({ sql, secretBox: settings.secretBox, logger }),
      work,
      readiness: async () =>
        stopping
          ? [{ name: 'service', ok: false, detail: 'the service is stopping', optional: false }]
          : readiness(),
      ...(metrics === null ? {} : { observeRequest: metrics.observeRequest }),
    });
    const handle = app.callback();
    answerClientErrors(server);
    server.on('request', (request, response) => void handle(request, response));
  }

  async function closeHttp(): Promise<void> {
    if (!server.listening) return;
    await sleep(LINGER_MS);
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    const giveUpAt = Date.now() + DRAIN_LIMIT_MS;
    const sweepIdle = setInterval(() => {
      server.closeIdleConnections();
      if (Date.now() > giveUpAt) server.closeAllConnections();
    }, DRAIN_CHECK_MS);
    server.closeIdleConnections();
    await closed;
    clearInterval(sweepIdle);
  }

  return {
    url,
    ownUrl,
    metricsUrl: metricsServer?.url ?? null,
    sql,
    relay,
    ready: readiness,
    whenReady: async (timeoutMs, signal) => {
      const giveUpAt = Date.now() + timeoutMs;
      while (!link.wasReady()) {
        if (signal?.aborted === true) throw new StartupError('Stopped before it was up.');
        if (Date.now() > giveUpAt)
          throw new StartupError(`${link.missing() ?? 'Temporal: not ready'} after ${timeoutMs / 1000} s.`);
        await sleep(20);
      }
    },
    stop: async () => {
      stopping = true;
      await closeHttp();
      await metricsServer?.stop();
      await endBackground();
    },
  };
}
