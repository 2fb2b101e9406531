import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import pino from 'pino';
import { TypeID } from 'typeid-js';
import { createWebhookActivities } from '../../activities/webhook.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { matureCommission, matureOverdue } from '../../src/db/maturing.ts';
import { COLUMNS } from '../../src/db/payout-csv.ts';
import { recordPayout } from '../../src/db/forgotten-payouts.ts';
import { newId } from '../../src/db/new-id.ts';
import { makeOverdue } from '../../src/db/recovery.ts';
import { connect } from '../../src/db/sql.ts';
import {
  changeWebhookEndpoint,
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  signingSecretContext,
} from '../../src/db/webhook-endpoints.ts';
import { createTestMessage, listWebhookMessages, sendMessageAgain } from '../../src/db/webhook-messages.ts';
import {
  claimWebhookMessages,
  loadMessageToSend,
  postponeMessage,
  recordWebhookAttempt,
} from '../../src/db/webhook-attempts.ts';
import { isId } from '../../src/domain/ids.ts';
import type {
  AccountId,
  AppId,
  CommissionId,
  WebhookEndpointId,
  WebhookMessageId,
} from '../../src/domain/ids.ts';
import { MAX_ENDPOINTS, RETRY_DELAYS_MS, WEBHOOK_TYPES } from '../../src/domain/outgoing-webhooks.ts';
import type { WebhookType } from '../../src/domain/outgoing-webhooks.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';
import { untilWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;
let affiliateId: string;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
});

/** Creates an endpoint. Returns undefined if the app has as many as it may have. */
async function createEndpoint(
  id: WebhookEndpointId,
  eventTypes: readonly WebhookType[] = WEBHOOK_TYPES,
  url = 'https://example.com/hook',
  appId = app.appId,
) {
  return await createWebhookEndpoint(api.sql, {
    id,
    appId: appId as AppId,
    url,
    description: null,
    eventTypes,
    secretId: newId('secret'),
    ...createSecretBox([TEST_KEY]).encrypt('whsec_c2VjcmV0', signingSecretContext(id)),
  });
}

async function newEndpoint(
  eventTypes?: readonly WebhookType[],
  url?: string,
  appId?: string,
): Promise<WebhookEndpointId> {
  const id = newId('webhookEndpoint');
  await createEndpoint(id, eventTypes, url, appId);
  return id;
}

const earn = async (amountCents = 1_999) =>
  (await insertEarning(api, app, {
    affiliateId,
    amountCents,
    occurredAt: api.clock.now,
    dueAt: 0,
  })) as CommissionId;

const NO_FILTER = { endpointId: null, status: null, type: null };
const messagesOf = async (appId = app.appId) =>
  (await listWebhookMessages(api.sql, appId as AppId, NO_FILTER, null, 100)).rows.toReversed();
const postpone = async (id: WebhookMessageId, waitMs: number) =>
  await postponeMessage(api.sql, id, { waitMs, until: 'room' });
const attempt = (number: number, over: object = {}) => ({
  number,
  startedAt: Date.now(),
  durationMs: 5,
  statusCode: 500,
  problem: 'The endpoint responded with 500.',
  response: 'no',
  url: 'https://example.com/hook',
  secretId: newId('secret'),
  earlierAttempts: 0,
  nextInMs: 60_000 as number | null,
  isGone: false,
  isProbe: true,
  retryAfterMs: null,
  retryMs: RETRY_DELAYS_MS,
  ...over,
});

