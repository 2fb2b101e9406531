import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { runAdmin } from '../../src/cli/admin.ts';
import { connectionProblem } from '../../src/db/connection-problem.ts';
import { NoResponse } from '../../src/db/connection.ts';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { DatabaseSilent, WatchedSession } from '../../src/db/watched-session.ts';
import { exportArchive, importArchive, openArchive } from '../../src/db/archive.ts';
import { createSecretsKeyStore } from '../../src/embedded/secrets-keys.ts';
import { readConfig } from '../../src/config/config.ts';
import { cleanUp, temporaryFolder } from '../embedded/helpers.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { TEST_SECRETS_KEY } from '../support/service.ts';

// A Postgres that is frozen, or a network that drops packets: every connection stays open and silent.

let database: TestDatabase;
let proxy: CuttableProxy;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startProxy(database.url);
  folder = await temporaryFolder();
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await proxy.close();
  await database.drop();
  await cleanUp();
});

/** Runs a command on the database behind the proxy. `err` is what it has said so far. */
function start(...args: string[]) {
  const said = { out: '', err: '' };
  const config = readConfig({ DATABASE_URL: proxy.url, SECRETS_KEY: TEST_SECRETS_KEY.toString('base64') });
  const status = runAdmin(args, {
    openDatabase: async () => ({ url: proxy.url, ownerUrl: proxy.url, close: async () => {} }),
    findService: async () => null,
    secretsKeys: createSecretsKeyStore(config),
    stdout: (text) => void (said.out += text),
    stderr: (text) => void (said.err += text),
    archiveLimits: { answerMs: 1_500, progressMs: 100 },
  });
  return { said, status };
}

/** Returns an archive of a database, which is read completely. */
async function archiveOf(url: string) {
  const chunks: Buffer[] = [];
  for await (const chunk of exportArchive(url, [TEST_SECRETS_KEY], () => {})) chunks.push(Buffer.from(chunk));
  return await openArchive(Readable.from(chunks));
}

/** Runs `work` while a transaction has a lock on a table that the checks of the ledger do not read. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const holder = new pg.Client({ connectionString: database.url, application_name: 'holder' });
  await holder.connect();
  await holder.query('begin; lock table idempotency_keys');
  try {
    await work();
  } finally {
    await holder.end();
  }
}

// @promise bounded-archives
test('an export from a database that accepts connections and answers nothing ends with a sentence', async () => {
  proxy.silence();
  const lines = exportArchive(proxy.url, [TEST_SECRETS_KEY], () => {}, { answerMs: 100 });
  await expect(lines.next()).rejects.toThrow(/^Postgres has answered nothing for 0.1 s: look whether/);
});

// @promise bounded-archives
test('an import into a database that accepts connections and answers nothing ends with a sentence', async () => {
  const archive = await archiveOf(database.url);
  proxy.silence();
  const ran = importArchive(proxy.url, archive, { answerMs: 100 });
  await expect(ran).rejects.toThrow(/^Postgres has answered nothing for 0.1 s: look whether/);
});

// @promise bounded-archives
test.each([
  ['export', /^Postgres has answered nothing for 1.5 s: .* Then export again: .* was not written\.$/m],
  [
    'import',
    /^Postgres has answered nothing for 1.5 s: .* Then import again: nothing or everything was written/m,
  ],
])(
  '%s names the session whose lock it waits for, and ends with what to do when Postgres falls silent',
  async (command, advice) => {
    const archive = path.join(folder, 'whole.archive');
    if (command === 'import') {
      const written = start('export', archive);
      expect({ status: await written.status, ...written.said }).toMatchObject({ status: 0 });
    }
    const before = await readdir(folder);
    const file = command === 'import' ? archive : path.join(folder, randomBytes(4).toString('hex'));
    await whileLocked(async () => {
      const { status, said } = start(command, file);
      await eventually('it says what it waits for', async () =>
        new RegExp(`The ${command} has run for \\d+ s and waits for pid \\d+ \\(holder `).test(said.err),
      );
      proxy.silence();
      expect(await status).toBe(1);
      expect(said.err).toMatch(advice);
    });
    expect(await readdir(folder)).toEqual(before);
  },
);

test('Postgres ends the session of an archive within a minute when the machine of the command has vanished', async () => {
  const session = new WatchedSession(database.url, { name: 'archive', task: 'the test' });
  await session.open();
  const settings = [
    'tcp_keepalives_idle',
    'tcp_keepalives_interval',
    'tcp_keepalives_count',
    'tcp_user_timeout',
    'client_connection_check_interval',
  ];
  const { rows } = await session.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any($1)',
    [settings],
  );
  const found = Object.fromEntries(rows.map(({ name, setting }) => [name, Number(setting)]));
  expect(found).toEqual({
    tcp_keepalives_idle: 20,
    tcp_keepalives_interval: 10,
    tcp_keepalives_count: 3,
    tcp_user_timeout: 60_000,
    client_connection_check_interval: 10_000,
  });
  await session.close();
});

test('a command on a database that does not answer says what to look at', () => {
  const silent = new DatabaseUnavailable('the database did not respond in 1 attempt', {
    cause: new NoResponse('no connection became free in time'),
  });
  expect(connectionProblem('postgres://user:secret@db:5432/tributary', silent)).toBe(
    'The database tributary at db:5432 does not answer. Look whether Postgres is frozen, overloaded, or behind a firewall that drops packets, then run the command again.',
  );
  expect(connectionProblem('postgres://user@db/tributary', new DatabaseSilent('silent'))).toBeNull();
});
