import type { AppId } from '../domain/ids.ts';
import { listAppIds } from './apps.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import type { Sql } from './sql.ts';

/** Deltas that one statement folds at most. It takes some tens of milliseconds. */
export const FOLD_LIMIT = 2_000;

/** The lock that the fold loop and a repair hold. Only one of them changes the stored sums at a time. */
const lock = (sql: Sql) => sql.fragment`hashtext('tributary'), hashtext('fold rollups')`;

/**
 * Adds the oldest deltas to the stored sums and deletes them, in one statement: a process that dies leaves both undone.
 * Returns how many deltas it folded: 0 also while another process folds.
 *
 * The parts of the statement: `turn` is the lock, `page` the position of the deltas in their table, `taken` the deleted
 * deltas, `parts` their sums per link and quarter hour; `folded` and `folded_blocks` are the changed sums. A position names
 * the same delta until the statement ends, because deltas are never updated, and it needs no join that a plan could get
 * wrong.
 */
export async function foldRollups(sql: Sql, limit = FOLD_LIMIT): Promise<number> {
  const { count } = await sql.one<{ count: number }>`
    with turn as materialized (
      select pg_try_advisory_xact_lock(${lock(sql)}) as is_mine
    ), page as materialized (
      select ctid from rollup_deltas where (select is_mine from turn) order by created_at, id limit ${limit}
    ), taken as (
      delete from rollup_deltas where ctid = any(array(select ctid from page)) returning *
    ), parts as materialized (
      select app_id, affiliate_id, link_id, bucket_at, sum(clicks) as clicks, sum(installs) as installs,
             sum(identified) as identified, sum(paid_users) as paid_users, sum(revenue_cents) as revenue_cents,
             sum(commission_cents) as commission_cents, sum(matured_cents) as matured_cents,
             sum(paid_cents) as paid_cents, sum(matured_count) as matured_count
        from taken group by 1, 2, 3, 4
    ), folded as (
      insert into rollups as r (app_id, scope, scope_id, bucket_at, clicks, installs, identified, paid_users,
                                revenue_cents, commission_cents, matured_cents, paid_cents, matured_count, rank_value,
                                link_affiliate_id)
      select p.app_id, s.scope, s.scope_id, b.bucket_at, sum(p.clicks), sum(p.installs), sum(p.identified),
             sum(p.paid_users), sum(p.revenue_cents), sum(p.commission_cents), sum(p.matured_cents * b.is_total),
             sum(p.paid_cents * b.is_total), sum(p.matured_count * b.is_total),
             case b.is_total when 1 then case s.scope when 'link' then sum(p.clicks)
                                                      when 'affiliate' then sum(p.commission_cents) end end,
             case when s.scope = 'link' and b.is_total = 1 then min(p.affiliate_id::text) end
        from parts p
       cross join lateral (values ('app', p.app_id::text), ('affiliate', p.affiliate_id::text), ('link', p.link_id::text))
                  s (scope, scope_id)
       cross join lateral (values (timestamptz '-infinity', 1), (p.bucket_at, 0)) b (bucket_at, is_total)
       where s.scope_id is not null and b.bucket_at is not null
       group by 1, 2, 3, 4, b.is_total
       order by 1, 2, 3, 4
      on conflict (app_id, scope, scope_id, bucket_at) do update set
        ${addExcluded(sql)}, matured_cents = r.matured_cents + excluded.matured_cents,
        paid_cents = r.paid_cents + excluded.paid_cents, matured_count = r.matured_count + excluded.matured_count,
        rank_value = r.rank_value + excluded.rank_value
    ), folded_blocks as (
      insert into rollup_blocks as r (app_id, scope, scope_id, block_at, clicks, installs, identified, paid_users,
                                      revenue_cents, commission_cents)
      select p.app_id, s.scope, s.scope_id, rollup_block(p.bucket_at), sum(p.clicks), sum(p.installs),
             sum(p.identified), sum(p.paid_users), sum(p.revenue_cents), sum(p.commission_cents)
        from parts p
       cross join lateral (values ('app', p.app_id::text), ('affiliate', p.affiliate_id::text), ('link', p.link_id::text))
                  s (scope, scope_id)
       where s.scope_id is not null and p.bucket_at is not null
       group by 1, 2, 3, 4
       order by 1, 2, 3, 4
      on conflict (app_id, scope, scope_id, block_at) do update set ${addExcluded(sql)}
    )
    select count(*)::int as count from taken`;
  return count;
}

