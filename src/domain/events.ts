/** What a billing provider's webhook can mean, in this service's words (docs/contract.md, "Events"). */
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

export const ENVIRONMENTS = ['production', 'sandbox'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** An amount as the provider states it. */
export interface OriginalAmount {
  /** ISO 4217, upper case. */
  readonly currency: string;
  /** Whole minor units of `currency` (cents, yen, fils), never negative. */
  readonly amountMinor: number;
  /** The same amount in USD cents where the provider states it, else null: it is then converted by reference rate. */
  readonly usdCents: number | null;
}

/** Money a customer paid. One store payment is one payment, however many events and providers speak of it. */
export interface PaymentFact extends OriginalAmount {
  /** Lower case; `stripe`, `app_store`, `play_store`, … Two providers name one store alike. */
  readonly store: string;
  /** The payment's own reference at the store, e.g. a transaction or an invoice id. */
  readonly ref: string;
}

/**
 * Money that went back to a customer, or came back from a refund or dispute that was undone. One adjustment is one
 * state per `ref`: a later fact with a higher `rank` replaces an earlier one, whatever the order of arrival.
 */
export interface AdjustmentFact extends OriginalAmount {
  readonly kind: 'refund' | 'chargeback';
  readonly store: string;
  /** The refund's or dispute's own id, else the id of the event that told of it. */
  readonly ref: string;
  readonly paymentRef: string;
  /** `applied`: the money left. `reversed`: it stayed or came back. */
  readonly state: 'applied' | 'reversed';
  /** Orders the states of one adjustment: the highest known rank decides. */
  readonly rank: number;
  /**
   * When set, this fact speaks of every earlier `applied` adjustment of the payment that is of its kind and has another
   * ref (a refund reversal, or a chargeback won back, that names only the transaction).
   */
  readonly reversesAll?: boolean;
}

/** Another name for a payment: a refund that names a payment intent finds the invoice it paid. Names may chain. */
export interface PaymentAliasFact {
  readonly store: string;
  readonly aliasRef: string;
  readonly paymentRef: string;
}

/** A provider's own key (subscription, customer) that stands for an app user id learnt from another event. */
export interface UserLinkFact {
  readonly key: string;
  readonly customerUserId: string;
}

/** One webhook body, read. Everything in it is a fact; what it is worth is decided later (`evaluate.ts`). */
export interface NormalizedEvent {
  readonly sourceEventId: string;
  readonly kind: EventKind;
  /** Null where the body does not say: the app's setting for the provider then decides. */
  readonly environment: Environment | null;
  /** Business time, epoch ms. */
  readonly occurredAt: number;
  readonly productId: string | null;
  /** Candidates for the app's own user id, best first, anonymous ids left out, no repeats. */
  readonly userIds: readonly string[];
  /** True when the body had user ids and all of them were made by the provider's SDK. */
  readonly onlyAnonymousUserIds: boolean;
  /** Keys to look a user up by when `userIds` is empty, best first. */
  readonly userKeys: readonly string[];
  readonly payment: PaymentFact | null;
  readonly adjustment: AdjustmentFact | null;
  readonly paymentAliases: readonly PaymentAliasFact[];
  readonly userLinks: readonly UserLinkFact[];
  readonly transfer: { readonly from: readonly string[]; readonly to: readonly string[] } | null;
  /** A paid kind whose price the provider does not know (null is not zero). */
  readonly priceUnknown: boolean;
}
