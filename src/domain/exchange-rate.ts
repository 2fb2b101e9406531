import { minorDecimals, roundHalfAwayFromZero } from './money.ts';

/**
 * An exact reference rate: `units` of a currency are worth `worthUsd` dollars, both as decimal text. The European
 * Central Bank states dollars per euro and units per euro. Their quotient may have infinitely many digits, so it is
 * only computed together with the cents.
 */
export interface ExchangeRate {
  readonly units: string;
  readonly worthUsd: string;
}

/** The source of a rate: the European Central Bank, or a file of the operator. */
export type RatesSource = 'ecb' | 'operator';

/** The rate of one currency on one day (`2026-11-20`). */
export interface ReferenceRate extends ExchangeRate {
  readonly currency: string;
  readonly day: string;
}

/** The contents of a file of rates. */
export interface RatesFile {
  readonly source: RatesSource;
  readonly rates: readonly ReferenceRate[];
}

/** Maximum age of a rate when the payment's day has none, in UTC days. */
export const RATE_MAX_AGE_DAYS = 7;

/** Significant digits of a rate for display. */
const SHOWN_DIGITS = 12;

interface Quotient {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

function quotientOf(text: string): Quotient {
  const [whole = '0', fraction = ''] = text.split('.');
  return { numerator: BigInt(whole + fraction), denominator: 10n ** BigInt(fraction.length) };
}

function usdPerUnit({ units, worthUsd }: ExchangeRate): Quotient {
  const [worth, count] = [quotientOf(worthUsd), quotientOf(units)];
  return {
    numerator: worth.numerator * count.denominator,
    denominator: worth.denominator * count.numerator,
  };
}

/**
 * Converts `amountMinor` of `currency` to US cents with one division and one rounding. Returns null when the result
 * exceeds the safe integers of JavaScript.
 */
export function convertToUsdCents(amountMinor: number, currency: string, rate: ExchangeRate): number | null {
  const { numerator, denominator } = usdPerUnit(rate);
  const cents = roundHalfAwayFromZero(
    BigInt(amountMinor) * 100n * numerator,
    denominator * 10n ** BigInt(minorDecimals(currency)),
  );
  return cents > BigInt(Number.MAX_SAFE_INTEGER) ? null : Number(cents);
}

/** Returns dollars per unit as decimal text with twelve significant digits, for display only. */
export function shownUsdPerUnit(rate: ExchangeRate): string {
  const { numerator, denominator } = usdPerUnit(rate);
  const magnitude = String(numerator).length - String(denominator).length;
  let decimals = Math.max(0, SHOWN_DIGITS - magnitude);
  let digits: string;
  do {
    digits = String(roundHalfAwayFromZero(numerator * 10n ** BigInt(decimals), denominator));
    decimals -= 1;
  } while (digits.length > SHOWN_DIGITS && decimals >= 0);
  decimals += 1;
  const padded = digits.padStart(decimals + 1, '0');
  const whole = padded.slice(0, padded.length - decimals);
  const fraction = padded.slice(padded.length - decimals).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
