import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';
import { createAccountKey, findAccountCaller } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import {
  createOperatorLink,
  findOperatorSession,
  spendOperatorLink,
} from '../../src/db/operator-sessions.ts';
import {
  createSignInLink,
  findSession,
  newToken,
  spendSignInLink,
  startSession,
} from '../../src/db/sessions.ts';
import { connect } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

const admin = async (...args: string[]) => await adminOn(database.url, ...args);

/** A service of this database, as the command line finds it. */
const SERVICE = { publicUrl: 'https://api.example.test', ownUrl: 'http://127.0.0.1:1', secretsKeys: [] };

async function adminOn(url: string, ...args: string[]) {
  let [out, err, opened, closed] = ['', '', 0, 0];
  const status = await runAdmin(args, {
    openDatabase: async () => {
      opened += 1;
      return { url, ownerUrl: url, close: async () => void (closed += 1) };
    },
    secretsKeys: noSecretsKeys,
    findService: async () => SERVICE,
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
  });
  expect(closed).toBe(opened);
  return { status, out, err, opened };
}

async function tables(url: string): Promise<string[]> {
  const sql = connect({ url, max: 1 });
  try {
    const rows = await sql<{ name: string }>`
      select tablename as name from pg_tables where schemaname = 'public' order by 1`;
    return rows.map((row) => row.name);
  } finally {
    await sql.close();
  }
}

async function runJson<T>(...args: string[]): Promise<T> {
  const { status, out, err } = await admin(...args, '--json');
  expect({ status, err }).toEqual({ status: 0, err: expect.any(String) });
  return JSON.parse(out) as T;
}

interface Key {
  id: string;
  key: string;
  permissions: string[];
}

const caller = (key: string, now = Date.now()) => findAccountCaller(database.sql, key, now);

