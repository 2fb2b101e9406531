import type { Provider, SignedRequest } from './provider.ts';

/** What proves a stored delivery: its signature headers, or the keyed hash of its static token, never the token itself. */
export type Proof =
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'token_hash'; readonly hash: string };

/** The start of the reason for refusing a request whose signature is correct and whose time is outside the tolerance. */
export const SIGNED_AT_ANOTHER_TIME = 'the signature is correct, but was made';

/** Keyed hashing of tokens, as the secret box implements it. */
export interface TokenHasher {
  tokenHash(token: string): string;
  matchesTokenHash(token: string, hash: string): boolean;
}

/** Returns what to store of a request that `verify` accepted, so that it can be verified again at any later time. */
export function proofOf(provider: Provider, request: SignedRequest, hasher: TokenHasher): Proof {
  const headers: Record<string, string> = {};
  for (const name of provider.proofHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  if (provider.scheme !== 'static_token') return { kind: 'headers', headers };
  return { kind: 'token_hash', hash: hasher.tokenHash(Object.values(headers).join('\n')) };
}

/** Returns whether `secret` still proves a stored delivery, as of the time of receipt. */
export async function checkProof(
  provider: Provider,
  proof: Proof,
  request: Omit<SignedRequest, 'headers'>,
  secret: string,
  hasher: TokenHasher,
): Promise<boolean> {
  switch (proof.kind) {
    case 'token_hash':
      return hasher.matchesTokenHash(secret, proof.hash);
    case 'headers':
      return await provider.verify({ ...request, headers: proof.headers }, secret);
  }
}
