/** What goes in and out of workflows: ids only. Nothing personal and no payload may stand in a history. */

export const DELIVERY_STEPS = [
  'verify',
  'storeRaw',
  'normalize',
  'dedupe',
  'attribute',
  'writeCommission',
] as const;
export type DeliveryStep = (typeof DELIVERY_STEPS)[number];

/** How a delivery ended; null of a step means: go on with the next one. */
export type DeliveryResult =
  | { readonly status: 'done'; readonly eventId: string; readonly commissionId: string | null }
  | { readonly status: 'duplicate' };

export interface DeliveryInput {
  readonly deliveryId: string;
}

export interface HoldInput {
  readonly commissionId: string;
}

export interface HealInput {
  readonly bindingId: string;
}

export interface ReprocessInput {
  readonly reprocessRunId: string;
}

/** How far a reprocess is, in deliveries. */
export interface ReprocessProgress {
  readonly seen: number;
  /** How many there are to look at. */
  readonly deliveries: number;
  /** Those that today's code treats differently. */
  readonly changed: number;
  /** Those to which something was appended. */
  readonly applied: number;
  readonly done: boolean;
}

export interface PayoutInput {
  readonly affiliateId: string;
}

/** What a fetch of exchange rates did: how many it found, and how many of them were news. `off`: none is wanted. */
export type RatesResult =
  | { readonly status: 'off' }
  | {
      readonly status: 'imported';
      readonly rates: number;
      readonly added: number;
      readonly changed: number;
      readonly kept: number;
    };

/** What became of the payments that waited for a rate. A failed one stays as it was and is in the log. */
export interface ConvertResult {
  readonly evaluated: number;
  readonly failed: number;
}

export interface ConvertPage extends ConvertResult {
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** Name of the signal that tells a payout workflow of an open request, by the request's id. */
export const PAYOUT_REQUESTED = 'payoutRequested';
