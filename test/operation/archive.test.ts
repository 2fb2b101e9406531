import { randomBytes } from 'node:crypto';
import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createGzip, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { runAdmin } from '../../src/cli/admin.ts';
import { writeNewFile } from '../../src/cli/write-file.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/embedded/database.ts';
import { createSecretsKeyStore } from '../../src/embedded/secrets-keys.ts';
import { exportArchive } from '../../src/db/archive.ts';
import { cleanUp, query, temporaryFolder } from '../embedded/helpers.ts';
import { startChildService } from '../support/child-service.ts';
import { TEMPLATE } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';
import { startTestService, TEST_SECRETS_KEY } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const SECRETS_KEY = TEST_SECRETS_KEY.toString('base64');
const databases: string[] = [];
let service: TestService;
let founder: Founder;
let folder: string;
let archive: string;

async function admin(env: Record<string, string>, ...args: string[]) {
  let [out, err] = ['', ''];
  const config = readConfig(env);
  const status = await runAdmin(args, {
    openDatabase: async (options) => await openDatabase(config, () => {}, options),
    findService: async () => null,
    secretsKeys: createSecretsKeyStore(config),
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
  });
  return { status, out, err };
}

const server = () => process.env['TEST_POSTGRES_URL'] ?? '';

async function newDatabase(template?: string): Promise<string> {
  const name = `moved_${randomBytes(6).toString('hex')}`;
  await createDatabase(server(), name, template);
  databases.push(name);
  return inDatabase(server(), name);
}

const linesOf = async (file: string) =>
  gunzipSync(await readFile(file))
    .toString('utf8')
    .split('\n');

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service);
  folder = await temporaryFolder();
  archive = path.join(folder, 'whole.archive');
  const [paid, refunded] = [await founder.customer(), await founder.customer()];
  await founder.purchase(paid, 10);
  await founder.purchase(refunded, 20, { transactionId: 'sale-2' });
  await founder.refund(refunded, 20, 'sale-2');
  // Text that a naive format would break, also at the line separators that JSON leaves as they are.
  const hostile = 'a\\b\n"c",(d) \u2028é\t\'€ NULL';
  await service.sql`update accounts set name = ${hostile} where id = ${founder.accountId}`;
  await founder.exportCsv();
  // Rows with generated columns.
  const app = `/apps/${founder.app.id}`;
  const policy = await founder.ok<{ id: string }>('POST', `${app}/policies`, { name: 'Standard' });
  const terms = { base: 'gross', rules: [{ percentBps: 1_000 }] };
  await founder.ok('POST', `${app}/policies/${policy.id}/versions`, terms);
  await founder.ok('PUT', `${app}/policy-assignment`, { policyId: policy.id });
  const { affiliateId } = await founder.newAffiliate();
  for (const state of ['blocked', 'lifted'])
    await founder.ok('POST', `${app}/affiliates/${affiliateId}/payout-blocks`, { state, reason: 'A test' });
  for (const reference of ['one', 'two', 'three'])
    await founder.ok('PUT', `${app}/affiliates/${affiliateId}/payee`, {
      method: 'other',
      recipient: { name: 'Ada', reference },
    });
  const exported = await admin(
    { DATABASE_URL: service.database.url, SECRETS_KEY },
    'export',
    archive,
    '--json',
  );
  if (exported.status !== 0) throw new Error(exported.err);
});
afterAll(async () => {
  await service.close();
  for (const name of databases) await runOn(server(), `drop database "${name}" with (force)`);
  await cleanUp();
});

