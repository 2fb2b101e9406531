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
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { runServer } from '../../src/server.ts';
import { IS_QUICK, report } from './report.ts';
import { WORST_CASES } from './requests-without-key.ts';
import type { SentRequest, Target, WorstCase } from './requests-without-key.ts';

/**
 * `npm run bench -- worst-requests`: sends the worst request of every route without an account key to a new instance, one
 * after another in several batches, and prints what each costs. Limits of requests are off, so that every request does all of its work.
 * Exits with status 1 if one costs more of the event loop than `MOST_MS`.
 */
const REQUESTS = Number(process.env['BENCH_REQUESTS'] ?? 16);
/** The figure of a request is that of the batch that other work on the machine disturbed least. */
const BATCHES = IS_QUICK ? 1 : 9;
const WARM_UP = 10;
/** Measures only the routes that match this expression. */
const ROUTES = new RegExp(process.env['BENCH_ROUTES'] ?? '');
/** Connections that are held open to measure the memory of one. */
const HELD = 100;
const MOST_MS = 5;
const SECRETS: Readonly<Record<string, () => string | undefined>> = {
  stripe: () => `whsec_${crypto.randomUUID()}`,
  superwall: () => `whsec_${Buffer.from(crypto.randomUUID()).toString('base64')}`,
  adapty: () => undefined,
};

/** What the sending thread is asked to do with a case, by its index. */
type Task =
  | { readonly kind: 'send'; readonly index: number; readonly count: number }
  | { readonly kind: 'hold'; readonly index: number; readonly unfinished: boolean }
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

/** Returns the bytes of a request. */
function bytesOf({ method, path: at, headers, body }: SentRequest): Buffer {
  const lines = Object.entries({
    host: 'x',
    ...headers,
    ...(body === null ? {} : { 'content-length': String(body.length) }),
  }).map(([name, value]) => `${name}: ${value}`);
  return Buffer.concat([
    Buffer.from(`${method} ${at} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`),
    body ?? Buffer.alloc(0),
  ]);
}

/** Opens connections that send all but the last byte of a request, or all of it and read nothing. */
async function hold(url: string, sent: SentRequest, unfinished: boolean): Promise<Socket[]> {
  const bytes = bytesOf(sent);
  const { hostname, port } = new URL(url);
  return await Promise.all(
    Array.from(
      { length: HELD },
      async () =>
        await new Promise<Socket>((resolve) => {
          const socket = connect(Number(port), hostname).pause();
          socket.on('error', () => {});
          socket.write(unfinished ? bytes.subarray(0, -1) : bytes, () => resolve(socket));
        }),
    ),
  );
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
  const run = async (task: Task): Promise<number> => {
    switch (task.kind) {
      case 'send': {
        let status = 0;
        for (let nth = 0; nth < task.count; nth += 1)
          status = await send(target.url, agent, caseOf(task.index).request(target));
        return status;
      }
      case 'hold':
        held = await hold(target.url, caseOf(task.index).request(target), task.unfinished);
        return 0;
      case 'release':
        for (const socket of held) socket.destroy();
        held = [];
        return 0;
    }
  };
  parentPort?.on('message', (task: Task) => {
    run(task).then(
      (status) => parentPort?.postMessage(status),
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
  const { service, stop } = await runServer(
    readConfig({
      LOG_LEVEL: 'silent',
      DATA_DIR: dataDir,
      PORT: '0',
      RATES_URL: 'off',
      ...Object.fromEntries(
        ['ADDRESS', 'ACCOUNT', 'SDK', 'CLICKS', 'IDENTIFY', 'REFUSALS'].map((name) => [
          `RATE_LIMIT_${name}`,
          '0',
        ]),
      ),
    }),
  );
  const url = service.url ?? '';
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
  const ask = async (task: Task): Promise<number> => {
    const answer = new Promise<unknown>((resolve) => void worker.once('message', resolve));
    worker.postMessage(task);
    const result = await answer;
    if (typeof result !== 'number') throw new Error(String(result));
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
    const bytes = ((await memoryBytes()) - before) / HELD;
    await ask({ kind: 'release' });
    await sleep(100);
    return Math.max(0, bytes);
  };

  // What the service does without requests.
  await ask({ kind: 'send', index: 0, count: WARM_UP });
  const idleFrom = [performance.now(), mainThreadMs()] as const;
  const idleLoop = performance.eventLoopUtilization();
  await sleep(1_500);
  const idleCpu = (mainThreadMs() - idleFrom[1]) / (performance.now() - idleFrom[0]);
  const idleUse = performance.eventLoopUtilization(idleLoop).utilization;

  const measure = async (index: number): Promise<Figures> => {
    await ask({ kind: 'send', index, count: WARM_UP });
    await service.sql`select 1`;
    const bytesBefore = await databaseBytes();
    globalThis.gc?.();
    let [status, cpuMs, loopMs] = [0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const [from, cpu] = [performance.now(), mainThreadMs()];
      const loop = performance.eventLoopUtilization();
      status = await ask({ kind: 'send', index, count: REQUESTS });
      const elapsed = performance.now() - from;
      cpuMs = Math.min(cpuMs, (mainThreadMs() - cpu - idleCpu * elapsed) / REQUESTS);
      const { active } = performance.eventLoopUtilization(loop);
      loopMs = Math.min(loopMs, (active - idleUse * elapsed) / REQUESTS);
    }
    const isGet = WORST_CASES[index]?.route.startsWith('GET') ?? false;
    return {
      status,
      cpuMs: Math.max(0, cpuMs),
      loopMs: Math.max(0, loopMs),
      databaseBytes: ((await databaseBytes()) - bytesBefore) / (REQUESTS * BATCHES),
      unfinishedBytes: await held(index, true),
      // The other responses are small.
      unreadBytes: isGet ? await held(index, false) : 0,
    };
  };

  process.stdout.write(`${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}\n\n`);
  process.stdout.write(
    '| Route | Worst request | Status | CPU, ms | Event loop, ms | Memory while it arrives, KiB | Memory while the response is not read, KiB | Stored, bytes |\n' +
      '|---|---|---|---|---|---|---|---|\n',
  );
  let worst = 0;
  for (const [index, { route, what }] of WORST_CASES.entries()) {
    if (!ROUTES.test(route)) continue;
    const figures = await measure(index);
    worst = Math.max(worst, figures.cpuMs);
    process.stdout.write(
      `| \`${route}\` | ${what} | ${figures.status} | ${figures.cpuMs.toFixed(2)} | ${figures.loopMs.toFixed(2)} | ` +
        `${kib(figures.unfinishedBytes)} | ${kib(figures.unreadBytes)} | ${Math.round(figures.databaseBytes)} |\n`,
    );
  }
  report({
    path: 'the worst request without a key',
    comparedWith: '',
    measured: `${worst.toFixed(1)} ms of processor time`,
    target: `at most ${MOST_MS} ms`,
    isReached: worst <= MOST_MS,
  });
  await worker.terminate();
  await stop();
  await rm(dataDir, { recursive: true, force: true });
  process.exit(worst > MOST_MS && !IS_QUICK ? 1 : 0);
}

if (isMainThread) await main();
else startSending(workerData as Target);
