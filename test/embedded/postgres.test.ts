import { chmod, mkdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { cleanUp, deadPid, query, startChild, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const asRoot = process.getuid?.() === 0;

// @promise data-survive-restart
test('an embedded Postgres has the same data and address after a restart', async () => {
  const dataDir = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir, durable: false });
  expect(
    await query(
      first.ownerUrl,
      `select current_database() as name, current_setting('max_connections') as max`,
    ),
  ).toEqual([{ name: 'tributary', max: '200' }]);
  await query(first.ownerUrl, 'create table stored as select 42 as n');
  await first.stop();
  await first.stop();
  await expect(query(first.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED');

  const second = await startEmbeddedPostgres({ dataDir, durable: false });
  expect(second.url).toBe(first.url);
  expect(await query(second.ownerUrl, 'select n from stored')).toEqual([{ n: 42 }]);
  await second.stop();
});

test('a Postgres that outlived its killed service is taken over; that of a running service is not stopped', async () => {
  const dataDir = await temporaryFolder();
  const service = await startChild(dataDir, 'postgres');
  await query(service.started, 'create table stored as select 42 as n');

  const guest = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(guest).toMatchObject({ ownerUrl: service.started, owned: false });
  await guest.stop();
  expect(await query(service.started, 'select n from stored')).toEqual([{ n: 42 }]);

  await service.kill();
  const heir = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(heir).toMatchObject({ ownerUrl: service.started, owned: true });
  expect(await query(heir.ownerUrl, 'select n from stored')).toEqual([{ n: 42 }]);
  await heir.stop();
  await expect(query(heir.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED');
});

test('a killed Postgres starts again with its data', async () => {
  const dataDir = await temporaryFolder();
  const killed = await startEmbeddedPostgres({ dataDir, durable: true });
  await query(killed.ownerUrl, 'create table stored as select 42 as n');
  process.kill(
    Number.parseInt(await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10),
    'SIGKILL',
  );
  const next = await startEmbeddedPostgres({ dataDir, durable: true });
  expect(await query(next.ownerUrl, 'select n from stored')).toEqual([{ n: 42 }]);
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

// @promise embedded-restricted-role
test('the service of an embedded Postgres can write rows, those of an earlier data folder too, and nothing else', async () => {
  const dataDir = await temporaryFolder();
  const before = await startEmbeddedPostgres({ dataDir, durable: false });
  await query(before.ownerUrl, 'drop owned by tributary_service');
  await query(before.ownerUrl, 'drop role tributary_service');
  await query(before.ownerUrl, 'create table earlier (n integer)');
  await before.stop();

  const server = await startEmbeddedPostgres({ dataDir, durable: false });
  await query(server.ownerUrl, 'create table later (n integer)');
  for (const table of ['earlier', 'later']) {
    await query(server.url, `insert into ${table} values (1)`);
    await query(server.url, `update ${table} set n = 2`);
    expect(await query(server.url, `delete from ${table} returning n`)).toEqual([{ n: 2 }]);
    for (const refused of [
      `copy ${table} from program 'id'`,
      `alter table ${table} disable trigger all`,
      `truncate ${table}`,
    ]) {
      await expect(query(server.url, refused)).rejects.toThrow(/permission denied|must be owner/);
    }
  }
  await expect(query(server.url, 'create table more (n integer)')).rejects.toThrow('permission denied');
  await expect(query(server.url, `select pg_read_file('PG_VERSION')`)).rejects.toThrow('permission denied');
  const both = [server.url, server.ownerUrl].map((url) => new URL(url).password);
  expect(new Set(both).size).toBe(2);
  await server.stop();
});

test('processes that open a new embedded database at the same moment all get it', async () => {
  const dataDir = await temporaryFolder();
  const server = await startEmbeddedPostgres({ dataDir, durable: false });
  for (let nth = 0; nth < 3; nth += 1) {
    await query(server.ownerUrl, 'drop owned by tributary_service');
    await query(server.ownerUrl, 'drop role tributary_service');
    const guests = await Promise.all(
      Array.from({ length: 4 }, () => startEmbeddedPostgres({ dataDir, durable: false })),
    );
    for (const { url } of guests) expect(await query(url, 'select 1 as n')).toEqual([{ n: 1 }]);
  }
  await server.stop();
});

test('a start that waits for a frozen process for too long ends with what to look at', async () => {
  const dataDir = await temporaryFolder();
  const server = await startEmbeddedPostgres({ dataDir, durable: false });
  const url = new URL(server.ownerUrl);
  url.pathname = '/postgres';
  const frozen = new pg.Client(url.toString());
  await frozen.connect();
  await frozen.query('select pg_advisory_lock(5871203)');
  const waiting = startEmbeddedPostgres({ dataDir, durable: false, openingMs: 200 });
  await expect(waiting).rejects.toThrow(
    /^The embedded Postgres has answered nothing for 0.2 s: look whether it, or another process/,
  );
  await frozen.end();
  expect(await startEmbeddedPostgres({ dataDir, durable: false })).toMatchObject({ url: server.url });
  await server.stop();
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
      await query(server.ownerUrl, 'create table stored as select 42 as n');
      await server.stop();
      const again = await startEmbeddedPostgres({ dataDir, durable: false });
      expect(await query(again.ownerUrl, 'select n from stored')).toEqual([{ n: 42 }]);
      await again.stop();
      expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('shut down');
    } finally {
      await server.stop();
      await rm(dirname(elsewhere), { recursive: true });
    }
  });
});
