import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { projectRoot } from '../../src/config/project-root.ts';
import { migrate, MigrationBlocked, MigrationStopped } from '../../src/db/migrate.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { isPlaceholder } from '../../src/domain/user-ids.ts';
import { DatabaseSilent } from '../../src/db/watched-session.ts';
import { startProxy } from '../support/cuttable-proxy.ts';
import type { CuttableProxy } from '../support/cuttable-proxy.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, inDatabase, runOn } from '../support/postgres-admin.ts';
import { shortestTime } from '../support/shortest-time.ts';

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

/** Runs `work` while a transaction reads `accounts` and stays open, until it calls `endRead` or ends. */
async function whileRead<T>(work: (endRead: () => Promise<void>) => Promise<T>): Promise<T> {
  const reader = new pg.Client(database.url);
  await reader.connect();
  await reader.query('begin');
  await reader.query('select count(*) from accounts');
  try {
    return await work(async () => void (await reader.query('commit')));
  } finally {
    await reader.end();
  }
}

test('while a migration waits for a long transaction, no read and no write waits for a second', async () => {
  // Postgres refuses a statement that has waited for a lock for so long. Its clock does not see that this process was busy.
  const sql = connect({ url: database.url, max: 1, settings: { lock_timeout: 1_000 } });
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
  const triedAgain = () => lines.filter((line) => line.includes('tried again')).length;
  const ran = whileRead(async (endRead) => {
    const migrating = migrate(database.url, (line) => lines.push(line), { dir, pauseMs: 200 });
    await eventually('it has tried again several times', async () => await Promise.resolve(triedAgain() > 2));
    await endRead();
    return await migrating;
  });
  const migrated = ran.finally(() => {
    done.abort();
  });
  let statements = 0;
  while (!done.signal.aborted) {
    await sql`select name from accounts`;
    await sql`update accounts set name = 'Renamed'`;
    statements += 2;
    await sleep(10);
  }
  expect(await migrated).toEqual(['9001_column', '9002_check', '9003_validate', '9004_index']);
  expect(statements).toBeGreaterThan(4);
  expect(await sql`select indisvalid from pg_index where indexrelid = 'accounts_by_note'::regclass`).toEqual([
    { indisvalid: true },
  ]);
  await sql.close();
});

test('a migration that never gets its lock gives up, and those before it stay', async () => {
  await writeFile(path.join(dir, '9005_table.sql'), 'create table noted (id text primary key);');
  await writeFile(path.join(dir, '9006_column.sql'), 'alter table accounts add column other text;');
  await whileRead(async () => {
    const options = { dir, pauseMs: 50, giveUpAfterMs: 100 };
    await expect(migrate(database.url, () => {}, options)).rejects.toThrow(MigrationBlocked);
  });
  expect(await migrate(database.url, () => {}, { dir })).toEqual(['9006_column']);
});

