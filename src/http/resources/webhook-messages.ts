import * as z from 'zod';
import { findSlackEndpoint } from '../../db/slack-endpoint.ts';
import { findWebhookEndpoint } from '../../db/webhook-endpoints.ts';
import {
  findWebhookMessage,
  listWebhookAttempts,
  listWebhookMessages,
  sendMessageAgain,
} from '../../db/webhook-messages.ts';
import type { WebhookAttempt, WebhookMessage } from '../../db/webhook-messages.ts';
import type { AppId, WebhookEndpointId } from '../../domain/ids.ts';
import { MESSAGE_STATUSES, MESSAGE_TYPES } from '../../domain/outgoing-webhooks.ts';
import type { HttpDeps } from '../deps.ts';
import { foundOrThrow, notFound, withAdvice } from '../errors.ts';
import type { ApiError } from '../errors.ts';
import { count, epochMs, filterId, idOf, inputId, orNull, textField } from '../fields.ts';
import {
  decodeCursor,
  integerKey,
  EMPTY_PAGE,
  MAY_BE_SHORT,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const status = z
  .enum(MESSAGE_STATUSES)
  .describe('`pending` while an attempt will follow, `delivered`, or `failed` when none follows.');
const type = z
  .enum(MESSAGE_TYPES)
  .describe('What the message reports. docs/webhooks-out.md describes each type.');
const problem = textField('The endpoint responded with 503.', 'Why the attempt failed.');

export const webhookMessage = z
  .object({
    id: idOf('webhookMessage', 'The id of the message: the header `webhook-id` of each attempt.'),
    endpointId: idOf('webhookEndpoint', 'The id of the endpoint.'),
    type,
    subjectId: orNull(
      textField('com_01kbf2z4x8e0rvq1n3m5t7w9yc', 'The id of the commission, payout, delivery or alert.'),
      'Null for a test.',
    ),
    data: z.record(z.string(), z.unknown()).describe('The `data` of the message.'),
    status,
    attempts: count('The number of attempts so far.'),
    nextAttemptAt: orNull(epochMs('When the next attempt is due.'), 'Null if none follows.'),
    lastProblem: orNull(problem, 'Null if the last attempt did not fail.'),
    createdAt: epochMs('When the fact was written.'),
    completedAt: orNull(epochMs('When it was delivered or failed.'), 'Null while it is `pending`.'),
  })
  .meta({ id: 'WebhookMessage', description: 'A message to an endpoint.' });

const attempt = z
  .object({
    number: count('The number of the attempt, from 1.'),
    startedAt: epochMs('When it began.'),
    durationMs: count('How long it took, milliseconds.'),
    statusCode: orNull(count('The status of the response.'), 'Null if there was no response.'),
    problem: orNull(problem, 'Null for a success.'),
    response: orNull(
      textField('{"ok":true}', 'The first 2048 bytes of the response, as text.'),
      'Null if there was no response.',
    ),
  })
  .meta({ id: 'WebhookAttempt', description: 'An attempt at a message.' });

const messageId = { messageId: 'webhookMessage' } as const;

export function presentMessage(row: WebhookMessage) {
  return {
    id: row.id,
    endpointId: row.endpointId,
    type: row.type,
    subjectId: row.subjectId,
    data: row.data,
    status: row.status,
    attempts: row.attempts,
    nextAttemptAt: row.nextAttemptAt,
    lastProblem: row.lastProblem,
    createdAt: row.createdAt,
    completedAt: row.completedAt,
  };
}

function presentAttempt(row: WebhookAttempt) {
  return {
    number: row.number,
    startedAt: row.startedAt,
    durationMs: row.durationMs,
    statusCode: row.statusCode,
    problem: row.problem,
    response: row.response,
  };
}

/** Returns why nothing was sent to an endpoint: 404 if the app does not have it, and otherwise 409, as it is not active. */
export async function notSent(
  { sql }: HttpDeps,
  appId: AppId,
  endpointId: WebhookEndpointId,
): Promise<ApiError> {
  const endpoint =
    (await findWebhookEndpoint(sql, appId, endpointId)) ?? (await findSlackEndpoint(sql, appId));
  return endpoint?.id !== endpointId ? notFound() : withAdvice('endpoint_not_active');
}

export const webhookMessageRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/webhook-messages',
    caller: accountApp('read'),
    operationId: 'listWebhookMessages',
    summary: 'Lists the messages to endpoints, latest first.',
    description: MAY_BE_SHORT,
    query: z.object({
      ...pageQuery,
      endpointId: inputId('webhookEndpoint').optional(),
      status: status.optional(),
      type: type.optional(),
    }),
    response: { status: 200, schema: pageSchema(webhookMessage) },
    handler: async ({ deps, app, query }) => {
      const filters = {
        endpointId: query.endpointId ?? null,
        status: query.status ?? null,
        type: query.type ?? null,
      };
      const key = { list: 'webhook-messages', appId: app.id, filters };
      const after = decodeCursor(key, timeKey, query.cursor);
      const endpointId = filterId('webhookEndpoint', query.endpointId);
      if (endpointId === 'none') return EMPTY_PAGE;
      const page = await listWebhookMessages(
        deps.sql,
        app.id,
        { ...filters, endpointId },
        after,
        query.limit,
      );
      return presentPage(key, page, presentMessage);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/webhook-messages/:messageId',
    caller: accountApp('read'),
    operationId: 'getWebhookMessage',
    ids: messageId,
    summary: 'Retrieves a message.',
    response: { status: 200, schema: webhookMessage },
    handler: async ({ deps, app, ids }) =>
      presentMessage(foundOrThrow(await findWebhookMessage(deps.sql, app.id, ids.messageId))),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/webhook-messages/:messageId/attempts',
    caller: accountApp('read'),
    operationId: 'listWebhookAttempts',
    ids: messageId,
    summary: 'Lists the attempts at a message, latest first.',
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(attempt) },
    handler: async ({ deps, app, ids, query }) => {
      const key = { list: 'webhook-attempts', appId: app.id, filters: { messageId: ids.messageId } };
      const after = decodeCursor(key, integerKey, query.cursor);
      foundOrThrow(await findWebhookMessage(deps.sql, app.id, ids.messageId));
      const page = await listWebhookAttempts(deps.sql, ids.messageId, after, query.limit);
      return presentPage(key, page, presentAttempt);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/webhook-messages/:messageId/send-again',
    caller: accountApp('setup'),
    operationId: 'sendWebhookMessageAgain',
    ids: messageId,
    summary: 'Sends a message again.',
    description:
      'The next attempt follows at once. If it fails, as many follow as at a new message. The message keeps its `webhook-id`. Its endpoint must be active.',
    response: { status: 200, schema: webhookMessage },
    errors: ['endpoint_not_active'],
    handler: async ({ deps, app, ids }) => {
      const message = await sendMessageAgain(deps.patientSql, app.id, ids.messageId);
      if (message === undefined) {
        const { endpointId } = foundOrThrow(await findWebhookMessage(deps.sql, app.id, ids.messageId));
        throw await notSent(deps, app.id, endpointId);
      }
      deps.workflows.sendWebhookNow({ messageId: message.id, appId: app.id });
      return presentMessage(message);
    },
  }),
];
