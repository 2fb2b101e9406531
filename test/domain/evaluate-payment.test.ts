import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import { mayAttribute, payersOf } from '../../src/domain/payers.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type {
  AdjustmentSnapshot,
  BindingSnapshot,
  PaymentSnapshot,
} from '../../src/domain/payment-snapshot.ts';
import type {
  AffiliateId,
  AttributionId,
  BindingId,
  CodeId,
  CommissionId,
  PaymentId,
} from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import {
  adjustment,
  after,
  binding,
  candidate,
  NOTHING,
  NOW,
  payment,
} from '../support/payment-snapshots.ts';

describe('the users who may be the payer', () => {
  const keyUser = candidate('of-key', { via: 'key' });
  const companyUser = candidate('of-customer', { via: 'customer_key' });
  const named = candidate('named');

  // @promise keys-beside-users
  test.each([
    ['those whom an event names, beside users of keys', [keyUser, named, companyUser], [named]],
    ['those of a subscription, beside users of a customer', [companyUser, keyUser], [keyUser]],
    ['those of a customer, if nothing else leads to a user', [companyUser], [companyUser]],
    ['nobody, if nothing leads to a user', [], []],
  ])('are %s', (_title, candidates, payers) => {
    expect(payersOf({ ...payment, candidates })).toEqual(payers);
  });

  // @promise keys-beside-users
  test('a bound user of a key does not earn beside an unknown user whom an event names', () => {
    const bound = candidate('of-key', { via: 'customer_key', identified: true, binding });
    expect(evaluatePayment({ ...payment, candidates: [bound, named] })).toMatchObject({
      earning: null,
      customerUserId: 'named',
      likelyCause: 'user_never_identified',
    });
  });

  test.each([
    [
      'the user belongs to nobody and later that the key is of a creator',
      { nobody: 'user', later: 'key' },
      ['key'],
    ],
    [
      'the key is of a creator and later that the user belongs to nobody',
      { nobody: 'user', later: 'user' },
      ['user'],
    ],
    [
      'the user is of a creator and later that the key belongs to nobody',
      { nobody: 'key', later: 'key' },
      ['key'],
    ],
    [
      'the key belongs to nobody and later that the user is of a creator',
      { nobody: 'key', later: 'user' },
      ['user'],
    ],
  ] as const)('are those of the last word where a founder said that %s', (_, { nobody, later }, payers) => {
    const of = (name: 'user' | 'key') => {
      const at = NOW - (later === name ? 2 : 3) * DAY_MS;
      return candidate(name, {
        via: name === 'user' ? 'event' : 'bound_key',
        ...(nobody === name
          ? { givenToNobodyAt: at }
          : { binding: { ...binding, matchMethod: 'manual', touchedAt: at, saidAt: at } }),
      });
    };
    const found = payersOf({ ...payment, candidates: [of('user'), of('key')] });
    expect(found.map(({ customerUserId }) => customerUserId)).toEqual(payers);
  });

  test.each(['user', 'key'] as const)(
    'are those of the last word of a founder, about the %s, also where it reaches further back than an earlier one',
    (last) => {
      const of = (name: 'user' | 'key') => {
        const touchedAt = payment.occurredAt - (last === name ? 2 : 1) * DAY_MS;
        const saidAt = NOW - (last === name ? 1 : 2) * HOUR_MS;
        return candidate(name, {
          via: name === 'user' ? 'event' : 'bound_key',
          binding: {
            ...binding,
            matchMethod: 'manual',
            attributionId: `att_${name}` as AttributionId,
            touchedAt,
            saidAt,
          },
        });
      };
      const found = payersOf({ ...payment, candidates: [of('user'), of('key')] });
      expect(found.map(({ customerUserId }) => customerUserId)).toEqual([last]);
    },
  );

  test('are not those of a key, nor who signed in with it, where a founder gave another user to somebody later', () => {
    const ofKey = {
      ...binding,
      attributionId: 'att_key' as AttributionId,
      matchMethod: 'purchase_code',
    } as const;
    const at = NOW - 2 * DAY_MS;
    const given = { ...binding, attributionId: 'att_given' as AttributionId, matchMethod: 'manual' } as const;
    const found = payersOf({
      ...payment,
      candidates: [
        candidate('signed-in', { via: 'event', binding: ofKey }),
        candidate('given', { via: 'event', binding: { ...given, touchedAt: at, saidAt: at } }),
        candidate('key', { via: 'bound_key', binding: ofKey }),
      ],
    });
    expect(found.map(({ customerUserId }) => customerUserId)).toEqual(['given']);
  });
});

describe('a payment that the provider dates eight hours after its report', () => {
  const reportedAt = NOW - 10 * HOUR_MS;
  const statedAt = reportedAt + 8 * HOUR_MS;
  const ahead = { ...payment, receivedAt: reportedAt, occurredAt: statedAt } as const;
  const touched = (touchedAt: number, matchMethod: BindingSnapshot['matchMethod']) => ({
    ...binding,
    matchMethod,
    touchedAt,
  });

  test.each([
    ['a minute after the report', true, reportedAt + MINUTE_MS],
    ['after that', false, reportedAt + MINUTE_MS + 1],
    ['at the time that is stated', false, statedAt],
  ])('earns through a touch %s: %s', (_, earns, touchedAt) => {
    const waiting = { ...ahead, likelyCause: 'user_not_attributed' } as const;
    expect(mayAttribute(waiting, touched(touchedAt, 'claim_token'))).toBe(earns);
  });

  test.each([
    ['a minute after the report', true, reportedAt + MINUTE_MS],
    ['after that', false, reportedAt + MINUTE_MS + 1],
    // A founder gives this payment and those after it.
    ['at the time that is stated', true, statedAt],
    ['after that', false, statedAt + 1],
  ])('earns for whom a founder gave it to from an instant on, %s: %s', (_, earns, touchedAt) => {
    expect(mayAttribute(ahead, touched(touchedAt, 'manual'))).toBe(earns);
  });
});

