import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { mailMemberLink, mailSignInLinks } from '../../src/db/member-links.ts';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { MemberId } from '../../src/domain/ids.ts';
import { createIntake } from '../../src/http/intake.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newAccount, newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import {
  copiedToken,
  mailedTokens,
  newMember,
  openLink,
  signInManager,
  signInMember,
} from '../support/members.ts';
import type { Browser, TestMember } from '../support/members.ts';
import { OWN_PAGE } from '../support/sessions.ts';

const MINUTE_MS = 60_000;

let api: TestApi;
let app: TestApp;
let manager: Browser;

beforeAll(async () => {
  api = await startTestApi({ sendsMail: true });
  app = await newApp(api);
  manager = await signInManager(api, app);
});
afterAll(async () => {
  await api.close();
});

const ask = async (email: string) =>
  await api.call('POST', '/sign-in-links', { body: { email }, headers: OWN_PAGE });

/** Asks for a link and opens it. */
async function signInByMail(member: TestMember, browser: Partial<Browser> = {}): Promise<Browser> {
  expect((await ask(member.email)).status).toBe(202);
  const [token = ''] = await mailedTokens(api, member);
  return await openLink(api, token, browser);
}

/** Adds a member. Returns the id, and whether an invitation was mailed. */
async function add(to: TestApp, by: Browser, email: string): Promise<{ id: MemberId; isMailed: boolean }> {
  const { status, body } = await api.call<{ id: MemberId; isMailed: boolean }>(
    'POST',
    `/accounts/${to.accountId}/members`,
    { headers: by, body: { email, name: 'Ada', role: 'analyst' } },
  );
  expect(status).toBe(201);
  return body;
}
const memberPath = (to: TestApp, id: string) => `/accounts/${to.accountId}/members/${id}`;

const mayPay = async (headers: Browser): Promise<boolean> => {
  const { body } = await api.call<{ session: { raisedUntil: number | null } }>('GET', '/session', {
    headers,
  });
  return body.session.raisedUntil !== null;
};
/** Drafts a run, which needs the permission `payout`. */
const draft = async (headers: Browser) =>
  await api.call<{ code: string; detail: string }>('POST', `/apps/${app.appId}/payout-runs`, {
    headers,
    body: {},
  });

