import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { newId } from '../../src/db/new-id.ts';
import { COLUMNS } from '../../src/db/payout-csv.ts';
import { provePayout } from '../../src/db/payout-proofs.ts';
import { recordPayout } from '../../src/db/forgotten-payouts.ts';
import { arePayoutsStopped, resumePayouts, stopPayouts } from '../../src/db/payout-stops.ts';
import { findInstallationId } from '../../src/db/installation.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { createTestDatabase } from '../support/database.ts';
import { runOn } from '../support/postgres-admin.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { insertEarning, payOut } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;
let affiliateId: string;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  affiliateId = await newAffiliate(api, app);
  await findInstallationId(api.sql);
});
afterAll(async () => {
  await api.close();
});

async function earn(amountCents: number) {
  const occurredAt = Date.now() - 40 * DAY_MS;
  await insertEarning(api, app, { affiliateId, amountCents, occurredAt, dueAt: occurredAt + DAY_MS });
  return await api.sql.one<{ id: string; eventId: string; cents: number; occurredAt: number }>`
    select id, event_id, amount_cents as cents, occurred_at from commissions
     where affiliate_id = ${affiliateId} order by created_at desc, id desc limit 1`;
}
type Earned = Awaited<ReturnType<typeof earn>>;

/** The CSV of a payout that this database has forgotten. */
const csvOf = (payoutId: string, ...earned: readonly Earned[]): Buffer =>
  csvFor('Creator', payoutId, ...earned);

function csvFor(name: string, payoutId: string, ...earned: readonly Earned[]): Buffer {
  const rows = earned.map(({ id, eventId, cents, occurredAt }) =>
    [payoutId, affiliateId, name, id, cents, (cents / 100).toFixed(2), 'USD', eventId, occurredAt].join(','),
  );
  return Buffer.from([COLUMNS.join(','), ...rows, ''].join('\r\n'));
}

/** Records a file as an operator does: with the total that the command prints first. */
async function record(csv: Buffer) {
  const asked = await recordPayout(api.sql, csv, null);
  return asked.kind === 'total_wanted' ? await recordPayout(api.sql, csv, asked.totalCents) : asked;
}

const payoutOf = async (payoutId: string) => await api.sql.maybe`select from payouts where id = ${payoutId}`;
const payouts = async () => await api.sql`select id from payouts where affiliate_id = ${affiliateId}`;

// @promise payouts-stop-after-restore
test('payouts are stopped when the database has another history, for the API and for every statement, until they are resumed', async () => {
  expect(await arePayoutsStopped(api.sql)).toBe(false);
  await earn(300);
  // What a restore to a moment does: the timeline is another one.
  await api.sql`update installation set history = regexp_replace(history, '/.*', '/0000BEEF')`;
  expect(await arePayoutsStopped(api.sql)).toBe(true);
  const exported = await api.call('POST', `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`, {
    key: app.key,
    headers: { 'idempotency-key': randomUUID() },
  });
  expect(exported).toMatchObject({ status: 503, body: { code: 'payouts_stopped' } });
  expect(exported.headers.get('retry-after')).toBe('600');
  await expect(payOut(api, app, affiliateId)).rejects.toThrow('payouts are stopped');
  expect(await payouts()).toEqual([]);
  await resumePayouts(api.sql);
  await payOut(api, app, affiliateId);
  expect(await payouts()).toHaveLength(1);
});

// @promise payouts-stop-after-restore
test('a payout run is not approved while payouts are stopped, and the response says when to try again', async () => {
  await earn(300);
  const call = async (rest: string, body: object) =>
    await api.call<{ id: string; status: string }>('POST', `/apps/${app.appId}/payout-runs${rest}`, {
      key: app.key,
      body,
    });
  const { body: run } = await call('', { withoutPayee: 'include' });
  await api.sql`update installation set history = regexp_replace(history, '/.*', '/0000BEEF')`;
  const approved = await call(`/${run.id}/approve`, { expectedTotalCents: 300 });
  expect(approved).toMatchObject({ status: 503, body: { code: 'payouts_stopped' } });
  expect(approved.headers.get('retry-after')).toBe('600');
  await resumePayouts(api.sql);
  expect(await call(`/${run.id}/approve`, { expectedTotalCents: 300 })).toMatchObject({
    status: 202,
    body: { status: 'approved' },
  });
});

// @promise payouts-stop-after-restore
test('payouts are stopped in another database of the same server, and when the tables of a database are loaded again', async () => {
  const copy = await createTestDatabase();
  try {
    const { id, history } = await api.sql.one<{
      id: string;
      history: string;
    }>`select id, history from installation`;
    await copy.sql`insert into installation (id, history) values (${id}, ${history})`;
    expect(await arePayoutsStopped(copy.sql)).toBe(true);
    await resumePayouts(copy.sql);
    expect(await arePayoutsStopped(copy.sql)).toBe(false);
    await runOn(
      copy.url,
      `create table loaded as select * from installation;
       drop table installation;
       alter table loaded rename to installation`,
    );
    expect(await arePayoutsStopped(copy.sql)).toBe(true);
  } finally {
    await copy.drop();
  }
});

