import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { App, AppSettings } from '../../db/apps.ts';
import { APP_DEFAULTS } from '../../domain/app-defaults.ts';
import { isBrandColor } from '../../domain/brand-color.ts';
import { isDeclarableScheme } from '../../domain/destination-url.ts';
import { MOST_NOTIFICATION_EMAILS, withoutRepeats } from '../../domain/email.ts';
import type { Permission } from '../../domain/keys.ts';
import { isAndroidPackage, isCertFingerprint, isIosAppId } from '../../domain/link-associations.ts';
import { PAYOUT_APPROVALS } from '../../domain/payout-run.ts';
import { PURCHASE_CODE_SETTINGS } from '../../domain/purchase-codes.ts';
import { isReservedSubdomain, isSubdomain } from '../../domain/slugs.ts';
import { epochMs, idOf, label, orNull, rateBps, textField, textsLike, wholeNumber } from '../fields.ts';
import { databaseTimeZone } from '../time-zone.ts';
import { MINIMUM, withoutPayee } from './payout-runs-views.ts';

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
    'Who may approve a payout run: `any_key` that may pay, or `another_key` than the one that drafted it and those that set its payees or changed the addresses of its creators. With `another_key`, single exports are refused. Absent: `any_key`. A change needs the permission `payout`.',
  );
const payoutSchedule = z
  .strictObject({
    day: wholeNumber(1, 28, { unit: 'as a day' }).meta({
      description: 'The day of each month on which the run is drafted.',
      examples: [15],
    }),
    timezone: z
      .string()
      .meta({
        description: 'The time zone in which the day begins: a name of the IANA time zone database.',
        examples: ['Europe/Berlin'],
      })
      .transform((zone, context) => {
        const inDatabase = databaseTimeZone(zone);
        if (inDatabase !== undefined) return inDatabase;
        context.addIssue('Must be a name of the IANA time zone database, for example Europe/Berlin.');
        return z.NEVER;
      }),
    minimumCents: z
      .int()
      .min(0)
      .max(100_000_000)
      .default(0)
      .meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee: withoutPayee.default('exclude'),
  })
  .meta({
    id: 'PayoutSchedule',
    description: 'When the payout run of each month is drafted, and its terms.',
  });
const PAYOUT_SCHEDULE =
  'On which day of each month a payout run is drafted by itself. It is never approved by itself. Absent or null: none. A change needs the permission `payout`.';
const presentedSchedule = z
  .object({
    day: z.int().meta({ description: 'The day of each month on which the run is drafted.', examples: [15] }),
    timezone: textField('Europe/Berlin', 'The time zone in which the day begins.'),
    minimumCents: z.int().meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee,
  })
  .describe(PAYOUT_SCHEDULE);
const NOTIFICATION_EMAILS =
  'The addresses of the people who run the app: they get mails about alerts, drafts of the payout schedule, and the weekly report. Absent: none. A change needs the permission `setup`.';
const notificationEmails = z
  .array(
    z
      .email()
      .max(320)
      .meta({ examples: ['team@example.com'] }),
  )
  .max(MOST_NOTIFICATION_EMAILS)
  .transform((addresses) => withoutRepeats(addresses))
  .describe(NOTIFICATION_EMAILS);
const weeklyReport = z.boolean().meta({
  description:
    'Whether `notificationEmails` get a report about the week before, on Mondays from 08:00 UTC on. Absent: true.',
  examples: [false],
});
export const BRAND_COLOR =
  'The colour of the app on the pages of its creators. Text on it is black or white, whichever has more contrast.';
const brandColor = z
  .string()
  .refine(isBrandColor, 'Must be # and six hexadecimal digits, such as #0b7285.')
  .meta({ pattern: '^#[0-9A-Fa-f]{6}$', examples: ['#0b7285'] })
  .transform((text) => text.toLowerCase());
const sdkKey = textField('pk_live_…', "The app's SDK key. Returned only once.");

export const app = z
  .object({
    id: idOf('app'),
    name: textField('My app', NAME),
    commissionRateBps,
    attributionWindowDays,
    holdPeriodDays,
    deferredWindowMinutes,
    linkSubdomain: textField('my-app', LINK_SUBDOMAIN),
    identityVerification,
    destinationSchemes: textsLike('myapp').nullable().describe(DESTINATION_SCHEMES),
    stripeAccounts: textsLike('acct_1032D82eZvKYlo2C').describe(STRIPE_ACCOUNTS),
    iosAppIds: textsLike('ABCDE12345.com.example.app').describe(IOS_APP_IDS),
    androidApps: z
      .array(
        z.object({
          packageName: textField('com.example.app', PACKAGE_NAME),
          sha256CertFingerprints: textsLike(FINGERPRINT_EXAMPLE).describe(FINGERPRINTS),
        }),
      )
      .describe(ANDROID_APPS),
    purchaseCodes: purchaseCodes.optional(),
    payeeWaitDays: payeeWaitDays.optional(),
    payoutApproval: payoutApproval.optional(),
    payoutSchedule: presentedSchedule.optional(),
    notificationEmails: textsLike('team@example.com').describe(NOTIFICATION_EMAILS).optional(),
    weeklyReport: weeklyReport.optional(),
    brandColor: textField('#0b7285', `${BRAND_COLOR} Absent: none was chosen.`).optional(),
  })
  .meta({ id: 'App', description: 'An app and its settings.' });

