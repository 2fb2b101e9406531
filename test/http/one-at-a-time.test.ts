import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { HOUR_MS } from '../../src/domain/time.ts';
import { SERVER_LIMITS, startHttpServer } from '../../src/http-server.ts';
import type { HttpServer } from '../../src/http-server.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { serveMetrics } from '../../src/metrics.ts';
import type { Metrics } from '../../src/metrics.ts';
import { startTestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { headOf, inChunks, openConnection, received, receivedUntil } from '../support/raw-http.ts';
import { shortestTime } from '../support/shortest-time.ts';

let server: HttpServer | undefined;
const ends: (() => void)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await server?.stop(0);
  server = undefined;
});

async function start(handler: RequestListener, limits = SERVER_LIMITS): Promise<void> {
  server = await startHttpServer('127.0.0.1', 0, () => handler, limits);
}

async function open(text: string | Buffer) {
  const socket = await openConnection(server?.url ?? '', text);
  ends.push(() => socket.destroy());
  return socket;
}

/** Responds with the method, the path and the size of the body. */
const describeRequest: RequestListener = (request, response) => {
  let size = 0;
  request.on('data', (part: Buffer) => (size += part.length));
  request.once('end', () => response.end(`${request.method} ${request.url} ${size};`));
};

const get = (path: string, headers = {}) => headOf('GET', path, headers);

// @promise one-request-per-connection
test('of requests that arrive at once, the next one begins after the response to the previous one', async () => {
  let [running, most, count] = [0, 0, 0];
  await start((_request, response) => {
    running += 1;
    count += 1;
    most = Math.max(most, running);
    setImmediate(() => {
      running -= 1;
      response.end('done');
    });
  });
  const socket = await open(get('/').repeat(200) + get('/', { connection: 'close' }));
  const text = await received(socket);
  expect(text.match(/HTTP\/1.1 200 /g)).toHaveLength(201);
  expect({ most, count }).toEqual({ most: 1, count: 201 });
});

// @promise one-request-per-connection
test('requests behind responses that nobody reads are not worked on, and other connections are served', async () => {
  let count = 0;
  const large = Buffer.alloc(256 * 1024);
  await start((request, response) => {
    count += 1;
    response.end(request.url === '/small' ? 'done' : large);
  });
  await open(get('/').repeat(2_407));
  const begun = async () => {
    const before = count;
    expect(await received(await open(get('/small', { connection: 'close' })))).toContain('done');
    return count - before;
  };
  // Only the request that asks: the other connection has filled the buffers of the system.
  await eventually('no further request begins', async () => (await begun()) === 1 && (await begun()) === 1);
  expect(count).toBeLessThan(1_000);
});

// @promise one-request-per-connection
test('the first 429 of a connection ends it, and what was sent behind it is not worked on', async () => {
  let requests = 0;
  const api = await startTestApi({
    rateLimits: createRateLimits({ ...NO_RATE_LIMITS, address: 3 }),
    observeRequest: () => (requests += 1),
  });
  const text = await received(await openConnection(api.url, get('/nowhere').repeat(2_407)));
  expect(text.match(/HTTP\/1.1 \d+/g)?.map((line) => line.slice(9))).toEqual(['404', '404', '404', '429']);
  expect(requests).toBe(4);
  await api.close();
});

test('a stop waits until a response is sent, and closes connections that only wait for a request', async () => {
  const size = 20_000_000;
  await start((request, response) => {
    response.end(request.url === '/large' ? Buffer.alloc(size) : 'done');
  });
  const [idle, reader] = [await open(get('/small')), await open('')];
  await receivedUntil(idle, 'done');
  const closed = received(idle);
  reader.write(get('/large'));
  const [first] = (await once(reader, 'data')) as [Buffer];
  reader.pause();
  let isStopped = false;
  const stopped = server?.stop(0).then(() => (isStopped = true));
  await closed;
  expect(isStopped).toBe(false);
  const rest = received(reader.resume());
  await stopped;
  expect(first.length + (await rest).length).toBeGreaterThan(size);
}, 20_000);

test('a clock that is set during a stop cuts no request off', async () => {
  const waiting = new Map<string | undefined, () => void>();
  await start((request, response) => {
    if (request.url === '/idle') response.end('done');
    else waiting.set(request.url, () => response.end('done'));
  });
  const idle = await open(get('/idle'));
  await receivedUntil(idle, 'done');
  const responses = ['/first', '/second'].map(async (path) => await received(await open(get(path))));
  await eventually('both have begun', async () => await Promise.resolve(waiting.size === 2));
  const { now } = Date;
  const stopped = server?.stop(0);
  try {
    // The stop has begun.
    await received(idle);
    Date.now = () => now() + HOUR_MS;
    waiting.get('/first')?.();
    // The stop has looked at its connections again, and closed that of the first one.
    expect(await responses[0]).toContain('done');
    waiting.get('/second')?.();
    expect(await responses[1]).toContain('done');
  } finally {
    Date.now = now;
    await stopped;
  }
});

