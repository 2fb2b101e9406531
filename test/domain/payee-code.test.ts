import { expect, test } from '@jest/globals';
import {
  codeFrom,
  NEW_ADDRESS_MS,
  PAYEE_CODE_ATTEMPTS,
  PAYEE_CODE_LENGTH,
  PAYEE_CODE_MS,
  PAYEE_CODES_IN_AN_HOUR,
  shownCode,
  typedCode,
} from '../../src/domain/payee-code.ts';

test('a code has eight characters, each from one random byte, and none that is taken for another one', () => {
  const all = Array.from({ length: 32 }, (_, first) =>
    codeFrom(Uint8Array.from({ length: 20 }, (__, nth) => first + 32 * (nth % 8))),
  );
  for (const code of all) expect(code).toMatch(/^([A-HJ-NP-Z2-9])\1{7}$/);
  expect(new Set(all).size).toBe(32);
  expect(all[0]).toHaveLength(PAYEE_CODE_LENGTH);
});

test('a code is shown in two halves, and read however a person types it', () => {
  expect(shownCode('ABCDEFGH')).toBe('ABCD-EFGH');
  for (const text of ['abcd-efgh', ' AB CD EF\tGH\n', 'abcd–efgh', 'ABCDEFGH', 'a-b-c-d-e-f-g-h'])
    expect(typedCode(text)).toBe('ABCDEFGH');
});

test('a code is valid for a quarter of an hour and five attempts, and a new address waits for a week', () => {
  expect({ PAYEE_CODE_MS, PAYEE_CODE_ATTEMPTS, PAYEE_CODES_IN_AN_HOUR, NEW_ADDRESS_MS }).toEqual({
    PAYEE_CODE_MS: 900_000,
    PAYEE_CODE_ATTEMPTS: 5,
    PAYEE_CODES_IN_AN_HOUR: 5,
    NEW_ADDRESS_MS: 604_800_000,
  });
});
