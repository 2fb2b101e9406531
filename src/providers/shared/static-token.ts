import type { SignedRequest } from '../provider.ts';
import { secureCompare } from './secure-compare.ts';

/** The header that carries the token. */
export const TOKEN_HEADER = 'authorization';

/**
 * Returns whether `secret` is the whole `Authorization` value of the request. Nothing is stripped or added: the providers
 * send exactly the value that was entered in their dashboard, with or without `Bearer`. Never rejects.
 */
export async function verifyStaticToken(request: SignedRequest, secret: string): Promise<boolean> {
  const header = request.headers[TOKEN_HEADER];
  return typeof header === 'string' && secret.trim() !== '' && secureCompare(header, secret);
}

/** Returns the headers of a request that carries `secret`. */
export function tokenHeaders(_body: Buffer, secret: string): Readonly<Record<string, string>> {
  return { [TOKEN_HEADER]: secret };
}
