import * as z from 'zod';
import {
  changeWebhookEndpoint,
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
  rotateSigningSecret,
  signingSecretContext,
} from '../../db/webhook-endpoints.ts';
import type { WebhookEndpoint } from '../../db/webhook-endpoints.ts';
import { createTestMessage } from '../../db/webhook-messages.ts';
import { DEFAULT_GRACE_SECONDS } from '../../domain/keys.ts';
import {
  DEACTIVATION_REASONS,
  MAX_ENDPOINTS,
  WEBHOOK_TYPES,
  webhookUrlProblem,
} from '../../domain/outgoing-webhooks.ts';
import type { WebhookEndpointId } from '../../domain/ids.ts';
import type { HttpDeps } from '../deps.ts';
import { foundOrThrow, invalidField, withAdvice } from '../errors.ts';
import { epochMs, graceSeconds, idOf, label, orNull, textField } from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { notSent, presentMessage, webhookMessage } from './webhook-messages.ts';

const SECRET_BYTES = 32;
const DESCRIPTION = 'What the endpoint is for.';
const URL_TEXT =
  'Where messages are sent to: https, with neither a user name nor a part after #, and with a name or a public address as host.';

const eventType = z.enum(WEBHOOK_TYPES).describe('A type of messages. docs/webhooks-out.md describes each.');
const eventTypes = z
  .array(eventType)
  .min(1)
  .max(WEBHOOK_TYPES.length)
  .meta({
    description: 'The types that are sent to it.',
    examples: [['commission.created', 'payout.created']],
  });
const url = z
  .string()
  .max(2000)
  .meta({ description: URL_TEXT, examples: ['https://example.com/webhooks/tributary'] });
const description = label.meta({ description: DESCRIPTION, examples: ['Notifies the CRM'] });

const endpointId = { endpointId: 'webhookEndpoint' } as const;

