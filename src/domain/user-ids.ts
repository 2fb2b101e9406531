import type { NormalizedEvent } from './events.ts';

/**
 * Strings that clients send in place of a missing id: lower case, without spaces and underscores. RevenueCat refuses most of them
 * as user ids. A user with such an id may be any number of persons.
 */
const PLACEHOLDERS: ReadonlySet<string> = new Set(
  `nouser no-user null none nil (null) nan unidentified undefined unknown anonymous anon guest default test n/a na true false unset
   notset (notset) empty optional(nil) <null> <nil> [objectobject] -1 unknownuser anonymoususer guestuser loggedout logged-out notloggedin
   nouserid appuserid \${userid} {{userid}}`.split(/\s+/),
);

/** Only zeros, punctuation and spaces: `0`, `{}`, `""`, and the id of zeros that phones give instead of an advertising id. */
const WITHOUT_CONTENT = /^[0\s!-/:-@[-`{-~]*$/u;

/** Whether a text stands for a missing id, in whatever case, width and with whatever invisible characters. */
export function isPlaceholder(text: string): boolean {
  const plain = text
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .toLowerCase();
  return WITHOUT_CONTENT.test(plain) || PLACEHOLDERS.has(plain.replaceAll(/["'`\s_]/g, ''));
}

/** How many users and keys one event may name. No real event names as many; each of them costs several look-ups. */
export const IDS_PER_EVENT = 200;

/** Whether an event names more users and keys than one event may. */
export function namesTooMany(event: NormalizedEvent): boolean {
  const { userIds, anonymousUserIds, userKeys, userLinks, paymentAliases, transfer } = event;
  const named = new Set([
    ...userIds,
    ...(transfer === null ? [] : [...transfer.from, ...transfer.to]),
    ...userLinks.map(({ customerUserId }) => customerUserId),
  ]);
  const keys = new Set([...anonymousUserIds, ...userKeys, ...userLinks.map(({ key }) => key)]);
  return named.size + keys.size + paymentAliases.length > IDS_PER_EVENT;
}

const isReal = (userId: string): boolean => !isPlaceholder(userId);

/** Whether a stored user is somebody: earlier versions stored placeholders, too. */
export const isSomebody = ({ customerUserId }: { readonly customerUserId: string }): boolean =>
  isReal(customerUserId);

/** Returns the event without placeholders among its user ids. An event whose user ids are all placeholders is of an anonymous user. */
export function withoutPlaceholders(event: NormalizedEvent): NormalizedEvent {
  const { transfer } = event;
  const userIds = event.userIds.filter(isReal);
  return {
    ...event,
    userIds,
    onlyAnonymousUserIds: event.onlyAnonymousUserIds || (event.userIds.length > 0 && userIds.length === 0),
    userLinks: event.userLinks.filter(({ customerUserId }) => isReal(customerUserId)),
    transfer: transfer && { from: transfer.from.filter(isReal), to: transfer.to.filter(isReal) },
  };
}

/**
 * Returns the event with its anonymous ids among the keys, but for placeholders: what a code binds there goes on to earn, also once the
 * customer has signed in.
 */
export function withAnonymousKeys(event: NormalizedEvent): NormalizedEvent {
  return { ...event, userKeys: [...new Set([...event.anonymousUserIds.filter(isReal), ...event.userKeys])] };
}
