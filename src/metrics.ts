import { createServer } from 'node:http';
import { once } from 'node:events';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { readBacklog } from './db/backlog.ts';
import { readRetentionProgress } from './db/retention.ts';
import { measureRollupTail } from './db/rollups.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck, RequestObserver } from './http/deps.ts';
import { listen } from './lib/listen.ts';

/** Upper bounds of the histogram of request times, seconds. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The metrics of one process for Prometheus. */
export interface Metrics {
  readonly observeRequest: RequestObserver;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  /** Returns the metrics in the text format of Prometheus. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

/** Creates the metrics of one process. Gauges of the database are queried when Prometheus reads them. */
export function createMetrics(deps: {
  readonly sql: Sql;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
}): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'tributary_http_request_duration_seconds',
    help: 'Time to respond to a request, by route.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: REQUEST_SECONDS,
    registers: [registry],
  });
  const ready = new Gauge({
    name: 'tributary_ready',
    help: '1 when the check of what the process needs succeeds, else 0.',
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

  const deltas = new Gauge({
    name: 'tributary_rollup_deltas',
    help: 'Facts that the fold loop has not added to the stored sums yet, counted up to 10000.',
    registers: [registry],
  });
  const oldestDelta = new Gauge({
    name: 'tributary_oldest_rollup_delta_seconds',
    help: 'Age of the oldest fact that is not in the stored sums yet; 0 when there is none.',
    registers: [registry],
  });
  const removed = new Gauge({
    name: 'tributary_retention_removed_rows',
    help: 'Rows of expired data that were removed or cleared since the installation, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
  });
  const lastRun = new Gauge({
    name: 'tributary_retention_last_run_timestamp_seconds',
    help: 'When the removal of expired data last found nothing left, by kind; 0 before the first time.',
    labelNames: ['kind'] as const,
    registers: [registry],
  });

  async function updateGauges(): Promise<void> {
    for (const { name, ok } of await deps.readiness()) ready.set({ check: name }, ok ? 1 : 0);
    // tributary_ready reports a database that is away; the gauges keep their last values.
    const backlog = await readBacklog(deps.sql).catch(() => undefined);
    if (backlog === undefined) return;
    unfinished.set(backlog.unfinishedDeliveries);
    oldest.set(backlog.oldestSeconds);
    const tail = await measureRollupTail(deps.sql).catch(() => undefined);
    if (tail !== undefined) {
      deltas.set(tail.deltas);
      oldestDelta.set(tail.oldestSeconds);
    }
    for (const row of await readRetentionProgress(deps.sql).catch(() => [])) {
      removed.set({ kind: row.kind }, row.removed);
      lastRun.set({ kind: row.kind }, (row.finishedAt ?? 0) / 1000);
    }
  }

  return {
    readiness: deps.readiness,
    observeRequest: ({ method, route, status, seconds }) => {
      requests.observe({ method, route: route ?? 'none', status: String(status) }, seconds);
    },
    text: async () => {
      await updateGauges();
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

export interface MetricsServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Returns the readiness with the causes that `GET /readyz` of the API does not show to everybody. */
async function readinessReport(
  metrics: Metrics,
): Promise<{ readonly status: number; readonly text: string }> {
  const checks = await metrics.readiness();
  const isReady = checks.every(({ ok, optional }) => ok || optional);
  const status = isReady ? (checks.every(({ ok }) => ok) ? 'ok' : 'degraded') : 'not_ready';
  const shown = checks.map(({ name, ok, detail }) => ({ name, ok, detail }));
  return { status: isReady ? 200 : 503, text: JSON.stringify({ status, checks: shown }) };
}

/** Serves `GET /metrics` and `GET /readyz` on a separate port, so that the API's port can be public and this one private. */
export async function serveMetrics(metrics: Metrics, host: string, port: number): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const send = (status: number, contentType: string, text: string) =>
      response.writeHead(status, { 'content-type': contentType }).end(text);
    const fail = () => response.writeHead(500).end();
    const path = request.method === 'GET' ? request.url : undefined;
    if (path === '/metrics') {
      metrics.text().then((text) => send(200, metrics.contentType, text), fail);
    } else if (path === '/readyz') {
      readinessReport(metrics).then(({ status, text }) => send(status, 'application/json', text), fail);
    } else {
      response.writeHead(404).end();
    }
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
