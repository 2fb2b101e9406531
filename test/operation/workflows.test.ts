/** @jest-environment <rootDir>/test/jest/isolated.js */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { pino } from 'pino';
import { withSafeFailures } from '../../activities/failures.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import type { LocalTemporal } from '../../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import { newId } from '../../src/db/new-id.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { BACKGROUND_CONCURRENCY } from '../../temporal/worker.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { eventually } from '../support/eventually.ts';
import { sideBySide } from '../support/side-by-side.ts';

// The workflows of the built bundle with activities that the tests control, on a server that suggests continue-as-new
// early.

Runtime.install({
  logger: new DefaultLogger('ERROR', () => {}),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});

/** Events after which the server suggests continue-as-new. */
const SUGGESTED_AT = 12;
/** Pages of 6 events each, and signals of a payout: more than one run holds. */
const PAGES = 4;
const SIGNALS = 14;
const MINUTE_MS = 60_000;

let server: LocalTemporal;
let connection: NativeConnection;
let client: Client;
let code: string;

beforeAll(async () => {
  code = await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8');
  server = await startLocalTemporal({
    searchAttributes: SEARCH_ATTRIBUTES,
    dynamicConfig: {
      'limit.historyCount.suggestContinueAsNew': SUGGESTED_AT,
      'matching.useNewMatcher': true,
      'matching.enableFairness': true,
    },
    onProgress: () => {},
  });
  connection = await NativeConnection.connect({ address: server.address });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await server.stop();
});

type FakeActivities = Record<string, (...args: never[]) => Promise<unknown>>;

/** Runs `work` with a worker of these activities on a queue of their own. */
async function withWorker<T>(
  activities: FakeActivities,
  work: (taskQueue: string) => Promise<T>,
): Promise<T> {
  const taskQueue = `test-${Math.random()}`;
  const worker = await Worker.create({ connection, taskQueue, workflowBundle: { code }, activities });
  return await worker.runUntil(() => work(taskQueue));
}

/** Returns a page activity whose first pages return `more` and whose last one returns `last`. */
function pages(more: unknown, last: unknown) {
  let done = 0;
  return async () => ((done += 1) < PAGES ? more : last);
}

/** A workflow that works page by page or request by request, and how a test drives it. */
const LONG = [
  {
    workflow: 'heal',
    args: [{ bindingId: 'bnd_test' }],
    step: 'healPage',
    activities: () => ({ healPage: pages('pmt_next', null) }),
    result: { pages: PAGES },
  },
  {
    workflow: 'convert',
    args: [],
    step: 'convertPage',
    activities: () => ({
      convertPage: pages(
        { next: 'pmt_next', evaluated: 2, failed: 1 },
        { next: null, evaluated: 2, failed: 1 },
      ),
    }),
    result: { evaluated: 2 * PAGES, failed: PAGES },
  },
  {
    workflow: 'payout',
    args: [{ affiliateId: 'aff_test' }],
    step: 'settlePayoutRequest',
    activities: () => ({ settlePayoutRequest: async () => await areSignalled }),
    result: { settled: SIGNALS },
  },
  {
    workflow: 'reprocess',
    args: [{ reprocessRunId: 'rpr_test' }],
    step: 'reprocessPage',
    activities: () => ({ reprocessPage: pages({ done: false }, { done: true }) }),
    result: { done: true },
  },
  {
    workflow: 'webhook',
    args: [{ messageId: 'msg_test' }],
    step: 'sendMessage',
    activities: () => ({
      sendMessage: pages(
        { state: 'retry', attempts: 1, problem: 'no', waitMs: 10 },
        { state: 'delivered', attempts: 2, problem: null, waitMs: 0 },
      ),
    }),
    result: { state: 'delivered', attempts: 2 },
  },
] as const;

/** Resolves when all signals of a payout are sent. Its first request is settled after that, so that the others wait. */
let areSignalled: Promise<void>;

/** Starts a workflow; a payout with as many signals as it settles requests. */
async function start({ workflow, args }: (typeof LONG)[number], taskQueue: string) {
  const options = { taskQueue, workflowId: `${workflow}-${taskQueue}`, args: [...args] };
  if (workflow !== 'payout') return await client.workflow.start(workflow, options);
  let open = () => {};
  areSignalled = new Promise((resolve) => {
    open = resolve;
  });
  const signal = async (request: number) =>
    await client.workflow.signalWithStart(workflow, {
      ...options,
      signal: 'payoutRequested',
      signalArgs: [`req_${request}`],
    });
  const handle = await signal(1);
  for (let request = 2; request <= SIGNALS; request += 1) await signal(request);
  open();
  return handle;
}

