import { describe, expect, test } from '@jest/globals';
import { chooseUser, mayAttribute, payersOf, withoutStoredPlaceholders } from '../../src/domain/payers.ts';
import type { BindingSnapshot, CodeOwner, UserCandidate } from '../../src/domain/payment-snapshot.ts';
import type { AffiliateId, AttributionId, BindingId, CodeId } from '../../src/domain/ids.ts';
import type { LikelyCause } from '../../src/domain/likely-causes.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { binding, candidate, NOW, payment } from '../support/payment-snapshots.ts';

const ofAttribution = (attributionId: string, over: Partial<BindingSnapshot> = {}): BindingSnapshot => ({
  ...binding,
  attributionId: attributionId as AttributionId,
  ...over,
});
/** What a code bound two days before the payment. */
const byCode = ofAttribution('att_code', {
  matchMethod: 'purchase_code',
  touchedAt: payment.occurredAt - 2 * DAY_MS,
});
/** What a founder said so many hours before the evaluation, about payments from two days before this one on. */
const byHand = (attributionId: string, hoursAgo: number, over: Partial<BindingSnapshot> = {}) =>
  ofAttribution(attributionId, {
    matchMethod: 'manual',
    touchedAt: payment.occurredAt - 2 * DAY_MS,
    saidAt: NOW - hoursAgo * HOUR_MS,
    ...over,
  });

const key = (customerUserId: string, bound: BindingSnapshot | null, over: Partial<UserCandidate> = {}) =>
  candidate(customerUserId, { via: 'bound_key', binding: bound, ...over });
const user = (customerUserId: string, bound: BindingSnapshot | null, over: Partial<UserCandidate> = {}) =>
  candidate(customerUserId, { binding: bound, ...over });

const payers = (...candidates: readonly UserCandidate[]) =>
  payersOf({ ...payment, candidates }).map(({ customerUserId }) => customerUserId);

describe('of a payment whose subscription a code bound, the payer', () => {
  // @promise code-key-first
  test.each<[string, UserCandidate]>([
    ['a user of another creator', user('user-1', binding)],
    ['a user who belongs to nobody', user('user-1', null, { identified: true })],
    ['a user of the customer', user('user-1', binding, { via: 'customer_key' })],
  ])('is the subscription, before %s', (_, other) => {
    expect(payers(other, key('sub_1', byCode))).toEqual(['sub_1']);
  });

  // @promise code-subscription-first
  test('is the first of several bound keys, also where that belongs to nobody', () => {
    expect(payers(key('sub_1', byCode), key('anonymous', binding))).toEqual(['sub_1']);
    expect(payers(key('sub_1', null), key('anonymous', byCode))).toEqual(['sub_1']);
  });

  // @promise code-sign-in
  test('is the user who signed in with it, and then the subscription', () => {
    const candidates = [
      user('stranger', binding),
      user('signed-in', byCode),
      user('of-subscription', byCode, { via: 'key' }),
      user('unknown', null),
      key('sub_1', byCode),
      key('anonymous', byCode),
    ];
    expect(payers(...candidates)).toEqual(['signed-in', 'of-subscription', 'sub_1']);
  });

  test('is nobody else where the subscription belongs to nobody, although the user does, too', () => {
    expect(payers(user('user-1', null), key('sub_1', null))).toEqual(['sub_1']);
  });

  test.each<[string, BindingSnapshot]>([
    ['another creator', binding],
    ['the creator of the code', { ...byCode, touchedAt: payment.occurredAt + 1 }],
  ])('is the user of %s where the payment is from before the code', (_, bound) => {
    const late = { ...byCode, touchedAt: payment.occurredAt + 1 };
    expect(payers(user('user-1', bound), key('sub_1', late))).toEqual(['user-1']);
  });

  test('is any user whom an event names where the payment is from before the code, also who signed in with it', () => {
    const late = { ...byCode, touchedAt: payment.occurredAt + 1 };
    const candidates = [user('clicked', binding), user('signed-in', late), key('sub_1', late)];
    expect(payers(...candidates)).toEqual(['clicked', 'signed-in']);
  });

  // @promise code-person-by-hand
  test('is the person whom a founder gave away as one, the user first', () => {
    const given = byHand('att_given', 5);
    expect(payers(user('user-1', given), key('sub_1', given))).toEqual(['user-1', 'sub_1']);
  });

  // @promise code-key-by-hand
  test.each<[string, readonly UserCandidate[], readonly string[]]>([
    [
      'a user whom an event names is given to a creator after the code',
      [user('user-1', byHand('att_given', 5)), key('sub_1', byCode)],
      ['user-1'],
    ],
    [
      'a user of the subscription is given to a creator after the code',
      [user('user-1', byHand('att_given', 5), { via: 'key' }), key('sub_1', byCode)],
      ['user-1'],
    ],
    [
      'a user of the customer, who may be one of many in a company, is given to a creator',
      [user('user-1', byHand('att_given', 5), { via: 'customer_key' }), key('sub_1', byCode)],
      ['sub_1'],
    ],
    [
      'a user is given to a creator for later payments only',
      [user('user-1', byHand('att_given', 5, { touchedAt: payment.occurredAt + 1 })), key('sub_1', byCode)],
      ['sub_1'],
    ],
    [
      'the user and the subscription are given to different creators at one instant',
      [user('user-1', byHand('att_given', 5)), key('sub_1', byHand('att_other', 5))],
      ['sub_1'],
    ],
    [
      'the user is given away between two keys of the payment',
      [
        user('user-1', byHand('att_given', 5)),
        key('sub_1', byHand('att_one', 6)),
        key('anonymous', byHand('att_two', 4)),
      ],
      ['sub_1'],
    ],
    [
      'the user is given away after two keys of the payment',
      [
        user('user-1', byHand('att_given', 3)),
        key('sub_1', byHand('att_one', 6)),
        key('anonymous', byHand('att_two', 4)),
      ],
      ['user-1'],
    ],
    [
      'the user is given away, and others are not',
      [
        user('other', null),
        user('signed-in', byCode),
        user('user-1', byHand('att_given', 5)),
        key('sub_1', byCode),
        key('anonymous', ofAttribution('att_phone')),
      ],
      ['other', 'user-1'],
    ],
  ])('is as a founder said last: %s', (_, candidates, expected) => {
    expect(payers(...candidates)).toEqual(expected);
  });
});

