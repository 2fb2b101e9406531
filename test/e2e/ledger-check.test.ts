import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { listAppIds } from '../../src/db/apps.ts';
import { checkLedger } from '../../src/db/ledger-checks.ts';
import { importRates } from '../../src/db/rates.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import {
  bodyOf,
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
let answer: { status: number; body: LedgerAnswer };

interface LedgerAnswer {
  readonly ok: boolean;
  readonly checkedAt: number;
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly violations: number;
    readonly examples: readonly string[];
  }[];
}

/** Everything that writes money: purchases, conversions, refunds, disputes, a payout, and what earns nothing. */
async function play(owner: Founder): Promise<void> {
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
  await owner.purchase('user-nobody-knows', 12);
  const { affiliateId, slug } = await owner.newAffiliate('Paused creator');
  const theirs = await owner.customer(slug);
  await owner.ok('PATCH', `/apps/${owner.app.id}/affiliates/${affiliateId}`, { status: 'paused' });
  await owner.purchase(theirs, 8);
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
  for (const owner of [founder, other]) await play(owner);
  await eventually('what is due has matured', async () => {
    const { late } = await service.sql.one<{ late: number }>`
      select count(*) as late from commissions where status = 'pending' and due_at < now()`;
    return late === 0;
  });
  answer = await founder.call<LedgerAnswer>('GET', `/apps/${founder.app.id}/diagnostics/ledger`);
  damaged = connect({ url: service.database.url, max: 1 });
}, 60_000);
afterAll(async () => {
  await damaged.close();
  await service.close();
});

/** A statement as text, as the wrapper takes it from a template. */
const asTemplate = (text: string) => Object.assign([text], { raw: [text] }) as TemplateStringsArray;

/**
 * Damages the ledger past every trigger and foreign key, runs `work`, and takes the damage back. On one connection, in one
 * transaction: a copy of the database for each damage would take ten times as long.
 */
