import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AdjustmentFact, PaymentFact } from '../../src/domain/events.ts';
import type { EventId } from '../../src/domain/ids.ts';
import { compareGroup } from '../../src/domain/reconcile.ts';
import { isDifference } from '../../src/domain/reconcile-findings.ts';
import type {
  ComparisonScope,
  Exported,
  ExportedGroup,
  RecordedAdjustment,
  RecordedGroup,
} from '../../src/domain/reconcile-findings.ts';

const AT = 1_790_000_000_000;
const EVENT = 'evt_1' as EventId;
const SCOPE: ComparisonScope = {
  hasRefundIds: true,
  hasRefunds: true,
  partialRefusal: null,
  from: AT - 1_000,
  to: AT + 1_000,
};

const paid = (over: Partial<PaymentFact> = {}): PaymentFact => ({
  store: 'stripe',
  ref: 'in_1',
  currency: 'USD',
  amountMinor: 1_000,
  usdCents: 1_000,
  ...over,
});

const refund = (over: Partial<AdjustmentFact> = {}): AdjustmentFact => ({
  kind: 'refund',
  store: 'stripe',
  ref: 're_1',
  paymentRef: 'in_1',
  state: 'applied',
  rank: 1,
  currency: 'USD',
  amountMinor: 400,
  usdCents: 400,
  ...over,
});

function listed<Fact>(fact: Fact, over: Partial<Exported<Fact>> = {}): Exported<Fact> {
  return { fact, at: AT, line: 2, userIds: ['user-1'], refusal: null, ...over };
}

const group = (payment: PaymentFact | null, ...adjustments: readonly AdjustmentFact[]): ExportedGroup => ({
  refs: ['in_1', 'pi_1', 'ch_1'],
  payment: payment === null ? null : listed(payment),
  adjustments: adjustments.map((fact) => listed(fact)),
});

const stored = (fact: AdjustmentFact, at = AT): RecordedAdjustment => ({
  ref: fact.ref,
  kind: fact.kind,
  state: fact.state,
  reversesAll: fact.reversesAll ?? false,
  currency: fact.currency,
  amountMinor: fact.amountMinor,
  usdCents: fact.usdCents,
  occurredAt: at,
  eventId: EVENT,
});

const ledger = (
  payment: (PaymentFact & { likelyCause?: 'user_never_identified' }) | null,
  ...adjustments: readonly RecordedAdjustment[]
): RecordedGroup => ({
  payment:
    payment === null
      ? null
      : {
          likelyCause: null,
          ...payment,
          occurredAt: AT,
          eventId: EVENT,
          customerUserId: 'user-1',
          isAttributed: true,
          earnedCents: 100,
        },
  adjustments,
});

const kinds = (exported: ExportedGroup, recorded: RecordedGroup, scope: Partial<ComparisonScope> = {}) =>
  compareGroup(exported, recorded, { ...SCOPE, ...scope }).map(({ kind, feedBack }) => [kind, feedBack]);

describe('a payment', () => {
  test.each([
    ['that both have', group(paid()), ledger(paid()), []],
    ['that only the export has', group(paid()), ledger(null), [['missing_payment', 'yes']]],
    ['of another amount', group(paid()), ledger(paid({ amountMinor: 999 })), [['wrong_amount', null]]],
    [
      'of another value in US dollars',
      group(paid({ currency: 'EUR', usdCents: 1_100 })),
      ledger(paid({ currency: 'EUR', usdCents: 1_101 })),
      [['wrong_amount', null]],
    ],
    [
      'whose value in US dollars one side does not state',
      group(paid({ currency: 'EUR', usdCents: null })),
      ledger(paid({ currency: 'EUR', usdCents: 1_101 })),
      [],
    ],
    [
      'of another currency',
      group(paid({ usdCents: null })),
      ledger(paid({ currency: 'CAD' })),
      [['wrong_amount', null]],
    ],
    [
      'of another currency with the same value in US dollars',
      group(paid({ currency: 'EUR', amountMinor: 900 })),
      ledger(paid()),
      [],
    ],
    [
      'of which a part was paid outside the provider',
      group(paid({ amountMinor: 700, usdCents: null })),
      ledger(
        paid({ usdCents: null }),
        stored(refund({ kind: 'out_of_band', ref: 'inpay_1', amountMinor: 300 })),
      ),
      [],
    ],
  ])('%s has exactly its findings', (_, exported, recorded, expected) => {
    expect(kinds(exported, recorded)).toEqual(expected);
  });

  test('a payment that earned nothing is a finding with its cause, and no difference', () => {
    const recorded = ledger({ ...paid(), likelyCause: 'user_never_identified' });
    const nothing = { ...recorded, payment: recorded.payment && { ...recorded.payment, earnedCents: 0 } };
    const findings = compareGroup(group(paid()), nothing, SCOPE);
    expect(findings).toEqual([
      expect.objectContaining({ kind: 'earned_nothing', cause: 'user_never_identified', eventId: EVENT }),
    ]);
    expect(findings.filter(isDifference)).toEqual([]);
  });

  test('a reason against feeding back is shown instead of yes', () => {
    const exported = { ...group(null), payment: listed(paid(), { refusal: 'It names no user.' }) };
    expect(kinds(exported, ledger(null))).toEqual([['missing_payment', 'It names no user.']]);
  });
});

