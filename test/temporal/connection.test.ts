import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import type { Activities } from '../../activities/index.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { TemporalConnection } from '../../temporal/connection.ts';
import { eventually } from '../support/eventually.ts';
import { countPollers } from '../support/pollers.ts';
import { temporalAddress } from '../support/service.ts';

test('a Temporal server that accepts connections and never responds does not delay the stop', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    silent.once('listening', resolve);
  });
  /** Returns how long the stop of a connection to that server takes, ms. */
  const stop = async () => {
    const arrived = once(silent, 'connection');
    const connection = new TemporalConnection({
      connection: { address: `127.0.0.1:${(silent.address() as AddressInfo).port}` },
      namespace: 'default',
      taskQueue: 'test',
      schedules: [],
      logger: pino({ level: 'silent' }),
    });
    connection.start({ worker: null });
    await arrived;
    const begin = performance.now();
    await connection.stop();
    return performance.now() - begin;
  };
  let took = await stop();
  // A busy moment of the machine is over by then.
  if (took >= 1_000) took = await stop();
  expect(took).toBeLessThan(1_000);
  for (const socket of sockets) socket.destroy();
  silent.close();
});

// @promise missing-key-waits
test('a worker that has to wait takes work as soon as it may, and the connection is usable meanwhile', async () => {
  const taskQueue = `test-${randomUUID()}`;
  const address = temporalAddress();
  const other = await Connection.connect({ address });
  const client = new Client({ connection: other });
  const connection = new TemporalConnection({
    connection: { address },
    namespace: 'default',
    taskQueue,
    schedules: [],
    logger: pino({ level: 'silent' }),
  });
  let reason: string | null = 'a key is missing';
  connection.start({
    worker: {
      bundle: async () => ({
        code: await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8'),
      }),
      activities: () => ({ canMark: async () => await Promise.resolve(false) }) as unknown as Activities,
      beforeBackground: async () => {},
      waitsFor: async () => await Promise.resolve(reason),
    },
  });
  try {
    await eventually('the server is reached', async () => await Promise.resolve(connection.wasReady));
    expect([connection.client, connection.problem]).toEqual([expect.any(Client), null]);
    expect(await countPollers(client, taskQueue)).toBe(0);
    reason = null;
    await eventually('the worker takes work', async () => (await countPollers(client, taskQueue)) > 0);
  } finally {
    await connection.stop();
    await other.close();
  }
});
