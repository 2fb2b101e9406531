import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { inviteByMail } from '../../src/db/invitations.ts';
import { newId } from '../../src/db/new-id.ts';
import type { AffiliateId, AppId } from '../../src/domain/ids.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi({ sendsMail: true });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Mail {
  readonly id: string;
  readonly maskedRecipient: string | null;
  readonly status: string;
}

const send = async (affiliateId: string, idempotencyKey?: string) =>
  await api.call<{ code: string; emailId: string; maskedRecipient: string }>(
    'POST',
    `/apps/${app.appId}/affiliates/${affiliateId}/sign-in-links/send`,
    {
      key: app.key,
      ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
    },
  );
const countsOf = async (affiliateId: string) =>
  await api.sql.one`
    select (select count(*)::int from emails where affiliate_id = ${affiliateId}) as mails,
           (select count(*)::int from creator_sign_in_links where affiliate_id = ${affiliateId}) as links`;

/** Adds as many invitations of a creator as an hour can have. */
const fillHour = async (affiliateId: string) =>
  await api.sql`
    insert into emails (id, app_id, affiliate_id, kind, subject_id)
    select new_email_id(), ${app.appId}, ${affiliateId}, 'invitation', ${affiliateId}::text || n from generate_series(1, 5) n`;
/** Removes them, as if the hour were over. */
const endHour = async (affiliateId: string) =>
  await api.sql`delete from emails where affiliate_id = ${affiliateId} and subject_id like ${affiliateId}::text || '%'`;
const list = async (query = '') =>
  await api.call<{ items: Mail[]; nextCursor: string | null }>('GET', `/apps/${app.appId}/emails${query}`, {
    key: app.key,
  });

