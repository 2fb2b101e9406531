import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Stripe } from 'stripe';
import type { AdjustmentFact, NormalizedEvent, PaymentFact } from '../../src/domain/events.ts';
import { convertToUsdCents } from '../../src/domain/exchange-rate.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Headers, ParseResult } from '../../src/providers/provider.ts';
import { STRIPE_MINOR_UNITS } from '../../src/providers/stripe/currencies.ts';
import { stripe } from '../../src/providers/stripe/index.ts';
import { parseTimestampedHeader } from '../../src/providers/shared/timestamped-hmac.ts';
import { anyText } from '../support/any-text.ts';
import {
  bodyOf,
  eventOf,
  expectedEvent,
  fixture,
  fixtureNames,
  signStripe,
  stripeCharge,
  stripeCheckoutSession,
  stripeCreditNote,
  stripeDispute,
  stripeEvent,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeRefund,
  stripeSubscription,
  withFields,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';

const reference = new Stripe('sk_test_fake').webhooks;

const SECRET = 'whsec_test_secret';
const AT = 1_700_000_000;
const BODY = '{\n  "id": "evt_test_webhook",\n  "object": "event"\n}';
const MAC = '4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150';

interface Attempt {
  readonly header: Headers[string];
  readonly body?: string | Uint8Array;
  readonly secret?: string;
  readonly receivedAt?: number;
}

async function accepts({
  header,
  body = BODY,
  secret = SECRET,
  receivedAt = AT * 1000,
}: Attempt): Promise<boolean> {
  const headers = header === undefined ? {} : { 'stripe-signature': header };
  return await stripe.verify({ headers, body: Buffer.from(body), receivedAt }, secret);
}

/** Whether Stripe's own library accepts the same request. */
function referenceAccepts({
  header = '',
  body = BODY,
  secret = SECRET,
  receivedAt = AT * 1000,
}: Attempt): boolean {
  const given = typeof header === 'string' ? header : [...header];
  try {
    reference.constructEvent(Buffer.from(body), given, secret, 300, undefined, receivedAt);
    return true;
  } catch {
    return false;
  }
}

describe('verification', () => {
  test('the known signature of the published scheme is accepted', async () => {
    expect(signStripe(BODY, SECRET, AT)).toBe(`t=${AT},v1=${MAC}`);
    expect(await accepts({ header: `t=${AT},v1=${MAC}` })).toBe(true);
  });

  const other = 'f'.repeat(64);
  const good: readonly (readonly [string, Attempt])[] = [
    ['a fresh signature', { header: `t=${AT},v1=${MAC}` }],
    ['a time exactly at the tolerance', { header: `t=${AT},v1=${MAC}`, receivedAt: (AT + 300) * 1000 }],
    ['a time within its last second', { header: `t=${AT},v1=${MAC}`, receivedAt: (AT + 300) * 1000 + 999 }],
    ['a time in the near future', { header: `t=${AT},v1=${MAC}`, receivedAt: (AT - 5) * 1000 }],
    ['a time in the far future', { header: `t=${AT},v1=${MAC}`, receivedAt: (AT - 86_400) * 1000 }],
    ['a valid signature second in the list', { header: `t=${AT},v1=${other},v1=${MAC}` }],
    ['a valid signature first in the list', { header: `t=${AT},v1=${MAC},v1=${other}` }],
    ['a signature before its time', { header: `v1=${MAC},t=${AT}` }],
    ['an unknown scheme next to a valid one', { header: `t=${AT},v0=${other},v1=${MAC},v2=x` }],
  ];
  // @promise webhook-stripe-hmac
  test.each(good)('%s is accepted, as by Stripe’s library', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(true);
    expect(referenceAccepts(attempt)).toBe(true);
  });

  const bad: readonly (readonly [string, Attempt])[] = [
    [
      'a time one second beyond the tolerance',
      { header: `t=${AT},v1=${MAC}`, receivedAt: (AT + 301) * 1000 },
    ],
    ['only an unknown scheme', { header: `t=${AT},v0=${MAC}` }],
    ['a body changed by one byte', { header: `t=${AT},v1=${MAC}`, body: BODY.replace('evt', 'ewt') }],
    [
      'a body that was parsed and printed again',
      { header: `t=${AT},v1=${MAC}`, body: JSON.stringify(JSON.parse(BODY)) },
    ],
    ['another time', { header: `t=${AT + 1},v1=${MAC}` }],
    ['another secret', { header: `t=${AT},v1=${MAC}`, secret: 'whsec_other_secret' }],
    ['a secret without its prefix', { header: `t=${AT},v1=${MAC}`, secret: 'test_secret' }],
    ['an empty secret', { header: signStripe(BODY, '', AT), secret: '' }],
    ['a blank secret', { header: signStripe(BODY, ' ', AT), secret: ' ' }],
    ['a missing header', { header: undefined }],
    ['an empty header', { header: '' }],
    ['a header that is a list', { header: [`t=${AT},v1=${MAC}`] }],
    ['a header without a time', { header: `v1=${MAC}` }],
    ['a header without a signature', { header: `t=${AT}` }],
    ['an empty signature', { header: `t=${AT},v1=` }],
    ['a signature cut short', { header: `t=${AT},v1=${MAC.slice(0, -1)}` }],
    ['a signature too long', { header: `t=${AT},v1=${MAC}0` }],
    ['a signature in upper case', { header: `t=${AT},v1=${MAC.toUpperCase()}` }],
    ['a time in words', { header: `t=now,v1=${MAC}` }],
    ['an empty time', { header: `t=,v1=${MAC}` }],
    ['a negative time', { header: `t=-${AT},v1=${MAC}` }],
    ['another separator', { header: `t=${AT};v1=${MAC}` }],
    ['only separators', { header: ',,=,=' }],
  ];
  // @promise webhook-stripe-hmac
  test.each(bad)('%s is refused, as by Stripe’s library', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(false);
    expect(referenceAccepts(attempt)).toBe(false);
  });

  test.each([
    ['a header that was sent twice and joined', `t=${AT},v1=${MAC}, t=${AT},v1=${MAC}`],
    ['two times', `t=${AT - 1},t=${AT},v1=${MAC}`],
    ['a time with something behind it', `t=${AT}x,v1=${MAC}`],
    ['a time with a fraction', `t=${AT}.0,v1=${MAC}`],
  ])('%s is ambiguous and is refused, although Stripe’s library accepts it', async (_, header) => {
    expect(await accepts({ header })).toBe(false);
  });

  test.each([
    ['a signing secret', SECRET, true],
    ['an API key', 'sk_live_plainly_fake', false],
    ['an id of an endpoint', 'we_fake', false],
    ['a prefix alone', 'whsec_', false],
    ['something before the secret', ` ${SECRET}`, false],
  ])('setting %s as the secret reports whether it can be one', (_, secret, canBeOne) => {
    const fault = stripe.secretProblem?.(secret);
    if (canBeOne) expect(fault).toBeNull();
    else expect(fault).toMatch(/not a webhook's signing secret.*whsec_.*API key.*does not work here/);
  });

  test('a request is refused when the clock is NaN', async () => {
    expect(await accepts({ header: `t=${AT},v1=${MAC}`, receivedAt: Number.NaN })).toBe(false);
  });

  const secrets = fc.string({ minLength: 1, maxLength: 40 }).map((text) => `whsec_${text}`);
  const times = fc.integer({ min: 1, max: 4_000_000_000 });

  test('a fresh signature of Stripe’s library is accepted', async () => {
    await fc.assert(
      fc.asyncProperty(anyText, secrets, times, async (payload, secret, timestamp) => {
        const header = reference.generateTestHeaderString({ payload, secret, timestamp });
        expect(header).toBe(signStripe(payload, secret, timestamp));
        expect(await accepts({ header, body: payload, secret, receivedAt: timestamp * 1000 })).toBe(true);
      }),
    );
  });

  test('Stripe’s library accepts the signatures of the samples', () => {
    fc.assert(
      fc.property(fc.json(), secrets, (text, secret) => {
        const payload = JSON.stringify({ id: 'evt_1', object: 'event', text });
        const header = signStripe(payload, secret, AT);
        const event = reference.constructEvent(payload, header, secret, 300, undefined, AT * 1000);
        expect(event.id).toBe('evt_1');
      }),
    );
  });

  test('the same changes of age, secret, body and signature are refused here and by the library', async () => {
    const age = fc.oneof(fc.integer({ min: -1000, max: 1000 }), fc.integer({ min: 298_000, max: 303_000 }));
    const change = fc.constantFrom('none', 'body', 'secret', 'signature', 'scheme', 'time');
    await fc.assert(
      fc.asyncProperty(
        fc.json(),
        secrets,
        times,
        age,
        change,
        async (payload, secret, timestamp, ms, what) => {
          const signed = signStripe(payload, secret, timestamp);
          const wrongDigit = signed.endsWith('0') ? '1' : '0';
          const headers: Partial<Record<typeof what, string>> = {
            signature: signed.slice(0, -1) + wrongDigit,
            scheme: signed.replace('v1=', 'v0='),
            time: signed.replace(/t=\d+/, `t=${timestamp + 1}`),
          };
          const attempt = {
            header: headers[what] ?? signed,
            body: what === 'body' ? `${payload} ` : payload,
            secret: what === 'secret' ? `${secret}x` : secret,
            receivedAt: timestamp * 1000 + ms,
          };
          expect(await accepts(attempt)).toBe(referenceAccepts(attempt));
        },
      ),
    );
  });

  test('a body changed by one byte is refused', async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), async (body, place, flip) => {
        const header = signStripe(body, SECRET, AT);
        expect(await accepts({ header, body })).toBe(true);
        const changed = body.map((byte, at) => (at === place % body.length ? byte ^ flip : byte));
        expect(await accepts({ header, body: changed })).toBe(false);
      }),
    );
  });

  test('no header makes the verification throw', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.array(fc.string())), async (header) => {
        expect(await accepts({ header })).toBe(false);
      }),
    );
  });

  test('the header parser reads other separators and keys of the same scheme', () => {
    const scheme = { separator: ';', timeKey: 'ts', signatureKey: 'h1' } as const;
    expect(parseTimestampedHeader('ts=17;h1=aa;h1=bb;h2=cc', scheme)).toEqual({
      time: '17',
      signatures: ['aa', 'bb'],
    });
    expect(parseTimestampedHeader('t=17,v1=aa', scheme)).toBeNull();
    expect(parseTimestampedHeader('ts=17', scheme)).toBeNull();
    expect(parseTimestampedHeader('ts=17;ts=17;h1=aa', scheme)).toBeNull();
  });

  test.each(['+1700000000', ' 1700000000', '1700000000 ', '1.7e9', '0001700000000'])(
    'the time %j is no whole seconds as Stripe writes them, though it was signed',
    async (time) => {
      const mac = createHmac('sha256', SECRET).update(`${time}.${BODY}`).digest('hex');
      expect(await accepts({ header: `t=${time},v1=${mac}` })).toBe(false);
    },
  );
});

