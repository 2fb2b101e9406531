import { expect, test } from '@jest/globals';
import { AdaptiveLimit } from '../../src/http/adaptive-limit.ts';

const HOUR_MS = 3_600_000;

/** Notes calls of a service that is at its limit, each with as long a duration as `durationOf` returns for the calls in progress. */
function saturate(limit: AdaptiveLimit, durationOf: (inProgress: number) => number, calls = 200): number {
  for (let n = 0; n < calls; n += 1) limit.note(durationOf(limit.value), limit.value);
  return limit.value;
}

function setUp(least = 4, most = 32) {
  let nowMs = 0;
  const limit = new AdaptiveLimit({ least, most }, () => nowMs);
  // A call that had the machine for itself.
  limit.note(30, 1);
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { limit, wait };
}

test('the limit stays at its most while calls take at most four times as long as the shortest', () => {
  const { limit } = setUp();
  expect(saturate(limit, () => 120)).toBe(32);
});

test('where calls wait for each other, the limit falls until they take a few times as long as the shortest', () => {
  const { limit } = setUp();
  // Forty calls finish in a second, however many are in progress.
  const settled = saturate(limit, (inProgress) => inProgress * 25);
  expect(settled).toBeGreaterThanOrEqual(7);
  expect(settled).toBeLessThanOrEqual(11);
});

test('however long calls take, the limit is never below its least, nor above its most if that is less', () => {
  expect(saturate(setUp().limit, () => 60_000, 2_000)).toBeLessThanOrEqual(8);
  expect(saturate(setUp(20).limit, () => 60_000, 2_000)).toBe(20);
  expect(saturate(setUp(4, 2).limit, () => 60_000)).toBe(2);
});

test('when calls are short again, the limit is at its most within 200 of them, but only if they reach it', () => {
  const { limit } = setUp();
  const low = saturate(limit, (inProgress) => inProgress * 25);
  for (let n = 0; n < 200; n += 1) limit.note(30, 1);
  expect(limit.value).toBe(low);
  expect(saturate(limit, () => 30)).toBe(32);
});

test('a shortest duration counts for half an hour at least and an hour at most', () => {
  const { limit, wait } = setUp();
  const slow = () => 1_000;
  wait(HOUR_MS / 2);
  const low = saturate(limit, slow);
  expect(low).toBeLessThanOrEqual(8);
  wait(HOUR_MS / 2);
  expect(saturate(limit, slow)).toBe(32);
});
