/** How long a late turn counts, ms: as long as a request may take to arrive. */
const COUNTS_MS = 30_000;

export interface LoopWatchSettings {
  /** How late a turn of the event loop is when the process had no processor time, or was frozen, ms. */
  readonly lateMs: number;
  /** How often it is measured, ms. */
  readonly everyMs: number;
}

/**
 * Watches the event loop, and returns whether a turn of it was late in the last half minute. Input that had arrived in time
 * was then read late, so the time limits of callers say nothing about them.
 */
export function watchLoop({ lateMs, everyMs }: LoopWatchSettings): () => boolean {
  let turnedAt = performance.now();
  let lateAt = -Infinity;
  const note = () => {
    const now = performance.now();
    if (now - turnedAt > everyMs + lateMs) lateAt = now;
    turnedAt = now;
  };
  setInterval(note, everyMs).unref();
  return () => {
    // Its own timer may be later than the one that asks.
    note();
    return performance.now() - lateAt < COUNTS_MS;
  };
}
