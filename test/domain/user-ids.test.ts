import { describe, expect, test } from '@jest/globals';
import {
  IDS_PER_EVENT,
  isPlaceholder,
  namesTooMany,
  withAnonymousKeys,
  withoutPlaceholders,
} from '../../src/domain/user-ids.ts';
import { normalizedEvent } from '../../src/providers/shared/normalized-event.ts';

const event = (fields: object) =>
  normalizedEvent({ sourceEventId: 'e', kind: 'purchase', occurredAt: 0, ...fields });

// @promise placeholders-are-anonymous
test.each([
  'guest',
  'Null',
  ' undefined ',
  '(null)',
  '0',
  '-1',
  '[object Object]',
  '',
  'N/A',
  'NaN',
  'No User',
  'no_user',
  '{}',
  '(not set)',
  '"undefined"',
  "'null'",
  '<null>',
  'Optional(nil)',
  'unknown_user',
  'anonymous_user',
  'logged_out',
  '<nil>',
  '${userId}',
  '{{user_id}}',
  'no_user_id',
  '00000000-0000-0000-0000-000000000000',
  '0.0',
  '--',
  'ＧＵＥＳＴ',
  'gue\u200bst',
  '\ufeffanonymous',
  'undefined\u200e',
  'NULL\u00a0',
])('%j stands for a missing id', (text) => {
  expect(isPlaceholder(text)).toBe(true);
});

test.each([
  '1',
  '10',
  '-10',
  'user-0',
  'guest-17',
  'nullable',
  'a',
  '0a',
  '😀',
  'tester',
  'undefined-4711',
  'Ñ',
])('%j is an id', (text) => {
  expect(isPlaceholder(text)).toBe(false);
});

describe('an event without its placeholders', () => {
  // @promise placeholders-are-anonymous
  test('names its other users, and is of an anonymous user if there are none', () => {
    expect(withoutPlaceholders(event({ userIds: ['guest', 'user-1', 'null'] }))).toMatchObject({
      userIds: ['user-1'],
      onlyAnonymousUserIds: false,
    });
    expect(withoutPlaceholders(event({ userIds: ['guest', 'null'] }))).toMatchObject({
      userIds: [],
      onlyAnonymousUserIds: true,
    });
    expect(withoutPlaceholders(event({ userIds: [] })).onlyAnonymousUserIds).toBe(false);
  });

  // @promise placeholders-are-anonymous
  test('ties no key to a placeholder, and transfers nothing from or to one', () => {
    const userLinks = [
      { key: 'sub_1', customerUserId: 'undefined' },
      { key: 'sub_2', customerUserId: 'user-2' },
    ];
    const transfer = { from: ['guest', 'user-1'], to: ['0', 'user-2'] };
    expect(withoutPlaceholders(event({ userLinks, transfer }))).toMatchObject({
      userLinks: [{ key: 'sub_2', customerUserId: 'user-2' }],
      transfer: { from: ['user-1'], to: ['user-2'] },
    });
  });
});

// @promise code-anonymous-keys
test('an anonymous id is a key of its event, unless it is a placeholder, which any number of customers have', () => {
  const anonymousUserIds = ['$RCAnonymousID:1', '00000000-0000-0000-0000-000000000000', 'sub_1'];
  expect(withAnonymousKeys(event({ anonymousUserIds, userKeys: ['sub_1', 'sub_2'] })).userKeys).toEqual([
    '$RCAnonymousID:1',
    'sub_1',
    'sub_2',
  ]);
});

describe('the number of users and keys of an event', () => {
  const ids = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`);
  const half = IDS_PER_EVENT / 2;

  // @promise ids-per-event
  test.each([
    ['user ids', (count: number) => ({ userIds: ids(count) })],
    ['keys', (count: number) => ({ userKeys: ids(count) })],
    ['anonymous ids', (count: number) => ({ anonymousUserIds: ids(count) })],
    [
      'both sides of a transfer',
      (count: number) => ({
        transfer: { from: ids(count).slice(0, half), to: ids(count).slice(half) },
      }),
    ],
    ['user ids and keys', (count: number) => ({ userIds: ids(half), userKeys: ids(count - half) })],
    [
      'links',
      (count: number) => ({
        userLinks: ids(count - 1).map((key) => ({ key, customerUserId: 'user' })),
      }),
    ],
    [
      'other references of the payment',
      (count: number) => ({
        paymentAliases: ids(count).map((aliasRef) => ({ store: 'stripe', aliasRef, paymentRef: 'in_1' })),
      }),
    ],
  ])('may be %s up to the limit', (_title, fields) => {
    expect(namesTooMany(event(fields(IDS_PER_EVENT)))).toBe(false);
    expect(namesTooMany(event(fields(IDS_PER_EVENT + 1)))).toBe(true);
  });

  test('counts the users and the keys of links', () => {
    const links = (users: number) =>
      Array.from({ length: users }, (_, n) => ({ key: 'sub_1', customerUserId: `user-${n}` }));
    expect(namesTooMany(event({ userLinks: links(IDS_PER_EVENT - 1) }))).toBe(false);
    expect(namesTooMany(event({ userLinks: links(IDS_PER_EVENT) }))).toBe(true);
  });

  test('counts an id once, however often the event names it', () => {
    const same = Array.from({ length: 300 }, () => ({ key: 'sub_1', customerUserId: 'user-1' }));
    expect(namesTooMany(event({ userLinks: same }))).toBe(false);
  });
});
