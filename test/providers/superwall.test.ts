/** @jest-environment <rootDir>/test/jest/isolated.js */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Webhook } from 'svix';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import type { Headers, ParseResult } from '../../src/providers/provider.ts';
import { superwall } from '../../src/providers/superwall/index.ts';
import {
  asSuperwallV2,
  bodyOf,
  eventOf,
  fixture,
  fixtureNames,
  signSvix,
  SUPERWALL_V2_PLACES,
  superwallEvent,
  superwallRefund,
  usd,
  paidInStore,
  readsAs,
  STORE_REFUND,
  STORE_START,
  storeTime,
  withoutComponents,
} from '../support/provider-fixtures.ts';
import type { Payload, SuperwallOverrides } from '../support/provider-fixtures.ts';

interface Vector {
  readonly secret: string;
  readonly id: string;
  readonly at: number;
  readonly body: string;
  readonly signature: string;
}

/** The vector of the scheme's documentation. */
const PING: Vector = {
  secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
  id: 'msg_loFOjxBNrRLzqYUf',
  at: 1_731_705_121,
  body: '{"event_type":"ping","data":{"success":true}}',
  signature: 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
};
const LIBRARY: Vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: 1_614_265_330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

/** The vector of another provider of the scheme, whose key is the text itself. */
const TEXT_KEY: Vector = {
  secret: `whsec_${Buffer.from('polar_whs_example_secret').toString('base64')}`,
  id: 'msg_test_1',
  at: 1_700_000_000,
  body: '{"type":"order.paid","data":{}}',
  signature: 'v1,hqk2cuI3WV3UOnjgJ/JdgTzKzIpnFx6CKmbaoNPEmuU=',
};

interface Attempt {
  readonly id?: Headers[string];
  readonly time?: Headers[string];
  readonly signature?: Headers[string];
  readonly body?: string | Uint8Array;
  readonly secret?: string;
  readonly receivedAt?: number;
  readonly prefix?: 'svix' | 'webhook';
}

/** Fields that are not given are those of the first vector; undefined removes a header. */
function request(attempt: Attempt) {
  const { prefix = 'svix', body = PING.body, secret = PING.secret, receivedAt = PING.at * 1000 } = attempt;
  const given = { id: PING.id, time: String(PING.at), signature: PING.signature, ...attempt };
  const headers: Record<string, Headers[string]> = {
    [`${prefix}-id`]: given.id,
    [`${prefix}-timestamp`]: given.time,
    [`${prefix}-signature`]: given.signature,
  };
  return { headers, body, secret, receivedAt };
}

async function accepts(attempt: Attempt): Promise<boolean> {
  const { headers, body, secret, receivedAt } = request(attempt);
  return await superwall.verify({ headers, body: Buffer.from(body), receivedAt }, secret);
}

