/** Spans in milliseconds. A day is always 24 hours: windows know neither time zones nor daylight saving time. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/**
 * The last millisecond of the year 9999, epoch ms: the latest instant that JavaScript and Postgres read the same way.
 */
export const LAST_INSTANT = 253_402_300_799_999;

/** How far the clock of a process and that of Postgres may differ, ms: `/readyz` says if they differ more. Some providers sign times that are exact to 5 s. */
export const MOST_SKEW_MS = 60_000;
