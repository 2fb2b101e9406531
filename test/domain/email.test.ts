import { expect, test } from '@jest/globals';
import { withoutRepeats } from '../../src/domain/email.ts';

test.each([
  ['one address', ['ann@example.com'], ['ann@example.com']],
  [
    'several addresses, in their order',
    ['zoe@example.com', 'ann@example.com'],
    ['zoe@example.com', 'ann@example.com'],
  ],
  [
    'an address that stands there twice, once',
    ['ann@example.com', 'bob@example.com', 'ann@example.com'],
    ['ann@example.com', 'bob@example.com'],
  ],
  [
    'an address in capitals and small letters as it was written first',
    ['Ann@Example.com', 'ann@example.com', 'ANN@EXAMPLE.COM'],
    ['Ann@Example.com'],
  ],
  [
    'each of two addresses that only look alike in capitals',
    ['weiss@example.com', 'weiß@example.com'],
    ['weiss@example.com', 'weiß@example.com'],
  ],
  ['no address', [], []],
])('the people who run an app get a mail at %s', (_, addresses, expected) => {
  expect(withoutRepeats(addresses)).toEqual(expected);
});
