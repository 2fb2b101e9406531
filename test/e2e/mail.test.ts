import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Writable } from 'node:stream';
import { createLogger } from '../../src/config/logger.ts';
import { freePort } from '../../src/embedded/processes.ts';
import { newId } from '../../src/db/new-id.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { setOldAddress } from '../support/payee-codes.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer } from '../support/mail-server.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const FROM = 'Lantern <partners@lantern.example>';
const PUBLIC_URL = 'https://partners.example.com';
/** The waits between attempts in this test, ms. */
const RETRIES = [100, 100, 100];

let service: TestService;
let founder: Founder;
let server: MailServer;
let port: number;
/** What the service has logged. */
let log = '';

beforeAll(async () => {
  port = await freePort();
  const mail = { smtpUrl: `smtp://127.0.0.1:${port}`, from: FROM, publicUrl: PUBLIC_URL };
  const write = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      log += chunk.toString();
      done();
    },
  });
  service = await startTestService({
    logger: createLogger('trace', write),
    settings: { mail, emailRetryMs: RETRIES, relay: { overdueMs: 30_000, pauseMs: 100 } },
  });
});
afterAll(async () => {
  await service.close();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
  server = await startMailServer({ port });
});
afterEach(async () => {
  await server.close();
});

interface Mail {
  readonly id: string;
  readonly kind: string;
  readonly maskedRecipient: string | null;
  readonly status: string;
  readonly attempts: number;
  readonly lastProblem: string | null;
}
interface Invitation {
  readonly emailId: string;
  readonly maskedRecipient: string;
}

