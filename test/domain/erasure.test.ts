import { expect, test } from '@jest/globals';
import { namesOneOf, textsOf } from '../../src/domain/erasure.ts';

const body = (value: unknown) => Buffer.from(JSON.stringify(value));

test.each([
  ['an amount', { amount: 999, currency: 'usd' }],
  ['a quantity in a list', [{ quantity: 999 }]],
  ['the name of a field', { '999': true }],
  ['a part of a text', { description: 'order 999' }],
])('a webhook does not name the user 999 by %s', (_, value) => {
  expect(namesOneOf(body(value), ['999'])).toBe(false);
  expect(textsOf(body(value))).not.toContain('999');
});

test.each([
  ['a whole text', { app_user_id: '999' }, '999'],
  ['a number', { user: 123_456_789 }, '123456789'],
  ['the name of a field', { 'user-12345678': {} }, 'user-12345678'],
])('a webhook names a user by %s', (_, value, user) => {
  expect(namesOneOf(body(value), [user])).toBe(true);
  expect(textsOf(body(value))).toContain(user);
});

test('a webhook names a user with a long id by a part of a text', () => {
  expect(namesOneOf(body({ note: 'for user-12345678 only' }), ['user-12345678'])).toBe(true);
});

test('a body that is not JSON names a user whose id it contains', () => {
  expect(namesOneOf(Buffer.from('id=user-1&x=2'), ['user-1'])).toBe(true);
});
