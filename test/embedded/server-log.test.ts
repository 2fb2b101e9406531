import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { cutLog, keepLogSmall, LOG_LIMIT_BYTES } from '../../src/embedded/server-log.ts';
import { startLocalTemporal } from '../../temporal/local-server/server.ts';
import { eventually } from '../support/eventually.ts';
import { cleanUp, temporaryFolder } from './helpers.ts';

afterAll(cleanUp);

const CUT = /^\[\S+Z The first (\d+\.\d) MB of this file were cut: it has at most 10\.0 MB\.\]$/;

/** Writes a log of 100 MB whose last 6 MB are numbered lines, the last of which is `last`. */
async function writeLog(path: string): Promise<{ last: string }> {
  const lines = Array.from({ length: 60_000 }, (_, n) => `line ${n} `.padEnd(99, '.'));
  const text = `${lines.join('\n')}\n`;
  const file = await open(path, 'wx', 0o600);
  await file.write(text, 100_000_000 - text.length);
  await file.close();
  return { last: lines.at(-1) ?? '' };
}

/** Checks that a log of 100 MB was cut, and that its end is still there. */
async function expectCut(path: string, { last }: { last: string }): Promise<void> {
  const text = await readFile(path, 'utf8');
  const [first = '', second = ''] = text.split('\n');
  expect(text.length).toBeLessThanOrEqual(LOG_LIMIT_BYTES);
  expect(Number(CUT.exec(first)?.[1])).toBeCloseTo(95, 0);
  expect(second).toMatch(/^line \d+ \.+$/);
  expect(text).toContain(`\n${last}\n`);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
}

// @promise bounded-server-logs
test('a start of the embedded Postgres beside a log of 100 MB keeps the end of the log, also when the server runs already', async () => {
  const dataDir = await temporaryFolder();
  const path = join(dataDir, 'postgres.log');
  const written = await writeLog(path);
  const server = await startEmbeddedPostgres({ dataDir, durable: false });
  await expectCut(path, written);
  expect(await readFile(path, 'utf8')).toContain('database system is ready to accept connections');

  await truncate(path, LOG_LIMIT_BYTES * 10);
  const heir = await startEmbeddedPostgres({ dataDir, durable: false });
  await heir.stop();
  await server.stop();
  expect((await stat(path)).size).toBeLessThanOrEqual(LOG_LIMIT_BYTES);
  expect(await readFile(path, 'utf8')).toMatch(/database system is shut down\n$/);
});

// @promise bounded-server-logs
test('a start of the local Temporal server beside a log of 100 MB keeps the end of the log', async () => {
  const dataDir = await temporaryFolder();
  const path = join(dataDir, 'temporal.log');
  const written = await writeLog(path);
  const server = await startLocalTemporal({ dataDir, onProgress: () => undefined });
  await server.stop();
  await expectCut(path, written);
});

// @promise bounded-server-logs
test('the log of a running server is cut, and what the server writes next is at its end', async () => {
  const path = join(await temporaryFolder(), 'server.log');
  const log = await open(path, 'a', 0o600);
  const server = spawn('/bin/sh', ['-c', 'seq 1 2000000; echo ready; read -r _; echo last'], {
    stdio: ['pipe', log.fd, log.fd],
  });
  await log.close();
  await eventually('it has written a large log', async () =>
    (await readFile(path, 'utf8')).endsWith('ready\n'),
  );
  expect((await stat(path)).size).toBeGreaterThan(LOG_LIMIT_BYTES);
  const stop = keepLogSmall(path, 10);
  await eventually('the log is cut', async () => (await stat(path)).size <= LOG_LIMIT_BYTES);
  await eventually('it is written again', async () => (await readFile(path, 'utf8')).endsWith('ready\n'));
  server.stdin?.end('\n');
  await once(server, 'exit');
  stop();
  const [first = '', ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n');
  expect(first).toMatch(CUT);
  const numbers = lines.slice(0, -2).map(Number);
  expect(numbers.length).toBeGreaterThan(500_000);
  expect(numbers.at(0)).toBe(2_000_000 - numbers.length + 1);
  expect(numbers.at(-1)).toBe(2_000_000);
  expect(lines.slice(-2)).toEqual(['ready', 'last']);
});

test('a log within the limit stays as it is, and a missing one is not created', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'small.log'), 'x'.repeat(LOG_LIMIT_BYTES));
  await cutLog(join(folder, 'small.log'));
  expect((await stat(join(folder, 'small.log'))).size).toBe(LOG_LIMIT_BYTES);
  await cutLog(join(folder, 'missing.log'));
  await expect(stat(join(folder, 'missing.log'))).rejects.toThrow('ENOENT');
});
