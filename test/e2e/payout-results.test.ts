import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { newId } from '../../src/db/new-id.ts';
import { decideResends } from '../../src/db/payout-resends.ts';
import { stateTransfers } from '../../src/db/payout-run-transfers.ts';
import type { FiledItem } from '../../src/db/payout-run-transfers.ts';
import type { AccountId, AppId, KeyId, PayoutRunId } from '../../src/domain/ids.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { RunCalls, waitForPayees } from '../support/payout-runs.ts';
import type { Run, RunFile } from '../support/payout-runs.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startRelayedApi } from '../support/relayed-api.ts';
import type { RelayedApi } from '../support/relayed-api.ts';
import { untilWaiting } from '../support/waiting.ts';

let service: RelayedApi;
let founder: Founder;
let runs: RunCalls;
let base: string;
/** Have due: $2.00, $1.00 and $0.40. */
let ann: string;
let ben: string;
let cleo: string;

beforeAll(async () => {
  service = await startRelayedApi();
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
  [ben, cleo] = [await runs.newCreator('Ben'), await runs.newCreator('Cleo')];
  await runs.add(ann, 200);
  await runs.add(ben, 100);
  await runs.add(cleo, 40);
});

interface Item {
  readonly id: string;
  readonly affiliateId: string;
  readonly outcome: string | null;
  readonly payoutId: string;
  readonly transferState: string | null;
}
interface Results {
  readonly code?: string;
  readonly errors?: readonly unknown[];
  readonly sentCount: number;
  readonly returnedCount: number;
  readonly conflictCount: number;
}

const itemsOf = async (run: Run) => await runs.list<Item>(run, 'items');
const statesOf = async (run: Run) => (await itemsOf(run)).map(({ transferState }) => transferState);
const transfersOf = async (payoutId: string) =>
  (
    await founder.ok<{ transfers: { state: string; method: string | null; reference: string | null }[] }>(
      'GET',
      `${base}/payouts/${payoutId}`,
    )
  ).transfers;

/** A report as a payment service writes it, of the items of a run in their order. */
const reportOf = (items: readonly Item[], statuses: readonly string[]) =>
  ['Transaction ID,Status,Unique ID', ...statuses.map((status, n) => `T${n},${status},${items[n]?.id}`)].join(
    '\n',
  );

const preview = async ({ id }: Run, body: object) =>
  await founder.call<Results>('POST', `${base}/payout-runs/${id}/results/preview`, { body });
const apply = async ({ id }: Run, csv: string, expected: { sentCount: number; returnedCount: number }) =>
  await founder.call<Results>('POST', `${base}/payout-runs/${id}/results`, { body: { csv, expected } });
/** Imports a report, as its preview says. */
const importReport = async (run: Run, csv: string) => {
  const { sentCount, returnedCount } = (await preview(run, { csv })).body;
  const answer = await apply(run, csv, { sentCount, returnedCount });
  expect(answer.status).toBe(200);
  return answer.body;
};
const markSent = async ({ id }: Run, reference?: string) =>
  await founder.call<{ sentCount: number; code?: string }>('POST', `${base}/payout-runs/${id}/transfers`, {
    body: { state: 'sent', ...(reference !== undefined && { reference }) },
  });
const returned = async () =>
  await founder.ok<{
    count: number;
    totalCents: number;
    rows: { payoutId: string }[];
    contradicted: { count: number };
  }>('GET', `${base}/payouts/returned`);
const resend = async (withoutPayee = 'include') => await runs.run(0, withoutPayee, 'resend');

