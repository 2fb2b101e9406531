import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DAY_MS } from '../../src/domain/time.ts';
import { closeConnections, send } from '../chaos/answers.ts';
import { Random } from '../chaos/random.ts';
import { startStack } from '../chaos/stack.ts';
import type { ServiceProcess } from '../chaos/service-process.ts';
import type { Stack } from '../chaos/stack.ts';
import { STREAMS } from './messages.ts';
import type { Order, OrderResult, StreamResult, Target } from './messages.ts';

/*
 * `npm run load -- [--minutes 10] [--step-seconds 10] [--overload-seconds 60] [--exports 1000] [--creators 100]`: finds how
 * many webhooks per second two processes finish in time on this machine now, keeps 80 % of that up and watches the memory,
 * sends twice as many and watches what is shed, and exports the payouts of all creators many times at once.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    'step-seconds': { type: 'string', default: '10' },
    'first-rate': { type: 'string', default: '8' },
    'most-steps': { type: 'string', default: '30' },
    'overload-seconds': { type: 'string', default: '60' },
    exports: { type: 'string', default: '1000' },
    creators: { type: 'string', default: '100' },
  },
});
const PROCESSES = 2;
/** A rate is too high when its slowest hundredth takes longer than this, or more than a hundredth of it is not done. */
const PEAK_P99_MS = 1_500;
const STEP = 1.3;
/** The sides of the load that must go on in an overload, per second. */
const BESIDE = { read: 2, health: 2, export: 0.5 } as const;
const MEMORY_EVERY_MS = 2_000;
const TELL_EVERY_MS = 30_000;
const MB = 1024 * 1024;

const startedAt = Date.now();
const say = (line: string) =>
  void process.stderr.write(
    `${((Date.now() - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${line} [load average ${loadavg()[0]?.toFixed(1)}]\n`,
  );
const problems: string[] = [];

/** Creates an app with creators of whom each has one user. */
async function createTarget(stack: Stack): Promise<Target> {
  const bases = stack.processes.map(({ base }) => base);
  const [base = ''] = bases;
  const account = JSON.parse(await stack.admin('accounts', 'create', '--name', 'Load', '--json')) as {
    id: string;
  };
  const permissions = ['--permissions', 'read,write,setup,payout'];
  const { key } = JSON.parse(
    await stack.admin('keys', 'create', '--account', account.id, ...permissions, '--json'),
  ) as { key: string };
  const call = async (method: string, route: string, body: object, bearer = key) => {
    const answer = await send(base, method, route, { body, headers: { authorization: `Bearer ${bearer}` } });
    if (answer.status >= 300)
      throw new Error(`${method} ${route}: ${answer.status} ${answer.body.toString()}`);
    return JSON.parse(answer.body.toString()) as Record<string, string>;
  };
  const { id: appId = '', sdkKey = '' } = await call('POST', '/apps', { name: 'Load' });
  const { secret: webhookSecret = '' } = await call('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, {});
  const creators: string[] = [];
  const users: string[] = [];
  for (let n = 0; n < Number(values.creators); n += 1) {
    const { id: creator = '' } = await call('POST', `/apps/${appId}/affiliates`, { name: `Creator ${n}` });
    const [deviceId, customerUserId] = [randomUUID(), `user-${n}`];
    const firstOpenAt = Date.now() - 50 * DAY_MS;
    await call('POST', '/sdk/install', { deviceId, affiliateCode: creator, firstOpenAt }, sdkKey);
    await call('POST', '/sdk/identify', { deviceId, customerUserId, identifiedAt: Date.now() }, sdkKey);
    creators.push(creator);
    users.push(customerUserId);
  }
  return { bases, appId, key, webhookSecret, creators, users };
}

async function perform(generator: ChildProcess, order: Order): Promise<OrderResult> {
  generator.send(order);
  const [result] = (await once(generator, 'message')) as [OrderResult];
  return result;
}

const ms = (value: number) => (Number.isNaN(value) ? 'none' : `${value.toFixed(0)} ms`);

/** Prints what became of an order and notes answers that no client should get. */
function tell(name: string, { streams, latestMs }: OrderResult): void {
  for (const stream of STREAMS) {
    const result = streams[stream];
    if (result === undefined) continue;
    const { sent, ok, shed, pending, bad, p50Ms, p99Ms, mostMs, shedP99Ms } = result;
    const refused = shed === 0 ? '' : `, ${shed} times 503 with Retry-After (p99 ${ms(shedP99Ms)})`;
    say(
      `${name}: ${stream}: ${sent} sent, ${ok} done${pending === 0 ? '' : ` (${pending} pending)`}${refused}, ` +
        `p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}, most ${ms(mostMs)}`,
    );
    problems.push(...bad.slice(0, 3).map((answer) => `${name}: ${stream}: ${answer}`));
  }
  if (latestMs > 250)
    say(`${name}: the generator itself was up to ${ms(latestMs)} late: take the times as too high`);
}

/** Whether a rate was finished in time. */
function isSustained({ sent, shed, pending, bad, p99Ms }: StreamResult): boolean {
  return shed + pending + bad.length <= sent / 100 && p99Ms <= PEAK_P99_MS;
}

/** Raises the rate until a step fails twice: once may be the machine. Returns the highest rate that was finished in time. */
async function findPeak(generator: ChildProcess): Promise<number> {
  let peak = 0;
  let failures = 0;
  let rate = Number(values['first-rate']);
  for (let step = 0; step < Number(values['most-steps']); step += 1) {
    const seconds = Number(values['step-seconds']);
    const result = await perform(generator, { kind: 'rates', seconds, rates: { webhook: rate } });
    tell(`${rate.toFixed(1)} per second`, result);
    if (result.streams.webhook !== undefined && isSustained(result.streams.webhook)) {
      peak = rate;
      rate *= STEP;
      failures = 0;
    } else {
      failures += 1;
      if (failures === 2) {
        if (peak > 0) return peak;
        rate /= 2;
        failures = 0;
      }
      await sleep(2_000);
    }
  }
  return peak === 0 ? rate : peak;
}

/** The resident memory of a process and its heap, MB. */
interface Memory {
  readonly rss: number;
  readonly heap: number;
}

async function memoryOf({ metricsBase }: ServiceProcess): Promise<Memory> {
  const { body } = await send(metricsBase, 'GET', '/metrics');
  const value = (name: string) =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(body.toString())?.[1] ?? Number.NaN) / MB;
  return { rss: value('process_resident_memory_bytes'), heap: value('nodejs_heap_size_used_bytes') };
}

