/**
 * Where a request waits for the outcome of durable work that runs in the same process: the activity settles it right
 * after its database commit, so the answer does not wait for the workflow to close. Work that ran elsewhere settles
 * nothing here; the caller has another source for that.
 */
export class AnswerDesk<T> {
  readonly #waiting = new Map<string, (value: T) => void>();

  /** Begins to wait. Call it before the work is started, so that no outcome can slip by. */
  expect(id: string): { readonly answer: Promise<T>; readonly forget: () => void } {
    let resolve: (value: T) => void = () => {};
    const promise = new Promise<T>((settle) => {
      resolve = settle;
    });
    this.#waiting.set(id, resolve);
    return { answer: promise, forget: () => this.#waiting.delete(id) };
  }

  settle(id: string, value: T): void {
    this.#waiting.get(id)?.(value);
    this.#waiting.delete(id);
  }
}