/** The first fixture is one day after this, the second two days, and so on. */
const START = 1_772_443_800_000;

/** Returns the expected event of a fixture, by its number. */
function reads(
  nth: number,
  kind: NormalizedEvent['kind'],
  rest: Partial<NormalizedEvent> = {},
): NormalizedEvent {
  return expectedEvent({
    sourceEventId: `evt_FakeLantern${String(nth).padStart(4, '0')}`,
    kind,
    occurredAt: START + nth * DAY_MS,
    ...rest,
  });
}

function pay(ref: string, amountMinor: number, currency = 'USD'): PaymentFact {
  return { store: 'stripe', ref, currency, amountMinor, usdCents: currency === 'USD' ? amountMinor : null };
}

function back(
  fact: Pick<AdjustmentFact, 'kind' | 'ref' | 'state' | 'rank' | 'madeAt'> & {
    amount: number;
    from?: string;
  },
): AdjustmentFact {
  const { amount, from = 'pi_FakeLantern11', ...rest } = fact;
  return {
    ...rest,
    store: 'stripe',
    paymentRef: from,
    currency: 'USD',
    amountMinor: amount,
    usdCents: amount,
  };
}

function alias(aliasRef: string, paymentRef: string) {
  return { store: 'stripe', aliasRef, paymentRef };
}

const subscriber = {
  productId: 'prod_LanternPlus',
  userIds: ['user-hazel'],
  userKeys: ['sub_FakeLantern01', 'cus_FakeLantern01'],
};
const subscription = {
  ...subscriber,
  userLinks: [{ key: 'sub_FakeLantern01', customerUserId: 'user-hazel' }],
};
const shopper = { userIds: ['user-juniper'], userKeys: ['cus_FakeLantern11'] };
const legacyAliases = [
  alias('pi_FakeLantern09', 'in_FakeLantern09'),
  alias('ch_FakeLantern09', 'in_FakeLantern09'),
];
const dispute = { kind: 'chargeback', ref: 'du_FakeLantern01', amount: 6450 } as const;

