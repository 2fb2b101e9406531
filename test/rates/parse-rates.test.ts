import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { parseRates, RatesFileError } from '../../src/rates/parse-rates.ts';

const TODAY = '2026-03-02';
const fixture = (name: string) => readFileSync(new URL(`../fixtures/rates/${name}`, import.meta.url), 'utf8');

/** Returns the rates as short lines: currency, day, units, value in dollars. */
const linesOf = (text: string, today = TODAY) =>
  parseRates(text, today).rates.map(
    ({ currency, day, units, worthUsd }) => `${currency} ${day} ${units} = ${worthUsd}`,
  );

describe("the European Central Bank's files", () => {
  test('the daily file has rates for the euro and each currency, with the digits of the file', () => {
    expect(parseRates(fixture('eurofxref.csv'), TODAY).source).toBe('ecb');
    expect(linesOf(fixture('eurofxref.csv'))).toEqual([
      'EUR 2026-02-27 1 = 1.0558',
      'JPY 2026-02-27 162.34 = 1.0558',
      'BGN 2026-02-27 1.9558 = 1.0558',
      'GBP 2026-02-27 0.83450 = 1.0558',
      'ISK 2026-02-27 144.10 = 1.0558',
      'IDR 2026-02-27 16936.15 = 1.0558',
    ]);
  });

  test('the historical file has many days, and skips missing rates', () => {
    const lines = linesOf(fixture('eurofxref-hist.csv'));
    expect(lines).toHaveLength(4 + 4 + 4 + 6);
    expect(lines).toContain('TRL 2004-12-31 1836200 = 1.3621');
    expect(lines.filter((line) => line.startsWith('CYP'))).toEqual([
      'CYP 2005-01-03 0.5803 = 1.3507',
      'CYP 2004-12-31 0.58 = 1.3621',
    ]);
  });

  test('Windows line ends, a byte order mark and trailing empty lines do not change the result', () => {
    const text = fixture('eurofxref.csv');
    expect(linesOf(`\uFEFF${text.replaceAll('\n', '\r\n')}\r\n \n`)).toEqual(linesOf(text));
  });

  test.each([
    ['no USD', 'Date,JPY\n2026-02-27,162.34', 'line 1: the column USD is missing.'],
    ['a column twice', 'Date,USD,JPY,JPY\n2026-02-27,1,2,3', 'line 1: "JPY" is not a valid column.'],
    ['a column EUR', 'Date,USD,EUR\n2026-02-27,1,2', 'line 1: "EUR" is not a valid column.'],
    [
      'a column that is not a currency code',
      'Date,USD,Yen\n2026-02-27,1,2',
      'line 1: "Yen" is not a valid column.',
    ],
    ['a missing rate', 'Date,USD,JPY\n2026-02-27,1', 'line 2: it must have 2 rates, but has 1.'],
    ['an extra rate', 'Date,USD\n2026-02-27,1,2', 'line 2: it must have 1 rates, but has 2.'],
    ['no rate for USD', 'Date,USD\n2026-02-27,N/A', /^line 2: the rate of USD must be a decimal/],
    ['a rate of zero', 'Date,USD,JPY\n2026-02-27,1,0.000', /^line 2: the rate of JPY must be a decimal/],
    ['a rate below zero', 'Date,USD,JPY\n2026-02-27,1,-3', /^line 2: the rate of JPY/],
    ['a rate that is not a decimal', 'Date,USD,JPY\n2026-02-27,1,1e3', /^line 2: the rate of JPY/],
    ['an empty rate', 'Date,USD,JPY,GBP\n2026-02-27,1,,2', /^line 2: the rate of JPY/],
    ['a day twice', 'Date,USD\n2026-02-27,1\n27 February 2026,1', 'line 3: 2026-02-27 appears twice.'],
    ['an empty line in the middle', 'Date,USD\n\n2026-02-27,1', /^line 2: the date must be like/],
    ['a day that does not exist', 'Date,USD\n2026-02-29,1', /^line 2: the date must be like/],
    ['a month that does not exist', 'Date,USD\n27 Brumaire 2026,1', /^line 2: the date must be like/],
    ['a date in another order', 'Date,USD\n02/27/2026,1', /^line 2: the date must be like/],
    ['a year before 1970', 'Date,USD\n0000-01-01,1', /^line 2: the date must be like/],
    [
      'a rate of the next day',
      'Date,USD\n2026-03-03,1',
      'line 2: 2026-03-03 is in the future, today is 2026-03-02 (UTC).',
    ],
    ['nothing', '', 'it is empty.'],
    ['no rates', 'Date,USD\n', 'it has a header but no rates.'],
    ['another header', 'TIME_PERIOD,OBS_VALUE\n2026-02-27,1', /^line 1: the header must be/],
    ['a web page', '  <!DOCTYPE html><html></html>', 'it is HTML or XML, not CSV.'],
  ])('a file with %s is refused with the number of the line', (_title, text, message) => {
    expect(() => parseRates(text, TODAY)).toThrow(RatesFileError);
    expect(() => parseRates(text, TODAY)).toThrow(message);
  });

  test('a rate of the current day is accepted', () => {
    expect(linesOf('Date,USD\n2 March 2026,1.05')).toEqual(['EUR 2026-03-02 1 = 1.05']);
  });
});

