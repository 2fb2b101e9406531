import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  listAffiliatesByCreated,
  listAffiliatesByEarnings,
  listAffiliatesByEmail,
  listAffiliatesByName,
} from '../../src/db/affiliate-lists.ts';
import { readCommissionTotal } from '../../src/db/commission-totals.ts';
import type { TotalsFilter } from '../../src/db/commission-totals.ts';
import { listLinks } from '../../src/db/links.ts';
import { matureOverdue } from '../../src/db/maturing.ts';
import { listNotPayable, previewEarlierPayouts, previewPayouts } from '../../src/db/payout-lists.ts';
import type { PreviewRow } from '../../src/db/payout-lists.ts';
import { ALL_COMMISSIONS, listCommissions, sumCommissions } from '../../src/db/commissions.ts';
import type { CommissionFilter } from '../../src/db/commissions.ts';
import type { Page, Position } from '../../src/db/page.ts';
import { findRollupDifferences, foldRollups, repairRollups } from '../../src/db/rollups.ts';
import type { AffiliateId, AppId, LinkId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { exampleId } from '../../src/http/fields.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Row extends Record<string, unknown> {
  readonly id: string;
}
interface ListPage {
  readonly items: Row[];
  readonly nextCursor: string | null;
}

const list = (path: string, owner = app) =>
  api.call<ListPage>('GET', `/apps/${owner.appId}${path}`, { key: owner.key });

/** Returns all rows of a list, read page by page. Calls `between` after each page. */
async function readPages(
  path: string,
  owner: TestApp,
  between: () => Promise<unknown> = async () => {},
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const sign = path.includes('?') ? '&' : '?';
    const { status, body }: { status: number; body: ListPage } = await list(
      path + (cursor === null ? '' : `${sign}cursor=${cursor}`),
      owner,
    );
    expect(status).toBe(200);
    rows.push(...body.items);
    cursor = body.nextCursor;
    await between();
  } while (cursor !== null);
  return rows;
}

describe('paging while rows are added', () => {
  test.each([['created'], ['name']])(
    'pages of affiliates by %s have each row of the start exactly once and in order',
    async (sort) => {
      const own = await newApp(api);
      const names = ['b', 'B', 'a', 'ä', 'C', 'a', '_', 'z', 'Z', '0', "a'b"];
      const before: string[] = [];
      for (const name of names) before.push(await newAffiliate(api, own, { name }));
      const rows = await readPages(`/affiliates?limit=2&sort=${sort}`, own, async () => {
        await newAffiliate(api, own, { name: 'aa' });
        await new Promise((resolve) => {
          setTimeout(resolve, 1);
        });
      }).catch((error: unknown) => {
        throw error;
      });
      const seen = rows.map((row) => row.id).filter((id) => before.includes(id));
      expect(seen).toHaveLength(before.length);
      expect(new Set(seen)).toEqual(new Set(before));
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
      if (sort === 'created') expect(seen).toEqual(before);
      else {
        const lowered = rows.map((row) => String(row['name']).toLowerCase());
        expect(lowered).toEqual(lowered.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }
    },
  );

  test('rows created in the same microsecond are returned once each', async () => {
    const own = await newApp(api);
    for (let index = 0; index < 7; index += 1) await newAffiliate(api, own);
    await api.sql`update affiliates set created_at = '2026-01-01 00:00:00.123457+00' where app_id = ${own.appId}`;
    expect(new Set((await readPages('/affiliates?limit=2', own)).map((row) => row.id)).size).toBe(7);
  });

  test('pages of commissions and payouts go from the latest to the first and have no row twice', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const earn = (occurredAt: number) =>
      insertEarning(api, own, { affiliateId, amountCents: 100, occurredAt, dueAt: occurredAt });
    const before: string[] = [];
    for (const at of [1000, 1001, 1001, 1002, 999]) before.push(await earn(Date.UTC(2026, 0, 1) + at));
    const rows = await readPages('/commissions?limit=2', own, () => earn(Date.UTC(2026, 0, 1) + 5000));
    const seen = rows.map((row) => row.id).filter((id) => before.includes(id));
    expect(seen.toSorted()).toEqual(before.toSorted());
    const times = rows.map((row) => Number(row['occurredAt']));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
  });
});

