/** @jest-environment <rootDir>/test/jest/isolated.js */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Paddle, Webhooks } from '@paddle/paddle-node-sdk';
import * as fc from 'fast-check';
import type { AdjustmentFact, NormalizedEvent, PaymentFact } from '../../src/domain/events.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { paddle } from '../../src/providers/paddle/index.ts';
import type { Headers, ParseResult } from '../../src/providers/provider.ts';
import {
  bodyOf,
  eventOf,
  expectedEvent,
  fixture,
  fixtureNames,
  paddleAdjustment,
  paddleEvent,
  paddleSubscription,
  paddleTransaction,
  signPaddle,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import { paddleTime } from '../../src/providers/paddle/sample.ts';
import type { PaddleTransactionOverrides } from '../support/provider-fixtures.ts';

const reference = new Paddle('pdl_sdbx_apikey_fake').webhooks;

const SECRET = 'pdl_ntfset_test_secret';
const AT = 1_700_000_000;
const BODY = '{"event_id":"evt_test","data":{"note":"5 € × 2","url":"https:\\/\\/example.com"}}';
const MAC = 'f45932be4c7416155aad8dae1ab90b3f575b17c051d37cf0e6a294557ed85d92';

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
  const headers = header === undefined ? {} : { 'paddle-signature': header };
  return await paddle.verify({ headers, body: Buffer.from(body), receivedAt }, secret);
}

/** Whether Paddle's own library accepts the same request at the same time. */
async function referenceAccepts(attempt: Attempt): Promise<boolean> {
  const { header = '', body = BODY, secret = SECRET, receivedAt = AT * 1000 } = attempt;
  jest.setSystemTime(receivedAt);
  try {
    return await reference.isSignatureValid(Buffer.from(body).toString(), secret, header as string);
  } catch {
    return false;
  }
}

