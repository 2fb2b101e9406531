import type { Provider, SignedRequest } from './provider.ts';
import { splitSignedToken } from './shared/signed-token.ts';
import { TOKEN_HEADER } from './shared/static-token.ts';

/**
 * What proves a stored webhook: its signature headers, or the keyed hash of its static token, never the token itself. A token with a
 * signature beside it has the hash of both secrets, and the signature's headers.
 */
export type WebhookProof =
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: 'token_hash';
      readonly hash: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** Proves that the operator made a body from the provider's export: a keyed hash over the app, the provider and the body. */
export interface ReconciliationProof {
  readonly kind: 'reconciliation';
  readonly hash: string;
}

/** What proves a stored delivery. */
export type Proof = WebhookProof | ReconciliationProof;

/** The start of the reason for refusing a request whose signature is correct and whose time is outside the tolerance. */
export const SIGNED_AT_ANOTHER_TIME = 'the signature is correct, but was made';

/** Keyed hashing of tokens, as the secret box implements it. */
export interface TokenHasher {
  tokenHash(token: string): string;
  /** Throws if the key of the hash is missing. */
  matchesTokenHash(token: string, hash: string): boolean;
}

/** Returns the id of the key with which the token of a webhook is hashed. Null if its proof needs no key. */
export function keyIdOf(proof: WebhookProof): string | null {
  return proof.kind === 'token_hash' ? (proof.hash.split(':')[0] ?? null) : null;
}

/** Returns those of the named headers that a request has once. */
function pickHeaders(request: SignedRequest, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = request.headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

/** Returns what to store of a request that `verify` accepted under `secret`, so that it can be verified again at any later time. */
export function proofOf(
  provider: Provider,
  request: SignedRequest,
  secret: string,
  hasher: TokenHasher,
): WebhookProof {
  const headers = pickHeaders(request, provider.proofHeaders);
  if (provider.scheme !== 'static_token') return { kind: 'headers', headers };
  if (provider.bodySignature === undefined || splitSignedToken(secret).signingSecret === null) {
    return { kind: 'token_hash', hash: hasher.tokenHash(Object.values(headers).join('\n')) };
  }
  const signature = pickHeaders(request, provider.bodySignature.headers);
  return { kind: 'token_hash', hash: hasher.tokenHash(secret), headers: signature };
}

/** The body that the proof of a reconciliation covers, and whose it is. */
interface ReconciledBody {
  readonly appId: string;
  readonly provider: string;
  readonly bodySha256: Uint8Array;
}

function reconciliationText({ appId, provider, bodySha256 }: ReconciledBody): string {
  return `tributary reconciliation ${appId} ${provider} ${Buffer.from(bodySha256).toString('hex')}`;
}

/** Returns the proof that the operator, who has the keys of the secret box, made a body from an export. */
export function reconciliationProof(body: ReconciledBody, hasher: TokenHasher): ReconciliationProof {
  return { kind: 'reconciliation', hash: hasher.tokenHash(reconciliationText(body)) };
}

/** Returns whether the operator made a body from an export. `bodySha256` is that of the stored body. */
export function checkReconciliation(
  proof: ReconciliationProof,
  body: ReconciledBody,
  hasher: TokenHasher,
): boolean {
  return hasher.matchesTokenHash(reconciliationText(body), proof.hash);
}

/** Returns whether `secret` still proves a stored delivery, as of the time of receipt. */
export async function checkProof(
  provider: Provider,
  proof: WebhookProof,
  request: Omit<SignedRequest, 'headers'>,
  secret: string,
  hasher: TokenHasher,
): Promise<boolean> {
  switch (proof.kind) {
    case 'token_hash': {
      if (!hasher.matchesTokenHash(secret, proof.hash)) return false;
      const { token, signingSecret } = splitSignedToken(secret);
      if (provider.bodySignature === undefined || signingSecret === null) return true;
      const headers = { ...proof.headers, [TOKEN_HEADER]: token };
      return await provider.verify({ ...request, headers }, secret);
    }
    case 'headers':
      return await provider.verify({ ...request, headers: proof.headers }, secret);
  }
}
