import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { deleteExpiredPayeeChanges } from '../../src/db/payee-changes.ts';
import type { Permission } from '../../src/domain/keys.ts';
import { shownCode } from '../../src/domain/payee-code.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { payeeCodeOf } from '../support/payee-codes.ts';
import { eventually } from '../support/eventually.ts';
import { signInCreator } from '../support/sessions.ts';

let api: TestApi;
let app: TestApp;
let creator: string;
let session: { 'sec-fetch-site': string; cookie: string };

const ADDRESS = 'ada@example.com';
const PAYEE = { method: 'paypal', recipient: { email: 'money@example.org' } };
const LATEST = { method: 'paypal', recipient: { email: 'latest@example.org' } };
const THIRD = { method: 'paypal', recipient: { email: 'third@example.org' } };
const OTHER = { method: 'paypal', recipient: { email: 'other@example.org' } };

beforeAll(async () => {
  api = await startTestApi({ sendsMail: true });
});
afterAll(async () => {
  await api.close();
});

/** Makes the address of the creator older. */
const age = async (days = 7) => {
  await api.sql`
    update affiliates set email_set_at = now() - ${days} * interval '1 day' where id = ${creator}`;
};

beforeEach(async () => {
  app = await newApp(api);
  creator = await newAffiliate(api, app, { name: 'Ada', email: ADDRESS });
  session = await signInCreator(api, app, creator);
  await age();
});

interface Change {
  readonly id: string;
  readonly code: string;
  readonly maskedAddress: string;
}
interface Version {
  readonly version: number;
  readonly maskedRecipient: string | null;
  readonly setBy: object | null;
  readonly setAt: number;
  readonly countsFrom: number;
}

const request = async (body: object = PAYEE, headers: object = session) =>
  await api.call<Change>('POST', '/creator/payee-changes', { body, headers: { ...headers } });
const confirm = async (id: string, code: string, headers: object = session) =>
  await api.call<{ code: string; detail: string; payee: Version }>(
    'POST',
    `/creator/payee-changes/${id}/confirm`,
    {
      body: { code },
      headers: { ...headers },
    },
  );
const versions = async () =>
  (
    await api.call<{ items: Version[] }>('GET', `/apps/${app.appId}/affiliates/${creator}/payees`, {
      key: app.key,
    })
  ).body.items;

const put = async (body: object) =>
  await api.call('PUT', `/apps/${app.appId}/affiliates/${creator}/payee`, { key: app.key, body });
const block = async (state: 'blocked' | 'lifted') =>
  await api.call('POST', `/apps/${app.appId}/affiliates/${creator}/payout-blocks`, {
    key: app.key,
    body: { state, reason: 'A review' },
  });

const codeOf = async (changeId: string) => await payeeCodeOf(api.sql, changeId);

