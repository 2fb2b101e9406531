import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { recordsOf } from '../../src/db/payout-csv.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';

// Single reads, search and CSV of lists: what pages for founders need beyond the lists.

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const get = async <T = Record<string, unknown>>(path: string, owner = app, headers = {}) =>
  await api.call<T>('GET', `/apps/${owner.appId}${path}`, { key: owner.key, headers });

describe('single reads', () => {
  // @promise get-affiliate
  test('an affiliate alone has the same fields as in the list', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own, { name: 'Ada', email: 'ada@example.com' });
    await insertEarning(api, own, { affiliateId, amountCents: 321, occurredAt: 1_000, dueAt: 1_000 });
    const { status, body } = await get(`/affiliates/${affiliateId}`, own);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: affiliateId, name: 'Ada', commissionCents: 321 });
    expect((await get('/affiliates', own)).body).toMatchObject({ items: [body] });
  });

  // @promise get-payout
  test('a payout names the key that paid it, alone and in the list', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const occurredAt = api.clock.now - DAY_MS;
    await insertEarning(api, own, { affiliateId, amountCents: 100, occurredAt, dueAt: 1_000 });
    const payoutId = await payOut(api, own, affiliateId);
    const { status, body } = await get(`/payouts/${payoutId}`, own);
    expect(status).toBe(200);
    const [key] =
      await api.sql`select id, label, display from account_keys where account_id = ${own.accountId}`;
    expect(body).toMatchObject({ id: payoutId, affiliateId, totalCents: 100, createdBy: key });
    const { transfers, ...listed } = body;
    expect(transfers).toEqual([]);
    expect((await get('/payouts', own)).body).toMatchObject({ items: [listed] });
  });
});

describe('transfers', () => {
  interface Transfer {
    readonly id: string;
    readonly state: string;
  }

  const paid = async (own: TestApp): Promise<string> => {
    const affiliateId = await newAffiliate(api, own);
    await insertEarning(api, own, { affiliateId, amountCents: 100, occurredAt: 1_000, dueAt: 1_000 });
    return (await payOut(api, own, affiliateId)) ?? '';
  };
  const state = async (own: TestApp, payoutId: string, body: object, headers = {}) =>
    await api.call<Transfer>('POST', `/apps/${own.appId}/payouts/${payoutId}/transfers`, {
      key: own.key,
      body,
      headers,
    });

  // @promise post-transfer
  test('statements about the money of a payout are appended, in a possible order only', async () => {
    const own = await newApp(api);
    const payoutId = await paid(own);
    for (const early of ['returned', 'withdrawn', 'return_withdrawn']) {
      const refused = await state(own, payoutId, { state: early });
      expect([refused.status, refused.body]).toEqual([
        409,
        expect.objectContaining({ code: 'transfer_not_possible' }),
      ]);
    }
    const sent = await state(own, payoutId, {
      state: 'sent',
      method: 'bank transfer',
      reference: '17',
      note: 'May',
    });
    expect(sent.status).toBe(201);
    expect((await state(own, payoutId, { state: 'sent' })).status).toBe(409);
    for (const next of ['returned', 'sent', 'withdrawn', 'sent'])
      expect((await state(own, payoutId, { state: next })).status).toBe(201);
    const { body } = await get<{ totalCents: number; transfers: readonly Transfer[] }>(
      `/payouts/${payoutId}`,
      own,
    );
    expect(body.transfers.map((row) => row.state)).toEqual(['sent', 'withdrawn', 'sent', 'returned', 'sent']);
    expect(body.transfers.at(-1)).toEqual(sent.body);
    expect(sent.body).toMatchObject({ method: 'bank transfer', reference: '17', note: 'May' });
    const [key] =
      await api.sql`select id, label, display from account_keys where account_id = ${own.accountId}`;
    expect(sent.body).toMatchObject({ createdBy: key });
    expect((await state(own, payoutId, { state: 'lost' })).status).toBe(400);
  });

  test('a return that was stated by mistake is withdrawn, and the money counts as sent again', async () => {
    const own = await newApp(api);
    const payoutId = await paid(own);
    const steps: readonly (readonly [string, number])[] = [
      ['sent', 201],
      ['return_withdrawn', 409],
      ['returned', 201],
      ['withdrawn', 409],
      ['return_withdrawn', 201],
      ['return_withdrawn', 409],
      ['sent', 409],
      ['returned', 201],
      ['return_withdrawn', 201],
      ['withdrawn', 201],
      ['returned', 409],
    ];
    for (const [next, status] of steps)
      expect([next, (await state(own, payoutId, { state: next })).status]).toEqual([next, status]);
    await expect(
      api.sql`
        insert into payout_transfers (id, app_id, payout_id, position, state, previous_position, previous_state, account_id, key_id)
        select 'trf_01kbf2z4x8e0rvq1n3m5t7w9yc', app_id, payout_id, position + 1, 'return_withdrawn', position, state, account_id, key_id
          from payout_transfers where payout_id = ${payoutId} order by position desc limit 1`,
    ).rejects.toThrow('transfer_state_is_possible');
  });

  test('of ten calls at once one states that the money was sent, and a call that is repeated returns its statement', async () => {
    const own = await newApp(api);
    const payoutId = await paid(own);
    const calls = await Promise.all(
      Array.from({ length: 10 }, async () => await state(own, payoutId, { state: 'sent' })),
    );
    expect(calls.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      201,
      ...Array.from({ length: 9 }, () => 409),
    ]);
    const again = { 'idempotency-key': 'once' };
    const first = await state(own, payoutId, { state: 'returned' }, again);
    const second = await state(own, payoutId, { state: 'returned' }, again);
    expect([first.status, second.body]).toEqual([201, first.body]);
    const rows =
      await api.sql`select position from payout_transfers where payout_id = ${payoutId} order by 1`;
    expect(rows).toEqual([{ position: 1 }, { position: 2 }]);
  });

  // @promise transfers-append-only
  test('the database refuses to change a statement, to delete it, and to add one that cannot follow', async () => {
    const own = await newApp(api);
    const payoutId = await paid(own);
    await state(own, payoutId, { state: 'sent' });
    const refused: readonly (readonly [string, Promise<unknown>])[] = [
      ['update', api.sql`update payout_transfers set state = 'returned' where payout_id = ${payoutId}`],
      ['delete', api.sql`delete from payout_transfers where payout_id = ${payoutId}`],
      ...(['sent', 'returned'] as const).map(
        (next, index) =>
          [
            `${next} at position ${index + 2} after ${index === 0 ? 'sent' : 'a wrong state'}`,
            api.sql`
              insert into payout_transfers (id, app_id, payout_id, position, state, previous_position, previous_state, account_id, key_id)
              select 'trf_01kbf2z4x8e0rvq1n3m5t7w9yc', app_id, payout_id, 2, ${next}, 1, ${index === 0 ? 'sent' : 'returned'}, account_id, key_id
                from payout_transfers where payout_id = ${payoutId}`,
          ] as const,
      ),
    ];
    for (const [what, statement] of refused)
      expect([
        what,
        await statement.then(
          () => 'accepted',
          () => 'refused',
        ),
      ]).toEqual([what, 'refused']);
    const rows = await api.sql`select position, state from payout_transfers where payout_id = ${payoutId}`;
    expect(rows).toEqual([{ position: 1, state: 'sent' }]);
  });
});

