import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { readMailFacts } from '../../src/db/email-facts.ts';
import { loadEmail } from '../../src/db/emails.ts';
import { deleteExpiredChallenges } from '../../src/db/passkeys.ts';
import type { EmailId } from '../../src/domain/ids.ts';
import { MOST_PASSKEYS } from '../../src/domain/passkeys.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { addPasskeyOf, Authenticator, optionsOf } from '../support/authenticator.ts';
import type { Faults } from '../support/authenticator.ts';
import { mailedTokens, newMember, openLink, signInManager, signInMember } from '../support/members.ts';
import type { Browser, TestMember } from '../support/members.ts';
import { cookieOf, OWN_PAGE, signIn } from '../support/sessions.ts';
import { untilWaiting } from '../support/waiting.ts';

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

interface Answer {
  readonly code?: string;
  readonly detail?: string;
  readonly id?: string;
  readonly member?: { readonly id: string };
  readonly session?: { readonly member: { readonly id: string }; readonly raisedUntil: number | null } | null;
  readonly raisedKeyId?: string | null;
  readonly raisedUntil?: number | null;
  readonly passkeys?: readonly {
    readonly id: string;
    readonly name: string;
    readonly lastUsedAt: number | null;
  }[];
  readonly items?: readonly unknown[];
}

const post = async (path: string, headers: Partial<Browser>, body?: object) =>
  await api.call<Answer>('POST', path, { headers, ...(body === undefined ? {} : { body }) });

/** Signs a member in with a link that was mailed on request. */
async function signInByMail(member: TestMember): Promise<Browser> {
  await post('/sign-in-links', OWN_PAGE, { email: member.email });
  return await openLink(api, (await mailedTokens(api, member))[0] ?? '');
}

interface Owner {
  readonly member: TestMember;
  readonly browser: Browser;
  readonly authenticator: Authenticator;
  readonly passkeyId: string;
}

/** Returns a member with a passkey, and a session of the member that may pay if the role does. */
async function newOwner(
  role: 'owner' | 'finance' | 'analyst' = 'finance',
  authenticator = new Authenticator(),
): Promise<Owner> {
  const member = await newMember(api, app, manager, role);
  const browser = await signInByMail(member);
  const passkeyId = await addPasskeyOf(api, authenticator, browser);
  return { member, browser, authenticator, passkeyId };
}

/** Signs in with a passkey. */
async function signInWith(
  authenticator: Authenticator,
  faults: Faults = {},
  browser: Partial<Browser> = OWN_PAGE,
) {
  const passkey = authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE), faults);
  return await post('/session', browser, { passkey });
}

/** Lets a session pay with a passkey. */
async function raiseWith(authenticator: Authenticator, browser: Browser, faults: Faults = {}) {
  const passkey = authenticator.answer(await optionsOf(api, 'raise-options', browser), faults);
  return await post('/session/raise', browser, { passkey });
}

const draft = async (headers: Browser) => await post(`/apps/${app.appId}/payout-runs`, headers, {});
const REFUSED = { status: 403, body: { code: 'invalid_passkey' } };

