/**
 * Returns the epoch milliseconds of a text: epoch milliseconds, or ISO 8601 with an offset, such as `2026-01-31T12:00:00Z`.
 * A date without a time is midnight UTC. Returns NaN for any other text.
 */
export function parseInstant(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : parseIsoInstant(text);
}

function parseIsoInstant(text: string): number {
  const [, day] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  if (day === undefined) return Number.NaN;
  // Date reads February 31 as a day in March.
  const midnight = new Date(day);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(text) : Number.NaN;
}
