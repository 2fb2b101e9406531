import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { addMonths } from '../../src/domain/calendar.ts';
import { PPM } from '../../src/domain/events.ts';
import type { PaymentComponent } from '../../src/domain/events.ts';
import type { EventId, PolicyVersionId } from '../../src/domain/ids.ts';
import {
  BASE_KINDS,
  chooseComponents,
  chooseProduct,
  earnByPolicy,
  earnByRule,
  policyThatCounts,
} from '../../src/domain/policy.ts';
import type { PolicyCondition, PolicySale, PolicyTerms, StatedComponents } from '../../src/domain/policy.ts';
import { policySentences } from '../../src/domain/policy-sentences.ts';

const FIRST = Date.UTC(2026, 0, 15);

const sale: PolicySale = {
  grossCents: 1_000,
  paidMinor: 1_000,
  components: { tax: { minor: 190 }, storeFee: { minor: 150 } },
  store: 'app_store',
  productId: 'pro_monthly',
  paymentNumber: 1,
  firstPaidAt: FIRST,
  occurredAt: FIRST,
};

const component: fc.Arbitrary<PaymentComponent | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({ minor: fc.integer({ min: 0, max: 2_000 }) }),
  fc.record({ ppm: fc.integer({ min: 0, max: PPM }) }),
);

describe('the base of a policy', () => {
  // @promise policy-base
  test.each([
    ['gross', 1_000, false],
    ['net_of_tax', 810, false],
    ['proceeds', 660, false],
  ] as const)('%s of 10.00 with 1.90 tax and 1.50 fee is %i cents', (base, baseCents, baseEstimated) => {
    const terms: PolicyTerms = { base, rules: [{ percentBps: 5_000 }] };
    expect(earnByPolicy(terms, sale)).toMatchObject({
      baseCents,
      baseEstimated,
      amountCents: baseCents / 2,
      rateBps: 5_000,
    });
  });

  test.each([
    ['app_store', {}, 700],
    ['mac_app_store', {}, 700],
    ['play_store', {}, 700],
    ['stripe', {}, 1_000],
    ['app_store', { feeBps: { stripe: 300 } }, 700],
    ['app_store', { feeBps: { app_store: 0 } }, 1_000],
    ['app_store', { taxBps: 1_000 }, 630],
    ['app_store', { feeBps: { app_store: 1_500 } }, 850],
    ['stripe', { taxBps: 2_000, feeBps: { stripe: 300 } }, 776],
  ])(
    'without components, the proceeds of %s with %j are %i cents, and estimated',
    (store, assumed, baseCents) => {
      const terms: PolicyTerms = { base: 'proceeds', assumed, rules: [{ percentBps: 10_000 }] };
      expect(earnByPolicy(terms, { ...sale, store, components: {} })).toMatchObject({
        baseCents,
        baseEstimated: true,
      });
    },
  );

  test.each<[string, PolicySale['components'], number, boolean]>([
    ['both are stated', { tax: { minor: 190 }, storeFee: { minor: 150 } }, 660, false],
    ['the tax is stated, and the fee is assumed', { tax: { minor: 190 } }, 567, true],
    ['the fee is stated, and the tax is assumed', { storeFee: { minor: 150 } }, 750, true],
    [
      'the tax is stated, and the fee is estimated',
      { tax: { minor: 190 }, storeFee: { ppm: 150_000 } },
      660,
      true,
    ],
    [
      'the tax is estimated, and the fee is stated',
      { tax: { ppm: 190_000 }, storeFee: { minor: 150 } },
      660,
      true,
    ],
    ['the tax is stated as zero', { tax: { minor: 0 }, storeFee: { minor: 150 } }, 850, false],
    ['they take all', { tax: { minor: 500 }, storeFee: { minor: 500 } }, 0, false],
    ['they take a cent less', { tax: { minor: 500 }, storeFee: { minor: 499 } }, 1, false],
    ['they take more than was paid', { tax: { minor: 1_001 } }, 0, true],
  ])(
    'of 10.00 where %s, %j, the proceeds are %i cents, and estimated: %s',
    (_, components, baseCents, baseEstimated) => {
      const terms: PolicyTerms = {
        base: 'proceeds',
        assumed: { taxBps: 1_000 },
        rules: [{ percentBps: 10_000 }],
      };
      expect(earnByPolicy(terms, { ...sale, components })).toMatchObject({
        baseCents,
        baseEstimated,
        amountCents: baseCents,
      });
    },
  );

  test.each<[PolicyTerms['base'], boolean]>([
    ['gross', false],
    ['net_of_tax', false],
    ['proceeds', true],
  ])('the base %s is estimated with a stated tax and no known fee: %s', (base, baseEstimated) => {
    const components = { tax: { minor: 190 } };
    expect(earnByPolicy({ base, rules: [{ percentBps: 1 }] }, { ...sale, components })).toMatchObject({
      baseEstimated,
    });
  });

  test('a base in US cents is the share of what was kept in the currency of the payment, rounded once', () => {
    const terms: PolicyTerms = { base: 'net_of_tax', rules: [{ percentBps: 2_500 }] };
    const euros = { ...sale, grossCents: 1_080, paidMinor: 999, components: { tax: { minor: 160 } } };
    // 10.80 dollars × 8.39 / 9.99 = 9.0703…, and a quarter of 9.07.
    expect(earnByPolicy(terms, euros)).toMatchObject({ baseCents: 907, amountCents: 227 });
  });

  // @promise policy-base
  test('a base is never below zero nor above the gross, and a wider base is never smaller', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 1, max: 1_000_000 }),
        component,
        component,
        (grossCents, paidMinor, tax, storeFee) => {
          const components = { ...(tax && { tax }), ...(storeFee && { storeFee }) };
          const [gross = 0, net = 0, proceeds = 0] = BASE_KINDS.map(
            (base) =>
              earnByPolicy(
                { base, rules: [{ percentBps: 1 }] },
                { ...sale, grossCents, paidMinor, components },
              )?.baseCents,
          );
          expect(gross).toBe(grossCents);
          expect(net).toBeLessThanOrEqual(gross);
          expect(proceeds).toBeLessThanOrEqual(net);
          expect(proceeds).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });
});

