import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { isReservedSubdomain, isSlug, isSubdomain, slugOf, subdomainOfHost } from '../../src/domain/slugs.ts';

// @promise host-to-subdomain
test.each([
  ['acme.links.example', 'acme'],
  ['ACME.Links.Example.', 'acme'],
  ['acme.localhost', 'acme'],
  ['api.example.test', null],
  ['API.example.test.', null],
  ['other.api.example.test', 'other'],
  ['localhost', null],
  ['', null],
  ['.', null],
  ['.example', null],
  ['-acme.example', null],
  ['a_b.example', null],
  ['192.0.2.1', null],
  ['acme.1', null],
  ['[2001:db8::1]', null],
  ['acme.12', null],
  ['acme.links.1a', 'acme'],
  ['acme.links.a1', 'acme'],
])('the link subdomain of the host %j is %p', (host, expected) => {
  expect(subdomainOfHost(host, 'api.example.test')).toBe(expected);
});

test.each([
  ['ab', true],
  ['Spring_Sale-26', true],
  ['x'.repeat(64), true],
  ['x'.repeat(65), false],
  ['a', false],
  ['', false],
  ['a b', false],
  [' ab', false],
  ['ab/', false],
  ['/ab', false],
  ['äb', false],
])('%j has the format of a slug: %p', (text, expected) => {
  expect(isSlug(text)).toBe(expected);
});

test.each([
  ['a', true],
  ['0', true],
  ['acme-2', true],
  ['x'.repeat(63), true],
  ['x'.repeat(64), false],
  ['', false],
  ['-a', false],
  ['a-', false],
  ['Acme', false],
  ['a.b', false],
])('%j is a DNS label in lower case: %p', (text, expected) => {
  expect(isSubdomain(text)).toBe(expected);
});

test('a generated slug has eight unambiguous characters without vowels', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 16 }), (random) => {
      const slug = slugOf(random);
      expect(slug).toMatch(/^[2-9b-df-hj-km-np-tv-xz]{8}$/);
      expect(isSlug(slug)).toBe(true);
    }),
  );
});

test('each character of a slug comes from a different byte', () => {
  const slug = slugOf(Uint8Array.from([0, 1, 26, 27, 28, 255, 7, 8, 9]));
  expect(slug).toBe('23z23g9b');
});

// @promise subdomain-reserved
test.each(['www', 'api', 'login', 'app', 'admin', 'mail', 'no-reply', 'l', 'xn--pypal-4ve'])(
  'the subdomain %s is reserved',
  (name) => {
    expect(isReservedSubdomain(name)).toBe(true);
  },
);

test.each(['acme', 'apidae', 'reply', 'my-app', 'mailbox-friends'])(
  'the subdomain %s is not reserved',
  (name) => {
    expect(isReservedSubdomain(name)).toBe(false);
  },
);
