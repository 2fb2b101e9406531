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

export interface PayoutInput {
  readonly affiliateId: string;
}

/** Name of the signal that tells a payout workflow of an open request, by the request's id. */
export const PAYOUT_REQUESTED = 'payoutRequested';