describe('of several users of a payment that is evaluated later, the one who decides', () => {
  const later = { ...payment, likelyCause: 'user_never_identified' as const };
  const late = { ...binding, touchedAt: payment.occurredAt + 1 };
  const ranked = [
    user('unknown', null),
    user('in-test', null, { identifiedInTest: true }),
    user('nearly', null, { nearlyIdentified: true }),
    user('identified', null, { identified: true }),
    user('bound-too-late', late),
    user('bound', binding),
  ];

  // @promise cause-identity-rules
  test('is the one about whom most is known, in any position, and of equals the first', () => {
    for (const [n, best] of ranked.entries()) {
      const twin = { ...best, customerUserId: 'twin' };
      const rest = ranked.slice(0, n);
      for (const candidates of [
        [...rest, best, twin],
        [best, ...rest, twin],
      ]) {
        // Of those about whom nothing is known, the first one.
        expect(chooseUser({ ...later, candidates })).toBe(n === 0 ? candidates[0] : best);
      }
    }
    expect(chooseUser({ ...later, candidates: [] })).toBeUndefined();
  });
});

describe('a binding', () => {
  const paidAt = payment.occurredAt;
  const bound = (touchedAt: number, over: Partial<BindingSnapshot> = {}) => ({
    ...binding,
    touchedAt,
    ...over,
  });
  const codeOf = (affiliateId: string): CodeOwner => ({
    codeId: `cod_${affiliateId}` as CodeId,
    binding: { ...byCode, affiliateId: affiliateId as AffiliateId, bindingId: 'bnd_9' as BindingId },
  });

  // @promise code-binds
  test.each<[string, number, readonly CodeOwner[], boolean]>([
    ['made when the code was used', paidAt, [], true],
    ['made a millisecond earlier', paidAt + 1, [], false],
    ['made earlier, with a code of the same creator', paidAt + 1, [codeOf('aff_1')], true],
    [
      'made earlier, with two codes of the same creator',
      paidAt + 1,
      [codeOf('aff_1'), codeOf('aff_1')],
      true,
    ],
    ['made earlier, with a code of another creator', paidAt + 1, [codeOf('aff_2')], false],
    ['made earlier, with codes of both', paidAt + 1, [codeOf('aff_1'), codeOf('aff_2')], false],
  ])('by a code attributes a payment that was %s: %s', (_, touchedAt, codeOwners, attributes) => {
    const through = bound(touchedAt, { matchMethod: 'purchase_code' });
    expect(mayAttribute({ ...payment, codeOwners }, through)).toBe(attributes);
  });

  // @promise heal-reach
  test('by a click attributes no earlier payment later, also where that came with a code of the creator', () => {
    const waiting = {
      ...payment,
      likelyCause: 'user_not_attributed' as const,
      codeOwners: [codeOf('aff_1')],
    };
    expect(mayAttribute(waiting, bound(paidAt + 1))).toBe(false);
    expect(mayAttribute(waiting, bound(paidAt))).toBe(true);
  });

  // @promise heal-reach, code-heals
  test.each<[string, Partial<typeof payment>, boolean]>([
    ['as old as the attribution window', { occurredAt: NOW - 30 * DAY_MS }, true],
    ['a millisecond older', { occurredAt: NOW - 30 * DAY_MS - 1 }, false],
    [
      'of a day and a millisecond in a window of one day',
      { app: { ...payment.app, attributionWindowDays: 1 }, occurredAt: NOW - DAY_MS - 1 },
      false,
    ],
  ])(
    'by a code attributes a payment that is evaluated again only within the window: %s',
    (_, over, attributes) => {
      const waiting = {
        ...payment,
        likelyCause: 'missing_user_id' as const,
        codeOwners: [codeOf('aff_1')],
        ...over,
      };
      expect(mayAttribute(waiting, bound(paidAt, { matchMethod: 'purchase_code' }))).toBe(attributes);
    },
  );

  // @promise heal-identity-causes
  test.each<[LikelyCause | null, boolean]>([
    ['missing_user_id', false],
    ['anonymous_user_id', false],
    ['user_never_identified', false],
    ['user_id_mismatch', false],
    ['user_not_attributed', false],
    ['outside_attribution_window', false],
    ['test_key_only', false],
    ['ambiguous_code', false],
    ['missing_exchange_rate', true],
    ['price_unknown', true],
    ['processing', true],
    [null, true],
  ])('of a later click attributes a payment with the cause %s: %s', (likelyCause, attributes) => {
    expect(mayAttribute({ ...payment, likelyCause }, bound(paidAt + 1))).toBe(attributes);
  });
});

