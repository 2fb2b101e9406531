import type { AffiliateStatus } from '../domain/attribution.ts';
import type { AffiliateId, AppId } from '../domain/ids.ts';
import type { Affiliate } from './affiliates.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, positionInstant } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { currentBlock } from './payout-blocks.ts';
import type { CurrentBlock } from './payout-blocks.ts';
import type { Fragment, Sql } from './sql.ts';

/** An affiliate in a list, with its totals of all time. */
export interface AffiliateListRow extends Affiliate {
  readonly clicks: number;
  readonly installs: number;
  readonly commissionCents: number;
  /** Null unless the payouts are blocked. */
  readonly payoutBlock: CurrentBlock | null;
  /** Null unless the address was changed: then whether by a caller who may pay. */
  readonly emailConfirmed: boolean | null;
}

/** Joins an affiliate's clicks, installs and commissions of all time. */
const totals = (sql: Sql, appId: AppId) => sql.fragment`
  left join lateral (
    select sum(clicks)::bigint as clicks, sum(installs)::bigint as installs,
           sum(commission_cents)::bigint as commission_cents
      from rollup_totals
     where app_id = ${appId} and scope = 'affiliate' and scope_id = p.id) t on true`;

const listColumns = (sql: Sql) => sql.fragment`
  p.id, p.name, p.email, p.status, p.default_commission_rate_bps, p.external_id, p.note, p.tags, p.created_at,
  coalesce(t.clicks, 0) as clicks, coalesce(t.installs, 0) as installs,
  coalesce(t.commission_cents, 0)::float8 as commission_cents, ${currentBlock(sql, sql.fragment`p.id`)} as payout_block, p.email_confirmed`;

const withStatus = (sql: Sql, status: AffiliateStatus | null) =>
  status === null ? sql.fragment`` : sql.fragment`and a.status = ${status}`;

const withExternalId = (sql: Sql, externalId: string | null) =>
  externalId === null ? sql.fragment`` : sql.fragment`and a.external_id = ${externalId}`;

/** Whether an affiliate `a` has a text in its name, e-mail address or external id, ignoring case, or has it as its id. */
const hasText = (sql: Sql, text: string) => sql.fragment`
  coalesce(strpos(lower(a.name), lower(${text}::text)) > 0 or strpos(lower(a.email), lower(${text}::text)) > 0
           or strpos(lower(a.external_id), lower(${text}::text)) > 0 or a.id = ${text}, false)`;

/** What a page examines affiliates for, because no index selects it. Null selects all. */
interface ExaminedFilter {
  readonly text: string | null;
  /** A tag, ignoring case. Absent selects all, too. */
  readonly tag?: string | null;
}

/** The condition that a page examines affiliates `a` for. Null if it examines nothing. */
function examinedCondition(sql: Sql, { text, tag = null }: ExaminedFilter): Fragment | null {
  const hasTag = sql.fragment`exists (select from unnest(a.tags) t where lower(t) = lower(${tag}::text))`;
  if (text === null) return tag === null ? null : hasTag;
  return tag === null ? hasText(sql, text) : sql.fragment`${hasText(sql, text)} and ${hasTag}`;
}

/** Returns an affiliate with its totals. Undefined for an unknown one and for one of another app. */
export async function findListedAffiliate(
  sql: Sql,
  appId: AppId,
  id: AffiliateId,
): Promise<AffiliateListRow | undefined> {
  return await sql.maybe<AffiliateListRow>`
    select ${listColumns(sql)}
      from (select * from affiliates where app_id = ${appId} and id = ${id}) p ${totals(sql, appId)}`;
}

/** Number of affiliates whose names a search reads for the text inside of them. Of more, it finds names that begin with it. */
const SEARCHED_NAMES = 4_000;

/**
 * Returns affiliates whose name, e-mail address or external id begins with a text, or whose id it is, and those that have it
 * inside their name. Ignores case, except in external ids. By name; at most `limit` of each.
 */