describe('the payouts of a run', () => {
  // @promise add-payout-run-results
  test('come back completely when what is stated about them needs several transactions', async () => {
    const run = await runs.run();
    const { keyId } = await service.sql.one<{
      keyId: KeyId;
    }>`select key_id from payout_runs where id = ${run.id}`;
    const place = {
      appId: founder.app.id as AppId,
      runId: run.id as PayoutRunId,
      accountId: founder.accountId as AccountId,
      keyId,
    };
    // As for a report without references: nothing more is stated about money that was sent.
    const cameBack = (items: readonly FiledItem[]) =>
      new Map(
        items
          .filter(({ state }) => state === null)
          .map(({ id }) => [id, { statements: ['sent', 'returned'] as const, reference: null, others: [] }]),
      );
    await stateTransfers<never>(service.sql, place, cameBack, 3);
    expect(await statesOf(run)).toEqual(['returned', 'returned', 'returned']);
    expect(await returned()).toMatchObject({ count: 3, totalCents: 340 });
  });

  // @promise add-payout-run-transfers
  test('are stated as sent by the method of their files, when only those were uploaded', async () => {
    await runs.setPayee(ben, { method: 'paypal', recipient: { email: 'ben@example.com' } });
    await waitForPayees(service.database.url);
    const run = await runs.run();
    const mark = async (method?: string) =>
      await founder.ok<{ sentCount: number }>('POST', `${base}/payout-runs/${run.id}/transfers`, {
        state: 'sent',
        ...(method !== undefined && { method }),
      });
    expect(await mark('wise')).toEqual({ sentCount: 0 });
    expect(await mark('paypal')).toEqual({ sentCount: 1 });
    expect(await statesOf(run)).toEqual([null, 'sent', null]);
    expect(await mark()).toEqual({ sentCount: 2 });
  });

  // @promise add-payout-run-transfers
  test('are stated as sent in one call, but for those about which something was stated, once', async () => {
    const draft = await runs.draft();
    expect(await markSent(draft)).toMatchObject({ status: 409, body: { code: 'payout_run_not_settled' } });
    await runs.approve(draft);
    const run = await runs.settled(draft);
    const [first] = await itemsOf(run);
    await founder.ok('POST', `${base}/payouts/${first?.payoutId}/transfers`, { state: 'sent' });
    await founder.ok('POST', `${base}/payouts/${first?.payoutId}/transfers`, { state: 'withdrawn' });
    expect((await markSent(run, 'batch 7')).body).toEqual({ sentCount: 2 });
    expect((await markSent(run, 'batch 8')).body).toEqual({ sentCount: 0 });
    const items = await itemsOf(run);
    expect(items.map(({ transferState }) => transferState)).toEqual([null, 'sent', 'sent']);
    expect(await transfersOf(items[1]?.payoutId ?? '')).toMatchObject([
      { state: 'sent', reference: 'batch 7' },
    ]);
  });

  // @promise preview-payout-run-results, add-payout-run-results, get-returned-payouts
  test('get what a report of the payment service says, after a preview that changes nothing', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    const csv = `${reportOf(items, ['Completed', 'Returned', 'Unclaimed'])}\nT9,Completed,somebody else`;
    const { body } = await preview(run, { csv });
    expect(body).toMatchObject({
      columns: { status: 'Status', reference: 'Transaction ID' },
      sentCount: 1,
      returnedCount: 1,
      unchangedCount: 0,
      pendingCount: 1,
      unknownCount: 0,
      unmatchedCount: 1,
      rows: [
        { affiliateId: ben, amountCents: 100, status: 'Returned', outcome: 'returned' },
        { affiliateId: cleo, amountCents: 40, status: 'Unclaimed', outcome: 'pending' },
      ],
      unmatchedRows: [{ row: 5, status: 'Completed' }],
    });
    expect(await statesOf(run)).toEqual([null, null, null]);
    expect((await apply(run, csv, { sentCount: 1, returnedCount: 1 })).body).toEqual(body);
    expect(await statesOf(run)).toEqual(['sent', 'returned', null]);
    expect(await transfersOf(items[1]?.payoutId ?? '')).toMatchObject([
      { state: 'returned', reference: 'T1' },
      { state: 'sent', reference: 'T1' },
    ]);
    expect(await returned()).toMatchObject({ count: 1, totalCents: 100, rows: [{ affiliateId: ben }] });
  });

  // @promise run-results-once
  test('get nothing more from a report that is imported again, or by several calls at once', async () => {
    const run = await runs.run();
    const csv = reportOf(await itemsOf(run), ['Completed', 'Returned', 'Completed']);
    const expected = { sentCount: 2, returnedCount: 1 };
    const answers = await Promise.all(Array.from({ length: 4 }, async () => await apply(run, csv, expected)));
    expect(answers.map(({ status, body }) => body.code ?? status)).toEqual([200, 200, 200, 200]);
    expect(await apply(run, csv, expected)).toMatchObject({
      status: 200,
      body: { sentCount: 0, returnedCount: 0, unchangedCount: 3 },
    });
    const { transfers } = await service.sql.one<{ transfers: number }>`
      select count(*)::int as transfers from payout_transfers where app_id = ${founder.app.id}`;
    expect(transfers).toBe(4);
  });

  test('get nothing from a report that states more than its preview said', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    const csv = reportOf(items, ['Completed', 'Returned', 'Completed']);
    expect(await apply(run, csv, { sentCount: 1, returnedCount: 1 })).toMatchObject({
      status: 409,
      body: { code: 'payout_report_changed' },
    });
    expect(await statesOf(run)).toEqual([null, null, null]);
    // Less than the preview said is left to state: somebody has stated the rest.
    await founder.ok('POST', `${base}/payouts/${items[0]?.payoutId}/transfers`, { state: 'sent' });
    expect(await apply(run, csv, { sentCount: 2, returnedCount: 1 })).toMatchObject({
      status: 200,
      body: { sentCount: 1, returnedCount: 1, unchangedCount: 1 },
    });
  });

  test('get what words of another language mean, in columns that the caller names', async () => {
    const run = await runs.run();
    const [first] = await itemsOf(run);
    const csv = `﻿Zustand;Beleg;Verwendung\r\nAusgeführt;B-1;Provision ${first?.id.slice(-16).toUpperCase()}\r\n`;
    expect(await preview(run, { csv })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'columns.status', message: expect.stringContaining('Zustand, Beleg') }] },
    });
    const columns = { status: 'Zustand', reference: 'Beleg' };
    expect((await preview(run, { csv, columns })).body).toMatchObject({
      unknownCount: 1,
      statuses: [{ status: 'Ausgeführt', meaning: 'unknown', count: 1 }],
    });
    const meanings = { Ausgeführt: 'sent' };
    expect((await preview(run, { csv, columns, meanings })).body).toMatchObject({ sentCount: 1 });
  });

  test.each([
    ['csv', { csv: '' }],
    ['csv', { csv: 'Status\n"open' }],
    ['csv', { csv: `Status${',x'.repeat(60_000)}\n1` }],
    ['csv', { csv: `Status\n${'1\n'.repeat(30_000)}` }],
    ['csv', { csv: `Status,x\n${','.repeat(250_000)}` }],
    ['csv', { csv: `Status\n${'x'.repeat(70_000)}` }],
    ['columns.status', { csv: 'a,b\n1,2' }],
    ['columns.reference', { csv: 'Status\nSent', columns: { status: 'Status', reference: 'Ref' } }],
  ])('refuse a report with a wrong %s: %#', async (path, body) => {
    const run = await runs.run();
    expect(await preview(run, body)).toMatchObject({ status: 400, body: { errors: [{ path }] } });
  });

  // @promise run-results-cost
  test('of no run, or of one that is not settled, are looked up before a report is read', async () => {
    const draft = await runs.draft();
    const body = { csv: 'Status\n"open' };
    expect(await preview(draft, body)).toMatchObject({
      status: 409,
      body: { code: 'payout_run_not_settled' },
    });
    const unknown = { ...draft, id: newId('payoutRun') };
    expect(await preview(unknown, body)).toMatchObject({ status: 404 });
    expect(await apply(unknown, body.csv, { sentCount: 0, returnedCount: 0 })).toMatchObject({ status: 404 });
  });

  test('of another run or app get nothing from a report', async () => {
    const run = await runs.run();
    const csv = reportOf(await itemsOf(run), ['Returned', 'Returned', 'Returned']);
    await runs.add(ann, 70);
    const next = await runs.run();
    expect(await importReport(next, csv)).toMatchObject({ returnedCount: 0, unmatchedCount: 3 });
    const other = new RunCalls(await setUpFounder(service));
    const { id } = other.founder.app;
    expect(
      await other.founder.call('POST', `/apps/${id}/payout-runs/${run.id}/results/preview`, {
        body: { csv },
      }),
    ).toMatchObject({ status: 404 });
    const none = { count: 0, totalCents: 0, rows: [] };
    expect(await returned()).toEqual({ ...none, contradicted: none });
  });
});