describe('the rules of a policy', () => {
  const ruleFor = (when: PolicyCondition, over: Partial<PolicySale> = {}) =>
    earnByPolicy({ base: 'gross', rules: [{ when, percentBps: 1 }, { percentBps: 2 }] }, { ...sale, ...over })
      ?.ruleIndex;

  test.each<[PolicyCondition, Partial<PolicySale>, number]>([
    [{}, {}, 0],
    [{ productIds: ['pro_monthly', 'other'] }, {}, 0],
    [{ productIds: ['other'] }, {}, 1],
    [{ productIds: ['other'] }, { productId: null }, 1],
    [{ stores: ['stripe'] }, {}, 1],
    [{ stores: ['stripe', 'app_store'] }, {}, 0],
    [{ paymentNumber: { to: 3 } }, { paymentNumber: 3 }, 0],
    [{ paymentNumber: { to: 3 } }, { paymentNumber: 4 }, 1],
    [{ paymentNumber: { from: 2 } }, {}, 1],
    [{ paymentNumber: { from: 2 } }, { paymentNumber: 2 }, 0],
    [{ paymentNumber: { from: 2 } }, { paymentNumber: 40 }, 0],
    [{ paymentNumber: { from: 2, to: 2 } }, { paymentNumber: 2 }, 0],
    [{ paymentNumber: { from: 2, to: 2 } }, { paymentNumber: 3 }, 1],
    [{ monthsSinceFirst: { below: 12 } }, { occurredAt: addMonths(FIRST, 12) - 3 * 86_400_000 }, 0],
    [{ monthsSinceFirst: { below: 12 } }, { occurredAt: addMonths(FIRST, 12) - 2 * 86_400_000 }, 1],
    [{ monthsSinceFirst: { from: 1, below: 2 } }, { occurredAt: addMonths(FIRST, 1) }, 0],
    [{ monthsSinceFirst: { from: 1, below: 2 } }, { occurredAt: addMonths(FIRST, 2) }, 1],
    [{ monthsSinceFirst: { from: 1 } }, {}, 1],
    [{ monthsSinceFirst: { from: 1 } }, { occurredAt: addMonths(FIRST, 30) }, 0],
    [{ productIds: ['pro_monthly'], stores: ['stripe'] }, {}, 1],
    [{ productIds: ['other'], stores: ['app_store'] }, {}, 1],
    [{ stores: ['app_store'], monthsSinceFirst: { from: 1 } }, {}, 1],
    [{ stores: ['app_store'], paymentNumber: { from: 2 } }, {}, 1],
  ])('a rule for %j, with %j: rule %i applies', (when, over, ruleIndex) => {
    expect(ruleFor(when, over)).toBe(ruleIndex);
  });

  test('without a rule that applies nothing is earned', () => {
    expect(
      earnByPolicy({ base: 'gross', rules: [{ when: { stores: ['stripe'] }, percentBps: 1 }] }, sale),
    ).toBeNull();
  });

  // @promise policy-flat
  test('a fixed amount is at most the base, unless its rule says otherwise', () => {
    const earned = (flatCents: number, aboveBase?: true) =>
      earnByPolicy({ base: 'proceeds', rules: [{ flatCents, ...(aboveBase && { aboveBase }) }] }, sale);
    expect(earned(500)).toMatchObject({ amountCents: 500, rateBps: 0, flatCents: 500, baseCents: 660 });
    expect(earned(5_000)).toMatchObject({ amountCents: 660, flatCents: 5_000 });
    expect(earned(5_000, true)).toMatchObject({ amountCents: 5_000, flatCents: 5_000 });
  });

  test('one rule of a policy can be applied although an earlier one would apply, and not one that the policy lacks', () => {
    const terms: PolicyTerms = {
      base: 'gross',
      rules: [{ percentBps: 5_000 }, { when: { stores: ['stripe'] }, percentBps: 2_000 }],
    };
    expect(earnByRule(terms, 1, sale)).toMatchObject({ ruleIndex: 1, rateBps: 2_000, amountCents: 200 });
    expect(() => earnByRule(terms, 2, sale)).toThrow('the policy has no rule 2');
  });

  test('an earning has the inputs that it can be computed from again', () => {
    const earning = earnByPolicy(
      { base: 'proceeds', rules: [{ percentBps: 1 }] },
      { ...sale, components: { tax: { ppm: 190_000 } } },
    );
    expect(earning?.inputs).toEqual({
      grossCents: 1_000,
      paidMinor: 1_000,
      tax: { minor: 190, origin: 'estimated' },
      storeFee: { minor: 243, origin: 'assumed' },
      store: 'app_store',
      productId: 'pro_monthly',
      paymentNumber: 1,
      firstPaidAt: FIRST,
      monthsSinceFirst: 0,
    });
  });
});

