import { randomUUID } from 'node:crypto';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../src/domain/time.ts';
import {
  bodyOf,
  newProviderId,
  revenuecatEvent,
  revenuecatRefund,
  signStripe,
  storeTransactionId,
  stripeInvoicePaid,
} from './provider-payloads.ts';
import type { Payload } from './provider-payloads.ts';

/*
 * Ninety days of an app with twelve creators, sent to the real endpoints: clicks, installs, subscriptions, refunds, payments that
 * earned nothing for each usual cause, failed and refused deliveries, and two payouts.
 */

/** Settings of a service that gets the history: all of it comes from one address. */
export const HISTORY_SETTINGS = {
  RATE_LIMIT_ADDRESS: '0',
  RATE_LIMIT_SDK: '0',
  RATE_LIMIT_IDENTIFY: '0',
};

export interface HistoryTarget {
  readonly base: string;
  readonly key: string;
  readonly sdkKey: string;
  readonly appId: string;
  readonly revenuecatToken: string;
  readonly stripeSecret: string;
}

export interface History {
  readonly creators: number;
  readonly clicks: number;
  readonly installs: number;
  readonly payments: number;
  readonly payouts: number;
}

const DAYS = 90;
const CLICKS = 5_000;
const INSTALLS = 400;
const PAYERS = 120;
const IN_FLIGHT = 8;
/** The first creators bring most of the clicks, as everywhere. */
const CREATORS = [
  'Night Sky Channel',
  'Slow Mornings',
  'Desk Setup Weekly',
  'Trail Notes',
  'Kitchen Chemistry',
  'Sketch a Day',
  'Student Planner',
  'Quiet Coding',
  'Plant Corner',
  'Language Lab',
  'Tiny Budget',
  'Train Window',
] as const;
const PRODUCTS = [
  { productId: 'lantern_monthly', usd: 9.99, everyDays: 30, weight: 6 },
  { productId: 'lantern_weekly', usd: 3.99, everyDays: 7, weight: 2 },
  { productId: 'lantern_yearly', usd: 59.99, everyDays: 365, weight: 2 },
] as const;

/** Returns pseudo-random numbers from 0 to 1 that are the same on each run (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs work for each item, several at a time. */
async function each<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const index = next;
      next += 1;
      await work(items[index] as T, index);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

interface Visit {
  readonly slug: string;
  readonly claimToken: string;
  readonly at: number;
}

