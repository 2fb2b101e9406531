import { describe, expect, test } from '@jest/globals';
import type { ExportRow, PaymentPart } from '../../src/providers/shared/export.ts';
import { stripeExports } from '../../src/providers/stripe/export.ts';

const EXPORTED_AT = Date.UTC(2026, 6, 1);
const AT = Date.UTC(2026, 5, 15, 12) / 1000;
const [balance, invoices, refunds, disputes] = stripeExports.formats;

const read = (format: typeof balance, row: ExportRow) => format?.read(row, { exportedAt: EXPORTED_AT });

/** Returns the only event of a row, and how its row counts. */
const eventOf = (format: typeof balance, row: ExportRow) => {
  const reading = read(format, row);
  if (reading?.kind !== 'events') throw new Error(JSON.stringify(reading));
  const { bodies, ...rest } = reading;
  return { ...rest, bodies };
};

const MOVED_NOTHING = { kind: 'skipped', reason: 'an object that moved no money' };
const NO_TIME = { kind: 'unreadable', reason: 'created is not a time in seconds.' };

const row = {
  created_utc: '2026-06-15 12:00:00',
  reporting_category: 'charge',
  source_id: 'ch_1',
  customer_facing_amount: '12.50',
  customer_facing_currency: 'eur',
  charge_id: 'ch_1',
  payment_intent_id: 'pi_1',
  invoice_id: '',
  customer_id: 'cus_1',
  payment_method_type: 'card',
  'payment_metadata[app_user_id]': 'ann',
};
const event = (type: string, id: string, object: object) => ({
  id: expect.stringMatching(new RegExp(`${type}:${id}$`)),
  object: 'event',
  type,
  created: AT,
  livemode: true,
  data: { object },
});

