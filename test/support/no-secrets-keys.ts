import type { SecretsKeyStore } from '../../src/embedded/secrets-keys.ts';

/** For commands that need no secrets key. */
export const noSecretsKeys: SecretsKeyStore = {
  read: async () => [],
  require: async () => {},
};
