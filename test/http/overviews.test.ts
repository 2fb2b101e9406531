import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, insertReversal, payOut } from '../support/ledger.ts';
import { signInCreator } from '../support/sessions.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Totals {
  readonly pending: number;
  readonly matured: number;
  readonly paid: number;
  readonly lifetime: number;
}
interface Row extends Record<string, unknown> {
  readonly id: string;
}
interface AppOverview {
  readonly funnel: Record<string, number>;
  readonly revenueCents: number;
  readonly commissions: Totals;
  readonly due: { readonly payees: number; readonly payableCents: number; readonly negativeCents: number };
  readonly affiliates: readonly Row[];
  readonly links: readonly Row[];
  readonly recentCommissions: readonly Row[];
}
interface AffiliateOverview {
  readonly funnel: Record<string, number>;
  readonly earnings: Totals;
  readonly links: readonly Row[];
  readonly nextDueAt: number | null;
  readonly nextPayoutAt: number | null;
  readonly carriedBalanceCents: number;
}

async function get<T>(path: string, owner: TestApp): Promise<T> {
  const { status, body } = await api.call<T>('GET', `/apps/${owner.appId}${path}`, { key: owner.key });
  expect([status, status === 200 ? null : body]).toEqual([200, null]);
  return body;
}
const ofApp = (owner: TestApp) => get<AppOverview>('/overview', owner);
const ofAffiliate = (owner: TestApp, affiliateId: string) =>
  get<AffiliateOverview>(`/affiliates/${affiliateId}/overview`, owner);

async function click(owner: TestApp, slug: string, userAgent: string | null = null): Promise<string> {
  const claimToken = randomUUID();
  await api.call('POST', '/clicks', {
    body: { customerAppId: owner.appId, slug, claimToken, userAgent },
  });
  return claimToken;
}

async function install(owner: TestApp, claimToken: string): Promise<string> {
  const deviceId = randomUUID();
  const response = await api.call('POST', '/sdk/install', {
    key: owner.sdkKey,
    body: { deviceId, claimToken, firstOpenAt: api.clock.now },
  });
  expect(response.status).toBe(200);
  return deviceId;
}

const NOTHING = { pending: 0, matured: 0, paid: 0, lifetime: 0 };