describe('the payee that a creator sets', () => {
  // @promise post-payee-change, confirm-payee-change, own-payee
  test('is set with the code that is mailed to the stored address, waits, and is mailed and audited as the act of the creator', async () => {
    const wanted = await request();
    expect([wanted.status, wanted.body.maskedAddress]).toEqual([202, 'a•••@example.com']);
    expect(await versions()).toEqual([]);
    const code = await codeOf(wanted.body.id);
    expect(code).toMatch(/^[A-HJ-NP-Z2-9]{8}$/);
    const typed = ` ${shownCode(code).toLowerCase()} `;
    const set = await confirm(wanted.body.id, typed);
    expect([set.status, set.body.payee]).toMatchObject([
      200,
      { method: 'paypal', maskedRecipient: 'm•••@example.org', recipientProblem: null },
    ]);
    // The answer may be lost. Another code is none that has set it.
    expect((await confirm(wanted.body.id, typed)).body.payee).toEqual(set.body.payee);
    expect((await confirm(wanted.body.id, 'AAAAAAAA')).body.code).toBe('payee_code_ended');
    const [version, ...more] = await versions();
    expect(more).toEqual([]);
    expect(version).toMatchObject({ version: 1, setBy: null, maskedRecipient: 'm•••@example.org' });
    expect((version?.countsFrom ?? 0) - (version?.setAt ?? 0)).toBe(3 * DAY_MS);
    const audit = await api.sql`
      select actor_kind, affiliate_id, key_id, after from audit_rows where app_id = ${app.appId} and object_kind = 'payee'`;
    expect(audit).toMatchObject([{ actorKind: 'creator', affiliateId: creator, keyId: null }]);
    expect(JSON.stringify(audit)).not.toContain('example.org');
    const mails =
      await api.sql`select kind, status from emails where affiliate_id = ${creator} order by created_at`;
    expect(mails).toEqual([
      { kind: 'payee_code', status: 'queued' },
      { kind: 'payee_changed', status: 'queued' },
    ]);
    const stored = await api.sql.one<{
      row: string;
    }>`select to_jsonb(c)::text as row from payee_changes c where id = ${wanted.body.id}`;
    expect(stored.row).toContain('"ciphertext": null');
    expect(stored.row).not.toContain(code);
  });

  // @promise payee-code-attempts
  test('is not set by a wrong code, and after five of them not by the right one either', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    const details: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      const wrong = await confirm(body.id, 'AAAAAAAA');
      expect([wrong.status, wrong.body.code]).toEqual([409, 'payee_code_wrong']);
      details.push(wrong.body.detail);
    }
    expect(details[0]).toBe('4 more attempts with this code.');
    expect(details[4]).toBe('It was wrong too often. Ask for another code.');
    const late = await confirm(body.id, code);
    expect([late.status, late.body.code]).toEqual([409, 'payee_code_ended']);
    expect(await versions()).toEqual([]);
  });

  // @promise missing-key-waits
  test('a code that a process without its key gets is a 503, costs no attempt, and is valid in a process with the key', async () => {
    const { body } = await request();
    const setKey = async (key: string) =>
      await api.sql`update payee_changes set encryption_key_id = ${key} where id = ${body.id}`;
    await setKey('gone');
    const { status, headers } = await confirm(body.id, await codeOf(body.id));
    expect([status, headers.has('retry-after')]).toEqual([503, true]);
    expect(await api.sql`select attempts from payee_changes where id = ${body.id}`).toEqual([
      { attempts: 0 },
    ]);
    await setKey(createSecretBox([TEST_KEY]).keyIds[0] ?? '');
    expect((await confirm(body.id, await codeOf(body.id))).status).toBe(200);
  });

  // @promise payee-code-attempts
  test('has five attempts also where fifty are made at the same time', async () => {
    const { body } = await request();
    const answers = await Promise.all(Array.from({ length: 50 }, () => confirm(body.id, 'AAAAAAAA')));
    expect(answers.filter(({ body: answer }) => answer.code === 'payee_code_wrong')).toHaveLength(5);
  });

  // @promise payee-code-bound
  test('is the one that the code was made for: a code approves no other change, and no other recipient', async () => {
    const first = await request();
    const firstCode = await codeOf(first.body.id);
    const second = await request(OTHER);
    expect((await confirm(second.body.id, firstCode)).body.code).toBe('payee_code_wrong');
    // The second one has replaced the first.
    expect((await confirm(first.body.id, firstCode)).body.code).toBe('payee_code_ended');
    // Another recipient in the row, as who could write to the database would put it there.
    const third = await request();
    const context = `${app.appId}:payee change:${creator}:${third.body.id}`;
    const forged = createSecretBox([TEST_KEY]).encrypt(JSON.stringify(OTHER.recipient), context);
    await api.sql`update payee_changes set ciphertext = ${forged.ciphertext} where id = ${third.body.id}`;
    expect((await confirm(third.body.id, await codeOf(third.body.id))).body.code).toBe('payee_code_wrong');
    expect(await versions()).toEqual([]);
  });

  // @promise payee-code-time
  test('is not set after 15 minutes', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    const { minutes } = await api.sql.one<{ minutes: number }>`
      select extract(epoch from expires_at - created_at)::float8 / 60 as minutes from payee_changes where id = ${body.id}`;
    expect(minutes).toBe(15);
    await api.sql`
      update payee_changes set created_at = created_at - interval '15 minutes', expires_at = expires_at - interval '15 minutes' where id = ${body.id}`;
    expect((await confirm(body.id, code)).body.code).toBe('payee_code_ended');
    expect(await versions()).toEqual([]);
    await deleteExpiredPayeeChanges(api.sql, Date.now());
    expect(await api.sql`select from payee_changes where id = ${body.id}`).toEqual([]);
  });

  test('is set once, however often and at the same time the code is entered', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    const answers = await Promise.all(Array.from({ length: 4 }, () => confirm(body.id, code)));
    expect(answers.map(({ status }) => status)).toContain(200);
    expect(await versions()).toHaveLength(1);
  });

  test('is asked for five times within an hour at most', async () => {
    const statuses: number[] = [];
    for (let round = 0; round < 6; round += 1) statuses.push((await request()).status);
    expect(statuses).toEqual([202, 202, 202, 202, 202, 429]);
  });

  test('is asked for five times within an hour at most also by calls at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => request()));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  });

  // @promise payee-code-last-word
  test.each([
    ['sets another payee', async () => await put(THIRD)],
    ['sets the payee again that is the latest', async () => await put(LATEST)],
    ['sets another payee and then the former one', async () => [await put(THIRD), await put(LATEST)]],
    ['blocks the payouts', async () => await block('blocked')],
    ['blocks the payouts and lifts the block', async () => [await block('blocked'), await block('lifted')]],
  ])('is not set with a code from before the founder %s', async (_what, act) => {
    await put(LATEST);
    const { body } = await request();
    const code = await codeOf(body.id);
    await act();
    const before = await versions();
    const late = await confirm(body.id, code);
    expect([late.status, late.body.code]).toEqual([409, 'payee_code_ended']);
    expect(await versions()).toEqual(before);
    const stored = await api.sql
      .one`select ended_at is not null as ended, ciphertext from payee_changes where id = ${body.id}`;
    expect(stored).toEqual({ ended: true, ciphertext: null });
    // What the creator wants after that is another matter.
    const next = await request();
    expect((await confirm(next.body.id, await codeOf(next.body.id))).status).toBe(200);
  });

  // @promise payee-code-last-word
  test('follows the version that was the latest at the request, also where no trigger has ended the code', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    const { ciphertext, keyId } = await api.sql.one<{ ciphertext: Buffer; keyId: string }>`
      select ciphertext, encryption_key_id as key_id from payee_changes where id = ${body.id}`;
    await put(LATEST);
    await api.sql`
      update payee_changes set ended_at = null, ciphertext = ${ciphertext}, encryption_key_id = ${keyId} where id = ${body.id}`;
    expect((await confirm(body.id, code)).body.code).toBe('payee_code_ended');
    expect((await versions()).map(({ version }) => version)).toEqual([1]);
  });

  // @promise payee-code-last-word
  test('waits for a block that is being stated, so that the block ends its code', async () => {
    let asked: Promise<unknown> = Promise.resolve();
    await api.sql.transaction(async (tx) => {
      await tx`
        insert into payout_blocks (id, app_id, affiliate_id, position, reason, account_id, key_id)
        select ${newId('payoutBlock')}, ${app.appId}, ${creator}, 1, 'A review', k.account_id, k.id
          from account_keys k where k.account_id = ${app.accountId} limit 1`;
      asked = request();
      await eventually('the request waits', async () => {
        const { n } = await api.sql.one<{ n: number }>`
          select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted and database = (
            select oid from pg_database where datname = current_database())`;
        return n > 0;
      });
      expect(await tx`select from payee_changes where affiliate_id = ${creator}`).toEqual([]);
    });
    expect(await asked).toMatchObject({ status: 202 });
  });

  test('is of the creator of the session: another one cannot enter the code, and no key can', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    const stranger = await signInCreator(api, app, await newAffiliate(api, app));
    expect((await confirm(body.id, code, stranger)).status).toBe(404);
    const withKey = { body: { code }, key: app.key };
    expect((await api.call('POST', `/creator/payee-changes/${body.id}/confirm`, withKey)).status).toBe(401);
    expect((await api.call('POST', '/creator/payee-changes', { body: PAYEE, key: app.key })).status).toBe(
      401,
    );
  });

  test.each([
    ['none', { method: 'none' }],
    ['a formula', { method: 'paypal', recipient: { email: '=a@example.com' } }],
    ['an unknown field', { ...PAYEE, countsFrom: 0 }],
    ['no recipient', { method: 'wise' }],
  ])('is refused with a 400 for %s', async (_what, body) => {
    expect((await request(body)).status).toBe(400);
  });

  test('is forgotten with the payees that a founder erases', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    await api.call('DELETE', `/apps/${app.appId}/affiliates/${creator}/payees`, { key: app.key });
    expect((await confirm(body.id, code)).status).toBe(404);
  });

  // @promise payee-set-by-whom
  test('is written by no statement without a confirmed code', async () => {
    const insert = api.sql`
      insert into payees (id, app_id, affiliate_id, version, method, ciphertext, encryption_key_id)
      values (${newId('payee')}, ${app.appId}, ${creator}, 1, 'paypal', 'x', 'y')`;
    await expect(insert).rejects.toThrow('has not confirmed the payee');
  });
});

