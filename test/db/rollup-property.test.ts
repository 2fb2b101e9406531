import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { listAffiliatesByCreated, listAffiliatesByEarnings } from '../../src/db/affiliate-lists.ts';
import { updateAffiliate } from '../../src/db/affiliates.ts';
import { readCommissionTotal } from '../../src/db/commission-totals.ts';
import { listLinks, listTopLinks } from '../../src/db/links.ts';
import { readAffiliateTotals, readAppTotals } from '../../src/db/overviews.ts';
import { previewPayouts } from '../../src/db/payout-lists.ts';
import { findRollupDifferences, foldRollups } from '../../src/db/rollups.ts';
import { readAppActivity } from '../../src/db/self-tests.ts';
import { connect, instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { readTimeseries } from '../../src/db/timeseries.ts';
import type { AffiliateId, LinkId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';
import { click, newRollupTenant } from '../support/rollup-tenant.ts';
import type { Tenant } from '../support/rollup-tenant.ts';
import { cases } from '../support/rounds.ts';

let database: TestDatabase;
/** Its transactions see one snapshot, so that a read can be compared with the facts while facts arrive. */
let snapshot: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  snapshot = connect({ url: database.url, max: 1 });
});
afterAll(async () => {
  await snapshot.close();
  await database.drop();
});

const FROM = Date.UTC(2026, 2, 1);
const TO = FROM + 3 * DAY_MS;
/** All commissions that are due have matured or are overdue then. */
const LATER = TO + 400 * DAY_MS;

/** The sums of one scope. */
interface Sums {
  clicks: number;
  installs: number;
  identified: number;
  paidUsers: number;
  revenueCents: number;
  commissionCents: number;
  maturedCents: number;
  paidCents: number;
}
type Fact = Sums & { readonly affiliateId: AffiliateId; readonly linkId: LinkId | null; readonly at: number };

/** What each reader of roll-ups shows. */
type Shown = Record<string, unknown>;

const NAMES = [
  'clicks',
  'installs',
  'identified',
  'paidUsers',
  'revenueCents',
  'commissionCents',
  'maturedCents',
  'paidCents',
] as const;

function sumOf(facts: readonly Fact[]): Sums {
  const sums = Object.fromEntries(NAMES.map((name) => [name, 0])) as unknown as Sums;
  for (const fact of facts) for (const name of NAMES) sums[name] += fact[name];
  return sums;
}

const totalsOf = (facts: readonly Fact[]) => {
  const { commissionCents, maturedCents, paidCents, ...sums } = sumOf(facts);
  const pendingCents = commissionCents - maturedCents - paidCents;
  return { ...sums, pendingCents, maturedCents, paidCents, lifetimeCents: commissionCents };
};
const timedOf = (facts: readonly Fact[]) => {
  const { maturedCents: _, paidCents: __, ...sums } = sumOf(facts);
  return sums;
};
const byHighest = <T extends { id: string }>(rows: readonly T[], value: (row: T) => number) =>
  rows.toSorted((a, b) => value(b) - value(a) || (a.id < b.id ? -1 : 1));

/** Ranges with ends within a quarter hour. */
const RANGES = [
  [FROM, TO],
  [FROM + 12_345_678, FROM + 2 * DAY_MS + 77_777],
  [null, FROM + DAY_MS + 1],
] as const;