/** Whether the library of Svix accepts the same request at the same time. */
function referenceAccepts(attempt: Attempt): boolean {
  const { headers, body, secret, receivedAt } = request(attempt);
  jest.setSystemTime(receivedAt);
  try {
    new Webhook(secret).verify(Buffer.from(body), headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

describe('verification', () => {
  beforeEach(() => {
    // The library reads the clock of the process. Nothing else is replaced.
    jest.useFakeTimers({ now: PING.at * 1000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each<[string, Vector]>([
    ['the vector of its documentation', PING],
    ['the vector of its library', LIBRARY],
    ['the vector of a provider whose key is text', TEXT_KEY],
    ['the vector with a secret without its prefix', { ...LIBRARY, secret: LIBRARY.secret.slice(6) }],
  ])('a published vector is accepted and reproduced: %s', async (_, { secret, id, at, body, signature }) => {
    const attempt = { id, time: String(at), signature, body, secret, receivedAt: at * 1000 };
    expect(await accepts(attempt)).toBe(true);
    expect(referenceAccepts(attempt)).toBe(true);
    expect(signSvix(body, secret, at, id)['svix-signature']).toBe(signature);
  });

  const other = `v1,${Buffer.alloc(32).toString('base64')}`;
  const good: readonly (readonly [string, Attempt])[] = [
    ['a time exactly at the tolerance', { receivedAt: (PING.at + 300) * 1000 }],
    ['a time within its last second', { receivedAt: (PING.at + 300) * 1000 + 999 }],
    ['a time as far in the future as the tolerance', { receivedAt: (PING.at - 300) * 1000 }],
    ['a valid signature second in the list', { signature: `${other} ${PING.signature}` }],
    ['a valid signature first in the list', { signature: `${PING.signature} ${other}` }],
    ['an unknown version next to a valid one', { signature: `v1a,${other} v2,x ${PING.signature}` }],
    ['the header names of Standard Webhooks', { prefix: 'webhook' }],
  ];
  // @promise webhook-svix
  test.each(good)('%s is accepted, as by the library of Svix', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(true);
    expect(referenceAccepts(attempt)).toBe(true);
  });

  const mac = PING.signature.slice(3);
  const bad: readonly (readonly [string, Attempt])[] = [
    ['a time one second older than the tolerance', { receivedAt: (PING.at + 301) * 1000 }],
    ['a time one second too far in the future', { receivedAt: (PING.at - 301) * 1000 }],
    ['a time in the future by a whole second less a moment', { receivedAt: (PING.at - 300) * 1000 - 1 }],
    ['only an unknown version', { signature: `v1a,${mac} v2,${mac}` }],
    ['a signature without its version', { signature: mac }],
    ['a body changed by one byte', { body: PING.body.replace('ping', 'pong') }],
    ['a body that was parsed and printed again', { body: JSON.stringify(JSON.parse(PING.body), null, 1) }],
    ['another id', { id: `${PING.id}x` }],
    ['another time', { time: String(PING.at + 1) }],
    ['another secret', { secret: LIBRARY.secret }],
    ['the text of the secret as the key', { secret: Buffer.from(PING.secret).toString('base64') }],
    ['a secret that is not base64', { secret: 'whsec_not base64!' }],
    ['a missing id', { id: undefined }],
    ['a missing time', { time: undefined }],
    ['a missing signature', { signature: undefined }],
    ['an empty id', { id: '' }],
    ['an empty time', { time: '' }],
    ['an empty signature', { signature: '' }],
    ['a signature that is a list', { signature: [PING.signature] }],
    ['an id that is a list', { id: [PING.id, PING.id] }],
    ['a padded time', { time: ` ${PING.at + 1}` }],
    ['a time in words', { time: 'now' }],
    ['a negative time', { time: `-${PING.at}` }],
    ['a signature cut short', { signature: PING.signature.slice(0, -1) }],
    ['a signature too long', { signature: `${PING.signature}=` }],
    ['an empty v1', { signature: 'v1,' }],
    ['a v1 without a comma', { signature: 'v1' }],
    ['another separator of signatures', { signature: `${other};${PING.signature}` }],
  ];
  // @promise webhook-svix
  test.each(bad)('%s is refused, as by the library of Svix', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(false);
    expect(referenceAccepts(attempt)).toBe(false);
  });

  // The library reads the leading digits of a time, and a signature up to the next comma. Svix sends neither form, and
  // Tributary accepts only a time in whole seconds.
  test.each<[string, Attempt]>([
    ['a time with something behind it', { time: `${PING.at}x` }],
    ['a time with a fraction', { time: `${PING.at}.5` }],
    ['a padded time that is right', { time: ` ${PING.at}` }],
    ['a signature with something behind a comma', { signature: `${PING.signature},x` }],
    ['an id in a list of one', { id: [PING.id] }],
  ])('%s is ambiguous and is refused, although the library of Svix accepts it', async (_, attempt) => {
    expect(await accepts(attempt)).toBe(false);
    expect(referenceAccepts(attempt)).toBe(true);
  });

  test.each([
    ['an empty id', '', ''],
    ['a missing id', undefined, 'null'],
  ])('%s is refused, although its signature matches', async (_, id, signedId) => {
    const signature = signSvix(PING.body, PING.secret, PING.at, signedId)['svix-signature'];
    expect(await accepts({ id, signature })).toBe(false);
  });

  test.each([
    ['a key with its prefix', PING.secret, true],
    ['a key without its prefix', PING.secret.slice(6), true],
    ['a prefix alone', 'whsec_', false],
    ['nothing', '', false],
    ['something before the key', `whsec_!${PING.secret.slice(6)}`, false],
    ['something behind the key', `${PING.secret}!`, false],
    ['a password', 'not base64 at all', false],
  ])('setting %s as the secret reports whether it can be one', (_, secret, canBeOne) => {
    const fault = superwall.secretProblem?.(secret);
    if (canBeOne) expect(fault).toBeNull();
    else expect(fault).toMatch(/not a Svix signing secret.*whsec_/);
  });

  test('a secret without a key and a clock that is NaN prove nothing', async () => {
    const unkeyed = signSvix(PING.body, 'whsec_', PING.at, PING.id)['svix-signature'];
    for (const secret of ['whsec_', '', ' ', 'whsec_='])
      expect(await accepts({ secret, signature: unkeyed })).toBe(false);
    expect(await accepts({ receivedAt: Number.NaN })).toBe(false);
  });

  test('a secret that is no key does not make a hash without a key a signature, since anybody can compute one', async () => {
    const hash = createHash('sha256').update(`${PING.id}.${PING.at}.`).update(PING.body).digest('base64');
    for (const secret of ['whsec_', 'whsec_not base64!', PING.secret])
      expect(await accepts({ secret, signature: `v1,${hash}` })).toBe(false);
  });

  const secrets = fc
    .uint8Array({ minLength: 4, maxLength: 64 })
    .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);
  const ids = fc.stringMatching(/^msg_[A-Za-z0-9]{1,30}$/);
  const times = fc.integer({ min: 1000, max: 4_000_000_000 });
  const bodies = fc.json();

  test('a fresh signature of the library of Svix is accepted', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, secrets, ids, times, async (body, secret, id, at) => {
        const signature = new Webhook(secret).sign(id, new Date(at * 1000), body);
        expect(signature).toBe(signSvix(body, secret, at, id)['svix-signature']);
        expect(await accepts({ id, time: String(at), signature, body, secret, receivedAt: at * 1000 })).toBe(
          true,
        );
      }),
    );
  });

  test('the same changes of age, secret, body, id, time and signature are refused here and by the library', async () => {
    const age = fc.oneof(
      fc.integer({ min: -1000, max: 1000 }),
      fc.integer({ min: 298_000, max: 303_000 }),
      fc.integer({ min: -303_000, max: -298_000 }),
    );
    const change = fc.constantFrom(
      'none',
      'body',
      'secret',
      'signature',
      'version',
      'time',
      'id',
      'second',
      'prefix',
    );
    await fc.assert(
      fc.asyncProperty(bodies, secrets, ids, times, age, change, async (body, secret, id, at, ms, what) => {
        const signature = signSvix(body, secret, at, id)['svix-signature'];
        const wrongDigit = signature.at(-3) === 'A' ? 'B' : 'A';
        const signatures: Partial<Record<typeof what, string>> = {
          signature: `${signature.slice(0, -3)}${wrongDigit}${signature.slice(-2)}`,
          version: signature.replace('v1,', 'v0,'),
          second: `v1,bm9wZQ== ${signature}`,
        };
        const attempt: Attempt = {
          id: what === 'id' ? `${id}0` : id,
          time: String(what === 'time' ? at + 1 : at),
          signature: signatures[what] ?? signature,
          body: what === 'body' ? `${body} ` : body,
          secret: what === 'secret' ? `whsec_zz${secret.slice(6)}` : secret,
          receivedAt: at * 1000 + ms,
          prefix: what === 'prefix' ? 'webhook' : 'svix',
        };
        expect(await accepts(attempt)).toBe(referenceAccepts(attempt));
      }),
    );
  });

  test('a body changed by one byte is refused', async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), async (body, place, flip) => {
        const signature = signSvix(body, PING.secret, PING.at, PING.id)['svix-signature'];
        expect(await accepts({ signature, body })).toBe(true);
        const changed = body.map((byte, at) => (at === place % body.length ? byte ^ flip : byte));
        expect(await accepts({ signature, body: changed })).toBe(false);
      }),
    );
  });

  test('an id, a time or a signature changed in one character is refused', async () => {
    const parts = fc.constantFrom('id' as const, 'time' as const, 'signature' as const);
    const original = { id: PING.id, time: String(PING.at), signature: PING.signature };
    await fc.assert(
      fc.asyncProperty(parts, fc.nat(), fc.string({ maxLength: 2 }), async (what, place, by) => {
        const text = original[what];
        const at = place % text.length;
        const changed = text.slice(0, at) + by + text.slice(at + 1);
        // The list of signatures may end with a space, which adds an empty signature.
        fc.pre(changed !== text && changed.trim() !== text);
        const stillThere = what === 'signature' && changed.split(' ').includes(text);
        expect(await accepts({ [what]: changed })).toBe(stillThere);
      }),
    );
  });
});

