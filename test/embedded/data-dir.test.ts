import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import {
  dataDirHolders,
  prepareDataDir,
  readServiceFile,
  writeServiceFile,
} from '../../src/embedded/data-dir.ts';
import { StartupError } from '../../src/config/startup-error.ts';
import { cleanUp, deadPid, startChild, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const service = {
  pid: process.pid,
  apiUrl: 'http://127.0.0.1:3000',
  databaseUrl: 'postgres://tributary:secret@127.0.0.1:5555/tributary',
  temporalAddress: '127.0.0.1:7233',
};

// @promise secrets-key-embedded
test('the secrets key is generated once and stored in a file that only its owner can read', async () => {
  const path = await temporaryFolder();
  const first = await prepareDataDir(path);
  await first.release();
  const second = await prepareDataDir(path);
  await second.release();
  expect(first.secretsKeys.map((key) => key.length)).toEqual([32]);
  expect(second.secretsKeys).toEqual(first.secretsKeys);
  expect((await stat(join(path, 'secrets-key'))).mode & 0o777).toBe(0o600);
});

test('the secrets key file may hold several keys, separated by commas as in SECRETS_KEY', async () => {
  const path = await temporaryFolder();
  const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  await writeFile(join(path, 'secrets-key'), `${keys.map((key) => key.toString('base64')).join(',')}\n`);
  const held = await prepareDataDir(path);
  await held.release();
  expect(held.secretsKeys).toEqual(keys);
});

test('a damaged secrets key is refused, and the data folder is released', async () => {
  const path = await temporaryFolder();
  await writeFile(join(path, 'secrets-key'), 'too short');
  await expect(prepareDataDir(path)).rejects.toThrow(
    /does not hold 32 bytes in base64, or several .*restore it/,
  );
  expect(await dataDirHolders(path)).toEqual([]);
});

test('a data folder that another service holds is refused in one sentence, until that service is killed', async () => {
  const path = await temporaryFolder();
  const other = await startChild(path, 'nothing');
  const refusal = prepareDataDir(path);
  await expect(refusal).rejects.toBeInstanceOf(StartupError);
  await expect(refusal).rejects.toThrow(`is in use by process ${other.child.pid}: stop that process first`);
  await other.kill();
  await (await prepareDataDir(path)).release();
});

test('exactly one of ten concurrent claims on a data folder succeeds after a crash', async () => {
  const path = await temporaryFolder();
  await writeFile(join(path, `lock.${deadPid()}.0123456789abcdef.x`), '');
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => prepareDataDir(path)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('a claim of an earlier process with the pid of a running one is removed and blocks no start', async () => {
  const path = await temporaryFolder();
  await writeFile(join(path, 'lock.1.0123456789abcdef.x'), '');
  const dataDir = await prepareDataDir(path);
  expect(await dataDirHolders(path)).toEqual([process.pid]);
  await dataDir.release();
  expect(await readdir(path)).toEqual(['secrets-key']);
});

test('the service file is found only while its service holds the data folder', async () => {
  const path = await temporaryFolder();
  const dataDir = await prepareDataDir(path);
  await writeServiceFile(path, service);
  expect(await readServiceFile(path)).toEqual(service);
  expect((await stat(join(path, 'service.json'))).mode & 0o777).toBe(0o600);
  const crashed = await readFile(join(path, 'service.json'), 'utf8');
  await dataDir.release();
  expect(await readServiceFile(path)).toBeUndefined();
  await writeFile(join(path, 'service.json'), crashed);
  expect(await readServiceFile(path)).toBeUndefined();
});
