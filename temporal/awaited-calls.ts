/** The requests of this process that wait for the result of a workflow. Background work waits for them. */
export class AwaitedCalls {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** Counts a request as waiting until its work has ended. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) for (const proceed of this.#waiting) proceed();
    }
  }

  /** Waits until no request waits, and for `maxMs` at most. */
  async waitUntilNone(maxMs: number): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const proceed = () => {
        clearTimeout(timer);
        this.#waiting.delete(proceed);
        resolve();
      };
      const timer = setTimeout(proceed, maxMs);
      this.#waiting.add(proceed);
    });
  }
}
