import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { keySha256 } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routes } from '../../src/http/routes.ts';
import { newAccount, newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestAccount, TestApi } from '../support/api.ts';
import { insertEarning, payOut } from '../support/ledger.ts';
import type { ApiResponse, RequestOptions } from '../support/http-client.ts';
import { operationOf, requestOf } from '../support/route-requests.ts';
import type { IdPlace } from '../support/route-requests.ts';
import { signInManager } from '../support/members.ts';
import { signIn, signInCreator, signInOperator } from '../support/sessions.ts';
import { fingerprintOf, newTenant } from '../support/tenant.ts';
import type { Tenant } from '../support/tenant.ts';

// Every case is generated from the route table and the OpenAPI document, so a new route is included automatically.

let api: TestApi;
let mine: Tenant;
let theirs: Tenant;
/** An account without apps. */
let theThird: TestAccount;

beforeAll(async () => {
  api = await startTestApi();
  mine = await newTenant(api, 'mine');
  theirs = await newTenant(api, 'theirs');
  theThird = await newAccount(api);
});
afterAll(async () => {
  await api.close();
});

/**
 * When a route is called: the routes that delete come after the others, which need what is deleted, and the routes of sessions
 * last, since some of them end the session that the others share.
 */
const turnOf = ({ method, auth }: Route) => (auth === 'session' ? 2 : method === 'DELETE' ? 1 : 0);

/** A session is a hold on a key, so each route of a key is tried with the key and with its session. */
const accountRoutes = routes
  .flatMap((route) => {
    const name = `${route.method} ${route.path}`;
    const withSession = [`${name} with a session`, route, 'session'] as const;
    // It mails, and only to a member: test/http/member-links.test.ts calls it.
    if (route.operationId === 'mailRaisingLink') return [];
    // They are for members, and need an authenticator: test/http/passkeys.test.ts calls them.
    if (route.path.includes('/passkeys')) return [];
    if (route.auth === 'session') return [withSession];
    return route.auth === 'account' ? [[name, route, 'key'] as const, withSession] : [];
  })
  .toSorted(([, a], [, b]) => turnOf(a) - turnOf(b));

type Kind = (typeof accountRoutes)[number][2];

const sessions = new Map<string, Promise<RequestOptions>>();

/** Returns what a caller of an account sends. A session may pay. Routes of keys share one session for each key. */
async function credentials(kind: Kind, route: Route, key: string): Promise<RequestOptions> {
  if (kind === 'key') return { key };
  if (route.path.includes('/members')) return await startManager(key);
  const known = route.auth === 'account' ? sessions.get(key) : undefined;
  const made = known ?? startSession(key);
  if (route.auth === 'account') sessions.set(key, made);
  return await made;
}

async function startSession(key: string): Promise<RequestOptions> {
  const headers = await signIn(api, key);
  await api.call('POST', '/session/raise', { body: { key }, headers });
  return { headers };
}

/** Starts a session that manages the members of the account of a key. */
async function startManager(key: string): Promise<RequestOptions> {
  const [row] = await api.sql<{ accountId: string }>`
    select account_id from account_keys where key_sha256 = ${keySha256(key)}`;
  return { headers: await signInManager(api, { accountId: row?.accountId ?? '' }) };
}

/** Gives a creator two more links, commissions and payouts. */
async function addRowsOf(tenant: Tenant, affiliateId: string): Promise<void> {
  const at = api.clock.now - DAY_MS;
  for (let round = 0; round < 2; round += 1) {
    await newLink(api, tenant, affiliateId);
    const row = { affiliateId, amountCents: 100, occurredAt: at, dueAt: at, matured: true };
    await insertEarning(api, tenant, row);
    await payOut(api, tenant, affiliateId);
  }
}

/** Returns a response for comparison: everything except the requested id and the request id. */
function comparable({ status, text, headers }: ApiResponse, requestedId: string): readonly unknown[] {
  const withoutIds = text.replace(/"requestId":"[^"]*"/, '').replaceAll(requestedId, 'REQUESTED');
  return [status, withoutIds, headers.get('content-type')];
}

function expectNothingOfOthers(response: ApiResponse): void {
  for (const mark of theirs.marks) expect(response.text).not.toContain(mark);
}

/** The rows of the other account, as they were last seen. Null once a test has changed them itself. */
let seen: string | null = null;

/** Runs calls and expects that they change, create and delete no row of the other account. */
async function expectOthersUnchanged(work: () => Promise<void>): Promise<void> {
  const before = seen ?? (await fingerprintOf(api, theirs));
  await work();
  seen = await fingerprintOf(api, theirs);
  expect(seen).toBe(before);
}

