import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { attributeDevice, findInstallCandidates } from '../../src/db/attributions.ts';
import { bindRememberedUsers, bindUser, markHealedIfNothingToHeal } from '../../src/db/bindings.ts';
import { recordClick } from '../../src/db/clicks.ts';
import type { ClickFact } from '../../src/db/clicks.ts';
import { findVerifyingSecrets } from '../../src/db/identity-secrets.ts';
import { findRedirectTarget } from '../../src/db/links.ts';
import { newId } from '../../src/db/new-id.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { findSdkCaller } from '../../src/db/sdk-keys.ts';
import { shareStatements } from '../../src/db/shared-statements.ts';
import { USERS_PER_DEVICE } from '../../src/domain/attribution.ts';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runOn } from '../support/postgres-admin.ts';
import { newRollupTenant } from '../support/rollup-tenant.ts';
import { rounds } from '../support/rounds.ts';

let database: TestDatabase;
let sql: Sql;
let appId: ClickFact['appId'];
let slugs: string[];
let statements = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect({ url: database.url, max: 4, onStatement: () => void (statements += 1) });
  const tenant = await newRollupTenant(sql, 2, 2);
  appId = tenant.appId;
  slugs = tenant.links.map((id) => id.slice(-20));
  await runOn(
    database.url,
    `create function test_refuses() returns trigger language plpgsql as $$
       begin if new.ip_hash = 'refused' then raise exception 'refused'; end if; return new; end $$;
     create trigger test_refuses before insert on clicks for each row execute function test_refuses();
     do $$ begin execute format('alter database %I set deadlock_timeout = %L', current_database(), '20ms'); end $$;`,
  );
});
beforeEach(() => {
  statements = 0;
});
afterAll(async () => {
  await sql.close();
  await database.drop();
});

