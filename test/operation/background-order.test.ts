import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { newId } from '../../src/db/new-id.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

// The order in which a worker begins what waits in the queue of background work. The worker starts when all of it waits.

const CROWD = 30;
/** As many as a worker takes at once, before the server has read all that waits. */
const AT_ONCE = 4;

let api: TestService;
let worker: TestService | undefined;

beforeAll(async () => {
  api = await startTestService({ settings: { role: 'api' } });
});
afterEach(async () => {
  await worker?.close();
});
afterAll(async () => {
  await api.close();
});

const starterOf = (client: Client) =>
  createWorkflowStarter({
    client: () => client,
    taskQueue: api.taskQueue,
    hasWorker: false,
    sendResult: async () => {},
    isListening: () => true,
    logger: pino({ level: 'silent' }),
  });

/** Starts a worker. Returns the ids of the workflows of the background queue in the order of their first tasks. */
async function orderOf(client: Client, count: number, temporalAddress?: string): Promise<string[]> {
  const query = `TaskQueue = "${backgroundQueue(api.taskQueue)}" and ExecutionStatus = `;
  const countOf = async (status: string) => (await client.workflow.count(`${query}"${status}"`)).count;
  await eventually('all wait', async () => (await countOf('Running')) === count);
  worker = await startTestService({
    ...(temporalAddress !== undefined && { temporalAddress }),
    settings: { role: 'worker', databaseUrl: api.database.url },
  });
  await eventually('all have ended', async () => (await countOf('Completed')) === count);
  const begun: { readonly id: string; readonly at: number }[] = [];
  for await (const { workflowId: id } of client.workflow.list({ query: `${query}"Completed"` })) {
    const { events } = await client.workflow.getHandle(id).fetchHistory();
    const first = events?.find((event) => event.workflowTaskStartedEventAttributes != null)?.eventTime;
    begun.push({ id, at: Number(first?.seconds) * 1_000 + (first?.nanos ?? 0) / 1e6 });
  }
  return begun.toSorted((a, b) => a.at - b.at).map(({ id }) => id);
}

// @promise holds-go-last
test('a workflow of the background that starts after a crowd of due hold timers begins before them', async () => {
  const founder = await setUpFounder(api);
  for (let n = 0; n < CROWD; n += 1) {
    await founder.ok('POST', `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/entries`, {
      amountCents: 1,
      category: 'other',
      reason: 'A test',
      externalId: randomUUID(),
    });
  }
  const holds = `TaskQueue = "${backgroundQueue(api.taskQueue)}" and WorkflowType = "hold"`;
  await eventually('the hold timers wait', async () => {
    const { count } = await api.temporal.workflow.count(holds);
    return count === CROWD;
  });
  const starter = starterOf(api.temporal);
  starter.startInBackground('convert', undefined);
  await starter.drain();
  const order = await orderOf(api.temporal, CROWD + 1);
  expect(order.indexOf(`convert:${api.taskQueue}`)).toBeLessThanOrEqual(AT_ONCE);
});

// @promise fair-between-apps
test('on a server with fairness, the heal of an app begins before a crowd of another app that waits longer', async () => {
  const server = await startLocalTemporal({
    searchAttributes: SEARCH_ATTRIBUTES,
    dynamicConfig: { 'matching.enableFairness': true },
    onProgress: () => {},
  });
  const connection = await Connection.connect({ address: server.address });
  const client = new Client({ connection });
  const starter = starterOf(client);
  const [noisy, quiet] = [newId('app'), newId('app')];
  for (let n = 0; n < CROWD; n += 1) starter.healBinding(newId('binding'), noisy);
  await starter.drain();
  const bindingId = newId('binding');
  starter.healBinding(bindingId, quiet);
  await starter.drain();
  const order = await orderOf(client, CROWD + 1, server.address);
  expect(order.indexOf(`heal:${bindingId}`)).toBeLessThanOrEqual(AT_ONCE);
  await connection.close();
  await worker?.close();
  worker = undefined;
  await server.stop();
});
