import { expect, test } from '@jest/globals';
import {
  EARNED_BY_ANOTHER_EVENT,
  explainOutcome,
  MOVES_NO_MONEY,
  NOTHING_DUE,
  WAITING_FOR_PAYMENT,
  WAITS_FOR_DECISION,
} from '../../src/domain/event-outcome.ts';
import { CAUSE_EXPLANATIONS } from '../../src/domain/likely-causes.ts';

type Explained = Parameters<typeof explainOutcome>[0];

const event = (given: Partial<Explained>): Explained => ({
  outcome: 'nothing',
  kind: 'purchase',
  likelyCause: null,
  waitsUntil: null,
  hasEarned: false,
  ...given,
});

test.each(['earned', 'reversed'] as const)(
  'an event that has %s needs no sentence: its commission says it',
  (outcome) => {
    expect(explainOutcome(event({ outcome, likelyCause: 'outside_attribution_window' }))).toBeNull();
  },
);

test('a sandbox event says that it never earns', () => {
  expect(explainOutcome(event({ outcome: 'sandbox', likelyCause: 'missing_user_id' }))).toBe(
    'A sandbox event never earns a commission.',
  );
});

test.each<[string, Partial<Explained>, string]>([
  [
    'its decision, whatever its cause is',
    { waitsUntil: 60_000, likelyCause: 'missing_user_id' },
    WAITS_FOR_DECISION,
  ],
  ['the exchange rate', { likelyCause: 'missing_exchange_rate' }, CAUSE_EXPLANATIONS.missing_exchange_rate],
  ['its payment', { kind: 'refund' }, WAITING_FOR_PAYMENT],
])('an event that waits for %s says so', (_, given, sentence) => {
  expect(explainOutcome(event({ outcome: 'waiting', ...given }))).toBe(sentence);
});

test.each<[string, Partial<Explained>, string]>([
  ['the cause', { likelyCause: 'user_not_attributed' }, CAUSE_EXPLANATIONS.user_not_attributed],
  [
    'the cause before anything else',
    { likelyCause: 'anonymous_user_id', kind: 'cancellation', hasEarned: true },
    CAUSE_EXPLANATIONS.anonymous_user_id,
  ],
  ['that it moves no money', { kind: 'cancellation', hasEarned: true }, MOVES_NO_MONEY],
  [
    'that another event earned for the payment',
    { kind: 'renewal', hasEarned: true },
    EARNED_BY_ANOTHER_EVENT,
  ],
  ['that nothing is due, where nothing earned', { kind: 'renewal' }, NOTHING_DUE],
  [
    'that nothing is due for a refund, also beside an earning',
    { kind: 'refund', hasEarned: true },
    NOTHING_DUE,
  ],
])('an event that changed nothing says %s', (_, given, sentence) => {
  expect(explainOutcome(event(given))).toBe(sentence);
});