const webhookEndpoint = z
  .object({
    id: idOf('webhookEndpoint', 'The id of the endpoint.'),
    url: textField('https://example.com/webhooks/tributary', URL_TEXT),
    description: orNull(textField('Notifies the CRM', DESCRIPTION), 'Null if it was not said.'),
    eventTypes: z.array(eventType).describe('The types that are sent to it.'),
    active: z.boolean().describe('Whether messages are sent to it.'),
    deactivatedAt: orNull(epochMs('When it was deactivated.'), 'Null while it is active.'),
    deactivatedReason: orNull(
      z
        .enum(DEACTIVATION_REASONS)
        .describe(
          'Why it is not active: `by_request`; `failing` if no attempt succeeded for three days; `gone` if it responded with 410; `deleted` in the response that deletes it.',
        ),
      'Null while it is active.',
    ),
    failingSince: orNull(
      epochMs('Since when every attempt has failed.'),
      'Null after a success, and before the first attempt.',
    ),
    secretCreatedAt: epochMs('When its secret was created.'),
    previousSecretExpiresAt: orNull(
      epochMs('Until when messages are also signed with the previous secret.'),
      'Null if there is none.',
    ),
    createdAt: epochMs('When it was created.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'An endpoint that receives messages, without its secret.' });

const endpointWithSecret = webhookEndpoint
  .extend({
    secret: textField(
      'whsec_Zm9yIGRvY3VtZW50YXRpb24gb25seSA3',
      'The secret that signs its messages. Returned only once.',
    ),
  })
  .meta({ id: 'WebhookEndpointWithSecret', description: 'The endpoint, with its new secret.' });

function presentEndpoint(row: WebhookEndpoint) {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    eventTypes: [...row.eventTypes],
    active: row.deactivatedAt === null,
    deactivatedAt: row.deactivatedAt,
    deactivatedReason: row.deactivatedReason,
    failingSince: row.failingSince,
    secretCreatedAt: row.secretCreatedAt,
    previousSecretExpiresAt: row.previousSecretExpiresAt,
    createdAt: row.createdAt,
  };
}

/** Throws 400 if an endpoint may not have this URL. */
function requireUrl({ webhookTargets = 'public' }: HttpDeps, text: string): void {
  const problem = webhookUrlProblem(text, webhookTargets);
  if (problem !== null) throw invalidField('url', problem);
}

/** Creates a secret as Standard Webhooks writes it, and its encrypted form. */
function createSecret({ secretBox }: HttpDeps, idGenerator: IdGenerator, id: WebhookEndpointId) {
  const secretId = idGenerator.id('secret');
  const secret = `whsec_${idGenerator.bytes(SECRET_BYTES).toString('base64')}`;
  return { secret, stored: { secretId, ...secretBox.encrypt(secret, signingSecretContext(id)) } };
}

export const webhookEndpointRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/webhook-endpoints',
    caller: accountApp('setup'),
    operationId: 'listWebhookEndpoints',
    summary: 'Lists the endpoints that receive messages, oldest first.',
    description: 'Never returns a secret.',
    response: {
      status: 200,
      schema: z
        .object({
          items: z.array(webhookEndpoint).describe('All endpoints, active or not.'),
        })
        .meta({ id: 'WebhookEndpointList', description: 'The endpoints of the app, oldest first.' }),
    },
    handler: async ({ deps, app }) => ({
      items: (await listWebhookEndpoints(deps.sql, app.id)).map(presentEndpoint),
    }),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/webhook-endpoints',
    caller: accountApp('setup'),
    operationId: 'createWebhookEndpoint',
    summary: 'Creates an endpoint that receives messages.',
    description: `The secret is returned only once. An app has at most ${MAX_ENDPOINTS} endpoints, active or not.`,
    body: z
      .strictObject({ url, eventTypes, description: description.optional() })
      .meta({ id: 'NewWebhookEndpoint', description: 'An endpoint to create.' }),
    response: { status: 201, schema: endpointWithSecret },
    errors: ['too_many_endpoints'],
    handler: async ({ deps, app, body, idGenerator }) => {
      requireUrl(deps, body.url);
      const id = idGenerator.id('webhookEndpoint');
      const { secret, stored } = createSecret(deps, idGenerator, id);
      const created = await createWebhookEndpoint(deps.sql, {
        id,
        appId: app.id,
        url: body.url,
        description: body.description ?? null,
        eventTypes: [...new Set(body.eventTypes)],
        ...stored,
      });
      if (created === undefined) throw withAdvice('too_many_endpoints');
      return { ...presentEndpoint(created), secret };
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/webhook-endpoints/:endpointId',
    caller: accountApp('setup'),
    operationId: 'getWebhookEndpoint',
    ids: endpointId,
    summary: 'Retrieves an endpoint.',
    description: 'Never returns its secret.',
    response: { status: 200, schema: webhookEndpoint },
    handler: async ({ deps, app, ids }) =>
      presentEndpoint(foundOrThrow(await findWebhookEndpoint(deps.sql, app.id, ids.endpointId))),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/webhook-endpoints/:endpointId',
    caller: accountApp('setup'),
    operationId: 'updateWebhookEndpoint',
    ids: endpointId,
    summary: 'Changes, deactivates or activates an endpoint.',
    description:
      'While an endpoint is not active, nothing is written for it, and messages that wait for an attempt fail. Facts of that time are not sent later. With another `url`, messages that wait are sent at once.',
    body: z
      .strictObject({
        url: url.optional(),
        eventTypes: eventTypes.optional(),
        description: orNull(description, 'Null removes it.').optional(),
        active: z.boolean().describe('False deactivates the endpoint, true activates it.').optional(),
      })
      .meta({ id: 'WebhookEndpointChange', description: 'The fields to change.' }),
    response: { status: 200, schema: webhookEndpoint },
    handler: async ({ deps, app, ids, body }) => {
      if (body.url !== undefined) requireUrl(deps, body.url);
      const changed = await changeWebhookEndpoint(deps.patientSql, app.id, ids.endpointId, {
        ...(body.url === undefined ? {} : { url: body.url }),
        ...(body.eventTypes === undefined ? {} : { eventTypes: [...new Set(body.eventTypes)] }),
        ...(body.description === undefined ? {} : { description: body.description }),
        ...(body.active === undefined ? {} : { isActive: body.active }),
      });
      return presentEndpoint(foundOrThrow(changed));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/webhook-endpoints/:endpointId/rotate-secret',
    caller: accountApp('setup'),
    operationId: 'rotateWebhookEndpointSecret',
    ids: endpointId,
    summary: 'Replaces the secret of an endpoint.',
    description:
      'The new secret is returned only once. During the grace period messages have a signature of each secret. The secret before the previous one ends at once.',
    body: z
      .strictObject({ graceSeconds: graceSeconds.optional() })
      .meta({ id: 'WebhookSecretRotation', description: 'How long the previous secret also signs.' }),
    response: { status: 200, schema: endpointWithSecret },
    handler: async ({ deps, app, ids, body, now, idGenerator }) => {
      const { secret, stored } = createSecret(deps, idGenerator, ids.endpointId);
      const previousEndsAt = now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
      const rotated = await rotateSigningSecret(
        deps.patientSql,
        app.id,
        ids.endpointId,
        { ...stored, previousEndsAt },
        deps.secretBox,
      );
      return { ...presentEndpoint(foundOrThrow(rotated)), secret };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/webhook-endpoints/:endpointId/test',
    caller: accountApp('setup'),
    operationId: 'testWebhookEndpoint',
    ids: endpointId,
    summary: 'Sends a test message to an endpoint.',
    description:
      'It has the type `webhook.test`, and is signed and retried as any other. The endpoint must be active.',
    response: { status: 201, schema: webhookMessage },
    errors: ['endpoint_not_active'],
    handler: async ({ deps, app, ids, idGenerator }) => {
      const id = idGenerator.id('webhookMessage');
      const message = await createTestMessage(deps.patientSql, app.id, ids.endpointId, id);
      if (message === undefined) throw await notSent(deps, app.id, ids.endpointId);
      return presentMessage(message);
    },
  }),

  route({
    method: 'DELETE',
    path: '/apps/:appId/webhook-endpoints/:endpointId',
    caller: accountApp('setup'),
    operationId: 'deleteWebhookEndpoint',
    ids: endpointId,
    summary: 'Deletes an endpoint.',
    description:
      'Its secret is deleted with it, and messages that wait for an attempt fail. Its messages stay in the list for as long as messages are kept. The same call again changes nothing.',
    response: { status: 200, schema: webhookEndpoint },
    handler: async ({ deps, app, ids }) =>
      presentEndpoint(foundOrThrow(await deleteWebhookEndpoint(deps.patientSql, app.id, ids.endpointId))),
  }),
];
