import type { Environment, NormalizedEvent } from '../../domain/events.ts';
import { distinct } from './read-body.ts';
import type { ParseResult } from '../provider.ts';

/** What a reader of a body has to say at least; whatever else it does not say is empty. */
export type EventDetails = Pick<NormalizedEvent, 'sourceEventId' | 'kind' | 'occurredAt'> &
  Partial<NormalizedEvent>;

/** An event that says what `details` say and nothing else. */
export function normalizedEvent(details: EventDetails): NormalizedEvent {
  return {
    environment: null,
    productId: null,
    userIds: [],
    onlyAnonymousUserIds: false,
    userKeys: [],
    payment: null,
    adjustment: null,
    paymentAliases: [],
    userLinks: [],
    transfer: null,
    priceUnknown: false,
    ...details,
  };
}

/** A body that reads as an event. */
export function done(event: NormalizedEvent): ParseResult {
  return { outcome: 'event', event };
}

/** A body that was understood and counts for nothing; `event` may still tell of users and names. */
export function ignored(reason: string, event: NormalizedEvent | null = null): ParseResult {
  return { outcome: 'ignored', reason, event };
}

/** A body that could not be read. The reason names the fault for whoever has to mend it, and no values. */
export function failed(reason: string): ParseResult {
  return { outcome: 'failed', reason };
}

/**
 * The app's own user ids among the candidates, best first. Those that start with `anonymous`, in any
 * case, were made up by the provider's SDK for somebody the app had not named, so nobody can be found by them.
 */
export function usersAmong(
  candidates: readonly (string | null)[],
  anonymous: string,
): Pick<NormalizedEvent, 'userIds' | 'onlyAnonymousUserIds'> {
  const given = distinct(candidates);
  const prefix = anonymous.toLowerCase();
  const userIds = given.filter((candidate) => !candidate.toLowerCase().startsWith(prefix));
  return { userIds, onlyAnonymousUserIds: given.length > 0 && userIds.length === 0 };
}

/** The environment that a body names, null where it names none. One that is not production must not earn. */
export function environmentNamed(name: string | null): Environment | null {
  if (name === null) return null;
  return name.toUpperCase() === 'PRODUCTION' ? 'production' : 'sandbox';
}
