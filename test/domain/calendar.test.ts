import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { addMonths, EARLY_CHARGE_MS, monthsSince } from '../../src/domain/calendar.ts';
import { DAY_MS, LAST_INSTANT } from '../../src/domain/time.ts';

const instants = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2400, 0, 1) });
const months = fc.integer({ min: 0, max: 2_400 });

/** The same instant, computed with the calendar of the runtime. */
function afterMonths(at: number, count: number): number {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + count];
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const midnight = Date.UTC(year, month, Math.min(date.getUTCDate(), lastDay));
  return midnight + (((at % DAY_MS) + DAY_MS) % DAY_MS);
}

// @promise policy-by-months
test('months are added as the calendar has them, at the end of a month to its last day', () => {
  fc.assert(fc.property(instants, months, (at, count) => addMonths(at, count) === afterMonths(at, count)));
});

test.each([
  ['2024-01-31T12:00:00Z', 1, '2024-02-29T12:00:00Z'],
  ['2023-01-31T12:00:00Z', 1, '2023-02-28T12:00:00Z'],
  ['2023-12-31T23:59:59Z', 2, '2024-02-29T23:59:59Z'],
  ['2000-02-29T00:00:00Z', 12, '2001-02-28T00:00:00Z'],
  ['1969-12-31T00:00:00Z', 1, '1970-01-31T00:00:00Z'],
  // Of the years that end a century, every fourth one has a leap day.
  ['2000-01-31T00:00:00Z', 1, '2000-02-29T00:00:00Z'],
  ['2100-01-31T00:00:00Z', 1, '2100-02-28T00:00:00Z'],
  ['2399-12-31T00:00:00Z', 2, '2400-02-29T00:00:00Z'],
  ['2099-12-31T00:00:00Z', 3, '2100-03-31T00:00:00Z'],
  ['2400-02-29T00:00:00Z', 1, '2400-03-29T00:00:00Z'],
])('%s and %i months are %s', (from, count, to) => {
  expect(addMonths(Date.parse(from), count)).toBe(Date.parse(to));
});

// @promise policy-by-months
test('a payment is in the month whose end it is more than two days before', () => {
  fc.assert(
    fc.property(instants, fc.integer({ min: 0, max: 20 * 366 * DAY_MS }), (first, later) => {
      const paidAt = first + later;
      const count = monthsSince(first, paidAt);
      expect(addMonths(first, count)).toBeLessThanOrEqual(paidAt + EARLY_CHARGE_MS);
      expect(addMonths(first, count + 1)).toBeGreaterThan(paidAt + EARLY_CHARGE_MS);
    }),
  );
});

test('a payment before the first one is in the first month', () => {
  expect(monthsSince(Date.UTC(2026, 5, 15), Date.UTC(2020, 0, 1))).toBe(0);
  expect(monthsSince(LAST_INSTANT, 0)).toBe(0);
});
