import pg from 'pg';
import { ID_PREFIXES } from '../../src/domain/ids.ts';
import type { IdKind } from '../../src/domain/ids.ts';
import { createTestDatabase } from './database.ts';
import type { TestDatabase } from './database.ts';

/** Numbers of rows. One app has nearly all of them. */
export const BIG = {
  affiliates: 20_000,
  links: 40_000,
  clicks: 250_000,
  attributions: 25_000,
  bindings: 20_000,
  events: 60_000,
  /** Earnings of four fifths of the events, reversals of one in 25, and two bonuses. */
  commissions: 50_402,
} as const;

/** Changes of settings, creators and links. Half of them are by one key, and a third of one object. */
const AUDIT_ROWS = 30_000;

/** Bonuses and deductions, nearly half of them of one creator. Only the first and the last have their commission. */
const ENTRIES = 10_000;

/** Groups, and as many policies. */
const GROUPS = 1_000;
/** Versions of policies, their assignments to creators, and memberships. Half of them are of one policy, creator and group. */
const TERMS = 10_000;

/** The tables that grow with use. A plan that reads one of them completely is a fault. */
export const LARGE_TABLES = [
  'affiliates',
  'links',
  'clicks',
  'attributions',
  'identities',
  'test_attributions',
  'test_identities',
  'bindings',
  'deliveries',
  'events',
  'payments',
  'payment_users',
  'adjustments',
  'commissions',
  'revenue_entries',
  'entries',
  'codes',
  'payment_codes',
  'payment_user_keys',
  'subscription_codes',
  'manual_attributions',
  'affiliate_groups',
  'group_memberships',
  'policies',
  'policy_versions',
  'policy_assignments',
  'payment_numbers',
  'payout_blocks',
  'payout_runs',
  'payout_run_items',
  'payout_run_exclusions',
  'emails',
  'members',
  'payees',
  'payouts',
  'payout_items',
  'alerts',
  'webhook_endpoints',
  'webhook_messages',
  'webhook_attempts',
  'audit_rows',
  'rollups',
  'rollup_blocks',
] as const;

/** The tables without rows here: they stay small, or nothing reads more than a few of their rows by an id. */
export const OTHER_TABLES: readonly string[] = [
  'account_keys',
  'accounts',
  'address_keys',
  'affiliate_counts',
  'apps',
  'creator_sessions',
  'creator_sign_in_links',
  'deferred_clicks',
  'delivery_bodies',
  'erased_identifiers',
  'erasure_key',
  'erasure_subjects',
  'erasures',
  'duties',
  'exchange_rates',
  'former_addresses',
  'idempotency_keys',
  'identity_secrets',
  'installation',
  'ledger_findings',
  'link_subdomains',
  'losing_touches',
  'operator_sessions',
  'operator_sign_in_links',
  'other_transfers',
  'passkeys',
  'payee_changes',
  'payment_aliases',
  'payout_chain',
  'payout_file_downloads',
  'payout_requests',
  'payout_run_files',
  'payout_schedule_months',
  'payout_transfers',
  'refund_days',
  'refund_deltas',
  'reprocess_changes',
  'reprocess_names',
  'reprocess_runs',
  'retention_progress',
  'rollup_deltas',
  'rollup_repairs',
  'sdk_keys',
  'self_test_requests',
  'sessions',
  'sign_in_links',
  'used_passkey_challenges',
  'user_links',
  'user_transfers',
  'webhook_secrets',
  'weekly_reports',
];

/** An id made from a number, with a valid format and in the order of the numbers. */
const id = (kind: IdKind, number: string) =>
  `('${ID_PREFIXES[kind]}_0' || lpad((${number})::text, 25, '0'))::${kind.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}_id`;

/** The end of the generated two years. */
const END = `timestamptz '2026-06-15 12:00:00+00'`;
const moment = (share: string) =>
  `date_trunc('milliseconds', ${END} - interval '730 days' * (1 - (${share})))`;
/** A reproducible pseudo-random number between 0 and 1. */
const chance = (number: string) => `((hashint4(${number}) & 2147483647) / 2147483648.0)`;