const EVENTS: Readonly<Record<string, NormalizedEvent>> = {
  'invoice.paid.subscription_create': reads(1, 'purchase', {
    ...subscriber,
    payment: pay('in_FakeLantern01', 1875, 'EUR'),
  }),
  'invoice.paid.subscription_cycle': reads(2, 'renewal', {
    ...subscriber,
    payment: pay('in_FakeLantern02', 2149),
  }),
  'invoice.paid.subscription_update': reads(3, 'product_change', {
    ...subscriber,
    payment: pay('in_FakeLantern03', 777),
  }),
  'invoice.paid.manual': reads(4, 'purchase', {
    userIds: ['user-juniper'],
    userKeys: ['cus_FakeLantern01'],
    payment: pay('in_FakeLantern04', 3100),
  }),
  'invoice.paid.trial_zero': reads(5, 'trial_started', subscriber),
  'invoice.paid.discount_zero': reads(6, 'other', subscriber),
  'invoice.paid.jpy': reads(7, 'renewal', { ...subscriber, payment: pay('in_FakeLantern07', 1650, 'JPY') }),
  'invoice.paid.kwd': reads(8, 'renewal', {
    ...subscriber,
    environment: 'sandbox',
    payment: pay('in_FakeLantern08', 3250, 'KWD'),
  }),
  'invoice.paid.before_basil': reads(9, 'renewal', {
    ...subscriber,
    payment: pay('in_FakeLantern09', 990),
    paymentAliases: legacyAliases,
  }),
  'invoice.paid.no_user': reads(10, 'renewal', {
    ...subscriber,
    userIds: [],
    payment: pay('in_FakeLantern10', 1200),
  }),
  'invoice_payment.paid': reads(12, 'other', {
    paymentAliases: [alias('pi_FakeLantern01', 'in_FakeLantern01')],
  }),
  'checkout.session.completed.payment': reads(16, 'purchase', {
    ...shopper,
    payment: pay('pi_FakeLantern11', 6450),
  }),
  'checkout.session.completed.payment_with_invoice': reads(17, 'purchase', {
    ...shopper,
    payment: pay('in_FakeLantern12', 6450),
    paymentAliases: [alias('pi_FakeLantern12', 'in_FakeLantern12')],
  }),
  'checkout.session.async_payment_succeeded': reads(19, 'purchase', {
    ...shopper,
    payment: pay('pi_FakeLantern13', 6450),
  }),
  'checkout.session.completed.free': reads(20, 'other', { userIds: ['user-juniper'] }),
  'checkout.session.completed.subscription': reads(21, 'other', {
    userIds: subscriber.userIds,
    userKeys: subscriber.userKeys,
    userLinks: [
      { key: 'sub_FakeLantern01', customerUserId: 'user-hazel' },
      { key: 'cus_FakeLantern01', customerUserId: 'user-hazel' },
    ],
  }),
  'customer.subscription.created.trialing': reads(22, 'trial_started', subscription),
  'customer.subscription.updated.cancel_at_period_end': reads(23, 'cancellation', subscription),
  'customer.subscription.updated.new_price': reads(24, 'product_change', subscription),
  'customer.subscription.deleted': reads(26, 'cancellation', subscription),
  'refund.created': reads(27, 'refund', {
    adjustment: back({
      kind: 'refund',
      ref: 're_FakeLantern01',
      state: 'applied',
      rank: 1,
      amount: 1290,
      madeAt: 1_774_776_600_000,
    }),
  }),
  'refund.updated.succeeded': reads(29, 'refund', {
    adjustment: back({
      kind: 'refund',
      ref: 're_FakeLantern02',
      state: 'applied',
      rank: 1,
      amount: 1290,
      madeAt: 1_774_949_400_000,
    }),
  }),
  'refund.failed': reads(30, 'refund_reversed', {
    adjustment: back({
      kind: 'refund',
      ref: 're_FakeLantern02',
      state: 'reversed',
      rank: 2,
      amount: 1290,
      madeAt: 1_775_035_800_000,
    }),
  }),
  'charge.refund.updated.canceled': reads(31, 'refund_reversed', {
    adjustment: back({
      kind: 'refund',
      ref: 're_FakeLantern03',
      state: 'reversed',
      rank: 2,
      amount: 5,
      madeAt: 1_775_122_200_000,
      from: 'ch_FakeLantern11',
    }),
  }),
  'charge.dispute.created': reads(33, 'chargeback', {
    adjustment: back({ ...dispute, state: 'applied', rank: 2 }),
  }),
  'charge.dispute.funds_withdrawn': reads(35, 'chargeback', {
    adjustment: back({ ...dispute, state: 'applied', rank: 2 }),
  }),
  'charge.dispute.funds_reinstated': reads(36, 'chargeback_reversed', {
    adjustment: back({ ...dispute, state: 'reversed', rank: 2 }),
  }),
  'charge.dispute.closed.won': reads(37, 'chargeback_reversed', {
    adjustment: back({ ...dispute, state: 'reversed', rank: 2 }),
  }),
  'charge.dispute.closed.lost': reads(38, 'chargeback', {
    adjustment: back({ ...dispute, state: 'applied', rank: 2 }),
  }),
};

const IGNORED: Readonly<Record<string, readonly [string, NormalizedEvent | null]>> = {
  'invoice.payment_succeeded': ['arrives as invoice.paid', reads(11, 'other')],
  'charge.succeeded': [
    'counted instead',
    reads(13, 'other', { paymentAliases: [alias('ch_FakeLantern01', 'pi_FakeLantern01')] }),
  ],
  'charge.succeeded.before_basil': ['counted instead', reads(14, 'other', { paymentAliases: legacyAliases })],
  'payment_intent.succeeded': [
    'names no user',
    reads(15, 'other', { paymentAliases: [alias('ch_FakeLantern01', 'pi_FakeLantern01')] }),
  ],
  'checkout.session.completed.unpaid': ['not paid yet', reads(18, 'other', shopper)],
  'customer.subscription.updated.renewed': ['does not affect commissions', reads(25, 'other', subscription)],
  'refund.created.pending': ['not complete yet', reads(28, 'other')],
  'charge.refunded': [
    'refund.created',
    reads(32, 'other', { paymentAliases: [alias('ch_FakeLantern11', 'pi_FakeLantern11')] }),
  ],
  'charge.dispute.created.inquiry': ['no money', reads(34, 'other')],
  'charge.dispute.closed.inquiry': ['no money', reads(39, 'other')],
  'invoice.upcoming': ['invoice.upcoming', reads(40, 'other')],
  thin_event: ['thin', null],
};

function parse(payload: Parameters<typeof bodyOf>[0]): ParseResult {
  return stripe.parse(bodyOf(payload));
}

