import type { Provider, SignedRequest } from './provider.ts';

/** What proves a stored delivery: signature headers, or the keyed hash of a static token (never the token itself). */
export type Proof =
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'token_hash'; readonly hash: string };

/** How the reason begins of a request whose signature is right and whose time is not. */
export const RIGHT_AT_ANOTHER_TIME = 'the signature is right, but of a time';

/** Keyed hashing of tokens, as the secret box does it. */
export interface TokenHasher {
  tokenHash(token: string): string;
  matchesTokenHash(token: string, hash: string): boolean;
}

/** What to keep of a request that `verify` accepted, so that it can be checked again however late. */
export function keepProof(provider: Provider, request: SignedRequest, hasher: TokenHasher): Proof {
  const headers: Record<string, string> = {};
  for (const name of provider.proofHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  if (provider.scheme !== 'static_token') return { kind: 'headers', headers };
  return { kind: 'token_hash', hash: hasher.tokenHash(Object.values(headers).join('\n')) };
}

/** Whether the kept proof and bytes are still proved by `secret`, as of the time of receipt. */
export function checkProof(
  provider: Provider,
  proof: Proof,
  request: Omit<SignedRequest, 'headers'>,
  secret: string,
  hasher: TokenHasher,
): boolean {
  switch (proof.kind) {
    case 'token_hash':
      return hasher.matchesTokenHash(secret, proof.hash);
    case 'headers':
      return provider.verify({ ...request, headers: proof.headers }, secret);
  }
}
