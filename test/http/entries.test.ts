import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { addEntry } from '../../src/db/entries.ts';
import { newId } from '../../src/db/new-id.ts';
import { readPayoutCsv, recordsOf } from '../../src/db/payout-csv.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AffiliateId, AppId, KeyId, PayoutId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAccount, newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { insertEarning, payOut } from '../support/ledger.ts';
import { signIn, signInCreator } from '../support/sessions.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';

let api: TestApi;
let app: TestApp;
let creator: string;
let holds: { readonly commissionId: string; readonly dueAt: number }[] = [];

beforeAll(async () => {
  api = await startTestApi({
    workflows: {
      ...IDLE_WORKFLOWS,
      startHolds: (commissions) => void holds.push(...commissions),
    },
  });
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  holds = [];
  app = await newApp(api);
  creator = await newAffiliate(api, app, { name: 'Ada' });
});

interface Entry {
  readonly id: string;
  readonly commissionId: string;
  readonly amountCents: number;
  readonly dueAt: number;
  readonly [field: string]: unknown;
}

const BONUS = { amountCents: 5_000, category: 'fixed_fee', reason: 'Retainer for May' };

const post = async (
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  key = app.key,
) => await api.call<Entry>('POST', `/apps/${app.appId}${path}`, { key, body, headers });

const add = async (fields: object = {}): Promise<Entry> => {
  const { status, body, text } = await post(`/affiliates/${creator}/entries`, {
    ...BONUS,
    externalId: randomUUID(),
    ...fields,
  });
  expect({ status, text }).toMatchObject({ status: 201 });
  return body;
};
const undo = async (id: string) => await post(`/entries/${id}/undo`, { reason: 'A mistake' });

const get = async <T>(path: string, headers?: Readonly<Record<string, string>>) => {
  const { status, body, text } = await api.call<T>(
    'GET',
    path,
    headers === undefined ? { key: app.key } : { headers },
  );
  expect({ status, text }).toMatchObject({ status: 200 });
  return body;
};

const unpaid = async () => {
  const { cents } = await api.sql.one<{ cents: number }>`
    select coalesce(sum(amount_cents), 0)::float8 as cents from commissions where affiliate_id = ${creator} and status <> 'paid'`;
  return cents;
};

/** Not those that need the webhook of an earning. */
const CHECKED = [
  'rollups_equal_facts',
  'entries_are_booked_once',
  'undone_entries_net_to_zero',
  'reversals_follow_their_earning',
  'never_more_reversed_than_earned',
  'paid_means_in_a_payout',
  'payouts_are_the_sum_of_their_items',
  'no_row_of_another_app',
];

const linesOf = async (payoutId: string | null) => {
  const csv = await readPayoutCsv(api.sql, app.appId as AppId, payoutId as PayoutId);
  return [...recordsOf(csv?.bytes.toString() ?? '')];
};

