import { useMemo, useRef, useState } from 'react';
import { Problem } from './client.ts';

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

/** The statuses of refusals that the service does not store. */
const NOT_STORED: readonly number[] = [400, 401, 403, 429];

const isStored = ({ isRefusal, status, code }: Problem) =>
  isRefusal && !NOT_STORED.includes(status) && code !== 'idempotency_key_in_use';

/**
 * Returns the key of an open form, and what handles an error of its call. A call whose refusal the service has stored gets a new key, because
 * it would return the same refusal again. Any other one keeps its key: one whose answer was lost, so that it runs once, also if it is still
 * running, and one whose refusal is not stored.
 */
export function useRetryKey(body: object): {
  readonly key: string;
  readonly onError: (error: Error) => void;
} {
  const [refusals, setRefusals] = useState(0);
  const key = useIdempotencyKey({ body, refusals });
  return {
    key,
    onError: (error) => {
      if (error instanceof Problem && isStored(error)) setRefusals(refusals + 1);
    },
  };
}