describe('the outbox of messages', () => {
  // @promise webhooks-out-with-fact
  test('each fact is written with one message for each active endpoint of the app that asks for its type', async () => {
    const all = await newEndpoint();
    const created = await newEndpoint(['commission.created']);
    await newEndpoint(['payout.created']);
    const inactive = await newEndpoint();
    await api.sql`update webhook_endpoints set deactivated_at = now(), deactivated_reason = 'by_request' where id = ${inactive}`;
    const other = await newApp(api);
    const earning = await earn();
    await matureCommission(api.sql, earning);
    const reversal = await insertReversal(api, earning, { amountCents: 5, occurredAt: api.clock.now });
    const messages = await messagesOf();
    const expected = [
      `${all} commission.created ${earning}`,
      `${created} commission.created ${earning}`,
      `${all} commission.matured ${earning}`,
      `${all} commission.reversed ${reversal}`,
    ];
    expect(messages.map((one) => `${one.endpointId} ${one.type} ${one.subjectId}`).toSorted()).toEqual(
      expected.toSorted(),
    );
    expect(messages.every(({ id }) => isId('webhookMessage', id))).toBe(true);
    expect(messages[0]?.data).toMatchObject({ amount: '19.99', amountCents: 1_999, affiliateId });
    expect(messages.at(-1)?.data).toMatchObject({ amount: '-0.05', amountCents: -5, kind: 'reversal' });
    expect(await messagesOf(other.appId)).toEqual([]);
  });

  // @promise webhooks-out-with-fact
  test('a bonus or deduction has one message, with its reason, and none when it matures', async () => {
    const all = await newEndpoint();
    const { body } = await api.call<{ id: string; commissionId: string }>(
      'POST',
      `/apps/${app.appId}/affiliates/${affiliateId}/entries`,
      {
        key: app.key,
        body: {
          amountCents: -250,
          category: 'unreported_refund',
          reason: 'Upgrade of 3 May',
          externalId: randomUUID(),
        },
      },
    );
    await matureCommission(api.sql, body.commissionId as CommissionId);
    expect(
      (await messagesOf()).map(({ endpointId, type, subjectId, data }) => ({
        endpointId,
        type,
        subjectId,
        data,
      })),
    ).toEqual([
      {
        endpointId: all,
        type: 'commission.adjusted',
        subjectId: body.commissionId,
        data: {
          commissionId: body.commissionId,
          kind: 'deduction',
          affiliateId,
          linkId: null,
          eventId: null,
          reversesCommissionId: null,
          amount: '-2.50',
          amountCents: -250,
          currency: 'USD',
          rateBps: 0,
          occurredAt: expect.any(Number),
          dueAt: expect.any(Number),
          entryId: body.id,
          category: 'unreported_refund',
          reason: 'Upgrade of 3 May',
          undoesEntryId: null,
        },
      },
    ]);
    const status = await api.sql.one<{
      status: string;
    }>`select status from commissions where id = ${body.commissionId}`;
    expect(status).toEqual({ status: 'matured' });
  });

  // @promise webhooks-out-with-fact
  test('a fact that is rolled back has no message, and one that is written twice has one', async () => {
    await newEndpoint();
    const earning = await earn();
    await expect(
      api.sql`with matured as (update commissions set status = 'matured', matured_at = now() where id = ${earning} returning 1)
              select 1 / (count(*) - 1) from matured`,
    ).rejects.toThrow('division by zero');
    expect((await messagesOf()).map(({ type }) => type)).toEqual(['commission.created']);
    await matureOverdue(api.sql, 10);
    await matureCommission(api.sql, earning);
    await api.sql`update commissions set status = status where id = ${earning}`;
    expect((await messagesOf()).map(({ type }) => type)).toEqual([
      'commission.created',
      'commission.matured',
    ]);
  });

  test('a commission that matured before the endpoint was created is not announced when it changes again', async () => {
    const earning = await earn();
    await matureCommission(api.sql, earning);
    await newEndpoint();
    await api.sql`update commissions set status = status where id = ${earning}`;
    expect(await messagesOf()).toEqual([]);
  });

  // @promise webhooks-out-with-fact
  test('a payout that is recorded from its file announces nothing: its commissions matured in another history', async () => {
    const id = await earn();
    await newEndpoint();
    const { eventId, occurredAt } = await api.sql.one<{ eventId: string; occurredAt: number }>`
      select event_id, occurred_at from commissions where id = ${id}`;
    const line = [newId('payout'), affiliateId, 'Creator', id, 1_999, '19.99', 'USD', eventId, occurredAt];
    const csv = Buffer.from([COLUMNS.join(','), line.join(','), ''].join('\r\n'));
    expect((await recordPayout(api.sql, csv, 1_999)).kind).toBe('recorded');
    expect(await messagesOf()).toEqual([]);
  });

  // @promise webhooks-out-deactivated
  test('messages that wait when their endpoint is deactivated fail with it, also if it is activated before their next attempt', async () => {
    const id = await newEndpoint(['commission.created']);
    await earn();
    const change = async (isActive: boolean) =>
      await changeWebhookEndpoint(api.sql, app.appId as AppId, id, { isActive });
    await change(false);
    await change(true);
    expect(await messagesOf()).toMatchObject([
      { status: 'failed', attempts: 0, lastProblem: 'The endpoint is not active.' },
    ]);
  });

  test('the ids of messages sort by their time', async () => {
    await newEndpoint();
    const before = newId('webhookMessage');
    // Ids of one millisecond are in no order.
    await sleep(5);
    await earn();
    await sleep(5);
    const [message] = await messagesOf();
    expect([newId('webhookMessage'), message?.id ?? '', before].toSorted()).toEqual([
      before,
      message?.id,
      expect.anything(),
    ]);
  });

  test('a statement that announces many commissions makes one id for each app, from which those of its messages follow', async () => {
    const earnings: CommissionId[] = [];
    const apps: TestApp[] = [];
    for (let n = 0; n < 2; n += 1) {
      app = await newApp(api);
      affiliateId = await newAffiliate(api, app);
      apps.push(app);
      for (let k = 0; k < 2; k += 1) await newEndpoint(['commission.matured']);
      for (let k = 0; k < 5; k += 1) earnings.push(await earn());
    }
    const client = new pg.Client(api.database.url);
    await client.connect();
    try {
      await client.query('begin');
      await client.query(`set local track_functions = 'pl'`);
      await client.query(`update commissions set status = 'matured', matured_at = now() where id = any($1)`, [
        earnings,
      ]);
      const { rows } = await client.query(
        `select calls::int from pg_stat_xact_user_functions where funcname = 'new_webhook_message_id'`,
      );
      expect(rows).toEqual([{ calls: 2 }]);
      await client.query('commit');
    } finally {
      await client.end();
    }
    const starts = new Set<string>();
    for (const { appId } of apps) {
      const ids = (await messagesOf(appId)).map(({ id }) => id);
      for (const id of ids) {
        expect(isId('webhookMessage', id)).toBe(true);
        // The version and the variant of a UUIDv7.
        expect(TypeID.fromString(id).toUUID()).toMatch(/^.{14}7.{4}[89ab]/);
        starts.add(id.slice(0, -7));
      }
      // The numbers say nothing about the messages of other apps.
      expect(ids.map((id) => parseInt(id.slice(-7), 16)).toSorted((x, y) => x - y)).toEqual([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
      ]);
    }
    expect(starts.size).toBe(2);
  });

  // @promise webhooks-out-stuck
  test('a delivery that fails half a minute after its receipt is announced once', async () => {
    await newEndpoint();
    await earn();
    const { id } = await api.sql.one<{ id: string }>`select id from deliveries where app_id = ${app.appId}`;
    await api.sql`update deliveries set completed_at = null, processing_status = 'received', accepted_at = now() where id = ${id}`;
    const fail = async () =>
      await api.sql`update deliveries set processing_status = 'processing', last_error = 'no connection' where id = ${id}`;
    const stuck = async () => (await messagesOf()).filter(({ type }) => type === 'delivery.stuck');
    await fail();
    expect(await stuck()).toEqual([]);
    await api.sql`update deliveries set accepted_at = now() - interval '31 seconds' where id = ${id}`;
    await fail();
    await fail();
    expect(await stuck()).toMatchObject([
      { subjectId: id, data: { deliveryId: id, provider: 'stripe', problem: 'no connection' } },
    ]);
  });
});

