/**
 * Money is a whole number of minor units. Products and quotients are computed with BigInt, so binary fractions never
 * occur.
 */

/**
 * The currencies of ISO 4217 (list one, "Current currency & funds code list") that do not have two decimals. Every stored
 * amount has these decimals. A provider whose minor units differ converts its amounts while it parses
 * (`src/providers/shared/minor-units.ts`), so that two providers state the same money as the same number.
 */
export const CURRENCY_DECIMALS: ReadonlyMap<string, 0 | 3 | 4> = new Map<string, 0 | 3 | 4>([
  ...['BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG'].map((code) => [code, 0] as const),
  ...['RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'].map((code) => [code, 0] as const),
  ...['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'].map((code) => [code, 3] as const),
  ...['CLF', 'UYW'].map((code) => [code, 4] as const),
]);

/** Returns the number of decimals of stored amounts in `currency` (any case). 2 unless listed above. */
export function minorDecimals(currency: string): 0 | 2 | 3 | 4 {
  return CURRENCY_DECIMALS.get(currency.toUpperCase()) ?? 2;
}

/** Formats minor units with the decimals of their currency: 1999 USD is `19.99`, -5 USD is `-0.05`, 500 JPY is `500`. */
export function formatMinor(minor: number, currency: string): string {
  const decimals = minorDecimals(currency);
  const digits = String(Math.abs(minor)).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  return `${minor < 0 ? '-' : ''}${whole}${decimals === 0 ? '' : `.${digits.slice(-decimals)}`}`;
}

/**
 * Returns an amount in stored minor units as text for people, as the console shows it beside: "$1,009.99", "-$0.05", "€9.99",
 * "¥500". A currency without a symbol has its code and a space that does not break.
 */
export function formatMoney(minor: number, currency: string): string {
  const decimals = minorDecimals(currency);
  return new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency,
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(formatMinor(minor, currency) as `${number}`);
}

/**
 * Returns the quotient rounded to the nearest whole number, halves away from zero (2.5 is 3, -2.5 is -3). All amounts
 * that are stored are rounded here; the ledger check repeats the rule in SQL. Throws a RangeError for a denominator of zero.
 */
export function roundHalfAwayFromZero(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n !== denominator < 0n;
  const dividend = numerator < 0n ? -numerator : numerator;
  const divisor = denominator < 0n ? -denominator : denominator;
  const rounded = (2n * dividend + divisor) / (2n * divisor);
  return negative ? -rounded : rounded;
}

const DECIMAL = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,9}))?$/i;

/** No amount of money needs more digits. Longer text would only cost time. */
const LONGEST_DECIMAL = 400;

/**
 * Converts a decimal amount to whole minor units: `decimalToMinor(4.015, 2)` is 402. A number is read through its
 * shortest decimal text, which is what its sender wrote; 4.015 times 100 in binary is 401.49999999999994. Returns null
 * when the value is not a finite decimal or exceeds the safe integers.
 */
export function decimalToMinor(value: number | string, decimals: number): number | null {
  const text = String(value);
  const match = text.length > LONGEST_DECIMAL ? null : DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return 0;
  const shift = decimals + Number(exponent) - fraction.length;
  // Far beyond a safe integer, or far below half a minor unit: no need to compute the power of ten.
  if (shift > LONGEST_DECIMAL) return null;
  if (shift < -2 * LONGEST_DECIMAL) return 0;
  const minor =
    shift >= 0 ? digits * 10n ** BigInt(shift) : roundHalfAwayFromZero(digits, 10n ** BigInt(-shift));
  if (minor > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return sign === '-' && minor !== 0n ? -Number(minor) : Number(minor);
}

/** Returns the commission on `baseCents` at `rateBps` basis points (hundredths of a percent), in cents. */
export function commissionCents(baseCents: number, rateBps: number): number {
  return Number(roundHalfAwayFromZero(BigInt(baseCents) * BigInt(rateBps), 10_000n));
}

/**
 * Returns the share of `amountCents` for `part` out of `whole`: round(amount × part / whole), at least zero and at most
 * the amount, even if more than the whole was refunded.
 */
export function share(amountCents: number, part: number, whole: number): number {
  if (amountCents <= 0 || part <= 0) return 0;
  if (part >= whole) return amountCents;
  return Number(roundHalfAwayFromZero(BigInt(amountCents) * BigInt(part), BigInt(whole)));
}
