import { findEventFile } from '../../db/explanations.ts';
import { explainEvent } from '../../domain/explain-event.ts';
import { providers } from '../../providers/index.ts';
import { foundOrThrow } from '../errors.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/explanation.ts';

export const explanationRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/events/:eventId/explanation',
    auth: 'account',
    permission: 'read',
    operationId: 'explainEvent',
    summary: 'Explains what became of a webhook event, step by step.',
    description:
      'How it was verified, what it was read as, which binding and touch decided and which lost, which rate was used and ' +
      'why, or why there is no commission. `eventId` is the one that the webhook was answered with, also for a body that ' +
      'could not be read.',
    ids: { eventId: 'event' },
    response: { status: 200, schema: schemas.explanation },
    handler: async ({ deps, app, ids }) => {
      const file = foundOrThrow(await findEventFile(deps.sql, app.id, ids.eventId));
      const { eventId, source, delivery } = file;
      const steps = explainEvent(file, providers[source].scheme).map((step) => ({
        ...step,
        facts: { ...step.facts },
      }));
      return { eventId, deliveryId: delivery.deliveryId, source, steps };
    },
  }),
];