test('the port of the metrics also works on one request of a connection at a time', async () => {
  let [running, most] = [0, 0];
  const metrics = {
    contentType: 'text/plain',
    text: async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return 'metrics';
    },
  } as unknown as Metrics;
  const { url, stop } = await serveMetrics(metrics, '127.0.0.1', 0);
  const requests = get('/metrics').repeat(20) + get('/metrics', { connection: 'close' });
  const text = await received(await openConnection(url, requests));
  expect({ most, responses: text.match(/HTTP\/1.1 200 /g)?.length }).toEqual({ most: 1, responses: 21 });
  await stop();
});

test('requests are the same however their bytes are cut', async () => {
  await start(describeRequest);
  const chunked = headOf('POST', '/chunked', { 'transfer-encoding': 'chunked' });
  const body = Buffer.from('a\n\nb\r\n\r\nc0\r\n\r\nGET / HTTP/1.1');
  const line = 'GET / HTTP/1.1 '.repeat(20);
  const stream = Buffer.concat([
    Buffer.from(get('/first')),
    Buffer.from(headOf('POST', '/length', { 'content-length': String(body.length) })),
    body,
    Buffer.from(chunked),
    inChunks(body, 5),
    Buffer.from(`\r\n${chunked}3;name=value\r\nabc\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n`),
    Buffer.from(headOf('POST', '/expect', { 'content-length': '2', expect: '100-continue' })),
    Buffer.from('{}'),
    Buffer.from(headOf('POST', '/line', { 'content-length': String(line.length) })),
    Buffer.from(line),
    Buffer.from(get('/last', { connection: 'close' })),
  ]);
  const expected = `GET /first 0;POST /length ${body.length};POST /chunked ${body.length};POST /chunked 3;POST /expect 2;POST /line ${line.length};GET /last 0;`;
  const responsesOf = async (pieceBytes: number) => {
    const socket = await open('');
    socket.setNoDelay(true);
    for (let at = 0; at < stream.length; at += pieceBytes) {
      socket.write(stream.subarray(at, at + pieceBytes));
      // The server then reads the pieces apart.
      if (pieceBytes < 20) await new Promise((resolve) => setImmediate(resolve));
    }
    return ((await received(socket)).match(/\w+ \/\w+ \d+;/g) ?? []).join('');
  };
  for (const pieceBytes of [stream.length, 1_000, 100, 33, 7, 3, 2, 1])
    expect({ pieceBytes, text: await responsesOf(pieceBytes) }).toEqual({ pieceBytes, text: expected });
});