describe('the calls that share a statement', () => {
  /** Statements that were sent, with their items, and how each of them is answered. */
  const sent: {
    readonly items: readonly string[];
    readonly isAlone: boolean;
    readonly end: (error?: Error) => void;
  }[] = [];
  const share = (repeated: 'share' | 'wait') =>
    shareStatements(
      async (_: Sql, items: readonly string[], isAlone: boolean) =>
        await new Promise<string[]>((resolve, reject) => {
          const end = (error?: Error) =>
            error === undefined ? resolve(items.map((item) => `${item}!`)) : reject(error);
          sent.push({ items, isAlone, end });
        }),
      { keyOf: (item) => item, repeated },
    );
  const items = () => sent.map((one) => one.items);
  /** Lets the calls continue that a statement has answered. */
  const settle = async () => await new Promise(setImmediate);
  beforeEach(() => {
    sent.length = 0;
  });

  test('a call is answered only by a statement that began after it, and equal calls by the same one', async () => {
    const find = share('share');
    const calls = ['a', 'a', 'a', 'b', 'a'].map(async (item) => await find(sql, item));
    expect(items()).toEqual([['a'], ['a']]);
    sent[0]?.end();
    await settle();
    expect(items()).toEqual([['a'], ['a'], ['a', 'b']]);
    sent[1]?.end();
    sent[2]?.end();
    expect(await Promise.all(calls)).toEqual(['a!', 'a!', 'a!', 'b!', 'a!']);
  });

  test('calls that must not be in one statement go one after the other', async () => {
    const find = share('wait');
    const calls = ['a', 'b', 'c', 'c', 'd'].map(async (item) => await find(sql, item));
    for (const expected of [['c', 'd'], ['c']]) {
      sent.at(-1)?.end();
      await settle();
      expect(items().at(-1)).toEqual(expected);
    }
    for (const { end } of sent) end();
    expect(await Promise.all(calls)).toEqual(['a!', 'b!', 'c!', 'c!', 'd!']);
  });

  test('a statement takes at most 100 items', async () => {
    const find = share('share');
    const calls = Array.from({ length: 252 }, async (_, n) => await find(sql, String(n)));
    while (items().flat().length < 252) {
      for (const { end } of sent) end();
      await settle();
    }
    for (const { end } of sent) end();
    await Promise.all(calls);
    expect(items().map((one) => one.length)).toEqual([1, 1, 100, 100, 50]);
  });

  test('when two thousand calls wait, the next one fails at once', async () => {
    const find = share('wait');
    const calls = Array.from({ length: 2_003 }, async (_, n) => await find(sql, String(n)).catch(String));
    expect(await calls[2_002]).toMatch('too many calls wait');
    while (items().flat().length < 2_002) {
      for (const { end } of sent) end();
      await settle();
    }
    for (const { end } of sent) end();
    expect((await Promise.all(calls)).filter((answer) => answer.endsWith('!'))).toHaveLength(2_002);
  });

  test('a database that is unavailable fails the calls that wait, too, and the next call is sent', async () => {
    const find = share('share');
    const calls = ['a', 'b', 'c'].map(async (item) => await find(sql, item).catch((error: Error) => error));
    const away = new DatabaseUnavailable('away');
    sent[0]?.end(away);
    expect(await calls[2]).toBe(away);
    expect(await calls[0]).toBe(away);
    const next = find(sql, 'd');
    expect(items()).toEqual([['a'], ['b'], ['d']]);
    for (const { end } of sent) end();
    expect(await calls[1]).toBe('b!');
    expect(await next).toBe('d!');
  });

  test('the calls of a statement that gets no lock in time are sent alone, and the next statement does not wait for them', async () => {
    const write = share('wait');
    const calls = ['a', 'b', 'c', 'd', 'c'].map(
      async (item) => await write(sql, item).catch((error: Error) => error),
    );
    sent[0]?.end();
    await settle();
    expect(items()).toEqual([['a'], ['b'], ['c', 'd']]);
    sent[2]?.end(Object.assign(new Error('locked'), { code: '55P03' }));
    await settle();
    // The second call for `c` waits for the first one.
    expect(sent.slice(3).map(({ items: [item], isAlone }) => [item, isAlone])).toEqual([
      ['c', true],
      ['d', true],
    ]);
    const [next, other] = [write(sql, 'e'), write(sql, 'd')];
    expect(items().slice(5)).toEqual([['e']]);
    const late = new DatabaseUnavailable('its time limit');
    sent[3]?.end(late);
    sent[4]?.end();
    await settle();
    for (const { end } of sent) end();
    await settle();
    expect(sent.slice(6).map(({ items: all, isAlone }) => [all, isAlone])).toEqual([[['c', 'd'], false]]);
    for (const { end } of sent) end();
    expect(await Promise.all([...calls, next, other])).toEqual(['a!', 'b!', late, 'd!', 'c!', 'e!', 'd!']);
  });

  test('a call that is refused fails alone, after few statements, one after the other', async () => {
    const find = share('share');
    const names = Array.from({ length: 102 }, (_, n) => String(n));
    const calls = names.map(async (item) => await find(sql, item).catch((error: Error) => error));
    sent[0]?.end();
    const refused = new Error('refused');
    let ended = 2;
    for (await settle(); ended < sent.length; await settle()) {
      expect(sent.length - ended).toBe(1);
      const { items: tried = [], end } = sent[ended] ?? {};
      end?.(tried.includes('40') ? refused : undefined);
      ended += 1;
    }
    sent[1]?.end();
    expect(await Promise.all(calls)).toEqual(names.map((name) => (name === '40' ? refused : `${name}!`)));
    expect(ended).toBeLessThan(20);
  });
});

