import { minorDecimals, roundHalfAwayFromZero } from './money.ts';

/**
 * A reference rate that loses nothing: `units` of a currency are worth `worthUsd` dollars, both as decimal text. The
 * European Central Bank states dollars per euro and units per euro; their quotient has no last digit, so it is not taken
 * before the cents are computed.
 */
export interface ExchangeRate {
  readonly units: string;
  readonly worthUsd: string;
}

/** Who stated a rate: the European Central Bank, or the operator in a file of his own. */
export type RatesSource = 'ecb' | 'operator';

/** The rate of one currency on one day (`2026-11-20`). */
export interface ReferenceRate extends ExchangeRate {
  readonly currency: string;
  readonly day: string;
}

/** A file of rates, read completely. */
export interface RatesFile {
  readonly source: RatesSource;
  readonly rates: readonly ReferenceRate[];
}

/** How far back a rate may be taken from when the day of the payment has none, in days of UTC. */
export const RATE_MAX_AGE_DAYS = 7;

/** Digits of a rate that is only shown. */
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
 * `amountMinor` of `currency` in USD cents, by one division and so with one rounding. Null when the result is more than
 * a JavaScript number counts exactly.
 */
export function convertToUsdCents(amountMinor: number, currency: string, rate: ExchangeRate): number | null {
  const { numerator, denominator } = usdPerUnit(rate);
  const cents = roundHalfAwayFromZero(
    BigInt(amountMinor) * 100n * numerator,
    denominator * 10n ** BigInt(minorDecimals(currency)),
  );
  return cents > BigInt(Number.MAX_SAFE_INTEGER) ? null : Number(cents);
}

/** Dollars for one unit as decimal text with twelve significant digits: to look at, not to compute with. */
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
