import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import {
  decideResend,
  DRAFT_VALID_MS,
  draftPayoutRun,
  draftResend,
  refuseApproval,
} from '../../src/domain/payout-run.ts';
import type { Payable, ReturnedPayout, UnpaidCreator } from '../../src/domain/payout-run.ts';
import { MAX_PAYOUT_CENTS } from '../../src/domain/payout.ts';
import type { AffiliateId, PayoutId } from '../../src/domain/ids.ts';

const payable: Payable = {
  affiliateId: 'aff_1' as AffiliateId,
  affiliateName: 'Ann',
  isBlocked: false,
  payee: { version: 1, method: 'paypal' },
  payeeExclusion: null,
};

const creator = (over: Partial<UnpaidCreator> = {}): UnpaidCreator => ({
  ...payable,
  dueCents: 100,
  heldCents: 0,
  exceedsPayout: false,
  ...over,
});

const returned = (n: number, over: Partial<ReturnedPayout> = {}): ReturnedPayout => ({
  ...payable,
  payoutId: `pay_${n}` as PayoutId,
  totalCents: 100,
  ...over,
});

const anyCreators = fc.uniqueArray(
  fc.record({
    affiliateId: fc.integer({ min: 0, max: 50 }).map((n) => `aff_${n}` as AffiliateId),
    affiliateName: fc.constant('Ann'),
    dueCents: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.constant(MAX_PAYOUT_CENTS)),
    heldCents: fc.integer({ min: 0, max: 50 }),
    exceedsPayout: fc.boolean(),
    isBlocked: fc.boolean(),
    payee: fc.constantFrom(
      null,
      { version: 1, method: 'none' as const },
      { version: 2, method: 'wise' as const },
    ),
    payeeExclusion: fc.constantFrom(null, 'no_payee' as const, 'payee_changed' as const),
  }),
  { selector: ({ affiliateId }) => affiliateId },
);

