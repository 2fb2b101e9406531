import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { runAdminIn } from '../support/run-admin.ts';
import { readConfig } from '../../src/config/config.ts';
import { prepareDataDir, writeServiceFile } from '../../src/embedded/data-dir.ts';
import { findService } from '../../src/embedded/find-service.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { cleanUp, query, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const run = async (dataDir: string, ...args: string[]) => await runAdminIn({ DATA_DIR: dataDir }, ...args);

async function admin(dataDir: string, ...args: string[]) {
  const { status, out, err } = await run(dataDir, ...args, '--json');
  expect({ status, err }).toEqual({ status: 0, err: expect.any(String) });
  return JSON.parse(out) as unknown;
}

/** Starts the database of a data folder and names this process as its service. */
async function startDatabaseOfService(dataDir: string) {
  const held = await prepareDataDir(dataDir);
  const postgres = await startEmbeddedPostgres({ dataDir, durable: false });
  await writeServiceFile(dataDir, {
    pid: process.pid,
    apiUrl: 'http://127.0.0.1:1',
    databaseUrl: postgres.url,
    migrationsDatabaseUrl: postgres.ownerUrl,
    temporalAddress: '127.0.0.1:1',
  });
  return { held, postgres };
}

// @promise command-line-on-data-folder
test('the command line starts and sets up the database of the data folder, or uses the one that runs', async () => {
  const dataDir = await temporaryFolder();
  const account = await admin(dataDir, 'accounts', 'create', '--name', 'Ann');
  const listed = [expect.objectContaining(account as object)];
  expect(await admin(dataDir, 'accounts', 'list')).toEqual(listed);

  const { held, postgres } = await startDatabaseOfService(dataDir);
  expect(await admin(dataDir, 'accounts', 'list')).toEqual(listed);
  expect(await query(postgres.url, 'select count(*)::int as n from accounts')).toEqual([{ n: 1 }]);
  await postgres.stop();
  await held.release();
});

// @promise embedded-restricted-role
test('the command line fills a new embedded database from an archive, which the role of the service cannot do', async () => {
  const dataDir = await temporaryFolder();
  const { held, postgres } = await startDatabaseOfService(dataDir);
  const account = await admin(dataDir, 'accounts', 'create', '--name', 'Ann');
  const archive = join(dataDir, 'archive');
  expect(await admin(dataDir, 'export', archive)).toMatchObject({ ok: true });

  const server = postgres.ownerUrl.replace(/tributary$/, 'postgres');
  await query(server, 'drop database tributary with (force)');
  await startEmbeddedPostgres({ dataDir, durable: false });
  expect(await admin(dataDir, 'import', archive)).toMatchObject({ ok: true });
  expect(await admin(dataDir, 'migrate')).toEqual({ migrations: [] });
  expect(await admin(dataDir, 'accounts', 'list')).toEqual([expect.objectContaining(account as object)]);
  await postgres.stop();
  await held.release();
});

// @promise command-line-creates-nothing
test.each([
  [['accounts', 'list']],
  [['keys', 'list', '--account', 'acct_01h455vb4pex5vsknk084sn02q']],
  [['ledger', 'check']],
  [['rollups', 'check']],
  [['rollups', 'repair']],
  [['deliveries', 'reprocess-cancel', 'rpr_01h455vb4pex5vsknk084sn02q']],
])('%j on a data folder without a database creates nothing and says what to do', async (args) => {
  const parent = await temporaryFolder();
  const missing = join(parent, 'misspelled');
  const empty = join(parent, 'empty');
  await mkdir(empty);
  for (const dataDir of [missing, empty]) {
    const { status, out, err } = await run(dataDir, ...args);
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toBe(
      `There is no Tributary database in ${dataDir}. Set DATA_DIR to the data folder of the service, or DATABASE_URL to its database. To create a new database, run npm start, migrate or accounts create.\n`,
    );
  }
  await expect(stat(missing)).rejects.toThrow('ENOENT');
  expect(await readdir(empty)).toEqual([]);
});

test('the command line finds a service by its data folder or by the environment, with its secrets keys', async () => {
  const dataDir = await temporaryFolder();
  expect(await findService(readConfig({ DATA_DIR: dataDir }))).toBeNull();

  const held = await prepareDataDir(dataDir);
  const [key] = held.secretsKeys;
  await writeServiceFile(dataDir, {
    pid: process.pid,
    apiUrl: 'https://api.example.com',
    ownUrl: 'http://127.0.0.1:4000',
    databaseUrl: 'postgres://127.0.0.1/here',
    temporalAddress: '127.0.0.1:1',
  });
  const ofFolder = {
    publicUrl: 'https://api.example.com',
    ownUrl: 'http://127.0.0.1:4000',
    secretsKeys: [key],
  };
  expect(await findService(readConfig({ DATA_DIR: dataDir }))).toEqual(ofFolder);
  expect(
    await findService(readConfig({ DATA_DIR: dataDir, DATABASE_URL: 'postgres://127.0.0.1/here' })),
  ).toEqual(ofFolder);
  await held.release();

  const own = Buffer.alloc(32, 5);
  const elsewhere = { DATABASE_URL: 'postgres://there/db', HOST: '0.0.0.0', PORT: '80' };
  const SECRETS_KEY = own.toString('base64');
  expect(await findService(readConfig({ ...elsewhere, SECRETS_KEY, DATA_DIR: dataDir }))).toEqual({
    publicUrl: 'http://127.0.0.1:80',
    ownUrl: 'http://127.0.0.1:80',
    secretsKeys: [own],
  });
  const empty = await temporaryFolder();
  await expect(findService(readConfig({ ...elsewhere, DATA_DIR: empty }))).rejects.toThrow(
    /SECRETS_KEY is required/,
  );
});
