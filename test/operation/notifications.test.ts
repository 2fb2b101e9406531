import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { listenTo, notify } from '../../src/db/notifications.ts';
import type { NotificationListener } from '../../src/db/notifications.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
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

describe('a listener beside a slow database', () => {
  let proxy: CuttableProxy;
  let listener: NotificationListener;
  const received: string[] = [];

  /** Starts a listener that asks every 50 ms, and waits until it listens. */
  const start = async (respondWithinMs: number) => {
    const options = { url: proxy.url, channel: 'tributary_results', checkMs: 50, respondWithinMs } as const;
    listener = listenTo(options, (payload) => void received.push(payload));
    await eventually('it listens', async () => listener.isListening());
  };
  const backend = async () =>
    (
      await database.sql<{ pid: number }>`
        select pid from pg_stat_activity
         where datname = current_database() and application_name = 'tributary notifications' order by backend_start limit 1`
    )[0]?.pid;

  beforeEach(async () => {
    proxy = await startProxy(database.url);
  });
  afterEach(async () => {
    await listener.stop();
    await proxy.close();
  });

  // @promise starvation
  test('keeps its connection when answers are late, and gets no other one for each of them', async () => {
    await start(300);
    const before = await backend();
    proxy.delay(400);
    await eventually('the answer is late', async () => !listener.isListening());
    await eventually('the answer has come', async () => listener.isListening());
    const opened = proxy.opened();
    // Three more answers that are as late. One of them may take longer by chance.
    await sleep(2_700);
    expect(proxy.opened() - opened).toBeLessThanOrEqual(1);
    proxy.restore();
    await eventually('it listens in time', async () => listener.isListening());
    expect(await backend()).toBe(before);
  });

  // @promise starvation
  test('keeps its connection and opens no other when the event loop of its process was held up', async () => {
    await start(1_000);
    const before = await backend();
    // Most of the time an answer is on its way. It waits in the socket while the loop is held up.
    proxy.delay(100);
    for (let turn = 0; turn < 3; turn += 1) {
      await sleep(300);
      const endsAt = performance.now() + 1_300;
      while (performance.now() < endsAt);
    }
    proxy.restore();
    await notify(database.sql, 'tributary_results', 'after the hold-up');
    await eventually('the payload arrives', async () => received.includes('after the hold-up'));
    expect({ pid: await backend(), opened: proxy.opened() }).toEqual({ pid: before, opened: 1 });
  });

  // @promise starvation
  test('replaces a connection that has fallen silent as soon as another one listens', async () => {
    await start(300);
    proxy.silence();
    await eventually('it is known to be silent', async () => !listener.isListening());
    proxy.restore();
    await eventually('it listens', async () => listener.isListening());
    await notify(database.sql, 'tributary_results', 'after the silence');
    await eventually('the payload arrives', async () => received.includes('after the silence'));
    await eventually('the silent one is closed', async () => proxy.silenced() === 0);
  });

  // @promise starvation
  test('pauses longer after each failed login, also where each connection is closed at once', async () => {
    await start(300);
    const before = proxy.opened();
    let attempts = 0;
    const closing = createServer((socket) => {
      attempts += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => {
      closing.listen(0, '127.0.0.1', resolve);
    });
    const url = new URL(database.url);
    url.port = String((closing.address() as AddressInfo).port);
    const failing = listenTo({ url: url.toString(), channel: 'tributary_results' }, () => {});
    await sleep(2_000);
    expect(failing.isListening()).toBe(false);
    await failing.stop();
    closing.close();
    // After 0, 0.2, 0.6 and 1.4 s.
    expect(attempts).toBeGreaterThan(1);
    expect(attempts).toBeLessThanOrEqual(4);
    expect(proxy.opened()).toBe(before);
  });
});