describe('a statement that is sent again while the first one is being committed', () => {
  /** Runs `call` while the transaction of `insert` is open, and commits it when the call waits for it. */
  async function whileCommitting<T>(
    insert: string,
    parameters: unknown[],
    call: () => Promise<T>,
  ): Promise<T> {
    const client = new pg.Client(api.database.url);
    await client.connect();
    try {
      await client.query('begin');
      await client.query(insert, parameters);
      const called = call();
      await untilWaiting(api.sql);
      await client.query('commit');
      return await called;
    } finally {
      await client.end();
    }
  }

  test('an endpoint is returned, also if it is the last one that the app may have', async () => {
    const first = await newEndpoint();
    for (let n = 2; n < MAX_ENDPOINTS; n += 1) await newEndpoint();
    const id = newId('webhookEndpoint');
    const insert = `
      insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, slot)
      select $1, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, $2 from webhook_endpoints where id = $3`;
    const created = await whileCommitting(
      insert,
      [id, MAX_ENDPOINTS, first],
      async () => await createEndpoint(id),
    );
    expect(created).toMatchObject({ id, appId: app.appId });
    expect(await createEndpoint(newId('webhookEndpoint'))).toBeUndefined();
  });

  test('a test message is returned', async () => {
    const endpointId = await newEndpoint();
    const id = newId('webhookMessage');
    const insert = `
      insert into webhook_messages (id, app_id, endpoint_id, type, data) values ($1, $2, $3, 'webhook.test', '{}')`;
    const call = async () => await createTestMessage(api.sql, app.appId as AppId, endpointId, id);
    expect(await whileCommitting(insert, [id, app.appId, endpointId], call)).toMatchObject({
      id,
      endpointId,
    });
    const unknown = newId('webhookEndpoint');
    expect(
      await createTestMessage(api.sql, app.appId as AppId, unknown, newId('webhookMessage')),
    ).toBeUndefined();
  });
});

