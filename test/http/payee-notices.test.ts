import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { deleteExpiredFormerAddresses } from '../../src/db/payee-changes.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { runOn } from '../support/postgres-admin.ts';

let api: TestApi;
let app: TestApp;
let creator: string;

const VICTIM = 'victim@example.com';
const THIEF = 'thief@example.org';
const PAYEE = { method: 'paypal', recipient: { email: 'money@example.org' } };

beforeAll(async () => {
  api = await startTestApi({ sendsMail: true });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  creator = await newAffiliate(api, app, { email: VICTIM });
  await api.sql`update affiliates set email_set_at = now() - interval '1 year' where id = ${creator}`;
});

const path = () => `/apps/${app.appId}/affiliates/${creator}`;
const setAddress = async (email: string | null, key = app.key) => {
  expect((await api.call('PATCH', path(), { key, body: { email } })).status).toBe(200);
};
const setPayee = async (body: object = PAYEE) => {
  expect((await api.call('PUT', `${path()}/payee`, { key: app.key, body })).status).toBe(200);
};
/** Makes what was done with the address earlier. */
const pass = async (interval: string) => {
  await api.sql`
    update former_addresses set replaced_at = replaced_at - ${interval}::interval, held_since = held_since - ${interval}::interval
     where affiliate_id = ${creator}`;
  await api.sql`
    update affiliates set email_set_at = email_set_at - ${interval}::interval where id = ${creator}`;
};
/** Returns the addresses that get a mail about a payee, and null for a mail that is skipped. */
const notified = async () =>
  (
    await api.sql<{ recipient: string | null }>`
      select recipient from emails where affiliate_id = ${creator} and kind = 'payee_changed' order by recipient`
  ).map(({ recipient }) => recipient);

/** Sets payees that differ, from the number `from` to `to`. */
const setPayees = async (from: number, to: number) => {
  for (let n = from; n <= to; n += 1)
    await setPayee({ method: 'paypal', recipient: { email: `money-${n}@example.org` } });
};
/** Returns of each mail about a payee, by version and address, where it is and in how many seconds it is due. */
const states = async () =>
  await api.sql<{ version: number; address: string; status: string; seconds: number | null }>`
    select p.version, left(e.recipient, 1) as address, e.status, extract(epoch from e.next_attempt_at - now())::float8 as seconds
      from emails e join payees p on p.app_id = e.app_id and p.id = split_part(e.subject_id, '/', 1)
     where e.affiliate_id = ${creator} and e.kind = 'payee_changed' order by p.version, e.recipient`;

