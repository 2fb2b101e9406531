import type { RefundFacts } from '../domain/alerts.ts';
import { LEAST_PAYMENTS } from '../domain/alerts.ts';
import type { AppId } from '../domain/ids.ts';
import { DAY_MS } from '../domain/time.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Refunds that one statement folds at most. */
const FOLD_LIMIT = 2_000;

/**
 * Adds the oldest refunds that are not folded to the sums of their days and deletes them, in one statement. Returns how many. Two at the
 * same time take different ones.
 */
export async function foldRefunds(sql: Sql, limit = FOLD_LIMIT): Promise<number> {
  const { count } = await sql.one<{ count: number }>`
    with page as materialized (
      select payment_id, position from refund_deltas order by created_at, payment_id, position limit ${limit} for update skip locked
    ), taken as (
      delete from refund_deltas d using page p where d.payment_id = p.payment_id and d.position = p.position
      returning d.app_id, d.day, d.amount_cents
    ), folded as (
      insert into refund_days as r (app_id, day, refunded_cents)
      select app_id, day, sum(amount_cents) from taken group by 1, 2 order by 1, 2
      on conflict (app_id, day) do update set refunded_cents = r.refunded_cents + excluded.refunded_cents
    )
    select count(*)::int as count from taken`;
  return count;
}

/** Refunds and revenue of an app. Amounts are in US cents. */
type OfApp = RefundFacts & { readonly appId: AppId };

/**
 * Returns what apps took and gave back in the last 7 and 28 days (UTC), the day of `now` among them. Reads at most 28 days, 112 sums of six
 * hours and the first commissions of an app, and what is not folded yet.
 */
export async function loadRefunds(sql: Sql, appIds: readonly AppId[], now: number): Promise<OfApp[]> {
  const tomorrow = Math.floor(now / DAY_MS) * DAY_MS + DAY_MS;
  const weekFrom = instant(tomorrow - 7 * DAY_MS);
  const monthFrom = instant(tomorrow - 28 * DAY_MS);
  const to = instant(tomorrow);
  const weekDay = sql.fragment`(${weekFrom}::timestamptz at time zone 'UTC')::date`;
  const monthDay = sql.fragment`(${monthFrom}::timestamptz at time zone 'UTC')::date`;
  const lastDay = sql.fragment`(${to}::timestamptz at time zone 'UTC')::date`;
  return await sql<OfApp>`
    select a.app_id, refunded.week::float8 as week_refunded_cents, refunded.month::float8 as month_refunded_cents,
           (refunded.week + net.week)::float8 as week_gross_cents, (refunded.month + net.month)::float8 as month_gross_cents,
           case when refunded.week > 0 then
             (select count(*)::int from (select from commissions c
                                          where c.app_id = a.app_id and c.occurred_at >= ${weekFrom}::timestamptz and c.kind = 'earning'
                                          order by c.occurred_at desc limit ${LEAST_PAYMENTS}) n)
           else 0 end as week_payments
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (
       select coalesce(sum(cents) filter (where day >= ${weekDay}), 0) as week, coalesce(sum(cents), 0) as month
         from (select day, refunded_cents as cents from refund_days d
                where d.app_id = a.app_id and d.day >= ${monthDay} and d.day < ${lastDay}
               union all
               select day, amount_cents from refund_deltas t
                where t.app_id = a.app_id and t.day >= ${monthDay} and t.day < ${lastDay}) r) refunded
     cross join lateral (
       select coalesce(sum(cents) filter (where at >= ${weekFrom}::timestamptz), 0) as week, coalesce(sum(cents), 0) as month
         from (select block_at as at, revenue_cents as cents from rollup_blocks b
                where refunded.month > 0 and b.app_id = a.app_id and b.scope = 'app' and b.scope_id = a.app_id
                  and b.block_at >= ${monthFrom}::timestamptz and b.block_at < ${to}::timestamptz
               union all
               select bucket_at, revenue_cents from rollup_deltas t
                where refunded.month > 0 and t.app_id = a.app_id
                  and t.bucket_at >= ${monthFrom}::timestamptz and t.bucket_at < ${to}::timestamptz) n) net`;
}