describe('refunds with ids', () => {
  const fact = refund();
  test.each([
    ['that both have', group(paid(), fact), ledger(paid(), stored(fact)), []],
    ['that only the export has', group(paid(), fact), ledger(paid()), [['missing_refund', 'yes']]],
    [
      'that only the ledger has',
      group(paid()),
      ledger(paid(), stored(fact)),
      [['refund_not_in_export', null]],
    ],
    [
      'that the ledger has after the export was made',
      group(paid()),
      ledger(paid(), stored(fact, AT + 1_001)),
      [],
    ],
    [
      'of another amount',
      group(paid(), fact),
      ledger(paid(), stored(refund({ amountMinor: 401 }))),
      [['wrong_refund', null]],
    ],
    ['without their payment', group(null, fact), ledger(null), [['missing_refund', 'yes']]],
    [
      'that failed before any webhook',
      group(paid(), refund({ state: 'reversed', rank: 2 })),
      ledger(paid()),
      [],
    ],
    [
      'that failed, of which the ledger has the success',
      group(paid(), fact, refund({ state: 'reversed', rank: 2 })),
      ledger(paid(), stored(fact)),
      [['missing_refund', 'yes']],
    ],
    [
      'that succeeded, of which the ledger has the failure',
      group(paid(), fact),
      ledger(paid(), stored(refund({ state: 'reversed' }))),
      [['wrong_refund', null]],
    ],
    [
      'that an adjustment of its own undid in both',
      group(paid(), fact, refund({ ref: 'adj_2', state: 'reversed', reversesAll: true })),
      ledger(paid(), stored(fact), stored(refund({ ref: 'adj_2', state: 'reversed', reversesAll: true }))),
      [],
    ],
    [
      'that an adjustment of its own undid, which no webhook reported',
      group(paid(), fact, refund({ ref: 'adj_2', state: 'reversed', reversesAll: true })),
      ledger(paid(), stored(fact)),
      [['missing_refund', 'yes']],
    ],
  ])('%s have exactly their findings', (_, exported, recorded, expected) => {
    expect(kinds(exported, recorded)).toEqual(expected);
  });

  // @promise reconcile-refuses
  test('a refund is not fed back where the endpoint reports the running total of a charge', () => {
    const total = stored(refund({ ref: 'ch_1', amountMinor: 300 }));
    const found = kinds(
      group(paid(), refund({ amountMinor: 300 }), refund({ ref: 're_2', amountMinor: 700 })),
      ledger(paid(), total),
    );
    expect(found).toEqual([['missing_refund', expect.stringContaining('running total')]]);
    expect(kinds(group(paid(), refund({ amountMinor: 300 })), ledger(paid(), total))).toEqual([]);
  });

  // @promise reconcile-refuses
  test.each<[string, ExportedGroup, RecordedGroup, string]>([
    ['a part of the payment', group(paid(), refund()), ledger(null), 'no'],
    ['the whole payment', group(paid(), refund({ amountMinor: 1_000 })), ledger(paid()), 'yes'],
    [
      'a part of a payment that only the ledger has',
      group(null, refund({ amountMinor: 900 })),
      ledger(paid()),
      'no',
    ],
    ['a payment that neither has', group(null, refund({ amountMinor: 1_000 })), ledger(null), 'no'],
    [
      'less than the ledger has of the payment',
      group(paid({ amountMinor: 900 }), refund({ amountMinor: 900 })),
      ledger(paid()),
      'no',
    ],
    [
      'a part of the payment that came back',
      group(paid(), refund({ state: 'reversed', rank: 2 })),
      ledger(paid(), stored(refund())),
      'yes',
    ],
    ['a dispute of a part', group(paid(), refund({ kind: 'chargeback' })), ledger(paid()), 'yes'],
  ])('a refund of %s is fed back as the endpoint allows it', (_, exported, recorded, expected) => {
    const found = kinds(exported, recorded, { partialRefusal: 'no' });
    expect(found.filter(([kind]) => kind === 'missing_refund')).toEqual([['missing_refund', expected]]);
  });

  const lost = refund({ kind: 'chargeback', ref: 'du_1', rank: 2, amountMinor: 1_000, usdCents: 1_000 });
  test.each<[string, readonly AdjustmentFact[], RecordedGroup, readonly unknown[]]>([
    ['that the ledger has', [], ledger(paid(), stored(lost)), []],
    ['that the ledger lacks', [lost], ledger(paid()), [['missing_refund', 'yes']]],
    [
      'that the ledger has given back',
      [lost],
      ledger(paid(), stored({ ...lost, state: 'reversed' })),
      [['wrong_refund', null]],
    ],
  ])('a dispute %s is not won where only a part of its money came back', (_, before, recorded, expected) => {
    const returned = { ...lost, state: 'reversed', amountMinor: 400 } as const;
    expect(kinds(group(paid(), ...before, returned), recorded)).toEqual(expected);
    expect(kinds(group(paid(), returned, ...before), recorded)).toEqual(expected);
  });

  test('what the export has as received outside the provider is a part of the payment, and fed back once', () => {
    const outside = refund({ kind: 'out_of_band', ref: 'inpay_1' });
    expect(kinds(group(paid(), outside), ledger(paid()), { hasRefunds: false })).toEqual([
      ['missing_refund', 'yes'],
    ]);
    expect(kinds(group(paid(), outside), ledger(paid(), stored(outside)))).toEqual([]);
    expect(kinds(group(paid({ amountMinor: 600 })), ledger(paid(), stored(outside)))).toEqual([]);
  });

  test('an export without refunds says nothing about them', () => {
    expect(kinds(group(paid()), ledger(paid(), stored(fact)), { hasRefunds: false })).toEqual([]);
  });
});

