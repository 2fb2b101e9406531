import type { Sql } from './sql.ts';

/** Returns the time of the database, epoch ms. What is removed or due by stored times follows it: clocks of processes may be wrong. */
export async function databaseClock(sql: Sql): Promise<number> {
  return (await sql.one<{ now: number }>`select epoch_ms(now()) as now`).now;
}
