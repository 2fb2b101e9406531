import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { koaBody } from 'koa-body';
import Koa from 'koa';
import postgres from 'postgres';
import { newId } from '../../src/db/new-id.ts';
import { HttpSocket } from './http-socket.ts';
import { ratio, report } from './report.ts';
import { createBenchApp, median, percentile, startBenchServer } from './support.ts';

/**
 * `npm run bench -- clicks`: `POST /clicks` compared with an ordinary Koa handler that inserts one row, in turns in one run,
 * then with steady arrivals at half of its peak. A thread of its own sends the requests over plain sockets, because the
 * client of Node costs more than the service.
 */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const IN_FLIGHT = 32;

interface Load {
  readonly port: number;
  readonly path: string;
  readonly fields: object;
  readonly seconds: number;
  readonly inFlight: number;
  /** Requests per second that arrive whether or not earlier ones are answered. Null sends the next after a response. */
  readonly perSecond: number | null;
}
interface Answered {
  readonly timesMs: readonly number[];
  readonly failed: number;
  readonly seconds: number;
}

/** Sends requests over sockets, one at a time on each. Runs in the thread. */
async function send({ port, path, fields, seconds, inFlight, perSecond }: Load): Promise<Answered> {
  const timesMs: number[] = [];
  let failed = 0;
  const begin = performance.now();
  const endsAt = begin + seconds * 1000;
  let arrivals = 0;
  const openSocket = async () => {
    const socket = await HttpSocket.open(port);
    while (performance.now() < endsAt) {
      let sentAt = performance.now();
      if (perSecond !== null) {
        // The time counts from when the request was due, also if no socket was free then.
        sentAt = begin + (arrivals * 1000) / perSecond;
        arrivals += 1;
        if (sentAt > performance.now()) await sleep(sentAt - performance.now());
      }
      const body = JSON.stringify({ ...fields, claimToken: randomUUID() });
      const { status } = await socket.post(path, body);
      timesMs.push(performance.now() - sentAt);
      if (status !== 200) failed += 1;
    }
    socket.close();
  };
  await Promise.all(Array.from({ length: inFlight }, openSocket));
  return { timesMs, failed, seconds: (performance.now() - begin) / 1000 };
}

async function load(request: Load): Promise<Answered> {
  const worker = new Worker(new URL(import.meta.url), { workerData: request });
  const [answered] = (await once(worker, 'message')) as [Answered];
  if (answered.failed > 0)
    throw new Error(`${answered.failed} of ${answered.timesMs.length} requests failed`);
  return answered;
}

/** Starts a handler as anybody would write it: a look-up of the link and an insert in one statement, one row per request. */
async function startPlainServer(databaseUrl: string): Promise<{ port: number; stop: () => Promise<void> }> {
  const sql = postgres(databaseUrl, { max: 20, onnotice: () => {} });
  await sql`create table plain_clicks (like clicks including all)`;
  await sql`alter table plain_clicks add foreign key (app_id, affiliate_id, link_id) references links (app_id, affiliate_id, id)`;
  const app = new Koa();
  app.use(koaBody());
  app.use(async (ctx) => {
    const { customerAppId, slug, claimToken } = ctx.request.body as Record<string, string>;
    const [row] = await sql`
      insert into plain_clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
      select ${newId('click')}, app_id, affiliate_id, id, ${claimToken ?? ''}, false, now()
        from links where app_id = ${customerAppId ?? ''} and lower(slug) collate "C" = lower(${slug ?? ''})
      returning id, affiliate_id`;
    ctx.body = { clickId: row?.['id'] as string, affiliateId: row?.['affiliate_id'] as string };
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await sql.end();
    },
  };
}

interface Round {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly walBytes: number;
}

async function main(): Promise<void> {
  const { service, backends, base, key, stop } = await startBenchServer();
  const { appId, slugs } = await createBenchApp(base, key, { creators: 20, users: 1 });
  const plain = await startPlainServer(backends.migrationsDatabaseUrl);
  const walPosition = async () =>
    (
      await service.sql.one<{
        bytes: number;
      }>`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint as bytes`
    ).bytes;
  const subjects = [
    { name: 'Tributary', port: Number(new URL(base).port), rounds: [] as Round[] },
    { name: 'plain Koa handler', port: plain.port, rounds: [] as Round[] },
  ];
  const request = (port: number, seconds: number, perSecond: number | null, inFlight = IN_FLIGHT): Load => ({
    port,
    path: '/clicks',
    fields: { customerAppId: appId, slug: slugs[0] },
    seconds,
    inFlight,
    perSecond,
  });
  const measure = async (one: Load): Promise<Round> => {
    const before = await walPosition();
    const { timesMs, seconds } = await load(one);
    const sorted = timesMs.toSorted((a, b) => a - b);
    return {
      perSecond: timesMs.length / seconds,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      walBytes: ((await walPosition()) - before) / timesMs.length,
    };
  };
  for (const { port } of subjects) await measure(request(port, Math.min(SECONDS, 2), null));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { port, rounds } of subjects) rounds.push(await measure(request(port, SECONDS, null)));
  }
  for (const { name, rounds } of subjects) {
    const of = (figure: keyof Round) => median(rounds.map((round) => round[figure]));
    process.stdout.write(
      `${name.padEnd(18)} ${IN_FLIGHT} in flight: ${of('perSecond').toFixed(0)} per second, p50 ${of('p50Ms').toFixed(1)} ms, ` +
        `p99 ${of('p99Ms').toFixed(1)} ms, ${of('walBytes').toFixed(0)} bytes of WAL per click\n`,
    );
  }
  const [ours, theirs] = subjects.map(({ rounds }) => rounds.map(({ perSecond }) => perSecond));
  const ratios = (ours ?? []).map((rate, round) => rate / (theirs?.[round] ?? Number.NaN));
  const times = median(ratios);
  report({
    path: '`POST /clicks`, 32 in flight',
    comparedWith: 'an ordinary Koa handler with one insert',
    measured: `${median(ours ?? []).toFixed(0)}/s against ${median(theirs ?? []).toFixed(0)}/s: ${ratio(times)}`,
    target: 'at least 4.5',
    isReached: times >= 4.5,
  });
  const half = median(ours ?? []) / 2;
  const open = await measure(request(subjects[0]?.port ?? 0, SECONDS, half, 256));
  report({
    path: '`POST /clicks`, half of its peak in open loop',
    comparedWith: '',
    measured: `${half.toFixed(0)}/s arrive: p50 ${open.p50Ms.toFixed(1)} ms, p99 ${open.p99Ms.toFixed(1)} ms`,
    target: 'p99 at most 15 ms',
    isReached: open.p99Ms <= 15,
  });
  await plain.stop();
  await stop();
}

if (isMainThread) await main();
else parentPort?.postMessage(await send(workerData as Load), []);
