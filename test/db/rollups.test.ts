import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { listAffiliatesByEarnings } from '../../src/db/affiliate-lists.ts';
import { listTopLinks } from '../../src/db/links.ts';
import { newId } from '../../src/db/new-id.ts';
import { readAppTotals } from '../../src/db/overviews.ts';
import {
  compareRollups,
  findRollupDifferences,
  foldRollups,
  measureRollupTail,
  repairRollups,
} from '../../src/db/rollups.ts';
import { connect, instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { LinkId } from '../../src/domain/ids.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { insertEarning, payOut } from '../support/ledger.ts';
import { click, newRollupTenant } from '../support/rollup-tenant.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

/** The time of facts in these tests. */
const AT = Date.UTC(2026, 2, 1);

async function foldAll(): Promise<void> {
  while ((await foldRollups(database.sql)) > 0);
}

/** Runs `start` while a fold has the turn, then ends the fold and waits for what `start` returns. */
async function whileFolderHasTurn(
  { url }: TestDatabase,
  start: () => Promise<readonly Promise<unknown>[]>,
): Promise<void> {
  const other = connect({ url, max: 1 });
  try {
    await other`begin`;
    await foldRollups(other, 1_000);
    const started = await start();
    await other`commit`;
    await Promise.all(started);
  } finally {
    await other.close();
  }
}

async function waitingForTurn({ sql }: TestDatabase, count: number): Promise<void> {
  await eventually(`${count} repairs wait`, async () => {
    const waiting = await sql`
      select from pg_locks where locktype = 'advisory' and not granted
         and database = (select oid from pg_database where datname = current_database())`;
    return waiting.length === count;
  });
}

// @promise dashboards
test('commissions that mature and are then paid leave the sum before and add to the sum after, folded or not', async () => {
  const { sql } = database;
  const tenant = await newRollupTenant(sql, 1, 1);
  await createAccountKey(sql, tenant.accountId, ['payout']);
  const [affiliateId = ''] = tenant.affiliates;
  const sums = async () => {
    const { pendingCents, maturedCents, paidCents } = await readAppTotals(sql, tenant.appId, AT);
    return [pendingCents, maturedCents, paidCents];
  };
  for (const amountCents of [100, 20, 3]) {
    await insertEarning({ sql }, tenant, { affiliateId, amountCents, occurredAt: AT, dueAt: AT + 1 });
  }
  const mature = async (count: number) =>
    await sql`
      update commissions set status = 'matured', matured_at = now()
       where id in (select id from commissions where app_id = ${tenant.appId} and status = 'pending'
                     order by amount_cents desc limit ${count})`;
  await mature(1);
  expect(await sums()).toEqual([23, 100, 0]);
  await foldAll();
  await mature(1);
  expect(await sums()).toEqual([3, 120, 0]);
  await payOut({ sql }, tenant, affiliateId);
  expect(await sums()).toEqual([0, 0, 123]);
  await foldAll();
  expect(await sums()).toEqual([0, 0, 123]);
  expect(await findRollupDifferences(sql)).toEqual([]);
});

describe('six-hour blocks', () => {
  test('six-hour blocks equal the quarter hours, for single facts and for many facts in one statement', async () => {
    const { sql } = database;
    const { appId, links } = await newRollupTenant(sql, 2, 2);
    const [one, two, three, four] = links as [LinkId, LinkId, LinkId, LinkId];
    await click(sql, one, 200);
    await click(sql, two, 1);
    await Promise.all(
      [three, four, three, four].map((link) => click(sql, link, 50, '2026-03-01 05:59:59.999+00')),
    );
    await foldAll();
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
    const { appId, links } = await newRollupTenant(sql, 1, 1);
    await click(sql, links[0] as LinkId, 3);
    await foldAll();
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
    expect(await compareRollups(sql, appId, 1)).toEqual({
      differences: 2,
      first: [expect.objectContaining({ scope: 'app', span: 'six_hours' })],
    });
    expect(await repairRollups(sql)).toBe(2);
    expect(await findRollupDifferences(sql)).toEqual([]);
  });
});

describe('concurrent facts of one creator', () => {
  test('facts of a creator do not wait for an open transaction with facts of the same creator', async () => {
    const { sql, url } = database;
    const { appId, affiliates, links } = await newRollupTenant(sql, 1, 1);
    const [affiliateId = '', linkId = ''] = [affiliates[0], links[0]];
    const [open, impatient] = [
      connect({ url, max: 1 }),
      connect({ url, max: 1, settings: { lock_timeout: 100 }, patienceMs: 0 }),
    ];
    const earn = async (on: Sql) =>
      await insertEarning(
        { sql: on },
        { appId },
        { affiliateId, linkId, amountCents: 200, occurredAt: AT, dueAt: AT },
      );
    try {
      await open`begin`;
      await earn(open);
      await click(open, linkId as LinkId, 1);
      await foldRollups(impatient);
      await earn(impatient);
      await click(impatient, linkId as LinkId, 1);
      await click(impatient, linkId as LinkId, 20);
      await open`commit`;
    } finally {
      await Promise.all([open.close(), impatient.close()]);
    }
    expect(await findRollupDifferences(sql)).toEqual([]);
  });
});

describe('the fold loop', () => {
  test('a statement of many clicks of a link in one quarter hour appends one delta', async () => {
    const { sql } = database;
    await foldAll();
    const { affiliates, links } = await newRollupTenant(sql, 1, 1);
    const ids = Array.from({ length: 50 }, () => newId('click'));
    await sql`
      insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
      select c.id, l.app_id, ${affiliates[0] ?? ''}, l.id, gen_random_uuid(), right(c.id, 1) = '0', ${instant(AT)}
        from unnest(${ids}::text[]) c (id) cross join links l where l.id = ${links[0] ?? ''}`;
    expect(await measureRollupTail(sql)).toMatchObject({ deltas: 1 });
  });

  test('a fold takes the oldest deltas up to its limit, and nothing while another one has the turn', async () => {
    const { sql, url } = database;
    await foldAll();
    const { links } = await newRollupTenant(sql, 1, 1);
    await click(sql, links[0] as LinkId, 30);
    const other = connect({ url, max: 1 });
    try {
      await other`begin`;
      const folded = await foldRollups(other, 5);
      expect([folded, await foldRollups(sql), (await measureRollupTail(sql)).deltas > 0]).toEqual([
        5,
        0,
        true,
      ]);
      await other`rollback`;
    } finally {
      await other.close();
    }
    const { deltas } = await measureRollupTail(sql);
    expect([await foldRollups(sql, 5), await measureRollupTail(sql)]).toMatchObject([
      5,
      { deltas: deltas - 5 },
    ]);
    await foldAll();
    expect(await measureRollupTail(sql)).toEqual({ deltas: 0, oldestSeconds: 0 });
  });

  test('a repair waits for a fold in progress and is right after it', async () => {
    const { sql } = database;
    const { links } = await newRollupTenant(sql, 2, 1);
    await click(sql, links[0] as LinkId, 5);
    await foldAll();
    await sql`update rollups set clicks = clicks + 3 where scope = 'link' and scope_id = ${links[0] ?? ''}`;
    await click(sql, links[0] as LinkId, 5);
    await whileFolderHasTurn(database, async () => {
      const repair = repairRollups(sql);
      await waitingForTurn(database, 1);
      return [repair];
    });
    expect(await findRollupDifferences(sql)).toEqual([]);
  });

  // A database of their own: a repair computes the difference of an app when it comes to it, and waits at the first one.
  describe('and an only app', () => {
    let only: TestDatabase;

    beforeEach(async () => {
      only = await createTestDatabase();
    });
    afterEach(async () => {
      await only.drop();
    });

    test('two repairs at once, or one that is sent again while it runs, correct a sum once', async () => {
      const { sql } = only;
      const { appId, links } = await newRollupTenant(sql, 1, 1);
      await click(sql, links[0] as LinkId, 5);
      while ((await foldRollups(sql)) > 0);
      await sql`update rollups set clicks = clicks - 3 where app_id = ${appId}`;
      await sql`delete from rollup_blocks where app_id = ${appId}`;
      await whileFolderHasTurn(only, async () => {
        const repairs = [repairRollups(sql), repairRollups(sql)];
        await waitingForTurn(only, 2);
        return repairs;
      });
      expect(await findRollupDifferences(sql)).toEqual([]);
    });

    test('a repair keeps a status that changes while it runs', async () => {
      const { sql } = only;
      const { affiliates } = await newRollupTenant(sql, 2, 0);
      const [first = '', second = ''] = affiliates;
      await sql`update rollups set clicks = 3 where scope_id = ${first}`;
      await sql`update rollups set affiliate_status = 'removed' where scope_id = ${second}`;
      await whileFolderHasTurn(only, async () => {
        const repair = repairRollups(sql);
        await waitingForTurn(only, 1);
        await sql`update affiliates set status = 'paused' where id = any(${affiliates}::text[])`;
        return [repair];
      });
      expect(await findRollupDifferences(sql)).toEqual([]);
    });
  });
});

describe('the order of earners', () => {
  test('the order of earners contains an affiliate from its creation and follows its status', async () => {
    const { sql } = database;
    const { appId, affiliates } = await newRollupTenant(sql, 3, 0);
    const idsWith = async (status: 'active' | 'paused' | null) =>
      (await listAffiliatesByEarnings(sql, appId, { status, text: null }, null, 10)).rows.map(({ id }) => id);
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
    const { affiliates } = await newRollupTenant(sql, 2, 0);
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
  test.each([
    ['not folded', 0],
    ['partly folded', 20],
    ['folded', 1_000],
  ])(
    'links are ordered by their clicks when these are %s, and links without clicks by age',
    async (_, folds) => {
      const { sql } = database;
      await foldAll();
      const { appId, affiliates, links } = await newRollupTenant(sql, 2, 6);
      const clicks = [0, 3, 9, 4, 0, 1, 7, 8, 0, 2, 5, 6];
      for (const [index, linkId] of links.entries()) {
        if (clicks[index] !== 0) await click(sql, linkId, clicks[index] ?? 0);
      }
      if (folds > 0) await foldRollups(sql, folds);
      const byClicks = (chosen: readonly LinkId[]) =>
        chosen.toSorted((a, b) => (clicks[links.indexOf(b)] ?? 0) - (clicks[links.indexOf(a)] ?? 0));
      const all = await listTopLinks(sql, appId, null, 50);
      expect(all.map(({ id }) => id)).toEqual(byClicks(links));
      expect(all.map((row) => row.clicks)).toEqual(clicks.toSorted((a, b) => b - a));
      expect((await listTopLinks(sql, appId, null, 4)).map((row) => row.clicks)).toEqual([9, 8, 7, 6]);
      const own = await listTopLinks(sql, appId, affiliates[1] ?? null, 50);
      expect(own.map(({ id }) => id)).toEqual(byClicks(links.slice(6)));
    },
  );
});

test('repair rebuilds all sums, the six-hour blocks and both orders from the facts alone', async () => {
  const other = await createTestDatabase();
  const { sql } = other;
  try {
    const { appId, affiliates, links } = await newRollupTenant(sql, 2, 2);
    await sql`update affiliates set status = 'removed' where id = ${affiliates[0] ?? ''}`;
    for (const [index, linkId] of links.entries()) {
      if (index > 0) await click(sql, linkId, 30 * index);
      // The last link's clicks stay in the tail.
      if (index < 3) while ((await foldRollups(sql)) > 0);
    }
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
    expect(
      (await listAffiliatesByEarnings(sql, appId, { status: 'removed', text: null }, null, 10)).rows.map(
        ({ id }) => id,
      ),
    ).toEqual([affiliates[0]]);
    await click(sql, links[0] as LinkId, 100);
    expect((await listTopLinks(sql, appId, null, 1)).map(({ id }) => id)).toEqual([links[0]]);
    expect(await findRollupDifferences(sql)).toEqual([]);
  } finally {
    await other.drop();
  }
});

test('autovacuum cleans the tables of sums after a small part of their rows was updated, and the tail after few deletes', async () => {
  const tables = await database.sql<{ name: string; scaleFactor: string | null }>`
    select c.relname as name, o.option_value as scale_factor
      from pg_class c
      left join lateral pg_options_to_table(c.reloptions) o on o.option_name = 'autovacuum_vacuum_scale_factor'
     where c.relkind = 'r' and c.relname like 'rollup%' and c.relname <> 'rollup_repairs' order by 1`;
  expect(tables).toEqual([
    { name: 'rollup_blocks', scaleFactor: '0.02' },
    { name: 'rollup_deltas', scaleFactor: '0' },
    { name: 'rollups', scaleFactor: '0.02' },
  ]);
});
