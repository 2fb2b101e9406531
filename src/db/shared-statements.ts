import { DatabaseUnavailable, isEnvironmentFault } from './errors.ts';
import type { Sql } from './sql.ts';

/** Items that one statement takes at most. */
const MOST_ITEMS = 100;
/** Calls that wait at most. Another one fails at once: it would wait for longer than its caller. */
const MOST_WAITING = 2_000;
/** Statements in flight at one time: the next one is prepared while another waits for its commit. */
const IN_FLIGHT = 2;

/** Runs one statement for items with different keys. Returns a result for each of them, in their order. */
type Statement<Item, Result> = (sql: Sql, items: readonly Item[]) => Promise<readonly Result[]>;

/** How calls share a statement. */
export interface Sharing<Item> {
  /** Identifies an item. */
  readonly keyOf: (item: Item) => string;
  /**
   * What happens to an item with the key of another one: `share` gives both one result, which is right when equal keys mean
   * equal items; `wait` leaves it for the next statement.
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
    while (this.#inFlight < IN_FLIGHT && this.#waiting.length > 0) {
      this.#inFlight += 1;
      void this.#send(this.#takeBatch()).finally(() => {
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
      if (entry !== undefined && repeated === 'share') entry.waiters.push(waiter);
      else if (entry !== undefined || batch.size === MOST_ITEMS) left.push(waiter);
      else batch.set(key, { item: waiter.item, waiters: [waiter] });
    }
    this.#waiting = left;
    return [...batch.values()];
  }

  async #send(batch: readonly Entry<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#statement(
        this.#sql,
        batch.map(({ item }) => item),
      );
      for (const [index, { waiters }] of batch.entries()) {
        for (const { resolve } of waiters) resolve(results[index] as Result);
      }
    } catch (error) {
      if (isEnvironmentFault(error)) this.#fail(batch, error);
      else if (batch.length === 1) rejectAll(batch, error);
      // A value that Postgres refuses must not fail the others. The halves follow one another, within the limit of statements in flight.
      else {
        const half = Math.ceil(batch.length / 2);
        await this.#send(batch.slice(0, half));
        await this.#send(batch.slice(half));
      }
    }
  }

  /** Fails the batch, and the calls that wait. Otherwise they would wait for a database that is unavailable, batch after batch. */
  #fail(batch: readonly Entry<Item, Result>[], error: unknown): void {
    rejectAll(batch, error);
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error);
  }
}

function rejectAll(
  batch: readonly { readonly waiters: readonly Pick<Waiter<never, never>, 'reject'>[] }[],
  error: unknown,
): void {
  for (const { waiters } of batch) for (const waiter of waiters) waiter.reject(error);
}

/**
 * Makes calls of one process share statements: those that arrive while two statements run wait, and the next one takes up to a
 * hundred of them. A call without others is sent at once. Its statement begins after the call, and so sees all that was committed before it.
 * An item that Postgres refuses fails alone. A database that is unavailable fails all that wait. `statement` looks up each item by all
 * columns of an index, in a `lateral (… offset 0)`: a plain join may read all rows of an app (docs/database.md, "Plans").
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