describe("the operator's own file", () => {
  const own = (...lines: string[]) => ['date,currency,usd_rate', ...lines].join('\n');

  test('the file has dollars per unit for any currency of three capital letters', () => {
    const text = own('2026-02-27,ARS,0.00068', '2026-02-26,ARS, 0.00069', '2026-02-27,EUR,1.06');
    expect(parseRates(text, TODAY).source).toBe('operator');
    expect(linesOf(text)).toEqual([
      'ARS 2026-02-27 1 = 0.00068',
      'ARS 2026-02-26 1 = 0.00069',
      'EUR 2026-02-27 1 = 1.06',
    ]);
  });

  test.each([
    ['small letters', own('2026-02-27,ars,1'), 'line 2: the currency must be three capital letters.'],
    ['USD', own('2026-02-27,USD,1'), 'line 2: USD needs no rate.'],
    [
      'a pair twice',
      own('2026-02-27,ARS,1', '2026-02-27,ARS,1'),
      'line 3: ARS appears twice for 2026-02-27.',
    ],
    ['a cell too few', own('2026-02-27,ARS'), /^line 2: it must have three cells/],
    ['a decimal comma', own('2026-02-27,ARS,0,00068'), /^line 2: it must have three cells/],
    ['quotes', own('2026-02-27,"ARS",1'), 'line 2: the currency must be three capital letters.'],
    ['zero', own('2026-02-27,ARS,0'), /^line 2: the rate of ARS must be a decimal above zero/],
    ['a rate of the next day', own('2026-03-03,ARS,1'), /^line 2: 2026-03-03 is in the future/],
    ['too many digits', own('2026-02-27,ARS,0.1234567890123'), /^line 2: the rate of ARS/],
    [
      'units per dollar',
      own('2026-02-27,KWD,3.25', '2026-02-27,CLF,41.2', '2026-02-27,VND,25400'),
      'line 4: one VND is not worth 25400 dollars. usd_rate is the dollars for one unit, not the units for a dollar.',
    ],
  ])('a file with %s is refused with the number of the line', (_title, text, message) => {
    expect(() => parseRates(text, TODAY)).toThrow(RatesFileError);
    expect(() => parseRates(text, TODAY)).toThrow(message);
  });
});

test('any file is read or refused in one sentence', () => {
  const cell = fc.oneof(
    fc.constantFrom(
      'Date',
      'USD',
      'JPY',
      'N/A',
      '2026-02-27',
      '1.0558',
      '',
      ' ',
      'date',
      'currency',
      'usd_rate',
    ),
    fc.string({ maxLength: 5 }),
  );
  const text = fc
    .array(fc.array(cell, { maxLength: 5 }), { maxLength: 5 })
    .map((rows) => rows.map((row) => row.join(',')).join('\n'));
  fc.assert(
    fc.property(fc.oneof(text, fc.string()), (content) => {
      try {
        const { rates } = parseRates(content, TODAY);
        expect(rates.every((rate) => Number(rate.units) > 0 && Number(rate.worthUsd) > 0)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(RatesFileError);
      }
    }),
    { numRuns: 1_000 },
  );
});
