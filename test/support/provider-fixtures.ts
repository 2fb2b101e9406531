import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import type { ParseResult } from '../../src/providers/provider.ts';

import {
  adaptyEvent,
  adaptyRefund,
  paddleAdjustment,
  paddleTransaction,
  revenuecatEvent,
  revenuecatRefund,
  stripeInvoicePaid,
  stripeRefund,
  superwallEvent,
  superwallRefund,
} from '../../tools/provider-payloads.ts';
import type { Payload } from '../../tools/provider-payloads.ts';

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
    anonymousUserIds: [],
    userKeys: [],
    payment: null,
    codes: [],
    subscriptionCodes: [],
    adjustment: null,
    paymentAliases: [],
    userLinks: [],
    transfer: null,
    priceUnknown: false,
    ...fields,
  };
}

/** Leaves out what an event states about the parts of its payment: test/providers/payment-components.test.ts checks them all. */
export function withoutComponents(result: ParseResult): ParseResult {
  if (result.outcome === 'failed' || result.event?.payment == null) return result;
  const { components: _, ...payment } = result.event.payment;
  return { ...result, event: { ...result.event, payment } };
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
  { subscription, ...rest }: { store?: string; ref?: string; subscription?: string } = {},
): Partial<NormalizedEvent> {
  const payment = { store: 'app_store', ref: `70000000000${100 + nth}`, ...amount, ...rest };
  return {
    occurredAt: storeTime(nth),
    payment,
    userKeys: [`${payment.store}:${subscription ?? payment.ref}`],
  };
}

/** The common fields of all store refunds. */
export const STORE_REFUND = { kind: 'refund', store: 'app_store', state: 'applied', rank: 1 } as const;

/** A sale that every provider can report. */
export interface Sale {
  readonly userId: string;
  readonly cents: number;
  /** The common part of the provider's ids. */
  readonly ref: string;
  readonly occurredAt: number;
}

interface ProviderPayloads {
  readonly purchase: (sale: Sale, isSandbox: boolean) => Payload;
  readonly refund: (sale: Sale) => Payload;
  /** Returns a new fake secret in the provider's form, or null where Tributary generates it. */
  readonly newSecret: () => string | null;
}

/** The events of a sale and its refund in each provider's format. */
export const PAYLOADS: Readonly<Record<ProviderName, ProviderPayloads>> = {
  revenuecat: {
    purchase: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      revenuecatEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'SANDBOX' : 'PRODUCTION',
      }),
    refund: ({ cents, ref: transactionId, ...sale }) =>
      revenuecatRefund({ ...sale, transactionId, usd: cents / 100 }),
    newSecret: () => null,
  },
  adapty: {
    purchase: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      adaptyEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'Sandbox' : 'Production',
      }),
    refund: ({ cents, ref: transactionId, ...sale }) =>
      adaptyRefund({ ...sale, transactionId, usd: cents / 100 }),
    newSecret: () => null,
  },
  superwall: {
    purchase: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      superwallEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'SANDBOX' : 'PRODUCTION',
      }),
    refund: ({ cents, ref: transactionId, ...sale }) =>
      superwallRefund({ ...sale, transactionId, usd: cents / 100 }),
    newSecret: () => `whsec_${Buffer.from(`plainly fake ${randomUUID()}`).toString('base64')}`,
  },
  stripe: {
    purchase: ({ cents: amount, ref, ...sale }, isSandbox) =>
      stripeInvoicePaid({
        ...sale,
        amount,
        invoiceId: `in_${ref}`,
        environment: isSandbox ? 'sandbox' : 'production',
        legacy: { chargeId: `ch_${ref}`, paymentIntentId: `pi_${ref}` },
      }),
    refund: ({ cents: amount, ref, occurredAt }) =>
      stripeRefund({ amount, paymentIntentId: `pi_${ref}`, occurredAt }),
    newSecret: () => `whsec_test_${randomUUID()}`,
  },
  paddle: {
    purchase: ({ cents: amount, ref, ...sale }, simulated) =>
      paddleTransaction({ ...sale, amount, transactionId: `txn_${ref}`, simulated }),
    refund: ({ cents: amount, ref, occurredAt }) =>
      paddleAdjustment({ amount, transactionId: `txn_${ref}`, occurredAt }),
    newSecret: () => `pdl_ntfset_${randomUUID()}`,
  },
};

/** Returns a new fake secret in the provider's form, or null where Tributary generates it. */
export function fakeSecret(provider: ProviderName): string | null {
  return PAYLOADS[provider].newSecret();
}

/** Adds fields to the object of an event. */
export function withFields(body: Payload, path: readonly string[], fields: object): Payload {
  const [first, ...rest] = path;
  if (first === undefined) return { ...body, ...fields };
  return { ...body, [first]: withFields(body[first] as Payload, rest, fields) };
}
