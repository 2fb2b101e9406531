import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { monthThatIsDue, nextRunDate } from '../../src/domain/payout-schedule.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { mondayOfReport, reportDueAt } from '../../src/domain/weekly-report.ts';
import { cases } from '../support/rounds.ts';

const LONG_AGO = Date.UTC(2020, 0, 1);
const at = (text: string) => Date.parse(text);

test.each([
  ['this month, before the day', 'UTC', 15, '2026-11-14T23:59:59.999Z', '2026-11-15'],
  ['today, on the day', 'UTC', 15, '2026-11-15T23:59:59.999Z', '2026-11-15'],
  ['next month, after the day', 'UTC', 15, '2026-11-16T00:00:00Z', '2026-12-15'],
  ['next year, after the day in December', 'UTC', 1, '2026-12-02T00:00:00Z', '2027-01-01'],
  ['by the wall clock ahead of UTC', 'Pacific/Kiritimati', 1, '2026-10-31T10:00:00Z', '2026-11-01'],
  ['by the wall clock behind UTC', 'Pacific/Niue', 1, '2026-11-02T10:59:59Z', '2026-11-01'],
  ['in February', 'UTC', 28, '2027-01-29T00:00:00Z', '2027-02-28'],
])('the next run is %s in %s with day %i at %s', (_, timezone, day, now, date) => {
  expect(nextRunDate({ day, timezone }, at(now))).toBe(date);
});

test.each([
  ['on the day', '2026-11-15T12:00:00Z', '2026-12-15'],
  ['before it, as when the day was changed', '2026-11-03T12:00:00Z', '2026-12-15'],
  ['after it', '2026-11-20T12:00:00Z', '2026-12-15'],
  ['at the end of a year', '2026-12-15T12:00:00Z', '2027-01-15'],
])('the next run is next month where that of this month is over: %s', (_, now, date) => {
  expect(nextRunDate({ day: 15, timezone: 'UTC' }, at(now), true)).toBe(date);
});

/** The date of an instant in UTC, such as `2026-11-15`. */
const dateOf = (instant: number) => new Date(instant).toISOString().slice(0, 10);
const instants = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 11, 31) });
const days = fc.integer({ min: 1, max: 28 });

/** Returns the date of the first instant, in steps of a day from `start`, that is the nth of a month. */
function nearest(start: number, day: number, stepMs: number): string {
  let instant = start;
  while (new Date(instant).getUTCDate() !== day) instant += stepMs;
  return dateOf(instant);
}

test('the next run is on the first such day from today on, and the last one that is due on the last such day up to today', () => {
  fc.assert(
    fc.property(instants, instants, days, (since, now, day) => {
      const schedule = { day, timezone: 'UTC' };
      expect(nextRunDate(schedule, now)).toBe(nearest(now, day, DAY_MS));
      const due = nearest(now, day, -DAY_MS);
      expect(monthThatIsDue(schedule, since, now)).toBe(due < dateOf(since) ? null : due.slice(0, 7));
    }),
    cases(500, 5_000),
  );
});

