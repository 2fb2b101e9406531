import { expect, test } from '@jest/globals';
import { csvLine, neutralizeFormula, quoteWhereNeeded } from '../../src/domain/csv-cells.ts';

// @promise csv-formulas
test.each([
  ['=1+1', "'=1+1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  ['Ann;=1+1', "Ann;'=1+1"],
  ['Ann|=1+1', "Ann|'=1+1"],
  ['Ann\t=1+1', "Ann\t'=1+1"],
  ['Ann\r\n=1+1', "Ann\r\n'=1+1"],
  ['Ann; =1+1', "Ann;' =1+1"],
  ['Ann;"=1+1"', `Ann;'"=1+1"`],
  ['a;=b;＝c|@d', "a;'=b;'＝c|'@d"],
  ['  =1', "'  =1"],
  ['\t=1', "'\t'=1"],
  [`${' '.repeat(201)}=1`, `'${' '.repeat(201)}=1`],
  [`Ann;${'\u00a0'.repeat(5_000)}@SUM(A1)`, `Ann;'${'\u00a0'.repeat(5_000)}@SUM(A1)`],
  ['\u200b=1', "'\u200b=1"],
  ['\ufeff\u202e=1', "'\ufeff\u202e=1"],
  ['\u2028=1', "'\u2028=1"],
  ['\u0000\u001f=1', "'\u0000\u001f=1"],
  ["'=1", "''=1"],
])('a spreadsheet shows the name %j as text', (name, cell) => {
  expect(neutralizeFormula(name)).toBe(cell);
});

test.each(['Ann', 'Ann-Marie', 'a=b', 'ann@example.com', 'Zoë; Bob | Cy', 'C+', '1;2', ''])(
  'the name %j does not change',
  (name) => {
    expect(neutralizeFormula(name)).toBe(name);
  },
);

test('a long name of separators takes no time', () => {
  const startedAt = performance.now();
  for (const part of ['; "', ' ', '\t', '"', '\u200b', ';']) neutralizeFormula(`${part.repeat(50_000)}x`);
  // A pattern that tries again at each separator takes minutes.
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test.each([
  ['Ann', 'Ann'],
  ['', ''],
  ["Ann's", "Ann's"],
  ['a;b\tc', 'a;b\tc'],
  ['Smith, Ann', '"Smith, Ann"'],
  ['the "one"', '"the ""one"""'],
  ['two\nlines', '"two\nlines"'],
  ['two\rlines', '"two\rlines"'],
])('the text %j is the cell %j, quoted as RFC 4180 requires', (text, cell) => {
  expect(quoteWhereNeeded(text)).toBe(cell);
});

test('a line has its cells apart from each other, and an end of its own', () => {
  expect(csvLine(['Ann', 'a,b', '', '"'])).toBe('Ann,"a,b",,""""\r\n');
  expect(csvLine(['only'])).toBe('only\r\n');
});
