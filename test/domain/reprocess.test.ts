import { describe, expect, test } from '@jest/globals';
import {
  appendsNoOtherMoney,
  appendsTheSame,
  compareReadings,
  isBetterOutcome,
  isSettled,
  ledgerChanges,
  readingOf,
} from '../../src/domain/reprocess.ts';
import type { EventReading, ReprocessChange } from '../../src/domain/reprocess.ts';
import type { Evaluation } from '../../src/domain/evaluation.ts';
import type { PaymentSnapshot } from '../../src/domain/payment-snapshot.ts';
import type { AdjustmentId, AffiliateId, BindingId, EventId } from '../../src/domain/ids.ts';
import { normalizedEvent } from '../../src/providers/shared/normalized-event.ts';
import { NOTHING } from '../support/payment-snapshots.ts';

const paid: EventReading = {
  sourceEventId: 'e-1',
  kind: 'purchase',
  environment: 'production',
  occurredAt: 1_790_000_000_000,
  productId: 'plus',
  store: 'app_store',
  paymentRef: 't-1',
  currency: 'EUR',
  amountMinor: 999,
  usdCents: 1_080,
};
const without: EventReading = {
  ...paid,
  kind: 'other',
  store: null,
  paymentRef: null,
  currency: null,
  amountMinor: null,
  usdCents: null,
};

describe('the comparison of readings', () => {
  test('equal readings have no difference', () => {
    expect(compareReadings(paid, { ...paid })).toEqual({ changes: [], mayAppend: true });
  });

  test.each([
    ['sourceEventId', 'e-2'],
    ['environment', 'sandbox'],
    ['kind', 'refund'],
    ['store', 'play_store'],
    ['paymentRef', 't-2'],
    ['currency', 'USD'],
    ['amountMinor', 998],
    ['usdCents', 1_079],
    ['amountMinor', null],
  ] as const)('a different %s is reported, and nothing may be appended', (field, value) => {
    expect(compareReadings(paid, { ...paid, [field]: value })).toEqual({
      changes: [
        {
          what: `event.${field}`,
          stored: String(paid[field]),
          today: value === null ? null : String(value),
          action: 'keep',
        },
      ],
      mayAppend: false,
    });
  });

  test('an event that was ignored is filled with the payment that it has today, where nothing else was stored', () => {
    const ignored: EventReading = { ...without, productId: null };
    const kept = (stored: EventReading, today: EventReading) =>
      compareReadings(stored, today)
        .changes.map(({ what }) => what)
        .toSorted();
    expect(kept(ignored, paid)).toEqual([]);
    expect(kept({ ...ignored, kind: 'renewal' }, paid)).toEqual(['event.kind']);
    expect(kept({ ...ignored, productId: 'basic' }, paid)).toEqual(['event.productId']);
    expect(kept({ ...ignored, currency: 'USD', amountMinor: 1 }, paid)).toEqual([
      'event.amountMinor',
      'event.currency',
    ]);
    expect(kept(ignored, { ...paid, occurredAt: 1 })).toEqual(['event.occurredAt']);
    expect(kept(ignored, { ...without, kind: 'purchase' })).toEqual(['event.kind', 'event.productId']);
    expect(kept({ ...paid, kind: 'other', productId: null }, paid)).toEqual([
      'event.kind',
      'event.productId',
    ]);
  });

  test.each([
    ['occurredAt', 1],
    ['productId', null],
  ] as const)('a different %s is reported, and facts may be appended', (field, value) => {
    const { changes, mayAppend } = compareReadings(paid, { ...paid, [field]: value });
    expect({ what: changes.map((change) => change.what), mayAppend }).toEqual({
      what: [`event.${field}`],
      mayAppend: true,
    });
  });

  // @promise reprocess-fills-kind
  test('money that was not read before is filled in, with the kind and the product of the event', () => {
    expect(compareReadings(without, paid)).toEqual({
      changes: [],
      mayAppend: true,
    });
  });

  test('an amount that was unknown when its payment was booked is reported and not filled in', () => {
    expect(compareReadings({ ...paid, amountMinor: null }, paid)).toEqual({
      changes: [{ what: 'event.amountMinor', stored: null, today: '999', action: 'keep' }],
      mayAppend: false,
    });
  });

  test('a product that only the current code reads is reported and not filled in', () => {
    for (const stored of [paid, without]) {
      expect(compareReadings({ ...stored, productId: null }, stored)).toEqual({
        changes: [{ what: 'event.productId', stored: null, today: 'plus', action: 'keep' }],
        mayAppend: true,
      });
    }
  });

  test('nothing is appended to an event without money that the current code reads as another event', () => {
    expect(compareReadings(without, { ...paid, sourceEventId: 'e-2' }).mayAppend).toBe(false);
    expect(compareReadings(without, { ...paid, environment: 'sandbox' }).mayAppend).toBe(false);
  });

  test('US dollars are compared only if both readings state them', () => {
    expect(compareReadings(paid, { ...paid, usdCents: null })).toEqual({ changes: [], mayAppend: true });
    expect(compareReadings({ ...paid, usdCents: null }, paid)).toEqual({ changes: [], mayAppend: true });
  });

  test('the reading of a refund contains the reference of its payment', () => {
    const event = normalizedEvent({
      sourceEventId: 'e-1',
      kind: 'refund',
      occurredAt: 5,
      adjustment: {
        kind: 'refund',
        store: 'stripe',
        ref: 're_1',
        paymentRef: 'in_1',
        state: 'applied',
        rank: 1,
        currency: 'EUR',
        amountMinor: 300,
        usdCents: null,
      },
    });
    expect(readingOf(event, 'sandbox')).toEqual({
      sourceEventId: 'e-1',
      kind: 'refund',
      environment: 'sandbox',
      occurredAt: 5,
      productId: null,
      store: 'stripe',
      paymentRef: 'in_1',
      currency: 'EUR',
      amountMinor: 300,
      usdCents: null,
    });
  });
});

