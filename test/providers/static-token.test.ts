import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { adapty } from '../../src/providers/adapty/index.ts';
import type { Headers, Provider } from '../../src/providers/provider.ts';
import { revenuecat } from '../../src/providers/revenuecat/index.ts';
import { secureCompare } from '../../src/providers/shared/secure-compare.ts';
import { anyText } from '../support/any-text.ts';

const SECRET = 'Bearer 5f0c-lantern';

async function verifies(
  provider: Provider,
  authorization: Headers[string],
  withSecret = SECRET,
): Promise<boolean> {
  const headers = authorization === undefined ? {} : { authorization };
  return await provider.verify({ headers, body: Buffer.from('{}'), receivedAt: 0 }, withSecret);
}

describe.each([
  ['RevenueCat', revenuecat],
  ['Adapty', adapty],
])('the token of %s', (_, provider) => {
  // @promise webhook-static-token
  test('the value from the dashboard is accepted exactly as entered', async () => {
    expect(await verifies(provider, SECRET)).toBe(true);
    expect(await verifies(provider, 'lantern', 'lantern')).toBe(true);
  });

  test.each<[string, Headers[string]]>([
    ['a missing header', undefined],
    ['an empty header', ''],
    ['a repeated header', [SECRET, SECRET]],
    ['a value without its scheme', '5f0c-lantern'],
    ['a value with another scheme', 'bearer 5f0c-lantern'],
    ['a padded value', `${SECRET} `],
    ['a longer value', `${SECRET}x`],
    ['a shorter value', SECRET.slice(0, -1)],
    ['a value of other characters', 'Bearer 5f0c-läntern'],
  ])('%s is refused', async (__, header) => {
    expect(await verifies(provider, header)).toBe(false);
  });

  test('an empty secret proves nothing', async () => {
    expect(await verifies(provider, '', '')).toBe(false);
    expect(await verifies(provider, ' ', ' ')).toBe(false);
  });

  // @promise webhook-static-token
  test('a token with one changed character is refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1 }), fc.nat(), fc.string(), async (secret, place, other) => {
        const at = place % secret.length;
        const changed = secret.slice(0, at) + other + secret.slice(at + 1);
        expect(await verifies(provider, changed, secret)).toBe(changed === secret && secret.trim() !== '');
      }),
    );
  });

  test('no header makes the verification throw', async () => {
    const header = fc.oneof(anyText, fc.array(fc.string()));
    await fc.assert(fc.asyncProperty(header, async (value) => !(await verifies(provider, value))));
  });
});

test('secureCompare returns true for equal texts and bytes only', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (left, right) => {
      expect(secureCompare(left, right)).toBe(left === right);
      expect(secureCompare(left, Buffer.from(left))).toBe(true);
    }),
  );
});
