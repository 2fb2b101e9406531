import { hmacSha256 } from '../hashing.ts';
import type { SignedRequest } from '../provider.ts';
import { weakKeyProblem } from './secret-strength.ts';
import { includesSignature, MAX_HEADER_LENGTH } from './signatures.ts';
import { UNIX_SECONDS } from './timestamped-hmac.ts';

const PARTS = ['id', 'timestamp', 'signature'] as const;
type Part = (typeof PARTS)[number];

/** The headers of the scheme under both names: those of Svix, and those of Standard Webhooks. */
export const SVIX_HEADERS: readonly string[] = ['svix', 'webhook'].flatMap((prefix) =>
  PARTS.map((part) => `${prefix}-${part}`),
);

/** In both directions: a message from the future is as suspicious as an old one. */
const TOLERANCE_SECONDS = 300;

const KEY_PREFIX = 'whsec_';
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns the key: the bytes that the text after the prefix encodes in base64. Null where it encodes none. */
function keyOf(secret: string): Buffer | null {
  const text = secret.startsWith(KEY_PREFIX) ? secret.slice(KEY_PREFIX.length) : secret;
  const key = BASE64.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  return key.length === 0 ? null : key;
}

/** Returns what is wrong with the form of a secret, or null. */
export function svixSecretProblem(secret: string): string | null {
  const key = keyOf(secret);
  return key === null
    ? 'This is not a Svix signing secret, which is whsec_ followed by base64. Copy it exactly as the provider shows it.'
    : weakKeyProblem(key, 'Svix');
}

/** Returns a header's value; null where it is missing, empty, too long or a list. */
function headerOf({ headers }: SignedRequest, part: Part): string | null {
  const value = headers[`svix-${part}`] ?? headers[`webhook-${part}`];
  return typeof value === 'string' && value !== '' && value.length <= MAX_HEADER_LENGTH ? value : null;
}

/** Returns the time that the headers state, epoch ms; null where it cannot be read. It is not verified. */
export function svixTime(request: SignedRequest): number | null {
  const time = headerOf(request, 'timestamp');
  return time !== null && UNIX_SECONDS.test(time) ? Number(time) * 1000 : null;
}

/** Returns whether the time that the headers state is at most 300 whole seconds away. False if it cannot be read. */
export function isSvixOnTime(request: SignedRequest): boolean {
  const time = svixTime(request);
  // False where the clock is NaN.
  return (
    time !== null &&
    Math.abs(Math.floor(request.receivedAt / 1000) - Math.floor(time / 1000)) <= TOLERANCE_SECONDS
  );
}

/**
 * Returns whether one of the request's signatures is the HMAC-SHA256 of id, time and raw body under `secret`, and the time
 * is at most 300 whole seconds away in either direction. Ignores signatures of versions other than `v1`. False for a header of more
 * than 1 KiB or ten signatures. Never rejects.
 */
export async function verifySvix(request: SignedRequest, secret: string): Promise<boolean> {
  const id = headerOf(request, 'id');
  const time = headerOf(request, 'timestamp');
  const signatures = headerOf(request, 'signature');
  const key = keyOf(secret);
  if (id === null || time === null || signatures === null || key === null) return false;
  // Before the HMAC, which costs time for each byte of the body.
  if (!isSvixOnTime(request)) return false;
  const expected = await hmacSha256(key, `${id}.${time}.`, request.body);
  return includesSignature(signatures.split(' '), `v1,${expected.toString('base64')}`);
}
