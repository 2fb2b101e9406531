import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { findPayee, findPayeesAt, reencryptPayees, setPayee } from '../../src/db/payees.ts';
import { countSecretsByKey } from '../../src/db/webhook-secrets.ts';
import { connect } from '../../src/db/sql.ts';
import type { AccountId, AffiliateId, AppId, KeyId } from '../../src/domain/ids.ts';
import { payeeAt } from '../../src/domain/payee.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import type { Permission } from '../../src/domain/keys.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { startHousekeeping } from '../../src/housekeeping.ts';
import { createSecretsCheck } from '../../src/secrets-check.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { runOn } from '../support/postgres-admin.ts';
import { findInTables } from '../support/search-everywhere.ts';
import { signIn, signInCreator } from '../support/sessions.ts';

let api: TestApi;
let app: TestApp;
let creator: string;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api.close();
});
beforeEach(async () => {
  app = await newApp(api);
  creator = await newAffiliate(api, app, { name: 'Ada' });
});

interface Body {
  readonly id: string;
  readonly code?: string;
  readonly version: number;
  readonly setAt: number;
  readonly countsFrom: number;
  readonly recipient?: object;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

const pathOf = (affiliateId = creator) => `/apps/${app.appId}/affiliates/${affiliateId}/payee`;
const get = async (key = app.key) => await api.call<Body>('GET', pathOf(), { key });
const put = async (body: object, key = app.key) => await api.call<Body>('PUT', pathOf(), { key, body });
const erase = async () =>
  await api.call<{ erasedVersions: number }>('DELETE', `${pathOf()}s`, { key: app.key });
const listed = async (query = '', affiliateId = creator) =>
  (
    await api.call<{ items: Body[]; nextCursor: string | null }>('GET', `${pathOf(affiliateId)}s${query}`, {
      key: app.key,
    })
  ).body;
const keyWith = async (permissions: readonly Permission[], { accountId }: TestApp = app) =>
  (await createAccountKey(api.sql, accountId, permissions)).key;
const versions = async () => (await listed()).items.map(({ version }) => version);

const PAYPAL = { method: 'paypal', recipient: { email: 'ada.lovelace@example.com' } };
const WISE = {
  method: 'wise',
  recipient: { email: 'ada@example.org', name: 'Ada Lovelace', receiverType: 'PERSON' },
};
const OTHER = { method: 'other', recipient: { name: 'Ada Lovelace', reference: 'IBAN DE00 1234' } };
const NONE = { method: 'none' };
/** Texts of recipients that nobody may read without the permission. */
const SECRETS = ['ada.lovelace', 'ada@example.org', 'Ada Lovelace', 'DE00 1234'];

describe('the payee of a creator', () => {
  // @promise put-payee, get-payee
  test('is set as a version that counts after three days, and is shown whole to who may pay', async () => {
    const first = await put(PAYPAL);
    expect(first).toMatchObject({
      status: 200,
      body: { affiliateId: creator, version: 1, ...PAYPAL, maskedRecipient: 'a•••@example.com' },
    });
    expect(first.body.countsFrom - first.body.setAt).toBe(3 * DAY_MS);
    expect(Math.abs(first.body.setAt - Date.now())).toBeLessThan(60_000);
    for (const [index, payee] of [WISE, OTHER].entries()) {
      expect((await put(payee)).body).toMatchObject({ version: index + 2, ...payee });
      expect((await get()).body).toMatchObject({ version: index + 2, ...payee });
    }
    expect((await put(NONE)).body).toMatchObject({ version: 4, method: 'none', maskedRecipient: null });
    expect((await get()).body).not.toHaveProperty('recipient');
  });

  // @promise payee-masked
  test('is shown masked to who may only read, also with a session that may not pay yet', async () => {
    const reader = await keyWith(['read', 'write', 'setup']);
    const headers = await signIn(api, app.key);
    for (const payee of [PAYPAL, WISE, OTHER]) {
      await put(payee);
      for (const options of [{ key: reader }, { headers }]) {
        const shown = await api.call('GET', pathOf(), options);
        expect(shown).toMatchObject({ status: 200, body: { method: payee.method } });
        for (const text of SECRETS) expect(shown.text).not.toContain(text);
      }
    }
    await api.call('POST', '/session/raise', { body: { key: app.key }, headers });
    expect((await api.call('GET', pathOf(), { headers })).body).toMatchObject(OTHER);
  });

  // @promise payee-same
  test('stays the version that it is when the same is set again, however many calls do so at once', async () => {
    const calls = await Promise.all(Array.from({ length: 8 }, async () => await put(WISE)));
    expect(new Set(calls.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1);
    const { email, name, receiverType } = WISE.recipient;
    expect((await put({ ...WISE, recipient: { receiverType, name, email } })).body).toEqual(calls[0]?.body);
    expect(await versions()).toEqual([1]);
    await put(NONE);
    await put(NONE);
    expect(await versions()).toEqual([2, 1]);
    expect((await put(WISE)).body.version).toBe(3);
  });

  test('has one version for each change, also when several are made at once', async () => {
    const calls = await Promise.all(
      Array.from(
        { length: 8 },
        async (_, n) => await put({ method: 'paypal', recipient: { email: `ada${n}@example.com` } }),
      ),
    );
    expect(calls.map(({ body }) => body.version).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const { items } = await listed();
    expect(items.map(({ setAt }) => setAt)).toEqual(
      items.map(({ setAt }) => setAt).toSorted((a, b) => b - a),
    );
  });

  // @promise payee-expected-version
  test('is not changed by who has read another version, except to what it is already', async () => {
    expect(await put({ ...PAYPAL, expectedVersion: 1 })).toMatchObject({
      status: 409,
      body: { code: 'payee_changed', detail: expect.stringContaining('The latest version is 0.') },
    });
    const both = await Promise.all(
      [PAYPAL, WISE].map(async (payee) => await put({ ...payee, expectedVersion: 0 })),
    );
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    const next = { ...OTHER, expectedVersion: 1 };
    expect(await put(next)).toMatchObject({ status: 200, body: { version: 2 } });
    // The answer was lost.
    expect(await put(next)).toMatchObject({ status: 200, body: { version: 2 } });
    expect(await versions()).toEqual([2, 1]);
  });

  // @promise payee-permission
  test.each(PERMISSIONS.filter((permission) => permission !== 'payout').map((one) => [one]))(
    'is neither set nor erased with the permission %s alone, nor with all but payout',
    async (permission) => {
      await put(PAYPAL);
      const others = PERMISSIONS.filter((one) => one !== 'payout');
      for (const key of [await keyWith([permission]), await keyWith(others)]) {
        expect((await put(WISE, key)).status).toBe(403);
        expect((await api.call('DELETE', `${pathOf()}s`, { key })).status).toBe(403);
      }
      expect((await get()).body).toMatchObject({ version: 1, ...PAYPAL });
    },
  );

  test('is a 404 of a creator who never had one, and of one of another account', async () => {
    expect((await get()).status).toBe(404);
    const other = await newApp(api);
    const theirs = await newAffiliate(api, other);
    for (const body of [PAYPAL, { ...PAYPAL, expectedVersion: 7 }])
      expect((await api.call('PUT', pathOf(theirs), { key: app.key, body })).status).toBe(404);
    for (const [method, tail] of [
      ['GET', ''],
      ['GET', 's'],
      ['DELETE', 's'],
    ] as const)
      expect((await api.call(method, `${pathOf(theirs)}${tail}`, { key: app.key })).status).toBe(404);
    expect(await listed()).toEqual({ items: [], nextCursor: null });
  });

  // @promise payee-input
  test.each([
    [
      'an address that begins with +',
      { ...PAYPAL, recipient: { email: '+ada@example.com' } },
      'recipient.email',
    ],
    [
      'an address that begins with -',
      { ...PAYPAL, recipient: { email: '-ada@example.com' } },
      'recipient.email',
    ],
    ['no address', { ...PAYPAL, recipient: { email: 'ada.example.com' } }, 'recipient.email'],
    [
      'two addresses',
      { ...PAYPAL, recipient: { email: 'ada@example.com,b@example.com' } },
      'recipient.email',
    ],
    ['a long address', { ...PAYPAL, recipient: { email: `${'a'.repeat(250)}@b.co` } }, 'recipient.email'],
    ['a name that begins with =', named('=Ada'), 'recipient.name'],
    ['a name that begins with +', named('+Ada'), 'recipient.name'],
    ['a name that begins with -', named('-Ada'), 'recipient.name'],
    ['a name that begins with @', named('@Ada'), 'recipient.name'],
    ['a name that begins with spaces and =', named('  =Ada'), 'recipient.name'],
    ['a name that begins with a full-width =', named('＝Ada'), 'recipient.name'],
    ['a name that begins with a quote and =', named('"=Ada'), 'recipient.name'],
    ['a name that begins with a zero-width space and =', named('\u200b=Ada'), 'recipient.name'],
    ['a name with a formula after a semicolon', named('Ada;=1'), 'recipient.name'],
    ['a name with a line break', named('Ada\nLovelace'), 'recipient.name'],
    ['a name with a carriage return', named('Ada\rLovelace'), 'recipient.name'],
    ['a name with a tab', named('Ada\tLovelace'), 'recipient.name'],
    ['a name with a line separator', named('Ada\u2028Lovelace'), 'recipient.name'],
    ['a name that is written backwards', named('Ada\u202eLovelace'), 'recipient.name'],
    ['an empty name', named(' '), 'recipient.name'],
    ['a long name', named('A'.repeat(201)), 'recipient.name'],
    [
      'a reference that begins with =',
      { ...OTHER, recipient: { name: 'Ada', reference: '=1' } },
      'recipient.reference',
    ],
    [
      'a long reference',
      { ...OTHER, recipient: { name: 'Ada', reference: 'x'.repeat(201) } },
      'recipient.reference',
    ],
    [
      'another receiver type',
      { ...WISE, recipient: { ...WISE.recipient, receiverType: 'ROBOT' } },
      'recipient.receiverType',
    ],
    ['a field of another method', { ...PAYPAL, recipient: WISE.recipient }, 'recipient.name'],
    ['no recipient', { method: 'paypal' }, 'recipient'],
    ['a recipient for none', { ...PAYPAL, method: 'none' }, 'recipient'],
    ['another method', { ...PAYPAL, method: 'cash' }, 'method'],
    ['no method', { recipient: PAYPAL.recipient }, 'method'],
    ['an unknown field', { ...PAYPAL, note: 'x' }, 'note'],
    ['a negative version', { ...PAYPAL, expectedVersion: -1 }, 'expectedVersion'],
  ])('is not set to %s', async (_, body, path) => {
    const response = await put(body);
    expect(response).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(response.body.errors?.map((error) => error.path)).toContain(path);
    for (const { message } of response.body.errors ?? []) expect(message).toMatch(/^(Must|Required|Unknown)/);
    // The answer repeats no value.
    expect(response.text).not.toMatch(/Lovelace|ada[@.]/);
    expect(await versions()).toEqual([]);
  });

  test('may have a name with an apostrophe, an accent, a hyphen or another script', async () => {
    for (const name of ["Ada O'Neill-Byron", 'Zoë', '李雷', 'محمد', 'Ada = Byron'])
      expect((await put(named(name))).body).toMatchObject({ recipient: { name } });
  });
});

function named(name: string) {
  return { ...OTHER, recipient: { name, reference: 'x' } };
}

describe('the versions of a payee', () => {
  // @promise get-payees
  test('are listed latest first, masked also for who may pay, in pages and as CSV', async () => {
    for (const payee of [PAYPAL, WISE, OTHER, NONE]) await put(payee);
    const first = await listed('?limit=3');
    expect(first.items).toMatchObject([
      { version: 4, method: 'none', maskedRecipient: null, recipientProblem: null },
      { version: 3, method: 'other', maskedRecipient: 'A•••' },
      { version: 2, method: 'wise', maskedRecipient: 'a•••@example.org' },
    ]);
    const second = await listed(`?limit=3&cursor=${first.nextCursor}`);
    expect(second).toMatchObject({
      items: [
        { version: 1, maskedRecipient: 'a•••@example.com', setBy: { id: expect.stringMatching(/^key_/) } },
      ],
      nextCursor: null,
    });
    const csv = await api.call('GET', `${pathOf()}s`, { key: app.key, headers: { accept: 'text/csv' } });
    expect(csv.text.split('\r\n')[0]).toBe(
      'id,affiliateId,version,method,maskedRecipient,recipientProblem,setAt,countsFrom,setBy.id,setBy.label,setBy.display',
    );
    expect(csv.text.trimEnd().split('\r\n')).toHaveLength(5);
    for (const text of SECRETS) expect(csv.text + JSON.stringify([first, second])).not.toContain(text);
    const other = await newAffiliate(api, app);
    expect(
      (await api.call('GET', `${pathOf(other)}s?cursor=${first.nextCursor}`, { key: app.key })).body,
    ).toMatchObject({ code: 'invalid_cursor' });
  });

  // @promise payee-database
  test('are changed by no statement, follow each other without a gap, and wait as the app says', async () => {
    await put(PAYPAL);
    await put(WISE);
    const run = async (text: string) => await runOn(api.database.url, text);
    const mine = `affiliate_id = '${creator}'`;
    for (const change of [
      "method = 'other'",
      'version = 3',
      "counts_from = counts_from - interval '1 day'",
      'set_at = now()',
      `id = '${newId('payee')}'`,
    ])
      await expect(run(`update payees set ${change} where ${mine} and version = 2`)).rejects.toThrow(
        /version 2 of the payee of aff_\w+ cannot be changed/,
      );
    await expect(run(`update payees set ciphertext = null where ${mine}`)).rejects.toThrow(
      /check constraint/,
    );
    await expect(run(`delete from payees where ${mine}`)).rejects.toThrow(/cannot be changed or deleted/);
    await expect(run('truncate payees cascade')).rejects.toThrow(/cannot be changed or deleted/);
    const append = async (version: number, method = 'none', at = 'now()') =>
      await run(
        `insert into payees (id, app_id, affiliate_id, version, method, account_id, set_by, set_at, counts_from)
         select '${newId('payee')}', app_id, affiliate_id, ${version}, '${method}', account_id, set_by, ${at}, ${at}
           from payees where ${mine} and version = 1`,
      );
    await expect(append(4)).rejects.toThrow(/foreign key/);
    await expect(append(2)).rejects.toThrow(/duplicate key/);
    await expect(append(0)).rejects.toThrow(/check constraint/);
    await expect(append(3, 'paypal')).rejects.toThrow(/payee_has_its_recipient/);
    await append(3, 'none', "now() - interval '1 year'");
    const { body } = await get();
    expect(body.version).toBe(3);
    expect(body.countsFrom - body.setAt).toBe(3 * DAY_MS);
    expect(Math.abs(body.setAt - Date.now())).toBeLessThan(60_000);
  });

  // @promise payee-encrypted
  test('are stored encrypted, for their creator and number alone', async () => {
    await put(PAYPAL);
    await put(WISE);
    await put(OTHER);
    expect(await findInTables(api.sql, SECRETS)).toEqual([]);
    await runOn(
      api.database.url,
      `update payees p set ciphertext = o.ciphertext from payees o
        where p.affiliate_id = '${creator}' and p.version = 3 and o.affiliate_id = '${creator}' and o.version = 1`,
    );
    expect((await get()).body).toMatchObject({ version: 3, method: 'other', recipientProblem: 'unreadable' });
    expect((await get()).body).not.toHaveProperty('recipient');
    expect((await put(OTHER)).body).toMatchObject({ version: 4, recipientProblem: null });
  });

  // @promise payees-at
  test('are read of many creators in one statement, which decides as the rule does', async () => {
    const creators = await Promise.all(Array.from({ length: 5 }, async () => await newAffiliate(api, app)));
    for (const [n, affiliateId] of creators.entries()) {
      for (let version = 1; version <= n; version += 1) {
        const body = { method: 'paypal', recipient: { email: `ada${version}@example.com` } };
        await api.call('PUT', pathOf(affiliateId), { key: app.key, body });
        // As if it was set a while ago.
        await runOn(
          api.database.url,
          `set session_replication_role = replica;
           update payees set counts_from = counts_from - ${n - version} * interval '2 days', set_at = set_at - ${n - version} * interval '2 days'
            where affiliate_id = '${affiliateId}' and version = ${version}`,
        );
      }
    }
    const statements: string[] = [];
    const sql = connect({ url: api.database.url, onStatement: ({ text }) => void statements.push(text) });
    const all = await Promise.all(creators.map(async (id) => (await listed('', id)).items));
    const edges = all.flat().flatMap(({ countsFrom }) => [countsFrom - 1, countsFrom]);
    try {
      for (const at of new Set([0, ...edges])) {
        statements.length = 0;
        const found = await findPayeesAt(sql, app.appId as AppId, creators as AffiliateId[], at);
        expect(statements.filter((text) => text.includes('payees'))).toHaveLength(1);
        for (const [n, id] of creators.entries()) {
          const pick = ({ inForce, waiting, excludedAs }: ReturnType<typeof payeeAt>) => [
            inForce?.version,
            waiting?.version,
            excludedAs,
          ];
          const items = (all[n] ?? []) as unknown as Parameters<typeof payeeAt>[0];
          expect(pick(payeeAt(found.get(id as AffiliateId) ?? [], at))).toEqual(pick(payeeAt(items, at)));
        }
      }
      const other = await newApp(api);
      expect(
        await findPayeesAt(
          sql,
          other.appId as AppId,
          creators as AffiliateId[],
          Number.MAX_SAFE_INTEGER / 2_000,
        ),
      ).toEqual(new Map());
    } finally {
      await sql.close();
    }
  });
});

describe('the wait of a new payee', () => {
  const settings = async (body: object, key = app.key) =>
    await api.call('PATCH', `/apps/${app.appId}/settings`, { key, body });
  const waitOf = (body: Body) => (body.countsFrom - body.setAt) / DAY_MS;

  // @promise payee-wait-setting
  test('is a setting from 1 to 30 days for payees that are set from then on, and absent while it is 3', async () => {
    expect((await settings({ payeeWaitDays: 3 })).body).not.toHaveProperty('payeeWaitDays');
    const before = (await put(PAYPAL)).body;
    expect(await settings({ payeeWaitDays: 1 })).toMatchObject({ status: 200, body: { payeeWaitDays: 1 } });
    expect((await get()).body).toMatchObject({ countsFrom: before.countsFrom });
    expect(waitOf((await put(WISE)).body)).toBe(1);
    await settings({ payeeWaitDays: 30 });
    expect(waitOf((await put(OTHER)).body)).toBe(30);
    for (const payeeWaitDays of [0, 31, 1.5, null, '3'])
      expect((await settings({ payeeWaitDays })).status).toBe(400);
    const [row] = await api.sql<{ before: object; after: object }>`
      select before, after from audit_rows where object_id = ${app.appId} and action = 'changed' order by changed_at desc limit 1`;
    expect(row).toEqual({ before: { payeeWaitDays: 1 }, after: { payeeWaitDays: 30 } });
  });

  // @promise payee-wait-permission
  test('is changed only by who may pay; others can send the settings that they have read', async () => {
    const writer = await keyWith(['read', 'write', 'setup']);
    expect((await settings({ payeeWaitDays: 1 }, writer)).status).toBe(403);
    expect((await settings({ payoutApproval: 'another_key' }, writer)).status).toBe(403);
    expect((await settings({ payoutApproval: 'any_key' }, writer)).status).toBe(200);
    expect((await settings({ payeeWaitDays: 3, name: 'Renamed' }, writer)).status).toBe(200);
    await settings({ payeeWaitDays: 7 });
    expect((await settings({ payeeWaitDays: 3 }, writer)).status).toBe(403);
    expect((await settings({ payeeWaitDays: 7 }, writer)).body).toMatchObject({ payeeWaitDays: 7 });
    const headers = await signIn(api, app.key);
    const asSession = async () =>
      await api.call('PATCH', `/apps/${app.appId}/settings`, { headers, body: { payeeWaitDays: 1 } });
    expect(await asSession()).toMatchObject({ status: 403, body: { code: 'session_not_raised' } });
    await api.call('POST', '/session/raise', { body: { key: app.key }, headers });
    expect((await asSession()).status).toBe(200);
    const create = async (key: string) =>
      await api.call('POST', '/apps', { key, body: { name: 'New', payeeWaitDays: 1 } });
    expect((await create(writer)).status).toBe(403);
    expect(await create(app.key)).toMatchObject({ status: 201, body: { payeeWaitDays: 1 } });
    expect(await api.call('POST', '/apps', { key: writer, body: { name: 'New' } })).toMatchObject({
      status: 201,
    });
  });
});

describe('the erasure of the payees of a creator', () => {
  // @promise delete-payees
  test('removes the recipients of all versions, ends the payee, and can be repeated', async () => {
    for (const payee of [PAYPAL, WISE]) await put(payee);
    for (const round of [1, 2]) {
      expect(await erase()).toMatchObject({ status: 200, body: { erasedVersions: 2 } });
      expect([round, ...(await listed()).items]).toMatchObject([
        round,
        { version: 3, method: 'none', recipientProblem: null },
        { version: 2, method: 'wise', maskedRecipient: null, recipientProblem: 'erased' },
        { version: 1, method: 'paypal', maskedRecipient: null, recipientProblem: 'erased' },
      ]);
    }
    const left = await api.sql`
      select from payees where affiliate_id = ${creator} and (ciphertext is not null or encryption_key_id is not null)`;
    expect(left).toEqual([]);
    await expect(
      runOn(
        api.database.url,
        `update payees set erased_at = null, ciphertext = 'x', encryption_key_id = 'x' where affiliate_id = '${creator}'`,
      ),
    ).rejects.toThrow(/cannot be changed/);
    // Who was erased may come back.
    expect((await put(WISE)).body).toMatchObject({ version: 4, ...WISE });
    expect((await erase()).body).toEqual({ erasedVersions: 3 });
    const rows = await api.sql<{
      line: string;
    }>`select t::text as line from audit_rows t where app_id = ${app.appId}`;
    const all = rows.map(({ line }) => line).join('\n');
    expect(all).toContain('erasedAt');
    for (const text of SECRETS) expect(all).not.toContain(text);
  });

  test('leaves a creator without a payee as it is', async () => {
    expect((await erase()).body).toEqual({ erasedVersions: 0 });
    expect(await versions()).toEqual([]);
  });
});

describe('a change of SECRETS_KEY', () => {
  const other = Buffer.alloc(32, 3);
  const idOf = (key: Buffer) => createSecretBox([key]).keyIds[0] ?? '';
  const read = async (...keys: Buffer[]) =>
    await findPayee(
      { sql: api.sql, secretBox: createSecretBox(keys) },
      app.appId as AppId,
      creator as AffiliateId,
    );
  const needed = async () =>
    (await countSecretsByKey(api.sql))
      .filter(({ payees }) => payees)
      .map(({ encryptionKeyId }) => encryptionKeyId);

  // @promise payees-key-changes
  test('encrypts all payees with the first key, so that the former one can be removed', async () => {
    for (const payee of [PAYPAL, WISE, OTHER]) await put(payee);
    expect(await needed()).toEqual([idOf(TEST_KEY)]);
    const before =
      await api.sql`select version, set_at, counts_from from payees where affiliate_id = ${creator} order by version`;
    const audited = async () =>
      await api.sql`select id from audit_rows where app_id = ${app.appId} order by id`;
    const rows = await audited();
    // In pages of two.
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([other, TEST_KEY]) }, { limit: 2 });
    expect(await needed()).toEqual([idOf(other)]);
    expect(await read(other)).toMatchObject({ version: 3, recipient: OTHER.recipient });
    expect(await read(TEST_KEY)).toMatchObject({ recipient: null, recipientProblem: 'unreadable' });
    expect(
      await api.sql`select version, set_at, counts_from from payees where affiliate_id = ${creator} order by version`,
    ).toEqual(before);
    expect(await audited()).toEqual(rows);
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([TEST_KEY, other]) });
    expect((await get()).body).toMatchObject(OTHER);
  });

