import * as fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { MONEY_STATES, MOST_TRANSFERS, statementsFor } from '../../src/domain/payout-transfer.ts';
import type { MoneyState, StatedItem } from '../../src/domain/payout-transfer.ts';

const item = (over: Partial<StatedItem> = {}): StatedItem => ({
  state: null,
  position: 0,
  cameBack: over.state === 'returned',
  isSentAgain: false,
  ...over,
});

describe('what a payment service reports of a payout', () => {
  test.each([
    ['sent', null, ['sent']],
    ['sent', 'sent', []],
    ['sent', 'returned', []],
    ['returned', null, ['sent', 'returned']],
    ['returned', 'sent', ['returned']],
    ['returned', 'returned', []],
  ] as const)('as %s states where the money is %s: %j', (reported, state, statements) => {
    expect(statementsFor(reported, item({ state, position: 1 }))).toEqual(statements);
  });

  test('states nothing when a later run sends the money again, or the payout has no room for it', () => {
    expect(statementsFor('returned', item({ state: 'sent', isSentAgain: true }))).toEqual([]);
    expect(statementsFor('returned', item({ position: MOST_TRANSFERS - 1 }))).toEqual([]);
    expect(statementsFor('sent', item({ position: MOST_TRANSFERS - 1 }))).toEqual(['sent']);
  });

  test.each([
    ['was sent by hand after it came back', 'sent'],
    ['came back by mistake, which was withdrawn', 'sent'],
    ['came back by mistake, and both statements were withdrawn', null],
  ] as const)('states nothing of money that %s: the report is an old one', (_, state) => {
    for (const reported of MONEY_STATES)
      expect(statementsFor(reported, item({ state, position: 3, cameBack: true }))).toEqual([]);
  });

  test('states nothing more when it is reported again, in whatever order reports arrive', () => {
    const anyReports = fc.array(fc.constantFrom(...MONEY_STATES), { minLength: 1 });
    fc.assert(
      fc.property(anyReports, fc.constantFrom(null, ...MONEY_STATES), (reports, first) => {
        let now = item({ state: first });
        const report = (reported: MoneyState) => {
          const statements = statementsFor(reported, now);
          const state = statements.at(-1) ?? now.state;
          now = item({ state, position: now.position + statements.length });
          return statements;
        };
        for (const reported of reports) report(reported);
        expect(reports.flatMap(report)).toEqual([]);
      }),
    );
  });
});