describe('a first evaluation', () => {
  // @promise effective-rate
  test('an attributed payment earns the app rate, due after the hold period', () => {
    const { earning, likelyCause, revenue } = evaluatePayment(payment);
    expect(likelyCause).toBeNull();
    expect(earning).toMatchObject({
      amountCents: 200,
      rateBps: 2_000,
      dueAt: payment.occurredAt + 30 * DAY_MS,
    });
    expect(revenue).toEqual([{ adjustmentId: null, amountCents: 1_000, occurredAt: payment.occurredAt }]);
  });

  // @promise effective-rate, zero-writes-no-row, cause-rate-zero
  test("an affiliate's own rate takes precedence over the app's, even if it is zero", () => {
    const withRate = (affiliateRateBps: number) => ({
      ...payment,
      candidates: [candidate('user-1', { identified: true, binding: { ...binding, affiliateRateBps } })],
    });
    expect(evaluatePayment(withRate(3_333)).earning?.amountCents).toBe(333);
    expect(evaluatePayment(withRate(0))).toMatchObject({ earning: null, likelyCause: 'rate_zero' });
  });

  // @promise inactive-affiliate-earns-nothing, paused-earns-nothing, cause-inactive-affiliate
  test.each([
    ['a paused affiliate', { affiliateStatus: 'paused' }, 'affiliate_paused'],
    ['a removed affiliate', { affiliateStatus: 'removed' }, 'affiliate_removed'],
  ] as const)('%s earns nothing, but the revenue stays attributed', (_title, over, likelyCause) => {
    const candidates = [candidate('user-1', { identified: true, binding: { ...binding, ...over } })];
    const evaluation = evaluatePayment({ ...payment, candidates });
    expect(evaluation).toMatchObject({ earning: null, likelyCause });
    expect(evaluation.revenue).toHaveLength(1);
  });

  // @promise cause-identity-rules
  test.each([
    ['no id at all', { candidates: [] }, 'missing_user_id'],
    [
      'only ids that the provider generated',
      { candidates: [], onlyAnonymousUser: true },
      'anonymous_user_id',
    ],
    [
      'an id that no device reported',
      {
        candidates: [candidate('u')],
      },
      'user_never_identified',
    ],
    [
      'an id that a device reported with another spelling',
      {
        candidates: [candidate('u'), candidate('V', { nearlyIdentified: true })],
      },
      'user_id_mismatch',
    ],
    [
      'a device without attribution',
      {
        candidates: [candidate('u', { identified: true })],
      },
      'user_not_attributed',
    ],
    [
      'a user whom only a test key reported',
      {
        candidates: [candidate('u'), candidate('v', { identifiedInTest: true })],
      },
      'test_key_only',
    ],
    ['a currency without a rate', { currency: 'EUR', usdCents: null }, 'missing_exchange_rate'],
  ])('a payment with %s earns nothing and gets the cause', (_title, over, likelyCause) => {
    expect(evaluatePayment({ ...payment, ...over })).toMatchObject({
      earning: null,
      revenue: [],
      likelyCause,
    });
  });

  test('the first user id with an attribution decides', () => {
    const candidates = [
      candidate('other', { identified: true }),
      candidate('user-1', { identified: true, binding }),
    ];
    expect(evaluatePayment({ ...payment, candidates }).earning?.customerUserId).toBe('user-1');
  });

  // @promise live-binding-any-date
  test('a payment from before the touch earns at its first evaluation, whatever its date', () => {
    const occurredAt = binding.touchedAt - 300 * DAY_MS;
    expect(evaluatePayment({ ...payment, occurredAt }).earning).not.toBeNull();
  });

  // @promise revenue-production-only
  test('a sandbox payment never earns and is no revenue', () => {
    expect(evaluatePayment({ ...payment, environment: 'sandbox' })).toMatchObject({
      earning: null,
      revenue: [],
      likelyCause: null,
    });
  });
});

