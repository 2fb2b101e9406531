import * as z from 'zod';
import { makeKey } from '../../db/account-keys.ts';
import { createApp, listApps, updateApp } from '../../db/apps.ts';
import type { App } from '../../db/apps.ts';
import { rotateSdkKey } from '../../db/sdk-keys.ts';
import type { NewSdkKey } from '../../db/sdk-keys.ts';
import { PAYOUT_APPROVALS } from '../../domain/payout-run.ts';
import type { PayoutApproval } from '../../domain/payout-run.ts';
import { PURCHASE_CODE_SETTINGS } from '../../domain/purchase-codes.ts';
import { APP_DEFAULTS } from '../../domain/app-defaults.ts';
import { DEFAULT_GRACE_SECONDS, KEY_RANDOM_BYTES, SDK_KEY_KINDS } from '../../domain/keys.ts';
import type { SdkKeyKind } from '../../domain/keys.ts';
import { isDeclarableScheme } from '../../domain/destination-url.ts';
import { isAndroidPackage, isCertFingerprint, isIosAppId } from '../../domain/link-associations.ts';
import { isReservedSubdomain, isSubdomain, subdomainOf } from '../../domain/slugs.ts';
import { ApiError } from '../errors.ts';
import { epochMs, graceSeconds, idOf, label, orNull, rateBps, textField, wholeNumber } from '../fields.ts';
import type { IdGenerator } from '../id-generator.ts';
import {
  decodeCursor,
  DEFAULT_LIMIT,
  encodeCursor,
  optionalLimit,
  pageQuery,
  timeKey,
} from '../pagination.ts';
import { account, accountApp, withPermission } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const NAME = 'The name of the app. Creators see it on their page, and the link subdomain is made from it.';
const name = label.meta({ description: NAME, examples: ['My app'] });
const commissionRateBps = rateBps('The share of a payment that an affiliate without an own rate earns.');
const attributionWindowDays = wholeNumber(1, 365, { unit: 'days' }).meta({
  description: 'Days from the click (or code) to the first open.',
  examples: [30],
});
const holdPeriodDays = wholeNumber(0, 365, { unit: 'days' }).meta({
  description: 'Days from the purchase until its commission is due.',
  examples: [30],
});
const deferredWindowMinutes = wholeNumber(0, 1440, { unit: 'minutes' }).meta({
  description: 'Minutes from a click to an install without a token or code. 0 turns deferred matches off.',
  examples: [60],
});
const LINK_SUBDOMAIN =
  "The name of the app in its links: `/l/NAME/SLUG`, and the first label of the app's own link host.";
const linkSubdomain = z
  .string()
  .refine(isSubdomain, 'Must be a DNS label: a-z, 0-9 and -, at most 63 characters.')
  .refine(
    (text) => !isReservedSubdomain(text),
    'The name is reserved, as www, api and login are. Choose another subdomain.',
  )
  .meta({
    description: LINK_SUBDOMAIN,
    pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
    examples: ['my-app'],
  });
const identityVerification = z.boolean().meta({
  description: "Whether `POST /sdk/identify` requires a `signature` of the app's server.",
  examples: [false],
});
const DESTINATION_SCHEMES =
  'The custom schemes that new links may lead to, besides https, http and the app stores. Null: any scheme that is not refused.';
const destinationSchemes = z
  .array(
    z
      .string()
      .refine(
        isDeclarableScheme,
        "Must be the app's own scheme in lower case and without a colon, such as myapp.",
      )
      .meta({ pattern: '^[a-z][a-z0-9+.-]{0,63}$', examples: ['myapp'] }),
  )
  .max(20)
  .nullable()
  .describe(DESTINATION_SCHEMES);
const STRIPE_ACCOUNTS =
  "The connected accounts of Stripe Connect whose events count as the app's own. Events of other connected accounts are ignored.";
const stripeAccounts = z
  .array(
    z
      .string()
      .regex(/^acct_[A-Za-z0-9]{1,64}$/, 'Must be the id of a Stripe account, such as acct_1032D82eZvKYlo2C.')
      .meta({ examples: ['acct_1032D82eZvKYlo2C'] }),
  )
  .max(100)
  .describe(STRIPE_ACCOUNTS);
const IOS_APP_IDS =
  'The iOS apps that open links directly: team id, dot, bundle id. They are listed in `/.well-known/apple-app-site-association`.';
const iosAppIds = z
  .array(
    z
      .string()
      .refine(isIosAppId, 'Must be a team id, a dot and a bundle id, such as ABCDE12345.com.example.app.')
      .meta({ examples: ['ABCDE12345.com.example.app'] }),
  )
  .max(10)
  .describe(IOS_APP_IDS);
