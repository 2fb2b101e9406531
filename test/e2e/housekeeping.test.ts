/** @jest-environment <rootDir>/test/jest/isolated.js */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import { findReprocessRun, requestReprocessing } from '../../src/db/reprocess.ts';
import type { AppId, DeliveryId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createIdGenerator } from '../../src/http/id-generator.ts';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { requestRun } from '../support/reprocess.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({ settings: { metricsPort: 0 } });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

test('a running service deletes expired address keys', async () => {
  const stored = async () =>
    (
      await service.sql.one<{ rows: number }>`
        select count(*)::int as rows from address_keys where ciphertext = ''::bytea`
    ).rows;
  await service.sql`
    insert into address_keys (day_starts_at, ciphertext, encryption_key_id)
    values (date_trunc('day', now() - interval '10 days', 'UTC'), ''::bytea, 'none')`;
  expect(await stored()).toBe(1);
  service = await service.restart();
  founder.url = service.url;
  founder.sql = service.sql;
  await eventually('the key is deleted', async () => (await stored()) === 0);
});

/** Runs the workflow of the Schedule. Returns how many rows it removed. */
async function runRetention(): Promise<number> {
  const { removed } = (await service.temporal.workflow.execute('retention', {
    workflowId: `retention:${randomUUID()}`,
    taskQueue: service.taskQueue,
  })) as { removed: number };
  return removed;
}

const DAYS_100 = 100 * DAY_MS;

/** Inserts a click with a User-Agent and the hash of an address. Returns its id. */
async function insertClick(at: number): Promise<string> {
  const id = createIdGenerator(at).id('click');
  await service.sql`
    insert into clicks (id, app_id, affiliate_id, link_id, claim_token, user_agent, ip_hash, is_bot, clicked_at, created_at)
    select ${id}, app_id, affiliate_id, id, gen_random_uuid(), 'Browser', 'hash', false, ${instant(at)}, ${instant(at)}
      from links where app_id = ${founder.app.id} limit 1`;
  return id;
}

/** Records that a device reported a user 100 days ago. */
async function identifyLongAgo(deviceId: string): Promise<void> {
  await service.sql`
    insert into identities (app_id, device_id, customer_user_id, position, identified_at, created_at, address_hash)
    values (${founder.app.id}, ${deviceId}, ${randomUUID()}, 1, now(), ${instant(Date.now() - DAYS_100)}, sha256('x'))`;
}

async function insertRefused(at: number): Promise<void> {
  await service.sql`
    insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, body_sha256, event_id,
                            completed_at, refused_count, refused_hour)
    values (${newId('delivery')}, ${founder.app.id}, 'adapty', ${instant(at)}, false, 'rejected', sha256('x'),
            ${newId('event')}, ${instant(at)}, 3, ${instant(at)})`;
}

/** Stores the body of a delivery of an instant, in a state. Returns the delivery's id. */
async function insertBody(at: number, status: 'processed' | 'failed' | 'received'): Promise<string> {
  const id = createIdGenerator(at).id('delivery');
  await service.sql`
    with row as (
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                              event_id, completed_at, relayed_at)
      select ${id}, app_id, provider, ${instant(at)}, true, ${status}::text, id, sha256('x'), ${newId('event')},
             case when ${status}::text <> 'received' then ${instant(at)}::timestamptz end, now() + interval '1 hour'
        from webhook_secrets where app_id = ${founder.app.id} limit 1
      returning id
    )
    insert into delivery_bodies (delivery_id, body) select id, 'x'::bytea from row`;
  return id;
}

