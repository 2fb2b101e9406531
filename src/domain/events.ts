import { share } from './money.ts';
import type { PurchaseCodeFact, SubscriptionCodeFact } from './purchase-codes.ts';

/** Parts per million. */
export const PPM = 1_000_000;

/** The kinds of events that billing providers report (docs/contract.md, "Events"). */
export const EVENT_KINDS = [
  'purchase',
  'renewal',
  'trial_started',
  'trial_converted',
  'product_change',
  'cancellation',
  'expiration',
  'refund',
  'refund_reversed',
  'chargeback',
  'chargeback_reversed',
  'transfer',
  'test',
  'other',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** The kinds that report a payment. */
export const PAYMENT_KINDS: ReadonlySet<EventKind> = new Set([
  'purchase',
  'renewal',
  'trial_converted',
  'product_change',
]);

/** The kinds that report a refund, a dispute, or the end of one. */
export const ADJUSTMENT_KINDS: ReadonlySet<EventKind> = new Set([
  'refund',
  'refund_reversed',
  'chargeback',
  'chargeback_reversed',
]);

export const ENVIRONMENTS = ['production', 'sandbox'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** An amount as the provider states it. */
export interface OriginalAmount {
  /** ISO 4217, upper case. */
  readonly currency: string;
  /** Whole minor units of `currency` (cents, yen, fils), never negative. */
  readonly amountMinor: number;
  /** The same amount in US cents if the provider states it. Null if it must be converted at a reference rate. */
  readonly usdCents: number | null;
}

/**
 * A part of a payment that does not reach the app: an amount that the provider states, in whole minor units of the payment's
 * currency, or an estimated share of the amount in parts per million.
 */
export type PaymentComponent = { readonly minor: number } | { readonly ppm: number };

/** Returns the amount of a component of a payment of `amountMinor`, in the same minor units. A share is rounded once. */
export function componentMinor(component: PaymentComponent, amountMinor: number): number {
  return 'minor' in component ? component.minor : share(amountMinor, component.ppm, PPM);
}

/** What an event states about the parts of its payment. A missing one is unknown, which is not zero. */
export interface PaymentComponents {
  readonly tax?: PaymentComponent;
  /** What the store or the merchant of record keeps. */
  readonly storeFee?: PaymentComponent;
}

/** Money that a customer paid. A store payment is one payment, however many events and providers report it. */
export interface PaymentFact extends OriginalAmount {
  /** Lower case: `stripe`, `app_store`, `play_store`, … All providers use the same name for a store. */
  readonly store: string;
  /** The payment's own reference at the store, e.g. a transaction or an invoice id. */
  readonly ref: string;
  /** Absent if the event states none. */
  readonly components?: PaymentComponents;
}

/**
 * A refund or dispute, or its reversal. There is one state per `ref`: the fact with the highest `rank` decides, and of equal
 * ranks the one that occurred last, in whatever order the facts arrive.
 */
export interface AdjustmentFact extends OriginalAmount {
  /**
   * `chargeback_warning`: the provider refunded the customer because a bank warned of a chargeback. `out_of_band`: a part of
   * the payment was received outside the provider. `credit_note`: a part was returned outside the provider.
   */
  readonly kind: 'refund' | 'chargeback' | 'chargeback_warning' | 'out_of_band' | 'credit_note';
  readonly store: string;
  /** The refund's or dispute's own id, otherwise the id of the event that reported it. */
  readonly ref: string;
  readonly paymentRef: string;
  /** `applied`: the money was returned to the customer. `reversed`: it stayed or came back. */
  readonly state: 'applied' | 'reversed';
  /** Orders the states of one adjustment before their time does. */
  readonly rank: number;
  /** When the refund was made, epoch ms. A running total of its charge that was stated later contains it. */
  readonly madeAt?: number | null;
  /**
   * When set, the fact reverses every earlier `applied` adjustment of the payment with the same kind and another ref: a
   * refund reversal or a won chargeback that names only the transaction.
   */
  readonly reversesAll?: boolean;
}

/** Another reference of a payment: a refund that names a payment intent finds the invoice. Aliases may chain. */
export interface PaymentAliasFact {
  readonly store: string;
  readonly aliasRef: string;
  readonly paymentRef: string;
}

/** A provider's key (subscription, customer) that another event ties to a user id of the app. */
export interface UserLinkFact {
  readonly key: string;
  readonly customerUserId: string;
}

/** The contents of one webhook body. These are facts; `evaluate-payment.ts` decides later what they are worth. */
export interface NormalizedEvent {
  readonly sourceEventId: string;
  readonly kind: EventKind;
  /** Null when the body does not state it: the app's setting for the provider then decides. */
  readonly environment: Environment | null;
  /** Business time, epoch ms. */
  readonly occurredAt: number;
  readonly productId: string | null;
  /** Candidates for the app's own user id, the most reliable first, without anonymous ids and duplicates. */
  readonly userIds: readonly string[];
  /** Whether the body has user ids and the provider's SDK generated all of them. */
  readonly onlyAnonymousUserIds: boolean;
  /** The ids in the body that the provider's SDK generated. They lead to no user, but a code may bind them; an erasure follows them. */
  readonly anonymousUserIds: readonly string[];
  /** Keys to find a user by when `userIds` is empty, the most reliable first. */
  readonly userKeys: readonly string[];
  readonly payment: PaymentFact | null;
  /** The codes with which customers paid. The payment may be that of another event. */
  readonly codes: readonly PurchaseCodeFact[];
  /** The codes with which customers began a subscription without paying. */
  readonly subscriptionCodes: readonly SubscriptionCodeFact[];
  readonly adjustment: AdjustmentFact | null;
  readonly paymentAliases: readonly PaymentAliasFact[];
  readonly userLinks: readonly UserLinkFact[];
  readonly transfer: { readonly from: readonly string[]; readonly to: readonly string[] } | null;
  /** Whether the event is a payment whose price the provider does not state. Unknown is not zero. */
  readonly priceUnknown: boolean;
}