export const settingsPatch = z
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
    payoutSchedule: payoutSchedule.nullable().describe(PAYOUT_SCHEDULE).optional(),
    notificationEmails: notificationEmails.optional(),
    weeklyReport: weeklyReport.optional(),
    brandColor: brandColor.nullable().describe(`${BRAND_COLOR} Null: none.`).optional(),
  })
  .meta({ id: 'AppSettingsChange', description: 'The settings to change.' });

export const listedApp = app
  .pick({ id: true, name: true })
  .meta({ id: 'ListedApp', description: 'An app of the account.' });

export const createdApp = app
  .extend({ sdkKey })
  .meta({ id: 'CreatedApp', description: 'The app, and its SDK key.' });

export const appSettings = app
  .omit({ id: true })
  .meta({ id: 'AppSettings', description: 'The settings of an app.' });

export const rotatedKey = z
  .object({
    sdkKey,
    previousKeyExpiresAt: orNull(
      epochMs('Until when the previous key is valid.'),
      'Null for the first test key.',
    ),
  })
  .meta({ id: 'RotatedSdkKey', description: 'The new SDK key, and when the previous one ends.' });

export const newApp = settingsPatch.extend({ name }).meta({ id: 'NewApp', description: 'An app to create.' });

/** Returns an app as its callers see it: what a founder has never set is absent. */
export function presentApp(row: App) {
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
    ...(row.payoutSchedule === null ? {} : { payoutSchedule: { ...row.payoutSchedule } }),
    ...(row.notificationEmails.length === 0 ? {} : { notificationEmails: [...row.notificationEmails] }),
    ...(row.weeklyReport ? {} : { weeklyReport: row.weeklyReport }),
    ...(row.brandColor === null ? {} : { brandColor: row.brandColor }),
  };
}

/** Returns the settings of a new app, except its subdomain. */
export function settingsOf(given: z.output<typeof newApp>) {
  return {
    name: given.name,
    commissionRateBps: given.commissionRateBps ?? APP_DEFAULTS.commissionRateBps,
    attributionWindowDays: given.attributionWindowDays ?? APP_DEFAULTS.attributionWindowDays,
    holdPeriodDays: given.holdPeriodDays ?? APP_DEFAULTS.holdPeriodDays,
    deferredWindowMinutes: given.deferredWindowMinutes ?? APP_DEFAULTS.deferredWindowMinutes,
    // An app can only turn it on once it has an identity secret.
    identityVerification: APP_DEFAULTS.identityVerification,
    destinationSchemes: given.destinationSchemes ?? null,
    stripeAccounts: given.stripeAccounts ?? [],
    iosAppIds: given.iosAppIds ?? [],
    androidApps: given.androidApps ?? [],
    purchaseCodes: given.purchaseCodes ?? ('off' as const),
    payeeWaitDays: given.payeeWaitDays ?? APP_DEFAULTS.payeeWaitDays,
    payoutApproval: given.payoutApproval ?? APP_DEFAULTS.payoutApproval,
    payoutSchedule: given.payoutSchedule ?? null,
    notificationEmails: given.notificationEmails ?? [],
    weeklyReport: given.weeklyReport ?? APP_DEFAULTS.weeklyReport,
    brandColor: given.brandColor ?? null,
  };
}

/** The permissions that a change of these settings needs besides that of its route. */
const PERMISSIONS = {
  payeeWaitDays: 'payout',
  payoutApproval: 'payout',
  payoutSchedule: 'payout',
  notificationEmails: 'setup',
  // Only to turn it off: as the secret, it decides who may claim users.
  identityVerification: 'setup',
} as const satisfies { readonly [Setting in keyof AppSettings]?: Permission };

type RestrictedSetting = keyof typeof PERMISSIONS;
type RestrictedChange = { readonly [Setting in RestrictedSetting]?: AppSettings[Setting] | undefined };

const RESTRICTED = Object.keys(PERMISSIONS) as RestrictedSetting[];

/** Returns the permissions that a change needs: those of the settings to which it gives another value than the present one. */
export function permissionsFor(
  change: RestrictedChange,
  present: Required<RestrictedChange>,
): ReadonlySet<Permission> {
  return new Set(
    RESTRICTED.filter((setting) => isChanged(setting, change, present))
      .filter((setting) => setting !== 'identityVerification' || change[setting] === false)
      .map((setting) => PERMISSIONS[setting]),
  );
}

/** Returns a change without the settings that need a permission and keep their value: another call may have changed them since. */
export function withoutUnchanged<Change extends RestrictedChange>(
  change: Change,
  present: Required<RestrictedChange>,
): Change {
  const kept = RESTRICTED.filter((setting) => !isChanged(setting, change, present));
  return { ...change, ...Object.fromEntries(kept.map((setting) => [setting, undefined])) };
}

function isChanged(
  setting: RestrictedSetting,
  change: RestrictedChange,
  present: Required<RestrictedChange>,
): boolean {
  return change[setting] !== undefined && !isDeepStrictEqual(change[setting], present[setting]);
}