describe('a later evaluation', () => {
  const evaluated = { ...payment, evaluatedAt: NOW - 1, likelyCause: 'user_never_identified' as const };

  // @promise heal-reach
  test.each([
    ['exactly at the time of the touch', binding.touchedAt, true],
    ['one millisecond before the touch', binding.touchedAt - 1, false],
  ])('a later evaluation heals a payment only from the touch on: %s', (_title, occurredAt, heals) => {
    expect(evaluatePayment({ ...evaluated, occurredAt }).earning !== null).toBe(heals);
  });

  test.each([
    ['a millisecond before its delivery', -1, true],
    ['in the same millisecond', 0, false],
  ])(
    'a payment from before the touch earns only if its user was bound before its delivery: %s',
    (_title, later, heals) => {
      const bound = { ...binding, boundAt: evaluated.receivedAt + later };
      const candidates = [candidate('user-1', { identified: true, binding: bound })];
      const evaluation = evaluatePayment({ ...evaluated, candidates, occurredAt: binding.touchedAt - 1 });
      expect(evaluation.earning !== null).toBe(heals);
    },
  );

  test('of two bound users the one whose binding may attribute the payment decides, in any position', () => {
    const late = { ...binding, bindingId: 'bnd_2' as BindingId, touchedAt: evaluated.occurredAt + 1 };
    const candidates = [
      candidate('late', { identified: true, binding: late }),
      candidate('early', { identified: true, binding }),
    ];
    expect(evaluatePayment({ ...evaluated, candidates }).earning?.customerUserId).toBe('early');
  });

  test('a payment that was attributed under another reference earns nothing', () => {
    const evaluation = evaluatePayment({ ...payment, countedElsewhere: true });
    expect(evaluation).toMatchObject({ earning: null, revenue: [], likelyCause: null });
  });

  // @promise heal-reach, cause-outside-window
  test.each([
    ['as old as the window', 30 * DAY_MS, true],
    ['one millisecond older', 30 * DAY_MS + 1, false],
  ])('a later evaluation heals a payment only within the window: %s', (_title, age, heals) => {
    const old = { ...binding, touchedAt: NOW - 60 * DAY_MS };
    const candidates = [candidate('user-1', { identified: true, binding: old })];
    const evaluation = evaluatePayment({ ...evaluated, candidates, occurredAt: NOW - age });
    expect(evaluation.earning !== null).toBe(heals);
    if (!heals) expect(evaluation.likelyCause).toBe('outside_attribution_window');
  });

  // @promise status-fixed, heal-identity-causes
  test.each(['affiliate_paused', 'affiliate_removed', 'rate_zero'] as const)(
    'the cause %s was a decision and stays',
    (likelyCause) => {
      const decided = {
        ...payment,
        evaluatedAt: NOW - 1,
        likelyCause,
        bindingId: binding.bindingId,
        baseCents: 1_000,
        revenueCents: 1_000,
      };
      expect(evaluatePayment(decided)).toMatchObject({ earning: null, likelyCause, revenue: [] });
    },
  );

  test('a payment earns once its exchange rate arrives, which is stored with its source', () => {
    const waiting = {
      ...payment,
      currency: 'EUR',
      usdCents: null,
      evaluatedAt: NOW - 1,
      likelyCause: 'missing_exchange_rate' as const,
    };
    const referenceRate = { units: '1', worthUsd: '1.0845', source: 'ecb 2026-09-20' };
    const evaluation = evaluatePayment({ ...waiting, referenceRate });
    expect(evaluation).toMatchObject({ baseCents: 1_085, fx: referenceRate });
    expect(evaluation.earning?.amountCents).toBe(217);
  });

  test('a frozen base is not converted again', () => {
    const referenceRate = { units: '1', worthUsd: '2', source: 'operator 2026-09-20' };
    const frozen = { ...payment, currency: 'EUR', usdCents: null, baseCents: 1_085, referenceRate };
    expect(evaluatePayment(frozen)).toMatchObject({ baseCents: 1_085, fx: null });
  });

  describe('the largest amount of a payment', () => {
    const limits = { ...DEFAULT_LIMITS, maxPaymentCents: 100_000 };
    const referenceRate = { units: '1', worthUsd: '2', source: 'operator' };

    // @promise payment-ceiling
    test.each([
      ['in USD', { amountMinor: 100_001, usdCents: 100_001 }],
      ['in another currency with its USD value', { currency: 'EUR', amountMinor: 5, usdCents: 100_001 }],
      [
        'in another currency after conversion',
        { currency: 'EUR', amountMinor: 50_001, usdCents: null, referenceRate },
      ],
    ])('a payment above it %s has an unknown price and earns nothing', (_, over) => {
      expect(evaluatePayment({ ...payment, ...over }, limits)).toMatchObject({
        likelyCause: 'price_unknown',
        baseCents: null,
        earning: null,
        revenue: [],
      });
    });

    // @promise payment-ceiling
    test('a payment of exactly this amount earns, and so does a larger one once the limit is raised', () => {
      const exact = { ...payment, amountMinor: 100_000, usdCents: 100_000 };
      expect(evaluatePayment(exact, limits).earning?.amountCents).toBe(20_000);
      const larger = { ...payment, amountMinor: 100_001, usdCents: 100_001 };
      const unknown = after(larger, evaluatePayment(larger, limits));
      expect(
        evaluatePayment(unknown, { ...DEFAULT_LIMITS, maxPaymentCents: 200_000 }).earning?.amountCents,
      ).toBe(20_000);
    });

    test('a base that is already stored stays, whatever the limit is later', () => {
      const earned = after(payment, evaluatePayment(payment));
      const refund = adjustment(1, { amountMinor: 1000, usdCents: 1000 });
      const { reversals } = evaluatePayment(
        { ...earned, adjustments: [refund] },
        { ...DEFAULT_LIMITS, maxPaymentCents: 1 },
      );
      expect(reversals.map((r) => r.amountCents)).toEqual([-200]);
    });

    test('it is a million dollars by default', () => {
      const most = { ...payment, amountMinor: 100_000_000, usdCents: 100_000_000 };
      expect(evaluatePayment(most).earning?.amountCents).toBe(20_000_000);
      const more = { ...payment, amountMinor: 100_000_001, usdCents: 100_000_001 };
      expect(evaluatePayment(more).likelyCause).toBe('price_unknown');
    });
  });

  test('an amount above the safe integers in cents earns nothing and does not wait', () => {
    const referenceRate = { units: '1', worthUsd: '1.0845', source: 'ecb 2026-09-20' };
    const huge = { ...payment, currency: 'EUR', usdCents: null, amountMinor: Number.MAX_SAFE_INTEGER };
    expect(evaluatePayment({ ...huge, referenceRate })).toMatchObject({
      earning: null,
      likelyCause: 'price_unknown',
    });
  });
});

