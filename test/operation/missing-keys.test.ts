import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { ServiceSettings } from '../../src/compose/settings.ts';
import { workflowIdOf } from '../../src/domain/workflow-id.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer } from '../support/mail-server.ts';
import { RunCalls, waitForPayees } from '../support/payout-runs.ts';
import type { Run, RunFile } from '../support/payout-runs.ts';
import { countPollers } from '../support/pollers.ts';
import { bodyOf, revenuecatEvent } from '../support/provider-fixtures.ts';
import { findInTables } from '../support/search-everywhere.ts';
import { startTestService, TEST_SECRETS_KEY } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const own = TEST_SECRETS_KEY;
const next = Buffer.alloc(32, 3);
const wrong = Buffer.alloc(32, 4);
const idOf = (key: Buffer) => createSecretBox([key]).keyIds[0] ?? '';
const EMAIL = 'ann@example.com';

let mails: MailServer;
/** Serves the API, and has the key with which everything is encrypted at first. */
let service: TestService;
/** Processes beside it. */
let others: TestService[];

beforeAll(async () => {
  mails = await startMailServer();
});
afterAll(async () => {
  await mails.close();
});
beforeEach(async () => {
  others = [];
  service = await start([own], { role: 'api' });
});
afterEach(async () => {
  for (const other of others) await other.close();
  await service.close();
});

async function start(keys: readonly Buffer[], settings: Partial<ServiceSettings>): Promise<TestService> {
  const mail = { smtpUrl: mails.url, from: 'tributary@lantern.example', publicUrl: 'https://example.com' };
  const relay = { overdueMs: 30_000, pauseMs: 100 };
  return await startTestService({
    settings: { mail, relay, ...settings, secretBox: settings.secretBox ?? createSecretBox(keys) },
  });
}

/** Starts another process on the database of the service. */
async function startBeside(
  keys: readonly Buffer[],
  settings: Partial<ServiceSettings>,
): Promise<TestService> {
  const other = await start(keys, { databaseUrl: service.database.url, ...settings });
  others.push(other);
  return other;
}

/** Creates a founder with a creator who is paid by PayPal and has an entry that is due. */
async function setUp(): Promise<{ founder: Founder; runs: RunCalls }> {
  const founder = await setUpFounder(service);
  // Deliveries have no outcome to wait for.
  founder.sql = null;
  const runs = new RunCalls(founder);
  await runs.setPayee(founder.affiliateId, { method: 'paypal', recipient: { email: EMAIL } });
  await waitForPayees(service.database.url);
  await runs.add(founder.affiliateId, 200);
  return { founder, runs };
}

/** Queues the mail that invites the creator, and returns its id. */
async function invite(founder: Founder): Promise<string> {
  const creator = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
  await founder.ok('PATCH', creator, { email: EMAIL });
  return (await founder.ok<{ emailId: string }>('POST', `${creator}/sign-in-links/send`)).emailId;
}

const statusOfMail = async (id: string) =>
  (await service.sql.one<{ status: string }>`select status from emails where id = ${id}`).status;

async function filesOf(runs: RunCalls, run: Run): Promise<{ method: string; text: string }[]> {
  const files = await runs.list<RunFile & { method: string }>(run, 'files');
  return await Promise.all(
    files.map(async (file) => ({ method: file.method, text: await runs.download(run, file) })),
  );
}

/** Returns why the last attempt at the activity of a workflow failed; empty if none did. */
async function lastFailureOf(workflowId: string): Promise<string> {
  const found = await service.temporal.workflow
    .getHandle(workflowId)
    .describe()
    .catch(() => null);
  return found?.raw.pendingActivities?.[0]?.lastFailure?.message ?? '';
}

// @promise missing-key-waits
test('work that needs a key which a process lacks fails for now, and another process does it', async () => {
  const former = await startBeside([own], { role: 'worker' });
  const { founder, runs } = await setUp();
  const user = await founder.customer();
  const run = await runs.draft();
  // A process with a new first key, whose worker runs elsewhere.
  const api = await startBeside([next, own], { role: 'api' });
  await eventually('the payees have the new key', async () => {
    const rows = await service.sql`select from payees where encryption_key_id <> ${idOf(next)}`;
    return rows.length === 0;
  });
  founder.url = api.url;
  const emailId = await invite(founder);
  const { body } = await founder.revenuecat(bodyOf(revenuecatEvent({ userId: user, usd: 10 })));
  await runs.approve(run);
  const { id: deliveryId } = await service.sql.one<{ id: string }>`
    select id from deliveries where event_id = ${body.eventId}`;
  for (const [workflow, id] of [
    ['payout-run', run.id],
    ['email', emailId],
    ['delivery', deliveryId],
  ] as const) {
    await eventually(
      `${workflow} is tried in vain`,
      async () =>
        (await lastFailureOf(workflowIdOf(workflow, id))).includes(`SECRETS_KEY lacks the key ${idOf(next)}`),
      20_000,
    );
  }
  expect(await runs.read(run)).toMatchObject({ status: 'approved' });
  expect(await statusOfMail(emailId)).toBe('queued');
  expect(await service.sql`select from emails where id = ${emailId} and attempts = 0`).toHaveLength(1);

  await startBeside([next, own], { role: 'worker' });
  await former.stop();
  expect(await runs.settled(run)).toMatchObject({ status: 'settled', paidCount: 1 });
  expect(await filesOf(runs, run)).toEqual([{ method: 'paypal', text: expect.stringContaining(EMAIL) }]);
  await eventually('the mail is sent', async () => (await statusOfMail(emailId)) === 'sent');
  await eventually('the delivery has earned', async () => {
    const rows =
      await service.sql`select from deliveries where id = ${deliveryId} and commission_id is not null`;
    return rows.length === 1;
  });
});

