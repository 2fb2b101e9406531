import type { AppId, CommissionId, DeliveryId, EventId } from './ids.ts';

/**
 * The steps of a webhook delivery, in their order, by the names of the specification. Each has an activity of the same name: `storeRaw`
 * compares what was stored before, and `attribute` binds users, while the creator is chosen in `writeCommission`.
 */
export type DeliveryStep = 'verify' | 'storeRaw' | 'normalize' | 'dedupe' | 'attribute' | 'writeCommission';

/** The ids with which a delivery's workflow is started and found. */
export interface DeliveryKeys {
  readonly deliveryId: DeliveryId;
  readonly appId: AppId;
  readonly provider: string;
  readonly eventId: EventId;
}

/** How a delivery ended: the result of its workflow, and what the provider receives. */
export type DeliveryOutcome =
  | { readonly status: 'done'; readonly eventId: EventId; readonly commissionId: CommissionId | null }
  | { readonly status: 'duplicate' };

/** The states of a delivery, as they are stored. */
export const PROCESSING_STATUSES = [
  'received',
  'processing',
  'processed',
  'duplicate',
  'ignored',
  'failed',
  'rejected',
] as const;
export type ProcessingStatus = (typeof PROCESSING_STATUSES)[number];