describe('reading a body', () => {
  test('every fixture of the provider has an expectation', () => {
    expect([...Object.keys(EVENTS), ...Object.keys(IGNORED)].toSorted()).toEqual(fixtureNames('stripe'));
  });

  // @promise stripe-reference, stripe-events
  test.each(Object.entries(EVENTS))('the fixture %s is read as expected', (name, event) => {
    expect(withoutComponents(stripe.parse(fixture('stripe', name)))).toEqual({ outcome: 'event', event });
  });

  test.each(Object.entries(IGNORED))(
    'the fixture %s is ignored with a reason and its event',
    (name, [reason, event]) => {
      const result = stripe.parse(fixture('stripe', name));
      expect(result).toEqual({ outcome: 'ignored', reason: expect.stringContaining(reason), event });
    },
  );

  test('an event of an unknown type is ignored', () => {
    const result = parse(stripeEvent('lantern.lit', { id: 'x', object: 'lantern' }));
    expect(result).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining('lantern.lit') });
  });

  test('new fields and new values of known fields do not change the event', () => {
    const known = { eventId: 'evt_1', invoiceId: 'in_1', subscriptionId: 'sub_1', customerId: 'cus_1' };
    const extra = { surprise: [{}], collection_method: 'by_pigeon', number: 7, payment_settings: null };
    expect(parse(stripeInvoicePaid({ ...known, extra }))).toEqual(parse(stripeInvoicePaid(known)));
  });

  // @promise stripe-connected-accounts
  test.each([
    ['an invoice', stripeInvoicePaid()],
    ['a subscription', stripeSubscription()],
  ])('%s of a connected account is ignored with a reason and states no facts', (_, payload) => {
    const result = parse({ ...payload, account: 'acct_FakeSeller01' });
    expect(result).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('connected account'),
      event: {
        kind: 'other',
        payment: null,
        adjustment: null,
        userIds: [],
        userLinks: [],
        paymentAliases: [],
      },
    });
    expect(parse({ ...payload, account: null }).outcome).toBe('event');
  });

  // @promise stripe-listed-accounts
  // @promise stripe-delisted-refunds
  test('a refund and the names of a payment of a connected account that the app does not list are facts', () => {
    const refunded = parse({ ...stripeRefund({ id: 're_1' }), account: 'acct_Fake01' });
    expect(refunded).toMatchObject({
      outcome: 'ignored',
      event: { kind: 'refund', adjustment: { ref: 're_1' } },
    });
    const named = stripeInvoicePaymentPaid({ invoiceId: 'in_1', paymentIntentId: 'pi_1' });
    expect(parse({ ...named, account: 'acct_Fake01' })).toMatchObject({
      outcome: 'ignored',
      event: { kind: 'other', adjustment: null, paymentAliases: [{ aliasRef: 'pi_1', paymentRef: 'in_1' }] },
    });
    const unreadable = stripeRefund({ extra: { amount: null } });
    const withoutEvent = stripeRefund({ apiVersion: '2022-11-15' });
    for (const body of [unreadable, withoutEvent]) {
      expect(parse({ ...body, account: 'acct_Fake01' })).toMatchObject({
        outcome: 'ignored',
        reason: expect.stringContaining('connected account'),
        event: { kind: 'other', adjustment: null, paymentAliases: [] },
      });
    }
  });

  test('an event of a connected account counts as an own one only if the app lists the account', () => {
    const payload = stripeInvoicePaid();
    const own = bodyOf(payload);
    const body = bodyOf({ ...payload, account: 'acct_Fake01' });
    expect(stripe.parse(body, ['acct_Fake02', 'acct_Fake01'])).toEqual(stripe.parse(own));
    expect(stripe.parse(body, 'all')).toEqual(stripe.parse(own));
    for (const listed of [[], ['acct_Fake02', 'acct_Fake011', 'ACCT_FAKE01']]) {
      expect(stripe.parse(body, listed)).toMatchObject({
        outcome: 'ignored',
        reason: expect.stringMatching(/connected account .* setting stripeAccounts/),
        event: { kind: 'other', payment: null, userIds: [] },
      });
      expect(stripe.parse(own, listed).outcome).toBe('event');
    }
  });

  test('a body without livemode names no environment', () => {
    const payload = { ...stripeInvoicePaid(), livemode: undefined };
    expect(eventOf(parse(payload)).environment).toBeNull();
  });
});

