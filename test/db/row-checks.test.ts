import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { TestDatabase } from '../support/database.ts';
import { createTestDatabase } from '../support/database.ts';

type Row = Readonly<Record<string, unknown>>;

/** A valid row of a table in the columns that its rules read, and for each rule the values that break it alone. */
interface Rules {
  readonly table: string;
  /** The function with its rules, and the constraint that calls it. */
  readonly check: string;
  readonly valid: readonly Row[];
  readonly broken: Readonly<Record<string, readonly Row[]>>;
}

/** An id of a kind; `n` tells two of them apart. */
const id = (prefix: string, n = 0): string => `${prefix}_${String(n).padStart(26, '0')}`;

const EARNING = {
  environment: 'production',
  kind: 'earning',
  event_id: id('evt'),
  payment_id: id('pmt'),
  binding_id: id('bnd'),
  source: 'stripe',
  customer_user_id: 'u',
  match_method: 'code',
  rate_bps: 2000,
  rate_source: 'app',
  base_cents: 1000,
  amount_cents: 200,
  status: 'pending',
};
const REVERSAL = {
  ...EARNING,
  kind: 'reversal',
  amount_cents: -200,
  reverses_commission_id: id('com'),
  adjustment_id: id('adj'),
};
const CORRECTION = {
  ...REVERSAL,
  kind: 'correction',
  adjustment_id: null,
  reason: 'earned_under_another_reference',
  duplicate_of_commission_id: id('com', 1),
};
const ENTRY = {
  environment: 'production',
  kind: 'bonus',
  entry_id: id('ent'),
  rate_bps: 0,
  base_cents: 0,
  amount_cents: 500,
  status: 'pending',
};
const BY_POLICY = {
  ...EARNING,
  rate_source: 'policy',
  policy_version_id: id('plv'),
  rule_index: 0,
  base_kind: 'gross',
  base_estimated: false,
  policy_inputs: {},
};
const FLAT = { ...BY_POLICY, rate_bps: 0, flat_cents: 200 };
const PAID = {
  ...EARNING,
  status: 'paid',
  matured_at: '2026-01-01',
  payout_id: id('pay'),
  paid_at: '2026-01-02',
};
const FACTS = {
  kind: 'purchase',
  source_event_id: id('evt'),
  currency: 'USD',
  payment_ref: 'r',
  amount_minor: 100,
};
const RATE = { fx_rate: 1, fx_units: 1, fx_worth_usd: 1 };
const PAYMENT = {
  id: id('pmt'),
  currency: 'USD',
  amount_minor: 100,
  earned_cents: 20,
  reversed_cents: 0,
  corrected_cents: 0,
};
const DELIVERY = {
  body_sha256: `\\x${'00'.repeat(32)}`,
  event_count: 0,
  processing_status: 'received',
  signature_valid: true,
  secret_id: id('sec'),
};
const REFUSED = {
  ...DELIVERY,
  processing_status: 'rejected',
  signature_valid: false,
  secret_id: null,
  refused_hour: '2026-01-01',
  completed_at: '2026-01-01',
};

const NUMBER = { payment_id: id('pmt'), environment: 'production', number: 1 };

