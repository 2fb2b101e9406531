import { MINUTE_MS } from '../domain/time.ts';
import type { Statements } from './sql.ts';

/**
 * How long after a change of terms it takes effect at the earliest, ms. The database refuses less than a minute after the commit, so
 * that no evaluation misses a version that was just committed. The rest is for the call itself.
 */
export const SOONEST_EFFECT_MS = 2 * MINUTE_MS;

/** The instant is too early: the change was not made. */
export interface TooEarly {
  readonly soonestAt: number;
}

/** Returns when a change takes effect, epoch ms by the clock of the database: at the wanted instant, or as soon as possible (null). */
export async function effectiveFrom(tx: Statements, wanted: number | null): Promise<number | TooEarly> {
  const { now } = await tx.one<{ now: number }>`select epoch_ms(now()) as now`;
  const soonestAt = now + SOONEST_EFFECT_MS;
  if (wanted === null) return soonestAt;
  return wanted < soonestAt ? { soonestAt } : wanted;
}

/** Whether a change was refused because it would take effect too early. */
export const isTooEarly = (outcome: object): outcome is TooEarly => 'soonestAt' in outcome;
