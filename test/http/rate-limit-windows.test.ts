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

test('while a thousand windows begin and end each second, those that have ended are looked for once a second', () => {
  const walk = Map.prototype[Symbol.iterator];
  let walks = 0;
  const counted = function counted<K, V>(this: Map<K, V>) {
    walks += 1;
    return walk.call(this) as MapIterator<[K, V]>;
  };
  Reflect.set(Map.prototype, Symbol.iterator, counted);
  try {
    const windows = new Windows(2);
    for (let counter = 0; counter < 180_000; counter += 1) {
      time += 1;
      windows.count(counter);
    }
  } finally {
    Reflect.set(Map.prototype, Symbol.iterator, walk);
  }
  // The first windows end after a minute.
  expect(walks).toBeGreaterThan(115);
  expect(walks).toBeLessThan(125);
});
