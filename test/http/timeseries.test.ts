import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { newId } from '../../src/db/new-id.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { instant } from '../../src/db/sql.ts';
import { readTimeseries } from '../../src/db/timeseries.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { FIRST_INSTANT } from '../../src/domain/instants.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { TIMESERIES_INTERVALS } from '../../src/domain/timeseries.ts';
import type { TimeseriesInterval } from '../../src/domain/timeseries.ts';
import { databaseTimeZone } from '../../src/http/time-zone.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';

const QUARTER_MS = HOUR_MS / 4;

let api: TestApi;
let app: TestApp;

interface Point {
  readonly at: number;
  readonly clicks: number;
  readonly installs: number;
  readonly identified: number;
  readonly paid: number;
  readonly revenueCents: number;
  readonly commissionCents: number;
}
interface Timeseries {
  readonly from: number;
  readonly to: number;
  readonly interval: string;
  readonly timezone: string;
  readonly points: readonly Point[];
}

const get = (query: Record<string, string | number>, owner = app) =>
  api.call<Timeseries>(
    'GET',
    `/apps/${owner.appId}/timeseries?${new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    ).toString()}`,
    { key: owner.key },
  );

async function pointsOf(query: Record<string, string | number>, owner = app): Promise<readonly Point[]> {
  const { status, body } = await get(query, owner);
  expect([status, status === 200 ? null : body]).toEqual([200, null]);
  return body.points;
}

/** Records clicks at these times in one statement. */
async function click(owner: TestApp, linkId: string, moments: readonly number[]): Promise<void> {
  const rows = moments.map((at) => ({ id: newId('click'), at }));
  await api.sql`
    insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
    select c.id, l.app_id, l.affiliate_id, l.id, gen_random_uuid(), false, to_timestamp(c.at / 1000.0)
      from jsonb_to_recordset(${api.sql.json(rows)}) c (id text, at bigint) cross join links l
     where l.app_id = ${owner.appId} and l.id = ${linkId}`;
}

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

