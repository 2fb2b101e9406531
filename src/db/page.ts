import type { Sql } from './sql.ts';

/** Where a row stands in its list: what the list is sorted by, then the id. */
export interface Position<K extends number | string> {
  readonly sortKey: K;
  readonly id: string;
}

/** One page of a list. `next` is where the page after it goes on, null when there is none. */
export interface Page<T, K extends number | string = number | string> {
  readonly rows: readonly T[];
  readonly next: Position<K> | null;
}

/** The page that `rows` make; the statement asked for one row more than `limit`. */
export function pageOf<K extends number | string, T extends Position<K>>(
  rows: readonly T[],
  limit: number,
): Page<T, K> {
  const last = rows[limit - 1];
  const next = rows.length > limit && last !== undefined ? { sortKey: last.sortKey, id: last.id } : null;
  return { rows: rows.slice(0, limit), next };
}

/**
 * The instant that a position names. Positions count microseconds, as Postgres does: with milliseconds, rows of the same
 * one would be skipped or come twice.
 */
export function positionInstant(sql: Sql, microseconds: number) {
  return sql.fragment`timestamptz 'epoch' + ${microseconds}::bigint * interval '1 microsecond'`;
}