describe('the claims of messages', () => {
  beforeEach(async () => {
    // What the tests before have left.
    await api.sql`update webhook_messages set relay_at = now() + interval '1 day' where completed_at is null`;
  });

  const claim = async (over: { limit?: number; after?: AccountId | null; perEndpoint?: number } = {}) =>
    await claimWebhookMessages(api.sql, { claimMs: 30_000, limit: 10, after: null, ...over });

  /** Writes messages that have waited for an hour. */
  const waitFor = async (endpointId: WebhookEndpointId, count: number) =>
    await api.sql`
      insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data, relay_at)
      select new_webhook_message_id(), app_id, id, 'commission.created', 'com_' || n, '{}', now() - interval '1 hour'
        from webhook_endpoints, generate_series(1, ${count}::int) n where id = ${endpointId}`;

  test('a message is claimed once, and again when its workflow should have made an attempt', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const claims = (await Promise.all([claim(), claim(), claim()])).flatMap(({ messages }) => messages);
    expect(claims).toMatchObject([{ due: 'now' }]);
    expect(await claim()).toEqual({ messages: [], lastAccountId: null, hasMore: false });
    await api.sql`update webhook_messages set relay_at = now() where app_id = ${app.appId}`;
    // What ends a wait of its workflow may have been lost.
    expect((await claim()).messages).toEqual([{ ...claims[0], due: 'earlier' }]);
  });

  test('a message that is claimed while it waits for its next attempt is not claimed again before that attempt', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = (await messagesOf())[0]?.id as WebhookMessageId;
    await postpone(id, HOUR_MS);
    // As `tributary recover` does.
    await api.sql`update webhook_messages set relay_at = now() where id = ${id}`;
    expect((await claim()).messages).toEqual([{ messageId: id, appId: app.appId, due: 'later' }]);
    const row = await api.sql.one`
      select relay_at > next_attempt_at as is_after, next_attempt_at > now() + interval '50 minutes' as waits
        from webhook_messages where id = ${id}`;
    expect(row).toEqual({ isAfter: true, waits: true });
  });

  // @promise webhooks-out-fair
  test('thousands of messages of one account wait while a new one of another account is in the next claim', async () => {
    for (let n = 0; n < 3; n += 1) await waitFor(await newEndpoint(['commission.created']), 1_000);
    const claimFifty = async () => (await claim({ limit: 50 })).messages.map(({ appId }) => appId);
    expect((await claimFifty()).length).toBeGreaterThan(40);
    const burst = app;
    app = await newApp(api);
    affiliateId = await newAffiliate(api, app);
    await newEndpoint(['commission.created']);
    await earn();
    const next = await claimFifty();
    expect(next.filter((appId) => appId === app.appId)).toHaveLength(1);
    // The one message does not hold up the others, either.
    expect(next.filter((appId) => appId === burst.appId).length).toBeGreaterThan(20);
    expect((await claimFifty()).length).toBeGreaterThan(40);
  });

  // @promise webhooks-out-fair
  test('an endpoint with a few messages has its share beside the endpoints of its app with hundreds', async () => {
    for (let n = 0; n < 3; n += 1) await waitFor(await newEndpoint(['commission.created']), 100);
    const few = await newEndpoint(['payout.created']);
    await waitFor(few, 2);
    await api.sql`update webhook_messages set relay_at = now() where endpoint_id = ${few}`;
    const { messages } = await claim({ limit: 20 });
    const ids = messages.map(({ messageId }) => messageId);
    const row = await api.sql.one`
      select count(*)::int as n from webhook_messages where endpoint_id = ${few} and id = any(${ids}::text[])`;
    expect(row).toEqual({ n: 2 });
  });

  // @promise webhooks-out-fair
  test('of more endpoints of an account than a claim serves, one with a new message is served beside those that have waited for an hour', async () => {
    for (let n = 0; n < 2; n += 1) await waitFor(await newEndpoint(['commission.created']), 100);
    const newest = await newEndpoint(['payout.created']);
    await waitFor(newest, 1);
    await api.sql`update webhook_messages set relay_at = now() where endpoint_id = ${newest}`;
    const isClaimed = async () =>
      (
        await api.sql.one<{ is: boolean }>`
        select relay_at > now() as is from webhook_messages where endpoint_id = ${newest}`
      ).is;
    for (let n = 0; n < 40 && !(await isClaimed()); n += 1) await claim({ limit: 2 });
    expect(await isClaimed()).toBe(true);
  });

  test('a claim says that more wait only if an endpoint has its whole share, or if it serves as many as it can', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    await waitFor(endpoint, 15);
    expect(await claim()).toMatchObject({ messages: { length: 10 }, hasMore: true });
    expect(await claim()).toMatchObject({ messages: { length: 5 }, hasMore: false });
    // It has all that may be in progress.
    await api.sql`update webhook_messages set relay_at = now() where endpoint_id = ${endpoint}`;
    expect(await claim({ perEndpoint: 5 })).toMatchObject({ messages: { length: 5 }, hasMore: false });
    for (let n = 0; n < 2; n += 1) {
      app = await newApp(api);
      await waitFor(await newEndpoint(['commission.created']), 1);
    }
    expect(await claim({ limit: 2, perEndpoint: 5 })).toMatchObject({
      messages: { length: 2 },
      hasMore: true,
    });
    expect(await claim({ limit: 2, perEndpoint: 5 })).toMatchObject({ messages: [], hasMore: false });
  });

  // @promise webhooks-out-fair
  test('a process that finds its messages claimed by another one goes on with the accounts that follow', async () => {
    const apps: TestApp[] = [];
    for (let n = 0; n < 4; n += 1) {
      app = await newApp(api);
      apps.push(app);
      await waitFor(await newEndpoint(['commission.created']), 1);
    }
    const byAccount = apps.toSorted((x, y) => (x.accountId < y.accountId ? -1 : 1));
    const [first, second, ...rest] = byAccount.map(({ appId }) => appId);
    const client = new pg.Client(api.database.url);
    await client.connect();
    try {
      await client.query('begin');
      await client.query('select from webhook_messages where app_id in ($1, $2) for update', [first, second]);
      const lost = await claim({ limit: 2 });
      expect(lost).toMatchObject({ messages: [], hasMore: true });
      const next = await claim({ limit: 2, after: lost.lastAccountId });
      expect(next.messages.map(({ appId }) => appId).toSorted()).toEqual(rest.toSorted());
    } finally {
      await client.end();
    }
  });

  // @promise webhooks-out-fair
  test('of more accounts than a claim serves, the next claim serves those that follow', async () => {
    const served: string[] = [];
    const apps: TestApp[] = [];
    for (let n = 0; n < 5; n += 1) {
      app = await newApp(api);
      apps.push(app);
      await waitFor(await newEndpoint(['commission.created']), 10);
    }
    let after: AccountId | null = null;
    for (let n = 0; n < 5; n += 1) {
      const { messages, lastAccountId } = await claim({ limit: 2, after });
      served.push(...messages.map(({ appId }) => appId));
      after = lastAccountId;
    }
    expect(served.toSorted()).toEqual(apps.flatMap(({ appId }) => [appId, appId]).toSorted());
    expect(new Set(served.slice(0, 6)).size).toBe(5);
  });

  // @promise webhooks-out-isolated
  test('an endpoint with many messages in progress leaves the claims to the others, until some wait for long or have ended', async () => {
    const busy = await newEndpoint(['commission.created']);
    for (let n = 0; n < 6; n += 1) await earn();
    const other = await newApp(api);
    const claimFew = async () => (await claim({ perEndpoint: 3 })).messages;
    expect(await claimFew()).toHaveLength(3);
    expect(await claimFew()).toEqual([]);
    await newEndpoint(['commission.created'], 'https://example.com/hook', other.appId);
    const creator = await newAffiliate(api, other);
    await insertEarning(api, other, {
      affiliateId: creator,
      amountCents: 5,
      occurredAt: api.clock.now,
      dueAt: 0,
    });
    expect(await claimFew()).toMatchObject([{ appId: other.appId }]);
    // One of the three waits for an attempt in half an hour, another one was delivered.
    await api.sql`
      with claimed as (
        select id, row_number() over (order by id) as n from webhook_messages
         where endpoint_id = ${busy} and relay_at > now()
      )
      update webhook_messages m
         set relay_at = case n when 1 then now() + interval '31 minutes' end, status = case n when 1 then 'pending' else 'delivered' end,
             completed_at = case n when 2 then now() end, next_attempt_at = case n when 1 then now() + interval '30 minutes' end
        from claimed c where c.id = m.id and c.n < 3`;
    expect(await claimFew()).toHaveLength(2);
  });
});

