import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { rotateAccountKey, revokeAccountKey } from '../../src/db/account-keys.ts';
import { createMemberLink, mailSignInLinks } from '../../src/db/member-links.ts';
import type { KeyId, MemberId } from '../../src/domain/ids.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { MEMBER_ROLES, ROLE_PERMISSIONS } from '../../src/domain/members.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { routes } from '../../src/http/routes.ts';
import { newAccount, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { copiedToken, newMember, openLink, signInManager, signInMember } from '../support/members.ts';
import type { Browser, TestMember } from '../support/members.ts';
import { requestOf } from '../support/route-requests.ts';
import { OWN_PAGE, signIn } from '../support/sessions.ts';
import { untilWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;
let manager: Browser;

beforeAll(async () => {
  api = await startTestApi();
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
  readonly role?: string;
  readonly email?: string | null;
  readonly isMailed?: boolean;
  readonly items?: readonly { readonly id: string; readonly lastActiveAt: number | null }[];
  readonly errors?: readonly { readonly path: string }[];
}

const call = async (method: string, path: string, headers: Browser, body?: object) =>
  await api.call<Answer>(method, path, { headers, ...(body === undefined ? {} : { body }) });
const membersOf = ({ accountId }: Pick<TestMember, 'accountId'>) => `/accounts/${accountId}/members`;
const patch = async (member: TestMember, by: Browser, body: object) =>
  await call('PATCH', `${membersOf(member)}/${member.id}`, by, body);
const remove = async (member: TestMember, by: Browser) =>
  await call('POST', `${membersOf(member)}/${member.id}/remove`, by);
const statusOf = async (headers: Browser, path: string) => (await call('GET', path, headers)).status;

describe('roles', () => {
  // @promise member-roles
  test.each(MEMBER_ROLES)('a member with the role %s has its permissions, and no other', async (role) => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const member = await newMember(api, own, by, role);
    const browser = await signInMember(api, member, by);
    const wrong: string[] = [];
    // Every route checks its permission in the same place.
    const some = PERMISSIONS.flatMap((permission) =>
      routes.filter((route) => route.auth === 'account' && route.permission === permission).slice(0, 8),
    );
    for (const route of some) {
      if (
        route.permission === null ||
        (route.permission === 'payout' && role !== 'admin' && role !== 'analyst')
      )
        continue;
      // A body that is no JSON is refused after the permission was checked, before anything is changed.
      const { path } = requestOf(route, ({ name, kind }) => (name === 'appId' ? own.appId : `${kind}_none`));
      const body = route.body === null ? {} : { body: '{ this is no JSON' };
      const { status } = await api.call(route.method, path, { headers: browser, ...body });
      const isGranted = ROLE_PERMISSIONS[role].includes(route.permission);
      if ((status === 403) === isGranted) wrong.push(`${route.method} ${route.path} ${status}`);
    }
    expect(wrong).toEqual([]);
  });

  test('the database gives the key of a member the permissions of the role', async () => {
    const rows = await api.sql<{ role: 'owner'; permissions: string[] }>`
      select role, permissions_of_role(role) as permissions from unnest(${[...MEMBER_ROLES]}::text[]) role`;
    expect(Object.fromEntries(rows.map(({ role, permissions }) => [role, permissions]))).toEqual(
      ROLE_PERMISSIONS,
    );
  });

  // @promise patch-member
  test('sessions have a changed role from the next call on', async () => {
    const member = await newMember(api, app, manager, 'admin');
    const browser = await signInMember(api, member, manager);
    const settings = `/apps/${app.appId}/settings`;
    const write = async () => (await call('PATCH', settings, browser, { holdPeriodDays: 30 })).status;
    expect(await write()).toBe(200);
    expect(await patch(member, manager, { role: 'analyst' })).toMatchObject({
      status: 200,
      body: { role: 'analyst' },
    });
    expect(await write()).toBe(403);
    expect(await statusOf(browser, settings)).toBe(200);
  });
});

describe('who manages members', () => {
  // @promise member-managers
  test('an owner and a session of the operator do; other roles, and keys with every permission, do not', async () => {
    const target = await newMember(api, app, manager, 'analyst');
    const owner = await signInMember(api, await newMember(api, app, manager, 'owner'), manager);
    const others = [await signIn(api, app.key)];
    for (const role of ['admin', 'finance', 'analyst'] as const)
      others.push(await signInMember(api, await newMember(api, app, manager, role), manager));
    const path = membersOf(target);
    const calls: readonly (readonly [method: string, path: string, body?: object])[] = [
      ['GET', path],
      ['POST', path, { email: 'new@example.com', name: 'New', role: 'owner' }],
      ['PATCH', `${path}/${target.id}`, { role: 'owner' }],
      ['POST', `${path}/${target.id}/sign-in-links`],
      ['POST', `${path}/${target.id}/sign-in-links/send`],
      ['POST', `${path}/${target.id}/remove`],
    ];
    for (const [method, to, body] of calls) {
      for (const browser of others) {
        expect([to, await call(method, to, browser, body)]).toMatchObject([
          to,
          { status: 403, body: { code: 'forbidden' } },
        ]);
      }
      expect((await api.call(method, to, { key: app.key, ...(body && { body }) })).status).toBe(401);
    }
    const [row] = await api.sql`select role, removed_at from members where id = ${target.id}`;
    expect(row).toEqual({ role: 'analyst', removedAt: null });
    expect((await patch(target, owner, { role: 'admin' })).status).toBe(200);
    expect((await remove(target, owner)).status).toBe(200);
  });

  // @promise member-payout-given
  test('a session that may not pay gives nobody the right to pay, as a member or for an app more', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const analyst = await newMember(api, own, by, 'analyst');
    const limited = await newMember(api, own, by, 'finance', { appIds: [own.appId] });
    const owner = await signInMember(api, await newMember(api, own, by, 'owner'), by);
    const invite = async (browser: Browser, role: string) => {
      const body = { email: `${role}-${own.appId}@example.com`, name: 'New', role };
      return await call('POST', membersOf(analyst), browser, body);
    };
    const refused = { status: 403, body: { code: 'session_not_raised' } };
    const expectRefused = async (browser: Browser) => {
      expect(await invite(browser, 'finance')).toMatchObject(refused);
      expect(await patch(analyst, browser, { role: 'owner' })).toMatchObject(refused);
      expect(await patch(limited, browser, { appIds: null })).toMatchObject(refused);
    };
    await expectRefused(owner);
    // What gives no such right needs none.
    expect((await invite(owner, 'admin')).status).toBe(201);
    expect((await patch(limited, owner, { name: 'Renamed', role: 'finance' })).status).toBe(200);

    // Not either where the role that was read is changed meanwhile: both changes decide on the row that they lock.
    const other = new pg.Client(api.database.url);
    await other.connect();
    try {
      await other.query('begin');
      await other.query(`update members set role = 'analyst' where id = $1`, [limited.id]);
      const widening = patch(limited, owner, { role: 'finance' });
      await untilWaiting(api.sql);
      await other.query('update members set app_ids = null where id = $1', [limited.id]);
      await other.query('commit');
      expect(await widening).toMatchObject(refused);
    } finally {
      await other.end();
    }
    await api.sql`update members set role = 'finance', app_ids = array[${own.appId}] where id = ${limited.id}`;

    // A session of a link of the operator gives it for fifteen minutes, and any after a key that pays was entered.
    api.clock.now += 16 * 60_000;
    await expectRefused(by);
    api.clock.now -= 16 * 60_000;
    const raised = await call('POST', '/session/raise', owner, { key: own.key });
    expect(raised.status).toBe(200);
    expect((await invite(owner, 'finance')).status).toBe(201);
    expect((await patch(analyst, owner, { role: 'owner' })).status).toBe(200);
    expect((await patch(limited, owner, { appIds: null })).status).toBe(200);
  });

  // @promise member-key-hidden
  test('the key of a member is in no list of keys, and nobody rotates or revokes it', async () => {
    const member = await newMember(api, app, manager, 'owner');
    const browser = await signInMember(api, member, manager);
    const keys = `/accounts/${app.accountId}/keys`;
    expect((await call('GET', keys, manager)).text).not.toContain(member.keyId);
    expect((await call('POST', `${keys}/${member.keyId}/revoke`, manager)).status).toBe(404);
    expect((await call('POST', `${keys}/${member.keyId}/rotate`, manager, {})).status).toBe(404);
    const keyId = member.keyId as KeyId;
    expect(await revokeAccountKey(api.sql, keyId)).toBe(false);
    expect(await rotateAccountKey(api.sql, keyId, api.clock.now, api.clock.now)).toBeUndefined();
    // What a process of an older version asks for, which would not know of roles and apps.
    const taken = await api.sql`
      select 1 from account_keys k where k.id = ${keyId} and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`;
    expect(taken).toEqual([]);
    expect(await statusOf(browser, '/apps')).toBe(200);
  });

  // @promise account-tenant-members
  test('members of another account are a 404, and so are those of the own account under the id of another one', async () => {
    const other = await newApp(api);
    const theirs = await newMember(api, other, await signInManager(api, other), 'analyst');
    for (const accountId of [app.accountId, other.accountId]) {
      const path = `/accounts/${accountId}/members/${theirs.id}`;
      expect((await call('PATCH', path, manager, { role: 'owner' })).status).toBe(404);
      expect((await call('POST', `${path}/remove`, manager)).status).toBe(404);
      expect((await call('POST', `${path}/sign-in-links`, manager)).status).toBe(404);
    }
    expect((await call('GET', membersOf(theirs), manager)).status).toBe(404);
  });
});

describe('inviting', () => {
  // @promise post-member, post-member-sign-in-links
  test('without a mail server, the answer says that the link has to be copied, which works once', async () => {
    const body = { email: 'Ann@Example.com', name: 'Ann', role: 'finance', appIds: [app.appId, app.appId] };
    const added = await call('POST', membersOf(app), manager, body);
    expect([added.status, added.body]).toEqual([
      201,
      {
        id: expect.stringMatching(/^mem_/),
        keyId: expect.stringMatching(/^key_/),
        ...body,
        appIds: [app.appId],
        createdAt: api.clock.now,
        lastActiveAt: null,
        removedAt: null,
        invitation: null,
        isMailed: false,
      },
    ]);
    const member = { id: String(added.body.id), accountId: app.accountId };
    const token = await copiedToken(api, member, manager);
    const attempts = await Promise.all(
      Array.from(
        { length: 4 },
        async () => await api.call('POST', '/session', { body: { token }, headers: OWN_PAGE }),
      ),
    );
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
    const stored = await api.sql`select 1 from sign_in_links where token_sha256 = ${Buffer.from(token)}`;
    expect(stored).toEqual([]);
  });

  test('a copied link that is a day old signs nobody in', async () => {
    const member = await newMember(api, app, manager, 'analyst');
    const token = await copiedToken(api, member, manager);
    api.clock.now += DAY_MS;
    await expect(openLink(api, token)).rejects.toThrow('invalid_sign_in_link');
    api.clock.now -= DAY_MS;
  });

  test.each([
    [
      'an address that is that of a member in another case',
      { email: 'BOB@example.com' },
      409,
      'member_exists',
    ],
    ['a name that reads as another one', { name: 'Ann \u202Enimda' }, 400, 'invalid_request'],
    ['no address', { email: 'ann' }, 400, 'invalid_request'],
    ['a role that is none', { role: 'root' }, 400, 'invalid_request'],
    ['no app', { appIds: [] }, 400, 'invalid_request'],
    ['a text that is no id', { appIds: ['x'] }, 400, 'invalid_request'],
    ['an owner of some apps', { role: 'owner' }, 400, 'invalid_request'],
    ['permissions of its own', { permissions: PERMISSIONS }, 400, 'invalid_request'],
  ])('%s is refused', async (_, fields, status, code) => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    await newMember(api, own, by, 'analyst', { email: 'bob@example.com' });
    const body = { email: 'ann@example.com', name: 'Ann', role: 'analyst', appIds: [own.appId], ...fields };
    expect(await call('POST', membersOf(own), by, body)).toMatchObject({ status, body: { code } });
  });

  // @promise member-foreign-app
  test('an app of another account is refused as an unknown one is, also by SQL', async () => {
    const other = await newApp(api);
    const member = await newMember(api, app, manager, 'analyst');
    for (const appId of [other.appId, app.appId.replace(/.{4}$/, '0000')]) {
      const body = { email: 'app@example.com', name: 'App', role: 'analyst', appIds: [appId] };
      const answer = await call('POST', membersOf(app), manager, body);
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: 'appIds' }] } });
      expect(await patch(member, manager, { appIds: [appId] })).toMatchObject({ status: 400 });
    }
    const change = api.sql`update members set app_ids = ${[other.appId]} where id = ${member.id}`;
    await expect(change).rejects.toThrow('is given an app that the account does not have');
  });

  test('an address that was removed can be invited again, and is another member', async () => {
    const first = await newMember(api, app, manager, 'admin', { email: 'again@example.com' });
    const browser = await signInMember(api, first, manager);
    await remove(first, manager);
    const second = await newMember(api, app, manager, 'analyst', { email: 'Again@example.com' });
    expect(second.id).not.toBe(first.id);
    expect(await statusOf(browser, '/apps')).toBe(401);
  });
});

