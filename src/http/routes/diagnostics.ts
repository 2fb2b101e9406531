import { listUnattributedEvents, listWebhookDeliveries, readIdentityOverlap } from '../../db/diagnostics.ts';
import { decodeCursor, millisKey, presentPage } from '../cursors.ts';
import { presentDelivery, presentIdentity, presentUnattributed } from '../presenters/diagnostics.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/diagnostics.ts';

/** User ids shown of each side at most. */
const MAX_SAMPLES = 20;

export const diagnosticsRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/identity',
    auth: 'account',
    permission: 'read',
    operationId: 'diagnoseIdentity',
    summary: 'Shows whether the user ids of billing events are those that the app tells of.',
    query: schemas.identityQuery,
    response: { status: 200, schema: schemas.identity },
    handler: async ({ deps, app, query }) => {
      const samples = Math.min(query.limit, MAX_SAMPLES);
      return presentIdentity(await readIdentityOverlap(deps.sql, app.id, samples), samples);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/unattributed',
    auth: 'account',
    permission: 'read',
    operationId: 'listUnattributedEvents',
    summary: 'Lists paid events that earned nothing, the latest first, and why.',
    query: schemas.diagnosticsQuery,
    response: { status: 200, schema: schemas.unattributedPage },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'unattributed', appId: app.id, filters: {} };
      const after = decodeCursor(key, millisKey, query.cursor);
      const page = await listUnattributedEvents(deps.sql, app.id, after, query.limit);
      return presentPage(key, page, presentUnattributed);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/diagnostics/webhooks',
    auth: 'account',
    permission: 'read',
    operationId: 'listDeliveries',
    summary: 'Lists the deliveries of billing providers, the latest first, and what came of each.',
    query: schemas.diagnosticsQuery,
    response: { status: 200, schema: schemas.webhooksPage },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'webhooks', appId: app.id, filters: {} };
      const after = decodeCursor(key, millisKey, query.cursor);
      const page = await listWebhookDeliveries(deps.sql, app.id, after, query.limit);
      return presentPage(key, page, presentDelivery);
    },
  }),
];
