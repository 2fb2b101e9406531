import { byStatement } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** What people added and deducted. */
export const ENTRY_CHECKS: readonly LedgerCheck[] = [
  byStatement(
    'entries_are_booked_once',
    'An entry has exactly one commission, with its creator, amount and due date, and no payment.',
    (sql, appId) => sql.fragment`
      select coalesce(e.id::text, c.id::text)
        from (select * from entries where app_id = ${appId}) e
        full join (select * from commissions where app_id = ${appId} and entry_id is not null) c on c.entry_id = e.id
       where (e.affiliate_id, e.amount_cents, e.due_at, date_trunc('milliseconds', e.created_at),
              case when e.amount_cents > 0 then 'bonus' else 'deduction' end)
             is distinct from (c.affiliate_id, c.amount_cents, c.due_at, c.occurred_at, c.kind)
          or num_nonnulls(c.payment_id, c.event_id, c.binding_id, c.link_id) > 0
      union all
      select entry_id from commissions
       where app_id = ${appId} and entry_id is not null group by 1 having count(*) > 1`,
  ),
  byStatement(
    'undone_entries_net_to_zero',
    'An undo is the opposite of one entry of the same creator, due at the same time, and an undo is not undone.',
    (sql, appId) => sql.fragment`
      select u.id::text
        from entries u
        left join entries e on e.id = u.undoes_entry_id
       where u.app_id = ${appId} and u.undoes_entry_id is not null
         and ((e.app_id, e.affiliate_id, e.category, e.amount_cents::bigint, e.due_at)
              is distinct from (u.app_id, u.affiliate_id, u.category, -u.amount_cents, u.due_at)
              or e.undoes_entry_id is not null)
      union all
      select undoes_entry_id::text from entries
       where app_id = ${appId} and undoes_entry_id is not null group by 1 having count(*) > 1`,
  ),
];