describe('points', () => {
  // @promise get-timeseries, timeseries-zero-filled
  test('points are zero-filled with exactly the named sums, and the response repeats the parameters', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const { id: linkId } = await newLink(api, own, affiliateId);
    const from = Date.UTC(2026, 0, 1);
    await click(own, linkId, [from, from + DAY_MS - 1, from + 2 * DAY_MS]);
    await insertEarning(api, own, {
      affiliateId,
      amountCents: 250,
      occurredAt: from + 2 * DAY_MS + 5,
      dueAt: from + 90 * DAY_MS,
    });
    const nothing = {
      clicks: 0,
      installs: 0,
      identified: 0,
      paid: 0,
      revenueCents: 0,
      commissionCents: 0,
    };
    const to = from + 4 * DAY_MS;
    const { status, body } = await get({ from, to }, own);
    expect(status).toBe(200);
    expect(body).toEqual({
      from,
      to,
      interval: 'day',
      timezone: 'UTC',
      points: [
        { at: from, ...nothing, clicks: 2 },
        { at: from + DAY_MS, ...nothing },
        { at: from + 2 * DAY_MS, ...nothing, clicks: 1, installs: 1, identified: 1, commissionCents: 250 },
        { at: from + 3 * DAY_MS, ...nothing },
      ],
    });
  });

  test('points are the last 30 days by day by default', async () => {
    const { body } = await get({});
    expect(body).toMatchObject({
      to: api.clock.now,
      from: api.clock.now - 30 * DAY_MS,
      interval: 'day',
      timezone: 'UTC',
    });
    expect(body.points).toHaveLength(31);
  });

  test('a quarter of an hour counts as a whole if it begins between from and to', async () => {
    const own = await newApp(api);
    const { id: linkId } = await newLink(api, own, await newAffiliate(api, own));
    const noon = Date.UTC(2026, 0, 1, 12);
    await click(own, linkId, [noon - 1, noon, noon + QUARTER_MS - 1, noon + QUARTER_MS, noon + HOUR_MS]);
    const clicks = async (from: number, to: number) =>
      (await pointsOf({ from, to, interval: 'hour' }, own)).map((point) => [point.at - noon, point.clicks]);
    expect(await clicks(noon, noon + HOUR_MS)).toEqual([[0, 3]]);
    expect(await clicks(noon, noon + 1)).toEqual([[0, 2]]);
    expect(await clicks(noon + 1, noon + HOUR_MS)).toEqual([[0, 1]]);
    expect(await clicks(noon + QUARTER_MS + 1, noon + HOUR_MS)).toEqual([[0, 0]]);
    expect(await clicks(noon - QUARTER_MS, noon + HOUR_MS + 1)).toEqual([
      [-HOUR_MS, 1],
      [0, 3],
      [HOUR_MS, 1],
    ]);
  });

  // @promise timeseries-scope
  test('points of an affiliate or a link have only their data, and those of an unknown id have none', async () => {
    const own = await newApp(api);
    const [ann, bob] = [await newAffiliate(api, own), await newAffiliate(api, own)];
    const [one, two, three] = [
      await newLink(api, own, ann),
      await newLink(api, own, ann),
      await newLink(api, own, bob),
    ];
    const at = Date.UTC(2026, 0, 1, 5);
    await click(own, one.id, [at]);
    await click(own, two.id, [at, at]);
    await click(own, three.id, [at, at, at, at]);
    const clicks = async (filter: Record<string, string>, owner = own) =>
      (await pointsOf({ from: at, to: at + 1, ...filter }, owner)).map((point) => point.clicks);
    expect(await clicks({})).toEqual([7]);
    expect(await clicks({ affiliateId: ann })).toEqual([3]);
    expect(await clicks({ linkId: two.id })).toEqual([2]);
    expect(await clicks({ affiliateId: ann, linkId: two.id })).toEqual([2]);
    expect(await clicks({ affiliateId: bob, linkId: two.id })).toEqual([0]);
    expect(await clicks({ affiliateId: newId('affiliate') })).toEqual([0]);
    expect(await clicks({ affiliateId: 'nobody' })).toEqual([0]);
    expect(await clicks({ linkId: 'nothing' })).toEqual([0]);
    expect(await clicks({ affiliateId: ann, linkId: 'nothing' })).toEqual([0]);
    expect(await clicks({ affiliateId: ann }, app)).toEqual([0]);
    expect(await clicks({ linkId: one.id }, app)).toEqual([0]);
  });
});

