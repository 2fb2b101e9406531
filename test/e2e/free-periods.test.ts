import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { connectProvider, deliver } from '../support/connect-provider.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { earnByPolicy } from '../support/policies.ts';
import {
  adaptyEvent,
  paddleTransaction,
  revenuecatEvent,
  stripeCheckoutSession,
  stripeEvent,
  stripeInvoicePaid,
  superwallEvent,
  withFields,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { startRelayedApi } from '../support/relayed-api.ts';
import type { RelayedApi } from '../support/relayed-api.ts';

let service: RelayedApi;
let founder: Founder;
let secrets: Map<string, string>;

beforeAll(async () => {
  service = await startRelayedApi();
});
beforeEach(async () => {
  founder = await setUpFounder(service, { purchaseCodes: 'when_unattributed' });
  secrets = new Map();
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});

interface Row {
  readonly affiliateId: string;
  readonly amountCents: number;
  readonly customerUserId: string;
  readonly eventId: string;
}

const commissions = async (): Promise<Row[]> =>
  (await founder.ok<{ items: Row[] }>('GET', `/apps/${founder.app.id}/commissions?limit=100`)).items;

/** Registers a code, as if that was two days ago. */
async function registered(body: object, affiliateId = founder.affiliateId): Promise<string> {
  const { id } = await founder.ok<{ id: string }>(
    'POST',
    `/apps/${founder.app.id}/affiliates/${affiliateId}/codes`,
    body,
  );
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set created_at = created_at - interval '2 days' where id = ${id}`;
  });
  return id;
}

/** What a customer does: a subscription that begins without a payment, with a code, and a payment without it. */
interface Story {
  readonly provider: 'revenuecat' | 'superwall' | 'adapty' | 'stripe' | 'paddle';
  readonly code: object;
  /** `names`: the user, or nobody. */
  readonly begin: (key: string, at: number, userId: string | null) => Payload;
  readonly pay: (key: string, at: number, userId: string | null) => Payload;
}

const offer = { namespace: 'app_store', value: 'SPRING20' };
const promotion = { namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' };
const anonymous = () => `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
const stripePays: Story['pay'] = (subscriptionId, occurredAt, userId) =>
  stripeInvoicePaid({
    subscriptionId,
    occurredAt,
    userId,
    amount: 1_000,
    currency: 'usd',
    customerId: `cus_${subscriptionId}`,
    invoiceId: `in_${randomUUID()}`,
  });

const STORIES: Readonly<Record<string, Story>> = {
  'a trial at RevenueCat': {
    provider: 'revenuecat',
    code: offer,
    begin: (key, occurredAt, userId) =>
      revenuecatEvent({
        type: 'INITIAL_PURCHASE',
        usd: 0,
        originalTransactionId: key,
        transactionId: key,
        userId: userId ?? anonymous(),
        occurredAt,
        extra: { period_type: 'TRIAL', offer_code: 'spring20' },
      }),
    pay: (key, occurredAt, userId) =>
      revenuecatEvent({
        type: 'RENEWAL',
        usd: 10,
        originalTransactionId: key,
        userId: userId ?? anonymous(),
        occurredAt,
        extra: { is_trial_conversion: true },
      }),
  },
  'a sale of an unknown price at RevenueCat': {
    provider: 'revenuecat',
    code: offer,
    begin: (key, occurredAt, userId) =>
      revenuecatEvent({
        usd: null,
        originalTransactionId: key,
        transactionId: key,
        userId: userId ?? anonymous(),
        occurredAt,
        extra: { offer_code: 'SPRING20' },
      }),
    pay: (key, occurredAt, userId) =>
      revenuecatEvent({
        type: 'RENEWAL',
        usd: 10,
        originalTransactionId: key,
        userId: userId ?? anonymous(),
        occurredAt,
      }),
  },
  'a trial at Superwall': {
    provider: 'superwall',
    code: offer,
    begin: (key, occurredAt, userId) =>
      superwallEvent({
        type: 'initial_purchase',
        usd: 0,
        originalTransactionId: key,
        userId,
        occurredAt,
        periodType: 'TRIAL',
        extra: { offerCode: 'SPRING20' },
      }),
    pay: (key, occurredAt, userId) =>
      superwallEvent({ type: 'renewal', usd: 10, originalTransactionId: key, userId, occurredAt }),
  },
  'a trial at Adapty': {
    provider: 'adapty',
    code: offer,
    begin: (key, occurredAt, userId) =>
      withFields(
        adaptyEvent({
          type: 'trial_started',
          usd: 0,
          originalTransactionId: key,
          userId,
          occurredAt,
          extra: { promotional_offer_id: 'SPRING20' },
        }),
        [],
        { profile_id: `profile ${key}` },
      ),
    pay: (key, occurredAt, userId) =>
      withFields(
        adaptyEvent({ type: 'trial_converted', usd: 10, originalTransactionId: key, userId, occurredAt }),
        [],
        { profile_id: `profile ${key}` },
      ),
  },
  'a Checkout session of Stripe without a payment': {
    provider: 'stripe',
    code: promotion,
    begin: (subscriptionId, occurredAt, userId) =>
      withFields(
        stripeCheckoutSession({
          mode: 'subscription',
          subscriptionId,
          customerId: `cus_${subscriptionId}`,
          invoiceId: `in_${randomUUID()}`,
          userId,
          occurredAt,
        }),
        ['data', 'object'],
        { payment_status: 'no_payment_required', discounts: [{ promotion_code: 'promo_spring' }] },
      ),
    pay: stripePays,
  },
  'a discount of a subscription at Stripe': {
    provider: 'stripe',
    code: promotion,
    begin: (subscription, occurredAt) =>
      stripeEvent(
        'customer.discount.created',
        {
          id: `di_${randomUUID()}`,
          object: 'discount',
          customer: `cus_${subscription}`,
          subscription,
          promotion_code: 'promo_spring',
          start: Math.floor(occurredAt / 1_000),
        },
        { occurredAt },
      ),
    pay: stripePays,
  },
  'a trial at Paddle': {
    provider: 'paddle',
    code: { namespace: 'paddle', value: 'SPRING20', externalId: 'dsc_spring' },
    begin: (subscriptionId, occurredAt, userId) =>
      withFields(paddleTransaction({ subscriptionId, userId, occurredAt, amount: 0 }), ['data'], {
        discount_id: 'dsc_spring',
      }),
    pay: (subscriptionId, occurredAt, userId) =>
      paddleTransaction({ subscriptionId, userId, occurredAt, amount: 1_000 }),
  },
};

async function send({ provider }: Story, body: Payload) {
  const secret = secrets.get(provider) ?? (await connectProvider(founder, provider));
  secrets.set(provider, secret);
  return await deliver(founder, provider, body, secret);
}
const connect = async () =>
  await send(STORIES['a trial at RevenueCat'] as Story, revenuecatEvent({ usd: 10 }));
const byHand = async (customerUserId: string, affiliateId: string | null) =>
  await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
    customerUserId,
    affiliateId,
    reason: 'A test',
  });
