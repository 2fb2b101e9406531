import { readFileSync } from 'node:fs';

/** The modes of `sslmode` in an address. `no-verify` encrypts without checking the server's certificate. */
const MODES = new Set(['disable', 'no-verify', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']);

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])?$/i;

/** The value of `sslrootcert` for the certificate authorities that Node.js trusts. */
const SYSTEM_AUTHORITIES = 'system';

/** Whether the text after `sslmode=` in an address is a mode. */
export function hasKnownSslMode(databaseUrl: string): boolean {
  const mode = new URL(databaseUrl).searchParams.get('sslmode');
  return mode === null || MODES.has(mode);
}

/** Whether the file that `sslrootcert=` in an address names, if any, can be read. */
export function hasReadableRootCertificate(databaseUrl: string): boolean {
  try {
    rootCertificate(new URL(databaseUrl));
    return true;
  } catch {
    return false;
  }
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

/** What a driver receives: the address without its TLS parameters, and the `ssl` option that they stand for. */
export interface DriverAddress {
  readonly url: string;
  readonly ssl:
    | false
    | { readonly rejectUnauthorized: false }
    | { readonly host: string; readonly ca?: string };
}

/**
 * Returns what both drivers receive for an address, because each of them reads some TLS parameters differently or not at
 * all. `verify-full` and `verify-ca` check the certificate and its host, `no-verify` and `require` only encrypt, and
 * the rest does neither: on another host, `withVerifiedHost` has replaced `require`. Throws when the file of
 * `sslrootcert` cannot be read.
 */
export function driverAddress(databaseUrl: string): DriverAddress {
  const url = new URL(databaseUrl);
  const mode = url.searchParams.get('sslmode');
  const ca = rootCertificate(url);
  for (const name of ['sslmode', 'sslrootcert']) url.searchParams.delete(name);
  const address = url.href;
  switch (mode) {
    case 'verify-full':
    case 'verify-ca': {
      // The drivers would check the certificate of a host that is an IP address against `localhost`.
      const host = url.hostname.replace(/^\[|\]$/g, '');
      return { url: address, ssl: { host, ...(ca === null ? {} : { ca }) } };
    }
    case 'no-verify':
    case 'require':
      return { url: address, ssl: { rejectUnauthorized: false } };
    default:
      return { url: address, ssl: false };
  }
}

/** Returns the certificates of the file that an address names; null when it names none. Throws when it can't be read. */
function rootCertificate({ searchParams }: URL): string | null {
  const path = searchParams.get('sslrootcert');
  return path === null || path === SYSTEM_AUTHORITIES ? null : readFileSync(path, 'utf8');
}

function textOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  const cause = 'cause' in error && error.cause !== undefined ? textOf(error.cause) : '';
  return `${code} ${'message' in error ? String(error.message) : ''} ${cause}`;
}

/** Why a connection with TLS fails, by the codes and messages of Node.js and the drivers, and what to do. */
const PROBLEMS: readonly (readonly [RegExp, string])[] = [
  [
    /not support SSL|before secure TLS connection|WRONG_VERSION_NUMBER/i,
    'The server does not offer TLS. Turn it on there (ssl = on, with a certificate), or, in a network that you trust, add sslmode=disable (no encryption) to the address.',
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'The certificate of the server is for another host. Use a host of the certificate in the address, or, in a network that you trust, add sslmode=no-verify (no check of the certificate).',
  ],
  [
    /\bTLS\b|\bSSL\b|cert|SELF_SIGNED|UNABLE_TO_/i,
    'The certificate of the server cannot be verified. For a private certificate authority, add sslrootcert=FILE with its certificate to the address, or set NODE_EXTRA_CA_CERTS to the file. In a network that you trust, add sslmode=no-verify (no check of the certificate).',
  ],
];

/**
 * Returns why a connection failed whose host had to be verified, and what the operator can do. Null for failures that
 * have nothing to do with TLS.
 */
export function tlsAdvice(databaseUrl: string, error: unknown): string | null {
  if (driverAddress(databaseUrl).ssl === false) return null;
  const text = textOf(error);
  return PROBLEMS.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}