describe('the draft of a payout run', () => {
  test.each([
    ['payouts_blocked', { isBlocked: true, dueCents: -1 }, 0],
    ['negative_balance', { dueCents: -1, heldCents: 5 }, 0],
    ['held', { dueCents: 0, heldCents: 5 }, 0],
    ['reversed', { dueCents: 0 }, 0],
    ['too_many_commissions', { exceedsPayout: true }, 0],
    ['below_minimum', { dueCents: 99, payeeExclusion: 'no_payee' }, 100],
    ['payee_changed', { payeeExclusion: 'payee_changed' }, 0],
    ['no_payee', { payeeExclusion: 'no_payee', payee: null }, 0],
  ])('leaves out a creator as %s', (reason, over, minimumCents) => {
    const terms = { minimumCents, includesWithoutPayee: false };
    expect(draftPayoutRun([creator(over as Partial<UnpaidCreator>)], terms)).toMatchObject({
      items: [],
      exclusions: [{ reason }],
      totalCents: 0,
    });
  });

  test('pays a creator in full to whom exactly the minimum is due', () => {
    expect(draftPayoutRun([creator()], { minimumCents: 100, includesWithoutPayee: false })).toMatchObject({
      items: [{ expectedCents: 100 }],
      totalCents: 100,
    });
  });

  test.each([
    ['a creator who never had one', null, 'other'],
    ['a creator whose payee was removed', { version: 2, method: 'none' as const }, 'other'],
  ])('pays %s only if the run says so, in a file of its own', (_, payee, method) => {
    const one = creator({ payee, payeeExclusion: 'no_payee' });
    const draft = draftPayoutRun([one], { minimumCents: 0, includesWithoutPayee: true });
    expect(draft).toMatchObject({ items: [{ method, payeeVersion: payee?.version ?? null }] });
    const waiting = creator({ payee, payeeExclusion: 'payee_changed' });
    expect(draftPayoutRun([waiting], { minimumCents: 0, includesWithoutPayee: true }).items).toEqual([]);
  });

  test('says of each creator what is paid where, or why nothing is, the largest amount first', () => {
    const ann = creator({ dueCents: 4_217, payee: { version: 3, method: 'wise' } });
    const ben = creator({ affiliateId: 'aff_2' as AffiliateId, affiliateName: 'Ben', dueCents: 4_218 });
    const cem = creator({
      affiliateId: 'aff_3' as AffiliateId,
      affiliateName: 'Cem',
      dueCents: -512,
      heldCents: 2_000,
    });
    const dee = creator({ affiliateId: 'aff_4' as AffiliateId, affiliateName: 'Dee', dueCents: 999 });
    expect(
      draftPayoutRun([cem, ann, dee, ben], { minimumCents: 1_000, includesWithoutPayee: false }),
    ).toEqual({
      items: [
        {
          affiliateId: 'aff_2',
          affiliateName: 'Ben',
          expectedCents: 4_218,
          method: 'paypal',
          payeeVersion: 1,
          payoutId: null,
        },
        {
          affiliateId: 'aff_1',
          affiliateName: 'Ann',
          expectedCents: 4_217,
          method: 'wise',
          payeeVersion: 3,
          payoutId: null,
        },
      ],
      exclusions: [
        {
          affiliateId: 'aff_4',
          affiliateName: 'Dee',
          reason: 'below_minimum',
          balanceCents: 999,
          heldCents: 0,
        },
        {
          affiliateId: 'aff_3',
          affiliateName: 'Cem',
          reason: 'negative_balance',
          balanceCents: -512,
          heldCents: 2_000,
        },
      ],
      totalCents: 8_435,
    });
  });

  test('lists creators to whom the same amount is due by their ids', () => {
    const ids = ['aff_2', 'aff_3', 'aff_1'] as AffiliateId[];
    const terms = { minimumCents: 0, includesWithoutPayee: false };
    const draft = (isBlocked: boolean) =>
      draftPayoutRun(
        ids.map((affiliateId) => creator({ affiliateId, isBlocked })),
        terms,
      );
    expect(draft(false).items.map(({ affiliateId }) => affiliateId)).toEqual(ids.toSorted());
    expect(draft(true).exclusions.map(({ affiliateId }) => affiliateId)).toEqual(ids.toSorted());
  });

  test('leaves out who would make its total larger than a payout can be, by a cent, also of money that is sent again', () => {
    const terms = { minimumCents: 0, includesWithoutPayee: false };
    const draft = (cents: readonly number[]) => [
      draftPayoutRun(
        cents.map((dueCents, n) => creator({ affiliateId: `aff_${n}` as AffiliateId, dueCents })),
        terms,
      ),
      draftResend(
        cents.map((totalCents, n) => returned(n, { totalCents })),
        terms,
      ),
    ];
    for (const { exclusions, totalCents } of draft([MAX_PAYOUT_CENTS - 1, 1])) {
      expect(exclusions).toEqual([]);
      expect(totalCents).toBe(MAX_PAYOUT_CENTS);
    }
    for (const { exclusions, totalCents } of draft([MAX_PAYOUT_CENTS - 1, 2])) {
      expect(exclusions).toMatchObject([{ reason: 'too_many_commissions', balanceCents: 2 }]);
      expect(totalCents).toBe(MAX_PAYOUT_CENTS - 1);
    }
  });

  test('has each creator once, in any order of theirs, and its total is that of its items', () => {
    fc.assert(
      fc.property(anyCreators, fc.integer({ min: 0, max: 60 }), fc.nat(), (creators, minimum, turn) => {
        const terms = { minimumCents: minimum, includesWithoutPayee: turn % 2 === 0 };
        const draft = draftPayoutRun(creators, terms);
        const turned = [...creators.slice(turn % 7), ...creators.slice(0, turn % 7)];
        expect(draftPayoutRun(turned, terms)).toEqual(draft);
        const all = [...draft.items, ...draft.exclusions].map(({ affiliateId }) => affiliateId);
        expect(all.toSorted()).toEqual(creators.map(({ affiliateId }) => affiliateId).toSorted());
        expect(draft.totalCents).toBe(draft.items.reduce((sum, { expectedCents }) => sum + expectedCents, 0));
        expect(draft.totalCents).toBeLessThanOrEqual(MAX_PAYOUT_CENTS);
        for (const { expectedCents } of draft.items)
          expect(expectedCents).toBeGreaterThanOrEqual(Math.max(1, minimum));
      }),
    );
  });

  test('can be approved for a week', () => {
    expect(DRAFT_VALID_MS).toBe(604_800_000);
  });
});