describe('the mail about another payee', () => {
  // @promise email-payee-former
  test.each([
    ['is removed before and restored afterwards', null],
    ['is replaced before and restored afterwards', THIEF],
  ])('goes to the address of the creator also if that %s', async (_what, meanwhile) => {
    const key = (await createAccountKey(api.sql, app.accountId, ['read', 'write'])).key;
    await setAddress(meanwhile, key);
    await setPayee();
    await setAddress(VICTIM, key);
    expect(await notified()).toEqual([
      ...(meanwhile === null ? [] : [meanwhile]),
      VICTIM,
      ...(meanwhile === null ? [null] : []),
    ]);
  });

  // @promise email-payee-former
  test('goes once to an address whose upper and lower case was changed, and its row outlasts no hash of an address', async () => {
    await setAddress('Other@example.com');
    await setAddress('other@example.com');
    await setAddress('new@example.com');
    await setPayee();
    const rows = await api.sql<{ recipient: string; part: string }>`
      select recipient, split_part(subject_id, '/', 2) as part from emails
       where affiliate_id = ${creator} and kind = 'payee_changed' order by subject_id`;
    expect(rows.map(({ part }) => part)).toEqual(['', '1', '2']);
    expect(rows.map(({ recipient }) => recipient.toLowerCase()).toSorted()).toEqual(
      ['new@example.com', 'other@example.com', VICTIM.toLowerCase()].toSorted(),
    );
  });

  // @promise email-payee-former
  test('goes to the address of the moment, whatever the address is when the mail is sent', async () => {
    await setPayee();
    await setAddress(THIEF);
    expect(await notified()).toEqual([VICTIM]);
  });

  // @promise email-payee-former
  test('goes to an address until seven days after it was replaced', async () => {
    await setAddress('new@example.com');
    await pass('6 days 23 hours');
    await setPayee();
    expect(await notified()).toEqual(['new@example.com', VICTIM]);
    await pass('2 hours');
    await setPayee({ method: 'none' });
    expect(await notified()).toEqual(['new@example.com', 'new@example.com', VICTIM]);
  });

  // @promise email-payee-former
  test('goes to the five addresses that were held the longest, whatever was set after them', async () => {
    await setAddress('corrected@example.com');
    await pass('3 days');
    for (let n = 0; n < 12; n += 1) await setAddress(`other-${n}@example.com`);
    await setAddress(null);
    await setPayee();
    const addresses = await notified();
    expect(addresses).toHaveLength(6);
    expect(addresses).toEqual(expect.arrayContaining([VICTIM, 'corrected@example.com', null]));
    const { kept } = await api.sql.one<{ kept: number }>`
      select count(*)::int as kept from former_addresses where affiliate_id = ${creator}`;
    expect(kept).toBe(5);
  });

  // @promise email-payee-former
  test('goes once to an address that differs in its capitals only', async () => {
    await setAddress('Victim@example.com');
    await setPayee();
    expect(await notified()).toEqual(['Victim@example.com']);
  });

  // @promise email-payee-many
  test('is sent at once of five versions within an hour, and of those after them the last one within an hour', async () => {
    await setPayees(1, 6);
    const [sixth] = (await states()).slice(-1);
    expect(sixth).toMatchObject({ version: 6, status: 'queued' });
    expect(sixth?.seconds).toBeGreaterThan(3_500);
    expect(sixth?.seconds).toBeLessThanOrEqual(3_600);
    await api.sql`
      update emails set next_attempt_at = next_attempt_at - interval '30 minutes', relay_at = relay_at - interval '30 minutes'
       where affiliate_id = ${creator} and next_attempt_at > now()`;
    await setPayees(7, 8);
    const mails = await states();
    expect(mails.map(({ version, status }) => [version, status])).toEqual([
      ...[1, 2, 3, 4, 5].map((version) => [version, 'queued']),
      [6, 'skipped'],
      [7, 'skipped'],
      [8, 'queued'],
    ]);
    // Those before are due at once. The last one keeps the time of the first that had to wait, so that no version after it delays the mail.
    for (const { seconds } of mails.slice(0, 5)) expect(seconds).toBeLessThanOrEqual(0);
    expect(mails.at(-1)?.seconds).toBeGreaterThan(1_700);
    expect(mails.at(-1)?.seconds).toBeLessThanOrEqual(1_800);
    const { relays } = await api.sql.one<{ relays: number }>`
      select count(*)::int as relays from emails where affiliate_id = ${creator} and relay_at is distinct from next_attempt_at`;
    expect(relays).toBe(0);
  });

  // @promise email-payee-many
  test('that waited is sent although other versions follow, and the last of these is mailed within another hour', async () => {
    await setPayees(1, 6);
    await api.sql`
      update emails set next_attempt_at = now(), relay_at = now() where affiliate_id = ${creator} and next_attempt_at > now()`;
    await setPayees(7, 8);
    const late = (await states()).slice(5);
    expect(late.map(({ version, status }) => [version, status])).toEqual([
      [6, 'queued'],
      [7, 'skipped'],
      [8, 'queued'],
    ]);
    expect(late[0]?.seconds).toBeLessThanOrEqual(0);
    expect(late[2]?.seconds).toBeGreaterThan(3_500);
  });

  // @promise email-payee-many
  test('goes to former addresses as seldom', async () => {
    await setAddress(THIEF);
    await setPayees(1, 8);
    const mails = await states();
    for (const address of ['t', 'v']) {
      const queued = mails.filter((mail) => mail.address === address && mail.status === 'queued');
      expect(queued.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 8]);
    }
  });

  // @promise email-payee-many
  test('is sent at once again when the versions of the last hour are fewer', async () => {
    await setPayees(1, 6);
    await runOn(
      api.database.url,
      `alter table payees disable trigger payees_guard;
       update payees set set_at = set_at - interval '1 hour', counts_from = counts_from - interval '1 hour' where affiliate_id = '${creator}';
       alter table payees enable trigger payees_guard`,
    );
    await setPayees(7, 7);
    const late = (await states()).slice(5);
    // The one that waited would be about an earlier payee than the mail before it.
    expect(late.map(({ version, status }) => [version, status])).toEqual([
      [6, 'skipped'],
      [7, 'queued'],
    ]);
    expect(late[1]?.seconds).toBeLessThanOrEqual(0);
  });

  test('is not about former addresses that are older than a week: they are deleted', async () => {
    await setAddress('new@example.com');
    const kept = async () =>
      await api.sql`select address from former_addresses where affiliate_id = ${creator}`;
    await deleteExpiredFormerAddresses(api.sql, Date.now());
    expect(await kept()).toEqual([{ address: VICTIM }]);
    await pass('7 days');
    await deleteExpiredFormerAddresses(api.sql, Date.now() + 1_000);
    expect(await kept()).toEqual([]);
  });
});
