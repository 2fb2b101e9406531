import type { AppId } from '../domain/ids.ts';
import { listAppIds } from './apps.ts';
import type { Sql } from './sql.ts';

/** Stored sums that differ from the facts. */
export interface RollupDifference {
  readonly appId: AppId;
  readonly scope: 'app' | 'affiliate' | 'link';
  readonly scopeId: string;
  readonly span: 'all_time' | 'quarter_hour' | 'six_hours';
  /** Start of the span. Null for all time. */
  readonly bucketAt: number | null;
  /** The difference of each sum, in words. */
  readonly differs: readonly string[];
}

/**
 * The sums computed from the facts of one app: one row per scope and span. The counterpart of the triggers. Affiliates
 * without facts are included, since each has its all-time row from its creation.
 */
const expected = (sql: Sql, appId: AppId) => sql.fragment`
  select s.scope, s.scope_id, b.span, b.bucket_at, sum(f.clicks) as clicks, sum(f.installs) as installs,
         sum(f.identified) as identified, sum(f.paid_users) as paid_users, sum(f.revenue_cents) as revenue_cents,
         sum(f.commission_cents) as commission_cents, sum(f.matured_cents * b.is_total) as matured_cents,
         sum(f.paid_cents * b.is_total) as paid_cents, sum(f.matured_count * b.is_total) as matured_count,
         case b.is_total when 1 then case s.scope when 'link' then sum(f.clicks)
                                                  when 'affiliate' then sum(f.commission_cents) end end as rank_value,
         min(f.affiliate_id::text) filter (where s.scope = 'link' and b.is_total = 1) as link_affiliate_id
    from (select * from rollup_facts
          union all
          select app_id, id, null, null, 0, 0, 0, 0, 0, 0, 0, 0, 0 from affiliates) f
   cross join lateral (values ('app', f.app_id::text), ('affiliate', f.affiliate_id::text), ('link', f.link_id::text))
              s (scope, scope_id)
   cross join lateral (values ('all_time', timestamptz '-infinity', 1), ('quarter_hour', rollup_bucket(f.at), 0),
                              ('six_hours', rollup_block(f.at), 0)) b (span, bucket_at, is_total)
   where f.app_id = ${appId} and s.scope_id is not null and b.bucket_at is not null
   group by 1, 2, 3, 4, b.is_total`;

/** The stored sums. Commission sums of an affiliate count in shard 0 only, where the lists by earnings read them. */
const stored = (sql: Sql, appId: AppId) => sql.fragment`
  select scope, scope_id, case when isfinite(bucket_at) then 'quarter_hour' else 'all_time' end as span, bucket_at,
         sum(clicks) as clicks, sum(installs) as installs, sum(identified) as identified,
         sum(paid_users) as paid_users, sum(revenue_cents) as revenue_cents,
         sum(commission_cents) filter (where scope <> 'affiliate' or shard = 0) as commission_cents,
         sum(matured_cents) filter (where scope <> 'affiliate' or shard = 0) as matured_cents,
         sum(paid_cents) filter (where scope <> 'affiliate' or shard = 0) as paid_cents,
         sum(matured_count) filter (where scope <> 'affiliate' or shard = 0) as matured_count,
         sum(rank_value) filter (where scope <> 'affiliate' or shard = 0) as rank_value,
         min(affiliate_status) filter (where shard = 0) as affiliate_status
    from rollups where app_id = ${appId}
   group by 1, 2, 3, 4
  union all
  select scope, scope_id, 'six_hours', block_at, sum(clicks), sum(installs), sum(identified), sum(paid_users),
         sum(revenue_cents), sum(commission_cents), 0, 0, 0, null, null
    from rollup_blocks where app_id = ${appId}
   group by 1, 2, 3, 4`;

/** The difference to the stored sums, and the status that an affiliate's row should have. */
const deltas = (sql: Sql, appId: AppId) => sql.fragment`
  select scope, scope_id, span, bucket_at, e.link_affiliate_id, a.status as affiliate_status,
         a.status is distinct from s.affiliate_status as status_differs,
         coalesce(e.clicks, 0) - coalesce(s.clicks, 0) as clicks,
         coalesce(e.installs, 0) - coalesce(s.installs, 0) as installs,
         coalesce(e.identified, 0) - coalesce(s.identified, 0) as identified,
         coalesce(e.paid_users, 0) - coalesce(s.paid_users, 0) as paid_users,
         coalesce(e.revenue_cents, 0) - coalesce(s.revenue_cents, 0) as revenue_cents,
         coalesce(e.commission_cents, 0) - coalesce(s.commission_cents, 0) as commission_cents,
         coalesce(e.matured_cents, 0) - coalesce(s.matured_cents, 0) as matured_cents,
         coalesce(e.paid_cents, 0) - coalesce(s.paid_cents, 0) as paid_cents,
         coalesce(e.matured_count, 0) - coalesce(s.matured_count, 0) as matured_count,
         coalesce(e.rank_value, 0) - coalesce(s.rank_value, 0) as rank_value
    from (${expected(sql, appId)}) e
    full join (${stored(sql, appId)}) s using (scope, scope_id, span, bucket_at)
    left join affiliates a on scope = 'affiliate' and span = 'all_time' and a.id = scope_id`;

