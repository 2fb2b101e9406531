import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { freePort, isListening } from '../../src/embedded/processes.ts';
import { eventually } from '../support/eventually.ts';

const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin`;
const isInstalled = spawnSync('haproxy', ['-v'], { env: { PATH } }).status === 0;

const APP = 'app_01h455vb4pex5vsknk084sn02q';
const LIMIT = 20;
const PROXY = '127.0.0.10';

let folder: string | undefined;
let cell: Server | undefined;
let router: ChildProcess | undefined;
let port = 0;
const sockets: Socket[] = [];

beforeAll(async () => {
  if (!isInstalled) return;
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-router-'));
  cell = createServer((_request, response) => response.end('of the cell')).listen(0, '127.0.0.1');
  await once(cell, 'listening');
  const map = path.join(folder, 'cells.map');
  await writeFile(map, `${APP} cell-1\n`);
  port = await freePort();
  const address = `127.0.0.1:${(cell.address() as AddressInfo).port}`;
  router = spawn('haproxy', ['-db', '-f', path.join(projectRoot, 'deploy/haproxy/cells.cfg')], {
    env: {
      PATH,
      LISTEN: `127.0.0.1:${port}`,
      CELL_MAP: map,
      CELL_1: address,
      CELL_2: address,
      MAX_CONNECTIONS_PER_ADDRESS: String(LIMIT),
      TRUSTED_PROXIES: `10.0.0.0/8 ${PROXY}`,
    },
    stdio: 'ignore',
  });
  await eventually('the router listens', async () => await isListening(port), 10_000);
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  router?.kill('SIGKILL');
  cell?.closeAllConnections();
  cell?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Opens connections from an address, each with half a head. Returns how many the router keeps. */
async function keptOf(localAddress: string): Promise<number> {
  const opened = Array.from({ length: LIMIT + 15 }, () => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => {});
    socket.write('GET /apps HTTP/1.1\r\n');
    // A connection that nobody reads does not notice its end.
    return socket.resume();
  });
  sockets.push(...opened);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  return opened.filter(({ closed }) => !closed).length;
}

// @promise router-connections
test('the router in front of cells limits the connections of an address, and not those of a proxy', async () => {
  if (!isInstalled) {
    process.stderr.write('haproxy is not installed: the router is not tested.\n');
    return;
  }
  expect(await keptOf('127.0.0.9')).toBe(LIMIT);
  expect(await keptOf(PROXY)).toBe(LIMIT + 15);
  const passed = await fetch(`http://127.0.0.1:${port}/apps/${APP}`);
  expect([passed.status, await passed.text()]).toEqual([200, 'of the cell']);
});

test('a request to the router whose body does not arrive in time gets a problem document', async () => {
  if (!isInstalled) return;
  const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.8' });
  sockets.push(socket);
  const head = [`POST /webhooks/stripe/${APP} HTTP/1.1`, 'host: example.com', 'content-length: 100', ''];
  socket.write(`${head.join('\r\n')}\r\nhalf`);
  let text = '';
  for await (const part of socket) text += String(part);
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(text).toContain('content-type: application/problem+json');
  expect(text).toContain('"code": "request_timeout"');
});
