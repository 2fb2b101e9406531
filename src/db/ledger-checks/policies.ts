import { PAYMENT_KINDS } from '../../domain/events.ts';
import type { AppId } from '../../domain/ids.ts';
import type { Fragment, Sql } from '../sql.ts';
import { termsAt } from '../policy-snapshot.ts';
import { byPages, byStatement, rounded } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** Whether a condition of a rule `r.rule` holds for the inputs `c.policy_inputs` of an earning. A missing condition does. */
const holds = (sql: Sql, name: string, condition: Fragment): Fragment => sql.fragment`
  (r.rule->'when'->${name}::text is null or ${condition})`;

/** The rules of a version `v` that apply to the inputs of an earning `c`, by their index. */
const applyingRules = (sql: Sql): Fragment => sql.fragment`
  select r.number - 1 as index
    from jsonb_array_elements(v.terms->'rules') with ordinality r (rule, number)
   where ${holds(sql, 'productIds', sql.fragment`r.rule->'when'->'productIds' ? (c.policy_inputs->>'productId')`)}
     and ${holds(sql, 'stores', sql.fragment`r.rule->'when'->'stores' ? (c.policy_inputs->>'store')`)}
     and ${holds(
       sql,
       'paymentNumber',
       sql.fragment`(c.policy_inputs->>'paymentNumber')::int between coalesce((r.rule->'when'->'paymentNumber'->>'from')::int, 1)
                    and coalesce((r.rule->'when'->'paymentNumber'->>'to')::int, 2147483647)`,
     )}
     and ${holds(
       sql,
       'monthsSinceFirst',
       sql.fragment`(c.policy_inputs->>'monthsSinceFirst')::int >= coalesce((r.rule->'when'->'monthsSinceFirst'->>'from')::int, 0)
                    and (c.policy_inputs->>'monthsSinceFirst')::int < coalesce((r.rule->'when'->'monthsSinceFirst'->>'below')::int, 2147483647)`,
     )}`;

/** An instant after a number of calendar months, in UTC. */
const afterMonths = (sql: Sql, months: Fragment): Fragment => sql.fragment`
  ((n.first_paid_at at time zone 'UTC') + ${months} * interval '1 month')`;

/**
 * Whether an earning `c` took the terms of the instant `paid.at`. Earlier versions, which may run until the end of an upgrade, took those of
 * the provider's time, and nobody knew then what would take effect until that time.
 */
const isByTimeOfPayment = (sql: Sql): Fragment => sql.fragment`
  (paid.at = c.occurred_at
   or c.created_at > (select m.run_on + interval '1 day' from migrations m where m.name = '0204_payments_dated_ahead'))`;

/** Whether an app has policies: without them, nothing is read. */
const hasPolicies = (sql: Sql, appId: AppId): Fragment => sql.fragment`
  (select policies_from is not null from apps where id = ${appId})`;

