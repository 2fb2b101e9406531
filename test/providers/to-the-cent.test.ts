/** Samples of every shape that RevenueCat and Paddle send, read by the parser and evaluated to the cent. */
import { describe, expect, test } from '@jest/globals';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { BindingSnapshot, FrozenRate, PaymentSnapshot } from '../../src/domain/payment-snapshot.ts';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import type {
  AdjustmentId,
  AffiliateId,
  AttributionId,
  BindingId,
  EventId,
  LinkId,
} from '../../src/domain/ids.ts';
import { providers } from '../../src/providers/index.ts';
import {
  bodyOf,
  eventOf,
  paddleAdjustment,
  paddleTransaction,
  revenuecatEvent,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../../src/providers/shared/sample.ts';

const binding: BindingSnapshot = {
  bindingId: 'bnd_1' as BindingId,
  boundAt: 0,
  touchedAt: 0,
  matchMethod: 'code',
  affiliateId: 'aff_1' as AffiliateId,
  linkId: 'lnk_1' as LinkId,
  affiliateStatus: 'active',
  affiliateRateBps: null,
  policy: null,
  saidAt: null,
  reassignedTo: null,
  attributionId: 'att_1' as AttributionId,
};

function snapshotOf(
  paid: NormalizedEvent,
  refund: NormalizedEvent | null,
  referenceRate: FrozenRate | null,
): PaymentSnapshot {
  const { payment, occurredAt } = paid;
  if (payment === null) throw new Error('the sample is no payment');
  if (refund !== null && refund.adjustment?.paymentRef !== payment.ref) {
    throw new Error('the refund names another payment');
  }
  const adjustments =
    refund?.adjustment == null
      ? []
      : [
          {
            ...refund.adjustment,
            adjustmentId: 'adj_1' as AdjustmentId,
            eventId: 'evt_1' as EventId,
            reversesAll: false,
            isTotal: false,
            madeAt: null,
            referenceRate: null,
            statedAt: refund.occurredAt,
            occurredAt: refund.occurredAt,
            bookedMinor: 0,
          },
        ];
  return {
    ...payment,
    source: 'stripe',
    productId: null,
    components: [],
    codeOwners: [],
    keysToBind: [],
    environment: 'production',
    occurredAt,
    receivedAt: occurredAt,
    onlyAnonymousUser: false,
    evaluatedAt: null,
    likelyCause: null,
    baseCents: null,
    bindingId: null,
    decidedBindingId: null,
    reversedCents: 0,
    revenueCents: null,
    earning: null,
    countedElsewhere: false,
    correctedCents: 0,
    duplicateOf: null,
    inherited: null,
    candidates: [
      {
        customerUserId: 'user-hazel',
        via: 'event' as const,
        identified: true,
        nearlyIdentified: false,
        identifiedInTest: false,
        givenToNobodyAt: null,
        binding,
      },
    ],
    adjustments,
    app: { commissionRateBps: 2000, attributionWindowDays: 30, holdPeriodDays: 30 },
    referenceRate,
    now: occurredAt,
  };
}

function rate(units: string): FrozenRate {
  return { units, worthUsd: '1', source: 'operator' };
}

interface Sample {
  readonly paid: Payload;
  readonly refund: Payload;
  /** Units of the payment's currency for a dollar. */
  readonly units?: string;
  /** The base, the commission at 20 percent and its reversal, US cents. */
  readonly cents: readonly [number, number, number];
}

function evaluated(provider: 'revenuecat' | 'paddle', { paid, refund, units }: Sample) {
  const events = [paid, refund].map((payload) => eventOf(providers[provider].parse(bodyOf(payload))));
  const snapshot = snapshotOf(events[0]!, events[1]!, units === undefined ? null : rate(units));
  const { baseCents, earning, reversals } = evaluatePayment(snapshot);
  return [baseCents, earning?.amountCents, reversals.reduce((sum, r) => sum + r.amountCents, 0)];
}

type Store = Parameters<typeof revenuecatEvent>[0] & object;

/** A purchase in a store, and a refund of half of it in the same currency. */
function inStore(common: Store, price: Store, half: Store): Pick<Sample, 'paid' | 'refund'> {
  const same = { transactionId: 'T-1', ...common };
  return {
    paid: revenuecatEvent({ ...same, ...price }),
    refund: revenuecatEvent({ ...same, ...half, type: 'CANCELLATION' }),
  };
}

describe('RevenueCat', () => {
  test.each<[string, Sample]>([
    [
      'APP_STORE in USD',
      { ...inStore({ store: 'APP_STORE' }, { usd: 9.99 }, { usd: -5 }), cents: [999, 200, -100] },
    ],
    [
      'MAC_APP_STORE with more than two decimals',
      { ...inStore({ store: 'MAC_APP_STORE' }, { usd: 25.487 }, { usd: -25.487 }), cents: [2549, 510, -510] },
    ],
    [
      'PLAY_STORE in JPY',
      {
        ...inStore(
          { store: 'PLAY_STORE', currency: 'JPY' },
          { usd: 20.03, localPrice: 2980 },
          { usd: -10.01, localPrice: -1490 },
        ),
        cents: [2003, 401, -201],
      },
    ],
    [
      'PLAY_STORE in KWD',
      {
        ...inStore(
          { store: 'PLAY_STORE', currency: 'KWD' },
          { usd: 8.13, localPrice: 2.495 },
          { usd: -8.13, localPrice: -2.495 },
        ),
        cents: [813, 163, -163],
      },
    ],
    [
      'AMAZON with a price in EUR alone',
      {
        ...inStore(
          { store: 'AMAZON', currency: 'EUR' },
          { usd: null, localPrice: 8.99 },
          { usd: null, localPrice: -4.5 },
        ),
        units: '0.9',
        cents: [999, 200, -100],
      },
    ],
    [
      'APP_STORE with a price in ISK alone',
      {
        ...inStore(
          { store: 'APP_STORE', currency: 'ISK' },
          { usd: null, localPrice: 1500 },
          { usd: null, localPrice: -1500 },
        ),
        units: '125',
        cents: [1200, 240, -240],
      },
    ],
    [
      'AMAZON with a price in EUR and a refund in USD',
      {
        ...inStore(
          { store: 'AMAZON' },
          { usd: null, localPrice: 9, currency: 'EUR' },
          { usd: -5, localPrice: null, currency: null },
        ),
        units: '0.9',
        cents: [1000, 200, -100],
      },
    ],
    [
      'STRIPE, the second period',
      {
        ...inStore({ store: 'STRIPE', renewalNumber: 2 }, { type: 'RENEWAL', usd: 12 }, { usd: -12 }),
        cents: [1200, 240, -240],
      },
    ],
    [
      'RC_BILLING',
      { ...inStore({ store: 'RC_BILLING' }, { usd: 4.015 }, { usd: -4.015 }), cents: [402, 80, -80] },
    ],
    ['PADDLE', { ...inStore({ store: 'PADDLE' }, { usd: 8.14 }, { usd: -4.07 }), cents: [814, 163, -82] }],
  ])('a purchase in %s and its refund are worth the expected cents', (_, sample) => {
    expect(evaluated('revenuecat', sample)).toEqual(sample.cents);
  });
});

describe('Paddle', () => {
  const transactionId = 'txn_1';
  const totals = (minor: number) => ({ total: String(minor), grand_total: String(minor) });
  /** An invoice over 1,000.00 of which 400.00 were credited. */
  const credited = (currency: string, payments: readonly object[]) =>
    paddleTransaction({
      transactionId,
      currency,
      extra: {
        collection_mode: 'manual',
        details: {
          totals: totals(100_000),
          adjusted_totals: totals(60_000),
          payout_totals: { currency_code: 'USD', ...totals(110_000) },
        },
        payments,
      },
    });
  const captured = { amount: '60000', status: 'captured', captured_at: '2026-03-02T09:30:00Z' };

  test.each<[string, Sample]>([
    [
      'collected automatically in USD',
      {
        paid: paddleTransaction({ transactionId, amount: 1200, tax: 200 }),
        refund: paddleAdjustment({ transactionId, amount: 600 }),
        cents: [1200, 240, -120],
      },
    ],
    [
      'collected automatically in GBP and paid out in USD',
      {
        paid: paddleTransaction({
          transactionId,
          amount: 2150,
          currency: 'GBP',
          payout: { amount: 2871, currency: 'USD' },
        }),
        refund: paddleAdjustment({ transactionId, amount: 1075, currency: 'GBP', payout: null }),
        cents: [2871, 574, -287],
      },
    ],
    ...['CLP', 'JPY', 'KRW', 'VND'].map((currency): [string, Sample] => [
      `collected automatically in ${currency}, which has no decimals, and not paid out in USD`,
      {
        paid: paddleTransaction({ transactionId, amount: 15_000, currency, payout: null }),
        refund: paddleAdjustment({ transactionId, amount: 15_000, currency, payout: null }),
        units: '150',
        cents: [10_000, 2000, -2000],
      },
    ]),
    [
      'collected manually in USD, after a credit',
      {
        paid: credited('USD', [captured]),
        refund: paddleAdjustment({ transactionId, amount: 30_000 }),
        cents: [60_000, 12_000, -6000],
      },
    ],
    [
      'collected manually in EUR, after a credit and without listed payments',
      {
        paid: credited('EUR', []),
        refund: paddleAdjustment({ transactionId, amount: 60_000, currency: 'EUR' }),
        cents: [66_000, 13_200, -13_200],
      },
    ],
    [
      'collected automatically, with a chargeback warning',
      {
        paid: paddleTransaction({ transactionId, amount: 1200 }),
        refund: paddleAdjustment({ transactionId, amount: 1300, action: 'chargeback_warning' }),
        cents: [1200, 240, -240],
      },
    ],
  ])('a transaction %s and what it gives back are worth the expected cents', (_, sample) => {
    expect(evaluated('paddle', sample)).toEqual(sample.cents);
  });
});

test('every provider that states minor units names the page that its decimals come from', () => {
  for (const { amounts } of Object.values(providers)) {
    if (amounts === 'decimal') continue;
    expect(amounts.source.title).not.toBe('');
    expect(amounts.source.url).toMatch(/^https:\/\//);
  }
});
