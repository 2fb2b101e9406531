import type { PayoutId } from '../../domain/ids.ts';
import { csvMatchesPayout } from '../payout-csv.ts';
import { byStatement, LedgerCheckTooLong, MOST_EXAMPLES, SWEEP_IS_LATE_MINUTES } from './check.ts';
import type { LedgerCheck } from './check.ts';

const PAYOUTS_PAGE = 200;

/** What became due, and what was paid. */
export const PAYOUT_CHECKS: readonly LedgerCheck[] = [
  byStatement(
    'due_commissions_have_matured',
    `A commission matures within ${SWEEP_IS_LATE_MINUTES} minutes of its due date, or of its creation if that is later.`,
    (sql, appId) => sql.fragment`
      select id::text
        from commissions
       where app_id = ${appId} and status = 'pending'
         and greatest(due_at, created_at) < now() - ${SWEEP_IS_LATE_MINUTES} * interval '1 minute'`,
  ),
  byStatement(
    'no_event_is_left_processing',
    'An event has the cause `processing` only while its delivery has no outcome.',
    (sql, appId) => sql.fragment`
      select e.id::text
        from events e
        join deliveries d on d.id = e.delivery_id
       where e.app_id = ${appId} and e.likely_cause = 'processing' and d.completed_at is not null`,
  ),
  byStatement(
    'paid_means_in_a_payout',
    'A commission is paid if and only if it is an item of its payout, with its full amount.',
    (sql, appId) => sql.fragment`
      select c.id::text
        from commissions c
        left join payout_items i on i.commission_id = c.id
       where c.app_id = ${appId}
         and case c.status when 'paid'
             then (c.payout_id, c.affiliate_id, c.amount_cents) is distinct from (i.payout_id, i.affiliate_id, i.amount_cents)
                  or c.payout_id is null or c.paid_at is null
             else c.payout_id is not null or c.paid_at is not null or i.commission_id is not null end`,
  ),
  byStatement(
    'paid_once',
    'A commission is an item of at most one payout.',
    (sql, appId) => sql.fragment`
      select i.commission_id::text
        from payout_items i
        left join commissions c on c.id = i.commission_id
       where i.app_id = ${appId}
       group by i.commission_id
      having count(*) > 1 or count(c.id) = 0`,
  ),
  byStatement(
    'payouts_pay_what_was_due',
    'A commission is paid on its due date at the earliest, unless its payout was recorded from its CSV.',
    (sql, appId) => sql.fragment`
      select c.id::text
        from commissions c
        join payouts p on p.id = c.payout_id
       where c.app_id = ${appId} and c.status = 'paid' and p.recorded_at is null and c.due_at > c.paid_at`,
  ),
  byStatement(
    'payouts_are_the_sum_of_their_items',
    'A payout is positive, and its total and item count match its items.',
    (sql, appId) => sql.fragment`
      select p.id::text
        from payouts p
        left join (select payout_id, sum(amount_cents) as cents, count(*) as items, min(position) as first, max(position) as last
                     from payout_items where app_id = ${appId} group by 1) i on i.payout_id = p.id
       where p.app_id = ${appId}
         and (p.total_cents <= 0
              or (p.total_cents, p.item_count, 1, p.item_count) is distinct from (i.cents, i.items, i.first, i.last))`,
  ),
  byStatement(
    'payouts_have_their_request',
    'Every payout belongs to one paid request of an authorized call, unless it was recorded from its CSV, and every paid request has its payout.',
    (sql, appId) => sql.fragment`
      select coalesce(p.id::text, r.id::text)
        from (select * from payouts where app_id = ${appId} and recorded_at is null) p
        full join (select * from payout_requests where app_id = ${appId} and (status = 'paid' or payout_id is not null)) r
               on r.payout_id = p.id
       where (r.status, r.affiliate_id, r.net_cents) is distinct from ('paid', p.affiliate_id, p.total_cents)
      union all
      select payout_id::text from payout_requests
       where app_id = ${appId} and payout_id is not null group by 1 having count(*) > 1`,
  ),
  byStatement(
    'payout_runs_pay_what_was_approved',
    'The total of a payout run is the sum of its items. Each item that was paid or sent again has a payout of its creator and its amount, and no unapproved one has. What is sent again came back. A stopped run has decided nothing about what came back. A settled run states what was paid or sent again, and its files have that.',
    (sql, appId) => sql.fragment`
      select r.id::text
        from payout_runs r
       cross join lateral (
         select count(*) as items, coalesce(sum(i.expected_cents), 0) as cents, count(*) filter (where f.is_filed) as paid,
                coalesce(sum(p.total_cents) filter (where f.is_filed), 0) as paid_cents, count(*) filter (where q.status = 'open') as open,
                bool_or(r.approved_at is null and (q.id is not null or i.resend_result is not null) or q.affiliate_id <> i.affiliate_id
                        or (f.is_filed or i.payout_id is not null)
                           and (p.affiliate_id, p.total_cents) is distinct from (i.affiliate_id::text, i.expected_cents::bigint)
                        or i.resend_result = 'resent' and t.state is distinct from 'returned'
                        or i.resend_result is not null and r.stopped_at is not null) as is_wrong
           from payout_run_items i
           left join lateral (select * from payout_requests x where x.id = i.request_id offset 0) q on true
           left join lateral (select * from payouts x where x.id = coalesce(i.payout_id, q.payout_id) offset 0) p on true
           left join lateral (select * from payout_transfers x where x.payout_id = i.payout_id and x.position = i.return_position offset 0) t on true
          cross join lateral (select coalesce(i.resend_result = 'resent', q.status = 'paid', false) as is_filed) f
          where i.run_id = r.id) s
       cross join lateral (
         select coalesce(sum(x.row_count), 0) as rows, coalesce(sum(x.total_cents), 0) as cents from payout_run_files x where x.run_id = r.id) filed
       where r.app_id = ${appId}
         and (r.status <> 'cancelled' and (r.item_count, r.total_cents) is distinct from (s.items, s.cents) or s.is_wrong
              or r.status = 'settled' and (r.paid_count, r.paid_cents, 0, r.paid_count, r.paid_cents)
                                            is distinct from (s.paid, s.paid_cents, s.open, filed.rows, filed.cents))`,
  ),
  byStatement(
    'payouts_are_chained',
    'Each payout with a CSV is in the hash chain of its app, with its CSV and total, after the payout before it.',
    (sql, appId) => sql.fragment`
      select p.id::text from payouts p left join payout_chain c on c.payout_id = p.id
       where p.app_id = ${appId} and p.csv_sha256 is not null
         and (c.app_id, c.csv_sha256, c.total_cents) is distinct from (p.app_id, p.csv_sha256, p.total_cents)
      union all
      select c.payout_id::text
        from payout_chain c
        left join payout_chain b on b.app_id = c.app_id and b.position = c.position - 1
       where c.app_id = ${appId}
         and ((c.position = 1) <> (b.position is null) or c.previous_hash is distinct from b.hash
              or c.hash <> payout_chain_hash(c.previous_hash, c.app_id, c.position, c.payout_id, c.total_cents, c.csv_sha256))`,
  ),
  {
    name: 'payout_csv_has_its_hash',
    description: 'The stored CSV of a payout has its hash and states the items of the payout.',
    find: async (sql, appId, isOver) => {
      const broken: string[] = [];
      let violations = 0;
      let after = '';
      for (;;) {
        const page = await sql<{ id: PayoutId }>`
          select id from payouts where app_id = ${appId} and id > ${after} order by id limit ${PAYOUTS_PAGE}`;
        for (const { id } of page) {
          if (isOver()) throw new LedgerCheckTooLong('checking the CSV files of all payouts takes too long');
          if (await csvMatchesPayout(sql, appId, id, SWEEP_IS_LATE_MINUTES)) continue;
          violations += 1;
          if (broken.length < MOST_EXAMPLES) broken.push(id);
        }
        if (page.length < PAYOUTS_PAGE) return { violations, examples: broken };
        after = page.at(-1)?.id ?? '';
      }
    },
  },
];
