import { expect, test } from '@jest/globals';
import {
  identifiersOf,
  identifyingTexts,
  isPlaceholder,
  namesOneOf,
  textsOf,
  tiedKeys,
} from '../../src/domain/erasure.ts';
import { expectedEvent } from '../support/provider-fixtures.ts';

const body = (value: unknown) => Buffer.from(JSON.stringify(value));

test.each([
  ['an amount', { amount: 999, currency: 'usd' }],
  ['a quantity in a list', [{ quantity: 999 }]],
  ['the name of a field', { '999': true }],
  ['a part of a text', { description: 'order 999' }],
])('a webhook does not name the user 999 by %s', (_, value) => {
  expect(namesOneOf(body(value), null, ['999'])).toBe(false);
  expect(textsOf(body(value))).not.toContain('999');
});

test.each([
  ['a whole text', { app_user_id: '999' }, '999'],
  ['a number', { user: 123_456_789 }, '123456789'],
  ['the name of a field', { 'user-12345678': {} }, 'user-12345678'],
])('a webhook names a user by %s', (_, value, user) => {
  expect(namesOneOf(body(value), null, [user])).toBe(true);
  expect(textsOf(body(value))).toContain(user);
});

test('a webhook names a user with a long id by a part of a text', () => {
  expect(namesOneOf(body({ note: 'for user-12345678 only' }), null, ['user-12345678'])).toBe(true);
});

test('a body that is not JSON names a user whose id it contains', () => {
  expect(namesOneOf(Buffer.from('id=user-1&x=2'), null, ['user-1'])).toBe(true);
});

const named = (fields: Partial<Parameters<typeof expectedEvent>[0]>) =>
  expectedEvent({ sourceEventId: 'event', kind: 'purchase', occurredAt: 0, ...fields });

test.each(['guest', 'Null', ' undefined ', '(null)', '0', '-1', '[object Object]', ''])(
  '%j stands for a missing id',
  (text) => {
    expect(isPlaceholder(text)).toBe(true);
  },
);

test('a placeholder beside a user id names nobody', () => {
  expect(identifiersOf(named({ userIds: ['guest', 'user-1'] })).users).toEqual(['user-1']);
  expect(identifiersOf(named({ userIds: ['guest', 'null'] })).users).toEqual(['guest', 'null']);
});

test('a short text of a webhook that names a user is compared only where it is an identifier', () => {
  const event = named({ userIds: ['gold'], userKeys: ['sub_1'] });
  const texts = ['gold', 'sub_1', 'user-12345678'];
  const value = { user: 'gold', level: 'iron', note: 'user-12345678', key: 'sub_1' };
  expect(identifyingTexts(body(value), event).toSorted()).toEqual(texts);
  expect(identifyingTexts(body(value), null)).toContain('iron');
  expect(namesOneOf(body(value), event, ['iron'])).toBe(false);
  expect(namesOneOf(body(value), event, ['gold'])).toBe(true);
});

const isPerson = (userId: string) => userId === 'person' || userId === 'guest';
const isOwnKey = (key: string) => key === 'sub_of_person';
const keys = ['sub_12345', 'cus_12345'];
const anonymous = '$RCAnonymousID:1';

test.each<[string, Parameters<typeof named>[0], readonly string[]]>([
  [
    'the person ties all its keys',
    { userIds: ['person'], userKeys: keys, anonymousUserIds: [anonymous] },
    [...keys, anonymous],
  ],
  [
    'the person by a link ties all its keys',
    { userLinks: keys.map((key) => ({ key, customerUserId: 'person' })) },
    keys,
  ],
  [
    'only a key of the person ties its other keys',
    { userKeys: ['sub_of_person', 'cus_12345'] },
    ['sub_of_person', 'cus_12345'],
  ],
  [
    'another user beside the person ties only the ids of the SDK, which are of one customer',
    { userIds: ['person', 'other'], userKeys: keys, anonymousUserIds: [anonymous] },
    [anonymous],
  ],
  ['only another user ties no key', { userIds: ['other'], userKeys: ['sub_of_person', 'cus_12345'] }, []],
  ['nobody ties no key', { userKeys: keys }, []],
  ['a placeholder ties no key', { userIds: ['guest'], userKeys: keys }, []],
  [
    'the person ties no short key and no placeholder',
    { userIds: ['person'], userKeys: ['sub', 'undefined'] },
    [],
  ],
])('an event that names %s', (_, fields, tied) => {
  expect(tiedKeys(named(fields), isPerson, isOwnKey)).toEqual(tied);
});