describe('verification', () => {
  beforeEach(() => {
    // The library reads the clock of the process. Nothing else is replaced.
    jest.useFakeTimers({ now: AT * 1000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('the known signature over the raw bytes is accepted', async () => {
    expect(signPaddle(BODY, SECRET, AT)).toBe(`ts=${AT};h1=${MAC}`);
    expect(await accepts({ header: `ts=${AT};h1=${MAC}` })).toBe(true);
    expect(await referenceAccepts({ header: `ts=${AT};h1=${MAC}` })).toBe(true);
  });

  test("the vector of Paddle's PHP library, whose second signature is valid, is accepted", async () => {
    const attempt = {
      header: 'ts=1696195954;h1=dummy;h1=d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02',
      body: 'hello-world',
      secret: 'pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh',
      receivedAt: 1_696_195_954_000,
    };
    expect(await accepts(attempt)).toBe(true);
    expect(await referenceAccepts(attempt)).toBe(true);
    expect(paddle.secretProblem?.(attempt.secret)).toBeNull();
  });

  test.each([
    ['a secret key of a destination', SECRET, true],
    ['an API key', 'pdl_sdbx_apikey_fake', false],
    ['a client token', 'test_fake', false],
    ['an id of a destination', 'ntfset_01fake', false],
    ['a prefix alone', 'pdl_ntfset_', false],
    ['something before the key', ` ${SECRET}`, false],
  ])('setting %s as the secret reports whether it can be one', (_, secret, canBeOne) => {
    const fault = paddle.secretProblem?.(secret);
    if (canBeOne) expect(fault).toBeNull();
    else
      expect(fault).toMatch(
        /not a notification destination's secret key.*pdl_ntfset_.*API key does not work here/,
      );
  });

  const other = 'f'.repeat(64);
  const fresh = `ts=${AT};h1=${MAC}`;
  const good: readonly (readonly [string, Attempt])[] = [
    ['a fresh signature', { header: fresh }],
    ['a time exactly at the tolerance', { header: fresh, receivedAt: AT * 1000 + 5_000 }],
    ['a time in the near future', { header: fresh, receivedAt: (AT - 5) * 1000 }],
    ['a time in the far future', { header: fresh, receivedAt: (AT - 86_400) * 1000 }],
    ['a valid signature second in the list', { header: `ts=${AT};h1=${other};h1=${MAC}` }],
    ['a signature before its time', { header: `h1=${MAC};ts=${AT}` }],
    ['an unknown scheme next to a valid one', { header: `ts=${AT};h0=${other};h1=${MAC};h2=x` }],
  ];
  // @promise webhook-paddle-hmac
  test.each(good)('%s is accepted, as by Paddle’s library', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(true);
    expect(await referenceAccepts(attempt)).toBe(true);
  });

  // paddle-node-sdk 3.10.0 checks only the last signature, while Paddle sends one for each secret that is valid during a
  // rotation, in no guaranteed order. Paddle's PHP library checks all of them, and so does Tributary.
  test('a valid signature that is first in the list is accepted, although Paddle’s library for Node refuses it', async () => {
    const attempt = { header: `ts=${AT};h1=${MAC};h1=${other}` };
    expect(await accepts(attempt)).toBe(true);
    expect(await referenceAccepts(attempt)).toBe(false);
  });

  const bad: readonly (readonly [string, Attempt])[] = [
    ['a time one millisecond beyond the tolerance', { header: fresh, receivedAt: AT * 1000 + 5_001 }],
    ['a time one second beyond the tolerance', { header: fresh, receivedAt: (AT + 6) * 1000 }],
    ['only an unknown scheme', { header: `ts=${AT};h2=${MAC}` }],
    ['a body changed by one byte', { header: fresh, body: BODY.replace('evt', 'ewt') }],
    ['a body that was parsed and printed again', { header: fresh, body: JSON.stringify(JSON.parse(BODY)) }],
    ['another time', { header: `ts=${AT + 1};h1=${MAC}` }],
    ['another secret', { header: fresh, secret: 'pdl_ntfset_other_secret' }],
    ['a secret without its prefix', { header: fresh, secret: 'test_secret' }],
    ['a missing header', { header: undefined }],
    ['an empty header', { header: '' }],
    ['a header that is a list', { header: [fresh] }],
    ['a header without a time', { header: `h1=${MAC}` }],
    ['a header without a signature', { header: `ts=${AT}` }],
    ['an empty signature', { header: `ts=${AT};h1=` }],
    ['a signature cut short', { header: fresh.slice(0, -1) }],
    ['a signature too long', { header: `${fresh}0` }],
    ['a signature in upper case', { header: `ts=${AT};h1=${MAC.toUpperCase()}` }],
    ['a time that is text', { header: `ts=now;h1=${MAC}` }],
    ['an empty time', { header: `ts=;h1=${MAC}` }],
    ['a negative time', { header: `ts=-${AT};h1=${MAC}` }],
    ["Stripe's separator", { header: `ts=${AT},h1=${MAC}` }],
    ['only separators', { header: ';;=;=' }],
  ];
  // @promise webhook-paddle-hmac
  test.each(bad)('%s is refused, as by Paddle’s library', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(false);
    expect(await referenceAccepts(attempt)).toBe(false);
  });

  // The library reads the leading digits of a time, the last of several times, and a signature up to a second `=`.
  test.each([
    ['two times', `ts=${AT - 1};ts=${AT};h1=${MAC}`],
    ['a time with something behind it', `ts=${AT}x;h1=${MAC}`],
    ['a time with a fraction', `ts=${AT}.0;h1=${MAC}`],
    ['a signature with something behind it', `${fresh}=x`],
  ])('%s is ambiguous and is refused, although Paddle’s library accepts it', async (_, header) => {
    expect(await accepts({ header })).toBe(false);
    expect(await referenceAccepts({ header })).toBe(true);
  });

  test('an empty or blank secret and a clock that is NaN prove nothing', async () => {
    expect(await accepts({ header: signPaddle(BODY, '', AT), secret: '' })).toBe(false);
    expect(await accepts({ header: signPaddle(BODY, ' ', AT), secret: ' ' })).toBe(false);
    expect(await accepts({ header: fresh, receivedAt: Number.NaN })).toBe(false);
  });

  const secrets = fc.string({ minLength: 1, maxLength: 40 }).map((text) => `pdl_ntfset_${text}`);
  const times = fc.integer({ min: 1, max: 4_000_000_000 });

  test('a fresh signature is accepted by Tributary and by Paddle’s library', async () => {
    const age = fc.integer({ min: -10_000, max: 5_000 });
    await fc.assert(
      fc.asyncProperty(fc.json(), secrets, times, age, async (body, secret, at, ms) => {
        const attempt = { header: signPaddle(body, secret, at), body, secret, receivedAt: at * 1000 + ms };
        expect(await accepts(attempt)).toBe(true);
        expect(await referenceAccepts(attempt)).toBe(true);
      }),
    );
  });

  test('the same changes of age, secret, body and signature are refused here and by the library', async () => {
    const age = fc.oneof(fc.integer({ min: -1000, max: 1000 }), fc.integer({ min: 4_990, max: 5_010 }));
    const change = fc.constantFrom('none', 'body', 'secret', 'signature', 'scheme', 'time', 'second');
    await fc.assert(
      fc.asyncProperty(fc.json(), secrets, times, age, change, async (body, secret, at, ms, what) => {
        const signed = signPaddle(body, secret, at);
        const wrongDigit = signed.endsWith('0') ? '1' : '0';
        const headers: Partial<Record<typeof what, string>> = {
          signature: signed.slice(0, -1) + wrongDigit,
          scheme: signed.replace('h1=', 'h0='),
          time: signed.replace(/ts=\d+/, `ts=${at + 1}`),
          second: signed.replace('h1=', `h1=${other};h1=`),
        };
        const attempt = {
          header: headers[what] ?? signed,
          body: what === 'body' ? `${body} ` : body,
          secret: what === 'secret' ? `${secret}x` : secret,
          receivedAt: at * 1000 + ms,
        };
        expect(await accepts(attempt)).toBe(await referenceAccepts(attempt));
      }),
    );
  });

  test('a body changed by one byte is refused', async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), async (body, place, flip) => {
        const header = signPaddle(body, SECRET, AT);
        expect(await accepts({ header, body })).toBe(true);
        const changed = body.map((byte, at) => (at === place % body.length ? byte ^ flip : byte));
        expect(await accepts({ header, body: changed })).toBe(false);
      }),
    );
  });

  test('a header changed in one character is refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(fresh.length - 1), fc.stringMatching(/^[0-9a-z]$/), async (at, by) => {
        fc.pre(fresh[at] !== by);
        expect(await accepts({ header: fresh.slice(0, at) + by + fresh.slice(at + 1) })).toBe(false);
      }),
    );
  });
});