describe('the overview of an app', () => {
  // @promise app-overview-parts
  test('the overview of an app without data has zeros and empty lists', async () => {
    expect(await ofApp(await newApp(api))).toEqual({
      funnel: { clicks: 0, installs: 0, identified: 0, paid: 0 },
      revenueCents: 0,
      commissions: NOTHING,
      due: { payees: 0, payableCents: 0, negativeCents: 0 },
      affiliates: [],
      links: [],
      recentCommissions: [],
    });
  });

  // @promise pending-to-paid, get-app-overview, export-matures, app-overview-parts
  test('the overview of an app has the funnel, sums that add up, and the rows of the lists', async () => {
    const own = await newApp(api);
    const [ann, bob] = [
      await newAffiliate(api, own, { name: 'Ann' }),
      await newAffiliate(api, own, { name: 'Bob' }),
    ];
    const [one, two] = [await newLink(api, own, ann), await newLink(api, own, bob)];
    const tokens = [await click(own, one.slug), await click(own, two.slug), await click(own, two.slug)];
    await click(own, one.slug, 'Googlebot/2.1 (+http://www.google.com/bot.html)');
    const deviceId = await install(own, tokens[0] ?? '');
    await api.call('POST', '/sdk/identify', {
      key: own.sdkKey,
      body: { deviceId, customerUserId: 'user-1', identifiedAt: api.clock.now },
    });

    const occurredAt = Date.now() - 40 * DAY_MS;
    const earn = (affiliateId: string, amountCents: number, dueAt: number, matured = false) =>
      insertEarning(api, own, { affiliateId, amountCents, occurredAt, dueAt, matured });
    await earn(bob, 700, occurredAt);
    await payOut(api, own, bob);
    await earn(ann, 500, occurredAt, true);
    const pending = await earn(ann, 90, Date.now() + DAY_MS);
    const reversal = await insertReversal(api, pending, { amountCents: 30, occurredAt: occurredAt + 5 });

    const overview = await ofApp(own);
    expect(overview.funnel).toEqual({ clicks: 3, installs: 4, identified: 4, paid: 0 });
    expect(overview.commissions).toEqual({ pending: 60, matured: 500, paid: 700, lifetime: 1_260 });
    const rowsOf = async (path: string) => (await get<{ items: Row[] }>(path, own)).items;
    expect(overview.affiliates).toEqual(await rowsOf('/affiliates?sort=earnings'));
    expect(overview.affiliates.map(({ id }) => id)).toEqual([bob, ann]);
    const links = await rowsOf('/links');
    expect(overview.links).toEqual([links[1], links[0]]);
    expect(links.map(({ clicks, installs, revenueCents }) => [clicks, installs, revenueCents])).toEqual([
      [1, 1, 0],
      [2, 0, 0],
    ]);
    expect(overview.recentCommissions).toEqual(await rowsOf('/commissions'));
    expect(overview.recentCommissions).toHaveLength(4);
    expect(overview.recentCommissions[0]).toMatchObject({ id: reversal, kind: 'reversal', amountCents: -30 });
    expect(await findRollupDifferences(api.sql)).toEqual([]);
  });

  // @promise due-not-net
  test('what is due is not lowered by the negative balance of another creator, which is shown apart', async () => {
    const own = await newApp(api);
    const [ann, bob, eve] = [
      await newAffiliate(api, own),
      await newAffiliate(api, own),
      await newAffiliate(api, own),
    ];
    const occurredAt = api.clock.now - 40 * DAY_MS;
    const earn = (affiliateId: string, amountCents: number, dueAt = occurredAt) =>
      insertEarning(api, own, { affiliateId, amountCents, occurredAt, dueAt, matured: dueAt === occurredAt });
    await earn(ann, 500);
    // Due, and not marked so yet.
    await earn(eve, 70, api.clock.now - 1);
    const paid = await earn(bob, 900);
    await payOut(api, own, bob);
    const reversal = await insertReversal(api, paid, { amountCents: 200, occurredAt });
    await api.sql`update commissions set status = 'matured', matured_at = now() where id = ${reversal}`;
    const { due, commissions } = await ofApp(own);
    // As on the pages of the creators, and as the parts beside it.
    expect(commissions.matured).toBe(570 - 200);
    expect(due).toEqual({ payees: 2, payableCents: 570, negativeCents: -200 });
    expect(await get<{ totalCents: number }>('/payouts/preview', own)).toMatchObject({ totalCents: 570 });
  });

  // @promise app-overview-rows
  test('the overview of an app has at most ten affiliates, ten links and twenty commissions', async () => {
    const own = await newApp(api);
    const occurredAt = Date.UTC(2026, 0, 1);
    for (let index = 0; index < 12; index += 1) {
      const affiliateId = await newAffiliate(api, own);
      const { slug } = await newLink(api, own, affiliateId);
      for (let count = 0; count < index % 4; count += 1) await click(own, slug);
      for (const amountCents of [100 + index, 5]) {
        await insertEarning(api, own, {
          affiliateId,
          amountCents,
          occurredAt: occurredAt + index,
          dueAt: occurredAt,
        });
      }
    }
    const overview = await ofApp(own);
    expect(overview.affiliates.map((row) => row['commissionCents'])).toEqual(
      [11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map((index) => 105 + index),
    );
    expect(overview.links.map((row) => row['clicks'])).toEqual([3, 3, 3, 2, 2, 2, 1, 1, 1, 0]);
    expect(overview.recentCommissions).toHaveLength(20);
    const times = overview.recentCommissions.map((row) => Number(row['occurredAt']));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
  });
});

describe('the overview of an affiliate', () => {
  // @promise get-affiliate-overview, affiliate-overview-parts, next-payout-at
  test('the overview of an affiliate has only their own data', async () => {
    const own = await newApp(api);
    const [ann, bob] = [await newAffiliate(api, own), await newAffiliate(api, own)];
    const [one, two, three] = [
      await newLink(api, own, ann),
      await newLink(api, own, bob),
      await newLink(api, own, ann),
    ];
    await install(own, await click(own, three.slug));
    await click(own, two.slug);
    const dueAt = api.clock.now + 3 * DAY_MS;
    const occurredAt = api.clock.now;
    await insertEarning(api, own, { affiliateId: ann, amountCents: 200, occurredAt, dueAt: dueAt + 1 });
    await insertEarning(api, own, { affiliateId: ann, amountCents: 100, occurredAt, dueAt });
    await insertEarning(api, own, { affiliateId: bob, amountCents: 900, occurredAt, dueAt: dueAt - 1 });
    const { items } = await get<{ items: Row[] }>(`/links?affiliateId=${ann}`, own);
    expect(await ofAffiliate(own, ann)).toEqual({
      funnel: { clicks: 1, installs: 3, identified: 2, paid: 0 },
      earnings: { pending: 300, matured: 0, paid: 0, lifetime: 300 },
      links: [items[1], items[0]],
      nextDueAt: dueAt,
      nextPayoutAt: dueAt,
      carriedBalanceCents: 0,
    });
    expect(items.map(({ id }) => id)).toEqual([one.id, three.id]);
    expect(await ofAffiliate(own, bob)).toMatchObject({ links: [{ id: two.id, clicks: 1 }] });
  });

  // @promise affiliate-overview-parts
  test('the overview of an affiliate without data has zeros and no next payout', async () => {
    const own = await newApp(api);
    expect(await ofAffiliate(own, await newAffiliate(api, own))).toEqual({
      funnel: { clicks: 0, installs: 0, identified: 0, paid: 0 },
      earnings: NOTHING,
      links: [],
      nextDueAt: null,
      nextPayoutAt: null,
      carriedBalanceCents: 0,
    });
  });

  // @promise matures-without-payout, negative-net-carried, next-payout-at
  test('a refund after the payout is carried as a negative balance until earnings compensate it', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const past = Date.now() - 10 * DAY_MS;
    api.clock.now = Date.now();
    const earn = (amountCents: number, dueAt: number) =>
      insertEarning(api, own, { affiliateId, amountCents, occurredAt: past, dueAt });
    const paid = await earn(1_000, past);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({ nextPayoutAt: past, carriedBalanceCents: 0 });
    await payOut(api, own, affiliateId);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({
      earnings: { pending: 0, matured: 0, paid: 1_000, lifetime: 1_000 },
      nextPayoutAt: null,
      carriedBalanceCents: 0,
    });

    await insertReversal(api, paid, { amountCents: 400, occurredAt: past + 1 });
    const reversed = { earnings: { paid: 1_000, lifetime: 600 }, carriedBalanceCents: -400 };
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({ ...reversed, nextPayoutAt: null });
    await payOut(api, own, affiliateId);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({
      ...reversed,
      earnings: { pending: 0, matured: -400, paid: 1_000, lifetime: 600 },
    });

    // Earnings that are not due yet do not reduce the carried balance.
    const dueAt = api.clock.now + DAY_MS;
    await earn(1_500, dueAt);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({
      nextPayoutAt: dueAt,
      carriedBalanceCents: -400,
    });
    await earn(300, past);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({
      nextPayoutAt: past,
      carriedBalanceCents: -100,
    });
    await earn(100, past);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({ carriedBalanceCents: 0 });
    await earn(1, past);
    expect(await ofAffiliate(own, affiliateId)).toMatchObject({ carriedBalanceCents: 0 });
  });

  // @promise next-due-at
  test('what is held becomes due next at the same time for founder and creator, whatever bonus is due now', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    api.clock.now = Date.now();
    const creator = await signInCreator(api, own, affiliateId);
    const occurredAt = api.clock.now - DAY_MS;
    const nextDue = async () => {
      const response = await api.call('GET', '/creator/overview', { headers: creator });
      const { nextDueAt } = await ofAffiliate(own, affiliateId);
      expect(response.body['nextDueAt']).toEqual(nextDueAt);
      return nextDueAt;
    };
    const begin = api.clock.now;
    const day = (days: number) => begin + days * DAY_MS;
    const earn = (amountCents: number, dueAt: number) =>
      insertEarning(api, own, { affiliateId, amountCents, occurredAt, dueAt });
    const refunded = await earn(500, day(1));
    await earn(500, day(3));
    expect(await nextDue()).toBe(day(1));
    const added = await api.call('POST', `/apps/${own.appId}/affiliates/${affiliateId}/entries`, {
      key: own.key,
      body: { amountCents: 2_500, category: 'bonus', reason: 'Spring', externalId: 'bonus-1' },
    });
    expect(added.status).toBe(201);
    // The database's clock says when the bonus is due.
    api.clock.now = Date.now() + 60_000;
    expect(await nextDue()).toBe(day(1));
    expect((await ofAffiliate(own, affiliateId)).nextPayoutAt).toBeLessThanOrEqual(Date.now());
    // A refunded earning and its reversal are due together, so nothing becomes due then.
    await insertReversal(api, refunded, { amountCents: 500, occurredAt });
    expect(await nextDue()).toBe(day(3));
  });

  // @promise affiliate-overview-scope, malformed-id-not-found
  test("the overview of another app's affiliate, an unknown one or a malformed id is a 404", async () => {
    const other = await newAffiliate(api, await newApp(api));
    for (const affiliateId of [other, newId('affiliate'), 'aff_x', newId('link')]) {
      const response = await api.call('GET', `/apps/${app.appId}/affiliates/${affiliateId}/overview`, {
        key: app.key,
      });
      expect(response).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
  });
});
