import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let database: TestDatabase;
let proxy: CuttableProxy;
let service: TestService;
let founder: Founder;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startProxy(database.url);
  // A statement that a silence held back may store a delivery after its 503: the relay then takes it.
  service = await startTestService({
    settings: { databaseUrl: proxy.url, relay: { overdueMs: 5_000, pauseMs: 1_000 } },
  });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  proxy.restore();
  await service.close();
  await proxy.close();
  await database.drop();
});

describe('an outage of Postgres', () => {
  // @promise webhook-503, database-not-ready
  test('a webhook during an outage of Postgres returns 503 with Retry-After and earns when it is sent again', async () => {
    const user = await founder.customer();
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 2_000 }));
    proxy.cut();
    const away = await founder.stripe(body);
    expect(away.status).toBe(503);
    expect(Number(away.headers.get('retry-after'))).toBeGreaterThan(0);
    const ready = await founder.call('GET', '/readyz');
    expect(ready.status).toBe(503);
    expect(ready.text).toContain('database');
    proxy.restore();
    await eventually(
      'the service is ready again',
      async () => (await founder.call('GET', '/readyz')).status === 200,
    );
    const sent = await founder.stripe(body);
    expect(sent.body.commissionId).toMatch(/^com_/);
  });

  // @promise silent-database
  test('with a database that accepts connections and answers nothing, webhooks and readiness return 503 within 6 s, and both recover within 2 s', async () => {
    const user = await founder.customer();
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 3_000 }));
    const seconds = async <T>(work: Promise<T>): Promise<{ took: number; result: T }> => {
      const begin = performance.now();
      const result = await work;
      return { took: (performance.now() - begin) / 1000, result };
    };
    proxy.silence();
    // More webhooks than the pool has connections.
    const away = await Promise.all([
      ...Array.from({ length: 40 }, () => seconds(founder.stripe(body))),
      seconds(founder.call('GET', '/readyz')),
    ]);
    // The background loops are not stuck in a statement either: their round fails, and the next one begins.
    await expect(service.relay.round()).rejects.toThrow('database');
    expect(away.map(({ result }) => result.status)).toEqual(away.map(() => 503));
    expect(Math.max(...away.map(({ took }) => took))).toBeLessThan(6);
    expect(away.at(-1)?.result.text).toContain('Not available: database');
    expect(away[0]?.result.headers.get('retry-after')).toMatch(/^[1-9]/);

    proxy.restore();
    const back = await seconds(
      (async () => {
        const sent = await founder.stripe(body);
        const ready = await founder.call('GET', '/readyz');
        return { sent, ready };
      })(),
    );
    expect(back.result.sent.body.commissionId).toMatch(/^com_/);
    expect(back.result.ready.status).toBe(200);
    expect(back.took).toBeLessThan(2);
    await expect(service.relay.round()).resolves.toEqual(expect.any(Boolean));
    process.stderr.write(
      `silent database: 503 after ${Math.max(...away.map(({ took }) => took)).toFixed(1)} s, back after ${back.took.toFixed(1)} s\n`,
    );
  });

  // @promise accepted-never-lost
  test('deliveries accepted just before an outage of Postgres are completed afterwards', async () => {
    const user = await founder.customer();
    const responses = Array.from({ length: 10 }, () =>
      founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }))).catch(() => undefined),
    );
    setTimeout(() => proxy.cut(), 15);
    setTimeout(() => proxy.restore(), 1_500);
    await Promise.all(responses);
    await eventually(
      'no accepted delivery is left without an outcome',
      async () => {
        const { open } = await database.sql.one<{ open: number }>`
          select count(*)::int as open from deliveries where completed_at is null`;
        return open === 0;
      },
      25_000,
    );
    const { deliveries, commissions } = await database.sql.one<{ deliveries: number; commissions: number }>`
      select (select count(*)::int from deliveries where signature_valid) as deliveries,
             (select count(*)::int from commissions) as commissions`;
    expect(commissions).toBe(deliveries);
  });
});
