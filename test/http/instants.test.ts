import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';

const FIRST_INSTANT = Date.UTC(2001, 0, 1);
const MAX_AHEAD_MS = 366 * DAY_MS;

let api: TestApi;
let app: TestApp;
let slug: string;
let affiliateId: string;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  ({ slug } = await newLink(api, app, affiliateId));
});
afterAll(async () => {
  await api.close();
});

const get = (path: string) =>
  api.call<{ items: { occurredAt: number }[]; from: number; to: number; errors?: object[] }>(
    'GET',
    `/apps/${app.appId}${path}`,
    { key: app.key },
  );

const looksLikeSeconds = (path: string) => ({
  status: 400,
  body: {
    code: 'invalid_request',
    errors: [{ path, message: expect.stringContaining('Looks like seconds') }],
  },
});

describe('an instant in a body', () => {
  const calls: Readonly<Record<string, (at: number) => Promise<{ status: number; body: object }>>> = {
    clickedAt: (clickedAt) =>
      api.call('POST', '/clicks', {
        body: { customerAppId: app.appId, slug, claimToken: randomUUID(), clickedAt },
      }),
    firstOpenAt: (firstOpenAt) =>
      api.call('POST', '/sdk/install', {
        key: app.sdkKey,
        body: { deviceId: randomUUID(), affiliateCode: slug, firstOpenAt },
      }),
    identifiedAt: (identifiedAt) =>
      api.call('POST', '/sdk/identify', {
        key: app.sdkKey,
        body: { deviceId: randomUUID(), customerUserId: 'user', identifiedAt },
      }),
  };

  // @promise instant-in-seconds
  test.each(Object.keys(calls))('%s in seconds is a 400 that says so', async (field) => {
    for (const at of [Math.floor(api.clock.now / 1000), 0, FIRST_INSTANT - 1])
      expect(await calls[field]?.(at)).toMatchObject(looksLikeSeconds(field));
  });

  test.each(Object.keys(calls))('%s from 2001 on is accepted', async (field) => {
    // A device without an attribution is a 404, so the value was valid.
    expect([200, 404]).toContain((await calls[field]?.(FIRST_INSTANT))?.status);
  });
});

describe('an instant in a query', () => {
  // @promise instant-in-seconds
  test.each([
    ['/commissions', 'from'],
    ['/commissions', 'to'],
    ['/timeseries', 'from'],
    ['/timeseries', 'to'],
    ['/leaders', 'from'],
  ])('%s?%s in seconds is a 400 that says so', async (path, name) => {
    for (const at of [1, Math.floor(api.clock.now / 1000), FIRST_INSTANT - 1])
      expect(await get(`${path}?${name}=${at}`)).toMatchObject(looksLikeSeconds(name));
  });

  // @promise instant-in-seconds
  test('an instant more than 366 days ahead is a 400, and 366 days ahead is accepted', async () => {
    expect((await get(`/commissions?to=${api.clock.now + MAX_AHEAD_MS}`)).status).toBe(200);
    expect(await get(`/commissions?to=${api.clock.now + MAX_AHEAD_MS + 1}`)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'to', message: expect.stringContaining('366 days ahead') }] },
    });
  });

  // @promise instant-in-seconds
  test('0 is the beginning, and 2001 is accepted', async () => {
    expect((await get('/commissions?from=0')).status).toBe(200);
    expect((await get(`/commissions?from=${FIRST_INSTANT}`)).status).toBe(200);
  });

  // @promise iso-in-query
  test('ISO 8601 with an offset selects the same rows as epoch milliseconds', async () => {
    const occurredAt = Date.UTC(2026, 4, 31, 22);
    await insertEarning(api, app, { affiliateId, amountCents: 100, occurredAt, dueAt: occurredAt });
    const times = async (query: string) =>
      (await get(`/commissions?${query}`)).body.items.map((row) => row.occurredAt);
    for (const at of ['2026-05-31T22:00:00Z', '2026-06-01T00:00:00%2B02:00', '2026-06-01T00:00:00+02:00']) {
      expect(await times(`from=${at}`)).toEqual([occurredAt]);
      expect(await times(`to=${at}`)).toEqual([]);
    }
    expect((await get('/timeseries?from=2026-06-01&to=2026-06-02')).body).toMatchObject({
      from: Date.UTC(2026, 5, 1),
      to: Date.UTC(2026, 5, 2),
    });
  });

  test.each([
    ['2026-02-31T00:00:00Z'],
    ['2026-06-01T00:00:00'],
    ['2026-06-01T25:00:00Z'],
    ['june'],
    ['-1'],
    [''],
    ['1e12'],
    ['10000-01-01T00:00:00Z'],
  ])('the text "%s" is a 400 that names both formats', async (text) => {
    expect(await get(`/commissions?from=${encodeURIComponent(text)}`)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'from', message: expect.stringContaining('ISO 8601') }] },
    });
  });
});
