import * as z from 'zod';
import { receiveWebhook } from '../../commands/receive-webhook.ts';
import type { DeliveryOutcome } from '../../domain/delivery.ts';
import { isId } from '../../domain/ids.ts';
import { isProviderName, providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';
import { WEBHOOK_BODY_BYTES } from '../body-limits.ts';
import { ApiError, notFound } from '../errors.ts';
import { countAsFailed } from '../failed-calls.ts';
import { idOf, orNull, textField } from '../fields.ts';
import { readBytes } from '../read-body.ts';
import type { HeldBody } from '../read-body.ts';
import { addressCaller, refuseOverLimit } from '../rate-limits.ts';
import { billingProvider } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/**
 * The fields that a provider expects in the response to the test request of its set-up page, such as Adapty's. They depend on the
 * request, so the type of a response names none of them.
 */
const setupFieldSchemas: Readonly<Record<never, z.ZodType>> = Object.fromEntries(
  Object.values(providers).flatMap(({ setupCheck }) =>
    setupCheck === undefined
      ? []
      : [
          [
            setupCheck.responseField,
            textField('5f3a9c', "The text of the provider's setup check, if the request is one.").optional(),
          ],
        ],
  ),
);

const webhookResponse = z
  .union([
    z.object({
      eventId: idOf('event'),
      commissionId: orNull(
        idOf('commission', 'The id of the commission that this event wrote.'),
        'Null if it wrote none.',
      ),
      pending: z
        .literal(true)
        .describe('Present if the delivery is stored but not processed yet. Processing continues.')
        .optional(),
      ...setupFieldSchemas,
    }),
    z.object({ duplicate: z.literal(true).describe('The event was received before.') }),
  ])
  .meta({ id: 'WebhookResult', description: 'What became of the webhook.' });

/** Returns the field that the provider expects in the response to its test request, if `body` is one. */
function setupFieldsOf(provider: ProviderName, body: Buffer): Readonly<Record<string, string>> {
  const check = providers[provider].setupCheck;
  const value = check?.responseTo(body) ?? null;
  return check === undefined || value === null ? {} : { [check.responseField]: value };
}

/** A delivery without an outcome counts from this duration on, ms: one that gets its slot at the last moment has no time to finish. */
const LEAST_MEASURED_MS = 1_000;

/** Whether the duration of a delivery says how busy the service is: a duplicate is no work. */
const saysHowBusy = (outcome: DeliveryOutcome | null, durationMs: number): boolean =>
  outcome === null ? durationMs >= LEAST_MEASURED_MS : outcome.status !== 'duplicate';

export const webhookRoutes = [
  route({
    method: 'POST',
    path: '/webhooks/:provider/:customerAppId',
    caller: billingProvider,
    operationId: 'receiveWebhook',
    summary: 'Receives a purchase event from a billing provider.',
    description:
      'An address whose requests to an app are refused too often gets 429 for a while, unless the app has received a valid webhook from it.',
    errors: [
      'body_in_small_parts',
      'unauthorized',
      'not_found',
      'payload_too_large',
      'rate_limited',
      'unavailable',
    ],
    response: { status: 200, schema: webhookResponse },
    handler: async ({ ctx, deps, params, now }) => {
      const { provider = '', customerAppId = '' } = params;
      if (!isProviderName(provider)) throw notFound();
      const sender = `${customerAppId} ${provider} ${addressCaller(ctx.ip)}`;
      const isKnown = deps.knownSenders.has(sender, now);
      if (!isKnown) refuseOverLimit(deps.rateLimits, 'refusals', sender);
      // Those of all unknown apps count together, as long as the app was not found.
      const isFound =
        isKnown ||
        (isId('app', customerAppId) && deps.webhookCache.secretsOf(customerAppId, provider) !== undefined);
      const uncount = isFound ? () => {} : countAsFailed(ctx, deps, 'refusals');
      let held: HeldBody<Buffer> = { body: Buffer.alloc(0), free: () => {} };
      const result = await receiveWebhook(
        {
          ...deps,
          // A body counts towards the budget for all bodies (`createBodyBudget`) until its signature is verified.
          admit: (work) => {
            held.free();
            return deps.intake.webhooks.run(customerAppId, work);
          },
          runInDeliverySlot: (waitMs, work) =>
            deps.intake.deliveries.runWithin(waitMs, customerAppId, work, saysHowBusy),
        },
        provider,
        customerAppId,
        {
          headers: ctx.headers,
          receivedAt: now,
          // The raw bytes, because signatures cover them and not the parsed value.
          readBody: async () => {
            uncount();
            held = await readBytes(ctx, deps, WEBHOOK_BODY_BYTES);
            return held.body;
          },
        },
      )
        .catch((error: unknown) => {
          uncount();
          throw error;
        })
        .finally(() => held.free());
      if (result.kind === 'refused') deps.rateLimits.count('refusals', sender);
      else deps.knownSenders.add(sender, now);
      switch (result.kind) {
        case 'done':
          return {
            eventId: result.eventId,
            commissionId: result.commissionId,
            ...setupFieldsOf(provider, held.body),
          };
        case 'pending':
          return {
            eventId: result.eventId,
            commissionId: null,
            pending: true as const,
            ...setupFieldsOf(provider, held.body),
          };
        case 'duplicate':
          return { duplicate: true as const };
        case 'refused':
          throw new ApiError('unauthorized', {
            detail:
              'The signature or token of this webhook could not be verified. Compare the secret here and at the provider.',
            headers: { 'WWW-Authenticate': 'Bearer' },
          });
      }
    },
  }),
];
