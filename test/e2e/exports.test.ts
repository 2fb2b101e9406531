import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { removeExpired } from '../../src/db/retention.ts';
import { DEFAULT_RETENTION } from '../../src/domain/retention.ts';
import {
  closeAbandonedRequests,
  closePayoutRequest,
  openPayoutRequest,
  settlePayoutRequest,
} from '../../src/db/payout-requests.ts';
import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import { newId } from '../../src/db/new-id.ts';
import { readPayoutCsv } from '../../src/db/payout-csv.ts';
import type {
  AccountId,
  AffiliateId,
  AppId,
  KeyId,
  PayoutId,
  PayoutRequestId,
} from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

async function earningAffiliate(...usd: number[]): Promise<string> {
  const { affiliateId, slug } = await founder.newAffiliate();
  const user = await founder.customer(slug);
  for (const amount of usd) expect((await founder.purchase(user, amount)).body.commissionId).toMatch(/^com_/);
  return affiliateId;
}

async function payoutsOf(affiliateId: string): Promise<{ total: number; payouts: number }> {
  return await service.sql.one<{ total: number; payouts: number }>`
    select coalesce(sum(total_cents), 0)::bigint as total, count(*)::int as payouts from payouts where affiliate_id = ${affiliateId}`;
}

const rowsOf = (csv: string) => csv.trimEnd().split('\r\n').slice(1);

async function openRequest(
  affiliateId: string,
  validForMs = 20_000,
  idempotencyKey: string | null = null,
): Promise<PayoutRequestId> {
  const key = await service.sql.one<{ id: KeyId }>`
    select id from account_keys where account_id = ${founder.accountId} limit 1`;
  const id = newId('payoutRequest');
  await openPayoutRequest(service.sql, {
    id,
    appId: founder.app.id as AppId,
    affiliateId: affiliateId as AffiliateId,
    accountId: founder.accountId as AccountId,
    keyId: key.id,
    idempotencyKey,
    expectedTotalCents: null,
    validForMs,
  });
  return id;
}

describe('concurrent exports', () => {
  // @promise paid-once
  test('ten concurrent exports create one payout', async () => {
    const affiliateId = await earningAffiliate(10, 20, 30);
    const responses = await Promise.all(Array.from({ length: 10 }, () => founder.exportCsv(affiliateId)));
    expect(responses.map((a) => a.status)).toEqual(Array.from({ length: 10 }, () => 200));
    const paying = responses.filter((a) => rowsOf(a.text).length > 0);
    expect(paying).toHaveLength(1);
    expect(await payoutsOf(affiliateId)).toEqual({ total: 1_200, payouts: 1 });
  });

  // @promise settle-open-request
  test('ten concurrent settlements of one payout request create one payout', async () => {
    const affiliateId = await earningAffiliate(10, 20);
    const id = await openRequest(affiliateId);
    await Promise.all(Array.from({ length: 10 }, () => settlePayoutRequest(service.sql, id)));
    expect(await payoutsOf(affiliateId)).toEqual({ total: 600, payouts: 1 });
  });

  test('ten payout requests of one affiliate that are settled concurrently create one payout', async () => {
    const affiliateId = await earningAffiliate(10, 20);
    const ids = await Promise.all(Array.from({ length: 10 }, async () => await openRequest(affiliateId)));
    await Promise.all(ids.map((id) => settlePayoutRequest(service.sql, id)));
    expect(await payoutsOf(affiliateId)).toEqual({ total: 600, payouts: 1 });
    const open =
      await service.sql`select id from payout_requests where affiliate_id = ${affiliateId} and status = 'open'`;
    expect(open).toEqual([]);
  });

  test('exports concurrent with purchases and refunds pay each commission at most once and finally all of them', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const calls: Promise<unknown>[] = [];
    for (let n = 0; n < 20; n += 1) {
      const transactionId = `55${n}${Date.now()}`;
      calls.push(founder.purchase(user, 10, { transactionId }));
      if (n % 4 === 0) calls.push(founder.refund(user, 5, transactionId));
      if (n % 3 === 0) calls.push(founder.exportCsv(affiliateId));
      await sleep(5);
    }
    await Promise.all(calls);
    // On a busy machine a call may have been answered before its delivery was processed.
    await eventually('every delivery is processed', async () => {
      const unprocessed = await service.sql`
        select from deliveries where app_id = ${founder.app.id} and completed_at is null limit 1`;
      return unprocessed.length === 0;
    });
    await founder.exportCsv(affiliateId);
    const sums = await service.sql.one<{ unpaid: number; paid: number; items: number }>`
      select coalesce(sum(amount_cents) filter (where status <> 'paid'), 0)::bigint as unpaid,
             coalesce(sum(amount_cents) filter (where status = 'paid'), 0)::bigint as paid,
             (select count(*)::int from payout_items where affiliate_id = ${affiliateId}) as items
        from commissions where affiliate_id = ${affiliateId}`;
    expect(sums.unpaid + sums.paid).toBe(20 * 200 - 5 * 100);
    expect(sums.paid).toBe((await payoutsOf(affiliateId)).total);
    expect(sums.unpaid).toBeLessThanOrEqual(0);
  });
});

