import { once } from 'node:events';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { DeliveryObserver } from '../activities/delivery.ts';
import { EXPORT_RESULTS } from './commands/deps.ts';
import type { ExportObserver } from './commands/deps.ts';
import { readBacklog } from './db/backlog.ts';
import type { Backlog } from './db/backlog.ts';
import { readDuties } from './db/duties.ts';
import type { Duty } from './db/duties.ts';
import { readRetentionProgress } from './db/retention.ts';
import { measureRollupTail } from './db/rollups.ts';
import type { Sql } from './db/sql.ts';
import { EMAIL_RESULTS } from './domain/email.ts';
import type { EmailResult } from './domain/email.ts';
import { ATTEMPT_RESULTS } from './domain/outgoing-webhooks.ts';
import type { AttemptResult } from './domain/outgoing-webhooks.ts';
import type { ReadinessCheck, RequestObserver } from './http/deps.ts';
import { withDeadline } from './lib/deadline.ts';
import { createLimitedServer, SERVER_LIMITS } from './http-server.ts';
import type { ServerLimits } from './http-server.ts';
import { listen } from './lib/listen.ts';

/** Upper bounds of the histogram of request times, seconds. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** The same for deliveries, from the receipt to the outcome: a stuck one takes hours. */
const DELIVERY_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600, 3_600, 86_400];
/** The same for one step of a delivery. */
const STEP_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];

/** Few programs read the metrics. */
const METRICS_LIMITS: ServerLimits = { ...SERVER_LIMITS, connections: 100, connectionsPerAddress: 100 };

/** How long a reader waits for what the database says, ms. Prometheus gives up after 10 s, and then has nothing at all. */
const GAUGES_MS = 1_500;
/**
 * For how long the last result of the readiness is shown while a check waits for a slow database, ms. A check ends within 5 s, and then
 * says itself that the database does not respond.
 */
const READINESS_SHOWN_MS = 60_000;

