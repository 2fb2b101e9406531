import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { projectRoot } from '../src/config/project-root.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import type { EmbeddedPostgres } from '../src/embedded/postgres.ts';
import { endWithThisProcess, tryListen } from '../src/embedded/processes.ts';
import { eventually } from '../test/support/eventually.ts';
import { createDatabase } from '../test/support/postgres-admin.ts';
import { environmentOf } from './compose.ts';

const run = promisify(execFile);

/** The version of the images of docker-compose.yml. */
export const TEMPORAL_SERVER_VERSION = '1.32.1';
const PROGRAMS = {
  'temporal-server': 'go.temporal.io/server/cmd/server',
  'temporal-sql-tool': 'go.temporal.io/server/cmd/tools/sql',
} as const;
const SERVICES = ['FRONTEND', 'HISTORY', 'MATCHING', 'WORKER'] as const;
const START_TIMEOUT_MS = 60_000;

/** The folder of the programs, in the cache of the user. */
export const programFolder = path.join(
  process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'),
  `tributary/temporal-server-${TEMPORAL_SERVER_VERSION}`,
);

type Say = (line: string) => void;

/** Builds the programs that are missing from Go modules, which takes about ten minutes once. */
export async function buildTemporalServer(say: Say): Promise<void> {
  const missing = Object.entries(PROGRAMS).filter(([name]) => !existsSync(path.join(programFolder, name)));
  if (missing.length === 0) return;
  say(`Building the Temporal server ${TEMPORAL_SERVER_VERSION} with Go in ${programFolder}`);
  const source = path.join(programFolder, 'src');
  await mkdir(source, { recursive: true });
  const go = (...args: readonly string[]) =>
    execFileSync('go', args, { cwd: source, env: { ...process.env, CGO_ENABLED: '0' }, stdio: 'inherit' });
  if (!existsSync(path.join(source, 'go.mod'))) go('mod', 'init', 'local/temporal-server');
  go('get', '-tool', ...Object.values(PROGRAMS).map((name) => `${name}@v${TEMPORAL_SERVER_VERSION}`));
  for (const [name, module] of missing) {
    go('build', '-trimpath', '-ldflags', '-s -w', '-o', path.join(programFolder, name), module);
  }
}

/**
 * Returns a free port that no outgoing connection takes before a server listens on it. The Temporal server stores its ports in
 * columns that end at 32,767.
 */
export async function lowPort(): Promise<number> {
  return await tryListen(randomInt(10_000, 32_000)).catch(lowPort);
}

async function choosePorts(): Promise<Record<string, string>> {
  const names = SERVICES.flatMap((service) => [`${service}_GRPC_PORT`, `${service}_MEMBERSHIP_PORT`]);
  const ports: Record<string, string> = {};
  for (const name of [...names, 'FRONTEND_HTTP_PORT', 'PROMETHEUS_PORT'])
    ports[name] = String(await lowPort());
  return ports;
}

/** Runs a script of `deploy` with a fixed environment and the folders of its programs in front of PATH. */
export async function runScript(
  script: string,
  environment: Readonly<Record<string, string>>,
  ...folders: readonly string[]
): Promise<void> {
  const PATH = [...folders, process.env['PATH']].join(path.delimiter);
  await run('sh', [path.join(projectRoot, 'deploy', script)], { env: { PATH, HOME: '/', ...environment } });
}

export interface TemporalServerSettings {
  /** Host and port of a Postgres with the databases `temporal` and `temporal_visibility`. */
  readonly postgres: { readonly host: string; readonly port: string };
  /** The role that owns both databases, `temporal` in docker-compose.yml. */
  readonly user?: string;
  readonly password: string;
  readonly logFile: string;
  /** A loopback address. Servers on one database with equal ports at several addresses are a cluster. */
  readonly host?: string;
  /** Further variables of the server, such as SQL_MAX_CONNS: connections of each of its four services. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The ports of another server: of an earlier one, to have its address, or of one of the same cluster. Any free ports by default. */
  readonly ports?: Readonly<Record<string, string>>;
}

