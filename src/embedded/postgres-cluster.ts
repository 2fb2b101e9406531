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
import { parseJson, readIfThere, writePrivateFile } from './files.ts';
import { allows, childOptions, chooseUser, findPrograms, OPEN_FOLDER } from './postgres-programs.ts';
import type { RunAs } from './postgres-programs.ts';
import { freePort } from './processes.ts';

const run = promisify(execFile);

/** The user and the database of every embedded Postgres. */
export const DATABASE = 'tributary';

const accessShape = z.object({ port: z.int(), password: z.string() });
type Access = z.infer<typeof accessShape>;

export interface Place {
  dataDir: string;
  /** Absolute, links resolved: it is what Postgres itself calls its data folder. */
  cluster: string;
  access: Access;
  runAs: RunAs;
}

export async function prepareCluster(
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
export async function refuseCopy({ dataDir, cluster }: Place): Promise<void> {
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
