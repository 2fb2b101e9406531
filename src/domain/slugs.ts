const SLUG = /^[A-Za-z0-9_-]{2,64}$/;

/** Whether `text` has the format of a link's slug. */
export function isSlug(text: string): boolean {
  return SLUG.test(text);
}

const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether `text` is a DNS label in lower case. */
export function isSubdomain(text: string): boolean {
  return SUBDOMAIN.test(text);
}

/** Host names that visitors and mail servers take for the operator's own. */
const RESERVED_SUBDOMAINS = new Set(
  `
    about abuse access account accounts admin administrator api app apps assets auth autoconfig
    autodiscover billing cdn console dashboard dev dns docs email ftp git grafana healthz help
    hostmaster imap info internal l legal link links localhost login logout mail metrics mta-sts
    no-reply noc noreply ns ns1 ns2 oauth official pay payment payments payout payouts pop pop3 portal
    postmaster privacy readyz register root sdk secure security signin signup smtp ssl sso staff staging
    static status support sysadmin system temporal tributary trust vpn web webhook webhooks webmail
    webmaster wpad ws www www1 www2
  `
    .trim()
    .split(/\s+/),
);

/**
 * Whether no app may choose a subdomain: visitors would take it for the operator's own host, or it is the coded form
 * (`xn--`) of other letters, which browsers display.
 */
export function isReservedSubdomain(subdomain: string): boolean {
  return RESERVED_SUBDOMAINS.has(subdomain) || subdomain.startsWith('xn--');
}

/**
 * Returns the link subdomain in a request's host: its first label. Null for an IP address, for a host with one label,
 * and for the service's own public host. Any domain may follow the label, so DNS alone decides which hosts are link
 * hosts.
 */
export function subdomainOfHost(hostname: string, publicHostname: string): string | null {
  const host = hostname.toLowerCase().replace(/\.$/, '');
  const [first = '', ...domain] = host.split('.');
  const isAddress = host.includes(':') || /^\d+$/.test(domain.at(-1) ?? '');
  if (domain.length === 0 || isAddress || host === publicHostname.toLowerCase()) return null;
  return isSubdomain(first) ? first : null;
}

/**
 * Returns a link subdomain for an app's name: its letters and digits, then the suffix, which distinguishes apps with
 * the same name.
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

/** No vowels, so that slugs are not words; no 0, 1 and l, which look like other characters. */
const SLUG_ALPHABET = '23456789bcdfghjkmnpqrstvwxz';

/** Returns a slug of eight characters from at least eight random bytes. */
export function slugOf(random: Uint8Array): string {
  // 256 is not a multiple of 27, so some characters are slightly more frequent. A slug is a name, not a secret.
  return [...random.subarray(0, 8)].map((byte) => SLUG_ALPHABET[byte % SLUG_ALPHABET.length]).join('');
}