describe('signing in with a passkey', () => {
  // @promise passkey-sign-in, post-passkey-sign-in-options, post-passkeys
  test('a passkey starts a session of its member, with the role of the member at each call, which may pay for 15 minutes', async () => {
    const { member, authenticator } = await newOwner();
    const answer = await signInWith(authenticator);
    expect(answer).toMatchObject({
      status: 200,
      body: {
        member: { id: member.id },
        raisedKeyId: member.keyId,
        raisedUntil: api.clock.now + 15 * MINUTE_MS,
      },
    });
    const browser = { ...OWN_PAGE, cookie: cookieOf(answer.headers) };
    expect((await draft(browser)).status).not.toBe(403);
    const path = `/accounts/${app.accountId}/members/${member.id}`;
    await api.call('PATCH', path, { headers: manager, body: { role: 'analyst' } });
    expect((await draft(browser)).body.code).toBe('forbidden');
    expect((await signInWith(authenticator)).body).toMatchObject({ raisedKeyId: null });
  });

  test('signing in with a passkey ends the session that the browser had before', async () => {
    const { browser, authenticator } = await newOwner();
    const other = await newOwner();
    expect((await signInWith(authenticator, {}, other.browser)).status).toBe(200);
    expect((await api.call('GET', '/apps', { headers: other.browser })).status).toBe(401);
    expect((await api.call('GET', '/apps', { headers: browser })).status).toBe(200);
  });

  test('a caller who asks for a challenge and does not answer it stores nothing', async () => {
    const count = async () => {
      const [row] = await api.sql<{ rows: number }>`
        select (select count(*) from used_passkey_challenges) + (select count(*) from passkeys) as rows`;
      return row?.rows;
    };
    const before = await count();
    for (let n = 0; n < 3; n += 1) await optionsOf(api, 'sign-in-options', {});
    const unknown = await signInWith(new Authenticator());
    expect(unknown).toMatchObject(REFUSED);
    expect(await count()).toBe(before);
  });

  // @promise passkey-challenge-once
  test('a challenge is answered once, also by two calls at the same time and by an authenticator that does not count', async () => {
    for (const counts of [true, false]) {
      const { authenticator } = await newOwner('finance', new Authenticator({ counts }));
      const options = await optionsOf(api, 'sign-in-options', OWN_PAGE);
      const passkey = authenticator.answer(options);
      const calls = await Promise.all(
        Array.from({ length: 4 }, async () => await post('/session', OWN_PAGE, { passkey })),
      );
      expect(calls.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403, 403, 403]);
      expect(await post('/session', OWN_PAGE, { passkey })).toMatchObject(REFUSED);
      // Another signature of the same challenge is no other answer.
      expect(await post('/session', OWN_PAGE, { passkey: authenticator.answer(options) })).toMatchObject(
        REFUSED,
      );
      expect((await signInWith(authenticator)).status).toBe(200);
    }
  });

  // @promise passkey-challenge-once
  test('a challenge is answered within five minutes, and an answered one is remembered for longer than that', async () => {
    const { authenticator } = await newOwner();
    const options = await optionsOf(api, 'sign-in-options', OWN_PAGE);
    const used = { passkey: authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE)) };
    expect((await post('/session', OWN_PAGE, used)).status).toBe(200);
    await deleteExpiredChallenges(api.sql, api.clock.now + 60 * MINUTE_MS);
    expect(await post('/session', OWN_PAGE, used)).toMatchObject(REFUSED);
    api.clock.now += 5 * MINUTE_MS;
    expect(await post('/session', OWN_PAGE, { passkey: authenticator.answer(options) })).toMatchObject(
      REFUSED,
    );
    api.clock.now -= 5 * MINUTE_MS;
    await deleteExpiredChallenges(api.sql, api.clock.now + 2 * 86_400_000);
    expect(await api.sql`select 1 from used_passkey_challenges`).toEqual([]);
  });

  // @promise passkey-own-origin
  test.each<[string, Faults]>([
    ['from a page of another origin', { origin: 'https://evil.example' }],
    ['from another port of the same host', { origin: 'https://api.example.test:8443' }],
    ['from a host below that of the service', { origin: 'https://x.api.example.test' }],
    ['over http', { origin: 'http://api.example.test' }],
    ['for another host', { rpId: 'evil.example' }],
    ['for the host above that of the service', { rpId: 'example.test' }],
    ['that was made to add a passkey', { type: 'webauthn.create' }],
    ['without a check of who uses the authenticator', { flags: 0b001 }],
    ['without a person', { flags: 0b100 }],
    ['of another user', { userHandle: Buffer.from('mem_00000000000000000000000000').toString('base64url') }],
    ['without a user', { userHandle: null }],
  ])('an answer %s is refused', async (_, faults) => {
    const { authenticator, browser } = await newOwner();
    expect(await signInWith(authenticator, faults)).toMatchObject(REFUSED);
    // In a session, the browser need not name the user of the credential that it was given.
    const raised = await raiseWith(authenticator, browser, faults);
    expect(raised.status).toBe(faults.userHandle === null ? 200 : 403);
    expect((await signInWith(authenticator)).status).toBe(200);
  });

  // @promise passkey-own-origin
  test('an answer with the signature of another key, a changed one or a challenge that the service did not make is refused', async () => {
    const { authenticator } = await newOwner();
    const options = await optionsOf(api, 'sign-in-options', OWN_PAGE);
    const right = authenticator.answer(options);
    const twin = new Authenticator({ credentialId: authenticator.credentialId });
    const wrong = [
      { ...right, signature: twin.answer(options).signature },
      { ...right, signature: Buffer.from('x').toString('base64url') },
      { ...right, authenticatorData: 'AAAA' },
      { ...right, clientDataJSON: Buffer.from('{').toString('base64url') },
      { ...right, clientDataJSON: Buffer.from('null').toString('base64url') },
      { ...right, id: randomBytes(32).toString('base64url') },
      authenticator.answer({ challenge: randomBytes(80).toString('base64url') }),
      authenticator.answer({ challenge: `${options.challenge}=` }),
      authenticator.answer({ challenge: '' }),
    ];
    for (const passkey of wrong) expect(await post('/session', OWN_PAGE, { passkey })).toMatchObject(REFUSED);
    const malformed = [{ ...right, signature: 'ä' }, { ...right, id: '' }, { ...right, extra: 1 }, 'x', null];
    for (const passkey of malformed)
      expect(await post('/session', OWN_PAGE, { passkey })).toMatchObject({ status: 400 });
    // A refused answer does not spend the challenge.
    expect((await post('/session', OWN_PAGE, { passkey: authenticator.answer(options) })).status).toBe(200);
  });

  // @promise passkey-count
  test('an authenticator whose count goes back or stands still is refused, since its key was copied', async () => {
    const { authenticator } = await newOwner();
    expect((await signInWith(authenticator)).status).toBe(200);
    const at = authenticator.signCount;
    for (const before of [at - 1, at - 2]) {
      authenticator.signCount = before;
      expect(await signInWith(authenticator)).toMatchObject(REFUSED);
    }
    authenticator.signCount = at;
    expect((await signInWith(authenticator)).status).toBe(200);
    const [first, second] = [
      await optionsOf(api, 'sign-in-options', OWN_PAGE),
      await optionsOf(api, 'sign-in-options', OWN_PAGE),
    ];
    const one = authenticator.answer(first);
    authenticator.signCount -= 1;
    const two = authenticator.answer(second);
    const calls = await Promise.all(
      [one, two].map(async (passkey) => await post('/session', OWN_PAGE, { passkey })),
    );
    expect(calls.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
  });

  // @promise sign-in-limit
  test('attempts count towards the limit of the address', async () => {
    const limited = await startTestApi({
      trustProxy: 1,
      rateLimits: createRateLimits({ ...NO_RATE_LIMITS, signIn: 2 }),
    });
    const statuses: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const headers = { ...OWN_PAGE, 'x-forwarded-for': '198.51.100.7' };
      const passkey = new Authenticator().answer(await optionsOf(limited, 'sign-in-options', OWN_PAGE));
      statuses.push((await limited.call('POST', '/session', { headers, body: { passkey } })).status);
    }
    expect(statuses).toEqual([403, 403, 429]);
    await limited.close();
  });

  test('neither a challenge nor a sign-in is for a page of another site', async () => {
    const { authenticator } = await newOwner();
    const foreign = { 'sec-fetch-site': 'cross-site' };
    const passkey = authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE));
    for (const [path, body] of [
      ['/session/passkeys/sign-in-options', undefined],
      ['/session', { passkey }],
    ] as const)
      expect(await api.call('POST', path, { headers: foreign, ...(body && { body }) })).toMatchObject({
        status: 403,
        body: { code: 'cross_origin' },
      });
  });
});