/** A report with two transfers of each item, as after a file that was uploaded again. */
const reportOfTwo = (items: readonly Item[], first: string, second: string) =>
  [
    'Transaction ID,Status,Unique ID',
    ...items.flatMap(({ id }, n) => [`A${n + 1},${first},${id}`, `B${n + 1},${second},${id}`]),
  ].join('\n');
/** A report with one transfer of each item. */
const reportOfOne = (items: readonly Item[], status: string, transfer: string) =>
  [
    'Transaction ID,Status,Unique ID',
    ...items.map(({ id }, n) => `${transfer}${n + 1},${status},${id}`),
  ].join('\n');

describe('the payouts of a file that was uploaded again', () => {
  // @promise run-results-two-transfers
  test.each([
    ['Denied', 'Completed'],
    ['Completed', 'Cancelled'],
  ])(
    'are stated as sent, and in conflict, by a report with both transfers: %s and %s',
    async (first, second) => {
      const run = await runs.run();
      const items = await itemsOf(run);
      const csv = reportOfTwo(items, first, second);
      expect(await importReport(run, csv)).toMatchObject({
        sentCount: 3,
        returnedCount: 0,
        conflictCount: 3,
        rows: [
          { affiliateId: ann, outcome: 'conflict' },
          { affiliateId: ben, outcome: 'conflict' },
          { affiliateId: cleo, outcome: 'conflict' },
        ],
      });
      expect(await statesOf(run)).toEqual(['sent', 'sent', 'sent']);
      // Each transfer that came back is reported alone, too.
      const cameBack = reportOfOne(items, 'Returned', first === 'Denied' ? 'A' : 'B');
      expect(await importReport(run, cameBack)).toMatchObject({ returnedCount: 0, conflictCount: 3 });
      expect(await returned()).toMatchObject({ count: 0, contradicted: { count: 0 } });
      expect(await resend().catch(() => null)).toBeNull();
    },
  );

  // @promise run-results-conflict
  test('are not sent again after a second report says that they arrived, until somebody has decided', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    await importReport(run, reportOfOne(items, 'Failed', 'A'));
    const draft = await runs.draft(0, 'include', 'resend');
    expect(draft).toMatchObject({ itemCount: 3, totalCents: 340 });
    const csv = reportOfOne(items, 'Completed', 'B');
    expect((await preview(run, { csv })).body).toMatchObject({ conflictCount: 3, unchangedCount: 0 });
    expect(await returned()).toMatchObject({ count: 3 });
    expect(await importReport(run, csv)).toMatchObject({ sentCount: 0, conflictCount: 3 });
    expect(await returned()).toMatchObject({
      count: 0,
      totalCents: 0,
      rows: [],
      contradicted: { count: 3, totalCents: 340, rows: [{ affiliateId: ann }, {}, {}] },
    });
    // The draft of before sends nothing, and a new one has nothing.
    await runs.approve(draft);
    expect(await runs.settled(draft)).toMatchObject({ paidCount: 0, paidCents: 0 });
    expect((await itemsOf(draft)).map(({ outcome }) => outcome)).toEqual(Array(3).fill('not_returned'));
    expect(await runs.draft(0, 'include', 'resend')).toMatchObject({ itemCount: 0 });

    const state = async (n: number, next: string) =>
      await founder.ok('POST', `${base}/payouts/${items[n]?.payoutId}/transfers`, { state: next });
    // The first arrived. The second came back after all. Of the third, nobody knows yet.
    await state(0, 'return_withdrawn');
    await state(1, 'return_withdrawn');
    await state(1, 'returned');
    expect(await returned()).toMatchObject({ count: 1, totalCents: 100, contradicted: { count: 1 } });
    expect(await importReport(run, csv)).toMatchObject({ sentCount: 0, conflictCount: 1, unchangedCount: 2 });
    expect(await resend()).toMatchObject({ paidCount: 1, paidCents: 100 });
    expect(await statesOf(run)).toEqual(['sent', 'returned', 'returned']);
  });

  test('are not sent again where a transfer arrives that was under way when somebody stated the return', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    await importReport(run, reportOfOne(items, 'Pending', 'B'));
    const before = await returned();
    const state = async (next: string) => {
      for (const { payoutId } of items)
        await founder.ok('POST', `${base}/payouts/${payoutId}/transfers`, { state: next });
    };
    await state('sent');
    await state('returned');
    expect(await returned()).toMatchObject({ count: before.count + 3, contradicted: before.contradicted });
    const csv = reportOfOne(items, 'Completed', 'B');
    for (let n = 0; n < 2; n += 1)
      expect(await importReport(run, csv)).toMatchObject({ sentCount: 0, conflictCount: 3 });
    expect(await returned()).toMatchObject({
      count: before.count,
      contradicted: { count: before.contradicted.count + 3 },
    });
    // The transfer that arrived is the payment.
    await state('return_withdrawn');
    expect(await importReport(run, csv)).toMatchObject({ conflictCount: 0, unchangedCount: 3 });
  });

  test('stay unanswered in the database, too, while a report contradicts their return', async () => {
    const run = await runs.run();
    const [first] = await itemsOf(run);
    await importReport(run, reportOfOne(await itemsOf(run), 'Failed', 'A'));
    const draft = await runs.draft(0, 'include', 'resend');
    const approve = (then: string) =>
      runOn(
        service.database.url,
        `begin;
         update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
          where id = '${draft.id}';
         ${then}
         update payout_run_items set resend_result = 'resent', return_position = 2
          where run_id = '${draft.id}' and payout_id = '${first?.payoutId}';
         rollback`,
      );
    await approve('');
    const other = `insert into other_transfers (app_id, payout_id, position, reference, account_id, key_id)
      select app_id, payout_id, 2, 'B1', account_id, key_id from payout_transfers where payout_id = '${first?.payoutId}' and position = 2;`;
    await expect(approve(other)).rejects.toThrow(/contradicted by a report/);
    await expect(
      runOn(service.database.url, `begin; ${other} delete from other_transfers; rollback`),
    ).rejects.toThrow(/other_transfers/);
  });

  test('of which a further transfer arrived that was sent again already are a conflict, and audited', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    await importReport(run, reportOfOne(items, 'Failed', 'A'));
    const again = await resend();
    expect(again).toMatchObject({ paidCount: 3 });
    const csv = reportOfOne(items, 'Completed', 'B');
    expect(await importReport(run, csv)).toMatchObject({ conflictCount: 3 });
    // An old report of the transfers that came back says nothing.
    expect(await importReport(run, reportOfOne(items, 'Completed', 'A'))).toMatchObject({ conflictCount: 0 });
    // The second transfer comes back. The money arrived by the other one.
    const last = reportOfOne(await itemsOf(again), 'Returned', 'C');
    expect(await importReport(again, last)).toMatchObject({ returnedCount: 0, conflictCount: 3 });
    expect(await returned()).toMatchObject({ count: 0 });
    const { rows } = await service.sql.one<{ rows: number }>`
      select count(*)::int as rows from audit_rows where app_id = ${founder.app.id} and object_kind = 'other_transfer' and actor_kind = 'key'`;
    expect(rows).toBe(3);
  });

  test('are not returned by a report of a transfer that nobody can tell from the one that was marked as sent', async () => {
    const run = await runs.run();
    const items = await itemsOf(run);
    await markSent(run, 'batch 7');
    expect(await importReport(run, reportOfOne(items, 'Completed', 'B'))).toMatchObject({
      unchangedCount: 3,
    });
    expect(await importReport(run, reportOfOne(items, 'Cancelled', 'A'))).toMatchObject({
      returnedCount: 0,
      conflictCount: 3,
    });
    expect(await returned()).toMatchObject({ count: 0 });
    await founder.ok('POST', `${base}/payouts/${items[0]?.payoutId}/transfers`, { state: 'returned' });
    expect(await returned()).toMatchObject({ count: 1, totalCents: 200 });
  });
});

