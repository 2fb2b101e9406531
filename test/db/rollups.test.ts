import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { listTopEarners } from '../../src/db/affiliates.ts';
import { listTopLinks } from '../../src/db/links.ts';
import { newId } from '../../src/db/new-id.ts';
import { findRollupDifferences, repairRollups } from '../../src/db/rollups.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AffiliateId, AppId, LinkId } from '../../src/domain/ids.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

interface Tenant {
  readonly appId: AppId;
  readonly affiliates: readonly AffiliateId[];
  readonly links: readonly LinkId[];
}

/** Creates an app with affiliates that have `linksEach` links each. */
async function newTenant(sql: Sql, affiliateCount: number, linksEach: number): Promise<Tenant> {
  const [accountId, appId] = [newId('account'), newId('app')];
  await sql`insert into accounts (id, name) values (${accountId}, 'Account')`;
  await sql`
    insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                      deferred_window_minutes, link_subdomain)
    values (${appId}, ${accountId}, 'App', 2000, 30, 30, 60, ${randomBytes(6).toString('hex')})`;
  const affiliates = Array.from({ length: affiliateCount }, () => newId('affiliate'));
  const links = affiliates.flatMap((affiliateId) =>
    Array.from({ length: linksEach }, () => ({ id: newId('link'), affiliateId })),
  );
  await sql`
    insert into affiliates (id, app_id, name)
    select id, ${appId}, 'Creator' from unnest(${affiliates}::text[]) id`;
  await sql`
    insert into links (id, app_id, affiliate_id, slug, destination_url)
    select id, ${appId}, "affiliateId", right(id, 20), 'https://example.com'
      from jsonb_to_recordset(${sql.json(links)}) l (id text, "affiliateId" text)`;
  return { appId, affiliates, links: links.map(({ id }) => id) };
}

/** Inserts clicks of a link with one statement, a few minutes apart. */
async function click(sql: Sql, linkId: LinkId, count: number, at = '2026-03-01 00:00:00+00'): Promise<void> {
  const ids = Array.from({ length: count }, () => newId('click'));
  await sql`
    insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
    select c.id, l.app_id, l.affiliate_id, l.id, gen_random_uuid(), false,
           ${at}::timestamptz + c.position * interval '7 minutes'
      from unnest(${ids}::text[]) with ordinality c (id, position) cross join links l where l.id = ${linkId}`;
}

describe('six-hour blocks', () => {
  test('six-hour blocks equal the quarter hours, for single facts and for many facts in one statement', async () => {
    const { sql } = database;
    const { appId, links } = await newTenant(sql, 2, 2);
    const [one, two, three, four] = links as [LinkId, LinkId, LinkId, LinkId];
    await click(sql, one, 200);
    await click(sql, two, 1);
    await Promise.all(
      [three, four, three, four].map((link) => click(sql, link, 50, '2026-03-01 05:59:59.999+00')),
    );
    expect(await findRollupDifferences(sql)).toEqual([]);
    const sums = await sql<{ scope: string; quarters: number; blocks: number; clicks: number }>`
      select scope, sum(q) as quarters, sum(b) as blocks, sum(clicks)::bigint as clicks
        from (select scope, 1 as q, 0 as b, 0 as clicks from rollups where app_id = ${appId} and isfinite(bucket_at)
              union all
              select scope, 0, 1, clicks from rollup_blocks where app_id = ${appId}) x
       group by scope order by scope`;
    expect(sums.map(({ clicks }) => clicks)).toEqual([401, 401, 401]);
    for (const { quarters, blocks } of sums) expect(blocks).toBeLessThan(quarters / 5);
  });

  test('a wrong or missing six-hour block is reported and repaired', async () => {
    const { sql } = database;
    const { appId, links } = await newTenant(sql, 1, 1);
    await click(sql, links[0] as LinkId, 3);
    await sql`update rollup_blocks set clicks = clicks + 5 where app_id = ${appId} and scope = 'app'`;
    await sql`delete from rollup_blocks where app_id = ${appId} and scope = 'link'`;
    expect(await findRollupDifferences(sql)).toEqual([
      expect.objectContaining({
        scope: 'app',
        span: 'six_hours',
        bucketAt: Date.UTC(2026, 2, 1),
        differs: ['clicks is 5 too high'],
      }),
      expect.objectContaining({ scope: 'link', span: 'six_hours', differs: ['clicks is 3 too low'] }),
    ]);
    expect(await repairRollups(sql)).toBe(2);
    expect(await findRollupDifferences(sql)).toEqual([]);
  });
});

