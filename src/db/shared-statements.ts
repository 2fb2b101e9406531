import { DatabaseUnavailable, isEnvironmentFault, isLockTimeout } from './errors.ts';
import type { Fragment, Sql } from './sql.ts';

/** Items that one statement takes at most. */
const MOST_ITEMS = 100;
/** Calls that wait at most. Another one fails at once: it would wait for longer than its caller. */
const MOST_WAITING = 2_000;
/** Statements in flight at one time: the next one is prepared while another waits for its commit. */
const IN_FLIGHT = 2;
/** For how long a statement that writes waits for a row that others have locked, while calls share it. */
const LOCK_TIMEOUT = '250ms';

/**
 * Runs one statement for items with different keys. Returns a result for each of them, in their order. One that may wait for rows that others
 * lock for long has the part `lockLimit(sql, isAlone)`; `isAlone` says that the item is sent again, after a statement that did not get its locks
 * in time.
 */
type Statement<Item, Result> = (
  sql: Sql,
  items: readonly Item[],
  isAlone: boolean,
) => Promise<readonly Result[]>;

/**
 * The part of a shared statement that writes, in its `from`, which limits its wait for locked rows. Otherwise one row, such as that of a
 * user whom an erasure replaces, would hold up the calls of all apps.
 */
export function lockLimit(sql: Sql, isAlone: boolean): Fragment {
  return isAlone
    ? sql.fragment`(select null) unlimited`
    : sql.fragment`(select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)) limited`;
}

/** How calls share a statement. */
export interface Sharing<Item> {
  /** Identifies an item. */
  readonly keyOf: (item: Item) => string;
  /**
   * What happens to an item with the key of another one: `share` gives both one result, which is right when equal keys mean
   * equal items; `wait` leaves it until the statement of the other one has ended.
   */
  readonly repeated: 'share' | 'wait';
}

interface Waiter<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** An item of a batch, and the calls that get its result. */
interface Entry<Item, Result> {
  readonly key: string;
  readonly item: Item;
  readonly waiters: Waiter<Item, Result>[];
}

/** The calls on one pool that wait for a statement. */
class Queue<Item, Result> {
  readonly #sql: Sql;
  readonly #statement: Statement<Item, Result>;
  readonly #sharing: Sharing<Item>;
  #waiting: Waiter<Item, Result>[] = [];
  #inFlight = 0;
  /** The keys of the items that are sent and not answered. */
  readonly #sent = new Set<string>();

  constructor(sql: Sql, statement: Statement<Item, Result>, sharing: Sharing<Item>) {
    this.#sql = sql;
    this.#statement = statement;
    this.#sharing = sharing;
  }

  run(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MOST_WAITING)
        throw new DatabaseUnavailable('too many calls wait for a statement');
      this.#waiting.push({ item, resolve, reject });
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#inFlight < IN_FLIGHT) {
      const batch = this.#takeBatch();
      if (batch.length === 0) return;
      this.#inFlight += 1;
      void this.#send(batch).finally(() => {
        this.#inFlight -= 1;
        this.#flush();
      });
    }
  }

  /** Takes the items that have waited longest. */
  #takeBatch(): Entry<Item, Result>[] {
    const { keyOf, repeated } = this.#sharing;
    const batch = new Map<string, Entry<Item, Result>>();
    const left: Waiter<Item, Result>[] = [];
    for (const waiter of this.#waiting) {
      const key = keyOf(waiter.item);
      const entry = batch.get(key);
      const mustWait = repeated === 'wait' && (entry !== undefined || this.#sent.has(key));
      if (mustWait || (entry === undefined && batch.size === MOST_ITEMS)) left.push(waiter);
      else if (entry !== undefined) entry.waiters.push(waiter);
      else batch.set(key, { key, item: waiter.item, waiters: [waiter] });
    }
    this.#waiting = left;
    for (const key of batch.keys()) this.#sent.add(key);
    return [...batch.values()];
  }

  async #send(batch: readonly Entry<Item, Result>[]): Promise<void> {
    try {
      await this.#run(batch, false);
    } catch (error) {
      // Their locks may take as long as a statement may, so the next statements do not wait for them.
      if (isLockTimeout(error)) for (const entry of batch) void this.#sendAlone(entry);
      else if (isEnvironmentFault(error)) this.#fail(batch, error);
      else if (batch.length === 1) this.#reject(batch, error);
      // A value that Postgres refuses must not fail the others. The halves follow one another, within the limit of statements in flight.
      else {
        const half = Math.ceil(batch.length / 2);
        await this.#send(batch.slice(0, half));
        await this.#send(batch.slice(half));
      }
    }
  }

  async #sendAlone(entry: Entry<Item, Result>): Promise<void> {
    try {
      await this.#run([entry], true);
    } catch (error) {
      this.#reject([entry], error);
    }
    this.#flush();
  }

  async #run(batch: readonly Entry<Item, Result>[], isAlone: boolean): Promise<void> {
    const items = batch.map(({ item }) => item);
    const results = await this.#statement(this.#sql, items, isAlone);
    for (const [index, { key, waiters }] of batch.entries()) {
      this.#sent.delete(key);
      for (const { resolve } of waiters) resolve(results[index] as Result);
    }
  }

  /** Fails the batch, and the calls that wait. Otherwise they would wait for a database that is unavailable, batch after batch. */
  #fail(batch: readonly Entry<Item, Result>[], error: unknown): void {
    this.#reject(batch, error);
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error);
  }

  #reject(batch: readonly Entry<Item, Result>[], error: unknown): void {
    for (const { key, waiters } of batch) {
      this.#sent.delete(key);
      for (const { reject } of waiters) reject(error);
    }
  }
}

/**
 * Makes calls of one process share statements: those that arrive while two statements run wait, and the next one takes up to a
 * hundred of them. A call without others is sent at once. Its statement begins after the call, and so sees all that was committed before it.
 * An item that Postgres refuses fails alone, and with a lock limit, one whose row is locked waits alone. A database that is unavailable fails all that wait.
 * `statement` looks up each item by all columns of an index, in a `lateral (… offset 0)`: a plain join may read all rows of an app
 * (docs/database.md, "Plans").
 */
export function shareStatements<Item, Result>(
  statement: Statement<Item, Result>,
  sharing: Sharing<Item>,
): (sql: Sql, item: Item) => Promise<Result> {
  const queues = new WeakMap<Sql, Queue<Item, Result>>();
  return (sql, item) => {
    const queue = queues.get(sql) ?? new Queue(sql, statement, sharing);
    queues.set(sql, queue);
    return queue.run(item);
  };
}
