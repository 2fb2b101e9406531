import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { Page, Position } from '../db/page.ts';
import { ApiError } from './errors.ts';

/** Which list a cursor walks: its name, its app, and the filters that decide what is in it. */
export interface ListKey {
  readonly list: string;
  readonly appId: string;
  readonly filters: Readonly<Record<string, string | number | boolean | null>>;
}

const id = z.string().regex(/^[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}$/);

/** What positions of a list sorted by time look like: whole microseconds since 1970. */
export const timeKey = z.int().min(0);

/** The same in milliseconds, up to the year 9999. */
export const millisKey = z.int().min(0).max(253_402_300_799_999);

/** What positions of a list sorted by name look like. */
export const nameKey = z.string().regex(/^[^\0]{0,1000}$/);

function check(key: ListKey, position: readonly (string | number)[]): string {
  const filters = Object.entries(key.filters).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([key.list, key.appId, filters, position]))
    .digest('base64url')
    .slice(0, 16);
}

/** A position as callers get it. It holds no secret; the check only tells damaged and foreign cursors from good ones. */
export function encodeCursor(key: ListKey, { sortKey, id: rowId }: Position<string | number>): string {
  const position = [sortKey, rowId];
  return Buffer.from(JSON.stringify([...position, check(key, position)])).toString('base64url');
}

/** The position that a cursor of this list names, null for none. Anything else is a 400. */
export function decodeCursor<K extends string | number>(
  key: ListKey,
  sortKey: z.ZodType<K>,
  cursor: string | undefined,
): Position<K> | null {
  if (cursor === undefined) return null;
  const parsed = z.tuple([sortKey, id, z.string()]).safeParse(parseJson(cursor));
  if (parsed.success) {
    const [key_, rowId, sum] = parsed.data;
    if (sum === check(key, [key_, rowId])) return { sortKey: key_, id: rowId };
  }
  throw new ApiError('invalid_cursor', {
    detail: 'Pass the nextCursor of the same list with the same filters.',
  });
}

function parseJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The answer of a list: the rows as they leave, and the cursor of the next page. */
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
