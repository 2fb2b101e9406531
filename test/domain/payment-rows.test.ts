import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { BindingSnapshot } from '../../src/domain/payment-snapshot.ts';
import type { CommissionId, PaymentId } from '../../src/domain/ids.ts';
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
});
