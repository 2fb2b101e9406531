import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import { encodeCursor } from '../../src/http/pagination.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, payOut } from '../support/ledger.ts';

// Reads lists page by page while rows arrive, with every filter and sort. Rows that exist at page one and match the
// filter are returned exactly once and in order, and no row is returned twice.

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});

interface Page {
  readonly items: { readonly id: string }[];
  readonly nextCursor: string | null;
}

async function readPages(
  path: string,
  query: Record<string, string>,
  between: () => Promise<unknown>,
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const search: string = new URLSearchParams({
      ...query,
      ...(cursor === null ? {} : { cursor }),
    }).toString();
    const response = await api.call<Page>('GET', `/apps/${app.appId}${path}?${search}`, { key: app.key });
    expect(response.status).toBe(200);
    expect(response.body.items.length).toBeLessThanOrEqual(Number(query['limit']));
    ids.push(...response.body.items.map(({ id }) => id));
    cursor = response.body.nextCursor;
    if (cursor !== null) await between();
  } while (cursor !== null);
  return ids;
}

interface CreatedRow {
  readonly id: string;
}

/** Expects that of the rows at page one those in `expected` were returned, in that order, and none twice. */
function expectExactlyOnce(
  returned: readonly string[],
  created: readonly CreatedRow[],
  expected: readonly CreatedRow[],
): void {
  expect(new Set(returned).size).toBe(returned.length);
  const existing = new Set(created.map(({ id }) => id));
  expect(returned.filter((id) => existing.has(id))).toEqual(expected.map(({ id }) => id));
}

/** Few values, so that many rows are equal: page breaks between equal rows are the hard case. */
const tick = fc.integer({ min: 0, max: 3 });
const limit = fc.integer({ min: 1, max: 4 });
const BASE = Date.UTC(2026, 0, 1);

/** The order of Postgres' "C" collation. */
const compareBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const compareKeys = (a: readonly (string | number)[], b: readonly (string | number)[]): number => {
  for (const [index, key] of a.entries()) {
    const other = b[index];
    const order = typeof key === 'number' ? key - Number(other) : compareBytes(key, String(other));
    if (order !== 0) return order;
  }
  return 0;
};

/** Runs a property, each time on a new app. */
async function check<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => Promise<void>): Promise<void> {
  await fc.assert(
    fc.asyncProperty(arbitrary, async (value) => {
      app = await newApp(api);
      await property(value);
    }),
    { numRuns: 12 },
  );
}

const STATUSES = ['active', 'paused', 'removed'] as const;
const affiliateRow = fc.record({
  name: fc.constantFrom('a', 'A', 'b', 'ä', '_', "o'c", '🙂', 'aa'),
  status: fc.constantFrom(...STATUSES),
  tick,
});
type AffiliateRow = { readonly name: string; readonly status: string; readonly tick: number };

async function addAffiliate(row: AffiliateRow): Promise<string> {
  const id = newId('affiliate');
  await api.sql`
    insert into affiliates (id, app_id, name, status, created_at)
    values (${id}, ${app.appId}, ${row.name}, ${row.status}, ${instant(BASE)}::timestamptz + ${row.tick} * interval '1 microsecond')`;
  return id;
}

describe('affiliates', () => {
  // @promise cursor-continues, affiliates-filter-and-sort, rows-exactly-once
  test.each([['created'], ['name']] as const)(
    'affiliates by %s are returned exactly once, with and without a status',
    async (sort) => {
      await check(
        fc.record({
          rows: fc.array(affiliateRow, { maxLength: 12 }),
          added: fc.array(affiliateRow, { minLength: 1, maxLength: 4 }),
          status: fc.constantFrom(null, ...STATUSES),
          limit,
        }),
        async ({ rows, added, status, limit: size }) => {
          const created: (AffiliateRow & { id: string })[] = [];
          for (const row of rows) created.push({ ...row, id: await addAffiliate(row) });
          let turn = 0;
          const returned = await readPages(
            '/affiliates',
            { limit: String(size), sort, ...(status === null ? {} : { status }) },
            async () => {
              const row = added[turn];
              turn += 1;
              if (row !== undefined) await addAffiliate(row);
            },
          );
          const keyOf = ({ id, name, tick: at }: (typeof created)[number]) =>
            sort === 'name' ? [name.toLowerCase(), id] : [at, id];
          const expected = created
            .filter((row) => status === null || row.status === status)
            .toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
          expectExactlyOnce(returned, created, expected);
        },
      );
    },
  );
});

describe('links', () => {
  // @promise cursor-continues, links-filter, rows-exactly-once
  test('links are returned exactly once with every combination of affiliate and state', async () => {
    const linkRow = fc.record({ owner: fc.constantFrom(0, 1), active: fc.boolean(), tick });
    await check(
      fc.record({
        rows: fc.array(linkRow, { maxLength: 12 }),
        added: fc.array(linkRow, { minLength: 1, maxLength: 4 }),
        owner: fc.constantFrom(null, 0, 1),
        active: fc.constantFrom(null, true, false),
        limit,
      }),
      async ({ rows, added, owner, active, limit: size }) => {
        const owners = [await newAffiliate(api, app), await newAffiliate(api, app)];
        const add = async (row: { owner: number; active: boolean; tick: number }) => {
          const id = newId('link');
          await api.sql`
            insert into links (id, app_id, affiliate_id, slug, destination_url, active, created_at)
            values (${id}, ${app.appId}, ${owners[row.owner] ?? ''}, ${id.slice(-20)}, 'https://example.com', ${row.active},
                    ${instant(BASE)}::timestamptz + ${row.tick} * interval '1 microsecond')`;
          return id;
        };
        const created = [];
        for (const row of rows) created.push({ ...row, id: await add(row) });
        let turn = 0;
        const returned = await readPages(
          '/links',
          {
            limit: String(size),
            ...(owner === null ? {} : { affiliateId: owners[owner] ?? '' }),
            ...(active === null ? {} : { active: String(active) }),
          },
          async () => {
            const row = added[turn];
            turn += 1;
            if (row !== undefined) await add(row);
          },
        );
        const expected = created
          .filter(
            (row) => (owner === null || row.owner === owner) && (active === null || row.active === active),
          )
          .toSorted((a, b) => compareKeys([a.tick, a.id], [b.tick, b.id]));
        expectExactlyOnce(returned, created, expected);
      },
    );
  });
});

