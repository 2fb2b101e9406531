import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LEADER_MEASURES, readLeaders } from '../../src/db/leaders.ts';
import { newId } from '../../src/db/new-id.ts';
import { foldRollups } from '../../src/db/rollups.ts';
import { readTimeseries } from '../../src/db/timeseries.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;
/** The creators in the order of their names: A earned early, B and C late, D never. */
let affiliates: string[];
let links: string[];

/** A moment that begins no hour, so that ranges cut blocks. */
const START = Date.UTC(2026, 0, 1, 7, 20);
const at = (days: number, hours = 0) => START + days * DAY_MS + hours * HOUR_MS;

interface Body {
  readonly complete: boolean;
  readonly leaders: readonly {
    readonly affiliateName: string;
    readonly linkId: string | null;
    readonly slug: string | null;
    readonly clicks: number;
    readonly revenueCents: number;
    readonly commissionCents: number;
  }[];
}

const get = async (query: Record<string, string | number>) =>
  await api.call<Body>(
    'GET',
    `/apps/${app.appId}/leaders?${new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    ).toString()}`,
    { key: app.key },
  );

async function click(linkId: string, moments: readonly number[]): Promise<void> {
  const rows = moments.map((moment) => ({ id: newId('click'), at: moment }));
  await api.sql`
    insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
    select c.id, l.app_id, l.affiliate_id, l.id, gen_random_uuid(), false, to_timestamp(c.at / 1000.0)
      from jsonb_to_recordset(${api.sql.json(rows)}) c (id text, at bigint) cross join links l where l.id = ${linkId}`;
}

const earn = async (creator: number, amountCents: number, occurredAt: number): Promise<string> =>
  await insertEarning(api, app, {
    affiliateId: affiliates[creator] ?? '',
    linkId: links[creator] ?? '',
    amountCents,
    occurredAt,
    dueAt: occurredAt + 30 * DAY_MS,
  });

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliates = [];
  links = [];
  for (const name of ['A', 'B', 'C', 'D']) {
    const id = await newAffiliate(api, app, { name });
    affiliates.push(id);
    links.push((await newLink(api, app, id, { slug: `slug-${name}` })).id);
  }
  await earn(0, 9_000, at(0));
  const taken = await earn(1, 500, at(40));
  await earn(1, 100, at(40, 5));
  await earn(2, 550, at(41));
  await insertReversal(api, taken, { amountCents: 200, occurredAt: at(42) });
  await click(links[0] ?? '', [at(0), at(40), at(41, 0.2)]);
  await click(links[2] ?? '', [at(40), at(40, 1), at(41), at(43)]);
  while ((await foldRollups(api.sql)) > 0);
  // What is not folded counts as well.
  await earn(1, 70, at(43));
  await click(links[0] ?? '', [at(43), at(43, 2), at(43, 3)]);
});
afterAll(async () => {
  await api.close();
});

describe('leaders', () => {
  // @promise get-leaders
  test('the creators and links of a range come in the order of their sums in it, whatever they had before', async () => {
    const range = { from: at(39), to: at(44) };
    const creators = await get(range);
    expect(creators.status).toBe(200);
    expect(creators.body).toMatchObject({
      ...range,
      by: 'affiliate',
      measure: 'commissions',
      complete: true,
    });
    expect(creators.body.leaders.map((row) => [row.affiliateName, row.commissionCents, row.linkId])).toEqual([
      ['C', 550, null],
      ['B', 470, null],
    ]);
    const byLink = await get({ ...range, by: 'link', measure: 'clicks' });
    expect(byLink.body.leaders.map((row) => [row.affiliateName, row.slug, row.linkId, row.clicks])).toEqual([
      ['A', 'slug-A', links[0], 5],
      ['C', 'slug-C', links[2], 4],
    ]);
    expect((await get({ from: at(-1), to: at(44) })).body.leaders.map((row) => row.affiliateName)).toEqual([
      'A',
      'C',
      'B',
    ]);
    expect((await get({ from: at(100), to: at(101) })).body).toMatchObject({ complete: true, leaders: [] });
  });

  test.each(LEADER_MEASURES)(
    'the sums by %s are those of the time series, whatever the range cuts',
    async (measure) => {
      const column = {
        commissions: 'commissionCents',
        revenue: 'revenueCents',
        clicks: 'clicks',
        installs: 'installs',
        paid: 'paidUsers',
      } as const;
      const appId = app.appId as AppId;
      for (const [from, to] of [
        [at(0), at(44)],
        [at(0) - 1, at(0, 0.3)],
        [at(39, 5), at(40, 5.5)],
        [at(40, 5.01), at(43, 2)],
        [at(41), at(41) + 1],
      ] as const) {
        const expected: [string, number][] = [];
        for (const id of affiliates) {
          const points = await readTimeseries(api.sql, appId, {
            from,
            to,
            interval: 'month',
            timezone: 'UTC',
            affiliateId: id,
            linkId: null,
          });
          const sum = (points ?? []).reduce((all, point) => all + point[column[measure]], 0);
          if (sum > 0) expected.push([id, sum]);
        }
        expected.sort(([one, left], [other, right]) => right - left || (one < other ? -1 : 1));
        const { rows, isComplete } = await readLeaders(api.sql, appId, {
          by: 'affiliate',
          measure,
          from,
          to,
        });
        expect(isComplete).toBe(true);
        expect(rows.map((row) => [row.affiliateId, row[column[measure]]])).toEqual(expected);
      }
    },
  );

  test('a range is compared completely while its sums are few, however many creators were active', async () => {
    const request = { by: 'affiliate', measure: 'commissions', from: at(-1), to: at(44) } as const;
    const all = await readLeaders(api.sql, app.appId as AppId, request, { compared: 1, examined: 100 });
    expect(all.isComplete).toBe(true);
    // B is neither the most active nor the first one of all time.
    expect(all.rows.map((row) => [row.affiliateName, row.commissionCents])).toEqual([
      ['A', 9_000],
      ['C', 550],
      ['B', 470],
    ]);
  });

  test('a list that compared only some creators says so, and its sums are exact', async () => {
    const request = { by: 'affiliate', measure: 'commissions', from: at(-1), to: at(44) } as const;
    const some = await readLeaders(api.sql, app.appId as AppId, request, { compared: 1, examined: 4 });
    expect(some.isComplete).toBe(false);
    // A has most of all time, and C is the most active of the latest sums.
    expect(some.rows.map((row) => [row.affiliateName, row.commissionCents])).toEqual([
      ['A', 9_000],
      ['C', 550],
    ]);
  });

  test.each([
    [{ from: at(1), to: at(1) }, 'from'],
    [{ from: at(0), to: at(401) }, 'from'],
    [{ by: 'customer' }, 'by'],
    [{ measure: 'luck' }, 'measure'],
  ])('leaders with %j are a 400 that names the field', async (query, path) => {
    expect(await get(query)).toMatchObject({ status: 400, body: { errors: [{ path }] } });
  });
});
