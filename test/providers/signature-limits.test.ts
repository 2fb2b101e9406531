import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { paddle } from '../../src/providers/paddle/index.ts';
import { stripe } from '../../src/providers/stripe/index.ts';
import { superwall } from '../../src/providers/superwall/index.ts';

const BODY = Buffer.from('{"no": "provider sends this"}');
const AT = 1_780_000_000;
const hmac = (secret: string | Buffer, text: string) =>
  createHmac('sha256', secret).update(text).update(BODY);

const KEY = randomBytes(24);
const SCHEMES = [
  {
    provider: stripe,
    secret: 'whsec_of_a_test_that_is_long_enough',
    headers: (signatures: readonly string[]) => ({
      'stripe-signature': [`t=${AT}`, ...signatures.map((signature) => `v1=${signature}`)].join(','),
    }),
    right: (secret: string) => hmac(secret, `${AT}.`).digest('hex'),
  },
  {
    provider: paddle,
    secret: 'pdl_ntfset_of_a_test_that_is_long_enough',
    headers: (signatures: readonly string[]) => ({
      'paddle-signature': [`ts=${AT}`, ...signatures.map((signature) => `h1=${signature}`)].join(';'),
    }),
    right: (secret: string) => hmac(secret, `${AT}:`).digest('hex'),
  },
  {
    provider: superwall,
    secret: `whsec_${KEY.toString('base64')}`,
    headers: (signatures: readonly string[]) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': String(AT),
      'svix-signature': signatures.map((signature) => `v1,${signature}`).join(' '),
    }),
    right: () => hmac(KEY, `msg_1.${AT}.`).digest('base64'),
  },
].map((scheme) => [scheme.provider.name, scheme] as const);

describe.each(SCHEMES)('%s', (_, { provider, secret, headers, right }) => {
  const verify = async (signatures: readonly string[]) =>
    await provider.verify({ headers: headers(signatures), body: BODY, receivedAt: AT * 1000 }, secret);

  // @promise signature-list-bounded
  test('the right signature is found among ten, and a header with eleven is refused', async () => {
    expect(await verify([...Array.from({ length: 9 }, () => 'x'), right(secret)])).toBe(true);
    expect(await verify([right(secret), ...Array.from({ length: 10 }, () => 'x')])).toBe(false);
  });

  test('a request whose time is outside the tolerance is refused without reading its body', async () => {
    let reads = 0;
    const request = {
      headers: headers([right(secret)]),
      get body() {
        reads += 1;
        return BODY;
      },
    };
    expect(await provider.verify({ ...request, body: BODY, receivedAt: AT * 1000 }, secret)).toBe(true);
    const late = Object.defineProperty({ headers: request.headers, receivedAt: (AT + 301) * 1000 }, 'body', {
      get: () => request.body,
    }) as unknown as Parameters<typeof provider.verify>[0];
    reads = 0;
    expect(await provider.verify(late, secret)).toBe(false);
    expect(provider.isOnTime?.(late)).toBe(false);
    expect(reads).toBe(0);
  });

  // @promise signature-list-bounded
  test('a signature header of more than 1 KiB is refused', async () => {
    const short = headers([right(secret), 'y']);
    const room = 1024 - Math.max(...Object.values(short).map((value) => value.length));
    expect(await verify([right(secret), 'y'.repeat(room + 1)])).toBe(true);
    expect(await verify([right(secret), 'y'.repeat(room + 2)])).toBe(false);
  });

  test('a request is on time only if its headers state a time within the tolerance', () => {
    const isOnTime = (receivedAt: number, sent: Readonly<Record<string, string>>) =>
      provider.isOnTime?.({ headers: sent, body: BODY, receivedAt });
    expect(isOnTime(AT * 1000, headers(['x']))).toBe(true);
    expect(isOnTime((AT + 301) * 1000, headers(['x']))).toBe(false);
    for (const receivedAt of [AT * 1000, 0]) expect(isOnTime(receivedAt, {})).toBe(false);
  });
});
