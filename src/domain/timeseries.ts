import { HOUR_MS } from './time.ts';

export const TIMESERIES_INTERVALS = ['hour', 'day', 'week', 'month'] as const;
export type TimeseriesInterval = (typeof TIMESERIES_INTERVALS)[number];

/** Maximum number of points in one response. */
export const MAX_POINTS = 1_000;

/** Upper bounds for the length of an interval in any time zone, including a change to standard time. */
const LONGEST_MS: Readonly<Record<TimeseriesInterval, number>> = {
  hour: 1.5 * HOUR_MS,
  day: 26 * HOUR_MS,
  week: (7 * 24 + 2) * HOUR_MS,
  month: (31 * 24 + 2) * HOUR_MS,
};

/**
 * Whether a span has too many points in every time zone. If it returns false there may still be too many: that depends
 * on the time zone.
 */
export function hasTooManyPoints(from: number, to: number, interval: TimeseriesInterval): boolean {
  return (to - from) / LONGEST_MS[interval] > MAX_POINTS;
}