/** What earns by a policy, computed again. */
export const POLICY_CHECKS: readonly LedgerCheck[] = [
  byPages(
    'policy_earnings_can_be_computed_again',
    'An earning by a policy has the base and amount that follow from its payment, the stored components and the rule.',
    (sql) => sql.fragment`commissions`,
    (sql) => sql.fragment`
      select c.id::text
        from page c
        join policy_versions v on v.id = c.policy_version_id
        join payments p on p.id = c.payment_id
       cross join lateral (select v.terms->'rules'->c.rule_index as rule) r
       cross join lateral (
         select coalesce((c.policy_inputs->'tax'->>'minor')::bigint, 0) + coalesce((c.policy_inputs->'storeFee'->>'minor')::bigint, 0) as minor) kept
       where c.kind = 'earning'
         and (((c.policy_inputs->>'grossCents')::bigint, (c.policy_inputs->>'paidMinor')::bigint, c.policy_inputs->>'store')
                is distinct from (p.base_cents::bigint, p.amount_minor, p.store)
              or (c.base_kind, c.rate_bps::int, c.flat_cents)
                 is distinct from (v.terms->>'base', coalesce((r.rule->>'percentBps')::int, 0), (r.rule->>'flatCents')::bigint)
              or (jsonb_typeof(c.policy_inputs->'tax') = 'object', jsonb_typeof(c.policy_inputs->'storeFee') = 'object')
                 <> (c.base_kind <> 'gross', c.base_kind = 'proceeds')
              or c.base_estimated <> coalesce(coalesce(c.policy_inputs->'tax'->>'origin', 'stated') <> 'stated'
                                              or coalesce(c.policy_inputs->'storeFee'->>'origin', 'stated') <> 'stated', true)
              or c.base_cents <> ${rounded(sql, sql.fragment`p.base_cents::numeric * greatest(0, p.amount_minor - kept.minor)`, sql.fragment`p.amount_minor`)}
              or c.amount_cents <> case
                   when c.flat_cents is null then ${rounded(sql, sql.fragment`c.base_cents::numeric * c.rate_bps`, sql.fragment`10000`)}
                   when (r.rule->>'aboveBase')::boolean then c.flat_cents else least(c.flat_cents, c.base_cents) end)`,
  ),
  byPages(
    'policy_earnings_follow_the_first_rule',
    'An earning by a policy is that of the version in effect when the customer paid, and of its first rule that applies.',
    (sql) => sql.fragment`commissions`,
    (sql) => sql.fragment`
      select c.id::text
        from page c
        join payments p on p.id = c.payment_id
        join events e on e.id = p.event_id
       cross join lateral (select ${termsAt(sql)} as at offset 0) paid
        join policy_versions v on v.id = c.policy_version_id
        left join payment_numbers n on n.payment_id = c.payment_id
       cross join lateral (select (c.policy_inputs->>'monthsSinceFirst')::int as months) m
       cross join lateral (select (c.occurred_at at time zone 'UTC') + interval '48 hours' as counted_at) o
       where c.kind = 'earning'
         and (((c.policy_inputs->>'paymentNumber')::int, (c.policy_inputs->>'firstPaidAt')::bigint)
                is distinct from (n.number, epoch_ms(n.first_paid_at))
              or (m.months > 0 and ${afterMonths(sql, sql.fragment`m.months`)} > o.counted_at)
              or ${afterMonths(sql, sql.fragment`(m.months + 1)`)} <= o.counted_at
              -- The row of a whole invoice has the rule of the part that earned before it.
              or (n.counts_as is null and c.rule_index is distinct from (select min(a.index) from (${applyingRules(sql)}) a))
              or (n.counts_as is null and ${isByTimeOfPayment(sql)} and c.policy_version_id is distinct from (
                    select i.version_id::text from policy_in_effect(c.app_id, c.affiliate_id, paid.at) i)))`,
  ),
  byPages(
    'policy_earnings_count_what_was_stated',
    'The product, and each tax and store fee that counted as stated or estimated, is that of an event of the payment.',
    (sql) => sql.fragment`commissions`,
    (sql) => sql.fragment`
      select c.id::text
        from page c
        join payments p on p.id = c.payment_id
        join events first on first.id = p.event_id
       cross join lateral (
         select stated_components(
                  p, array(select n.ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n),
                  ${[...PAYMENT_KINDS]}::text[]) as events) f
       where c.kind = 'earning' and c.policy_version_id is not null
         and (c.policy_inputs->>'productId' is not null
              and c.policy_inputs->>'productId' is distinct from first.product_id
              and not exists (
                select from jsonb_array_elements(f.events) e where e->>'productId' = c.policy_inputs->>'productId')
              or exists (
                select from (values ('tax'), ('storeFee')) k (name)
                 cross join lateral (select c.policy_inputs->k.name as counted) i
                 where i.counted->>'origin' in ('stated', 'estimated')
                   and not exists (
                     select from jsonb_array_elements(f.events) e
                      where case i.counted->>'origin'
                              when 'stated' then (e->>'isSameAmount')::boolean and (e->k.name->>'minor')::bigint = (i.counted->>'minor')::bigint
                              else ${rounded(sql, sql.fragment`p.amount_minor::numeric * (e->k.name->>'ppm')::bigint`, sql.fragment`1000000`)}
                                   = (i.counted->>'minor')::bigint end)))`,
  ),
  byPages(
    'policies_are_not_passed_over',
    'A payment of a time at which a policy counted for its creator has not earned by another rate.',
    (sql) => sql.fragment`commissions`,
    (sql) => sql.fragment`
      select c.id::text
        from page c
        join apps a on a.id = c.app_id and a.policies_from <= c.occurred_at
        join payments p on p.id = c.payment_id
        join events e on e.id = p.event_id
       cross join lateral (select ${termsAt(sql)} as at offset 0) paid
       -- A number that is taken over is that of a part, with its terms.
       cross join lateral (
         select n.payment_id from payment_numbers n where n.payment_id = c.payment_id and n.counts_as is null offset 0) n
       cross join lateral policy_in_effect(c.app_id, c.affiliate_id, paid.at) i
       where c.kind = 'earning' and c.rate_source in ('app', 'affiliate') and ${isByTimeOfPayment(sql)}
         and a.policies_from <= paid.at
         -- It was written after the policy took effect, and so after it was known.
         and n.payment_id is not null and (c.rate_source = 'app' or i.scope = 'affiliate')
         and c.created_at > (select min(v.created_at) from policy_versions v where v.id = i.version_id)`,
  ),
  byStatement(
    'policies_of_creators_are_looked_up',
    'An app that has ever assigned a policy to a creator or a group looks theirs up for each payment.',
    (sql, appId) => sql.fragment`
      select a.scope_id::text
        from policy_assignments a
        join apps p on p.id = a.app_id and not p.assigns_policies_to_creators
       where a.app_id = ${appId} and (a.affiliate_id is not null or a.group_id is not null)`,
  ),
  byStatement(
    'payments_of_a_customer_are_numbered',
    'The attributed payments of a customer whose payments are numbered have the numbers from 1 on, each once.',
    (sql, appId) => sql.fragment`
      select p.id::text
        from bindings r
        join payment_numbers s on s.subject_id = r.id and s.number = 1 and s.counts_as is null
        join bindings b on b.id = r.id or b.counts_with = r.id
        join payments p on p.app_id = r.app_id and p.binding_id = b.id
       where r.app_id = ${appId} and p.duplicate_of is null and ${hasPolicies(sql, appId)}
         and not exists (select from payment_numbers n where n.payment_id = p.id)
      union all
      select r.id::text
        from bindings r
       cross join lateral (
         select max(n.number) as last, count(*) as count, min(n.first_paid_at) as since, max(n.first_paid_at) as until
           from payment_numbers n where n.subject_id = r.id and n.counts_as is null) numbers
       where r.app_id = ${appId} and ${hasPolicies(sql, appId)} and (numbers.last <> numbers.count or numbers.since <> numbers.until)
      union all
      select n.payment_id::text
        from bindings r
        join payment_numbers n on n.subject_id = r.id and n.number = 1 and n.counts_as is null
        join payments p on p.id = n.payment_id
       where r.app_id = ${appId} and n.first_paid_at <> p.occurred_at
         and ${hasPolicies(sql, appId)}`,
  ),
];
