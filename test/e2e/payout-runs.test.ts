import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { exportPayout } from '../../src/commands/export-payout.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { findPayoutRequest, openPayoutRequest, settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { openRunRequests } from '../../src/db/payout-run-requests.ts';
import type {
  AccountId,
  AffiliateId,
  AppId,
  KeyId,
  PayoutRequestId,
  PayoutRunId,
} from '../../src/domain/ids.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { RunCalls, waitForPayees } from '../support/payout-runs.ts';
import type { Run, RunFile } from '../support/payout-runs.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;
let runs: RunCalls;
/** Have due: $2.00, $1.00 and $0.40. */
let ann: string;
let ben: string;
let cleo: string;
let base: string;
let bonusId = '';

beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
  runs = new RunCalls(founder);
  base = `/apps/${founder.app.id}`;
  ann = founder.affiliateId;
  [ben, cleo] = [await newCreator('Ben'), await newCreator('Cleo')];
  await add(ann, 200);
  await add(ben, 100);
  await add(cleo, 40);
});

const newCreator: RunCalls['newCreator'] = async (name) => await runs.newCreator(name);
const add: RunCalls['add'] = async (...entry) => await runs.add(...entry);
const setPayee: RunCalls['setPayee'] = async (...payee) => await runs.setPayee(...payee);
const draft: RunCalls['draft'] = async (...terms) => await runs.draft(...terms);
const approve: RunCalls['approve'] = async (...approval) => await runs.approve(...approval);
const cancel: RunCalls['cancel'] = async (run) => await runs.cancel(run);
const read: RunCalls['read'] = async (run) => await runs.read(run);
const list: RunCalls['list'] = async (run, what) => await runs.list(run, what);
const settled: RunCalls['settled'] = async (run) => await runs.settled(run);
const payAll: RunCalls['run'] = async (...terms) => await runs.run(...terms);
const payouts = async () =>
  await service.sql<{ affiliateId: string; totalCents: number }>`
    select affiliate_id, total_cents from payouts where app_id = ${founder.app.id} order by total_cents desc`;

