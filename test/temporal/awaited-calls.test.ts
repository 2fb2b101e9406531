import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { AwaitedCalls } from '../../temporal/awaited-calls.ts';

const NEVER_MS = 60_000;

/** A request that waits until the test ends it or makes it fail. */
function waitingRequest(calls: AwaitedCalls) {
  const signals = new EventEmitter();
  const request = calls.run(async () => void (await once(signals, 'end')));
  return { request, end: () => signals.emit('end'), fail: (error: Error) => signals.emit('error', error) };
}

test('background work goes on as soon as no request waits for a workflow any more', async () => {
  const calls = new AwaitedCalls();
  const order: string[] = [];
  await calls.waitUntilNone(NEVER_MS);
  const [first, second] = [waitingRequest(calls), waitingRequest(calls)];
  const steps = [1, 2].map(async () => {
    await calls.waitUntilNone(NEVER_MS);
    order.push('background');
  });
  first.end();
  await first.request;
  await sleep(5);
  order.push('request');
  second.fail(new Error('the request failed'));
  await expect(second.request).rejects.toThrow('the request failed');
  await Promise.all(steps);
  expect(order).toEqual(['request', 'background', 'background']);
  await calls.waitUntilNone(NEVER_MS);
});

test('background work goes on after its limit although a request still waits', async () => {
  const calls = new AwaitedCalls();
  const { request, end } = waitingRequest(calls);
  await calls.waitUntilNone(1);
  end();
  await request;
});
