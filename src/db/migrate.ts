import path from 'node:path';
import { runner } from 'node-pg-migrate';
import { projectRoot } from '../config/project-root.ts';

const MIGRATIONS_DIR = path.join(projectRoot, 'src/db/migrations');

/**
 * Brings the schema up to date: runs every migration that has not run, in the order of their numbers, under an advisory
 * lock, so that several processes may start at once. Answers the names of those that ran now.
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
    // The library prints whole statements with its errors; the error that it throws says enough.
    logger: {
      info: (line) => line.startsWith('###') && log(line.replaceAll('#', '').trim()),
      warn: log,
      error: () => {},
      debug: () => {},
    },
  });
  return ran.map((migration) => migration.name);
}
