/** @jest-environment <rootDir>/test/jest/isolated.js */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import type { LocalTemporal } from '../../temporal/local-server/server.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

/** How often the service sets up the server in these tests. */
const SET_UP_PAUSE_MS = 100;

let server: LocalTemporal;
let service: TestService;
let founder: Founder;
const lines: { level: number; msg: string }[] = [];

/** A server whose namespace has no room for another search attribute of the type Keyword. */
beforeAll(async () => {
  const names = Array.from({ length: 10 }, (_, index) => [`Taken${index}`, 'Keyword']);
  server = await startLocalTemporal({ searchAttributes: Object.fromEntries(names), onProgress: () => {} });
  service = await startTestService({
    temporalAddress: server.address,
    settings: { setUpPauseMs: SET_UP_PAUSE_MS, metricsPort: 0 },
    logger: pino(
      { level: 'warn' },
      { write: (line) => void lines.push(JSON.parse(line) as { level: number; msg: string }) },
    ),
  });
  await service.whenReady(20_000);
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
  await server.stop();
});

describe('a Temporal server that refuses the search attribute', () => {
  // @promise set-up-apart-from-liveness
  test('a webhook is processed, and /readyz is degraded and names the refused search attribute', async () => {
    const user = await founder.customer();
    for (let purchase = 0; purchase < 3; purchase += 1) {
      expect((await founder.purchase(user, 10)).body.commissionId).toMatch(/^com_/);
    }
    const response = await fetch(new URL('/readyz', service.metricsUrl ?? ''));
    const body = (await response.json()) as { status: string; checks: unknown };
    expect([response.status, body.status]).toEqual([200, 'degraded']);
    expect(body.checks).toEqual([
      { name: 'secrets', ok: true, detail: null },
      { name: 'database', ok: true, detail: null },
      { name: 'database_statements', ok: true, detail: null },
      { name: 'clock', ok: true, detail: null },
      { name: 'payouts', ok: true, detail: null },
      { name: 'temporal', ok: true, detail: null },
      {
        name: 'temporal_set_up',
        ok: false,
        detail: expect.stringMatching(
          /^The namespace default lacks the search attributes DeliveryState, AppId, Provider \(/,
        ),
      },
    ]);
  });

  // @promise slow-path-without-search-attribute
  test('a delivery whose fast path fails runs its slow path without the search attribute and heals', async () => {
    const user = await founder.customer();
    await runOn(
      service.database.url,
      `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'the test broke this step'; end $$;
       create trigger test_breaks before insert on commissions for each row execute function test_breaks();`,
    );
    const { body } = await founder.purchase(user, 10);
    expect(body).toMatchObject({ pending: true });
    const row = async () =>
      await service.sql.one<{ id: string; status: string; lastError: string | null }>`
        select id, processing_status as status, last_error from deliveries where event_id = ${body.eventId}`;
    await eventually('the slow path reports its failed step', async () =>
      ((await row()).lastError ?? '').startsWith('writeCommission: '),
    );
    await runOn(service.database.url, 'drop trigger test_breaks on commissions');
    await eventually('the delivery is processed', async () => (await row()).status === 'processed');
  });

  test('a set-up that fails again and again is logged once', async () => {
    await sleep(2_500);
    const warnings = lines.filter(({ msg }) => msg.includes('DeliveryState'));
    expect(warnings).toHaveLength(1);
  });

  // @promise workflows-found-by-app
  test('search attributes that the namespace loses while the service runs delay no webhook, and come back', async () => {
    const connection = await Connection.connect({ address: server.address });
    const remove = async (...searchAttributes: string[]) =>
      await connection.operatorService.removeSearchAttributes({ namespace: 'default', searchAttributes });
    const client = new Client({ connection });
    const buy = async () => {
      const { body } = await founder.purchase(await founder.customer(), 10);
      expect(body).toMatchObject({ commissionId: expect.stringMatching(/^com_/) });
      const { id } = await service.sql.one<{ id: string }>`
        select id from deliveries where event_id = ${body.eventId ?? ''}`;
      return (await client.workflow.getHandle(`delivery:${id}`).describe()).searchAttributes;
    };
    const all = { AppId: [founder.app.id], Provider: ['revenuecat'] };
    const isComplete = async () => isDeepStrictEqual(await buy(), all);
    try {
      await remove('Taken0', 'Taken1', 'Taken2');
      await eventually('deliveries have search attributes', isComplete);
      // No process knows of this before its next start.
      await remove('AppId', 'Provider');
      await buy();
      await eventually('deliveries have search attributes again', isComplete);
    } finally {
      await connection.close();
    }
  });
});
