import { createServer } from 'node:http';
import { once } from 'node:events';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { readBacklog } from './db/backlog.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck, RequestObserver } from './http/deps.ts';
import { listen } from './listen.ts';

/** Upper ends of the buckets of request times, seconds. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What one process tells a Prometheus server. */
export interface Metrics {
  readonly observeRequest: RequestObserver;
  /** The text that Prometheus reads. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

/** Counters and gauges of one process. What stands in the database is asked for when it is read. */
export function createMetrics(deps: {
  readonly sql: Sql;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
}): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'tributary_http_request_duration_seconds',
    help: 'Time to answer a request, by route.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: REQUEST_SECONDS,
    registers: [registry],
  });
  const ready = new Gauge({
    name: 'tributary_ready',
    help: '1 when what the process needs is there.',
    labelNames: ['check'] as const,
    registers: [registry],
  });
  const oldest = new Gauge({
    name: 'tributary_oldest_unfinished_delivery_seconds',
    help: 'Age of the oldest accepted delivery without an outcome; 0 when there is none.',
    registers: [registry],
  });
  const unfinished = new Gauge({
    name: 'tributary_unfinished_deliveries',
    help: 'Accepted deliveries without an outcome, counted up to 10000.',
    registers: [registry],
  });

  async function look(): Promise<void> {
    for (const { name, ok } of await deps.readiness()) ready.set({ check: name }, ok ? 1 : 0);
    // A database that is away is told by tributary_ready; the last figures stay.
    const backlog = await readBacklog(deps.sql).catch(() => undefined);
    if (backlog === undefined) return;
    unfinished.set(backlog.unfinishedDeliveries);
    oldest.set(backlog.oldestSeconds);
  }

  return {
    observeRequest: ({ method, route, status, seconds }) => {
      requests.observe({ method, route: route ?? 'none', status: String(status) }, seconds);
    },
    text: async () => {
      await look();
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

export interface MetricsServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Serves `GET /metrics` on a port of its own, so that the API's port can be open to the world and this one not. */
export async function serveMetrics(metrics: Metrics, host: string, port: number): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    metrics.text().then(
      (text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  const base = await listen(server, host, port, 'METRICS_PORT');
  return {
    url: `${base}/metrics`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