describe('a row of the balance', () => {
  test('with a user is a payment intent', () => {
    expect(eventOf(balance, row)).toEqual({
      kind: 'events',
      group: 'pi_1',
      refusal: null,
      isNegative: false,
      bodies: [
        event('payment_intent.succeeded', 'pi_1', {
          id: 'pi_1',
          object: 'payment_intent',
          currency: 'eur',
          amount_received: 1_250,
          latest_charge: 'ch_1',
          customer: 'cus_1',
          metadata: { app_user_id: 'ann' },
        }),
      ],
    });
  });

  test('with an invoice is that invoice, which may be paid in parts', () => {
    expect(eventOf(balance, { ...row, invoice_id: 'in_1' })).toEqual({
      kind: 'events',
      group: 'in_1',
      refusal: expect.stringContaining('Export the invoices as JSON'),
      isNegative: false,
      bodies: [
        event('invoice.paid', 'in_1', {
          id: 'in_1',
          object: 'invoice',
          currency: 'eur',
          amount_paid: 1_250,
          customer: 'cus_1',
          payment_intent: 'pi_1',
          charge: 'ch_1',
          metadata: { app_user_id: 'ann' },
          status_transitions: { paid_at: AT },
          lines: { data: [] },
        }),
      ],
    });
  });

  test('without a user is a checkout session, which is not fed back', () => {
    expect(eventOf(balance, { ...row, 'payment_metadata[app_user_id]': '' })).toEqual({
      kind: 'events',
      group: 'pi_1',
      refusal: expect.stringContaining('names no user'),
      isNegative: false,
      bodies: [
        event('checkout.session.completed', 'pi_1', {
          id: 'pi_1',
          object: 'checkout.session',
          mode: 'payment',
          payment_status: 'paid',
          currency: 'eur',
          amount_total: 1_250,
          payment_intent: 'pi_1',
          metadata: {},
        }),
      ],
    });
  });

  test.each([
    [
      'without a method',
      '',
      'The row has no payment_method_type, and a bank debit is in the balance before it succeeds or fails. Have Stripe send the webhook again.',
    ],
    [
      'by a bank debit',
      'sepa_debit',
      'The payment is not by card, and it may be in the balance before it succeeds or fails. Have Stripe send the webhook again.',
    ],
  ])('%s is not fed back, and says why', (_, payment_method_type, refusal) => {
    expect(eventOf(balance, { ...row, payment_method_type }).refusal).toBe(refusal);
  });

  test.each([
    ['refund', 'refund.updated', { created: AT, status: 'succeeded' }],
    ['refund_failure', 'refund.failed', { status: 'failed' }],
    ['dispute', 'charge.dispute.funds_withdrawn', {}],
    ['dispute_reversal', 'charge.dispute.funds_reinstated', { status: 'won' }],
  ])('of the category %s is the movement %s', (reporting_category, type, further) => {
    const moved = { ...row, reporting_category, source_id: 'src_1', customer_facing_amount: '-12.50' };
    expect(eventOf(balance, moved)).toEqual({
      kind: 'events',
      group: 'pi_1',
      refusal: null,
      isNegative: false,
      bodies: [
        event(type, `src_1:${AT}`, {
          id: 'src_1',
          currency: 'eur',
          amount: 1_250,
          payment_intent: 'pi_1',
          charge: 'ch_1',
          ...further,
        }),
      ],
    });
    // A movement of a charge without a payment intent and without an invoice counts.
    expect(eventOf(balance, { ...moved, payment_intent_id: '' }).group).toBe('ch_1');
    expect(read(balance, { ...moved, source_id: '' })).toMatchObject({
      kind: 'unreadable',
      reason: expect.stringContaining('source_id'),
    });
    expect(read(balance, { ...moved, payment_intent_id: '', charge_id: '' })).toMatchObject({
      kind: 'unreadable',
      reason: expect.stringContaining('charge_id'),
    });
  });

  test.each([
    [{ reporting_category: 'payout' }, 'skipped', 'no payment, refund or dispute'],
    [{ reporting_category: '' }, 'skipped', 'no payment, refund or dispute'],
    [{ payment_intent_id: '' }, 'skipped', 'a charge without a payment intent'],
    [{ created_utc: 'today' }, 'unreadable', 'created_utc'],
    [{ customer_facing_currency: '' }, 'unreadable', 'customer_facing_currency is empty'],
    [{ customer_facing_amount: '' }, 'unreadable', 'customer_facing_amount'],
    [{ customer_facing_amount: '12.50 EUR' }, 'unreadable', 'customer_facing_amount'],
    [{ customer_facing_amount: 'EUR 12.50' }, 'unreadable', 'customer_facing_amount'],
    [{ customer_facing_amount: '12,50' }, 'unreadable', 'customer_facing_amount'],
    [{ customer_facing_amount: '1e3' }, 'unreadable', 'customer_facing_amount'],
  ])('with %j is %s: %s', (over, kind, reason) => {
    expect(read(balance, { ...row, ...over })).toEqual({ kind, reason: expect.stringContaining(reason) });
  });

  test('with an invoice and no payment intent is its invoice', () => {
    expect(eventOf(balance, { ...row, invoice_id: 'in_1', payment_intent_id: '' }).group).toBe('in_1');
  });

  test('that takes a charge back counts against the charges of its payment', () => {
    expect(eventOf(balance, { ...row, reporting_category: 'charge_failure' }).isNegative).toBe(true);
    expect(eventOf(balance, { ...row, reporting_category: 'partial_capture_reversal' }).isNegative).toBe(
      true,
    );
  });
});

