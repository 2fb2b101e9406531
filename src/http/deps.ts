import type { Logger } from 'pino';
import type { Sql } from '../db/sql.ts';
import type { AffiliateId, BindingId, DeliveryId, PayoutRequestId } from '../domain/ids.ts';
import type { DeliveryOutcome } from '../domain/delivery.ts';
import type { SecretBox } from '../config/secret-box.ts';
import type { RateLimits } from './rate-limits.ts';
import type { AddressHasher } from './address-hasher.ts';

/** Work that outlives the request. Implemented on Temporal (`temporal/workflow-starter.ts`). */
export interface WorkflowStarter {
  /** Runs the delivery's workflow; answers null when it is not done after `waitMs` (it goes on by itself). Never throws. */
  processDelivery(deliveryId: DeliveryId, waitMs: number): Promise<DeliveryOutcome | null>;
  /** Has the user's earlier payments looked at again, in the background. Never throws. */
  healBinding(bindingId: BindingId): void;
  /** Hands an open payout request to the affiliate's payout workflow and waits at most `waitMs`. Never throws. */
  settlePayout(affiliateId: AffiliateId, requestId: PayoutRequestId, waitMs: number): Promise<void>;
}

/** Told of every request when it was answered. `route` is the path as the route declares it; undefined for none. */
export type RequestObserver = (request: {
  readonly method: string;
  readonly route: string | undefined;
  readonly status: number;
  readonly seconds: number;
}) => void;

/** One thing the process's role needs before it can serve. */
export interface ReadinessCheck {
  readonly name: string;
  readonly ok: boolean;
  /** What is missing, in words for the operator; null when nothing is. */
  readonly detail: string | null;
  /** True when the service still does its job without it (a Temporal server lost after start). */
  readonly optional: boolean;
}

/** Everything the HTTP layer needs; built by `src/server.ts` and by the tests. */
export interface HttpDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** Epoch ms. The only clock of the HTTP layer. */
  readonly now: () => number;
  /** Base address without a trailing slash, as shown in webhook URLs. */
  readonly publicUrl: string;
  /** Where this process listens, as it reaches itself, without a trailing slash. */
  readonly ownUrl: string;
  /** How many proxies in front are trusted to name the requester's address. */
  readonly trustProxy: number;
  readonly secretBox: SecretBox;
  readonly rateLimits: RateLimits;
  /** Hashes requesters' addresses for deferred matches. */
  readonly addressHasher: AddressHasher;
  readonly work: WorkflowStarter;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  readonly observeRequest?: RequestObserver;
}
