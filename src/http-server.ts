import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { respondToClientErrors } from './http/client-error.ts';
import { listen } from './lib/listen.ts';

/** New requests are accepted for this long after readiness is off: some are in flight already. */
const LINGER_MS = 400;
const DRAIN_CHECK_MS = 100;
const DRAIN_LIMIT_MS = 10_000;

export interface HttpServer {
  /** The address that the server listens on. */
  readonly url: string;
  /** Ends after the requests in flight; cuts off those that take longer than 10 s. */
  readonly stop: () => Promise<void>;
}

/** Listens on a host and a port. The handler is built with the address, because port 0 stands for any free one. */
export async function startHttpServer(
  host: string,
  port: number,
  createHandler: (url: string) => RequestListener,
): Promise<HttpServer> {
  const server = createServer();
  const url = await listen(server, host, port, 'PORT');
  respondToClientErrors(server);
  server.on('request', createHandler(url));
  return { url, stop: () => drain(server) };
}

async function drain(server: Server): Promise<void> {
  await sleep(LINGER_MS);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const giveUpAt = Date.now() + DRAIN_LIMIT_MS;
  const closeIdle = setInterval(() => {
    server.closeIdleConnections();
    if (Date.now() > giveUpAt) server.closeAllConnections();
  }, DRAIN_CHECK_MS);
  server.closeIdleConnections();
  await closed;
  clearInterval(closeIdle);
}
