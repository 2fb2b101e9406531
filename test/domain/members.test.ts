import { expect, test } from '@jest/globals';
import { givesPayout } from '../../src/domain/members.ts';
import type { MemberAccess } from '../../src/domain/members.ts';

const access = (role: MemberAccess['role'], appIds: MemberAccess['appIds'] = null) => ({ role, appIds });

// @promise member-payout-given
test.each<[string, MemberAccess | null, MemberAccess, boolean]>([
  ['a new owner', null, access('owner'), true],
  ['a new finance person of one app', null, access('finance', ['a']), true],
  ['a new admin', null, access('admin'), false],
  ['a new analyst', null, access('analyst'), false],
  ['an analyst who becomes finance', access('analyst'), access('finance'), true],
  ['an admin who becomes an owner', access('admin'), access('owner'), true],
  ['an owner who becomes finance of one app', access('owner'), access('finance', ['a']), false],
  ['an owner who becomes an admin', access('owner'), access('admin'), false],
  ['a finance person who becomes an owner', access('finance'), access('owner'), false],
  ['finance of one app, now of all', access('finance', ['a']), access('finance'), true],
  ['finance of one app, now of another', access('finance', ['a']), access('finance', ['b']), true],
  ['finance of one app, now of one more', access('finance', ['a']), access('finance', ['b', 'a']), true],
  ['finance of two apps, now of one', access('finance', ['a', 'b']), access('finance', ['b']), false],
  ['finance of all apps, now of one', access('finance'), access('finance', ['a']), false],
  ['an analyst of one app, now of all', access('analyst', ['a']), access('analyst'), false],
])('%s', (_, before, after, gives) => {
  expect(givesPayout(before, after)).toBe(gives);
});
