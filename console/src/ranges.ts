import { formatDayOfMonth, formatMonth } from './format.ts';

const DAYS_OF_WEEK = 7;

/** Returns the local midnight that begins a day, `days` before the day of `now`, epoch ms. */
const dayBefore = (now: Date, days: number): number =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).getTime();

const weeksBefore = (now: Date, weeks: number): number =>
  dayBefore(now, ((now.getDay() + 6) % DAYS_OF_WEEK) + weeks * DAYS_OF_WEEK);

const monthsBefore = (now: Date, months: number): number =>
  new Date(now.getFullYear(), now.getMonth() - months, 1).getTime();

/** A range of whole bars of a chart: the first one begins with its local day, week (on Monday) or month. */
interface BarRange {
  readonly name: string;
  readonly interval: 'day' | 'week' | 'month';
  readonly from: (now: Date) => number;
  /** The name of the range of the same length before it. */
  readonly before: string;
  readonly beforeFrom: (now: Date) => number;
}

export const RANGES = {
  '7d': {
    name: 'Last 7 days',
    interval: 'day',
    from: (now) => dayBefore(now, 6),
    before: 'The 7 days before',
    beforeFrom: (now) => dayBefore(now, 13),
  },
  '30d': {
    name: 'Last 30 days',
    interval: 'day',
    from: (now) => dayBefore(now, 29),
    before: 'The 30 days before',
    beforeFrom: (now) => dayBefore(now, 59),
  },
  '90d': {
    name: 'Last 13 weeks',
    interval: 'week',
    from: (now) => weeksBefore(now, 12),
    before: 'The 13 weeks before',
    beforeFrom: (now) => weeksBefore(now, 25),
  },
  '12m': {
    name: 'Last 12 months',
    interval: 'month',
    from: (now) => monthsBefore(now, 11),
    before: 'The 12 months before',
    beforeFrom: (now) => monthsBefore(now, 23),
  },
} as const satisfies Readonly<Record<string, BarRange>>;

/** Returns the name of a bar: its first day, or its month. */
export const nameOfBar = (at: number, interval: string): string =>
  interval === 'month' ? formatMonth(at, 'short') : formatDayOfMonth(at);
