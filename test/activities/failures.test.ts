import { expect, test } from '@jest/globals';
import { asyncLocalStorage } from '@temporalio/activity';
import type { Context } from '@temporalio/activity';
import { causeForFounder, withSafeFailures } from '../../activities/failures.ts';
import { DatabaseUnavailable, InvalidResult } from '../../src/db/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';

test.each([
  ['DatabaseUnavailable', new DatabaseUnavailable('the database did not respond in 8 attempts')],
  ['InvalidResult', new InvalidResult('statement returned 2 rows')],
])('a founder reads the message of an error that this service writes: %s', (_name, error) => {
  expect(causeForFounder(error)).toBe(error.message);
});

test('a founder reads no message of the runtime, which may quote the body', () => {
  expect(causeForFounder(new TypeError('cannot read "ann@example.com"'))).toBe('TypeError');
});

/** Returns the wait before the next attempt, ms, of an activity whose attempt fails this long after the activity was scheduled. */
async function nextRetryAfter(scheduledTimestampMs: number, afterMs: number): Promise<unknown> {
  const info = {
    isLocal: false,
    scheduledTimestampMs,
    currentAttemptScheduledTimestampMs: scheduledTimestampMs + afterMs,
  };
  const { step } = withSafeFailures({ step: async () => await Promise.reject(new Error('broken')) });
  const run = async () => await asyncLocalStorage.run({ info } as unknown as Context, step);
  return await run().catch((error: unknown) => Reflect.get(error as Error, 'nextRetryDelay') as unknown);
}

// @promise rare-retries
test.each([-HOUR_MS, 0, HOUR_MS])(
  'a step is retried rarely when it has failed for an hour by the clock of the server, whatever that of the worker says (%d ms off)',
  async (offMs) => {
    const real = Date.now;
    const scheduledAt = real();
    const waits = [];
    try {
      Date.now = () => real() + offMs;
      for (const afterMs of [0, 59 * MINUTE_MS, 61 * MINUTE_MS])
        waits.push(await nextRetryAfter(scheduledAt, afterMs));
    } finally {
      Date.now = real;
    }
    expect(waits.slice(0, 2)).toEqual([undefined, undefined]);
    expect(waits[2]).toBeGreaterThanOrEqual(10 * MINUTE_MS);
  },
);