/** The first fixture is one day after this, the second two days, and so on. Transactions are billed one second earlier. */
const START = 1_772_443_800_000;

/** Returns the expected event of a fixture, by its number. Paddle's bodies name no environment. */
function reads(
  nth: number,
  kind: NormalizedEvent['kind'],
  rest: Partial<NormalizedEvent> = {},
): NormalizedEvent {
  return expectedEvent({
    sourceEventId: `evt_FakeLantern${String(nth).padStart(2, '0')}`,
    kind,
    environment: null,
    occurredAt: START + nth * DAY_MS,
    ...rest,
  });
}

const subscriber = {
  productId: 'pro_LanternPlus',
  userIds: ['user-hazel'],
  userKeys: ['sub_FakeLantern01'],
};
const subscription = {
  ...subscriber,
  userLinks: [{ key: 'sub_FakeLantern01', customerUserId: 'user-hazel' }],
};

/** Returns the expected event of a transaction of the subscription. */
function sold(
  nth: number,
  kind: NormalizedEvent['kind'],
  payment: Omit<PaymentFact, 'store' | 'ref'> | null,
  rest: Partial<NormalizedEvent> = {},
): NormalizedEvent {
  const ref = `txn_FakeLantern${String(nth).padStart(2, '0')}`;
  return reads(nth, kind, {
    ...subscriber,
    occurredAt: START + nth * DAY_MS - 1000,
    payment: payment === null ? null : { store: 'paddle', ref, ...payment },
    ...rest,
  });
}

function dollars(cents: number) {
  return { currency: 'USD', amountMinor: cents, usdCents: cents };
}

const back: Omit<AdjustmentFact, 'kind' | 'ref' | 'currency' | 'amountMinor' | 'usdCents'> = {
  store: 'paddle',
  paymentRef: 'txn_FakeLantern01',
  state: 'applied',
  rank: 1,
};

const EVENTS: Readonly<Record<string, NormalizedEvent>> = {
  'transaction.completed.web': sold(1, 'purchase', dollars(6543)),
  'transaction.completed.subscription_recurring': sold(2, 'renewal', {
    currency: 'GBP',
    amountMinor: 2150,
    usdCents: 2871,
  }),
  'transaction.completed.jpy': sold(3, 'renewal', { currency: 'JPY', amountMinor: 1650, usdCents: null }),
  'transaction.completed.payout_unknown': sold(
    4,
    'purchase',
    { currency: 'EUR', amountMinor: 9900, usdCents: null },
    { userKeys: [] },
  ),
  'transaction.completed.subscription_update': sold(5, 'product_change', dollars(777)),
  'transaction.completed.subscription_charge': sold(6, 'purchase', dollars(3100)),
  'transaction.completed.trial_zero': sold(7, 'other', null),
  'transaction.completed.part_credit': sold(8, 'renewal', dollars(1500)),
  'transaction.completed.all_credit': sold(9, 'other', null),
  'transaction.completed.no_user': sold(11, 'purchase', dollars(1200), { userIds: [] }),
  'transaction.completed.simulated': sold(12, 'purchase', dollars(1200), {
    sourceEventId: 'ntfsimevt_FakeLantern12',
    environment: 'sandbox',
  }),
  'adjustment.updated.refund_approved': reads(16, 'refund', {
    adjustment: { ...back, ...dollars(1290), kind: 'refund', ref: 'adj_FakeLantern15' },
  }),
  'adjustment.updated.refund_reversed': reads(18, 'refund_reversed', {
    adjustment: {
      ...back,
      ...dollars(1290),
      kind: 'refund',
      ref: 'adj_FakeLantern15',
      state: 'reversed',
      rank: 2,
    },
  }),
  'adjustment.created.refund_gbp': reads(19, 'refund', {
    adjustment: {
      ...back,
      kind: 'refund',
      ref: 'adj_FakeLantern19',
      paymentRef: 'txn_FakeLantern02',
      currency: 'GBP',
      amountMinor: 1075,
      usdCents: 1436,
    },
  }),
  'adjustment.created.chargeback': reads(20, 'chargeback', {
    adjustment: { ...back, ...dollars(6543), kind: 'chargeback', ref: 'adj_FakeLantern20' },
  }),
  'adjustment.created.chargeback_reverse': reads(21, 'chargeback_reversed', {
    adjustment: {
      ...back,
      ...dollars(6543),
      kind: 'chargeback',
      ref: 'adj_FakeLantern21',
      state: 'reversed',
      reversesAll: true,
    },
  }),
  'adjustment.created.chargeback_warning': reads(22, 'chargeback', {
    adjustment: { ...back, ...dollars(6543), kind: 'chargeback_warning', ref: 'adj_FakeLantern22' },
  }),
  'subscription.trialing': reads(24, 'trial_started', subscription),
  'subscription.updated.cancel': reads(26, 'cancellation', subscription),
  'subscription.canceled': reads(28, 'cancellation', { ...subscriber, userIds: [] }),
};