describe('a placeholder that an earlier version stored', () => {
  const guest = { customerUserId: 'guest', attributionId: 'att_1' as AttributionId };
  const ann = { customerUserId: 'ann', attributionId: 'att_1' as AttributionId };

  // @promise placeholders-are-anonymous
  test('is none of the users of a key, and all else of the key stays', () => {
    const sub = { userKey: 'sub_1', source: 'stripe', isPayment: false, bindingId: 'bnd_9' as BindingId };
    const keysToBind = [{ ...sub, users: [guest, ann] }];
    expect(withoutStoredPlaceholders({ ...payment, keysToBind })).toEqual({
      ...payment,
      keysToBind: [{ ...sub, users: [ann] }],
    });
  });

  // @promise placeholders-are-anonymous
  test.each([
    ['with a placeholder alone', ['guest'], false, [], true],
    ['with a placeholder and a user', ['guest', 'ann'], false, ['ann'], true],
    ['with a user', ['ann'], false, ['ann'], false],
    ['with a user, and ids of an SDK alone in its own event', ['ann'], true, ['ann'], true],
    ['with nobody', [], false, [], false],
  ])('makes its payment one of an anonymous user: %s', (_, ids, onlyAnonymousUser, left, isAnonymous) => {
    const stored = { ...payment, onlyAnonymousUser, candidates: ids.map((id) => candidate(id)) };
    const read = withoutStoredPlaceholders(stored);
    expect(read.candidates.map(({ customerUserId }) => customerUserId)).toEqual(left);
    expect(read.onlyAnonymousUser).toBe(isAnonymous);
  });
});