/** Sends the history. `say` gets a line for each part that begins. */
export async function addHistory(target: HistoryTarget, say: (line: string) => void): Promise<History> {
  const { base, key, sdkKey, appId, revenuecatToken, stripeSecret } = target;
  const random = createRandom(7);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const begin = Date.now() - DAYS * DAY_MS;
  const latest = Date.now() - 5 * MINUTE_MS;

  const post = async (
    route: string,
    body: string | Uint8Array,
    headers: Readonly<Record<string, string>>,
    { mayFail = false, method = 'POST' }: { mayFail?: boolean; method?: 'POST' | 'PATCH' } = {},
  ): Promise<string> => {
    const response = await fetch(base + route, {
      method,
      body: body as never,
      headers: { 'content-type': 'application/json', ...headers },
    });
    const text = await response.text();
    if (!response.ok && !mayFail) throw new Error(`${method} ${route} returned ${response.status}: ${text}`);
    return text;
  };
  const asFounder = { authorization: `Bearer ${key}` };
  const asApp = { authorization: `Bearer ${sdkKey}` };
  const call = async (route: string, body: object, headers: Readonly<Record<string, string>>) =>
    JSON.parse(await post(route, JSON.stringify(body), headers)) as Record<string, string>;
  const revenuecat = async (payload: Payload) =>
    await post(`/webhooks/revenuecat/${appId}`, bodyOf(payload), {
      authorization: revenuecatToken,
    });
  const stripe = async (payload: Payload) => {
    const body = bodyOf(payload);
    const signature = signStripe(body, stripeSecret, Math.floor(Date.now() / 1000));
    return await post(`/webhooks/stripe/${appId}`, body, { 'stripe-signature': signature });
  };

  say(`${CREATORS.length} creators with their links`);
  const creators: { id: string; slug: string }[] = [];
  for (const name of CREATORS) {
    const { id = '' } = await call(`/apps/${appId}/affiliates`, { name }, asFounder);
    const slug = name.toLowerCase().replaceAll(' ', '-');
    const link = { affiliateId: id, slug, destinationUrl: 'https://example.com/get-the-app' };
    await call(`/apps/${appId}/links`, link, asFounder);
    creators.push({ id, slug });
  }
  const change = async (creator: number, settings: object) =>
    await post(`/apps/${appId}/affiliates/${creators[creator]?.id}`, JSON.stringify(settings), asFounder, {
      method: 'PATCH',
    });

  say(`${CLICKS.toLocaleString('en-US')} clicks of ${DAYS} days`);
  const visits: Visit[] = Array.from({ length: CLICKS }, () => {
    // More each week, fewer at night.
    const day = Math.floor(DAYS * Math.sqrt(random()));
    const at = Math.floor(begin + day * DAY_MS + (7 + 16 * random()) * HOUR_MS);
    const creator = creators[Math.floor(creators.length * random() ** 2.2)];
    return { slug: creator?.slug ?? '', claimToken: randomUUID(), at: Math.min(at, latest) };
  }).toSorted((a, b) => a.at - b.at);
  await each(visits, async ({ slug, claimToken, at }, n) => {
    const click = { customerAppId: appId, slug, claimToken, clickedAt: at, ipHash: `visitor-${n}` };
    await call('/clicks', click, {});
  });

  say(`${INSTALLS} installs, and their users`);
  const installs = Array.from({ length: INSTALLS }, (_, n) => {
    // A click brings one install: each is of another part of the list.
    const part = Math.floor(CLICKS / INSTALLS);
    const visit = visits[n * part + Math.floor(random() * part)] as Visit;
    const at = Math.min(visit.at + Math.floor(random() ** 3 * DAY_MS) + 40_000, latest);
    return { ...visit, deviceId: `phone-${n}`, userId: `user-${1000 + n}`, at };
  });
  const install = async (deviceId: string, claimToken: string, at: number) =>
    await call('/sdk/install', { deviceId, claimToken, firstOpenAt: at }, asApp);
  const identify = async (deviceId: string, customerUserId: string, at: number) =>
    await call(
      '/sdk/identify',
      { deviceId, customerUserId, identifiedAt: at, acceptUnattributed: true },
      asApp,
    );
  await each(installs, async ({ deviceId, claimToken, userId, at }) => {
    await install(deviceId, claimToken, at);
    if (random() < 0.85) await identify(deviceId, userId, Math.min(at + 90_000, latest));
  });

  const payers = installs.filter((_, n) => n % Math.floor(INSTALLS / PAYERS) === 0).slice(0, PAYERS);
  let payments = 0;
  say(`the subscriptions of ${payers.length} users, with renewals and refunds`);
  const choices = PRODUCTS.flatMap((product) => Array.from({ length: product.weight }, () => product));
  await each(payers, async ({ deviceId, userId, at }, n) => {
    await identify(deviceId, userId, Math.min(at + 90_000, latest));
    const { productId, usd, everyDays } = pick(choices);
    const usesStripe = n % 5 === 4;
    const periods = 1 + Math.floor(random() * 8);
    let boughtAt = Math.min(at + Math.floor(random() * 3 * DAY_MS) + 5 * MINUTE_MS, latest);
    for (let period = 0; period < periods && boughtAt <= latest; period += 1) {
      payments += 1;
      const shared = { userId, productId, occurredAt: boughtAt };
      const transactionId = storeTransactionId();
      const cents = Math.round(usd * 100);
      if (usesStripe) {
        await stripe(stripeInvoicePaid({ ...shared, amount: cents }));
      } else {
        const type = period === 0 ? 'INITIAL_PURCHASE' : 'RENEWAL';
        await revenuecat(revenuecatEvent({ ...shared, type, usd, transactionId }));
        const refundedAt = boughtAt + 2 * DAY_MS;
        if (n % 13 === 3 && refundedAt < latest) {
          await revenuecat(revenuecatRefund({ ...shared, usd, transactionId, occurredAt: refundedAt }));
          break;
        }
      }
      boughtAt += everyDays * DAY_MS + Math.floor(random() * HOUR_MS);
    }
  });

  say('payments that earned nothing, failed and refused deliveries');
  const recently = () => latest - Math.floor(random() ** 2 * 60 * DAY_MS);
  const buy = async (userId: string, occurredAt = recently()) =>
    await revenuecat(revenuecatEvent({ userId, occurredAt, usd: 9.99, transactionId: storeTransactionId() }));
  // Most users of an app came by themselves.
  await each(Array.from({ length: 60 }), async (_, n) => await buy(`organic-${n}`));
  await each(
    Array.from({ length: 6 }),
    async () => await buy(`$RCAnonymousID:${randomUUID().replaceAll('-', '')}`),
  );
  await each(
    Array.from({ length: 5 }),
    async () => await stripe(stripeInvoicePaid({ userId: null, occurredAt: recently(), amount: 999 })),
  );
  await each(Array.from({ length: 8 }), async (_, n) => {
    await identify(`unknown-phone-${n}`, `signed-in-${n}`, recently());
    await buy(`signed-in-${n}`);
  });
  await each(Array.from({ length: 3 }), async () => {
    await stripe(
      stripeInvoicePaid({
        userId: payers[0]?.userId ?? '',
        occurredAt: recently(),
        amount: 990,
        currency: 'xaf',
      }),
    );
    await revenuecat(
      revenuecatEvent({
        userId: payers[1]?.userId ?? '',
        occurredAt: recently(),
        usd: null,
        localPrice: null,
      }),
    );
  });
  /** Brings a user through a creator's link. */
  const bring = async (creator: number, name: string, at: number) => {
    const [slug, claimToken] = [creators[creator]?.slug ?? '', randomUUID()];
    await call('/clicks', { customerAppId: appId, slug, claimToken, clickedAt: at }, {});
    await install(`phone-of-${name}`, claimToken, at + MINUTE_MS);
    await identify(`phone-of-${name}`, name, at + 2 * MINUTE_MS);
  };
  // The purchase came before the click.
  await buy('early-buyer', latest - 20 * DAY_MS);
  await bring(2, 'early-buyer', latest - 10 * DAY_MS);
  for (const [creator, settings] of [
    [9, { status: 'paused' }],
    [10, { status: 'removed' }],
    [11, { defaultCommissionRateBps: 0 }],
  ] as const) {
    await bring(creator, `fan-${creator}`, latest - 12 * DAY_MS);
    await change(creator, settings);
    await buy(`fan-${creator}`, latest - HOUR_MS);
  }
  for (let n = 0; n < 4; n += 1) {
    const trial = { userId: payers[n]?.userId ?? '', environment: 'SANDBOX', occurredAt: recently() };
    await revenuecat(revenuecatEvent({ ...trial, transactionId: storeTransactionId() }));
  }
  const stripeRoute = `/webhooks/stripe/${appId}`;
  for (let n = 0; n < 3; n += 1) {
    // Signed with an old secret.
    const body = bodyOf(stripeInvoicePaid({ userId: 'user-1000', amount: 999, occurredAt: latest }));
    const signature = signStripe(body, newProviderId('whsec_old'), Math.floor(Date.now() / 1000));
    await post(stripeRoute, body, { 'stripe-signature': signature }, { mayFail: true });
  }
  await revenuecat({ api_version: '1.0', event: { type: 'INITIAL_PURCHASE', id: randomUUID() } });

  say('payouts of two creators');
  let payouts = 0;
  for (const creator of creators.slice(0, 2)) {
    const csv = await post(`/apps/${appId}/affiliates/${creator.id}/payouts/export`, '', asFounder);
    if (csv.trimEnd().includes('\n')) payouts += 1;
  }
  return { creators: creators.length, clicks: visits.length, installs: installs.length, payments, payouts };
}