const IGNORED: Readonly<Record<string, readonly [string, NormalizedEvent]>> = {
  'transaction.completed.payment_method': [
    'not a payment',
    sold(10, 'other', null, { occurredAt: START + 10 * DAY_MS - 1000 }),
  ],
  'transaction.paid': ['transaction.completed', reads(13, 'other')],
  'transaction.payment_failed': ['transaction.payment_failed', reads(14, 'other')],
  'adjustment.created.refund_pending': ['not approved yet', reads(15, 'other')],
  'adjustment.updated.refund_rejected': ['rejected', reads(17, 'other')],
  'adjustment.created.credit': ['reduces later charges', reads(23, 'other')],
  'subscription.activated': ['change of a subscription', reads(25, 'other', subscription)],
  'subscription.updated.items': [
    'change of a subscription',
    reads(27, 'other', { ...subscription, productId: 'pro_LanternMax' }),
  ],
  'customer.created': ['customer.created', reads(29, 'other')],
};

function parse(overrides: PaddleTransactionOverrides): ParseResult {
  return paddle.parse(bodyOf(paddleTransaction(overrides)));
}

describe('reading a body', () => {
  test('every fixture of the provider has an expectation', () => {
    expect([...Object.keys(EVENTS), ...Object.keys(IGNORED)].toSorted()).toEqual(fixtureNames('paddle'));
  });

  // @promise paddle-events
  test.each(Object.entries(EVENTS))('the fixture %s is read as expected', (name, event) => {
    expect(withoutComponents(paddle.parse(fixture('paddle', name)))).toEqual({ outcome: 'event', event });
  });

  test.each(Object.entries(IGNORED))(
    'the fixture %s is ignored with a reason and its event',
    (name, [reason, event]) => {
      const result = paddle.parse(fixture('paddle', name));
      expect(result).toEqual({ outcome: 'ignored', reason: expect.stringContaining(reason), event });
    },
  );

  test("Paddle's own library reads every fixture", () => {
    for (const name of fixtureNames('paddle')) {
      const body: unknown = JSON.parse(fixture('paddle', name).toString());
      const event = Webhooks.fromJson(body as Parameters<typeof Webhooks.fromJson>[0]);
      expect(event.eventType).toBe((body as { event_type: string }).event_type);
    }
  });

  test('a body names no environment, and a simulation is always a sandbox event', () => {
    expect(eventOf(parse({})).environment).toBeNull();
    expect(eventOf(parse({ simulated: true })).environment).toBe('sandbox');
    const refund = bodyOf(paddleAdjustment({ simulated: true }));
    expect(eventOf(paddle.parse(refund)).environment).toBe('sandbox');
  });

  test.each(['web', 'api', 'subscription_charge', 'something_new'])(
    'a transaction with the origin %s is a purchase',
    (origin) => {
      expect(eventOf(parse({ origin, amount: 500 }))).toMatchObject({
        kind: 'purchase',
        payment: dollars(500),
      });
    },
  );

  // @promise gross-base
  test('the price includes tax, and Paddle’s fee does not change it', () => {
    expect(eventOf(parse({ amount: 1200, tax: 200 })).payment).toMatchObject(dollars(1200));
  });

  test.each(['JPY', 'KRW', 'CLP', 'VND'])(
    'an amount in %s, which has no minor unit, is read unchanged',
    (currency) => {
      const payout = { amount: 1107, currency: 'USD' };
      expect(eventOf(parse({ amount: 1650, currency, payout })).payment).toMatchObject({
        currency,
        amountMinor: 1650,
        usdCents: 1107,
      });
    },
  );

  test('an older body without a grand total counts its total', () => {
    const { data } = paddleTransaction({ amount: 1234 }) as { data: { details: object } };
    const details = { ...data.details, totals: { total: '1234', tax: '0', currency_code: 'USD' } };
    expect(eventOf(parse({ extra: { details } })).payment).toMatchObject(dollars(1234));
  });

  test('a negative total, which only moves credit, is not a payment', () => {
    const details = { totals: { total: '-500', grand_total: '0' }, payout_totals: null };
    expect(eventOf(parse({ extra: { details } }))).toMatchObject({ kind: 'other', payment: null });
  });

  test('an amount whose payout in USD cannot be read has no USD value', () => {
    const details = {
      totals: { total: '900', grand_total: '900' },
      payout_totals: { currency_code: 'USD', grand_total: 9.9 },
    };
    expect(eventOf(parse({ currency: 'EUR', extra: { details } })).payment).toMatchObject({
      currency: 'EUR',
      amountMinor: 900,
      usdCents: null,
    });
  });

  test('a transaction counts from the capture of its last payment, not from its billing', () => {
    const captured = (days: number, status = 'captured') => ({
      amount: '600',
      status,
      captured_at: status === 'captured' ? paddleTime(START + days * DAY_MS) : null,
    });
    const payments = [captured(20), captured(30), captured(0, 'error'), captured(25)];
    const event = eventOf(
      parse({ occurredAt: START + 31 * DAY_MS, extra: { billed_at: paddleTime(START), payments } }),
    );
    expect(event.occurredAt).toBe(START + 30 * DAY_MS);
  });

  test('a transaction without a captured payment counts from its billing, else from the time of its event', () => {
    const billed = { billed_at: paddleTime(START - DAY_MS), payments: null };
    expect(eventOf(parse({ occurredAt: START, extra: billed })).occurredAt).toBe(START - DAY_MS);
    const undated = { ...billed, payments: [{ amount: '1200', status: 'captured', captured_at: null }] };
    expect(eventOf(parse({ occurredAt: START, extra: undated })).occurredAt).toBe(START - DAY_MS);
    const neither = { billed_at: null, payments: [] };
    expect(eventOf(parse({ occurredAt: START, extra: neither })).occurredAt).toBe(START);
  });

  test('a numeric user id is the same as its text', () => {
    expect(eventOf(parse({ extra: { custom_data: { app_user_id: 4711 } } })).userIds).toEqual(['4711']);
    expect(eventOf(parse({ extra: { custom_data: { app_user_id: 47.11 } } })).userIds).toEqual([]);
    expect(eventOf(parse({ extra: { custom_data: 'user-hazel' } })).userIds).toEqual([]);
  });

  test('a new field or a new value of a known field does not change the event', () => {
    const known = { eventId: 'evt_1', transactionId: 'txn_1', subscriptionId: 'sub_1' };
    expect(eventOf(parse({ ...known, extra: { surprise: [{}], status: 'odd' } }))).toEqual(
      eventOf(parse(known)),
    );
  });

  test('custom data that PHP wrote as an empty list names no user', () => {
    const event = eventOf(parse({ amount: 500, extra: { custom_data: [] } }));
    expect(event).toMatchObject({ userIds: [], payment: dollars(500) });
  });

  test.each(['lantern.lit', 'subscription.lit'])('an event of the unknown type %s is ignored', (type) => {
    for (const body of [paddleEvent(type, { id: 7 }), { ...paddleEvent(type, {}), data: null }]) {
      const result = paddle.parse(bodyOf(body));
      expect(result).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining(type) });
    }
  });
});