describe('an entry', () => {
  // @promise post-entry, get-entry
  test('it is returned with its author and its commission, and listed', async () => {
    const before = Date.now();
    const { body } = await post(`/affiliates/${creator}/entries`, { ...BONUS, externalId: 'may' });
    expect(body).toEqual({
      id: expect.stringMatching(/^ent_/),
      affiliateId: creator,
      affiliateName: 'Ada',
      category: 'fixed_fee',
      amountCents: 5_000,
      currency: 'USD',
      reason: 'Retainer for May',
      externalId: 'may',
      undoesEntryId: null,
      undoneByEntryId: null,
      commissionId: expect.stringMatching(/^com_/),
      status: 'pending',
      dueAt: expect.any(Number),
      createdAt: expect.any(Number),
      createdBy: { id: expect.stringMatching(/^key_/), label: null, display: expect.any(String) },
    });
    expect(body.dueAt).toBeGreaterThanOrEqual(before - 5);
    expect(await get(`/apps/${app.appId}/entries/${body.id}`)).toEqual(body);
    expect(await get(`/apps/${app.appId}/entries`)).toEqual({ items: [body], nextCursor: null });
  });

  // @promise get-entries
  test('the list has the latest first, page by page, of one affiliate or of all, also as CSV', async () => {
    const other = await newAffiliate(api, app, { name: '=Grace' });
    const first = await add();
    const { body: second } = await post(`/affiliates/${other}/entries`, { ...BONUS, externalId: 'g' });
    const third = await add({ amountCents: -1, category: 'other', reason: 'a, b' });
    const ids = async (query: string) => {
      const { items, nextCursor } = await get<{ items: Entry[]; nextCursor: string | null }>(
        `/apps/${app.appId}/entries${query}`,
      );
      return { ids: items.map(({ id }) => id), nextCursor };
    };
    expect((await ids('')).ids).toEqual([third.id, second.id, first.id]);
    expect((await ids(`?affiliateId=${creator}`)).ids).toEqual([third.id, first.id]);
    const page = await ids('?limit=2');
    expect(page.ids).toEqual([third.id, second.id]);
    expect((await ids(`?limit=2&cursor=${page.nextCursor}`)).ids).toEqual([first.id]);
    const { text } = await api.call('GET', `/apps/${app.appId}/entries`, {
      key: app.key,
      headers: { accept: 'text/csv' },
    });
    const records = [...recordsOf(text)];
    expect(records.map((record) => record['commissionId'])).toEqual(
      [third, second, first].map(({ commissionId }) => commissionId),
    );
    expect(records[0]).toMatchObject({ amountCents: '-1', reason: 'a, b' });
    expect(records[1]).toMatchObject({ affiliateName: "'=Grace" });
  });

  // @promise entry-one-commission
  test('its commission names it, has no payment, and counts in all sums at once', async () => {
    const { id, commissionId, dueAt } = await add();
    const { items } = await get<{ items: Entry[] }>(`/apps/${app.appId}/commissions`);
    expect(items).toEqual([
      expect.objectContaining({
        id: commissionId,
        kind: 'bonus',
        entry: { id, category: 'fixed_fee', reason: 'Retainer for May', undoesEntryId: null },
        amountCents: 5_000,
        rateBps: 0,
        baseCents: 0,
        eventId: null,
        linkId: null,
        source: null,
        customerUserId: null,
        matchMethod: null,
        reversesCommissionId: null,
        reason: null,
        dueAt,
      }),
    ]);
    expect(await get(`/apps/${app.appId}/commissions/totals`)).toMatchObject({ totalCents: 5_000 });
    expect(await get(`/apps/${app.appId}/affiliates/${creator}`)).toMatchObject({ commissionCents: 5_000 });
    for (const [query, count] of [
      ['kind=bonus', 1],
      ['kind=deduction', 0],
      ['kind=earning', 0],
      ['source=stripe', 0],
      [`affiliateId=${creator}`, 1],
    ] as const) {
      expect((await get<{ items: unknown[] }>(`/apps/${app.appId}/commissions?${query}`)).items).toHaveLength(
        count,
      );
    }
    await expectConsistentLedger(api.sql, CHECKED);
  });

  // @promise entry-absent
  test('a commission of a payment has no field for an entry, and the CSV of the list has no column for it', async () => {
    await insertEarning(api, app, {
      affiliateId: creator,
      amountCents: 5,
      occurredAt: api.clock.now,
      dueAt: api.clock.now,
    });
    const { items } = await get<{ items: Entry[] }>(`/apps/${app.appId}/commissions`);
    expect(items[0]).not.toHaveProperty('entry');
    await add();
    const { text } = await api.call('GET', `/apps/${app.appId}/commissions`, {
      key: app.key,
      headers: { accept: 'text/csv' },
    });
    expect(text.split('\r\n')[0]).toBe(
      'id,affiliateId,affiliateName,linkId,eventId,kind,reversesCommissionId,reason,status,rateBps,baseCents,amountCents,currency,' +
        'source,customerUserId,matchMethod,occurredAt,dueAt,maturedAt,paidAt,payoutId,createdAt',
    );
    expect([...recordsOf(text)].map((record) => record['kind'] ?? '').toSorted()).toEqual([
      'bonus',
      'earning',
    ]);
  });

  // @promise entry-creator
  test('the creator reads what it is for and why, and an undo says so', async () => {
    const { id } = await add();
    await undo(id);
    const headers = await signInCreator(api, app, creator);
    const { items } = await get<{ items: { reason: string; kind: string; amountCents: number }[] }>(
      '/creator/commissions',
      headers,
    );
    const shown = items.map(({ reason, kind, amountCents }) => `${kind} ${amountCents} ${reason}`);
    expect(shown.toSorted()).toEqual([
      'bonus 5000 Fixed fee: Retainer for May',
      'deduction -5000 Fixed fee, undone: A mistake',
    ]);
    expect(await get('/creator/overview', headers)).toMatchObject({ earnings: { lifetime: 0, matured: 0 } });
  });

  test('an affiliate of any status gets one', async () => {
    for (const status of ['paused', 'removed']) {
      await api.call('PATCH', `/apps/${app.appId}/affiliates/${creator}`, { key: app.key, body: { status } });
      await add();
    }
    expect(await unpaid()).toBe(10_000);
  });

  // @promise entry-due
  test('it is due now, or at the given time, until when no payout has it', async () => {
    const now = await add({ amountCents: 100 });
    const dueAt = Date.now() + 5 * DAY_MS;
    const later = await add({ amountCents: 7, dueAt });
    expect(later.dueAt).toBe(dueAt);
    expect(holds.map(({ commissionId, dueAt: at }) => [commissionId, at])).toEqual([
      [now.commissionId, now.dueAt],
      [later.commissionId, dueAt],
    ]);
    const lines = await linesOf(await payOut(api, app, creator));
    expect(lines.map((line) => line['commission_id'])).toEqual([now.commissionId]);
    expect(await unpaid()).toBe(7);
  });

  // @promise entry-nets
  test('a deduction lowers the next payout, whose CSV has it without an event', async () => {
    const at = api.clock.now - DAY_MS;
    const earning = await insertEarning(api, app, {
      affiliateId: creator,
      amountCents: 1_000,
      occurredAt: at,
      dueAt: at,
    });
    const deduction = await add({
      amountCents: -250,
      category: 'unreported_refund',
      reason: 'Upgrade of 3 May',
    });
    const payoutId = await payOut(api, app, creator);
    const lines = await linesOf(payoutId);
    expect(
      lines.map((line) => [line['commission_id'], line['amount_usd_cents'], line['event_id'] === '']),
    ).toEqual([
      [earning, '1000', false],
      [deduction.commissionId, '-250', true],
    ]);
    expect(await get(`/apps/${app.appId}/payouts/${payoutId ?? ''}`)).toMatchObject({
      totalCents: 750,
      itemCount: 2,
    });
    await expectConsistentLedger(api.sql, CHECKED);
  });

  // @promise entry-nets
  test('a deduction that outweighs what is due pays nothing and is carried', async () => {
    await add({ amountCents: -300, category: 'write_off' });
    await add({ amountCents: 100 });
    expect(await payOut(api, app, creator)).toBeNull();
    expect(await unpaid()).toBe(-200);
    await add({ amountCents: 201 });
    expect(await linesOf(await payOut(api, app, creator))).toHaveLength(3);
    expect(await unpaid()).toBe(0);
  });
});