// @promise move-database
test('an archive moves through a built-in database to an own one with every row, both ledgers consistent', async () => {
  const dataDir = path.join(folder, 'data');
  const imported = await admin({ DATA_DIR: dataDir }, 'import', archive, '--json');
  expect({ ...imported, out: JSON.parse(imported.out) as unknown }).toMatchObject({
    status: 0,
    out: { ok: true },
  });
  expect((await readFile(path.join(dataDir, 'secrets-key'), 'utf8')).split(',')[0]).toBe(SECRETS_KEY);

  const second = path.join(folder, 'second.archive');
  expect(await admin({ DATA_DIR: dataDir }, 'export', second)).toMatchObject({ status: 0 });
  expect((await stat(second)).mode & 0o777).toBe(0o600);
  const shown = await admin({}, 'import', second, '--show-secrets-key');
  expect(shown.out.startsWith(SECRETS_KEY)).toBe(true);

  // An archive that is refused does not change which key encrypts.
  const file = path.join(dataDir, 'secrets-key');
  const own32 = Buffer.alloc(32, 7).toString('base64');
  await writeFile(file, `${own32},${SECRETS_KEY}\n`);
  expect(await admin({ DATA_DIR: dataDir }, 'import', archive)).toMatchObject({ status: 1 });
  expect(await readFile(file, 'utf8')).toBe(`${own32},${SECRETS_KEY}\n`);
  await writeFile(file, `${SECRETS_KEY}\n`);

  // The commands for a restored copy of the folder work without a running service.
  expect(await admin({ DATA_DIR: dataDir }, 'payouts', 'stop')).toMatchObject({ status: 0 });

  const own = await newDatabase();
  const keys = shown.out.trim();
  const moved = await admin({ DATABASE_URL: own, SECRETS_KEY: keys }, 'import', second, '--json');
  expect({ status: moved.status, err: moved.err }).toEqual({
    status: 0,
    err: expect.stringMatching(/consistent[^]*Payouts are stopped[^]*payouts record[^]*payouts resume/),
  });
  const [first, last] = [await linesOf(archive), await linesOf(second)];
  const tablesOf = (header = '') =>
    (JSON.parse(header) as { tables: { name: string; rows: number }[] }).tables;
  expect(tablesOf(last[0])).toEqual(tablesOf(first[0]));
  expect(tablesOf(first[0]).filter((table) => table.rows > 0).length).toBeGreaterThan(15);
  expect(last.slice(1).toSorted()).toEqual(first.slice(1).toSorted());
  for (const args of [
    ['ledger', 'check'],
    ['rollups', 'check'],
  ]) {
    expect(await admin({ DATABASE_URL: own }, ...args)).toMatchObject({ status: 0 });
  }

  // The service works on the moved data: the key and the webhook secret of the founder are valid.
  const child = await startChildService(own, { SECRETS_KEY: keys });
  founder.url = child.url;
  const userId = await founder.customer();
  const sale = await founder.purchase(userId, 30);
  expect(sale).toMatchObject({ status: 200, body: { eventId: expect.stringMatching(/^evt_/) } });
  expect(await child.stop()).toBe(0);
  founder.url = service.url;
  expect(await admin({ DATABASE_URL: own }, 'ledger', 'check')).toMatchObject({ status: 0 });
  // The guards of the schema are on again.
  await expect(query(own, 'update commissions set base_cents = base_cents + 1')).rejects.toThrow();
  await expect(query(own, 'delete from payouts')).rejects.toThrow();
});

test('an import into a database with rows changes nothing and names the tables', async () => {
  const before = await query(service.database.url, 'select count(*)::int as n from commissions');
  const { status, err } = await admin({ DATABASE_URL: service.database.url, SECRETS_KEY }, 'import', archive);
  expect(status).toBe(1);
  expect(err).toMatch(/The database already has rows in .*accounts.*\. Import the archive into an empty/);
  expect(await query(service.database.url, 'select count(*)::int as n from commissions')).toEqual(before);
});

test.each([
  [
    'a cut file',
    (bytes: Buffer) => bytes.subarray(0, bytes.length - 20),
    /is incomplete\. Export it again\./,
  ],
  ['a text', () => Buffer.from('date,currency\n'), /is not an archive of Tributary\./],
  ['another zipped file', () => gzipSync('x\ny\n'), /is not an archive of Tributary\. Use a file/],
  [
    'a changed row',
    (bytes: Buffer) => gzipSync(gunzipSync(bytes).toString('utf8').replace('Test creator', 'Best creator')),
    /The rows of affiliates differ from the archive\./,
  ],
  [
    'a missing line',
    (bytes: Buffer) => gzipSync(gunzipSync(bytes).toString('utf8').split('\n').toSpliced(-3, 1).join('\n')),
    /The archive is damaged\. Export it again\./,
  ],
  [
    'an archive without its last line',
    (bytes: Buffer) => gzipSync(gunzipSync(bytes).toString('utf8').split('\n').toSpliced(-2, 1).join('\n')),
    /The archive is incomplete\. Export it again\./,
  ],
  [
    'an archive of another version',
    (bytes: Buffer) => gzipSync(gunzipSync(bytes).toString('utf8').replace('0004_rollups', '0004_other')),
    /have different schemas\. Export and import with the same version/,
  ],
])(
  'the import of %s ends with status 1, says why, and leaves the database empty',
  async (_, damage, message) => {
    const own = await newDatabase(TEMPLATE);
    const file = path.join(folder, `damaged-${randomBytes(4).toString('hex')}`);
    await writeFile(file, damage(await readFile(archive)));
    const { status, out, err } = await admin({ DATABASE_URL: own, SECRETS_KEY }, 'import', file);
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toContain(file);
    expect(err).toMatch(message);
    const [counted] = await query(
      own,
      'select (select count(*)::int from accounts) + (select count(*)::int from affiliates) as n',
    );
    expect(counted).toEqual({ n: 0 });
  },
);

