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
/** Measures only the routes that match this expression. */
const ROUTES = new RegExp(process.env['BENCH_ROUTES'] ?? '');
/** Connections that are held open to measure the memory of one. */
const HELD = 100;
const MOST_MS = 5;
/** Of a request, with what the system of buffers adds to a body of 1 MiB. */
const MOST_BYTES = 1.1 * 1024 * 1024;
const PACKET_BYTES = 64 * 1024;
/** How many chunks of one byte a request sends that is not complete. */
const UNFINISHED_CHUNKS = 120;
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

/** Returns the head of a request. */
function headOf({ method, path: at, headers }: SentRequest, more: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ host: 'x', ...headers, ...more }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return `${method} ${at} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Returns the bytes of a request. */
function bytesOf(sent: SentRequest): Buffer {
  const { body } = sent;
  const length = body === null ? {} : { 'content-length': String(body.length) };
  return Buffer.concat([Buffer.from(headOf(sent, length)), body ?? Buffer.alloc(0)]);
}

const oneByteChunks = (body: Buffer) =>
  Buffer.concat(Array.from(body, (byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a])));

/** Returns a request in chunks of one byte, with the final chunk. */
function chunkedBytesOf(sent: SentRequest): Buffer {
  const head = headOf(sent, { 'transfer-encoding': 'chunked' });
  return Buffer.concat([
    Buffer.from(head),
    oneByteChunks(sent.body ?? Buffer.alloc(0)),
    Buffer.from('0\r\n\r\n'),
  ]);
}

/** Returns a request in ten chunks whose extensions are as long as the parser reads. */
function extendedBytesOf(sent: SentRequest): Buffer {
  const chunk = `1;${'a=b;'.repeat(400)}\r\n \r\n`;
  return Buffer.from(`${headOf(sent, { 'transfer-encoding': 'chunked' })}${chunk.repeat(10)}0\r\n\r\n`);
}

/** Returns a request with an empty body and as many trailers as the parser reads. */
function trailedBytesOf(sent: SentRequest): Buffer {
  const trailers = 'a:b\r\n'.repeat(3_000);
  return Buffer.from(`${headOf(sent, { 'transfer-encoding': 'chunked' })}2\r\n{}\r\n0\r\n${trailers}\r\n`);
}

/** Returns as many short requests of a route as fit into one read of a connection, and how many they are. */
function packetOf(sent: SentRequest): { readonly bytes: Buffer; readonly count: number } {
  const { 'user-agent': _agent, ...headers } = sent.headers;
  const host = (headers['host'] ?? 'x').length > 100 ? 'x' : headers['host'];
  const [at = ''] = sent.path.split('?');
  const authorization = (headers['authorization'] ?? '').length > 1_000 ? { authorization: 'Bearer x' } : {};
  const one = bytesOf({
    ...sent,
    path: at.slice(0, 200),
    headers: { ...headers, ...authorization, ...(host === undefined ? {} : { host }) },
    body: sent.body === null ? null : Buffer.from('{}'),
  });
  const count = Math.max(1, Math.floor(PACKET_BYTES / one.length));
  return { bytes: Buffer.concat(Array.from({ length: count }, () => one)), count };
}

/** What became of requests: the last status, and how many responses there were. */
interface Outcome {
  readonly status: number;
  readonly responses: number;
}

/** Writes bytes to a new connection, and reads until there are as many responses, or until the connection closes. */
async function exchange(url: string, pieces: Iterable<Buffer>, responses: number): Promise<Outcome> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setNoDelay(true);
  socket.on('error', () => {});
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
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  socket.destroy();
  return { status, responses: Math.max(1, seen) };
}

/** Returns the pieces of a request, each of which is a packet: the head, then its body byte by byte. */
function* bytePackets(sent: SentRequest): Generator<Buffer> {
  const body = sent.body ?? Buffer.alloc(0);
  yield Buffer.from(headOf(sent, { 'content-length': String(body.length) }));
  for (let at = 0; at < body.length; at += 1) yield body.subarray(at, at + 1);
}

/** Returns the packets of a head of which each has one byte. */
function* headPackets(sent: SentRequest): Generator<Buffer> {
  for (const byte of headOf(sent, {})) yield Buffer.from(byte);
}

/** Sends a request as its case says. */
async function deliver(
  url: string,
  agent: Agent,
  { delivery, request: build }: WorstCase,
  target: Target,
): Promise<Outcome> {
  const sent = build(target);
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

/** Returns the bytes of a request that lacks its end, so that the service waits for the rest. */
function unfinishedBytesOf(delivery: Delivery, sent: SentRequest): Buffer {
  switch (delivery) {
    case 'at once':
    case 'a byte per packet':
    case 'the head too in a byte per packet':
      return bytesOf(sent).subarray(0, -1);
    case 'in chunks with long extensions':
      return extendedBytesOf(sent).subarray(0, -5);
    case 'with long trailers':
      return trailedBytesOf(sent).subarray(0, -2);
    case 'in chunks of one byte':
      return chunkedBytesOf({
        ...sent,
        body: (sent.body ?? Buffer.alloc(0)).subarray(0, UNFINISHED_CHUNKS),
      }).subarray(0, -5);
    case 'as many as fit into 64 KiB':
      return packetOf(sent).bytes;
    case 'without its end':
      return Buffer.from(`${sent.method} /${'x'.repeat(15 * 1024)}`);
  }
}

/** Opens connections that send all but the end of a request, or all of it, and read nothing. */
async function hold(url: string, worst: WorstCase, target: Target, unfinished: boolean): Promise<Socket[]> {
  const sent = worst.request(target);
  const bytes = unfinished ? unfinishedBytesOf(worst.delivery, sent) : bytesOf(sent);
  const { hostname, port } = new URL(url);
  return await Promise.all(
    Array.from(
      { length: HELD },
      async () =>
        await new Promise<Socket>((resolve) => {
          const socket = connect(Number(port), hostname).pause();
          socket.on('error', () => {});
          socket.write(bytes, () => resolve(socket));
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
  const nothing: Outcome = { status: 0, responses: 0 };
  const run = async (task: Task): Promise<Outcome> => {
    switch (task.kind) {
      case 'send': {
        let [status, responses] = [0, 0];
        for (let nth = 0; nth < task.count; nth += 1) {
          const outcome = await deliver(target.url, agent, caseOf(task.index), target);
          status = outcome.status;
          responses += outcome.responses;
        }
        return { status, responses };
      }
      case 'hold':
        held = await hold(target.url, caseOf(task.index), target, task.unfinished);
        return nothing;
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
        ['ADDRESS', 'ACCOUNT', 'SDK', 'CLICKS', 'IDENTIFY', 'REFUSALS', 'SIGN_IN', 'FAILURES'].map((name) => [
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
    const { route, delivery } = caseOf(index);
    // A packet of pipelined requests is hundreds of them.
    const isPacket = delivery === 'as many as fit into 64 KiB';
    const [count, batches] = isPacket
      ? [1, Math.min(BATCHES, 3)]
      : [REQUESTS, delivery === 'at once' ? BATCHES : Math.min(BATCHES, 5)];
    await ask({ kind: 'send', index, count: isPacket ? 1 : WARM_UP });
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
  for (const [index, { route, what }] of WORST_CASES.entries()) {
    if (!ROUTES.test(route)) continue;
    const figures = await measure(index);
    worst = Math.max(worst, figures.cpuMs);
    const bytes = Math.max(figures.unfinishedBytes, figures.unreadBytes);
    worstBytes = Math.max(worstBytes, bytes);
    const isWithin = figures.cpuMs <= MOST_MS && bytes <= MOST_BYTES;
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
