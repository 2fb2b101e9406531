import type { Fragment, Sql, Statements } from './sql.ts';

/** The condition for an adjustment `a` to be the running total of a Stripe charge: it has the charge's id. */
export function isRunningTotal(sql: Statements, a: Fragment): Fragment {
  return sql.fragment`
    (${a}.store = 'stripe' and ${a}.kind = 'refund' and (starts_with(${a}.ref, 'ch_') or starts_with(${a}.ref, 'py_')))`;
}

/**
 * The condition for a running total `t` to contain a refund `r`, as `containsRefund` in apply-adjustments.ts: the refund was made
 * before the total was stated.
 */
function contains(sql: Sql, t: Fragment, r: Fragment): Fragment {
  return sql.fragment`
    (${t}.app_id = ${r}.app_id and ${t}.environment = ${r}.environment and ${t}.store = ${r}.store
     and ${r}.payment_ref in (${t}.payment_ref, ${t}.ref) and ${r}.made_at <= ${t}.stated_at and ${r}.kind = 'refund'
     and ${isRunningTotal(sql, t)} and not ${isRunningTotal(sql, r)})`;
}

/** The condition for a refund `a` to be contained in a running total, which counts instead. */
export function isInRunningTotal(sql: Sql, a: Fragment): Fragment {
  return sql.fragment`
    exists (
      select from adjustments total
       where total.app_id = ${a}.app_id and total.environment = ${a}.environment and total.store = ${a}.store
         and (total.payment_ref = ${a}.payment_ref or total.ref = ${a}.payment_ref)
         and ${contains(sql, sql.fragment`total`, a)})`;
}

/** The part of a running total `a` that was given back since it was stated, in minor units. Zero for any other adjustment. */
export function givenBackSince(sql: Sql, a: Fragment): Fragment {
  return sql.fragment`
    coalesce((
      select sum(part.amount_minor) from adjustments part
       where part.app_id = ${a}.app_id and part.environment = ${a}.environment and part.store = ${a}.store
         and part.payment_ref in (${a}.payment_ref, ${a}.ref) and part.state = 'reversed' and part.currency = ${a}.currency
         and part.occurred_at > ${a}.stated_at and ${contains(sql, a, sql.fragment`part`)}), 0)::bigint`;
}