describe('time zones', () => {
  const hours = (points: readonly Point[], to: number) =>
    points.map(({ at }, index) => ((points[index + 1]?.at ?? to) - at) / HOUR_MS);

  test('the length of a day follows daylight saving time', async () => {
    const days = async (timezone: string, from: string, to: string) => {
      const [start, end] = [Date.parse(from), Date.parse(to)];
      return hours(await pointsOf({ from: start, to: end, timezone }), end);
    };
    expect(await days('Europe/Berlin', '2026-03-28T00:00+01:00', '2026-03-31T00:00+02:00')).toEqual([
      24, 23, 24,
    ]);
    expect(await days('Europe/Berlin', '2026-10-24T00:00+02:00', '2026-10-27T00:00+01:00')).toEqual([
      24, 25, 24,
    ]);
    expect(await days('Australia/Lord_Howe', '2026-04-04T00:00+11:00', '2026-04-06T00:00+10:30')).toEqual([
      24, 24.5,
    ]);
    // Midnight is skipped, so the day begins at one o'clock.
    expect(await days('America/Sao_Paulo', '2018-11-03T00:00-03:00', '2018-11-05T00:00-02:00')).toEqual([
      24, 23,
    ]);
    // Midnight occurs twice, and the day begins with the first.
    expect(await days('America/Havana', '2025-11-01T00:00-04:00', '2025-11-04T00:00-05:00')).toEqual([
      24, 25, 24,
    ]);
    // The zone skipped 30 December.
    expect(await days('Pacific/Apia', '2011-12-28T00:00-10:00', '2012-01-01T00:00+14:00')).toEqual([
      24, 24, 24,
    ]);
  });

  // @promise timeseries-intervals
  test('a repeated hour is two points, and a repeated half hour lengthens its point', async () => {
    const [start, end] = [Date.parse('2026-10-25T01:00+02:00'), Date.parse('2026-10-25T04:00+01:00')];
    expect(
      hours(await pointsOf({ from: start, to: end, interval: 'hour', timezone: 'Europe/Berlin' }), end),
    ).toEqual([1, 1, 1, 1]);
    const [first, last] = [Date.parse('2026-04-05T00:00+11:00'), Date.parse('2026-04-05T03:00+10:30')];
    expect(
      hours(
        await pointsOf({ from: first, to: last, interval: 'hour', timezone: 'Australia/Lord_Howe' }),
        last,
      ),
    ).toEqual([1, 1.5, 1]);
  });

  // @promise timeseries-intervals
  test('weeks begin on Monday and months on the first', async () => {
    const from = Date.parse('2026-01-01T00:00+05:45');
    const to = Date.parse('2026-03-01T00:00+05:45');
    const begin = async (interval: string) =>
      (await pointsOf({ from, to, interval, timezone: 'Asia/Kathmandu' })).map(({ at }) =>
        new Date(at + 5.75 * HOUR_MS).toISOString().slice(0, 16),
      );
    expect(await begin('month')).toEqual(['2026-01-01T00:00', '2026-02-01T00:00']);
    expect((await begin('week')).slice(0, 3)).toEqual([
      '2025-12-29T00:00',
      '2026-01-05T00:00',
      '2026-01-12T00:00',
    ]);
  });

  test('a zone name works in any case and as an alias, and the response repeats it as sent', async () => {
    const from = Date.UTC(2026, 6, 1);
    const first = async (timezone: string) => {
      const { status, body } = await get({ from, to: from + 1, timezone });
      expect(body).toMatchObject({ timezone });
      return [status, body.points[0]?.at];
    };
    const kolkata = Date.parse('2026-07-01T00:00+05:30');
    for (const name of ['Asia/Kolkata', 'asia/kolkata', 'ASIA/CALCUTTA', 'Asia/Calcutta']) {
      expect(await first(name)).toEqual([200, kolkata]);
    }
    // Daylight saving time, which an abbreviation would not have.
    for (const name of ['CET', 'met', 'Europe/Brussels']) {
      expect(await first(name)).toEqual([200, Date.parse('2026-07-01T00:00+02:00')]);
    }
    expect(await first('EST5EDT')).toEqual([200, Date.parse('2026-06-30T00:00-04:00')]);
    expect(await first('Etc/GMT+5')).toEqual([200, Date.parse('2026-06-30T00:00-05:00')]);
    for (const name of ['UTC', 'gmt', 'Etc/UTC', 'Zulu']) expect(await first(name)).toEqual([200, from]);
  });

  test('a zone that the database lacks is a 400', async () => {
    const request = { from: 0, to: 1, interval: 'day', affiliateId: null, linkId: null } as const;
    const appId = app.appId as AppId;
    expect(await readTimeseries(api.sql, appId, { ...request, timezone: 'Nowhere/Land' })).toBeUndefined();
    expect(await readTimeseries(api.sql, appId, { ...request, timezone: 'UTC' })).toHaveLength(1);
  });

  test('every zone of the runtime has the same offsets in Postgres', async () => {
    const inPostgres = await api.sql<{ name: string }>`select name from pg_timezone_names`;
    const names = [
      ...new Set([...Intl.supportedValuesOf('timeZone'), ...inPostgres.map(({ name }) => name)]),
    ].filter((name) => databaseTimeZone(name) !== undefined);
    expect(names.length).toBeGreaterThan(500);
    const moments = [2016, 2020, 2024].flatMap((year) => [Date.UTC(year, 0, 10), Date.UTC(year, 6, 10)]);
    const rows = await api.sql<{ name: string; at: number; wall: string }>`
      select z.name, m.at::bigint as at, to_char(to_timestamp(m.at / 1000.0) at time zone z.zone, 'YYYY-MM-DD HH24:MI') as wall
        from jsonb_to_recordset(${api.sql.json(names.map((name) => ({ name, zone: databaseTimeZone(name) })))})
             z (name text, zone text)
       cross join jsonb_to_recordset(${api.sql.json(moments.map((at) => ({ at })))}) m (at bigint)`;
    expect(rows).toHaveLength(names.length * moments.length);
    const differing = rows.filter(
      ({ name, at, wall }) => wallClock(name).format(at).replace(',', '') !== wall,
    );
    expect(differing).toEqual([]);
  });
});

