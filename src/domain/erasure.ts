/** A person's key at a billing provider: a subscription or a customer. */
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

/** The most texts of one body that are compared with erased identifiers. */
const MOST_TEXTS = 5_000;
/**
 * An identifier of this length also counts in numbers, in names of fields, and as a part of a longer text. A shorter one would be
 * found there by chance: the user id `999` is not an amount of 9.99.
 */
const DISTINCTIVE_LENGTH = 8;

/**
 * Returns the different texts of a JSON body, and its numbers and names of fields that are long enough to be an identifier.
 * Empty for any other body.
 */
export function textsOf(body: Uint8Array, most = MOST_TEXTS): string[] {
  const found = new Set<string>();
  const add = (text: string) => {
    if (found.size < most) found.add(text);
  };
  const addIfDistinctive = (text: string) => {
    if (text.length >= DISTINCTIVE_LENGTH) add(text);
  };
  const waiting: unknown[] = [parsed(body)];
  while (waiting.length > 0 && found.size < most) {
    const value = waiting.pop();
    if (typeof value === 'string') add(value);
    else if (typeof value === 'number') addIfDistinctive(String(value));
    else if (typeof value === 'object' && value !== null) {
      for (const [name, child] of Object.entries(value)) {
        if (!Array.isArray(value)) addIfDistinctive(name);
        waiting.push(child);
      }
    }
  }
  return [...found];
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return null;
  }
}

/** Returns the longest part of an identifier that every encoder of JSON writes as it is. */
export function plainPartOf(identifier: string): string {
  const parts = identifier.match(/[A-Za-z0-9]+/g) ?? [];
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '');
}

/** Whether a body names one of the identifiers. A body that is not JSON names those whose bytes it contains. */
export function namesOneOf(body: Uint8Array, identifiers: readonly string[]): boolean {
  const texts = textsOf(body, Infinity);
  if (parsed(body) === null) {
    const text = new TextDecoder().decode(body);
    return identifiers.some((identifier) => text.includes(identifier));
  }
  const all = new Set(texts);
  return identifiers.some(
    (identifier) =>
      all.has(identifier) ||
      (identifier.length >= DISTINCTIVE_LENGTH && texts.some((text) => text.includes(identifier))),
  );
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
    what: 'Devices that other users were reported on',
    why: 'They belong to those users as well.',
  },
] as const;
