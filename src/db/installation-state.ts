import type { AccountId, AppId, DeliveryId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { eventsWithoutRate } from './rates.ts';
import type { Sql } from './sql.ts';

/** An account in the operator's list. */
export interface ListedAccount {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: number;
  /** Number of its apps, counted up to `MOST_APPS`. */
  readonly apps: number;
  /** Null if nobody has signed in within the longest duration of a session: ended ones are deleted. */
  readonly lastSignInAt: number | null;
}

/** Upper bound of the number of apps in a list of accounts. */
export const MOST_APPS = 100;

/** Returns a page of all accounts, the latest first. */
export async function listAccountPage(
  sql: Sql,
  after: Position<number> | null,
  limit: number,
): Promise<Page<ListedAccount, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`where (created_at, id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<ListedAccount & Position<number>>`
    select a.id, a.name, a.created_at, n.apps, s.created_at as last_sign_in_at,
           (extract(epoch from a.created_at) * 1000000)::bigint as sort_key
      from (select * from accounts ${from} order by created_at desc, id desc limit ${limit + 1}) a
     cross join lateral (
       select count(*)::int as apps from (select from apps x where x.account_id = a.id limit ${MOST_APPS}) x) n
      left join lateral (
       select x.created_at from sessions x where x.account_id = a.id order by x.created_at desc, x.id desc limit 1) s on true
     order by a.created_at desc, a.id desc`;
  return pageOf(rows, limit);
}

/** Returns whether an account exists. */
export async function accountExists(sql: Sql, id: AccountId): Promise<boolean> {
  return (await sql.maybe`select id from accounts where id = ${id}`) !== undefined;
}

/** An accepted delivery without an outcome, of which a step has failed. */
export interface StuckDelivery {
  readonly id: DeliveryId;
  readonly appId: AppId;
  readonly accountId: AccountId;
  readonly source: ProviderName;
  readonly receivedAt: number;
  /** Why the step failed last. Says nothing about a customer. */
  readonly lastError: string;
}

/** Number of unfinished deliveries that are searched for stuck ones. */
const UNFINISHED_EXAMINED = 2_000;

/** Returns stuck deliveries, those that have waited longest first. Searches the first unfinished ones of an index. */
export async function listStuckDeliveries(sql: Sql, limit: number): Promise<StuckDelivery[]> {
  return await sql<StuckDelivery>`
    select d.id, d.app_id, a.account_id, d.provider as source, d.received_at, d.last_error
      from (select * from (
              select x.id, x.app_id, x.provider, x.received_at, x.last_error from deliveries x
               where x.completed_at is null order by coalesce(x.relayed_at, x.received_at) limit ${UNFINISHED_EXAMINED}) u
             where u.last_error is not null order by u.received_at, u.id limit ${limit}) d
     cross join lateral (select x.account_id from apps x where x.id = d.app_id limit 1) a
     order by d.received_at, d.id`;
}

/** Payments, refunds and disputes in one currency that wait for an exchange rate. Days are of the form 2026-01-31. */
export interface RateGap {
  readonly currency: string;
  /** Number of waiting payments, counted up to `MOST_WAITING`. */
  readonly payments: number;
  /** Number of waiting refunds and disputes, counted up to `MOST_WAITING`. */
  readonly adjustments: number;
  /** The days of which a rate is missing: those of the payments, also for their refunds and disputes. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** The latest day with a rate; null if the currency has none. */
  readonly latestRateDay: string | null;
}

/** Upper bound of each number of a gap. */
export const MOST_WAITING = 1_000;
/** Upper bound of the number of currencies. */
const MOST_CURRENCIES = 200;

/** Returns the currencies of which a rate is missing. Steps through two indexes from one currency to the next. */
export async function findRateGaps(sql: Sql): Promise<RateGap[]> {
  return await sql<RateGap>`
    with recursive waiting as not materialized (
      select id, currency, (occurred_at at time zone 'UTC')::date as day
        from payments where likely_cause = 'missing_exchange_rate'
    ), adjusting as not materialized (
      select id, currency, app_id, environment, store, payment_ref from ${eventsWithoutRate(sql)} e
    ), currencies (currency, n) as (
      select least((select currency from waiting order by currency, day, id limit 1),
                   (select currency from adjusting order by currency, id limit 1)), 1
      union all
      select least((select w.currency from waiting w where w.currency > c.currency order by w.currency, w.day, w.id limit 1),
                   (select a.currency from adjusting a where a.currency > c.currency order by a.currency, a.id limit 1)), c.n + 1
        from currencies c where c.currency is not null and c.n < ${MOST_CURRENCIES}
    )
    select c.currency, p.payments, a.adjustments, least(first.day, a.first_day)::text as first_day,
           greatest(last.day, a.last_day)::text as last_day,
           (select r.day::text from exchange_rates r where r.currency = c.currency order by r.day desc limit 1) as latest_rate_day
      from currencies c
      left join lateral (
       select w.day from waiting w where w.currency = c.currency order by w.currency, w.day, w.id limit 1) first on true
      left join lateral (
       select w.day from waiting w where w.currency = c.currency order by w.currency desc, w.day desc, w.id desc limit 1) last on true
     cross join lateral (
       select count(*)::int as payments from (select from waiting w where w.currency = c.currency limit ${MOST_WAITING}) w) p
     cross join lateral (
       select count(*)::int as adjustments, min(q.day) as first_day, max(q.day) as last_day
         from (select * from adjusting w where w.currency = c.currency order by w.currency, w.id limit ${MOST_WAITING}) w
        cross join lateral (
          select min((s.occurred_at at time zone 'UTC')::date) as day
            from same_payment(w.app_id, w.environment, w.store, array[w.payment_ref]) s) q) a
     where c.currency is not null
     order by c.currency`;
}
