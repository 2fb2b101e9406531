import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { PendingResults } from '../../temporal/pending-results.ts';

const LONG = 5_000;
const never = async (): Promise<string> => await new Promise<string>(() => {});

test('every caller that waits for a result receives the one that an activity reports', async () => {
  const pending = new PendingResults<string>();
  const wait = () => pending.wait('id', { waitMs: LONG, localMs: LONG, start: async () => never });
  const waits = [wait(), wait()];
  pending.settle('id', 'done');
  pending.settle('other', 'not this one');
  expect(await Promise.all(waits)).toEqual(['done', 'done']);
});

test('a result that is reported while the work starts is not missed', async () => {
  const pending = new PendingResults<string>();
  const start = async () => {
    pending.settle('id', 'done');
    return never;
  };
  expect(await pending.wait('id', { waitMs: LONG, localMs: LONG, start })).toBe('done');
});

test('a result that no worker of this process reports in time is fetched', async () => {
  const pending = new PendingResults<string>();
  const start = async () => async () => 'fetched';
  expect(await pending.wait('id', { waitMs: LONG, localMs: 1, start })).toBe('fetched');
  expect(await pending.wait('id', { waitMs: LONG, localMs: null, start })).toBe('fetched');
});

test('a wait returns null when the work was not started, and when its time is up', async () => {
  const pending = new PendingResults<string>();
  const settings = { waitMs: LONG, localMs: LONG };
  expect(await pending.wait('id', { ...settings, start: async () => null })).toBeNull();
  expect(await pending.wait('id', { ...settings, waitMs: 1, start: async () => never })).toBeNull();
});

test('a wait throws the error of a start that fails', async () => {
  const pending = new PendingResults<string>();
  const start = async () => {
    await sleep(1);
    throw new Error('no connection');
  };
  await expect(pending.wait('id', { waitMs: LONG, localMs: LONG, start })).rejects.toThrow('no connection');
});

test('the end of one wait does not end a later wait for the same id', async () => {
  const pending = new PendingResults<string>();
  const wait = () => pending.wait('id', { waitMs: LONG, localMs: LONG, start: async () => never });
  const first = wait();
  pending.settle('id', 'first');
  const second = wait();
  expect(await first).toBe('first');
  pending.settle('id', 'second');
  expect(await second).toBe('second');
});
