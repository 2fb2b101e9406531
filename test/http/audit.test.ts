import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createAffiliates } from '../../src/db/affiliates.ts';
import { createAccountKey, findAccountCaller } from '../../src/db/account-keys.ts';
import { settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { newId } from '../../src/db/new-id.ts';
import { createSignInLink } from '../../src/db/sessions.ts';
import type { AppId } from '../../src/domain/ids.ts';
import type { PayoutRunId } from '../../src/domain/ids.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routes } from '../../src/http/routes.ts';
import { newAffiliate, newApp, newLink, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, payOut } from '../support/ledger.ts';
import type { ApiResponse } from '../support/http-client.ts';
import { requestOf } from '../support/route-requests.ts';
import type { IdPlace } from '../support/route-requests.ts';
import { addPasskeyOf, Authenticator, optionsOf } from '../support/authenticator.ts';
import { newMember, signInManager, signInMember } from '../support/members.ts';
import type { Browser } from '../support/members.ts';
import { payeeCodeOf, setOldAddress } from '../support/payee-codes.ts';
import { settleRun } from '../support/settle-run.ts';
import { creatorLink, OWN_PAGE, signIn, signInCreator, signInOperator } from '../support/sessions.ts';
import { newTenant } from '../support/tenant.ts';
import type { Tenant } from '../support/tenant.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';

let api: TestApi;
let mine: Tenant;
let keyId: string;
let number = 0;

beforeAll(async () => {
  api = await startTestApi({
    sendsMail: true,
    workflows: {
      ...IDLE_WORKFLOWS,
      settlePayout: async ({ id }) => await settlePayoutRequest(api.sql, id),
    },
  });
  mine = await newTenant(api, 'mine');
  await setOldAddress(api.sql, mine.ids.affiliate, 'creator@example.com');
  keyId = (await findAccountCaller(api.sql, mine.key, api.clock.now))?.keyId ?? '';
});
afterAll(async () => {
  await api.close();
});

/** Routes that change something and write no audit row, with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  previewManualAttribution: 'It computes, and stores nothing.',
  previewPolicy: 'It computes, and stores nothing.',
  previewPayoutRunResults: 'It computes, and stores nothing.',
  testSlackUrl: 'it sends a test message, which is listed with its attempts',
  testWebhookEndpoint: 'it sends a test message, which is listed with its attempts',
  sendWebhookMessageAgain: 'it sends a message again, which is listed with its attempts',
  requestPayeeChange: 'it mails a code, which is listed as a mail; the payee that it sets has an audit row',
  mailSignInLink: 'it mails a link, whose use has an audit row; anybody can ask for it',
  mailRaisingLink: 'it mails a link, whose use has an audit row',
  createPasskeySignIn:
    'it makes a challenge, and stores nothing; the session that it begins has an audit row',
  createPasskeyRaise: 'it makes a challenge, and stores nothing',
  createPasskeyCreation: 'it makes a challenge, and stores nothing',
  signOutOperator: 'sessions of the operator belong to no account',
  runSelfTest: 'it stores sandbox test events, which are listed as deliveries, and changes no setting',
};

interface StoredRow {
  readonly actorKind: string;
  readonly keyId: string | null;
  readonly sessionId: string | null;
  readonly affiliateId: string | null;
  readonly action: string;
  readonly objectKind: string;
  readonly objectId: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown>;
}

/** The rows that a request has written. */
async function rowsOf({ headers }: Pick<ApiResponse, 'headers'>): Promise<StoredRow[]> {
  return await api.sql<StoredRow>`
    select actor_kind, key_id, session_id, affiliate_id, action, object_kind, object_id, before, after
      from audit_rows where request_id = ${headers.get('x-request-id')} order by changed_at, id`;
}

/** The rows of an object, the first change first. */
async function rowsAbout(objectId: string): Promise<StoredRow[]> {
  return await api.sql<StoredRow>`
    select actor_kind, key_id, session_id, affiliate_id, action, object_kind, object_id, before, after
      from audit_rows where object_id = ${objectId} order by changed_at, id`;
}

interface Change {
  readonly path?: string;
  readonly body?: unknown;
}

/** Returns that the request itself needs no change once something exists that it changes. */
async function after(work: Promise<unknown>): Promise<Change> {
  await work;
  return {};
}

/** Drafts a payout run of $5.00 in an app of its own. */
async function newRun(): Promise<{ readonly path: string; readonly appId: string; readonly runId: string }> {
  const app = await newApp(api, mine, { name: 'Runs' });
  const at = api.clock.now - DAY_MS;
  const affiliateId = await newAffiliate(api, app);
  await insertEarning(api, app, { affiliateId, amountCents: 500, occurredAt: at, dueAt: at, matured: true });
  const path = `/apps/${app.appId}/payout-runs`;
  const body = { withoutPayee: 'include' };
  const run = await api.call<{ id: string }>('POST', path, { key: mine.key, body });
  return { path: `${path}/${run.body.id}`, appId: app.appId, runId: run.body.id };
}

/** Pays a payout run of one creator. */
async function newSettledRun(): Promise<{ readonly path: string; readonly itemId: string }> {
  const { path, runId } = await newRun();
  await api.call('POST', `${path}/approve`, { key: mine.key, body: { expectedTotalCents: 500 } });
  await settleRun(api.sql, runId as PayoutRunId);
  const { id } = await api.sql.one<{ id: string }>`select id from payout_run_items where run_id = ${runId}`;
  return { path, itemId: id };
}

/** Makes the request of a route one that changes something. */
const CHANGES: Readonly<Record<string, () => Promise<Change>>> = {
  updateWebhookEndpoint: async () => ({ body: { description: `An endpoint ${(number += 1)}` } }),
  deleteWebhookEndpoint: async () => {
    const path = `/apps/${mine.appId}/webhook-endpoints`;
    const body = { url: 'https://example.com/hook', eventTypes: ['payout.created'] };
    const created = await api.call<{ id: string }>('POST', path, { key: mine.key, body });
    return { path: `${path}/${created.body.id}` };
  },
  removeSlackUrl: async () => {
    const body = { url: 'https://hooks.slack.com/services/audit' };
    return await after(api.call('PUT', `/apps/${mine.appId}/slack-url`, { key: mine.key, body }));
  },
  createAffiliate: async () => ({ body: { name: 'A creator' } }),
  updateAffiliate: async () => ({ body: { name: `Creator ${(number += 1)}` } }),
  addCode: async () => ({ body: { namespace: 'attribute', value: `CODE-${(number += 1)}` } }),
  deactivateCode: async () => {
    const body = { namespace: 'attribute', value: `CODE-${(number += 1)}` };
    const path = `/apps/${mine.appId}/affiliates/${mine.ids.affiliate}/codes`;
    const added = await api.call<{ id: string }>('POST', path, { key: mine.key, body });
    return { path: `/apps/${mine.appId}/codes/${added.body.id}/deactivate` };
  },
  addPayoutBlock: async () => ({
    path: `/apps/${mine.appId}/affiliates/${await newAffiliate(api, mine)}/payout-blocks`,
    body: { state: 'blocked', reason: 'A test' },
  }),
  approvePayoutRun: async () => ({
    path: `${(await newRun()).path}/approve`,
    body: { expectedTotalCents: 500 },
  }),
  cancelPayoutRun: async () => ({ path: `${(await newRun()).path}/cancel` }),
  addPayoutRunTransfers: async () => ({
    path: `${(await newSettledRun()).path}/transfers`,
    body: { state: 'sent' },
  }),
  addPayoutRunResults: async () => {
    const { path, itemId } = await newSettledRun();
    const csv = `Key,Status\n${itemId},Sent`;
    return { path: `${path}/results`, body: { csv, expected: { sentCount: 1, returnedCount: 0 } } };
  },
  downloadPayoutRunFile: async () => {
    const { path, appId, runId } = await newRun();
    const id = newId('payoutFile');
    const { ciphertext, encryptionKeyId } = createSecretBox([TEST_KEY]).encrypt(
      'a,b',
      `${appId}:payout-file:${id}`,
    );
    await api.sql`
      insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256, ciphertext, encryption_key_id)
      values (${id}, ${appId}, ${runId}, 'other', 1, 1, 500, sha256('a,b'), ${ciphertext}, ${encryptionKeyId})`;
    return { path: `${path}/files/${id}/download` };
  },
  setPayee: async () => ({
    body: { method: 'other', recipient: { name: 'Ada', reference: `Account ${(number += 1)}` } },
  }),
  erasePayees: async () => {
    const path = `/apps/${mine.appId}/affiliates/${await newAffiliate(api, mine)}`;
    const body = { method: 'paypal', recipient: { email: 'ada@example.com' } };
    await api.call('PUT', `${path}/payee`, { key: mine.key, body });
    return { path: `${path}/payees` };
  },
  addManualAttribution: async () => ({
    body: { customerUserId: `given-${(number += 1)}`, affiliateId: mine.ids.affiliate, reason: 'A test' },
  }),
  updatePolicy: async () => ({ body: { name: `Policy ${(number += 1)}` } }),
  renameGroup: async () => ({ body: { name: `Group ${(number += 1)}` } }),
  updateLink: async () => ({ body: { campaign: `campaign ${(number += 1)}` } }),
  updateSettings: async () => ({ body: { name: `App ${(number += 1)}` } }),
  revokeCreatorSignInLinks: async () => await after(creatorLink(api, mine, mine.ids.affiliate)),
  eraseUser: async () => ({ path: `/apps/${mine.appId}/users/person-${(number += 1)}` }),
  exportPayout: async () => {
    const at = api.clock.now - DAY_MS;
    const row = {
      affiliateId: mine.ids.affiliate,
      amountCents: 100,
      occurredAt: at,
      dueAt: at,
      matured: true,
    };
    await insertEarning(api, mine, row);
    return { body: {} };
  },
  addPayoutTransfer: async () => {
    await CHANGES['exportPayout']?.();
    await payOut(api, mine, mine.ids.affiliate);
    const { id } = await api.sql.one<{ id: string }>`
      select id from payouts where app_id = ${mine.appId} order by created_at desc, id desc limit 1`;
    return {
      path: `/apps/${mine.appId}/payouts/${id}/transfers`,
      body: { state: 'sent', note: 'Sent today.' },
    };
  },
  undoEntry: async () => {
    const path = `/apps/${mine.appId}/affiliates/${mine.ids.affiliate}/entries`;
    const body = {
      amountCents: 1,
      category: 'other',
      reason: 'A test',
      externalId: `entry-${(number += 1)}`,
    };
    const { body: entry } = await api.call<{ id: string }>('POST', path, { key: mine.key, body });
    return { path: `/apps/${mine.appId}/entries/${entry.id}/undo` };
  },
  createReprocessRun: async () => {
    // An app has one run at a time.
    await api.sql`update reprocess_runs set finished_at = now() where app_id = ${mine.appId} and finished_at is null`;
    return { body: { from: api.clock.now - DAY_MS } };
  },
  cancelReprocessRun: async () => {
    const path = `/apps/${mine.appId}/reprocess-runs`;
    const sent = { key: mine.key, ...(await CHANGES['createReprocessRun']?.()) };
    const { body } = await api.call<{ id: string }>('POST', path, sent);
    return { path: `${path}/${body.id}/cancel` };
  },
  raiseSession: async () => {
    api.clock.now += 1_000;
    return { body: { key: mine.key } };
  },
  endSession: async () => {
    const other = await signIn(api, mine.key);
    return { path: `/sessions/${await sessionOf(other)}/end` };
  },
  endOtherSessions: async () => await after(signIn(api, mine.key)),
  rotateAccountKey: async () => ({ path: `/accounts/${mine.accountId}/keys/${await anotherKey()}/rotate` }),
  revokeAccountKey: async () => ({ path: `/accounts/${mine.accountId}/keys/${await anotherKey()}/revoke` }),
  inviteMember: async () => ({
    body: { email: `member${(number += 1)}@example.com`, name: 'A member', role: 'admin' },
  }),
  updateMember: async () => ({ body: { name: `Member ${(number += 1)}` } }),
  removeMember: async () => {
    const { id } = await newMember(api, mine, await signInManager(api, mine), 'analyst');
    return { path: `/accounts/${mine.accountId}/members/${id}/remove` };
  },
  addPasskey: async () => ({
    body: { name: 'Laptop', ...new Authenticator().create(await optionsOf(api, 'options', memberBrowser)) },
  }),
  revokePasskey: async () => ({
    path: `/session/passkeys/${await addPasskeyOf(api, new Authenticator(), memberBrowser)}/revoke`,
  }),
  endCreatorSession: async () => {
    const other = await signInCreator(api, mine, mine.ids.affiliate);
    return { path: `/creator/sessions/${await creatorSessionOf(other)}/end` };
  },
  confirmPayeeChange: async () => {
    const headers = await signInCreator(api, mine, mine.ids.affiliate);
    const recipient = { email: 'money@example.com' };
    const body = { method: 'paypal', recipient };
    const wanted = await api.call<{ id: string }>('POST', '/creator/payee-changes', { body, headers });
    const code = await payeeCodeOf(api.sql, wanted.body.id);
    return { path: `/creator/payee-changes/${wanted.body.id}/confirm`, body: { code } };
  },
  endOtherCreatorSessions: async () => await after(signInCreator(api, mine, mine.ids.affiliate)),
};

async function anotherKey(): Promise<string> {
  return (await createAccountKey(api.sql, mine.accountId, PERMISSIONS)).id;
}

async function sessionOf(headers: Readonly<Record<string, string>>): Promise<string> {
  const { body } = await api.call<{ session: { id: string } | null }>('GET', '/session', { headers });
  return body.session?.id ?? '';
}

async function creatorSessionOf(headers: Readonly<Record<string, string>>): Promise<string> {
  const { body } = await api.call<{ session: { id: string } | null }>('GET', '/creator/session', { headers });
  return body.session?.id ?? '';
}

/** The session of the member that `callerOf` has signed in last. */
let memberBrowser: Browser;

type CallerKind = 'key' | 'session' | 'manager' | 'member' | 'creator' | 'operator';

/** Who calls, and what the audit row says of it. */
async function callerOf(kind: CallerKind) {
  switch (kind) {
    case 'key':
      return { options: { key: mine.key }, actor: { actorKind: 'key', keyId, sessionId: null } };
    case 'session': {
      const headers = await signIn(api, mine.key);
      await api.call('POST', '/session/raise', { body: { key: mine.key }, headers });
      return {
        options: { headers },
        actor: { actorKind: 'session', keyId, sessionId: await sessionOf(headers) },
      };
    }
    case 'manager': {
      const headers = await signInManager(api, mine);
      const held = await api.sql.one<{ id: string }>`
        select id from account_keys where account_id = ${mine.accountId} and is_console`;
      return {
        options: { headers },
        actor: { actorKind: 'session', keyId: held.id, sessionId: await sessionOf(headers) },
      };
    }
    case 'member': {
      const by = await signInManager(api, mine);
      const member = await newMember(api, mine, by, 'analyst');
      const headers = (memberBrowser = await signInMember(api, member, by));
      return {
        options: { headers },
        actor: { actorKind: 'session', keyId: member.keyId, sessionId: await sessionOf(headers) },
      };
    }
    case 'creator': {
      const headers = await signInCreator(api, mine, mine.ids.affiliate);
      const sessionId = await creatorSessionOf(headers);
      return {
        options: { headers },
        actor: { actorKind: 'creator', keyId: null, sessionId, affiliateId: mine.ids.affiliate },
      };
    }
    case 'operator': {
      const headers = await signInOperator(api);
      const { body } = await api.call<{ session: { id: string } }>('GET', '/operator/session', { headers });
      return {
        options: { headers },
        actor: { actorKind: 'operator', keyId: null, sessionId: body.session.id },
      };
    }
  }
}

const KINDS: Readonly<Record<Route['auth'], readonly CallerKind[]>> = {
  account: ['key', 'session'],
  session: ['session'],
  creator: ['creator'],
  operator: ['operator'],
  // Clicks, installs and webhooks are facts and no changes. Sign-ins have a test of their own.
  sdk: [],
  none: [],
  provider: [],
};

function kindsOf({ path, auth }: Route): readonly CallerKind[] {
  if (path.includes('/members')) return ['manager'];
  return path.includes('/passkeys') ? ['member'] : KINDS[auth];
}

const changing = routes
  .filter(({ method, operationId }) => method !== 'GET' && EXEMPT[operationId] === undefined)
  .flatMap((route) => kindsOf(route).map((kind) => [`${route.method} ${route.path}`, kind, route] as const));

describe('every route that changes something', () => {
  const answers: string[] = [];

  // @promise audit-every-change
  test.each(changing)('%s of a %s writes an audit row that names its caller', async (_, kind, route) => {
    const { options, actor } = await callerOf(kind);
    const { path, body } = requestOf(route, ({ kind: of }: IdPlace) => mine.ids[of]);
    const change = await CHANGES[route.operationId]?.();
    const sent = { ...options, body: change?.body ?? body };
    const response = await api.call(route.method, change?.path ?? path, sent);
    const { status } = response;
    expect(status === route.response.status ? status : response.text).toBe(route.response.status);
    answers.push(response.text);
    const rows = await rowsOf(response);
    expect(rows).not.toEqual([]);
    for (const row of rows) expect(row).toMatchObject(actor);
    const others = await api.sql<{ accountId: string }>`
      select account_id from audit_rows
       where request_id = ${response.headers.get('x-request-id')} and account_id <> ${mine.accountId}`;
    expect(others).toEqual([]);
  });

  test('every exemption is a route that changes something, and has a reason', () => {
    for (const [operationId, reason] of Object.entries(EXEMPT)) {
      expect(routes.find((route) => route.operationId === operationId)?.method).not.toBe('GET');
      expect(reason).toMatch(/./);
    }
  });

  // @promise audit-no-secrets
  test('no audit row has a key, a secret, a token, a hash of one, or an e-mail address', async () => {
    const texts = answers.flatMap((text) =>
      [...text.matchAll(/"(?:key|sdkKey|secret)":"([^"]+)"|token=([\w-]+)/g)].map(
        ([, value, token]) => value ?? token ?? '',
      ),
    );
    expect(texts.length).toBeGreaterThan(8);
    const rows = await api.sql<{ line: string }>`select t::text as line from audit_rows t`;
    const all = rows.map(({ line }) => line).join('\n');
    for (const text of [...texts, mine.key, mine.sdkKey]) {
      const hash = createHash('sha256').update(text).digest();
      for (const form of [text, hash.toString('hex'), hash.toString('base64'), hash.toString('base64url')])
        expect(all).not.toContain(form);
    }
    expect(all).not.toMatch(/[0-9a-f]{64}|\\x[0-9a-f]{8}|@/);
  });
});

