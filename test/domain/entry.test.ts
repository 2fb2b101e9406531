import { expect, test } from '@jest/globals';
import { kindOfEntry } from '../../src/domain/entry.ts';

test.each([
  [1, 'bonus'],
  [25_000, 'bonus'],
  [-1, 'deduction'],
  [-25_000, 'deduction'],
] as const)('an entry of %i cents is a %s', (amountCents, kind) => {
  expect(kindOfEntry(amountCents)).toBe(kind);
});