describe('accounts and keys', () => {
  // @promise payout-not-by-default, key-permissions, accounts-and-keys
  test('accounts create and keys create make an account and a key with the permissions read and write', async () => {
    const account = await runJson<{ id: string; name: string }>('accounts', 'create', '--name', 'Ann & Co');
    expect(account).toEqual({ id: expect.stringMatching(/^acct_/), name: 'Ann & Co' });
    expect(await runJson('accounts', 'list')).toContainEqual(expect.objectContaining(account));
    const created = await runJson<Key>('keys', 'create', '--account', account.id);
    expect(created).toEqual({
      id: expect.any(String),
      key: expect.any(String),
      permissions: ['read', 'write'],
    });
    expect(await caller(created.key)).toMatchObject({
      accountId: account.id,
      permissions: ['read', 'write'],
    });
    const listed = await admin('keys', 'list', '--account', account.id);
    expect(listed.out).toContain(created.id);
    expect(listed.out).not.toContain(created.key);
  });

  // @promise app-limit
  test('accounts limit changes the number of apps that an account can have, and refuses unknown accounts', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'x');
    expect(await runJson('accounts', 'limit', id, '--apps', '7')).toEqual({ id, name: 'x', appLimit: 7 });
    expect(await runJson('accounts', 'list')).toContainEqual(expect.objectContaining({ id, appLimit: 7 }));
    for (const [account, count, status] of [
      [id, '0', 2],
      [id, '1.5', 2],
      ['acct_none', '7', 1],
    ] as const) {
      expect((await admin('accounts', 'limit', account, '--apps', count)).status).toBe(status);
    }
  });

  // @promise key-permissions, keys-revoke
  test('a key has the requested permissions until it is revoked', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'x');
    const made = await runJson<Key>('keys', 'create', '--account', id, '--permissions', 'payout, read');
    expect(made.permissions).toEqual(['read', 'payout']);
    await runJson('keys', 'revoke', made.id);
    expect(await caller(made.key)).toBeUndefined();
    expect((await admin('keys', 'rotate', made.id)).status).toBe(1);
  });

  // @promise account-key-grace, keys-rotate
  test('a rotated key works until its grace period ends', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'x');
    const old = await runJson<Key>('keys', 'create', '--account', id, '--permissions', 'setup');
    const next = await runJson<Key & { previousKeyExpiresAt: number }>(
      'keys',
      'rotate',
      old.id,
      '--grace-seconds',
      '60',
    );
    expect(next.permissions).toEqual(['setup']);
    expect(await caller(old.key, next.previousKeyExpiresAt - 1)).toBeDefined();
    expect(await caller(old.key, next.previousKeyExpiresAt)).toBeUndefined();
    expect(await caller(next.key, next.previousKeyExpiresAt)).toBeDefined();
  });

  // @promise account-key-grace
  test('the grace period of a rotated key is a day by default, and 0 ends the key at once', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'x');
    const first = await runJson<Key>('keys', 'create', '--account', id);
    const begin = Date.now();
    const second = await runJson<Key & { previousKeyExpiresAt: number }>('keys', 'rotate', first.id);
    expect(second.previousKeyExpiresAt - begin).toBeGreaterThanOrEqual(DAY_MS);
    expect(second.previousKeyExpiresAt - Date.now()).toBeLessThanOrEqual(DAY_MS);
    expect(await caller(first.key)).toBeDefined();
    const third = await runJson<Key>('keys', 'rotate', second.id, '--grace-seconds', '0');
    expect(await caller(second.key)).toBeUndefined();
    expect(await caller(third.key)).toBeDefined();
  });

  // @promise audit-command-line
  test('each change by the command line writes an audit row that says so, and a list writes none', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'Audited');
    const key = await runJson<Key>('keys', 'create', '--account', id, '--label', 'A program');
    await runJson('keys', 'list', '--account', id);
    const next = await runJson<Key>('keys', 'rotate', key.id);
    await runJson('keys', 'revoke', next.id);
    await runJson('keys', 'revoke', next.id);
    await runJson('console', '--account', id);
    const rows = await database.sql<{ actorKind: string; change: string; objectLabel: string | null }>`
      select actor_kind, action || ' ' || object_kind as change, object_label from audit_rows
       where account_id = ${id} order by changed_at, id`;
    expect(rows.map(({ change }) => change)).toEqual([
      'created account',
      'created account_key',
      expect.stringMatching(/^(created|replaced) account_key$/),
      expect.stringMatching(/^(created|replaced) account_key$/),
      'revoked account_key',
      expect.stringMatching(/^created (account_key|sign_in_link)$/),
      expect.stringMatching(/^created (account_key|sign_in_link)$/),
    ]);
    expect(new Set(rows.map(({ actorKind }) => actorKind))).toEqual(new Set(['command_line']));
    expect(rows[1]).toMatchObject({ objectLabel: 'A program' });
  });
});

