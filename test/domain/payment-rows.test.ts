import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { BindingSnapshot } from '../../src/domain/payment-snapshot.ts';
import type { BindingId, CommissionId, PaymentId, PolicyVersionId } from '../../src/domain/ids.ts';
import { standingOf } from '../../src/domain/payment-rows.ts';
import type { PaymentRow } from '../../src/domain/payment-rows.ts';

const attribution = { customerUserId: 'user-1', binding: { bindingId: 'bnd_1' } as BindingSnapshot };

/** A row that is not attributed; with `earned`, one that earned as the nth. */
function row(n: number, over: Partial<PaymentRow> & { earned?: number | undefined } = {}): PaymentRow {
  const { earned, ...fields } = over;
  const earning =
    earned === undefined
      ? null
      : {
          commissionId: `com_${earned}` as CommissionId,
          rateBps: 2_000,
          rateSource: 'app' as const,
          rule: null,
        };
  return {
    paymentId: `pmt_${n}` as PaymentId,
    isRoot: false,
    currency: 'USD',
    amountMinor: 1_000,
    isDuplicate: false,
    attribution: earning === null ? null : attribution,
    earning,
    numbered: null,
    ...fields,
  };
}

const invoice = (over: Parameters<typeof row>[1] = {}) =>
  row(9, { isRoot: true, amountMinor: 10_000, ...over });
const part = (n: number, over: Parameters<typeof row>[1] = {}) => row(n, { amountMinor: n * 1_000, ...over });

