import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { signingSecretContext } from '../../src/db/webhook-endpoints.ts';
import { presentPage } from '../../src/http/pagination.ts';
import type { WebhookEndpointId } from '../../src/domain/ids.ts';
import { MAX_ENDPOINTS } from '../../src/domain/outgoing-webhooks.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';

let api: TestApi;
let app: TestApp;
const hurried: string[] = [];

beforeAll(async () => {
  api = await startTestApi({
    workflows: {
      ...IDLE_WORKFLOWS,
      sendWebhookNow: ({ messageId }) => void hurried.push(messageId),
    },
  });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Body {
  readonly id: WebhookEndpointId;
  readonly secret: string;
  readonly items: { id: string; status: string; attempts: number }[];
  readonly nextCursor: string | null;
}

const NEW = { url: 'https://example.com/hook', eventTypes: ['commission.created'] };
const call = async (method: string, path: string, body?: unknown, owner = app, headers = {}) =>
  await api.call<Body>(method, `/apps/${owner.appId}${path}`, { key: owner.key, body, headers });
const create = async (owner = app) => (await call('POST', '/webhook-endpoints', NEW, owner)).body;

describe('endpoints of outgoing webhooks', () => {
  // @promise webhooks-out-secret-once, create-webhook-endpoint, list-webhook-endpoints, get-webhook-endpoint
  test('the secret is returned once, stored encrypted, and is one of Standard Webhooks', async () => {
    const { status, body } = await call('POST', '/webhook-endpoints', { ...NEW, description: 'CRM' });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      ...NEW,
      description: 'CRM',
      active: true,
      deactivatedReason: null,
      failingSince: null,
    });
    expect(body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    for (const path of ['/webhook-endpoints', `/webhook-endpoints/${body.id}`]) {
      expect((await call('GET', path)).text).not.toContain('whsec_');
    }
    const row = await api.sql.one<{ ciphertext: Buffer; encryptionKeyId: string }>`
      select ciphertext, encryption_key_id from webhook_endpoints where id = ${body.id}`;
    expect(Buffer.from(row.ciphertext).toString('latin1')).not.toContain(body.secret.slice(6));
    const box = createSecretBox([TEST_KEY]);
    const context = signingSecretContext(body.id);
    expect(box.decrypt(Buffer.from(row.ciphertext), row.encryptionKeyId, context)).toBe(body.secret);
    expect(() =>
      box.decrypt(
        Buffer.from(row.ciphertext),
        row.encryptionKeyId,
        signingSecretContext('whe_other' as WebhookEndpointId),
      ),
    ).toThrow('belongs to another owner');
  });

  test('a call that is repeated with its idempotency key returns the same endpoint and secret', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const first = await call('POST', '/webhook-endpoints', NEW, app, headers);
    const second = await call('POST', '/webhook-endpoints', NEW, app, headers);
    expect(second.body).toEqual(first.body);
  });

  // @promise webhooks-out-https, webhooks-out-public-addresses
  test.each([
    [{ ...NEW, url: 'http://example.com/hook' }, 'url'],
    [{ ...NEW, url: 'https://user:pass@example.com/' }, 'url'],
    [{ ...NEW, url: 'https://169.254.169.254/hook' }, 'url'],
    [{ ...NEW, url: 'https://[::ffff:127.0.0.1]/hook' }, 'url'],
    [{ ...NEW, eventTypes: [] }, 'eventTypes'],
    [{ ...NEW, eventTypes: ['webhook.test'] }, 'eventTypes.0'],
    [{ url: NEW.url }, 'eventTypes'],
  ])('%j is a 400', async (body, path) => {
    expect(await call('POST', '/webhook-endpoints', body)).toMatchObject({
      status: 400,
      body: { errors: [{ path }] },
    });
  });

  // @promise update-webhook-endpoint
  test('a change changes only the fields that it has', async () => {
    const { id } = await create();
    const path = `/webhook-endpoints/${id}`;
    expect((await call('PATCH', path, { description: 'CRM' })).body).toMatchObject({
      ...NEW,
      description: 'CRM',
    });
    const changed = { url: 'https://example.com/other', eventTypes: ['payout.created', 'payout.created'] };
    expect((await call('PATCH', path, changed)).body).toMatchObject({
      url: changed.url,
      eventTypes: ['payout.created'],
      description: 'CRM',
    });
    expect((await call('PATCH', path, { description: null })).body).toMatchObject({ description: null });
    expect((await call('PATCH', path, { active: false })).body).toMatchObject({
      active: false,
      deactivatedReason: 'by_request',
    });
    expect((await call('PATCH', path, { active: true })).body).toMatchObject({
      active: true,
      deactivatedAt: null,
    });
    expect((await call('PATCH', path, { url: 'http://example.com/' })).status).toBe(400);
    expect(await call('PATCH', path, { url: 'https://0x7f.1/' })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'url', message: expect.stringMatching(/^Must have a public host/) }] },
    });
    expect((await call('GET', path)).body).toMatchObject({ url: changed.url });
  });

  // @promise rotate-webhook-endpoint-secret
  test('a rotation returns another secret and says until when the previous one signs', async () => {
    const { id, secret } = await create();
    const { body } = await call('POST', `/webhook-endpoints/${id}/rotate-secret`, { graceSeconds: 60 });
    expect(body.secret).toMatch(/^whsec_/);
    expect(body.secret).not.toBe(secret);
  });

  // @promise webhooks-out-endpoint-limit
  test('an app has at most twenty endpoints, active or not, also when several are created at the same time, until one is deleted', async () => {
    const owner = await newApp(api);
    const path = (id: string) => `/webhook-endpoints/${id}`;
    const add = async () => await call('POST', '/webhook-endpoints', NEW, owner);
    const statuses = async (calls: readonly ReturnType<typeof call>[]) =>
      (await Promise.all(calls)).map(({ status }) => status).toSorted((a, b) => a - b);
    const first = Array.from({ length: MAX_ENDPOINTS - 3 }, async () => (await add()).body.id);
    const [one = ''] = await Promise.all(first);
    expect(await statuses([add(), add(), add(), add(), add(), add()])).toEqual([
      201, 201, 201, 409, 409, 409,
    ]);
    expect((await call('PATCH', path(one), { active: false }, owner)).status).toBe(200);
    expect(await add()).toMatchObject({
      status: 409,
      body: {
        code: 'too_many_endpoints',
        detail: 'An app has at most 20 endpoints, active or not. Delete one of them, or change it.',
      },
    });
    expect((await call('PATCH', path(one), { active: true }, owner)).status).toBe(200);

    expect((await call('DELETE', path(one), undefined, owner)).status).toBe(200);
    expect(await statuses([add(), add()])).toEqual([201, 409]);
    const { body } = await call('GET', '/webhook-endpoints', undefined, owner);
    expect(body.items).toHaveLength(MAX_ENDPOINTS);
  });

  // @promise delete-webhook-endpoint, webhooks-out-deleted
  test('an endpoint that is deleted has no secret, fails its messages that wait, and is gone, but its messages are listed', async () => {
    const owner = await newApp(api);
    const { id } = await create(owner);
    const path = `/webhook-endpoints/${id}`;
    await call('POST', `${path}/rotate-secret`, {}, owner);
    const { body: message } = await call('POST', `${path}/test`, undefined, owner);
    const deleted = await call('DELETE', path, undefined, owner);
    expect(deleted).toMatchObject({ status: 200, body: { id, active: false, deactivatedReason: 'deleted' } });
    const row = await api.sql.one`
      select length(ciphertext) as current, length(previous_ciphertext) as previous from webhook_endpoints where id = ${id}`;
    expect(row).toEqual({ current: 0, previous: 0 });

    expect((await call('GET', '/webhook-endpoints', undefined, owner)).body.items).toEqual([]);
    for (const [method, of, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { active: true }],
      ['POST', '/rotate-secret', {}],
      ['POST', '/test', undefined],
    ] as const) {
      expect((await call(method, `${path}${of}`, body, owner)).status).toBe(404);
    }
    const again = await call('POST', `/webhook-messages/${message.id}/send-again`, undefined, owner);
    expect(again.status).toBe(404);
    expect(
      (await call('GET', `/webhook-messages?endpointId=${id}`, undefined, owner)).body.items,
    ).toMatchObject([{ status: 'failed', lastProblem: 'The endpoint is not active.' }]);

    // The call again is no change: when it was deleted stays, and there is no other audit row.
    expect((await call('DELETE', path, undefined, owner)).body).toEqual(deleted.body);
    const rows = await api.sql`
      select action from audit_rows where object_id = ${id} and after->>'deactivatedReason' = 'deleted'`;
    expect(rows).toEqual([{ action: 'changed' }]);
    expect((await call('DELETE', '/webhook-endpoints/whe_unknown', undefined, owner)).status).toBe(404);
  });
});

