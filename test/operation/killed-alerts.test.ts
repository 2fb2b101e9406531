import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { awaitedQueue, backgroundQueue } from '../../temporal/names.ts';
import { startChildService } from '../support/child-service.ts';
import type { ChildService } from '../support/child-service.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { temporalAddress } from '../support/service.ts';

let database: TestDatabase;
let children: ChildService[] = [];
let connection: Connection;

beforeAll(async () => {
  database = await createTestDatabase();
  connection = await Connection.connect({ address: temporalAddress() });
});
afterAll(async () => {
  await Promise.all(children.map(async (child) => await child.kill()));
  await connection.close();
  await database.drop();
});

const start = async () => {
  const child = await startChildService(database.url);
  children.push(child);
  return child;
};

// @promise alert-once
test('two processes that evaluate alerts, and are killed while they open one, open it once', async () => {
  const { sql } = database;
  const [first] = await Promise.all([start(), start()]);
  const founder = await setUpFounder({ sql, url: first?.url ?? '' });
  await founder.ok('POST', `/apps/${founder.app.id}/webhook-endpoints`, {
    url: 'https://example.com/hook',
    eventTypes: ['alert.opened', 'alert.closed'],
  });
  const user = await founder.customer();
  for (let n = 0; n < 20; n += 1) await founder.purchase(user, 1);
  await sql`update deliveries set received_at = received_at - interval '1 day' where app_id = ${founder.app.id}`;

  const { id } = await sql.one<{ id: string }>`select id from installation`;
  const evaluate = async () =>
    await new Client({ connection }).workflow.execute('alerts', {
      workflowId: `alerts:${randomUUID()}`,
      taskQueue: backgroundQueue(awaitedQueue(id)),
    });
  // Both wait for the table in the middle of an evaluation. Their statements may be committed after they are killed.
  const locker = new pg.Client(database.url);
  await locker.connect();
  await locker.query('begin; lock table alerts in share row exclusive mode');
  const evaluated = Promise.all([evaluate(), evaluate()]);
  await eventually('both wait', async () => {
    const waiting = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into alerts%'`;
    return waiting.length === 2;
  });
  await Promise.all(children.map(async (child) => await child.kill()));
  children = [];
  await locker.query('commit');
  await locker.end();
  await start();
  await evaluated;
  await evaluate();
  const alerts = await sql`
    select rule, subject, closed_at from alerts where app_id = ${founder.app.id}`;
  expect(alerts).toEqual([{ rule: 'provider_silent', subject: 'revenuecat', closedAt: null }]);
  const messages = await sql`select type from webhook_messages where app_id = ${founder.app.id}`;
  expect(messages).toEqual([{ type: 'alert.opened' }]);
}, 120_000);