export async function searchAffiliates(
  sql: Sql,
  appId: AppId,
  text: string,
  limit: number,
): Promise<AffiliateListRow[]> {
  const from = sql.fragment`lower(${text}::text) collate "C"`;
  // The last character of all.
  const to = sql.fragment`lower(${text}::text) collate "C" || chr(1114111)`;
  return await sql<AffiliateListRow>`
    with named as materialized (
      select id from affiliates
       where app_id = ${appId} and lower(name) collate "C" >= ${from} and lower(name) collate "C" < ${to}
       order by lower(name) collate "C", id limit ${limit}
    ), within as materialized (
      select id from (select id, name from affiliates where app_id = ${appId}
                       order by lower(name) collate "C", id limit ${SEARCHED_NAMES}) w
       where strpos(lower(name), lower(${text}::text)) > 0 limit ${limit}
    ), mailed as materialized (
      select id from affiliates
       where app_id = ${appId} and lower(email) collate "C" >= ${from} and lower(email) collate "C" < ${to}
       order by lower(email) collate "C", created_at, id limit ${limit}
    ), numbered as materialized (
      select id from affiliates
       where app_id = ${appId} and external_id >= ${text} and external_id < ${text}::text collate "C" || chr(1114111)
       order by external_id limit ${limit}
    ), found as (
      select id from named union select id from within union select id from mailed union select id from numbered
      union select id from affiliates where app_id = ${appId} and id = ${text}
    ), p as (
      -- One index lookup per row: with a generic plan, a join would read all affiliates.
      select a.* from found cross join lateral (select * from affiliates a where a.id = found.id offset 0) a
       order by lower(a.name) collate "C", a.id limit ${limit}
    )
    select ${listColumns(sql)} from p ${totals(sql, appId)} order by lower(p.name) collate "C", p.id`;
}

/**
 * Returns a page of an app's affiliates, oldest first. No index has all parts of a text, or tags, so a page with one examines at most
 * `examines` affiliates and may have fewer than `limit`.
 */
