import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  CURRENCY_DECIMALS,
  commissionCents,
  decimalToMinor,
  formatMinor,
  minorDecimals,
  roundHalfAwayFromZero,
  share,
} from '../../src/domain/money.ts';

const BIGGEST = Number.MAX_SAFE_INTEGER;
const cents = fc.integer({ min: 0, max: BIGGEST });

describe('decimals of a currency', () => {
  test.each([
    ['USD', 2],
    ['eur', 2],
    ['JPY', 0],
    ['jpy', 0],
    ['CLP', 0],
    ['XPF', 0],
    ['KWD', 3],
    ['tnd', 3],
    ['HUF', 2],
    ['TWD', 2],
    ['MGA', 2],
    ['ISK', 0],
    ['UGX', 0],
    ['IQD', 3],
    ['CLF', 4],
    ['XXX', 2],
    ['constructor', 2],
  ] as const)('%s has %i', (currency, decimals) => {
    expect(minorDecimals(currency)).toBe(decimals);
  });

  test('stored amounts have the decimals of ISO 4217: seventeen currencies have none, seven have three, two have four', () => {
    const having = (decimals: number) =>
      [...CURRENCY_DECIMALS].filter(([, count]) => count === decimals).map(([currency]) => currency);
    expect(having(0).toSorted().join(' ')).toBe(
      'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
    );
    expect(having(3).toSorted().join(' ')).toBe('BHD IQD JOD KWD LYD OMR TND');
    expect(having(4).toSorted().join(' ')).toBe('CLF UYW');
    expect(CURRENCY_DECIMALS.size).toBe(26);
  });
});

test.each([
  [0, 'USD', '0.00'],
  [-5, 'usd', '-0.05'],
  [1_999, 'USD', '19.99'],
  [500, 'JPY', '500'],
  [-1, 'KWD', '-0.001'],
])('%i minor units of %s are written as %s', (minor, currency, text) => {
  expect(formatMinor(minor, currency)).toBe(text);
});

describe('rounding', () => {
  test.each([
    [0n, 2n, 0n],
    [1n, 2n, 1n],
    [3n, 2n, 2n],
    [5n, 2n, 3n],
    [-1n, 2n, -1n],
    [-3n, 2n, -2n],
    [-5n, 2n, -3n],
    [1n, -2n, -1n],
    [-1n, -2n, 1n],
    [-5n, -2n, 3n],
    [49n, 100n, 0n],
    [50n, 100n, 1n],
    [51n, 100n, 1n],
    [-49n, 100n, 0n],
    [-50n, 100n, -1n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
    [-2n, 3n, -1n],
    [7n, 7n, 1n],
    [10n ** 30n + 5n, 10n, 10n ** 29n + 1n],
  ])('%i / %i rounds to %i', (numerator, denominator, rounded) => {
    expect(roundHalfAwayFromZero(numerator, denominator)).toBe(rounded);
  });

  test('rounding refuses a denominator of zero', () => {
    expect(() => roundHalfAwayFromZero(1n, 0n)).toThrow(RangeError);
  });

  // @promise one-rounding
  test('rounding is off by at most a half, and an exact half rounds away from zero', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt({ min: 1n }), (numerator, denominator) => {
        const rounded = roundHalfAwayFromZero(numerator, denominator);
        const error = rounded * denominator - numerator;
        const twice = 2n * (error < 0n ? -error : error);
        expect(twice <= denominator).toBe(true);
        const awayFromZero = error > 0n === numerator > 0n;
        expect(twice < denominator || awayFromZero).toBe(true);
      }),
    );
  });

  // @promise one-rounding
  test('rounding is symmetric in the sign', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt({ min: 1n }), (numerator, denominator) => {
        const rounded = roundHalfAwayFromZero(numerator, denominator);
        expect(roundHalfAwayFromZero(-numerator, denominator)).toBe(-rounded);
        expect(roundHalfAwayFromZero(-numerator, -denominator)).toBe(rounded);
      }),
    );
  });
});

