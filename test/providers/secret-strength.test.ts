import { describe, expect, test } from '@jest/globals';
import { paddle } from '../../src/providers/paddle/index.ts';
import { revenuecat } from '../../src/providers/revenuecat/index.ts';
import { weakKeyProblem, weakTokenProblem } from '../../src/providers/shared/secret-strength.ts';
import { stripe } from '../../src/providers/stripe/index.ts';
import { superwall } from '../../src/providers/superwall/index.ts';

/** Returns text of that length with that many different characters. */
const text = (length: number, different: number) =>
  Array.from({ length }, (_, index) => 'abcdefghijklmnop'[index % different]).join('');
/** Returns the bytes of such text. */
const bytes = (length: number, different: number) => Buffer.from(text(length, different));

test.each([
  [24, 8, true],
  [23, 8, false],
  [24, 7, false],
  [200, 7, false],
  [23, 16, false],
])('a token of %i characters, %i of them different, is strong enough: %p', (length, different, isStrong) => {
  const problem = weakTokenProblem(text(length, different));
  if (isStrong) expect(problem).toBeNull();
  else expect(problem).toMatch(/easy to guess.*at least 24 random characters.*no secret/);
});

test.each([
  ['10 characters, 5 of them different', text(10, 5), true],
  ['9 characters', text(9, 9), false],
  ['10 characters, 4 of them different', text(10, 4), false],
  ['16 bytes, 5 of them different', bytes(16, 5), true],
  ['15 bytes', bytes(15, 15), false],
  ['16 bytes, 4 of them different', bytes(16, 4), false],
])('a signing key of %s is long enough: %p', (_, key, isLong) => {
  const problem = weakKeyProblem(key, 'Lantern');
  if (isLong) expect(problem).toBeNull();
  else expect(problem).toMatch(/too short to be one of Lantern\. Copy the whole secret/);
});

describe('a signing secret that was cut off', () => {
  test.each([
    ['Stripe', stripe, 'whsec_', text(10, 8), text(9, 8)],
    ['Paddle', paddle, 'pdl_ntfset_', text(10, 8), text(9, 8)],
    ['Paddle', paddle, 'pdl_ntf_', text(10, 8), text(9, 8)],
    ['Svix', superwall, 'whsec_', bytes(16, 8).toString('base64'), bytes(15, 8).toString('base64')],
  ])('the prefix of a secret of %s does not count for its length', (title, provider, prefix, long, short) => {
    expect(provider.secretProblem?.(prefix + long)).toBeNull();
    expect(provider.secretProblem?.(prefix + short)).toContain(`too short to be one of ${title}.`);
  });

  test('is refused beside the token of RevenueCat, too, and the whole one is not', () => {
    expect(revenuecat.bodySignature?.secretProblem(text(10, 8))).toBeNull();
    expect(revenuecat.bodySignature?.secretProblem(text(9, 8))).toContain(
      'too short to be one of RevenueCat.',
    );
  });
});