describe('an invoice that is collected manually', () => {
  interface Invoice {
    readonly currency?: string;
    readonly captured?: readonly number[];
    readonly declined?: readonly number[];
    readonly adjusted?: number;
    readonly payout?: object;
    readonly adjustedPayout?: object;
    readonly mode?: string;
    readonly billedAt?: number;
  }

  /** Reads a completed invoice over 1,000.00. */
  function invoice({
    captured = [],
    declined = [],
    adjusted,
    payout,
    adjustedPayout,
    ...over
  }: Invoice): NormalizedEvent {
    const total = (minor: number) => ({ total: String(minor), grand_total: String(minor) });
    const extra = {
      collection_mode: over.mode ?? 'manual',
      billed_at: paddleTime(over.billedAt ?? START - 30 * DAY_MS),
      details: {
        totals: total(100_000),
        adjusted_totals: adjusted === undefined ? null : total(adjusted),
        payout_totals: payout ?? null,
        adjusted_payout_totals: adjustedPayout ?? null,
      },
      payments: [
        ...captured.map((amount) => ({
          amount: String(amount),
          status: 'captured',
          captured_at: paddleTime(START - 5000),
        })),
        ...declined.map((amount) => ({
          amount: String(amount),
          status: 'error',
          captured_at: paddleTime(START - 1000),
        })),
      ],
    };
    return eventOf(parse({ occurredAt: START, currency: over.currency ?? 'USD', extra }));
  }

  // @promise paddle-invoice-amount
  test('a credited invoice is worth what was paid', () => {
    expect(invoice({ adjusted: 60_000 }).payment).toMatchObject(dollars(60_000));
    expect(invoice({ captured: [60_000] }).payment).toMatchObject(dollars(60_000));
    expect(invoice({ captured: [20_000, 40_000], adjusted: 60_000 }).payment).toMatchObject(dollars(60_000));
  });

  test('a payment that was not captured adds neither an amount nor a time to an invoice', () => {
    expect(invoice({ captured: [60_000], declined: [20_000] })).toMatchObject({
      occurredAt: START - 5000,
      payment: dollars(60_000),
    });
  });

  test('a refund, which is booked separately, does not reduce what was paid', () => {
    expect(invoice({ captured: [100_000], adjusted: 70_000 }).payment).toMatchObject(dollars(100_000));
  });

  test('an invoice is worth at most its grand total', () => {
    expect(invoice({ captured: [100_000, 5000] }).payment).toMatchObject(dollars(100_000));
    expect(invoice({ adjusted: 120_000 }).payment).toMatchObject(dollars(100_000));
  });

  test('an invoice without payments and adjustments is worth its grand total', () => {
    expect(invoice({}).payment).toMatchObject(dollars(100_000));
  });

  test('an invoice that was credited completely is no payment', () => {
    expect(invoice({ adjusted: 0 })).toMatchObject({ kind: 'other', payment: null });
  });

  test('an invoice counts from the capture, not from its billing a month earlier', () => {
    expect(invoice({ captured: [60_000] }).occurredAt).toBe(START - 5000);
    expect(invoice({ adjusted: 60_000 }).occurredAt).toBe(START);
  });

  test('the USD value of a credited invoice leaves out the credit of the customer, which is only in grand totals', () => {
    // As Paddle documents the totals of payouts after adjustments: they have no grand total.
    const adjustedPayout = { currency_code: 'USD', total: '94500' };
    const payout = { currency_code: 'USD', total: '135000', grand_total: '108000' };
    expect(
      invoice({ currency: 'GBP', captured: [60_000], adjusted: 60_000, payout, adjustedPayout }).payment,
    ).toMatchObject({ currency: 'GBP', amountMinor: 60_000, usdCents: 64_800 });
    // Nor are those of a payout in another currency dollars.
    const inEuros = { currency_code: 'EUR', grand_total: '70000' };
    expect(
      invoice({ currency: 'GBP', captured: [60_000], adjusted: 60_000, payout, adjustedPayout: inEuros })
        .payment,
    ).toMatchObject({ usdCents: 64_800 });
  });

  test('the USD value is the same share of the payout', () => {
    const payout = { currency_code: 'USD', grand_total: '110001' };
    expect(invoice({ currency: 'EUR', captured: [60_000], payout }).payment).toMatchObject({
      currency: 'EUR',
      amountMinor: 60_000,
      usdCents: 66_001,
    });
  });

  test('the adjusted payout is the USD value of an adjusted invoice', () => {
    const payout = { currency_code: 'USD', grand_total: '110001' };
    const adjustedPayout = { currency_code: 'USD', grand_total: '65999' };
    const event = invoice({ currency: 'EUR', adjusted: 60_000, payout, adjustedPayout });
    expect(event.payment).toMatchObject({ amountMinor: 60_000, usdCents: 65_999 });
  });

  test('the payout is the USD value of an invoice that was paid in full', () => {
    const payout = { currency_code: 'USD', grand_total: '110001' };
    const adjustedPayout = { currency_code: 'USD', grand_total: '109000' };
    const event = invoice({
      currency: 'EUR',
      captured: [100_000],
      adjusted: 100_000,
      payout,
      adjustedPayout,
    });
    expect(event.payment).toMatchObject({ amountMinor: 100_000, usdCents: 110_001 });
  });

  test('an adjusted payout is no USD value of an invoice that was paid with another amount', () => {
    const payout = { currency_code: 'USD', grand_total: '110000' };
    const adjustedPayout = { currency_code: 'USD', grand_total: '66000' };
    const paid = { currency: 'EUR', captured: [80_000], adjusted: 60_000 };
    expect(invoice({ ...paid, payout, adjustedPayout }).payment).toMatchObject({ usdCents: 88_000 });
    expect(invoice({ ...paid, adjustedPayout }).payment).toMatchObject({ usdCents: null });
  });

  test('the totals of an automatically collected transaction are not those after adjustments', () => {
    const event = invoice({ mode: 'automatic', adjusted: 60_000, captured: [100_000] });
    expect(event.payment).toMatchObject(dollars(100_000));
  });
});

