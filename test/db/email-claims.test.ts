import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { claimEmails, EMAILS_IN_PROGRESS } from '../../src/db/email-claims.ts';
import { beginEmailAttempt, loadEmail } from '../../src/db/emails.ts';
import { addMember } from '../../src/db/members.ts';
import { newId } from '../../src/db/new-id.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { EmailId } from '../../src/domain/ids.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let one: TestApp;
let other: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  one = await newApp(api);
  other = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

const finish = async (app?: TestApp) =>
  await api.sql`
    update emails set status = 'skipped', ended_at = now(), next_attempt_at = null, relay_at = null
     where ended_at is null and (${app === undefined} or app_id = ${app?.appId ?? ''})`;
beforeEach(async () => {
  await finish();
});

interface Place {
  /** When the next attempt is due, and when the relay looks at the mail again, in seconds from now. */
  readonly attemptIn?: number;
  readonly relayIn?: number;
  /** How long what it contains is valid, minutes. */
  readonly minutes?: number | null;
}

/** Writes mails of an app. */
async function write(
  app: TestApp,
  count: number,
  { attemptIn = 0, relayIn = 0, minutes = null }: Place = {},
): Promise<void> {
  const affiliateId = await newAffiliate(api, app, { email: 'ada@example.com' });
  await api.sql`
    insert into emails (id, app_id, affiliate_id, kind, subject_id, expires_at, next_attempt_at, relay_at)
    select new_email_id(), ${app.appId}, ${affiliateId}, 'payout_sent', ${affiliateId}::text || n, now() + ${minutes}::int * interval '1 minute',
           now() + ${attemptIn}::int * interval '1 second', now() + ${relayIn}::int * interval '1 second'
      from generate_series(1, ${count}) n`;
}

/** Writes mails to a new member of an account. */
async function writeToMember(
  { accountId }: TestApp,
  count: number,
  kind: 'member_invitation' | 'member_sign_in' | 'passkey_added' = 'member_invitation',
): Promise<void> {
  const id = newId('member');
  const minutes = { member_invitation: 24 * 60, member_sign_in: 15, passkey_added: null }[kind];
  const member = { id, email: `${id}@example.com`, name: 'Ada', role: 'analyst', appIds: null } as const;
  await addMember(api.sql, accountId, member, Date.now());
  await api.sql`
    insert into emails (id, account_id, member_id, kind, subject_id, expires_at)
    select new_email_id(), ${accountId}, ${id}, ${kind}, ${id}::text || n, now() + ${minutes}::int * interval '1 minute'
      from generate_series(1, ${count}) n`;
}

/** Claims, and returns how many mails of each app, and of the members of each account, it took. */
async function claim(limit = 50): Promise<Record<string, number>> {
  const { emails } = await claimEmails(api.sql, 30_000, limit);
  const rows = await api.sql<{ owner: string; count: number }>`
    select coalesce(app_id::text, account_id) as owner, count(*)::int as count from emails
     where id = any(${emails.map(({ emailId }) => emailId)}::text[]) group by 1`;
  return Object.fromEntries(rows.map(({ owner, count }) => [owner, count]));
}
/** Claims until there is nothing to claim, as the relay does. Returns what `claim` returns, for all claims together. */
async function claimAll(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (;;) {
    const taken = await claim();
    if (Object.keys(taken).length === 0) return counts;
    for (const [owner, count] of Object.entries(taken)) counts[owner] = (counts[owner] ?? 0) + count;
  }
}

