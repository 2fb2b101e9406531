import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AdjustmentFact, PaymentFact } from '../../src/domain/events.ts';
import type { EventId } from '../../src/domain/ids.ts';
import { compareGroup, paymentNotInExport, unreadableRow } from '../../src/domain/reconcile.ts';
import { CAUSE_EXPLANATIONS } from '../../src/domain/likely-causes.ts';
import { FINDING_KINDS, isDifference } from '../../src/domain/reconcile-findings.ts';
import type {
  ComparisonScope,
  Exported,
  ExportedGroup,
  Finding,
  RecordedAdjustment,
  RecordedGroup,
} from '../../src/domain/reconcile-findings.ts';

const AT = 1_790_000_000_000;
const EVENT = 'evt_1' as EventId;
const SCOPE: ComparisonScope = {
  hasRefundIds: true,
  hasRefundAmounts: true,
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

/** Fields of a finding, or matchers of them. */
type Expected = Partial<Record<keyof Finding, unknown>>;

/** Returns the same group with refunds and disputes of one kind. */
const ofKind = <G extends ExportedGroup | RecordedGroup>(one: G, kind: AdjustmentFact['kind']): G => ({
  ...one,
  adjustments: one.adjustments.map((each) =>
    'fact' in each ? { ...each, fact: { ...each.fact, kind } } : { ...each, kind },
  ),
});

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

  // @promise reconcile-finds
  test.each<[string, ExportedGroup, RecordedGroup, Expected]>([
    [
      'is in the export alone',
      group(paid()),
      ledger(null),
      {
        kind: 'missing_payment',
        recordedMinor: null,
        eventId: null,
        detail: 'No webhook has reported this payment.',
        feedBack: 'yes',
      },
    ],
    [
      'differs by a cent',
      group(paid()),
      ledger(paid({ amountMinor: 999 })),
      { recordedMinor: 999, detail: expect.stringMatching(/^The amounts differ by 1 minor units\. ./) },
    ],
    [
      'is a cent larger in the ledger',
      group(paid()),
      ledger(paid({ amountMinor: 1_001 })),
      { recordedMinor: 1_001, detail: expect.stringMatching(/^The amounts differ by 1 minor units\. ./) },
    ],
    [
      'has another value in US dollars',
      group(paid({ currency: 'EUR', usdCents: 1_100 })),
      ledger(paid({ currency: 'EUR', usdCents: 1_101 })),
      {
        currency: 'EUR',
        detail: expect.stringMatching(
          /^The values in US dollars differ: 1100 cents in the export, 1101 in the webhook\. ./,
        ),
      },
    ],
    [
      'is in another currency',
      group(paid({ currency: 'EUR', usdCents: 1_100 })),
      ledger(paid()),
      {
        currency: 'EUR',
        detail: expect.stringMatching(
          /^The export states the payment in EUR, the webhook stated it in USD\. ./,
        ),
      },
    ],
    [
      'is in another currency without a value in US dollars on either side',
      group(paid({ currency: 'EUR', usdCents: null })),
      ledger(paid({ usdCents: null })),
      { currency: 'EUR', detail: expect.stringMatching(/^The export states the payment in EUR/) },
    ],
  ])(
    'where a payment %s, a finding has its place, its customer and both amounts',
    (_, exported, recorded, one) => {
      expect(compareGroup(exported, recorded, SCOPE)).toEqual([
        {
          kind: 'wrong_amount',
          at: AT,
          line: 2,
          store: 'stripe',
          paymentRef: 'in_1',
          refundRef: null,
          customerUserId: 'user-1',
          currency: 'USD',
          exportedMinor: 1_000,
          recordedMinor: 1_000,
          eventId: EVENT,
          cause: null,
          feedBack: null,
          ...one,
        },
      ]);
    },
  );

  test('a missing payment whose row names no user has no customer', () => {
    const exported = { ...group(null), payment: listed(paid(), { userIds: [] }) };
    expect(compareGroup(exported, ledger(null), SCOPE)).toMatchObject([{ customerUserId: null }]);
  });

  test('a value in US dollars that the webhook did not state is no difference', () => {
    expect(
      kinds(group(paid({ currency: 'EUR' })), ledger(paid({ currency: 'EUR', usdCents: null }))),
    ).toEqual([]);
  });

  test('a payment that the export does not have, and a row that cannot be read, are findings', () => {
    const { payment } = ledger(paid());
    const nothing = { refundRef: null, cause: null, feedBack: null, exportedMinor: null };
    expect(payment && paymentNotInExport(payment)).toEqual({
      ...nothing,
      kind: 'payment_not_in_export',
      at: AT,
      line: null,
      store: 'stripe',
      paymentRef: 'in_1',
      customerUserId: 'user-1',
      currency: 'USD',
      recordedMinor: 1_000,
      eventId: EVENT,
      detail: 'A webhook reported this payment, and the export does not have it.',
    });
    expect(unreadableRow(7, 'The column `price` is empty.')).toEqual({
      ...nothing,
      kind: 'unreadable',
      at: null,
      line: 7,
      store: null,
      paymentRef: null,
      customerUserId: null,
      currency: null,
      recordedMinor: null,
      eventId: null,
      detail: 'The column `price` is empty.',
    });
  });

  test('the findings about one payment are in the order of reports', () => {
    const recorded = ledger(
      { ...paid({ amountMinor: 999 }), likelyCause: 'user_never_identified' },
      stored(refund({ ref: 're_2' })),
      stored(refund({ ref: 're_3', amountMinor: 100 })),
    );
    const earnedNothing = {
      ...recorded,
      payment: recorded.payment && { ...recorded.payment, earnedCents: 0 },
    };
    const exported = group(paid(), refund({ ref: 're_3' }), refund());
    expect(compareGroup(exported, earnedNothing, SCOPE).map(({ kind }) => kind)).toEqual([
      'missing_refund',
      'wrong_amount',
      'wrong_refund',
      'refund_not_in_export',
      'earned_nothing',
    ]);
  });

  test.each<[number, 'user_never_identified' | null, readonly unknown[]]>([
    [0, 'user_never_identified', [['earned_nothing', null]]],
    [0, null, []],
    [1, 'user_never_identified', []],
  ])(
    'a payment that earned %d cents with the likely cause %s has the findings %j',
    (earnedCents, likelyCause, expected) => {
      const recorded = ledger(paid());
      const payment = recorded.payment && { ...recorded.payment, earnedCents, likelyCause };
      expect(kinds(group(paid()), { ...recorded, payment })).toEqual(expected);
    },
  );

  describe('of which the ledger has a part as received outside the provider', () => {
    const outside = (amountMinor: number, over: Partial<AdjustmentFact> = {}) =>
      refund({ kind: 'out_of_band', ref: `inpay_${amountMinor}`, amountMinor, usdCents: null, ...over });
    const differs = [['wrong_amount', null]];
    test.each<[string, number, readonly RecordedAdjustment[], readonly unknown[]]>([
      ['may be without it in the export', 700, [stored(outside(300))], []],
      ['may be without several parts in the export', 600, [stored(outside(300)), stored(outside(100))], []],
      ['differs where the export is a cent lower', 699, [stored(outside(300))], differs],
      ['differs where the export is a cent higher', 701, [stored(outside(300))], differs],
      ['is complete where the part came back', 1_000, [stored(outside(300, { state: 'reversed' }))], []],
      [
        'is complete where the part is in another currency',
        1_000,
        [stored(outside(300, { currency: 'EUR' }))],
        [],
      ],
      [
        'is complete with a refund, which is not deducted',
        1_000,
        [stored(outside(300, { kind: 'refund' }))],
        [],
      ],
    ])('%s', (_, amountMinor, adjustments, expected) => {
      const recorded = ledger(paid({ usdCents: null }), ...adjustments);
      expect(kinds(group(paid({ amountMinor, usdCents: null })), recorded, { hasRefunds: false })).toEqual(
        expected,
      );
    });

    test('may be without it in an export that lists a refund', () => {
      const recorded = ledger(paid({ usdCents: null }), stored(outside(300)), stored(refund()));
      expect(kinds(group(paid({ amountMinor: 700, usdCents: null }), refund()), recorded)).toEqual([]);
    });

    // @promise reconcile-out-of-band
    test('is complete in an export that lists the part, and what it lists and no webhook reported is a finding', () => {
      const [known, unknown] = [outside(300), outside(200)];
      expect(kinds(group(paid(), known), ledger(paid(), stored(known)))).toEqual([]);
      expect(kinds(group(paid({ amountMinor: 700 }), known), ledger(paid(), stored(known)))).toEqual(differs);
      const exported = group(paid(), refund(), known, unknown);
      expect(compareGroup(exported, ledger(paid(), stored(known), stored(refund())), SCOPE)).toEqual([
        {
          kind: 'missing_refund',
          at: AT,
          line: 2,
          store: 'stripe',
          paymentRef: 'in_1',
          refundRef: 'inpay_200',
          customerUserId: 'user-1',
          currency: 'USD',
          exportedMinor: 200,
          recordedMinor: null,
          eventId: null,
          cause: null,
          detail: 'No webhook has reported that a part of this payment was received outside the provider.',
          feedBack: 'yes',
        },
      ]);
      const refused = { ...group(paid()), adjustments: [listed(unknown, { refusal: 'It names no user.' })] };
      expect(kinds(refused, ledger(paid()))).toEqual([['missing_refund', 'It names no user.']]);
    });
  });

  test('a payment that earned nothing is a finding with its cause, and no difference', () => {
    const recorded = ledger({ ...paid(), likelyCause: 'user_never_identified' });
    const nothing = { ...recorded, payment: recorded.payment && { ...recorded.payment, earnedCents: 0 } };
    const findings = compareGroup(group(paid()), nothing, SCOPE);
    expect(findings).toEqual([
      expect.objectContaining({
        kind: 'earned_nothing',
        cause: 'user_never_identified',
        detail: CAUSE_EXPLANATIONS.user_never_identified,
        customerUserId: 'user-1',
        exportedMinor: 1_000,
        recordedMinor: 1_000,
        eventId: EVENT,
      }),
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
    ['a cent less than the payment', group(paid(), refund({ amountMinor: 999 })), ledger(paid()), 'no'],
    ['more than the payment', group(paid(), refund({ amountMinor: 1_001 })), ledger(paid()), 'yes'],
    [
      'the whole payment in another currency, by the values in US dollars',
      group(paid(), refund({ currency: 'EUR', amountMinor: 900, usdCents: 1_000 })),
      ledger(paid()),
      'yes',
    ],
    [
      'a cent less than the payment in another currency, by the values in US dollars',
      group(paid(), refund({ currency: 'EUR', amountMinor: 1_100, usdCents: 999 })),
      ledger(paid()),
      'no',
    ],
    [
      'an amount in another currency whose value in US dollars is not known',
      group(paid(), refund({ currency: 'EUR', amountMinor: 5_000, usdCents: null })),
      ledger(paid()),
      'no',
    ],
    [
      'a payment in another currency whose value in US dollars is not known',
      group(paid({ usdCents: null }), refund({ currency: 'EUR', amountMinor: 5_000, usdCents: 5_000 })),
      ledger(paid({ usdCents: null })),
      'no',
    ],
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

  // @promise reconcile-finds
  test.each<[string, ExportedGroup, RecordedGroup, Expected]>([
    [
      'is in the export alone',
      group(paid(), fact),
      ledger(paid()),
      { kind: 'missing_refund', exportedMinor: 400, recordedMinor: null, eventId: null, feedBack: 'yes' },
    ],
    [
      'came back in the export alone',
      group(paid(), refund({ state: 'reversed', rank: 2 })),
      ledger(paid(), stored(fact)),
      { kind: 'missing_refund', exportedMinor: 0, recordedMinor: 400, feedBack: 'yes' },
    ],
    [
      'came back in the ledger alone',
      group(paid(), fact),
      ledger(paid(), stored(refund({ state: 'reversed' }))),
      { kind: 'wrong_refund', exportedMinor: 400, recordedMinor: 0 },
    ],
    [
      'is of another amount',
      group(paid(), fact),
      ledger(paid(), stored(refund({ amountMinor: 399 }))),
      { kind: 'wrong_refund', exportedMinor: 400, recordedMinor: 399 },
    ],
    [
      'is of the same amount in another currency',
      group(paid(), fact),
      ledger(paid(), stored(refund({ currency: 'CAD' }))),
      { kind: 'wrong_refund', exportedMinor: 400, recordedMinor: 400 },
    ],
    [
      'was undone by an adjustment of its own in the export alone',
      group(paid(), fact, refund({ ref: 'adj_2', state: 'reversed', reversesAll: true })),
      ledger(paid(), stored(fact)),
      {
        kind: 'missing_refund',
        refundRef: 'adj_2',
        exportedMinor: null,
        recordedMinor: null,
        eventId: null,
        feedBack: 'yes',
      },
    ],
    [
      'is in the ledger alone',
      group(paid()),
      ledger(paid(), stored(fact)),
      { kind: 'refund_not_in_export', exportedMinor: null, recordedMinor: 400 },
    ],
  ])(
    'where a refund %s, a finding has its place, its customer and both amounts',
    (_, exported, recorded, one) => {
      for (const kind of ['refund', 'chargeback'] as const) {
        const findings = compareGroup(ofKind(exported, kind), ofKind(recorded, kind), SCOPE);
        expect(findings).toEqual([
          {
            at: AT,
            line: 2,
            store: 'stripe',
            paymentRef: 'in_1',
            refundRef: 're_1',
            customerUserId: 'user-1',
            currency: 'USD',
            eventId: EVENT,
            cause: null,
            detail: expect.stringMatching(
              kind === 'refund' ? /^[A-Z].*\brefund\b.*\.$/ : /^[A-Z].*\bdispute\b.*\.$/,
            ),
            feedBack: null,
            ...one,
          },
        ]);
      }
    },
  );

  test.each<[string, ExportedGroup, RecordedGroup, Expected]>([
    ['only in the ledger', group(null), ledger(paid()), { line: null, customerUserId: 'user-1' }],
    ['only in the export', group(paid()), ledger(null), { line: 2, customerUserId: null }],
    [
      'in neither of them',
      group(null),
      ledger(null),
      { line: null, store: null, paymentRef: null, customerUserId: null },
    ],
  ])(
    'a refund of the ledger alone whose payment is %s names what is known of it',
    (_, exported, recorded, known) => {
      const findings = compareGroup(exported, { ...recorded, adjustments: [stored(fact)] }, SCOPE);
      expect(findings.filter(({ kind }) => kind === 'refund_not_in_export')).toMatchObject([
        { store: 'stripe', paymentRef: 'in_1', refundRef: 're_1', recordedMinor: 400, ...known },
      ]);
    },
  );

  // @promise reconcile-finds
  test.each([
    ['a millisecond before the range is not', AT - 1_001, false],
    ['at the beginning of the range is', AT - 1_000, true],
    ['at the end of the range is', AT + 1_000, true],
    ['a millisecond after the range is not', AT + 1_001, false],
  ])('a refund of the ledger %s expected in the export', (_, at, isExpected) => {
    for (const hasRefundIds of [true, false]) {
      expect(kinds(group(paid()), ledger(paid(), stored(fact, at)), { hasRefundIds })).toEqual(
        isExpected ? [['refund_not_in_export', null]] : [],
      );
    }
  });

  test('a refund of the export is compared with the ledger also outside of the range of the export', () => {
    for (const at of [AT - 5_000, AT + 5_000]) {
      expect(kinds(group(paid(), fact), ledger(paid(), stored(fact, at)))).toEqual([]);
      expect(kinds(group(paid(), fact), ledger(paid(), stored(refund({ amountMinor: 399 }), at)))).toEqual([
        ['wrong_refund', null],
      ]);
    }
  });

  describe('undone', () => {
    const undoing = refund({ ref: 'adj_2', state: 'reversed', reversesAll: true });
    const gone = [['refund_not_in_export', null]];
    test.each<[string, RecordedAdjustment, readonly unknown[]]>([
      ['at the same moment takes its money back no more', stored(undoing), []],
      ['later takes its money back no more', stored(undoing, AT + 1), []],
      ['before it was made still takes its money back', stored(undoing, AT - 1), gone],
      ['for disputes alone still takes its money back', stored({ ...undoing, kind: 'chargeback' }), gone],
      [
        'as one other refund that failed still takes its money back',
        stored({ ...undoing, reversesAll: false }),
        gone,
      ],
    ])('a refund of the ledger that was undone %s', (_, other, expected) => {
      expect(kinds(group(paid()), ledger(paid(), stored(fact), other))).toEqual(expected);
    });

    test('a refund that the ledger has as undone differs from the export unless that has undone it, too', () => {
      const recorded = ledger(paid(), stored(fact), stored(undoing, AT + 1));
      const wrong = ['wrong_refund', null];
      expect(kinds(group(paid(), fact, undoing), recorded)).toEqual([]);
      expect(kinds(group(paid(), fact), recorded)).toEqual([wrong]);
      const ofDisputes = { ...undoing, ref: 'adj_3', kind: 'chargeback' } as const;
      expect(kinds(group(paid(), fact, ofDisputes), recorded)).toEqual([['missing_refund', 'yes'], wrong]);
      const failed = refund({ ref: 're_3', state: 'reversed' });
      expect(kinds(group(paid(), fact, failed), recorded)).toEqual([wrong]);
    });

    // @promise reconcile-refuses
    test('an undoing of refunds that may not be fed back says why', () => {
      const exported = {
        ...group(paid(), fact),
        adjustments: [listed(fact), listed(undoing, { refusal: 'No.' })],
      };
      expect(kinds(exported, ledger(paid(), stored(fact)))).toEqual([['missing_refund', 'No.']]);
      expect(
        kinds(group(paid(), fact, undoing), ledger(paid(), stored(fact)), { partialRefusal: 'no' }),
      ).toEqual([['missing_refund', 'yes']]);
    });
  });

  test.each<[string, Partial<AdjustmentFact>, number, Partial<AdjustmentFact>, number]>([
    ['of a higher rank, although it is earlier', { rank: 1 }, AT + 1, { rank: 2 }, AT],
    ['that is later, of two of one rank', { rank: 1 }, AT, { rank: 1 }, AT + 1],
  ])('of two rows about one refund the one %s counts, in either order', (_, old, oldAt, latest, latestAt) => {
    const rows = [
      listed(refund({ ...old, amountMinor: 300 }), { at: oldAt }),
      listed(refund({ ...latest, amountMinor: 400 }), { at: latestAt }),
    ];
    for (const adjustments of [rows, rows.toReversed()])
      expect(kinds({ ...group(paid()), adjustments }, ledger(paid(), stored(fact)))).toEqual([]);
  });

  test('of two rows about one refund with one rank and one time the last one of the file counts', () => {
    const exported = group(paid(), refund({ amountMinor: 300 }), refund({ amountMinor: 400 }));
    expect(kinds(exported, ledger(paid(), stored(fact)))).toEqual([]);
  });

  test('what was returned with a credit note or received outside the provider is no refund that the export has to have', () => {
    for (const kind of ['credit_note', 'out_of_band'] as const) {
      const recorded = ledger(paid({ amountMinor: 1_400 }), stored(refund({ kind })));
      const exported = group(paid({ amountMinor: kind === 'out_of_band' ? 1_000 : 1_400 }));
      for (const hasRefundIds of [true, false])
        expect(kinds(exported, recorded, { hasRefundIds })).toEqual([]);
    }
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

  test.each<[string, Partial<AdjustmentFact>]>([
    ['all of its money', { amountMinor: 1_000 }],
    ['more than its money', { amountMinor: 1_001 }],
    ['money in another currency', { amountMinor: 400, currency: 'EUR' }],
  ])('a dispute is won where %s came back', (_, over) => {
    const returned = { ...lost, state: 'reversed', ...over } as const;
    const won = [['missing_refund', 'yes']];
    expect(kinds(group(paid(), returned), ledger(paid(), stored(lost)))).toEqual(won);
    for (const rows of [
      [lost, returned],
      [{ ...returned, rank: 3 }, lost],
    ])
      expect(kinds(group(paid(), ...rows), ledger(paid(), stored(lost)))).toEqual(won);
  });

  test('a refund failed also where a smaller amount than its own came back', () => {
    const failed = refund({ state: 'reversed', rank: 2, amountMinor: 399 });
    expect(kinds(group(paid(), fact, failed), ledger(paid(), stored(fact)))).toEqual([
      ['missing_refund', 'yes'],
    ]);
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

  test('an export that only says that a payment is refunded states no other amount than the webhooks', () => {
    const scope = { hasRefundIds: false, hasRefundAmounts: false };
    for (const amount of [1, 400, 999, 1_000])
      expect(kinds(group(paid(), full), ledger(paid(), webhook(amount)), scope)).toEqual([]);
    expect(kinds(group(paid(), full), ledger(paid()), scope)).toEqual([['missing_refund', 'yes']]);
    expect(kinds(group(paid()), ledger(paid(), webhook(400)), scope)).toEqual([
      ['refund_not_in_export', null],
    ]);
  });

  test.each<[string, ExportedGroup, RecordedGroup, Expected]>([
    [
      'is in the export alone',
      group(paid(), full),
      ledger(paid()),
      { kind: 'missing_refund', feedBack: 'yes' },
    ],
    [
      'is in the export in full, and in the ledger in part',
      group(paid(), full),
      ledger(paid(), webhook(999)),
      {
        kind: 'missing_refund',
        recordedMinor: 999,
        eventId: EVENT,
        detail: 'The webhooks have reported only a part of this refund.',
        feedBack: 'yes',
      },
    ],
    [
      'is larger in the ledger',
      group(paid(), part),
      ledger(paid(), webhook(200), webhook(201)),
      {
        kind: 'wrong_refund',
        exportedMinor: 400,
        recordedMinor: 401,
        eventId: EVENT,
        detail: expect.stringMatching(/^What was refunded of this payment differs\. ./),
      },
    ],
    [
      'is larger in the export, and not of the whole payment',
      group(paid(), part),
      ledger(paid(), webhook(399)),
      {
        kind: 'wrong_refund',
        exportedMinor: 400,
        recordedMinor: 399,
        eventId: EVENT,
        detail: expect.stringMatching(/^What was refunded of this payment differs\. ./),
      },
    ],
    [
      'is of the whole payment in the ledger alone',
      group(paid(), part),
      ledger(paid(), webhook(700), webhook(700)),
      {
        kind: 'wrong_refund',
        exportedMinor: 400,
        recordedMinor: 1_000,
        eventId: EVENT,
        detail: expect.stringMatching(/^What was refunded of this payment differs\. ./),
      },
    ],
    [
      'is of more than the payment',
      group(paid(), refund({ ref: 'reconciliation:refund', amountMinor: 1_001 })),
      ledger(paid()),
      { kind: 'missing_refund', feedBack: 'yes' },
    ],
    [
      'is in the ledger alone',
      group(paid()),
      ledger(paid(), webhook(300), webhook(100)),
      {
        kind: 'refund_not_in_export',
        refundRef: 'A1B2',
        exportedMinor: null,
        recordedMinor: 400,
        eventId: EVENT,
        detail: 'A webhook reported this refund or dispute, and the export does not have it.',
      },
    ],
    [
      'is of a payment that the ledger alone has',
      group(null, part),
      ledger(paid(), webhook(399)),
      {
        kind: 'wrong_refund',
        exportedMinor: 400,
        recordedMinor: 399,
        eventId: EVENT,
        detail: expect.stringMatching(/^What was refunded of this payment differs\. ./),
      },
    ],
    [
      'is of a payment that neither has',
      group(null, full),
      ledger(null),
      { kind: 'missing_refund', feedBack: 'The export does not have the payment of this refund.' },
    ],
  ])(
    'where a refund %s, a finding has its place, its customer and both totals',
    (_, exported, recorded, one) => {
      expect(compareGroup(exported, recorded, { ...SCOPE, hasRefundIds: false })).toEqual([
        {
          at: AT,
          line: 2,
          store: 'stripe',
          paymentRef: 'in_1',
          refundRef: null,
          customerUserId: 'user-1',
          currency: 'USD',
          exportedMinor: 1_000,
          recordedMinor: null,
          eventId: null,
          cause: null,
          detail: 'No webhook has reported this refund.',
          feedBack: null,
          ...one,
        },
      ]);
    },
  );

  test('a refund whose row names no user is of the customer of the payment, if the ledger has that', () => {
    const exported = { ...group(null), adjustments: [listed(full, { userIds: [] })] };
    const customers = (recorded: RecordedGroup) =>
      compareGroup(exported, recorded, { ...SCOPE, hasRefundIds: false }).map((one) => one.customerUserId);
    expect(customers(ledger(paid()))).toEqual(['user-1']);
    expect(customers(ledger(null))).toEqual([null]);
  });

  // @promise reconcile-refuses
  test('a refund that may not be fed back says why, whether it is of all or of a part of the payment', () => {
    for (const fact of [full, part]) {
      const exported = { ...group(paid()), adjustments: [listed(fact, { refusal: 'It names no user.' })] };
      expect(kinds(exported, ledger(paid()), { hasRefundIds: false })).toEqual([
        ['missing_refund', 'It names no user.'],
      ]);
    }
  });

  test.each<[string, ExportedGroup, RecordedGroup, readonly unknown[]]>([
    [
      'that failed in the export, and that no webhook reported',
      group(paid(), { ...full, state: 'reversed' }),
      ledger(paid()),
      [],
    ],
    [
      'that failed in the export alone',
      group(paid(), { ...full, state: 'reversed' }),
      ledger(paid(), webhook(1_000)),
      [['refund_not_in_export', null]],
    ],
    [
      'that failed in the ledger alone',
      group(paid(), full),
      ledger(paid(), webhook(1_000, { state: 'reversed' })),
      [['missing_refund', 'yes']],
    ],
    [
      'of a payment that neither has, which a webhook reported',
      group(null, full),
      ledger(null, webhook(400)),
      [],
    ],
    ['of a payment that neither has, in the ledger alone', group(null), ledger(null, webhook(400)), []],
    ['that nobody has, of a payment that neither has', group(null), ledger(null), []],
    [
      'of two parts that the ledger has as one',
      group(paid(), part, { ...part, ref: 'reconciliation:refund:2', amountMinor: 600 }),
      ledger(paid(), webhook(1_000)),
      [],
    ],
    [
      'in another currency with half the value in US dollars',
      group(
        paid(),
        refund({ ref: 'reconciliation:refund', currency: 'EUR', amountMinor: 450, usdCents: 500 }),
      ),
      ledger(paid(), webhook(500)),
      [],
    ],
    [
      'in another currency with a cent more in US dollars',
      group(
        paid(),
        refund({ ref: 'reconciliation:refund', currency: 'EUR', amountMinor: 450, usdCents: 501 }),
      ),
      ledger(paid(), webhook(500)),
      [['wrong_refund', null]],
    ],
    [
      'whose amounts cannot be compared with the payment, on both sides',
      group(paid(), refund({ ref: 'reconciliation:refund', currency: 'EUR', usdCents: null })),
      ledger(paid(), webhook(400, { currency: 'EUR', usdCents: null })),
      [['wrong_refund', null]],
    ],
    [
      'whose amount in the export cannot be compared with the payment',
      group(paid(), refund({ ref: 'reconciliation:refund', currency: 'EUR', usdCents: null })),
      ledger(paid()),
      [['missing_refund', expect.stringContaining('could count twice')]],
    ],
    [
      'of the whole payment of which the ledger has an amount that cannot be compared',
      group(paid(), full),
      ledger(paid(), webhook(400, { currency: 'EUR', usdCents: null })),
      [['missing_refund', 'yes']],
    ],
    [
      'of which one amount can be compared with the payment and one cannot',
      group(paid(), part),
      ledger(paid(), webhook(400), webhook(100, { currency: 'EUR', usdCents: null })),
      [['wrong_refund', null]],
    ],
  ])('%s have exactly these findings', (_, exported, recorded, expected) => {
    expect(kinds(exported, recorded, { hasRefundIds: false })).toEqual(expected);
  });

  test('a refund of the ledger alone that cannot be compared with the payment is a finding with its own amount', () => {
    const recorded = ledger(paid(), webhook(900, { currency: 'EUR', usdCents: null }));
    expect(compareGroup(group(paid()), recorded, { ...SCOPE, hasRefundIds: false })).toMatchObject([
      { kind: 'refund_not_in_export', currency: 'EUR', recordedMinor: 900 },
    ]);
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

test('every finding but a payment that earned nothing is a difference between the export and the ledger', () => {
  expect(FINDING_KINDS.filter((kind) => !isDifference({ kind }))).toEqual(['earned_nothing']);
});

test.each<[string, readonly string[], RecordedGroup, string | null]>([
  [
    'the one that the export names, before that of the ledger',
    ['user-2', 'user-3'],
    ledger(paid()),
    'user-2',
  ],
  ['the one of the stored payment, where the export names none', [], ledger(paid()), 'user-1'],
  ['nobody, where neither names one', [], ledger(null), null],
])('the customer of a missing refund is %s', (_, userIds, recorded, customerUserId) => {
  const exported = { ...group(null), adjustments: [listed(refund(), { userIds })] };
  expect(compareGroup(exported, recorded, SCOPE)).toMatchObject([{ kind: 'missing_refund', customerUserId }]);
});
