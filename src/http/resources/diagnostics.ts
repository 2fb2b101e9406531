import * as z from 'zod';
import {
  listUnattributedEvents,
  listWebhookDeliveries,
  summarizeDeliveries,
  summarizeUnattributed,
} from '../../db/diagnostics.ts';
import {
  readIdentityOverlap,
  readIdentitySources,
  readSdkVersions,
  readTestUsers,
} from '../../db/sdk-diagnostics.ts';
import { DAY_MS } from '../../domain/time.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import * as enums from '../enum-fields.ts';
import { customerUserId } from '../fields.ts';
import { fromTo } from '../instants.ts';
import {
  decodeCursor,
  givenFilters,
  MAY_BE_SHORT,
  millisKey,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import {
  identity,
  identitySources,
  unattributedEvent,
  delivery,
  unattributedSummary,
  deliverySummary,
  presentCause,
  presentHealth,
  presentIdentity,
  presentSources,
  presentUnattributed,
  presentDelivery,
} from './diagnostics-views.ts';

/** How many user ids of each side are returned at most. */
const MAX_SAMPLES = 20;

/** The range of a summary without `from`. */
const SUMMARY_DAYS = 30;

export const diagnosticsRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/identity',
    caller: accountApp('read'),
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

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/identify',
    caller: accountApp('read'),
    operationId: 'diagnoseIdentify',
    summary: 'Lists devices and addresses that reported several users, most users first.',
    description:
      'One device with many users may be a shared device, a test device, or somebody who claims the users of others. `limit` is the number of rows of each kind.',
    query: z.object({ limit: pageQuery.limit }),
    response: { status: 200, schema: identitySources },
    handler: async ({ deps, app, query }) =>
      presentSources(await readIdentitySources(deps.sql, app.id, query.limit)),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/unattributed',
    caller: accountApp('read'),
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
    response: { status: 200, schema: pageSchema(unattributedEvent) },
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

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/unattributed/summary',
    caller: accountApp('read'),
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

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/webhooks/summary',
    caller: accountApp('read'),
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

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/webhooks',
    caller: accountApp('read'),
    operationId: 'listDeliveries',
    summary: 'Lists webhook deliveries and their outcomes, latest first.',
    description: MAY_BE_SHORT,
    query: z.object({
      ...pageQuery,
      processingStatus: enums.processingStatus.optional(),
      source: enums.provider.optional(),
      ...fromTo('Earliest `receivedAt`, inclusive.', 'Latest `receivedAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageSchema(delivery) },
    handler: async ({ deps, app, query }) => {
      const first = { processingStatus: query.processingStatus ?? null, source: query.source ?? null };
      const range = { from: query.from ?? null, to: query.to ?? null };
      const filter = { ...first, ...range };
      const key = { list: 'webhooks', appId: app.id, filters: { ...first, ...givenFilters(range) } };
      const after = decodeCursor(key, timeKey, query.cursor);
      await deps.refusals.flush();
      const page = await listWebhookDeliveries(deps.sql, app.id, filter, after, query.limit);
      return presentPage(key, page, (row) => presentDelivery(row, deps.temporalUi));
    },
  }),
];
