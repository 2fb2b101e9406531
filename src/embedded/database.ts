import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { prepareDataDir, readServiceFile } from './data-dir.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { StartupError } from '../config/startup-error.ts';

/** A service that starts, or another command, may hold the data folder for a moment. */
const WAIT_MS = 15_000;
const PAUSE_MS = 300;

export interface OpenedDatabase {
  readonly url: string;
  /** Ends Postgres when `openDatabase` started it. */
  readonly close: () => Promise<void>;
}

/**
 * Opens the database for a command: the one that the environment names, else that of the data folder, which a running
 * service has started or which is started for the command. Throws `StartupError`.
 */
export async function openDatabase(
  config: Config,
  onProgress: (line: string) => void,
): Promise<OpenedDatabase> {
  if (config.databaseUrl !== undefined) return { url: config.databaseUrl, close: async () => {} };
  const giveUpAt = Date.now() + WAIT_MS;
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
