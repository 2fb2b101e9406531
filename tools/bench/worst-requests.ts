/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { readConfig } from '../../src/config/config.ts';
import { freePort } from '../../src/embedded/processes.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { runServer } from '../../src/server.ts';
import { packetsOf } from './packets.ts';
import {
  bytePackets,
  bytesOf,
  chunkedBytesOf,
  extendedBytesOf,
  headPackets,
  isInPackets,
  packetOf,
  trailedBytesOf,
  unfinishedBytesOf,
} from './raw-requests.ts';
import { IS_QUICK, report } from './report.ts';
import { WORST_CASES } from './requests-without-key.ts';
import type { Delivery, SentRequest, Target, WorstCase } from './requests-without-key.ts';

/**
 * `npm run bench -- worst-requests`: sends the worst request of every route without an account key to a new instance, one
 * after another in several batches and in each way in which bytes arrive, and prints what each costs. Limits of requests are off,
 * so that every request does all of its work. Exits with status 1 if one costs more time of the main thread than `MOST_MS`, or
 * more memory than `MOST_BYTES`.
 */
const REQUESTS = Number(process.env['BENCH_REQUESTS'] ?? 16);
/** The figure of a request is that of the batch that other work on the machine disturbed least. */
const BATCHES = IS_QUICK ? 1 : 9;
const WARM_UP = 10;
/** Measures only the requests of which the route and the description match this expression. */
const ROUTES = new RegExp(process.env['BENCH_ROUTES'] ?? '');
/** Connections that are held open to measure the memory of one, some from each address: more large bodies would be refused. */
const HELD = 56;
const HELD_PER_ADDRESS = 7;
/** How many requests that arrive slowly are sent at the same time, from as many addresses. */
const SLOW_REQUESTS = 14;
const MOST_MS = 5;
/** Of a request, with what the system of buffers adds to a body of 1 MiB. */
const MOST_BYTES = 1.1 * 1024 * 1024;
/** How long the connections that are held have to send their bytes, ms. */
const SENDING_MS = 3_000;
/** By how much the memory of all of them may still grow when it is measured, bytes, and how often it is measured until then. */
const SETTLED_BYTES = 64 * 1024;
const MOST_CHECKS = 20;
const SECRETS: Readonly<Record<string, () => string | undefined>> = {
  stripe: () => `whsec_${crypto.randomUUID()}`,
  superwall: () => `whsec_${Buffer.from(crypto.randomUUID()).toString('base64')}`,
  adapty: () => undefined,
};

/** What the sending thread is asked to do with a case, by its index. */
type Task =
  | { readonly kind: 'send'; readonly index: number; readonly count: number }
  | { readonly kind: 'hold'; readonly index: number; readonly unfinished: boolean }
  | { readonly kind: 'answered' }
  | { readonly kind: 'release' };

/** Sends a request on a kept connection. Returns the status. */
async function send(
  url: string,
  agent: Agent,
  { method, path: at, headers, body }: SentRequest,
): Promise<number> {
  const { hostname, port } = new URL(url);
  return await new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path: at, method, headers, agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject);
    sent.end(body ?? undefined);
  });
}

/** What became of requests: the last status, and how many responses there were. */
interface Outcome {
  readonly status: number;
  readonly responses: number;
}

const isSlow = (delivery: Delivery) => delivery.startsWith('slowly');

/** The address of this machine that the nth of several connections comes from. */
const addressOf = (nth: number) => `127.0.0.${2 + Math.floor(nth / HELD_PER_ADDRESS)}`;

/** Opens the nth of several connections. */
function openNth(url: string, nth: number): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress: addressOf(nth) });
  return socket.on('error', () => {});
}