describe('an undo', () => {
  // @promise post-entry-undo, entry-nets
  test('it nets to nothing with its entry in one payout', async () => {
    const dueAt = Date.now() + DAY_MS;
    const { id } = await add({ dueAt });
    const { status, body } = await undo(id);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      amountCents: -5_000,
      category: 'fixed_fee',
      reason: 'A mistake',
      undoesEntryId: id,
      externalId: null,
      dueAt,
    });
    expect(await get(`/apps/${app.appId}/entries/${id}`)).toMatchObject({ undoneByEntryId: body.id });
    expect(await unpaid()).toBe(0);
    expect(holds.map((hold) => hold.dueAt)).toEqual([dueAt, dueAt]);
  });

  test('after the payout, the next one takes it back', async () => {
    const { id } = await add();
    await payOut(api, app, creator);
    await undo(id);
    expect(await unpaid()).toBe(-5_000);
    await add({ amountCents: 6_000 });
    const payoutId = await payOut(api, app, creator);
    expect(await get(`/apps/${app.appId}/payouts/${payoutId ?? ''}`)).toMatchObject({ totalCents: 1_000 });
  });

  // @promise entry-undo-once
  test('of twenty at once one succeeds, and neither a second one nor an undo of an undo is possible', async () => {
    const { id } = await add();
    const responses = await Promise.all(Array.from({ length: 20 }, async () => await undo(id)));
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array(19).fill(409),
    ]);
    const made = responses.find(({ status }) => status === 201)?.body.id ?? '';
    for (const target of [id, made]) {
      expect(await undo(target)).toMatchObject({ status: 409, body: { code: 'entry_not_undoable' } });
    }
    expect(await undo(newId('entry'))).toMatchObject({ status: 404 });
    expect(await unpaid()).toBe(0);
  });

  // @promise entry-undo-once
  test('a repeated call with its idempotency key undoes once, and returns the same', async () => {
    const { id } = await add();
    const headers = { 'Idempotency-Key': randomUUID() };
    const first = await post(`/entries/${id}/undo`, { reason: 'A mistake' }, headers);
    const again = await post(`/entries/${id}/undo`, { reason: 'A mistake' }, headers);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
  });
});

