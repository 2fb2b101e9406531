import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Activities } from '../../activities/index.ts';
import { newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, revenuecatEvent, revenuecatTransfer } from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { requestRun, runReprocess } from '../support/reprocess.ts';

// A delivery whose own content is the fault ends with its reason. Only a fault of the environment is retried.

let api: TestApi;
let activities: Activities;
let app: TestApp;
let token = '';

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi());
  await setUpApp();
});
afterAll(async () => {
  await api.close();
});

async function setUpApp(): Promise<void> {
  app = await newApp(api);
  const path = `/apps/${app.appId}/webhooks/revenuecat/secret`;
  token = (await api.call<{ secret: string }>('PUT', path, { key: app.key, body: {} })).body.secret;
}

interface Delivery {
  readonly processingStatus: string;
  readonly lastError: string | null;
  readonly eventCount: number;
}

/** Delivers an event. Returns its row in the diagnostic. */
async function deliver(payload: Payload): Promise<Delivery | undefined> {
  const response = await api.call('POST', `/webhooks/revenuecat/${app.appId}`, {
    headers: { authorization: token, 'content-type': 'application/json' },
    body: bodyOf(payload).toString(),
  });
  expect(response.status).toBe(200);
  const path = `/apps/${app.appId}/diagnostics/webhooks?limit=1`;
  return (await api.call<{ items: Delivery[] }>('GET', path, { key: app.key })).body.items[0];
}

const ids = (count: number) => Array.from({ length: count }, (_, n) => `u${n}`);

// @promise ids-per-event
test.each([
  ['aliases', () => revenuecatEvent({ userId: 'u0', aliases: ids(15_000) })],
  ['aliases, of one more than the limit', () => revenuecatEvent({ userId: 'u0', aliases: ids(201) })],
  ['givers of a transfer', () => revenuecatTransfer({ from: ids(15_000), to: ['user'] })],
])('an event with too many %s is a failed delivery that stores nothing', async (_title, payload) => {
  expect(await deliver(payload())).toMatchObject({
    processingStatus: 'failed',
    lastError: 'the event names more than 200 users and keys',
    eventCount: 0,
  });
  expect(await api.sql`select from events where app_id = ${app.appId}`).toEqual([]);
});

// @promise ids-per-event
test('an event with 200 users is processed', async () => {
  const body = revenuecatEvent({ userId: 'u0', aliases: ids(200), originalTransactionId: null });
  expect(await deliver(body)).toMatchObject({
    processingStatus: 'processed',
  });
});

/** Runs `work` while the database refuses the payments that meet a condition, with an SQLSTATE. */
async function whileRefused(code: string, condition: string, work: () => Promise<void>): Promise<void> {
  await runOn(
    api.database.url,
    `create function test_refuses() returns trigger language plpgsql as $$
     begin raise exception 'refused' using errcode = '${code}'; end $$;
     create trigger test_refuses before insert on payments for each row when (${condition}) execute function test_refuses();`,
  );
  try {
    await work();
  } finally {
    await runOn(api.database.url, 'drop trigger test_refuses on payments; drop function test_refuses();');
  }
}

const CODES = [
  ['a data exception', '22P05'],
  ['a row that does not fit an index', '54000'],
  ['a check of a value', '23514'],
] as const;

// @promise content-faults-end
test.each(CODES)(
  'a delivery whose facts the database refuses by %s is failed with its reason',
  async (_title, code) => {
    const eventId = randomUUID();
    await whileRefused(code, 'true', async () => {
      expect(await deliver(revenuecatEvent({ eventId, userId: 'u0' }))).toMatchObject({
        processingStatus: 'failed',
        lastError: expect.stringContaining(
          `the database refuses what the event states: PostgresError ${code}`,
        ),
        eventCount: 0,
      });
    });
    expect(await api.sql`select from events where source_event_id = ${eventId}`).toEqual([]);
  },
);

// @promise reprocess-skips-refused
test.each(CODES)(
  'a delivery whose facts the database refuses by %s is refused by a dry run and a run, which go on to the next one',
  async (_title, code) => {
    const [refused, sound] = [randomUUID(), randomUUID()];
    const events = [refused, sound].map((id) =>
      revenuecatEvent({ eventId: id, userId: 'u0', transactionId: id, originalTransactionId: null }),
    );
    await setUpApp();
    await whileRefused(code, 'true', async () => {
      for (const event of events) expect(await deliver(event)).toMatchObject({ processingStatus: 'failed' });
    });
    await whileRefused(code, `new.ref = '${refused}'`, async () => {
      const plan = {
        changes: [
          {
            what: 'refused',
            today: expect.stringContaining(`rejects it: PostgresError ${code}`),
            action: 'keep',
          },
        ],
      };
      for (const dryRun of [true, false]) {
        const run = await requestRun(api.sql, app.appId, { dryRun });
        expect(await runReprocess(api.sql, activities, run)).toMatchObject({
          seen: 2,
          applied: dryRun ? 0 : 1,
          found: [plan, { changes: expect.arrayContaining([expect.objectContaining({ what: 'event' })]) }],
        });
      }
    });
    expect(
      await api.sql`select source_event_id from events where source_event_id = any(${[refused, sound]}::text[])`,
    ).toEqual([{ sourceEventId: sound }]);
  },
);