describe('POST /apps/:appId/affiliates/:affiliateId/sign-in-links/send', () => {
  // @promise post-creator-invitation
  test('queues one mail with a new link, also when the call is repeated with its idempotency key', async () => {
    const affiliateId = await newAffiliate(api, app, { email: 'ada@example.com' });
    const first = await send(affiliateId, 'invite-1');
    expect([first.status, first.body]).toEqual([
      202,
      {
        emailId: expect.stringMatching(/^eml_/),
        maskedRecipient: 'a•••@example.com',
        expiresAt: expect.any(Number),
        uses: 5,
      },
    ]);
    expect((await send(affiliateId, 'invite-1')).body).toEqual(first.body);
    expect(await countsOf(affiliateId)).toEqual({ mails: 1, links: 1 });
  });

  test('a creator without an address gets neither a mail nor a link', async () => {
    const affiliateId = await newAffiliate(api, app);
    const { status, body } = await send(affiliateId);
    expect([status, body.code]).toEqual([409, 'no_email_address']);
    expect(await api.sql`select from creator_sign_in_links where affiliate_id = ${affiliateId}`).toEqual([]);
  });

  // @promise post-creator-invitation-limit
  test('the sixth mail to a creator within an hour is refused, and one to another creator is not', async () => {
    const affiliateId = await newAffiliate(api, app, { email: 'many@example.com' });
    for (let round = 0; round < 5; round += 1) expect((await send(affiliateId)).status).toBe(202);
    await api.sql`
      update emails set relay_at = now(), next_attempt_at = now() where affiliate_id = ${affiliateId}`;
    const refused = await send(affiliateId);
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_emails']);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(3_500);
    expect(seconds).toBeLessThanOrEqual(3_600);
    const other = await newAffiliate(api, app, { email: 'other@example.com' });
    expect((await send(other)).status).toBe(202);
  });

  // @promise idempotency-refusals
  test('a refused mail does not use its idempotency key, so the same call mails the link once that is possible', async () => {
    const affiliateId = await newAffiliate(api, app, { email: 'patient@example.com' });
    await fillHour(affiliateId);
    expect((await send(affiliateId, 'patient')).status).toBe(429);
    await endHour(affiliateId);
    const sent = await send(affiliateId, 'patient');
    expect([sent.status, sent.headers.get('idempotency-replayed')]).toEqual([202, null]);
    expect((await send(affiliateId, 'patient')).body).toEqual(sent.body);
    expect(await countsOf(affiliateId)).toEqual({ mails: 1, links: 1 });
  });

  // @promise idempotency-refusals
  test('a call whose response was lost mails nothing again, also if it is refused in between', async () => {
    const affiliateId = await newAffiliate(api, app, { email: 'lost@example.com' });
    const first = await send(affiliateId, 'lost');
    await api.sql`
      update idempotency_keys set response = null, response_key_id = null, claimed_until = now()
       where account_id = ${app.accountId} and idempotency_key = 'lost'`;
    await fillHour(affiliateId);
    api.clock.now += 1_000;
    expect((await send(affiliateId, 'lost')).status).toBe(429);
    await endHour(affiliateId);
    const again = await send(affiliateId, 'lost');
    api.clock.now -= 1_000;
    expect([again.status, again.body.emailId]).toEqual([202, first.body.emailId]);
    expect(await countsOf(affiliateId)).toEqual({ mails: 1, links: 1 });
  });

  // @promise post-creator-invitation-account-limit
  test('an account sends a limited number of invitations within an hour, with all its apps together', async () => {
    const owner = await newApp(api);
    const second = await newApp(api, owner);
    const stranger = await newApp(api);
    const invite = async (of: TestApp) => {
      const affiliateId = await newAffiliate(api, of, { email: 'ada@example.com' });
      const ids = { emailId: newId('email'), token: randomUUID(), now: Date.now() };
      const deps = { sql: api.sql, secretBox: createSecretBox([TEST_KEY]) };
      const scope = { appId: of.appId as AppId, affiliateId: affiliateId as AffiliateId };
      return await inviteByMail(deps, scope, ids, { ofCreator: 5, ofAccount: 3 });
    };
    const outcomes = [await invite(owner), await invite(second), await invite(owner), await invite(second)];
    expect(outcomes.map((one) => one?.outcome)).toEqual(['queued', 'queued', 'queued', 'too_many']);
    expect(outcomes[3]).toMatchObject({ isOfAccount: true });
    expect((await invite(stranger))?.outcome).toBe('queued');
    const { links } = await api.sql.one<{ links: number }>`
      select count(*)::int as links from creator_sign_in_links where app_id in (${owner.appId}, ${second.appId})`;
    expect(links).toBe(3);
  });

  // @promise post-creator-invitation-account-limit
  test('the thousand and first invitation of an account within an hour is a 429 that says when the next one is possible', async () => {
    const owner = await newApp(api);
    const affiliateId = await newAffiliate(api, owner, { email: 'ada@example.com' });
    const other = await newAffiliate(api, owner, { email: 'grace@example.com' });
    await api.sql`
      insert into emails (id, app_id, affiliate_id, kind, subject_id, created_at)
      select new_email_id(), ${owner.appId}, ${other}, 'invitation', 'i-' || n, now() - interval '59 minutes' + n * interval '1 second'
        from generate_series(1, 1000) n`;
    const path = `/apps/${owner.appId}/affiliates/${affiliateId}/sign-in-links/send`;
    const refused = await api.call<{ code: string; detail: string }>('POST', path, { key: owner.key });
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_emails']);
    expect(refused.body.detail).toContain('The account has sent as many');
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(30);
    expect(seconds).toBeLessThanOrEqual(61);
    await api.sql`
      update emails set status = 'skipped', ended_at = now(), next_attempt_at = null, relay_at = null where app_id = ${owner.appId}`;
  });
});

describe('GET /apps/:appId/emails', () => {
  // @promise list-emails
  test('lists the mails, the latest first, with masked addresses and by creator and status', async () => {
    const affiliateId = await newAffiliate(api, app, { email: 'grace@example.com' });
    const { body: sent } = await send(affiliateId);
    const skipped = newId('email');
    await api.sql`
      insert into emails (id, app_id, affiliate_id, kind, subject_id, status, last_problem, created_at, ended_at, next_attempt_at, relay_at)
      values (${skipped}, ${app.appId}, ${affiliateId}, 'payout_sent', 'trf_1', 'skipped', 'No mail server is configured.',
              now() - interval '1 minute', now(), null, null)`;
    const { body } = await list(`?affiliateId=${affiliateId}`);
    expect(body.items.map(({ id, status }) => [id, status])).toEqual([
      [sent.emailId, 'queued'],
      [skipped, 'skipped'],
    ]);
    expect(body.items.map(({ maskedRecipient }) => maskedRecipient)).toEqual([
      'g•••@example.com',
      'g•••@example.com',
    ]);
    expect(JSON.stringify(body)).not.toContain('grace@');
    const bySkipped = await list(`?affiliateId=${affiliateId}&status=skipped`);
    expect(bySkipped.body.items.map(({ id }) => id)).toEqual([skipped]);
    const first = await list('?limit=1');
    expect(first.body.items.map(({ id }) => id)).toEqual([sent.emailId]);
    expect(first.body.nextCursor).not.toBeNull();
    expect((await list('?status=lost')).status).toBe(400);
  });
});
