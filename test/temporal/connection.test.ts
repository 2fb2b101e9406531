import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { TemporalConnection } from '../../temporal/connection.ts';

test('a Temporal server that accepts connections and never responds does not delay the stop', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    silent.once('listening', resolve);
  });
  const connection = new TemporalConnection({
    connection: { address: `127.0.0.1:${(silent.address() as AddressInfo).port}` },
    namespace: 'default',
    taskQueue: 'test',
    worker: null,
    schedules: [],
    logger: pino({ level: 'silent' }),
  });
  await new Promise((resolve) => {
    silent.once('connection', resolve);
  });
  const begin = Date.now();
  await connection.stop();
  expect(Date.now() - begin).toBeLessThan(1_000);
  for (const socket of sockets) socket.destroy();
  silent.close();
});