describe.each(accountRoutes)('%s', (_, route, caller) => {
  const ownIds = ({ kind }: IdPlace) => mine.ids[kind];

  // What a key may reach was tried with the key: the session adds only who the caller is.
  const isTried = route.auth === 'account' && caller === 'session';

  test('neither who calls it nor its input is refused to the account itself', async () => {
    const { path, body } = requestOf(route, ownIds);
    const { status } = await api.call(route.method, path, {
      ...(await credentials(caller, route, mine.key)),
      body: route.operationId === 'raiseSession' ? { key: mine.key } : body,
    });
    expect([400, 401, 403, 404, 405, 413, 415, 500]).not.toContain(status);
  });

  /** Calls the route with the ids of the other account. */
  const callAs = async (key: string) => {
    const { path, body } = requestOf(route, ({ kind }) => theirs.ids[kind]);
    return await api.call(route.method, path, { ...(await credentials(caller, route, key)), body });
  };
  if (route.path.includes('/:')) {
    // @promise foreign-id-inside-app
    test('a key of another account gets a 404 for the ids in the path, and changes nothing', async () => {
      const otherAccount = isTried ? theThird : await newAccount(api);
      await expectOthersUnchanged(async () => {
        for (const { key } of [otherAccount, mine]) {
          const response = await callAs(key);
          expect(response.status).toBe(404);
          expectNothingOfOthers(response);
        }
      });
    });
  } else {
    test('another account sees and changes nothing of this account', async () => {
      const { key } = isTried ? theThird : await newAccount(api);
      await expectOthersUnchanged(async () => expectNothingOfOthers(await callAs(key)));
    });
  }

  const places: IdPlace[] = [];
  requestOf(route, (place) => {
    places.push(place);
    return 'x';
  });
  const others = places.filter(({ name }) => name !== 'appId');
  if (others.length > 0 && !isTried) {
    // @promise foreign-id-inside-app
    test.each(others.map((place) => [`${place.where} ${place.name}`, place] as const))(
      "another account's id in the %s gets the response for an unknown id, and changes nothing",
      async (__, place) => {
        const isPlace = ({ where, name }: IdPlace) => where === place.where && name === place.name;
        const sent = await credentials(caller, route, mine.key);
        const askFor = async (id: string) => {
          const { path, body } = requestOf(route, (at) => (isPlace(at) ? id : mine.ids[at.kind]));
          return comparable(await api.call(route.method, path, { ...sent, body }), id);
        };
        await expectOthersUnchanged(async () => {
          const foreign = theirs.ids[place.kind];
          const unknown = newId(place.kind);
          expect(await askFor(foreign)).toEqual(await askFor(unknown));
        });
        if (place.where === 'path') expect((await askFor(theirs.ids[place.kind]))[0]).toBe(404);
      },
    );
  }

  const takesCursor = (operationOf(route).parameters ?? []).some(({ name }) => name === 'cursor');
  if (takesCursor && !isTried) {
    // @promise foreign-cursor-400
    test("another account's cursor is a 400", async () => {
      const skip = (operationOf(route).parameters ?? [])
        .filter(({ in: where, name }) => where === 'query' && name !== 'limit')
        .map(({ name }) => name);
      const page = async (tenant: Tenant, query: string) => {
        const [path = ''] = requestOf(route, ({ kind }) => tenant.ids[kind], skip).path.split('?');
        const sent = await credentials(caller, route, tenant.key);
        return await api.call<{ nextCursor: string | null }>(route.method, `${path}?limit=1${query}`, sent);
      };
      // Every other list of the tenant has two rows.
      seen = null;
      if (route.operationId === 'listApps') await newApp(api, theirs);
      if (route.path.includes('/creator/')) await addRowsOf(theirs, theirs.ids.affiliate);
      const { body, headers } = await page(theirs, '');
      const nextCursor = body.nextCursor ?? headers.get('x-next-cursor');
      expect(nextCursor).not.toBeNull();
      expect((await page(theirs, `&cursor=${nextCursor}`)).status).toBe(200);
      expect(await page(mine, `&cursor=${nextCursor}`)).toMatchObject({
        status: 400,
        body: { code: 'invalid_cursor' },
      });
    });
  }
});

