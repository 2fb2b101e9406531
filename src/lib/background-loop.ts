import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

export interface BackgroundLoop {
  /** Ends after the round in progress. */
  readonly stop: () => Promise<void>;
}

export interface BackgroundLoopOptions<T> {
  readonly pauseMs: number;
  readonly onError: (error: unknown) => void;
  /** Whether more work is known to wait, so that the next round follows without a pause. Never if absent. */
  readonly hasMore?: (result: T) => boolean;
}

/**
 * Runs `round` at once and again after each pause, until it is stopped. Its signal is aborted by the stop. A failed round
 * calls `onError`; the loop continues.
 */
export function startBackgroundLoop<T>(
  round: (signal: AbortSignal) => Promise<T>,
  { pauseMs, onError, hasMore = () => false }: BackgroundLoopOptions<T>,
): BackgroundLoop {
  const stopping = new AbortController();
  const { signal } = stopping;
  // Parts of a round listen at once. Node takes more than ten listeners for a leak.
  setMaxListeners(0, signal);

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const goesOn = await round(signal).then(hasMore, (error: unknown) => {
        onError(error);
        return false;
      });
      if (!goesOn) await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
