import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { ensureSchedules } from '../../temporal/schedules.ts';
import { temporalAddress } from '../support/service.ts';

let connection: Connection;
let client: Client;
const taskQueue = `test-${randomUUID()}`;
const sweep = () => client.schedule.getHandle(workflowIdOf('sweep', taskQueue));

beforeAll(async () => {
  connection = await Connection.connect({ address: temporalAddress() });
  client = new Client({ connection });
  // The Schedule of an earlier version: another interval, another queue, no limit on a run.
  await client.schedule.create({
    scheduleId: workflowIdOf('sweep', taskQueue),
    spec: { intervals: [{ every: '5m' }] },
    action: { type: 'startWorkflow', workflowType: 'sweep', taskQueue: 'earlier', args: [] },
    state: { paused: true, note: 'maintenance' },
  });
});
afterAll(async () => {
  await sweep().delete();
  await connection.close();
});

describe('Schedules', () => {
  // @promise schedules-follow-definition
  test('an existing Schedule follows its definition, stays paused, and is reported as paused', async () => {
    const problem = await ensureSchedules(client, taskQueue, ['sweep']);
    const { spec, action, state } = await sweep().describe();
    expect(spec.intervals).toEqual([{ every: 60_000 }]);
    expect(action).toMatchObject({ taskQueue: backgroundQueue(taskQueue), workflowType: 'sweep' });
    expect(state).toMatchObject({ paused: true, note: 'maintenance' });
    expect(problem).toBe(
      `The Schedule sweep:${taskQueue} is paused (maintenance): unpause it in the Temporal UI.`,
    );
  });

  test('a run of a Schedule has a time limit, so that a run that never ends does not stop the next ones', async () => {
    const { action } = await sweep().describe();
    expect(action).toMatchObject({ workflowExecutionTimeout: 15 * 60_000 });
  });

  test('a Schedule that matches its definition is left alone', async () => {
    await sweep().unpause();
    expect(await ensureSchedules(client, taskQueue, ['sweep'])).toBeNull();
    const { info } = await sweep().describe();
    await ensureSchedules(client, taskQueue, ['sweep']);
    expect((await sweep().describe()).info.lastUpdatedAt).toEqual(info.lastUpdatedAt);
  });
});
