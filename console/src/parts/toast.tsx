import { useEffect, useSyncExternalStore } from 'react';

/** Where a message leads to. */
export interface ToastLink {
  readonly to: string;
  readonly text: string;
}

type Program = typeof import('./toast-area.tsx');

let program: Program | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Loads the program of the messages, again if that failed. */
async function load(): Promise<Program> {
  program ??= await import('./toast-area.tsx');
  for (const tell of listeners) tell();
  return program;
}

/** Where the messages appear. Once on a page. Their program is loaded after the page: nothing is done before. */
export function Toasts() {
  const loaded = useSyncExternalStore(subscribe, () => program);
  useEffect(() => void load().catch(() => {}), []);
  return loaded === null ? null : <loaded.ToastArea />;
}

/** Says for a few seconds that something was done, and may lead to it. Nothing where the program cannot be loaded, as offline. */
export function sayDone(text: string, link?: ToastLink): void {
  void load().then(
    ({ show }) => show(text, link),
    () => {},
  );
}