/** Opens two connections that write to the same shard. */
async function sameShard(url: string): Promise<[pg.Client, pg.Client]> {
  const byShard = new Map<number, pg.Client>();
  for (;;) {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query<{ shard: number }>('select pg_backend_pid() % 8 as shard');
    const shard = rows[0]?.shard ?? 0;
    const other = byShard.get(shard);
    if (other !== undefined) {
      byShard.delete(shard);
      await Promise.all([...byShard.values()].map(async (unused) => await unused.end()));
      return [other, client];
    }
    byShard.set(shard, client);
  }
}

describe('concurrent facts of one creator', () => {
  test.each([1, 2])(
    'an evaluation and a statement of %i clicks of the same creator do not deadlock',
    async (clicks) => {
      const { sql, url } = database;
      const { appId, affiliates, links } = await newTenant(sql, 1, 1);
      const [evaluation, clicking] = await sameShard(url);
      // The columns after the ids: when, clicks, installs, identified, paid users, revenue, commission, matured, paid, count.
      const delta = (counts: string) =>
        `row('${appId}', '${affiliates[0]}', '${links[0]}', '2026-03-01', ${counts})::rollup_delta`;
      const add = async (client: pg.Client, ...deltas: string[]) =>
        await client.query(`select add_to_rollups(array[${deltas.join(', ')}])`);
      // The three triggers of one earning, in one transaction, as at the end of its statement.
      await evaluation.query('begin');
      await add(evaluation, delta('0, 0, 0, 0, 0, 400, 0, 0, 0'));
      const clicked = add(
        clicking,
        ...Array.from({ length: clicks }, () => delta('1, 0, 0, 0, 0, 0, 0, 0, 0')),
      );
      await sleep(50);
      const earned = (async () => {
        await add(evaluation, delta('0, 0, 0, 0, 2000, 0, 0, 0, 0'));
        await add(evaluation, delta('0, 0, 0, 1, 0, 0, 0, 0, 0'));
        await evaluation.query('commit');
      })();
      const outcomes = await Promise.allSettled([clicked, earned]);
      await Promise.all([evaluation.end(), clicking.end()]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
      // These sums have no facts.
      await repairRollups(sql);
    },
  );
});

describe('the order of earners', () => {
  test('the order of earners contains an affiliate from its creation and follows its status', async () => {
    const { sql } = database;
    const { appId, affiliates } = await newTenant(sql, 3, 0);
    const idsWith = async (status: 'active' | 'paused' | null) =>
      (await listTopEarners(sql, appId, { status }, 10)).map(({ id }) => id);
    expect(await idsWith(null)).toEqual(affiliates);
    await sql`update affiliates set status = 'paused' where id = ${affiliates[1] ?? ''}`;
    expect(await idsWith('paused')).toEqual([affiliates[1]]);
    expect(await idsWith('active')).toEqual([affiliates[0], affiliates[2]]);
    await sql`update affiliates set status = 'active' where id = ${affiliates[1] ?? ''}`;
    expect(await idsWith('paused')).toEqual([]);
    expect(await idsWith('active')).toEqual(affiliates);
  });

  test('a missing row or a wrong status in the order of earners is reported and repaired', async () => {
    const { sql } = database;
    const { affiliates } = await newTenant(sql, 2, 0);
    const [first = '', second = ''] = affiliates;
    await sql`update rollups set affiliate_status = 'removed' where scope_id = ${first}`;
    await sql`delete from rollups where scope_id = ${second}`;
    expect(await findRollupDifferences(sql)).toMatchObject([
      { scopeId: first, span: 'all_time', differs: ['affiliate_status differs'] },
      { scopeId: second, span: 'all_time', differs: ['affiliate_status differs'] },
    ]);
    expect(await repairRollups(sql)).toBe(2);
    expect(await findRollupDifferences(sql)).toEqual([]);
  });
});

describe('the order of links', () => {
  test('links are ordered by their clicks in all shards, and links without clicks by age', async () => {
    const { sql } = database;
    const { appId, affiliates, links } = await newTenant(sql, 2, 6);
    const clicks = [0, 3, 9, 4, 0, 1, 7, 8, 0, 2, 5, 6];
    for (const [index, linkId] of links.entries()) {
      // One statement at a time through several connections: the clicks of a link are in several shards.
      const parts = Array.from({ length: clicks[index] ?? 0 }, () => click(sql, linkId, 1));
      await Promise.all(parts);
    }
    const byClicks = (chosen: readonly LinkId[]) =>
      chosen.toSorted((a, b) => (clicks[links.indexOf(b)] ?? 0) - (clicks[links.indexOf(a)] ?? 0));
    const all = await listTopLinks(sql, appId, null, 50);
    expect(all.map(({ id }) => id)).toEqual(byClicks(links));
    expect(all.map((row) => row.clicks)).toEqual(clicks.toSorted((a, b) => b - a));
    expect((await listTopLinks(sql, appId, null, 4)).map((row) => row.clicks)).toEqual([9, 8, 7, 6]);
    const own = await listTopLinks(sql, appId, affiliates[1] ?? null, 50);
    expect(own.map(({ id }) => id)).toEqual(byClicks(links.slice(6)));
  });

  test('the order of links is correct when many links have clicks and every shard has different leaders', async () => {
    const { sql } = database;
    const { appId, affiliates, links } = await newTenant(sql, 1, 600);
    // Clicks by the number of the link, distributed unevenly over the shards.
    await sql`
      insert into rollups (app_id, scope, scope_id, bucket_at, shard, clicks, rank_value, link_affiliate_id)
      select ${appId}, 'link', l.id, '-infinity', s.shard, c.part, c.part, ${affiliates[0] ?? ''}
        from (select id, row_number() over (order by id) as number from links where app_id = ${appId}) l
       cross join generate_series(0, 7) s (shard)
       cross join lateral (select l.number * 8 + ((l.number * 7 + s.shard * 5) % 8) * 3 as part) c`;
    const expected = await sql<{ id: string }>`
      select scope_id as id from rollups where app_id = ${appId} and scope = 'link' and bucket_at = '-infinity'
       group by scope_id order by sum(clicks) desc, scope_id limit 10`;
    expect((await listTopLinks(sql, appId, null, 10)).map(({ id }) => id)).toEqual(
      expected.map(({ id }) => id),
    );
    expect(links).toHaveLength(600);
    await sql`delete from rollups where app_id = ${appId} and scope = 'link'`;
  });
});

test('repair rebuilds all sums, the six-hour blocks and both orders from the facts alone', async () => {
  const other = await createTestDatabase();
  const { sql } = other;
  try {
    const { appId, affiliates, links } = await newTenant(sql, 2, 2);
    await sql`update affiliates set status = 'removed' where id = ${affiliates[0] ?? ''}`;
    for (const [index, linkId] of links.entries()) await click(sql, linkId, 30 * index);
    await sql`delete from rollups`;
    await sql`delete from rollup_blocks`;
    expect(await findRollupDifferences(sql)).not.toEqual([]);
    await repairRollups(sql);
    expect(await findRollupDifferences(sql)).toEqual([]);
    expect((await listTopLinks(sql, appId, null, 10)).map(({ id }) => id)).toEqual([
      links[3],
      links[2],
      links[1],
      links[0],
    ]);
    expect((await listTopEarners(sql, appId, { status: 'removed' }, 10)).map(({ id }) => id)).toEqual([
      affiliates[0],
    ]);
    await click(sql, links[0] as LinkId, 100);
    expect((await listTopLinks(sql, appId, null, 1)).map(({ id }) => id)).toEqual([links[0]]);
    expect(await findRollupDifferences(sql)).toEqual([]);
  } finally {
    await other.drop();
  }
});

test('autovacuum cleans the tables of sums after a small part of their rows was updated', async () => {
  const tables = await database.sql<{ name: string; scaleFactor: string | null }>`
    select c.relname as name, o.option_value as scale_factor
      from pg_class c
      left join lateral pg_options_to_table(c.reloptions) o on o.option_name = 'autovacuum_vacuum_scale_factor'
     where c.relname in ('rollups', 'rollup_blocks') order by 1`;
  expect(tables).toEqual([
    { name: 'rollup_blocks', scaleFactor: '0.02' },
    { name: 'rollups', scaleFactor: '0.02' },
  ]);
});
