import { CURRENCY_DECIMALS } from '../../domain/money.ts';
import { compareRollups } from '../rollups.ts';
import type { Fragment, Sql } from '../sql.ts';
import { byPages, byStatement, keptRow, MOST_EXAMPLES, rounded } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** Whether a payment `p` has another reference. Few have one, and the search for their rows costs more than this look-up. */
const hasAlias = (sql: Sql): Fragment => sql.fragment`
  exists (select from payment_aliases l
           where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.alias_ref = p.ref
          union all
          select from payment_aliases l
           where l.app_id = p.app_id and l.environment = p.environment and l.store = p.store and l.payment_ref = p.ref)`;

/** The currencies that do not have two decimals. */
const UNUSUAL_DECIMALS = [...CURRENCY_DECIMALS].map(([currency, decimals]) => ({ currency, decimals }));

/** Sums, and what each payment earned. */
export const EARNING_CHECKS: readonly LedgerCheck[] = [
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
       where p.app_id = ${appId} and p.earned_cents > p.reversed_cents + p.corrected_cents and ${hasAlias(sql)}
         and (${keptRow(sql, sql.fragment`p`, sql.fragment`p.ref`)}) <> p.id`,
  ),
  byStatement(
    'corrections_have_their_cause',
    'A correction takes back the rest of an earning because another one of the same payment stays: the earlier one, or that of the whole payment beside a part.',
    (sql, appId) => sql.fragment`
      select r.id::text
        from commissions r
        left join payments p on p.id = r.payment_id
        left join commissions k on k.id = r.duplicate_of_commission_id and k.kind = 'earning'
        left join payments kept on kept.id = k.payment_id
        left join lateral whole_payment(p) whole on true
       where r.app_id = ${appId} and r.kind = 'correction'
         and (r.reason is null or r.amount_cents >= 0 or k.id is null
              or (k.id >= r.reverses_commission_id and not is_part_of(p, whole))
              or p.duplicate_of is null or p.earned_cents <> p.reversed_cents + p.corrected_cents
              or kept.id = p.id or (kept.app_id, kept.environment, kept.store) is distinct from (p.app_id, p.environment, p.store)
              or kept.ref not in (select ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref])))
      union all
      select id::text from payments
       where app_id = ${appId} and (duplicate_of is not null or corrected_cents > 0)
         and (duplicate_of is null or earned_cents <> reversed_cents + corrected_cents)`,
  ),
  byPages(
    'payments_earn_on_the_whole',
    'A payment that was reported in parts, such as an invoice with two payment intents, earns on what was paid in all, and not on a part.',
    (sql) => sql.fragment`payments`,
    (sql) => sql.fragment`
      select p.id::text
        from page p
       where p.binding_id is not null and p.duplicate_of is null and p.recheck_since is null
         and ${hasAlias(sql)} and exists (
           select from same_payment(p.app_id, p.environment, p.store, array[p.ref]) w
            where is_root(w) and is_part_of(p, w) and w.recheck_since is null and w.evaluated_at is not null
              -- The part counts while the whole waits for a rate or a price, and beside a whole that was attributed and earned nothing.
              and (w.likely_cause is null or w.likely_cause not in ('missing_exchange_rate', 'price_unknown'))
              and (w.binding_id is null or w.earned_cents > 0 or p.earned_cents = 0))`,
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
    'An earning has the time, event, binding, affiliate and link of its payment, and its base, except that of a policy.',
    (sql, appId) => sql.fragment`
      select c.id::text
        from commissions c
        left join payments p on p.id = c.payment_id
        left join bindings b on b.id = p.binding_id
        left join attributions a on a.id = coalesce(p.attribution_id, b.attribution_id)
       where c.app_id = ${appId} and c.kind = 'earning'
         and (case when c.policy_version_id is null then c.base_cents else p.base_cents end, c.occurred_at, c.event_id, c.binding_id, c.affiliate_id, c.link_id)
             is distinct from (p.base_cents, p.occurred_at, p.event_id, p.binding_id, a.affiliate_id, a.link_id)`,
  ),
  byStatement(
    'earnings_are_rate_of_base',
    'An earning is its base times its rate, rounded once, except a fixed amount, and is not due before its payment.',
    (sql, appId) => sql.fragment`
      select id::text
        from commissions
       where app_id = ${appId} and kind = 'earning'
         and (flat_cents is null and amount_cents <> ${rounded(sql, sql.fragment`base_cents::numeric * rate_bps`, sql.fragment`10000`)}
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
];
