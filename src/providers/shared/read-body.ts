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
    const path = [at, ...issue.path].filter((step) => step !== '').join('.');
    return `${path === '' ? 'the body' : path} is missing or not ${expectation(issue)}`;
  });
  return { ok: false, reason: faults.join('; ') };
}

function expectation(issue: z.core.$ZodIssue): string {
  // Schemas of this folder state their expectation themselves; anything else is named by its type alone.
  if (issue.code === 'custom') return issue.message;
  if (issue.code !== 'invalid_type') return 'of the expected form';
  return `${/^[aeio]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
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

/** An object that may be missing or something else, read as empty then; PHP writes an empty one as a list. */
export function part<S extends z.ZodRawShape>(shape: S) {
  return anything
    .transform((value) => (typeof value === 'object' && !Array.isArray(value) ? (value ?? {}) : {}))
    .pipe(z.object(shape));
}

/** A list's items; missing, or anything else than a list, reads as no items. */
export function items<T>(item: z.ZodType<T>) {
  return anything.transform((value) => (Array.isArray(value) ? value : [])).pipe(z.array(item));
}

/**
 * The app's user id among data of the app's own, under the one key that the set-up page asks for. Where the app keeps
 * its ids as numbers they arrive as numbers.
 */
export const userMetadata = part({
  app_user_id: anything.transform((value) => {
    if (Number.isSafeInteger(value)) return String(value);
    return isId(value) ? value : null;
  }),
});

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

/** An instant in epoch milliseconds that may be missing. */
export const optionalEpochMs = anything.transform((value) => (isInstant(value, 1) ? value : null));

/** An instant in epoch seconds that may be missing, read as milliseconds. */
export const optionalEpochSeconds = anything.transform((value) =>
  isInstant(value, 1000) ? value * 1000 : null,
);

/**
 * An instant as text with a time zone, to any fraction of a second: `2026-03-02T09:30:00.181000Z`, and with an offset
 * `+0000` or `+00:00`. What is below a millisecond is cut.
 */
const TIME_TEXT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,3})?\d*(?:Z|([+-]\d{2}):?(\d{2}))$/i;

function timeTextMs(value: unknown): number | null {
  const match = typeof value === 'string' && value.length <= 64 ? TIME_TEXT.exec(value) : null;
  if (match === null) return null;
  const [, seconds, fraction = '', hours = '+00', minutes = '00'] = match;
  const ms = Date.parse(`${seconds}${fraction}${hours}:${minutes}`);
  return isInstant(ms, 1) ? ms : null;
}

/** An instant as text, read as epoch milliseconds. */
export const timeText = z
  .custom<string>((value) => timeTextMs(value) !== null, 'a time with its time zone')
  .transform((text) => Number(timeTextMs(text)));

/** The same where it may be missing. */
export const optionalTimeText = anything.transform(timeTextMs);

/** An ISO 4217 code in any case, read in upper case. */
export const currencyCode = z
  .custom<string>((value) => typeof value === 'string' && /^[a-z]{3}$/i.test(value), 'a currency code')
  .transform((code) => code.toUpperCase());

const MINOR_TEXT = /^-?\d{1,16}$/;

function minorTextValue(value: unknown): number | null {
  const minor = typeof value === 'string' && MINOR_TEXT.test(value) ? Number(value) : null;
  return Number.isSafeInteger(minor) ? minor : null;
}

/** An amount as the text of a whole number of minor units; below zero where a balance turned round. */
export const minorText = z
  .custom<string>((value) => minorTextValue(value) !== null, 'the text of a whole amount')
  .transform((text) => Number(text));

/** The same where it may be missing. */
export const optionalMinorText = anything.transform(minorTextValue);

/** Candidates without nulls and repeats, the order kept. */
export function distinct(candidates: readonly (string | null)[]): readonly string[] {
  return [...new Set(candidates)].filter((candidate) => candidate !== null);
}

/** The name of an event type for a reason, where it looks like one; a sender's free text is never repeated. */
export function typeName(type: string): string {
  return /^[a-z][a-z_.]{0,59}$/i.test(type) ? type : 'of an unusual name';
}