function sourceEventId(nth: number, name: string): string {
  return `5e000000-0000-4000-8000-0000000000${String(nth).padStart(2, '0')}:${name}`;
}

/** Returns the expected event of a fixture, by its number. */
const reads = (nth: number, name: string, kind: NormalizedEvent['kind'], rest?: Partial<NormalizedEvent>) =>
  readsAs(sourceEventId(nth, name), nth, kind, rest);

const first = 'initial_purchase';

const ANONYMOUS = ['$SuperwallAlias:00FA4E00-0000-4000-8000-000000000001'];

const EVENTS: Readonly<Record<string, NormalizedEvent>> = {
  initial_purchase: reads(1, first, 'purchase', paidInStore(1, usd(1149))),
  initial_purchase_intro_eur: reads(
    2,
    first,
    'purchase',
    paidInStore(2, { currency: 'EUR', amountMinor: 1099, usdCents: 1235 }),
  ),
  renewal: reads(3, 'renewal', 'renewal', paidInStore(3, usd(1149), { subscription: '70000000000101' })),
  renewal_kwd: reads(
    4,
    'renewal',
    'renewal',
    paidInStore(
      4,
      { currency: 'KWD', amountMinor: 2495, usdCents: 813 },
      { store: 'play_store', ref: 'GPA.7777-7777-7777-77703..3' },
    ),
  ),
  trial_started: reads(5, first, 'trial_started', { userKeys: ['app_store:70000000000105'] }),
  trial_converted: reads(
    6,
    'renewal',
    'trial_converted',
    paidInStore(6, { currency: 'JPY', amountMinor: 2980, usdCents: 2003 }),
  ),
  non_renewing_purchase: reads(7, 'non_renewing_purchase', 'purchase', {
    ...paidInStore(7, usd(402)),
    productId: 'lantern.oil.50',
  }),
  family_share: reads(8, first, 'purchase'),
  web_purchase: reads(
    9,
    first,
    'purchase',
    paidInStore(9, usd(1149), { store: 'stripe', ref: 'in_FakeLantern77' }),
  ),
  price_unknown: reads(10, 'renewal', 'renewal', {
    priceUnknown: true,
    userKeys: ['app_store:70000000000110'],
  }),
  cancellation: reads(11, 'cancellation', 'cancellation'),
  refund: reads(12, 'cancellation', 'refund', {
    occurredAt: storeTime(12),
    adjustment: {
      ...STORE_REFUND,
      ...usd(1149),
      ref: sourceEventId(12, 'cancellation'),
      paymentRef: '70000000000101',
    },
  }),
  refund_partial: reads(13, 'cancellation', 'refund', {
    occurredAt: storeTime(13),
    adjustment: {
      ...STORE_REFUND,
      currency: 'EUR',
      amountMinor: 366,
      usdCents: 412,
      ref: sourceEventId(13, 'cancellation'),
      paymentRef: '70000000000102',
    },
  }),
  expiration: reads(16, 'expiration', 'expiration'),
  product_change: reads(17, 'product_change', 'product_change'),
  uncancellation: reads(18, 'uncancellation', 'other'),
  billing_issue: reads(19, 'billing_issue', 'other'),
  subscription_paused: reads(20, 'subscription_paused', 'other'),
  only_anonymous: reads(21, first, 'purchase', {
    ...paidInStore(21, usd(1149)),
    userIds: [],
    onlyAnonymousUserIds: true,
    anonymousUserIds: ANONYMOUS,
  }),
  sandbox_purchase: reads(22, first, 'purchase', { ...paidInStore(22, usd(1149)), environment: 'sandbox' }),
  user_attribute: reads(23, first, 'purchase', {
    ...paidInStore(23, usd(1149)),
    anonymousUserIds: ANONYMOUS,
  }),
  test: reads(24, 'test', 'test', { environment: null, productId: null, userIds: [] }),
};

