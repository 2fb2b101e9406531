import { readFile, stat } from 'node:fs/promises';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { Client, Connection } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { bundleWorkflows } from './bundle.ts';

/** Replays one history against today's workflow code; throws where the code would decide otherwise than it did. */
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

/** The history in a file downloaded from the UI, or of a workflow id on the configured server. */
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

/** `npm run replay -- FILE|WORKFLOW_ID`: exit status 0 when today's code agrees with the history, 1 when not. */
export async function replayCommand(source: string): Promise<void> {
  const history = await readHistory(source);
  await replayHistory(await bundleWorkflows(), history, (await isFile(source)) ? undefined : source);
}
