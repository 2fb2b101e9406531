import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import {
  joinSignedToken,
  schemeOf,
  splitSignedToken,
  verifySignedToken,
} from '../../src/providers/shared/signed-token.ts';
import type { TimestampedHmacScheme } from '../../src/providers/shared/timestamped-hmac.ts';

const AT = 1_790_000_000_000;
const TOKEN = 'Bearer 5f0c-lantern';
const KEY = 'a signing secret for tests';
const BODY = Buffer.from('{"event":{}}');

const scheme = (header: string): TimestampedHmacScheme => ({
  header,
  separator: ',',
  timeKey: 't',
  signatureKey: 'v1',
  joint: '.',
  toleranceMs: 300_000,
  clockStepMs: 1_000,
});
const SCHEMES = [scheme('x-first'), scheme('x-second'), scheme('x-third')] as const;

const signed = (key = KEY): string => {
  const mac = createHmac('sha256', key)
    .update(`${AT / 1000}.`)
    .update(BODY);
  return `t=${AT / 1000},v1=${mac.digest('hex')}`;
};
const verifies = async (headers: Readonly<Record<string, string>>, signingSecret: string | null) =>
  await verifySignedToken(
    { headers, body: BODY, receivedAt: AT },
    joinSignedToken({ token: TOKEN, signingSecret }),
    SCHEMES,
  );

describe('a token and a signing secret', () => {
  test.each([
    { token: TOKEN, signingSecret: null },
    { token: TOKEN, signingSecret: KEY },
    { token: TOKEN, signingSecret: 'two\nlines' },
    { token: '', signingSecret: KEY },
  ])('are stored as one text that reads as both: %j', (both) => {
    expect(splitSignedToken(joinSignedToken(both))).toEqual(both);
  });

  test('without a signing secret are the token alone, as earlier versions stored it', () => {
    expect(joinSignedToken({ token: TOKEN, signingSecret: null })).toBe(TOKEN);
    expect(joinSignedToken({ token: TOKEN, signingSecret: KEY })).toBe(`${TOKEN}\n${KEY}`);
  });

  test('need no signature where none is set', async () => {
    expect(await verifies({ authorization: TOKEN }, null)).toBe(true);
    expect(await verifies({ authorization: `${TOKEN}x` }, null)).toBe(false);
  });

  test('need both where both are set, in the header of any of the schemes', async () => {
    for (const { header } of SCHEMES) {
      expect(await verifies({ authorization: TOKEN, [header]: signed() }, KEY)).toBe(true);
      expect(await verifies({ authorization: `${TOKEN}x`, [header]: signed() }, KEY)).toBe(false);
      expect(await verifies({ authorization: TOKEN, [header]: signed('another one') }, KEY)).toBe(false);
      expect(await verifies({ [header]: signed() }, KEY)).toBe(false);
    }
    expect(await verifies({ authorization: TOKEN }, KEY)).toBe(false);
    expect(await verifies({ authorization: TOKEN, 'x-other': signed() }, KEY)).toBe(false);
  });

  test('are compared with the first header that a request has, or with the first of all', () => {
    const of = (...names: string[]) =>
      schemeOf({ headers: Object.fromEntries(names.map((name) => [name, ''])) }, SCHEMES).header;
    expect(of()).toBe('x-first');
    expect(of('x-other')).toBe('x-first');
    expect(of('x-third')).toBe('x-third');
    expect(of('x-third', 'x-second')).toBe('x-second');
    expect(of('x-third', 'x-first')).toBe('x-first');
  });
});
