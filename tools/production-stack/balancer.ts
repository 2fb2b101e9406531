import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTo } from 'node:net';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { projectRoot } from '../../src/config/project-root.ts';
import { tryListen } from '../../src/embedded/processes.ts';
import { eventually } from '../../test/support/eventually.ts';
import { environmentOf } from '../compose.ts';
import type { Variables } from '../compose.ts';
import { startNameServer } from '../name-server.ts';
import { say } from '../run-tool.ts';
import { startHaproxy } from './haproxy.ts';
import type { Stops } from './haproxy.ts';
import { isReady, send } from './http.ts';

const CONFIGURATION = path.join(projectRoot, 'deploy/haproxy/haproxy.cfg');

/** The limits of the balancer here, and an address to which they do not apply. */
export const BALANCER_LIMITS = { connectionsPerAddress: 60, proxyAddress: '127.0.0.10' } as const;

export interface BalancerOptions {
  /** The addresses of the processes behind it, asked for by name again and again. */
  readonly hosts: () => string[];
  readonly servicePort: number;
  readonly variables: Variables;
  readonly logFile: string;
  readonly stops: Stops;
}

/** Starts HAProxy with the configuration of the deployment. Returns its port. */
export async function startBalancer({
  hosts,
  servicePort,
  variables,
  logFile,
  stops,
}: BalancerOptions): Promise<number> {
  const names = await startNameServer((name) => (name === 'tributary' ? hosts() : []));
  stops.push(async () => names.close());
  const port = await tryListen(0);
  const environment = {
    ...environmentOf('balancer', variables),
    LISTEN: `127.0.0.1:${port}`,
    SERVICE_PORT: String(servicePort),
    DNS_SERVER: names.address,
  };
  await startHaproxy(CONFIGURATION, environment, logFile, stops);
  return port;
}

/** Checks that one address cannot take all connections of the balancer, and that a connection has one request at a time. */
export async function checkConnections(port: number): Promise<void> {
  const base = `http://127.0.0.1:${port}`;
  const { connectionsPerAddress, proxyAddress } = BALANCER_LIMITS;
  const closedOf = async (localAddress: string) => {
    const sockets = Array.from({ length: connectionsPerAddress + 20 }, () =>
      connectTo({ host: '127.0.0.1', port, localAddress }).on('error', () => {}),
    );
    await sleep(1_500);
    const closed = sockets.filter((socket) => socket.closed).length;
    const served = await isReady(base);
    for (const socket of sockets) socket.destroy();
    return { closed, served };
  };
  for (const [address, closed] of [
    ['127.0.0.9', 20],
    [proxyAddress, 0],
  ] as const) {
    const found = await closedOf(address);
    if (found.closed !== closed || !found.served)
      throw new Error(`connections of ${address}: ${JSON.stringify(found)} instead of ${closed} closed`);
  }
  say('The balancer limits the connections of an address, and not those of a trusted proxy');
  const speaksHttp2 = await new Promise<boolean>((resolve) => {
    const client = connectHttp2(base).on('error', () => {});
    client
      .request({ ':path': '/healthz' })
      .on('error', () => {})
      .on('response', () => {
        resolve(true);
        client.destroy();
      });
    client.on('close', () => resolve(false));
  });
  if (speaksHttp2) throw new Error('the balancer speaks HTTP/2, so that a connection has a hundred requests');
  say('A connection of the balancer has one request at a time');
}

/** What the balancer has passed on. */
interface PassedOn {
  readonly headers: Readonly<Record<string, string>>;
  readonly parts: number;
}

/** Starts a server that answers with what it received, behind the balancer. Returns its port. */
async function startEcho(stops: Stops): Promise<number> {
  const server = createServer((incoming, response) => {
    let parts = 0;
    incoming.on('data', () => (parts += 1));
    incoming.on('end', () => response.end(JSON.stringify({ headers: incoming.headers, parts })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const CLIENT_HEADERS = [
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-real-ip',
  'forwarded',
];
const BODY_BYTES = 2_000;
/** A body in chunks of a byte would be as many parts as bytes without the balancer. */
const MOST_PARTS = 10;

/** Checks what a balancer passes on of headers that a client chooses, and of a body in chunks of a byte. */
export async function checkPassedOn(options: Omit<BalancerOptions, 'hosts' | 'servicePort'>): Promise<void> {
  const servicePort = await startEcho(options.stops);
  const balancerPort = await startBalancer({ ...options, hosts: () => ['127.0.0.1'], servicePort });
  const base = `http://127.0.0.1:${balancerPort}`;
  await eventually(
    'the balancer passes requests on',
    async () =>
      await send(base, 'GET', '/').then(
        ({ status }) => status === 200,
        () => false,
      ),
  );
  const answer = await new Promise<string>((resolve, reject) => {
    const headers = Object.fromEntries(CLIENT_HEADERS.map((name) => [name, 'other.example']));
    const sent = request(
      { port: balancerPort, host: '127.0.0.1', method: 'POST', path: '/clicks', headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('end', () => resolve(text));
      },
    ).on('error', reject);
    sent.setNoDelay(true);
    const write = (left: number) => {
      if (left === 0) sent.end();
      else sent.write('x', () => write(left - 1));
    };
    write(BODY_BYTES);
  });
  const { headers, parts } = JSON.parse(answer) as PassedOn;
  const passed = CLIENT_HEADERS.filter((name) => headers[name] !== undefined);
  if (passed.length > 0) throw new Error(`the balancer passes on ${passed.join(', ')}`);
  if (headers['x-forwarded-for'] !== '127.0.0.1')
    throw new Error(`the balancer says that the client is ${headers['x-forwarded-for']}`);
  if (parts > MOST_PARTS) throw new Error(`a body of ${BODY_BYTES} bytes arrives in ${parts} parts`);
  say(
    'The balancer passes no header of a client about hosts on, and a body in chunks of a byte in few parts',
  );
}
