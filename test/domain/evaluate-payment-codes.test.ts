import { describe, expect, test } from '@jest/globals';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type {
  BindingSnapshot,
  CodeOwner,
  KeyToBind,
  PaymentSnapshot,
} from '../../src/domain/payment-snapshot.ts';
import type { AffiliateId, AttributionId, BindingId, CodeId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { binding, candidate, NOTHING, NOW, payment } from '../support/payment-snapshots.ts';

/** The code ADA10 of a creator, with the binding that it would make. */
const ada: CodeOwner = {
  codeId: 'cod_ada' as CodeId,
  binding: {
    ...binding,
    bindingId: 'bnd_ada' as BindingId,
    attributionId: 'att_ada' as AttributionId,
    affiliateId: 'aff_ada' as AffiliateId,
    matchMethod: 'purchase_code',
    touchedAt: payment.occurredAt,
  },
};
const ben: CodeOwner = {
  codeId: 'cod_ben' as CodeId,
  binding: { ...ada.binding, affiliateId: 'aff_ben' as AffiliateId },
};

const keyToBind = (userKey: string, over: Partial<KeyToBind> = {}): KeyToBind => ({
  userKey,
  source: 'revenuecat',
  isPayment: false,
  users: [],
  bindingId: `bnd_${userKey}` as BindingId,
  ...over,
});
const phone = keyToBind('$RCAnonymousID:4f2a');
const subscription = keyToBind('app_store:1000000123');
const purchase = keyToBind('app_store:2000000456', { isPayment: true });

const freeUser = candidate('user-1', { identified: true });
const company = candidate('acme', { via: 'customer_key' });

/** A payment with the code of Ada and without a user. */
const withCode: PaymentSnapshot = { ...payment, candidates: [], codeOwners: [ada] };
const withKeys = { ...withCode, keysToBind: [phone, subscription] };

describe('a payment with the code of a creator', () => {
  // @promise code-binds, code-one-customer
  test('binds its user and all keys of its customer, and earns for the creator', () => {
    const candidates = [freeUser];
    const keysToBind = [phone, subscription, purchase];
    expect(evaluatePayment({ ...withCode, candidates, keysToBind })).toEqual({
      ...NOTHING,
      customerUserId: 'user-1',
      baseCents: 1_000,
      binding: ada.binding,
      boundBy: { ...ada, key: null },
      furtherKeys: [phone, subscription],
      earning: {
        binding: ada.binding,
        customerUserId: 'user-1',
        rateBps: 2_000,
        rateSource: 'app',
        amountCents: 200,
        dueAt: payment.occurredAt + 30 * DAY_MS,
        rule: null,
        policy: null,
      },
      revenue: [{ adjustmentId: null, amountCents: 1_000, occurredAt: payment.occurredAt }],
    });
  });

  // @promise code-binds-key
  test.each<[string, PaymentSnapshot['candidates']]>([
    ['leads to no user', []],
    ['leads only to the user of a customer, who may be a company with many', [company]],
  ])('binds the closest key where it %s, and the other keys with it', (_, candidates) => {
    const evaluation = evaluatePayment({
      ...withKeys,
      candidates,
      keysToBind: [phone, subscription, purchase],
    });
    expect(evaluation).toMatchObject({
      customerUserId: phone.userKey,
      boundBy: { codeId: 'cod_ada', key: phone },
      furtherKeys: [subscription],
      earning: { customerUserId: phone.userKey, amountCents: 200 },
    });
  });

  // @promise code-binds
  test('binds a user once whose id is also that of a key of the payment', () => {
    expect(evaluatePayment({ ...withKeys, candidates: [candidate(phone.userKey)] })).toMatchObject({
      customerUserId: phone.userKey,
      boundBy: { key: null },
      furtherKeys: [subscription],
    });
  });

  // @promise code-binds-key
  test('without a subscription binds itself, and no other payment of the customer', () => {
    expect(evaluatePayment({ ...withCode, keysToBind: [purchase] })).toMatchObject({
      customerUserId: purchase.userKey,
      boundBy: { key: purchase },
      furtherKeys: [],
      earning: { amountCents: 200 },
    });
  });

  test('binds nobody and earns nothing where it has neither a user nor a key', () => {
    expect(evaluatePayment(withCode)).toEqual({ ...NOTHING, likelyCause: 'missing_user_id' });
  });

  const bound = { ...binding, touchedAt: payment.occurredAt + 1 };
  // @promise code-when-unattributed
  test.each<[string, Partial<PaymentSnapshot>, BindingSnapshot | null]>([
    ['has another creator', { candidates: [candidate('user-1', { binding })] }, binding],
    [
      'has another creator whose click does not count for the payment',
      { candidates: [candidate('user-1', { binding: bound })], likelyCause: 'user_not_attributed' },
      null,
    ],
    [
      'shares the customer at the provider with somebody who has another creator',
      { candidates: [freeUser, { ...company, binding }] },
      null,
    ],
    [
      'was given to nobody by a founder',
      { candidates: [{ ...freeUser, givenToNobodyAt: NOW - DAY_MS }] },
      null,
    ],
    [
      'has a subscription that events name with a user of another creator',
      {
        candidates: [freeUser],
        keysToBind: [
          phone,
          {
            ...subscription,
            users: [{ customerUserId: 'user-2', attributionId: 'att_1' as AttributionId }],
          },
        ],
      },
      null,
    ],
  ])('changes nothing for a customer who %s', (_, over, through) => {
    const evaluation = evaluatePayment({ ...withCode, ...over });
    expect(evaluation).toMatchObject({ boundBy: null, binding: through, furtherKeys: [] });
  });

  test.each<[string, readonly CodeOwner[]]>([
    ['two creators', [ada, ben]],
    ['two creators, one of them twice', [ada, ada, ben]],
  ])(
    'and codes of %s earns for none of them and binds nobody, and its user can be given away',
    (_, codeOwners) => {
      expect(evaluatePayment({ ...withCode, candidates: [freeUser], codeOwners })).toEqual({
        ...NOTHING,
        customerUserId: 'user-1',
        likelyCause: 'ambiguous_code',
      });
      expect(evaluatePayment({ ...withKeys, codeOwners })).toEqual({
        ...NOTHING,
        likelyCause: 'ambiguous_code',
      });
    },
  );

  test('and two codes of one creator earns for that creator', () => {
    const codeOwners = [ada, { ...ada, codeId: 'cod_ada2' as CodeId }];
    expect(evaluatePayment({ ...withCode, candidates: [freeUser], codeOwners })).toMatchObject({
      boundBy: { codeId: 'cod_ada' },
      earning: { amountCents: 200 },
    });
  });

  // @promise heal-reach
  test.each([
    ['as old as the attribution window', 30 * DAY_MS, 200, null],
    ['a millisecond older', 30 * DAY_MS + 1, undefined, 'user_not_attributed'],
  ])(
    'that becomes known later earns only within the attribution window: %s',
    (_, age, earned, likelyCause) => {
      const occurredAt = NOW - age;
      const evaluated = { ...withCode, candidates: [freeUser], likelyCause: 'user_not_attributed' as const };
      const evaluation = evaluatePayment({ ...evaluated, occurredAt, evaluatedAt: occurredAt + 1 });
      expect(evaluation.earning?.amountCents).toBe(earned);
      expect(evaluation.likelyCause).toBe(likelyCause);
      expect(evaluation.boundBy?.codeId).toBe(earned === undefined ? undefined : 'cod_ada');
    },
  );

  test.each<[string, Partial<PaymentSnapshot>, string, KeyToBind | null, readonly KeyToBind[]]>([
    ['its user', { candidates: [freeUser] }, 'user-1', null, [phone, subscription]],
    ['its key', {}, phone.userKey, phone, [subscription]],
  ])(
    'binds %s at once although its exchange rate is not known yet, and earns later',
    (_, over, user, key, others) => {
      const unpriced = { ...withKeys, ...over, currency: 'NOK', usdCents: null };
      expect(evaluatePayment(unpriced)).toEqual({
        ...NOTHING,
        customerUserId: user,
        likelyCause: 'missing_exchange_rate',
        decidedBindingId: 'bnd_ada',
        boundBy: { ...ada, key },
        furtherKeys: others,
      });
    },
  );
});

describe('a code of a payment without a user', () => {
  const justNow = { ...withKeys, occurredAt: NOW - MINUTE_MS, receivedAt: NOW - MINUTE_MS + 1 };

  // @promise code-waits-for-user
  test.each<[string, Partial<PaymentSnapshot>, string | null, string]>([
    ['names nobody yet', {}, null, 'missing_user_id'],
    ['names only ids of an SDK yet', { onlyAnonymousUser: true }, null, 'anonymous_user_id'],
    ['leads only to a customer yet', { candidates: [company] }, 'acme', 'user_never_identified'],
  ])('waits for the user of a payment that %s', (_, over, customerUserId, likelyCause) => {
    expect(evaluatePayment({ ...justNow, ...over })).toEqual({
      ...NOTHING,
      customerUserId,
      likelyCause,
      waitsForUser: true,
    });
  });

  // @promise code-waits-for-user
  test.each<[string, Partial<PaymentSnapshot>, boolean]>([
    ['received less than a minute ago', { receivedAt: NOW - MINUTE_MS + 1 }, true],
    ['received a minute ago', { receivedAt: NOW - MINUTE_MS }, false],
    ['made less than a day ago', { occurredAt: NOW - DAY_MS + 1 }, true],
    ['made a day ago, and reported just now', { occurredAt: NOW - DAY_MS }, false],
  ])('waits only for a new payment: %s', (_, over, waits) => {
    const { waitsForUser, earning } = evaluatePayment({ ...justNow, ...over });
    expect(waitsForUser).toBe(waits);
    expect(earning?.amountCents).toBe(waits ? undefined : 200);
  });

  test('waits as long as the operator says', () => {
    const limits = { ...DEFAULT_LIMITS, keyGraceMs: 10 };
    expect(evaluatePayment({ ...justNow, receivedAt: NOW - 9 }, limits).waitsForUser).toBe(true);
    expect(evaluatePayment({ ...justNow, receivedAt: NOW - 10 }, limits).waitsForUser).toBe(false);
  });

  test('does not wait where the user is known', () => {
    expect(evaluatePayment({ ...justNow, candidates: [freeUser] })).toMatchObject({
      waitsForUser: false,
      earning: { customerUserId: 'user-1' },
    });
  });
});

describe('a later payment of a customer whom a code has bound', () => {
  const signedIn = candidate('user-1', { binding: ada.binding });
  const named = (attributionId: string) => ({
    customerUserId: 'user-1',
    attributionId: attributionId as AttributionId,
  });
  const renewal = { ...payment, candidates: [signedIn] };

  // @promise code-restored, code-key-of-others
  test('binds its new keys, but no payment, and no key that belongs to somebody else as well', () => {
    const ours = { ...subscription, users: [named('att_ada'), named('att_ada')] };
    const keysToBind = [
      phone,
      ours,
      purchase,
      keyToBind('of-another-creator', { users: [named('att_1')] }),
      keyToBind('of-both', { users: [named('att_ada'), named('att_1')] }),
    ];
    expect(evaluatePayment({ ...renewal, keysToBind })).toMatchObject({
      furtherKeys: [phone, ours],
      boundBy: null,
      earning: { amountCents: 200 },
    });
  });

  test.each(['claim_token', 'code', 'manual'] as const)(
    'binds no key where the customer belongs to a creator by %s',
    (matchMethod) => {
      const candidates = [candidate('user-1', { binding: { ...binding, matchMethod } })];
      expect(evaluatePayment({ ...renewal, candidates, keysToBind: [phone] }).furtherKeys).toEqual([]);
    },
  );

  // @promise code-key-first
  test('earns for its creator under a bound subscription, whatever user of another creator an event names', () => {
    const key = candidate('app_store:1000000123', { via: 'bound_key', binding: ada.binding });
    const candidates = [candidate('user-2', { identified: true, binding }), key];
    expect(evaluatePayment({ ...payment, candidates })).toMatchObject({
      binding: ada.binding,
      customerUserId: 'app_store:1000000123',
      earning: { amountCents: 200 },
    });
  });

  test('and from before the code earns nothing, and says why', () => {
    const late = { ...ada.binding, touchedAt: payment.occurredAt + 1 };
    const candidates = [candidate('app_store:1000000123', { via: 'bound_key', binding: late })];
    expect(evaluatePayment({ ...payment, candidates })).toEqual({
      ...NOTHING,
      likelyCause: 'outside_attribution_window',
    });
  });

  test('that waited for its exchange rate earns by the code that it came with, also once that is gone', () => {
    const early = { ...ada.binding, touchedAt: payment.occurredAt + 1 };
    const waited = {
      ...payment,
      candidates: [candidate('user-1', { binding: early })],
      evaluatedAt: NOW - 1,
      likelyCause: 'missing_exchange_rate' as const,
    };
    const decidedBindingId = early.bindingId;
    expect(evaluatePayment({ ...waited, decidedBindingId }).earning?.amountCents).toBe(200);
    expect(evaluatePayment(waited).earning).toBeNull();
  });

  test('binds no key once it is attributed, nor while its exchange rate is missing', () => {
    const attributed = {
      ...renewal,
      keysToBind: [phone],
      bindingId: ada.binding.bindingId,
      likelyCause: null,
      baseCents: 1_000,
      revenueCents: 1_000,
    };
    expect(evaluatePayment(attributed)).toMatchObject({ furtherKeys: [], binding: null, earning: null });
    const unpriced = { ...renewal, keysToBind: [phone], currency: 'NOK', usdCents: null };
    expect(evaluatePayment(unpriced)).toMatchObject({ furtherKeys: [], decidedBindingId: 'bnd_ada' });
  });
});