describe('console', () => {
  const tokenOf = (text: string) =>
    /^https:\/\/api\.example\.test\/console\/#token=([\w-]{43})/.exec(text)?.[1] ?? '';
  const spend = async (text: string) =>
    await spendSignInLink(
      database.sql,
      tokenOf(text),
      { token: newToken(), userAgent: null, now: Date.now() },
      'New',
    );

  // @promise sign-in-link-command
  test('console prints a link of the account that it names, and creates one for a new name', async () => {
    const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'By id');
    const byId = await admin('console', '--account', id);
    expect(await spend(byId.out)).toMatchObject({ accountId: id, accountName: 'By id' });
    const byName = await admin('console', '--name', 'By id');
    expect(await spend(byName.out)).toMatchObject({ accountId: id });
    expect(await spend(byName.out)).toBeUndefined();
    const created = await admin('console', '--name', 'Created by name');
    expect(await spend(created.out)).toMatchObject({ accountName: 'Created by name' });
    const { status, err } = await admin('console');
    expect({ status, err }).toEqual({ status: 1, err: expect.stringContaining('--account') });
  });

  // @promise post-operator-session
  test('console --operator prints a link of the operator, and takes no account', async () => {
    const { out } = await admin('console', '--operator');
    const [, token = ''] =
      /^https:\/\/api\.example\.test\/console\/operator\/#token=([\w-]{43})\n$/.exec(out) ?? [];
    const spendOperator = async () =>
      await spendOperatorLink(database.sql, token, { token: newToken(), userAgent: null, now: Date.now() });
    expect(await spendOperator()).toMatchObject({ id: expect.stringMatching(/^ses_/) });
    expect(await spendOperator()).toBeUndefined();
    expect((await admin('console', '--operator', '--account', 'x')).status).toBe(2);
  });

  // @promise operator-session-expiry
  test('console --operator --end-sessions ends all sessions and links of the operator, and those that they began', async () => {
    const { sql } = database;
    const now = Date.now();
    const account = await createAccount(sql, 'Of another session');
    const session = () => ({ token: newToken(), userAgent: null, now });
    const [first, link] = [await createOperatorLink(sql, now), await createOperatorLink(sql, now)];
    const operator = session();
    await spendOperatorLink(sql, first, operator);
    const ofAccount = async () => await createSignInLink(sql, account.id, { now, validMs: 60_000 });
    const [founder, unspent] = [session(), await ofAccount()];
    await spendSignInLink(sql, await ofAccount(), founder);
    const { key } = await createAccountKey(sql, account.id, ['read']);
    const ofKey = session();
    await startSession(sql, key, ofKey);

    expect((await admin('console', '--end-sessions')).status).toBe(1);
    const { status, out } = await admin('console', '--operator', '--end-sessions');
    expect([status, out]).toEqual([
      0,
      expect.stringMatching(/^Ended [1-9]\d* sessions of the operator, and [1-9]\d* of/),
    ]);
    expect(await findOperatorSession(sql, operator.token, now)).toBeUndefined();
    expect(await spendOperatorLink(sql, link, session())).toBeUndefined();
    expect(await findSession(sql, founder.token, now)).toBeUndefined();
    expect(await spendSignInLink(sql, unspent, session())).toBeUndefined();
    // A session that began with a key is none of the operator.
    expect(await findSession(sql, ofKey.token, now)).toBeDefined();
    const again = await admin('console', '--operator', '--end-sessions', '--json');
    expect(JSON.parse(again.out)).toEqual({ ended: { operator: 0, accounts: 0 } });
  });

  // @promise first-link-creates-account
  test('console prints a link that creates the account of a new installation', async () => {
    const empty = await createTestDatabase();
    const { out } = await adminOn(empty.url, 'console');
    expect(out).toMatch(/&new=1\n$/);
    const session = { token: newToken(), userAgent: null, now: Date.now() };
    expect(await spendSignInLink(empty.sql, tokenOf(out), session)).toMatchObject({
      accountName: 'My company',
    });
    await empty.drop();
  });
});

describe('exit statuses', () => {
  // @promise exit-status-1
  test.each([
    ['keys', 'create', '--account', 'acct_01h455vb4pex5vsknk084sn02q'],
    ['keys', 'create', '--account', 'x'],
    ['keys', 'list', '--account', 'x'],
    ['keys', 'revoke', 'x'],
    ['keys', 'revoke', 'key_01h455vb4pex5vsknk084sn02q'],
    ['keys', 'rotate', 'key_01h455vb4pex5vsknk084sn02q'],
  ])('an unknown id ends with status 1 and a sentence: %s %s %s %s', async (...args) => {
    const { status, out, err } = await admin(...args.filter((arg) => arg !== undefined));
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toMatch(/^There is no .*\.\n$/);
  });

  // @promise exit-status-2
  test.each([
    [['accounts', 'create']],
    [['accounts', 'create', '--name', ' ']],
    [['accounts', 'drop']],
    [['keys', 'create', '--account', 'x', '--permissions', 'root']],
    [['keys', 'rotate', 'x', '--grace-seconds', '-1']],
    [['keys', 'create', '--acount', 'x']],
    [['nothing']],
  ])('wrong arguments end with status 2 without opening the database: %j', async (args) => {
    const { status, out, opened } = await admin(...args);
    expect({ status, out, opened }).toEqual({ status: 2, out: '', opened: 0 });
  });

  test.each([
    [['--help']],
    [['keys', '--help']],
    [['keys', 'create', '--help']],
    [['rollups', 'check', '--help']],
  ])('help ends with status 0: %j', async (args) => {
    const { status, out } = await admin(...args);
    expect(status).toBe(0);
    expect(out).toContain('Usage: tributary');
  });
});

