import { describe, expect, test } from '@jest/globals';
import { codesOf, codesOfSubscription, isCode, namespaceOfStore } from '../../src/domain/purchase-codes.ts';
import type { StatedCode } from '../../src/domain/purchase-codes.ts';

const PAID = { store: 'app_store', ref: '2000000712345678' };

const stated = (value: string | null, namespace: StatedCode['namespace'] = 'app_store'): StatedCode => ({
  namespace,
  value,
});

/** Returns the codes of a payment, as `namespace value`. */
const codes = (...candidates: readonly StatedCode[]) =>
  codesOf(PAID, candidates).map(({ namespace, value }) => `${namespace} ${value}`);

describe('a text', () => {
  test.each([
    ['S', true],
    ['SPRING20', true],
    ['Spring offer 2026', true],
    ['été-20', true],
    ['x'.repeat(64), true],
    ['🌷'.repeat(64), true],
    ['x'.repeat(65), false],
    ['', false],
    ['ada@example.com', false],
    ['@ada', false],
    ['ada@', false],
    [' SPRING20', false],
    ['SPRING20 ', false],
    ['SPRING\u000020', false],
    ['\u202ESPRING20', false],
    ['SPRING20\n', false],
  ])('%j can be a code: %s', (text, expected) => {
    expect(isCode(text)).toBe(expected);
  });
});

describe('the codes of a payment', () => {
  test('are of its store and its reference', () => {
    expect(codesOf(PAID, [stated('SPRING20'), stated('ada', 'attribute')])).toEqual([
      { namespace: 'app_store', value: 'SPRING20', store: 'app_store', paymentRef: '2000000712345678' },
      { namespace: 'attribute', value: 'ada', store: 'app_store', paymentRef: '2000000712345678' },
    ]);
  });

  test('are without the spaces around them', () => {
    expect(codes(stated('  SPRING20\n'))).toEqual(['app_store SPRING20']);
  });

  test('are each listed once for each place where codes are from, whatever the form of their letters', () => {
    expect(
      codes(stated('\u00E9t\u00E9'), stated('e\u0301te\u0301'), stated('\u00E9t\u00E9', 'campaign')),
    ).toEqual(['app_store \u00E9t\u00E9', 'campaign \u00E9t\u00E9']);
  });

  test.each<[string, StatedCode]>([
    ['a text of a store without codes', stated('SPRING20', null)],
    ['no text', stated(null)],
    ['an empty text', stated('   ')],
    ['an address', stated('ada@example.com')],
    ['a text of 65 characters', stated('x'.repeat(65))],
  ])('are without %s, and the others stay', (_, candidate) => {
    expect(codes(candidate, stated('ada', 'attribute'))).toEqual(['attribute ada']);
  });

  test('are at most 20, the first ones of the event', () => {
    const all = Array.from({ length: 21 }, (_, n) => stated(`CODE${n}`));
    expect(codes(...all)).toEqual(all.slice(0, 20).map(({ value }) => `app_store ${value}`));
  });
});

describe('the codes of a subscription whose first period was free', () => {
  const usedAt = Date.UTC(2026, 8, 22);

  test('are of the key of the subscription and the time when they were used', () => {
    expect(codesOfSubscription('sub_1', usedAt, [stated(' SPRING20'), stated(null)])).toEqual([
      { namespace: 'app_store', value: 'SPRING20', userKey: 'sub_1', usedAt },
    ]);
  });

  test('are none without that key', () => {
    expect(codesOfSubscription(null, usedAt, [stated('SPRING20')])).toEqual([]);
  });
});

test.each([
  ['app_store', 'app_store'],
  ['mac_app_store', 'app_store'],
  ['play_store', 'play_store'],
  ['stripe', null],
  ['amazon', null],
  [null, null],
])('a code that a customer entered in the store %s is of %s', (store, namespace) => {
  expect(namespaceOfStore(store)).toBe(namespace);
});