describe('paying with a passkey', () => {
  // @promise member-pays-with-passkey, post-passkey-raise-options
  test('a session of the member pays for 15 minutes after an answer of a passkey, and payouts are booked on the member', async () => {
    const { member, authenticator } = await newOwner();
    const browser = await signInMember(api, member, manager);
    expect((await draft(browser)).body.code).toBe('session_not_raised');
    expect(await raiseWith(authenticator, browser)).toMatchObject({
      status: 200,
      body: { raisedKeyId: member.keyId, raisedUntil: api.clock.now + 15 * MINUTE_MS },
    });
    expect((await draft(browser)).status).not.toBe(403);
    api.clock.now += 15 * MINUTE_MS;
    expect((await draft(browser)).body.code).toBe('session_not_raised');
    api.clock.now -= 15 * MINUTE_MS;
  });

  // @promise passkey-challenge-once, passkey-of-one-member
  test('an answer of a passkey counts once, for the session that asked and for what it asked, and from no other member', async () => {
    const one = await newOwner();
    const two = await newOwner();
    const [browser, other] = [
      await signInMember(api, one.member, manager),
      await signInMember(api, one.member, manager),
    ];
    const options = await optionsOf(api, 'raise-options', browser);
    const passkey = one.authenticator.answer(options);
    // Of another session, as a sign-in, and by the passkey of another member.
    expect(await post('/session/raise', other, { passkey })).toMatchObject(REFUSED);
    expect(await post('/session', OWN_PAGE, { passkey })).toMatchObject(REFUSED);
    expect(
      await post('/session/raise', browser, { passkey: two.authenticator.answer(options) }),
    ).toMatchObject(REFUSED);
    const signInChallenge = await optionsOf(api, 'sign-in-options', OWN_PAGE);
    expect(
      await post('/session/raise', browser, { passkey: one.authenticator.answer(signInChallenge) }),
    ).toMatchObject(REFUSED);
    api.clock.now += 1_000;
    const right = { passkey: one.authenticator.answer(options) };
    const calls = await Promise.all([1, 2, 3].map(async () => await post('/session/raise', browser, right)));
    expect(calls.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1);
    api.clock.now += 1_000;
    expect(await post('/session/raise', browser, right)).toMatchObject(REFUSED);
    const [row] = await api.sql<{ rows: number }>`
      select count(*) as rows from audit_rows r join sessions s on s.id = r.object_id
       where s.key_id = ${one.member.keyId} and r.action = 'raised'`;
    expect(row?.rows).toBe(1);
    api.clock.now -= 2_000;
  });

  // @promise member-pays-with-passkey
  test('paying with a passkey needs a role that pays, and a passkey that was added in a session that could pay', async () => {
    const { member, authenticator, browser } = await newOwner('analyst');
    expect((await raiseWith(authenticator, browser)).body.code).toBe('forbidden');
    await api.call('PATCH', `/accounts/${app.accountId}/members/${member.id}`, {
      headers: manager,
      body: { role: 'finance' },
    });
    const refused = await raiseWith(authenticator, browser);
    expect(refused).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(refused.body.detail).toContain('signs in and does not pay');
    expect((await signInWith(authenticator)).body).toMatchObject({
      member: { id: member.id },
      raisedKeyId: null,
    });
  });

  test('a session of a key has no passkeys, and pays with none', async () => {
    const { authenticator } = await newOwner();
    const browser = await signIn(api, app.key);
    for (const kind of ['options', 'raise-options'])
      expect((await post(`/session/passkeys/${kind}`, browser)).body.code).toBe('forbidden');
    expect((await api.call<Answer>('GET', '/session/passkeys', { headers: browser })).body.code).toBe(
      'forbidden',
    );
    const passkey = authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE));
    expect(await post('/session/raise', browser, { passkey })).toMatchObject(REFUSED);
    expect((await api.call('GET', '/session/passkeys', { key: app.key })).status).toBe(401);
  });
});