/** Reads what the dashboards show, beginning with the reader of number `first`. Each statement sees its own snapshot. */
async function read(sql: Sql, { appId, affiliates, links }: Tenant, first = 0): Promise<Shown> {
  const [affiliateId, linkId] = [affiliates[0] as AffiliateId, links[0] as LinkId];
  const pointsOf = async (of: { affiliateId: AffiliateId | null; linkId: LinkId | null }) => {
    const request = { from: FROM, to: TO, interval: 'hour', timezone: 'Asia/Kathmandu', ...of } as const;
    const points = (await readTimeseries(sql, appId, request)) ?? [];
    return points.filter(({ at: _at, ...sums }) => Object.values(sums).some((sum) => sum !== 0));
  };
  const ofAffiliate = async (id: AffiliateId) => {
    // As of an instant when nothing is due: what is due counts as matured before it is.
    const found = await readAffiliateTotals(sql, appId, id, FROM);
    if (found === undefined) throw new Error('the affiliate exists');
    const { nextPayoutAt: _, carriedBalanceCents: __, ...totals } = found;
    return totals;
  };
  const clicksOf = (rows: readonly { id: string; clicks: number }[]) =>
    rows.map(({ id, clicks }) => ({ id, clicks }));
  const affiliateRows = (
    rows: readonly { id: string; clicks: number; installs: number; commissionCents: number }[],
  ) => rows.map(({ id, clicks, installs, commissionCents }) => ({ id, clicks, installs, commissionCents }));
  const commissionsIn = async (of: AffiliateId | null, [from, to]: (typeof RANGES)[number]) =>
    await readCommissionTotal(sql, appId, { affiliateId: of, linkId: null, from, to });
  const readers: Record<string, () => Promise<unknown>> = {
    app: async () => await readAppTotals(sql, appId, FROM),
    activity: async () => {
      const { clicks, installs, identified } = await readAppActivity(sql, appId, FROM + DAY_MS);
      return { clicks, installs, identified };
    },
    firstAffiliate: async () => await ofAffiliate(affiliateId),
    lastAffiliate: async () => await ofAffiliate(affiliates.at(-1) as AffiliateId),
    affiliates: async () =>
      affiliateRows(
        (await listAffiliatesByCreated(sql, appId, { status: null, externalId: null, text: null }, null, 100))
          .rows,
      ),
    topEarners: async () =>
      affiliateRows((await listAffiliatesByEarnings(sql, appId, { status: null, text: null }, null, 2)).rows),
    activeEarners: async () =>
      affiliateRows(
        (await listAffiliatesByEarnings(sql, appId, { status: 'active', text: null }, null, 100)).rows,
      ),
    links: async () =>
      clicksOf(
        (await listLinks(sql, appId, { affiliateId: null, active: null, text: null }, null, 100)).rows,
      ),
    topLinks: async () => clicksOf(await listTopLinks(sql, appId, null, 3)),
    topLinksOfAffiliate: async () => clicksOf(await listTopLinks(sql, appId, affiliateId, 100)),
    points: async () => await pointsOf({ affiliateId: null, linkId: null }),
    pointsOfAffiliate: async () => await pointsOf({ affiliateId, linkId: null }),
    pointsOfLink: async () => await pointsOf({ affiliateId: null, linkId }),
    commissions0: async () => await commissionsIn(null, RANGES[0]),
    commissions1: async () => await commissionsIn(affiliateId, RANGES[1]),
    commissions2: async () => await commissionsIn(null, RANGES[2]),
    payable: async () =>
      (await previewPayouts(sql, appId, LATER)).map(({ affiliateId: id, count, totalCents }) => ({
        id,
        count,
        totalCents,
      })),
  };
  const names = Object.keys(readers);
  const shown: Shown = {};
  for (let turn = 0; turn < names.length; turn += 1) {
    const name = names[(first + turn) % names.length] ?? '';
    shown[name] = await readers[name]?.();
  }
  return shown;
}