test('of apps with the same devices and users, each call gets the users, heals and secrets of its own app', async () => {
  const tenants = [await newRollupTenant(sql, 2, 1), await newRollupTenant(sql, 2, 1)];
  const [one, two] = tenants.map((tenant) => tenant.appId);
  const attributions = tenants.flatMap(({ appId: app, affiliates, links }) =>
    Array.from({ length: 20 }, (_, n) => ({
      id: newId('attribution'),
      app,
      n,
      affiliate: affiliates[n % 2],
      link: links[n % 2],
      // Each user was identified in one of the apps only.
      isIdentified: (app === one) === (n % 2 === 0),
    })),
  );
  await runOn(
    database.url,
    `create temporary table made on commit drop as
       select * from jsonb_to_recordset('${JSON.stringify(attributions)}')
         m (id text, app text, n integer, affiliate text, link text, "isIdentified" boolean);
     insert into attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at)
       select id, app, 'd-' || n, affiliate, link, 'code', now(), now() from made;
     insert into identities (app_id, device_id, customer_user_id, position, identified_at)
       select app, 'd-' || n, 'u-' || n, 1, now() from made where "isIdentified";
     -- Without triggers and foreign keys: the transfers need no events.
     set session_replication_role = replica;
     insert into user_transfers (app_id, event_id, role, customer_user_id)
       select '${one}', '${newId('event')}', 'giver', 'u-' || n from generate_series(0, 9) n;
     update apps set identity_verification = true where id in ('${one}', '${two}');
     insert into identity_secrets (app_id, secret_id, ciphertext, encryption_key_id)
       values ('${one}', '${newId('secret')}', 'one', 'key'), ('${two}', '${newId('secret')}', 'two', 'key')`,
  );

  const secrets = await Promise.all(
    Array.from({ length: 30 }, async (_, n) => {
      const found = await findVerifyingSecrets(sql, [one, two, appId][n % 3] as typeof appId, 0);
      return found?.map(({ ciphertext }) => Buffer.from(ciphertext).toString());
    }),
  );
  expect(secrets).toEqual(secrets.map((_, n) => [['one'], ['two'], undefined][n % 3]));

  const bound = await Promise.all(
    attributions.map(async ({ app, n }) => await bindRememberedUsers(sql, app, `d-${n}`)),
  );
  expect(bound.map((ids) => ids.length)).toEqual(
    attributions.map(({ isIdentified }) => Number(isIdentified)),
  );
  const users = await database.sql<{ id: string; appId: string; customerUserId: string }>`
    select id, app_id, customer_user_id from bindings where id = any(${bound.flat()}::text[])`;
  const healed = await Promise.all(bound.flat().map(async (id) => await markHealedIfNothingToHeal(sql, id)));
  const mustHeal = bound.flat().map((id) => {
    const user = users.find((row) => row.id === id);
    return user?.appId === one && Number(user?.customerUserId.slice(2)) < 10;
  });
  expect(mustHeal.filter(Boolean)).toHaveLength(5);
  expect(healed).toEqual(mustHeal.map((heal) => !heal));
});

test('a binding that another statement has locked is left to its heal and delays no other', async () => {
  const { appId: app, affiliates, links } = await newRollupTenant(sql, 1, 1);
  const ids = [newId('binding'), newId('binding')] as const;
  const attribution = newId('attribution');
  await sql`
    insert into attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at)
    values (${attribution}, ${app}, 'd', ${affiliates[0] ?? ''}, ${links[0] ?? ''}, 'code', now(), now())`;
  await sql`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
    select id, ${app}, 'u-' || id, ${attribution}, now() from unnest(${ids}::text[]) id`;
  const blocker = new pg.Client(database.url);
  await blocker.connect();
  await blocker.query('begin');
  await blocker.query('select from bindings where id = $1 for no key update', [ids[0]]);
  try {
    expect(await Promise.all(ids.map(async (id) => await markHealedIfNothingToHeal(sql, id)))).toEqual([
      false,
      true,
    ]);
  } finally {
    await blocker.end();
  }
  expect(await markHealedIfNothingToHeal(sql, ids[0])).toBe(true);
});

test.each<[string, (n: number) => Promise<unknown>, unknown]>([
  ['keys of SDKs', async (n) => await findSdkCaller(sql, `pk_live_${n}`, 0), undefined],
  ['apps that verify user ids', async () => await findVerifyingSecrets(sql, appId, 0), null],
  ['links', async (n) => await findRedirectTarget(sql, 'unknown', `slug-${n}`), undefined],
  [
    'candidates of installs',
    async (n) => {
      const install = { appId, deviceId: `device-${n}`, claimToken: null, affiliateCode: slugs[n % 4] ?? '' };
      const { code } = await findInstallCandidates(sql, install);
      return code?.linkId?.slice(-20) === slugs[n % 4];
    },
    true,
  ],
  ['users of devices', async (n) => await bindRememberedUsers(sql, appId, `device-${n}`), []],
  ['new bindings', async () => await markHealedIfNothingToHeal(sql, newId('binding')), false],
])('look-ups of %s that arrive together share statements', async (_, lookUp, expected) => {
  const found = await Promise.all(Array.from({ length: 90 }, async (__, n) => await lookUp(n)));
  expect(found).toEqual(found.map(() => expected));
  expect(statements).toBe(3);
});

const record = async (one: ClickFact) => await recordClick(sql, one);
const click = (fields: Partial<ClickFact> = {}): ClickFact => ({
  appId,
  slug: slugs[0] ?? '',
  claimToken: randomUUID(),
  ipHash: null,
  userAgent: null,
  isBot: false,
  clickedAt: Date.UTC(2026, 2, 1),
  addressHash: null,
  ...fields,
});

