import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  crc32,
  DEFAULT_PERMISSIONS,
  displayKey,
  formatKey,
  keyKind,
  PERMISSIONS,
} from '../../src/domain/keys.ts';
import { isSubdomain, subdomainOf } from '../../src/domain/slugs.ts';
import { anyText } from '../support/any-text.ts';

// @promise key-checksum
test.each([
  ['', 0],
  ['a', 0xe8b7be43],
  ['123456789', 0xcbf43926],
  ['The quick brown fox jumps over the lazy dog', 0x414fa339],
])('the CRC32 of %p equals that of zip', (text, expected) => {
  expect(crc32(text)).toBe(expected);
});

// @promise key-form, key-parts
test.each([
  ['account', 'tri_sk_live_'],
  ['sdk', 'pk_live_'],
  ['sdk_test', 'pk_test_'],
] as const)('a key of the kind %s has the documented format and is recognized', (kind, prefix) => {
  for (const fill of [0, 1, 255]) {
    const key = formatKey(kind, new Uint8Array(32).fill(fill));
    expect(key).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{49}$`));
    expect(keyKind(key)).toBe(kind);
  }
});

// @promise key-parts
test('a key with one changed character is refused', () => {
  const random = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(
      random,
      fc.nat(60),
      fc.constantFrom('0', '9', 'A', 'Z', 'a', 'z', '_', '-'),
      (bytes, at, by) => {
        const key = formatKey('account', bytes);
        const changed = key.slice(0, at) + by + key.slice(at + 1);
        return changed === key || keyKind(changed) === null;
      },
    ),
  );
});

/** The checksum of the key format: the CRC32 in six base62 digits. */
function withChecksum(text: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  let checksum = '';
  for (let rest = crc32(text); checksum.length < 6; rest = Math.floor(rest / 62)) {
    checksum = digits[rest % 62]! + checksum;
  }
  return text + checksum;
}

test('text in another format is no key, even with a correct checksum', () => {
  const random = 'Ab3'.repeat(14) + 'x';
  expect(keyKind(withChecksum(`pk_live_${random}`))).toBe('sdk');
  expect(keyKind(withChecksum(`tri_sk_live_${random}`))).toBe('account');
  for (const text of [
    `xx_live_${random}`,
    `tri_sk_test_${random}`,
    `pk_live_${random}x`,
    `pk_live_${random.slice(1)}`,
    `pk_live_-${random.slice(1)}`,
    `pk_live_${random.slice(1)}é`,
    `pk_live_`,
    '',
  ]) {
    expect(keyKind(withChecksum(text))).toBeNull();
  }
});

test.each([31, 33, 0])('%d random bytes are refused as a key', (length) => {
  expect(() => formatKey('sdk', new Uint8Array(length))).toThrow('32 random bytes');
});

test('a new key has only the permissions read and write by default', () => {
  expect(PERMISSIONS).toEqual(['read', 'write', 'setup', 'payout']);
  expect(DEFAULT_PERMISSIONS).toEqual(['read', 'write']);
});

test('two different random parts never give the same key', () => {
  const random = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(
      random,
      random,
      (a, b) => (formatKey('sdk', a) === formatKey('sdk', b)) === (a.join() === b.join()),
    ),
  );
  // Every byte counts, not only the last ones.
  const ofOne = Array.from({ length: 32 }, (_, at) =>
    formatKey('sdk', new Uint8Array(32).fill(1, at, at + 1)),
  );
  expect(new Set(ofOne).size).toBe(32);
});

// @promise key-hint-is-no-key
test('the display form of a key is not a valid key', () => {
  const key = formatKey('sdk', new Uint8Array(32).fill(7));
  expect(displayKey('sdk', key)).toBe(`${key.slice(0, 12)}…${key.slice(-4)}`);
  expect(keyKind(displayKey('sdk', key))).toBeNull();
});

// @promise subdomain-from-name
test('every app name gives a valid subdomain', () => {
  fc.assert(fc.property(anyText, (name) => isSubdomain(subdomainOf(name, '0a1b2c'))));
  expect(subdomainOf('  Café -- Nº 5!', 'abc')).toBe('cafe-no-5-abc');
  expect(subdomainOf('日本', 'abc')).toBe('app-abc');
  expect(subdomainOf('---a---', 'abc')).toBe('a-abc');
  expect(subdomainOf(`${'a'.repeat(39)} b`, 'abc')).toBe(`${'a'.repeat(39)}-abc`);
  expect(subdomainOf('a'.repeat(41), 'abc')).toBe(`${'a'.repeat(40)}-abc`);
});