/** Writes bytes to a new connection, and reads until there are as many responses, or until the connection closes. */
async function exchange(
  url: string,
  pieces: Iterable<Buffer>,
  responses: number,
  { nth = 0, gapMs = 0 } = {},
): Promise<Outcome> {
  const socket = openNth(url, nth).setNoDelay(true);
  let [status, seen, isClosed, tail] = [0, 0, false, ''];
  const ended = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve();
    });
    socket.on('data', (bytes: Buffer) => {
      const text = tail + bytes.toString('latin1');
      const found = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)];
      seen += found.length;
      status = Number(found.at(-1)?.[1] ?? status);
      tail = text.slice(-12).replace(/^.*HTTP\/1\.1 \d+ /s, '');
      if (seen >= responses) resolve();
    });
  });
  for (const piece of pieces) {
    if (isClosed) break;
    socket.write(piece);
    await (gapMs > 0 ? sleep(gapMs) : new Promise((resolve) => setImmediate(resolve)));
  }
  await ended;
  socket.destroy();
  return { status, responses: Math.max(1, seen) };
}

/** Sends a request as its case says. */
async function deliver(
  url: string,
  agent: Agent,
  { delivery, request: build }: WorstCase,
  target: Target,
  nth = 0,
): Promise<Outcome> {
  const sent = build(target);
  if (isInPackets(delivery)) {
    const { pieces, gapMs } = packetsOf(delivery, sent);
    return await exchange(url, pieces, 1, { nth, gapMs });
  }
  switch (delivery) {
    case 'at once':
      return { status: await send(url, agent, sent), responses: 1 };
    case 'in chunks of one byte':
      return await exchange(url, [chunkedBytesOf(sent)], 1);
    case 'a byte per packet':
      return await exchange(url, bytePackets(sent), 1);
    case 'the head too in a byte per packet':
      return await exchange(url, headPackets(sent), 1);
    case 'in chunks with long extensions':
      return await exchange(url, [extendedBytesOf(sent)], 1);
    case 'with long trailers':
      return await exchange(url, [trailedBytesOf(sent)], 1);
    case 'as many as fit into 64 KiB': {
      const { bytes, count } = packetOf(sent);
      return await exchange(url, [bytes], count);
    }
    case 'without its end': {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      await new Promise((resolve) => socket.write(unfinishedBytesOf(delivery, sent), resolve));
      socket.destroy();
      return { status: 0, responses: 1 };
    }
  }
}

/** Opens connections that send all but the end of a request, or all of it, and read nothing. */
async function hold(url: string, worst: WorstCase, target: Target, unfinished: boolean): Promise<Socket[]> {
  const sent = worst.request(target);
  const bytes = unfinished ? unfinishedBytesOf(worst.delivery, sent) : bytesOf(sent);
  const sockets = Array.from({ length: HELD }, (_, nth) => openNth(url, nth).pause());
  // A body that is refused is not read to its end.
  const sentAll = sockets.map(async (socket) => {
    await new Promise((resolve) => {
      socket.once('close', resolve);
      socket.write(bytes, resolve);
    });
  });
  await Promise.race([Promise.all(sentAll), sleep(SENDING_MS)]);
  return sockets;
}

function caseOf(index: number): WorstCase {
  const found = WORST_CASES[index];
  if (found === undefined) throw new Error(`no case ${index}`);
  return found;
}

/** The sending thread: it has an event loop of its own, so that only the service is measured. */
function startSending(target: Target): void {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let held: Socket[] = [];
  const nothing: Outcome = { status: 0, responses: 0 };
  const run = async (task: Task): Promise<Outcome> => {
    switch (task.kind) {
      case 'send': {
        let [status, responses] = [0, 0];
        const worst = caseOf(task.index);
        if (isSlow(worst.delivery)) {
          const outcomes = await Promise.all(
            Array.from({ length: SLOW_REQUESTS }, async (_, nth) =>
              deliver(target.url, agent, worst, target, nth),
            ),
          );
          return { status: Math.max(...outcomes.map((one) => one.status)), responses: SLOW_REQUESTS };
        }
        for (let nth = 0; nth < task.count; nth += 1) {
          const outcome = await deliver(target.url, agent, worst, target);
          status = outcome.status;
          responses += outcome.responses;
        }
        return { status, responses };
      }
      case 'hold':
        held = await hold(target.url, caseOf(task.index), target, task.unfinished);
        return nothing;
      case 'answered':
        return {
          status: 0,
          responses: held.filter(({ bytesRead, closed }) => bytesRead > 0 || closed).length,
        };
      case 'release':
        for (const socket of held) socket.destroy();
        held = [];
        return nothing;
    }
  };
  parentPort?.on('message', (task: Task) => {
    run(task).then(
      (outcome) => parentPort?.postMessage(outcome),
      (error: unknown) => parentPort?.postMessage(String(error)),
    );
  });
}