describe('the current reading', () => {
  const event = { sourceEventId: 'e-1', occurredAt: 5, productId: 'plus' } as const;

  test('the reading of a payment contains its amount and the dollars of the provider', () => {
    const money = {
      store: 'app_store',
      ref: 't-1',
      currency: 'EUR',
      amountMinor: 999,
      usdCents: 1_080,
    } as const;
    expect(readingOf(normalizedEvent({ ...event, kind: 'purchase', payment: money }), 'production')).toEqual({
      ...paid,
      occurredAt: 5,
    });
  });

  test('the reading of an event without money contains no amount', () => {
    expect(readingOf(normalizedEvent({ ...event, kind: 'other' }), 'production')).toEqual({
      ...without,
      occurredAt: 5,
    });
  });
});

const payment = { evaluatedAt: 1, likelyCause: null, baseCents: 1_000 } as PaymentSnapshot;
const nothing: Evaluation = { ...NOTHING, customerUserId: 'u', baseCents: 1_000 };
const binding = { affiliateId: 'aff_1' as AffiliateId, bindingId: 'bnd_1' as BindingId } as NonNullable<
  Evaluation['binding']
>;
const earning: NonNullable<Evaluation['earning']> = {
  binding,
  customerUserId: 'u',
  rateBps: 2_000,
  rateSource: 'app',
  amountCents: 200,
  dueAt: 9,
  rule: null,
  policy: null,
};
const reversal = {
  adjustmentId: 'adj_1' as AdjustmentId,
  eventId: 'evt_1' as EventId,
  occurredAt: 1,
  amountCents: -50,
  baseCents: -250,
};

const correction = { amountCents: -150, baseCents: -750 };

describe('the changes of an evaluation', () => {
  test('a payment is settled when its evaluation changes nothing', () => {
    expect(isSettled(payment, nothing)).toBe(true);
  });

  test.each<[string, PaymentSnapshot, Evaluation]>([
    ['it was never evaluated', { ...payment, evaluatedAt: null }, nothing],
    ['an affiliate is found', payment, { ...nothing, binding }],
    ['it earns', payment, { ...nothing, earning }],
    ['a reversal is missing', payment, { ...nothing, reversals: [reversal] }],
    [
      'revenue is missing',
      payment,
      { ...nothing, revenue: [{ adjustmentId: null, amountCents: 1, occurredAt: 1 }] },
    ],
    [
      'a refund is not booked',
      payment,
      {
        ...nothing,
        booked: [
          {
            adjustmentId: 'adj_1' as AdjustmentId,
            eventId: 'evt_1' as EventId,
            bookedMinor: 1,
            convertedCents: null,
          },
        ],
      },
    ],
    ['an earning is to be taken back', payment, { ...nothing, correction }],
    ['a refund waits for a rate', payment, { ...nothing, unconverted: ['evt_1' as EventId] }],
    ['the cause differs', payment, { ...nothing, likelyCause: 'rate_zero' }],
    ['its base was missing', { ...payment, baseCents: null }, nothing],
  ])('a payment is not settled when %s', (_title, stored, evaluation) => {
    expect(isSettled(stored, evaluation)).toBe(false);
  });

  test('each change contains its signed cents, and an earning its affiliate', () => {
    const evaluation: Evaluation = {
      ...nothing,
      likelyCause: 'affiliate_paused',
      earning,
      reversals: [reversal],
      correction,
      revenue: [
        { adjustmentId: null, amountCents: 1_000, occurredAt: 1 },
        { adjustmentId: 'adj_1' as AdjustmentId, amountCents: -250, occurredAt: 2 },
      ],
    };
    const append = { stored: null, action: 'append' };
    expect(ledgerChanges(evaluation, 'processing')).toEqual([
      { ...append, what: 'commission', today: 'earning at 2000 bps', amountCents: 200, affiliateId: 'aff_1' },
      { ...append, what: 'commission', today: 'reversal', amountCents: -50 },
      { ...append, what: 'commission', today: 'correction', amountCents: -150 },
      { ...append, what: 'revenue', today: 'payment', amountCents: 1_000 },
      { ...append, what: 'revenue', today: 'refund or dispute', amountCents: -250 },
      { ...append, what: 'cause', stored: 'processing', today: 'affiliate_paused' },
    ]);
    expect(ledgerChanges(nothing, null)).toEqual([]);
  });
});

