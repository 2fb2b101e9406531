import type { NativeConnectionOptions, WorkflowBundle } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Tracing } from '../../temporal/tracing.ts';
import type { SharedHostApps } from '../commands/shared-associations.ts';
import type { Config, MailSettings } from '../config/config.ts';
import type { SecretBox } from '../config/secret-box.ts';
import type { WebhookTargets } from '../domain/outgoing-webhooks.ts';
import type { RetentionSettings } from '../domain/retention.ts';
import type { AdmissionSettings } from '../http/admission.ts';
import type { RateLimitSettings } from '../http/rate-limits.ts';

/** What a process of the service is started with. */
export interface ServiceSettings {
  readonly role: Config['role'];
  readonly host: string;
  readonly port: number;
  /** Base address in URLs; built from host and port when null. */
  readonly publicUrl: string | null;
  /** Base address of the Temporal UI; no links to workflows without it. */
  readonly temporalUiUrl?: string | null;
  readonly trustProxy: number;
  readonly rateLimits: RateLimitSettings;
  /** The most connections to the API at one time; a default that is enough for tests if it is missing. */
  readonly maxConnections?: number;
  /** Metrics are off when it is missing. */
  readonly metricsPort?: number | undefined;
  /** The address on which the metrics listen; the loopback address by default. */
  readonly metricsHost?: string;
  readonly databaseUrl: string;
  /** Address with the role that owns the schema, for migrations only; `databaseUrl` by default. */
  readonly migrationsDatabaseUrl?: string | undefined;
  readonly temporal: {
    readonly connection: NativeConnectionOptions;
    readonly namespace: string;
  };
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Ends a start that waits for the database. */
  readonly signal?: AbortSignal | undefined;
  readonly workflowBundle: () => Promise<WorkflowBundle>;
  /** False in tests, which share a Temporal server and run the sweep themselves. True by default. */
  readonly withSchedule?: boolean;
  /** How often missing Schedules and search attributes are restored; a minute by default. */
  readonly setUpPauseMs?: number;
  /** Address that exchange rates are fetched from once a day; null when none are fetched. */
  readonly ratesUrl?: string | null;
  /** The largest payment that earns, US cents; a million dollars by default. */
  readonly maxPaymentCents?: number;
  /** How long a code waits for an event that names the user; a minute by default. */
  readonly keyGraceMs?: number;
  /** After how many days data is removed; `DEFAULT_RETENTION` by default. */
  readonly retention?: RetentionSettings;
  /** Commissions that are due sooner than this have no hold timer; two minutes by default, Infinity for no timers. */
  readonly shortestHoldMs?: number;
  readonly relay?: { readonly overdueMs: number; readonly pauseMs: number };
  /** How long the second search of an erasure waits; a minute by default. */
  readonly erasureSettleMs?: number;
  /** Which addresses endpoints of outgoing webhooks may have; only public ones by default. */
  readonly webhookTargets?: WebhookTargets;
  /** The waits between the attempts at a message, ms; ten attempts within three days by default. */
  readonly webhookRetryMs?: readonly number[];
  /** The mail server and the sender of mails; null or missing when no mail is sent. */
  readonly mail?: MailSettings | null;
  /** The waits between the attempts at a mail, ms; ten attempts within eleven hours by default. */
  readonly emailRetryMs?: readonly number[];
  /** How long a stopping API still accepts new requests; 400 ms by default. */
  readonly lingerMs?: number;
  /** Maximum number of open database connections; 20 by default. */
  readonly poolSize?: number;
  /** Null or missing when no traces are sent. */
  readonly tracing?: Tracing | null;
  /** Calls that are worked on at one time; no limit by default. */
  readonly admission?: AdmissionSettings;
  /** The mobile apps that open links of a host that all apps share; `all` by default. */
  readonly sharedHostApps?: SharedHostApps;
}
