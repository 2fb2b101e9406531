/**
 * Money is a whole number of minor units. Products and quotients are computed with BigInt, so nothing here ever meets
 * a binary fraction.
 */

/** Currencies whose amounts do not have two decimals, as card networks and Stripe write them. */
export const CURRENCY_DECIMALS: ReadonlyMap<string, 0 | 3> = new Map<string, 0 | 3>([
  ...['BIF', 'CLP', 'DJF', 'GNF', 'JPY', 'KMF', 'KRW', 'MGA'].map((code) => [code, 0] as const),
  ...['PYG', 'RWF', 'UGX', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'].map((code) => [code, 0] as const),
  ...['BHD', 'JOD', 'KWD', 'OMR', 'TND'].map((code) => [code, 3] as const),
]);

/** How many decimals one unit of `currency` (ISO 4217, any case) has: 2 unless the table says otherwise. */
export function minorDecimals(currency: string): 0 | 2 | 3 {
  return CURRENCY_DECIMALS.get(currency.toUpperCase()) ?? 2;
}

/**
 * The one rounding of this service: the nearest whole number, a half goes away from zero (2.5 is 3, -2.5 is -3).
 * A denominator of zero is a mistake of the caller: BigInt throws a RangeError.
 */
export function roundHalfAwayFromZero(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n !== denominator < 0n;
  const dividend = numerator < 0n ? -numerator : numerator;
  const divisor = denominator < 0n ? -denominator : denominator;
  const rounded = (2n * dividend + divisor) / (2n * divisor);
  return negative ? -rounded : rounded;
}

const DECIMAL = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,9}))?$/i;

/** No amount of money needs more digits; longer texts would only cost time. */
const LONGEST_DECIMAL = 400;

/**
 * A decimal amount in whole minor units: `decimalToMinor(4.015, 2)` is 402. A number is read through its shortest
 * decimal text, which is what its sender wrote; times 100 in binary would be 401.49999999999994. Null when the value
 * is no finite decimal or does not fit a safe integer.
 */
export function decimalToMinor(value: number | string, decimals: number): number | null {
  const text = String(value);
  const match = text.length > LONGEST_DECIMAL ? null : DECIMAL.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return 0;
  const shift = decimals + Number(exponent) - fraction.length;
  // Far beyond a safe integer, or far below half a minor unit: the power of ten need not be built.
  if (shift > LONGEST_DECIMAL) return null;
  if (shift < -2 * LONGEST_DECIMAL) return 0;
  const minor =
    shift >= 0 ? digits * 10n ** BigInt(shift) : roundHalfAwayFromZero(digits, 10n ** BigInt(-shift));
  if (minor > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return sign === '-' && minor !== 0n ? -Number(minor) : Number(minor);
}

/** The commission on `baseCents` at `rateBps` basis points (hundredths of a percent). */
export function commissionCents(baseCents: number, rateBps: number): number {
  return Number(roundHalfAwayFromZero(BigInt(baseCents) * BigInt(rateBps), 10_000n));
}

/**
 * What of `amountCents` belongs to `part` out of `whole`: round(amount × part / whole), never below zero and never
 * above the amount, however much more than the whole was given back.
 */
export function share(amountCents: number, part: number, whole: number): number {
  if (amountCents <= 0 || part <= 0) return 0;
  if (part >= whole) return amountCents;
  return Number(roundHalfAwayFromZero(BigInt(amountCents) * BigInt(part), BigInt(whole)));
}
