import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { types } from 'node:util';
import { expect, test } from '@jest/globals';
import { PendingResults } from '../../temporal/pending-results.ts';

const LONG = 5_000;
const never = async (): Promise<string> => await new Promise<string>(() => {});
/** Started work whose result is fetched after a time. */
const work = (fetch: () => Promise<string>, fetchAfterMs = 0) => ({ fetchAfterMs, fetch });

test('every caller that waits for a result receives the one that an activity reports', async () => {
  const pending = new PendingResults<string>();
  const wait = () => pending.wait('id', { waitMs: LONG, start: async () => work(never) });
  const waits = [wait(), wait()];
  pending.settle('id', 'done');
  pending.settle('other', 'not this one');
  expect(await Promise.all(waits)).toEqual(['done', 'done']);
});

test('a result that is reported while the work starts is not missed', async () => {
  const pending = new PendingResults<string>();
  const start = async () => {
    pending.settle('id', 'done');
    return work(never);
  };
  expect(await pending.wait('id', { waitMs: LONG, start })).toBe('done');
});

test('a result that nobody reports in time is fetched', async () => {
  const pending = new PendingResults<string>();
  const start = async () => work(async () => 'fetched', 1);
  expect(await pending.wait('id', { waitMs: LONG, start })).toBe('fetched');
});

test('a result that is reported in time is not fetched', async () => {
  const pending = new PendingResults<string>();
  let fetches = 0;
  const fetch = async () => `fetched ${(fetches += 1)}`;
  const wait = pending.wait('id', { waitMs: LONG, start: async () => work(fetch, 30) });
  pending.settle('id', 'reported');
  expect(await wait).toBe('reported');
  await sleep(50);
  expect(fetches).toBe(0);
});

test('a result is still taken from a report after a fetch has failed', async () => {
  const pending = new PendingResults<string>();
  const fetch = async () => {
    throw new Error('Temporal is unavailable');
  };
  const wait = pending.wait('id', { waitMs: LONG, start: async () => work(fetch) });
  await sleep(20);
  pending.settle('id', 'reported');
  expect(await wait).toBe('reported');
});

test('an aborted wait returns null at once', async () => {
  const signal = AbortSignal.timeout(5);
  const pending = new PendingResults<string>();
  expect(await pending.wait('id', { waitMs: LONG, signal, start: async () => work(never) })).toBeNull();
});

test('a wait returns null when the work was not started, and when its time is up', async () => {
  const pending = new PendingResults<string>();
  expect(await pending.wait('id', { waitMs: LONG, start: async () => null })).toBeNull();
  expect(await pending.wait('id', { waitMs: 1, start: async () => work(never) })).toBeNull();
});

test('a late result is noticed when somebody reports it, and after a time in any case', async () => {
  const pending = new PendingResults<string>();
  const late: Promise<void>[] = [];
  const wait = async (id: string, forMs: number) =>
    await pending.wait(id, {
      waitMs: 5,
      start: async () => work(never),
      late: { forMs, notice: (settled) => void late.push(settled) },
    });
  expect([await wait('reported', LONG), await wait('lost', 5)]).toEqual([null, null]);
  pending.settle('reported', 'done');
  expect(await Promise.all(late)).toHaveLength(2);
  // Nobody waits any more.
  expect([pending.settle('reported', 'again'), pending.settle('lost', 'again')]).toEqual([false, false]);
});

test('work that was not started, and a result in time, are not noticed as late', async () => {
  const pending = new PendingResults<string>();
  const notice = () => {
    throw new Error('noticed');
  };
  const late = { forMs: LONG, notice };
  expect(await pending.wait('a', { waitMs: 5, start: async () => null, late })).toBeNull();
  const fetched = work(async () => 'done');
  expect(await pending.wait('b', { waitMs: LONG, start: async () => fetched, late })).toBe('done');
});

test('a wait throws the error of a start that fails', async () => {
  const pending = new PendingResults<string>();
  const start = async () => {
    await sleep(1);
    throw new Error('no connection');
  };
  await expect(pending.wait('id', { waitMs: LONG, start })).rejects.toThrow('no connection');
});

test('the end of one wait does not end a later wait for the same id', async () => {
  const pending = new PendingResults<string>();
  const wait = () => pending.wait('id', { waitMs: LONG, start: async () => work(never) });
  const first = wait();
  pending.settle('id', 'first');
  const second = wait();
  expect(await first).toBe('first');
  pending.settle('id', 'second');
  expect(await second).toBe('second');
});

test('a wait that has ended leaves nothing on a signal that lives longer', async () => {
  const { signal } = new AbortController();
  const pending = new PendingResults<string>();
  for (const id of ['one', 'two', 'three']) {
    const wait = pending.wait(id, { waitMs: LONG, signal, start: async () => work(never) });
    pending.settle(id, 'done');
    expect(await wait).toBe('done');
  }
  // Node keeps signals that were made from this one in a set.
  const dependents = Reflect.ownKeys(signal)
    .map((key): unknown => Reflect.get(signal, key))
    .filter((value) => types.isSet(value))
    .reduce((count, { size }) => count + size, 0);
  expect([dependents, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
});

test('a wait with an aborted signal returns null at once', async () => {
  const signal = AbortSignal.abort();
  const pending = new PendingResults<string>();
  expect(await pending.wait('id', { waitMs: LONG, signal, start: async () => work(never) })).toBeNull();
});
