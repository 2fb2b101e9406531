import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import Koa from 'koa';
import getRawBody from 'raw-body';
import { createDeliveryActivities } from '../activities/delivery.ts';
import type { WorkflowStarter } from '../src/commands/deps.ts';
import { Inbox } from '../src/commands/inbox.ts';
import { receiveWebhook } from '../src/commands/receive-webhook.ts';
import { readConfig } from '../src/config/config.ts';
import { createLogger } from '../src/config/logger.ts';
import { createSecretBox } from '../src/config/secret-box.ts';
import { createAccountKey } from '../src/db/account-keys.ts';
import { createAccount } from '../src/db/accounts.ts';
import { connect } from '../src/db/sql.ts';
import type { Sql } from '../src/db/sql.ts';
import { runServer } from '../src/server.ts';
import { NO_CALLBACKS } from './no-callbacks.ts';
import { createBenchApp, median, percentile, postPurchase } from './bench-support.ts';

const WARM_UP_REQUESTS = 200;
const SEQUENTIAL_REQUESTS = 200;
const CONCURRENT_REQUESTS = 1_500;
const IN_FLIGHT = 16;
/** Fewer than the default limit of 120 clicks per minute allows. */
const USERS = 40;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);

interface Figures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Responses per second. The service starts hold timers after it responds. */
  readonly perSecond: number;
  /** Responses per second, measured until the last hold timer was started: the rate that can be sustained. */
  readonly sustainedPerSecond: number;
}

