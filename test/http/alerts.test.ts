import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAccount, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Body {
  readonly items: { id: string; rule: string; facts: object; closedAt: number | null }[];
  readonly nextCursor: string | null;
  readonly endpointId: string | null;
  readonly id: string;
  readonly code: string;
}

const call = async (
  method: string,
  path: string,
  { body, owner = app, headers = {}, key = owner.key }: CallOptions = {},
) => await api.call<Body>(method, `/apps/${owner.appId}${path}`, { key, body, headers });

interface CallOptions {
  readonly body?: unknown;
  readonly owner?: TestApp;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

/** Inserts an alert that was opened some days ago. Returns its id. */
async function insertAlert(daysAgo: number, isOpen: boolean): Promise<string> {
  const id = newId('alert');
  const at = api.clock.now - daysAgo * DAY_MS;
  await api.sql`
    insert into alerts (id, app_id, rule, subject, facts, opened_at, closed_at)
    values (${id}, ${app.appId}, 'webhooks_refused', ${id}, ${api.sql.json({ refused: 3, lastRefusedAt: at })}, ${instant(at)},
            ${isOpen ? null : instant(at + 1)})`;
  return id;
}

describe('the list of alerts', () => {
  // @promise list-alerts
  test('open ones are first, then those that were opened last, page by page and as CSV', async () => {
    const oldOpen = await insertAlert(9, true);
    const newClosed = await insertAlert(1, false);
    const oldClosed = await insertAlert(8, false);
    const newOpen = await insertAlert(2, true);
    const ids: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const path: string = `/alerts?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const { status, body } = await call('GET', path);
      expect(status).toBe(200);
      ids.push(...body.items.map(({ id }) => id));
      cursor = body.nextCursor;
    }
    expect(ids).toEqual([newOpen, oldOpen, newClosed, oldClosed]);
    const idsOf = async (status: string) =>
      (await call('GET', `/alerts?status=${status}`)).body.items.map(({ id }) => id);
    expect(await idsOf('open')).toEqual([newOpen, oldOpen]);
    expect(await idsOf('closed')).toEqual([newClosed, oldClosed]);
    const csv = await call('GET', '/alerts', { headers: { accept: 'text/csv' } });
    expect(csv.text.split('\r\n')[0]).toBe('id,rule,subject,facts,openedAt,closedAt');
    expect(csv.text).toContain(`${newOpen},webhooks_refused,${newOpen},"{""refused"":3`);
  });

  // @promise alert-isolated
  test('another account sees nothing of them and of the Slack URL', async () => {
    const stranger = await newApp(api, await newAccount(api));
    expect((await call('GET', '/alerts', { owner: stranger })).body.items).toEqual([]);
    for (const [method, path] of [
      ['GET', '/alerts'],
      ['GET', '/slack-url'],
      ['DELETE', '/slack-url'],
    ] as const)
      expect((await call(method, path, { key: stranger.key })).status).toBe(404);
  });

  test('a status that does not exist is a 400', async () => {
    expect((await call('GET', '/alerts?status=waiting')).status).toBe(400);
  });
});

describe('the Slack URL of an app', () => {
  const url = 'https://hooks.slack.com/services/T01/B02/a-token-of-slack';
  const set = async (to = url, key = app.key) => await call('PUT', '/slack-url', { body: { url: to }, key });

  // @promise slack-url-secret, get-slack-url, put-slack-url, delete-slack-url
  test('it is stored encrypted, in no answer and no audit row, until it is removed', async () => {
    expect((await call('GET', '/slack-url')).body).toMatchObject({
      isSet: false,
      host: null,
      endpointId: null,
    });
    const first = await set();
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ isSet: true, host: 'hooks.slack.com', failingSince: null });
    const again = await set(`${url}-2`);
    expect(again.body.endpointId).toBe(first.body.endpointId);
    const shown = [first, again, await call('GET', '/slack-url'), await call('GET', '/webhook-endpoints')];
    for (const { text } of shown) expect(text).not.toMatch(/token|services/);
    const rows = await api.sql<{ line: string }>`
      select e::text || encode(e.ciphertext, 'escape') as line from webhook_endpoints e where app_id = ${app.appId}
      union all select a::text from audit_rows a where app_id = ${app.appId}`;
    expect(rows.length).toBeGreaterThan(2);
    for (const { line } of rows) expect(line).not.toMatch(/token|services/);
    expect((await call('DELETE', '/slack-url')).body).toMatchObject({ isSet: false, endpointId: null });
    expect((await call('DELETE', '/slack-url')).status).toBe(200);
    const left =
      await api.sql`select from webhook_endpoints where app_id = ${app.appId} and ciphertext <> ''`;
    expect(left).toEqual([]);
    expect((await call('POST', '/slack-url/test')).status).toBe(404);
  });