describe('what is sent', () => {
  // @promise entry-once
  test('a call needs an external id, and repeated it adds nothing', async () => {
    const path = `/affiliates/${creator}/entries`;
    expect(await post(path, BONUS)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'externalId' }] },
    });
    const headers = { 'Idempotency-Key': randomUUID() };
    const given = { ...BONUS, externalId: 'given' };
    const [first, second] = [await post(path, given, headers), await post(path, given, headers)];
    expect(second.body).toEqual(first.body);
    await api.sql`update idempotency_keys set expires_at = now() where idempotency_key = ${headers['Idempotency-Key']}`;
    expect(await post(path, given, headers)).toMatchObject({
      status: 409,
      body: { existingId: first.body.id },
    });
    const { id } = await add({ externalId: 'may' });
    const repeated = await Promise.all(
      Array.from(
        { length: 10 },
        async () => await post(path, { ...BONUS, amountCents: 1, externalId: 'may' }),
      ),
    );
    for (const { status, body } of repeated) {
      expect({ status, body }).toMatchObject({
        status: 409,
        body: { code: 'external_id_taken', existingId: id },
      });
    }
    expect(await unpaid()).toBe(10_000);
    const other = await newApp(api);
    const elsewhere = await newAffiliate(api, other);
    const taken = await api.call('POST', `/apps/${other.appId}/affiliates/${elsewhere}/entries`, {
      key: other.key,
      body: { ...BONUS, externalId: 'may' },
    });
    expect(taken.status).toBe(201);
  });

  // @promise entry-once
  // @promise entry-once
  test('a call that is repeated after its due date finds its entry, and one that was refused may be corrected', async () => {
    const path = `/affiliates/${creator}/entries`;
    const headers = { 'Idempotency-Key': randomUUID() };
    const refused = { ...BONUS, amountCents: 100_000_001, externalId: 'late' };
    expect((await post(path, refused, headers)).status).toBe(400);
    const body = { ...BONUS, externalId: 'late', dueAt: Date.now() + DAY_MS };
    const { now } = api.clock;
    api.clock.now = Date.now();
    try {
      const first = await post(path, body, headers);
      expect(first.status).toBe(201);
      // The process died before it stored its response.
      await api.sql`
        update idempotency_keys set response = null, response_key_id = null, claimed_until = now() where idempotency_key = ${headers['Idempotency-Key']}`;
      api.clock.now += 2 * DAY_MS;
      const again = await post(path, body, headers);
      expect([again.status, again.body]).toEqual([201, first.body]);
      expect(await post(path, body)).toMatchObject({ status: 409, body: { existingId: first.body.id } });
      expect(await post(path, { ...body, externalId: 'other' })).toMatchObject({
        status: 400,
        body: { errors: [{ path: 'dueAt' }] },
      });
    } finally {
      api.clock.now = now;
    }
    expect(await unpaid()).toBe(5_000);
  });

  test('of ten first calls at once with one external id, one adds', async () => {
    const responses = await Promise.all(
      Array.from(
        { length: 10 },
        async () => await post(`/affiliates/${creator}/entries`, { ...BONUS, externalId: 'once' }),
      ),
    );
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array(9).fill(409),
    ]);
    expect(await unpaid()).toBe(5_000);
  });

  // @promise entry-input
  test.each([
    ['no amount', { amountCents: undefined }, 'amountCents'],
    ['an amount of nothing', { amountCents: 0 }, 'amountCents'],
    ['a part of a cent', { amountCents: 1.5 }, 'amountCents'],
    ['more than a payment may have', { amountCents: 100_000_001 }, 'amountCents'],
    ['less than that', { amountCents: -100_000_001 }, 'amountCents'],
    ['an unknown category', { category: 'gift' }, 'category'],
    ['a bonus that deducts', { category: 'bonus', amountCents: -1 }, 'category'],
    ['a fixed fee that deducts', { amountCents: -1 }, 'category'],
    ['a refund that adds', { category: 'unreported_refund' }, 'category'],
    ['no external id', { externalId: undefined }, 'externalId'],
    ['no reason', { reason: undefined }, 'reason'],
    ['an empty reason', { reason: '  ' }, 'reason'],
    ['a reason that is too long', { reason: 'x'.repeat(501) }, 'reason'],
    ['a text that no database stores', { reason: 'a\u0000b' }, 'reason'],
    ['a due date in the past', { dueAt: Date.UTC(2020, 0, 1) }, 'dueAt'],
    ['a due date in more than a year', { dueAt: Date.now() + 367 * DAY_MS }, 'dueAt'],
    ['an unknown field', { currency: 'EUR' }, 'currency'],
  ])('%s is a 400 that names the field, and adds nothing', async (_title, fields, field) => {
    const { status, body } = await post(`/affiliates/${creator}/entries`, {
      ...BONUS,
      externalId: randomUUID(),
      ...fields,
    });
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ path: field }] },
    });
    expect(await unpaid()).toBe(0);
  });

  test('the largest amounts of both signs are accepted', async () => {
    await add({ amountCents: 100_000_000, reason: 'x'.repeat(500) });
    await add({ amountCents: -100_000_000, category: 'opening_balance' });
    expect(await unpaid()).toBe(0);
  });

  // @promise entry-payout-permission
  test('it needs the permission payout: write does not make money', async () => {
    const { id } = await add();
    const { key } = await newAccount(api, ['read', 'write', 'setup']);
    const poor = await newApp(api, { accountId: app.accountId, key });
    const path = `/apps/${poor.appId}/affiliates/${await newAffiliate(api, poor)}/entries`;
    expect(await api.call('POST', path, { key, body: { ...BONUS, externalId: 'x' } })).toMatchObject({
      status: 403,
    });
    expect(
      await api.call('POST', `/apps/${app.appId}/entries/${id}/undo`, { key, body: { reason: 'x' } }),
    ).toMatchObject({
      status: 403,
    });
  });

  test('the audit names who added it, without the reason', async () => {
    const { id } = await add({ externalId: 'e-1' });
    const { items } = await get<{ items: object[] }>(
      `/accounts/${app.accountId}/audit?appId=${app.appId}&objectKind=entry`,
      await signIn(api, app.key),
    );
    expect(items).toEqual([
      expect.objectContaining({
        action: 'created',
        object: { kind: 'entry', id, label: 'Ada' },
        actor: expect.objectContaining({ kind: 'key' }),
        after: expect.objectContaining({
          amountCents: 5_000,
          category: 'fixed_fee',
          reason: '(not kept)',
          externalId: 'e-1',
        }),
      }),
    ]);
  });
});

