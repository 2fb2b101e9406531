/**
 * How the pages write numbers, money and times. The linter allows `Intl` only in this file, so that they are written alike: in
 * the English of the sentences around them, whatever the language of the browser, and in its time zone.
 */
const LOCALE = 'en-US';

/** Returns what makes a format when it is used first: making one takes as long as drawing a small part of a page. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const dateFormat = (options: Intl.DateTimeFormatOptions) =>
  once(() => new Intl.DateTimeFormat(LOCALE, options));

const numberFormat = (options: Intl.NumberFormatOptions) =>
  once(() => new Intl.NumberFormat(LOCALE, options));

const dateTime = dateFormat({ dateStyle: 'medium', timeStyle: 'short' });
const date = dateFormat({ dateStyle: 'medium' });
const dayOfMonth = dateFormat({ day: 'numeric', month: 'short' });
const months = {
  short: dateFormat({ month: 'short', year: 'numeric' }),
  long: dateFormat({ month: 'long', year: 'numeric' }),
};
const relative = once(() => new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' }));

/** The time zone of all times on the pages: that of the browser. */
export const { timeZone } = dateTime().resolvedOptions();

/** Returns the date and the time of an instant: "Nov 23, 2026, 8:40 AM". */
export const formatInstant = (epochMs: number): string => dateTime().format(epochMs);

/** Returns the date of an instant: "Nov 23, 2026". */
export const formatDate = (epochMs: number): string => date().format(epochMs);

/** Returns the date of an instant without its year: "Nov 23". */
export const formatDayOfMonth = (epochMs: number): string => dayOfMonth().format(epochMs);

/** Returns the month of an instant: "November 2026", or "Nov 2026" if it is short. */
export const formatMonth = (epochMs: number, style: keyof typeof months = 'long'): string =>
  months[style]().format(epochMs);

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
    : relative().format(Math.round(distance / size), unit);
}

/** Returns a duration in its largest unit: "3 hours". */
export function formatDuration(seconds: number): string {
  const ms = seconds * 1_000;
  const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['second', 1_000];
  return new Intl.NumberFormat(LOCALE, { style: 'unit', unit, unitDisplay: 'long' }).format(
    Math.round(ms / size),
  );
}

/** The currencies of ISO 4217 that do not have two decimals, as in `src/domain/money.ts`, by their decimals. */
const UNUSUAL_CURRENCIES: readonly (readonly [decimals: number, currencies: string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
];
const CURRENCY_DECIMALS = new Map(
  UNUSUAL_CURRENCIES.flatMap(([decimals, currencies]) =>
    currencies.split(' ').map((currency) => [currency, decimals] as const),
  ),
);

/** Returns the number of decimals of the amounts that the service stores in a currency. Browsers know other ones for some. */
export const currencyDecimals = (currency: string): number =>
  CURRENCY_DECIMALS.get(currency.toUpperCase()) ?? 2;

/** Returns whole minor units of a currency as a decimal number, without a step through fractions that are not exact. */
function decimalText(minor: number, digits: number): `${number}` {
  const text = String(Math.abs(minor)).padStart(digits + 1, '0');
  const sign = minor < 0 ? '-' : '';
  const decimal = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
  return `${sign}${decimal}` as `${number}`;
}

/** The formats of amounts by their currencies. */
const moneyFormats = new Map<string, Intl.NumberFormat>();

/**
 * Returns an amount in whole minor units of a currency: "$9.99", "¥500", "KWD 1.250". Written as the sentences of the service
 * write it (`src/domain/money.ts`), whatever the language of the browser.
 */
export function formatMoney(minor: number, currency = 'USD'): string {
  const decimals = currencyDecimals(currency);
  let format = moneyFormats.get(currency);
  if (format === undefined) {
    format = new Intl.NumberFormat(LOCALE, {
      style: 'currency',
      currency,
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
    });
    moneyFormats.set(currency, format);
  }
  return format.format(decimalText(minor, decimals));
}

const SHORT = { notation: 'compact', maximumFractionDigits: 1 } as const;
const countShort = numberFormat(SHORT);
const moneyShort = numberFormat({ ...SHORT, style: 'currency', currency: 'USD' });

/** Formats cents in as few characters as the marks of an axis have room for, such as $120 or $1.2K. */
export const formatMoneyShort = (cents: number): string => moneyShort().format(cents / 100);

/** Formats a count like `formatMoneyShort`, such as 1.2K. */
export const formatCountShort = (count: number): string => countShort().format(count);

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

const whole = numberFormat({});

export const formatCount = (count: number): string => whole().format(count);

/** Returns a count with its noun, which takes an "s" in the plural: "1 click", "2,794 clicks". */
export const formatCountOf = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

/** Returns a number that may be a lower bound: "4,000 or more". */
export const atLeast = (text: string, isLowerBound: boolean): string =>
  isLowerBound ? `${text} or more` : text;

const PERCENT_IN_BPS = 100;
const rate = numberFormat({ maximumFractionDigits: 2 });

/** Returns a rate in basis points as percent: "12.5 %". */
export const formatRate = (rateBps: number): string => `${rate().format(rateBps / PERCENT_IN_BPS)} %`;

/** Returns a part of 1 in percent: "12.5 %". */
export const formatShare = (part: number): string => formatRate(Math.round(part * 1_000) * 10);

/** Returns the names of all time zones that the browser knows. */
export const timeZones = (): string[] => ['UTC', ...Intl.supportedValuesOf('timeZone')];
