import { spawn } from 'node:child_process';
import { chmod, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Connection } from '@temporalio/client';
import { StartupError } from '../../src/config/startup-error.ts';
import { CHILD_ENVIRONMENT } from '../../src/embedded/child-environment.ts';
import { lastLine } from '../../src/embedded/error-text.ts';
import { readIfPresent } from '../../src/embedded/files.ts';
import {
  commandLine,
  endProcess,
  endWithThisProcess,
  freePort,
  isListening,
  processIdentity,
  tryListen,
  waitUntil,
} from '../../src/embedded/processes.ts';
import { cutLog, keepLogSmall } from '../../src/embedded/server-log.ts';
import { findTemporalProgram } from './program.ts';
import type { Progress } from './program.ts';

export interface LocalTemporalOptions {
  /** Folder of the database and the log. Undefined stores everything in memory and discards the log, for tests. */
  dataDir?: string | undefined;
  /** Any free port when undefined. */
  port?: number | undefined;
  /** When undefined 8233, or any free port when that is taken. */
  uiPort?: number | undefined;
  /** Names and types, registered when the database is new. */
  searchAttributes?: Readonly<Record<string, string>> | undefined;
  /** Settings of the server besides the usual ones, for tests. */
  dynamicConfig?: Readonly<Record<string, string | number | boolean>> | undefined;
  onProgress: Progress;
}

export interface LocalTemporal {
  address: string;
  uiUrl: string;
  stop(): Promise<void>;
}

const USUAL_UI_PORT = 8233;
const START_TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 10_000;
/** A free port may be taken before the server listens on it. */
const START_ATTEMPTS = 3;

/**
 * Starts a Temporal development server that ends with this process, even when this process is killed. Ctrl-C does not
 * reach the server, because the service needs it until its worker has drained; the server of
 * `TestWorkflowEnvironment.createLocal` shares this process's group and would end at once. Throws `StartupError`.
 */
export async function startLocalTemporal(options: LocalTemporalOptions): Promise<LocalTemporal> {
  const program = await findTemporalProgram(options);
  const dataDir = options.dataDir === undefined ? undefined : resolve(options.dataDir);
  if (dataDir !== undefined) {
    await mkdir(dataDir, { recursive: true });
    await endLeftover(dataDir);
    await makePrivate(dataDir);
  }
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort('Temporal', options.port);
    const uiPort = await choosePort("Temporal's UI", options.uiPort, USUAL_UI_PORT);
    const server = await launch(program, dataDir, port, uiPort, options);
    if (await isReady(port, server.pid)) {
      return { address: `127.0.0.1:${port}`, uiUrl: `http://127.0.0.1:${uiPort}`, stop: server.stop };
    }
    await server.stop();
    if (attempt === START_ATTEMPTS) {
      const log = dataDir === undefined ? undefined : logFile(dataDir);
      const reason = log === undefined ? undefined : lastLine(await readIfPresent(log));
      throw new StartupError(
        `The local Temporal server did not start${reason === undefined ? '' : ` (${reason})`}: ${log === undefined ? 'run' : `read ${log}, run`} "${program} server start-dev" by hand, or set TEMPORAL_ADDRESS to a server that runs.`,
      );
    }
  }
}

async function choosePort(what: string, wanted: number | undefined, preferred?: number): Promise<number> {
  if (wanted === undefined) return freePort(preferred);
  return tryListen(wanted).catch(() => {
    throw new StartupError(
      `Port ${wanted} for ${what} is in use: stop the process that uses it, or choose another port.`,
    );
  });
}

const pidFile = (dataDir: string): string => join(dataDir, 'temporal.pid');
const logFile = (dataDir: string): string => join(dataDir, 'temporal.log');
const databaseFile = (dataDir: string): string => join(dataDir, 'temporal.db');

/**
 * Ends a server that outlived its service and still locks the database file. Checks that the process's command line
 * names that file, because the pid may belong to another process by now.
 */