describe('messages to endpoints', () => {
  // @promise webhooks-out-lists, list-webhook-messages, test-webhook-endpoint
  test('messages are listed latest first, by endpoint, status and type, page by page', async () => {
    const owner = await newApp(api);
    const [first, second] = [await create(owner), await create(owner)];
    const affiliateId = await newAffiliate(api, owner);
    for (let n = 1; n <= 3; n += 1) {
      await insertEarning(api, owner, {
        affiliateId,
        amountCents: n,
        occurredAt: api.clock.now,
        dueAt: api.clock.now,
      });
    }
    const { body: tested } = await call('POST', `/webhook-endpoints/${first.id}/test`, undefined, owner);
    await api.sql`update webhook_messages set status = 'failed', completed_at = now(), next_attempt_at = null, relay_at = null
                   where id = ${tested.id}`;
    const list = async (query: string) => {
      const ids: string[] = [];
      let cursor = '';
      do {
        const { body } = await call('GET', `/webhook-messages?limit=2${query}${cursor}`, undefined, owner);
        ids.push(...body.items.map(({ id }) => id));
        cursor = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`;
      } while (cursor !== '');
      return ids;
    };
    const all = await list('');
    expect(all).toHaveLength(7);
    expect(new Set(all).size).toBe(7);
    expect(all[0]).toBe(tested.id);
    expect(await list(`&endpointId=${second.id}`)).toHaveLength(3);
    expect(await list('&status=failed')).toEqual([tested.id]);
    expect(await list('&status=pending&type=commission.created')).toHaveLength(6);
    expect(await list(`&endpointId=${first.id}&type=webhook.test`)).toEqual([tested.id]);
    expect(await list('&status=delivered')).toEqual([]);
    expect(await list('&endpointId=unknown')).toEqual([]);
  });

  // @promise list-webhook-attempts
  test('the attempts at a message are listed latest first, page by page', async () => {
    const { id } = await create();
    const { body: message } = await call('POST', `/webhook-endpoints/${id}/test`);
    await api.sql`insert into webhook_attempts (message_id, number, started_at, duration_ms)
                  select ${message.id}, n, now(), n from generate_series(1, 3) n`;
    const path = `/webhook-messages/${message.id}/attempts`;
    const first = (await call('GET', `${path}?limit=2`)).body;
    expect(first.items).toMatchObject([
      { number: 3, durationMs: 3, statusCode: null, response: null },
      { number: 2 },
    ]);
    const rest = (await call('GET', `${path}?limit=2&cursor=${first.nextCursor}`)).body;
    expect(rest).toMatchObject({ items: [{ number: 1 }], nextCursor: null });

    const key = {
      list: 'webhook-attempts',
      appId: app.appId,
      filters: { messageId: String(message.id) },
    };
    const beyond = { rows: [], next: { sortKey: 2 ** 31, id: String(message.id) } };
    const { nextCursor: forged } = presentPage(key, beyond, (row) => row);
    expect((await call('GET', `${path}?cursor=${forged}`)).status).toBe(400);
  });

  // @promise webhooks-out-send-again, send-webhook-message-again, get-webhook-message
  test('sending again makes a message that has ended due, and tells its workflow', async () => {
    const { id } = await create();
    const { body: message } = await call('POST', `/webhook-endpoints/${id}/test`);
    await api.sql`update webhook_messages set status = 'failed', attempts = 10, completed_at = now(), next_attempt_at = null,
                                              relay_at = null where id = ${message.id}`;
    const { status, body } = await call('POST', `/webhook-messages/${message.id}/send-again`);
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { status: 'pending', attempts: 10, completedAt: null },
    });
    expect(hurried).toEqual([message.id]);
    expect((await call('GET', `/webhook-messages/${message.id}`)).body).toEqual(body);
    const row = await api.sql.one`select earlier_attempts from webhook_messages where id = ${message.id}`;
    expect(row).toEqual({ earlierAttempts: 10 });
  });

  // @promise webhooks-out-not-active
  test('a test message and sending again are a 409 while the endpoint is not active, and send nothing', async () => {
    const owner = await newApp(api);
    const { id } = await create(owner);
    const endpoint = `/webhook-endpoints/${id}`;
    const { body: message } = await call('POST', `${endpoint}/test`, undefined, owner);
    const sends = [`${endpoint}/test`, `/webhook-messages/${message.id}/send-again`];
    const list = async () => (await call('GET', '/webhook-messages', undefined, owner)).body.items;
    await call('PATCH', endpoint, { active: false }, owner);
    const before = await list();
    expect(before).toMatchObject([{ id: message.id, status: 'failed' }]);
    for (const path of sends) {
      expect(await call('POST', path, undefined, owner)).toMatchObject({
        status: 409,
        body: {
          code: 'endpoint_not_active',
          detail:
            'Nothing was sent. Activate the endpoint (`active: true`), then send again, with a new `Idempotency-Key` if you use one.',
        },
      });
    }
    expect(await list()).toEqual(before);
    expect(hurried).not.toContain(message.id);
    await call('PATCH', endpoint, { active: true }, owner);
    for (const path of sends) expect((await call('POST', path, undefined, owner)).status).toBeLessThan(300);
  });

  // @promise webhooks-out-not-active
  test('a call that was refused because the endpoint was not active is refused again with its idempotency key, as its 409 says, and not with a new one', async () => {
    const owner = await newApp(api);
    const endpoint = `/webhook-endpoints/${(await create(owner)).id}`;
    const send = async (key: string) =>
      await call('POST', `${endpoint}/test`, undefined, owner, { 'Idempotency-Key': key });
    await call('PATCH', endpoint, { active: false }, owner);
    const refused = await send('first');
    expect(refused.body).toMatchObject({ detail: expect.stringContaining('a new `Idempotency-Key`') });
    await call('PATCH', endpoint, { active: true }, owner);
    expect(await send('first')).toMatchObject({ status: 409, body: refused.body });
    expect((await send('second')).status).toBeLessThan(300);
  });
});