async function storedOf(clicks: readonly ClickFact[]): Promise<{ id: string; claimToken: string }[]> {
  return await database.sql`
    select id, claim_token from clicks where claim_token = any(${clicks.map(({ claimToken }) => claimToken)}::text[]::uuid[])`;
}

test('clicks that arrive together share statements, and each gets its own click and link', async () => {
  const clicks = Array.from({ length: 250 }, (_, n) => click({ slug: (slugs[n % 4] ?? '').toUpperCase() }));
  const recorded = await Promise.all(clicks.map(record));
  expect(statements).toBeLessThan(10);
  expect(new Set(recorded.map((one) => one?.affiliateId)).size).toBe(2);
  const ids = new Map((await storedOf(clicks)).map(({ id, claimToken }) => [claimToken, id]));
  expect(recorded.map((one) => one?.clickId)).toEqual(clicks.map(({ claimToken }) => ids.get(claimToken)));
  expect(await findRollupDifferences(database.sql)).toEqual([]);
});

test('one token in many clicks that arrive together is one click, also beside links that do not exist', async () => {
  const same = click();
  const clicks = [click({ slug: 'unknown' }), same, same, { ...same, slug: 'unknown' }, click(), same];
  const [unknown, ...found] = await Promise.all(clicks.map(record));
  expect(unknown).toBeUndefined();
  const [first, second, third, other, last] = found.map((one) => one?.clickId);
  expect([second, third, last]).toEqual([first, first, first]);
  expect(other).not.toBe(first);
  expect(await storedOf(clicks)).toHaveLength(2);
});

test('installs by code that arrive together share statements, and a device has one of them', async () => {
  const { appId: app, affiliates, links } = await newRollupTenant(sql, 2, 1);
  const firstOpenAt = Date.UTC(2026, 2, 1, 10, 0, 0, 123);
  const places = affiliates.map((affiliateId, n) => ({ affiliateId, linkId: links[n] ?? null }));
  // Sixty devices, each with a code of both creators.
  const installs = Array.from({ length: 120 }, (_, n) => ({
    device: { appId: app, deviceId: `d-${n % 60}`, firstOpenAt, sdk: 'web/0.1.0', rememberedUsers: [] },
    touch: {
      matchMethod: 'code' as const,
      clickId: null,
      touchedAt: firstOpenAt + n,
      ...(places[n < 60 ? 0 : 1] ?? { affiliateId: newId('affiliate'), linkId: null }),
    },
  }));
  statements = 0;
  const attributed = await Promise.all(
    installs.map(async ({ device, touch }) => await attributeDevice(sql, device, touch)),
  );
  expect(statements).toBeLessThan(10);
  const won = installs.flatMap(({ device, touch }, n) => {
    const id = attributed[n]?.attributionId;
    return id === undefined
      ? []
      : [{ id, deviceId: device.deviceId, firstOpenAt, sdk: device.sdk, ...touch }];
  });
  expect(new Set(won.map(({ deviceId }) => deviceId)).size).toBe(60);
  const stored = await database.sql<{ id: string }>`
    select id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at, sdk
      from attributions where app_id = ${app}`;
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  expect(stored.toSorted(byId)).toEqual(won.toSorted(byId));
  expect(await findRollupDifferences(database.sql)).toEqual([]);
});

const BOTH_ENDS = 'test-both-ends';

/** How many times two statements of this database have waited for each other, in a circle. Postgres notices it before a lock limit ends. */
async function deadlocks(): Promise<number> {
  // A connection reports what it has counted when it ends.
  await eventually('the connections have ended', async () => {
    const open = await database.sql`select from pg_stat_activity where application_name = ${BOTH_ENDS}`;
    return open.length === 0;
  });
  const { count } = await database.sql.one<{ count: number }>`
    select deadlocks::int as count from pg_stat_database where datname = current_database()`;
  return count;
}

/** Calls `work` for the numbers below `count` as two processes do, one upwards and the other downwards. Returns both answers for each number. */
async function fromBothEnds<T>(
  count: number,
  work: (through: Sql, n: number, isUpwards: boolean) => Promise<T>,
): Promise<[T, T][]> {
  const [up, down] = [1, 2].map(() => connect({ url: database.url, max: 4, applicationName: BOTH_ENDS })) as [
    Sql,
    Sql,
  ];
  const numbers = Array.from({ length: count }, (_, n) => n);
  const below = new Map<number, Promise<T>>();
  for (const n of numbers.toReversed()) below.set(n, work(down, n, false));
  const answers = await Promise.all(
    numbers.map(async (n): Promise<[T, T]> => {
      const above = work(up, n, true);
      return [await above, (await below.get(n)) as T];
    }),
  );
  await Promise.all([up.close(), down.close()]);
  return answers;
}

