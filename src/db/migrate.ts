import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import type pg from 'pg';
import { projectRoot } from '../config/project-root.ts';
import { MIGRATION_FILES } from './migration-files.ts';
import { HOLDER_TEXT, WatchedSession } from './watched-session.ts';
import type { SessionLimits } from './watched-session.ts';

const MIGRATIONS_DIR = path.join(projectRoot, 'src/db/migrations');

/** The pause before the next attempt, in which the service catches up, ms. */
const PAUSE_MS = 2_000;
/** After this time without the lock, the migration gives up, ms. */
const GIVE_UP_AFTER_MS = 10 * 60_000;
/** How often a process asks whether another one has ended its migrations. */
const LOCK_POLL_MS = 100;
/** How often the log says which process holds the lock, ms. */
const PROGRESS_MS = 10_000;
/** The lock as `pg_locks` shows it: a number in two halves. */
const LOCK_HALVES = [
  Math.floor(PG_MIGRATE_LOCK_ID / 2 ** 32),
  Number(BigInt.asUintN(32, BigInt(PG_MIGRATE_LOCK_ID))),
] as const;

export interface MigrateOptions extends SessionLimits {
  /** The folder with the numbered files. */
  readonly dir?: string;
  readonly pauseMs?: number;
  readonly giveUpAfterMs?: number;
  /** Ends the migrations at once: the statement in flight is cancelled, and its file is rolled back. */
  readonly signal?: AbortSignal | undefined;
}

/** Another transaction held a lock for the whole time that migrations wait for it. */
export class MigrationBlocked extends Error {
  override readonly name = 'MigrationBlocked';
}

/** The process was asked to stop before the migrations were complete. */
export class MigrationStopped extends Error {
  override readonly name = 'MigrationStopped';

  constructor() {
    super('stopped before the migrations were complete; the next start continues them');
  }
}

/** Whether Postgres gave a lock to another transaction: a time limit, or a deadlock that it ended. */
function isLockConflict(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false;
  return error.code === '55P03' || error.code === '40P01';
}

/** A session of Postgres that something waits for. */
interface Holder {
  readonly pid: number;
  readonly holder: string;
  readonly isActive: boolean;
}

/** What a run of migrations needs besides its connection. */
interface LockOptions {
  readonly log: (message: string) => void;
  readonly progressMs: number;
  readonly giveUpAfterMs: number;
}

/**
 * Waits for the lock that only one migration holds. It asks again and again: a statement that waited for the lock would hold a
 * snapshot, for whose end a concurrent build of an index in the other process waits. Logs who holds it. Throws
 * `MigrationBlocked` if the holder has done nothing for `giveUpAfterMs`.
 */
async function takeLock(
  session: WatchedSession,
  { log, progressMs, giveUpAfterMs }: LockOptions,
): Promise<void> {
  const { client } = session;
  const startedAt = performance.now();
  let saidAt = Number.NEGATIVE_INFINITY;
  let activeAt = startedAt;
  for (;;) {
    const { rows } = await session.answered(
      client.query<{ taken: boolean }>(`select pg_try_advisory_lock(${PG_MIGRATE_LOCK_ID}) as taken`),
    );
    if (rows[0]?.taken === true) return;
    const now = performance.now();
    if (now - saidAt >= Math.min(progressMs, giveUpAfterMs)) {
      saidAt = now;
      const { rows: holders } = await session.answered(
        client.query<Holder>(
          `select a.pid, ${HOLDER_TEXT} as holder, a.state is distinct from 'idle' as "isActive"
             from pg_locks l join pg_stat_activity a using (pid)
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid = ${LOCK_HALVES[0]} and l.objid = ${LOCK_HALVES[1]}
              and l.database = (select oid from pg_database where datname = current_database())`,
        ),
      );
      const [found] = holders;
      if (found?.isActive !== false) activeAt = now;
      if (found !== undefined && now - activeAt >= giveUpAfterMs) {
        throw new MigrationBlocked(
          `${found.holder} has held the lock of the migrations without doing anything. If its process is gone, end it with select pg_terminate_backend(${found.pid}), then start again`,
        );
      }
      if (found !== undefined) {
        const seconds = Math.round((now - startedAt) / 1000);
        log(`waiting for the migrations of another process for ${seconds} s: ${found.holder} holds the lock`);
      }
    }
    await sleep(LOCK_POLL_MS);
  }
}