describe('payments', () => {
  test.each([
    ['subscription_create', 'purchase'],
    ['subscription_cycle', 'renewal'],
    ['subscription_update', 'product_change'],
    ['subscription_threshold', 'product_change'],
    ['manual', 'purchase'],
    ['quote_accept', 'purchase'],
    ['automatic_pending_invoice_item_invoice', 'purchase'],
    ['a_reason_of_the_future', 'purchase'],
  ])('an invoice with the billing reason %s is a %s', (billingReason, kind) => {
    expect(eventOf(parse(stripeInvoicePaid({ billingReason }))).kind).toBe(kind);
  });

  test('an invoice counts from its payment, not from the time of its event', () => {
    const extra = { status_transitions: { paid_at: 1_700_000_123 } };
    expect(eventOf(parse(stripeInvoicePaid({ extra }))).occurredAt).toBe(1_700_000_123_000);
    const without = stripeInvoicePaid({ occurredAt: START + 999, extra: { status_transitions: null } });
    expect(eventOf(parse(without)).occurredAt).toBe(START);
  });

  test('an invoice marked as paid outside Stripe is not a payment', () => {
    const legacy = { chargeId: 'ch_1', paymentIntentId: 'pi_1' };
    const payload = stripeInvoicePaid({ legacy, extra: { paid_out_of_band: true } });
    expect(eventOf(parse(payload))).toMatchObject({ kind: 'other', payment: null });
  });

  test('an invoice that credit paid in full is no payment, although it states a tax', () => {
    const extra = { total: 2_149, total_taxes: [{ amount: 149 }] };
    const body = stripeInvoicePaid({ amount: 0, billingReason: 'subscription_cycle', extra });
    expect(eventOf(parse(body))).toMatchObject({ kind: 'renewal', payment: null });
  });

  const priced = (product: string) => ({ pricing: { price_details: { product } } });
  const period = { type: 'subscription_item_details', subscription_item_details: { proration: false } };
  const prorated = { type: 'subscription_item_details', subscription_item_details: { proration: true } };
  const old = { ...priced('prod_old'), amount: -500, parent: prorated };
  const upgraded = { ...priced('prod_new'), amount: 900, parent: prorated };
  const renewed = { ...priced('prod_new'), amount: 2_000, parent: period };
  const addOn = { ...priced('prod_seat'), amount: 300, parent: period };
  const item = { ...priced('prod_setup'), amount: 50_000, parent: { type: 'invoice_item_details' } };
  // @promise stripe-invoice-product
  test.each<[string, readonly Payload[], string | null]>([
    ['the plan beside a dearer set-up fee', [item, renewed], 'prod_new'],
    ['the plan of a trial beside a set-up fee', [item, { ...renewed, amount: 0 }], 'prod_new'],
    ['the new plan of a renewal after an upgrade', [old, upgraded, renewed], 'prod_new'],
    ['the new plan of an upgrade', [old, upgraded], 'prod_new'],
    ['the dearest of two plans', [addOn, renewed], 'prod_new'],
    [
      'the plan beside what was used more of in the period before',
      [
        { ...addOn, amount: 9_000, period: { end: 1_000 } },
        { ...renewed, period: { end: 2_000 } },
      ],
      'prod_new',
    ],
    [
      'a plan whose tiers are several lines',
      [{ ...addOn, amount: 2_500 }, renewed, { ...renewed, amount: 600 }],
      'prod_new',
    ],
    ['the first of two plans at one price', [{ ...addOn, amount: 2_000 }, renewed], 'prod_seat'],
    ['the dearest of items alone', [{ ...item, ...priced('prod_a'), amount: 5 }, item], 'prod_setup'],
    ['a plan without an amount', [{ ...renewed, amount: null }], 'prod_new'],
    [
      'the plan of an older API version beside an item and a proration',
      [
        { price: { product: 'prod_setup' }, amount: 50_000, type: 'invoiceitem', proration: false },
        { price: { product: 'prod_old' }, amount: 9_000, type: 'subscription', proration: true },
        { plan: { product: 'prod_new' }, amount: 2_000, type: 'subscription', proration: false },
      ],
      'prod_new',
    ],
    [
      'a line with a product beside a dearer one without',
      [{ ...renewed, pricing: null, amount: 90_000 }, item],
      'prod_setup',
    ],
    ['no product', [{ amount: 100, parent: period }], null],
  ])('the product of an invoice is that of %s', (_, data, productId) => {
    const event = eventOf(parse(stripeInvoicePaid({ extra: { lines: { data } } })));
    expect(event.productId).toBe(productId);
  });

  test('the user of an invoice comes from the subscription, then the lines, then the invoice', () => {
    const line = { metadata: { app_user_id: 'line' }, subscription: 'sub_line' };
    const extra = {
      parent: { subscription_details: { metadata: { app_user_id: 'parent' } } },
      subscription_details: { metadata: { app_user_id: 'details' } },
      lines: { data: [line] },
      metadata: { app_user_id: 'invoice' },
      customer: { id: 'cus_expanded', object: 'customer' },
    };
    const event = eventOf(parse(stripeInvoicePaid({ extra })));
    expect(event.userIds).toEqual(['parent', 'details', 'line', 'invoice']);
    expect(event.userKeys).toEqual(['sub_line', 'cus_expanded']);
  });

  test.each([
    ['Trial period for Lantern Plus', 'subscription_create', 'trial_started'],
    ['Free trial for Lantern Plus', 'subscription_create', 'trial_started'],
    ['free trial', 'subscription_create', 'trial_started'],
    ['Lantern Plus, not a trial', 'subscription_create', 'other'],
    ['Trials of the Lantern', 'subscription_create', 'other'],
    [undefined, 'subscription_create', 'other'],
    ['Trial period for Lantern Plus', 'manual', 'other'],
    ['Trial period for Lantern Plus', 'subscription_cycle', 'renewal'],
    ['Trial period for Lantern Plus', 'subscription_update', 'product_change'],
  ])(
    'a free invoice with the line %j and the billing reason %s is a %s',
    (description, billingReason, kind) => {
      const lines = { data: [{ description: '1 × something else' }, { description }] };
      const event = eventOf(parse(stripeInvoicePaid({ amount: 0, billingReason, extra: { lines } })));
      expect(event).toMatchObject({ kind, payment: null });
    },
  );

  test.each<[string, object, string | null]>([
    ['as it is named today', { pricing: { price_details: { product: 'prod_1' } } }, 'prod_1'],
    ['in a price', { price: { product: 'prod_2' } }, 'prod_2'],
    ['in a price, expanded', { price: { product: { id: 'prod_3', object: 'product' } } }, 'prod_3'],
    ['in a plan', { plan: { product: 'prod_4' } }, 'prod_4'],
    [
      'in several places, the newest first',
      { pricing: { price_details: { product: 'prod_1' } }, price: { product: 'prod_2' } },
      'prod_1',
    ],
    ['nowhere', { price: null, plan: null }, null],
  ])('the product is read from %s', (_, line, productId) => {
    const lines = { data: [{ description: 'tax' }, line, { price: { product: 'prod_last' } }] };
    const event = eventOf(parse(stripeInvoicePaid({ extra: { lines } })));
    expect(event.productId).toBe(productId ?? 'prod_last');
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['its parent', { parent: { subscription_details: { subscription: 'sub_1' } } }, 'sub_1'],
    ['itself', { parent: null, subscription: 'sub_2' }, 'sub_2'],
    [
      'the parent of a line',
      {
        parent: null,
        lines: { data: [{ parent: { subscription_item_details: { subscription: { id: 'sub_3' } } } }] },
      },
      'sub_3',
    ],
  ])('the subscription of an invoice is read from %s', (_, extra, key) => {
    expect(eventOf(parse(stripeInvoicePaid({ extra }))).userKeys[0]).toBe(key);
  });

  test('a charge states its user and aliases, and no money', () => {
    const metadata = { app_user_id: 'user-1' };
    const charge = stripeCharge({ chargeId: 'ch_1', paymentIntentId: 'pi_1', extra: { metadata } });
    expect(parse(charge)).toMatchObject({
      outcome: 'ignored',
      event: { userIds: ['user-1'], payment: null, paymentAliases: [alias('ch_1', 'pi_1')] },
    });
  });

  test('the user of a charge is a user of its invoice, and of nothing else without one', () => {
    const linksOf = (invoice: string | null) => {
      const extra = { metadata: { app_user_id: 'user-1' }, invoice };
      const result = parse(stripeCharge({ chargeId: 'ch_1', paymentIntentId: 'pi_1', extra }));
      return result.outcome === 'failed' ? null : result.event?.userLinks;
    };
    expect(linksOf('in_1')).toEqual([{ key: 'in_1', customerUserId: 'user-1' }]);
    expect(linksOf(null)).toEqual([]);
  });

  test('a payment intent of an invoice states its user and aliases, and no money', () => {
    const body = stripePaymentIntent({
      paymentIntentId: 'pi_1',
      chargeId: 'ch_1',
      extra: { invoice: 'in_1' },
    });
    expect(parse(body)).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('belongs to an invoice'),
      event: {
        userIds: ['user-hazel'],
        userLinks: [{ key: 'in_1', customerUserId: 'user-hazel' }],
        payment: null,
        paymentAliases: [alias('pi_1', 'in_1'), alias('ch_1', 'in_1')],
      },
    });
  });

  test('a payment intent that names the user is a payment of what was received', () => {
    const extra = { amount: 9999, customer: 'cus_1' };
    const body = stripePaymentIntent({ paymentIntentId: 'pi_1', chargeId: 'ch_1', amount: 2500, extra });
    expect(eventOf(parse(body))).toMatchObject({
      kind: 'purchase',
      userIds: ['user-hazel'],
      userKeys: ['cus_1'],
      payment: pay('pi_1', 2500),
      paymentAliases: [alias('ch_1', 'pi_1')],
    });
  });

  test('a payment intent that received nothing is not a payment', () => {
    expect(eventOf(parse(stripePaymentIntent({ amount: 0 })))).toMatchObject({
      kind: 'other',
      payment: null,
    });
  });

  test('a payment intent without a user is ignored with the reason that it names no user', () => {
    expect(
      parse(stripePaymentIntent({ userId: null, paymentIntentId: 'pi_1', chargeId: 'ch_1' })),
    ).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('metadata.app_user_id'),
      event: { payment: null, paymentAliases: [alias('ch_1', 'pi_1')] },
    });
  });

  test.each([{ amount_received: -1 }, { currency: null }])(
    'a payment intent of a user with %j fails with a reason',
    (extra) => {
      expect(parse(stripePaymentIntent({ extra })).outcome).toBe('failed');
    },
  );

  test.each([
    ['charge.succeeded', 'counted instead'],
    ['payment_intent.succeeded', 'names no user'],
    ['charge.refunded', 'counted instead'],
  ])('a %s that cannot be read is ignored', (type, reason) => {
    expect(parse(stripeEvent(type, { id: 7 }))).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining(reason),
    });
  });

  test('a payment is not an alias of itself', () => {
    const legacy = { chargeId: 'in_1', paymentIntentId: 'pi_1' };
    const event = eventOf(parse(stripeInvoicePaid({ invoiceId: 'in_1', legacy })));
    expect(event.paymentAliases).toEqual([alias('pi_1', 'in_1')]);
  });

  test('a session without cost is not a payment, whatever its status', () => {
    expect(eventOf(parse(stripeCheckoutSession({ amount: 0 })))).toMatchObject({
      kind: 'other',
      payment: null,
    });
  });

  test('a session names its user by client reference first, then by metadata', () => {
    const extra = { metadata: { app_user_id: 'second' } };
    const event = eventOf(parse(stripeCheckoutSession({ userId: 'first', extra })));
    expect(event.userIds).toEqual(['first', 'second']);
  });

  test('a session without invoice and payment intent is identified by its own id', () => {
    const payload = stripeCheckoutSession({ sessionId: 'cs_1', paymentIntentId: null });
    expect(eventOf(parse(payload)).payment?.ref).toBe('cs_1');
  });

  // @promise stripe-reference
  test('a session and its invoice are one payment', () => {
    const session = eventOf(
      withoutComponents(parse(stripeCheckoutSession({ invoiceId: 'in_1', amount: 500 }))),
    );
    const invoice = eventOf(
      parse(stripeInvoicePaid({ invoiceId: 'in_1', amount: 500, billingReason: 'manual' })),
    );
    expect(session.payment).toEqual(invoice.payment);
  });

  test('a session that only saves a card is ignored', () => {
    expect(parse(stripeCheckoutSession({ mode: 'setup' }))).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('takes no payment'),
    });
  });

  test('a subscription session without a user links no user', () => {
    const payload = stripeCheckoutSession({ mode: 'subscription', userId: null });
    expect(eventOf(parse(payload)).userLinks).toEqual([]);
  });

  test('a charge without a payment intent has no alias', () => {
    const result = parse(stripeCharge({ paymentIntentId: null }));
    expect(result).toMatchObject({ outcome: 'ignored', event: { paymentAliases: [] } });
  });

  test('an invoice payment of a payment record is money outside Stripe', () => {
    const body = stripeInvoicePaymentPaid({
      id: 'inpay_1',
      invoiceId: 'in_1',
      paymentRecordId: 'pr_1',
      amount: 700,
    });
    expect(eventOf(parse(body))).toMatchObject({
      kind: 'other',
      paymentAliases: [],
      adjustment: {
        kind: 'out_of_band',
        ref: 'inpay_1',
        paymentRef: 'in_1',
        state: 'applied',
        rank: 1,
        amountMinor: 700,
        usdCents: 700,
      },
    });
  });

  test('an invoice payment of another kind has no alias and moves no money', () => {
    const extra = { payment: { type: 'something_new' } };
    const event = eventOf(parse(stripeInvoicePaymentPaid({ extra })));
    expect(event).toMatchObject({ paymentAliases: [], adjustment: null });
  });

  test.each([{ amount_paid: null }, { currency: null }, { id: null }, { amount_paid: -1 }])(
    'a payment outside Stripe with %j fails with a reason',
    (extra) => {
      expect(parse(stripeInvoicePaymentPaid({ paymentRecordId: 'pr_1', extra })).outcome).toBe('failed');
    },
  );
});

