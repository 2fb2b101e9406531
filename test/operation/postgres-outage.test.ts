import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout } from 'node:timers/promises';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { inDatabase, runOn } from '../support/postgres-admin.ts';
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

/** Returns the cause that the readiness shows for a check. */
const shown = async (check: string) => (await service.ready()).find(({ name }) => name === check)?.detail;

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
    const seconds = async <T>(work: Promise<T>): Promise<{ took: number; result: T }> => {
      const begin = performance.now();
      const result = await work;
      return { took: (performance.now() - begin) / 1000, result };
    };
    /** Silences the database, checks what is answered, and returns the times, s. */
    const outage = async (): Promise<{ away: number; back: number }> => {
      const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 3_000 }));
      proxy.silence();
      // The readiness of the moment before is used again for 250 ms.
      await setTimeout(300);
      // More webhooks than the pool has connections.
      const away = await Promise.all([
        ...Array.from({ length: 40 }, () => seconds(founder.stripe(body))),
        seconds(founder.call('GET', '/readyz')),
      ]);
      // The background loops are not stuck in a statement either: their round fails, and the next one begins.
      await expect(service.relay.round()).rejects.toThrow('database');
      expect(away.map(({ result }) => result.status)).toEqual(away.map(() => 503));
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
      return { away: Math.max(...away.map(({ took }) => took)), back: back.took };
    };
    let took = await outage();
    // A machine that stalls for a moment breaks no promise: the times are measured again.
    for (let again = 0; again < 2 && (took.away >= 6 || took.back >= 2); again += 1) took = await outage();
    expect(took.away).toBeLessThan(6);
    expect(took.back).toBeLessThan(2);
    await expect(service.relay.round()).resolves.toEqual(expect.any(Boolean));
    process.stderr.write(
      `silent database: 503 after ${took.away.toFixed(1)} s, back after ${took.back.toFixed(1)} s\n`,
    );
  });

  // @promise read-only-database
  test('while Postgres refuses writes, a webhook returns 503 with Retry-After and readiness names the cause; both recover', async () => {
    const body = bodyOf(stripeInvoicePaid({ userId: await founder.customer(), amount: 4_000 }));
    const name = new URL(database.url).pathname.slice(1);
    await runOn(database.url, `alter database "${name}" set default_transaction_read_only = on`);
    proxy.cut();
    proxy.restore();
    try {
      const refused = await founder.stripe(body);
      expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([503, 2]);
      await eventually(
        'the readiness shows the cause',
        async () => (await shown('database'))?.includes('default_transaction_read_only is on') === true,
      );
      expect((await founder.call('GET', '/readyz')).status).toBe(503);
    } finally {
      await runOn(
        inDatabase(database.url, 'postgres'),
        `alter database "${name}" reset default_transaction_read_only`,
      );
    }
    // No connection was cut: the service closes those that are read-only. It does so at most every 2 s, and it finds the last ones
    // only when it uses them: the webhook is sent until then, as a provider does.
    await eventually(
      'the service is ready again',
      async () => (await founder.call('GET', '/readyz')).status === 200,
    );
    await eventually('the webhook earns', async () => {
      const sent = await founder.stripe(body);
      expect(sent.status === 200 || sent.headers.get('retry-after') === '2').toBe(true);
      return sent.status === 200 && sent.body.commissionId?.startsWith('com_') === true;
    });
    // The tests after this one use more connections at a time, and none of them may be read-only.
    proxy.cut();
    proxy.restore();
    await eventually(
      'the service has new connections',
      async () => (await founder.call('GET', '/readyz')).status === 200,
    );
  });

  // @promise environment-faults
  test.each([
    ['without a table', 'alter table deliveries rename to away', 'alter table away rename to deliveries'],
    [
      'without a column',
      'alter table deliveries rename column signature_valid to away',
      'alter table deliveries rename column away to signature_valid',
    ],
    [
      'with a full disk',
      `create function full_disk() returns trigger language plpgsql as
         $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
       create trigger full_disk before insert on deliveries execute function full_disk()`,
      'drop trigger full_disk on deliveries',
    ],
  ])(
    '%s, a webhook returns 503 with Retry-After and the readiness says why',
    async (_, breaking, mending) => {
      const body = bodyOf(stripeInvoicePaid({ userId: await founder.customer(), amount: 5_000 }));
      await runOn(database.url, breaking);
      const refused = await founder.stripe(body);
      // The readiness is measured every 250 ms at most.
      await eventually('the readiness shows the cause', async () =>
        /run the migrations|disk of Postgres is full/.test((await shown('database_statements')) ?? ''),
      ).finally(async () => await runOn(database.url, mending));
      expect(refused.status).toBe(503);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await founder.call('GET', '/readyz')).status).toBe(200);
      expect((await founder.stripe(body)).status).toBe(200);
    },
  );

  // @promise accepted-never-lost
  test('deliveries accepted just before an outage of Postgres are completed afterwards', async () => {
    const user = await founder.customer();
    const responses = Array.from({ length: 10 }, () =>
      founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }))).catch(() => undefined),
    );
    await setTimeout(15);
    proxy.cut();
    await setTimeout(1_500);
    proxy.restore();
    await Promise.all(responses);
    await eventually('no accepted delivery is left without an outcome', async () => {
      const { open } = await database.sql.one<{ open: number }>`
          select count(*)::int as open from deliveries where completed_at is null`;
      return open === 0;
    });
    const { deliveries, commissions } = await database.sql.one<{ deliveries: number; commissions: number }>`
      select (select count(*)::int from deliveries where signature_valid) as deliveries,
             (select count(*)::int from commissions) as commissions`;
    expect(commissions).toBe(deliveries);
  });
});
