import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { takesEffect } from '../support/policies.ts';
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
  app = await newApp(api, undefined, { commissionRateBps: 2_000 });
  creator = await newAffiliate(api, app, { name: 'Ada' });
});

type Body = Readonly<Record<string, unknown>> & { readonly id: string };

const send = async (method: string, path: string, body?: object, key = app.key) =>
  await api.call<Body>(method, `/apps/${app.appId}/${path}`, { key, ...(body && { body }) });

const ok = async (method: string, path: string, body?: object): Promise<Body> => {
  const { status, text, body: answer } = await send(method, path, body);
  if (status > 201) throw new Error(`${method} ${path}: ${status} ${text}`);
  return answer;
};

const list = async (path: string) =>
  (await ok('GET', path)) as unknown as {
    readonly items: readonly Body[];
    readonly nextCursor: string | null;
  };

const percent = (percentBps: number) => ({ base: 'gross', rules: [{ percentBps }] });
const newPolicy = async (name = 'Standard') => (await ok('POST', 'policies', { name })).id;
const publish = async (policyId: string, terms: object) =>
  await send('POST', `policies/${policyId}/versions`, terms);
const past = async (from = api.clock.now - 3_000 * DAY_MS) =>
  await takesEffect(api.sql, { id: app.appId }, from);

