import { InvalidArgumentError } from 'commander';
import { LAST_INSTANT } from '../domain/time.ts';

/** Epoch milliseconds before 1973 are more likely epoch seconds. */
const FIRST_EPOCH_MS = 100_000_000_000;

/**
 * Parses an instant on the command line: epoch ms, or ISO 8601 with a time zone. A date without a time is midnight UTC.
 * Returns epoch ms. Throws `InvalidArgumentError`.
 */
export function parseInstant(text: string): number {
  const isEpochMs = /^\d{1,15}$/.test(text);
  const at = isEpochMs ? Number(text) : parseIsoInstant(text);
  if (isEpochMs && at < FIRST_EPOCH_MS) {
    throw new InvalidArgumentError('The value looks like epoch seconds. Use epoch milliseconds.');
  }
  if (!(at <= LAST_INSTANT)) {
    throw new InvalidArgumentError('Use 2026-01-31, 2026-01-31T12:00:00Z or epoch milliseconds.');
  }
  return at;
}

/** Returns NaN for a text that is not an instant. */
function parseIsoInstant(text: string): number {
  const [, day] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  if (day === undefined) return Number.NaN;
  // Date reads February 31 as a day in March.
  const midnight = new Date(day);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(text) : Number.NaN;
}