describe('refunds and disputes', () => {
  const earned = after(payment, evaluatePayment(payment));

  test('a partial refund reverses its share, with the refund as its event', () => {
    const { reversals, revenue } = evaluatePayment({ ...earned, adjustments: [adjustment(1)] });
    expect(reversals).toEqual([
      expect.objectContaining({ amountCents: -60, baseCents: -300, eventId: 'evt_1' }),
    ]);
    expect(revenue).toEqual([expect.objectContaining({ amountCents: -300, adjustmentId: 'adj_1' })]);
  });

  test('a refund that arrived before its payment is booked with the payment', () => {
    const { earning, reversals } = evaluatePayment({ ...payment, adjustments: [adjustment(1)] });
    expect(earning?.amountCents).toBe(200);
    expect(reversals.map((r) => r.amountCents)).toEqual([-60]);
  });

  // @promise reversal-cumulative
  test('refunds above the payment never reverse more than the earning', () => {
    const adjustments = [1, 2, 3, 4].map((n) => adjustment(n, { amountMinor: 400 }));
    const { reversals } = evaluatePayment({ ...earned, adjustments });
    expect(reversals.map((r) => r.amountCents)).toEqual([-80, -80, -40]);
  });

  // @promise refund-undone
  test('a refund that is undone appends the opposite row', () => {
    const refunded = after(
      { ...earned, adjustments: [adjustment(1)] },
      evaluatePayment({ ...earned, adjustments: [adjustment(1)] }),
    );
    const undone = {
      ...refunded,
      adjustments: [{ ...refunded.adjustments[0]!, state: 'reversed' as const }],
    };
    expect(evaluatePayment(undone).reversals.map((r) => r.amountCents)).toEqual([60]);
  });

  test('a refund reversal that names only the payment undoes earlier refunds and not later ones', () => {
    const adjustments = [
      adjustment(1),
      adjustment(2, { state: 'reversed', reversesAll: true }),
      adjustment(3, { amountMinor: 100 }),
    ];
    const { reversals } = evaluatePayment({ ...earned, adjustments });
    expect(reversals.map((r) => r.amountCents)).toEqual([-20]);
  });

  // @promise refunds-and-disputes
  test('a won chargeback restores its own amount and no refunds', () => {
    const adjustments = [
      adjustment(1, { amountMinor: 100 }),
      adjustment(2, { kind: 'chargeback', amountMinor: 900 }),
    ];
    const disputed = after({ ...earned, adjustments }, evaluatePayment({ ...earned, adjustments }));
    expect(disputed.reversedCents).toBe(200);
    const won = adjustment(3, { kind: 'chargeback', state: 'reversed', reversesAll: true });
    const { reversals } = evaluatePayment({ ...disputed, adjustments: [...disputed.adjustments, won] });
    expect(reversals.map((r) => r.amountCents)).toEqual([180]);
  });

  // @promise refund-in-usd
  test('a refund in USD of a converted payment takes back its share of the base', () => {
    const referenceRate = { units: '0.9', worthUsd: '1', source: 'operator' };
    const paid = { ...payment, currency: 'EUR', amountMinor: 900, usdCents: null, referenceRate };
    const half = adjustment(1, { currency: 'USD', amountMinor: 500, usdCents: 500 });
    const { earning, reversals, revenue, booked } = evaluatePayment({ ...paid, adjustments: [half] });
    expect(earning?.amountCents).toBe(200);
    expect(reversals.map((r) => r.amountCents)).toEqual([-100]);
    expect(revenue.map((r) => r.amountCents)).toEqual([1000, -500]);
    expect(booked).toMatchObject([{ adjustmentId: half.adjustmentId, bookedMinor: 450 }]);
  });

  test('a refund in USD counts with its amount where its USD value is not stated', () => {
    const paid = { ...payment, currency: 'EUR', amountMinor: 900, usdCents: 1000 };
    const half = adjustment(1, { currency: 'USD', amountMinor: 500, usdCents: null });
    const { reversals } = evaluatePayment({ ...paid, adjustments: [half] });
    expect(reversals.map((r) => r.amountCents)).toEqual([-100]);
  });

  // @promise paddle-chargeback-warning
  test('a chargeback warning and its chargeback together reverse at most the commission', () => {
    const adjustments = [
      adjustment(1, { kind: 'chargeback_warning', amountMinor: 1000 }),
      adjustment(2, { kind: 'chargeback', amountMinor: 1000 }),
    ];
    const warned = after({ ...earned, adjustments }, evaluatePayment({ ...earned, adjustments }));
    expect(warned.reversedCents).toBe(200);
    const withdrawn = adjustment(3, { kind: 'chargeback_warning', state: 'reversed', reversesAll: true });
    const rest = [...warned.adjustments, withdrawn];
    expect(evaluatePayment({ ...warned, adjustments: rest }).reversals).toEqual([]);
    const won = adjustment(4, { kind: 'chargeback', state: 'reversed', reversesAll: true });
    const { reversals } = evaluatePayment({ ...warned, adjustments: [...rest, won] });
    expect(reversals.reduce((sum, r) => sum + r.amountCents, 0)).toBe(200);
  });

  // @promise evaluation-idempotent, reversal-cumulative
  test('facts in any order and with any repetition lead to the same ledger', () => {
    const facts = fc.array(
      fc.record({
        amountMinor: fc.integer({ min: 1, max: 700 }),
        state: fc.constantFrom('applied' as const, 'reversed' as const),
        offset: fc.integer({ min: 0, max: 1_000 }),
      }),
      { minLength: 1, maxLength: 6 },
    );
    const rate = fc.integer({ min: 1, max: 10_000 });
    const amount = fc.integer({ min: 1, max: 2_000_000 });
    fc.assert(
      fc.property(
        facts,
        rate,
        amount,
        fc.infiniteStream(fc.nat(5)),
        (list, commissionRateBps, amountMinor, order) => {
          const start = {
            ...payment,
            amountMinor,
            usdCents: amountMinor,
            app: { ...payment.app, commissionRateBps },
          };
          const all = list.map((f, n) =>
            adjustment(n, {
              amountMinor: f.amountMinor,
              usdCents: f.amountMinor,
              state: f.state,
              occurredAt: NOW + f.offset,
            }),
          );
          let state: PaymentSnapshot = start;
          const known = new Set<number>();
          for (let step = 0; step < 12; step += 1) {
            const next = order.next().value ?? 0;
            if (next < all.length) known.add(next);
            const adjustments = [...known].map(
              (n) => state.adjustments.find((a) => a.adjustmentId === all[n]!.adjustmentId) ?? all[n]!,
            );
            const seen = { ...state, adjustments };
            state = after(seen, evaluatePayment(seen));
            expect(evaluatePayment(state)).toMatchObject({
              earning: null,
              reversals: [],
              revenue: [],
              booked: [],
            });
            const earnedCents = state.earning?.amountCents ?? 0;
            expect(state.reversedCents).toBeGreaterThanOrEqual(0);
            expect(state.reversedCents).toBeLessThanOrEqual(earnedCents);
            const refunded = Math.min(
              amountMinor,
              adjustments.reduce((sum, a) => sum + (a.state === 'applied' ? a.amountMinor : 0), 0),
            );
            const exact =
              (2n * BigInt(earnedCents) * BigInt(refunded) + BigInt(amountMinor)) /
              (2n * BigInt(amountMinor));
            expect(state.reversedCents).toBe(Number(exact));
          }
        },
      ),
    );
  });
});