const creatorRoutes = routes
  // With what a code needs, test/http/own-payees.test.ts calls the routes of the own payee.
  .filter(({ auth, path }) => auth === 'creator' && !path.startsWith('/creator/payee-changes'))
  .map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(creatorRoutes)('%s with the session of a creator', (_, route) => {
  /** Signs in a creator of `mine`. The ids of its own resources. */
  const signInMine = async () => {
    const headers = await signInCreator(api, mine, mine.ids.affiliate);
    const { id } = await api.sql.one<{ id: string }>`
      select id from creator_sessions where affiliate_id = ${mine.ids.affiliate} order by created_at desc, id desc limit 1`;
    return { headers, ownId: ({ kind }: IdPlace) => (kind === 'session' ? id : mine.ids[kind]) };
  };

  // @promise creator-sees-own
  test('the creator can call it, and sees nothing of another account or another creator', async () => {
    const { headers, ownId } = await signInMine();
    const { path } = requestOf(route, ownId);
    const response = await api.call(route.method, path, { headers });
    expect(response.status).toBe(200);
    expectNothingOfOthers(response);
    // Every name of the other creator of the same app has the number 0, and this one is the last.
    for (const other of ['mine creator 0', 'mine-0', 'mine campaign'])
      expect(response.text).not.toContain(other);
    expect(response.text).not.toMatch(/\b(evt|att|bnd|del|acct|aff)_/);
  });

  const places = requestOf(route, () => 'x').idPlaces;
  if (places.length > 0) {
    // @promise creator-sees-own
    test('an id of another creator gets the response for an unknown id, and changes nothing', async () => {
      const { headers } = await signInMine();
      const askFor = async (id: string) =>
        comparable(await api.call(route.method, requestOf(route, () => id).path, { headers }), id);
      const colleague = await newAffiliate(api, mine, { name: 'mine colleague' });
      await signInCreator(api, mine, colleague);
      const foreign = await api.sql<{ id: string }>`
        select id from creator_sessions where affiliate_id = ${colleague}
        union all select id from payouts where app_id = ${mine.appId} and affiliate_id <> ${mine.ids.affiliate}
        union all select id from creator_sessions where app_id = ${theirs.appId}`;
      expect(foreign.length).toBeGreaterThan(1);
      await expectOthersUnchanged(async () => {
        for (const { kind } of places) {
          const unknown = await askFor(newId(kind));
          for (const id of [theirs.ids[kind], ...foreign.map((row) => row.id)])
            expect(await askFor(id)).toEqual(unknown);
        }
      });
    });
  }

  if ((operationOf(route).parameters ?? []).some(({ name }) => name === 'cursor')) {
    test('a cursor of another creator is a 400', async () => {
      const { headers } = await signInMine();
      const affiliateId = await newAffiliate(api, mine, { name: 'mine colleague' });
      await addRowsOf(mine, affiliateId);
      const other = await signInCreator(api, mine, affiliateId);
      const first = `${route.path}?limit=1`;
      const { body } = await api.call<{ nextCursor: string | null }>('GET', first, { headers: other });
      const path = `${first}&cursor=${body.nextCursor}`;
      expect((await api.call('GET', path, { headers: other })).status).toBe(200);
      expect(await api.call('GET', path, { headers })).toMatchObject({
        status: 400,
        body: { code: 'invalid_cursor' },
      });
    });
  }
});

const operatorRoutes = routes
  .filter(({ auth }) => auth === 'operator')
  .map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(operatorRoutes)('%s with the session of the operator', (_, route) => {
  // @promise operator-sees-no-customers
  test('the operator can call it, sees no customer, creator, money or secret, and changes no row of an account', async () => {
    const headers = await signInOperator(api);
    const { path } = requestOf(route, ({ kind }) => mine.ids[kind]);
    const call = async () => await api.call(route.method, path, { headers });
    const before = route.operationId === 'createFounderSignInLink' ? null : await fingerprintOf(api, mine);
    const response = await call();
    expect([200, 201]).toContain(response.status);
    if (before !== null) expect(await fingerprintOf(api, mine)).toBe(before);
    // The ledger check names the rows that break a rule, by their ids only.
    const text = response.text.replaceAll(
      /\{"accountId":"acct_\w{26}","appId":"app_\w{26}","id":"[a-z]+_\w{26}"\}/g,
      '',
    );
    expect(text).not.toMatch(/\b(evt|att|bnd|com|pay|lnk|aff|clk|pmt)_/);
    expect(text).not.toMatch(/mine creator|theirs creator|mine campaign|-erased|tri_sk_|pk_live_|whsec/);
    expect(text).not.toMatch(/cents|"key(Id)?"|\bkey_/i);
  });

  if (requestOf(route, () => 'x').idPlaces.length > 0) {
    test('an unknown id is a 404', async () => {
      const headers = await signInOperator(api);
      const { path } = requestOf(route, ({ kind }) => newId(kind));
      expect((await api.call(route.method, path, { headers })).status).toBe(404);
    });
  }
});

describe('an SDK key', () => {
  test("an SDK key attributes nothing to another app's clicks, slugs and affiliates", async () => {
    const token = await api.sql.one<{ claimToken: string }>`
      select claim_token from clicks where app_id = ${theirs.appId} limit 1`;
    await expectOthersUnchanged(async () => {
      for (const touch of [token, { affiliateCode: 'theirs-0' }, { affiliateCode: theirs.ids.affiliate }]) {
        const response = await api.call('POST', '/sdk/install', {
          key: mine.sdkKey,
          body: { deviceId: `d-${JSON.stringify(touch).length}`, firstOpenAt: api.clock.now, ...touch },
        });
        expect(response).toMatchObject({ status: 404, body: { code: 'no_attributable_click' } });
      }
    });
  });
});
