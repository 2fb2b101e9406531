/**
 * What the providers' samples have in common. A sample is a body as the provider sends it, with generated values, and the
 * headers that prove it. The self-test posts samples; the tests and the demo use them too. Every id that the caller does
 * not give is new, so that two bodies never share one by accident.
 */
import { randomUUID } from 'node:crypto';
import type { PurchaseCode } from '../../domain/purchase-codes.ts';

/** A JSON object to send. */
export type Payload = Readonly<Record<string, unknown>>;

/** What the self-test decides about its test purchase. */
export interface TestPurchase {
  /** Unique; the provider's own ids are made from it. */
  readonly id: string;
  readonly userId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** US cents. */
  readonly cents: number;
  /** The code that the customer entered, in a namespace whose codes the provider states. Null: none. */
  readonly code: PurchaseCode | null;
}

/** A provider's test purchase for the self-test. */
export interface ProviderSample {
  /** Builds the event of a purchase in the provider's sandbox. `sourceEventId` is the event id as the parser reads it. */
  sandboxPurchase(purchase: TestPurchase): { readonly sourceEventId: string; readonly payload: Payload };
  /** Returns the headers with which the provider would prove `body` at `at`, epoch ms. */
  sign(body: Buffer, secret: string, at: number): Readonly<Record<string, string>>;
}

/** Returns the bytes that a provider would send. */
export function bodyOf(payload: Payload): Buffer {
  return Buffer.from(JSON.stringify(payload));
}

/** Returns a new id as Stripe, Paddle and Svix form them. */
export function newProviderId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** Returns a new transaction id as the App Store forms them. */
export function storeTransactionId(): string {
  return `9${randomUUID().replaceAll(/\D/g, '').padEnd(14, '7').slice(0, 14)}`;
}

/** Epoch milliseconds in whole epoch seconds. */
export function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** The time of a sample that is given none: Monday, 2026-03-02T09:30:00Z. */
export const SAMPLE_TIME = 1_772_443_800_000;

const APPROXIMATE_USD_RATES: Readonly<Record<string, number>> = { USD: 1, EUR: 1.1, JPY: 0.0067, KWD: 3.25 };

/** Returns the price in `currency` at a rough rate; null for null. */
export function approximateLocalPrice(usd: number | null, currency: string | null): number | null {
  const rate = APPROXIMATE_USD_RATES[currency ?? 'USD'] ?? 1;
  return usd === null ? null : Math.round((usd / rate) * 100) / 100;
}
