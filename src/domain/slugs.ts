const SLUG = /^[A-Za-z0-9_-]{2,64}$/;

/** Whether `text` has the form of a link's slug. Anything else is a slug that no link has. */
export function isSlug(text: string): boolean {
  return SLUG.test(text);
}

const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether `text` is a DNS label in lower case. */
export function isSubdomain(text: string): boolean {
  return SUBDOMAIN.test(text);
}

/**
 * The link subdomain that a request's host names: its first label. Null for an address, for a host of one label, and for
 * the service's own public host, whose first label is nobody's subdomain. Any domain may follow the label, so the
 * operator decides by DNS alone which hosts are link hosts.
 */
export function subdomainOfHost(hostname: string, publicHostname: string): string | null {
  const host = hostname.toLowerCase().replace(/\.$/, '');
  const [first = '', ...domain] = host.split('.');
  const isAddress = host.includes(':') || /^\d+$/.test(domain.at(-1) ?? '');
  if (domain.length === 0 || isAddress || host === publicHostname.toLowerCase()) return null;
  return isSubdomain(first) ? first : null;
}

/**
 * A link subdomain made of an app's name: its letters and digits, then the suffix, which makes it unlike the subdomain
 * of another app with the same name.
 */
export function subdomainOf(name: string, suffix: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9\s-]/g, '')
    .replaceAll(/[\s-]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-|-$/g, '');
  return words === '' ? `app-${suffix}` : `${words}-${suffix}`;
}

/** Without vowels no words come out, and without 0, 1 and l no two look alike. */
const SLUG_ALPHABET = '23456789bcdfghjkmnpqrstvwxz';

/** A slug of eight characters, made of as many random bytes or more. */
export function slugOf(random: Uint8Array): string {
  // 256 is no multiple of 27, so some characters come a little more often: a slug is a name, not a secret.
  return [...random.subarray(0, 8)].map((byte) => SLUG_ALPHABET[byte % SLUG_ALPHABET.length]).join('');
}
