import type { Sql } from './sql.ts';

/**
 * What the background work does again and again without leaving anything that waits: evaluates alerts, converts payments whose rate has
 * arrived, drafts the runs of payout schedules, imports exchange rates, and writes the weekly reports.
 */
export const DUTIES = ['alerts', 'conversions', 'drafts', 'rates', 'reports'] as const;
export type Duty = (typeof DUTIES)[number];

/**
 * Whether a duty that goes through all apps is done with a page: it is the last one, and not every app of it failed. `after` is where the page
 * began, empty for the first one; `apps` is how many were tried. On a page that follows others, one app alone may be broken.
 */
export const isDutyDone = (
  after: string,
  { failed, next }: { readonly failed: number; readonly next: string | null },
  apps: number,
): boolean => next === null && (failed === 0 || failed < apps || (after !== '' && failed === 1));

/** Records that a duty was done now. */
export async function recordDuty(sql: Sql, duty: Duty): Promise<void> {
  await sql`
    insert into duties (duty, succeeded_at) values (${duty}, now())
    on conflict (duty) do update set succeeded_at = excluded.succeeded_at`;
}

/** Returns when each duty last succeeded, epoch ms. One that never did is missing. */
export async function readDuties(sql: Sql): Promise<ReadonlyMap<Duty, number>> {
  const rows = await sql<{ duty: Duty; succeededAt: number }>`select duty, succeeded_at from duties`;
  return new Map(rows.map(({ duty, succeededAt }) => [duty, succeededAt]));
}
