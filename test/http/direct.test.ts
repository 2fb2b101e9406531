import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findDirect } from '../../src/http/direct.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { routes } from '../../src/http/routes.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

const find = findDirect(routes);
const found = (method: string, url: string) => {
  const direct = find({ method, url } as IncomingMessage);
  return direct === null ? null : [direct.route.path, direct.params, direct.querystring];
};

describe('requests of frequent routes', () => {
  test('are found by method and path, with the parameters of the path', () => {
    expect(found('POST', '/clicks')).toEqual(['/clicks', {}, '']);
    expect(found('POST', '/sdk/install')).toEqual(['/sdk/install', {}, '']);
    expect(found('GET', '/l/acme/Spring-1?a=%20b&c')).toEqual([
      '/l/:linkSubdomain/:slug',
      { linkSubdomain: 'acme', slug: 'Spring-1' },
      'a=%20b&c',
    ]);
    expect(found('GET', '/l/spring')).toEqual(['/l/:slug', { slug: 'spring' }, '']);
  });

  test.each([
    ['GET', '/clicks'],
    ['OPTIONS', '/clicks'],
    ['HEAD', '/l/acme/spring'],
    ['POST', '/clicks/'],
    ['POST', '/Clicks'],
    ['POST', '/clicksx'],
    ['POST', '//clicks'],
    ['POST', 'http://api.example.test/clicks'],
    ['POST', '/clicks#x'],
    ['POST', '/clicks?a\tb'],
    ['GET', '/l/acme/'],
    ['GET', '/l//spring'],
    ['GET', '/l/acme/spr%69ng'],
    ['GET', '/l/acme/spring/more'],
    ['GET', '/apps'],
    ['POST', '/webhooks/stripe/app_01h455vb4pex5vsknk084sn02q'],
  ])('%s %s is left to the framework', (method, url) => {
    expect(found(method, url)).toBeNull();
  });
});

describe.each([0, 1])('a response to a frequent route behind %i trusted proxies', (trustProxy) => {
  let api: TestApi;
  let app: TestApp;
  let slug: string;
  beforeAll(async () => {
    api = await startTestApi({
      trustProxy,
      rateLimits: createRateLimits({ ...NO_RATE_LIMITS, clicks: 2 }),
    });
    app = await newApp(api, undefined, { linkSubdomain: 'acme' });
    ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
  });
  afterAll(async () => {
    await api.close();
  });

  /** What differs between two calls that are alike. */
  const VARYING = new Set(['date', 'x-request-id']);
  const send = async (path: string, { body, ...init }: RequestInit) => {
    const response = await fetch(`${api.url}${path}`, {
      redirect: 'manual',
      ...init,
      ...(body === undefined ? {} : { body, duplex: 'half' }),
    });
    const headers = [...response.headers].filter(([name]) => !VARYING.has(name));
    const text = (await response.text()).replace(
      /"requestId":"[^"]+"|"clickId":"[^"]+"|claim_token[^&\s]+/g,
      '',
    );
    return {
      status: response.status,
      headers: headers.map(([name, value]) => [name, value.replace(/claim_token=[^&]+/, '')]),
      text,
      requestId: response.headers.get('x-request-id'),
    };
  };
  const click = (fields: object = {}) =>
    JSON.stringify({
      customerAppId: app.appId,
      slug,
      claimToken: randomUUID(),
      ipHash: randomUUID(),
      ...fields,
    });
  const JSON_BODY = { 'content-type': 'application/json' };
  const inChunks = (text: string) =>
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(text));
        controller.close();
      },
    });

  // The framework's router takes a slash at the end of a path, `direct.ts` does not.
  test.each<[string, string, () => RequestInit]>([
    ['a click', '/clicks', () => ({ method: 'POST', headers: JSON_BODY, body: click() })],
    [
      'a click from a page',
      '/clicks',
      () => ({ method: 'POST', headers: { ...JSON_BODY, origin: 'https://a.example' }, body: click() }),
    ],
    [
      'a click of another media type',
      '/clicks',
      () => ({
        method: 'POST',
        headers: { 'content-type': 'application/vnd.a+json; charset=utf-8' },
        body: click(),
      }),
    ],
    ['a click in chunks', '/clicks', () => ({ method: 'POST', headers: JSON_BODY, body: inChunks(click()) })],
    [
      'a click on an unknown link',
      '/clicks',
      () => ({ method: 'POST', headers: JSON_BODY, body: click({ slug: 'unknown' }) }),
    ],
    [
      'a body with errors',
      '/clicks?x=1',
      () => ({ method: 'POST', headers: JSON_BODY, body: click({ claimToken: 'x', ipHash: 1 }) }),
    ],
    ['a body that is no JSON', '/clicks', () => ({ method: 'POST', headers: JSON_BODY, body: '{' })],
    [
      'a form',
      '/clicks',
      () => ({
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'a=b',
      }),
    ],
    [
      'a compressed body',
      '/clicks',
      () => ({ method: 'POST', headers: { ...JSON_BODY, 'content-encoding': 'gzip' }, body: 'a' }),
    ],
    ['no body', '/clicks', () => ({ method: 'POST' })],
    [
      'a body that is too long',
      '/clicks',
      () => ({ method: 'POST', headers: JSON_BODY, body: click({ userAgent: 'x'.repeat(200_000) }) }),
    ],
    ['an SDK call without a key', '/sdk/install', () => ({ method: 'POST', headers: JSON_BODY, body: '{}' })],
    [
      'an SDK call with a wrong key',
      '/sdk/identify',
      () => ({ method: 'POST', headers: { ...JSON_BODY, authorization: 'Bearer pk_x' }, body: '{}' }),
    ],
    [
      'a redirect',
      '/l/acme/SLUG',
      () => ({ headers: { 'user-agent': 'Mozilla/5.0', 'x-forwarded-for': '203.0.113.1, 203.0.113.2' } }),
    ],
    ['a redirect of an unknown link', '/l/acme/unknown', () => ({})],
    ['a redirect without a subdomain', '/l/unknown', () => ({})],
  ])('%s is that of the framework', async (_, path, init) => {
    const [direct = '', query = ''] = path.replace('SLUG', slug).split(/(?=\?)/);
    const own = await send(`${direct}${query}`, init());
    const framework = await send(`${direct}/${query}`, init());
    expect({ ...own, requestId: null }).toEqual({ ...framework, requestId: null });
    expect(own.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(own.requestId).not.toBe(framework.requestId);
  });

  test('counts towards the same limits as one of the framework', async () => {
    const ipHash = randomUUID();
    const statuses: number[] = [];
    for (const path of ['/clicks', '/clicks/', '/clicks']) {
      statuses.push(
        (await send(path, { method: 'POST', headers: JSON_BODY, body: click({ ipHash }) })).status,
      );
    }
    expect(statuses).toEqual([200, 200, 429]);
    const refused = await send('/clicks', { method: 'POST', headers: JSON_BODY, body: click({ ipHash }) });
    const byFramework = await send('/clicks/', {
      method: 'POST',
      headers: JSON_BODY,
      body: click({ ipHash }),
    });
    expect({ ...refused, requestId: null }).toEqual({ ...byFramework, requestId: null });
    expect(Object.fromEntries(refused.headers as [string, string][])['connection']).toBe(
      trustProxy === 0 ? 'close' : 'keep-alive',
    );
  });
});
