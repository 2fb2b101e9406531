import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Windows } from '../../src/http/rate-limits.ts';

/** The time of the windows, ms. */
let time = 0;

beforeEach(() => {
  time = 1_000;
  Object.defineProperty(performance, 'now', { value: () => time, configurable: true });
});
afterEach(() => {
  // That of the prototype is there again.
  Reflect.deleteProperty(performance, 'now');
});

test('a window ends after a minute, also for a caller who comes back before the ended windows are removed', () => {
  const windows = new Windows(2);
  const stateAt = (at: number, counter = 1) => {
    time = at;
    const { isAllowed, count, resetSeconds } = windows.count(counter);
    return [isAllowed, count, resetSeconds];
  };
  expect(stateAt(1_000)).toEqual([true, 1, 60]);
  expect(stateAt(1_500, 2)).toEqual([true, 1, 60]);
  expect(stateAt(60_000)).toEqual([true, 2, 1]);
  expect(stateAt(60_999)).toEqual([false, 3, 1]);
  // Windows that have ended are removed here, and those that end within the next second are not.
  expect(stateAt(61_000)).toEqual([true, 1, 60]);
  expect(windows.peek(2)).toMatchObject({ count: 1 });
  expect(stateAt(61_500, 2)).toEqual([true, 1, 60]);
  expect(stateAt(61_501, 2)).toEqual([true, 2, 60]);
  time = 121_400;
  expect(windows.peek(1)).toBeNull();
  expect(windows.peek(2)).toMatchObject({ count: 2, resetSeconds: 1 });
  time = 121_500;
  expect(windows.peek(2)).toBeNull();
});

test('a call costs as much while a thousand windows begin and end each second as before any has ended', () => {
  const windows = new Windows(2);
  let counter = 0;
  /** Returns how long a minute of calls of new callers takes, ms. */
  const minute = () => {
    const begin = process.hrtime.bigint();
    for (let call = 0; call < 60_000; call += 1) {
      time += 1;
      windows.count((counter += 1));
    }
    return Number(process.hrtime.bigint() - begin) / 1e6;
  };
  minute();
  const again = new Windows(2);
  const begin = process.hrtime.bigint();
  for (let call = 0; call < 60_000; call += 1) again.count(call);
  const before = Number(process.hrtime.bigint() - begin) / 1e6;
  const after = Math.min(minute(), minute());
  expect(after).toBeLessThan(6 * Math.max(before, 20));
});
