import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { acceptDelivery } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import type { AppId, SecretId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import globalSetup from '../../test/support/global-setup.ts';
import globalTeardown from '../../test/support/global-teardown.ts';
import { insertEarning } from '../../test/support/ledger.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../../test/support/provider-fixtures.ts';
import { startTestService, temporalAddress } from '../../test/support/service.ts';
import type { TestService } from '../../test/support/service.ts';
import { ratio, report } from './report.ts';
import { median, percentile } from './support.ts';

/** Returns the duration of a call, ms. Throws when the response is no success. */
async function timed(
  call: () => Promise<{ readonly status: number; readonly text: string }>,
): Promise<number> {
  const before = performance.now();
  const { status, text } = await call();
  if (status !== 200) throw new Error(`${status} ${text}`);
  return performance.now() - before;
}

/** Multiplies all amounts: less than 1 on a slow machine. */
const SCALE = Number(process.env['BENCH_SCALE'] ?? 1);
const scaled = (count: number) => Math.max(1, Math.round(count * SCALE));

const say = (line: string) => void process.stdout.write(`${line}\n`);

function figures(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const of = (share: number) => percentile(sorted, share).toFixed(0);
  return `p50 ${of(0.5)} ms, p99 ${of(0.99)} ms, ${times.length} calls`;
}

/** Runs `work` for each of `count` numbers, `atOnce` at a time. */
async function repeat(count: number, atOnce: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const n = next;
      next += 1;
      await work(n);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

/** Sends purchases at a fixed rate. Returns how long each took. */
async function webhooks(
  founder: Founder,
  userId: string,
  seconds: number,
  perSecond: number,
): Promise<number[]> {
  const times: number[] = [];
  const sent: Promise<void>[] = [];
  for (let n = 0; n < seconds * perSecond; n += 1) {
    const buy = async () => {
      times.push(await timed(() => founder.stripe(bodyOf(stripeInvoicePaid({ userId, amount: 500 })))));
    };
    sent.push(buy());
    await sleep(1_000 / perSecond);
  }
  await Promise.all(sent);
  return times;
}

/** Inserts commissions with a hold timer each, all due at one instant. Returns that instant. */
async function holdsDueAtOnce(service: TestService, founder: Founder, count: number): Promise<number> {
  const affiliates = await Promise.all(Array.from({ length: 20 }, () => founder.newAffiliate()));
  const dueAt = Date.now() + 10_000 + count * 20;
  await repeat(count, 8, async (n) => {
    const affiliateId = affiliates[n % affiliates.length]?.affiliateId ?? '';
    const row = { affiliateId, amountCents: 100, occurredAt: dueAt - 30 * DAY_MS, dueAt };
    const commissionId = await insertEarning(service, { appId: founder.app.id }, row);
    await service.temporal.workflow.start('hold', {
      workflowId: `hold:${commissionId}`,
      taskQueue: backgroundQueue(service.taskQueue),
      startDelay: Math.max(0, dueAt - Date.now()),
      workflowTaskTimeout: '3s',
      args: [{ commissionId }],
    });
  });
  if (Date.now() > dueAt)
    throw new Error('this machine is too slow: the holds became due before all were started');
  return dueAt;
}

async function untilMatured(service: TestService): Promise<void> {
  for (;;) {
    const open = await service.database.sql`
      select from commissions where status = 'pending' and due_at <= now() limit 1`;
    if (open.length === 0) return;
    await sleep(100);
  }
}

/** Exports and webhooks while many holds are due at once, and without them. */
async function holds(): Promise<void> {
  const service = await startTestService();
  const founder = await setUpFounder(service);
  const payees: string[] = [];
  for (let n = 0; n < 30; n += 1) {
    const { affiliateId, slug } = await founder.newAffiliate();
    await founder.purchase(await founder.customer(slug), 10);
    payees.push(affiliateId);
  }
  const user = await founder.customer();
  await webhooks(founder, user, 3, 10);
  await untilMatured(service);
  const exportNext = async () => await timed(() => founder.exportCsv(payees.pop()));
  const alone: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    alone.push(await exportNext());
    await sleep(500);
  }
  say(`exports alone: ${figures(alone)}`);

  const many = scaled(3_000);
  const dueAt = await holdsDueAtOnce(service, founder, many);
  await sleep(Math.max(0, dueAt - Date.now()));
  const matured = untilMatured(service).then(() => Date.now() - dueAt);
  const busy: number[] = [];
  for (let second = 1; second <= 20; second += 1) {
    await sleep(Math.max(0, dueAt + second * 1_000 - Date.now()));
    busy.push(await exportNext().catch(() => Number.NaN));
  }
  say(
    `exports with ${many} holds, one a second: ${busy.map((ms) => ms.toFixed(0)).join(', ')} ms; ${figures(busy)}; all matured after ${((await matured) / 1_000).toFixed(1)} s`,
  );

  const webhooksAlone = await webhooks(founder, user, 15, 10);
  say(`webhooks alone: ${figures(webhooksAlone)}`);
  const crowd = scaled(500);
  const nextDueAt = await holdsDueAtOnce(service, founder, crowd);
  await sleep(Math.max(0, nextDueAt - Date.now()));
  const besideHolds = await webhooks(founder, user, 15, 10);
  say(`webhooks with ${crowd} holds due at once: ${figures(besideHolds)}`);
  const times = median(besideHolds) / median(webhooksAlone);
  report({
    path: `webhooks, ten a second, beside ${crowd} holds that are due at once, p50`,
    comparedWith: 'without them',
    measured: `${median(besideHolds).toFixed(0)} ms against ${median(webhooksAlone).toFixed(0)} ms: ${ratio(times)}`,
    target: 'at most 1.5',
    isReached: times <= 1.5,
  });
  await service.close();
}

/** How fast the relay finishes a backlog of deliveries whose workflows were never started. */
async function relay(): Promise<void> {
  const backlog = scaled(1_500);
  const stopped = await startTestService({ settings: { relay: { overdueMs: DAY_MS, pauseMs: DAY_MS } } });
  const founder = await setUpFounder(stopped);
  const users = await Promise.all(
    Array.from({ length: 20 }, async () => await founder.customer((await founder.newAffiliate()).slug)),
  );
  const secret = await stopped.sql.one<{ id: SecretId }>`
    select id from webhook_secrets where app_id = ${founder.app.id} and provider = 'stripe'`;
  const receivedAt = Date.now() - 60_000;
  await repeat(backlog, 8, async (n) => {
    const body = bodyOf(stripeInvoicePaid({ userId: users[n % users.length] ?? '', amount: 1_000 }));
    const signature = signStripe(body, founder.stripeSecret, Math.floor(receivedAt / 1000));
    await acceptDelivery(stopped.sql, {
      deliveryId: newId('delivery'),
      eventId: newId('event'),
      appId: founder.app.id as AppId,
      provider: 'stripe',
      receivedAt,
      currentSecretId: null,
      secretId: secret.id,
      proof: { kind: 'headers', headers: { 'stripe-signature': signature } },
      bodySha256: createHash('sha256').update(body).digest(),
      body,
    });
  });
  const service = await startTestService({ settings: { databaseUrl: stopped.database.url } });
  const before = Date.now();
  // The database of the test has a pool of its own, so that the question does not wait behind the answer.
  for (let open = [{}]; open.length > 0; await sleep(200)) {
    open = await stopped.database.sql`
      select from deliveries where app_id = ${founder.app.id} and completed_at is null limit 1`;
  }
  const seconds = (Date.now() - before) / 1_000;
  say(
    `relay: ${backlog} deliveries in ${seconds.toFixed(1)} s, ${(backlog / seconds).toFixed(0)} per second`,
  );
  await service.close();
  await stopped.close();
}

/** Webhooks one by one with the API and the worker in separate services of this process. */
async function split(): Promise<void> {
  const api = await startTestService({ settings: { role: 'api' } });
  const worker = await startTestService({ settings: { role: 'worker', databaseUrl: api.database.url } });
  const founder = await setUpFounder(api);
  const user = await founder.customer();
  const buy = async () =>
    await timed(() => founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 500 }))));
  for (let n = 0; n < scaled(50); n += 1) await buy();
  const times: number[] = [];
  for (let n = 0; n < scaled(200); n += 1) times.push(await buy());
  say(`split, one by one: ${figures(times)}`);
  await api.close();
  await worker.close();
}

