import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import pino from 'pino';
import { createAlertActivities } from '../../activities/alerts.ts';
import { evaluateAlerts } from '../../src/db/alert-evaluation.ts';
import { applyAlertDecisions } from '../../src/db/alerts.ts';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { Finding } from '../../src/domain/alerts.ts';
import type { AlertId, AppId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';

let api: TestApi;
let app: TestApp;
/** The last whole hour, so that refused requests of an hour are in it. */
let now: number;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
});

const evaluate = async (at = now, sql: Sql = api.sql) =>
  await evaluateAlerts(sql, [app.appId as AppId], { providers: PROVIDER_NAMES, now: at });

/** The alerts of the app, oldest first. */
const alerts = async () =>
  await api.sql<{
    id: AlertId;
    rule: string;
    subject: string;
    facts: Record<string, number>;
    openedAt: number;
    closedAt: number | null;
  }>`
    select id, rule, subject, facts, opened_at, closed_at from alerts where app_id = ${app.appId} order by opened_at, id`;

/** Sets a secret of a provider. Returns its id. */
async function connectProvider(provider: string): Promise<string> {
  const id = newId('secret');
  await api.sql`
    insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, live_slot)
    values (${id}, ${app.appId}, ${provider}, 'production', ''::bytea, 'none', 1)`;
  return id;
}

interface Delivered {
  readonly status?: 'processed' | 'failed' | 'processing';
  readonly selfTest?: boolean;
}

/** Inserts an accepted delivery. */
async function deliver(
  secretId: string,
  at: number,
  { status = 'processed', selfTest = false }: Delivered = {},
): Promise<void> {
  const id = newId('delivery');
  const sha256 = createHash('sha256').update(id).digest();
  if (selfTest)
    await api.sql`
      insert into self_test_requests (app_id, provider, body_sha256)
      select app_id, provider, ${sha256} from webhook_secrets where id = ${secretId}`;
  await api.sql`
    insert into deliveries (id, app_id, provider, received_at, accepted_at, signature_valid, processing_status, secret_id, body_sha256,
                            event_id, completed_at, last_error)
    select ${id}, ${app.appId}, provider, ${instant(at)}, ${instant(at)}, true, ${status}::text, id,
           ${sha256}, ${newId('event')},
           case when ${status}::text <> 'processing' then ${instant(at)}::timestamptz end,
           case when ${status}::text <> 'processed' then 'A test' end
      from webhook_secrets where id = ${secretId}`;
}

/** Connects a provider that sent a webhook each hour until `lastAt`. */
async function steady(lastAt: number, provider = 'stripe', count = 20): Promise<string> {
  const secretId = await connectProvider(provider);
  for (let n = 0; n < count; n += 1) await deliver(secretId, lastAt - n * HOUR_MS);
  return secretId;
}

/** Creates an endpoint that asks for alerts. */
async function newEndpoint(): Promise<string> {
  const body = { url: 'https://example.com/hook', eventTypes: ['alert.opened', 'alert.closed'] };
  const path = `/apps/${app.appId}/webhook-endpoints`;
  return (await api.call<{ id: string }>('POST', path, { key: app.key, body })).body.id;
}

const messages = async () =>
  await api.sql<{ type: string; subjectId: string; data: object }>`
    select type, subject_id, data from webhook_messages where app_id = ${app.appId} order by created_at, id`;