const IGNORED: Readonly<Record<string, readonly [string, NormalizedEvent]>> = {
  something_new: ['something_new', reads(25, 'something_new', 'other')],
};

function parse(overrides: SuperwallOverrides): ParseResult {
  return superwall.parse(bodyOf(superwallEvent(overrides)));
}

describe('reading a body', () => {
  test('every fixture of the provider has an expectation', () => {
    expect([...Object.keys(EVENTS), ...Object.keys(IGNORED)].toSorted()).toEqual(fixtureNames('superwall'));
  });

  // @promise superwall-events
  test.each(Object.entries(EVENTS))('the fixture %s is read as expected', (name, event) => {
    expect(withoutComponents(superwall.parse(fixture('superwall', name)))).toEqual({
      outcome: 'event',
      event,
    });
  });

  test.each(Object.entries(IGNORED))(
    'the fixture %s is ignored with a reason and its event',
    (name, [reason, event]) => {
      const result = superwall.parse(fixture('superwall', name));
      expect(result).toEqual({ outcome: 'ignored', reason: expect.stringContaining(reason), event });
    },
  );

  test('an event of any type with a negative price is a refund', () => {
    for (const type of ['cancellation', 'renewal', 'expiration', 'initial_purchase', 'something_new']) {
      const event = eventOf(parse({ type, usd: -3.5, transactionId: 'T-9', eventId: 'E-9' }));
      expect(event).toMatchObject({
        kind: 'refund',
        payment: null,
        adjustment: { ...STORE_REFUND, ...usd(350), ref: 'E-9', paymentRef: 'T-9' },
      });
    }
  });

  test('a refund counts from the time of its event, not of the purchase', () => {
    const body = bodyOf(superwallRefund({ occurredAt: storeTime(9), purchasedAt: STORE_START }));
    expect(eventOf(superwall.parse(body)).occurredAt).toBe(storeTime(9));
  });

  // @promise superwall-price-decides
  test('an event marked as family share is a payment if its price is above zero', () => {
    const extra = { isFamilyShare: true };
    const ids = { originalTransactionId: 'O-1', extra };
    // Whom the code of the first payment has bound gets the renewals of the family organizer, which name no user.
    expect(eventOf(parse({ usd: 9.99, ...ids }))).toMatchObject({
      kind: 'purchase',
      payment: usd(999),
      userKeys: ['app_store:O-1'],
    });
    expect(eventOf(parse({ usd: 0, ...ids }))).toMatchObject({
      payment: null,
      priceUnknown: false,
      userKeys: [],
    });
    expect(eventOf(parse({ usd: null, extra }))).toMatchObject({ payment: null, priceUnknown: true });
  });

  test('a refund of a purchase that is marked as family share takes its money back', () => {
    const body = bodyOf(superwallRefund({ transactionId: 'T-9', extra: { isFamilyShare: true } }));
    expect(eventOf(superwall.parse(body))).toMatchObject({
      kind: 'refund',
      adjustment: { ...STORE_REFUND, paymentRef: 'T-9' },
    });
  });

  // @promise superwall-price-decides
  test.each<[string, NormalizedEvent['kind']]>([
    ['product_change', 'product_change'],
    ['cancellation', 'purchase'],
    ['uncancellation', 'purchase'],
    ['billing_issue', 'purchase'],
    ['something_new', 'purchase'],
  ])('an event named %s with a price above zero is a payment', (type, kind) => {
    const event = eventOf(parse({ type, usd: 4.99, transactionId: 'T-9', purchasedAt: STORE_START }));
    expect(event).toMatchObject({
      kind,
      occurredAt: STORE_START,
      payment: { store: 'app_store', ref: 'T-9', ...usd(499) },
      adjustment: null,
    });
  });

  // @promise superwall-price-decides
  test.each([0, null])('a price of %p USD beside a negative local price is a refund', (price) => {
    const event = eventOf(
      parse({ type: 'cancellation', usd: price, localPrice: -8.99, currency: 'EUR', transactionId: 'T-9' }),
    );
    expect(event).toMatchObject({
      kind: 'refund',
      payment: null,
      adjustment: { ...STORE_REFUND, paymentRef: 'T-9', currency: 'EUR', amountMinor: 899, usdCents: null },
    });
  });

  test('a price that is known only in the currency of the purchase is a payment', () => {
    for (const type of ['renewal', 'product_change']) {
      expect(eventOf(parse({ type, usd: null, localPrice: 8.99, currency: 'EUR' }))).toMatchObject({
        payment: { currency: 'EUR', amountMinor: 899, usdCents: null },
        priceUnknown: false,
      });
    }
    expect(
      eventOf(parse({ type: 'product_change', usd: 0, localPrice: 8.99, currency: 'EUR' })).payment,
    ).toBeNull();
  });

  test('a test event is never money, whatever its price', () => {
    for (const price of [9.99, -9.99]) {
      expect(eventOf(parse({ type: 'test', usd: price }))).toMatchObject({
        kind: 'test',
        payment: null,
        adjustment: null,
      });
    }
  });

  test('a cancellation by customer support without a price is not a refund', () => {
    const event = eventOf(
      parse({ type: 'cancellation', usd: 0, extra: { cancelReason: 'CUSTOMER_SUPPORT' } }),
    );
    expect(event).toMatchObject({ kind: 'cancellation', adjustment: null });
  });

  test.each(['initial_purchase', 'renewal', 'non_renewing_purchase'])(
    '%s without a price has an unknown price, not a price of zero',
    (type) => {
      expect(eventOf(parse({ type, usd: null }))).toMatchObject({ payment: null, priceUnknown: true });
      expect(eventOf(parse({ type, usd: 0 }))).toMatchObject({ payment: null, priceUnknown: false });
    },
  );

  test('a trial without a price is free and has no unknown price', () => {
    expect(eventOf(parse({ periodType: 'TRIAL', usd: null }))).toMatchObject({
      kind: 'trial_started',
      payment: null,
      priceUnknown: false,
    });
  });

  test('a first purchase without a period type is a purchase', () => {
    expect(eventOf(parse({ usd: 9.99, extra: { periodType: undefined } }))).toMatchObject({
      kind: 'purchase',
      payment: usd(999),
    });
  });

  test('only an initial purchase starts a trial', () => {
    const event = eventOf(parse({ type: 'non_renewing_purchase', periodType: 'TRIAL', usd: 0 }));
    expect(event.kind).toBe('purchase');
  });

  test('a test event is read whatever its price is', () => {
    expect(eventOf(parse({ type: 'test', extra: { price: 'none' } })).kind).toBe('test');
  });

  test('a paid trial is a purchase', () => {
    expect(eventOf(parse({ periodType: 'TRIAL', usd: 0.99 }))).toMatchObject({
      kind: 'purchase',
      payment: usd(99),
    });
  });

  test.each<[string, string | null, NormalizedEvent['environment']]>([
    ['PRODUCTION', 'PRODUCTION', 'production'],
    ['SANDBOX', 'SANDBOX', 'sandbox'],
    ['an environment with another name', 'STAGING', 'sandbox'],
    ['no environment', null, null],
  ])('%s is read as the right environment', (_, environment, expected) => {
    expect(eventOf(parse({ environment })).environment).toBe(expected);
  });

  test('the original user id comes first and the user attribute second', () => {
    const userAttributes = { app_user_id: 'by-attribute', name: 'Hazel' };
    const ids = (userId: string | null) => eventOf(parse({ userId, extra: { userAttributes } })).userIds;
    expect(ids('by-identify')).toEqual(['by-identify', 'by-attribute']);
    expect(ids(null)).toEqual(['by-attribute']);
    expect(
      eventOf(parse({ userId: null, extra: { userAttributes: { app_user_id: 4711 } } })).userIds,
    ).toEqual(['4711']);
  });

  test('an alias of the SDK names no user, in upper or lower case', () => {
    for (const userId of ['$SuperwallAlias:00FA4E', '$superwallAlias:00FA4E']) {
      expect(eventOf(parse({ userId }))).toMatchObject({ userIds: [], onlyAnonymousUserIds: true });
    }
  });

  test('a body without any user id is not anonymous', () => {
    expect(eventOf(parse({ userId: null }))).toMatchObject({ userIds: [], onlyAnonymousUserIds: false });
  });

  test('an event without a time counts from the time it was sent', () => {
    const event = eventOf(
      parse({ type: 'expiration', usd: 0, occurredAt: STORE_START, extra: { ts: undefined } }),
    );
    expect(event.occurredAt).toBe(STORE_START + 1500);
  });

  test('new fields and new values of known fields do not change the event', () => {
    const known = { eventId: 'E-1', transactionId: 'T-1' };
    const odd = parse({ ...known, periodType: 'LUNAR', extra: { surprise: [{}], exchangeRate: 'x' } });
    expect(eventOf(odd)).toEqual(eventOf(parse(known)));
  });
});