describe('policies and versions', () => {
  // @promise get-policies, post-policy, get-policy, patch-policy
  test('a policy has the version in effect and the next one, and can be renamed', async () => {
    const created = await ok('POST', 'policies', { name: 'Standard' });
    expect(created).toMatchObject({ name: 'Standard', current: null, next: null });
    await publish(created.id, percent(1_000));
    await past();
    await publish(created.id, { ...percent(2_000), effectiveFrom: Date.now() + 3 * DAY_MS });
    await publish(created.id, { ...percent(3_000), effectiveFrom: Date.now() + 2 * DAY_MS });
    await newPolicy('Other');
    const stored = await ok('PATCH', `policies/${created.id}`, { name: 'Basic' });
    expect(stored).toMatchObject({
      name: 'Basic',
      current: { version: 1, terms: percent(1_000), sentences: ['10 % of the price for each payment.'] },
      next: { version: 3, terms: percent(3_000) },
    });
    expect(await ok('GET', `policies/${created.id}`)).toEqual(stored);
    const { items } = await list('policies');
    expect(items.map(({ name }) => name)).toEqual(['Basic', 'Other']);
    expect(items[0]).toEqual(stored);
    const [first] = (await list('policies?limit=1')).items;
    expect(first).toEqual(stored);
  });

  // @promise post-policy-version, get-policy-versions
  test('versions are listed from the last one, also as CSV, and take effect in two minutes at the earliest', async () => {
    const policyId = await newPolicy();
    const before = Date.now();
    const { status, body } = await publish(policyId, percent(1_000));
    expect(status).toBe(201);
    expect(body).toMatchObject({ policyId, version: 1, terms: percent(1_000) });
    expect(Number(body['effectiveFrom'])).toBeGreaterThanOrEqual(before + 2 * MINUTE_MS);
    expect(Number(body['effectiveFrom'])).toBeLessThan(Date.now() + 3 * MINUTE_MS);
    const later = Date.now() + DAY_MS;
    expect((await publish(policyId, { ...percent(2_000), effectiveFrom: later })).body['effectiveFrom']).toBe(
      later,
    );
    const { items } = await list(`policies/${policyId}/versions`);
    expect(items.map(({ version }) => version)).toEqual([2, 1]);
    const { nextCursor } = await list(`policies/${policyId}/versions?limit=1`);
    expect((await list(`policies/${policyId}/versions?limit=1&cursor=${nextCursor}`)).items).toEqual([body]);
    const csv = await api.call('GET', `/apps/${app.appId}/policies/${policyId}/versions`, {
      key: app.key,
      headers: { accept: 'text/csv' },
    });
    expect(csv.text).toContain(new Date(later).toISOString());
    expect(csv.text.split('\r\n')[0]).toBe('id,policyId,version,effectiveFrom,terms,sentences,createdAt');
  });

  // @promise policy-input
  test.each<[string, object, string]>([
    ['no rules', { base: 'gross', rules: [] }, 'rules'],
    ['21 rules', { base: 'gross', rules: Array.from({ length: 21 }, () => ({ percentBps: 1 })) }, 'rules'],
    ['an unknown base', { base: 'net', rules: [{ percentBps: 1 }] }, 'base'],
    ['a rule without an amount', { base: 'gross', rules: [{}] }, 'rules.0'],
    ['a rule with both amounts', { base: 'gross', rules: [{ percentBps: 1, flatCents: 1 }] }, 'rules.0'],
    ['more than all', { base: 'gross', rules: [{ percentBps: 10_001 }] }, 'rules.0.percentBps'],
    ['a fixed amount of nothing', { base: 'gross', rules: [{ flatCents: 0 }] }, 'rules.0.flatCents'],
    ['a fixed amount above $1,000', { base: 'gross', rules: [{ flatCents: 100_001 }] }, 'rules.0.flatCents'],
    [
      'a percentage above the base',
      { base: 'gross', rules: [{ percentBps: 1, aboveBase: true }] },
      'rules.0',
    ],
    [
      'a misspelled condition',
      { base: 'gross', rules: [{ when: { product: ['a'] }, percentBps: 1 }] },
      'rules.0.when.product',
    ],
    [
      'no products',
      { base: 'gross', rules: [{ when: { productIds: [] }, percentBps: 1 }] },
      'rules.0.when.productIds',
    ],
    [
      'an empty range',
      { base: 'gross', rules: [{ when: { paymentNumber: { from: 3, to: 2 } }, percentBps: 1 }] },
      'rules.0.when.paymentNumber',
    ],
    [
      'payment 0',
      { base: 'gross', rules: [{ when: { paymentNumber: { from: 0 } }, percentBps: 1 }] },
      'rules.0.when.paymentNumber.from',
    ],
    [
      'an empty range of months',
      { base: 'gross', rules: [{ when: { monthsSinceFirst: { from: 2, below: 2 } }, percentBps: 1 }] },
      'rules.0.when.monthsSinceFirst',
    ],
    ['an assumed tax above all', { ...percent(1), assumed: { taxBps: 10_001 } }, 'assumed.taxBps'],
    [
      'more than 14,000 bytes',
      {
        base: 'gross',
        rules: Array.from({ length: 20 }, () => ({
          when: { productIds: Array.from({ length: 5 }, () => 'p'.repeat(200)) },
          percentBps: 1,
        })),
      },
      'rules',
    ],
    [
      '21 stores',
      {
        ...percent(1),
        assumed: {
          feeBps: Object.fromEntries(
            Array.from({ length: 21 }, (_, n) => [`store_${'abcdefghijklmnopqrstu'[n]}`, 1]),
          ),
        },
      },
      'assumed.feeBps',
    ],
    ['an unknown field', { ...percent(1), name: 'x' }, 'name'],
    ['an instant in the past', { ...percent(1), effectiveFrom: Date.now() - HOUR_MS }, 'effectiveFrom'],
    [
      'an instant of the next minute',
      { ...percent(1), effectiveFrom: Date.now() + MINUTE_MS },
      'effectiveFrom',
    ],
  ])('%s is a 400 that names the field', async (_, terms, path) => {
    const { status, body } = await publish(await newPolicy(), terms);
    expect(status).toBe(400);
    expect((body['errors'] as { path: string }[])[0]?.path).toBe(path);
  });

  // @promise policy-flat
  test('an amount above the base needs the permission to pay', async () => {
    const policyId = await newPolicy();
    const terms = { base: 'gross', rules: [{ flatCents: 500, aboveBase: true }] };
    const { key } = await createAccountKey(api.sql, app.accountId, ['read', 'write']);
    expect((await send('POST', `policies/${policyId}/versions`, terms, key)).status).toBe(403);
    expect((await send('POST', `policies/${policyId}/versions`, percent(500), key)).status).toBe(201);
    expect((await publish(policyId, terms)).status).toBe(201);
    // Nor does anybody else get it without that permission.
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    const assigned = async (path: string, by: string) =>
      (await send('PUT', `${path}policy-assignment`, { policyId }, by)).status;
    for (const path of ['', `affiliates/${creator}/`, `groups/${group.id}/`])
      expect(await assigned(path, key)).toBe(403);
    expect(await assigned(`groups/${group.id}/`, app.key)).toBe(200);
    expect((await send('PUT', `affiliates/${creator}/group`, { groupId: group.id }, key)).status).toBe(403);
    expect((await send('PUT', `affiliates/${creator}/group`, { groupId: group.id })).status).toBe(200);
    // Nor does a creator come to it by what ends.
    expect((await send('PUT', `affiliates/${creator}/group`, { groupId: null }, key)).status).toBe(403);
    const end = { policyId: null };
    expect((await send('PUT', `affiliates/${creator}/policy-assignment`, end, key)).status).toBe(403);
    expect((await send('PUT', `groups/${group.id}/policy-assignment`, end, key)).status).toBe(403);
    const rate = async (defaultCommissionRateBps: number | null, by: string) =>
      (await send('PATCH', `affiliates/${creator}`, { defaultCommissionRateBps }, by)).status;
    expect(await rate(100, key)).toBe(200);
    expect(await rate(null, key)).toBe(403);
    expect(await rate(null, app.key)).toBe(200);
    const headers = await signIn(api, app.key);
    const path = `/apps/${app.appId}/policies/${policyId}/versions`;
    expect((await api.call('POST', path, { body: terms, headers })).body).toMatchObject({
      code: 'session_not_raised',
    });
  });

  // @promise policy-preview
  test.each(['__proto__', 'toString', 'constructor', 'hasOwnProperty'])(
    'a store named %s has no fee of its own',
    async (store) => {
      const { status } = await send('POST', 'policies/preview', {
        base: 'proceeds',
        assumed: { feeBps: {} },
        rules: [{ percentBps: 1 }],
        payments: [{ priceCents: 1, store }],
      });
      expect([200, 400]).toContain(status);
    },
  );

  // @promise policy-preview
  test('a preview computes what payments would earn, and stores nothing', async () => {
    const terms = {
      base: 'proceeds',
      rules: [
        { when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 },
        { when: { stores: ['stripe'] }, flatCents: 200 },
        { when: { paymentNumber: { to: 20 } }, percentBps: 2_000 },
      ],
    };
    const payments = [
      { priceCents: 1_000 },
      { priceCents: 1_000, monthsSinceFirst: 12, paymentNumber: 13, taxBps: 1_000, feeBps: 1_500 },
      { priceCents: 1_000, monthsSinceFirst: 12, paymentNumber: 13, store: 'stripe' },
      { priceCents: 1_000, monthsSinceFirst: 24, paymentNumber: 25 },
    ];
    expect(await ok('POST', 'policies/preview', { ...terms, payments })).toEqual({
      sentences: [
        '50 % of the proceeds in the first 12 months of a customer.',
        '$2.00 (at most the proceeds) from Stripe.',
        '20 % of the proceeds for the first 20 payments of a customer.',
        'Otherwise nothing.',
      ],
      earnings: [
        { ruleIndex: 0, baseCents: 700, baseEstimated: true, amountCents: 350 },
        { ruleIndex: 2, baseCents: 750, baseEstimated: false, amountCents: 150 },
        { ruleIndex: 1, baseCents: 1_000, baseEstimated: true, amountCents: 200 },
        { ruleIndex: null, baseCents: 0, baseEstimated: false, amountCents: 0 },
      ],
    });
    expect((await list('policies')).items).toEqual([]);
  });
});