describe('search', () => {
  interface Found {
    readonly affiliates: readonly { readonly id: string; readonly name: string }[];
    readonly links: readonly { readonly slug: string }[];
    readonly codes: readonly { readonly id: string }[];
    readonly events: readonly { readonly eventId: string }[];
  }

  // @promise search
  test('a text finds affiliates and links by their beginnings, and affiliates by any part of the name', async () => {
    const own = await newApp(api);
    const ada = await newAffiliate(api, own, {
      name: 'Ada Lovelace',
      email: 'Countess@example.com',
      externalId: 'crm-1',
    });
    const grace = await newAffiliate(api, own, { name: 'Grace 100% Hopper', email: 'grace@example.com' });
    const link = await newLink(api, own, ada, { slug: 'Spring_Sale', externalId: 'ad-7' });
    const other = await newApp(api);
    await newAffiliate(api, other, { name: 'Ada Lovelace', email: 'countess@example.com' });
    const idsOf = async (q: string) => {
      const { status, body } = await get<Found>(`/search?q=${encodeURIComponent(q)}`, own);
      expect(status).toBe(200);
      return [...body.affiliates.map(({ id }) => id), ...body.links.map(({ slug }) => slug)];
    };
    for (const q of ['ada', 'LOVE', 'countess@', 'crm-', ada, 'a love'])
      expect([q, await idsOf(q)]).toEqual([q, [ada]]);
    for (const q of ['100%', 'grace']) expect([q, await idsOf(q)]).toEqual([q, [grace]]);
    for (const q of ['spring', 'SPRING_SALE', 'ad-7', link.id])
      expect([q, await idsOf(q)]).toEqual([q, ['Spring_Sale']]);
    // The characters of patterns mean themselves.
    for (const q of ['%', '_', 'example.com', 'sale'])
      expect([q, await idsOf(q)]).toEqual([q, q === '%' ? [grace] : []]);
    expect(await idsOf('a')).toEqual([ada, grace, 'Spring_Sale']);
    expect((await get('/search', own)).status).toBe(400);
  });

  // @promise search
  test('a text finds codes by their beginning, those that work first, and events by their id, transaction and user', async () => {
    const own = await newApp(api);
    const ada = await newAffiliate(api, own);
    const other = await newApp(api);
    const theirs = await newAffiliate(api, other);
    const add = async (owner: TestApp, affiliateId: string, code: object): Promise<string> => {
      const path = `/apps/${owner.appId}/affiliates/${affiliateId}/codes`;
      const { status, body } = await api.call<{ id: string }>('POST', path, { key: owner.key, body: code });
      expect([status, body]).toMatchObject([201, {}]);
      return body.id;
    };
    const old = await add(own, ada, { namespace: 'app_store', value: 'SPRING20' });
    await api.call('POST', `/apps/${own.appId}/codes/${old}/deactivate`, { key: own.key });
    const store = await add(own, ada, { namespace: 'play_store', value: 'spring30' });
    const stripe = await add(own, ada, { namespace: 'stripe', value: 'SPRING40', externalId: 'promo_1AB' });
    await add(other, theirs, { namespace: 'app_store', value: 'SPRING50' });
    const find = async (q: string) => (await get<Found>(`/search?q=${encodeURIComponent(q)}`, own)).body;
    const codesOf = async (q: string) => (await find(q)).codes.map(({ id }) => id);
    expect(await codesOf('Spring')).toEqual([store, stripe, old]);
    for (const q of ['spring40', 'promo_1', stripe]) expect([q, await codesOf(q)]).toEqual([q, [stripe]]);
    // Deactivated ones do not hide the one that works, of however many the text is the beginning.
    for (let turn = 0; turn < 21; turn += 1) {
      const id = await add(own, ada, { namespace: 'attribute', value: 'SUMMER' });
      await api.call('POST', `/apps/${own.appId}/codes/${id}/deactivate`, { key: own.key });
    }
    const works = await add(own, ada, { namespace: 'attribute', value: 'SUMMER' });
    const summer = await codesOf('summer');
    expect([summer[0], summer.length]).toEqual([works, 20]);
    for (const q of ['pring', 'PROMO_1', 'spring50', '%']) expect([q, await codesOf(q)]).toEqual([q, []]);

    const at = api.clock.now - DAY_MS;
    await insertEarning(api, other, { affiliateId: theirs, amountCents: 1, occurredAt: at, dueAt: at });
    for (const occurredAt of [at, at + 1])
      await insertEarning(api, own, { affiliateId: ada, amountCents: 1, occurredAt, dueAt: at });
    await api.sql`update events set payment_ref = 'GPA.1234' where app_id in (${own.appId}, ${other.appId})`;
    const stored = await api.sql<{ id: string; sourceEventId: string }>`
      select id, source_event_id from events where app_id = ${own.appId} order by occurred_at desc`;
    const eventsOf = async (q: string) => (await find(q)).events.map(({ eventId }) => eventId);
    expect(await eventsOf('GPA.1234')).toEqual(stored.map(({ id }) => id));
    expect(await eventsOf(stored[1]?.sourceEventId ?? '')).toEqual([stored[1]?.id]);
    expect(await eventsOf('GPA.123')).toEqual([]);
    await api.sql`update events set customer_user_id = 'user 7' where id = ${String(stored[0]?.id)}`;
    expect((await find('user 7')).events).toMatchObject([
      { eventId: stored[0]?.id, customerUserId: 'user 7' },
    ]);
  });
});