describe('removing', () => {
  // @promise remove-member
  test('ends sessions and links at once, erases the address, and is done once', async () => {
    const member = await newMember(api, app, manager, 'admin', { email: 'leaves@example.com' });
    const browser = await signInMember(api, member, manager);
    const token = await copiedToken(api, member, manager);
    const removed = await remove(member, manager);
    expect(removed).toMatchObject({ status: 200, body: { email: null, removedAt: api.clock.now } });
    expect(await statusOf(browser, '/apps')).toBe(401);
    await expect(openLink(api, token)).rejects.toThrow('invalid_sign_in_link');
    api.clock.now += 1;
    expect((await remove(member, manager)).body).toEqual(removed.body);
    expect((await patch(member, manager, { role: 'owner' })).status).toBe(404);
    expect((await call('POST', `${membersOf(member)}/${member.id}/sign-in-links`, manager)).status).toBe(404);
    const back = api.sql`update members set removed_at = null, email = 'x@example.com' where id = ${member.id}`;
    await expect(back).rejects.toThrow('does not change this way');
    expect((await call('GET', `${membersOf(app)}?limit=100`, manager)).text).not.toContain(member.id);
  });

  // @promise remove-member
  test.each<[string, (owner: TestMember) => Promise<unknown>]>([
    ['is removed', async (owner) => await remove(owner, manager)],
    ['gets another role', async (owner) => await patch(owner, manager, { role: 'admin' })],
    [
      'is removed by SQL',
      async ({ id }) => await api.sql`update members set removed_at = now(), email = null where id = ${id}`,
    ],
  ])('an owner who %s has no way in by the links that the owner copied for other members', async (_, end) => {
    const owner = await newMember(api, app, manager, 'owner');
    const by = await signInMember(api, owner, manager);
    const [one, other] = [
      await newMember(api, app, manager, 'owner'),
      await newMember(api, app, manager, 'analyst'),
    ];
    const spent = await signInMember(api, one, by);
    const unspent = await copiedToken(api, other, by);
    const own = await signInMember(api, one, manager);
    expect(await statusOf(spent, '/apps')).toBe(200);
    await patch(owner, manager, { name: 'Renamed' });
    expect(await statusOf(spent, '/apps')).toBe(200);
    await end(owner);
    expect(await statusOf(spent, '/apps')).toBe(401);
    await expect(openLink(api, unspent)).rejects.toThrow('invalid_sign_in_link');
    // One of a call that had begun before.
    const made = { makerKeyId: owner.keyId as KeyId, now: api.clock.now };
    const late = await createMemberLink(api.sql, app.accountId, other.id as MemberId, made);
    await expect(openLink(api, late?.token ?? '')).rejects.toThrow('invalid_sign_in_link');
    expect(await statusOf(own, '/apps')).toBe(200);
  });

  // @promise remove-member
  test('a copied link that is opened while its maker is removed starts no session that goes on', async () => {
    const owner = await newMember(api, app, manager, 'owner');
    const by = await signInMember(api, owner, manager);
    const token = await copiedToken(api, await newMember(api, app, manager, 'admin'), by);
    const other = new pg.Client(api.database.url);
    await other.connect();
    try {
      await other.query('begin');
      await other.query('update members set removed_at = now(), email = null where id = $1', [owner.id]);
      const opening = openLink(api, token);
      await untilWaiting(api.sql);
      await other.query('commit');
      await expect(opening).rejects.toThrow('invalid_sign_in_link');
    } finally {
      await other.end();
    }
  });

  // @promise last-owner
  test('the last owner can neither be removed nor get another role, also by SQL', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const owner = await newMember(api, own, by, 'owner');
    await newMember(api, own, by, 'admin');
    for (const refused of [await remove(owner, by), await patch(owner, by, { role: 'admin' })])
      expect(refused).toMatchObject({ status: 409, body: { code: 'last_owner' } });
    await expect(api.sql`update members set role = 'analyst' where id = ${owner.id}`).rejects.toThrow(
      'the last owner',
    );
    await expect(api.sql`delete from members where id = ${owner.id}`).rejects.toThrow('never deleted');
    const second = await newMember(api, own, by, 'owner');
    await expect(
      api.sql`update members set role = 'analyst' where account_id = ${own.accountId}`,
    ).rejects.toThrow('the last owner');
    expect((await patch(owner, by, { role: 'admin' })).status).toBe(200);
    expect((await remove(second, by)).body.code).toBe('last_owner');
  });

  // @promise last-owner
  test('of two owners who remove each other at the same time, exactly one succeeds', async () => {
    for (let round = 0; round < 8; round += 1) {
      const own = await newAccount(api);
      const by = await signInManager(api, own);
      const [one, other] = [await newMember(api, own, by, 'owner'), await newMember(api, own, by, 'owner')];
      const [first, second] = [await signInMember(api, one, by), await signInMember(api, other, by)];
      const answers = await Promise.all([remove(other, first), remove(one, second)]);
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
      // The one who was removed before the own call began is signed out.
      expect([
        [200, 401],
        [200, 409],
      ]).toContainEqual(statuses);
      const [left] = await api.sql`
        select count(*)::int as owners from members where account_id = ${own.accountId} and role = 'owner' and removed_at is null`;
      expect(left).toEqual({ owners: 1 });
    }
  });
});

