import { readFile, stat } from 'node:fs/promises';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { Client, Connection } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { bundleWorkflows } from './bundle.ts';

/** Replays one history against today's workflow code. Throws when the code would now issue other commands. */
export async function replayHistory(
  workflowBundle: WorkflowBundle,
  history: unknown,
  workflowId?: string,
): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle }, history, workflowId);
}

async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    (entry) => entry.isFile(),
    () => false,
  );
}

/** Returns the history in a file downloaded from the UI, or that of a workflow id on the configured server. */
async function readHistory(source: string): Promise<unknown> {
  if (await isFile(source)) return JSON.parse(await readFile(source, 'utf8')) as unknown;
  const { connectionOptions, namespace } = loadClientConnectConfig({ disableFile: true });
  const connection = await Connection.connect(connectionOptions);
  try {
    const client = new Client({ connection, ...(namespace === undefined ? {} : { namespace }) });
    return await client.workflow.getHandle(source).fetchHistory();
  } finally {
    await connection.close();
  }
}

/** Implements `npm run replay -- FILE|WORKFLOW_ID`. Throws when today's code does not match the history. */
export async function replayCommand(source: string): Promise<void> {
  const history = await readHistory(source);
  await replayHistory(await bundleWorkflows(), history, (await isFile(source)) ? undefined : source);
}
