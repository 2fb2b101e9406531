import type { AffiliateId, AppId, LinkId } from '../domain/ids.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** What leaders are ordered by. */
export const LEADER_MEASURES = ['commissions', 'revenue', 'clicks', 'installs', 'paid'] as const;
export type LeaderMeasure = (typeof LEADER_MEASURES)[number];

/** Whose sums are compared. */
export const LEADER_KINDS = ['affiliate', 'link'] as const;
export type LeaderKind = (typeof LEADER_KINDS)[number];

/** Number of leaders that are returned at most. */
export const MOST_LEADERS = 10;
/** Number of sums of six hours that are read at most to find those that were active: the latest ones of the range. */
const EXAMINED_BLOCKS = 4_000;
/** In a range with more sums than those: the number of active ones, and of those with most of all time, that are compared. */
const COMPARED = 50;

export interface Leader {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  /** Both are null for an affiliate. */
  readonly linkId: LinkId | null;
  readonly slug: string | null;
  readonly clicks: number;
  readonly installs: number;
  readonly identified: number;
  readonly paidUsers: number;
  readonly revenueCents: number;
  readonly commissionCents: number;
}

export interface Leaders {
  readonly rows: readonly Leader[];
  /** Whether all were compared. Otherwise the order may miss one. The sums of the rows are exact in any case. */
  readonly isComplete: boolean;
}

/** Returns the column of a measure. */
function columnOf(sql: Sql, measure: LeaderMeasure) {
  switch (measure) {
    case 'commissions':
      return sql.fragment`commission_cents`;
    case 'revenue':
      return sql.fragment`revenue_cents`;
    case 'clicks':
      return sql.fragment`clicks`;
    case 'installs':
      return sql.fragment`installs`;
    case 'paid':
      return sql.fragment`paid_users`;
  }
}

/** Joins a leader with its names, by one index lookup for each row. */
function namesOf(sql: Sql, by: LeaderKind) {
  return by === 'affiliate'
    ? sql.fragment`
      select t.*, a.id as affiliate_id, a.name as affiliate_name, null::text as link_id, null::text as slug
        from top t cross join lateral (select * from affiliates a where a.id = t.scope_id offset 0) a`
    : sql.fragment`
      select t.*, a.id as affiliate_id, a.name as affiliate_name, l.id::text as link_id, l.slug
        from top t cross join lateral (select * from links l where l.id = t.scope_id offset 0) l
       cross join lateral (select * from affiliates a where a.id = l.affiliate_id offset 0) a`;
}

/**
 * Returns the affiliates or links with the most of a measure in `from ≤ t < to`, the first one first, without those that have
 * none. A quarter hour counts completely if it begins in the range.
 *
 * The sums of a range exist per affiliate and link only, so candidates are chosen first. All that were active are compared
 * while the range has fewer than 4,000 sums of six hours. A longer range of a larger app would cost more the more creators
 * it has: then only those that were most active in the latest 4,000 of these sums, and those with most of all time, are
 * compared. One that was active only early in the range may be missing, and `isComplete` is false.
 *
 * The parts of the statement: `parts` is the split of the range into quarter hours and blocks as in `readTimeseries`, `recent`
 * and `tail` are what was active, `active` and `ranked` the candidates, `sums` what is stored of each candidate and its tail.
 */
export async function readLeaders(
  sql: Sql,
  appId: AppId,
  request: {
    readonly by: LeaderKind;
    readonly measure: LeaderMeasure;
    readonly from: number;
    readonly to: number;
  },
  { compared = COMPARED, examined = EXAMINED_BLOCKS } = {},
): Promise<Leaders> {
  const from = sql.fragment`${instant(request.from)}::timestamptz`;
  const to = sql.fragment`${instant(request.to)}::timestamptz`;
  // A literal, so that Postgres plans for this scope alone.
  const scope = request.by === 'affiliate' ? sql.fragment`'affiliate'` : sql.fragment`'link'`;
  const measure = columnOf(sql, request.measure);
  const rows = await sql<{ [K in keyof Leader]: Leader[K] | null } & { readonly isComplete: boolean }>`
    with blocks as (
      select rollup_block(${from} + interval '6 hours' - interval '1 microsecond') as first_at, rollup_block(${to}) as last_at
    ), parts as materialized (
      select case when first_at < last_at then first_at else ${to} end as blocks_from,
             case when first_at < last_at then last_at else ${to} end as blocks_to
        from blocks
    ), recent as materialized (
      select scope_id, ${measure} as value from rollup_blocks
       where app_id = ${appId} and scope = ${scope} and block_at >= rollup_block(${from}) and block_at < ${to}
       order by block_at desc, scope_id limit ${examined}
    ), tail as (
      select scope_id, ${measure} as value from rollup_tail
       where app_id = ${appId} and scope = ${scope} and scope_id is not null and bucket_at >= ${from} and bucket_at < ${to}
    ), active as materialized (
      select scope_id, sum(value) as value
        from (select scope_id, value from recent union all select scope_id, value from tail) x group by scope_id
    ), state as materialized (
      select (select count(*) from recent) < ${examined}::bigint as is_examined
    ), ranked as materialized (
      select scope_id from rollups
       where app_id = ${appId} and scope = ${scope} and bucket_at = '-infinity'
       order by rank_value desc, scope_id limit ${compared}
    ), candidates as materialized (
      (select scope_id from active order by value desc, scope_id
        limit (select case when is_examined then null else ${compared}::bigint end from state))
      union select scope_id from ranked
    ), sums as (
      select c.scope_id, x.*
        from candidates c cross join parts p
       cross join lateral (
         select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollups r
          where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = c.scope_id
            and r.bucket_at >= ${from} and r.bucket_at < p.blocks_from
         union all
         select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollup_blocks b
          where b.app_id = ${appId} and b.scope = ${scope} and b.scope_id = c.scope_id
            and b.block_at >= p.blocks_from and b.block_at < p.blocks_to
         union all
         select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollups r
          where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = c.scope_id
            and r.bucket_at >= p.blocks_to and r.bucket_at < ${to}
         union all
         select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollup_tail t
          where t.app_id = ${appId} and t.scope = ${scope} and t.scope_id = c.scope_id
            and t.bucket_at >= ${from} and t.bucket_at < ${to}) x
    ), top as (
      select scope_id, sum(clicks) as clicks, sum(installs) as installs, sum(identified) as identified,
             sum(paid_users) as paid_users, sum(revenue_cents) as revenue_cents, sum(commission_cents) as commission_cents,
             sum(${measure}) as value
        from sums group by scope_id having sum(${measure}) > 0
       order by value desc, scope_id limit ${MOST_LEADERS}
    )
    select s.is_examined or ((select count(*) from active) <= ${compared}::bigint
                             and (select count(*) from ranked) < ${compared}::bigint) as is_complete,
           n.affiliate_id, n.affiliate_name, n.link_id, n.slug, n.clicks::bigint as clicks, n.installs::bigint as installs, n.identified::bigint as identified, n.paid_users::bigint as paid_users,
           n.revenue_cents::float8 as revenue_cents, n.commission_cents::float8 as commission_cents
      from state s left join (${namesOf(sql, request.by)}) n on true
     order by n.value desc, n.scope_id`;
  return {
    rows: rows.filter(({ affiliateId }) => affiliateId !== null) as Leader[],
    isComplete: rows.every(({ isComplete }) => isComplete),
  };
}