describe('what several events state about one payment', () => {
  const event = (n: number, over: Partial<StatedComponents>): StatedComponents => ({
    eventId: `evt_${n}` as EventId,
    source: 'adapty',
    isSameAmount: true,
    ...over,
  });

  const stated = fc.record({
    eventId: fc.integer({ min: 1, max: 9 }).map((n) => `evt_${n}` as EventId),
    source: fc.constantFrom('revenuecat', 'adapty', 'stripe'),
    isSameAmount: fc.boolean(),
    tax: fc.record({ minor: fc.nat(100) }),
  });

  // @promise policy-base
  test('the components do not depend on the order of the events', () => {
    fc.assert(
      fc.property(
        fc
          .uniqueArray(stated, { selector: ({ eventId }) => eventId })
          .chain((events) =>
            fc.tuple(fc.constant(events), fc.shuffledSubarray(events, { minLength: events.length })),
          ),
        ([events, shuffled]) => {
          expect(chooseComponents(shuffled, 'stripe')).toEqual(chooseComponents(events, 'stripe'));
        },
      ),
    );
  });

  test('the tax and the store fee are chosen apart, each of the events that state it', () => {
    const ofFee = event(1, { storeFee: { ppm: 150_000 } });
    const ofBoth = event(2, { tax: { minor: 190 }, storeFee: { ppm: 300_000 } });
    const nothing = event(0, {});
    expect(chooseComponents([nothing, ofBoth, ofFee], 'adapty')).toEqual({
      tax: { minor: 190 },
      storeFee: { ppm: 150_000 },
    });
    expect(chooseComponents([nothing], 'adapty')).toStrictEqual({});
    // A share is a part of any amount.
    const otherAmount = { ...ofFee, isSameAmount: false };
    expect(chooseComponents([otherAmount], 'adapty')).toStrictEqual({ storeFee: { ppm: 150_000 } });
  });

  test('the product is that of the own provider, then that of the event with the lowest id, in whatever order they came', () => {
    const [nothing, foreign, own, later] = [
      event(0, { source: 'revenuecat' }),
      event(1, { productId: 'price_1' }),
      event(2, { source: 'revenuecat', productId: 'pro_monthly' }),
      event(3, { source: 'revenuecat', productId: 'pro_yearly' }),
    ];
    for (const [events, productId] of [
      [[nothing, foreign, own, later], 'pro_monthly'],
      [[nothing, foreign], 'price_1'],
      [[event(4, { productId: 'price_4' }), foreign], 'price_1'],
      [[nothing], null],
      [[], null],
    ] as const) {
      expect(chooseProduct(events, 'revenuecat')).toBe(productId);
      expect(chooseProduct(events.toReversed(), 'revenuecat')).toBe(productId);
    }
  });

  test('stated goes before estimated, then the own provider, then the lower id; another amount states no parts', () => {
    const estimated = event(1, { source: 'revenuecat', tax: { ppm: 1 } });
    const foreign = event(2, { tax: { minor: 2 } });
    const own = event(3, { source: 'revenuecat', tax: { minor: 3 } });
    const other = event(0, { source: 'revenuecat', isSameAmount: false, tax: { minor: 4 } });
    for (const [events, components] of [
      [[estimated], { tax: { ppm: 1 } }],
      [[estimated, foreign], { tax: { minor: 2 } }],
      [[estimated, foreign, own, other], { tax: { minor: 3 } }],
      [[other, event(9, { tax: { minor: 9 } }), foreign], { tax: { minor: 2 } }],
      [[other], {}],
    ] as const) {
      expect(chooseComponents(events, 'revenuecat')).toStrictEqual(components);
      expect(chooseComponents(events.toReversed(), 'revenuecat')).toStrictEqual(components);
    }
  });
});