describe('the audit', () => {
  // @promise member-audit
  test('has each change with who made it, without the address, and what a member does with the name of the member', async () => {
    const own = await newApp(api);
    const by = await signInManager(api, own);
    const member = await newMember(api, own, by, 'admin', { email: 'secret@example.com', name: 'Ann' });
    const browser = await signInMember(api, member, by);
    await patch(member, by, { role: 'finance', name: 'Ann B.' });
    await remove(member, by);
    expect(await statusOf(browser, '/apps')).toBe(401);
    const answer = await api.call<{ items: Record<string, unknown>[] }>(
      'GET',
      `/accounts/${own.accountId}/audit?limit=50`,
      { headers: by },
    );
    expect(answer.text).not.toContain('secret@example.com');
    const rows = answer.body.items.filter(({ object }) => JSON.stringify(object).includes(member.id));
    expect(rows).toMatchObject([
      {
        action: 'changed',
        actor: { kind: 'session' },
        after: { removedAt: expect.any(Number), email: null },
      },
      {
        action: 'changed',
        before: { role: 'admin', name: 'Ann' },
        after: { role: 'finance', name: 'Ann B.' },
      },
      { action: 'created', before: null, after: { email: '(not kept)', name: 'Ann', role: 'admin' } },
    ]);
    expect(
      answer.body.items.filter(({ object }) => JSON.stringify(object).includes('account_key')),
    ).toHaveLength(2);
    const started = answer.body.items.find(({ actor }) => JSON.stringify(actor).includes(member.keyId));
    expect(started).toMatchObject({ action: 'started', actor: { label: 'Ann' } });
  });
});