const healed = async () =>
  await eventually(
    'all bindings are healed',
    async () => {
      const { open } = await service.sql.one<{ open: number }>`
      select (select count(*) from bindings where app_id = ${founder.app.id} and healed_at is null)::int
             + (select count(*) from payments where app_id = ${founder.app.id} and recheck_since is not null)::int as open`;
      return open === 0;
    },
    10_000,
  );
const paidOf = async (path: string) =>
  (await founder.ok<{ funnel: { paid: number } }>('GET', `/apps/${founder.app.id}${path}/overview`)).funnel
    .paid;
const paid = async () => await paidOf(`/affiliates/${founder.affiliateId}`);
const paidOfAll = async () => await paidOf('');
async function codesOf(eventId: string) {
  const { steps } = await founder.ok<{ steps: { step: string; facts: { codes?: object[] } }[] }>(
    'GET',
    `/apps/${founder.app.id}/events/${eventId}/explanation`,
  );
  return steps.find(({ step }) => step === 'attribute')?.facts.codes;
}
const soon = () => Date.now() - MINUTE_MS;
const dayBefore = () => Date.now() - DAY_MS;

describe('a code with which a subscription began for free', () => {
  // @promise code-free-period
  test.each(Object.entries(STORIES))(
    'counts for the payments that follow: %s, whose user is named, or who is nobody yet',
    async (_, story) => {
      await registered(story.code);
      const [user, key, other] = [randomUUID(), randomUUID(), randomUUID()];
      await send(story, story.begin(key, dayBefore(), user));
      expect(await commissions()).toEqual([]);
      await send(story, story.pay(key, soon(), user));
      await send(story, story.begin(other, dayBefore(), null));
      await send(story, story.pay(other, soon(), null));
      await eventually('both earn', async () => (await commissions()).length === 2, 5_000);
      expect((await commissions()).toReversed()).toMatchObject([
        { amountCents: 200, affiliateId: founder.affiliateId, customerUserId: user },
        { amountCents: 200, affiliateId: founder.affiliateId },
      ]);
      await send(story, story.pay(randomUUID(), soon(), randomUUID()));
      expect(await commissions()).toHaveLength(2);
    },
  );

  test.each(Object.entries(STORIES))('counts in whatever order both arrive: %s', async (_, story) => {
    await registered(story.code);
    const [user, key] = [randomUUID(), randomUUID()];
    await send(story, story.pay(key, soon(), user));
    expect(await commissions()).toEqual([]);
    await send(story, story.begin(key, dayBefore(), user));
    await eventually('it earns', async () => (await commissions()).length === 1, 5_000);
  });

  const trial = STORIES['a trial at RevenueCat'] as Story;

  test('has to be in force when the customer used it, not when the customer paid', async () => {
    const id = await registered(offer);
    const [used, unused] = [randomUUID(), randomUUID()];
    await send(trial, trial.begin(used, dayBefore(), used));
    await founder.ok('POST', `/apps/${founder.app.id}/codes/${id}/deactivate`, {});
    const next = await founder.newAffiliate('Next');
    await registered(offer, next.affiliateId).catch(() => '');
    await send(trial, trial.begin(unused, Date.now() + 1_000, unused));
    await send(trial, trial.pay(used, Date.now() + 2_000, used));
    expect(await commissions()).toMatchObject([{ affiliateId: founder.affiliateId, customerUserId: used }]);
  });

  test('earns nothing on what the customer paid before', async () => {
    await registered(offer);
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, trial.pay(key, dayBefore() - MINUTE_MS, user));
    await send(trial, trial.begin(key, dayBefore(), user));
    await send(trial, trial.pay(key, soon(), user));
    await healed();
    expect(await commissions()).toHaveLength(1);
  });

  test('is none of a gift, nor of a sandbox, and two at once of different creators attribute nothing', async () => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    await registered({ namespace: 'app_store', value: 'AUTUMN' }, other.affiliateId);
    const [gift, sandbox, both] = [randomUUID(), randomUUID(), randomUUID()];
    const at = dayBefore();
    const begin = (key: string, extra: object) =>
      revenuecatEvent({
        type: 'INITIAL_PURCHASE',
        usd: 0,
        originalTransactionId: key,
        userId: key,
        occurredAt: at,
        extra: { period_type: 'TRIAL', offer_code: 'SPRING20', ...extra },
      });
    await send(trial, begin(gift, { is_family_share: true }));
    await send(trial, begin(sandbox, { environment: 'SANDBOX' }));
    await send(trial, begin(both, {}));
    await send(trial, begin(both, { offer_code: 'AUTUMN' }));
    for (const key of [gift, sandbox, both]) await send(trial, trial.pay(key, soon(), key));
    expect(await commissions()).toEqual([]);
    const { items } = await founder.ok<{ items: { likelyCause: string; customerUserId: string }[] }>(
      'GET',
      `/apps/${founder.app.id}/diagnostics/unattributed`,
    );
    expect(items.map(({ customerUserId, likelyCause }) => [customerUserId, likelyCause])).toEqual(
      expect.arrayContaining([
        [gift, 'user_never_identified'],
        [sandbox, 'user_never_identified'],
        [both, 'ambiguous_code'],
      ]),
    );
  });

  test('is named in the explanation of the payment', async () => {
    await registered(offer);
    const key = randomUUID();
    await send(trial, trial.begin(key, dayBefore(), key));
    const { body } = await send(trial, trial.pay(key, soon(), key));
    expect(await codesOf(body.eventId ?? '')).toMatchObject([
      { namespace: 'app_store', value: 'spring20', state: 'in_force' },
    ]);
  });

  test('is erased with its subscription', async () => {
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, trial.begin(key, dayBefore(), user));
    await send(trial, trial.pay(key, soon(), user));
    await founder.ok('DELETE', `/apps/${founder.app.id}/users/${user}`);
    await eventually('the key is gone', async () => {
      const [row] = await service.sql<{ keys: string[] }>`
        select array_agg(user_key) as keys from subscription_codes where app_id = ${founder.app.id}`;
      return row?.keys.every((one) => one.startsWith('erased:')) === true && row.keys.length === 1;
    });
  });

  // @promise code-free-leak
  test('takes no user from another creator, also where a payment of the subscription names nobody, or somebody else', async () => {
    const leaker = await founder.newAffiliate('Leaker');
    await registered(offer, leaker.affiliateId);
    const [user, key] = [await founder.customer(), randomUUID()];
    await send(trial, trial.begin(key, dayBefore(), user));
    for (const payer of [null, user, null, randomUUID()]) await send(trial, trial.pay(key, soon(), payer));
    expect(await commissions()).toMatchObject([{ affiliateId: founder.affiliateId }]);
    const { body } = await send(trial, trial.pay(key, soon(), null));
    expect(await codesOf(body.eventId ?? '')).toMatchObject([
      { value: 'spring20', state: 'user_attributed' },
    ]);
  });

  test('of a user whom a founder took from everybody attributes nothing, also under another anonymous id', async () => {
    await registered(offer);
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, trial.begin(key, dayBefore(), user));
    await send(trial, trial.pay(key, soon(), user));
    await byHand(user, null);
    await send(trial, trial.pay(key, Date.now() + 2_000, null));
    expect(await commissions()).toHaveLength(1);
  });

  // @promise code-one-customer
  test('brings one customer, who pays for the first time once, under whatever name', async () => {
    await registered(offer);
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 300 }, { percentBps: 1_000 }],
    });
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, trial.begin(key, dayBefore(), user));
    for (const payer of [user, null, null]) await send(trial, trial.pay(key, soon(), payer));
    await eventually('all earn', async () => (await commissions()).length === 3, 5_000);
    expect((await commissions()).map(({ amountCents }) => amountCents).toSorted((a, b) => a - b)).toEqual([
      100, 100, 300,
    ]);
    expect(await paid()).toBe(1);
  });

  test('counts at its first use: neither a later use, nor the payment itself, makes it another one', async () => {
    const id = await registered(offer);
    const key = randomUUID();
    await send(trial, trial.begin(key, dayBefore(), key));
    await founder.ok('POST', `/apps/${founder.app.id}/codes/${id}/deactivate`, {});
    const next = await founder.newAffiliate('Next');
    await registered(offer, next.affiliateId);
    await send(trial, trial.begin(key, Date.now() + 1_000, key));
    const renewal = { type: 'RENEWAL', usd: 10, originalTransactionId: key, userId: key };
    const extra = { offer_code: 'SPRING20' };
    await send(trial, revenuecatEvent({ ...renewal, occurredAt: Date.now() + 2_000, extra }));
    expect(await commissions()).toMatchObject([{ affiliateId: founder.affiliateId }]);
  });

  test('ties no strangers together where an app sends a placeholder as the transaction', async () => {
    await registered(offer);
    const buy = (userId: string, extra: Record<string, unknown> = {}) =>
      revenuecatEvent({ usd: 10, userId, originalTransactionId: 'null', occurredAt: soon(), extra });
    await send(trial, buy(anonymous(), { offer_code: 'SPRING20' }));
    for (const user of [randomUUID(), randomUUID()]) await send(trial, buy(user));
    await healed();
    expect(await commissions()).toHaveLength(1);
  });

  /** Has an earlier version stored what came before: it took no codes from purchases without a payment. */
  async function forgetCodes(): Promise<void> {
    await service.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`delete from subscription_codes where app_id = ${founder.app.id}`;
    });
  }

  /** Reprocesses what was received within two days. Returns the commissions of the dry run and of its application, cents. */
  async function reprocessed(): Promise<readonly [number, number]> {
    const run = async (body: object) => {
      const { id } = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/reprocess-runs`, body);
      const path = `/apps/${founder.app.id}/reprocess-runs/${id}`;
      let state = { id, status: '', commissionCents: 0 };
      await eventually(
        'the run ends',
        async () => {
          state = await founder.ok('GET', path);
          return state.status === 'finished';
        },
        20_000,
      );
      return state;
    };
    const dry = await run({ from: Date.now() - 2 * DAY_MS });
    const { commissionCents } = await run({ apply: dry.id });
    return [dry.commissionCents, commissionCents];
  }

  test('is found by the reprocessing of a trial that an earlier version stored', async () => {
    await registered(offer);
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, trial.begin(key, dayBefore(), user));
    await forgetCodes();
    await send(trial, trial.pay(key, soon(), user));
    expect(await reprocessed()).toEqual([200, 200]);
    expect(await commissions()).toMatchObject([{ customerUserId: user }]);
  });

  test('is found by reprocessing also where several payments wait, of which the first binds what the next would bind', async () => {
    await registered(offer);
    const key = randomUUID();
    await send(trial, trial.begin(key, dayBefore(), null));
    await forgetCodes();
    for (const at of [soon(), soon() + 1]) await send(trial, trial.pay(key, at, null));
    expect(await commissions()).toEqual([]);
    expect(await reprocessed()).toEqual([400, 400]);
    await healed();
    expect((await commissions()).map(({ amountCents }) => amountCents)).toEqual([200, 200]);
  });
});

describe('what a code has bound', () => {
  const trial = STORIES['a trial at RevenueCat'] as Story;
  const buy = (userId: string, key: string, over: { at?: number; code?: string; type?: string } = {}) =>
    revenuecatEvent({
      type: over.type ?? 'RENEWAL',
      usd: 10,
      userId,
      originalTransactionId: key,
      occurredAt: over.at ?? soon(),
      extra: over.code === undefined ? {} : { offer_code: over.code },
    });

  // @promise code-person-by-hand
  test.each([
    ['the anonymous customer', 0],
    ['the subscription', 1],
  ])(
    'is given away as one person, by %s: on the old phone and the new one, and after the sign-in',
    async (_, named) => {
      const other = await founder.newAffiliate('Other');
      await registered(offer);
      const [first, second, key, user] = [anonymous(), anonymous(), randomUUID(), randomUUID()];
      await send(trial, buy(first, key, { code: 'SPRING20' }));
      await byHand([first, `app_store:${key}`][named] ?? '', other.affiliateId);
      const at = Date.now() + 2_000;
      await send(trial, buy(first, key, { at }));
      await send(trial, buy(second, key, { at }));
      await send(trial, buy(user, key, { at }));
      await healed();
      await send(trial, buy(user, randomUUID(), { at }));
      const [own, ...others] = (await commissions()).toReversed();
      expect(own?.affiliateId).toBe(founder.affiliateId);
      expect(others.map(({ affiliateId }) => affiliateId)).toEqual(Array(4).fill(other.affiliateId));
    },
  );

  test('belongs to nobody once a founder said so, whichever phone pays', async () => {
    await registered(offer);
    const [first, key] = [anonymous(), randomUUID()];
    await send(trial, buy(first, key, { code: 'SPRING20' }));
    await byHand(first, null);
    for (const phone of [first, anonymous()]) await send(trial, buy(phone, key, { at: Date.now() + 2_000 }));
    expect(await commissions()).toHaveLength(1);
  });

  test('belongs to nobody once a founder said so of the phone, also with a user who was given to a creator before', async () => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    const [phone, user, key] = [anonymous(), randomUUID(), randomUUID()];
    await send(trial, buy(phone, key, { code: 'SPRING20' }));
    await byHand(user, other.affiliateId);
    await byHand(phone, null);
    await send(trial, buy(user, key, { at: Date.now() + 2_000 }));
    expect(await commissions()).toHaveLength(1);
  });

  test('is one customer, of one creator, however many phones report a subscription at once', async () => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    await registered({ namespace: 'app_store', value: 'AUTUMN' }, other.affiliateId);
    const keys = Array.from({ length: 8 }, () => randomUUID());
    await connect();
    await Promise.all(
      keys.flatMap((key) =>
        ['SPRING20', 'AUTUMN', 'SPRING20', 'AUTUMN'].map(
          async (code, n) =>
            await send(trial, buy(anonymous(), key, { code, at: soon() + n, type: 'INITIAL_PURCHASE' })),
        ),
      ),
    );
    await healed();
    const creators = await service.sql<{ creators: number; roots: number }>`
      select count(distinct c.affiliate_id)::int as creators, count(distinct coalesce(b.counts_with, b.id::text))::int as roots
        from commissions c
        join payment_user_keys k on k.payment_id = c.payment_id and k.position = 1
        join bindings b on b.id = c.binding_id
       where c.app_id = ${founder.app.id} group by k.user_key`;
    expect(creators).toEqual(keys.map(() => ({ creators: 1, roots: 1 })));
    expect(await paidOfAll()).toBe(keys.length);
  });

  test('gets the subscriptions that its customer begins later, also without the code', async () => {
    await registered(offer);
    const [first, second, key] = [anonymous(), anonymous(), randomUUID()];
    await send(trial, buy(first, randomUUID(), { code: 'SPRING20', type: 'NON_RENEWING_PURCHASE' }));
    await send(trial, buy(first, key, { type: 'INITIAL_PURCHASE' }));
    await send(trial, buy(second, key));
    expect(await commissions()).toHaveLength(3);
    expect(await paid()).toBe(1);
  });

  test('pays for the first time once, whether its key or its user pays first', async () => {
    const [first, key, user] = [anonymous(), randomUUID(), randomUUID()];
    await send(trial, buy(first, key));
    await byHand(`app_store:${key}`, founder.affiliateId);
    await send(trial, trial.begin(key, Date.now(), user));
    await send(trial, buy(user, randomUUID(), { at: Date.now() + 1_000 }));
    await send(trial, buy(first, key, { at: Date.now() + 2_000 }));
    expect(await commissions()).toHaveLength(2);
    expect(await paid()).toBe(1);
  });

  // @promise code-key-of-others
  test('gets no subscription of somebody who belongs to another creator, also where somebody else restores it', async () => {
    const other = await founder.newAffiliate('Other');
    await registered(offer, other.affiliateId);
    const [owner, guest, key] = [await founder.customer(), randomUUID(), randomUUID()];
    await send(trial, buy(owner, key));
    await send(trial, buy(guest, randomUUID(), { code: 'SPRING20' }));
    await send(trial, buy(guest, key));
    await send(trial, buy(owner, key));
    const [, , , last] = (await commissions()).toReversed();
    expect(last).toMatchObject({ affiliateId: founder.affiliateId, customerUserId: owner });
    // Nor with a code of the payment itself, which names nobody.
    await send(trial, buy(anonymous(), key, { code: 'SPRING20' }));
    expect(await commissions()).toHaveLength(4);
  });

  // @promise code-subscription-first
  test.each([
    ['the creator whose code brought the subscription', 'first'],
    ['the creator to whom a founder gave it', 'given'],
    ['nobody, if a founder said so', 'nobody'],
  ])('pays for %s, whosever the phone is', async (_, whose) => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    await registered({ namespace: 'app_store', value: 'AUTUMN' }, other.affiliateId);
    const given = await founder.newAffiliate('Given');
    const [phone, key] = [anonymous(), randomUUID()];
    await send(trial, buy(anonymous(), key, { code: 'SPRING20' }));
    await send(trial, buy(phone, randomUUID(), { code: 'AUTUMN' }));
    if (whose !== 'first') await byHand(`app_store:${key}`, whose === 'given' ? given.affiliateId : null);
    await send(trial, buy(phone, key, { at: Date.now() + 2_000 }));
    const last = (await commissions()).toReversed()[2];
    expect(last?.affiliateId).toBe(
      { first: founder.affiliateId, given: given.affiliateId }[whose] ?? undefined,
    );
  });

  test.each([
    ['whose customer has another creator', true],
    ['whose customer a founder took from everybody', false],
  ])('gets no subscription from a code of its trial %s', async (_, isOther) => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    await registered({ namespace: 'app_store', value: 'AUTUMN' }, other.affiliateId);
    const [phone, key] = [anonymous(), randomUUID()];
    await send(trial, buy(phone, randomUUID(), { code: 'AUTUMN' }));
    if (!isOther) await byHand(phone, null);
    await send(trial, trial.begin(key, soon(), phone));
    await send(trial, buy(anonymous(), key, { at: Date.now() + 2_000 }));
    expect(await commissions()).toHaveLength(1);
  });

  test('stays with its creator when another user of the subscription is given away', async () => {
    const other = await founder.newAffiliate('Other');
    await registered(offer);
    const [user, member, key] = [randomUUID(), randomUUID(), randomUUID()];
    await send(trial, buy(anonymous(), key, { code: 'SPRING20' }));
    for (const one of [user, member]) await send(trial, buy(one, key));
    await healed();
    await byHand(member, other.affiliateId);
    const at = Date.now() + 2_000;
    await send(trial, buy(user, key, { at }));
    await send(trial, buy(member, key, { at }));
    expect((await commissions()).toReversed().map(({ affiliateId }) => affiliateId)).toEqual([
      ...Array(4).fill(founder.affiliateId),
      other.affiliateId,
    ]);
  });

  test('follows the last word about the subscription, also with a user who signed in before it', async () => {
    const [second, third] = [await founder.newAffiliate('Second'), await founder.newAffiliate('Third')];
    await registered(offer);
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, buy(anonymous(), key, { code: 'SPRING20' }));
    await byHand(`app_store:${key}`, second.affiliateId);
    await send(trial, buy(user, key, { at: Date.now() + 1_000 }));
    await healed();
    await byHand(`app_store:${key}`, third.affiliateId);
    await send(trial, buy(user, key, { at: Date.now() + 2_000 }));
    expect((await commissions())[0]).toMatchObject({ affiliateId: third.affiliateId });
  });

  test('counts with a code that was registered before its second use', async () => {
    await registered(offer);
    const key = randomUUID();
    await send(trial, trial.begin(key, Date.now() - 5 * DAY_MS, key));
    await send(trial, trial.begin(key, dayBefore(), key));
    await send(trial, trial.pay(key, soon(), key));
    expect(await commissions()).toHaveLength(1);
  });

  test('is forgotten with what a founder wrote about its key', async () => {
    const [user, key] = [randomUUID(), randomUUID()];
    await send(trial, buy(anonymous(), key));
    await byHand(`app_store:${key}`, founder.affiliateId);
    await send(trial, buy(user, key));
    await founder.ok('DELETE', `/apps/${founder.app.id}/users/${user}`);
    await eventually('the reason is gone', async () => {
      const rows = await service.sql<{ reason: string | null }>`
        select reason from manual_attributions where app_id = ${founder.app.id}`;
      return rows.every(({ reason }) => reason === null);
    });
  });
});
