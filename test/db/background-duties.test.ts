import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createAlertActivities } from '../../activities/alerts.ts';
import { createCalendarActivities } from '../../activities/calendar.ts';
import { createConvertActivities } from '../../activities/convert.ts';
import { createRatesActivities } from '../../activities/rates.ts';
import { databaseClock } from '../../src/db/clock.ts';
import { DUTIES, readDuties } from '../../src/db/duties.ts';
import { importRates } from '../../src/db/rates.ts';
import { instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { mondayOfReport } from '../../src/domain/weekly-report.ts';
import { startRelay } from '../../temporal/relay.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import { bodyOf, fakeSecret, PROOFS, stripeInvoicePaid } from '../support/provider-fixtures.ts';

let api: TestApi;
let app: TestApp;
const logger = pino({ level: 'silent' });

beforeAll(async () => {
  ({ api } = await startProcessingApi());
  api.clock.now = Date.now();
});
beforeEach(async () => {
  app = await newApp(api, undefined, { commissionRateBps: 2000 });
});
afterAll(async () => {
  await api.close();
});

/** Returns a database that refuses the statements with a text. */
const refusing = (text: string): Sql =>
  new Proxy(api.sql, {
    apply: async (target, self, args: [TemplateStringsArray, ...unknown[]]) => {
      if (args[0].join('').includes(text)) throw new Error(`refused: ${text}`);
      return await Reflect.apply(target, self, args);
    },
  });

/** Runs statements that break a table for one value, then `work`, and repairs the table. */
async function whileBroken(
  { table, when, sqlstate }: { table: string; when: string; sqlstate: string },
  work: () => Promise<void>,
): Promise<void> {
  await runOn(
    api.database.url,
    `create function test_breaks() returns trigger language plpgsql as $$
       begin if ${when} then raise exception using errcode = '${sqlstate}', message = 'broken'; end if; return new; end $$;
     create trigger test_breaks before insert on ${table} for each row execute function test_breaks()`,
  );
  try {
    await work();
  } finally {
    await runOn(api.database.url, `drop trigger test_breaks on ${table}; drop function test_breaks()`);
  }
}

/** Creates an app whose weekly report is due. */
async function newReportedApp(): Promise<string> {
  const { appId, key } = await newApp(api);
  const body = { notificationEmails: ['ann@lantern.example'] };
  expect((await api.call('PATCH', `/apps/${appId}/settings`, { key, body })).status).toBe(200);
  await api.sql`
    update apps set notifications_since = ${instant(mondayOfReport(Date.now()))} where id = ${appId}`;
  return appId;
}

/** Starts a relay whose workflows do nothing. */
function startRelayOn(sql: Sql) {
  const started: string[] = [];
  const none = async () => 'running' as const;
  const workflows = {
    isReachable: () => true,
    runDelivery: none,
    runHeal: none,
    runWebhook: none,
    runEmail: none,
    startInBackground: (workflow: string) => void started.push(workflow),
    startPayoutRun: () => {},
    startReprocess: () => {},
  };
  const relay = startRelay({ sql, workflows, logger, overdueMs: 1_000, pauseMs: DAY_MS });
  return { relay, started };
}

// @promise duties-independent
test('the weekly report of one app that cannot be written stops that of no other app', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push(await newReportedApp());
  ids.sort();
  const broken = ids[1] ?? '';
  const activities = createCalendarActivities({ sql: api.sql, logger, calendarPage: 2 });
  const writeAll = async () => {
    let [count, failed] = [0, 0];
    for (let after: string | null = ''; after !== null;) {
      const page: Awaited<ReturnType<typeof activities.writeWeeklyReports>> =
        await activities.writeWeeklyReports(after);
      count += page.count;
      failed += page.failed ?? 0;
      after = page.next;
    }
    return { count, failed };
  };
  const written = async () =>
    (
      await api.sql<{ id: string }>`
        select app_id as id from weekly_reports where app_id = any(${ids}::text[]) order by app_id`
    ).map(({ id }) => id);
  await whileBroken(
    { table: 'weekly_reports', when: `new.app_id = '${broken}'`, sqlstate: 'P0001' },
    async () => {
      expect(await writeAll()).toEqual({ count: 4, failed: 1 });
      expect(await written()).toEqual(ids.filter((id) => id !== broken));
    },
  );
  expect(await writeAll()).toEqual({ count: 1, failed: 0 });
  expect(await writeAll()).toEqual({ count: 0, failed: 0 });
});

