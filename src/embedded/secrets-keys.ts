import { join, resolve } from 'node:path';
import { parseSecretsKeys } from '../config/config.ts';
import type { Config } from '../config/config.ts';
import { StartupError } from '../config/startup-error.ts';
import { readIfPresent, writePrivateFile } from './files.ts';

/** The keys of the secret box that the service of an environment has. */
export interface SecretsKeyStore {
  /** Returns the keys, the encrypting one first. Throws `StartupError` without any. */
  readonly read: () => Promise<readonly Buffer[]>;
  /** Makes sure that the service will have these keys. Throws `StartupError` when only the operator can give them to it. */
  readonly require: (keys: readonly Buffer[]) => Promise<void>;
}

/** Returns the keys of an environment: those of SECRETS_KEY, else the ones stored in the data folder. */
export function createSecretsKeyStore(config: Config): SecretsKeyStore {
  const file = join(resolve(config.dataDir), 'secrets-key');
  const readFile = async () => parseSecretsKeys((await readIfPresent(file))?.trim() ?? '') ?? [];
  return {
    read: async () => {
      if (config.secretsKeys.length > 0) return config.secretsKeys;
      const stored = config.databaseUrl === undefined ? await readFile() : [];
      if (stored.length > 0) return stored;
      throw new StartupError(
        'SECRETS_KEY is required: set the value that the service has. It decrypts the webhook secrets.',
      );
    },
    require: async (keys) => {
      const isSet = config.databaseUrl !== undefined || config.secretsKeys.length > 0;
      const present = isSet ? config.secretsKeys : await readFile();
      const missing = keys.filter((key) => !present.some((other) => other.equals(key)));
      if (missing.length === 0) return;
      if (isSet) {
        throw new StartupError(
          'SECRETS_KEY does not have the keys of the archive, so the service could not decrypt the webhook secrets. Set SECRETS_KEY, for this command and for the service, to the output of: tributary import FILE --show-secrets-key',
        );
      }
      const all = [...keys, ...present.filter((key) => !keys.some((other) => other.equals(key)))];
      await writePrivateFile(file, `${all.map((key) => key.toString('base64')).join(',')}\n`);
    },
  };
}