/**
 * Affiliates, links, clicks and users. Links are chosen by the cube of a random number, so a few have most of the
 * clicks; clicks come in groups of ten. The first 3,000 and the last 6,000 links belong to one creator, who has nearly
 * half of all rows. Four small apps share the last twentieth of affiliates and links.
 */
const ARRIVALS = [
  `create unlogged table story_affiliates as
   select n, ${id('affiliate', 'n')} as affiliate_id,
          ${id('app', `case when n <= ${BIG.affiliates * 0.95} then 1 else 2 + n % 4 end`)} as app_id,
          case when n % 2000 = 7 then 'removed' when n % 100 = 3 then 'paused' else 'active' end as status
     from generate_series(1, ${BIG.affiliates}) n`,
  `create unlogged table story_links as
   select l.n, ${id('link', 'l.n')} as link_id, a.app_id, a.affiliate_id, a.n as affiliate
     from generate_series(1, ${BIG.links}) l (n)
     join story_affiliates a on a.n = case when l.n <= 3000 or l.n > 34000 then 1 else 1 + (l.n * 7919) % ${BIG.affiliates} end`,
  `create unlogged table story_clicks as
   select n, floor(power(${chance('n / 10')}, 3) * ${BIG.links})::int + 1 as link,
          ${moment(`(n / 10 * 10) / ${BIG.clicks}.0`)} + n % 10 * interval '1 second' as at
     from generate_series(1, ${BIG.clicks}) n`,
  `create unlogged table story_users as
   select c.n / ${BIG.clicks / BIG.attributions} as n, c.n as click, c.at, l.app_id, l.affiliate_id, l.affiliate, l.link_id,
          ${id('attribution', `c.n / ${BIG.clicks / BIG.attributions}`)} as attribution_id,
          ${id('binding', `c.n / ${BIG.clicks / BIG.attributions}`)} as binding_id
     from story_clicks c join story_links l on l.n = c.link
    where c.n % ${BIG.clicks / BIG.attributions} = 0`,
];

/**
 * Purchases. Of 25 events, 19 are purchases that earned, one more was refunded, three earned nothing, and two are
 * sandbox events, all of one user. Commissions older than 30 days are paid, except those of 300 creators, some of which are overdue.
 */
const PURCHASES = [
  `create unlogged table story_events as
   select e.n, e.at, u.app_id, u.affiliate_id, u.affiliate, u.link_id, u.binding_id, 'user-' || u.n as customer_user_id,
          ${id('event', 'e.n')} as event_id, ${id('delivery', 'e.n')} as delivery_id, ${id('payment', 'e.n')} as payment_id,
          case when e.n % 25 < 19 then 'earned' when e.n % 25 < 20 then 'refunded'
               when e.n % 25 < 23 then 'unattributed' else 'sandbox' end as story
     from (select n, 1 + floor(${chance('n / 5')} * ${BIG.bindings})::int as number,
                  ${moment(`(n / 5 * 5) / ${BIG.events}.0`)} + n % 5 * interval '1 second' as at
             from generate_series(1, ${BIG.events}) n) e
     join story_users u on u.n = e.number`,
  `create unlogged table story_commissions as
   select e.*, k.kind, 200 + affiliate % 7 as cents,
          case when at > ${END} - interval '30 days' then 'pending'
               when affiliate <= 300 and n % 997 = 0 then 'pending'
               when affiliate <= 300 then 'matured' else 'paid' end as status
     from story_events e
     join (values ('earning', 'earned'), ('earning', 'refunded'), ('reversal', 'refunded')) k (kind, story) on k.story = e.story`,
  // Each payout contains the commissions of one creator.
  `create unlogged table story_payouts as
   select affiliate, ${id('payout', 'affiliate')} as payout_id, app_id, affiliate_id, count(*) as items, max(at) as at,
          sum(case kind when 'earning' then cents else -cents end) as cents
     from story_commissions where status = 'paid' group by affiliate, app_id, affiliate_id`,
];

