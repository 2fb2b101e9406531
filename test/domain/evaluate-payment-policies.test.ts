import { describe, expect, test } from '@jest/globals';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { BindingSnapshot, PaymentSnapshot } from '../../src/domain/payment-snapshot.ts';
import type { InheritedAttribution } from '../../src/domain/payment-rows.ts';
import type { AssignedPolicy, PolicyContext, PolicyTerms } from '../../src/domain/policy.ts';
import type {
  AffiliateId,
  BindingId,
  CodeId,
  EventId,
  PaymentId,
  PolicyVersionId,
} from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { adjustment, after, binding, candidate, NOTHING, payment } from '../support/payment-snapshots.ts';

/** Half of what is left without tax for a subscription, and two dollars for anything else. */
const terms: PolicyTerms = {
  base: 'net_of_tax',
  rules: [{ when: { productIds: ['pro_monthly'] }, percentBps: 5_000 }, { flatCents: 200 }],
};
const assigned: AssignedPolicy = { scope: 'app', versionId: 'pov_1' as PolicyVersionId, terms };
const FIRST_PAID_AT = payment.occurredAt - 65 * DAY_MS;
/** The customer's third payment is next. */
const context: PolicyContext = {
  subjectId: 'bnd_1' as BindingId,
  payments: 2,
  firstPaidAt: FIRST_PAID_AT,
  hasUnnumbered: false,
  assigned,
};
const through = (policy: Partial<PolicyContext>, over: Partial<BindingSnapshot> = {}) => [
  candidate('user-1', { binding: { ...binding, policy: { ...context, ...policy }, ...over } }),
];
const underPolicy: PaymentSnapshot = {
  ...payment,
  candidates: through({}),
  components: [
    { eventId: 'evt_1' as EventId, source: 'revenuecat', isSameAmount: true, tax: { minor: 190 } },
  ],
};
const third = { subjectId: 'bnd_1', number: 3, firstPaidAt: FIRST_PAID_AT, countsAs: null };

describe('a payment in an app with policies', () => {
  // @promise policy-base, policy-explained
  test('earns by the rule that applies, with what it was computed from', () => {
    const { earning, numbered } = evaluatePayment(underPolicy);
    expect(numbered).toEqual(third);
    expect(earning).toEqual({
      binding: underPolicy.candidates[0]?.binding,
      customerUserId: 'user-1',
      dueAt: payment.occurredAt + 30 * DAY_MS,
      rateBps: 5_000,
      rateSource: 'policy',
      rule: { versionId: 'pov_1', terms, index: 0 },
      amountCents: 405,
      policy: {
        ruleIndex: 0,
        rateBps: 5_000,
        flatCents: null,
        base: 'net_of_tax',
        baseEstimated: false,
        baseCents: 810,
        amountCents: 405,
        inputs: {
          grossCents: 1_000,
          paidMinor: 1_000,
          tax: { minor: 190, origin: 'stated' },
          storeFee: null,
          store: 'app_store',
          productId: 'pro_monthly',
          paymentNumber: 3,
          firstPaidAt: FIRST_PAID_AT,
          monthsSinceFirst: 2,
        },
      },
    });
  });

  test('earns for the product that its events state, rather than the one of the event that reported it first', () => {
    const components = [{ ...underPolicy.components[0]!, productId: 'coins_100' }];
    expect(evaluatePayment({ ...underPolicy, components }).earning).toMatchObject({
      amountCents: 200,
      rule: { index: 1 },
      policy: { inputs: { productId: 'coins_100' } },
    });
  });

  // @promise policy-numbers
  test('is the first of a customer who has paid nothing before', () => {
    const candidates = through({ payments: 0, firstPaidAt: null });
    expect(evaluatePayment({ ...underPolicy, candidates })).toMatchObject({
      numbered: { subjectId: 'bnd_1', number: 1, firstPaidAt: payment.occurredAt, countsAs: null },
      earning: { policy: { inputs: { paymentNumber: 1, monthsSinceFirst: 0 } } },
    });
  });

  // @promise policy-numbers
  test.each<[string, Partial<PolicyContext>, Partial<BindingSnapshot>, string]>([
    ['its creator is paused', {}, { affiliateStatus: 'paused' }, 'affiliate_paused'],
    ['its creator was removed', {}, { affiliateStatus: 'removed' }, 'affiliate_removed'],
    [
      'no rule applies',
      {
        assigned: {
          ...assigned,
          terms: { ...terms, rules: [{ when: { stores: ['stripe'] }, flatCents: 1 }] },
        },
      },
      {},
      'no_policy_rule',
    ],
    [
      'its rule pays nothing',
      { assigned: { ...assigned, terms: { ...terms, rules: [{ percentBps: 0 }] } } },
      {},
      'rate_zero',
    ],
    [
      'its creator is paused and no rule applies',
      { assigned: { ...assigned, terms: { ...terms, rules: [] } } },
      { affiliateStatus: 'paused' },
      'affiliate_paused',
    ],
  ])(
    'has its number and is revenue of the creator although it earns nothing: %s',
    (_, policy, over, likelyCause) => {
      expect(evaluatePayment({ ...underPolicy, candidates: through(policy, over) })).toMatchObject({
        earning: null,
        likelyCause,
        numbered: third,
        revenue: [{ amountCents: 1_000 }],
      });
    },
  );

  // @promise policy-of-the-narrowest-scope
  test.each([
    ['the policy of its creator, before an own rate', 'affiliate', 1_000, 'policy', 405],
    ["its creator's own rate, before the policy of the group", 'group', 1_000, 'affiliate', 100],
    ["its creator's own rate, before the policy of the app", 'app', 1_000, 'affiliate', 100],
    ['the policy of the group, without an own rate', 'group', null, 'policy', 405],
    ['the policy of the app, without an own rate', 'app', null, 'policy', 405],
    ["the app's rate, without a policy and an own rate", null, null, 'app', 200],
  ] as const)('earns by %s', (_, scope, affiliateRateBps, rateSource, amountCents) => {
    const policy = { assigned: scope === null ? null : { ...assigned, scope } };
    const evaluation = evaluatePayment({ ...underPolicy, candidates: through(policy, { affiliateRateBps }) });
    expect(evaluation).toMatchObject({ earning: { rateSource, amountCents }, numbered: third });
    expect(evaluation.earning?.rule === null).toBe(rateSource !== 'policy');
  });

  // @promise policy-base
  test('takes back of a refund its share of what the policy counted, in whichever evaluation', () => {
    const half = adjustment(1, { amountMinor: 500, usdCents: 500 });
    const earned = after(underPolicy, evaluatePayment(underPolicy));
    for (const seen of [underPolicy, earned]) {
      expect(evaluatePayment({ ...seen, adjustments: [half] }).reversals).toMatchObject([
        { amountCents: -203, baseCents: -405 },
      ]);
    }
  });
});