describe('adding a passkey', () => {
  // @promise post-passkey-options, passkey-needs-proof
  test('to add a passkey, a member whose role pays needs a mailed link of the last 15 minutes or another passkey: a copied link does not suffice', async () => {
    const member = await newMember(api, app, manager, 'finance');
    const copied = await signInMember(api, member, manager);
    expect((await post('/session/passkeys/options', copied)).body.code).toBe('session_not_raised');
    // Nor does a key, with which an owner could become the member whose link was copied.
    expect((await post('/session/raise', copied, { key: app.key })).status).toBe(200);
    expect((await post('/session/passkeys/options', copied)).body.code).toBe('session_not_raised');
    const mailed = await signInByMail(member);
    const first = new Authenticator();
    await addPasskeyOf(api, first, mailed);
    api.clock.now += 15 * MINUTE_MS;
    expect((await post('/session/passkeys/options', mailed)).body.code).toBe('session_not_raised');
    await raiseWith(first, mailed);
    await addPasskeyOf(api, new Authenticator(), mailed);
    api.clock.now -= 15 * MINUTE_MS;
  });

  // @promise passkey-needs-proof
  test('without a mail server, a session that a key lets pay adds a passkey', async () => {
    const silent = await startTestApi();
    const own = await newApp(silent);
    const by = await signInManager(silent, own);
    const browser = await signInMember(silent, await newMember(silent, own, by, 'owner'), by);
    const ask = async () =>
      await silent.call<Answer>('POST', '/session/passkeys/options', { headers: browser });
    expect((await ask()).body.code).toBe('session_not_raised');
    await silent.call('POST', '/session/raise', { headers: browser, body: { key: own.key } });
    await addPasskeyOf(silent, new Authenticator(), browser);
    await silent.close();
  });

  // @promise passkey-needs-proof
  test('to add a passkey, a member whose role does not pay needs a session of the last 15 minutes', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const browser = await signInMember(api, member, manager);
    const options = await optionsOf(api, 'options', browser);
    api.clock.now += 15 * MINUTE_MS + 1;
    expect((await post('/session/passkeys/options', browser)).body.code).toBe('session_too_old');
    const body = { name: 'Late', ...new Authenticator().create(options) };
    expect((await post('/session/passkeys', browser, body)).body.code).toBe('session_too_old');
    api.clock.now -= 15 * MINUTE_MS + 1;
    await addPasskeyOf(api, new Authenticator(), browser);
  });

  // @promise passkey-own-origin
  test.each<[string, Faults]>([
    ['of a page of another origin', { origin: 'https://evil.example' }],
    ['for another host', { rpId: 'evil.example' }],
    ['that was made to sign in', { type: 'webauthn.get' }],
    ['without a check of who uses the authenticator', { flags: 0b001 }],
  ])('a credential %s is refused', async (_, faults) => {
    const { browser } = await newOwner();
    const options = await optionsOf(api, 'options', browser);
    const body = { name: 'Wrong', ...new Authenticator().create(options, faults) };
    expect(await post('/session/passkeys', browser, body)).toMatchObject(REFUSED);
    expect(
      (await post('/session/passkeys', browser, { name: 'Right', ...new Authenticator().create(options) }))
        .status,
    ).toBe(201);
  });

  // @promise passkey-challenge-once, passkey-of-one-member
  test('a challenge adds one passkey, in its session, and a credential belongs to one member', async () => {
    const one = await newOwner();
    const two = await newOwner();
    const options = await optionsOf(api, 'options', one.browser);
    const foreign = { name: 'Foreign', ...new Authenticator().create(options) };
    expect(await post('/session/passkeys', two.browser, foreign)).toMatchObject(REFUSED);
    const calls = await Promise.all(
      [1, 2, 3].map(
        async (n) =>
          await post('/session/passkeys', one.browser, {
            name: `At once ${n}`,
            ...new Authenticator().create(options),
          }),
      ),
    );
    expect(calls.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 403, 403]);
    const again = {
      name: 'Again',
      ...one.authenticator.create(await optionsOf(api, 'options', two.browser)),
    };
    expect((await post('/session/passkeys', two.browser, again)).body.code).toBe('passkey_exists');
    const garbage = { name: 'Garbage', ...one.authenticator.create(options), attestationObject: 'AAAA' };
    expect(await post('/session/passkeys', two.browser, garbage)).toMatchObject(REFUSED);
    for (const name of ['', 'a\u202eb', 'x'.repeat(201)])
      expect((await post('/session/passkeys', two.browser, { ...garbage, name })).status).toBe(400);
  });

  test.each<[string, ConstructorParameters<typeof Authenticator>[0]]>([
    ['an id of 16 bytes', { credentialId: randomBytes(16) }],
    ['an id of 1,023 bytes', { credentialId: randomBytes(1_023) }],
    ['a key of 2,048 bytes', { keyBytes: 2_048 }],
  ])('a credential with %s is added, and signs in', async (_, given) => {
    const { authenticator } = await newOwner('finance', new Authenticator(given));
    expect((await signInWith(authenticator)).status).toBe(200);
  });

  test.each<[string, ConstructorParameters<typeof Authenticator>[0]]>([
    ['an id of 15 bytes', { credentialId: randomBytes(15) }],
    ['a key of 2,049 bytes', { keyBytes: 2_049 }],
  ])('a credential with %s is refused', async (_, given) => {
    const { browser } = await newOwner();
    const made = new Authenticator(given).create(await optionsOf(api, 'options', browser));
    expect(await post('/session/passkeys', browser, { name: 'Odd', ...made })).toMatchObject(REFUSED);
  });

  test('a credential under another id than its own is refused, also under another text of its id', async () => {
    const { browser } = await newOwner();
    const authenticator = new Authenticator({ credentialId: Buffer.alloc(16) });
    const made = authenticator.create(await optionsOf(api, 'options', browser));
    const ids = [randomBytes(16).toString('base64url'), made.id.replace(/A$/, 'B')];
    expect(Buffer.from(ids[1] ?? '', 'base64url')).toEqual(authenticator.credentialId);
    for (const id of ids)
      expect(await post('/session/passkeys', browser, { name: 'Other', ...made, id })).toMatchObject(REFUSED);
    const none = new Authenticator({ credentialId: Buffer.alloc(0) });
    const withoutId = none.create(await optionsOf(api, 'options', browser));
    const body = { name: 'None', ...withoutId, id: made.id };
    expect(await post('/session/passkeys', browser, body)).toMatchObject(REFUSED);
  });

  // @promise passkey-ends-with-member
  test('a member who is removed while a passkey is added gets none, and the session has ended', async () => {
    const { browser, member } = await newOwner();
    const made = new Authenticator().create(await optionsOf(api, 'options', browser));
    const other = new pg.Client(api.database.url);
    await other.connect();
    await other.query('begin');
    await other.query('update members set removed_at = now(), email = null where id = $1', [member.id]);
    const adding = post('/session/passkeys', browser, { name: 'Late', ...made });
    await untilWaiting(api.sql);
    await other.query('commit');
    await other.end();
    expect(await adding).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(
      await api.sql`select id from passkeys where member_id = ${member.id} and revoked_at is null`,
    ).toEqual([]);
  });

  // @promise post-passkeys
  test('a member has 20 passkeys at most', async () => {
    const { browser, member } = await newOwner();
    await api.sql`
      insert into passkeys (id, account_id, member_id, name, credential_id, public_key, sign_count, raises, created_at)
      select 'psk_' || lpad(n::text, 26, '0'), ${app.accountId}, ${member.id}, 'Other', sha256(convert_to(n::text, 'utf8')), 'x', 0, false, now()
        from generate_series(2, ${MOST_PASSKEYS}::int) n`;
    const body = { name: 'More', ...new Authenticator().create(await optionsOf(api, 'options', browser)) };
    expect(await post('/session/passkeys', browser, body)).toMatchObject({
      status: 409,
      body: { code: 'too_many_passkeys' },
    });
  });

  // @promise post-passkeys
  test('a member adds 20 passkeys within an hour at most, also if they are revoked, since each is a mail', async () => {
    const { browser, member } = await newOwner();
    const now = api.clock.now;
    await api.sql`
      insert into passkeys (id, account_id, member_id, name, credential_id, public_key, sign_count, raises, created_at)
      select 'psk_' || lpad((n + 100)::text, 26, '0'), ${app.accountId}, ${member.id}, 'Other', sha256(convert_to((n + 100)::text, 'utf8')), 'x', 0, false,
             to_timestamp(${now / 1000}) from generate_series(2, ${MOST_PASSKEYS}::int) n`;
    await api.sql`
      update passkeys set revoked_at = now(), credential_id = null, public_key = null where member_id = ${member.id}`;
    const add = async () => {
      const body = { name: 'More', ...new Authenticator().create(await optionsOf(api, 'options', browser)) };
      return await post('/session/passkeys', browser, body);
    };
    expect(await add()).toMatchObject({ status: 409, body: { code: 'too_many_passkeys' } });
    expect((await api.call('GET', '/session/passkeys', { headers: browser })).body).toEqual({ passkeys: [] });
  });

  test.each(['https://192.0.2.1', 'http://api.example.test', 'https://[2001:db8::1]'])(
    'at the address %s, browsers allow no passkeys, and the service says so',
    async (publicUrl) => {
      const other = await startTestApi({ publicUrl });
      const { body } = await other.call('GET', '/session', {});
      expect(body).not.toHaveProperty('takesPasskeys');
      expect(await other.call('POST', '/session/passkeys/sign-in-options', {})).toMatchObject({
        status: 409,
        body: { code: 'passkeys_not_possible' },
      });
      await other.close();
    },
  );

  test('the service says where passkeys are possible', async () => {
    const { browser } = await newOwner();
    const { body } = await api.call('GET', '/session', { headers: browser });
    expect(body).toMatchObject({ takesPasskeys: true, session: { takesPasskeys: true } });
  });
});