test('processes that attribute the same devices in opposite orders wait for each other, and never in a circle', async () => {
  const { appId: app, affiliates, links } = await newRollupTenant(sql, 1, 1);
  const [affiliateId, linkId] = [affiliates[0], links[0]];
  if (affiliateId === undefined || linkId === undefined) throw new Error('there is no link');
  for (let round = 0; round < rounds(5, 50); round += 1) {
    const attributed = await fromBothEnds(210, async (through, n) => {
      const device = {
        appId: app,
        deviceId: `d-${round}-${n}`,
        firstOpenAt: n,
        sdk: null,
        rememberedUsers: [],
      };
      const touch = { matchMethod: 'code', clickId: null, affiliateId, linkId, touchedAt: n } as const;
      return await attributeDevice(through, device, touch);
    });
    expect(attributed.filter((both) => both.filter((one) => one !== null).length !== 1)).toEqual([]);
  }
  expect(await deadlocks()).toBe(0);
});

/** Attributes the devices `d-0` to `d-N` of a new app, and returns a function that identifies a user on one of them. */
async function devicesOfNewApp(count: number) {
  const { appId: app, affiliates, links } = await newRollupTenant(sql, 1, 1);
  const [affiliateId, linkId] = [affiliates[0], links[0]];
  if (affiliateId === undefined || linkId === undefined) throw new Error('there is no link');
  const touch = { matchMethod: 'code', clickId: null, affiliateId, linkId, touchedAt: 1 } as const;
  await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const device = { appId: app, deviceId: `d-${n}`, firstOpenAt: 1, sdk: null, rememberedUsers: [] };
      await attributeDevice(sql, device, touch);
    }),
  );
  const identify = async (through: Sql, device: number, user: string) => {
    const identity = { appId: app, deviceId: `d-${device}`, customerUserId: user, identifiedAt: device };
    return await bindUser(through, {
      ...identity,
      addressHash: null,
      userHash: createHash('sha256').update(user).digest(),
    });
  };
  return { app, identify };
}

test('users who are identified together share statements, and each is bound to one device, which keeps them all', async () => {
  const { app, identify } = await devicesOfNewApp(50);
  statements = 0;
  // Each user on two devices, and two users on each device.
  const identified = await Promise.all(
    Array.from(
      { length: 100 },
      async (_, n) => await identify(sql, n % 50, `u-${n < 50 ? n : (n + 1) % 50}`),
    ),
  );
  expect(statements).toBeLessThan(12);
  const bound = await database.sql<{ id: string; user: string; deviceId: string; identifiedAt: number }>`
    select b.id, b.customer_user_id as user, a.device_id, b.identified_at
      from bindings b join attributions a on a.id = b.attribution_id where b.app_id = ${app}`;
  expect(new Set(bound.map(({ user }) => user)).size).toBe(50);
  expect(bound).toHaveLength(50);
  const created = identified.map((one) => (one === 'too_many_users' ? undefined : one?.newBindingId) ?? null);
  expect(created.filter((id) => id !== null).toSorted()).toEqual(bound.map(({ id }) => id).toSorted());
  expect(bound.filter(({ deviceId, identifiedAt }) => deviceId !== `d-${identifiedAt}`)).toEqual([]);
  const kept = await database.sql<{ positions: number[] }>`
    select jsonb_agg(position order by position) as positions from identities where app_id = ${app} group by device_id`;
  expect(kept.map(({ positions }) => positions)).toEqual(Array.from({ length: 50 }, () => [1, 2]));
  expect(await findRollupDifferences(database.sql)).toEqual([]);
});

