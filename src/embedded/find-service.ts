import { join } from 'node:path';
import { parseSecretsKeys } from '../config/config.ts';
import type { Config } from '../config/config.ts';
import { localAddressOf } from '../lib/listen.ts';
import { readServiceFile } from './data-dir.ts';
import { readIfPresent } from './files.ts';
import { StartupError } from '../config/startup-error.ts';

/** The addresses of a service, and the keys of its secret box. */
export interface FoundService {
  readonly publicUrl: string;
  /** Address at which this machine reaches it. The service need not run. */
  readonly ownUrl: string;
  readonly secretsKeys: readonly Buffer[];
}

/**
 * Finds the service of this environment: the one that holds the data folder and wrote its service file, else the one
 * that the same variables would start. Null when the service uses the data folder and none runs there, or only a worker.
 * Throws `StartupError`.
 */
export async function findService(config: Config): Promise<FoundService | null> {
  const file = await readServiceFile(config.dataDir).catch(() => undefined);
  if (file === undefined && config.databaseUrl === undefined) return null;
  const stored = (await readIfPresent(join(config.dataDir, 'secrets-key')).catch(() => undefined))?.trim();
  const secretsKeys =
    config.secretsKeys.length > 0 ? config.secretsKeys : (parseSecretsKeys(stored ?? '') ?? []);
  if (secretsKeys.length === 0) {
    throw new StartupError(
      'SECRETS_KEY is required: set the value that the service has. It decrypts the webhook secrets.',
    );
  }
  // With DATABASE_URL set, the service file may belong to another service that uses this folder.
  if (file !== undefined && file.databaseUrl === (config.databaseUrl ?? file.databaseUrl)) {
    return file.apiUrl === ''
      ? null
      : { publicUrl: file.apiUrl, ownUrl: file.ownUrl ?? file.apiUrl, secretsKeys };
  }
  const ownUrl = localAddressOf(config.host, config.port);
  return { publicUrl: config.publicUrl ?? ownUrl, ownUrl, secretsKeys };
}

/** Returns the address of the Temporal server that the running service of a data folder uses; undefined when none runs. */
export async function findTemporalAddress(dataDir: string): Promise<string | undefined> {
  return (await readServiceFile(dataDir).catch(() => undefined))?.temporalAddress;
}