describe('the result of an evaluation', () => {
  test('a payment that earns gets exactly one earning and one revenue entry', () => {
    const earning = {
      binding,
      customerUserId: 'user-1',
      rateBps: 2_000,
      rateSource: 'app' as const,
      amountCents: 200,
      dueAt: payment.occurredAt + 30 * DAY_MS,
      rule: null,
      policy: null,
    };
    expect(evaluatePayment(payment)).toEqual({
      ...NOTHING,
      customerUserId: 'user-1',
      baseCents: 1_000,
      binding,
      earning,
      revenue: [{ adjustmentId: null, amountCents: 1_000, occurredAt: payment.occurredAt }],
    });
  });

  test('a payment without an affiliate gets only its cause and its user', () => {
    const adjustments = [adjustment(1)];
    const candidates = [candidate('stranger')];
    expect(evaluatePayment({ ...payment, candidates, adjustments })).toEqual({
      ...NOTHING,
      likelyCause: 'user_never_identified',
      customerUserId: 'stranger',
    });
  });

  test('a sandbox payment, and one that is counted under another reference, get nothing', () => {
    const adjustments = [adjustment(1)];
    expect(evaluatePayment({ ...payment, adjustments, environment: 'sandbox' })).toEqual(NOTHING);
    expect(evaluatePayment({ ...payment, adjustments, countedElsewhere: true })).toEqual(NOTHING);
  });

  test('an earning states the source of its rate', () => {
    const own = { ...binding, affiliateRateBps: 2_000 };
    const candidates = [candidate('user-1', { identified: true, binding: own })];
    expect(evaluatePayment({ ...payment, candidates }).earning?.rateSource).toBe('affiliate');
    expect(evaluatePayment(payment).earning?.rateSource).toBe('app');
  });

  test('a payment of less than half a cent gets neither a commission nor revenue', () => {
    const referenceRate = { units: '16936.15', worthUsd: '1.0558', source: 'ecb 2026-09-20' };
    const tiny = { ...payment, currency: 'IDR', amountMinor: 1, usdCents: null, referenceRate };
    expect(evaluatePayment(tiny)).toMatchObject({
      likelyCause: 'rate_zero',
      baseCents: 0,
      earning: null,
      revenue: [],
    });
  });
});

describe('the base of a commission', () => {
  const referenceRate = { units: '1', worthUsd: '2', source: 'operator 2026-09-20' };

  test("the provider's USD amount takes precedence over a reference rate", () => {
    const euros = { ...payment, currency: 'EUR', amountMinor: 900, usdCents: 1_000, referenceRate };
    expect(evaluatePayment(euros)).toMatchObject({ baseCents: 1_000, fx: null });
  });

  test('an amount in USD needs no rate, even without a separate USD amount', () => {
    expect(evaluatePayment({ ...payment, usdCents: null, referenceRate })).toMatchObject({
      baseCents: 1_000,
      fx: null,
    });
  });
});

