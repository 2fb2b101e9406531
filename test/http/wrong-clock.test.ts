import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pino from 'pino';
import { createClockCheck } from '../../src/clock-check.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;
let slug: string;
let isClockRight: boolean | undefined = true;

beforeAll(async () => {
  api = await startTestApi({
    readiness: async () =>
      isClockRight === undefined ? [] : [{ name: 'clock', ok: isClockRight, detail: null, optional: true }],
  });
  app = await newApp(api);
  ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
});
afterAll(async () => {
  await api.close();
});

const calls = (at: number) => [
  api.call('POST', '/clicks', {
    body: { customerAppId: app.appId, slug, claimToken: randomUUID(), clickedAt: at },
  }),
  api.call('POST', '/sdk/install', {
    key: app.sdkKey,
    body: { deviceId: randomUUID(), affiliateCode: slug, firstOpenAt: at },
  }),
  api.call('POST', '/sdk/identify', {
    key: app.sdkKey,
    body: { deviceId: randomUUID(), customerUserId: 'user-1', identifiedAt: at },
  }),
];

test('a time in the future is a 400 of a process with the right clock', async () => {
  const future = api.clock.now + HOUR_MS;
  isClockRight = true;
  expect((await Promise.all(calls(future))).map(({ status }) => status)).toEqual([400, 400, 400]);
});

test.each([
  ['is wrong', false],
  ['could not be compared with that of the database', undefined],
])('a time in the future is a 503 with Retry-After of a process whose clock %s', async (_, isRight) => {
  isClockRight = isRight;
  const answers = await Promise.all(calls(api.clock.now + HOUR_MS));
  isClockRight = true;
  expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
    answers.map(() => [503, '10']),
  );
});

test.each([
  ['two minutes behind', -2 * MINUTE_MS, /^the clock of this process is 1[12]\d s behind that of Postgres/],
  ['an hour ahead', HOUR_MS, /^the clock of this process is 3(?:599|600) s ahead of that of Postgres/],
  ['half a minute ahead', MINUTE_MS / 2, null],
  ['right', 0, null],
])('the check of a clock that is %s says so', async (_, offMs, expected) => {
  const logger = pino({ level: 'silent' });
  const problem = await createClockCheck({ sql: api.sql, logger, now: () => Date.now() + offMs })();
  if (expected === null) expect(problem).toBeNull();
  else expect(problem).toMatch(expected);
});

test('a clock that is set between two checks is noticed at once', async () => {
  let offMs = 0;
  const logger = pino({ level: 'silent' });
  const check = createClockCheck({ sql: api.sql, logger, now: () => Date.now() + offMs });
  expect(await check()).toBeNull();
  offMs = -HOUR_MS;
  expect(await check()).toMatch(/behind that of Postgres/);
  offMs = 0;
  expect(await check()).toBeNull();
});
