import { runAdmin } from '../../src/cli/admin.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/embedded/database.ts';
import { noSecretsKeys } from './no-secrets-keys.ts';

/** Runs the command line with the variables of an environment, which name its database, while no service runs. */
export async function runAdminIn(
  environment: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<{ status: number; out: string; err: string }> {
  const config = readConfig(environment);
  let [out, err] = ['', ''];
  const status = await runAdmin(args, {
    openDatabase: async (options) => await openDatabase(config, () => {}, options),
    secretsKeys: noSecretsKeys,
    findService: async () => null,
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
  });
  return { status, out, err };
}