describe('the user of a payment that earns nothing', () => {
  const evaluated = { ...payment, evaluatedAt: NOW - 1, likelyCause: 'user_never_identified' as const };
  const late = { ...binding, touchedAt: payment.occurredAt + 1 };

  test.each([
    [
      'a user with a late attribution',
      [candidate('known', { identified: true }), candidate('late', { identified: true, binding: late })],
      'late',
      'outside_attribution_window',
    ],
    [
      'otherwise an identified one',
      [candidate('near', { nearlyIdentified: true }), candidate('known', { identified: true })],
      'known',
      'user_not_attributed',
    ],
    [
      'otherwise a nearly identified one',
      [candidate('first'), candidate('near', { nearlyIdentified: true })],
      'near',
      'user_id_mismatch',
    ],
    ['otherwise the first', [candidate('first'), candidate('second')], 'first', 'user_never_identified'],
  ] as const)(
    'the user of a payment that earns nothing is %s',
    (_title, candidates, customerUserId, likelyCause) => {
      expect(evaluatePayment({ ...evaluated, candidates })).toEqual({
        ...NOTHING,
        customerUserId,
        likelyCause,
      });
    },
  );
});

describe('a placeholder that an earlier version stored as a user', () => {
  const guest = (over: Partial<PaymentSnapshot['candidates'][number]> = {}) =>
    candidate('guest', { identified: true, binding, ...over });
  const rival = { ...binding, bindingId: 'bnd_2' as BindingId, affiliateId: 'aff_2' as AffiliateId };
  const other = { ...rival, attributionId: 'att_2' as AttributionId };

  // @promise placeholders-are-anonymous
  test('is nobody: a payment that leads to nobody else is of an anonymous user', () => {
    for (const via of ['event', 'key', 'customer_key'] as const) {
      expect(evaluatePayment({ ...payment, candidates: [guest({ via })] })).toEqual({
        ...NOTHING,
        likelyCause: 'anonymous_user_id',
      });
    }
  });

  // @promise placeholders-are-anonymous
  test('leaves a user free for a code, no matter who has the placeholder and what a founder said of it', () => {
    const owner = { codeId: 'cod_1' as CodeId, binding: { ...other, matchMethod: 'purchase_code' as const } };
    for (const stored of [guest(), guest({ binding: null, givenToNobodyAt: NOW })]) {
      const candidates = [stored, candidate('user-1')];
      const { boundBy, binding: bound } = evaluatePayment({ ...payment, candidates, codeOwners: [owner] });
      expect([boundBy?.codeId, bound?.affiliateId]).toEqual(['cod_1', 'aff_2']);
    }
  });

  // @promise placeholders-are-anonymous
  test('does not decide by what a founder said of it: the key that a code bound goes on to earn', () => {
    const key = candidate('sub_1', { via: 'bound_key', binding: { ...other, matchMethod: 'purchase_code' } });
    const byHand = { ...binding, matchMethod: 'manual' as const, saidAt: NOW };
    const candidates = [guest({ binding: byHand }), key];
    expect(evaluatePayment({ ...payment, candidates }).binding?.affiliateId).toBe('aff_2');
  });

  // @promise placeholders-are-anonymous
  test('earns nothing once the rate is known, although an earlier version decided on it', () => {
    const waiting = { ...payment, decidedBindingId: binding.bindingId };
    expect(evaluatePayment({ ...waiting, candidates: [guest()] })).toMatchObject({
      binding: null,
      likelyCause: 'anonymous_user_id',
    });
    const candidates = [guest(), candidate('user-1', { identified: true, binding: rival })];
    expect(evaluatePayment({ ...waiting, candidates }).binding).toBe(rival);
  });
});

describe('a later evaluation of a payment from before the touch', () => {
  const early = { ...payment, evaluatedAt: NOW - 1, occurredAt: binding.touchedAt - 1 };

  test.each([
    'missing_user_id',
    'anonymous_user_id',
    'user_never_identified',
    'user_id_mismatch',
    'user_not_attributed',
    'outside_attribution_window',
  ] as const)('a payment with the cause %s and from before the touch is not healed', (likelyCause) => {
    expect(evaluatePayment({ ...early, likelyCause })).toMatchObject({
      earning: null,
      likelyCause: 'outside_attribution_window',
    });
  });

  test('that waits for its amount earns for whom it was decided then, not for who came since', () => {
    const unpriced = { ...payment, currency: 'NOK', usdCents: null };
    const first = evaluatePayment(unpriced);
    expect(first).toMatchObject({
      likelyCause: 'missing_exchange_rate',
      decidedBindingId: 'bnd_1',
      binding: null,
    });
    const rival = { ...binding, bindingId: 'bnd_2' as BindingId, affiliateId: 'aff_2' as AffiliateId };
    const named = { ...payment.candidates[0]!, customerUserId: 'user-2', binding: rival };
    const known = { ...payment.candidates[0]!, via: 'key' as const };
    const priced = { ...after(unpriced, first), candidates: [named, known], usdCents: 1_000 };
    expect(evaluatePayment(priced)).toMatchObject({
      binding,
      decidedBindingId: null,
      earning: { amountCents: 200 },
    });
    // A founder gave the user to nobody.
    const alone = { ...priced, candidates: [named, { ...known, binding: null, givenToNobodyAt: NOW }] };
    expect(evaluatePayment(alone).binding).toBe(rival);
  });

  test.each(['missing_exchange_rate', 'price_unknown', 'processing'] as const)(
    'a payment with the cause %s and from before the touch may still earn',
    (likelyCause) => {
      expect(evaluatePayment({ ...early, likelyCause }).earning?.amountCents).toBe(200);
    },
  );
});

