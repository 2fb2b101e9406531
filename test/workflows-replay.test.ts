import { describe, expect, test } from '@jest/globals';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { projectRoot } from '../src/config/project-root.ts';
import { replayHistory } from '../temporal/replay.ts';

// Replays log every state of their worker, and the replay that must fail logs its failure.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});

const folder = path.join(projectRoot, 'test/fixtures/histories');
const files = (await readdir(folder)).filter((name) => name.endsWith('.json'));
const workflowBundle = { code: await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8') };

const read = async (name: string) =>
  JSON.parse(await readFile(path.join(folder, name), 'utf8')) as { events: { eventType: string }[] };

/** Every workflow and branch that must have a recorded history. */
const BRANCHES = [
  'delivery-happy',
  'delivery-duplicate',
  'delivery-ignored',
  'delivery-fallback',
  'hold-matured',
  'hold-fallback',
  'heal',
  'payout-one-request',
  'payout-several-requests',
  'sweep',
  'sweep-two-pages',
  'retention',
  'rates-imported',
  'rates-failed',
  'convert',
  'reprocess',
];

describe('recorded histories', () => {
  test('every workflow and branch has a recorded history', () => {
    expect(files.map((name) => path.basename(name, '.json')).toSorted()).toEqual(BRANCHES.toSorted());
  });

  test.each(files)("the history %s replays against today's code", async (name) => {
    await replayHistory(workflowBundle, await read(name));
  });

  test('a history that does not match the code fails to replay', async () => {
    const history = await read('delivery-fallback.json');
    const at = history.events.findIndex((event) => event.eventType === 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
    const scheduled = history.events[at] as {
      activityTaskScheduledEventAttributes?: { activityType?: { name: string } };
    };
    scheduled.activityTaskScheduledEventAttributes!.activityType!.name = 'somethingElse';
    await expect(replayHistory(workflowBundle, history)).rejects.toThrow();
  });

  test('a hold timer matures its commission in its first workflow task, without a regular activity', async () => {
    const types = (await read('hold-matured.json')).events.map(({ eventType }) => eventType);
    expect(types.filter((type) => type === 'EVENT_TYPE_WORKFLOW_TASK_COMPLETED')).toHaveLength(1);
    expect(types).not.toContain('EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
  });

  // @promise sweep-whole-backlog
  test('a sweep runs page by page until no overdue commission is left', async () => {
    const { events } = await read('sweep-two-pages.json');
    const pages = events.filter(({ eventType }) => eventType === 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED');
    expect(pages).toHaveLength(2);
  });

  test('histories contain no user ids, bodies or keys', async () => {
    for (const name of files) {
      const text = await readFile(path.join(folder, name), 'utf8');
      const payloads = [...text.matchAll(/"data":\s*"([A-Za-z0-9+/=]+)"/g)].map(([, data]) =>
        Buffer.from(data ?? '', 'base64').toString(),
      );
      expect(payloads.filter((payload) => /user-|Bearer|whsec|pk_live|sk_live|@/.test(payload))).toEqual([]);
    }
  });
});
