/** Whether the page may be left without a question: what it holds is of a session that has ended. */
let isLeaving = false;

export const isStartingAnew = (): boolean => isLeaving;

/** Loads the start of the console anew. Nothing that was entered is kept. */
export function startAnew(): void {
  isLeaving = true;
  location.assign('./');
}
