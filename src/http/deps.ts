import type { Sql } from '../db/sql.ts';
import type { WebhookTargets } from '../domain/outgoing-webhooks.ts';
import type { CommandDeps, PendingStep } from '../commands/deps.ts';
import type { Intake } from './intake.ts';
import type { BodyBudget } from './body-budget.ts';
import type { KnownCallers } from './known-callers.ts';
import type { RateLimits } from './rate-limits.ts';

/** Receives every request after its response. `route` is the declared path; undefined if no route matched. */
export type RequestObserver = (request: {
  readonly method: string;
  readonly route: string | undefined;
  readonly status: number;
  readonly seconds: number;
}) => void;

/** One thing that the process needs before it can serve in its role. */
export interface ReadinessCheck {
  readonly name: string;
  readonly ok: boolean;
  /** What is missing, for the operator; null if nothing is. */
  readonly detail: string | null;
  /** True if the service still works without it, for example a Temporal server lost after the start. */
  readonly optional: boolean;
}

/** Everything that the HTTP layer needs. Built by `src/compose/api.ts` and by tests. */
export interface HttpDeps extends CommandDeps {
  /** Returns the time, epoch ms. The only clock of the HTTP layer that can be set. */
  readonly now: () => number;
  /** Returns a time that only advances, ms, for durations; `performance.now` by default. */
  readonly elapsed?: () => number;
  /** Base address without a trailing slash, as shown in webhook URLs. */
  readonly publicUrl: string;
  /** Where this process listens, as it reaches itself, without a trailing slash. */
  readonly ownUrl: string;
  /** Where the Temporal UI is, for links to workflows; none by default. */
  readonly temporalUi?: { readonly url: string; readonly namespace: string } | null;
  /** How many proxies in front of the service are trusted to report the client's address. */
  readonly trustProxy: number;
  readonly rateLimits: RateLimits;
  /** How long the response of an idempotency key is stored, days; one by default. */
  readonly idempotencyDays?: number;
  /** The most that an entry may add or deduct, US cents: the limit of a payment. */
  readonly maxPaymentCents: number;
  readonly bodyBudget: BodyBudget;
  /** The addresses from which an app received a verified webhook. */
  readonly knownSenders: KnownCallers;
  /** The keys and sessions that were accepted. */
  readonly knownCredentials: KnownCallers;
  /** The links that were found. */
  readonly knownLinks: KnownCallers;
  /** The limits of what calls without an account key take. */
  readonly intake: Intake;
  /** The part of the pool for calls with a session of a creator. */
  readonly creatorSql: Sql;
  /**
   * The part of the pool for calls that may wait for a lock which another call or a payout holds, as changes of endpoints wait while
   * a backlog fails with its endpoint, and for checks of ledgers: however many wait, other calls find a connection.
   */
  readonly patientSql: Sql;
  /** Which addresses endpoints of outgoing webhooks may have; only public ones by default. */
  readonly webhookTargets?: WebhookTargets;
  /** Returns the step that a running workflow retries; null if none, or if Temporal does not say in time. */
  readonly pendingStep?: (workflowId: string) => Promise<PendingStep | null>;
  /** Whether mails are sent; false by default. */
  readonly sendsMail?: boolean;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  readonly observeRequest?: RequestObserver;
}