describe('payments that wait', () => {
  const secret = fakeSecret('stripe') ?? '';

  beforeEach(async () => {
    const body = { environment: 'production', secret };
    await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, { key: app.key, body });
  });

  /** Pays an invoice of a user of a creator. Returns the id of the payment. */
  async function pay(currency: string): Promise<string> {
    const userId = randomUUID();
    const at = Date.now() - 5 * DAY_MS;
    const install = { deviceId: userId, affiliateCode: await newAffiliate(api, app), firstOpenAt: at };
    expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
    const identify = { deviceId: userId, customerUserId: userId, identifiedAt: Date.now() };
    expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
    const invoiceId = `in_${randomUUID()}`;
    const body = bodyOf(
      stripeInvoicePaid({ userId, amount: 1_000, currency, invoiceId, occurredAt: Date.now() - DAY_MS }),
    );
    const path = `/webhooks/stripe/${app.appId}`;
    expect((await api.call('POST', path, { headers: PROOFS.stripe(body, secret), body })).status).toBe(200);
    return (
      await api.sql.one<{ id: string }>`
        select id from payments where app_id = ${app.appId} and ref = ${invoiceId}`
    ).id;
  }
  const mark = async (id: string) =>
    await api.sql`update payments set recheck_since = now() - interval '1 minute' where id = ${id}`;
  const isMarked = async (id: string) =>
    (await api.sql`select from payments where id = ${id} and recheck_since is not null`).length === 1;
  const hasEarned = async (id: string) =>
    (await api.sql`select from commissions where payment_id = ${id}`).length === 1;
  const give = async (currency: string) =>
    await importRates(api.sql, {
      source: 'operator',
      rates: [
        {
          currency,
          day: new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10),
          units: '1',
          worthUsd: '0.1',
        },
      ],
    });
  const activitiesOf = (sql: Sql) =>
    createConvertActivities({ sql, logger, onCommissions: () => {}, onBindings: () => {} });
  const MARKED = 'recheck_since <=';
  const CONVERTIBLE = 'with recursive waiting';

  // @promise duties-independent
  test('for a rate are evaluated although the marked ones cannot be searched, and the other way round', async () => {
    const [waiting, marked] = [await pay('sek'), await pay('usd')];
    await give('SEK');
    await mark(marked);
    const withoutMarked = await activitiesOf(refusing(MARKED)).convertPage(null);
    expect(withoutMarked).toEqual({ next: null, evaluated: 1, failed: 1 });
    expect([await hasEarned(waiting), await isMarked(marked)]).toEqual([true, true]);

    const later = await pay('nok');
    await give('NOK');
    const withoutConvertible = await activitiesOf(refusing(CONVERTIBLE)).convertPage(null);
    expect(withoutConvertible).toEqual({ next: null, evaluated: 1, failed: 1 });
    expect([await hasEarned(later), await isMarked(marked)]).toEqual([false, false]);
    // A page of payments with a rate that is not found ends the run: the next one begins with the marked ones.
    expect(await activitiesOf(refusing(CONVERTIBLE)).convertPage(marked)).toEqual({
      next: null,
      evaluated: 0,
      failed: 1,
    });
    expect(await activitiesOf(api.sql).convertPage(null)).toEqual({ next: null, evaluated: 1, failed: 0 });
    expect(await hasEarned(later)).toBe(true);
  });

  // @promise duties-independent
  test.each([
    ['those with a rate cannot be searched', CONVERTIBLE],
    ['deliveries cannot be claimed', 'update deliveries'],
    ['heals cannot be claimed', 'update bindings'],
  ])('and are marked are found by the relay although %s', async (_, refused) => {
    await mark(await pay('usd'));
    const { relay, started } = startRelayOn(refusing(refused));
    await relay.round().catch(() => {});
    await relay.stop();
    // Once or twice: a slow machine takes longer than the pause.
    expect(new Set(started)).toEqual(new Set(['convert']));
    await activitiesOf(api.sql).convertPage(null);
  });

  test('are tried again if neither those with a rate nor the marked ones can be searched', async () => {
    await expect(activitiesOf(refusing('')).convertPage(null)).rejects.toThrow('refused');
  });

  // @promise duties-independent
  test('are evaluated although the evaluation of one takes longer than a statement may', async () => {
    const [slow, other] = [await pay('dkk'), await pay('dkk')];
    await give('DKK');
    const when = `new.payment_id = '${slow}'`;
    await whileBroken({ table: 'commissions', when, sqlstate: '57014' }, async () => {
      expect(await activitiesOf(api.sql).convertPage(null)).toEqual({ next: null, evaluated: 1, failed: 1 });
    });
    expect([await hasEarned(slow), await hasEarned(other), await isMarked(slow)]).toEqual([
      false,
      true,
      true,
    ]);
    await activitiesOf(api.sql).convertPage(null);
    expect(await hasEarned(slow)).toBe(true);
  });

  // @promise duties-measured
  test('that all fail are no success of the conversions, also while they wait to be tried again', async () => {
    const failing = await pay('chf');
    await give('CHF');
    await api.sql`delete from duties`;
    const when = `new.payment_id = '${failing}'`;
    await whileBroken({ table: 'commissions', when, sqlstate: '57014' }, async () => {
      expect(await activitiesOf(api.sql).convertPage(null)).toEqual({ next: null, evaluated: 0, failed: 1 });
      const { relay, started } = startRelayOn(api.sql);
      await relay.round();
      await relay.stop();
      // Once or twice: a slow machine takes longer than the pause.
      expect([new Set(started), await readDuties(api.sql)]).toEqual([new Set(['convert']), new Map()]);
    });
    await activitiesOf(api.sql).convertPage(null);
    expect([await hasEarned(failing), [...(await readDuties(api.sql)).keys()]]).toEqual([
      true,
      ['conversions'],
    ]);
  });

  // @promise continue-as-new
  test('are all evaluated, each once and in the order of their positions, although a page has time for a few', async () => {
    // The order of the ids is another one than that of the currencies.
    const ids = [await pay('ron'), await pay('ron'), await pay('bgn'), await pay('bgn')];
    await give('RON');
    await give('BGN');
    const activities = createConvertActivities({
      sql: api.sql,
      logger,
      onCommissions: () => {},
      onBindings: () => {},
      convertPageMs: 0,
    });
    const evaluateAll = async () => {
      const pages: number[] = [];
      for (let next: string | null | undefined; next !== null;) {
        const page: Awaited<ReturnType<typeof activities.convertPage>> = await activities.convertPage(
          next ?? null,
        );
        pages.push(page.evaluated);
        next = page.next;
      }
      return pages;
    };
    expect(await evaluateAll()).toEqual([3, 1]);
    for (const _ of [1, 2, 3]) {
      const id = await pay('usd');
      await mark(id);
      ids.push(id);
    }
    ids.push(await pay('isk'));
    await give('ISK');
    // The marked ones take all the time of the first page.
    expect(await evaluateAll()).toEqual([3, 1]);
    for (const id of ids) expect([id, await hasEarned(id), await isMarked(id)]).toEqual([id, true, false]);
  });
});