test('an assignment and a move whose answer was lost are found when they are sent again after their instant', async () => {
  const policyId = await newPolicy();
  const group = await ok('POST', 'groups', { name: 'VIPs' });
  const calls = [
    ['policy-assignment', { policyId }],
    [`affiliates/${creator}/group`, { groupId: group.id }],
  ] as const;
  for (const [path, body] of calls) await ok('PUT', path, body);
  // Both take effect an hour ago.
  const effectiveFrom = Date.now() - HOUR_MS;
  await past(effectiveFrom);
  for (const [path, body] of calls) {
    expect(await ok('PUT', path, { ...body, effectiveFrom })).toMatchObject({ effectiveFrom });
    const { status } = await send('PUT', path, { ...body, effectiveFrom: effectiveFrom + 1 });
    expect(status).toBe(400);
  }
  const { rows } = await api.sql.one<{ rows: number }>`
      select ((select count(*) from policy_assignments where app_id = ${app.appId})
              + (select count(*) from group_memberships where app_id = ${app.appId}))::int as rows`;
  expect(rows).toBe(2);
});

describe('archiving', () => {
  test('a scheduled assignment is taken back by another one of the same instant, and its policy can be archived', async () => {
    const policyId = await newPolicy();
    await publish(policyId, percent(5_000));
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    const path = `groups/${group.id}/policy-assignment`;
    const effectiveFrom = Date.now() + 30 * DAY_MS;
    expect(await ok('PUT', path, { policyId, effectiveFrom })).toMatchObject({ state: 'scheduled' });
    expect((await send('PATCH', `policies/${policyId}`, { archived: true })).status).toBe(409);
    expect(await ok('PUT', path, { policyId: null, effectiveFrom })).toMatchObject({ state: 'scheduled' });
    const { items } = await ok('GET', `policy-assignments?groupId=${group.id}`);
    expect((items as { state: string }[]).map(({ state }) => state)).toEqual(['scheduled', 'past']);
    expect((await send('PATCH', `policies/${policyId}`, { archived: true })).status).toBe(200);
  });

  // @promise policy-archived
  test('a policy that is assigned to nobody is archived: lists leave it out, nobody gets it, and its commissions stay', async () => {
    const [old, used] = [await newPolicy('Old'), await newPolicy('Used')];
    for (const id of [old, used]) await publish(id, percent(1_000));
    await ok('PUT', 'policy-assignment', { policyId: old });
    await past();
    const idsOf = async (query = '') => (await list(`policies${query}`)).items.map(({ id }) => id);
    const archive = async (id: string, archived = true) =>
      await send('PATCH', `policies/${id}`, { archived });
    // In effect, and then replaced only later.
    expect((await archive(old)).body).toMatchObject({ code: 'policy_assigned' });
    await ok('PUT', 'policy-assignment', { policyId: used });
    expect((await archive(old)).status).toBe(409);
    expect((await archive(used)).status).toBe(409);
    await past(api.clock.now - 1_000 * DAY_MS);
    const { body: archived } = await archive(old);
    expect(archived).toMatchObject({ id: old, name: 'Old', archivedAt: expect.any(Number) });
    expect((await archive(old)).body).toEqual(archived);
    expect(await idsOf()).toEqual([used]);
    expect(await idsOf('?archived=true')).toEqual([old]);
    expect(await ok('GET', `policies/${old}`)).toEqual(archived);
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    for (const path of ['', `groups/${group.id}/`, `affiliates/${creator}/`]) {
      const refused = await send('PUT', `${path}policy-assignment`, { policyId: old });
      expect(refused).toMatchObject({ status: 409, body: { code: 'policy_archived' } });
    }
    const back = await archive(old, false);
    expect(back.body).not.toHaveProperty('archivedAt');
    expect(await idsOf()).toEqual([old, used]);
    await ok('PUT', `groups/${group.id}/policy-assignment`, { policyId: old });
    const changes = await api.sql<{ after: object }>`
      select after from audit_rows where object_id = ${old} and (before ? 'archivedAt' or after ? 'archivedAt') order by id`;
    expect(changes.map(({ after }) => after)).toEqual([
      { archivedAt: expect.anything() },
      { archivedAt: null },
    ]);
  });

  // @promise policy-archived
  test('the database refuses to archive a policy that is assigned, and to assign an archived one, also to an older version', async () => {
    const [assigned, archived] = [await newPolicy(), await newPolicy()];
    await ok('PUT', 'policy-assignment', { policyId: assigned });
    await expect(api.sql`update policies set archived_at = now() where id = ${assigned}`).rejects.toThrow(
      /is assigned and cannot be archived/,
    );
    await ok('PATCH', `policies/${archived}`, { archived: true });
    await expect(
      api.sql`
        insert into policy_assignments (app_id, affiliate_id, position, policy_id, effective_from)
        values (${app.appId}, ${creator}, 1, ${archived}, now() + interval '1 hour')`,
    ).rejects.toThrow(/is archived and cannot be assigned/);
  });
});

