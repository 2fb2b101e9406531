import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { convertToUsdCents, shownUsdPerUnit } from '../../src/domain/exchange-rate.ts';
import { minorDecimals } from '../../src/domain/money.ts';

describe('conversion at a reference rate', () => {
  // Computed by hand: minor units / 10^decimals × worth / units × 100.
  test.each([
    ['euros', 1_000, 'EUR', '1', '1.0845', 1_085], // 1084.5
    ['less than half a cent', 1_000, 'EUR', '1', '1.08449', 1_084], // 1084.49
    ['yen, which have no decimals', 1_500, 'JPY', '162.34', '1.0558', 976], // 975.545
    ['dinars, which have three', 12_340, 'KWD', '0.32415', '1.0558', 4_019], // 4019.303
    ['an inverse with infinitely many decimals', 300, 'GBP', '3', '1', 100],
    ['the same inverse, one penny less', 299, 'GBP', '3', '1', 100], // 99.667
    ['an exact half', 1, 'XTS', '3', '1.5', 1], // 0.5
    ['just below a half', 1, 'XTS', '3.000000000001', '1.5', 0],
    ['a cross rate through a tiny unit', 250_000, 'IDR', '16936.15', '1.0558', 16], // 15.585
    ['a rate of one', 123, 'EUR', '1', '1', 123],
    ['an amount below half a cent', 1, 'IDR', '16936.15', '1.0558', 0],
  ])('a conversion to cents rounds once: %s', (_title, amountMinor, currency, units, worthUsd, cents) => {
    expect(convertToUsdCents(amountMinor, currency, { units, worthUsd })).toBe(cents);
  });

  test('a conversion above the safe integers is null', () => {
    expect(
      convertToUsdCents(Number.MAX_SAFE_INTEGER, 'EUR', { units: '1', worthUsd: '1.0000000001' }),
    ).toBeNull();
    expect(convertToUsdCents(Number.MAX_SAFE_INTEGER, 'EUR', { units: '1', worthUsd: '1' })).toBe(
      Number.MAX_SAFE_INTEGER,
    );
  });

  /** Decimal text with the fraction that it represents. */
  const decimal = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 14n }), fc.nat(9)).map(([digits, places]) => {
    const text = String(digits).padStart(places + 1, '0');
    const whole = text.slice(0, text.length - places);
    return {
      text: places === 0 ? whole : `${whole}.${text.slice(text.length - places)}`,
      over: 10n ** BigInt(places),
      digits,
    };
  });

  test('a conversion is the nearest cent to the exact quotient, and a half rounds up', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000_00),
        fc.constantFrom('EUR', 'JPY', 'KWD'),
        decimal,
        decimal,
        (amountMinor, currency, units, worth) => {
          const cents = convertToUsdCents(amountMinor, currency, { units: units.text, worthUsd: worth.text });
          fc.pre(cents !== null);
          // exact = numerator / denominator cents
          const numerator = BigInt(amountMinor) * 100n * worth.digits * units.over;
          const denominator = 10n ** BigInt(minorDecimals(currency)) * worth.over * units.digits;
          const off = 2n * (BigInt(cents ?? 0) * denominator - numerator);
          expect(off <= denominator && off > -denominator).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('a rate for display', () => {
  test.each([
    ['1', '1.0845', '1.0845'],
    ['162.34', '1.0558', '0.00650363434767'],
    ['3', '1', '0.333333333333'],
    ['3', '2', '0.666666666667'],
    ['1', '100', '100'],
    ['16936.15', '1.0558', '0.0000623400241495'],
    ['0.000001', '999999999.9999996', '1000000000000000'],
    ['1', '999999999999.6', '1000000000000'],
    ['7', '1000000', '142857.142857'],
    ['999999999999', '0.000000000001', '0.000000000000000000000001'],
  ])('the displayed rate of %s units for %s dollars is %s', (units, worthUsd, shown) => {
    expect(shownUsdPerUnit({ units, worthUsd })).toBe(shown);
  });
});
