import { ConfigError, readConfig } from '../config/config.ts';
import { openDatabase } from '../embedded/database.ts';
import { findService } from '../embedded/find-service.ts';
import { createSecretsKeyStore } from '../embedded/secrets-keys.ts';
import { StartupError } from '../config/startup-error.ts';
import { runAdmin } from './admin.ts';

const stderr = (text: string): void => {
  process.stderr.write(text);
};

try {
  process.exitCode = await runAdmin(process.argv.slice(2), {
    openDatabase: async (options) =>
      await openDatabase(readConfig(process.env), (line) => stderr(`${line}\n`), options),
    findService: async () => await findService(readConfig(process.env)),
    secretsKeys: {
      read: async () => await createSecretsKeyStore(readConfig(process.env)).read(),
      require: async (keys) => await createSecretsKeyStore(readConfig(process.env)).require(keys),
    },
    stdout: (text) => process.stdout.write(text),
    stderr,
  });
} catch (error) {
  if (!(error instanceof ConfigError) && !(error instanceof StartupError)) throw error;
  stderr(`${error.message}\n`);
  process.exitCode = 1;
}
