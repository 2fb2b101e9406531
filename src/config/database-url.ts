/** The modes of `sslmode` in an address. `no-verify` encrypts without checking the server's certificate. */
const MODES = new Set(['disable', 'no-verify', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']);

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])?$/i;

/** Whether the text after `sslmode=` in an address is a mode. */
export function hasKnownSslMode(databaseUrl: string): boolean {
  const mode = new URL(databaseUrl).searchParams.get('sslmode');
  return mode === null || MODES.has(mode);
}

/**
 * Returns the address with `sslmode=verify-full` if its host is not this machine, unless it says `disable` or `no-verify`.
 * The other modes of Postgres do not check who answers: with `require`, somebody in the network can read and change
 * everything.
 */
export function withVerifiedHost(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  if (LOOPBACK.test(url.hostname)) return databaseUrl;
  const mode = url.searchParams.get('sslmode');
  if (mode === 'disable' || mode === 'no-verify') return databaseUrl;
  url.searchParams.set('sslmode', 'verify-full');
  return url.href;
}

/**
 * Returns the driver's `ssl` option for an address. The driver itself would check the certificate of a host that is an IP
 * address against `localhost`, and does not know `no-verify`.
 */
export function tlsOption(databaseUrl: string): { readonly ssl?: object } {
  const { hostname, searchParams } = new URL(databaseUrl);
  switch (searchParams.get('sslmode')) {
    case 'verify-full':
      return { ssl: { host: hostname.replace(/^\[|\]$/g, '') } };
    case 'no-verify':
      return { ssl: { rejectUnauthorized: false } };
    default:
      return {};
  }
}

function textOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return `${code} ${'message' in error ? String(error.message) : ''}`;
}

/**
 * Returns what the operator can do about a connection that failed because the server offers no TLS or its certificate is not
 * trusted. Null for other failures.
 */
export function tlsAdvice(databaseUrl: string, error: unknown): string | null {
  if (new URL(databaseUrl).searchParams.get('sslmode') !== 'verify-full') return null;
  if (!/ssl|tls|cert|SELF_SIGNED|UNABLE_TO_/i.test(textOf(error))) return null;
  return 'The connection must be encrypted, and the certificate must be valid for the host. For a private certificate authority, set NODE_EXTRA_CA_CERTS to its file. In a network that you trust, add sslmode=disable (no encryption) or sslmode=no-verify (no check of the certificate) to DATABASE_URL.';
}