describe('groups', () => {
  // @promise get-groups, get-group, post-group, patch-group, get-group-members, put-group-of-affiliate
  test('a creator moves from group to group, and each group lists whom it has', async () => {
    const vips = await ok('POST', 'groups', { name: 'VIP' });
    const others = await ok('POST', 'groups', { name: 'Others' });
    expect(await ok('PATCH', `groups/${vips.id}`, { name: 'VIPs' })).toMatchObject({
      id: vips.id,
      name: 'VIPs',
    });
    const { items: groups } = await list('groups');
    expect(groups.map(({ name }) => name)).toEqual(['VIPs', 'Others']);
    expect(await ok('GET', `groups/${vips.id}`)).toEqual(groups[0]);
    const second = await newAffiliate(api, app, { name: 'Bea' });
    const later = Date.now() + DAY_MS;
    for (const id of [creator, second]) await ok('PUT', `affiliates/${id}/group`, { groupId: vips.id });
    const moved = await ok('PUT', `affiliates/${second}/group`, { groupId: others.id, effectiveFrom: later });
    expect(moved).toEqual({ groupId: others.id, groupName: 'Others', effectiveFrom: later });
    const membersOf = async (id: string) =>
      (await list(`groups/${id}/members`)).items
        .map(({ affiliateId, affiliateName }) => [affiliateId, affiliateName])
        .toSorted(([, a], [, b]) => (String(a) < String(b) ? -1 : 1));
    expect(await membersOf(vips.id)).toEqual([
      [creator, 'Ada'],
      [second, 'Bea'],
    ]);
    const { items: members } = await list(`groups/${vips.id}/members`);
    expect(members.find(({ affiliateId }) => affiliateId === second)).toMatchObject({ memberUntil: later });
    expect(await membersOf(others.id)).toEqual([[second, 'Bea']]);
    expect((await list(`groups/${others.id}/members`)).items[0]).toMatchObject({
      memberFrom: later,
      memberUntil: null,
    });
    await ok('PUT', `affiliates/${creator}/group`, { groupId: null });
    await past();
    expect(await membersOf(vips.id)).toEqual([]);
  });

  test('a repeated move changes nothing', async () => {
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    const body = { groupId: group.id, effectiveFrom: Date.now() + DAY_MS };
    const moved = await ok('PUT', `affiliates/${creator}/group`, body);
    expect(await ok('PUT', `affiliates/${creator}/group`, body)).toEqual(moved);
    expect(await api.sql`select from group_memberships where affiliate_id = ${creator}`).toHaveLength(1);
  });
});

