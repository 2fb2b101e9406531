import type { AppId } from '../domain/ids.ts';
import type { TimeseriesInterval } from '../domain/timeseries.ts';
import { isRefusedValue } from './errors.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export interface TimeseriesPoint {
  /** Start of the point's hour, day, week or month in its time zone, epoch ms. */
  readonly at: number;
  readonly clicks: number;
  readonly installs: number;
  readonly identified: number;
  readonly paidUsers: number;
  readonly revenueCents: number;
  readonly commissionCents: number;
}

export interface TimeseriesRequest {
  /** Epoch ms. `from` is included, `to` is not; `from` is before `to`. */
  readonly from: number;
  readonly to: number;
  readonly interval: TimeseriesInterval;
  /** A name in the time zone database that Postgres does not read as an abbreviation. */
  readonly timezone: string;
  /** Null for the whole app. An unknown id selects nothing, whatever its format. */
  readonly affiliateId: string | null;
  /** With an affiliate as well: selects nothing unless it is a link of that affiliate. */
  readonly linkId: string | null;
}

/**
 * The instants at which hours of a wall clock begin: at each full hour, and where the clock was put forward past one.
 * An hour that occurs twice counts as two. Half an hour that occurs twice makes its hour longer.
 */
const hourStarts = (sql: Sql, { from, to, timezone }: TimeseriesRequest) => sql.fragment`
  select q as at
    from generate_series(rollup_bucket(${instant(from)}::timestamptz) - interval '2 hours',
                         ${instant(to)}::timestamptz + interval '2 hours', interval '15 minutes') q
   where extract(minute from q at time zone ${timezone}::text) = 0
      or date_trunc('hour', q at time zone ${timezone}::text)
         > date_trunc('hour', (q - interval '15 minutes') at time zone ${timezone}::text)`;

/**
 * The instants at which days, weeks (on Mondays) or months of a wall clock begin: the first instant with that date. If
 * midnight was skipped, that is after it; if midnight occurs twice, the first one. A day that was skipped entirely
 * begins together with the next one.
 */
const dateStarts = (sql: Sql, { from, to, interval, timezone }: TimeseriesRequest) => sql.fragment`
  select distinct start.at
    from generate_series(date_trunc(${interval}::text, ${instant(from)}::timestamptz at time zone ${timezone}::text),
                         (${instant(to)}::timestamptz at time zone ${timezone}::text) + 2 * ${`1 ${interval}`}::interval,
                         ${`1 ${interval}`}::interval) d
   cross join lateral (
     select min(c.at) as at
       from (select (d at time zone ${timezone}::text) - k * interval '30 minutes' as at from generate_series(0, 4) k) c
      where c.at at time zone ${timezone}::text >= d) start`;

/**
 * The scope whose sums are read, and an expression of its id, which is null for a link of another affiliate. The scope is a
 * literal, so that Postgres plans for the tail of this scope alone.
 */
export function rollupScope(
  sql: Sql,
  appId: AppId,
  { affiliateId, linkId }: Pick<TimeseriesRequest, 'affiliateId' | 'linkId'>,
) {
  if (linkId !== null && affiliateId !== null) {
    return {
      scope: sql.fragment`'link'`,
      scopeId: sql.fragment`(
      -- By id alone: an index of the affiliate's links would be read from its beginning.
      select l.id::text from (select * from links where id = ${linkId} offset 0) l
       where l.app_id = ${appId} and l.affiliate_id = ${affiliateId})`,
    };
  }
  if (linkId !== null) return { scope: sql.fragment`'link'`, scopeId: sql.fragment`${linkId}::text` };
  if (affiliateId !== null)
    return { scope: sql.fragment`'affiliate'`, scopeId: sql.fragment`${affiliateId}::text` };
  return { scope: sql.fragment`'app'`, scopeId: sql.fragment`${appId}::text` };
}

