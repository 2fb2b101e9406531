import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { routes } from '../../src/http/routes.ts';
import { newApp, startTestApi } from '../support/api.ts';
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

interface Problem {
  readonly code: string;
  readonly detail?: string;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
}

const post = (path: string, body: unknown) =>
  api.call<Problem>('POST', path.replace(':app', app.appId), { key: app.key, body });

describe('unknown query parameters', () => {
  // @promise unknown-parameter-400
  test.each(
    routes
      .filter(({ auth }) => auth === 'account')
      .map(({ method, path }) => [`${method} ${path}`, method, path] as const),
  )('%s refuses an unknown query parameter and names it', async (_name, method, path) => {
    const own = path.replace(':appId', app.appId).replaceAll(/:\w+/g, 'x');
    const response = await api.call<Problem>(method, `${own}?affilateId=x`, {
      key: app.key,
      ...(method === 'GET' ? {} : { body: {} }),
    });
    expect(response.status).toBe(400);
    expect(response.body.errors).toContainEqual({
      path: 'affilateId',
      message: expect.stringMatching(/^Unknown parameter\. /),
    });
  });

  test('the message for an unknown parameter lists the allowed ones', async () => {
    const { body } = await api.call<Problem>('GET', `/apps/${app.appId}/links?slug=x`, { key: app.key });
    expect(body.errors).toEqual([
      { path: 'slug', message: 'Unknown parameter. Allowed: limit, cursor, affiliateId, active, q.' },
    ]);
  });

  test('public routes ignore unknown parameters', async () => {
    expect((await api.call('GET', '/healthz?utm_source=x')).status).toBe(200);
  });
});

describe('messages of invalid fields', () => {
  // @promise field-messages
  test.each([
    ['/apps', {}, 'name', 'Required.'],
    ['/apps', { name: 7 }, 'name', 'Must be a string.'],
    ['/apps', { name: '' }, 'name', 'Must have at least 1 character.'],
    [
      '/apps',
      { name: 'x', commissionRateBps: '20%' },
      'commissionRateBps',
      'Must be a whole number from 0 to 10000; 2000 is 20 %.',
    ],
    [
      '/apps',
      { name: 'x', commissionRateBps: 0.2 },
      'commissionRateBps',
      'Must be a whole number from 0 to 10000; 2000 is 20 %.',
    ],
    [
      '/apps',
      { name: 'x', holdPeriodDays: 999 },
      'holdPeriodDays',
      'Must be a whole number of days from 0 to 365.',
    ],
    [
      '/apps',
      { name: 'x', nmae: 'y' },
      'nmae',
      'Unknown field. Allowed: name, commissionRateBps, attributionWindowDays, holdPeriodDays, deferredWindowMinutes, linkSubdomain, identityVerification, destinationSchemes, stripeAccounts, iosAppIds, androidApps, purchaseCodes, payeeWaitDays, payoutApproval, payoutSchedule, notificationEmails, weeklyReport, brandColor.',
    ],
    ['/apps/:app/affiliates', { name: 'x', email: 'nobody' }, 'email', 'Must be an e-mail address.'],
    [
      '/apps/:app/affiliates/bulk',
      { rows: [{ name: 'x' }, { name: 'y', mail: 'z' }] },
      'rows.1.mail',
      'Unknown field. Allowed: name, email, defaultCommissionRateBps, externalId, note, tags.',
    ],
    ['/apps/:app/affiliates/bulk', { rows: [] }, 'rows', 'Must have at least 1 item.'],
    ['/clicks', { customerAppId: 'x', slug: 'x', claimToken: 'x' }, 'claimToken', 'Must be a UUID.'],
  ])('POST %s with %j names the field %s and says: %s', async (path, body, field, message) => {
    const response = await post(path, body);
    expect(response).toMatchObject({ status: 400, body: { errors: [{ path: field, message }] } });
  });

  test('an unknown choice is a 400 that lists the choices', async () => {
    const { body } = await api.call<Problem>('GET', `/apps/${app.appId}/commissions?status=open`, {
      key: app.key,
    });
    expect(body.errors).toEqual([{ path: 'status', message: 'Must be one of pending, matured, paid.' }]);
  });
});

