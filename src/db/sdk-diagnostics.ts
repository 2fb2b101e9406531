import type { AffiliateId, AppId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

/** Number of latest user ids of each side that are compared. */
const IDENTITY_LIMIT = 1_000;

/** How the user ids of billing events and of `identify` calls overlap. */
export interface IdentityOverlap {
  /** Whether any billing event names a user. */
  readonly billed: boolean;
  /** Whether any user was identified. */
  readonly identified: boolean;
  /** Number of user ids on both sides. A lower bound unless `complete`. */
  readonly overlapCount: number;
  /** The latest ids of one side that the other side never named. One more than `samples` if there are more. */
  readonly billingOnly: readonly string[];
  readonly identifiedOnly: readonly string[];
  /** Whether all ids of both sides were compared. */
  readonly complete: boolean;
}

/**
 * Compares the latest user ids of each side with all ids of the other side. Both environments count, since founders
 * start in the sandbox. Test events do not count, since providers generate their users. A user with an attributed
 * payment is on both sides, however long ago the payment was.
 *
 * The lookups are scalar queries with a limit, which Postgres runs one by one. It would turn `exists` into a join that
 * reads all user ids.
 */
export async function readIdentityOverlap(sql: Sql, appId: AppId, samples: number): Promise<IdentityOverlap> {
  return await sql.one<IdentityOverlap>`
    with events_seen as materialized (
      select e.customer_user_id, row_number() over () as rank
        from (select customer_user_id from events
               where app_id = ${appId} and customer_user_id is not null and kind <> 'test'
               order by id desc limit ${IDENTITY_LIMIT + 1}) e
    ), identities_seen as materialized (
      select i.customer_user_id, row_number() over () as rank
        from (select customer_user_id from identities where app_id = ${appId}
               order by created_at desc limit ${IDENTITY_LIMIT + 1}) i
    ), billing as materialized (
      select s.customer_user_id, s.rank,
             (select true from identities i
               where i.app_id = ${appId} and i.customer_user_id = s.customer_user_id limit 1) is not null as is_shared
        from (select customer_user_id, min(rank) as rank from events_seen group by 1) s
    ), identified as materialized (
      select s.customer_user_id, s.rank,
             s.customer_user_id in (select customer_user_id from billing)
             or (select true from payment_users p
                  where p.app_id = ${appId} and p.customer_user_id = s.customer_user_id limit 1) is not null as is_shared
        from (select customer_user_id, min(rank) as rank from identities_seen group by 1) s
    ), shared as (
      select customer_user_id from billing where is_shared union select customer_user_id from identified where is_shared
    ), paid as (
      select coalesce(sum(paid_users), 0)::bigint as users from rollup_totals
       where app_id = ${appId} and scope = 'app' and scope_id = ${appId}
    )
    select exists (select from billing) as billed, exists (select from identified) as identified,
           greatest((select count(*) from shared), paid.users) as overlap_count,
           array(select customer_user_id from billing where not is_shared order by rank limit ${samples + 1})
             as billing_only,
           array(select customer_user_id from identified where not is_shared order by rank limit ${samples + 1}) as identified_only,
           (select count(*) from events_seen) <= ${IDENTITY_LIMIT}
           and (select count(*) from identities_seen) <= ${IDENTITY_LIMIT} as complete
      from paid`;
}

/** Number of latest attributions whose SDKs are counted. */
const SDK_LIMIT = 1_000;

/** A version of an SDK that reported installs. */
export interface SdkVersion {
  readonly sdk: string;
  readonly installs: number;
  /** Epoch ms. */
  readonly lastAt: number;
}

/** Returns the SDKs of the latest attributed installs, the latest in use first. */
export async function readSdkVersions(sql: Sql, appId: AppId): Promise<SdkVersion[]> {
  return await sql<SdkVersion>`
    select sdk, count(*) as installs, max(created_at) as last_at
      from (select sdk, created_at from attributions where app_id = ${appId} order by id desc limit ${SDK_LIMIT}) t
     where sdk is not null group by sdk order by max(created_at) desc, sdk limit 50`;
}

/** A user whom a device reported with a test key. */
export interface TestUser {
  readonly customerUserId: string;
  readonly deviceId: string;
  /** The affiliate of the device. Null if the device is not attributed. */
  readonly affiliateId: AffiliateId | null;
  /** Whether a billing event names the user. */
  readonly isBilled: boolean;
  /** When the pair was first reported, epoch ms. */
  readonly reportedAt: number;
}

/** Returns the latest users whom devices reported with a test key. */
export async function readTestUsers(sql: Sql, appId: AppId, limit: number): Promise<TestUser[]> {
  return await sql<TestUser>`
    select i.customer_user_id, i.device_id,
           (select a.affiliate_id from test_attributions a where a.app_id = i.app_id and a.device_id = i.device_id) as affiliate_id,
           (select true from payment_users p
             where p.app_id = i.app_id and p.customer_user_id = i.customer_user_id limit 1) is not null as is_billed,
           i.created_at as reported_at
      from (select * from test_identities where app_id = ${appId} order by created_at desc limit ${limit}) i
     order by i.created_at desc, i.device_id, i.customer_user_id`;
}

/** Number of latest identities that are examined for sources with many users. */
const SOURCES_LIMIT = 1_000;

/** A device or an address that reported several users. */
export interface IdentitySource {
  /** The device id, or the start of the address's hash. */
  readonly name: string;
  readonly users: number;
  readonly devices: number;
  /** The first and last time that it reported one of these users, epoch ms. */
  readonly firstAt: number;
  readonly lastAt: number;
}

export interface IdentitySources {
  /** Number of pairs of device and user that were examined, the latest ones. */
  readonly examined: number;
  /** Whether there are more. */
  readonly truncated: boolean;
  readonly devices: readonly IdentitySource[];
  readonly addresses: readonly IdentitySource[];
}

/**
 * Returns the devices and the addresses that reported at least two users, those with the most users first. An address has
 * another hash each day.
 */
export async function readIdentitySources(sql: Sql, appId: AppId, limit: number): Promise<IdentitySources> {
  return await sql.one<IdentitySources>`
    with latest as materialized (
      select device_id, customer_user_id, address_hash, created_at, row_number() over () as rank
        from (select * from identities where app_id = ${appId} order by created_at desc limit ${SOURCES_LIMIT + 1}) i
    ), sources as (
      select kind, name, count(distinct customer_user_id) as users, count(distinct device_id) as devices,
             epoch_ms(min(created_at)) as "firstAt", epoch_ms(max(created_at)) as "lastAt"
        from latest
       cross join lateral (values ('device', device_id), ('address', left(encode(address_hash, 'hex'), 16))) s (kind, name)
       where rank <= ${SOURCES_LIMIT} and name is not null
       group by kind, name having count(distinct customer_user_id) > 1
    ), top as (
      select kind, jsonb_agg(to_jsonb(s) - 'kind' - 'rank' order by rank) as rows
        from (select *, row_number() over (partition by kind order by users desc, "lastAt" desc, name) as rank from sources) s
       where rank <= ${limit}
       group by kind
    )
    select (select least(count(*), ${SOURCES_LIMIT}) from latest) as examined,
           (select count(*) from latest) > ${SOURCES_LIMIT} as truncated,
           coalesce((select rows from top where kind = 'device'), '[]') as devices,
           coalesce((select rows from top where kind = 'address'), '[]') as addresses`;
}
