import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { processIdentity } from './processes.ts';
import { StartupError, errorCode, errorText } from './startup-error.ts';

/** A data folder that this process owns until it calls `release` or ends. */
export interface DataDir {
  /** Absolute. */
  path: string;
  /** 32 bytes, base64; made on first use and kept. */
  secretsKey: string;
  release(): Promise<void>;
}

/** What a running service tells the command line about itself. */
export interface ServiceFile {
  pid: number;
  /** Where the API listens, as a base URL. */
  apiUrl: string;
  databaseUrl: string;
  temporalAddress: string;
  /** Only for a Temporal server that the service runs itself. */
  temporalUiUrl?: string | undefined;
}

const serviceFileShape = z.object({
  pid: z.int(),
  apiUrl: z.string(),
  databaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalUiUrl: z.string().optional(),
});

const lockShape = z.object({ pid: z.int(), identity: z.string(), token: z.string() });
type Lock = z.infer<typeof lockShape>;

const lockFile = (dataDir: string): string => join(dataDir, 'lock');
const serviceFile = (dataDir: string): string => join(dataDir, 'service.json');

/**
 * Makes the data folder if it is missing, takes it for this process alone, and makes the key that encrypts secrets if
 * there is none yet. A folder that another living process holds is refused; one that a crashed process held is not.
 */
export async function prepareDataDir(path: string): Promise<DataDir> {
  const dataDir = resolve(path);
  await openFolder(dataDir);
  const lock = await takeLock(dataDir);
  const release = async (): Promise<void> => {
    await removeServiceFile(dataDir);
    if ((await readLock(dataDir))?.token === lock.token) await rm(lockFile(dataDir), { force: true });
  };
  try {
    return { path: dataDir, secretsKey: await keepSecretsKey(dataDir), release };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * The pid of the living process that holds the data folder, if one does. A pid that was given to another process since
 * does not count: the lock also says when its holder was started.
 */
export async function dataDirHolder(dataDir: string): Promise<number | undefined> {
  const lock = await readLock(dataDir);
  return lock !== undefined && processIdentity(lock.pid) === lock.identity ? lock.pid : undefined;
}

/** Tells the command line where this service is. The caller holds the data folder. */
export async function writeServiceFile(dataDir: string, service: ServiceFile): Promise<void> {
  await writePrivateFile(serviceFile(dataDir), `${JSON.stringify(service, undefined, 2)}\n`);
}

/** Where the service of this data folder is, or undefined when none runs: what a crashed one left does not count. */
export async function readServiceFile(dataDir: string): Promise<ServiceFile | undefined> {
  const service = parseJson(serviceFileShape, await readIfThere(serviceFile(dataDir)));
  return service !== undefined && service.pid === (await dataDirHolder(dataDir)) ? service : undefined;
}

/** Takes back what `writeServiceFile` told. */
export async function removeServiceFile(dataDir: string): Promise<void> {
  await rm(serviceFile(dataDir), { force: true });
}

/** Writes a file that only its owner may read, so that a reader or a crash sees the old content or the new, whole. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** The text of a file, or undefined when there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The value in a JSON text, or undefined when there is no text or it does not have that shape. */
export function parseJson<T>(shape: z.ZodType<T>, text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : shape.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

async function openFolder(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true });
    // Root runs Postgres as another user, who has to pass through (not list) this folder; every file in it is private.
    await chmod(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700).catch(() => undefined);
    await writePrivateFile(join(dataDir, '.writable'), '');
    await rm(join(dataDir, '.writable'), { force: true });
  } catch (error) {
    throw new StartupError(
      `The data folder ${dataDir} cannot be written (${errorText(error)}): give this user access or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/**
 * A hard link is made or refused in one step, and the lock has its content from the start. A stale lock is moved aside
 * first; should it turn out that a faster process had replaced it meanwhile, its lock is put back.
 */
async function takeLock(dataDir: string): Promise<Lock> {
  const lock: Lock = { pid: process.pid, identity: processIdentity(process.pid) ?? '', token: randomUUID() };
  const mine = join(dataDir, `lock.${lock.token}`);
  const aside = `${mine}.stale`;
  try {
    await writePrivateFile(mine, JSON.stringify(lock));
    for (;;) {
      if (await linked(mine, lockFile(dataDir))) return lock;
      const found = await readIfThere(lockFile(dataDir));
      const holder = await dataDirHolder(dataDir);
      if (holder !== undefined) {
        throw new StartupError(
          `The data folder ${dataDir} is in use by process ${holder}: stop that one first, or set DATA_DIR to another folder.`,
        );
      }
      await rm(aside, { force: true });
      await rename(lockFile(dataDir), aside).catch(ignoreMissing);
      const moved = await readIfThere(aside);
      if (moved !== undefined && moved !== found) await linked(aside, lockFile(dataDir));
    }
  } finally {
    await rm(mine, { force: true });
    await rm(aside, { force: true });
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}

async function readLock(dataDir: string): Promise<Lock | undefined> {
  return parseJson(lockShape, await readIfThere(lockFile(dataDir)));
}

async function keepSecretsKey(dataDir: string): Promise<string> {
  const path = join(dataDir, 'secrets-key');
  const kept = (await readIfThere(path))?.trim();
  if (kept === undefined) {
    const made = randomBytes(32).toString('base64');
    await writePrivateFile(path, `${made}\n`);
    return made;
  }
  if (Buffer.from(kept, 'base64').length !== 32) {
    throw new StartupError(
      `${path} does not hold 32 bytes in base64: restore it from a backup, because the stored webhook secrets cannot be read without it.`,
    );
  }
  return kept;
}