describe('a row that replaces a part of its payment', () => {
  const inherited: InheritedAttribution = {
    customerUserId: 'user-7',
    binding: { ...binding, bindingId: 'bnd_7' as BindingId },
    terms: { rateBps: 1_500, rateSource: 'affiliate', rule: null },
    numbered: null,
  };
  const whole: PaymentSnapshot = { ...payment, inherited };
  const fifth = {
    subjectId: 'bnd_7' as BindingId,
    number: 5,
    firstPaidAt: FIRST_PAID_AT,
    countsAs: 'pmt_1' as PaymentId,
  };

  // @promise one-invoice-one-earning
  test('earns for the customer and the creator of the part, at its rate, and binds no key', () => {
    const keysToBind = [
      { userKey: 'sub_1', source: 'stripe', isPayment: false, users: [], bindingId: 'bnd_8' as BindingId },
    ];
    const byCode = { ...inherited, binding: { ...inherited.binding, matchMethod: 'purchase_code' as const } };
    const evaluation = evaluatePayment({ ...whole, keysToBind, inherited: byCode });
    expect(evaluation).toMatchObject({
      customerUserId: 'user-7',
      binding: { bindingId: 'bnd_7' },
      furtherKeys: [],
      numbered: null,
      earning: {
        customerUserId: 'user-7',
        amountCents: 150,
        rateBps: 1_500,
        rateSource: 'affiliate',
        rule: null,
      },
    });
  });

  test.each(['paused', 'removed'] as const)(
    'earns although its creator was %s since the part earned, and not if the part earned nothing',
    (affiliateStatus) => {
      const of = { ...inherited, binding: { ...inherited.binding, affiliateStatus } };
      expect(evaluatePayment({ ...whole, inherited: of }).earning?.amountCents).toBe(150);
      expect(evaluatePayment({ ...whole, inherited: { ...of, terms: null } })).toMatchObject({
        earning: null,
        likelyCause: `affiliate_${affiliateStatus}`,
      });
    },
  );

  test('earns by what is in effect where the part earned nothing', () => {
    const of = { ...inherited, terms: null };
    expect(evaluatePayment({ ...whole, inherited: of }).earning).toMatchObject({
      amountCents: 200,
      rateSource: 'app',
    });
    const policy = { ...of, binding: { ...of.binding, policy: context } };
    expect(evaluatePayment({ ...underPolicy, inherited: policy }).earning?.rateSource).toBe('policy');
  });

  // @promise policy-numbers
  test('has the number of the part, also where other payments came since, and its rule although that applies no more', () => {
    const rule = { versionId: 'pov_0' as PolicyVersionId, terms, index: 1 };
    const of: InheritedAttribution = {
      ...inherited,
      binding: { ...inherited.binding, policy: { ...context, payments: 9 } },
      terms: { rateBps: 0, rateSource: 'policy', rule },
      numbered: fifth,
    };
    expect(evaluatePayment({ ...underPolicy, inherited: of })).toMatchObject({
      numbered: fifth,
      earning: {
        amountCents: 200,
        rateBps: 0,
        rateSource: 'policy',
        rule,
        policy: { inputs: { paymentNumber: 5 } },
      },
    });
  });

  test('keeps the rate of the part where a policy was assigned since', () => {
    const of = { ...inherited, binding: { ...inherited.binding, policy: context } };
    expect(evaluatePayment({ ...underPolicy, inherited: of })).toMatchObject({
      numbered: third,
      earning: { amountCents: 150, rateSource: 'affiliate', rule: null },
    });
  });

  test('waits for its exchange rate, and is then that of the part', () => {
    expect(evaluatePayment({ ...whole, currency: 'NOK', usdCents: null })).toEqual({
      ...NOTHING,
      customerUserId: 'user-7',
      likelyCause: 'missing_exchange_rate',
    });
  });

  test('is not bound by a code that it came with', () => {
    const owner = { codeId: 'cod_1' as CodeId, binding: { ...binding, affiliateId: 'aff_2' as AffiliateId } };
    expect(
      evaluatePayment({ ...whole, candidates: [candidate('user-1')], codeOwners: [owner] }),
    ).toMatchObject({
      boundBy: null,
      binding: { bindingId: 'bnd_7' },
    });
  });
});