describe('refunds without ids', () => {
  const full = refund({ ref: 'reconciliation:refund', amountMinor: 1_000, usdCents: 1_000 });
  const part = refund({ ref: 'reconciliation:refund', amountMinor: 400 });
  const webhook = (amountMinor: number, over: Partial<AdjustmentFact> = {}) =>
    stored(refund({ ref: 'A1B2', amountMinor, usdCents: amountMinor, ...over }));

  // @promise reconcile-refuses
  test.each([
    ['that both have', group(paid(), full), ledger(paid(), webhook(1_000)), []],
    ['that only the export has', group(paid(), full), ledger(paid()), [['missing_refund', 'yes']]],
    [
      'of a part that only the export has',
      group(paid(), part),
      ledger(paid()),
      [['missing_refund', expect.stringContaining('could count twice')]],
    ],
    [
      'of which the ledger has a part',
      group(paid(), full),
      ledger(paid(), webhook(400)),
      [['missing_refund', 'yes']],
    ],
    [
      'of which the ledger has more',
      group(paid(), part),
      ledger(paid(), webhook(500)),
      [['wrong_refund', null]],
    ],
    [
      'that only the ledger has',
      group(paid()),
      ledger(paid(), webhook(1_000)),
      [['refund_not_in_export', null]],
    ],
    [
      'reported twice, more than the payment',
      group(paid(), full),
      ledger(paid(), webhook(1_000), webhook(1_000)),
      [],
    ],
    [
      'that were undone',
      group(paid()),
      ledger(paid(), webhook(1_000), webhook(0, { state: 'reversed', reversesAll: true })),
      [],
    ],
    [
      'in another currency with a value in US dollars',
      group(
        paid({ currency: 'EUR', amountMinor: 900, usdCents: 1_000 }),
        refund({ currency: 'EUR', amountMinor: 900, usdCents: 1_000 }),
      ),
      ledger(paid({ currency: 'EUR', amountMinor: 900, usdCents: 1_000 }), webhook(1_000)),
      [],
    ],
  ])('%s have exactly their findings', (_, exported, recorded, expected) => {
    expect(kinds(exported, recorded, { hasRefundIds: false })).toEqual(expected);
  });
});

