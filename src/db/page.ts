import type { Fragment, Sql } from './sql.ts';

/** The position of a row in its list: the sort key, then the id. */
export interface Position<K extends number | string> {
  readonly sortKey: K;
  readonly id: string;
}

/** One page of a list. The next page continues after `next`, which is null on the last page. */
export interface Page<T, K extends number | string = number | string> {
  readonly rows: readonly T[];
  readonly next: Position<K> | null;
}

/** Builds a page from `rows`. The statement must have read one row more than `limit`. */
export function pageOf<K extends number | string, T extends Position<K>>(
  rows: readonly T[],
  limit: number,
): Page<T, K> {
  const last = rows[limit - 1];
  const next = rows.length > limit && last !== undefined ? { sortKey: last.sortKey, id: last.id } : null;
  return { rows: rows.slice(0, limit), next };
}

/**
 * Number of rows that a page examines at most. Some combinations of filters have no index: their page then has fewer rows
 * than its limit, possibly none, and the next page continues after the last examined row.
 */
export const PAGE_EXAMINES = 4_000;

/** A row of a statement that examines rows in order: it matches the filters, or it is the last one examined, or both. */
export interface Examined {
  readonly isMatch: boolean;
  /** The number of rows examined up to this one. */
  readonly examined: number;
}

/**
 * Returns the rows that match of a walk, which numbers its rows by `examined`, and the last one if `examines` were examined: what
 * `pageOfExamined` builds a page from. Without a condition all match. `order` is that of the walk, by columns of it: by another one, even
 * by `examined`, Postgres examines all before it returns the first.
 */
export function matchesOf(
  sql: Sql,
  walk: Fragment,
  condition: Fragment | null,
  order: Fragment,
  { limit, examines }: { readonly limit: number; readonly examines: number },
): Fragment {
  return sql.fragment`
    select * from (select *, (${condition ?? sql.fragment`true`}) as is_match from ${walk}) m
     where m.is_match or m.examined = ${examines}
     order by ${order} limit ${limit + 1}`;
}

/**
 * Builds a page from rows that match, and the last examined row if `examines` rows were examined. The statement must have
 * read one row more than `limit`.
 */
export function pageOfExamined<K extends number | string, T extends Position<K> & Examined>(
  rows: readonly T[],
  limit: number,
  examines: number,
): Page<T, K> {
  const last = rows.at(-1);
  if (rows.length > limit || last?.examined !== examines) return pageOf(rows, limit);
  return { rows: rows.filter((row) => row.isMatch), next: { sortKey: last.sortKey, id: last.id } };
}

/**
 * Returns the instant of a position. Positions count microseconds, as Postgres does: with milliseconds, rows of the
 * same millisecond would be skipped or repeated.
 */
export function positionInstant(sql: Sql, microseconds: number) {
  return sql.fragment`timestamptz 'epoch' + ${microseconds}::bigint * interval '1 microsecond'`;
}

/** A condition for the rows of a list, the latest first, that come after a position. Empty for the first page. */
export function createdBefore(sql: Sql, after: Position<number> | null): Fragment {
  return after === null
    ? sql.fragment``
    : sql.fragment`and (created_at, id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
}
