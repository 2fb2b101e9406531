import type { ReactNode } from 'react';
import { ErrorBox, Waiting } from '../parts.tsx';

/** What a query has read, and the failure of its last reading. */
interface Reading<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly refetch: () => Promise<unknown>;
}

/**
 * Shows what was read. A later reading that fails is said above it, and what is being entered in it stays: a page is read again by itself,
 * and the service may be restarted meanwhile.
 */
export function Loaded<T>({
  reading: { data, error, refetch },
  what,
  children,
}: {
  readonly reading: Reading<T>;
  /** What is waited for, such as "the payout". */
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}) {
  if (data === undefined && error === null) return <Waiting what={what} />;
  return (
    <>
      {error !== null && <ErrorBox error={error} retry={() => void refetch()} />}
      {data !== undefined && children(data)}
    </>
  );
}

/** Returns several readings as one, whose data is there once all of them have theirs. */
export function together<T extends readonly unknown[]>(
  ...readings: { readonly [N in keyof T]: Reading<T[N]> }
): Reading<T> {
  const all = readings.map(({ data }) => data);
  return {
    data: all.includes(undefined) ? undefined : (all as unknown as T),
    error: readings.find(({ error }) => error !== null)?.error ?? null,
    refetch: async () => await Promise.all(readings.map(async ({ refetch }) => await refetch())),
  };
}