describe('affiliates', () => {
  // @promise affiliate-row-totals, get-affiliates
  test('affiliates have clicks, installs and commissions, and a status filters them', async () => {
    const own = await newApp(api);
    const [active, paused] = [await newAffiliate(api, own), await newAffiliate(api, own)];
    await api.call('PATCH', `/apps/${own.appId}/affiliates/${paused}`, {
      key: own.key,
      body: { status: 'paused' },
    });
    const { slug } = await newLink(api, own, active);
    for (let count = 0; count < 3; count += 1) {
      await api.call('POST', '/clicks', {
        body: { customerAppId: own.appId, slug, claimToken: randomUUID() },
      });
    }
    const occurredAt = Date.UTC(2026, 0, 1);
    await insertEarning(api, own, { affiliateId: active, amountCents: 250, occurredAt, dueAt: occurredAt });
    const { body } = await list('/affiliates', own);
    expect(body.items).toMatchObject([
      { id: active, clicks: 3, installs: 1, commissionCents: 250 },
      { id: paused, clicks: 0, installs: 0, commissionCents: 0 },
    ]);
    expect((await list('/affiliates?status=paused', own)).body.items.map((row) => row.id)).toEqual([paused]);
    expect((await list('/affiliates?status=removed', own)).body).toEqual({
      items: [],
      nextCursor: null,
      total: 0,
    });
  });

  // @promise sort-by-earnings
  test('affiliates by earnings are the top ones, then the oldest without earnings, page by page', async () => {
    const own = await newApp(api);
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      // Ids sort by their millisecond.
      api.clock.now += 1;
      ids.push(await newAffiliate(api, own));
    }
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = ids;
    const occurredAt = Date.UTC(2026, 0, 1);
    await insertEarning(api, own, { affiliateId: third, amountCents: 300, occurredAt, dueAt: occurredAt });
    await insertEarning(api, own, { affiliateId: fourth, amountCents: 900, occurredAt, dueAt: occurredAt });
    const pages = await readPages('/affiliates?sort=earnings&limit=2', own);
    expect(pages.map((row) => row.id)).toEqual([fourth, third, first, second, fifth]);
    expect((await list('/affiliates?sort=earnings&cursor=x', own)).status).toBe(400);
  });

  test('the order by earnings goes on through equal amounts, negative ones and what is not folded yet', async () => {
    const own = await newApp(api);
    const ids: string[] = [];
    for (let index = 0; index < 9; index += 1) {
      api.clock.now += 1;
      ids.push(await newAffiliate(api, own));
    }
    const occurredAt = Date.UTC(2026, 0, 1);
    const earn = async (index: number, amountCents: number) =>
      await insertEarning(api, own, {
        affiliateId: ids[index] ?? '',
        amountCents,
        occurredAt,
        dueAt: occurredAt,
      });
    await earn(2, 300);
    await earn(7, 300);
    const debt = await earn(4, 500);
    await foldRollups(api.sql, 100_000);
    // In the tail: one rises, one falls from the top to the end, one gets its first earning.
    await earn(7, 50);
    await insertReversal(api, debt, { amountCents: 500, occurredAt });
    const deduction = { category: 'other', amountCents: -600, reason: 'Paid twice', externalId: 'fee-1' };
    const { status } = await api.call('POST', `/apps/${own.appId}/affiliates/${ids[4] ?? ''}/entries`, {
      key: own.key,
      body: deduction,
    });
    expect(status).toBe(201);
    await earn(8, 20);
    for (const limit of [1, 2, 3, 100]) {
      const rows = await readPages(`/affiliates?sort=earnings&limit=${limit}`, own);
      expect(rows.map((row) => ids.indexOf(row.id))).toEqual([7, 2, 8, 0, 1, 3, 5, 6, 4]);
    }
  });

  test('`q` selects affiliates by a part of the name, address or `externalId` or by the id, with each status, order and page', async () => {
    const own = await newApp(api);
    const [ada = '', bert = '', cato = '', dora = ''] = await Promise.all(
      [
        { name: 'Zoë Lovelace', email: 'zoe@example.com' },
        { name: 'Bert', email: 'love@example.com' },
        { name: '100% Glove', externalId: 'crm-1' },
        { name: 'Dora', externalId: 'crm-2_LOVE' },
      ].map(async (fields) => await newAffiliate(api, own, fields)),
    );
    await newAffiliate(api, own, { name: 'Nobody' });
    await api.sql`update affiliates set status = 'paused' where id in (${bert}, ${dora})`;
    const occurredAt = Date.UTC(2026, 0, 1);
    await insertEarning(api, own, { affiliateId: dora, amountCents: 250, occurredAt, dueAt: occurredAt });
    const named = new Map([
      [ada, 'ada'],
      [bert, 'bert'],
      [cato, 'cato'],
      [dora, 'dora'],
    ]);
    const found = async (query: string) =>
      (await readPages(`/affiliates?limit=1&${query}`, own)).map(({ id }) => named.get(id) ?? 'other');
    expect((await found('q=LOVE')).toSorted()).toEqual(['ada', 'bert', 'cato', 'dora']);
    expect(await found('q=love&sort=name')).toEqual(['cato', 'bert', 'dora', 'ada']);
    expect(await found('q=love&sort=name&status=paused')).toEqual(['bert', 'dora']);
    expect((await found('q=love&sort=earnings'))[0]).toBe('dora');
    expect(await found('q=love&sort=earnings&status=paused')).toEqual(['dora', 'bert']);
    expect(await found('q=crm-1')).toEqual(['cato']);
    expect(await found('q=ZO%C3%8B')).toEqual(['ada']);
    // Not a pattern.
    expect(await found('q=%25')).toEqual(['cato']);
    expect(await found(`q=${dora}`)).toEqual(['dora']);
    expect(await found('q=nobody-has-this')).toEqual([]);
    const first = await list('/affiliates?q=love&limit=1', own);
    const cursor = first.body.nextCursor ?? '';
    expect((await list(`/affiliates?q=lov&limit=1&cursor=${cursor}`, own)).status).toBe(400);
    for (const other of ['email=a@example.com', 'externalId=crm-1'])
      expect((await list(`/affiliates?q=love&${other}`, own)).status).toBe(400);
  });

  // @promise notes-and-tags
  test('a note and tags are created, changed and cleared, stay as they are otherwise, and each tag finds its affiliates', async () => {
    const own = await newApp(api);
    const path = `/apps/${own.appId}/affiliates`;
    const send = async (method: string, at: string, body: object) =>
      await api.call(method, path + at, { key: own.key, body });
    const note = 'Calls on Mondays.\nNot in May.';
    const ada = await send('POST', '', {
      name: 'Ada',
      note: ` ${note.replace('\n', '\r\n')} `,
      tags: ['Video', 'spring', 'video'],
    });
    expect([ada.status, ada.body]).toMatchObject([201, { note, tags: ['video', 'spring'] }]);
    const rows = [{ name: 'Bea', tags: ['Spring'] }, { name: 'Cleo' }];
    const { body: bulk } = await send('POST', '/bulk', { rows });
    expect(bulk['created']).toMatchObject([{ tags: ['Spring'] }, { name: 'Cleo' }]);
    const named = async (query: string) =>
      (await readPages(`/affiliates?limit=1&${query}`, own)).map((row) => String(row['name']));
    for (const sort of ['created', 'name', 'earnings']) {
      // Those who have earned the same are in the order of their ids.
      const both = await named(`sort=${sort}&tag=SPRING`);
      expect(sort === 'earnings' ? both.toSorted() : both).toEqual(['Ada', 'Bea']);
      expect(await named(`sort=${sort}&tag=spring&q=be`)).toEqual(['Bea']);
      expect(await named(`sort=${sort}&tag=spr`)).toEqual([]);
    }
    expect((await list('/affiliates?tag=spring&email=a@example.com', own)).status).toBe(400);
    expect((await list('/affiliates?tag=spring', own)).body).not.toHaveProperty('total');
    const at = `/${String(ada.body['id'])}`;
    expect((await send('PATCH', at, { name: 'Ada L.' })).body).toMatchObject({
      note,
      tags: ['video', 'spring'],
    });
    const { body: changed } = await send('PATCH', at, { note: null, tags: [] });
    expect([changed['note'], changed['tags']]).toEqual([undefined, undefined]);
    const audit = await api.sql`
      select before, after from audit_rows where object_id = ${String(ada.body['id'])} order by id desc limit 1`;
    expect(audit).toEqual([
      { before: { note: '(not kept)', tags: ['video', 'spring'] }, after: { note: null, tags: [] } },
    ]);
    for (const [field, wrong] of [
      ['note', { note: '' }],
      ['note', { note: 'x'.repeat(2_001) }],
      ['note', { note: 'a\u0007' }],
      ['tags.0', { tags: [' '] }],
      ['tags.0', { tags: ['x'.repeat(41)] }],
      ['tags', { tags: Array.from({ length: 21 }, (_, nth) => `t${nth}`) }],
    ] as const)
      expect([wrong, await send('PATCH', at, wrong)]).toMatchObject([
        wrong,
        { status: 400, body: { errors: [{ path: field }] } },
      ]);
    await expect(
      api.sql`update affiliates set tags = array_fill('x'::text, array[21]) where app_id = ${own.appId}`,
    ).rejects.toThrow(/affiliates_tags_check/);
    await expect(api.sql`update affiliates set note = '' where app_id = ${own.appId}`).rejects.toThrow(
      /affiliates_note_check/,
    );
  });

  test('a page of a text examines a bounded number of affiliates and goes on after them', async () => {
    const own = await newApp(api);
    const ids: string[] = [];
    for (const name of ['Match 1', 'x', 'x', 'x', 'Match 2', 'x', 'Match 3']) {
      api.clock.now += 1;
      ids.push(await newAffiliate(api, own, { name }));
    }
    const filter = { status: null, externalId: null, text: 'match' };
    const reads = {
      created: listAffiliatesByCreated,
      name: listAffiliatesByName,
      earnings: listAffiliatesByEarnings,
    } as const;
    for (const read of Object.values(reads) as (typeof listAffiliatesByCreated)[]) {
      for (const examines of [1, 2, 3, 10]) {
        const found: string[] = [];
        let after: Position<number> | null = null;
        let pages = 0;
        do {
          const page: Page<{ id: string }, number> = await read(
            api.sql,
            own.appId as AppId,
            filter,
            after,
            1,
            examines,
          );
          found.push(...page.rows.map(({ id }) => id));
          after = page.next;
          pages += 1;
        } while (after !== null && pages < 20);
        expect([examines, found]).toEqual([examines, [ids[0], ids[4], ids[6]]]);
      }
    }
  });

  test('`total` is the number of affiliates on all pages, also after changes of the status; a text has none', async () => {
    const own = await newApp(api);
    const totalOf = async (query = '') =>
      (await list(`/affiliates?limit=1${query}`, own)).body as { total?: number };
    expect((await totalOf()).total).toBe(0);
    const [first = ''] = await Promise.all(
      Array.from({ length: 5 }, async () => await newAffiliate(api, own)),
    );
    await api.call('POST', `/apps/${own.appId}/affiliates/bulk`, {
      key: own.key,
      body: {
        rows: [{ name: 'One' }, { name: 'Two', externalId: 'two' }, { name: 'Three', externalId: 'two' }],
      },
    });
    for (const sort of ['created', 'name', 'earnings'])
      expect((await totalOf(`&sort=${sort}`)).total).toBe(7);
    for (const status of ['paused', 'removed', 'paused'])
      await api.call('PATCH', `/apps/${own.appId}/affiliates/${first}`, { key: own.key, body: { status } });
    await api.call('PATCH', `/apps/${own.appId}/affiliates/${first}`, {
      key: own.key,
      body: { name: 'New' },
    });
    const totals = await Promise.all(
      ['active', 'paused', 'removed'].map(async (status) => (await totalOf(`&status=${status}`)).total),
    );
    expect([...totals, (await totalOf()).total]).toEqual([6, 1, 0, 7]);
    for (const query of ['q=New', 'externalId=two', 'email=nobody@example.com'])
      expect(await totalOf(`&${query}`)).not.toHaveProperty('total');
  });
});