const ROWS_OF_ARRIVALS = [
  `insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at, created_at)
     select ${id('click', 'c.n')}, l.app_id, l.affiliate_id, l.link_id, md5(c.n::text)::uuid, c.n % 50 = 1, c.at, c.at
       from story_clicks c join story_links l on l.n = c.link`,
  `insert into affiliates (id, app_id, name, email, external_id, status, created_at)
     select affiliate_id, app_id, 'Creator ' || (n * 7919) % 20011, 'creator-' || n || '@example.com', 'creator-' || n, status,
            ${moment(`n / ${BIG.affiliates}.0`)}
       from story_affiliates`,
  `insert into affiliate_counts (app_id, status, affiliates) select app_id, status, count(*) from affiliates group by 1, 2`,
  `insert into links (id, app_id, affiliate_id, slug, destination_url, active, created_at)
     select link_id, app_id, affiliate_id, 's-' || n, 'https://example.com/get', n % 200 <> 11, ${moment(`n / ${BIG.links}.0`)}
       from story_links`,
  `insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at, created_at)
     select attribution_id, app_id, 'device-' || n, affiliate_id, link_id, ${id('click', 'click')}, 'claim_token', at, at, at
       from story_users`,
  `insert into identities (app_id, device_id, customer_user_id, position, identified_at, created_at)
     select app_id, 'device-' || n, 'user-' || n, 1, at, at from story_users where n % 10 <> 9`,
  `insert into test_attributions (id, app_id, device_id, affiliate_id, match_method, touched_at, first_open_at, created_at)
     select attribution_id, app_id, 'device-' || n, affiliate_id, 'code', at, at, at from story_users where n % 3 = 0`,
  `insert into test_identities (app_id, device_id, customer_user_id, position, identified_at, created_at)
     select app_id, 'device-' || n, 'user-' || n, 1, at, at from story_users where n % 3 = 0`,
  `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, created_at, first_paid_at, healed_at)
     select binding_id, app_id, 'user-' || n, attribution_id, at, at, case when n % 3 = 0 then at end, at
       from story_users where n <= ${BIG.bindings}`,
];