describe('lists as CSV', () => {
  const csv = async (path: string, owner: TestApp) => await get(path, owner, { accept: 'text/csv' });

  // @promise lists-as-csv
  test('commissions as CSV have the fields and rows of the list, whatever the limit is', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own, { name: '=cmd(), "Ada"' });
    const occurredAt = api.clock.now - DAY_MS;
    const earningId = await insertEarning(api, own, {
      affiliateId,
      amountCents: 500,
      occurredAt,
      dueAt: occurredAt,
    });
    await insertReversal(api, earningId, { amountCents: 120, occurredAt: api.clock.now });
    const { status, headers, text } = await csv('/commissions?limit=1', own);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(headers.get('x-next-cursor')).toBeNull();
    expect(headers.get('vary')).toContain('Accept');
    const { items } = (await get<{ items: Record<string, unknown>[] }>('/commissions', own)).body;
    const [head = ''] = text.split('\r\n');
    expect(head.split(',')).toEqual(Object.keys(items[0] ?? {}));
    const records = [...recordsOf(text)];
    expect(records.map((record) => [record['amountCents'], record['kind'], record['occurredAt']])).toEqual([
      ['-120', 'reversal', new Date(api.clock.now).toISOString()],
      ['500', 'earning', new Date(occurredAt).toISOString()],
    ]);
    // A spreadsheet shows a formula as text.
    expect(records[0]?.['affiliateName']).toBe('\'=cmd(), "Ada"');
    const filtered = await csv('/commissions?kind=reversal', own);
    expect([...recordsOf(filtered.text)].map((record) => record['reversesCommissionId'])).toEqual([
      earningId,
    ]);
  });

  test.each([['affiliates'], ['links'], ['payouts'], ['commissions']])(
    'an empty list of %s as CSV has its header line only',
    async (name) => {
      const own = await newApp(api);
      const { status, text } = await csv(`/${name}`, own);
      expect(status).toBe(200);
      expect(text).toMatch(/^id,[A-Za-z\d.,]+\r\n$/);
    },
  );

  test('a caller that accepts anything gets JSON, and a wrong filter is a 400 for both', async () => {
    const both = await get('/commissions', app, { accept: '*/*' });
    expect(both.headers.get('content-type')).toContain('application/json');
    expect((await csv('/commissions?status=none', app)).status).toBe(400);
    const browser = await get('/links', app, { accept: 'text/csv, */*;q=0.1' });
    expect(browser.headers.get('content-type')).toContain('text/csv');
  });
});
