import { gunzipSync } from 'node:zlib';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Sql } from '../../src/db/sql.ts';
import { GRPC, grpcCode } from '../../temporal/grpc-errors.ts';

/** The first bytes of a gzip file. */
const GZIP = '1f8b08';

/** Unpacks a gzip file. Returns any other value as it is: hashes and encrypted bodies may begin like one. */
function unpacked(value: Buffer): Buffer {
  if (value.subarray(0, 3).toString('hex') !== GZIP) return value;
  try {
    return gunzipSync(value);
  } catch {
    return value;
  }
}

/** Returns text as the template of a fragment without values. */
function asTemplate(text: string): TemplateStringsArray {
  return Object.assign([text], { raw: [text] });
}

/** Returns the tables that hold one of the texts, in a column or as bytes; with the text. Empty if none does. */
export async function findInTables(sql: Sql, texts: readonly string[]): Promise<string[]> {
  const tables = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = current_schema() order by 1`;
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = (
      await sql<{ line: string }>`select t::text as line from ${sql.fragment(asTemplate(name))} t`
    )
      .map(({ line }) => line)
      .join('\n');
    const bytes = [...rows.matchAll(/\\x((?:[0-9a-f]{2})+)/g)].map(([, hex = '']) =>
      unpacked(Buffer.from(hex, 'hex')).toString('latin1'),
    );
    const all = [rows, ...bytes].join('\n');
    found.push(...texts.filter((text) => all.includes(text)).map((text) => `${name}: ${text}`));
  }
  return found;
}

/** Returns the history of a workflow. Null if it was deleted. */
async function historyOf(handle: WorkflowHandle) {
  try {
    return await handle.fetchHistory();
  } catch (error) {
    if (grpcCode(error) === GRPC.notFound) return null;
    throw error;
  }
}

/** Returns the workflows of these task queues whose history, memo or attributes hold one of the texts. */
export async function findInHistories(
  temporal: Client,
  taskQueues: readonly string[],
  texts: readonly string[],
): Promise<{ readonly found: string[]; readonly searched: number }> {
  const found: string[] = [];
  let searched = 0;
  const query = taskQueues.map((taskQueue) => `TaskQueue = "${taskQueue}"`).join(' or ');
  for await (const workflow of temporal.workflow.list({ query })) {
    const handle = temporal.workflow.getHandle(workflow.workflowId, workflow.runId);
    const history = await historyOf(handle);
    // The list of workflows follows their deletion after a moment.
    if (history === null) continue;
    const json = historyToJSON(history);
    const payloads = [...json.matchAll(/"data": ?"([^"]*)"/g)].map(([, data = '']) =>
      Buffer.from(data, 'base64').toString('utf8'),
    );
    const all = [json, ...payloads, JSON.stringify(await handle.describe())].join('\n');
    found.push(
      ...texts.filter((text) => all.includes(text)).map((text) => `${workflow.workflowId}: ${text}`),
    );
    searched += 1;
  }
  return { found, searched };
}
