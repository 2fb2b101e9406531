import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, mkdtemp, readFile, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';
import { StartupError } from '../../src/config/startup-error.ts';
import { errorText } from '../../src/embedded/error-text.ts';

const run = promisify(execFile);

export type Progress = (message: string) => void;

const MODULE = 'github.com/temporalio/cli';
/** The folder of go.mod, which pins the version. */
const MODULE_FOLDER = join(projectRoot, 'temporal/local-server');
const OLDEST_GO = [1, 25] as const;
const PROGRESS_MS = 10_000;
const VERSION_TIMEOUT_MS = 10_000;
/** Limits the check of whether the download is reachable; the download itself may take longer. */
const DOWNLOAD_PROBE_MS = 4_000;
const DOWNLOAD_MS = 180_000;

/**
 * Returns a Temporal program with a development server: from the user's cache, from PATH, by download, or built from
 * source with Go. The last two take a while the first time and store the program in the cache for later runs and clones.
 * Throws `StartupError` when none of them works.
 */
export async function findTemporalProgram(options: { onProgress: Progress }): Promise<string> {
  const version = await pinnedVersion();
  const cache = join(cacheFolder(), 'tributary');
  const cached = join(cache, `temporal-cli-${version}`);
  if (await isProgram(cached)) return cached;
  if (await runs('temporal', ['--version'])) return 'temporal';

  await mkdir(cache, { recursive: true });
  const reasons: string[] = [];
  for (const get of [download, build]) {
    const unfinished = join(cache, `unfinished-${randomUUID()}`);
    try {
      await get({ version, target: unfinished, onProgress: options.onProgress });
      await rename(unfinished, cached);
      return cached;
    } catch (error) {
      reasons.push(errorText(error));
    } finally {
      await rm(unfinished, { force: true });
    }
  }
  throw new StartupError(
    `There is no Temporal server to use (${reasons.join('; ')}): set TEMPORAL_ADDRESS to a server that runs, install the Temporal CLI so that "temporal" is on PATH, or run "docker compose up".`,
  );
}

interface Job {
  version: string;
  /** The path that the program is written to. */
  target: string;
  onProgress: Progress;
}

/**
 * Runs the SDK's own download. The SDK downloads only while it starts a server, and that would fix the SDK's global
 * runtime before the service configures it. So the download has a process of its own, which can be ended when it takes
 * too long.
 */
async function download({ version, target, onProgress }: Job): Promise<void> {
  if (!isInstalled('@temporalio/testing')) {
    throw new Error('the optional package @temporalio/testing, which downloads it, is not installed');
  }
  await fetch('https://temporal.download/cli', { signal: AbortSignal.timeout(DOWNLOAD_PROBE_MS) }).catch(
    () => {
      throw new Error('temporal.download cannot be reached');
    },
  );
  const folder = await mkdtemp(`${target}-`);
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
        run(process.execPath, ['--input-type=module', '-e', script, `v${version}`, folder], {
          cwd: projectRoot,
          timeout: DOWNLOAD_MS,
          killSignal: 'SIGKILL',
        }),
    );
    const [file] = await readdir(folder);
    if (file === undefined) throw new Error('the download contained no program');
    await rename(join(folder, file), target);
  } catch (error) {
    throw new Error(`the download failed: ${errorText(error)}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Builds the version that go.mod pins; go.sum verifies every module that goes into it. */
async function build({ version, target, onProgress }: Job): Promise<void> {
  await requireGo();
  let phase = 'starting';
  let packages = 0;
  const onLine = (line: string): void => {
    if (line.startsWith('go: downloading')) phase = 'downloading modules';
    else phase = `compiling, ${(packages += 1)} packages so far`;
  };
  await withTicker(
    onProgress,
    () => `Building the Temporal server ${version} with Go, once, which takes some minutes (${phase})`,
    () => compile(target, onLine),
  );
}

async function requireGo(): Promise<void> {
  const found = await run('go', ['version'], { cwd: MODULE_FOLDER }).catch(() => undefined);
  const [major, minor] = (/go(\d+)\.(\d+)/.exec(found?.stdout ?? '') ?? []).slice(1).map(Number);
  if (major === undefined || minor === undefined) throw new Error('Go, which can build it, is not installed');
  if (major < OLDEST_GO[0] || (major === OLDEST_GO[0] && minor < OLDEST_GO[1])) {
    throw new Error(`Go ${major}.${minor} is too old to build it, which needs ${OLDEST_GO.join('.')}`);
  }
}

async function compile(target: string, onLine: (line: string) => void): Promise<void> {
  let last = '';
  await new Promise<void>((done, fail) => {
    const go = spawn(
      'go',
      ['build', '-v', '-trimpath', '-ldflags', '-s -w', '-o', target, `${MODULE}/cmd/temporal`],
      {
        cwd: MODULE_FOLDER,
        env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    createInterface({ input: go.stderr }).on('line', (line) => {
      last = line;
      onLine(line);
    });
    go.once('error', fail);
    go.once('close', (status) => {
      if (status === 0) done();
      else fail(new Error(`building it with Go failed: ${last}`));
    });
  });
}

/** Reports progress at once and then every ten seconds, until `work` is done. */
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

async function pinnedVersion(): Promise<string> {
  const version = /temporalio\/cli v(\S+)/.exec(await readFile(join(MODULE_FOLDER, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error(`go.mod does not name a version of ${MODULE}`);
  return version;
}

function cacheFolder(): string {
  const chosen = process.env['XDG_CACHE_HOME'];
  if (chosen !== undefined && chosen !== '') return resolve(chosen);
  return process.platform === 'darwin' ? join(homedir(), 'Library', 'Caches') : join(homedir(), '.cache');
}

function isInstalled(packageName: string): boolean {
  try {
    createRequire(import.meta.url).resolve(packageName);
    return true;
  } catch {
    return false;
  }
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function runs(program: string, args: string[]): Promise<boolean> {
  return run(program, args, { timeout: VERSION_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}
