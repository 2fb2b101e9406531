import { setTimeout as sleep } from 'node:timers/promises';

/** Work that was started and whose result somebody will report, as a rule. */
interface StartedWork<T> {
  /** How long after the start the result is fetched, when nobody has reported it, ms. Infinity: never. */
  readonly fetchAfterMs: number;
  /** Fetches the result until `endsAt` (`performance.now()`, ms). Returns null when it can't. */
  readonly fetch: (endsAt: number) => Promise<T | null>;
}

interface Wait<T> {
  readonly waitMs: number;
  /** Starts the work. Returns null when it could not be started, or when there is nothing to wait for. */
  readonly start: () => Promise<StartedWork<T> | null>;
  /** Ends the wait when it is aborted. */
  readonly signal?: AbortSignal;
  /** Called when started work has no result after `waitMs`. `settled` resolves when somebody reports it, or after `forMs`. */
  readonly late?: { readonly forMs: number; readonly notice: (settled: Promise<void>) => void };
}

/** Says that the time of a wait is up. */
const LATE = Symbol('late');

/** Resolves when `result` does, and after `ms` in any case. */
async function anyEnd(result: Promise<unknown>, ms: number): Promise<void> {
  const timer = new AbortController();
  await Promise.race([result, sleep(ms, undefined, { signal: timer.signal, ref: false }).catch(() => {})]);
  timer.abort();
}

const forever = async (): Promise<never> => await new Promise<never>(() => {});

/**
 * The waits of this process for results of workflows. An activity settles them right after its database commit, so that
 * a waiting request does not wait for the workflow to close.
 */
export class PendingResults<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /**
   * Starts work and waits for its result: the one that `settle` reports, else the one that is fetched. Returns null
   * when neither arrives within `waitMs`, the work was not started, or the signal is aborted. Throws what the start
   * throws; a fetch that fails leaves the wait to a report. Several callers may wait for one id.
   */
  async wait(id: string, { waitMs, start, signal: given, late }: Wait<T>): Promise<T | null> {
    const endsAt = performance.now() + waitMs;
    // Registered before the start, so that no result is missed.
    const { result, forget } = this.#expect(id);
    const ended = new AbortController();
    const { signal } = ended;
    if (given?.aborted === true) ended.abort();
    // Unlike a signal of `AbortSignal.any`, the listener is gone when the wait has ended.
    given?.addEventListener('abort', () => ended.abort(), { once: true, signal });

    const startAndFetch = async (): Promise<T | null> => {
      const work = await start();
      if (work === null) return null;
      if (work.fetchAfterMs >= waitMs) return await forever();
      await sleep(work.fetchAfterMs, undefined, { signal });
      return (await work.fetch(endsAt).catch(() => null)) ?? (await forever());
    };
    const isUp = sleep(waitMs, LATE, { signal }).catch(() => null);
    let keepsWaiting = false;
    try {
      const first = await Promise.race([startAndFetch(), result, isUp]);
      if (first !== LATE) return first;
      if (late !== undefined) {
        keepsWaiting = true;
        late.notice(anyEnd(result, late.forMs).finally(forget));
      }
      return null;
    } finally {
      ended.abort();
      if (!keepsWaiting) forget();
    }
  }

  /** Reports a result to every caller that waits for it here. Returns whether there was one. */
  settle(id: string, value: T): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return false;
    for (const resolve of waiting) resolve(value);
    this.#waiting.delete(id);
    return true;
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
