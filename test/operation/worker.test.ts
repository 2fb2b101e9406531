import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { pino } from 'pino';
import { createActivities } from '../../activities/index.ts';
import type { Activities, ActivityDeps } from '../../activities/index.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { newId } from '../../src/db/new-id.ts';
import type { Sql } from '../../src/db/sql.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { SCHEDULES } from '../../temporal/schedules.ts';
import { installSdkRuntime } from '../../temporal/sdk-runtime.ts';
import { WORKFLOWS } from '../../temporal/start.ts';
import type { StartedWorkflow } from '../../temporal/start.ts';
import { BACKGROUND_CONCURRENCY, createWorkers } from '../../temporal/worker.ts';
import { eventually } from '../support/eventually.ts';
import { temporalAddress } from '../support/service.ts';

const bundle = await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8');

/** Starts workers of a task queue of their own. */
async function startWorkers(activities: object, code = bundle) {
  installSdkRuntime(pino({ level: 'silent' }));
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const taskQueue = `test-${randomBytes(6).toString('hex')}`;
  const workers = await createWorkers({
    connection,
    namespace: 'default',
    taskQueue,
    workflowBundle: { code },
    activities: activities as Activities,
    shutdownGraceMs: 100,
  });
  const end = workers.run();
  const client = new Client({ connection });
  return {
    client,
    /** Starts a workflow of the background. */
    start: async (workflow: string, args: readonly unknown[]) =>
      await client.workflow.start(workflow, {
        workflowId: `${workflow}:${taskQueue}`,
        taskQueue: backgroundQueue(taskQueue),
        args: [...args],
      }),
    /** Resolves when the workers have ended. */
    shutdown: async () => {
      workers.shutdown();
      await end;
    },
    close: async () => await connection.close(),
  };
}

// @promise bounded-shutdown
test('workers that are shut down end soon after their grace time, also when an activity never ends', async () => {
  let isRunning = (): void => {};
  const running = new Promise<void>((resolve) => {
    isRunning = resolve;
  });
  const matureCommission = async () => {
    isRunning();
    return await new Promise<never>(() => {});
  };
  const workers = await startWorkers({ matureCommission });
  const handle = await workers.start('hold', [{ commissionId: newId('commission') }]);
  await running;
  const before = Date.now();
  await workers.shutdown();
  expect(Date.now() - before).toBeLessThan(6_000);
  await handle.terminate();
  await workers.close();
});

// @promise starved-workflows
test('a workflow whose code gets no processor time for six seconds goes on, and its process too', async () => {
  const begin = 'async function hold({ commissionId }) {';
  const blocked = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000);';
  expect(bundle.split(begin)).toHaveLength(2);
  const workers = await startWorkers(
    { matureCommission: async () => 'matured' },
    bundle.replace(begin, begin + blocked),
  );
  const handle = await workers.start('hold', [{ commissionId: newId('commission') }]);
  expect(await handle.result()).toBe('matured');
  const { events } = await handle.fetchHistory();
  expect(events?.filter(({ workflowTaskFailedEventAttributes: failed }) => failed != null)).toEqual([]);
  await workers.shutdown();
  await workers.close();
});

/** The workflows that nobody waits for. A hold has no activity that takes longer than a statement. */
const BACKGROUND = new Set([
  ...Object.entries(WORKFLOWS).flatMap(([name, { queue }]) => (queue === 'awaited' ? [] : [name])),
  ...Object.keys(SCHEDULES),
]);

/** Each workflow of the background, with an input that has its key. A hold has no activity that takes longer than a statement. */
const CANCELLED = [...BACKGROUND]
  .filter((workflow) => workflow !== 'hold')
  .map((workflow) => {
    const key = workflow in WORKFLOWS ? WORKFLOWS[workflow as StartedWorkflow].key : null;
    return { workflow, args: key === null ? [] : [{ [key]: `${workflow}_test` }] };
  });

/** Anything that a factory of activities asks of its dependencies. */
const anything = new Proxy(() => {}, { get: () => anything, apply: () => anything }) as unknown as Sql;
const ACTIVITIES = Object.keys(createActivities({ sql: anything } as ActivityDeps));

// @promise cancelled-within-seconds
test('each workflow of the background that is cancelled ends as cancelled within seconds', async () => {
  const [begun, stopped, cancelledRuns]: [string[], string[], string[]] = [[], [], []];
  const runsUntilCancelled = async (name: string) => {
    if (name === 'reprocessPage' && cancelledRuns.length > 0) return { done: true };
    begun.push(name);
    return await Context.current().cancelled.catch((error: unknown) => {
      stopped.push(name);
      throw error;
    });
  };
  const activities = {
    ...Object.fromEntries(
      ACTIVITIES.map((activity) => [activity, async () => await runsUntilCancelled(activity)]),
    ),
    cancelReprocess: async (id: string) => void cancelledRuns.push(id),
  };
  const workers = await startWorkers(activities);
  const handles = await Promise.all(CANCELLED.map(({ workflow, args }) => workers.start(workflow, args)));
  try {
    await eventually('the worker is full', async () => begun.length === BACKGROUND_CONCURRENCY);
    await Promise.all(handles.map((handle) => handle.cancel()));
    const ends = await Promise.all(
      handles.map((handle) =>
        workers.client.withDeadline(Date.now() + 8_000, () => handle.result()).catch(String),
      ),
    );
    expect(ends).toEqual(CANCELLED.map(() => expect.stringContaining('Workflow execution cancelled')));
    expect(stopped.toSorted()).toEqual(begun.toSorted());
    // The run in the database ends as its workflow does.
    expect(cancelledRuns).toEqual(['reprocess_test']);
  } finally {
    await Promise.all(handles.map((handle) => handle.terminate().catch(() => {})));
    await workers.shutdown();
    await workers.close();
  }
});
