import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.ts';
import type { Config } from './config/config.ts';
import { StartupError } from './config/startup-error.ts';
import type { DataDir } from './embedded/data-dir.ts';

type Progress = (line: string) => void;
type Stop = () => Promise<void>;

interface DatabaseBackend {
  readonly databaseUrl: string;
  /** Address with the role that owns the schema. */
  readonly migrationsDatabaseUrl: string;
  /** Folder of the built-in Postgres, links resolved; null for a database that the environment names. */
  readonly databaseFolder: string | null;
}

interface TemporalBackend {
  readonly temporal: { readonly connection: NativeConnectionOptions; readonly namespace: string };
  /** Address of the built-in Temporal server's UI; null for a server that the environment names. */
  readonly temporalUiUrl: string | null;
}

/** The servers that a process works with: those that the environment names, and built-in ones for the rest. */
export interface Backends extends DatabaseBackend, TemporalBackend {
  /** The keys of the secret box, the encrypting one first. */
  readonly secretsKeys: readonly Buffer[];
  /** Null when the environment names both servers. */
  readonly dataDir: DataDir | null;
  /** Ends what was started here, in this order: Temporal, Postgres, the claim on the data folder. */
  readonly stop: Stop;
}

/**
 * Finds or starts Postgres and Temporal. The code and packages of the built-in servers are loaded only when they are
 * needed. When a part fails, the parts that were started before it are ended. Throws `StartupError`.
 */
export async function openBackends(config: Config, onProgress: Progress): Promise<Backends> {
  if (config.databaseUrl !== undefined && config.secretsKeys.length === 0) {
    throw new StartupError(
      'SECRETS_KEY is required with DATABASE_URL: it encrypts webhook secrets. Generate one with `openssl rand -base64 32` and store it safely.',
    );
  }
  const started: Stop[] = [];
  const stop = async () => {
    for (const end of started.toReversed()) await end();
  };
  try {
    const dataDir = await claimDataDir(config, started);
    const database = await openDatabase(config, onProgress, started);
    const temporal = await openTemporal(config, onProgress, started);
    const secretsKeys = config.secretsKeys.length > 0 ? config.secretsKeys : (dataDir?.secretsKeys ?? []);
    return { ...database, ...temporal, secretsKeys, dataDir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Claims the data folder when a built-in server needs it. */
async function claimDataDir(config: Config, started: Stop[]): Promise<DataDir | null> {
  if (config.databaseUrl !== undefined && config.temporal.address !== undefined) return null;
  const { prepareDataDir } = await import('./embedded/data-dir.ts');
  const dataDir = await prepareDataDir(config.dataDir);
  started.push(() => dataDir.release());
  return dataDir;
}

async function openDatabase(config: Config, onProgress: Progress, started: Stop[]): Promise<DatabaseBackend> {
  const { databaseUrl, migrationsDatabaseUrl = databaseUrl } = config;
  if (databaseUrl !== undefined && migrationsDatabaseUrl !== undefined) {
    return { databaseUrl, migrationsDatabaseUrl, databaseFolder: null };
  }
  const { startEmbeddedPostgres } = await import('./embedded/postgres.ts');
  const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir, durable: true, onProgress });
  started.push(() => postgres.stop());
  return {
    databaseUrl: postgres.url,
    migrationsDatabaseUrl: postgres.ownerUrl,
    databaseFolder: await realpath(join(config.dataDir, 'postgres')),
  };
}

async function openTemporal(config: Config, onProgress: Progress, started: Stop[]): Promise<TemporalBackend> {
  const { address, namespace } = config.temporal;
  if (address !== undefined) {
    // Reads TLS and the other settings by the names that Temporal's own tools use.
    const { connectionOptions, namespace: named } = loadClientConnectConfig({ disableFile: true });
    return {
      temporal: { connection: connectionOptions, namespace: named ?? namespace },
      temporalUiUrl: null,
    };
  }
  const { startLocalTemporal } = await import('../temporal/local-server/server.ts');
  const server = await startLocalTemporal({
    dataDir: config.dataDir,
    searchAttributes: SEARCH_ATTRIBUTES,
    onProgress,
  });
  started.push(() => server.stop());
  return {
    temporal: { connection: { address: server.address }, namespace },
    temporalUiUrl: server.uiUrl,
  };
}