describe('the claims of mails', () => {
  // @promise email-shares
  test('have a hundred in progress at most, each of them once, and go on when they have ended', async () => {
    await write(one, 130);
    const claims = [];
    for (let n = 0; n < 3; n += 1) claims.push(await claimEmails(api.sql, 30_000, 50));
    expect(claims.map(({ emails }) => emails.length)).toEqual([50, 50, 0]);
    expect(claims.map(({ hasMore }) => hasMore)).toEqual([true, true, false]);
    expect(new Set(claims.flatMap(({ emails }) => emails).map(({ emailId }) => emailId)).size).toBe(100);
    await api.sql`
      update emails set status = 'skipped', ended_at = now(), next_attempt_at = null, relay_at = null
       where ended_at is null and relay_at > now()`;
    expect(await claim()).toEqual({ [one.appId]: 30 });
  });

  // @promise email-shares
  test('take the mail of an account beside the hundreds of another one that wait for a later attempt', async () => {
    // As a mail server leaves them that has refused their recipients for now.
    await write(one, 400, { attemptIn: 60, relayIn: 120 });
    await write(one, 400, { attemptIn: 120, relayIn: 180 });
    // As `tributary recover` and a claim after it leave them.
    await write(one, 400, { attemptIn: 20, relayIn: 50 });
    await write(other, 3);
    expect(await claim()).toEqual({ [other.appId]: 3 });
    // They take no place of their own account either.
    await write(one, 20);
    expect(await claim()).toEqual({ [one.appId]: 20 });
  });

  // @promise email-shares
  test('take the mail of an account beside the hundreds of another one whose attempts are due now', async () => {
    await write(one, 400, { attemptIn: -5, relayIn: 55 });
    await write(one, 400);
    await write(other, 3);
    expect(await claimAll()).toEqual({ [other.appId]: 3 });
  });

  // @promise email-shares
  test('give each account the same number of places, and one account the places that no other one needs', async () => {
    await write(one, 300);
    expect(await claimAll()).toEqual({ [one.appId]: EMAILS_IN_PROGRESS });
    await write(other, 300);
    expect(await claimAll()).toEqual({ [other.appId]: EMAILS_IN_PROGRESS / 2 });
    await finish();
    await write(one, 300);
    await write(other, 20);
    expect(await claimAll()).toEqual({ [one.appId]: EMAILS_IN_PROGRESS / 2, [other.appId]: 20 });
    // The mails of the other account have ended.
    await finish(other);
    expect(await claimAll()).toEqual({ [one.appId]: EMAILS_IN_PROGRESS / 2 });
  });

  // @promise email-shares
  test('share the places of an account among its apps, so that many apps get no more', async () => {
    const apps = [one, await newApp(api, one), await newApp(api, one)];
    for (const app of apps) await write(app, 100);
    await write(other, 100);
    const taken = await claimAll();
    const ofAccount = apps.map(({ appId }) => taken[appId] ?? 0);
    expect(ofAccount.reduce((sum, count) => sum + count, 0)).toBe(EMAILS_IN_PROGRESS / 2);
    expect(Math.min(...ofAccount)).toBeGreaterThan(10);
    expect(taken[other.appId]).toBe(EMAILS_IN_PROGRESS / 2);
  });

  // @promise email-shares
  test('have a place for each of more accounts than there are places in a claim', async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, async () => await newApp(api)));
    for (const app of accounts) await write(app, 5);
    let seen: Record<string, number> = {};
    for (let round = 0; round < 6; round += 1) seen = { ...seen, ...(await claim(2)) };
    expect(Object.keys(seen).length).toBeGreaterThan(2);
    await claimAll();
    const { left } = await api.sql.one<{ left: number }>`
      select count(*)::int as left from emails where ended_at is null and relay_at <= now()`;
    expect(left).toBe(0);
  });

  // @promise email-codes-first, email-shares
  test('take mails whose reader waits first, which have places of their own', async () => {
    await write(one, 300);
    await claimAll();
    await write(one, 3, { minutes: 15 });
    const { emails } = await claimEmails(api.sql, 30_000, 2);
    expect(emails.map(({ isUrgent }) => isUrgent)).toEqual([true, true]);
    // Those of one account leave room for those of another.
    await write(one, 300, { minutes: 15 });
    await claimAll();
    await write(other, 1, { minutes: 15 });
    expect(await claimAll()).toEqual({ [other.appId]: 1 });
  });

  // @promise email-shares
  test('share the places of mails to members among the accounts, so that those of one delay none of another', async () => {
    await writeToMember(one, 400);
    expect(await claimAll()).toEqual({ [one.accountId]: EMAILS_IN_PROGRESS });
    await writeToMember(other, 3);
    expect(await claim()).toEqual({ [other.accountId]: 3 });
    await writeToMember(one, 200, 'member_sign_in');
    expect(await claimAll()).toEqual({ [one.accountId]: EMAILS_IN_PROGRESS });
    await writeToMember(other, 3, 'member_sign_in');
    expect(await claim()).toEqual({ [other.accountId]: 3 });
  });

  // @promise email-shares
  test('share the places of an account among its apps and its members', async () => {
    const second = await newApp(api, one);
    await write(one, 300);
    await write(second, 300);
    await writeToMember(one, 20);
    const taken = await claimAll();
    expect(taken[one.accountId]).toBe(20);
    expect((taken[one.appId] ?? 0) + (taken[second.appId] ?? 0)).toBe(EMAILS_IN_PROGRESS - 20);
    // They are places of the account: another one has as many.
    await writeToMember(other, 300);
    expect(await claimAll()).toEqual({ [other.accountId]: EMAILS_IN_PROGRESS / 2 });
  });

  // @promise email-codes-first
  test('take the notice of a new passkey with the mails whose reader waits, also for the connections to the mail server', async () => {
    await writeToMember(one, 300);
    await claimAll();
    await writeToMember(one, 1, 'passkey_added');
    const { emails } = await claimEmails(api.sql, 30_000, 50);
    expect(emails.map(({ isUrgent }) => isUrgent)).toEqual([true]);
    const [notice] = emails;
    expect(await loadEmail(api.sql, notice!.emailId)).toMatchObject({
      kind: 'passkey_added',
      isUrgent: true,
    });
  });

  test('take a mail again whose workflow was lost, and not one that was claimed a moment ago', async () => {
    await write(one, 1, { attemptIn: -90, relayIn: -30 });
    expect(await claim()).toEqual({ [one.appId]: 1 });
    expect(await claim()).toEqual({});
  });

  test('of several processes at the same time take each mail once', async () => {
    await write(one, 60);
    await write(other, 60);
    const claims = await Promise.all(
      Array.from({ length: 6 }, async () => await claimEmails(api.sql, 30_000, 50)),
    );
    const ids = claims.flatMap(({ emails }) => emails.map(({ emailId }) => emailId));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test('an attempt is begun once by one caller, also if the answer to its statement is lost and it is sent again', async () => {
  await write(one, 1);
  const { id } = await api.sql.one<{
    id: EmailId;
  }>`select id from emails where app_id = ${one.appId} and ended_at is null`;
  const { sql } = api;
  const sentTwice: Sql['maybe'] = async (strings, ...values) => {
    await sql.maybe(strings, ...values);
    return await sql.maybe(strings, ...values);
  };
  const next = { attempts: 0, waitMs: 0 };
  expect(await beginEmailAttempt(Object.assign(sql.share(1), { maybe: sentTwice }), id, next)).toBe(true);
  expect(await loadEmail(sql, id)).toMatchObject({ attempts: 1 });
  expect(await beginEmailAttempt(sql, id, next)).toBe(false);
  const both = [1, 2].map(async () => await beginEmailAttempt(sql, id, { ...next, attempts: 1 }));
  expect((await Promise.all(both)).filter(Boolean)).toHaveLength(1);
  expect(await loadEmail(sql, id)).toMatchObject({ attempts: 2 });
});