describe('filter of affiliates by e-mail address', () => {
  // @promise affiliates-by-external-id
  test('`externalId` selects the affiliate that has it, together with every other filter', async () => {
    const own = await newApp(api);
    const email = 'ann@example.com';
    const id = await newAffiliate(api, own, { externalId: 'crm 1', email });
    await newAffiliate(api, own, { externalId: 'crm 2', email });
    const idsOf = async (query: string) =>
      (await list(`/affiliates?${query}`, own)).body.items.map((row) => row.id);
    for (const query of [
      '',
      '&status=active',
      `&email=${email}`,
      `&email=${email}&status=active`,
      '&sort=created',
    ]) {
      expect(await idsOf(`externalId=crm+1${query}`)).toEqual([id]);
    }
    for (const query of ['crm+3', 'CRM+1', 'crm+1&status=paused', 'crm+1&email=bob@example.com']) {
      expect(await idsOf(`externalId=${query}`)).toEqual([]);
    }
    const sorted = await api.call('GET', `/apps/${own.appId}/affiliates?externalId=a&sort=name`, {
      key: own.key,
    });
    expect(sorted).toMatchObject({ status: 400, body: { errors: [{ path: 'sort' }] } });
  });

  // @promise affiliates-by-email
  test('an e-mail address selects its affiliates in any case, also with a status, page by page', async () => {
    const own = await newApp(api);
    const email = 'Ann@Example.com';
    const ids: string[] = [];
    for (const address of [email, 'bob@example.com', 'ann@example.com', 'ANN@example.com']) {
      ids.push(await newAffiliate(api, own, { email: address }));
    }
    const [first = '', , third = '', last = ''] = ids;
    await api.call('PATCH', `/apps/${own.appId}/affiliates/${third}`, {
      key: own.key,
      body: { status: 'paused' },
    });
    const idsOf = async (query: string) =>
      (await readPages(`/affiliates?limit=1&${query}`, own)).map(({ id }) => id);
    expect(await idsOf('email=ann@example.com')).toEqual([first, third, last]);
    expect(await idsOf('email=ann@EXAMPLE.com&status=active')).toEqual([first, last]);
    expect(await idsOf('email=nobody@example.com')).toEqual([]);
    const { nextCursor } = (await list('/affiliates?limit=1&email=ann@example.com', own)).body;
    for (const other of ['email=bob@example.com', 'sort=created']) {
      const response = await list(`/affiliates?limit=1&${other}&cursor=${nextCursor}`, own);
      expect(response).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
    }
    const walked: string[] = [];
    let after: Position<number> | null = null;
    do {
      const filter = { email, status: 'active' as const, externalId: null };
      const page: Page<{ id: string }, number> = await listAffiliatesByEmail(
        api.sql,
        own.appId as AppId,
        filter,
        after,
        1,
        2,
      );
      walked.push(...page.rows.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(walked).toEqual([first, last]);
    const { status, body } = await api.call(
      'GET',
      `/apps/${own.appId}/affiliates?email=a@example.com&sort=name`,
      {
        key: own.key,
      },
    );
    expect([status, body]).toMatchObject([400, { errors: [{ path: 'sort' }] }]);
  });
});

describe('links', () => {
  // @promise link-row-totals, get-links
  test("links have clicks, installs, revenue and the affiliate's name, and affiliate and state filter them", async () => {
    const own = await newApp(api);
    const [ann, bob] = [
      await newAffiliate(api, own, { name: 'Ann' }),
      await newAffiliate(api, own, { name: 'Bob' }),
    ];
    const [one, two, three] = [
      await newLink(api, own, ann),
      await newLink(api, own, ann),
      await newLink(api, own, bob),
    ];
    await api.call('PATCH', `/apps/${own.appId}/links/${two.id}`, { key: own.key, body: { active: false } });
    await api.call('POST', '/clicks', {
      body: { customerAppId: own.appId, slug: one.slug, claimToken: randomUUID() },
    });
    await insertEarning(api, own, {
      affiliateId: bob,
      linkId: three.id,
      amountCents: 100,
      occurredAt: 1_000,
      dueAt: 1_000,
    });
    await api.sql`
      insert into revenue_entries (payment_id, position, app_id, affiliate_id, link_id, amount_cents, occurred_at)
      select payment_id, 1, app_id, affiliate_id, link_id, 1234, occurred_at from commissions where link_id = ${three.id}`;
    const idsOf = async (query: string) =>
      (await list(`/links${query}`, own)).body.items.map((row) => row.id);
    expect((await list('/links', own)).body.items).toMatchObject([
      { id: one.id, affiliateName: 'Ann', clicks: 1, installs: 0, revenueCents: 0 },
      { id: two.id, affiliateName: 'Ann', clicks: 0, installs: 0, revenueCents: 0 },
      { id: three.id, affiliateName: 'Bob', clicks: 0, installs: 0, revenueCents: 1234 },
    ]);
    expect(await idsOf(`?affiliateId=${ann}`)).toEqual([one.id, two.id]);
    expect(await idsOf(`?affiliateId=${ann}&active=true`)).toEqual([one.id]);
    expect(await idsOf('?active=false')).toEqual([two.id]);
    expect(await idsOf('?affiliateId=nobody')).toEqual([]);
  });

  test('`q` selects links by a part of the slug, campaign or `externalId` or by the id, with each creator, state and page', async () => {
    const own = await newApp(api);
    const [ann, bob] = [
      await newAffiliate(api, own, { name: 'Ann' }),
      await newAffiliate(api, own, { name: 'Bob' }),
    ];
    const add = async (affiliateId: string, fields: object) =>
      (
        await api.call<{ id: string }>('POST', `/apps/${own.appId}/links`, {
          key: own.key,
          body: { affiliateId, destinationUrl: 'https://example.com/get', ...fields },
        })
      ).body.id;
    const one = await add(ann, { slug: 'The-Spring' });
    const two = await add(ann, { slug: 'aa_1', campaign: 'spring 100%' });
    const three = await add(bob, { slug: 'bb-1', externalId: 'SPRING-9' });
    await add(bob, { slug: 'other' });
    await api.call('PATCH', `/apps/${own.appId}/links/${two}`, { key: own.key, body: { active: false } });
    await api.call('PATCH', `/apps/${own.appId}/affiliates/${bob}`, {
      key: own.key,
      body: { status: 'paused' },
    });
    const found = async (query: string) =>
      (await readPages(`/links?limit=1&${query}`, own)).map(({ id }) => id);
    expect(await found('q=spring')).toEqual([one, two, three]);
    expect(await found('q=spring&active=true')).toEqual([one, three]);
    expect(await found(`q=spring&affiliateId=${ann}`)).toEqual([one, two]);
    expect(await found('q=%25')).toEqual([two]);
    expect(await found('q=_')).toEqual([two]);
    expect(await found(`q=${three}`)).toEqual([three]);
    expect(await found('q=nobody')).toEqual([]);
    const walked: string[] = [];
    let after: Position<number> | null = null;
    do {
      const filter = { affiliateId: null, active: null, text: 'spring-9' };
      const page: Page<{ id: string }, number> = await listLinks(
        api.sql,
        own.appId as AppId,
        filter,
        after,
        2,
        1,
      );
      walked.push(...page.rows.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(walked).toEqual([three]);
    const { body } = await list('/links?q=spring', own);
    expect(body.items.map((row) => row['affiliateStatus'])).toEqual(['active', 'active', 'paused']);
  });
});

describe('commissions', () => {
  // @promise usd-cents, commission-fields, get-commissions, commission-row, half-open-range
  test('affiliate, status and a half-open time range filter commissions', async () => {
    const own = await newApp(api);
    const [ann, bob] = [await newAffiliate(api, own, { name: 'Ann' }), await newAffiliate(api, own)];
    const at = Date.UTC(2026, 0, 1);
    const one = await insertEarning(api, own, {
      affiliateId: ann,
      amountCents: 100,
      occurredAt: at,
      dueAt: at + 5,
    });
    const two = await insertEarning(api, own, {
      affiliateId: ann,
      amountCents: 200,
      occurredAt: at + 1,
      dueAt: at + 6,
      matured: true,
    });
    const three = await insertEarning(api, own, {
      affiliateId: bob,
      amountCents: 300,
      occurredAt: at + 2,
      dueAt: at + 7,
    });
    const idsOf = async (query: string) =>
      (await list(`/commissions${query}`, own)).body.items.map((row) => row.id);
    expect(await idsOf('')).toEqual([three, two, one]);
    expect(await idsOf(`?affiliateId=${ann}`)).toEqual([two, one]);
    expect(await idsOf('?status=matured')).toEqual([two]);
    expect(await idsOf(`?affiliateId=${ann}&status=pending`)).toEqual([one]);
    expect(await idsOf(`?from=${at + 1}&to=${at + 2}`)).toEqual([two]);
    expect((await list('/commissions', own)).body.items[2]).toEqual({
      id: one,
      affiliateId: ann,
      affiliateName: 'Ann',
      linkId: null,
      eventId: expect.stringMatching(/^evt_/),
      kind: 'earning',
      reversesCommissionId: null,
      reason: null,
      status: 'pending',
      rateBps: 2000,
      baseCents: 500,
      amountCents: 100,
      currency: 'USD',
      source: 'stripe',
      customerUserId: expect.any(String),
      matchMethod: 'code',
      occurredAt: at,
      dueAt: at + 5,
      maturedAt: null,
      paidAt: null,
      payoutId: null,
      createdAt: expect.any(Number),
    });
  });
});

/** An app with commissions of two affiliates, two links and two providers: earnings, a reversal, and a payout. */
async function insertMixedCommissions() {
  const own = await newApp(api);
  const [ann, bob] = [await newAffiliate(api, own), await newAffiliate(api, own)];
  const [one, two] = [await newLink(api, own, ann), await newLink(api, own, ann)];
  const at = Date.UTC(2026, 0, 1);
  const earn = (affiliateId: string, turn: number, more: { linkId?: string; source?: string } = {}) =>
    insertEarning(api, own, {
      affiliateId,
      amountCents: 100,
      occurredAt: at + (turn % 7),
      dueAt: at,
      ...more,
    });
  for (let turn = 0; turn < 12; turn += 1) {
    const id = await earn(ann, turn, {
      ...(turn % 3 === 0 ? {} : { linkId: turn % 3 === 1 ? one.id : two.id }),
      source: turn % 4 === 0 ? 'paddle' : 'stripe',
    });
    if (turn % 5 === 0) await insertReversal(api, id, { amountCents: 40, occurredAt: at + turn });
    if (turn === 7) await payOut(api, own, ann);
    await earn(bob, turn);
  }
  await payOut(api, own, ann);
  await earn(ann, 3, { linkId: one.id });
  return { own, ann, one, two, at };
}

type ListedCommission = Awaited<ReturnType<typeof listCommissions>>['rows'][number];

describe('filters of commissions', () => {
  // @promise commissions-more-filters
  test('link, payout, kind and provider filter commissions, together with all other filters', async () => {
    const { own, ann, one } = await insertMixedCommissions();
    const all = (await list('/commissions?limit=100', own)).body.items;
    const payoutId = String(all.find((row) => row['payoutId'] !== null)?.['payoutId']);
    const customerUserId = String(all.find(({ kind }) => kind === 'reversal')?.['customerUserId']);
    for (const filter of [
      { customerUserId },
      { customerUserId, kind: 'earning', payoutId },
      { customerUserId: 'unknown' },
      { status: 'pending' },
      { status: 'paid', affiliateId: ann },
      { status: 'matured' },
      { status: 'pending', linkId: one.id },
      { linkId: one.id },
      { payoutId },
      { kind: 'reversal' },
      { kind: 'earning', source: 'paddle' },
      { source: 'stripe', status: 'pending' },
      { linkId: one.id, source: 'stripe', payoutId },
      { payoutId: exampleId('payout') },
      { linkId: 'unknown' },
    ]) {
      const { status, body } = await list(
        `/commissions?limit=100&${new URLSearchParams(filter).toString()}`,
        own,
      );
      const expected = all.filter((row) =>
        Object.entries(filter).every(([name, value]) => row[name] === value),
      );
      expect([status, filter, body.items]).toEqual([200, filter, expected]);
      const { body: totals } = await api.call(
        'GET',
        `/apps/${own.appId}/commissions/totals?${new URLSearchParams(filter).toString()}`,
        { key: own.key },
      );
      const totalCents = expected.reduce((sum, row) => sum + Number(row['amountCents']), 0);
      expect([filter, totals]).toEqual([filter, { from: null, to: null, totalCents }]);
    }
    expect(all.filter((row) => row['customerUserId'] === customerUserId)).toHaveLength(2);
  });

  // @promise commission-totals
  test('a sum of more rows than are read is none', async () => {
    const { own } = await insertMixedCommissions();
    const appId = own.appId as AppId;
    const earnings = { ...ALL_COMMISSIONS, kind: 'earning' as const };
    const { rows } = await listCommissions(api.sql, appId, ALL_COMMISSIONS, null, 100);
    const count = rows.filter(({ status }) => status === 'pending').length;
    const pending = { ...earnings, status: 'pending' as const };
    expect(await sumCommissions(api.sql, appId, pending, count)).toBeGreaterThan(0);
    expect(await sumCommissions(api.sql, appId, pending, count - 1)).toBeUndefined();
  });

  // @promise commissions-more-filters
  test('pages that examine few rows have each commission of any filters exactly once and in order', async () => {
    const { own, ann, one, at } = await insertMixedCommissions();
    const appId = own.appId as AppId;
    const all = (await listCommissions(api.sql, appId, ALL_COMMISSIONS, null, 100)).rows;
    const payoutId = all.find((row) => row.payoutId !== null)?.payoutId ?? null;
    const choices: { readonly [K in keyof CommissionFilter]: readonly CommissionFilter[K][] } = {
      affiliateId: [null, ann as AffiliateId],
      linkId: [null, one.id as LinkId],
      payoutId: [null, payoutId],
      status: [null, 'paid', 'pending'],
      kind: [null, 'earning', 'reversal', 'correction'],
      source: [null, 'stripe', 'paddle'],
      customerUserId: [null, all.find(({ kind }) => kind === 'reversal')?.customerUserId ?? ''],
      from: [null, at + 2],
      to: [null, at + 6],
    };
    let filters: CommissionFilter[] = [ALL_COMMISSIONS];
    for (const [name, values] of Object.entries(choices)) {
      filters = filters.flatMap((filter) => values.map((value) => ({ ...filter, [name]: value })));
    }
    // One combination in 23: each value occurs with each of the others.
    for (const filter of filters.filter((_, index) => index % 23 === 0)) {
      const read: ListedCommission[] = [];
      let after: Position<number> | null = null;
      do {
        const page: Page<ListedCommission, number> = await listCommissions(
          api.sql,
          appId,
          filter,
          after,
          2,
          3,
        );
        expect(page.rows.length).toBeLessThanOrEqual(2);
        read.push(...page.rows);
        after = page.next;
      } while (after !== null);
      const expected = all.filter((row) =>
        Object.entries(filter).every(([name, value]) =>
          name === 'from' || name === 'to'
            ? value === null || (name === 'from') === row.occurredAt >= Number(value)
            : value === null || row[name as keyof ListedCommission] === value,
        ),
      );
      expect([filter, read.map(({ id }) => id)]).toEqual([filter, expected.map(({ id }) => id)]);
    }
  });
});

describe('the payout preview', () => {
  // @promise not-due-not-paid, get-payout-preview, preview-as-of
  test('the payout preview sums matured and due commissions per affiliate, and no others', async () => {
    const own = await newApp(api);
    const [ann, bob, cid] = [
      await newAffiliate(api, own, { name: 'Ann' }),
      await newAffiliate(api, own, { name: 'Bob' }),
      await newAffiliate(api, own, { name: 'Cid' }),
    ];
    const { now } = api.clock;
    const occurredAt = now - DAY_MS;
    await insertEarning(api, own, {
      affiliateId: ann,
      amountCents: 100,
      occurredAt,
      dueAt: now - 1,
      matured: true,
    });
    await insertEarning(api, own, { affiliateId: ann, amountCents: 20, occurredAt, dueAt: now });
    await insertEarning(api, own, { affiliateId: ann, amountCents: 3, occurredAt, dueAt: now + 1 });
    await insertEarning(api, own, { affiliateId: bob, amountCents: 500, occurredAt, dueAt: now - 1 });
    await insertEarning(api, own, { affiliateId: cid, amountCents: 900, occurredAt, dueAt: now + 1 });
    const { status, body } = await api.call('GET', `/apps/${own.appId}/payouts/preview`, { key: own.key });
    expect(status).toBe(200);
    expect(body).toEqual({
      asOf: new Date(now).toISOString(),
      rows: [
        { affiliateId: bob, affiliateName: 'Bob', count: 1, totalCents: 500, moreRemains: false },
        { affiliateId: ann, affiliateName: 'Ann', count: 2, totalCents: 120, moreRemains: false },
      ],
      totalCents: 620,
    });
    const of = async (query: string) =>
      (await api.call('GET', `/apps/${own.appId}/payouts/preview?${query}`, { key: own.key })).body;
    expect(await of(`affiliateId=${ann}`)).toMatchObject({
      rows: [{ affiliateId: ann, count: 2, totalCents: 120 }],
      totalCents: 120,
    });
    for (const none of [cid, exampleId('affiliate'), 'none'])
      expect(await of(`affiliateId=${none}`)).toMatchObject({ rows: [], totalCents: 0 });
  });

  // @promise payout-preview-writes-nothing, preview-positive-only
  test('the payout preview leaves out affiliates with a net of zero or less, and writes nothing', async () => {
    const own = await newApp(api);
    const { now } = api.clock;
    const occurredAt = now - DAY_MS;
    for (const refundCents of [100, 99]) {
      const affiliateId = await newAffiliate(api, own);
      const earningId = await insertEarning(api, own, {
        affiliateId,
        amountCents: 100,
        occurredAt,
        dueAt: now,
      });
      await insertReversal(api, earningId, { amountCents: refundCents, occurredAt });
    }
    const owes = await newAffiliate(api, own);
    const paid = await insertEarning(api, own, {
      affiliateId: owes,
      amountCents: 100,
      occurredAt,
      dueAt: 1_000,
    });
    await payOut(api, own, owes);
    await insertReversal(api, paid, { amountCents: 40, occurredAt });
    const before = (await list('/commissions', own)).body;
    const { body } = await api.call('GET', `/apps/${own.appId}/payouts/preview`, { key: own.key });
    expect(body).toMatchObject({ rows: [{ count: 2, totalCents: 1 }], totalCents: 1 });
    expect((await list('/commissions', own)).body).toEqual(before);
    expect((await list('/payouts', own)).body.items).toHaveLength(1);
  });
});

describe('affiliates whom an export would pay nothing', () => {
  interface NotPayableList {
    readonly rows: readonly Record<string, unknown>[];
    readonly truncated: boolean;
  }
  const notPayable = async (owner: TestApp) =>
    (await api.call<NotPayableList>('GET', `/apps/${owner.appId}/payouts/not-payable`, { key: owner.key }))
      .body;

  // @promise not-payable
  test('each affiliate with unpaid commissions and nothing to pay is listed with the reason, and no other', async () => {
    const own = await newApp(api);
    const ids: string[] = [];
    for (const name of ['Due', 'Held', 'Held later', 'Negative', 'Reversed', 'Nothing'])
      ids.push(await newAffiliate(api, own, { name }));
    const [due = '', held = '', later = '', negative = '', reversed = ''] = ids;
    const { now } = api.clock;
    const occurredAt = now - 40 * DAY_MS;
    const earn = async (affiliateId: string, amountCents: number, dueAt = occurredAt) =>
      await insertEarning(api, own, { affiliateId, amountCents, occurredAt, dueAt, matured: dueAt < now });
    await earn(due, 500);
    await earn(due, 100, now + DAY_MS);
    await earn(later, 70, now + 9 * DAY_MS);
    await earn(held, 30, now + 3 * DAY_MS);
    await earn(held, 40, now + 4 * DAY_MS);
    const paid = await earn(negative, 900);
    await payOut(api, own, negative);
    await insertReversal(api, paid, { amountCents: 200, occurredAt });
    await earn(negative, 60, now + 2 * DAY_MS);
    await insertReversal(api, await earn(reversed, 80), { amountCents: 80, occurredAt });
    const expected = {
      rows: [
        ['Negative', 'negative_balance', -200, 60, now + 2 * DAY_MS],
        ['Reversed', 'reversed', 0, 0, null],
        ['Held', 'held', 0, 70, now + 3 * DAY_MS],
        ['Held later', 'held', 0, 70, now + 9 * DAY_MS],
      ],
      truncated: false,
    };
    const shown = async () => {
      const { rows, truncated } = await notPayable(own);
      return {
        rows: rows.map((row) => [
          row['affiliateName'],
          row['reason'],
          row['balanceCents'],
          row['heldCents'],
          row['nextDueAt'],
        ]),
        truncated,
      };
    };
    expect(await shown()).toEqual(expected);
    while ((await foldRollups(api.sql)) > 0);
    expect(await shown()).toEqual(expected);
    const id = own.appId as AppId;
    const names = async (limits: object) => {
      const { rows, isTruncated } = await listNotPayable(api.sql, id, now, limits);
      return [rows.map((row) => row.affiliateName), isTruncated];
    };
    expect(await names({ most: 1 })).toEqual([['Negative'], true]);
    expect(await names({ examined: 2 })).toEqual([['Negative', 'Reversed'], true]);
  });
});

test('creators who are not payable may be missing where only payable ones were examined', async () => {
  const own = await newApp(api);
  const affiliateId = await newAffiliate(api, own);
  const { now } = api.clock;
  for (const [dueAt, matured] of [
    [now - DAY_MS, true],
    [now + DAY_MS, false],
  ] as const)
    await insertEarning(api, own, {
      affiliateId,
      amountCents: 100,
      occurredAt: now - 9 * DAY_MS,
      dueAt,
      matured,
    });
  const listed = async (examined: number) =>
    await listNotPayable(api.sql, own.appId as AppId, now, { examined });
  expect(await listed(2)).toEqual({ rows: [], isTruncated: false });
  expect(await listed(1)).toEqual({ rows: [], isTruncated: true });
});

describe('the payout preview of an earlier instant', () => {
  // @promise preview-earlier
  test('the payout preview of an earlier instant equals the preview that was returned then', async () => {
    const own = await newApp(api);
    const appId = own.appId as AppId;
    const affiliates = [
      await newAffiliate(api, own),
      await newAffiliate(api, own),
      await newAffiliate(api, own),
    ];
    const earnings: string[] = [];
    const seen: { readonly at: number; readonly rows: readonly PreviewRow[] }[] = [];
    const look = async () => {
      await sleep(3);
      const { at } = await api.sql.one<{ at: number }>`select epoch_ms(clock_timestamp()) as at`;
      seen.push({ at, rows: await previewPayouts(api.sql, appId, at) });
    };
    const occurredAt = Date.UTC(2026, 0, 1);
    await look();
    for (let turn = 0; turn < 24; turn += 1) {
      const affiliateId = affiliates[(turn * 7) % 3] ?? '';
      const { at } = seen.at(-1) ?? { at: 0 };
      if (turn % 6 === 4) await payOut(api, own, affiliateId);
      else if (turn % 4 === 3) {
        await insertReversal(api, earnings[turn % earnings.length] ?? '', {
          amountCents: 7 + turn,
          occurredAt,
        });
      } else {
        // Some are due only when a later instant is reached, and some have matured.
        const dueAt = turn % 5 === 0 ? at + 400 : occurredAt;
        earnings.push(
          await insertEarning(api, own, {
            affiliateId,
            amountCents: 100 + turn,
            occurredAt,
            dueAt,
            matured: dueAt === occurredAt && turn % 2 === 0,
          }),
        );
      }
      await look();
    }
    const expectAsSeen = async () => {
      for (const { at, rows } of seen) {
        const earlier = await previewEarlierPayouts(api.sql, appId, at);
        expect(
          earlier?.map(({ affiliateId, count, totalCents }) => [affiliateId, count, totalCents]),
        ).toEqual(rows.map(({ affiliateId, count, totalCents }) => [affiliateId, count, totalCents]));
      }
    };
    // Before and after the overdue commissions mature.
    await expectAsSeen();
    await sleep(500);
    await matureOverdue(api.sql, 100);
    await look();
    expect(seen.some(({ rows }) => rows.length === 0) && seen.some(({ rows }) => rows.length > 1)).toBe(true);
    await expectAsSeen();
  });

  // @promise preview-earlier
  test('the payout preview takes an instant of the past, and refuses one that needs too many rows', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const { now } = api.clock;
    await insertEarning(api, own, {
      affiliateId,
      amountCents: 100,
      occurredAt: now,
      dueAt: now,
      matured: true,
    });
    const preview = (asOf: string) =>
      api.call('GET', `/apps/${own.appId}/payouts/preview?asOf=${asOf}`, { key: own.key });
    const { body } = await preview('2026-05-31T22:00:00Z');
    expect(body).toEqual({ asOf: '2026-05-31T22:00:00.000Z', rows: [], totalCents: 0 });
    expect(await preview(String(now + 1))).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'asOf' }] },
    });
    const [appId, at] = [own.appId as AppId, Date.UTC(2026, 4, 31)];
    expect(await previewEarlierPayouts(api.sql, appId, at, 1)).toEqual([]);
    await insertEarning(api, own, {
      affiliateId,
      amountCents: 1,
      occurredAt: now,
      dueAt: now,
      matured: true,
    });
    expect(await previewEarlierPayouts(api.sql, appId, at, 1)).toBeUndefined();
  });
});

