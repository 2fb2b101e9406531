import { expect, test } from '@jest/globals';
import { isBrandColor } from '../../src/domain/brand-color.ts';

test.each(['#0b7285', '#0B7285', '#000000', '#ffFFff'])('%s is a colour of an app', (text) => {
  expect(isBrandColor(text)).toBe(true);
});

test.each([
  '',
  '#',
  '0b7285',
  '#0b7',
  '#0b72855',
  '#0b728',
  '#0b728g',
  ' #0b7285',
  '#0b7285;',
  '#0b7285\n',
  'teal',
])('%j, which a page could read as something else, is no colour of an app', (text) => {
  expect(isBrandColor(text)).toBe(false);
});