const ROWS_OF_PURCHASES = [
  `insert into accounts (id, name) select ${id('account', 'n')}, 'Account ' || n from generate_series(1, 2) n`,
  `insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                       deferred_window_minutes, link_subdomain)
     select ${id('app', 'n')}, ${id('account', '1 + n / 5')}, 'App ' || n, 2000, 30, 30, 60, 'app-' || n
       from generate_series(1, 5) n`,
  `insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
     select ${id('secret', 'n')}, ${id('app', 'n')}, 'stripe', 'production', '', 'none', 1 from generate_series(1, 5) n`,
  `insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                             event_id, source_event_id, event_count, completed_at)
     select delivery_id, app_id, 'stripe', at, true, 'processed', 'sec_' || substr(app_id, 5), sha256('x'), event_id,
            'in-' || n, 1, at
       from story_events`,
  `insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                         customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause, created_at)
     select event_id, app_id, delivery_id, 'stripe', 'in-' || n, 'purchase',
            case story when 'sandbox' then 'sandbox' else 'production' end, at, at,
            case when story = 'sandbox' then 'guest' when story <> 'unattributed' then customer_user_id
                 when n % 2 = 0 then 'stranger-' || n end,
            'stripe', 'ref-' || n, 'USD', 1000, 1000,
            case when story = 'unattributed' then case n % 2 when 0 then 'user_never_identified' else 'missing_user_id' end end, at
       from story_events`,
  `insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, usd_cents, occurred_at,
                           only_anonymous_user, version, evaluated_at, base_cents, binding_id, earned_cents, reversed_cents)
     select payment_id, app_id, 'production', 'stripe', 'ref-' || n, event_id, 'USD', 1000, 1000, at, false, 1, at, 1000,
            binding_id, 200 + affiliate % 7, case story when 'refunded' then 200 + affiliate % 7 else 0 end
       from story_events where story in ('earned', 'refunded')`,
  `insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
     select app_id, customer_user_id, payment_id, 'production', 0 from story_events where story in ('earned', 'refunded')`,
  `insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
     select payment_id, 1, app_id, affiliate_id, link_id, 1000, at from story_events where story in ('earned', 'refunded')`,
  `insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                              amount_minor, occurred_at, stated_at, event_id, booked_minor, booked_payment_id)
     select ${id('adjustment', 'n')}, app_id, 'production', 'stripe', 'adj-' || n, 'ref-' || n, 'refund', 'applied', 1, false,
            'USD', 1000, at, at, event_id, 1000, payment_id
       from story_events where story = 'refunded'`,
  `insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents, created_at)
     select payout_id, app_id, affiliate_id, 'Creator', items, cents, at + interval '31 days' from story_payouts where cents > 0`,
  `insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, adjustment_id, kind,
                              reverses_commission_id, status, rate_bps, base_cents, amount_cents, source, customer_user_id,
                              match_method, occurred_at, due_at, matured_at, paid_at, payout_id, created_at)
     select ${id('commission', `case c.kind when 'earning' then c.n else ${BIG.events} + c.n end`)}, c.app_id, c.affiliate_id,
            c.link_id, c.event_id, c.payment_id, c.binding_id,
            case c.kind when 'reversal' then ${id('adjustment', 'c.n')} end, c.kind,
            case c.kind when 'reversal' then ${id('commission', 'c.n')} end, c.status, 2000,
            case c.kind when 'earning' then 1000 else -1000 end, case c.kind when 'earning' then c.cents else -c.cents end,
            'stripe', c.customer_user_id, 'claim_token', c.at, c.at + interval '30 days',
            case when c.status <> 'pending' then c.at + interval '30 days' end,
            case c.status when 'paid' then c.at + interval '31 days' end, p.payout_id, c.at
       from story_commissions c
       left join story_payouts p on c.status = 'paid' and p.affiliate = c.affiliate`,
  `insert into payout_items (payout_id, commission_id, app_id, affiliate_id, amount_cents, position)
     select payout_id, id, app_id, affiliate_id, amount_cents, row_number() over (partition by payout_id order by id)
       from commissions where status = 'paid'`,
  `insert into entries (id, app_id, affiliate_id, category, amount_cents, reason, external_id, due_at, account_id, key_id, created_at)
     select ${id('entry', 'n')}, ${id('app', '1')}, ${id('affiliate', `1 + n % 2 * (n % ${BIG.affiliates})`)}, 'bonus', 100, 'Retainer', 'own-' || n,
            ${moment(`n / ${ENTRIES}.0`)}, ${id('account', '1')}, ${id('key', '1')}, ${moment(`n / ${ENTRIES}.0`)}
       from generate_series(1, ${ENTRIES}) n`,
  `insert into commissions (id, app_id, affiliate_id, entry_id, kind, rate_bps, base_cents, amount_cents, occurred_at, due_at, created_at)
     select ${id('commission', `${2 * BIG.events} + row_number() over ()`)}, app_id, affiliate_id, id, 'bonus', 0, 0, amount_cents,
            created_at, ${END} + interval '1 day', created_at
       from entries where id in ((select min(id::text) from entries), (select max(id::text) from entries))`,
  `insert into account_keys (id, account_id, key_sha256, permissions, display)
     values (${id('key', '1')}, ${id('account', '1')}, sha256('key'), '{payout}', 'tri_sk')`,
  `insert into payout_blocks (id, app_id, affiliate_id, position, reason, account_id, key_id, created_at)
     select ${id('payoutBlock', 'n')}, ${id('app', '1')}, ${id('affiliate', '1')}, n, 'Review', ${id('account', '1')}, ${id('key', '1')},
            ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents, status, created_at, expires_at,
                            approved_at, approved_by, ended_at, paid_count, paid_cents)
     select ${id('payoutRun', 'n')}, ${id('app', '1')}, ${id('account', '1')}, ${id('key', '1')}, at, 0, true, ${TERMS / 2}, ${TERMS / 2}, 'settled', at,
            at + interval '7 days', at, ${id('key', '1')}, at, 0, 0
       from generate_series(1, ${TERMS}) n cross join lateral (select ${moment(`n / ${TERMS}.0`)} as at) m`,
  `insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method)
     select ${id('payoutRunItem', 'n')}, ${id('app', '1')}, ${id('payoutRun', `1 + n % 2 * (${TERMS} - 1)`)}, ${id('affiliate', 'n')}, 'Creator',
            (n + 1) / 2, 1, 'other'
       from generate_series(1, ${TERMS}) n`,
  `insert into payout_run_exclusions (app_id, run_id, affiliate_id, affiliate_name, position, reason, balance_cents, held_cents)
     select app_id, run_id, affiliate_id, affiliate_name, position, 'held', 0, 1 from payout_run_items`,
  `insert into emails (id, app_id, affiliate_id, kind, subject_id, status, created_at, ended_at, next_attempt_at, relay_at)
     select ${id('email', 'n')}, ${id('app', '1')}, ${id('affiliate', '1 + n % 2 * n')}, 'payout_sent', 'trf_' || n, 'skipped', at, at, null, null
       from (select n, ${moment(`n / ${TERMS}.0`)} as at from generate_series(1, ${TERMS}) n) e`,
  // A team without measure, with mails to its members.
  `insert into account_keys (id, account_id, key_sha256, permissions, display, is_member, expires_at)
     select ${id('key', '1000000 + n')}, ${id('account', '1')}, sha256(convert_to('member-' || n, 'UTF8')), '{read}', 'member', true, 'epoch'
       from generate_series(1, ${TERMS}) n`,
  `insert into members (id, account_id, key_id, email, name, role, created_at)
     select ${id('member', 'n')}, ${id('account', '1')}, ${id('key', '1000000 + n')}, 'member-' || n || '@example.com', 'Member ' || n, 'analyst',
            ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into emails (id, account_id, member_id, kind, subject_id, status, created_at, ended_at, next_attempt_at, relay_at)
     select ${id('email', '1000000 + n')}, ${id('account', '1')}, ${id('member', '1 + n % 2 * n')}, 'member_invitation', 'eml_' || n, 'skipped', at, at, null, null
       from (select n, ${moment(`n / ${TERMS}.0`)} as at from generate_series(1, ${TERMS} - 1) n) e`,
  `insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id, account_id, set_by, set_at, counts_from)
     select ${id('payee', 'n')}, ${id('app', '1')}, ${id('affiliate', `case when n <= ${TERMS} then 1 else n - ${2 * TERMS} + ${BIG.affiliates * 0.95} end`)},
            case when n <= ${TERMS} then n else 1 end, 'paypal', 'sealed', 'key', ${id('account', '1')}, ${id('key', '1')}, at,
            at + interval '72 hours'
       from (select n, ${moment(`n / ${2 * TERMS}.0`)} as at from generate_series(1, ${2 * TERMS}) n) v`,
  `insert into codes (id, app_id, affiliate_id, namespace, value, created_at)
     select ${id('code', 'n')}, ${id('app', '1')}, ${id('affiliate', `1 + n % 2 * (n % ${BIG.affiliates})`)}, 'attribute', 'code-' || n,
            ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into payment_codes (app_id, environment, store, payment_ref, namespace, value)
     select app_id, environment, store, ref, 'attribute', 'code-1' from payments`,
  `insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
     select app_id, 'stripe', 'sub_' || ref, id, environment, 0 from payments`,
  `insert into subscription_codes (app_id, environment, source, user_key, namespace, value, used_at)
     select app_id, environment, 'stripe', 'sub_' || ref, 'attribute', 'code-1', occurred_at from payments`,
  `update apps set purchase_codes = 'when_unattributed' where id = ${id('app', '1')}`,
  `update apps set purchase_codes_from = null where id = ${id('app', '1')}`,
  `insert into manual_attributions (id, app_id, binding_id, position, attribution_id, effective_from, payments, earned_cents, reason,
                                     account_id, key_id, created_at)
     select ${id('manualAttribution', 'n')}, ${id('app', '1')}, ${id('binding', '1')}, n, null, ${moment(`n / ${TERMS}.0`)}, 0, 0, 'Support',
            ${id('account', '1')}, ${id('key', '1')}, ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into affiliate_groups (id, app_id, name, created_at)
     select ${id('group', 'n')}, ${id('app', '1')}, 'Group', ${moment(`n / ${GROUPS}.0`)} from generate_series(1, ${GROUPS}) n`,
  `insert into policies (id, app_id, name, created_at)
     select ${id('policy', 'n')}, ${id('app', '1')}, 'Policy', ${moment(`n / ${GROUPS}.0`)} from generate_series(1, ${GROUPS}) n`,
  `insert into policy_versions (id, app_id, policy_id, version, effective_from, terms, created_at)
     select ${id('policyVersion', 'n')}, ${id('app', '1')}, ${id('policy', `1 + n % 2 * (n % ${GROUPS})`)}, n, ${moment(`n / ${TERMS}.0`)},
            '{"base":"gross","rules":[{"percentBps":2000}]}', ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into policy_assignments (app_id, affiliate_id, position, policy_id, effective_from, created_at)
     select ${id('app', '1')}, ${id('affiliate', `1 + n % 2 * (n % ${BIG.affiliates})`)}, n, ${id('policy', `1 + n % ${GROUPS}`)},
            ${moment(`n / ${TERMS}.0`)}, ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into policy_assignments (app_id, group_id, position, policy_id, effective_from, created_at)
     select ${id('app', '1')}, ${id('group', 'n')}, 1, ${id('policy', 'n')}, ${moment(`n / ${GROUPS}.0`)}, ${moment(`n / ${GROUPS}.0`)}
       from generate_series(1, ${GROUPS}) n`,
  `insert into group_memberships (app_id, affiliate_id, position, group_id, effective_from, created_at)
     select ${id('app', '1')}, ${id('affiliate', `1 + n % ${BIG.affiliates}`)}, n, ${id('group', `1 + n % 2 * (n % ${GROUPS})`)},
            ${moment(`n / ${TERMS}.0`)}, ${moment(`n / ${TERMS}.0`)}
       from generate_series(1, ${TERMS}) n`,
  `insert into payment_numbers (payment_id, app_id, subject_id, number, first_paid_at, created_at)
     select id, app_id, binding_id, row_number() over (partition by binding_id order by id),
            min(occurred_at) over (partition by binding_id), occurred_at
       from payments where binding_id is not null and app_id = ${id('app', '1')}`,
  `update apps set policies_from = ${moment('0')}, assigns_policies_to_creators = true where id = ${id('app', '1')}`,
  `insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, slot)
     select 'whe_' || n / 5 * 2 || lpad(n::text, 25, '0'), ${id('app', '1 + n % 5')}, 'https://example.com/hook', '{commission.created}',
            'sec_0' || lpad(n::text, 25, '0'), '', 'none', 1 + n / 5 from generate_series(0, 9) n`,
  `insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, slot, deactivated_at,
                                    deactivated_reason)
     select 'whe_1' || lpad(n::text, 25, '0'), ${id('app', '1')}, 'https://example.com/hook', '{commission.created}',
            'sec_1' || lpad(n::text, 25, '0'), '', 'none', null, ${moment('n / 10000.0')}, 'deleted' from generate_series(0, 9999) n`,
  `insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data, status, attempts, next_attempt_at, relay_at,
                                   created_at, completed_at)
     select 'msg_0' || lpad(n::text, 25, '0'), app_id, 'whe_' || n % 2 * 2 || lpad((substr(app_id, 6)::int - 1 + n % 2 * 5)::text, 25, '0'),
            case n % 4 when 0 then 'commission.matured' else 'commission.created' end, commission_id,
            '{}', case when n % 50 = 0 then 'failed' else 'delivered' end, 1, null, null, at, at
       from (select n, app_id, at, ${id('commission', 'n')} as commission_id from story_events where story = 'earned') m`,
  `insert into webhook_attempts (message_id, number, started_at, duration_ms, status_code)
     select m.id, k, m.created_at, 5, 200 from webhook_messages m cross join generate_series(1, 2) k`,
  // Ten open ones, in between.
  `insert into alerts (id, app_id, rule, subject, facts, opened_at, closed_at)
     select ${id('alert', 'n')}, ${id('app', '1')}, 'deliveries_failing', 'provider-' || n % 10 || case when n % 1000 = 0 then n::text else '' end,
            '{}', at, case when n % 1000 <> 0 then at + interval '1 hour' end
       from (select n, ${moment(`n / ${TERMS}.0`)} as at from generate_series(1, ${TERMS}) n) v`,
  `insert into audit_rows (id, account_id, app_id, changed_at, actor_kind, key_id, action, object_kind, object_id, after)
     select ${id('audit', 'n')}, ${id('account', '1')}, ${id('app', '1 + n % 10 / 9')}, ${moment(`n / ${AUDIT_ROWS}.0`)}, 'key',
            ${id('key', 'case n % 2 when 0 then 1 else 2 + n % 100 end')}, 'changed', case n % 3 when 0 then 'app' else 'affiliate' end,
            case n % 3 when 0 then ${id('app', '1')}::text else ${id('affiliate', `1 + n % ${BIG.affiliates}`)} end, '{}'
       from generate_series(1, ${AUDIT_ROWS}) n`,
  `insert into erasures (id, app_id, user_hash, pseudonym, finished_at)
     select ${id('erasure', 'row_number() over ()')}, id, sha256(convert_to(id, 'UTF8')), 'erased:' || left(md5(id), 22), now() from apps`,
];