const RULES: readonly Rules[] = [
  {
    table: 'deliveries',
    check: 'delivery_is_valid',
    valid: [DELIVERY, REFUSED, { ...DELIVERY, processing_status: 'processed', completed_at: '2026-01-01' }],
    broken: {
      deliveries_body_sha256_check: [{ ...DELIVERY, body_sha256: '\\x00' }],
      deliveries_event_count_check: [{ ...DELIVERY, event_count: 2 }],
      deliveries_processing_status_check: [{ ...DELIVERY, processing_status: 'other' }],
      only_completed_has_time: [
        { ...DELIVERY, completed_at: '2026-01-01' },
        { ...DELIVERY, processing_status: 'processed' },
      ],
      rejected_without_signature: [
        { ...REFUSED, signature_valid: true },
        { ...DELIVERY, signature_valid: false },
      ],
      only_rejected_has_hour: [
        { ...REFUSED, refused_hour: null },
        { ...DELIVERY, refused_hour: '2026-01-01' },
      ],
      valid_signature_has_secret: [
        { ...DELIVERY, secret_id: null },
        { ...REFUSED, secret_id: id('sec') },
      ],
    },
  },
  {
    table: 'events',
    check: 'event_is_valid',
    valid: [
      { kind: 'test', source_event_id: id('evt') },
      { ...FACTS, ...RATE, likely_cause: 'processing', tax_minor: 100, store_fee_ppm: 1_000_000 },
    ],
    broken: {
      components_are_parts_of_the_payment: [
        { ...FACTS, tax_minor: 1, tax_ppm: 1 },
        { ...FACTS, store_fee_minor: 1, store_fee_ppm: 1 },
        { ...FACTS, tax_minor: 101 },
        { ...FACTS, store_fee_minor: -1 },
        { ...FACTS, tax_ppm: 1_000_001 },
        { ...FACTS, store_fee_ppm: -1 },
        { ...FACTS, payment_ref: null, tax_ppm: 1 },
        { ...FACTS, amount_minor: null, tax_ppm: 1 },
      ],
      events_currency_check: [{ ...FACTS, currency: 'usd' }],
      events_fx_rate_check: [{ ...FACTS, ...RATE, fx_rate: 0 }],
      events_fx_units_check: [{ ...FACTS, ...RATE, fx_units: 0 }],
      events_fx_worth_usd_check: [{ ...FACTS, ...RATE, fx_worth_usd: 0 }],
      events_kind_check: [{ ...FACTS, kind: 'other_kind' }],
      events_likely_cause_check: [{ ...FACTS, likely_cause: 'other' }],
      events_source_event_id_check: [
        { ...FACTS, source_event_id: '' },
        { ...FACTS, source_event_id: 'x'.repeat(501) },
      ],
      fx_rate_is_complete: [
        { ...FACTS, ...RATE, fx_rate: null },
        { ...FACTS, ...RATE, fx_units: null },
        { ...FACTS, ...RATE, fx_worth_usd: null },
      ],
    },
  },
  {
    table: 'payments',
    check: 'payment_is_valid',
    valid: [
      PAYMENT,
      {
        ...PAYMENT,
        binding_id: id('bnd'),
        attribution_id: id('att'),
        duplicate_of: id('pmt', 1),
        base_cents: 0,
        usd_cents: 1,
      },
    ],
    broken: {
      attribution_needs_a_binding: [{ ...PAYMENT, attribution_id: id('att') }],
      never_more_reversed_than_earned: [
        { ...PAYMENT, reversed_cents: 21 },
        { ...PAYMENT, reversed_cents: 11, corrected_cents: 10 },
        { ...PAYMENT, reversed_cents: -1 },
      ],
      no_duplicate_of_itself: [{ ...PAYMENT, duplicate_of: id('pmt') }],
      payments_amount_minor_check: [{ ...PAYMENT, amount_minor: 0 }],
      payments_base_cents_check: [{ ...PAYMENT, base_cents: -1 }],
      payments_corrected_cents_check: [{ ...PAYMENT, corrected_cents: -1 }],
      payments_currency_check: [{ ...PAYMENT, currency: 'EURO' }],
      payments_earned_cents_check: [{ ...PAYMENT, earned_cents: -1, reversed_cents: null }],
      payments_usd_cents_check: [{ ...PAYMENT, usd_cents: 0 }],
    },
  },
  {
    table: 'commissions',
    check: 'commission_is_valid',
    valid: [EARNING, REVERSAL, CORRECTION, ENTRY, BY_POLICY, FLAT, PAID],
    broken: {
      commissions_amount_cents_check: [{ ...EARNING, amount_cents: 0 }],
      commissions_environment_check: [{ ...EARNING, environment: 'sandbox' }],
      commissions_kind_check: [{ ...EARNING, kind: 'other' }],
      commissions_rate_bps_check: [{ ...EARNING, rate_bps: 0 }],
      commissions_rate_source_check: [{ ...EARNING, rate_source: 'other' }],
      commissions_reason_check: [{ ...CORRECTION, reason: 'other' }],
      commissions_status_check: [{ ...EARNING, status: 'other' }],
      correction_has_cause: [
        { ...CORRECTION, reason: null },
        { ...CORRECTION, duplicate_of_commission_id: null },
        { ...REVERSAL, duplicate_of_commission_id: id('com', 1) },
      ],
      correction_is_negative: [{ ...CORRECTION, amount_cents: 1 }],
      earning_is_positive: [{ ...EARNING, amount_cents: -1 }],
      entry_has_its_kind: [
        { ...ENTRY, kind: 'earning' },
        { ...EARNING, kind: 'bonus' },
      ],
      entry_has_its_sign: [
        { ...ENTRY, amount_cents: -1 },
        { ...ENTRY, kind: 'deduction' },
      ],
      matured_has_time: [
        { ...EARNING, matured_at: '2026-01-01' },
        { ...PAID, matured_at: null },
      ],
      only_entry_has_no_payment: [
        { ...EARNING, payment_id: null },
        { ...EARNING, match_method: null },
        { ...ENTRY, payment_id: id('pmt') },
        { ...ENTRY, link_id: id('lnk') },
        { ...ENTRY, base_cents: 1 },
      ],
      paid_means_in_a_payout: [
        { ...PAID, payout_id: null },
        { ...PAID, paid_at: null },
        { ...EARNING, payout_id: id('pay') },
      ],
      policy_has_its_terms: [
        { ...BY_POLICY, policy_version_id: null },
        { ...BY_POLICY, policy_inputs: null },
        { ...BY_POLICY, rule_index: 20 },
        { ...BY_POLICY, base_kind: 'other' },
        { ...BY_POLICY, flat_cents: 1 },
        { ...BY_POLICY, rate_source: 'app' },
        { ...EARNING, rate_source: 'policy' },
        { ...FLAT, flat_cents: 200, rate_bps: 1 },
      ],
      reversal_names_earning: [
        { ...REVERSAL, reverses_commission_id: null },
        { ...REVERSAL, adjustment_id: null },
        { ...EARNING, reverses_commission_id: id('com') },
      ],
    },
  },
  {
    table: 'payment_numbers',
    check: 'payment_number_is_valid',
    valid: [NUMBER, { ...NUMBER, counts_as: id('pmt', 1) }],
    broken: {
      counts_as_another_payment: [{ ...NUMBER, counts_as: id('pmt') }],
      payment_numbers_environment_check: [{ ...NUMBER, environment: 'sandbox' }],
      payment_numbers_number_check: [{ ...NUMBER, number: 0 }],
    },
  },
];

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  // A dump is restored without a search path: what a check names, it names in full.
  await client.query(`set search_path = ''`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Returns the name of the rule that a row breaks, or null. */
async function brokenRule({ table, check }: Rules, row: Row): Promise<string | null> {
  try {
    await client.query(`select public.${check}(r) from jsonb_populate_record(null::public.${table}, $1) r`, [
      row,
    ]);
    return null;
  } catch (error) {
    const { code, constraint } = error as pg.DatabaseError;
    if (code !== '23514' || constraint === undefined) throw error;
    return constraint;
  }
}

test.each(RULES)('a row of $table that breaks a rule is refused with the name of the rule', async (rules) => {
  for (const row of rules.valid) expect(await brokenRule(rules, row)).toBeNull();
  for (const [rule, rows] of Object.entries(rules.broken)) {
    for (const row of rows) expect([rule, await brokenRule(rules, row)]).toEqual([rule, rule]);
  }
});

test('the test has a row for each rule of the tables that a delivery writes to', async () => {
  for (const { check, broken } of RULES) {
    const { rows } = await client.query<{ name: string }>(
      `select distinct m[1] as name from pg_proc, regexp_matches(prosrc, 'then ''(\\w+)''', 'g') m where proname = $1`,
      [check],
    );
    expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(broken).toSorted());
  }
});

