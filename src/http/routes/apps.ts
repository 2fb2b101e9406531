import * as z from 'zod';
import { createApp, listApps, updateApp } from '../../db/apps.ts';
import { makeKey } from '../../db/account-keys.ts';
import { rotateSdkKey } from '../../db/sdk-keys.ts';
import type { NewSdkKey } from '../../db/sdk-keys.ts';
import { DEFAULT_GRACE_SECONDS, KEY_RANDOM_BYTES } from '../../domain/keys.ts';
import { subdomainOf } from '../../domain/slugs.ts';
import { ApiError } from '../errors.ts';
import type { IdGenerator } from '../id-generator.ts';
import { presentApp, presentAppSummary } from '../presenters/app.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/apps.ts';

/** How often a subdomain that was made up here may turn out to be taken. */
const SUBDOMAIN_ATTEMPTS = 5;

/** What an app gets that was not told otherwise. */
const DEFAULTS = {
  commissionRateBps: 2000,
  attributionWindowDays: 30,
  holdPeriodDays: 30,
  deferredWindowMinutes: 60,
};

/** The settings of a new app, but for its subdomain. */
function settingsOf(given: z.output<typeof schemas.newApp>) {
  return {
    name: given.name,
    commissionRateBps: given.commissionRateBps ?? DEFAULTS.commissionRateBps,
    attributionWindowDays: given.attributionWindowDays ?? DEFAULTS.attributionWindowDays,
    holdPeriodDays: given.holdPeriodDays ?? DEFAULTS.holdPeriodDays,
    deferredWindowMinutes: given.deferredWindowMinutes ?? DEFAULTS.deferredWindowMinutes,
  };
}

function newSdkKey(idGenerator: IdGenerator): NewSdkKey {
  return { id: idGenerator.id('key'), ...makeKey('sdk', idGenerator.bytes(KEY_RANDOM_BYTES)) };
}

export const appRoutes = [
  route({
    method: 'GET',
    path: '/apps',
    auth: 'account',
    permission: 'read',
    operationId: 'listApps',
    summary: "Lists the account's apps.",
    response: { status: 200, schema: z.array(schemas.appSummary) },
    handler: async ({ deps, caller }) => (await listApps(deps.sql, caller.accountId)).map(presentAppSummary),
  }),

  route({
    method: 'POST',
    path: '/apps',
    auth: 'account',
    permission: 'setup',
    operationId: 'createApp',
    summary: 'Creates an app. Its SDK key is shown once.',
    body: schemas.newApp,
    response: { status: 201, schema: schemas.createdApp },
    errors: ['subdomain_taken'],
    handler: async ({ deps, caller, idGenerator, body }) => {
      const id = idGenerator.id('app');
      const sdkKey = newSdkKey(idGenerator);
      for (let attempt = 1; ; attempt += 1) {
        const linkSubdomain =
          body.linkSubdomain ?? subdomainOf(body.name, idGenerator.bytes(3).toString('hex'));
        const app = { id, ...settingsOf(body), linkSubdomain };
        const made = await createApp(deps.sql, caller.accountId, app, sdkKey);
        if (made !== 'subdomain_taken') return { ...presentApp(made), sdkKey: sdkKey.key };
        if (body.linkSubdomain !== undefined || attempt === SUBDOMAIN_ATTEMPTS)
          throw new ApiError('subdomain_taken');
      }
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId',
    auth: 'account',
    permission: 'read',
    operationId: 'getApp',
    summary: 'Shows an app and its settings.',
    response: { status: 200, schema: schemas.app },
    handler: async ({ app }) => presentApp(app),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/settings',
    auth: 'account',
    permission: 'write',
    operationId: 'updateSettings',
    summary: 'Changes settings. Nothing that was calculated before changes.',
    body: schemas.settingsPatch,
    errors: ['subdomain_taken'],
    response: { status: 200, schema: schemas.app },
    handler: async ({ deps, app, body }) => {
      const updated = await updateApp(deps.sql, app.id, body);
      if (updated === 'subdomain_taken') throw new ApiError('subdomain_taken');
      return presentApp(updated);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/sdk-key/rotate',
    auth: 'account',
    permission: 'setup',
    operationId: 'rotateSdkKey',
    summary: 'Makes a new SDK key; the old one stays valid for a grace period.',
    body: schemas.rotateSdkKey,
    response: { status: 200, schema: schemas.rotatedSdkKey },
    handler: async ({ deps, app, idGenerator, body, now }) => {
      const sdkKey = newSdkKey(idGenerator);
      const endsAt = now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
      const previousKeyExpiresAt = await rotateSdkKey(deps.sql, app.id, sdkKey, endsAt);
      return { sdkKey: sdkKey.key, previousKeyExpiresAt };
    },
  }),
];
