import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { settingsProblem } from '../../src/db/connection-settings.ts';
import { listenTo, notify } from '../../src/db/notifications.ts';
import { faultOf } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import { freePort, isListening } from '../../src/embedded/processes.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runOn } from '../support/postgres-admin.ts';
import { textOf } from '../support/text-of.ts';

const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin`;
const isInstalled = spawnSync('pgbouncer', ['--version'], { env: { PATH } }).status === 0;

const TIMEOUT_MS = 4_000;
/** The settings of the page, which a pooler of this test has. */
const page = textOf('docs/deploy.md');
const ignored = /^ignore_startup_parameters = .+$/m.exec(page)?.[0] ?? '';
const onRole = [...page.matchAll(/^alter role tributary_service set .+;$/gm)].map(([line]) => line);

let database: TestDatabase;
let folder: string;
const running: ChildProcess[] = [];
const role = `pooled_${process.pid}`;

beforeAll(async () => {
  database = await createTestDatabase();
  await runOn(database.url, `create role ${role} login superuser password 'test'`);
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-pgbouncer-'));
  await chmod(folder, 0o755);
});
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
  const { url } = database;
  await database.drop();
  const server = new URL(url);
  server.pathname = '/postgres';
  await runOn(server.href, `drop role ${role}`);
});

/** Starts a pooler in front of the database with a line of settings, and returns its address when it listens. */
async function startPooler(setting = ignored): Promise<string> {
  for (;;) {
    const url = await tryToStartPooler(setting);
    if (url !== undefined) return url;
  }
}

/** Starts a pooler at a free port. Returns undefined if another program has taken the port meanwhile. */
async function tryToStartPooler(setting: string): Promise<string | undefined> {
  const [port, target] = [await freePort(), new URL(database.url)];
  const file = path.join(folder, `${port}.ini`);
  await writeFile(
    file,
    `[databases]
* = host=${target.hostname} port=${target.port} user=${role} password=test
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = session
${setting}
`,
  );
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const identity = isRoot ? { uid: 65_534 } : {};
  const child = spawn('pgbouncer', ['-q', file], { env: { PATH }, stdio: 'ignore', ...identity });
  running.push(child);
  await eventually(
    'the pooler listens or has ended',
    async () => child.exitCode !== null || (await isListening(port)),
  );
  if (child.exitCode !== null) return undefined;
  const url = new URL(database.url);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  url.username = role;
  url.password = 'test';
  return url.href;
}

const open = (url: string) => connect({ url, max: 2, statementTimeoutMs: TIMEOUT_MS });

// @promise environment-faults
test('a refusal of PgBouncer is a fault of the environment', async () => {
  if (!isInstalled) {
    process.stderr.write('SKIPPED: pgbouncer is not installed\n');
    return;
  }
  // Without the line of the page it refuses the settings of every connection.
  const pooled = connect({ url: await startPooler(''), max: 1, patienceMs: 0 });
  let refusal: unknown;
  await eventually('the pooler refuses', async () => {
    refusal = await pooled`select 1`.catch((error: unknown) => error);
    return inspect(refusal).includes('startup parameter');
  });
  expect(faultOf(refusal)).toMatchObject({ problem: expect.stringContaining('pooler') });
  await pooled.close();
});

// @promise settings-in-force
test('settings that PgBouncer drops are named, and with those of the page on the role all are in force', async () => {
  if (!isInstalled) {
    process.stderr.write('SKIPPED: pgbouncer is not installed\n');
    return;
  }
  const direct = open(database.url);
  expect(await settingsProblem(direct, TIMEOUT_MS)).toBeNull();
  await direct.close();

  const url = await startPooler();
  const pooled = open(url);
  await eventually(
    'the pooler answers',
    async () =>
      await pooled`select 1`.then(
        () => true,
        () => false,
      ),
  );
  expect(await settingsProblem(pooled, TIMEOUT_MS)).toMatch(
    /enable_seqscan is on instead of off.*statement_timeout is 0 instead of 4000\): a pooler drops them/,
  );
  await pooled.close();

  for (const line of onRole) await runOn(database.url, line.replace('tributary_service', role));
  const again = open(await startPooler());
  await eventually(
    'the pooler answers',
    async () =>
      await again`select 1`.then(
        () => true,
        () => false,
      ),
  );
  expect(await settingsProblem(again, TIMEOUT_MS)).toBeNull();
  // In session mode, what a connection relies on works: a longer limit for one statement, and notifications.
  expect(
    await again.forManyRows(9_000).one`select setting from pg_settings where name = 'statement_timeout'`,
  ).toEqual({
    setting: '9000',
  });
  const received: string[] = [];
  const listener = listenTo({ url, channel: 'tributary_results' }, (payload) => received.push(payload));
  await eventually('it listens', async () => listener.isListening());
  await notify(database.sql, 'tributary_results', 'hello');
  await eventually('the notification arrives', async () => received.includes('hello'));
  await listener.stop();
  await again.close();
});