describe('assignments', () => {
  // @promise put-policy-of-app, put-policy-of-group, put-policy-of-affiliate, get-policy-assignments
  test('assignments are listed from the latest, with what is in effect, and name whom they do not reach', async () => {
    const policyId = await newPolicy();
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    await newAffiliate(api, app, { name: 'Own rate', defaultCommissionRateBps: 1_234 });
    const ofApp = await ok('PUT', 'policy-assignment', { policyId });
    expect(ofApp).toMatchObject({
      scope: 'app',
      scopeId: app.appId,
      policyId,
      policyName: 'Standard',
      state: 'scheduled',
    });
    expect(ofApp['ownRates']).toEqual([
      { affiliateId: expect.any(String), affiliateName: 'Own rate', rateBps: 1_234 },
    ]);
    await past();
    const ofCreator = await ok('PUT', `affiliates/${creator}/policy-assignment`, { policyId });
    expect(ofCreator).toMatchObject({ scope: 'affiliate', scopeName: 'Ada', ownRates: [] });
    await ok('PUT', `groups/${group.id}/policy-assignment`, { policyId, effectiveFrom: Date.now() + DAY_MS });
    await past(Date.now() - MINUTE_MS);
    await ok('PUT', 'policy-assignment', { policyId: null });
    const { items } = await list('policy-assignments');
    expect(items.map(({ scope, policyId: of, state }) => [scope, of === null, state])).toEqual([
      ['app', true, 'scheduled'],
      ['group', false, 'in_effect'],
      ['affiliate', false, 'in_effect'],
      ['app', false, 'in_effect'],
    ]);
    expect((await list(`policy-assignments?groupId=${group.id}`)).items.map(({ scope }) => scope)).toEqual([
      'group',
    ]);
    expect((await list(`policy-assignments?affiliateId=${creator}`)).items.map(({ scope }) => scope)).toEqual(
      ['affiliate'],
    );
    await past(Date.now() - MINUTE_MS / 2);
    expect((await list('policy-assignments')).items.map(({ state }) => state)).toEqual([
      'in_effect',
      'in_effect',
      'in_effect',
      'past',
    ]);
  });
});