describe('the CSV of a payout', () => {
  /** A payout whose CSV an earlier version stored: with quoted cells, fewer columns and LF. */
  async function paidByEarlierVersion(idempotencyKey: string) {
    const affiliateId = await earningAffiliate(10, 20);
    const id = await openRequest(affiliateId, 20_000, idempotencyKey);
    await settlePayoutRequest(service.sql, id);
    const { payoutId } = await service.sql.one<{ payoutId: PayoutId }>`
      select payout_id from payout_requests where id = ${id}`;
    const names = ['payout_id', 'affiliate_id', 'affiliate_name', 'commission_id', 'amount_usd_cents'];
    const rows = await service.sql<Record<string, string>>`
      select i.payout_id, i.affiliate_id, p.affiliate_name, i.commission_id, i.amount_cents::text as amount_usd_cents,
             c.event_id, epoch_ms(c.occurred_at)::text as occurred_at
        from payout_items i join payouts p on p.id = i.payout_id join commissions c on c.id = i.commission_id
       where i.payout_id = ${payoutId} order by i.position`;
    const records = [[...names, 'event_id', 'occurred_at'], ...rows.map((row) => Object.values(row))];
    const csv = records.map((cells) => `${cells.map((cell) => `"${cell}"`).join(',')}\n`).join('');
    return { affiliateId, payoutId, csv };
  }

  const store = async (payoutId: string, csv: string, hashOf = csv) =>
    await service.sql`
      update payouts set csv_gzip = ${gzipSync(csv)}, csv_sha256 = ${createHash('sha256').update(hashOf).digest()}
       where id = ${payoutId}`;
  const csvCheck = async () => {
    const checks = await checkLedger(service.sql, [founder.app.id as AppId]);
    return checks.find(({ name }) => name === 'payout_csv_has_its_hash');
  };

  // @promise payout-csv-again, get-payout-csv
  test('a later request returns the bytes that were first stored, whatever the current version would render', async () => {
    const key = randomUUID();
    const { affiliateId, payoutId, csv } = await paidByEarlierVersion(key);
    await store(payoutId, csv);
    const again = await founder.call('GET', `/apps/${founder.app.id}/payouts/${payoutId}/csv`);
    expect(again).toMatchObject({ status: 200, text: csv });
    const repeated = await founder.exportCsv(affiliateId, { headers: { 'idempotency-key': key } });
    expect(repeated).toMatchObject({ status: 200, text: csv });
    const sha256 = createHash('sha256').update(csv).digest('hex');
    expect([again, repeated].map(({ headers }) => headers.get('x-payout-sha256'))).toEqual([sha256, sha256]);
    expect(await csvCheck()).toMatchObject({ ok: true });
    await expect(store(payoutId, `${csv}x`)).rejects.toThrow('cannot be edited');
  });

  test('the check of the ledger finds a stored CSV that states another amount, although it has its hash', async () => {
    const { payoutId, csv } = await paidByEarlierVersion(randomUUID());
    await store(payoutId, csv);
    await runOn(service.database.url, 'alter table payouts disable trigger payouts_guard');
    try {
      await store(payoutId, csv.replace('"200"', '"201"'));
      expect(await csvCheck()).toMatchObject({ ok: false, violations: 1, examples: [payoutId] });
      await store(payoutId, csv.slice(0, csv.lastIndexOf('\n', csv.length - 2) + 1));
      expect(await csvCheck()).toMatchObject({ ok: false, violations: 1, examples: [payoutId] });
      await store(payoutId, csv, `${csv}x`);
      const read = readPayoutCsv(service.sql, founder.app.id as AppId, payoutId);
      await expect(read).rejects.toThrow('does not have its hash');
      await store(payoutId, csv);
      expect(await csvCheck()).toMatchObject({ ok: true });
    } finally {
      await runOn(service.database.url, 'alter table payouts enable trigger payouts_guard');
    }
  });

  // @promise payout-csv-again
  test('the CSV of a payout whose process died before it stored one is stored by the first request', async () => {
    const { payoutId } = await paidByEarlierVersion(randomUUID());
    const path = `/apps/${founder.app.id}/payouts/${payoutId}/csv`;
    const responses = await Promise.all(Array.from({ length: 5 }, () => founder.call('GET', path)));
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const { hash } = await service.sql.one<{ hash: string }>`
      select encode(csv_sha256, 'hex') as hash from payouts where id = ${payoutId}`;
    expect(responses[0]?.headers.get('x-payout-sha256')).toBe(hash);
  });
});

