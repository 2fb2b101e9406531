import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { claimEmails } from '../../src/db/emails.ts';
import { newId } from '../../src/db/new-id.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
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
    const counts = await api.sql.one`
      select (select count(*)::int from emails where affiliate_id = ${affiliateId}) as mails,
             (select count(*)::int from creator_sign_in_links where affiliate_id = ${affiliateId}) as links`;
    expect(counts).toEqual({ mails: 1, links: 1 });
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
    const { status, body } = await send(affiliateId);
    expect([status, body.code]).toEqual([429, 'too_many_emails']);
    const other = await newAffiliate(api, app, { email: 'other@example.com' });
    expect((await send(other)).status).toBe(202);
    await api.sql`update emails set relay_at = now() where affiliate_id = ${affiliateId}`;
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

describe('the relay of mails', () => {
  test('has a hundred in progress at most, each of them once, and goes on when they have ended', async () => {
    const other = await newApp(api);
    const affiliateId = await newAffiliate(api, other, { email: 'ada@example.com' });
    await api.sql`update emails set relay_at = now() + interval '1 day' where ended_at is null`;
    await api.sql`
      insert into emails (id, app_id, affiliate_id, kind, subject_id)
      select new_email_id(), ${other.appId}, ${affiliateId}, 'payout_sent', 'trf_' || n from generate_series(1, 130) n`;
    const claim = async () => await claimEmails(api.sql, 30_000, 50);
    const claimed = [await claim(), await claim(), await claim()];
    expect(claimed.map(({ length }) => length)).toEqual([50, 50, 0]);
    expect(new Set(claimed.flat().map(({ emailId }) => emailId)).size).toBe(100);
    await api.sql`
      update emails set status = 'skipped', ended_at = now(), next_attempt_at = null, relay_at = null
       where app_id = ${other.appId} and relay_at > now()`;
    expect(await claim()).toHaveLength(30);
  });
});
