import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { pino } from 'pino';
import { SWEEP_PAGE } from '../activities/mature.ts';
import { projectRoot } from '../src/config/project-root.ts';
import { newId } from '../src/db/new-id.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { workflowIdOf } from '../src/domain/workflow-id.ts';
import { backgroundQueue } from '../temporal/names.ts';
import { installSdkRuntime } from '../temporal/sdk-runtime.ts';
import globalSetup from '../test/support/global-setup.ts';
import globalTeardown from '../test/support/global-teardown.ts';
import { eventually } from '../test/support/eventually.ts';
import { setUpFounder } from '../test/support/founder.ts';
import { insertEarning } from '../test/support/ledger.ts';
import { runOn } from '../test/support/postgres-admin.ts';
import { bodyOf, stripeEvent, stripeInvoicePaid } from '../test/support/provider-fixtures.ts';
import { requestRun } from '../test/support/reprocess.ts';
import { startTestService } from '../test/support/service.ts';
import { runBranches } from './history-branches.ts';

/** The histories of the version that is not released yet. A release renames the folder to its version. */
const folder = path.join(projectRoot, 'test/fixtures/histories/next');

const fileOf = (name: string) => path.join(folder, `${name}.json`);

/** Stores a history, unless the folder has one of that name: delete a file to record it again. */
async function store(name: string, handle: WorkflowHandle): Promise<void> {
  const history = `${historyToJSON(await handle.fetchHistory()).replaceAll(projectRoot, '.')}\n`;
  const isNew = await writeFile(fileOf(name), history, { flag: 'wx' }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      return false;
    },
  );
  process.stdout.write(`${name}: ${isNew ? 'recorded' : 'kept'}\n`);
}

/**
 * `npm run histories:record`: runs every workflow and branch on a live server and adds the histories that
 * `test/fixtures/histories/next` lacks. It never changes a file.
 */
installSdkRuntime(pino({ level: 'silent' }));
await mkdir(folder, { recursive: true });
const code = await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8');
await runBranches({ code }, (name) => existsSync(fileOf(name)), store);