async function endLeftover(dataDir: string): Promise<void> {
  const pid = Number(await readIfPresent(pidFile(dataDir)));
  if (Number.isSafeInteger(pid) && pid > 0 && commandLine(pid).includes(databaseFile(dataDir))) {
    await endProcess(pid, 'SIGTERM', STOP_GRACE_MS);
  }
  await rm(pidFile(dataDir), { force: true });
}

/** Runs `start`, whose child process creates files that only their owner can read. A child inherits the mask. */
function withPrivateFiles<T>(start: () => T): T {
  const before = process.umask(0o077);
  try {
    return start();
  } finally {
    process.umask(before);
  }
}

/** Makes the files of an earlier version private: the database and its logs, which hold ids of users' commissions. */
async function makePrivate(dataDir: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm']) {
    await chmod(`${databaseFile(dataDir)}${suffix}`, 0o600).catch(() => undefined);
  }
}

function repeated(flag: string, values: Readonly<Record<string, string | number | boolean>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

async function launch(
  program: string,
  dataDir: string | undefined,
  port: number,
  uiPort: number,
  { searchAttributes = {}, dynamicConfig = {} }: LocalTemporalOptions,
): Promise<{ pid: number; stop: () => Promise<void> }> {
  const storage =
    dataDir === undefined
      ? []
      : [
          '--db-filename',
          databaseFile(dataDir),
          ...repeated('--sqlite-pragma', { journal_mode: 'wal', synchronous: 'normal' }),
        ];
  const args = [
    'server',
    'start-dev',
    '--ip=127.0.0.1',
    `--port=${port}`,
    `--ui-port=${uiPort}`,
    '--log-level=error',
    ...storage,
    ...repeated('--search-attribute', searchAttributes),
    ...repeated('--dynamic-config-value', {
      'matching.numTaskqueueReadPartitions': 1,
      'matching.numTaskqueueWritePartitions': 1,
      'system.enableActivityEagerExecution': true,
      // Tasks of a lower level wait for the others of their queue: newer servers do so without a setting.
      'matching.useNewMatcher': true,
      ...dynamicConfig,
    }),
  ];
  const logPath = dataDir === undefined ? '/dev/null' : logFile(dataDir);
  await cutLog(logPath);
  const log = await open(logPath, 'a', 0o600);
  const child = withPrivateFiles(() =>
    spawn(program, args, {
      cwd: '/',
      env: CHILD_ENVIRONMENT,
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    }),
  );
  try {
    await new Promise<void>((done, fail) => {
      child.once('spawn', done);
      child.once('error', (error) => {
        fail(new StartupError(`${program} cannot be run (${error.message}): replace it or remove it.`));
      });
    });
  } finally {
    await log.close();
  }
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error('a spawned process has a pid');
  const stopWatching = endWithThisProcess(pid, 'TERM');
  const stopCutting = keepLogSmall(logPath);
  child.once('exit', () => {
    stopWatching();
    stopCutting();
  });
  if (dataDir !== undefined) await writeFile(pidFile(dataDir), String(pid), { mode: 0o600 });
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    // A clean shutdown takes a second. Only a database on disk needs it.
    await endProcess(pid, dataDir === undefined ? 'SIGKILL' : 'SIGTERM', STOP_GRACE_MS);
    stopWatching();
    if (dataDir !== undefined) await rm(pidFile(dataDir), { force: true });
  };
  return { pid, stop: () => (stopped ??= stop()) };
}

/** Returns whether the server responds to a call before it ends or the time is up. */
async function isReady(port: number, pid: number): Promise<boolean> {
  const address = `127.0.0.1:${port}`;
  let responds = false;
  await waitUntil(async () => {
    // Checks the port first: a client whose first attempt fails waits a second before the next.
    if (await isListening(port)) responds = await respondsToCalls(address);
    return responds || processIdentity(pid) === undefined;
  }, START_TIMEOUT_MS);
  return responds;
}

async function respondsToCalls(address: string): Promise<boolean> {
  try {
    // Connecting requests the server's system information.
    const connection = await Connection.connect({ address, connectTimeout: 5_000 });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}
