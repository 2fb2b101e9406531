import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  access,
  constants,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { z } from 'zod';
import { parseJson, readIfThere } from '../src/embedded/data-dir.ts';
import {
  commandLine,
  endProcess,
  endWithThisProcess,
  freePort,
  isListening,
  processIdentity,
  tryListen,
  waitUntil,
} from '../src/embedded/processes.ts';
import { StartupError, errorText, lastLine } from '../src/embedded/startup-error.ts';

const run = promisify(execFile);

type Progress = (message: string) => void;

// --- The program ---

const MODULE = 'github.com/temporalio/cli';
const OLDEST_GO = [1, 25] as const;
const PROGRESS_MS = 10_000;
/** Whether the download is to be had at all shows at once; the download itself may take its time. */
const DOWNLOAD_PROBE_MS = 4_000;
const DOWNLOAD_MS = 180_000;

/**
 * Finds a Temporal program with a development server: in the user's cache, on PATH, by download, or built from source
 * with Go. The last two take a while the first time and leave the program in the cache for every later run and clone.
 */
export async function findTemporalProgram(options: { onProgress: Progress }): Promise<string> {
  const folder = join(await projectRoot(), 'temporal');
  const version = await pinnedVersion(folder);
  const cache = join(cacheFolder(), 'tributary');
  const cached = join(cache, `temporal-cli-${version}`);
  if (await isProgram(cached)) return cached;
  if (await answers('temporal', ['--version'])) return 'temporal';

  await mkdir(cache, { recursive: true });
  const reasons: string[] = [];
  for (const get of [download, build]) {
    const unfinished = join(cache, `unfinished-${randomUUID()}`);
    try {
      await get({ version, folder, target: unfinished, onProgress: options.onProgress });
      await rename(unfinished, cached);
      return cached;
    } catch (error) {
      reasons.push(errorText(error));
    } finally {
      await rm(unfinished, { force: true });
    }
  }
  throw new StartupError(
    `There is no Temporal server to use (${reasons.join('; ')}): install the Temporal CLI so that "temporal" is on PATH, or run "docker compose up", or set TEMPORAL_ADDRESS to a server you have.`,
  );
}

interface Job {
  version: string;
  /** Holds go.mod. */
  folder: string;
  /** Where the program goes. */
  target: string;
  onProgress: Progress;
}

/**
 * The SDK's own download. It comes with starting the server once, and that would settle the SDK's global runtime before
 * the service has set it up, so it happens in a process of its own, which can also be ended when it takes too long.
 */