const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;

/** The slope of values that are half a minute apart, per minute, by least squares. */
function slope(points: readonly number[]): number {
  const minutes = points.map((_, n) => n / 2);
  const [x, y] = [mean(minutes), mean(points)];
  const over = points.reduce((sum, value, n) => sum + ((minutes[n] ?? 0) - x) * (value - y), 0);
  return over / minutes.reduce((sum, value) => sum + (value - x) ** 2, 0);
}

/**
 * Prints the memory of each process each half minute: the resident memory, and the least heap of that time, which is what the
 * collector left. Returns a function that ends it and judges the second half of the time.
 */
function watchMemory(processes: readonly ServiceProcess[]): () => Promise<void> {
  const points = processes.map((): Memory[] => []);
  const watch = { isRunning: true };
  const watching = (async () => {
    while (watch.isRunning) {
      const heaps = processes.map(() => Infinity);
      let last: readonly Memory[] = [];
      const until = Date.now() + TELL_EVERY_MS;
      while (watch.isRunning && Date.now() < until) {
        last = await Promise.all(processes.map(memoryOf));
        for (const [n, { heap }] of last.entries()) heaps[n] = Math.min(heaps[n] ?? Infinity, heap);
        await sleep(MEMORY_EVERY_MS);
      }
      if (!watch.isRunning) return;
      for (const [n, { rss }] of last.entries()) points[n]?.push({ rss, heap: heaps[n] ?? Number.NaN });
      const texts = points.map((mine, n) => {
        const { rss, heap } = mine.at(-1) ?? { rss: Number.NaN, heap: Number.NaN };
        return `process ${n}: ${rss.toFixed(0)} MB resident, ${heap.toFixed(0)} MB heap`;
      });
      say(texts.join('; '));
    }
  })();
  return async () => {
    watch.isRunning = false;
    await watching;
    for (const [n, mine] of points.entries()) {
      const half = mine.slice(Math.floor(mine.length / 2));
      if (half.length < 4) continue;
      const [rss, heap] = [slope(half.map((point) => point.rss)), slope(half.map((point) => point.heap))];
      say(
        `process ${n}: slope of the second half: ${rss.toFixed(2)} MB resident and ${heap.toFixed(2)} MB heap per minute`,
      );
      const first = half[0];
      // A leak of one request in a hundred would show as more than that.
      if (first !== undefined && heap > Math.max(1, first.heap / 50))
        problems.push(`the heap of process ${n} grows by ${heap.toFixed(2)} MB a minute`);
    }
  };
}

