import { describe, expect, test } from '@jest/globals';
import { findColumns, meaningOf, outcomeOfReport, readReport } from '../../src/domain/payout-report.ts';
import type { PayoutRunItemId } from '../../src/domain/ids.ts';

const ANN = 'pit_01jz4w2vxq8m3c5t7e9f1g3h5k' as PayoutRunItemId;
const BEN = 'pit_01jz4w2vxq9n4d6v8e0f2g4h6m' as PayoutRunItemId;

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

  test('has its columns under the names that payment services use', () => {
    expect(findColumns(['Date', 'Transaction ID', 'Transaction Status'])).toEqual({
      status: 'Transaction Status',
      reference: 'Transaction ID',
    });
    expect(findColumns(['ID', 'status'])).toEqual({ status: 'status', reference: 'ID' });
    expect(findColumns(['Datum', 'Zustand'])).toBeNull();
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

  test('says of an item with two rows what came last in its way, in whatever order they stand', () => {
    const rows = [
      { Key: ANN, Status: 'Completed', Id: '1' },
      { Key: ANN, Status: 'Returned', Id: '2' },
      { Key: ANN, Status: 'Pending', Id: '3' },
    ];
    const columns = { status: 'Status', reference: 'Id' };
    for (const order of [rows, rows.toReversed()]) {
      expect(read(order, columns).items).toEqual([
        { itemId: ANN, state: 'returned', status: 'Returned', reference: '2' },
      ]);
    }
  });

  test('has no reference where the cell is empty, and not more of it than a transfer keeps', () => {
    const columns = { status: 'Status', reference: 'Id' };
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
    const columns = { status: 'Status', reference: 'Id' };
    const referenceOf = (Id: string) => read([{ Key: ANN, Status: 'Sent', Id }], columns).items[0]?.reference;
    expect(referenceOf(`${'x'.repeat(199)}🎉🎉`)).toBe(`${'x'.repeat(199)}🎉`);
    expect(referenceOf('a\u0000b\ud800c')).toBe('a b c');
    expect(referenceOf('ann@example.com')).toBeNull();
  });

  test('names an item in a cell that no column has', () => {
    const columns = { status: 'Status', reference: null };
    const { items } = readReport([['Sent', ANN]], {
      header: ['Status'],
      columns,
      meanings: new Map(),
      itemIds: [ANN],
    });
    expect(items.map(({ itemId }) => itemId)).toEqual([ANN]);
  });

  test('changes nothing of a payout that is pending, or whose word is unknown', () => {
    const item = { state: null, position: 0, cameBack: false, isSentAgain: false };
    expect(outcomeOfReport('pending', item)).toBe('pending');
    expect(outcomeOfReport('unknown', item)).toBe('unknown');
    expect(outcomeOfReport('sent', item)).toBe('sent');
    expect(outcomeOfReport('sent', { ...item, state: 'sent', position: 1 })).toBe('unchanged');
  });
});