describe('workflows', () => {
  // @promise continue-as-new
  test.each(LONG)(
    'the workflow $workflow continues as new with its progress when its history is long',
    sideBySide(LONG, async (row) => {
      await withWorker({ ...row.activities() }, async (taskQueue) => {
        const handle = await start(row, taskQueue);
        expect(await handle.result()).toMatchObject(row.result);
        const workflowId = `${row.workflow}-${taskQueue}`;
        const runs: string[] = [];
        await eventually('the runs are visible', async () => {
          runs.length = 0;
          for await (const run of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
            runs.push(run.status.name);
          }
          return runs.includes('CONTINUED_AS_NEW') && runs.includes('COMPLETED');
        });
      });
    }),
  );

  // @promise stuck-work-found
  test.each(LONG)(
    'the workflow $workflow is found as stuck while $step fails, and as healed afterwards',
    sideBySide(LONG, async (row) => {
      let isBroken = true;
      const working = row.activities() as FakeActivities;
      const activities: FakeActivities = {
        canMark: async () => true,
        [row.step]: async (...args: never[]) => {
          if (isBroken) throw new Error('broken by the test');
          return await working[row.step]!(...args);
        },
      };
      await withWorker(activities, async (taskQueue) => {
        const handle = await start(row, taskQueue);
        const state = async () => (await handle.describe()).searchAttributes['DeliveryState'];
        await eventually('it is marked as stuck', async () => (await state())?.[0] === `stuck:${row.step}`);
        isBroken = false;
        expect(await handle.result()).toMatchObject(row.result);
      });
    }),
  );

  // @promise rare-retries
  test('an activity that has failed for an hour is retried every ten to fifteen minutes', async () => {
    const healPage = async () => {
      // As the server says it of an activity that it has scheduled an hour ago.
      const { info } = Context.current();
      Object.assign(info, { scheduledTimestampMs: info.scheduledTimestampMs - 61 * MINUTE_MS });
      return await Promise.reject(new Error('broken by the test'));
    };
    const activities = withSafeFailures<FakeActivities>({ healPage });
    await withWorker(activities, async (taskQueue) => {
      const handle = await start(LONG[0], taskQueue);
      let nextAt = 0;
      await eventually('an attempt has failed', async () => {
        const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
        nextAt = Number(pending?.scheduledTime?.seconds ?? 0) * 1_000;
        return pending?.lastFailure != null;
      });
      expect(nextAt - Date.now()).toBeGreaterThan(9 * MINUTE_MS);
      expect(nextAt - Date.now()).toBeLessThan(15 * MINUTE_MS);
    });
  });
});

// @promise fair-between-apps
test('a heal does not wait for all heals of another app that were started before it', async () => {
  const crowd = 40;
  const taskQueue = `test-${Math.random()}`;
  const starter = createWorkflowStarter({
    client: () => client,
    taskQueue,
    hasWorker: false,
    logger: pino({ level: 'silent' }),
  });
  const [busy, quiet] = [newId('app'), newId('app')];
  for (let nth = 0; nth < crowd; nth += 1) starter.healBinding(newId('binding'), busy);
  await starter.drain();
  const single = newId('binding');
  starter.healBinding(single, quiet);
  await starter.drain();
  const healed: string[] = [];
  const healPage = async (bindingId: string) => {
    healed.push(bindingId);
    return await Promise.resolve(null);
  };
  const worker = await Worker.create({
    connection,
    taskQueue: backgroundQueue(taskQueue),
    workflowBundle: { code },
    activities: { healPage },
    maxConcurrentWorkflowTaskExecutions: BACKGROUND_CONCURRENCY,
    maxConcurrentActivityTaskExecutions: BACKGROUND_CONCURRENCY,
  });
  await worker.runUntil(
    eventually('all are healed', async () => await Promise.resolve(healed.length === crowd + 1)),
  );
  expect(healed.indexOf(single)).toBeLessThan(crowd / 2);
});
