import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import type { ParseResult } from '../../src/providers/provider.ts';

export * from '../../tools/provider-payloads.ts';

/** For each provider, the headers with which it proves a body sent at `at`, epoch ms; now by default. */
export const PROOFS = Object.fromEntries(
  PROVIDER_NAMES.map((name) => [
    name,
    (body: Buffer, secret: string, at = Date.now()) => providers[name].sample.sign(body, secret, at),
  ]),
) as Readonly<
  Record<ProviderName, (body: Buffer, secret: string, at?: number) => Readonly<Record<string, string>>>
>;

const ROOT = new URL('../fixtures/providers/', import.meta.url);

/** Returns the names of a provider's fixtures, without the extension. */
export function fixtureNames(provider: string): readonly string[] {
  const files = readdirSync(new URL(`${provider}/`, ROOT));
  return files.map((file) => file.replace(/\.json$/, '')).toSorted();
}

/** Returns the bytes of a fixture. */
export function fixture(provider: string, name: string): Buffer {
  return readFileSync(new URL(`${provider}/${name}.json`, ROOT));
}

/** Returns an event with these fields and no others. It does not use the code that it is compared with. */
export function expectedEvent(
  fields: Pick<NormalizedEvent, 'sourceEventId' | 'kind' | 'occurredAt'> & Partial<NormalizedEvent>,
): NormalizedEvent {
  return {
    environment: 'production',
    productId: null,
    userIds: [],
    onlyAnonymousUserIds: false,
    userKeys: [],
    payment: null,
    adjustment: null,
    paymentAliases: [],
    userLinks: [],
    transfer: null,
    priceUnknown: false,
    ...fields,
  };
}

/** Returns the event of a parse result. Throws the reason when there is none. */
export function eventOf(result: ParseResult): NormalizedEvent {
  if (result.outcome !== 'event') throw new Error(`${result.outcome}: ${result.reason}`);
  return result.event;
}

/** Returns an amount in USD cents as an event states it. */
export function usd(usdCents: number) {
  return { currency: 'USD', amountMinor: usdCents, usdCents };
}

/** The first store fixture's purchase is one day after this, and each further fixture one day later. */
export const STORE_START = 1_772_443_800_000;
/** A store's event is four seconds after the purchase, ms. */
export const STORE_EVENT_DELAY = 4000;

/** Returns the purchase time of a store fixture, by its number. */
export function storeTime(nth: number): number {
  return STORE_START + nth * DAY_MS;
}

/** Returns the expected event of a store fixture, by its number. */
export function readsAs(
  sourceEventId: string,
  nth: number,
  kind: NormalizedEvent['kind'],
  rest: Partial<NormalizedEvent> = {},
): NormalizedEvent {
  return expectedEvent({
    sourceEventId,
    kind,
    occurredAt: storeTime(nth) + STORE_EVENT_DELAY,
    productId: 'lantern.plus.monthly',
    userIds: ['user-hazel'],
    ...rest,
  });
}

/** Returns the expected payment of a store fixture. It counts from the purchase, not from the event. */
export function paidInStore(
  nth: number,
  amount: Pick<NonNullable<NormalizedEvent['payment']>, 'currency' | 'amountMinor' | 'usdCents'>,
  rest: { store?: string; ref?: string } = {},
): Partial<NormalizedEvent> {
  const payment = { store: 'app_store', ref: `70000000000${100 + nth}`, ...amount, ...rest };
  return { occurredAt: storeTime(nth), payment };
}

/** The common fields of all store refunds. */
export const STORE_REFUND = { kind: 'refund', store: 'app_store', state: 'applied', rank: 1 } as const;

/** Returns a fake secret in the provider's form, or null where the service generates the secret. */
export function fakeSecret(provider: ProviderName): string | null {
  switch (provider) {
    case 'revenuecat':
    case 'adapty':
      return null;
    case 'superwall':
      return `whsec_${Buffer.from(`plainly fake ${randomUUID()}`).toString('base64')}`;
    case 'stripe':
      return `whsec_test_${randomUUID()}`;
    case 'paddle':
      return `pdl_ntfset_${randomUUID()}`;
  }
}
