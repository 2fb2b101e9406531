import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pino from 'pino';
import { createCalendarActivities } from '../../activities/calendar.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { draftScheduledRun } from '../../src/db/payout-run-drafts.ts';
import type { AppId } from '../../src/domain/ids.ts';
import type { PayoutSchedule } from '../../src/domain/payout-schedule.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';

let api: TestApi;
let app: TestApp;
let creator: string;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  creator = await newAffiliate(api, app);
});

const path = (rest: string) => `/apps/${app.appId}${rest}`;
const call = async <T = { code: string }>(method: string, rest: string, body?: object) =>
  await api.call<T>(method, path(rest), { key: app.key, ...(body && { body }) });
const EVERY_DAY_15 = { day: 15, timezone: 'Europe/Berlin', withoutPayee: 'include' } as const;
const setSchedule = async (schedule: Partial<PayoutSchedule> | null = EVERY_DAY_15) =>
  await call<{ payoutSchedule?: PayoutSchedule }>('PATCH', '/settings', { payoutSchedule: schedule });
/** Lets the schedule be as old as it has to be, so that the test may choose the time. */
const madeLongAgo = async () =>
  await api.sql`update apps set payout_schedule_since = '2020-01-01' where id = ${app.appId}`;
const earn = async (amountCents = 1_000) =>
  await insertEarning(api, app, {
    affiliateId: creator,
    amountCents,
    occurredAt: Date.now() - 60 * DAY_MS,
    dueAt: Date.now() - 30 * DAY_MS,
  });
const draftAt = async (now: string) => await draftScheduledRun(api.sql, app.appId as AppId, Date.parse(now));

interface Run {
  readonly id: string;
  readonly status: string;
  readonly scheduledMonth?: string;
  readonly minimumCents: number;
  readonly totalCents: number;
  readonly createdBy: { id: string };
}
const runs = async () => (await call<{ items: Run[] }>('GET', '/payout-runs')).body.items;
const monthsDone = async () =>
  await api.sql<{ month: string; runId: string | null }>`
    select month, run_id from payout_schedule_months where app_id = ${app.appId} order by month`;

