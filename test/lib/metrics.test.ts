import { expect, test } from '@jest/globals';
import type { Sql } from '../../src/db/sql.ts';
import { createMetrics } from '../../src/metrics.ts';

const never = new Promise<never>(() => {});
const usage = () => ({ busy: 2, idle: 0, max: 2, waiting: 9 });

/** A database that never responds: whatever is asked, no promise settles. */
const silent = new Proxy(() => {}, {
  apply: async () => await never,
  get: (_, name) => (name === 'usage' ? usage : async () => await never),
}) as unknown as Sql;

// @promise metrics-in-time
test('the metrics of a process whose database says nothing arrive within two seconds, with what is known', async () => {
  const metrics = createMetrics({
    sql: silent,
    readiness: async () => await never,
    sdkMetricsAddress: null,
    duties: [],
  });
  metrics.observeExport('paid');
  const [text, again] = await Promise.all([metrics.text(), metrics.text()]);
  expect(again).toContain('tributary_exports_total');
  expect(text).toContain('tributary_exports_total{result="paid"} 1');
  expect(text).toContain('tributary_ready{check="database"} 0');
  expect(text).toMatch(/^tributary_database_connections\{state="max"\} 2$/m);
}, 6_000);

// @promise slow-database-ready
test('a check of the readiness that takes longer than a reader of the metrics waits shows its last result meanwhile', async () => {
  const database = { name: 'database', ok: true, detail: null, optional: false };
  let isSlow = false;
  const metrics = createMetrics({
    sql: silent,
    readiness: async () => (isSlow ? await never : [database]),
    sdkMetricsAddress: null,
    duties: [],
  });
  await metrics.text();
  isSlow = true;
  expect(await metrics.text()).toContain('tributary_ready{check="database"} 1');
}, 8_000);
