import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { DRAFT_VALID_MS, draftPayoutRun, refuseApproval } from '../../src/domain/payout-run.ts';
import type { UnpaidCreator } from '../../src/domain/payout-run.ts';
import { MAX_PAYOUT_CENTS } from '../../src/domain/payout.ts';
import type { AffiliateId } from '../../src/domain/ids.ts';

const creator = (over: Partial<UnpaidCreator> = {}): UnpaidCreator => ({
  affiliateId: 'aff_1' as AffiliateId,
  affiliateName: 'Ann',
  dueCents: 100,
  heldCents: 0,
  exceedsPayout: false,
  isBlocked: false,
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
    ['below_minimum', { dueCents: 99 }, 100],
  ])('leaves out a creator as %s', (reason, over, minimumCents) => {
    expect(draftPayoutRun([creator(over)], minimumCents)).toMatchObject({
      items: [],
      exclusions: [{ reason }],
      totalCents: 0,
    });
  });

  test('pays a creator in full to whom exactly the minimum is due', () => {
    expect(draftPayoutRun([creator()], 100)).toMatchObject({
      items: [{ expectedCents: 100 }],
      totalCents: 100,
    });
  });

  test('has each creator once, in any order of theirs, and its total is that of its items', () => {
    fc.assert(
      fc.property(anyCreators, fc.integer({ min: 0, max: 60 }), fc.nat(), (creators, minimum, turn) => {
        const draft = draftPayoutRun(creators, minimum);
        const turned = [...creators.slice(turn % 7), ...creators.slice(0, turn % 7)];
        expect(draftPayoutRun(turned, minimum)).toEqual(draft);
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
    expect(refuseApproval({ status, totalCents: 100, itemCount: 1 }, totalCents)).toBe(refusal);
  });

  test('is refused if the run pays nobody', () => {
    expect(refuseApproval({ status: 'draft', totalCents: 0, itemCount: 0 }, 0)).toBe('not_possible');
  });
});