/** Adds the sums that both tables of stored sums have. */
const addExcluded = (sql: Sql) => sql.fragment`
  clicks = r.clicks + excluded.clicks, installs = r.installs + excluded.installs,
  identified = r.identified + excluded.identified, paid_users = r.paid_users + excluded.paid_users,
  revenue_cents = r.revenue_cents + excluded.revenue_cents,
  commission_cents = r.commission_cents + excluded.commission_cents`;

/** Upper bound of the count. The exact number of a longer tail is not needed. */
const COUNT_LIMIT = 10_000;

export interface RollupTail {
  readonly deltas: number;
  /** Age of the oldest one. 0 when there is none. */
  readonly oldestSeconds: number;
}

/** Returns the number of deltas that are not folded yet, counted up to 10,000, and the age of the oldest. */
export async function measureRollupTail(sql: Sql): Promise<RollupTail> {
  return await sql.one<RollupTail>`
    select count(*)::int as deltas, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest_seconds
      from (select created_at from rollup_deltas order by created_at, id limit ${COUNT_LIMIT}) d`;
}

/** Sums that differ from the facts. */
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
 * The sums computed from the facts of one app: one row per scope and span. The counterpart of the triggers and the fold loop.
 * Affiliates without facts are included, since each has its all-time row from its creation. The facts are added up by link
 * and quarter of an hour first: each of those rows, and not each fact, then becomes one row per scope and span.
 */
const expected = (sql: Sql, appId: AppId) => sql.fragment`
  select s.scope, s.scope_id, b.span, b.bucket_at, sum(f.clicks) as clicks, sum(f.installs) as installs,
         sum(f.identified) as identified, sum(f.paid_users) as paid_users, sum(f.revenue_cents) as revenue_cents,
         sum(f.commission_cents) as commission_cents, sum(f.matured_cents * b.is_total) as matured_cents,
         sum(f.paid_cents * b.is_total) as paid_cents, sum(f.matured_count * b.is_total) as matured_count,
         case b.is_total when 1 then case s.scope when 'link' then sum(f.clicks)
                                                  when 'affiliate' then sum(f.commission_cents) end end as rank_value,
         min(f.affiliate_id::text) filter (where s.scope = 'link' and b.is_total = 1) as link_affiliate_id
    from (select app_id, affiliate_id, link_id, rollup_bucket(at) as at, sum(clicks) as clicks, sum(installs) as installs,
                 sum(identified) as identified, sum(paid_users) as paid_users, sum(revenue_cents) as revenue_cents,
                 sum(commission_cents) as commission_cents, sum(matured_cents) as matured_cents, sum(paid_cents) as paid_cents,
                 sum(matured_count) as matured_count
            from rollup_facts where app_id = ${appId} group by 1, 2, 3, 4
          union all
          select app_id, id, null, null, 0, 0, 0, 0, 0, 0, 0, 0, 0 from affiliates) f
   cross join lateral (values ('app', f.app_id::text), ('affiliate', f.affiliate_id::text), ('link', f.link_id::text))
              s (scope, scope_id)
   cross join lateral (values ('all_time', timestamptz '-infinity', 1), ('quarter_hour', f.at, 0),
                              ('six_hours', rollup_block(f.at), 0)) b (span, bucket_at, is_total)
   where f.app_id = ${appId} and s.scope_id is not null and b.bucket_at is not null
   group by 1, 2, 3, 4, b.is_total`;

