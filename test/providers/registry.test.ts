import { readdirSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { CodeNamespace, PurchaseCode } from '../../src/domain/purchase-codes.ts';
import { isProviderName, PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import { checkProof, proofOf } from '../../src/providers/proof.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { SAMPLE_TIME } from '../../src/providers/shared/sample.ts';
import { withTotalParse } from '../../src/providers/total-parse.ts';
import { anyText } from '../support/any-text.ts';
import { anyBody, nestedFixtures, parsesSafely } from '../support/garbage.ts';
import {
  adaptyEvent,
  bodyOf,
  eventOf,
  fakeSecret,
  PROOFS,
  revenuecatEvent,
  superwallEvent,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import { textOf } from '../support/text-of.ts';

const ALL = Object.values(providers);

// @promise webhook-provider-names, provider-names
test('every provider has its own name in lower case, and no other name is known', () => {
  for (const [name, provider] of Object.entries(providers)) expect(provider.name).toBe(name);
  expect(PROVIDER_NAMES.every((name) => isProviderName(name) && /^[a-z]+$/.test(name))).toBe(true);
  expect(['Stripe', 'toString', '__proto__', ''].some((name) => isProviderName(name))).toBe(false);
});

// @promise provider-names
test('the table of docs/providers.md lists each provider in order, with what its secret needs', () => {
  const proofs = { token: 'static_token', signature: 'hmac' };
  const environments = { optional: 'body', required: 'secret' };
  const rows = textOf('docs/providers.md').matchAll(
    /^\| \[(.+)\]\(providers\/(.+)\.md\) \| `(.+)` \| (?:Svix )?(token|signature) \| .+ \| (optional|required) \|/gm,
  );
  const documented = [...rows].map(([, title, page, name, proof, environment]) => ({
    name,
    page,
    title,
    scheme: proofs[proof as keyof typeof proofs],
    environmentFrom: environments[environment as keyof typeof environments],
  }));
  expect(documented).toEqual(
    ALL.map(({ name, title, scheme, environmentFrom }) => ({
      name,
      page: name,
      title,
      scheme,
      environmentFrom,
    })),
  );
});

test('every provider folder is listed in the table of providers', () => {
  const folders = readdirSync(new URL('../../src/providers/', import.meta.url), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'shared')
    .map(({ name }) => name);
  expect(folders.toSorted()).toEqual([...PROVIDER_NAMES].toSorted());
});

test('the database accepts exactly the provider names', () => {
  const [, domain = ''] = /^create domain provider .*\[(.+)\]/m.exec(textOf('src/db/schema.sql')) ?? [];
  const names = [...domain.matchAll(/'(.+?)'/g)].map(([, name]) => name ?? '');
  expect(names.toSorted()).toEqual([...PROVIDER_NAMES].toSorted());
});

// @promise user-id-field
test('every setup hint names the URL, the secret and the user id', () => {
  for (const { setupHint } of ALL) {
    expect(setupHint).toContain('this URL');
    expect(setupHint).toMatch(/secret/);
    expect(setupHint).toMatch(/user.?id/i);
  }
});

describe.each(ALL.map((provider) => [provider.name, provider] as const))('%s', (_, provider) => {
  // @promise code-providers
  test('its test purchase states a code of each namespace of which its purchases have codes, and none without one', () => {
    const codesOf = (code: PurchaseCode | null) => {
      const purchase = { id: 'test-1', userId: 'user-1', occurredAt: SAMPLE_TIME, cents: 1_000, code };
      const { payload } = provider.sample.sandboxPurchase(purchase);
      return eventOf(provider.parse(bodyOf(payload))).codes.map(({ namespace, value }) => ({
        namespace,
        value,
      }));
    };
    const namespaces = Object.keys(provider.codes) as CodeNamespace[];
    expect(namespaces).not.toEqual([]);
    for (const namespace of namespaces) {
      expect(codesOf({ namespace, value: 'SPRING20' })).toEqual([{ namespace, value: 'SPRING20' }]);
    }
    expect(codesOf(null)).toEqual([]);
  });

  test('no body makes the parser throw or return unsafe money', () => {
    fc.assert(
      fc.property(anyBody(provider), (body) => parsesSafely(provider, body)),
      { numRuns: 400 },
    );
  });

  // @promise unreadable-body-failed
  test('a body of more than 20,000 values, or of values more than 64 levels deep, has failed with its reason', () => {
    const many = JSON.stringify({ event: Array.from({ length: 20_000 }, () => 1) });
    const deep = `{"event":${'['.repeat(64)}${']'.repeat(64)}}`;
    expect(provider.parse(Buffer.from(many))).toEqual(
      expect.objectContaining({ outcome: 'failed', reason: 'the body has more than 20000 values' }),
    );
    expect(provider.parse(Buffer.from(deep))).toEqual(
      expect.objectContaining({
        outcome: 'failed',
        reason: 'the body has values nested more than 64 levels deep',
      }),
    );
  });

  // @promise unreadable-body-failed
  test('a deeply nested value at any place of a body has an outcome', () => {
    for (const [name, body] of nestedFixtures(provider)) {
      let sound: boolean | string;
      try {
        sound = parsesSafely(provider, body);
      } catch (error) {
        sound = String(error);
      }
      expect([name, sound]).toEqual([name, true]);
    }
  });

  test('no headers, body, clock or secret make the verification throw', async () => {
    const text = fc.oneof(fc.string(), anyText, fc.constantFrom('v1,', 't=1', '1', 'ts=1;h1='));
    const value = fc.oneof(text, fc.array(text), fc.constant(undefined));
    const names = fc.constantFrom(...provider.proofHeaders);
    const headers = fc.dictionary(names, value);
    const clock = fc.oneof(fc.integer(), fc.constantFrom(Number.NaN, Infinity, -1));
    const secrets = fc.oneof(text, fc.constantFrom('whsec_', 'whsec_====', 'whsec_a', 'Basic x'));
    await fc.assert(
      fc.asyncProperty(headers, fc.uint8Array(), clock, secrets, async (given, bytes, receivedAt, secret) => {
        // The names of a prototype are not headers.
        const request = { headers: { ...given }, body: Buffer.from(bytes), receivedAt };
        const isToken = provider.scheme === 'static_token' && given['authorization'] === secret;
        expect(await provider.verify(request, secret)).toBe(isToken && secret.trim() !== '');
      }),
    );
  });
});

describe('a parser that throws', () => {
  const broken: Provider = {
    ...providers.stripe,
    parse() {
      throw new RangeError('hazel@example.com has too many items');
    },
  };

  // @promise unreadable-body-failed
  test('the body has failed, with the class of the error and without its message', () => {
    expect(withTotalParse(broken).parse(bodyOf({}))).toEqual({
      outcome: 'failed',
      reason: expect.stringMatching(/a RangeError,.* reprocess/),
    });
  });

  test('a thrown value that is no error fails, too', () => {
    const odd: Provider = {
      ...broken,
      parse() {
        // oxlint-disable-next-line no-throw-literal -- a library may throw anything
        throw 'hazel';
      },
    };
    expect(withTotalParse(odd).parse(bodyOf({}))).toEqual({
      outcome: 'failed',
      reason: expect.stringContaining('an unknown error'),
    });
  });

  test('everything else of the provider is unchanged', () => {
    expect(withTotalParse(broken)).toEqual({ ...broken, parse: expect.any(Function) });
  });
});

/** Returns Svix's headers under the names of Standard Webhooks. */
function underStandardNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.replace('svix', 'webhook'), value]),
  );
}

