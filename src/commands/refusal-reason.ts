import { SIGNED_AT_ANOTHER_TIME } from '../providers/proof.ts';
import type { Provider, SignedRequest } from '../providers/provider.ts';
import { secureCompare } from '../providers/shared/secure-compare.ts';
import { splitSignedToken } from '../providers/shared/signed-token.ts';

/** Returns why no secret verifies a request. `texts` are the secrets, decrypted. */
export async function refusalReason(
  provider: Provider,
  request: SignedRequest,
  texts: readonly string[],
): Promise<string> {
  if (texts.length === 0) return 'no webhook secret is set for this provider';
  return (
    (await clockReason(provider, request, texts)) ??
    (await bearerReason(provider, request, texts)) ??
    signatureReason(provider, request, texts) ??
    'the signature or token does not match'
  );
}

/** Returns whether one of the secrets verifies a request. */
async function isProvedByOne(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly string[],
): Promise<boolean> {
  const verified = await Promise.all(secrets.map(async (secret) => await provider.verify(request, secret)));
  return verified.includes(true);
}

/**
 * Returns why a request with a correct signature is refused: the signed time is too far from the server's clock. Null if
 * the signature is wrong or states no time. Only the app's own account can read it.
 */
async function clockReason(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly string[],
): Promise<string | null> {
  const at = provider.signedAt?.(request) ?? null;
  // On time, the signature itself is wrong, and was compared already.
  if (at === null || provider.isOnTime?.(request) === true) return null;
  const isRight = await isProvedByOne(provider, { ...request, receivedAt: at }, secrets);
  const seconds = Math.round(Math.abs(request.receivedAt - at) / 1000);
  return isRight
    ? `${SIGNED_AT_ANOTHER_TIME} ${seconds} s ${at < request.receivedAt ? 'before' : 'after'} this server's time: synchronize its clock`
    : null;
}

const BEARER = 'Bearer ';

/** Returns the reason for a token that would be right with or without `Bearer ` in front of it, or null. */
async function bearerReason(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly string[],
): Promise<string | null> {
  const { authorization } = request.headers;
  if (provider.scheme !== 'static_token' || typeof authorization !== 'string') return null;
  const hasBearer = authorization.startsWith(BEARER);
  const other = hasBearer ? authorization.slice(BEARER.length) : BEARER + authorization;
  const headers = { ...request.headers, authorization: other };
  if (!(await isProvedByOne(provider, { ...request, headers }, secrets))) return null;
  return hasBearer
    ? 'the token was sent with "Bearer " in front of it: enter it in the provider\'s dashboard without "Bearer "'
    : 'the token was sent without "Bearer " in front of it: enter it in the provider\'s dashboard with "Bearer "';
}

/** Returns the reason for a right token without the signature that its secret needs, or null. */
function signatureReason(
  provider: Provider,
  { headers }: SignedRequest,
  secrets: readonly string[],
): string | null {
  const { authorization } = headers;
  if (provider.bodySignature === undefined || typeof authorization !== 'string') return null;
  if (!secrets.some((secret) => secureCompare(splitSignedToken(secret).token, authorization))) return null;
  return provider.bodySignature.headers.some((name) => headers[name] !== undefined)
    ? 'the token is right, and the signature is not made with the signing secret that is stored here'
    : `the token is right, and the signature is missing: no header ${provider.bodySignature.headers.join(' or ')}`;
}