await globalSetup();
let ratesStatus = 200;
const ratesServer = createServer((_, response) =>
  response.writeHead(ratesStatus).end('Date,USD\n2026-03-02,1.0558'),
).listen(0, '127.0.0.1');
await once(ratesServer, 'listening');
const service = await startTestService({
  settings: { ratesUrl: `http://127.0.0.1:${(ratesServer.address() as AddressInfo).port}/` },
});
try {
  const founder = await setUpFounder(service);
  const background = backgroundQueue(service.taskQueue);
  const record = async (name: string, workflowId: string) => {
    const handle = service.temporal.workflow.getHandle(workflowId);
    // Some branches end in a failure, which is what they record.
    await handle.result().catch(() => {});
    await store(name, handle);
  };
  const deliveryOf = async (eventId: string | undefined) =>
    `delivery:${(await service.sql.one<{ id: string }>`select id from deliveries where event_id = ${eventId ?? ''}`).id}`;
  const latestDelivery = async () =>
    `delivery:${(await service.sql.one<{ id: string }>`select id from deliveries order by received_at desc limit 1`).id}`;

  const user = await founder.customer();
  const body = bodyOf(
    stripeInvoicePaid({ userId: user, amount: 2_000, occurredAt: Date.now() - 40 * DAY_MS }),
  );
  const happy = await founder.stripe(body);
  await record('delivery-happy', await deliveryOf(happy.body.eventId));
  await record('hold-matured', `hold:${happy.body.commissionId}`);
  await founder.stripe(body);
  await record('delivery-duplicate', await latestDelivery());
  const ignored = await founder.stripe(
    bodyOf(stripeEvent('price.created', { id: 'price_test', object: 'price' })),
  );
  await record('delivery-ignored', await deliveryOf(ignored.body.eventId));

  await founder.exportCsv();
  await record('payout-one-request', `payout:${founder.affiliateId}`);

  const several = `payout:${founder.affiliateId}`;
  const signal = {
    workflowId: several,
    taskQueue: service.taskQueue,
    args: [{ affiliateId: founder.affiliateId }],
    signal: 'payoutRequested',
  };
  // The first request waits for the lock, so that the others are signalled while it runs.
  const lock = runOn(
    service.database.url,
    'begin; lock table payout_requests in access exclusive mode; select pg_sleep(1); commit',
  );
  await Promise.all(
    [1, 2, 3].map(() =>
      service.temporal.workflow.signalWithStart('payout', {
        ...signal,
        signalArgs: [newId('payoutRequest')],
      }),
    ),
  );
  await lock;
  await record('payout-several-requests', several);

  const late = `user-late-${Date.now()}`;
  const device = await founder.install(founder.slug, Date.now() - 2 * DAY_MS);
  await founder.purchase(late, 10, { occurredAt: Date.now() - DAY_MS });
  await founder.identify(device, late);
  const binding = await service.sql.one<{
    id: string;
  }>`select id from bindings where customer_user_id = ${late}`;
  await eventually('the heal workflow began', async () =>
    service.temporal.workflow
      .getHandle(`heal:${binding.id}`)
      .describe()
      .then(
        () => true,
        () => false,
      ),
  );
  await record('heal', `heal:${binding.id}`);

  const reprocessRunId = await requestRun(service.sql, founder.app.id);
  await service.temporal.workflow.execute('reprocess', {
    workflowId: workflowIdOf('reprocess', reprocessRunId),
    taskQueue: background,
    args: [{ reprocessRunId }],
  });
  await record('reprocess', workflowIdOf('reprocess', reprocessRunId));

  await runOn(
    service.database.url,
    `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'broken for the recording'; end $$;
     create trigger test_breaks before insert on commissions for each row execute function test_breaks();`,
  );
  const stuck = await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 3_000 })));
  await runOn(service.database.url, 'drop trigger test_breaks on commissions');
  await record('delivery-fallback', await deliveryOf(stuck.body.eventId));

  await runOn(
    service.database.url,
    'create trigger test_breaks before insert on events for each row execute function test_breaks()',
  );
  await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 3_500 })));
  await runOn(service.database.url, 'drop trigger test_breaks on events');
  await record('delivery-quick-after-waiting', await latestDelivery());

  await runOn(
    service.database.url,
    'create trigger test_breaks before update on commissions for each row execute function test_breaks()',
  );
  const due = stripeInvoicePaid({ userId: user, amount: 4_000, occurredAt: Date.now() - 40 * DAY_MS });
  const held = await founder.stripe(bodyOf(due));
  await sleep(1_000);
  await runOn(service.database.url, 'drop trigger test_breaks on commissions');
  await record('hold-fallback', `hold:${held.body.commissionId}`);

  const sweep = `sweep:${service.taskQueue}`;
  const runSweep = async () =>
    await service.temporal.workflow.execute('sweep', { workflowId: sweep, taskQueue: background });
  await runSweep();
  await record('sweep', sweep);
  const overdue = { affiliateId: founder.affiliateId, amountCents: 100, occurredAt: 0, dueAt: 0 };
  for (let n = 0; n <= SWEEP_PAGE; n += 1) {
    await insertEarning(service, { appId: founder.app.id }, overdue);
  }
  await runSweep();
  await record('sweep-two-pages', sweep);

  await service.temporal.workflow.execute('retention', {
    workflowId: `retention:${service.taskQueue}`,
    taskQueue: service.taskQueue,
  });
  await record('retention', `retention:${service.taskQueue}`);

  await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, currency: 'eur' })));
  const rates = `rates:${service.taskQueue}`;
  const fetchRates = async () =>
    await service.temporal.workflow.execute('rates', { workflowId: rates, taskQueue: background });
  await fetchRates();
  await record('rates-imported', rates);
  ratesStatus = 404;
  await fetchRates().catch(() => {});
  await record('rates-failed', rates);
  await service.temporal.workflow.execute('convert', {
    workflowId: workflowIdOf('convert', service.taskQueue),
    taskQueue: background,
  });
  await record('convert', workflowIdOf('convert', service.taskQueue));
} finally {
  await service.close();
  await globalTeardown();
}
process.exit(0);