test.each([[['accounts', 'list']], [['migrate']]])(
  'a database error names the host, the database and the cause, and no password: %j',
  async (given) => {
    // The port of no service.
    const refused = await adminOn('postgres://ann:hidden@127.0.0.1:1/shop', ...given);
    expect(refused).toMatchObject({
      status: 1,
      out: '',
      err: 'The database shop at 127.0.0.1:1 cannot be reached (ECONNREFUSED). Check that Postgres is running and that DATABASE_URL is correct.\n',
    });

    const server = new URL(process.env['TEST_POSTGRES_URL'] ?? '');
    const missing = await adminOn(inDatabase(server.href, 'no_such_database'), ...given);
    expect(missing).toMatchObject({
      status: 1,
      err: `There is no database no_such_database at ${server.host}. Create it, or correct DATABASE_URL.\n`,
    });

    const { host } = server;
    server.password = 'wrong';
    const denied = await adminOn(server.href, ...given);
    expect(denied).toMatchObject({
      status: 1,
      err: expect.stringMatching(
        new RegExp(
          `^The database \\w+ at ${host} refuses the user ${server.username} \\(.*\\)\\. Correct the`,
        ),
      ),
    });
  },
  30_000,
);

// @promise command-line-creates-nothing
test('only migrate and accounts create set up the schema of an empty database that DATABASE_URL names', async () => {
  const server = process.env['TEST_POSTGRES_URL'] ?? '';
  const name = `empty_${randomBytes(6).toString('hex')}`;
  await createDatabase(server, name);
  const url = inDatabase(server, name);
  try {
    for (const args of [
      ['accounts', 'list'],
      ['ledger', 'check'],
      ['rollups', 'check'],
    ]) {
      const { status, out, err } = await adminOn(url, ...args);
      expect({ status, out }).toEqual({ status: 1, out: '' });
      expect(err).toBe(
        `The database ${name} at ${new URL(url).host} has no Tributary schema. Set DATABASE_URL to the database of the service. To create a new installation in this database, run npm start, migrate or accounts create.\n`,
      );
    }
    expect(await tables(url)).toEqual([]);
    expect(await adminOn(url, 'accounts', 'create', '--name', 'x')).toMatchObject({ status: 0 });
    expect(await adminOn(url, 'accounts', 'list')).toMatchObject({ status: 0 });
  } finally {
    await runOn(server, `drop database "${name}" with (force)`);
  }
});

test('rollups check and repair find and fix a wrong sum, and migrate leaves an up-to-date schema unchanged', async () => {
  expect(await runJson('rollups', 'check')).toEqual({ equal: true, differences: [] });
  const { id } = await runJson<{ id: string }>('accounts', 'create', '--name', 'x');
  await database.sql`
    with app as (
      insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                        deferred_window_minutes, link_subdomain)
      values ('app_01h455vb4pex5vsknk084sn02q', ${id}, 'x', 0, 1, 0, 0, 'x') returning id)
    insert into rollups (app_id, scope, scope_id, bucket_at, clicks)
    select id, 'app', id, '-infinity', 2 from app`;
  const checked = await admin('rollups', 'check', '--json');
  expect(checked.status).toBe(1);
  expect(JSON.parse(checked.out)).toMatchObject({
    equal: false,
    differences: [{ scope: 'app', differs: ['clicks is 2 too high'] }],
  });
  expect(await runJson('rollups', 'repair')).toEqual({ repaired: 1 });
  expect((await admin('rollups', 'check')).status).toBe(0);
  expect(await runJson('migrate')).toEqual({ migrations: [] });
});