/** How many of the latest quarter hours with clicks of a link are in the tail, as if the folder had stood still. */
const UNFOLDED = 1_000;

/** The sums that the triggers and the folder would have written. */
function sums(): string[] {
  const columns = ['clicks', 'installs', 'identified', 'paid_users', 'revenue_cents', 'commission_cents'];
  const ofStatus = ['matured_cents', 'paid_cents', 'matured_count'];
  const sum = (names: readonly string[]) => names.map((name) => `sum(${name})`).join(', ');
  const all = [...columns, ...ofStatus];
  const ofLinks = `select app_id, affiliate_id, link_id, rollup_bucket(at) as bucket_at, ${all
    .map((name) => `sum(${name}::int)::int as ${name}`)
    .join(', ')} from rollup_facts group by 1, 2, 3, 4`;
  const scopes = { app: 'app_id::text', affiliate: 'affiliate_id::text', link: 'link_id::text' };
  return [
    `create unlogged table story_sums as ${ofLinks}`,
    `with latest as (
       delete from story_sums where ctid in (select ctid from story_sums order by bucket_at desc limit ${UNFOLDED}) returning *)
     insert into rollup_deltas (app_id, affiliate_id, link_id, bucket_at, ${all.join(', ')})
     select app_id, affiliate_id, link_id, bucket_at, ${all.join(', ')} from latest`,
    ...Object.entries(scopes).flatMap(([scope, scopeId]) => [
      `insert into rollups (app_id, scope, scope_id, bucket_at, ${columns.join(', ')})
       select app_id, '${scope}', ${scopeId}, bucket_at, ${scope === 'link' ? columns.join(', ') : sum(columns)}
         from story_sums where ${scopeId} is not null ${scope === 'link' ? '' : 'group by 1, 2, 3, 4'}`,
      `insert into rollup_blocks (app_id, scope, scope_id, block_at, ${columns.join(', ')})
       select app_id, '${scope}', ${scopeId}, rollup_block(bucket_at), ${sum(columns)} from story_sums where ${scopeId} is not null group by 1, 2, 3, 4`,
    ]),
    `insert into rollups (app_id, scope, scope_id, bucket_at, ${all.join(', ')})
     select app_id, 'app', app_id::text, '-infinity', ${sum(all)} from story_sums group by 1`,
    `insert into rollups (app_id, scope, scope_id, bucket_at, ${all.join(', ')}, rank_value, affiliate_status)
     select a.app_id, 'affiliate', a.affiliate_id::text, '-infinity', ${all.map((name) => `coalesce(sum(${name}), 0)`).join(', ')}, coalesce(sum(commission_cents), 0), a.status
       from story_affiliates a left join story_sums using (app_id, affiliate_id) group by a.app_id, a.affiliate_id, a.status`,
    `insert into rollups (app_id, scope, scope_id, bucket_at, ${all.join(', ')}, rank_value, link_affiliate_id)
     select app_id, 'link', link_id::text, '-infinity', ${sum(all)}, sum(clicks), affiliate_id
       from story_sums where link_id is not null group by app_id, link_id, affiliate_id`,
  ];
}

