import { setTimeout as sleep } from 'node:timers/promises';

export interface BackgroundLoop {
  /** Ends after the round in progress. */
  readonly stop: () => Promise<void>;
}

/** Runs `round` at once and again after each pause, until it is stopped. A failed round calls `onError`; the loop continues. */
export function startBackgroundLoop(
  round: () => Promise<unknown>,
  { pauseMs, onError }: { readonly pauseMs: number; readonly onError: (error: unknown) => void },
): BackgroundLoop {
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await round().catch(onError);
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {});
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