describe('a refund in another currency than its payment', () => {
  const euros = { ...payment, currency: 'EUR', amountMinor: 900, usdCents: 1_000 };
  const earned = after(euros, evaluatePayment(euros));
  const booking = (over: Partial<AdjustmentSnapshot>, of: PaymentSnapshot = earned) =>
    evaluatePayment({ ...of, adjustments: [adjustment(1, over)] });

  test('a refund in another currency reverses its share of the USD amount', () => {
    const { booked, reversals } = booking({ currency: 'USD', amountMinor: 250, usdCents: 250 });
    expect(booked).toMatchObject([{ adjustmentId: 'adj_1', bookedMinor: 225 }]);
    expect(reversals.map((r) => [r.amountCents, r.baseCents])).toEqual([[-50, -250]]);
  });

  test('a refund in the same currency is compared in that currency', () => {
    const { booked } = booking({ currency: 'EUR', amountMinor: 450, usdCents: 700 });
    expect(booked).toMatchObject([{ adjustmentId: 'adj_1', bookedMinor: 450 }]);
  });

  // @promise refund-converted
  test('a dispute in another currency without a USD amount is converted at the reference rate, once', () => {
    const pounds = { currency: 'GBP', amountMinor: 200, usdCents: null };
    const rate = { units: '4', worthUsd: '5', source: 'ecb 2026-11-20' };
    const evaluation = booking({ ...pounds, referenceRate: rate });
    expect(evaluation).toMatchObject({
      booked: [{ adjustmentId: 'adj_1', bookedMinor: 225, convertedCents: 250 }],
      unconverted: [],
      converted: ['evt_1'],
    });
    expect(evaluation.reversals.map((r) => [r.amountCents, r.baseCents])).toEqual([[-50, -250]]);
    // A later import changes nothing that is booked: the value is stored with it.
    const other = { ...rate, worthUsd: '6' };
    const stored = { ...pounds, usdCents: 250, referenceRate: other, bookedMinor: 225 };
    expect(booking(stored)).toMatchObject({ booked: [], unconverted: [] });
    // Another amount has no stored value.
    expect(booking({ ...stored, amountMinor: 400, usdCents: null })).toMatchObject({
      booked: [{ adjustmentId: 'adj_1', bookedMinor: 540, convertedCents: 600 }],
    });
  });

  // @promise refund-converted
  test('a refund in another currency without a USD amount and without a rate reverses nothing and waits for a rate', () => {
    const pounds = { currency: 'GBP', amountMinor: 250, usdCents: null };
    const nothing = { booked: [], reversals: [], revenue: [] };
    expect(booking(pounds)).toMatchObject({ ...nothing, unconverted: ['evt_1'] });
    expect(booking({ ...pounds, state: 'reversed' })).toMatchObject({ ...nothing, unconverted: [] });
  });

  test('a later refund in USD is compared with the stored base where the provider stated no USD value', () => {
    const { reversals } = booking({ amountMinor: 250, usdCents: 250 }, { ...earned, usdCents: null });
    expect(reversals.map((r) => r.amountCents)).toEqual([-50]);
  });
});

test('the booked part of a refund stays when its USD amount is no longer stated', () => {
  const euros = { ...payment, currency: 'EUR', amountMinor: 900, usdCents: 1_000 };
  const earned = after(euros, evaluatePayment(euros));
  const pounds = adjustment(1, { currency: 'GBP', amountMinor: 250, usdCents: null, bookedMinor: 225 });
  expect(evaluatePayment({ ...earned, adjustments: [pounds] })).toMatchObject({ booked: [], reversals: [] });
});

describe('several refunds in one evaluation', () => {
  const earned = after(payment, evaluatePayment(payment));
  const ids = (adjustments: readonly AdjustmentSnapshot[]) =>
    evaluatePayment({ ...earned, adjustments }).reversals.map((r) => r.adjustmentId);

  test('several refunds are booked in the order of their times, whatever the order of arrival', () => {
    expect(ids([adjustment(3), adjustment(1), adjustment(2)])).toEqual(['adj_1', 'adj_2', 'adj_3']);
  });

  test('refunds of the same millisecond are booked in the order of their ids', () => {
    const same = [2, 3, 1].map((n) => adjustment(n, { occurredAt: NOW }));
    expect(ids(same)).toEqual(['adj_1', 'adj_2', 'adj_3']);
    expect(ids(same.toReversed())).toEqual(['adj_1', 'adj_2', 'adj_3']);
  });

  test('refunds above the payment create no rows with an amount of zero', () => {
    const adjustments = [1, 2, 3, 4].map((n) => adjustment(n, { amountMinor: 400 }));
    const { reversals, revenue } = evaluatePayment({ ...earned, adjustments });
    expect(reversals).toEqual([
      { adjustmentId: 'adj_1', eventId: 'evt_1', occurredAt: NOW + 1, amountCents: -80, baseCents: -400 },
      { adjustmentId: 'adj_2', eventId: 'evt_2', occurredAt: NOW + 2, amountCents: -80, baseCents: -400 },
      { adjustmentId: 'adj_3', eventId: 'evt_3', occurredAt: NOW + 3, amountCents: -40, baseCents: -200 },
    ]);
    expect(revenue).toEqual([
      { adjustmentId: 'adj_1', amountCents: -400, occurredAt: NOW + 1 },
      { adjustmentId: 'adj_2', amountCents: -400, occurredAt: NOW + 2 },
      { adjustmentId: 'adj_3', amountCents: -200, occurredAt: NOW + 3 },
    ]);
  });

  test('refunds reverse an attributed payment even if another reference was attributed since', () => {
    const adjustments = [adjustment(1)];
    const { reversals } = evaluatePayment({ ...earned, adjustments, countedElsewhere: true });
    expect(reversals.map((r) => r.amountCents)).toEqual([-60]);
  });
});

