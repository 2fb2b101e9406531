import { HOUR_MS } from './time.ts';

export const TIMESERIES_INTERVALS = ['hour', 'day', 'week', 'month'] as const;
export type TimeseriesInterval = (typeof TIMESERIES_INTERVALS)[number];

/** How many points one answer has at most. */
export const MAX_POINTS = 1_000;

/** No hour, day, week or month is longer, wherever clocks are put back. */
const LONGEST_MS: Readonly<Record<TimeseriesInterval, number>> = {
  hour: 1.5 * HOUR_MS,
  day: 26 * HOUR_MS,
  week: (7 * 24 + 2) * HOUR_MS,
  month: (31 * 24 + 2) * HOUR_MS,
};

/**
 * Whether a span has more points than an answer may have, whatever its time zone. Where this says no there may still be
 * too many: only the time zone knows.
 */
export function hasTooManyPoints(from: number, to: number, interval: TimeseriesInterval): boolean {
  return (to - from) / LONGEST_MS[interval] > MAX_POINTS;
}
