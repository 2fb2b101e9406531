import * as z from 'zod';
import { findEventHistory } from '../../db/explanations.ts';
import { EVENT_KINDS } from '../../domain/events.ts';
import { explainEvent } from '../../domain/explain-event.ts';
import { LIKELY_CAUSES } from '../../domain/likely-causes.ts';
import { providers } from '../../providers/index.ts';
import { foundOrThrow } from '../errors.ts';
import * as enums from '../enum-fields.ts';
import {
  nameOfAffiliate,
  cents,
  count,
  epochMs,
  idOf,
  orNull,
  presentedUserId,
  sourceEventId,
  storeAmountMinor as amountMinor,
  storeCurrency,
  textField,
} from '../fields.ts';
import { policyInputs } from '../policy-fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { attributableKey } from './attributable-key.ts';
import { commission } from './commissions.ts';

const paymentRef = textField('in_1SZ', "The store's reference of the payment.");

/** A step with its decisions, which are stable, and its facts: the input of the decision. */
function step<const N extends string, D extends z.ZodType, F extends z.ZodType>(
  name: N,
  id: string,
  decision: D,
  facts: F,
) {
  return z
    .object({
      step: z.literal(name).describe('The name of the step.'),
      decision: decision.describe('What the step decided. Stable.'),
      explanation: textField(
        'The user user-4711 is attributed to First creator by a link code.',
        'A sentence for people.',
      ),
      facts: facts.describe('The input of the decision. A field is absent if it had no part in it.'),
    })
    .meta({ id, description: 'A step: what it decided, and from which facts.' });
}

const verify = step(
  'verify',
  'VerifyStep',
  z.enum(['verified', 'reconciled', 'rejected']),
  z.object({
    provider: enums.provider,
    scheme: z
      .enum(['static_token', 'hmac'])
      .describe('How the provider proves its requests: a token in a header, or a signature.'),
    receivedAt: epochMs('When the webhook arrived.'),
    secretSetAt: orNull(epochMs('When the secret that matched was set.'), 'Null if none matched.'),
    secretEnvironment: orNull(enums.environment, 'Null if no secret matched.'),
  }),
);

const storeRaw = step(
  'store_raw',
  'StoreRawStep',
  z.enum(['stored']),
  z.object({
    deliveryId: idOf('delivery'),
    bodySha256: textField('0'.repeat(64), 'The SHA-256 of the body, hexadecimal.'),
    bodyBytes: orNull(count('The length of the body in bytes.'), 'Null once the body is deleted.'),
  }),
);

/** A part of the payment that does not reach the app. */
const component = z.object({
  amountMinor: z.int().meta({ description: 'Whole minor units of `currency`.', examples: [319] }),
  estimated: z
    .boolean()
    .describe('Whether the provider estimates it as a share of the amount, instead of stating it.'),
});

const normalize = step(
  'normalize',
  'NormalizeStep',
  z.enum([...EVENT_KINDS, 'read', 'failed', 'ignored', 'processing']),
  z
    .object({
      kind: enums.eventKind,
      environment: enums.environment,
      occurredAt: epochMs('When it happened, according to the provider.'),
      productId: orNull(textField('pro_monthly', 'The product.'), 'Null if the event names none.'),
      store: orNull(
        textField('app_store', 'The store that took the money.'),
        'Null if the event names none.',
      ),
      paymentRef: orNull(paymentRef, 'Null if the event names none.'),
      currency: orNull(storeCurrency, 'Null if the event states no amount.'),
      amountMinor,
      tax: component.describe('The tax in the amount. Absent if the event states none.'),
      storeFee: component.describe(
        'What the store, or the merchant of record, keeps of the amount. Absent if the event states none.',
      ),
      customerUserId: orNull(presentedUserId, 'Null if the event names none.'),
      lastError: orNull(
        textField('the database is unavailable', 'Why the last attempt to process it failed.'),
        'Null if none failed.',
      ),
    })
    .partial(),
);

const dedupe = step(
  'dedupe',
  'DedupeStep',
  z.enum(['first', 'same_payment', 'duplicate']),
  z
    .object({
      sourceEventId,
      firstEventId: idOf('event', 'The id of the event that first reported the payment.'),
      duplicateOfEventId: orNull(
        idOf('event', 'The id of the event that this delivery repeats.'),
        'Null if the event is not stored any more.',
      ),
    })
    .partial(),
);

const touch = z.object({
  affiliateId: idOf('affiliate'),
  matchMethod: enums.matchMethod,
  touchedAt: epochMs('When the click or the entry of the code happened.'),
});

