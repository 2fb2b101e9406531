/** @jest-environment <rootDir>/test/jest/isolated.js */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect } from '../../src/db/sql.ts';
import { resumePayouts } from '../../src/db/payout-stops.ts';
import { UI_VIEWS } from '../../temporal/ui-views.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { textOf } from '../support/text-of.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  // On every address, so that the default of the metrics shows.
  service = await startTestService({ settings: { metricsPort: 0, host: '0.0.0.0' } });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

const read = async () => await (await fetch(service.metricsUrl ?? '')).text();

// @promise metrics-port
test('the metrics count requests by route, never by path, id or caller', async () => {
  await founder.ok('GET', `/apps/${founder.app.id}`);
  const text = await read();
  expect(text).toMatch(
    /tributary_http_request_duration_seconds_count\{method="GET",route="\/apps\/:appId",status="200"\} [1-9]/,
  );
  expect(text).not.toContain(founder.app.id);
  expect(text).not.toContain(founder.accountId);
});

test('the metrics report readiness and the backlog of deliveries', async () => {
  expect(await read()).toMatch(/tributary_ready\{check="database"\} 1\n/);
  await founder.purchase(await founder.customer(), 5);
  expect(await read()).toMatch(/tributary_unfinished_deliveries 0\n/);
  await service.sql`
    update deliveries set completed_at = null, processing_status = 'received', relayed_at = now() + interval '1 hour',
           accepted_at = now() - interval '90 seconds'`;
  const text = await read();
  expect(text).toMatch(/tributary_unfinished_deliveries 1\n/);
  expect(text).toMatch(/tributary_oldest_unfinished_delivery_seconds 9\d\.?/);
});

test('the metrics report the facts that are not folded into the stored sums yet', async () => {
  expect(await read()).toMatch(/tributary_rollup_deltas \d/);
  const holder = connect({ url: service.database.url, max: 1 });
  try {
    // While another session has the turn, the fold loop adds nothing.
    await holder`select pg_advisory_lock(hashtext('tributary'), hashtext('fold rollups'))`;
    await founder.customer();
    await service.sql`update rollup_deltas set created_at = now() - interval '90 seconds'`;
    const text = await read();
    // A click, an install and an identify, and what earlier tests wrote within the last second.
    expect(text).toMatch(/tributary_rollup_deltas (?:[3-9]|\d\d)\n/);
    expect(text).toMatch(/tributary_oldest_rollup_delta_seconds 9\d\.?/);
  } finally {
    await holder.close();
  }
  await eventually('the fold loop continues', async () => /tributary_rollup_deltas 0\n/.test(await read()));
});

// @promise duties-measured
test('the metrics say when each duty that the installation has last succeeded', async () => {
  const timeOf = async (duty: string) => {
    const line = new RegExp(`^tributary_duty_last_success_timestamp_seconds\\{duty="${duty}"\\} (.+)$`, 'm');
    return Number(line.exec(await read())?.[1]);
  };
  const begin = Date.now() / 1_000 - 60;
  expect([await timeOf('alerts'), await timeOf('drafts'), await timeOf('reports')]).toEqual([0, 0, 0]);
  for (const workflow of ['alerts', 'calendar']) {
    await service.temporal.workflow.execute(workflow, {
      workflowId: `${workflow}:${randomUUID()}`,
      taskQueue: service.taskQueue,
    });
  }
  for (const duty of ['alerts', 'drafts', 'reports']) expect(await timeOf(duty)).toBeGreaterThan(begin);
  await eventually(
    'the relay has looked for payments to convert',
    async () => (await timeOf('conversions')) > begin,
  );
  // No rates are fetched here.
  expect(await timeOf('rates')).toBeNaN();
});

test('the metrics measure deliveries by provider and outcome, their steps, exports, and the pool', async () => {
  const user = await founder.customer();
  await founder.purchase(user, 5, { eventId: 'measured' });
  await founder.purchase(user, 5, { eventId: 'measured' });
  await founder.exportCsv();
  const text = await read();
  const count = 'tributary_delivery_duration_seconds_count';
  for (const outcome of ['earned', 'duplicate'])
    expect(text).toMatch(new RegExp(`${count}\\{provider="revenuecat",outcome="${outcome}"\\} [1-9]`));
  expect(text).toMatch(
    /tributary_delivery_step_duration_seconds_count\{provider="revenuecat",step="writeCommission"\} [1-9]/,
  );
  for (const [result, exports] of [
    ['paid', 1],
    ['timed_out', 0],
  ])
    expect(text).toContain(`tributary_exports_total{result="${result}"} ${exports}\n`);
  expect(text).toMatch(/tributary_database_connections\{state="max"\} 20\n/);
  expect(text).toMatch(/tributary_database_waiting_statements 0\n/);
});

