import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

const LIMIT = 3;
/** How many links that the process does not know are looked up for an address in a minute. */
const LOOKUPS = 10 * LIMIT;

let api: TestApi;
let app: TestApp;
let lookups = 0;
let nextSite = 1;
let address: string;

beforeAll(async () => {
  const rateLimits = createRateLimits({ ...NO_RATE_LIMITS, failures: LIMIT });
  const onStatement = ({ text }: { readonly text: string }) => {
    if (text.includes('link_subdomains')) lookups += 1;
  };
  api = await startTestApi({ rateLimits, trustProxy: 1 }, { onStatement });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});
beforeEach(() => {
  address = `198.51.100.${(nextSite += 1)}`;
  lookups = 0;
});

async function visit(path: string, from = address, method = 'GET'): Promise<number> {
  const headers = { 'x-forwarded-for': from };
  return (await api.call(method, path, { headers })).status;
}
const visits = async (count: number, path: () => string) => {
  const statuses: number[] = [];
  for (let nth = 0; nth < count; nth += 1) statuses.push(await visit(path()));
  return statuses;
};
const madeUp = () => `/l/${app.linkSubdomain}/${randomUUID().slice(0, 8)}`;
const newPath = async () =>
  `/l/${app.linkSubdomain}/${(await newLink(api, app, await newAffiliate(api, app))).slug}`;

// @promise link-guesses-limited
test.each([
  ['a made-up slug', madeUp],
  ['a made-up subdomain', () => `/l/x${randomUUID().slice(0, 8)}/x`],
  ['a path that is no link', () => '/l/-/-'],
  ['a host without an app', () => '/l/x'],
])('visits of %s are 404 up to the limit of their address, then 429', async (_, path) => {
  expect(await visits(LIMIT + 2, path)).toEqual([404, 404, 404, 429, 429]);
  expect(await visit(path(), `${address}0`)).toBe(404);
});

// @promise link-guesses-limited
test('of visits of made-up links, one address gets ten times its limit looked up', async () => {
  const statuses = await visits(LOOKUPS + 20, madeUp);
  expect(statuses.filter((status) => status === 404)).toHaveLength(LIMIT);
  expect(lookups).toBe(LOOKUPS);
});

// @promise link-guesses-limited
test('a visitor whose address somebody uses to try out links is still redirected', async () => {
  const [known, unseen, late] = [await newPath(), await newPath(), await newPath()];
  expect(await visit(known, '203.0.113.1')).toBe(302);
  await visits(LIMIT + 5, madeUp);
  for (const path of [known, known.toUpperCase().replace('/L/', '/l/'), unseen, known])
    expect(await visit(path)).toBe(302);
  expect(await visit(late, address, 'HEAD')).toBe(302);
  const other = await newPath();
  await visits(LOOKUPS, madeUp);
  // Beyond that, only links that the process has found within a day are looked up.
  expect([await visit(known), await visit(late), await visit(other)]).toEqual([302, 302, 429]);
  expect(await visit(other, '203.0.113.1')).toBe(302);
  expect(await visit(other)).toBe(302);
  const { now } = api.clock;
  api.clock.now = now + DAY_MS + 1;
  expect(await visit(known)).toBe(429);
  api.clock.now = now;
});

// @promise link-guesses-limited
test('visits of links that exist count as no failures, however many they are', async () => {
  const path = await newPath();
  expect(new Set(await visits(LOOKUPS + 10, () => path))).toEqual(new Set([302]));
  expect(await visits(LIMIT, madeUp)).toEqual([404, 404, 404]);
});

test('made-up links count apart from made-up keys, so that they lock out no caller', async () => {
  await visits(LOOKUPS + 5, madeUp);
  const headers = { 'x-forwarded-for': address };
  expect((await api.call('GET', '/apps', { key: app.key, headers })).status).toBe(200);
  expect((await api.call('GET', '/apps', { key: 'x', headers })).status).toBe(401);
});
