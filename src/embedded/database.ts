import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { dataDirHolders, prepareDataDir, readServiceFile } from './data-dir.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { StartupError } from '../config/startup-error.ts';

/** A service that starts, or another command, may hold the data folder for a moment. */
const WAIT_MS = 15_000;
const PAUSE_MS = 300;

export interface OpenedDatabase {
  /** Address with the role of the service. */
  readonly url: string;
  /** Address with the role that owns the schema. */
  readonly ownerUrl: string;
  /** Ends Postgres when `openDatabase` started it. */
  readonly close: () => Promise<void>;
}

export interface OpenDatabaseOptions {
  /** Whether a missing data folder and a missing cluster are created. Otherwise they are refused. */
  readonly mayCreate: boolean;
}

/**
 * Opens the database for a command: the one that the environment names, else that of the data folder, which a running
 * service has started or which is started for the command. Throws `StartupError`.
 */
export async function openDatabase(
  config: Config,
  onProgress: (line: string) => void,
  { mayCreate }: OpenDatabaseOptions,
): Promise<OpenedDatabase> {
  const { databaseUrl, migrationsDatabaseUrl = databaseUrl } = config;
  if (databaseUrl !== undefined && migrationsDatabaseUrl !== undefined) {
    return { url: databaseUrl, ownerUrl: migrationsDatabaseUrl, close: async () => {} };
  }
  const giveUpAt = performance.now() + WAIT_MS;
  for (;;) {
    const service = await readServiceFile(config.dataDir);
    if (service !== undefined) {
      const { databaseUrl: url, migrationsDatabaseUrl: ownerUrl = url } = service;
      return { url, ownerUrl, close: async () => {} };
    }
    if (!mayCreate) await requireCluster(config.dataDir);
    try {
      const dataDir = await prepareDataDir(config.dataDir);
      try {
        const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir, durable: true, onProgress });
        return {
          url: postgres.url,
          ownerUrl: postgres.ownerUrl,
          close: async () => {
            await postgres.stop();
            await dataDir.release();
          },
        };
      } catch (error) {
        await dataDir.release();
        throw error;
      }
    } catch (error) {
      if (!(error instanceof StartupError) || performance.now() > giveUpAt) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/**
 * Throws `StartupError` when the data folder has no cluster: the command would create an empty one, and its answers would
 * be about nothing. A process that holds the folder may be creating its cluster at this moment.
 */
async function requireCluster(dataDir: string): Promise<void> {
  const hasCluster = await stat(join(dataDir, 'postgres')).then(
    () => true,
    () => false,
  );
  if (hasCluster || (await dataDirHolders(dataDir).catch(() => [])).length > 0) return;
  throw new StartupError(
    `There is no Tributary database in ${resolve(dataDir)}. Set DATA_DIR to the data folder of the service, or DATABASE_URL to its database. To create a new database, run npm start, migrate or accounts create.`,
  );
}
