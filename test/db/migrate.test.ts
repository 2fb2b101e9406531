import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { projectRoot } from '../../src/config/project-root.ts';
import { migrate, MigrationBlocked } from '../../src/db/migrate.ts';
import { connect } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';

const MIGRATIONS = path.join(projectRoot, 'src/db/migrations');

let database: TestDatabase;
let dir: string;

beforeAll(async () => {
  database = await createTestDatabase();
  dir = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
  await cp(MIGRATIONS, dir, { recursive: true });
  await database.sql`insert into accounts (id, name) values ('acct_01h00000000000000000000000', 'Account')`;
});
afterAll(async () => {
  await database.drop();
  await rm(dir, { recursive: true });
});

/** Runs `work` while a transaction reads `accounts` and stays open for `ms`. */
async function whileRead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const reader = new pg.Client(database.url);
  await reader.connect();
  await reader.query('begin');
  await reader.query('select count(*) from accounts');
  const ended = sleep(ms).then(async () => await reader.query('commit'));
  try {
    return await work();
  } finally {
    await ended;
    await reader.end();
  }
}

test('while a migration waits for a long transaction, no read and no write waits for a second', async () => {
  const { sql } = database;
  await writeFile(path.join(dir, '9001_column.sql'), 'alter table accounts add column note text;');
  await writeFile(
    path.join(dir, '9002_check.sql'),
    'alter table accounts add constraint note_is_short check (length(note) < 100) not valid;',
  );
  await writeFile(
    path.join(dir, '9003_validate.sql'),
    'alter table accounts validate constraint note_is_short;',
  );
  await writeFile(
    path.join(dir, '9004_index.sql'),
    '-- without transaction\ncreate index concurrently accounts_by_note on accounts (note);',
  );
  const lines: string[] = [];
  const done = new AbortController();
  const ran = whileRead(
    2_500,
    async () => await migrate(database.url, (line) => lines.push(line), { dir, pauseMs: 200 }),
  );
  const migrated = ran.finally(() => {
    done.abort();
  });
  const waits: number[] = [];
  await sleep(50);
  while (!done.signal.aborted) {
    const begin = performance.now();
    await sql`select name from accounts`;
    const read = performance.now();
    await sql`update accounts set name = 'Renamed'`;
    waits.push(read - begin, performance.now() - read);
    await sleep(10);
  }
  expect(await migrated).toEqual(['9001_column', '9002_check', '9003_validate', '9004_index']);
  expect(Math.max(...waits)).toBeLessThan(1_000);
  expect(lines.filter((line) => line.includes('tried again')).length).toBeGreaterThan(1);
  expect(await sql`select indisvalid from pg_index where indexrelid = 'accounts_by_note'::regclass`).toEqual([
    { indisvalid: true },
  ]);
});

test('a migration that never gets its lock gives up, and those before it stay', async () => {
  await writeFile(path.join(dir, '9005_table.sql'), 'create table noted (id text primary key);');
  await writeFile(path.join(dir, '9006_column.sql'), 'alter table accounts add column other text;');
  await whileRead(900, async () => {
    const options = { dir, pauseMs: 50, giveUpAfterMs: 100 };
    await expect(migrate(database.url, () => {}, options)).rejects.toThrow(MigrationBlocked);
  });
  expect(await migrate(database.url, () => {}, { dir })).toEqual(['9006_column']);
});

test('an index whose build was interrupted is built anew by the next start', async () => {
  const own = await createTestDatabase();
  const isValid = async () =>
    await own.sql`select indisvalid as is_valid from pg_index where indexrelid = 'deliveries_latest_real'::regclass`;
  // An interrupted build leaves an invalid index, and its file is not recorded.
  await runOn(
    own.url,
    `update pg_index set indisvalid = false where indexrelid = 'deliveries_latest_real'::regclass;
     delete from migrations where name >= '0012_latest_real_delivery'`,
  );
  expect(await isValid()).toEqual([{ isValid: false }]);
  // Without the later files: the interrupted one was the last.
  const until = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
  await cp(MIGRATIONS, until, {
    recursive: true,
    filter: (source) => path.basename(source) < '0013' || source === MIGRATIONS,
  });
  expect(await migrate(own.url, () => {}, { dir: until })).toEqual(['0012_latest_real_delivery']);
  expect(await isValid()).toEqual([{ isValid: true }]);
  await rm(until, { recursive: true });
  await own.drop();
});

