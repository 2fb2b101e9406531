import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { signIn } from '../support/sessions.ts';

let api: TestApi;
let holder: pg.Client;

beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(async () => {
  holder = new pg.Client(api.database.url);
  await holder.connect();
});
afterAll(async () => {
  await api.close();
});

/** Sets up an account. Returns the calls of its lists. */
async function newCaller() {
  const app = await newApp(api);
  const affiliateId = await newAffiliate(api, app);
  const session = await signIn(api, app.key);
  const paths = {
    links: `/apps/${app.appId}/links`,
    "a creator's commissions": `/apps/${app.appId}/affiliates/${affiliateId}/creator/commissions`,
    audit: `/accounts/${app.accountId}/audit`,
  };
  return async (name: keyof typeof paths) =>
    await api.call('GET', paths[name], {
      headers: { accept: 'text/csv', ...(name === 'audit' ? session : {}) },
      ...(name === 'audit' ? {} : { key: app.key }),
    });
}

// @promise account-files-limited
test.each([
  ['links', 'links'],
  ["a creator's commissions", 'commissions'],
  ['audit', 'audit_rows'],
] as const)(
  'an account that calls for a list as CSV sixty times at once has two at a time, and takes no place of another account: %s',
  async (name, table) => {
    const [noisy, quiet] = [await newCaller(), await newCaller()];
    await holder.query(`begin; lock table ${table} in access exclusive mode`);
    let refused = 0;
    const flood = Array.from({ length: 60 }, async () => {
      const response = await noisy(name);
      if (response.status === 503) refused += 1;
      return response;
    });
    try {
      await eventually(
        'those beyond the places to wait are refused',
        async () => await Promise.resolve(refused >= 42),
        10_000,
      );
      const other = quiet(name);
      await holder.query('rollback');
      expect((await other).status).toBe(200);
    } finally {
      await holder.end();
    }
    const responses = await Promise.all(flood);
    const late = responses.filter(({ status }) => status === 503);
    expect(late.map(({ headers }) => headers.get('retry-after'))).toEqual(late.map(() => '5'));
    expect(
      responses.map(({ status }) => status).filter((status) => status !== 503 && status !== 200),
    ).toEqual([]);
    // The places are free again.
    expect((await noisy(name)).status).toBe(200);
  },
);