/**
 * Runs all pending migrations in numeric order, each file in a transaction of its own, under an advisory lock, so that
 * several processes may start at once. A file that does not get a lock within half a second is rolled back and tried
 * again, so that the running service never waits long behind it. Returns the names of the migrations that ran. Throws
 * `MigrationBlocked` after ten minutes without the lock, `DatabaseSilent` when Postgres does not answer, and
 * `MigrationStopped` when the signal is aborted.
 */
export async function migrate(
  databaseUrl: string,
  log: (message: string) => void = () => {},
  {
    dir = MIGRATIONS_DIR,
    pauseMs = PAUSE_MS,
    giveUpAfterMs = GIVE_UP_AFTER_MS,
    answerMs,
    progressMs = PROGRESS_MS,
    signal = new AbortController().signal,
  }: MigrateOptions = {},
): Promise<string[]> {
  const session = new WatchedSession(databaseUrl, {
    name: 'tributary migrations',
    task: 'the migrations',
    answerMs,
    progressMs,
  });
  const onStop = () => session.lose(new MigrationStopped());
  signal.addEventListener('abort', onStop, { once: true });
  if (signal.aborted) onStop();
  const work = async () => {
    await session.open();
    // A process that is started again beside a migration needs nothing of it, and does not wait for its end.
    if (await hasAll(session.client, dir)) return [];
    await takeLock(session, { log, progressMs, giveUpAfterMs });
    const stopWatching = session.watch(({ seconds, blockers, event }) =>
      log(
        `migrating for ${seconds} s${blockers === null ? '' : `, waiting for ${blockers}`}${event === null ? '' : ` [${event}]`}`,
      ),
    );
    try {
      return await runAll(session.client, { dir, pauseMs, giveUpAfterMs, log });
    } finally {
      stopWatching();
    }
  };
  try {
    return await session.unlessLost(work());
  } catch (error) {
    if (signal.aborted) await session.cancel();
    throw error;
  } finally {
    signal.removeEventListener('abort', onStop);
    await session.close();
  }
}

/** Whether the database has every migration of a folder. */
async function hasAll(client: pg.Client, dir: string): Promise<boolean> {
  if (await isNewDatabase(client)) return false;
  const { rows } = await client.query<{ name: string }>('select name from migrations');
  const applied = new Set(rows.map(({ name }) => name));
  return (await readdir(dir)).every((file) => !file.endsWith('.sql') || applied.has(path.parse(file).name));
}

/** Whether no migration has run yet. */
async function isNewDatabase(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ is_new: boolean }>(
    `select to_regclass('migrations') is null as is_new`,
  );
  return rows[0]?.is_new === true;
}

/** Runs the pending files one after the other, with a line for each, or one line for all files of a new database. */
async function runAll(
  client: pg.Client,
  {
    dir,
    pauseMs,
    giveUpAfterMs,
    log,
  }: Required<Pick<MigrateOptions, 'dir' | 'pauseMs' | 'giveUpAfterMs'>> & Pick<LockOptions, 'log'>,
): Promise<string[]> {
  const isNew = await isNewDatabase(client);
  let current = '';
  const runNext = async () =>
    await runner({
      dbClient: client,
      dir,
      direction: 'up',
      migrationsTable: 'migrations',
      migrationLoaderStrategies: MIGRATION_FILES,
      count: 1,
      noLock: true,
      singleTransaction: true,
      verbose: false,
      // The library prints whole statements with its errors. The error that it throws is sufficient.
      logger: {
        info: (line) => {
          if (!line.startsWith('###')) return;
          current = line.replaceAll('#', '').trim();
          if (!isNew) log(current);
        },
        warn: () => {},
        error: () => {},
        debug: () => {},
      },
    });
  const names: string[] = [];
  let giveUpAt = performance.now() + giveUpAfterMs;
  for (;;) {
    try {
      const [migration] = await runNext();
      if (migration === undefined) {
        if (isNew && names.length > 0) log(`applied all ${names.length} migrations to a new database`);
        return names;
      }
      names.push(migration.name);
      giveUpAt = performance.now() + giveUpAfterMs;
    } catch (error) {
      if (!isLockConflict(error)) {
        if (isNew) log(current);
        throw error;
      }
      if (performance.now() + pauseMs > giveUpAt) {
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
}