describe('payout requests', () => {
  // @promise paid-once
  test('a second settlement of a payout request pays nothing, even when more is due', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await founder.purchase(user, 10);
    const id = await openRequest(affiliateId);
    await settlePayoutRequest(service.sql, id);
    await founder.purchase(user, 20);
    await settlePayoutRequest(service.sql, id);
    expect(await payoutsOf(affiliateId)).toEqual({ total: 200, payouts: 1 });
  });

  // @promise settle-open-request
  test('a payout request closed by its caller pays nothing', async () => {
    const affiliateId = await earningAffiliate(10);
    const id = await openRequest(affiliateId);
    expect(await closePayoutRequest(service.sql, id)).toBe(true);
    await settlePayoutRequest(service.sql, id);
    expect(await payoutsOf(affiliateId)).toEqual({ total: 0, payouts: 0 });
  });

  // @promise settle-open-request
  test('an expired payout request pays nothing', async () => {
    const affiliateId = await earningAffiliate(10);
    const id = await openRequest(affiliateId, 1);
    await sleep(20);
    await settlePayoutRequest(service.sql, id);
    expect(await payoutsOf(affiliateId)).toEqual({ total: 0, payouts: 0 });
  });

  // @promise export-paid-or-not
  test('closing a payout request during its settlement succeeds exactly when nothing was paid', async () => {
    const affiliateId = await earningAffiliate(10);
    const id = await openRequest(affiliateId);
    const [, closed] = await Promise.all([
      settlePayoutRequest(service.sql, id),
      closePayoutRequest(service.sql, id),
    ]);
    const { total } = await payoutsOf(affiliateId);
    expect(total).toBe(closed ? 0 : 200);
  });
});