describe('refunds and reversals', () => {
  test.each([
    ['pending', 'ignored'],
    ['requires_action', 'ignored'],
    ['a_status_of_the_future', 'ignored'],
    ['succeeded', 'event'],
    ['failed', 'event'],
    ['canceled', 'event'],
  ])('a refund with the status %s has the outcome %s', (status, outcome) => {
    expect(parse(stripeRefund({ status })).outcome).toBe(outcome);
  });

  test('a failed refund outranks its success in any order of arrival', () => {
    const id = 're_1';
    const success = eventOf(parse(stripeRefund({ id }))).adjustment;
    const failure = eventOf(parse(stripeRefund({ id, type: 'refund.failed', status: 'failed' }))).adjustment;
    expect(success?.ref).toBe(failure?.ref);
    expect(failure?.rank).toBeGreaterThan(success?.rank ?? Infinity);
  });

  test.each([
    ['2014-11-05', 'refund'],
    ['2022-11-15', 'refund'],
    ['2024-10-27', 'refund'],
    ['2024-09-30.acacia', 'refund'],
    ['2024-10-28.acacia', null],
    ['2025-03-31.basil', null],
    ['2026-10-28.endive', null],
    [null, null],
    ['soon', null],
  ])('a refunded charge of the API version %s is read as %s', (version, kind) => {
    const refunded = stripeCharge({ type: 'charge.refunded', chargeId: 'ch_1', amountRefunded: 500 });
    const result = parse({ ...refunded, api_version: version });
    if (kind === null) {
      expect(result).toMatchObject({ outcome: 'ignored', event: { adjustment: null } });
      return;
    }
    expect(eventOf(result)).toMatchObject({
      kind,
      adjustment: { kind: 'refund', ref: 'ch_1', state: 'applied', rank: 1, amountMinor: 500 },
    });
  });

  test('a refund without a charge counts by itself on every API version', () => {
    const body = stripeRefund({ chargeId: null, apiVersion: '2022-11-15' });
    expect(eventOf(parse(body)).adjustment).toMatchObject({ kind: 'refund', state: 'applied' });
  });

  test('a refund with a charge is ignored before its own events exist', () => {
    const body = stripeRefund({ type: 'charge.refund.updated', apiVersion: '2022-11-15' });
    expect(parse(body)).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('charge.refunded'),
      // An event would keep the same event of a newer endpoint from counting.
      event: null,
    });
  });

  test.each([{ id: 7 }, { id: 'ch_1', currency: 'usd', amount_refunded: -1 }])(
    'a refunded charge of an older API version that cannot be read fails: %j',
    (object) => {
      expect(parse(stripeEvent('charge.refunded', object, { apiVersion: '2022-11-15' })).outcome).toBe(
        'failed',
      );
    },
  );

  test('a refunded charge without a payment intent names itself as the payment', () => {
    const body = stripeCharge({
      type: 'charge.refunded',
      chargeId: 'ch_1',
      paymentIntentId: null,
      amountRefunded: 5,
      apiVersion: '2022-11-15',
    });
    expect(eventOf(parse(body)).adjustment?.paymentRef).toBe('ch_1');
  });

  test('a refund with a charge that fails is given back on every API version', () => {
    const body = stripeRefund({ type: 'charge.refund.updated', status: 'failed', apiVersion: '2022-11-15' });
    expect(eventOf(parse(body)).adjustment).toMatchObject({ kind: 'refund', state: 'reversed', rank: 2 });
  });

  const CREDIT_NOTE_EVENTS = ['credit_note.created', 'credit_note.updated', 'credit_note.voided'];

  test.each<[string, object, object]>([
    [
      'issued',
      {},
      { kind: 'refund', adjustment: { kind: 'credit_note', state: 'applied', rank: 1, amountMinor: 400 } },
    ],
    ['voided', { status: 'void' }, { kind: 'refund_reversed', adjustment: { state: 'reversed', rank: 2 } }],
  ])('a credit note %s is read as what it returns outside Stripe', (_, over, expected) => {
    for (const type of CREDIT_NOTE_EVENTS) {
      const result = parse(
        stripeCreditNote({ type, id: 'cn_1', invoiceId: 'in_1', outOfBandAmount: 400, ...over }),
      );
      expect(result).toMatchObject({ event: expected });
    }
  });

  test.each([null, 0])(
    'a credit note that returns %j outside Stripe moves no money, and says why',
    (outOfBandAmount) => {
      for (const type of CREDIT_NOTE_EVENTS) {
        expect(parse(stripeCreditNote({ type, outOfBandAmount }))).toMatchObject({
          outcome: 'ignored',
          reason: 'the credit note returns nothing outside Stripe; its refunds arrive as events of their own',
          event: { kind: 'other', adjustment: null },
        });
      }
    },
  );

  test.each([{ out_of_band_amount: -1 }, { invoice: null }, { currency: null }, { id: 7 }])(
    'a credit note with %j fails',
    (extra) => {
      expect(parse(stripeCreditNote({ extra })).outcome).toBe('failed');
    },
  );

  const DISPUTE_EVENTS = ['created', 'updated', 'funds_withdrawn', 'funds_reinstated', 'closed'];

  test.each<[string, AdjustmentFact['state'] | null]>([
    ['needs_response', 'applied'],
    ['under_review', 'applied'],
    ['lost', 'applied'],
    ['appeal_needs_response', 'applied'],
    ['appeal_under_review', 'applied'],
    ['won', 'reversed'],
    ['prevented', 'reversed'],
    ['warning_needs_response', null],
    ['warning_under_review', null],
    ['warning_closed', null],
  ])('every event of a dispute with the status %s states the same: %s', (status, state) => {
    for (const name of DISPUTE_EVENTS) {
      const result = parse(stripeDispute({ type: `charge.dispute.${name}`, status }));
      if (state === null) {
        expect(result).toMatchObject({ outcome: 'ignored', event: { adjustment: null } });
        continue;
      }
      const kind = state === 'applied' ? 'chargeback' : 'chargeback_reversed';
      expect(eventOf(result)).toMatchObject({ kind, adjustment: { kind: 'chargeback', state, rank: 2 } });
    }
  });

  test.each([null, 'a_status_of_the_future'])(
    'a dispute with the status %s takes money back when it is opened or funds are withdrawn, and never gives it back',
    (status) => {
      const states = DISPUTE_EVENTS.map((name) => {
        const result = parse(stripeDispute({ type: `charge.dispute.${name}`, extra: { status } }));
        return result.outcome === 'event' ? result.event.adjustment?.state : result.outcome;
      });
      expect(states).toEqual(['applied', 'ignored', 'applied', 'ignored', 'ignored']);
    },
  );
});

