import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { SERVER_LIMITS, startHttpServer } from '../../src/http-server.ts';
import type { HttpServer, ServerLimits } from '../../src/http-server.ts';
import { eventually } from '../support/eventually.ts';
import { openConnection, received } from '../support/raw-http.ts';
import { shortestTime } from '../support/shortest-time.ts';

let server: HttpServer | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.stop(0);
  server = undefined;
});

/** How many requests have begun. */
let begun = 0;
/** Responds to the first request that waits. */
let release: (() => void) | undefined;

/** Starts a server that reads the body of a request and then responds. */
async function start(limits: Partial<ServerLimits>): Promise<void> {
  begun = 0;
  release = undefined;
  server = await startHttpServer(
    '127.0.0.1',
    0,
    () => (request, response) => {
      begun += 1;
      if (request.url === '/large') response.end(Buffer.alloc(20_000_000));
      else if (request.url === '/waits') release ??= () => response.end('done');
      else request.resume().once('end', () => response.end('done'));
    },
    { ...SERVER_LIMITS, ...limits },
  );
}

/** Opens a connection from an address and sends a text. */
async function open(text: string, address?: string): Promise<Socket> {
  const socket = await openConnection(server?.url ?? '', text, address);
  sockets.push(socket);
  return socket;
}

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\n';
const REQUEST = `${HEAD}Connection: close\r\nContent-Length: 0\r\n\r\n`;

// @promise slow-request-408
test.each([
  ['headers', HEAD],
  ['body', `${HEAD}Content-Length: 1000000\r\n\r\n${'x'.repeat(999_999)}`],
])('a request whose %s are not complete in time is cut off', async (_, text) => {
  await start({ headersTimeoutMs: 100, requestTimeoutMs: 200, checkEveryMs: 50 });
  const takes = await shortestTime(2_000, async () => await received(await open(text)));
  expect(takes).toBeLessThan(2_000);
});

// @promise slow-request-408
test('a client that goes on sending after the 408, and never ends its side, is cut off', async () => {
  await start({ headersTimeoutMs: 100, requestTimeoutMs: 200, checkEveryMs: 50 });
  const { hostname, port } = new URL(server?.url ?? '');
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  sockets.push(socket);
  const drip = setInterval(() => socket.write('x'), 20);
  // Bytes for a connection that is closed.
  const error = await new Promise((resolve) => socket.resume().once('error', resolve).write(HEAD));
  clearInterval(drip);
  expect(error).toMatchObject({ code: expect.stringMatching(/ECONNRESET|EPIPE/) });
});

test('a request that arrives while the process has no processor time gets 503 with Retry-After, because the caller was not slow', async () => {
  // Long enough for the response below on a busy machine.
  await start({ headersTimeoutMs: 500, requestTimeoutMs: 500, checkEveryMs: 50 });
  const socket = await open(HEAD);
  // A response on another connection shows that the server has begun to read this one.
  await received(await open(REQUEST));
  const response = received(socket);
  socket.write('Connection: close\r\nContent-Length: 0\r\n\r\n');
  const until = performance.now() + 700;
  while (performance.now() < until);
  expect(await response).toMatch(/^HTTP\/1\.1 503 [^]*\r\nRetry-After: 5\r\n/);
});

test('a request is answered although another one on the server is slow', async () => {
  await start({ checkEveryMs: 50 });
  await open(HEAD);
  const response = await received(await open(`${HEAD}Connection: close\r\nContent-Length: 0\r\n\r\n`));
  expect(response).toMatch(/^HTTP\/1.1 200 /);
});

const isAnswered = (response: string) => response.startsWith('HTTP/1.1 200 ');

// @promise connection-limits
test('beyond the limit of the server, the connection that has waited longest for a head is closed', async () => {
  await start({ connections: 3, connectionsPerAddress: 3 });
  const [first, second, third] = [await open(HEAD), await open(HEAD), await open(HEAD)];
  const closed = received(first);
  expect(isAnswered(await received(await open(REQUEST)))).toBe(true);
  expect(await closed).toBe('');
  expect([second.closed, third.closed]).toEqual([false, false]);
});

// @promise connection-limits
test('half-sent heads of four addresses that have all connections lock nobody out', async () => {
  await start({ connections: 40, connectionsPerAddress: 10 });
  for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'])
    for (let nth = 0; nth < 12; nth += 1) await open(HEAD, address);
  for (let nth = 0; nth < 5; nth += 1) expect(isAnswered(await received(await open(REQUEST)))).toBe(true);
});

// @promise connection-limits
test.each([
  ['a half-sent body', `${HEAD}Content-Length: 10\r\n\r\nhalf`],
  ['a response that is not read', 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['no request', ''],
])('connections with %s lock nobody out', async (_, text) => {
  await start({ connections: 4, connectionsPerAddress: 2 });
  for (const address of ['127.0.0.2', '127.0.0.3'])
    for (let nth = 0; nth < 2; nth += 1) await open(text, address);
  await eventually('the requests have begun', async () => text === '' || begun >= 4);
  expect(isAnswered(await received(await open(REQUEST)))).toBe(true);
});

// @promise connection-limits
test('an address beyond its share closes its own connections, and a request that is worked on goes on', async () => {
  await start({ connections: 10, connectionsPerAddress: 2 });
  const other = await open(HEAD, '127.0.0.2');
  const working = await open('GET /waits HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await eventually('the request has begun', async () => release !== undefined);
  const half = received(await open(HEAD));
  expect(isAnswered(await received(await open(REQUEST)))).toBe(true);
  expect(await half).toBe('');
  const [second, third] = [received(working), await open('GET /waits HTTP/1.1\r\nHost: x\r\n\r\n')];
  await eventually('the other request has begun', async () => begun >= 3);
  expect(await received(await open(REQUEST))).toBe('');
  release?.();
  expect(isAnswered(await second)).toBe(true);
  expect([other.closed, third.closed]).toEqual([false, false]);
});

test('the defaults cut off slow requests within a minute and leave webhooks time to be sent', () => {
  expect(SERVER_LIMITS.headersTimeoutMs).toBeLessThanOrEqual(15_000);
  expect(SERVER_LIMITS.requestTimeoutMs).toBeLessThanOrEqual(45_000);
  expect(SERVER_LIMITS.requestTimeoutMs).toBeGreaterThanOrEqual(10_000);
});