describe('the format V2', () => {
  const fixtures = Object.keys(EVENTS).filter((name) => name !== 'test');
  // @promise superwall-v2
  test.each(SUPERWALL_V2_PLACES)(
    'the facts of the legacy format at %s are read as in that format, with the id by which both are one event',
    (place) => {
      for (const name of fixtures) {
        const legacy = fixture('superwall', name);
        const body = bodyOf(asSuperwallV2(JSON.parse(legacy.toString()) as Payload, place));
        expect({ name, ...superwall.parse(body) }).toEqual({ name, ...superwall.parse(legacy) });
      }
    },
  );

  const facts = superwallEvent().data as Payload;
  const forged = { ...facts, price: 9_999 };
  const without = (field: string) =>
    Object.fromEntries(Object.entries(facts).filter(([name]) => name !== field));

  // @promise superwall-v2
  test.each<[string, Payload]>([
    ['facts under other names', { data: { event: { ...without('price'), priceUsd: 9.99 } } }],
    ['facts without an environment', { data: { event: without('environment') } }],
    ['facts without a store', { data: { event: without('store') } }],
    ['facts whose id does not name the event', { data: { event: { ...facts, id: 'evt_1' } } }],
    ['facts in two places', { event: facts, data: { event: facts } }],
    ['facts in a list', { data: { event: [facts] } }],
    ['facts in the attributes of a user alone', { data: { subscriber: { attributes: { event: forged } } } }],
    [
      'facts in user attributes alone',
      { data: { userAttributes: { event: forged } }, userAttributes: forged },
    ],
    ['an id and a name without facts', { data: { id: 'a:renewal', name: 'renewal', subscriber: {} } }],
  ])('%s fail, and the delivery is kept', (_, payload) => {
    const result = superwall.parse(bodyOf({ timestamp: STORE_START, ...payload }));
    expect(result).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('The delivery is kept'),
    });
  });

  test('an event that states only its environment is one of the legacy format', () => {
    const data = { id: 'E-1', name: 'expiration', environment: 'SANDBOX' };
    expect(superwall.parse(bodyOf({ timestamp: STORE_START, data }))).toMatchObject({
      outcome: 'event',
      event: { kind: 'expiration', environment: 'sandbox', occurredAt: STORE_START },
    });
  });

  test('the attributes of a user replace no fact', () => {
    const body = asSuperwallV2(superwallEvent({ eventId: 'E-1:initial_purchase' }), 'data.event', {
      event: forged,
    });
    expect(eventOf(superwall.parse(bodyOf(body)))).toMatchObject({ payment: usd(999) });
  });
});

