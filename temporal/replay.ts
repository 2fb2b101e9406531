import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { Client, Connection, isGrpcServiceError } from '@temporalio/client';
import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { ISOLATE } from './isolate.ts';
import { bundleWorkflows } from './bundle.ts';

/** There is no history to replay. The message is for the person at the command line. */
export class NoHistoryError extends Error {
  override readonly name = 'NoHistoryError';
}

/** Replays one history against today's workflow code. Throws when the code would now issue other commands. */
export async function replayHistory(
  workflowBundle: WorkflowBundle,
  history: unknown,
  workflowId?: string,
): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle, ...ISOLATE }, history, workflowId);
}

/** Where `npm run replay` looks for a history. */
export interface ReplayOptions {
  /** The folder of relative file names. */
  readonly folder: string;
  readonly dataDir: string;
  /** Returns the address that the environment or the running service of the data folder names. */
  readonly findTemporal: () => Promise<string | undefined>;
}

/** The gRPC status of an unknown workflow. */
const NOT_FOUND = 5;

/** Workflow ids of this service have neither a slash nor an extension. */
const isFileName = (source: string) => /[/\\]|\.json$/i.test(source);

async function readHistoryFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new NoHistoryError(`${path} can't be read (${code}). Name a history file or a workflow id.`);
  }
}

/** Parses a history. Throws `NoHistoryError` for any other text. */
function parseHistory(path: string, text: string): unknown {
  try {
    const history = JSON.parse(text) as { events?: unknown } | null;
    if (Array.isArray(history?.events) && history.events.length > 0) return history;
  } catch {
    // The error below says what to do.
  }
  throw new NoHistoryError(
    `${path} is not a workflow history. Download the history of the workflow as JSON from the Temporal UI.`,
  );
}

/** Returns the history of a workflow on the server that the environment or the running service names. */
async function fetchHistory(workflowId: string, options: ReplayOptions): Promise<unknown> {
  const address = await options.findTemporal();
  if (address === undefined) {
    throw new NoHistoryError(
      `No service is running on ${resolve(options.dataDir)}, so there is no Temporal server to ask. Start the service, set DATA_DIR to its folder, or set TEMPORAL_ADDRESS.`,
    );
  }
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig({ disableFile: true });
  const connection = await Connection.connect({ ...connectionOptions, address }).catch((error: unknown) => {
    throw new NoHistoryError(
      `No Temporal server responds at ${address}. Start it, or set TEMPORAL_ADDRESS to another one.`,
      { cause: error },
    );
  });
  try {
    return await new Client({ connection, namespace }).workflow.getHandle(workflowId).fetchHistory();
  } catch (error) {
    const status: number | null = isGrpcServiceError(error) ? error.code : null;
    if (status !== NOT_FOUND) throw error;
    throw new NoHistoryError(
      `There is no workflow ${workflowId} in the namespace ${namespace} at ${address}, and no file of that name.`,
    );
  } finally {
    await connection.close();
  }
}

/** Returns the history in a file, or that of a workflow id. Throws `NoHistoryError`. */
export async function readHistory(source: string, options: ReplayOptions): Promise<unknown> {
  const path = resolve(options.folder, source);
  const text = await readHistoryFile(path);
  if (text !== undefined) return parseHistory(path, text);
  if (isFileName(source)) {
    throw new NoHistoryError(`There is no file ${path}. Name a history file or a workflow id.`);
  }
  return await fetchHistory(source, options);
}

/**
 * Implements `npm run replay -- FILE|WORKFLOW_ID`. Throws `NoHistoryError`, or another error when today's code does not
 * match the history.
 */
export async function replayCommand(source: string, options: ReplayOptions): Promise<void> {
  const history = await readHistory(source, options);
  // The replay reports its result by its return. The SDK would also log every state of its worker.
  Runtime.install({
    logger: new DefaultLogger('ERROR', () => {}),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  });
  await replayHistory(await bundleWorkflows(), history);
}
