import { CURRENCY_DECIMALS } from '../domain/money.ts';
import type { AppId, PayoutId } from '../domain/ids.ts';
import { csvMatchesPayout } from './payout-csv.ts';
import { compareRollups } from './rollups.ts';
import { isStatementTooLarge } from './sql.ts';
import type { Sql } from './sql.ts';

type Fragment = ReturnType<Sql['fragment']>;

/** The number of rows that break a rule, and up to twenty of them. An example begins with the id of a row. */
interface Violations {
  readonly violations: number;
  readonly examples: readonly string[];
}

/** A rule of the ledger in one sentence, and the search for rows of one app that break it. */
export interface LedgerCheck {
  /** Stable, snake case. */
  readonly name: string;
  readonly description: string;
  readonly find: (sql: Sql, appId: AppId, isOver: () => boolean) => Promise<Violations>;
}

/** The result of a check. */
export interface LedgerCheckResult extends Violations {
  readonly name: string;
  readonly ok: boolean;
  readonly description: string;
}

/** The checks need more time than the caller has, or a statement needs more time, memory or disk than it may use. */
export class LedgerCheckTooLong extends Error {
  override readonly name = 'LedgerCheckTooLong';
}

/** Upper bound of the number of examples. */
export const MOST_EXAMPLES = 20;
/** Due commissions mature within about a minute. After this time something is wrong. */
const SWEEP_IS_LATE_MINUTES = 10;
const PAYOUTS_PAGE = 200;

/** Creates a check from a statement that returns the ids (`id`, text) of all rows that break the rule. */
function byStatement(
  name: string,
  description: string,
  broken: (sql: Sql, appId: AppId) => Fragment,
): LedgerCheck {
  return {
    name,
    description,
    find: async (sql, appId) =>
      await sql.one<Violations>`
        with broken (id) as materialized (${broken(sql, appId)})
        select (select count(*) from broken) as violations,
               coalesce((select jsonb_agg(id) from (select id from broken order by id limit ${MOST_EXAMPLES}) x), '[]')
                 as examples`,
  };
}

/** `numerator / denominator`, both positive, rounded like every amount. `div` is exact, `/` is not. */
const rounded = (sql: Sql, numerator: Fragment, denominator: Fragment): Fragment =>
  sql.fragment`div(2 * (${numerator}) + (${denominator}), 2 * (${denominator}))`;

/** The share of `amount` that was refunded, from the booked refunds and disputes of a payment. */
const refundedShare = (sql: Sql, amount: Fragment): Fragment => sql.fragment`
  case when ${amount} <= 0 or coalesce(b.minor, 0) <= 0 then 0
       when b.minor >= p.amount_minor then ${amount}
       else ${rounded(sql, sql.fragment`${amount}::numeric * b.minor`, sql.fragment`p.amount_minor`)} end`;

/** The booked refunds and disputes per payment. */
const bookedMinor = (sql: Sql, appId: AppId): Fragment => sql.fragment`
  select booked_payment_id as payment_id, sum(booked_minor)::numeric as minor
    from adjustments where app_id = ${appId} and booked_minor <> 0 group by 1`;

/**
 * The row that counts among the attributed rows of the payment that `ref` names at the store of `row`: the first to
 * earn.
 */
const keptRow = (sql: Sql, row: Fragment, ref: Fragment): Fragment => sql.fragment`
  select q.id
    from same_payment(${row}.app_id, ${row}.environment, ${row}.store, array[${ref}]) q
    left join commissions c on c.payment_id = q.id and c.kind = 'earning'
   where q.binding_id is not null
   order by c.id nulls last, q.id limit 1`;

/** The currencies that do not have two decimals. */
const UNUSUAL_DECIMALS = [...CURRENCY_DECIMALS].map(([currency, decimals]) => ({ currency, decimals }));

/**
 * The rules of the ledger. Most are constraints too (docs/money.md). A check that finds something means that rows were
 * changed without the service, that a backup was restored partially, or that the service has a bug.
 */
