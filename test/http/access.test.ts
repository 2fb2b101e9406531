import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { makeKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { KEY_RANDOM_BYTES, PERMISSIONS } from '../../src/domain/keys.ts';
import type { Permission } from '../../src/domain/keys.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routes } from '../../src/http/routes.ts';
import { newAccount, newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { requestOf } from '../support/route-requests.ts';
import {
  COOKIE,
  CREATOR_COOKIE,
  OPERATOR_COOKIE,
  OWN_PAGE,
  signIn,
  signInCreator,
  signInOperator,
} from '../support/sessions.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const accountRoutes = routes
  .filter((route) => route.auth === 'account')
  .map((route) => [`${route.method} ${route.path}`, route] as const);
const appRoutes = accountRoutes.filter(([, route]) => route.path.includes('/:appId'));

/** Makes something once for all routes that need it: each route is a test of its own, and what they share costs more than they do. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return async () => await (made ??= make());
}

const keysWithout = new Map(
  PERMISSIONS.map((lacking) => {
    const others = PERMISSIONS.filter((permission) => permission !== lacking);
    return [lacking, once(async () => (await newAccount(api, others)).key)] as const;
  }),
);

/** Returns a key with all permissions but that one. */
async function keyWithout(lacking: Permission): Promise<string> {
  return await keysWithout.get(lacking)!();
}

const otherAccount = once(async () => await newAccount(api));
const affiliate = once(async () => await newAffiliate(api, app));
// Sessions for calls that are refused: one of them would end its session.
const founderSession = once(async () => await signIn(api, app.key));
const creatorSession = once(async () => await signInCreator(api, app, await affiliate()));
const operatorSession = once(async () => await signInOperator(api));

/** Returns a valid request of the route for that app, with unknown ids. */
function requestFor(route: Route, appId: string) {
  return requestOf(route, ({ name, kind }) => (name === 'appId' ? appId : newId(kind)));
}

describe.each(accountRoutes)('%s', (_, route) => {
  // @promise sdk-key-elsewhere, key-401
  test('a missing, malformed, unknown or SDK key is a 401', async () => {
    const unknown = `${app.key.slice(0, 20)}${app.key.slice(20)}`.replace(/.$/, (last) =>
      last === 'a' ? 'b' : 'a',
    );
    const unknownSdk = makeKey('sdk', randomBytes(KEY_RANDOM_BYTES)).key;
    const texts: string[] = [];
    for (const key of [undefined, 'x', unknown, app.sdkKey, unknownSdk]) {
      const { path, body } = requestFor(route, app.appId);
      const response = await api.call(route.method, path, {
        body,
        ...(key === undefined ? {} : { key }),
      });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      texts.push(response.text.replace(/"requestId":"[^"]*"/, ''));
    }
    // The text for an SDK key names its kind, and is the same whether the key is valid or not.
    const [missing, ...others] = texts;
    expect(others).toEqual([missing, missing, texts[3], texts[3]]);
  });

  // @promise missing-permission, error-403-permission, permission-before-lookup, order-401-403-400
  test('a key without the permission is a 403 before any look-up and before the body is read', async () => {
    const key = await keyWithout(route.permission!);
    const body = route.body === null ? {} : { body: '{ this is no JSON' };
    const response = await api.call(route.method, requestFor(route, 'no-id').path, { key, ...body });
    expect(response).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });
});

describe.each(appRoutes)('%s', (_, route) => {
  // @promise foreign-resource-404, error-404-unknown, malformed-app-id-not-found
  // @promise foreign-id-same-bytes
  test("another account's app returns the same bytes as an unknown one, except the request id", async () => {
    const other = await otherAccount();
    const unknown = newId('app');
    const responses = await Promise.all(
      [app.appId, unknown, 'app_x', 'x'].map((appId) => {
        const { path, body } = requestFor(route, appId);
        return api.call(route.method, path, { key: other.key, body });
      }),
    );
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([404]));
    expect(new Set(responses.map((response) => response.text.replace(/"requestId":"[^"]*"/, ''))).size).toBe(
      1,
    );
    const headers = responses.map((response) =>
      JSON.stringify([...response.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')),
    );
    expect(new Set(headers).size).toBe(1);
  });

  if (route.body !== null) {
    // @promise order-400-404
    test('an invalid body is a 400 before the app is looked up', async () => {
      const response = await api.call(route.method, requestFor(route, 'x').path, { key: app.key, body: '[' });
      expect(response).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    });
  }
});

describe.each([['revoked'], ['expired']])('%s keys', (how) => {
  const endedKey = once(async () => {
    const { accountId, key } = await newAccount(api);
    const at = new Date(api.clock.now);
    const { status } = await api.call('GET', '/apps', { key });
    if (status === 401) throw new Error('the key was never valid');
    await (how === 'revoked'
      ? api.sql`update account_keys set revoked_at = ${at} where account_id = ${accountId}`
      : api.sql`update account_keys set expires_at = ${at} where account_id = ${accountId}`);
    return key;
  });

  // @promise key-revoked-or-expired
  test.each(accountRoutes)('%s with a key that is no longer valid is a 401', async (_, route) => {
    const { path, body } = requestFor(route, app.appId);
    expect((await api.call(route.method, path, { key: await endedKey(), body })).status).toBe(401);
  });
});

// @promise no-account-over-api, accounts-by-command-line
test('a key creates no accounts and no account keys, whatever its permissions', async () => {
  const { accountId, key } = await newAccount(api);
  for (const bearer of [key, app.sdkKey]) {
    for (const path of ['/accounts', `/accounts/${accountId}`]) {
      const response = await api.call('POST', path, { key: bearer, body: { name: 'x' } });
      expect(response).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
    const body = { label: 'x', permissions: ['read'] };
    const response = await api.call('POST', `/accounts/${accountId}/keys`, { key: bearer, body });
    expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
  }
});

const sessionRoutes = routes
  .filter((route) => route.auth === 'session')
  .map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(sessionRoutes)('%s', (_, route) => {
  // @promise session-routes-take-no-key, key-401
  test('no session, an unknown one, and an account key with all permissions are a 401', async () => {
    const cookies = [{}, { cookie: `${COOKIE}=x` }, { cookie: `${COOKIE}=${'x'.repeat(43)}` }];
    for (const headers of cookies) {
      for (const key of [undefined, app.key, app.sdkKey]) {
        const { path, body } = requestFor(route, app.appId);
        const response = await api.call(route.method, path, {
          body,
          headers: { ...OWN_PAGE, ...headers },
          ...(key === undefined ? {} : { key }),
        });
        expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      }
    }
  });

  const lacking = route.permission;
  if (lacking !== null) {
    // @promise missing-permission
    test('a session whose key lacks the permission gets a 403', async () => {
      const { path, body } = requestFor(route, app.appId);
      const headers = await signIn(api, await keyWithout(lacking));
      const response = await api.call(route.method, path, { body, headers });
      expect(response).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    });
  }
});

describe.each([...accountRoutes, ...sessionRoutes])('%s with a session', (_, route) => {
  // @promise session-own-origin
  test('a page of another origin gets a 403', async () => {
    const headers = await founderSession();
    const { path, body } = requestFor(route, app.appId);
    for (const site of ['same-site', 'cross-site']) {
      const response = await api.call(route.method, path, {
        body,
        headers: { ...headers, 'sec-fetch-site': site },
      });
      expect(response).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
    }
  });
});

const creatorRoutes = routes
  .filter((route) => route.auth === 'creator')
  .map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(creatorRoutes)('%s', (_, route) => {
  // @promise creator-routes-take-no-other, key-401
  test('no session, an unknown one, a key, and a session of an account are a 401', async () => {
    const account = await founderSession();
    const token = account.cookie.split('=')[1];
    for (const headers of [
      {},
      { cookie: `${CREATOR_COOKIE}=x` },
      { cookie: `${CREATOR_COOKIE}=${'x'.repeat(43)}` },
      { cookie: account.cookie },
      { cookie: `${CREATOR_COOKIE}=${token}` },
      { authorization: `Bearer ${app.key}` },
      { authorization: `Bearer ${app.sdkKey}` },
    ]) {
      const { path, body } = requestFor(route, app.appId);
      const response = await api.call(route.method, path, { body, headers: { ...OWN_PAGE, ...headers } });
      expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    }
  });

  // @promise session-own-origin
  test('a page of another origin gets a 403, and a cookie beside a key does not count', async () => {
    const headers = await signInCreator(api, app, await affiliate());
    const { path, body } = requestFor(route, app.appId);
    const send = async (extra: object) =>
      await api.call(route.method, path, { body, headers: { ...headers, ...extra } });
    for (const site of ['same-site', 'cross-site']) {
      expect(await send({ 'sec-fetch-site': site })).toMatchObject({
        status: 403,
        body: { code: 'cross_origin' },
      });
    }
    expect((await send({ authorization: `Bearer ${app.key}` })).status).toBe(401);
    expect([401, 403]).not.toContain((await send({})).status);
  });
});

describe("a creator's session", () => {
  // @promise creator-session-reaches-nothing-else
  test.each(routes.filter(({ auth }) => ['account', 'session', 'sdk'].includes(auth)))(
    'is a 401 for $method $path, under either name of the cookie',
    async (route) => {
      const creator = await creatorSession();
      const token = creator.cookie.split('=')[1];
      for (const cookie of [creator.cookie, `${COOKIE}=${token}`, `${creator.cookie}; ${COOKIE}=${token}`]) {
        const { path, body } = requestFor(route, app.appId);
        const response = await api.call(route.method, path, { body, headers: { ...OWN_PAGE, cookie } });
        expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      }
    },
  );
});

const operatorRoutes = routes
  .filter((route) => route.auth === 'operator')
  .map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(operatorRoutes)('%s', (_, route) => {
  // @promise operator-routes-take-no-other, key-401
  test('no session, an unknown one, a key, and the sessions of a founder and a creator are a 401', async () => {
    const founder = await founderSession();
    const creator = await creatorSession();
    const tokens = [founder, creator].map(({ cookie }) => cookie.split('=')[1] ?? '');
    for (const headers of [
      {},
      { cookie: `${OPERATOR_COOKIE}=x` },
      { cookie: `${OPERATOR_COOKIE}=${'x'.repeat(43)}` },
      { cookie: founder.cookie },
      { cookie: creator.cookie },
      ...tokens.map((token) => ({ cookie: `${OPERATOR_COOKIE}=${token}` })),
      { authorization: `Bearer ${app.key}` },
      { authorization: `Bearer ${app.sdkKey}` },
    ]) {
      const { path, body } = requestFor(route, app.appId);
      const response = await api.call(route.method, path, { body, headers: { ...OWN_PAGE, ...headers } });
      expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    }
  });

  // @promise session-own-origin
  test('a page of another origin gets a 403, and the cookie of the operator beside a key does not count', async () => {
    const headers = await signInOperator(api);
    const { path, body } = requestFor(route, app.appId);
    const send = async (extra: object) =>
      await api.call(route.method, path, { body, headers: { ...headers, ...extra } });
    for (const site of ['same-site', 'cross-site']) {
      expect(await send({ 'sec-fetch-site': site })).toMatchObject({
        status: 403,
        body: { code: 'cross_origin' },
      });
    }
    expect((await send({ authorization: `Bearer ${app.key}` })).status).toBe(401);
    expect([401, 403]).not.toContain((await send({})).status);
  });
});

describe("the operator's session", () => {
  // @promise operator-session-reaches-nothing-else
  test.each(routes.filter(({ auth }) => ['account', 'session', 'creator', 'sdk'].includes(auth)))(
    'is a 401 for $method $path, under any name of the cookie',
    async (route) => {
      const operator = await operatorSession();
      const token = operator.cookie.split('=')[1] ?? '';
      const names = [COOKIE, CREATOR_COOKIE].map((name) => `${name}=${token}`);
      for (const cookie of [operator.cookie, ...names, [operator.cookie, ...names].join('; ')]) {
        const { path, body } = requestFor(route, app.appId);
        const response = await api.call(route.method, path, { body, headers: { ...OWN_PAGE, cookie } });
        expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      }
    },
  );
});

const sdkRoutes = routes.filter((route) => route.auth === 'sdk').map((route) => [route.path, route] as const);

describe.each(sdkRoutes)('%s', (_, route) => {
  // @promise account-key-on-sdk
  test('a missing, malformed or account key is a 401', async () => {
    const { path, body } = requestFor(route, app.appId);
    for (const key of [undefined, 'pk_live_x', app.key]) {
      const response = await api.call(route.method, path, { body, ...(key === undefined ? {} : { key }) });
      expect(response).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      expect(response.body['detail']).toContain('SDK key');
    }
  });
});