describe('the database', () => {
  const refused = async (statement: (sql: Sql) => PromiseLike<unknown>, why: RegExp) => {
    await expect(
      api.sql.transaction(async (tx) => {
        await statement(tx as Sql);
      }),
    ).rejects.toThrow(why);
  };
  const insertEntry = (
    sql: Sql,
    fields: { amountCents?: number; undoes?: string; dueAt?: number; category?: string } = {},
  ) => sql`
    insert into entries (id, app_id, affiliate_id, category, amount_cents, reason, external_id, undoes_entry_id, due_at, account_id, key_id)
    select ${newId('entry')}, ${app.appId}, ${creator}, ${fields.category ?? 'fixed_fee'}, ${fields.amountCents ?? -5_000}, 'x',
           ${fields.undoes === undefined ? randomUUID() : null}, ${fields.undoes ?? null},
           ${new Date(fields.dueAt ?? Date.now())}, account_id, id
      from account_keys where account_id = ${app.accountId} limit 1`;

  // @promise entry-database
  test('it refuses an entry without a commission', async () => {
    await refused((sql) => insertEntry(sql, { amountCents: 1 }), /has no commission/);
    await refused((sql) => insertEntry(sql, { amountCents: -1 }), /category_has_its_sign/);
    await refused(
      (sql) => insertEntry(sql, { category: 'unreported_refund', amountCents: 1 }),
      /category_has_its_sign/,
    );
  });

  // @promise entry-database
  test('it refuses a second commission of an entry, and one with another amount, due date or sign', async () => {
    const { id } = await add();
    const book = (changes: object) => (sql: Sql) =>
      sql`
      insert into commissions (id, app_id, affiliate_id, entry_id, kind, rate_bps, base_cents, amount_cents, occurred_at, due_at)
      select (r).id, (r).app_id, (r).affiliate_id, (r).entry_id, (r).kind, (r).rate_bps, (r).base_cents, (r).amount_cents,
             (r).occurred_at, (r).due_at
        from (select jsonb_populate_record(c, ${sql.json({ id: newId('commission'), ...changes })}) as r
                from commissions c where c.entry_id = ${id}) x`;
    await refused(book({}), /one_commission_per_entry/);
    const fits = /commission_is_that_of_its_entry/;
    await api.sql`alter table entries disable trigger entries_booked`;
    try {
      await insertEntry(api.sql, { amountCents: 5 });
      const { id: unbooked } = await api.sql.one<{ id: string }>`
        select id from entries where app_id = ${app.appId} and amount_cents = 5`;
      await refused(book({ entry_id: unbooked }), fits);
      await refused(book({ entry_id: unbooked, amount_cents: 5, due_at: '2030-01-01T00:00:00Z' }), fits);
      await refused(book({ entry_id: unbooked, amount_cents: 5, kind: 'deduction' }), /entry_has_its_sign/);
      await refused(book({ entry_id: unbooked, amount_cents: 5, kind: 'earning' }), /entry_has_its_kind/);
      await refused(book({ entry_id: null, kind: 'earning' }), /only_entry_has_no_payment|rate_bps/);
      await refused(book({ entry_id: unbooked, rate_bps: 100 }), /only_entry_has_no_payment/);
    } finally {
      await api.sql`alter table entries enable trigger entries_booked`;
    }
  });

  // @promise entry-database, entry-undo-once
  test('it refuses an undo of another amount, time or creator, and of an undo', async () => {
    const { id, dueAt } = await add();
    const other = await newAffiliate(api, app);
    const notOpposite = /is not the opposite/;
    await refused((sql) => insertEntry(sql, { undoes: id, dueAt, amountCents: -4_999 }), notOpposite);
    await refused((sql) => insertEntry(sql, { undoes: id, dueAt: dueAt + 1 }), notOpposite);
    await refused(
      (sql) => sql`
        insert into entries select (jsonb_populate_record(e, ${sql.json({
          id: newId('entry'),
          affiliate_id: other,
          amount_cents: -5_000,
          external_id: null,
          undoes_entry_id: id,
        })})).* from entries e where id = ${id}`,
      notOpposite,
    );
    const { body } = await undo(id);
    await refused((sql) => insertEntry(sql, { undoes: body.id, dueAt, amountCents: 5_000 }), notOpposite);
  });

  // @promise entry-database
  test.each(['update entries set reason = reason', 'delete from entries', 'truncate entries cascade'])(
    'it refuses: %s',
    async (text) => {
      await add();
      await refused((sql) => sql(Object.assign([text], { raw: [text] })), /append|permission|cannot/);
    },
  );

  // @promise entry-once
  test('a statement that runs again after a lost answer adds one entry with one commission', async () => {
    const { id: keyId } = await api.sql.one<{
      id: KeyId;
    }>`select id from account_keys where account_id = ${app.accountId}`;
    const entry = {
      id: newId('entry'),
      commissionId: newId('commission'),
      appId: app.appId as AppId,
      accountId: app.accountId,
      keyId,
      affiliateId: creator as AffiliateId,
      category: 'bonus' as const,
      amountCents: 70,
      reason: 'x',
      externalId: 'given',
      dueAt: null,
    };
    const first = await addEntry(api.sql, entry);
    expect(await addEntry(api.sql, { ...entry, commissionId: newId('commission') })).toEqual(first);
    expect(await unpaid()).toBe(70);
  });
});