describe('a resend run', () => {
  /** Pays everybody, and has the money of the payouts come back whose statuses say so. */
  const paidAndReturned = async (statuses = ['Completed', 'Returned', 'Returned']) => {
    const run = await runs.run();
    await importReport(run, reportOf(await itemsOf(run), statuses));
    return run;
  };

  // @promise run-resend
  test('sends the money again that came back, with new keys in new files, and changes no ledger', async () => {
    const run = await paidAndReturned();
    // All but where the money of its commissions is.
    const overview = async (): Promise<object> =>
      JSON.parse(
        JSON.stringify(await founder.ok<object>('GET', `${base}/overview`)),
        (name: string, value: unknown) => (name === 'money' ? undefined : value),
      );
    const before = await overview();
    const draft = await runs.draft(0, 'include', 'resend');
    expect(draft).toMatchObject({ kind: 'resend', itemCount: 2, totalCents: 140 });
    const moneyOfPayouts = async () =>
      (await founder.ok<{ items: { money?: object }[] }>('GET', `${base}/payouts`)).items
        .map(({ money = null }) => JSON.stringify(money))
        .toSorted();
    const back = expect.stringContaining('"state":"returned"');
    const stated = await moneyOfPayouts();
    expect(stated).toEqual([back, back, expect.stringContaining('"state":"sent"')]);
    await runs.approve(draft);
    const again = await runs.settled(draft);
    expect(again).toMatchObject({ status: 'settled', paidCount: 2, paidCents: 140 });
    const [paid, resent] = [await itemsOf(run), await itemsOf(again)];
    expect(resent).toMatchObject([
      { affiliateId: ben, outcome: 'resent', payoutId: paid[1]?.payoutId, transferState: null },
      { affiliateId: cleo, outcome: 'resent', payoutId: paid[2]?.payoutId, transferState: null },
    ]);
    // Who reads that it came back sends it a third time.
    expect(await moneyOfPayouts()).toEqual(['null', 'null', stated[2]]);
    const [file] = await runs.list<RunFile>(again, 'files');
    const text = await runs.download(again, file);
    expect(text.split('\r\n').slice(1, -1)).toEqual([
      `${resent[0]?.id},${ben},Ben,,,1.00,USD`,
      `${resent[1]?.id},${cleo},Cleo,,,0.40,USD`,
    ]);
    const { payouts } = await service.sql.one<{ payouts: number }>`
      select count(*)::int as payouts from payouts where app_id = ${founder.app.id}`;
    expect(payouts).toBe(3);
    expect(await overview()).toEqual(before);
    expect((await markSent(again, 'batch 2')).body).toEqual({ sentCount: 2 });
    expect(await statesOf(again)).toEqual(['sent', 'sent']);
  });

  // @promise run-resend-once
  test('sends each return once: until the money comes back once more there is nothing to send', async () => {
    const run = await paidAndReturned();
    const both = await Promise.all([1, 2].map(async () => await resend().catch(() => null)));
    expect(both.filter((one) => one?.paidCents === 140)).toHaveLength(1);
    expect(await returned()).toMatchObject({ count: 0 });
    const nothing = await runs.draft(0, 'include', 'resend');
    expect(nothing).toMatchObject({ itemCount: 0, totalCents: 0 });
    // The report of the first run comes once more, in whatever order.
    const csv = reportOf(await itemsOf(run), ['Completed', 'Returned', 'Completed']);
    expect(await importReport(run, csv)).toMatchObject({ sentCount: 0, returnedCount: 0, unchangedCount: 3 });
    const again = both.find((one) => one?.paidCents === 140) as Run;
    await importReport(again, reportOf(await itemsOf(again), ['Failed', 'Success']));
    expect(await statesOf(again)).toEqual(['returned', 'sent']);
    expect(await returned()).toMatchObject({ count: 1, totalCents: 100 });
    expect(await resend()).toMatchObject({ paidCount: 1, paidCents: 100 });
    expect(await returned()).toMatchObject({ count: 0 });
  });

  test('leaves out whose payouts are blocked, and who has no payee or a new one, with the sum of theirs', async () => {
    const run = await paidAndReturned(['Returned', 'Returned', 'Returned']);
    await runs.add(ben, 30);
    const second = await runs.run();
    await importReport(second, reportOf(await itemsOf(second), ['Returned']));
    await founder.ok('POST', `${base}/affiliates/${ann}/payout-blocks`, {
      state: 'blocked',
      reason: 'A test',
    });
    await runs.setPayee(cleo, { method: 'paypal', recipient: { email: 'cleo@example.com' } });
    const draft = await runs.draft(0, 'exclude', 'resend');
    expect(draft).toMatchObject({ itemCount: 0 });
    expect(await runs.list(draft, 'excluded')).toMatchObject([
      { affiliateId: ann, reason: 'payouts_blocked', balanceCents: 200 },
      { affiliateId: ben, reason: 'no_payee', balanceCents: 130 },
      { affiliateId: cleo, reason: 'payee_changed', balanceCents: 40 },
    ]);
    await waitForPayees(service.database.url);
    const next = await resend('exclude');
    expect(await itemsOf(next)).toMatchObject([{ affiliateId: cleo, outcome: 'resent', method: 'paypal' }]);
    expect(await returned()).toMatchObject({ count: 3, totalCents: 330 });
    expect(await statesOf(run)).toEqual(['returned', 'returned', 'returned']);
  });

  test('sends money again after the mark that it was sent by hand was withdrawn', async () => {
    const run = await paidAndReturned();
    const { payoutId } = (await itemsOf(run))[1] ?? { payoutId: '' };
    const state = async (next: string) =>
      await founder.call('POST', `${base}/payouts/${payoutId}/transfers`, { body: { state: next } });
    await state('sent');
    expect(await returned()).toMatchObject({ count: 1, totalCents: 40 });
    await state('withdrawn');
    expect(await returned()).toMatchObject({ count: 2, totalCents: 140 });
    expect(await statesOf(run)).toEqual(['sent', 'returned', 'returned']);
    expect(await resend()).toMatchObject({ paidCount: 2 });
    // The money is on its way again: that it had come back can't be taken back.
    expect(await state('return_withdrawn')).toMatchObject({
      status: 409,
      body: { code: 'transfer_not_possible' },
    });
    await state('sent');
    expect((await state('withdrawn')).status).toBe(201);
    expect(await returned()).toMatchObject({ count: 0 });
  });

  // @promise run-resend-approved
  test('that a process of an earlier version approves is sent, unless it is cancelled before', async () => {
    await paidAndReturned();
    const approveAsBefore = async (run: Run) =>
      await service.sql`
        update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
         where id = ${run.id}`;
    const start = async (run: Run) => {
      await service.sql`update payout_runs set relayed_at = null where id = ${run.id}`;
      return await runs.settled(run);
    };
    const first = await runs.draft(0, 'include', 'resend');
    await approveAsBefore(first);
    expect(await runs.cancel(first)).toMatchObject({ status: 'approved', stoppedAt: expect.any(Number) });
    expect(await start(first)).toMatchObject({ status: 'settled', paidCount: 0 });
    expect((await itemsOf(first)).map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled']);
    const second = await runs.draft(0, 'include', 'resend');
    await approveAsBefore(second);
    expect(await start(second)).toMatchObject({ status: 'settled', paidCount: 2 });
    expect(await runs.cancel(second)).toMatchObject({ status: 'settled', stoppedAt: null });
  });

  test('sends nothing that changed after the draft: sent by hand, blocked, or to another payee', async () => {
    const run = await paidAndReturned(['Returned', 'Returned', 'Returned']);
    const draft = await runs.draft(0, 'include', 'resend');
    const [first] = await itemsOf(run);
    await founder.ok('POST', `${base}/payouts/${first?.payoutId}/transfers`, { state: 'sent' });
    await founder.ok('POST', `${base}/affiliates/${ben}/payout-blocks`, {
      state: 'blocked',
      reason: 'A test',
    });
    await runs.setPayee(cleo, { method: 'paypal', recipient: { email: 'cleo@example.com' } });
    await runs.approve(draft);
    expect(await runs.settled(draft)).toMatchObject({ paidCount: 0, paidCents: 0, itemCount: 3 });
    expect((await itemsOf(draft)).map(({ outcome }) => outcome)).toEqual([
      'not_returned',
      'blocked',
      'payee_changed',
    ]);
    expect(await runs.list(draft, 'files')).toEqual([]);
    expect(await returned()).toMatchObject({ count: 2 });
  });

  /**
   * Approves a run whose decision waits for the payout of its last item, runs `work`, and lets the decision go on when another statement
   * waits, too. Returns what `work` returns, and whether it ended while the decision was held.
   */
  const whileDeciding = async <T>(
    draft: Run,
    work: () => Promise<T>,
  ): Promise<{ value: T; early: boolean }> => {
    const holder = new pg.Client(service.database.url);
    await holder.connect();
    try {
      await holder.query('begin');
      const last = (await itemsOf(draft)).at(-1)?.payoutId;
      await holder.query('select from payouts where id = $1 for no key update', [last]);
      await runs.approve(draft);
      await untilWaiting(service.sql, 1);
      const working = work();
      const early = await Promise.race([
        working.then(() => true),
        untilWaiting(service.sql, 2).then(() => false),
      ]);
      await holder.query('commit');
      return { value: await working, early };
    } finally {
      await holder.end();
    }
  };

  // @promise run-resend-cancelled
  test('whose cancellation arrives while its items are decided is not stopped, and the answer says so', async () => {
    await paidAndReturned();
    const draft = await runs.draft(0, 'include', 'resend');
    const { value, early } = await whileDeciding(draft, async () => await runs.cancel(draft));
    expect([early, value]).toEqual([false, expect.objectContaining({ stoppedAt: null })]);
    expect(await runs.settled(draft)).toMatchObject({ paidCount: 2, paidCents: 140, stoppedAt: null });
    expect((await itemsOf(draft)).map(({ outcome }) => outcome)).toEqual(['resent', 'resent']);
  });

  const block = async (creator: string) =>
    await founder.ok('POST', `${base}/affiliates/${creator}/payout-blocks`, {
      state: 'blocked',
      reason: 'A test',
    });
  const changePayee = async (creator: string) =>
    await runs.setPayee(creator, { method: 'paypal', recipient: { email: 'ben@example.com' } });

  // @promise run-resend-race
  test.each([
    ['a block', block],
    ['another payee', changePayee],
  ])('has decided before %s of a creator is answered that arrives meanwhile', async (_, change) => {
    await paidAndReturned();
    const draft = await runs.draft(0, 'include', 'resend');
    const { early } = await whileDeciding(draft, async () => await change(ben));
    expect(early).toBe(false);
    expect(await runs.settled(draft)).toMatchObject({ paidCount: 2 });
  });

  // @promise run-resend-race
  test.each([
    ['a block', 'blocked', block],
    ['another payee', 'payee_changed', changePayee],
  ])('waits for %s that is being stored, and sends nothing', async (_, outcome, change) => {
    await paidAndReturned();
    const draft = await runs.draft(0, 'include', 'resend');
    await runOn(
      service.database.url,
      `create or replace function hold_creator() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock(1); return new; end $$;
       create trigger payees_hold after insert on payees for each row execute function hold_creator();
       create trigger payout_blocks_hold after insert on payout_blocks for each row execute function hold_creator()`,
    );
    const holder = new pg.Client(service.database.url);
    await holder.connect();
    try {
      await holder.query('select pg_advisory_lock(1)');
      const changing = change(ben);
      await untilWaiting(service.sql, 1);
      await runs.approve(draft);
      const settling = runs.settled(draft);
      await Promise.race([settling, untilWaiting(service.sql, 2)]);
      await holder.query('select pg_advisory_unlock(1)');
      await changing;
      expect(await settling).toMatchObject({ paidCount: 1, paidCents: 40 });
      expect((await itemsOf(draft)).map((item) => item.outcome)).toEqual([outcome, 'resent']);
    } finally {
      await holder.end();
      await runOn(
        service.database.url,
        'drop trigger payees_hold on payees; drop trigger payout_blocks_hold on payout_blocks',
      );
    }
  });

  test('decides about all items, also when they need several transactions', async () => {
    await paidAndReturned();
    const draft = await runs.draft(0, 'include', 'resend');
    await service.sql`
      update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
       where id = ${draft.id}`;
    await decideResends(service.sql, draft.id as PayoutRunId, 1);
    expect((await itemsOf(draft)).map(({ outcome }) => outcome)).toEqual(['resent', 'resent']);
    expect(await runs.cancel(draft)).toMatchObject({ status: 'approved', stoppedAt: null });
    await service.sql`update payout_runs set relayed_at = null where id = ${draft.id}`;
    expect(await runs.settled(draft)).toMatchObject({ paidCount: 2, paidCents: 140 });
  });

  // @promise run-resend-database
  test('is kept from sending twice, or what did not come back, by the database', async () => {
    const run = await paidAndReturned();
    const done = await resend();
    const change = async (text: string) => await runOn(service.database.url, text);
    const [paid, resent] = [await itemsOf(run), await itemsOf(done)];
    await expect(
      change(
        `update payout_run_items set return_position = null, resend_result = 'blocked' where id = '${resent[0]?.id}'`,
      ),
    ).rejects.toThrow(/does not change this way/);
    const draft = await runs.draft(0, 'include', 'resend');
    const insert = (payoutId: string, affiliateId: string, cents: number) =>
      change(`begin;
        update payout_runs set status = 'cancelled', ended_at = now() where id = '${draft.id}';
        insert into payout_runs (id, app_id, account_id, key_id, kind, as_of, minimum_cents, includes_without_payee, item_count, total_cents, expires_at)
        select 'run_' || right('${payoutId}', 26), app_id, account_id, key_id, 'resend', now(), 0, true, 1, ${cents}, now() + interval '1 day'
          from payout_runs where id = '${draft.id}';
        insert into payout_run_items (id, app_id, run_id, affiliate_id, affiliate_name, position, expected_cents, method, payout_id)
        select 'pit_' || right('${payoutId}', 26), app_id, id, '${affiliateId}', 'x', 1, ${cents}, 'other', '${payoutId}'
          from payout_runs where id = 'run_' || right('${payoutId}', 26);
        update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
         where id = 'run_' || right('${payoutId}', 26);
        update payout_run_items set resend_result = 'resent', return_position = 2 where id = 'pit_' || right('${payoutId}', 26);
        rollback`);
    // The first payout was sent, the second was sent again already, and nobody is sent another amount.
    await expect(insert(paid[0]?.payoutId ?? '', ann, 200)).rejects.toThrow(/not to be sent again/);
    await expect(insert(paid[1]?.payoutId ?? '', ben, 100)).rejects.toThrow(
      /payout_run_items_one_per_return/,
    );
    await expect(insert(paid[1]?.payoutId ?? '', ben, 99)).rejects.toThrow(/is not what the run pays/);
    await expect(insert(paid[1]?.payoutId ?? '', cleo, 100)).rejects.toThrow(/is not what the run pays/);
    // What is decided can't be stopped, and what is stopped is not decided. Nothing is sent to a creator whose payouts are blocked.
    await importReport(done, reportOf(resent, ['Returned', 'Returned']));
    const last = await runs.draft(0, 'include', 'resend');
    await block(cleo);
    const decide = (before: string, creator: string, result: string, after = '') =>
      change(`begin;
        update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
         where id = '${last.id}';
        ${before}
        update payout_run_items i set resend_result = '${result}',
               return_position = case '${result}' when 'resent' then (select transfer_position from money_of_payout(i.payout_id)) end
         where run_id = '${last.id}' and affiliate_id = '${creator}';
        ${after}
        rollback`);
    const stop = `update payout_runs set stopped_at = now() where id = '${last.id}';`;
    await decide('', ben, 'resent');
    await expect(decide('', cleo, 'resent')).rejects.toThrow(/payouts of aff_\w+ are blocked/);
    await expect(decide(stop, ben, 'resent')).rejects.toThrow(/was stopped/);
    await expect(decide('', cleo, 'blocked', stop)).rejects.toThrow(/has decided/);
  });
});
