import { useEffect, useSyncExternalStore } from 'react';

/** Where a message leads to. */
export interface ToastLink {
  readonly to: string;
  readonly text: string;
}

type ToastModule = typeof import('./toast-area.tsx');

let module: ToastModule | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Loads the module of the messages, again if that failed. */
async function load(): Promise<ToastModule> {
  module ??= await import('./toast-area.tsx');
  for (const tell of listeners) tell();
  return module;
}

/** Where the messages appear. Once on a page. Their module is loaded after the page: nothing is done before. */
export function Toasts() {
  const loaded = useSyncExternalStore(subscribe, () => module);
  useEffect(() => void load().catch(() => {}), []);
  return loaded === null ? null : <loaded.ToastArea />;
}

/** Says for a few seconds that something was done, and may lead to it. Nothing where the module cannot be loaded, as offline. */
export function sayDone(text: string, link?: ToastLink): void {
  void load().then(
    ({ show }) => show(text, link),
    () => {},
  );
}