/** Returns the processor time of the main thread, ms. It does not count waiting for a busy machine. */
function mainThreadMs(): number {
  const [running = '0'] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return Number(running) / 1e6;
}

async function memoryBytes(): Promise<number> {
  await sleep(50);
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Returns the memory once it has stopped to grow: on a busy machine, bytes arrive late. */
async function settledBytes(): Promise<number> {
  let [before, bytes] = [0, await memoryBytes()];
  for (let nth = 0; nth < MOST_CHECKS && bytes > before + SETTLED_BYTES; nth += 1) {
    await sleep(300);
    [before, bytes] = [bytes, await memoryBytes()];
  }
  return bytes;
}

function kib(bytes: number): string {
  return (bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0);
}

interface Figures {
  readonly status: number;
  readonly cpuMs: number;
  readonly loopMs: number;
  readonly unfinishedBytes: number;
  readonly unreadBytes: number;
  readonly databaseBytes: number;
}

async function main(): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
  const port = await freePort();
  const { service, stop } = await runServer(
    readConfig({
      LOG_LEVEL: 'silent',
      DATA_DIR: dataDir,
      PORT: String(port),
      RATES_URL: 'off',
      // A passkey needs a host name.
      PUBLIC_URL: `http://localhost:${port}`,
      ...Object.fromEntries(
        ['ADDRESS', 'ACCOUNT', 'SDK', 'CLICKS', 'IDENTIFY', 'REFUSALS', 'SIGN_IN', 'FAILURES'].map((name) => [
          `RATE_LIMIT_${name}`,
          '0',
        ]),
      ),
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  const account = await createAccount(service.sql, 'Bench');
  const { key } = await createAccountKey(service.sql, account.id, ['read', 'write', 'setup']);
  const call = async (method: string, route: string, body: object): Promise<Record<string, string>> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(url + route, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${route}: ${await response.text()}`);
    return (await response.json()) as Record<string, string>;
  };
  const { id: appId = '', sdkKey = '', linkSubdomain = '' } = await call('POST', '/apps', { name: 'Bench' });
  for (const [provider, newSecret] of Object.entries(SECRETS)) {
    for (let nth = 0; nth < 3; nth += 1)
      await call('PUT', `/apps/${appId}/webhooks/${provider}/secret`, { secret: newSecret() });
  }
  const { id: affiliateId } = await call('POST', `/apps/${appId}/affiliates`, { name: 'Creator' });
  const slug = 'worst';
  await call('POST', `/apps/${appId}/links`, { affiliateId, slug, destinationUrl: 'https://example.com' });

  const target: Target = { url, appId, slug, linkSubdomain, sdkKey };
  const worker = new Worker(new URL(import.meta.url), { workerData: target });
  const ask = async (task: Task): Promise<Outcome> => {
    const answer = new Promise<Outcome | string>((resolve) => void worker.once('message', resolve));
    worker.postMessage(task);
    const result = await answer;
    if (typeof result === 'string') throw new Error(result);
    return result;
  };
  const databaseBytes = async () => {
    const row = await service.sql.one<{ bytes: number }>`
      select sum(pg_total_relation_size(oid))::bigint as bytes from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
    return row.bytes;
  };
  const held = async (index: number, unfinished: boolean) => {
    const before = await memoryBytes();
    await ask({ kind: 'hold', index, unfinished });
    await sleep(300);
    const bytes = (await settledBytes()) - before;
    // Those that have their response wait for nothing.
    const { responses: answered } = await ask({ kind: 'answered' });
    await ask({ kind: 'release' });
    await sleep(100);
    const waiting = unfinished && answered < HELD ? HELD - answered : HELD;
    return Math.max(0, bytes / waiting);
  };

  // What the service does without requests.
  await ask({ kind: 'send', index: 0, count: WARM_UP });
  const idleFrom = [performance.now(), mainThreadMs()] as const;
  const idleLoop = performance.eventLoopUtilization();
  await sleep(1_500);
  const idleCpu = (mainThreadMs() - idleFrom[1]) / (performance.now() - idleFrom[0]);
  const idleUse = performance.eventLoopUtilization(idleLoop).utilization;

  const measure = async (index: number): Promise<Figures> => {
    const { route, delivery } = caseOf(index);
    // A packet of pipelined requests is hundreds of them.
    const isPacket = delivery === 'as many as fit into 64 KiB';
    const [count, batches] =
      isPacket || isSlow(delivery)
        ? [1, Math.min(BATCHES, 3)]
        : [REQUESTS, delivery === 'at once' ? BATCHES : Math.min(BATCHES, 5)];
    await ask({ kind: 'send', index, count: isPacket || isSlow(delivery) ? 1 : WARM_UP });
    await service.sql`select 1`;
    const bytesBefore = await databaseBytes();
    globalThis.gc?.();
    let [status, cpuMs, loopMs, all] = [0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
    for (let batch = 0; batch < batches; batch += 1) {
      const [from, cpu] = [performance.now(), mainThreadMs()];
      const loop = performance.eventLoopUtilization();
      const outcome = await ask({ kind: 'send', index, count });
      status = outcome.status;
      all += outcome.responses;
      const elapsed = performance.now() - from;
      cpuMs = Math.min(cpuMs, (mainThreadMs() - cpu - idleCpu * elapsed) / outcome.responses);
      const { active } = performance.eventLoopUtilization(loop);
      loopMs = Math.min(loopMs, (active - idleUse * elapsed) / outcome.responses);
    }
    return {
      status,
      cpuMs: Math.max(0, cpuMs),
      loopMs: Math.max(0, loopMs),
      databaseBytes: ((await databaseBytes()) - bytesBefore) / all,
      unfinishedBytes: await held(index, true),
      // The other responses are small.
      unreadBytes: route.startsWith('GET') && delivery === 'at once' ? await held(index, false) : 0,
    };
  };

  process.stdout.write(`${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}\n\n`);
  process.stdout.write(
    '| Route | Worst request | Status | CPU, ms | Event loop, ms | Memory while it arrives, KiB | Memory while the response is not read, KiB | Stored, bytes | Within 5 ms and 1 MiB |\n' +
      '|---|---|---|---|---|---|---|---|---|\n',
  );
  let [worst, worstBytes] = [0, 0];
  for (const [index, { route, what, mostMs = MOST_MS }] of WORST_CASES.entries()) {
    if (!ROUTES.test(`${route} ${what}`)) continue;
    const figures = await measure(index);
    worst = Math.max(worst, figures.cpuMs - (mostMs - MOST_MS));
    const bytes = Math.max(figures.unfinishedBytes, figures.unreadBytes);
    worstBytes = Math.max(worstBytes, bytes);
    const isWithin = figures.cpuMs <= mostMs && bytes <= MOST_BYTES;
    process.stdout.write(
      `| \`${route}\` | ${what} | ${figures.status} | ${figures.cpuMs.toFixed(2)} | ${figures.loopMs.toFixed(2)} | ` +
        `${kib(figures.unfinishedBytes)} | ${kib(figures.unreadBytes)} | ${Math.round(figures.databaseBytes)} | ${isWithin ? 'yes' : '**no**'} |\n`,
    );
  }
  report({
    path: 'the worst request without a key',
    comparedWith: '',
    measured: `${worst.toFixed(1)} ms of processor time, ${kib(worstBytes)} KiB of memory`,
    target: `at most ${MOST_MS} ms and ${kib(MOST_BYTES)} KiB`,
    isReached: worst <= MOST_MS && worstBytes <= MOST_BYTES,
  });
  await worker.terminate();
  await stop();
  await rm(dataDir, { recursive: true, force: true });
  process.exit((worst > MOST_MS || worstBytes > MOST_BYTES) && !IS_QUICK ? 1 : 0);
}

if (isMainThread) await main();
else startSending(workerData as Target);