export async function listAffiliatesByCreated(
  sql: Sql,
  appId: AppId,
  filter: ExaminedFilter & {
    readonly status: AffiliateStatus | null;
    readonly externalId: string | null;
  },
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<AffiliateListRow, number>> {
  const { status, externalId } = filter;
  const condition = examinedCondition(sql, filter);
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (a.created_at, a.id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<AffiliateListRow & Position<number> & Examined>`
    with walked as (
      select a.*, row_number() over (order by a.created_at, a.id) as examined
        from affiliates a where a.app_id = ${appId} ${withStatus(sql, status)} ${withExternalId(sql, externalId)} ${from}
       order by a.created_at, a.id limit ${condition === null ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked a`, condition, sql.fragment`created_at, id`, { limit, examines })}
    )
    select ${listColumns(sql)}, (extract(epoch from p.created_at) * 1000000)::bigint as sort_key, p.is_match, p.examined
      from p ${totals(sql, appId)}
     order by p.examined`;
  return condition === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/**
 * Returns a page of an app's affiliates with an e-mail address, ignoring case, oldest first. Nothing prevents many from
 * having the same one, so a page with a status examines at most `examines` of them and may have fewer than `limit`.
 */
export async function listAffiliatesByEmail(
  sql: Sql,
  appId: AppId,
  filter: {
    readonly email: string;
    readonly status: AffiliateStatus | null;
    readonly externalId: string | null;
  },
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<AffiliateListRow, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (a.created_at, a.id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<AffiliateListRow & Position<number> & Examined>`
    with walked as (
      select a.*, row_number() over (order by a.created_at, a.id) as examined
        from affiliates a
       where a.app_id = ${appId} and lower(a.email) collate "C" = lower(${filter.email}) ${withExternalId(sql, filter.externalId)} ${from}
       order by a.created_at, a.id limit ${filter.status === null ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked a`, sql.fragment`true ${withStatus(sql, filter.status)}`, sql.fragment`created_at, id`, { limit, examines })}
    )
    select ${listColumns(sql)}, (extract(epoch from p.created_at) * 1000000)::bigint as sort_key, p.is_match, p.examined
      from p ${totals(sql, appId)}
     order by p.examined`;
  return filter.status === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/** Returns how many affiliates an app has, or how many with a status. */
export async function countAffiliates(
  sql: Sql,
  appId: AppId,
  status: AffiliateStatus | null,
): Promise<number> {
  const { count } = await sql.one<{ count: number }>`
    select coalesce(sum(affiliates), 0)::bigint as count from affiliate_counts
     where app_id = ${appId} ${status === null ? sql.fragment`` : sql.fragment`and status = ${status}`}`;
  return count;
}

/** Returns a page of an app's affiliates by name, ignoring case. A text or a tag limits it as it does `listAffiliatesByCreated`. */
export async function listAffiliatesByName(
  sql: Sql,
  appId: AppId,
  filter: ExaminedFilter & { readonly status: AffiliateStatus | null },
  after: Position<string> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<AffiliateListRow, string>> {
  const { status } = filter;
  const condition = examinedCondition(sql, filter);
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (lower(a.name) collate "C", a.id) > (${after.sortKey}, ${after.id})`;
  const rows = await sql<AffiliateListRow & Position<string> & Examined>`
    with walked as (
      select a.*, row_number() over (order by lower(a.name) collate "C", a.id) as examined
        from affiliates a where a.app_id = ${appId} ${withStatus(sql, status)} ${from}
       order by lower(a.name) collate "C", a.id limit ${condition === null ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked a`, condition, sql.fragment`lower(name) collate "C", id`, { limit, examines })}
    )
    select ${listColumns(sql)}, lower(p.name) as sort_key, p.is_match, p.examined
      from p ${totals(sql, appId)}
     order by p.examined`;
  return condition === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/** Number of affiliates that a page by earnings examines at most. It reads some more, whose earnings the tail changes. */
const EXAMINED_EARNERS = PAGE_EXAMINES / 2;

/**
 * Returns a page of an app's affiliates by their earnings of all time, the highest first; of equal ones the oldest first. Every
 * affiliate has its row in `rollups` from its creation, ordered by an index, so this reads no more rows than it returns, and
 * those of the affiliates with earnings in the tail. An affiliate whose earnings change between two pages may be on both or
 * on none of them. A text or a tag limits a page as it does in `listAffiliatesByCreated`.
 *
 * The parts of the statement: `tail` is what the tail adds, `equal` and `lower` the next rows of the index, as many more as
 * the tail has affiliates, because those are taken out of them. `earned` are the rows that the tail does not change, and
 * the affiliates of the tail with what they have earned now.
 */
export async function listAffiliatesByEarnings(
  sql: Sql,
  appId: AppId,
  filter: ExaminedFilter & { readonly status: AffiliateStatus | null },
  after: Position<string> | null,
  limit: number,
  examines = EXAMINED_EARNERS,
): Promise<Page<AffiliateListRow, string>> {
  const { status } = filter;
  const condition = examinedCondition(sql, filter);
  const ranked = sql.fragment`
    r.app_id = ${appId} and r.scope = 'affiliate' and r.bucket_at = '-infinity'
    ${status === null ? sql.fragment`` : sql.fragment`and r.affiliate_status = ${status}`}`;
  const examined = condition === null ? limit + 1 : examines;
  // Two ranges of the index: most affiliates of a large app may have earned the same, nothing.
  const equal =
    after === null
      ? sql.fragment`select null as id, 0::bigint as cents where false`
      : sql.fragment`
      select r.scope_id as id, r.rank_value as cents from rollups r
       where ${ranked} and r.rank_value = ${after.sortKey}::bigint and r.scope_id > ${after.id}
       order by r.scope_id limit ${examined} + (select count(*) from tail)`;
  const isLower = after === null ? sql.fragment`` : sql.fragment`and r.rank_value < ${after.sortKey}::bigint`;
  const isNext =
    after === null
      ? sql.fragment`true`
      : sql.fragment`(cents < ${after.sortKey}::bigint or (cents = ${after.sortKey}::bigint and id > ${after.id}))`;
  const rows = await sql<AffiliateListRow & Position<string> & Examined>`
    with tail as materialized (
      select scope_id as id, sum(commission_cents)::bigint as cents
        from rollup_tail
       where app_id = ${appId} and scope = 'affiliate' and scope_id is not null and commission_cents <> 0 group by 1
    ), equal as materialized (${equal}
    ), lower as materialized (
      select r.scope_id as id, r.rank_value as cents from rollups r where ${ranked} ${isLower}
       order by r.rank_value desc, r.scope_id
       limit ${examined} + (select count(*) from tail) - (select count(*) from equal)
    ), earned as (
      select id, cents from (select * from equal union all select * from lower) leaders where id not in (select id from tail)
      union all
      select t.id, r.rank_value + t.cents
        from tail t
       cross join lateral (select * from rollups r where ${ranked} and r.scope_id = t.id offset 0) r
    ), top as (
      select id as scope_id, cents as earned from earned where ${isNext} order by earned desc, id limit ${examined}
    ), walked as (
      -- One index lookup per row: with a generic plan, a join would read all affiliates.
      select a.*, top.earned, row_number() over (order by top.earned desc, top.scope_id) as examined
        from top cross join lateral (select * from affiliates a where a.id = top.scope_id offset 0) a
    ), p as (
      ${matchesOf(sql, sql.fragment`walked a`, condition, sql.fragment`examined`, { limit, examines: examined })}
    )
    select ${listColumns(sql)}, p.earned::text as sort_key, p.is_match, p.examined
      from p ${totals(sql, appId)}
     order by p.examined`;
  return condition === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}
