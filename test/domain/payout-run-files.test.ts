import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { hasRowOf, writePayoutFiles } from '../../src/domain/payout-run-files.ts';
import type { FileRow } from '../../src/domain/payout-run-files.ts';
import type { Payee } from '../../src/domain/payee.ts';
import type { AffiliateId, PayoutRunItemId } from '../../src/domain/ids.ts';

const PAYEES: readonly (Payee | null)[] = [
  { method: 'paypal', recipient: { email: 'ann@example.com' } },
  { method: 'wise', recipient: { email: 'ben@example.com', name: 'Ben', receiverType: 'INSTITUTION' } },
  { method: 'other', recipient: { name: 'Cleo', reference: 'Bank of June' } },
  { method: 'none', recipient: null },
  null,
];
const rowOf = (n: number, method: FileRow['method'], payee: Payee | null): FileRow => ({
  itemId: `pit_${String(n).padStart(10, '_').padStart(26, '0')}` as PayoutRunItemId,
  affiliateId: `aff_${n}` as AffiliateId,
  affiliateName: `Creator ${n}`,
  amountCents: n + 1,
  method,
  payee,
});
const linesOf = (text: string) => text.split('\r\n').slice(0, -1);

describe('the files of a payout run', () => {
  test('have the columns of their payment services, with the amounts in dollars', () => {
    const methods = ['paypal', 'wise', 'other'] as const;
    const [paypal, wise, other] = writePayoutFiles(
      methods.map((method, n) => ({ ...rowOf(n, method, PAYEES[n] ?? null), amountCents: 123_456 + n })),
    );
    const idOf = (n: number) => rowOf(n, 'other', null).itemId;
    expect([paypal?.method, paypal?.text]).toEqual([
      'paypal',
      `ann@example.com,1234.56,USD,${idOf(0)},Commissions,PAYPAL\r\n`,
    ]);
    expect([wise?.method, wise?.text]).toEqual([
      'wise',
      'name,recipientEmail,paymentReference,receiverType,amountCurrency,amount,sourceCurrency,targetCurrency\r\n' +
        `Ben,ben@example.com,${idOf(1).slice(-16)},INSTITUTION,target,1234.57,USD,USD\r\n`,
    ]);
    expect([other?.method, other?.text]).toEqual([
      'other',
      'item_id,affiliate_id,affiliate_name,name,reference,amount_usd,currency\r\n' +
        `${idOf(2)},aff_2,Creator 2,Cleo,Bank of June,1234.58,USD\r\n`,
    ]);
    // Paid by PayPal in the draft, and without a payee now.
    const [unknown] = writePayoutFiles([rowOf(3, 'paypal', null), rowOf(4, 'wise', PAYEES[0] ?? null)]);
    expect(unknown?.text.split('\r\n').slice(1)).toEqual([
      `${idOf(3)},aff_3,Creator 3,,,0.04,USD`,
      `${idOf(4)},aff_4,Creator 4,,,0.05,USD`,
      '',
    ]);
    expect([
      hasRowOf('other', other?.text ?? '', idOf(2)),
      hasRowOf('other', other?.text ?? '', `x${idOf(2).slice(1)}`),
    ]).toEqual([true, false]);
  });

  test('have every row once, and their totals are those of their rows', () => {
    const anyRow = fc.tuple(
      fc.constantFrom<FileRow['method']>('paypal', 'wise', 'other'),
      fc.constantFrom(...PAYEES),
    );
    fc.assert(
      fc.property(fc.array(anyRow, { maxLength: 30 }), (all) => {
        const rows = all.map(([method, payee], n) => rowOf(n, method, payee));
        const files = writePayoutFiles(rows);
        expect(files.reduce((sum, { totalCents }) => sum + totalCents, 0)).toBe(
          rows.reduce((sum, { amountCents }) => sum + amountCents, 0),
        );
        const text = files.map((file) => file.text).join('');
        for (const { itemId } of rows) expect(text.split(itemId.slice(-10))).toHaveLength(2);
        for (const { method, rowCount, text: own } of files) {
          expect(linesOf(own)).toHaveLength(rowCount + (method === 'paypal' ? 0 : 1));
          expect(rows.filter(({ itemId }) => hasRowOf(method, own, itemId))).toHaveLength(rowCount);
        }
      }),
    );
  });

  test.each([
    ['paypal', 5_001, [5_000, 1], 0],
    ['wise', 2_000, [1_000, 1_000], 1],
    ['other', 3, [3], 2],
  ] as const)('of %s have no more rows than it takes', (method, count, parts, payee) => {
    const rows = Array.from({ length: count }, (_, n) => rowOf(n, method, PAYEES[payee] ?? null));
    const files = writePayoutFiles(rows);
    expect(files.map(({ part, rowCount }) => [part, rowCount])).toEqual(
      parts.map((rows_, n) => [n + 1, rows_]),
    );
  });

  test('list whose recipient is unknown in the file for other ways, never with an empty address', () => {
    const files = writePayoutFiles([rowOf(1, 'paypal', null), rowOf(2, 'wise', null)]);
    expect(files).toMatchObject([{ method: 'other', rowCount: 2, totalCents: 5 }]);
  });

  test('are none if nobody was paid', () => {
    expect(writePayoutFiles([])).toEqual([]);
  });
});