describe('POST /sign-in-links', () => {
  // @promise sign-in-links-same-answer
  test('an address without a member gets the same answer, headers included, in the same time', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const answers: unknown[] = [];
    const times: number[] = [];
    for (const email of [member.email, 'nobody@example.com', member.email.toUpperCase()]) {
      const startedAt = performance.now();
      const { status, text, headers } = await ask(email);
      times.push(performance.now() - startedAt);
      const names = [...headers.keys()].toSorted();
      answers.push([status, text, names]);
    }
    expect(answers).toEqual([answers[0], answers[0], answers[0]]);
    // Each takes the whole step, however little there was to do.
    for (const time of times) expect(time).toBeGreaterThanOrEqual(245);
    expect(await mailedTokens(api, member)).toHaveLength(2);
  });

  // @promise app-shares
  test('a call that waits for the end of its step leaves its place to others', async () => {
    const narrow = await startTestApi({
      sendsMail: true,
      intake: createIntake(api.sql, { webhooks: 0, openCalls: 1 }),
    });
    const endings = async () => {
      const ended: string[] = [];
      const asked = narrow.call('POST', '/sign-in-links', {
        body: { email: 'nobody@example.com' },
        headers: OWN_PAGE,
      });
      await Promise.all([
        asked.then(({ status }) => ended.push(`link ${status}`)),
        narrow.call('GET', '/l/-/-').then(({ status }) => ended.push(`redirect ${status}`)),
      ]);
      return ended;
    };
    const wanted = ['redirect 404', 'link 202'];
    // On a busy machine the work may end with its step.
    let ended = await endings();
    for (let tries = 0; tries < 5 && ended[0] !== wanted[0]; tries += 1) ended = await endings();
    expect(ended).toEqual(wanted);
    await narrow.close();
  });

  // @promise sign-in-links-same-answer
  test('a member of more than ten accounts gets links of those that were used last', async () => {
    const email = 'bookkeeper@example.com';
    const members: TestMember[] = [];
    for (let count = 0; count < 12; count += 1) {
      const account = await newAccount(api);
      api.clock.now += 1;
      members.push(await newMember(api, account, await signInManager(api, account), 'analyst', { email }));
    }
    const mailed = async () =>
      await Promise.all(members.map(async (member) => (await mailedTokens(api, member)).length));
    await ask(email);
    expect(await mailed()).toEqual([0, 0, ...Array.from({ length: 10 }, () => 1)]);
    // The oldest account is used, the others never were.
    await api.sql`update account_keys set last_used_at = now() where id = ${members[0]?.keyId ?? ''}`;
    await ask(email);
    expect(await mailed()).toEqual([1, 0, 1, ...Array.from({ length: 9 }, () => 2)]);
  });

  // @promise sign-in-links-same-answer
  test('where the database cannot be written to, the answer is the same for every address, too', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const reader = connect({
      url: api.database.url,
      max: 1,
      settings: { default_transaction_read_only: 'on' },
    });
    const deps = { sql: reader, secretBox: createSecretBox([TEST_KEY]) };
    for (const address of [member.email, 'nobody@example.com'])
      await expect(mailSignInLinks(deps, address, api.clock.now)).rejects.toThrow(DatabaseUnavailable);
    await reader.close();
  });

  // @promise post-sign-in-links
  test('a link works once and for 15 minutes, and is stored as a hash', async () => {
    const member = await newMember(api, app, manager, 'finance');
    await ask(member.email);
    const [token = ''] = await mailedTokens(api, member);
    const attempts = await Promise.all(
      Array.from(
        { length: 4 },
        async () => await api.call('POST', '/session', { body: { token }, headers: OWN_PAGE }),
      ),
    );
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
    await ask(member.email);
    const late = (await mailedTokens(api, member)).find((one) => one !== token) ?? '';
    api.clock.now += 15 * MINUTE_MS;
    await expect(openLink(api, late)).rejects.toThrow('invalid_sign_in_link');
    api.clock.now -= 15 * MINUTE_MS;
  });

  // @promise sign-in-links-limit
  test('three links are open at a time, so a member who gets no other one has these', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    for (let n = 0; n < 5; n += 1) expect((await ask(member.email)).status).toBe(202);
    const tokens = await mailedTokens(api, member);
    expect(tokens).toHaveLength(3);
    await openLink(api, tokens[0] ?? '');
    await ask(member.email);
    expect(await mailedTokens(api, member)).toHaveLength(4);
    api.clock.now += 15 * MINUTE_MS;
    await ask(member.email);
    expect(await mailedTokens(api, member)).toHaveLength(5);
    api.clock.now -= 15 * MINUTE_MS;
  });

  // @promise sign-in-links-limit
  test('attempts are limited by client address and by mail address, known or not', async () => {
    const limited = await startTestApi({
      sendsMail: true,
      trustProxy: 1,
      rateLimits: createRateLimits({ ...NO_RATE_LIMITS, signIn: 2 }),
    });
    const from = async (address: string, email: string) =>
      (
        await limited.call('POST', '/sign-in-links', {
          body: { email },
          headers: { ...OWN_PAGE, 'x-forwarded-for': address },
        })
      ).status;
    const statuses = [
      await from('198.51.100.1', 'a@example.com'),
      await from('198.51.100.1', 'b@example.com'),
      await from('198.51.100.1', 'c@example.com'),
      await from('198.51.100.2', 'A@example.com'),
      await from('198.51.100.3', 'a@example.com'),
    ];
    expect(statuses).toEqual([202, 202, 429, 202, 429]);
    await limited.close();
  });

  test('a member of two accounts gets a link for each', async () => {
    const other = await newApp(api);
    const first = await newMember(api, app, manager, 'analyst', { email: 'two@example.com' });
    const second = await newMember(api, other, await signInManager(api, other), 'owner', {
      email: 'Two@example.com',
    });
    await ask('two@example.com');
    expect(await mailedTokens(api, first)).toHaveLength(1);
    expect(await mailedTokens(api, second)).toHaveLength(1);
  });

  test('neither a removed member nor a page of another site gets anything', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const headers = { 'sec-fetch-site': 'cross-site' };
    const foreign = await api.call('POST', '/sign-in-links', { body: { email: member.email }, headers });
    expect(foreign.status).toBe(403);
    await api.call('POST', `/accounts/${app.accountId}/members/${member.id}/remove`, { headers: manager });
    expect((await ask(member.email)).status).toBe(202);
    expect(await mailedTokens(api, member)).toEqual([]);
  });

  test('without a mail server, the answer says so for every address', async () => {
    const silent = await startTestApi();
    const answer = await silent.call('POST', '/sign-in-links', { body: { email: 'x@example.com' } });
    expect(answer).toMatchObject({ status: 409, body: { code: 'mail_not_configured' } });
    await silent.close();
  });
});

