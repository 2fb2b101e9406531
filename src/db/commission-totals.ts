import type { AffiliateId, AppId, LinkId, PayoutId } from '../domain/ids.ts';
import { LAST_INSTANT } from '../domain/time.ts';
import { sumCommissions } from './commissions.ts';
import type { CommissionFilter, CommissionStatus } from './commissions.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';
import { rollupScope } from './timeseries.ts';

export interface TotalsFilter {
  readonly affiliateId: AffiliateId | null;
  readonly linkId: LinkId | null;
  /** Epoch ms. The purchase is in `from ≤ t < to`. Null is the beginning or the end. */
  readonly from: number | null;
  readonly to: number | null;
}

/** The sum of the commissions of all time. */
function sumOfAllTime(sql: Sql, appId: AppId, filter: TotalsFilter): Fragment {
  const { scope, scopeId } = rollupScope(sql, appId, filter);
  return sql.fragment`
    with key as materialized (select ${scopeId} as scope_id)
    select coalesce(t.cents, 0)::bigint as cents
      from key
     cross join lateral (select sum(commission_cents) as cents from rollup_totals
                          where app_id = ${appId} and scope = ${scope} and scope_id = key.scope_id) t`;
}

/**
 * The sum of the commissions in `from ≤ t < to`, to the cent. It adds the rows of the two quarter hours that the
 * range cuts, the sums of whole quarter hours, those of whole blocks of six hours, and the tail: at most 32 rows for each
 * day, and the deltas that are not folded yet.
 *
 * The parts of the statement: `key` is whose sums are read, `span` the range, `quarters` its whole quarter hours, and
 * `parts` their split into quarter hours, blocks and quarter hours.
 */
function sumWithin(sql: Sql, appId: AppId, filter: TotalsFilter, from: number, to: number): Fragment {
  const { affiliateId, linkId } = filter;
  const { scope, scopeId } = rollupScope(sql, appId, filter);
  const selected = sql.fragment`
    ${affiliateId === null ? sql.fragment`` : sql.fragment`and c.affiliate_id = ${affiliateId}`}
    ${linkId === null ? sql.fragment`` : sql.fragment`and c.link_id = ${linkId}`}`;
  return sql.fragment`
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
}

/** Returns the sum of the commissions that the filter selects, of one snapshot: earnings net of reversals and corrections, US cents. */
export async function readCommissionTotal(sql: Sql, appId: AppId, filter: TotalsFilter): Promise<number> {
  const { from, to } = filter;
  const within = (start: number, end: number) => sumWithin(sql, appId, filter, start, end);
  const everything = () => sumOfAllTime(sql, appId, filter);
  const sum =
    from !== null && from > 0
      ? within(from, to ?? LAST_INSTANT)
      : to === null
        ? everything()
        : sql.fragment`select ((${everything()}) - (${within(to, LAST_INSTANT)}))::bigint as cents`;
  const { cents } = await sql.one<{ cents: number }>`${sum}`;
  return cents;
}

/** Returns the sum of the commissions of a status, of an app or an affiliate. */
async function sumOfStatus(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId | null,
  status: CommissionStatus,
): Promise<number> {
  const { scope, scopeId } = rollupScope(sql, appId, { affiliateId, linkId: null });
  const sums = {
    pending: sql.fragment`commission_cents - matured_cents - paid_cents`,
    matured: sql.fragment`matured_cents`,
    paid: sql.fragment`paid_cents`,
  };
  const { cents } = await sql.one<{ cents: number }>`
    with key as materialized (select ${scopeId} as scope_id)
    select coalesce(t.cents, 0)::bigint as cents
      from key
     cross join lateral (select sum(${sums[status]}) as cents from rollup_totals
                          where app_id = ${appId} and scope = ${scope} and scope_id = key.scope_id) t`;
  return cents;
}

/** Returns the total of a payout. 0 for an unknown one and for one of another app. */
async function totalOfPayout(sql: Sql, appId: AppId, payoutId: PayoutId): Promise<number> {
  const payout = await sql.maybe<{ totalCents: number }>`
    select total_cents from payouts where app_id = ${appId} and id = ${payoutId}`;
  return payout?.totalCents ?? 0;
}

/**
 * Returns the sum of the commissions that any filter selects: a stored one by affiliate, link and time, by affiliate and status, and by
 * payout, else that of the rows. Undefined where there is no stored one and too many rows would be read.
 */
export async function readFilteredTotal(
  sql: Sql,
  appId: AppId,
  filter: CommissionFilter,
): Promise<number | undefined> {
  const { affiliateId, status, payoutId } = filter;
  const given = new Set(Object.entries(filter).flatMap(([name, value]) => (value === null ? [] : [name])));
  const isOnly = (...names: readonly (keyof CommissionFilter)[]) =>
    [...given].every((name) => names.some((one) => one === name));
  if (isOnly('affiliateId', 'linkId', 'from', 'to')) return await readCommissionTotal(sql, appId, filter);
  if (status !== null && isOnly('affiliateId', 'status'))
    return await sumOfStatus(sql, appId, affiliateId, status);
  if (payoutId !== null && isOnly('payoutId')) return await totalOfPayout(sql, appId, payoutId);
  return await sumCommissions(sql, appId, filter);
}