const explainedUser = z
  .object({
    customerUserId: presentedUserId,
    keySource: enums.provider
      .describe('The provider whose id it is, of a subscription or an anonymous customer. Absent for a user.')
      .optional(),
    identified: z.boolean().describe('Whether a device reported this user.'),
    similarUserIds: z
      .array(z.string())
      .max(5)
      .meta({
        description: 'Reported user ids that differ only in spelling.',
        examples: [['4711']],
      }),
    attribution: orNull(
      touch
        .extend({
          matchMethod: enums.attributionMethod,
          attributionId: idOf('attribution'),
          decided: z.boolean().describe('Whether this attribution decided about the payment.'),
          affiliateName: nameOfAffiliate,
          linkId: orNull(idOf('link'), "Null if the user entered an affiliate's id as the code."),
          clickId: orNull(idOf('click'), 'Null if the user entered a code.'),
          firstOpenAt: epochMs('When the app was first opened on the device.'),
          boundAt: epochMs('When the user was bound to the attribution.'),
          lostTouches: z
            .array(touch)
            .describe('Later touches of the device, which have no effect: the first one counts.'),
        })
        .describe("The attribution of the user's device."),
      'Null if the device came through no creator.',
    ),
    testAttribution: orNull(
      touch
        .extend({
          attributionId: idOf('attribution'),
          affiliateName: nameOfAffiliate,
          linkId: orNull(idOf('link'), "Null if the user entered an affiliate's id as the code."),
        })
        .describe("The attribution of the user's device by a test key. It never earns."),
      'Null if there is none.',
    ),
  })
  .meta({ id: 'ExplainedUser', description: 'A user whom the events of the payment name.' });

const explainedCode = z
  .object({
    namespace: enums.codeNamespace,
    value: textField('SPRING20', 'What the event states: the code, or the id of it at Stripe or Paddle.'),
    state: enums.codeState,
    affiliateId: orNull(idOf('affiliate'), 'Null if no affiliate has the code.'),
    affiliateName: orNull(nameOfAffiliate, 'Null if no affiliate has the code.'),
  })
  .meta({ id: 'ExplainedCode', description: 'A code that a payment came with.' });

const attribute = step(
  'attribute',
  'AttributeStep',
  z.enum(['attributed', 'not_needed', 'waiting_for_payment', 'counted_elsewhere', ...LIKELY_CAUSES]),
  z
    .object({
      users: z.array(explainedUser).describe('The users whom the events of the payment name.'),
      codes: z.array(explainedCode).describe('The codes that the payment came with. Absent without any.'),
      attributableKey,
      paymentRef,
      paidAt: epochMs('When the customer paid.'),
      attributionWindowDays: count("The app's current setting. Days from the click to the first open."),
    })
    .partial(),
);

const NOT_CONVERTED = 'Null if the amount was not converted.';

const writeCommission = step(
  'write_commission',
  'WriteCommissionStep',
  z.enum(['earned', 'reversed', 'corrected', 'none', ...LIKELY_CAUSES]),
  z.object({
    price: z
      .object({
        currency: orNull(storeCurrency, 'Null if the event states no amount.'),
        amountMinor,
        amountCents: orNull(cents('The same amount.'), 'Null if it is unknown or not converted yet.'),
        fxUnits: orNull(
          textField(
            '0.9',
            'This many units of the currency are worth `fxWorthUsd` dollars. A decimal number.',
          ),
          NOT_CONVERTED,
        ),
        fxWorthUsd: orNull(
          textField('1', 'What `fxUnits` are worth in dollars. A decimal number.'),
          NOT_CONVERTED,
        ),
        fxSource: orNull(textField('ecb 2026-11-20', 'The source and the day of the rate.'), NOT_CONVERTED),
      })
      .describe('What the event says about money.'),
    commissions: z
      .array(
        commission
          .pick({
            status: true,
            rateBps: true,
            policy: true,
            baseCents: true,
            amountCents: true,
            occurredAt: true,
            dueAt: true,
            payoutId: true,
          })
          .extend({
            commissionId: idOf('commission'),
            eventId: idOf('event', 'The id of the event that the row results from.'),
            kind: enums.paymentCommissionKind,
            rateSource: orNull(
              z
                .enum(['affiliate', 'app', 'policy'])
                .describe("Whether the rate was the affiliate's own, the app's, or that of a policy."),
              'Null if that is not stored.',
            ),
            policyScope: z
              .enum(['affiliate', 'group', 'app'])
              .describe(
                'What the policy of an earning was assigned to when the customer paid. Absent for another row.',
              )
              .optional(),
            policyInputs: policyInputs.optional(),
          }),
      )
      .describe('For a payment all its rows, else the rows of this event.'),
  }),
);

const explanation = z
  .object({
    eventId: idOf('event'),
    deliveryId: idOf('delivery'),
    source: enums.provider,
    steps: z
      .array(z.discriminatedUnion('step', [verify, storeRaw, normalize, dedupe, attribute, writeCommission]))
      .describe('In order. The last one is the step that ended the delivery.'),
  })
  .meta({ id: 'Explanation', description: 'What each step decided, in order.' });

type Steps = z.input<typeof explanation>['steps'];

export const explanationRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/events/:eventId/explanation',
    caller: accountApp('read'),
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
      const steps = explainEvent(history, providers[source]) as unknown as Steps;
      return { eventId, deliveryId: delivery.deliveryId, source, steps };
    },
  }),
];
