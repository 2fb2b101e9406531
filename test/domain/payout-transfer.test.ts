import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { MOST_TRANSFERS, statementsFor, TRANSFER_STATES } from '../../src/domain/payout-transfer.ts';
import type { TransferState } from '../../src/domain/payout-transfer.ts';

const item = (state: TransferState | null, position = state === null ? 0 : 1, isSentAgain = false) => ({
  state,
  position,
  cameBack: state === 'returned',
  isSentAgain,
});

describe('what a payment service reports of a payout', () => {
  test.each([
    ['sent', null, ['sent']],
    ['sent', 'sent', []],
    ['sent', 'returned', []],
    ['sent', 'withdrawn', ['sent']],
    ['sent', 'return_withdrawn', []],
    ['returned', null, ['sent', 'returned']],
    ['returned', 'sent', ['returned']],
    ['returned', 'returned', []],
    ['returned', 'withdrawn', ['sent', 'returned']],
    ['returned', 'return_withdrawn', ['returned']],
  ] as const)('as %s states after %s: %j', (reported, state, statements) => {
    expect(statementsFor(reported, item(state))).toEqual(statements);
  });

  test('states nothing when a later run sends the money again, or the payout has no room for it', () => {
    expect(statementsFor('returned', item('sent', 1, true))).toEqual([]);
    expect(statementsFor('returned', item('withdrawn', MOST_TRANSFERS - 1))).toEqual([]);
    expect(statementsFor('sent', item('withdrawn', MOST_TRANSFERS - 1))).toEqual(['sent']);
  });

  test('states nothing after the money came back and was sent by hand: the report is an old one', () => {
    const byHand = { ...item('sent', 3), cameBack: true };
    expect(statementsFor('returned', byHand)).toEqual([]);
    expect(statementsFor('sent', byHand)).toEqual([]);
  });

  test('states nothing more when it is reported again, in whatever order reports arrive', () => {
    const anyReports = fc.array(fc.constantFrom('sent' as const, 'returned' as const), { minLength: 1 });
    fc.assert(
      fc.property(anyReports, fc.constantFrom(null, ...TRANSFER_STATES), (reports, first) => {
        let now = item(first);
        const report = (reported: 'sent' | 'returned') => {
          const statements = statementsFor(reported, now);
          now = item(statements.at(-1) ?? now.state, now.position + statements.length);
          return statements;
        };
        for (const reported of reports) report(reported);
        expect(reports.flatMap(report)).toEqual([]);
      }),
    );
  });
});