describe('a refund reversal that names only the payment', () => {
  const earned = after(payment, evaluatePayment(payment));
  const undoing = (n: number, over: Partial<AdjustmentSnapshot> = {}) =>
    adjustment(n, { state: 'reversed', reversesAll: true, ...over });
  /** A payment with a booked refund, and later facts. */
  const refundedAnd = (...later: readonly AdjustmentSnapshot[]): PaymentSnapshot => {
    const refunded = { ...earned, adjustments: [adjustment(1)] };
    const booked = after(refunded, evaluatePayment(refunded));
    return { ...booked, adjustments: [...booked.adjustments, ...later] };
  };

  test('a refund reversal undoes a refund of the same millisecond', () => {
    const { reversals } = evaluatePayment(refundedAnd(undoing(2, { occurredAt: NOW + 1 })));
    expect(reversals.map((r) => r.amountCents)).toEqual([60]);
  });

  test('of two equal refund reversals the first is the event of the restoring row', () => {
    for (const later of [
      [undoing(5), undoing(3)],
      [undoing(3), undoing(5)],
    ]) {
      expect(evaluatePayment(refundedAnd(...later)).reversals).toEqual([
        { adjustmentId: 'adj_1', eventId: 'evt_3', occurredAt: NOW + 3, amountCents: 60, baseCents: 300 },
      ]);
    }
  });

  test('a refund reversal that is not in effect changes nothing', () => {
    const { reversals, booked } = evaluatePayment(refundedAnd(undoing(2, { state: 'applied' })));
    expect([reversals, booked]).toEqual([[], []]);
  });
});

describe('a payment that was attributed under two references', () => {
  const second = {
    ...payment,
    evaluatedAt: NOW - 1,
    bindingId: binding.bindingId,
    baseCents: 1_000,
    duplicateOf: { paymentId: 'pmt_1' as PaymentId, commissionId: 'com_1' as CommissionId },
    adjustments: [adjustment(1)],
  };

  /** Ledger sums: earning, reversed, corrected and revenue. Expected: the correction with its base, and the revenue. */
  test.each<
    [string, readonly (number | null)[], { amountCents: number; baseCents: number } | null, number | null]
  >([
    ['all of an untouched earning', [200, 0, 0, 1_000], { amountCents: -200, baseCents: -1_000 }, -1_000],
    ['what refunds left of an earning', [200, 60, 0, 700], { amountCents: -140, baseCents: -700 }, -700],
    ['what a correction left', [200, 60, 40, 500], { amountCents: -100, baseCents: -500 }, -500],
    ['a single cent', [200, 199, 0, 5], { amountCents: -1, baseCents: -5 }, -5],
    ['an earning whose revenue is gone', [200, 0, 0, 0], { amountCents: -200, baseCents: 0 }, null],
    ['only revenue where it was refunded completely', [200, 200, 0, 1], null, -1],
    ['only revenue where it earned nothing', [null, 0, 0, 1_000], null, -1_000],
    ['nothing where a correction took everything back', [200, 0, 200, 0], null, null],
    ['nothing where the ledger has no entry', [null, 0, 0, null], null, null],
  ])(
    'the second reference of a payment loses %s',
    (_, [earned = 0, reversed, corrected, revenueCents = null], correction, revenue) => {
      const evaluation = evaluatePayment({
        ...second,
        earning:
          earned === null
            ? null
            : { commissionId: 'com_2' as CommissionId, amountCents: earned, policyBaseCents: null },
        reversedCents: reversed ?? 0,
        correctedCents: corrected ?? 0,
        revenueCents,
        likelyCause: 'rate_zero',
      });
      const { occurredAt } = payment;
      expect(evaluation).toEqual({
        ...NOTHING,
        likelyCause: 'rate_zero',
        baseCents: 1_000,
        correction,
        revenue: revenue === null ? [] : [{ adjustmentId: null, amountCents: revenue, occurredAt }],
      });
    },
  );

  // @promise policy-base
  test.each([
    ['all of its base', 0, 0, { amountCents: -100, baseCents: -500 }],
    ['half of its base, after a refund of half', 50, 500, { amountCents: -50, baseCents: -250 }],
    ['the rest, rounded as the refund was', 33, 333, { amountCents: -67, baseCents: -333 }],
  ])(
    'the second reference of a payment that earned by a policy loses %s, wherever its refunds are booked',
    (_, reversedCents, refundedCents, correction) => {
      for (const bookedMinor of [0, refundedCents]) {
        const evaluation = evaluatePayment({
          ...second,
          earning: { commissionId: 'com_2' as CommissionId, amountCents: 100, policyBaseCents: 500 },
          adjustments: [{ ...adjustment(1), bookedMinor }],
          reversedCents,
          revenueCents: 1_000 - refundedCents,
        });
        expect(evaluation.correction).toEqual(correction);
      }
    },
  );
});
