import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import { listAppIds } from '../../src/db/apps.ts';
import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import { importRates } from '../../src/db/rates.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { earnByPolicy, moveToGroup } from '../support/policies.ts';
import { runOn } from '../support/postgres-admin.ts';
import {
  bodyOf,
  revenuecatEvent,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
} from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;
let other: Founder;
let damaged: Sql;
let response: { status: number; body: LedgerCheck };

interface LedgerCheck {
  readonly ok: boolean;
  readonly checkedAt: number;
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly violations: number;
    readonly examples: readonly string[];
  }[];
}

/** Creates rows of every kind: purchases, conversions, refunds, disputes, a payout, and payments that earn nothing. */
async function recordAllKinds(owner: Founder): Promise<void> {
  const due = Date.now() - 40 * DAY_MS;
  const user = await owner.customer();
  const bought = [19.99, 4.99, 0.99].map((usd) =>
    owner.purchase(user, usd, { occurredAt: due, transactionId: `t-${usd}` }),
  );
  await Promise.all(bought);
  for (const currency of ['eur', 'jpy', 'kwd']) {
    await owner.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 1_999, currency, occurredAt: due })));
  }
  await owner.exportCsv();
  await owner.refund(user, 5, 't-19.99');
  const paymentIntentId = `pi_${randomBytes(6).toString('hex')}`;
  await owner.stripe(bodyOf(stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId })));
  for (const [type, status] of [
    ['charge.dispute.created', 'needs_response'],
    ['charge.dispute.closed', 'won'],
  ] as const) {
    await owner.stripe(
      bodyOf(stripeDispute({ id: `du_${paymentIntentId}`, paymentIntentId, type, status, amount: 1_000 })),
    );
  }
  await owner.purchase(user, 30, { occurredAt: Date.now() - DAY_MS });
  await owner.purchase('unknown-user', 12);
  const { affiliateId: creatorId } = await owner.newAffiliate('Creator with a bonus');
  const path = `/apps/${owner.app.id}/affiliates/${creatorId}/entries`;
  for (const [n, amountCents] of [500, -200, 300].entries()) {
    const body = { amountCents, category: 'other', reason: 'A test', externalId: `entry-${n}` };
    const entry = await owner.ok<{ id: string }>('POST', path, body);
    if (amountCents === 300)
      await owner.ok('POST', `/apps/${owner.app.id}/entries/${entry.id}/undo`, { reason: 'A mistake' });
  }
  const policed = await owner.newAffiliate('Creator with a policy');
  await earnByPolicy(
    owner,
    service.sql,
    {
      base: 'proceeds',
      rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 100 }, { percentBps: 5_000 }],
    },
    { scope: { affiliateId: policed.affiliateId } },
  );
  const group = await owner.ok<{ id: string }>('POST', `/apps/${owner.app.id}/groups`, { name: 'VIPs' });
  await moveToGroup(owner, service.sql, policed.affiliateId, group.id);
  const customer = await owner.customer(policed.slug);
  for (const days of [3, 2]) await owner.purchase(customer, 20, { occurredAt: Date.now() - days * DAY_MS });
  await owner.ok('POST', `/apps/${owner.app.id}/manual-attributions`, {
    customerUserId: customer,
    affiliateId: owner.affiliateId,
    reason: 'A test',
  });
  await owner.purchase(customer, 20, { occurredAt: Date.now() + 1_000 });
  await owner.ok('PATCH', `/apps/${owner.app.id}/settings`, { purchaseCodes: 'when_unattributed' });
  const code = { namespace: 'app_store', value: 'SPRING20' };
  await owner.ok('POST', `/apps/${owner.app.id}/affiliates/${owner.affiliateId}/codes`, code);
  const coded = { userId: 'coded-user', usd: 20, occurredAt: Date.now() + 1_000 };
  await owner.revenuecat(bodyOf(revenuecatEvent({ ...coded, extra: { offer_code: 'SPRING20' } })));
  const { affiliateId, slug } = await owner.newAffiliate('Paused creator');
  const userOfPaused = await owner.customer(slug);
  await owner.ok('PATCH', `/apps/${owner.app.id}/affiliates/${affiliateId}`, { status: 'paused' });
  await owner.purchase(userOfPaused, 8);
}

beforeAll(async () => {
  service = await startTestService();
  const day = new Date(Date.now() - 41 * DAY_MS).toISOString().slice(0, 10);
  await importRates(service.sql, {
    source: 'ecb',
    rates: [
      { currency: 'EUR', day, units: '1', worthUsd: '1.0558' },
      { currency: 'JPY', day, units: '162.34', worthUsd: '1.0558' },
      { currency: 'KWD', day, units: '0.32415', worthUsd: '1.0558' },
    ],
  });
  founder = await setUpFounder(service);
  other = await setUpFounder(service);
  for (const owner of [founder, other]) await recordAllKinds(owner);
  await eventually('all due commissions have matured', async () => {
    const { late } = await service.sql.one<{ late: number }>`
      select count(*) as late from commissions where status = 'pending' and due_at < now()`;
    return late === 0;
  });
  response = await founder.call<LedgerCheck>('GET', `/apps/${founder.app.id}/diagnostics/ledger`);
  damaged = connect({ url: service.database.url, max: 1 });
});
afterAll(async () => {
  await damaged.close();
  await service.close();
});

/** Converts a statement to the form in which a tag of a template receives it. */
const asTemplate = (text: string) => Object.assign([text], { raw: [text] }) as TemplateStringsArray;

