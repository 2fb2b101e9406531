import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { startLocalTemporal } from '../../temporal/local-server.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import type { Config } from '../config/config.ts';
import { prepareDataDir } from './data-dir.ts';
import type { DataDir } from './data-dir.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { StartupError } from './startup-error.ts';

/** The servers that a process works with: somebody else's where the environment names them, else its own. */
export interface Backends {
  readonly databaseUrl: string;
  readonly temporal: { readonly connection: NativeConnectionOptions; readonly namespace: string };
  readonly secretsKeys: readonly Buffer[];
  /** Of a Temporal server of its own. */
  readonly temporalUiUrl: string | null;
  /** Null when nothing is kept here. */
  readonly dataDir: DataDir | null;
  /** Where the built-in Postgres really keeps its files; null with a database of somebody else. */
  readonly databaseFolder: string | null;
  /** Ends what was started here, in order: Temporal, Postgres, the hold on the data folder. */
  readonly stop: () => Promise<void>;
}

/** Finds or starts Postgres and Temporal. What was started is ended again when a later part fails. */
export async function openBackends(config: Config, onProgress: (line: string) => void): Promise<Backends> {
  const { address } = config.temporal;
  if (config.databaseUrl !== undefined && config.secretsKeys.length === 0) {
    throw new StartupError(
      'With DATABASE_URL set, SECRETS_KEY is needed too: it encrypts webhook secrets. Make one with `openssl rand -base64 32` and keep it.',
    );
  }
  const ending: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of ending.toReversed()) await end();
  };
  try {
    const embedded = config.databaseUrl === undefined || address === undefined;
    const dataDir = embedded ? await prepareDataDir(config.dataDir) : null;
    if (dataDir !== null) ending.push(() => dataDir.release());

    let { databaseUrl } = config;
    if (databaseUrl === undefined) {
      const postgres = await startEmbeddedPostgres({ dataDir: config.dataDir, durable: true, onProgress });
      ending.push(() => postgres.stop());
      databaseUrl = postgres.url;
    }
    let temporalUiUrl: string | null = null;
    let temporal: Backends['temporal'];
    if (address === undefined) {
      const server = await startLocalTemporal({
        dataDir: config.dataDir,
        searchAttributes: SEARCH_ATTRIBUTES,
        onProgress,
      });
      ending.push(() => server.stop());
      temporalUiUrl = server.uiUrl;
      temporal = { connection: { address: server.address }, namespace: config.temporal.namespace };
    } else {
      const { connectionOptions, namespace } = loadClientConnectConfig({ disableFile: true });
      temporal = {
        connection: connectionOptions,
        namespace: namespace ?? config.temporal.namespace,
      };
    }
    const secretsKeys = config.secretsKeys.length > 0 ? config.secretsKeys : (dataDir?.secretsKeys ?? []);
    const databaseFolder =
      config.databaseUrl === undefined ? await realpath(join(config.dataDir, 'postgres')) : null;
    return { databaseUrl, temporal, secretsKeys, temporalUiUrl, dataDir, databaseFolder, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
