import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { SERVER_LIMITS, startHttpServer } from '../../src/http-server.ts';
import type { HttpServer, ServerLimits } from '../../src/http-server.ts';
import { eventually } from '../support/eventually.ts';

let server: HttpServer | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.stop();
  server = undefined;
});

/** Starts a server that reads the body of a request and then responds. */
async function start(limits: Partial<ServerLimits>): Promise<void> {
  server = await startHttpServer(
    '127.0.0.1',
    0,
    () => (request, response) => {
      request.resume().once('end', () => response.end('done'));
    },
    { ...SERVER_LIMITS, ...limits },
  );
}

/** Opens a connection and sends a text. */
async function open(text: string): Promise<Socket> {
  const socket = connect(Number(new URL(server?.url ?? '').port), '127.0.0.1');
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  sockets.push(socket);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Returns everything that a connection receives until it ends. */
async function received(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  if (!socket.closed) await once(socket, 'close');
  return text;
}

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\n';

// @promise slow-request-408
test.each([
  ['headers', HEAD],
  ['body', `${HEAD}Content-Length: 1000000\r\n\r\n${'x'.repeat(999_999)}`],
])('a request whose %s are not complete in time is cut off', async (_, text) => {
  await start({ headersTimeoutMs: 100, requestTimeoutMs: 200, checkEveryMs: 50 });
  const begin = performance.now();
  await received(await open(text));
  expect(performance.now() - begin).toBeLessThan(2_000);
});

test('a request is answered although another one on the server is slow', async () => {
  await start({ headersTimeoutMs: 500, requestTimeoutMs: 1_000, checkEveryMs: 50 });
  await open(HEAD);
  const response = await received(await open(`${HEAD}Connection: close\r\nContent-Length: 0\r\n\r\n`));
  expect(response).toMatch(/^HTTP\/1.1 200 /);
});

// @promise connection-limits
test('a connection beyond the limit of the server is closed, and one that ends makes room', async () => {
  await start({ connections: 3, connectionsPerAddress: 3 });
  const held = [await open(HEAD), await open(HEAD), await open(HEAD)];
  expect(await received(await open(HEAD))).toBe('');
  held[0]?.destroy();
  const request = `${HEAD}Connection: close\r\nContent-Length: 0\r\n\r\n`;
  await eventually('the next one is answered', async () =>
    (await received(await open(request))).startsWith('HTTP/1.1 200 '),
  );
});

// @promise connection-limits
test('an address beyond its share of the connections is refused while the server has room for others', async () => {
  await start({ connections: 10, connectionsPerAddress: 2 });
  await open(HEAD);
  await open(HEAD);
  expect(await received(await open(HEAD))).toBe('');
});

test('the defaults cut off slow requests within a minute and leave webhooks time to be sent', () => {
  expect(SERVER_LIMITS.headersTimeoutMs).toBeLessThanOrEqual(15_000);
  expect(SERVER_LIMITS.requestTimeoutMs).toBeLessThanOrEqual(45_000);
  expect(SERVER_LIMITS.requestTimeoutMs).toBeGreaterThanOrEqual(10_000);
});