describe('a payout run', () => {
  // @promise post-payout-run, get-payout-run, get-payout-run-items, get-payout-run-exclusions
  test('pays nothing as a draft, and says who would be paid and who is left out, and why', async () => {
    await add(await newCreator('Dora'), -300);
    await add(await newCreator('Emil'), 500, Date.now() + 86_400_000);
    const run = await draft(50);
    expect(run).toMatchObject({
      status: 'draft',
      totalCents: 300,
      itemCount: 2,
      paidCount: 0,
      approvedBy: null,
    });
    expect(await list(run, 'items')).toMatchObject([
      { affiliateId: ann, expectedCents: 200, outcome: null, payoutId: null },
      { affiliateId: ben, expectedCents: 100, outcome: null },
    ]);
    expect(await list(run, 'excluded')).toMatchObject([
      { affiliateName: 'Cleo', reason: 'below_minimum', balanceCents: 40 },
      { affiliateName: 'Emil', reason: 'held', balanceCents: 0, heldCents: 500 },
      { affiliateName: 'Dora', reason: 'negative_balance', balanceCents: -300 },
    ]);
    expect(await payouts()).toEqual([]);
  });

  // @promise approve-payout-run, get-payout-runs
  test('pays each creator of the draft once when it is approved, also if that is said twice', async () => {
    const run = await draft(50);
    const both = await Promise.all([approve(run), approve(run)]);
    expect(both.map(({ status }) => status)).toEqual([202, 202]);
    expect(await settled(run)).toMatchObject({ status: 'settled', paidCount: 2, paidCents: 300 });
    expect((await approve(run)).status).toBe(202);
    expect(await list(run, 'items')).toMatchObject([
      { affiliateId: ann, outcome: 'paid', payoutId: expect.stringMatching(/^pay_/) },
      { affiliateId: ben, outcome: 'paid' },
    ]);
    expect(await payouts()).toMatchObject([
      { affiliateId: ann, totalCents: 200 },
      { affiliateId: ben, totalCents: 100 },
    ]);
    expect(await payAll()).toMatchObject({ paidCount: 1, paidCents: 40 });
  });

  // @promise run-as-of
  test('pays what was due at its draft: what was earned or became due later waits', async () => {
    const soon = await newCreator('Fritz');
    await add(soon, 70, Date.now() + 400);
    const run = await draft();
    await add(ann, 1_000);
    await sleep(500);
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 3, paidCents: 340 });
    expect(await payAll()).toMatchObject({ paidCount: 2, paidCents: 1_070 });
  });

  // @promise run-changed
  test('does not pay a creator who has a deduction, a block or an export after the draft, and says so', async () => {
    const run = await draft();
    await add(ann, -10);
    await founder.ok('POST', `${base}/affiliates/${ben}/payout-blocks`, {
      state: 'blocked',
      reason: 'A test',
    });
    expect((await founder.exportCsv(cleo)).status).toBe(200);
    await approve(run);
    expect(await settled(run)).toMatchObject({ status: 'settled', paidCount: 0, paidCents: 0 });
    expect(await list(run, 'items')).toMatchObject([
      { affiliateId: ann, outcome: 'total_changed', payoutId: null },
      { affiliateId: ben, outcome: 'blocked' },
      { affiliateId: cleo, outcome: 'total_changed' },
    ]);
    const next = await draft();
    expect(next).toMatchObject({ totalCents: 190, itemCount: 1 });
    expect(await list(next, 'excluded')).toMatchObject([{ affiliateId: ben, reason: 'payouts_blocked' }]);
  });

  // @promise run-refused
  test('is not approved with another total, when it was replaced or cancelled, or pays nobody', async () => {
    const first = await draft();
    expect(await approve(first, 339)).toMatchObject({ status: 409, body: { code: 'total_changed' } });
    const second = await draft(500);
    expect(await read(first)).toMatchObject({ status: 'cancelled' });
    for (const run of [first, second, await cancel(await draft())]) {
      expect(await approve(run)).toMatchObject({ status: 409, body: { code: 'payout_run_not_possible' } });
    }
    const late = await draft();
    await runOn(
      service.database.url,
      `alter table payout_runs disable trigger payout_runs_transition;
       update payout_runs set created_at = now() - interval '8 days', expires_at = now() - interval '1 day' where id = '${late.id}';
       alter table payout_runs enable trigger payout_runs_transition`,
    );
    expect(await read(late)).toMatchObject({ status: 'expired' });
    expect((await approve(late)).status).toBe(409);
    expect(await payouts()).toEqual([]);
  });

  // @promise run-one-open, cancel-payout-run
  test('is the only one of its app that is paid at a time', async () => {
    const run = await draft();
    await runOn(
      service.database.url,
      `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour' where id = '${run.id}'`,
    );
    const refused = await founder.call<Run>('POST', `${base}/payout-runs`, { body: {} });
    expect(refused).toMatchObject({ status: 409, body: { code: 'payout_run_in_progress' } });
    expect(await cancel(run)).toMatchObject({ status: 'approved', stoppedAt: expect.any(Number) });
    expect((await approve(run)).status).toBe(202);
    expect(await settled(run)).toMatchObject({ status: 'settled', paidCount: 0 });
    expect(await list(run, 'items')).toMatchObject(
      Array.from({ length: 3 }, () => ({ outcome: 'cancelled' })),
    );
  });

  const undo = async ({ id }: { id: string }) =>
    await founder.ok('POST', `${base}/entries/${id}/undo`, { reason: 'A test' });
  const soon = () => Date.now() + 300;

  // @promise run-as-of
  test.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    [
      'a bonus that was entered and undone after the draft',
      async () => {},
      async () => await undo(await add(ann, 70)),
    ],
    [
      'a deduction that was entered and undone after the draft',
      async () => {},
      async () => await undo(await add(ann, -70)),
    ],
    [
      'a bonus that was undone before the draft, and becomes due after it',
      async () => await undo(await add(ann, 70, soon())),
      async () => await sleep(350),
    ],
    [
      'a deduction from before the draft that becomes due after it',
      async () => await add(ann, -70, soon()),
      async () => await sleep(350),
    ],
    [
      'a sale that was reported and refunded after the draft',
      async () => {},
      async () => {
        const user = await founder.customer();
        await founder.purchase(user, 10, { transactionId: 'late' });
        await founder.refund(user, 10, 'late');
      },
    ],
  ])('pays a creator in spite of %s', async (_, before, after) => {
    await before();
    const run = await draft();
    await after();
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 3, paidCents: 340 });
  });

  // @promise run-changed
  test.each<[string, (sale: string) => Promise<unknown>]>([
    ['a sale of the run is refunded', async (sale) => await founder.refund(sale, 10, sale)],
    ['a bonus of the run is undone', async () => await undo({ id: bonusId })],
  ])('does not pay a creator if %s after the draft', async (_, after) => {
    const user = await founder.customer();
    await founder.purchase(user, 10, { transactionId: user });
    bonusId = (await add(ann, 30)).id;
    const run = await draft();
    expect(run.totalCents).toBe(570);
    await after(user);
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 2, paidCents: 140 });
    expect((await list<{ outcome: string }>(run, 'items')).map(({ outcome }) => outcome)).toEqual([
      'total_changed',
      'paid',
      'paid',
    ]);
  });

  // @promise run-as-of
  test('pays creators who earn at the moment of its draft what it says', async () => {
    const over = new AbortController();
    const earnOn = async () => {
      while (!over.signal.aborted) await add(ann, 1);
    };
    const earning = [earnOn(), earnOn(), earnOn()];
    try {
      for (let round = 0; round < 10; round += 1) {
        const run = await draft();
        await approve(run);
        expect(await settled(run)).toMatchObject({ paidCount: run.itemCount, paidCents: run.totalCents });
      }
    } finally {
      over.abort();
      await Promise.all(earning);
    }
  });

  // @promise run-as-of
  test('leaves out what a transaction writes that is open during its draft', async () => {
    const writer = new pg.Client(service.database.url);
    await writer.connect();
    await writer.query('begin');
    await writer.query(
      `with entry as (
         insert into entries (id, app_id, affiliate_id, category, amount_cents, reason, external_id, due_at, account_id, key_id)
         select '${newId('entry')}', e.app_id, e.affiliate_id, 'bonus', 70, 'A test', 'open', date_trunc('milliseconds', now()), e.account_id, e.key_id
           from entries e where e.affiliate_id = '${ann}' limit 1
         returning *
       )
       insert into commissions (id, app_id, affiliate_id, entry_id, kind, rate_bps, base_cents, amount_cents, occurred_at, due_at)
       select '${newId('commission')}', app_id, affiliate_id, id, 'bonus', 0, 0, 70, due_at, due_at from entry`,
    );
    await add(ben, 5);
    const run = await draft();
    await writer.query('commit');
    await writer.end();
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 3, paidCents: 340 });
    expect(await payAll()).toMatchObject({ paidCount: 2, paidCents: 75 });
  });

  // @promise cancel-payout-run
  test('pays nobody after its cancellation is answered, whose request was open', async () => {
    const run = await draft();
    await runOn(
      service.database.url,
      `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour' where id = '${run.id}'`,
    );
    await openRunRequests(service.sql, run.id as PayoutRunId, 2);
    await cancel(run);
    expect(await list(run, 'items')).toMatchObject(
      Array.from({ length: 3 }, () => ({ outcome: 'cancelled', payoutId: null })),
    );
    await approve(run);
    expect(await settled(run)).toMatchObject({ status: 'settled', paidCount: 0 });
    expect(await payouts()).toEqual([]);
  });

  // @promise run-another-approver
  test('is approved by another key than those that drafted it and set its payees, if the app wants that', async () => {
    await founder.ok('PATCH', `${base}/settings`, { payoutApproval: 'another_key' });
    const key = async () =>
      (await createAccountKey(service.sql, founder.accountId as AccountId, ['read', 'payout'])).key;
    const [second, third] = [await key(), await key()];
    const payee = { method: 'other', recipient: { name: 'Ann', reference: 'Account 1' } };
    const path = `${base}/affiliates/${ann}/payee`;
    expect((await founder.call('PUT', path, { body: payee, key: second })).status).toBe(200);
    await waitForPayees(service.database.url);
    const run = await draft();
    const approveBy = async (by: string) =>
      await founder.call<Run>('POST', `${base}/payout-runs/${run.id}/approve`, {
        body: { expectedTotalCents: run.totalCents },
        key: by,
      });
    for (const by of [founder.key, second])
      expect(await approveBy(by)).toMatchObject({ status: 409, body: { code: 'another_approver_needed' } });
    await expect(
      runOn(
        service.database.url,
        `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id where id = '${run.id}'`,
      ),
    ).rejects.toThrow(/needs the approval of another key/);
    expect(await read(run)).toMatchObject({ status: 'draft' });
    expect((await approveBy(third)).status).toBe(202);
    expect(await settled(run)).toMatchObject({ paidCount: 3, paidCents: 340 });
  });

  // @promise run-another-approver
  test('is not approved by a key that has changed the address of a creator in it, or to which a code of its payee went', async () => {
    await founder.ok('PATCH', `${base}/settings`, { payoutApproval: 'another_key' });
    const permissions = ['read', 'write', 'payout'] as const;
    const key = async () =>
      (await createAccountKey(service.sql, founder.accountId as AccountId, [...permissions])).key;
    const [second, third] = [await key(), await key()];
    const takeOver = async (by: string, email: string) =>
      await founder.call('PATCH', `${base}/affiliates/${ann}`, { body: { email }, key: by });
    expect((await takeOver(second, 'second@example.com')).status).toBe(200);
    const approveBy = async (run: Run, by: string) => {
      const body = { expectedTotalCents: run.totalCents };
      return (await founder.call('POST', `${base}/payout-runs/${run.id}/approve`, { body, key: by })).status;
    };
    const change = async (text: string) => await runOn(service.database.url, text);
    const first = await draft();
    expect(await approveBy(first, second)).toBe(409);
    // Eight days later the address counts for codes, and the creator, or who reads those mails, sets a payee with one.
    await change(`update affiliates set email_set_at = now() - interval '8 days' where id = '${ann}'`);
    const payee = { method: 'other', recipient: { name: 'Ann', reference: 'Account 1' } };
    await founder.call('PUT', `${base}/affiliates/${ann}/payee`, { body: payee, key: third });
    await change('alter table payees disable trigger payees_confirmed');
    await change(`
      insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id, set_at, counts_from)
      select 'pye_01jz4w2vxq8m3c5t7e9f1g3h5k', app_id, affiliate_id, version + 1, method, ciphertext, encryption_key_id, set_at, counts_from
        from payees where affiliate_id = '${ann}'`);
    await change('alter table payees enable trigger payees_confirmed');
    await waitForPayees(service.database.url);
    // Somebody else corrects the address afterwards.
    expect((await takeOver(third, 'ann@example.com')).status).toBe(200);
    await change(`update affiliates set email_set_at = now() - interval '8 days' where id = '${ann}'`);
    const run = await draft();
    expect(run.itemCount).toBe(3);
    expect(await approveBy(run, second)).toBe(409);
    expect(await approveBy(run, third)).toBe(202);
    expect(await settled(run)).toMatchObject({ paidCount: 3 });
  });

  // @promise run-refused
  test('keeps its terms in the database: the minimum, the wait of a payee, who has none, and the end of the draft', async () => {
    const change = async (text: string) => await runOn(service.database.url, text);
    const payee = { method: 'other', recipient: { name: 'Ann', reference: 'Account 1' } };
    await founder.ok('PUT', `${base}/affiliates/${ann}/payee`, payee);
    const first = await draft(50, 'exclude');
    /** Drafts a run of $0.50 at least that leaves out who has no payee, with one item. */
    const insert = (creator: string, cents: number, version: number | null) =>
      change(`begin;
        update payout_runs set status = 'cancelled', ended_at = now() where id = '${first.id}';
        insert into payout_runs (id, app_id, account_id, key_id, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at)
        select 'run_01jz4w2vxq8m3c5t7e9f1g3h5k', app_id, account_id, key_id, now(), 50, false, 1, ${cents}, now() + interval '1 day'
          from payout_runs where id = '${first.id}';
        insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payee_version)
        values ('pit_01jz4w2vxq8m3c5t7e9f1g3h5k', '${founder.app.id}', 'run_01jz4w2vxq8m3c5t7e9f1g3h5k', '${creator}', 'x', 1, ${cents}, 'other', ${version});
        rollback`);
    await expect(insert(ben, 49, null)).rejects.toThrow(/below the minimum/);
    await expect(insert(ann, 50, 1)).rejects.toThrow(/a payee waits/);
    await expect(insert(ben, 50, null)).rejects.toThrow(/without a payee are left out/);
    await waitForPayees(service.database.url);
    await insert(ann, 50, 1);
    const second = await draft();
    await change(
      `alter table payout_runs disable trigger payout_runs_transition;
       update payout_runs set created_at = now() - interval '9 days', expires_at = now() where id = '${second.id}';
       alter table payout_runs enable trigger payout_runs_transition`,
    );
    await expect(
      change(
        `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id where id = '${second.id}'`,
      ),
    ).rejects.toThrow(/the draft has expired/);
  });

  // @promise run-no-single-export
  test('is the only way to pay if the app wants another approver: a single export is refused', async () => {
    const before = await founder.call('POST', `${base}/affiliates/${cleo}/payouts/export`, {
      headers: { 'Idempotency-Key': 'before' },
    });
    expect(before.status).toBe(200);
    await founder.ok('PATCH', `${base}/settings`, { payoutApproval: 'another_key' });
    expect(await founder.call('POST', `${base}/affiliates/${ann}/payouts/export`)).toMatchObject({
      status: 409,
      body: { code: 'another_approver_needed', detail: expect.stringContaining('Draft a payout run') },
    });
    // The answer of an earlier export that was lost is still given.
    const again = await founder.call('POST', `${base}/affiliates/${cleo}/payouts/export`, {
      headers: { 'Idempotency-Key': 'before' },
    });
    expect([again.status, again.text]).toEqual([200, before.text]);
    // An export that had begun before the setting was changed.
    const open = await openPayoutRequest(service.sql, {
      id: newId('payoutRequest'),
      appId: founder.app.id as AppId,
      affiliateId: ann as AffiliateId,
      accountId: founder.accountId as AccountId,
      keyId: (
        await service.sql.one<{
          id: KeyId;
        }>`select id from account_keys where account_id = ${founder.accountId} limit 1`
      ).id,
      idempotencyKey: 'begun',
      expectedTotalCents: null,
      validForMs: 60_000,
    });
    if (open === undefined || open === 'key_reused') throw new Error('no request');
    await expect(
      runOn(
        service.database.url,
        `update payout_requests set status = 'paid', settled_at = now(), net_cents = 200,
                payout_id = (select id from payouts where affiliate_id = '${cleo}') where id = '${open.id}'`,
      ),
    ).rejects.toThrow(/needs the approval of another key/);
    await settlePayoutRequest(service.sql, open.id);
    expect(await findPayoutRequest(service.sql, open.id)).toMatchObject({ status: 'closed', payoutId: null });
    expect(await payouts()).toHaveLength(1);
    // Its key is free: who asks again reads what to do, and not that the first one is still in progress.
    expect(
      await founder.call('POST', `${base}/affiliates/${ann}/payouts/export`, {
        headers: { 'Idempotency-Key': 'begun' },
      }),
    ).toMatchObject({ status: 409, body: { code: 'another_approver_needed' } });
  });

  // @promise run-no-single-export
  test('an export for which the app wants another approver while it waits to be settled says so, and pays nothing', async () => {
    const key = await service.sql.one<{ id: KeyId }>`
      select id from account_keys where account_id = ${founder.accountId} limit 1`;
    const begun = {
      appId: founder.app.id as AppId,
      affiliateId: ann as AffiliateId,
      accountId: founder.accountId as AccountId,
      keyId: key.id,
      idempotencyKey: null,
      expectedTotalCents: null,
    };
    const settlePayout = async ({ id }: { readonly id: PayoutRequestId }) => {
      await founder.ok('PATCH', `${base}/settings`, { payoutApproval: 'another_key' });
      await settlePayoutRequest(service.sql, id);
    };
    expect(await exportPayout({ sql: service.sql, workflows: { settlePayout } }, begun)).toEqual({
      kind: 'another_approver_needed',
    });
    expect(await payouts()).toHaveLength(0);
  });

  // @promise run-one-open
  test('is drafted or approved by one call of an app at a time: others get a 409, and nothing else', async () => {
    const run = await draft();
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (__, n) =>
        n % 2 === 0
          ? await founder.call<Run>('POST', `${base}/payout-runs`, { body: { withoutPayee: 'include' } })
          : await approve(run),
      ),
    );
    for (const { status } of answers) expect([201, 202, 409]).toContain(status);
    const { open } = await service.sql.one<{ open: number }>`
      select count(*)::int as open from payout_runs where app_id = ${founder.app.id} and status in ('draft', 'approved')`;
    expect(open).toBeLessThanOrEqual(1);
  });

  // @promise run-payees
  test('pays to the payee that counts: nobody without one, or whose payee is new or was changed after the draft', async () => {
    const dora = await newCreator('Dora');
    await add(dora, 500);
    const paypal = (email: string) => ({ method: 'paypal', recipient: { email } });
    const wise = { email: 'ben@example.com', name: 'Ben, "B"', receiverType: 'PERSON' };
    await setPayee(ann, paypal('ann@example.com'));
    await setPayee(ben, { method: 'wise', recipient: wise });
    await setPayee(dora, paypal('dora@example.com'));
    await waitForPayees(service.database.url);
    const eve = await newCreator('Eve');
    await add(eve, 10);
    await setPayee(eve, paypal('eve@example.com'));
    const run = await draft(0, 'exclude');
    expect(await list(run, 'items')).toMatchObject([
      { affiliateId: dora, method: 'paypal' },
      { affiliateId: ann, method: 'paypal' },
      { affiliateId: ben, method: 'wise' },
    ]);
    expect(await list(run, 'excluded')).toMatchObject([
      { affiliateId: cleo, reason: 'no_payee' },
      { affiliateId: eve, reason: 'payee_changed' },
    ]);
    await setPayee(dora, paypal('thief@example.com'));
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 2, paidCents: 300 });
    const items = await list<{ id: string; outcome: string }>(run, 'items');
    expect(items.map(({ outcome }) => outcome)).toEqual(['payee_changed', 'paid', 'paid']);
    const files = (await list<RunFile>(run, 'files')).map(({ id, ...file }) => ({
      ...file,
      path: `${base}/payout-runs/${run.id}/files/${id}/download`,
    }));
    expect(files).toMatchObject([
      { method: 'paypal', part: 1, rowCount: 1, totalCents: 200, downloadCount: 0 },
      { method: 'wise', part: 1, rowCount: 1, totalCents: 100, downloadCount: 0 },
    ]);
    const [first, second] = await Promise.all(
      files.map(async ({ path }) => await founder.call('POST', path)),
    );
    expect(first?.text).toBe(`ann@example.com,2.00,USD,${items[1]?.id},Commissions,PAYPAL\r\n`);
    expect(second?.text).toBe(
      'name,recipientEmail,paymentReference,receiverType,amountCurrency,amount,sourceCurrency,targetCurrency\r\n' +
        `"Ben, ""B""",ben@example.com,${items[2]?.id.slice(-16)},PERSON,target,1.00,USD,USD\r\n`,
    );
    expect(first?.headers.get('x-payout-sha256')).toBe(files[0]?.sha256);
    expect((await founder.call('POST', files[0]?.path ?? '')).text).toBe(first?.text);
    expect(await list(run, 'files')).toMatchObject([{ downloadCount: 2 }, { downloadCount: 1 }]);
  });

  test('names no recipient who was replaced or blocked after the payment and before the files were written', async () => {
    for (const [creator, name] of [
      [ann, 'ann'],
      [ben, 'ben'],
      [cleo, 'cleo'],
    ] as const)
      await setPayee(creator, paypalOf(name));
    await waitForPayees(service.database.url);
    const run = await draft();
    await runOn(
      service.database.url,
      `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour' where id = '${run.id}'`,
    );
    const runId = run.id as PayoutRunId;
    await openRunRequests(service.sql, runId, 10);
    const requests = await service.sql<{ requestId: PayoutRequestId }>`
      select request_id from payout_run_items where run_id = ${runId}`;
    for (const { requestId } of requests) await settlePayoutRequest(service.sql, requestId);
    await setPayee(ann, paypalOf('ann-again'));
    await founder.ok('POST', `${base}/affiliates/${ben}/payout-blocks`, {
      state: 'blocked',
      reason: 'A test',
    });
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 3, paidCents: 340 });
    const files = await list<RunFile>(run, 'files');
    expect(files).toMatchObject([
      { method: 'other', rowCount: 2, totalCents: 300 },
      { method: 'paypal', rowCount: 1, totalCents: 40 },
    ]);
    const { text } = await download(run, files[0]);
    expect(text).not.toContain('@example.com');
  });

  const erasePayees = async (creator: string) =>
    await founder.call<{ erasedVersions: number; code: string; detail: string }>(
      'DELETE',
      `${base}/affiliates/${creator}/payees`,
    );
  const download = async (run: Run, file: RunFile | undefined) =>
    await founder.call<{ code: string }>('POST', `${base}/payout-runs/${run.id}/files/${file?.id}/download`);
  const paypalOf = (name: string) => ({ method: 'paypal', recipient: { email: `${name}@example.com` } });
  const wiseOf = (name: string) => ({
    method: 'wise',
    recipient: { email: `${name}@example.com`, name, receiverType: 'PERSON' },
  });

  // @promise erase-payout-files, delete-payees
  test('loses a file only when a creator with a recipient in it is erased, after somebody has downloaded it', async () => {
    await setPayee(ann, paypalOf('ann'));
    await setPayee(ben, wiseOf('ben'));
    await setPayee(cleo, paypalOf('cleo'));
    await waitForPayees(service.database.url);
    const run = await draft(0, 'exclude');
    await add(cleo, -10);
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 2, paidCents: 300 });
    const [paypal, wise] = await list<RunFile>(run, 'files');

    // Who was not paid is in no file.
    expect(await erasePayees(cleo)).toMatchObject({ status: 200, body: { erasedVersions: 1 } });
    expect(await list(run, 'files')).toMatchObject([
      { method: 'paypal', erased: false },
      { method: 'wise', erased: false },
    ]);

    // The file is the only list of whom to pay, whatever became of the others.
    expect((await download(run, wise)).status).toBe(200);
    const refused = await erasePayees(ann);
    expect(refused).toMatchObject({ status: 409, body: { code: 'payout_file_not_downloaded' } });
    expect(refused.body.detail).toContain(`${paypal?.id} of ${run.id}`);
    expect(refused.body.detail).not.toContain(wise?.id);
    expect(await founder.ok('GET', `${base}/affiliates/${ann}/payee`)).toMatchObject({
      version: 1,
      recipient: { email: 'ann@example.com' },
    });
    expect(await list(run, 'files')).toMatchObject([
      { erased: false, downloadCount: 0 },
      { erased: false, downloadCount: 1 },
    ]);

    expect((await download(run, paypal)).text).toMatch(/^ann@example\.com,2\.00,/);
    expect(await erasePayees(ann)).toMatchObject({ status: 200, body: { erasedVersions: 1 } });
    expect(await download(run, paypal)).toMatchObject({ status: 409, body: { code: 'payout_file_erased' } });
    expect((await download(run, wise)).text).toContain('ben@example.com');
    expect(await list(run, 'files')).toMatchObject([
      { erased: true, rowCount: 1, totalCents: 200, downloadCount: 1 },
      { erased: false, downloadCount: 2 },
    ]);
    // A repetition erases nothing more.
    expect(await erasePayees(ann)).toMatchObject({ status: 200, body: { erasedVersions: 1 } });
    expect(await list(run, 'files')).toMatchObject([{ erased: true }, { erased: false }]);
  });

  // @promise erase-payout-files
  test('keeps a file in which an erased creator has no recipient', async () => {
    await setPayee(ben, { method: 'other', recipient: { name: 'Ben', reference: 'Account 1' } });
    await waitForPayees(service.database.url);
    const run = await payAll();
    const [file, ...others] = await list<RunFile>(run, 'files');
    expect([file, others]).toMatchObject([{ method: 'other', rowCount: 3 }, []]);
    // Set after the run.
    await setPayee(ann, { method: 'other', recipient: { name: 'Ann', reference: 'Account 2' } });
    expect(await erasePayees(ann)).toMatchObject({ status: 200, body: { erasedVersions: 1 } });
    expect(await list(run, 'files')).toMatchObject([{ erased: false }]);
    expect((await download(run, file)).text).toContain('Account 1');
    expect((await erasePayees(ben)).status).toBe(200);
    expect(await list(run, 'files')).toMatchObject([{ erased: true }]);
  });

  // @promise erase-payout-files
  test('returns the bytes of a file to a download that runs at the same time as the erasure of a creator in it', async () => {
    await setPayee(ann, paypalOf('ann'));
    await waitForPayees(service.database.url);
    for (let round = 0; round < 5; round += 1) {
      const run = await payAll(0, 'exclude');
      const [file] = await list<RunFile>(run, 'files');
      const [downloaded, erased] = await Promise.all([download(run, file), erasePayees(ann)]);
      expect([downloaded.status, downloaded.text.startsWith('ann@example.com,')]).toEqual([200, true]);
      expect(await list(run, 'files')).toMatchObject([{ erased: erased.status === 200, downloadCount: 1 }]);
      expect([200, 409]).toContain(erased.status);
      await add(ann, 100);
      await setPayee(ann, paypalOf('ann'));
      await waitForPayees(service.database.url);
    }
  });

  // @promise get-payout-run-files, download-payout-run-file
  test('has a file of its own for creators without a payee, and is in its files row by row', async () => {
    const run = await payAll();
    const [file] = await list<RunFile>(run, 'files');
    expect(file).toMatchObject({ method: 'other', rowCount: 3, totalCents: 340 });
    const { text } = await founder.call('POST', `${base}/payout-runs/${run.id}/files/${file?.id}/download`);
    const items = await list<{ id: string }>(run, 'items');
    expect(text.split('\r\n')).toEqual([
      'item_id,affiliate_id,affiliate_name,name,reference,amount_usd,currency',
      `${items[0]?.id},${ann},Test creator,,,2.00,USD`,
      `${items[1]?.id},${ben},Ben,,,1.00,USD`,
      `${items[2]?.id},${cleo},Cleo,,,0.40,USD`,
      '',
    ]);
    const unknown = `${base}/payout-runs/${run.id}/files/${newId('payoutFile')}/download`;
    expect((await founder.call('POST', unknown)).status).toBe(404);
  });

  // @promise run-database
  test('is paid by no statement with another amount, and changes no more once it was approved', async () => {
    const run = await draft();
    const change = async (text: string) => await runOn(service.database.url, text);
    const where = `where id = '${run.id}'`;
    await expect(change(`update payout_runs set total_cents = 1 ${where}`)).rejects.toThrow(
      /does not change this way/,
    );
    await expect(change(`delete from payout_runs ${where}`)).rejects.toThrow(/cannot be changed or deleted/);
    await expect(
      change(`update payout_run_items set expected_cents = 1 where run_id = '${run.id}'`),
    ).rejects.toThrow(/does not change this way/);
    const request = (cents: number) => `
      with request as (
        insert into payout_requests (id, app_id, affiliate_id, account_id, key_id, expected_total_cents, expires_at)
        select '${newId('payoutRequest')}', i.app_id, i.affiliate_id, r.account_id, r.key_id, ${cents}, now() + interval '1 hour'
          from payout_run_items i join payout_runs r on r.id = i.run_id where i.run_id = '${run.id}' and i.position = 1
        returning id
      )
      select * from request`;
    const attach = `update payout_run_items i set request_id = q.id from payout_requests q
                     where i.run_id = '${run.id}' and i.position = 1 and q.affiliate_id = i.affiliate_id`;
    await change(request(199));
    await expect(change(attach)).rejects.toThrow(/does not change this way/);
    await change(
      `update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour' ${where}`,
    );
    await expect(change(attach)).rejects.toThrow(/does not change this way/);
    await expect(
      change(
        `update payout_runs set status = 'settled', ended_at = now(), paid_count = 0, paid_cents = 0 ${where}`,
      ),
    ).rejects.toThrow(/are not settled/);
    await expect(
      change(`update payout_runs set status = 'cancelled', ended_at = now() ${where}`),
    ).rejects.toThrow();
    await expect(
      change(
        `insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method)
         select '${newId('payoutRunItem')}', app_id, run_id, affiliate_id, 'x', 9, 1, 'other' from payout_run_items where run_id = '${run.id}' limit 1`,
      ),
    ).rejects.toThrow(/is not being drafted/);
    await change(request(200));
    await change(`${attach} and q.expected_total_cents = 200`);
    const result = `update payout_requests set status = 'total_changed', settled_at = now()
      where id = (select request_id from payout_run_items where run_id = '${run.id}' and position = 1)`;
    await expect(change(result)).rejects.toThrow(/which this process does not know/);
    await expect(
      change(`set tributary.settles_runs = 'on'; update payout_requests set status = 'paid', settled_at = now(), net_cents = 199
               where id = (select request_id from payout_run_items where run_id = '${run.id}' and position = 1)`),
    ).rejects.toThrow(/is of a payout run with another amount or payee/);
    await cancel(run);
    await approve(run);
    expect(await settled(run)).toMatchObject({ paidCount: 0 });
  });
});
