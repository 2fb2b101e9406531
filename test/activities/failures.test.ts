import { expect, test } from '@jest/globals';
import { causeForFounder } from '../../activities/failures.ts';
import { DatabaseUnavailable, InvalidResult } from '../../src/db/errors.ts';

test.each([
  ['DatabaseUnavailable', new DatabaseUnavailable('the database did not respond in 8 attempts')],
  ['InvalidResult', new InvalidResult('statement returned 2 rows')],
])('a founder reads the message of an error that this service writes: %s', (_name, error) => {
  expect(causeForFounder(error)).toBe(error.message);
});

test('a founder reads no message of the runtime, which may quote the body', () => {
  expect(causeForFounder(new TypeError('cannot read "ann@example.com"'))).toBe('TypeError');
});
