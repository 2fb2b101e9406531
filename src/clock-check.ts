import type { Logger } from 'pino';
import type { Sql } from './db/sql.ts';
import { MOST_SKEW_MS } from './domain/time.ts';

/** How often Postgres is asked. */
const PAUSE_MS = 10_000;
/** A clock that differs more from the time since the last question was set meanwhile, ms. */
const SET_MS = 1_000;

export interface ClockCheckDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** The clock of the process, epoch ms. */
  readonly now: () => number;
}

/** Returns how far `now` is from an instant that lies between `before` and `after` on the same clock, at least. */
function differenceMs(theirs: number, before: number, after: number): number {
  if (theirs > after) return theirs - after;
  return theirs < before ? theirs - before : 0;
}

/**
 * Returns a check of whether the clock of this process agrees with that of Postgres. The check returns what is wrong, for
 * the operator, or null. It queries the database at most every 10 s, unless the clock was set meanwhile. It throws when the database is unavailable.
 */
export function createClockCheck({ sql, logger, now }: ClockCheckDeps): () => Promise<string | null> {
  let last: { readonly at: number; readonly clock: number; readonly problem: string | null } | null = null;

  return async () => {
    const before = now();
    if (last !== null) {
      const passed = performance.now() - last.at;
      if (passed < PAUSE_MS && Math.abs(before - last.clock - passed) < SET_MS) return last.problem;
    }
    const { at: theirs } = await sql.one<{ at: number }>`select clock_timestamp() as at`;
    const seconds = Math.round(differenceMs(theirs, before, now()) / 1_000);
    const side = seconds > 0 ? 'behind' : 'ahead of';
    const problem =
      Math.abs(seconds) * 1_000 <= MOST_SKEW_MS
        ? null
        : `the clock of this process is ${Math.abs(seconds)} s ${side} that of Postgres: synchronize the clocks of both machines`;
    if (problem !== null && last?.problem !== problem) logger.error({ msg: problem });
    last = { at: performance.now(), clock: now(), problem };
    return problem;
  };
}