const isUnequal = (sql: Sql) => sql.fragment`
  (status_differs
   or (clicks, installs, identified, paid_users, revenue_cents, commission_cents, matured_cents, paid_cents,
       matured_count, rank_value) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0))`;

/**
 * Compares the stored sums with the facts, app by app, and returns the differences. Covers all apps unless `only` is
 * given.
 */
export async function findRollupDifferences(sql: Sql, only?: readonly AppId[]): Promise<RollupDifference[]> {
  const found: RollupDifference[] = [];
  for (const appId of only ?? (await listAppIds(sql))) {
    const rows = await sql<
      Omit<RollupDifference, 'differs'> & { statusDiffers: boolean; off: Record<string, number> }
    >`
      select ${appId}::text as app_id, scope, scope_id, span,
             case when isfinite(bucket_at) then bucket_at end as bucket_at, status_differs,
             to_jsonb(d) - '{scope,scope_id,span,bucket_at,link_affiliate_id,affiliate_status,status_differs}'::text[]
               as off
        from (${deltas(sql, appId)}) d
       where ${isUnequal(sql)}
       order by scope, scope_id, span, bucket_at`;
    for (const { off, statusDiffers, ...row } of rows) {
      const differs = Object.entries(off)
        .filter(([, missing]) => missing !== 0)
        .map(([column, missing]) => `${column} is ${Math.abs(missing)} too ${missing > 0 ? 'low' : 'high'}`);
      found.push({ ...row, differs: statusDiffers ? [...differs, 'affiliate_status differs'] : differs });
    }
  }
  return found;
}

/**
 * Corrects the stored sums and returns the number of corrected rows. One statement per app adds the difference that its
 * snapshot shows. Facts that arrive meanwhile add their own part, so no lock is needed. The parts of the statement:
 * `misplaced` is money of affiliates outside shard 0, `missing` the difference; `added` and `added_blocks` correct both
 * tables.
 */
export async function repairRollups(sql: Sql): Promise<number> {
  let repaired = 0;
  for (const appId of await listAppIds(sql)) {
    const row = await sql.one<{ repaired: number }>`
      with misplaced as (
        select scope, scope_id, bucket_at, shard, 0, 0, 0, 0, 0, -commission_cents, -matured_cents, -paid_cents,
               -matured_count, null::bigint, null::text, null::text
          from rollups
         where app_id = ${appId} and scope = 'affiliate' and shard <> 0
           and (commission_cents, matured_cents, paid_cents, matured_count) <> (0, 0, 0, 0)
      ), missing as materialized (
        select * from (${deltas(sql, appId)}) d where ${isUnequal(sql)}
      ), added as (
        insert into rollups as r (app_id, scope, scope_id, bucket_at, shard, clicks, installs, identified, paid_users,
                                  revenue_cents, commission_cents, matured_cents, paid_cents, matured_count,
                                  rank_value, link_affiliate_id, affiliate_status)
        select ${appId}::text, x.*
          from (select scope, scope_id, bucket_at, 0::smallint as shard, clicks, installs, identified, paid_users,
                       revenue_cents, commission_cents, matured_cents, paid_cents, matured_count,
                       case when scope <> 'app' and span = 'all_time' then rank_value end, link_affiliate_id,
                       affiliate_status
                  from missing where span <> 'six_hours'
                union all
                select * from misplaced) x
         order by rollup_lock_rank(scope), scope_id, bucket_at, shard
        on conflict (app_id, scope, scope_id, bucket_at, shard) do update set
          clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
          identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
          revenue_cents = r.revenue_cents + excluded.revenue_cents,
          commission_cents = r.commission_cents + excluded.commission_cents,
          matured_cents = r.matured_cents + excluded.matured_cents, paid_cents = r.paid_cents + excluded.paid_cents,
          matured_count = r.matured_count + excluded.matured_count,
          rank_value = case when excluded.rank_value is null then r.rank_value
                            else coalesce(r.rank_value, 0) + excluded.rank_value end,
          link_affiliate_id = coalesce(excluded.link_affiliate_id, r.link_affiliate_id),
          affiliate_status = coalesce(excluded.affiliate_status, r.affiliate_status)
        returning 1
      ), added_blocks as (
        insert into rollup_blocks as r (app_id, scope, scope_id, block_at, shard, clicks, installs, identified,
                                        paid_users, revenue_cents, commission_cents)
        select ${appId}::text, scope, scope_id, bucket_at, 0, clicks, installs, identified, paid_users, revenue_cents,
               commission_cents
          from missing where span = 'six_hours'
         order by rollup_lock_rank(scope), scope_id, bucket_at
        on conflict (app_id, scope, scope_id, block_at, shard) do update set
          clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
          identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
          revenue_cents = r.revenue_cents + excluded.revenue_cents,
          commission_cents = r.commission_cents + excluded.commission_cents
        returning 1
      )
      select (select count(*) from added) + (select count(*) from added_blocks) as repaired`;
    repaired += row.repaired;
  }
  return repaired;
}
