import * as z from 'zod';
import { ID_PREFIXES, isId } from '../../domain/ids.ts';
import type { IdKind } from '../../domain/ids.ts';
import { LAST_INSTANT } from '../../domain/time.ts';

/** How a text of a query is described by what it means: a number is a number there, too. */
function describedAs(schema: object) {
  return {
    override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
      for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
      Object.assign(jsonSchema, schema);
    },
  };
}

/** An instant in a body. */
export const epochMs = z
  .int()
  .min(0)
  .max(LAST_INSTANT)
  .meta({ description: 'epoch milliseconds', examples: [1_781_524_800_000] });

/** An instant in a query. */
function epochMsText(example: number, description: string) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'Must be epoch milliseconds.')
    .transform(Number)
    .refine((at) => at <= LAST_INSTANT, 'Must be epoch milliseconds.')
    .meta(
      describedAs({
        type: 'integer',
        minimum: 0,
        maximum: LAST_INSTANT,
        description: `${description}, epoch milliseconds`,
        examples: [example],
      }),
    );
}

/** Two instants in a query: the first is included, the second is not. */
export const fromTo = (from: string, to: string) => ({
  from: epochMsText(1_780_315_200_000, from).optional(),
  to: epochMsText(1_781_524_800_000, to).optional(),
});

/** Money in an answer. */
export const cents = z.int().meta({ description: 'USD cents', examples: [1999] });

/** A count in an answer. */
export const count = z
  .int()
  .min(0)
  .meta({ examples: [42] });

export const rateBps = z
  .int()
  .min(0)
  .max(10_000)
  .meta({ description: 'basis points: 2000 is 20 %', examples: [2000] });

/** Text without control characters. The pattern is described in a form that every reader of JSON schema knows. */
function onOneLine(text: z.ZodString): z.ZodString {
  return text
    .regex(/^\P{Cc}*$/u, 'Must not contain control characters.')
    .meta({ override: { pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' } });
}

/** A name as people read it: trimmed, and on one line. */
export const label = onOneLine(z.string().trim().min(1).max(200));

/** A caller's own string of a device. */
export const deviceId = onOneLine(z.string().min(1).max(200)).meta({
  description: 'made by the app, the same for the life of an install',
  examples: ['9f0c2d1e-device'],
});

/** The longest user id in bytes that fits an index together with a device id. */
const USER_ID_BYTES = 1_700;

/** A caller's own string of a user: the one that the billing provider reports. */
export const customerUserId = onOneLine(z.string().min(1).max(512))
  .refine(
    (text) => Buffer.byteLength(text) <= USER_ID_BYTES,
    `Must not be longer than ${USER_ID_BYTES} bytes.`,
  )
  .meta({ description: 'the very string that the billing provider reports', examples: ['user-4711'] });

/** How long an old key or secret stays valid beside the new one. */
export const graceSeconds = z
  .int()
  .min(0)
  .max(30 * 86_400)
  .meta({ description: 'how long the one before stays valid, seconds; a day by default', examples: [3600] });

/** `limit` of a list. */
const limit = z
  .string()
  .regex(/^\d{1,4}$/, 'Must be a whole number from 1 to 100.')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'Must be a whole number from 1 to 100.')
  .default(50)
  .meta(
    describedAs({ type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'rows of a page' }),
  );

const CURSOR_EXAMPLE = 'WzE3ODE1MjQ4MDAwMDAsImFmZl8wMWtiIiwiWmF2Il0';

/** What every list takes. */
export const pageQuery = {
  limit,
  cursor: z
    .string()
    .max(2_000)
    .meta({
      description: '`nextCursor` of the page before',
      pattern: '^[A-Za-z0-9_-]*$',
      examples: [CURSOR_EXAMPLE],
    })
    .optional(),
};

/** `true` or `false` in a query. */
export const booleanText = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .meta(describedAs({ type: 'boolean' }));

/** The answer of a list. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    nextCursor: z
      .string()
      .nullable()
      .meta({
        description: 'pass it as `cursor` for the next page; null on the last one',
        examples: [CURSOR_EXAMPLE],
      }),
  });
}

/** The body of a bulk call. */
export function bulkOf<T extends z.ZodType>(row: T) {
  return z.strictObject({ rows: z.array(row).min(1).max(100) });
}

/** The answer of a bulk call: each row is in one of the two lists. */
export function bulkAnswer<T extends z.ZodType>(item: T, codes: readonly string[]) {
  return z.object({
    created: z.array(item),
    failed: z.array(
      z.object({
        index: z
          .int()
          .min(0)
          .meta({ description: 'of the row in `rows`', examples: [3] }),
        code: codes.length === 0 ? z.never() : z.enum(codes),
        message: z.string().meta({ examples: ['Another link of this app has that slug.'] }),
      }),
    ),
  });
}

/** The part of an id after its prefix, for examples. */
const EXAMPLE_BODY = '01kbf2z4x8e0rvq1n3m5t7w9yc';

/** An id of that kind, as an example. */
export function exampleId(kind: IdKind): string {
  return `${ID_PREFIXES[kind]}_${EXAMPLE_BODY}`;
}

/** An id in an answer. */
export function idOf(kind: IdKind) {
  return z
    .string()
    .regex(new RegExp(`^${ID_PREFIXES[kind]}_[0-7][0-9a-hjkmnp-tv-z]{25}$`))
    .meta({ examples: [exampleId(kind)] });
}

/** An id that a caller names; a malformed one is one that nobody has. */
export function givenId(kind: IdKind) {
  return z.string().meta({
    description: `id of ${kind === 'affiliate' || kind === 'app' ? 'an' : 'a'} ${kind}`,
    examples: [exampleId(kind)],
  });
}

/** The caller's own text in an answer. */
export function textLike(example: string, description?: string) {
  return z.string().meta({ examples: [example], ...(description === undefined ? {} : { description }) });
}

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
