import * as z from 'zod';
import { isId } from '../../domain/ids.ts';
import type { IdKind } from '../../domain/ids.ts';

/** The last millisecond of the year 9999: what both JavaScript and Postgres read the same way. */
const LAST_INSTANT = 253_402_300_799_999;

/** An instant in a body. */
export const epochMs = z.int().min(0).max(LAST_INSTANT).describe('epoch milliseconds');

/** An instant in a query. */
export const epochMsText = z
  .string()
  .regex(/^\d{1,15}$/, 'Must be epoch milliseconds.')
  .transform(Number)
  .refine((at) => at <= LAST_INSTANT, 'Must be epoch milliseconds.');

/** Money in an answer. */
export const cents = z.int().describe('USD cents');

/** A count in an answer. */
export const count = z.int().min(0);

export const rateBps = z.int().min(0).max(10_000).describe('basis points');

/** A name as people read it: trimmed, and on one line. */
export const label = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .regex(/^\P{Cc}*$/u, 'Must not contain control characters.');

/** A caller's own string of a device. */
export const deviceId = z
  .string()
  .min(1)
  .max(200)
  .regex(/^\P{Cc}*$/u, 'Must not contain control characters.');

/** The longest user id in bytes that fits an index together with a device id. */
const USER_ID_BYTES = 1_700;

/** A caller's own string of a user: the one that the billing provider reports. */
export const customerUserId = z
  .string()
  .min(1)
  .max(512)
  .regex(/^\P{Cc}*$/u, 'Must not contain control characters.')
  .refine(
    (text) => Buffer.byteLength(text) <= USER_ID_BYTES,
    `Must not be longer than ${USER_ID_BYTES} bytes.`,
  );

/** How long an old key or secret stays valid beside the new one. */
export const graceSeconds = z
  .int()
  .min(0)
  .max(30 * 86_400);

/** `limit` of a list. */
const limit = z
  .string()
  .regex(/^\d{1,4}$/, 'Must be a whole number from 1 to 100.')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'Must be a whole number from 1 to 100.')
  .default(50);

/** What every list takes. */
export const pageQuery = { limit, cursor: z.string().max(2_000).optional() };

/** `true` or `false` in a query. */
export const booleanText = z.enum(['true', 'false']).transform((text) => text === 'true');

/** The answer of a list. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}

/** An id in an answer or in a filter. */
export const anyId = z.string();

/**
 * An id that a filter names, or one that nothing has: a malformed id selects as little as an unknown one. Null for no
 * filter.
 */
export function filterId<K extends IdKind>(kind: K, text: string | undefined) {
  if (text === undefined) return null;
  return isId(kind, text) ? text : ('none' as const);
}

/** A list in which nothing is. */
export const EMPTY_PAGE = { items: [], nextCursor: null };
