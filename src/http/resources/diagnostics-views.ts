import * as z from 'zod';
import { CAPPED_COUNTS } from '../../db/diagnostics.ts';
import type {
  CauseSummary,
  ProviderHealth,
  UnattributedEvent,
  WebhookDelivery,
} from '../../db/diagnostics.ts';
import type { IdentityOverlap, IdentitySources, SdkVersion, TestUser } from '../../db/sdk-diagnostics.ts';
import { WAITS_FOR_DECISION } from '../../domain/event-outcome.ts';
import { CAUSE_EXPLANATIONS, CAUSE_HEALING, HEALING } from '../../domain/likely-causes.ts';
import { workflowIdOf } from '../../domain/workflow-id.ts';
import { providers } from '../../providers/index.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import {
  cents,
  count,
  epochMs,
  idOf,
  orNull,
  presentedUserId,
  isSignatureValid,
  sourceEventId,
  textField,
} from '../fields.ts';
import { workflowUrl } from '../workflow-url.ts';
import { attributableKey } from './attributable-key.ts';

export const identity = z
  .object({
    verdict: z
      .enum(['ok', 'no_overlap', 'no_data'])
      .describe(
        '`no_overlap`: no user id of billing was reported by the app. `no_data`: one side has no user yet.',
      ),
    overlapCount: count('How many of the compared user ids both sides have.'),
    billingOnlySamples: z.array(z.string()).meta({
      description: 'User ids that only billing reported, latest first.',
      examples: [['user-4711']],
    }),
    attributionOnlySamples: z
      .array(z.string())
      .meta({ description: 'User ids that only the app reported, latest first.', examples: [['4711']] }),
    truncated: z.boolean().describe('Whether there are more user ids than were counted or returned.'),
    sdks: z
      .array(
        z.object({
          sdk: textField('web/0.1.0', 'The SDK and its version.'),
          installs: count('How many of the latest 1,000 attributed installs it reported.'),
          lastAt: epochMs('When it last reported one of them.'),
        }),
      )
      .describe('The SDKs in use, the latest first. Absent if no SDK has reported its version.')
      .optional(),
    testUsers: z
      .array(
        z.object({
          customerUserId: presentedUserId,
          deviceId: textField('9f0c2d1e-device', 'The device that reported the user.'),
          affiliateId: orNull(
            idOf('affiliate', "The affiliate of the device's test attribution."),
            'Null if the device came through no creator.',
          ),
          billed: z.boolean().describe('Whether a billing event names the user.'),
          reportedAt: epochMs('When the device reported the user.'),
        }),
      )
      .describe(
        'The latest users that a test key reported. They count nowhere else. Absent if there are none.',
      )
      .optional(),
  })
  .meta({ id: 'IdentityDiagnosis', description: 'How the user ids of billing and of the app overlap.' });

const activity = {
  users: count('How many different users it reported.'),
  firstAt: epochMs('When it first reported one of them.'),
  lastAt: epochMs('When it last reported one of them.'),
};

export const identitySources = z
  .object({
    examined: count('How many pairs of device and user were examined, the latest ones.'),
    truncated: z.boolean().describe('Whether there are more.'),
    devices: z
      .array(
        z.object({
          deviceId: textField('9f0c2d1e-device', 'The id that the app gave the device.'),
          ...activity,
        }),
      )
      .describe('Devices with several users.'),
    addresses: z
      .array(
        z.object({
          addressHash: textField(
            '9f0c2d1e8a7b6c5d',
            'The start of a keyed hash of the address. An address has another hash each day.',
          ),
          devices: count('How many different devices called from it.'),
          ...activity,
        }),
      )
      .describe('Addresses with several users.'),
  })
  .meta({ id: 'IdentitySources', description: 'What `identify` received, and from where.' });

export const unattributedEvent = z
  .object({
    eventId: idOf('event'),
    source: enums.provider,
    sourceEventId,
    kind: enums.eventKind,
    customerUserId: orNull(presentedUserId, 'Null if the event names none.'),
    amountCents: orNull(cents('What the customer paid.'), 'Null if it is unknown or not converted yet.'),
    occurredAt: epochMs('When the customer paid.'),
    receivedAt: epochMs('When the webhook arrived.'),
    likelyCause: enums.likelyCause,
    explanation: textField(
      'No device reported this user. Call identify(userId) after sign-in.',
      'What happened, and what to change. A sentence for people.',
    ),
    waitsUntil: epochMs(
      'When the payment is decided, about. Present while another event may name its user.',
    ).optional(),
    attributableKey: attributableKey.optional(),
  })
  .meta({ id: 'UnattributedEvent', description: 'A paid event without a commission, and why.' });

