import { useSyncExternalStore } from 'react';
import { newIdempotencyKey } from '../api/idempotency.ts';

/**
 * A payment that was sent and whose outcome is not known yet. It is stored before it is sent and until the service has
 * answered, so that a reload, another tab or a second press sends the same request again, which pays at most once.
 */
export interface Attempt {
  readonly affiliateId: string;
  readonly affiliateName: string;
  readonly count: number;
  readonly expectedTotalCents: number;
  readonly idempotencyKey: string;
  /** Epoch ms. */
  readonly startedAt: number;
}

/** The payments of one app of one account. */
export interface Scope {
  readonly accountId: string;
  readonly appId: string;
}

const PREFIX = 'tributary:payout:';
const prefixOf = ({ accountId, appId }: Scope) => `${PREFIX}${accountId}:${appId}:`;

const listeners = new Set<() => void>();
/** Changes with each change in this page. Another tab causes an event of the window. */
let version = 0;

function changed(): void {
  version += 1;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  const onStorage = () => {
    version += 1;
    listener();
  };
  listeners.add(listener);
  addEventListener('storage', onStorage);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', onStorage);
  };
}

function parse(text: string | null): Attempt | null {
  if (text === null) return null;
  try {
    const found = JSON.parse(text) as Partial<Attempt> | null;
    return typeof found?.idempotencyKey === 'string' && typeof found.expectedTotalCents === 'number'
      ? (found as Attempt)
      : null;
  } catch {
    return null;
  }
}

/** Returns the attempt to pay a creator whose outcome is not known, or null. */
export function findAttempt(scope: Scope, affiliateId: string): Attempt | null {
  return parse(localStorage.getItem(prefixOf(scope) + affiliateId));
}

/**
 * Returns the attempt to pay a creator that waits for an answer, and stores a new one if there is none. Throws if the
 * browser stores nothing: then a reload would forget the key.
 */
export function openAttempt(
  scope: Scope,
  row: Pick<Attempt, 'affiliateId' | 'affiliateName' | 'count' | 'expectedTotalCents'>,
): { readonly attempt: Attempt; readonly isNew: boolean } {
  const known = findAttempt(scope, row.affiliateId);
  if (known !== null) return { attempt: known, isNew: false };
  const attempt = { ...row, idempotencyKey: newIdempotencyKey(), startedAt: Date.now() };
  try {
    localStorage.setItem(prefixOf(scope) + row.affiliateId, JSON.stringify(attempt));
  } catch {
    throw new Error(
      'Nothing was sent, because this browser stores nothing for this page. Allow it to store data, or leave the private window, then pay again.',
    );
  }
  changed();
  return { attempt, isNew: true };
}

/** Forgets an attempt whose outcome is known. Leaves a later one of the same creator. */
export function closeAttempt(scope: Scope, { affiliateId, idempotencyKey }: Attempt): void {
  if (findAttempt(scope, affiliateId)?.idempotencyKey !== idempotencyKey) return;
  localStorage.removeItem(prefixOf(scope) + affiliateId);
  changed();
}

function readAttempts(scope: Scope): readonly Attempt[] {
  const prefix = prefixOf(scope);
  return Object.keys(localStorage)
    .filter((name) => name.startsWith(prefix))
    .flatMap((name) => parse(localStorage.getItem(name)) ?? [])
    .toSorted((one, other) => one.startedAt - other.startedAt);
}

/** Returns the attempts of an app whose outcome is not known, the oldest first. */
export function useAttempts(scope: Scope): readonly Attempt[] {
  useSyncExternalStore(subscribe, () => version);
  return readAttempts(scope);
}