describe('the list of passkeys', () => {
  // @promise get-passkeys
  test('the list has the passkeys of the member who is signed in, with their last use, and no other', async () => {
    const { browser, authenticator, passkeyId } = await newOwner();
    await newOwner();
    const list = async () => (await api.call<Answer>('GET', '/session/passkeys', { headers: browser })).body;
    const row = { id: passkeyId, name: 'Laptop', raises: true, createdAt: api.clock.now };
    expect(await list()).toEqual({ passkeys: [{ ...row, lastUsedAt: null }] });
    await signInWith(authenticator);
    expect(await list()).toEqual({ passkeys: [{ ...row, lastUsedAt: api.clock.now }] });
  });

  // @promise revoke-passkey
  test('a revoked passkey signs in no more and pays no more, and its key is erased', async () => {
    const { browser, authenticator, passkeyId } = await newOwner();
    const other = await newOwner();
    const path = `/session/passkeys/${passkeyId}/revoke`;
    expect((await post(path, other.browser)).status).toBe(404);
    const pending = authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE));
    expect((await post(path, browser)).status).toBe(200);
    expect((await post(path, browser)).status).toBe(200);
    expect(await post('/session', OWN_PAGE, { passkey: pending })).toMatchObject(REFUSED);
    expect(await raiseWith(authenticator, browser)).toMatchObject(REFUSED);
    const rows = await api.sql`select credential_id, public_key from passkeys where id = ${passkeyId}`;
    expect(rows).toEqual([{ credentialId: null, publicKey: null }]);
  });

  // @promise passkey-ends-with-member
  test('removing a member revokes the passkeys, in the same statement', async () => {
    const { member, authenticator, passkeyId } = await newOwner();
    const pending = authenticator.answer(await optionsOf(api, 'sign-in-options', OWN_PAGE));
    await post(`/accounts/${app.accountId}/members/${member.id}/remove`, manager);
    expect(await post('/session', OWN_PAGE, { passkey: pending })).toMatchObject(REFUSED);
    const rows = await api.sql`
      select credential_id, public_key, revoked_at is not null as is_revoked from passkeys where id = ${passkeyId}`;
    expect(rows).toEqual([{ credentialId: null, publicKey: null, isRevoked: true }]);
    const add = api.sql`
      insert into passkeys (id, account_id, member_id, name, credential_id, public_key, sign_count, raises, created_at)
      values ('psk_00000000000000000000009999', ${app.accountId}, ${member.id}, 'x', ${randomBytes(32)}, 'x', 0, true, now())`;
    await expect(add).rejects.toThrow('is given to nobody who is a member of the account');
  });

  test('a passkey does not change by SQL: neither its member nor its key, its count only upwards, and it is never deleted', async () => {
    const { passkeyId } = await newOwner();
    for (const change of [
      'member_id = (select id from members where id <> member_id limit 1)',
      "public_key = 'x'",
      'sign_count = 0',
      'raises = not raises',
      'revoked_at = now()',
    ])
      await expect(
        api.sql(
          Object.assign([`update passkeys set ${change} where id = '${passkeyId}'`], { raw: [] as string[] }),
        ),
      ).rejects.toThrow(/does not change this way|passkey_revoked_without_key/);
    await expect(api.sql`delete from passkeys where id = ${passkeyId}`).rejects.toThrow('never deleted');
  });

  test('each new passkey has a mail to its member, once, with its name and what it can do', async () => {
    const { browser, member, passkeyId } = await newOwner();
    const mails = await api.sql<{ id: EmailId; subjectId: string }>`
      select id, subject_id from emails where member_id = ${member.id} and kind = 'passkey_added'`;
    expect(mails).toMatchObject([{ subjectId: passkeyId }]);
    const factsNow = async () => {
      const email = await loadEmail(api.sql, mails[0]?.id as EmailId);
      if (email === undefined) throw new Error('the mail is missing');
      expect(email).toMatchObject({ address: member.email, accountId: app.accountId, appId: null });
      return await readMailFacts(
        {
          sql: api.sql,
          secretBox: createSecretBox([TEST_KEY]),
          publicUrl: 'https://t.example/',
          titleOf: String,
        },
        email,
      );
    };
    expect(await factsNow()).toMatchObject({
      kind: 'passkey_added',
      passkeyName: 'Laptop',
      addedAt: api.clock.now,
      raises: true,
      isRevoked: false,
      pageUrl: 'https://t.example/console/access',
    });
    await post(`/session/passkeys/${passkeyId}/revoke`, browser);
    expect(await factsNow()).toMatchObject({ isRevoked: true });
  });

  // @promise passkey-audit
  test('adding and revoking write audit rows with the name, and nothing of the key', async () => {
    const { browser, passkeyId, member, authenticator } = await newOwner();
    await post(`/session/passkeys/${passkeyId}/revoke`, browser);
    const rows = await api.sql`
      select actor_kind, key_id, action, object_label, after from audit_rows where object_id = ${passkeyId} order by changed_at, id`;
    expect(rows).toMatchObject([
      {
        actorKind: 'session',
        keyId: member.keyId,
        action: 'created',
        objectLabel: 'Laptop',
        after: { memberId: member.id, name: 'Laptop', raises: true },
      },
      { actorKind: 'session', keyId: member.keyId, action: 'revoked', after: { revokedAt: api.clock.now } },
    ]);
    expect(JSON.stringify(rows)).not.toContain(authenticator.credentialId.toString('hex'));
  });
});
