import { PAYMENT_KINDS } from '../domain/events.ts';
import type { BindingId } from '../domain/ids.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/** The instant whose policies count for a payment `p` with its event `e`: as `terms_at`, which looks the event up. */
export const termsAt = (sql: Statements): Fragment => sql.fragment`least(p.occurred_at, e.created_at)`;

/**
 * The `PolicyContext` of a binding `b` with its affiliate `f`, for a payment `p` with its event `e` and its `app`. Null before the app's
 * first policy is in effect: then nothing is looked up.
 */
export function policyOf(sql: Statements): Fragment {
  return sql.fragment`
    case when app.policies_from <= now()
         then policy_context(b.id, b.counts_with, b.first_paid_at is not null, p.app_id,
                             case when app.assigns_policies_to_creators then f.id end, ${termsAt(sql)}) end`;
}

/** The `StatedComponents` of a payment `p` with its references. Empty before the app's first policy is in effect. */
export function componentsOf(sql: Statements, refs: Fragment): Fragment {
  return sql.fragment`
    case when app.policies_from <= now()
         then stated_components(p, ${refs}, ${[...PAYMENT_KINDS]}::text[]) else '[]' end`;
}

/** The rule that a commission `c` earned by. Null for another rate. */
export function ruleOf(sql: Statements): Fragment {
  return sql.fragment`
    case when c.policy_version_id is not null then (
      select jsonb_build_object('versionId', v.id, 'terms', v.terms, 'index', c.rule_index)
        from policy_versions v where v.id = c.policy_version_id) end`;
}

/** The `ShownPolicy` of a commission `c`. Null for another rate. */
export function shownPolicyOf(sql: Statements): Fragment {
  return sql.fragment`
    case when c.policy_version_id is not null
         then shown_policy(c.policy_version_id, c.rule_index, c.base_kind, c.base_estimated, c.flat_cents) end`;
}

/**
 * Numbers the payments of a customer that were attributed before the app had policies, in the order in which they earned. Does nothing if
 * the customer has a number. Rows of a payment that another row replaces have none.
 *
 * The parts of the statement: `members` are the bindings that count together, `named` the payments that their users or keys lead
 * to, `attributed` those among them, under all references, that were attributed through one of the bindings.
 */
export async function numberEarlierPayments(sql: Sql, subjectId: BindingId): Promise<void> {
  await sql`
      with members as materialized (
        select id, app_id, customer_user_id, key_source from bindings where id = ${subjectId}
         union all
        select id, app_id, customer_user_id, key_source from bindings where counts_with = ${subjectId}
      ), named as materialized (
        select w.payment_id from members b
          join payment_users w on w.app_id = b.app_id and w.customer_user_id = b.customer_user_id
        union
        select k.payment_id from members b
          join user_links l on l.app_id = b.app_id and l.customer_user_id = b.customer_user_id
          join payment_user_keys k on k.app_id = l.app_id and k.user_key = l.user_key and k.source = l.source
        union
        select k.payment_id from members b
         cross join lateral (
           select x.payment_id from payment_user_keys x
            where b.key_source is not null and x.app_id = b.app_id and x.user_key = b.customer_user_id offset 0) k
      ), attributed as materialized (
        select distinct q.id, q.app_id, q.occurred_at, q.evaluated_at
          from named
         cross join lateral (select * from payments x where x.id = named.payment_id offset 0) n
         cross join lateral same_payment(n.app_id, n.environment, n.store, array[n.ref]) q
         where q.environment = 'production' and q.duplicate_of is null and q.binding_id in (select id from members)
      ), ordered as (
        select a.id, a.app_id, a.occurred_at, row_number() over (order by coalesce(c.created_at, a.evaluated_at), a.id) as number
          from attributed a
          left join lateral (
            select x.created_at from commissions x where x.payment_id = a.id and x.kind = 'earning' limit 1) c on true
      )
      insert into payment_numbers (payment_id, app_id, subject_id, number, first_paid_at)
      select id, app_id, ${subjectId}::text, number, first_value(occurred_at) over (order by number) from ordered
       where not exists (select from payment_numbers n where n.subject_id = ${subjectId} and n.counts_as is null)
       order by number
      -- Another evaluation may number them at the same time.
      on conflict do nothing`;
}

/**
 * Waits until no other evaluation numbers payments of the customer, and keeps others waiting until the end of the transaction. For
 * customers with many payments at once: their evaluations would take the same number again and again.
 */
export async function lockSubject(tx: Statements, subjectId: BindingId): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended('payments of ' || ${subjectId}::text, 0))`;
}
