/** Whether the page may be left without a question: what it holds is of a session that has ended. */
let isLeaving = false;

export const isStartingAnew = (): boolean => isLeaving;

/** Loads the start of a page anew, by default that of founders. `path` is below that of the console. Nothing that was entered is kept. */
export function startAnew(path = './'): void {
  isLeaving = true;
  location.assign(path);
}
