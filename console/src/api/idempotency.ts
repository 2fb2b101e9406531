import { useMemo, useRef } from 'react';

/** Creates a key. `crypto.randomUUID` is missing over http. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** Returns the key of an open form. A call with the same body that is sent again after a lost answer runs once. */
export function useIdempotencyKey(body: object): string {
  const text = JSON.stringify(body);
  return useMemo(() => ({ text, key: newIdempotencyKey() }), [text]).key;
}

/** Returns a function that gives each body of an open form its key, where the bodies are known only when they are sent. */
export function useIdempotencyKeys(): (body: object) => string {
  const keys = useRef(new Map<string, string>());
  return (body) => {
    const text = JSON.stringify(body);
    const key = keys.current.get(text) ?? newIdempotencyKey();
    keys.current.set(text, key);
    return key;
  };
}
