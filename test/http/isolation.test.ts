import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { routes } from '../../src/http/routes.ts';
import { newAccount, newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import type { ApiResponse } from '../support/http-client.ts';
import { operationOf, requestOf } from '../support/route-requests.ts';
import type { IdPlace } from '../support/route-requests.ts';
import { fingerprintOf, newTenant } from '../support/tenant.ts';
import type { Tenant } from '../support/tenant.ts';

// Every case is generated from the route table and the OpenAPI document, so a new route is included automatically.

let api: TestApi;
let mine: Tenant;
let theirs: Tenant;

beforeAll(async () => {
  api = await startTestApi();
  mine = await newTenant(api, 'mine');
  theirs = await newTenant(api, 'theirs');
});
afterAll(async () => {
  await api.close();
});

const accountRoutes = routes
  .filter((route) => route.auth === 'account')
  .map((route) => [`${route.method} ${route.path}`, route] as const);

/** Returns a response for comparison: everything except the requested id and the request id. */
function comparable({ status, text, headers }: ApiResponse, requestedId: string): readonly unknown[] {
  const withoutIds = text.replace(/"requestId":"[^"]*"/, '').replaceAll(requestedId, 'REQUESTED');
  return [status, withoutIds, headers.get('content-type')];
}

function expectNothingOfOthers(response: ApiResponse): void {
  for (const mark of theirs.marks) expect(response.text).not.toContain(mark);
}

/** Runs calls and expects that they change, create and delete no row of the other account. */
async function expectOthersUnchanged(work: () => Promise<void>): Promise<void> {
  const before = await fingerprintOf(api, theirs);
  await work();
  expect(await fingerprintOf(api, theirs)).toBe(before);
}

describe.each(accountRoutes)('%s', (_, route) => {
  const ownIds = ({ kind }: IdPlace) => mine.ids[kind];

  test('the account itself can call the route', async () => {
    const { path, body } = requestOf(route, ownIds);
    const { status } = await api.call(route.method, path, { key: mine.key, body });
    expect([400, 401, 403, 404, 405, 413, 415, 500]).not.toContain(status);
  });

  // @promise foreign-id-inside-app
  test('a key of another account gets the response for an unknown resource, and changes nothing', async () => {
    const otherAccount = await newAccount(api);
    const { path, body } = requestOf(route, ({ kind }) => theirs.ids[kind]);
    if (!route.path.includes('/:appId')) {
      const response = await api.call(route.method, path, { key: otherAccount.key, body });
      expectNothingOfOthers(response);
      return;
    }
    await expectOthersUnchanged(async () => {
      for (const { key } of [otherAccount, mine]) {
        const response = await api.call(route.method, path, { key, body });
        expect(response.status).toBe(404);
        expectNothingOfOthers(response);
      }
    });
  });

  const places: IdPlace[] = [];
  requestOf(route, (place) => {
    places.push(place);
    return 'x';
  });
  const others = places.filter(({ name }) => name !== 'appId');
  if (others.length > 0) {
    // @promise foreign-id-inside-app
    test.each(others.map((place) => [`${place.where} ${place.name}`, place] as const))(
      "another account's id in the %s gets the response for an unknown id, and changes nothing",
      async (__, place) => {
        const isPlace = ({ where, name }: IdPlace) => where === place.where && name === place.name;
        const askFor = async (id: string) => {
          const { path, body } = requestOf(route, (at) => (isPlace(at) ? id : mine.ids[at.kind]));
          return comparable(await api.call(route.method, path, { key: mine.key, body }), id);
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
  if (takesCursor) {
    // @promise foreign-cursor-400
    test("another account's cursor is a 400", async () => {
      const skip = (operationOf(route).parameters ?? [])
        .filter(({ in: where, name }) => where === 'query' && name !== 'limit')
        .map(({ name }) => name);
      const page = (tenant: Tenant, query: string) => {
        const [path = ''] = requestOf(route, ({ kind }) => tenant.ids[kind], skip).path.split('?');
        return api.call<{ nextCursor: string | null }>(route.method, `${path}?limit=1${query}`, {
          key: tenant.key,
        });
      };
      // Every other list of the tenant has two rows.
      if (route.operationId === 'listApps') await newApp(api, theirs);
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