const clocks = new Map<string, Intl.DateTimeFormat>();

/** Returns the local time by the runtime's time zone data. */
function wallClock(timeZone: string): Intl.DateTimeFormat {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const formatter = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  clocks.set(timeZone, formatter);
  return formatter;
}

/** Returns the hour, day, week or month of an instant by the runtime's time zone data. */
function spanOf(at: number, interval: TimeseriesInterval, timezone: string): string {
  const [date = '', time = ''] = wallClock(timezone).format(at).split(' ');
  switch (interval) {
    case 'hour':
      return `${date} ${time.slice(0, 2)}`;
    case 'day':
      return date;
    case 'week': {
      const day = new Date(date);
      return new Date(day.getTime() - ((day.getUTCDay() + 6) % 7) * DAY_MS).toISOString().slice(0, 10);
    }
    case 'month':
      return date.slice(0, 7);
  }
}

describe('random facts', () => {
  const ZONES = [
    'UTC',
    'Europe/Berlin',
    'America/New_York',
    'Asia/Kolkata',
    'Asia/Kathmandu',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'America/Sao_Paulo',
    'Africa/Cairo',
    'Pacific/Apia',
    'America/Havana',
    'Atlantic/Azores',
  ];
  // Around clock changes of these zones, and around the turn of the year.
  const EDGES = [
    '2011-12-30T10:00Z',
    '2012-01-01T00:00Z',
    '2014-05-15T22:00Z',
    '2018-02-18T02:00Z',
    '2018-11-04T03:00Z',
    '2023-04-27T22:00Z',
    '2023-10-26T21:00Z',
    '2024-03-10T05:30Z',
    '2024-03-31T01:00Z',
    '2024-04-06T15:00Z',
    '2024-10-05T15:30Z',
    '2024-11-03T05:00Z',
    '2024-12-31T18:15Z',
    '2025-10-26T01:00Z',
  ].map((text) => Date.parse(text));
  const [FIRST, LAST] = [Date.UTC(2011, 11, 1), Date.UTC(2026, 5, 1)];

  /** Reproducible numbers between 0 and 1. */
  function random(seed: number): () => number {
    let state = seed;
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
  }

  let own: TestApp;
  let affiliateId: string;
  let linkId: string;

  beforeAll(async () => {
    own = await newApp(api);
    const affiliates = [await newAffiliate(api, own), await newAffiliate(api, own)];
    const links = [
      await newLink(api, own, affiliates[0] ?? ''),
      await newLink(api, own, affiliates[0] ?? ''),
      await newLink(api, own, affiliates[1] ?? ''),
    ];
    affiliateId = affiliates[0] ?? '';
    linkId = links[0]?.id ?? '';
    const next = random(20_260_615);
    const moment = () =>
      next() < 0.5
        ? Math.floor(FIRST + next() * (LAST - FIRST))
        : Math.floor((EDGES[Math.floor(next() * EDGES.length)] ?? 0) + (next() - 0.5) * 6 * HOUR_MS);
    for (const link of links) await click(own, link.id, Array.from({ length: 1_500 }, moment));
    for (let count = 0; count < 60; count += 1) {
      const occurredAt = moment();
      await insertEarning(api, own, {
        affiliateId: affiliates[count % 2] ?? '',
        amountCents: 1 + Math.floor(next() * 5_000),
        occurredAt,
        dueAt: occurredAt,
      });
    }
    const paid = await api.sql<{ paymentId: string; affiliateId: string }>`
      select payment_id, affiliate_id from commissions where app_id = ${own.appId}`;
    for (const { paymentId, affiliateId: owner } of paid) {
      await api.sql`
        insert into revenue_entries (payment_id, position, app_id, affiliate_id, amount_cents, occurred_at)
        values (${paymentId}, 1, ${own.appId}, ${owner}, ${5_000}, ${instant(moment())}),
               (${paymentId}, 2, ${own.appId}, ${owner}, ${-1_234}, ${instant(moment())})`;
    }
    await api.sql`
      update bindings set first_paid_at = identified_at where app_id = ${own.appId}`;
  });

  test('all random facts are in the sums', async () => {
    expect(await findRollupDifferences(api.sql)).toEqual([]);
  });

  const request = fc.record({
    timezone: fc.constantFrom(...ZONES),
    interval: fc.constantFrom(...TIMESERIES_INTERVALS),
    around: fc.option(fc.constantFrom(...EDGES), { nil: undefined }),
    position: fc.double({ min: 0, max: 1, noNaN: true }),
    points: fc.integer({ min: 1, max: 120 }),
    offsetMs: fc.integer({ min: 0, max: 2 * DAY_MS }),
    onQuarters: fc.boolean(),
    filter: fc.constantFrom('none', 'affiliate', 'link'),
  });
  const LENGTH_MS = { hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS };

  // @promise timeseries-zones
  test('points of random facts equal a count of the facts in every zone', async () => {
    await fc.assert(
      fc.asyncProperty(request, async ({ timezone, interval, points: wanted, filter, ...random_ }) => {
        const length = LENGTH_MS[interval] * wanted;
        const near =
          random_.around === undefined
            ? Math.floor(FIRST + random_.position * (LAST - FIRST))
            : random_.around - Math.floor(random_.position * length);
        const whole = (at: number) => (random_.onQuarters ? Math.floor(at / QUARTER_MS) * QUARTER_MS : at);
        const from = whole(near);
        // A request with a later `to` is a 400.
        const latest = api.clock.now + 366 * DAY_MS;
        const to = Math.min(whole(from + length + random_.offsetMs) + 1, latest);
        const points = await pointsOf(
          {
            from,
            to,
            interval,
            timezone,
            ...(filter === 'affiliate' ? { affiliateId } : filter === 'link' ? { linkId } : {}),
          },
          own,
        );

        // Postgres counts the facts themselves by the local time of the zone. A repeated hour is two.
        const label = (at: unknown) =>
          interval === 'hour'
            ? api.sql.fragment`date_trunc('hour', ${at}::timestamptz, ${timezone}::text)::text`
            : api.sql
                .fragment`date_trunc(${interval}::text, ${at}::timestamptz at time zone ${timezone}::text)::text`;
        const ofFilter =
          filter === 'affiliate'
            ? api.sql.fragment`and affiliate_id = ${affiliateId}`
            : filter === 'link'
              ? api.sql.fragment`and link_id = ${linkId}`
              : api.sql.fragment``;
        const counted = await api.sql<Record<string, number> & { label: string }>`
          select ${label(api.sql.fragment`at`)} as label, sum(clicks)::bigint as clicks, sum(installs)::bigint as installs,
                 sum(identified)::bigint as identified, sum(paid_users)::bigint as paid,
                 sum(revenue_cents)::bigint as revenue_cents, sum(commission_cents)::bigint as commission_cents
            from rollup_facts
           where app_id = ${own.appId} ${ofFilter} and rollup_bucket(at) >= ${instant(from)} and rollup_bucket(at) < ${instant(to)}
           group by 1`;
        const labelled = await api.sql<{ at: number; label: string }>`
          select p.at::bigint as at, ${label(api.sql.fragment`to_timestamp(p.at / 1000.0)`)} as label
            from jsonb_to_recordset(${api.sql.json(points.map(({ at }) => ({ at })))}) p (at bigint)`;
        const expected = new Map<number, Record<string, number>>();
        for (const { label: text, ...sums } of counted) {
          // For a repeated half hour date_trunc returns a half hour, which belongs to its hour.
          const of =
            labelled.find((row) => row.label === text)?.at ??
            (interval === 'hour' ? points.findLast(({ at }) => at <= Date.parse(text))?.at : undefined);
          if (of === undefined) throw new Error(`no point for ${text}`);
          const before = expected.get(of) ?? {};
          expected.set(
            of,
            Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum + (before[name] ?? 0)])),
          );
        }
        const found = new Map(
          points
            .map(({ at, ...sums }) => [at, sums] as const)
            .filter(([, sums]) => Object.values(sums).some((sum) => sum !== 0)),
        );
        for (const [at, sums] of expected) {
          if (Object.values(sums).every((sum) => sum === 0)) expected.delete(at);
        }
        expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));

        // The runtime's time zone data agree on where points begin and end.
        expect(points[0]?.at).toBeLessThanOrEqual(from);
        for (const [index, { at }] of points.entries()) {
          const until = points[index + 1]?.at ?? to;
          expect(until).toBeGreaterThan(at);
          expect(spanOf(until - 1, interval, timezone)).toBe(spanOf(at, interval, timezone));
          if (interval !== 'hour') {
            expect(spanOf(at - 1, interval, timezone)).not.toBe(spanOf(at, interval, timezone));
          } else {
            expect(until - at).toBeLessThanOrEqual(1.5 * HOUR_MS);
          }
        }
        expect(points.at(-1)?.at).toBeLessThan(to);
      }),
      { numRuns: 150, seed: 7 },
    );
  }, 120_000);
});

