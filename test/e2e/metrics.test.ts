import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect } from '../../src/db/sql.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
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
           received_at = now() - interval '90 seconds'`;
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

// @promise metrics-port
test('the metrics port serves only metrics, and the API port serves none', async () => {
  const { origin } = new URL(service.metricsUrl ?? '');
  expect((await fetch(`${origin}/apps`)).status).toBe(404);
  expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
});
