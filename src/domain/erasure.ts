import type { NormalizedEvent } from './events.ts';
import { isPlaceholder } from './user-ids.ts';
import { EVENT_LIMITS, exceededJsonLimit } from './json-size.ts';
import { formsOf, hasIdentifier, hasValue } from './identifier-in-text.ts';

/** A person's key at a billing provider: a subscription, a customer, or an id that the provider's SDK generated. */
export interface SubjectKey {
  /** The provider. */
  readonly source: string;
  readonly userKey: string;
}

/**
 * The identifiers of a person who is being erased. They are stored encrypted, and only while the erasure is in progress.
 */
export interface ErasureSubject {
  /** Null for an erasure that was complete, and searches for a key that was tied to the person since. */
  readonly customerUserId: string | null;
  readonly keys: readonly SubjectKey[];
}

/** Identifiers of persons: user ids of the app, and keys of providers. */
export interface Identifiers {
  readonly users: readonly string[];
  readonly keys: readonly string[];
}

/** The most texts of one body that are compared with erased identifiers. */
const MOST_TEXTS = 5_000;
/**
 * An identifier of this length also counts in numbers, in names of fields, and as a part of a longer text. A shorter one would be
 * found there by chance: the user id `999` is not an amount of 9.99.
 */
const DISTINCTIVE_LENGTH = 8;

/** Whether a text is an identifier wherever it stands. */
const isDistinctive = (text: string) => text.length >= DISTINCTIVE_LENGTH && !isPlaceholder(text);

/**
 * Returns the identifiers of persons that the facts of an event hold. A placeholder beside a user id names nobody. Ids that a
 * provider's SDK generated are keys. What links a user to a payment is the reference of the payment, which is kept.
 */
export function identifiersOf(event: NormalizedEvent): Identifiers {
  const { userLinks, transfer } = event;
  const refs = new Set(referencesOf(event));
  const linked = userLinks.map(({ key }) => key).filter((key) => !refs.has(key));
  const users = [
    ...new Set([
      ...event.userIds,
      ...userLinks.map(({ customerUserId }) => customerUserId),
      ...(transfer === null ? [] : [...transfer.from, ...transfer.to]),
    ]),
  ];
  const named = users.filter((user) => !isPlaceholder(user));
  return {
    users: named.length > 0 ? named : users,
    keys: [...new Set([...event.userKeys, ...linked, ...event.anonymousUserIds])],
  };
}

/** Whether an event names users of the app, and none of them is the person. */
export function isOfOthers(event: NormalizedEvent | null, isPerson: (userId: string) => boolean): boolean {
  const users = event === null ? [] : identifiersOf(event).users;
  return users.length > 0 && !users.some(isPerson);
}

/**
 * Returns the keys that an event ties to a person: its keys, if it names the person and no other user, or nobody and another key of
 * the person. Beside another user only ids of the provider's SDK, which it states as ids of one customer. None by a placeholder.
 */
export function tiedKeys(
  event: NormalizedEvent,
  isPerson: (userId: string) => boolean,
  isOwnKey: (key: string) => boolean,
): string[] {
  const { users, keys } = identifiersOf(event);
  if (
    users.length === 0 ? !keys.some(isOwnKey) : !users.some((user) => isPerson(user) && !isPlaceholder(user))
  ) {
    return [];
  }
  const tied = users.every(isPerson) ? keys : event.anonymousUserIds;
  return tied.filter(isDistinctive);
}

/**
 * Returns the different texts of a JSON body, and its numbers and names of fields that are long enough to be an identifier.
 * Empty for any other body, and for one with more values than an event has.
 */
export function textsOf(body: Uint8Array, most = MOST_TEXTS): string[] {
  const found = new Set<string>();
  const addIfDistinctive = (text: string) => {
    if (text.length >= DISTINCTIVE_LENGTH) found.add(text);
  };
  const waiting: unknown[] = [parsed(body)];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') found.add(value);
    else if (typeof value === 'number') addIfDistinctive(String(value));
    else if (typeof value === 'object' && value !== null) {
      for (const [name, child] of Object.entries(value)) {
        // An index of a list is too short.
        addIfDistinctive(name);
        waiting.push(child);
      }
    }
  }
  return [...found].slice(0, most);
}

