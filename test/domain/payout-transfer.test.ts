import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import {
  consequenceOf,
  MOST_OTHERS,
  MOST_TRANSFERS,
  tellsTransfer,
  withTransferReferences,
} from '../../src/domain/payout-transfer.ts';
import type { ReportedTransfers, StatedItem } from '../../src/domain/payout-transfer.ts';

const item = (over: Partial<StatedItem> = {}): StatedItem => ({
  state: null,
  statedPosition: over.state === undefined || over.state === null ? null : (over.position ?? 1),
  statedReference: over.state === undefined || over.state === null ? null : 'A1',
  position: 0,
  cameBack: over.state === 'returned',
  returnedReference: over.state === 'returned' ? 'A1' : null,
  isSentAgain: false,
  others: [],
  ...over,
});

/** What a report says of transfers, by their references. */
const said = (over: Partial<ReportedTransfers> & Pick<ReportedTransfers, 'state'>): ReportedTransfers => ({
  arrived: [],
  underWay: [],
  cameBack: [],
  isContradictory: false,
  hasUnnamedArrival: false,
  ...over,
});
const sent = (...arrived: string[]) => said({ state: 'sent', arrived });
const returned = (...cameBack: string[]) => said({ state: 'returned', cameBack });
const pending = (...underWay: string[]) => said({ state: 'pending', underWay });

const hasArrived = (reference: string) => ({ reference, hasArrived: true });
const mayArrive = (reference: string) => ({ reference, hasArrived: false });

const NOTHING = { statements: [], others: [], isConflict: false };