describe('paying as a member', () => {
  // @promise member-pays-after-mailed-link
  test('needs a mailed link of the last 15 minutes; an invitation and a copied link do not suffice', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const [invited = ''] = await mailedTokens(api, member, 'member_invitation');
    const copied = await copiedToken(api, member, manager);
    for (const token of [invited, copied]) {
      const refused = await draft(await openLink(api, token));
      expect(refused).toMatchObject({ status: 403, body: { code: 'session_not_raised' } });
      expect(refused.body.detail).toContain('mailed to you');
    }
    const browser = await signInByMail(member);
    expect((await draft(browser)).status).not.toBe(403);
    api.clock.now += 15 * MINUTE_MS;
    expect((await draft(browser)).body.code).toBe('session_not_raised');
    api.clock.now -= 15 * MINUTE_MS;
  });

  // @promise post-mail-link
  test('the session of the browser in which the mailed link is opened goes on, and pays', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const browser = await signInMember(api, member, manager);
    const other = await signInMember(api, member, manager);
    const sent = await api.call('POST', '/session/mail-link', { headers: browser });
    expect(sent).toMatchObject({
      status: 202,
      body: { maskedRecipient: expect.stringMatching(/^p•••@example/) },
    });
    const [token = ''] = await mailedTokens(api, member);
    const opened = await Promise.all(
      [1, 2].map(async () => await api.call('POST', '/session', { body: { token }, headers: browser })),
    );
    // The second one finds the link spent, or, at the same instant of the clock, what the first one has done.
    expect(opened.map(({ status }) => status)).toContain(200);
    expect(opened.every(({ status }) => status === 200 || status === 401)).toBe(true);
    expect(opened.map(({ headers }) => headers.get('set-cookie'))).toEqual([null, null]);
    expect([await mayPay(browser), await mayPay(other)]).toEqual([true, false]);
    const rows =
      await api.sql`select raised_key_id from sessions where key_id = ${member.keyId} and raised_until is not null`;
    expect(rows).toEqual([{ raisedKeyId: member.keyId }]);
  });

  test('a link of another member, in the browser of a session, starts a session of that member', async () => {
    const one = await newMember(api, app, manager, 'finance');
    const two = await newMember(api, app, manager, 'finance');
    const browser = await signInMember(api, one, manager);
    const after = await signInByMail(two, browser);
    expect(after.cookie).not.toBe(browser.cookie);
    expect((await api.call('GET', '/apps', { headers: browser })).status).toBe(401);
    const { body } = await api.call<{ session: { member: { id: string } } }>('GET', '/session', {
      headers: after,
    });
    expect(body.session.member.id).toBe(two.id);
  });

  // @promise member-pays-after-mailed-link
  test('ends with the role, also for a key that may pay, which a role without payout cannot enter', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const browser = await signInMember(api, member, manager);
    const raise = async () =>
      (await api.call('POST', '/session/raise', { headers: browser, body: { key: app.key } })).status;
    const setRole = async (role: string) =>
      await api.call('PATCH', `/accounts/${app.accountId}/members/${member.id}`, {
        headers: manager,
        body: { role },
      });
    expect(await raise()).toBe(200);
    expect(await mayPay(browser)).toBe(true);
    await setRole('admin');
    expect(await mayPay(browser)).toBe(false);
    expect((await draft(browser)).body.code).toBe('forbidden');
    expect(await raise()).toBe(403);
    const byMail = await signInByMail(member);
    expect(await mayPay(byMail)).toBe(false);
  });

  // @promise member-grants-no-payout
  test('an owner with a copied link, however new, creates and rotates no key that may pay', async () => {
    const owner = await newMember(api, app, manager, 'owner');
    const { id } = await createAccountKey(api.sql, app.accountId, ['payout']);
    const keys = `/accounts/${app.accountId}/keys`;
    const create = async (headers: Browser) =>
      await api.call<{ code: string }>('POST', keys, {
        headers,
        body: { label: 'Mine', permissions: ['payout'] },
      });
    const copied = await signInMember(api, owner, manager);
    expect((await create(copied)).body.code).toBe('session_not_raised');
    expect((await api.call('POST', `${keys}/${id}/rotate`, { headers: copied, body: {} })).status).toBe(403);
    expect((await create(await signInByMail(owner))).status).toBe(201);
  });

  test('a session of a key or of the operator gets no mail', async () => {
    const answer = await api.call('POST', '/session/mail-link', { headers: manager });
    expect(answer).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });
});

