import type { Schemas } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';

export type Endpoint = Schemas['WebhookEndpoint'];
export type Message = Schemas['WebhookMessage'];
export type EventType = Endpoint['eventTypes'][number];

/** What each type of messages reports. */
export const EVENT_TYPES: Readonly<Record<EventType, string>> = {
  'commission.created': 'A sale earned a commission',
  'commission.matured': 'A commission became due',
  'commission.reversed': 'A refund or dispute took a commission back',
  'commission.adjusted': 'Somebody added a bonus or a deduction',
  'payout.created': 'A payout was made',
  'delivery.stuck': 'A webhook of a provider cannot be processed',
  'alert.opened': 'An alert was opened',
  'alert.closed': 'An alert was closed',
};

/** The types of messages as filters. */
export const MESSAGE_TYPES: Readonly<Record<Message['type'], string>> = {
  'commission.created': 'commission.created',
  'commission.matured': 'commission.matured',
  'commission.reversed': 'commission.reversed',
  'commission.adjusted': 'commission.adjusted',
  'payout.created': 'payout.created',
  'delivery.stuck': 'delivery.stuck',
  'alert.opened': 'alert.opened',
  'alert.closed': 'alert.closed',
  'webhook.test': 'webhook.test',
};

export const MESSAGE_STATUSES: Readonly<Record<Message['status'], string>> = {
  pending: 'Waiting',
  delivered: 'Delivered',
  failed: 'Failed',
};

export const MESSAGE_TONES: Readonly<Record<Message['status'], 'good' | 'bad' | 'wait'>> = {
  pending: 'wait',
  delivered: 'good',
  failed: 'bad',
};

const REASONS: Readonly<Record<NonNullable<Endpoint['deactivatedReason']>, string>> = {
  by_request: 'Somebody deactivated it.',
  failing: 'Every attempt failed for three days, so the service deactivated it.',
  gone: 'It responded with 410 Gone, so the service deactivated it.',
  deleted: 'Somebody deleted it.',
};

/** Returns why an endpoint is not active, or since when it fails. Null if it is active and does not fail. */
export function stateText({ deactivatedAt, deactivatedReason, failingSince }: Endpoint): string | null {
  if (deactivatedAt !== null && deactivatedReason !== null)
    return `${REASONS[deactivatedReason]} That was ${formatAgo(deactivatedAt)}.`;
  return failingSince === null
    ? null
    : `No attempt succeeded since ${formatInstant(failingSince)}. After three days it is deactivated.`;
}

/** The names under which the answers of this page are kept. */
export const WEBHOOK_KEYS = {
  endpoints: (appId: string) => ['webhook-endpoints', appId],
  messages: (appId: string) => ['webhook-messages', appId],
} as const;
