import { isErased } from './erased-identifiers.ts';
import { USERS_PER_DEVICE } from '../domain/attribution.ts';
import type { Touch } from '../domain/attribution.ts';
import type { AffiliateId, AppId, AttributionId } from '../domain/ids.ts';
import type { AttributedInstall } from './attributions.ts';
import type { Identity } from './bindings.ts';
import { newId } from './new-id.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

// What SDKs with a test key report. These rows have tables of their own, which no binding, payment or commission can reference:
// so they neither count nor earn, and the device and the user are new to a live key.

/** How many devices of one user are looked at. */
const DEVICES_OF_USER = 100;

/** Inserts a device's test attribution. Does nothing if the device has one. Claims no click: it stays for a live install. */
export async function attributeTestDevice(
  sql: Sql,
  { appId, deviceId, firstOpenAt, sdk }: Omit<AttributedInstall, 'rememberedUsers'>,
  { affiliateId, linkId, clickId, matchMethod, touchedAt }: Touch,
): Promise<void> {
  await sql`
    insert into test_attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at, sdk)
    values (${newId('attribution')}, ${appId}, ${deviceId}, ${affiliateId}, ${linkId}, ${clickId}, ${matchMethod},
            ${instant(touchedAt)}, ${instant(firstOpenAt)}, ${sdk})
    on conflict (app_id, device_id) do nothing`;
}

/** What a test key's identify found. */
export interface RecordedTestUser {
  /** False if the device has as many users as it can have, and this is another one. Nothing is then recorded. */
  readonly isRecorded: boolean;
  /** The attribution of the device. Null if it has none. */
  readonly attributionId: AttributionId | null;
  readonly affiliateId: AffiliateId | null;
}

/** Records that a user was identified on a device with a test key. Of an erased user, nothing is recorded. */
export async function recordTestUser(
  sql: Sql,
  { appId, deviceId, customerUserId, identifiedAt, userHash }: Omit<Identity, 'addressHash'>,
): Promise<RecordedTestUser> {
  return await retryAfterConflict(
    ['test_identities_one_position'],
    async () =>
      await sql.one<RecordedTestUser>`
      with known as (
        select from test_identities
         where app_id = ${appId} and device_id = ${deviceId} and customer_user_id = ${customerUserId}
      ), free as (
        select min(p) as position from generate_series(1, ${USERS_PER_DEVICE}::integer) p
         where not exists (select from test_identities i
                            where i.app_id = ${appId} and i.device_id = ${deviceId} and i.position = p)
      ), added as (
        insert into test_identities (app_id, device_id, customer_user_id, position, identified_at)
        select ${appId}::text, ${deviceId}::text, ${customerUserId}::text, position, ${instant(identifiedAt)}::timestamptz
          from free
         where position is not null and not exists (select from known) and not ${isErased(sql, appId, [userHash], ['user'])}
        on conflict (app_id, device_id, customer_user_id) do nothing
      )
      select exists (select from known) or (select position from free) is not null as is_recorded,
             t.id as attribution_id, t.affiliate_id
        from (select 1) always
        left join (select id, affiliate_id from test_attributions where app_id = ${appId} and device_id = ${deviceId}) t on true`,
    USERS_PER_DEVICE + 1,
  );
}

/** Selects the test attribution that a user would be bound to: the first of the user's devices that was both reported and attributed. */
export function testAttributionOfUser(sql: Sql, appId: AppId, userId: Fragment): Fragment {
  return sql.fragment`
    select a.*, greatest(a.created_at, u.created_at) as bound_at
      from (select * from test_identities x where x.app_id = ${appId} and x.customer_user_id = ${userId}
             order by x.created_at limit ${DEVICES_OF_USER}) u
     cross join lateral (
       select * from test_attributions y where y.app_id = u.app_id and y.device_id = u.device_id offset 0) a
     order by bound_at, a.id limit 1`;
}
