import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { pino } from 'pino';
import type { Activities } from '../../activities/index.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { newId } from '../../src/db/new-id.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { installSdkRuntime } from '../../temporal/sdk-runtime.ts';
import { createWorkers } from '../../temporal/worker.ts';
import { temporalAddress } from '../support/service.ts';

// @promise bounded-shutdown
test('workers that are shut down end soon after their grace time, also when an activity never ends', async () => {
  installSdkRuntime(pino({ level: 'silent' }));
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const taskQueue = `test-${randomBytes(6).toString('hex')}`;
  let isRunning = (): void => {};
  const running = new Promise<void>((resolve) => {
    isRunning = resolve;
  });
  const matureCommission = async () => {
    isRunning();
    return await new Promise<never>(() => {});
  };
  const workers = await createWorkers({
    connection,
    namespace: 'default',
    taskQueue,
    workflowBundle: { code: await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8') },
    activities: { matureCommission } as unknown as Activities,
    shutdownGraceMs: 100,
  });
  const end = workers.run();
  const handle = await new Client({ connection }).workflow.start('hold', {
    workflowId: `hold:${taskQueue}`,
    taskQueue: backgroundQueue(taskQueue),
    args: [{ commissionId: newId('commission') }],
  });
  await running;
  const before = Date.now();
  workers.shutdown();
  await end;
  expect(Date.now() - before).toBeLessThan(6_000);
  await handle.terminate();
  await connection.close();
}, 20_000);
