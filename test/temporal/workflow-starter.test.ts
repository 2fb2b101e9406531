import { expect, test } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import {
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { pino } from 'pino';
import { newId } from '../../src/db/new-id.ts';
import { MINUTE_MS } from '../../src/domain/time.ts';
import type { SharedResult } from '../../temporal/shared-results.ts';
import { WORKFLOWS } from '../../temporal/start.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import type { WorkflowStarterDeps } from '../../temporal/workflow-starter.ts';
import { shortestTime } from '../support/shortest-time.ts';

interface Start {
  readonly name: string;
  readonly taskQueue: string;
  readonly workflowId: string;
  readonly staticSummary?: string;
  readonly priority?: { readonly fairnessKey?: string };
  readonly typedSearchAttributes?: readonly {
    readonly key: { readonly name: string };
    readonly value: string;
  }[];
  readonly labels?: Readonly<Record<string, string>>;
}

/** Creates a starter whose Temporal server records every start and has each result at once. */
function recordingStarter(
  deps: Partial<WorkflowStarterDeps> = {},
  { isRunning = false, startMs = 0, refusesLabels = false, lostResults = 0 } = {},
) {
  const starts: Start[] = [];
  const fetches: string[] = [];
  const cancelled: string[] = [];
  const deadlines: number[] = [];
  const start = async (name: string, { taskQueue, workflowId, staticSummary = '', ...options }: Start) => {
    const labels = Object.fromEntries(
      (options.typedSearchAttributes ?? []).map(({ key, value }) => [key.name, value]),
    );
    const { priority = {} } = options;
    starts.push({ name, taskQueue, workflowId, staticSummary, labels, priority });
    if (refusesLabels && options.typedSearchAttributes !== undefined)
      throw new ServiceError('refused', { cause: Object.assign(new Error('no mapping'), { code: 3 }) });
    if (startMs > 0) await sleep(startMs);
    if (isRunning) throw new WorkflowExecutionAlreadyStartedError('runs already', workflowId, name);
    const result = async () => {
      fetches.push(workflowId);
      if (fetches.length <= lostResults) throw new WorkflowNotFoundError('not found', workflowId, undefined);
      return { status: 'duplicate' };
    };
    return { result, client };
  };
  const client = {
    withDeadline: async (deadline: number, call: () => Promise<unknown>) => {
      deadlines.push(deadline);
      return await call();
    },
    workflow: {
      start,
      signalWithStart: start,
      getHandle: (id: string) => ({
        client,
        cancel: async () => void cancelled.push(id),
        signal: () => Promise.reject(new WorkflowNotFoundError('ended', id, undefined)),
      }),
    },
  };
  const starter = createWorkflowStarter({
    client: () => client as unknown as Client,
    taskQueue: 'q',
    hasWorker: false,
    logger: pino({ level: 'silent' }),
    ...deps,
  });
  return { starter, starts, fetches, cancelled, deadlines };
}

const APP = newId('app');

const newDelivery = () => ({
  deliveryId: newId('delivery'),
  appId: APP,
  provider: 'stripe',
  eventId: newId('event'),
});

const newRequest = () => ({
  id: newId('payoutRequest'),
  appId: APP,
  affiliateId: newId('affiliate'),
});

const dueIn = (ms: number) => ({
  commissionId: newId('commission'),
  appId: APP,
  eventId: newId('event'),
  dueAt: Date.now() + ms,
});

// @promise payout-signalled-again
test('a payout request whose workflow the server has lost is signalled again while its caller waits', async () => {
  const { starter, starts, fetches } = recordingStarter({}, { lostResults: 2 });
  const began = performance.now();
  await starter.settlePayout(newRequest(), 10_000);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(starts.map(({ name }) => name)).toEqual(['payout', 'payout', 'payout']);
  expect(fetches).toHaveLength(3);
});

test('calls for one payout request share a signal on its way; each other request has its own', async () => {
  const { starter, starts } = recordingStarter({}, { startMs: 50 });
  const [request, other] = [newRequest(), newRequest()];
  await Promise.all([request, request, other].map((one) => starter.settlePayout(one, 10_000)));
  expect(starts).toHaveLength(2);
  await starter.settlePayout(request, 10_000);
  expect(starts).toHaveLength(3);
});

test('a signal for an export has more time than other calls, so that a busy server can load the workflow', async () => {
  const { starter, deadlines } = recordingStarter();
  const now = Date.now();
  await starter.settlePayout(newRequest(), 20_000);
  starter.startInBackground('convert', undefined);
  await starter.drain();
  const [signal = 0, , start = 0] = deadlines.map((deadline) => deadline - now);
  expect(signal).toBeGreaterThan(5_000);
  expect(start).toBeLessThan(5_000);
});

test('the ids of workflows do not change', async () => {
  const { starter, starts } = recordingStarter();
  const [id, request] = [newId('delivery'), newRequest()];
  await starter.awaitDelivery({ ...newDelivery(), deliveryId: id }, 1_000);
  await starter.settlePayout(request, 1_000);
  const bindingId = newId('binding');
  starter.healBinding(bindingId, APP);
  const reprocessRunId = newId('reprocessRun');
  starter.startReprocess({ id: reprocessRunId, appId: APP, isCancelled: false });
  const erasureId = newId('erasure');
  starter.startInBackground('erase', { erasureId }, APP);
  starter.startInBackground('convert', undefined);
  starter.startInBackground('sweep', undefined);
  const messageId = newId('webhookMessage');
  await starter.runWebhook({ messageId, appId: APP, due: 'later' });
  const commission = dueIn(60 * MINUTE_MS);
  starter.startHolds([commission]);
  await starter.drain();
  expect(Object.fromEntries(starts.map(({ name, workflowId }) => [name, workflowId]))).toEqual({
    delivery: `delivery:${id}`,
    payout: `payout:${request.affiliateId}`,
    heal: `heal:${bindingId}`,
    reprocess: `reprocess:${reprocessRunId}`,
    erase: `erase:${erasureId}`,
    convert: 'convert:q',
    sweep: 'sweep-now:q',
    webhook: `webhook:${messageId}`,
    hold: `hold:${commission.commissionId}`,
  });
});

// @promise separate-task-queues
test('deliveries and payouts start on the task queue of awaited work, and everything else on the background queue', async () => {
  const { starter, starts } = recordingStarter();
  await starter.awaitDelivery(newDelivery(), 1_000);
  await starter.settlePayout(newRequest(), 1_000);
  starter.healBinding(newId('binding'), APP);
  starter.startInBackground('convert', undefined);
  starter.startReprocess({ id: newId('reprocessRun'), appId: APP, isCancelled: false });
  starter.startHolds([dueIn(60 * MINUTE_MS)]);
  await starter.drain();
  const queues = Object.fromEntries(starts.map(({ name, taskQueue }) => [name, taskQueue]));
  expect(queues).toEqual({
    delivery: 'q',
    payout: 'q',
    hold: 'q-background',
    heal: 'q-background',
    convert: 'q-background',
    reprocess: 'q-background',
  });
});

const ALL_KNOWN = new Set(['DeliveryState', 'AppId', 'Provider'] as const);

// @promise workflows-found-by-app
test('a delivery starts with its app and provider as search attributes; a payout, a hold and a heal with their app', async () => {
  const known = () => ({ searchAttributes: ALL_KNOWN, forgetSearchAttributes: () => {} });
  const { starter, starts } = recordingStarter({ known });
  await starter.awaitDelivery(newDelivery(), 1_000);
  await starter.settlePayout(newRequest(), 1_000);
  starter.healBinding(newId('binding'), APP);
  starter.startInBackground('convert', undefined);
  starter.startHolds([dueIn(60 * MINUTE_MS)]);
  await starter.drain();
  await starter.runHeal(newId('binding'), APP);
  expect(starts.map(({ name, labels }) => [name, labels])).toEqual([
    ['delivery', { AppId: APP, Provider: 'stripe' }],
    ['payout', { AppId: APP }],
    ['heal', { AppId: APP }],
    ['convert', {}],
    ['hold', { AppId: APP }],
    ['heal', { AppId: APP }],
  ]);
});

// @promise fair-between-apps
test('all work of an app has the app as its fairness key, with and without search attributes', async () => {
  for (const deps of [
    {},
    { known: () => ({ searchAttributes: ALL_KNOWN, forgetSearchAttributes: () => {} }) },
  ]) {
    const { starter, starts } = recordingStarter(deps);
    await starter.awaitDelivery(newDelivery(), 1_000);
    await starter.settlePayout(newRequest(), 1_000);
    starter.healBinding(newId('binding'), APP);
    starter.startInBackground('convert', undefined);
    starter.startReprocess({ id: newId('reprocessRun'), appId: APP, isCancelled: false });
    starter.startInBackground('erase', { erasureId: newId('erasure') }, APP);
    starter.startPayoutRun({ runId: newId('payoutRun'), appId: APP });
    starter.sendWebhookNow({ messageId: newId('webhookMessage'), appId: APP });
    await starter.runWebhook({ messageId: newId('webhookMessage'), appId: APP, due: 'later' });
    await starter.runEmail({ emailId: newId('email'), appId: APP, isUrgent: false });
    starter.startHolds([dueIn(60 * MINUTE_MS)]);
    await starter.drain();
    const keys = starts.map(({ name, priority }) => [name, priority?.fairnessKey ?? null] as const);
    expect(keys.filter(([, key]) => key === null)).toEqual([['convert', null]]);
    expect(new Set(keys.map(([, key]) => key))).toEqual(new Set([APP, null]));
    // The sweep is for all apps, too.
    const names = keys.map(([name]) => name);
    expect(new Set([...names, 'sweep'])).toEqual(new Set(Object.keys(WORKFLOWS)));
  }
});

// @promise workflows-found-by-app
test('a workflow starts with those search attributes only that the namespace has', async () => {
  const searchAttributes = new Set(['Provider'] as const);
  const { starter, starts } = recordingStarter({
    known: () => ({ searchAttributes, forgetSearchAttributes: () => {} }),
  });
  await starter.awaitDelivery(newDelivery(), 1_000);
  await starter.settlePayout(newRequest(), 1_000);
  expect(starts.map(({ labels }) => labels)).toEqual([{ Provider: 'stripe' }, {}]);
});

// @promise workflows-found-by-app
test('a start that the server refuses because of a search attribute is repeated without, and later starts have none', async () => {
  let searchAttributes: ReadonlySet<'AppId' | 'Provider' | 'DeliveryState'> = ALL_KNOWN;
  const forgetSearchAttributes = () => {
    searchAttributes = new Set();
  };
  const known = () => ({ searchAttributes, forgetSearchAttributes });
  const { starter, starts } = recordingStarter({ known }, { refusesLabels: true });
  expect(await starter.awaitDelivery(newDelivery(), 1_000)).toEqual({ status: 'duplicate' });
  await starter.awaitDelivery(newDelivery(), 1_000);
  expect(starts.map(({ labels }) => labels)).toEqual([{ AppId: APP, Provider: 'stripe' }, {}, {}]);
});

// @promise cancelled-within-seconds
test('the workflow of a cancelled reprocess run is cancelled when it runs, and only then', async () => {
  const id = newId('reprocessRun');
  for (const [isRunning, isCancelled, cancels] of [
    [true, true, [`reprocess:${id}`]],
    [true, false, []],
    [false, true, []],
  ] as const) {
    const { starter, cancelled } = recordingStarter({}, { isRunning });
    starter.startReprocess({ id, appId: APP, isCancelled });
    await starter.drain();
    expect(cancelled).toEqual(cancels);
  }
});

// @promise near-holds-by-sweep
test('a commission that is due within two minutes has no hold timer, and a later one has', async () => {
  const { starter, starts } = recordingStarter();
  const [overdue, near, late] = [dueIn(-MINUTE_MS), dueIn(1.9 * MINUTE_MS), dueIn(2.1 * MINUTE_MS)];
  starter.startHolds([overdue, near, late]);
  await starter.drain();
  expect(starts.map(({ workflowId }) => workflowId)).toEqual([`hold:${late.commissionId}`]);
});

// @promise due-at-once-swept
test('commissions that are due when they are written are swept once, within seconds', async () => {
  const { starter, starts } = recordingStarter();
  starter.startHolds([dueIn(-MINUTE_MS), dueIn(MINUTE_MS)]);
  starter.startHolds([dueIn(-MINUTE_MS)]);
  await sleep(1_200);
  await starter.drain();
  expect(starts.map(({ workflowId }) => workflowId)).toEqual(['sweep-now:q']);
});

// @promise hold-timers-sweep
test('with HOLD_TIMERS=sweep no commission has a hold timer', async () => {
  const { starter, starts } = recordingStarter({ shortestHoldMs: Infinity });
  starter.startHolds([dueIn(60 * MINUTE_MS)]);
  await starter.drain();
  expect(starts).toEqual([]);
});

// @promise relay-paced-by-capacity
test('the relay waits for the outcome of a delivery that it starts, and not for one that runs already', async () => {
  const delivery = newDelivery();
  const { starter, starts } = recordingStarter();
  let hasEnded = false;
  const run = starter.runDelivery(delivery).finally(() => (hasEnded = true));
  // The start, and what follows without a wait.
  await setImmediate();
  expect([starts.length, hasEnded]).toEqual([1, false]);
  starter.workEvents.onOutcome(delivery.deliveryId, { status: 'duplicate' });
  expect(await run).toBe('started');

  const takes = await shortestTime(1_000, async () => {
    expect(await recordingStarter({}, { isRunning: true }).starter.runDelivery(delivery)).toBe('running');
    expect(await recordingStarter({ client: () => null }).starter.runDelivery(delivery)).toBe('refused');
  });
  expect(takes).toBeLessThan(1_000);
});

// @promise relay-paced-by-capacity
test('the relay waits for the end of a heal that it starts, and a stop ends the wait', async () => {
  const id = newId('binding');
  const { starter, fetches } = recordingStarter();
  const stopping = new AbortController();
  for (let n = 0; n < 20; n += 1) expect(await starter.runHeal(id, APP, stopping.signal)).toBe('started');
  expect(fetches).toHaveLength(20);
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
  expect(await recordingStarter({}, { isRunning: true }).starter.runHeal(id, APP)).toBe('running');
  expect(await recordingStarter({ client: () => null }).starter.runHeal(id, APP)).toBe('refused');
});

// @promise webhooks-out-other-url
test('a message whose workflow ends before its wait does is claimed again and does not stop the messages that follow', async () => {
  const message = { messageId: newId('webhookMessage'), appId: APP, due: 'now' } as const;
  expect(await recordingStarter({}, { isRunning: true }).starter.runWebhook(message)).toBe('running');
  expect(await recordingStarter({ client: () => null }).starter.runWebhook(message)).toBe('refused');
});

// @promise bounded-shutdown
test('a shutdown starts waiting hold timers for a limited time and leaves the rest to the sweep', async () => {
  const takes = await shortestTime(3_000, async () => {
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => void lines.push(line) });
    const { starter, starts } = recordingStarter({ logger }, { startMs: 5 });
    const holds = Array.from({ length: 4_000 }, () => dueIn(60 * MINUTE_MS));
    starter.startHolds(holds);
    await starter.drain(200);
    expect(starts.length).toBeGreaterThan(0);
    expect(starts.length).toBeLessThan(holds.length);
    const started = starts.length;
    await sleep(20);
    expect(starts).toHaveLength(started);
    expect(lines.join('')).toContain(`"left":${holds.length - started}`);
  });
  expect(takes).toBeLessThan(3_000);
});

