import * as z from 'zod';
import { ALERT_KEY, ALERT_STATUSES, listAlerts } from '../../db/alerts.ts';
import type { Alert } from '../../db/alerts.ts';
import { findSlackEndpoint, removeSlackUrl, setSlackUrl, slackUrlContext } from '../../db/slack-endpoint.ts';
import type { SlackEndpoint } from '../../db/slack-endpoint.ts';
import { createTestMessage } from '../../db/webhook-messages.ts';
import { ALERT_RULES } from '../../domain/alerts.ts';
import { DEACTIVATION_REASONS, webhookUrlProblem } from '../../domain/outgoing-webhooks.ts';
import { ApiError, foundOrThrow, invalidField } from '../errors.ts';
import { epochMs, idOf, orNull, textField } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { webhookMessage, presentMessage } from './webhook-messages.ts';

const alert = z
  .object({
    id: idOf('alert'),
    rule: z.enum(ALERT_RULES).describe('What it is about. docs/founders.md describes each rule.'),
    subject: textField(
      'stripe',
      'The name of the provider, or the id of the payout run or the endpoint that it is about.',
    ),
    facts: z
      .record(z.string(), z.union([z.string(), z.number(), z.null()]))
      .describe('What was found when it was opened. Instants end in `At`, spans in `Ms`, money in `Cents`.'),
    openedAt: epochMs('When it was opened.'),
    closedAt: orNull(epochMs('When it was closed.'), 'Null while it is open.'),
  })
  .meta({
    id: 'Alert',
    description: 'Something that needs a look, or needed one. Only closed, never changed.',
  });

const slack = z
  .object({
    isSet: z.boolean().describe('Whether there is a URL.'),
    endpointId: orNull(
      idOf('webhookEndpoint', 'The endpoint in the list of messages.'),
      'Null without a URL.',
    ),
    host: orNull(textField('hooks.slack.com', 'The host of the URL.'), 'Null without a URL.'),
    setAt: orNull(epochMs('When the URL was set.'), 'Null without a URL.'),
    deactivatedAt: orNull(epochMs('When the service deactivated it.'), 'Null while it is active.'),
    deactivatedReason: orNull(
      z
        .enum(DEACTIVATION_REASONS)
        .describe('Why: `failing` if no attempt succeeded for three days, `gone` if it responded with 410.'),
      'Null while it is active.',
    ),
    failingSince: orNull(
      epochMs('Since when every attempt has failed.'),
      'Null after a success, and before the first attempt.',
    ),
  })
  .meta({
    id: 'SlackUrl',
    description: 'What is known of the Slack URL of an app. The URL itself is a secret.',
  });

const newSlackUrl = z
  .strictObject({
    url: z
      .string()
      .max(2000)
      .meta({
        description:
          'An address of an incoming webhook of Slack, or of a service that accepts `{"text": "…"}`: https, with a name or a public address as host. Never returned.',
        examples: ['https://hooks.slack.com/services/T000/B000/example'],
      }),
  })
  .meta({ id: 'NewSlackUrl', description: 'The URL that gets text about alerts.' });

function presentAlert(row: Alert) {
  const { id, rule, subject, facts, openedAt, closedAt } = row;
  return { id, rule, subject, facts: { ...facts }, openedAt, closedAt };
}

function presentSlack(row: SlackEndpoint | undefined) {
  return {
    isSet: row !== undefined,
    endpointId: row?.id ?? null,
    host: row === undefined ? null : new URL(row.url).host,
    setAt: row?.setAt ?? null,
    deactivatedAt: row?.deactivatedAt ?? null,
    deactivatedReason: row?.deactivatedReason ?? null,
    failingSince: row?.failingSince ?? null,
  };
}

export const alertRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/alerts',
    caller: accountApp('read'),
    operationId: 'listAlerts',
    summary: 'Lists alerts: open ones first, then those that were opened last.',
    description: CSV_LIST,
    query: z.object({
      ...pageQuery,
      status: z.enum(ALERT_STATUSES).describe('Only open ones, or only closed ones.').optional(),
    }),
    response: { status: 200, schema: pageSchema(alert), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const status = query.status ?? null;
      const key = { list: 'alerts', appId: app.id, filters: { status } };
      const after = decodeCursor(key, z.string().regex(ALERT_KEY), query.cursor);
      return presentPage(key, await listAlerts(deps.sql, app.id, status, after, query.limit), presentAlert);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/slack-url',
    caller: accountApp('setup'),
    operationId: 'getSlackUrl',
    summary: 'Says whether a Slack URL is set, and how it works.',
    description: 'Never returns the URL.',
    response: { status: 200, schema: slack },
    handler: async ({ deps, app }) => presentSlack(await findSlackEndpoint(deps.sql, app.id)),
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/slack-url',
    caller: accountApp('setup'),
    operationId: 'setSlackUrl',
    summary: 'Sets the URL that gets a text about each alert, or replaces it.',
    description:
      'It gets `{"text": "…"}` when an alert opens and when it closes, as often as an endpoint of outgoing webhooks, without a signature. ' +
      'The URL is a secret: it is stored encrypted and never returned.',
    body: newSlackUrl,
    response: { status: 200, schema: slack },
    handler: async ({ deps, app, body, idGenerator }) => {
      const problem = webhookUrlProblem(body.url, deps.webhookTargets ?? 'public');
      if (problem !== null) throw invalidField('url', problem);
      const secretId = idGenerator.id('secret');
      const set = await setSlackUrl(deps.patientSql, app.id, {
        id: idGenerator.id('webhookEndpoint'),
        origin: new URL(body.url).origin,
        secretId,
        ...deps.secretBox.encrypt(body.url, slackUrlContext(secretId)),
      });
      return presentSlack(set);
    },
  }),

  route({
    method: 'DELETE',
    path: '/apps/:appId/slack-url',
    caller: accountApp('setup'),
    operationId: 'removeSlackUrl',
    summary: 'Removes the Slack URL.',
    description: 'Messages that wait for an attempt fail. The same call again changes nothing.',
    response: { status: 200, schema: slack },
    handler: async ({ deps, app }) => {
      await removeSlackUrl(deps.patientSql, app.id);
      return presentSlack(await findSlackEndpoint(deps.sql, app.id));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/slack-url/test',
    caller: accountApp('setup'),
    operationId: 'testSlackUrl',
    summary: 'Sends a test message to the Slack URL.',
    description: 'It is repeated as any other message. 404 without a URL.',
    response: { status: 201, schema: webhookMessage },
    errors: ['endpoint_not_active'],
    handler: async ({ deps, app, idGenerator }) => {
      const { id } = foundOrThrow(await findSlackEndpoint(deps.sql, app.id));
      const messageId = idGenerator.id('webhookMessage');
      const message = await createTestMessage(deps.patientSql, app.id, id, messageId);
      if (message === undefined)
        throw new ApiError('endpoint_not_active', {
          detail: 'The service deactivated the Slack URL, because it failed. Set it again.',
        });
      return presentMessage(message);
    },
  }),
];