describe('refunds and reversals', () => {
  const adjust = (overrides: Parameters<typeof paddleAdjustment>[0]) =>
    paddle.parse(bodyOf(paddleAdjustment(overrides)));

  // @promise refund-own-id
  test('a refund has one id in all its events, and its last state outranks the others', () => {
    const same = { adjustmentId: 'adj_1', transactionId: 'txn_1', amount: 300 };
    const approved = eventOf(adjust(same)).adjustment;
    const again = eventOf(adjust({ ...same, type: 'adjustment.updated' })).adjustment;
    const undone = eventOf(adjust({ ...same, status: 'reversed' })).adjustment;
    expect(approved).toEqual(again);
    expect(approved).toMatchObject({ ref: 'adj_1', paymentRef: 'txn_1', state: 'applied', rank: 1 });
    expect(undone).toMatchObject({ ref: 'adj_1', state: 'reversed', rank: 2 });
  });

  test('a chargeback with the status reversed is given back', () => {
    const event = eventOf(adjust({ action: 'chargeback', status: 'reversed' }));
    expect(event).toMatchObject({ kind: 'chargeback_reversed', adjustment: { kind: 'chargeback', rank: 2 } });
  });

  // @promise paddle-chargeback-warning
  test('a chargeback warning takes money back as a kind of its own', () => {
    const event = eventOf(adjust({ action: 'chargeback_warning', amount: 900 }));
    expect(event).toMatchObject({
      kind: 'chargeback',
      adjustment: { kind: 'chargeback_warning', state: 'applied', rank: 1, amountMinor: 900 },
    });
    const reversed = eventOf(adjust({ action: 'chargeback_warning', status: 'reversed' }));
    expect(reversed).toMatchObject({
      kind: 'chargeback_reversed',
      adjustment: { state: 'reversed', rank: 2 },
    });
  });

  // @promise paddle-chargeback-warning
  test('the reversal of a chargeback warning undoes the warnings of its transaction', () => {
    const event = eventOf(adjust({ action: 'chargeback_warning_reverse' }));
    expect(event).toMatchObject({
      kind: 'chargeback_reversed',
      adjustment: { kind: 'chargeback_warning', state: 'reversed', reversesAll: true },
    });
  });

  test('the fee of a chargeback is not part of its amount', () => {
    const event = eventOf(
      adjust({
        action: 'chargeback',
        currency: 'EUR',
        amount: 900,
        payout: { amount: 990, currency: 'USD' },
      }),
    );
    expect(event.adjustment).toMatchObject({ currency: 'EUR', amountMinor: 900, usdCents: 990 });
  });

  test.each([
    ['a refund that is pending approval', { status: 'pending_approval' }, 'refund is not approved yet'],
    ['a refund that was rejected', { status: 'rejected' }, 'refund was rejected'],
    ['a refund of an unknown status', { status: 'pondered' }, 'refund is not approved yet'],
    [
      'a chargeback that is not approved',
      { action: 'chargeback', status: 'pending_approval' },
      'chargeback is not approved yet',
    ],
    [
      'a chargeback reversal that is not approved',
      { action: 'chargeback_reverse', status: 'pending_approval' },
      'not reversed yet',
    ],
    ['a credit', { action: 'credit' }, 'reduces later charges'],
    ['a reversed credit', { action: 'credit_reverse' }, 'reduces later charges'],
    [
      'a chargeback warning that is not approved',
      { action: 'chargeback_warning', status: 'pending_approval' },
      'chargeback_warning is not approved yet',
    ],
    [
      'the reversal of a chargeback warning that is not approved',
      { action: 'chargeback_warning_reverse', status: 'pending_approval' },
      'not reversed yet',
    ],
    ['an unknown action', { action: 'lantern_out' }, 'lantern_out do not affect'],
  ])('%s takes no money back', (_, overrides, words) => {
    expect(adjust(overrides)).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining(words),
      event: { kind: 'other', adjustment: null },
    });
  });

  test('a refund of zero is read as zero', () => {
    expect(eventOf(adjust({ amount: 0 })).adjustment).toMatchObject({ amountMinor: 0, state: 'applied' });
  });
});