describe('what an audit row says', () => {
  // @promise audit-no-row-without-change
  test('a change of settings has the fields that changed, before and after, and a change of nothing has no row', async () => {
    const app = await newApp(api, mine, { name: 'Before', commissionRateBps: 2000 });
    const path = `/apps/${app.appId}/settings`;
    const body = {
      name: 'After',
      commissionRateBps: 2500,
      holdPeriodDays: 30,
      iosAppIds: ['ABCDE12345.com.example'],
    };
    const changed = await api.call('PATCH', path, { key: mine.key, body });
    expect(await rowsOf(changed)).toMatchObject([
      {
        action: 'changed',
        objectKind: 'app',
        objectId: app.appId,
        before: { name: 'Before', commissionRateBps: 2000, iosAppIds: [] },
        after: { name: 'After', commissionRateBps: 2500, iosAppIds: ['ABCDE12345.com.example'] },
      },
    ]);
    const [row] = await rowsOf(changed);
    expect(Object.keys(row?.before ?? {}).toSorted()).toEqual(Object.keys(row?.after ?? {}).toSorted());
    expect(await rowsOf(await api.call('PATCH', path, { key: mine.key, body }))).toEqual([]);
  });

  test('an e-mail address that changed is named as a field, and its value is not kept', async () => {
    const id = await newAffiliate(api, mine, { email: 'first@example.com' });
    const path = `/apps/${mine.appId}/affiliates/${id}`;
    const set = await api.call('PATCH', path, { key: mine.key, body: { email: 'second@example.com' } });
    const cleared = await api.call('PATCH', path, { key: mine.key, body: { email: null } });
    const kept = '(not kept)';
    expect(await rowsOf(set)).toMatchObject([{ before: { email: kept }, after: { email: kept } }]);
    expect(await rowsOf(cleared)).toMatchObject([{ before: { email: kept }, after: { email: null } }]);
  });

  // @promise audit-payout-requester
  test('a payout that the workflow settled names the session and the key that asked for it', async () => {
    const payer = await createAccountKey(api.sql, mine.accountId, PERMISSIONS);
    const reader = await createAccountKey(api.sql, mine.accountId, ['read']);
    const headers = await signIn(api, reader.key);
    await api.call('POST', '/session/raise', { body: { key: payer.key }, headers });
    const affiliateId = await newAffiliate(api, mine);
    const at = api.clock.now - DAY_MS;
    await insertEarning(api, mine, {
      affiliateId,
      amountCents: 700,
      occurredAt: at,
      dueAt: at,
      matured: true,
    });
    const path = `/apps/${mine.appId}/affiliates/${affiliateId}/payouts/export`;
    const paid = await api.call('POST', path, { headers, body: {} });
    const payoutId = paid.headers.get('x-payout-id') ?? '';
    const expected = {
      actorKind: 'session',
      keyId: payer.id,
      sessionId: await sessionOf(headers),
      action: 'created',
      objectKind: 'payout',
      after: { affiliateId, itemCount: 1, totalCents: 700 },
    };
    expect(await rowsAbout(payoutId)).toMatchObject([expected]);
    expect(await rowsOf(paid)).toMatchObject([{ ...expected, objectId: payoutId }]);
  });

  // @promise audit-payout-by-body
  test('a change whose body needs the permission to pay names the key that pays, any other one that of the session', async () => {
    const app = await newApp(api, mine);
    const payer = await createAccountKey(api.sql, app.accountId, PERMISSIONS);
    const writer = await createAccountKey(api.sql, app.accountId, ['read', 'write']);
    const headers = await signIn(api, writer.key);
    await api.call('POST', '/session/raise', { body: { key: payer.key }, headers });
    const affiliateId = await newAffiliate(api, app);
    const keysOf = async (method: 'POST' | 'PUT' | 'PATCH', path: string, body: object) => {
      const sent = await api.call<{ id: string }>(method, `/apps/${app.appId}/${path}`, { headers, body });
      expect([sent.status, sent.text]).toEqual([method === 'POST' ? 201 : 200, sent.text]);
      return { id: sent.body.id, keys: new Set((await rowsOf(sent)).map((row) => row.keyId)) };
    };
    const above = { base: 'gross', rules: [{ flatCents: 500, aboveBase: true }] };
    const [policy, group] = [
      await keysOf('POST', 'policies', { name: 'Above' }),
      await keysOf('POST', 'groups', { name: 'VIPs' }),
    ];
    const [terms, given] = [{ policyId: policy.id }, { affiliateId, reason: 'Told us' }];
    const calls = [
      ['POST', `policies/${policy.id}/versions`, { base: 'gross', rules: [{ percentBps: 500 }] }, writer],
      ['PUT', `groups/${group.id}/policy-assignment`, terms, writer],
      ['POST', `policies/${policy.id}/versions`, above, payer],
      ['PUT', 'policy-assignment', terms, payer],
      ['PUT', `groups/${group.id}/policy-assignment`, terms, payer],
      ['PUT', `affiliates/${affiliateId}/policy-assignment`, terms, payer],
      ['PUT', `affiliates/${affiliateId}/group`, { groupId: group.id }, payer],
      ['PATCH', `affiliates/${affiliateId}`, { name: 'Ann' }, writer],
      // The right to pay confirms the address.
      ['PATCH', `affiliates/${affiliateId}`, { email: 'ann@example.com' }, payer],
      ['POST', 'manual-attributions', { ...given, customerUserId: 'user-1' }, writer],
      [
        'POST',
        'manual-attributions',
        { ...given, customerUserId: 'user-2', from: api.clock.now - DAY_MS, expectedCents: 0 },
        payer,
      ],
    ] as const;
    for (const [method, path, body, key] of calls)
      expect([path, (await keysOf(method, path, body)).keys]).toEqual([path, new Set([key.id])]);
  });

  test('a sign-in names its own session, and a link that creates the account names who opens it', async () => {
    const headers = { ...OWN_PAGE };
    const signedIn = await api.call<{ id: string }>('POST', '/session', { body: { key: mine.key }, headers });
    expect(await rowsOf(signedIn)).toMatchObject([
      { actorKind: 'session', keyId, sessionId: signedIn.body.id, action: 'started', objectKind: 'session' },
    ]);
    const token = await createSignInLink(api.sql, null, { now: api.clock.now, validMs: DAY_MS });
    const first = await api.call('POST', '/session', { body: { token }, headers });
    expect(
      (await rowsOf(first)).map((row) => `${row.actorKind} ${row.action} ${row.objectKind}`).toSorted(),
    ).toEqual(['session started session', 'sign_in created account', 'sign_in created account_key']);
  });

  test('a rotation says which key was replaced and which is new', async () => {
    const old = await anotherKey();
    const { headers } = (await callerOf('session')).options as { headers: Record<string, string> };
    const path = `/accounts/${mine.accountId}/keys/${old}/rotate`;
    const rotated = await api.call<{ id: string; previousKeyExpiresAt: number }>('POST', path, { headers });
    expect(await rowsOf(rotated)).toHaveLength(2);
    expect((await rowsAbout(old)).at(-1)).toMatchObject({
      action: 'replaced',
      before: { expiresAt: null },
      after: { expiresAt: rotated.body.previousKeyExpiresAt },
    });
    expect(await rowsAbout(rotated.body.id)).toMatchObject([
      { action: 'created', before: null, after: { permissions: [...PERMISSIONS] } },
    ]);
  });

  // @promise audit-erasure-names-nobody
  test('the erasure of a person writes a row that does not have the user id', async () => {
    const user = `user-${randomUUID()}`;
    const path = `/apps/${mine.appId}/users/${user}`;
    const erased = await api.call<{ erasureId: string }>('DELETE', path, { key: mine.key });
    expect(await rowsOf(erased)).toMatchObject([
      { action: 'requested', objectKind: 'erasure', objectId: erased.body.erasureId, after: {} },
    ]);
    const again = await api.call('DELETE', path, { key: mine.key });
    expect(await rowsOf(again)).toEqual([]);
    const found = await api.sql`select from audit_rows t where t::text like ${`%${user}%`}`;
    expect(found).toEqual([]);
  });
});

