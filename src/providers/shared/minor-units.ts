/**
 * Amounts that a provider states in minor units. A currency's decimals at a provider are not always those of ISO 4217, so
 * each such provider has its own table, with its source.
 */
import { minorDecimals, roundHalfAwayFromZero } from '../../domain/money.ts';

/** The decimals of the currencies of one provider. */
export interface MinorUnits {
  /** The page of the provider's documentation that states the decimals. */
  readonly source: { readonly title: string; readonly url: string };
  /** The currencies (ISO 4217, upper case) that do not have two decimals at this provider. */
  readonly decimals: ReadonlyMap<string, number>;
}

/** Returns the entries of a table: every code of a space-separated list with the same number of decimals. */
export function withDecimals(decimals: number, codes: string): readonly (readonly [string, number])[] {
  return codes.split(' ').map((code) => [code, decimals] as const);
}

/**
 * Converts an amount from the provider's minor units of `currency` (upper case) to those of ISO 4217. Digits below the minor
 * unit are rounded half away from zero. Returns null when the result exceeds the safe integers.
 */
export function toIsoMinorUnits(amount: number, currency: string, units: MinorUnits): number | null {
  const stated = 10n ** BigInt(units.decimals.get(currency) ?? 2);
  const stored = 10n ** BigInt(minorDecimals(currency));
  const minor = Number(roundHalfAwayFromZero(BigInt(amount) * stored, stated));
  return Number.isSafeInteger(minor) ? minor : null;
}
