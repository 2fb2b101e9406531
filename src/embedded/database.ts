import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { prepareDataDir, readServiceFile } from './data-dir.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { StartupError } from '../config/startup-error.ts';

/** A service that is just starting, or another command, may hold the data folder for a moment. */
const PATIENCE_MS = 15_000;
const PAUSE_MS = 300;

export interface OpenedDatabase {
  readonly url: string;
  /** Ends Postgres again when it was started for the moment. */
  readonly close: () => Promise<void>;
}

/**
 * The database for a command: the one that the environment names, else the one of the data folder, which a running
 * service serves already or which is started for the moment.
 */
export async function openDatabase(
  config: Config,
  onProgress: (line: string) => void,
): Promise<OpenedDatabase> {
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, close: async () => {} };
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const service = await readServiceFile(config.dataDir);
    if (service !== undefined) return { url: service.databaseUrl, close: async () => {} };
    try {
      const dataDir = await prepareDataDir(config.dataDir);
      try {
        const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir, durable: true, onProgress });
        return {
          url: postgres.url,
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
      if (!(error instanceof StartupError) || Date.now() > giveUpAt) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
