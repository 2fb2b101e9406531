import { describe, expect, test } from '@jest/globals';
import { FIRST_INSTANT, instantProblem } from '../../src/domain/instants.ts';
import { DAY_MS } from '../../src/domain/time.ts';

const NOW = 1_790_000_000_000;

describe('an instant in a request', () => {
  test.each([
    ['the current time', NOW],
    ['the first millisecond of 2001', Date.UTC(2001, 0, 1)],
    ['366 days ahead', NOW + 366 * DAY_MS],
  ])('an instant is accepted if it is %s', (_, at) => {
    expect(instantProblem(at, { now: NOW, takesZero: false })).toBeNull();
    expect(instantProblem(at, { now: NOW, takesZero: true })).toBeNull();
  });

  test.each([
    ['in seconds', NOW / 1000, /^Looks like seconds: .*2001-01-01\. Send epoch milliseconds/],
    ['one millisecond before 2001', FIRST_INSTANT - 1, /^Looks like seconds/],
    ['one millisecond', 1, /^Looks like seconds/],
    ['more than 366 days ahead', NOW + 366 * DAY_MS + 1, /at most 366 days ahead\. Send epoch milliseconds/],
    ['in microseconds', NOW * 1000, /at most 366 days ahead/],
  ])('an instant is refused, with the unit to send, if it is %s', (_, at, problem) => {
    expect(instantProblem(at, { now: NOW, takesZero: false })).toMatch(problem);
    expect(instantProblem(at, { now: NOW, takesZero: true })).toMatch(problem);
  });

  test('0 is an instant only where it stands for the beginning', () => {
    expect(instantProblem(0, { now: NOW, takesZero: true })).toBeNull();
    expect(instantProblem(0, { now: NOW, takesZero: false })).toMatch(/^Looks like seconds/);
  });
});
