import { DAY_MS, HOUR_MS } from './time.ts';

/** When reports are written, after the begin of a Monday (UTC), ms. */
const REPORT_AT_MS = 8 * HOUR_MS;
/** The epoch began on a Thursday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
export const WEEK_MS = 7 * DAY_MS;

/** Returns the begin of the latest Monday (UTC) whose reports are due at `now`, from 08:00 on. Epoch ms. */
export function mondayOfReport(now: number): number {
  return Math.floor((now - REPORT_AT_MS - FIRST_MONDAY_MS) / WEEK_MS) * WEEK_MS + FIRST_MONDAY_MS;
}

/** When the reports of a Monday are due, epoch ms. */
export const reportDueAt = (monday: number): number => monday + REPORT_AT_MS;
