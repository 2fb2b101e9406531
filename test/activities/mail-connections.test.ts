import { expect, test } from '@jest/globals';
import { MailConnections } from '../../activities/mail-connections.ts';
import type { AccountId } from '../../src/domain/ids.ts';

const ONE = 'acc_1' as AccountId;
const OTHER = 'acc_2' as AccountId;

// @promise email-shares
test('one account leaves a connection to the mail server to the others', () => {
  const connections = new MailConnections(4);
  expect([1, 2, 3].map(() => connections.take(ONE))).toEqual([0, 0, 0]);
  for (let n = 0; n < 200; n += 1) expect(connections.take(ONE)).toBeGreaterThanOrEqual(500);
  expect(connections.take(OTHER)).toBe(0);
  const waitMs = connections.take(OTHER);
  // As long as the mails of its own account that wait say, not those of others.
  expect(waitMs).toBeGreaterThanOrEqual(500);
  expect(waitMs).toBeLessThanOrEqual(750);
  connections.release(ONE);
  expect(connections.take(ONE)).toBe(0);
  connections.release(OTHER);
  expect(connections.take(OTHER)).toBe(0);
});

test('a connection that is given back is free, however often mails were turned away', () => {
  const connections = new MailConnections(2);
  for (let n = 0; n < 5; n += 1) {
    expect(connections.take(ONE)).toBe(0);
    expect(connections.take(ONE)).toBeLessThanOrEqual(750);
    connections.release(ONE);
  }
});
