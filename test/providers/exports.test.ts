import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import type { ExportRow } from '../../src/providers/shared/export.ts';
import {
  adaptyRows,
  paddleAdjustments,
  paddleTransactions,
  purchaseOf,
  refundOf,
  revenuecatRows,
  stripeRows,
  superwallRows,
} from '../support/provider-exports.ts';
import type { ListedSale } from '../support/provider-exports.ts';
import { bodyOf, eventOf, withoutComponents } from '../support/provider-fixtures.ts';

const AT = 1_772_443_800_000;
const EXPORTED_AT = AT + 86_400_000;
const SALE: ListedSale = {
  userId: 'user-hazel',
  cents: 1_999,
  ref: '4711',
  occurredAt: AT,
  refundedAt: null,
};

/** Returns the format of a provider that reads these rows. */
function formatOf(provider: ProviderName, row: ExportRow) {
  const format = providers[provider].exports.formats.find(
    ({ required, accepts }) => required.every((column) => column in row) && accepts?.(row) !== false,
  );
  if (format === undefined) throw new Error(`no format reads ${Object.keys(row).join(', ')}`);
  return format;
}

const readingOf = (provider: ProviderName, row: ExportRow) =>
  formatOf(provider, row).read(row, { exportedAt: EXPORTED_AT });

/** Returns what a row is read as: its events as the parser reads them, or why there are none. */
function read(provider: ProviderName, row: ExportRow): NormalizedEvent[] | string {
  const reading = readingOf(provider, row);
  if (reading.kind !== 'events') return `${reading.kind}: ${reading.reason}`;
  return reading.bodies.map((body) => eventOf(providers[provider].parse(bodyOf(body))));
}

/** Returns the bodies that a row is read as. */
function bodiesOf(provider: ProviderName, row: ExportRow) {
  const reading = readingOf(provider, row);
  if (reading.kind !== 'events') throw new Error(reading.kind);
  return reading.bodies;
}

function rowsOf(provider: ProviderName, sales: readonly ListedSale[]): readonly ExportRow[] {
  const objects = (text: string) => JSON.parse(text) as { data: ExportRow[] };
  switch (provider) {
    case 'revenuecat':
      return revenuecatRows(sales);
    case 'adapty':
      return adaptyRows(sales);
    case 'superwall':
      return superwallRows(sales);
    case 'stripe':
      return stripeRows(sales);
    case 'paddle':
      return [
        ...paddleTransactions(sales)
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as ExportRow),
        ...objects(paddleAdjustments(sales)).data,
      ];
  }
}

/** What an event says about money and users. A store refund has the id of its event instead of its own. */
function moneyOf({ payment, adjustment, userIds, occurredAt }: NormalizedEvent, hasRefundIds: boolean) {
  const refund = adjustment === null ? null : { ...adjustment, ref: hasRefundIds ? adjustment.ref : '' };
  return { payment, refund, userIds, occurredAt };
}

describe.each(PROVIDER_NAMES)('%s', (provider) => {
  const { hasRefundIds } = providers[provider].exports;

  // @promise reconcile-same-rules
  test('a row of any sale and refund is read as the webhooks that report them, to the cent, user and instant', () => {
    const sale = fc.record({
      userId: fc.stringMatching(/^[a-z0-9-]{1,40}$/),
      cents: fc.integer({ min: 1, max: 10_000_000 }),
      ref: fc.stringMatching(/^[a-z0-9]{4,20}$/),
      occurredAt: fc.integer({ min: 1_700_000_000, max: 1_800_000_000 }).map((seconds) => seconds * 1000),
      refundedAt: fc.constantFrom(null, 1_800_000_001_000),
    });
    fc.assert(
      fc.property(sale, (each) => {
        const fromExport = rowsOf(provider, [each])
          .flatMap((row) => read(provider, row) as NormalizedEvent[])
          .map((event) => eventOf(withoutComponents({ outcome: 'event', event })));
        const webhooks = [
          purchaseOf(provider, each),
          ...(each.refundedAt === null ? [] : [refundOf(provider, each, each.refundedAt)]),
        ].map((payload) => eventOf(withoutComponents(providers[provider].parse(bodyOf(payload)))));
        const money = (events: readonly NormalizedEvent[]) =>
          events.map((event) => moneyOf(event, hasRefundIds));
        expect(money(fromExport)).toEqual(money(webhooks));
      }),
      { numRuns: 60 },
    );
  });

  test('each event made from a row has an id of its own, the same every time', () => {
    const ids = () =>
      rowsOf(provider, [SALE, { ...SALE, ref: '4712', refundedAt: AT + 1_000 }])
        .flatMap((row) => read(provider, row) as NormalizedEvent[])
        .map(({ sourceEventId }) => sourceEventId);
    expect(new Set(ids()).size).toBe(3);
    expect(ids()).toEqual(ids());
    expect(ids().every((id) => id.startsWith('reconciliation:'))).toBe(true);
  });
});

