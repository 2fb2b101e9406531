import * as z from 'zod';
import { COMMISSION_STATUSES } from '../../db/commissions.ts';
import { findEventHistory } from '../../db/explanations.ts';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { COMMISSION_KINDS } from '../../domain/evaluate-payment.ts';
import { ENVIRONMENTS, EVENT_KINDS } from '../../domain/events.ts';
import { explainEvent } from '../../domain/explain-event.ts';
import { LIKELY_CAUSES } from '../../domain/likely-causes.ts';
import { PROVIDER_NAMES, providers } from '../../providers/index.ts';
import { foundOrThrow } from '../errors.ts';
import { cents, count, epochMs, idOf, rateBps, textField } from '../fields.ts';
import { appRoute } from '../route.ts';

/** A step with its decisions, which are stable, and its facts: the input of the decision. */
function step<const N extends string, D extends z.ZodType, F extends z.ZodType>(
  name: N,
  id: string,
  decision: D,
  facts: F,
) {
  return z
    .object({
      step: z.literal(name),
      decision,
      explanation: textField(
        'The user user-4711 is attributed to First creator by a code.',
        'A sentence for people.',
      ),
      facts,
    })
    .meta({ id, description: 'A step: what it decided, and from which facts.' });
}

const verify = step(
  'verify',
  'VerifyStep',
  z.enum(['verified', 'rejected']),
  z.object({
    provider: z.enum(PROVIDER_NAMES),
    scheme: z.enum(['static_token', 'hmac']),
    receivedAt: epochMs,
    secretSetAt: epochMs.nullable(),
    secretEnvironment: z.enum(ENVIRONMENTS).nullable(),
  }),
);

const storeRaw = step(
  'store_raw',
  'StoreRawStep',
  z.enum(['stored']),
  z.object({
    deliveryId: idOf('delivery'),
    bodySha256: textField('0'.repeat(64)),
    bodyBytes: count.nullable(),
  }),
);

const normalize = step(
  'normalize',
  'NormalizeStep',
  z.enum([...EVENT_KINDS, 'read', 'failed', 'ignored', 'processing']),
  z
    .object({
      kind: z.enum(EVENT_KINDS),
      environment: z.enum(ENVIRONMENTS),
      occurredAt: epochMs,
      productId: textField('pro_monthly').nullable(),
      store: textField('app_store').nullable(),
      paymentRef: textField('in_1SZ').nullable(),
      currency: textField('EUR').nullable(),
      amountMinor: z
        .int()
        .nullable()
        .meta({ description: 'Minor units of `currency`.', examples: [999] }),
      customerUserId: textField('user-4711').nullable(),
      lastError: textField('the database is unavailable').nullable(),
    })
    .partial(),
);

const dedupe = step(
  'dedupe',
  'DedupeStep',
  z.enum(['first', 'same_payment', 'duplicate']),
  z
    .object({
      sourceEventId: textField('evt_1SZ'),
      firstEventId: idOf('event'),
      toldBefore: idOf('event').nullable(),
    })
    .partial(),
);

const touch = z.object({
  affiliateId: idOf('affiliate'),
  matchMethod: z.enum(MATCH_METHODS),
  touchedAt: epochMs,
});

const explainedUser = z
  .object({
    customerUserId: textField('user-4711'),
    identified: z.boolean(),
    similarUserIds: z.array(textField('4711')),
    attribution: touch
      .extend({
        attributionId: idOf('attribution'),
        decided: z.boolean().describe('Whether this attribution decided about the payment.'),
        affiliateName: textField('First creator'),
        linkId: idOf('link').nullable(),
        clickId: idOf('click').nullable(),
        firstOpenAt: epochMs,
        boundAt: epochMs,
        lostTouches: z.array(touch),
      })
      .nullable(),
  })
  .meta({ id: 'ExplainedUser', description: 'A user whom the events of the payment name.' });

const attribute = step(
  'attribute',
  'AttributeStep',
  z.enum(['attributed', 'not_needed', 'waiting_for_payment', 'counted_elsewhere', ...LIKELY_CAUSES]),
  z
    .object({
      users: z.array(explainedUser),
      paymentRef: textField('in_1SZ'),
      paidAt: epochMs,
      attributionWindowDays: count,
    })
    .partial(),
);

const writeCommission = step(
  'write_commission',
  'WriteCommissionStep',
  z.enum(['earned', 'reversed', 'corrected', 'none', ...LIKELY_CAUSES]),
  z.object({
    price: z.object({
      currency: textField('EUR').nullable(),
      amountMinor: z
        .int()
        .nullable()
        .meta({ description: 'Minor units of `currency`.', examples: [999] }),
      amountCents: cents.nullable(),
      fxUnits: textField('0.9').nullable(),
      fxWorthUsd: textField('1').nullable(),
      fxSource: textField('ecb 2026-11-20').nullable(),
    }),
    commissions: z.array(
      z.object({
        commissionId: idOf('commission'),
        eventId: idOf('event'),
        kind: z.enum(COMMISSION_KINDS),
        status: z.enum(COMMISSION_STATUSES),
        rateBps,
        rateSource: z.enum(['affiliate', 'app']).nullable(),
        baseCents: cents,
        amountCents: cents,
        occurredAt: epochMs,
        dueAt: epochMs,
      }),
    ),
  }),
);

const explanation = z
  .object({
    eventId: idOf('event'),
    deliveryId: idOf('delivery'),
    source: z.enum(PROVIDER_NAMES),
    steps: z.array(
      z.discriminatedUnion('step', [verify, storeRaw, normalize, dedupe, attribute, writeCommission]),
    ),
  })
  .meta({ id: 'Explanation', description: 'What each step decided, in order.' });

type Steps = z.input<typeof explanation>['steps'];

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
      // The rules of src/domain do not know the schema. The tests compare every response with it.
      const steps = explainEvent(history, providers[source].scheme) as unknown as Steps;
      return { eventId, deliveryId: delivery.deliveryId, source, steps };
    },
  }),
];
