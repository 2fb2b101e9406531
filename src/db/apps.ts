import { APP_DEFAULTS } from '../domain/app-defaults.ts';
import type { AndroidApp } from '../domain/link-associations.ts';
import type { AccountId, AppId, KeyId } from '../domain/ids.ts';
import type { PayoutApproval } from '../domain/payout-run.ts';
import type { PayoutSchedule } from '../domain/payout-schedule.ts';
import type { PurchaseCodeSetting } from '../domain/purchase-codes.ts';
import { acting } from './audit.ts';
import type { NewSdkKey } from './sdk-keys.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { violatedConstraint } from './errors.ts';
import type { Sql } from './sql.ts';

export interface AppSettings {
  readonly name: string;
  readonly commissionRateBps: number;
  readonly attributionWindowDays: number;
  readonly holdPeriodDays: number;
  readonly deferredWindowMinutes: number;
  readonly linkSubdomain: string;
  /** Whether identify requires a signature of the app's server. */
  readonly identityVerification: boolean;
  /** The custom schemes that new links may lead to. Null when the app declared none. */
  readonly destinationSchemes: readonly string[] | null;
  /** The connected accounts of Stripe Connect whose events count as the app's own. */
  readonly stripeAccounts: readonly string[];
  /** The iOS apps that open the app's links directly: `TEAMID.bundle.id`. */
  readonly iosAppIds: readonly string[];
  /** The Android apps that do. */
  readonly androidApps: readonly AndroidApp[];
  /** Whether codes of purchases attribute. */
  readonly purchaseCodes: PurchaseCodeSetting;
  /** Days that a new payee of a creator waits until it counts. */
  readonly payeeWaitDays: number;
  readonly payoutApproval: PayoutApproval;
  /** When the payout run of each month is drafted. Null: never. */
  readonly payoutSchedule: PayoutSchedule | null;
  /** The addresses of the people who run the app. */
  readonly notificationEmails: readonly string[];
  /** Whether they get a report each week. */
  readonly weeklyReport: boolean;
  /** The colour of the app on the pages of its creators, such as #0b7285. Null if none was chosen. */
  readonly brandColor: string | null;
}

export interface App extends AppSettings {
  readonly id: AppId;
}

const columns = (sql: Sql) => sql.fragment`
  id, name, commission_rate_bps, attribution_window_days, hold_period_days, deferred_window_minutes, link_subdomain,
  identity_verification, destination_schemes, stripe_accounts, ios_app_ids, android_apps,
  coalesce(purchase_codes, 'off') as purchase_codes, coalesce(payee_wait_days, ${APP_DEFAULTS.payeeWaitDays}::int) as payee_wait_days,
  coalesce(payout_approval, ${APP_DEFAULTS.payoutApproval}::text) as payout_approval,
  payout_schedule, coalesce(notification_emails, '{}') as notification_emails, coalesce(weekly_report, true) as weekly_report,
  brand_color`;

/** Returns an app of the account. Undefined for an unknown app and for an app of another account. */
export async function findApp(sql: Sql, accountId: AccountId, appId: AppId): Promise<App | undefined> {
  return await sql.maybe<App>`select ${columns(sql)} from apps where id = ${appId} and account_id = ${accountId}`;
}

/** Returns a page of an account's apps, oldest first, or all of them if `limit` is null. `appIds`: only these; null: all. */
export async function listApps(
  sql: Sql,
  accountId: AccountId,
  { appIds }: { readonly appIds: readonly AppId[] | null },
  after: Position<number> | null,
  limit: number | null,
): Promise<Page<Pick<App, 'id' | 'name'>, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (created_at, id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<Pick<App, 'id' | 'name'> & Position<number>>`
    select id, name, (extract(epoch from created_at) * 1000000)::bigint as sort_key
      from apps where account_id = ${accountId} ${from}
           ${appIds === null ? sql.fragment`` : sql.fragment`and id = any(${[...appIds]}::text[])`}
     order by created_at, id ${limit === null ? sql.fragment`` : sql.fragment`limit ${limit + 1}`}`;
  return limit === null ? { rows, next: null } : pageOf(rows, limit);
}