describe('the rows of one payment', () => {
  const partOf = (over: ExportRow): PaymentPart => {
    const { bodies, isNegative = false } = eventOf(balance, { ...row, ...over });
    const [body] = bodies;
    if (body === undefined) throw new Error('there is no event');
    return { body, isNegative };
  };
  const merged = (...parts: readonly ExportRow[]) =>
    balance?.merge?.(parts.map(partOf)) as { created: number; data: { object: object } } | null;

  test('are one invoice with the payments of all charges, each counted once, and with the time of the last one', () => {
    const first = { invoice_id: 'in_1', customer_facing_amount: '5' };
    const second = {
      ...first,
      created_utc: '2026-06-16 12:00:00',
      charge_id: 'ch_2',
      payment_intent_id: 'pi_2',
      customer_id: '',
      customer_facing_amount: '7.50',
    };
    const result = merged(second, first, first);
    expect(result?.created).toBe(AT + 86_400);
    expect(result).not.toHaveProperty('sign');
    expect(result?.data.object).toEqual({
      id: 'in_1',
      object: 'invoice',
      currency: 'eur',
      amount_paid: 1_250,
      customer: 'cus_1',
      payment_intent: 'pi_2',
      charge: 'ch_2',
      metadata: { app_user_id: 'ann' },
      status_transitions: { paid_at: AT + 86_400 },
      lines: { data: [] },
      payments: {
        data: [
          { payment: { payment_intent: 'pi_1', charge: 'ch_1' } },
          { payment: { payment_intent: 'pi_2', charge: 'ch_2' } },
        ],
      },
    });
  });

  test('are one payment intent without payments, less what went back', () => {
    const back = { reporting_category: 'partial_capture_reversal', customer_facing_amount: '-2.50' };
    const object = merged({}, back)?.data.object;
    expect(object).toMatchObject({ object: 'payment_intent', amount_received: 1_000 });
    // Two parts that went back at one time, of which one row is in the file twice.
    const another = { ...back, customer_facing_amount: '-1.00' };
    expect(merged({}, back, another, back)?.data.object).toMatchObject({ amount_received: 900 });
    expect(object).not.toHaveProperty('payments');
    expect(merged({}, { ...back, customer_facing_amount: '-12.50' })).toBeNull();
    expect(merged(back)).toBeNull();
  });

  test('name no charge that only went back, and count from the last one that did not', () => {
    const invoice = { invoice_id: 'in_1' };
    const back = {
      ...invoice,
      reporting_category: 'charge_failure',
      charge_id: 'ch_2',
      payment_intent_id: 'pi_2',
      customer_facing_amount: '-2.50',
    };
    for (const created_utc of ['2026-06-14 12:00:00', '2026-06-16 12:00:00']) {
      const result = merged({ ...back, created_utc }, invoice);
      expect(result?.created).toBe(AT);
      expect(result?.data.object).toMatchObject({
        amount_paid: 1_000,
        charge: 'ch_1',
        payments: { data: [{ payment: { payment_intent: 'pi_1', charge: 'ch_1' } }] },
      });
    }
  });

  test('of two charges at one time are two', () => {
    expect(merged({}, { charge_id: 'ch_2' })?.data.object).toMatchObject({ amount_received: 2_500 });
    expect(
      merged({ invoice_id: 'in_1' }, { invoice_id: 'in_1', charge_id: 'ch_2' })?.data.object,
    ).toMatchObject({
      amount_paid: 2_500,
    });
  });
});

