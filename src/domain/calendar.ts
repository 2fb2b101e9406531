import { DAY_MS, HOUR_MS } from './time.ts';

const MONTHS_PER_YEAR = 12;
const DAYS_PER_ERA = 146_097;
const YEARS_PER_ERA = 400;

interface CivilDate {
  readonly year: number;
  /** 0 is January. */
  readonly month: number;
  /** 1 is the first. */
  readonly day: number;
}

/**
 * Returns the date of a day, counted from 1970-01-01, in the proleptic Gregorian calendar. Years begin in March here, so that the
 * leap day is the last one.
 */
function civilDate(day: number): CivilDate {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / DAYS_PER_ERA);
  const dayOfEra = shifted - era * DAYS_PER_ERA;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = (marchMonth + 2) % MONTHS_PER_YEAR;
  return {
    year: yearOfEra + era * YEARS_PER_ERA + (month < 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

/** Returns the number of a day, counted from 1970-01-01. */
function dayNumber({ year, month, day }: CivilDate): number {
  const marchYear = month < 2 ? year - 1 : year;
  const era = Math.floor(marchYear / YEARS_PER_ERA);
  const yearOfEra = marchYear - era * YEARS_PER_ERA;
  const marchMonth = (month + 10) % MONTHS_PER_YEAR;
  const dayOfYear = Math.floor((153 * marchMonth + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_PER_ERA + dayOfEra - 719_468;
}

const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const daysOfMonth = (year: number, month: number) =>
  month === 1 ? (isLeap(year) ? 29 : 28) : [3, 5, 8, 10].includes(month) ? 30 : 31;

/**
 * Adds calendar months to an instant, epoch ms, in UTC. Where the month has no such day, it is the last one: a month after
 * 31 January is 28 or 29 February. Postgres adds an interval of months in the same way.
 */
export function addMonths(at: number, months: number): number {
  const date = civilDate(Math.floor(at / DAY_MS));
  const total = date.year * MONTHS_PER_YEAR + date.month + months;
  const year = Math.floor(total / MONTHS_PER_YEAR);
  const month = total - year * MONTHS_PER_YEAR;
  const day = Math.min(date.day, daysOfMonth(year, month));
  return dayNumber({ year, month, day }) * DAY_MS + (at - Math.floor(at / DAY_MS) * DAY_MS);
}

/** Stores charge for the next month up to two days early. */
export const EARLY_CHARGE_MS = 48 * HOUR_MS;

/**
 * Returns how many whole months of a customer have passed at the time of a payment, both epoch ms: 0 for the first month. A payment
 * up to two days before the end of a month counts after it, because stores charge early. One before the first is in month 0.
 */
export function monthsSince(firstPaidAt: number, paidAt: number): number {
  const from = civilDate(Math.floor(firstPaidAt / DAY_MS));
  const to = civilDate(Math.floor((paidAt + EARLY_CHARGE_MS) / DAY_MS));
  const most = (to.year - from.year) * MONTHS_PER_YEAR + to.month - from.month;
  const months = addMonths(firstPaidAt, most) <= paidAt + EARLY_CHARGE_MS ? most : most - 1;
  return Math.max(0, months);
}