/**
 * Returns the sums of each hour, day, week or month of a time zone that overlaps `from ≤ t < to`, with zeros for empty
 * ones. A quarter hour counts completely if it begins in `from ≤ t < to`, so nothing before `from` counts, and adjacent
 * spans share nothing. Each point adds whole blocks of six hours, the quarter hours at its ends, fewer than 170 rows however
 * old or busy the span, and its part of the tail. Returns undefined for a time zone that Postgres does not know.
 *
 * Offsets of time zones are multiples of 15 minutes. Where one was not (Liberia until 1972), a quarter hour counts
 * where it begins.
 *
 * The parts of the statement: `key` is whose sums are read, `starts` are the starts of the points, `spans` and `ends`
 * their limits, `blocks` and `parts` the split of each point into quarter hours and blocks, `sums` what is stored of each
 * point and each delta of the tail, whose point is found by binary search.
 */
export async function readTimeseries(
  sql: Sql,
  appId: AppId,
  request: TimeseriesRequest,
): Promise<TimeseriesPoint[] | undefined> {
  const from = instant(request.from);
  const to = instant(request.to);
  const { scope, scopeId } = rollupScope(sql, appId, request);
  try {
    return await sql<TimeseriesPoint>`
      with key as materialized (select ${scopeId} as scope_id),
      starts as (${request.interval === 'hour' ? hourStarts(sql, request) : dateStarts(sql, request)}),
      spans as (select at, lead(at) over (order by at) as until from starts),
      ends as (
        select at, greatest(at, ${from}::timestamptz) as starts_at, least(until, ${to}::timestamptz) as ends_at
          from spans where until > ${from}::timestamptz and at < ${to}::timestamptz
      ), blocks as (
        select at, starts_at, ends_at, rollup_block(starts_at + interval '6 hours' - interval '1 microsecond') as first_at,
               rollup_block(ends_at) as last_at
          from ends
      ), parts as materialized (
        -- Quarter hours up to the first whole block, blocks, quarter hours after the last block. Without a whole block,
        -- the first part covers the point.
        select at, starts_at, ends_at, case when first_at < last_at then first_at else ends_at end as blocks_from,
               case when first_at < last_at then last_at else ends_at end as blocks_to
          from blocks
      ), starts_of_points as materialized (
        select array_agg(at order by at) as at, array_agg(starts_at order by at) as starts_at from parts
      ), sums as (
        select p.at, x.*
          from parts p
         cross join key
          left join lateral (
            select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollups r
             where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = key.scope_id
               and r.bucket_at >= p.starts_at and r.bucket_at < p.blocks_from
            union all
            select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollup_blocks b
             where b.app_id = ${appId} and b.scope = ${scope} and b.scope_id = key.scope_id
               and b.block_at >= p.blocks_from and b.block_at < p.blocks_to
            union all
            select clicks, installs, identified, paid_users, revenue_cents, commission_cents from rollups r
             where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = key.scope_id
               and r.bucket_at >= p.blocks_to and r.bucket_at < p.ends_at) x on true
        union all
        select s.at[width_bucket(t.bucket_at, s.starts_at)], t.clicks, t.installs, t.identified, t.paid_users,
               t.revenue_cents, t.commission_cents
          from key cross join starts_of_points s cross join rollup_tail t
         where t.app_id = ${appId} and t.scope = ${scope} and t.scope_id = key.scope_id
           and t.bucket_at >= ${from}::timestamptz and t.bucket_at < ${to}::timestamptz
      )
      select at, coalesce(sum(clicks), 0)::bigint as clicks, coalesce(sum(installs), 0)::bigint as installs,
             coalesce(sum(identified), 0)::bigint as identified, coalesce(sum(paid_users), 0)::bigint as paid_users,
             coalesce(sum(revenue_cents), 0)::float8 as revenue_cents,
             coalesce(sum(commission_cents), 0)::float8 as commission_cents
        from sums group by at
       order by at`;
  } catch (error) {
    if (isRefusedValue(error)) return undefined;
    throw error;
  }
}
