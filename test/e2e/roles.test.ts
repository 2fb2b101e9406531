import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createLedgerActivities } from '../../activities/ledger.ts';
import { listenTo } from '../../src/db/notifications.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { insertEarning } from '../support/ledger.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { BACKGROUND_CONCURRENCY } from '../../temporal/worker.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let api: TestService;
let worker: TestService;
let founder: Founder;

beforeAll(async () => {
  api = await startTestService({ settings: { role: 'api' } });
  worker = await startTestService({
    settings: {
      role: 'worker',
      databaseUrl: api.database.url,
      shortestHoldMs: 2 * MINUTE_MS,
    },
  });
  founder = await setUpFounder(api);
});
afterAll(async () => {
  await api.close();
  await worker.close();
});

// @promise role-api-and-worker
test('a webhook and an export succeed when the API and the worker are separate services', async () => {
  const user = await founder.customer();
  const bought = await founder.purchase(user, 10);
  expect(bought.body.commissionId).toMatch(/^com_/);
  const csv = await founder.exportCsv();
  expect(csv.status).toBe(200);
  expect(csv.text.trimEnd().split('\r\n')).toHaveLength(2);
});

// @promise due-at-once-swept
test('a commission that is due when it is written matures within seconds, without a timer or a Schedule', async () => {
  const { body } = await founder.purchase(await founder.customer(), 10);
  await eventually('it matured', async () => {
    const { status } = await api.sql.one<{ status: string }>`
      select status from commissions where id = ${body.commissionId}`;
    return status === 'matured';
  });
});

// @promise outcome-from-the-commit
test('the worker sends an outcome to the API with its commit, as ids only', async () => {
  const payloads: string[] = [];
  const listener = listenTo({ url: api.database.url, channel: 'tributary_results' }, (payload) => {
    payloads.push(payload);
  });
  await eventually('it listens', async () => listener.isListening());
  const { body } = await founder.purchase(await founder.customer(), 10);
  await founder.exportCsv();
  await eventually('both were sent', async () => payloads.length >= 2);
  await listener.stop();
  const { id } = await api.sql.one<{
    id: string;
  }>`select id from deliveries where event_id = ${body.eventId}`;
  const [outcome, settled] = payloads.map((payload) => JSON.parse(payload) as object);
  const { eventId, commissionId } = body;
  expect(outcome).toEqual({ deliveryId: id, outcome: { status: 'done', eventId, commissionId } });
  expect(settled).toEqual({ payoutRequestId: expect.stringMatching(/^req_/) });
});

// @promise background-work-yields
test('webhooks and exports are answered while sixty due hold timers wait for the database', async () => {
  const { affiliateId } = await founder.newAffiliate();
  const occurredAt = Date.now() - 40 * DAY_MS;
  const dueAt = occurredAt + 30 * DAY_MS;
  const holds = await Promise.all(
    Array.from({ length: 60 }, () =>
      insertEarning(api, { appId: founder.app.id }, { affiliateId, amountCents: 100, occurredAt, dueAt }),
    ),
  );
  await runOn(
    api.database.url,
    // Once for each statement, so that a sweep that begins meanwhile does not lock sixty rows for half a minute.
    `create function test_stalls() returns trigger language plpgsql as $$ begin
       if coalesce(current_setting('test.stalled', true), '') = '' then
         perform set_config('test.stalled', '1', true), pg_sleep(0.5);
       end if;
       return new;
     end $$;
     create trigger test_stalls before update on commissions for each row
       when (new.status = 'matured' and new.affiliate_id = '${affiliateId}') execute function test_stalls();`,
  );
  const started = holds.map((commissionId) =>
    api.temporal.workflow.start('hold', {
      workflowId: `hold:${commissionId}`,
      taskQueue: backgroundQueue(api.taskQueue),
      args: [{ commissionId }],
    }),
  );
  await Promise.all(started);
  const { matured, maturing } = await api.sql.one<{ matured: number; maturing: number }>`
    select (select count(*)::int from commissions where affiliate_id = ${affiliateId} and status = 'matured') as matured,
           (select count(*)::int from pg_stat_activity
             where datname = current_database() and wait_event = 'PgSleep') as maturing`;
  const bought = await founder.purchase(await founder.customer(), 10);
  expect(bought.body.commissionId).toMatch(/^com_/);
  expect((await founder.exportCsv()).status).toBe(200);
  await runOn(api.database.url, 'drop trigger test_stalls on commissions; drop function test_stalls()');
  expect(matured).toBeLessThan(60);
  // Local activities and, if they time out, regular ones.
  expect(maturing).toBeLessThanOrEqual(2 * BACKGROUND_CONCURRENCY);
});

// @promise sweep-whole-backlog
test('a page of a sweep matures at most its size, whatever plan it has, and says whether more may be overdue', async () => {
  const { affiliateId } = await founder.newAffiliate();
  const earning = { affiliateId, amountCents: 100, occurredAt: 0, dueAt: 0 };
  for (let n = 0; n < 5; n += 1) await insertEarning(api, { appId: founder.app.id }, earning);
  // A nested loop would run a subquery once for each row.
  const settings = {
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    enable_hashagg: 'off',
    enable_sort: 'off',
  };
  const sql = connect({ url: api.database.url, settings });
  const logger = pino({ level: 'silent' });
  const ledger = createLedgerActivities({ sql, logger, onSettled: () => {}, sweepPage: 2 });
  const pages = [await ledger.sweepPage(), await ledger.sweepPage()];
  await sql.close();
  expect(pages).toEqual([
    { matured: 2, more: true },
    { matured: 2, more: true },
  ]);
  await api.temporal.workflow.execute('sweep', {
    workflowId: `sweep:${api.taskQueue}`,
    taskQueue: backgroundQueue(api.taskQueue),
  });
  expect(await api.sql`select from commissions where status = 'pending' and due_at <= now()`).toEqual([]);
});

// @promise sweep-whole-backlog
test('a page of a sweep closes at most its size of abandoned payout requests, and the sweep closes all', async () => {
  const { affiliateId } = await founder.newAffiliate();
  const ids = Array.from({ length: 5 }, () => newId('payoutRequest'));
  await api.sql`
    insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, expires_at)
    select x.id, ${founder.app.id}, ${affiliateId}, k.account_id, k.id, now()
      from unnest(${ids}::text[]) x (id), (select id, account_id from account_keys limit 1) k`;
  const open = async () =>
    (await api.sql`select from payout_requests where id = any(${ids}::text[]) and status = 'open'`).length;
  const logger = pino({ level: 'silent' });
  const ledger = createLedgerActivities({ sql: api.sql, logger, onSettled: () => {}, sweepPage: 2 });
  expect(await ledger.sweepPage()).toMatchObject({ more: true });
  expect(await open()).toBe(3);
  while ((await ledger.sweepPage()).more);
  expect(await open()).toBe(0);
});
