import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { StartupError } from '../config/startup-error.ts';
import { errorText } from './error-text.ts';
import { parseJson, readIfPresent, writePrivateFile } from './files.ts';
import { allows, childOptions, chooseUser, findPrograms, OPEN_FOLDER } from './postgres-programs.ts';
import type { RunAs } from './postgres-programs.ts';
import { freePort } from './processes.ts';

const run = promisify(execFile);

/** The user and the database of every embedded Postgres. */
export const DATABASE = 'tributary';

/** How to reach the cluster; stored beside it in `postgres.json`. */
const accessShape = z.object({ port: z.int(), password: z.string() });
type Access = z.infer<typeof accessShape>;

export interface Cluster {
  dataDir: string;
  /** Absolute, links resolved; Postgres calls it its data folder. */
  folder: string;
  access: Access;
  runAs: RunAs;
}

/** Returns the cluster of a data folder and the programs that run it. Creates the cluster if it is missing. */
export async function prepareCluster(
  dataDir: string,
  durable: boolean,
  progress: (message: string) => void,
): Promise<{ cluster: Cluster; programs: string }> {
  const path = join(dataDir, 'postgres');
  const accessFile = join(dataDir, 'postgres.json');
  const stored = parseJson(accessShape, await readIfPresent(accessFile));
  const existing = await stat(path).catch(() => undefined);
  const runAs = await chooseUser(path, existing);
  const programs = await findPrograms(runAs, progress);
  // Opens the data folder for traversal. The folders above it may belong to others and stay unchanged.
  if (runAs !== undefined) await chmod(dataDir, 0o711);

  if (existing === undefined) {
    progress('Creating a Postgres cluster');
    const access = { port: await freePort(), password: randomBytes(24).toString('hex') };
    await writePrivateFile(accessFile, JSON.stringify(access));
    await initialise(programs, dataDir, path, access.password, runAs, durable);
    return { cluster: { dataDir, folder: await realpath(path), access, runAs }, programs };
  }
  if (stored === undefined) {
    throw new StartupError(
      `${accessFile}, which holds the password of the database in ${path}, is missing or damaged: restore it from a backup, or move ${path} away to start with an empty database.`,
    );
  }
  const folder = await realpath(path);
  await refuseCopy(dataDir, folder);
  return { cluster: { dataDir, folder, access: stored, runAs }, programs };
}

/**
 * Creates the cluster beside its final path and moves it there when it is complete, so that an interrupted run leaves
 * no partial cluster. When the user of Postgres cannot traverse the folders above the data folder (root's home, a clone
 * with mode 0700), the cluster is created in an open folder and linked.
 */
async function initialise(
  programs: string,
  dataDir: string,
  cluster: string,
  password: string,
  runAs: RunAs,
  durable: boolean,
): Promise<void> {
  const isElsewhere = runAs !== undefined && !(await allows(runAs, '-x', dataDir));
  const base = isElsewhere ? await createOpenFolder(durable) : join(dataDir, 'postgres.new');
  await rm(base, { recursive: true, force: true });
  await mkdir(base, { mode: 0o700 });
  const passwordFile = join(base, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (runAs !== undefined) {
    await chown(base, runAs.uid, runAs.gid);
    await chown(passwordFile, runAs.uid, runAs.gid);
  }
  const created = join(base, 'data');
  try {
    await run(
      join(programs, 'initdb'),
      [
        `--pgdata=${created}`,
        `--username=${DATABASE}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        // The same sort order and letter case rules on every machine, whatever its locales are.
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        // Tests log in thousands of times, and each computes this many hashes.
        ...(durable ? [] : ['--no-sync', '--set=scram_iterations=1']),
      ],
      childOptions(runAs),
    );
  } catch (error) {
    await rm(base, { recursive: true, force: true });
    throw new StartupError(
      `The embedded Postgres could not create its cluster (${errorText(error)}): fix that, or set DATABASE_URL to a Postgres that runs.`,
      { cause: error },
    );
  }
  await rm(passwordFile);
  // Removes a link whose target is gone.
  await rm(cluster, { recursive: true, force: true });
  if (isElsewhere) await symlink(created, cluster);
  else {
    await rename(created, cluster);
    await rm(base, { recursive: true });
  }
}

/**
 * Throws `StartupError` when the data folder is a copy whose link points to the original's cluster: two services would
 * then use one database. The cluster's file `belongs-to` names its data folder; a moved folder updates it.
 */
async function refuseCopy(dataDir: string, cluster: string): Promise<void> {
  if (dirname(cluster) === (await realpath(dataDir))) return;
  const note = join(dirname(cluster), 'belongs-to');
  const owner = (await readIfPresent(note))?.trim();
  const here = await realpath(dataDir);
  if (owner === here) return;
  const stillLinked =
    owner === undefined ? undefined : await realpath(join(owner, 'postgres')).catch(() => undefined);
  if (stillLinked === cluster) {
    throw new StartupError(
      `${here} is a copy of ${String(owner)}, but its database is still the original's in ${cluster}: set DATA_DIR to the original, or remove ${join(here, 'postgres')} to start with an empty database.`,
    );
  }
  await writeFile(note, here);
}

async function createOpenFolder(durable: boolean): Promise<string> {
  if (!durable) return mkdtemp(join(tmpdir(), 'tributary-postgres-'));
  await mkdir(OPEN_FOLDER, { recursive: true, mode: 0o755 });
  return mkdtemp(join(OPEN_FOLDER, 'postgres-'));
}
