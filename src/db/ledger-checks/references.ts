import { byStatement } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** References between rows. */
export const REFERENCE_CHECKS: readonly LedgerCheck[] = [
  byStatement(
    'no_row_of_another_app',
    'Every reference of a row exists and belongs to the same app.',
    (sql, appId) => sql.fragment`
      select x.id::text from clicks x left join links l on l.id = x.link_id
       where x.app_id = ${appId} and (l.app_id, l.affiliate_id) is distinct from (x.app_id, x.affiliate_id)
      union all
      select x.id::text from links x left join affiliates f on f.id = x.affiliate_id
       where x.app_id = ${appId} and f.app_id is distinct from x.app_id
      union all
      select x.id::text
        from attributions x
        left join affiliates f on f.id = x.affiliate_id
        left join links l on l.id = x.link_id
        left join clicks k on k.id = x.click_id
       where x.app_id = ${appId}
         and (f.app_id is distinct from x.app_id
              or (x.link_id is not null and (l.app_id, l.affiliate_id) is distinct from (x.app_id, x.affiliate_id))
              or (x.click_id is not null and k.app_id is distinct from x.app_id))
      union all
      select x.id::text from bindings x left join attributions a on a.id = x.attribution_id
       where x.app_id = ${appId} and a.app_id is distinct from x.app_id
      union all
      select x.id::text from events x left join deliveries d on d.id = x.delivery_id
       where x.app_id = ${appId} and d.app_id is distinct from x.app_id
      union all
      select x.id::text
        from payments x
        left join events e on e.id = x.event_id
        left join bindings b on b.id = x.binding_id
        left join payments q on q.id = x.duplicate_of
       where x.app_id = ${appId}
         and (e.app_id is distinct from x.app_id or (x.binding_id is not null and b.app_id is distinct from x.app_id)
              or (x.duplicate_of is not null and q.app_id is distinct from x.app_id))
      union all
      select x.payment_id::text
        from (select app_id, payment_id from payment_users where app_id = ${appId}
              union
              select app_id, payment_id from payment_user_keys where app_id = ${appId}) x
        left join payments p on p.id = x.payment_id
       where p.app_id is distinct from x.app_id
      union all
      select x.id::text
        from adjustments x
        left join events e on e.id = x.event_id
        left join payments p on p.id = x.booked_payment_id
       where x.app_id = ${appId}
         and (e.app_id is distinct from x.app_id or (x.booked_payment_id is not null and p.app_id is distinct from x.app_id))
      union all
      select x.id::text
        from commissions x
        left join affiliates f on f.id = x.affiliate_id
        left join links l on l.id = x.link_id
        left join events e on e.id = x.event_id
        left join payments p on p.id = x.payment_id
        left join bindings b on b.id = x.binding_id
        left join adjustments a on a.id = x.adjustment_id
        left join commissions r on r.id = x.reverses_commission_id
        left join commissions k on k.id = x.duplicate_of_commission_id
        left join payouts o on o.id = x.payout_id
       where x.app_id = ${appId}
         and (f.app_id is distinct from x.app_id or e.app_id is distinct from x.app_id
              or p.app_id is distinct from x.app_id or b.app_id is distinct from x.app_id
              or (x.link_id is not null and (l.app_id, l.affiliate_id) is distinct from (x.app_id, x.affiliate_id))
              or (x.adjustment_id is not null and a.app_id is distinct from x.app_id)
              or (x.reverses_commission_id is not null and r.app_id is distinct from x.app_id)
              or (x.duplicate_of_commission_id is not null and k.app_id is distinct from x.app_id)
              or (x.payout_id is not null and (o.app_id, o.affiliate_id) is distinct from (x.app_id, x.affiliate_id)))
      union all
      select x.payment_id::text
        from revenue_entries x
        left join payments p on p.id = x.payment_id
        left join affiliates f on f.id = x.affiliate_id
        left join links l on l.id = x.link_id
        left join adjustments a on a.id = x.adjustment_id
       where x.app_id = ${appId}
         and (p.app_id is distinct from x.app_id or f.app_id is distinct from x.app_id
              or (x.link_id is not null and (l.app_id, l.affiliate_id) is distinct from (x.app_id, x.affiliate_id))
              or (x.adjustment_id is not null and a.app_id is distinct from x.app_id))
      union all
      select x.id::text from payouts x left join affiliates f on f.id = x.affiliate_id
       where x.app_id = ${appId} and f.app_id is distinct from x.app_id
      union all
      select x.commission_id::text
        from payout_items x
        left join payouts o on o.id = x.payout_id
        left join commissions c on c.id = x.commission_id
       where x.app_id = ${appId}
         and (o.app_id is distinct from x.app_id or c.app_id is distinct from x.app_id)
      union all
      select x.id::text
        from payout_requests x
        left join affiliates f on f.id = x.affiliate_id
        left join payouts o on o.id = x.payout_id
        left join account_keys k on k.id = x.key_id
        join apps on apps.id = x.app_id
       where x.app_id = ${appId}
         and (f.app_id is distinct from x.app_id or x.account_id <> apps.account_id
              or k.account_id is distinct from apps.account_id
              or (x.payout_id is not null and o.app_id is distinct from x.app_id))
      union all
      select x.id::text
        from payout_transfers x
        left join payouts o on o.id = x.payout_id
        left join account_keys k on k.id = x.key_id
        join apps on apps.id = x.app_id
       where x.app_id = ${appId}
         and (o.app_id is distinct from x.app_id or x.account_id <> apps.account_id
              or k.account_id is distinct from apps.account_id)`,
  ),
];
