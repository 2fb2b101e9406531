const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });

/** The time zone of all times on the pages. */
export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const formatInstant = (epochMs: number): string => dateTime.format(epochMs);

/** Returns the date of an instant in the time zone of the pages. */
export const formatDate = (epochMs: number): string => day.format(epochMs);

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** Returns how long ago or ahead an instant is: "3 hours ago". */
export function formatAgo(epochMs: number, now = Date.now()): string {
  const distance = epochMs - now;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(distance) >= length) ?? ['second', 0];
  return size === 0
    ? distance > 0
      ? 'in a moment'
      : 'just now'
    : relative.format(Math.round(distance / size), unit);
}

/** Returns whole minor units of a currency as a decimal number, without a step through fractions that are not exact. */
function decimalText(minor: number, digits: number): `${number}` {
  const text = String(Math.abs(minor)).padStart(digits + 1, '0');
  const sign = minor < 0 ? '-' : '';
  const decimal = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
  return `${sign}${decimal}` as `${number}`;
}

/** Returns an amount in whole minor units of a currency: "$9.99", "¥500", "KWD 1.250". */
export function formatMoney(minor: number, currency = 'USD'): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
  return format.format(decimalText(minor, format.resolvedOptions().maximumFractionDigits ?? 2));
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/Edg\//, 'Edge'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Mac OS X/, 'macOS'],
  [/Windows/, 'Windows'],
  [/Linux/, 'Linux'],
];

/** Returns the browser that a User-Agent names, in words: "Firefox on Linux". */
export function formatBrowser(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown browser';
  const [, browser = 'A browser'] = BROWSERS.find(([pattern]) => pattern.test(userAgent)) ?? [];
  const [, system] = SYSTEMS.find(([pattern]) => pattern.test(userAgent)) ?? [];
  return system === undefined ? browser : `${browser} on ${system}`;
}

const whole = new Intl.NumberFormat();

export const formatCount = (count: number): string => whole.format(count);