describe('the stored proof', () => {
  const body = bodyOf({ some: 'body' });
  const at = 1_772_443_800;
  const hasher = {
    tokenHash: (token: string) => `hashed ${token.length}`,
    matchesTokenHash: (token: string, hash: string) => hash === `hashed ${token.length}`,
  };
  const cases = PROVIDER_NAMES.map((name) => {
    const secret = fakeSecret(name) ?? 'token';
    return [name, secret, PROOFS[name](body, secret, at * 1000)] as const;
  });
  const underOtherNames = cases
    .filter(([name]) => name === 'superwall')
    .map(([name, secret, headers]) => [name, secret, underStandardNames(headers)] as const);
  // @promise token-keyed-hash
  test.each([...cases, ...underOtherNames])(
    'the stored proof of %s verifies the delivery again with its secret only',
    async (name, secret, headers) => {
      const provider = providers[name];
      const request = { headers: { ...headers, host: 'example.com' }, body, receivedAt: at * 1000 };
      expect(await provider.verify(request, secret)).toBe(true);
      const proof = proofOf(provider, request, secret, hasher);
      expect(JSON.stringify(proof)).not.toContain('example.com');
      // Only the keyed hash of a token is stored, and a signing secret is never sent.
      expect(JSON.stringify(proof)).not.toContain(`"${secret}"`);
      expect(await checkProof(provider, proof, request, secret, hasher)).toBe(true);
      expect(await checkProof(provider, proof, request, `${secret}zz`, hasher)).toBe(false);
    },
  );
});