export const delivery = z
  .object({
    id: idOf('delivery'),
    source: enums.provider,
    sourceEventId: orNull(sourceEventId, 'Null if the body could not be read.'),
    receivedAt: epochMs('When the webhook arrived.'),
    signatureValid: isSignatureValid,
    processingStatus: enums.processingStatus,
    lastError: orNull(
      textField(
        'the body is not JSON',
        'Why it failed, is ignored or was refused, or what stops it at present.',
      ),
      'Null if there is nothing to say.',
    ),
    eventCount: count('The number of events that it stored: 0 or 1.'),
    selfTest: z.boolean().describe('Whether the self-test sent it. Such a delivery never earns.'),
    eventId: orNull(
      idOf('event', 'Pass it to `GET …/events/:eventId/explanation`.'),
      'Null if the request was refused.',
    ),
    workflowId: orNull(
      textField('delivery:del_01', 'The id of the Temporal workflow.'),
      'Null if the request was refused and no workflow was started.',
    ),
    workflowUrl: orNull(
      textField(
        'https://temporal-ui.example.com/namespaces/default/workflows/delivery%3Adel_01',
        'The page of the workflow in the Temporal UI.',
      ),
      'Null without a workflow or without `TEMPORAL_UI_URL`.',
    ),
  })
  .meta({ id: 'Delivery', description: 'A webhook request of a billing provider, and its outcome.' });

export const unattributedSummary = z
  .object({
    from: epochMs('The beginning of the range, inclusive.'),
    to: epochMs('The end of the range, exclusive.'),
    causes: z
      .array(
        z
          .object({
            likelyCause: enums.likelyCause,
            count: count('How many payments of the range earned nothing for this cause.'),
            amountCents: cents('What their customers paid, as far as it is known.'),
            unknownCount: count('How many of them have an amount that is unknown or not converted yet.'),
            settledCount: count(
              'How many of them stay without a commission, because a manual attribution of the customer begins later. There is nothing to do for them.',
            ),
            truncated: z
              .boolean()
              .describe(
                'Whether more than 4,000 rows of one kind were found, of which the latest 4,000 were counted: the numbers are lower bounds.',
              ),
            latestAt: epochMs('When the latest of them occurred.'),
            explanation: textField(
              'No device reported this user. Call identify(userId) after sign-in.',
              'What happened, and what to change. A sentence for people.',
            ),
            heals: z
              .enum(HEALING)
              .describe(
                'Whether these payments can still earn: `when_fixed`, once the cause is removed; `automatically`; `never`, because it was decided.',
              ),
          })
          .meta({ id: 'UnattributedCause', description: 'The payments that earned nothing for one cause.' }),
      )
      .describe('The causes that occur in the range, the most money first.'),
  })
  .meta({ id: 'UnattributedSummary', description: 'Paid events without a commission, by cause.' });

export const deliverySummary = z
  .object({
    since: epochMs('24 hours ago: the beginning of what is counted.'),
    providers: z
      .array(
        z
          .object({
            provider: enums.provider,
            title: textField('RevenueCat', 'The name of the provider.'),
            configured: z.boolean().describe('Whether a secret is set, so that webhooks can be accepted.'),
            lastAcceptedAt: orNull(
              epochMs('When the latest webhook that was accepted arrived.'),
              'Null if there is none. The self-test does not count.',
            ),
            lastRefusedAt: orNull(
              epochMs('When the latest refused request arrived.'),
              'Null if there is none.',
            ),
            accepted: count('How many webhooks were accepted.'),
            failed: count('How many of them could not be read.'),
            refused: count('How many requests were refused, in full hours.'),
            unfinished: count('How many deliveries have no outcome yet, whenever they arrived.'),
            oldestUnfinishedAt: orNull(epochMs('When the oldest of them arrived.'), 'Null if there is none.'),
            lowerBounds: z
              .array(z.enum(CAPPED_COUNTS))
              .describe(
                'The numbers of which as many rows were found as are counted, 4,000: they are lower bounds.',
              ),
          })
          .meta({ id: 'ProviderHealth', description: 'How well the webhooks of a provider arrive.' }),
      )
      .describe('All providers that the service knows.'),
  })
  .meta({ id: 'DeliverySummary', description: 'How well webhooks arrive, by provider.' });

