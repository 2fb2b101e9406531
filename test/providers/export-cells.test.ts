import { describe, expect, test } from '@jest/globals';
import { decimal, flag, text, utcTime } from '../../src/providers/shared/export.ts';

const AT = Date.UTC(2026, 0, 31, 12, 34, 56, 789);

describe('a cell of an export', () => {
  test.each([
    ['a text', ' plus ', 'plus'],
    ['nothing', '', null],
    ['blanks', '  ', null],
    ['what databases write for nothing', String.raw`\N`, null],
    ['a word for nothing', 'NULL', null],
    ['a number of a JSON list', 12, null],
  ])('with %s is read as a text or as nothing', (_, cell, expected) => {
    expect(text({ cell }, 'cell')).toBe(expected);
    expect(text({}, 'cell')).toBeNull();
  });

  test.each([
    ['true', true],
    ['T', true],
    ['1', true],
    ['false', false],
    ['f', false],
    ['0', false],
    ['yes', false],
    ['', false],
  ])('with %j as a flag is %j', (cell, expected) => {
    expect(flag({ cell }, 'cell')).toBe(expected);
  });

  test.each([
    ['2026-01-31T12:34:56.789Z', AT],
    ['2026-01-31 12:34:56.789', AT],
    ['2026-01-31 12:34:56.789 UTC', AT],
    ['2026-01-31 12:34:56.789 utc', AT],
    ['2026-01-31 12:34:56.789123456', AT],
    ['2026-01-31T14:34:56.789+02:00', AT],
    ['2026-01-31T14:34:56.789+0200', AT],
    ['2026-01-31T14:34:56.789 +02', AT],
    ['2026-01-31T04:04:56.789-08:30', AT],
    ['2026-01-31T04:04:56.789-0830', AT],
    ['2026-01-31 12:34:56', AT - 789],
    ['2026-01-31 12:34', Date.UTC(2026, 0, 31, 12, 34)],
    ['2026-01-31', Date.UTC(2026, 0, 31)],
    ['2026-13-31', null],
    ['2026-02-30', null],
    ['2026-02-30 12:34:56', null],
    ['2028-02-29', Date.UTC(2028, 1, 29)],
    ['2026-01-31 25:00:00', null],
    ['2026-01-31 12:34:56 CET', null],
    ['x2026-01-31', null],
    ['2026-01-31 12', null],
    ['', null],
  ])('with %j as a time is %j in UTC', (cell, expected) => {
    expect(utcTime({ cell }, 'cell')).toBe(expected);
  });

  test.each([
    ['12.50', 12.5],
    ['-3', -3],
    ['0', 0],
    ['', null],
    ['1,000.00', undefined],
    ['12.', undefined],
    ['.5', undefined],
    ['1e3', undefined],
    ['12.50 USD', undefined],
    ['99999999999999999999', undefined],
  ])('with %j as a decimal is %j', (cell, expected) => {
    expect(decimal({ cell }, 'cell')).toBe(expected);
  });
});