describe('the month that a payout schedule is due for', () => {
  // A schedule is made on one day, and asked on another one.
  test.each([
    ['on the day', 15, '2026-11-15', '2026-11-15', '2026-11'],
    ['the day after', 15, '2026-11-16', '2026-12-14', null],
    ['at the end of the month before', 1, '2026-10-31', '2026-11-01', '2026-11'],
    ['at the end of the year before', 1, '2026-12-31', '2027-01-01', '2027-01'],
    ['in the year before, later in the year', 1, '2025-12-31', '2026-01-01', '2026-01'],
    ['after the last day of a year', 28, '2026-12-29', '2027-01-27', null],
    ['on the last day of a year', 28, '2026-12-28', '2027-01-27', '2026-12'],
  ])('of a schedule that is made %s: day %i, made on %s, asked on %s', (_, day, made, asked, month) => {
    expect(monthThatIsDue({ day, timezone: 'UTC' }, at(made), at(asked))).toBe(month);
  });

  test.each([
    ['before the day', 'UTC', 15, '2026-11-14T23:59:59.999Z', '2026-10'],
    ['from the begin of the day on', 'UTC', 15, '2026-11-15T00:00:00Z', '2026-11'],
    ['until the day of the next month', 'UTC', 15, '2026-12-14T23:59:59.999Z', '2026-11'],
    ['over the end of a year', 'UTC', 28, '2027-01-27T12:00:00Z', '2026-12'],
    ['on the first day of a year', 'UTC', 1, '2027-01-01T00:00:00Z', '2027-01'],
    ['on 28 February', 'UTC', 28, '2027-02-28T00:00:00Z', '2027-02'],
    ['on 29 February', 'UTC', 1, '2028-02-29T12:00:00Z', '2028-02'],
    ['ahead of UTC', 'Pacific/Kiritimati', 1, '2026-10-31T10:00:00Z', '2026-11'],
    ['behind UTC', 'Pacific/Niue', 1, '2026-11-01T10:59:59Z', '2026-10'],
    ['behind UTC, from its own midnight on', 'Pacific/Niue', 1, '2026-11-01T11:00:00Z', '2026-11'],
    // The clock is put back at 03:00, and the day has 25 hours.
    ['on the day on which summer time ends', 'Europe/Berlin', 25, '2026-10-24T21:59:59Z', '2026-09'],
    ['on the day on which summer time ends', 'Europe/Berlin', 25, '2026-10-24T22:00:00Z', '2026-10'],
    // Midnight is skipped: the day begins at 01:00.
    ['where midnight is skipped', 'America/Santiago', 6, '2026-09-06T03:59:59Z', '2026-08'],
    ['where midnight is skipped', 'America/Santiago', 6, '2026-09-06T04:00:00Z', '2026-09'],
  ])('%s in %s with day %i at %s', (_, timezone, day, now, month) => {
    expect(monthThatIsDue({ day, timezone }, LONG_AGO, at(now))).toBe(month);
  });

  test('is due for a month only once, at whatever minute it is asked, over three years and changes of the clock', () => {
    for (const timezone of [
      'UTC',
      'Europe/Berlin',
      'America/New_York',
      'America/Santiago',
      'Asia/Kathmandu',
    ]) {
      for (const day of [1, 6, 25, 28]) {
        const months: string[] = [];
        for (let now = Date.UTC(2026, 0, 1); now < Date.UTC(2029, 0, 1); now += 6 * HOUR_MS + 7 * MINUTE_MS) {
          const month = monthThatIsDue({ day, timezone }, LONG_AGO, now);
          if (month !== null && month !== months.at(-1)) months.push(month);
        }
        expect(months).toEqual([...new Set(months)].toSorted());
        expect(months.length).toBeGreaterThanOrEqual(36);
      }
    }
  });

  test('begins with the day on which the schedule is made, and not before', () => {
    const schedule = { day: 15, timezone: 'Europe/Berlin' };
    const made = (text: string) => monthThatIsDue(schedule, at(text), at('2026-11-20T12:00:00Z'));
    expect(made('2026-11-15T00:30:00Z')).toBe('2026-11');
    expect(made('2026-11-15T22:30:00Z')).toBe('2026-11');
    // By the clock of Berlin, that is on the 16th.
    expect(made('2026-11-15T23:30:00Z')).toBeNull();
  });
});

test.each([
  ['2026-11-23T07:59:59.999Z', '2026-11-16'],
  ['2026-11-23T08:00:00Z', '2026-11-23'],
  ['2026-11-30T07:59:59Z', '2026-11-23'],
  ['2027-01-01T00:00:00Z', '2026-12-28'],
])('the latest report at %s is that of Monday %s', (now, monday) => {
  expect(new Date(mondayOfReport(at(now))).toISOString().slice(0, 10)).toBe(monday);
});

test('the reports of a Monday are due at eight o’clock (UTC) of that day, and are its reports from then on', () => {
  const due = reportDueAt(at('2026-11-23T00:00:00Z'));
  expect(new Date(due).toISOString()).toBe('2026-11-23T08:00:00.000Z');
  expect(reportDueAt(mondayOfReport(due))).toBe(due);
});