test('the metrics report a stuck delivery, an overdue commission and an open export', async () => {
  const { body } = await founder.purchase(await founder.customer(), 5);
  await service.sql`update deliveries set last_error = 'dedupe: no', completed_at = null, processing_status = 'processing',
    relayed_at = now() + interval '1 hour' where event_id = ${body.eventId ?? ''}`;
  const text = await read();
  expect(text).toMatch(/tributary_stuck_deliveries [1-9]\n/);
  for (const name of ['overdue_commissions', 'open_payout_requests', 'unhealed_bindings'])
    expect(text).toMatch(new RegExp(`tributary_${name} \\d+\n`));
  await service.sql`update deliveries set completed_at = now(), processing_status = 'processed' where completed_at is null`;
});

// @promise ui-views
test('the Temporal server accepts every list filter of the runbook and every view of the UI', async () => {
  const filters = [...textOf('docs/runbook.md').matchAll(/`([A-Z]\w+ [^`]+"|\w+ IS NOT NULL)`/g)];
  const queries = new Set(filters.map(([, query = '']) => query.replaceAll('\n', ' ')));
  for (const { query } of UI_VIEWS)
    queries.add(query).add(`${query} AND AppId = "app_1" AND Provider = "stripe"`);
  expect(queries.size).toBeGreaterThan(8);
  for (const query of queries)
    await expect(service.temporal.workflow.count(query)).resolves.toHaveProperty('count');
});

test('every metric that an alert or a panel of the dashboard names exists', async () => {
  // The SDK has counters of failures only after a failure: here a workflow of an unknown type, whose id the relay finds taken.
  const { body } = await founder.purchase(await founder.customer(), 5);
  const { id } = await service.sql.one<{ id: string }>`
    select id from deliveries where event_id = ${body.eventId ?? ''}`;
  const { taskQueue, temporal, relay } = service;
  await temporal.workflow.getHandle(`delivery:${id}`).result();
  const blocking = await temporal.workflow.start('unknown', { taskQueue, workflowId: `delivery:${id}` });
  // Only now, since the service has a relay of its own.
  await service.sql`
    update deliveries set completed_at = null, processing_status = 'received', relayed_at = now() - interval '1 hour'
     where id = ${id}`;
  await relay.round();
  const metricsOf = (text: string) =>
    new Set([...text.matchAll(/^(?:# TYPE )?([a-z_0-9]+)/gm)].map(([, name]) => name));
  await eventually('the task has failed', async () =>
    metricsOf(await read()).has('temporal_workflow_task_execution_failed_total'),
  );
  await blocking.terminate();
  await relay.round();
  const found = metricsOf(await read());
  const names = new Set(
    ['deploy/prometheus/alerts.yaml', 'deploy/grafana/tributary.json'].flatMap((file) =>
      // After an equals sign it is the value of a label.
      [...textOf(file).matchAll(/(?<!=\\?")\b(?:tributary|temporal|nodejs|process)_[a-z0-9_]+/g)].map(
        ([name]) => name,
      ),
    ),
  );
  expect([...names].filter((name) => !found.has(name))).toEqual([]);
  expect(names.size).toBeGreaterThan(25);
});

// @promise metrics-host
test('the metrics listen on the loopback address, whatever the address of the API is', () => {
  expect(new URL(service.url).hostname).toBe('0.0.0.0');
  expect(new URL(service.metricsUrl ?? '').hostname).toBe('127.0.0.1');
});

// @promise readyz-no-details
test('the metrics port serves the readiness with its details', async () => {
  const { origin } = new URL(service.metricsUrl ?? '');
  const response = await fetch(`${origin}/readyz`);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    status: 'ok',
    checks: expect.arrayContaining([{ name: 'database', ok: true, detail: null }]),
  });
});

// @promise payouts-stopped-signal
test('stopped payouts make the readiness degraded, with the way out, and are a metric until they are resumed', async () => {
  const { origin } = new URL(service.metricsUrl ?? '');
  const ready = async () => await (await fetch(`${origin}/readyz`)).json();
  await service.sql`update installation set history = regexp_replace(history, '/.*', '/0000BEEF')`;
  await eventually('the metric is 0', async () =>
    (await read()).includes('tributary_ready{check="payouts"} 0'),
  );
  expect(await ready()).toMatchObject({
    status: 'degraded',
    checks: expect.arrayContaining([
      {
        name: 'payouts',
        ok: false,
        detail: expect.stringMatching(/promoted.*payouts resume --none-missing/),
      },
    ]),
  });
  await eventually('the API shows no cause', async () => {
    const { status, body } = await founder.call('GET', '/readyz');
    return status === 200 && body['status'] === 'degraded';
  });
  await resumePayouts(service.sql);
  await eventually('the metric is 1', async () =>
    (await read()).includes('tributary_ready{check="payouts"} 1'),
  );
  expect(await ready()).toMatchObject({ status: 'ok' });
});

// @promise metrics-port
test('the metrics port serves only metrics, and the API port serves none', async () => {
  const { origin } = new URL(service.metricsUrl ?? '');
  expect((await fetch(`${origin}/apps`)).status).toBe(404);
  expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
});