async function download({ version, folder, target, onProgress }: Job): Promise<void> {
  await fetch('https://temporal.download/cli', { signal: AbortSignal.timeout(DOWNLOAD_PROBE_MS) }).catch(
    () => {
      throw new Error('temporal.download cannot be reached');
    },
  );
  const place = await mkdtemp(`${target}-`);
  const script = `
    const { TestWorkflowEnvironment } = await import('@temporalio/testing');
    const executable = { type: 'cached-download', version: process.argv[1], downloadDir: process.argv[2] };
    const server = await TestWorkflowEnvironment.createLocal({ server: { executable } });
    await server.teardown();`;
  try {
    await withTicker(
      onProgress,
      () => `Downloading the Temporal server ${version}`,
      () =>
        run(process.execPath, ['--input-type=module', '-e', script, `v${version}`, place], {
          cwd: dirname(folder),
          timeout: DOWNLOAD_MS,
          killSignal: 'SIGKILL',
        }),
    );
    const [file] = await readdir(place);
    if (file === undefined) throw new Error('the download left no program');
    await rename(join(place, file), target);
  } catch (error) {
    throw new Error(`the download failed: ${errorText(error)}`, { cause: error });
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** Builds the version that go.mod pins; go.sum vouches for every module that goes into it. */
async function build({ version, folder, target, onProgress }: Job): Promise<void> {
  const found = await run('go', ['version'], { cwd: folder }).catch(() => undefined);
  const [major, minor] = (/go(\d+)\.(\d+)/.exec(found?.stdout ?? '') ?? []).slice(1).map(Number);
  if (major === undefined || minor === undefined) throw new Error('there is no Go to build it with');
  if (major < OLDEST_GO[0] || (major === OLDEST_GO[0] && minor < OLDEST_GO[1])) {
    throw new Error(`Go ${major}.${minor} is too old to build it, which takes ${OLDEST_GO.join('.')}`);
  }

  let phase = 'starting';
  let last = '';
  let packages = 0;
  const compile = (): Promise<void> =>
    new Promise((done, fail) => {
      const go = spawn(
        'go',
        ['build', '-v', '-trimpath', '-ldflags', '-s -w', '-o', target, `${MODULE}/cmd/temporal`],
        {
          cwd: folder,
          env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' },
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      );
      createInterface({ input: go.stderr }).on('line', (line) => {
        last = line;
        if (line.startsWith('go: downloading')) phase = 'downloading modules';
        else phase = `compiling, ${(packages += 1)} packages so far`;
      });
      go.once('error', fail);
      go.once('close', (status) => {
        if (status === 0) done();
        else fail(new Error(`building it with Go failed: ${last}`));
      });
    });
  await withTicker(
    onProgress,
    () => `Building the Temporal server ${version} with Go, once, some minutes (${phase})`,
    compile,
  );
}

/** Says what is going on at once and then every ten seconds, until `work` is done. */
async function withTicker<T>(onProgress: Progress, what: () => string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  onProgress(what());
  const ticker = setInterval(() => {
    onProgress(`${what()}, ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }, PROGRESS_MS);
  try {
    return await work();
  } finally {
    clearInterval(ticker);
  }
}

/** The folder of this project, whether this file runs as source or from `dist`. */
async function projectRoot(): Promise<string> {
  const manifest = z.object({ name: z.literal('tributary') });
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (parseJson(manifest, await readIfThere(join(folder, 'package.json'))) !== undefined) return folder;
    if (folder === dirname(folder)) throw new Error('this file is not in the tributary project');
  }
}

async function pinnedVersion(folder: string): Promise<string> {
  const version = /temporalio\/cli v(\S+)/.exec(await readFile(join(folder, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error(`go.mod does not name a version of ${MODULE}`);
  return version;
}

function cacheFolder(): string {
  const chosen = process.env['XDG_CACHE_HOME'];
  if (chosen !== undefined && chosen !== '') return resolve(chosen);
  return process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache');
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function answers(program: string, args: string[]): Promise<boolean> {
  return run(program, args, { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}

// --- The server ---

/** How a local Temporal server is started. */
export interface LocalTemporalOptions {
  /** Holds the database and the log; undefined keeps everything in memory and throws the log away, for tests. */
  dataDir?: string | undefined;
  /** Exactly this port; any free one when left out. */
  port?: number | undefined;
  /** Exactly this port; when left out 8233, or any free one if that is taken. */
  uiPort?: number | undefined;
  /** Names and types, registered when the database is new. */
  searchAttributes?: Readonly<Record<string, string>> | undefined;
  onProgress: Progress;
}

/** A running local Temporal server. */
export interface LocalTemporal {
  address: string;
  uiUrl: string;
  stop(): Promise<void>;
}

const USUAL_UI_PORT = 8233;
const START_TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 10_000;
/** A port that was free a moment ago may be taken when the server wants it. */
const START_ATTEMPTS = 3;

/**
 * Starts a Temporal development server that ends with this process, however that ends, but not by Ctrl-C alone: the
 * service needs it until its workers have drained. (The one of `TestWorkflowEnvironment.createLocal` shares our process
 * group and would be gone at once.)
 */
export async function startLocalTemporal(options: LocalTemporalOptions): Promise<LocalTemporal> {
  const program = await findTemporalProgram(options);
  const dataDir = options.dataDir === undefined ? undefined : resolve(options.dataDir);
  if (dataDir !== undefined) {
    await mkdir(dataDir, { recursive: true });
    await endLeftover(dataDir);
  }
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort('Temporal', options.port);
    const uiPort = await choosePort("Temporal's UI", options.uiPort, USUAL_UI_PORT);
    const server = await launch(program, dataDir, port, uiPort, options.searchAttributes ?? {});
    if (await ready(port, server.pid)) {
      return { address: `127.0.0.1:${port}`, uiUrl: `http://127.0.0.1:${uiPort}`, stop: server.stop };
    }
    await server.stop();
    if (attempt === START_ATTEMPTS) {
      const log = dataDir === undefined ? undefined : join(dataDir, 'temporal.log');
      const said = log === undefined ? undefined : lastLine(await readIfThere(log));
      throw new StartupError(
        `The local Temporal server did not start${said === undefined ? '' : ` (${said})`}: ${log === undefined ? 'try' : `see ${log}, or try`} "${program} server start-dev" by hand, or set TEMPORAL_ADDRESS to a server you have.`,
      );
    }
  }
}

async function choosePort(what: string, wanted: number | undefined, preferred?: number): Promise<number> {
  if (wanted === undefined) return freePort(preferred);
  return tryListen(wanted).catch(() => {
    throw new StartupError(`Port ${wanted} for ${what} is taken: stop what uses it, or choose another port.`);
  });
}

const pidFile = (dataDir: string): string => join(dataDir, 'temporal.pid');
const databaseFile = (dataDir: string): string => join(dataDir, 'temporal.db');

/**
 * Should a server have outlived its service after all, it holds the database file: end it. Only a process whose command
 * line names that very file is meant; the pid may be another's by now.
 */
async function endLeftover(dataDir: string): Promise<void> {
  const pid = Number(await readIfThere(pidFile(dataDir)));
  if (Number.isSafeInteger(pid) && pid > 0 && commandLine(pid).includes(databaseFile(dataDir))) {
    await endProcess(pid, 'SIGTERM', STOP_GRACE_MS);
  }
  await rm(pidFile(dataDir), { force: true });
}

function repeated(flag: string, values: Readonly<Record<string, string | number | boolean>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

async function launch(
  program: string,
  dataDir: string | undefined,
  port: number,
  uiPort: number,
  searchAttributes: Readonly<Record<string, string>>,
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
    }),
  ];
  const log = await open(dataDir === undefined ? '/dev/null' : join(dataDir, 'temporal.log'), 'a', 0o600);
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd] });
  try {
    await new Promise<void>((done, fail) => {
      child.once('spawn', done);
      child.once('error', (error) => {
        fail(new StartupError(`${program} cannot be run (${error.message}): remove or replace it.`));
      });
    });
  } finally {
    await log.close();
  }
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error('a spawned process has a pid');
  const stopWatching = endWithThisProcess(pid, 'TERM');
  child.once('exit', stopWatching);
  if (dataDir !== undefined) await writeFile(pidFile(dataDir), String(pid));
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    // An orderly end takes a second, which is worth it only for a database that is kept.
    await endProcess(pid, dataDir === undefined ? 'SIGKILL' : 'SIGTERM', STOP_GRACE_MS);
    stopWatching();
    if (dataDir !== undefined) await rm(pidFile(dataDir), { force: true });
  };
  return { pid, stop: () => (stopped ??= stop()) };
}

/** Whether the server answers a call before it ends or the time is up. */
async function ready(port: number, pid: number): Promise<boolean> {
  const address = `127.0.0.1:${port}`;
  let answered = false;
  await waitUntil(async () => {
    // A cheap look first: a client whose first try fails waits a whole second before the next.
    if (await isListening(port)) answered = await answersCalls(address);
    return answered || processIdentity(pid) === undefined;
  }, START_TIMEOUT_MS);
  return answered;
}

async function answersCalls(address: string): Promise<boolean> {
  try {
    // Connecting asks the server for its system information.
    const connection = await Connection.connect({ address, connectTimeout: 5_000 });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}