describe('messages of other errors', () => {
  // @promise broken-json-position
  test.each([
    ['{"name": x}', 'line 1, column 10'],
    ['{"name": "x",\n "a" 1}', 'line 2, column 6'],
    ['{"name": "x"', 'line 1, column 13'],
    ['{"name": "x",}', 'line 1, column 14'],
    ['{/* no */"name": "x"}', 'line 1, column 2'],
  ])('the message for the broken JSON %j names its position', async (body, position) => {
    const response = await post('/apps', body);
    expect(response.body.errors).toEqual([
      { path: '', message: `Must be a valid JSON object. The first error is at ${position}.` },
    ]);
  });

  test('a link of an unknown affiliate is a 404 that names the affiliate', async () => {
    const body = { affiliateId: 'aff_01', destinationUrl: 'https://example.com' };
    const response = await post('/apps/:app/links', body);
    expect(response).toMatchObject({
      status: 404,
      body: { code: 'not_found', detail: 'affiliateId: The app has no affiliate with this id.' },
    });
  });

  test('an unknown route and an unsupported method point to the documentation', async () => {
    for (const [method, path, status] of [
      ['GET', '/nowhere', 404],
      ['DELETE', '/apps', 405],
    ] as const) {
      expect(await api.call(method, path)).toMatchObject({
        status,
        body: { detail: expect.stringContaining('/docs') },
      });
    }
  });

  test('a key of the other kind is a 401 that says which kind it is', async () => {
    expect(await api.call('GET', '/apps', { key: app.sdkKey })).toMatchObject({
      status: 401,
      body: { detail: expect.stringContaining('This is an SDK key') },
    });
    const body = { deviceId: 'd', affiliateCode: 'x', firstOpenAt: api.clock.now };
    expect(await api.call('POST', '/sdk/install', { key: app.key, body })).toMatchObject({
      status: 401,
      body: { detail: expect.stringContaining('This is an account key') },
    });
  });

  // @promise bearer-recognized
  test('the diagnostics of a refused token say that "Bearer " is in front of it, or missing', async () => {
    const secret = 'a-token-of-the-dashboard';
    for (const [stored, sent, reason] of [
      [secret, `Bearer ${secret}`, 'with "Bearer " in front of it'],
      [`Bearer ${secret}`, secret, 'without "Bearer " in front of it'],
      [secret, `Bearer another-token`, 'does not match'],
    ]) {
      const own = await newApp(api);
      await api.call('PUT', `/apps/${own.appId}/webhooks/revenuecat/secret`, {
        key: own.key,
        body: { secret: stored },
      });
      const refused = await api.call('POST', `/webhooks/revenuecat/${own.appId}`, {
        headers: { authorization: String(sent) },
        body: {},
      });
      expect(refused.status).toBe(401);
      const { body } = await api.call<{ items: object[] }>('GET', `/apps/${own.appId}/diagnostics/webhooks`, {
        key: own.key,
      });
      expect(body.items).toMatchObject([{ lastError: expect.stringContaining(String(reason)) }]);
    }
  });
});

// @promise body-values
describe('a body that costs much to check', () => {
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, 1]));
  const nested = (depth: number) => `{"rows":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  const inMemory = 'at most 5000 values';
  const inDepth = 'nested at most 32 levels';

  test.each(
    routes
      .filter(({ method, auth, body }) => auth === 'account' && method !== 'GET' && body !== null)
      .map(({ method, path }) => [`${method} ${path}`, method, path] as const),
  )('%s refuses a body of many values, or of deep ones, before it is parsed', async (_name, method, path) => {
    const own = path.replace(':appId', app.appId).replaceAll(/:\w+/g, 'x');
    for (const [body, message] of [
      [JSON.stringify(fields(5_000)), inMemory],
      [JSON.stringify({ rows: Array.from({ length: 2_500 }, () => ({})) }), inMemory],
      [nested(32), inDepth],
      [nested(100_000), inDepth],
    ] as const) {
      const response = await api.call<Problem>(method, own, { key: app.key, body });
      expect({ status: response.status, errors: response.body.errors }).toEqual({
        status: 400,
        errors: [{ path: '', message: expect.stringContaining(message) }],
      });
    }
  });

  test.each([
    ['spaces', `${' '.repeat(1_000_000)}x`],
    ['an unfinished text', `{"name":"${'\\n'.repeat(500_000)}`],
  ])('no error is searched for in a long body of %s', async (_, body) => {
    const response = await api.call<Problem>('POST', '/apps', { key: app.key, body });
    expect({ status: response.status, errors: response.body.errors }).toEqual({
      status: 400,
      errors: [{ path: '', message: 'Must be a valid JSON object.' }],
    });
  });

  test('the routes of the SDKs refuse it, too', async () => {
    for (const [path, key] of [['/clicks'], ['/sdk/install', app.sdkKey], ['/sdk/identify', app.sdkKey]]) {
      const { status, body } = await api.call<Problem>('POST', path ?? '', {
        ...(key === undefined ? {} : { key }),
        body: `[${'1,'.repeat(5_000)}1]`,
      });
      expect({ path, status, message: body.errors[0]?.message }).toEqual({
        path,
        status: 400,
        message: expect.stringContaining(inMemory),
      });
    }
  });

  test('a response names the first hundred unknown fields and parameters, and cuts off long names', async () => {
    const many = await post('/apps', fields(4_000));
    expect(many.status).toBe(400);
    expect(many.body.errors).toHaveLength(100);
    const long = await post('/apps', { ['k'.repeat(900_000)]: 1 });
    expect(long.status).toBe(400);
    expect(long.text.length).toBeLessThan(2_000);
    const parameters = Array.from({ length: 1_000 }, (_, n) => `p${n}=1`).join('&');
    const listed = await api.call<Problem>('GET', `/apps/${app.appId}/links?${parameters}`, { key: app.key });
    expect(listed.body.errors).toHaveLength(100);
  });

  test('a field named __proto__ is an unknown field and changes nothing', async () => {
    const { status, body } = await post(
      '/apps',
      '{"__proto__":{"name":"App"},"constructor":{"prototype":{"x":1}}}',
    );
    expect(status).toBe(400);
    expect(body.errors.map(({ path }) => path).toSorted()).toEqual(['__proto__', 'constructor', 'name']);
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  });
});
