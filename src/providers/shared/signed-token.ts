import type { SignedRequest } from '../provider.ts';
import { verifyStaticToken } from './static-token.ts';
import { verifyTimestampedHmac } from './timestamped-hmac.ts';
import type { TimestampedHmacScheme } from './timestamped-hmac.ts';

/** What proves the webhooks of a provider that sends a token, and signs its bodies as well where the founder switches it on. */
export interface SignedToken {
  /** The whole `Authorization` value. */
  readonly token: string;
  /** The key of the signatures. Null: bodies need no signature. */
  readonly signingSecret: string | null;
}

/** No secret that the API accepts contains a line feed. */
const SEPARATOR = '\n';

/** Returns both secrets as the one text that is stored encrypted. Without a signing secret it is the token. */
export function joinSignedToken({ token, signingSecret }: SignedToken): string {
  return signingSecret === null ? token : token + SEPARATOR + signingSecret;
}

/** Reads what `joinSignedToken` made. */
export function splitSignedToken(secret: string): SignedToken {
  const at = secret.indexOf(SEPARATOR);
  return at === -1
    ? { token: secret, signingSecret: null }
    : { token: secret.slice(0, at), signingSecret: secret.slice(at + 1) };
}

/** Returns the scheme whose header a request has, the first one if it has none. */
export function schemeOf(
  { headers }: Pick<SignedRequest, 'headers'>,
  [first, ...others]: readonly [TimestampedHmacScheme, ...TimestampedHmacScheme[]],
): TimestampedHmacScheme {
  if (headers[first.header] !== undefined) return first;
  return others.find(({ header }) => headers[header] !== undefined) ?? first;
}

/** Returns whether a request carries the token and, if a signing secret is set, a signature of one of the schemes. Never rejects. */
export async function verifySignedToken(
  request: SignedRequest,
  secret: string,
  schemes: readonly [TimestampedHmacScheme, ...TimestampedHmacScheme[]],
): Promise<boolean> {
  const { token, signingSecret } = splitSignedToken(secret);
  if (!(await verifyStaticToken(request, token))) return false;
  return (
    signingSecret === null ||
    (await verifyTimestampedHmac(request, signingSecret, schemeOf(request, schemes)))
  );
}
