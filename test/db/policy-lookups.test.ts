import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { TestDatabase } from '../support/database.ts';
import { createTestDatabase } from '../support/database.ts';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client(database.url);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

test('a payment is evaluated by the policy version that the terms of its creator show, at every instant', async () => {
  // Facts in any order, also with policies without a version and with the end of an assignment or of a membership.
  await client.query(`
    set session_replication_role = replica;
    select setseed(0.5);
    create function an_id(prefix text, n int) returns text language sql immutable as $$ select prefix || '_' || lpad(n::text, 26, '0') $$;
    create function below(n int) returns int language sql volatile as $$ select floor(random() * n)::int $$;
    create function any_time() returns timestamptz language sql volatile as $$ select timestamptz '2026-01-01Z' + below(20) * interval '1 hour' $$;
    insert into policy_versions (id, app_id, policy_id, version, effective_from, terms)
    select an_id('plv', n), an_id('app', 1), an_id('pol', n % 4), n / 4 + 1, any_time(), '{"base": "gross", "rules": [{}]}'
      from generate_series(0, 15) n where n % 4 > 0;
    insert into group_memberships (app_id, affiliate_id, position, group_id, effective_from)
    select an_id('app', 1), an_id('aff', n % 4), n / 4 + 1, case when below(3) > 0 then an_id('grp', below(2)) end, any_time()
      from generate_series(0, 15) n;
    insert into policy_assignments (app_id, group_id, affiliate_id, position, policy_id, effective_from)
    select an_id('app', 1), case when scope in (4, 5) then an_id('grp', scope - 4) end, case when scope < 4 then an_id('aff', scope) end,
           position, case when below(4) > 0 then an_id('pol', below(5)) end, any_time() + case when scope < 4 then interval '10 hours' else interval '0' end
      from generate_series(0, 6) scope, generate_series(1, 3) position;
    set session_replication_role = origin`);
  // Without a creator, only the app's own policy is looked up: that of a creator without assignments and groups.
  const { rows } = await client.query<{ assigned: unknown; shown: unknown }>(`
    select assigned_policy(a.app, case when a.creator <> an_id('aff', 5) then a.creator end, i.at) as assigned,
           (select jsonb_build_object('scope', x.scope, 'versionId', x.version_id, 'terms', x.terms)
              from policy_in_effect(a.app, a.creator, i.at) x) as shown
      from (select an_id('app', 1) as app, an_id('aff', n) as creator from generate_series(0, 5) n) a,
           (select timestamptz '2026-01-01Z' + n * interval '30 minutes' as at from generate_series(-1, 70) n) i`);
  expect(rows.map(({ assigned }) => assigned)).toEqual(rows.map(({ shown }) => shown));
  const scopes = new Set(rows.map(({ shown }) => (shown as { scope: string } | null)?.scope));
  expect(scopes).toEqual(new Set([undefined, 'affiliate', 'group', 'app']));
});

test('an instant is shown in whole milliseconds, of the microseconds before and after 1970', async () => {
  const { rows } = await client.query(`
    select epoch_ms(at) as ms from (values (timestamptz '2026-03-29T01:30:00.123999Z'), ('1969-12-31T23:59:59.999999Z'), (null)) x (at)`);
  expect(rows.map(({ ms }: { ms: string | null }) => ms)).toEqual(['1774747800123', '-1', null]);
});

test('the time of a row costs no call of a function', async () => {
  const { rows } = await client.query<Record<string, string>>(
    'explain (verbose) select epoch_ms(created_at) from apps',
  );
  expect(JSON.stringify(rows)).not.toContain('epoch_ms');
});
