import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { listen } from './listen.mjs';
import { newDeliveryId, openSteps } from './six-steps.mjs';

/**
 * Temporal without the service. Arguments: `six` (six regular activities) or `bare` (eager start, an empty local activity and,
 * behind the answer, the start of a hold timer), the address of the server, the database of the steps, the secret, the users.
 */
const [shape, address, databaseUrl, secret, users] = process.argv.slice(2);
const steps = shape === 'six' ? await openSteps(databaseUrl, secret, users.split(',')) : {};
Runtime.install({ logger: new DefaultLogger('ERROR') });
const connection = await NativeConnection.connect({ address });
const client = new Client({ connection });
const taskQueue = `bench-${shape}`;
const activities = shape === 'six' ? steps : { nothing: async () => `com_${newDeliveryId()}` };
if (shape === 'six') delete activities.sql;
const worker = await Worker.create({
  connection,
  taskQueue,
  activities,
  workflowsPath: fileURLToPath(new URL('workflows.mjs', import.meta.url)),
});
void worker.run();

const waiting = [];
let starts = 0;
/** Starts the waiting hold timers, two at a time as the service does. */
async function startHolds() {
  starts += 1;
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    await client.workflow.start('hold', {
      taskQueue,
      workflowId: `hold:${next}`,
      startDelay: 30 * 24 * 3_600_000,
    });
  }
  starts -= 1;
}

listen(async (body, headers) => {
  if (headers['x-bench'] === 'waiting') return { waiting: waiting.length + starts };
  const deliveryId = newDeliveryId();
  const input = shape === 'six' ? [{ deliveryId, body, signature: headers['stripe-signature'] }] : [];
  const handle = await client.workflow.start(shape === 'six' ? 'sixActivities' : 'bare', {
    taskQueue,
    workflowId: `deliver:${deliveryId}`,
    args: input,
    ...(shape === 'bare' ? { requestEagerStart: true } : {}),
  });
  const commissionId = await handle.result();
  if (shape === 'bare') {
    waiting.push(deliveryId);
    if (starts < 2) void startHolds();
  }
  return { commissionId };
});
