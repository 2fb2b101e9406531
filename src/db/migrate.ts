import type { Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import pg from 'pg';
import { driverAddress } from '../config/database-url.ts';
import { projectRoot } from '../config/project-root.ts';
import { MIGRATION_FILES } from './migration-files.ts';

const MIGRATIONS_DIR = path.join(projectRoot, 'src/db/migrations');

/** The pause before the next attempt, in which the service catches up, ms. */
const PAUSE_MS = 2_000;
/** After this time without the lock, the migration gives up, ms. */
const GIVE_UP_AFTER_MS = 10 * 60_000;
/** How often a process asks whether another one has ended its migrations. */
const LOCK_POLL_MS = 100;
/** After this time without an answer to a connection or to a short statement, Postgres counts as silent, ms. */
const ANSWER_MS = 15_000;
/** How often the log says what a migration waits for, ms. */
const PROGRESS_MS = 10_000;
/** How long the end waits for the connection to close, ms. */
const CLOSE_MS = 1_000;
/** The lock as `pg_locks` shows it: a number in two halves. */
const LOCK_HALVES = [
  Math.floor(PG_MIGRATE_LOCK_ID / 2 ** 32),
  Number(BigInt.asUintN(32, BigInt(PG_MIGRATE_LOCK_ID))),
] as const;
/** The server ends the session of a process whose machine has vanished, within a minute. Not all of them exist everywhere. */
const SESSION_SETTINGS = [
  "application_name = 'tributary migrations'",
  'tcp_keepalives_idle = 20',
  'tcp_keepalives_interval = 10',
  'tcp_keepalives_count = 3',
  'tcp_user_timeout = 60000',
  "client_connection_check_interval = '10s'",
];

export interface MigrateOptions {
  /** The folder with the numbered files. */
  readonly dir?: string;
  readonly pauseMs?: number;
  readonly giveUpAfterMs?: number;
  readonly answerMs?: number;
  readonly progressMs?: number;
  /** Ends the migrations at once: the statement in flight is cancelled, and its file is rolled back. */
  readonly signal?: AbortSignal | undefined;
}

/** Another transaction held a lock for the whole time that migrations wait for it. */
export class MigrationBlocked extends Error {
  override readonly name = 'MigrationBlocked';
}

/** Postgres accepts connections and does not answer. */
export class DatabaseSilent extends Error {
  override readonly name = 'DatabaseSilent';
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

/** The text of a session, for the operator, from a row `a` of `pg_stat_activity`. */
const HOLDER_TEXT = `'pid ' || a.pid || ' (' || coalesce(nullif(a.application_name, ''), 'no name') || coalesce(' from ' || host(a.client_addr), '')
  || ', ' || coalesce(a.state, 'state unknown') || ', since ' || to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC)'`;

/** Closes a connection, at most a second later: the end of a silent one would be waited for without limit. */
async function close(client: pg.Client): Promise<void> {
  const closed = new AbortController();
  const ended = client.end().catch(() => {});
  const isLate = sleep(CLOSE_MS, undefined, { signal: closed.signal }).then(
    () => (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy(),
    () => {},
  );
  await Promise.race([ended, isLate]);
  closed.abort();
}

/** What a run of migrations needs besides its connection. */
interface Watch {
  readonly log: (message: string) => void;
  readonly answerMs: number;
  readonly progressMs: number;
  readonly giveUpAfterMs: number;
  readonly signal: AbortSignal;
}

/** Resolves as `work` does. Throws `DatabaseSilent` after `answerMs`. */
async function answered<T>(work: Promise<T>, answerMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new DatabaseSilent(
            `Postgres has accepted the connection and answered nothing for ${answerMs / 1000} s: look whether it is frozen, overloaded, or behind a firewall that drops packets`,
          ),
        ),
      answerMs,
    );
    // A login that was given up never settles, and the process must not wait for its limit: the socket keeps the process while it is open.
    timer.unref();
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/**
 * Waits for the lock that only one migration holds. It asks again and again: a statement that waited for the lock would hold a
 * snapshot, for whose end a concurrent build of an index in the other process waits. Logs who holds it. Throws
 * `MigrationBlocked` if the holder has done nothing for `giveUpAfterMs`.
 */
async function takeLock(
  client: pg.Client,
  { log, answerMs, progressMs, giveUpAfterMs }: Watch,
): Promise<void> {
  const startedAt = performance.now();
  let saidAt = Number.NEGATIVE_INFINITY;
  let activeAt = startedAt;
  for (;;) {
    const { rows } = await answered(
      client.query<{ taken: boolean }>(`select pg_try_advisory_lock(${PG_MIGRATE_LOCK_ID}) as taken`),
      answerMs,
    );
    if (rows[0]?.taken === true) return;
    const now = performance.now();
    if (now - saidAt >= Math.min(progressMs, giveUpAfterMs)) {
      saidAt = now;
      const { rows: holders } = await answered(
        client.query<Holder>(
          `select a.pid, ${HOLDER_TEXT} as holder, a.state is distinct from 'idle' as "isActive"
             from pg_locks l join pg_stat_activity a using (pid)
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid = ${LOCK_HALVES[0]} and l.objid = ${LOCK_HALVES[1]}
              and l.database = (select oid from pg_database where datname = current_database())`,
        ),
        answerMs,
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
 * Watches a run from a second connection: logs what it waits for, and calls `onLost` when Postgres does not answer any more, or
 * does not have the session any more. Returns a function that ends it.
 */
function watch(
  config: pg.ClientConfig,
  pid: number,
  { log, answerMs, progressMs, signal }: Watch,
  onLost: (error: Error) => void,
): () => void {
  const ended = new AbortController();
  const startedAt = performance.now();
  const look = async (): Promise<void> => {
    const client = new pg.Client({ ...config, query_timeout: answerMs });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<{ event: string | null; blockers: string | null }>(
        `select m.wait_event_type || ' ' || m.wait_event as event,
                (select string_agg(${HOLDER_TEXT}, ', ') from pg_stat_activity a where a.pid = any(pg_blocking_pids(m.pid))) as blockers
           from pg_stat_activity m where m.pid = ${pid}`,
      );
      const [row] = rows;
      if (ended.signal.aborted) return;
      if (row === undefined) {
        onLost(new DatabaseSilent('Postgres has ended the session of the migrations'));
        return;
      }
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      log(
        `migrating for ${seconds} s${row.blockers === null ? '' : `, waiting for ${row.blockers}`}${row.event === null ? '' : ` [${row.event}]`}`,
      );
    } finally {
      await close(client);
    }
  };
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await sleep(progressMs, undefined, { signal: AbortSignal.any([ended.signal, signal]) });
      // An error of Postgres is an answer, too, such as a refused connection beyond max_connections.
      await answered(look(), answerMs).catch((error: unknown) => {
        const isSilent =
          error instanceof DatabaseSilent || (error instanceof Error && /timeout/i.test(error.message));
        if (isSilent && !ended.signal.aborted)
          onLost(new DatabaseSilent(`Postgres has not answered for ${answerMs / 1000} s during a migration`));
      });
    }
  };
  run().catch(() => {});
  return () => ended.abort();
}

/** Cancels the statement of a session, as far as Postgres answers. */
async function cancel(config: pg.ClientConfig, pid: number): Promise<void> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: CLOSE_MS, query_timeout: CLOSE_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(`select pg_cancel_backend(${pid})`);
  } finally {
    await close(client);
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
    answerMs = ANSWER_MS,
    progressMs = PROGRESS_MS,
    signal = new AbortController().signal,
  }: MigrateOptions = {},
): Promise<string[]> {
  const { url: connectionString, ssl } = driverAddress(databaseUrl);
  const config: pg.ClientConfig = {
    connectionString,
    ssl,
    connectionTimeoutMillis: answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
  const client = new pg.Client(config);
  // A lost connection fails the statement in flight; without a listener it would end the process, too.
  client.on('error', () => {});
  const ended = new AbortController();
  const lost = new AbortController();
  const failed = new Promise<never>((_, reject) => {
    lost.signal.addEventListener('abort', () => reject(lost.signal.reason as Error), { once: true });
  });
  failed.catch(() => {});
  const onStop = () => lost.abort(new MigrationStopped());
  signal.addEventListener('abort', onStop, { once: true });
  if (signal.aborted) onStop();
  const stopSignal = AbortSignal.any([signal, ended.signal]);
  const watched: Watch = { log, answerMs, progressMs, giveUpAfterMs, signal: stopSignal };
  let pid: number | undefined;
  const work = async () => {
    await answered(client.connect(), answerMs);
    for (const setting of SESSION_SETTINGS) {
      await answered(
        client.query(`set ${setting}`).catch(() => {}),
        answerMs,
      );
    }
    const { rows } = await answered(
      client.query<{ pid: number }>('select pg_backend_pid() as pid'),
      answerMs,
    );
    pid = rows[0]?.pid ?? 0;
    await takeLock(client, watched);
    const stopWatching = watch(config, pid, watched, (error) => lost.abort(error));
    try {
      return await runAll(client, { dir, pauseMs, giveUpAfterMs, log });
    } finally {
      stopWatching();
    }
  };
  try {
    const running = work();
    running.catch(() => {});
    return await Promise.race([running, failed]);
  } catch (error) {
    if (signal.aborted && pid !== undefined) await cancel(config, pid).catch(() => {});
    throw error;
  } finally {
    signal.removeEventListener('abort', onStop);
    ended.abort();
    await close(client);
  }
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
  }: Required<Pick<MigrateOptions, 'dir' | 'pauseMs' | 'giveUpAfterMs'>> & Pick<Watch, 'log'>,
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