describe('a provider that goes silent', () => {
  // @promise alert-silence, alert-once, alert-messages
  test('opens one alert whatever evaluates it at the same time, and its next webhook closes it, with a message each', async () => {
    await newEndpoint();
    const lastAt = now - 6 * HOUR_MS;
    const secretId = await steady(lastAt);
    await evaluate();
    expect(await alerts()).toEqual([]);
    await Promise.all(Array.from({ length: 8 }, async () => await evaluate(now + 1_000)));
    const [opened, ...others] = await alerts();
    expect(others).toEqual([]);
    expect(opened).toMatchObject({
      rule: 'provider_silent',
      subject: 'stripe',
      facts: { lastAcceptedAt: lastAt, allowedMs: 6 * HOUR_MS },
      openedAt: now + 1_000,
      closedAt: null,
    });
    await deliver(secretId, now + 60_000);
    await Promise.all(Array.from({ length: 8 }, async () => await evaluate(now + 120_000)));
    const [closed, ...more] = await alerts();
    expect(more).toEqual([]);
    expect(closed).toEqual({ ...opened, closedAt: now + 120_000 });
    const about = { alertId: opened?.id, rule: 'provider_silent', subject: 'stripe', facts: opened?.facts };
    expect(await messages()).toEqual([
      {
        type: 'alert.opened',
        subjectId: opened?.id,
        data: { ...about, openedAt: now + 1_000, closedAt: null },
      },
      {
        type: 'alert.closed',
        subjectId: opened?.id,
        data: { ...about, openedAt: now + 1_000, closedAt: now + 120_000 },
      },
    ]);
    await evaluate(now + 60_000 + 6 * HOUR_MS + 1);
    expect((await alerts()).map(({ closedAt }) => closedAt === null)).toEqual([false, true]);
  });

  // @promise alert-silence
  test('is silent after four times the 95th percentile of its gaps, without the self-test', async () => {
    const secretId = await connectProvider('paddle');
    const lastAt = now - 10 * HOUR_MS;
    // Of twenty gaps, nineteen are two and a half hours: these are the 95th percentile.
    for (let n = 0; n < 20; n += 1) await deliver(secretId, lastAt - n * 2.5 * HOUR_MS);
    await deliver(secretId, lastAt - 20 * DAY_MS);
    await deliver(secretId, lastAt + HOUR_MS, { selfTest: true });
    await evaluate();
    expect(await alerts()).toEqual([]);
    await evaluate(now + 1);
    expect(await alerts()).toMatchObject([{ subject: 'paddle', facts: { allowedMs: 10 * HOUR_MS } }]);
  });

  // @promise alert-once
  test('a process that is killed after it opened an alert and before it says so opens no second one', async () => {
    await newEndpoint();
    await steady(now - 7 * HOUR_MS);
    const killed = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const rows = await api.sql(strings, ...values);
      if (strings.join('?').includes('insert into alerts')) throw new TypeError('the process was killed');
      return rows;
    }) as unknown as Sql;
    await expect(evaluate(now, Object.assign(killed, api.sql))).rejects.toThrow('killed');
    expect(await evaluate(now)).toEqual({ opened: 0, closed: 0 });
    expect(await alerts()).toHaveLength(1);
    expect(await messages()).toHaveLength(1);
  });

  // @promise alert-once
  test('a late process opens no alert again that was closed since, and closes none that was opened since', async () => {
    const finding: Finding = { rule: 'provider_silent', subject: 'stripe', facts: { lastAcceptedAt: 1 } };
    const apply = async (at: number, open: readonly Finding[], close: readonly AlertId[]) =>
      await applyAlertDecisions(api.sql, new Map([[app.appId as AppId, { open, close }]]), at);
    await apply(now, [finding], []);
    const [first] = await alerts();
    if (first === undefined) throw new Error('there is no alert');
    expect(await apply(now - 1, [], [first.id])).toEqual({ opened: 0, closed: 0 });
    expect(await apply(now + 10, [], [first.id])).toEqual({ opened: 0, closed: 1 });
    expect(await apply(now + 9, [finding], [])).toEqual({ opened: 0, closed: 0 });
    expect(await apply(now + 11, [finding], [])).toEqual({ opened: 1, closed: 0 });
    expect(await alerts()).toHaveLength(2);
  });
});

