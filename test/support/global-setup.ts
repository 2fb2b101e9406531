import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { migrate } from '../../src/db/migrate.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import { createDatabase, inDatabase } from './postgres-admin.ts';

declare global {
  var stopTestServers: (() => Promise<void>) | undefined;
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
    startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress }),
  ]);
  await createDatabase(postgres.url, 'tributary_template');
  await migrate(inDatabase(postgres.url, 'tributary_template'));
  process.env['TEST_POSTGRES_URL'] = postgres.url;
  process.env['TEST_TEMPORAL_ADDRESS'] = temporal.address;
  globalThis.stopTestServers = async () => {
    await Promise.all([temporal.stop(), postgres.stop()]);
    await rm(dataDir, { recursive: true, force: true });
  };
}
