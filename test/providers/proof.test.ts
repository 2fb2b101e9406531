import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createSecretBox, SecretUnreadable } from '../../src/config/secret-box.ts';
import { providers } from '../../src/providers/index.ts';
import {
  checkProof,
  checkReconciliation,
  keyIdOf,
  proofOf,
  reconciliationProof,
} from '../../src/providers/proof.ts';
import type { WebhookProof } from '../../src/providers/proof.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { joinSignedToken } from '../../src/providers/shared/signed-token.ts';

const AT = 1_790_000_000_000;
const BODY = Buffer.from('{"event":{}}');
const TOKEN = 'Bearer 5f0c-lantern';
const SIGNING_SECRET = 'a signing secret for tests';
const BOTH = joinSignedToken({ token: TOKEN, signingSecret: SIGNING_SECRET });
const KEY = Buffer.alloc(32, 1);
const box = createSecretBox([KEY]);

const requestOf = (provider: Provider, secret: string) => ({
  headers: { ...provider.sample.sign(BODY, secret, AT), host: 'api.example.com', 'user-agent': 'lantern' },
  body: BODY,
  receivedAt: AT,
});
const stored = (provider: Provider, secret: string) =>
  proofOf(provider, requestOf(provider, secret), secret, box);
const proves = async (
  provider: Provider,
  proof: WebhookProof,
  secret: string,
  { body = BODY, hasher = box } = {},
) => await checkProof(provider, proof, { body, receivedAt: AT }, secret, hasher);

describe('the proof of a webhook that its provider signs', () => {
  const secret = 'whsec_of_a_test_that_is_long_enough';
  const proof = () => stored(providers.stripe, secret);

  test('is its signature, without any other header', () => {
    const signature = providers.stripe.sample.sign(BODY, secret, AT)['stripe-signature'];
    expect(proof()).toEqual({ kind: 'headers', headers: { 'stripe-signature': signature } });
  });

  test('needs no key of the service', () => {
    expect(keyIdOf(proof())).toBeNull();
  });

  test('is verified again with its secret and its body only', async () => {
    expect(await proves(providers.stripe, proof(), secret)).toBe(true);
    expect(await proves(providers.stripe, proof(), `${secret}x`)).toBe(false);
    expect(await proves(providers.stripe, proof(), secret, { body: Buffer.from('{"event":[]}') })).toBe(
      false,
    );
  });
});

describe.each([
  ['RevenueCat', providers.revenuecat],
  ['Adapty', providers.adapty],
])('the proof of a webhook of %s with a token alone', (_, provider) => {
  const proof = () => stored(provider, TOKEN);

  test('is the keyed hash of the token, which names its key', () => {
    expect(proof()).toEqual({ kind: 'token_hash', hash: box.tokenHash(TOKEN) });
    expect(keyIdOf(proof())).toBe(box.keyIds[0]);
  });

  test('is verified again with its token only', async () => {
    expect(await proves(provider, proof(), TOKEN)).toBe(true);
    expect(await proves(provider, proof(), `${TOKEN}x`)).toBe(false);
  });

  test('is verified with another first key as long as the service has the key of the hash', async () => {
    const other = Buffer.alloc(32, 2);
    expect(await proves(provider, proof(), TOKEN, { hasher: createSecretBox([other, KEY]) })).toBe(true);
    await expect(proves(provider, proof(), TOKEN, { hasher: createSecretBox([other]) })).rejects.toThrow(
      SecretUnreadable,
    );
  });
});

describe('the proof of a webhook of RevenueCat with a token and a signature', () => {
  const provider = providers.revenuecat;
  const proof = () => stored(provider, BOTH);
  const { authorization: _, ...signature } = provider.sample.sign(BODY, BOTH, AT);

  test('is the keyed hash of both secrets and the header of the signature, without the token', () => {
    expect(Object.keys(signature)).toEqual(['x-revenuecat-webhook-signature']);
    expect(proof()).toEqual({ kind: 'token_hash', hash: box.tokenHash(BOTH), headers: signature });
  });

  test('is verified again with both secrets and its body only', async () => {
    expect(await proves(provider, proof(), BOTH)).toBe(true);
    expect(await proves(provider, proof(), TOKEN)).toBe(false);
    expect(await proves(provider, proof(), joinSignedToken({ token: TOKEN, signingSecret: 'x' }))).toBe(
      false,
    );
    expect(await proves(provider, proof(), BOTH, { body: Buffer.from('{"event":[]}') })).toBe(false);
  });

  test('needs the signature even where the hash of both secrets is right', async () => {
    const hash = box.tokenHash(BOTH);
    expect(await proves(provider, { kind: 'token_hash', hash }, BOTH)).toBe(false);
    expect(await proves(provider, { kind: 'token_hash', hash, headers: signature }, BOTH)).toBe(true);
  });
});

describe('the proof of a body that the operator made from an export', () => {
  const of = (fields: object) => ({
    appId: 'app_1',
    provider: 'stripe',
    bodySha256: createHash('sha256').update(BODY).digest(),
    ...fields,
  });
  const proof = () => reconciliationProof(of({}), box);

  test('is accepted for this body of this app and this provider only', () => {
    expect(proof().kind).toBe('reconciliation');
    expect(checkReconciliation(proof(), of({}), box)).toBe(true);
    expect(checkReconciliation(proof(), of({ appId: 'app_2' }), box)).toBe(false);
    expect(checkReconciliation(proof(), of({ provider: 'paddle' }), box)).toBe(false);
    const otherSha256 = createHash('sha256').update('{"event":[]}').digest();
    expect(checkReconciliation(proof(), of({ bodySha256: otherSha256 }), box)).toBe(false);
  });

  test('is refused if it was made with a key that is not one of the service', () => {
    const forged = reconciliationProof(of({}), createSecretBox([Buffer.alloc(32, 2)]));
    expect(() => checkReconciliation(forged, of({}), box)).toThrow(SecretUnreadable);
  });

  test('stays valid in later versions, which hash the same text', () => {
    const hash = box.tokenHash(
      'tributary reconciliation app_1 stripe 1face795aa72da7c2953de2607cdaf314c0ec26d36ced15422c7a7582b85cb2a',
    );
    expect(checkReconciliation({ kind: 'reconciliation', hash }, of({}), box)).toBe(true);
  });
});