const only = (result: NormalizedEvent[] | string): NormalizedEvent => {
  if (typeof result === 'string' || result.length !== 1) throw new Error(JSON.stringify(result));
  return result[0] as NormalizedEvent;
};

describe('RevenueCat', () => {
  const [row = {}] = revenuecatRows([SALE]);
  const event = (over: ExportRow) => only(read('revenuecat', { ...row, ...over }));

  test.each<[string, ExportRow]>([
    ['a trial', { is_trial_period: 'true', purchase_price_in_usd: '0' }],
    ['a purchase that a family member shares', { ownership_type: 'FAMILY_SHARED' }],
    ['access that the founder granted', { store: 'promotional' }],
    ['a purchase of zero', { purchase_price_in_usd: '0.00', purchase_price_in_purchased_currency: '0' }],
  ])('%s is no payment', (_, over) => {
    expect(event(over).payment).toBeNull();
  });

  test.each<[string, ExportRow, object]>([
    [
      'the number of the period in Stripe',
      { store: 'stripe', renewal_number: '3' },
      { store: 'stripe', ref: '4711:3' },
    ],
    [
      'no number for a purchase that does not renew',
      { store: 'stripe', is_auto_renewable: 'false' },
      { ref: '4711' },
    ],
    [
      'the amount in the currency of the purchase',
      {
        purchased_currency: 'JPY',
        purchase_price_in_purchased_currency: '2980',
        purchase_price_in_usd: '19.4211',
      },
      { currency: 'JPY', amountMinor: 2_980, usdCents: 1_942 },
    ],
    ['flags as older versions write them', { is_auto_renewable: 't', is_sandbox: 'f' }, { ref: '4711' }],
  ])('a payment has %s', (_, over, expected) => {
    expect(event(over)).toMatchObject({ environment: 'production', payment: expected });
  });

  const NOTHING_LEFT = { price_in_usd: '0', price_in_purchased_currency: '0' };

  test.each<[string, ExportRow, number]>([
    [
      'of the whole price where the file does not state what is left of it',
      { price_in_usd: '', price_in_purchased_currency: '' },
      1_999,
    ],
    ['of the whole price where nothing is left', NOTHING_LEFT, 1_999],
    ['of a part where a part is left', { price_in_usd: '13.99', price_in_purchased_currency: '13.99' }, 600],
    [
      'in dollars where only dollars are stated',
      { price_in_usd: '13.99', price_in_purchased_currency: '' },
      600,
    ],
  ])('a refunded row has a refund %s', (_, over, amountMinor) => {
    const result = read('revenuecat', { ...row, refunded_at: '2026-03-09 00:00:00', ...over });
    expect(result).toMatchObject([
      { kind: 'purchase', payment: { amountMinor: 1_999 } },
      { adjustment: { currency: 'USD', amountMinor } },
    ]);
  });

  test('a refunded row of which only the rest in the currency of the purchase is stated has a refund without dollars', () => {
    const left = { purchased_currency: 'EUR', price_in_usd: '', price_in_purchased_currency: '13.99' };
    expect(read('revenuecat', { ...row, refunded_at: '2026-03-09 00:00:00', ...left })).toMatchObject([
      { payment: { currency: 'EUR', amountMinor: 1_999 } },
      { adjustment: { currency: 'EUR', amountMinor: 600, usdCents: null } },
    ]);
  });

  test('a refunded row of which all is left has no refund, and one that is no number is not read', () => {
    const refunded = { ...row, refunded_at: '2026-03-09 00:00:00' };
    const local = { price_in_purchased_currency: '1,99' };
    expect(read('revenuecat', { ...refunded, ...local })).toMatch(/price_in_purchased_currency is not a dec/);
    expect(read('revenuecat', { ...refunded, price_in_usd: '19.99' })).toHaveLength(1);
    expect(read('revenuecat', { ...refunded, price_in_usd: '19,99' })).toMatch(
      /price_in_usd is not a decimal/,
    );
  });

  test('a row becomes the body of the webhook, with every fact that the row has', () => {
    const renewal = {
      ...row,
      purchased_currency: 'EUR',
      purchase_price_in_purchased_currency: '17.50',
      renewal_number: '3',
      ...NOTHING_LEFT,
      refunded_at: '2026-03-09 00:00:00',
      original_store_transaction_id: '4709',
      tax_percentage: '0.1736',
      commission_percentage: '0.2479',
    };
    const body = {
      app_user_id: 'user-hazel',
      original_app_user_id: '$RCAnonymousID:87c6049c58069238dce29853916d624c',
      aliases: [],
      currency: 'EUR',
      environment: 'PRODUCTION',
      event_timestamp_ms: AT,
      expiration_at_ms: AT + 30 * 86_400_000,
      id: 'reconciliation:app_store:4711:3',
      commission_percentage: 0.2479,
      is_family_share: false,
      is_trial_conversion: false,
      original_transaction_id: '4709',
      period_type: 'NORMAL',
      price: 19.99,
      price_in_purchased_currency: 17.5,
      product_id: 'lantern.plus.monthly',
      purchased_at_ms: AT,
      renewal_number: 3,
      store: 'APP_STORE',
      tax_percentage: 0.1736,
      transaction_id: '4711',
      type: 'RENEWAL',
    };
    const refundedAt = Date.UTC(2026, 2, 9);
    const refund = {
      ...body,
      type: 'CANCELLATION',
      cancel_reason: 'CUSTOMER_SUPPORT',
      event_timestamp_ms: refundedAt,
      id: `reconciliation:refund:app_store:4711:3:${refundedAt}`,
      price: -19.99,
      price_in_purchased_currency: -17.5,
    };
    expect(bodiesOf('revenuecat', renewal)).toEqual([
      { api_version: '1.0', event: body },
      { api_version: '1.0', event: refund },
    ]);
  });

  test.each<[string, ExportRow, object]>([
    ['the first period', { renewal_number: '1' }, { type: 'INITIAL_PURCHASE', renewal_number: 1 }],
    ['the second period', { renewal_number: '2' }, { type: 'RENEWAL', renewal_number: 2 }],
    [
      'a period without its number',
      { renewal_number: 'two' },
      { type: 'INITIAL_PURCHASE', renewal_number: null, id: 'reconciliation:app_store:4711:' },
    ],
    ['the twelfth period', { renewal_number: '12' }, { type: 'RENEWAL', renewal_number: 12 }],
    ...['', '12x', 'x12', '1.5', '1234567890'].map((written): [string, ExportRow, object] => [
      `a period with the number ${JSON.stringify(written)}`,
      { renewal_number: written },
      { type: 'INITIAL_PURCHASE', renewal_number: null },
    ]),
    ['a row without an ownership', { ownership_type: '' }, { is_family_share: false }],
    [
      'a transaction of Google Play without an end',
      { store: 'play_store', end_time: '' },
      { store: 'PLAY_STORE' },
    ],
    [
      'a transaction of Google Play that ends when it starts',
      { store: 'play_store', end_time: row['start_time'] ?? '' },
      { store: 'PLAY_STORE', expiration_at_ms: AT },
    ],
    [
      'a transaction of another store that ends before it starts',
      { end_time: '2020-01-01 00:00:00' },
      { store: 'APP_STORE' },
    ],
    [
      'a purchase that does not renew',
      { is_auto_renewable: 'false' },
      {
        type: 'NON_RENEWING_PURCHASE',
        renewal_number: null,
        expiration_at_ms: null,
        id: 'reconciliation:app_store:4711',
      },
    ],
    [
      'a trial that converts, is shared and is of the sandbox',
      {
        is_trial_period: 'true',
        is_trial_conversion: 't',
        ownership_type: 'Family_Shared',
        is_sandbox: '1',
      },
      {
        period_type: 'TRIAL',
        is_trial_conversion: true,
        is_family_share: true,
        environment: 'SANDBOX',
      },
    ],
  ])('%s is reported as one', (_, over, fields) => {
    expect(bodiesOf('revenuecat', { ...row, ...over })).toEqual([
      expect.objectContaining({ event: expect.objectContaining(fields) }),
    ]);
  });

  test('the refund of a row without an amount is no event, and one in one currency has only that', () => {
    const refunded = { ...row, ...NOTHING_LEFT, refunded_at: '2026-03-09 00:00:00' };
    const free = { purchase_price_in_usd: '0', purchase_price_in_purchased_currency: '' };
    expect(bodiesOf('revenuecat', { ...refunded, ...free })).toHaveLength(1);
    const [, refund] = bodiesOf('revenuecat', {
      ...refunded,
      purchase_price_in_usd: '',
      purchased_currency: 'EUR',
    });
    expect(refund).toMatchObject({ event: { price: null, price_in_purchased_currency: -19.99 } });
    const local = { purchase_price_in_usd: '19.99', purchase_price_in_purchased_currency: '' };
    expect(bodiesOf('revenuecat', { ...refunded, ...local })).toMatchObject([
      {},
      { event: { price: -19.99, price_in_purchased_currency: null } },
    ]);
  });

  test('a sandbox transaction is of the sandbox, and a renewal after a trial is a conversion', () => {
    expect(event({ is_sandbox: 'true' }).environment).toBe('sandbox');
    expect(event({ renewal_number: '2', is_trial_conversion: 'true' }).kind).toBe('trial_converted');
  });

  test.each<[string, ExportRow, string]>([
    [
      'that failed in Google Play',
      { store: 'play_store', end_time: '2020-01-01 00:00:00' },
      'skipped: a transaction of Google Play',
    ],
    [
      'with a comma as decimal separator',
      { purchase_price_in_usd: '19,99' },
      'unreadable: purchase_price_in_usd is not a decimal',
    ],
    ['without a time', { start_time: 'yesterday' }, 'unreadable: start_time is not a time'],
    [
      'with a comma in the local price',
      { purchase_price_in_purchased_currency: '19,99' },
      'unreadable: purchase_price_in_purchased_currency is not a decimal',
    ],
    ['with a comma in the tax', { tax_percentage: '0,17' }, 'unreadable: tax_percentage is not a decimal'],
    [
      'with a comma in the fee of the store',
      { commission_percentage: '0,3' },
      'unreadable: commission_percentage is not a decimal',
    ],
    ['without the time of its refund', { refunded_at: 'yesterday' }, 'unreadable: refunded_at is not a time'],
    ['without a store', { store: '' }, 'unreadable: store_transaction_id or store is empty'],
    [
      'without a transaction',
      { store_transaction_id: '' },
      'unreadable: store_transaction_id or store is empty',
    ],
  ])('a row %s is not compared, and says why', (_, over, words) => {
    expect(read('revenuecat', { ...row, ...over })).toContain(words);
  });
});

