import * as z from 'zod';

/** A body read as far as one step goes, or the reason why it could not be, fit to be shown. */
export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads the bytes as a JSON object in UTF-8. The reason of a failure never quotes them: a parser's own message would,
 * and bodies hold personal data.
 */
export function readJsonObject(body: Uint8Array): Read<Readonly<Record<string, unknown>>> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return { ok: false, reason: 'the body is not UTF-8 text' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'the body is not JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, reason: 'the body is not a JSON object' };
  }
  return { ok: true, value: { ...value } };
}

/** Checks `value` against `schema`; the reason names the fields that are wrong and what was expected, no values. */
export function readAs<T>(schema: z.ZodType<T>, value: unknown, at = ''): Read<T> {
  const result = schema.safeParse(value);
  if (result.success) return { ok: true, value: result.data };
  const faults = result.error.issues.slice(0, 3).map((issue) => {
    const path = [at, ...issue.path].filter((part) => part !== '').join('.');
    return `${path === '' ? 'the body' : path} is missing or not ${expectation(issue)}`;
  });
  return { ok: false, reason: faults.join('; ') };
}

function expectation(issue: z.core.$ZodIssue): string {
  // Schemas of this folder state their expectation themselves; anything else is named by its type alone.
  if (issue.code === 'custom') return issue.message;
  if (issue.code !== 'invalid_type') return 'of the expected form';
  const article = /^[aeio]/.test(issue.expected) ? 'an' : 'a';
  return `${article} ${issue.expected === 'int' ? 'integer' : issue.expected}`;
}

/** A field that may be missing and may hold anything: what comes of it is decided by the reader. */
export const anything = z.unknown().optional();

/** Longer ids than any provider makes, short enough for an index. */
const LONGEST_ID = 255;

/** Half a surrogate pair or a NUL cannot be kept as text in Postgres: such an id would fail for ever. */
const UNSTORABLE = /[\p{Surrogate}\p{Cc}]/u;

function isId(value: unknown): value is string {
  return (
    typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_ID && !UNSTORABLE.test(value)
  );
}

/** An id that has to be there. */
export const id = z.custom<string>(isId, 'an id of 1 to 255 characters');

/** An id that may be missing, and counts as missing when it is nothing that could be kept. */
export const optionalId = anything.transform((value) => (isId(value) ? value : null));

/** The ids in a list; whatever else is in it is passed over. */
export const ids = anything.transform((value) =>
  Array.isArray(value) ? value.filter((item) => isId(item)) : [],
);

/** Text that steers the reading; anything else reads as null, since new values must never fail. */
export const optionalText = anything.transform((value) => (typeof value === 'string' ? value : null));

/** A flag that is only ever true when it says so. */
export const flag = anything.transform((value) => value === true);

/** The end of the year 9997: later instants are mistakes, and with a hold period added no store could keep them. */
const LATEST_MS = 253_339_228_799_999;

function isInstant(value: unknown, unitMs: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) * unitMs <= LATEST_MS;
}

/** An instant in epoch milliseconds. */
export const epochMs = z.custom<number>((value) => isInstant(value, 1), 'a time in milliseconds');

/** An instant in epoch seconds, read as milliseconds. */
export const epochSeconds = z
  .custom<number>((value) => isInstant(value, 1000), 'a time in seconds')
  .transform((seconds) => seconds * 1000);

/** The same where it may be missing. */
export const optionalEpochSeconds = anything.transform((value) =>
  isInstant(value, 1000) ? value * 1000 : null,
);

/** An ISO 4217 code in any case, read in upper case. */
export const currencyCode = z
  .custom<string>((value) => typeof value === 'string' && /^[a-z]{3}$/i.test(value), 'a currency code')
  .transform((code) => code.toUpperCase());

/** Candidates without nulls and repeats, the order kept. */
export function distinct(candidates: readonly (string | null)[]): readonly string[] {
  return [...new Set(candidates)].filter((candidate) => candidate !== null);
}

/** The name of an event type for a reason, where it looks like one; a sender's free text is never repeated. */
export function typeName(type: string): string {
  return /^[a-z][a-z_.]{0,59}$/i.test(type) ? type : 'of an unusual name';
}
