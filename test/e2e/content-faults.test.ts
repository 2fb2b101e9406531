import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, revenuecatEvent, revenuecatTransfer } from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';

// A delivery whose own content is the fault ends with its reason. Only a fault of the environment is retried.

let api: TestApi;
let app: TestApp;
let token = '';

beforeAll(async () => {
  ({ api } = await startProcessingApi());
  app = await newApp(api);
  const path = `/apps/${app.appId}/webhooks/revenuecat/secret`;
  token = (await api.call<{ secret: string }>('PUT', path, { key: app.key, body: {} })).body.secret;
});
afterAll(async () => {
  await api.close();
});

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

// @promise content-faults-end
test.each([
  ['a data exception', '22P05'],
  ['a row that does not fit an index', '54000'],
  ['a check of a value', '23514'],
])('a delivery whose facts the database refuses by %s is failed with its reason', async (_title, code) => {
  const eventId = randomUUID();
  await runOn(
    api.database.url,
    `create function test_refuses() returns trigger language plpgsql as $$
     begin raise exception 'refused' using errcode = '${code}'; end $$;
     create trigger test_refuses before insert on payments for each row execute function test_refuses();`,
  );
  try {
    expect(await deliver(revenuecatEvent({ eventId, userId: 'u0' }))).toMatchObject({
      processingStatus: 'failed',
      lastError: expect.stringContaining(`the database refuses what the event states: PostgresError ${code}`),
      eventCount: 0,
    });
  } finally {
    await runOn(api.database.url, 'drop trigger test_refuses on payments; drop function test_refuses();');
  }
  expect(await api.sql`select from events where source_event_id = ${eventId}`).toEqual([]);
});