/** Computes the same from the facts. */
async function expected(sql: Sql, { appId, affiliates, links }: Tenant): Promise<Shown> {
  const facts = await sql<Fact>`select * from rollup_facts where app_id = ${appId}`;
  const linkRows = await sql<{ id: LinkId; affiliateId: AffiliateId }>`
    select id, affiliate_id from links where app_id = ${appId} order by created_at, id`;
  const affiliateRows = await sql<{ id: AffiliateId; status: string }>`
    select id, status from affiliates where app_id = ${appId} order by created_at, id`;
  const unpaid = await sql<{ affiliateId: AffiliateId; amountCents: number }>`
    select affiliate_id, amount_cents from commissions where app_id = ${appId} and status <> 'paid'`;
  const of = (id: string) => facts.filter(({ affiliateId, linkId }) => affiliateId === id || linkId === id);
  const listed = affiliateRows.map(({ id, status }) => {
    const { clicks, installs, commissionCents } = sumOf(of(id));
    return { status, row: { id, clicks, installs, commissionCents } };
  });
  const earners = (rows: typeof listed) =>
    byHighest(
      rows.map(({ row }) => row),
      ({ commissionCents }) => commissionCents,
    );
  const clickRows = linkRows.map(({ id, affiliateId }) => ({
    affiliateId,
    row: { id, clicks: sumOf(of(id)).clicks },
  }));
  const top = (rows: typeof clickRows) =>
    byHighest(
      rows.map(({ row }) => row),
      ({ clicks }) => clicks,
    );
  // Nepal is 5:45 ahead of UTC: its hours begin at quarter past.
  const hourOf = (at: number) => Math.floor((at - HOUR_MS / 4) / HOUR_MS) * HOUR_MS + HOUR_MS / 4;
  const points = (chosen: readonly Fact[]) => {
    const timed = chosen.filter(({ at }) => at >= FROM && at < TO);
    return [...new Set(timed.map(({ at }) => hourOf(at)))]
      .toSorted((a, b) => a - b)
      .map((at) => ({ at, ...timedOf(timed.filter((fact) => hourOf(fact.at) === at)) }))
      .filter(({ at: _at, ...sums }) => Object.values(sums).some((sum) => sum !== 0));
  };
  const block = 6 * HOUR_MS;
  const since = Math.floor((FROM + DAY_MS) / block) * block;
  const { clicks, installs, identified } = sumOf(facts.filter(({ at }) => at >= since));
  const within = (chosen: readonly Fact[], from: number | null, to: number) =>
    sumOf(chosen.filter(({ at }) => at >= (from ?? 0) && at < to)).commissionCents;
  const first = affiliates[0] as AffiliateId;
  const nets = affiliates
    .map((id) => unpaid.filter(({ affiliateId }) => affiliateId === id))
    .map((rows, index) => ({
      id: affiliates[index] as string,
      count: rows.length,
      totalCents: rows.reduce((sum, { amountCents }) => sum + amountCents, 0),
    }));
  return {
    app: totalsOf(facts),
    activity: { clicks, installs, identified },
    firstAffiliate: totalsOf(of(first)),
    lastAffiliate: totalsOf(of(affiliates.at(-1) as AffiliateId)),
    affiliates: listed.map(({ row }) => row),
    topEarners: earners(listed).slice(0, 2),
    activeEarners: earners(listed.filter(({ status }) => status === 'active')),
    links: clickRows.map(({ row }) => row),
    topLinks: top(clickRows).slice(0, 3),
    topLinksOfAffiliate: top(clickRows.filter(({ affiliateId }) => affiliateId === first)),
    points: points(facts),
    pointsOfAffiliate: points(of(first)),
    pointsOfLink: points(of(links[0] as LinkId)),
    commissions0: within(facts, ...RANGES[0]),
    commissions1: within(of(first), ...RANGES[1]),
    commissions2: within(facts, ...RANGES[2]),
    payable: byHighest(
      nets.filter(({ totalCents }) => totalCents > 0),
      ({ totalCents }) => totalCents,
    ),
  };
}

/** Writes one fact, or a few that belong together. */
async function write(tenant: Tenant, fact: WrittenFact): Promise<void> {
  const { sql } = database;
  const { appId, affiliates, links } = tenant;
  const index = fact.creator % affiliates.length;
  const affiliateId = affiliates[index] as AffiliateId;
  const linkId = links[(fact.creator * 2) % links.length] as LinkId;
  const at = FROM + fact.minute * 60_000;
  switch (fact.kind) {
    case 'clicks':
      return await click(sql, linkId, 1 + (fact.amount % 8), new Date(at).toISOString());
    case 'earning': {
      const id = await insertEarning(
        { sql },
        { appId },
        {
          affiliateId,
          amountCents: fact.amount,
          occurredAt: at,
          dueAt: at + DAY_MS,
          ...(fact.amount % 3 === 0 ? {} : { linkId: links[index * 2] as LinkId }),
        },
      );
      await sql`
        insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
        select payment_id, 1, app_id, affiliate_id, link_id, amount_cents * 5, occurred_at from commissions where id = ${id}`;
      await sql`
        update bindings set first_paid_at = ${instant(at)}
         where id = (select binding_id from commissions where id = ${id})`;
      if (fact.amount % 2 === 0)
        await insertReversal({ sql }, id, { amountCents: fact.amount, occurredAt: at + 60_000 });
      return;
    }
    case 'mature':
      await sql`
        update commissions set status = 'matured', matured_at = now()
         where app_id = ${appId} and affiliate_id = ${affiliateId} and status = 'pending'`;
      return;
    case 'payout':
      await payOut({ sql }, tenant, affiliateId);
      return;
    case 'status':
      await updateAffiliate(
        sql,
        appId,
        affiliateId,
        { status: fact.amount % 2 === 0 ? 'paused' : 'active' },
        true,
      );
  }
}

