import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decidePayout, MAX_PAYOUT_CENTS, needsMoreCredits } from '../../src/domain/payout.ts';
import type { Due, PayoutDecision } from '../../src/domain/payout.ts';
import { cases } from '../support/rounds.ts';

const dueOf = (amounts: readonly number[]): Due => ({
  count: amounts.length,
  cents: amounts.reduce((sum, cents) => sum + BigInt(cents), 0n),
});

/** Decides a payout of these amounts, of which the credits are the oldest first. */
function decide(amounts: readonly number[], limit: number, expectedTotalCents: number | null = null) {
  const debits = dueOf(amounts.filter((cents) => cents < 0));
  const credits = amounts.filter((cents) => cents > 0);
  let fits = Math.min(limit, credits.length);
  while (dueOf(credits.slice(0, fits)).cents > BigInt(MAX_PAYOUT_CENTS)) fits -= 1;
  const due = { debits, credits: dueOf(credits.slice(0, fits)), isMoreDue: fits < credits.length };
  let needed = credits.findIndex((_, n) => debits.cents + dueOf(credits.slice(0, n + 1)).cents > 0n) + 1;
  if (needed === 0) needed = credits.length;
  const outweighing = needsMoreCredits(due)
    ? { credits: dueOf(credits.slice(0, needed)), isMoreDue: needed < credits.length }
    : null;
  const expected =
    expectedTotalCents === null
      ? null
      : { totalCents: expectedTotalCents, allCreditsCents: dueOf(credits).cents, takenBackCents: 0n };
  return { decision: decidePayout(due, outweighing, expected), outweighing };
}

/** What is due after a payout. */
function rest(amounts: readonly number[], { status, credits }: PayoutDecision): number[] {
  if (status !== 'paid') return [...amounts];
  return amounts.filter((cents) => cents > 0).slice(credits);
}

const cents = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -300, max: 300 }) },
  { weight: 1, arbitrary: fc.integer({ min: -MAX_PAYOUT_CENTS, max: MAX_PAYOUT_CENTS }) },
);
const amountsOf = fc.array(
  cents.filter((amount) => amount !== 0),
  { maxLength: 30 },
);
const limits = fc.integer({ min: 1, max: 8 });