describe('exchange rates', () => {
  const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/rates/${name}`, import.meta.url));
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tributary-rates-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });
  const fileOf = async (...lines: string[]) => {
    const file = path.join(folder, 'rates.csv');
    await writeFile(file, lines.join('\n'));
    return file;
  };
  const stored = () =>
    database.sql`select currency, day, units::text, worth_usd::text as worth, source from exchange_rates order by 1, 2`;

  // @promise rates-imported
  test('rates import reads zipped and plain files, and a second import changes nothing', async () => {
    const imported = await runJson('rates', 'import', fixture('eurofxref.zip'));
    expect(imported).toEqual({ source: 'ecb', rates: 6, added: 6, changed: 0, kept: 0 });
    const before = await stored();
    expect(await runJson('rates', 'import', fixture('eurofxref.csv'))).toEqual({
      source: 'ecb',
      rates: 6,
      added: 0,
      changed: 0,
      kept: 0,
    });
    expect(await stored()).toEqual(before);
    expect(await runJson('rates', 'import', fixture('eurofxref-hist.csv'))).toMatchObject({
      rates: 18,
      added: 14,
    });
  });

  // @promise rates-imported
  test("a newer rate replaces an older one, except that the bank's never replaces the operator's", async () => {
    const own = await fileOf('date,currency,usd_rate', '2026-02-27,EUR,1.06', '2026-02-27,ARS,0.00068');
    expect(await runJson('rates', 'import', own)).toEqual({
      source: 'operator',
      rates: 2,
      added: 1,
      changed: 1,
      kept: 0,
    });
    const bank = await fileOf('Date,USD,JPY', '2026-02-27,1.0559,162.34');
    expect(await runJson('rates', 'import', bank)).toEqual({
      source: 'ecb',
      rates: 2,
      added: 0,
      changed: 1,
      kept: 1,
    });
    expect(await stored()).toEqual(
      expect.arrayContaining([
        { currency: 'ARS', day: '2026-02-27', units: '1', worth: '0.00068', source: 'operator' },
        { currency: 'EUR', day: '2026-02-27', units: '1', worth: '1.06', source: 'operator' },
        { currency: 'JPY', day: '2026-02-27', units: '162.34', worth: '1.0559', source: 'ecb' },
      ]),
    );
    const newer = await fileOf('date,currency,usd_rate', '2026-02-27,EUR,1.07');
    expect(await runJson('rates', 'import', newer)).toMatchObject({ changed: 1 });
  });

  test('rates import of a file with an invalid line imports nothing and ends with status 1, the line and the reason', async () => {
    const before = await stored();
    const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10);
    for (const [line, reason] of [
      ['2026-02-28,CLP,x', /rates\.csv: line 3: the rate of CLP must be a decimal/],
      [`${tomorrow},CLP,0.001`, /rates\.csv: line 3: \d{4}-\d\d-\d\d is in the future/],
    ] as const) {
      const file = await fileOf('date,currency,usd_rate', '2026-02-27,CLP,0.001', line);
      const { status, out, err, opened } = await admin('rates', 'import', file);
      expect({ status, out, opened }).toEqual({ status: 1, out: '', opened: 0 });
      expect(err).toMatch(reason);
    }
    expect(await stored()).toEqual(before);
  });

  test.each([
    ['a missing file', 'nothing.csv', /nothing\.csv can't be read \(ENOENT\)\.\n$/],
    ['a folder', '.', /can't be read \(EISDIR\)\.\n$/],
  ])('rates import of %s ends with status 1 and a sentence', async (_title, name, message) => {
    const { status, out, err } = await admin('rates', 'import', path.join(folder, name));
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toMatch(message);
  });

  test('rates import without a file ends with status 2', async () => {
    expect(await admin('rates', 'import')).toMatchObject({ status: 2, out: '', opened: 0 });
  });
});