describe('malformed bodies', () => {
  const personal = 'hazel@example.com';
  test.each<[string, Buffer, string]>([
    ['no bytes', Buffer.alloc(0), 'not JSON'],
    ['a list', Buffer.from('[]'), 'not a JSON object'],
    [
      'the other format',
      bodyOf({ id: 'evt_1', type: 'renewal', customer: { id: personal } }),
      'The delivery is kept',
    ],
    [
      'data without an id',
      bodyOf({ data: { name: 'renewal', originalAppUserId: personal } }),
      'legacy format',
    ],
    ['data without a name', bodyOf(superwallEvent({ extra: { name: 7 } })), 'data.id and data.name'],
    ['no time', bodyOf({ ...superwallEvent({ extra: { ts: 'soon' } }), timestamp: null }), 'data.ts'],
    ['a price that is a text', bodyOf(superwallEvent({ extra: { price: personal } })), 'data.price'],
    [
      'a cancellation whose price is a text',
      bodyOf(superwallEvent({ type: 'cancellation', extra: { price: '-9.99' } })),
      'data.price',
    ],
    ['a price too large for an amount', bodyOf(superwallEvent({ usd: 1e20 })), 'data.price is too large'],
    [
      'a price too large for an amount in the currency of the purchase',
      bodyOf(superwallEvent({ usd: 9.99, extra: { priceInPurchasedCurrency: 1e20, currencyCode: 'EUR' } })),
      'data.priceInPurchasedCurrency is too large',
    ],
    ['a payment without a reference', bodyOf(superwallEvent({ transactionId: null })), 'data.transactionId'],
    [
      'a payment with a placeholder as its reference',
      bodyOf(superwallEvent({ transactionId: 'null' })),
      'data.transactionId is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    [
      'a refund with a placeholder as its reference',
      bodyOf(superwallRefund({ transactionId: '0' })),
      'data.transactionId is missing or not an id: "null", "0" and the like stand for a missing one',
    ],
    ['a payment without a store', bodyOf(superwallEvent({ extra: { store: null } })), 'data.store'],
    ['a refund without a reference', bodyOf(superwallRefund({ transactionId: null })), 'data.transactionId'],
  ])('%s fails with a reason that names the problem and no personal data', (_, body, reason) => {
    const result = superwall.parse(body);
    expect(result).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(reason) });
    expect(JSON.stringify(result)).not.toContain(personal);
  });
});