/** The metrics of one process for Prometheus. */
export interface Metrics {
  readonly observeRequest: RequestObserver;
  readonly observeDelivery: DeliveryObserver;
  readonly observeExport: ExportObserver;
  /** Receives the result of each attempt at a message. */
  readonly observeWebhook: (result: AttemptResult) => void;
  /** Receives the result of each attempt at a mail. */
  readonly observeEmail: (result: EmailResult) => void;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  /** Returns the metrics in the text format of Prometheus. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

/** Creates the metrics of one process. Gauges of the database are queried when Prometheus reads them. */
export function createMetrics(deps: {
  readonly sql: Sql;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  /** Where the metrics of the Temporal SDK listen, which are appended; null when they are off. */
  readonly sdkMetricsAddress: string | null;
  /** The duties that the installation has. */
  readonly duties: readonly Duty[];
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
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] });
  const backlogGauges: Readonly<Record<keyof Backlog, Gauge>> = {
    unfinishedDeliveries: gauge(
      'tributary_unfinished_deliveries',
      'Accepted deliveries without an outcome, counted up to 10000.',
    ),
    oldestUnfinishedSeconds: gauge(
      'tributary_oldest_unfinished_delivery_seconds',
      'Age of the oldest accepted delivery without an outcome; 0 when there is none.',
    ),
    stuckDeliveries: gauge(
      'tributary_stuck_deliveries',
      'Accepted deliveries without an outcome of which a step has failed, counted up to 10000.',
    ),
    overdueCommissions: gauge(
      'tributary_overdue_commissions',
      'Pending commissions whose hold period is over, counted up to 10000.',
    ),
    oldestOverdueSeconds: gauge(
      'tributary_oldest_overdue_commission_seconds',
      'How long ago the hold period of the oldest pending commission ended; 0 when none is overdue.',
    ),
    openPayoutRequests: gauge(
      'tributary_open_payout_requests',
      'Exports that are not settled yet, counted up to 10000.',
    ),
    oldestPayoutRequestSeconds: gauge(
      'tributary_oldest_open_payout_request_seconds',
      'Age of the oldest export that is not settled yet; 0 when there is none. One of a payout run counts only once it has expired.',
    ),
    unhealedBindings: gauge(
      'tributary_unhealed_bindings',
      'Users whose earlier payments wait for their evaluation, counted up to 10000.',
    ),
    oldestUnhealedSeconds: gauge(
      'tributary_oldest_unhealed_binding_seconds',
      'Age of the oldest binding whose earlier payments wait for their evaluation; 0 when there is none.',
    ),
    openErasures: gauge(
      'tributary_open_erasures',
      'Erasures of persons that are not complete, counted up to 10000.',
    ),
    oldestErasureSeconds: gauge(
      'tributary_oldest_open_erasure_seconds',
      'Age of the oldest erasure that is not complete; 0 when there is none.',
    ),
    dueWebhooks: gauge(
      'tributary_due_webhooks',
      'Messages to endpoints whose next attempt is due, counted up to 10000.',
    ),
    oldestDueWebhookSeconds: gauge(
      'tributary_oldest_due_webhook_seconds',
      'How long ago the oldest attempt at a message was due that was not made; 0 when there is none.',
    ),
    dueEmails: gauge('tributary_due_emails', 'Mails whose next attempt is due, counted up to 10000.'),
    oldestDueEmailSeconds: gauge(
      'tributary_oldest_due_email_seconds',
      'How long ago the oldest attempt at a mail was due that was not made; 0 when there is none.',
    ),
  };
  const deliveries = new Histogram({
    name: 'tributary_delivery_duration_seconds',
    help: 'Time from the receipt of a delivery to its outcome (earned, processed, duplicate), by provider.',
    labelNames: ['provider', 'outcome'] as const,
    buckets: DELIVERY_SECONDS,
    registers: [registry],
  });
  const steps = new Histogram({
    name: 'tributary_delivery_step_duration_seconds',
    help: 'Time of one step of a delivery that succeeded, by provider.',
    labelNames: ['provider', 'step'] as const,
    buckets: STEP_SECONDS,
    registers: [registry],
  });
  const stepFailures = new Counter({
    name: 'tributary_delivery_step_failures_total',
    help: 'Failed attempts at a step of a delivery, by provider. Each is retried.',
    labelNames: ['provider', 'step'] as const,
    registers: [registry],
  });
  const exported = new Counter({
    name: 'tributary_exports_total',
    help: 'Exports by their result (paid, empty, total_changed, blocked, timed_out).',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  // An increase can be computed only from a value before it.
  for (const result of EXPORT_RESULTS) exported.inc({ result }, 0);
  const sent = new Counter({
    name: 'tributary_webhook_attempts_total',
    help: 'Attempts at messages to endpoints by their result (delivered, retried, failed).',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  for (const result of ATTEMPT_RESULTS) sent.inc({ result }, 0);
  const mailed = new Counter({
    name: 'tributary_email_attempts_total',
    help: 'Attempts at mails by their result (sent, retried, failed).',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  for (const result of EMAIL_RESULTS) mailed.inc({ result }, 0);
  const connections = new Gauge({
    name: 'tributary_database_connections',
    help: 'Database connections of the process, by state (busy, idle, max).',
    labelNames: ['state'] as const,
    registers: [registry],
  });
  const waiting = gauge(
    'tributary_database_waiting_statements',
    'Statements of the process that wait for a database connection.',
  );

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

  const dutyDone = new Gauge({
    name: 'tributary_duty_last_success_timestamp_seconds',
    help: 'When a duty of the background work last succeeded, by duty; 0 before the first time.',
    labelNames: ['duty'] as const,
    registers: [registry],
  });

  function updateUsage(): void {
    const usage = deps.sql.usage();
    for (const state of ['busy', 'idle', 'max'] as const) connections.set({ state }, usage[state]);
    waiting.set(usage.waiting);
  }

  /** The update in progress. While the database does not respond, readers wait for the same one. */
  let updating: Promise<void> | null = null;

  /** Updates the gauges for at most `GAUGES_MS`. What the database has not said by then keeps its last value. */
  async function updateInTime(): Promise<void> {
    updateUsage();
    updating ??= updateGauges().finally(() => {
      updating = null;
    });
    const done = Promise.all([updateReadiness(), updating]);
    await withDeadline(GAUGES_MS, async () => {
      await done;
    }).catch(() => {});
    // Only the database can keep the check waiting.
    if (performance.now() - checkedAt > READINESS_SHOWN_MS) ready.set({ check: 'database' }, 0);
  }

  /** When the last check of the readiness ended, `performance.now()` ms. */
  let checkedAt = -Infinity;

  async function updateReadiness(): Promise<void> {
    for (const { name, ok } of await deps.readiness()) ready.set({ check: name }, ok ? 1 : 0);
    checkedAt = performance.now();
  }

  async function updateGauges(): Promise<void> {
    // tributary_ready reports a database that is unavailable; the gauges keep their last values.
    const backlog = await readBacklog(deps.sql).catch(() => undefined);
    if (backlog === undefined) return;
    for (const [name, value] of Object.entries(backlog)) backlogGauges[name as keyof Backlog].set(value);
    const tail = await measureRollupTail(deps.sql).catch(() => undefined);
    if (tail !== undefined) {
      deltas.set(tail.deltas);
      oldestDelta.set(tail.oldestSeconds);
    }
    for (const row of await readRetentionProgress(deps.sql).catch(() => [])) {
      removed.set({ kind: row.kind }, row.removed);
      lastRun.set({ kind: row.kind }, (row.finishedAt ?? 0) / 1000);
    }
    const done = await readDuties(deps.sql).catch(() => undefined);
    if (done === undefined) return;
    for (const duty of deps.duties) dutyDone.set({ duty }, (done.get(duty) ?? 0) / 1000);
  }

  return {
    readiness: deps.readiness,
    observeRequest: ({ method, route, status, seconds }) => {
      requests.observe({ method, route: route ?? 'none', status: String(status) }, seconds);
    },
    observeDelivery: {
      step: ({ provider, step, ok, seconds }) => {
        if (ok) steps.observe({ provider, step }, seconds);
        else stepFailures.inc({ provider, step });
      },
      outcome: ({ provider, outcome, seconds }) => deliveries.observe({ provider, outcome }, seconds),
    },
    observeExport: (result) => exported.inc({ result }),
    observeWebhook: (result) => sent.inc({ result }),
    observeEmail: (result) => mailed.inc({ result }),
    text: async () => {
      const [ofSdk] = await Promise.all([readSdkMetrics(deps.sdkMetricsAddress), updateInTime()]);
      return (await registry.metrics()) + ofSdk;
    },
    contentType: registry.contentType,
  };
}

const SDK_METRICS_TIMEOUT_MS = 1_000;

/** Returns the metrics of the Temporal SDK, whose names begin with `temporal_`; nothing when they can't be read. */
async function readSdkMetrics(address: string | null): Promise<string> {
  if (address === null) return '';
  try {
    return await withDeadline(SDK_METRICS_TIMEOUT_MS, async ({ signal }) => {
      const response = await fetch(`http://${address}/metrics`, { signal });
      return response.ok ? await response.text() : '';
    });
  } catch {
    return '';
  }
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
  const server = createLimitedServer(METRICS_LIMITS);
  server.on('request', (request, response) => {
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