describe('subscriptions', () => {
  test('the product is that of the first item with one', () => {
    const items = { data: [{ price: null }, { price: { product: 'prod_second' } }] };
    const body = withFields(stripeSubscription(), ['data', 'object'], { items });
    expect(eventOf(parse(body)).productId).toBe('prod_second');
  });

  test('a subscription without a user links no user', () => {
    expect(eventOf(parse(stripeSubscription({ userId: null }))).userLinks).toEqual([]);
  });

  const updated = { type: 'customer.subscription.updated', status: 'active' };

  test('a cancellation at a date is a cancellation like one at the end of the period', () => {
    const set = stripeSubscription({ ...updated, cancelAt: START, previousAttributes: { cancel_at: null } });
    expect(eventOf(parse(set)).kind).toBe('cancellation');
    const moved = stripeSubscription({ ...updated, cancelAt: START, previousAttributes: { cancel_at: 5 } });
    expect(parse(moved).outcome).toBe('ignored');
  });

  test('withdrawing a cancellation is not a cancellation', () => {
    const previousAttributes = { cancel_at_period_end: true, cancel_at: 5 };
    expect(parse(stripeSubscription({ ...updated, previousAttributes })).outcome).toBe('ignored');
  });

  test('a new subscription without a trial is ignored, since its invoice counts', () => {
    expect(parse(stripeSubscription({ status: 'active' }))).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('is paid by its invoice'),
    });
  });

  const item = (price: string | null, quantity?: number) => ({ price: { id: price }, quantity });
  test.each<[string, readonly object[], readonly object[], boolean]>([
    ['another price', [item('price_1')], [item('price_2')], true],
    ['another quantity', [item('price_1', 1)], [item('price_1', 2)], true],
    ['an additional item', [item('price_1')], [item('price_1'), item('price_2')], true],
    ['another plan', [{ plan: { id: 'plan_1' } }], [{ plan: { id: 'plan_2' } }], true],
    [
      'the same items in another order',
      [item('price_1'), item('price_2')],
      [item('price_2'), item('price_1')],
      false,
    ],
    [
      'the same items in a new period',
      [item('price_1', 1)],
      [{ ...item('price_1', 1), current_period_end: 5 }],
      false,
    ],
    ['no previous items', [], [item('price_1')], false],
    ['no current items', [item('price_1')], [], false],
    ['prices without ids', [item(null)], [item('price_1')], false],
    ['one price without an id', [item('price_1'), item(null)], [item('price_1')], false],
  ])(
    'a subscription update with %s is a product change only if the products differ',
    (_, before, data, changes) => {
      const previousAttributes = { items: { data: before } };
      const payload = stripeSubscription({ ...updated, previousAttributes, extra: { items: { data } } });
      const { outcome } = parse(payload);
      expect(outcome).toBe(changes ? 'event' : 'ignored');
      if (changes) expect(eventOf(parse(payload)).kind).toBe('product_change');
    },
  );

  test.each([
    ['it was already set', { cancel_at_period_end: true }, true, false],
    ['the update does not set it', { cancel_at_period_end: false }, false, false],
    ['the update sets it', { cancel_at_period_end: false }, true, true],
  ])(
    'an update is a cancellation only when it sets one: %s',
    (_, previousAttributes, cancelAtPeriodEnd, expected) => {
      const { outcome } = parse(stripeSubscription({ ...updated, previousAttributes, cancelAtPeriodEnd }));
      expect(outcome === 'event').toBe(expected);
    },
  );

  test('an update that removes the cancellation date is not a cancellation', () => {
    const previousAttributes = { cancel_at: null };
    expect(parse(stripeSubscription({ ...updated, previousAttributes })).outcome).toBe('ignored');
  });
});

