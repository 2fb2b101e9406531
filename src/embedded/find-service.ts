import { join } from 'node:path';
import { parseSecretsKeys } from '../config/config.ts';
import type { Config } from '../config/config.ts';
import { localAddressOf } from '../listen.ts';
import { readServiceFile } from './data-dir.ts';
import { readIfThere } from './files.ts';
import { StartupError } from '../config/startup-error.ts';

/** Where a service is, and the keys that open its webhook secrets. */
export interface FoundService {
  readonly publicUrl: string;
  /** As this machine reaches it. It need not be running. */
  readonly ownUrl: string;
  readonly secretsKeys: readonly Buffer[];
}

/**
 * The service of this environment: with its built-in servers the one that holds the data folder, which wrote down where
 * it is, else the one that the same variables would start. Null when the data folder says that none runs.
 */
export async function findService(config: Config): Promise<FoundService | null> {
  const file = await readServiceFile(config.dataDir).catch(() => undefined);
  if (file === undefined && config.databaseUrl === undefined) return null;
  const kept = (await readIfThere(join(config.dataDir, 'secrets-key')).catch(() => undefined))?.trim();
  const secretsKeys =
    config.secretsKeys.length > 0 ? config.secretsKeys : (parseSecretsKeys(kept ?? '') ?? []);
  if (secretsKeys.length === 0) {
    throw new StartupError(
      'SECRETS_KEY is required: set the value that the service has. It decrypts the webhook secrets.',
    );
  }
  // A service with servers of its own may have nothing to do with what is in this folder.
  if (file !== undefined && file.databaseUrl === (config.databaseUrl ?? file.databaseUrl)) {
    return file.apiUrl === ''
      ? null
      : { publicUrl: file.apiUrl, ownUrl: file.ownUrl ?? file.apiUrl, secretsKeys };
  }
  const ownUrl = localAddressOf(config.host, config.port);
  return { publicUrl: config.publicUrl ?? ownUrl, ownUrl, secretsKeys };
}
