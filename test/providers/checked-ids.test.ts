import { describe, expect, test } from '@jest/globals';
import { IDS_PER_EVENT } from '../../src/domain/user-ids.ts';
import { providers } from '../../src/providers/index.ts';
import { bodyOf, eventOf, fixture, revenuecatEvent } from '../support/provider-fixtures.ts';
import type { RevenuecatOverrides } from '../support/provider-fixtures.ts';

const parse = (overrides: RevenuecatOverrides) =>
  providers.revenuecat.parse(bodyOf(revenuecatEvent({ transactionId: '70000000000999', ...overrides })));
const ids = (count: number) => Array.from({ length: count }, (_, nth) => `user-${nth}`);

describe('the users of an event', () => {
  test('are without the placeholders that an app sends in place of an id', () => {
    const { userIds, onlyAnonymousUserIds } = eventOf(
      parse({ userId: 'undefined', aliases: ['null', 'user-hazel', 'guest'] }),
    );
    expect({ userIds, onlyAnonymousUserIds }).toEqual({
      userIds: ['user-hazel'],
      onlyAnonymousUserIds: false,
    });
  });

  test('are nobody where the app sends placeholders only', () => {
    const { userIds, onlyAnonymousUserIds } = eventOf(parse({ userId: 'undefined', aliases: ['null'] }));
    expect({ userIds, onlyAnonymousUserIds }).toEqual({ userIds: [], onlyAnonymousUserIds: true });
  });

  test('have their anonymous ids as keys, which a code may bind', () => {
    const anonymous = '$RCAnonymousID:87c6049c58069238dce29853916d624c';
    expect(eventOf(parse({ userId: anonymous })).userKeys).toEqual([anonymous, 'app_store:70000000000999']);
  });

  test('are as many as the limit allows, with the key of the purchase; with one more the event has failed', () => {
    const most = ids(IDS_PER_EVENT - 1);
    expect(eventOf(parse({ userId: 'user-0', aliases: most })).userIds).toHaveLength(IDS_PER_EVENT - 1);
    expect(parse({ userId: 'user-0', aliases: [...most, 'user-hazel'] })).toEqual({
      outcome: 'failed',
      reason: 'the event names more than 200 users and keys',
    });
  });

  test('are checked in an event that does not count, too, because its users are stored', () => {
    const unknown = { type: 'SOMETHING_NEW', userId: 'undefined', aliases: ['user-hazel'] };
    expect(parse(unknown)).toMatchObject({ outcome: 'ignored', event: { userIds: ['user-hazel'] } });
    expect(parse({ ...unknown, aliases: ids(IDS_PER_EVENT + 1) })).toMatchObject({ outcome: 'failed' });
  });
});

test('a body without an event is ignored, and a body that cannot be read has failed, each with its own reason', () => {
  expect(providers.adapty.parse(fixture('adapty', 'setup_check'))).toEqual({
    outcome: 'ignored',
    reason: 'a test of the webhook setup contains no event',
    event: null,
  });
  expect(providers.adapty.parse(Buffer.from('[]'))).toEqual({
    outcome: 'failed',
    reason: 'the body is not a JSON object',
  });
});
