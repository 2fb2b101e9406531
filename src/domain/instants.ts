import { DAY_MS } from './time.ts';

/** 2001-01-01, epoch ms. An earlier instant in a request is most likely in seconds: as seconds, it is before the year 3000. */
export const FIRST_INSTANT = 978_307_200_000;

/** How far ahead an instant in a request may be. One that is further ahead is most likely in micro- or nanoseconds. */
const MAX_AHEAD_MS = 366 * DAY_MS;

/** Returns what is wrong with an instant that a caller sent, or null. 0 stands for the beginning, where `takesZero` is true. */
export function instantProblem(
  at: number,
  { now, takesZero }: { readonly now: number; readonly takesZero: boolean },
): string | null {
  if (at === 0 && takesZero) return null;
  if (at < FIRST_INSTANT) {
    return 'Looks like seconds: it is before 2001-01-01. Send epoch milliseconds, such as 1781524800000.';
  }
  if (at > now + MAX_AHEAD_MS) return 'Must be at most 366 days ahead. Send epoch milliseconds.';
  return null;
}