describe('mails to members', () => {
  // @promise post-member, post-member-invitation
  test('an invitation is queued with its link, and five more are sent in an hour at most', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const path = `/accounts/${app.accountId}/members/${member.id}/sign-in-links/send`;
    const statuses: number[] = [];
    for (let n = 0; n < 5; n += 1) statuses.push((await api.call('POST', path, { headers: manager })).status);
    expect(statuses).toEqual([202, 202, 202, 202, 429]);
    expect(await mailedTokens(api, member, 'member_invitation')).toHaveLength(5);
    const list = await api.call<{ items: { id: string; invitation: unknown }[] }>(
      'GET',
      `/accounts/${app.accountId}/members?limit=100`,
      { headers: manager },
    );
    expect(list.body.items.find(({ id }) => id === member.id)?.invitation).toEqual({
      status: 'queued',
      lastProblem: null,
    });
  });

  // @promise member-mails-to-address
  test('an address gets five invitations of an account in an hour, however often it is removed and added again', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const mailed: boolean[] = [];
    for (let n = 0; n < 7; n += 1) {
      const { id, isMailed } = await add(own, by, n % 2 === 0 ? 'victim@example.com' : 'Victim@Example.com');
      mailed.push(isMailed);
      await api.call('POST', `${memberPath(own, id)}/remove`, { headers: by });
    }
    expect(mailed).toEqual([true, true, true, true, true, false, false]);
    const last = await add(own, by, 'victim@example.com');
    const refused = await api.call('POST', `${memberPath(own, last.id)}/sign-in-links/send`, { headers: by });
    expect(refused).toMatchObject({ status: 429, body: { code: 'too_many_emails' } });
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(3_500);
    expect(seconds).toBeLessThanOrEqual(3_600);
    expect((await add(own, by, 'other@example.com')).isMailed).toBe(true);
    const neighbour = await newApp(api);
    expect((await add(neighbour, await signInManager(api, neighbour), 'victim@example.com')).isMailed).toBe(
      true,
    );
  });

  // @promise member-mails-to-address
  test('an address gets thirty links of an account that it asked for in an hour, however often it is removed and added again', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const deps = { sql: api.sql, secretBox: createSecretBox([TEST_KEY]) };
    const options = { kind: 'member_sign_in', now: api.clock.now } as const;
    const outcomes: (string | undefined)[] = [];
    for (let n = 0; n < 11; n += 1) {
      const { id } = await add(own, by, 'asks@example.com');
      for (let link = 0; link < 3; link += 1)
        outcomes.push((await mailMemberLink(deps, own.accountId, id, options))?.outcome);
      await api.call('POST', `${memberPath(own, id)}/remove`, { headers: by });
    }
    expect(outcomes.filter((outcome) => outcome === 'queued')).toHaveLength(30);
    expect(outcomes.slice(30)).toEqual(['too_many', 'too_many', 'too_many']);
  });

  // @promise member-mails-of-account
  test('the thousand and first invitation of a member within an hour is a 429, and none to a creator or of another account is', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const { id } = await add(own, by, 'first@example.com');
    await api.sql`
      insert into emails (id, account_id, member_id, kind, subject_id, created_at)
      select new_email_id(), ${own.accountId}, ${id}, 'member_invitation', 'i-' || n, now() - interval '59 minutes' + n * interval '1 second'
        from generate_series(1, 999) n`;
    const second = await add(own, by, 'second@example.com');
    expect(second.isMailed).toBe(false);
    const refused = await api.call<{ detail: string }>(
      'POST',
      `${memberPath(own, second.id)}/sign-in-links/send`,
      {
        headers: by,
      },
    );
    expect(refused.status).toBe(429);
    expect(refused.body.detail).toContain('The account has sent as many');
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(30);
    expect(seconds).toBeLessThanOrEqual(61);
    const creator = await newAffiliate(api, own, { email: 'creator@example.com' });
    const invited = await api.call('POST', `/apps/${own.appId}/affiliates/${creator}/sign-in-links/send`, {
      key: own.key,
    });
    expect(invited.status).toBe(202);
    expect((await add(app, manager, 'stranger@example.com')).isMailed).toBe(true);
    await api.sql`
      update emails set status = 'skipped', ended_at = now(), next_attempt_at = null, relay_at = null
       where account_id = ${own.accountId} and kind = 'member_invitation' and ended_at is null and ciphertext is null`;
  });

  // @promise sign-in-links-limit
  test('a session whose member has three open links gets a 429 that says when the next one is possible', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const browser = await signInMember(api, member, manager);
    const send = async () => await api.call('POST', '/session/mail-link', { headers: browser });
    for (let n = 0; n < 3; n += 1) expect((await send()).status).toBe(202);
    const refused = await send();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe(String(15 * 60));
  });

  test('a row of a mail has no address, and is to a creator or to a member', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const [row] = await api.sql`select e::text as text from emails e where member_id = ${member.id}`;
    expect(row?.['text']).not.toContain(member.email);
    const both = api.sql`update emails set app_id = ${app.appId} where member_id = ${member.id}`;
    await expect(both).rejects.toThrow(/does not change this way|email_to_one_person/);
  });

  test('no link that lets a session pay lives longer than 15 minutes, also by SQL', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const box = createSecretBox([TEST_KEY]);
    const options = { kind: 'member_sign_in', now: api.clock.now } as const;
    await mailMemberLink({ sql: api.sql, secretBox: box }, app.accountId, member.id as MemberId, options);
    const longer = api.sql`update sign_in_links set expires_at = expires_at + interval '1 second' where raises`;
    await expect(longer).rejects.toThrow('sign_in_link_raises_briefly');
  });
});
