import { RATE_MAX_AGE_DAYS } from '../domain/exchange-rate.ts';
import type { RatesFile } from '../domain/exchange-rate.ts';
import type { PaymentId } from '../domain/ids.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/** The result of an import. */
export interface RatesImported {
  readonly added: number;
  /** Rates that had another value or another source before. */
  readonly changed: number;
  /** Rates of the operator that the bank's file does not replace. */
  readonly kept: number;
}

/**
 * The events that state a refund, a dispute or other money that came back, in a currency without a rate: those that state no payment.
 * Each has its adjustment's currency. An index has them by currency, and they leave it when they are converted.
 */
export const eventsWithoutRate = (sql: Statements): Fragment => sql.fragment`
  (select * from events
    where likely_cause = 'missing_exchange_rate'
      and kind not in ('purchase', 'renewal', 'trial_converted', 'product_change'))`;

/** Marks payments with a refund or dispute that waits for one of these currencies, so that they are evaluated again. A part of a statement. */
const markWaiting = (sql: Sql, currencies: Fragment): Fragment => sql.fragment`
  update payments set recheck_since = now(), version = version + 1
   where id = any(array(
     select q.id
       from ${eventsWithoutRate(sql)} e
      cross join lateral (
        select * from adjustments x where x.event_id = e.id and x.state = 'applied' and x.usd_cents is null offset 0) a
      cross join lateral same_payment(a.app_id, a.environment, a.store, array[a.payment_ref]) q
      where e.currency = any(${currencies}) and a.environment = 'production'))`;

/**
 * Imports a file of rates in one statement. A newer value replaces an older one, but the bank never replaces a rate of
 * the operator. Rates that are frozen on events do not change. Importing a file twice changes nothing.
 *
 * What waits for a rate is marked in the statement, and once more after its commit: an evaluation that runs during the import may read no rate,
 * and commit after the import has looked. One that commits later still reads the rates again itself (`activities/evaluate.ts`).
 */
export async function importRates(sql: Sql, { source, rates }: RatesFile): Promise<RatesImported> {
  // The bank's file of all days has hundreds of thousands of rates.
  const imported = await sql.forManyRows().one<RatesImported>`
    with given as (
      select currency, day, units, "worthUsd" as worth_usd
        from jsonb_to_recordset(${sql.json(rates)}) t (currency text, day date, units numeric, "worthUsd" numeric)
    ), written as (
      insert into exchange_rates as old (currency, day, units, worth_usd, source)
      select currency, day, units, worth_usd, ${source}::text from given order by currency, day
      on conflict (currency, day) do update
        set units = excluded.units, worth_usd = excluded.worth_usd, source = excluded.source
        where (old.source <> 'operator' or excluded.source = 'operator')
          and (old.units, old.worth_usd, old.source) is distinct from (excluded.units, excluded.worth_usd, excluded.source)
      returning xmax = 0 as is_new
    ), marked as (${markWaiting(sql, sql.fragment`array(select currency from given)`)})
    select count(*) filter (where is_new) as added, count(*) filter (where not is_new) as changed,
           (select count(*) from given join exchange_rates o using (currency, day)
             where o.source = 'operator' and ${source}::text <> 'operator') as kept
      from written`;
  const currencies = [...new Set(rates.map(({ currency }) => currency))];
  await sql.forManyRows()`${markWaiting(sql, sql.fragment`${currencies}::text[]`)}`;
  return imported;
}

/**
 * Returns a page of payments that wait for a rate and now have one, of their day or of the seven days before. It walks
 * the currencies and days that payments wait for, so payments that keep waiting cost nothing, however many there are.
 * The parts of the statement: `waiting` are the payments, `start` is the position after which the page begins, `days`
 * steps through the index from one currency and day to the next.
 */
export async function findConvertiblePayments(
  sql: Sql,
  after: PaymentId | null,
  limit: number,
): Promise<PaymentId[]> {
  const rows = await sql<{ id: PaymentId }>`
    with recursive waiting as not materialized (
      select id, currency, (occurred_at at time zone 'UTC')::date as day
        from payments where likely_cause = 'missing_exchange_rate'
    ), start as (
      select currency, (occurred_at at time zone 'UTC')::date as day, id from payments where id = ${after}
    ), days (currency, day) as (
      (select currency, day from waiting
        where (currency, day) >= (coalesce((select currency from start), ''), coalesce((select day from start), '-infinity'))
        order by currency, day limit 1)
      union all
      select next.currency, next.day
        from days d cross join lateral (
          select w.currency, w.day from waiting w where (w.currency, w.day) > (d.currency, d.day)
           order by w.currency, w.day limit 1) next
    )
    select p.id
      from days d cross join lateral (
        select w.id from waiting w
         where w.currency = d.currency and w.day = d.day
           and w.id > coalesce((select s.id from start s where s.currency = d.currency and s.day = d.day), '')
         order by w.id limit ${limit}) p
     where exists (select from exchange_rates r
                    where r.currency = d.currency and r.day between d.day - ${RATE_MAX_AGE_DAYS}::int and d.day)
     order by d.currency, d.day, p.id
     limit ${limit}`;
  return rows.map((row) => row.id);
}
