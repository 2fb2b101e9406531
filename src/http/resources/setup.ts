import * as z from 'zod';
import { readAppActivity } from '../../db/self-tests.ts';
import { readSetupState } from '../../db/setup.ts';
import { listWebhookStates } from '../../db/webhook-secrets.ts';
import { DAY_MS } from '../../domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../providers/index.ts';
import { count, epochMs, orNull, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { presentState, webhookState } from './webhook-settings.ts';

/** The counts are those of this time, days. */
const RECENT_DAYS = 30;

const setup = z
  .object({
    sdkKey: orNull(
      textField('pk_live_Ab12…wxyz', 'The first and last characters of the SDK key.'),
      'Null without a key.',
    ),
    providers: z
      .array(
        webhookState.extend({
          title: textField('RevenueCat', 'The name of the provider.'),
          generatesSecret: z
            .boolean()
            .describe('Whether the provider generates the secret, or this service does.'),
          needsEnvironment: z
            .boolean()
            .describe('Whether `environment` is required with the secret: webhooks do not state it.'),
        }),
      )
      .describe('One per provider.'),
    hasAffiliate: z.boolean().describe('Whether the app has an affiliate.'),
    hasActiveLink: z.boolean().describe('Whether the app has an active link.'),
    clicks: count(`Clicks of the last ${RECENT_DAYS} days.`),
    installs: count(`Attributed installs of the last ${RECENT_DAYS} days.`),
    identified: count(`Attributed users of the last ${RECENT_DAYS} days.`),
    firstSaleAt: orNull(
      epochMs('When the first payment occurred that earned a commission.'),
      'Null before it.',
    ),
  })
  .meta({ id: 'Setup', description: 'How far the set-up of an app has come.' });

export const setupRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/setup',
    caller: accountApp('setup'),
    operationId: 'getSetup',
    summary: 'Retrieves how far the set-up of an app has come.',
    description: 'Never returns a key or a secret.',
    response: { status: 200, schema: setup },
    handler: async ({ deps, app, now }) => {
      await deps.refusals.flush();
      const states = await listWebhookStates(deps.sql, app.id, PROVIDER_NAMES);
      const activity = await readAppActivity(deps.sql, app.id, now - RECENT_DAYS * DAY_MS);
      const state = await readSetupState(deps.sql, app.id);
      return {
        sdkKey: state.sdkKey,
        providers: PROVIDER_NAMES.map((name) => {
          const found = states.find((candidate) => candidate.provider === name);
          return {
            ...presentState(deps.publicUrl, app.id, name, found),
            title: providers[name].title,
            generatesSecret: providers[name].scheme !== 'static_token',
            needsEnvironment: providers[name].environmentFrom === 'secret',
          };
        }),
        hasAffiliate: state.hasAffiliate,
        hasActiveLink: activity.hasActiveLink,
        clicks: activity.clicks,
        installs: activity.installs,
        identified: activity.identified,
        firstSaleAt: state.firstSaleAt,
      };
    },
  }),
];