// @promise get-members
test('the list has 10,000 members page by page, each once', async () => {
  const own = await newAccount(api);
  const by = await signInManager(api, own);
  await api.sql`
    with ids as materialized (
      select n, 'key_' || substr(new_audit_id(), 5) as key_id, 'mem_' || substr(new_audit_id(), 5) as id from generate_series(1, 10000) n
    ), keys as (
      insert into account_keys (id, account_id, key_sha256, display, label, permissions, is_member, expires_at)
      select key_id, ${own.accountId}, sha256(key_id::bytea), 'member', 'M' || n, array['read'], true, 'epoch' from ids
    )
    insert into members (id, account_id, key_id, email, name, role, created_at)
    select id, ${own.accountId}, key_id, 'm' || n || '@example.com', 'M' || n, 'analyst', now() + n * interval '1 microsecond' from ids`;
  const ids: string[] = [];
  let cursor: string | null = '';
  const startedAt = performance.now();
  while (cursor !== null) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const path = `${membersOf(own)}?limit=100${query}`;
    const page = await api.call<{ items: { id: string }[]; nextCursor: string | null }>('GET', path, {
      headers: by,
    });
    ids.push(...page.body.items.map(({ id }) => id));
    cursor = page.body.nextCursor;
  }
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect([ids.length, new Set(ids).size]).toEqual([10_000, 10_000]);
  const { body } = await api.call<{ keys: unknown[] }>('GET', `/accounts/${own.accountId}/keys`, {
    headers: by,
  });
  expect(body.keys).toHaveLength(2);
});

test('a statement that mails links to an address without a member stores nothing', async () => {
  const counts = async () =>
    await api.sql
      .one`select (select count(*)::int from emails) as mails, (select count(*)::int from sign_in_links) as links`;
  const before = await counts();
  const deps = { sql: api.sql, secretBox: createSecretBox([TEST_KEY]) };
  await mailSignInLinks(deps, 'nobody@example.com', api.clock.now);
  expect(await counts()).toEqual(before);
});