/** What really happened to one payment. */
const truth = fc.record({
  amountMinor: fc.integer({ min: 1, max: 100_000 }),
  currency: fc.constantFrom('USD', 'EUR', 'JPY'),
  refunds: fc.uniqueArray(
    fc.record({
      ref: fc.constantFrom('re_1', 're_2', 're_3'),
      amountMinor: fc.integer({ min: 1, max: 50_000 }),
      isUndone: fc.boolean(),
    }),
    { selector: ({ ref }) => ref, maxLength: 3 },
  ),
  hasPayment: fc.boolean(),
  delivered: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
});

describe('any payment', () => {
  // @promise reconcile-finds
  test('what was delivered completely has no findings, and feeding back every finding leaves none', () => {
    fc.assert(
      fc.property(truth, ({ amountMinor, currency, refunds, hasPayment, delivered }) => {
        const usdCents = currency === 'USD' ? amountMinor : null;
        const payment = paid({ currency, amountMinor, usdCents });
        const states = refunds.flatMap(({ ref, amountMinor: part, isUndone }) => {
          const applied = refund({ ref, currency, amountMinor: part, usdCents: null });
          return isUndone ? [applied, { ...applied, state: 'reversed' as const, rank: 2 }] : [applied];
        });
        const exported = group(payment, ...states);
        // The ledger keeps the state with the highest rank of each refund.
        const keep = (facts: readonly AdjustmentFact[]) =>
          [
            ...new Map(facts.toSorted((a, b) => a.rank - b.rank).map((fact) => [fact.ref, fact])).values(),
          ].map((fact) => stored(fact));
        expect(kinds(exported, ledger(payment, ...keep(states)))).toEqual([]);

        const arrived = states.filter((_, index) => delivered[index] === true);
        const partial = ledger(hasPayment ? payment : null, ...keep(arrived));
        const findings = compareGroup(exported, partial, SCOPE);
        expect(findings.every(({ feedBack }) => feedBack === 'yes')).toBe(true);
        expect(findings.filter(({ kind }) => kind === 'missing_payment')).toHaveLength(hasPayment ? 0 : 1);
        const added = findings.flatMap(({ refundRef }) => states.filter(({ ref }) => ref === refundRef));
        const repaired = ledger(payment, ...keep([...arrived, ...added]));
        expect(kinds(exported, repaired)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('one changed amount is exactly one finding, and no finding is fed back', () => {
    fc.assert(
      fc.property(truth, fc.integer({ min: 1, max: 1_000 }), ({ amountMinor, currency, refunds }, by) => {
        const payment = paid({ currency, amountMinor, usdCents: null });
        const states = refunds.map(({ ref, amountMinor: part }) =>
          refund({ ref, currency, amountMinor: part, usdCents: null }),
        );
        const all = states.map((fact) => stored(fact));
        const other = { ...payment, amountMinor: amountMinor + by };
        expect(kinds(group(other, ...states), ledger(payment, ...all))).toEqual([['wrong_amount', null]]);
        for (const [index, fact] of states.entries()) {
          const changed = states.with(index, { ...fact, amountMinor: fact.amountMinor + by });
          expect(kinds(group(payment, ...changed), ledger(payment, ...all))).toEqual([
            ['wrong_refund', null],
          ]);
        }
      }),
      { numRuns: 300 },
    );
  });
});