/** The end of the starts in flight while many hold timers wait for theirs. */
async function shutdown(): Promise<void> {
  const service = await startTestService();
  const starter = createWorkflowStarter({
    client: () => service.temporal,
    taskQueue: service.taskQueue,
    hasWorker: false,
    logger: pino({ level: 'silent' }),
  });
  const count = scaled(5_000);
  const dueAt = Date.now() + 30 * DAY_MS;
  starter.startHolds(
    Array.from({ length: count }, () => ({
      commissionId: newId('commission'),
      appId: newId('app'),
      eventId: newId('event'),
      dueAt,
    })),
  );
  const before = Date.now();
  await starter.drain();
  say(`shutdown with ${count} waiting hold timers: ${((Date.now() - before) / 1_000).toFixed(1)} s`);
  await service.close();
}

const RUNS = { holds, relay, split, shutdown } as const;

/**
 * `npm run bench -- background`: how background work and awaited work share a process. `BENCH_PARTS=holds,relay,split,shutdown`
 * chooses parts.
 */
const names = (process.env['BENCH_PARTS'] ?? '').split(',').filter((name) => name !== '');
const chosen = Object.entries(RUNS).filter(([name]) => names.length === 0 || names.includes(name));
await globalSetup();
try {
  say(`Temporal at ${temporalAddress()}`);
  for (const [, run] of chosen) await run();
} finally {
  await globalTeardown();
}
process.exit(0);
