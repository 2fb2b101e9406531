import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import type { RunnerOption } from 'node-pg-migrate';
import pg from 'pg';
import { driverAddress } from '../config/database-url.ts';
import { projectRoot } from '../config/project-root.ts';

const MIGRATIONS_DIR = path.join(projectRoot, 'src/db/migrations');

/** How long a migration waits for a lock, ms. Statements of the running service wait behind it for that long at most. */
const LOCK_TIMEOUT_MS = 500;
/** The pause before the next attempt, in which the service catches up, ms. */
const PAUSE_MS = 2_000;
/** After this time without the lock, the migration gives up, ms. */
const GIVE_UP_AFTER_MS = 10 * 60_000;
/** How often a process asks whether another one has ended its migrations. */
const LOCK_POLL_MS = 100;

/** The first line of a file with a statement that Postgres refuses in a transaction, such as a concurrent index. */
const WITHOUT_TRANSACTION = '-- without transaction';

export interface MigrateOptions {
  /** The folder with the numbered files. */
  readonly dir?: string;
  readonly pauseMs?: number;
  readonly giveUpAfterMs?: number;
}

/** Another transaction held a lock for the whole time that migrations wait for it. */
export class MigrationBlocked extends Error {
  override readonly name = 'MigrationBlocked';
}

const LOADERS: NonNullable<RunnerOption['migrationLoaderStrategies']> = [
  {
    extensions: ['.sql'],
    loader: async (filePaths) =>
      await Promise.all(
        filePaths.map(async (filePath) => {
          const text = await readFile(filePath, 'utf8');
          const isOutside = text.startsWith(WITHOUT_TRANSACTION);
          return {
            id: filePath,
            filePaths: [filePath],
            actions: {
              up: (pgm) => {
                if (isOutside) pgm.noTransaction();
                // Nobody waits behind a statement outside of a transaction: it may wait for old transactions to end.
                else pgm.sql(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
                // Several statements sent as one would be a transaction.
                for (const statement of isOutside ? text.split(/;$/m) : [text]) pgm.sql(statement);
              },
              down: false,
            },
          };
        }),
      ),
  },
];

/** Whether Postgres gave a lock to another transaction: a time limit, or a deadlock that it ended. */
function isLockConflict(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false;
  return error.code === '55P03' || error.code === '40P01';
}

/**
 * Waits for the lock that only one migration holds. It asks again and again: a statement that waited for the lock would hold a
 * snapshot, for whose end a concurrent build of an index in the other process waits.
 */
async function takeLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock(${PG_MIGRATE_LOCK_ID}) as taken`,
    );
    if (rows[0]?.taken === true) return;
    await sleep(LOCK_POLL_MS);
  }
}

/**
 * Runs all pending migrations in numeric order, each file in a transaction of its own, under an advisory lock, so that
 * several processes may start at once. A file that does not get a lock within half a second is rolled back and tried
 * again, so that the running service never waits long behind it. Returns the names of the migrations that ran. Throws
 * `MigrationBlocked` after ten minutes without the lock.
 */
export async function migrate(
  databaseUrl: string,
  log: (message: string) => void = () => {},
  { dir = MIGRATIONS_DIR, pauseMs = PAUSE_MS, giveUpAfterMs = GIVE_UP_AFTER_MS }: MigrateOptions = {},
): Promise<string[]> {
  const { url: connectionString, ssl } = driverAddress(databaseUrl);
  const client = new pg.Client({ connectionString, ssl });
  // A lost connection fails the statement in flight; without a listener it would end the process, too.
  client.on('error', () => {});
  await client.connect();
  const runNext = async () =>
    await runner({
      dbClient: client,
      dir,
      direction: 'up',
      migrationsTable: 'migrations',
      migrationLoaderStrategies: LOADERS,
      count: 1,
      noLock: true,
      singleTransaction: true,
      verbose: false,
      // The library prints whole statements with its errors. The error that it throws is sufficient.
      logger: {
        info: (line) => line.startsWith('###') && log(line.replaceAll('#', '').trim()),
        warn: () => {},
        error: () => {},
        debug: () => {},
      },
    });
  try {
    await takeLock(client);
    const names: string[] = [];
    let giveUpAt = Date.now() + giveUpAfterMs;
    for (;;) {
      try {
        const [migration] = await runNext();
        if (migration === undefined) return names;
        names.push(migration.name);
        giveUpAt = Date.now() + giveUpAfterMs;
      } catch (error) {
        if (!isLockConflict(error)) throw error;
        if (Date.now() + pauseMs > giveUpAt) {
          throw new MigrationBlocked(
            'a migration did not get its lock: end the transactions that pg_stat_activity shows as the oldest, then start again',
            { cause: error },
          );
        }
        log(
          `another transaction holds a lock that the migration needs; it is tried again in ${pauseMs / 1000} s`,
        );
        await sleep(pauseMs);
      }
    }
  } finally {
    await client.end();
  }
}