describe('POST /apps/:appId/affiliates/:affiliateId/payouts/export', () => {
  // @promise export-idempotent
  test('an export with the same Idempotency-Key returns the same bytes, even when more is due', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await founder.purchase(user, 10);
    const headers = { 'idempotency-key': randomUUID() };
    const first = await founder.exportCsv(affiliateId, { headers });
    await founder.purchase(user, 20);
    const second = await founder.exportCsv(affiliateId, { headers });
    expect(second.text).toBe(first.text);
    expect(second.headers.get('x-payout-id')).toBe(first.headers.get('x-payout-id'));
    expect(await payoutsOf(affiliateId)).toEqual({ total: 200, payouts: 1 });
  });

  // @promise export-key-forever
  test('the Idempotency-Key of an export still returns the first payout after ten years', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await founder.purchase(user, 10);
    const headers = { 'idempotency-key': randomUUID() };
    const first = await founder.exportCsv(affiliateId, { headers });
    await service.sql`
      update payout_requests set expires_at = expires_at - interval '10 years'
       where idempotency_key = ${headers['idempotency-key']}`;
    await founder.purchase(user, 20);
    await closeAbandonedRequests(service.sql, 100);
    await removeExpired(service.sql, 'idempotency_keys', DEFAULT_RETENTION, {
      now: Date.now(),
      limit: 1_000,
      after: '',
    });
    expect((await founder.exportCsv(affiliateId, { headers })).text).toBe(first.text);
    expect(await payoutsOf(affiliateId)).toEqual({ total: 200, payouts: 1 });
  });

  // @promise csv-format
  test('the CSV escapes a name that is a spreadsheet formula and preserves quotes, commas and accents', async () => {
    const { affiliateId, slug } = await founder.newAffiliate('=HYPERLINK("http://x", "Zoë")');
    const user = await founder.customer(slug);
    const occurredAt = Date.now() - 40 * DAY_MS;
    const { body: bought } = await founder.purchase(user, 10, { occurredAt, transactionId: 'tx-csv' });
    const { body: refunded } = await founder.refund(user, 0.25, 'tx-csv');
    const [refund] = await service.sql<{ at: number }>`
      select epoch_ms(occurred_at) as at from commissions where id = ${refunded.commissionId}`;
    const csv = await founder.exportCsv(affiliateId);
    const payoutId = csv.headers.get('x-payout-id');
    const name = `"'=HYPERLINK(""http://x"", ""Zoë"")"`;
    const row = (commissionId: unknown, cents: string, usd: string, eventId: unknown, at: unknown) =>
      `${payoutId},${affiliateId},${name},${String(commissionId)},${cents},${usd},USD,${String(eventId)},${String(at)}`;
    expect(rowsOf(csv.text)).toEqual([
      row(bought.commissionId, '200', '2.00', bought.eventId, occurredAt),
      row(refunded.commissionId, '-5', '-0.05', refunded.eventId, refund?.at),
    ]);
    expect(csv.text.endsWith('\r\n')).toBe(true);
  });

  // @promise payout-csv-extended
  test('the extended CSV adds e-mail address, ISO date and a total line; the standard CSV stays the same', async () => {
    const { affiliateId, slug } = await founder.newAffiliate('Zoë, "Zo"');
    const path = `/apps/${founder.app.id}/affiliates/${affiliateId}`;
    await founder.ok('PATCH', path, { email: '+zoe@example.com' });
    const user = await founder.customer(slug);
    const occurredAt = Date.now() - 40 * DAY_MS;
    await founder.purchase(user, 10, { occurredAt, transactionId: 'tx-extended' });
    const { body: refunded } = await founder.refund(user, 0.25, 'tx-extended');
    const [refund] = await service.sql<{ at: number }>`
      select epoch_ms(occurred_at) as at from commissions where id = ${refunded.commissionId}`;
    const standard = await founder.exportCsv(affiliateId);
    const payoutId = standard.headers.get('x-payout-id');
    const csvPath = `/apps/${founder.app.id}/payouts/${payoutId}/csv`;
    const { text, headers } = await founder.call('GET', `${csvPath}?columns=extended`);
    const [header = '', first = '', second = '', total = '', end] = text.split('\r\n');
    const lines = standard.text.split('\r\n');
    expect(header).toBe(`${lines[0]},affiliate_email,occurred_at_iso,affiliate_email_problem`);
    expect(first).toBe(`${lines[1]},'+zoe@example.com,${new Date(occurredAt).toISOString()},`);
    expect(second).toBe(`${lines[2]},'+zoe@example.com,${new Date(refund?.at ?? 0).toISOString()},`);
    expect([total, end]).toEqual([`${payoutId},,,total,195,1.95,USD,,,,,`, '']);
    expect(headers.get('x-payout-sha256')).toBe(createHash('sha256').update(text).digest('hex'));
    expect((await founder.call('GET', `${csvPath}?columns=standard`)).text).toBe(standard.text);
    expect((await founder.call('GET', `${csvPath}?columns=email`)).status).toBe(400);
  });

  // @promise payout-csv-address, payee-no-write
  test('the extended CSV shows no address that a key without the permission to pay has set', async () => {
    const affiliateId = await earningAffiliate(10);
    const path = `/apps/${founder.app.id}/affiliates/${affiliateId}`;
    await founder.ok('PATCH', path, { email: 'ada@example.com' });
    const standard = await founder.exportCsv(affiliateId);
    const csvPath = `/apps/${founder.app.id}/payouts/${standard.headers.get('x-payout-id')}/csv?columns=extended`;
    const shown = async () => {
      const { text } = await founder.call('GET', csvPath);
      const [header = '', row = ''] = text.split('\r\n');
      const cells = row.split(',');
      return ['affiliate_email', 'affiliate_email_problem'].map(
        (name) => cells[header.split(',').indexOf(name)],
      );
    };
    expect(await shown()).toEqual(['ada@example.com', '']);
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, [
      'read',
      'write',
      'setup',
    ]);
    await founder.ok('PATCH', path, { email: 'thief@example.org' }, key);
    expect(await shown()).toEqual(['', 'not_confirmed']);
    await service.sql`update affiliates set email_set_at = now() - interval '400 days' where id = ${affiliateId}`;
    expect(await shown()).toEqual(['', 'not_confirmed']);
    for (const email of [null, 'thief@example.org', 'ada@example.com']) {
      await founder.ok('PATCH', path, { email }, key);
      expect(await shown()).toEqual(['', email === null ? '' : 'not_confirmed']);
    }
    await founder.ok('PATCH', path, { email: 'ada@example.com' });
    expect(await shown()).toEqual(['ada@example.com', '']);
  });

  // @promise payout-csv-address
  test('the extended CSV shows the address that a creator was added with after seven days', async () => {
    const { id } = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/affiliates`, {
      name: 'Ada',
      email: 'ada@example.com',
    });
    const entry = { amountCents: 500, category: 'bonus', reason: 'A test', externalId: randomUUID() };
    await founder.ok('POST', `/apps/${founder.app.id}/affiliates/${id}/entries`, entry);
    const payoutId = (await founder.exportCsv(id)).headers.get('x-payout-id');
    const csvPath = `/apps/${founder.app.id}/payouts/${payoutId}/csv?columns=extended`;
    const row = async () => (await founder.call('GET', csvPath)).text.split('\r\n')[1] ?? '';
    const age = async (interval: string) =>
      await service.sql`update affiliates set email_set_at = now() - ${interval}::interval where id = ${id}`;
    await age('6 days 23 hours');
    expect(await row()).toMatch(/,,[^,]*Z,new$/);
    await age('7 days');
    expect(await row()).toMatch(/,ada@example\.com,[^,]*Z,$/);
  });

  // @promise inactive-affiliate-is-paid, inactive-rows-payable
  test.each(['paused', 'removed'])(
    'commissions that an affiliate earned before being %s are still paid',
    async (status) => {
      const affiliateId = await earningAffiliate(10);
      await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${affiliateId}`, { status });
      const { rows } = await founder.ok<{ rows: { affiliateId: string; totalCents: number }[] }>(
        'GET',
        `/apps/${founder.app.id}/payouts/preview`,
      );
      expect(rows).toContainEqual(expect.objectContaining({ affiliateId, totalCents: 200 }));
      expect(rowsOf((await founder.exportCsv(affiliateId)).text)).toHaveLength(1);
      expect(await payoutsOf(affiliateId)).toEqual({ total: 200, payouts: 1 });
    },
  );

  // @promise export-idempotent
  test('ten concurrent exports with one Idempotency-Key pay once and all return the CSV', async () => {
    const affiliateId = await earningAffiliate(10);
    const headers = { 'idempotency-key': randomUUID() };
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => founder.exportCsv(affiliateId, { headers })),
    );
    expect(responses.map((a) => a.status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(new Set(responses.map((a) => a.text)).size).toBe(1);
    expect(rowsOf(responses[0]!.text)).toHaveLength(1);
  });

  test('an Idempotency-Key that was used for another affiliate returns 409', async () => {
    const [one, two] = [await earningAffiliate(10), await earningAffiliate(10)];
    const headers = { 'idempotency-key': randomUUID() };
    await founder.exportCsv(one, { headers });
    expect((await founder.exportCsv(two, { headers })).status).toBe(409);
    expect(await payoutsOf(two)).toEqual({ total: 0, payouts: 0 });
  });

  // @promise expected-total
  test('an export whose expectedTotalCents differs from the net returns 409 and pays nothing', async () => {
    const affiliateId = await earningAffiliate(10, 20);
    const refused = await founder.exportCsv(affiliateId, { body: { expectedTotalCents: 599 } });
    expect(refused).toMatchObject({ status: 409, body: expect.objectContaining({ code: 'total_changed' }) });
    expect(await payoutsOf(affiliateId)).toEqual({ total: 0, payouts: 0 });
    expect((await founder.exportCsv(affiliateId, { body: { expectedTotalCents: 600 } })).status).toBe(200);
  });

  // @promise net-zero-pays-nothing
  test('a negative net pays nothing, marks nothing paid and is carried into the next payout', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const transactionId = `77${Date.now()}`;
    await founder.purchase(user, 10, { transactionId });
    await founder.exportCsv(affiliateId);
    await founder.refund(user, 10, transactionId);
    const empty = await founder.exportCsv(affiliateId);
    expect(rowsOf(empty.text)).toEqual([]);
    await founder.purchase(user, 30);
    const next = await founder.exportCsv(affiliateId);
    expect(
      rowsOf(next.text)
        .map((row) => Number(row.split(',')[4]))
        .toSorted((a, b) => a - b),
    ).toEqual([-200, 600]);
  });

  // @promise payout-export-permission
  test('a key without the payout permission gets 403 before the affiliate is looked up', async () => {
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, [
      'read',
      'write',
      'setup',
    ]);
    const response = await founder.call(
      'POST',
      `/apps/${founder.app.id}/affiliates/aff_none/payouts/export`,
      {
        key,
      },
    );
    expect(response.status).toBe(403);
  });

  test("an export of another account's affiliate returns 404 and writes nothing", async () => {
    const affiliateId = await earningAffiliate(10);
    const other = await setUpFounder(service);
    const response = await other.call(
      'POST',
      `/apps/${founder.app.id}/affiliates/${affiliateId}/payouts/export`,
    );
    expect(response.status).toBe(404);
    expect(await service.sql`select id from payout_requests where affiliate_id = ${affiliateId}`).toEqual([]);
  });
});

