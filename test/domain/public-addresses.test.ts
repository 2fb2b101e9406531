import { describe, expect, test } from '@jest/globals';
import { isPublicAddress } from '../../src/domain/public-addresses.ts';

describe('addresses that the service connects to for others', () => {
  // @promise webhooks-out-public-addresses
  test.each([
    ['the loopback address', '127.0.0.1 127.255.255.254 ::1'],
    ['the unspecified address', '0.0.0.0 0.1.2.3 ::'],
    [
      'private networks',
      '10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 fc00::1 fd12:3456::1',
    ],
    ['metadata of clouds', '169.254.169.254 fd00:ec2::254 100.100.100.200 192.0.0.192 168.63.129.16'],
    ['link-local addresses', '169.254.0.1 fe80::1 febf::1 fe80::1%eth0'],
    ['addresses with a zone, which is that of a local network', '2606:4700::1111%eth0 8.8.8.8%eth0'],
    ['shared addresses of providers', '100.64.0.1 100.127.255.255'],
    [
      'networks for documentation and benchmarks',
      '192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 2001:db8::1 3fff::1 3fff:fff:ffff::1',
    ],
    ['multicast and reserved addresses', '224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 ff02::1 192.88.99.1'],
    ['IPv4-mapped forms of them', '::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::FFFF:192.168.1.1'],
    ['forms that contain another address', '2002:7f00:1::1 64:ff9b::7f00:1 2001::1 ::127.0.0.1'],
    ['site-local and unassigned addresses', 'fec0::1 4000::1 100::1'],
    [
      'text that is no address',
      'localhost example.com 127.1 0x7f000001 2130706433 010.0.0.1 1.2.3.4.5 1.2.3.256',
    ],
  ])('%s are refused', (_, addresses) => {
    for (const address of addresses.split(' '))
      expect([address, isPublicAddress(address)]).toEqual([address, false]);
    expect(isPublicAddress('')).toBe(false);
  });

  test('addresses of the internet are accepted, up to the edges of the refused networks', () => {
    const addresses =
      '1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 ' +
      '172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 ' +
      '223.255.255.255 2606:4700::1111 2a00:1450::1 2001:200::1 2001:4860:4860::8888 3ffe::1 3fff:1000::1 ::ffff:8.8.8.8';
    for (const address of addresses.split(' '))
      expect([address, isPublicAddress(address)]).toEqual([address, true]);
  });
});