test('an import without the key of the archive is refused before it writes, and says how to show the key', async () => {
  const own = await newDatabase();
  const other = Buffer.alloc(32, 1).toString('base64');
  const { status, err } = await admin({ DATABASE_URL: own, SECRETS_KEY: other }, 'import', archive);
  expect(status).toBe(1);
  expect(err).toMatch(/SECRETS_KEY does not have the keys of the archive.*--show-secrets-key/);
  expect(await query(own, 'select count(*)::int as n from accounts')).toEqual([{ n: 0 }]);
});

test('an export neither replaces a file nor leaves one behind when it fails', async () => {
  const env = { DATABASE_URL: service.database.url, SECRETS_KEY };
  const again = await admin(env, 'export', archive);
  expect(again).toMatchObject({ status: 1, err: expect.stringMatching(/already exists\. Choose another/) });
  const nowhere = await admin(env, 'export', path.join(folder, 'no', 'file'));
  expect(nowhere).toMatchObject({ status: 1, err: expect.stringMatching(/can't be written \(ENOENT\)/) });
  const missing = await admin(env, 'import', path.join(folder, 'missing'));
  expect(missing).toMatchObject({ status: 1, err: expect.stringMatching(/can't be read \(ENOENT\)/) });
  const before = await readdir(folder);
  const keyless = await admin({ DATABASE_URL: service.database.url }, 'export', path.join(folder, 'keyless'));
  expect(keyless).toMatchObject({ status: 1, err: expect.stringMatching(/SECRETS_KEY is required/) });
  expect(await readdir(folder)).toEqual(before);
});

// @promise whole-archive
test('an export that loses the database half-way leaves no file', async () => {
  const before = await readdir(folder);
  // The ledger checks do not read this table, and the archive has it.
  const holder = new pg.Client({ connectionString: service.database.url });
  await holder.connect();
  await holder.query('begin; lock table idempotency_keys');
  try {
    const env = { DATABASE_URL: service.database.url, SECRETS_KEY };
    const exporting = admin(env, 'export', path.join(folder, 'half'));
    await eventually('the export is reading', async () => {
      const ended = await service.sql`
        select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'tributary-archive' and wait_event_type = 'Lock' and datname = current_database()`;
      return ended.length > 0;
    });
    expect((await exporting).status).toBe(1);
  } finally {
    await holder.end();
  }
  expect(await readdir(folder)).toEqual(before);
});

// @promise whole-archive
test('an archive has its name only once it is complete, and of two exports to one name at the same time one is refused', async () => {
  const file = path.join(folder, 'slow');
  async function* lines() {
    yield 'first\n';
    expect(await readdir(folder)).not.toContain('slow');
    yield 'last\n';
  }
  async function* linesDuringAnother() {
    yield 'begun before\n';
    await writeNewFile(file, lines(), createGzip());
    yield 'ended after\n';
  }
  await expect(writeNewFile(file, linesDuringAnother(), createGzip())).rejects.toMatchObject({
    code: 'EEXIST',
  });
  expect(gunzipSync(await readFile(file)).toString()).toBe('first\nlast\n');
  expect((await readdir(folder)).filter((name) => name.startsWith('slow'))).toEqual(['slow']);
  await expect(writeNewFile(file, lines(), createGzip())).rejects.toMatchObject({ code: 'EEXIST' });
});

test('an export holds a bounded part of a large table in memory, and the import reads all of it', async () => {
  const own = await newDatabase(TEMPLATE);
  await query(
    own,
    // Without the triggers, which would write an audit row for each.
    `set session_replication_role = replica;
     insert into accounts (id, name)
     select 'acct_01h455vb4pex5vsknk0' || lpad(n::text, 7, '0'), repeat('x', 200) from generate_series(1, 12000) n`,
  );
  const chunks = [];
  for await (const chunk of exportArchive(own, [TEST_SECRETS_KEY], () => {})) chunks.push(chunk.length);
  expect(chunks).toHaveLength(5);
  expect(Math.max(...chunks)).toBeLessThan(2_000_000);

  const [big, target] = [path.join(folder, 'big.archive'), await newDatabase()];
  expect(await admin({ DATABASE_URL: own, SECRETS_KEY }, 'export', big)).toMatchObject({ status: 0 });
  expect(await admin({ DATABASE_URL: target, SECRETS_KEY }, 'import', big)).toMatchObject({ status: 0 });
  expect(await query(target, 'select count(*)::int as n from accounts')).toEqual([{ n: 12_000 }]);
});
