import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { respondToClientErrors } from './http/client-error.ts';
import { limitConnections } from './http/connection-limits.ts';
import type { ConnectionLimits } from './http/connection-limits.ts';
import { serveOneAtATime } from './http/one-at-a-time.ts';
import { listen } from './lib/listen.ts';
import { watchLoop } from './lib/loop-watch.ts';

/** New requests are accepted for this long after readiness is off: some are in flight already. */
const LINGER_MS = 400;
const DRAIN_CHECK_MS = 100;
const DRAIN_LIMIT_MS = 10_000;

/** What one process gives to connections. */
export interface ServerLimits extends ConnectionLimits {
  /** How long the headers of a request may take, also from the opening of a connection. */
  readonly headersTimeoutMs: number;
  /** How long a whole request may take to arrive. The work for it may take longer. */
  readonly requestTimeoutMs: number;
  /** How long a connection without a request stays open. */
  readonly keepAliveMs: number;
  /** How long a connection may make no progress, for example because the client does not read the response. */
  readonly stalledMs: number;
  /** How often the time limits are checked. */
  readonly checkEveryMs: number;
}

const DEFAULT_CONNECTIONS = 2_000;
/** The part of the connections that one address can hold. */
const ADDRESS_SHARE = 4;
/** Longer than balancers keep idle connections (usually 60 s), so that they do not send a request on one that is closing. */
const PROXY_KEEP_ALIVE_MS = 75_000;

export const SERVER_LIMITS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveMs: 5_000,
  stalledMs: 120_000,
  checkEveryMs: 1_000,
  connections: DEFAULT_CONNECTIONS,
  connectionsPerAddress: DEFAULT_CONNECTIONS / ADDRESS_SHARE,
};

/** Returns the limits of a process. Behind proxies, all connections come from a few addresses and are kept open longer. */
export function serverLimits(trustedProxies: number, connections = DEFAULT_CONNECTIONS): ServerLimits {
  return trustedProxies > 0
    ? { ...SERVER_LIMITS, keepAliveMs: PROXY_KEEP_ALIVE_MS, connections, connectionsPerAddress: connections }
    : { ...SERVER_LIMITS, connections, connectionsPerAddress: Math.ceil(connections / ADDRESS_SHARE) };
}

export interface HttpServer {
  /** The address that the server listens on. */
  readonly url: string;
  /** Accepts requests for `lingerMs`, then ends after those in flight; cuts off those that take longer than 10 s. */
  readonly stop: (lingerMs?: number) => Promise<void>;
}

/** Listens on a host and a port. The handler is built with the address, because port 0 stands for any free one. */
export async function startHttpServer(
  host: string,
  port: number,
  createHandler: (url: string) => RequestListener,
  limits: ServerLimits = SERVER_LIMITS,
): Promise<HttpServer> {
  const server = createLimitedServer(limits);
  const url = await listen(server, host, port, 'PORT');
  server.on('request', createHandler(url));
  return { url, stop: (lingerMs = LINGER_MS) => drain(server, lingerMs) };
}

/** Creates a server with limits of connections, and responses to what is no request. The caller adds the handler and listens. */
export function createLimitedServer(limits: ServerLimits = SERVER_LIMITS): Server {
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkEveryMs,
  });
  server.timeout = limits.stalledMs;
  // Node would drop the headers after the first thousand, also the address that a proxy adds. Their size is limited.
  server.maxHeadersCount = 0;
  limitConnections(server, limits);
  serveOneAtATime(server);
  const lateness = { lateMs: limits.checkEveryMs, everyMs: limits.checkEveryMs / 4 };
  respondToClientErrors(server, watchLoop(lateness));
  return server;
}

async function drain(server: Server, lingerMs: number): Promise<void> {
  await sleep(lingerMs);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const giveUpAt = performance.now() + DRAIN_LIMIT_MS;
  const closeIdle = setInterval(() => {
    server.closeIdleConnections();
    if (performance.now() > giveUpAt) server.closeAllConnections();
  }, DRAIN_CHECK_MS);
  server.closeIdleConnections();
  await closed;
  clearInterval(closeIdle);
}