test('of the endpoints of an app beyond twenty, the newest active ones are deactivated, and those deactivated first are deleted', async () => {
  const server = process.env['TEST_POSTGRES_URL'] ?? '';
  await createDatabase(server, 'migrated_slots');
  const url = inDatabase(server, 'migrated_slots');
  const until = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
  await cp(MIGRATIONS, until, {
    recursive: true,
    filter: (source) => path.basename(source) < '0026' || source === MIGRATIONS,
  });
  await migrate(url, () => {}, { dir: until });
  await runOn(
    url,
    `insert into accounts (id, name) values ('acct_01h00000000000000000000000', 'Account');
     insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days, deferred_window_minutes, link_subdomain)
     select 'app_0' || lpad(n::text, 25, '0'), 'acct_01h00000000000000000000000', 'App', 2000, 30, 30, 0, 'app' || n from generate_series(1, 2) n;
     insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, created_at, deactivated_at,
                                    deactivated_reason)
     select 'whe_' || app || lpad(n::text, 25, '0'), 'app_0' || lpad(app::text, 25, '0'), 'https://example.com', '{payout.created}',
            'sec_0' || lpad(n::text, 25, '0'), 'x', 'none', now() - n * interval '1 day',
            case when n > 21 then now() - n * interval '1 hour' end, case when n > 21 then 'gone' end
       from generate_series(1, 2) app, generate_series(1, 45) n where case app when 1 then n < 26 else n < 3 or n > 21 end;
     insert into webhook_messages (id, app_id, endpoint_id, type, data)
     select 'msg' || substr(id, 4), app_id, id, 'webhook.test', '{}' from webhook_endpoints where deactivated_at is null`,
  );
  await migrate(url);
  const sql = connect({ url });
  try {
    expect(
      await sql`
        select app_id, count(*) filter (where deactivated_at is null)::int as active, count(distinct slot)::int as slots,
               string_agg(right(id, 2), ' ' order by id) filter (where deactivated_reason = 'deleted' and ciphertext = '') as deleted
          from webhook_endpoints group by 1 order by 1`,
    ).toEqual([
      { appId: expect.stringMatching(/1$/), active: 20, slots: 20, deleted: '01 22 23 24 25' },
      { appId: expect.stringMatching(/2$/), active: 2, slots: 20, deleted: '40 41 42 43 44 45' },
    ]);
    // The newest of the twenty-one active ones. Its message fails as with any deactivation.
    expect(
      await sql`
        select e.deactivated_reason, m.status from webhook_endpoints e left join webhook_messages m on m.endpoint_id = e.id
         where e.id like 'whe_1%0001'`,
    ).toEqual([{ deactivatedReason: 'deleted', status: 'failed' }]);
    expect(await sql`select count(*)::int as n from webhook_messages where status = 'failed'`).toEqual([
      { n: 1 },
    ]);
  } finally {
    await sql.close();
    await rm(until, { recursive: true });
    await runOn(server, 'drop database migrated_slots with (force)');
  }
});

test('every migration drops what an interrupted build left before it builds an index concurrently', async () => {
  const built: string[] = [];
  for (const name of await readdir(MIGRATIONS)) {
    const text = await readFile(path.join(MIGRATIONS, name), 'utf8');
    for (const { 1: index = '', index: at } of text.matchAll(
      /create (?:unique )?index concurrently (\w+)/g,
    )) {
      built.push(index);
      expect(text.slice(0, at)).toContain(`drop index concurrently if exists ${index};`);
    }
  }
  expect(built.length).toBeGreaterThan(3);
});

test('two processes that migrate an empty database at once do not block each other', async () => {
  const server = process.env['TEST_POSTGRES_URL'] ?? '';
  await createDatabase(server, 'migrated_twice');
  const url = inDatabase(server, 'migrated_twice');
  const ran = await Promise.all([migrate(url), migrate(url)]);
  expect(ran.flat()).toHaveLength((await readdir(MIGRATIONS)).length);
  expect(ran.map((names) => names.length).toSorted((a, b) => a - b)[0]).toBe(0);
  await runOn(server, 'drop database migrated_twice with (force)');
});