test('a repeated header is not part of the stored proof', () => {
  const headers = { authorization: ['token', 'token'], 'stripe-signature': ['t=1,v1=x'] };
  const hasher = { tokenHash: (token: string) => `hashed ${token.length}`, matchesTokenHash: () => false };
  const request = { headers, body: bodyOf({}), receivedAt: 0 };
  expect(proofOf(providers.stripe, request, 'secret', hasher)).toEqual({ kind: 'headers', headers: {} });
  expect(proofOf(providers.adapty, request, 'token', hasher)).toEqual({
    kind: 'token_hash',
    hash: 'hashed 0',
  });
});

// @promise payment-by-store-reference
test('one store purchase is one payment, whichever provider reports it', () => {
  const same = { usd: 9.99, transactionId: '70000000000999' };
  const results = [
    providers.revenuecat.parse(bodyOf(revenuecatEvent({ ...same, store: 'PLAY_STORE' }))),
    providers.adapty.parse(bodyOf(adaptyEvent({ ...same, store: 'play_store' }))),
    providers.superwall.parse(bodyOf(superwallEvent({ ...same, store: 'PLAY_STORE' }))),
  ];
  const [first, ...others] = results.map((result) => eventOf(withoutComponents(result)).payment);
  expect(first).toMatchObject({ store: 'play_store', ref: '70000000000999', usdCents: 999 });
  for (const other of others) expect(other).toEqual(first);
});

describe('the time of a signature', () => {
  const body = Buffer.from('{}');
  const at = 1_790_000_000_000;

  test.each(PROVIDER_NAMES.filter((name) => providers[name].scheme === 'hmac'))(
    '%s states the time of a signature in its headers',
    (name) => {
      const headers = PROOFS[name](body, fakeSecret(name) ?? '', at);
      const { signedAt } = providers[name];
      expect(signedAt?.({ headers, body, receivedAt: 0 })).toBe(at);
      const spoiled = Object.entries(headers).map(([key, value]) => [
        key,
        value.replaceAll('1790000000', 'soon'),
      ]);
      for (const none of [{}, Object.fromEntries(spoiled), { ...headers, ...listsOf(headers) }]) {
        expect(signedAt?.({ headers: none, body, receivedAt: 0 })).toBeNull();
      }
    },
  );

  test.each(PROVIDER_NAMES.filter((name) => providers[name].scheme === 'static_token'))(
    '%s states no time with a token alone',
    (name) => {
      const headers = PROOFS[name](body, fakeSecret(name) ?? '', at);
      expect(providers[name].signedAt?.({ headers, body, receivedAt: 0 }) ?? null).toBeNull();
    },
  );

  /** Returns each header as if it was sent twice. */
  function listsOf(headers: Readonly<Record<string, string>>): Record<string, string[]> {
    return Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, [value, value]]));
  }
});
