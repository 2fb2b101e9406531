import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createRetentionActivities } from '../../activities/retention.ts';
import { newId } from '../../src/db/new-id.ts';
import { readRetentionProgress } from '../../src/db/retention.ts';
import { instant } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createIdGenerator } from '../../src/http/id-generator.ts';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  await api.call('PUT', `/apps/${app.appId}/webhooks/revenuecat/secret`, {
    key: app.key,
    body: { secret: 'a-secret-of-thirty-two-characters', environment: 'production' },
  });
});
afterAll(async () => {
  await api.close();
});

/** Stores the body of a delivery of `days` ago, in a state. */
async function insertBody(days: number, status: 'processed' | 'failed'): Promise<string> {
  const at = Date.now() - days * DAY_MS;
  const id = createIdGenerator(at).id('delivery');
  await api.sql`
    with row as (
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                              event_id, completed_at)
      select ${id}, app_id, provider, ${instant(at)}, true, ${status}::text, id, sha256('x'), ${newId('event')}, ${instant(at)}
        from webhook_secrets where app_id = ${app.appId}
      returning id
    )
    insert into delivery_bodies (delivery_id, body) select id, 'x'::bytea from row`;
  return id;
}

const bodies = async () =>
  (await api.sql<{ id: string }>`select delivery_id as id from delivery_bodies order by delivery_id`).map(
    ({ id }) => id,
  );

// @promise retention
test('however many bodies are kept, later runs reach those behind them, and begin again when they have seen all', async () => {
  const kept: string[] = [];
  for (const days of [450, 449, 448, 447, 446]) kept.push(await insertBody(days, 'failed'));
  const removable = await insertBody(430, 'processed');
  const activities = createRetentionActivities({
    sql: api.sql,
    logger: pino({ level: 'silent' }),
    retentionPage: { rows: 1, batches: 2 },
  });
  /** A run of two pages, of two rows each. */
  const run = async () => {
    const first = await activities.removeExpired('bodies', '');
    return first.next === null ? first : await activities.removeExpired('bodies', first.next);
  };
  const finishedAt = async () =>
    (await readRetentionProgress(api.sql)).find(({ kind }) => kind === 'bodies')?.finishedAt;

  expect(await run()).toMatchObject({ removed: 0 });
  expect(await bodies()).toEqual([...kept, removable]);
  expect(await finishedAt()).toBeNull();
  expect(await run()).toMatchObject({ removed: 0, next: null });
  expect(await bodies()).toEqual(kept);
  expect(await finishedAt()).not.toBeNull();

  // One that was kept is read by a later version.
  await api.sql`update deliveries set processing_status = 'processed' where id = ${kept[0]}`;
  await run();
  expect(await bodies()).toEqual(kept.slice(1));
});

// @promise retention
test('the body of a webhook that could not be read is kept, unless it names an erased person', async () => {
  const [kept, erased] = [await insertBody(480, 'failed'), await insertBody(480, 'failed')];
  await api.sql`update delivery_bodies set encryption_key_id = 'k1' where delivery_id = ${erased}`;
  const activities = createRetentionActivities({ sql: api.sql, logger: pino({ level: 'silent' }) });
  // The first run goes on where the last one stopped, the second one begins anew.
  await activities.removeExpired('bodies', '');
  await activities.removeExpired('bodies', '');
  expect(await bodies()).toContain(kept);
  expect(await bodies()).not.toContain(erased);
});