async function onDamaged<T>(
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

/** What the checks find of the founder's app. */
async function findingsIn(sql: Sql): Promise<Record<string, readonly string[]>> {
  const checks = await checkLedger(sql, [founder.app.id as AppId]);
  return Object.fromEntries(checks.filter((check) => !check.ok).map((check) => [check.name, check.examples]));
}

/** `{mine}` and `{other}` stand for the apps, `{a}` for one row that fits. */
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
const ofOther = (table: string, condition = 'true') =>
  `(select id from ${table} where app_id = {other} and ${condition} order by id limit 1)`;

/** A second commission like an earning. */
const copied = (changes: string) =>
  `insert into commissions select (jsonb_populate_record(c, ${changes})).* from commissions c
    where id = ${anEarning} returning id`;

describe('a ledger that only the service has written', () => {
  // @promise get-ledger-check
  test('is sound, by the route', () => {
    expect(answer.status).toBe(200);
    const { ok, checkedAt, checks } = answer.body;
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

  test('has every kind of row that a check looks at', async () => {
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

/** The check that has to find it, what was done, and how; the last statement answers the id that has to be named. */
const DAMAGES: readonly (readonly [check: string, title: string, statements: readonly string[]])[] = [
  [
    'rollups_equal_facts',
    'a sum of a dashboard',
    [
      `update rollups set revenue_cents = revenue_cents + 1
          where app_id = {mine} and scope = 'app' and bucket_at = '-infinity'
            and shard = (select min(shard) from rollups where app_id = {mine} and scope = 'app' and bucket_at = '-infinity')
         returning scope_id as id`,
    ],
  ],
  [
    'payment_sums_equal_commissions',
    'the sum on a payment',
    [
      `update payments set earned_cents = earned_cents + 1
         where id = (select payment_id from commissions where id = ${anEarning}) returning id`,
    ],
  ],
  [
    'payment_sums_equal_commissions',
    'a commission that is gone',
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
    'an earning of a payment that earned under another name',
    [
      `insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
         select p.app_id, p.environment, p.store, p.ref, q.ref
           from payments p join payments q on q.app_id = p.app_id and q.environment = p.environment and q.store = p.store
                                          and q.id > p.id
          where p.app_id = {mine}
            and exists (select from commissions c where c.payment_id = p.id and c.kind = 'earning')
            and exists (select from commissions c where c.payment_id = q.id and c.kind = 'earning') limit 1
         returning (select c.id from commissions c join payments x on x.id = c.payment_id
                     where c.kind = 'earning' and x.app_id = payment_aliases.app_id and x.ref = payment_ref) as id`,
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
    'an earning that calls itself sandbox',
    [
      'alter table commissions drop constraint commissions_environment_check',
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
    'an earning given to another creator of the app',
    [
      `update commissions c set affiliate_id = (select id from affiliates f where f.app_id = {mine} and f.id <> c.affiliate_id limit 1)
          where id = ${anEarning} returning id`,
    ],
  ],
  [
    'earnings_are_rate_of_base',
    'an amount',
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
    'the base of a payment that was converted',
    [
      `update payments p set base_cents = base_cents + 1 from events e
          where e.id = p.event_id and p.app_id = {mine} and e.currency = 'JPY' returning e.id`,
    ],
  ],
  ...[
    "due_at = due_at + interval '1 day'",
    'rate_bps = rate_bps - 1',
    "customer_user_id = 'somebody else'",
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
    'what was reversed of a payment',
    [
      `update payments set reversed_cents = reversed_cents - 1 where app_id = {mine} and reversed_cents > 0 returning id`,
    ],
  ],
  [
    'reversed_is_the_refunded_share',
    'what is booked of a refund',
    [
      `update adjustments a set booked_minor = 1 from payments p
          where a.app_id = {mine} and booked_minor > 0 and p.app_id = a.app_id and p.ref = a.payment_ref returning p.id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'an amount of revenue',
    [
      `update revenue_entries set amount_cents = amount_cents + 1
          where payment_id = (select payment_id from commissions where id = ${aReversal}) and position = 1
         returning payment_id as id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'revenue that is gone',
    [
      `delete from revenue_entries where payment_id = (select payment_id from commissions where id = ${anEarning})
         returning payment_id as id`,
    ],
  ],
  [
    'revenue_is_base_minus_refunds',
    'revenue of a payment that nobody brought',
    [
      `insert into revenue_entries (payment_id, position, app_id, affiliate_id, amount_cents, occurred_at)
         select id, 1, app_id, (select affiliate_id from commissions where app_id = {mine} limit 1), 100, now()
           from payments where app_id = {mine} and binding_id is null limit 1 returning payment_id as id`,
    ],
  ],
  [
    'due_commissions_have_matured',
    'a commission that is due for eleven minutes',
    [
      `update commissions set due_at = now() - interval '11 minutes', created_at = now() - interval '11 minutes'
          where id = ${of('commissions', "status = 'pending'")} returning id`,
    ],
  ],
  [
    'no_event_is_left_processing',
    'an event of which nobody thinks any more',
    [
      `update events set likely_cause = 'processing'
          where id = ${of('events', "kind = 'purchase'")} returning id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'a commission that was paid and is owed again',
    [
      `update commissions set status = 'matured', paid_at = null, payout_id = null where id = ${aPaid} returning id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'a paid commission whose item is gone',
    [`delete from payout_items where commission_id = ${aPaid} returning commission_id as id`],
  ],
  [
    'paid_means_in_a_payout',
    'an item with another amount',
    [
      `update payout_items set amount_cents = amount_cents + 1 where commission_id = ${aPaid} returning commission_id as id`,
    ],
  ],
  [
    'paid_means_in_a_payout',
    'paid without a payout',
    [
      'alter table commissions drop constraint paid_means_in_a_payout',
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
    'an item of a commission that is not there',
    [
      `update payout_items set commission_id = 'com_01h455vb4pex5vsknk084sn02q' where commission_id = ${aPaid}
         returning commission_id as id`,
    ],
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
    'an item that is missing',
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
    'payouts_were_asked_for',
    'a payout that nobody asked for',
    [`delete from payout_requests where payout_id = ${aPayout} returning payout_id as id`],
  ],
  [
    'payouts_were_asked_for',
    'a request for another net',
    [
      `update payout_requests set net_cents = net_cents + 1 where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  [
    'payouts_were_asked_for',
    'a paid request whose payout is gone',
    [
      `delete from payouts where id = ${aPayout}`,
      `select id from payout_requests where app_id = {mine} and status = 'paid'`,
    ],
  ],
  [
    'payouts_were_asked_for',
    'a payout that was asked for twice',
    [
      'drop index payout_requests_payout',
      `insert into payout_requests
         select (jsonb_populate_record(r, '{"id": "req_01h455vb4pex5vsknk084sn02q", "idempotency_key": null}')).*
           from payout_requests r where payout_id = ${aPayout} returning payout_id as id`,
    ],
  ],
  ...[
    "csv_sha256 = sha256('x')",
    "affiliate_name = 'Somebody else'",
    "csv_sha256 = null, created_at = now() - interval '11 minutes'",
  ].map((change): [string, string, readonly string[]] => [
    'payout_csv_has_its_hash',
    change,
    [`update payouts set ${change} where id = ${aPayout} returning id`],
  ]),
  [
    'payout_csv_has_its_hash',
    'the time of a commission that was paid',
    [
      `update commissions set occurred_at = occurred_at - interval '1 second' where id = ${aPaid} returning payout_id as id`,
    ],
  ],
  ...(
    [
      ['clicks', 'link_id', ofOther('links')],
      ['links', 'affiliate_id', ofOther('affiliates')],
      ['attributions', 'affiliate_id', ofOther('affiliates')],
      ['attributions', 'link_id', ofOther('links')],
      ['attributions', 'click_id', ofOther('clicks')],
      ['bindings', 'attribution_id', ofOther('attributions')],
      ['events', 'delivery_id', "'del_01h455vb4pex5vsknk084sn02q'"],
      ['payments', 'event_id', ofOther('events')],
      ['payments', 'binding_id', ofOther('bindings')],
      ['adjustments', 'event_id', ofOther('events')],
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
      ['payment_users', 'payment_id', ofOther('payments')],
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

// @promise ledger-check-finds
describe('whoever goes past the service is found out', () => {
  test.each(DAMAGES)('%s: %s', async (name, _title, statements) => {
    await onDamaged(statements.map(fill), async (sql, damagedId) => {
      expect(damagedId).toMatch(/^[a-z]{3,4}_/);
      const findings = await findingsIn(sql);
      expect(findings[name]?.some((example) => example.startsWith(damagedId))).toBe(true);
    });
  });

  test('every check that there is was provoked above', async () => {
    const names = answer.body.checks.map((check) => check.name);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(DAMAGES.map(([name]) => name))).toEqual(new Set(names));
  });

  test.each([
    ['due for nine minutes', "due_at = now() - interval '9 minutes', created_at = now() - interval '1 day'"],
    [
      'long due, but written just now',
      "due_at = now() - interval '1 day', created_at = now() - interval '9 minutes'",
    ],
  ])('a commission that is %s is no fault yet', async (_title, change) => {
    const damage = `update commissions set ${change} where id = ${of('commissions', "status = 'pending'")} returning id`;
    await onDamaged([fill(damage)], async (sql, damagedId) => {
      expect(damagedId).toMatch(/^com_/);
      expect((await findingsIn(sql))['due_commissions_have_matured']).toBeUndefined();
    });
  });

  test('a payout that was made just now may have no hash yet', async () => {
    const damage = `update payouts set csv_sha256 = null, created_at = now() - interval '9 minutes' where id = ${aPayout}`;
    await onDamaged([fill(damage)], async (sql) => {
      expect((await findingsIn(sql))['payout_csv_has_its_hash']).toBeUndefined();
    });
  });

  test('of many faults all are counted and twenty are named', async () => {
    const copies = Array.from({ length: 25 }, (_, n) =>
      copied(`jsonb_build_object('id', 'com_01h455vb4pex5vsknk084sn1${String(n).padStart(2, '0')}')`),
    );
    const damage = ['drop index one_earning_per_payment', 'drop index one_earning_per_event', ...copies];
    await onDamaged(damage.map(fill), async (sql) => {
      const checks = await checkLedger(sql, await listAppIds(sql));
      const found = checks.find((check) => check.name === 'one_earning_per_payment');
      expect(found).toMatchObject({ ok: false, violations: 26 });
      expect(found?.examples).toHaveLength(20);
    });
  });
});

describe('the command line', () => {
  const admin = async (...args: string[]) => {
    let out = '';
    const status = await runAdmin(['ledger', 'check', ...args], {
      openDatabase: async () => ({ url: service.database.url, close: async () => {} }),
      findService: async () => null,
      stdout: (text) => void (out += text),
      stderr: () => {},
    });
    return { status, out };
  };

  test('says that the ledger is sound, and ends with 1 and the row once it is not', async () => {
    const sound = await admin('--json');
    expect(sound.status).toBe(0);
    expect(JSON.parse(sound.out)).toMatchObject({ ok: true, checks: answer.body.checks });

    const { id } = await service.sql.one<{ id: string }>(asTemplate(fill(`select ${anEarning} as id`)));
    await runOn(
      service.database.url,
      `set session_replication_role = replica; update commissions set base_cents = base_cents + 5 where id = '${id}'`,
    );
    const all = await admin('--json');
    expect(all.status).toBe(1);
    const { ok, checks } = JSON.parse(all.out) as LedgerAnswer;
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
