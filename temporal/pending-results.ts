import { setTimeout as sleep } from 'node:timers/promises';

/** Returns the result of work that may run in another process; null when it can't be fetched. `deadline` is epoch ms. */
type FetchResult<T> = (deadline: number) => Promise<T | null>;

interface Wait<T> {
  readonly waitMs: number;
  /** How long a worker in this process has to report the result before it is fetched; null without such a worker. */
  readonly localMs: number | null;
  /** Starts the work. Returns null when it could not be started. */
  readonly start: () => Promise<FetchResult<T> | null>;
}

/**
 * The waits of this process for results of workflows. An activity settles them right after its database commit, so that
 * a waiting request does not wait for the workflow to close.
 */
export class PendingResults<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /**
   * Starts work and waits for its result: the one that `settle` reports, else the one that is fetched. Returns null
   * when neither arrives within `waitMs` or the work was not started. Throws what the start and the fetch throw. Several
   * callers may wait for one id.
   */
  async wait(id: string, { waitMs, localMs, start }: Wait<T>): Promise<T | null> {
    const deadline = Date.now() + waitMs;
    // Registered before the start, so that no result is missed.
    const { result, forget } = this.#expect(id);
    const ended = new AbortController();
    const { signal } = ended;

    const startAndFetch = async (): Promise<T | null> => {
      const fetchResult = await start();
      if (fetchResult === null) return null;
      if (localMs !== null) {
        const isLate = sleep(localMs, true, { signal });
        if (!(await Promise.race([result.then(() => false), isLate]))) return await result;
      }
      return await fetchResult(deadline);
    };
    try {
      return await Promise.race([startAndFetch(), result, sleep(waitMs, null, { signal })]);
    } finally {
      ended.abort();
      forget();
    }
  }

  /** Reports a result to every caller that waits for it; without one it does nothing. */
  settle(id: string, value: T): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve(value);
    this.#waiting.delete(id);
  }

  #expect(id: string): { readonly result: Promise<T>; readonly forget: () => void } {
    const waiting = this.#waiting.get(id) ?? new Set<(value: T) => void>();
    this.#waiting.set(id, waiting);
    // Set before the constructor of the promise returns.
    let resolve!: (value: T) => void;
    const result = new Promise<T>((settle) => {
      resolve = settle;
    });
    waiting.add(resolve);
    const forget = () => {
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    };
    return { result, forget };
  }
}