// @promise retention, click-traces-expire, webhooks-out-deleted
test('the retention workflow removes what has expired, keeps what is needed, and a second run removes nothing', async () => {
  const now = Date.now();
  const [oldClick, newClick] = [await insertClick(now - DAYS_100), await insertClick(now - DAY_MS)];
  const bound = await founder.install(founder.slug, now - DAY_MS);
  await identifyLongAgo(bound);
  const unbound = randomUUID();
  await identifyLongAgo(unbound);
  await insertRefused(now - DAYS_100);
  await insertRefused(now - DAY_MS);
  const headers = { 'idempotency-key': randomUUID() };
  await founder.call('POST', `/apps/${founder.app.id}/affiliates`, { body: { name: 'Once' }, headers });
  await service.sql`update idempotency_keys set expires_at = now()`;
  const long = now - 401 * DAY_MS;
  const done = await insertBody(long, 'processed');
  const failed = await insertBody(long, 'failed');
  const unfinished = await insertBody(long, 'received');
  const recent = await insertBody(now - DAY_MS, 'processed');

  const endpointId = newId('webhookEndpoint');
  await service.sql`
    insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, slot)
    values (${endpointId}, ${founder.app.id}, 'https://example.com', '{payout.created}', ${newId('secret')}, '', 'none', 1)`;
  // Endpoints that were deleted: one without messages, one with a message that is kept, and one a day ago.
  const [empty, named, newlyDeleted] = [
    newId('webhookEndpoint'),
    newId('webhookEndpoint'),
    newId('webhookEndpoint'),
  ];
  await service.sql`
    insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, deactivated_at,
                                   deactivated_reason)
    select id, ${founder.app.id}, 'https://example.com', '{payout.created}', ${newId('secret')}, '', 'none',
           now() - days * interval '1 day', 'deleted'
      from (values (${empty}::text, 100), (${named}::text, 100), (${newlyDeleted}::text, 1)) e (id, days)`;
  const [oldMessage, waitingMessage, newMessage] = [
    createIdGenerator(now - DAYS_100).id('webhookMessage'),
    createIdGenerator(now - DAYS_100).id('webhookMessage'),
    createIdGenerator(now - DAY_MS).id('webhookMessage'),
  ];
  await service.sql`
    insert into webhook_messages (id, app_id, endpoint_id, type, data, status, completed_at, next_attempt_at, relay_at)
    select id, ${founder.app.id}, endpoint_id, 'webhook.test', '{}', case when done then 'delivered' else 'pending' end,
           case when done then now() end, case when not done then now() + interval '1 day' end,
           case when not done then now() + interval '1 day' end
      from (values (${oldMessage}::text, true, ${endpointId}::text), (${waitingMessage}::text, false, ${endpointId}::text),
                   (${newMessage}::text, true, ${named}::text)) m (id, done, endpoint_id)`;
  await service.sql`
    insert into webhook_attempts (message_id, number, started_at, duration_ms) values (${oldMessage}, 1, now(), 1)`;

  const [oldMail, waitingMail, newMail] = [
    createIdGenerator(now - DAYS_100).id('email'),
    createIdGenerator(now - DAYS_100).id('email'),
    createIdGenerator(now - DAY_MS).id('email'),
  ];
  await service.sql`
    insert into emails (id, app_id, affiliate_id, kind, subject_id, status, ended_at, next_attempt_at, relay_at)
    select id, ${founder.app.id}, ${founder.affiliateId}, 'payout_sent', id, case when done then 'skipped' else 'queued' end,
           case when done then now() end, case when not done then now() + interval '1 day' end,
           case when not done then now() + interval '1 day' end
      from (values (${oldMail}::text, true), (${waitingMail}::text, false), (${newMail}::text, true)) m (id, done)`;

  expect(await runRetention()).toBe(7);

  const mails = await service.sql<{ id: string }>`select id from emails`;
  expect(mails.map(({ id }) => id).toSorted()).toEqual([waitingMail, newMail].toSorted());

  const messages = await service.sql<{ id: string }>`select id from webhook_messages order by id`;
  expect(messages.map(({ id }) => id).toSorted()).toEqual([waitingMessage, newMessage].toSorted());
  const endpoints = await service.sql<{ id: string }>`select id from webhook_endpoints`;
  expect(endpoints.map(({ id }) => id).toSorted()).toEqual([endpointId, named, newlyDeleted].toSorted());

  const agents = await service.sql<{ id: string; userAgent: string | null; ipHash: string | null }>`
    select id, user_agent, ip_hash from clicks where id = any(${[oldClick, newClick]}::text[]) order by id`;
  expect(agents).toEqual([
    { id: oldClick, userAgent: null, ipHash: null },
    { id: newClick, userAgent: 'Browser', ipHash: 'hash' },
  ]);
  const identities = await service.sql<{ deviceId: string; hasHash: boolean }>`
    select device_id, address_hash is not null as has_hash from identities where device_id = any(${[bound, unbound]}::text[])`;
  expect(identities).toEqual([{ deviceId: bound, hasHash: false }]);
  const bodies = await service.sql<{ deliveryId: string }>`
    select delivery_id from delivery_bodies where body = 'x'::bytea order by delivery_id`;
  expect(bodies.map((row) => row.deliveryId).toSorted()).toEqual([failed, unfinished, recent].toSorted());
  expect(bodies.map((row) => row.deliveryId)).not.toContain(done);
  const counts = await service.sql.one`
    select (select count(*) from deliveries where refused_hour is not null) as refused,
           (select count(*) from idempotency_keys) as keys`;
  expect(counts).toEqual({ refused: 1, keys: 0 });

  expect(await runRetention()).toBe(0);
  const metrics = await (await fetch(service.metricsUrl ?? '')).text();
  for (const kind of [
    'idempotency_keys',
    'identities',
    'refused_counters',
    'user_agents',
    'bodies',
    'webhook_messages',
    'emails',
  ]) {
    expect(metrics).toContain(`tributary_retention_removed_rows{kind="${kind}"} 1\n`);
    expect(metrics).toMatch(
      new RegExp(
        `tributary_retention_last_run_timestamp_seconds\\{kind="${kind}"\\} ${String(now).slice(0, 5)}`,
      ),
    );
  }
  await service.sql`delete from delivery_bodies where delivery_id = ${unfinished}`;
  await service.sql`update deliveries set completed_at = now(), processing_status = 'failed' where id = ${unfinished}`;
});

test('a delivery whose body was removed is left out by reprocessing', async () => {
  const at = Date.now() - 500 * DAY_MS;
  const deliveryId = await insertBody(at, 'processed');
  await runRetention();
  const request = {
    id: newId('reprocessRun'),
    appId: founder.app.id as AppId,
    deliveryId: deliveryId as DeliveryId,
    dryRun: true,
    from: null,
    to: null,
  };
  expect(await requestReprocessing(service.sql, request)).toBeUndefined();
  const run = await requestRun(service.sql, founder.app.id, { from: at, to: at + 1 });
  await service.temporal.workflow.execute('reprocess', {
    workflowId: workflowIdOf('reprocess', run),
    taskQueue: service.taskQueue,
    args: [{ reprocessRunId: run }],
  });
  const { changes } = await service.sql.one<{ changes: number }>`
    select count(*)::int as changes from reprocess_changes
     where reprocess_run_id = ${run} and delivery_id = ${deliveryId}`;
  expect(changes).toBe(0);
  expect(await findReprocessRun(service.sql, run)).toMatchObject({ isFinished: true, lastError: null });
});
