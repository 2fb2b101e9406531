import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { listenTo, notify } from '../../src/db/notifications.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

test('a listener receives payloads, and again after each death of its connection', async () => {
  const { sql, url } = database;
  const received: string[] = [];
  const listener = listenTo({ url, channel: 'tributary_results' }, (payload) => void received.push(payload));
  for (let kills = 0; kills <= 4; kills += 1) {
    await eventually('it listens', async () => listener.isListening());
    await notify(sql, 'tributary_results', `payload ${kills}`);
    await eventually('the payload arrives', async () => received.includes(`payload ${kills}`));
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'tributary notifications'`;
    await eventually('the death is noticed', async () => !listener.isListening());
  }
  await listener.stop();
  expect(new Set(received).size).toBe(5);
  await eventually('its connection is closed', async () => {
    const open = await sql`
      select from pg_stat_activity
       where datname = current_database() and application_name = 'tributary notifications'`;
    return open.length === 0;
  });
});