export function presentCause({ likelyCause, ...row }: CauseSummary) {
  return {
    likelyCause,
    count: row.count,
    amountCents: row.amountCents,
    unknownCount: row.unknownCount,
    settledCount: row.settledCount,
    truncated: row.truncated,
    latestAt: row.latestAt,
    explanation: CAUSE_EXPLANATIONS[likelyCause],
    heals: CAUSE_HEALING[likelyCause],
  };
}

export function presentHealth(row: ProviderHealth) {
  return {
    provider: row.provider,
    title: providers[row.provider].title,
    configured: row.isConfigured,
    lastAcceptedAt: row.lastAcceptedAt,
    lastRefusedAt: row.lastRefusedAt,
    accepted: row.accepted,
    failed: row.failed,
    refused: row.refused,
    unfinished: row.unfinished,
    oldestUnfinishedAt: row.oldestUnfinishedAt,
    lowerBounds: [...row.lowerBounds],
  };
}

function verdictOf({ billed, identified, overlapCount }: IdentityOverlap) {
  if (!billed || !identified) return 'no_data';
  return overlapCount > 0 ? 'ok' : 'no_overlap';
}

export function presentIdentity(
  overlap: IdentityOverlap,
  sdks: SdkVersion[],
  testUsers: TestUser[],
  samples: number,
) {
  const { overlapCount, billingOnly, identifiedOnly, complete } = overlap;
  return {
    verdict: verdictOf(overlap),
    overlapCount,
    billingOnlySamples: billingOnly.slice(0, samples),
    attributionOnlySamples: identifiedOnly.slice(0, samples),
    truncated: !complete || billingOnly.length > samples || identifiedOnly.length > samples,
    ...(sdks.length === 0 ? {} : { sdks }),
    ...(testUsers.length === 0
      ? {}
      : { testUsers: testUsers.map(({ isBilled, ...row }) => ({ ...row, billed: isBilled })) }),
  } as const;
}

export function presentSources({ examined, truncated, devices, addresses }: IdentitySources) {
  return {
    examined,
    truncated,
    devices: devices.map(({ name, users, firstAt, lastAt }) => ({ deviceId: name, users, firstAt, lastAt })),
    addresses: addresses.map((row) => ({
      addressHash: row.name,
      users: row.users,
      devices: row.devices,
      firstAt: row.firstAt,
      lastAt: row.lastAt,
    })),
  };
}

export function presentUnattributed(row: UnattributedEvent) {
  return {
    eventId: row.eventId,
    source: row.source,
    sourceEventId: row.sourceEventId,
    kind: row.kind,
    customerUserId: row.customerUserId,
    amountCents: row.amountCents,
    occurredAt: row.occurredAt,
    receivedAt: row.receivedAt,
    likelyCause: row.likelyCause,
    explanation: row.waitsUntil === null ? CAUSE_EXPLANATIONS[row.likelyCause] : WAITS_FOR_DECISION,
    ...(row.waitsUntil === null ? {} : { waitsUntil: row.waitsUntil }),
    ...(row.attributableKey === null ? {} : { attributableKey: row.attributableKey }),
  };
}

export function presentDelivery(row: WebhookDelivery, temporalUi: HttpDeps['temporalUi']) {
  const workflowId = row.signatureValid ? workflowIdOf('delivery', row.id) : null;
  return {
    id: row.id,
    source: row.source,
    sourceEventId: row.sourceEventId,
    receivedAt: row.receivedAt,
    signatureValid: row.signatureValid,
    processingStatus: row.processingStatus,
    lastError: row.lastError,
    eventCount: row.eventCount,
    selfTest: row.selfTest,
    eventId: row.signatureValid ? row.eventId : null,
    workflowId,
    workflowUrl: workflowId === null ? null : workflowUrl(temporalUi, workflowId),
  };
}
