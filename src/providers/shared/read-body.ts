import * as z from 'zod';
import { EVENT_LIMITS, exceededJsonLimit } from '../../domain/json-size.ts';

/** A value read from a body, or the reason why it cannot be read. The reason is safe to show. */
export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads the bytes as a JSON object in UTF-8. The reason of a failure never quotes them, as a JSON parser's own message
 * would: bodies hold personal data.
 */
export function readJsonObject(body: Uint8Array): Read<Readonly<Record<string, unknown>>> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return { ok: false, reason: 'the body is not UTF-8 text' };
  }
  const limit = exceededJsonLimit(text, EVENT_LIMITS);
  if (limit !== null) {
    return {
      ok: false,
      reason: `the body has ${limit === 'values' ? `more than ${EVENT_LIMITS.values} values` : `values nested more than ${EVENT_LIMITS.depth} levels deep`}`,
    };
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

/** Checks `value` against `schema`. The reason names up to three wrong fields and what was expected, but no values. */
export function readAs<T>(schema: z.ZodType<T>, value: unknown, at = ''): Read<T> {
  const result = schema.safeParse(value);
  if (result.success) return { ok: true, value: result.data };
  const problems = result.error.issues.slice(0, 3).map((issue) => {
    const path = [at, ...issue.path].filter((step) => step !== '').join('.');
    return `${path === '' ? 'the body' : path} is missing or not ${expectation(issue)}`;
  });
  return { ok: false, reason: problems.join('; ') };
}

function expectation(issue: z.core.$ZodIssue): string {
  // The schemas of this folder state their expectation. For any other schema only the type is named.
  if (issue.code === 'custom') return issue.message;
  if (issue.code !== 'invalid_type') return 'of the expected form';
  return `${/^[aeio]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
}

/** A field that may be missing and may hold anything. The parser decides what it means. */
export const anything = z.unknown().optional();

/** Longer than any provider's ids, and short enough for an index. */
const MAX_ID_LENGTH = 255;

/** Postgres cannot store half a surrogate pair or a NUL as text: such an id would fail on every attempt. */
const UNSTORABLE = /[\p{Surrogate}\p{Cc}]/u;

function isId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= MAX_ID_LENGTH &&
    !UNSTORABLE.test(value)
  );
}

/** A required id. */
export const id = z.custom<string>(isId, 'an id of 1 to 255 characters');

/** An optional id. Null where it is missing or cannot be stored. */
export const optionalId = anything.transform((value) => (isId(value) ? value : null));

/** The ids in a list. Skips everything else in it. */
export const ids = anything.transform((value) =>
  Array.isArray(value) ? value.filter((item) => isId(item)) : [],
);

/** Text that decides how the rest is read. Anything else is null, since new values must never fail. */
export const optionalText = anything.transform((value) => (typeof value === 'string' ? value : null));

/** An optional object. Anything else reads as an empty one, such as the list that PHP writes for an empty object. */
export function part<S extends z.ZodRawShape>(shape: S) {
  return anything
    .transform((value) => (typeof value === 'object' && !Array.isArray(value) ? (value ?? {}) : {}))
    .pipe(z.object(shape));
}

/** The most items of a list that are read: each costs. Stripe states at most ten lines in an event, Paddle a hundred items. */
const MOST_ITEMS = 1_000;

/** A list. Anything else, or a missing field, reads as an empty one. */
export function items<T>(item: z.ZodType<T>) {
  return anything
    .transform((value) => (Array.isArray(value) ? value : []))
    .refine((value) => value.length <= MOST_ITEMS, `a list of at most ${MOST_ITEMS} items`)
    .pipe(z.array(item));
}

/**
 * The app's user id in metadata that the app sets, under the key that the provider's setup page names. Apps whose ids are
 * numbers may send a number.
 */
export const userMetadata = part({
  app_user_id: anything.transform((value) => {
    if (Number.isSafeInteger(value)) return String(value);
    return isId(value) ? value : null;
  }),
});

/** A flag. Anything but `true` is false. */
export const flag = anything.transform((value) => value === true);

/** The end of the year 9997. A later instant is a mistake, and Postgres could not store it plus a hold period. */
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

/** An optional instant in epoch milliseconds. */
export const optionalEpochMs = anything.transform((value) => (isInstant(value, 1) ? value : null));

/** An optional instant in epoch seconds, read as milliseconds. */
export const optionalEpochSeconds = anything.transform((value) =>
  isInstant(value, 1000) ? value * 1000 : null,
);

/**
 * An instant as text with a time zone and any fraction of a second: `2026-03-02T09:30:00.181000Z`, or with an offset
 * such as `+0000` or `+00:00`. Digits below a millisecond are cut.
 */
const TIME_TEXT = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2})(?:(\.\d{1,3})\d*)?(?:Z|([+-]\d{2}):?(\d{2}))$/i;

/** Whether the calendar has a day of the form 2026-02-28. `Date.parse` reads 2026-02-30 as a day in March. */
export function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}

function timeTextMs(value: unknown): number | null {
  const match = typeof value === 'string' && value.length <= 64 ? TIME_TEXT.exec(value) : null;
  if (match === null) return null;
  const [, day = '', clock, fraction = '', hours = '+00', minutes = '00'] = match;
  const ms = Date.parse(`${day}${clock}${fraction}${hours}:${minutes}`);
  return isInstant(ms, 1) && isDay(day) ? ms : null;
}

/** An instant as text, read as epoch milliseconds. */
export const timeText = z
  .custom<string>((value) => timeTextMs(value) !== null, 'a time with its time zone')
  .transform((text) => Number(timeTextMs(text)));

/** An optional instant as text, read as epoch milliseconds. */
export const optionalTimeText = anything.transform(timeTextMs);

/** An ISO 4217 code in any case, read as upper case. */
export const currencyCode = z
  .custom<string>((value) => typeof value === 'string' && /^[a-z]{3}$/i.test(value), 'a currency code')
  .transform((code) => code.toUpperCase());

const MINOR_TEXT = /^-?\d{1,16}$/;

function minorTextValue(value: unknown): number | null {
  const minor = typeof value === 'string' && MINOR_TEXT.test(value) ? Number(value) : null;
  return Number.isSafeInteger(minor) ? minor : null;
}

/** An amount as the text of a whole number of minor units. Negative where a balance changed its sign. */
export const minorText = z
  .custom<string>((value) => minorTextValue(value) !== null, 'the text of a whole amount')
  .transform((text) => Number(text));

/** An optional amount as the text of a whole number of minor units. */
export const optionalMinorText = anything.transform(minorTextValue);

/** Returns the candidates in their order, without nulls and repeats. */
export function distinct(candidates: readonly (string | null)[]): readonly string[] {
  return [...new Set(candidates)].filter((candidate) => candidate !== null);
}

/** Returns an event type for a reason if it looks like a type name; a sender's free text is never repeated. */
export function typeName(type: string): string {
  return /^[a-z][a-z_.]{0,59}$/i.test(type) ? type : '(unreadable name)';
}