describe('a payout schedule', () => {
  // @promise schedule-drafts, schedule-once
  test('drafts one run for a month with its terms, whatever drafts at the same time, and says in the run and its audit row who did', async () => {
    expect((await setSchedule({ ...EVERY_DAY_15, minimumCents: 500 })).body.payoutSchedule).toEqual({
      ...EVERY_DAY_15,
      minimumCents: 500,
    });
    await madeLongAgo();
    await earn(1_000);
    const results = await Promise.all(
      Array.from({ length: 8 }, async () => await draftAt('2026-11-15T00:00:00+01:00')),
    );
    expect(results.filter((result) => result === 'drafted')).toHaveLength(1);
    expect(await draftAt('2026-11-30T12:00:00Z')).toBe('not_due');
    const [run, ...others] = await runs();
    expect(others).toEqual([]);
    expect(run).toMatchObject({
      status: 'draft',
      scheduledMonth: '2026-11',
      minimumCents: 500,
      totalCents: 1_000,
    });
    const audit = await api.sql`
      select actor_kind, action, after from audit_rows where object_kind = 'payout_run' and object_id = ${run?.id ?? ''}`;
    expect(audit).toMatchObject([
      { actorKind: 'service', action: 'created', after: { scheduledMonth: '2026-11', status: 'draft' } },
    ]);
    // It pays nothing.
    expect(await api.sql`select from payouts where app_id = ${app.appId}`).toEqual([]);
  });

  // @promise schedule-missed
  test('makes up the last month that was missed once, and no earlier one, also when the clock jumps', async () => {
    await setSchedule();
    await madeLongAgo();
    await earn();
    expect(await draftAt('2026-11-20T12:00:00Z')).toBe('drafted');
    // The service was away for four months.
    expect(await draftAt('2027-03-10T12:00:00Z')).toBe('drafted');
    expect(await draftAt('2027-03-10T12:05:00Z')).toBe('not_due');
    expect((await monthsDone()).map(({ month }) => month)).toEqual(['2026-11', '2027-02']);
    // The clock was ahead, and is corrected.
    expect(await draftAt('2026-12-01T12:00:00Z')).toBe('not_due');
    expect((await runs()).map(({ status }) => status)).toEqual(['draft', 'cancelled']);
  });

  test('that is made after its day waits for the next month', async () => {
    await setSchedule();
    await earn();
    await api.sql`update apps set payout_schedule_since = '2026-11-16T12:00:00Z' where id = ${app.appId}`;
    expect(await draftAt('2026-12-14T12:00:00Z')).toBe('not_due');
    // Other terms do not begin the time anew, another day does.
    await setSchedule({ ...EVERY_DAY_15, minimumCents: 1 });
    const since = async () =>
      (
        await api.sql.one<{
          at: string;
        }>`select payout_schedule_since::text as at from apps where id = ${app.appId}`
      ).at;
    expect(await since()).toContain('2026-11-16');
    await setSchedule({ ...EVERY_DAY_15, day: 16 });
    expect(await since()).not.toContain('2026-11-16');
    await setSchedule();
    await api.sql`update apps set payout_schedule_since = '2026-11-16T12:00:00Z' where id = ${app.appId}`;
    expect(await draftAt('2026-12-15T12:00:00Z')).toBe('drafted');
  });

  // @promise schedule-empty
  test('drafts nothing where nobody would be paid, and is done with the month', async () => {
    await setSchedule({ ...EVERY_DAY_15, minimumCents: 5_000 });
    await madeLongAgo();
    await earn(1_000);
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('nothing_due');
    expect(await runs()).toEqual([]);
    await earn(10_000);
    expect(await draftAt('2026-11-16T12:00:00Z')).toBe('not_due');
    expect(await monthsDone()).toEqual([{ month: '2026-11', runId: null }]);
  });

  // @promise schedule-waits
  test('leaves the draft of a person and a run that is paid alone, and drafts when they are over', async () => {
    await setSchedule();
    await madeLongAgo();
    await earn();
    const { body: own } = await call<Run>('POST', '/payout-runs', { withoutPayee: 'include' });
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('waits');
    await call('POST', `/payout-runs/${own.id}/approve`, { expectedTotalCents: 1_000 });
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('waits');
    expect(await runs()).toMatchObject([{ id: own.id, status: 'approved' }]);
    await call('POST', `/payout-runs/${own.id}/cancel`);
    await runOn(
      api.database.url,
      `alter table payout_runs disable trigger payout_runs_transition;
       update payout_runs set status = 'settled', paid_count = 0, paid_cents = 0, ended_at = now() where id = '${own.id}';
       alter table payout_runs enable trigger payout_runs_transition`,
    );
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('drafted');
    // A person may replace the draft of the schedule, which then has its month.
    const { body: second } = await call<Run>('POST', '/payout-runs', { withoutPayee: 'include' });
    expect(second.scheduledMonth).toBeUndefined();
    expect(await draftAt('2026-11-15T12:05:00Z')).toBe('not_due');
    expect((await runs()).map(({ status }) => status)).toEqual(['draft', 'cancelled', 'settled']);
  });

  // @promise schedule-approver
  test('makes its key one that has part in the run: where another key has to approve, that one cannot', async () => {
    await setSchedule();
    await madeLongAgo();
    await earn();
    await call('PATCH', '/settings', { payoutApproval: 'another_key' });
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('drafted');
    const [run] = await runs();
    const approve = async (key: string) =>
      await api.call<{ code?: string }>('POST', path(`/payout-runs/${run?.id}/approve`), {
        key,
        body: { expectedTotalCents: 1_000 },
      });
    const refused = await approve(app.key);
    expect([refused.status, refused.body.code]).toEqual([409, 'another_approver_needed']);
    const { key: another } = await createAccountKey(api.sql, app.accountId, ['read', 'payout']);
    expect((await approve(another)).status).toBe(202);
  });

  test('an empty draft of a person, which nobody can approve, is replaced', async () => {
    await setSchedule();
    await madeLongAgo();
    const { body: own } = await call<Run>('POST', '/payout-runs', { withoutPayee: 'include' });
    await earn();
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('drafted');
    expect(await runs()).toMatchObject([{ status: 'draft' }, { id: own.id, status: 'cancelled' }]);
  });

  test('a draft of a person that has expired is replaced', async () => {
    await setSchedule();
    await madeLongAgo();
    await earn();
    const { body: own } = await call<Run>('POST', '/payout-runs', { withoutPayee: 'include' });
    await runOn(
      api.database.url,
      `alter table payout_runs disable trigger payout_runs_transition;
       update payout_runs set created_at = created_at - interval '8 days', expires_at = expires_at - interval '8 days' where id = '${own.id}';
       alter table payout_runs enable trigger payout_runs_transition`,
    );
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('drafted');
  });

  test('a process that dies between the draft and its month leaves neither', async () => {
    await setSchedule();
    await madeLongAgo();
    await earn();
    await runOn(
      api.database.url,
      `create function test_dies() returns trigger language plpgsql as $$ begin raise exception 'killed'; end $$;
       create trigger test_dies before insert on payout_schedule_months for each row execute function test_dies()`,
    );
    await expect(draftAt('2026-11-15T12:00:00Z')).rejects.toThrow('killed');
    await runOn(
      api.database.url,
      'drop trigger test_dies on payout_schedule_months; drop function test_dies()',
    );
    expect(await runs()).toEqual([]);
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('drafted');
    expect(await runs()).toHaveLength(1);
  });

  test('an app that fails does not stop those after it, and every page of apps is read', async () => {
    const now = new Date();
    const today = { day: Math.min(28, now.getUTCDate()), timezone: 'UTC', withoutPayee: 'include' } as const;
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      app = await newApp(api);
      creator = await newAffiliate(api, app);
      await earn();
      await setSchedule(today);
      await madeLongAgo();
      ids.push(app.appId);
    }
    ids.sort();
    const broken = ids[1] ?? '';
    await runOn(
      api.database.url,
      `create function test_breaks() returns trigger language plpgsql as $$ begin if new.app_id = '${broken}' then raise exception 'broken'; end if; return new; end $$;
       create trigger test_breaks before insert on payout_runs for each row execute function test_breaks()`,
    );
    const activities = createCalendarActivities({
      sql: api.sql,
      logger: pino({ level: 'silent' }),
      calendarPage: 2,
    });
    const draftAll = async () => {
      let after: string | null = '';
      let count = 0;
      while (after !== null) {
        const page: { count: number; next: string | null } = await activities.draftScheduledRuns(after);
        count += page.count;
        after = page.next;
      }
      return count;
    };
    await draftAll();
    await runOn(api.database.url, 'drop trigger test_breaks on payout_runs; drop function test_breaks()');
    const drafted = await api.sql<{ appId: string }>`
      select app_id from payout_runs where app_id = any(${ids}::text[]) order by app_id`;
    expect(drafted.map(({ appId }) => appId)).toEqual(ids.filter((id) => id !== broken));
    expect(await draftAll()).toBe(1);
    expect(await draftAll()).toBe(0);
  });
});

