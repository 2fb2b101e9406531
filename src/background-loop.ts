import { setTimeout as sleep } from 'node:timers/promises';

export interface BackgroundLoop {
  /** Ends after the round that is under way. */
  readonly stop: () => Promise<void>;
}

/** Runs `round` at once and again after each pause, until it is stopped. A round that fails is told and not the last. */
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
