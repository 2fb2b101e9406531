import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { deleteExpiredFormerAddresses } from '../../src/db/payee-changes.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

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
