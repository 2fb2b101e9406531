import { ipv4Of, ipv6Groups } from './addresses.ts';

/**
 * IPv4 networks that are not the public internet (the IANA registry of special purposes), and the one address outside of them
 * under which a cloud (Azure) serves its metadata. Each is a network and the length of its prefix.
 */
const REFUSED_IPV4: readonly (readonly [address: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/** Returns the number of an IPv4 address in dotted form. */
function numberOf(address: string): number {
  return address.split('.').reduce((number, byte) => number * 256 + Number(byte), 0);
}

const networks = REFUSED_IPV4.map(([address, prefix]) => {
  const size = 2 ** (32 - prefix);
  return { first: Math.floor(numberOf(address) / size) * size, size };
});

function isPublicIpv4(address: string): boolean {
  const number = numberOf(address);
  return !networks.some(({ first, size }) => number >= first && number < first + size);
}

/**
 * Whether a group of eight is global unicast (2000::/3) and neither a protocol assignment (2001::/23, with Teredo), nor
 * documentation (2001:db8::/32, 3fff::/20), nor a form that contains an IPv4 address (2002::/16).
 */
function isPublicIpv6([first = 0, second = 0]: readonly number[]): boolean {
  if (first >> 13 !== 1) return false;
  if (first === 0x2001) return second >= 0x200 && second !== 0xdb8;
  return first !== 0x2002 && !(first === 0x3fff && second < 0x1000);
}

/**
 * Whether `text` is an IP address of the public internet: not private, loopback, link-local, reserved, multicast, or of a
 * cloud's metadata. IPv4-mapped IPv6 counts as IPv4. False for text that is no address.
 */
export function isPublicAddress(text: string): boolean {
  if (text.includes('%')) return false;
  const ipv4 = ipv4Of(text);
  if (ipv4 !== null) return isPublicIpv4(ipv4);
  const groups = ipv6Groups(text);
  return groups !== null && isPublicIpv6(groups);
}
