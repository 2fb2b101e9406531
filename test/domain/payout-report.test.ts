import { describe, expect, test } from '@jest/globals';
import { assessReport, findColumns, meaningOf, ReportReader } from '../../src/domain/payout-report.ts';
import type { ReportTerms } from '../../src/domain/payout-report.ts';
import type { PayoutRunItemId } from '../../src/domain/ids.ts';

const ANN = 'pit_01jz4w2vxq8m3c5t7e9f1g3h5k' as PayoutRunItemId;
const BEN = 'pit_01jz4w2vxq9n4d6v8e0f2g4h6m' as PayoutRunItemId;

const readReport = (records: readonly (readonly string[])[], terms: ReportTerms) => {
  const reader = new ReportReader(terms);
  // In parts, as large reports are read.
  for (const record of records) reader.read([record]);
  return reader.report();
};

/** Reads records that are given as cells by column. */
const read = (
  records: readonly Readonly<Record<string, string>>[],
  columns = { status: 'Status', reference: null as string | null },
) => {
  const header = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const rows = records.map((record) => header.map((name) => record[name] ?? ''));
  return readReport(rows, { header, columns, meanings: new Map(), itemIds: [ANN, BEN] });
};

describe('a report of a payment service', () => {
  test.each([
    ['Success', 'sent'],
    ['COMPLETED', 'sent'],
    ['Outgoing Payment Sent', 'sent'],
    ['outgoing_payment_sent', 'sent'],
    ['RETURNED', 'returned'],
    ['Funds refunded', 'returned'],
    ['Cancelled', 'returned'],
    ['UNCLAIMED', 'pending'],
    ['Bounced back', 'pending'],
    ['On Hold', 'pending'],
    ['', 'unknown'],
    ['Ausgeführt', 'unknown'],
  ])('says with the word %j that a payment is %s', (word, meaning) => {
    expect(meaningOf(word, new Map())).toBe(meaning);
  });

  test('says with a word what the caller says that it means', () => {
    expect(meaningOf('Ausgeführt', new Map([['Ausgeführt', 'sent' as const]]))).toBe('sent');
    expect(meaningOf('Completed', new Map([['Completed', 'pending' as const]]))).toBe('pending');
  });

  test('names a hundred transfers of an item at most, and more that arrived contradict each other', () => {
    const rows = (state: string) =>
      Array.from({ length: 101 }, (_, n) => ({ Status: state, Id: ANN, Reference: `T${n + 1}` }));
    const columns = { status: 'Status', reference: 'Reference' };
    expect(read(rows('Success'), columns).items).toMatchObject([
      { state: 'sent', isContradictory: true, hasUnnamedArrival: true },
    ]);
    for (const [state, of] of [
      ['Success', 'arrived'],
      ['Pending', 'underWay'],
      ['Returned', 'cameBack'],
    ] as const)
      expect(read(rows(state), columns).items[0]?.[of]).toEqual(
        rows(state)
          .slice(0, 100)
          .map(({ Reference }) => Reference),
      );
  });

  test('has its columns under the names that payment services use', () => {
    expect(findColumns(['Date', 'Transaction ID', 'Transaction Status'])).toEqual({
      status: 'Transaction Status',
      reference: 'Transaction ID',
    });
    expect(findColumns(['ID', 'status'])).toEqual({ status: 'status', reference: 'ID' });
    expect(findColumns(['Datum', 'Zustand'])).toBeNull();
    // Somebody has chosen the one that has another name.
    const header = ['Zustand', 'Transaction ID', 'Beleg'];
    expect(findColumns(header, { status: 'Zustand' })).toEqual({
      status: 'Zustand',
      reference: 'Transaction ID',
    });
    expect(findColumns(header, { status: 'Zustand', reference: 'Beleg' })?.reference).toBe('Beleg');
    expect(findColumns(header, { status: 'Zustand', reference: null })?.reference).toBeNull();
  });

  test.each([
    ['on-hold', 'pending'],
    ['  Funds \t refunded ', 'returned'],
    ['charged-back', 'unknown'],
  ])('has the word %j, which means %s however it is written', (word, meaning) => {
    expect(meaningOf(word, new Map())).toBe(meaning);
  });

  test.each([
    [['Status', 'Transaction Status'], 'Transaction Status', null],
    [['State', 'Status', 'ID', 'Transfer ID'], 'Status', 'Transfer ID'],
    [['id', 'Payout Item ID', 'State'], 'State', 'Payout Item ID'],
    [[' transfer_status', 'TRANSACTION-ID'], ' transfer_status', 'TRANSACTION-ID'],
    [['Payout  Status', 'payout_item_id', 'transfer-id'], 'Payout  Status', 'transfer-id'],
    [['Status', 'status', 'Item id', 'Identity'], 'Status', null],
  ])('with the header %j has its status in %j and its reference in %j', (header, status, reference) => {
    expect(findColumns(header)).toEqual({ status, reference });
  });

  test('names an item that a row has twice, or beside what is of another run', () => {
    const { items, unmatched } = read([
      { Key: ANN, Reference: ANN.slice(-16), Note: 'pit_01jz4w2vxqzzzzzzzzzzzzzzzz', Status: ' Success ' },
      { Key: ANN, Reference: BEN.slice(-16), Note: ANN, Status: ' Success ' },
    ]);
    expect(items).toMatchObject([{ itemId: ANN, state: 'sent', status: 'Success' }]);
    expect(unmatched).toEqual([{ row: 3, status: 'Success' }]);
  });

  test('says nothing of the state of an item whose row ends before its status', () => {
    const terms = { columns: { status: 'Status', reference: 'Id' }, meanings: new Map(), itemIds: [ANN] };
    const { items } = readReport([[ANN]], { header: ['Key', 'Status', 'Id'], ...terms });
    expect(items).toMatchObject([{ state: 'unknown', status: '', reference: null }]);
  });

  test('names an item by its key in whatever column, whole or as Wise has it, and in any case', () => {
    expect(
      read([
        { Note: `for ${ANN.toUpperCase()}.`, Status: 'Success' },
        { Reference: BEN.slice(-16), Status: 'Success' },
      ]).items.map(({ itemId }) => itemId),
    ).toEqual([ANN, BEN]);
  });

  test('has rows that are about no item, about several, or about an item of another run', () => {
    const other = 'pit_01jz4w2vxqzzzzzzzzzzzzzzzz';
    expect(
      read([
        { Key: `${ANN} ${BEN}`, Status: 'Success' },
        { Key: other, Status: 'Success' },
        { Key: `x${ANN.slice(-16)}`, Status: 'Success' },
        { Key: '', Status: 'Success' },
      ]),
    ).toEqual({ items: [], unmatched: [2, 3, 4, 5].map((row) => ({ row, status: 'Success' })) });
  });

  const columns = { status: 'Status', reference: 'Id' };
  /** Reads rows about one item, as word and reference, in both orders. */
  const readBoth = (...rows: readonly (readonly [string, string])[]) => {
    const records = rows.map(([Status, Id]) => ({ Key: ANN, Status, Id }));
    const [one, other] = [records, records.toReversed()].map((order) => read(order, columns).items[0]);
    const sets = (item: typeof one) =>
      item && { ...item, arrived: new Set(item.arrived), cameBack: new Set(item.cameBack) };
    if (rows.every(([, id]) => id !== ''))
      expect({ ...sets(one), reference: '', status: '' }).toEqual({
        ...sets(other),
        reference: '',
        status: '',
      });
    return one;
  };

  test('says of a transfer with several rows what came last in its way, in whatever order they stand', () => {
    expect(readBoth(['Completed', 'T1'], ['Returned', 'T1'], ['Pending', 'T1'])).toMatchObject({
      state: 'returned',
      reference: 'T1',
      arrived: [],
      underWay: [],
      cameBack: ['T1'],
      isContradictory: false,
    });
  });

  test('has the word and the reference of the first of several rows that say the same', () => {
    const rows = [
      { Key: ANN, Status: 'Completed', Id: 'T1' },
      { Key: ANN, Status: 'Success', Id: 'T1' },
      { Key: ANN, Status: 'Paid', Id: 'T2' },
    ];
    expect(read(rows, columns).items).toMatchObject([
      { state: 'sent', status: 'Completed', reference: 'T1', arrived: ['T1', 'T2'] },
    ]);
  });

  test('lists the transfers of an item apart, by where their money is', () => {
    const rows = ['Pending', 'Ausgeführt', 'Completed', 'Denied', 'Unclaimed'].map((Status, n) => ({
      Key: ANN,
      Status,
      Id: `T${n + 1}`,
    }));
    expect(read(rows, columns).items).toEqual([
      {
        itemId: ANN,
        state: 'sent',
        status: 'Completed',
        reference: 'T3',
        arrived: ['T3'],
        underWay: ['T1', 'T2', 'T5'],
        cameBack: ['T4'],
        isContradictory: true,
        hasUnnamedArrival: false,
      },
    ]);
  });

  test.each([
    ['Denied', 'Completed', 'sent', true],
    ['Completed', 'Cancelled', 'sent', true],
    ['Completed', 'Completed', 'sent', true],
    ['Completed', 'Pending', 'sent', false],
    ['Denied', 'Pending', 'pending', false],
    ['Denied', 'Ausgeführt', 'unknown', false],
    ['Denied', 'Failed', 'returned', false],
  ] as const)(
    'says of an item with the transfers %s and %s that it is %s, and that this is contradictory: %s',
    (first, second, state, isContradictory) => {
      expect(readBoth([first, 'T1'], [second, 'T2'])).toMatchObject({ state, isContradictory });
    },
  );

  test.each([
    ['there is none', '', ''],
    ['it is a word', 'none', 'none'],
    ['it is the key of the item', ANN, ANN.toUpperCase()],
  ])('takes rows for different transfers where a reference does not tell them apart: %s', (_, one, other) => {
    expect(readBoth(['Completed', one], ['Returned', other])).toMatchObject({
      state: 'sent',
      arrived: [],
      cameBack: [],
      isContradictory: true,
    });
  });

  test.each([
    [['T1', 'T2'], false],
    [['T1', ''], true],
    [['', ''], true],
    [['none', 'none'], true],
    [['T1', 'T1'], false],
    [[''], false],
  ] as const)(
    'says whether one of the transfers %j that arrived has no reference: %s',
    (references, hasUnnamedArrival) => {
      const item = readBoth(...references.map((reference) => ['Completed', reference] as const));
      const arrivals = new Set(references).size;
      expect(item).toMatchObject({
        state: 'sent',
        isContradictory: hasUnnamedArrival || arrivals > 1,
        hasUnnamedArrival,
      });
    },
  );

  test('takes no reference for that of a transfer that several items have, such as that of a batch', () => {
    const { items } = read(
      [
        { Key: ANN, Status: 'Completed', Id: 'batch 7' },
        { Key: ANN, Status: 'Returned', Id: 'batch 7' },
        { Key: BEN, Status: 'Returned', Id: 'batch 7' },
      ],
      columns,
    );
    expect(items).toMatchObject([
      { state: 'sent', arrived: [], isContradictory: true, reference: 'batch 7' },
      { state: 'returned', cameBack: [] },
    ]);
  });

  test('has no reference where the cell is empty, and not more of it than a transfer keeps', () => {
    const items = read(
      [
        { Key: ANN, Status: 'Sent', Id: ' ' },
        { Key: BEN, Status: 'Sent', Id: 'x'.repeat(201) },
      ],
      columns,
    ).items;
    expect(items.map(({ reference }) => reference)).toEqual([null, 'x'.repeat(200)]);
  });

  test('keeps no half of a character of a reference, no control character, and no address of a person', () => {
    const referenceOf = (Id: string) => read([{ Key: ANN, Status: 'Sent', Id }], columns).items[0]?.reference;
    expect(referenceOf(`${'x'.repeat(199)}🎉🎉`)).toBe(`${'x'.repeat(199)}🎉`);
    expect(referenceOf('a\u0000b\ud800c')).toBe('a b c');
    expect(referenceOf('ann@example.com')).toBeNull();
  });

  test('has no reference if no column is said to have it, also where a column has no name', () => {
    // As a comma at the end of each line makes it.
    const header = ['Status', 'Key', ''];
    const { items } = readReport([['Completed', ANN, '17']], {
      header,
      columns: { status: 'Status', reference: null },
      meanings: new Map(),
      itemIds: [ANN],
    });
    expect(items).toMatchObject([{ state: 'sent', reference: null, arrived: [] }]);
  });

  test('names an item in a cell that no column has', () => {
    const { items } = readReport([['Sent', ANN]], {
      header: ['Status'],
      columns: { status: 'Status', reference: null },
      meanings: new Map(),
      itemIds: [ANN],
    });
    expect(items.map(({ itemId }) => itemId)).toEqual([ANN]);
  });

  test('changes nothing of a payout that is pending, or whose word is unknown', () => {
    const item = {
      state: null,
      statedPosition: null,
      statedReference: null,
      position: 0,
      cameBack: false,
      returnedReference: null,
      isSentAgain: false,
      others: [],
    };
    const outcomeOf = (Status: string, over: object = {}) => {
      const [said] = read([{ Key: ANN, Status, Id: 'T1' }], columns).items;
      return said && assessReport(said, { ...item, ...over });
    };
    expect(outcomeOf('Pending')).toMatchObject({ outcome: 'pending', statements: [] });
    expect(outcomeOf('Ausgeführt')).toMatchObject({ outcome: 'unknown', statements: [] });
    expect(outcomeOf('Sent')).toMatchObject({ outcome: 'sent', statements: ['sent'] });
    const stated = { position: 1, statedPosition: 1, statedReference: 'T1' };
    expect(outcomeOf('Sent', { ...stated, state: 'sent' })).toMatchObject({ outcome: 'unchanged' });
    const cameBack = { ...stated, state: 'returned', cameBack: true, returnedReference: 'T0' };
    expect(outcomeOf('Sent', cameBack)).toMatchObject({
      outcome: 'conflict',
      statements: [],
      others: [{ reference: 'T1', hasArrived: true }],
    });
  });
});