// @promise manual-signal-pays-nothing
test('a payout signal sent by hand pays nothing', async () => {
  const affiliateId = await earningAffiliate(10);
  const handle = await service.temporal.workflow.signalWithStart('payout', {
    workflowId: `payout:${affiliateId}`,
    taskQueue: service.taskQueue,
    args: [{ affiliateId }],
    signal: 'payoutRequested',
    signalArgs: [newId('payoutRequest') as PayoutRequestId],
  });
  await handle.result();
  expect(await payoutsOf(affiliateId)).toEqual({ total: 0, payouts: 0 });
});

describe('database constraints', () => {
  // @promise paid-is-final, reversal-constraint
  test.each([
    [
      'setting a paid commission back to matured',
      `update commissions set status = 'matured', paid_at = null, payout_id = null where status = 'paid'`,
    ],
    ['changing an amount', `update commissions set amount_cents = amount_cents + 1`],
    ['deleting a commission', `delete from commissions`],
    ['moving a due date', `update commissions set due_at = due_at + interval '1 day' where status <> 'paid'`],
    [
      'changing the user of a commission',
      `update commissions set customer_user_id = 'x' where status <> 'paid'`,
    ],
    ['changing the earned amount of a payment', `update payments set earned_cents = earned_cents + 1`],
    [
      'inserting a commission that has already matured',
      `insert into commissions select (jsonb_populate_record(c, jsonb_build_object('id', 'com_01h455vb4pex5vsknk084sn02q',
         'status', 'matured', 'matured_at', now()))).* from commissions c where status <> 'paid' limit 1`,
    ],
    [
      'adding an item to an existing payout',
      `insert into payout_items (payout_id, commission_id, app_id, affiliate_id, amount_cents, position)
       select p.id, c.id, c.app_id, c.affiliate_id, c.amount_cents, 1000
         from payouts p join commissions c on c.affiliate_id = p.affiliate_id and c.status <> 'paid' limit 1`,
    ],
    ['changing a payout', `update payouts set total_cents = total_cents + 1`],
    ['changing a payout item', `update payout_items set amount_cents = 1`],
    [
      'marking a commission paid without a payout',
      `update commissions set status = 'paid', matured_at = now(), paid_at = now() where status <> 'paid'`,
    ],
    [
      'a payout whose total differs from the sum of its items',
      `insert into payouts (id, app_id, affiliate_id, affiliate_name, item_count, total_cents)
       select 'pay_01h455vb4pex5vsknk084sn02q', app_id, id, name, 1, 5 from affiliates limit 1`,
    ],
    [
      'a second earning of one payment',
      `insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps, base_cents,
                                amount_cents, source, customer_user_id, match_method, occurred_at, due_at)
       select 'com_01h455vb4pex5vsknk084sn02q', app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps,
              base_cents, amount_cents, source, customer_user_id, match_method, occurred_at, due_at
         from commissions where kind = 'earning' limit 1`,
    ],
    [
      'reversing more than the earning',
      `insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, adjustment_id, kind,
                                reverses_commission_id, rate_bps, base_cents, amount_cents, source, customer_user_id, match_method,
                                occurred_at, due_at)
       select 'com_01h455vb4pex5vsknk084sn02q', r.app_id, r.affiliate_id, r.link_id, r.event_id, r.payment_id, r.binding_id,
              r.adjustment_id, r.kind, r.reverses_commission_id, r.rate_bps, r.base_cents, -100000, r.source, r.customer_user_id,
              r.match_method, r.occurred_at, r.due_at
         from commissions r where kind = 'reversal' limit 1`,
    ],
    [
      "a commission of another app's affiliate",
      `insert into commissions (id, app_id, affiliate_id, event_id, payment_id, binding_id, kind, rate_bps, base_cents, amount_cents,
                                source, customer_user_id, match_method, occurred_at, due_at)
       select 'com_01h455vb4pex5vsknk084sn02q', app_id, (select id from affiliates f where f.app_id <> c.app_id limit 1), event_id,
              payment_id, binding_id, kind, rate_bps, base_cents, amount_cents, source, customer_user_id, match_method, occurred_at, due_at
         from commissions c where kind = 'earning' limit 1`,
    ],
  ])('the database rejects %s', async (_title, statement) => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await founder.purchase(user, 10);
    await founder.exportCsv(affiliateId);
    await founder.purchase(user, 10);
    await expect(runOn(service.database.url, statement)).rejects.toMatchObject({
      code: expect.stringMatching(/^23/),
    });
  });
});

test('the ledger is consistent after all exports', async () => {
  await expectConsistentLedger(service.sql);
});
