import * as z from 'zod';
import { findEventHistory } from '../../db/explanations.ts';
import { explainEvent, EXPLANATION_STEPS } from '../../domain/explain-event.ts';
import { PROVIDER_NAMES, providers } from '../../providers/index.ts';
import { foundOrThrow } from '../errors.ts';
import { idOf, textField } from '../fields.ts';
import { appRoute } from '../route.ts';

const explanation = z.object({
  eventId: idOf('event'),
  deliveryId: idOf('delivery'),
  source: z.enum(PROVIDER_NAMES),
  steps: z.array(
    z.object({
      step: z.enum(EXPLANATION_STEPS),
      decision: textField('attributed', 'Stable, in snake case.'),
      explanation: textField('The user user-4711 is attributed to First creator by a code.'),
      facts: z
        .record(z.string(), z.unknown())
        .meta({ description: 'The input of the decision. Differs by step.', examples: [{}] }),
    }),
  ),
});

export const explanationRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/events/:eventId/explanation',
    permission: 'read',
    operationId: 'explainEvent',
    summary: 'Explains how a webhook event was processed, step by step.',
    description:
      'Reports how the request was verified, how its body was read, which binding and touch decided and which lost, which ' +
      'rate applied and why, or why there is no commission. `eventId` is the one in the response to the webhook, also for a ' +
      'body that could not be read.',
    ids: { eventId: 'event' },
    response: { status: 200, schema: explanation },
    handler: async ({ deps, app, ids }) => {
      const history = foundOrThrow(await findEventHistory(deps.sql, app.id, ids.eventId));
      const { eventId, source, delivery } = history;
      const steps = explainEvent(history, providers[source].scheme).map((step) => ({
        ...step,
        facts: { ...step.facts },
      }));
      return { eventId, deliveryId: delivery.deliveryId, source, steps };
    },
  }),
];
