import * as z from 'zod';
import { makeKey } from '../../db/account-keys.ts';
import { createApp, listApps, updateApp } from '../../db/apps.ts';
import { rotateSdkKey } from '../../db/sdk-keys.ts';
import type { NewSdkKey } from '../../db/sdk-keys.ts';
import { APP_DEFAULTS } from '../../domain/app-defaults.ts';
import { DEFAULT_GRACE_SECONDS, KEY_RANDOM_BYTES, SDK_KEY_KINDS } from '../../domain/keys.ts';
import type { SdkKeyKind } from '../../domain/keys.ts';
import { subdomainOf } from '../../domain/slugs.ts';
import { ApiError } from '../errors.ts';
import { graceSeconds } from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import {
  decodeCursor,
  DEFAULT_LIMIT,
  encodeCursor,
  optionalLimit,
  pageQuery,
  timeKey,
} from '../pagination.ts';
import { account, accountApp, withPermissions } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import {
  app,
  appSettings,
  createdApp,
  listedApp,
  newApp,
  permissionsFor,
  presentApp,
  rotatedKey,
  settingsOf,
  settingsPatch,
  withoutUnchanged,
} from './apps-views.ts';

/** How many generated subdomains may be taken before the call fails. */
const SUBDOMAIN_ATTEMPTS = 5;

function newSdkKey(idGenerator: IdGenerator, kind: SdkKeyKind): NewSdkKey {
  const id = idGenerator.id('key');
  const key = makeKey(kind === 'live' ? 'sdk' : 'sdk_test', idGenerator.bytes(KEY_RANDOM_BYTES));
  return { id, kind, ...key };
}

export const appRoutes = [
  route({
    method: 'GET',
    path: '/apps',
    caller: account('read'),
    operationId: 'listApps',
    summary: "Lists the account's apps, oldest first.",
    description:
      'Returns all apps, or with `limit` or `cursor` one page. The response is an array in both cases: the cursor of the ' +
      'next page is the header `X-Next-Cursor`.',
    query: z.object({
      limit: optionalLimit,
      cursor: pageQuery.cursor,
    }),
    response: {
      status: 200,
      schema: z.array(listedApp).meta({ description: 'Apps, oldest first.' }),
      headers: { 'X-Next-Cursor': 'The `cursor` of the next page. Absent on the last page.' },
    },
    handler: async ({ ctx, deps, caller, query }) => {
      const key = { list: 'apps', appId: caller.accountId, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      const limit = query.limit ?? (after === null ? null : DEFAULT_LIMIT);
      const appIds = caller.session?.member?.appIds ?? null;
      const page = await listApps(deps.sql, caller.accountId, { appIds }, after, limit);
      if (page.next !== null) ctx.set('X-Next-Cursor', encodeCursor(key, page.next));
      return page.rows.map((row) => ({ id: row.id, name: row.name }));
    },
  }),

  route({
    method: 'POST',
    path: '/apps',
    caller: account('setup', { wholeAccount: true }),
    operationId: 'createApp',
    summary: 'Creates an app.',
    description:
      'The response contains the SDK key, which is returned only once. If `linkSubdomain` is missing, one is generated from the name.',
    body: newApp,
    response: { status: 201, schema: createdApp },
    errors: ['subdomain_taken', 'identity_secret_missing', 'too_many_apps', 'session_not_raised'],
    handler: async (call) => {
      const { caller, idGenerator, body } = call;
      if (body.identityVerification === true) throw new ApiError('identity_secret_missing');
      const { deps, caller: author } = withPermissions(call, permissionsFor(body, APP_DEFAULTS));
      const id = idGenerator.id('app');
      const key = newSdkKey(idGenerator, 'live');
      for (let attempt = 1; ; attempt += 1) {
        const subdomain = body.linkSubdomain ?? subdomainOf(body.name, idGenerator.bytes(3).toString('hex'));
        const row = { id, ...settingsOf(body), linkSubdomain: subdomain };
        const created = await createApp(deps.sql, caller.accountId, row, {
          sdkKey: key,
          keyId: author.keyId,
        });
        if (typeof created !== 'string') return { ...presentApp(created), sdkKey: key.key };
        const isFinal = created !== 'subdomain_taken' || body.linkSubdomain !== undefined;
        if (isFinal || attempt === SUBDOMAIN_ATTEMPTS) throw new ApiError(created);
      }
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId',
    caller: accountApp('read'),
    operationId: 'getApp',
    summary: 'Retrieves an app and its settings.',
    response: { status: 200, schema: app },
    handler: async ({ app: row }) => presentApp(row),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/settings',
    caller: accountApp('read'),
    operationId: 'getSettings',
    summary: "Retrieves an app's settings.",
    description: 'Returns exactly the fields that `PATCH` on this path takes.',
    response: { status: 200, schema: appSettings },
    handler: async ({ app: row }) => {
      const { id: _id, ...settings } = presentApp(row);
      return settings;
    },
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/settings',
    caller: accountApp('write'),
    operationId: 'updateSettings',
    summary: "Updates an app's settings.",
    description:
      'Commissions that are already calculated do not change. A change of `payeeWaitDays`, `payoutApproval` or `payoutSchedule` needs the permission `payout`, one of `notificationEmails`, and to turn `identityVerification` off, the permission `setup`. A former subdomain stays with the app, and links under it go on redirecting.',
    body: settingsPatch,
    errors: ['subdomain_taken', 'too_many_subdomains', 'identity_secret_missing', 'session_not_raised'],
    response: { status: 200, schema: app },
    handler: async (call) => {
      const { app: row, body } = call;
      const { deps, caller } = withPermissions(call, permissionsFor(body, row));
      const updated = await updateApp(deps.sql, row.id, withoutUnchanged(body, row), caller.keyId);
      if (typeof updated === 'string') throw new ApiError(updated);
      return presentApp(updated);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/sdk-key/rotate',
    caller: accountApp('setup'),
    operationId: 'rotateSdkKey',
    summary: "Rotates the app's SDK key, or creates and rotates its test key.",
    description:
      'The new key is returned only once. The previous key of its kind stays valid for the grace period. What a test key ' +
      '(`pk_test_…`) reports neither counts nor earns: use it in builds that are not for customers.',
    body: z.strictObject({
      graceSeconds: graceSeconds.optional(),
      kind: z
        .enum(SDK_KEY_KINDS)
        .describe('Which key: `live` (default), or `test`. An app has no test key before the first call.')
        .optional(),
    }),
    response: { status: 200, schema: rotatedKey },
    handler: async ({ deps, app: row, idGenerator, body, now }) => {
      const key = newSdkKey(idGenerator, body.kind ?? 'live');
      const endsAt = now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
      const previousKeyExpiresAt = await rotateSdkKey(deps.sql, row.id, key, endsAt);
      return { sdkKey: key.key, previousKeyExpiresAt };
    },
  }),
];