describe('the address for codes', () => {
  const keyWith = async (permissions: readonly Permission[]) =>
    (await createAccountKey(api.sql, app.accountId, permissions)).key;
  const setAddress = async (key: string, email: string | null) =>
    await api.call('PATCH', `/apps/${app.appId}/affiliates/${creator}`, { key, body: { email } });
  const codes = async () => {
    const { body } = await api.call<{ payeeCodes?: object }>('GET', '/creator', { headers: session });
    return body.payeeCodes;
  };
  const isConfirmed = async () => {
    const { body } = await api.call<{ emailConfirmed?: boolean }>(
      'GET',
      `/apps/${app.appId}/affiliates/${creator}`,
      {
        key: app.key,
      },
    );
    return body.emailConfirmed;
  };

  // @promise payee-address-new
  test('counts seven days after it was set, and the page says from when', async () => {
    await age(6);
    expect(await codes()).toMatchObject({ maskedAddress: 'a•••@example.com', from: expect.any(Number) });
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
    await age(7);
    expect((await request()).status).toBe(202);
  });

  // @promise payee-no-write
  test('is of no use to who may write and set up, but not pay: with no sequence of calls money goes elsewhere', async () => {
    const key = await keyWith(['read', 'write', 'setup']);
    expect((await setAddress(key, 'thief@example.com')).status).toBe(200);
    // The thief makes a link to the page of the creator, which `setup` may.
    session = await signInCreator(api, { ...app, key }, creator);
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
    await age(400);
    expect(await codes()).toBeUndefined();
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
    // Saving it again, removing it, and setting it anew confirm nothing.
    await setAddress(key, 'thief@example.com');
    await setAddress(key, null);
    await setAddress(key, 'thief@example.com');
    await age(400);
    expect(await isConfirmed()).toBe(false);
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
    const direct = await api.call('PUT', `/apps/${app.appId}/affiliates/${creator}/payee`, {
      key,
      body: PAYEE,
    });
    expect(direct.status).toBe(403);
    expect(await versions()).toEqual([]);
  });

  // @promise payee-no-write
  test('that is changed while a code waits ends the code', async () => {
    const { body } = await request();
    const code = await codeOf(body.id);
    await setAddress(await keyWith(['read', 'write']), 'thief@example.com');
    expect((await confirm(body.id, code)).body.code).toBe('payee_code_ended');
    expect(await versions()).toEqual([]);
  });

  // @promise payee-address-confirmed
  test('counts if it was changed, or is saved again, with the permission to pay', async () => {
    await setAddress(await keyWith(['write']), 'new@example.com');
    expect(await isConfirmed()).toBe(false);
    await age();
    await setAddress(app.key, 'new@example.com');
    expect(await isConfirmed()).toBeUndefined();
    expect((await request()).body).toMatchObject({ maskedAddress: 'n•••@example.com' });
    await setAddress(app.key, 'newer@example.com');
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
    await age();
    expect((await request()).body).toMatchObject({ maskedAddress: 'n•••@example.com' });
  });

  test('that an older version of the service changes is not confirmed', async () => {
    await api.sql`update affiliates set email = 'thief@example.com' where id = ${creator}`;
    await age(400);
    expect((await request()).body).toMatchObject({ code: 'no_code_address' });
  });
});

// @promise payee-codes-need-mail
test('without a mail server only the founder sets the payee, and the page says nothing of codes', async () => {
  const plain = await startTestApi();
  try {
    const other = await newApp(plain);
    const affiliateId = await newAffiliate(plain, other, { email: ADDRESS });
    await plain.sql`update affiliates set email_set_at = now() - interval '8 days'`;
    const headers = await signInCreator(plain, other, affiliateId);
    const refused = await plain.call<{ code: string }>('POST', '/creator/payee-changes', {
      body: PAYEE,
      headers,
    });
    expect([refused.status, refused.body.code]).toEqual([409, 'mail_not_configured']);
    expect((await plain.call('GET', '/creator', { headers })).body).not.toHaveProperty('payeeCodes');
  } finally {
    await plain.close();
  }
});
