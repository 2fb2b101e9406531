import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { signInCreator } from '../support/sessions.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;
/** Has $2.00 due. */
let creator: string;
let path: string;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
  creator = founder.affiliateId;
  path = `/apps/${founder.app.id}/affiliates/${creator}`;
  await founder.purchase(await founder.customer(), 10);
});

type State = 'blocked' | 'lifted';
const state = async (wanted: State, reason = 'A test', headers: Record<string, string> = {}) =>
  await founder.call<{ id: string; code?: string }>('POST', `${path}/payout-blocks`, {
    body: { state: wanted, reason },
    headers,
  });
const paid = async () =>
  await service.sql.one<{ cents: number; payouts: number }>`
    select coalesce(sum(total_cents), 0)::float8 as cents, count(*)::int as payouts from payouts where affiliate_id = ${creator}`;
const get = async <T>(tail: string) => await founder.ok<T>('GET', `/apps/${founder.app.id}${tail}`);

describe('blocked payouts of a creator', () => {
  // @promise payout-block, post-payout-block, get-payout-blocks
  test('pay nothing until the block is lifted, while the creator goes on to earn, and then all of it', async () => {
    expect(await state('blocked', 'Refunds of May')).toMatchObject({
      status: 201,
      body: { state: 'blocked', reason: 'Refunds of May', createdBy: { id: expect.any(String) } },
    });
    await founder.purchase(await founder.customer(), 5);
    expect(await founder.exportCsv()).toMatchObject({ status: 409, body: { code: 'payouts_blocked' } });
    expect(await paid()).toEqual({ cents: 0, payouts: 0 });
    expect(await get('/payouts/preview')).toMatchObject({ rows: [], totalCents: 0 });
    const asOf = new Date().toISOString();
    expect(await get(`/payouts/preview?asOf=${asOf}`)).toMatchObject({ rows: [], totalCents: 0 });
    expect(await get('/payouts/not-payable')).toMatchObject({
      rows: [{ affiliateId: creator, reason: 'payouts_blocked', balanceCents: 300, heldCents: 0 }],
    });
    expect(await get('/overview')).toMatchObject({ due: { payees: 0, payableCents: 0 } });
    expect(await get(`/affiliates/${creator}`)).toMatchObject({
      payoutBlock: { since: expect.any(Number), reason: 'Refunds of May' },
    });
    const headers = await signInCreator(
      { call: async (method, to, options) => await founder.call(method, to, options) },
      { appId: founder.app.id, key: founder.key },
      creator,
    );
    const asCreator = async () =>
      (await founder.call<object>('GET', '/creator', { headers, key: null })).body;
    expect(await asCreator()).toMatchObject({ name: 'Test creator', payoutsUnderReview: true });
    expect(JSON.stringify(await asCreator())).not.toContain('Refunds of May');
    expect((await state('lifted')).status).toBe(201);
    expect(await asCreator()).not.toHaveProperty('payoutsUnderReview');
    expect(await get(`/affiliates/${creator}`)).not.toHaveProperty('payoutBlock');
    expect((await founder.exportCsv()).status).toBe(200);
    expect(await paid()).toEqual({ cents: 300, payouts: 1 });
    const { items } = await get<{ items: object[] }>(`/affiliates/${creator}/payout-blocks`);
    expect(items).toMatchObject([{ state: 'lifted' }, { state: 'blocked', reason: 'Refunds of May' }]);
  });

  // @promise payout-block-in-turn
  test('are blocked and lifted in turn, and a repeated call says the same', async () => {
    expect(await state('lifted')).toMatchObject({ status: 409, body: { code: 'payout_block_not_possible' } });
    const headers = { 'idempotency-key': randomUUID() };
    const first = await state('blocked', 'A test', headers);
    expect(first.status).toBe(201);
    expect((await state('blocked', 'A test', headers)).body).toEqual(first.body);
    expect((await state('blocked')).status).toBe(409);
    const both = await Promise.all([state('lifted'), state('lifted')]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409]);
  });

  // @promise payout-block-race
  test('are paid by no export that begins after the block, however many wait', async () => {
    const responses = await Promise.all([
      ...Array.from({ length: 8 }, async () => (await founder.exportCsv()).status),
      state('blocked').then(({ status }) => status),
    ]);
    expect(responses.filter((status) => status !== 200 && status !== 201 && status !== 409)).toEqual([]);
    const before = await paid();
    await founder.purchase(await founder.customer(), 10);
    expect((await founder.exportCsv()).status).toBe(409);
    expect(await paid()).toEqual(before);
  });

  // @promise payout-block-database
  test('are paid by no statement, and a block is never changed, nor two without its end between them', async () => {
    await state('blocked');
    const insert = async () =>
      await service.sql`
        insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents)
        values (${newId('payout')}, ${founder.app.id}, ${creator}, 'Creator', 1, 200)`;
    await expect(insert()).rejects.toThrow(/payouts of aff_\w+ are blocked/);
    const change = (text: string) => runOn(service.database.url, text);
    await expect(
      change(`update payout_blocks set reason = 'x' where affiliate_id = '${creator}'`),
    ).rejects.toThrow(/cannot be changed or deleted/);
    await expect(change(`delete from payout_blocks where affiliate_id = '${creator}'`)).rejects.toThrow(
      /cannot be changed or deleted/,
    );
    const append = async (position: number) =>
      await change(
        `insert into payout_blocks (id, app_id, affiliate_id, position, reason, account_id, key_id)
         select '${newId('payoutBlock')}', app_id, affiliate_id, ${position}, 'x', account_id, key_id
           from payout_blocks where affiliate_id = '${creator}' and position = 1`,
      );
    await expect(append(3)).rejects.toThrow(/foreign key/);
    await expect(append(1)).rejects.toThrow(/duplicate key/);
    await append(2);
    expect((await founder.exportCsv()).status).toBe(200);
  });

  test.each([
    ['without a reason', { state: 'blocked', reason: ' ' }],
    ['with another state', { state: 'stopped', reason: 'A test' }],
    ['with another field', { state: 'blocked', reason: 'A test', until: 1 }],
  ])('are not blocked %s', async (_, body) => {
    expect((await founder.call('POST', `${path}/payout-blocks`, { body })).status).toBe(400);
    expect((await founder.exportCsv()).status).toBe(200);
  });
});
