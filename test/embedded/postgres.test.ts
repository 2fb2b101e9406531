import { chmod, mkdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { cleanUp, deadPid, query, startChild, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const asRoot = process.getuid?.() === 0;

// @promise data-survive-restart
test('an embedded Postgres has the same data and address after a restart', async () => {
  const dataDir = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir, durable: false });
  expect(
    await query(first.url, `select current_database() as name, current_setting('max_connections') as max`),
  ).toEqual([{ name: 'tributary', max: '200' }]);
  await query(first.url, 'create table stored as select 42 as n');
  await first.stop();
  await first.stop();
  await expect(query(first.url, 'select 1')).rejects.toThrow('ECONNREFUSED');

  const second = await startEmbeddedPostgres({ dataDir, durable: false });
  expect(second.url).toBe(first.url);
  expect(await query(second.url, 'select n from stored')).toEqual([{ n: 42 }]);
  await second.stop();
});

test('a Postgres that outlived its killed service is taken over; that of a running service is not stopped', async () => {
  const dataDir = await temporaryFolder();
  const service = await startChild(dataDir, 'postgres');
  await query(service.started, 'create table stored as select 42 as n');

  const guest = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(guest).toMatchObject({ url: service.started, owned: false });
  await guest.stop();
  expect(await query(service.started, 'select n from stored')).toEqual([{ n: 42 }]);

  await service.kill();
  const heir = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(heir).toMatchObject({ url: service.started, owned: true });
  expect(await query(heir.url, 'select n from stored')).toEqual([{ n: 42 }]);
  await heir.stop();
  await expect(query(heir.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
});

test('a killed Postgres starts again with its data', async () => {
  const dataDir = await temporaryFolder();
  const killed = await startEmbeddedPostgres({ dataDir, durable: true });
  await query(killed.url, 'create table stored as select 42 as n');
  process.kill(
    Number.parseInt(await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10),
    'SIGKILL',
  );
  const next = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(await query(next.url, 'select n from stored')).toEqual([{ n: 42 }]);
  await next.stop();
});

test('a pid file that a crash left does not block the start, whichever process has that pid now', async () => {
  const dataDir = await temporaryFolder();
  await (await startEmbeddedPostgres({ dataDir, durable: false })).stop();
  for (const pid of [deadPid(), process.ppid]) {
    await writeFile(join(dataDir, 'postgres/postmaster.pid'), `${pid}\n\n0\n1\n\n127.0.0.1\n\nready   \n`);
    const server = await startEmbeddedPostgres({ dataDir, durable: false });
    expect(await query(server.url, 'select 1 as n')).toEqual([{ n: 1 }]);
    await server.stop();
  }
});

test('a missing database password is reported with the fix', async () => {
  const dataDir = await temporaryFolder();
  await mkdir(join(dataDir, 'postgres'));
  if (asRoot) await chmod(dataDir, 0o700);
  await expect(startEmbeddedPostgres({ dataDir, durable: false })).rejects.toThrow(
    /postgres\.json, which holds the password .* is missing or damaged: restore it/,
  );
});

(asRoot ? describe : describe.skip)('embedded Postgres as root', () => {
  test('root can run Postgres below a folder that only root may enter', async () => {
    const dataDir = join(await temporaryFolder(), 'clone/.data');
    await mkdir(dataDir, { recursive: true });
    await chmod(join(dataDir, '../..'), 0o700);
    const server = await startEmbeddedPostgres({ dataDir, durable: false });
    const elsewhere = await readlink(join(dataDir, 'postgres'));
    try {
      await query(server.url, 'create table stored as select 42 as n');
      await server.stop();
      const again = await startEmbeddedPostgres({ dataDir, durable: false });
      expect(await query(again.url, 'select n from stored')).toEqual([{ n: 42 }]);
      await again.stop();
      expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('shut down');
    } finally {
      await server.stop();
      await rm(dirname(elsewhere), { recursive: true });
    }
  });
});
