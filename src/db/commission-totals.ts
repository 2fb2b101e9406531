import type { AffiliateId, AppId, LinkId } from '../domain/ids.ts';
import { LAST_INSTANT } from '../domain/time.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';
import { rollupScope } from './timeseries.ts';

export interface TotalsFilter {
  readonly affiliateId: AffiliateId | null;
  readonly linkId: LinkId | null;
  /** Epoch ms. The purchase is in `from ≤ t < to`. Null is the beginning or the end. */
  readonly from: number | null;
  readonly to: number | null;
}

/** Returns the sum of the commissions of all time. */
async function sumOfAllTime(sql: Sql, appId: AppId, filter: TotalsFilter): Promise<number> {
  const { scope, scopeId } = rollupScope(sql, appId, filter);
  const { cents } = await sql.one<{ cents: number }>`
    with key as materialized (select ${scopeId} as scope_id)
    select coalesce(t.cents, 0)::bigint as cents
      from key
     cross join lateral (select sum(commission_cents) as cents from rollup_totals
                          where app_id = ${appId} and scope = ${scope} and scope_id = key.scope_id) t`;
  return cents;
}

/**
 * Returns the sum of the commissions in `from ≤ t < to`, to the cent. It adds the rows of the two quarter hours that the
 * range cuts, the sums of whole quarter hours, those of whole blocks of six hours, and the tail: at most 32 rows for each
 * day, and the deltas that are not folded yet.
 *
 * The parts of the statement: `key` is whose sums are read, `span` the range, `quarters` its whole quarter hours, and
 * `parts` their split into quarter hours, blocks and quarter hours.
 */
async function sumWithin(
  sql: Sql,
  appId: AppId,
  filter: TotalsFilter,
  from: number,
  to: number,
): Promise<number> {
  const { affiliateId, linkId } = filter;
  const { scope, scopeId } = rollupScope(sql, appId, filter);
  const selected = sql.fragment`
    ${affiliateId === null ? sql.fragment`` : sql.fragment`and c.affiliate_id = ${affiliateId}`}
    ${linkId === null ? sql.fragment`` : sql.fragment`and c.link_id = ${linkId}`}`;
  const { cents } = await sql.one<{ cents: number }>`
    with key as materialized (select ${scopeId} as scope_id),
    span as (select ${instant(from)}::timestamptz as starts_at, ${instant(to)}::timestamptz as ends_at),
    first_quarter as (
      select s.*, least(rollup_bucket(starts_at + interval '15 minutes' - interval '1 microsecond'), ends_at) as quarters_from
        from span s
    ), quarters as (
      select q.*, greatest(quarters_from, rollup_bucket(ends_at)) as quarters_to from first_quarter q
    ), blocks as (
      select q.*, rollup_block(quarters_from + interval '6 hours' - interval '1 microsecond') as first_at,
             rollup_block(quarters_to) as last_at
        from quarters q
    ), parts as materialized (
      select b.*, case when first_at < last_at then first_at else quarters_to end as blocks_from,
             case when first_at < last_at then last_at else quarters_to end as blocks_to
        from blocks b
    )
    select coalesce(sum(x.cents), 0)::bigint as cents
      from parts p
     cross join key
     cross join lateral (
       select c.amount_cents as cents from commissions c
        where c.app_id = ${appId} ${selected} and c.occurred_at >= p.starts_at and c.occurred_at < p.quarters_from
       union all
       select r.commission_cents from rollups r
        where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = key.scope_id
          and r.bucket_at >= p.quarters_from and r.bucket_at < p.blocks_from
       union all
       select b.commission_cents from rollup_blocks b
        where b.app_id = ${appId} and b.scope = ${scope} and b.scope_id = key.scope_id
          and b.block_at >= p.blocks_from and b.block_at < p.blocks_to
       union all
       select r.commission_cents from rollups r
        where r.app_id = ${appId} and r.scope = ${scope} and r.scope_id = key.scope_id
          and r.bucket_at >= p.blocks_to and r.bucket_at < p.quarters_to
       union all
       select t.commission_cents from rollup_tail t
        where t.app_id = ${appId} and t.scope = ${scope} and t.scope_id = key.scope_id
          and t.bucket_at >= p.quarters_from and t.bucket_at < p.quarters_to
       union all
       select c.amount_cents from commissions c
        where c.app_id = ${appId} ${selected} and c.occurred_at >= p.quarters_to and c.occurred_at < p.ends_at) x`;
  return cents;
}

/** Returns the sum of the commissions that the filter selects: earnings net of reversals and corrections, US cents. */
export async function readCommissionTotal(sql: Sql, appId: AppId, filter: TotalsFilter): Promise<number> {
  const { from, to } = filter;
  if (from !== null && from > 0) return await sumWithin(sql, appId, filter, from, to ?? LAST_INSTANT);
  const everything = await sumOfAllTime(sql, appId, filter);
  return to === null ? everything : everything - (await sumWithin(sql, appId, filter, to, LAST_INSTANT));
}