describe('the payout', () => {
  const paidOut = (payout_totals: object | null) => {
    const details = { totals: { total: '900', grand_total: '900' }, payout_totals };
    return eventOf(parse({ currency: 'EUR', extra: { details } })).payment?.usdCents;
  };

  test('a payout in USD is the USD value of a charge in another currency', () => {
    expect(paidOut({ currency_code: 'USD', grand_total: '990', total: '995' })).toBe(990);
    expect(paidOut({ currency_code: 'USD', total: '995' })).toBe(995);
  });

  test.each([
    ['in another currency', { currency_code: 'GBP', grand_total: '770' }],
    ['of nothing', { currency_code: 'USD', grand_total: '0', total: '995' }],
    ['below zero', { currency_code: 'USD', grand_total: '-990' }],
    ['without an amount', { currency_code: 'USD' }],
    ['that is not known yet', null],
  ])('a payout %s states no USD value', (_, totals) => {
    expect(paidOut(totals)).toBeNull();
  });

  test('a payout does not change a charge in USD', () => {
    const payout = { amount: 990, currency: 'USD' };
    expect(eventOf(parse({ amount: 1200, payout })).payment).toMatchObject(dollars(1200));
  });
});

describe('subscriptions', () => {
  const subscribed = (type: string, extra: object = {}) =>
    paddle.parse(bodyOf(paddleSubscription({ type, subscriptionId: 'sub_1', extra: { ...extra } })));

  test.each(['activated', 'created', 'imported', 'past_due', 'paused', 'resumed', 'updated'])(
    'subscription.%s moves no money and names the user of the subscription',
    (name) => {
      expect(subscribed(`subscription.${name}`)).toMatchObject({
        outcome: 'ignored',
        reason: expect.stringContaining('moves no money'),
        event: { userLinks: [{ key: 'sub_1', customerUserId: 'user-hazel' }], userKeys: ['sub_1'] },
      });
    },
  );

  test.each([
    ['subscription.updated', 'cancel', 'event'],
    ['subscription.updated', 'pause', 'ignored'],
    ['subscription.past_due', 'cancel', 'ignored'],
  ])('%s with the scheduled change %j has the outcome %s', (type, action, outcome) => {
    expect(subscribed(type, { scheduled_change: { action } }).outcome).toBe(outcome);
  });

  test('a transaction without items has no product', () => {
    const result = subscribed('subscription.trialing', { items: [] });
    expect(eventOf(result)).toMatchObject({ kind: 'trial_started', productId: null });
    expect(eventOf(subscribed('subscription.trialing', { items: null })).productId).toBeNull();
  });
});

