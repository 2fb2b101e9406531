import { createHash, randomBytes, randomInt } from 'node:crypto';
import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/provider.ts';
import {
  adaptyEvent,
  bodyOf,
  paddleTransaction,
  PROOFS,
  revenuecatEvent,
  stripeInvoicePaid,
  superwallEvent,
} from './provider-samples.ts';
import type { Payload } from './provider-samples.ts';

/** What the ids of a self-test begin with, so that a person who meets one knows it. */
export const SELF_TEST_PREFIX = 'tributary_self_test_';

/** A made-up purchase in a provider's own words. */
export interface Sample {
  readonly sourceEventId: string;
  readonly userId: string;
  readonly amountCents: number;
  readonly body: Buffer;
}

/** Purchases of any price up to this, so that what is read can't be right by accident. */
const MOST_CENTS = 10_000;

interface Sale {
  readonly eventId: string;
  readonly transactionId: string;
  readonly userId: string;
  readonly occurredAt: number;
  readonly cents: number;
}

/** How each provider tells of a purchase in its sandbox. Paddle has no mark but that of its simulator. */
const SANDBOX_SALES: Readonly<Record<ProviderName, (sale: Sale) => Payload>> = {
  revenuecat: ({ cents, ...sale }) => revenuecatEvent({ ...sale, usd: cents / 100, environment: 'SANDBOX' }),
  adapty: ({ cents, ...sale }) => adaptyEvent({ ...sale, usd: cents / 100, environment: 'Sandbox' }),
  superwall: ({ cents, ...sale }) => superwallEvent({ ...sale, usd: cents / 100, environment: 'SANDBOX' }),
  stripe: ({ cents: amount, transactionId: invoiceId, ...sale }) =>
    stripeInvoicePaid({ ...sale, amount, invoiceId, environment: 'sandbox' }),
  paddle: ({ cents: amount, ...sale }) => paddleTransaction({ ...sale, amount }),
};

/** A new purchase in the provider's sandbox at `at`, epoch ms. Its random part stands in no other body. */
export function newSample(provider: ProviderName, at: number): Sample {
  const nonce = randomBytes(16).toString('hex');
  const own = `${SELF_TEST_PREFIX}${nonce}`;
  // What Paddle's simulator makes begins like this, which is the only mark of a sandbox in Paddle's bodies.
  const sourceEventId = provider === 'paddle' ? `ntfsimevt_${own}` : own;
  const sale = {
    eventId: sourceEventId,
    transactionId: own,
    userId: `${SELF_TEST_PREFIX}user_${nonce}`,
    occurredAt: at,
    cents: randomInt(100, MOST_CENTS),
  };
  const body = bodyOf(SANDBOX_SALES[provider](sale));
  return { sourceEventId, userId: sale.userId, amountCents: sale.cents, body };
}

/** The SHA-256 of a body, by which it is announced. */
export function sha256Of(body: Buffer): Buffer {
  return createHash('sha256').update(body).digest();
}

function withOtherEnd(text: string): string {
  return `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`;
}

/**
 * A request whose proof does not fit it by one character. A signature covers the body, so another user is named than was
 * signed; a token covers nothing, so the token is another.
 */
export function tamper(
  provider: ProviderName,
  { body, userId }: Sample,
  secret: string,
  at: number,
): { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> } {
  if (providers[provider].scheme === 'static_token') {
    return { body, headers: PROOFS[provider](body, withOtherEnd(secret), at) };
  }
  const tampered = Buffer.from(body.toString().replace(userId, withOtherEnd(userId)));
  return { body: tampered, headers: PROOFS[provider](body, secret, at) };
}
