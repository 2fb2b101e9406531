import type { AppId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

/** How far the set-up of an app has come, beyond its webhooks and its recent activity. */
export interface SetupState {
  /** The first and last characters of the current SDK key. */
  readonly sdkKey: string | null;
  readonly hasAffiliate: boolean;
  /** Whether a user of the app is known, by its SDK or by a purchase code. */
  readonly hasUser: boolean;
  /** When the latest self-test passed, epoch ms. Null if it found something to fix, before the first one, and after a change of a webhook secret. */
  readonly selfTestPassedAt: number | null;
  /** When the oldest payment occurred that earned a commission, epoch ms. Null before the first. */
  readonly firstSaleAt: number | null;
}

/** Returns how far the set-up of an app has come. */
export async function readSetupState(sql: Sql, appId: AppId): Promise<SetupState> {
  return await sql.one<SetupState>`
    select (select display from sdk_keys where app_id = ${appId} and kind = 'live' and expires_at is null) as sdk_key,
           exists (select from affiliates where app_id = ${appId}) as has_affiliate,
           exists (select from bindings where app_id = ${appId}) as has_user,
           (select self_test_passed_at from apps where id = ${appId}) as self_test_passed_at,
           (select occurred_at from commissions
             where app_id = ${appId} and payment_id is not null order by occurred_at, id limit 1) as first_sale_at`;
}