describe('an object of the API', () => {
  const invoice = {
    id: 'in_1',
    object: 'invoice',
    status: 'paid',
    currency: 'eur',
    amount_paid: 1_250,
    created: AT - 60,
    status_transitions: { paid_at: AT },
    payments: { data: [] as readonly unknown[] },
  };

  test('that is an invoice counts from when it was paid, with the mode of the object', () => {
    expect(eventOf(invoices, invoice).bodies).toEqual([event('invoice.paid', 'in_1:paid', invoice)]);
    expect(eventOf(invoices, { ...invoice, livemode: false }).bodies[0]).toMatchObject({ livemode: false });
    expect(eventOf(invoices, { ...invoice, livemode: true }).bodies[0]).toMatchObject({ livemode: true });
    expect(eventOf(invoices, { ...invoice, livemode: null }).bodies[0]).toMatchObject({ livemode: true });
    expect(eventOf(invoices, { ...invoice, status_transitions: null }).bodies[0]).toMatchObject({
      created: AT - 60,
    });
    const untimed = { ...invoice, created: '2026-06-15', status_transitions: {} };
    expect(read(invoices, untimed)).toEqual(NO_TIME);
    expect(read(invoices, { ...invoice, status: 'open' })).toEqual(MOVED_NOTHING);
    expect(read(invoices, { ...invoice, amount_paid: 0 })).toEqual(MOVED_NOTHING);
  });

  test('that is an invoice has what was paid outside Stripe as events of their own', () => {
    const outside = { id: 'inpay_1', status: 'paid', payment: { type: 'payment_record' } };
    const others = [
      { id: 'inpay_2', status: 'open', payment: { type: 'payment_record' } },
      { id: 'inpay_3', status: 'paid', payment: { type: 'payment_intent' } },
      { id: 'inpay_4', status: 'paid', payment: null },
      null,
      'inpay_5',
    ];
    const ofTest = { ...invoice, livemode: false, payments: { data: [outside, ...others] } };
    const { bodies } = eventOf(invoices, ofTest);
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toMatchObject({
      type: 'invoice_payment.paid',
      created: AT,
      livemode: false,
      data: { object: { ...outside, invoice: 'in_1', livemode: false } },
    });
    expect(eventOf(invoices, { ...ofTest, livemode: undefined }).bodies[1]).toMatchObject({
      livemode: true,
      data: { object: { livemode: true } },
    });
    expect(eventOf(invoices, { ...ofTest, paid_out_of_band: false }).bodies).toHaveLength(1);
    expect(read(invoices, { ...invoice, payments: undefined })).toMatchObject({ kind: 'refused' });
    expect(read(invoices, { ...invoice, payments: { data: [], has_more: true } })).toMatchObject({
      kind: 'unreadable',
    });
  });

  test.each([
    ['succeeded', true],
    ['failed', true],
    ['canceled', true],
    ['pending', false],
  ])('that is a refund with the status %s is an event: %j', (status, isEvent) => {
    const refund = { id: 're_1', object: 'refund', status, currency: 'eur', amount: 1_250, created: AT };
    if (isEvent)
      expect(eventOf(refunds, refund).bodies).toEqual([event('refund.updated', `re_1:${status}`, refund)]);
    else expect(read(refunds, refund)).toEqual(MOVED_NOTHING);
    expect(read(refunds, { ...refund, created: null })).toEqual(isEvent ? NO_TIME : MOVED_NOTHING);
  });

  const dispute = { id: 'du_1', object: 'dispute', currency: 'eur', amount: 1_250, created: AT - 600 };
  const movements = [
    { amount: -1_250, created: AT - 300 },
    { amount: -1, created: AT - 200 },
    { amount: 1_250, created: AT - 100 },
    { amount: 1, created: AT },
    { amount: 0, created: AT - 90 },
    { amount: '5', created: AT + 50 },
    { amount: 5, created: null },
  ];
  test.each([
    ['needs_response', 'charge.dispute.created', AT - 90, AT - 600],
    ['lost', 'charge.dispute.closed', AT - 90, AT - 600],
    ['won', 'charge.dispute.closed', AT, EXPORTED_AT / 1000],
    ['prevented', 'charge.dispute.closed', AT, EXPORTED_AT / 1000],
  ])('that is a dispute with the status %s is %s, at its last movement', (status, type, moved, unmoved) => {
    const stated = { ...dispute, status };
    expect(eventOf(disputes, { ...stated, balance_transactions: movements }).bodies[0]).toMatchObject({
      id: expect.stringMatching(new RegExp(`${type}:du_1:${status}:${moved}$`)),
      type,
      created: moved,
    });
    expect(eventOf(disputes, stated).bodies[0]).toMatchObject({ created: unmoved });
    expect(read(disputes, { ...stated, created: null })).toEqual(NO_TIME);
    expect(read(disputes, { ...stated, status: 'warning_closed' })).toEqual(MOVED_NOTHING);
  });

  test.each([
    [invoices, 'invoice', 'refund'],
    [refunds, 'refund', 'dispute'],
    [disputes, 'dispute', 'invoice'],
  ])('is read as what it is', (format, object, other) => {
    expect(format?.accepts?.({ object })).toBe(true);
    expect(format?.accepts?.({ object: other })).toBe(false);
  });
});