/** Runs a fold on a connection of its own and kills it before its commit. */
async function killFold(limit: number): Promise<void> {
  const doomed = connect({ url: database.url, max: 1, patienceMs: 0 });
  try {
    await doomed`begin`;
    const { pid } = await doomed.one<{ pid: number }>`select pg_backend_pid() as pid`;
    await foldRollups(doomed, limit);
    await database.sql`select pg_terminate_backend(${pid})`;
  } finally {
    await doomed.close();
  }
}

const fact = fc.record({
  kind: fc.constantFrom('clicks', 'clicks', 'clicks', 'earning', 'mature', 'payout', 'status'),
  creator: fc.nat(6),
  amount: fc.integer({ min: 1, max: 50 }),
  minute: fc.integer({ min: 0, max: 3 * 24 * 60 - 60 }),
});
type WrittenFact = typeof fact extends fc.Arbitrary<infer T> ? T : never;
const fold = fc.record({ limit: fc.constantFrom(1, 2, 5, 50), isKilled: fc.nat(5).map((n) => n === 0) });
const step = fc.record({
  facts: fc.array(fact, { maxLength: 6 }),
  folds: fc.array(fold, { maxLength: 3 }),
  firstReader: fc.nat(100),
});

/** Returns `sql` with a fold before each statement: a sum that is read with two statements is not that of one snapshot. */
function foldingBetween(sql: Sql): Sql {
  const foldOne = async () => await foldRollups(database.sql, 1);
  const all = async (...statement: Parameters<Sql>) => (await foldOne(), await sql(...statement));
  const one: Sql['one'] = async (...statement) => (await foldOne(), await sql.one(...statement));
  const maybe: Sql['maybe'] = async (...statement) => (await foldOne(), await sql.maybe(...statement));
  return Object.assign(all, { ...sql, one, maybe }) as Sql;
}

async function foldInTurn(
  folds: readonly { readonly limit: number; readonly isKilled: boolean }[],
): Promise<void> {
  for (const { limit, isKilled } of folds) {
    if (isKilled) await killFold(limit);
    else await foldRollups(database.sql, limit);
  }
}

/** Compares a read with the facts of the same snapshot. */
async function compareInSnapshot(tenant: Tenant): Promise<void> {
  await snapshot`begin isolation level repeatable read read only`;
  try {
    expect(await read(snapshot, tenant)).toEqual(await expected(snapshot, tenant));
  } finally {
    await snapshot`rollback`;
  }
}

// @promise dashboards
test('every dashboard sum equals its facts, whatever facts, folds, killed folds and reads coincide', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
      while ((await foldRollups(database.sql)) > 0);
      const tenant = await newRollupTenant(database.sql, 3, 2);
      await createAccountKey(database.sql, tenant.accountId, ['payout']);
      for (const { facts, folds, firstReader } of steps) {
        // While facts arrive, a read is compared with the facts of its own snapshot.
        await Promise.all([
          ...facts.map(async (one) => await write(tenant, one)),
          foldInTurn(folds),
          compareInSnapshot(tenant),
        ]);
        // While only the fold loop works, each statement of a read must show all facts. It has something to fold each time.
        for (let creator = 0; creator < 3; creator += 1) {
          await write(tenant, { kind: 'clicks', creator, amount: 7, minute: firstReader });
          await write(tenant, { kind: 'earning', creator, amount: 30 + creator, minute: firstReader });
          await write(tenant, { kind: 'mature', creator, amount: 1, minute: 0 });
          await write(tenant, { kind: 'clicks', creator: creator * 2, amount: 7, minute: firstReader });
        }
        const [shown, all] = await Promise.all([
          read(foldingBetween(database.sql), tenant, firstReader),
          expected(database.sql, tenant),
        ]);
        expect(shown).toEqual(all);
      }
      expect(await findRollupDifferences(database.sql, [tenant.appId])).toEqual([]);
    }),
    // A smaller example takes minutes to find.
    { ...cases(4, 200), endOnFailure: true },
  );
}, 1_000_000);