describe('totals of commissions', () => {
  // @promise commission-totals
  test('the total of a range equals the sum of the listed commissions, whatever its limits, affiliate and link', async () => {
    const own = await newApp(api);
    const [ann, bob] = [await newAffiliate(api, own), await newAffiliate(api, own)];
    const link = await newLink(api, own, ann);
    const start = Date.UTC(2026, 0, 1, 5, 50);
    // Minutes from the start. Blocks of six hours begin at 10, 370, 730 and 1090, quarter hours at 10, 25, …
    const minutes = [0, 9, 10, 11, 24, 25, 100, 369, 370, 371, 500, 730, 740, 1090, 1100, 1500];
    for (const [index, minute] of minutes.entries()) {
      const id = await insertEarning(api, own, {
        affiliateId: index % 3 === 0 ? bob : ann,
        amountCents: 2 ** index,
        occurredAt: start + minute * MINUTE_MS,
        dueAt: start,
        ...(index % 3 === 1 ? { linkId: link.id } : {}),
      });
      if (index === 7)
        await insertReversal(api, id, { amountCents: 50, occurredAt: start + 745 * MINUTE_MS });
    }
    const limits = [null, 5, 9, 10, 12, 24, 25, 370, 371, 375, 735, 741, 1101];
    const all = (await list('/commissions?limit=100', own)).body.items;
    for (const who of [
      {},
      { affiliateId: ann },
      { linkId: link.id },
      { affiliateId: bob, linkId: link.id },
    ]) {
      for (const from of limits) {
        for (const to of limits.filter(
          (limit, index) => limit === null || index % 2 === limits.indexOf(from) % 2,
        )) {
          const at = (minute: number | null) => (minute === null ? null : start + minute * MINUTE_MS);
          const filter = {
            affiliateId: null,
            linkId: null,
            ...who,
            from: at(from),
            to: at(to),
          } as TotalsFilter;
          const expected = all
            .filter(
              (row) =>
                Object.entries(who).every(([name, value]) => row[name] === value) &&
                Number(row['occurredAt']) >= (filter.from ?? 0) &&
                Number(row['occurredAt']) < (filter.to ?? Infinity),
            )
            .reduce((sum, row) => sum + Number(row['amountCents']), 0);
          const total = await readCommissionTotal(api.sql, own.appId as AppId, filter);
          expect([who, from, to, total]).toEqual([who, from, to, expected]);
        }
      }
    }
    const { body } = await api.call(
      'GET',
      `/apps/${own.appId}/commissions/totals?affiliateId=${ann}&from=${start}`,
      {
        key: own.key,
      },
    );
    const ofAnn = all.filter((row) => row['affiliateId'] === ann);
    const expected = ofAnn.reduce((sum, row) => sum + Number(row['amountCents']), 0);
    expect(body).toEqual({ from: start, to: null, totalCents: expected });
    const unknown = await api.call('GET', `/apps/${own.appId}/commissions/totals?affiliateId=none`, {
      key: own.key,
    });
    expect(unknown.body).toEqual({ from: null, to: null, totalCents: 0 });
  });
});