describe('the terms of a creator', () => {
  // @promise get-terms
  test('they are those of the narrowest scope, with the next five changes', async () => {
    const terms = async () => await ok('GET', `affiliates/${creator}/terms`);
    expect(await terms()).toEqual({
      source: 'app',
      rateBps: 2_000,
      policy: null,
      group: null,
      nextGroup: null,
      upcoming: [],
    });
    await ok('PATCH', `affiliates/${creator}`, { defaultCommissionRateBps: 500 });
    expect(await terms()).toMatchObject({ source: 'affiliate', rateBps: 500 });
    const policyId = await newPolicy();
    await publish(policyId, percent(5_000));
    await ok('PUT', `affiliates/${creator}/policy-assignment`, { policyId });
    const group = await ok('POST', 'groups', { name: 'VIPs' });
    const { effectiveFrom } = await ok('PUT', `affiliates/${creator}/group`, { groupId: group.id });
    expect(await terms()).toMatchObject({
      group: null,
      nextGroup: { id: group.id, name: 'VIPs', memberFrom: effectiveFrom },
    });
    await past();
    const at = Date.now() + DAY_MS;
    for (const n of [1, 2, 3, 4, 5, 6]) await publish(policyId, { ...percent(n), effectiveFrom: at + n });
    await ok('PUT', `affiliates/${creator}/policy-assignment`, { policyId: null, effectiveFrom: at + 3 });
    const found = await terms();
    expect(found).toMatchObject({
      source: 'policy',
      rateBps: null,
      policy: {
        scope: 'affiliate',
        policyId,
        version: 1,
        sentences: ['50 % of the price for each payment.'],
      },
      group: { id: group.id, name: 'VIPs' },
    });
    const upcoming = found['upcoming'] as {
      from: number;
      source: string;
      policy: { version: number } | null;
    }[];
    expect(upcoming.map(({ from, source, policy }) => [from - at, source, policy?.version])).toEqual([
      [1, 'policy', 2],
      [2, 'policy', 3],
      [3, 'affiliate', undefined],
    ]);
  });

  test('with an own rate, versions of the policy of the app are no changes, and hide none of its own', async () => {
    const [ofApp, own] = [await newPolicy('Standard'), await newPolicy('Own')];
    await publish(ofApp, percent(100));
    await publish(own, percent(5_000));
    await ok('PUT', 'policy-assignment', { policyId: ofApp });
    await ok('PATCH', `affiliates/${creator}`, { defaultCommissionRateBps: 1_000 });
    const at = Date.now() + DAY_MS;
    for (const n of [1, 2, 3, 4, 5, 6]) await publish(ofApp, { ...percent(100 + n), effectiveFrom: at + n });
    await ok('PUT', `affiliates/${creator}/policy-assignment`, { policyId: own, effectiveFrom: at + 9 });
    const { source, upcoming } = await ok('GET', `affiliates/${creator}/terms`);
    expect([source, upcoming]).toEqual([
      'affiliate',
      [expect.objectContaining({ from: at + 9, source: 'policy' })],
    ]);
    const headers = await signInCreator(api, app, creator);
    const { body } = await api.call<{ rules: Body }>('GET', '/creator', { headers });
    expect(body.rules['policy']).toEqual({
      name: null,
      sentences: ['10 % of the price for each payment.'],
      upcoming: [{ from: at + 9, sentences: ['50 % of the price for each payment.'] }],
    });
  });

  // @promise policy-creator
  test('the creator reads the own terms, and what changes later, in sentences', async () => {
    const headers = await signInCreator(api, app, creator);
    const rules = async () => (await api.call<{ rules: Body }>('GET', '/creator', { headers })).body.rules;
    expect(await rules()).not.toHaveProperty('policy');
    const policyId = await newPolicy('Podcasts');
    await publish(policyId, percent(5_000));
    const { effectiveFrom } = await ok('PUT', 'policy-assignment', { policyId });
    expect((await rules())['policy']).toEqual({
      name: null,
      sentences: ['20 % of the price for each payment.'],
      upcoming: [{ from: effectiveFrom, sentences: ['50 % of the price for each payment.'] }],
    });
    await past();
    expect((await rules())['policy']).toEqual({
      name: 'Podcasts',
      sentences: ['50 % of the price for each payment.'],
      upcoming: [],
    });
  });
});

