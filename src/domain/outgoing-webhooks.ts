import { hasPlainHost, hostOf, ipv4Of, ipv6Groups } from './addresses.ts';
import type { AppId, WebhookMessageId } from './ids.ts';
import { isPublicAddress } from './public-addresses.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

/** What an endpoint of an app can ask for. */
export const WEBHOOK_TYPES = [
  'commission.created',
  'commission.matured',
  'commission.reversed',
  'commission.adjusted',
  'payout.created',
  'delivery.stuck',
  'alert.opened',
  'alert.closed',
] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];

/** The type of a message that a founder sends by hand. Every endpoint gets it. */
export const TEST_TYPE = 'webhook.test';

/** All types of messages. */
export const MESSAGE_TYPES = [...WEBHOOK_TYPES, TEST_TYPE] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** `pending` while an attempt will follow. The others are final until a person sends the message again. */
export const MESSAGE_STATUSES = ['pending', 'delivered', 'failed'] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/** Why an endpoint is not active: a person decided it, it failed for days, it responded with 410, or a person deleted it. */
export const DEACTIVATION_REASONS = ['by_request', 'failing', 'gone', 'deleted'] as const;
export type DeactivationReason = (typeof DEACTIVATION_REASONS)[number];

/** The results of attempts in the metrics. */
export const ATTEMPT_RESULTS = ['delivered', 'retried', 'failed'] as const;
export type AttemptResult = (typeof ATTEMPT_RESULTS)[number];

/** The most endpoints of an app, one per slot, active or not. An active one costs every fact of its types one row. */
export const MAX_ENDPOINTS = 20;

/** Which addresses endpoints may have: those of the internet over HTTPS, or also private ones and HTTP. */
export type WebhookTargets = 'public' | 'any';

/** The ids with which the workflow of a message is started. */
export interface WebhookMessageKeys {
  readonly messageId: WebhookMessageId;
  readonly appId: AppId;
}

/** The waits between the attempts at a message, ms: ten attempts within 76 hours. */
export const RETRY_DELAYS_MS: readonly number[] = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/** The longest wait until one message tries an endpoint again of which all attempts fail. */
export const MAX_PROBE_MS = 30 * MINUTE_MS;

/** The longest wait that an endpoint can ask for with `Retry-After`. */
export const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;
/** A wait is at most this part longer, so that messages that failed together are not all sent again together. */
const JITTER = 0.1;

/**
 * Returns how long to wait after the failed attempt `failures` (the first is 1) of a message, ms. Null after the last one.
 * `random` is from 0 to 1.
 */
export function retryDelayMs(
  failures: number,
  { retryAfterMs, random }: { readonly retryAfterMs: number | null; readonly random: number },
  delaysMs: readonly number[] = RETRY_DELAYS_MS,
): number | null {
  const delayMs = delaysMs[failures - 1];
  if (delayMs === undefined) return null;
  return Math.max(
    Math.round(delayMs * (1 + JITTER * random)),
    Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS),
  );
}

/**
 * Returns why `text` is no address of an endpoint, in one sentence. Null if it is one. `URL` writes each form of an IP address, such as
 * 0x7f.1, in the usual way. A host name is accepted: its addresses are checked at each attempt.
 */
export function webhookUrlProblem(text: string, targets: WebhookTargets): string | null {
  const wrong = 'Must be an address such as https://example.com/webhooks.';
  if (!URL.canParse(text)) return wrong;
  const url = new URL(text);
  const { protocol, username, password, hash } = url;
  if (protocol !== 'https:' && !(protocol === 'http:' && targets === 'any')) {
    return 'Must begin with https://.';
  }
  if (!hasPlainHost(text)) return wrong;
  if (username !== '' || password !== '') return 'Must have no user name and no password.';
  if (hash !== '') return 'Must have no part after #.';
  const host = hostOf(url);
  const isAddress = ipv4Of(host) !== null || ipv6Groups(host) !== null;
  if (targets === 'public' && isAddress && !isPublicAddress(host)) {
    return 'Must have a public host: the service does not connect to private or reserved addresses.';
  }
  return null;
}
