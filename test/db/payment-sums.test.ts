import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../src/db/new-id.ts';
import type { Statements } from '../../src/db/sql.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal } from '../support/ledger.ts';
import { runOn } from '../support/postgres-admin.ts';

let api: TestApi;
let app: TestApp;
let affiliateId: string;
let earningId: string;
const occurredAt = Date.UTC(2026, 4, 1);

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  earningId = await insertEarning(api, app, { affiliateId, amountCents: 200, occurredAt, dueAt: occurredAt });
});

interface Sums {
  readonly id: string;
  readonly earned: number;
  readonly reversed: number;
  readonly corrected: number;
}
const sums = async (): Promise<Sums> =>
  await api.sql.one<Sums>`
    select p.id, p.earned_cents as earned, p.reversed_cents as reversed, p.corrected_cents as corrected
      from payments p join commissions c on c.payment_id = p.id where c.id = ${earningId}`;
const refund = async (sql: Statements, amountCents: number) =>
  await insertReversal({ sql } as Pick<TestApi, 'sql'>, earningId, { amountCents, occurredAt });

describe('the sums of a payment', () => {
  test('follow a commission whose statement does not set them', async () => {
    expect(await sums()).toMatchObject({ earned: 200, reversed: 0, corrected: 0 });
    await refund(api.sql, 50);
    expect(await sums()).toMatchObject({ earned: 200, reversed: 50, corrected: 0 });
  });

  test.each([
    [50, 50],
    [50, 30],
  ])(
    'follow two commissions of %i and %i cents that two transactions insert at the same time',
    async (one, other) => {
      const waiting: Promise<string>[] = [];
      await api.sql.transaction(async (sql) => {
        await refund(sql, one);
        waiting.push(refund(api.sql, other));
        await sleep(200);
      });
      await Promise.all(waiting);
      expect(await sums()).toMatchObject({ earned: 200, reversed: one + other });
    },
  );

  test('follow several commissions of one statement, as a process of an earlier version writes them', async () => {
    const { id } = await sums();
    await refund(api.sql, 10);
    await api.sql`
      with held as (update payments set version = version + 1 where id = ${id} returning id),
           adjusted as (
             insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                                      amount_minor, occurred_at, stated_at, event_id)
             select n.id, a.app_id, a.environment, a.store, n.id, a.payment_ref, a.kind, a.state, a.rank, a.reverses_all, a.currency,
                    a.amount_minor, a.occurred_at, a.stated_at, a.event_id
               from adjustments a join commissions c on c.adjustment_id = a.id and c.payment_id = ${id},
                    unnest(${[newId('adjustment'), newId('adjustment')]}::text[]) n (id)
             returning id)
      insert into commissions
      select (jsonb_populate_record(c, jsonb_build_object('id', 'com_' || substr(a.id, 5), 'adjustment_id', a.id))).*
        from commissions c, adjusted a, held where c.payment_id = held.id and c.kind = 'reversal'`;
    expect(await sums()).toMatchObject({ earned: 200, reversed: 30 });
  });

  test.each(['earned_cents', 'reversed_cents', 'corrected_cents'])(
    'cannot be changed alone: %s',
    async (column) => {
      const { id } = await sums();
      const change = `update payments set ${column} = ${column} + 1 where id = '${id}'`;
      await expect(runOn(api.database.url, change)).rejects.toMatchObject({
        code: '23000',
        constraint: 'payments_guard_sums',
      });
    },
  );

  test('may be set to those of the commissions after a damage', async () => {
    const { id } = await sums();
    await runOn(
      api.database.url,
      `set session_replication_role = replica; update payments set earned_cents = 150 where id = '${id}'`,
    );
    await expect(
      runOn(api.database.url, `update payments set earned_cents = 160 where id = '${id}'`),
    ).rejects.toThrow('they follow its commissions');
    await runOn(api.database.url, `update payments set earned_cents = 200 where id = '${id}'`);
    expect(await sums()).toMatchObject({ earned: 200 });
  });
});
