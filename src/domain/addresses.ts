import { DAY_MS, MINUTE_MS } from './time.ts';

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

/** Proxies write a port behind some addresses, and brackets around IPv6 then. */
function withoutPort(text: string): string {
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  return inBrackets ?? beforePort ?? text;
}

function groupsOf(part: string): number[] {
  return part === '' ? [] : part.split(':').map((group) => parseInt(group, 16));
}

/** The eight groups of an IPv6 address as numbers, or null when it is none. */
function ipv6Groups(text: string): number[] | null {
  const address = text.replace(/%.*/, '');
  if (!/^[\da-f:.]+$/i.test(address) || !URL.canParse(`http://[${address}]/`)) return null;
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  if (tail === undefined) return groupsOf(head);
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

/**
 * What of a requester's address stays the same between a click and an install: an IPv4 address, or the first 64 bits of
 * an IPv6 one, since a device changes the others by itself. IPv4 inside IPv6 is IPv4. Null for what is no address.
 */
export function addressBlock(text: string): string | null {
  const address = withoutPort(text.trim());
  if (IPV4.test(address)) return address;
  const groups = ipv6Groups(address);
  if (groups === null) return null;
  const [, , , , , sixth, seventh = 0, eighth = 0] = groups;
  if (sixth === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join('.');
  }
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/** The start of the UTC day that an instant is in, epoch ms. It names the key that addresses are hashed with then. */
export function addressKeyDay(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** The days whose keys can have hashed a click that lies at most `windowMinutes` before `now`, oldest first. */
export function addressKeyDays(now: number, windowMinutes: number): number[] {
  const days: number[] = [];
  const last = addressKeyDay(now);
  for (let day = addressKeyDay(now - windowMinutes * MINUTE_MS); day <= last; day += DAY_MS) days.push(day);
  return days;
}