describe('malformed bodies', () => {
  const personal = 'hazel@example.com';
  test.each<[string, Buffer, string]>([
    ['no bytes', Buffer.alloc(0), 'not JSON'],
    ['half a body', bodyOf(stripeInvoicePaid()).subarray(0, 300), 'not JSON'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xc3, 0x28, 0x7d]), 'not UTF-8'],
    ['a list', Buffer.from('[]'), 'not a JSON object'],
    ['an object without anything', bodyOf({}), 'id is missing'],
    ['an event without data', bodyOf({ ...stripeInvoicePaid(), data: personal }), 'data is missing or not'],
    ['an event without a creation time', bodyOf({ ...stripeInvoicePaid(), created: personal }), 'created'],
    [
      'an event with a creation time in milliseconds',
      bodyOf({ ...stripeInvoicePaid(), created: START }),
      'created',
    ],
    ['an invoice without an id', bodyOf(stripeInvoicePaid({ extra: { id: 5 } })), 'data.object.id'],
    ['a broken amount', bodyOf(stripeInvoicePaid({ amount: 1.5 })), 'data.object.amount_paid'],
    [
      'a negative amount',
      bodyOf(stripeInvoicePaid({ amount: -1 })),
      'data.object.amount_paid is missing or not a whole amount of zero or more',
    ],
    ['an amount in words', bodyOf(stripeInvoicePaid({ extra: { amount_paid: personal } })), 'amount_paid'],
    ['an unreadable currency', bodyOf(stripeInvoicePaid({ currency: personal })), 'data.object.currency'],
    ['a session without an id', bodyOf(stripeCheckoutSession({ extra: { id: null } })), 'data.object.id'],
    [
      'a paid session without an amount',
      bodyOf(stripeCheckoutSession({ extra: { amount_total: null } })),
      'amount_total',
    ],
    [
      'an invoice payment without invoice',
      bodyOf(stripeInvoicePaymentPaid({ invoiceId: '' })),
      'data.object.invoice is missing or not an invoice id',
    ],
    ['a subscription without an id', bodyOf(stripeSubscription({ extra: { id: null } })), 'data.object.id'],
    ['a refund of nothing', bodyOf(stripeRefund({ paymentIntentId: null, chargeId: null })), 'neither'],
    [
      'a dispute without an amount',
      bodyOf(stripeDispute({ extra: { amount: undefined } })),
      'data.object.amount',
    ],
  ])('%s fails with a reason that names the problem and no personal data', (_, body, reason) => {
    const result = stripe.parse(body);
    expect(result).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(reason) });
    expect(JSON.stringify(result)).not.toContain(personal);
  });
});

describe('currencies', () => {
  const paid = (currency: string, amount: number) =>
    eventOf(stripe.parse(bodyOf(stripeInvoicePaid({ currency, amount })))).payment;

  // @promise currency-decimals-per-provider
  test('50,000 UGX, which Stripe states as 5000000, are worth 1,351 cents at 3,700 to the dollar', () => {
    const payment = paid('ugx', 5_000_000);
    expect(payment).toMatchObject({ currency: 'UGX', amountMinor: 50_000, usdCents: null });
    const rate = { units: '3700', worthUsd: '1' };
    expect(convertToUsdCents(payment?.amountMinor ?? 0, 'UGX', rate)).toBe(1351);
  });

  // The special cases of Stripe's page "Supported currencies", and one currency of each other kind.
  test.each([
    ['ISK', 500, 5],
    ['UGX', 500, 5],
    ['HUF', 1045, 1045],
    ['TWD', 80_045, 80_045],
    ['MGA', 500, 50_000],
    ['JPY', 500, 500],
    ['KWD', 5120, 5120],
    ['EUR', 500, 500],
  ])('Stripe states %s with decimals of its own: %i is stored as %i', (currency, stated, stored) => {
    expect(paid(currency.toLowerCase(), stated)).toMatchObject({ currency, amountMinor: stored });
    const refund = stripeRefund({ currency: currency.toLowerCase(), amount: stated });
    expect(eventOf(stripe.parse(bodyOf(refund))).adjustment).toMatchObject({ currency, amountMinor: stored });
  });

  test('the table of Stripe has every currency of its page that does not have two decimals', () => {
    const having = (decimals: number) =>
      [...STRIPE_MINOR_UNITS.decimals].filter(([, count]) => count === decimals).map(([code]) => code);
    expect(having(0).toSorted().join(' ')).toBe(
      'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF',
    );
    expect(having(3).toSorted().join(' ')).toBe('BHD JOD KWD OMR TND');
    expect(STRIPE_MINOR_UNITS.decimals.size).toBe(20);
    expect(stripe.amounts).toBe(STRIPE_MINOR_UNITS);
  });

  const most = Number.MAX_SAFE_INTEGER;
  test.each([
    ['an invoice', stripeInvoicePaid({ currency: 'mga', amount: most })],
    ['a checkout session', stripeCheckoutSession({ extra: { currency: 'mga', amount_total: most } })],
    ['a payment intent', stripePaymentIntent({ extra: { currency: 'mga', amount_received: most } })],
    [
      'a payment outside Stripe',
      stripeInvoicePaymentPaid({ paymentRecordId: 'pr_1', extra: { currency: 'mga', amount_paid: most } }),
    ],
    ['a credit note', stripeCreditNote({ extra: { currency: 'mga', out_of_band_amount: most } })],
    [
      'a refunded charge',
      stripeEvent(
        'charge.refunded',
        { id: 'ch_1', currency: 'mga', amount_refunded: most },
        { apiVersion: '2022-11-15' },
      ),
    ],
  ])('the amount of %s that is too large in the minor units of ISO 4217 fails with a reason', (_, body) => {
    expect(stripe.parse(bodyOf(body))).toEqual({
      outcome: 'failed',
      reason: 'data.object states an amount that is too large',
    });
  });

  test('an amount below the minor unit of ISO 4217 is no payment', () => {
    expect(paid('isk', 49)).toBeNull();
  });
});
