import { useCallback, useMemo, useSyncExternalStore } from 'react';

/** What the browser did not store: it is kept until the page is closed. */
const kept = new Map<string, string>();

const listeners = new Set<() => void>();

function changed(): void {
  for (const listener of listeners) listener();
}

/** Another tab causes an event of the window. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}

/** Returns a stored text. Null if there is none, or if the browser stores nothing for this page. */
function textOf(name: string): string | null {
  try {
    return kept.get(name) ?? localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text. Returns whether the browser has it also after the page is closed. */
function store(name: string, text: string): boolean {
  try {
    localStorage.setItem(name, text);
    kept.delete(name);
    return true;
  } catch {
    kept.set(name, text);
    return false;
  } finally {
    changed();
  }
}

/** Returns what a text of JSON means, or null for one that is none: anybody can write what a browser stores. */
function valueOf(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Returns what this browser remembers under a name, and what remembers something else, in this tab and the others. `parse` takes any
 * value, null for none, and must be the same function each time. Storing returns whether it lasts after the page is closed.
 */
export function useStored<T>(
  name: string,
  parse: (stored: unknown) => T,
): readonly [value: T, store: (next: T) => boolean] {
  const text = useSyncExternalStore(subscribe, () => textOf(name));
  const value = useMemo(() => parse(valueOf(text)), [text, parse]);
  const save = useCallback((next: T) => store(name, JSON.stringify(next)), [name]);
  return [value, save];
}

/** Removes everything that this browser remembers under names with a prefix. */
export function forgetStored(prefix: string): void {
  const isOf = (name: string) => name.startsWith(prefix);
  for (const name of [...kept.keys()].filter(isOf)) kept.delete(name);
  try {
    for (const name of Object.keys(localStorage).filter(isOf)) localStorage.removeItem(name);
  } catch {
    // The browser stores nothing for this page.
  }
  changed();
}
