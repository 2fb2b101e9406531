import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { DAY_MS } from '../../src/domain/time.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import type { LocalTemporal } from '../../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../../temporal/search-attributes.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let server: LocalTemporal;
let port: number;
let service: TestService;
let founder: Founder;

const startServer = async () =>
  await startLocalTemporal({
    ...(port === undefined ? {} : { port }),
    searchAttributes: SEARCH_ATTRIBUTES,
    onProgress: () => {},
  });

beforeAll(async () => {
  server = await startServer();
  port = Number(server.address.split(':')[1]);
  service = await startTestService({
    temporalAddress: server.address,
    settings: { relay: { overdueMs: 1_000, pauseMs: 200 } },
  });
  await service.whenReady(20_000);
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
  await server.stop();
});

describe('an outage of Temporal', () => {
  // @promise recovers-from-new-server
  test('work that was started on a server that lost its data is started again within seconds, however patient the relay is', async () => {
    const patient = await startTestService({
      temporalAddress: server.address,
      settings: { relay: { overdueMs: DAY_MS, pauseMs: 200 }, erasureSettleMs: 5_000 },
    });
    await patient.whenReady(20_000);
    const other = await setUpFounder(patient);
    const user = await other.customer();
    // The process has seen the namespace of the first server.
    await sleep(2_500);
    const erasurePath = `/apps/${other.app.id}/erasures/`;
    const { erasureId } = await other.ok<{ erasureId: string }>(
      'DELETE',
      `/apps/${other.app.id}/users/${await other.customer()}`,
    );
    await eventually('the erasure waits for its second search', async () => {
      const { n } = await patient.sql.one<{ n: number }>`
        select count(*)::int as n from erasures where id = ${erasureId} and relayed_at is not null and settles_at is not null`;
      return n === 1;
    });
    await server.stop();
    // There is no outcome to wait for.
    other.sql = null;
    const { body } = await other.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 2_000 })));
    expect(body).toMatchObject({ pending: true });
    server = await startServer();
    await eventually('the delivery is completed', async () => {
      const row = await patient.sql.one<{ commissionId: string | null }>`
        select commission_id from deliveries where event_id = ${body.eventId}`;
      return row.commissionId !== null;
    });
    await eventually('the erasure is complete', async () => {
      const { status } = await other.ok<{ status: string }>('GET', erasurePath + erasureId);
      return status === 'complete';
    });
    await patient.close();
  });

  // @promise webhook-without-temporal, relay-after-outage, temporal-degraded
  test('a delivery during an outage of Temporal is stored, returns pending and is completed by a new, empty server', async () => {
    const user = await founder.customer();
    await server.stop();
    // There is no outcome to wait for.
    founder.sql = null;
    const response = await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 2_000 })));
    founder.sql = service.sql;
    expect(response).toMatchObject({ status: 200, body: { pending: true, commissionId: null } });
    const ready = await founder.call('GET', '/readyz');
    expect(ready.status).toBe(200);
    await eventually('readyz names Temporal as degraded', async () =>
      (await founder.call('GET', '/readyz')).text.includes('degraded'),
    );

    // A new server in memory has no data of the old one.
    server = await startServer();
    await eventually('the relay starts the delivery and it is completed', async () => {
      const row = await service.sql.one<{ commissionId: string | null }>`
          select commission_id from deliveries where event_id = ${response.body.eventId}`;
      return row.commissionId !== null;
    });
  });

  // @promise sweep-replaces-timer
  test('the sweep matures a commission whose hold timer was lost', async () => {
    const user = await founder.customer();
    const { body } = await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
    const commission = async () =>
      await service.sql.maybe<{ id: string; status: string }>`
        select id, status from commissions where event_id = ${body.eventId}`;
    await eventually('the commission is written', async () => (await commission()) !== undefined);
    const connection = await Connection.connect({ address: server.address });
    const client = new Client({ connection });
    const timer = client.workflow.getHandle(`hold:${(await commission())?.id}`);
    await eventually(
      'its hold timer is terminated',
      async () =>
        await timer.terminate('terminated by the test').then(
          () => true,
          () => false,
        ),
    );
    // A month passes for it. The guards of the schema, which let no due date change, are off for this statement.
    await runOn(
      service.database.url,
      `set session_replication_role = replica;
       update commissions set due_at = now() where id = '${(await commission())?.id}'`,
    );
    expect(await commission()).toMatchObject({ status: 'pending' });
    await client.workflow.execute('sweep', {
      workflowId: 'sweep-test',
      taskQueue: backgroundQueue(service.taskQueue),
    });
    await connection.close();
    expect(await commission()).toMatchObject({ status: 'matured' });
  });
});
