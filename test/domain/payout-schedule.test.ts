import { describe, expect, test } from '@jest/globals';
import { monthThatIsDue, nextRunDate } from '../../src/domain/payout-schedule.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { mondayOfReport } from '../../src/domain/weekly-report.ts';

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

describe('the month that a payout schedule is due for', () => {
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
