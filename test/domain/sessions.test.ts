import { expect, test } from '@jest/globals';
import * as sessions from '../../src/domain/sessions.ts';

test('sessions, links and the right to pay last as long as the documentation says', () => {
  const hours = Object.fromEntries(
    Object.entries(sessions).flatMap(([name, value]) =>
      name.endsWith('_MS') && typeof value === 'number' ? [[name, value / 3_600_000]] : [],
    ),
  );
  expect(hours).toEqual({
    SESSION_IDLE_MS: 7 * 24,
    SESSION_MAX_MS: 30 * 24,
    RAISED_MS: 0.25,
    SIGN_IN_LINK_MS: 0.25,
    MEMBER_LINK_MS: 24,
    FIRST_LINK_MS: 0.5,
    CREATOR_SESSION_IDLE_MS: 90 * 24,
    CREATOR_SESSION_MAX_MS: 365 * 24,
    CREATOR_LINK_MS: 7 * 24,
    OPERATOR_SESSION_MS: 12,
  });
});

test.each([
  ['a'.repeat(43), true],
  ['Az09_-'.padEnd(43, 'x'), true],
  ['a'.repeat(42), false],
  ['a'.repeat(44), false],
  ['+'.padEnd(43, 'a'), false],
  ['', false],
])('%j is a token: %j', (text, isToken) => {
  expect(sessions.isToken(text)).toBe(isToken);
});

test.each(['https://api.example.com', 'https://api.example.com/'])(
  'a link of %s has its token in the fragment',
  (publicUrl) => {
    expect(sessions.signInUrl(publicUrl, 'T', { isNew: false })).toBe(
      'https://api.example.com/console/#token=T',
    );
    expect(sessions.signInUrl(publicUrl, 'T', { isNew: true })).toBe(
      'https://api.example.com/console/#token=T&new=1',
    );
    expect(sessions.creatorSignInUrl(publicUrl, 'T')).toBe(
      'https://api.example.com/console/creator/#token=T',
    );
    expect(sessions.operatorSignInUrl(publicUrl, 'T')).toBe(
      'https://api.example.com/console/operator/#token=T',
    );
    expect(sessions.creatorPageUrl(publicUrl)).toBe('https://api.example.com/console/creator/');
    expect(sessions.accessPageUrl(publicUrl)).toBe('https://api.example.com/console/access');
  },
);
