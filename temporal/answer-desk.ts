/**
 * Where requests wait for the outcome of durable work that runs in the same process: the activity settles it right
 * after its database commit, so the answer does not wait for the workflow to close. Work that ran elsewhere settles
 * nothing here; the caller has another source for that.
 */
export class AnswerDesk<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /** Begins to wait. Call it before the work is started, so that no outcome can slip by; several may wait for one. */
  expect(id: string): { readonly answer: Promise<T>; readonly forget: () => void } {
    const waiting = this.#waiting.get(id) ?? new Set<(value: T) => void>();
    this.#waiting.set(id, waiting);
    const answer = new Promise<T>((resolve) => {
      waiting.add(resolve);
    });
    const [mine] = [...waiting].slice(-1);
    const forget = () => {
      if (mine !== undefined) waiting.delete(mine);
      if (waiting.size === 0) this.#waiting.delete(id);
    };
    return { answer, forget };
  }

  settle(id: string, value: T): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve(value);
    this.#waiting.delete(id);
  }
}
