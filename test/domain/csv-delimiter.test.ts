import { expect, test } from '@jest/globals';
import { countDelimiters, delimiterOf } from '../../src/domain/csv-delimiter.ts';

test.each([
  ['of commas', 'email,amount,currency', ','],
  [
    'of semicolons, as a spreadsheet writes it where the comma is a decimal sign',
    'email;amount;currency',
    ';',
  ],
  ['of tabs', 'email\tamount\tcurrency', '\t'],
  ['of more semicolons than commas', 'name, first;name, last;email;amount', ';'],
  ['of more commas than tabs', 'email,"amount\tUSD",currency', ','],
  ['of as many commas as semicolons', 'a;b,c', ','],
  ['of one column', 'email', ','],
  ['that is empty', '', ','],
])('a CSV with a header line %s is read with its delimiter', (_, header, delimiter) => {
  // The rows do not count.
  for (const end of ['', '\n', '\r\n']) {
    for (const row of [',,,,,,', ';;;;;;', '\t\t\t\t\t\t']) {
      expect(delimiterOf(end === '' ? header : `${header}${end}${row}${end}${row}`)).toBe(delimiter);
    }
  }
});

test.each([
  [0, 'email', 10],
  [2, 'email,amount,currency', 10],
  [4, ',email,,amount,', 10],
  [3, ',email,,amount,', 3],
  [4, ',email,,amount,', 4],
  [0, ',email,,amount,', 0],
])('%i commas are counted in %j, at most %i', (count, text, most) => {
  expect(countDelimiters(text, ',', most)).toBe(count);
});
