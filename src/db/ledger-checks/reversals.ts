import type { AppId } from '../../domain/ids.ts';
import { givenBackSince, isInRunningTotal, returnedOutside } from '../running-totals.ts';
import type { Fragment, Sql } from '../sql.ts';
import { byPages, byStatement, keptRow, rounded } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** The share of `amount` that was refunded, from the booked refunds and disputes of a payment. */
const refundedShare = (sql: Sql, amount: Fragment): Fragment => sql.fragment`
  case when ${amount} <= 0 or coalesce(b.minor, 0) <= 0 then 0
       when b.minor >= p.amount_minor then ${amount}
       else ${rounded(sql, sql.fragment`${amount}::numeric * b.minor`, sql.fragment`p.amount_minor`)} end`;

/** The booked refunds and disputes per payment. */
const bookedMinor = (sql: Sql, appId: AppId): Fragment => sql.fragment`
  select booked_payment_id as payment_id, sum(booked_minor)::numeric as minor
    from adjustments where app_id = ${appId} and booked_minor <> 0 group by 1`;

/** What refunds and disputes took back. */
export const REVERSAL_CHECKS: readonly LedgerCheck[] = [
  byStatement(
    'reversals_follow_their_earning',
    'A reversal or correction has the payment, affiliate, link, rate, policy, user and due date of its earning.',
    (sql, appId) => sql.fragment`
      select r.id::text
        from commissions r
        left join commissions e on e.id = r.reverses_commission_id
       where r.app_id = ${appId}
         and case when r.kind in ('earning', 'bonus', 'deduction') then r.reverses_commission_id is not null
             else (e.kind, r.payment_id, r.affiliate_id, r.link_id, r.rate_bps, r.customer_user_id, r.due_at,
                   r.policy_version_id, r.rule_index, r.base_kind, r.base_estimated, r.flat_cents)
                  is distinct from
                  ('earning', e.payment_id, e.affiliate_id, e.link_id, e.rate_bps, e.customer_user_id, e.due_at,
                   e.policy_version_id, e.rule_index, e.base_kind, e.base_estimated, e.flat_cents) end`,
  ),
  byStatement(
    'never_more_reversed_than_earned',
    'The reversed and corrected amount of a payment is between zero and its earning.',
    (sql, appId) => sql.fragment`
      select payment_id::text
        from commissions
       where app_id = ${appId} and payment_id is not null
       group by payment_id
      having -coalesce(sum(amount_cents) filter (where kind <> 'earning'), 0)
             not between 0 and coalesce(sum(amount_cents) filter (where kind = 'earning'), 0)`,
  ),
  byStatement(
    'reversed_is_the_refunded_share',
    'The reversed share of an earning equals the refunded share of its payment, unless the payment is a duplicate.',
    (sql, appId) => sql.fragment`
      select p.id::text
        from payments p
        left join (${bookedMinor(sql, appId)}) b on b.payment_id = p.id
       where p.app_id = ${appId} and p.environment = 'production' and p.duplicate_of is null
         and p.reversed_cents <> ${refundedShare(sql, sql.fragment`p.earned_cents`)}`,
  ),
  byPages(
    'adjustments_are_booked',
    'A refund or dispute of an attributed payment is booked with its amount, whichever reference of the payment it names.',
    (sql) => sql.fragment`adjustments`,
    (sql) => sql.fragment`
      select a.id::text
        from page a
       cross join lateral (${keptRow(sql, sql.fragment`a`, sql.fragment`a.payment_ref`)}) kept
        join payments p on p.id = kept.id
        join events e on e.id = a.event_id
        join deliveries d on d.id = e.delivery_id
       where a.environment = 'production' and not a.reverses_all and d.completed_at is not null
         and (a.currency = p.currency or a.usd_cents::numeric * p.amount_minor >= p.usd_cents)
         and case when a.state = 'applied' and a.amount_minor > ${givenBackSince(sql, sql.fragment`a`)} + ${returnedOutside(sql, sql.fragment`a`)}
                   and not ${isInRunningTotal(sql, sql.fragment`a`)} and not exists (
                    select from same_payment_refs(a.app_id, a.environment, a.store, array[a.payment_ref]) n
                      join adjustments u on u.app_id = a.app_id and u.environment = a.environment and u.store = a.store
                                        and u.payment_ref = n.ref collate "default"
                     where u.kind = a.kind and u.reverses_all and u.state = 'reversed'
                       and u.occurred_at >= a.occurred_at)
             then a.booked_payment_id is distinct from p.id
                  or (a.currency = p.currency and a.booked_minor <> a.amount_minor - ${givenBackSince(sql, sql.fragment`a`)}
                                                                    - ${returnedOutside(sql, sql.fragment`a`)})
             else a.booked_payment_id = p.id and a.booked_minor <> 0 end`,
  ),
  byStatement(
    'revenue_is_base_minus_refunds',
    'The revenue of an attributed payment is its base minus refunds. Other payments and duplicates have no revenue.',
    (sql, appId) => sql.fragment`
      select p.id::text
        from payments p
        left join (${bookedMinor(sql, appId)}) b on b.payment_id = p.id
        left join (select payment_id, sum(amount_cents) as cents from revenue_entries where app_id = ${appId} group by 1) v
               on v.payment_id = p.id
       where p.app_id = ${appId}
         and coalesce(v.cents, 0) <> case when p.binding_id is null or p.duplicate_of is not null then 0
             else coalesce(p.base_cents - ${refundedShare(sql, sql.fragment`p.base_cents`)}, 0) end`,
  ),
];
