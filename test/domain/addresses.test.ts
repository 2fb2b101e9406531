import { describe, expect, test } from '@jest/globals';
import {
  addressBlock,
  addressKeyDay,
  addressKeyDays,
  addressSite,
  hasPlainHost,
  hostOf,
} from '../../src/domain/addresses.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';

describe('the block of an address', () => {
  test.each([
    ['with IPv4', '203.0.113.7', '203.0.113.7'],
    ['with spaces around it', ' 203.0.113.7 ', '203.0.113.7'],
    ['with a port', '203.0.113.7:51234', '203.0.113.7'],
    ['with IPv4 inside IPv6', '::ffff:203.0.113.7', '203.0.113.7'],
    ['with IPv4 inside IPv6 in groups', '::FFFF:cb00:7107', '203.0.113.7'],
    ['with IPv4 inside IPv6 written out', '0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['with IPv6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['in upper case with leading zeros', '2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['with zeros in its network', '2001:db8::1', '2001:db8:0:0::/64'],
    ['in brackets with a port', '[2001:db8:1:2::9]:443', '2001:db8:1:2::/64'],
    ['in brackets without a port', '[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['with zeros in the middle', '1::4:5:6:7:8', '1:0:0:4::/64'],
    ['with the IPv4 mark after its network', '2001:db8:1:2:0:ffff:cb00:7107', '2001:db8:1:2::/64'],
    ['with a zone', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['of the loopback', '::1', '0:0:0:0::/64'],
  ])('the block of an address %s is the stable part', (_, text, expected) => {
    expect(addressBlock(text)).toBe(expected);
  });

  test.each([
    [''],
    ['unknown'],
    ['203.0.113'],
    ['203.0.113.256'],
    ['0203.0.113.7'],
    ['203.0.113.7.8'],
    ['203.0.113.7/32'],
    ['::ffff:1.2.3.4.5'],
    ['2001:db8::1::2'],
    ['1:2:3:4:5:6:7:8:9'],
    ['[2001:db8::1'],
    ['2001:db8::1]/x'],
    ['::1]/x?[::1'],
    ['example.com'],
    ['a.b\0'],
  ])('%j is no address', (text) => {
    expect(addressBlock(text)).toBeNull();
  });
});

test.each([
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2::1', '2001:db8:1:0::/56'],
  ['2001:db8:1:ff::1', '2001:db8:1:0::/56'],
  ['2001:db8:1:100::1', '2001:db8:1:100::/56'],
  ['2001:db8:1:abcd::1', '2001:db8:1:ab00::/56'],
  ['unknown', null],
])('the site of %s is %s', (text, expected) => {
  expect(addressSite(text)).toBe(expected);
});

test.each([
  ['https://example.com', true],
  ['HTTP://example.com/x', true],
  ['https://[2001:db8::1]:8443/x', true],
  ['https:///example.com', false],
  ['https:example.com', false],
  ['https:/example.com', false],
  ['https://\\example.com', false],
  ['https://?example.com', false],
  ['https://#example.com', false],
  ['javascript:https://example.com', false],
  [' https://example.com', false],
  ['https://exam\tple.com', false],
  ['https://example.com/\u007f', false],
  ['https://example.com/a b', false],
  ['', false],
])('the host of %j stands where every reader looks for it: %j', (text, isPlain) => {
  expect(hasPlainHost(text)).toBe(isPlain);
});

test('the host of a URL with an IPv6 address is that address without its brackets', () => {
  expect(hostOf(new URL('https://[2001:DB8::1]:8443/x'))).toBe('2001:db8::1');
  expect(hostOf(new URL('https://Example.com/[x]'))).toBe('example.com');
});

const MIDNIGHT = Date.UTC(2026, 5, 15);

test.each([
  [MIDNIGHT, MIDNIGHT],
  [MIDNIGHT - 1, MIDNIGHT - DAY_MS],
  [MIDNIGHT + DAY_MS - 1, MIDNIGHT],
])('the instant %d uses the address key of day %d', (at, day) => {
  expect(addressKeyDay(at)).toBe(day);
});

test.each([
  ['a window inside the day', MIDNIGHT + 60 * MINUTE_MS, 60, [MIDNIGHT]],
  ['one millisecond into the day before', MIDNIGHT + 60 * MINUTE_MS - 1, 60, [MIDNIGHT - DAY_MS, MIDNIGHT]],
  ['the longest window', MIDNIGHT + 1, 1440, [MIDNIGHT - DAY_MS, MIDNIGHT]],
  ['the longest window at midnight', MIDNIGHT, 1440, [MIDNIGHT - DAY_MS, MIDNIGHT]],
  ['the longest window at the end of a day', MIDNIGHT - 1, 1440, [MIDNIGHT - 2 * DAY_MS, MIDNIGHT - DAY_MS]],
])('the address keys of a window are those of its days: %s', (_, now, windowMinutes, days) => {
  expect(addressKeyDays(now, windowMinutes)).toEqual(days);
});