test('a role without the right to ask for the history finds payouts as the owner does', async () => {
  await runOn(
    api.database.url,
    `begin;
     revoke execute on function pg_control_system() from public;
     create role without_control;
     grant select on installation to without_control;
     set local role without_control;
     do $$ begin
       if exists (select from installation where history <> database_history()) then raise 'payouts are stopped'; end if;
     end $$;
     rollback`,
  );
});

interface EntryLine extends Earned {
  readonly entryId: string;
}

/** Adds money, or deducts it. Returns the line that it has in a CSV. */
async function enter(amountCents: number, fields: object = {}): Promise<EntryLine> {
  const { body, text } = await api.call<{ id?: string; commissionId: string }>(
    'POST',
    `/apps/${app.appId}/affiliates/${affiliateId}/entries`,
    {
      key: app.key,
      body: { amountCents, category: 'other', reason: 'A test', externalId: randomUUID(), ...fields },
    },
  );
  if (body.id === undefined) throw new Error(text);
  const { occurredAt } = await api.sql.one<{ occurredAt: number }>`
    select occurred_at from commissions where id = ${body.commissionId}`;
  return { entryId: body.id, id: body.commissionId, eventId: '', cents: amountCents, occurredAt };
}

/** The line of an entry that this database has forgotten, added a moment ago. */
async function forgottenEntry(cents: number): Promise<Earned> {
  const { now } = await api.sql.one<{ now: number }>`select now() as now from pg_sleep(0.005)`;
  await api.sql`select pg_sleep(0.005)`;
  return { id: newId('commission'), eventId: '', cents, occurredAt: Math.ceil(now) };
}

// @promise payout-recorded
test('a forgotten payout with a bonus and a deduction is recorded from its CSV', async () => {
  const [earning, bonus, deduction] = [await earn(600), await enter(250), await enter(-100)];
  const file = csvOf(newId('payout'), earning, bonus, deduction);
  expect(await record(file)).toMatchObject({
    kind: 'recorded',
    totalCents: 750,
    isSameFile: true,
  });
  expect(await provePayout(api.sql, file)).toMatchObject({ kind: 'proved' });
});

// @promise payout-recorded
test('a forgotten bonus that was added again is found by its amount, and no other one is', async () => {
  // Another bonus of the same amount, from before: it is not the forgotten one.
  await enter(250);
  const lost = [await forgottenEntry(250), await forgottenEntry(250), await forgottenEntry(-100)];
  const file = csvOf(newId('payout'), ...lost);
  const missing = async () => await record(file);
  expect(await missing()).toMatchObject({ kind: 'missing', lines: lost.map(({ id }) => id) });
  // Nor is one that is not due, or that was undone.
  await enter(250, { dueAt: Date.now() + DAY_MS });
  const { entryId } = await enter(250);
  await api.call('POST', `/apps/${app.appId}/entries/${entryId}/undo`, {
    key: app.key,
    body: { reason: 'x' },
  });
  expect(await missing()).toMatchObject({ kind: 'missing', lines: lost.map(({ id }) => id) });
  await enter(250);
  await enter(-100);
  expect(await missing()).toMatchObject({ kind: 'missing', lines: [lost[1]?.id] });
  await enter(250);
  expect(await missing()).toMatchObject({ kind: 'recorded', totalCents: 400, replaced: 3 });
});

// @promise payout-recorded
test('a forgotten undo of a paid bonus that was undone again is found', async () => {
  const { entryId } = await enter(140);
  await payOut(api, app, affiliateId);
  const earning = await earn(900);
  const lost = await forgottenEntry(-140);
  await api.call('POST', `/apps/${app.appId}/entries/${entryId}/undo`, {
    key: app.key,
    body: { reason: 'x' },
  });
  const recorded = await record(csvOf(newId('payout'), earning, lost));
  expect(recorded).toMatchObject({ kind: 'recorded', totalCents: 760, replaced: 1 });
  // What a recorded payout has paid is no other forgotten bonus.
  const other = await forgottenEntry(-140);
  expect(await record(csvOf(newId('payout'), await earn(901), other))).toMatchObject({
    kind: 'missing',
    lines: [other.id],
  });
});

// @promise payout-recorded
test('a forgotten bonus that was added again and paid since is named, instead of being paid once more', async () => {
  const lost = await forgottenEntry(321);
  await enter(321);
  await payOut(api, app, affiliateId);
  expect(await record(csvOf(newId('payout'), lost))).toMatchObject({
    kind: 'paid_otherwise',
    lines: [lost.id],
  });
  // A purchase is not found by its amount alone.
  await enter(999);
  const purchase = { ...(await earn(1)), id: newId('commission'), cents: 999, occurredAt: 1 };
  expect(await record(csvOf(newId('payout'), purchase))).toMatchObject({ kind: 'missing' });
});