describe('the attempts at a message', () => {
  const idOfMessage = async () => (await messagesOf()).at(-1)?.id as WebhookMessageId;
  const endpointOf = async () =>
    await api.sql.one<{ reason: string | null; failingSince: number | null }>`
      select deactivated_reason as reason, failing_since from webhook_endpoints where app_id = ${app.appId}`;

  test('an attempt that is recorded twice counts once', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = await idOfMessage();
    const first = attempt(1);
    await recordWebhookAttempt(api.sql, id, first);
    await recordWebhookAttempt(api.sql, id, first);
    expect(await loadMessageToSend(api.sql, id)).toMatchObject({
      attempts: 1,
      status: 'pending',
      isFailing: true,
    });
    expect(await api.sql`select number from webhook_attempts where message_id = ${id}`).toEqual([
      { number: 1 },
    ]);
  });

  // @promise webhooks-out-deactivated
  test.each([
    ['an endpoint without a success since the first attempt is deactivated', false, 'failing'],
    ['an endpoint that has accepted another message meanwhile stays active', true, null],
  ])('when no attempt at a message follows, %s', async (_, hasSuccess, reason) => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = await idOfMessage();
    const began = Date.now() - 3 * DAY_MS;
    await recordWebhookAttempt(api.sql, id, attempt(1, { startedAt: began }));
    if (hasSuccess) {
      await earn();
      const success = attempt(1, { startedAt: began + 1, problem: null, statusCode: 200, nextInMs: null });
      expect(await recordWebhookAttempt(api.sql, await idOfMessage(), success)).toBeNull();
      expect((await endpointOf()).failingSince).toBeNull();
    }
    expect(await recordWebhookAttempt(api.sql, id, attempt(2, { nextInMs: null }))).toBe(reason);
    expect((await endpointOf()).reason).toBe(reason);
    expect(await loadMessageToSend(api.sql, id)).toMatchObject({ status: 'failed', dueInMs: null });
  });

  // @promise webhooks-out-send-again
  test('a message that is sent again during its last attempt is due now, and does not end the endpoint', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = await idOfMessage();
    await recordWebhookAttempt(api.sql, id, attempt(1, { startedAt: Date.now() - 3 * DAY_MS }));
    await sendMessageAgain(api.sql, app.appId as AppId, id);
    expect(await recordWebhookAttempt(api.sql, id, attempt(2, { nextInMs: null }))).toBeNull();
    expect((await endpointOf()).reason).toBeNull();
    const message = await loadMessageToSend(api.sql, id);
    expect(message).toMatchObject({ status: 'pending', attempts: 2, earlierAttempts: 1 });
    expect(message?.dueInMs).toBeLessThanOrEqual(0);
  });

  // @promise webhooks-out-begins-anew
  test('an attempt at a URL that the endpoint no longer has says nothing about the endpoint, and the next one is due at once', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = await idOfMessage();
    const gone = { statusCode: 410, nextInMs: null, isGone: true, url: 'https://example.com/former' };
    expect(await recordWebhookAttempt(api.sql, id, attempt(1, gone))).toBeNull();
    expect(await endpointOf()).toEqual({ reason: null, failingSince: null });
    expect(await loadMessageToSend(api.sql, id)).toMatchObject({ status: 'pending', attempts: 1 });
    const dueNow = async () =>
      await api.sql`select next_attempt_at <= now() as is_due from webhook_messages where id = ${id}`;
    expect(await dueNow()).toEqual([{ isDue: true }]);
    const asked = { statusCode: 503, nextInMs: 86_400_000, url: 'https://example.com/former' };
    expect(await recordWebhookAttempt(api.sql, id, attempt(2, asked))).toBeNull();
    expect(await dueNow()).toEqual([{ isDue: true }]);
  });

  // @promise webhooks-out-deactivated
  test.each([
    [
      'a failed attempt',
      2,
      async (id: WebhookMessageId) => await recordWebhookAttempt(api.sql, id, attempt(2)),
    ],
    [
      'a success after failures',
      2,
      async (id: WebhookMessageId) =>
        await recordWebhookAttempt(api.sql, id, attempt(2, { problem: null, nextInMs: null })),
    ],
    [
      'sending again',
      1,
      async (id: WebhookMessageId) => await sendMessageAgain(api.sql, app.appId as AppId, id),
    ],
  ])(
    '%s waits for what ends the endpoint, and does not hold up its messages',
    async (_, attempts, change) => {
      const endpointId = await newEndpoint(['commission.created']);
      await earn();
      const id = await idOfMessage();
      await recordWebhookAttempt(api.sql, id, attempt(1));
      const client = new pg.Client(api.database.url);
      await client.connect();
      try {
        await client.query('begin');
        await client.query('select from webhook_endpoints where id = $1 for no key update', [endpointId]);
        const changed = change(id);
        await untilWaiting(api.sql);
        await client.query('select from webhook_messages where id = $1 for update nowait', [id]);
        await client.query('commit');
        await changed;
        expect(await loadMessageToSend(api.sql, id)).toMatchObject({ attempts });
      } finally {
        await client.end();
      }
    },
  );
});

