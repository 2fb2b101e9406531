import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { commandLine } from '../../src/embedded/processes.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import { ensureSearchAttributes } from '../../temporal/search-attributes.ts';
import { cleanUp, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const onProgress = (): void => undefined;

// @promise empty-temporal-set-up
test('a local Temporal server starts, receives the missing search attributes, and stops', async () => {
  const server = await startLocalTemporal({ onProgress });
  const connection = await Connection.connect({ address: server.address });
  try {
    await ensureSearchAttributes(connection, 'default');
    await ensureSearchAttributes(connection, 'default');
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace: 'default',
    });
    expect(Object.keys(customAttributes)).toContain('DeliveryState');
    expect((await fetch(server.uiUrl)).status).toBe(200);
  } finally {
    await connection.close();
    await server.stop();
  }
  await expect(Connection.connect({ address: server.address, connectTimeout: 200 })).rejects.toThrow(
    'Failed to connect',
  );
});

test('a Temporal server that outlived its service is ended by the next start', async () => {
  const dataDir = await temporaryFolder();
  const left = await startLocalTemporal({ dataDir, onProgress });
  const pid = Number(await readFile(join(dataDir, 'temporal.pid'), 'utf8'));
  const next = await startLocalTemporal({ dataDir, onProgress });
  expect(commandLine(pid)).toBe('');
  expect((await stat(join(dataDir, 'temporal.db'))).size).toBeGreaterThan(0);
  await left.stop();
  await next.stop();
});

test('a process that is not a Temporal server is not ended when temporal.pid names it', async () => {
  const dataDir = await temporaryFolder();
  await writeFile(join(dataDir, 'temporal.pid'), String(process.ppid));
  const server = await startLocalTemporal({ dataDir, onProgress });
  expect(() => process.kill(process.ppid, 0)).not.toThrow();
  await server.stop();
});

test('a requested Temporal port that is in use is named in the error', async () => {
  const server = await startLocalTemporal({ onProgress });
  const port = Number(server.address.split(':')[1]);
  await expect(startLocalTemporal({ onProgress, port })).rejects.toThrow(
    `Port ${port} for Temporal is in use`,
  );
  await server.stop();
});
