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

/**
 * The part of a credit note `a` that returns what was paid outside Stripe, in minor units, as `returnedOutside` in apply-adjustments.ts. Zero
 * for any other adjustment.
 */
export function returnedOutside(sql: Sql, a: Fragment): Fragment {
  return sql.fragment`
    case when ${a}.kind = 'credit_note' and ${a}.state = 'applied' then least(${a}.amount_minor, greatest(0, (
      select coalesce(sum(case when o.kind = 'out_of_band' then o.amount_minor else -o.amount_minor end), 0)
        from same_payment_refs(${a}.app_id, ${a}.environment, ${a}.store, array[${a}.payment_ref]) n
       cross join lateral (
         select * from adjustments x
          where x.app_id = ${a}.app_id and x.environment = ${a}.environment and x.store = ${a}.store
            and x.payment_ref = n.ref collate "default" offset 0) o
       where o.state = 'applied' and o.currency = ${a}.currency
         and (o.kind = 'out_of_band'
              or o.kind = 'credit_note' and (epoch_ms(o.occurred_at), o.id::text) < (epoch_ms(${a}.occurred_at), ${a}.id::text)))))
    else 0 end::bigint`;
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
