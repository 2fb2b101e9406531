/**
 * Where requests wait for the outcome of durable work that runs in the same process: the activity settles it right
 * after its database commit, so the answer does not wait for the workflow to close. Work that ran elsewhere settles
 * nothing here; the caller has another source for that.
 */
export class PendingResults<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /** Begins to wait. Call it before the work is started, so that no outcome can slip by; several may wait for one. */
  expect(id: string): { readonly answer: Promise<T>; readonly forget: () => void } {
    const waiting = this.#waiting.get(id) ?? new Set<(value: T) => void>();
    this.#waiting.set(id, waiting);
    // Set before the constructor of the promise returns.
    let resolve!: (value: T) => void;
    const answer = new Promise<T>((settle) => {
      resolve = settle;
    });
    waiting.add(resolve);
    const forget = () => {
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(id);
    };
    return { answer, forget };
  }

  settle(id: string, value: T): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve(value);
    this.#waiting.delete(id);
  }
}
