import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import type { EmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { commandLine } from '../../src/embedded/processes.ts';
import type { LocalTemporal } from '../../temporal/local-server/server.ts';
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
    expect(Object.keys(customAttributes)).toEqual(
      expect.arrayContaining(['DeliveryState', 'AppId', 'Provider']),
    );
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

/** The names of the variables of a running process. */
async function variablesOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/environ`, 'utf8');
  return text.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(0, line.indexOf('='))]));
}

(process.platform === 'linux' ? describe : describe.skip)('the local servers', () => {
  let dataDir: string;
  let temporal: LocalTemporal;
  let database: EmbeddedPostgres;
  beforeAll(async () => {
    process.env['SECRETS_KEY'] = 'secret of the service';
    dataDir = await temporaryFolder();
    // A database of an earlier version, which every user of the machine could read.
    await (await startLocalTemporal({ dataDir, onProgress })).stop();
    await chmod(join(dataDir, 'temporal.db'), 0o644);
    temporal = await startLocalTemporal({ dataDir, onProgress });
    database = await startEmbeddedPostgres({ dataDir, durable: false });
  });
  afterAll(async () => {
    delete process.env['SECRETS_KEY'];
    await temporal.stop();
    await database.stop();
  });

  // @promise child-environment
  test('the servers and their watchdogs do not receive the environment of the service', async () => {
    const pidFiles = [join(dataDir, 'temporal.pid'), join(dataDir, 'postgres/postmaster.pid')];
    const pids = await Promise.all(
      pidFiles.map(async (file) => Number.parseInt(await readFile(file, 'utf8'), 10)),
    );
    for (const pid of pids) {
      const watchdogs = (await readdir('/proc'))
        .filter((name) => /^\d+$/.test(name))
        .filter((name) => commandLine(Number(name)).endsWith(` ${pid}`))
        .filter((name) => commandLine(Number(name)).includes('tributary-watchdog'));
      expect(watchdogs).toHaveLength(1);
      for (const each of [pid, ...watchdogs.map(Number)]) {
        const allowed = [
          'HOME',
          'LC_ALL',
          'OLDPWD',
          'PATH',
          'PGDATA',
          'PG_GRANDPARENT_PID',
          'PWD',
          'TZ',
          '_',
        ];
        expect((await variablesOf(each)).filter((name) => !allowed.includes(name))).toEqual([]);
      }
    }
  });

  // @promise private-data-files
  test('only the owner can read the files of the data folder', async () => {
    const readable: string[] = [];
    for (const name of await readdir(dataDir)) {
      if (((await stat(join(dataDir, name))).mode & 0o077) !== 0) readable.push(name);
    }
    expect(readable).toEqual([]);
    expect((await stat(join(dataDir, 'temporal.db'))).size).toBeGreaterThan(0);
  });
});