/** The sums as readers see them: the stored ones and the tail. */
const shown = (sql: Sql, appId: AppId) => sql.fragment`
  select scope, scope_id, span, bucket_at, sum(clicks) as clicks, sum(installs) as installs,
         sum(identified) as identified, sum(paid_users) as paid_users, sum(revenue_cents) as revenue_cents,
         sum(commission_cents) as commission_cents, sum(matured_cents) as matured_cents, sum(paid_cents) as paid_cents,
         sum(matured_count) as matured_count, sum(rank_value) as rank_value, min(affiliate_status) as affiliate_status
    from (select scope, scope_id, case when isfinite(bucket_at) then 'quarter_hour' else 'all_time' end as span,
                 bucket_at, clicks, installs, identified, paid_users, revenue_cents, commission_cents, matured_cents,
                 paid_cents, matured_count, rank_value, affiliate_status
            from rollups where app_id = ${appId}
          union all
          select scope, scope_id, 'six_hours', block_at, clicks, installs, identified, paid_users, revenue_cents,
                 commission_cents, 0, 0, 0, null, null
            from rollup_blocks where app_id = ${appId}
          union all
          select t.scope, t.scope_id, b.span, b.bucket_at, t.clicks, t.installs, t.identified, t.paid_users,
                 t.revenue_cents, t.commission_cents, t.matured_cents * b.is_total, t.paid_cents * b.is_total,
                 t.matured_count * b.is_total,
                 case b.is_total when 1 then case t.scope when 'link' then t.clicks
                                                          when 'affiliate' then t.commission_cents end end, null
            from rollup_tail t
           cross join lateral (values ('all_time', timestamptz '-infinity', 1), ('quarter_hour', t.bucket_at, 0),
                                      ('six_hours', rollup_block(t.bucket_at), 0)) b (span, bucket_at, is_total)
           where t.app_id = ${appId} and t.scope_id is not null and b.bucket_at is not null) x
   group by 1, 2, 3, 4`;

/** The difference between the two, and whether an affiliate's row has another status than the affiliate. */
const deltas = (sql: Sql, appId: AppId) => sql.fragment`
  select scope, scope_id, span, bucket_at, e.link_affiliate_id, a.status is distinct from s.affiliate_status as status_differs,
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
    full join (${shown(sql, appId)}) s using (scope, scope_id, span, bucket_at)
    left join affiliates a on scope = 'affiliate' and span = 'all_time' and a.id = scope_id`;

const isUnequal = (sql: Sql) => sql.fragment`
  (status_differs
   or (clicks, installs, identified, paid_users, revenue_cents, commission_cents, matured_cents, paid_cents,
       matured_count, rank_value) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0))`;

/**
 * Compares the sums with the facts, app by app, each on one snapshot, and returns the differences. Covers all apps unless
 * `only` is given.
 */
export async function findRollupDifferences(sql: Sql, only?: readonly AppId[]): Promise<RollupDifference[]> {
  const found: RollupDifference[] = [];
  for (const appId of only ?? (await listAppIds(sql))) {
    for (const difference of (await compareRollups(sql, appId, null)).first) found.push(difference);
  }
  return found;
}

/**
 * Compares the sums of one app with its facts, on one snapshot. Returns the number of differences, and the first `most` of
 * them; null for all.
 */
export async function compareRollups(
  sql: Sql,
  appId: AppId,
  most: number | null,
): Promise<{ readonly differences: number; readonly first: readonly RollupDifference[] }> {
  const rows = await sql<
    Omit<RollupDifference, 'appId' | 'differs'> & {
      statusDiffers: boolean;
      off: Record<string, number>;
      differences: number;
    }
  >`
    select scope, scope_id, span,
           case when isfinite(bucket_at) then bucket_at end as bucket_at, status_differs,
           to_jsonb(d) - '{scope,scope_id,span,bucket_at,link_affiliate_id,status_differs}'::text[]
             as off, count(*) over () as differences
      from (${deltas(sql, appId)}) d
     where ${isUnequal(sql)}
     order by scope, scope_id, span, bucket_at limit ${most}::bigint`;
  const first = rows.map(({ scope, scopeId, span, bucketAt, off, statusDiffers }) => {
    const differs = Object.entries(off)
      .filter(([, missing]) => missing !== 0)
      .map(([column, missing]) => `${column} is ${Math.abs(missing)} too ${missing > 0 ? 'low' : 'high'}`);
    if (statusDiffers) differs.push('affiliate_status differs');
    return { appId, scope, scopeId, span, bucketAt, differs };
  });
  return { differences: rows[0]?.differences ?? 0, first };
}

