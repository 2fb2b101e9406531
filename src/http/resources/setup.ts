import * as z from 'zod';
import { hasArrived, listCodesInUse, listUnregisteredCodes } from '../../db/code-arrivals.ts';
import { readAppActivity } from '../../db/self-tests.ts';
import { readSetupState } from '../../db/setup.ts';
import type { Sql } from '../../db/sql.ts';
import { listWebhookStates } from '../../db/webhook-secrets.ts';
import type { AppId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/time.ts';
import { codesArriveBy } from '../../providers/code-hints.ts';
import { PROVIDER_NAMES, providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';
import * as enums from '../enum-fields.ts';
import { count, epochMs, idOf, nameOfAffiliate, orNull, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { presentState, webhookState } from './webhook-settings.ts';

/** The counts are those of this time, days. */
const RECENT_DAYS = 30;

const arrival = z.object({
  at: epochMs('When the service learned of the purchase.'),
  environment: enums.environment,
});

const purchaseCodes = z
  .object({
    namespaces: z
      .array(
        z.object({
          namespace: enums.codeNamespace,
          codes: z
            .array(
              z.object({
                id: idOf('code'),
                affiliateId: idOf('affiliate'),
                affiliateName: nameOfAffiliate,
                value: textField('SPRING20', 'What customers enter.'),
                externalId: orNull(
                  textField('promo_1SZ', 'The id at the provider.'),
                  'Null if there is none.',
                ),
                lastArrival: orNull(
                  arrival.describe(
                    'The latest purchase with it, or free beginning of a subscription, also in a sandbox. Those of self-tests do not count.',
                  ),
                  'Null if there is none.',
                ),
              }),
            )
            .describe('The ten latest that work, the latest first.'),
          fix: orNull(
            textField(
              'Have the customer enter the discount in the checkout.',
              'What to do so that a purchase comes with one of them.',
            ),
            'Null once one came.',
          ),
        }),
      )
      .describe('The namespaces of which the app has codes.'),
    unregistered: z
      .array(
        z.object({
          namespace: enums.codeNamespace,
          value: textField('SPRING25', 'What the purchase stated.'),
          lastArrival: arrival.describe('The latest purchase with it.'),
        }),
      )
      .describe(
        'At most ten codes that came with one of the latest 500 purchases with codes, and that no affiliate has or had. A `campaign` only where ' +
          'affiliates have such codes.',
      ),
  })
  .describe(
    'Whether codes arrive. Absent while `purchaseCodes` of the app is off, and without a code that works.',
  );

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
    hasUser: z.boolean().describe('Whether a user of the app is known, by its SDK or by a purchase code.'),
    selfTestPassedAt: orNull(
      epochMs('When the latest self-test passed.'),
      'Null if it found something to fix, before the first one, and after a change of a webhook secret.',
    ),
    firstSaleAt: orNull(
      epochMs('When the first payment occurred that earned a commission.'),
      'Null before it.',
    ),
    purchaseCodes: purchaseCodes.optional(),
  })
  .meta({ id: 'Setup', description: 'How far the set-up of an app has come.' });

/** The state of the codes of an app that uses them. */
async function readCodes(sql: Sql, appId: AppId, connected: readonly ProviderName[]) {
  const codes = await listCodesInUse(sql, appId);
  const unregistered = codes.length === 0 ? [] : await listUnregisteredCodes(sql, appId, codes);
  const namespaces = [...new Set(codes.map(({ namespace }) => namespace))];
  return {
    namespaces: namespaces.map((namespace) => ({
      namespace,
      codes: codes
        .filter((code) => code.namespace === namespace)
        .map(({ codeId, affiliateId, affiliateName, value, externalId, lastArrival }) => ({
          id: codeId,
          affiliateId,
          affiliateName,
          value,
          externalId,
          lastArrival,
        })),
      fix: hasArrived(namespace, codes) ? null : codesArriveBy(namespace, connected),
    })),
    unregistered: unregistered.map(({ namespace, value, lastArrival }) => ({
      namespace,
      value,
      lastArrival,
    })),
  };
}

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
      const connected = PROVIDER_NAMES.filter((name) =>
        states.some(({ provider, environment }) => provider === name && environment !== null),
      );
      const codes = await readCodes(deps.sql, app.id, connected);
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
        hasUser: state.hasUser,
        selfTestPassedAt: state.selfTestPassedAt,
        firstSaleAt: state.firstSaleAt,
        ...(codes.namespaces.length > 0 && { purchaseCodes: codes }),
      };
    },
  }),
];