const isLarge = (text: string): boolean => exceededJsonLimit(text, EVENT_LIMITS) !== null;

/** Returns the value of a body, or null if it is not JSON or has so many values that to read and walk it would take long. */
function parsed(body: Uint8Array): unknown {
  const text = new TextDecoder().decode(body);
  try {
    return isLarge(text) ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the longest part of an identifier that every encoder of JSON writes as it is. */
export function plainPartOf(identifier: string): string {
  const parts = identifier.match(/[A-Za-z0-9]+/g) ?? [];
  return parts.toSorted((a, b) => b.length - a.length)[0] ?? '';
}

/**
 * Returns the texts of a body by which a person is recognised, those that its event states as identifiers first. If the event names
 * users, a short text elsewhere in the body is no identifier: the user id `gold` is not the level of another user. `event` is null
 * for a body without one.
 */
export function identifyingTexts(
  body: Uint8Array,
  event: NormalizedEvent | null,
  most = MOST_TEXTS,
): string[] {
  const { users, keys } = event === null ? { users: [], keys: [] } : identifiersOf(event);
  const refs = event === null ? [] : referencesOf(event);
  const texts = textsOf(body, most).filter(users.length > 0 ? isDistinctive : (text) => !isPlaceholder(text));
  return [...new Set([...users, ...keys, ...refs, ...texts])].slice(0, most);
}

/** Whether a body has more values than an event has. It is no event, and `identifyingTexts` has none of its texts. */
export function isLargeBody(body: Uint8Array): boolean {
  return isLarge(new TextDecoder().decode(body));
}

/** Returns the references of payments that an event names. */
export function referencesOf({ payment, adjustment, paymentAliases, codes }: NormalizedEvent): string[] {
  return [
    payment?.ref,
    adjustment?.paymentRef,
    ...paymentAliases.flatMap(({ aliasRef, paymentRef }) => [aliasRef, paymentRef]),
    ...codes.map(({ paymentRef }) => paymentRef),
  ].filter((ref) => ref !== undefined);
}

/**
 * Whether a body names one of the identifiers. `event` is what the body holds, or null. Within a longer text an identifier counts
 * where it is not a part of another one. In a body that is not JSON, or has more values than an event, a short one counts as a value.
 */
export function namesOneOf(
  body: Uint8Array,
  event: NormalizedEvent | null,
  identifiers: readonly string[],
): boolean {
  if (parsed(body) === null) {
    const forms = formsOf(new TextDecoder().decode(body));
    return identifiers
      .filter((identifier) => !isPlaceholder(identifier))
      .some((identifier) => {
        const isNamedIn = isDistinctive(identifier) ? hasIdentifier : hasValue;
        return forms.some((text) => isNamedIn(text, identifier));
      });
  }
  const all = new Set(identifyingTexts(body, event, Infinity));
  if (identifiers.some((identifier) => all.has(identifier))) return true;
  const distinctive = identifiers.filter(isDistinctive);
  if (distinctive.length === 0) return false;
  return textsOf(body, Infinity)
    .flatMap(formsOf)
    .some((text) => distinctive.some((identifier) => hasIdentifier(text, identifier)));
}

/** What an erasure keeps, and why. docs/erasure.md says the same. */
export const KEPT_BY_ERASURE = [
  {
    what: 'Amounts, dates, creators, rates and ids of commissions, payments and payouts',
    why: 'The books and the claims of creators need them. They name a pseudonym instead of the user.',
  },
  {
    what: 'References of payments, refunds and events at the billing provider',
    why: 'A later refund must find its payment, and a repeated webhook must not count twice. Erase the user at the provider, too.',
  },
  {
    what: 'CSV files of payouts with their hashes',
    why: 'They contain no identifier of a user, and prove what was paid.',
  },
  {
    what: 'A keyed hash of the user id, of subscriptions and customers, and of references of payments',
    why: 'Later webhooks of the user are recognised by it, and stored under the pseudonym.',
  },
  {
    what: 'Devices that other users were reported on, and subscriptions and customers that other users have as well',
    why: 'They belong to those users as well.',
  },
] as const;