/** Every commission is paid once, and every creator has what was due. */
async function checkPayouts(stack: Stack, paidCents: number, paidBefore: number): Promise<void> {
  const sql = stack.sql();
  const found = await sql.one<{
    twice: number;
    unpaid: number;
    payouts: number;
    total: number;
    items: number;
  }>`
    select (select count(*)::int from (select from payout_items group by commission_id having count(*) > 1) t) as twice,
           (select count(*)::int from commissions where status <> 'paid' and due_at <= now()) as unpaid,
           (select count(*)::int from payouts) as payouts,
           (select coalesce(sum(total_cents), 0)::bigint from payouts) as total,
           (select coalesce(sum(amount_cents), 0)::bigint from payout_items) as items`;
  say(
    `${found.payouts} payouts of ${(found.total / 100).toFixed(2)} USD; paid twice: ${found.twice}; due and not paid: ${found.unpaid}`,
  );
  if (found.twice > 0) problems.push(`${found.twice} commissions are in two payouts`);
  if (found.unpaid > 0) problems.push(`${found.unpaid} due commissions were not paid`);
  if (found.total !== found.items || found.total - paidBefore !== paidCents)
    problems.push(
      `the CSVs add up to ${paidCents} cents, the payouts to ${found.total - paidBefore}, all items to ${found.items} of ${found.total}`,
    );
  await stack.admin('ledger', 'check').catch((error: unknown) => void problems.push(String(error)));
}

async function untilIdle(stack: Stack): Promise<void> {
  const giveUpAt = Date.now() + 180_000;
  for (;;) {
    const { n } = await stack.sql().one<{ n: number }>`
      select count(*)::int as n from deliveries where completed_at is null`;
    if (n === 0) return;
    if (Date.now() > giveUpAt) {
      problems.push(`${n} deliveries have no outcome after three minutes`);
      return;
    }
    await sleep(250);
  }
}

async function main(folder: string): Promise<void> {
  const stack = await startStack({ folder, processes: PROCESSES, random: new Random('load'), say });
  const generator = fork(path.join(import.meta.dirname, 'generator.ts'), { stdio: 'inherit' });
  try {
    const target = await createTarget(stack);
    generator.send(target);
    const cpus = availableParallelism();
    say(
      `${PROCESSES} processes and their servers share ${cpus} cores with this program; searching for the peak`,
    );
    const peak = await findPeak(generator);
    say(`the peak is ${peak.toFixed(1)} webhooks per second`);
    await untilIdle(stack);

    const seconds = Number(values.minutes) * 60;
    const webhook = peak * 0.8;
    say(`80 % of the peak, ${webhook.toFixed(1)} per second, for ${values.minutes} minutes`);
    const judge = watchMemory(stack.processes);
    tell('at 80 %', await perform(generator, { kind: 'rates', seconds, rates: { webhook, ...BESIDE } }));
    await judge();
    await untilIdle(stack);

    const overload = Number(values['overload-seconds']);
    say(`twice the peak, ${(2 * peak).toFixed(1)} per second, for ${overload} s`);
    const twice = { webhook: 2 * peak, ...BESIDE };
    const over = await perform(generator, { kind: 'rates', seconds: overload, rates: twice });
    tell('at twice the peak', over);
    for (const stream of ['read', 'health', 'export'] as const) {
      const { sent = 0, ok = 0 } = over.streams[stream] ?? {};
      if (ok < sent) problems.push(`at twice the peak, ${sent - ok} of ${sent} ${stream} requests failed`);
    }
    await untilIdle(stack);

    const { paid } = await stack.sql().one<{ paid: number }>`
      select coalesce(sum(total_cents), 0)::bigint as paid from payouts`;
    await perform(generator, { kind: 'rates', seconds: 10, rates: { webhook: Math.min(webhook, 20) } });
    await untilIdle(stack);
    say(`${values.exports} exports of ${values.creators} creators at once`);
    const exported = await perform(generator, { kind: 'exports', count: Number(values.exports) });
    tell('at once', exported);
    await checkPayouts(stack, exported.streams.export?.paidCents ?? 0, paid);
    problems.push(...stack.processes.flatMap(({ crashes }) => crashes));
  } finally {
    generator.disconnect();
    closeConnections();
    await stack.stop();
  }
}

const folder = await mkdtemp(path.join(tmpdir(), 'tributary-load-'));
await chmod(folder, 0o755);
try {
  await main(folder);
} catch (error) {
  problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
if (problems.length > 0) say(`FAILED, logs and data are in ${folder}:\n${problems.join('\n')}`);
else await rm(folder, { recursive: true, force: true });
process.exit(problems.length > 0 ? 1 : 0);
