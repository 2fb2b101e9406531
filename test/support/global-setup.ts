import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { migrate } from '../../src/db/migrate.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import type { LocalTemporal } from '../../temporal/local-server/server.ts';
import { ensureNamespace } from '../../temporal/namespace.ts';
import {
  ensureSearchAttributes,
  findMissingSearchAttributes,
  SEARCH_ATTRIBUTES,
} from '../../temporal/search-attributes.ts';
import { TEMPLATE } from './database.ts';
import { eventually } from './eventually.ts';
import { createDatabase, inDatabase } from './postgres-admin.ts';

declare global {
  var stopTestServers: (() => Promise<void>) | undefined;
}

/** The server at this address runs the workflows of the tests instead of a development server. */
const ADDRESS_VARIABLE = 'TEST_TEMPORAL_ADDRESS';
/** A server reads new namespaces and search attributes from its database once in a while. */
const SET_UP_TIMEOUT_MS = 120_000;

type TestTemporal = Pick<LocalTemporal, 'address' | 'stop'>;

/** Starts a development server, or sets up the server that the environment names. */
async function openTemporal(onProgress: (line: string) => void): Promise<TestTemporal> {
  const address = process.env[ADDRESS_VARIABLE];
  if (address === undefined) {
    return await startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress });
  }
  const connection = await Connection.connect({ address });
  try {
    await ensureNamespace(connection, 'default');
    await eventually(
      `the server at ${address} has the namespace and the search attributes`,
      async () => {
        await ensureSearchAttributes(connection, 'default').catch(() => {});
        return (await findMissingSearchAttributes(connection, 'default').catch(() => ['?'])).length === 0;
      },
      SET_UP_TIMEOUT_MS,
    );
  } finally {
    await connection.close();
  }
  onProgress(`The tests use the Temporal server at ${address}`);
  return { address, stop: async () => {} };
}

/** One Postgres and one Temporal server for the whole run; a migrated template that every test file clones. */
export default async function globalSetup(): Promise<void> {
  if (!existsSync(path.join(projectRoot, 'dist/workflow-bundle.js'))) {
    throw new Error('the tests use the built workflow bundle: run them with `npm test`, which builds first');
  }
  const onProgress = (line: string) => process.stderr.write(`${line}\n`);
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
  const [postgres, temporal] = await Promise.all([
    startEmbeddedPostgres({ dataDir, durable: false, onProgress }),
    openTemporal(onProgress),
  ]);
  await createDatabase(postgres.ownerUrl, TEMPLATE);
  await migrate(inDatabase(postgres.ownerUrl, TEMPLATE));
  process.env['TEST_POSTGRES_URL'] = postgres.ownerUrl;
  process.env[ADDRESS_VARIABLE] = temporal.address;
  globalThis.stopTestServers = async () => {
    await Promise.all([temporal.stop(), postgres.stop()]);
    await rm(dataDir, { recursive: true, force: true });
  };
}
