import { formatDate } from '../format.ts';
import { RANGES } from '../ranges.ts';

const DAY_MS = 86_400_000;
const DAYS_OF_WEEK = 7;
/** A year of whole weeks, so that each begins on the same day of the week. */
const WEEKS_OF_YEAR = 52;
/** The longest range that the service compares creators in, days. */
const MOST_DAYS = 400;
/** From more days on, a bar is a week. */
const MOST_BARS = 92;

/** What a range can be compared with. */
export const COMPARISONS = {
  before: { name: 'The period before' },
  year: { name: 'A year before' },
} as const;
export type Comparison = keyof typeof COMPARISONS;

/** A range of the overview, and what it is compared with. Instants are epoch ms. */
export interface Period {
  /** Names it among the answers that are kept. */
  readonly key: string;
  readonly name: string;
  readonly interval: 'day' | 'week' | 'month';
  readonly from: (now: Date) => number;
  /** The end, exclusive: now, unless the range has ended. */
  readonly to: (now: Date) => number;
  /** The name of what it is compared with, and its beginning. */
  readonly before: string;
  readonly beforeFrom: (now: Date) => number;
}

/** What is wrong with the two days of a range, by their fields. */
export interface DayProblems {
  readonly from?: string;
  readonly to?: string;
}

const daysLater = (at: number, days: number): number => {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime();
};

const yearBefore = (at: number, interval: Period['interval']): number => {
  if (interval === 'week') return daysLater(at, -WEEKS_OF_YEAR * DAYS_OF_WEEK);
  const day = new Date(at);
  return new Date(day.getFullYear() - 1, day.getMonth(), day.getDate()).getTime();
};

/** Returns midnight of a date such as 2026-01-31 in the time zone of the browser. Null for anything else. */
function midnight(date: string): number | null {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date) ?? [];
  if (day === undefined) return null;
  const at = new Date(Number(year), Number(month) - 1, Number(day)).getTime();
  return Number.isNaN(at) ? null : at;
}

const two = (number: number): string => String(number).padStart(2, '0');

/** Returns the date of an instant for a field: 2026-01-31. */
export function dayOf(at: number): string {
  const day = new Date(at);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

const compared = (period: Period, comparison: Comparison): Period =>
  comparison === 'before'
    ? period
    : {
        ...period,
        key: `${period.key} year`,
        before: 'A year before',
        beforeFrom: (now) => yearBefore(period.from(now), period.interval),
      };

/** Returns one of the ranges that end now. */
export function presetPeriod(key: keyof typeof RANGES, comparison: Comparison): Period {
  return compared({ ...RANGES[key], key, to: (now) => now.getTime() }, comparison);
}

/** Returns the range of two days, both inclusive, or what is wrong with them. */
export function periodOfDays(
  days: { readonly from: string; readonly to: string },
  comparison: Comparison,
  now: number = Date.now(),
): Period | DayProblems {
  const [first, last] = [midnight(days.from), midnight(days.to)];
  if (first === null || last === null)
    return {
      ...(first === null ? { from: 'Choose a day.' } : {}),
      ...(last === null ? { to: 'Choose a day.' } : {}),
    };
  if (first > now) return { from: 'This day has not begun.' };
  if (last < first) return { to: 'Choose a day that is not before the first one.' };
  const end = daysLater(last, 1);
  const count = Math.round((end - first) / DAY_MS);
  if (count > MOST_DAYS) return { to: `Choose at most ${MOST_DAYS} days.` };
  const interval = count > MOST_BARS ? 'week' : 'day';
  // Whole weeks, so that weeks begin at the same place of both.
  const shift = interval === 'week' ? Math.ceil(count / DAYS_OF_WEEK) * DAYS_OF_WEEK : count;
  return compared(
    {
      key: `${days.from} ${days.to}`,
      name: first === last ? formatDate(first) : `${formatDate(first)} to ${formatDate(last)}`,
      interval,
      from: () => first,
      to: (at) => Math.min(at.getTime(), end),
      before: count === 1 ? 'The day before' : `The ${shift} days before`,
      beforeFrom: () => daysLater(first, -shift),
    },
    comparison,
  );
}

export const isPeriod = (found: Period | DayProblems): found is Period => 'key' in found;