test('a migration without a transaction may create functions, whose lines end with semicolons, too', async () => {
  await writeFile(
    path.join(dir, '9007_function.sql'),
    `-- without transaction
create function plus_one(n int) returns int language plpgsql as $$
begin
  n := n + 1;
  return n;
end $$;
create table counted (n int default plus_one(1));`,
  );
  expect(await migrate(database.url, () => {}, { dir })).toEqual(['9007_function']);
  const sql = connect({ url: database.url, max: 1 });
  expect(await sql`insert into counted default values returning n`).toEqual([{ n: 2 }]);
  await sql.close();
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

/**
 * Makes a database of the version before the file `until`, with the rows of that version, and migrates it. Calls `work` with the result,
 * and drops it.
 */
async function upgraded(
  name: string,
  { until, rows }: { readonly until: string; readonly rows: string },
  work: (sql: Sql) => Promise<void>,
): Promise<void> {
  const server = process.env['TEST_POSTGRES_URL'] ?? '';
  await createDatabase(server, name);
  const url = inDatabase(server, name);
  const former = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
  await cp(MIGRATIONS, former, {
    recursive: true,
    filter: (source) => path.basename(source) < until || source === MIGRATIONS,
  });
  await migrate(url, () => {}, { dir: former });
  await runOn(url, rows);
  await migrate(url);
  const sql = connect({ url });
  try {
    await work(sql);
  } finally {
    await sql.close();
    await rm(former, { recursive: true });
    await runOn(server, `drop database ${name} with (force)`);
  }
}

test('of the endpoints of an app beyond twenty, the newest active ones are deactivated, and those deactivated first are deleted', async () => {
  const rows = `insert into accounts (id, name) values ('acct_01h00000000000000000000000', 'Account');
     insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days, deferred_window_minutes, link_subdomain)
     select 'app_0' || lpad(n::text, 25, '0'), 'acct_01h00000000000000000000000', 'App', 2000, 30, 30, 0, 'app' || n from generate_series(1, 2) n;
     insert into webhook_endpoints (id, app_id, url, event_types, secret_id, ciphertext, encryption_key_id, created_at, deactivated_at,
                                    deactivated_reason)
     select 'whe_' || app || lpad(n::text, 25, '0'), 'app_0' || lpad(app::text, 25, '0'), 'https://example.com', '{payout.created}',
            'sec_0' || lpad(n::text, 25, '0'), 'x', 'none', now() - n * interval '1 day',
            case when n > 21 then now() - n * interval '1 hour' end, case when n > 21 then 'gone' end
       from generate_series(1, 2) app, generate_series(1, 45) n where case app when 1 then n < 26 else n < 3 or n > 21 end;
     insert into webhook_messages (id, app_id, endpoint_id, type, data)
     select 'msg' || substr(id, 4), app_id, id, 'webhook.test', '{}' from webhook_endpoints where deactivated_at is null`;
  await upgraded('migrated_slots', { until: '0026', rows }, async (sql) => {
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
  });
});

test('an upgrade marks a part that was attributed beside an invoice that was not, and no other payment', async () => {
  const appId = 'app_01h00000000000000000000000';
  // Rows as an earlier version left them, without what they reference. The number is that of the payment.
  const rows = `set session_replication_role = replica;
     insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at, only_anonymous_user,
                           evaluated_at, binding_id)
     select 'pmt_' || lpad(ref, 26, '0'), '${appId}', 'production', 'stripe', ref, 'evt_' || lpad(ref, 26, '0'), 'USD', amount, now(), false,
            now(), case when attributed then 'bnd_' || lpad(ref, 26, '0') end
       from (values ('p1', 4000, true), ('p2', 6000, false), ('n1', 10000, false),
                    ('p3', 4000, false), ('n2', 10000, true),
                    ('p4', 5000, true), ('n3', 5000, false),
                    ('p5', 5000, true), ('n4', 9000, true)) r (ref, amount, attributed);
     insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
     select '${appId}', 'production', 'stripe', alias, payment
       from (values ('p1', 'n1'), ('p2', 'n1'), ('p3', 'n2'), ('p4', 'n3'), ('c5', 'p5'), ('c4', 'n4')) a (alias, payment)`;
  await upgraded('migrated_parts', { until: '0038', rows }, async (sql) => {
    const marked = await sql<{ ref: string; version: number }>`
      select ref, version from payments where recheck_since is not null order by ref`;
    expect(marked).toEqual(['n1', 'p1', 'p2'].map((ref) => ({ ref, version: 1 })));
    expect(await sql`select from payments where version > 0`).toHaveLength(3);
  });
});

test('an upgrade notes the apps that have ever assigned a policy to a creator or a group, and no other', async () => {
  // Rows of the former version, without what they reference. `ended` has taken its creator's policy away again.
  const rows = `set session_replication_role = replica;
     create function an_id(prefix text, name text) returns text language sql as $$ select prefix || '_0' || lpad(translate(name, 'iou', ''), 25, '0') $$;
     insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days, deferred_window_minutes, link_subdomain)
     select an_id('app', name), an_id('acct', 'a'), name, 2000, 30, 30, 60, name from unnest('{none,app,creator,group,ended}'::text[]) name;
     insert into policy_assignments (app_id, affiliate_id, group_id, position, policy_id, effective_from)
     select an_id('app', name), case when name in ('creator', 'ended') then an_id('aff', name) end,
            case when name = 'group' then an_id('grp', name) end, 1, case when name <> 'ended' then an_id('pol', 'a') end, now()
       from unnest('{app,creator,group,ended}'::text[]) name;
     drop function an_id`;
  await upgraded('migrated_policies', { until: '0148', rows }, async (sql) => {
    expect(await sql`select name from apps where assigns_policies_to_creators order by name`).toEqual(
      ['creator', 'ended', 'group'].map((name) => ({ name })),
    );
  });
});

test('an upgrade deletes the links to placeholders that an earlier version stored, and no other; the database knows who is nobody', async () => {
  const users =
    'undefined,Null,none,GUEST,anonymous,N/A,no_user,0,000,-1,{},<nil>,[object Object],"null",not logged in, ,${user_id},ann,guest-7,user-0,nullable,00a,Ann Null'.split(
      ',',
    );
  const rows = `set session_replication_role = replica;
     insert into user_links (app_id, environment, source, user_key, customer_user_id)
     select 'app_01h00000000000000000000000', 'production', 'stripe', 'sub_' || n, name
       from unnest(array[${users.map((user) => `'${user}'`).join(', ')}]) with ordinality u (name, n)`;
  await upgraded('migrated_links', { until: '0160', rows }, async (sql) => {
    const left = await sql<{ user: string }>`select customer_user_id as user from user_links`;
    expect(new Set(left.map(({ user }) => user))).toEqual(
      new Set(users.filter((user) => !isPlaceholder(user))),
    );
    expect(left).toHaveLength(6);
    // The functions of the database know the same list.
    const somebody = await sql<{ user: string }>`
      select u as user from unnest(${users}::text[]) u where is_somebody(u)`;
    expect(somebody.map(({ user }) => user)).toEqual(users.filter((user) => !isPlaceholder(user)));
  });
});

test('an upgrade counts the receivers of a transfer from a placeholder alone, unless their payments are numbered', async () => {
  const rows = `set session_replication_role = replica;
     create function an_id(prefix text, name text) returns text language sql as $$ select prefix || '_0' || lpad(translate(name, 'ilou', ''), 25, '0') $$;
     insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, counts_with)
     select an_id('bnd', name), an_id('app', 'a'), name, an_id('att', name), now(), an_id('bnd', giver)
       from (values ('guest', null), ('ann', 'guest'), ('bob', 'cat'), ('cat', null), ('null', null), ('dan', 'null')) v (name, giver);
     insert into payment_numbers (payment_id, app_id, subject_id, number, first_paid_at)
     select an_id('pmt', 'a'), an_id('app', 'a'), an_id('bnd', 'null'), 1, now();
     drop function an_id`;
  await upgraded('migrated_receivers', { until: '0165', rows }, async (sql) => {
    const found = await sql<{ name: string; giver: string | null }>`
      select b.customer_user_id as name, g.customer_user_id as giver
        from bindings b left join bindings g on g.id = b.counts_with order by name`;
    expect(Object.fromEntries(found.map(({ name, giver }) => [name, giver]))).toEqual({
      ann: null,
      bob: 'cat',
      cat: null,
      dan: 'null',
      guest: null,
      null: null,
    });
    await expect(sql`update bindings set counts_with = null where customer_user_id = 'bob'`).rejects.toThrow(
      'the binding of a user cannot be changed',
    );
  });
});

test('an upgrade keeps the kind of an erased customer in what stands for it, unless somebody has bound it', async () => {
  const pseudonym = (name: string) => `erased:${name.padEnd(22, '_')}`;
  // The key of each payment with its place; `bound` is a customer that a code had bound.
  const rows = `set session_replication_role = replica;
     create function an_id(prefix text, name text) returns text language sql as $$ select prefix || '_0' || lpad(translate(name, 'ilou', ''), 25, '0') $$;
     insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
     select an_id('app', 'a'), sha256(name::bytea), an_id('ers', 'a'), case when name = 'person' then 'user' else 'key' end, 'erased:' || rpad(name, 22, '_')
       from unnest('{subscription,customer,once,bound,trial,store,person}'::text[]) name;
     insert into payment_user_keys (app_id, source, user_key, payment_id, environment, position)
     select an_id('app', 'a'), source, case when key = 'sub_of_another' then key else 'erased:' || rpad(key, 22, '_') end, an_id('pmt', payment), 'production', position
       from (values ('a', 'stripe', 'subscription', 0), ('a', 'stripe', 'customer', 1), ('b', 'stripe', 'sub_of_another', 0), ('b', 'stripe', 'customer', 1),
                    ('c', 'stripe', 'once', 0), ('d', 'stripe', 'bound', 0), ('e', 'revenuecat', 'store', 0)) v (payment, source, key, position);
     insert into user_links (app_id, environment, source, user_key, customer_user_id)
     select an_id('app', 'a'), 'production', 'stripe', 'erased:' || rpad(key, 22, '_'), 'erased:' || rpad('person', 22, '_')
       from unnest('{subscription,customer,trial}'::text[]) key;
     insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, key_source)
     select an_id('bnd', 'a'), an_id('app', 'a'), 'erased:' || rpad('bound', 22, '_'), an_id('att', 'a'), now(), 'stripe';
     drop function an_id`;
  await upgraded('migrated_customers', { until: '0166', rows }, async (sql) => {
    const customer = (name: string) => `erased:customer:${name.padEnd(22, '_')}`;
    const texts = async (reading: Promise<readonly { text: string }[]>) =>
      [...new Set((await reading).map(({ text }) => text))].toSorted();
    const others = ['bound', 'store', 'subscription'].map(pseudonym);
    const customers = ['customer', 'once'].map(customer);
    expect(await texts(sql<{ text: string }>`select pseudonym as text from erased_identifiers`)).toEqual(
      [...others, ...['person', 'trial'].map(pseudonym), ...customers].toSorted(),
    );
    expect(await texts(sql<{ text: string }>`select user_key as text from payment_user_keys`)).toEqual(
      [...others, ...customers, 'sub_of_another'].toSorted(),
    );
    expect(await texts(sql<{ text: string }>`select user_key as text from user_links`)).toEqual(
      [customer('customer'), pseudonym('subscription'), pseudonym('trial')].toSorted(),
    );
  });
});

test('a new database has one line in the log, the rest of an interrupted start a line per file, and a file that fails is named', async () => {
  const server = process.env['TEST_POSTGRES_URL'] ?? '';
  await createDatabase(server, 'migrated_lines');
  const url = inDatabase(server, 'migrated_lines');
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
  const lines: string[] = [];
  const run = async () => await migrate(url, (line) => lines.push(line), { dir: folder });
  try {
    await writeFile(path.join(folder, '0001_fails.sql'), 'select 1 / 0');
    await expect(run()).rejects.toThrow('division by zero');
    expect(lines.splice(0)).toEqual([expect.stringContaining('0001_fails')]);
    await runOn(url, 'drop table migrations');
    await writeFile(path.join(folder, '0001_fails.sql'), 'select 1');
    await writeFile(path.join(folder, '0002_works.sql'), 'select 2');
    await run();
    expect(lines.splice(0)).toEqual(['applied all 2 migrations to a new database']);
    await writeFile(path.join(folder, '0003_new.sql'), 'select 3');
    await run();
    expect(lines).toEqual([expect.stringContaining('0003_new')]);
  } finally {
    await rm(folder, { recursive: true });
    await runOn(server, 'drop database migrated_lines with (force)');
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

describe('migrations on a database that is not well', () => {
  const LOCK = 7_241_865_325_823_964n;
  let own: TestDatabase;
  let proxy: CuttableProxy;

  beforeAll(async () => {
    own = await createTestDatabase();
    proxy = await startProxy(own.url);
  });
  afterAll(async () => {
    await proxy.close();
    await own.drop();
  });

  // @promise bounded-migrations
  test('a database that accepts connections and answers nothing ends the migrations with a sentence', async () => {
    proxy.silence();
    const ran = migrate(proxy.url, () => {}, { answerMs: 100 });
    await expect(ran).rejects.toThrow(/answered nothing for 0.1 s: look whether/);
    proxy.restore();
  });

  // @promise bounded-migrations
  test('the signal of a stop ends migrations that wait for a silent database, at once', async () => {
    proxy.silence();
    const took = await shortestTime(2_000, async () => {
      const stopping = new AbortController();
      const ran = migrate(proxy.url, () => {}, { signal: stopping.signal });
      stopping.abort();
      await expect(ran).rejects.toThrow(MigrationStopped);
    });
    expect(took).toBeLessThan(2_000);
    proxy.restore();
  });

  // @promise bounded-migrations
  test('a session that holds the lock of the migrations is named in the log, and gives way after the time limit, unless none is missing', async () => {
    const pending = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
    await cp(MIGRATIONS, pending, { recursive: true });
    await writeFile(path.join(pending, '9001_pending.sql'), 'select 1;');
    const holder = new pg.Client({ connectionString: own.url, application_name: 'lost process' });
    await holder.connect();
    const { rows } = await holder.query(`select pg_backend_pid() as pid from pg_advisory_lock(${LOCK})`);
    const pid = Number(rows[0].pid);
    let lines: string[] = [];
    const run = async () => {
      lines = [];
      const ran = migrate(own.url, (line) => lines.push(line), {
        dir: pending,
        progressMs: 20,
        giveUpAfterMs: 200,
      });
      await expect(ran).rejects.toThrow(
        new RegExp(
          `^pid ${pid} \\(lost process.*, idle, since .* UTC\\) has held .* pg_terminate_backend\\(${pid}\\)`,
        ),
      );
    };
    await run();
    // The first answer was late: the machine was busy.
    if (lines[0]?.includes(' for 0 s: ') !== true) await run();
    expect(lines[0]).toMatch(
      new RegExp(`^waiting for the migrations of another process for 0 s: pid ${pid} \\(lost process`),
    );
    const stopping = new AbortController();
    const stopped = migrate(own.url, () => stopping.abort(), { dir: pending, signal: stopping.signal });
    await expect(stopped).rejects.toThrow(MigrationStopped);
    // A process that starts again beside the migration of a newer version has all that it needs.
    expect(await migrate(own.url)).toEqual([]);
    await holder.end();
    await rm(pending, { recursive: true });
  });

  // @promise bounded-migrations
  test('a stop cancels the statement of a migration, and a server that falls silent meanwhile ends it', async () => {
    const slow = await mkdtemp(path.join(tmpdir(), 'tributary-migrations-'));
    await cp(MIGRATIONS, slow, { recursive: true });
    await writeFile(path.join(slow, '9001_slow.sql'), 'select pg_sleep(600);');
    const isRunning = async () =>
      (
        await own.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
      ).length > 0;
    const stopping = new AbortController();
    const lines: string[] = [];
    const stopped = migrate(own.url, (line) => lines.push(line), {
      dir: slow,
      progressMs: 50,
      signal: stopping.signal,
    });
    stopped.catch(() => {});
    await eventually('a progress line', async () => lines.some((line) => line.startsWith('migrating for ')));
    await eventually('the migration runs', isRunning);
    stopping.abort();
    await expect(stopped).rejects.toThrow(MigrationStopped);
    await eventually('the statement is cancelled', async () => !(await isRunning()));

    let silenced: Promise<unknown> | undefined;
    const start = () => {
      const run = migrate(proxy.url, () => {}, { dir: slow, progressMs: 50, answerMs: 500 });
      // On a busy machine an answer may be late before the silence begins.
      run.catch(() => (silenced = undefined));
      return run;
    };
    await eventually('the migration runs', async () => {
      silenced ??= start();
      return await isRunning();
    });
    silenced ??= start();
    proxy.silence();
    await expect(silenced).rejects.toThrow(DatabaseSilent);
    proxy.restore();
    await rm(slow, { recursive: true });
  });
});