test('the tables that a delivery writes to have their rules in one valid constraint, whose text is short', async () => {
  const { rows } = await client.query(
    `select replace(conrelid::regclass::text, 'public.', '') as table, array_agg(conname::text) as checks, bool_and(convalidated) as "isValid",
            sum(length(conbin::text)) < 400 as "isShort"
       from pg_constraint where contype = 'c' and replace(conrelid::regclass::text, 'public.', '') = any($1) group by 1 order by 1`,
    [RULES.map(({ table }) => table)],
  );
  expect(rows).toEqual(
    RULES.map(({ table, check }) => ({ table, checks: [check], isValid: true, isShort: true })).toSorted(
      (a, b) => (a.table < b.table ? -1 : 1),
    ),
  );
});

test('what a check, an index or a generated column calls needs nothing of the schema', async () => {
  const { rows } = await client.query<{ name: string; source: string }>(
    `select distinct p.proname as name, p.prosrc as source
       from pg_depend d join pg_proc p on p.oid = d.refobjid and d.refclassid = 'pg_proc'::regclass
      where p.pronamespace = 'public'::regnamespace
        and d.classid in ('pg_constraint'::regclass, 'pg_attrdef'::regclass, 'pg_class'::regclass)`,
  );
  const { rows: functions } = await client.query<{ name: string }>(
    `select proname as name from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  const called = rows.flatMap(({ name, source }) =>
    functions
      .filter((one) => one.name !== name && new RegExp(`\\b${one.name}\\(`).test(source))
      .map((one) => [name, one.name]),
  );
  expect(rows.length).toBeGreaterThan(RULES.length - 1);
  expect(called).toEqual([]);
});
