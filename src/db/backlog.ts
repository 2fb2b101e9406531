import type { Sql } from './sql.ts';

/** Upper bound of the count. The exact number of a larger backlog is not needed. */
const COUNT_LIMIT = 10_000;

export interface Backlog {
  readonly unfinishedDeliveries: number;
  /** Age of the oldest one. 0 when there is none. */
  readonly oldestSeconds: number;
}

/** Returns the number and age of accepted deliveries without an outcome. */
export async function readBacklog(sql: Sql): Promise<Backlog> {
  return await sql.one<Backlog>`
    select count(*)::int as unfinished_deliveries,
           coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as oldest_seconds
      from (select received_at from deliveries where completed_at is null
             order by coalesce(relayed_at, received_at) limit ${COUNT_LIMIT}) d`;
}
