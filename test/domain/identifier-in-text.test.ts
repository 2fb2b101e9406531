import { expect, test } from '@jest/globals';
import { formsOf, hasIdentifier, hasValue } from '../../src/domain/identifier-in-text.ts';

const findsIn = (text: string, identifier: string) =>
  formsOf(text).some((form) => hasIdentifier(form, identifier));

test.each([
  ['a URL', 'https://app.example/u?id=ann%40example.com&x=1', 'ann@example.com'],
  ['a URL whose escapes are of other letters, too', 'q=%C3%A9%20ann%40example.com', 'ann@example.com'],
  ['a URL with an escape that is no character', 'q=%E9%20&id=user%2D17%20', 'user-17'],
  ['JSON in a text', String.raw`{\"user\":\"customer\u002d1\"}`, 'customer-1'],
  ['JSON with a line end in a text', String.raw`first\ncustomer-1\nlast`, 'customer-1'],
  ['JSON in a URL', '%7B%22user%22%3A%22customer-1%22%7D', 'customer-1'],
])('an identifier is found in %s', (_, text, identifier) => {
  expect(findsIn(text, identifier)).toBe(true);
});

test('a text that was encoded many times is decoded a few times only, so that it takes no longer than its length allows', () => {
  let text = 'customer 1';
  for (let time = 0; time < 50; time += 1) text = encodeURIComponent(text);
  expect(formsOf(text).length).toBeLessThan(8);
});

test('an identifier is found in a text that was encoded up to four times', () => {
  let text = 'id=ann@example.com';
  for (let time = 0; time < 4; time += 1) text = encodeURIComponent(text);
  expect(findsIn(text, 'ann@example.com')).toBe(true);
});

test.each(['100 of customer-1', '100 %', 'q=%E9', String.raw`C:\x`])(
  'the text %j, without escapes of characters, has one form',
  (text) => {
    expect(formsOf(text)).toEqual([text]);
  },
);

test('no text contains an identifier of no characters', () => {
  expect(hasIdentifier('customer-1', '')).toBe(false);
  expect(hasValue('', '')).toBe(false);
});

test('a text that is an identifier contains it, whatever characters it has', () => {
  for (const identifier of ['*', "'", 'a.', '-']) expect(hasIdentifier(identifier, identifier)).toBe(true);
});

test.each([
  ['id=42&x=1', true],
  ['{"id":"42"}', true],
  ["id='42'", true],
  ['42', true],
  ['142', false],
  ['id=42 days', false],
  ['42%', false],
])('a short identifier is a value of %s: %s', (text, is) => {
  expect(hasValue(text, '42')).toBe(is);
});
