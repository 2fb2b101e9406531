import * as z from 'zod';
import * as read from '../shared/read-body.ts';

/** What identifies an event of the store, in both formats. */
const identitySchema = z.object({ id: read.id, name: read.id });

/** What each event of the legacy format but a test states. */
const STATED = ['transactionId', 'store', 'price', 'environment'];

type Fields = Readonly<Record<string, unknown>>;

/** Returns the fields of an object. A list has none that are read. */
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' ? { ...value } : {});

/** Whether `data` is an event of the legacy format: a test, or an event that states something of its payment. */
function isLegacy(data: Fields): boolean {
  const identity = identitySchema.safeParse(data);
  return identity.success && (identity.data.name === 'test' || STATED.some((field) => field in data));
}

/** Whether an object has all facts of an event under the names of the legacy format, with an id of the form `…:name`. */
function areFacts(value: Fields): boolean {
  const identity = identitySchema.safeParse(value);
  return (
    identity.success &&
    identity.data.id.endsWith(`:${identity.data.name}`) &&
    STATED.every((field) => field in value)
  );
}

/**
 * Returns the facts of the store event in a body, or null. The legacy format has them in `data`. Superwall documents that a body
 * of the format V2 carries the same facts beside the state, the aliases and the attributes of the subscriber, but its schema was
 * not available. So complete facts count in the few places where nothing else can stand, never in attributes, which an app's
 * users can set.
 */
export function findFacts(body: Fields): Fields | null {
  const data = fieldsOf(body['data']);
  if (isLegacy(data)) return data;
  const found = [body, fieldsOf(body['event']), fieldsOf(data['event'])].filter(areFacts);
  return found.length === 1 ? (found[0] ?? null) : null;
}