describe('alerts of other rules', () => {
  // @promise alert-rules
  test('failing deliveries of the last hour and stuck ones open an alert, which closes when none is left', async () => {
    const secretId = await connectProvider('stripe');
    for (let n = 0; n < 2; n += 1) await deliver(secretId, now - HOUR_MS + n, { status: 'failed' });
    for (let n = 0; n < 2; n += 1) await deliver(secretId, now - 3 * HOUR_MS, { status: 'processing' });
    for (let n = 0; n < 9; n += 1) await deliver(secretId, now - 1, { status: 'failed', selfTest: true });
    await deliver(secretId, now - HOUR_MS - 1, { status: 'failed' });
    await evaluate();
    expect(await alerts()).toEqual([]);
    await deliver(secretId, now - 1, { status: 'failed' });
    await evaluate();
    expect(await alerts()).toMatchObject([
      { rule: 'deliveries_failing', subject: 'stripe', facts: { failing: 5 } },
    ]);
    await evaluate(now + 2 * HOUR_MS);
    expect(await alerts()).toMatchObject([{ closedAt: null }]);
    await api.sql`
      update deliveries set processing_status = 'processed', completed_at = now()
       where app_id = ${app.appId} and processing_status = 'processing'`;
    await evaluate(now + 2 * HOUR_MS);
    expect(await alerts()).toMatchObject([{ closedAt: now + 2 * HOUR_MS }]);
  });

  // @promise alert-rules
  test('three refused requests of this hour and the one before open an alert, which closes with the next webhook that is accepted', async () => {
    const secretId = await connectProvider('adapty');
    const refuse = async (at: number, count: number) =>
      await api.sql`
        insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, body_sha256, event_id, completed_at,
                                last_error, refused_count, refused_hour)
        values (${newId('delivery')}, ${app.appId}, 'adapty', ${instant(at)}, false, 'rejected', sha256('x'), ${newId('event')},
                ${instant(at)}, 'A test', ${count}, ${instant(at)})`;
    await refuse(now - 2 * HOUR_MS, 100);
    await refuse(now - HOUR_MS, 2);
    await evaluate();
    expect(await alerts()).toEqual([]);
    await refuse(now, 1);
    await evaluate(now + 1);
    expect(await alerts()).toMatchObject([
      {
        rule: 'webhooks_refused',
        subject: 'adapty',
        facts: { refused: 3, lastRefusedAt: now },
        closedAt: null,
      },
    ]);
    await evaluate(now + 5 * HOUR_MS);
    expect(await alerts()).toMatchObject([{ closedAt: null }]);
    await deliver(secretId, now + 1);
    // While some are refused in these two hours, one that is accepted may be of another environment.
    await evaluate(now + 2 * HOUR_MS - 1);
    expect(await alerts()).toMatchObject([{ closedAt: null }]);
    await evaluate(now + 2 * HOUR_MS);
    expect(await alerts()).toMatchObject([{ closedAt: now + 2 * HOUR_MS }]);
  });

  // @promise alert-rules
  test('a draft that waits for a day, and an approved run that does not advance, open an alert each', async () => {
    const at = api.clock.now - DAY_MS;
    for (const amountCents of [500, 600]) {
      const affiliateId = await newAffiliate(api, app);
      await insertEarning(api, app, { affiliateId, amountCents, occurredAt: at, dueAt: at, matured: true });
    }
    const path = `/apps/${app.appId}/payout-runs`;
    const { body: run } = await api.call<{ id: string }>('POST', path, {
      key: app.key,
      body: { withoutPayee: 'include' },
    });
    const { createdAt } = await api.sql.one<{ createdAt: number }>`
      select epoch_ms(created_at) as created_at from payout_runs where id = ${run.id}`;
    await evaluate(createdAt + DAY_MS);
    expect(await alerts()).toEqual([]);
    await evaluate(createdAt + DAY_MS + 1_000);
    expect(await alerts()).toMatchObject([
      { rule: 'draft_waiting', subject: run.id, facts: { totalCents: 1_100, itemCount: 2 } },
    ]);
    const approved = await api.call('POST', `${path}/${run.id}/approve`, {
      key: app.key,
      body: { expectedTotalCents: 1_100 },
    });
    expect(approved.status).toBe(202);
    const begun = createdAt + DAY_MS + 2_000;
    await evaluate(begun);
    const [draft, stalled, ...others] = await alerts();
    expect(others).toEqual([]);
    expect(draft).toMatchObject({ closedAt: begun });
    expect(stalled).toMatchObject({ rule: 'run_stalled', subject: run.id, facts: { advancedAt: null } });
    // A payout of it is requested, which is an advance.
    const requestId = newId('payoutRequest');
    await api.sql`
      insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, expected_total_cents, expires_at, created_at)
      select ${requestId}, i.app_id, i.affiliate_id, r.account_id, r.approved_by, i.expected_cents, ${instant(begun + HOUR_MS)}, ${instant(begun)}
        from payout_run_items i join payout_runs r on r.id = i.run_id where i.run_id = ${run.id} and i.position = 1`;
    await api.sql`update payout_run_items set request_id = ${requestId} where run_id = ${run.id} and position = 1`;
    await evaluate(begun + HOUR_MS);
    expect((await alerts())[1]).toMatchObject({ closedAt: begun + HOUR_MS });
    await evaluate(begun + HOUR_MS + 1_000);
    expect((await alerts())[2]).toMatchObject({ rule: 'run_stalled', facts: { advancedAt: begun } });
  });

  // @promise alert-rules
  test('an endpoint that fails for an hour, or that the service deactivated, opens an alert until it works or is deleted', async () => {
    const failing = await newEndpoint();
    const gone = await newEndpoint();
    await api.sql`update webhook_endpoints set failing_since = ${instant(now - HOUR_MS + 1)} where id = ${failing}`;
    await evaluate();
    expect(await alerts()).toEqual([]);
    await api.sql`update webhook_endpoints set deactivated_at = now(), deactivated_reason = 'gone' where id = ${gone}`;
    await evaluate(now + 1);
    expect((await alerts()).map(({ rule, subject }) => `${rule} ${subject}`).toSorted()).toEqual(
      [`endpoint_failing ${failing}`, `endpoint_failing ${gone}`].toSorted(),
    );
    await api.sql`update webhook_endpoints set failing_since = null where id = ${failing}`;
    await api.call('DELETE', `/apps/${app.appId}/webhook-endpoints/${gone}`, { key: app.key });
    await evaluate(now + 2);
    expect((await alerts()).map(({ closedAt }) => closedAt)).toEqual([now + 2, now + 2]);
  });
});