describe('what a payment service reports of a payout', () => {
  test.each([
    [sent('A1'), null, ['sent']],
    [sent('A1'), 'sent', []],
    [returned('A1'), null, ['sent', 'returned']],
    [returned('A1'), 'sent', ['returned']],
    [returned('A1'), 'returned', []],
  ] as const)('as %j states where the money is %s: %j', (reported, state, statements) => {
    expect(consequenceOf(reported, item({ state, position: 1 }))).toEqual({ ...NOTHING, statements });
  });

  test('states nothing when a later run sends the money again, or the payout has no room for it', () => {
    expect(consequenceOf(returned('A1'), item({ state: 'sent', isSentAgain: true }))).toEqual(NOTHING);
    expect(consequenceOf(returned('A1'), item({ position: MOST_TRANSFERS - 1 })).statements).toEqual([]);
    expect(consequenceOf(sent('A1'), item({ position: MOST_TRANSFERS - 1 })).statements).toEqual(['sent']);
  });

  test.each([
    [sent('A1'), null, MOST_TRANSFERS - 1, ['sent']],
    [sent('A1'), null, MOST_TRANSFERS, []],
    [returned('A1'), null, MOST_TRANSFERS - 2, ['sent', 'returned']],
    [returned('A1'), null, MOST_TRANSFERS - 1, []],
    [returned('A1'), 'sent', MOST_TRANSFERS - 1, ['returned']],
    [returned('A1'), 'sent', MOST_TRANSFERS, []],
  ] as const)(
    'as %j, where the money is %s after %i statements, states what there is room for: %j',
    (reported, state, position, statements) => {
      expect(consequenceOf(reported, item({ state, position })).statements).toEqual(statements);
    },
  );

  test('keeps a hundred other transfers of a payout at most, and is a conflict where there is no room for more', () => {
    const kept = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ ...mayArrive(`K${n + 1}`), position: 0 }));
    const almost = item({ others: kept(MOST_OTHERS - 1) });
    expect(consequenceOf(pending('A1'), almost)).toEqual({ ...NOTHING, others: [mayArrive('A1')] });
    expect(consequenceOf(pending('A1', 'B2'), almost)).toEqual({
      ...NOTHING,
      others: [mayArrive('A1')],
      isConflict: true,
    });
    const full = item({ others: kept(MOST_OTHERS) });
    expect(consequenceOf(pending('A1'), full)).toEqual({ ...NOTHING, isConflict: true });
    expect(consequenceOf(pending('K1'), full)).toEqual(NOTHING);
    expect(consequenceOf(sent('A1'), item({ others: kept(MOST_OTHERS + 1) }))).toEqual({
      ...NOTHING,
      statements: ['sent'],
    });
  });

  test('keeps what arrived where there is no room to state it', () => {
    const full = item({ position: MOST_TRANSFERS });
    expect(consequenceOf(sent('A1'), full)).toEqual({ ...NOTHING, others: [hasArrived('A1')] });
  });

  test.each([
    ['was sent by hand after it came back', 'sent'],
    ['came back by mistake, which was withdrawn', 'sent'],
    ['came back by mistake, and both statements were withdrawn', null],
  ] as const)('states nothing of money that %s: the report is an old one', (_, state) => {
    const old = item({ state, position: 3, cameBack: true, returnedReference: 'A1' });
    for (const reported of [sent('A1'), returned('A1')])
      expect(consequenceOf(reported, old)).toEqual(NOTHING);
  });

  test.each([
    ['another transfer', sent('B2'), [hasArrived('B2')]],
    ['the same transfer', sent('A1'), [hasArrived('A1')]],
    ['a transfer without a reference', sent(), [hasArrived('')]],
    ['another transfer that is under way', pending('B2'), [mayArrive('B2')]],
    [
      'one of two transfers, of which the other one is under way,',
      said({ state: 'sent', underWay: ['B2'] }),
      [mayArrive('B2'), hasArrived('')],
    ],
  ])('is a conflict where the money came back and %s says that it did not', (_, reported, others) => {
    const now = item({ state: 'returned', position: 2 });
    expect(consequenceOf(reported, now)).toEqual({ statements: [], others, isConflict: true });
    const kept = others.map((transfer) => ({ ...transfer, position: 2 }));
    expect(consequenceOf(reported, { ...now, others: kept })).toEqual({ ...NOTHING, isConflict: true });
    // Somebody has withdrawn the return and stated another one.
    const decided = { ...now, position: 4, statedPosition: 4, statedReference: null, others: kept };
    expect(consequenceOf(reported, decided)).toEqual(NOTHING);
  });

  test.each([
    ['before the return', false, 1, false],
    ['since the return', true, 2, false],
    ['since the return, after which something was stated and withdrawn,', true, 3, false],
    ['before the money was sent again', false, 3, true],
    ['since the money was sent again', true, 4, true],
  ])(
    'of a transfer that was kept as arrived %s is a conflict: %s',
    (_, isConflict, position, isSentAgain) => {
      const others = [{ ...hasArrived('B2'), position }];
      const now = item({ state: 'returned', statedPosition: 2, position: 4, isSentAgain, others });
      expect(consequenceOf(sent('B2'), now)).toEqual({ ...NOTHING, isConflict });
    },
  );

  test.each([
    ['the one that came back, as an old report has it', pending('A1')],
    ['one without a reference', pending()],
  ])('is no conflict where the money came back and the transfer under way is %s', (_, reported) => {
    expect(consequenceOf(reported, item({ state: 'returned', position: 2 }))).toEqual(NOTHING);
  });

  test.each([
    ['another transfer arrived', { statedReference: 'B2' }, returned('A1')],
    ['a transfer was stated as sent that nobody can tell from it', { statedReference: null }, returned('A1')],
    ['the report has no references', {}, returned()],
    [
      'a further transfer arrived or is under way',
      { others: [{ ...mayArrive('B2'), position: 1 }] },
      returned('A1'),
    ],
  ])('is a conflict where a transfer came back and %s', (_, over, reported) => {
    const now = item({ state: 'sent', position: 1, ...over });
    expect(consequenceOf(reported, now)).toEqual({ ...NOTHING, isConflict: true });
  });

  test('states a return once all transfers came back that reports have named', () => {
    const now = item({ state: 'sent', position: 1, others: [{ ...hasArrived('B2'), position: 1 }] });
    expect(consequenceOf(returned('B2', 'A1'), now)).toEqual({ ...NOTHING, statements: ['returned'] });
  });

  test('keeps what is under way: a file that was uploaded before may be reported as denied later', () => {
    const first = consequenceOf(pending('B2'), item());
    expect(first).toEqual({ ...NOTHING, others: [mayArrive('B2')] });
    const now = item({ others: [{ ...mayArrive('B2'), position: 0 }] });
    expect(consequenceOf(pending('B2'), now)).toEqual(NOTHING);
    expect(consequenceOf(returned('A1'), now)).toEqual({ ...NOTHING, isConflict: true });
    expect(consequenceOf(returned('B2'), now).statements).toEqual(['sent', 'returned']);
  });

  test('is a conflict, and states what arrived, where one transfer arrived and another one came back', () => {
    const both = { ...sent('B2'), cameBack: ['A1'], isContradictory: true };
    expect(consequenceOf(both, item())).toEqual({ statements: ['sent'], others: [], isConflict: true });
    const now = item({ state: 'sent', statedReference: 'B2', position: 1 });
    expect(consequenceOf(both, now)).toEqual(NOTHING);
  });

  test('is a conflict where two transfers arrived, until somebody has stated something', () => {
    const twice = { ...sent('A1', 'B2'), isContradictory: true };
    expect(consequenceOf(twice, item())).toEqual({
      statements: ['sent'],
      others: [hasArrived('B2')],
      isConflict: true,
    });
    const now = item({ state: 'sent', position: 1 });
    expect(consequenceOf(sent('B2'), now)).toEqual({
      statements: [],
      others: [hasArrived('B2')],
      isConflict: true,
    });
    const kept = [{ ...hasArrived('B2'), position: 1 }];
    expect(consequenceOf(sent('B2'), { ...now, others: kept })).toEqual({ ...NOTHING, isConflict: true });
    expect(consequenceOf(sent('B2'), { ...now, position: 3, others: kept })).toEqual(NOTHING);
  });

  test.each([
    ['returned', 2],
    ['sent', 3],
  ] as const)(
    'is a conflict where a transfer arrived that was under way when the money was stated as %s',
    (state, position) => {
      const kept = [{ ...mayArrive('B2'), position: 1 }];
      const now = item({ state, position, others: kept });
      expect(consequenceOf(pending('B2'), now)).toEqual(NOTHING);
      expect(consequenceOf(sent('B2'), now)).toEqual({
        ...NOTHING,
        others: [hasArrived('B2')],
        isConflict: true,
      });
      // And it stays one when the report comes again, until somebody states something.
      const seen = [...kept, { ...hasArrived('B2'), position }];
      expect(consequenceOf(sent('B2'), { ...now, others: seen })).toEqual({ ...NOTHING, isConflict: true });
      const decided = item({ state, position: position + 2, others: seen });
      expect(consequenceOf(sent('B2'), decided)).toEqual(NOTHING);
    },
  );

  test('is a conflict where the first transfer of money arrived that was sent again', () => {
    const again = item({ returnedReference: 'A1', isSentAgain: true, position: 2 });
    expect(consequenceOf(sent('B2'), again)).toEqual({
      statements: [],
      others: [hasArrived('B2')],
      isConflict: true,
    });
    expect(consequenceOf(sent(), again)).toEqual({
      statements: [],
      others: [hasArrived('')],
      isConflict: true,
    });
    // An old report of the transfer that came back.
    expect(consequenceOf(sent('A1'), again)).toEqual(NOTHING);
  });

  test('of a transfer that had arrived before the mark, and of another one, is a conflict about the other one, and both are kept', () => {
    const marked = item({
      state: 'sent',
      statedReference: null,
      position: 3,
      others: [{ ...hasArrived('A1'), position: 1 }],
    });
    expect(consequenceOf(sent('A1', 'B2'), marked)).toEqual({
      statements: [],
      others: [hasArrived('B2'), hasArrived('A1')],
      isConflict: true,
    });
  });

  test('is about the transfer that was marked as sent by hand, which the first report names, and not a later one', () => {
    const marked = item({ state: 'sent', statedReference: null, position: 1 });
    expect(consequenceOf(pending('A1'), marked)).toEqual(NOTHING);
    expect(consequenceOf(sent('A1'), marked)).toEqual({ ...NOTHING, others: [hasArrived('A1')] });
    expect(consequenceOf(sent('A1', 'B2'), marked).isConflict).toBe(true);
    // In whatever order of the alphabet.
    const both = { ...marked, others: ['B2', 'A1'].map((one) => ({ ...hasArrived(one), position: 1 })) };
    expect(consequenceOf(sent('B2'), both)).toEqual(NOTHING);
    expect(consequenceOf(sent('A1'), both)).toEqual({ ...NOTHING, isConflict: true });
    // What was kept before the mark says nothing of it, and the transfer that came back is not its payment.
    const anew = {
      ...marked,
      position: 3,
      statedPosition: 3,
      others: [{ ...hasArrived('A1'), position: 1 }],
    };
    expect(consequenceOf(sent('A1'), anew)).toEqual({ ...NOTHING, others: [hasArrived('A1')] });
    expect(consequenceOf(sent('A1'), { ...marked, returnedReference: 'A1' })).toEqual(NOTHING);
    const named = { ...marked, others: [{ ...hasArrived('A1'), position: 1 }] };
    expect(consequenceOf(sent('A1'), named)).toEqual(NOTHING);
    expect(consequenceOf(sent('B2'), named)).toEqual({
      ...NOTHING,
      others: [hasArrived('B2')],
      isConflict: true,
    });
  });

  test.each([null, 'A1'])(
    'is a conflict where two transfers arrived that no reference tells apart, until somebody has stated something: %s',
    (statedReference) => {
      const twice = said({ state: 'sent', isContradictory: true, hasUnnamedArrival: true });
      const first = consequenceOf(twice, item());
      expect(first).toEqual({ statements: ['sent'], others: [hasArrived('')], isConflict: true });
      const others = [{ ...hasArrived(''), position: 1 }];
      const now = item({ state: 'sent', statedReference, position: 1 });
      expect(consequenceOf(twice, now)).toEqual({ ...NOTHING, others: [hasArrived('')], isConflict: true });
      expect(consequenceOf(twice, { ...now, others })).toEqual({ ...NOTHING, isConflict: true });
      expect(consequenceOf(twice, { ...now, position: 3, others })).toEqual(NOTHING);
    },
  );

  test.each([
    ['T9', true],
    ['4KX71203LM9901842', true],
    ['1', false],
    ['10000', false],
    ['100000', true],
    ['batch of 10', true],
    ['', false],
    ['none', false],
    ['n/a', false],
    ['0', false],
    ['000-00', false],
    ['pit_01jz4w2vxq8m3c5t7e9f1g3h5k', false],
    ['PIT_01JZ4W2VXQ8M3C5T7E9F1G3H5K', false],
    ['q8m3c5t7e9f1g3h5k', false],
    ['Payout 8M3C5T7E9F1G3H5K of May', false],
    ['8m3c5t7e9f1g3h5', true],
  ])('is about one transfer if its reference is %j: %s', (reference, expected) => {
    expect(tellsTransfer(reference, 'pit_01jz4w2vxq8m3c5t7e9f1g3h5k')).toBe(expected);
  });

  test('is compared with references of one payout: not with that of a batch, a key or a word', () => {
    const rows = [
      ['pit_01jz4w2vxq8m3c5t7e9f1g3h5k', 'batch 7'],
      ['pit_01jz4w2vxq9n4d6v8e0f2g4h6m', 'batch 7'],
      ['pit_01jz4w2vxqzzzzzzzzzzzzzzz1', 'PIT_01JZ4W2VXQZZZZZZZZZZZZZZZ1'],
      ['pit_01jz4w2vxqzzzzzzzzzzzzzzz2', 'none'],
      ['pit_01jz4w2vxqzzzzzzzzzzzzzzz3', 'T9'],
      ['pit_01jz4w2vxqzzzzzzzzzzzzzzz4', null],
    ].map(([id, statedReference]) => ({
      id: id ?? '',
      ...item({ state: 'sent', statedReference: statedReference ?? null }),
    }));
    expect(withTransferReferences(rows).map(({ statedReference }) => statedReference)).toEqual([
      null,
      null,
      null,
      null,
      'T9',
      null,
    ]);
  });

  test('states nothing more when it is reported again, and a return only while no other transfer is out', () => {
    const references = fc.subarray(['A1', 'B2', 'C3']);
    const anyReport = fc.tuple(references, references, references).map(([arrived, one, other]) => {
      const underWay = one.filter((reference) => !arrived.includes(reference));
      const cameBack = other.filter((reference) => ![...arrived, ...underWay].includes(reference));
      const state =
        arrived.length > 0 ? 'sent' : underWay.length > 0 || cameBack.length === 0 ? 'pending' : 'returned';
      const isContradictory = arrived.length > 1 || (arrived.length === 1 && cameBack.length > 0);
      return { state, arrived, underWay, cameBack, isContradictory, hasUnnamedArrival: false } as const;
    });
    fc.assert(
      fc.property(fc.array(anyReport, { minLength: 1, maxLength: 6 }), (reports) => {
        let now = item();
        const out = new Set<string>();
        const report = (reported: ReportedTransfers) => {
          const { statements, others } = consequenceOf(reported, now);
          for (const reference of [...reported.arrived, ...reported.underWay]) out.add(reference);
          for (const reference of reported.cameBack) out.delete(reference);
          const position = now.position + statements.length;
          const stated = reported.state === 'returned' ? reported.cameBack[0] : reported.arrived[0];
          if (statements.includes('returned')) expect([...out]).toEqual([]);
          now = {
            ...now,
            ...(statements.length > 0 && {
              state: statements.at(-1) ?? null,
              statedPosition: position,
              statedReference: stated ?? null,
              cameBack: statements.includes('returned'),
              returnedReference: statements.includes('returned') ? (stated ?? null) : null,
            }),
            position,
            others: [...now.others, ...others.map((transfer) => ({ ...transfer, position }))],
          };
          return statements;
        };
        for (const reported of reports) report(reported);
        expect(reports.flatMap(report)).toEqual([]);
      }),
    );
  });
});