test('an app whose time zone the service does not know stops the draft of no other app', async () => {
  const [before, after] = [await newApp(api), await newApp(api)].toSorted((a, b) =>
    a.appId < b.appId ? -1 : 1,
  );
  for (const each of [before, after] as TestApp[]) {
    app = each;
    creator = await newAffiliate(api, each);
    await setSchedule();
    await madeLongAgo();
    await earn();
  }
  await api.sql`
    update apps set payout_schedule = payout_schedule || '{"timezone": "Mars/Base"}' where id = ${before?.appId ?? ''}`;
  const activities = createCalendarActivities({ sql: api.sql, logger: pino({ level: 'silent' }) });
  await activities.draftScheduledRuns('');
  expect(await runs()).toMatchObject([{ status: 'draft' }]);
});

describe('the setting payoutSchedule', () => {
  test.each([
    [{ day: 0, timezone: 'UTC' }],
    [{ day: 29, timezone: 'UTC' }],
    [{ day: 1.5, timezone: 'UTC' }],
    [{ day: 15 }],
    [{ day: 15, timezone: 'Mars/Olympus' }],
    [{ day: 15, timezone: '+02:00' }],
    [{ day: 15, timezone: 'UTC', minimumCents: -1 }],
    [{ day: 15, timezone: 'UTC', hour: 8 }],
    ['monthly'],
  ])('refuses %j', async (payoutSchedule) => {
    const { status, body } = await call('PATCH', '/settings', { payoutSchedule });
    expect([status, body.code]).toEqual([400, 'invalid_request']);
  });

  // @promise schedule-permission
  test('needs the permission payout for a change, and null ends it', async () => {
    const { key: writer } = await createAccountKey(api.sql, app.accountId, ['read', 'write']);
    const set = async (payoutSchedule: object | null, as: string) =>
      (await api.call('PATCH', path('/settings'), { key: as, body: { payoutSchedule } })).status;
    expect(await set(EVERY_DAY_15, writer)).toBe(403);
    expect(await set(EVERY_DAY_15, app.key)).toBe(200);
    await madeLongAgo();
    await earn();
    expect(await set(null, app.key)).toBe(200);
    expect((await call<{ payoutSchedule?: object }>('GET', '/settings')).body.payoutSchedule).toBeUndefined();
    expect(await draftAt('2026-11-15T12:00:00Z')).toBe('not_due');
  });
});