export const LEDGER_CHECKS: readonly LedgerCheck[] = [
  {
    name: 'rollups_equal_facts',
    description: 'Every dashboard sum equals the sum of its facts.',
    find: async (sql, appId) => {
      const { differences, first } = await compareRollups(sql, appId, MOST_EXAMPLES);
      return {
        violations: differences,
        examples: first.map(
          ({ scopeId, bucketAt, differs }) =>
            `${scopeId} ${bucketAt === null ? 'of all time' : `at ${bucketAt}`}: ${differs.join(', ')}`,
        ),
      };
    },
  },
  byStatement(
    'payment_sums_equal_commissions',
    'The earned, reversed and corrected amounts of a payment are the sums of its commissions.',
    (sql, appId) => sql.fragment`
      select p.id::text
        from payments p
        left join (select payment_id, coalesce(sum(amount_cents) filter (where kind = 'earning'), 0) as earned,
                          -coalesce(sum(amount_cents) filter (where kind = 'reversal'), 0) as reversed,
                          -coalesce(sum(amount_cents) filter (where kind = 'correction'), 0) as corrected
                     from commissions where app_id = ${appId} group by 1) c on c.payment_id = p.id
       where p.app_id = ${appId}
         and (p.earned_cents, p.reversed_cents, p.corrected_cents)
             <> (coalesce(c.earned, 0), coalesce(c.reversed, 0), coalesce(c.corrected, 0))`,
  ),
  byStatement(
    'one_earning_per_payment',
    'A payment has at most one uncorrected earning under all of its references, and an event has at most one earning.',
    (sql, appId) => sql.fragment`
      select id::text
        from (select id, count(*) over (partition by payment_id) as of_payment, count(*) over (partition by event_id) as of_event
                from commissions where app_id = ${appId} and kind = 'earning') c
       where of_payment > 1 or of_event > 1
      union
      select c.id::text
        from payments p
        join commissions c on c.payment_id = p.id and c.kind = 'earning'
       where p.app_id = ${appId} and p.earned_cents > p.reversed_cents + p.corrected_cents
         and (${keptRow(sql, sql.fragment`p`, sql.fragment`p.ref`)}) <> p.id`,
  ),
  byStatement(
    'corrections_have_their_cause',
    'A correction takes back the rest of an earning because an earlier earning of the same payment stays.',
    (sql, appId) => sql.fragment`
      select r.id::text
        from commissions r
        left join payments p on p.id = r.payment_id
        left join commissions k on k.id = r.duplicate_of_commission_id and k.kind = 'earning'
        left join payments kept on kept.id = k.payment_id
       where r.app_id = ${appId} and r.kind = 'correction'
         and (r.reason is null or r.amount_cents >= 0 or k.id is null or k.id >= r.reverses_commission_id
              or p.duplicate_of is null or p.earned_cents <> p.reversed_cents + p.corrected_cents
              or kept.id = p.id or (kept.app_id, kept.environment, kept.store) is distinct from (p.app_id, p.environment, p.store)
              or kept.ref not in (select ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref])))
      union all
      select id::text from payments
       where app_id = ${appId} and (duplicate_of is not null or corrected_cents > 0)
         and (duplicate_of is null or earned_cents <> reversed_cents + corrected_cents)`,
  ),
  byStatement(
    'only_production_earns',
    'Sandbox payments have no commissions and no revenue.',
    (sql, appId) => sql.fragment`
      select c.id::text
        from commissions c
        left join payments p on p.id = c.payment_id
        left join events e on e.id = c.event_id
       where c.app_id = ${appId}
         and (c.environment <> 'production' or p.environment <> 'production' or e.environment <> 'production')
      union all
      select v.payment_id::text
        from revenue_entries v
        left join payments p on p.id = v.payment_id
       where v.app_id = ${appId} and (v.environment <> 'production' or p.environment <> 'production')`,
  ),
  byStatement(
    'earnings_fit_their_payment',
    'An earning has the base, time, event, binding, affiliate and link of its payment.',
    (sql, appId) => sql.fragment`
      select c.id::text
        from commissions c
        left join payments p on p.id = c.payment_id
        left join bindings b on b.id = p.binding_id
        left join attributions a on a.id = b.attribution_id
       where c.app_id = ${appId} and c.kind = 'earning'
         and (c.base_cents, c.occurred_at, c.event_id, c.binding_id, c.affiliate_id, c.link_id)
             is distinct from (p.base_cents, p.occurred_at, p.event_id, p.binding_id, a.affiliate_id, a.link_id)`,
  ),
  byStatement(
    'earnings_are_rate_of_base',
    'An earning is its base times its rate, rounded once, and is not due before its payment.',
    (sql, appId) => sql.fragment`
      select id::text
        from commissions
       where app_id = ${appId} and kind = 'earning'
         and (amount_cents <> ${rounded(sql, sql.fragment`base_cents::numeric * rate_bps`, sql.fragment`10000`)}
              or due_at < occurred_at)`,
  ),
  byStatement(
    'conversions_can_be_repeated',
    'A converted amount equals the original amount at the exchange rate that is stored with the event.',
    (sql, appId) => sql.fragment`
      select e.id::text
        from events e
        left join jsonb_to_recordset(${sql.json(UNUSUAL_DECIMALS)}) d (currency text, decimals int) on d.currency = e.currency
        left join payments p on p.event_id = e.id
       where e.app_id = ${appId} and e.fx_units is not null
         and (e.amount_cents is distinct from ${rounded(
           sql,
           sql.fragment`e.amount_minor * 100 * e.fx_worth_usd`,
           sql.fragment`e.fx_units * 10 ^ coalesce(d.decimals, 2)::numeric`,
         )} or p.base_cents is distinct from e.amount_cents)`,
  ),
  byStatement(
    'reversals_follow_their_earning',
    'A reversal or correction has the payment, affiliate, link, rate, user and due date of its earning.',
    (sql, appId) => sql.fragment`
      select r.id::text
        from commissions r
        left join commissions e on e.id = r.reverses_commission_id
       where r.app_id = ${appId}
         and case r.kind when 'earning' then r.reverses_commission_id is not null
             else (e.kind, r.payment_id, r.affiliate_id, r.link_id, r.rate_bps, r.customer_user_id, r.due_at)
                  is distinct from
                  ('earning', e.payment_id, e.affiliate_id, e.link_id, e.rate_bps, e.customer_user_id, e.due_at) end`,
  ),
  byStatement(
    'never_more_reversed_than_earned',
    'The reversed and corrected amount of a payment is between zero and its earning.',
    (sql, appId) => sql.fragment`
      select payment_id::text
        from commissions
       where app_id = ${appId}
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
  byStatement(
    'adjustments_are_booked',
    'A refund or dispute of an attributed payment is booked with its amount, whichever reference of the payment it names.',
    (sql, appId) => sql.fragment`
      select a.id::text
        from adjustments a
       cross join lateral (${keptRow(sql, sql.fragment`a`, sql.fragment`a.payment_ref`)}) kept
        join payments p on p.id = kept.id
        join events e on e.id = a.event_id
        join deliveries d on d.id = e.delivery_id
       where a.app_id = ${appId} and a.environment = 'production' and not a.reverses_all and d.completed_at is not null
         and (a.currency = p.currency or a.usd_cents::numeric * p.amount_minor >= p.usd_cents)
         and case when a.state = 'applied' and a.amount_minor > 0 and not exists (
                    select from same_payment_refs(a.app_id, a.environment, a.store, array[a.payment_ref]) n
                      join adjustments u on u.app_id = a.app_id and u.environment = a.environment and u.store = a.store
                                        and u.payment_ref = n.ref collate "default"
                     where u.kind = a.kind and u.reverses_all and u.state = 'reversed'
                       and u.occurred_at >= a.occurred_at)
             then a.booked_payment_id is distinct from p.id
                  or (a.currency = p.currency and a.booked_minor <> a.amount_minor)
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

/** Adds the violations of two apps. */
function merge(one: Violations, other: Violations): Violations {
  return {
    violations: one.violations + other.violations,
    examples: [...one.examples, ...other.examples].slice(0, MOST_EXAMPLES),
  };
}

/**
 * Runs one check over the rows of an app. Throws `LedgerCheckTooLong` if `isOver` returns true before a statement, or if a
 * statement is too large.
 */
export async function runLedgerCheck(
  sql: Sql,
  { name, find }: LedgerCheck,
  appId: AppId,
  isOver: () => boolean,
): Promise<Violations> {
  if (isOver()) throw new LedgerCheckTooLong(`there was no time left for ${name}`);
  try {
    return await find(sql, appId, isOver);
  } catch (error) {
    throw isStatementTooLarge(error)
      ? new LedgerCheckTooLong(`${name} needs too much time, memory or disk`, { cause: error })
      : error;
  }
}

/**
 * Runs all checks over the rows of these apps, one statement after the other. Each statement reads one snapshot, so the
 * checks can run while the service works. They read all money of an app: `isOver` is called before each statement. If
 * it returns true, or if a statement is too large, this throws `LedgerCheckTooLong`.
 */
export async function checkLedger(
  sql: Sql,
  appIds: readonly AppId[],
  isOver: () => boolean = () => false,
): Promise<LedgerCheckResult[]> {
  const results: LedgerCheckResult[] = [];
  for (const check of LEDGER_CHECKS) {
    const { name, description } = check;
    let found: Violations = { violations: 0, examples: [] };
    for (const appId of appIds) found = merge(found, await runLedgerCheck(sql, check, appId, isOver));
    results.push({ name, ok: found.violations === 0, description, ...found });
  }
  return results;
}