// @promise payout-recorded
test('a forgotten payout is recorded from its CSV once, also while payouts are stopped, and then proves the file', async () => {
  const earned = [await earn(500), await earn(700)];
  const payoutId = newId('payout');
  const file = csvOf(payoutId, ...earned);
  await stopPayouts(api.sql);
  expect(await provePayout(api.sql, file)).toEqual({ kind: 'unknown_payout' });
  const recorded = await Promise.all([record(file), record(file)]);
  expect(recorded).toContainEqual({
    kind: 'recorded',
    payoutId,
    totalCents: 1_200,
    replaced: 0,
    isSameFile: true,
  });
  expect(await record(file)).toEqual({ kind: 'known', payoutId });
  expect(await provePayout(api.sql, file)).toMatchObject({ kind: 'proved' });
  const paid = await api.sql`select id from commissions where payout_id = ${payoutId} and status = 'paid'`;
  expect(paid).toHaveLength(2);
  await resumePayouts(api.sql);
});

// @promise payout-recorded
test('a file that is cut off is not recorded, wherever it ends, nor one that a spreadsheet has saved', async () => {
  const earned = [await earn(310), await earn(320), await earn(330)];
  const payoutId = newId('payout');
  const file = csvOf(payoutId, ...earned);
  const lineEnd = file.lastIndexOf('\r\n', file.length - 3);
  for (let bytes = 0; bytes < file.length; bytes += 1) {
    const cut = file.subarray(0, bytes);
    // At the end of a line only its total tells.
    const recorded = await recordPayout(api.sql, cut, 960);
    expect(['unreadable', 'another_total']).toContain(recorded.kind);
    expect(recorded.kind === 'another_total').toBe(bytes > COLUMNS.join().length + 2 && cut.at(-1) === 0x0a);
  }
  const text = file.toString();
  const saved = text.replaceAll(String(earned[0]?.occurredAt), Number(earned[0]?.occurredAt).toExponential());
  expect(await recordPayout(api.sql, Buffer.from(saved), 960)).toEqual({ kind: 'unreadable' });
  const [first, second] = earned.map(({ eventId }) => eventId);
  const swapped = text.replace(first ?? '', second ?? '');
  expect(await recordPayout(api.sql, Buffer.from(swapped), 960)).toMatchObject({
    kind: 'altered',
    lines: [earned[0]?.id],
  });
  expect(await payoutOf(payoutId)).toBeUndefined();
  expect(await recordPayout(api.sql, file, null)).toEqual({
    kind: 'total_wanted',
    payoutId,
    totalCents: 960,
    lines: 3,
  });
  expect(await record(file)).toMatchObject({ kind: 'recorded', totalCents: 960, isSameFile: true });
  expect(await record(file.subarray(0, lineEnd + 2))).toEqual({
    kind: 'known_otherwise',
    payoutId,
    totalCents: 960,
  });
});

test('a name that the file has with an apostrophe before it is recorded as it is, also when the file is made anew', async () => {
  const earned = await earn(90);
  const payoutId = newId('payout');
  // A commission that came back has another id, so the CSV is made from the payout.
  const gone = { ...earned, id: newId('commission') };
  expect(await record(csvFor("'@ann", payoutId, gone))).toMatchObject({
    kind: 'recorded',
    isSameFile: false,
  });
  expect(await api.sql`select affiliate_name from payouts where id = ${payoutId}`).toEqual([
    { affiliateName: '@ann' },
  ]);
  const proven = await provePayout(api.sql, csvFor("'@ann", payoutId, earned));
  expect(proven).toMatchObject({ kind: 'proved', link: { payoutId } });
});

test('a file with a line twice is not recorded', async () => {
  const earned = await earn(80);
  const payoutId = newId('payout');
  expect(await record(csvOf(payoutId, earned, earned))).toEqual({ kind: 'unreadable' });
  expect(await payoutOf(payoutId)).toBeUndefined();
});

test('a commission that came back with a resent webhook is found by its creator, amount and time', async () => {
  const earned = await earn(900);
  const payoutId = newId('payout');
  const file = csvOf(payoutId, { ...earned, id: newId('commission'), eventId: newId('event') });
  expect(await record(file)).toMatchObject({
    kind: 'recorded',
    replaced: 1,
    isSameFile: false,
  });
  const row = await api.sql.one<{
    payoutId: string;
  }>`select payout_id from commissions where id = ${earned.id}`;
  expect(row).toEqual({ payoutId });
});

test('nothing is recorded when a commission is missing, has another amount, or was paid by another payout', async () => {
  const [earned, other] = [await earn(110), await earn(120)];
  const before = await payouts();
  const missing = csvOf(newId('payout'), earned, { ...other, cents: 121 });
  expect(await record(missing)).toMatchObject({ kind: 'missing', lines: [other.id] });
  const file = csvOf(newId('payout'), earned, other);
  expect(await payouts()).toEqual(before);
  await payOut(api, app, affiliateId);
  expect(await record(file)).toMatchObject({
    kind: 'paid_otherwise',
    lines: [earned.id, other.id],
  });
  expect(await record(Buffer.from('a,b\r\n1,2\r\n'))).toEqual({ kind: 'unreadable' });
  await expectConsistentLedger(api.sql, ['payouts_have_their_request', 'payouts_are_chained']);
});
