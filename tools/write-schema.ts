import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../src/config/project-root.ts';
import { migrate } from '../src/db/migrate.ts';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { describeSchema, SCHEMA_FILE } from '../test/support/describe-schema.ts';
import { createDatabase, inDatabase } from '../test/support/postgres-admin.ts';

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-schema-'));
const postgres = await startEmbeddedPostgres({ dataDir, durable: false, onProgress: () => {} });
try {
  await createDatabase(postgres.ownerUrl, 'migrated');
  const url = inDatabase(postgres.ownerUrl, 'migrated');
  await migrate(url);
  await writeFile(path.join(projectRoot, SCHEMA_FILE), await describeSchema(url));
} finally {
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
}