// @promise timeseries-1000-points
describe('parameters', () => {
  const now = Date.UTC(2026, 5, 15, 12);
  test.each([
    [{ interval: 'minute' }, 'interval'],
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
    [{ timezone: '' }, 'timezone'],
    [{ timezone: 'PST' }, 'timezone'],
    [{ timezone: 'ist' }, 'timezone'],
    [{ timezone: 'SystemV/PST8PDT' }, 'timezone'],
    [{ timezone: '+05:30' }, 'timezone'],
    [{ timezone: 'UTC+5' }, 'timezone'],
    [{ timezone: 'Foo5' }, 'timezone'],
    [{ timezone: 'Europe/Berlin ' }, 'timezone'],
    [{ timezone: '../etc/passwd' }, 'timezone'],
    [{ timezone: 'x'.repeat(70) }, 'timezone'],
    [{ from: 'yesterday' }, 'from'],
    [{ to: -1 }, 'to'],
    [{ from: now, to: now }, 'from'],
    [{ from: now, to: now - 1 }, 'from'],
    [{ from: now + 1 }, 'from'],
    [{ from: FIRST_INSTANT, to: FIRST_INSTANT + 1_001 * HOUR_MS, interval: 'hour' }, 'interval'],
    [{ from: FIRST_INSTANT, to: FIRST_INSTANT + 1_000 * HOUR_MS + 1, interval: 'hour' }, 'interval'],
    [{ from: FIRST_INSTANT, to: FIRST_INSTANT + 1_000 * DAY_MS + 1 }, 'interval'],
    [{ from: 0, to: now, interval: 'hour' }, 'interval'],
    [{ from: 0, to: now, interval: 'week' }, 'interval'],
  ])('a timeseries with %j is a 400 that names the field', async (query, path) => {
    expect(await get(query)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ path, message: expect.any(String) }] },
    });
  });

  // @promise timeseries-1000-points
  test('a timeseries may have a thousand points', async () => {
    const points = await pointsOf({ from: FIRST_INSTANT, to: FIRST_INSTANT + 1_000 * DAY_MS });
    expect(points).toHaveLength(1_000);
    expect(await pointsOf({ from: 0, to: Date.UTC(2027, 0, 1), interval: 'month' })).toHaveLength(684);
  });

  test('a timeseries may begin at the first and end at the last accepted instant', async () => {
    const last = now + 366 * DAY_MS;
    for (const interval of TIMESERIES_INTERVALS) {
      for (const timezone of ['Pacific/Apia', 'America/New_York']) {
        expect(
          await pointsOf({ from: FIRST_INSTANT, to: FIRST_INSTANT + 1, interval, timezone }),
        ).toHaveLength(1);
        expect(await pointsOf({ from: last - 1, to: last, interval, timezone })).toHaveLength(1);
      }
    }
  });

  test('a repeated parameter is a 400', async () => {
    const response = await api.call('GET', `/apps/${app.appId}/timeseries?interval=day&interval=hour`, {
      key: app.key,
    });
    expect(response.status).toBe(400);
  });
});