/**
 * Corrects the stored sums and returns the number of corrected rows. Facts that arrive meanwhile append their own deltas,
 * and a fold in between moves deltas to the stored sums without changing what both add up to, so the difference that a
 * snapshot shows stays right. Only another repair makes it wrong: the same one sent again, too.
 */
export async function repairRollups(sql: Sql): Promise<number> {
  let repaired = 0;
  for (const appId of await listAppIds(sql)) {
    repaired += await retryUntilVisible(() => repairApp(sql, appId));
  }
  return repaired;
}

/**
 * Adds the difference that the snapshot of this statement shows. Returns undefined, and corrects nothing, if another repair
 * of the app was committed after the snapshot. The parts of the statement: `known` is how many repairs the snapshot shows;
 * `turn` waits for the fold loop, so that the two do not lock each other's rows, and counts this repair; `missing` is the
 * difference; `statuses` are the affiliates' statuses of now, which are locked; `added` and `added_blocks` correct both tables.
 */
async function repairApp(sql: Sql, appId: AppId): Promise<number | undefined> {
  const { isCurrent, repaired } = await sql.one<{ isCurrent: boolean; repaired: number }>`
    with known as (
      select coalesce((select repairs from rollup_repairs where app_id = ${appId}), 0) as repairs
    ), turn as (
      insert into rollup_repairs as r (app_id, repairs)
      select ${appId}::text, 1 from (select pg_advisory_xact_lock(${lock(sql)})::text) is_mine
      on conflict (app_id) do update set repairs = r.repairs + 1
      returning repairs
    ), snapshot as materialized (
      select turn.repairs = known.repairs + 1 as is_current from turn, known
    ), missing as materialized (
      select * from (${deltas(sql, appId)}) d where (select is_current from snapshot) and ${isUnequal(sql)}
    ), statuses as materialized (
      select id, status from affiliates
       where id = any(array(select scope_id from missing where scope = 'affiliate' and span = 'all_time'))
       order by id for share
    ), added as (
      insert into rollups as r (app_id, scope, scope_id, bucket_at, clicks, installs, identified, paid_users,
                                revenue_cents, commission_cents, matured_cents, paid_cents, matured_count,
                                rank_value, link_affiliate_id, affiliate_status)
      select ${appId}::text, scope, scope_id, bucket_at, clicks, installs, identified, paid_users, revenue_cents,
             commission_cents, matured_cents, paid_cents, matured_count,
             case when scope <> 'app' and span = 'all_time' then rank_value end, link_affiliate_id,
             case when scope = 'affiliate' and span = 'all_time' then (select s.status from statuses s where s.id = scope_id) end
        from missing where span <> 'six_hours'
       order by scope, scope_id, bucket_at
      on conflict (app_id, scope, scope_id, bucket_at) do update set
        ${addExcluded(sql)}, matured_cents = r.matured_cents + excluded.matured_cents,
        paid_cents = r.paid_cents + excluded.paid_cents, matured_count = r.matured_count + excluded.matured_count,
        rank_value = case when excluded.rank_value is null then r.rank_value
                          else coalesce(r.rank_value, 0) + excluded.rank_value end,
        link_affiliate_id = coalesce(excluded.link_affiliate_id, r.link_affiliate_id),
        affiliate_status = coalesce(excluded.affiliate_status, r.affiliate_status)
      returning 1
    ), added_blocks as (
      insert into rollup_blocks as r (app_id, scope, scope_id, block_at, clicks, installs, identified, paid_users,
                                      revenue_cents, commission_cents)
      select ${appId}::text, scope, scope_id, bucket_at, clicks, installs, identified, paid_users, revenue_cents,
             commission_cents
        from missing where span = 'six_hours'
       order by scope, scope_id, bucket_at
      on conflict (app_id, scope, scope_id, block_at) do update set ${addExcluded(sql)}
      returning 1
    )
    select (select is_current from snapshot) as is_current,
           (select count(*) from added) + (select count(*) from added_blocks) as repaired`;
  return isCurrent ? repaired : undefined;
}