describe('the table of audit rows', () => {
  // @promise audit-append-only
  test('the database refuses to change, delete and empty audit rows', async () => {
    await expect(api.sql`update audit_rows set actor_label = 'someone else'`).rejects.toThrow(
      /cannot be changed/,
    );
    await expect(api.sql`delete from audit_rows`).rejects.toThrow(/cannot be changed/);
    await expect(api.sql`truncate audit_rows`).rejects.toThrow(/cannot be changed/);
  });

  test('a statement that names nobody is booked on the database, also right after a named one on the same connection', async () => {
    const id = await newAffiliate(api, mine);
    for (let round = 0; round < 8; round += 1) {
      await api.call('PATCH', `/apps/${mine.appId}/affiliates/${id}`, {
        key: mine.key,
        body: { name: `Named ${round}` },
      });
      await api.sql`update affiliates set name = ${`By hand ${round}`} where id = ${id}`;
    }
    const kinds = (await rowsAbout(id)).map(({ actorKind }) => actorKind);
    expect(kinds).toEqual(['key', ...Array.from({ length: 8 }, () => ['key', 'database']).flat()]);
  });

  // @promise audit-once
  test('a statement that is sent again, and a call with the same idempotency key, write one row', async () => {
    const affiliate = {
      id: newId('affiliate'),
      name: 'Sent twice',
      email: null,
      defaultCommissionRateBps: null,
      externalId: null,
      note: null,
      tags: [],
    };
    const sql = api.sql.actingAs({ kind: 'command_line' });
    for (let round = 0; round < 2; round += 1) await createAffiliates(sql, mine.appId as AppId, [affiliate]);
    expect(await rowsAbout(affiliate.id)).toMatchObject([{ actorKind: 'command_line', action: 'created' }]);

    const headers = { 'idempotency-key': randomUUID() };
    const sent = { key: mine.key, headers, body: { name: 'Asked twice' } };
    const path = `/apps/${mine.appId}/affiliates`;
    const [first, again] = [
      await api.call<{ id: string }>('POST', path, sent),
      await api.call('POST', path, sent),
    ];
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await rowsOf(again)).toEqual([]);
    expect(await rowsAbout(first.body.id)).toHaveLength(1);
  });

  test('a change that is refused leaves no audit row', async () => {
    const { linkSubdomain } = await newApp(api, mine);
    const before = await rowsAbout(mine.appId);
    const refused = await api.call('PATCH', `/apps/${mine.appId}/settings`, {
      key: mine.key,
      body: { linkSubdomain, name: 'Refused' },
    });
    expect(refused.status).toBe(409);
    expect(await rowsAbout(mine.appId)).toEqual(before);
  });
});

