import path from 'node:path';
import { runner } from 'node-pg-migrate';
import { projectRoot } from '../config/project-root.ts';

const MIGRATIONS_DIR = path.join(projectRoot, 'src/db/migrations');

/**
 * Runs all pending migrations in numeric order, in one transaction and under an advisory lock, so that several
 * processes may start at once. Returns the names of the migrations that ran.
 */
export async function migrate(
  databaseUrl: string,
  log: (message: string) => void = () => {},
): Promise<string[]> {
  const ran = await runner({
    databaseUrl,
    dir: MIGRATIONS_DIR,
    direction: 'up',
    migrationsTable: 'migrations',
    count: Number.POSITIVE_INFINITY,
    advisoryLockMode: 'wait',
    singleTransaction: true,
    verbose: false,
    // The library prints whole statements with its errors. The error that it throws is sufficient.
    logger: {
      info: (line) => line.startsWith('###') && log(line.replaceAll('#', '').trim()),
      warn: log,
      error: () => {},
      debug: () => {},
    },
  });
  return ran.map((migration) => migration.name);
}