describe('the rows of a payment that was reported in parts', () => {
  // @promise one-invoice-one-earning
  test('an attributed part is a duplicate of the attributed whole, whichever earned first', () => {
    for (const [ofPart, ofWhole] of [
      [1, 2],
      [2, 1],
    ]) {
      const [one, whole] = [part(1, { earned: ofPart }), invoice({ earned: ofWhole })];
      const kept = { paymentId: whole.paymentId, commissionId: whole.earning?.commissionId };
      expect(standingOf(one, [one, whole]).duplicateOf).toEqual(kept);
      expect(standingOf(whole, [one, whole]).duplicateOf).toBeNull();
    }
  });

  test('a part is not attributed beside the whole, and the whole is although a part was', () => {
    const [one, two, whole] = [part(1, { earned: 1 }), part(2), invoice()];
    expect(standingOf(two, [one, two, whole]).countedElsewhere).toBe(true);
    expect(standingOf(whole, [one, two, whole])).toEqual({
      isPart: false,
      countedElsewhere: false,
      duplicateOf: null,
      inherited: { ...attribution, terms: { rateBps: 2_000, rateSource: 'app', rule: null }, numbered: null },
    });
    // Until the whole is attributed, the part counts.
    expect(standingOf(one, [one, two, whole]).duplicateOf).toBeNull();
  });

  test('the whole inherits the binding of a part that earned nothing, without a rate', () => {
    const [one, whole] = [part(1, { attribution }), invoice()];
    expect(standingOf(whole, [one, whole]).inherited).toEqual({
      ...attribution,
      terms: null,
      numbered: null,
    });
  });

  test('rows of one amount, or in another currency, are no parts: the first to earn counts', () => {
    for (const over of [{ amountMinor: 10_000 }, { currency: 'EUR' }]) {
      const [one, whole] = [part(1, { earned: 1, ...over }), invoice({ earned: 2 })];
      expect(standingOf(one, [one, whole]).duplicateOf).toBeNull();
      expect(standingOf(whole, [one, whole]).duplicateOf?.paymentId).toBe(one.paymentId);
      expect(standingOf(invoice(), [one, invoice()]).countedElsewhere).toBe(true);
    }
  });

  test('of rows of one amount the first to earn counts, also where its own id is the last', () => {
    const rows = [row(1, { earned: 3 }), row(2, { earned: 2 }), row(3, { earned: 1 })];
    const kept = { paymentId: 'pmt_3', commissionId: 'com_1' };
    expect(rows.map((own) => standingOf(own, rows).duplicateOf)).toEqual([kept, kept, null]);
  });

  test('a whole that earned nothing gives way to a part that earned', () => {
    const [one, whole] = [part(1, { earned: 1 }), invoice({ attribution })];
    expect(standingOf(one, [one, whole]).duplicateOf).toBeNull();
    expect(standingOf(whole, [one, whole]).duplicateOf?.paymentId).toBe(one.paymentId);
  });

  test('a whole that was corrected before parts were known does not count again', () => {
    const [one, whole] = [part(1, { earned: 1 }), invoice({ earned: 2, isDuplicate: true })];
    expect(standingOf(one, [one, whole]).duplicateOf).toBeNull();
    expect(standingOf(whole, [one, whole]).duplicateOf?.paymentId).toBe(one.paymentId);
  });

  test('of any attributed rows exactly one is no duplicate, and no unattributed row counts beside it unless it is the whole', () => {
    const anyRow = fc.record({
      isRoot: fc.boolean(),
      amountMinor: fc.integer({ min: 1, max: 3 }),
      isAttributed: fc.boolean(),
      earns: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyRow, { minLength: 1, maxLength: 5 }), (described) => {
        const rows = described.map(({ isRoot, amountMinor, isAttributed, earns }, n) =>
          row(n, {
            isRoot,
            amountMinor,
            ...(isAttributed ? { attribution } : {}),
            ...(isAttributed && earns ? { earned: 9 - n } : {}),
          }),
        );
        const standings = rows.map((own) => ({ own, standing: standingOf(own, rows) }));
        const attributed = standings.filter(({ own }) => own.attribution !== null);
        const kept = attributed.filter(({ standing }) => standing.duplicateOf === null);
        expect(kept).toHaveLength(attributed.length === 0 ? 0 : 1);
        const largest = Math.max(
          ...rows.filter(({ isRoot }) => isRoot).map(({ amountMinor }) => amountMinor),
        );
        for (const { own, standing } of standings) {
          if (own.attribution !== null || standing.countedElsewhere || kept[0] === undefined) continue;
          // It replaces a part.
          expect(own.amountMinor).toBeGreaterThanOrEqual(largest);
          expect(kept[0].own.amountMinor).toBeLessThan(largest);
        }
      }),
    );
  });

  test('a row that nobody else reported is no part, counts, and inherits nothing', () => {
    for (const own of [row(1), row(1, { isRoot: true }), row(1, { attribution })]) {
      expect(standingOf(own, [own])).toEqual({
        isPart: false,
        countedElsewhere: false,
        duplicateOf: null,
        inherited: null,
      });
    }
  });

  // @promise one-invoice-one-earning
  test.each([
    ['a cent less, in the same currency', true, { amountMinor: 9_999 }],
    ['the same amount', false, { amountMinor: 10_000 }],
    ['a cent more', false, { amountMinor: 10_001 }],
    ['a cent less, in another currency', false, { amountMinor: 9_999, currency: 'EUR' }],
  ])('a row is a part of an invoice of 100 dollars if it has %s: %s', (_, isPart, over) => {
    expect(standingOf(row(1, over), [row(1, over), invoice()]).isPart).toBe(isPart);
  });

  test('of two invoices the larger one is the whole, unless it was corrected before', () => {
    const smaller = invoice({ amountMinor: 6_000 });
    const larger = row(1, { isRoot: true, amountMinor: 10_000 });
    expect(standingOf(smaller, [smaller, larger]).isPart).toBe(true);
    expect(standingOf(larger, [smaller, larger]).isPart).toBe(false);
    const corrected = { ...larger, isDuplicate: true };
    expect(standingOf(smaller, [smaller, corrected]).isPart).toBe(false);
    // The intents that paid it have no part, however large they are.
    const intents = [row(2, { amountMinor: 9_000 }), row(3, { amountMinor: 4_000 })];
    expect(intents.map((own) => standingOf(own, intents).isPart)).toEqual([false, false]);
  });

  test.each([
    ['the whole, beside a part', [part(1, { attribution }), invoice({ attribution })], 'pmt_9'],
    [
      'the first one by its id, of rows of one amount',
      [row(2, { attribution }), row(1, { attribution }), row(3, { attribution })],
      'pmt_1',
    ],
  ])('of attributed rows that earned nothing %s counts, whichever is read first', (_, rows, counts) => {
    for (const read of [rows, rows.toReversed()]) {
      expect(read.map((own) => standingOf(own, read).duplicateOf)).toEqual(
        read.map(({ paymentId }) =>
          paymentId === counts ? null : { paymentId: counts, commissionId: null },
        ),
      );
    }
  });

  // @promise policy-numbers
  test('the whole takes over the number of a part, and names the row that the number was given to', () => {
    const numbered = {
      subjectId: 'bnd_1' as BindingId,
      number: 3,
      firstPaidAt: 1_790_000_000_000,
      countsAs: null,
    };
    const inheritedOf = (countsAs: PaymentId | null) => {
      const one = part(1, { attribution, numbered: { ...numbered, countsAs } });
      return standingOf(invoice(), [one, invoice()]).inherited?.numbered;
    };
    expect(inheritedOf(null)).toEqual({ ...numbered, countsAs: 'pmt_1' });
    // The part itself replaced a part.
    expect(inheritedOf('pmt_0' as PaymentId)).toEqual({ ...numbered, countsAs: 'pmt_0' });
  });

  test('the whole inherits the rule of the part, and nothing once it is attributed itself', () => {
    const rule = {
      versionId: 'pov_1' as PolicyVersionId,
      terms: { base: 'gross' as const, rules: [] },
      index: 1,
    };
    const terms = { rateBps: 500, rateSource: 'policy' as const, rule };
    const one = part(1, { attribution, earning: { commissionId: 'com_1' as CommissionId, ...terms } });
    expect(standingOf(invoice(), [one, invoice()]).inherited?.terms).toEqual(terms);
    const whole = invoice({ attribution });
    expect(standingOf(whole, [one, whole]).inherited).toBeNull();
    // Neither does another part.
    expect(standingOf(part(2), [one, part(2), invoice()]).inherited).toBeNull();
  });

  // @promise evaluation-idempotent
  test('the place of a row is the same in whatever order the rows are read', () => {
    const anyRow = fc.record({
      isRoot: fc.boolean(),
      amountMinor: fc.integer({ min: 1, max: 3 }),
      currency: fc.constantFrom('USD', 'EUR'),
      isDuplicate: fc.boolean(),
      state: fc.constantFrom('unattributed', 'attributed', 'earned'),
    });
    fc.assert(
      fc.property(fc.array(anyRow, { minLength: 2, maxLength: 5 }), fc.nat(4), (described, turn) => {
        const rows = described.map(({ state, ...fields }, n) =>
          row(n, {
            ...fields,
            ...(state === 'attributed' ? { attribution } : {}),
            ...(state === 'earned' ? { earned: 9 - n } : {}),
          }),
        );
        const turned = [...rows.slice(turn), ...rows.slice(0, turn)];
        for (const own of rows) {
          expect(standingOf(own, turned)).toEqual(standingOf(own, rows));
          expect(standingOf(own, rows.toReversed())).toEqual(standingOf(own, rows));
        }
      }),
    );
  });
});
