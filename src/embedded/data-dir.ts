import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseSecretsKeys } from '../config/config.ts';
import { StartupError } from '../config/startup-error.ts';
import { errorText } from './error-text.ts';
import { parseJson, readIfThere, writePrivateFile } from './files.ts';
import { processIdentity } from './processes.ts';

/** A data folder that this process owns until it calls `release` or ends. */
export interface DataDir {
  /** Absolute. */
  path: string;
  /** The keys of the secret box, the encrypting one first; one is made on first use and kept. */
  secretsKeys: readonly Buffer[];
  release(): Promise<void>;
}

/** What a running service tells the command line about itself. */
export interface ServiceFile {
  pid: number;
  /** The base URL of the API, as founders see it. */
  apiUrl: string;
  /** Where the API is reached from this machine. None of a worker. */
  ownUrl?: string | undefined;
  databaseUrl: string;
  temporalAddress: string;
  /** Only for a Temporal server that the service runs itself. */
  temporalUiUrl?: string | undefined;
}

const serviceFileShape = z.object({
  pid: z.int(),
  apiUrl: z.string(),
  ownUrl: z.string().optional(),
  databaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalUiUrl: z.string().optional(),
});

const serviceFile = (dataDir: string): string => join(dataDir, 'service.json');

/**
 * Makes the data folder if it is missing, takes it for this process alone, and makes the key that encrypts secrets if
 * there is none yet. A folder that another living process holds is refused; one that a crashed process held is not.
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
    return { path: dataDir, secretsKeys: await keepSecretsKeys(dataDir), release };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * The pids of the living processes that claim the data folder: one when a service runs, more only for the moment in
 * which others find that out. A pid that another process was given since does not count.
 */
export async function dataDirHolders(dataDir: string): Promise<number[]> {
  const claims = (await readdir(dataDir)).flatMap((name) => parseClaim(name) ?? []);
  return claims.filter(({ alive }) => alive).map(({ pid }) => pid);
}

/** Tells the command line where this service is. The caller holds the data folder. */
export async function writeServiceFile(dataDir: string, service: ServiceFile): Promise<void> {
  await writePrivateFile(serviceFile(dataDir), `${JSON.stringify(service, undefined, 2)}\n`);
}

/** Where the service of this data folder is, or undefined when none runs: what a crashed one left does not count. */
export async function readServiceFile(dataDir: string): Promise<ServiceFile | undefined> {
  const service = parseJson(serviceFileShape, await readIfThere(serviceFile(dataDir)));
  return service !== undefined && (await dataDirHolders(dataDir)).includes(service.pid) ? service : undefined;
}

/** Takes back what `writeServiceFile` told. */
export async function removeServiceFile(dataDir: string): Promise<void> {
  await rm(serviceFile(dataDir), { force: true });
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
 * Node has no lock that the kernel takes back, so every process that wants the folder makes an empty file named after
 * itself and holds the folder if it then sees no living other. Of two, the one that looks last sees the file of the
 * other, so there are never two holders; when each sees the other, both withdraw and try again after a random while.
 * What a crash leaves is told by its name and removed; no other claim can ever have that name.
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
        `The data folder ${dataDir} is in use by process ${holder}: stop that one first, or set DATA_DIR to another folder.`,
      );
    }
    await sleep(Math.random() * 2 ** attempt * 4);
  }
}

/** With seven, a refusal takes about a quarter of a second. */
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

async function keepSecretsKeys(dataDir: string): Promise<readonly Buffer[]> {
  const path = join(dataDir, 'secrets-key');
  const kept = (await readIfThere(path))?.trim();
  if (kept === undefined) {
    const made = randomBytes(32);
    await writePrivateFile(path, `${made.toString('base64')}\n`);
    return [made];
  }
  const keys = parseSecretsKeys(kept);
  if (keys === null) {
    throw new StartupError(
      `${path} does not hold 32 bytes in base64, or several of them with commas between: restore it from a backup, because the stored webhook secrets cannot be read without it.`,
    );
  }
  return keys;
}
