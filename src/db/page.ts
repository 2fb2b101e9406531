import type { Sql } from './sql.ts';

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
 * Returns the instant of a position. Positions count microseconds, as Postgres does: with milliseconds, rows of the
 * same millisecond would be skipped or repeated.
 */
export function positionInstant(sql: Sql, microseconds: number) {
  return sql.fragment`timestamptz 'epoch' + ${microseconds}::bigint * interval '1 microsecond'`;
}
