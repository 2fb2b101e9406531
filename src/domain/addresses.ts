import { DAY_MS, MINUTE_MS } from './time.ts';

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

/** Removes the port that some proxies append, and the brackets around IPv6 addresses. */
function withoutPort(text: string): string {
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  return inBrackets ?? beforePort ?? text;
}

/**
 * Whether the host of a web address stands where every reader looks for it. `URL` takes `https:///x`, `https:x` and addresses with
 * spaces or tabs, too, and finds a host that a person and other parsers do not see.
 */
export function hasPlainHost(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- URL drops control characters
  return /^[a-z]+:\/\/[^/\\?#]/i.test(text) && !/[\u0000-\u0020\u007f]/.test(text);
}

/** Returns the host of a URL, an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function groupsOf(part: string): number[] {
  return part === '' ? [] : part.split(':').map((group) => parseInt(group, 16));
}

/** Returns the eight groups of an IPv6 address as numbers, or null for other text. */
export function ipv6Groups(text: string): number[] | null {
  const address = text.replace(/%.*/, '');
  if (!/^[\da-f:.]+$/i.test(address) || !URL.canParse(`http://[${address}]/`)) return null;
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  if (tail === undefined) return groupsOf(head);
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

/** Returns the IPv4 address that `text` is or that it maps to IPv6. Null for other text. */
export function ipv4Of(text: string): string | null {
  if (IPV4.test(text)) return text;
  const groups = ipv6Groups(text);
  if (groups === null) return null;
  const [, , , , , sixth, seventh = 0, eighth = 0] = groups;
  if (sixth !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return null;
  return [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join('.');
}

function networkOf(text: string, bits: 56 | 64): string | null {
  const address = withoutPort(text.trim());
  const ipv4 = ipv4Of(address);
  if (ipv4 !== null) return ipv4;
  const groups = ipv6Groups(address);
  if (groups === null) return null;
  const [first = 0, second = 0, third = 0, fourth = 0] = groups;
  const network = [first, second, third, bits === 56 ? fourth & 0xff00 : fourth];
  return `${network.map((group) => group.toString(16)).join(':')}::/${bits}`;
}

/**
 * Returns the part of a requester's address that is stable between a click and an install: an IPv4 address, or the
 * first 64 bits of an IPv6 address, since devices change the other bits automatically. IPv4-mapped IPv6 counts as IPv4.
 * Null when the text is not an address.
 */
export function addressBlock(text: string): string | null {
  return networkOf(text, 64);
}

/**
 * Returns the network that a household or a company usually has for itself: an IPv4 address, or the first 56 bits of an IPv6
 * address. Limits that a caller with many networks of 64 bits could evade count per site. Null when the text is not an address.
 */
export function addressSite(text: string): string | null {
  return networkOf(text, 56);
}

/**
 * Returns the start of the UTC day of an instant, epoch ms. It identifies the key that hashes addresses on that day.
 */
export function addressKeyDay(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** Returns the days whose keys may have hashed a click at most `windowMinutes` before `now`, oldest first. */
export function addressKeyDays(now: number, windowMinutes: number): number[] {
  const days: number[] = [];
  const last = addressKeyDay(now);
  for (let day = addressKeyDay(now - windowMinutes * MINUTE_MS); day <= last; day += DAY_MS) days.push(day);
  return days;
}