describe('the time of the last success', () => {
  const doneSince = async (begin: number) => {
    const done = await readDuties(api.sql);
    return DUTIES.filter((duty) => (done.get(duty) ?? 0) >= begin);
  };
  const begin = async () => {
    await api.sql`delete from duties`;
    return await databaseClock(api.sql);
  };

  // @promise duties-measured
  test('is that of the last page of a duty of all apps, and of no page before it', async () => {
    await newApp(api);
    const at = await begin();
    const alerts = createAlertActivities({ sql: api.sql, logger, alertPage: 1 });
    const first = await alerts.evaluateAlerts('');
    expect([first.next, await doneSince(at)]).toEqual([expect.any(String), []]);
    await createAlertActivities({ sql: api.sql, logger, alertPage: 10_000 }).evaluateAlerts('');
    expect(await doneSince(at)).toEqual(['alerts']);
    const calendar = createCalendarActivities({ sql: api.sql, logger, calendarPage: 10_000 });
    await calendar.draftScheduledRuns('');
    expect(await doneSince(at)).toEqual(['alerts', 'drafts']);
    await calendar.writeWeeklyReports('');
    expect(await doneSince(at)).toEqual(['alerts', 'drafts', 'reports']);
  });

  // @promise duties-measured
  test('of the conversions is that of a page that could search, or of a relay that found nothing', async () => {
    const at = await begin();
    const convert = async (sql: Sql) =>
      await createConvertActivities({
        sql,
        logger,
        onCommissions: () => {},
        onBindings: () => {},
      }).convertPage(null);
    await convert(refusing('recheck_since <='));
    expect(await doneSince(at)).toEqual([]);
    await convert(api.sql);
    expect(await doneSince(at)).toEqual(['conversions']);
    const next = await begin();
    const failing = startRelayOn(refusing('recheck_since <='));
    await failing.relay.round().catch(() => {});
    await failing.relay.stop();
    expect(await doneSince(next)).toEqual([]);
    const idle = startRelayOn(api.sql);
    await idle.relay.round();
    await idle.relay.stop();
    expect(await doneSince(next)).toEqual(['conversions']);
  });

  // @promise duties-measured
  test('is not that of a page in which every app failed', async () => {
    await newReportedApp();
    await newReportedApp();
    const at = await begin();
    const calendar = createCalendarActivities({ sql: api.sql, logger, calendarPage: 10_000 });
    await whileBroken({ table: 'weekly_reports', when: 'true', sqlstate: 'P0001' }, async () => {
      await expect(calendar.writeWeeklyReports('')).rejects.toThrow('broken');
    });
    expect(await doneSince(at)).toEqual([]);
    await calendar.writeWeeklyReports('');
    expect(await doneSince(at)).toEqual(['reports']);
  });

  // @promise duties-measured
  test('of the drafts is not that of a page in which every app that had something to draft failed', async () => {
    const payoutSchedule = { day: 1, timezone: 'UTC', minimumCents: 0, withoutPayee: 'include' };
    for (const hasDue of [true, true, false]) {
      const own = await newApp(api);
      const settings = { key: own.key, body: { payoutSchedule } };
      expect((await api.call('PATCH', `/apps/${own.appId}/settings`, settings)).status).toBe(200);
      // A schedule of before this month, and one that drafts nothing yet, also on the first day of a month.
      await api.sql`
        update apps set payout_schedule_since = now() + ${hasDue ? -40 : 1} * interval '1 day' where id = ${own.appId}`;
    }
    const at = await begin();
    const calendar = createCalendarActivities({ sql: api.sql, logger, calendarPage: 10_000 });
    await whileBroken({ table: 'payout_schedule_months', when: 'true', sqlstate: 'P0001' }, async () => {
      expect(await calendar.draftScheduledRuns('')).toEqual({ count: 0, failed: 2, next: null });
    });
    expect(await doneSince(at)).toEqual([]);
    expect(await calendar.draftScheduledRuns('')).toEqual({ count: 0, failed: 0, next: null });
    expect(await doneSince(at)).toEqual(['drafts']);
  });

  // @promise duties-measured
  test('of the rates is that of an import', async () => {
    const at = await begin();
    let status = 500;
    const server = createServer((_, response) =>
      response.writeHead(status).end('Date,USD\n2026-03-02,1.0558'),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const ratesUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const activities = createRatesActivities({ sql: api.sql, logger, ratesUrl });
    try {
      await expect(activities.fetchRates()).rejects.toThrow();
      expect(await doneSince(at)).toEqual([]);
      status = 200;
      await activities.fetchRates();
      expect(await doneSince(at)).toEqual(['rates']);
    } finally {
      server.close();
    }
  });
});
