import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import * as ofService from '../../src/domain/money.ts';
import { currencyDecimals, formatMoney, formatRate, formatShare } from '../src/format.ts';
import { readNumber } from '../src/parts/read-number.ts';

describe('amounts of money on the pages', () => {
  test.each([
    ['HUF', 123_456, 'HUF 1,234.56'],
    ['IDR', 5_000_000, 'IDR 50,000.00'],
    ['COP', -199_900, '-COP 1,999.00'],
    ['PKR', 5, 'PKR 0.05'],
    ['IQD', 1_250_500, 'IQD 1,250.500'],
    ['JPY', 500, '¥500'],
    ['KWD', 1_250, 'KWD 1.250'],
    ['CLF', 12_345, 'CLF 1.2345'],
    ['USD', 999, '$9.99'],
    ['usd', -1, '-$0.01'],
  ])(
    'an amount in %s is shown with the decimals that the service stores it with',
    (currency, minor, text) => {
      // A space that does not break separates a code from its number.
      expect(formatMoney(minor, currency).replaceAll('\u00A0', ' ')).toBe(text);
    },
  );

  const currencies = [
    ...new Set([...Intl.supportedValuesOf('currency'), ...ofService.CURRENCY_DECIMALS.keys()]),
  ];

  test('every currency has the same decimals on the pages as in the service', () => {
    for (const currency of currencies)
      expect({ currency, decimals: currencyDecimals(currency) }).toEqual({
        currency,
        decimals: ofService.minorDecimals(currency),
      });
  });

  test('a sentence of the service and the page around it show the same amount as the same text', () => {
    for (const currency of currencies)
      for (const minor of [0, 5, 999, 123_456_789, -1, -123_456])
        expect(formatMoney(minor, currency)).toBe(ofService.formatMoney(minor, currency));
  });
});

test.each([
  [1, '100 %'],
  [1 / 3, '33.3 %'],
  [0.0004, '0 %'],
])('the part %d of 1 is written as rates are, with one decimal at most', (part, text) => {
  expect(formatShare(part)).toBe(text);
});

test('every page writes percentages by the same two functions, with a space before the sign', () => {
  expect([formatRate(1_250), formatRate(500), formatShare(0.125)]).toEqual(['12.5 %', '5 %', '12.5 %']);
  const folder = path.join(projectRoot, 'console/src');
  const others = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && name !== 'format.ts')
    .filter((name) => /\} %/.test(readFileSync(path.join(folder, name), 'utf8')));
  expect(others).toEqual([]);
});

describe('numbers that a person enters', () => {
  const dollars = { decimals: 2, prefix: '$', suffix: '' };
  test.each([
    ['', null],
    ['  ', null],
    ['2,50', 2.5],
    ['2.50', 2.5],
    ['2,', 2],
    [',5', 0.5],
    ['$ 2,5', 2.5],
    ['0005', 5],
    ['1.234,56', 1_234.56],
    ['1,234.56', 1_234.56],
    ['1,234,567', 1_234_567],
    ['1.234.567,8', 1_234_567.8],
    ['1 234,56', 1_234.56],
    ['1\u00A0234', 1_234],
    ["1'234.50", 1_234.5],
    ['1,234', 'Write 1234 or 1.23'],
    ['12.345', 'Write 12345 or 12.34'],
    ['0,123', 'At most 2 decimals'],
    ['1234,567', 'At most 2 decimals'],
    ['1.234,567', 'At most 2 decimals'],
    ['-1', 'Write it without a minus'],
    ...['.', '1e5', '2,50 €', '1,23,4', '1,2.3', '12 50', '1 234 56', '2 5', 'NaN'].map(
      (text) => [text, 'Write a number, such as 12.50'] as const,
    ),
  ])('“%s” as an amount in dollars is read as %p', (text, read) => {
    expect(readNumber(text, dollars)).toBe(read);
  });

  test.each([
    ['12.5 %', 2, 12.5],
    ['12,5%', 2, 12.5],
    ['1,234', 2, 'Write 1234 or 1.23'],
    ['30 %', 0, 30],
    ['1,5', 0, 'Write a whole number'],
    ['1,234', 0, 'Write 1234'],
    ['$5', 2, 'Write a number, such as 12.50'],
  ])('“%s” in percent with %d decimals is read as %p', (text, decimals, read) => {
    expect(readNumber(text, { decimals, prefix: '', suffix: ' %' })).toBe(read);
  });
});