test('processes that identify the same users on the same devices in opposite orders wait for each other, and never in a circle', async () => {
  const count = 210;
  for (let round = 0; round < rounds(5, 50); round += 1) {
    const { app, identify } = await devicesOfNewApp(2 * count);
    // In every second round, both processes identify a user on one device, in the others on two devices.
    const deviceOf = (n: number, isUpwards: boolean) => (isUpwards || round % 2 === 0 ? n : count + n);
    const answers = await fromBothEnds(
      count,
      async (through, n, isUpwards) => await identify(through, deviceOf(n, isUpwards), `u-${n}`),
    );
    const created = answers
      .flat()
      .map((one) => (one === undefined || one === 'too_many_users' ? 'none' : one.newBindingId));
    const stored = await database.sql<{ id: string }>`select id from bindings where app_id = ${app}`;
    expect(created.filter((id) => id !== null).toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
    expect(stored).toHaveLength(count);
    const pairs = await database.sql<{ pair: string }>`
      select device_id || ' ' || customer_user_id as pair from identities where app_id = ${app}`;
    const named = answers.flatMap((_, n) =>
      [true, false].map((isUpwards) => `d-${deviceOf(n, isUpwards)} u-${n}`),
    );
    expect(pairs.map(({ pair }) => pair).toSorted()).toEqual([...new Set(named)].toSorted());
  }
  expect(await deadlocks()).toBe(0);
});

test('of the users who are identified at once on one device by two processes, it keeps as many as it can have', async () => {
  const { app, identify } = await devicesOfNewApp(13);
  const users = Array.from({ length: 12 }, (_, n) => `u-${n}`);
  // Half of them are bound to a device of their own before.
  for (const [n, user] of users.slice(0, 6).entries()) await identify(sql, n + 1, user);
  const other = connect({ url: database.url, max: 4 });
  const answers = await Promise.all(
    users.map(async (user, n) => await identify(n % 2 === 0 ? sql : other, 0, user)),
  );
  await other.close();
  const refused = users.filter((_, n) => answers[n] === 'too_many_users');
  expect(refused).toHaveLength(2);
  const kept = await database.sql<{ position: number; user: string }>`
    select position, customer_user_id as user from identities where app_id = ${app} and device_id = 'd-0' order by position`;
  expect(kept.map(({ position }) => position)).toEqual(
    Array.from({ length: USERS_PER_DEVICE }, (_, n) => n + 1),
  );
  expect([...refused, ...kept.map(({ user }) => user)].toSorted()).toEqual(users.toSorted());
  const bound = await database.sql<{ user: string }>`
    select customer_user_id as user from bindings where app_id = ${app}`;
  const unbound = refused.filter((user) => !users.slice(0, 6).includes(user));
  expect(bound.map(({ user }) => user).toSorted()).toEqual(
    users.filter((user) => !unbound.includes(user)).toSorted(),
  );
});

test('a user whose binding another statement holds delays others only until the lock limit, and is answered after it', async () => {
  const { identify } = await devicesOfNewApp(1);
  const other = await devicesOfNewApp(20);
  const { app } = other;
  const blocker = new pg.Client(database.url);
  await blocker.connect();
  await blocker.query('begin');
  await blocker.query(
    `insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
     select $1, app_id, 'u-held', id, now() from attributions where app_id = $2 and device_id = 'd-0'`,
    [newId('binding'), app],
  );
  // They take both places, so that the held ones and the others share the next statement.
  const first = [identify(sql, 0, 'u-0'), other.identify(sql, 1, 'u-1')];
  let isHeldAnswered = false;
  const held = [0, 2].map(async (device) => {
    const answer = await other.identify(sql, device, 'u-held');
    isHeldAnswered = true;
    return answer;
  });
  const others = await Promise.all([
    ...first,
    ...Array.from({ length: 17 }, async (_, n) => await other.identify(sql, n + 3, `u-${n + 3}`)),
  ]);
  expect(others.filter((answer) => typeof answer !== 'object' || answer.newBindingId === null)).toEqual([]);
  expect(isHeldAnswered).toBe(false);
  await blocker.query('rollback');
  await blocker.end();
  const answers = await Promise.all(held);
  const created = answers.map((answer) => typeof answer === 'object' && answer.newBindingId !== null);
  expect(created.filter(Boolean)).toHaveLength(1);
});

test('users of two apps with the same devices who are identified together get what each would get alone', async () => {
  const [one, two] = [await devicesOfNewApp(4), await devicesOfNewApp(3)];
  const erased = createHash('sha256').update('u-erased').digest('hex');
  await runOn(
    database.url,
    `set session_replication_role = replica;
     insert into erased_identifiers (app_id, hash, erasure_id, kind, pseudonym)
       values ('${two.app}', decode('${erased}', 'hex'), '${newId('erasure')}', 'user', 'erased:' || repeat('x', 22));
     insert into identities (app_id, device_id, customer_user_id, position, identified_at)
       select '${two.app}', 'd-1', 'full-' || p, p, now() from generate_series(1, ${USERS_PER_DEVICE}) p;
     insert into identities (app_id, device_id, customer_user_id, position, identified_at)
       values ('${one.app}', 'd-1', 'u-known', 1, to_timestamp(7))`,
  );
  const nul = String.fromCodePoint(0);
  const called = [
    [one, 0, 'u-new', 'bound'],
    [two, 0, 'u-erased', 'not stored'],
    [one, 1, 'u-known', 'bound'],
    [two, 1, 'u-new', 'too_many_users'],
    [one, 2, `u${nul}`, 'refused'],
    [two, 2, 'u-known', 'bound'],
    [one, 3, 'u-erased', 'bound'],
    [two, 3, 'u-none', 'no attribution'],
  ] as const;
  const answers = await Promise.all(
    called.map(async ([app, device, user]) => {
      const answer = await app.identify(sql, device, user).catch(() => 'refused');
      if (answer === undefined) return 'no attribution';
      if (typeof answer === 'string') return answer;
      const [attribution] = await database.sql<{ id: string }>`
        select id from attributions where app_id = ${app.app} and device_id = ${`d-${device}`}`;
      expect(answer.attributionId).toBe(attribution?.id);
      return answer.newBindingId === null ? 'not stored' : 'bound';
    }),
  );
  expect(answers).toEqual(called.map(([, , , expected]) => expected));
  const bound = await database.sql<{ appId: string; user: string; deviceId: string; at: number }>`
    select b.app_id, b.customer_user_id as user, a.device_id, b.identified_at as at
      from bindings b join attributions a on a.id = b.attribution_id and a.app_id = b.app_id
     where b.app_id in (${one.app}, ${two.app}) order by a.device_id, b.app_id = ${two.app}`;
  expect(bound).toEqual([
    { appId: one.app, user: 'u-new', deviceId: 'd-0', at: 0 },
    { appId: one.app, user: 'u-known', deviceId: 'd-1', at: 7_000 },
    { appId: two.app, user: 'u-known', deviceId: 'd-2', at: 2 },
    { appId: one.app, user: 'u-erased', deviceId: 'd-3', at: 3 },
  ]);
  const kept = await database.sql<{ appId: string; user: string }>`
    select app_id, customer_user_id as user from identities
     where app_id in (${one.app}, ${two.app}) and customer_user_id not like 'full-%' order by device_id, app_id = ${two.app}`;
  expect(kept.map(({ appId: app, user }) => [app === one.app ? 1 : 2, user])).toEqual([
    [1, 'u-new'],
    [1, 'u-known'],
    [2, 'u-known'],
    [1, 'u-erased'],
    [2, 'u-none'],
  ]);
});

test('a click that Postgres refuses fails alone', async () => {
  const clicks = Array.from({ length: 20 }, (_, n) => click({ ipHash: n === 7 ? 'refused' : 'fine' }));
  const outcomes = await Promise.allSettled(clicks.map(record));
  expect(outcomes.map(({ status }) => status === 'rejected')).toEqual(clicks.map((_, n) => n === 7));
  expect(await storedOf(clicks)).toHaveLength(19);
});

test('a user agent that was cut off within a character is recorded', async () => {
  const one = click({ userAgent: '😀'.slice(0, 1) });
  expect(await record(one)).toMatchObject({ clickId: expect.stringMatching(/^clk_/) });
  expect(await storedOf([one])).toHaveLength(1);
});

test('every click that was answered is stored, whatever connections die', async () => {
  const clicks = Array.from({ length: rounds(600, 20_000) }, () => click());
  const answered: ClickFact[] = [];
  let next = 0;
  const caller = async () => {
    for (let one = clicks[next]; one !== undefined; one = clicks[next]) {
      next += 1;
      const recorded = await record(one).catch(() => undefined);
      if (recorded !== undefined) answered.push(one);
      if (next % 40 === 0)
        await database.sql`
          select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid() and state = 'active' limit 1`;
    }
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  const stored = new Set((await storedOf(answered)).map(({ claimToken }) => claimToken));
  expect(answered.filter(({ claimToken }) => !stored.has(claimToken))).toEqual([]);
  expect(answered.length).toBeGreaterThan(clicks.length / 2);
});
