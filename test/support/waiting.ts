import type { Sql } from '../../src/db/sql.ts';
import { eventually } from './eventually.ts';

/**
 * Returns how many statements of a database wait for a lock. The databases of other test files are on the same server and do
 * not count.
 */
export async function countWaiting(sql: Sql): Promise<number> {
  const waiting = await sql`
    select from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`;
  return waiting.length;
}

/** Waits until at least `count` statements do. */
export async function untilWaiting(sql: Sql, count = 1): Promise<void> {
  await eventually(`${count} of them wait`, async () => (await countWaiting(sql)) >= count);
}
