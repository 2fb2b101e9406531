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

/** The names of a provider's fixtures, without their ending. */
export function fixtureNames(provider: string): readonly string[] {
  const files = readdirSync(new URL(`${provider}/`, ROOT));
  return files.map((file) => file.replace(/\.json$/, '')).toSorted();
}

/** A fixture's bytes, as they would arrive. */
export function fixture(provider: string, name: string): Buffer {
  return readFileSync(new URL(`${provider}/${name}.json`, ROOT));
}

/** An event that says this and nothing else. Written apart from the code that it is compared with. */
export function expectedEvent(
  says: Pick<NormalizedEvent, 'sourceEventId' | 'kind' | 'occurredAt'> & Partial<NormalizedEvent>,
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
    ...says,
  };
}

/** The event that a body was read as; throws with the reason when it was not. */
export function eventOf(result: ParseResult): NormalizedEvent {
  if (result.outcome !== 'event') throw new Error(`${result.outcome}: ${result.reason}`);
  return result.event;
}

/** The same amount in cents and in USD, as an event states it. */
export function usd(usdCents: number) {
  return { currency: 'USD', amountMinor: usdCents, usdCents };
}

/** The first fixture's purchase in a store is made one day after this; each further fixture is a day later. */
export const STORE_START = 1_772_443_800_000;
/** Events of a store are told of four seconds after the purchase. */
export const STORE_TOLD = 4000;

/** When the purchase of the fixture of that number was made. */
export function storeTime(nth: number): number {
  return STORE_START + nth * DAY_MS;
}

/** The store fixture of that number as it should read, but for what is given. */
export function readsAs(
  sourceEventId: string,
  nth: number,
  kind: NormalizedEvent['kind'],
  rest: Partial<NormalizedEvent> = {},
): NormalizedEvent {
  return expectedEvent({
    sourceEventId,
    kind,
    occurredAt: storeTime(nth) + STORE_TOLD,
    productId: 'lantern.plus.monthly',
    userIds: ['user-hazel'],
    ...rest,
  });
}

/** The money of a store fixture counts from the purchase, not from the message. */
export function paidInStore(
  nth: number,
  amount: Pick<NonNullable<NormalizedEvent['payment']>, 'currency' | 'amountMinor' | 'usdCents'>,
  rest: { store?: string; ref?: string } = {},
): Partial<NormalizedEvent> {
  const payment = { store: 'app_store', ref: `70000000000${100 + nth}`, ...amount, ...rest };
  return { occurredAt: storeTime(nth), payment };
}

/** What all refunds of a store have in common. */
export const STORE_REFUND = { kind: 'refund', store: 'app_store', state: 'applied', rank: 1 } as const;

/** A secret of the form that the provider gives out, plainly fake. Null where this service makes it. */
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