describe('a page', () => {
  // @promise list-shape, list-limit, page-of-50
  test('a page has fifty rows by default and at most a hundred, and the last page has no cursor', async () => {
    const own = await newApp(api);
    const at = Date.UTC(2026, 0, 1);
    const names = Array.from({ length: 100 }, (_, index) => ({ name: `Creator ${index}` }));
    await api.call('POST', `/apps/${own.appId}/affiliates/bulk`, { key: own.key, body: { rows: names } });
    const affiliateId = await newAffiliate(api, own);
    const links = names.map(() => ({ affiliateId, destinationUrl: 'https://example.com' }));
    await api.call('POST', `/apps/${own.appId}/links/bulk`, { key: own.key, body: { rows: links } });
    await newLink(api, own, affiliateId);
    for (let created = 0; created < 101; created += 1) {
      await insertEarning(api, own, { affiliateId, amountCents: 1, occurredAt: at, dueAt: at });
      await payOut(api, own, affiliateId);
    }
    for (const path of ['/affiliates', '/affiliates?sort=name', '/links', '/commissions', '/payouts']) {
      const lengths = [];
      for (const limit of [null, 100, 1]) {
        const sign = path.includes('?') ? '&' : '?';
        const { body } = await list(path + (limit === null ? '' : `${sign}limit=${limit}`), own);
        lengths.push(body.items.length);
        expect(body.nextCursor).not.toBeNull();
      }
      expect([path, ...lengths]).toEqual([path, 50, 100, 1]);
      expect(await readPages(path, own)).toHaveLength(101);
    }
  });
});