  // @promise payees-key-changes
  test('is followed by a running service', async () => {
    await put(PAYPAL);
    const secretBox = createSecretBox([other, TEST_KEY]);
    const housekeeping = startHousekeeping(api.sql, secretBox, pino({ level: 'silent' }));
    await eventually('the payee has the new key', async () => (await read(other))?.recipientProblem === null);
    await housekeeping.stop();
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([TEST_KEY, other]) });
  });

  test('that lacks a key makes a starting process not ready, which says what to do, until the latest payees are set again', async () => {
    await put(PAYPAL);
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([other, TEST_KEY]) });
    const lacks = async () =>
      await createSecretsCheck({
        sql: api.sql,
        secretBox: createSecretBox([TEST_KEY]),
        logger: pino({ level: 'silent' }),
      })();
    expect(await lacks()).toBe(
      `SECRETS_KEY lacks the key ${idOf(other)} of payees of creators: restore it, or set those webhook secrets and payees again`,
    );
    const creators = await api.sql<{ appId: AppId; affiliateId: AffiliateId }>`
      select distinct app_id, affiliate_id from payees where encryption_key_id = ${idOf(other)}`;
    const secretBox = createSecretBox([TEST_KEY]);
    for (const { appId, affiliateId } of creators) {
      const { accountId, keyId } = await api.sql.one<{ accountId: AccountId; keyId: KeyId }>`
        select account_id, set_by as key_id from payees where affiliate_id = ${affiliateId} limit 1`;
      const place = { id: newId('payee'), appId, affiliateId, accountId, keyId };
      await setPayee({ sql: api.sql, secretBox }, place, { method: 'none', recipient: null }, null);
    }
    expect(await lacks()).toBeNull();
  });

  // @promise payees-lost-key
  test('that loses a key shows which payees cannot be read, and each can be set again', async () => {
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([other, TEST_KEY]) });
    await put(PAYPAL);
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([other, TEST_KEY]) });
    expect(await get()).toMatchObject({
      status: 200,
      body: { method: 'paypal', maskedRecipient: null, recipientProblem: 'unreadable' },
    });
    expect((await listed()).items).toMatchObject([{ recipientProblem: 'unreadable' }]);
    expect((await put(PAYPAL)).body).toMatchObject({ version: 2, ...PAYPAL, recipientProblem: null });
    expect((await listed()).items).toMatchObject([
      { recipientProblem: null },
      { recipientProblem: 'unreadable' },
    ]);
    await reencryptPayees({ sql: api.sql, secretBox: createSecretBox([TEST_KEY, other]) });
  });
});

describe('the page of the creator', () => {
  // @promise creator-payee
  test('shows the method, a masked recipient and from when it counts, and nothing before there is one', async () => {
    const headers = await signInCreator(api, app, creator);
    const seen = async () => {
      const own = await api.call('GET', '/creator', { headers });
      const founders = await api.call('GET', `/apps/${app.appId}/affiliates/${creator}/creator`, {
        key: app.key,
      });
      expect(founders.body).toEqual(own.body);
      for (const text of SECRETS) expect(own.text).not.toContain(text);
      return own.body['payee'];
    };
    expect(await seen()).toBeUndefined();
    const { countsFrom } = (await put(WISE)).body;
    expect(await seen()).toEqual({
      method: 'wise',
      maskedRecipient: 'a•••@example.org',
      recipientProblem: null,
      countsFrom,
    });
    await put(NONE);
    expect(await seen()).toMatchObject({ method: 'none', maskedRecipient: null });
  });

  test('changes no payee', async () => {
    const headers = await signInCreator(api, app, creator);
    expect((await api.call('PUT', pathOf(), { headers, body: PAYPAL })).status).toBe(401);
    expect(await versions()).toEqual([]);
  });
});
