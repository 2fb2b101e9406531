import type { AffiliateId, AppId } from '../domain/ids.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

/** Funnel counts of all time. */
export interface Funnel {
  readonly clicks: number;
  readonly installs: number;
  readonly identified: number;
  /** Users with at least one attributed payment. */
  readonly paidUsers: number;
}

/** Commissions net of reversals, in US cents. `lifetimeCents` is the sum of the other three. */
export interface EarningTotals {
  readonly pendingCents: number;
  readonly maturedCents: number;
  readonly paidCents: number;
  readonly lifetimeCents: number;
}

export interface AppTotals extends Funnel, EarningTotals {
  /** Attributed production revenue net of refunds. */
  readonly revenueCents: number;
}

/**
 * Sums of cents are `float8`: exact up to 2^53, and never an error beyond. `due` are the cents that are due and not marked so yet.
 */
const sums = (sql: Sql, due: Fragment) => sql.fragment`
  coalesce(t.clicks, 0) as clicks, coalesce(t.installs, 0) as installs, coalesce(t.identified, 0) as identified,
  coalesce(t.paid_users, 0) as paid_users, coalesce(t.revenue_cents, 0)::float8 as revenue_cents,
  coalesce(t.commission_cents - t.matured_cents - t.paid_cents - ${due}, 0)::float8 as pending_cents,
  coalesce(t.matured_cents + ${due}, 0)::float8 as matured_cents, coalesce(t.paid_cents, 0)::float8 as paid_cents,
  coalesce(t.commission_cents, 0)::float8 as lifetime_cents`;

/** The all-time sums of an app or an affiliate. */
const allTime = (sql: Sql, appId: AppId, scope: 'app' | 'affiliate', scopeId: string) => sql.fragment`
  (select sum(clicks)::bigint as clicks, sum(installs)::bigint as installs, sum(identified)::bigint as identified,
          sum(paid_users)::bigint as paid_users, sum(revenue_cents)::bigint as revenue_cents,
          sum(commission_cents)::bigint as commission_cents, sum(matured_cents)::bigint as matured_cents,
          sum(paid_cents)::bigint as paid_cents
     from rollup_totals
    where app_id = ${appId} and scope = ${scope} and scope_id = ${scopeId}) t`;

/** Returns an app's sums of all time, from one snapshot. What is due at `asOf` is matured, as it is in the sums of each affiliate. */
export async function readAppTotals(sql: Sql, appId: AppId, asOf: number): Promise<AppTotals> {
  return await sql.one<AppTotals>`
    select ${sums(sql, sql.fragment`due.cents`)}
      from ${allTime(sql, appId, 'app', appId)}
     cross join (
       select coalesce(sum(c.amount_cents), 0)::bigint as cents from commissions c
        where c.app_id = ${appId} and c.status = 'pending' and c.due_at <= ${instant(asOf)}) due`;
}

export interface AffiliateTotals extends Funnel, EarningTotals {
  /** The earliest due date of an unpaid earning or bonus, also of one that is due. Null when there is none. */
  readonly nextPayoutAt: number | null;
  /** The net of an export at `asOf` if it is negative, otherwise 0. It reduces the next payout. */
  readonly carriedBalanceCents: number;
}

/**
 * Returns an affiliate's sums of all time, its next due date and its negative balance, from one snapshot. Undefined
 * when the app has no such affiliate.
 */
export async function readAffiliateTotals(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
  asOf: number,
): Promise<AffiliateTotals | undefined> {
  return await sql.maybe<AffiliateTotals>`
    select ${sums(sql, sql.fragment`due.cents`)},
           (select c.due_at from commissions c
             where c.app_id = ${appId} and c.affiliate_id = a.id and c.status <> 'paid' and c.amount_cents > 0
             order by c.due_at limit 1) as next_payout_at,
           least(coalesce(t.matured_cents, 0) + due.cents, 0)::float8 as carried_balance_cents
      from affiliates a
     cross join ${allTime(sql, appId, 'affiliate', affiliateId)}
     cross join (
       select coalesce(sum(c.amount_cents), 0)::bigint as cents from commissions c
        where c.app_id = ${appId} and c.affiliate_id = ${affiliateId} and c.status = 'pending' and c.due_at <= ${instant(asOf)}) due
     where a.app_id = ${appId} and a.id = ${affiliateId}`;
}

/** When the commissions of an affiliate that are held become due. Null if none is held. */
export interface HeldDates {
  /** The earliest due date at which the net of them is positive: a refunded earning and its reversal are due together. Null also without one. */
  readonly nextDueAt: number | null;
  /** The net of what becomes due then. US cents. */
  readonly nextDueCents: number | null;
  /** The latest due date. */
  readonly heldUntil: number | null;
}

/** Returns when the commissions of an affiliate that are held at `asOf` become due. */
export async function readHeldDates(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
  asOf: number,
): Promise<HeldDates> {
  const held = sql.fragment`
    from commissions c
   where c.app_id = ${appId} and c.affiliate_id = ${affiliateId} and c.status = 'pending' and c.due_at > ${instant(asOf)}`;
  return await sql.one<HeldDates>`
    select n.due_at as next_due_at, n.cents as next_due_cents,
           (select c.due_at ${held} order by c.due_at desc limit 1) as held_until
      from (select) as one
      left join (select c.due_at, sum(c.amount_cents)::float8 as cents ${held}
                  group by c.due_at having sum(c.amount_cents) > 0 order by c.due_at limit 1) n on true`;
}

/**
 * Returns the net of what an affiliate holds at `asOf` and becomes due before a date, such as `2026-11-15`, has begun in a time zone, US cents,
 * and when it begins there, epoch ms.
 */
export async function readDueBefore(
  sql: Sql,
  { appId, affiliateId }: { readonly appId: AppId; readonly affiliateId: AffiliateId },
  { date, timezone }: { readonly date: string; readonly timezone: string },
  asOf: number,
): Promise<{ readonly cents: number; readonly beginsAt: number }> {
  return await sql.one<{ cents: number; beginsAt: number }>`
    select coalesce(sum(c.amount_cents), 0)::float8 as cents, min(epoch_ms(day.begin)) as begins_at
      from (select (${date}::text::date)::timestamp at time zone ${timezone}::text) day (begin)
      left join commissions c
        on c.app_id = ${appId} and c.affiliate_id = ${affiliateId} and c.status = 'pending' and c.due_at > ${instant(asOf)}
       and c.due_at <= day.begin`;
}