describe('an endpoint that changes', () => {
  const change = async (id: WebhookEndpointId, over: Parameters<typeof changeWebhookEndpoint>[3]) =>
    await changeWebhookEndpoint(api.sql, app.appId as AppId, id, over);
  const failuresOf = async (id: WebhookEndpointId) =>
    await api.sql.one<{ failures: number; isFailing: boolean; probeInMs: number | null }>`
      select failures, failing_since is not null as is_failing,
             extract(epoch from next_probe_at - now())::float8 * 1000 as probe_in_ms from webhook_endpoints where id = ${id}`;
  const failNext = async (number: number) => {
    const id = (await messagesOf()).at(-1)?.id as WebhookMessageId;
    const { url } = (await loadMessageToSend(api.sql, id)) ?? {};
    await recordWebhookAttempt(api.sql, id, attempt(number, { url }));
  };

  // @promise webhooks-out-begins-anew
  test('another URL, and activating it again, forget its failures, and no other change does', async () => {
    const id = await newEndpoint(['commission.created']);
    for (const begin of [{ url: 'https://example.com/other' }, { isActive: true }]) {
      await earn();
      for (let number = 1; number < 4; number += 1) await failNext(number);
      const url = 'url' in begin ? 'https://example.com/hook' : 'https://example.com/other';
      await change(id, { url, description: 'CRM', isActive: true });
      expect(await failuresOf(id)).toMatchObject({ failures: 3, isFailing: true });
      if ('isActive' in begin) await change(id, { isActive: false });
      await change(id, begin);
      expect(await failuresOf(id)).toEqual({ failures: 0, isFailing: false, probeInMs: null });
      await earn();
      await failNext(1);
      // The first of the waits, not the fourth.
      expect((await failuresOf(id)).probeInMs).toBeLessThan(6_000);
      await change(id, { isActive: false });
      await change(id, { isActive: true });
    }
  });

  /** The messages of an endpoint, oldest first: whether each is due, and the attempts that count for its next waits. */
  const dueOf = async (id: WebhookEndpointId) =>
    await api.sql<{ status: string; isDue: boolean | null; counted: number }>`
      select status, next_attempt_at <= now() as is_due, attempts - earlier_attempts as counted
        from webhook_messages where endpoint_id = ${id} order by created_at, id`;
  const idsOf = async (id: WebhookEndpointId) =>
    (await messagesOf()).filter(({ endpointId }) => endpointId === id).map((message) => message.id);
  const claimHurried = async () => {
    const { messages } = await claimWebhookMessages(api.sql, { claimMs: 30_000, limit: 1_000, after: null });
    return messages.filter(({ appId, due }) => appId === app.appId && due === 'now').length;
  };
  const OTHER = { url: 'https://example.com/other' };

  // @promise webhooks-out-other-url
  test('another URL makes due the messages that wait for a later attempt, with all attempts again, and no other change does', async () => {
    const [id, other] = [
      await newEndpoint(['commission.created']),
      await newEndpoint(['commission.created']),
    ];
    for (let n = 0; n < 3; n += 1) await earn();
    const [tried, putOff, delivered] = (await idsOf(id)) as [
      WebhookMessageId,
      WebhookMessageId,
      WebhookMessageId,
    ];
    for (let number = 1; number < 4; number += 1) {
      await recordWebhookAttempt(api.sql, tried, attempt(number, { nextInMs: 20 * HOUR_MS }));
    }
    const success = attempt(1, { problem: null, statusCode: 200, nextInMs: null });
    await recordWebhookAttempt(api.sql, delivered, success);
    for (const one of [putOff, ...(await idsOf(other))]) await postpone(one, HOUR_MS);
    await change(id, { url: 'https://example.com/hook', description: 'CRM', isActive: true });
    expect(await dueOf(id)).toEqual([
      { status: 'pending', isDue: false, counted: 3 },
      { status: 'pending', isDue: false, counted: 0 },
      { status: 'delivered', isDue: null, counted: 1 },
    ]);
    expect(await claimHurried()).toBe(0);

    await change(id, OTHER);
    expect(await dueOf(id)).toEqual([
      { status: 'pending', isDue: true, counted: 0 },
      { status: 'pending', isDue: true, counted: 0 },
      { status: 'delivered', isDue: null, counted: 1 },
    ]);
    expect((await dueOf(other)).map(({ isDue }) => isDue)).toEqual([false, false, false]);
    expect(await claimHurried()).toBe(2);
    expect(await claimHurried()).toBe(0);
  });

  // @promise webhooks-out-other-url
  test('a message whose last attempt at the former URL fails after the change is due now', async () => {
    const id = await newEndpoint(['commission.created']);
    await earn();
    const [message] = (await idsOf(id)) as [WebhookMessageId];
    await recordWebhookAttempt(api.sql, message, attempt(1));
    await change(id, OTHER);
    await claimHurried();
    expect(await recordWebhookAttempt(api.sql, message, attempt(2, { nextInMs: null }))).toBeNull();
    expect(await dueOf(id)).toEqual([{ status: 'pending', isDue: true, counted: 1 }]);
    expect(await claimHurried()).toBe(1);
  });

  // @promise webhooks-out-other-url
  test('another URL also makes due a waiting message that tributary recover has passed to the relay', async () => {
    const id = await newEndpoint(['commission.created']);
    await earn();
    const [message] = (await idsOf(id)) as [WebhookMessageId];
    await recordWebhookAttempt(api.sql, message, attempt(1, { nextInMs: 20 * HOUR_MS }));
    await makeOverdue(api.sql, 30_000);
    await change(id, OTHER);
    expect(await dueOf(id)).toEqual([{ status: 'pending', isDue: true, counted: 0 }]);
  });

  // @promise webhooks-out-other-url
  test('of more waiting messages than another URL makes due, those are due that would wait longest', async () => {
    const id = await newEndpoint(['commission.created']);
    const waits = [2, 20, 5, 9];
    for (const hours of waits) {
      await earn();
      await postpone((await idsOf(id)).at(-1) as WebhookMessageId, hours * HOUR_MS);
    }
    await changeWebhookEndpoint(api.sql, app.appId as AppId, id, OTHER, 2);
    expect((await dueOf(id)).map(({ isDue }) => isDue)).toEqual([false, true, false, true]);
  });

  // @promise webhooks-out-deactivated, webhooks-out-deleted
  test('an endpoint whose waiting messages take longer to fail than a statement usually may is deactivated and deleted all the same', async () => {
    await runOn(
      api.database.url,
      `create function test_slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$;
       create trigger test_slow after update on webhook_messages for each statement execute function test_slow();`,
    );
    const hasty = connect({ url: api.database.url, max: 1, statementTimeoutMs: 250, patienceMs: 10_000 });
    try {
      const [first, second, third] = [await newEndpoint(), await newEndpoint(), await newEndpoint()];
      await earn();
      const appId = app.appId as AppId;
      expect(await changeWebhookEndpoint(hasty, appId, first, { isActive: false })).toMatchObject({
        deactivatedReason: 'by_request',
      });
      expect(await deleteWebhookEndpoint(hasty, appId, third)).toMatchObject({
        deactivatedReason: 'deleted',
      });
      const message = (await messagesOf()).find(({ endpointId }) => endpointId === second);
      const gone = attempt(1, { statusCode: 410, nextInMs: null, isGone: true });
      expect(await recordWebhookAttempt(hasty, message?.id as WebhookMessageId, gone)).toBe('gone');
    } finally {
      await hasty.close();
      await runOn(api.database.url, 'drop trigger test_slow on webhook_messages; drop function test_slow();');
    }
  });
});