describe('the settings of notifications', () => {
  const set = async (change: object, key = app.key) =>
    await api.call<{ notificationEmails?: string[]; weeklyReport?: boolean; code?: string }>(
      'PATCH',
      path('/settings'),
      { key, body: change },
    );

  // @promise notify-permission
  test('need the permission setup for a change of addresses, which no audit row has', async () => {
    const { key: writer } = await createAccountKey(api.sql, app.accountId, ['read', 'write']);
    const ANN = 'ann@lantern.example';
    expect((await set({ notificationEmails: [ANN] }, writer)).status).toBe(403);
    expect((await set({ notificationEmails: [ANN, 'ANN@lantern.example'] })).body.notificationEmails).toEqual(
      [ANN],
    );
    // What keeps its value needs nothing, and the report only `write`.
    const { status, body } = await set({ notificationEmails: [ANN], weeklyReport: false }, writer);
    expect([status, body.weeklyReport]).toEqual([200, false]);
    expect((await set({ notificationEmails: [] }, writer)).status).toBe(403);
    const rows = await api.sql<{ after: object }>`
      select after from audit_rows where object_kind = 'app' and object_id = ${app.appId} order by changed_at`;
    expect(JSON.stringify(rows)).not.toContain('ann@');
    expect(JSON.stringify(rows)).toContain('notificationEmails');
    expect((await set({ notificationEmails: [], weeklyReport: true })).body).not.toHaveProperty(
      'notificationEmails',
    );
  });

  test.each([
    [['not an address']],
    [['ann@lantern.example\nBcc: all@example.com']],
    [Array.from({ length: 11 }, (_, n) => `ann-${n}@lantern.example`)],
    ['ann@lantern.example'],
    [null],
    [[`${'a'.repeat(320)}@lantern.example`]],
  ])('refuse %j', async (notificationEmails) => {
    const { status, body } = await set({ notificationEmails });
    expect([status, body.code]).toEqual([400, 'invalid_request']);
  });

  test('a new app can have all of them, for a key that may', async () => {
    const { key: founder } = await createAccountKey(api.sql, app.accountId, ['read', 'setup', 'payout']);
    const { key: setup } = await createAccountKey(api.sql, app.accountId, ['read', 'setup']);
    const body = {
      name: 'Another app',
      payoutSchedule: EVERY_DAY_15,
      notificationEmails: ['ann@lantern.example'],
      weeklyReport: false,
    };
    expect((await api.call('POST', '/apps', { key: setup, body })).status).toBe(403);
    const created = await api.call('POST', '/apps', { key: founder, body });
    expect([created.status, created.body]).toEqual([
      201,
      expect.objectContaining({ ...body, payoutSchedule: { ...EVERY_DAY_15, minimumCents: 0 } }),
    ]);
  });
});