describe('the rows of alerts', () => {
  // @promise alert-never-edited
  test.each([
    ['its facts change', `facts = '{}'`],
    ['it is opened again', 'closed_at = null'],
    ['it is closed again', `closed_at = now() + interval '1 day'`],
  ])('the database refuses a closed alert of which %s', async (_, change) => {
    await steady(now - 7 * HOUR_MS);
    await evaluate();
    await api.sql`update alerts set closed_at = now() where app_id = ${app.appId}`;
    await expect(
      runOn(api.database.url, `update alerts set ${change} where app_id = '${app.appId}'`),
    ).rejects.toThrow(/can only be closed, once/);
  });

  // @promise alert-never-edited
  test('the database refuses to delete an alert', async () => {
    await expect(runOn(api.database.url, 'delete from alerts')).rejects.toThrow();
  });

  // @promise alert-once
  test('the database refuses a second open alert of the same rule and subject', async () => {
    const insert = async () =>
      await api.sql`
        insert into alerts (id, app_id, rule, subject, facts, opened_at)
        values (${newId('alert')}, ${app.appId}, 'provider_silent', 'stripe', '{}', now())`;
    await insert();
    await expect(insert()).rejects.toThrow(/alerts_one_open/);
  });
});

describe('an evaluation of all apps', () => {
  // @promise alert-all-apps
  test('goes through the apps page by page, and an app that fails does not stop the others', async () => {
    const owners: TestApp[] = [];
    for (let n = 0; n < 3; n += 1) {
      app = await newApp(api);
      owners.push(app);
      await steady(Date.now() - 7 * HOUR_MS);
    }
    const [, broken] = owners;
    await runOn(
      api.database.url,
      `create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'broken by the test'; end $$;
       create trigger test_breaks before insert on alerts for each row when (new.app_id = '${broken?.appId}') execute function test_breaks();`,
    );
    const process = createAlertActivities({
      sql: api.sql,
      logger: pino({ level: 'silent' }),
      alertPage: 2,
    });
    const evaluateAll = async () => {
      let after: string | null = '';
      let pages = 0;
      while (after !== null) {
        ({ next: after } = await process.evaluateAlerts(after));
        pages += 1;
      }
      return pages;
    };
    try {
      expect(await evaluateAll()).toBeGreaterThan(1);
      const counts = [];
      for (app of owners) counts.push((await alerts()).length);
      expect(counts).toEqual([1, 0, 1]);
    } finally {
      await runOn(api.database.url, 'drop trigger test_breaks on alerts; drop function test_breaks()');
    }
    await evaluateAll();
    app = broken ?? app;
    expect(await alerts()).toHaveLength(1);
  });
});
