import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { driverAddress } from '../config/database-url.ts';

/*
 * A connection for work whose statements may take any time, such as a migration. Instead of a time limit, a second connection
 * asks Postgres every few seconds whether it still answers and has the session.
 */

/** After this time without an answer to a login or to a short statement, Postgres counts as silent, ms. */
const ANSWER_MS = 15_000;
/** How often the second connection asks, ms. */
const PROGRESS_MS = 10_000;
/** How long the end waits for a connection to close, ms. */
const CLOSE_MS = 1_000;
/** The server ends the session of a process whose machine has vanished, within a minute. Not all of them exist everywhere. */
const SESSION_SETTINGS = [
  'tcp_keepalives_idle = 20',
  'tcp_keepalives_interval = 10',
  'tcp_keepalives_count = 3',
  'tcp_user_timeout = 60000',
  "client_connection_check_interval = '10s'",
];

/** The text of a session, for the operator, from a row `a` of `pg_stat_activity`. */
export const HOLDER_TEXT = `'pid ' || a.pid || ' (' || coalesce(nullif(a.application_name, ''), 'no name') || coalesce(' from ' || host(a.client_addr), '')
  || ', ' || coalesce(a.state, 'state unknown') || ', since ' || to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC)'`;

/** Postgres does not answer, or has ended the session. */
export class DatabaseSilent extends Error {
  override readonly name = 'DatabaseSilent';
}

/** What the second connection finds. */
export interface Progress {
  /** Since the watch began. */
  readonly seconds: number;
  /** The sessions whose locks the session waits for. Null without any. */
  readonly blockers: string | null;
  /** What the session waits for, as Postgres names it. Null while it works. */
  readonly event: string | null;
}

/** Time limits of a session. */
export interface SessionLimits {
  /** How long a login or a short statement may take, ms. */
  readonly answerMs?: number | undefined;
  /** The pause between two looks at the session, ms. */
  readonly progressMs?: number | undefined;
}

export interface SessionOptions extends SessionLimits {
  /** Its `application_name`. */
  readonly name: string;
  /** What it is for, in messages: "the export". */
  readonly task: string;
}

/** A timer of the driver has ended. A time limit of the server is an answer. */
const isDriverTimeout = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof pg.DatabaseError) && /timeout/i.test(error.message);

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

/** A connection to Postgres that ends when Postgres does not answer any more. */
export class WatchedSession {
  readonly client: pg.Client;
  readonly #config: pg.ClientConfig;
  readonly #name: string;
  readonly #task: string;
  readonly #answerMs: number;
  readonly #progressMs: number;
  readonly #lost = new AbortController();
  readonly #closed = new AbortController();
  #pid: number | undefined;

  /** Connects only in `open`. */
  constructor(url: string, { name, task, answerMs = ANSWER_MS, progressMs = PROGRESS_MS }: SessionOptions) {
    this.#name = name;
    this.#task = task;
    this.#answerMs = answerMs;
    this.#progressMs = progressMs;
    const { url: connectionString, ssl } = driverAddress(url);
    this.#config = {
      connectionString,
      ssl,
      connectionTimeoutMillis: answerMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    };
    this.client = new pg.Client(this.#config);
    // A lost connection fails the statement in flight; without a listener it would end the process, too.
    this.client.on('error', () => {});
  }

  /** Logs in and sets the session up. Throws `DatabaseSilent`, and the errors of a login. */
  async open(): Promise<void> {
    await this.answered(this.client.connect());
    for (const setting of [`application_name = ${pg.escapeLiteral(this.#name)}`, ...SESSION_SETTINGS]) {
      await this.answered(this.client.query(`set ${setting}`).catch(() => {}));
    }
    const { rows } = await this.answered(
      this.client.query<{ pid: number }>('select pg_backend_pid() as pid'),
    );
    this.#pid = rows[0]?.pid ?? 0;
  }

  /** Resolves as `work` does, a login or a short statement. Throws `DatabaseSilent` after `answerMs`. */
  async answered<T>(work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const silent = new DatabaseSilent(
      `Postgres has answered nothing for ${this.#answerMs / 1000} s: look whether it is frozen, overloaded, or behind a firewall that drops packets`,
    );
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(silent), this.#answerMs);
      // A login that was given up never settles, and the process must not wait for its limit: the socket keeps the process while it is open.
      timer.unref();
    });
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      throw isDriverTimeout(error) ? silent : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resolves as `work` does. Throws what `lose` was called with, as soon as it is called. */
  async unlessLost<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#lost;
    // Not Promise.race with one promise for all calls, which would retain each result, such as the rows of an export.
    return await new Promise<T>((resolve, reject) => {
      const onLost = () => reject(signal.reason as Error);
      signal.addEventListener('abort', onLost, { once: true });
      if (signal.aborted) onLost();
      void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onLost));
    });
  }

  /** Runs a statement. Throws what `lose` was called with, as soon as it is called. */
  async query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<R>> {
    return await this.unlessLost(this.client.query<R>(text, values));
  }

  /** Gives the session up: `unlessLost` throws the error, and the watch ends. */
  lose(error: Error): void {
    this.#lost.abort(error);
  }

  /**
   * Watches the session from a second connection, every `progressMs`: calls `onProgress`, and `lose` with a `DatabaseSilent` when
   * Postgres does not answer any more, or does not have the session any more. Returns a function that ends the watch; `close` does, too.
   */
  watch(onProgress: (progress: Progress) => void): () => void {
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, this.#closed.signal, this.#lost.signal]);
    const startedAt = performance.now();
    const lose = (error: DatabaseSilent): void => {
      if (!signal.aborted) this.lose(error);
    };
    const look = async (): Promise<void> => {
      const found = await this.#look();
      if (found === undefined)
        lose(new DatabaseSilent(`Postgres has ended the session of ${this.#task}: its log says why`));
      else if (!signal.aborted)
        onProgress({ ...found, seconds: Math.round((performance.now() - startedAt) / 1000) });
    };
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        await sleep(this.#progressMs, undefined, { signal });
        // An error of Postgres is an answer, too, such as a refused connection beyond max_connections.
        await this.answered(look()).catch((error: unknown) => {
          if (error instanceof DatabaseSilent) lose(error);
        });
      }
    };
    run().catch(() => {});
    return () => ended.abort();
  }

  /** Returns what the session does at this moment. Undefined when Postgres does not have it any more. */
  async #look(): Promise<Omit<Progress, 'seconds'> | undefined> {
    const client = new pg.Client({ ...this.#config, query_timeout: this.#answerMs });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<Omit<Progress, 'seconds'>>(
        `select m.wait_event_type || ' ' || m.wait_event as event,
                (select string_agg(${HOLDER_TEXT}, ', ') from pg_stat_activity a where a.pid = any(pg_blocking_pids(m.pid))) as blockers
           from pg_stat_activity m where m.pid = ${this.#pid}`,
      );
      return rows[0];
    } finally {
      await close(client);
    }
  }

  /** Cancels the statement in flight, as far as Postgres answers. */
  async cancel(): Promise<void> {
    if (this.#pid === undefined) return;
    const client = new pg.Client({
      ...this.#config,
      connectionTimeoutMillis: CLOSE_MS,
      query_timeout: CLOSE_MS,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query(`select pg_cancel_backend(${this.#pid})`);
    } catch {
      // The session ends with its connection.
    } finally {
      await close(client);
    }
  }

  /** Closes the connection, at most a second later. What is not committed is rolled back. */
  async close(): Promise<void> {
    this.#closed.abort();
    await close(this.client);
  }
}
