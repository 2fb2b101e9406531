import { createHash } from 'node:crypto';
import * as z from 'zod';
import { PAGE_EXAMINES } from '../db/page.ts';
import type { Page, Position } from '../db/page.ts';
import { LAST_INSTANT } from '../domain/time.ts';
import { ApiError } from './errors.ts';
import { describedAs } from './fields.ts';

const CURSOR_EXAMPLE = 'WzE3ODE1MjQ4MDAwMDAsImFmZl8wMWtiIiwiWmF2Il0';

/** The number of rows of a page without `limit`. */
export const DEFAULT_LIMIT = 50;

const limit = z
  .string()
  .regex(/^\d{1,4}$/, 'Must be a whole number from 1 to 100.')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'Must be a whole number from 1 to 100.');
const describedLimit = {
  type: 'integer',
  minimum: 1,
  maximum: 100,
  description: 'The number of rows per page.',
};

/** The query parameter `limit` of a list that has no pages without it. */
export const optionalLimit = limit.optional().meta(describedAs({ ...describedLimit, examples: [50] }));

/** The query parameters of every list. */
export const pageQuery = {
  limit: limit.default(DEFAULT_LIMIT).meta(describedAs({ ...describedLimit, default: DEFAULT_LIMIT })),
  cursor: z
    .string()
    .max(2_000)
    .meta({
      description: '`nextCursor` of the previous page.',
      pattern: '^[A-Za-z0-9_-]*$',
      examples: [CURSOR_EXAMPLE],
    })
    .optional(),
};

/** The response of a list. Named after its items. */
export function pageSchema<T extends z.ZodType>(item: T) {
  const id = z.globalRegistry.get(item)?.id;
  const page = z.object({
    items: z.array(item).describe('The rows of the page.'),
    nextCursor: z
      .string()
      .nullable()
      .meta({
        description: 'Pass it as `cursor` to get the next page. Null on the last page.',
        examples: [CURSOR_EXAMPLE],
      }),
  });
  return page.meta({
    ...(id === undefined ? {} : { id: `${id}Page` }),
    description: 'One page of the list.',
  });
}

/** Describes lists with combinations of filters that no index covers. */
export const MAY_BE_SHORT =
  `Some combinations of filters have no index. A page then examines at most ${PAGE_EXAMINES} rows and may have fewer than ` +
  '`limit`, even none. Read on until `nextCursor` is null.';

/** A list without rows. */
export const EMPTY_PAGE = { items: [], nextCursor: null };

/** The list that a cursor belongs to: its name, its app, and the filters that select its rows. */
export interface ListKey {
  readonly list: string;
  readonly appId: string;
  readonly filters: Readonly<Record<string, string | number | boolean | null>>;
}

/** The sort key of a list by time: microseconds since 1970. */
export const timeKey = z.int().min(0);

/** The sort key of a list by time, in epoch milliseconds. */
export const millisKey = z.int().min(0).max(LAST_INSTANT);

/** The largest number of a column of the type `integer`. */
const MAX_INTEGER = 2_147_483_647;

/** The sort key of a list by a position or a version, which is an `integer` in the database. */
export const integerKey = z.int().min(0).max(MAX_INTEGER);

/** The sort key of a list by an amount, cents. It may be negative. */
export const centsKey = z.string().regex(/^-?\d{1,18}$/);

/** The sort key of a list by name. */
export const nameKey = z.string().regex(/^[^\0]{0,1000}$/);

const rowId = z.string().regex(/^[a-z]{3,4}_[0-7][0-9a-hjkmnp-tv-z]{25}$/);

/**
 * Returns the filters that are set, for those that a list got after its first release: without them, a cursor of that release
 * stays valid.
 */
export function givenFilters<T extends object>(filters: T): Partial<T> {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== null)) as Partial<T>;
}

function checksum(key: ListKey, position: readonly (string | number)[]): string {
  const filters = Object.entries(key.filters).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([key.list, key.appId, filters, position]))
    .digest('base64url')
    .slice(0, 16);
}

/** Returns the cursor of a position. It holds no secret; its checksum detects cursors that are damaged or of another list. */
export function encodeCursor(key: ListKey, { sortKey, id }: Position<string | number>): string {
  const position = [sortKey, id];
  return Buffer.from(JSON.stringify([...position, checksum(key, position)])).toString('base64url');
}

/** Returns the position of a cursor, or null if there is no cursor. Throws 400 if it does not belong to the list. */
export function decodeCursor<K extends string | number>(
  key: ListKey,
  sortKey: z.ZodType<K>,
  cursor: string | undefined,
): Position<K> | null {
  if (cursor === undefined) return null;
  const parsed = z.tuple([sortKey, rowId, z.string()]).safeParse(parseJson(cursor));
  if (parsed.success) {
    const [position, id, sum] = parsed.data;
    if (sum === checksum(key, [position, id])) return { sortKey: position, id };
  }
  throw new ApiError('invalid_cursor', {
    detail:
      'The cursor is damaged or belongs to another list or other filters. Start again without a cursor.',
  });
}

function parseJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Returns the response of a list: its presented rows, and the cursor of the next page. */
export function presentPage<T, P>(
  key: ListKey,
  page: Page<T>,
  present: (row: T) => P,
): { items: P[]; nextCursor: string | null } {
  return {
    items: page.rows.map((row) => present(row)),
    nextCursor: page.next === null ? null : encodeCursor(key, page.next),
  };
}