  // @promise slack-url-address
  test.each([
    ['http://hooks.slack.com/services/x'],
    ['https://127.0.0.1/services/x'],
    ['https://10.0.0.7/x'],
    ['https://[::1]/x'],
    ['https://169.254.169.254/latest'],
    ['https://user:pass@hooks.slack.com/x'],
    ['no address'],
  ])('%s is a 400, and is not repeated', async (wrong) => {
    const { status, text } = await set(wrong);
    expect(status).toBe(400);
    expect(text).not.toContain(wrong);
  });

  // @promise slack-url-permission
  test.each(['read', 'write', 'payout'] as const)(
    'who has the permission %s alone cannot set it',
    async (permission) => {
      const { key } = await createAccountKey(api.sql, app.accountId, [permission]);
      expect((await set(url, key)).status).toBe(403);
      expect((await call('GET', '/slack-url', { key })).status).toBe(403);
      expect((await call('POST', '/slack-url/test', { key })).status).toBe(403);
    },
  );

  // @promise slack-url-own-slot
  test('it is no endpoint that can be read, changed or deleted as others, and takes none of their places', async () => {
    const { body } = await set();
    const path = `/webhook-endpoints/${body.endpointId}`;
    expect((await call('GET', path)).status).toBe(404);
    expect((await call('PATCH', path, { body: { url: 'https://example.com' } })).status).toBe(404);
    expect((await call('POST', `${path}/rotate-secret`, { body: {} })).status).toBe(404);
    expect((await call('DELETE', path)).status).toBe(404);
    const endpoint = { url: 'https://example.com/hook', eventTypes: ['alert.opened'] };
    for (let n = 0; n < 20; n += 1)
      expect((await call('POST', '/webhook-endpoints', { body: endpoint })).status).toBe(201);
    expect((await call('POST', '/webhook-endpoints', { body: endpoint })).status).toBe(409);
    expect((await call('GET', '/webhook-endpoints')).body.items).toHaveLength(20);
  });

  // @promise test-slack-url
  test('a test message is written to it, and a 409 says to set a URL again that the service deactivated', async () => {
    const { body } = await set();
    const message = await call('POST', '/slack-url/test');
    expect(message).toMatchObject({
      status: 201,
      body: { type: 'webhook.test', endpointId: body.endpointId, status: 'pending' },
    });
    await api.sql`
      update webhook_endpoints set deactivated_at = now(), deactivated_reason = 'failing', failing_since = now() where id = ${body.endpointId}`;
    for (const path of ['/slack-url/test', `/webhook-messages/${message.body.id}/send-again`])
      expect(await call('POST', path)).toMatchObject({ status: 409, body: { code: 'endpoint_not_active' } });
    expect((await set()).body).toMatchObject({ deactivatedAt: null, failingSince: null });
    expect((await call('POST', '/slack-url/test')).status).toBe(201);
  });

  // @promise put-slack-url
  test('messages that wait for a later attempt are due with another URL', async () => {
    await set();
    const { id } = (await call('POST', '/slack-url/test')).body;
    await api.sql`
      update webhook_messages set attempts = 3, next_attempt_at = now() + interval '1 day', relay_at = now() + interval '1 day' where id = ${id}`;
    await set(`${url}-3`);
    const due =
      await api.sql`select from webhook_messages where id = ${id} and next_attempt_at <= now() and earlier_attempts = 3`;
    expect(due).toHaveLength(1);
  });
});