describe('invalid parameters', () => {
  // @promise page-over-100, instant-in-filter, list-query-400
  test.each([
    ['/affiliates?limit=0'],
    ['/affiliates?limit=101'],
    ['/links?limit=101'],
    ['/commissions?limit=101'],
    ['/payouts?limit=101'],
    ['/affiliates?limit=x'],
    ['/affiliates?limit='],
    ['/affiliates?limit=1&limit=2'],
    ['/affiliates?status=gone'],
    ['/affiliates?sort=clicks'],
    ['/affiliates?cursor=%00'],
    ['/links?active=yes'],
    ['/links?cursor=e30'],
    ['/commissions?status=open'],
    ['/commissions?from=yesterday'],
    ['/commissions?to=99999999999999999'],
    ['/payouts?cursor='],
    ['/payouts?limit=1.5'],
  ])('GET %s is a 400', async (path) => {
    expect((await list(path)).status).toBe(400);
  });

  // @promise cursor-400
  test('a changed cursor, or one of another list, app, filter or sort, is a 400', async () => {
    const own = await newApp(api);
    for (let index = 0; index < 3; index += 1) await newLink(api, own, await newAffiliate(api, own));
    const { nextCursor } = (await list('/affiliates?limit=1', own)).body;
    const cursor = nextCursor ?? '';
    expect((await list(`/affiliates?limit=2&cursor=${cursor}`, own)).status).toBe(200);
    const [sortKey, id, sum] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [
      number,
      string,
      string,
    ];
    const changed = Buffer.from(JSON.stringify([sortKey + 1, id, sum])).toString('base64url');
    for (const path of [
      `/links?cursor=${cursor}`,
      `/affiliates?sort=name&cursor=${cursor}`,
      `/affiliates?status=active&cursor=${cursor}`,
      `/affiliates?cursor=${cursor.slice(0, -3)}`,
      `/affiliates?cursor=${changed}`,
    ]) {
      expect(await list(path, own)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
    }
    expect((await list(`/affiliates?cursor=${cursor}`)).status).toBe(400);
  });
});

describe('roll-ups', () => {
  test('roll-ups equal the facts after these tests, and a wrong sum is reported and repaired', async () => {
    expect(await findRollupDifferences(api.sql)).toEqual([]);
    while ((await foldRollups(api.sql)) > 0);
    expect(await findRollupDifferences(api.sql)).toEqual([]);
    await api.sql`
      update rollups set clicks = clicks + 7 where (app_id, scope, scope_id, bucket_at) in (
        select app_id, scope, scope_id, bucket_at from rollups where scope = 'link' and bucket_at = '-infinity' limit 1)`;
    expect(await findRollupDifferences(api.sql)).toEqual([
      expect.objectContaining({ scope: 'link', bucketAt: null, differs: ['clicks is 7 too high'] }),
    ]);
    expect(await repairRollups(api.sql)).toBe(1);
    expect(await findRollupDifferences(api.sql)).toEqual([]);
  });
});