// @promise reconcile-compares-again
test('a second refund of one transaction of RevenueCat is an event of its own, and the same row is the same event', () => {
  const ids = [AT + 1_000, AT + 1_000, AT + 2_000].map((refundedAt) => {
    const [row = {}] = revenuecatRows([{ ...SALE, refundedAt }]);
    const events = read('revenuecat', row);
    if (typeof events === 'string') throw new Error(events);
    return events.filter(({ adjustment }) => adjustment !== null).map(({ sourceEventId }) => sourceEventId);
  });
  expect(ids[0]).toHaveLength(1);
  expect(ids[1]).toEqual(ids[0]);
  expect(ids[2]).not.toEqual(ids[0]);
});

describe('Stripe', () => {
  const [row = {}] = stripeRows([SALE]);
  const balance = formatOf('stripe', row);
  const event = (over: ExportRow) => only(read('stripe', { ...row, ...over }));

  test.each([
    ['usd', '19.99', 1_999],
    ['jpy', '1500', 1_500],
    ['kwd', '1.235', 1_235],
    ['isk', '500.00', 500],
    ['huf', '1234.50', 123_450],
    ['mga', '7', 700],
  ])('an amount of %s %s is %d minor units', (currency, amount, minor) => {
    const { payment } = event({ customer_facing_currency: currency, customer_facing_amount: amount });
    expect(payment).toMatchObject({ currency: currency.toUpperCase(), amountMinor: minor });
  });

  test('a payment intent counts under its own id, with the user of its metadata or of no one', () => {
    expect(event({ invoice_id: '' })).toMatchObject({
      payment: { ref: 'pi_4711' },
      userIds: ['user-hazel'],
      paymentAliases: [{ aliasRef: 'ch_4711', paymentRef: 'pi_4711' }],
    });
    // Its customer leads to no user either.
    expect(event({ invoice_id: '', 'payment_metadata[app_user_id]': '' })).toMatchObject({
      payment: { ref: 'pi_4711' },
      userIds: [],
      userKeys: [],
    });
  });

  // @promise reconcile-refuses
  test.each<[string, ExportRow, string | null]>([
    ['by card', { invoice_id: '' }, null],
    ['by direct debit', { invoice_id: '', payment_method_type: 'sepa_debit' }, 'send the webhook again'],
    [
      'by a method that the row does not name',
      { invoice_id: '', payment_method_type: '' },
      'send the webhook again',
    ],
    ['by card of an invoice', {}, 'Export the invoices as JSON'],
    [
      'by card that names no user',
      { invoice_id: '', 'payment_metadata[app_user_id]': '' },
      'only if a checkout session named its user',
    ],
  ])(
    'a charge %s is fed back only where it cannot fail any more, is paid in full and names its user',
    (_, over, words) => {
      const reading = balance.read({ ...row, ...over }, { exportedAt: EXPORTED_AT });
      expect(reading).toMatchObject({
        kind: 'events',
        refusal: words === null ? null : expect.stringContaining(words),
      });
    },
  );

  /** Returns the payment of several rows of one invoice. */
  function merged(...overs: readonly ExportRow[]) {
    const parts = overs.map((over) => {
      const reading = balance.read({ ...row, ...over }, { exportedAt: EXPORTED_AT });
      if (reading.kind !== 'events') throw new Error(reading.reason);
      return { body: reading.bodies[0] ?? {}, isNegative: reading.isNegative ?? false };
    });
    const body = balance.merge?.(parts) ?? null;
    return body === null ? null : eventOf(providers.stripe.parse(bodyOf(body)));
  }

  // @promise reconcile-same-rules
  test('the charges of an invoice that was paid in parts are one payment of their sum, at the time of the last', () => {
    const second = { charge_id: 'ch_2', source_id: 'ch_2', created_utc: '2026-03-05 00:00:00' };
    const parts = [{ customer_facing_amount: '12.50' }, { ...second, customer_facing_amount: '7.49' }];
    for (const order of [parts, parts.toReversed()]) {
      expect(merged(...order)).toMatchObject({
        occurredAt: Date.parse('2026-03-05T00:00:00Z'),
        userIds: ['user-hazel'],
        payment: { ref: 'in_4711', amountMinor: 1_999 },
      });
    }
    // A row that is in the file twice counts once.
    expect(merged(...parts, ...parts)?.payment?.amountMinor).toBe(1_999);
  });

  // @promise reconcile-late-webhook
  test('the payment of several charges names the payment intents of all of them', () => {
    const second = { charge_id: 'ch_2', payment_intent_id: 'pi_2', created_utc: '2026-03-05 00:00:00' };
    const names = merged({}, second)?.paymentAliases;
    expect(names?.every(({ paymentRef }) => paymentRef === 'in_4711')).toBe(true);
    const aliasRefs = new Set(names?.map(({ aliasRef }) => aliasRef));
    expect(aliasRefs).toEqual(new Set(['pi_4711', String(row['charge_id']), 'pi_2', 'ch_2']));
  });

  test('what failed or was not captured reduces its charge, and a charge that failed completely is no payment', () => {
    const failed = { reporting_category: 'charge_failure', created_utc: '2026-03-05 00:00:00' };
    expect(merged({}, failed)).toBeNull();
    const uncaptured = { reporting_category: 'partial_capture_reversal', customer_facing_amount: '-9.99' };
    expect(merged({}, uncaptured)?.payment?.amountMinor).toBe(1_000);
  });

  test.each([
    ['refund', 'refund', 're_1', { state: 'applied', rank: 1 }],
    ['refund_failure', 'refund_reversed', 're_1', { state: 'reversed', rank: 2 }],
    ['dispute', 'chargeback', 'du_1', { state: 'applied', rank: 2 }],
    ['dispute_reversal', 'chargeback_reversed', 'du_1', { state: 'reversed', rank: 2 }],
  ])('a %s is read with the id of its source', (category, kind, source, expected) => {
    const over = { reporting_category: category, source_id: source, customer_facing_amount: '-5.00' };
    expect(event(over)).toMatchObject({
      kind,
      adjustment: { ref: source, paymentRef: 'pi_4711', amountMinor: 500, ...expected },
    });
  });

  // @promise reconcile-compares-again
  test.each(['refund', 'refund_failure', 'dispute', 'dispute_reversal'])(
    'a second %s of one source is an event of its own, and the same row is the same event',
    (category) => {
      const id = (created: string) =>
        event({ reporting_category: category, source_id: 'du_1', created_utc: created }).sourceEventId;
      expect(id('2026-03-05 00:00:00')).toBe(id('2026-03-05 00:00:00'));
      expect(id('2026-03-05 00:00:00')).not.toBe(id('2026-04-05 00:00:00'));
    },
  );

  test.each<[string, ExportRow, string]>([
    ['of a fee', { reporting_category: 'fee' }, 'skipped: a movement of the balance'],
    [
      'of a charge that no payment intent and no invoice has',
      { invoice_id: '', payment_intent_id: '' },
      'skipped: a charge without',
    ],
    [
      'without the currency of the customer',
      { customer_facing_currency: '' },
      'unreadable: customer_facing_currency is empty',
    ],
    [
      'with thousands separated',
      { customer_facing_amount: '1,999.00' },
      'unreadable: customer_facing_amount is not a decimal',
    ],
    ['without a time', { created_utc: '' }, 'unreadable: created_utc is not a time'],
    [
      'of a refund without its id',
      { reporting_category: 'refund', source_id: '' },
      'unreadable: source_id is empty',
    ],
  ])('a row %s is not compared, and says why', (_, over, words) => {
    expect(read('stripe', { ...row, ...over })).toContain(words);
  });

  const invoice = {
    id: 'in_1',
    object: 'invoice',
    status: 'paid',
    currency: 'eur',
    amount_paid: 990,
    created: 1_772_443_800,
    payments: { data: [], has_more: false },
  };
  const refund = {
    id: 're_1',
    object: 'refund',
    status: 'succeeded',
    currency: 'eur',
    amount: 990,
    created: 1_772_443_800,
    payment_intent: 'pi_1',
  };
  const dispute = { ...refund, id: 'du_1', object: 'dispute', status: 'lost' };

  test('objects of the API are read as the webhooks about them', () => {
    const paid = { ...invoice, status_transitions: { paid_at: 1_772_443_900 }, livemode: true };
    expect(only(read('stripe', paid))).toMatchObject({
      occurredAt: 1_772_443_900_000,
      environment: 'production',
      payment: { ref: 'in_1', currency: 'EUR', amountMinor: 990 },
    });
    expect(only(read('stripe', { ...invoice, livemode: false })).environment).toBe('sandbox');
    expect(read('stripe', { ...invoice, status: 'open' })).toContain('skipped');
    expect(only(read('stripe', refund)).adjustment).toMatchObject({ ref: 're_1', state: 'applied' });
    expect(only(read('stripe', { ...refund, status: 'failed' })).adjustment?.state).toBe('reversed');
    expect(read('stripe', { ...refund, status: 'pending' })).toContain('skipped');
    expect(only(read('stripe', dispute)).adjustment).toMatchObject({ kind: 'chargeback', state: 'applied' });
    expect(only(read('stripe', { ...dispute, status: 'won' })).adjustment?.state).toBe('reversed');
    expect(read('stripe', { ...dispute, status: 'warning_closed' })).toContain('skipped');
  });

  test.each<[string, readonly object[], number]>([
    ['needs_response', [], 1_772_443_800],
    ['lost', [], 1_772_443_800],
    ['lost', [{ amount: -990, created: 1_772_443_900 }], 1_772_443_900],
    ['won', [], EXPORTED_AT / 1000],
    ['prevented', [], EXPORTED_AT / 1000],
    ['won', [{ amount: -990, created: 1_772_443_900 }], EXPORTED_AT / 1000],
    [
      'won',
      [
        { amount: -990, created: 1_772_443_900 },
        { amount: 990, created: 1_772_500_000 },
      ],
      1_772_500_000,
    ],
  ])(
    'a dispute with the status %s and the balance %j is dated by the balance, else by the export',
    (status, rows, at) => {
      const dated = only(read('stripe', { ...dispute, status, balance_transactions: rows }));
      expect(dated.occurredAt).toBe(at * 1000);
      expect(dated.sourceEventId).toContain(String(at));
    },
  );

  test('an invoice is read with what it received outside Stripe, and with the payment intents that paid it', () => {
    const outside = {
      id: 'inpay_1',
      currency: 'eur',
      amount_paid: 400,
      status: 'paid',
      payment: { type: 'payment_record', payment_record: 'pr_1' },
    };
    const through = {
      id: 'inpay_2',
      status: 'paid',
      payment: { type: 'payment_intent', payment_intent: 'pi_1' },
    };
    const open = { ...outside, id: 'inpay_3', status: 'open' };
    const payments = { data: [outside, through, open], has_more: false };
    expect(read('stripe', { ...invoice, payments })).toMatchObject([
      {
        payment: { ref: 'in_1', amountMinor: 990 },
        paymentAliases: [{ aliasRef: 'pi_1', paymentRef: 'in_1' }],
      },
      {
        payment: null,
        adjustment: { kind: 'out_of_band', ref: 'inpay_1', paymentRef: 'in_1', amountMinor: 400 },
      },
    ]);
  });

  test.each<[string, ExportRow, string]>([
    ['without its payments', { payments: undefined }, 'refused: The invoices do not state their payments'],
    [
      'with some of its payments',
      { payments: { data: [], has_more: true } },
      'unreadable: The invoice has more payments',
    ],
    ['of zero', { payments: undefined, amount_paid: 0 }, 'skipped'],
  ])('an invoice %s does not earn', (_, over, words) => {
    expect(read('stripe', { ...invoice, ...over })).toContain(words);
  });

  test('an invoice from before its payments were listed says itself whether it was paid outside Stripe', () => {
    const { payments: _, ...before } = invoice;
    expect(only(read('stripe', { ...before, paid_out_of_band: false })).payment?.amountMinor).toBe(990);
    expect(only(read('stripe', { ...before, paid_out_of_band: true })).payment).toBeNull();
  });
});

