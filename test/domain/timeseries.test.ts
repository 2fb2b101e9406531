import { expect, test } from '@jest/globals';
import { HOUR_MS } from '../../src/domain/time.ts';
import { hasTooManyPoints, MAX_POINTS } from '../../src/domain/timeseries.ts';

const FROM = 1_790_000_000_000;

test.each([
  ['hour', 1.5 * HOUR_MS],
  ['day', 26 * HOUR_MS],
  ['week', 170 * HOUR_MS],
  ['month', 746 * HOUR_MS],
] as const)(
  'a thousand of the longest %ss fit into a response, and one millisecond more does not',
  (interval, ms) => {
    expect(MAX_POINTS).toBe(1_000);
    expect(hasTooManyPoints(FROM, FROM + MAX_POINTS * ms, interval)).toBe(false);
    expect(hasTooManyPoints(FROM, FROM + MAX_POINTS * ms + 1, interval)).toBe(true);
  },
);
