import type { SignedRequest } from '../provider.ts';
import { secureCompare } from './secure-compare.ts';

/** The one header of this scheme. */
export const TOKEN_HEADER = 'authorization';

/**
 * Whether the request carries `secret` as its whole `Authorization` value. Nothing is stripped or added: the providers
 * send back exactly what was typed at theirs, with or without `Bearer`. Never throws.
 */
export function verifyStaticToken(request: SignedRequest, secret: string): boolean {
  const header = request.headers[TOKEN_HEADER];
  return typeof header === 'string' && secret.trim() !== '' && secureCompare(header, secret);
}

/** Returns the headers of a request that carries `secret`. */
export function tokenHeaders(_body: Buffer, secret: string): Readonly<Record<string, string>> {
  return { [TOKEN_HEADER]: secret };
}