/**
 * Damages the ledger without triggers and foreign keys, calls `work` and rolls back. All of it runs in one transaction:
 * a copy of the database for each damage would take ten times as long.
 */
async function withDamage<T>(
  statements: readonly string[],
  work: (sql: Sql, damagedId: string) => Promise<T>,
): Promise<T> {
  await damaged`begin`;
  try {
    await damaged`set local session_replication_role = replica`;
    let damagedId = '';
    for (const statement of statements) {
      const [row] = await damaged<{ id?: string }>(asTemplate(statement));
      damagedId = row?.id ?? damagedId;
    }
    return await work(damaged, damagedId);
  } finally {
    await damaged`rollback`;
  }
}

/** Returns the examples of each failed check of the founder's app. */
async function findingsIn(sql: Sql): Promise<Record<string, readonly string[]>> {
  const checks = await checkLedger(sql, [founder.app.id as AppId]);
  return Object.fromEntries(checks.filter((check) => !check.ok).map((check) => [check.name, check.examples]));
}

/** Replaces `{mine}` and `{other}` by the ids of the apps. */
const fill = (statement: string) =>
  statement.replaceAll('{mine}', `'${founder.app.id}'`).replaceAll('{other}', `'${other.app.id}'`);

const of = (table: string, condition: string) =>
  `(select id from ${table} where app_id = {mine} and ${condition} order by id limit 1)`;
const anEarning = of(
  'commissions',
  "kind = 'earning' and status = 'matured' or kind = 'earning' and status = 'pending'",
);
const aReversal = of('commissions', "kind = 'reversal' and amount_cents < 0");
const aPaid = of('commissions', "status = 'paid'");
const aPayout = of('payouts', 'true');
const aBonus = of('entries', 'amount_cents = 500');
const aPolicyEarning = of('commissions', "kind = 'earning' and policy_version_id is not null");

/** Dates a payment ahead, which earned by a policy long after the upgrade that reads the time of receipt; a version takes effect in between. */
const DATED_AHEAD = [
  `update migrations set run_on = '2000-01-01' where name = '0204_payments_dated_ahead'`,
  `insert into policy_versions select (jsonb_populate_record(v, jsonb_build_object(
            'id', 'plv_01h455vb4pex5vsknk084sn02q', 'version', 9, 'effective_from', now() + interval '12 hours'))).*
     from policy_versions v where app_id = {mine} limit 1`,
  `update payments set occurred_at = now() + interval '1 day' where id = (select payment_id from commissions where id = ${aPolicyEarning})`,
  `update commissions set occurred_at = now() + interval '1 day' where id = ${aPolicyEarning} returning id`,
];

const ofOther = (table: string, condition = 'true') =>
  `(select id from ${table} where app_id = {other} and ${condition} order by id limit 1)`;

/** Returns a statement that copies an earning, with changes. */
const copied = (changes: string) =>
  `insert into commissions select (jsonb_populate_record(c, ${changes})).* from commissions c
    where id = ${anEarning} returning id`;

describe('a ledger written by the service', () => {
  // @promise get-ledger-check
  test('GET /apps/:appId/diagnostics/ledger finds no violation in a ledger written by the service', () => {
    expect(response.status).toBe(200);
    const { ok, checkedAt, checks } = response.body;
    expect(checks.filter((check) => !check.ok)).toEqual([]);
    expect(ok).toBe(true);
    expect(Math.abs(Date.now() - checkedAt)).toBeLessThan(60_000);
    expect(checks[0]).toEqual({
      name: 'rollups_equal_facts',
      ok: true,
      description: expect.any(String),
      violations: 0,
      examples: [],
    });
  });

  test('the ledger under test has every kind of row that the checks read', async () => {
    const found = await service.sql.one`
      select exists (select from commissions where kind = 'earning' and status = 'paid') as paid,
             exists (select from commissions where status = 'matured') as matured,
             exists (select from commissions where status = 'pending') as pending,
             exists (select from commissions where kind = 'reversal' and amount_cents > 0) as undone,
             (select count(*) from events where fx_units is not null) as converted,
             (select max(item_count) from payouts) as items`;
    expect(found).toEqual({ paid: true, matured: true, pending: true, undone: true, converted: 6, items: 6 });
  });
});

