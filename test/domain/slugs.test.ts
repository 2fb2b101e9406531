import { expect, test } from '@jest/globals';
import { subdomainOfHost } from '../../src/domain/slugs.ts';

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
])('the host %j names the link subdomain %p', (host, expected) => {
  expect(subdomainOfHost(host, 'api.example.test')).toBe(expected);
});