describe('a payout', () => {
  // @promise payout-bounded
  test('repeated exports pay each commission once, together what is owed, and nothing where nothing is owed', () => {
    fc.assert(
      fc.property(amountsOf, limits, (amounts, limit) => {
        const owed = dueOf(amounts).cents;
        let left = [...amounts];
        let paid = 0n;
        for (let exports = 0; exports <= amounts.length; exports += 1) {
          const { decision } = decide(left, limit);
          if (decision.status !== 'paid') break;
          expect(decision.netCents).toBeGreaterThan(0);
          expect(decision.isMoreDue).toBe(rest(left, decision).length > 0);
          paid += BigInt(decision.netCents);
          left = rest(left, decision);
        }
        expect(paid).toBe(owed > 0n ? owed : 0n);
        expect(left).toEqual(owed > 0n ? [] : amounts);
      }),
      cases(2_000, 20_000),
    );
  });

  // @promise payout-bounded
  test('it contains more credits than its limit only as far as its debits need them', () => {
    fc.assert(
      fc.property(amountsOf, limits, (amounts, limit) => {
        const { decision } = decide(amounts, limit);
        if (decision.status !== 'paid' || decision.credits <= limit) return;
        const last = amounts.filter((amount) => amount > 0)[decision.credits - 1] ?? 0;
        expect(decision.netCents - last).toBeLessThanOrEqual(0);
      }),
      cases(2_000, 20_000),
    );
  });

  // @promise expected-total
  test('an expected total other than everything that is due pays nothing and names what is due', () => {
    fc.assert(
      fc.property(amountsOf, limits, fc.integer({ min: -3, max: 3 }), (amounts, limit, off) => {
        const owed = dueOf(amounts).cents;
        const right = owed > 0n ? owed : 0n;
        if (right > BigInt(MAX_PAYOUT_CENTS) || right + BigInt(off) < 0n) return;
        const { decision } = decide(amounts, limit, Number(right) + off);
        if (off === 0) {
          expect(decision).toEqual(decide(amounts, limit).decision);
          return;
        }
        expect(decision.status).toBe('total_changed');
        if (owed > -BigInt(MAX_PAYOUT_CENTS)) expect(BigInt(decision.netCents)).toBe(owed);
      }),
      cases(2_000, 20_000),
    );
  });

  test('a debt beyond 2^53 cents is carried forward as the largest number', () => {
    expect(decide([-MAX_PAYOUT_CENTS, -MAX_PAYOUT_CENTS, 5], 3).decision).toEqual({
      status: 'empty',
      credits: 1,
      netCents: -MAX_PAYOUT_CENTS,
      isMoreDue: false,
    });
  });

  test('without a payout only the credits within the limit are marked matured', () => {
    expect(decide([1, 1, 1, 1, -9], 2)).toMatchObject({
      decision: { status: 'empty', credits: 2, netCents: -5, isMoreDue: false },
      outweighing: { credits: { count: 4 } },
    });
  });

  test('is not made if something was taken back since of what a run pays', () => {
    const due = { debits: dueOf([]), credits: dueOf([100]), isMoreDue: false };
    const expected = { totalCents: 100, allCreditsCents: 100n, takenBackCents: -1n };
    expect(decidePayout(due, null, expected)).toMatchObject({ status: 'total_changed', netCents: 99 });
    expect(decidePayout(due, null, { ...expected, takenBackCents: 0n })).toMatchObject({ status: 'paid' });
  });

  const due = (debitCents: number, creditCents: number, isMoreDue = false) => ({
    debits: dueOf(debitCents === 0 ? [] : [debitCents]),
    credits: dueOf([creditCents]),
    isMoreDue,
  });

  // @promise payout-bounded
  test.each([
    ['a cent less than the credits', -9_999, { status: 'paid', netCents: 1 }, false],
    ['as much as the credits', -10_000, { status: 'empty', netCents: 0 }, true],
    ['a cent more than the credits', -10_001, { status: 'empty', netCents: -1 }, true],
  ])(
    'takes debits of %s from 100 dollars, and needs further credits only if nothing is left and more are due',
    (_, debitCents, decision, needsMore) => {
      expect(decidePayout(due(debitCents, 10_000), null, null)).toMatchObject(decision);
      expect(needsMoreCredits(due(debitCents, 10_000, true))).toBe(needsMore);
      expect(needsMoreCredits(due(debitCents, 10_000, false))).toBe(false);
    },
  );

  // @promise expected-total
  test('is made, or carried forward, as expected: a debt is expected as zero', () => {
    const expecting = (totalCents: number, debitCents: number) =>
      decidePayout(due(debitCents, 5_000), null, {
        totalCents,
        allCreditsCents: 5_000n,
        takenBackCents: 0n,
      });
    expect(expecting(1, -4_999)).toMatchObject({ status: 'paid', netCents: 1 });
    expect(expecting(0, -5_000)).toMatchObject({ status: 'empty', netCents: 0 });
    expect(expecting(0, -8_000)).toMatchObject({ status: 'empty', netCents: -3_000 });
    expect(expecting(0, -4_999)).toMatchObject({ status: 'total_changed', netCents: 1 });
  });

  test('names what is due at most as the largest number, on either side of zero', () => {
    const owedOf = (allCreditsCents: bigint) =>
      decidePayout(due(0, 5_000), null, { totalCents: 1, allCreditsCents, takenBackCents: 0n }).netCents;
    const most = BigInt(MAX_PAYOUT_CENTS);
    expect([most - 1n, most, most + 1n].map(owedOf)).toEqual([
      MAX_PAYOUT_CENTS - 1,
      MAX_PAYOUT_CENTS,
      MAX_PAYOUT_CENTS,
    ]);
    expect([1n - most, -most, -most - 1n].map(owedOf)).toEqual([
      1 - MAX_PAYOUT_CENTS,
      -MAX_PAYOUT_CENTS,
      -MAX_PAYOUT_CENTS,
    ]);
  });
});