describe('malformed bodies', () => {
  const personal = 'hazel@example.com';
  const totals = (total: unknown) => ({ extra: { details: { totals: { total } } } });
  test.each<[string, Buffer, string]>([
    ['no bytes', Buffer.alloc(0), 'not JSON'],
    ['a form', Buffer.from('alert_name=payment_succeeded&p_signature=x'), 'not JSON'],
    ['a list', Buffer.from('[]'), 'not a JSON object'],
    ['an event without an id', bodyOf({ ...paddleTransaction(), event_id: null }), 'event_id'],
    ['an event without a type', bodyOf({ ...paddleTransaction(), event_type: 7 }), 'event_type'],
    ['an event without a time', bodyOf({ ...paddleTransaction(), occurred_at: 'soon' }), 'occurred_at'],
    ['an event without data', bodyOf({ ...paddleTransaction(), data: [personal] }), 'data is missing'],
    ['a transaction without an id', bodyOf(paddleTransaction({ extra: { id: null } })), 'data.id'],
    ['an amount that is a number', bodyOf(paddleTransaction(totals(1200))), 'data.details.totals.total'],
    ['an amount with decimals', bodyOf(paddleTransaction(totals('12.00'))), 'data.details.totals.total'],
    ['an amount that is text', bodyOf(paddleTransaction(totals(personal))), 'data.details.totals.total'],
    ['an amount too large', bodyOf(paddleTransaction(totals('9'.repeat(16)))), 'totals.total'],
    [
      'an amount too large in the minor units of ISO 4217',
      bodyOf(paddleTransaction({ currency: 'KWD', amount: 999_999_999_999_999 })),
      'the amount in KWD is too large',
    ],
    [
      'a refund too large in the minor units of ISO 4217',
      bodyOf(paddleAdjustment({ currency: 'KWD', amount: 999_999_999_999_999 })),
      'the amount in KWD is too large',
    ],
    [
      'a currency that is not a code',
      bodyOf(paddleTransaction({ currency: 'dollars' })),
      'data.currency_code',
    ],
    [
      'a refund without its transaction',
      bodyOf(paddleAdjustment({ extra: { transaction_id: 7 } })),
      'transaction_id',
    ],
    [
      'a refund below zero',
      bodyOf(paddleAdjustment({ amount: -5 })),
      'data.totals.total is missing or not an amount of zero or more',
    ],
    ['a subscription without an id', bodyOf(paddleSubscription({ extra: { id: '' } })), 'data.id'],
  ])('%s fails with a reason that names the problem and no personal data', (_, body, reason) => {
    const result = paddle.parse(body);
    expect(result).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(reason) });
    expect(JSON.stringify(result)).not.toContain(personal);
  });
});
