import { expect, test } from '@jest/globals';
import { AdaptiveLimit } from '../../src/http/adaptive-limit.ts';

const HOUR_MS = 3_600_000;

/** Notes calls of a service that is at its limit, each with as long a duration as `durationOf` returns for the calls in progress. */
function saturate(
  limit: AdaptiveLimit,
  durationOf: (inProgress: number) => number,
  { calls = 200, areShared = false } = {},
): number {
  for (let n = 0; n < calls; n += 1) limit.note(durationOf(limit.value), limit.value, areShared);
  return limit.value;
}

/** The duration of a call where forty finish in a second, however many are in progress. */
const fortyPerSecond = (inProgress: number) => inProgress * 25;

function setUp(most = 32) {
  let nowMs = 0;
  const limit = new AdaptiveLimit(most, () => nowMs);
  // Calls that had the machine for themselves.
  for (let n = 0; n < 10; n += 1) limit.note(30, 1, false);
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { limit, wait };
}

test('the limit stays at its most while calls take at most four times as long as when they were shortest', () => {
  const { limit } = setUp();
  expect(saturate(limit, () => 120)).toBe(32);
});

test('where calls wait for each other, the limit falls until they take a few times as long as when they were shortest', () => {
  const { limit } = setUp();
  const settled = saturate(limit, fortyPerSecond);
  expect(settled).toBeGreaterThanOrEqual(8);
  expect(settled).toBeLessThanOrEqual(11);
});

test('where several holders share the slots, it falls until calls take about twice as long, and rises again for one', () => {
  const { limit } = setUp();
  const shared = saturate(limit, fortyPerSecond, { areShared: true });
  expect(shared).toBeGreaterThanOrEqual(2);
  expect(shared).toBeLessThanOrEqual(3);
  expect(saturate(limit, fortyPerSecond)).toBeGreaterThanOrEqual(8);
});

test('calls that do not wait for each other have all slots, however many holders share them', () => {
  expect(saturate(setUp().limit, () => 55, { areShared: true })).toBe(32);
});

test('however long calls take, the limit is never below 8, nor below 2 for several holders, nor above its most', () => {
  const endless = () => 60_000;
  expect(saturate(setUp().limit, endless)).toBe(8);
  expect(saturate(setUp().limit, endless, { areShared: true })).toBe(2);
  expect(saturate(setUp(1).limit, endless)).toBe(1);
});

test('fewer than ten calls, or a single one that is shorter than all others, lower no limit', () => {
  const first = new AdaptiveLimit(32);
  for (let n = 0; n < 5; n += 1) first.note(10, 1, true);
  expect(saturate(first, () => 40, { areShared: true })).toBe(32);
  const { limit } = setUp();
  saturate(limit, () => 30);
  limit.note(1, 1, false);
  expect(saturate(limit, () => 100)).toBe(32);
});

test('when calls are short again, the limit is at its most within 200 of them, but only if they reach it', () => {
  const { limit } = setUp();
  const low = saturate(limit, fortyPerSecond);
  for (let n = 0; n < 200; n += 1) limit.note(30, 1, false);
  expect(limit.value).toBe(low);
  expect(saturate(limit, () => 30)).toBe(32);
});

test('a shortest average counts for half an hour at least and an hour at most', () => {
  const { limit, wait } = setUp();
  const slow = () => 1_000;
  wait(HOUR_MS / 2);
  const low = saturate(limit, slow);
  expect(low).toBeLessThanOrEqual(8);
  // The averages on the way from short calls to long ones were of the last half hour.
  wait(HOUR_MS / 2);
  expect(saturate(limit, slow)).toBeLessThan(32);
  wait(HOUR_MS / 2);
  expect(saturate(limit, slow)).toBe(32);
});