describe('the draft of a run that sends money again', () => {
  test('has the payouts of each creator one by one, the largest first, and of one amount by their ids', () => {
    const wise = { version: 4, method: 'wise' } as const;
    const ben = { affiliateId: 'aff_2' as AffiliateId, affiliateName: 'Ben', payee: wise };
    const payouts = [returned(3), returned(1), returned(2, { ...ben, totalCents: 250 }), returned(4)];
    const ann = { affiliateId: 'aff_1', affiliateName: 'Ann', method: 'paypal', payeeVersion: 1 };
    expect(draftResend(payouts, { includesWithoutPayee: false })).toEqual({
      items: [
        {
          affiliateId: 'aff_2',
          affiliateName: 'Ben',
          method: 'wise',
          payeeVersion: 4,
          expectedCents: 250,
          payoutId: 'pay_2',
        },
        { ...ann, expectedCents: 100, payoutId: 'pay_1' },
        { ...ann, expectedCents: 100, payoutId: 'pay_3' },
        { ...ann, expectedCents: 100, payoutId: 'pay_4' },
      ],
      exclusions: [],
      totalCents: 550,
    });
  });

  test.each<[Partial<ReturnedPayout>, boolean, string | null]>([
    [{}, false, null],
    [{ isBlocked: true }, false, 'payouts_blocked'],
    [{ isBlocked: true, payeeExclusion: 'no_payee' }, true, 'payouts_blocked'],
    [{ payeeExclusion: 'payee_changed' }, false, 'payee_changed'],
    [{ payeeExclusion: 'payee_changed' }, true, 'payee_changed'],
    [{ payeeExclusion: 'no_payee', payee: null }, false, 'no_payee'],
    [{ payeeExclusion: 'no_payee', payee: null }, true, null],
  ])(
    'of a creator with %j, where those without a payee are paid: %s, leaves out all payouts as %s',
    (over, includesWithoutPayee, reason) => {
      const payouts = [returned(1, over), returned(2, { ...over, totalCents: 250 })];
      const { items, exclusions, totalCents } = draftResend(payouts, { includesWithoutPayee });
      expect(exclusions).toEqual(
        reason === null
          ? []
          : [{ affiliateId: 'aff_1', affiliateName: 'Ann', reason, balanceCents: 350, heldCents: 0 }],
      );
      expect(items).toHaveLength(reason === null ? 2 : 0);
      expect(totalCents).toBe(reason === null ? 350 : 0);
    },
  );

  test('lists the creators whom it leaves out by the sum of their payouts, the largest first, in any order of theirs', () => {
    const of = (n: number, affiliate: string, totalCents: number) =>
      returned(n, { affiliateId: `aff_${affiliate}` as AffiliateId, totalCents, isBlocked: true });
    const payouts = [
      of(1, 'c', 500),
      of(2, 'b', 400),
      of(3, 'b', 300),
      of(4, 'd', 400),
      of(5, 'a', 500),
      of(6, 'e', 400),
    ];
    for (const turn of payouts.keys()) {
      const turned = [...payouts.slice(turn), ...payouts.slice(0, turn)];
      const { exclusions } = draftResend(turned, { includesWithoutPayee: false });
      expect(exclusions.map(({ affiliateId, balanceCents }) => [affiliateId, balanceCents])).toEqual([
        ['aff_b', 700],
        ['aff_a', 500],
        ['aff_c', 500],
        ['aff_d', 400],
        ['aff_e', 400],
      ]);
    }
  });
});

describe('an item of a run that sends money again', () => {
  const item = { isReturned: true, isBlocked: false, payeeVersion: 2, latestPayeeVersion: 2 };
  test.each<[Partial<Parameters<typeof decideResend>[0]>, string]>([
    [{}, 'resent'],
    [{ payeeVersion: null, latestPayeeVersion: null }, 'resent'],
    [{ latestPayeeVersion: 3 }, 'payee_changed'],
    [{ payeeVersion: null, latestPayeeVersion: 1 }, 'payee_changed'],
    [{ isBlocked: true }, 'blocked'],
    [{ isBlocked: true, latestPayeeVersion: 3 }, 'blocked'],
    [{ isReturned: false }, 'not_returned'],
    [{ isReturned: false, isBlocked: true, latestPayeeVersion: 3 }, 'not_returned'],
  ])('with %j has the result %s', (over, result) => {
    expect(decideResend({ ...item, ...over })).toBe(result);
  });
});

const anyKey = { payoutApproval: 'any_key', hasPart: true } as const;

describe('an approval of a payout run', () => {
  test.each([
    ['draft', 100, null],
    ['approved', 100, null],
    ['settled', 100, null],
    ['draft', 99, 'total_changed'],
    ['settled', 99, 'total_changed'],
    ['expired', 100, 'not_possible'],
    ['cancelled', 100, 'not_possible'],
  ] as const)('that is %s with the total %d is refused as %s', (status, totalCents, refusal) => {
    expect(refuseApproval({ status, totalCents: 100, itemCount: 1 }, totalCents, anyKey)).toBe(refusal);
  });

  test('is refused if the run pays nobody', () => {
    expect(refuseApproval({ status: 'draft', totalCents: 0, itemCount: 0 }, 0, anyKey)).toBe('not_possible');
  });

  test.each([
    ['draft', 'another_key', true, 'another_approver_needed'],
    ['draft', 'another_key', false, null],
    ['draft', 'any_key', true, null],
    ['approved', 'another_key', true, null],
  ] as const)(
    'that is %s in an app with %s, by a key with a part in it: %s, is refused as %s',
    (status, payoutApproval, hasPart, refusal) => {
      const run = { status, totalCents: 100, itemCount: 1 };
      expect(refuseApproval(run, 100, { payoutApproval, hasPart })).toBe(refusal);
    },
  );
});
