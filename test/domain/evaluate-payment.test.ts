import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DAY_MS } from '../../src/domain/attribution.ts';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type {
  AdjustmentSnapshot,
  BindingSnapshot,
  Evaluation,
  PaymentSnapshot,
} from '../../src/domain/evaluate-payment.ts';
import type { AdjustmentId, AffiliateId, BindingId, CommissionId, EventId } from '../../src/domain/ids.ts';

const NOW = 1_790_000_000_000;

const binding: BindingSnapshot = {
  bindingId: 'bnd_1' as BindingId,
  boundAt: NOW,
  touchedAt: NOW - 10 * DAY_MS,
  matchMethod: 'claim_token',
  affiliateId: 'aff_1' as AffiliateId,
  linkId: null,
  affiliateStatus: 'active',
  affiliateRateBps: null,
};

const payment: PaymentSnapshot = {
  environment: 'production',
  currency: 'USD',
  amountMinor: 1_000,
  usdCents: 1_000,
  occurredAt: NOW - DAY_MS,
  receivedAt: NOW - 1,
  onlyAnonymousUser: false,
  evaluatedAt: null,
  likelyCause: 'processing',
  baseCents: null,
  bindingId: null,
  reversedCents: 0,
  revenueCents: null,
  earning: null,
  countedElsewhere: false,
  candidates: [{ customerUserId: 'user-1', identified: true, nearlyIdentified: false, binding }],
  adjustments: [],
  app: { commissionRateBps: 2_000, attributionWindowDays: 30, holdPeriodDays: 30 },
  referenceRate: null,
  now: NOW,
};

function adjustment(n: number, over: Partial<AdjustmentSnapshot> = {}): AdjustmentSnapshot {
  return {
    adjustmentId: `adj_${n}` as AdjustmentId,
    eventId: `evt_${n}` as EventId,
    kind: 'refund',
    state: 'applied',
    reversesAll: false,
    currency: 'USD',
    amountMinor: 300,
    usdCents: 300,
    occurredAt: NOW + n,
    bookedMinor: 0,
    ...over,
  };
}

/** The payment as it stands after an evaluation was written. */
function after(before: PaymentSnapshot, evaluation: Evaluation): PaymentSnapshot {
  const reversed = evaluation.reversals.reduce((sum, r) => sum - r.amountCents, before.reversedCents);
  const revenue = evaluation.revenue.reduce((sum, r) => sum + r.amountCents, before.revenueCents ?? 0);
  return {
    ...before,
    evaluatedAt: before.evaluatedAt ?? before.now,
    likelyCause: evaluation.likelyCause,
    baseCents: evaluation.baseCents,
    bindingId: before.bindingId ?? evaluation.binding?.bindingId ?? null,
    reversedCents: reversed,
    revenueCents: before.revenueCents === null && evaluation.revenue.length === 0 ? null : revenue,
    earning:
      before.earning ??
      (evaluation.earning === null
        ? null
        : { commissionId: 'com_1' as CommissionId, amountCents: evaluation.earning.amountCents }),
    adjustments: before.adjustments.map((a) => ({
      ...a,
      bookedMinor:
        evaluation.booked.find((b) => b.adjustmentId === a.adjustmentId)?.bookedMinor ?? a.bookedMinor,
    })),
  };
}

describe('what a first look earns', () => {
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

  test("an affiliate's own rate wins over the app's, zero included", () => {
    const withRate = (affiliateRateBps: number) => ({
      ...payment,
      candidates: [
        {
          customerUserId: 'user-1',
          identified: true,
          nearlyIdentified: false,
          binding: { ...binding, affiliateRateBps },
        },
      ],
    });
    expect(evaluatePayment(withRate(3_333)).earning?.amountCents).toBe(333);
    expect(evaluatePayment(withRate(0))).toMatchObject({ earning: null, likelyCause: 'rate_zero' });
  });

  test.each([
    ['a paused affiliate', { affiliateStatus: 'paused' }, 'affiliate_paused'],
    ['a removed affiliate', { affiliateStatus: 'removed' }, 'affiliate_removed'],
  ] as const)('%s earns nothing, but the revenue stays attributed', (_title, over, likelyCause) => {
    const candidates = [
      {
        customerUserId: 'user-1',
        identified: true,
        nearlyIdentified: false,
        binding: { ...binding, ...over },
      },
    ];
    const evaluation = evaluatePayment({ ...payment, candidates });
    expect(evaluation).toMatchObject({ earning: null, likelyCause });
    expect(evaluation.revenue).toHaveLength(1);
  });

  test.each([
    ['no id at all', { candidates: [] }, 'missing_user_id'],
    ['only ids that the provider made', { candidates: [], onlyAnonymousUser: true }, 'anonymous_user_id'],
    [
      'an id that no device told of',
      { candidates: [{ customerUserId: 'u', identified: false, nearlyIdentified: false, binding: null }] },
      'user_never_identified',
    ],
    [
      'an id that a device told of in another spelling',
      {
        candidates: [
          { customerUserId: 'u', identified: false, nearlyIdentified: false, binding: null },
          { customerUserId: 'V', identified: false, nearlyIdentified: true, binding: null },
        ],
      },
      'user_id_mismatch',
    ],
    [
      'a device without attribution',
      { candidates: [{ customerUserId: 'u', identified: true, nearlyIdentified: false, binding: null }] },
      'user_not_attributed',
    ],
    ['a currency without a rate', { currency: 'EUR', usdCents: null }, 'missing_exchange_rate'],
  ])('%s: nothing, and the cause says so', (_title, over, likelyCause) => {
    expect(evaluatePayment({ ...payment, ...over })).toMatchObject({
      earning: null,
      revenue: [],
      likelyCause,
    });
  });

  test('of several user ids the first with an attribution decides', () => {
    const candidates = [
      { customerUserId: 'other', identified: true, nearlyIdentified: false, binding: null },
      { customerUserId: 'user-1', identified: true, nearlyIdentified: false, binding },
    ];
    expect(evaluatePayment({ ...payment, candidates }).earning?.customerUserId).toBe('user-1');
  });

  test('a payment from before the touch earns at the first look, whatever its date', () => {
    const occurredAt = binding.touchedAt - 300 * DAY_MS;
    expect(evaluatePayment({ ...payment, occurredAt }).earning).not.toBeNull();
  });

  test('sandbox money never earns and is no revenue', () => {
    expect(evaluatePayment({ ...payment, environment: 'sandbox' })).toMatchObject({
      earning: null,
      revenue: [],
      likelyCause: null,
    });
  });
});