describe('a decimal amount in minor units', () => {
  test.each<[number | string, number, number | null]>([
    [4.015, 2, 402],
    [25.487, 2, 2549],
    [8.14, 2, 814],
    [-9.99, 2, -999],
    [1.005, 2, 101],
    [-1.005, 2, -101],
    [1.004999, 2, 100],
    [0.285, 2, 29],
    [0.005, 2, 1],
    [-0.005, 2, -1],
    [0.004, 2, 0],
    [-0.004, 2, 0],
    [0, 2, 0],
    [-0, 2, 0],
    [5, 2, 500],
    [1e-7, 2, 0],
    [5e-3, 2, 1],
    [1e21, 2, null],
    [1e21, 0, null],
    [1.5e3, 0, 1500],
    ['12.345', 2, 1235],
    ['12.345', 3, 12_345],
    ['12.345', 0, 12],
    ['12.5', 0, 13],
    ['-12.5', 0, -13],
    ['12.', 2, 1200],
    ['.5', 2, 50],
    ['+7', 2, 700],
    ['007.10', 2, 710],
    ['1e2', 2, 10_000],
    ['1E+2', 2, 10_000],
    ['25e-1', 0, 3],
    ['1e-999999999', 2, 0],
    ['1e999999999', 2, null],
    ['0e999999999', 2, 0],
    ['9007199254740991', 0, BIGGEST],
    ['9007199254740992', 0, null],
    ['-9007199254740991', 0, -BIGGEST],
    ['-9007199254740992', 0, null],
    ['90071992547409.91', 2, BIGGEST],
    ['90071992547409.914', 2, BIGGEST],
    ['90071992547409.915', 2, null],
    [Number.NaN, 2, null],
    [Number.POSITIVE_INFINITY, 2, null],
    [Number.NEGATIVE_INFINITY, 2, null],
    ['', 2, null],
    ['.', 2, null],
    ['-', 2, null],
    ['e5', 2, null],
    [' 1', 2, null],
    ['1,5', 2, null],
    ['1_000', 2, null],
    ['0x10', 2, null],
    ['1n', 2, null],
    ['Infinity', 2, null],
    ['1e5e5', 2, null],
    ['9'.repeat(401), 2, null],
    ['0'.repeat(400), 2, 0],
    ['0'.repeat(401), 2, null],
  ])('%p with %i decimals is %p', (value, decimals, minor) => {
    expect(decimalToMinor(value, decimals)).toBe(minor);
  });

  test('an amount that is printed with its decimals is read back unchanged', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.constantFrom(0, 2, 3), (minor, decimals) => {
        const digits = String(Math.abs(minor)).padStart(decimals + 1, '0');
        const whole = digits.slice(0, digits.length - decimals);
        const text = `${minor < 0 ? '-' : ''}${whole}.${digits.slice(digits.length - decimals)}`;
        expect(decimalToMinor(text, decimals)).toBe(minor === 0 ? 0 : minor);
      }),
    );
  });

  test('a price with up to three decimals that was sent as a double rounds like its decimal text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000_000 }), (thousandths) => {
        expect(decimalToMinor(thousandths / 1000, 2)).toBe(Math.floor((thousandths + 5) / 10));
      }),
    );
  });

  test('any number becomes a safe integer or null, and its sign changes only the sign', () => {
    fc.assert(
      fc.property(fc.double(), fc.constantFrom(0, 2, 3), (value, decimals) => {
        const minor = decimalToMinor(value, decimals);
        expect(minor === null || Number.isSafeInteger(minor)).toBe(true);
        expect(Object.is(minor, -0)).toBe(false);
        const negated = decimalToMinor(-value, decimals);
        expect(negated).toBe(minor === null || minor === 0 ? minor : -minor);
      }),
    );
  });

  test('any text is read or refused without an error', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 500 }), (text) => {
        const minor = decimalToMinor(text, 2);
        expect(minor === null || Number.isSafeInteger(minor)).toBe(true);
      }),
    );
  });
});

describe('a commission', () => {
  test.each([
    [999, 2000, 200],
    [499, 2000, 100],
    [1, 5000, 1],
    [1, 4999, 0],
    [3, 5000, 2],
    [5, 1000, 1],
    [25, 200, 1],
    [1000, 0, 0],
    [0, 10_000, 0],
    [1234, 10_000, 1234],
    [BIGGEST, 10_000, BIGGEST],
    [BIGGEST, 5000, 4_503_599_627_370_496],
  ])('a commission of %i cents at %i basis points is %i cents', (base, rate, commission) => {
    expect(commissionCents(base, rate)).toBe(commission);
  });

  // @promise exact-products
  test('a commission never exceeds the payment, and grows with payment and rate', () => {
    fc.assert(
      fc.property(cents, fc.integer({ min: 0, max: 9999 }), (base, rate) => {
        const commission = commissionCents(base, rate);
        expect(commission).toBeGreaterThanOrEqual(0);
        expect(commission).toBeLessThanOrEqual(base);
        expect(commissionCents(base, rate + 1)).toBeGreaterThanOrEqual(commission);
      }),
    );
  });
});

describe('a share', () => {
  test.each([
    [200, 250, 1000, 50],
    [3, 1, 2, 2],
    [1, 1, 2, 1],
    [1, 1, 3, 0],
    [200, 1000, 1000, 200],
    [200, 1001, 1000, 200],
    [200, 0, 1000, 0],
    [200, -5, 1000, 0],
    [0, 5, 10, 0],
    [-7, 5, 10, 0],
    [200, 5, 0, 200],
    [200, 0, 0, 0],
    [BIGGEST, BIGGEST - 1, BIGGEST, BIGGEST - 1],
  ])('a share of %i for %i out of %i is %i', (amount, part, whole, expected) => {
    expect(share(amount, part, whole)).toBe(expected);
  });

  test('a share is between zero and the amount, and never decreases when more is refunded', () => {
    fc.assert(
      fc.property(cents, cents, fc.integer({ min: 1, max: BIGGEST }), cents, (amount, part, whole, more) => {
        const taken = share(amount, part, whole);
        expect(taken).toBeGreaterThanOrEqual(0);
        expect(taken).toBeLessThanOrEqual(amount);
        expect(share(amount, Math.min(part + more, BIGGEST), whole)).toBeGreaterThanOrEqual(taken);
      }),
    );
  });

  test('the share of the whole is the whole amount', () => {
    fc.assert(
      fc.property(cents, fc.integer({ min: 1, max: BIGGEST }), (amount, whole) => {
        expect(share(amount, whole, whole)).toBe(amount);
      }),
    );
  });
});