describe('the database', () => {
  // @promise policy-append-only
  test.each(['policy_versions', 'policy_assignments', 'group_memberships', 'payment_numbers'])(
    'a row of %s is neither changed nor deleted',
    async (table) => {
      await expect(api.sql(textOf(`update ${table} set created_at = now()`))).rejects.toThrow(
        /append|cannot|forbidden|not/i,
      );
      await expect(api.sql(textOf(`delete from ${table}`))).rejects.toThrow(/append|cannot|forbidden|not/i);
    },
  );

  // @promise policy-append-only
  test('nothing takes effect within a minute after its commit', async () => {
    const policyId = await newPolicy();
    const add = async (seconds: number) =>
      await api.sql`
        insert into policy_versions (id, app_id, policy_id, version, effective_from, terms)
        values (${`plv_${policyId.slice(4)}`}, ${app.appId}, ${policyId}, 1, now() + ${seconds} * interval '1 second',
                '{"base":"gross","rules":[{"percentBps":1}]}')`;
    await expect(add(59)).rejects.toThrow(/takes effect a minute after its commit/);
    await add(90);
  });

  // @promise policy-database
  test.each([
    ['a policy without its inputs', `policy_inputs = null`],
    ['a policy without a rule', `rule_index = null`],
    ['a rate of a policy without one', `policy_version_id = null`],
    ['a fixed amount beside a rate', `flat_cents = 5`],
    ['a rule that no policy can have', `rule_index = 20`],
    ['no rate and no fixed amount', `rate_bps = 0`],
  ])('an earning with %s is refused', async (_, change) => {
    const policyId = await newPolicy();
    const { body } = await publish(policyId, percent(2_000));
    const at = api.clock.now - DAY_MS;
    const id = await insertEarning(api, app, {
      affiliateId: creator,
      amountCents: 100,
      occurredAt: at,
      dueAt: at,
    });
    const set = `policy_version_id = '${body.id}', rule_index = 0, rate_source = 'policy', base_kind = 'gross', base_estimated = false, policy_inputs = '{}'`;
    const replaced = change.split(' = ')[0] ?? '';
    const others = set.split(', ').filter((part) => !part.startsWith(replaced));
    // A trigger refuses every change of a commission; the check constraints are tried without it.
    const tried = api.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx(textOf(`update commissions set ${[...others, change].join(', ')} where id = '${id}'`));
    });
    await expect(tried).rejects.toThrow(/violates check constraint/);
  });

  // @promise policy-database
  test('an attributed payment of an app with policies needs its number, and a number its payment', async () => {
    const at = api.clock.now - DAY_MS;
    const id = await insertEarning(api, app, {
      affiliateId: creator,
      amountCents: 100,
      occurredAt: at,
      dueAt: at,
    });
    await ok('PUT', 'policy-assignment', { policyId: await newPolicy() });
    await past();
    const { paymentId, bindingId } = await api.sql.one<{ paymentId: string; bindingId: string }>`
      select payment_id, binding_id from commissions where id = ${id}`;
    await expect(
      api.sql`update payments set binding_id = ${bindingId} where id = ${paymentId}`,
    ).rejects.toThrow(/has no number/);
    const number = async (n: number, { binding = null }: { readonly binding?: string | null } = {}) =>
      await api.sql.transaction(async (tx) => {
        await tx`
          with held as (update payments set binding_id = ${binding} where id = ${paymentId} returning id, app_id)
          insert into payment_numbers (payment_id, app_id, subject_id, number, first_paid_at)
          select id, app_id, ${bindingId}::text, ${n}::int, to_timestamp(${at} / 1000.0) from held`;
        throw new Error('rolled back');
      });
    const isNotNext = /is not the next one of its customer/;
    await expect(number(1)).rejects.toThrow(isNotNext);
    await expect(number(2, { binding: bindingId })).rejects.toThrow(isNotNext);
    await expect(number(1, { binding: bindingId })).rejects.toThrow('rolled back');
  });

  test('whether a policy was assigned to a creator or a group is noted with the assignment', async () => {
    const isNoted = async () =>
      (
        await api.sql.one<{ noted: boolean }>`
          select assigns_policies_to_creators as noted from apps where id = ${app.appId}`
      ).noted;
    const policyId = await newPolicy();
    await ok('PUT', 'policy-assignment', { policyId });
    expect(await isNoted()).toBe(false);
    await ok('PUT', `affiliates/${creator}/policy-assignment`, { policyId });
    expect(await isNoted()).toBe(true);
    await api.sql`update apps set assigns_policies_to_creators = false where id = ${app.appId}`;
    const { id } = await ok('POST', 'groups', { name: 'VIPs' });
    await ok('PUT', `groups/${id}/policy-assignment`, { policyId });
    expect(await isNoted()).toBe(true);
  });
});

/** A statement that is made from a text. */
const textOf = (text: string) => Object.assign([text], { raw: [text] }) as unknown as TemplateStringsArray;

// @promise policy-absent
test('without policies, commissions and their CSV have the fields and columns of before', async () => {
  const at = api.clock.now - DAY_MS;
  await insertEarning(api, app, { affiliateId: creator, amountCents: 100, occurredAt: at, dueAt: at });
  const [row] = (await list('commissions')).items;
  expect(row).not.toHaveProperty('policy');
  const csv = await api.call('GET', `/apps/${app.appId}/commissions`, {
    key: app.key,
    headers: { accept: 'text/csv' },
  });
  expect(csv.text.split('\r\n')[0]).toBe(
    'id,affiliateId,affiliateName,linkId,eventId,kind,reversesCommissionId,reason,status,rateBps,baseCents,amountCents,currency,source,customerUserId,matchMethod,occurredAt,dueAt,maturedAt,paidAt,payoutId,createdAt',
  );
});