describe('what a later look heals', () => {
  const lookedAt = { ...payment, evaluatedAt: NOW - 1, likelyCause: 'user_never_identified' as const };

  test.each([
    ['exactly at the touch', binding.touchedAt, true],
    ['one millisecond before the touch', binding.touchedAt - 1, false],
  ])('a payment %s', (_title, occurredAt, heals) => {
    expect(evaluatePayment({ ...lookedAt, occurredAt }).earning !== null).toBe(heals);
  });

  test.each([
    ['a millisecond before its delivery came', -1, true],
    ['in the same millisecond', 0, false],
  ])('a payment from before the touch, whose user was bound %s', (_title, later, heals) => {
    const bound = { ...binding, boundAt: lookedAt.receivedAt + later };
    const candidates = [
      { customerUserId: 'user-1', identified: true, nearlyIdentified: false, binding: bound },
    ];
    const evaluation = evaluatePayment({ ...lookedAt, candidates, occurredAt: binding.touchedAt - 1 });
    expect(evaluation.earning !== null).toBe(heals);
  });

  test('of two bound users the one whose binding may earn decides, wherever it stands', () => {
    const late = { ...binding, bindingId: 'bnd_2' as BindingId, touchedAt: lookedAt.occurredAt + 1 };
    const candidates = [
      { customerUserId: 'late', identified: true, nearlyIdentified: false, binding: late },
      { customerUserId: 'early', identified: true, nearlyIdentified: false, binding },
    ];
    expect(evaluatePayment({ ...lookedAt, candidates }).earning?.customerUserId).toBe('early');
  });

  test('a payment that was attributed under another of its names earns nothing more', () => {
    const evaluation = evaluatePayment({ ...payment, countedElsewhere: true });
    expect(evaluation).toMatchObject({ earning: null, revenue: [], likelyCause: null });
  });

  test.each([
    ['as old as the window', 30 * DAY_MS, true],
    ['one millisecond older', 30 * DAY_MS + 1, false],
  ])('a payment %s', (_title, age, heals) => {
    const old = { ...binding, touchedAt: NOW - 60 * DAY_MS };
    const candidates = [
      { customerUserId: 'user-1', identified: true, nearlyIdentified: false, binding: old },
    ];
    const evaluation = evaluatePayment({ ...lookedAt, candidates, occurredAt: NOW - age });
    expect(evaluation.earning !== null).toBe(heals);
    if (!heals) expect(evaluation.likelyCause).toBe('outside_attribution_window');
  });

  test.each(['affiliate_paused', 'affiliate_removed', 'rate_zero'] as const)(
    '%s was a decision: it stays',
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

  test('a rate that arrives lets the payment go on, and is kept with its source', () => {
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

  test('a base that is frozen is not converted again, whatever the rate is by now', () => {
    const referenceRate = { units: '1', worthUsd: '2', source: 'operator 2026-09-20' };
    const frozen = { ...payment, currency: 'EUR', usdCents: null, baseCents: 1_085, referenceRate };
    expect(evaluatePayment(frozen)).toMatchObject({ baseCents: 1_085, fx: null });
  });

  test('an amount that no number counts exactly in cents earns nothing and waits for nothing', () => {
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

  test('a partial refund takes back its share, with the refund as its event', () => {
    const { reversals, revenue } = evaluatePayment({ ...earned, adjustments: [adjustment(1)] });
    expect(reversals).toEqual([
      expect.objectContaining({ amountCents: -60, baseCents: -300, eventId: 'evt_1' }),
    ]);
    expect(revenue).toEqual([expect.objectContaining({ amountCents: -300, adjustmentId: 'adj_1' })]);
  });

  test('a refund that came before its payment is booked with it', () => {
    const { earning, reversals } = evaluatePayment({ ...payment, adjustments: [adjustment(1)] });
    expect(earning?.amountCents).toBe(200);
    expect(reversals.map((r) => r.amountCents)).toEqual([-60]);
  });

  test('refunds beyond what was paid never take back more than was earned', () => {
    const adjustments = [1, 2, 3, 4].map((n) => adjustment(n, { amountMinor: 400 }));
    const { reversals } = evaluatePayment({ ...earned, adjustments });
    expect(reversals.map((r) => r.amountCents)).toEqual([-80, -80, -40]);
  });

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

  test('a reversal that names only the payment undoes the refunds before it, not those after', () => {
    const adjustments = [
      adjustment(1),
      adjustment(2, { state: 'reversed', reversesAll: true }),
      adjustment(3, { amountMinor: 100 }),
    ];
    const { reversals } = evaluatePayment({ ...earned, adjustments });
    expect(reversals.map((r) => r.amountCents)).toEqual([-20]);
  });

  test('a chargeback that is won back gives back what it took, and leaves the refunds taken', () => {
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

  test('in any order of arrival and with any repetition, the ledger ends at the same sum', () => {
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