export interface TemporalServer {
  readonly address: string;
  /** Its process. */
  readonly pid: number;
  readonly ports: Readonly<Record<string, string>>;
  /** Ends the server by a signal, SIGTERM by default, and waits until it has ended. */
  readonly stop: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>;
  /** Whether it has not ended, by itself or by a signal. */
  readonly isRunning: () => boolean;
}

/**
 * Starts a production Temporal server as docker-compose.yml does, without a container: the same environment, schema script
 * and dynamic configuration, on loopback ports. It has no namespace yet. Throws with its log when it does not start.
 */
export async function startTemporalServer({
  postgres: { host, port },
  user = 'temporal',
  password,
  logFile,
  host: ownHost = '127.0.0.1',
  environment: further = {},
  ports: given,
}: TemporalServerSettings): Promise<TemporalServer> {
  const variables = {
    POSTGRES_HOST: host,
    POSTGRES_PORT: port,
    TEMPORAL_PASSWORD: password,
    POSTGRES_PASSWORD: 'unused',
  };
  const schema = { ...environmentOf('temporal-schema', variables), SQL_USER: user };
  await runScript('temporal/set-up-schema.sh', schema, programFolder);

  const ports = given ?? (await choosePorts());
  const address = `${ownHost}:${ports['FRONTEND_GRPC_PORT']}`;
  const environment = {
    ...environmentOf('temporal', variables),
    ...ports,
    POSTGRES_USER: user,
    BIND_ON_IP: ownHost,
    PROMETHEUS_ENDPOINT: `${ownHost}:${ports['PROMETHEUS_PORT']}`,
    DYNAMIC_CONFIG_FILE_PATH: path.join(projectRoot, 'deploy/temporal/dynamic-config.yaml'),
    ...further,
  };
  const log = await open(logFile, 'a');
  const server = spawn(path.join(programFolder, 'temporal-server'), ['start'], {
    cwd: '/',
    env: environment,
    stdio: ['ignore', log.fd, log.fd],
  });
  const stopWatching = endWithThisProcess(server.pid ?? 0, 'TERM');
  const ended = new Promise<void>((resolve) => {
    server.once('exit', () => resolve());
  });
  let stopped: Promise<void> | undefined;
  const stop = async (signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') => {
    stopped ??= (async () => {
      server.kill(signal);
      await ended;
      stopWatching();
      await log.close();
    })();
    await stopped;
  };
  try {
    await eventually(
      'the Temporal server is up',
      async () => {
        if (server.exitCode !== null)
          throw new Error(`the Temporal server ended: ${await readFile(logFile, 'utf8')}`);
        const connection = await Connection.connect({ address }).catch(() => undefined);
        await connection?.close();
        return connection !== undefined;
      },
      START_TIMEOUT_MS,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    address,
    pid: server.pid ?? 0,
    ports,
    stop,
    isRunning: () => server.exitCode === null && server.signalCode === null,
  };
}

/**
 * Starts a production Temporal server on a new Postgres in a folder, which is removed if that fails. `durable`: Postgres waits for the
 * disk.
 */
export async function startTemporalWithPostgres(
  dataDir: string,
  { durable, say }: { readonly durable: boolean; readonly say: Say },
): Promise<{ readonly server: TemporalServer; readonly postgres: EmbeddedPostgres }> {
  const postgres = await startEmbeddedPostgres({ dataDir, durable, onProgress: say });
  try {
    for (const name of ['temporal', 'temporal_visibility']) await createDatabase(postgres.ownerUrl, name);
    const { hostname, port, username, password } = new URL(postgres.ownerUrl);
    const server = await startTemporalServer({
      postgres: { host: hostname, port },
      user: username,
      password: decodeURIComponent(password),
      logFile: path.join(dataDir, 'temporal.log'),
    });
    return { server, postgres };
  } catch (error) {
    await postgres.stop();
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  }
}
