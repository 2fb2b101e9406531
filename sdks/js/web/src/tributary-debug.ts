import { describe } from '../../core/src/debug.ts';
import type { DebugState, Inspection } from '../../core/src/debug.ts';

const PERIOD_MS = 250;

/** Prints what the SDK knows, now and after each change. */
function watch(inspect: () => Inspection | undefined): void {
  let last = '';
  let lastAnswers: unknown;
  const print = () => {
    const inspection = inspect();
    const state = describe(inspection);
    if (!inspection || !state) return;
    const { queued, answers, ...rest } = state;
    const { nextTryInSeconds: _, ...lasting } = rest;
    const text = JSON.stringify([lasting, queued.map(({ kind }) => kind)]);
    // Each answer makes a new list of them.
    if (text === last && inspection[4] === lastAnswers) return;
    last = text;
    lastAnswers = inspection[4];
    console.log('[tributary]', rest);
    if (queued.length > 0) console.table(queued);
    if (answers.length > 0) console.table(answers);
  };
  print();
  setInterval(print, PERIOD_MS);
}

/** Returns the debug state of the page's SDK, or null before the start. With `isWatched` it also prints the state from now on. */
export function debugState(inspect: () => Inspection | undefined, isWatched?: boolean): DebugState | null {
  if (isWatched) watch(inspect);
  return describe(inspect());
}
