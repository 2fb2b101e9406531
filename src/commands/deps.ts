import type { Logger } from 'pino';
import type { SecretBox } from '../config/secret-box.ts';
import type { HeldCommission } from '../db/maturing.ts';
import type { Sql } from '../db/sql.ts';
import type { DeliveryKeys, DeliveryOutcome } from '../domain/delivery.ts';
import type { AppId, BindingId } from '../domain/ids.ts';
import type { PayoutRequestKeys } from '../domain/payout.ts';
import type { PayoutRunKeys } from '../domain/payout-run.ts';
import type { WebhookMessageKeys } from '../domain/outgoing-webhooks.ts';
import type { AddressHasher } from './address-hasher.ts';
import type { WebhookCache } from './webhook-cache.ts';
import type { RefusalCounter } from './refusal-counter.ts';

/**
 * Holds the slot of a call, one of those that run at the same time, after its answer until `ended` is settled. `ended` never
 * rejects.
 */
export type HoldSlot = (ended: Promise<unknown>) => void;

/** Starts workflows, which outlive the request. `temporal/workflow-starter.ts` implements it. */
export interface WorkflowStarter {
  /**
   * Runs the delivery's workflow. Returns null if it has not finished after `waitMs`; it then continues in the
   * background, and `holdSlot` is called with its end as far as it is worth waiting for. Never throws.
   */
  awaitDelivery(delivery: DeliveryKeys, waitMs: number, holdSlot?: HoldSlot): Promise<DeliveryOutcome | null>;
  /** Re-evaluates the user's earlier payments in the background. Never throws. */
  healBinding(bindingId: BindingId, appId: AppId): void;
  /** Starts the hold timers of new commissions in the background. Never throws. */
  startHolds(commissions: readonly HeldCommission[]): void;
  /** Passes an open payout request to the affiliate's payout workflow and waits at most `waitMs`. Never throws. */
  settlePayout(request: PayoutRequestKeys, waitMs: number): Promise<void>;
  /** Starts the workflow of an approved payout run in the background. The relay starts it otherwise. Never throws. */
  startPayoutRun(run: PayoutRunKeys): void;
  /** Makes the next attempt at a message that is due, whatever its workflow waits for. Never throws. */
  sendWebhookNow(message: WebhookMessageKeys): void;
}

/** The step of a workflow that is retried. */
export interface PendingStep {
  readonly step: string;
  /** 1 for the first one. */
  readonly attempt: number;
}

/** The results of exports in the metrics. */
export const EXPORT_RESULTS = ['paid', 'empty', 'total_changed', 'blocked', 'timed_out'] as const;

/** Receives the result of each export that a call waited for. */
export type ExportObserver = (result: (typeof EXPORT_RESULTS)[number]) => void;

/** The dependencies of all commands. Each command names those that it uses. */
export interface CommandDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  readonly secretBox: SecretBox;
  /** Hashes client addresses for deferred matches. */
  readonly addressHasher: AddressHasher;
  readonly workflows: WorkflowStarter;
  /** Remembers secrets and deliveries of webhooks. */
  readonly webhookCache: WebhookCache;
  /** Counts refused webhooks. */
  readonly refusals: RefusalCounter;
  readonly observeExport?: ExportObserver;
}