// @promise durations-by-the-process
test('a clock that is set back an hour during a shutdown does not make it start hold timers for longer', async () => {
  const { starter, starts } = recordingStarter({}, { startMs: 5 });
  const holds = Array.from({ length: 4_000 }, () => dueIn(60 * MINUTE_MS));
  starter.startHolds(holds);
  const { now } = Date;
  Date.now = () => now() + 60 * MINUTE_MS;
  try {
    const draining = starter.drain(200);
    await setImmediate();
    Date.now = now;
    await draining;
  } finally {
    Date.now = now;
  }
  expect(starts.length).toBeLessThan(holds.length);
});

// @promise outcome-from-the-commit
test('a result of another process ends a wait without a look-up in Temporal, and only an unwanted one is sent on', async () => {
  const sent: SharedResult[] = [];
  const { starter, fetches } = recordingStarter({
    isListening: () => true,
    sendResult: (result) => void sent.push(result),
  });
  const [delivery, request] = [newDelivery(), newRequest()];
  const requestId = request.id;
  const id = delivery.deliveryId;
  const waits = [starter.awaitDelivery(delivery, 5_000), starter.settlePayout(request, 5_000)];
  await setImmediate();
  starter.receiveResult({ deliveryId: id, outcome: { status: 'duplicate' } });
  starter.receiveResult({ payoutRequestId: requestId });
  expect((await Promise.all(waits))[0]).toEqual({ status: 'duplicate' });
  expect({ fetches, sent }).toEqual({ fetches: [], sent: [] });
  starter.workEvents.onSettled(requestId);
  expect(sent).toEqual([{ payoutRequestId: requestId }]);
});

