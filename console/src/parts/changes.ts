import { useState } from 'react';
import { Problem } from '../api/client.ts';

/** Whether the service may have done what it was asked: the answer was lost, or it failed while it did it. */
export const isUncertain = (error: Error): boolean => !(error instanceof Problem && error.isRefusal);

/**
 * Returns what tells which fields of a form are to be sent: those that differ from `before`, by their JSON, since a colleague may have changed
 * the others meanwhile. A field that was sent without an answer is always sent from then on: the service may have it already.
 */
export function useChanges<T extends object>(before: T) {
  const [sent, setSent] = useState<readonly string[]>([]);
  return {
    changesTo: (now: T): Partial<T> =>
      Object.fromEntries(
        Object.entries(now).filter(
          ([name, value]) =>
            sent.includes(name) || JSON.stringify(value) !== JSON.stringify(before[name as keyof T]),
        ),
      ) as Partial<T>,
    /** Handles an error of the call with these changes. */
    onError: (error: Error, changes: Partial<T>) => {
      if (isUncertain(error)) setSent([...sent, ...Object.keys(changes)]);
    },
  };
}