interface Listed {
  readonly items: readonly {
    readonly id: string;
    readonly changedAt: number;
    readonly appId: string | null;
    readonly actor: { readonly kind: string; readonly keyId: string | null; readonly label: string | null };
    readonly action: string;
    readonly object: { readonly kind: string; readonly id: string; readonly label: string | null };
    readonly before: Record<string, unknown> | null;
    readonly after: Record<string, unknown>;
    readonly names: Record<string, string>;
    readonly terms?: object;
  }[];
  readonly nextCursor: string | null;
}

describe('GET /accounts/:accountId/audit', () => {
  let owner: TestApp;
  let headers: Record<string, string>;
  let affiliateId: string;
  const list = async (query: Record<string, string> = {}, more: Record<string, string> = {}) =>
    await api.call<Listed>(
      'GET',
      `/accounts/${owner.accountId}/audit?${new URLSearchParams(query).toString()}`,
      {
        headers: { ...headers, ...more },
      },
    );

  beforeAll(async () => {
    owner = await newApp(api, undefined, { name: 'Audited' });
    affiliateId = await newAffiliate(api, owner, { name: 'First creator' });
    await newLink(api, owner, affiliateId, { slug: 'audited' });
    await newApp(api, owner, { name: 'Other' });
    headers = await signIn(api, owner.key);
  });

  // @promise get-accounts-accountid-audit
  test('it lists the changes of the account and its apps, the last first, with who made them', async () => {
    const { body } = await list();
    expect(body.items.map(({ action, object }) => `${action} ${object.kind}`)).toEqual([
      'started session',
      expect.stringMatching(/^created (sdk_key|app)$/),
      expect.stringMatching(/^created (sdk_key|app)$/),
      'created link',
      'created affiliate',
      expect.stringMatching(/^created (sdk_key|app)$/),
      expect.stringMatching(/^created (sdk_key|app)$/),
      'created account_key',
      'created account',
    ]);
    expect(body.items.find(({ object }) => object.kind === 'affiliate')).toMatchObject({
      appId: owner.appId,
      actor: { kind: 'key', label: expect.stringMatching(/^tri_sk_live_/) },
      object: { id: affiliateId, label: 'First creator' },
      before: null,
      after: { name: 'First creator', status: 'active' },
      names: {},
    });
    expect(body.items.find(({ object }) => object.kind === 'link')?.names).toEqual({
      [affiliateId]: 'First creator',
    });
  });

  test('what a change has only the id of has its present name beside it, and nothing of another account has one', async () => {
    const creator = await newAffiliate(api, mine, { name: 'Before' });
    await newLink(api, mine, creator, { campaign: affiliateId });
    await api.call('PATCH', `/apps/${mine.appId}/affiliates/${creator}`, {
      key: mine.key,
      body: { name: 'After' },
    });
    const { path = '', body: sent } = (await CHANGES['addPayoutTransfer']?.()) ?? {};
    await api.call('POST', path, { key: mine.key, body: sent });
    const session = await signIn(api, mine.key);
    await api.call('POST', '/session/raise', { body: { key: mine.key }, headers: session });
    const latest = async (query: string) => {
      const at = `/accounts/${mine.accountId}/audit?limit=1&${query}`;
      return (await api.call<Listed>('GET', at, { headers: session })).body.items[0];
    };
    const { name } = await api.sql.one<{ name: string }>`
      select name from affiliates where id = ${mine.ids.affiliate}`;
    const transfer = await latest('objectKind=payout_transfer');
    expect(transfer?.names).toEqual({ [String(transfer?.after['payoutId'])]: name });
    const raised = await latest('action=raised');
    expect(raised?.names).toEqual({ [keyId]: expect.stringMatching(/^tri_sk_live_/) });
    const link = await latest('objectKind=link');
    expect(link?.after).toMatchObject({ affiliateId: creator, campaign: affiliateId });
    expect(link?.names).toEqual({ [creator]: 'After' });
    const { group, policy } = mine.ids;
    await api.call('PUT', `/apps/${mine.appId}/groups/${group}/policy-assignment`, {
      key: mine.key,
      body: { policyId: policy },
    });
    const assigned = await latest('objectKind=policy_assignment');
    expect(assigned?.names).toEqual({ [group]: expect.any(String), [policy]: expect.any(String) });
  });

  // @promise audit-terms
  test('a new version of a policy has what it says in sentences, and the version before it', async () => {
    const app = await newApp(api, mine);
    const at = `/apps/${app.appId}/policies`;
    const policy = await api.call<{ id: string }>('POST', at, { key: mine.key, body: { name: 'Standard' } });
    for (const percentBps of [2_000, 3_000])
      await api.call('POST', `${at}/${policy.body.id}/versions`, {
        key: mine.key,
        body: { base: 'gross', rules: [{ percentBps }] },
      });
    const session = await signIn(api, mine.key);
    const path = `/accounts/${mine.accountId}/audit?appId=${app.appId}`;
    const { items } = (await api.call<Listed>('GET', path, { headers: session })).body;
    const [first, second] = ['20 %', '30 %'].map((rate) => ({
      terms: { base: 'gross', rules: [{ percentBps: Number.parseInt(rate, 10) * 100 }] },
      sentences: [`${rate} of the price for each payment.`],
    }));
    const versions = items.filter(({ object }) => object.kind === 'policy_version');
    expect(versions.map(({ terms }) => terms)).toMatchObject([
      { before: first, after: second },
      { before: null, after: first },
    ]);
    for (const row of items.filter(({ object }) => object.kind !== 'policy_version'))
      expect(row).not.toHaveProperty('terms');
  });

  test.each<[string, () => Record<string, string>, number]>([
    ['an app', () => ({ appId: owner.appId }), 4],
    ['an actor', () => ({ actorKind: 'session' }), 1],
    ['an action', () => ({ action: 'created' }), 8],
    ['a kind of object', () => ({ objectKind: 'app' }), 2],
    ['an object', () => ({ objectId: affiliateId }), 1],
    ['two filters', () => ({ objectId: affiliateId, action: 'changed' }), 0],
    ['a malformed id', () => ({ keyId: 'x' }), 0],
    ['a range that is over', () => ({ to: '2020-01-01T00:00:00Z' }), 0],
    ['a range that began', () => ({ from: '0', appId: owner.appId }), 4],
  ])('it lists only the changes of %s', async (_, query, expected) => {
    const { status, body } = await list(query());
    expect([status, body.items.length]).toEqual([200, expected]);
  });

  test('its pages have each row once, and its CSV has all of them with before and after as JSON', async () => {
    const ids: string[] = [];
    let cursor: string | null = null;
    do {
      const page: ApiResponse<Listed> = await list({ limit: '2', ...(cursor === null ? {} : { cursor }) });
      ids.push(...page.body.items.map(({ id }) => id));
      cursor = page.body.nextCursor;
    } while (cursor !== null);
    const { body } = await list();
    expect(ids).toEqual(body.items.map(({ id }) => id));
    const csv = await list({}, { accept: 'text/csv' });
    const lines = csv.text.trimEnd().split('\r\n');
    expect(lines[0]).toBe(
      'id,changedAt,appId,actor.kind,actor.keyId,actor.sessionId,actor.affiliateId,actor.label,action,object.kind,object.id,object.label,before,after,names,requestId',
    );
    expect(lines).toHaveLength(ids.length + 1);
    expect(csv.text).toContain('""name"":""First creator""');
  });
});