// @promise outcome-from-the-commit
test('a result that is lost on the way is fetched from Temporal after a second, or at once without a listener', async () => {
  for (const [isListening, least, most] of [
    [true, 900, 3_000],
    [false, 0, 900],
  ] as const) {
    const { starter } = recordingStarter({ isListening: () => isListening });
    const takes = await shortestTime(most, async () => {
      expect(await starter.awaitDelivery(newDelivery(), 5_000)).toEqual({ status: 'duplicate' });
    });
    expect(takes).toBeGreaterThanOrEqual(least);
    expect(takes).toBeLessThan(most);
  }
});

// @promise overload-pending
test('a late delivery keeps its place until its outcome while workers finish others, and gives it back when they do not', async () => {
  for (const areWorking of [true, false]) {
    const { starter } = recordingStarter({ isListening: () => true });
    const outcome = { status: 'duplicate' } as const;
    if (areWorking) starter.receiveResult({ deliveryId: newId('delivery'), outcome });
    const delivery = newDelivery();
    const kept: Promise<unknown>[] = [];
    expect(await starter.awaitDelivery(delivery, 5, (ended) => void kept.push(ended))).toBeNull();
    expect(kept).toHaveLength(areWorking ? 1 : 0);
    starter.workEvents.onOutcome(delivery.deliveryId, outcome);
    await Promise.all(kept);
  }
});

// @promise delivery-summary
test('the summary of a delivery names its provider, its app and its event', async () => {
  const { starter, starts } = recordingStarter();
  const delivery = newDelivery();
  await starter.awaitDelivery(delivery, 1_000);
  expect(starts).toMatchObject([{ staticSummary: `stripe ${delivery.appId} ${delivery.eventId}` }]);
});
