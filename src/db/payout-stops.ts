import type { Sql } from './sql.ts';

/**
 * Whether no payout can be added: the database was restored, promoted or copied since the operator last said that it knows
 * all payouts, or the operator stopped them. A trigger enforces it.
 */
export async function arePayoutsStopped(sql: Sql): Promise<boolean> {
  const { stopped } = await sql.one<{ stopped: boolean }>`
    select exists (select from installation where history <> database_history()) as stopped`;
  return stopped;
}

/** Stops payouts until `resumePayouts`. */
export async function stopPayouts(sql: Sql): Promise<void> {
  await sql`update installation set history = 'stopped'`;
}

/** Lets this database add payouts again. */
export async function resumePayouts(sql: Sql): Promise<void> {
  await sql`update installation set history = database_history()`;
}
