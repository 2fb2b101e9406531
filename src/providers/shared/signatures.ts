import { timingSafeEqual } from 'node:crypto';

/** The most signatures in one request. Providers send one per secret of the endpoint, and few secrets are valid at once. */
const MAX_SIGNATURES = 10;
/** The most characters of a signature header. */
export const MAX_HEADER_LENGTH = 1024;

/**
 * Returns whether one of the sent signatures is the expected one, in a time that does not depend on where they differ.
 * False for more than ten signatures, so that a long list cannot multiply the work.
 */
export function includesSignature(sent: readonly string[], expected: string): boolean {
  if (sent.length > MAX_SIGNATURES) return false;
  const bytes = Buffer.from(expected);
  let matches = false;
  for (const signature of sent) {
    const candidate = Buffer.from(signature);
    // The length of a signature is no secret.
    if (candidate.length === bytes.length) matches = timingSafeEqual(candidate, bytes) || matches;
  }
  return matches;
}
