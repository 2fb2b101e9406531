import { describe, expect, test } from '@jest/globals';
import { subscriptionKey } from '../../src/providers/shared/store-money.ts';

describe('the key of a subscription of a store', () => {
  test.each([
    ['APP_STORE', '70000000000110', 'app_store:70000000000110'],
    ['app_store', null, null],
    [null, '70000000000110', null],
    ['x'.repeat(600), '70000000000110', null],
    ['app\u0000store', '70000000000110', null],
  ])('in the store %j with the first transaction %j is %j', (store, id, key) => {
    expect(subscriptionKey(store, id)).toBe(key);
  });
});
