import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/config/project-root.ts';
import { StartupError } from '../../src/config/startup-error.ts';
import { buildEnvironment, CHILD_ENVIRONMENT } from '../../src/embedded/child-environment.ts';
import { errorText } from '../../src/embedded/error-text.ts';
import { downloadProgram, releaseOf } from './download.ts';

const run = promisify(execFile);

export type Progress = (message: string) => void;

const MODULE = 'github.com/temporalio/cli';
/** The folder of go.mod, which pins the version. */
const MODULE_FOLDER = join(projectRoot, 'temporal/local-server');
const OLDEST_GO = [1, 25] as const;
const PROGRESS_MS = 10_000;
const VERSION_TIMEOUT_MS = 10_000;

/**
 * Returns a Temporal program with a development server: from the user's cache, from PATH if its version fits, by download, or built from
 * source with Go. The last two take a while the first time and store the program in the cache for later runs and clones.
 * Throws `StartupError` when none of them works.
 */
export async function findTemporalProgram(options: { onProgress: Progress }): Promise<string> {
  const version = await pinnedVersion();
  const cache = join(cacheFolder(), 'tributary');
  const cached = join(cache, `temporal-cli-${version}`);
  if (await isProgram(cached)) return cached;
  const installed = await findOnPath(version);
  if (installed !== undefined) return installed;

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
    `There is no Temporal server to use (${reasons.join('; ')}): set TEMPORAL_ADDRESS to a server that runs, install the Temporal CLI ${version} so that "temporal" is on PATH, or run "docker compose --file docker-compose.dev.yml up".`,
  );
}

interface Job {
  version: string;
  /** The path that the program is written to. */
  target: string;
  onProgress: Progress;
}

/** Downloads the archive of the release, whose SHA-256 is pinned. */
async function download({ version, target, onProgress }: Job): Promise<void> {
  try {
    const release = releaseOf(version);
    await withTicker(
      onProgress,
      () => `Downloading the Temporal server ${version}`,
      () => downloadProgram({ ...release, target }),
    );
  } catch (error) {
    throw new Error(`the download failed: ${errorText(error)}`, { cause: error });
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
  const found = await run('go', ['version'], {
    cwd: MODULE_FOLDER,
    env: buildEnvironment(process.env),
  }).catch(() => undefined);
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
        env: { ...buildEnvironment(process.env), CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' },
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

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Whether a version of the program has the minor version that is pinned, and is not older. */
function fits(found: string, pinned: string): boolean {
  const [major, minor, patch] = found.split('.').map(Number);
  const [wantedMajor, wantedMinor, wantedPatch = 0] = pinned.split('.').map(Number);
  return major === wantedMajor && minor === wantedMinor && patch !== undefined && patch >= wantedPatch;
}

/** Returns the path of a `temporal` in `path` that reports a version like the pinned one; undefined when there is none. */
export async function findOnPath(
  version: string,
  path = process.env['PATH'] ?? '',
): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const program = join(folder, 'temporal');
    if (!isAbsolute(folder) || !(await isProgram(program))) continue;
    const options = { timeout: VERSION_TIMEOUT_MS, env: CHILD_ENVIRONMENT };
    const output = await run(program, ['--version'], options).catch(() => undefined);
    const [, found] = /^temporal version (\d+\.\d+\.\d+)\b(?!-)/.exec(output?.stdout ?? '') ?? [];
    if (found !== undefined && fits(found, version)) return program;
  }
  return undefined;
}
