import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import { eventually } from '../support/eventually.ts';
import { startTestService } from '../support/service.ts';

// @promise sweep-schedule
test('the Schedule of the sweep runs every minute and is recreated when it is deleted', async () => {
  const temporal = await startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress: () => {} });
  const other = await startTestService({
    temporalAddress: temporal.address,
    settings: { withSchedule: true, setUpPauseMs: 100 },
  });
  const connection = await Connection.connect({ address: temporal.address });
  try {
    await other.whenReady(20_000);
    const { schedule } = new Client({ connection });
    const found = await schedule.getHandle(workflowIdOf('sweep', other.taskQueue)).describe();
    expect(found.spec.intervals).toMatchObject([{ every: 60_000 }]);
    await schedule.getHandle(workflowIdOf('sweep', other.taskQueue)).delete();
    await eventually('the Schedule exists again', async () => {
      const next = await schedule
        .getHandle(workflowIdOf('sweep', other.taskQueue))
        .describe()
        .catch(() => undefined);
      return next !== undefined && next.info.createdAt > found.info.createdAt;
    });
  } finally {
    await connection.close();
    await other.close();
    await temporal.stop();
  }
});

// @promise rates-fetched
test('a new service fetches the rates at once and then every afternoon', async () => {
  const file = readFileSync(new URL('../fixtures/rates/eurofxref.zip', import.meta.url));
  const server = createServer((_, response) => response.end(file));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const ratesUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/eurofxref.zip`;
  const temporal = await startLocalTemporal({ searchAttributes: SEARCH_ATTRIBUTES, onProgress: () => {} });
  const other = await startTestService({
    temporalAddress: temporal.address,
    settings: { withSchedule: true, ratesUrl, relay: { overdueMs: 300, pauseMs: 200 } },
  });
  try {
    await other.whenReady(20_000);
    await eventually('the rates are stored', async () => {
      const { n } = await other.sql.one<{ n: number }>`select count(*) as n from exchange_rates`;
      return n === 6;
    });
    const connection = await Connection.connect({ address: temporal.address });
    const { info } = await new Client({ connection }).schedule
      .getHandle(workflowIdOf('rates', other.taskQueue))
      .describe();
    await connection.close();
    expect(info.nextActionTimes.length).toBeGreaterThan(2);
    for (const at of info.nextActionTimes) {
      expect(at.toISOString()).toMatch(/T16:(0[5-9]|[12]\d|3[0-5]):/);
    }
  } finally {
    await other.close();
    await temporal.stop();
    server.closeAllConnections();
    server.close();
  }
});