const ANDROID_APPS =
  'The Android apps that open links directly. They are listed in `/.well-known/assetlinks.json`.';
const PACKAGE_NAME = 'The application id.';
const FINGERPRINTS =
  'The SHA-256 fingerprints of the certificates that the app is signed with. The Play Console shows that of the released app.';
const FINGERPRINT_EXAMPLE = Array.from({ length: 32 }, () => 'A1').join(':');
const androidApps = z
  .array(
    z.strictObject({
      packageName: z
        .string()
        .refine(isAndroidPackage, 'Must be the id of an Android app, such as com.example.app.')
        .meta({ description: PACKAGE_NAME, examples: ['com.example.app'] }),
      sha256CertFingerprints: z
        .array(
          z
            .string()
            .toUpperCase()
            .refine(
              isCertFingerprint,
              'Must be 32 bytes in hex, separated by colons, as keytool prints them.',
            )
            .meta({ examples: [FINGERPRINT_EXAMPLE] }),
        )
        .min(1)
        .max(10)
        .describe(FINGERPRINTS),
    }),
  )
  .max(10)
  .describe(ANDROID_APPS);
const purchaseCodes = z
  .enum(PURCHASE_CODE_SETTINGS)
  .describe(
    'Whether the code of a purchase, such as a promotion code, attributes: `when_unattributed` only where the user belongs to nobody. Absent: `off`.',
  );
const payeeWaitDays = wholeNumber(1, 30, { unit: 'days' }).meta({
  description:
    'Days that a new payee of a creator waits until it counts. Absent: 3. A change needs the permission `payout`, and holds for payees that are set from then on.',
  examples: [3],
});
const payoutApproval = z
  .enum(PAYOUT_APPROVALS)
  .describe(
    'Who may approve a payout run: `any_key` that may pay, or `another_key` than the one that drafted it and those that set its payees. Absent: `any_key`. A change needs the permission `payout`.',
  );
const sdkKey = textField('pk_live_…', "The app's SDK key. Returned only once.");

const app = z
  .object({
    id: idOf('app'),
    name: textField('My app', NAME),
    commissionRateBps,
    attributionWindowDays,
    holdPeriodDays,
    deferredWindowMinutes,
    linkSubdomain: textField('my-app', LINK_SUBDOMAIN),
    identityVerification,
    destinationSchemes: z.array(z.string()).nullable().describe(DESTINATION_SCHEMES),
    stripeAccounts: z.array(z.string()).describe(STRIPE_ACCOUNTS),
    iosAppIds: z.array(z.string()).describe(IOS_APP_IDS),
    androidApps: z
      .array(
        z.object({
          packageName: textField('com.example.app', PACKAGE_NAME),
          sha256CertFingerprints: z.array(z.string()).describe(FINGERPRINTS),
        }),
      )
      .describe(ANDROID_APPS),
    purchaseCodes: purchaseCodes.optional(),
    payeeWaitDays: payeeWaitDays.optional(),
    payoutApproval: payoutApproval.optional(),
  })
  .meta({ id: 'App', description: 'An app and its settings.' });

const settingsPatch = z
  .strictObject({
    name: name.optional(),
    commissionRateBps: commissionRateBps.optional(),
    attributionWindowDays: attributionWindowDays.optional(),
    holdPeriodDays: holdPeriodDays.optional(),
    deferredWindowMinutes: deferredWindowMinutes.optional(),
    linkSubdomain: linkSubdomain.optional(),
    identityVerification: identityVerification.optional(),
    destinationSchemes: destinationSchemes.optional(),
    stripeAccounts: stripeAccounts.optional(),
    iosAppIds: iosAppIds.optional(),
    androidApps: androidApps.optional(),
    purchaseCodes: purchaseCodes.optional(),
    payeeWaitDays: payeeWaitDays.optional(),
    payoutApproval: payoutApproval.optional(),
  })
  .meta({ id: 'AppSettingsChange', description: 'The settings to change.' });

const listedApp = app
  .pick({ id: true, name: true })
  .meta({ id: 'ListedApp', description: 'An app of the account.' });

const createdApp = app
  .extend({ sdkKey })
  .meta({ id: 'CreatedApp', description: 'The app, and its SDK key.' });

const appSettings = app
  .omit({ id: true })
  .meta({ id: 'AppSettings', description: 'The settings of an app.' });

const rotatedKey = z
  .object({
    sdkKey,
    previousKeyExpiresAt: orNull(
      epochMs('Until when the previous key is valid.'),
      'Null for the first test key.',
    ),
  })
  .meta({ id: 'RotatedSdkKey', description: 'The new SDK key, and when the previous one ends.' });