// @promise packets-joined
test.each([
  ['in packets of 500 bytes', '', 500],
  ['in chunks of 500 bytes, a packet each', '1f4\r\n', 500],
  ['in packets of one byte', '', 1],
])('a body that arrives slowly, %s, takes about a hundred reads at most', async (_, chunk, bytes) => {
  let reads = 0;
  let size = 0;
  await start((request, response) => {
    request.socket.on('data', () => (reads += 1));
    request.on('data', (part: Buffer) => (size += part.length));
    request.once('end', () => response.end('done'));
  });
  const packets = 1_500;
  const header =
    chunk === '' ? { 'content-length': String(packets * bytes) } : { 'transfer-encoding': 'chunked' };
  const socket = await open(headOf('POST', '/', { ...header, connection: 'close' }));
  socket.setNoDelay(true);
  const packet = `${chunk}${'x'.repeat(bytes)}${chunk === '' ? '' : '\r\n'}`;
  for (let sent = 0; sent < packets; sent += 1) {
    socket.write(packet);
    // The server could then read the packets apart, most of the time.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (chunk !== '') socket.write('0\r\n\r\n');
  expect(await received(socket)).toMatch(/done$/);
  expect(size).toBe(packets * bytes);
  expect(reads).toBeLessThan(150);
});

// @promise packets-joined
test.each([
  ['line ends before a head', '\r\n', ''],
  ['a head', 'a', headOf('GET', '/').slice(0, -2)],
  ['the size of a chunk', '0', headOf('POST', '/', { 'transfer-encoding': 'chunked' })],
])(
  'a connection that sends %s in very many packets takes about a hundred reads at most',
  async (_, packet, start_) => {
    let reads = 0;
    const limits = { ...SERVER_LIMITS, headersTimeoutMs: HOUR_MS, requestTimeoutMs: HOUR_MS };
    await start(describeRequest, limits);
    let isCounted = false;
    const countReads = (message: unknown) => {
      isCounted = true;
      (message as { socket: Socket }).socket.on('data', () => (reads += 1));
    };
    subscribe('net.server.socket', countReads);
    const socket = await open(start_);
    await eventually('the connection is there', async () => await Promise.resolve(isCounted));
    unsubscribe('net.server.socket', countReads);
    socket.setNoDelay(true);
    socket.resume();
    for (let sent = 0; sent < 3_000 && !socket.closed; sent += 1) {
      socket.write(packet);
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(150);
  },
);

test('requests that follow one another in small packets do not wait', async () => {
  await start(describeRequest);
  const socket = await open('');
  let respond = () => {};
  socket.setNoDelay(true).on('data', () => respond());
  const requests = 200;
  const limitMs = requests * 5;
  // A wait takes 5 ms at least.
  const took = await shortestTime(limitMs, async () => {
    for (let sent = 0; sent < requests; sent += 1) {
      const responded = new Promise<void>((resolve) => (respond = resolve));
      socket.write(get(`/${sent}`));
      await responded;
    }
  });
  expect(took).toBeLessThan(limitMs);
});

test('a large body reaches its reader completely, with a length or in chunks', async () => {
  await start(describeRequest);
  const body = Buffer.alloc(3_000_000, 'x\n\n');
  const head = { connection: 'close', 'content-length': String(body.length) };
  expect(
    await received(await open(Buffer.concat([Buffer.from(headOf('POST', '/a', head)), body]))),
  ).toContain('POST /a 3000000;');
  const chunks = headOf('POST', '/b', { connection: 'close', 'transfer-encoding': 'chunked' });
  expect(await received(await open(Buffer.concat([Buffer.from(chunks), inChunks(body, 65_536)])))).toContain(
    'POST /b 3000000;',
  );
});

describe('a response before the end of its request', () => {
  let request: IncomingMessage | undefined;
  const respondEarly = (received_: IncomingMessage, response: ServerResponse) => {
    request = received_;
    response.end('early');
  };

  test('reaches a client that sends its whole body first, and then the connection ends', async () => {
    await start(respondEarly);
    const body = Buffer.alloc(1_500_000, 'x');
    const head = headOf('POST', '/', { 'content-length': String(body.length) });
    expect(await received(await open(Buffer.concat([Buffer.from(head), body])))).toMatch(/early$/);
  });

  test('ends a connection whose client goes on sending', async () => {
    await start(respondEarly);
    const socket = await open(headOf('POST', '/', { 'transfer-encoding': 'chunked' }));
    const chunk = inChunks(Buffer.alloc(65_536, 'x'), 65_536).subarray(0, -5);
    let isOpen = true;
    socket.on('close', () => (isOpen = false));
    socket.resume();
    await eventually('the connection is closed', async () => {
      if (isOpen) socket.write(chunk);
      return !isOpen;
    });
    expect(request?.complete).toBe(false);
  });

  test('leaves a body in chunks of one byte unparsed, except for a part that is bounded', async () => {
    let parts = 0;
    await start((received_, response) => {
      request = received_;
      received_.on('data', () => {
        parts += 1;
        if (parts === 1) setImmediate(() => response.end('early'));
        received_.pause();
      });
    });
    const chunks = inChunks(Buffer.alloc(32_768, 'x'), 1);
    const head = headOf('POST', '/', { 'transfer-encoding': 'chunked' });
    expect(await received(await open(Buffer.concat([Buffer.from(head), chunks])))).toContain('early');
    expect(parts).toBeLessThan(1_000);
    expect(request?.readableLength).toBeLessThan(100);
  });
});

test('requests that the service does not answer itself are answered one by one, and end in an orderly way', async () => {
  await start(describeRequest);
  const expecting = headOf('GET', '/', { expect: 'miracles' });
  const text = await received(await open(expecting.repeat(300) + get('/last', { connection: 'close' })));
  expect(text.match(/HTTP\/1.1 417/g)).toHaveLength(300);
  expect(text).toContain('GET /last 0;');
  expect(await received(await open('GET / HTTP/1.1\r\n\r\n'.repeat(300)))).toMatch(/^HTTP\/1.1 400 /);
  expect(await received(await open('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(300)))).toBe('');
  expect(await received(await open('GET / HTTP/1.0\r\n\r\n'.repeat(300)))).toMatch(/GET \/ 0;$/);
});

test.each([
  ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['an encoding that is no chunks at the end', 'Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n'],
  ['a chunk of a wrong size', 'Transfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n'],
])('a request with %s is refused, and what follows is not read as a request', async (_, rest) => {
  let paths: (string | undefined)[] = [];
  await start((request, response) => {
    paths = [...paths, request.url];
    describeRequest(request, response);
  });
  await received(await open(`POST /first HTTP/1.1\r\nHost: x\r\n${rest}${get('/smuggled')}`));
  expect(paths).not.toContain('/smuggled');
});

test('a request with an unknown upgrade is answered as without it', async () => {
  await start(describeRequest);
  const head = get('/', { connection: 'Upgrade', upgrade: 'websocket' });
  const socket = await open(head);
  expect(await receivedUntil(socket, ';')).toContain('GET / 0;');
});