/** The check that must find the damage, the damage, and its statements. The last statement returns the expected example. */
const DAMAGES: readonly (readonly [check: string, title: string, statements: readonly string[]])[] = [
  [
    'rollups_equal_facts',
    'a changed sum of a dashboard',
    [
      `insert into rollups (app_id, scope, scope_id, bucket_at, revenue_cents)
       values ({mine}, 'app', {mine}, '-infinity', 1)
       on conflict (app_id, scope, scope_id, bucket_at) do update set revenue_cents = rollups.revenue_cents + 1
       returning scope_id as id`,
    ],
  ],
  [
    'payment_sums_equal_commissions',
    'a changed sum of a payment',
    [
      `update payments set earned_cents = earned_cents + 1
         where id = (select payment_id from commissions where id = ${anEarning}) returning id`,
    ],
  ],
  [
    'payment_sums_equal_commissions',
    'a deleted commission',
    [`delete from commissions where id = ${anEarning} returning payment_id as id`],
  ],
  [
    'one_earning_per_payment',
    'a second earning for a payment',
    [
      'drop index one_earning_per_payment',
      'drop index one_earning_per_event',
      copied(`'{"id": "com_01h455vb4pex5vsknk084sn02q"}'`),
    ],
  ],
  [
    'one_earning_per_payment',
    'an earning of a payment that earned under another reference',
    [
      `insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
         select p.app_id, p.environment, p.store, p.ref, q.ref
           from payments p join payments q on q.app_id = p.app_id and q.environment = p.environment and q.store = p.store
                                          and q.id <> p.id and (q.currency <> p.currency or q.amount_minor <= p.amount_minor)
          where p.app_id = {mine}
            and exists (select from commissions c where c.payment_id = p.id and c.kind = 'earning')
            and exists (select from commissions c where c.payment_id = q.id and c.kind = 'earning') limit 1
         returning (select max(c.id::text) from commissions c join payments x on x.id = c.payment_id
                     where c.kind = 'earning' and x.app_id = payment_aliases.app_id and x.ref in (alias_ref, payment_ref)) as id`,
    ],
  ],
  [
    'payments_earn_on_the_whole',
    'a payment that earned on a part of what was paid',
    [
      `with tied as (
         insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
         select p.app_id, p.environment, p.store, p.ref, q.ref
           from payments p join payments q on q.app_id = p.app_id and q.environment = p.environment and q.store = p.store
                                          and q.currency = p.currency and q.amount_minor > p.amount_minor
          where p.app_id = {mine} and p.binding_id is not null and p.duplicate_of is null and p.recheck_since is null
            and q.evaluated_at is not null and q.recheck_since is null and q.likely_cause is null
            and (q.binding_id is null or q.earned_cents > 0)
            and not exists (select from payment_aliases a where a.app_id = p.app_id
                               and (a.alias_ref in (p.ref, q.ref) or a.payment_ref in (p.ref, q.ref))) limit 1
         returning app_id, alias_ref)
       select p.id from tied join payments p on p.app_id = tied.app_id and p.ref = tied.alias_ref`,
    ],
  ],
  [
    'corrections_have_their_cause',
    'a correction of an earning that earned once',
    [
      copied(`jsonb_build_object('id', 'com_01h455vb4pex5vsknk084sn02q', 'kind', 'correction', 'amount_cents', -c.amount_cents,
        'reverses_commission_id', c.id, 'duplicate_of_commission_id', c.id, 'reason', 'earned_under_another_reference')`),
    ],
  ],
  [
    'corrections_have_their_cause',
    'a duplicate of which a part of the earning is left',
    [
      `update payments set duplicate_of = (select p.id from payments p where p.app_id = {mine} and p.id <> payments.id limit 1)
          where id = (select payment_id from commissions where id = ${anEarning}) returning id`,
    ],
  ],
  [
    'adjustments_are_booked',
    'a refund that is not booked',
    [
      `update adjustments set booked_minor = 0, booked_payment_id = null
          where id = ${of('adjustments', "state = 'applied'")} returning id`,
    ],
  ],
  [
    'adjustments_are_booked',
    'a won dispute that is still booked',
    [
      `update adjustments a set booked_minor = 5
          where id = ${of('adjustments', "state = 'reversed' and booked_payment_id is not null")} returning id`,
    ],
  ],
  [
    'only_production_earns',
    'an earning of a sandbox payment',
    [
      `update payments set environment = 'sandbox' where id = (select payment_id from commissions where id = ${anEarning})`,
      `select ${anEarning} as id`,
    ],
  ],
  [
    'only_production_earns',
    'an earning of a sandbox event',
    [
      `update events set environment = 'sandbox' where id = (select event_id from commissions where id = ${anEarning})`,
      `select ${anEarning} as id`,
    ],
  ],
  [
    'only_production_earns',
    'an earning marked as sandbox',
    [
      'alter table commissions drop constraint commission_is_valid',
      `update commissions set environment = 'sandbox' where id = ${anEarning} returning id`,
    ],
  ],
  [
    'only_production_earns',
    'revenue of the sandbox',
    [
      'alter table revenue_entries drop constraint revenue_entries_environment_check',
      `update revenue_entries set environment = 'sandbox'
          where payment_id = (select payment_id from commissions where id = ${anEarning}) returning payment_id as id`,
    ],
  ],
  ...['base_cents = base_cents + 5', "occurred_at = occurred_at - interval '1 second'"].map(
    (change): [string, string, readonly string[]] => [
      'earnings_fit_their_payment',
      change,
      [`update commissions set ${change} where id = ${anEarning} returning id`],
    ],
  ),
  [
    'earnings_fit_their_payment',
    'an earning of another affiliate of the app',
    [
      `update commissions c set affiliate_id = (select id from affiliates f where f.app_id = {mine} and f.id <> c.affiliate_id limit 1)
          where id = ${anEarning} returning id`,
    ],
  ],
  [
    'earnings_are_rate_of_base',
    'a changed amount',
    [`update commissions set amount_cents = amount_cents + 1 where id = ${anEarning} returning id`],
  ],
  [
    'earnings_are_rate_of_base',
    'a due date before the payment',
    [
      `update commissions set due_at = occurred_at - interval '1 second' where id = ${anEarning} returning id`,
    ],
  ],
  ...[
    'amount_cents = amount_cents + 1',
    'fx_worth_usd = fx_worth_usd * 1.01',
    'fx_units = fx_units * 1.01',
  ].flatMap((change) =>
    ['EUR', 'JPY', 'KWD'].map((currency): [string, string, readonly string[]] => [
      'conversions_can_be_repeated',
      `${change} of ${currency}`,
      [
        `update events set ${change} where app_id = {mine} and fx_units is not null and currency = '${currency}' returning id`,
      ],
    ]),
  ),
  [
    'conversions_can_be_repeated',
    'a changed base of a converted payment',
    [
      `update payments p set base_cents = base_cents + 1 from events e
          where e.id = p.event_id and p.app_id = {mine} and e.currency = 'JPY' returning e.id`,
    ],
  ],
  ...[
    "due_at = due_at + interval '1 day'",
    'rate_bps = rate_bps - 1',
    "customer_user_id = 'another-user'",
    'affiliate_id = (select id from affiliates f where f.app_id = {mine} and f.id <> affiliate_id limit 1)',
    'payment_id = (select p.id from payments p where p.app_id = {mine} and p.id <> payment_id limit 1)',
    `reverses_commission_id = ${anEarning}`,
  ].map((change): [string, string, readonly string[]] => [
    'reversals_follow_their_earning',
    change,
    [`update commissions set ${change} where id = ${aReversal} returning id`],
  ]),
  ...['-1000000', '1'].map((amount): [string, string, readonly string[]] => [
    'never_more_reversed_than_earned',
    `a reversal of ${amount}`,
    [`update commissions set amount_cents = ${amount} where id = ${aReversal} returning payment_id as id`],
  ]),
  [
    'reversed_is_the_refunded_share',
    'a changed reversed sum of a payment',
    [
      `update payments set reversed_cents = reversed_cents - 1 where app_id = {mine} and reversed_cents > 0 returning id`,
    ],
  ],
  [
    'reversed_is_the_refunded_share',
    'a changed booked amount of a refund',
    [
      `update adjustments a set booked_minor = 1 from payments p
          where a.app_id = {mine} and booked_minor > 0 and p.app_id = a.app_id and p.ref = a.payment_ref returning p.id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'a changed amount of revenue',
    [
      `update revenue_entries set amount_cents = amount_cents + 1
          where payment_id = (select payment_id from commissions where id = ${aReversal}) and position = 1
         returning payment_id as id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'deleted revenue',
    [
      `delete from revenue_entries where payment_id = (select payment_id from commissions where id = ${anEarning})
         returning payment_id as id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'revenue of an unattributed payment',
    [
      `insert into revenue_entries (payment_id, position, app_id, affiliate_id, amount_cents, occurred_at)
         select id, 1, app_id, (select affiliate_id from commissions where app_id = {mine} limit 1), 100, now()
           from payments where app_id = {mine} and binding_id is null limit 1 returning payment_id as id`,
    ],
  ],
  [
    'due_commissions_have_matured',
    'a commission due for eleven minutes',
    [
      `update commissions set due_at = now() - interval '11 minutes', created_at = now() - interval '11 minutes'
          where id = ${of('commissions', "status = 'pending'")} returning id`,
    ],
  ],
  [
    'no_event_is_left_processing',
    'an event left processing',
    [
      `update events set likely_cause = 'processing'
          where id = ${of('events', "kind = 'purchase'")} returning id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'a paid commission set back to matured',
    [
      `update commissions set status = 'matured', paid_at = null, payout_id = null where id = ${aPaid} returning id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'a paid commission without its item',
    [`delete from payout_items where commission_id = ${aPaid} returning commission_id as id`],
  ],
  [
    'paid_means_in_a_payout',
    'an item with a different amount',
    [
      `update payout_items set amount_cents = amount_cents + 1 where commission_id = ${aPaid} returning commission_id as id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'a commission paid without a payout',
    [
      'alter table commissions drop constraint commission_is_valid',
      `update commissions set status = 'paid', matured_at = now(), paid_at = now() where id = ${anEarning} returning id`,
    ],
  ],
  [
    'paid_once',
    'a commission in two payouts',
    [
      'alter table payout_items drop constraint payout_items_pkey',
      `insert into payout_items select ${ofOther('payouts')}, commission_id, app_id, affiliate_id, amount_cents, 99
           from payout_items where commission_id = ${aPaid} returning commission_id as id`,
    ],
  ],
  [
    'paid_once',
    'an item of a missing commission',
    [
      `update payout_items set commission_id = 'com_01h455vb4pex5vsknk084sn02q' where commission_id = ${aPaid}
         returning commission_id as id`,
    ],
  ],
  [
    'payouts_pay_what_was_due',
    'a commission that was paid before its due date',
    [`update commissions set due_at = paid_at + interval '1 second' where id = ${aPaid} returning id`],
  ],
  ...['total_cents = total_cents + 1', 'item_count = item_count + 1'].map(
    (change): [string, string, readonly string[]] => [
      'payouts_are_the_sum_of_their_items',
      change,
      [`update payouts set ${change} where id = ${aPayout} returning id`],
    ],
  ),
  [
    'payouts_are_the_sum_of_their_items',
    'a deleted item',
    [`delete from payout_items where commission_id = ${aPaid} returning payout_id as id`],
  ],
  [
    'payouts_are_the_sum_of_their_items',
    'positions with a gap',
    [
      `update payout_items set position = position + 10 where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  [
    'payouts_have_their_request',
    'a payout without a request',
    [`delete from payout_requests where payout_id = ${aPayout} returning payout_id as id`],
  ],
  [
    'payouts_have_their_request',
    'a request with a different net',
    [
      `update payout_requests set net_cents = net_cents + 1 where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  [
    'payouts_have_their_request',
    'a paid request without its payout',
    [
      `delete from payouts where id = ${aPayout}`,
      `select id from payout_requests where app_id = {mine} and status = 'paid'`,
    ],
  ],
  [
    'payouts_have_their_request',
    'a payout with two requests',
    [
      'drop index payout_requests_payout',
      `insert into payout_requests
         select (jsonb_populate_record(r, '{"id": "req_01h455vb4pex5vsknk084sn02q", "idempotency_key": null}')).*
           from payout_requests r where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  [
    'payout_runs_pay_what_was_approved',
    'a payout run without its items',
    [
      `insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at)
         select 'run_01h455vb4pex5vsknk084sn02q', r.app_id, r.account_id, r.key_id, now(), 0, true, 1, 1, now() + interval '1 day'
           from payout_requests r where r.payout_id = ${aPayout} returning id`,
    ],
  ],
  [
    'payout_runs_pay_what_was_approved',
    'a payout of a run that nobody approved',
    [
      `insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at)
         select 'run_01h455vb4pex5vsknk084sn02q', r.app_id, r.account_id, r.key_id, now(), 0, true, 1, r.net_cents, now() + interval '1 day'
           from payout_requests r where r.payout_id = ${aPayout}`,
      `insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, request_id)
         select 'pit_01h455vb4pex5vsknk084sn02q', r.app_id, 'run_01h455vb4pex5vsknk084sn02q', r.affiliate_id, 'x', 1, r.net_cents, 'other', r.id
           from payout_requests r where r.payout_id = ${aPayout} returning run_id as id`,
    ],
  ],
  [
    'payout_runs_pay_what_was_approved',
    'a settled run whose file is lost',
    [
      `insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at,
                                status, approved_at, approved_by, ended_at, paid_count, paid_cents)
         select 'run_01h455vb4pex5vsknk084sn02q', r.app_id, r.account_id, r.key_id, now(), 0, true, 1, r.net_cents, now() + interval '1 day',
                'settled', now(), r.key_id, now(), 1, r.net_cents
           from payout_requests r where r.payout_id = ${aPayout}`,
      `insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, request_id)
         select 'pit_01h455vb4pex5vsknk084sn02q', r.app_id, 'run_01h455vb4pex5vsknk084sn02q', r.affiliate_id, 'x', 1, r.net_cents, 'other', r.id
           from payout_requests r where r.payout_id = ${aPayout} returning run_id as id`,
    ],
  ],
  [
    'payout_runs_pay_what_was_approved',
    'a stopped run that has decided about an item',
    [
      `insert into payout_runs (id, app_id, account_id, key_id, kind, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at,
                                status, approved_at, approved_by, stopped_at)
         select 'run_01h455vb4pex5vsknk084sn02q', r.app_id, r.account_id, r.key_id, 'resend', now(), 0, true, 1, r.net_cents, now() + interval '1 day',
                'approved', now(), r.key_id, now()
           from payout_requests r where r.payout_id = ${aPayout}`,
      `insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payout_id, resend_result)
         select 'pit_01h455vb4pex5vsknk084sn02q', r.app_id, 'run_01h455vb4pex5vsknk084sn02q', r.affiliate_id, 'x', 1, r.net_cents, 'other', r.payout_id, 'blocked'
           from payout_requests r where r.payout_id = ${aPayout} returning run_id as id`,
    ],
  ],
  [
    'payouts_are_chained',
    'a payout that is not in the chain',
    [`delete from payout_chain where payout_id = ${aPayout} returning payout_id as id`],
  ],
  [
    'payouts_are_chained',
    'a total in the chain that is not that of the payout',
    [
      'alter table payout_chain drop constraint chain_hash_is_right',
      `update payout_chain set total_cents = total_cents + 1 where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  [
    'payouts_are_chained',
    'a payout that does not follow the one before',
    [
      'alter table payout_chain drop constraint chain_hash_is_right',
      `update payout_chain set position = position + 1, previous_position = position, previous_hash = sha256('x')
          where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  ...[
    "csv_sha256 = sha256('x')",
    "csv_gzip = 'x'",
    "affiliate_name = 'Another name'",
    "csv_sha256 = null, csv_gzip = null, created_at = now() - interval '11 minutes'",
  ].map((change): [string, string, readonly string[]] => [
    'payout_csv_has_its_hash',
    change,
    [`update payouts set ${change} where id = ${aPayout} returning id`],
  ]),
  [
    'payout_csv_has_its_hash',
    'a changed time of a paid commission',
    [
      `update commissions set occurred_at = occurred_at - interval '1 second' where id = ${aPaid} returning payout_id as id`,
    ],
  ],
  ...(
    [
      [
        'another amount',
        'update entries set amount_cents = 501 where amount_cents = 500 and app_id = {mine} returning id',
      ],
      ['no commission', 'delete from commissions where entry_id = $bonus returning entry_id as id'],
      [
        'a commission of another kind',
        "update commissions set kind = 'deduction' where entry_id = $bonus returning entry_id as id",
      ],
      [
        'a commission of another creator',
        `update commissions set affiliate_id = (select min(id) from affiliates where app_id = {mine} and id <> affiliate_id) where entry_id = $bonus returning entry_id as id`,
      ],
      [
        'a commission that is due at another time',
        "update commissions set due_at = due_at + interval '1 second' where entry_id = $bonus returning entry_id as id",
      ],
      [
        'a commission that names a payment',
        `update commissions set payment_id = ${of('payments', 'true')} where entry_id = $bonus returning entry_id as id`,
      ],
    ] as const
  ).map(([title, statement]): [string, string, readonly string[]] => [
    'entries_are_booked_once',
    `an entry with ${title}`,
    ['alter table commissions drop constraint commission_is_valid', statement.replace('$bonus', aBonus)],
  ]),
  [
    'entries_are_booked_once',
    'an entry with two commissions',
    [
      'drop index one_commission_per_entry',
      `insert into commissions select (jsonb_populate_record(c, '{"id": "com_01h455vb4pex5vsknk084sn02q"}')).* from commissions c
        where entry_id = ${aBonus} returning entry_id as id`,
    ],
  ],
  ...['amount_cents = amount_cents - 1', "due_at = due_at + interval '1 second'", "category = 'bonus'"].map(
    (change): [string, string, readonly string[]] => [
      'undone_entries_net_to_zero',
      `an undo with ${change}`,
      [`update entries set ${change} where app_id = {mine} and undoes_entry_id is not null returning id`],
    ],
  ),
  [
    'undone_entries_net_to_zero',
    'an undo of an undo',
    [
      'alter table entries drop constraint all_but_undos_have_an_external_id',
      `update entries e set undoes_entry_id = (select id from entries u where u.app_id = {mine} and u.undoes_entry_id is not null)
        where id = ${aBonus} returning id`,
    ],
  ],
  [
    'undone_entries_net_to_zero',
    'an entry that is undone twice',
    [
      'alter table entries drop constraint entries_undoes_entry_id_key',
      `insert into entries select (jsonb_populate_record(e, '{"id": "ent_01h455vb4pex5vsknk084sn02q"}')).* from entries e
        where app_id = {mine} and undoes_entry_id is not null returning undoes_entry_id as id`,
    ],
  ],
  ...[
    'base_cents = base_cents + 1',
    'flat_cents = flat_cents - 1',
    "base_kind = 'gross'",
    'base_estimated = not base_estimated',
    "policy_inputs = jsonb_set(policy_inputs, '{grossCents}', '1')",
    "policy_inputs = jsonb_set(policy_inputs, '{storeFee,minor}', '0')",
  ].map((change): [string, string, readonly string[]] => [
    'policy_earnings_can_be_computed_again',
    `an earning with ${change}`,
    [`update commissions set ${change} where id = ${aPolicyEarning} returning id`],
  ]),
  ...[
    "policy_inputs = jsonb_set(policy_inputs, '{paymentNumber}', '7')",
    "policy_inputs = jsonb_set(policy_inputs, '{monthsSinceFirst}', '1')",
    'rule_index = 1',
  ].map((change): [string, string, readonly string[]] => [
    'policy_earnings_follow_the_first_rule',
    `an earning with ${change}`,
    [`update commissions set ${change} where id = ${aPolicyEarning} returning id`],
  ]),
  [
    'policy_earnings_follow_the_first_rule',
    'an earning by a version that was not in effect',
    [
      `insert into policy_versions select (jsonb_populate_record(v, '{"id": "plv_01h455vb4pex5vsknk084sn02q", "version": 9, "effective_from": "2100-01-01"}')).*
         from policy_versions v where app_id = {mine} limit 1`,
      `update commissions set policy_version_id = 'plv_01h455vb4pex5vsknk084sn02q' where id = ${aPolicyEarning} returning id`,
    ],
  ],
  [
    'policy_earnings_follow_the_first_rule',
    'an earning by a version that took effect after the payment arrived, before the time that the provider states',
    [
      ...DATED_AHEAD,
      `update commissions set policy_version_id = 'plv_01h455vb4pex5vsknk084sn02q' where id = ${aPolicyEarning} returning id`,
    ],
  ],
  [
    'policy_earnings_count_what_was_stated',
    'an earning by a product that no event states',
    [
      `update commissions set policy_inputs = jsonb_set(policy_inputs, '{productId}', '"other"') where id = ${aPolicyEarning} returning id`,
    ],
  ],
  [
    'policies_are_not_passed_over',
    'an earning by the rate of the app',
    [
      `update commissions set rate_source = 'app', rate_bps = 2000, policy_version_id = null, rule_index = null, base_kind = null,
              base_estimated = null, flat_cents = null, policy_inputs = null
        where id = ${aPolicyEarning} returning id`,
    ],
  ],
  [
    'policies_of_creators_are_looked_up',
    'a policy of a creator that the app does not know of',
    [
      'update apps set assigns_policies_to_creators = false where id = {mine}',
      `insert into policy_assignments (app_id, affiliate_id, position, effective_from)
       select app_id, id, 99, now() from affiliates where app_id = {mine} limit 1 returning scope_id as id`,
    ],
  ],
  [
    'payments_of_a_customer_are_numbered',
    'a payment without its number',
    ['delete from payment_numbers where app_id = {mine} and number = 2 returning payment_id as id'],
  ],
  [
    'payments_of_a_customer_are_numbered',
    'a first payment of another time',
    [
      `update payment_numbers set first_paid_at = first_paid_at + interval '1 day'
        where payment_id = (select payment_id from payment_numbers where app_id = {mine} and number = 1 limit 1) returning payment_id as id`,
    ],
  ],
  [
    'payments_of_a_customer_are_numbered',
    'a customer whose numbers have a gap',
    ['update payment_numbers set number = 9 where app_id = {mine} and number = 2 returning subject_id as id'],
  ],
  ...(
    [
      ['clicks', 'link_id', ofOther('links')],
      ['codes', 'affiliate_id', ofOther('affiliates')],
      ['attributions', 'code_id', ofOther('codes')],
      ['manual_attributions', 'binding_id', ofOther('bindings')],
      ['manual_attributions', 'attribution_id', ofOther('attributions')],
      ['payments', 'attribution_id', ofOther('attributions')],
      ['commissions', 'policy_version_id', ofOther('policy_versions')],
      ['entries', 'affiliate_id', ofOther('affiliates')],
      ['entries', 'undoes_entry_id', ofOther('entries', 'undoes_entry_id is not null')],
      ['entries', 'account_id', '(select account_id from apps where id = {other})'],
      [
        'entries',
        'key_id',
        '(select k.id from account_keys k join apps a using (account_id) where a.id = {other} limit 1)',
      ],
      ['links', 'affiliate_id', ofOther('affiliates')],
      ['attributions', 'affiliate_id', ofOther('affiliates')],
      ['attributions', 'link_id', ofOther('links')],
      ['attributions', 'click_id', ofOther('clicks')],
      ['bindings', 'attribution_id', ofOther('attributions')],
      ['events', 'delivery_id', "'del_01h455vb4pex5vsknk084sn02q'"],
      ['payments', 'event_id', ofOther('events')],
      ['payments', 'binding_id', ofOther('bindings')],
      ['adjustments', 'event_id', ofOther('events')],
      ['adjustments', 'booked_payment_id', ofOther('payments')],
      ['commissions', 'affiliate_id', ofOther('affiliates')],
      ['commissions', 'link_id', ofOther('links')],
      ['commissions', 'binding_id', ofOther('bindings')],
      ['payouts', 'affiliate_id', ofOther('affiliates')],
      ['payout_requests', 'affiliate_id', ofOther('affiliates')],
      ['payout_requests', 'account_id', '(select account_id from apps where id = {other})'],
      [
        'payout_requests',
        'key_id',
        '(select k.id from account_keys k join apps a using (account_id) where a.id = {other})',
      ],
    ] as const
  ).map(([table, column, value]): [string, string, readonly string[]] => [
    'no_row_of_another_app',
    `${table}.${column}`,
    [
      `update ${table} set ${column} = ${value} where id = ${of(table, `${column} is not null`)} returning id`,
    ],
  ]),
  ...(
    [
      ['event_id', ofOther('events')],
      ['payment_id', ofOther('payments')],
      ['adjustment_id', ofOther('adjustments')],
      ['reverses_commission_id', ofOther('commissions', "kind = 'earning'")],
    ] as const
  ).map(([column, value]): [string, string, readonly string[]] => [
    'no_row_of_another_app',
    `commissions.${column}`,
    [`update commissions set ${column} = ${value} where id = ${aReversal} returning id`],
  ]),
  [
    'no_row_of_another_app',
    'policy_versions.policy_id',
    [
      `update policy_versions set policy_id = ${ofOther('policies')}, version = 99 where app_id = {mine} returning id`,
    ],
  ],
  [
    'no_row_of_another_app',
    'commissions.entry_id',
    [
      'drop index one_commission_per_entry',
      `update commissions set entry_id = ${ofOther('entries', 'amount_cents = -200')} where entry_id = ${aBonus} returning id`,
    ],
  ],
  [
    'no_row_of_another_app',
    'commissions.payout_id',
    [`update commissions set payout_id = ${ofOther('payouts')} where id = ${aPaid} returning id`],
  ],
  [
    'no_row_of_another_app',
    'payout_items.payout_id',
    [
      `update payout_items set payout_id = ${ofOther('payouts')}, position = 99 where commission_id = ${aPaid}
         returning commission_id as id`,
    ],
  ],
  [
    'no_row_of_another_app',
    'payout_requests.payout_id',
    [
      'drop index payout_requests_payout',
      `update payout_requests set payout_id = ${ofOther('payouts')} where payout_id = ${aPayout} returning id`,
    ],
  ],
  ...(
    [
      ['payout_id', ofOther('payouts'), 'k.account_id', 'k.id'],
      ['account_id', aPayout, '(select account_id from apps where id = {other})', 'k.id'],
      [
        'key_id',
        aPayout,
        'k.account_id',
        '(select o.id from account_keys o join apps b on b.account_id = o.account_id where b.id = {other} limit 1)',
      ],
    ] as const
  ).flatMap(([column, payout, account, key]): [string, string, readonly string[]][] => [
    [
      'no_row_of_another_app',
      `payout_transfers.${column}`,
      [
        `insert into payout_transfers (id, app_id, payout_id, position, state, account_id, key_id)
         select 'trf_01kbf2z4x8e0rvq1n3m5t7w9yc', a.id, ${payout}, 1, 'sent', ${account}, ${key}
           from apps a join account_keys k on k.account_id = a.account_id where a.id = {mine} limit 1 returning id`,
      ],
    ],
    [
      'no_row_of_another_app',
      `other_transfers.${column}`,
      [
        `insert into other_transfers (app_id, payout_id, position, reference, account_id, key_id)
         select a.id, ${payout}, 1, 'B1', ${account}, ${key}
           from apps a join account_keys k on k.account_id = a.account_id where a.id = {mine} limit 1 returning payout_id as id`,
      ],
    ],
  ]),
  ...(
    [
      ['payment_users', 'payment_id', ofOther('payments')],
      ['payment_numbers', 'subject_id', ofOther('bindings')],
      ['payment_user_keys', 'payment_id', ofOther('payments')],
      ['revenue_entries', 'affiliate_id', ofOther('affiliates')],
      ['revenue_entries', 'link_id', ofOther('links')],
      ['revenue_entries', 'adjustment_id', ofOther('adjustments')],
    ] as const
  ).map(([table, column, value]): [string, string, readonly string[]] => [
    'no_row_of_another_app',
    `${table}.${column}`,
    [
      `update ${table} set ${column} = ${value}
          where ctid = (select ctid from ${table} where app_id = {mine} and ${column} is not null limit 1) returning payment_id as id`,
    ],
  ]),
];

describe('a damaged ledger', () => {
  // @promise ledger-check-finds
  test.each(DAMAGES)('the check %s finds %s', async (name, _title, statements) => {
    await withDamage(statements.map(fill), async (sql, damagedId) => {
      expect(damagedId).toMatch(/^[a-z]{3,4}_/);
      const findings = await findingsIn(sql);
      expect(findings[name]?.some((example) => example.startsWith(damagedId))).toBe(true);
    });
  });

  test('the damages cover every check', async () => {
    const names = response.body.checks.map((check) => check.name);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(DAMAGES.map(([name]) => name))).toEqual(new Set(names));
  });

  test.each([
    ['due for nine minutes', "due_at = now() - interval '9 minutes', created_at = now() - interval '1 day'"],
    [
      'due for a day but written nine minutes ago',
      "due_at = now() - interval '1 day', created_at = now() - interval '9 minutes'",
    ],
  ])('a commission that is %s is no violation', async (_title, change) => {
    const damage = `update commissions set ${change} where id = ${of('commissions', "status = 'pending'")} returning id`;
    await withDamage([fill(damage)], async (sql, damagedId) => {
      expect(damagedId).toMatch(/^com_/);
      expect((await findingsIn(sql))['due_commissions_have_matured']).toBeUndefined();
    });
  });

  test('a payment that is dated ahead does not wait for what takes effect until then', async () => {
    await withDamage(DATED_AHEAD.map(fill), async (sql) => {
      expect((await findingsIn(sql))['policy_earnings_follow_the_first_rule']).toBeUndefined();
    });
  });

  test('an earning of an earlier version has the terms of the time that the provider stated', async () => {
    const [, ...others] = DATED_AHEAD;
    const byLater = `update commissions set policy_version_id = 'plv_01h455vb4pex5vsknk084sn02q' where id = ${aPolicyEarning} returning id`;
    await withDamage([...others, byLater].map(fill), async (sql) => {
      expect((await findingsIn(sql))['policy_earnings_follow_the_first_rule']).toBeUndefined();
    });
  });

  test('a payout that is nine minutes old may lack its hash', async () => {
    const damage = `update payouts set csv_sha256 = null, csv_gzip = null, created_at = now() - interval '9 minutes' where id = ${aPayout}`;
    await withDamage([fill(damage)], async (sql) => {
      expect((await findingsIn(sql))['payout_csv_has_its_hash']).toBeUndefined();
    });
  });

  test('a check counts all violations and returns twenty examples', async () => {
    const copies = Array.from({ length: 25 }, (_, n) =>
      copied(`jsonb_build_object('id', 'com_01h455vb4pex5vsknk084sn1${String(n).padStart(2, '0')}')`),
    );
    const damage = ['drop index one_earning_per_payment', 'drop index one_earning_per_event', ...copies];
    await withDamage(damage.map(fill), async (sql) => {
      const checks = await checkLedger(sql, await listAppIds(sql));
      const found = checks.find((check) => check.name === 'one_earning_per_payment');
      expect(found).toMatchObject({ ok: false, violations: 26 });
      expect(found?.examples).toHaveLength(20);
    });
  });
});

describe('tributary ledger check', () => {
  const admin = async (...args: string[]) => {
    let out = '';
    const status = await runAdmin(['ledger', 'check', ...args], {
      openDatabase: async () => ({
        url: service.database.url,
        ownerUrl: service.database.url,
        close: async () => {},
      }),
      secretsKeys: noSecretsKeys,
      findService: async () => null,
      stdout: (text) => void (out += text),
      stderr: () => {},
    });
    return { status, out };
  };

  test('tributary ledger check returns status 0 for a consistent ledger, and status 1 and the row for a damaged one', async () => {
    const before = await admin('--json');
    expect(before.status).toBe(0);
    expect(JSON.parse(before.out)).toMatchObject({ ok: true, checks: response.body.checks });

    const { id } = await service.sql.one<{ id: string }>(asTemplate(fill(`select ${anEarning} as id`)));
    await runOn(
      service.database.url,
      `set session_replication_role = replica; update commissions set base_cents = base_cents + 5 where id = '${id}'`,
    );
    const all = await admin('--json');
    expect(all.status).toBe(1);
    const { ok, checks } = JSON.parse(all.out) as LedgerCheck;
    expect(ok).toBe(false);
    expect(checks.find((check) => check.name === 'earnings_fit_their_payment')).toMatchObject({
      ok: false,
      violations: 1,
      examples: [id],
    });
    expect((await admin()).out).toContain(id);
    expect((await admin('--app', founder.app.id)).status).toBe(1);
    expect((await admin('--app', other.app.id)).status).toBe(0);
    expect(await admin('--app', 'app_x')).toEqual({ status: 1, out: '' });
  });
});