const newApp = settingsPatch.extend({ name }).meta({ id: 'NewApp', description: 'An app to create.' });

function presentApp(row: App) {
  return {
    id: row.id,
    name: row.name,
    commissionRateBps: row.commissionRateBps,
    attributionWindowDays: row.attributionWindowDays,
    holdPeriodDays: row.holdPeriodDays,
    deferredWindowMinutes: row.deferredWindowMinutes,
    linkSubdomain: row.linkSubdomain,
    identityVerification: row.identityVerification,
    destinationSchemes: row.destinationSchemes === null ? null : [...row.destinationSchemes],
    stripeAccounts: [...row.stripeAccounts],
    iosAppIds: [...row.iosAppIds],
    androidApps: row.androidApps.map(({ packageName, sha256CertFingerprints }) => ({
      packageName,
      sha256CertFingerprints: [...sha256CertFingerprints],
    })),
    // Absent until a founder turns it on.
    ...(row.purchaseCodes === 'off' ? {} : { purchaseCodes: row.purchaseCodes }),
    // Absent until it is another one.
    ...(row.payeeWaitDays === APP_DEFAULTS.payeeWaitDays ? {} : { payeeWaitDays: row.payeeWaitDays }),
    ...(row.payoutApproval === APP_DEFAULTS.payoutApproval ? {} : { payoutApproval: row.payoutApproval }),
  };
}

/** How many generated subdomains may be taken before the call fails. */
const SUBDOMAIN_ATTEMPTS = 5;

/** Returns the settings of a new app, except its subdomain. */
function settingsOf(given: z.output<typeof newApp>) {
  return {
    name: given.name,
    commissionRateBps: given.commissionRateBps ?? APP_DEFAULTS.commissionRateBps,
    attributionWindowDays: given.attributionWindowDays ?? APP_DEFAULTS.attributionWindowDays,
    holdPeriodDays: given.holdPeriodDays ?? APP_DEFAULTS.holdPeriodDays,
    deferredWindowMinutes: given.deferredWindowMinutes ?? APP_DEFAULTS.deferredWindowMinutes,
    // An app can only turn it on once it has an identity secret.
    identityVerification: false,
    destinationSchemes: given.destinationSchemes ?? null,
    stripeAccounts: given.stripeAccounts ?? [],
    iosAppIds: given.iosAppIds ?? [],
    androidApps: given.androidApps ?? [],
    purchaseCodes: given.purchaseCodes ?? ('off' as const),
    payeeWaitDays: given.payeeWaitDays ?? APP_DEFAULTS.payeeWaitDays,
    payoutApproval: given.payoutApproval ?? APP_DEFAULTS.payoutApproval,
  };
}

/** The settings that need the permission `payout`. */
interface PayoutSettings {
  readonly payeeWaitDays?: number | undefined;
  readonly payoutApproval?: PayoutApproval | undefined;
}

/** Whether a change of settings is about payouts: it gives another value than the present one. */
function changesPayouts(change: PayoutSettings, present: Required<PayoutSettings>): boolean {
  return (['payeeWaitDays', 'payoutApproval'] as const).some(
    (setting) => change[setting] !== undefined && change[setting] !== present[setting],
  );
}

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
      const { deps } = changesPayouts(body, APP_DEFAULTS) ? withPermission(call, 'payout') : call;
      const id = idGenerator.id('app');
      const key = newSdkKey(idGenerator, 'live');
      for (let attempt = 1; ; attempt += 1) {
        const subdomain = body.linkSubdomain ?? subdomainOf(body.name, idGenerator.bytes(3).toString('hex'));
        const row = { id, ...settingsOf(body), linkSubdomain: subdomain };
        const created = await createApp(deps.sql, caller.accountId, row, key);
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
      'Commissions that are already calculated do not change. `payeeWaitDays` and `payoutApproval` need the permission `payout`. A former subdomain stays with the app, and links under it go on redirecting.',
    body: settingsPatch,
    errors: ['subdomain_taken', 'too_many_subdomains', 'identity_secret_missing', 'session_not_raised'],
    response: { status: 200, schema: app },
    handler: async (call) => {
      const { app: row, body } = call;
      const isAboutPayouts = changesPayouts(body, row);
      const { deps } = isAboutPayouts ? withPermission(call, 'payout') : call;
      // Without the permission, the values that were read are not written: another call may have changed them since.
      const change = isAboutPayouts ? body : { ...body, payeeWaitDays: undefined, payoutApproval: undefined };
      const updated = await updateApp(deps.sql, row.id, change);
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