describe('commissions', () => {
  // @promise cursor-continues, commissions-filter, rows-exactly-once
  test('commissions are returned exactly once with every combination of affiliate, status and time', async () => {
    const row = fc.record({ owner: fc.constantFrom(0, 1), matured: fc.boolean(), tick });
    await check(
      fc.record({
        rows: fc.array(row, { maxLength: 8 }),
        added: fc.array(row, { minLength: 1, maxLength: 3 }),
        owner: fc.constantFrom(null, 0, 1),
        status: fc.constantFrom(null, 'pending', 'matured'),
        from: fc.constantFrom(null, 0, 1, 2),
        to: fc.constantFrom(null, 2, 3),
        limit,
      }),
      async ({ rows, added, owner, status, from, to, limit: size }) => {
        const owners = [await newAffiliate(api, app), await newAffiliate(api, app)];
        const add = (value: { owner: number; matured: boolean; tick: number }) =>
          insertEarning(api, app, {
            affiliateId: owners[value.owner] ?? '',
            amountCents: 100,
            occurredAt: BASE + value.tick,
            dueAt: BASE + 1000,
            matured: value.matured,
          });
        const created = [];
        for (const value of rows) created.push({ ...value, id: await add(value) });
        let turn = 0;
        const returned = await readPages(
          '/commissions',
          {
            limit: String(size),
            ...(owner === null ? {} : { affiliateId: owners[owner] ?? '' }),
            ...(status === null ? {} : { status }),
            ...(from === null ? {} : { from: String(BASE + from) }),
            ...(to === null ? {} : { to: String(BASE + to) }),
          },
          async () => {
            const value = added[turn];
            turn += 1;
            if (value !== undefined) await add(value);
          },
        );
        const expected = created
          .filter(
            (value) =>
              (owner === null || value.owner === owner) &&
              (status === null || (status === 'matured') === value.matured) &&
              (from === null || value.tick >= from) &&
              (to === null || value.tick < to),
          )
          .toSorted((a, b) => compareKeys([b.tick, b.id], [a.tick, a.id]));
        expectExactlyOnce(returned, created, expected);
      },
    );
  });
});

describe('payouts', () => {
  // @promise get-payouts, cursor-continues, payouts-filter, rows-exactly-once
  test('payouts of all and of one affiliate are returned exactly once while exports run', async () => {
    await check(
      fc.record({
        owners: fc.array(fc.constantFrom(0, 1), { maxLength: 7 }),
        owner: fc.constantFrom(null, 0, 1),
        limit,
      }),
      async ({ owners: rows, owner, limit: size }) => {
        const owners = [await newAffiliate(api, app), await newAffiliate(api, app)];
        const pay = async (index: number) => {
          const affiliateId = owners[index] ?? '';
          const due = { amountCents: 100, occurredAt: BASE, dueAt: BASE, matured: true };
          await insertEarning(api, app, { affiliateId, ...due });
          return String(await payOut(api, app, affiliateId));
        };
        const created = [];
        for (const index of rows) created.push({ owner: index, id: await pay(index) });
        const returned = await readPages(
          '/payouts',
          { limit: String(size), ...(owner === null ? {} : { affiliateId: owners[owner] ?? '' }) },
          () => pay(0),
        );
        const expected = created.filter((row) => owner === null || row.owner === owner).toReversed();
        expectExactlyOnce(returned, created, expected);
      },
    );
  });
});

// @promise cursor-400
test.each<
  [string, (runId: string, policyId: string) => [path: string, list: string, filters: Record<string, string>]]
>([
  ['items of a run', (runId) => [`/payout-runs/${runId}/items`, 'payout-run-items', { runId }]],
  ['exclusions of a run', (runId) => [`/payout-runs/${runId}/excluded`, 'payout-run-exclusions', { runId }]],
  [
    'versions of a policy',
    (_, policyId) => [`/policies/${policyId}/versions`, 'policy versions', { policyId }],
  ],
])(
  'a cursor whose position no column can have is refused, and no error of the service: %s',
  async (_, listOf) => {
    const { body: policy } = await api.call<{ id: string }>('POST', `/apps/${app.appId}/policies`, {
      key: app.key,
      body: { name: 'Spring' },
    });
    const [path, list, filters] = listOf(newId('payoutRun'), policy.id);
    const key = { list, appId: app.appId, filters };
    const cursor = encodeCursor(key, { sortKey: Number.MAX_SAFE_INTEGER, id: newId('affiliate') });
    const answer = await api.call<{ code: string }>('GET', `/apps/${app.appId}${path}?cursor=${cursor}`, {
      key: app.key,
    });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  },
);
