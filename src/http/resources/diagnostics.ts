import * as z from 'zod';
import {
  CAPPED_COUNTS,
  listUnattributedEvents,
  listWebhookDeliveries,
  readIdentityOverlap,
  readIdentitySources,
  readSdkVersions,
  readTestUsers,
  summarizeDeliveries,
  summarizeUnattributed,
} from '../../db/diagnostics.ts';
import type {
  CauseSummary,
  IdentityOverlap,
  IdentitySources,
  ProviderHealth,
  SdkVersion,
  TestUser,
  UnattributedEvent,
  WebhookDelivery,
} from '../../db/diagnostics.ts';
import { CAUSE_EXPLANATIONS, CAUSE_HEALING, HEALING } from '../../domain/likely-causes.ts';
import { DAY_MS } from '../../domain/time.ts';
import { workflowIds } from '../../domain/workflow-ids.ts';
import { PROVIDER_NAMES, providers } from '../../providers/index.ts';
import type { HttpDeps } from '../deps.ts';
import * as enums from '../enum-fields.ts';
import {
  cents,
  count,
  customerUserId,
  epochMs,
  idOf,
  orNull,
  presentedUserId,
  isSignatureValid,
  sourceEventId,
  textField,
} from '../fields.ts';
import { fromTo } from '../instants.ts';
import {
  decodeCursor,
  givenFilters,
  MAY_BE_SHORT,
  millisKey,
  pageOf,
  pageQuery,
  presentPage,
} from '../pagination.ts';
import { appRoute } from '../route.ts';
import { workflowUrl } from '../workflow-url.ts';

/** How many user ids of each side are returned at most. */
const MAX_SAMPLES = 20;
/** The range of a summary without `from`. */
const SUMMARY_DAYS = 30;

const identity = z
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

const identitySources = z
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

const unattributedEvent = z
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
  })
  .meta({ id: 'UnattributedEvent', description: 'A paid event without a commission, and why.' });

const delivery = z
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

const unattributedSummary = z
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

const deliverySummary = z
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

function presentCause({ likelyCause, ...row }: CauseSummary) {
  return {
    likelyCause,
    count: row.count,
    amountCents: row.amountCents,
    unknownCount: row.unknownCount,
    truncated: row.truncated,
    latestAt: row.latestAt,
    explanation: CAUSE_EXPLANATIONS[likelyCause],
    heals: CAUSE_HEALING[likelyCause],
  };
}

function presentHealth(row: ProviderHealth) {
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

function presentIdentity(
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

function presentSources({ examined, truncated, devices, addresses }: IdentitySources) {
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

function presentUnattributed(row: UnattributedEvent) {
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
    explanation: CAUSE_EXPLANATIONS[row.likelyCause],
  };
}

function presentDelivery(row: WebhookDelivery, temporalUi: HttpDeps['temporalUi']) {
  const workflowId = row.signatureValid ? workflowIds.delivery(row.id) : null;
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

export const diagnosticsRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/identity',
    permission: 'read',
    operationId: 'diagnoseIdentity',
    summary: 'Compares the user ids of billing events with those that the app reports.',
    description: '`limit` is the number of samples of each side, at most 20.',
    query: z.object({ limit: pageQuery.limit }),
    response: { status: 200, schema: identity },
    handler: async ({ deps, app, query }) => {
      const samples = Math.min(query.limit, MAX_SAMPLES);
      const overlap = await readIdentityOverlap(deps.sql, app.id, samples);
      const sdks = await readSdkVersions(deps.sql, app.id);
      return presentIdentity(overlap, sdks, await readTestUsers(deps.sql, app.id, samples), samples);
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/identify',
    permission: 'read',
    operationId: 'diagnoseIdentify',
    summary: 'Lists devices and addresses that reported several users, most users first.',
    description:
      'One device with many users may be a shared device, a test device, or somebody who claims the users of others. `limit` is the number of rows of each kind.',
    query: z.object({ limit: pageQuery.limit }),
    response: { status: 200, schema: identitySources },
    handler: async ({ deps, app, query }) =>
      presentSources(await readIdentitySources(deps.sql, app.id, query.limit)),
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/unattributed',
    permission: 'read',
    operationId: 'listUnattributedEvents',
    summary: 'Lists paid events without a commission and their likely causes, latest first.',
    description: MAY_BE_SHORT,
    query: z.object({
      ...pageQuery,
      likelyCause: enums.likelyCause.optional(),
      source: enums.provider.optional(),
      customerUserId: customerUserId.optional(),
      ...fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageOf(unattributedEvent) },
    handler: async ({ deps, app, query }) => {
      const user = { customerUserId: query.customerUserId ?? null };
      const later = {
        likelyCause: query.likelyCause ?? null,
        source: query.source ?? null,
        from: query.from ?? null,
        to: query.to ?? null,
      };
      const filter = { ...user, ...later };
      const key = { list: 'unattributed', appId: app.id, filters: { ...user, ...givenFilters(later) } };
      const after = decodeCursor(key, millisKey, query.cursor);
      const page = await listUnattributedEvents(deps.sql, app.id, filter, after, query.limit);
      return presentPage(key, page, presentUnattributed);
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/unattributed/summary',
    permission: 'read',
    operationId: 'summarizeUnattributedEvents',
    summary: 'Counts the paid events without a commission of a range, and their money, by cause.',
    description:
      '`from` is 30 days before `to` by default, and `to` is now. Counts the latest 4,000 payments of each cause.',
    query: z.object(fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.')),
    response: { status: 200, schema: unattributedSummary },
    handler: async ({ deps, app, query, now }) => {
      const to = query.to ?? now;
      const from = query.from ?? to - SUMMARY_DAYS * DAY_MS;
      // A payment may have a time slightly in the future, by the clock of the store.
      const range = { from, to: query.to ?? null };
      const causes = await summarizeUnattributed(deps.sql, app.id, range);
      return { from, to, causes: causes.map((row) => presentCause(row)) };
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/webhooks/summary',
    permission: 'read',
    operationId: 'summarizeDeliveries',
    summary: 'Reports for each provider when webhooks arrived, and how many failed, were refused or wait.',
    description: 'Counts the last 24 hours. Of each kind it counts the latest 4,000 deliveries.',
    response: { status: 200, schema: deliverySummary },
    handler: async ({ deps, app, now }) => {
      const since = now - DAY_MS;
      await deps.refusals.flush();
      const rows = await summarizeDeliveries(deps.sql, app.id, PROVIDER_NAMES, since);
      return { since, providers: rows.map((row) => presentHealth(row)) };
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/diagnostics/webhooks',
    permission: 'read',
    operationId: 'listDeliveries',
    summary: 'Lists webhook deliveries and their outcomes, latest first.',
    description: MAY_BE_SHORT,
    query: z.object({
      ...pageQuery,
      processingStatus: enums.processingStatus.optional(),
      source: enums.provider.optional(),
      ...fromTo('Earliest `receivedAt`, inclusive.', 'Latest `receivedAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageOf(delivery) },
    handler: async ({ deps, app, query }) => {
      const first = { processingStatus: query.processingStatus ?? null, source: query.source ?? null };
      const range = { from: query.from ?? null, to: query.to ?? null };
      const filter = { ...first, ...range };
      const key = { list: 'webhooks', appId: app.id, filters: { ...first, ...givenFilters(range) } };
      const after = decodeCursor(key, millisKey, query.cursor);
      await deps.refusals.flush();
      const page = await listWebhookDeliveries(deps.sql, app.id, filter, after, query.limit);
      return presentPage(key, page, (row) => presentDelivery(row, deps.temporalUi));
    },
  }),
];
