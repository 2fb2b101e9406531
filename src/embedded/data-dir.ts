import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseSecretsKeys } from '../config/config.ts';
import { StartupError } from '../config/startup-error.ts';
import { errorText } from './error-text.ts';
import { parseJson, readIfPresent, writePrivateFile } from './files.ts';
import { processIdentity } from './processes.ts';

/** A data folder that this process holds until it calls `release` or ends. */
export interface DataDir {
  /** Absolute. */
  path: string;
  /** The keys of the secret box, the encrypting one first. A missing key is generated and stored. */
  secretsKeys: readonly Buffer[];
  release(): Promise<void>;
}

/** What a running service publishes for the command line. */
export interface ServiceFile {
  pid: number;
  /** The base URL of the API, as founders see it; empty for a worker. */
  apiUrl: string;
  /** Address at which this machine reaches the API; undefined for a worker. */
  ownUrl?: string | undefined;
  databaseUrl: string;
  /** Address with the role that owns the schema, if it is another one. */
  migrationsDatabaseUrl?: string | undefined;
  temporalAddress: string;
  /** Undefined for a Temporal server that the environment names. */
  temporalUiUrl?: string | undefined;
}

const serviceFileShape = z.object({
  pid: z.int(),
  apiUrl: z.string(),
  ownUrl: z.string().optional(),
  databaseUrl: z.string(),
  migrationsDatabaseUrl: z.string().optional(),
  temporalAddress: z.string(),
  temporalUiUrl: z.string().optional(),
});

const serviceFile = (dataDir: string): string => join(dataDir, 'service.json');

/**
 * Creates the data folder if it is missing, claims it for this process, and generates the key that encrypts secrets if
 * it is missing. Throws `StartupError` when another running process holds the folder; a crashed one no longer does.
 */
export async function prepareDataDir(path: string): Promise<DataDir> {
  const dataDir = resolve(path);
  await openFolder(dataDir);
  const claim = await claimFolder(dataDir);
  const release = async (): Promise<void> => {
    await removeServiceFile(dataDir);
    await rm(claim, { force: true });
  };
  try {
    return { path: dataDir, secretsKeys: await loadSecretsKeys(dataDir), release };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Returns the pids of the running processes that claim the data folder: one when a service runs, and for a moment more
 * while others try to claim it. A pid that another process has received since does not count.
 */
export async function dataDirHolders(dataDir: string): Promise<number[]> {
  const claims = (await readdir(dataDir)).flatMap((name) => parseClaim(name) ?? []);
  return claims.filter(({ alive }) => alive).map(({ pid }) => pid);
}

/** Writes the file in which the command line finds this service. The caller must hold the data folder. */
export async function writeServiceFile(dataDir: string, service: ServiceFile): Promise<void> {
  await writePrivateFile(serviceFile(dataDir), `${JSON.stringify(service, undefined, 2)}\n`);
}

/** Returns the service file of the data folder, or undefined when no service runs. Ignores the file of a crashed one. */
export async function readServiceFile(dataDir: string): Promise<ServiceFile | undefined> {
  const service = parseJson(serviceFileShape, await readIfPresent(serviceFile(dataDir)));
  return service !== undefined && (await dataDirHolders(dataDir)).includes(service.pid) ? service : undefined;
}

export async function removeServiceFile(dataDir: string): Promise<void> {
  await rm(serviceFile(dataDir), { force: true });
}

async function openFolder(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true });
    // Root runs Postgres as another user, which has to traverse (not list) this folder; every file in it is private.
    await chmod(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700).catch(() => undefined);
    await writePrivateFile(join(dataDir, '.writable'), '');
    await rm(join(dataDir, '.writable'), { force: true });
  } catch (error) {
    throw new StartupError(
      `The data folder ${dataDir} cannot be written (${errorText(error)}): give this user write access, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/**
 * Claims the folder and returns the path of the claim. Node has no lock that the kernel releases, so every process that
 * wants the folder creates an empty file named after itself, and holds the folder if it then finds no claim of another
 * running process. Of two processes, the one that reads the folder last finds the other's claim, so there are never two
 * holders; when each finds the other, both withdraw and try again after a random pause. The claim of a crashed process
 * is recognised by its name and removed; no other claim can have that name.
 */
async function claimFolder(dataDir: string): Promise<string> {
  const claim = join(dataDir, claimName());
  for (let attempt = 0; ; attempt += 1) {
    await (await open(claim, 'wx', 0o600)).close();
    const others: number[] = [];
    for (const name of await readdir(dataDir)) {
      const other = parseClaim(name);
      if (other === undefined || join(dataDir, name) === claim) continue;
      if (other.alive) others.push(other.pid);
      else await rm(join(dataDir, name), { force: true });
    }
    const [holder] = others;
    if (holder === undefined) return claim;
    await rm(claim, { force: true });
    if (attempt === CLAIM_ATTEMPTS) {
      throw new StartupError(
        `The data folder ${dataDir} is in use by process ${holder}: stop that process first, or set DATA_DIR to another folder.`,
      );
    }
    await sleep(Math.random() * 2 ** attempt * 4);
  }
}

/** With seven attempts, a refusal takes about a quarter of a second. */
const CLAIM_ATTEMPTS = 7;

function claimName(): string {
  return `lock.${process.pid}.${fingerprint(processIdentity(process.pid) ?? '')}.${randomUUID()}`;
}

function parseClaim(name: string): { pid: number; alive: boolean } | undefined {
  const [, pid, identity] = /^lock\.(\d+)\.([0-9a-f]+)\./.exec(name) ?? [];
  if (pid === undefined) return undefined;
  const runs = processIdentity(Number(pid));
  return { pid: Number(pid), alive: runs !== undefined && fingerprint(runs) === identity };
}

function fingerprint(identity: string): string {
  return createHash('sha256').update(identity).digest('hex').slice(0, 16);
}

async function loadSecretsKeys(dataDir: string): Promise<readonly Buffer[]> {
  const path = join(dataDir, 'secrets-key');
  const stored = (await readIfPresent(path))?.trim();
  if (stored === undefined) {
    const generated = randomBytes(32);
    await writePrivateFile(path, `${generated.toString('base64')}\n`);
    return [generated];
  }
  const keys = parseSecretsKeys(stored);
  if (keys === null) {
    throw new StartupError(
      `${path} does not hold 32 bytes in base64, or several of them, separated by commas: restore it from a backup, because the stored webhook secrets cannot be decrypted without it.`,
    );
  }
  return keys;
}
