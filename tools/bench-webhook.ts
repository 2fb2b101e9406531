import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import Koa from 'koa';
import getRawBody from 'raw-body';
import { createDeliveryActivities } from '../activities/delivery.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from './provider-payloads.ts';
import { readConfig } from '../src/config/config.ts';
import { createLogger } from '../src/config/logger.ts';
import { createSecretBox } from '../src/config/secret-box.ts';
import { createAccountKey } from '../src/db/account-keys.ts';
import { createAccount } from '../src/db/accounts.ts';
import { connect } from '../src/db/sql.ts';
import { receiveWebhook } from '../src/commands/receive-webhook.ts';
import { runServer } from '../src/server.ts';

const WARM_UP_REQUESTS = 200;
const SEQUENTIAL_REQUESTS = 200;
const CONCURRENT_REQUESTS = 1_500;
const IN_FLIGHT = 16;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);

interface Figures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Responses per second. The service starts hold timers after it responds. */
  readonly perSecond: number;
  /** Responses per second, measured until the last hold timer was started: the rate that can be sustained. */
  readonly sustainedPerSecond: number;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const median = (values: readonly number[]) =>
  percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

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
      const body = bodyOf(
        stripeInvoicePaid({ userId: users[n % users.length] ?? '', amount: 1_999, occurredAt: Date.now() }),
      );
      const headers = {
        'content-type': 'application/json',
        'stripe-signature': signStripe(body, secret, Math.floor(Date.now() / 1000)),
      };
      const sent = performance.now();
      const response = await fetch(url, { method: 'POST', body: body as never, headers });
      const result = (await response.json()) as { commissionId?: string };
      times.push(performance.now() - sent);
      if (!result.commissionId)
        throw new Error(`no commission: ${response.status} ${JSON.stringify(result)}`);
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

/** `npm run bench:webhook`: compares the service with a plain Koa handler that runs the same SQL without Temporal. */
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
const config = readConfig({ LOG_LEVEL: 'error', DATA_DIR: dataDir, PORT: '0', RATES_URL: 'off' });
const { service, backends, stop } = await runServer(config);
const base = service.url ?? '';

const { id: accountId } = await createAccount(service.sql, 'Bench');
const { key } = await createAccountKey(service.sql, accountId, ['read', 'write', 'setup']);
const call = async (method: string, route: string, body: object, bearer = key) => {
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
  const response = await fetch(base + route, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${route}: ${await response.text()}`);
  return (await response.json()) as Record<string, string>;
};
const app = await call('POST', '/apps', { name: 'Bench' });
const secret = `whsec_bench_${randomBytes(8).toString('hex')}`;
await call('PUT', `/apps/${app['id']}/webhooks/stripe/secret`, { secret });
const users: string[] = [];
for (let n = 0; n < 40; n += 1) {
  const affiliate = await call('POST', `/apps/${app['id']}/affiliates`, { name: `Creator ${n}` });
  const slug = `bench-${n}`;
  await call('POST', `/apps/${app['id']}/links`, {
    affiliateId: affiliate['id'],
    slug,
    destinationUrl: 'https://example.com',
  });
  const claimToken = randomUUID();
  await call('POST', '/clicks', { customerAppId: app['id'], slug, claimToken });
  await call(
    'POST',
    '/sdk/install',
    { deviceId: `device-${n}`, claimToken, firstOpenAt: Date.now() },
    app['sdkKey'],
  );
  await call(
    'POST',
    '/sdk/identify',
    { deviceId: `device-${n}`, customerUserId: `user-${n}`, identifiedAt: Date.now() },
    app['sdkKey'],
  );
  users.push(`user-${n}`);
}

const logger = createLogger('error');
const secretBox = createSecretBox(backends.secretsKeys);
const sql = connect({ url: backends.databaseUrl, max: 20 });
const activities = createDeliveryActivities({
  sql,
  secretBox,
  logger,
  onOutcome: () => {},
  onCommissions: () => {},
  onBindings: () => {},
});
const plain = new Koa();
plain.use(async (ctx) => {
  const body = await getRawBody(ctx.req, { limit: '1mb' });
  const work = {
    processDelivery: async (id: string) => {
      const result = await activities.processDelivery(id);
      return result as never;
    },
    healBinding: () => {},
    settlePayout: async () => {},
  };
  ctx.body = await receiveWebhook({ sql, secretBox, workflows: work, logger }, 'stripe', app['id'] ?? '', {
    headers: ctx.headers,
    body,
    receivedAt: Date.now(),
  });
});
const handle = plain.callback();
const plainServer = createServer((request, response) => void handle(request, response)).listen(
  0,
  '127.0.0.1',
);
await new Promise((resolve) => {
  plainServer.once('listening', resolve);
});

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

const subjects = [
  { name: 'Tributary', url: `${base}/webhooks/stripe/${app['id']}` },
  { name: 'plain Koa, same SQL', url: `http://127.0.0.1:${(plainServer.address() as AddressInfo).port}/` },
];
const results = new Map<string, Figures[]>(subjects.map(({ name }) => [name, []]));
for (const { url } of subjects) await load(url, secret, users, WARM_UP_REQUESTS, IN_FLIGHT);
plainCommissions += WARM_UP_REQUESTS;
for (let round = 1; round <= ROUNDS; round += 1) {
  for (const { name, url } of subjects) {
    const isPlain = name !== 'Tributary';
    const figures = await measure(url, secret, users, isPlain ? async () => {} : holdsStarted);
    if (isPlain) plainCommissions += SEQUENTIAL_REQUESTS + CONCURRENT_REQUESTS;
    process.stderr.write(`round ${round} of ${ROUNDS}: ${name}: p50 ${figures.p50Ms.toFixed(1)} ms\n`);
    results.get(name)?.push(figures);
  }
}
const summary = subjects.map(({ name }) => {
  const rounds = results.get(name) ?? [];
  const middle = (figure: keyof Figures) => median(rounds.map((r) => r[figure]));
  return {
    name,
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    perSecond: middle('perSecond'),
    sustainedPerSecond: middle('sustainedPerSecond'),
  };
});
for (const { name, p50Ms, p99Ms, perSecond, sustainedPerSecond } of summary) {
  process.stdout.write(
    `${name.padEnd(20)} sequential: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms; ${IN_FLIGHT} in flight: ` +
      `${perSecond.toFixed(0)} responses per second, ${sustainedPerSecond.toFixed(0)} with their hold timers\n`,
  );
}
const [ours, theirs] = summary;
if (ours !== undefined && theirs !== undefined) {
  process.stdout.write(
    `ratio                p50 × ${(ours.p50Ms / theirs.p50Ms).toFixed(2)}, responses per second × ${(ours.perSecond / theirs.perSecond).toFixed(2)}\n`,
  );
}
await connection.close();
plainServer.close();
plainServer.closeAllConnections();
await sql.close();
await stop();
await rm(dataDir, { recursive: true, force: true });