/** Makes all tables unlogged. A table that a logged table references has to wait for that one. */
const UNLOGGED = `
  do $$
  declare t regclass;
  begin
    loop
      for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relpersistence = 'p' loop
        begin
          execute format('alter table %s set unlogged', t);
        exception when invalid_table_definition then null;
        end;
      end loop;
      exit when not exists (
        select from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relpersistence = 'p');
    end loop;
  end $$`;

/** Removes the checks of the domains. Checking the format of every generated id would take half of the time. */
const WITHOUT_DOMAIN_CHECKS = `
  do $$
  declare c record;
  begin
    for c in select contypid::regtype as domain, conname from pg_constraint where contypid <> 0 loop
      execute format('alter domain %s drop constraint %I', c.domain, c.conname);
    end loop;
  end $$`;

/** Disables all indexes until they are rebuilt. */
const WITHOUT_INDEXES = `
  update pg_index set indisready = false, indisvalid = false
   where indrelid in (${LARGE_TABLES.map((table) => `'${table}'::regclass`).join(', ')})`;

/**
 * Creates a database as a busy service has it after two years: see `BIG`. A superuser inserts the rows in SQL, on two
 * connections, with triggers and foreign keys disabled. Indexes are built after that.
 */
export async function createBigDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  const [one, other] = [new pg.Client(database.url), new pg.Client(database.url)];
  const inTurn = async (client: pg.Client, statements: readonly string[]) => {
    for (const statement of statements) await client.query(statement);
  };
  const remaining = LARGE_TABLES.filter((table) => !table.startsWith('rollup'));
  const finish = (table: string) => [`reindex table ${table}`, `vacuum analyze ${table}`];
  const finishRemaining = async (client: pg.Client) => {
    for (let next = remaining.shift(); next !== undefined; next = remaining.shift())
      await inTurn(client, finish(next));
  };
  try {
    for (const client of [one, other]) {
      await client.connect();
      await inTurn(client, [
        'set session_replication_role = replica',
        `set maintenance_work_mem = '256MB'`,
        `set work_mem = '256MB'`,
        'set max_parallel_maintenance_workers = 0',
      ]);
    }
    await inTurn(one, [UNLOGGED, WITHOUT_DOMAIN_CHECKS, WITHOUT_INDEXES, ...ARRIVALS]);
    // Later statements need current statistics.
    const analyzed = (statements: readonly string[]) =>
      statements.flatMap((statement) => [
        statement,
        `analyze ${/^\w+ into (\w+)/.exec(statement)?.[1] ?? ''}`,
      ]);
    await Promise.all([
      inTurn(one, analyzed(ROWS_OF_ARRIVALS)),
      inTurn(other, [...PURCHASES, ...analyzed(ROWS_OF_PURCHASES)]),
    ]);
    await Promise.all([
      inTurn(one, [...sums(), ...['rollups', 'rollup_blocks', 'rollup_deltas'].flatMap(finish)]).then(() =>
        finishRemaining(one),
      ),
      finishRemaining(other),
    ]);
  } finally {
    await Promise.all([one.end(), other.end()]);
  }
  return database;
}