/** Returns the ids of all apps of all accounts. */
export async function listAppIds(sql: Sql): Promise<AppId[]> {
  return (await sql<{ id: AppId }>`select id from apps order by id`).map((row) => row.id);
}

function arrayOf(items: readonly string[] | null): string[] | null {
  return items === null ? null : [...items];
}

/** Why an app cannot have a subdomain: another app holds or held it, or the app has held too many. */
export type SubdomainRefusal = 'subdomain_taken' | 'too_many_subdomains';

/** Why an app is not created. */
export type AppRefusal = SubdomainRefusal | 'too_many_apps';

/** Why a change of settings is refused. */
export type SettingsRefusal = SubdomainRefusal | 'identity_secret_missing';

/** Runs a statement that sets a subdomain, and returns the refusal of a constraint. */
async function orRefusal<T>(statement: () => Promise<T>): Promise<T | SubdomainRefusal> {
  try {
    return await statement();
  } catch (error) {
    switch (violatedConstraint(error)) {
      case 'link_subdomains_pkey':
        return 'subdomain_taken';
      case 'at_most_20_subdomains':
        return 'too_many_subdomains';
      default:
        throw error;
    }
  }
}

/**
 * Creates an app and its first SDK key; `keyId` is who does it. Returns `subdomain_taken` when another app holds or held the subdomain, and
 * `too_many_apps` when the account has as many as it can have. An app whose id exists is returned unchanged.
 */
export async function createApp(
  sql: Sql,
  accountId: AccountId,
  { id, ...settings }: App,
  { sdkKey, keyId }: { readonly sdkKey: NewSdkKey; readonly keyId: KeyId },
): Promise<App | AppRefusal> {
  const { display, sha256 } = sdkKey;
  const { payoutSchedule, notificationEmails, weeklyReport } = settings;
  const add = async () =>
    await sql.maybe<App>`
      with added as (
        insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                          deferred_window_minutes, link_subdomain, destination_schemes, stripe_accounts, ios_app_ids,
                          android_apps, purchase_codes, payee_wait_days, payout_approval, payout_schedule, payout_schedule_key,
                          payout_schedule_since, notification_emails, weekly_report, notifications_since,
                          brand_color)
        select ${id}::text, ${accountId}::text, ${settings.name}::text, ${settings.commissionRateBps}::integer,
               ${settings.attributionWindowDays}::integer, ${settings.holdPeriodDays}::integer,
               ${settings.deferredWindowMinutes}::integer, ${settings.linkSubdomain}::text,
               ${arrayOf(settings.destinationSchemes)}::text[], ${arrayOf(settings.stripeAccounts)}::text[],
               ${arrayOf(settings.iosAppIds)}::text[], ${sql.json(settings.androidApps)}::jsonb, nullif(${settings.purchaseCodes}::text, 'off'),
               nullif(${settings.payeeWaitDays}::int, ${APP_DEFAULTS.payeeWaitDays}::int),
               nullif(${settings.payoutApproval}::text, ${APP_DEFAULTS.payoutApproval}::text),
               ${payoutSchedule === null ? null : sql.json(payoutSchedule)}::jsonb, ${payoutSchedule === null ? null : keyId}::text,
               case when ${payoutSchedule !== null} then now() end, nullif(${arrayOf(notificationEmails)}::text[], '{}'),
               case when ${!weeklyReport} then false end, case when ${notificationEmails.length > 0} then now() end,
               ${settings.brandColor}::text
         where ${acting(sql)}
        on conflict (id) do nothing
        returning *
      ), key as (
        insert into sdk_keys (id, app_id, kind, key_sha256, display)
        select ${sdkKey.id}::text, id, ${sdkKey.kind}::text, ${sha256}::bytea, ${display}::text from added
      )
      select ${columns(sql)} from (select * from added union all select * from apps where id = ${id}) a`;
  try {
    return await orRefusal(() => retryUntilVisible(add));
  } catch (error) {
    if (violatedConstraint(error) === 'apps_of_account') return 'too_many_apps';
    throw error;
  }
}