/** Posts `count` new signed purchases, `inFlight` at a time; every response must have a commission. */
async function load(
  url: string,
  secret: string,
  users: readonly string[],
  count: number,
  inFlight: number,
): Promise<{ times: number[]; seconds: number }> {
  const times: number[] = [];
  let next = 0;
  const begin = performance.now();
  const sendNext = async () => {
    while (next < count) {
      const n = next;
      next += 1;
      const sent = performance.now();
      const { status, body } = await postPurchase(url, secret, users[n % users.length] ?? '');
      times.push(performance.now() - sent);
      if (!body.commissionId) throw new Error(`no commission: ${status} ${JSON.stringify(body)}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, sendNext));
  return { times, seconds: (performance.now() - begin) / 1000 };
}

async function measure(
  url: string,
  secret: string,
  users: readonly string[],
  untilIdle: () => Promise<void>,
): Promise<Figures> {
  await untilIdle();
  const single = (await load(url, secret, users, SEQUENTIAL_REQUESTS, 1)).times.toSorted((a, b) => a - b);
  await untilIdle();
  const begin = performance.now();
  const { seconds } = await load(url, secret, users, CONCURRENT_REQUESTS, IN_FLIGHT);
  await untilIdle();
  return {
    p50Ms: percentile(single, 0.5),
    p99Ms: percentile(single, 0.99),
    perSecond: CONCURRENT_REQUESTS / seconds,
    sustainedPerSecond: (CONCURRENT_REQUESTS * 1000) / (performance.now() - begin),
  };
}

/** Starts a plain Koa server that receives the webhooks of an app and runs their SQL without Temporal. */
async function startPlainServer(sql: Sql, secretsKeys: readonly Buffer[], appId: string): Promise<Server> {
  const logger = createLogger('error');
  const secretBox = createSecretBox(secretsKeys);
  const inbox = new Inbox();
  const activities = createDeliveryActivities({
    sql,
    secretBox,
    logger,
    ...NO_CALLBACKS,
    takeStored: (deliveryId) => inbox.take(deliveryId),
  });
  const workflows: WorkflowStarter = {
    processDelivery: async ({ deliveryId }) => await activities.processDelivery(deliveryId),
    healBinding: () => {},
    settlePayout: async () => {},
  };
  const refusals = { count: () => {}, flush: async () => {} };
  const app = new Koa();
  app.use(async (ctx) => {
    ctx.body = await receiveWebhook(
      { sql, secretBox, workflows, inbox, refusals, admit: async (work) => await work() },
      'stripe',
      appId,
      {
        headers: ctx.headers,
        receivedAt: Date.now(),
        readBody: async () => await getRawBody(ctx.req, { limit: '1mb' }),
      },
    );
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Returns the median of each figure over all rounds. */
function medians(rounds: readonly Figures[]): Figures {
  const of = (figure: keyof Figures) => median(rounds.map((round) => round[figure]));
  return {
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    perSecond: of('perSecond'),
    sustainedPerSecond: of('sustainedPerSecond'),
  };
}

function printFigures(name: string, { p50Ms, p99Ms, perSecond, sustainedPerSecond }: Figures): void {
  process.stdout.write(
    `${name.padEnd(20)} sequential: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms; ${IN_FLIGHT} in flight: ` +
      `${perSecond.toFixed(0)} responses per second, ${sustainedPerSecond.toFixed(0)} with their hold timers\n`,
  );
}

/** `npm run bench:webhook`: compares the service with a plain Koa handler that runs the same SQL without Temporal. */
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const config = readConfig({ LOG_LEVEL: 'error', DATA_DIR: dataDir, PORT: '0', RATES_URL: 'off' });
const { service, backends, stop } = await runServer(config);
await service.whenReady(60_000);
const account = await createAccount(service.sql, 'Bench');
const { key } = await createAccountKey(service.sql, account.id, ['read', 'write', 'setup']);
const { appId, stripeSecret, users } = await createBenchApp(service.url ?? '', key, {
  creators: USERS,
  users: USERS,
});

const sql = connect({ url: backends.databaseUrl, max: 20 });
const plainServer = await startPlainServer(sql, backends.secretsKeys, appId);
const connection = await Connection.connect({ address: backends.temporal.connection.address ?? '' });
const temporal = new Client({ connection });
let plainCommissions = 0;

/** Waits until every commission that the service created has its hold timer. */
async function holdsStarted(): Promise<void> {
  const { commissions } = await sql.one<{
    commissions: number;
  }>`select count(*)::int as commissions from commissions`;
  for (;;) {
    const { count } = await temporal.workflow.count(`WorkflowType = 'hold'`);
    if (count >= commissions - plainCommissions) return;
    await sleep(20);
  }
}

const TRIBUTARY = {
  name: 'Tributary',
  url: `${service.url}/webhooks/stripe/${appId}`,
  rounds: [] as Figures[],
};
const PLAIN = {
  name: 'plain Koa, same SQL',
  url: `http://127.0.0.1:${(plainServer.address() as AddressInfo).port}/`,
  rounds: [] as Figures[],
};
for (const { url } of [TRIBUTARY, PLAIN]) await load(url, stripeSecret, users, WARM_UP_REQUESTS, IN_FLIGHT);
plainCommissions += WARM_UP_REQUESTS;
for (let round = 1; round <= ROUNDS; round += 1) {
  for (const { name, url, rounds } of [TRIBUTARY, PLAIN]) {
    const isPlain = name === PLAIN.name;
    const figures = await measure(url, stripeSecret, users, isPlain ? async () => {} : holdsStarted);
    if (isPlain) plainCommissions += SEQUENTIAL_REQUESTS + CONCURRENT_REQUESTS;
    process.stderr.write(`round ${round} of ${ROUNDS}: ${name}: p50 ${figures.p50Ms.toFixed(1)} ms\n`);
    rounds.push(figures);
  }
}
const ours = medians(TRIBUTARY.rounds);
const plain = medians(PLAIN.rounds);
printFigures(TRIBUTARY.name, ours);
printFigures(PLAIN.name, plain);
process.stdout.write(
  `ratio                p50 × ${(ours.p50Ms / plain.p50Ms).toFixed(2)}, responses per second × ${(ours.perSecond / plain.perSecond).toFixed(2)}\n`,
);
await connection.close();
plainServer.close();
plainServer.closeAllConnections();
await sql.close();
await stop();
await rm(dataDir, { recursive: true, force: true });