describe('Paddle', () => {
  const transaction = { id: 'txn_1', status: 'completed', currency_code: 'USD', details: {} };
  const adjustment = {
    id: 'adj_1',
    status: 'approved',
    action: 'refund',
    transaction_id: 'txn_1',
    currency_code: 'USD',
    totals: {},
  };
  const times = {
    billed_at: '2026-03-03T00:00:00Z',
    updated_at: '2026-03-04T00:00:00Z',
    created_at: '2026-03-02T00:00:00Z',
  };

  test.each<[string, ExportRow, string]>([
    ['when it was billed', times, '2026-03-03T00:00:00.000Z'],
    ['else when it was changed', { ...times, billed_at: null }, '2026-03-04T00:00:00.000Z'],
    [
      'else when it was created',
      { created_at: times.created_at, updated_at: 'yesterday' },
      '2026-03-02T00:00:00.000Z',
    ],
  ])('a transaction is a notification from %s', (_, stated, at) => {
    const entity = { ...transaction, ...stated };
    expect(bodiesOf('paddle', entity)).toEqual([
      {
        event_id: 'reconciliation:transaction.completed:txn_1:completed',
        event_type: 'transaction.completed',
        occurred_at: at,
        data: entity,
      },
    ]);
  });

  test.each<[string, ExportRow, string]>([
    ['when it was changed', times, '2026-03-04T00:00:00.000Z'],
    ['else when it was created', { ...times, updated_at: null }, '2026-03-02T00:00:00.000Z'],
  ])('an adjustment is a notification from %s', (_, stated, at) => {
    const entity = { ...adjustment, ...stated };
    expect(bodiesOf('paddle', entity)).toEqual([
      {
        event_id: 'reconciliation:adjustment.updated:adj_1:approved',
        event_type: 'adjustment.updated',
        occurred_at: at,
        data: entity,
      },
    ]);
  });

  test('what is not completed or has no time is not compared, and says why', () => {
    expect(read('paddle', { ...transaction, ...times, status: 'billed' })).toBe(
      'skipped: a transaction that is not completed',
    );
    expect(read('paddle', transaction)).toContain('unreadable: billed_at is not a time');
    expect(read('paddle', adjustment)).toContain('unreadable: updated_at is not a time');
  });
});

