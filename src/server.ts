import { loadWorkflowBundle } from '../temporal/bundle.ts';
import { STUCK_WORK, viewAddress } from '../temporal/ui-views.ts';
import type { Tracing } from '../temporal/tracing.ts';
import { ConfigError } from './config/config.ts';
import type { Config } from './config/config.ts';
import { createLogger } from './config/logger.ts';
import { readableLines } from './config/readable-lines.ts';
import { createSecretBox } from './config/secret-box.ts';
import { openBackends } from './backends.ts';
import type { Backends } from './backends.ts';
import { createSignInLink, hasAccounts } from './db/sessions.ts';
import { FIRST_LINK_MS, signInUrl } from './domain/sessions.ts';
import { writeServiceFile } from './embedded/data-dir.ts';
import { StartupError } from './config/startup-error.ts';
import { startService } from './service.ts';
import type { Service } from './service.ts';

/** How long a start waits for Temporal. The service serves and stores webhooks meanwhile, and afterwards. */
const WAIT_FOR_TEMPORAL_MS = 10_000;

function print(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Starts to send traces if the configuration says where to. The packages are loaded only then. */
async function openTracing({ tracesEndpoint }: Config): Promise<Tracing | null> {
  if (tracesEndpoint === null) return null;
  const { startTracing } = await import('../temporal/tracing.ts');
  return startTracing(tracesEndpoint);
}

export interface RunningServer {
  readonly service: Service;
  readonly backends: Backends;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the built-in servers that the environment does not replace, then the service, and writes the service file for
 * the command line. On a failure, or when `signal` is aborted meanwhile, it ends everything that it started.
 */
export async function runServer(config: Config, signal?: AbortSignal): Promise<RunningServer> {
  const backends = await openBackends(config, print);
  const logger = createLogger(config.logLevel, process.stdout.isTTY ? await readableLines() : undefined);
  const tracing = await openTracing(config);
  let service: Service | undefined;
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    stopped ??= (service?.stop() ?? Promise.resolve())
      .finally(async () => await tracing?.stop())
      .finally(backends.stop);
    await stopped;
  };
  try {
    service = await startService({
      role: config.role,
      host: config.host,
      port: config.port,
      publicUrl: config.publicUrl ?? null,
      // The UI of the built-in server listens on this machine only.
      temporalUiUrl: config.temporalUiUrl ?? (config.publicUrl === undefined ? backends.temporalUiUrl : null),
      trustProxy: config.trustProxy,
      rateLimits: config.rateLimits,
      maxConnections: config.maxConnections,
      admission: config.admission,
      sharedHostApps: config.sharedHostApps,
      ...(config.drainSeconds === 0 ? {} : { lingerMs: config.drainSeconds * 1_000 }),
      poolSize: config.databaseConnections,
      metricsPort: config.metricsPort,
      metricsHost: config.metricsHost,
      databaseUrl: backends.databaseUrl,
      migrationsDatabaseUrl: backends.migrationsDatabaseUrl,
      temporal: backends.temporal,
      secretBox: createSecretBox(backends.secretsKeys, { acceptsLostKeys: config.lostKeys === 'accept' }),
      logger,
      signal,
      ratesUrl: config.ratesUrl,
      maxPaymentCents: config.maxPaymentCents,
      retention: config.retention,
      webhookTargets: config.webhookTargets,
      mail: config.mail,
      ...(config.holdTimers === 'sweep' ? { shortestHoldMs: Infinity } : {}),
      tracing,
      workflowBundle: async () => await loadWorkflowBundle(tracing === null ? 'plain' : 'tracing'),
    });
    await service.whenStarted(WAIT_FOR_TEMPORAL_MS, signal);
    if (backends.dataDir !== null) {
      await writeServiceFile(backends.dataDir.path, {
        pid: process.pid,
        apiUrl: service.url ?? '',
        ...(service.ownUrl === null ? {} : { ownUrl: service.ownUrl }),
        databaseUrl: backends.databaseUrl,
        migrationsDatabaseUrl: backends.migrationsDatabaseUrl,
        temporalAddress: backends.temporal.connection.address ?? '',
        ...(backends.temporalUiUrl === null ? {} : { temporalUiUrl: backends.temporalUiUrl }),
      });
    }
    return { service, backends, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Returns a sign-in link that creates the first account, for the person who reads the terminal. Null if there is an account,
 * and in a worker. A log must never contain it.
 */
export async function createFirstLink({ service }: Pick<RunningServer, 'service'>): Promise<string | null> {
  if (service.url === null || (await hasAccounts(service.sql))) return null;
  const token = await createSignInLink(service.sql, null, { now: Date.now(), validMs: FIRST_LINK_MS });
  return signInUrl(service.url, token, { isNew: true });
}

/** Returns the lines that the operator reads after a start. */
export function banner({
  service,
  backends,
  firstLink = null,
  dataDir,
}: {
  readonly service: Pick<Service, 'url' | 'metricsUrl' | 'isTemporalReady'>;
  readonly backends: Pick<Backends, 'databaseUrl' | 'databaseFolder' | 'temporal' | 'temporalUiUrl'>;
  readonly firstLink?: string | null;
  /** The data folder that the environment names, which commands need as well. */
  readonly dataDir?: string | undefined;
}): string {
  const command = `${dataDir === undefined ? '' : `DATA_DIR='${dataDir}' `}npm run -s admin --`;
  const database = new URL(backends.databaseUrl);
  const addressOf = (path: string) => `${service.url?.replace(/\/$/, '')}${path}`;
  return [
    '',
    `  Tributary is up${service.url === null ? ' (worker)' : ` at ${service.url}`}`,
    '',
    ...(service.url === null
      ? []
      : [`  Console      ${addressOf('/console')}`, `  API docs     ${addressOf('/docs')}`]),
    `  Postgres     ${database.host}${database.pathname}${backends.databaseFolder === null ? '' : ` (files in ${backends.databaseFolder})`}`,
    `  Temporal     ${backends.temporal.connection.address ?? ''}, namespace ${backends.temporal.namespace}${service.isTemporalReady() ? '' : ', not reached yet: webhooks are stored and processed later'}`,
    ...(backends.temporalUiUrl === null
      ? []
      : [
          `  Temporal UI  ${backends.temporalUiUrl}`,
          `  Stuck work   ${viewAddress(backends.temporalUiUrl, backends.temporal.namespace, STUCK_WORK)}`,
        ]),
    ...(service.metricsUrl === null ? [] : [`  Metrics      ${service.metricsUrl}`]),
    '',
    ...(firstLink === null
      ? [
          '  Next, in another terminal:',
          `    ${command} console      prints a link that signs a browser in`,
          `    ${command} --help       lists the other commands`,
        ]
      : ['  Open this link to begin. It works once, for 30 minutes:', `    ${firstLink}`]),
    '',
    '  Ctrl-C stops everything that was started here. The data stays.',
    '',
  ].join('\n');
}

/**
 * Stops the process in order on the first SIGINT or SIGTERM, and at once on the second. Call it before anything is
 * started. Returns a signal that is aborted by the first one.
 */
export function stopOnSignal(
  stop: () => Promise<void>,
  lastLine = 'Stopped. Nothing was lost.',
): AbortSignal {
  const stopping = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) {
      print('Ended at once. The next start cleans up.');
      process.exit(1);
    }
    stopping.abort();
    print(`\n${signal}: finishing the work in progress …`);
    stop().then(
      () => {
        print(lastLine);
        process.exit(0);
      },
      (error: unknown) => {
        print(`Stopping failed: ${error instanceof Error ? error.message : String(error)}`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return stopping.signal;
}

/** Exits with status 1 and prints the error: one sentence when the operator can fix it, else the whole error. */
export function exitWith(error: unknown): never {
  const isExpected = error instanceof StartupError || error instanceof ConfigError;
  print(
    isExpected
      ? error.message
      : `Tributary could not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  process.exit(1);
}