// @promise policy-of-the-narrowest-scope
test('only the policy of the creator goes before the own rate', () => {
  const policy = (scope: 'affiliate' | 'group' | 'app') => ({ scope, versionId: 'plv_1' as PolicyVersionId });
  for (const scope of ['affiliate', 'group', 'app'] as const) {
    expect(policyThatCounts(policy(scope), null)).toEqual(policy(scope));
    expect(policyThatCounts(policy(scope), 1_000)).toEqual(scope === 'affiliate' ? policy(scope) : null);
  }
  expect(policyThatCounts(null, null)).toBeNull();
});

describe('the sentences of a policy', () => {
  test.each<[PolicyTerms, string[]]>([
    [{ base: 'gross', rules: [{ percentBps: 2_000 }] }, ['20 % of the price for each payment.']],
    [
      {
        base: 'proceeds',
        rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 }, { percentBps: 2_050 }],
      },
      ['50 % of the proceeds in the first 12 months of a customer.', 'Otherwise 20.5 % of the proceeds.'],
    ],
    [
      {
        base: 'net_of_tax',
        rules: [
          { when: { productIds: ['lifetime'], paymentNumber: { to: 1 } }, flatCents: 1_500 },
          {
            when: { stores: ['app_store', 'stripe'], monthsSinceFirst: { from: 1 } },
            flatCents: 100,
            aboveBase: true,
          },
          { percentBps: 0 },
        ],
      },
      [
        '$15.00 (at most the price without tax) for the first payment of a customer for the product lifetime.',
        '$1.00 after the first month of a customer from the App Store or Stripe.',
        'Otherwise nothing.',
      ],
    ],
    [
      {
        base: 'gross',
        rules: [
          { when: { paymentNumber: { from: 2, to: 5 } }, percentBps: 100 },
          { when: { paymentNumber: { from: 3, to: 3 } }, percentBps: 100 },
          { when: { paymentNumber: { from: 6 } }, percentBps: 100 },
          { when: { paymentNumber: { to: 3 } }, percentBps: 100 },
          { when: { monthsSinceFirst: { from: 2, below: 3 } }, percentBps: 100 },
          { when: { monthsSinceFirst: { from: 3, below: 6 } }, percentBps: 100 },
          { when: { monthsSinceFirst: { below: 1 } }, percentBps: 100 },
        ],
      },
      [
        '1 % of the price for the payments 2 to 5 of a customer.',
        '1 % of the price for the payment number 3 of a customer.',
        '1 % of the price from the payment number 6 of a customer on.',
        '1 % of the price for the first 3 payments of a customer.',
        '1 % of the price in month 3 of a customer.',
        '1 % of the price in the months 4 to 6 of a customer.',
        '1 % of the price in the first month of a customer.',
        'Otherwise nothing.',
      ],
    ],
    [
      {
        base: 'gross',
        rules: [
          { when: { productIds: ['monthly', 'yearly', 'lifetime'] }, percentBps: 0 },
          { when: { stores: ['paddle'], paymentNumber: {} }, percentBps: 100 },
          { when: { stores: ['amazon', 'constructor'], monthsSinceFirst: {} }, percentBps: 100 },
        ],
      },
      [
        'Nothing for the product monthly, yearly or lifetime.',
        '1 % of the price from Paddle.',
        '1 % of the price from amazon or constructor.',
        'Otherwise nothing.',
      ],
    ],
    // A condition that is always met is none.
    [
      {
        base: 'gross',
        rules: [
          { when: { stores: ['stripe'] }, percentBps: 100 },
          { when: { paymentNumber: { from: 1 }, monthsSinceFirst: { from: 0 } }, percentBps: 200 },
          { when: { stores: ['paddle'] }, percentBps: 300 },
        ],
      },
      ['1 % of the price from Stripe.', 'Otherwise 2 % of the price.'],
    ],
    [{ base: 'gross', rules: [{ percentBps: 0 }, { percentBps: 5_000 }] }, ['Nothing for each payment.']],
  ])('%j', (terms, sentences) => {
    expect(policySentences(terms)).toEqual(sentences);
  });
});