/**
 * Changes the given settings. Commissions that were already calculated do not change. Verification of user ids can't be
 * turned on without an identity secret. `keyId` is who does it.
 */
export async function updateApp(
  sql: Sql,
  appId: AppId,
  change: { readonly [K in keyof AppSettings]?: AppSettings[K] | undefined },
  keyId: KeyId,
): Promise<App | SettingsRefusal> {
  const { payoutSchedule, notificationEmails, weeklyReport } = change;
  const schedule = payoutSchedule == null ? null : sql.json(payoutSchedule);
  const updated = await orRefusal(
    () => sql.maybe<App>`
      update apps
         set name = coalesce(${change.name ?? null}::text, name),
             commission_rate_bps = coalesce(${change.commissionRateBps ?? null}::integer, commission_rate_bps),
             attribution_window_days = coalesce(${change.attributionWindowDays ?? null}::integer, attribution_window_days),
             hold_period_days = coalesce(${change.holdPeriodDays ?? null}::integer, hold_period_days),
             deferred_window_minutes = coalesce(${change.deferredWindowMinutes ?? null}::integer, deferred_window_minutes),
             link_subdomain = coalesce(${change.linkSubdomain ?? null}::text, link_subdomain),
             destination_schemes = case when ${change.destinationSchemes === undefined} then destination_schemes
                                        else ${arrayOf(change.destinationSchemes ?? null)}::text[] end,
             stripe_accounts = coalesce(${arrayOf(change.stripeAccounts ?? null)}::text[], stripe_accounts),
             ios_app_ids = coalesce(${arrayOf(change.iosAppIds ?? null)}::text[], ios_app_ids),
             android_apps = coalesce(${change.androidApps === undefined ? null : sql.json(change.androidApps)}::jsonb, android_apps),
             purchase_codes = nullif(coalesce(${change.purchaseCodes ?? null}::text, purchase_codes, 'off'), 'off'),
             payee_wait_days = nullif(coalesce(${change.payeeWaitDays ?? null}::int, payee_wait_days), ${APP_DEFAULTS.payeeWaitDays}::int),
             payout_approval = nullif(coalesce(${change.payoutApproval ?? null}::text, payout_approval), ${APP_DEFAULTS.payoutApproval}::text),
             payout_schedule = case when ${payoutSchedule === undefined} then payout_schedule else ${schedule}::jsonb end,
             payout_schedule_key = case when ${payoutSchedule === undefined} then payout_schedule_key::text
                                        when ${payoutSchedule !== null} then ${keyId}::text end,
             -- What changes neither the day nor its time zone does not end the time that they have counted.
             payout_schedule_since = case when ${payoutSchedule === undefined} then payout_schedule_since
                                          when ${payoutSchedule === null} then null
                                          when payout_schedule->>'day' = (${schedule}::jsonb)->>'day'
                                               and payout_schedule->>'timezone' = (${schedule}::jsonb)->>'timezone' then payout_schedule_since
                                          else now() end,
             notification_emails = case when ${notificationEmails === undefined} then notification_emails
                                        else nullif(${arrayOf(notificationEmails ?? null)}::text[], '{}') end,
             weekly_report = case when ${weeklyReport ?? null}::boolean is null then weekly_report
                                  when not ${weeklyReport ?? null}::boolean then false end,
             -- Reports begin with the next week after the first address, or after they were wanted again.
             notifications_since = case when notification_emails is null or notifications_since is null
                                             or weekly_report is false and ${weeklyReport ?? null}::boolean then now()
                                        else notifications_since end,
             brand_color = case when ${change.brandColor === undefined} then brand_color::text else ${change.brandColor ?? null}::text end,
             identity_verification = coalesce(${change.identityVerification ?? null}::boolean, identity_verification)
       where id = ${appId} and ${acting(sql)}
         and (${change.identityVerification !== true} or exists (select from identity_secrets where app_id = ${appId}))
      returning ${columns(sql)}`,
  );
  return updated ?? 'identity_secret_missing';
}
