/**
 * Inputs and results that workflows, their activities and their starters share. They hold ids and counts only: a
 * workflow's history must contain neither personal data nor payloads.
 */

export interface DeliveryInput {
  readonly deliveryId: string;
}

export interface HoldInput {
  readonly commissionId: string;
}

export interface HealInput {
  readonly bindingId: string;
  /** Where the next page begins, and how many pages were done: only in a run that continues another. */
  readonly after?: string;
  readonly pages?: number;
}

export interface PayoutInput {
  readonly affiliateId: string;
  /** The requests that wait, and how many were settled: only in a run that continues another. */
  readonly waiting?: readonly string[];
  readonly settled?: number;
}

/** What one page of a sweep did. */
export interface SweepPage {
  readonly matured: number;
  /** Whether overdue commissions or abandoned payout requests may remain. */
  readonly more: boolean;
}

/** Name of the signal that gives a payout workflow an open request, by the request's id. */
export const PAYOUT_REQUESTED = 'payoutRequested';

export interface ReprocessInput {
  readonly reprocessRunId: string;
}

/** Progress of a reprocess run, in deliveries. */
export interface ReprocessProgress {
  /** Deliveries processed so far. */
  readonly seen: number;
  /** Deliveries that the run covers. */
  readonly deliveries: number;
  /** Deliveries that today's code treats differently. */
  readonly changed: number;
  /** Deliveries to which something was appended. */
  readonly applied: number;
  readonly done: boolean;
}

export interface EraseInput {
  readonly erasureId: string;
}

/** Where an erasure is after a page. */
export interface ErasePage {
  readonly done: boolean;
  /** How long to wait before the next page. */
  readonly waitMs: number;
}

export interface WebhookInput {
  readonly messageId: string;
}

/** Name of the signal that ends the wait for the next attempt at a message. */
export const SEND_NOW = 'sendNow';

/** What an attempt at a message came to. */
export interface WebhookProgress {
  /**
   * - `delivered`: the endpoint has accepted the message, now or before.
   * - `failed`: no attempt follows.
   * - `retry`: the attempt failed, and another one follows.
   * - `later`: no attempt was made: it is too early, or the endpoint has enough to do.
   */
  readonly state: 'delivered' | 'failed' | 'retry' | 'later';
  /** The attempts at the message so far. */
  readonly attempts: number;
  /** Why the last attempt failed, in one sentence without parts of the response. Null if it did not. */
  readonly problem: string | null;
  /** How long to wait before the next attempt, ms. */
  readonly waitMs: number;
}

/** What one page of the removal of expired data removed, in rows. */
export interface RetentionPage {
  readonly removed: number;
  /** Where the next page begins. Null when nothing is left. */
  readonly next: string | null;
}

/** What a fetch of exchange rates found, in rates; `off` when no address is configured. */
export type RatesResult =
  | { readonly status: 'off' }
  | {
      readonly status: 'imported';
      readonly rates: number;
      readonly added: number;
      readonly changed: number;
      readonly kept: number;
    };

/** Payments that waited for an exchange rate. A failed one stays unchanged and is logged. */
export interface ConvertResult {
  readonly evaluated: number;
  readonly failed: number;
}

export interface ConvertPage extends ConvertResult {
  /** Where the next page begins; null after the last, and before the first. */
  readonly next: string | null;
}
