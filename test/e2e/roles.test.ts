import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { pino } from 'pino';
import { createMatureActivities } from '../../activities/mature.ts';
import { listenTo } from '../../src/db/notifications.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { insertEarning } from '../support/ledger.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { BACKGROUND_CONCURRENCY } from '../../temporal/worker.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { countWaiting, untilWaiting } from '../support/waiting.ts';

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
  const { id } = await api.sql.one<{
    id: string;
  }>`select id from deliveries where event_id = ${body.eventId}`;
  const sent = () => payloads.map((payload) => JSON.parse(payload) as Record<string, unknown>);
  // A step that runs again sends its result again.
  const outcome = () => sent().find(({ deliveryId }) => deliveryId === id);
  const settled = () => sent().find((result) => 'payoutRequestId' in result);
  await eventually('both were sent', async () => outcome() !== undefined && settled() !== undefined);
  await listener.stop();
  const { eventId, commissionId } = body;
  expect(outcome()).toEqual({ deliveryId: id, outcome: { status: 'done', eventId, commissionId } });
  expect(settled()).toEqual({ payoutRequestId: expect.stringMatching(/^req_/) });
});

// @promise background-work-yields
test('webhooks and exports are answered while sixty due hold timers wait for the database', async () => {
  const occurredAt = Date.now() - 40 * DAY_MS;
  const insertDue = async (of: Founder, matured: boolean) =>
    await insertEarning(
      api,
      { appId: of.app.id },
      {
        affiliateId: of.affiliateId,
        amountCents: 100,
        occurredAt,
        dueAt: occurredAt + 30 * DAY_MS,
        matured,
      },
    );
  // Those that wait lock commissions of another app.
  const other = await setUpFounder(api);
  await insertDue(founder, true);
  const maturedHolds = async () =>
    (await api.sql`select from commissions where app_id = ${other.app.id} and status = 'matured'`).length;
  const gate = new pg.Client(api.database.url);
  await gate.connect();
  try {
    await gate.query(`
      select pg_advisory_lock(60);
      create function wait_at_gate() returns trigger language plpgsql as $$ begin
        perform pg_advisory_xact_lock_shared(60);
        return new;
      end $$;
      create trigger wait_at_gate before update on commissions for each row
        when (new.app_id = '${other.app.id}') execute function wait_at_gate()`);
    // Only now: a sweep that an earlier test started would mature them.
    const holds = await Promise.all(Array.from({ length: 60 }, async () => await insertDue(other, false)));
    await Promise.all(
      holds.map(async (commissionId) => {
        await api.temporal.workflow.start('hold', {
          workflowId: `hold:${commissionId}`,
          taskQueue: backgroundQueue(api.taskQueue),
          args: [{ commissionId }],
        });
      }),
    );
    await untilWaiting(api.sql);
    // It is not due yet, so nothing sweeps.
    const user = await founder.customer(founder.slug, Date.now() - DAY_MS);
    const bought = await founder.purchase(user, 10, { occurredAt: Date.now() });
    expect(bought.body.commissionId).toMatch(/^com_/);
    const csv = await founder.exportCsv();
    expect([csv.status, csv.text.trimEnd().split('\r\n').length]).toEqual([200, 2]);
    // Of the 20 connections, the activities take `BACKGROUND_CONCURRENCY` and one for a local activity. That one is given up
    // after 1.5 s, and its statement waits on for up to 4 s.
    expect(await countWaiting(api.sql)).toBeLessThanOrEqual(3 * BACKGROUND_CONCURRENCY);
    expect(await maturedHolds()).toBe(0);
  } finally {
    await gate.end();
  }
  await eventually('all are matured', async () => (await maturedHolds()) === 60);
});

// @promise sweep-whole-backlog
describe('a page of a sweep', () => {
  // No worker runs on this database, whose sweeps would take the rows first: one that a purchase has started may still be retried.
  let quiet: TestApi;
  let app: TestApp;
  let affiliateId: string;

  beforeAll(async () => {
    quiet = await startTestApi();
    app = await newApp(quiet);
    affiliateId = await newAffiliate(quiet, app);
  });
  afterAll(() => quiet.close());

  const logger = pino({ level: 'silent' });
  const pagesOfTwo = (sql: Sql) => createMatureActivities({ sql, logger, sweepPage: 2 });

  test('a page of a sweep matures at most its size, whatever plan it has, and says whether more may be overdue', async () => {
    const earning = { affiliateId, amountCents: 100, occurredAt: 0, dueAt: 0 };
    for (let n = 0; n < 5; n += 1) await insertEarning(quiet, app, earning);
    // A nested loop would run a subquery once for each row.
    const settings = {
      enable_hashjoin: 'off',
      enable_mergejoin: 'off',
      enable_hashagg: 'off',
      enable_sort: 'off',
    };
    const sql = connect({ url: quiet.database.url, settings });
    const ledger = pagesOfTwo(sql);
    const pages = [await ledger.sweepPage(), await ledger.sweepPage(), await ledger.sweepPage()];
    await sql.close();
    expect(pages).toEqual([
      { matured: 2, more: true },
      { matured: 2, more: true },
      { matured: 1, more: false },
    ]);
  });

  test('a page of a sweep closes at most its size of abandoned payout requests, and the pages after it close all', async () => {
    const ids = Array.from({ length: 5 }, () => newId('payoutRequest'));
    await quiet.sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, expires_at)
      select x.id, ${app.appId}, ${affiliateId}, k.account_id, k.id, now()
        from unnest(${ids}::text[]) x (id), (select id, account_id from account_keys limit 1) k`;
    const open = async () =>
      (await quiet.sql`select from payout_requests where id = any(${ids}::text[]) and status = 'open'`)
        .length;
    const ledger = pagesOfTwo(quiet.sql);
    expect(await ledger.sweepPage()).toMatchObject({ more: true });
    expect(await open()).toBe(3);
    while ((await ledger.sweepPage()).more);
    expect(await open()).toBe(0);
  });
});

// @promise sweep-whole-backlog
test('a sweep matures all overdue commissions', async () => {
  const { affiliateId } = await founder.newAffiliate();
  const earning = { affiliateId, amountCents: 100, occurredAt: 0, dueAt: 0 };
  for (let n = 0; n < 5; n += 1) await insertEarning(api, { appId: founder.app.id }, earning);
  await api.temporal.workflow.execute('sweep', {
    workflowId: `sweep:${api.taskQueue}`,
    taskQueue: backgroundQueue(api.taskQueue),
  });
  // A sweep that an earlier purchase has started may be about to commit some of them.
  await eventually('none is overdue', async () => {
    const overdue = await api.sql`select from commissions where status = 'pending' and due_at <= now()`;
    return overdue.length === 0;
  });
});