describe('Superwall and Adapty', () => {
  const [superwall = {}] = superwallRows([SALE]);
  const [adapty = {}] = adaptyRows([SALE]);

  test('an event of the SDK is not compared, since the store reports the payment in another row', () => {
    expect(read('superwall', { ...superwall, source: 'sdk' })).toContain('skipped: an event of the SDK');
    expect(read('superwall', { ...superwall, name: 'transaction_complete' })).toContain('skipped');
  });

  test('a null of ClickHouse is no value', () => {
    const { payment } = only(read('superwall', { ...superwall, price: String.raw`\N` }));
    expect(payment).toMatchObject({ currency: 'USD', amountMinor: 1_999 });
  });

  test('a sandbox event is of the sandbox', () => {
    expect(only(read('superwall', { ...superwall, environment: 'SANDBOX' })).environment).toBe('sandbox');
    expect(only(read('adapty', { ...adapty, environment: 'Sandbox' })).environment).toBe('sandbox');
  });

  test('a row of Superwall becomes the body of its legacy format, with every fact that the row has', () => {
    const row = { ...superwall, ts: '2026-03-02 10:00:00', periodType: 'TRIAL', isTrialConversion: '1' };
    const at = Date.UTC(2026, 2, 2, 10);
    expect(bodiesOf('superwall', row)).toEqual([
      {
        object: 'event',
        type: 'initial_purchase',
        timestamp: at,
        data: {
          id: 'reconciliation:4711:initial_purchase',
          name: 'initial_purchase',
          ts: at,
          purchasedAt: AT,
          environment: 'PRODUCTION',
          periodType: 'TRIAL',
          isTrialConversion: true,
          productId: 'lantern.plus.monthly',
          originalAppUserId: 'user-hazel',
          transactionId: '4711',
          store: 'APP_STORE',
          price: 19.99,
          priceInPurchasedCurrency: 19.99,
          currencyCode: 'USD',
        },
      },
    ]);
  });

  test('a row of Adapty becomes the body of its webhook, with every fact that the row has', () => {
    const row = {
      ...adapty,
      event_type: 'Subscription_Renewed',
      revenue_usd: '5.01',
      revenue_local: '4.50',
      currency: 'EUR',
      cancellation_reason: 'upgraded',
      original_transaction_id: '4709',
    };
    const moment = new Date(AT).toISOString();
    expect(bodiesOf('adapty', row)).toEqual([
      {
        event_type: 'subscription_renewed',
        event_datetime: moment,
        customer_user_id: 'user-hazel',
        event_properties: {
          store: 'app_store',
          currency: 'EUR',
          price_usd: 5.01,
          price_local: 4.5,
          profile_event_id: `reconciliation:subscription_renewed:4711:${AT}`,
          environment: 'Production',
          vendor_product_id: 'lantern.plus.monthly',
          transaction_id: '4711',
          original_transaction_id: '4709',
          event_datetime: moment,
          cancellation_reason: 'upgraded',
        },
      },
    ]);
    const [{ event_properties: stated } = {}] = bodiesOf('adapty', { ...row, transaction_id: '' });
    expect(stated).toMatchObject({
      profile_event_id: `reconciliation:subscription_renewed::${AT}`,
      transaction_id: null,
    });
  });

  test.each<[ProviderName, ExportRow, string]>([
    ['superwall', { ...superwall, id: '' }, 'unreadable: id or name is empty.'],
    ['superwall', { ...superwall, name: 'null' }, 'unreadable: id or name is empty.'],
    ['superwall', { ...superwall, ts: 'yesterday' }, 'unreadable: ts is not a time'],
    ['superwall', { ...superwall, price: '19,99' }, 'unreadable: price is not a decimal'],
    [
      'superwall',
      { ...superwall, priceInPurchasedCurrency: '19,99' },
      'unreadable: priceInPurchasedCurrency is not a decimal',
    ],
    ['adapty', { ...adapty, event_type: ' ' }, 'unreadable: event_type is empty.'],
    ['adapty', { ...adapty, event_datetime: 'yesterday' }, 'unreadable: event_datetime is not a time'],
    ['adapty', { ...adapty, revenue_usd: '1 000.00' }, 'unreadable: revenue_usd is not a decimal'],
    ['adapty', { ...adapty, revenue_local: '19,99' }, 'unreadable: revenue_local is not a decimal'],
  ])(
    'a row of %s that cannot be read is not compared, and says which cell is wrong: %#',
    (provider, row, words) => {
      expect(read(provider, row)).toContain(words);
    },
  );

  test('the refund of an upgrade, whose amount is not the refunded one, takes nothing back', () => {
    const upgraded = { ...adapty, event_type: 'subscription_refunded', cancellation_reason: 'upgraded' };
    expect(only(read('adapty', upgraded))).toMatchObject({ adjustment: null, priceUnknown: true });
  });
});
