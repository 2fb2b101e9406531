import { connect as connectSocket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { settlePayoutRequest } from '../../src/db/ledger.ts';
import { connect } from '../../src/db/sql.ts';
import type { PayoutRequestId } from '../../src/domain/ids.ts';
import type { ReadinessCheck } from '../../src/http/deps.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;
let checks: ReadinessCheck[] = [];

beforeAll(async () => {
  api = await startTestApi({ readiness: async () => checks });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

// @promise problem-document
test('an error is a problem document that names itself and the request', async () => {
  const answer = await api.call('GET', '/nowhere');
  expect(answer.status).toBe(404);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.body).toEqual({
    type: 'urn:tributary:error:not_found',
    title: 'Not found',
    status: 404,
    code: 'not_found',
    requestId: answer.headers.get('x-request-id'),
  });
});

// @promise request-id
test('every answer names its request, each by an id of its own', async () => {
  const { key } = app;
  const answers = [
    await api.call('GET', '/healthz'),
    await api.call('GET', '/docs'),
    await api.call('GET', '/apps', { key }),
    await api.call('HEAD', '/apps', { key }),
    await api.call('POST', '/apps', { key, body: { name: 'x' } }),
    await api.call('POST', '/apps', { key, body: '[' }),
    await api.call('GET', '/apps'),
    await api.call('GET', '/nowhere'),
    await api.call('DELETE', '/apps'),
    await api.call('OPTIONS', '/apps'),
    await api.call('OPTIONS', '/clicks', {
      headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
    }),
    await api.call('POST', `/webhooks/stripe/${app.appId}`, { body: {} }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([
    200, 200, 200, 200, 201, 400, 401, 404, 405, 204, 204, 401,
  ]);
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  expect(new Set(ids).size).toBe(answers.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

// @promise export-closes-on-timeout
test('an export that no workflow settles is a 503; nothing is paid for it, and its key is free', async () => {
  const affiliateId = await newAffiliate(api, app);
  const occurredAt = Date.UTC(2026, 0, 1);
  await insertEarning(api, app, { affiliateId, amountCents: 100, occurredAt, dueAt: occurredAt });
  const path = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
  for (let round = 0; round < 2; round += 1) {
    const answer = await api.call('POST', path, { key: app.key, headers: { 'idempotency-key': 'one-key' } });
    expect(answer).toMatchObject({ status: 503, body: { code: 'payout_not_settled' } });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  const requests = await api.sql<{ id: PayoutRequestId; status: string }>`
    select id, status from payout_requests where affiliate_id = ${affiliateId}`;
  expect(requests.map(({ status }) => status)).toEqual(['closed', 'closed']);
  for (const { id } of requests) await settlePayoutRequest(api.sql, id);
  expect(await api.sql`select from payouts where affiliate_id = ${affiliateId}`).toEqual([]);
});

// @promise allow-405
test('a method that a path does not have is a 405 with those it has', async () => {
  const answer = await api.call('DELETE', '/apps');
  expect(answer).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
  expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
  const options = await api.call('OPTIONS', '/apps');
  expect(options.status).toBe(204);
  expect(options.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
});

// @promise head-not-on-clicks
test('HEAD answers like GET without a body', async () => {
  const answer = await api.call('HEAD', '/apps', { key: app.key });
  expect(answer).toMatchObject({ status: 200, text: '' });
  expect((await api.call('HEAD', '/clicks')).status).toBe(405);
});

describe('a body', () => {
  const post = (body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) =>
    fetch(`${api.url}/apps`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json', ...headers },
      body,
    });

  // @promise malformed-json, body-413-415
  test.each([
    ['broken JSON', '{"name":', {}, 400, 'invalid_request'],
    ['a bare value', '"name"', {}, 400, 'invalid_request'],
    ['an array', '[]', {}, 400, 'invalid_request'],
    ['nothing', '', {}, 400, 'invalid_request'],
    ['a prototype', '{"name":"x","__proto__":{"a":1}}', {}, 400, 'invalid_request'],
    ['deep nesting', `{"name":${'['.repeat(200_000)}`, {}, 400, 'invalid_request'],
    [
      'deep but closed nesting',
      `{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      {},
      400,
      'invalid_request',
    ],
    [
      'a form',
      'name=x',
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
      'unsupported_media_type',
    ],
    ['plain text', '{"name":"x"}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['more than a mebibyte', `{"name":"${'x'.repeat(1024 * 1024)}"}`, {}, 413, 'payload_too_large'],
    ['a strange encoding', '{"name":"x"}', { 'content-encoding': 'zip' }, 415, 'unsupported_media_type'],
    [
      'what only says it is compressed',
      '{"name":"x"}',
      { 'content-encoding': 'gzip' },
      400,
      'invalid_request',
    ],
  ])('%s is refused', async (_, body, headers, status, code) => {
    const answer = await post(body, headers);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ code });
  });

  // @promise body-413-415
  test('that unpacks to more than a mebibyte is a 413', async () => {
    const bomb = gzipSync(Buffer.from(`{"name":"${'x'.repeat(20 * 1024 * 1024)}"}`));
    expect((await post(new Uint8Array(bomb), { 'content-encoding': 'gzip' })).status).toBe(413);
  });

  test('with an unknown field is a 400 that names it', async () => {
    const answer = await api.call('POST', '/apps', { key: app.key, body: { name: 'x', nmae: 'y' } });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('nmae');
  });
});

// @promise unavailable-503
test('a database that is away is a 503 that says when to come back', async () => {
  const sql = connect({ url: 'postgres://nobody@127.0.0.1:1/none', patienceMs: 50 });
  const broken = await startTestApi({ sql });
  const answer = await broken.call('GET', '/apps', { key: app.key });
  expect(answer).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect(answer.headers.get('retry-after')).toBe('2');
  await broken.close();
  await sql.close();
});

// @promise no-internals-in-errors
test('a fault is a 500 that tells nothing but the request id', async () => {
  const faulty = await startTestApi({
    readiness: async () => {
      throw new Error('the password is hunter2');
    },
  });
  // Not through `call`, which takes no answer that the description of the API does not have.
  const answer = await fetch(`${faulty.url}/readyz`);
  expect(answer.status).toBe(500);
  expect(Object.keys((await answer.json()) as object).toSorted()).toEqual([
    'code',
    'requestId',
    'status',
    'title',
    'type',
  ]);
  await faulty.close();
});

describe('what never becomes a request', () => {
  async function send(text: string): Promise<string> {
    const { hostname, port } = new URL(api.url);
    const socket = connectSocket(Number(port), hostname);
    socket.setEncoding('utf8');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    return answer;
  }

  test.each([
    [
      'headers of more than 16 KiB',
      `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    [
      'an address of more than 16 KiB',
      `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
  ])('%s is answered as a problem document, too', async (_, text, status, code) => {
    const answer = await send(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain('Content-Type: application/problem+json');
    const [, body = ''] = answer.split('\r\n\r\n');
    const { requestId, ...problem } = JSON.parse(body) as Record<string, unknown>;
    expect(problem).toMatchObject({ status, code });
    expect(answer).toContain(`X-Request-Id: ${String(requestId)}`);
  });

  test('does not take the place of the answer that an earlier request on the connection waits for', async () => {
    const answer = await send('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\ngarbage\r\n\r\n');
    expect(answer).not.toMatch(/^HTTP\/1.1 400/);
  });

  test.each([['/apps/%E0%A4%A'], ['/%'], ['//'], ['/apps/%00'], ['/apps/..%2f..'], ['/apps?limit=%']])(
    'a strange address is a plain refusal: %s',
    async (path) => {
      const answer = await send(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 4\d\d /);
    },
  );
});

describe('health', () => {
  // @promise get-healthz, health-and-readiness
  test('the process is well while it answers', async () => {
    expect(await api.call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  // @promise get-readyz, health-and-readiness
  test('what is needed and missing is a 503 that names it, what is optional is told', async () => {
    checks = [{ name: 'database', ok: true, detail: null, optional: false }];
    expect(await api.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    checks = [...checks, { name: 'temporal', ok: false, detail: 'no answer', optional: true }];
    expect(await api.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'degraded' } });
    checks = [{ name: 'temporal', ok: false, detail: 'no answer', optional: false }];
    const answer = await api.call('GET', '/readyz');
    expect(answer).toMatchObject({ status: 503, body: { code: 'not_ready', detail: 'temporal: no answer' } });
  });
});