const creatorPath = () => `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
const setAddress = async (email: string | null) => await founder.ok('PATCH', creatorPath(), { email });
const invite = async () => await founder.ok<Invitation>('POST', `${creatorPath()}/sign-in-links/send`);
const mails = async () =>
  (await founder.ok<{ items: Mail[] }>('GET', `/apps/${founder.app.id}/emails`)).items;

async function eventuallyMail(status: string): Promise<Mail> {
  await eventually(`the mail is ${status}`, async () => (await mails())[0]?.status === status);
  const [mail] = await mails();
  if (mail === undefined) throw new Error('no mail');
  return mail;
}

describe('mails', () => {
  // @promise email-invitation, email-private
  test('an invitation arrives at the address of the creator, signs in, and leaves no address or token behind', async () => {
    await setAddress('ada@example.com');
    const sent = await invite();
    expect(sent.maskedRecipient).toBe('a•••@example.com');
    expect(await eventuallyMail('sent')).toMatchObject({
      id: sent.emailId,
      kind: 'invitation',
      attempts: 1,
      lastProblem: null,
      maskedRecipient: 'a•••@example.com',
    });
    const [mail] = server.received;
    expect(server.received).toHaveLength(1);
    expect(mail).toMatchObject({
      recipients: ['ada@example.com'],
      messageId: `<${sent.emailId}@lantern.example>`,
    });
    const [, token = ''] =
      /partners\.example\.com\/console\/creator\/#token=([\w-]{43})/.exec(mail?.text ?? '') ?? [];
    const signedIn = await founder.call('POST', '/creator/session', { body: { token }, key: null });
    expect(signedIn.status).toBe(200);

    const { history } = await fetchHistory(sent.emailId);
    const stored = await service.sql.one<{ email: string; audit: string }>`
      select (select jsonb_agg(e) from emails e where e.id = ${sent.emailId})::text as email,
             (select jsonb_agg(a) from audit_rows a where a.app_id = ${founder.app.id})::text as audit`;
    for (const text of [history, stored.email, stored.audit, log]) {
      expect(text).not.toContain('ada@example.com');
      expect(text).not.toContain(token);
    }
    expect(stored.email).toContain('"ciphertext": null');
  });

  // @promise email-retried
  test('a mail waits for a mail server that is away, and is sent when it is back', async () => {
    await setAddress('ada@example.com');
    await server.close();
    await invite();
    await eventually('an attempt has failed', async () => (await mails())[0]?.lastProblem != null);
    expect((await mails())[0]).toMatchObject({
      status: 'queued',
      lastProblem: 'The mail server refused the connection.',
    });
    server = await startMailServer({ port });
    await eventuallyMail('sent');
    expect(server.received).toHaveLength(1);
  });

  // @promise email-final
  test('a recipient that the server refuses permanently gets one attempt, and one that it refuses temporarily gets all', async () => {
    await setAddress('ada@example.com');
    server.refusesRecipients = 550;
    await invite();
    expect(await eventuallyMail('failed')).toMatchObject({
      attempts: 1,
      lastProblem: 'The mail server refused the recipient (550).',
    });
    server.refusesRecipients = 450;
    await invite();
    expect(await eventuallyMail('failed')).toMatchObject({
      attempts: RETRIES.length + 1,
      lastProblem: 'The mail server refused the recipient for now (450).',
    });
    expect(server.received).toEqual([]);
    expect(log).toContain('a mail was not sent');
    expect(log).not.toContain('ada@example.com');
  });

  // @promise email-address-now
  test('the address is that of the moment of sending, and without one nothing is sent', async () => {
    await setAddress('old@example.com');
    server.refusesRecipients = 450;
    await invite();
    await eventually('an attempt has failed', async () => (await mails())[0]?.lastProblem != null);
    await setAddress(null);
    expect(await eventuallyMail('skipped')).toMatchObject({
      maskedRecipient: null,
      lastProblem: 'The creator has no e-mail address.',
    });
    expect(server.received).toEqual([]);
  });

  test('a link that was revoked meanwhile is not mailed', async () => {
    await setAddress('ada@example.com');
    server.refusesRecipients = 450;
    await invite();
    await eventually('an attempt has failed', async () => (await mails())[0]?.lastProblem != null);
    await founder.ok('POST', `${creatorPath()}/sign-in-links/revoke`);
    expect(await eventuallyMail('failed')).toMatchObject({ lastProblem: 'The link was revoked.' });
  });

  // @promise email-payee-changed
  test('each version of the payee is mailed to the creator, with the masked recipient and when it counts', async () => {
    await setAddress('ada@example.com');
    const payee = { method: 'paypal', recipient: { email: 'money@example.org' } };
    const { countsFrom } = await founder.ok<{ countsFrom: number }>('PUT', `${creatorPath()}/payee`, payee);
    // The same again is no version.
    await founder.ok('PUT', `${creatorPath()}/payee`, payee);
    await eventuallyMail('sent');
    await founder.ok('DELETE', `${creatorPath()}/payees`);
    await eventually('two mails arrive', async () => server.received.length >= 2);
    const [first, second] = server.received.map(({ text = '' }) => text);
    expect(first).toContain('m•••@example.org');
    expect(first).not.toContain('money@');
    const day = new Date(countsFrom).toLocaleString('en-GB', {
      day: 'numeric',
      month: 'long',
      timeZone: 'UTC',
    });
    expect(first).toContain(`Counts from: ${day}`);
    expect(second).toContain('removed where your payouts go');
    expect((await mails()).map(({ kind }) => kind)).toEqual(['payee_changed', 'payee_changed']);
    expect(log).not.toContain('money@example.org');
  });

  // @promise email-payee-former
  test('a payee that is set while the address of the creator is removed is mailed to that address', async () => {
    await setAddress('ada@example.com');
    await setAddress(null);
    await founder.ok('PUT', `${creatorPath()}/payee`, {
      method: 'paypal',
      recipient: { email: 'money@example.org' },
    });
    await setAddress('ada@example.com');
    // Another one, for the address of the moment, is skipped.
    await eventually('a mail is sent', async () => (await mails()).some(({ status }) => status === 'sent'));
    expect(server.received.map(({ recipients }) => recipients)).toEqual([['ada@example.com']]);
    expect(server.received[0]?.text).toContain('m•••@example.org');
    const stored = await service.sql`
      select recipient from emails where app_id = ${founder.app.id} and status = 'sent'`;
    expect(stored).toEqual([{ recipient: 'a•••@example.com' }]);
  });

  // @promise email-code-payee, email-private
  test('the mail with a code has the whole recipient, and no row, history or log has it', async () => {
    await setOldAddress(service.sql, founder.affiliateId, 'ada@example.com');
    const { url } = await founder.ok<{ url: string }>('POST', `${creatorPath()}/sign-in-links`);
    const signedIn = await founder.call('POST', '/creator/session', {
      body: { token: url.split('#token=')[1] },
      key: null,
    });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const asked = await founder.call('POST', '/creator/payee-changes', {
      body: { method: 'paypal', recipient: { email: 'carol@mail.example' } },
      key: null,
      headers: { cookie, 'sec-fetch-site': 'same-origin' },
    });
    expect(asked.status).toBe(202);
    const { id } = await eventuallyMail('sent');
    const mail = server.received.find(({ recipients }) => recipients[0] === 'ada@example.com');
    expect(mail?.text).toContain('To: carol@mail.example');
    const { history } = await fetchHistory(id);
    const stored = await service.sql.one<{ rows: string }>`
      select concat((select jsonb_agg(e) from emails e where e.app_id = ${founder.app.id}),
                    (select jsonb_agg(c) from payee_changes c where c.app_id = ${founder.app.id}),
                    (select jsonb_agg(a) from audit_rows a where a.app_id = ${founder.app.id})) as rows`;
    for (const text of [history, stored.rows, log]) expect(text).not.toContain('carol@');
  });

  test('a creator without an address has no mail of a payee, and the list says why', async () => {
    const payee = { method: 'paypal', recipient: { email: 'money@example.org' } };
    await founder.ok('PUT', `${creatorPath()}/payee`, payee);
    expect((await mails())[0]).toMatchObject({
      kind: 'payee_changed',
      status: 'skipped',
      attempts: 0,
      lastProblem: 'The creator has no e-mail address.',
    });
  });

  // @promise email-payout-sent
  test('a payout that is stated as sent is mailed once, with its amount, also if the statement is corrected', async () => {
    await setAddress('ada@example.com');
    const entry = { amountCents: 1_234_56, category: 'bonus', reason: 'A test', externalId: 'bonus-1' };
    await founder.ok('POST', `${creatorPath()}/entries`, entry);
    const csv = await founder.exportCsv();
    const [, payoutId = ''] = /(pay_\w{26})/.exec(csv.text) ?? [];
    const state = async (name: string) =>
      await founder.ok('POST', `/apps/${founder.app.id}/payouts/${payoutId}/transfers`, { state: name });
    await state('sent');
    expect(await eventuallyMail('sent')).toMatchObject({ kind: 'payout_sent' });
    expect(server.received[0]?.subject).toContain('has sent your payout of $1,234.56');
    await state('withdrawn');
    await state('sent');
    expect(await mails()).toHaveLength(1);
    // Money that came back and was sent again is news.
    await state('returned');
    await state('sent');
    await eventually('the second mail is sent', async () => server.received.length === 2);
    expect(await mails()).toHaveLength(2);
  });

  test('a payout that was not sent after all is not mailed', async () => {
    await setAddress('ada@example.com');
    const entry = { amountCents: 500, category: 'bonus', reason: 'A test', externalId: 'bonus-2' };
    await founder.ok('POST', `${creatorPath()}/entries`, entry);
    const csv = await founder.exportCsv();
    const [, payoutId = ''] = /(pay_\w{26})/.exec(csv.text) ?? [];
    const state = async (name: string) =>
      await founder.ok('POST', `/apps/${founder.app.id}/payouts/${payoutId}/transfers`, { state: name });
    server.refusesRecipients = 450;
    await state('sent');
    await state('withdrawn');
    server.refusesRecipients = null;
    const mail = await eventuallyMail('failed');
    expect(mail.lastProblem).toBe('It was stated meanwhile that the money was not sent, or came back.');
    expect(server.received).toEqual([]);
    // Sent in the end, it is.
    await state('sent');
    await eventually('the mail arrives', async () => server.received.length === 1);
  });

  // @promise email-once
  test('a mail that was sent is never sent again, also if its workflow runs once more', async () => {
    await setAddress('ada@example.com');
    const { emailId } = await invite();
    await eventuallyMail('sent');
    const again = service.sql`
      update emails set status = 'queued', ended_at = null, next_attempt_at = now(), relay_at = now() where id = ${emailId}`;
    await expect(again).rejects.toThrow('does not change this way');
    await fetchHistory(emailId);
    await service.temporal.workflow.execute('email', {
      workflowId: `email:${emailId}`,
      taskQueue: `${service.taskQueue}-webhooks`,
      args: [{ emailId }],
    });
    expect(server.received).toHaveLength(1);
  });
});

async function fetchHistory(emailId: string): Promise<{ history: string }> {
  const handle = service.temporal.workflow.getHandle(`email:${emailId}`);
  await handle.result();
  return { history: JSON.stringify(await handle.fetchHistory()) };
}

// @promise email-skipped
test('without a mail server an invitation is refused with the way out, and a mail that was written is skipped', async () => {
  const plain = await startTestService({ settings: { relay: { overdueMs: 30_000, pauseMs: 100 } } });
  try {
    const other = await setUpFounder(plain);
    const base = `/apps/${other.app.id}`;
    await other.ok('PATCH', `${base}/affiliates/${other.affiliateId}`, { email: 'ada@example.com' });
    const refused = await other.call<{ code: string }>(
      'POST',
      `${base}/affiliates/${other.affiliateId}/sign-in-links/send`,
    );
    expect([refused.status, refused.body.code]).toEqual([409, 'mail_not_configured']);
    await plain.sql`
      insert into emails (id, app_id, affiliate_id, kind, subject_id)
      values (${newId('email')}, ${other.app.id}, ${other.affiliateId}, 'payout_sent', 'trf_test')`;
    const read = async () => (await other.ok<{ items: Mail[] }>('GET', `${base}/emails`)).items[0];
    await eventually('the mail is skipped', async () => (await read())?.status === 'skipped');
    expect(await read()).toMatchObject({ attempts: 0, lastProblem: 'No mail server is configured.' });
  } finally {
    await plain.close();
  }
});
