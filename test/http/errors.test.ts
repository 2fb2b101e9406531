import { connect as connectSocket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { connect } from '../../src/db/sql.ts';
import type { PayoutRequestId } from '../../src/domain/ids.ts';
import type { ReadinessCheck } from '../../src/http/deps.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { headOf, openConnection, received } from '../support/raw-http.ts';

let api: TestApi;
const exports: string[] = [];
let app: TestApp;
let checks: ReadinessCheck[] = [];

beforeAll(async () => {
  api = await startTestApi({
    readiness: async () => checks,
    observeExport: (result) => void exports.push(result),
  });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

// @promise problem-document
test('an error is a problem document with its code and the request id', async () => {
  const response = await api.call('GET', '/nowhere');
  expect(response.status).toBe(404);
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.body).toEqual({
    type: 'urn:tributary:error:not_found',
    title: 'Not found',
    status: 404,
    detail: 'No route has this path. `GET /docs` lists every route.',
    code: 'not_found',
    requestId: response.headers.get('x-request-id'),
  });
});

// @promise request-id
test('every response has a request id, and each another one', async () => {
  const { key } = app;
  const responses = [
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
  expect(responses.map(({ status }) => status)).toEqual([
    200, 200, 200, 200, 201, 400, 401, 404, 405, 204, 204, 401,
  ]);
  const ids = responses.map(({ headers }) => headers.get('x-request-id'));
  expect(new Set(ids).size).toBe(responses.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

// @promise problem-document
test.each(['http://[x/healthz', 'x://y', 'http://[x/clicks'])(
  'the target %s has no path: a 400, and one of the calls that count against the address',
  async (target) => {
    const rateLimits = createRateLimits({ ...NO_RATE_LIMITS, address: 2 });
    const own = await startTestApi({ rateLimits });
    const responses: string[] = [];
    for (let call = 0; call < 3; call += 1) {
      const socket = await openConnection(own.url, headOf('GET', target, { connection: 'close' }));
      responses.push(await received(socket));
    }
    await own.close();
    for (const [nth, status] of [400, 400, 429].entries()) {
      const [head = '', body = ''] = responses[nth]?.split('\r\n\r\n') ?? [];
      const requestId = /X-Request-Id: (\S+)/.exec(head)?.[1];
      expect(head).toContain('Content-Type: application/problem+json');
      expect(JSON.parse(body)).toMatchObject({ status, requestId });
    }
  },
);

test('an Accept header that would take long to read counts as none', async () => {
  const headers = { accept: `a/a;b="${';'.repeat(14_000)}` };
  const redirect = await fetch(`${api.url}/console`, { redirect: 'manual', headers });
  expect([redirect.status, redirect.headers.get('content-type')]).toEqual([302, 'text/html; charset=utf-8']);
  const list = await api.call('GET', `/apps/${app.appId}/links`, {
    key: app.key,
    headers: { accept: `text/csv${', a/a'.repeat(1_000)}` },
  });
  expect(list.headers.get('content-type')).toBe('application/json; charset=utf-8');
});

// @promise export-closes-on-timeout
test('an export that no workflow settles is a 503, pays nothing, and frees its idempotency key', async () => {
  const affiliateId = await newAffiliate(api, app);
  const occurredAt = Date.UTC(2026, 0, 1);
  await insertEarning(api, app, { affiliateId, amountCents: 100, occurredAt, dueAt: occurredAt });
  const path = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
  for (let round = 0; round < 2; round += 1) {
    const response = await api.call('POST', path, {
      key: app.key,
      headers: { 'idempotency-key': 'one-key' },
    });
    expect(response).toMatchObject({ status: 503, body: { code: 'payout_not_settled' } });
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  const requests = await api.sql<{ id: PayoutRequestId; status: string }>`
    select id, status from payout_requests where affiliate_id = ${affiliateId}`;
  expect(requests.map(({ status }) => status)).toEqual(['closed', 'closed']);
  expect(exports).toEqual(['timed_out', 'timed_out']);
  for (const { id } of requests) await settlePayoutRequest(api.sql, id);
  expect(await api.sql`select from payouts where affiliate_id = ${affiliateId}`).toEqual([]);
});

// @promise allow-405
test('a method that a path does not support is a 405 with the supported ones', async () => {
  const response = await api.call('DELETE', '/apps');
  expect(response).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
  expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
  const options = await api.call('OPTIONS', '/apps');
  expect(options.status).toBe(204);
  expect(options.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
});

// @promise head-not-on-clicks
test('HEAD returns the response of GET without a body', async () => {
  const response = await api.call('HEAD', '/apps', { key: app.key });
  expect(response).toMatchObject({ status: 200, text: '' });
  expect((await api.call('HEAD', '/clicks')).status).toBe(405);
});

describe('request bodies', () => {
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
    ['no content', '', {}, 400, 'invalid_request'],
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
      'form data',
      'name=x',
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
      'unsupported_media_type',
    ],
    ['the type text/plain', '{"name":"x"}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['more than 1 MiB', `{"name":"${'x'.repeat(1024 * 1024)}"}`, {}, 413, 'payload_too_large'],
    ['an unknown encoding', '{"name":"x"}', { 'content-encoding': 'zip' }, 415, 'unsupported_media_type'],
  ])('a body with %s is refused', async (_, body, headers, status, code) => {
    const response = await post(body, headers);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ code });
  });

  test('an unknown field is a 400 that names it', async () => {
    const response = await api.call('POST', '/apps', { key: app.key, body: { name: 'x', nmae: 'y' } });
    expect(response.status).toBe(400);
    expect(response.text).toContain('nmae');
  });
});

// @promise unavailable-503
test('an unavailable database is a 503 with Retry-After', async () => {
  const sql = connect({ url: 'postgres://nobody@127.0.0.1:1/none', patienceMs: 50 });
  const broken = await startTestApi({ sql });
  const response = await broken.call('GET', '/apps', { key: app.key });
  expect(response).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect(response.headers.get('retry-after')).toBe('2');
  await broken.close();
  await sql.close();
});

// @promise no-internals-in-errors
test('an unexpected error is a 500 that reveals only the request id', async () => {
  const faulty = await startTestApi({
    readiness: async () => {
      throw new Error('the password is hunter2');
    },
  });
  // Not through `call`, which accepts only responses that the OpenAPI document describes.
  const response = await fetch(`${faulty.url}/readyz`);
  expect(response.status).toBe(500);
  expect(Object.keys((await response.json()) as object).toSorted()).toEqual([
    'code',
    'requestId',
    'status',
    'title',
    'type',
  ]);
  await faulty.close();
});

describe('invalid HTTP', () => {
  async function send(text: string): Promise<string> {
    const { hostname, port } = new URL(api.url);
    const socket = connectSocket(Number(port), hostname);
    socket.setEncoding('utf8');
    socket.write(text);
    let response = '';
    for await (const chunk of socket) response += String(chunk);
    return response;
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
    ['input that is not HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
  ])('%s gets a problem document', async (_, text, status, code) => {
    const response = await send(text);
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(response).toContain('Content-Type: application/problem+json');
    const [, body = ''] = response.split('\r\n\r\n');
    const { requestId, ...problem } = JSON.parse(body) as Record<string, unknown>;
    expect(problem).toMatchObject({ status, code });
    expect(response).toContain(`X-Request-Id: ${String(requestId)}`);
  });

  test('invalid input does not take the place of the pending response to an earlier request', async () => {
    const response = await send('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\ngarbage\r\n\r\n');
    expect(response).not.toMatch(/^HTTP\/1.1 400/);
  });

  test.each([['/apps/%E0%A4%A'], ['/%'], ['//'], ['/apps/%00'], ['/apps/..%2f..'], ['/apps?limit=%']])(
    'the unusual path %s gets a 4xx response',
    async (path) => {
      const response = await send(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(response).toMatch(/^HTTP\/1.1 4\d\d /);
    },
  );
});

describe('health', () => {
  // @promise get-healthz, health-and-readiness
  test('GET /healthz is a 200 while the process runs', async () => {
    expect(await api.call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  // @promise readyz-no-details
  test('GET /readyz tells anybody which parts are missing, and neither addresses nor key ids', async () => {
    const secret = 'Temporal at 10.1.2.3:7233: SECRETS_KEY lacks the key 9f86d081';
    for (const optional of [true, false]) {
      checks = [{ name: 'temporal', ok: false, detail: secret, optional }];
      const { text } = await api.call('GET', '/readyz');
      expect(text).toContain('temporal');
      expect(text).not.toMatch(/10\.1\.2\.3|9f86d081/);
    }
  });

  // @promise get-readyz, health-and-readiness
  test('GET /readyz is a 503 that names what is missing, and a 200 if only optional parts are missing', async () => {
    checks = [{ name: 'database', ok: true, detail: null, optional: false }];
    expect(await api.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    checks = [...checks, { name: 'temporal', ok: false, detail: 'no connection', optional: true }];
    expect(await api.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'degraded' } });
    checks = [{ name: 'temporal', ok: false, detail: 'no connection', optional: false }];
    const response = await api.call('GET', '/readyz');
    expect(response).toMatchObject({ status: 503, body: { code: 'not_ready' } });
    expect(response.body['detail']).toContain('temporal');
  });
});