test('an endpoint with very many waiting messages is deactivated: those that wait longest fail with it, each other one at its turn', async () => {
  const id = await newEndpoint(['commission.created']);
  await earn();
  const template = (await messagesOf()).find(({ endpointId }) => endpointId === id)?.id ?? '';
  await api.sql`
    insert into webhook_messages (id, app_id, endpoint_id, type, subject_id, data, relay_at)
    select 'msg_' || lpad(to_hex(n), 26, '0'), m.app_id, m.endpoint_id, m.type, m.subject_id || n, m.data, now() + n * interval '1 second'
      from webhook_messages m, generate_series(1, 20000) n where m.id = ${template}`;
  await changeWebhookEndpoint(api.sql, app.appId as AppId, id, { isActive: false });
  const waiting = await api.sql<{ id: string }>`
    select id from webhook_messages where endpoint_id = ${id} and status = 'pending'`;
  expect(waiting).toHaveLength(1);
  const process = createWebhookActivities({
    sql: api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    webhookTargets: 'any',
  });
  expect(await process.sendMessage(waiting[0]?.id ?? '')).toMatchObject({
    state: 'failed',
    problem: 'The endpoint is not active.',
  });
});

describe('the attempts of a process', () => {
  const activities = (sql = api.sql) =>
    createWebhookActivities({
      sql,
      secretBox: createSecretBox([TEST_KEY]),
      logger: pino({ level: 'silent' }),
      webhookTargets: 'any',
    });
  /** An address that refuses connections at once. */
  const REFUSES = 'http://127.0.0.1:1/';

  // @promise webhooks-out-isolated
  test('an endpoint that fails gets one attempt at a time and the other messages wait until after the next one', async () => {
    const id = await newEndpoint(['commission.created'], REFUSES);
    for (let n = 0; n < 5; n += 1) await earn();
    const process = activities();
    const sendMessage = async (message: string) => await process.sendMessage(message);
    const [first = '', ...rest] = (await messagesOf()).map((message) => message.id);
    expect((await sendMessage(first)).state).toBe('retry');
    for (const other of rest) {
      expect(await sendMessage(other)).toMatchObject({ state: 'later', attempts: 0 });
    }
    const waiting =
      await api.sql`select from webhook_messages where endpoint_id = ${id} and next_attempt_at > now()`;
    expect(waiting).toHaveLength(5);
    const due = async () =>
      await api.sql`
        with endpoint as (update webhook_endpoints set next_probe_at = now() where id = ${id})
        update webhook_messages set next_attempt_at = now() where endpoint_id = ${id}`;
    await due();
    const results = await Promise.all(rest.map(sendMessage));
    expect(results.map(({ state }) => state).toSorted()).toEqual(['later', 'later', 'later', 'retry']);
    await due();
    const later = (await Promise.all(rest.map(sendMessage))).filter(({ state }) => state === 'later');
    expect(later).toHaveLength(3);
    const { probeInMs } = await api.sql.one<{ probeInMs: number }>`
      select extract(epoch from next_probe_at - now())::float8 * 1000 as probe_in_ms from webhook_endpoints where id = ${id}`;
    expect(probeInMs).toBeGreaterThan(20 * 60_000);
  });

  // @promise webhooks-out-isolated
  test('the messages that wait for an endpoint are put off at once while a statement ends it', async () => {
    const endpointId = await newEndpoint(['commission.created'], REFUSES);
    await earn();
    const id = (await messagesOf())[0]?.id ?? '';
    await api.sql`update webhook_endpoints set failing_since = now() where id = ${endpointId}`;
    const hasty = connect({ url: api.database.url, max: 1, statementTimeoutMs: 250, patienceMs: 10_000 });
    const client = new pg.Client(api.database.url);
    await client.connect();
    try {
      await client.query('begin');
      await client.query('select from webhook_endpoints where id = $1 for no key update', [endpointId]);
      await client.query('select from webhook_messages where id = $1 for update', [id]);
      expect(await activities(hasty).sendMessage(id)).toMatchObject({ state: 'later', attempts: 0 });
    } finally {
      await client.end();
      await hasty.close();
    }
  });

  // @promise webhooks-out-other-url, webhooks-out-send-again
  test.each([
    ['its endpoint gets another URL', { failing_since: null, next_probe_at: null }],
    ['a person sends it again', { next_probe_at: new Date() }],
  ])('a message that is put off until the next probe stays due if meanwhile %s', async (_, values) => {
    const endpointId = await newEndpoint(['commission.created'], REFUSES);
    await earn();
    const id = (await messagesOf())[0]?.id ?? '';
    await api.sql`
      update webhook_endpoints set failing_since = now() - interval '1 hour', next_probe_at = now() + interval '1 hour'
       where id = ${endpointId}`;
    const client = new pg.Client(api.database.url);
    await client.connect();
    try {
      await client.query('begin');
      // Stops the statement that puts the message off, and not those that read before it.
      await client.query('lock table webhook_messages in exclusive mode');
      const sent = activities().sendMessage(id);
      await untilWaiting(api.sql);
      for (const [column, value] of Object.entries(values)) {
        await client.query(`update webhook_endpoints set ${column} = $1 where id = $2`, [value, endpointId]);
      }
      await client.query('commit');
      expect(await sent).toMatchObject({ state: 'later', attempts: 0 });
    } finally {
      await client.end();
    }
    const row = await api.sql
      .one`select next_attempt_at <= now() as is_due from webhook_messages where id = ${id}`;
    expect(row).toEqual({ isDue: true });
  });

  // @promise webhooks-out-isolated
  test('the slow endpoints of an account get twelve attempts at a time together, and the endpoint of another account its own', async () => {
    const held: ServerResponse[] = [];
    const receiver = createServer((_, response) => void held.push(response)).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const process = activities();
    const sendAll = async () => (await messagesOf()).map(async ({ id }) => await process.sendMessage(id));
    try {
      for (let n = 0; n < 3; n += 1) await newEndpoint(['commission.created'], url);
      for (let n = 0; n < 8; n += 1) await earn();
      const sent = await sendAll();
      app = await newApp(api);
      affiliateId = await newAffiliate(api, app);
      await newEndpoint(['commission.created'], url);
      await earn();
      while (held.length < 12) await sleep(5);
      const others = await sendAll();
      while (held.length < 13) await sleep(5);
      for (const response of held) response.writeHead(200).end();
      const states = (await Promise.all(sent)).map(({ state }) => state);
      expect(states.filter((state) => state === 'delivered')).toHaveLength(12);
      expect(states.filter((state) => state === 'later')).toHaveLength(12);
      expect((await Promise.all(others)).map(({ state }) => state)).toEqual(['delivered']);
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
  });

  // @promise webhooks-out-deactivated
  test('an endpoint that has failed for the time of all attempts is deactivated by a message that has attempts left', async () => {
    await newEndpoint(['commission.created']);
    await earn();
    const id = (await messagesOf())[0]?.id as WebhookMessageId;
    const began = Date.now() - 77 * HOUR_MS;
    for (let number = 1; number < 10; number += 1) {
      expect(
        await recordWebhookAttempt(api.sql, id, attempt(number, { startedAt: began + number })),
      ).toBeNull();
    }
    expect(await recordWebhookAttempt(api.sql, id, attempt(10))).toBe('failing');
  });
});
