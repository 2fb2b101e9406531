/** The time for a call was over. The name is that of the errors of `AbortSignal.timeout`. */
export class DeadlineExceeded extends Error {
  override readonly name = 'TimeoutError';
}

/** A time limit for a call to another server. */
export interface Deadline {
  /** Aborted when the time is over, and when the signal of the caller is. */
  readonly signal: AbortSignal;
  readonly isExceeded: () => boolean;
  /** Settles as `work` does, or rejects when the signal is aborted, whatever becomes of `work`. */
  readonly race: <T>(work: Promise<T>) => Promise<T>;
  /** Ends the timer. */
  readonly end: () => void;
}

/**
 * Starts a time limit. A call that only receives a signal trusts every library below it to settle when the signal is aborted; an
 * answer that a library does not expect, such as `101 Switching Protocols`, would then keep the caller for ever.
 */
export function startDeadline(ms: number, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  let isExceeded = false;
  const timer = setTimeout(() => {
    isExceeded = true;
    controller.abort(new DeadlineExceeded(`not done within ${ms / 1000} s`));
  }, ms);
  const abort = () => controller.abort(parent?.reason);
  if (parent?.aborted === true) abort();
  else parent?.addEventListener('abort', abort);
  return {
    signal,
    isExceeded: () => isExceeded,
    race: async (work) =>
      await new Promise((resolve, reject) => {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason of an abort is that of the caller
        const giveUp = () => reject(signal.reason);
        if (signal.aborted) giveUp();
        signal.addEventListener('abort', giveUp);
        work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
      }),
    end: () => {
      clearTimeout(timer);
      parent?.removeEventListener('abort', abort);
    },
  };
}

/** Runs `work` with a time limit, and settles when it is over, whatever becomes of `work`. Rejects with `DeadlineExceeded`. */
export async function withDeadline<T>(ms: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
  const deadline = startDeadline(ms);
  try {
    return await deadline.race(work(deadline));
  } finally {
    deadline.end();
  }
}