describe('a second plan for a delivery', () => {
  const forNobody: ReprocessChange = {
    what: 'commission',
    stored: null,
    today: 'earning at 2000 bps',
    action: 'append',
    amountCents: 200,
  };
  const earns: ReprocessChange = { ...forNobody, affiliateId: 'aff_1' };
  const cause: ReprocessChange = {
    what: 'cause',
    stored: 'user_never_identified',
    today: null,
    action: 'append',
  };
  const kept: ReprocessChange = { what: 'event.kind', stored: 'other', today: 'purchase', action: 'keep' };
  const shown = [earns, cause, kept];

  test('appends what was confirmed although a difference was added, has changed or is gone that stays as it is', () => {
    for (const differences of [[], [kept], [{ ...kept, today: 'renewal' }], [kept, kept]])
      expect(appendsTheSame(shown, [...differences, earns, cause])).toBe(true);
  });

  test.each<[string, readonly ReprocessChange[]]>([
    ['a cent more', [{ ...earns, amountCents: 201 }, cause]],
    ['the same amount for another creator', [{ ...earns, affiliateId: 'aff_2' }, cause]],
    ['the same amount for nobody', [forNobody, cause]],
    ['the same amount at another rate', [{ ...earns, today: 'earning at 1000 bps' }, cause]],
    ['the same amount as revenue', [{ ...earns, what: 'revenue' }, cause]],
    ['a cause in place of another one', [earns, { ...cause, stored: 'processing' }]],
    ['one change more', [earns, cause, { ...earns, today: 'reversal', amountCents: -50 }]],
    ['one change less', [earns]],
    ['nothing', [kept]],
  ])('that appends %s does not append what was confirmed', (_, today) => {
    expect(appendsTheSame(shown, today)).toBe(false);
    expect(appendsTheSame(today, shown)).toBe(false);
  });
});

describe('what is left of a plan that was shown', () => {
  const commission: ReprocessChange = {
    what: 'commission',
    stored: null,
    today: 'earning at 1000 bps',
    action: 'append',
    amountCents: 200,
    affiliateId: 'aff_1',
  };
  const revenue: ReprocessChange = { ...commission, what: 'revenue', today: 'payment', amountCents: 2_000 };
  const outcome: ReprocessChange = {
    what: 'outcome',
    stored: 'failed',
    today: 'processed',
    action: 'append',
  };

  test.each<[string, readonly ReprocessChange[], boolean]>([
    ['all of it', [commission, revenue, outcome], true],
    ['a part of it, with another outcome', [revenue, { ...outcome, stored: 'ignored' }], true],
    ['nothing', [], true],
    ['a difference that stays as it is', [{ ...commission, amountCents: 500, action: 'keep' }], true],
    ['a cent more', [{ ...commission, amountCents: 201 }], false],
    ['the money of another creator', [{ ...commission, affiliateId: 'aff_2' }], false],
    ['the same money twice', [commission, commission], false],
  ])('may still be appended if it is %s: %j', (_, left, may) => {
    expect(appendsNoOtherMoney(left, [commission, revenue, outcome])).toBe(may);
  });
});

test('a reprocess run raises the outcome of a delivery and never lowers it', () => {
  const order = ['failed', 'ignored', 'duplicate', 'processed'] as const;
  for (const [low, stored] of order.entries()) {
    for (const [high, today] of order.entries()) expect(isBetterOutcome(stored, today)).toBe(high > low);
  }
});
