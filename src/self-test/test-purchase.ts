import { createHash, randomBytes, randomInt } from 'node:crypto';
import type { PurchaseCode } from '../domain/purchase-codes.ts';
import { providers } from '../providers/index.ts';
import { joinSignedToken, splitSignedToken } from '../providers/shared/signed-token.ts';
import type { ProviderName } from '../providers/index.ts';
import { bodyOf } from '../providers/shared/sample.ts';

/** The prefix of the ids of a self-test, so that a person who meets one recognizes it. */
const SELF_TEST_PREFIX = 'tributary_self_test_';

/** A test purchase in a provider's format. */
export interface Purchase {
  readonly sourceEventId: string;
  readonly userId: string;
  readonly amountCents: number;
  readonly body: Buffer;
}

/** Prices vary up to this, so that an amount is never read correctly by accident. */
const MAX_PRICE_CENTS = 10_000;

/** Returns a new purchase in the provider's sandbox at `at`, epoch ms, with a code. Its ids are random, so its body is unique. */
export function newPurchase(provider: ProviderName, at: number, code: PurchaseCode | null = null): Purchase {
  const nonce = randomBytes(16).toString('hex');
  const userId = `${SELF_TEST_PREFIX}user_${nonce}`;
  const cents = randomInt(100, MAX_PRICE_CENTS);
  const { sourceEventId, payload } = providers[provider].sample.sandboxPurchase({
    id: `${SELF_TEST_PREFIX}${nonce}`,
    userId,
    occurredAt: at,
    cents,
    code,
  });
  return { sourceEventId, userId, amountCents: cents, body: bodyOf(payload) };
}

/** Returns the SHA-256 of a body, by which it is announced. */
export function sha256Of(body: Buffer): Buffer {
  return createHash('sha256').update(body).digest();
}

function withOtherEnd(text: string): string {
  return `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`;
}

/**
 * Returns a request whose proof is wrong by one character. A signature covers the body, so the body names another user
 * than was signed; a token covers nothing, so the token differs.
 */
export function tamperedRequest(
  provider: ProviderName,
  { body, userId }: Purchase,
  secret: string,
  at: number,
): { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> } {
  const { scheme, sample } = providers[provider];
  if (scheme === 'static_token') {
    const { token, signingSecret } = splitSignedToken(secret);
    const other = joinSignedToken({ token: withOtherEnd(token), signingSecret });
    return { body, headers: sample.sign(body, other, at) };
  }
  const tampered = Buffer.from(body.toString().replace(userId, withOtherEnd(userId)));
  return { body: tampered, headers: sample.sign(body, secret, at) };
}