// @promise missing-key-waits
test('a process that has never had all keys takes no work, and one with the keys does it', async () => {
  const { founder, runs } = await setUp();
  const lacking = await startBeside([wrong], {});
  expect(await lacking.ready()).toContainEqual(
    expect.objectContaining({ name: 'secrets', ok: false, optional: false }),
  );
  const emailId = await invite(founder);
  const run = await runs.draft();
  await runs.approve(run);
  const workflow = service.temporal.workflow.getHandle(workflowIdOf('payout-run', run.id));
  await eventually('the run has its workflow', async () =>
    workflow.describe().then(
      () => true,
      () => false,
    ),
  );
  expect(await countPollers(service.temporal, service.taskQueue)).toBe(0);

  await startBeside([own], { role: 'worker' });
  expect(await runs.settled(run)).toMatchObject({ paidCount: 1 });
  expect(await filesOf(runs, run)).toEqual([{ method: 'paypal', text: expect.stringContaining(EMAIL) }]);
  await eventually('the mail is sent', async () => (await statusOfMail(emailId)) === 'sent');
  expect(await countPollers(service.temporal, service.taskQueue)).toBeGreaterThan(0);
});

// @promise missing-key-waits
test('a process that has never had all keys stores nothing under its own, and what it refused succeeds at another one', async () => {
  const { founder } = await setUp();
  const lacking = await startBeside([wrong], { role: 'api' });
  const { url } = founder;
  const creator = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
  const entry = { category: 'bonus', amountCents: 100, reason: 'A test', externalId: 'retried' };
  const calls = [
    ['POST', `${creator}/entries`, entry, { 'idempotency-key': 'once' }],
    ['PUT', `/apps/${founder.app.id}/webhooks/adapty/secret`, { environment: 'production' }, {}],
    ['PUT', `${creator}/payee`, { method: 'paypal', recipient: { email: 'other@example.com' } }, {}],
    ['POST', `/apps/${founder.app.id}/identity-secret/rotate`, {}, {}],
  ] as const;
  founder.url = lacking.url;
  for (const [method, path, body, headers] of calls) {
    const { status, headers: sent } = await founder.call(method, path, { body, headers });
    expect([path, status, sent.get('retry-after')]).toEqual([path, 503, '60']);
  }
  // A redirect works all the same. Its clicks are matched by no address.
  const { linkSubdomain } = await founder.ok<{ linkSubdomain: string }>('GET', `/apps/${founder.app.id}`);
  expect(
    (await fetch(`${lacking.url}/l/${linkSubdomain}/${founder.slug}`, { redirect: 'manual' })).status,
  ).toBe(302);
  expect(await findInTables(service.sql, [idOf(wrong)])).toEqual([]);
  founder.url = url;
  const [, path, body, headers] = calls[0];
  expect((await founder.call('POST', path, { body, headers })).status).toBe(201);
});

// @promise missing-key-waits
test('a process that lacks a key of stored secrets makes none for erased persons, also in the database of a version without one', async () => {
  await setUp();
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`delete from erasure_key`;
  });
  await startBeside([wrong], { role: 'api' });
  expect(await service.sql`select from erasure_key`).toEqual([]);
  await startBeside([own], { role: 'api' });
  expect(await service.sql`select encryption_key_id from erasure_key`).toEqual([
    { encryptionKeyId: idOf(own) },
  ]);
});

// @promise missing-key-waits
test('a process whose operator accepts the loss of a key does its work without what cannot be read', async () => {
  const { founder, runs } = await setUp();
  const emailId = await invite(founder);
  const run = await runs.draft();
  await runs.approve(run);
  const secretBox = createSecretBox([wrong], { acceptsLostKeys: true });
  const accepting = await startBeside([], { secretBox });
  expect(await runs.settled(run)).toMatchObject({ paidCount: 1 });
  founder.url = accepting.url;
  const [file, ...more] = await filesOf(runs, run);
  expect([file?.method, more]).toEqual(['other', []]);
  expect(file?.text).not.toContain(EMAIL);
  await eventually('the mail has ended', async () => (await statusOfMail(emailId)) === 'failed');
});
